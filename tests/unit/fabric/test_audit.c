/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Audits of small routing rows made by hand, on four routers that all have links to each other (one chassis of
 * aries). They go round the ring 0, 1, 2, 3, 0 only, so everything about them can be counted on paper.
 */
#include "emunic/fabric/sim/audit.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/fabric/fixture.h"

#define ROUTERS 4

static struct emu_machine *machine;
static uint32_t ring_link[ROUTERS]; /* from router i to router (i + 1) % 4 */
static uint32_t across_link;        /* from router 0 to router 2 */
static uint32_t nic_in[ROUTERS * 4];
static uint32_t nic_out[ROUTERS * 4];

/* ---- the rows ---- */

/* Of the row under test. */
static uint32_t vcs_of_ring;
static struct emu_vc_info info_of_ring[EMU_VCS_MAX];

static uint32_t n_vcs(const struct emu_machine *m, enum emu_link_class link_class)
{
    (void)m;
    return link_class == EMU_LINK_GREEN ? vcs_of_ring : 1;
}

static void vc_info(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                    struct emu_vc_info *info_out)
{
    (void)m;
    *info_out = (struct emu_vc_info){ .capacity_units = 64, .traffic_class = EMU_VC_ANY };
    if (link_class == EMU_LINK_GREEN)
        *info_out = info_of_ring[vc];
}

static uint32_t router_of(uint32_t nid)
{
    return nid / 4;
}

static bool start_always(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    (void)view;
    (void)p;
    (void)router;
    return true;
}

/* To the NIC, or one step round the ring by the VC given; the VC's rule is the row's. */
static uint32_t offer(const struct emu_packet *p, const struct emu_route_at *at, uint8_t vc, bool is_entry,
                      struct emu_route_option *o)
{
    *o = (struct emu_route_option){ .is_entry = is_entry, .vc = vc, .link = ring_link[at->router] };
    if (router_of(p->dst_nid) == at->router) {
        o->link = nic_out[p->dst_nid];
        o->vc = 0;
    }
    return 1;
}

typedef void visit_fn(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc);

/* What all rows have: from the NICs into VC 0 of the ring, between NICs of one router, from VC `vc` out to the NICs. */
static void visit_ends(visit_fn *visit, void *ctx, uint32_t last_vc)
{
    for (uint32_t nid = 0; nid < ROUTERS * 4; nid++) {
        visit(ctx, nic_in[nid], 0, ring_link[router_of(nid)], 0);
        for (uint32_t other = router_of(nid) * 4; other < router_of(nid) * 4 + 4; other++)
            visit(ctx, nic_in[nid], 0, nic_out[other], 0);
        for (uint32_t vc = 0; vc <= last_vc; vc++)
            visit(ctx, ring_link[(router_of(nid) + 3) % ROUTERS], vc, nic_out[nid], 0);
    }
}

/* One channel all round: each waits for the next. */
static void depend_round(const struct emu_machine *m, const struct emu_fault_map *faults, visit_fn *visit, void *ctx)
{
    (void)m;
    (void)faults;
    visit_ends(visit, ctx, 0);
    for (uint32_t i = 0; i < ROUTERS; i++)
        visit(ctx, ring_link[i], 0, ring_link[(i + 1) % ROUTERS], 0);
}

static uint32_t offer_round(const struct emu_route_view *view, const struct emu_packet *p,
                            const struct emu_route_at *at, struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    (void)view;
    return offer(p, at, 0, false, options_out);
}

static uint32_t offer_guarded(const struct emu_route_view *view, const struct emu_packet *p,
                              const struct emu_route_at *at, struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    (void)view;
    return offer(p, at, 0, at->is_entering, options_out);
}

static const struct emu_routing round_routing = { n_vcs, vc_info, start_always, offer_round, depend_round };
static const struct emu_routing guarded_routing = { n_vcs, vc_info, start_always, offer_guarded, depend_round };

/* A dateline behind router 3: VC 1 from there on. */
static uint8_t dateline_vc(const struct emu_route_at *at)
{
    return at->router == 0 && !at->is_entering ? 1 : at->is_entering ? 0 : at->in_vc;
}

