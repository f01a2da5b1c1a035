/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet routing of Gemini and SeaStar: every pair arrives, around faults too, without cycles of channels. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/torus.h"
#include "tests/unit/fabric/fixture.h"

static const char *const specs[] = {
    "gemini",
    "gemini:x=4,y=4,z=8,tiles_x=2,tiles_y=1,tiles_z=2",
    "gemini:x=5,y=2,z=3,layout=floor",
    "gemini:x=1,y=2,z=4",
    "seastar:x=5,y=8,z=4",
    "seastar:x=4,y=4,z=3,wrap_x=0,wrap_y=1",
    "seastar:x=2,y=2,z=2,wrap_y=1",
};

static uint32_t max_hops_of(const struct emu_machine *m)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t sum = 0;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++)
        sum += t->wraps[dim] ? t->size[dim] / 2 : t->size[dim] - 1;
    return sum;
}

/* Audits a machine and walks all pairs; the caller looks at the walks. */
static struct emu_audit_walks audited(const struct emu_machine *m, const struct emu_fault_map *faults,
                                      enum emu_route_mode mode)
{
    const struct emu_audit_walk_options options = { .mode = mode, .walks_per_pair = 2, .seed = 1 };
    const struct emu_audit_result *result;
    struct emu_audit_walks walks;
    struct emu_audit *audit;

    assert_int_equal(emu_audit_create(m, m->topology->routing, faults, &audit), 0);
    result = emu_audit_result(audit);
    assert_true(result->is_acyclic);
    assert_true(result->is_free);
    assert_int_equal(result->n_impossible, 0);
    assert_int_equal(result->n_stranded, 0);
    assert_int_equal(emu_audit_walk(audit, &options, NULL, NULL, &walks), 0);
    assert_int_equal(walks.n_undeclared, 0);
    assert_int_equal(walks.n_dead_ends, 0);
    assert_int_equal(walks.n_lost, 0);
    assert_true(walks.is_clean);
    emu_audit_destroy(audit);
    return walks;
}

static void test_every_pair_of_a_whole_machine_arrives_by_a_short_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);
        struct emu_audit_walks walks = audited(m, NULL, EMU_MODE_ADAPTIVE_0);

        assert_int_equal(walks.n_unroutable, 0);
        assert_int_equal(walks.n_arrived, walks.n_walks);
        assert_int_equal(walks.longest_hops, max_hops_of(m));
        emu_machine_destroy(m);
    }
}

static void test_request_and_response_channels_are_apart(void **state)
{
    struct emu_machine *m = load("gemini");
    struct emu_audit_walk_options options = { .seed = 1 };
    struct emu_audit *audit;
    struct emu_audit_walks walks[EMU_TRAFFIC_CLASSES];

    (void)state;
    assert_int_equal(emu_audit_create(m, m->topology->routing, NULL, &audit), 0);
    for (uint32_t c = 0; c < EMU_TRAFFIC_CLASSES; c++) {
        options.traffic_class = c;
        assert_int_equal(emu_audit_walk(audit, &options, NULL, NULL, &walks[c]), 0);
    }
    assert_int_equal(walks[EMU_TRAFFIC_REQUEST].vcs_used, 0x03);
    assert_int_equal(walks[EMU_TRAFFIC_RESPONSE].vcs_used, 0x30);
    emu_audit_destroy(audit);
    emu_machine_destroy(m);
}

/* ---- faults ---- */

static struct emu_fault_map *whole(const struct emu_machine *m)
{
    struct emu_fault_map *faults;

    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    return faults;
}

/* Both directions of all parallel links. */
static void cut(const struct emu_machine *m, struct emu_fault_map *faults, uint32_t router, uint32_t direction)
{
    const struct emu_torus *t = emu_torus_of(m);

    for (uint32_t number = 0; number < t->parallel[direction / 2]; number++) {
        uint32_t link = emu_torus_link(t, router, direction, number);
        uint32_t reverse;

        assert_int_equal(emu_link_reverse(m, link, &reverse), 0);
        assert_int_equal(emu_fault_map_set_link(faults, link, false), 0);
        assert_int_equal(emu_fault_map_set_link(faults, reverse, false), 0);
    }
}

