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
 * A clock that runs holds time up, so it is looked at whether its thread runs. A thread that has slept through two
 * looks, STILL_NS apart, waits for something outside the model: it is absent, holds nobody up, and returns at its next
 * call (`is_left`). A thread that wants a core and gets none is not absent.
 *
 * Where computing costs nothing, a thread that computes for long without a call may be waiting for memory to change,
 * and it would wait for ever. So after SPIN_NS of processor time it holds nobody up any more, and goes on at the time
 * that the others have reached; that is counted. Each process has a patience of its own: shorter when the thread called
 * soon after, as one that waited does, longer when it did not.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/virtual/inner.h"

#define LOOK_NS      1000000u /* between two looks at processes, at least, */
#define LOOK_SHARE   50u      /* and so many times as long as one takes: a system call for each process */
#define STILL_NS     10000000u
#define SPIN_NS      500000000u /* at first */
#define SPIN_MIN_NS  4000000u
#define SPIN_MAX_NS  8000000000ull
#define SPIN_OVER_NS 20000000u

/* ---- moving ---- */

/*
 * What is under way reaches nobody before the simulation's next event. What others post later, from at_ps on, needs the
 * machine's lookahead at least.
 */
static uint64_t horizon_ps(const struct emu_virtual *v, uint64_t at_ps)
{
    uint64_t next_ps = emu_sim_next_ps(emu_nic_model_sim(v->model));
    uint64_t after_ps = at_ps + emu_nic_lookahead_ps(v->model);

    if (!STAILQ_EMPTY(&v->due) || at_ps > v->time.now_ps)
        return 0;
    return next_ps < after_ps ? next_ps : after_ps;
}