static void depend_dateline(const struct emu_machine *m, const struct emu_fault_map *faults, visit_fn *visit, void *ctx)
{
    (void)m;
    (void)faults;
    visit_ends(visit, ctx, 1);
    for (uint32_t i = 0; i < ROUTERS - 1; i++) {
        visit(ctx, ring_link[i], 0, ring_link[i + 1], 0);
        visit(ctx, ring_link[i], 1, ring_link[i + 1], 1);
    }
    visit(ctx, ring_link[ROUTERS - 1], 0, ring_link[0], 1);
}

static uint32_t offer_dateline(const struct emu_route_view *view, const struct emu_packet *p,
                               const struct emu_route_at *at,
                               struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    (void)view;
    return offer(p, at, dateline_vc(at), false, options_out);
}

static const struct emu_routing dateline_routing = { n_vcs, vc_info, start_always, offer_dateline, depend_dateline };

/* The dateline's channels as escape (0, 1) under an adaptive channel (2) that may go round for ever. */
static void depend_adaptive(const struct emu_machine *m, const struct emu_fault_map *faults, visit_fn *visit, void *ctx)
{
    depend_dateline(m, faults, visit, ctx);
    for (uint32_t i = 0; i < ROUTERS; i++) {
        uint32_t next = (i + 1) % ROUTERS;

        visit(ctx, ring_link[i], 2, ring_link[next], 2);
        visit(ctx, ring_link[i], 2, ring_link[next], next == 0 ? 1 : 0);
        visit(ctx, ring_link[i], 0, ring_link[next], 2);
        visit(ctx, ring_link[i], 1, ring_link[next], 2);
    }
}

static const struct emu_routing adaptive_routing = { n_vcs, vc_info, start_always, offer_dateline, depend_adaptive };

/* The same without the way from the adaptive channel to the escape. */
static void depend_stranded(const struct emu_machine *m, const struct emu_fault_map *faults, visit_fn *visit, void *ctx)
{
    depend_dateline(m, faults, visit, ctx);
    for (uint32_t i = 0; i < ROUTERS; i++)
        visit(ctx, ring_link[i], 2, ring_link[(i + 1) % ROUTERS], 2);
}

static const struct emu_routing stranded_routing = { n_vcs, vc_info, start_always, offer_dateline, depend_stranded };

static bool refuse_to_5(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    (void)view;
    (void)router;
    return p->dst_nid != 5;
}

static const struct emu_routing refusing_routing = { n_vcs, vc_info, refuse_to_5, offer_dateline, depend_dateline };

/* ---- fixture ---- */

static int setup_group(void **state)
{
    (void)state;
    machine = load("aries:groups=1,chassis=1,blades=4");
    for (uint32_t id = 0; id < emu_machine_n_links(machine); id++) {
        struct emu_link l = link_of(machine, id);

        if (l.from.kind == EMU_END_NIC)
            nic_in[l.from.index] = id;
        else if (l.to.kind == EMU_END_NIC)
            nic_out[l.to.index] = id;
        else if (l.to.index == (l.from.index + 1) % ROUTERS)
            ring_link[l.from.index] = id;
        else if (l.from.index == 0 && l.to.index == 2)
            across_link = id;
    }
    return 0;
}

static int teardown_group(void **state)
{
    (void)state;
    emu_machine_destroy(machine);
    return 0;
}

/* Escape VCs first, then adaptive ones. */
static struct emu_audit *audit_of(const struct emu_routing *routing, uint32_t n_escape, uint32_t n_adaptive,
                                  bool is_bubble, const struct emu_fault_map *faults)
{
    struct emu_audit *audit;

    vcs_of_ring = n_escape + n_adaptive;
    for (uint32_t vc = 0; vc < vcs_of_ring; vc++) {
        info_of_ring[vc] = (struct emu_vc_info){
            .capacity_units = 32,
            .traffic_class = EMU_VC_ANY,
            .is_escape = vc < n_escape,
            .is_bubble = vc < n_escape && is_bubble,
        };
    }
    assert_int_equal(emu_audit_create(machine, routing, faults, &audit), 0);
    return audit;
}

static struct emu_audit_walks walks_of(struct emu_audit *audit, uint32_t units_max)
{
    const struct emu_audit_walk_options options = { .packet_units_max = units_max, .walks_per_pair = 2, .seed = 1 };
    struct emu_audit_walks walks;

    assert_int_equal(emu_audit_walk(audit, &options, NULL, NULL, &walks), 0);
    return walks;
}

/* Collects lines. */
static void add_line(void *ctx, const char *text)
{
    strncat(ctx, text, 2000);
    strncat(ctx, "\n", 2);
}

