/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number stands in a page that the kernel clears in a forked child, however it was forked (MADV_WIPEONFORK, Linux
 * 4.14). Threads that ask first at once may each make a page; one is kept.
 */
#include "emunic/base/own_pid.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES 4096u

static _Atomic pid_t *_Atomic page; /* 0: not asked yet in this process */
static _Atomic bool has_none;

static _Atomic pid_t *make_page(void)
{
    void *made = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    _Atomic pid_t *kept = NULL;

    if (made != MAP_FAILED && madvise(made, PAGE_BYTES, MADV_WIPEONFORK) == 0 &&
        atomic_compare_exchange_strong(&page, &kept, (_Atomic pid_t *)made))
        return made;
    if (made != MAP_FAILED)
        munmap(made, PAGE_BYTES);
    if (!kept)
        atomic_store(&has_none, true);
    return kept;
}

/* Runs once per process, or always where there is no page. */
static pid_t ask(_Atomic pid_t *at)
{
    pid_t pid = getpid();

    if (!at && !atomic_load(&has_none))
        at = make_page();
    if (at)
        atomic_store_explicit(at, pid, memory_order_relaxed);
    return pid;
}

pid_t emu_own_pid(void)
{
    /* Pairs with the exchange in make_page(): the page is as the kernel made it. */
    _Atomic pid_t *at = atomic_load_explicit(&page, memory_order_acquire);
    pid_t pid = at ? atomic_load_explicit(at, memory_order_relaxed) : 0;

    return pid != 0 ? pid : ask(at);
}