void emu_virtual_go_on(struct emu_virtual *v, struct emu_virtual_process *p, uint32_t index, uint64_t at_ps)
{
    struct clock_end *end = &p->clocks[index];
    struct emu_vclock *c = &p->page->clocks[index];

    end->now_ps = at_ps;
    end->state = EMU_VCLOCK_RUNS;
    end->has_news = false;
    end->is_absent = end->is_moved_by_cpu = false;
    end->n_sleeps = 0;
    p->cpu_began_ns = 0;
    atomic_store_explicit(&c->now_ps, at_ps, memory_order_relaxed);
    atomic_store_explicit(&c->until_ps, NEVER, memory_order_relaxed);
    atomic_store_explicit(&c->horizon_ps, horizon_ps(v, at_ps), memory_order_relaxed);
    atomic_store_explicit(&c->is_left, 0, memory_order_relaxed);
    /* Pairs with the acquire in the thread: its time before its turn. */
    atomic_store(&c->state, EMU_VCLOCK_RUNS);
    if (atomic_load(&c->sleeps))
        syscall(SYS_futex, &c->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* First time of its grid that is not before at_ps. */
static uint64_t on_grid(const struct emu_vclock *c, uint64_t now_ps, uint64_t at_ps)
{
    uint64_t grid_ps = atomic_load_explicit(&c->grid_ps, memory_order_relaxed);

    if (at_ps <= now_ps)
        return now_ps;
    if (grid_ps == 0)
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

/* The state that the thread has stored: a new request, or what is known. */
static void take_request(struct emu_virtual *v, struct clock_end *end, const struct emu_vclock *c)
{
    uint32_t state = atomic_load_explicit(&c->state, memory_order_acquire);
    uint64_t now_ps = atomic_load_explicit(&c->now_ps, memory_order_relaxed);

    if (state > EMU_VCLOCK_UNFENCED)
        state = EMU_VCLOCK_AWAY;
    if (now_ps > end->now_ps && now_ps < NEVER) {
        end->now_ps = now_ps;
        if (!end->is_moved_by_cpu)
            end->is_absent = false;
    }
    if (state == EMU_VCLOCK_LOOKS && end->state != EMU_VCLOCK_LOOKS)
        look_at(end, end->now_ps > v->time.now_ps ? end->now_ps : v->time.now_ps);
    else if (state == EMU_VCLOCK_RETURNS && end->state != EMU_VCLOCK_LOOKS)
        look_at(end, end->now_ps > reached_ps(v) ? end->now_ps : reached_ps(v));
    else if (state == EMU_VCLOCK_WAITS && end->state == EMU_VCLOCK_LOOKS)
        return; /* news have made a look of it */
    else if (state != EMU_VCLOCK_LOOKS && state != EMU_VCLOCK_RETURNS)
        end->state = state;
    if (end->state == EMU_VCLOCK_WAITS && end->has_news)
        look_at(end, on_grid(c, end->now_ps, v->time.now_ps));
}

static bool is_earlier(uint64_t a_ps, const struct emu_virtual_process *a, uint64_t b_ps,
                       const struct emu_virtual_process *b)
{
    return a_ps < b_ps || (a_ps == b_ps && (!b || a->order < b->order));
}

static void add_clock(struct clock_scan *scan, struct emu_virtual_process *p, uint32_t index)
{
    const struct clock_end *end = &p->clocks[index];
    const struct emu_vclock *c = &p->page->clocks[index];
    uint64_t until_ps;

    switch (end->state) {
    case EMU_VCLOCK_RUNS:
        if (end->is_absent)
            scan->n_outside++;
        else if (end->now_ps < scan->run_ps)
            scan->run_ps = end->now_ps;
        return;
    case EMU_VCLOCK_LOOKS:
        if (is_earlier(end->look_ps, p, scan->look_ps, scan->looker)) {
            scan->look_ps = end->look_ps;
            scan->looker = p;
            scan->look_index = index;
        }
        return;
    case EMU_VCLOCK_WAITS:
        scan->n_waiting++;
        until_ps = atomic_load_explicit(&c->until_ps, memory_order_relaxed);
        if (until_ps < end->now_ps)
            until_ps = end->now_ps; /* no clock goes back */
        if (until_ps != NEVER && is_earlier(until_ps, p, scan->until_ps, scan->waiter)) {
            scan->until_ps = until_ps;
            scan->waiter = p;
            scan->wait_index = index;
        }
        return;
    case EMU_VCLOCK_FREE:
    case EMU_VCLOCK_FENCED: /* it comes back when those who wait have come into its fence */
        return;
    default:
        scan->n_outside++;
    }
}

/* All processes are in the fence, or were: those with clocks go on at the latest of their times. */
static void end_fence(struct emu_virtual *v, uint32_t key, const struct emu_domain *domain)
{
    struct emu_virtual_process *p;
    uint64_t latest_ps = reached_ps(v);

    for (int pass = 0; pass < 2; pass++) {
        LIST_FOREACH(p, &v->processes, link) {
            for (uint32_t i = 0; p->member->domain == domain && i < EMU_VCLOCKS; i++) {
                const struct emu_vclock *c = &p->page->clocks[i];
                bool is_in = p->clocks[i].state == EMU_VCLOCK_FENCED || p->clocks[i].state == EMU_VCLOCK_UNFENCED;

                if (!is_in || atomic_load(&c->fence_key) != key)
                    continue;
                if (pass == 1)
                    emu_virtual_go_on(v, p, i, latest_ps);
                else if (p->clocks[i].now_ps > latest_ps)
                    latest_ps = p->clocks[i].now_ps;
            }
        }
    }
}

static void take_fences(struct emu_virtual *v)
{
    struct emu_virtual_process *p;

    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
            if (p->clocks[i].state == EMU_VCLOCK_UNFENCED)
                end_fence(v, atomic_load(&p->page->clocks[i].fence_key), p->member->domain);
        }
    }
}

/* Threads take clocks from the first one on. */
static uint32_t clocks_in_use(const struct emu_virtual_process *p)
{
    uint32_t n = EMU_VCLOCKS;

    while (n > 0 && p->clocks[n - 1].state == EMU_VCLOCK_FREE &&
           atomic_load_explicit(&p->page->clocks[n - 1].tid, memory_order_relaxed) == 0)
        n--;
    return n;
}

static bool take_process(struct emu_virtual *v, struct emu_virtual_process *p)
{
    uint32_t n = clocks_in_use(p);
    bool has_fence = false;

    for (uint32_t i = 0; i < n; i++) {
        p->clocks[i].has_news = p->clocks[i].has_news || p->member->has_news;
        take_request(v, &p->clocks[i], &p->page->clocks[i]);
        has_fence = has_fence || p->clocks[i].state == EMU_VCLOCK_UNFENCED;
    }
    p->member->has_news = false;
    return has_fence;
}

void emu_virtual_scan(struct emu_server *server, struct clock_scan *scan_out)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_virtual_process *p;
    struct emu_domain *domain;
    struct emu_member *member;
    bool has_fence = false;

    *scan_out = (struct clock_scan){ .run_ps = NEVER, .look_ps = NEVER, .until_ps = NEVER };
    LIST_FOREACH(p, &v->processes, link)
        has_fence = take_process(v, p) || has_fence;
    if (has_fence) {
        /* Everybody had come into the fence before the first one came out: see all who are in it. */
        LIST_FOREACH(p, &v->processes, link)
            take_process(v, p);
        take_fences(v);
    }
    LIST_FOREACH(p, &v->processes, link) {
        uint32_t n = clocks_in_use(p);

        for (uint32_t i = 0; i < n; i++)
            add_clock(scan_out, p, i);
    }
    LIST_FOREACH(domain, &server->domains, link) {
        LIST_FOREACH(member, &domain->members, link)
            scan_out->n_outside += !member->virtual_process;
    }
}