/* Cuts a router off but for one direction. */
static void leave_only(const struct emu_machine *m, struct emu_fault_map *faults, uint32_t router, uint32_t dim)
{
    for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
        if (direction / 2 != dim && emu_torus_has(emu_torus_of(m), router, direction))
            cut(m, faults, router, direction);
    }
}

static void test_all_others_are_reached_around_a_missing_gemini(void **state)
{
    struct emu_machine *m = load("gemini:x=4,y=4,z=8,tiles_x=1,tiles_y=1,tiles_z=1");

    (void)state;
    for (uint32_t router = 0; router < emu_machine_n_routers(m); router += 37) {
        struct emu_fault_map *faults = whole(m);
        struct emu_audit_walks walks;
        uint64_t n = emu_machine_n_nodes(m);

        assert_int_equal(emu_fault_map_set_router(faults, router, false), 0);
        walks = audited(m, faults, EMU_MODE_ADAPTIVE_0);
        assert_int_equal(walks.n_arrived, 2 * (n - 2) * (n - 3));
        emu_fault_map_destroy(faults);
    }
    emu_machine_destroy(m);
}

static void test_two_missing_geminis_leave_no_cycle(void **state)
{
    struct emu_machine *m = load("gemini:tiles_x=1,tiles_y=1,tiles_z=1");
    struct emu_random random = seeded(11);

    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        struct emu_fault_map *faults = whole(m);

        for (uint32_t k = 0; k < 2; k++)
            emu_fault_map_set_router(faults, (uint32_t)emu_random_below(&random, emu_machine_n_routers(m)), false);
        (void)audited(m, faults, EMU_MODE_IN_ORDER);
        emu_fault_map_destroy(faults);
    }
    emu_machine_destroy(m);
}

static bool starts(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src, uint32_t dst,
                   struct emu_packet *packet_out)
{
    const struct emu_route_view view = { .machine = m, .faults = faults };

    *packet_out = (struct emu_packet){ .src_nid = src, .dst_nid = dst };
    return m->topology->routing->start(&view, packet_out, emu_torus_of(m)->kind->nodes_per_router == 2 ? src / 2 : src);
}

/* The source has links along Y only and the destination along X only: X, Y, Z would start with X or end with Z, with
 * one turn as well. Y, Z, X has a way. */
static void test_order_retry_reaches_what_one_turn_does_not(void **state)
{
    struct emu_packet p;

    (void)state;
    for (int retry = 0; retry < 2; retry++) {
        struct emu_machine *m = load(retry ? "gemini:x=4,y=4,z=8,order_retry=1" : "gemini:x=4,y=4,z=8");
        struct emu_fault_map *faults = whole(m);
        uint32_t src = emu_torus_router(emu_torus_of(m), 0, 0, 0);
        uint32_t dst = emu_torus_router(emu_torus_of(m), 2, 2, 4);

        leave_only(m, faults, src, 1);
        leave_only(m, faults, dst, 0);
        assert_int_equal(starts(m, faults, 2 * src, 2 * dst, &p), retry);
        if (retry)
            assert_true(p.flags & EMU_PACKET_DETOUR);
        emu_fault_map_destroy(faults);
        emu_machine_destroy(m);
    }
}

static void test_a_router_without_links_is_unroutable_and_says_so(void **state)
{
    struct emu_machine *m = load("gemini:x=4,y=4,z=8,order_retry=1");
    struct emu_fault_map *faults = whole(m);
    struct emu_packet p;

    (void)state;
    for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++)
        cut(m, faults, 5, direction);
    assert_false(starts(m, faults, 0, 10, &p));
    assert_false(starts(m, faults, 10, 0, &p));
    assert_true(starts(m, faults, 10, 11, &p)); /* inside the Gemini */
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

