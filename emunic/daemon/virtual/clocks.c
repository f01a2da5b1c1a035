/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clocks of processes, from emunic's side.
 *
 * A scan copies state and time of each clock in use. Requests are taken in then: a wait of a process that has had news
 * since it went on last, and a return, become looks; the first who comes out of a fence lets all go on who are in it.
 *
 * Time of a clock that runs is read before the rings are: whoever moves its clock behind a command has published the
 * command before.
 *
 * Cost: a scan of all reads two lines of each process that are the process's to write, and a scan of those that may
 * have moved what is needed. What each process amounts to is kept beside its link, so that the earliest of all is found
 * in a line per process.
 */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/virtual/inner.h"

#define PATIENCE_MIN_PS 100000000u     /* 100 us */
#define PATIENCE_MAX_PS 10000000000ull /* 10 ms */

/* ---- sums ---- */

static void add_clock(struct process_scan *sum, const struct clock_end *end, const struct emu_vclock *c, uint32_t index)
{
    uint64_t until_ps;

    switch (end->state) {
    case EMU_VCLOCK_RUNS:
        sum->runs = true;
        if (end->is_absent)
            sum->n_outside++;
        else if (end->now_ps < sum->run_ps)
            sum->run_ps = end->now_ps;
        return;
    case EMU_VCLOCK_LOOKS:
        if (end->look_ps < sum->look_ps) {
            sum->look_ps = end->look_ps;
            sum->look_index = (uint16_t)index;
        }
        return;
    case EMU_VCLOCK_WAITS:
        sum->n_waiting++;
        until_ps = atomic_load_explicit(&c->until_ps, memory_order_relaxed);
        if (until_ps > TIME_MAX_PS)
            until_ps = NEVER;
        if (until_ps < end->now_ps)
            until_ps = end->now_ps; /* no clock goes back */
        if (until_ps < sum->until_ps) {
            sum->until_ps = until_ps;
            sum->wait_index = (uint16_t)index;
        }
        return;
    case EMU_VCLOCK_FENCED: /* it comes back when those who wait have come into its fence */
        sum->is_fenced = true;
        if (end->now_ps > sum->fence_ps)
            sum->fence_ps = end->now_ps;
        return;
    case EMU_VCLOCK_FREE:
        return;
    default:
        sum->n_outside++;
    }
}

static void sum_up(struct emu_virtual_process *p)
{
    struct process_scan sum = { .run_ps = NEVER, .look_ps = NEVER, .until_ps = NEVER };

    for (uint32_t i = 0; i < p->n_used; i++)
        add_clock(&sum, &p->clocks[i], &p->page->clocks[i], i);
    p->sum = sum;
}

/* ---- moving ---- */

static void keep_awake(struct emu_virtual *v, struct emu_virtual_process *p, uint32_t index)
{
    struct emu_virtual_awake *awake = &v->awake;
    struct emu_virtual_process *other = awake->clocks[awake->next].p;

    if (atomic_load_explicit(&p->page->clocks[index].stays_awake, memory_order_relaxed))
        return;
    if (other)
        atomic_store_explicit(&other->page->clocks[awake->clocks[awake->next].index].stays_awake, 0,
                              memory_order_relaxed);
    awake->clocks[awake->next].p = p;
    awake->clocks[awake->next].index = index;
    awake->next = (awake->next + 1) % awake->n;
    atomic_store_explicit(&p->page->clocks[index].stays_awake, 1, memory_order_relaxed);
}

void emu_virtual_put_to_sleep(struct emu_virtual *v, const struct emu_virtual_process *p)
{
    for (uint32_t i = 0; i < v->awake.n; i++) {
        if (v->awake.clocks[i].p == p)
            v->awake.clocks[i].p = NULL;
    }
}

