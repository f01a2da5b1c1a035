/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic-agent FOLDER MARKER COMMAND [ARGUMENT]...: starts one of mpirun's daemons on another host (Open MPI's "launch
 * agent"), and a keeper before it. So whatever the daemon makes has a keeper, however early or late it is killed.
 *
 *   agent ─┬─ keeper    holds one end of a socket
 *          └─ daemon    holds the other, without knowing: its end, or that of the process that it left behind, is
 *                       the keeper's sign to clean up
 *
 * FOLDER is the job's. MARKER is "NAME=value", in the environment of all processes that shall end with the daemon, or
 * "-": none, and the folder goes only if it is empty. That is for the ranks' mpirun: the other mpirun, that of the
 * emunics, is there before it and after it.
 *
 * A daemon that goes to the background by itself has nobody who waits for it. For the others the agent waits, until
 * the keeper is done: when the first process of a Slurm step ends, Slurm kills the rest of the step.
 *
 * Exit status: the daemon's, 1 after a message of the agent's own, 2 for a wrong usage.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "emunic/base/log.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/keeper.h"

#define FIRST_WORD 3 /* of the daemon's command */

static const int endings[] = { SIGTERM, SIGINT, SIGHUP };

static bool goes_to_background(char **words)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], "--daemonize") == 0)
            return true;
    }
    return false;
}

static _Noreturn void become(char **words)
{
    execvp(words[0], words);
    emu_cli_fail("run", "%s: %s", words[0], strerror(errno));
    _exit(EMU_EXIT_FAILED);
}

static int start_keeper(const struct emu_keeper_plan *plan, struct emu_child *keeper_out)
{
    char byte;
    int r = emu_keeper_start(plan, keeper_out);

    if (r < 0)
        return emu_cli_fail("run", "cannot start a keeper: %s", strerror(-r));
    if (read(keeper_out->link, &byte, 1) != 1 || byte != EMU_CHILD_READY)
        return EMU_EXIT_FAILED;
    /* The daemon inherits it. */
    return fcntl(keeper_out->link, F_SETFD, 0) == 0 ? EMU_EXIT_DONE : EMU_EXIT_FAILED;
}

/* A signal for the whole job reaches the daemon by itself. */
static int outlive(char **words)
{
    int status = 0;
    pid_t pid;

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
        signal(endings[i], SIG_IGN);
    pid = fork();
    if (pid < 0)
        return emu_cli_fail("run", "cannot start %s: %s", words[0], strerror(errno));
    if (pid == 0) {
        for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++)
            signal(endings[i], SIG_DFL);
        become(words);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    static struct emu_keeper_plan plan = { .may_exist = true };
    struct emu_child keeper;
    char **words;
    int status;

    emu_log_init("emunic", EMU_LOG_WARN);
    if (argc <= FIRST_WORD || argv[1][0] != '/' || !argv[2][0])
        return emu_cli_usage("run", "emunic-agent is started by the mpirun of `emunic run --hosts`");
    /* The keeper overwrites argv. */
    words = calloc((size_t)(argc - FIRST_WORD) + 1, sizeof(*words));
    plan.folder = strdup(argv[1]);
    plan.marker = strcmp(argv[2], "-") == 0 ? NULL : strdup(argv[2]);
    if (!words || !plan.folder || (!plan.marker && strcmp(argv[2], "-") != 0))
        return emu_cli_fail("run", "out of memory");
    memcpy(words, argv + FIRST_WORD, (size_t)(argc - FIRST_WORD) * sizeof(*words));
    status = start_keeper(&plan, &keeper);
    if (status == EMU_EXIT_DONE && goes_to_background(words))
        become(words);
    if (status == EMU_EXIT_DONE) {
        status = outlive(words);
        emu_keeper_leave(&keeper);
    }
    free(words);
    return status;
}
