/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job and its processes.
 *
 *   emunic run ─┬─ keeper            makes the job's folder, and removes it if we cannot
 *               ├─ emunic            of this job alone; none with --server
 *               └─ mpirun ── ranks   each through emunic-rank, which joins the domain and dies with mpirun
 *
 * With several hosts there is one mpirun more instead of emunic, first to come and last to go:
 *
 *               ├─ mpirun ── emunic-host   on each host one; the one on this host is the machine's head
 *
 * It ends when the job's domain ends; when one of them fails it kills all. Its standard output tells who listens.
 *
 * The admin connection that created the domain is the job's life for emunic: when it closes, emunic ends what is
 * left of the job. Everything that can happen arrives at one poll(): a signal or a child's death by signalfd, the
 * server's end by the admin connection, a deadline by the time limit.
 *
 *   starting -> running -> ending (a signal told us to: mpirun has it; or emunic died: the ranks have SIGTERM;
 *                                  at kill_at mpirun gets SIGKILL)
 *                       -> mpirun has ended -> report, end of the domain, sweep, folder removed, keeper dismissed
 *
 * mpirun gets SIGTERM only when nothing else ends the job: Open MPI 4.1 crashes now and then when a rank fails just
 * before. When emunic dies, ranks notice by themselves, so the others get SIGTERM and mpirun sees nothing but failing
 * ranks. Now and then, when a rank was killed, mpirun waits for ever at its end, for a lock of its PMIx: after a
 * failure it gets SIGKILL when no rank lives and it sleeps from one look to the next (job_events.c). When we die, the
 * kernel kills mpirun, and mpirun's death kills the ranks.
 *
 * A terminal's Ctrl-C goes to everybody in the foreground group. mpirun stays in that group only if stdin is the
 * terminal, because nobody else may read it; then what the kernel sent to us it sent to mpirun too, and only signals of
 * processes are passed on. Otherwise mpirun has a group of its own and all are passed on. So mpirun gets each exactly
 * once; it takes a second one for impatience. For the same reason a signal that comes twice within REPEAT_NS (`timeout`
 * signals the process and then its group) counts once here.
 *
 * We are the subreaper of all: a process whose parent dies becomes our child, is reaped, and at the end killed. If
 * we were started with children that we do not know (a shell did exec), only processes with the job's
 * cookie in their environment are.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/faults.h"
#include "emunic/cli/job_inner.h"
#include "emunic/cli/private_server.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/sweep.h"
#include "emunic/fabric/machine.h"

#define SWEEP_MS      1000
#define SWEEPS_MAX    3
#define LOOK_MS_MAX   60000
#define LOOK_FIRST_NS 1500000000ull /* whether mpirun hangs, behind a failure */

/* ---- run ---- */

/* As by SIGTERM, which a living mpirun sends. */
static void lose_launcher(struct job *job)
{
    const struct signalfd_siginfo end = { .ssi_signo = SIGTERM };

    emu_cli_fail("run", "the mpirun that started this has died: ending the job");
    emu_job_obey(job, &end);
}

static bool is_past(uint64_t deadline_ns)
{
    return deadline_ns != 0 && emu_clock_ns() >= deadline_ns;
}

/* Until the next deadline, at most LOOK_MS_MAX; -1: there is none. */
static int time_left_ms(const struct job *job)
{
    uint64_t now_ns = emu_clock_ns();
    uint64_t next_ns = job->kill_at_ns;

    if (next_ns == 0 || (job->limit_ns != 0 && job->limit_ns < next_ns))
        next_ns = job->limit_ns;
    if (next_ns == 0 || (job->look_at_ns != 0 && job->look_at_ns < next_ns))
        next_ns = job->look_at_ns;
    if (next_ns == 0)
        return -1;
    if (now_ns >= next_ns)
        return 0;
    return next_ns - now_ns > LOOK_MS_MAX * 1000000ull ? LOOK_MS_MAX : (int)((next_ns - now_ns) / 1000000) + 1;
}

