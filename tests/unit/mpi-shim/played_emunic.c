/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/mpi-shim/played_emunic.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/abi/abi.h"

__attribute__((weak)) void emunic_clock_attach(struct emu_vclock_page *page, int doorbell);

static struct emu_vclock_page *page;
static atomic_bool is_over;
static atomic_uint times_away;
static pthread_t emunic;
static int bell[2];

/* Like emunic, but nobody else is there to wait for. */
static void answer(struct emu_vclock *c)
{
    uint32_t state = atomic_load(&c->state);
    uint64_t until_ps = atomic_load(&c->until_ps);

    if (state == EMU_VCLOCK_AWAY) {
        atomic_fetch_add(&times_away, atomic_load(&c->call) == EMU_VCLOCK_CALL_BLOCK);
        return;
    }
    if (state == EMU_VCLOCK_FREE || state == EMU_VCLOCK_RUNS)
        return;
    if (state == EMU_VCLOCK_WAITS && until_ps != EMU_VCLOCK_NEVER && until_ps > atomic_load(&c->now_ps))
        atomic_store(&c->now_ps, until_ps);
    atomic_store(&c->state, EMU_VCLOCK_RUNS);
    syscall(SYS_futex, &c->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void *play_emunic(void *unused)
{
    uint64_t n;

    while (syscall(SYS_read, bell[0], &n, sizeof(n)) == sizeof(n) && !atomic_load(&is_over)) {
        for (uint32_t i = 0; i < EMU_VCLOCKS; i++)
            answer(&page->clocks[i]);
    }
    return unused;
}

int played_start_again(char **argv)
{
    setenv("LD_PRELOAD", argv[1], 1);
    execl("/proc/self/exe", argv[0], NULL);
    return 1;
}

static int start_emunic(void)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    r = pthread_create(&emunic, NULL, play_emunic, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

int played_attach(void **state)
{
    (void)state;
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || pipe(bell) < 0 || !emunic_clock_attach)
        return -1;
    page->magic = EMU_VCLOCK_MAGIC;
    page->abi_version = EMU_ABI_VERSION;
    page->n_clocks = EMU_VCLOCKS;
    page->compute = EMU_VCLOCK_COMPUTE_NONE;
    page->poll_ps = PLAYED_POLL_PS;
    page->server_pid = (uint32_t)getpid();
    page->emunic_sleeps = 1;
    if (start_emunic() != 0 || !emu_vclock_adopt(page, bell[1]))
        return -1;
    emunic_clock_attach(page, bell[1]);
    emu_vclock_begin();
    return 0;
}

int played_end(void **state)
{
    uint64_t one = 1;

    (void)state;
    atomic_store(&is_over, true);
    atomic_store(&page->is_over, 1); /* nobody answers any more */
    return write(bell[1], &one, sizeof(one)) == sizeof(one) ? pthread_join(emunic, NULL) : -1;
}

int64_t played_now_ns(void)
{
    return (int64_t)(emu_vclock_spend(0) / 1000);
}

unsigned played_times_away(void)
{
    return atomic_load(&times_away);
}

void played_forget_away(void)
{
    atomic_store(&times_away, 0);
}
