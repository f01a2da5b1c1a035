/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers for objects that another host speaks of: a place, and how often it was given away before. A number that is
 * out of date finds nothing.
 */
#ifndef EMUNIC_DAEMON_WORLD_NUMBERS_H
#define EMUNIC_DAEMON_WORLD_NUMBERS_H

#include <stdint.h>

struct emu_number {
    void *what; /* borrowed; NULL: free */
    uint32_t serial;
    uint32_t next_free;
};

struct emu_numbers {
    struct emu_number *places; /* owned */
    uint32_t n;                /* places there are */
    uint32_t n_used;           /* places that ever were in use */
    uint32_t freed;            /* the last one that was given back, plus one; 0: none */
};

void emu_numbers_fini(struct emu_numbers *numbers);
/* A number, never 0, for something that is not NULL. -ENOMEM. */
int emu_numbers_take(struct emu_numbers *numbers, void *what, uint64_t *number_out);
/* NULL: nothing has that number. */
void *emu_numbers_find(const struct emu_numbers *numbers, uint64_t number);
/* Of something that has it. */
void emu_numbers_give(struct emu_numbers *numbers, uint64_t number);

#endif
