/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of Blue Gene/L: what a packet may do at each router, on the built machine (spec/machines.md 5.2,
 * BGL-16).
 */
#include <errno.h>
#include <string.h>

#include "emunic/fabric/bgl_routing.h"
#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/torus.h"
#include "tests/unit/fabric/fixture.h"

static struct emu_route_view view_of(const struct emu_machine *m, const struct emu_fault_map *faults)
{
    return (struct emu_route_view){ .machine = m, .faults = faults };
}

static uint32_t nid_at(const struct emu_machine *m, uint32_t x, uint32_t y, uint32_t z)
{
    return emu_torus_router(emu_torus_of(m), x, y, z);
}

static struct emu_packet packet(uint32_t src, uint32_t dst, enum emu_route_mode mode)
{
    return (struct emu_packet){ .src_nid = src, .dst_nid = dst, .units = 256, .mode = mode };
}

/* A packet that stands at its source, and the ways it has there. */
static uint32_t options_at_source(const struct emu_machine *m, const struct emu_fault_map *faults, struct emu_packet *p,
                                  struct emu_route_option *options)
{
    const struct emu_route_view view = view_of(m, faults);
    const struct emu_route_at at = { .router = p->src_nid, .in_link = p->src_nid, .in_vc = 2, .is_entering = true };

    assert_true(emu_bgl_routing.start(&view, p, p->src_nid));
    return emu_bgl_routing.options(&view, p, &at, options);
}

/* Takes a way: the packet stands at the next router then. */
static struct emu_route_at take(const struct emu_machine *m, struct emu_packet *p,
                                const struct emu_route_option *option)
{
    struct emu_link link = link_of(m, option->link);

    p->route_state = option->route_state;
    return (struct emu_route_at){ .router = link.to.index, .in_link = option->link, .in_vc = option->vc };
}

static uint32_t direction_of_link(const struct emu_machine *m, uint32_t link)
{
    uint32_t router, direction, number;

    emu_torus_link_parts(emu_torus_of(m), link, &router, &direction, &number);
    return direction;
}

/* Follows the last way offered (the escape channel's) to the end; returns the hops. */
static uint32_t follow_escape(const struct emu_machine *m, struct emu_packet *p, uint32_t directions_out[64],
                              uint32_t vcs_out[64])
{
    const struct emu_route_view view = view_of(m, NULL);
    struct emu_route_at at = { .router = p->src_nid, .in_link = p->src_nid, .in_vc = 2, .is_entering = true };
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
    uint32_t hops = 0;

    assert_true(emu_bgl_routing.start(&view, p, p->src_nid));
    for (;;) {
        uint32_t n = emu_bgl_routing.options(&view, p, &at, options);

        assert_true(n > 0);
        if (link_of(m, options[n - 1].link).link_class == EMU_LINK_PROCESSOR_OUT)
            return hops;
        directions_out[hops] = direction_of_link(m, options[n - 1].link);
        vcs_out[hops] = options[n - 1].vc;
        assert_true(++hops < 64);
        at = take(m, p, &options[n - 1]);
    }
}

static void test_hints_are_minimal_and_equal_ways_are_divided_evenly(void **state)
{
    struct emu_machine *m = load("bluegene-l");

    (void)state;
    for (uint32_t src = 0; src < 512; src += 37) {
        uint32_t plus[3] = { 0 };
        uint32_t hops = 0;

        for (uint32_t dst = 0; dst < 512; dst++) {
            uint32_t hints = emu_bgl_hints(m, src, dst);
            const uint8_t *from = emu_torus_coord(emu_torus_of(m), src);
            const uint8_t *to = emu_torus_coord(emu_torus_of(m), dst);

            for (uint32_t dim = 0; dim < 3; dim++) {
                uint32_t up = (to[dim] - from[dim]) & 7u;
                uint32_t bits = hints >> (2 * dim) & 3;

                assert_int_equal(bits, up == 0 ? 0 : up == 4 ? bits : up < 4 ? 2 : 1);
                assert_int_not_equal(bits, 3);
                plus[dim] += up == 4 && bits == 2;
                hops += up < 4 ? up : 8 - up;
            }
        }
        assert_int_equal(hops, 512 * 6); /* L/4 in each dimension */
        for (uint32_t dim = 0; dim < 3; dim++)
            assert_int_equal(plus[dim], 32); /* of 64 */
    }
    emu_machine_destroy(m);
}

