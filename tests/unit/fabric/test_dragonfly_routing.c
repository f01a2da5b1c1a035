/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets through the Aries routing, hop by hop and without time: lengths, order of channels, choice, faults.
 */
#include <stdbool.h>
#include <string.h>

#include "emunic/fabric/dragonfly_routing.h"
#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/topology.h"
#include "tests/unit/fabric/fixture.h"

#define HOPS_MAX 16

/* Loads that a test decides. */
struct loads {
    uint32_t by_class[EMU_LINK_CLASSES];
    uint32_t link;         /* this one has ... */
    uint32_t link_load;    /* ... so much, if it is not 0 */
    uint32_t blue;         /* this one and its twin, if it is not 0, have ... */
    uint32_t blue_near;    /* ... so much for their own router ... */
    uint32_t blue_far;     /* ... and for others; other links have nothing for others */
    uint8_t traffic_class; /* whose all of it is */
    const struct emu_machine *m;
};

struct trip {
    uint32_t links[HOPS_MAX];
    uint8_t vcs[HOPS_MAX];
    uint32_t n_hops;
    uint32_t n_optical;
    uint8_t flags;
    bool has_arrived;
};

static bool is_blue_with_load(const struct loads *l, uint32_t link)
{
    return l->blue != 0 && (link == l->blue || link == l->blue + 2);
}

static uint32_t load_of(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class)
{
    const struct loads *l = view->ctx;

    if (traffic_class != l->traffic_class)
        return 0;
    if (l->link_load != 0 && link == l->link)
        return l->link_load;
    if (is_blue_with_load(l, link))
        return l->blue_near;
    return l->by_class[link_of(l->m, link).link_class];
}

static uint32_t far_load_of(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class)
{
    const struct loads *l = view->ctx;

    return traffic_class == l->traffic_class && is_blue_with_load(l, link) ? l->blue_far : 0;
}

static struct emu_route_view view_of(const struct emu_machine *m, const struct emu_fault_map *faults,
                                     struct loads *loads, struct emu_random *random)
{
    loads->m = m;
    return (struct emu_route_view){
        .machine = m,
        .faults = faults,
        .random = random,
        .near_load = load_of,
        .far_load = far_load_of,
        .ctx = loads,
    };
}

static struct emu_packet packet(uint32_t src, uint32_t dst, enum emu_route_mode mode, uint8_t traffic_class)
{
    return (struct emu_packet){
        .src_nid = src,
        .dst_nid = dst,
        .units = 14,
        .traffic_class = traffic_class,
        .mode = (uint8_t)mode,
    };
}

static uint32_t rank_of(enum emu_link_class link_class)
{
    return link_class == EMU_LINK_GREEN ? 0 : link_class == EMU_LINK_BLACK ? 1 : 2;
}

/* One way on, chosen at random. A hop must leave this router and rise in (channel, class of link). */
static bool take_hop(const struct emu_route_view *view, struct emu_packet *p, struct emu_route_at *at, struct trip *t)
{
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
    uint32_t n = emu_routing_dragonfly.options(view, p, at, options);
    const struct emu_route_option *o;
    struct emu_link l;

    if (n == 0)
        return false;
    o = &options[emu_random_below(view->random, n)];
    l = link_of(view->machine, o->link);
    assert_int_equal(l.from.index, at->router);
    assert_true(emu_fault_map_link_up(view->faults, o->link));
    p->route_state = o->route_state;
    p->flags |= o->flags;
    if (l.link_class == EMU_LINK_PROCESSOR_OUT) {
        assert_int_equal(l.to.index, p->dst_nid);
        assert_int_equal(o->vc, p->traffic_class);
        t->has_arrived = true;
        return false;
    }
    assert_int_equal(o->vc / EMU_DRAGONFLY_CLASS_VCS, p->traffic_class);
    if (t->n_hops > 0) {
        uint32_t before = t->vcs[t->n_hops - 1] * 3 + rank_of(link_of(view->machine, at->in_link).link_class);

        assert_true(o->vc * 3u + rank_of(l.link_class) > before);
    }
    assert_in_range(t->n_hops, 0, HOPS_MAX - 1);
    t->links[t->n_hops] = o->link;
    t->vcs[t->n_hops++] = o->vc;
    t->n_optical += l.link_class == EMU_LINK_BLUE;
    p->hops++;
    *at = (struct emu_route_at){ .router = l.to.index, .in_link = o->link, .in_vc = o->vc };
    return true;
}

