/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A window is rounded out to CHUNK_BYTES, so that neighbouring registrations share one. What is mapped beyond the
 * registrations costs nothing: a space file is sparse and sealed against shrinking, and behind the end of another file
 * nobody looks. Huge pages are counted when they are mapped and their mapping makes files longer: those windows end
 * where the registration does. Windows are never moved, because a transfer may hold one over several rounds; their
 * number is bounded, because the owner chooses the addresses.
 */
#include "emunic/base/window.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "emunic/abi/abi.h"
#include "emunic/base/bus_error.h"

#define CHUNK_BYTES  (64ull << 20)
#define CHARGE_BYTES (256ull << 20) /* least that a window takes of a budget: a process has some 65000 mappings */
#define WINDOWS_MAX  512u
#define ADDRESS_END  (1ull << 47)

static uint64_t charge_of(uint64_t len_bytes)
{
    return len_bytes < CHARGE_BYTES ? CHARGE_BYTES : len_bytes;
}

static bool is_broken(const struct emu_window *w)
{
    return w->fault && atomic_load_explicit(emu_bus_error_mark(w->fault), memory_order_relaxed) != 0;
}

static void *map(const struct emu_windows *w, int fd, void *at, uint64_t first, uint64_t len_bytes)
{
    return mmap(at, len_bytes, w->is_read_only ? PROT_READ : PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_NORESERVE | (at ? MAP_FIXED : 0), fd, (off_t)first);
}

static const struct emu_window *add(struct emu_windows *w, int fd, uint64_t addr, uint64_t len_bytes)
{
    uint64_t unit = w->page_bytes ? w->page_bytes : CHUNK_BYTES;
    uint64_t first = addr & ~(unit - 1);
    uint64_t end = (addr + len_bytes + unit - 1) & ~(unit - 1);
    struct emu_window window = { .owner_addr = first, .len_bytes = end - first };
    struct emu_window *list;
    void *base;

    if (w->n == WINDOWS_MAX || (w->budget && w->budget->left_bytes < charge_of(end - first)))
        return NULL;
    list = realloc(w->list, (w->n + 1) * sizeof(*list));
    if (!list)
        return NULL;
    w->list = list;
    base = map(w, fd, NULL, first, end - first);
    if (base == MAP_FAILED)
        return NULL;
    window.base = base;
    if (w->can_break) {
        window.fault = emu_bus_error_watch(base, end - first, w->page_bytes ? w->page_bytes : EMU_PAGE_BYTES);
        if (!window.fault) {
            munmap(base, end - first);
            return NULL;
        }
    }
    if (w->budget)
        w->budget->left_bytes -= charge_of(end - first);
    list[w->n] = window;
    w->latest = w->n;
    return &list[w->n++];
}

/* In the same place: a transfer may hold the window. If that fails it stays broken, and its place taken. */
static bool map_again(const struct emu_windows *w, struct emu_window *window, int fd)
{
    if (map(w, fd, window->base, window->owner_addr, window->len_bytes) == MAP_FAILED) {
        mmap(window->base, window->len_bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
        return false;
    }
    emu_bus_error_clear(window->fault);
    return true;
}

static struct emu_window *look_up(struct emu_windows *w, uint64_t addr, uint64_t len_bytes)
{
    if (w->latest < w->n && emu_window_covers(&w->list[w->latest], addr, len_bytes))
        return &w->list[w->latest];
    for (unsigned i = 0; i < w->n; i++) {
        if (emu_window_covers(&w->list[i], addr, len_bytes)) {
            w->latest = i;
            return &w->list[i];
        }
    }
    return NULL;
}

static bool is_possible(uint64_t addr, uint64_t len_bytes)
{
    return addr < ADDRESS_END && len_bytes <= ADDRESS_END - addr;
}

const struct emu_window *emu_windows_find_or_map(struct emu_windows *w, int fd, uint64_t addr, uint64_t len_bytes)
{
    struct emu_window *window;

    if (!is_possible(addr, len_bytes))
        return NULL;
    window = look_up(w, addr, len_bytes);
    if (!window)
        return add(w, fd, addr, len_bytes);
    return is_broken(window) && !map_again(w, window, fd) ? NULL : window;
}

const struct emu_window *emu_windows_find(struct emu_windows *w, uint64_t addr, uint64_t len_bytes)
{
    const struct emu_window *window = is_possible(addr, len_bytes) ? look_up(w, addr, len_bytes) : NULL;

    return window && !is_broken(window) ? window : NULL;
}

static void give_back(struct emu_windows *w)
{
    for (unsigned i = 0; w->budget && i < w->n; i++)
        w->budget->left_bytes += charge_of(w->list[i].len_bytes);
}

void emu_windows_leave_budget(struct emu_windows *w)
{
    give_back(w);
    w->budget = NULL;
}

void emu_windows_let_go(const struct emu_windows *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        /* What stands in for a broken file is ours and goes with the next mapping. Huge pages may refuse: they stay. */
        if (!is_broken(&w->list[i]))
            (void)madvise(w->list[i].base, w->list[i].len_bytes, MADV_DONTNEED);
    }
}

void emu_windows_fini(struct emu_windows *w)
{
    give_back(w);
    for (unsigned i = 0; i < w->n; i++) {
        emu_bus_error_unwatch(w->list[i].fault);
        munmap(w->list[i].base, w->list[i].len_bytes);
    }
    free(w->list);
    w->list = NULL;
    w->n = w->latest = 0;
}
