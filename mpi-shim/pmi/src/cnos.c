/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The XT systems' view of a job: cnos calls, and the map of Portals addresses under all its names.
 *
 * Nodes come from facts.c. The process id of rank r is r, because emunic gives a rank that asks for PTL_PID_ANY the
 * number of its rank (emunic/daemon/portals/portals_end.c). So the map is known before an interface is open and
 * without a word between ranks, as clients need it (ARMCI asks before any barrier). A rank with another process id
 * registers it: a pair in a key-value space of our own, with the rank in the key, which the next barrier of any
 * kind carries to all.
 *
 * Programs of these systems do not know PMI, and nothing tells us that they are done but their exit: the first
 * cnos_barrier() initialises PMI and leaves the finalize to atexit(). A forked child does not do it for its parent.
 * The interface, with every result, is in cnos_mpi_os.h and pmi_cray_ext.h. Source: spec/cray-runtime.md 2.7.
 */
#include "mpi-shim/pmi/src/pmi_api.h"
#include "mpi-shim/pmi/src/facts.h"
#include "mpi-shim/pmi/src/rounds.h"
#include "mpi-shim/pmi/src/pmi_session.h"
#include "mpi-shim/pmi/src/pmi_space.h"

#pragma GCC visibility push(default)
#include <cnos_mpi_os.h>
#pragma GCC visibility pop

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPACE "@cnos" /* no job's name begins so */
enum { TEXT_ROOM = 32 };

static_assert(sizeof(cnos_nidpid_map_t) == sizeof(ptl_process_id_t), "clients use one as the other");
static_assert(offsetof(ptl_process_id_t, pid) == offsetof(cnos_nidpid_map_t, pid), "clients use one as the other");

/* Both under the library lock. */
static cnos_nidpid_map_t *map; /* owned; one array for the life of the process: clients keep the pointer */
static pid_t holder;           /* the process that has initialised PMI for its barriers; 0: none yet */

/* ---- the map ---- */

static void key_of(int rank, char key[static TEXT_ROOM])
{
    snprintf(key, TEXT_ROOM, "ptlid.%d", rank);
}

/* Lock held. */
static int fill_map(const int *nids, int size)
{
    char key[TEXT_ROOM];
    const char *text;

    if (!map)
        map = calloc((size_t)size, sizeof(*map));
    if (!map)
        return -ENOMEM;
    for (int rank = 0; rank < size; rank++) {
        cnos_nidpid_map_t entry = { (unsigned)nids[rank], (unsigned)rank };

        key_of(rank, key);
        if (pmii_space_get(SPACE, key, rank, &text) == 0)
            sscanf(text, "%u:%u", &entry.nid, &entry.pid);
        if (map[rank].nid != entry.nid || map[rank].pid != entry.pid)
            map[rank] = entry; /* else untouched: another thread may be reading */
    }
    return 0;
}

/* Lock held. @param[out] size_out entries of `map` */
static int make_map(int *size_out)
{
    const int *nids;
    int r = pmii_facts_size(size_out);

    if (r == 0)
        r = pmii_facts_nids(&nids);
    return r < 0 ? r : fill_map(nids, *size_out);
}

/* API code. */
static int ask_map(int *size_out)
{
    int r = pmii_enter(PMII_ANY_TIME);

    return r < 0 ? pmii_rc(r) : pmii_leave(make_map(size_out));
}

int cnos_get_nidpid_map(cnos_nidpid_map_t **map_out)
{
    int size;

    if (!map_out || ask_map(&size) != PMI_SUCCESS)
        return -1;
    *map_out = map;
    return size;
}

int PMI_CNOS_Get_nidpid_map(void **map_out)
{
    int size, rc;

    if (!map_out)
        return PMI_ERR_INVALID_ARG;
    rc = ask_map(&size);
    if (rc == PMI_SUCCESS)
        *map_out = map;
    return rc;
}