static struct emu_route_at entry_of(const struct emu_packet *p)
{
    return (struct emu_route_at){
        .router = p->src_nid / 4,
        .in_link = p->src_nid,
        .in_vc = p->traffic_class,
        .is_entering = true,
    };
}

/* From start to end. False: refused. */
static bool travel(const struct emu_route_view *view, struct emu_packet p, struct trip *t)
{
    struct emu_route_at at = entry_of(&p);

    memset(t, 0, sizeof(*t));
    if (!emu_routing_dragonfly.start(view, &p, at.router))
        return false;
    while (take_hop(view, &p, &at, t))
        ;
    t->flags = p.flags;
    return true;
}

static uint32_t any_nid(const struct emu_machine *m, struct emu_random *random)
{
    return (uint32_t)emu_random_below(random, emu_machine_n_nodes(m));
}

/* Longest of n trips between random nodes; counts them by hops. */
static uint32_t longest(const struct emu_machine *m, enum emu_route_mode mode, uint32_t n, struct emu_random *random,
                        uint32_t histogram[HOPS_MAX])
{
    struct loads loads = { 0 };
    struct emu_route_view view = view_of(m, NULL, &loads, random);
    uint32_t most = 0;

    memset(histogram, 0, HOPS_MAX * sizeof(histogram[0]));
    for (uint32_t i = 0; i < n; i++) {
        struct trip t;

        assert_true(travel(&view, packet(any_nid(m, random), any_nid(m, random), mode, i % 2), &t));
        assert_true(t.has_arrived);
        histogram[t.n_hops]++;
        if (t.n_hops > most)
            most = t.n_hops;
    }
    return most;
}

/* XC-23 */
static void test_longest_ways_have_5_and_10_hops(void **state)
{
    static const struct {
        const char *spec;
        uint32_t minimal;
        uint32_t nonminimal_at_most;
    } examples[] = {
        { "aries:groups=6,cables_per_bundle=48", 3, 6 }, /* twice as long as a minimal one */
        { "aries:groups=8,cables_per_bundle=12", 4, 8 },
        { "aries:groups=30,cables_per_bundle=8", 4, 8 },
        { "aries:groups=241", 5, 10 },
        { "aries:groups=1", 2, 4 },
        { "aries:groups=8,chassis=1,blades=16", 3, 6 },
        { "aries:groups=5,chassis=6,blades=4,last_chassis=1,cables_per_bundle=2", 5, 10 },
    };
    struct emu_random random = seeded(5);
    uint32_t histogram[HOPS_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        struct emu_machine *m = load(examples[i].spec);

        assert_int_equal(longest(m, EMU_MODE_MINIMAL, 20000, &random, histogram), examples[i].minimal);
        assert_in_range(longest(m, EMU_MODE_VALIANT, 20000, &random, histogram), 1, examples[i].nonminimal_at_most);
        emu_machine_destroy(m);
    }
}

/* In a middle-sized machine; the longest possible ones need the largest. */
static void test_most_nonminimal_ways_have_six_or_seven_hops(void **state)
{
    struct emu_machine *m = load("aries:groups=30,cables_per_bundle=8");
    struct emu_random random = seeded(6);
    uint32_t histogram[HOPS_MAX];
    uint32_t most = longest(m, EMU_MODE_VALIANT, 100000, &random, histogram);
    uint32_t middle = 0;
    uint32_t seen = 0;

    (void)state;
    assert_int_equal(most, 8);
    while (seen < 50000)
        seen += histogram[middle++];
    assert_in_range(middle - 1, 6, 7);
    emu_machine_destroy(m);
}

