/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI-2 calls: argument checks around what pmi_session.c, facts.c, pmi_space.c, rounds.c and names.c do.
 * The interface, with every result code, is in pmi2.h. The numbers of PMI and PMI2 codes are equal (pmi_session.c).
 */
#include "mpi-shim/pmi/src/pmi_api.h"
#include "mpi-shim/pmi/src/facts.h"
#include "mpi-shim/pmi/src/names.h"
#include "mpi-shim/pmi/src/rounds.h"
#include "mpi-shim/pmi/src/pmi_session.h"
#include "mpi-shim/pmi/src/pmi_space.h"
#include "mpi-shim/pmi/src/pmi_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- start and end ---- */

/* What PMI2_Init tells; asks for nothing that the caller does not want. */
static int tell_numbers(int *size, int *rank, int *appnum)
{
    const int *app_of;
    int n_apps, r = 0;

    if (rank)
        *rank = pmii_facts_rank();
    if (size)
        r = pmii_facts_size(size);
    if (r == 0 && appnum) {
        r = pmii_facts_apps(&app_of, &n_apps);
        if (r == 0)
            *appnum = app_of[pmii_facts_rank()];
    }
    return r;
}

int PMI2_Init(int *spawned, int *size, int *rank, int *appnum)
{
    int r, rc;

    rc = pmii_session_ref();
    if (rc != PMI2_SUCCESS)
        return rc;
    if (spawned)
        *spawned = pmii_facts_is_spawned();
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    rc = pmii_leave(tell_numbers(size, rank, appnum));
    if (rc != PMI2_SUCCESS)
        pmii_session_unref();
    return rc;
}

int PMI2_Initialized(void)
{
    return pmii_session_is_initialised();
}

int PMI2_Finalize(void)
{
    return pmii_session_unref();
}

int PMI2_Abort(int flag, const char msg[])
{
    pmii_session_abort(flag != 0, 1, msg);
}

int PMI2_Set_threaded(int is_threaded)
{
    (void)is_threaded;
    return PMI2_SUCCESS;
}

/* ---- job ---- */

int PMI2_Job_GetId(char jobid[], int jobid_size)
{
    return PMI_KVS_Get_my_name(jobid, jobid_size);
}

int PMI2_Job_GetRank(int *rank)
{
    return PMI_Get_rank(rank);
}

int PMI2_Info_GetSize(int *size)
{
    return PMI_Get_size(size);
}

int PMI2_Job_Spawn(int count, const char *cmds[], int argcs[], const char **argvs[], const int maxprocs[],
                   const int info_keyval_sizes[], const PMI_keyval_t *info_keyval_vectors[], int preput_keyval_size,
                   const PMI_keyval_t *preput_keyval_vector[], char jobid[], int jobid_size, int errors[])
{
    const struct pmii_programs programs = {
        .count = count,
        .cmds = cmds,
        .argcs = argcs,
        .argvs = argvs,
        .maxprocs = maxprocs,
        .info_sizes = info_keyval_sizes,
        .infos = info_keyval_vectors,
    };
    char job_name[16];
    int r, rc;

    (void)preput_keyval_vector;
    if (count < 1 || !cmds || !maxprocs || preput_keyval_size < 0)
        return PMI2_ERR_INVALID_ARG;
    if (jobid && jobid_size < (int)sizeof(job_name))
        return PMI2_ERR_INVALID_LENGTH;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    r = preput_keyval_size > 0 ? -ENOTSUP : pmii_job_spawn(&programs, job_name);
    rc = pmii_leave(r);
    if (rc == PMI2_SUCCESS && jobid)
        strcpy(jobid, job_name);
    for (int i = 0; errors && i < count; i++)
        errors[i] = rc;
    return rc;
}

int PMI2_Job_Connect(const char jobid[], PMI2_Connect_comm_t *conn)
{
    (void)jobid;
    (void)conn;
    return PMI2_FAIL;
}

int PMI2_Job_Disconnect(const char jobid[])
{
    (void)jobid;
    return PMI2_FAIL;
}

/* ---- key-value space ---- */

int PMI2_KVS_Put(const char key[], const char value[])
{
    int rc = pmii_check_key(key);
    int r;

    if (rc == PMI2_SUCCESS)
        rc = pmii_check_value(value);
    if (rc != PMI2_SUCCESS)
        return rc;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_space_put(pmii_facts_job_name(), key, value));
}

int PMI2_KVS_Fence(void)
{
    return PMI_Barrier();
}

int PMI2_KVS_Get(const char *jobid, int src_pmi_id, const char key[], char value[], int maxvalue, int *vallen)
{
    int rc = pmii_check_key(key);
    const char *space, *found;
    int r;

    if (rc == PMI2_SUCCESS && (!value || maxvalue < 0))
        rc = PMI2_ERR_INVALID_ARG;
    if (rc != PMI2_SUCCESS)
        return rc;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    space = jobid && *jobid != '\0' ? jobid : pmii_facts_job_name();
    r = pmii_space_get(space, key, src_pmi_id >= 0 ? src_pmi_id : PMII_ANY_RANK, &found);
    if (r == 0) {
        rc = pmii_copy_text(found, value, maxvalue);
        if (vallen)
            *vallen = rc == PMI2_SUCCESS ? (int)strlen(found) : -((int)strlen(found) + 1);
        r = rc == PMI2_SUCCESS ? 0 : -EMSGSIZE;
    }
    return pmii_leave(r);
}

