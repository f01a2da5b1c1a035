/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A window is rounded out to CHUNK_BYTES, so that neighbouring registrations share one. The file is sparse and sealed
 * against shrinking: what is mapped beyond the registrations costs nothing and cannot fault. Windows are never moved,
 * because a transfer may hold one over several rounds; their number is bounded, because the owner chooses the addresses.
 */
#include "emunic/base/window.h"

#include <stdlib.h>
#include <sys/mman.h>

#define CHUNK_BYTES  (64ull << 20)
#define CHARGE_BYTES (256ull << 20)     /* least that a window takes of a budget: a process has some 65000 mappings */
#define WINDOWS_MAX  512u
#define ADDRESS_END  (1ull << 47)

static bool covers(const struct emu_window *w, uint64_t addr, uint64_t len_bytes)
{
    return addr >= w->owner_addr && addr - w->owner_addr <= w->len_bytes &&
           len_bytes <= w->len_bytes - (addr - w->owner_addr);
}

static uint64_t charge_of(uint64_t len_bytes)
{
    return len_bytes < CHARGE_BYTES ? CHARGE_BYTES : len_bytes;
}

static const struct emu_window *add(struct emu_windows *w, int fd, uint64_t addr, uint64_t len_bytes)
{
    uint64_t first = addr & ~(CHUNK_BYTES - 1);
    uint64_t end = (addr + len_bytes + CHUNK_BYTES - 1) & ~(CHUNK_BYTES - 1);
    struct emu_window *list;
    void *base;

    if (w->n == WINDOWS_MAX || (w->budget && w->budget->left_bytes < charge_of(end - first)))
        return NULL;
    list = realloc(w->list, (w->n + 1) * sizeof(*list));
    if (!list)
        return NULL;
    w->list = list;
    base = mmap(NULL, end - first, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, (off_t)first);
    if (base == MAP_FAILED)
        return NULL;
    if (w->budget)
        w->budget->left_bytes -= charge_of(end - first);
    list[w->n] = (struct emu_window){ .base = base, .owner_addr = first, .len_bytes = end - first };
    w->latest = w->n;
    return &list[w->n++];
}

const struct emu_window *emu_windows_get(struct emu_windows *w, int fd, uint64_t addr, uint64_t len_bytes)
{
    if (addr >= ADDRESS_END || len_bytes > ADDRESS_END - addr)
        return NULL;
    if (w->latest < w->n && covers(&w->list[w->latest], addr, len_bytes))
        return &w->list[w->latest];
    for (unsigned i = 0; i < w->n; i++) {
        if (covers(&w->list[i], addr, len_bytes)) {
            w->latest = i;
            return &w->list[i];
        }
    }
    return add(w, fd, addr, len_bytes);
}

void emu_windows_fini(struct emu_windows *w)
{
    for (unsigned i = 0; i < w->n; i++) {
        munmap(w->list[i].base, w->list[i].len_bytes);
        if (w->budget)
            w->budget->left_bytes += charge_of(w->list[i].len_bytes);
    }
    free(w->list);
    *w = (struct emu_windows){ .budget = w->budget };
}
