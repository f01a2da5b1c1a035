/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/beside.h"

#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/common/proc.h"
#include "tests/common/seed.h"
#include "tests/fuzz/duration.h"

#define HANG_NS     40000000000ull
#define PATIENCE_NS 20000000000ull

/* ---- keeping hostile processes coming ---- */

struct worker {
    pid_t pid;
    uint64_t started_ns;
    uint64_t kill_at_ns; /* those that do not end by themselves */
};

/* CMocka would take a crash of a worker for one of its test, and go on in there. */
static void crash_plainly(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

    for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_DFL);
}

static void start_worker(struct worker *w, unsigned number, const struct hostiles *h, struct emu_random *random)
{
    uint64_t own_seed = emu_random_next(random);
    pid_t keeper = getpid();

    w->started_ns = emu_clock_ns();
    w->kill_at_ns = w->started_ns + 1000000 * (100 + emu_random_below(random, h->life_ms));
    w->pid = fork();
    if (w->pid != 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper) /* it has gone before that: nobody would end this one */
        _exit(1);
    crash_plainly();
    h->body(number, own_seed);
    _exit(1);
}

static bool reap(struct worker *workers, const struct hostiles *h)
{
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);

    if (pid <= 0)
        return false;
    for (unsigned i = 0; i < h->n; i++) {
        if (workers[i].pid != pid)
            continue;
        workers[i].pid = 0;
        h->ended(i, status);
    }
    return true;
}

static void look_after(struct worker *w, unsigned number, const struct hostiles *h, struct emu_random *random)
{
    if (w->pid == 0) {
        start_worker(w, number, h, random);
    } else if (number >= h->n_ending) {
        if (emu_clock_ns() > w->kill_at_ns)
            kill(w->pid, SIGKILL);
    } else if (emu_clock_ns() > w->started_ns + HANG_NS) {
        fprintf(stderr, "pid %d: a call of its does not return\n", (int)w->pid);
        _exit(1);
    }
}

/* Ends with the test, or by itself when something must not have happened. */
static _Noreturn void keep(struct beside *b, const struct hostiles *h)
{
    struct worker workers[HOSTILES_MAX] = { { 0 } };
    struct timespec until_next = { .tv_nsec = 10000000 };
    struct emu_random random = b->seed;
    sigset_t set;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(b->fx.admin.fd);
    close(b->hostile_domain.fd);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    for (;;) {
        for (unsigned i = 0; i < h->n; i++)
            look_after(&workers[i], i, h, &random);
        sigtimedwait(&set, NULL, &until_next);
        while (reap(workers, h))
            ;
    }
}

/* ---- the run ---- */

void *beside_start(struct beside *b, uint64_t own_seed, size_t counts_bytes)
{
    static const uint32_t nids[] = { 0, 1, 5, 300 };
    struct fx_options options = { .n_ranks = 4, .nids = nids };
    void *counts = mmap(NULL, counts_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    b->seed = seeded(own_seed);
    if (counts == MAP_FAILED)
        return NULL;
    fx_start(&b->fx, &options);
    return fx_add_domain(&b->fx, HOSTILE_PTAG, HOSTILE_COOKIE, geteuid(), 0, &b->hostile_domain) < 0 ? NULL : counts;
}

int beside_stop(struct beside *b)
{
    int status = fx_stop(&b->fx);

    emu_session_close(&b->hostile_domain);
    return status;
}

static bool is_report_sound(struct beside *b, unsigned type)
{
    char *text = fx_report(&b->fx, type);
    json_t *report = text ? json_loads(text, 0, NULL) : NULL;
    bool is_sound = json_is_object(report);

    json_decref(report);
    free(text);
    return is_sound;
}

void beside_run_jobs(struct beside *b, const struct hostiles *hostiles, int (*body)(struct fx_rank *rank))
{
    uint64_t end_ns = emu_clock_ns() + fuzz_duration_ns();
    uint64_t job_seed = emu_random_next(&b->seed);
    int status = 0;
    pid_t keeper;

    assert_true(hostiles->n <= HOSTILES_MAX);
    b->fds = fx_count_fds(&b->fx);
    b->memfd_maps = proc_count_memfd_maps(b->fx.daemon);
    keeper = fork();
    assert_true(keeper >= 0);
    if (keeper == 0)
        keep(b, hostiles);
    while (emu_clock_ns() < end_ns) {
        assert_int_equal(fx_run(&b->fx, JOB_RANKS, body, &job_seed), 0);
        assert_true(is_report_sound(b, EMU_MSG_STATUS));
        assert_true(is_report_sound(b, EMU_MSG_LINKS));
        if (waitpid(keeper, &status, WNOHANG) != 0)
            fail_msg("the hostile side ended with status 0x%x", status);
        job_seed++;
        b->n_jobs++;
    }
    kill(keeper, SIGKILL);
    waitpid(keeper, &status, 0);
}

static json_int_t count_members_and_handles(struct beside *b)
{
    char *text = fx_report(&b->fx, EMU_MSG_STATUS);
    json_t *status = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *domain;
    const json_t *node;
    json_int_t sum = 0;
    size_t i;
    size_t k;

    free(text);
    json_array_foreach(json_object_get(status, "domains"), i, domain) {
        sum += json_integer_value(json_object_get(domain, "members"));
        json_array_foreach(json_object_get(domain, "nodes"), k, node)
            sum += json_integer_value(json_object_get(node, "memory_domains_on_node"));
    }
    json_decref(status);
    return sum;
}

static bool is_as_before(void *arg)
{
    struct beside *b = arg;

    return count_members_and_handles(b) == 0 && fx_count_fds(&b->fx) == b->fds &&
           proc_count_memfd_maps(b->fx.daemon) == b->memfd_maps;
}

void beside_assert_nothing_left(struct beside *b)
{
    assert_int_equal(waitpid(b->fx.daemon, NULL, WNOHANG), 0);
    if (!eventually(is_as_before, b, PATIENCE_NS))
        fail_msg("left behind: %d descriptors, %d mappings, %lld members and handles", fx_count_fds(&b->fx) - b->fds,
                 proc_count_memfd_maps(b->fx.daemon) - b->memfd_maps, (long long)count_members_and_handles(b));
}
