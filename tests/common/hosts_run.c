/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a program of launched jobs on a machine of two hosts, both on this one:
 *
 *   hosts_run EMUNIC_RANK PROGRAM [ARGUMENT]...
 *
 * Four ranks on three nodes, so that along the ring of ranks each step is of another kind: 0 -> 1 to the other host, 1
 * -> 2 on one node, 2 -> 3 back, 3 -> 0 to another node of the same host. mpirun starts this program once more for each
 * rank, which goes to the emunic of its node and becomes EMUNIC_RANK. HOSTS_RUN_MACHINE names the machine. Exit status:
 * mpirun's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/fixture.h"

#define N_RANKS       4
#define ARGUMENTS_MAX 32

static const uint32_t nids[N_RANKS] = { 0, 1, 1, 2 };

static void set_number(const char *name, uint32_t number)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", number);
    setenv(name, text, 1);
}

static int become_rank(const char *rank_text, char **args)
{
    int rank = atoi(rank_text);
    char name[] = "HOSTS_RUN_SERVER0";
    const char *server;

    if (rank < 0 || rank >= N_RANKS)
        return 2;
    name[sizeof(name) - 2] = (char)('0' + nids[rank] % 2);
    server = getenv(name);
    if (!server)
        return 2;
    setenv("EMUNIC_SERVER", server, 1);
    unsetenv("HOSTS_RUN_SERVER0");
    execv(args[0], args);
    fprintf(stderr, "hosts_run: %s: %s\n", args[0], strerror(errno));
    return 127;
}

static int launch(const struct fx *fx, char **argv)
{
    char n_text[8];
    char *args[ARGUMENTS_MAX] = { "mpirun", "-q", "-np", n_text, "--oversubscribe", "--bind-to", "none" };
    unsigned n = 7;
    int status;
    pid_t pid;

    snprintf(n_text, sizeof(n_text), "%d", N_RANKS);
    for (unsigned i = 0; argv[i] && n < ARGUMENTS_MAX - 1; i++)
        args[n++] = argv[i];
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        setenv("HOSTS_RUN_SERVER0", fx->hosts[0].server, 1);
        setenv("HOSTS_RUN_SERVER1", fx->hosts[1].server, 1);
        setenv("EMUNIC_NIDS", "0,1*2,2", 1);
        set_number("EMUNIC_COOKIE", fx->cookie);
        set_number("EMUNIC_PTAG", fx->ptag);
        setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
        setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
        execvp(args[0], args);
        _exit(127);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
    struct fx_options options = {
        .machine = getenv("HOSTS_RUN_MACHINE"), .n_ranks = N_RANKS, .nids = nids, .n_hosts = 2
    };
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    struct fx fx;
    int status;

    if (argc < 3)
        return 2;
    if (rank && getenv("HOSTS_RUN_SERVER0"))
        return become_rank(rank, argv + 1);
    fx_start(&fx, &options);
    status = launch(&fx, argv);
    fx_stop(&fx);
    return status;
}
