/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of a Portals job that finds its peers as programs of the XT systems do: by the map of cnos or of PMI,
 * without a call of PMI_Init. Every rank puts a word to the next one. Each dialect compiles it.
 *
 *   cnos_rank any     PTL_PID_ANY: the map is right before any interface is open, and nobody registers
 *   cnos_rank own     process ids of the program's choice, which the map has after cnos_register_ptlid() and a barrier
 *
 *   cnos_rank child   as any; then a child of each rank opens an interface too, and says whether it could
 *
 * Prints "rank R ok".
 */
#ifdef CNOS_RANK_REF
#include <portals3.h>
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>
#define NO_ACK PTL_NO_ACK_REQ
#else
#define NO_ACK PTL_NOACK_REQ
#endif
#include <catamount/cnos_mpi_os.h>
#include <pctmbox.h>
#include <pmi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PT      7
#define OWN_PID 200
#define BITS    0x636e6f73u

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "rank %d line %d: not true: %s\n", rank, __LINE__, #condition);                            \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static int rank, size;
static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq;
static uint64_t inbox;

/* All names of the map lead to one array, which stays where it is. */
static const cnos_nidpid_map_t *ask_map(void)
{
    cnos_nidpid_map_t *map = NULL;
    void *by_pmi = NULL, *by_portals = NULL;
    int nid;

    CHECK(cnos_get_nidpid_map(&map) == size);
    CHECK(PMI_CNOS_Get_nidpid_map(&by_pmi) == PMI_SUCCESS && by_pmi == map);
    CHECK(PMI_Portals_get_nidpid_map(&by_portals) == PMI_SUCCESS && by_portals == map);
    for (int r = 0; r < size; r++)
        CHECK(PMI_Portals_get_nid(r, &nid) == PMI_SUCCESS && (unsigned)nid == map[r].nid);
    return map;
}

static void check_questions(void)
{
    const cnos_nidpid_map_t *map = ask_map();
    int n_nodes = 0, nid;

    for (int r = 0; r < size; r++) {
        int is_new = 1;

        CHECK(PMI_Get_nid(r, &nid) == PMI_SUCCESS && (unsigned)nid == map[r].nid && map[r].pid == (unsigned)r);
        for (int before = 0; before < r; before++)
            is_new = is_new && map[before].nid != map[r].nid;
        n_nodes += is_new;
    }
    CHECK(cnos_get_nnodes() == n_nodes);
    CHECK(cnos_launcher() != CNOS_LAUNCHER_YOD);
    CHECK(cnos_get_nidpid_map(NULL) == -1 && PMI_CNOS_Get_nidpid_map(NULL) == PMI_ERR_INVALID_ARG);
    CHECK(PMI_Portals_get_nid(size, &nid) == PMI_ERR_INVALID_ARG);
    setenv("XT_SYMMETRIC_HEAP_SIZE", "16M", 1);
    CHECK(cnos_shmem_size() == 16u << 20);
    setenv("XT_SYMMETRIC_HEAP_SIZE", "16Q", 1);
    CHECK(cnos_shmem_size() == 0);
}

static void open_interface(ptl_pid_t pid)
{
    const ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
    ptl_md_t md = { .start = &inbox,
                    .length = sizeof(inbox),
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE };
    ptl_handle_me_t me;
    ptl_handle_md_t handle;
    int n;

    CHECK(PtlInit(&n) == PTL_OK);
    CHECK(PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, &ni) == PTL_OK);
    CHECK(PtlEQAlloc(ni, 64, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK);
    md.eq_handle = eq;
    CHECK(PtlMEAttach(ni, PT, anybody, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me) == PTL_OK);
    CHECK(PtlMDAttach(me, md, PTL_RETAIN, &handle) == PTL_OK);
}