static void test_one_router_needs_no_hop(void **state)
{
    struct emu_machine *m = load("aries");
    struct emu_random random = seeded(7);
    struct loads loads = { 0 };
    struct emu_route_view view = view_of(m, NULL, &loads, &random);
    struct trip t;

    (void)state;
    for (uint32_t mode = 0; mode < EMU_MODES; mode++) {
        assert_true(travel(&view, packet(4, 7, (enum emu_route_mode)mode, 0), &t));
        assert_true(t.has_arrived);
        assert_int_equal(t.n_hops, 0);
    }
    emu_machine_destroy(m);
}

static void test_quiet_adaptive_packets_go_minimally(void **state)
{
    struct emu_machine *m = load("aries:groups=8,cables_per_bundle=12");
    struct emu_random random = seeded(8);
    struct loads loads = { 0 };
    struct emu_route_view view = view_of(m, NULL, &loads, &random);

    (void)state;
    for (uint32_t i = 0; i < 4000; i++) {
        struct trip t;

        assert_true(travel(&view, packet(any_nid(m, &random), any_nid(m, &random), i % 4, 0), &t));
        assert_int_equal(t.flags & EMU_PACKET_NONMINIMAL, 0);
    }
    emu_machine_destroy(m);
}

/* Flits that a busy link without a queue has not been credited for: (100 + wire) ns of 37.8 Gb/s, and a packet. */
static uint32_t quiet_load(uint32_t wire_ns)
{
    return (100 + wire_ns) * 378 / 10 / 48 + 14;
}

/* How many of 200 packets of a mode and class leave their only minimal first output, on which so much queues of
 * `loads_class`; on all others `others`. */
static uint32_t nonminimal_of_class(uint32_t minimal_load, uint32_t others, enum emu_route_mode mode,
                                    uint8_t traffic_class, uint8_t loads_class)
{
    struct emu_machine *m = load("aries:groups=1");
    struct emu_random random = seeded(9);
    struct loads loads = {
        .by_class = { [EMU_LINK_GREEN] = quiet_load(5) + others, [EMU_LINK_BLACK] = quiet_load(15) + others },
        .traffic_class = loads_class,
    };
    struct emu_route_view view = view_of(m, NULL, &loads, &random);
    uint32_t count = 0;

    loads.link = 2 * emu_machine_n_nodes(m); /* green from router 0 to router 1 */
    loads.link_load = quiet_load(5) + minimal_load;
    for (int i = 0; i < 200; i++) {
        struct trip t;

        assert_true(travel(&view, packet(0, 4, mode, traffic_class), &t));
        count += (t.flags & EMU_PACKET_NONMINIMAL) != 0;
        assert_int_equal(t.n_hops == 1, (t.flags & EMU_PACKET_NONMINIMAL) == 0);
    }
    emu_machine_destroy(m);
    return count;
}

static uint32_t nonminimal_of_200(uint32_t minimal_load, uint32_t others, enum emu_route_mode mode)
{
    return nonminimal_of_class(minimal_load, others, mode, EMU_TRAFFIC_REQUEST, EMU_TRAFFIC_REQUEST);
}

static void test_load_of_the_other_class_does_not_count(void **state)
{
    (void)state;
    assert_int_equal(nonminimal_of_class(60000, 0, EMU_MODE_ADAPTIVE_0, EMU_TRAFFIC_RESPONSE, EMU_TRAFFIC_REQUEST), 0);
    assert_int_equal(nonminimal_of_class(60000, 0, EMU_MODE_ADAPTIVE_0, EMU_TRAFFIC_REQUEST, EMU_TRAFFIC_RESPONSE), 0);
    assert_in_range(nonminimal_of_class(60000, 0, EMU_MODE_ADAPTIVE_0, EMU_TRAFFIC_RESPONSE, EMU_TRAFFIC_RESPONSE), 190,
                    200);
}

