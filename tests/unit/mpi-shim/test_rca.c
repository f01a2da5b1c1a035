/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Node ids and coordinates. The job here: ranks on nodes 13055, 2305, 2313, 2305 of a machine with 12 cabinets in a row
 * (the published examples of spec/cray-runtime.md 4.2); this is rank 1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <rca_lib.h>

static int enter_job(void **state)
{
    (void)state;
    setenv("PMIX_NAMESPACE", "job", 1);
    setenv("PMIX_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4", 1);
    setenv("EMUNIC_NIDS", "13055,2305,2313,2305", 1);
    setenv("OMPI_COMM_WORLD_RANK", "1", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_APP_CTX_NUM_PROCS", "4", 1);
    setenv("EMUNIC_CABINET_COLUMNS", "12", 1);
    return 0;
}

static void expect_place(uint32_t nid, unsigned x, unsigned y, unsigned z)
{
    rca_mesh_coord_t at = { 9999, 9999, 9999 };

    assert_int_equal(rca_get_meshcoord(nid, &at), 0);
    assert_int_equal(at.mesh_x, x);
    assert_int_equal(at.mesh_y, y);
    assert_int_equal(at.mesh_z, z);
}

static void expect_name(const rs_node_t *node, unsigned column, unsigned row, unsigned cage, unsigned slot,
                        unsigned blade_node)
{
    assert_int_equal(node->rs_node_s._node_x, column);
    assert_int_equal(node->rs_node_s._node_row, row);
    assert_int_equal(node->rs_node_s._node_cage, cage);
    assert_int_equal(node->rs_node_s._node_slot, slot);
    assert_int_equal(node->rs_node_s._node_modcomp, blade_node);
    assert_int_equal(node->rs_node_s._node_state, RS_CS_READY);
    assert_int_equal(node->rs_node_s._node_is_svc, 0);
}

static void test_published_nodes_are_where_they_were(void **state)
{
    (void)state;
    expect_place(2305, 6, 0, 0);
    expect_place(2313, 6, 0, 2);
    expect_place(13055, 35 - 2, 5, 15); /* c7-5c2s15n3: row 5, columns 6 and 7 are the fourth group of the row */
}

static void test_four_nodes_share_a_coordinate(void **state)
{
    (void)state;
    for (uint32_t nid = 64; nid < 68; nid++)
        expect_place(nid, 0, 1, 0);
    expect_place(68, 0, 1, 1);
    expect_place(192, 0, 3, 0); /* the group's second cabinet */
    expect_place(384, 1, 0, 0);
}

static void test_nids_that_cannot_be_have_no_coordinate(void **state)
{
    rca_mesh_coord_t at = { 7, 7, 7 };

    (void)state;
    assert_int_equal(rca_get_meshcoord(1u << 18, &at), -1);
    assert_int_equal(rca_get_meshcoord(UINT32_MAX, &at), -1);
    assert_int_equal(rca_get_meshcoord(1, NULL), -1);
    assert_int_equal(at.mesh_x, 7);
}

static void test_own_node_is_the_rank_s(void **state)
{
    rs_node_t node;

    (void)state;
    assert_int_equal(rca_get_nodeid(&node), 0);
    assert_int_equal(node.rs_node_s._node_id, 2305);
    expect_name(&node, 0, 1, 0, 0, 1); /* c0-1c0s0n1 */
    assert_int_equal(rca_get_nodeid(NULL), -1);
}

static void test_nodes_of_the_job_come_once_and_in_order(void **state)
{
    static const unsigned wanted[] = { 2305, 2313, 13055 };
    rs_node_array_t nodes;

    (void)state;
    assert_int_equal(rca_get_sysnodes(&nodes), 0);
    assert_int_equal(nodes.na_len, 3);
    for (int i = 0; i < 3; i++)
        assert_int_equal(nodes.na_ids[i].rs_node_s._node_id, wanted[i]);
    expect_name(&nodes.na_ids[2], 7, 5, 2, 15, 3);
    free(nodes.na_ids);
    assert_int_equal(rca_get_sysnodes(NULL), -1);
}

static void test_largest_coordinates_are_those_of_a_full_group_and_the_highest_node(void **state)
{
    rca_mesh_coord_t largest;

    (void)state;
    assert_int_equal(rca_get_max_dimension(&largest), 0);
    assert_int_equal(largest.mesh_x, 33);
    assert_int_equal(largest.mesh_y, 5);
    assert_int_equal(largest.mesh_z, 15);
    assert_int_equal(rca_get_max_dimension(NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_nodes_are_where_they_were),
        cmocka_unit_test(test_four_nodes_share_a_coordinate),
        cmocka_unit_test(test_nids_that_cannot_be_have_no_coordinate),
        cmocka_unit_test(test_own_node_is_the_rank_s),
        cmocka_unit_test(test_nodes_of_the_job_come_once_and_in_order),
        cmocka_unit_test(test_largest_coordinates_are_those_of_a_full_group_and_the_highest_node),
    };

    return cmocka_run_group_tests(tests, enter_job, NULL);
}