static void test_dynamic_packet_asks_for_all_directions_and_then_for_the_escape(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct emu_packet p = packet(nid_at(m, 1, 1, 1), nid_at(m, 3, 7, 2), EMU_MODE_ADAPTIVE_0); /* 100110: x+ y- z+ */
    struct emu_route_option o[EMU_ROUTE_OPTIONS_MAX];
    uint32_t n = options_at_source(m, NULL, &p, o);
    uint32_t seen = 0;

    (void)state;
    assert_int_equal(emu_bgl_hints_left(p.route_state), EMU_BGL_X_PLUS | EMU_BGL_Y_MINUS | EMU_BGL_Z_PLUS);
    assert_int_equal(n, 3 + 1);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(o[i].rank, 0);
        assert_false(o[i].is_entry);
        seen |= emu_route_vcs(&o[i]) << (2 * direction_of_link(m, o[i].link));
    }
    assert_int_equal(seen, 3u << (2 * 1) | 3u << (2 * 2) | 3u << (2 * 5));
    assert_int_equal(o[3].rank, 1);
    assert_int_equal(emu_route_vcs(&o[3]), 1u << 2);
    assert_int_equal(direction_of_link(m, o[3].link), 1); /* x+ */
    assert_true(o[3].is_entry);
    emu_machine_destroy(m);
}

static void test_bubble_ring_is_entered_by_turns_and_from_dynamic_channels(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    const struct emu_route_view view = view_of(m, NULL);
    struct emu_packet p = packet(nid_at(m, 0, 0, 0), nid_at(m, 2, 2, 0), EMU_MODE_ADAPTIVE_0);
    struct emu_route_option o[EMU_ROUTE_OPTIONS_MAX];
    struct emu_route_at at;
    uint32_t n = options_at_source(m, NULL, &p, o);

    (void)state;
    at = take(m, &p, &o[0]); /* x+, dynamic */
    n = emu_bgl_routing.options(&view, &p, &at, o);
    assert_true(o[n - 1].is_entry);

    p = packet(nid_at(m, 0, 0, 0), nid_at(m, 2, 2, 0), EMU_MODE_ADAPTIVE_0);
    n = options_at_source(m, NULL, &p, o);
    at = take(m, &p, &o[n - 1]); /* x+ on the bubble channel */
    n = emu_bgl_routing.options(&view, &p, &at, o);
    assert_int_equal(o[n - 1].vc, 2);
    assert_false(o[n - 1].is_entry); /* straight on */
    at = take(m, &p, &o[n - 1]);
    n = emu_bgl_routing.options(&view, &p, &at, o);
    assert_int_equal(direction_of_link(m, o[n - 1].link), 3); /* turns to y+ */
    assert_true(o[n - 1].is_entry);
    emu_machine_destroy(m);
}

static void test_deterministic_and_high_priority_packets_have_one_way(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct emu_packet p = packet(nid_at(m, 0, 0, 0), nid_at(m, 7, 7, 7), EMU_MODE_DETERMINISTIC);
    struct emu_route_option o[EMU_ROUTE_OPTIONS_MAX];
    struct emu_vc_info info;

    (void)state;
    assert_int_equal(options_at_source(m, NULL, &p, o), 1);
    assert_int_equal(o[0].rank, 0);
    assert_int_equal(o[0].vc, 2);
    assert_int_equal(direction_of_link(m, o[0].link), 0); /* x- */

    p = packet(nid_at(m, 0, 0, 0), nid_at(m, 7, 7, 7), EMU_MODE_ADAPTIVE_0);
    p.traffic_class = EMU_TRAFFIC_RESPONSE;
    assert_int_equal(options_at_source(m, NULL, &p, o), 1);
    assert_int_equal(o[0].vc, 3);
    assert_true(o[0].is_entry);
    emu_bgl_routing.vc(m, EMU_LINK_X, 3, &info);
    assert_int_equal(info.traffic_class, EMU_TRAFFIC_RESPONSE);
    assert_true(info.is_bubble);
    assert_int_equal(info.capacity_units, 1024);
    emu_machine_destroy(m);
}

