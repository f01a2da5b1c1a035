/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/fabric/fault_map.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/fabric/fixture.h"

static struct emu_machine *machine;

static int setup_group(void **state)
{
    (void)state;
    machine = load("aries:groups=2,chassis=2,blades=4");
    return 0;
}

static int teardown_group(void **state)
{
    (void)state;
    emu_machine_destroy(machine);
    return 0;
}

static int setup(void **state)
{
    struct emu_fault_map *map;

    assert_int_equal(emu_fault_map_create(machine, &map), 0);
    *state = map;
    return 0;
}

static int teardown(void **state)
{
    emu_fault_map_destroy(*state);
    return 0;
}

/* Some link of a class. */
static uint32_t find_link(enum emu_link_class link_class)
{
    for (uint32_t id = 0; id < emu_machine_n_links(machine); id++) {
        if (link_of(machine, id).link_class == link_class)
            return id;
    }
    fail_msg("no link of class %s", emu_link_class_name(link_class));
    return 0;
}

static void test_new_map_is_clean_and_everything_works(void **state)
{
    const struct emu_fault_map *map = *state;

    assert_true(emu_fault_map_is_clean(map));
    for (uint32_t id = 0; id < emu_machine_n_links(machine); id++) {
        assert_true(emu_fault_map_link_up(map, id));
        assert_int_equal(emu_fault_map_lane_mask(map, id), (1u << link_of(machine, id).lanes) - 1);
    }
    for (uint32_t router = 0; router < emu_machine_n_routers(machine); router++)
        assert_true(emu_fault_map_router_up(map, router));
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(machine); nid++)
        assert_true(emu_fault_map_node_up(map, nid));
}

static void test_no_map_means_no_fault(void **state)
{
    (void)state;
    assert_true(emu_fault_map_is_clean(NULL));
    assert_true(emu_fault_map_link_up(NULL, 3));
    assert_true(emu_fault_map_router_up(NULL, 3));
    assert_true(emu_fault_map_node_up(NULL, 3));
    assert_int_equal(emu_fault_map_lane_mask(NULL, 3), UINT32_MAX);
    emu_fault_map_destroy(NULL);
}

static void test_failed_link_is_down_alone_until_repaired(void **state)
{
    struct emu_fault_map *map = *state;
    uint32_t link = find_link(EMU_LINK_BLACK);

    assert_int_equal(emu_fault_map_set_link(map, link, false), 0);
    assert_int_equal(emu_fault_map_set_link(map, link, false), 0); /* twice is once */
    assert_false(emu_fault_map_is_clean(map));
    for (uint32_t id = 0; id < emu_machine_n_links(machine); id++)
        assert_int_equal(emu_fault_map_link_up(map, id), id != link);

    assert_int_equal(emu_fault_map_set_link(map, link, true), 0);
    assert_int_equal(emu_fault_map_set_link(map, link, true), 0);
    assert_true(emu_fault_map_is_clean(map));
    assert_true(emu_fault_map_link_up(map, link));
}

static void test_dead_router_takes_all_its_links_and_no_other(void **state)
{
    struct emu_fault_map *map = *state;
    uint32_t n_down = 0;

    assert_int_equal(emu_fault_map_set_router(map, 5, false), 0);
    assert_false(emu_fault_map_router_up(map, 5));
    assert_true(emu_fault_map_router_up(map, 4));
    for (uint32_t id = 0; id < emu_machine_n_links(machine); id++) {
        struct emu_link l = link_of(machine, id);
        bool touches =
            (l.from.kind == EMU_END_ROUTER && l.from.index == 5) || (l.to.kind == EMU_END_ROUTER && l.to.index == 5);

        assert_int_equal(emu_fault_map_link_up(map, id), !touches);
        n_down += touches;
    }
    assert_true(n_down > 8);                     /* its four NICs' links both ways, and more */
    assert_true(emu_fault_map_node_up(map, 20)); /* the node itself is well; it can only not be reached */
}

static void test_dead_node_takes_its_two_links(void **state)
{
    struct emu_fault_map *map = *state;
    uint32_t n_down = 0;

    assert_int_equal(emu_fault_map_set_node(map, 7, false), 0);
    assert_false(emu_fault_map_node_up(map, 7));
    assert_true(emu_fault_map_node_up(map, 6));
    for (uint32_t id = 0; id < emu_machine_n_links(machine); id++) {
        struct emu_link l = link_of(machine, id);

        if (emu_fault_map_link_up(map, id))
            continue;
        assert_true((l.from.kind == EMU_END_NIC && l.from.index == 7) || (l.to.kind == EMU_END_NIC && l.to.index == 7));
        n_down++;
    }
    assert_int_equal(n_down, 2);
}

static void test_link_stays_down_when_its_router_returns(void **state)
{
    struct emu_fault_map *map = *state;
    uint32_t link = find_link(EMU_LINK_GREEN);
    uint32_t router = link_of(machine, link).from.index;

    assert_int_equal(emu_fault_map_set_link(map, link, false), 0);
    assert_int_equal(emu_fault_map_set_router(map, router, false), 0);
    assert_int_equal(emu_fault_map_set_router(map, router, true), 0);
    assert_false(emu_fault_map_link_up(map, link));
    assert_false(emu_fault_map_is_clean(map));
}

