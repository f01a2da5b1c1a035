/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual clocks, from the threads' side.
 *
 * A clock moves by what the thread computes and by what calls cost. Processor time is read at the begin and at the
 * end of a call of a library, and what lies between an end and the next begin is the program's. Where computing costs
 * nothing it is not read.
 *
 * A request is stored before the state, and the state before the doorbell; the clock is emunic's from then on until it
 * stores EMU_VCLOCK_RUNS. The thread sleeps meanwhile, because emunic and the ranks whose turn it is want the cores. It
 * wakes four times a second to see whether emunic lives. Those few that went on last stay awake for a moment, as
 * emunic tells, and yield: a core that has gone to sleep takes longer to wake up than all the rest of a turn.
 *
 * A thread finds its clock by its number, and remembers it. Its end is noticed by a key of pthreads, which frees the
 * clock. A forked child has no clock: its page is forgotten.
 */
#include "emunic/client/virtual_clock.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/yield_cost.h"

#define SLICE_NS    250000000l
#define TID_TO_COME UINT32_MAX

/*
 * Of the library over libc's clocks, if it is loaded: when the program's next timer has its time, and that the thread's
 * clock has come to a new time.
 */
extern uint64_t emunic_clock_limit_ps(void) __attribute__((weak));
extern void emunic_clock_moved(void) __attribute__((weak));

static _Atomic(struct emu_vclock_page *) the_page;
static int the_doorbell = -1;
static pthread_once_t is_prepared = PTHREAD_ONCE_INIT;
static pthread_key_t end_key;

static _Thread_local struct emu_vclock *own; /* in the page; NULL: not looked for yet */

/* From outside of time. What has happened meanwhile was news then: a wait would miss it, so it looks instead. */
static _Thread_local bool has_come_back;

static atomic_uint n_wakes;               /* of emu_vclock_wake_all() */
static _Thread_local unsigned seen_wakes; /* before the thread looked whether it must wait */

static _Thread_local bool was_interrupted; /* the last blocking call, by a signal */

/* ---- life ---- */

static void forget(void)
{
    atomic_store(&the_page, NULL);
    own = NULL;
}

static void end_thread(void *clock)
{
    struct emu_vclock *c = clock;

    if (atomic_load(&the_page))
        atomic_store_explicit(&c->state, EMU_VCLOCK_FREE, memory_order_release);
    own = NULL;
}

static void prepare(void)
{
    pthread_key_create(&end_key, end_thread);
    pthread_atfork(NULL, NULL, forget);
}

bool emu_vclock_adopt(struct emu_vclock_page *page, int doorbell)
{
    struct emu_vclock_page *none = NULL;

    pthread_once(&is_prepared, prepare);
    if (atomic_load(&the_page))
        return false;
    the_doorbell = doorbell;
    return atomic_compare_exchange_strong(&the_page, &none, page);
}

const struct emu_vclock_page *emu_vclock_page(void)
{
    return atomic_load_explicit(&the_page, memory_order_acquire);
}

bool emu_vclock_is_on(void)
{
    return emu_vclock_page();
}

/* ---- the thread's clock ---- */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec t;

    /* Not clock_gettime(): that may be the program's clock. */
    syscall(SYS_clock_gettime, clock, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static uint64_t processor_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void take(struct emu_vclock *c, uint32_t tid)
{
    atomic_store(&c->tid, tid);
    atomic_store(&c->until_ps, EMU_VCLOCK_NEVER);
    atomic_store(&c->sleeps, 0);
    atomic_store(&c->call, EMU_VCLOCK_CALL_NONE);
    atomic_store(&c->is_left, 0);
    atomic_store(&c->cpu_ns, processor_ns());
}

/* Another library may have taken it. */
static struct emu_vclock *find(struct emu_vclock_page *page)
{
    uint32_t tid = (uint32_t)syscall(SYS_gettid);

    for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
        if (atomic_load(&page->clocks[i].tid) == tid && atomic_load(&page->clocks[i].state) != EMU_VCLOCK_FREE) {
            own = &page->clocks[i];
            pthread_setspecific(end_key, own);
            return own;
        }
    }
    return NULL;
}