void emu_virtual_go_on(struct emu_virtual *v, struct emu_virtual_process *p, uint32_t index, uint64_t at_ps)
{
    struct clock_end *end = &p->clocks[index];
    struct emu_vclock *c = &p->page->clocks[index];

    end->now_ps = at_ps;
    end->state = EMU_VCLOCK_RUNS;
    end->news_ps = NEVER;
    end->is_absent = end->is_moved_by_cpu = false;
    end->n_sleeps = 0;
    p->cpu_began_ns = 0;
    atomic_store_explicit(&c->now_ps, at_ps, memory_order_relaxed);
    atomic_store_explicit(&c->until_ps, NEVER, memory_order_relaxed);
    atomic_store_explicit(&c->horizon_ps, emu_virtual_horizon_ps(v, p), memory_order_relaxed);
    atomic_store_explicit(&c->is_left, 0, memory_order_relaxed);
    keep_awake(v, p, index);
    v->awake.went_on_ns = emu_clock_ns();
    /* Pairs with the acquire in the thread: its time before its turn. */
    atomic_store(&c->state, EMU_VCLOCK_RUNS);
    if (atomic_load(&c->sleeps))
        syscall(SYS_futex, &c->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    sum_up(p);
}

/* First time of its grid that is not before at_ps. */
static uint64_t on_grid(const struct emu_vclock *c, uint64_t now_ps, uint64_t at_ps)
{
    uint64_t grid_ps = atomic_load_explicit(&c->grid_ps, memory_order_relaxed);

    if (at_ps <= now_ps)
        return now_ps;
    if (grid_ps == 0 || grid_ps > TIME_MAX_PS)
        return at_ps;
    return now_ps + (at_ps - now_ps + grid_ps - 1) / grid_ps * grid_ps;
}

static void look_at(struct clock_end *end, uint64_t at_ps)
{
    end->state = EMU_VCLOCK_LOOKS;
    end->look_ps = at_ps;
}

/* ---- taking in ---- */

/* Where time stands for who comes from outside of it: effects that are due may wait for somebody else. */
static uint64_t reached_ps(const struct emu_virtual *v)
{
    const struct emu_virtual_effect *first = STAILQ_FIRST(&v->due);

    return first && first->at_ps > v->time.now_ps ? first->at_ps : v->time.now_ps;
}

/*
 * Or behind it. Effects of the present slot of the routers' clock are told as a whole, so time itself may be ahead of
 * who runs in it; how far it is depends on the host.
 */
static bool is_in_present_slot(const struct emu_virtual *v, uint64_t at_ps)
{
    return at_ps / v->clock_ps >= v->time.now_ps / v->clock_ps;
}

static bool is_of_fence(uint32_t state)
{
    return state == EMU_VCLOCK_FENCED || state == EMU_VCLOCK_UNFENCED;
}

/* The state that the thread has stored: a new request, or what is known. */
static void take_request(struct emu_virtual *v, struct clock_end *end, const struct emu_vclock *c)
{
    uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire);
    uint64_t now_ps = atomic_load_explicit(&c->now_ps, memory_order_relaxed);

    if (state > EMU_VCLOCK_UNFENCED)
        state = EMU_VCLOCK_AWAY;
    if (now_ps > TIME_MAX_PS)
        now_ps = TIME_MAX_PS;
    if (now_ps > end->now_ps) {
        end->now_ps = now_ps;
        if (!end->is_moved_by_cpu)
            end->is_absent = false;
    }
    if (state == EMU_VCLOCK_LOOKS && end->state != EMU_VCLOCK_LOOKS)
        look_at(end, is_in_present_slot(v, end->now_ps) ? end->now_ps : v->time.now_ps);
    else if (state == EMU_VCLOCK_RETURNS && end->state != EMU_VCLOCK_LOOKS)
        look_at(end, end->now_ps > reached_ps(v) ? end->now_ps : reached_ps(v));
    else if (end->state == EMU_VCLOCK_LOOKS && (state == EMU_VCLOCK_WAITS || is_of_fence(state)))
        return; /* news, or the end of the fence, have made a look of it */
    else if (state != EMU_VCLOCK_LOOKS && state != EMU_VCLOCK_RETURNS)
        end->state = state;
    if (end->state == EMU_VCLOCK_WAITS && end->news_ps != NEVER)
        look_at(end, on_grid(c, end->now_ps, end->news_ps));
}

static bool is_earlier(uint64_t a_ps, const struct emu_virtual_process *a, uint64_t b_ps,
                       const struct emu_virtual_process *b)
{
    return a_ps < b_ps || (a_ps == b_ps && (!b || a->order < b->order));
}

/* The job's clocks that are in the fence: the latest of them, or they look at that time. */
static uint64_t for_each_in_fence(struct emu_virtual *v, const struct emu_virtual_job *job, uint32_t key, bool looks,
                                  uint64_t at_ps)
{
    struct emu_virtual_process *p;

    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; p->job == job && i < p->n_used; i++) {
            if (!is_of_fence(p->clocks[i].state) || atomic_load(&p->page->clocks[i].fence_key) != key)
                continue;
            if (looks)
                look_at(&p->clocks[i], at_ps);
            else if (p->clocks[i].now_ps > at_ps)
                at_ps = p->clocks[i].now_ps;
        }
        if (looks)
            sum_up(p);
    }
    return at_ps;
}

/*
 * All processes are in the fence, or were: those with clocks go on at the latest of their times. Not at once, for when
 * the host has ended the fence must not matter to other jobs: they look at that time, as if they had asked for it.
 */
