/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job needs before its ranks: names, its keeper, emunic, the session with it, and its domain. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "emunic/abi/credentials.h"
#include "emunic/abi/table.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/faults.h"
#include "emunic/cli/job_inner.h"
#include "emunic/cli/private_server.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/sweep.h"

#define NAMES_MAX       8 /* that are tried */
#define BASE_LEN_MAX    80
#define BASE_ROOM_BYTES (16u << 20)

int emu_job_open_signals(struct job *job)
{
    static const int wanted[] = { SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD };
    struct sigaction action;
    sigset_t set;

    /* If we inherited that SIGCHLD is ignored, children would vanish without a status. */
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        /* Who started us with a signal ignored (nohup) wants it so. */
        if (sigaction(wanted[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(&set, wanted[i]);
    }
    if (sigprocmask(SIG_BLOCK, &set, &job->old_mask) < 0)
        return -errno;
    job->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return job->signal_fd < 0 ? -errno : 0;
}

/* Shared memory of MPI lies there too: memory before disk. mpirun's paths below it are long: keep it short. */
static bool is_base(const char *folder)
{
    return folder && folder[0] == '/' && strlen(folder) <= BASE_LEN_MAX && access(folder, W_OK | X_OK) == 0;
}

/* In containers /dev/shm can be small, and mpirun hangs where PMIx finds no room. */
static bool has_room(const char *folder)
{
    struct statvfs fs;

    return statvfs(folder, &fs) == 0 && (uint64_t)fs.f_bavail * fs.f_frsize >= BASE_ROOM_BYTES;
}

/* Nobody can take a name before that nobody can guess. */
static int choose_server_name(struct job *job)
{
    uint64_t random;

    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return -errno;
    snprintf(job->server, sizeof(job->server), "run-%u-%016llx-%d", (unsigned)geteuid(), (unsigned long long)random,
             (int)getpid());
    return 0;
}

int emu_job_choose_names(struct job *job)
{
    const char *bases[] = { getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/tmp" };
    const char *base = NULL;
    uint32_t random[2];

    do {
        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
            return -errno;
        job->cookie = random[0] & INT32_MAX;
    } while (job->cookie == 0);
    job->ptag = emu_ptag_of_cookie(job->cookie);
    snprintf(job->marker, sizeof(job->marker), "EMUNIC_COOKIE=%u", job->cookie);
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]) && !(base && has_room(base)); i++) {
        if (is_base(bases[i]) && (!base || has_room(bases[i])))
            base = bases[i];
    }
    if (!base)
        return -ENOENT;
    snprintf(job->folder, sizeof(job->folder), "%s/emunic-%d-%08x", base, (int)getpid(), random[1]);
    if (!job->plan->server)
        return choose_server_name(job);
    snprintf(job->server, sizeof(job->server), "%s", job->plan->server);
    return 0;
}

/*
 * Waits for its first byte; a signal that ends us is noticed. EMU_EXIT_DONE, or EMU_EXIT_FAILED after a message or a
 * signal.
 */