bool emu_virtual_is_asked(const struct emu_virtual *v)
{
    const struct emu_virtual_process *p;

    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
            uint32_t state = atomic_load_explicit(&p->page->clocks[i].state, memory_order_acquire);
            uint32_t known = p->clocks[i].state;

            if (state != known && !(known == EMU_VCLOCK_LOOKS && state != EMU_VCLOCK_RUNS))
                return true;
        }
    }
    return false;
}

bool emu_virtual_move_pollers(struct emu_virtual *v, uint64_t step_ps)
{
    struct emu_virtual_process *p;
    bool has_moved = false;

    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
            const struct emu_vclock *c = &p->page->clocks[i];
            struct clock_end *end = &p->clocks[i];

            if (end->state != EMU_VCLOCK_WAITS || atomic_load(&c->call) != EMU_VCLOCK_CALL_POLL)
                continue;
            look_at(end, on_grid(c, end->now_ps, v->time.now_ps + step_ps));
            has_moved = true;
        }
    }
    return has_moved;
}

void emu_virtual_announce_sleep(const struct emu_virtual *v, bool sleeps)
{
    struct emu_virtual_process *p;

    LIST_FOREACH(p, &v->processes, link)
        atomic_store_explicit(&p->page->emunic_sleeps, sleeps, memory_order_relaxed);
}

/* ---- do they run? ---- */

static uint64_t processor_ns(pid_t pid)
{
    /* The kernel's number of a process's processor clock (clock_getcpuclockid(3)). */
    clockid_t id = (clockid_t)((~(unsigned)pid << 3) | 2);
    struct timespec t;

    if (clock_gettime(id, &t) < 0)
        return 0;
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* A line of a file that the kernel makes: what stands behind the name. NULL: there is none. */
static const char *find_line(const char *text, const char *name)
{
    const char *at = strstr(text, name);

    return at ? at + strlen(name) : NULL;
}

/* Does the thread sleep, or is it stopped? One that is not there any more does. How often it has gone to sleep. */
static bool sleeps(pid_t pid, uint32_t tid, uint64_t *n_sleeps_out)
{
    char path[64], text[4096];
    const char *state;
    const char *n_sleeps;
    ssize_t n;
    int fd;

    *n_sleeps_out = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%u/status", (int)pid, tid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return true;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    state = find_line(text, "\nState:\t");
    n_sleeps = find_line(text, "\nvoluntary_ctxt_switches:\t");
    if (n_sleeps)
        *n_sleeps_out = strtoull(n_sleeps, NULL, 10);
    return !state || (*state != 'R' && *state != 'D');
}

/* Others go on without it, and it returns at its next call. */
static void leave(struct emu_virtual_process *p, uint32_t index)
{
    p->clocks[index].is_absent = true;
    atomic_store_explicit(&p->page->clocks[index].is_left, 1, memory_order_relaxed);
}

static void look_at_thread(struct emu_virtual_process *p, uint32_t index, uint64_t now_ns)
{
    struct clock_end *end = &p->clocks[index];
    uint32_t tid = atomic_load_explicit(&p->page->clocks[index].tid, memory_order_relaxed);
    uint64_t n_sleeps;
    bool does_sleep;

    if (!end->stands) {
        end->n_sleeps = 0;
        end->slept_ns = now_ns;
        return;
    }
    if (now_ns - end->slept_ns < STILL_NS)
        return;
    does_sleep = sleeps(p->member->pid, tid, &n_sleeps);
    if (does_sleep && end->n_sleeps == n_sleeps + 1)
        leave(p, index);
    end->n_sleeps = does_sleep ? n_sleeps + 1 : 0;
    end->slept_ns = now_ns;
}

static bool has_still_clock(struct emu_virtual_process *p)
{
    bool is_still = false;

    for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
        struct clock_end *end = &p->clocks[i];

        if (end->state != EMU_VCLOCK_RUNS)
            continue;
        end->stands = end->still_ps == end->now_ps;
        end->still_ps = end->now_ps;
        is_still = is_still || end->stands;
    }
    return is_still;
}

