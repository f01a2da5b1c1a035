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
 * ranks. When we die, the kernel kills mpirun, and mpirun's death kills the ranks.
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
#include "emunic/cli/job_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/abi/credentials.h"
#include "emunic/abi/table.h"
#include "emunic/base/clock.h"
#include "emunic/cli/allocation.h"
#include "emunic/cli/child.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/faults.h"
#include "emunic/cli/keeper.h"
#include "emunic/cli/mpirun.h"
#include "emunic/cli/mpirun_output.h"
#include "emunic/cli/private_server.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/sweep.h"
#include "emunic/fabric/machine.h"

#define KILL_AFTER_NS   3000000000ull
#define REPEAT_NS       300000000ull
#define SWEEP_MS        1000
#define SWEEPS_MAX      3
#define WHY_MS          2000
#define HOSTS_START_NS  60000000000ull /* mpirun reaches all hosts, and they each other */
#define HOSTS_END_NS    5000000000ull
#define LOOK_AGAIN_MS   20
#define LOOK_MS_MAX     60000
#define NAMES_MAX       8 /* that are tried */
#define BASE_LEN_MAX    80
#define BASE_ROOM_BYTES (16u << 20)

struct job {
    const struct emu_job_plan *plan;
    char server[EMU_SERVER_NAME_MAX + 1];
    char folder[128];
    char marker[32];
    uint32_t cookie;
    uint32_t ptag;
    sigset_t old_mask;
    int signal_fd;
    bool has_foreign_children;
    bool shares_terminal; /* mpirun is in our process group */
    struct emu_keeper_plan keeper_plan;
    struct emu_child keeper;
    bool keeper_ended; /* and has been waited for */
    struct emu_child emunic;
    bool emunic_ended; /* and has been waited for */
    int emunic_status;
    struct emu_session session; /* with the admin socket; fd -1: none */
    bool lacks_nodes;           /* another job has taken some of them */
    bool has_domain;
    uint32_t domain_id;
    bool server_lost;
    pid_t hosts;             /* mpirun of the emunics; 0: none */
    int hosts_fd;            /* what they say */
    uint64_t hosts_limit_ns; /* they are ready before that */
    bool hosts_ended;
    int hosts_status;
    pid_t mpirun;                    /* 0: not started */
    struct emu_mpirun_output output; /* of mpirun */
    bool mpirun_ended;
    int mpirun_status;
    bool mpirun_killed; /* by us */
    int told_to_end;    /* signal, or 0 */
    uint64_t told_ns;
    uint64_t kill_at_ns; /* 0: no deadline */
    uint64_t limit_ns;   /* 0: it may run for ever */
    bool is_over_time;
};

/* ---- start ---- */

static int open_signals(struct job *job)
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

static int choose_names(struct job *job)
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

static int start_keeper(struct job *job)
{
    char byte;
    int r;

    job->keeper_plan = (struct emu_keeper_plan){ .folder = job->folder, .marker = job->marker };
    r = emu_keeper_start(&job->keeper_plan, &job->keeper);
    if (r < 0)
        return emu_cli_fail("run", "cannot start: %s", strerror(-r));
    return await_first_byte(job, &job->keeper, &byte);
}

/* Tries names until one is free: it is as unlikely as can be that the first one is not. */
static int start_emunic(struct job *job)
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

static int open_session(struct job *job)
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
static int set_faults(struct job *job)
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

/* ---- mpirun ---- */

/* "0*2,5*2,7": what there is of each rank, equal neighbours together. Caller frees; NULL without memory. */
static char *describe_ranks(const struct emu_job_plan *plan, const uint32_t *numbers, char *const *names)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return NULL;
    for (uint32_t first = 0, next; first < plan->n_ranks; first = next) {
        for (next = first + 1; next < plan->n_ranks && numbers[next] == numbers[first];)
            next++;
        fprintf(out, "%s", first ? "," : "");
        if (names)
            fprintf(out, "%s", names[numbers[first]]);
        else
            fprintf(out, "%u", numbers[first]);
        if (next - first > 1)
            fprintf(out, "*%u", next - first);
    }
    if (fclose(out) == EOF) {
        free(text);
        return NULL;
    }
    return text;
}

