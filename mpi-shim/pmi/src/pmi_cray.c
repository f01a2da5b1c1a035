/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray's extensions: argument checks around what facts.c and rounds.c do.
 * The interface, with every result code, is in pmi_cray.h and pmi_cray_ext.h.
 *
 * Questions about job and nodes work before PMI_Init (PMII_ANY_TIME) when the environment has the answer: the
 * vendor's library is initialised by its constructor, and topology helpers inside MPI programs never call
 * PMI_Init.
 */
#include "emunic/client/places_map.h"
#include "mpi-shim/pmi/include/pmi_version.h"
#include "mpi-shim/pmi/src/pmi_api.h"
#include "mpi-shim/pmi/src/facts.h"
#include "mpi-shim/pmi/src/nidmap.h"
#include "mpi-shim/pmi/src/rounds.h"
#include "mpi-shim/pmi/src/pmi_session.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>

int PMI_Get_version_info(int *major, int *minor, int *revision)
{
    if (major)
        *major = PMI_CRAY_VERSION_MAJOR;
    if (minor)
        *minor = PMI_CRAY_VERSION_MINOR;
    if (revision)
        *revision = PMI_CRAY_VERSION_REVISION;
    return PMI_SUCCESS;
}

/* ---- collectives ---- */

static int job_size(void)
{
    int size = 0;

    pmii_lock();
    pmii_facts_size(&size); /* known: a collective has begun */
    pmii_unlock();
    return size;
}

/* The same length from every rank, or from rank 0 only. */
static int gather_equal(const void *in, int len, int is_bcast, void *out)
{
    int size = job_size();
    int *lens = calloc((size_t)size, sizeof(*lens));
    int r;

    if (!lens)
        return -ENOMEM;
    for (int i = 0; i < size; i++)
        lens[i] = is_bcast && i > 0 ? 0 : len;
    r = pmii_gather(in, (size_t)lens[pmii_facts_rank()], lens, out);
    free(lens);
    return r;
}

int PMI_Allgather(void *in, void *out, int len)
{
    int r;

    if (len < 0 || (len > 0 && (!in || !out)))
        return PMI_ERR_INVALID_ARG;
    r = pmii_collective_begin();
    return r < 0 ? pmii_rc(r) : pmii_collective_end(gather_equal(in, len, 0, out));
}

static int are_lengths_valid(const int *lens)
{
    int size = job_size();

    for (int i = 0; i < size; i++) {
        if (lens[i] < 0)
            return 0;
    }
    return 1;
}

int PMI_Allgatherv(void *in, int len, void *out, int *all_lens)
{
    int r;

    if (len < 0 || !all_lens || (len > 0 && (!in || !out)))
        return PMI_ERR_INVALID_ARG;
    r = pmii_collective_begin();
    if (r < 0)
        return pmii_rc(r);
    return pmii_collective_end(are_lengths_valid(all_lens) ? pmii_gather(in, (size_t)len, all_lens, out) : -EINVAL);
}

int PMI_Bcast(void *buf, int len)
{
    int r;

    if (len < 0 || (len > 0 && !buf))
        return PMI_ERR_INVALID_ARG;
    r = pmii_collective_begin();
    return r < 0 ? pmii_rc(r) : pmii_collective_end(gather_equal(buf, len, 1, buf));
}

int PMI_Ibarrier(void)
{
    int r = pmii_collective_begin();

    return r < 0 ? pmii_rc(r) : pmii_collective_end(pmii_split_barrier_start());
}

int PMI_Wait(void)
{
    int r = pmii_collective_begin();

    return r < 0 ? pmii_rc(r) : pmii_collective_end(pmii_split_barrier_wait());
}

int PMI_CPR_Barrier(void)
{
    return PMI_Barrier();
}

/* ---- applications ---- */

/* The ranks of one application. */
struct app {
    int size;
    int base_rank;
    int my_place; /* my rank in it, when it is mine */
    int n_apps;
};

/* @param appnum  A number, or -1 for mine. @retval -EINVAL no such application. */
static int describe_app(int appnum, struct app *app_out)
{
    struct app app = { .base_rank = -1 };
    const int *app_of;
    int size, r;

    r = pmii_facts_apps(&app_of, &app.n_apps);
    if (r == 0)
        r = pmii_facts_size(&size);
    if (r < 0)
        return r;
    if (appnum < 0)
        appnum = app_of[pmii_facts_rank()];
    if (appnum >= app.n_apps)
        return -EINVAL;
    for (int rank = 0; rank < size; rank++) {
        if (app_of[rank] != appnum)
            continue;
        if (app.base_rank < 0)
            app.base_rank = rank;
        if (rank < pmii_facts_rank())
            app.my_place++;
        app.size++;
    }
    *app_out = app;
    return 0;
}

static int ask_app(int appnum, struct app *app_out)
{
    int r = pmii_enter(PMII_ANY_TIME);

    return r < 0 ? pmii_rc(r) : pmii_leave(describe_app(appnum, app_out));
}

int PMI_Get_rank_in_app(int *rank)
{
    struct app app;
    int rc = rank ? ask_app(-1, &app) : PMI_ERR_INVALID_ARG;

    if (rc == PMI_SUCCESS)
        *rank = app.my_place;
    return rc;
}