/* Until mpirun has ended. */
static void watch(struct job *job)
{
    struct pollfd events[4] = { { .fd = job->signal_fd, .events = POLLIN },
                                { .fd = job->session.fd, .events = POLLRDHUP },
                                { .fd = job->output.fd, .events = POLLIN },
                                { .fd = job->plan->launcher_fd > 0 ? job->plan->launcher_fd : -1 } };

    if (job->plan->timeout_s > 0)
        job->limit_ns = emu_clock_ns() + job->plan->timeout_s * 1000000000ull;
    while (!job->mpirun_ended) {
        events[1].fd = job->server_lost ? -1 : job->session.fd;
        if (poll(events, 4, time_left_ms(job)) < 0)
            continue; /* EINTR: a stop and its end; all else comes by descriptor */
        if (events[0].revents)
            emu_job_read_signals(job);
        if (events[2].revents)
            emu_mpirun_output_read(&job->output);
        if (job->look_at_ns == 0 && job->output.end != EMU_RANK_END_UNKNOWN)
            job->look_at_ns = emu_clock_ns() + LOOK_FIRST_NS;
        if (events[1].revents || job->emunic_ended || job->hosts_ended)
            emu_job_lose_server(job);
        if (events[3].revents) {
            events[3].fd = -1;
            lose_launcher(job);
        }
        if (is_past(job->look_at_ns))
            emu_job_look_for_hang(job);
        if (is_past(job->limit_ns))
            emu_job_end_for_time(job);
        if (is_past(job->kill_at_ns)) {
            emu_job_end_mpirun(job, SIGKILL);
            job->kill_at_ns = 0;
        }
    }
    emu_mpirun_output_read(&job->output);
    emu_mpirun_output_finish(&job->output, stderr);
    if (WIFSIGNALED(job->mpirun_status) && !job->mpirun_killed && !job->told_to_end)
        emu_cli_fail("run", "mpirun (pid %d) was killed by signal %d: ending the job", (int)job->mpirun,
                     WTERMSIG(job->mpirun_status));
}

/* "c0-0c0s1n2 (nid 6)", with several hosts also which. */
static void describe_node(const struct emu_job_plan *plan, uint32_t rank, char *text, size_t len)
{
    uint32_t nid = plan->rank_nids[rank];
    const char *host = plan->hosts ? plan->hosts->names[plan->rank_hosts[rank]] : NULL;
    struct emu_machine *machine = NULL;
    char name[64] = "";

    if (emu_machine_load(plan->machine, plan->machine_dir, &machine, NULL, 0) == 0)
        emu_machine_cname(machine, nid, name, sizeof(name));
    emu_machine_destroy(machine);
    snprintf(text, len, "%s%s(nid %u%s%s)", name, name[0] ? " " : "", nid, host ? ", host " : "", host ? host : "");
}

/* One line for the first rank that failed; nothing if something else ended the job, which has been told. */
static void tell_failure(const struct job *job)
{
    const struct emu_mpirun_output *output = &job->output;
    int status = WEXITSTATUS(job->mpirun_status);
    uint32_t rank = output->rank;
    char node[512];

    if (job->told_to_end || job->server_lost)
        return;
    if (job->mpirun_hung && rank < job->plan->n_ranks) {
        describe_node(job->plan, rank, node, sizeof(node));
        emu_cli_fail("run", "rank %u on node %s %s; mpirun did not end after that and was killed", rank, node,
                     output->end == EMU_RANK_END_SIGNAL ? "was ended by a signal" : "failed");
        return;
    }
    if (!WIFEXITED(job->mpirun_status) || status == 0)
        return;
    if (output->end == EMU_RANK_END_UNKNOWN || rank >= job->plan->n_ranks) {
        if (!output->has_said)
            emu_cli_fail("run", "the job failed with status %d; mpirun does not say which rank and why, try --verbose",
                         status);
        return;
    }
    describe_node(job->plan, rank, node, sizeof(node));
    switch (output->end) {
    case EMU_RANK_END_SIGNAL:
        emu_cli_fail("run", "rank %u on node %s was ended by signal %d (%s)", rank, node, status - 128,
                     strsignal(status - 128));
        return;
    case EMU_RANK_END_ABORT:
        emu_cli_fail("run", "rank %u on node %s aborted the job with status %d", rank, node, status);
        return;
    case EMU_RANK_END_NO_FINALIZE:
        emu_cli_fail("run", "rank %u on node %s ended without finalizing MPI or PMI", rank, node);
        return;
    default:
        emu_cli_fail("run", "rank %u on node %s ended with status %d", rank, node, status);
    }
}

/* ---- end ---- */

static void end_domain(struct job *job)
{
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_END, .domain = { .signal = SIGKILL } };

    if (emu_session_request(&job->session, &msg, NULL, 0, NULL) == 0 && msg.result < 0)
        emu_cli_fail("run", "ending the communication domain: %s", strerror(-msg.result));
}

static void ask_for_links(struct job *job, json_t **links_out)
{
    int r = emu_cli_ask(&job->session, EMU_MSG_LINKS, links_out);

    if (r < 0)
        emu_cli_fail("run", "no report: %s", strerror(-r));
    else
        emu_cli_tell_missing("run", *links_out);
}

/* What the rules did, for people. */
static void tell_faults(struct job *job)
{
    json_t *report = NULL;

    if (emu_cli_ask(&job->session, EMU_MSG_FAULTS, &report) < 0)
        return;
    fprintf(stderr, "emunic run: injected faults\n");
    emu_cli_print_faults(report, job->domain_id, 2, stderr);
    json_decref(report);
}

