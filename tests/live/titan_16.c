/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TITAN-16: a program asks for coordinates and the list of all nodes. On the whole machine of 19 200 nodes number,
 * coordinates (with the node of the pair) and physical name lead to each other and to nobody else.
 */
#include <pmi.h>
#include <rca_lib.h>
#include <stdio.h>
#include <stdlib.h>

#define X     25u
#define Y     16u
#define Z     24u
#define NODES (2u * X * Y * Z)

static int n_wrong;

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("# line %d: not true: %s\n", __LINE__, #condition);                                                 \
            n_wrong++;                                                                                                 \
        }                                                                                                              \
    } while (0)

/* What nobody has had before. */
static int is_first(unsigned char *seen, size_t place)
{
    return seen[place]++ == 0;
}

static void check_node(const rs_node_t *node, uint32_t nid)
{
    static unsigned char chips[X * Y * Z];
    static unsigned char names[512 * 512 / 64 * 3 * 8 * 4]; /* cabinets, cages, slots, nodes of a blade */
    rca_mesh_coord_t at = { 77, 77, 77 };
    size_t chip;
    size_t cabinet = (size_t)node->rs_node_s._node_x * 64 + node->rs_node_s._node_row;
    size_t name = ((cabinet * 3 + node->rs_node_s._node_cage) * 8 + node->rs_node_s._node_slot) * 4 +
                  node->rs_node_s._node_modcomp;

    EXPECT(node->rs_node_s._node_id == nid);
    EXPECT(rca_get_meshcoord(nid, &at) == 0 && at.mesh_x < X && at.mesh_y < Y && at.mesh_z < Z);
    chip = ((size_t)at.mesh_x * Y + at.mesh_y) * Z + at.mesh_z;
    if (n_wrong > 0 || chip >= X * Y * Z)
        return;
    EXPECT(chips[chip]++ < 2); /* two nodes share a chip */
    EXPECT(node->rs_node_s._node_cage < 3 && node->rs_node_s._node_slot < 8 && node->rs_node_s._node_modcomp < 4);
    EXPECT(name < sizeof(names) && is_first(names, name));
    EXPECT(node->rs_node_s._node_link == node->rs_node_s._node_modcomp / 2);
}

int main(void)
{
    rca_mesh_coord_t most = { 0, 0, 0 };
    rca_mesh_coord_t beyond = { 77, 77, 77 };
    rs_node_array_t nodes = { 0, NULL };
    int spawned;

    EXPECT(PMI_Init(&spawned) == PMI_SUCCESS);
    EXPECT(rca_get_max_dimension(&most) == 0);
    EXPECT(most.mesh_x == X - 1 && most.mesh_y == Y - 1 && most.mesh_z == Z - 1);
    EXPECT(rca_get_sysnodes(&nodes) == 0 && nodes.na_len == (int)NODES);
    for (uint32_t nid = 0; n_wrong == 0 && nid < NODES; nid++)
        check_node(&nodes.na_ids[nid], nid);
    EXPECT(rca_get_meshcoord(NODES, &beyond) == -1 && beyond.mesh_x == 77);
    free(nodes.na_ids);
    PMI_Finalize();
    printf("1..1\n%s 1 - number, coordinates and name of %u nodes lead to each other\n", n_wrong ? "not ok" : "ok",
           NODES);
    return n_wrong != 0;
}
