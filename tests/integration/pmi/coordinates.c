/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank of a job on a machine: device, coordinates and places that programs are told are those of the machine, for
 * every node and before PMI_Init.
 *
 *   coordinates SPEC MACHINE_FOLDER     exit status 0: they are
 */
#include <gni_pub.h>
#include <pmi.h>
#include <pmi_cray.h>
#include <rca_lib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/machine.h"

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: not true: %s\n", __LINE__, #condition);                                          \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static void check_mesh(uint32_t nid, unsigned x, unsigned y, unsigned z)
{
    pmi_mesh_coord_t pmi = { 77, 77, 77 };
    rca_mesh_coord_t rca = { 77, 77, 77 };

    CHECK(rca_get_meshcoord(nid, &rca) == 0 && rca.mesh_x == x && rca.mesh_y == y && rca.mesh_z == z);
    if (nid > UINT16_MAX)
        return;
    CHECK(PMI_Get_meshcoord((pmi_nid_t)nid, &pmi) == PMI_SUCCESS);
    CHECK(pmi.mesh_x == x && pmi.mesh_y == y && pmi.mesh_z == z);
}

static void check_largest(unsigned x, unsigned y, unsigned z)
{
    pmi_mesh_coord_t pmi;
    rca_mesh_coord_t rca;

    CHECK(PMI_Get_max_dimension(&pmi) == PMI_SUCCESS && rca_get_max_dimension(&rca) == 0);
    CHECK(pmi.mesh_x == x && pmi.mesh_y == y && pmi.mesh_z == z);
    CHECK(rca.mesh_x == x && rca.mesh_y == y && rca.mesh_z == z);
}

/* The one-cabinet Gemini of spec/machines.md 3.1, by its formula. */
static void check_gemini(void)
{
    for (uint32_t nid = 0; nid < 96; nid++) {
        uint32_t cage = nid / 32;
        uint32_t half = nid % 32 / 16;
        uint32_t step = nid % 16 / 2;

        check_mesh(nid, cage, half ^ (cage % 2), half == 0 ? step : 7 - step);
    }
    check_largest(2, 1, 7);
}

/* A node's physical name, from what rca says. */
static void check_name(const struct emu_machine *m, const rs_node_t *node)
{
    char wanted[EMU_CNAME_MAX];
    char told[EMU_CNAME_MAX];

    CHECK(emu_machine_cname(m, (uint32_t)node->rs_node_s._node_id, wanted, sizeof(wanted)) == 0);
    snprintf(told, sizeof(told), "c%u-%uc%us%un%u", (unsigned)node->rs_node_s._node_x,
             (unsigned)node->rs_node_s._node_row, (unsigned)node->rs_node_s._node_cage,
             (unsigned)node->rs_node_s._node_slot, (unsigned)node->rs_node_s._node_modcomp);
    if (strcmp(told, wanted) != 0)
        fprintf(stderr, "nid %u: %s, not %s\n", (unsigned)node->rs_node_s._node_id, told, wanted);
    CHECK(strcmp(told, wanted) == 0);
    CHECK(node->rs_node_s._node_state == RS_CS_READY);
}

static void check_nodes(const struct emu_machine *m)
{
    unsigned largest[3] = { 0, 0, 0 };
    rs_node_array_t nodes;

    CHECK(rca_get_sysnodes(&nodes) == 0 && (uint32_t)nodes.na_len == emu_machine_n_nodes(m));
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        struct emu_place at;

        CHECK(emu_machine_place(m, nid, &at) == 0 && nodes.na_ids[nid].rs_node_s._node_id == nid);
        check_name(m, &nodes.na_ids[nid]);
        CHECK(nodes.na_ids[nid].rs_node_s._node_link == at.chip);
        check_mesh(nid, at.mesh_x, at.mesh_y, at.mesh_z);
        largest[0] = at.mesh_x > largest[0] ? at.mesh_x : largest[0];
        largest[1] = at.mesh_y > largest[1] ? at.mesh_y : largest[1];
        largest[2] = at.mesh_z > largest[2] ? at.mesh_z : largest[2];
    }
    check_largest(largest[0], largest[1], largest[2]);
    free(nodes.na_ids);
}

static void check_what_there_is_not(uint32_t n_nodes)
{
    rca_mesh_coord_t rca = { 7, 7, 7 };
    pmi_mesh_coord_t pmi = { 7, 7, 7 };

    CHECK(rca_get_meshcoord(n_nodes, &rca) == -1 && rca.mesh_x == 7 && rca_get_meshcoord(0, NULL) == -1);
    CHECK(rca_get_max_dimension(NULL) == -1 && rca_get_sysnodes(NULL) == -1);
    CHECK(PMI_Get_meshcoord(0, NULL) == PMI_ERR_INVALID_ARG && PMI_Get_max_dimension(NULL) == PMI_ERR_INVALID_ARG);
    if (n_nodes <= UINT16_MAX)
        CHECK(PMI_Get_meshcoord((pmi_nid_t)n_nodes, &pmi) == PMI_ERR_INVALID_ARG && pmi.mesh_x == 7);
}

static void check_own_node(const struct emu_machine *m)
{
    rs_node_t node;
    int nid = -1;
    int rank;

    CHECK(rca_get_nodeid(&node) == 0);
    check_name(m, &node);
    CHECK(PMI_Get_rank(&rank) == PMI_SUCCESS && PMI_Get_nid(rank, &nid) == PMI_SUCCESS);
    CHECK((int)node.rs_node_s._node_id == nid);
}

int main(int argc, char **argv)
{
    struct emu_machine *m = NULL;
    gni_nic_device_t type;
    char err[256];
    int spawned;

    CHECK(argc == 3 && emu_machine_load(argv[1], argv[2], &m, err, sizeof(err)) == 0);
    CHECK(GNI_GetDeviceType(&type) == GNI_RC_SUCCESS);
    CHECK(type == (strncmp(argv[1], "gemini", 6) == 0 ? GNI_DEVICE_GEMINI : GNI_DEVICE_ARIES));
    if (strcmp(argv[1], "gemini") == 0)
        check_gemini();
    check_nodes(m);
    check_what_there_is_not(emu_machine_n_nodes(m));
    CHECK(PMI_Init(&spawned) == PMI_SUCCESS);
    check_own_node(m);
    CHECK(PMI_Finalize() == PMI_SUCCESS);
    emu_machine_destroy(m);
    return 0;
}
