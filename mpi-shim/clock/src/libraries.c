/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Libraries of the runtime that starts ranks: PMIx and what it stands on, and Open MPI's. They talk to processes
 * outside of virtual time, and their time-outs are for failures of the host. A thread of the program may set a timer of
 * theirs that a thread of the runtime waits for: both must read the same clock. So their calls have the host's time,
 * whichever thread makes them. The common calls of PMIx tell themselves (runtime.c); these are the others, and the
 * event loops inside other libraries' calls.
 *
 * They are told by the address that a call returns to. Their mappings are looked up when virtual time begins; a library
 * that is loaded later is taken for the program.
 */
#include "mpi-shim/clock/src/program_clock.h"

#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define RANGES_MAX 64

static struct {
    uintptr_t first;
    uintptr_t end;
} ranges[RANGES_MAX];
static atomic_size_t n_ranges;

static bool is_runtime_name(const char *path)
{
    static const char *const names[] = { "libpmix.so", "libpmix2.so", "pmix_mca_",      "mca_pmix",
                                         "libevent",   "libprrte.so", "libopen-rte.so", "libmunge.so" };
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    }
    return false;
}

static int note_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    size_t n = atomic_load_explicit(&n_ranges, memory_order_relaxed);

    (void)size;
    (void)unused;
    if (!info->dlpi_name || !is_runtime_name(info->dlpi_name))
        return 0;
    for (int i = 0; i < info->dlpi_phnum && n < RANGES_MAX; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0)
            continue;
        ranges[n].first = info->dlpi_addr + part->p_vaddr;
        ranges[n].end = ranges[n].first + part->p_memsz;
        atomic_store_explicit(&n_ranges, ++n, memory_order_release);
    }
    return 0;
}

void program_clock_note_runtime(void)
{
    dl_iterate_phdr(note_library, NULL);
}

bool program_clock_is_of_runtime(const void *caller)
{
    size_t n = atomic_load_explicit(&n_ranges, memory_order_acquire);

    for (size_t i = 0; i < n; i++) {
        if ((uintptr_t)caller >= ranges[i].first && (uintptr_t)caller < ranges[i].end)
            return true;
    }
    return false;
}