static void test_bias_is_the_documented_arithmetic(void **state)
{
    (void)state;
    /* The packet's 14 flits count in both. */
    assert_int_equal(nonminimal_of_200(40 - 14, 20 - 14, EMU_MODE_ADAPTIVE_0), 0); /* 40 <= 20 << 1 */
    /* Some roots need that output. */
    assert_in_range(nonminimal_of_200(41 - 14, 20 - 14, EMU_MODE_ADAPTIVE_0), 190, 200);
    assert_int_equal(nonminimal_of_200(56 - 14, 20 - 14, EMU_MODE_ADAPTIVE_2), 0); /* 56 <= (20 << 1) + 16 */
    assert_in_range(nonminimal_of_200(57 - 14, 20 - 14, EMU_MODE_ADAPTIVE_2), 190, 200);
    assert_int_equal(nonminimal_of_200(144 - 14, 20 - 14, EMU_MODE_ADAPTIVE_3), 0); /* 144 <= (20 << 2) + 64 */
    assert_in_range(nonminimal_of_200(145 - 14, 20 - 14, EMU_MODE_ADAPTIVE_3), 190, 200);
    assert_int_equal(nonminimal_of_200(40 - 14, 20 - 14, EMU_MODE_ADAPTIVE_1), 0); /* no hops taken: no bias */
    assert_in_range(nonminimal_of_200(41 - 14, 20 - 14, EMU_MODE_ADAPTIVE_1), 190, 200);
    assert_int_equal(nonminimal_of_200(28 - 14, 0, EMU_MODE_ADAPTIVE_0), 0);
    assert_in_range(nonminimal_of_200(29 - 14, 0, EMU_MODE_ADAPTIVE_0), 190, 200);
    assert_int_equal(nonminimal_of_200(60000, 0, EMU_MODE_MINIMAL), 0);
    assert_int_equal(nonminimal_of_200(1, 60000, EMU_MODE_VALIANT), 200);
}

/* The blue links of a router to a group: the first of the two, the other one is two further. */
static uint32_t blue_link(const struct emu_machine *m, uint32_t router, uint32_t group)
{
    for (uint32_t id = 2 * emu_machine_n_nodes(m); id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.link_class == EMU_LINK_BLUE && l.from.index == router && l.to.index / 4 == group)
            return id;
    }
    fail();
    return 0;
}

/* How many of 200 packets from router 2 go non-minimally to router 4 of group 1, whose only shortest way leads over
 * router 0. So much queues for the blue links of that router to a group: as it sees it itself, and as others know. */
static uint32_t nonminimal_by_gateway(uint32_t group, uint32_t near, uint32_t far, enum emu_route_mode mode)
{
    struct emu_machine *m = load("aries:groups=4,chassis=1,blades=4,cables_per_bundle=1");
    struct emu_random random = seeded(20);
    uint32_t quiet = (100 + 50) * 3375 / 100 / 48 + 14; /* as quiet_load(), of 33.75 Gb/s */
    struct loads loads = { .blue_near = quiet + near, .blue_far = quiet + far };
    struct emu_route_view view = view_of(m, NULL, &loads, &random);
    uint32_t count = 0;

    loads.blue = blue_link(m, 0, group);
    loads.blue_near += near > 0 ? m->params.dragonfly.threshold_flits : 0;
    loads.blue_far += far > 0 ? m->params.dragonfly.threshold_flits : 0;
    for (int i = 0; i < 200; i++) {
        struct trip t;

        assert_true(travel(&view, packet(2 * 4, 4 * 4, mode, 0), &t));
        count += (t.flags & EMU_PACKET_NONMINIMAL) != 0;
        assert_in_range(t.n_optical, 1, 2);
    }
    emu_machine_destroy(m);
    return count;
}