/*
 * On one host all processes of a job descend from us, and orphans become our children: without a child but the keeper
 * there are none.
 */
static bool is_swept(const struct job *job)
{
    return !job->plan->hosts && job->keeper.pid && emu_sweep_is_only_child(job->keeper.pid);
}

/* Whatever is still there of the job. The keeper is the last child. */
static void sweep(struct job *job)
{
    const struct emu_sweep strays = { .parent = job->has_foreign_children ? 0 : getpid(),
                                      .except = job->keeper.pid,
                                      .marker = job->marker,
                                      .since = job->keeper_plan.since };

    for (int i = 0; i < SWEEPS_MAX; i++) {
        emu_job_reap(job);
        if (is_swept(job) || emu_sweep(&strays, SIGKILL, SWEEP_MS) <= 0)
            break;
    }
    emu_job_reap(job);
}

static void end_emunic(struct job *job)
{
    if (job->emunic_ended && job->emunic.link >= 0)
        close(job->emunic.link);
    else if (!job->emunic_ended && job->emunic.pid)
        emu_private_server_end(&job->emunic, NULL);
}

static void end_keeper(struct job *job)
{
    if (!job->keeper.pid)
        return;
    emu_remove_folder(job->folder);
    if (job->keeper_ended)
        emu_keeper_dismiss_second(&job->keeper);
    else
        emu_keeper_dismiss(&job->keeper);
    /* Made since, by whoever took its place. */
    emu_remove_folder(job->folder);
}

/* Any part of the job may be missing. */
static void clean_up(struct job *job)
{
    if (job->has_domain)
        end_domain(job);
    if (job->hosts)
        emu_job_end_hosts(job);
    end_emunic(job);
    if (job->mpirun || job->hosts || job->emunic_ended)
        sweep(job);
    end_keeper(job);
    if (job->session.fd >= 0)
        emu_session_close(&job->session);
    if (job->hosts_fd >= 0)
        close(job->hosts_fd);
    if (job->signal_fd >= 0)
        close(job->signal_fd);
    emu_mpirun_output_close(&job->output);
}

/* mpirun answers with the first failing rank's status, but 1 when it was told to end. */
static int exit_status(const struct job *job)
{
    bool is_clean = job->mpirun_ended && WIFEXITED(job->mpirun_status) && WEXITSTATUS(job->mpirun_status) == 0;

    if (job->lacks_nodes && !job->told_to_end)
        return EMU_JOB_NODES_TAKEN;
    if (job->is_over_time && !is_clean)
        return EMU_EXIT_TIMEOUT;
    if (job->told_to_end && !is_clean)
        return 128 + job->told_to_end;
    if (job->server_lost || !job->mpirun_ended)
        return EMU_EXIT_FAILED;
    if (WIFSIGNALED(job->mpirun_status))
        return 128 + WTERMSIG(job->mpirun_status);
    return WEXITSTATUS(job->mpirun_status);
}

static bool has_children(void)
{
    siginfo_t info;

    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

int emu_job_run(const struct emu_job_plan *plan, json_t **links_out)
{
    struct job job = { .plan = plan,
                       .signal_fd = -1,
                       .keeper.link = -1,
                       .emunic.link = -1,
                       .session.fd = -1,
                       .hosts_fd = -1,
                       .output = { .fd = -1, .mpirun_fd = -1 },
                       .has_foreign_children = has_children() };
    int status = EMU_EXIT_DONE;
    int r;

    *links_out = NULL;
    r = emu_job_choose_names(&job);
    if (r == 0)
        r = emu_job_open_signals(&job);
    if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        r = -errno;
    if (r < 0)
        status = emu_cli_fail("run", "cannot start: %s", strerror(-r));
    if (status == EMU_EXIT_DONE)
        status = emu_job_start_keeper(&job);
    if (status == EMU_EXIT_DONE && !plan->server && !plan->hosts)
        status = emu_job_start_emunic(&job);
    if (status == EMU_EXIT_DONE && plan->hosts)
        status = emu_job_start_hosts(&job);
    if (status == EMU_EXIT_DONE)
        status = emu_job_open_session(&job);
    if (status == EMU_EXIT_DONE)
        status = emu_job_create_domain(&job);
    if (status == EMU_EXIT_DONE)
        status = emu_job_set_faults(&job);
    if (status == EMU_EXIT_DONE)
        status = emu_job_launch(&job);
    if (status == EMU_EXIT_DONE) {
        watch(&job);
        tell_failure(&job);
        if (plan->wants_links && !job.server_lost)
            ask_for_links(&job, links_out);
        if (plan->n_faults > 0 && !plan->is_quiet && !job.server_lost)
            tell_faults(&job);
    }
    clean_up(&job);
    return exit_status(&job);
}
