/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic sim run`: experiments, several at a time.
 *
 * Each run (an experiment with a seed) is a child process: a crash or an assertion costs one verdict and not the run,
 * an interrupt needs no cooperation, and memory goes back. The child writes its report, one JSON object, into a pipe
 * and ends; how far it is stands in memory that all share. Reports are printed in the order in which they were asked
 * for, each as soon as those before it are there, so the output does not depend on how many run at a time.
 */
#include "emunic/cli/verb_sim.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/base/processors.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/heat.h"
#include "emunic/cli/options.h"
#include "emunic/cli/progress.h"
#include "emunic/cli/server_report.h"
#include "emunic/experiments/runner.h"

#define SEEDS_MAX   100
#define THREADS_MAX 1024
#define JOBS_MAX    256
#define POLL_MS     100
#define DONE        (UINT32_C(1) << 20) /* shared progress of a run that is complete */

struct run {
    const struct emu_experiment *experiment;
    uint64_t seed;
    pid_t pid;  /* 0: none */
    int fd;     /* of the report; -1: none */
    char *text; /* owned; what has been read of it */
    size_t len;
    size_t max;
    json_t *report; /* owned; set when the run is over */
};

struct batch {
    bool is_full;
    bool is_json;
    bool is_quiet;
    uint64_t seed;
    uint64_t n_seeds;
    uint64_t n_threads;
    uint64_t n_jobs;
    const char *data_dir;
    struct run *runs; /* owned */
    size_t n_runs;
    size_t n_started;
    size_t n_running;
    size_t n_done;
    size_t n_printed;
    uint64_t n_passed; /* metrics */
    uint64_t n_failed;
    _Atomic uint32_t *shared; /* progress of each run, 0 .. DONE */
    struct emu_cli_progress progress;
};

static volatile sig_atomic_t is_interrupted;

static void on_interrupt(int number)
{
    is_interrupted = number;
}

/* ---- which ---- */

static bool add_run(struct batch *batch, const struct emu_experiment *e, uint64_t seed)
{
    struct run *runs;

    for (size_t i = 0; i < batch->n_runs; i++) {
        if (batch->runs[i].experiment == e && batch->runs[i].seed == seed)
            return true;
    }
    runs = realloc(batch->runs, (batch->n_runs + 1) * sizeof(*runs));
    if (!runs)
        return false;
    batch->runs = runs;
    runs[batch->n_runs++] = (struct run){ .experiment = e, .seed = seed, .fd = -1 };
    return true;
}

static bool add_experiment(struct batch *batch, const struct emu_experiment *e)
{
    uint64_t n = e->needs == EMU_EXP_ANALYTIC ? 1 : batch->n_seeds;

    for (uint64_t i = 0; i < n; i++) {
        if (!add_run(batch, e, batch->seed + i))
            return false;
    }
    return true;
}

/* "XC" is the front of "XC-24", and "all" of everything. */
static bool is_front(const char *word, const char *id)
{
    size_t len = strlen(word);

    return strcmp(word, "all") == 0 || (strncasecmp(word, id, len) == 0 && id[len] == '-');
}

static int choose(struct batch *batch, const char *word)
{
    const struct emu_experiment *e = emu_experiment_find(word);
    bool is_known = false;

    if (e && e->needs == EMU_EXP_LIVE)
        return emu_cli_usage("sim", "run: %s needs real processes and is not run here", e->id);
    if (e)
        return add_experiment(batch, e) ? EMU_EXIT_DONE : emu_cli_fail("sim", "run: out of memory");
    for (size_t i = 0; (e = emu_experiment_at(i)); i++) {
        if (!is_front(word, e->id))
            continue;
        is_known = true;
        if (e->needs != EMU_EXP_LIVE && !add_experiment(batch, e))
            return emu_cli_fail("sim", "run: out of memory");
    }
    if (!is_known)
        return emu_cli_usage("sim", "run: '%s' is not an experiment; `emunic sim list` shows them", word);
    return EMU_EXIT_DONE;
}

/* ---- children ---- */

static void note_progress(void *ctx, double fraction)
{
    _Atomic uint32_t *shared = ctx;

    fraction = fraction < 0 ? 0 : fraction > 1 ? 1 : fraction;
    atomic_store_explicit(shared, (uint32_t)(fraction * DONE), memory_order_relaxed);
}

static void write_all(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, text, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        text += n;
        len -= (size_t)n;
    }
}

static _Noreturn void be_child(const struct batch *batch, const struct run *run, _Atomic uint32_t *shared, int fd)
{
    struct emu_exp_context context = { .seed = run->seed,
                                       .is_full = batch->is_full,
                                       .n_threads = (uint32_t)batch->n_threads,
                                       .machine_dir = emu_cli_machine_dir(),
                                       /* One seed is enough for a plot, and files have one writer. */
                                       .data_dir = run->seed == batch->seed ? batch->data_dir : NULL };
    json_t *report;
    char *text;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    report = emu_exp_run(run->experiment, &context, note_progress, (void *)shared);
    text = report ? json_dumps(report, JSON_COMPACT) : NULL;
    if (text)
        write_all(fd, text, strlen(text));
    _exit(text ? 0 : 1);
}

static int start_next(struct batch *batch)
{
    size_t index = batch->n_started;
    struct run *run = &batch->runs[index];
    int fds[2];

    if (pipe(fds) < 0)
        return -errno;
    fflush(NULL);
    run->pid = fork();
    if (run->pid < 0) {
        int r = -errno;

        run->pid = 0;
        close(fds[0]);
        close(fds[1]);
        return r;
    }
    if (run->pid == 0) {
        close(fds[0]);
        be_child(batch, run, &batch->shared[index], fds[1]);
    }
    close(fds[1]);
    run->fd = fds[0];
    batch->n_started++;
    batch->n_running++;
    return 0;
}

/* The report of a child that has ended. */
static int finish_run(struct batch *batch, struct run *run)
{
    char reason[64];
    int status = 0;

    close(run->fd);
    run->fd = -1;
    while (waitpid(run->pid, &status, 0) < 0 && errno == EINTR)
        ;
    run->pid = 0;
    batch->n_running--;
    batch->n_done++;
    atomic_store_explicit(&batch->shared[run - batch->runs], DONE, memory_order_relaxed);
    run->report = run->len > 0 ? json_loadb(run->text, run->len, 0, NULL) : NULL;
    free(run->text);
    run->text = NULL;
    if (run->report)
        return 0;
    if (WIFSIGNALED(status))
        snprintf(reason, sizeof(reason), "its process ended by signal %d (%s)", WTERMSIG(status),
                 sigabbrev_np(WTERMSIG(status)));
    else
        snprintf(reason, sizeof(reason), "its process ended with status %d and no report", WEXITSTATUS(status));
    run->report = emu_exp_aborted(run->experiment, run->seed, reason);
    return run->report ? 0 : -ENOMEM;
}

static int read_run(struct batch *batch, struct run *run)
{
    ssize_t n;

    if (run->max - run->len < 4096) {
        size_t more = run->max ? 2 * run->max : 16384;
        char *text = realloc(run->text, more);

        if (!text)
            return -ENOMEM;
        run->text = text;
        run->max = more;
    }
    n = read(run->fd, run->text + run->len, run->max - run->len);
    if (n < 0 && errno == EINTR)
        return 0;
    if (n <= 0)
        return finish_run(batch, run);
    run->len += (size_t)n;
    return 0;
}

static void stop_children(struct batch *batch)
{
    for (size_t i = 0; i < batch->n_started; i++) {
        if (batch->runs[i].pid > 0)
            kill(batch->runs[i].pid, SIGKILL);
    }
    for (size_t i = 0; i < batch->n_started; i++) {
        struct run *run = &batch->runs[i];

        if (run->pid <= 0)
            continue;
        while (waitpid(run->pid, NULL, 0) < 0 && errno == EINTR)
            ;
        run->pid = 0;
        close(run->fd);
        run->fd = -1;
    }
}

/* ---- output ---- */

static int print_ready(struct batch *batch)
{
    int r = 0;

    while (r == 0 && batch->n_printed < batch->n_runs && batch->runs[batch->n_printed].report) {
        const json_t *report = batch->runs[batch->n_printed++].report;

        batch->n_passed += (uint64_t)json_integer_value(json_object_get(report, "passed"));
        batch->n_failed += (uint64_t)json_integer_value(json_object_get(report, "failed"));
        if (batch->is_json)
            continue;
        emu_cli_progress_clear(&batch->progress);
        r = emu_exp_print(report, stdout);
        if (r == 0 && fflush(stdout) == EOF)
            r = -errno;
    }
    return r;
}

static void draw_progress(struct batch *batch)
{
    char text[200] = "";
    size_t used = 0;
    double sum = 0;

    for (size_t i = 0; i < batch->n_runs; i++)
        sum += (double)atomic_load_explicit(&batch->shared[i], memory_order_relaxed) / DONE;
    for (size_t i = 0; i < batch->n_started && used < sizeof(text) - 40; i++) {
        if (batch->runs[i].pid > 0)
            used += (size_t)snprintf(text + used, sizeof(text) - used, " %.12s:%llu %.0f%%",
                                     batch->runs[i].experiment->id, (unsigned long long)batch->runs[i].seed,
                                     100.0 * atomic_load_explicit(&batch->shared[i], memory_order_relaxed) / DONE);
    }
    if (batch->progress.is_on) {
        char whole[256];

        snprintf(whole, sizeof(whole), "%zu of %zu%s%s", batch->n_done, batch->n_runs, used ? "," : "", text);
        emu_cli_progress_draw(&batch->progress, sum / (double)batch->n_runs, whole);
    }
}

static int print_json(struct batch *batch)
{
    json_t *experiments = json_array();
    json_t *live = json_array();
    const struct emu_experiment *e;
    json_t *answer;
    int status;

    for (size_t i = 0; i < batch->n_runs; i++)
        json_array_append(experiments, batch->runs[i].report);
    for (size_t i = 0; (e = emu_experiment_at(i)); i++) {
        if (e->needs == EMU_EXP_LIVE)
            json_array_append_new(
                live, json_pack("{s:s, s:s, s:s}", "id", e->id, "machine", e->machine, "summary", e->summary));
    }
    answer = json_pack("{s:i, s:s, s:I, s:I, s:I, s:I, s:o, s:o}", "schema", 1, "mode",
                       batch->is_full ? "full" : "quick", "seed", (json_int_t)batch->seed, "seeds",
                       (json_int_t)batch->n_seeds, "passed", (json_int_t)batch->n_passed, "failed",
                       (json_int_t)batch->n_failed, "experiments", experiments, "live", live);
    status = answer ? emu_cli_print_json("sim", answer, stdout) : emu_cli_fail("sim", "run: out of memory");
    json_decref(answer);
    return status;
}

/* ---- the batch ---- */

static int wait_for_children(struct batch *batch)
{
    struct pollfd polls[JOBS_MAX];
    struct run *runs[JOBS_MAX];
    nfds_t n = 0;
    int r = 0;

    for (size_t i = 0; i < batch->n_started; i++) {
        if (batch->runs[i].fd >= 0) {
            polls[n] = (struct pollfd){ .fd = batch->runs[i].fd, .events = POLLIN };
            runs[n++] = &batch->runs[i];
        }
    }
    if (poll(polls, n, POLL_MS) < 0)
        return errno == EINTR ? 0 : -errno;
    for (nfds_t i = 0; i < n && r == 0; i++) {
        if (polls[i].revents)
            r = read_run(batch, runs[i]);
    }
    return r;
}

static int run_batch(struct batch *batch)
{
    int r = 0;

    while (r == 0 && batch->n_done < batch->n_runs && !is_interrupted) {
        while (r == 0 && batch->n_started < batch->n_runs && batch->n_running < batch->n_jobs)
            r = start_next(batch);
        if (r == -EAGAIN && batch->n_running > 0)
            r = 0; /* no more processes now: go on with those that there are */
        if (r == 0)
            r = wait_for_children(batch);
        if (r == 0)
            r = print_ready(batch);
        draw_progress(batch);
    }
    emu_cli_progress_clear(&batch->progress);
    stop_children(batch);
    return r;
}

static int conclude(struct batch *batch, int r)
{
    if (r < 0)
        return emu_cli_fail("sim", "run: %s", strerror(-r));
    if (is_interrupted) {
        (void)emu_cli_fail("sim", "run: interrupted, %zu of %zu runs were done", batch->n_done, batch->n_runs);
        return 128 + is_interrupted;
    }
    if (batch->is_json && print_json(batch) != EMU_EXIT_DONE)
        return EMU_EXIT_FAILED;
    if (batch->data_dir && emu_heat_draw("sim", batch->data_dir) != EMU_EXIT_DONE)
        return EMU_EXIT_FAILED;
    if (!batch->is_quiet)
        fprintf(stderr, "%zu runs of experiments, %llu figures: %llu passed, %llu failed\n", batch->n_runs,
                (unsigned long long)(batch->n_passed + batch->n_failed), (unsigned long long)batch->n_passed,
                (unsigned long long)batch->n_failed);
    return batch->n_failed > 0 ? EMU_EXIT_FAILED : EMU_EXIT_DONE;
}

static int run_all(struct batch *batch)
{
    struct sigaction action = { .sa_handler = on_interrupt };
    size_t bytes = batch->n_runs * sizeof(*batch->shared);
    void *shared;
    int r;

    if (batch->n_runs == 0)
        return emu_cli_fail("sim", "run: all of these need real processes and are not run here");
    if (batch->data_dir && mkdir(batch->data_dir, 0777) < 0 && errno != EEXIST)
        return emu_cli_fail("sim", "--data: %s: %s", batch->data_dir, strerror(errno));
    shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return emu_cli_fail("sim", "run: %s", strerror(errno));
    batch->shared = shared;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    emu_cli_progress_init(&batch->progress, batch->is_quiet);
    r = run_batch(batch);
    munmap(shared, bytes);
    return conclude(batch, r);
}

static const struct emu_option options[] = {
    { "quick", 'q', NULL, "reduced sizes with the same tolerances (default)", EMU_OPTION_UNSET(struct batch, is_full) },
    { "full", 'f', NULL, "the sizes of the machine specification; may take hours",
      EMU_OPTION_SET(struct batch, is_full) },
    { "seed", 's', "N", "of all random choices (default: 1)",
      EMU_OPTION_NUMBER(struct batch, seed, 0, INT64_MAX - SEEDS_MAX) },
    { "seeds", 'n', "N", "run with N seeds, N on from the first (default: 1); what is only counted runs once",
      EMU_OPTION_NUMBER(struct batch, n_seeds, 1, SEEDS_MAX) },
    { "threads", 't', "N", "threads of each simulation (default: 1); results do not depend on it",
      EMU_OPTION_NUMBER(struct batch, n_threads, 1, THREADS_MAX) },
    { "jobs", 'J', "N", "experiments at a time (default: processors / threads)",
      EMU_OPTION_NUMBER(struct batch, n_jobs, 1, JOBS_MAX) },
    { "data", 'd', "FOLDER", "write the curves of experiments there, and plots of them (SVG and PNG)",
      EMU_OPTION_TEXT(struct batch, data_dir) },
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"experiments\": [...]}",
      EMU_OPTION_SET(struct batch, is_json) },
    { "quiet", 0, NULL, "no progress bar", EMU_OPTION_SET(struct batch, is_quiet) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "sim",
    .usage = "emunic sim run ID...|all [OPTION]...",
    .about = "Run experiments and print one line per figure:\n"
             "  EXP <id> <metric> src=<value> got=<value> unit=<u> tol=<t> kind=<k> seed=<n> verdict=<PASS|FAIL>\n"
             "An ID is one of `emunic sim list`, or the front of several: `XC` for all of that machine.\n",
    .options = options,
    .after = "Exit status: 0 all verdicts are PASS, 1 one is FAIL, 2 wrong usage, 130 interrupted.\n"
             "\n"
             "Example:\n"
             "  emunic sim run all --quick\n",
    .words = EMU_WORDS_ANYWHERE,
};

static uint64_t default_jobs(uint64_t n_threads)
{
    uint64_t jobs = emu_processors_allowed() / n_threads;

    return jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
}

int emu_cli_sim_run(int argc, char **argv)
{
    struct batch batch = { .seed = 1, .n_seeds = 1, .n_threads = 1 };
    int first;
    int status = emu_options_parse(&command, argc, argv, &batch, &first);

    if (status != EMU_PROCEED)
        return status;
    if (first == argc)
        return emu_cli_usage("sim", "run: an experiment or 'all' is missing");
    status = EMU_EXIT_DONE;
    for (int i = first; status == EMU_EXIT_DONE && i < argc; i++)
        status = choose(&batch, argv[i]);
    if (batch.n_jobs == 0)
        batch.n_jobs = default_jobs(batch.n_threads);
    if (status == EMU_EXIT_DONE)
        status = run_all(&batch);
    for (size_t i = 0; i < batch.n_runs; i++) {
        json_decref(batch.runs[i].report);
        free(batch.runs[i].text);
    }
    free(batch.runs);
    return status;
}
