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
 */
#include "emunic/cli/keeper.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/sweep.h"

#define CLEAN_MS   500
#define KILL_MS    1000
#define KILLS_MAX  3
#define DISMISS_MS 3000
#define LEAVE_MS   (CLEAN_MS + KILLS_MAX * KILL_MS + 3000)
#define DISMISS    'd'

static void clean_up(const char *marker, const char *folder)
{
    struct emu_sweep job = { .marker = marker };

    if (!marker) {
        rmdir(folder);
        return;
    }
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

static int keep(const void *ctx, int link)
{
    const struct emu_keeper_plan *plan = ctx;

    /* A batch system or a terminal may end a whole job by signals. Then somebody is needed to clean up after it. */
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    if (!make_folder(plan))
        return emu_cli_fail("run", "cannot make folder %s: %s", plan->folder, strerror(errno));
    emu_child_tell(link, EMU_CHILD_READY);
    if (!is_dismissed(link))
        clean_up(plan->marker, plan->folder);
    return EMU_EXIT_DONE;
}

int emu_keeper_start(const struct emu_keeper_plan *plan, struct emu_child *keeper_out)
{
    char title[64];

    snprintf(title, sizeof(title), "emunic keeper of %d", (int)getpid());
    return emu_child_start(title, keep, plan, keeper_out);
}

void emu_keeper_leave(struct emu_child *keeper)
{
    shutdown(keeper->link, SHUT_RDWR);
    emu_child_await(keeper, LEAVE_MS, NULL);
}

void emu_keeper_dismiss(struct emu_child *keeper)
{
    emu_child_tell(keeper->link, DISMISS);
    emu_child_await(keeper, DISMISS_MS, NULL);
}