/* Where computing costs its processor time, that moves the clock already before the next call tells. */
static void move_by_processor(const struct emu_virtual *v, struct emu_virtual_process *p, uint64_t used_ns)
{
    for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
        struct clock_end *end = &p->clocks[i];

        if (end->state != EMU_VCLOCK_RUNS || end->is_absent)
            continue;
        end->is_moved_by_cpu = true;
        end->now_ps += used_ns * v->options.factor_ppm / 1000;
        end->still_ps = end->now_ps;
    }
}

static void leave_those_that_stand(struct emu_virtual_process *p)
{
    for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
        if (p->clocks[i].state == EMU_VCLOCK_RUNS && p->clocks[i].stands)
            leave(p, i);
    }
}

/* A clock has moved behind what looked like waiting for memory: was it that? */
static void learn(struct emu_virtual_process *p, uint64_t cpu_ns)
{
    if (p->spun_cpu_ns == 0)
        return;
    if (cpu_ns - p->spun_cpu_ns < SPIN_OVER_NS)
        p->spin_ns = p->spin_ns / 4 > SPIN_MIN_NS ? p->spin_ns / 4 : SPIN_MIN_NS;
    else
        p->spin_ns = p->spin_ns * 2 < SPIN_MAX_NS ? p->spin_ns * 2 : SPIN_MAX_NS;
    p->spun_cpu_ns = 0;
}

/* It uses the processor and calls nothing. */
static void look_at_computing(struct emu_virtual *v, struct emu_virtual_process *p, uint64_t cpu_ns)
{
    if (v->options.compute == EMU_VCLOCK_COMPUTE_MEASURED) {
        move_by_processor(v, p, cpu_ns - p->cpu_ns);
        return;
    }
    if (p->cpu_began_ns == 0)
        p->cpu_began_ns = cpu_ns;
    if (p->spun_cpu_ns != 0 || cpu_ns - p->cpu_began_ns < p->spin_ns)
        return;
    p->spun_cpu_ns = cpu_ns;
    leave_those_that_stand(p);
    emu_lag_note_spin(v, p);
}

static void look_at_process(struct emu_virtual *v, struct emu_virtual_process *p, uint64_t now_ns)
{
    uint64_t cpu_ns = processor_ns(p->member->pid);
    bool has_still = has_still_clock(p);

    for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
        if (p->clocks[i].state == EMU_VCLOCK_RUNS && !p->clocks[i].is_absent)
            look_at_thread(p, i, now_ns);
    }
    if (!has_still) {
        learn(p, cpu_ns);
        p->cpu_began_ns = cpu_ns;
    } else if (cpu_ns > p->cpu_ns) {
        look_at_computing(v, p, cpu_ns);
    }
    p->cpu_ns = cpu_ns;
}

void emu_virtual_look_at_processes(struct emu_virtual *v, uint64_t now_ns)
{
    struct emu_virtual_process *p;

    if (now_ns - v->looked_ns < v->look_pause_ns)
        return;
    v->looked_ns = now_ns;
    LIST_FOREACH(p, &v->processes, link)
        look_at_process(v, p, now_ns);
    v->look_pause_ns = LOOK_SHARE * (emu_clock_ns() - now_ns);
    if (v->look_pause_ns < LOOK_NS)
        v->look_pause_ns = LOOK_NS;
}

/* ---- processes ---- */

static void doorbell_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    (void)server;
    (void)watch;
    (void)events; /* edge-triggered: the next round looks */
}