static void raise_taken(struct emu_vclock_page *page, uint32_t n)
{
    uint32_t n_taken = atomic_load(&page->n_taken);

    while (n_taken < n && !atomic_compare_exchange_weak(&page->n_taken, &n_taken, n))
        ;
}

/* A thread comes: what it will post may reach the others. */
static void forget_horizons(struct emu_vclock_page *page)
{
    for (uint32_t i = 0; i < EMU_VCLOCKS; i++)
        atomic_store_explicit(&page->clocks[i].horizon_ps, 0, memory_order_relaxed);
}

/* One that nobody has, as if its thread were outside of time. NULL: all are in use. */
static struct emu_vclock *take_free(struct emu_vclock_page *page, uint32_t tid)
{
    forget_horizons(page);
    for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
        uint32_t expected = EMU_VCLOCK_FREE;

        raise_taken(page, i + 1);
        if (!atomic_compare_exchange_strong(&page->clocks[i].state, &expected, EMU_VCLOCK_AWAY))
            continue;
        take(&page->clocks[i], tid);
        return &page->clocks[i];
    }
    return NULL;
}

/* It begins at the time that the others have reached. More threads than clocks: the last ones are outside of time. */
void emu_vclock_begin(void)
{
    struct emu_vclock_page *page = atomic_load_explicit(&the_page, memory_order_acquire);

    if (!page || own || find(page))
        return;
    own = take_free(page, (uint32_t)syscall(SYS_gettid));
    if (!own)
        return;
    pthread_setspecific(end_key, own);
    emu_vclock_return();
}

struct emu_vclock *emu_vclock_reserve(void)
{
    struct emu_vclock_page *page = atomic_load_explicit(&the_page, memory_order_acquire);
    struct emu_vclock *c = page ? take_free(page, TID_TO_COME) : NULL;

    if (!c)
        return NULL;
    atomic_store_explicit(&c->now_ps, emu_vclock_spend(0), memory_order_relaxed);
    /* Pairs with the acquire in emunic: its time before its state. */
    atomic_store_explicit(&c->state, EMU_VCLOCK_RUNS, memory_order_release);
    return c;
}

void emu_vclock_take_reserved(struct emu_vclock *clock)
{
    atomic_store(&clock->cpu_ns, processor_ns());
    atomic_store(&clock->tid, (uint32_t)syscall(SYS_gettid));
    own = clock;
    pthread_setspecific(end_key, own);
}

void emu_vclock_give_back(struct emu_vclock *clock)
{
    atomic_store_explicit(&clock->state, EMU_VCLOCK_FREE, memory_order_release);
}

static struct emu_vclock *clock_of_thread(void)
{
    struct emu_vclock_page *page = atomic_load_explicit(&the_page, memory_order_acquire);

    if (!page)
        return NULL;
    return own ? own : find(page);
}

static uint64_t add(struct emu_vclock *c, uint64_t cost_ps)
{
    uint64_t before = atomic_load_explicit(&c->now_ps, memory_order_relaxed);

    if (cost_ps > 0)
        atomic_store_explicit(&c->now_ps, before + cost_ps, memory_order_release);
    return before;
}

bool emu_vclock_has_own(void)
{
    return clock_of_thread();
}

bool emu_vclock_runs(void)
{
    const struct emu_vclock *c = clock_of_thread();

    return c && atomic_load_explicit(&c->state, memory_order_relaxed) == EMU_VCLOCK_RUNS &&
           atomic_load_explicit(&c->call, memory_order_relaxed) != EMU_VCLOCK_CALL_FENCE;
}