static void check_own_address(int is_registering)
{
    const cnos_nidpid_map_t *map = ask_map();
    ptl_process_id_t id;

    CHECK(PtlGetId(ni, &id) == PTL_OK);
    if (is_registering) {
        CHECK(map[rank].pid != id.pid);
        CHECK(cnos_register_ptlid(id) == 0);
        CHECK(ask_map() == map);
    }
    CHECK(map[rank].nid == id.nid && map[rank].pid == id.pid);
}

#ifdef CNOS_RANK_REF
/* The reference dialect's own view of it, from what the launcher has set; nobody has called PtlSetRank(). */
static void check_runtime(int is_own)
{
    const cnos_nidpid_map_t *map = ask_map();
    ptl_handle_ni_t second;
    ptl_process_id_t id;
    unsigned my_rank, n;

    CHECK(PtlGetRank(ni, &my_rank, &n) == PTL_OK && my_rank == (unsigned)rank && n == (unsigned)size);
    for (int r = 0; r < size && !is_own; r++)
        CHECK(PtlGetRankId(ni, (unsigned)r, &id) == PTL_OK && id.nid == map[r].nid && id.pid == map[r].pid);
    CHECK(PtlNIInit(PTL_IFACE_UTCP1, PTL_PID_ANY, NULL, NULL, &second) == PTL_OK);
    CHECK(PtlNIFini(second) == PTL_OK);
}
#endif

static void await(ptl_event_kind_t kind)
{
    ptl_event_t event;

    do
        CHECK(PtlEQWait(eq, &event) == PTL_OK && event.ni_fail_type == PTL_NI_OK);
    while (event.type != kind);
}

/* To the next rank, at the address that the map has; from the one before. */
static void put_around(const cnos_nidpid_map_t *map)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    uint64_t word = 4711u + (uint64_t)rank;
    ptl_md_t md = { .start = &word, .length = sizeof(word), .threshold = PTL_MD_THRESH_INF, .eq_handle = PTL_EQ_NONE };
    ptl_process_id_t target;
    ptl_handle_md_t handle;

    memcpy(&target, &map[next], sizeof(target)); /* as ARMCI takes it */
    CHECK(PtlMDBind(ni, md, PTL_RETAIN, &handle) == PTL_OK);
    CHECK(PtlPut(handle, NO_ACK, target, PT, 0, BITS, 0, 0) == PTL_OK);
    await(PTL_EVENT_PUT_END);
    CHECK(inbox == 4711u + (uint64_t)before);
    CHECK(cnos_barrier() == 0); /* my word is on its way until its taker has passed this */
}

/* One process more that attaches to the job's domain. */
static void try_child(void)
{
    pid_t child = fork();
    int status, n;

    if (child == 0)
        _exit(PtlInit(&n) == PTL_OK && PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK ? 0 : 1);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    printf("child %s\n", WEXITSTATUS(status) == 0 ? "admitted" : "refused");
    CHECK(cnos_barrier() == 0); /* no rank makes place for the child of another */
}

int main(int argc, char **argv)
{
    int has_child = argc > 1 && strcmp(argv[1], "child") == 0;
    int is_own = argc > 1 && strcmp(argv[1], "own") == 0;

    rank = cnos_get_rank();
    size = cnos_get_size();
    CHECK(rank >= 0 && rank < size && size > 1);
    check_questions();
    open_interface(is_own ? (ptl_pid_t)(OWN_PID + rank) : PTL_PID_ANY);
    check_own_address(is_own);
#ifdef CNOS_RANK_REF
    check_runtime(is_own);
#endif
    CHECK(cnos_barrier_init(ni) == 0 && cnos_barrier() == 0);
    for (int r = 0; r < size; r++)
        CHECK(ask_map()[r].pid == (unsigned)(is_own ? OWN_PID + r : r));
    put_around(ask_map());
    if (has_child)
        try_child();
    PtlNIFini(ni);
    PtlFini();
    printf("rank %d ok\n", rank);
    return 0;
}