static void test_load_from_afar_is_that_of_the_output(void **state)
{
    (void)state;
    assert_int_equal(nonminimal_by_gateway(1, 0, 14, EMU_MODE_ADAPTIVE_0), 0);
    /* Some roots are in the same group. */
    assert_in_range(nonminimal_by_gateway(1, 0, 15, EMU_MODE_ADAPTIVE_0), 160, 200);
    assert_int_equal(nonminimal_by_gateway(3, 0, 60000, EMU_MODE_ADAPTIVE_0), 0); /* the same router, another output */
    assert_int_equal(nonminimal_by_gateway(1, 0, 60000, EMU_MODE_MINIMAL), 0);
}

/* The source knows of no load, the gateway does. Half of what it draws leads to the same group again. */
static void test_choice_is_made_anew_at_the_next_router(void **state)
{
    (void)state;
    assert_int_equal(nonminimal_by_gateway(1, 14, 0, EMU_MODE_ADAPTIVE_0), 0);
    assert_in_range(nonminimal_by_gateway(1, 15, 0, EMU_MODE_ADAPTIVE_0), 120, 180);
    assert_int_equal(nonminimal_by_gateway(1, 22, 0, EMU_MODE_ADAPTIVE_1), 0); /* 8 flits for the hop made */
    assert_in_range(nonminimal_by_gateway(1, 23, 0, EMU_MODE_ADAPTIVE_1), 120, 180);
    assert_int_equal(nonminimal_by_gateway(3, 60000, 0, EMU_MODE_ADAPTIVE_0), 0);
    assert_int_equal(nonminimal_by_gateway(1, 60000, 0, EMU_MODE_MINIMAL), 0);
    assert_int_equal(nonminimal_by_gateway(1, 60000, 0, EMU_MODE_IN_ORDER), 0);
}

/* XCWP: "tables are filled so that non-minimal traffic is uniform over routers". */
static void test_roots_are_uniform_over_the_routers(void **state)
{
    struct emu_machine *m = load("aries:groups=4,chassis=2,blades=8");
    uint32_t n_routers = emu_machine_n_routers(m);
    struct emu_random random = seeded(10);
    struct loads loads = { 0 };
    struct emu_route_view view = view_of(m, NULL, &loads, &random);
    uint32_t *count = calloc(n_routers, sizeof(*count));
    const uint32_t each = 1000;

    (void)state;
    assert_non_null(count);
    for (uint32_t i = 0; i < each * (n_routers - 2); i++) {
        struct emu_packet p = packet(0, 20 * 4, EMU_MODE_VALIANT, 0);
        uint32_t root;

        assert_true(emu_routing_dragonfly.start(&view, &p, 0));
        assert_true(emu_dragonfly_has_root(&p, &root));
        count[root]++;
    }
    for (uint32_t router = 0; router < n_routers; router++) {
        if (router == 0 || router == 20)
            assert_int_equal(count[router], 0);
        else
            assert_in_range(count[router], each * 8 / 10, each * 12 / 10); /* more than six sigma */
    }
    free(count);
    emu_machine_destroy(m);
}

static void test_root_of_a_local_packet_is_in_its_group(void **state)
{
    struct emu_machine *m = load("aries:groups=8,cables_per_bundle=12");
    struct emu_random random = seeded(11);
    struct loads loads = { 0 };
    struct emu_route_view view = view_of(m, NULL, &loads, &random);

    (void)state;
    for (int i = 0; i < 2000; i++) {
        struct trip t;

        assert_true(travel(&view, packet(400, 700, EMU_MODE_VALIANT, 0), &t));
        assert_int_equal(t.n_optical, 0);
        assert_in_range(t.n_hops, 2, 4);
    }
    emu_machine_destroy(m);
}

static void expect_same_path(const struct emu_route_view *view, struct emu_packet p, bool is_same, uint64_t second_key)
{
    struct trip first, second;

    assert_true(travel(view, p, &first));
    p.order_key = second_key;
    assert_true(travel(view, p, &second));
    assert_int_equal(first.n_hops == second.n_hops && memcmp(first.links, second.links, 4 * first.n_hops) == 0,
                     is_same);
}

