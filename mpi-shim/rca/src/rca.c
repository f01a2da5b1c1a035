/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes and their places. Places are emunic's (emunic/client/places_map.h); which node this is comes from libpmi.
 *
 * Without an emunic the XC rule gives places, and the job's nodes are all that is known:
 *
 *   cabinet = nid / 192, cage = nid % 192 / 64, slot = nid % 64 / 4, node on the blade = nid % 4
 *   column = cabinet % columns, row = cabinet / columns
 *   X = row * (columns / 2) + column / 2, Y = column % 2 * 3 + cage, Z = slot
 *
 * Source: spec/cray-runtime.md 4.2.
 */
#include <pmi.h>
#include <pmi_cray.h>
#include <stdbool.h>
#include <stdlib.h>

#include "emunic/client/places_map.h"

#pragma GCC visibility push(default)
#include "mpi-shim/rca/include/rca_lib.h"
#pragma GCC visibility pop

#define NIDS_MAX          (1u << 18)
#define NODES_PER_CABINET 192u
#define NODES_PER_CAGE    64u
#define NODES_PER_BLADE   4u
#define CAGES             3u

static unsigned cabinet_columns(void)
{
    const char *text = getenv("EMUNIC_CABINET_COLUMNS");
    long n = text ? strtol(text, NULL, 10) : 0;

    return n > 0 && n <= 1000 ? (unsigned)n : 2;
}

/* By the XC rule. */
static struct emu_node_place place_on_xc(uint32_t nid)
{
    unsigned columns = cabinet_columns();
    unsigned cabinet = nid / NODES_PER_CABINET;
    unsigned groups_per_row = columns > 1 ? columns / 2 : 1;
    unsigned cage = nid % NODES_PER_CABINET / NODES_PER_CAGE;
    unsigned slot = nid % NODES_PER_CAGE / NODES_PER_BLADE;

    return (struct emu_node_place){
        .mesh = { (uint16_t)(cabinet / columns * groups_per_row + cabinet % columns / 2),
                  (uint16_t)(cabinet % columns % 2 * CAGES + cage), (uint16_t)slot },
        .column = (uint16_t)(cabinet % columns),
        .row = (uint16_t)(cabinet / columns),
        .cage = (uint16_t)cage,
        .slot = (uint16_t)slot,
        .node = (uint16_t)(nid % NODES_PER_BLADE),
    };
}

/* False: there is no such node. */
static bool find_place(uint32_t nid, struct emu_node_place *place_out)
{
    const struct emu_places *places = emu_places_map();

    if (nid >= (places ? places->n_nids : NIDS_MAX))
        return false;
    *place_out = places ? emu_places_nodes(places)[nid] : place_on_xc(nid);
    return true;
}

static rs_node_t describe(uint32_t nid)
{
    rs_node_t node = { .rs_node_flat = 0 };
    struct emu_node_place at = { .node = 0 };

    (void)find_place(nid, &at); /* else the job's nids are not the machine's: no place */
    node.rs_node_s._node_id = nid;
    node.rs_node_s._node_type = RT_NODE;
    node.rs_node_s._node_state = RS_CS_READY;
    node.rs_node_s._node_x = at.column;
    node.rs_node_s._node_row = at.row;
    node.rs_node_s._node_cage = at.cage;
    node.rs_node_s._node_slot = at.slot;
    node.rs_node_s._node_modcomp = at.node;
    node.rs_node_s._node_link = at.chip;
    return node;
}

static bool own_nid(uint32_t *nid_out)
{
    int n = 0;
    int nid = -1;
    int *ranks = NULL;

    /* Every rank of this node has its nid; unlike the own rank they are known before PMI_Init. */
    if (PMI_Get_numpes_on_smp(&n) == PMI_SUCCESS && n > 0)
        ranks = calloc((size_t)n, sizeof(*ranks));
    if (ranks && PMI_Get_pes_on_smp(ranks, n) == PMI_SUCCESS && PMI_Get_nid(ranks[0], &nid) != PMI_SUCCESS)
        nid = -1;
    free(ranks);
    if (nid < 0 || (uint32_t)nid >= NIDS_MAX)
        return false;
    *nid_out = (uint32_t)nid;
    return true;
}