/* ---- tests ---- */

static void test_ring_with_one_channel_has_its_cycle_found_and_named(void **state)
{
    struct emu_audit *audit = audit_of(&round_routing, 1, 0, false, NULL);
    const struct emu_audit_result *r = emu_audit_result(audit);
    const struct emu_audit_channel *cycle;
    char text[4000] = "";

    (void)state;
    assert_false(r->is_acyclic);
    assert_false(r->is_free);
    assert_int_equal(r->n_cyclic_channels, 4);
    assert_int_equal(r->n_other_cycles, 1);
    assert_int_equal(r->n_rings, 0);
    assert_int_equal(emu_audit_cycle(audit, &cycle), 4);
    for (uint32_t i = 0; i < 4; i++) {
        struct emu_link here = link_of(machine, cycle[i].link);

        assert_int_equal(cycle[i].vc, 0);
        assert_int_equal(here.to.index, link_of(machine, cycle[(i + 1) % 4].link).from.index);
    }
    emu_audit_print(audit, 3, add_line, text);
    assert_non_null(strstr(text, "acyclic=0"));
    assert_non_null(strstr(text, "may deadlock"));
    assert_non_null(strstr(text, "cycle of 4 channels:"));
    assert_non_null(strstr(text, "c0-0c0s0a0 -> c0-0c0s1a0 green 0 vc 0"));
    assert_non_null(strstr(text, "... and 1 more"));
    emu_audit_destroy(audit);
}

static void test_dateline_breaks_the_cycle(void **state)
{
    struct emu_audit *audit = audit_of(&dateline_routing, 2, 0, false, NULL);
    const struct emu_audit_result *r = emu_audit_result(audit);
    const struct emu_audit_channel *cycle;
    char text[4000] = "";

    (void)state;
    assert_true(r->is_acyclic);
    assert_true(r->is_free);
    assert_int_equal(r->n_cyclic_channels, 0);
    assert_int_equal(emu_audit_cycle(audit, &cycle), 0);
    emu_audit_print(audit, 10, add_line, text);
    assert_non_null(strstr(text, "acyclic=1"));
    emu_audit_destroy(audit);
}

static void test_counts_are_those_on_paper(void **state)
{
    struct emu_audit *audit = audit_of(&dateline_routing, 2, 0, false, NULL);
    const struct emu_audit_result *r = emu_audit_result(audit);

    (void)state;
    assert_int_equal(r->n_channels, 16 + 16 + 12 * 2);
    assert_int_equal(r->n_escape_channels, 12 * 2);
    /* NICs: 16 into the ring, 16 x 4 across their router, 16 x 2 out of it; ring: 3 + 3 + 1. */
    assert_int_equal(r->n_dependencies, 16 + 64 + 32 + 7);
    assert_int_equal(r->n_escape_dependencies, 7);
    assert_int_equal(r->escape_vcs[EMU_TRAFFIC_REQUEST], 2);
    assert_int_equal(r->n_impossible, 0);
    assert_int_equal(r->n_stranded, 0);
    emu_audit_destroy(audit);
}

static void test_cycles_of_adaptive_channels_do_no_harm_above_an_escape(void **state)
{
    struct emu_audit *audit = audit_of(&adaptive_routing, 2, 1, false, NULL);

    (void)state;
    assert_true(emu_audit_result(audit)->is_acyclic);
    assert_true(emu_audit_result(audit)->is_free);
    emu_audit_destroy(audit);
}

static void test_adaptive_channel_without_way_to_the_escape_is_stranded(void **state)
{
    struct emu_audit *audit = audit_of(&stranded_routing, 2, 1, false, NULL);

    (void)state;
    assert_true(emu_audit_result(audit)->is_acyclic);
    assert_int_equal(emu_audit_result(audit)->n_stranded, 4);
    assert_false(emu_audit_result(audit)->is_free);
    emu_audit_destroy(audit);
}

static void test_bubble_ring_is_allowed_and_its_entries_are_checked(void **state)
{
    struct emu_audit *audit = audit_of(&guarded_routing, 1, 0, true, NULL);
    const struct emu_audit_result *r = emu_audit_result(audit);
    struct emu_audit_walks walks;

    (void)state;
    assert_false(r->is_acyclic);
    assert_int_equal(r->n_rings, 1);
    assert_int_equal(r->n_other_cycles, 0);
    assert_true(r->is_free);
    walks = walks_of(audit, 16);
    assert_true(walks.is_clean);
    assert_int_equal(walks.n_unguarded, 0);
    assert_int_equal(walks.n_arrived, 16 * 15 * 2);
    assert_int_equal(walks.longest_hops, 3);
    walks = walks_of(audit, 17); /* two of them do not fit into 32 units */
    assert_int_equal(walks.n_ring_too_small, 4);
    assert_false(walks.is_clean);
    emu_audit_destroy(audit);
}