uint64_t emu_vclock_enter(void)
{
    const struct emu_vclock_page *page = emu_vclock_page();
    struct emu_vclock *c = clock_of_thread();
    uint64_t cpu_ns, used_ns;

    if (!c)
        return 0;
    if (atomic_load_explicit(&c->is_left, memory_order_relaxed) &&
        atomic_load_explicit(&c->state, memory_order_relaxed) == EMU_VCLOCK_RUNS) {
        atomic_store_explicit(&c->is_left, 0, memory_order_relaxed);
        emu_vclock_return();
    }
    if (page->compute == EMU_VCLOCK_COMPUTE_FIXED)
        add(c, page->fixed_ps);
    if (page->compute == EMU_VCLOCK_COMPUTE_MEASURED) {
        cpu_ns = processor_ns();
        used_ns = cpu_ns - atomic_load_explicit(&c->cpu_ns, memory_order_relaxed);
        atomic_store_explicit(&c->cpu_ns, cpu_ns, memory_order_relaxed);
        if (used_ns < UINT64_MAX / 1000000) /* else the clock went back */
            add(c, used_ns * page->factor_ppm / 1000);
    }
    return atomic_load_explicit(&c->now_ps, memory_order_relaxed);
}

void emu_vclock_leave(void)
{
    const struct emu_vclock_page *page = emu_vclock_page();

    if (page && own && page->compute == EMU_VCLOCK_COMPUTE_MEASURED)
        atomic_store_explicit(&own->cpu_ns, processor_ns(), memory_order_relaxed);
}

uint64_t emu_vclock_spend(uint64_t cost_ps)
{
    struct emu_vclock *c = clock_of_thread();

    return c ? add(c, cost_ps) : 0;
}

bool emu_vclock_is_before_horizon(void)
{
    const struct emu_vclock *c = clock_of_thread();

    return c && atomic_load_explicit(&c->now_ps, memory_order_relaxed) <
                    atomic_load_explicit(&c->horizon_ps, memory_order_relaxed);
}

void emu_vclock_draw_in_horizon(uint64_t at_ps)
{
    struct emu_vclock *c = clock_of_thread();

    if (c && at_ps < atomic_load_explicit(&c->horizon_ps, memory_order_relaxed))
        atomic_store_explicit(&c->horizon_ps, at_ps, memory_order_relaxed);
}

/* ---- requests ---- */

static bool is_over(const struct emu_vclock_page *page)
{
    return atomic_load_explicit(&page->is_over, memory_order_acquire) != 0 ||
           (kill((pid_t)page->server_pid, 0) < 0 && errno == ESRCH);
}

/* The state is stored. */
static void ring(struct emu_vclock_page *page)
{
    uint64_t one = 1;

    /* Pairs with the fence in emunic between announcing sleep and its last look at the clocks. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&page->emunic_sleeps, memory_order_relaxed) &&
        syscall(SYS_write, the_doorbell, &one, sizeof(one)) < 0)
        return; /* rung very often already */
}

/* What the request consists of is stored. */
static void ask(struct emu_vclock_page *page, struct emu_vclock *c, enum emu_vclock_state state)
{
    /* Pairs with the acquire in emunic: the request before its state. */
    atomic_store_explicit(&c->state, state, memory_order_release);
    ring(page);
}

/* A blocking call ends early, at the time that the others have reached. False: it waits no more, or is no such call. */
static bool stop_waiting(struct emu_vclock_page *page, struct emu_vclock *c)
{
    uint32_t state = EMU_VCLOCK_WAITS;

    if (atomic_load_explicit(&c->call, memory_order_relaxed) != EMU_VCLOCK_CALL_WAIT ||
        !atomic_compare_exchange_strong(&c->state, &state, EMU_VCLOCK_RETURNS))
        return false;
    ring(page);
    return true;
}