static void test_escape_orders_are_by_dimension_or_by_direction(void **state)
{
    static const uint32_t by_dimension[] = { 0, 0, 3, 3, 5 }; /* x- x- y+ y+ z+ */
    static const uint32_t by_direction[] = { 3, 3, 5, 0, 0 };
    struct emu_machine *dimension = load("bluegene-l");
    struct emu_machine *direction = load("bluegene-l:order=direction");
    uint32_t directions[64], vcs[64];
    struct emu_packet p;

    (void)state;
    p = packet(nid_at(dimension, 3, 3, 3), nid_at(dimension, 1, 5, 4), EMU_MODE_DETERMINISTIC);
    assert_int_equal(follow_escape(dimension, &p, directions, vcs), 5);
    assert_memory_equal(directions, by_dimension, sizeof(by_dimension));
    p.route_state = 0;
    assert_int_equal(follow_escape(direction, &p, directions, vcs), 5);
    assert_memory_equal(directions, by_direction, sizeof(by_direction));
    emu_machine_destroy(dimension);
    emu_machine_destroy(direction);
}

static void test_dateline_pair_changes_after_the_closing_link(void **state)
{
    static const uint32_t rising[] = { 2, 2, 3, 2 }; /* 6 -> 7 -> 0 -> 1 in x, then y without crossing */
    static const uint32_t falling[] = { 2, 3 };      /* 0 -> 7 -> 6 in z */
    struct emu_machine *m = load("bluegene-l:escape=dateline");
    uint32_t directions[64], vcs[64];
    struct emu_vc_info info;
    struct emu_packet p = packet(nid_at(m, 6, 2, 0), nid_at(m, 1, 3, 0), EMU_MODE_ADAPTIVE_0);

    (void)state;
    assert_int_equal(follow_escape(m, &p, directions, vcs), 4);
    assert_memory_equal(vcs, rising, sizeof(rising));
    p = packet(nid_at(m, 0, 0, 0), nid_at(m, 0, 0, 6), EMU_MODE_ADAPTIVE_0);
    assert_int_equal(follow_escape(m, &p, directions, vcs), 2);
    assert_memory_equal(vcs, falling, sizeof(falling));
    assert_int_equal(emu_bgl_routing.n_vcs(m, EMU_LINK_X), 5);
    emu_bgl_routing.vc(m, EMU_LINK_X, 3, &info);
    assert_true(info.is_escape);
    assert_false(info.is_bubble);
    emu_machine_destroy(m);
}

static void test_crossing_on_a_dynamic_channel_counts_too(void **state)
{
    struct emu_machine *m = load("bluegene-l:escape=dateline");
    const struct emu_route_view view = view_of(m, NULL);
    struct emu_packet p = packet(nid_at(m, 7, 0, 0), nid_at(m, 2, 0, 0), EMU_MODE_ADAPTIVE_0);
    struct emu_route_option o[EMU_ROUTE_OPTIONS_MAX];
    struct emu_route_at at;
    uint32_t n = options_at_source(m, NULL, &p, o);

    (void)state;
    assert_int_equal(o[n - 1].vc, 2);
    at = take(m, &p, &o[0]);
    n = emu_bgl_routing.options(&view, &p, &at, o);
    assert_int_equal(o[n - 1].vc, 3);
    emu_machine_destroy(m);
}

static void test_hints_from_software_are_followed(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    uint32_t directions[64], vcs[64];
    struct emu_packet p = packet(nid_at(m, 0, 0, 0), nid_at(m, 1, 0, 0), EMU_MODE_DETERMINISTIC);

    (void)state;
    assert_int_equal(emu_bgl_give_hints(m, &p, EMU_BGL_X_MINUS), 0);
    assert_int_equal(follow_escape(m, &p, directions, vcs), 7);
    assert_int_equal(directions[6], 0);
    emu_machine_destroy(m);
}

static void test_impossible_hints_are_refused(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct emu_packet p = packet(nid_at(m, 0, 0, 0), nid_at(m, 1, 0, 0), EMU_MODE_DETERMINISTIC);

    (void)state;
    assert_int_equal(emu_bgl_give_hints(m, &p, EMU_BGL_X_PLUS | EMU_BGL_X_MINUS), -EINVAL);
    assert_int_equal(emu_bgl_give_hints(m, &p, EMU_BGL_X_PLUS | EMU_BGL_Y_PLUS), -EINVAL); /* no hop needed in y */
    assert_int_equal(emu_bgl_give_hints(m, &p, 0), -EINVAL);
    assert_int_equal(emu_bgl_give_hints(m, &p, 1u << 6), -EINVAL);
    assert_int_equal(emu_bgl_give_broadcast(m, &p, EMU_BGL_X_PLUS | EMU_BGL_Y_PLUS), -EINVAL);
    p.dst_nid = nid_at(m, 1, 1, 0);
    assert_int_equal(emu_bgl_give_broadcast(m, &p, EMU_BGL_X_PLUS), -EINVAL);
    p.dst_nid = 512;
    assert_int_equal(emu_bgl_give_hints(m, &p, EMU_BGL_X_PLUS), -ERANGE);
    emu_machine_destroy(m);
}