static void test_hashed_modes_keep_their_path(void **state)
{
    struct emu_machine *m = load("aries:groups=8,cables_per_bundle=12");
    struct emu_random random = seeded(12);
    struct loads loads = { 0 };
    struct emu_route_view view = view_of(m, NULL, &loads, &random);

    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint32_t src = any_nid(m, &random);
        uint32_t dst = any_nid(m, &random);

        expect_same_path(&view, packet(src, dst, EMU_MODE_IN_ORDER, 0), true, 99); /* whatever the address */
        expect_same_path(&view, packet(src, dst, EMU_MODE_MIN_HASH, 0), true, 0);
        expect_same_path(&view, packet(src, dst, EMU_MODE_NMIN_HASH, 1), true, 0);
    }
    expect_same_path(&view, packet(0, 3000, EMU_MODE_NMIN_HASH, 0), false, 1);
    emu_machine_destroy(m);
}

/* Every link of a bundle, and each black one, is somebody's hashed path. */
static void test_hashed_paths_spread_over_parallel_links(void **state)
{
    struct emu_machine *m = load("aries:groups=2,cables_per_bundle=12");
    struct emu_random random = seeded(13);
    struct loads loads = { 0 };
    struct emu_route_view view = view_of(m, NULL, &loads, &random);
    uint32_t n_links = emu_machine_n_links(m);
    uint32_t *count = calloc(n_links, sizeof(*count));

    (void)state;
    assert_non_null(count);
    for (uint32_t i = 0; i < 200000; i++) {
        struct emu_packet p = packet(any_nid(m, &random), any_nid(m, &random), EMU_MODE_MIN_HASH, 0);
        struct trip t;

        p.order_key = i;
        assert_true(travel(&view, p, &t));
        for (uint32_t hop = 0; hop < t.n_hops; hop++)
            count[t.links[hop]]++;
    }
    for (uint32_t link = 2 * emu_machine_n_nodes(m); link < n_links; link++) {
        if (link_of(m, link).link_class == EMU_LINK_BLUE)
            assert_in_range(count[link], 800, 1400); /* 100 000 packets cross, over 96 links */
        else
            assert_true(count[link] > 0);
    }
    free(count);
    emu_machine_destroy(m);
}

/* ---- faults ---- */

/* Breaks n cables of a class at random. */
static void break_links(struct emu_fault_map *faults, const struct emu_machine *m, enum emu_link_class link_class,
                        uint32_t n, struct emu_random *random)
{
    while (n > 0) {
        uint32_t link = (uint32_t)emu_random_below(random, emu_machine_n_links(m));
        uint32_t reverse;

        if (link_of(m, link).link_class != link_class)
            continue;
        assert_int_equal(emu_link_reverse(m, link, &reverse), 0);
        assert_int_equal(emu_fault_map_set_link(faults, link, false), 0);
        assert_int_equal(emu_fault_map_set_link(faults, reverse, false), 0);
        n--;
    }
}