void emu_vclock_wake_all(void)
{
    struct emu_vclock_page *page = atomic_load_explicit(&the_page, memory_order_acquire);

    if (!page)
        return;
    /* Pairs with the fence in ring(): who waits later sees the number, who waits already is seen. */
    atomic_fetch_add(&n_wakes, 1);
    atomic_thread_fence(memory_order_seq_cst);
    for (uint32_t i = 0; i < EMU_VCLOCKS; i++)
        stop_waiting(page, &page->clocks[i]);
}

void emu_vclock_before_look(void)
{
    seen_wakes = atomic_load(&n_wakes);
}

/* A blocking call. Only where it sleeps does the thread see that it has handled a signal. */
static bool is_ended_by_signals(const struct emu_vclock *c)
{
    return atomic_load_explicit(&c->call, memory_order_relaxed) == EMU_VCLOCK_CALL_WAIT;
}

/* Gives the core away, and stays awake. True: it goes on. */
static bool stay_awake(const struct emu_vclock *c)
{
    static _Thread_local struct emu_yield_backoff backoff;
    uint64_t began_ns, last_ns, now_ns;

    if (atomic_load_explicit(&c->state, memory_order_acquire) == EMU_VCLOCK_RUNS)
        return true;
    if (!atomic_load_explicit(&c->stays_awake, memory_order_relaxed) || emu_yield_is_skipped(&backoff))
        return false;
    began_ns = last_ns = clock_ns(CLOCK_MONOTONIC);
    while (atomic_load_explicit(&c->state, memory_order_acquire) != EMU_VCLOCK_RUNS) {
        if (!atomic_load_explicit(&c->stays_awake, memory_order_relaxed) || last_ns - began_ns > EMU_VCLOCK_AWAKE_NS)
            return false;
        syscall(SYS_sched_yield);
        now_ns = clock_ns(CLOCK_MONOTONIC);
        emu_yield_took(&backoff, now_ns - last_ns);
        last_ns = now_ns;
    }
    return true;
}

static enum emu_vclock_result await(struct emu_vclock_page *page, struct emu_vclock *c)
{
    const struct timespec slice = { .tv_nsec = SLICE_NS };
    uint32_t state;
    int error = errno;

    if (!is_ended_by_signals(c) && stay_awake(c))
        return EMU_VCLOCK_WENT_ON;
    atomic_store(&c->sleeps, 1);
    while ((state = atomic_load_explicit(&c->state, memory_order_acquire)) != EMU_VCLOCK_RUNS) {
        if (syscall(SYS_futex, &c->state, FUTEX_WAIT, state, &slice, NULL, 0) == 0)
            continue;
        if (errno == EINTR && stop_waiting(page, c))
            was_interrupted = true;
        if (errno == ETIMEDOUT && is_over(page)) {
            forget();
            errno = error;
            return EMU_VCLOCK_IS_OFF;
        }
    }
    atomic_store_explicit(&c->sleeps, 0, memory_order_relaxed);
    errno = error;
    return EMU_VCLOCK_WENT_ON;
}

static enum emu_vclock_result request(enum emu_vclock_state state)
{
    struct emu_vclock_page *page = atomic_load_explicit(&the_page, memory_order_acquire);
    struct emu_vclock *c = clock_of_thread();

    if (!c)
        return EMU_VCLOCK_IS_OFF;
    was_interrupted = false;
    ask(page, c, state);
    if (state == EMU_VCLOCK_WAITS && atomic_load(&n_wakes) != seen_wakes)
        stop_waiting(page, c);
    if (await(page, c) == EMU_VCLOCK_IS_OFF)
        return EMU_VCLOCK_IS_OFF;
    has_come_back = state == EMU_VCLOCK_RETURNS;
    if (emunic_clock_moved)
        emunic_clock_moved();
    return EMU_VCLOCK_WENT_ON;
}

enum emu_vclock_call emu_vclock_note_call(enum emu_vclock_call call)
{
    struct emu_vclock *c = clock_of_thread();
    uint32_t before = EMU_VCLOCK_CALL_NONE;