static void test_ring_entered_without_the_two_packet_rule_is_found(void **state)
{
    struct emu_audit *audit = audit_of(&round_routing, 1, 0, true, NULL);
    struct emu_audit_walks walks = walks_of(audit, 16);

    (void)state;
    assert_int_equal(walks.n_unguarded, 16 * 12 * 2); /* every packet to another router, once */
    assert_false(walks.is_clean);
    emu_audit_destroy(audit);
}

static void test_two_rings_that_share_a_channel_are_no_ring(void **state)
{
    struct emu_audit *audit = audit_of(&adaptive_routing, 3, 0, true, NULL); /* the adaptive channel as an escape */

    (void)state;
    assert_int_equal(emu_audit_result(audit)->n_rings, 0);
    assert_int_equal(emu_audit_result(audit)->n_other_cycles, 1);
    assert_false(emu_audit_result(audit)->is_free);
    emu_audit_destroy(audit);
}

static void test_walks_follow_the_relation(void **state)
{
    struct emu_audit *audit = audit_of(&dateline_routing, 2, 0, false, NULL);
    struct emu_audit_walks walks = walks_of(audit, 0);

    (void)state;
    assert_true(walks.is_clean);
    assert_int_equal(walks.n_walks, 16 * 15 * 2);
    assert_int_equal(walks.n_arrived, walks.n_walks);
    assert_int_equal(walks.vcs_used, 3);
    assert_int_equal(walks.sum_hops, 2 * 16 * 4 * (1 + 2 + 3)); /* to each of 4 nodes at distance 1, 2, 3 */
    emu_audit_destroy(audit);
}

static void test_step_that_the_relation_does_not_name_is_found(void **state)
{
    static const struct emu_routing liar = { n_vcs, vc_info, start_always, offer_dateline, depend_round };
    struct emu_audit *audit = audit_of(&liar, 2, 0, false, NULL);
    struct emu_audit_walks walks = walks_of(audit, 0);

    (void)state;
    assert_true(walks.n_undeclared > 0); /* the steps on VC 1 */
    assert_false(walks.is_clean);
    assert_int_not_equal(walks.bad_src_nid, walks.bad_dst_nid);
    emu_audit_destroy(audit);
}

static void test_pairs_without_route_are_listed(void **state)
{
    const struct emu_audit_walk_options options = { .walks_per_pair = 3, .seed = 1 };
    struct emu_audit *audit = audit_of(&refusing_routing, 2, 0, false, NULL);
    struct emu_audit_walks walks;

    (void)state;
    assert_int_equal(emu_audit_walk(audit, &options, NULL, NULL, &walks), 0);
    assert_int_equal(walks.n_unroutable, 15 * 3);
    assert_true(walks.is_clean);
    emu_audit_destroy(audit);
}

static void depend_badly(const struct emu_machine *m, const struct emu_fault_map *faults, visit_fn *visit, void *ctx)
{
    (void)m;
    (void)faults;
    visit(ctx, ring_link[0], 0, ring_link[2], 0); /* not adjacent */
    visit(ctx, ring_link[0], 0, ring_link[1], 7); /* no such VC */
    visit(ctx, UINT32_MAX, 0, ring_link[1], 0);   /* no such link */
    visit(ctx, nic_out[0], 0, ring_link[0], 0);   /* behind a NIC */
    visit(ctx, across_link, 0, ring_link[2], 0);  /* this one is possible */
}

static void test_impossible_dependencies_are_counted_not_believed(void **state)
{
    static const struct emu_routing bad = { n_vcs, vc_info, start_always, offer_round, depend_badly };
    struct emu_audit *audit = audit_of(&bad, 1, 0, false, NULL);

    (void)state;
    assert_int_equal(emu_audit_result(audit)->n_impossible, 4);
    assert_int_equal(emu_audit_result(audit)->n_dependencies, 1);
    assert_false(emu_audit_result(audit)->is_free);
    emu_audit_destroy(audit);
}