static void test_a_broken_link_sends_gemini_the_long_way_round(void **state)
{
    struct emu_machine *m = load("gemini:x=5,y=2,z=8,layout=floor");
    const struct emu_torus *t = emu_torus_of(m);
    struct emu_fault_map *faults = whole(m);
    const struct emu_route_view view = { .machine = m, .faults = faults };
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
    struct emu_packet p;
    struct emu_route_at at;

    (void)state;
    at = (struct emu_route_at){ .router = emu_torus_router(t, 0, 0, 0), .is_entering = true };
    cut(m, faults, emu_torus_router(t, 1, 0, 0), emu_torus_direction(0, true));
    assert_true(starts(m, faults, 2 * at.router, 2 * emu_torus_router(t, 2, 0, 0), &p));
    assert_int_equal(m->topology->routing->options(&view, &p, &at, options), 8);
    assert_int_equal(link_of(m, options[0].link).to.index, emu_torus_router(t, 4, 0, 0));
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

static void test_adaptive_packets_are_offered_the_tiles_that_are_up_and_ordered_ones_a_single_tile(void **state)
{
    struct emu_machine *m = load("gemini");
    const struct emu_torus *t = emu_torus_of(m);
    struct emu_fault_map *faults = whole(m);
    const struct emu_route_view view = { .machine = m, .faults = faults };
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
    uint32_t src = emu_torus_router(t, 0, 0, 0);
    uint32_t dst = emu_torus_router(t, 0, 0, 1);
    struct emu_route_at at = { .router = src, .is_entering = true };
    bool seen[8] = { false };
    struct emu_packet p;

    (void)state;
    assert_int_equal(emu_fault_map_set_link(faults, emu_torus_link(t, src, 5, 3), false), 0);
    assert_true(starts(m, faults, 2 * src, 2 * dst, &p));
    assert_int_equal(p.flags, 0);
    assert_int_equal(m->topology->routing->options(&view, &p, &at, options), 7);
    for (uint32_t i = 0; i < 7; i++)
        assert_int_not_equal(options[i].link, emu_torus_link(t, src, 5, 3));
    p.mode = EMU_MODE_IN_ORDER;
    assert_int_equal(m->topology->routing->options(&view, &p, &at, options), 1);
    p.mode = EMU_MODE_MIN_HASH;
    for (p.order_key = 0; p.order_key < 200; p.order_key++) {
        assert_int_equal(m->topology->routing->options(&view, &p, &at, options), 1);
        seen[options[0].link - emu_torus_link(t, src, 5, 0)] = true;
    }
    for (uint32_t number = 0; number < 8; number++)
        assert_int_equal(seen[number], number != 3);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

static void test_a_broken_ring_of_seastars_is_taken_the_other_way_and_a_broken_mesh_is_not(void **state)
{
    struct emu_machine *m = load("seastar:x=5,y=8,z=4");
    const struct emu_torus *t = emu_torus_of(m);

    (void)state;
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        struct emu_fault_map *faults = whole(m);
        struct emu_audit_walks walks;

        cut(m, faults, emu_torus_router(t, 1, 1, 1), emu_torus_direction(dim, true));
        walks = audited(m, faults, EMU_MODE_DETERMINISTIC);
        if (t->wraps[dim])
            assert_int_equal(walks.n_unroutable, 0);
        else /* by X, Y, Z: all sources of this Z and side, to all of this X and the other side */
            assert_int_equal(walks.n_unroutable, 2 * 2 * (5 * 2) * (6 * 4));
        emu_fault_map_destroy(faults);
    }
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair_of_a_whole_machine_arrives_by_a_short_way),
        cmocka_unit_test(test_request_and_response_channels_are_apart),
        cmocka_unit_test(test_all_others_are_reached_around_a_missing_gemini),
        cmocka_unit_test(test_two_missing_geminis_leave_no_cycle),
        cmocka_unit_test(test_order_retry_reaches_what_one_turn_does_not),
        cmocka_unit_test(test_a_router_without_links_is_unroutable_and_says_so),
        cmocka_unit_test(test_a_broken_link_sends_gemini_the_long_way_round),
        cmocka_unit_test(test_adaptive_packets_are_offered_the_tiles_that_are_up_and_ordered_ones_a_single_tile),
        cmocka_unit_test(test_a_broken_ring_of_seastars_is_taken_the_other_way_and_a_broken_mesh_is_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