static void end_fence(struct emu_virtual *v, struct emu_virtual_job *job, uint32_t key)
{
    uint64_t at_ps = for_each_in_fence(v, job, key, false, 0);

    if (!is_in_present_slot(v, at_ps))
        at_ps = reached_ps(v);
    if (emu_virtual_leaves_fence(v, job, &at_ps))
        for_each_in_fence(v, job, key, true, at_ps);
}

/* Jobs that begin together are noted first: the last one opens the others' fence. */
static void take_fences(struct emu_virtual *v)
{
    struct emu_virtual_process *p;

    for (int pass = 0; pass < 2; pass++) {
        LIST_FOREACH(p, &v->processes, link) {
            for (uint32_t i = 0; i < p->n_used; i++) {
                if (p->clocks[i].state != EMU_VCLOCK_UNFENCED)
                    continue;
                if (pass == 0)
                    emu_virtual_note_fence(v, p->job);
                else
                    end_fence(v, p->job, atomic_load(&p->page->clocks[i].fence_key));
            }
        }
        emu_virtual_open_jobs(v);
    }
}

/* Threads take clocks from the first one on, and none is given back. */
static void count_used(struct emu_virtual_process *p)
{
    uint32_t n_taken = atomic_load_explicit(&p->page->n_taken, memory_order_acquire);

    if (n_taken > p->n_used)
        p->n_used = n_taken < EMU_VCLOCKS ? n_taken : EMU_VCLOCKS;
}

/* Since the last scan. What no operation has brought (a datagram) is news of the present time. */
static uint64_t take_news(const struct emu_virtual *v, struct emu_virtual_process *p)
{
    uint64_t at_ps = p->news_ps == NEVER ? v->time.now_ps : p->news_ps;

    if (!p->member->has_news)
        return NEVER;
    p->member->has_news = false;
    p->news_ps = NEVER;
    return at_ps;
}

static bool take_process(struct emu_virtual *v, struct emu_virtual_process *p)
{
    uint64_t news_ps = take_news(v, p);
    bool has_fence = false;

    p->n_takes++;
    count_used(p);
    for (uint32_t i = 0; i < p->n_used; i++) {
        if (news_ps < p->clocks[i].news_ps)
            p->clocks[i].news_ps = news_ps;
        take_request(v, &p->clocks[i], &p->page->clocks[i]);
        has_fence = has_fence || p->clocks[i].state == EMU_VCLOCK_UNFENCED;
    }
    sum_up(p);
    return has_fence;
}

static void add_process(struct clock_scan *scan, struct emu_virtual_process *p)
{
    const struct process_scan *sum = &p->sum;

    if (sum->run_ps < scan->run_ps)
        scan->run_ps = sum->run_ps;
    if (sum->look_ps != NEVER && is_earlier(sum->look_ps, p, scan->look_ps, scan->looker)) {
        scan->look_ps = sum->look_ps;
        scan->looker = p;
    }
    if (sum->until_ps != NEVER && is_earlier(sum->until_ps, p, scan->until_ps, scan->waiter)) {
        scan->until_ps = sum->until_ps;
        scan->waiter = p;
    }
    if (sum->fence_ps > p->job->fence_ps)
        p->job->fence_ps = sum->fence_ps;
    p->job->n_processes++;
    p->job->n_unfenced += !sum->is_fenced;
    scan->n_waiting += sum->n_waiting;
    scan->n_outside += sum->n_outside;
}

/*
 * All of a job are in the fence: it is over at the latest of their times, and the host decides how soon. Time stands
 * there until then, whatever is under way.
 */
static void hold_at_fence(const struct emu_virtual *v, struct clock_scan *scan)
{
    uint64_t held_ps = emu_virtual_held_ps(v);

    if (held_ps < scan->run_ps)
        scan->run_ps = held_ps;
}

/* A shell, say, that waits for the program that it has started. */
static bool is_idle_starter(const struct emu_virtual_process *p)
{
    const struct emu_member *starter = p->starter ? emu_member_find(p->member->domain, p->starter) : NULL;

    return starter && starter->rank == p->rank && !starter->virtual_process;
}

/* Processes that may come to have a clock. */
static uint32_t count_clockless(const struct emu_server *server)
{
    const struct emu_domain *domain;
    const struct emu_member *member;
    const struct emu_virtual_process *p;
    uint32_t n = 0;

    LIST_FOREACH(domain, &server->domains, link) {
        LIST_FOREACH(member, &domain->members, link)
            n += !member->virtual_process;
    }
    LIST_FOREACH(p, &virtual_of(server)->processes, link)
        n -= is_idle_starter(p);
    return n;
}