static void test_broadcast_goes_along_its_line_on_the_escape_channel(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    uint32_t directions[64], vcs[64];
    struct emu_packet p = packet(nid_at(m, 3, 3, 0), nid_at(m, 3, 2, 0), EMU_MODE_ADAPTIVE_0);

    (void)state;
    assert_int_equal(emu_bgl_give_broadcast(m, &p, EMU_BGL_Y_PLUS), 0);
    assert_true((p.flags & EMU_PACKET_BROADCAST) != 0);
    assert_int_equal(follow_escape(m, &p, directions, vcs), 7);
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(directions[i], 3);
        assert_int_equal(vcs[i], 2);
    }
    emu_machine_destroy(m);
}

/* ---- dead nodes ---- */

static bool share_line(const struct emu_machine *m, uint32_t a, uint32_t b)
{
    const uint8_t *p = emu_torus_coord(emu_torus_of(m), a);
    const uint8_t *q = emu_torus_coord(emu_torus_of(m), b);

    return (p[0] != q[0]) + (p[1] != q[1]) + (p[2] != q[2]) < 2;
}

/* Takes every way that is offered from every place it can reach; each of them must end at the destination. */
static bool all_ways_arrive(const struct emu_machine *m, const struct emu_fault_map *faults, struct emu_packet *p,
                            const struct emu_route_at *at)
{
    const struct emu_route_view view = view_of(m, faults);
    struct emu_route_option o[EMU_ROUTE_OPTIONS_MAX];
    uint32_t n = emu_bgl_routing.options(&view, p, at, o);

    if (n == 0 || !emu_fault_map_router_up(faults, at->router))
        return false;
    if (link_of(m, o[0].link).link_class == EMU_LINK_PROCESSOR_OUT)
        return o[0].link == m->n_nodes + p->dst_nid;
    for (uint32_t i = 0; i < n; i++) {
        struct emu_packet next = *p;
        struct emu_route_at there;

        if (i > 0 && o[i].link == o[i - 1].link)
            continue; /* the other channels of the link lead to the same place */
        if (!emu_fault_map_link_up(faults, o[i].link))
            return false;
        there = take(m, &next, &o[i]);
        if (!all_ways_arrive(m, faults, &next, &there))
            return false;
    }
    return true;
}

/* BGL-16: one of the three dead nodes stands at 0, which loses nothing. */
static void test_three_dead_nodes_without_a_common_line_leave_full_connectivity(void **state)
{
    struct emu_machine *m = load("bluegene-l:x=4,y=4,z=4");
    struct emu_random random = seeded(16);
    uint32_t tried = 0;

    (void)state;
    while (tried < 40) {
        uint32_t b = (uint32_t)emu_random_below(&random, 64);
        uint32_t c = (uint32_t)emu_random_below(&random, 64);
        struct emu_fault_map *faults;
        struct emu_route_view view;

        if (share_line(m, 0, b) || share_line(m, 0, c) || share_line(m, b, c))
            continue;
        tried++;
        assert_int_equal(emu_fault_map_create(m, &faults), 0);
        emu_fault_map_set_router(faults, 0, false);
        emu_fault_map_set_router(faults, b, false);
        emu_fault_map_set_router(faults, c, false);
        view = view_of(m, faults);
        for (uint32_t pair = 0; pair < 64 * 64; pair++) {
            struct emu_packet p = packet(pair / 64, pair % 64, EMU_MODE_ADAPTIVE_0);
            const struct emu_route_at at = {
                .router = p.src_nid, .in_link = p.src_nid, .in_vc = 2, .is_entering = true
            };
            bool is_alive = emu_fault_map_router_up(faults, p.src_nid) && emu_fault_map_router_up(faults, p.dst_nid);

            assert_int_equal(emu_bgl_routing.start(&view, &p, p.src_nid), is_alive);
            if (is_alive && !all_ways_arrive(m, faults, &p, &at))
                fail_msg("%u to %u with 0, %u and %u dead", pair / 64, pair % 64, b, c);
        }
        emu_fault_map_destroy(faults);
    }
    emu_machine_destroy(m);
}

