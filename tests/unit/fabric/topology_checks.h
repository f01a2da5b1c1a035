/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What must hold for a machine of any topology: numbers without gaps, names that come back, links with a reverse,
 * routes that hang together, shares that lose nothing.
 */
#ifndef TESTS_UNIT_FABRIC_TOPOLOGY_CHECKS_H
#define TESTS_UNIT_FABRIC_TOPOLOGY_CHECKS_H

#include <string.h>

#include "emunic/fabric/load.h"
#include "emunic/fabric/placement.h"
#include "emunic/fabric/route.h"
#include "tests/unit/fabric/fixture.h"

static inline bool same_end(const struct emu_link_end *a, const struct emu_link_end *b)
{
    return a->kind == b->kind && a->index == b->index;
}

/* Every node has a place and a name of its own that lead back to it. */
static inline void check_names(const struct emu_machine *m)
{
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        struct emu_place place = place_of(m, nid);
        char cname[EMU_CNAME_MAX];
        uint32_t back = UINT32_MAX;

        assert_int_equal(emu_machine_cname(m, nid, cname, sizeof(cname)), 0);
        assert_int_equal(emu_machine_nid_of_cname(m, cname, &back), 0);
        assert_int_equal(back, nid);
        back = UINT32_MAX;
        assert_int_equal(emu_machine_nid_at(m, place.group, place.chassis, place.blade, place.node, &back), 0);
        assert_int_equal(back, nid);
    }
}

/* No two routers have the same name. */
static inline void check_router_names(const struct emu_machine *m)
{
    uint32_t n = emu_machine_n_routers(m);
    char(*names)[EMU_CNAME_MAX] = calloc(n, sizeof(*names));

    assert_non_null(names);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(emu_machine_router_cname(m, i, names[i], sizeof(names[i])), 0);
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(names[i], names[j]);
    }
    free(names);
}

/* A link's reverse connects the same ends the other way round with the same class and number, and is another link. */
static inline void check_links(const struct emu_machine *m)
{
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);
        struct emu_link reverse;
        uint32_t reverse_id, back;
        char name[EMU_LINK_NAME_MAX];

        assert_int_equal(l.id, id);
        assert_int_equal(emu_link_reverse(m, id, &reverse_id), 0);
        assert_int_not_equal(reverse_id, id);
        assert_in_range(reverse_id, 0, emu_machine_n_links(m) - 1);
        assert_int_equal(emu_link_reverse(m, reverse_id, &back), 0);
        assert_int_equal(back, id);
        reverse = link_of(m, reverse_id);
        assert_true(same_end(&l.from, &reverse.to));
        assert_true(same_end(&l.to, &reverse.from));
        assert_int_equal(l.number, reverse.number);
        assert_int_equal(l.bytes_per_s, reverse.bytes_per_s);
        if (l.from.kind == EMU_END_ROUTER && l.to.kind == EMU_END_ROUTER) {
            assert_int_equal(l.link_class, reverse.link_class);
            assert_in_range(l.from.index, 0, emu_machine_n_routers(m) - 1);
            assert_int_not_equal(l.from.index, l.to.index);
        } else {
            uint32_t nid = l.from.kind == EMU_END_NIC ? l.from.index : l.to.index;
            uint32_t router = l.from.kind == EMU_END_NIC ? l.to.index : l.from.index;

            assert_int_equal(place_of(m, nid).router, router);
        }
        assert_true(l.bytes_per_s > 0);
        assert_int_equal(emu_link_name(m, id, name, sizeof(name)), 0);
    }
}

/* From the NIC of one node to the other's, each link where the one before ended. */
static inline void check_route(const struct emu_machine *m, uint32_t src, uint32_t dst, const struct emu_route *route)
{
    struct emu_link_end at = { EMU_END_NIC, src };

    assert_in_range(route->n_links, 2, EMU_ROUTE_LINKS_MAX);
    assert_int_equal(route->n_hops, route->n_links - 2);
    for (uint32_t i = 0; i < route->n_links; i++) {
        struct emu_link l = link_of(m, route->links[i]);

        assert_true(same_end(&l.from, &at));
        at = l.to;
    }
    assert_int_equal(at.kind, EMU_END_NIC);
    assert_int_equal(at.index, dst);
}

