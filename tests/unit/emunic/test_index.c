/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/daemon/world/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/seed.h"

#define MANY 20000u
#define KEYS 64u

struct thing {
    unsigned number;
    struct emu_index_entry entry;
};

static struct emu_index at;
static struct thing things[MANY];

static struct emu_key key(uint64_t word)
{
    return (struct emu_key){ { 7, word, word >> 32 } };
}

static struct thing *thing_of(struct emu_index_entry *entry)
{
    return EMU_INDEXED(entry, struct thing, entry);
}

static int setup(void **state)
{
    (void)state;
    memset(things, 0, sizeof(things));
    for (unsigned i = 0; i < MANY; i++)
        things[i].number = i;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    emu_index_fini(&at);
    return 0;
}

static void test_each_key_finds_its_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        emu_index_add(&at, key(i), &things[i].entry);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(thing_of(emu_index_oldest(&at, key(i))), &things[i]);
    assert_null(emu_index_oldest(&at, key(MANY)));
    for (unsigned i = 0; i < MANY; i += 2)
        emu_index_remove(&at, &things[i].entry);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(thing_of(emu_index_newest(&at, key(i))), i % 2 ? &things[i] : NULL);
}

static void test_an_index_with_nothing_in_it_finds_nothing(void **state)
{
    (void)state;
    assert_null(emu_index_oldest(&at, key(0)));
    assert_null(emu_index_newest(&at, key(0)));
    emu_index_remove(&at, &things[0].entry);
    emu_index_add(&at, key(0), &things[0].entry);
    emu_index_remove(&at, &things[0].entry);
    emu_index_remove(&at, &things[0].entry);
    assert_null(emu_index_oldest(&at, key(0)));
    assert_int_equal(at.n_keys, 0);
}

/* The things with a key, in order, as a list of all that were added says. */
static void check_key(const struct thing *const *added, unsigned n, uint64_t word)
{
    struct emu_index_entry *entry = emu_index_oldest(&at, key(word));
    const struct thing *last = NULL;

    for (unsigned i = 0; i < n; i++) {
        if (added[i]->entry.key.words[1] != word)
            continue;
        assert_ptr_equal(thing_of(entry), added[i]);
        assert_ptr_equal(last ? thing_of(emu_index_older(entry)) : NULL, last);
        last = added[i];
        entry = emu_index_newer(entry);
    }
    assert_null(entry);
    assert_ptr_equal(thing_of(emu_index_newest(&at, key(word))), last);
}

static void test_things_with_one_key_keep_their_order(void **state)
{
    struct emu_random random = seeded(5);
    static const struct thing *added[MANY];
    unsigned n = 0;

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        if (n > 0 && emu_random_below(&random, 3) == 0) {
            unsigned which = (unsigned)emu_random_below(&random, n);

            emu_index_remove(&at, &things[added[which]->number].entry);
            memmove(&added[which], &added[which + 1], (n - which - 1) * sizeof(added[0]));
            n--;
        }
        emu_index_add(&at, key(emu_random_below(&random, KEYS)), &things[i].entry);
        added[n++] = &things[i];
        if (i % 500 == 0 || i == MANY - 1) {
            for (uint64_t word = 0; word < KEYS; word++)
                check_key(added, n, word);
        }
    }
    while (n > 0)
        emu_index_remove(&at, &things[added[--n]->number].entry);
    assert_int_equal(at.n_keys, 0);
}

/* Keys that lie in steps of any power of two are spread: who chooses keys cannot choose places. */
static void test_regular_keys_do_not_share_places(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 48; shift += 6) {
        unsigned longest = 0;

        for (unsigned i = 0; i < 4096; i++)
            emu_index_add(&at, key((uint64_t)i << shift), &things[i].entry);
        for (uint32_t place = 0; place < at.n_places; place++) {
            unsigned n = 0;

            for (struct emu_index_entry *entry = at.places[place]; entry; entry = entry->next_key)
                n++;
            longest = n > longest ? n : longest;
        }
        assert_in_range(longest, 1, 16);
        for (unsigned i = 0; i < 4096; i++)
            emu_index_remove(&at, &things[i].entry);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_key_finds_its_own, setup, teardown),
        cmocka_unit_test_setup_teardown(test_an_index_with_nothing_in_it_finds_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_things_with_one_key_keep_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_regular_keys_do_not_share_places, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
