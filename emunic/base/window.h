/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows into a process's space file, whose offset is the owner's address. Mapped when first needed, kept until the end.
 * One thread at a time per cache.
 */
#ifndef EMUNIC_BASE_WINDOW_H
#define EMUNIC_BASE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct emu_window {
    uint8_t *base;
    uint64_t owner_addr;
    uint64_t len_bytes;
};

/* What several caches may map together: address space and mappings are limited, and the owner chooses the sizes. */
struct emu_window_budget {
    uint64_t left_bytes;
};

struct emu_windows {
    struct emu_window_budget *budget; /* borrowed, outlives the cache; NULL: no limit */
    struct emu_window *list;    /* owned */
    unsigned n;
    unsigned latest;            /* where the last look-up ended */
};

/*
 * A window that covers [addr, addr + len), or NULL: no memory, too many windows, nothing left of the budget, or an address
 * that no process has.
 */
const struct emu_window *emu_windows_get(struct emu_windows *w, int fd, uint64_t addr, uint64_t len_bytes);

/* Unmaps all. */
void emu_windows_fini(struct emu_windows *w);

#endif
