/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows: parts of a file of another process, mapped here when first needed and kept until the end. The file is a
 * process's space file, in which a page's place is its owner's address, or one that the program itself has mapped.
 * One thread at a time per cache.
 */
#ifndef EMUNIC_BASE_WINDOW_H
#define EMUNIC_BASE_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/base/bus_error.h"

struct emu_window {
    uint8_t *base;       /* stays for as long as the window, also when it is mapped again */
    uint64_t owner_addr; /* its place in the file; in a space file the owner's address */
    uint64_t len_bytes;
    struct emu_bus_error_range *fault; /* owned; NULL: its pages cannot go */
};

/* What several caches may map together: address space and mappings are limited, and the owner chooses the sizes. */
struct emu_window_budget {
    uint64_t left_bytes;
};

struct emu_windows {
    struct emu_window_budget *budget; /* borrowed, outlives the cache; NULL: no limit */
    bool is_read_only;                /* map for reading */
    bool can_break;                   /* the file can be shortened: watch for missing pages */
    uint64_t page_bytes;              /* of huge pages, which are mapped no further than asked for; 0: ordinary ones */
    struct emu_window *list;          /* owned */
    unsigned n;
    unsigned latest; /* where the last look-up ended */
};

/* A window that covers the range, found or mapped. For emu_windows_get(). */
const struct emu_window *emu_windows_find_or_map(struct emu_windows *w, int fd, uint64_t addr, uint64_t len_bytes);

static inline bool emu_window_covers(const struct emu_window *w, uint64_t addr, uint64_t len_bytes)
{
    return addr >= w->owner_addr && addr - w->owner_addr <= w->len_bytes &&
           len_bytes <= w->len_bytes - (addr - w->owner_addr);
}

/*
 * A window that covers [addr, addr + len), or NULL: no memory, too many windows, nothing left of the budget, or an
 * address that no process has. A broken window is mapped again. Valid until the next call. The window of the last
 * look-up is found here, if its pages cannot go: every command that emunic carries asks.
 */
static inline const struct emu_window *emu_windows_get(struct emu_windows *w, int fd, uint64_t addr, uint64_t len_bytes)
{
    const struct emu_window *latest = w->latest < w->n ? &w->list[w->latest] : NULL;

    return latest && !latest->fault && emu_window_covers(latest, addr, len_bytes) ?
               latest :
               emu_windows_find_or_map(w, fd, addr, len_bytes);
}

/* The same without the file: NULL also when one would have to be mapped, for the first time or again. */
const struct emu_window *emu_windows_find(struct emu_windows *w, uint64_t addr, uint64_t len_bytes);

/*
 * Where to look after each access to a window whose pages can go (emu_bus_error_mark), or NULL. The mark is there for
 * as long as the window.
 */
static inline const _Atomic uint32_t *emu_window_mark(const struct emu_window *window)
{
    return window->fault ? emu_bus_error_mark(window->fault) : NULL;
}

/* The budget has all back and is not looked at again. For a cache that nobody adds to any more. */
void emu_windows_leave_budget(struct emu_windows *w);

/* Pages of the files that were touched here are touched no longer; they stay in the files and come back when needed. */
void emu_windows_let_go(const struct emu_windows *w);

/* Unmaps all. */
void emu_windows_fini(struct emu_windows *w);

#endif
