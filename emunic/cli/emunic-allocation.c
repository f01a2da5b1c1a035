/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic-allocation lead|follow: between `emunic run --hosts mpirun` and the mpirun (or prterun, or srun --mpi=pmix)
 * that has started it, once per slot. A program of its own, so that `emunic` loads no PMIx.
 *
 *   lead    of rank 0, beside its `emunic run`: prints the hosts of mpirun's job, "NAME slots=N" each, or "NAME" where
 *           it has one process, the own one first, then an empty line; reads a status from stdin, whose end is status
 *           1; hands it to the others
 *   follow  what `emunic run` becomes with any other rank: waits for that status and ends with it
 *
 * Exit status: the job's, or 1 after a message.
 */
#include <pmix.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/cli/cli.h"

#define STATUS_NAME "emunic.status"

static int fail(const char *what, pmix_status_t status)
{
    return emu_cli_fail("run", "--hosts mpirun: %s: %s", what, PMIx_Error_string(status));
}

/* Meets all processes of mpirun's job. */
static pmix_status_t meet(const pmix_proc_t *self)
{
    bool collects = true;
    pmix_info_t info;
    pmix_proc_t all;
    pmix_status_t status;

    PMIX_LOAD_PROCID(&all, self->nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&info, PMIX_COLLECT_DATA, &collects, PMIX_BOOL);
    status = PMIx_Fence(&all, 1, &info, 1);
    PMIX_INFO_DESTRUCT(&info);
    return status;
}

/* Processes of the job on the node; is_own_out: this one is among them. */
static pmix_status_t count_on(const pmix_proc_t *self, const char *node, size_t *n_out, bool *is_own_out)
{
    pmix_proc_t *procs = NULL;
    pmix_status_t status = PMIx_Resolve_peers(node, self->nspace, &procs, n_out);

    *is_own_out = false;
    for (size_t i = 0; status == PMIX_SUCCESS && i < *n_out; i++)
        *is_own_out = *is_own_out || procs[i].rank == self->rank;
    free(procs);
    return status;
}

/* Those that are the own node, or those that are not. */
static pmix_status_t print_nodes(const pmix_proc_t *self, const char *list, bool wants_own)
{
    pmix_status_t status = PMIX_SUCCESS;
    char *copy = strdup(list);
    char *rest = copy;

    while (rest && status == PMIX_SUCCESS) {
        const char *node = strsep(&rest, ",");
        bool is_own;
        size_t n;

        status = count_on(self, node, &n, &is_own);
        if (status == PMIX_SUCCESS && is_own == wants_own && n == 1)
            printf("%s\n", node);
        else if (status == PMIX_SUCCESS && is_own == wants_own && n > 1)
            printf("%s slots=%zu\n", node, n);
    }
    free(copy);
    return copy ? status : PMIX_ERR_NOMEM;
}

static pmix_status_t print_all(const pmix_proc_t *self)
{
    char *list = NULL;
    pmix_status_t status = PMIx_Resolve_nodes(self->nspace, &list);

    if (status == PMIX_SUCCESS)
        status = print_nodes(self, list, true);
    if (status == PMIX_SUCCESS)
        status = print_nodes(self, list, false);
    free(list);
    printf("\n");
    fflush(stdout);
    return status;
}

static int lead(const pmix_proc_t *self)
{
    pmix_value_t value = { .type = PMIX_INT, .data.integer = EMU_EXIT_FAILED };
    pmix_status_t status = print_all(self);
    int result;

    if (status != PMIX_SUCCESS)
        return fail("hosts of the job", status);
    if (scanf("%d", &result) == 1)
        value.data.integer = result;
    status = PMIx_Put(PMIX_GLOBAL, STATUS_NAME, &value);
    if (status == PMIX_SUCCESS)
        status = PMIx_Commit();
    if (status == PMIX_SUCCESS)
        status = meet(self);
    return status == PMIX_SUCCESS ? value.data.integer : fail("end of the job", status);
}

static int follow(const pmix_proc_t *self)
{
    pmix_value_t *value = NULL;
    pmix_status_t status = meet(self);
    pmix_proc_t leader;
    int result;

    PMIX_LOAD_PROCID(&leader, self->nspace, 0);
    if (status == PMIX_SUCCESS)
        status = PMIx_Get(&leader, STATUS_NAME, NULL, 0, &value);
    if (status != PMIX_SUCCESS)
        return fail("end of the job", status);
    result = value->type == PMIX_INT ? value->data.integer : EMU_EXIT_FAILED;
    PMIX_VALUE_RELEASE(value);
    return result;
}

/* mpirun has died without a word. Our `emunic run` sees that our output ends. */
static void pmix_event_lost_mpirun(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                                   size_t n_info, pmix_info_t *results, size_t n_results,
                                   pmix_event_notification_cbfunc_fn_t done, void *arg)
{
    (void)id;
    (void)status;
    (void)source;
    (void)info;
    (void)n_info;
    (void)results;
    (void)n_results;
    (void)done;
    (void)arg;
    _exit(EMU_EXIT_FAILED);
}

static void watch_mpirun(void)
{
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;

    (void)PMIx_Register_event_handler(&code, 1, NULL, 0, pmix_event_lost_mpirun, NULL, NULL);
}

int main(int argc, char **argv)
{
    bool leads = argc == 2 && strcmp(argv[1], "lead") == 0;
    pmix_status_t status;
    pmix_proc_t self;
    int result;

    if (argc != 2 || (!leads && strcmp(argv[1], "follow") != 0))
        return emu_cli_usage("run", "emunic-allocation is started by `emunic run --hosts mpirun`");
    if (leads) {
        /* `emunic run` has them too, and ends the job first. */
        signal(SIGINT, SIG_IGN);
        signal(SIGTERM, SIG_IGN);
        signal(SIGHUP, SIG_IGN);
    }
    status = PMIx_Init(&self, NULL, 0);
    if (status != PMIX_SUCCESS)
        return fail("this is no process of an mpirun", status);
    watch_mpirun();
    result = leads ? lead(&self) : follow(&self);
    PMIx_Finalize(NULL, 0);
    return result;
}
