/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI-1 calls: argument checks around what pmi_session.c, facts.c, pmi_space.c, rounds.c and names.c do.
 * The interface, with every result code, is in pmi.h.
 */
#include "mpi-shim/pmi/src/pmi_api.h"
#include "mpi-shim/pmi/src/facts.h"
#include "mpi-shim/pmi/src/names.h"
#include "mpi-shim/pmi/src/rounds.h"
#include "mpi-shim/pmi/src/pmi_session.h"
#include "mpi-shim/pmi/src/pmi_space.h"
#include "mpi-shim/pmi/src/pmi_text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PORT_ROOM = 256 };

/* ---- start and end ---- */

int PMI_Init(int *spawned)
{
    int rc = pmii_session_ref();

    if (spawned)
        *spawned = pmii_facts_is_spawned();
    return rc;
}

int PMI_Initialized(PMI_BOOL *initialized)
{
    if (!initialized)
        return PMI_ERR_INVALID_ARG;
    *initialized = pmii_session_is_initialised() ? PMI_TRUE : PMI_FALSE;
    return PMI_SUCCESS;
}

int PMI_Finalize(void)
{
    return pmii_session_unref();
}

int PMI_Abort(int exit_code, const char error_msg[])
{
    pmii_session_abort(1, (exit_code & 0xff) != 0 ? exit_code : 1, error_msg);
}

/* ---- who am I ---- */

int PMI_Get_size(int *size)
{
    int r;

    if (!size)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_facts_size(size));
}

int PMI_Get_rank(int *rank)
{
    int r;

    if (!rank)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    *rank = pmii_facts_rank();
    return pmii_leave(0);
}

int PMI_Get_universe_size(int *size)
{
    int r;

    if (!size)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_facts_universe(size));
}

int PMI_Get_appnum(int *appnum)
{
    const int *app_of;
    int n_apps, r;

    if (!appnum)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    r = pmii_facts_apps(&app_of, &n_apps);
    if (r == 0)
        *appnum = app_of[pmii_facts_rank()];
    return pmii_leave(r);
}

int PMI_Get_clique_size(int *size)
{
    int r;

    if (!size)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_facts_group(PMII_NODE, NULL, 0, size));
}

int PMI_Get_clique_ranks(int ranks[], int length)
{
    int n, r;

    if (!ranks || length < 0)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_facts_group(PMII_NODE, ranks, length, &n));
}

static int copy_job_name(char *out, int length)
{
    int r, rc;

    if (!out || length < 0)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    rc = pmii_copy_text(pmii_facts_job_name(), out, length);
    pmii_leave(0);
    return rc;
}

int PMI_Get_id(char id_str[], int length)
{
    return copy_job_name(id_str, length);
}

int PMI_Get_kvs_domain_id(char id_str[], int length)
{
    return copy_job_name(id_str, length);
}

static int tell_limit(int limit, int *out)
{
    int r;

    if (!out)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    *out = limit;
    return pmii_leave(0);
}

int PMI_Get_id_length_max(int *length)
{
    return tell_limit(PMII_NAME_ROOM, length);
}

/* ---- synchronisation ---- */

int PMI_Barrier(void)
{
    int r = pmii_collective_begin();

    return r < 0 ? pmii_rc(r) : pmii_collective_end(pmii_barrier());
}

/* ---- key-value spaces ---- */

int PMI_KVS_Get_my_name(char kvsname[], int length)
{
    return copy_job_name(kvsname, length);
}

int PMI_KVS_Get_name_length_max(int *length)
{
    return tell_limit(PMII_NAME_ROOM, length);
}

int PMI_KVS_Get_key_length_max(int *length)
{
    return tell_limit(PMII_KEY_ROOM, length);
}

int PMI_KVS_Get_value_length_max(int *length)
{
    return tell_limit(PMII_VALUE_ROOM, length);
}

/* Enter with the name of a space of this job. */
static int enter_space(const char *kvsname)
{
    int r;

    if (!kvsname)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    if (!pmii_space_is_ours(kvsname)) {
        pmii_leave(0);
        return PMI_ERR_INVALID_KVS;
    }
    return PMI_SUCCESS;
}

int PMI_KVS_Create(char kvsname[], int length)
{
    int r;

    if (!kvsname || length < 0)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_space_create(kvsname, length));
}

int PMI_KVS_Destroy(const char kvsname[])
{
    int rc = enter_space(kvsname);
    int r;

    if (rc != PMI_SUCCESS)
        return rc;
    r = pmii_space_destroy(kvsname);
    rc = pmii_leave(r);
    return r == -ENOENT ? PMI_ERR_INVALID_KVS : rc;
}

int PMI_KVS_Put(const char kvsname[], const char key[], const char value[])
{
    int rc = pmii_check_key(key);

    if (rc == PMI_SUCCESS)
        rc = pmii_check_value(value);
    if (rc == PMI_SUCCESS)
        rc = enter_space(kvsname);
    if (rc != PMI_SUCCESS)
        return rc;
    return pmii_leave(pmii_space_put(kvsname, key, value));
}

int PMI_KVS_Commit(const char kvsname[])
{
    int rc = enter_space(kvsname);

    return rc != PMI_SUCCESS ? rc : pmii_leave(0);
}

