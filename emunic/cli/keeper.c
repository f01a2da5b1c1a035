/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper of a job.
 *
 * Whoever of the two, `emunic run` and its keeper, dies first, the other one cleans up. The keeper makes the job's
 * folder (so there is never a folder without a keeper) and is the job's emunic, unless the job uses a server that
 * runs already; then it only waits. The socket between the two is the sign of life:
 *
 *   fork -> READY -> [server: jobs come and go] -> ENDED -> DISMISS from run -> exit
 *                                                        -> end of the link: run is dead or gave up -> clean up -> exit
 *
 * Clean up: mpirun and the ranks die by their parent death signals. Whatever else carries the job's marker in its
 * environment, children of ranks, gets CLEAN_MS to end by itself, then SIGKILL; then the folder goes. /proc tells what
 * a program was started with, so only a program that was started with a cleared environment escapes.
 *
 * The keeper is in a process group of its own, where no signal of the terminal reaches it, and has a command line of
 * its own, so that `ps` tells emunic from its launcher. It stays in run's session, because Linux deals cores out to
 * sessions first (sched_autogroup) and a yield passes a core on within one session only: an emunic in another one would
 * not make room for the ranks that it shares a core with.
 */
#include "emunic/cli/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/sweep.h"
#include "emunic/base/log.h"

#define CLEAN_MS   500
#define KILL_MS    1000
#define KILLS_MAX  3
#define DISMISS_MS 3000

/* Overwrites the command line that /proc shows. Nothing that points into argv may be used afterwards. */
static void set_title(const char *title)
{
    char *start = program_invocation_name;
    FILE *file = fopen("/proc/self/cmdline", "re");
    size_t room = 0;

    if (!file)
        return;
    while (fgetc(file) != EOF)
        room++;
    fclose(file);
    if (room < 2)
        return;
    memset(start, 0, room);
    memcpy(start, title, strlen(title) < room ? strlen(title) : room - 1);
}

/* Only stderr and the link stay open. */
static int close_the_rest(int link)
{
    int null = open("/dev/null", O_RDWR);

    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
        return -errno;
    if (link != STDERR_FILENO + 1 && dup2(link, STDERR_FILENO + 1) < 0)
        return -errno;
    syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0);
    return STDERR_FILENO + 1;
}

static void tell(int link, char byte)
{
    if (send(link, &byte, 1, MSG_NOSIGNAL) < 0)
        return; /* run is dead; the next read from the link tells the same */
}

/* Until the server stops. Its messages say what went wrong. */
static int serve(const struct emu_server_options *options)
{
    struct emu_server *server;
    char err[512];
    int r;

    r = emu_daemon_create(options, &server, err, sizeof(err));
    if (r < 0) {
        emu_cli_fail("run", "%s", err);
        return r;
    }
    r = emu_server_run(server);
    if (r < 0)
        emu_log(EMU_LOG_ERROR, "%s", strerror(-r));
    emu_server_destroy(server);
    return 0;
}

static void clean_up(const char *marker, const char *folder)
{
    struct emu_sweep job = { .marker = marker };

    emu_sweep(&job, 0, CLEAN_MS);
    for (int i = 0; i < KILLS_MAX && emu_sweep(&job, SIGKILL, KILL_MS) > 0; i++)
        ;
    emu_remove_folder(folder);
}

static bool is_dismissed(int link)
{
    ssize_t got;
    char byte;

    do {
        got = recv(link, &byte, 1, 0);
    } while (got < 0 && errno == EINTR);
    return got == 1;
}

/* A launcher may have made it before us: then it must be our own, and closed to others. */
static bool make_folder(const struct emu_keeper_plan *plan)
{
    struct stat info;

    if (mkdir(plan->folder, 0700) == 0)
        return true;
    if (errno != EEXIST || !plan->may_exist)
        return false;
    return lstat(plan->folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & 077) == 0;
}

static _Noreturn void keep(const struct emu_keeper_plan *plan, int link)
{
    struct emu_server_options options;

    signal(SIGPIPE, SIG_IGN);
    /* What it has to say goes to the terminal, in the background as well. */
    signal(SIGTTOU, SIG_IGN);
    setpgid(0, 0);
    link = close_the_rest(link);
    if (link < 0)
        _exit(EMU_EXIT_FAILED);
    if (!make_folder(plan)) {
        emu_cli_fail("run", "cannot make folder %s: %s", plan->folder, strerror(errno));
        _exit(EMU_EXIT_FAILED);
    }
    if (plan->server) {
        options = *plan->server;
        options.ready_fd = link;
        if (serve(&options) < 0)
            _exit(EMU_EXIT_FAILED);
        tell(link, EMU_KEEPER_ENDED);
    } else {
        tell(link, EMU_KEEPER_READY);
    }
    if (!is_dismissed(link))
        clean_up(plan->marker, plan->folder);
    /* exit, not _exit: sanitizers look for leaks here. Nothing waits in a buffer, see emu_keeper_start(). */
    exit(EMU_EXIT_DONE);
}

int emu_keeper_start(const struct emu_keeper_plan *plan, struct emu_keeper *keeper_out)
{
    int link[2];
    char title[128];
    pid_t run = getpid();
    pid_t pid;
    int r;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
        return -errno;
    fflush(NULL);
    pid = fork();
    if (pid < 0) {
        r = -errno;
        close(link[0]);
        close(link[1]);
        return r;
    }
    if (pid == 0) {
        close(link[0]);
        if (plan->server)
            snprintf(title, sizeof(title), "emunic serve --name %s", plan->server->name);
        else
            snprintf(title, sizeof(title), "emunic keeper of %d", (int)run);
        set_title(title);
        keep(plan, link[1]);
    }
    close(link[1]);
    *keeper_out = (struct emu_keeper){ .pid = pid, .link = link[0] };
    return 0;
}

void emu_keeper_dismiss(struct emu_keeper *keeper, bool had_job)
{
    struct pollfd end = { .events = POLLIN };

    if (had_job)
        tell(keeper->link, EMU_KEEPER_DISMISS);
    else
        shutdown(keeper->link, SHUT_RDWR);
    end.fd = (int)syscall(SYS_pidfd_open, keeper->pid, 0);
    if (end.fd < 0 || poll(&end, 1, DISMISS_MS) <= 0)
        kill(keeper->pid, SIGKILL);
    if (end.fd >= 0)
        close(end.fd);
    while (waitpid(keeper->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(keeper->link);
    *keeper = (struct emu_keeper){ .pid = 0, .link = -1 };
}