/* The nid of every rank, and how many ranks; the list is libpmi's. */
static bool all_nids(const int **nids_out, int *n_out)
{
    int n_apps;
    int total = 0;
    int size;
    void *list;

    if (PMI_Get_nidlist_ptr(&list) != PMI_SUCCESS || PMI_Get_num_apps(&n_apps) != PMI_SUCCESS)
        return false;
    for (int a = 0; a < n_apps; a++) {
        if (PMI_Get_app_size(a, &size) != PMI_SUCCESS)
            return false;
        total += size;
    }
    *nids_out = list;
    *n_out = total;
    return total > 0;
}

static int compare_nids(const void *a, const void *b)
{
    int x = *(const int *)a;
    int y = *(const int *)b;

    return (x > y) - (x < y);
}

int rca_get_nodeid(rs_node_t *node)
{
    uint32_t nid;

    if (!node || !own_nid(&nid))
        return -1;
    *node = describe(nid);
    return 0;
}

static rca_mesh_coord_t as_coordinate(const uint16_t mesh[3])
{
    return (rca_mesh_coord_t){ .mesh_x = mesh[0], .mesh_y = mesh[1], .mesh_z = mesh[2] };
}

int rca_get_meshcoord(uint32_t nid, rca_mesh_coord_t *xyz)
{
    struct emu_node_place at;

    if (!xyz || !find_place(nid, &at))
        return -1;
    *xyz = as_coordinate(at.mesh);
    return 0;
}

/* Of a full group in Y and Z, of the job's highest nid in X. */
static int largest_of_xc(rca_mesh_coord_t *xyz)
{
    const int *nids;
    uint16_t x = 0;
    int n;

    if (!all_nids(&nids, &n))
        return -1;
    for (int i = 0; i < n; i++) {
        uint16_t here = place_on_xc((uint32_t)nids[i]).mesh[0];

        x = here > x ? here : x;
    }
    *xyz = (rca_mesh_coord_t){ .mesh_x = x,
                               .mesh_y = cabinet_columns() > 1 ? 2 * CAGES - 1 : CAGES - 1,
                               .mesh_z = NODES_PER_CAGE / NODES_PER_BLADE - 1 };
    return 0;
}

int rca_get_max_dimension(rca_mesh_coord_t *xyz)
{
    const struct emu_places *places = emu_places_map();

    if (!xyz)
        return -1;
    if (!places)
        return largest_of_xc(xyz);
    *xyz = as_coordinate(places->mesh_max);
    return 0;
}

/* The job's, ascending and each once. */
static int list_job(rs_node_array_t *nodes)
{
    const int *nids;
    rs_node_t *ids;
    int *sorted;
    int n_nodes = 0;
    int n;

    if (!all_nids(&nids, &n))
        return -1;
    sorted = calloc((size_t)n, sizeof(*sorted));
    ids = calloc((size_t)n, sizeof(*ids));
    if (!sorted || !ids) {
        free(sorted);
        free(ids);
        return -1;
    }
    for (int i = 0; i < n; i++)
        sorted[i] = nids[i];
    qsort(sorted, (size_t)n, sizeof(*sorted), compare_nids);
    for (int i = 0; i < n; i++) {
        if (i == 0 || sorted[i] != sorted[i - 1])
            ids[n_nodes++] = describe((uint32_t)sorted[i]);
    }
    free(sorted);
    *nodes = (rs_node_array_t){ .na_len = n_nodes, .na_ids = ids };
    return 0;
}

int rca_get_sysnodes(rs_node_array_t *nodes)
{
    const struct emu_places *places = emu_places_map();
    rs_node_t *ids;

    if (!nodes)
        return -1;
    if (!places)
        return list_job(nodes);
    ids = calloc(places->n_nids, sizeof(*ids));
    if (!ids)
        return -1;
    for (uint32_t nid = 0; nid < places->n_nids; nid++)
        ids[nid] = describe(nid);
    *nodes = (rs_node_array_t){ .na_len = (int32_t)places->n_nids, .na_ids = ids };
    return 0;
}
