/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers for objects: place plus one in the lower half, its serial in the upper one. Places that were given back are
 * used again first, the last one first.
 */
#include "emunic/daemon/world/numbers.h"

#include <errno.h>
#include <stdlib.h>

#define PLACES_FIRST 64u

void emu_numbers_fini(struct emu_numbers *numbers)
{
    free(numbers->places);
    *numbers = (struct emu_numbers){ .n = 0 };
}

static int grow(struct emu_numbers *numbers)
{
    uint32_t n = numbers->n ? 2 * numbers->n : PLACES_FIRST;
    struct emu_number *places = realloc(numbers->places, n * sizeof(*places));

    if (!places)
        return -ENOMEM;
    numbers->places = places;
    numbers->n = n;
    return 0;
}

int emu_numbers_take(struct emu_numbers *numbers, void *what, uint64_t *number_out)
{
    uint32_t at;

    if (numbers->freed != 0) {
        at = numbers->freed - 1;
        numbers->freed = numbers->places[at].next_free;
    } else {
        if (numbers->n_used == numbers->n && grow(numbers) < 0)
            return -ENOMEM;
        at = numbers->n_used++;
        numbers->places[at] = (struct emu_number){ .serial = 0 };
    }
    numbers->places[at].what = what;
    *number_out = (uint64_t)numbers->places[at].serial << 32 | (at + 1);
    return 0;
}

void *emu_numbers_find(const struct emu_numbers *numbers, uint64_t number)
{
    uint32_t at = (uint32_t)number - 1;

    return at < numbers->n_used && numbers->places[at].serial == number >> 32 ? numbers->places[at].what : NULL;
}

void emu_numbers_give(struct emu_numbers *numbers, uint64_t number)
{
    struct emu_number *place = &numbers->places[(uint32_t)number - 1];

    *place = (struct emu_number){ .serial = place->serial + 1, .next_free = numbers->freed };
    numbers->freed = (uint32_t)number;
}
