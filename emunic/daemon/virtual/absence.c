/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that do not run, though their clocks do.
 *
 * A clock that runs holds time up, so it is looked at whether its thread runs. A thread that has slept through two
 * looks, STILL_NS apart, waits for something outside the model: it is absent, holds nobody up, and returns at its next
 * call (`is_left`). A thread that wants a core and gets none is not absent, nor is one that has been stopped, nor one
 * beside another thread of its process that wants a core: it may wait for that one.
 *
 * The answer to a thread inside the runtime comes from another process, which may have to wait for a core, and that to
 * a request from emunic, in one of its next rounds, or when another process has left memory that is to go. So such a
 * thread is absent only after SERVED_NS; and one that is in a fence that is over for its clock is not absent at all.
 *
 * These times count while emunic runs. Where it gets no core, or is stopped, others are not served either: a pause
 * between two looks counts no more than twice as long as it was meant to be.
 *
 * Where computing costs nothing, a thread that computes for long without a call may be waiting for memory to change,
 * and it would wait for ever. So after SPIN_NS of processor time it holds nobody up any more, and goes on at the time
 * that the others have reached; that is counted. Each process has a patience of its own: shorter when the thread called
 * soon after, as one that waited does, longer when it did not.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/virtual/inner.h"

#define LOOK_NS      1000000u /* between two looks at processes, at least, */
#define LOOK_SHARE   50u      /* and so many times as long as one takes: a system call for each process */
#define STILL_NS     10000000u
#define SERVED_NS    1000000000u
#define SPIN_MIN_NS  4000000u
#define SPIN_MAX_NS  8000000000ull
#define SPIN_OVER_NS 20000000u
#define PATH_BYTES   64u
#define PAUSES_MAX   2u /* meant ones, that a pause counts at most */

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

/*
 * Does the thread sleep? One that is not there any more does; one that a signal or a debugger has stopped does not, it
 * will go on where it was. How often it has gone to sleep.
 */
static bool sleeps(pid_t pid, uint32_t tid, uint64_t *n_sleeps_out)
{
    char path[PATH_BYTES], text[4096];
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
    return !state || !strchr("RDTt", *state);
}

/* Is it a thread that others have gone on without? It may want a core for ever. */
static bool is_left(const struct emu_virtual_process *p, uint32_t tid)
{
    for (uint32_t i = 0; i < p->n_used; i++) {
        if (p->clocks[i].is_absent && atomic_load_explicit(&p->page->clocks[i].tid, memory_order_relaxed) == tid)
            return true;
    }
    return false;
}

/* Does a thread of the process run, or want to? */
static bool has_busy_thread(const struct emu_virtual_process *p)
{
    char path[PATH_BYTES];
    const struct dirent *entry;
    uint64_t unused;
    bool is_busy = false;
    DIR *tasks;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)p->member->pid);
    tasks = opendir(path);
    if (!tasks)
        return false;
    while (!is_busy && (entry = readdir(tasks))) {
        uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

        is_busy = tid != 0 && !is_left(p, tid) && !sleeps(p->member->pid, tid, &unused);
    }
    closedir(tasks);
    return is_busy;
}

/* Others go on without it, and it returns at its next call. */
static void leave(struct emu_virtual_process *p, uint32_t index)
{
    p->clocks[index].is_absent = true;
    atomic_store_explicit(&p->page->clocks[index].is_left, 1, memory_order_relaxed);
}

static bool is_served(uint32_t call)
{
    return call == EMU_VCLOCK_CALL_SERVED || call == EMU_VCLOCK_CALL_ASKED;
}

static void look_at_thread(struct emu_virtual_process *p, uint32_t index, uint64_t now_ns)
{
    struct clock_end *end = &p->clocks[index];
    uint32_t tid = atomic_load_explicit(&p->page->clocks[index].tid, memory_order_relaxed);
    uint32_t call = atomic_load_explicit(&p->page->clocks[index].call, memory_order_relaxed);
    uint64_t n_sleeps;
    bool does_sleep;

    if (!end->stands) {
        end->n_sleeps = 0;
        end->slept_ns = end->fell_asleep_ns = now_ns;
        return;
    }
    if (now_ns - end->slept_ns < (is_served(call) ? SERVED_NS : STILL_NS))
        return;
    does_sleep = sleeps(p->member->pid, tid, &n_sleeps);
    if (!does_sleep || end->n_sleeps != n_sleeps + 1)
        end->fell_asleep_ns = now_ns;
    else if (now_ns - end->fell_asleep_ns >= SERVED_NS || !has_busy_thread(p))
        leave(p, index);
    end->n_sleeps = does_sleep ? n_sleeps + 1 : 0;
    end->slept_ns = now_ns;
}

/* Of a fence: its answer is on its way to it, or soon will be. */
static bool is_coming_out(const struct emu_vclock *c)
{
    return atomic_load_explicit(&c->call, memory_order_relaxed) == EMU_VCLOCK_CALL_FENCE;
}

static bool has_still_clock(struct emu_virtual_process *p)
{
    bool is_still = false;

    for (uint32_t i = 0; i < p->n_used; i++) {
        struct clock_end *end = &p->clocks[i];

        if (end->state != EMU_VCLOCK_RUNS)
            continue;
        end->stands = end->still_ps == end->now_ps && !is_coming_out(&p->page->clocks[i]);
        end->still_ps = end->now_ps;
        is_still = is_still || end->stands;
    }
    return is_still;
}

/* Where computing costs its processor time, that moves the clock already before the next call tells. */
static void move_by_processor(const struct emu_virtual *v, struct emu_virtual_process *p, uint64_t used_ns)
{
    for (uint32_t i = 0; i < p->n_used; i++) {
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
    for (uint32_t i = 0; i < p->n_used; i++) {
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

    for (uint32_t i = 0; i < p->n_used; i++) {
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
    struct emu_virtual_looks *looks = &v->looks;
    struct emu_virtual_process *p;
    uint64_t passed_ns = now_ns - looks->at_ns;

    if (passed_ns < looks->pause_ns)
        return;
    looks->at_ns = now_ns;
    looks->steady_ns += passed_ns < PAUSES_MAX * looks->pause_ns ? passed_ns : PAUSES_MAX * looks->pause_ns;
    LIST_FOREACH(p, &v->processes, link)
        look_at_process(v, p, looks->steady_ns);
    looks->pause_ns = LOOK_SHARE * (emu_clock_ns() - now_ns);
    if (looks->pause_ns < LOOK_NS)
        looks->pause_ns = LOOK_NS;
}