    if (c) {
        before = atomic_load_explicit(&c->call, memory_order_relaxed);
        atomic_store_explicit(&c->call, call, memory_order_relaxed);
    }
    return before;
}

bool emu_vclock_was_interrupted(void)
{
    return was_interrupted;
}

enum emu_vclock_result emu_vclock_look(enum emu_vclock_call call)
{
    emu_vclock_note_call(call);
    return request(EMU_VCLOCK_LOOKS);
}

/* Nothing happens to the process before the end of the wait: it is over, without a request. */
static bool passes_quietly(struct emu_vclock *c, enum emu_vclock_call call, uint64_t until_ps)
{
    /* A blocking call may be ended by what emunic does not see. */
    if (call == EMU_VCLOCK_CALL_WAIT || until_ps >= atomic_load_explicit(&c->horizon_ps, memory_order_relaxed) ||
        atomic_load_explicit(&c->state, memory_order_relaxed) != EMU_VCLOCK_RUNS)
        return false;
    if (until_ps > atomic_load_explicit(&c->now_ps, memory_order_relaxed))
        atomic_store_explicit(&c->now_ps, until_ps, memory_order_release);
    if (emunic_clock_moved)
        emunic_clock_moved();
    return true;
}

enum emu_vclock_result emu_vclock_wait(enum emu_vclock_call call, uint64_t until_ps, uint64_t grid_ps)
{
    struct emu_vclock *c = clock_of_thread();

    if (!c)
        return EMU_VCLOCK_IS_OFF;
    if (has_come_back)
        return emu_vclock_look(call);
    emu_vclock_note_call(call);
    if (passes_quietly(c, call, until_ps))
        return EMU_VCLOCK_WENT_ON;
    /* A blocking call ends early then, and is made again. */
    if (call == EMU_VCLOCK_CALL_WAIT && emunic_clock_limit_ps && emunic_clock_limit_ps() < until_ps)
        until_ps = emunic_clock_limit_ps();
    atomic_store_explicit(&c->until_ps, until_ps, memory_order_relaxed);
    atomic_store_explicit(&c->grid_ps, grid_ps, memory_order_relaxed);
    return request(EMU_VCLOCK_WAITS);
}

void emu_vclock_fence_begin(uint32_t key)
{
    struct emu_vclock_page *page = atomic_load_explicit(&the_page, memory_order_acquire);
    struct emu_vclock *c = clock_of_thread();

    if (!c)
        return;
    emu_vclock_note_call(EMU_VCLOCK_CALL_FENCE);
    atomic_store_explicit(&c->fence_key, key, memory_order_relaxed);
    ask(page, c, EMU_VCLOCK_FENCED);
}

void emu_vclock_fence_end(void)
{
    struct emu_vclock_page *page = atomic_load_explicit(&the_page, memory_order_acquire);

    uint32_t state = EMU_VCLOCK_FENCED;

    if (!page || !own)
        return;
    /* Who comes out first says so, for all: then everybody is in it. */
    if (atomic_compare_exchange_strong(&own->state, &state, EMU_VCLOCK_UNFENCED))
        ring(page);
    await(page, own);
    emu_vclock_note_call(EMU_VCLOCK_CALL_NONE);
}

void emu_vclock_away(void)
{
    struct emu_vclock_page *page = atomic_load_explicit(&the_page, memory_order_acquire);
    struct emu_vclock *c = clock_of_thread();

    if (!c)
        return;
    emu_vclock_note_call(EMU_VCLOCK_CALL_BLOCK);
    ask(page, c, EMU_VCLOCK_AWAY);
}

void emu_vclock_return(void)
{
    request(EMU_VCLOCK_RETURNS);
    /* Not in a fence any more, if it was one that it left before its end: emunic would wait for it to come out. */
    emu_vclock_note_call(EMU_VCLOCK_CALL_NONE);
}
