/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGBUS in watched mappings.
 *
 * The handler maps anonymous memory over the whole range and marks it broken; the access that faulted then goes on and
 * nothing it moves counts. The whole range rather than a page: one signal per access however much is missing, no split
 * mapping, and no question of page sizes. Who uses the range sees the mark after his access, ends his transaction with
 * an error, and maps the file again before the next (window.c). A range is used by one thread at a time.
 *
 * For any other address, and for a SIGBUS that somebody sent, what was installed before does what it would have done:
 * its flags and mask are taken over. A handler that the program installs later takes our place until the next window is
 * mapped, for the first time or again; then we come in front of it. With another of our handlers for each of theirs, so
 * that one that calls what was there before it ends at the beginning and not in a circle. Until then, after
 * INSTALLS_MAX handlers, and in a thread that blocks SIGBUS, a shortened file ends the program, as if the program had
 * touched it itself. Programs that do so and have such files run with EMUNIC_MEMORY=cma.
 *
 * Ranges lie in an array that is only ever searched: a handler can take no lock. A slot is taken with one exchange of
 * its `base`; `turn` is odd while its other fields change.
 */
#include "emunic/base/bus_error.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RANGES_MAX 8192u
#define TAKEN      1u /* as base: not free, not yet there */

struct emu_bus_error_range {
    _Atomic uint64_t base; /* 0: free */
    _Atomic uint64_t len_bytes;
    _Atomic uint32_t page_bytes_log2;
    _Atomic uint32_t turn;
    _Atomic uint32_t is_broken;
};

#define INSTALLS_MAX 4

static struct emu_bus_error_range ranges[RANGES_MAX];
static _Atomic uint32_t n_ranges; /* that were ever in use */
static _Atomic int is_installing;
static int n_installed;
static struct sigaction before[INSTALLS_MAX];

/* ---- handler ---- */

/* The range that holds an address, as [*base, *end). */
static struct emu_bus_error_range *find(uint64_t addr, uint64_t *base_out, uint64_t *end_out)
{
    uint32_t n = atomic_load_explicit(&n_ranges, memory_order_acquire);

    for (uint32_t i = 0; i < n; i++) {
        struct emu_bus_error_range *range = &ranges[i];
        uint32_t turn = atomic_load_explicit(&range->turn, memory_order_acquire);
        uint64_t base = atomic_load_explicit(&range->base, memory_order_acquire);
        uint64_t len_bytes = atomic_load_explicit(&range->len_bytes, memory_order_acquire);

        /* A range that changes now is not the one that this thread is touching. */
        if ((turn & 1) || base <= TAKEN || addr < base || addr - base >= len_bytes ||
            atomic_load_explicit(&range->turn, memory_order_acquire) != turn)
            continue;
        *base_out = base;
        *end_out = base + len_bytes;
        return range;
    }
    return NULL;
}