static bool set_list(const char *name, const struct emu_job_plan *plan, const uint32_t *numbers, char *const *names)
{
    char *text = describe_ranks(plan, numbers, names);
    bool is_set = text && setenv(name, text, 1) == 0;

    free(text);
    return is_set;
}

static bool set_number(const char *name, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    return setenv(name, text, 1) == 0;
}

/* Of the job that we are ourselves a process of, if we are. The map of Portals is else the user's. */
static void forget_outer_job(void)
{
    static const char *const ours[] = { "EMUNIC_NID",   "EMUNIC_RANK",      "EMUNIC_CABINET_COLUMNS",
                                        "EMUNIC_CNAME", "EMUNIC_NODE_NAME", "EMUNIC_RANK_HOSTS" };

    if (getenv("EMUNIC_RANK")) {
        unsetenv("PTL_MY_RID");
        unsetenv("PTL_NIDMAP");
        unsetenv("PTL_PIDMAP");
    }
    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++)
        unsetenv(ours[i]);
}

/* Local ranks inherit mpirun's environment. What differs between ranks is the wrapper's part. */
static bool set_rank_environment(const struct job *job)
{
    const struct emu_job_plan *plan = job->plan;
    bool is_set = set_list("EMUNIC_NIDS", plan, plan->rank_nids, NULL) &&
                  setenv("EMUNIC_SERVER", job->server, 1) == 0 && set_number("EMUNIC_COOKIE", job->cookie) &&
                  set_number("EMUNIC_PTAG", job->ptag);

    forget_outer_job();
    if (plan->hosts)
        unsetenv("EMUNIC_HOST");
    if (is_set && plan->hosts)
        is_set = set_list("EMUNIC_RANK_HOSTS", plan, plan->rank_hosts, plan->hosts->names);
    if (is_set && plan->time)
        is_set = setenv("EMUNIC_TIME", "virtual", 1) == 0 &&
                 setenv("EMUNIC_CLOCK", plan->has_real_clock ? "real" : "virtual", 1) == 0;
    if (is_set && plan->keeps_aslr)
        is_set = setenv("EMUNIC_ASLR", "1", 1) == 0;
    if (is_set && plan->huge_pages)
        is_set = setenv("EMUNIC_HUGE_PAGES", plan->huge_pages, 1) == 0;
    if (is_set && plan->keeps_hostname)
        is_set = setenv("EMUNIC_NODE_VIEW", "files", 1) == 0;
    if (is_set && plan->cabinet_columns)
        is_set = set_number("EMUNIC_CABINET_COLUMNS", plan->cabinet_columns);
    return is_set;
}

/* Nodes are emulated and ranks our children: the reasons why Open MPI refuses root do not hold. */
static bool allow_root(void)
{
    return geteuid() != 0 ||
           (setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1) == 0 && setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1) == 0);
}

/*
 * In Slurm mpirun starts its daemons as a job step, and since 20.11 a step has its processors for itself: the second
 * mpirun would wait for the end of the first.
 */
static bool share_steps(const struct emu_job_plan *plan)
{
    return !plan->hosts || setenv("SLURM_OVERLAP", "1", 1) == 0;
}

static _Noreturn void become_mpirun(const struct job *job, pid_t run, bool is_in_front,
                                    char **(*words)(const struct emu_mpirun_job *))
{
    const struct emu_mpirun_job names = { .plan = job->plan,
                                          .server = job->server,
                                          .folder = job->folder,
                                          .cookie = job->cookie,
                                          .output_fd = job->output.mpirun_fd };
    char **args;

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != run)
        _exit(EMU_EXIT_FAILED);
    if (!is_in_front)
        setpgid(0, 0);
    emu_allocation_forget();
    args = allow_root() && share_steps(job->plan) ? words(&names) : NULL;
    if (!args) {
        emu_cli_fail("run", "out of memory, or folder %s is full", job->folder);
        _exit(EMU_EXIT_FAILED);
    }
    sigprocmask(SIG_SETMASK, &job->old_mask, NULL);
    execv(job->plan->mpirun, args);
    emu_cli_fail("run", "%s: %s", job->plan->mpirun, strerror(errno));
    _exit(EMU_EXIT_FAILED);
}