int PMI_Portals_get_nidpid_map(void **map_out)
{
    return PMI_CNOS_Get_nidpid_map(map_out);
}

int PMI_Portals_get_nid(int rank, int *nid)
{
    int size, rc;

    if (!nid)
        return PMI_ERR_INVALID_ARG;
    rc = ask_map(&size);
    if (rc != PMI_SUCCESS)
        return rc;
    if (rank < 0 || rank >= size)
        return PMI_ERR_INVALID_ARG;
    *nid = (int)map[rank].nid;
    return PMI_SUCCESS;
}

int cnos_register_ptlid(ptl_process_id_t id)
{
    char key[TEXT_ROOM], value[TEXT_ROOM];
    int r = pmii_enter(PMII_ANY_TIME);

    if (r < 0)
        return -1;
    key_of(pmii_facts_rank(), key);
    /* Cray's type here: of the 32 bits of process id that the reference dialect passes only 16 are ever set. */
    snprintf(value, sizeof(value), "%u:%u", (unsigned)id.nid, (unsigned)id.pid);
    return pmii_leave(pmii_space_put(SPACE, key, value)) == PMI_SUCCESS ? 0 : -1;
}

/* ---- the job ---- */

int cnos_get_rank(void)
{
    int rank;

    return PMI_Get_rank(&rank) == PMI_SUCCESS ? rank : -1;
}

int cnos_get_size(void)
{
    int size;

    return PMI_Get_size(&size) == PMI_SUCCESS ? size : -1;
}

static int compare(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;

    return (x > y) - (x < y);
}

/* Lock held. */
static int count_nodes(int *n_out)
{
    const int *nids;
    int *sorted;
    int size, n = 0;
    int r = pmii_facts_size(&size);

    if (r == 0)
        r = pmii_facts_nids(&nids);
    if (r < 0)
        return r;
    sorted = malloc((size_t)size * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    memcpy(sorted, nids, (size_t)size * sizeof(*sorted));
    qsort(sorted, (size_t)size, sizeof(*sorted), compare);
    for (int i = 0; i < size; i++)
        n += i == 0 || sorted[i] != sorted[i - 1];
    free(sorted);
    *n_out = n;
    return 0;
}

int cnos_get_nnodes(void)
{
    int n = -1, r = pmii_enter(PMII_ANY_TIME);

    return r == 0 && pmii_leave(count_nodes(&n)) == PMI_SUCCESS ? n : -1;
}

int cnos_launcher(void)
{
    return CNOS_LAUNCHER_ALPS;
}

size_t cnos_shmem_size(void)
{
    static const char units[] = "kmg";
    const char *text = getenv("XT_SYMMETRIC_HEAP_SIZE");
    unsigned long long bytes;
    const char *unit;
    char *end;

    if (!text || *text < '0' || *text > '9')
        return 0;
    bytes = strtoull(text, &end, 10);
    if (*end == '\0')
        return bytes;
    unit = strchr(units, *end | 0x20);
    if (!unit || end[1] != '\0')
        return 0;
    for (const char *u = units; u <= unit; u++) {
        if (__builtin_mul_overflow(bytes, 1024ull, &bytes))
            return 0;
    }
    return bytes;
}

/* ---- barrier ---- */

static void let_go(void)
{
    if (getpid() == holder)
        PMI_Finalize();
}

/* Initialise PMI for the rest of the process, once. */
static void hold_pmi(void)
{
    bool is_first;

    pmii_lock();
    is_first = holder == 0;
    if (is_first)
        holder = getpid();
    pmii_unlock();
    if (is_first) {
        pmii_session_ref();
        atexit(let_go);
    }
}

int cnos_barrier_init(ptl_handle_ni_t ni)
{
    (void)ni;
    return 0;
}

int cnos_barrier(void)
{
    hold_pmi();
    return PMI_Barrier() == PMI_SUCCESS ? 0 : -1;
}