static void test_two_dead_nodes_on_a_line_cut_it(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct emu_fault_map *faults;
    uint32_t hints;

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    emu_fault_map_set_router(faults, nid_at(m, 1, 0, 0), false);
    assert_int_equal(emu_bgl_hints_around(m, faults, nid_at(m, 0, 0, 0), nid_at(m, 2, 0, 0), &hints), EMU_BGL_WAY_ANY);
    assert_int_equal(hints, EMU_BGL_X_MINUS);
    emu_fault_map_set_router(faults, nid_at(m, 5, 0, 0), false);
    assert_int_equal(emu_bgl_hints_around(m, faults, nid_at(m, 0, 0, 0), nid_at(m, 2, 0, 0), &hints), EMU_BGL_WAY_NONE);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

/* ---- audit ---- */

static void audit(const char *spec)
{
    struct emu_machine *m = load(spec);
    struct emu_audit *a;
    const struct emu_audit_result *r;

    assert_int_equal(emu_audit_create(m, &emu_bgl_routing, NULL, &a), 0);
    r = emu_audit_result(a);
    assert_true(r->is_free);
    assert_int_equal(r->n_impossible, 0);
    assert_int_equal(r->n_stranded, 0);
    assert_int_equal(r->n_other_cycles, 0);
    assert_true(r->n_rings > 0); /* high priority is a bubble channel always */
    for (uint32_t turn = 0; turn < 3; turn++) {
        const struct emu_audit_walk_options options = {
            .mode = turn == 0 ? EMU_MODE_DETERMINISTIC : EMU_MODE_ADAPTIVE_0,
            .traffic_class = turn == 2 ? EMU_TRAFFIC_RESPONSE : EMU_TRAFFIC_REQUEST,
            .walks_per_pair = 2,
            .packet_units_max = 256,
            .seed = turn,
        };
        struct emu_audit_walks walks;

        assert_int_equal(emu_audit_walk(a, &options, NULL, NULL, &walks), 0);
        assert_int_equal(walks.n_undeclared, 0);
        assert_int_equal(walks.n_unguarded, 0);
        assert_int_equal(walks.n_no_escape, 0);
        assert_int_equal(walks.n_arrived, walks.n_walks);
        assert_true(walks.is_clean);
    }
    emu_audit_destroy(a);
    emu_machine_destroy(m);
}

static void test_audit_is_clean_with_every_escape(void **state)
{
    (void)state;
    audit("bluegene-l:x=4,y=4,z=2");
    audit("bluegene-l:x=8,y=8,z=1");
    audit("bluegene-l:x=4,y=4,z=2,order=direction");
    audit("bluegene-l:x=4,y=4,z=2,escape=dateline");
    audit("bluegene-l:x=8,y=8,z=1,escape=dateline,order=direction");
    audit("bluegene-l:x=4,y=4,z=4,escape=dateline,order=direction,dynamic_vcs=4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hints_are_minimal_and_equal_ways_are_divided_evenly),
        cmocka_unit_test(test_dynamic_packet_asks_for_all_directions_and_then_for_the_escape),
        cmocka_unit_test(test_bubble_ring_is_entered_by_turns_and_from_dynamic_channels),
        cmocka_unit_test(test_deterministic_and_high_priority_packets_have_one_way),
        cmocka_unit_test(test_escape_orders_are_by_dimension_or_by_direction),
        cmocka_unit_test(test_dateline_pair_changes_after_the_closing_link),
        cmocka_unit_test(test_crossing_on_a_dynamic_channel_counts_too),
        cmocka_unit_test(test_hints_from_software_are_followed),
        cmocka_unit_test(test_impossible_hints_are_refused),
        cmocka_unit_test(test_broadcast_goes_along_its_line_on_the_escape_channel),
        cmocka_unit_test(test_three_dead_nodes_without_a_common_line_leave_full_connectivity),
        cmocka_unit_test(test_two_dead_nodes_on_a_line_cut_it),
        cmocka_unit_test(test_audit_is_clean_with_every_escape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
