/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which libraries calls come from.
 *
 * Libraries of the runtime that starts ranks: PMIx and what it stands on, and Open MPI's. They talk to processes
 * outside of virtual time, and their time-outs are for failures of the host. How often they ask for the time depends on
 * how long the host took to start the job. A thread of the program may set a timer of theirs that a thread of the
 * runtime waits for: both must read the same clock. So their calls have the host's time, whichever thread makes them.
 * The common calls of PMIx tell themselves (runtime.c); these are the others, and the event loops inside other
 * libraries' calls.
 *
 * Open MPI's progress engine is of the runtime, but polls for the program: its yields are the program's (yield.c).
 *
 * The API libraries are known as well: when they give the core away, they wait for the host.
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

enum kind { OF_RUNTIME, OF_PROGRESS, OF_API, OF_PROGRAM };

static struct {
    uintptr_t first;
    uintptr_t end;
    enum kind kind;
} ranges[RANGES_MAX];
static atomic_size_t n_ranges;

static const char *const runtime_names[] = { "libpmix.so",  "libpmix2.so",    "pmix_mca_",   "mca_pmix", "libevent",
                                             "libprrte.so", "libopen-rte.so", "libmunge.so", NULL };
static const char *const progress_names[] = { "libopen-pal.so", NULL };
static const char *const api_names[] = { "libugni.so", "libdmapp.so", "libportals.so", "libp3api.so", "libsma.so",
                                         "libpmi.so",  NULL };

static bool is_one_of(const char *const *names, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;

    while (*names && strncmp(name, *names, strlen(*names)) != 0)
        names++;
    return *names;
}

static enum kind kind_of(const char *path)
{
    if (is_one_of(runtime_names, path))
        return OF_RUNTIME;
    if (is_one_of(progress_names, path))
        return OF_PROGRESS;
    return is_one_of(api_names, path) ? OF_API : OF_PROGRAM;
}

static int note_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    size_t n = atomic_load_explicit(&n_ranges, memory_order_relaxed);
    enum kind kind = info->dlpi_name ? kind_of(info->dlpi_name) : OF_PROGRAM;

    (void)size;
    (void)unused;
    if (kind == OF_PROGRAM)
        return 0;
    for (int i = 0; i < info->dlpi_phnum && n < RANGES_MAX; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0)
            continue;
        ranges[n].first = info->dlpi_addr + part->p_vaddr;
        ranges[n].end = ranges[n].first + part->p_memsz;
        ranges[n].kind = kind;
        atomic_store_explicit(&n_ranges, ++n, memory_order_release);
    }
    return 0;
}

void program_clock_note_runtime(void)
{
    dl_iterate_phdr(note_library, NULL);
}

static bool is_of(const void *caller, enum kind kind)
{
    size_t n = atomic_load_explicit(&n_ranges, memory_order_acquire);

    for (size_t i = 0; i < n; i++) {
        if (ranges[i].kind == kind && (uintptr_t)caller >= ranges[i].first && (uintptr_t)caller < ranges[i].end)
            return true;
    }
    return false;
}

bool program_clock_is_of_runtime(const void *caller)
{
    return is_of(caller, OF_RUNTIME) || is_of(caller, OF_PROGRESS);
}

bool program_clock_is_of_progress(const void *caller)
{
    return is_of(caller, OF_PROGRESS);
}

bool program_clock_is_of_api(const void *caller)
{
    return is_of(caller, OF_API);
}