int PMI_Get_base_rank_in_app(int *rank)
{
    struct app app;
    int rc = rank ? ask_app(-1, &app) : PMI_ERR_INVALID_ARG;

    if (rc == PMI_SUCCESS)
        *rank = app.base_rank;
    return rc;
}

int PMI_Get_app_size(int appnum, int *size)
{
    struct app app;
    int rc = size && appnum >= 0 ? ask_app(appnum, &app) : PMI_ERR_INVALID_ARG;

    if (rc == PMI_SUCCESS)
        *size = app.size;
    return rc;
}

int PMI_Get_num_apps(int *num_apps)
{
    struct app app;
    int rc = num_apps ? ask_app(-1, &app) : PMI_ERR_INVALID_ARG;

    if (rc == PMI_SUCCESS)
        *num_apps = app.n_apps;
    return rc;
}

/* ---- nodes ---- */

static int count_group(enum pmii_group group, int *num)
{
    int r;

    if (!num)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    return r < 0 ? pmii_rc(r) : pmii_leave(pmii_facts_group(group, NULL, 0, num));
}

static int list_group(enum pmii_group group, int *ranks, int num)
{
    int n, r;

    if (!ranks || num < 0)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    return r < 0 ? pmii_rc(r) : pmii_leave(pmii_facts_group(group, ranks, num, &n));
}

int PMI_Get_numpes_in_app_on_smp(int *num)
{
    return count_group(PMII_NODE_AND_APP, num);
}

int PMI_Get_pes_in_app_on_smp(int *ranks, int num)
{
    return list_group(PMII_NODE_AND_APP, ranks, num);
}

int PMI_Get_numpes_on_smp(int *num)
{
    return count_group(PMII_NODE, num);
}

int PMI_Get_pes_on_smp(int *ranks, int num)
{
    return list_group(PMII_NODE, ranks, num);
}

int PMI_Get_nid(int rank, int *nid)
{
    const int *nids;
    int size, r;

    if (rank < 0 || !nid)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    r = pmii_facts_size(&size);
    if (r == 0)
        r = rank < size ? pmii_facts_nids(&nids) : -EINVAL;
    if (r == 0)
        *nid = nids[rank];
    return pmii_leave(r);
}

int PMI_Get_nidlist_ptr(void **nidlist)
{
    const int *nids;
    int r;

    if (!nidlist)
        return PMI_ERR_INVALID_ARG;
    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    r = pmii_facts_nids(&nids);
    if (r == 0)
        *nidlist = (void *)(uintptr_t)nids;
    return pmii_leave(r);
}

/* ---- coordinates: emunic's machine; without an emunic the XC numbering rule ---- */

int PMI_Get_meshcoord(pmi_nid_t nid, pmi_mesh_coord_t *xyz)
{
    const struct emu_places *places = emu_places_map();
    unsigned coordinate[3];
    const uint16_t *mesh;

    if (!xyz || (places && nid >= places->n_nids))
        return PMI_ERR_INVALID_ARG;
    if (places) {
        mesh = emu_places_nodes(places)[nid].mesh;
        *xyz = (pmi_mesh_coord_t){ mesh[0], mesh[1], mesh[2] };
        return PMI_SUCCESS;
    }
    pmii_xc_coordinate(nid, pmii_facts_cabinet_columns(), coordinate);
    *xyz = (pmi_mesh_coord_t){ coordinate[0], coordinate[1], coordinate[2] };
    return PMI_SUCCESS;
}

/* Of a full group in Y and Z, of the job's highest nid in X. */
static int largest_of_xc(pmi_mesh_coord_t *xyz)
{
    pmi_mesh_coord_t largest = { 0, pmii_facts_cabinet_columns() > 1 ? 5 : 2, 15 };
    const int *nids;
    int size, r;

    r = pmii_enter(PMII_ANY_TIME);
    if (r < 0)
        return pmii_rc(r);
    r = pmii_facts_size(&size);
    if (r == 0)
        r = pmii_facts_nids(&nids);
    for (int i = 0; r == 0 && i < size; i++) {
        unsigned coordinate[3];

        pmii_xc_coordinate(nids[i], pmii_facts_cabinet_columns(), coordinate);
        if (coordinate[0] > largest.mesh_x)
            largest.mesh_x = coordinate[0];
    }
    if (r == 0)
        *xyz = largest;
    return pmii_leave(r);
}

int PMI_Get_max_dimension(pmi_mesh_coord_t *xyz)
{
    const struct emu_places *places = emu_places_map();

    if (!xyz)
        return PMI_ERR_INVALID_ARG;
    if (!places)
        return largest_of_xc(xyz);
    *xyz = (pmi_mesh_coord_t){ places->mesh_max[0], places->mesh_max[1], places->mesh_max[2] };
    return PMI_SUCCESS;
}

/* ---- aliases ---- */

int PMI_CRAY_Get_base_rank_in_app(int *rank)
{
    return PMI_Get_base_rank_in_app(rank);
}

int PMI_CRAY_Get_app_size(int appnum, int *size)
{
    return PMI_Get_app_size(appnum, size);
}

int PMI_CRAY_Get_num_apps(int *num_apps)
{
    return PMI_Get_num_apps(num_apps);
}

int PMI_CRAY_Get_rank_in_app(int *rank)
{
    return PMI_Get_rank_in_app(rank);
}

struct hostent *PMI_CRAY_gethostbyname(const char *name)
{
    return gethostbyname(name);
}