static int await_first_byte(struct job *job, const struct emu_child *child, char *byte_out)
{
    struct pollfd events[2] = { { .fd = child->link, .events = POLLIN }, { .fd = job->signal_fd, .events = POLLIN } };
    struct signalfd_siginfo info;

    for (;;) {
        if (poll(events, 2, -1) < 0)
            return emu_cli_fail("run", "poll: %s", strerror(errno));
        if (events[0].revents)
            break;
        while (read(job->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
            if (info.ssi_signo == SIGINT || info.ssi_signo == SIGTERM || info.ssi_signo == SIGHUP) {
                job->told_to_end = (int)info.ssi_signo;
                return EMU_EXIT_FAILED;
            }
        }
    }
    return read(child->link, byte_out, 1) == 1 ? EMU_EXIT_DONE : emu_cli_fail("run", "emunic did not start");
}

int emu_job_start_keeper(struct job *job)
{
    char byte;
    int r;

    job->keeper_plan = (struct emu_keeper_plan){
        .folder = job->folder,
        .marker = job->marker,
        .since = emu_sweep_since(),
    };
    r = emu_keeper_start(&job->keeper_plan, &job->keeper);
    if (r < 0)
        return emu_cli_fail("run", "cannot start: %s", strerror(-r));
    return await_first_byte(job, &job->keeper, &byte);
}

/* Tries names until one is free: it is as unlikely as can be that the first one is not. */
int emu_job_start_emunic(struct job *job)
{
    const struct emu_server_options options = { .name = job->server,
                                                .machine = job->plan->machine,
                                                .machine_dir = job->plan->machine_dir,
                                                .rights.is_confined = true,
                                                .bind = job->plan->bind,
                                                .stops_with_last_job = true,
                                                .stops_with_starter = true,
                                                .starts_routed = job->plan->is_routed,
                                                .time = job->plan->time };
    char byte = EMU_CHILD_TAKEN;
    int status;
    int r;

    for (unsigned i = 0; i < NAMES_MAX && byte == EMU_CHILD_TAKEN; i++) {
        if (i > 0) {
            emu_private_server_end(&job->emunic, NULL);
            r = choose_server_name(job);
            if (r < 0)
                return emu_cli_fail("run", "cannot start: %s", strerror(-r));
        }
        r = emu_private_server_start(&options, &job->emunic);
        if (r < 0)
            return emu_cli_fail("run", "cannot start emunic: %s", strerror(-r));
        status = await_first_byte(job, &job->emunic, &byte);
        if (status != EMU_EXIT_DONE)
            return status;
    }
    if (byte == EMU_CHILD_READY)
        return EMU_EXIT_DONE;
    return emu_cli_fail("run", "emunic finds no name that is free");
}

int emu_job_open_session(struct job *job)
{
    int r;

    r = emu_session_open(&job->session, job->server, EMU_SOCKET_ADMIN);
    if (r < 0)
        job->session.fd = -1;
    if (r == -ECONNREFUSED)
        return emu_cli_fail("run", "no server named '%s' runs here; `emunic serve --name %s` starts one", job->server,
                            job->server);
    if (r == -EPERM)
        return emu_cli_fail("run", "server '%s' does not answer; its admin socket is for root and its own user",
                            job->server);
    if (r == -ENETDOWN)
        return emu_cli_fail("run", "server '%s' does not answer", job->server);
    if (r < 0)
        return emu_cli_fail("run", "server '%s': %s", job->server, strerror(-r));
    emu_cli_limit_answers(&job->session);
    return EMU_EXIT_DONE;
}

/* Before the first rank starts. */
int emu_job_set_faults(struct job *job)
{
    const struct emu_job_plan *plan = job->plan;
    int r;

    if (plan->n_faults > 0) {
        r = emu_cli_set_faults(&job->session, job->domain_id, plan->faults, plan->n_faults, false);
        if (r < 0)
            return emu_cli_fail("run", "--faults: server '%s': %s", job->server, strerror(-r));
    }
    for (uint32_t i = 0; i < plan->n_changes; i++) {
        r = emu_cli_change_network(&job->session, &plan->changes[i]);
        if (r < 0)
            return emu_cli_fail("run", "--faults: server '%s': network: %s", job->server, strerror(-r));
    }
    return EMU_EXIT_DONE;
}

/* What the server says about a failure, a line for each host. False: nothing. */
static bool tell_text(struct emu_fds *fds)
{
    FILE *text = fds->n_fds > 0 ? fdopen(fds->fd[0], "r") : NULL;
    char line[512];

    if (!text) {
        emu_fds_close(fds);
        return false;
    }
    while (fgets(line, sizeof(line), text)) {
        line[strcspn(line, "\n")] = '\0';
        emu_cli_fail("run", "%s", line);
    }
    fclose(text);
    return true;
}

/*
 * One request. 0 or negative errno. -EHOSTUNREACH: not all hosts have found the first one yet; -ECONNABORTED: they
 * have, but not each other, as a message has told.
 */
static int ask_for_domain(struct job *job)
{
    const struct emu_job_plan *plan = job->plan;
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_CREATE,
                           .domain = { .ptag = job->ptag,
                                       .cookie = job->cookie,
                                       .owner_uid = geteuid(),
                                       .member_limit = plan->member_limit,
                                       .n_ranks = plan->n_ranks,
                                       .flags = (plan->is_routed ? EMU_TABLE_ROUTED : 0) |
                                                (plan->hosts ? EMU_DOMAIN_HAS_HOSTS : 0) |
                                                (plan->takes_own_nodes ? EMU_DOMAIN_OWN_NODES : 0),
                                       .begin_after_ps = plan->begin_after_ps } };
    ssize_t bytes = (ssize_t)(plan->n_ranks * sizeof(*plan->rank_nids));
    int fd = memfd_create("emunic-ranks", MFD_CLOEXEC);
    struct emu_fds fds = { 0 };
    int r = 0;

    if (fd < 0 || write(fd, plan->rank_nids, (size_t)bytes) != bytes ||
        (plan->hosts && write(fd, plan->rank_hosts, (size_t)bytes) != bytes))
        r = -errno;
    if (r == 0)
        r = emu_session_request(&job->session, &msg, &fd, 1, &fds);
    if (fd >= 0)
        close(fd);
    if (r == 0)
        r = tell_text(&fds) ? -ECONNABORTED : msg.result;
    if (r == 0)
        job->domain_id = msg.domain.domain_id;
    return r;
}

int emu_job_create_domain(struct job *job)
{
    int r = ask_for_domain(job);

    while (r == -EHOSTUNREACH && emu_job_wait_for_hosts(job, NULL))
        r = ask_for_domain(job);
    if (r == -EHOSTUNREACH)
        return EMU_EXIT_FAILED;
    if (r == -ECONNABORTED)
        return emu_cli_fail("run", "the job cannot start while hosts do not reach each other");
    if (r == -EBUSY && job->plan->takes_own_nodes) {
        job->lacks_nodes = true;
        return EMU_EXIT_FAILED;
    }
    if (r < 0)
        return emu_cli_fail("run", "cannot create a communication domain on server '%s': %s", job->server,
                            strerror(-r));
    job->has_domain = true;
    return EMU_EXIT_DONE;
}
