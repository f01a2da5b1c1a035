/* SPDX-License-Identifier: BSD-3-Clause */
/* What can happen to a job that runs: signals, deaths, the loss of its server, the end of its time. */
#include <signal.h>
#include <sys/signalfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/job_inner.h"
#include "emunic/cli/sweep.h"

#define KILL_AFTER_NS 3000000000ull
#define REPEAT_NS     300000000ull
#define HANG_NS       1500000000ull
#define WHY_MS        2000

void emu_job_end_mpirun(struct job *job, int signal)
{
    job->mpirun_killed = job->mpirun_killed || signal == SIGKILL;
    if (job->mpirun && !job->mpirun_ended)
        kill(job->mpirun, signal);
}

static void end_soon(struct job *job)
{
    if (job->kill_at_ns == 0)
        job->kill_at_ns = emu_clock_ns() + KILL_AFTER_NS;
}

/* All that have ended, known and strayed. */
void emu_job_reap(struct job *job)
{
    pid_t pid;
    int status;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid == job->mpirun) {
            job->mpirun_ended = true;
            job->mpirun_status = status;
        } else if (pid == job->hosts) {
            job->hosts_ended = true;
            job->hosts_status = status;
        } else if (pid == job->keeper.pid) {
            job->keeper_ended = true;
        } else if (pid == job->emunic.pid) {
            job->emunic_ended = true;
            job->emunic_status = status;
        }
    }
}

/* Says why the server has gone. Its sockets close a moment before it can be waited for. */
void emu_job_explain_loss(struct job *job)
{
    pid_t pid = job->emunic.pid;

    if (job->plan->server) {
        emu_cli_fail("run", "server %s (pid %u) has gone: ending the job", job->server, job->session.server_pid);
        return;
    }
    if (job->plan->hosts) {
        emu_cli_fail("run", "emunic on one of the hosts has ended: ending the job");
        return;
    }
    if (!job->emunic_ended) {
        emu_child_await(&job->emunic, WHY_MS, &job->emunic_status);
        job->emunic_ended = true;
    }
    if (WIFSIGNALED(job->emunic_status))
        emu_cli_fail("run", "emunic (pid %d) was killed by signal %d: ending the job", (int)pid,
                     WTERMSIG(job->emunic_status));
    else
        emu_cli_fail("run", "emunic (pid %d) has stopped: ending the job", (int)pid);
}

void emu_job_lose_server(struct job *job)
{
    if (job->server_lost)
        return;
    job->server_lost = true;
    emu_job_explain_loss(job);
    if (!job->mpirun_ended)
        emu_sweep(&(struct emu_sweep){ .parent = job->mpirun }, SIGTERM, 0);
    end_soon(job);
}

void emu_job_obey(struct job *job, const struct signalfd_siginfo *info)
{
    int signal = (int)info->ssi_signo;
    bool mpirun_has_it = job->shares_terminal && info->ssi_code == SI_KERNEL;
    uint64_t now_ns = emu_clock_ns();

    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
        if (job->told_to_end) {
            if (now_ns - job->told_ns > REPEAT_NS)
                emu_job_end_mpirun(job, SIGKILL);
            return;
        }
        job->told_to_end = signal;
        job->told_ns = now_ns;
        end_soon(job);
    }
    if (!mpirun_has_it)
        emu_job_end_mpirun(job, signal);
}

void emu_job_read_signals(struct job *job)
{
    struct signalfd_siginfo info;

    while (read(job->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            emu_job_reap(job);
        else
            emu_job_obey(job, &info);
    }
}

/* The program has had all its time. */
void emu_job_end_for_time(struct job *job)
{
    job->limit_ns = 0;
    if (job->told_to_end)
        return;
    emu_cli_fail("run", "the job has run for the %u s that --timeout gives it: ending it", job->plan->timeout_s);
    job->is_over_time = true;
    job->told_to_end = SIGTERM;
    end_soon(job);
    emu_job_end_mpirun(job, SIGTERM);
}

/* How often the process has slept or lost its core; -1: it does not sleep now. */
static long count_sleeps(pid_t pid)
{
    char path[64], line[256];
    bool is_asleep = false;
    long sum = 0, n;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, "State:\tS", 8) == 0)
            is_asleep = true;
        else if (sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1 ||
                 sscanf(line, "nonvoluntary_ctxt_switches: %ld", &n) == 1)
            sum += n;
    }
    if (file)
        fclose(file);
    return is_asleep ? sum : -1;
}

/* All ranks have ended, one of them badly, and mpirun, which says so, has slept since the last look. */
void emu_job_look_for_hang(struct job *job)
{
    long n = count_sleeps(job->mpirun);

    if (n >= 0 && n == job->mpirun_sleeps && emu_sweep(&(struct emu_sweep){ .parent = job->mpirun }, 0, 0) == 0) {
        job->mpirun_hung = true;
        emu_job_end_mpirun(job, SIGKILL);
    }
    job->mpirun_sleeps = n;
    job->look_at_ns = emu_clock_ns() + HANG_NS;
}