static bool put_memory_at(uint64_t first, uint64_t end)
{
    /* The bare call: a sanitizer's wrapper is not made for handlers. */
    return syscall(SYS_mmap, first, end - first, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == (long)first;
}

static bool mend(const siginfo_t *info)
{
    uint64_t addr = (uint64_t)(uintptr_t)info->si_addr;
    struct emu_bus_error_range *range;
    uint64_t page_bytes;
    uint64_t base;
    uint64_t end;

    if (info->si_code <= 0) /* sent by somebody: there is no address */
        return false;
    range = find(addr, &base, &end);
    if (!range)
        return false;
    page_bytes = 1ull << atomic_load_explicit(&range->page_bytes_log2, memory_order_relaxed);
    /* Where the kernel has not that much to promise, the page alone will do. */
    if (!put_memory_at(base, end) && !put_memory_at(addr & ~(page_bytes - 1), (addr & ~(page_bytes - 1)) + page_bytes))
        return false;
    atomic_store_explicit(&range->is_broken, 1, memory_order_relaxed);
    return true;
}

static void pass_on(int install, int number, siginfo_t *info, void *context)
{
    struct sigaction was = before[install];

    if (was.sa_flags & SA_RESETHAND)
        before[install].sa_handler = SIG_DFL;
    if (was.sa_handler == SIG_IGN && info->si_code <= 0)
        return;
    if (was.sa_handler == SIG_DFL || was.sa_handler == SIG_IGN) {
        /* The access is tried again and ends the process as if we were not here; a sent signal is sent again. */
        signal(number, SIG_DFL);
        if (info->si_code <= 0)
            raise(number);
    } else if (was.sa_flags & SA_SIGINFO) {
        was.sa_sigaction(number, info, context);
    } else {
        was.sa_handler(number);
    }
}

static void handle(int install, int number, siginfo_t *info, void *context)
{
    int saved = errno;

    if (!mend(info))
        pass_on(install, number, info, context);
    errno = saved;
}

#define HANDLER(install)                                                                                               \
    static void on_bus_error_##install(int number, siginfo_t *info, void *context)                                     \
    {                                                                                                                  \
        handle(install, number, info, context);                                                                        \
    }
HANDLER(0)
HANDLER(1)
HANDLER(2)
HANDLER(3)
static void (*const handlers[INSTALLS_MAX])(int, siginfo_t *, void *) = {
    on_bus_error_0,
    on_bus_error_1,
    on_bus_error_2,
    on_bus_error_3,
};

/* ---- installing ---- */

/* Which of ours is the process's handler. -1: none. */
static int find_installed(void)
{
    struct sigaction now;

    if (sigaction(SIGBUS, NULL, &now) < 0 || !(now.sa_flags & SA_SIGINFO))
        return -1;
    for (int i = 0; i < n_installed; i++) {
        if (now.sa_sigaction == handlers[i])
            return i;
    }
    return -1;
}

static void install_one(void)
{
    struct sigaction action = { .sa_flags = SA_SIGINFO | SA_ONSTACK };
    struct sigaction theirs;
    int i;

    if (sigaction(SIGBUS, NULL, &theirs) < 0)
        return;
    for (i = 0; i < n_installed && before[i].sa_handler != theirs.sa_handler; i++)
        ;
    if (i == INSTALLS_MAX)
        return;
    before[i] = theirs;
    action.sa_flags |= theirs.sa_flags & (SA_NODEFER | SA_RESTART);
    action.sa_mask = theirs.sa_mask;
    action.sa_sigaction = handlers[i];
    n_installed += i == n_installed;
    sigaction(SIGBUS, &action, NULL);
}

static void install(void)
{
    /* Not for ever: a process may have been forked while another thread was in here. */
    for (int i = 0; atomic_exchange(&is_installing, 1) && i < 1000; i++)
        sched_yield();
    if (find_installed() < 0)
        install_one();
    atomic_store(&is_installing, 0);
}

/* The library may be unloaded: nothing may call into it then. */
__attribute__((destructor)) static void uninstall(void)
{
    int i = find_installed();

    if (i >= 0)
        sigaction(SIGBUS, &before[i], NULL);
}

/* ---- ranges ---- */

static void note_in_use(uint32_t n)
{
    uint32_t seen = atomic_load(&n_ranges);

    while (seen < n && !atomic_compare_exchange_weak(&n_ranges, &seen, n))
        ;
}

struct emu_bus_error_range *emu_bus_error_watch(void *base, uint64_t len_bytes, uint64_t page_bytes)
{
    for (uint32_t i = 0; i < RANGES_MAX; i++) {
        struct emu_bus_error_range *range = &ranges[i];
        uint64_t free_base = 0;

        if (atomic_load_explicit(&range->base, memory_order_relaxed) != 0 ||
            !atomic_compare_exchange_strong(&range->base, &free_base, TAKEN))
            continue;
        install();
        atomic_fetch_add(&range->turn, 1);
        atomic_store(&range->len_bytes, len_bytes);
        atomic_store(&range->page_bytes_log2, (uint32_t)__builtin_ctzll(page_bytes));
        atomic_store(&range->is_broken, 0);
        atomic_store(&range->base, (uint64_t)(uintptr_t)base);
        atomic_fetch_add(&range->turn, 1);
        note_in_use(i + 1);
        return range;
    }
    return NULL;
}

void emu_bus_error_unwatch(struct emu_bus_error_range *range)
{
    if (range)
        atomic_store(&range->base, 0);
}

void emu_bus_error_clear(struct emu_bus_error_range *range)
{
    install();
    atomic_store_explicit(&range->is_broken, 0, memory_order_relaxed);
}

_Atomic uint32_t *emu_bus_error_mark(struct emu_bus_error_range *range)
{
    return &range->is_broken;
}
