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
 * Open MPI's progress engine is of the runtime, but polls for the program: its yields are the program's (yield.c). It
 * ends with the yield, so the call may return to whoever has called the engine: libmpi, or a component.
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

#define RANGES_MAX 512

enum kind { OF_RUNTIME, OF_PROGRESS, OF_MPI, OF_API, OF_PROGRAM };

static struct {
    uintptr_t first;
    uintptr_t end;
    enum kind kind;
} ranges[RANGES_MAX];
static atomic_size_t n_ranges;

static const char *const runtime_names[] = { "libpmix.so",  "libpmix2.so",    "pmix_mca_",   "mca_pmix", "libevent",
                                             "libprrte.so", "libopen-rte.so", "libmunge.so", NULL };
static const char *const progress_names[] = { "libopen-pal.so", NULL };
static const char *const mpi_names[] = { "libmpi.so", "mca_", NULL };
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
    if (is_one_of(mpi_names, path))
        return OF_MPI;
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

static enum kind look_up(const void *caller, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((uintptr_t)caller >= ranges[i].first && (uintptr_t)caller < ranges[i].end)
            return ranges[i].kind;
    }
    return OF_PROGRAM;
}

/* A thread calls from the same place again and again. */
static enum kind kind_of_caller(const void *caller)
{
    static _Thread_local const void *last;
    static _Thread_local size_t last_n;
    static _Thread_local enum kind last_kind;
    size_t n = atomic_load_explicit(&n_ranges, memory_order_acquire);

    if (caller != last || n != last_n) {
        last_kind = look_up(caller, n);
        last = caller;
        last_n = n;
    }
    return last_kind;
}

bool program_clock_is_of_runtime(const void *caller)
{
    enum kind kind = kind_of_caller(caller);

    return kind == OF_RUNTIME || kind == OF_PROGRESS;
}

bool program_clock_is_of_progress(const void *caller)
{
    enum kind kind = kind_of_caller(caller);

    return kind == OF_PROGRESS || kind == OF_MPI;
}

bool program_clock_is_of_api(const void *caller)
{
    return kind_of_caller(caller) == OF_API;
}
