/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The helper of rank 0 is nobody's child, because `emunic run` takes its children for parts of its job and ends them.
 * The two pipes are its only tie: when the one to it closes it hands on that the job has failed, and ends.
 */
#include "emunic/cli/allocation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

bool emu_allocation_is_there(void)
{
    return getenv("PMIX_RANK") && getenv("PMIX_NAMESPACE");
}

static _Noreturn void become_helper(const char *program, int in, int out)
{
    pid_t pid = fork();

    if (pid != 0)
        _exit(pid < 0);
    if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execl(program, program, "lead", (char *)NULL);
    _exit(1);
}

/* in: what the helper reads; out: what it writes. */
static int start_helper(const char *program, const int in[2], const int out[2])
{
    pid_t pid;
    int status;

    fflush(NULL);
    pid = fork();
    if (pid == 0)
        become_helper(program, in[0], out[1]);
    if (pid < 0)
        return -errno;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status == 0 ? 0 : -EAGAIN;
}

static int lead(const char *program, struct emu_allocation *allocation_out)
{
    int in[2];
    int out[2];
    int r;

    if (pipe2(in, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(out, O_CLOEXEC) < 0) {
        r = -errno;
        close(in[0]);
        close(in[1]);
        return r;
    }
    r = start_helper(program, in, out);
    close(in[0]);
    close(out[1]);
    *allocation_out = (struct emu_allocation){ .hosts = r == 0 ? fdopen(out[0], "r") : NULL, .status_fd = in[1] };
    if (allocation_out->hosts)
        return 0;
    close(in[1]);
    close(out[0]);
    return r < 0 ? r : -ENOMEM;
}

int emu_allocation_enter(const char *program, struct emu_allocation *allocation_out)
{
    if (strcmp(getenv("PMIX_RANK"), "0") == 0)
        return lead(program, allocation_out);
    execl(program, program, "follow", (char *)NULL);
    return -errno;
}

void emu_allocation_leave(struct emu_allocation *allocation, int status)
{
    if (!allocation->hosts)
        return;
    dprintf(allocation->status_fd, "%d\n", status);
    close(allocation->status_fd);
    while (fgetc(allocation->hosts) != EOF)
        ;
    fclose(allocation->hosts);
    *allocation = (struct emu_allocation){ .status_fd = -1 };
}

/* What the outer mpirun has set, not what its user did: parameters of MPI, how daemons are started. */
static bool is_left(const char *variable)
{
    static const char *const names[] = { "OMPI_APP_CTX_NUM_PROCS",
                                         "OMPI_ARGV",
                                         "OMPI_COMMAND",
                                         "OMPI_FILE_LOCATION",
                                         "OMPI_FIRST_RANKS",
                                         "OMPI_MCA_ess",
                                         "OMPI_MCA_initial_wdir",
                                         "OMPI_MCA_mpi_oversubscribe",
                                         "OMPI_MCA_pmix",
                                         "OMPI_MCA_rmaps_base_oversubscribe",
                                         "OMPI_MCA_shmem_RUNTIME_QUERY_hint",
                                         "OMPI_NUM_APP_CTX",
                                         "OMPI_UNIVERSE_SIZE" };
    static const char *const families[] = { "OMPI_COMM_WORLD_", "OMPI_MCA_ess_base_", "OMPI_MCA_orte_", "PMIX_",
                                            "PRTE_MCA_ess",     "PRTE_MCA_prte_" };
    size_t len = strcspn(variable, "=");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strlen(names[i]) == len && strncmp(variable, names[i], len) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (strncmp(variable, families[i], strlen(families[i])) == 0)
            return true;
    }
    return false;
}

void emu_allocation_forget(void)
{
    char **variable = environ;

    if (!emu_allocation_is_there())
        return;
    while (*variable) {
        char *name;

        if (!is_left(*variable)) {
            variable++;
            continue;
        }
        name = strndup(*variable, strcspn(*variable, "="));
        if (!name || unsetenv(name) < 0) /* removes it from under `variable` */
            variable++;
        free(name);
    }
}