/* ---- attributes of node and job ---- */

int PMI2_Info_PutNodeAttr(const char name[], const char value[])
{
    int rc = pmii_check_key(name);
    int r;

    if (rc == PMI2_SUCCESS)
        rc = pmii_check_value(value);
    if (rc != PMI2_SUCCESS)
        return rc;
    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_node_attr_put(name, value));
}

/* One look, under the lock. @return API code; *found_out set unless it is a fault. */
static int read_node_attr(const char *name, char *value, int room, int *found_out)
{
    const char *found;
    int r;

    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return pmii_rc(r);
    r = pmii_node_attr_get(name, &found);
    if (r == -ENOENT) {
        *found_out = 0;
        return pmii_leave(0);
    }
    if (r == 0) {
        *found_out = 1;
        r = pmii_copy_text(found, value, room) == PMI2_SUCCESS ? 0 : -EMSGSIZE;
    }
    return pmii_leave(r);
}

int PMI2_Info_GetNodeAttr(const char name[], char value[], int valuelen, int *found, int waitfor)
{
    struct timespec pause = { 0, 1000000 };
    int rc = pmii_check_key(name);
    int is_found = 0;

    if (rc == PMI2_SUCCESS && (!value || valuelen < 0))
        rc = PMI2_ERR_INVALID_ARG;
    if (rc != PMI2_SUCCESS)
        return rc;
    for (;;) {
        rc = read_node_attr(name, value, valuelen, &is_found);
        if (is_found || !waitfor || rc != PMI2_SUCCESS)
            break;
        nanosleep(&pause, NULL);
        if (pause.tv_nsec < 16000000)
            pause.tv_nsec *= 2;
    }
    if (found && (rc == PMI2_SUCCESS || is_found))
        *found = is_found;
    if (rc == PMI2_SUCCESS && !is_found && !found)
        return PMI2_ERR_INVALID_KEY;
    return rc;
}

/* Turn the text of an attribute into the answer of an ...IntArray call. */
static int answer_ints(const char *text, int *array, int arraylen, int *outlen, int *found)
{
    int n = text ? pmii_text_to_ints(text, array, arraylen) : -1;

    if (n >= 0 && outlen)
        *outlen = n;
    if (found)
        *found = n >= 0;
    return n < 0 && !found ? PMI2_ERR_INVALID_KEY : PMI2_SUCCESS;
}

int PMI2_Info_GetNodeAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found)
{
    char text[PMII_VALUE_ROOM];
    int is_found = 0, rc;

    if (!array || arraylen < 0)
        return PMI2_ERR_INVALID_ARG;
    rc = PMI2_Info_GetNodeAttr(name, text, sizeof(text), &is_found, 0);
    if (rc != PMI2_SUCCESS)
        return rc;
    return answer_ints(is_found ? text : NULL, array, arraylen, outlen, found);
}

/* Text of a job attribute, malloc-ed; NULL for an unknown name. */
static int job_attr(const char *name, char **text_out)
{
    int n, r = 0;

    *text_out = NULL;
    if (strcmp(name, "PMI_process_mapping") == 0) {
        r = pmii_facts_mapping(text_out);
    } else if (strcmp(name, "universeSize") == 0) {
        r = pmii_facts_universe(&n);
        if (r == 0 && asprintf(text_out, "%d", n) < 0) {
            *text_out = NULL;
            r = -ENOMEM;
        }
    }
    return r;
}

static int read_job_attr(const char *name, char **text_out)
{
    int r;

    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(job_attr(name, text_out));
}

int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen, int *found)
{
    char *text;
    int rc;

    if (!name || !value || valuelen < 0)
        return PMI2_ERR_INVALID_ARG;
    rc = read_job_attr(name, &text);
    if (rc != PMI2_SUCCESS)
        return rc;
    if (found)
        *found = text ? 1 : 0;
    if (!text)
        return found ? PMI2_SUCCESS : PMI2_ERR_INVALID_KEY;
    rc = pmii_copy_text(text, value, valuelen);
    free(text);
    return rc;
}

int PMI2_Info_GetJobAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found)
{
    char *text;
    int rc;

    if (!name || !array || arraylen < 0)
        return PMI2_ERR_INVALID_ARG;
    rc = read_job_attr(name, &text);
    if (rc != PMI2_SUCCESS)
        return rc;
    rc = answer_ints(text, array, arraylen, outlen, found);
    free(text);
    return rc;
}

/* ---- name service ---- */

int PMI2_Nameserv_publish(const char service_name[], const PMI_keyval_t *info_ptr, const char port[])
{
    int r;

    (void)info_ptr;
    if (!service_name || !port)
        return PMI2_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_name_publish(service_name, port));
}

int PMI2_Nameserv_lookup(const char service_name[], const PMI_keyval_t *info_ptr, char port[], int port_len)
{
    int r;

    (void)info_ptr;
    if (!service_name || !port || port_len < 0)
        return PMI2_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_name_lookup(service_name, port, (size_t)port_len));
}

int PMI2_Nameserv_unpublish(const char service_name[], const PMI_keyval_t *info_ptr)
{
    int r;

    (void)info_ptr;
    if (!service_name)
        return PMI2_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    return pmii_leave(pmii_name_unpublish(service_name));
}