static void fill_page(const struct emu_virtual *v, struct emu_vclock_page *page, const struct emu_node_params *host)
{
    page->magic = EMU_VCLOCK_MAGIC;
    page->abi_version = EMU_ABI_VERSION;
    page->n_clocks = EMU_VCLOCKS;
    page->compute = v->options.compute;
    page->factor_ppm = v->options.factor_ppm;
    page->fixed_ps = v->options.fixed_ps;
    page->epoch_ns = v->options.epoch_ns;
    page->poll_ps = v->options.poll_ps;
    page->server_pid = (uint32_t)getpid();
    page->put_gap_ps = host->put_gap_ps;
    page->store_kbs = host->store_kbs;
    page->launch_gap_ps = host->launch_gap_ps;
    page->launch_mdh_percent = host->launch_mdh_percent;
}

static int make_page(struct emu_virtual *v, struct emu_virtual_process *p, const struct emu_node_params *host)
{
    void *page;

    p->page_fd = memfd_create("emunic-clocks", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (p->page_fd < 0 || ftruncate(p->page_fd, sizeof(*p->page)) < 0 ||
        fcntl(p->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        return -errno;
    page = mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE, MAP_SHARED, p->page_fd, 0);
    if (page == MAP_FAILED)
        return -errno;
    p->page = page;
    fill_page(v, p->page, host);
    p->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return p->doorbell < 0 ? -errno : 0;
}

/* What it has; the rest epoll may still name. */
static void close_process(struct emu_virtual_process *p)
{
    if (p->page) {
        atomic_store(&p->page->is_over, 1);
        munmap(p->page, sizeof(*p->page));
    }
    if (p->page_fd >= 0)
        close(p->page_fd);
    if (p->doorbell >= 0)
        close(p->doorbell);
}

/*
 * Processes of one node have cores of their own in the model, as many as it has: in the order of their ranks, because
 * that in which they come is the host's.
 */
static uint32_t choose_proc(const struct emu_virtual *v, const struct emu_member *member)
{
    const struct emu_domain *domain = member->domain;
    const struct emu_virtual_process *other;
    uint32_t n = 0;

    if (member->rank < domain->n_ranks && domain->rank_nids) {
        for (uint32_t i = 0; i < member->rank; i++)
            n += domain->rank_nids[i] == domain->rank_nids[member->rank];
        return n % EMU_NIC_PROCS_MAX;
    }
    LIST_FOREACH(other, &v->processes, link)
        n += other->member->domain == member->domain && other->member->node_index == member->node_index;
    return n % EMU_NIC_PROCS_MAX;
}

static int make_process(struct emu_server *server, struct emu_member *member, struct emu_virtual_process **out)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_virtual_process *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    *p = (struct emu_virtual_process){ .member = member, .page_fd = -1, .doorbell = -1, .watch.ready = doorbell_ready };
    r = make_page(v, p, emu_machine_node_params(server->machine));
    if (r == 0)
        r = emu_server_watch(server, p->doorbell, EPOLLIN | EPOLLET, &p->watch);
    if (r < 0) {
        close_process(p);
        free(p);
        return r;
    }
    p->order = member->rank != EMU_NID_NONE ? member->rank : v->n_came;
    v->n_came++;
    p->proc = choose_proc(v, member);
    p->spin_ns = SPIN_NS;
    LIST_INSERT_HEAD(&v->processes, p, link);
    member->virtual_process = p;
    *out = p;
    return 0;
}

int emu_virtual_answer_page(struct emu_request *request)
{
    struct emu_member *member = request->port->member;
    struct emu_virtual_process *p = member->virtual_process;
    int r;

    if (!virtual_of(request->port->server))
        return -EOPNOTSUPP;
    if (!p) {
        r = make_process(request->port->server, member, &p);
        if (r < 0)
            return r;
    }
    request->reply_fds[0] = p->page_fd;
    request->reply_fds[1] = p->doorbell;
    request->n_reply_fds = 2;
    return 0;
}

void emu_virtual_end_process(struct emu_server *server, struct emu_member *member)
{
    struct emu_virtual_process *p = member->virtual_process;

    if (!p)
        return;
    emu_lag_end_process(virtual_of(server), p);
    emu_server_bury(server, p->doorbell, &p->watch);
    LIST_REMOVE(p, link);
    emu_virtual_forget_process(virtual_of(server), p);
    member->virtual_process = NULL;
    close_process(p);
}