static void test_dead_link_has_no_channels(void **state)
{
    struct emu_fault_map *faults;
    struct emu_audit *audit;

    (void)state;
    assert_int_equal(emu_fault_map_create(machine, &faults), 0);
    assert_int_equal(emu_fault_map_set_link(faults, ring_link[1], false), 0);
    audit = audit_of(&round_routing, 1, 0, false, faults);
    assert_int_equal(emu_audit_result(audit)->n_channels, 16 + 16 + 11);
    assert_true(emu_audit_result(audit)->n_impossible > 0); /* this row ignores faults */
    assert_true(emu_audit_result(audit)->is_acyclic);       /* but the ring is broken */
    emu_audit_destroy(audit);
    emu_fault_map_destroy(faults);
}

/* The ring's channel 0 belongs to requests, 1 to responses; responses have a line, not a ring. */
static void depend_by_class(const struct emu_machine *m, const struct emu_fault_map *faults, visit_fn *visit, void *ctx)
{
    depend_round(m, faults, visit, ctx);
    for (uint32_t i = 0; i < ROUTERS - 1; i++)
        visit(ctx, ring_link[i], 1, ring_link[i + 1], 1);
}

static void vc_by_class(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                        struct emu_vc_info *info_out)
{
    vc_info(m, link_class, vc, info_out);
    if (link_class == EMU_LINK_GREEN)
        info_out->traffic_class = (uint8_t)vc;
}

static void test_classes_of_traffic_are_judged_apart(void **state)
{
    static const struct emu_routing routing = { n_vcs, vc_by_class, start_always, offer_round, depend_by_class };
    struct emu_audit *audit = audit_of(&routing, 2, 0, true, NULL);
    const struct emu_audit_result *r = emu_audit_result(audit);

    (void)state;
    assert_false(r->is_acyclic);
    assert_false(r->class_is_acyclic[EMU_TRAFFIC_REQUEST]);
    assert_true(r->class_is_acyclic[EMU_TRAFFIC_RESPONSE]);
    assert_int_equal(r->escape_vcs[EMU_TRAFFIC_REQUEST], 1);
    assert_int_equal(r->escape_vcs[EMU_TRAFFIC_RESPONSE], 1);
    emu_audit_destroy(audit);
}

/* A channel told of in two places and one dependency twice: the same graph. */
static void depend_in_pieces(const struct emu_machine *m, const struct emu_fault_map *faults, visit_fn *visit,
                             void *ctx)
{
    depend_dateline(m, faults, visit, ctx);
    depend_dateline(m, faults, visit, ctx);
}

static void test_order_and_repetition_do_not_matter(void **state)
{
    static const struct emu_routing pieces = { n_vcs, vc_info, start_always, offer_dateline, depend_in_pieces };
    struct emu_audit *audit = audit_of(&pieces, 2, 0, false, NULL);

    (void)state;
    assert_int_equal(emu_audit_result(audit)->n_dependencies, 16 + 64 + 32 + 7);
    assert_int_equal(emu_audit_result(audit)->n_escape_dependencies, 7);
    assert_true(emu_audit_result(audit)->is_acyclic);
    emu_audit_destroy(audit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring_with_one_channel_has_its_cycle_found_and_named),
        cmocka_unit_test(test_dateline_breaks_the_cycle),
        cmocka_unit_test(test_counts_are_those_on_paper),
        cmocka_unit_test(test_cycles_of_adaptive_channels_do_no_harm_above_an_escape),
        cmocka_unit_test(test_adaptive_channel_without_way_to_the_escape_is_stranded),
        cmocka_unit_test(test_bubble_ring_is_allowed_and_its_entries_are_checked),
        cmocka_unit_test(test_ring_entered_without_the_two_packet_rule_is_found),
        cmocka_unit_test(test_two_rings_that_share_a_channel_are_no_ring),
        cmocka_unit_test(test_walks_follow_the_relation),
        cmocka_unit_test(test_step_that_the_relation_does_not_name_is_found),
        cmocka_unit_test(test_pairs_without_route_are_listed),
        cmocka_unit_test(test_impossible_dependencies_are_counted_not_believed),
        cmocka_unit_test(test_dead_link_has_no_channels),
        cmocka_unit_test(test_classes_of_traffic_are_judged_apart),
        cmocka_unit_test(test_order_and_repetition_do_not_matter),
    };

    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