static _Noreturn void become_ranks(const struct job *job, pid_t run)
{
    if (!set_rank_environment(job) || fcntl(job->output.mpirun_fd, F_SETFD, 0) < 0) {
        emu_cli_fail("run", "out of memory");
        _exit(EMU_EXIT_FAILED);
    }
    become_mpirun(job, run, job->shares_terminal, emu_mpirun_ranks);
}

static int launch(struct job *job)
{
    pid_t run = getpid();
    pid_t pid;
    int r;

    job->shares_terminal = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    r = emu_mpirun_output_open(&job->output);
    if (r < 0)
        return emu_cli_fail("run", "cannot start mpirun: %s", strerror(-r));
    fflush(NULL);
    pid = fork();
    if (pid < 0)
        return emu_cli_fail("run", "cannot start mpirun: %s", strerror(errno));
    if (pid == 0)
        become_ranks(job, run);
    job->mpirun = pid;
    return EMU_EXIT_DONE;
}

/* ---- events ---- */

static void end_mpirun(struct job *job, int signal)
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
static void reap(struct job *job)
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
static void explain_loss(struct job *job)
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

static void lose_server(struct job *job)
{
    if (job->server_lost)
        return;
    job->server_lost = true;
    explain_loss(job);
    if (!job->mpirun_ended)
        emu_sweep(&(struct emu_sweep){ .parent = job->mpirun }, SIGTERM, 0);
    end_soon(job);
}

static void obey(struct job *job, const struct signalfd_siginfo *info)
{
    int signal = (int)info->ssi_signo;
    bool mpirun_has_it = job->shares_terminal && info->ssi_code == SI_KERNEL;
    uint64_t now_ns = emu_clock_ns();

    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP) {
        if (job->told_to_end) {
            if (now_ns - job->told_ns > REPEAT_NS)
                end_mpirun(job, SIGKILL);
            return;
        }
        job->told_to_end = signal;
        job->told_ns = now_ns;
        end_soon(job);
    }
    if (!mpirun_has_it)
        end_mpirun(job, signal);
}

static void read_signals(struct job *job)
{
    struct signalfd_siginfo info;

    while (read(job->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            reap(job);
        else
            obey(job, &info);
    }
}

/* The program has had all its time. */
static void end_for_time(struct job *job)
{
    job->limit_ns = 0;
    if (job->told_to_end)
        return;
    emu_cli_fail("run", "the job has run for the %u s that --timeout gives it: ending it", job->plan->timeout_s);
    job->is_over_time = true;
    job->told_to_end = SIGTERM;
    end_soon(job);
    end_mpirun(job, SIGTERM);
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
    if (next_ns == 0)
        return -1;
    if (now_ns >= next_ns)
        return 0;
    return next_ns - now_ns > LOOK_MS_MAX * 1000000ull ? LOOK_MS_MAX : (int)((next_ns - now_ns) / 1000000) + 1;
}

/* ---- emunics of several hosts ---- */

static _Noreturn void become_hosts(const struct job *job, pid_t run, int out)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    /* The mark of what a clean-up kills. */
    unsetenv("EMUNIC_COOKIE");
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        _exit(EMU_EXIT_FAILED);
    become_mpirun(job, run, false, emu_mpirun_hosts);
}

/*
 * Until there is something from the emunics, or a while has passed. False, after a message unless a signal ended the
 * wait: it is no use to wait on. n_ready: counts who says that it listens; NULL: nobody will say anything.
 */
