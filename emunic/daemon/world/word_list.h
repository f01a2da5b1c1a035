/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of 64-bit words that grow: what emunics tell each other (abi/host_admin.h).
 */
#ifndef EMUNIC_DAEMON_WORLD_WORD_LIST_H
#define EMUNIC_DAEMON_WORLD_WORD_LIST_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/host_admin.h"

struct emu_word_list {
    uint64_t *words; /* owned */
    uint32_t n;
    uint32_t room;
    bool has_failed; /* no memory, or more than a list holds: what is in it is not all */
};

/* Room for n more, or NULL. */
static inline uint64_t *emu_word_list_extend(struct emu_word_list *list, uint32_t n)
{
    if (list->has_failed || n > EMU_HOST_ADMIN_WORDS_MAX - list->n) {
        list->has_failed = true;
        return NULL;
    }
    if (list->n + n > list->room) {
        uint32_t room = list->room ? list->room : 64;
        uint64_t *words;

        while (room < list->n + n)
            room *= 2;
        words = realloc(list->words, room * sizeof(*words));
        if (!words) {
            list->has_failed = true;
            return NULL;
        }
        list->words = words;
        list->room = room;
    }
    list->n += n;
    return list->words + list->n - n;
}

static inline void emu_word_list_add(struct emu_word_list *list, uint64_t word)
{
    uint64_t *at = emu_word_list_extend(list, 1);

    if (at)
        *at = word;
}

static inline void emu_word_list_add_row(struct emu_word_list *list, const uint64_t *row, uint32_t n)
{
    uint64_t *at = emu_word_list_extend(list, n);

    if (at)
        memcpy(at, row, n * sizeof(*row));
}

static inline void emu_word_list_fini(struct emu_word_list *list)
{
    free(list->words);
    *list = (struct emu_word_list){ .words = NULL };
}

#endif