static void test_lost_lanes_are_remembered_and_come_back(void **state)
{
    struct emu_fault_map *map = *state;
    uint32_t link = find_link(EMU_LINK_BLUE);

    assert_int_equal(emu_fault_map_set_lanes(map, link, 5), 0);
    assert_int_equal(emu_fault_map_lane_mask(map, link), 5);
    assert_int_equal(emu_fault_map_lane_mask(map, link + 1), 7);
    assert_false(emu_fault_map_is_clean(map));
    assert_true(emu_fault_map_link_up(map, link)); /* slower, not down */
    assert_int_equal(emu_fault_map_set_lanes(map, link, 4), 0);
    assert_int_equal(emu_fault_map_lane_mask(map, link), 4);
    assert_int_equal(emu_fault_map_set_lanes(map, link, 7), 0);
    assert_int_equal(emu_fault_map_lane_mask(map, link), 7);
    assert_true(emu_fault_map_is_clean(map));
}

static void test_lane_masks_that_cannot_be_are_refused(void **state)
{
    struct emu_fault_map *map = *state;
    uint32_t link = find_link(EMU_LINK_BLUE);

    assert_int_equal(emu_fault_map_set_lanes(map, link, 0), -EINVAL);
    assert_int_equal(emu_fault_map_set_lanes(map, link, 8), -EINVAL); /* has three lanes */
    assert_int_equal(emu_fault_map_set_lanes(map, link, UINT32_MAX), -EINVAL);
    assert_true(emu_fault_map_is_clean(map));
}

static void test_what_does_not_exist_is_refused(void **state)
{
    struct emu_fault_map *map = *state;

    assert_int_equal(emu_fault_map_set_link(map, emu_machine_n_links(machine), false), -ERANGE);
    assert_int_equal(emu_fault_map_set_lanes(map, emu_machine_n_links(machine), 1), -ERANGE);
    assert_int_equal(emu_fault_map_set_router(map, emu_machine_n_routers(machine), false), -ERANGE);
    assert_int_equal(emu_fault_map_set_node(map, emu_machine_n_nodes(machine), false), -ERANGE);
    assert_int_equal(emu_fault_map_set_node(map, UINT32_MAX, false), -ERANGE);
    assert_true(emu_fault_map_is_clean(map));
}

static void test_copy_goes_its_own_way(void **state)
{
    struct emu_fault_map *map = *state;
    struct emu_fault_map *copy;

    assert_int_equal(emu_fault_map_set_link(map, 100, false), 0);
    assert_int_equal(emu_fault_map_set_router(map, 3, false), 0);
    assert_int_equal(emu_fault_map_set_lanes(map, find_link(EMU_LINK_GREEN), 3), 0);
    assert_int_equal(emu_fault_map_copy(map, &copy), 0);
    assert_false(emu_fault_map_link_up(copy, 100));
    assert_false(emu_fault_map_router_up(copy, 3));
    assert_int_equal(emu_fault_map_lane_mask(copy, find_link(EMU_LINK_GREEN)), 3);

    assert_int_equal(emu_fault_map_set_link(copy, 100, true), 0);
    assert_int_equal(emu_fault_map_set_node(copy, 1, false), 0);
    assert_false(emu_fault_map_link_up(map, 100));
    assert_true(emu_fault_map_node_up(map, 1));
    emu_fault_map_destroy(copy);
}

/* Against arrays that hold the same facts. */
static void test_random_changes_agree_with_plain_arrays(void **state)
{
    struct emu_fault_map *map = *state;
    struct emu_random random = seeded(11);
    uint32_t n_links = emu_machine_n_links(machine);
    bool *is_up = malloc(n_links * sizeof(*is_up));
    uint32_t *lanes = malloc(n_links * sizeof(*lanes));
    bool is_clean = true;

    assert_non_null(is_up);
    assert_non_null(lanes);
    for (uint32_t id = 0; id < n_links; id++) {
        is_up[id] = true;
        lanes[id] = (1u << link_of(machine, id).lanes) - 1;
    }
    for (int i = 0; i < 20000; i++) {
        uint32_t link = (uint32_t)emu_random_below(&random, n_links);

        if (emu_random_below(&random, 2) == 0) {
            is_up[link] = emu_random_below(&random, 2) == 0;
            assert_int_equal(emu_fault_map_set_link(map, link, is_up[link]), 0);
        } else {
            uint32_t all = (1u << link_of(machine, link).lanes) - 1;

            lanes[link] = 1 + (uint32_t)emu_random_below(&random, all);
            assert_int_equal(emu_fault_map_set_lanes(map, link, lanes[link]), 0);
        }
    }
    for (uint32_t id = 0; id < n_links; id++) {
        assert_int_equal(emu_fault_map_link_up(map, id), is_up[id]);
        assert_int_equal(emu_fault_map_lane_mask(map, id), lanes[id]);
        is_clean = is_clean && is_up[id] && lanes[id] == (1u << link_of(machine, id).lanes) - 1;
        assert_int_equal(emu_fault_map_set_link(map, id, true), 0);
        assert_int_equal(emu_fault_map_set_lanes(map, id, (1u << link_of(machine, id).lanes) - 1), 0);
    }
    assert_false(is_clean); /* or the run above showed nothing */
    assert_true(emu_fault_map_is_clean(map));
    free(is_up);
    free(lanes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_new_map_is_clean_and_everything_works, setup, teardown),
        cmocka_unit_test(test_no_map_means_no_fault),
        cmocka_unit_test_setup_teardown(test_failed_link_is_down_alone_until_repaired, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dead_router_takes_all_its_links_and_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dead_node_takes_its_two_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_link_stays_down_when_its_router_returns, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_lanes_are_remembered_and_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lane_masks_that_cannot_be_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_does_not_exist_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy_goes_its_own_way, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_changes_agree_with_plain_arrays, setup, teardown),
    };

    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