/* PMI-1 clients find the process mapping in the job's space, where nobody put it. */
static int answer_mapping(const char *kvsname, const char *key, char *value, int length)
{
    char *text;
    int r;

    if (strcmp(key, "PMI_process_mapping") != 0 || strcmp(kvsname, pmii_facts_job_name()) != 0)
        return -ENOENT;
    r = pmii_facts_mapping(&text);
    if (r < 0)
        return r;
    r = pmii_copy_text(text, value, length) == PMI_SUCCESS ? 0 : -EMSGSIZE;
    free(text);
    return r;
}

int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length)
{
    int rc = pmii_check_key(key);
    const char *found;
    int r;

    if (rc == PMI_SUCCESS && (!value || length < 0))
        rc = PMI_ERR_INVALID_ARG;
    if (rc == PMI_SUCCESS)
        rc = enter_space(kvsname);
    if (rc != PMI_SUCCESS)
        return rc;
    r = pmii_space_get(kvsname, key, PMII_ANY_RANK, &found);
    if (r == 0)
        r = pmii_copy_text(found, value, length) == PMI_SUCCESS ? 0 : -EMSGSIZE;
    else if (r == -ENOENT)
        r = answer_mapping(kvsname, key, value, length);
    return pmii_leave(r);
}

/* Give out the pair the walk stands on; a walk that cannot does not move. */
static int give_pair(char *key, int key_len, char *val, int val_len)
{
    const struct pmii_pair *pair = pmii_space_walk_pair();

    if (!pair) {
        *key = '\0';
        return 0;
    }
    if (strlen(pair->key) >= (size_t)key_len || strlen(pair->value) >= (size_t)val_len)
        return -EMSGSIZE;
    strcpy(key, pair->key);
    strcpy(val, pair->value);
    return 0;
}

int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_len, char val[], int val_len)
{
    int rc, r;

    if (!key || key_len < 1 || !val || val_len < 1)
        return PMI_ERR_INVALID_ARG;
    rc = enter_space(kvsname);
    if (rc != PMI_SUCCESS)
        return rc;
    pmii_space_walk_start(kvsname);
    r = give_pair(key, key_len, val, val_len);
    if (r == 0)
        pmii_space_walk_on();
    return pmii_leave(r);
}

int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_len, char val[], int val_len)
{
    int rc, r;

    if (!key || key_len < 1 || !val || val_len < 1)
        return PMI_ERR_INVALID_ARG;
    rc = enter_space(kvsname);
    if (rc != PMI_SUCCESS)
        return rc;
    if (!pmii_space_is_walking(kvsname)) {
        pmii_leave(0);
        return PMI_FAIL;
    }
    r = give_pair(key, key_len, val, val_len);
    if (r == 0)
        pmii_space_walk_on();
    return pmii_leave(r);
}

/* ---- names and spawn ---- */

/* PMI-1 knows only "failed" for the name service. */
static int as_name_result(int rc)
{
    return rc == PMI_ERR_INVALID_KEY || rc == PMI_ERR_INVALID_LENGTH ? PMI_FAIL : rc;
}

int PMI_Publish_name(const char service_name[], const char port[])
{
    int r;

    if (!service_name || !port || strlen(port) >= PORT_ROOM)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    return as_name_result(pmii_leave(pmii_name_publish(service_name, port)));
}

int PMI_Unpublish_name(const char service_name[])
{
    int r;

    if (!service_name)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    return as_name_result(pmii_leave(pmii_name_unpublish(service_name)));
}

int PMI_Lookup_name(const char service_name[], char port[])
{
    int r;

    if (!service_name || !port)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    return as_name_result(pmii_leave(pmii_name_lookup(service_name, port, PORT_ROOM)));
}

int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[], const int maxprocs[],
                       const int info_keyval_sizes[], const PMI_keyval_t *info_keyval_vectors[], int preput_keyval_size,
                       const PMI_keyval_t preput_keyval_vector[], int errors[])
{
    const struct pmii_programs programs = {
        .count = count,
        .cmds = cmds,
        .argvs = argvs,
        .maxprocs = maxprocs,
        .info_sizes = info_keyval_sizes,
        .infos = info_keyval_vectors,
    };
    char job_name[16];
    int r, rc;

    (void)preput_keyval_vector;
    if (count < 1 || !cmds || !maxprocs || preput_keyval_size < 0)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    r = preput_keyval_size > 0 ? -ENOTSUP : pmii_job_spawn(&programs, job_name);
    rc = pmii_leave(r);
    for (int i = 0; errors && i < count; i++)
        errors[i] = rc;
    return rc;
}

int PMI_Parse_option(int num_args, char *args[], int *num_parsed, PMI_keyval_t **keyvalp, int *size)
{
    (void)num_args;
    (void)args;
    (void)num_parsed;
    (void)keyvalp;
    (void)size;
    return PMI_FAIL;
}

int PMI_Args_to_keyval(int *argcp, char *((*argvp)[]), PMI_keyval_t **keyvalp, int *size)
{
    (void)argcp;
    (void)argvp;
    (void)keyvalp;
    (void)size;
    return PMI_FAIL;
}

int PMI_Get_options(char *str, int *length)
{
    (void)str;
    (void)length;
    return PMI_FAIL;
}

int PMI_Free_keyvals(PMI_keyval_t keyvalp[], int size)
{
    (void)keyvalp;
    return size == 0 ? PMI_SUCCESS : PMI_FAIL;
}
