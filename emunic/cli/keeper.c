/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper of a job.
 *
 * It makes the job's folder, so that there is never a folder without a keeper, and waits. The socket between the two is
 * the sign of life of whoever has started it:
 *
 *   fork -> READY -> DISMISS -> exit
 *                 -> end of the link: `run` is dead -> clean up -> exit
 *
 * Clean up: mpirun and the ranks die by their parent death signals. Whatever else carries the job's marker in its
 * environment, children of ranks, gets CLEAN_MS to end by itself, then SIGKILL; then the folder goes. /proc tells what
 * a program was started with, so only a program that was started with a cleared environment escapes. The job's emunic
 * is not the keeper: when it is killed together with `run`, somebody is left to clean up.
 *
 * When the keeper is killed, there may be nobody else to clean up. So a second one is its child and has the link too.
 * The socket between the two is the sign of life of both:
 *
 *   keeper dies     -> the second takes its place, with a second of its own
 *   second dies     -> the keeper starts another
 *   link ends       -> clean up -> end of the second -> exit
 */
#include "emunic/cli/keeper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/sweep.h"

#define CLEAN_MS   500
#define KILL_MS    1000
#define KILLS_MAX  3
#define DISMISS_MS 3000
#define LEAVE_MS   (CLEAN_MS + KILLS_MAX * KILL_MS + 3000)

/* The second one of a keeper. */
struct second {
    pid_t pid; /* 0: none */
    int link;
    bool is_successors; /* of a keeper that was a second one itself */
};

static void clean_up(const struct emu_keeper_plan *plan, pid_t second)
{
    struct emu_sweep job = { .marker = plan->marker, .except = second, .since = plan->since };

    if (!plan->marker) {
        rmdir(plan->folder);
        return;
    }
    emu_sweep(&job, 0, CLEAN_MS);
    for (int i = 0; i < KILLS_MAX && emu_sweep(&job, SIGKILL, KILL_MS) > 0; i++)
        ;
    emu_remove_folder(plan->folder);
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

/* A launcher, or a keeper before us, may have made it: then it must be our own, and closed to others. */
static bool make_folder(const char *folder, bool may_exist)
{
    struct stat info;

    if (mkdir(folder, 0700) == 0)
        return true;
    if (errno != EEXIST || !may_exist)
        return false;
    return lstat(folder, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

static void await_end(int link)
{
    char byte;

    while (recv(link, &byte, 1, 0) < 0 && errno == EINTR)
        ;
}

/*
 * Returns in the keeper, and in whoever takes its place: the second one waits in here. Without processes or descriptors
 * for a second one the keeper goes on alone.
 */
static struct second start_second(void)
{
    struct second second = { .link = -1 };
    int link[2];
    pid_t pid;

    for (;;) {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) < 0)
            return second;
        pid = fork();
        if (pid != 0)
            break;
        close(link[0]);
        /* A signal for a process group ends one of the two at most. */
        setpgid(0, 0);
        await_end(link[1]);
        close(link[1]);
        second.is_successors = true;
    }
    close(link[1]);
    if (pid < 0)
        close(link[0]);
    else
        second = (struct second){ .pid = pid, .link = link[0], .is_successors = second.is_successors };
    return second;
}

/* It has ended, or ends. */
static void reap_second(struct second *second)
{
    if (!second->pid)
        return;
    while (waitpid(second->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    close(second->link);
    *second = (struct second){ .link = -1 };
}

/* Until the link has something to tell. */
static void keep_second(int link, struct second *second)
{
    for (;;) {
        struct pollfd events[2] = { { .fd = link, .events = POLLIN }, { .fd = second->link, .events = POLLIN } };

        if (poll(events, 2, -1) < 0 && errno != EINTR)
            return;
        if (events[0].revents)
            return;
        if (events[1].revents) {
            reap_second(second);
            *second = start_second();
        }
    }
}

static void end_second(struct second *second)
{
    if (second->pid)
        kill(second->pid, SIGKILL);
    reap_second(second);
}

static int keep(const void *ctx, int link)
{
    const struct emu_keeper_plan *plan = ctx;
    struct second second = { .link = -1 };
    int r;

    /* A batch system or a terminal may end a whole job by signals. Then somebody is needed to clean up after it. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    /* Before there is a folder. Whoever takes our place goes on from here, and may be the first to be ready. */
    second = start_second();
    if (!make_folder(plan->folder, plan->may_exist || second.is_successors)) {
        r = -errno;
        end_second(&second);
        return emu_cli_fail("run", "cannot make folder %s: %s", plan->folder, strerror(-r));
    }
    emu_child_tell(link, EMU_CHILD_READY);
    keep_second(link, &second);
    if (!is_dismissed(link))
        clean_up(plan, second.pid);
    end_second(&second);
    return EMU_EXIT_DONE;
}

int emu_keeper_start(const struct emu_keeper_plan *plan, struct emu_child *keeper_out)
{
    char title[64];

    snprintf(title, sizeof(title), "emunic keeper of %d", (int)getpid());
    return emu_child_start(title, keep, plan, keeper_out);
}

/* Whoever keeps now tells that it is ready, perhaps only now, and holds the other end until it is done. */
static bool await_link(int link, int limit_ms)
{
    struct pollfd end = { .fd = link, .events = POLLIN };
    bool has_ended = false;
    char byte;

    while (!has_ended && poll(&end, 1, limit_ms) > 0)
        has_ended = recv(link, &byte, 1, 0) <= 0;
    return has_ended;
}

static void await_keeper(struct emu_child *keeper, int limit_ms)
{
    emu_child_await(keeper, await_link(keeper->link, limit_ms) ? DISMISS_MS : 0, NULL);
}

void emu_keeper_leave(struct emu_child *keeper)
{
    shutdown(keeper->link, SHUT_WR);
    await_keeper(keeper, LEAVE_MS);
}

void emu_keeper_dismiss(struct emu_child *keeper)
{
    emu_child_tell(keeper->link, EMU_KEEPER_DISMISS);
    await_keeper(keeper, DISMISS_MS);
}

void emu_keeper_dismiss_second(const struct emu_child *keeper)
{
    emu_child_tell(keeper->link, EMU_KEEPER_DISMISS);
    (void)await_link(keeper->link, DISMISS_MS);
    close(keeper->link);
}