static void test_all_pairs_find_a_way_around_broken_links(void **state)
{
    struct emu_machine *m = load("aries:groups=4,chassis=3,blades=6,cables_per_bundle=6");
    struct emu_random random = seeded(14);
    struct loads loads = { 0 };
    struct emu_fault_map *faults;
    struct emu_route_view view;

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    break_links(faults, m, EMU_LINK_GREEN, 12, &random);
    break_links(faults, m, EMU_LINK_BLACK, 40, &random);
    break_links(faults, m, EMU_LINK_BLUE, 40, &random);
    view = view_of(m, faults, &loads, &random);
    for (uint32_t i = 0; i < 40000; i++) {
        struct trip t;

        assert_true(travel(&view, packet(any_nid(m, &random), any_nid(m, &random), i % EMU_MODES, i / 10 % 2), &t));
        assert_true(t.has_arrived);
        assert_in_range(t.n_hops, 0, 10);
    }
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

static void test_dead_router_is_avoided_and_its_nodes_are_refused(void **state)
{
    struct emu_machine *m = load("aries:groups=3,chassis=2,blades=4,cables_per_bundle=4");
    struct emu_random random = seeded(15);
    struct loads loads = { 0 };
    struct emu_fault_map *faults;
    struct emu_route_view view;

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    assert_int_equal(emu_fault_map_set_router(faults, 10, false), 0);
    assert_int_equal(emu_fault_map_set_node(faults, 3, false), 0);
    view = view_of(m, faults, &loads, &random);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t src = any_nid(m, &random);
        uint32_t dst = any_nid(m, &random);
        struct trip t;

        if (src / 4 == 10)
            continue;
        assert_int_equal(travel(&view, packet(src, dst, i % EMU_MODES, 0), &t), dst / 4 != 10 && dst != 3);
        for (uint32_t hop = 0; hop < t.n_hops; hop++)
            assert_int_not_equal(link_of(m, t.links[hop]).to.index, 10);
    }
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

static void test_pair_without_any_way_is_refused(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=3");
    struct emu_random random = seeded(16);
    struct loads loads = { 0 };
    struct emu_fault_map *faults;
    struct emu_route_view view;
    struct trip t;

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    view = view_of(m, faults, &loads, &random);
    for (uint32_t link = 2 * emu_machine_n_nodes(m); link < emu_machine_n_links(m); link++) {
        if (link_of(m, link).from.index == 0 && link_of(m, link).to.index == 1)
            assert_int_equal(emu_fault_map_set_link(faults, link, false), 0);
    }
    assert_true(travel(&view, packet(0, 4, EMU_MODE_MINIMAL, 0), &t)); /* by router 2 */
    assert_int_equal(t.n_hops, 2);
    assert_true((t.flags & EMU_PACKET_NONMINIMAL) != 0);
    for (uint32_t link = 2 * emu_machine_n_nodes(m); link < emu_machine_n_links(m); link++) {
        if (link_of(m, link).from.index == 2)
            assert_int_equal(emu_fault_map_set_link(faults, link, false), 0);
    }
    for (uint32_t mode = 0; mode < EMU_MODES; mode++)
        assert_false(travel(&view, packet(0, 4, (enum emu_route_mode)mode, 0), &t));
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

/* A link breaks under the packet: it takes another way in order, or has none; it never uses a dead link. */
static void test_packet_on_its_way_turns_aside_in_order(void **state)
{
    struct emu_machine *m = load("aries:groups=4,chassis=4,blades=6,cables_per_bundle=8");
    struct emu_random random = seeded(17);
    struct loads loads = { 0 };
    uint32_t n_detours = 0;
    uint32_t n_lost_early = 0;

    (void)state;
    for (uint32_t i = 0; i < 4000; i++) {
        struct emu_packet p = packet(any_nid(m, &random), any_nid(m, &random), i % EMU_MODES, i % 2);
        struct emu_route_at at = entry_of(&p);
        struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
        struct trip t = { 0 };
        uint32_t break_after = i % 4;
        struct emu_fault_map *faults;
        struct emu_route_view view;
        bool is_early;

        assert_int_equal(emu_fault_map_create(m, &faults), 0);
        view = view_of(m, faults, &loads, &random);
        assert_true(emu_routing_dragonfly.start(&view, &p, at.router));
        while (t.n_hops < break_after && take_hop(&view, &p, &at, &t))
            ;
        if (!t.has_arrived) {
            uint32_t n = emu_routing_dragonfly.options(&view, &p, &at, options);

            for (uint32_t o = 0; o < n; o++) {
                if (link_of(m, options[o].link).link_class != EMU_LINK_PROCESSOR_OUT)
                    assert_int_equal(emu_fault_map_set_link(faults, options[o].link, false), 0);
            }
            is_early = at.is_entering || at.in_vc % 4 < 2;
            while (take_hop(&view, &p, &at, &t))
                ;
            n_lost_early += !t.has_arrived && is_early;
            n_detours += t.has_arrived && (p.flags & EMU_PACKET_DETOUR) != 0;
        }
        emu_fault_map_destroy(faults);
    }
    assert_true(n_detours > 500);
    assert_int_equal(n_lost_early, 0); /* channels 2 and 3 are still free to these */
    emu_machine_destroy(m);
}

/* ---- the relation, by the audit ---- */

static void check_audit(const char *spec, struct emu_fault_map *(*break_some)(const struct emu_machine *m))
{
    struct emu_machine *m = load(spec);
    struct emu_fault_map *faults = break_some ? break_some(m) : NULL;
    const struct emu_audit_result *result;
    struct emu_audit_walks walks;
    struct emu_audit *audit;

    assert_int_equal(emu_audit_create(m, &emu_routing_dragonfly, faults, &audit), 0);
    result = emu_audit_result(audit);
    assert_true(result->is_acyclic);
    assert_true(result->is_free);
    assert_int_equal(result->n_impossible, 0);
    assert_int_equal(result->n_stranded, 0);
    assert_int_equal(result->escape_vcs[EMU_TRAFFIC_REQUEST], 4);
    assert_int_equal(result->escape_vcs[EMU_TRAFFIC_RESPONSE], 4);
    for (uint32_t mode = 0; mode < EMU_MODES; mode++) {
        struct emu_audit_walk_options options = {
            .mode = (enum emu_route_mode)mode,
            .traffic_class = mode % 2,
            .n_pairs = 3000,
            .walks_per_pair = 2,
            .seed = 3,
        };

        assert_int_equal(emu_audit_walk(audit, &options, NULL, NULL, &walks), 0);
        assert_int_equal(walks.n_undeclared, 0);
        assert_int_equal(walks.n_lost, 0);
        assert_int_equal(walks.n_dead_ends, 0);
        assert_in_range(walks.longest_hops, 1, 10);
        assert_true(walks.is_clean);
    }
    emu_audit_destroy(audit);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

static struct emu_fault_map *some_faults(const struct emu_machine *m)
{
    struct emu_random random = { .state = 18 };
    struct emu_fault_map *faults;

    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    break_links(faults, m, EMU_LINK_GREEN, 10, &random);
    break_links(faults, m, EMU_LINK_BLACK, 20, &random);
    break_links(faults, m, EMU_LINK_BLUE, 20, &random);
    assert_int_equal(emu_fault_map_set_router(faults, 7, false), 0);
    return faults;
}

static void test_dependencies_are_complete_and_without_a_cycle(void **state)
{
    (void)state;
    check_audit("aries:groups=3,chassis=3,blades=5,cables_per_bundle=3", NULL);
    check_audit("aries:groups=3,chassis=3,blades=5,cables_per_bundle=3", some_faults);
    check_audit("aries:groups=4,chassis=4,blades=4,last_chassis=2,cables_per_bundle=4", some_faults);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_longest_ways_have_5_and_10_hops),
        cmocka_unit_test(test_most_nonminimal_ways_have_six_or_seven_hops),
        cmocka_unit_test(test_one_router_needs_no_hop),
        cmocka_unit_test(test_quiet_adaptive_packets_go_minimally),
        cmocka_unit_test(test_bias_is_the_documented_arithmetic),
        cmocka_unit_test(test_load_of_the_other_class_does_not_count),
        cmocka_unit_test(test_load_from_afar_is_that_of_the_output),
        cmocka_unit_test(test_choice_is_made_anew_at_the_next_router),
        cmocka_unit_test(test_roots_are_uniform_over_the_routers),
        cmocka_unit_test(test_root_of_a_local_packet_is_in_its_group),
        cmocka_unit_test(test_hashed_modes_keep_their_path),
        cmocka_unit_test(test_hashed_paths_spread_over_parallel_links),
        cmocka_unit_test(test_all_pairs_find_a_way_around_broken_links),
        cmocka_unit_test(test_dead_router_is_avoided_and_its_nodes_are_refused),
        cmocka_unit_test(test_pair_without_any_way_is_refused),
        cmocka_unit_test(test_packet_on_its_way_turns_aside_in_order),
        cmocka_unit_test(test_dependencies_are_complete_and_without_a_cycle),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