static bool wait_for_hosts(struct job *job, uint32_t *n_ready)
{
    struct pollfd events[2] = { { .fd = n_ready ? job->hosts_fd : -1, .events = POLLIN },
                                { .fd = job->signal_fd, .events = POLLIN } };
    char bytes[64];
    ssize_t got = 0;

    poll(events, 2, LOOK_AGAIN_MS);
    read_signals(job);
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

static int start_hosts(struct job *job)
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
        if (!wait_for_hosts(job, &n_ready))
            return EMU_EXIT_FAILED;
    }
    return EMU_EXIT_DONE;
}

/* They end by themselves when the job's domain ends. */
static void end_hosts(struct job *job)
{
    static const int signals[] = { 0, SIGTERM, SIGKILL };

    /* When one of them has failed mpirun is at it already, and takes a signal badly then. */
    for (size_t i = job->has_domain ? 0 : 1; i < sizeof(signals) / sizeof(signals[0]); i++) {
        uint64_t end_ns = emu_clock_ns() + HOSTS_END_NS;

        if (!job->hosts_ended && signals[i])
            kill(job->hosts, signals[i]);
        while (!job->hosts_ended && emu_clock_ns() < end_ns) {
            poll(&(struct pollfd){ .fd = job->signal_fd, .events = POLLIN }, 1, LOOK_AGAIN_MS);
            read_signals(job);
        }
        /* The ranks may have ended, with status 0, before we heard that an emunic had. */
        if (!signals[i] && job->hosts_ended && job->hosts_status != 0 && !job->server_lost && !job->told_to_end) {
            job->server_lost = true;
            explain_loss(job);
        }
    }
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

static int create_domain(struct job *job)
{
    int r = ask_for_domain(job);

    while (r == -EHOSTUNREACH && wait_for_hosts(job, NULL))
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

/* ---- run ---- */

/* As by SIGTERM, which a living mpirun sends. */
static void lose_launcher(struct job *job)
{
    const struct signalfd_siginfo end = { .ssi_signo = SIGTERM };

    emu_cli_fail("run", "the mpirun that started this has died: ending the job");
    obey(job, &end);
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
            read_signals(job);
        if (events[2].revents)
            emu_mpirun_output_read(&job->output);
        if (events[1].revents || job->emunic_ended || job->hosts_ended)
            lose_server(job);
        if (events[3].revents) {
            events[3].fd = -1;
            lose_launcher(job);
        }
        if (is_past(job->limit_ns))
            end_for_time(job);
        if (is_past(job->kill_at_ns)) {
            end_mpirun(job, SIGKILL);
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

    if (!WIFEXITED(job->mpirun_status) || status == 0 || job->told_to_end || job->server_lost)
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

/* Whatever is still there of the job. The keeper is the last child. */
static void sweep(struct job *job)
{
    const struct emu_sweep strays = { .parent = job->has_foreign_children ? 0 : getpid(),
                                      .except = job->keeper.pid,
                                      .marker = job->marker };

    for (int i = 0; i < SWEEPS_MAX; i++) {
        reap(job);
        if (emu_sweep(&strays, SIGKILL, SWEEP_MS) <= 0)
            break;
    }
    reap(job);
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
        end_hosts(job);
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
    r = choose_names(&job);
    if (r == 0)
        r = open_signals(&job);
    if (r == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        r = -errno;
    if (r < 0)
        status = emu_cli_fail("run", "cannot start: %s", strerror(-r));
    if (status == EMU_EXIT_DONE)
        status = start_keeper(&job);
    if (status == EMU_EXIT_DONE && !plan->server && !plan->hosts)
        status = start_emunic(&job);
    if (status == EMU_EXIT_DONE && plan->hosts)
        status = start_hosts(&job);
    if (status == EMU_EXIT_DONE)
        status = open_session(&job);
    if (status == EMU_EXIT_DONE)
        status = create_domain(&job);
    if (status == EMU_EXIT_DONE)
        status = set_faults(&job);
    if (status == EMU_EXIT_DONE)
        status = launch(&job);
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