static inline void check_routes(const struct emu_machine *m, uint32_t n_pairs)
{
    struct emu_random random = seeded(7);

    for (uint32_t i = 0; i < n_pairs; i++) {
        uint32_t src = (uint32_t)emu_random_below(&random, emu_machine_n_nodes(m));
        uint32_t dst = (uint32_t)emu_random_below(&random, emu_machine_n_nodes(m));
        uint64_t hash = emu_random_next(&random);
        struct emu_route route, again;

        assert_int_equal(emu_route_minimal(m, src, dst, hash, &route), 0);
        assert_int_equal(emu_route_minimal(m, src, dst, hash, &again), 0);
        assert_memory_equal(route.links, again.links, route.n_links * sizeof(route.links[0]));
        check_route(m, src, dst, &route);
    }
}

/*
 * Spread over minimal routes, a flow leaves its node and reaches the other whole, and every router passes on what it
 * gets.
 */
static inline void check_spread(const struct emu_machine *m, uint32_t n_pairs)
{
    struct emu_random random = seeded(11);
    struct emu_link_load *loads = calloc(emu_machine_n_links(m), sizeof(*loads));
    int64_t *balance = calloc(emu_machine_n_routers(m), sizeof(*balance));

    assert_non_null(loads);
    assert_non_null(balance);
    for (uint32_t i = 0; i < n_pairs; i++) {
        const struct emu_flow flow = {
            .src_nid = (uint32_t)emu_random_below(&random, emu_machine_n_nodes(m)),
            .dst_nid = (uint32_t)emu_random_below(&random, emu_machine_n_nodes(m)),
            .packets = 1 + emu_random_below(&random, 50),
            .flits = 1000,
        };
        uint64_t sent = 0;
        uint64_t received = 0;

        memset(loads, 0, emu_machine_n_links(m) * sizeof(*loads));
        memset(balance, 0, emu_machine_n_routers(m) * sizeof(*balance));
        assert_int_equal(emu_load_add(m, &flow, 1, EMU_LOAD_SPREAD, loads), 0);
        for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
            struct emu_link l = link_of(m, id);

            if (l.from.kind == EMU_END_NIC)
                sent += loads[id].flits;
            else
                balance[l.from.index] -= (int64_t)loads[id].flits;
            if (l.to.kind == EMU_END_NIC)
                received += loads[id].flits;
            else
                balance[l.to.index] += (int64_t)loads[id].flits;
        }
        assert_int_equal(sent, flow.flits);
        assert_int_equal(received, flow.flits);
        for (uint32_t router = 0; router < emu_machine_n_routers(m); router++)
            assert_int_equal(balance[router], 0);
    }
    free(loads);
    free(balance);
}

/* Scattered and linear placements of the whole machine use every node once. */
static inline void check_placements(const struct emu_machine *m)
{
    static const char *const policies[] = { "linear", "scatter", "random:5" };
    uint32_t n = emu_machine_n_nodes(m);
    uint32_t *nids = calloc(n, sizeof(*nids));
    uint8_t *seen = calloc(n, 1);

    assert_non_null(nids);
    assert_non_null(seen);
    for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
        memset(seen, 0, n);
        assert_int_equal(emu_machine_placement(m, policies[p], n, nids), 0);
        for (uint32_t i = 0; i < n; i++) {
            assert_in_range(nids[i], 0, n - 1);
            assert_int_equal(seen[nids[i]], 0);
            seen[nids[i]] = 1;
        }
    }
    free(nids);
    free(seen);
}

static inline void check_machine(const char *spec)
{
    struct emu_machine *m = load(spec);

    check_names(m);
    check_router_names(m);
    check_links(m);
    check_routes(m, 500);
    check_spread(m, 50);
    check_placements(m);
    emu_machine_destroy(m);
}

/* The file or an override is refused, with a text that names the key. */
static inline void check_refused(const char *spec, const char *key)
{
    struct emu_machine *m = NULL;
    char err[300] = "";

    assert_true(emu_machine_load(spec, EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)) < 0);
    if (!strstr(err, key))
        fail_msg("%s: '%s' does not name %s", spec, err, key);
}

#endif
