/* SPDX-License-Identifier: BSD-3-Clause */
/* The emunics of a job on several hosts: one mpirun more. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/job_inner.h"

#define HOSTS_START_NS 60000000000ull /* mpirun reaches all hosts, and they each other */
#define HOSTS_END_NS   5000000000ull
#define LOOK_AGAIN_MS  20

static _Noreturn void become_hosts(const struct job *job, pid_t run, int out)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    /* The mark of what a clean-up kills. */
    unsetenv("EMUNIC_COOKIE");
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(EMU_EXIT_FAILED);
    emu_job_become_mpirun(job, run, false, emu_mpirun_hosts);
}

/*
 * Until there is something from the emunics, or a while has passed. False, after a message unless a signal ended the
 * wait: it is no use to wait on. n_ready: counts who says that it listens; NULL: nobody will say anything.
 */
bool emu_job_wait_for_hosts(struct job *job, uint32_t *n_ready)
{
    struct pollfd events[2] = { { .fd = n_ready ? job->hosts_fd : -1, .events = POLLIN },
                                { .fd = job->signal_fd, .events = POLLIN } };
    char bytes[64];
    ssize_t got = 0;

    poll(events, 2, LOOK_AGAIN_MS);
    emu_job_read_signals(job);
    if (job->told_to_end)
        return false;
    if (events[0].revents)
        got = read(job->hosts_fd, bytes, sizeof(bytes));
    for (ssize_t i = 0; i < got; i++)
        *n_ready += bytes[i] == 'r';
    if (job->hosts_ended)
        emu_cli_fail("run", "mpirun could not start emunic on all hosts");
    else if (emu_clock_ns() > job->hosts_limit_ns)
        emu_cli_fail("run", "not all of %u hosts found each other within %llu s", job->plan->hosts->n,
                     HOSTS_START_NS / 1000000000);
    else
        return true;
    return false;
}

int emu_job_start_hosts(struct job *job)
{
    pid_t run = getpid();
    uint32_t n_ready = 0;
    int out[2];

    if (pipe2(out, O_CLOEXEC) < 0)
        return emu_cli_fail("run", "cannot start: %s", strerror(errno));
    job->hosts_fd = out[0];
    job->hosts_limit_ns = emu_clock_ns() + HOSTS_START_NS;
    fflush(NULL);
    job->hosts = fork();
    if (job->hosts == 0)
        become_hosts(job, run, out[1]);
    close(out[1]);
    if (job->hosts < 0) {
        job->hosts = 0;
        return emu_cli_fail("run", "cannot start mpirun: %s", strerror(errno));
    }
    while (n_ready < job->plan->hosts->n) {
        if (!emu_job_wait_for_hosts(job, &n_ready))
            return EMU_EXIT_FAILED;
    }
    return EMU_EXIT_DONE;
}

/* They end by themselves when the job's domain ends. */
void emu_job_end_hosts(struct job *job)
{
    static const int signals[] = { 0, SIGTERM, SIGKILL };

    /* When one of them has failed mpirun is at it already, and takes a signal badly then. */
    for (size_t i = job->has_domain ? 0 : 1; i < sizeof(signals) / sizeof(signals[0]); i++) {
        uint64_t end_ns = emu_clock_ns() + HOSTS_END_NS;

        if (!job->hosts_ended && signals[i])
            kill(job->hosts, signals[i]);
        while (!job->hosts_ended && emu_clock_ns() < end_ns) {
            poll(&(struct pollfd){ .fd = job->signal_fd, .events = POLLIN }, 1, LOOK_AGAIN_MS);
            emu_job_read_signals(job);
        }
        /* The ranks may have ended, with status 0, before we heard that an emunic had. */
        if (!signals[i] && job->hosts_ended && job->hosts_status != 0 && !job->server_lost && !job->told_to_end) {
            job->server_lost = true;
            emu_job_explain_loss(job);
        }
    }
}