/* May it differ from what the last scan saw of it? */
static bool may_have_moved(const struct emu_virtual_process *p)
{
    return p->sum.runs || p->member->has_news;
}

void emu_virtual_scan(struct emu_server *server, bool all, struct clock_scan *scan_out)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_virtual_process *p;
    bool has_fence = v->jobs.has_opened;

    if (all)
        v->n_clockless = count_clockless(server);
    LIST_FOREACH(p, &v->processes, link) {
        if (all || may_have_moved(p))
            has_fence = take_process(v, p) || has_fence;
    }
    if (has_fence) {
        /* Everybody had come into the fence before the first one came out: see all who are in it. */
        LIST_FOREACH(p, &v->processes, link)
            take_process(v, p);
        take_fences(v);
    }
    *scan_out = (struct clock_scan){ .run_ps = NEVER,
                                     .look_ps = NEVER,
                                     .until_ps = NEVER,
                                     .n_outside = v->n_clockless + emu_virtual_waits_for_jobs(v) };
    emu_virtual_forget_fences(v);
    LIST_FOREACH(p, &v->processes, link)
        add_process(scan_out, p);
    hold_at_fence(v, scan_out);
}

bool emu_virtual_is_asked(const struct emu_virtual *v)
{
    const struct emu_virtual_process *p;

    LIST_FOREACH(p, &v->processes, link) {
        uint32_t n_taken = atomic_load_explicit(&p->page->n_taken, memory_order_acquire);

        for (uint32_t i = 0; i < n_taken && i < EMU_VCLOCKS; i++) {
            uint32_t state = atomic_load_explicit(&p->page->clocks[i].state, memory_order_acquire);
            uint32_t known = p->clocks[i].state;

            if (state != known && !(known == EMU_VCLOCK_LOOKS && state != EMU_VCLOCK_RUNS))
                return true;
        }
    }
    return false;
}

uint64_t emu_virtual_latest_ps(const struct emu_virtual *v)
{
    const struct emu_virtual_process *p;
    uint64_t latest_ps = v->idle.effect_ps;

    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; i < p->n_used; i++) {
            if (p->clocks[i].state == EMU_VCLOCK_WAITS && p->clocks[i].now_ps > latest_ps)
                latest_ps = p->clocks[i].now_ps;
        }
    }
    return latest_ps;
}

bool emu_virtual_move_pollers(struct emu_virtual *v, uint64_t step_ps)
{
    struct emu_virtual_process *p;
    bool has_moved = false;

    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; i < p->n_used; i++) {
            const struct emu_vclock *c = &p->page->clocks[i];
            struct clock_end *end = &p->clocks[i];

            if (end->state != EMU_VCLOCK_WAITS || atomic_load(&c->call) != EMU_VCLOCK_CALL_POLL)
                continue;
            look_at(end, on_grid(c, end->now_ps, v->time.now_ps + step_ps));
            has_moved = true;
        }
        sum_up(p);
    }
    return has_moved;
}

/* Twice the time for which it has known of no effect. */
static bool has_polled_for_long(const struct emu_virtual *v, const struct clock_end *end, uint64_t at_ps)
{
    uint64_t known_ps = end->now_ps > v->idle.effect_ps ? end->now_ps - v->idle.effect_ps : 0;
    uint64_t patience_ps = known_ps < PATIENCE_MIN_PS ? PATIENCE_MIN_PS : known_ps;

    return at_ps - end->now_ps >= (patience_ps < PATIENCE_MAX_PS ? patience_ps : PATIENCE_MAX_PS);
}

void emu_virtual_let_pollers_look(struct emu_virtual *v, uint64_t at_ps)
{
    struct emu_virtual_process *p;

    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; p->sum.n_waiting > 0 && i < p->n_used; i++) {
            const struct emu_vclock *c = &p->page->clocks[i];
            struct clock_end *end = &p->clocks[i];

            if (end->state != EMU_VCLOCK_WAITS || atomic_load(&c->call) != EMU_VCLOCK_CALL_POLL ||
                end->now_ps > at_ps || atomic_load(&c->until_ps) <= TIME_MAX_PS || !has_polled_for_long(v, end, at_ps))
                continue;
            look_at(end, on_grid(c, end->now_ps, at_ps));
            sum_up(p);
        }
    }
}

void emu_virtual_announce_sleep(struct emu_virtual *v, bool sleeps)
{
    struct emu_virtual_process *p;

    /* Not in each round: the word is in a line that all calls of the process read. */
    if (v->is_announced == sleeps)
        return;
    v->is_announced = sleeps;
    LIST_FOREACH(p, &v->processes, link)
        atomic_store_explicit(&p->page->emunic_sleeps, sleeps, memory_order_relaxed);
}
