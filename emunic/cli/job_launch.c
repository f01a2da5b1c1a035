/* SPDX-License-Identifier: BSD-3-Clause */
/* The mpirun of a job, and what its ranks find in their environment. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "emunic/cli/allocation.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/job_inner.h"

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

/*
 * Makes the start of many ranks quick, see mpi-shim/rank/close_at_exec.c; without it all goes on. Behind what the user
 * preloads. After mpirun's words are made, which name the variables for other hosts.
 */
static void preload_module(void)
{
    const char *others = getenv("LD_PRELOAD");
    char module[PATH_MAX];
    char list[2 * PATH_MAX];
    int len;

    if (emu_cli_mpirun_module(module) < 0 || module[strcspn(module, " :")] != '\0')
        return;
    len = snprintf(list, sizeof(list), "%s%s%s", others ? others : "", others && others[0] ? ":" : "", module);
    if (len < (int)sizeof(list))
        setenv("LD_PRELOAD", list, 1);
}

_Noreturn void emu_job_become_mpirun(const struct job *job, pid_t run, bool is_in_front,
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
    preload_module();
    sigprocmask(SIG_SETMASK, &job->old_mask, NULL);
    /*
     * mpirun has a handler of its own only while its event loop runs; before and after, a rank that has just gone would
     * end it. It gives its ranks the default.
     */
    signal(SIGPIPE, SIG_IGN);
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
    emu_job_become_mpirun(job, run, job->shares_terminal, emu_mpirun_ranks);
}

int emu_job_launch(struct job *job)
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
