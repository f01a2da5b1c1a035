/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dragonfly of Cray XC systems (Aries).
 *
 * Shape. Groups of chassis of blades; a blade is one router with four NICs. All groups are alike, but the last one may
 * have fewer chassis (rule 6). Within a chassis each two routers have a green link. Routers in the same slot of the
 * chassis of a group have three parallel black links. Each two groups have a bundle of cables, each of four blue links.
 *
 * Numbers. nid = ((group * chassis + chassis) * blades + blade) * 4 + node and router = nid / 4: dense, and with full
 * groups (6 chassis of 16 blades) exactly the XC rule cabinet * 192 + cage * 64 + slot * 4 + node. A group stands in
 * two neighbouring cabinets of a row, chassis 0-2 in the first. Mesh coordinates are (group, chassis, slot).
 *
 * Links, by ascending id (B blades, C chassis, G groups; a peer number skips the one who counts):
 *
 *   processor-in   nid
 *   processor-out  nid
 *   green          router * (B - 1) + peer slot
 *   black          (router * (C - 1) + peer chassis) * 3 + number; the last group counts with its own C
 *   blue           ((group * (G - 1) + peer group) * cables + cable) * 4 + link
 *
 * Wiring. The sources give bundle sizes only; the wiring is ours (spec/machines.md 2.1): cable b of the bundle between
 * g and h leaves chassis (b + off) mod C, off = 0 if the bundle is a multiple of C, else g + h; C is that of the end's
 * group. In a chassis, connectors are handed out in rising order of peer group and cable. Connector s belongs to blade
 * pair s mod pairs, and is that pair's connector s div pairs. The four links of a cable alternate between the two
 * blades of the pair; link l of one end is link l of the other. Two additions:
 * - with off = g + h the chassis do not always fill evenly (8 groups x 34 cables, 241 x 1): a cable that finds its
 *   chassis full takes the next one that has room;
 * - with an odd number of blades the last one is a pair of its own with two connectors, which carry all its links.
 * Groups added later come last in the order, so an upgrade moves no cable (rule 7). Stored are the places of the cables
 * (three bytes per cable end) and of the routers (four bytes each), and the cables of each pair of blades: 330 KB for
 * 241 groups.
 *
 * Minimal routes. Local: green to the right slot, then black to the right chassis, each if needed. Between groups:
 * local, one blue link, local. Among the blue links of the bundle those with the fewest hops in total are equivalent;
 * so are the three black links of a hop. The path hash is read as a number whose digits choose blue link, first black
 * link, second black link. This reading gives the published maxima (3 hops for 6 groups x 48 cables, never above 5) and
 * the expected means between groups of XC-23 (2.77, 3.38, 3.40, 4.42).
 * Source: spec/machines.md 2.1, 2.2 (XCWP); spec/cray-runtime.md 4.2.
 */
#include "emunic/fabric/dragonfly.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "emunic/fabric/dragonfly_inner.h"
#include "emunic/fabric/dragonfly_routing.h"
#include "emunic/fabric/topology.h"
#include "emunic/fabric/xc_rules.h"

/* Digits of a path hash. */
struct choice {
    uint32_t blue;
    uint32_t first_black;
    uint32_t second_black;
};

/* ---- building ---- */

/* Where connector `slot` of a chassis is. Lone blades have fewer connectors, so later rounds pass over them. */
static struct cable_place connector_place(const struct dragonfly *d, uint32_t chassis, uint32_t slot)
{
    uint32_t pairs = (d->blades + 1) / 2;
    uint32_t whole_pairs = d->blades / 2;
    uint32_t common = pairs * EMU_XC_CONNECTORS_LONE; /* slots of the rounds that every pair takes part in */
    struct cable_place place = { .chassis = (uint8_t)chassis };

    if (slot < common) {
        place.pair = (uint8_t)(slot % pairs);
        place.connector = (uint8_t)(slot / pairs);
    } else {
        place.pair = (uint8_t)((slot - common) % whole_pairs);
        place.connector = (uint8_t)(EMU_XC_CONNECTORS_LONE + (slot - common) / whole_pairs);
    }
    return place;
}

/* Its place is known: into the list of its pair of blades. */
static void list_cable(struct dragonfly *d, uint32_t group, uint32_t cable_of_group)
{
    const struct cable_place *p = &d->places[group * (d->groups - 1) * d->bundle + cable_of_group];
    const struct spot first = { .group = (uint16_t)group, .chassis = p->chassis, .blade = (uint8_t)(p->pair * 2) };
    struct pair_cables *pair = pair_of(d, &first);

    pair->cables[pair->n++] = (uint8_t)cable_of_group;
}

static void wire_group(struct dragonfly *d, uint32_t group)
{
    uint32_t used[EMU_XC_CHASSIS_MAX] = { 0 };
    uint32_t connectors = emu_xc_connectors_per_chassis(d->blades);
    uint32_t n_chassis = chassis_of_group(d, group);

    for (uint32_t number = 0; number < d->groups - 1; number++) {
        uint32_t peer = peer_of_number(group, number);
        uint32_t off = d->bundle % n_chassis == 0 ? 0 : group + peer;

        for (uint32_t cable = 0; cable < d->bundle; cable++) {
            uint32_t chassis = (cable + off) % n_chassis;

            while (used[chassis] == connectors) /* ends: the check has counted the connectors of the group */
                chassis = (chassis + 1) % n_chassis;
            d->places[cable_index(d, group, peer, cable)] = connector_place(d, chassis, used[chassis]++);
            list_cable(d, group, number * d->bundle + cable);
        }
    }
}

static uint32_t last_chassis_of(const struct emu_dragonfly_params *p)
{
    return p->last_chassis == EMU_PARAM_AUTO ? p->chassis : p->last_chassis;
}

static struct emu_xc_config config_of(const struct emu_dragonfly_params *p)
{
    return (struct emu_xc_config){
        .groups = p->groups,
        .chassis = p->chassis,
        .last_chassis = last_chassis_of(p),
        .blades = p->blades,
        .cables_per_bundle = p->cables_per_bundle,
    };
}

/* The bundle that the machine gets. */
static uint32_t bundle_of(const struct emu_dragonfly_params *p)
{
    struct emu_xc_config config = config_of(p);

    if (p->groups == 1)
        return 0;
    return p->cables_per_bundle == EMU_PARAM_AUTO ? emu_xc_bundle_max(&config) : p->cables_per_bundle;
}

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_dragonfly_params *p = &params->dragonfly;
    uint32_t smallest = last_chassis_of(p);
    uint32_t connectors = emu_xc_connectors_per_group(smallest, p->blades);

    if (smallest > p->chassis) {
        *key_out = "topology.last_chassis";
        (void)emu_text(text, text_len, "%u chassis are more than the other groups have, %u", smallest, p->chassis);
        return -EINVAL;
    }
    if (p->cabinet_columns % 2 != 0) {
        *key_out = "topology.cabinet_columns";
        (void)emu_text(text, text_len, "%u is odd, but a group stands in two neighbouring cabinets of a row",
                       p->cabinet_columns);
        return -EINVAL;
    }
    if (p->groups - 1 > connectors) {
        *key_out = "topology.groups";
        (void)emu_text(text, text_len,
                       "%u groups cannot be connected: a group of %u chassis x %u blades takes %u global cables, "
                       "enough for %u groups",
                       p->groups, smallest, p->blades, connectors, connectors + 1);
        return -EINVAL;
    }
    if (p->groups > 1 && p->cables_per_bundle > connectors / (p->groups - 1)) {
        *key_out = "topology.cables_per_bundle";
        (void)emu_text(text, text_len,
                       "%u cables between each two of %u groups do not fit: a group of %u chassis x %u blades takes "
                       "%u, so at most %u",
                       p->cables_per_bundle, p->groups, smallest, p->blades, connectors, connectors / (p->groups - 1));
        return -EINVAL;
    }
    return 0;
}

static void number_spots(struct dragonfly *d)
{
    for (uint32_t router = 0; router < d->n_routers; router++)
        d->spots[router] = (struct spot){
            .group = (uint16_t)(router / d->routers_per_group),
            .chassis = (uint8_t)(router % d->routers_per_group / d->blades),
            .blade = (uint8_t)(router % d->blades),
        };
}

/* Ids of the links of each class, in the order of the top comment. Returns how many there are. */
static uint32_t number_links(struct dragonfly *d, uint32_t n_nodes, uint32_t n_cable_ends)
{
    uint32_t n_links = 0;

    d->first_link[EMU_LINK_PROCESSOR_IN] = n_links;
    n_links += n_nodes;
    d->first_link[EMU_LINK_PROCESSOR_OUT] = n_links;
    n_links += n_nodes;
    d->first_link[EMU_LINK_GREEN] = n_links;
    n_links += d->n_routers * (d->blades - 1);
    d->first_link[EMU_LINK_BLACK] = n_links;
    n_links += d->last_first_router * (d->chassis - 1) * BLACK_LINKS;
    d->last_first_black = n_links;
    n_links += (d->n_routers - d->last_first_router) * (d->last_chassis - 1) * BLACK_LINKS;
    d->first_link[EMU_LINK_BLUE] = n_links;
    n_links += n_cable_ends * EMU_XC_LINKS_PER_CABLE;
    return n_links;
}

/* From the start on this link to the decision behind it, the packet itself, and the credit's way back. */
static uint32_t flits_under_way(const struct emu_machine_params *p, enum emu_link_class link_class)
{
    const struct emu_link_params *link = &p->link[link_class];
    const struct emu_router_params *router = &p->router;
    const struct emu_link_rate rate = emu_link_rate(p, link_class, link->lanes);
    uint64_t bits_per_us = rate.mbps * rate.payload / rate.frame;
    uint64_t longer_wire_ps = link->wire_ps > router->hop_wire_ps ? link->wire_ps - router->hop_wire_ps : 0;
    uint64_t round_trip_ps = router->hop_ps + longer_wire_ps + link->wire_ps;

    return (uint32_t)(round_trip_ps * bits_per_us / 1000000 / p->nic.format.flit_bits) + router->packet_units_max;
}

/* Where the blue links of each bundle are, for routing to find the nearest without a look at each. */
static int sort_blue_links(struct dragonfly *d)
{
    if (d->bundle < BLUE_SETS_FROM)
        return 0;
    d->sets =
        calloc((size_t)d->groups * (d->groups - 1) * (d->chassis + d->blades) * blue_set_words(d), sizeof(*d->sets));
    if (!d->sets)
        return -ENOMEM;
    for (uint32_t group = 0; group < d->groups; group++) {
        for (uint32_t peer = 0; peer < d->groups; peer++) {
            if (peer == group)
                continue;
            for (uint32_t bit = 0; bit < 2 * d->bundle; bit++) {
                const struct bundle b = bundle_between(d, group, peer);
                const struct crossing c = crossing_at(d, &b, bit / 2, bit % 2);
                uint64_t mark = UINT64_C(1) << (bit % 64);

                blue_set_of_chassis(d, group, peer, c.from.chassis)[bit / 64] |= mark;
                blue_set_of_blade(d, group, peer, c.from.blade)[bit / 64] |= mark;
            }
        }
    }
    return 0;
}

static int build_dragonfly(struct emu_machine *m)
{
    const struct emu_dragonfly_params *p = &m->params.dragonfly;
    struct dragonfly *d;
    uint32_t n_cable_ends;

    d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->groups = p->groups;
    d->chassis = p->chassis;
    d->last_chassis = last_chassis_of(p);
    d->blades = p->blades;
    d->columns = p->cabinet_columns;
    d->bundle = bundle_of(p);
    d->routers_per_group = d->chassis * d->blades;
    d->last_first_router = (d->groups - 1) * d->routers_per_group;
    d->n_routers = d->last_first_router + d->last_chassis * d->blades;
    n_cable_ends = d->groups * (d->groups - 1) * d->bundle;
    d->places = calloc(n_cable_ends + 1, sizeof(*d->places)); /* + 1: one group has none */
    if (!d->places)
        goto err_free;
    d->spots = calloc(d->n_routers, sizeof(*d->spots));
    if (!d->spots)
        goto err_places;
    d->pairs = calloc((size_t)d->groups * d->chassis * ((d->blades + 1) / 2), sizeof(*d->pairs));
    if (!d->pairs)
        goto err_spots;
    for (uint32_t group = 0; group < d->groups; group++)
        wire_group(d, group);
    number_spots(d);
    if (sort_blue_links(d) < 0)
        goto err_pairs;
    for (uint32_t link_class = EMU_LINK_GREEN; link_class <= EMU_LINK_BLUE; link_class++)
        d->under_way[link_class] = flits_under_way(&m->params, (enum emu_link_class)link_class);

    m->n_routers = d->n_routers;
    m->n_nodes = m->n_routers * NODES_PER_BLADE;
    m->n_links = number_links(d, m->n_nodes, n_cable_ends);
    m->state = d;
    return 0;

err_pairs:
    free(d->pairs);
err_spots:
    free(d->spots);
err_places:
    free(d->places);
err_free:
    free(d);
    return -ENOMEM;
}

static void destroy_dragonfly(struct emu_machine *m)
{
    struct dragonfly *d = m->state;

    if (!d)
        return;
    free(d->sets);
    free(d->pairs);
    free(d->spots);
    free(d->places);
    free(d);
    m->state = NULL;
}

/* ---- nodes and routers ---- */

static void place_of_nid(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    struct spot s = spot_of_router(d, nid / NODES_PER_BLADE);
    uint32_t groups_per_row = d->columns / 2;

    *place_out = (struct emu_place){
        .group = s.group,
        .chassis = s.chassis,
        .blade = s.blade,
        .node = nid % NODES_PER_BLADE,
        .cabinet_column = s.group % groups_per_row * 2 + s.chassis / EMU_XC_CAGES,
        .cabinet_row = s.group / groups_per_row,
        .cage = s.chassis % EMU_XC_CAGES,
        .router = nid / NODES_PER_BLADE,
        .mesh_x = s.group,
        .mesh_y = s.chassis,
        .mesh_z = s.blade,
    };
}

static int nid_of_group_place(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    struct spot s;

    if (at->group >= d->groups || at->chassis >= chassis_of_group(d, at->group) || at->blade >= d->blades ||
        at->node >= NODES_PER_BLADE)
        return -ERANGE;
    s = (struct spot){ (uint16_t)at->group, (uint8_t)at->chassis, (uint8_t)at->blade };
    *nid_out = router_at(d, &s) * NODES_PER_BLADE + at->node;
    return 0;
}

static int nid_of_cabinet_place(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    struct emu_place in_group = { .blade = at->blade, .node = at->node };

    if (at->cabinet_column >= d->columns || at->cage >= EMU_XC_CAGES || at->cabinet_row >= d->groups)
        return -ERANGE;
    in_group.group = at->cabinet_row * (d->columns / 2) + at->cabinet_column / 2;
    in_group.chassis = at->cabinet_column % 2 * EMU_XC_CAGES + at->cage;
    return nid_of_group_place(m, &in_group, nid_out);
}

static uint32_t first_nid_of_router(const struct emu_machine *m, uint32_t router)
{
    (void)m;
    return router * NODES_PER_BLADE;
}

static const char *chip_name(const struct emu_machine *m, uint32_t router)
{
    (void)m;
    (void)router;
    return "a0";
}

static uint32_t nid_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX])
{
    const struct dragonfly *d = emu_dragonfly_of(m);

    static_assert(EMU_TOPOLOGY_LEVELS_MAX >= 4, "group, chassis, blade, node");
    if (d->last_chassis != d->chassis) { /* groups of different size are no level to count through */
        sizes_out[0] = d->n_routers / d->blades;
        sizes_out[1] = d->blades;
        sizes_out[2] = NODES_PER_BLADE;
        return 3;
    }
    sizes_out[0] = d->groups;
    sizes_out[1] = d->chassis;
    sizes_out[2] = d->blades;
    sizes_out[3] = NODES_PER_BLADE;
    return 4;
}

/* ---- links ---- */

static enum emu_link_class class_of(const struct dragonfly *d, uint32_t link)
{
    enum emu_link_class link_class = EMU_LINK_PROCESSOR_IN;

    while (link_class < EMU_LINK_BLUE && link >= d->first_link[link_class + 1])
        link_class++;
    return link_class;
}

/* A blue link's id, taken apart. */
static void blue_parts(const struct dragonfly *d, uint32_t link, uint32_t *group_out, uint32_t *peer_out,
                       uint32_t *cable_out, uint32_t *number_out)
{
    uint32_t index = link - d->first_link[EMU_LINK_BLUE];

    *number_out = index % EMU_XC_LINKS_PER_CABLE;
    index /= EMU_XC_LINKS_PER_CABLE;
    *cable_out = index % d->bundle;
    index /= d->bundle;
    *group_out = index / (d->groups - 1);
    *peer_out = peer_of_number(*group_out, index % (d->groups - 1));
}

static void link_between(const struct dragonfly *d, const struct spot *from, const struct spot *to,
                         struct emu_link *link_out)
{
    link_out->from = (struct emu_link_end){ EMU_END_ROUTER, router_at(d, from) };
    link_out->to = (struct emu_link_end){ EMU_END_ROUTER, router_at(d, to) };
}

static void describe_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    enum emu_link_class link_class = class_of(d, id);
    uint32_t index = id - d->first_link[link_class];
    struct emu_link_end nic, router;
    uint32_t group, peer, cable, number, first_router, n_peers;
    struct crossing crossing;
    struct bundle bundle;
    struct spot from, to;

    *link_out = (struct emu_link){ .id = id, .link_class = link_class };
    switch (link_class) {
    case EMU_LINK_PROCESSOR_IN:
    case EMU_LINK_PROCESSOR_OUT:
        nic = (struct emu_link_end){ EMU_END_NIC, index };
        router = (struct emu_link_end){ EMU_END_ROUTER, index / NODES_PER_BLADE };
        link_out->from = link_class == EMU_LINK_PROCESSOR_IN ? nic : router;
        link_out->to = link_class == EMU_LINK_PROCESSOR_IN ? router : nic;
        return;
    case EMU_LINK_GREEN:
        from = spot_of_router(d, index / (d->blades - 1));
        to = from;
        to.blade = (uint8_t)peer_of_number(from.blade, index % (d->blades - 1));
        link_between(d, &from, &to, link_out);
        return;
    case EMU_LINK_BLACK:
        first_router = id >= d->last_first_black ? d->last_first_router : 0;
        index = id >= d->last_first_black ? id - d->last_first_black : index;
        n_peers = chassis_of_group(d, first_router / d->routers_per_group) - 1;
        link_out->number = index % BLACK_LINKS;
        index /= BLACK_LINKS;
        from = spot_of_router(d, first_router + index / n_peers);
        to = from;
        to.chassis = (uint8_t)peer_of_number(from.chassis, index % n_peers);
        link_between(d, &from, &to, link_out);
        return;
    case EMU_LINK_BLUE:
        blue_parts(d, id, &group, &peer, &cable, &number);
        bundle = bundle_between(d, group, peer);
        crossing = crossing_at(d, &bundle, cable, number);
        link_out->number = cable * EMU_XC_LINKS_PER_CABLE + number;
        link_between(d, &crossing.from, &crossing.to, link_out);
        return;
    default:
        break;
    }
    assert(!"a link has a class");
}

static uint32_t reverse_of_link(const struct emu_machine *m, uint32_t id)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    enum emu_link_class link_class = class_of(d, id);
    uint32_t group, peer, cable, number;
    struct bundle back;
    struct emu_link l;
    struct spot from, to;

    if (link_class == EMU_LINK_PROCESSOR_IN)
        return id - d->first_link[EMU_LINK_PROCESSOR_IN] + d->first_link[EMU_LINK_PROCESSOR_OUT];
    if (link_class == EMU_LINK_PROCESSOR_OUT)
        return id - d->first_link[EMU_LINK_PROCESSOR_OUT] + d->first_link[EMU_LINK_PROCESSOR_IN];
    if (link_class == EMU_LINK_BLUE) {
        blue_parts(d, id, &group, &peer, &cable, &number);
        back = bundle_between(d, peer, group);
        return crossing_at(d, &back, cable, number).link;
    }
    describe_link(m, id, &l);
    from = spot_of_router(d, l.from.index);
    to = spot_of_router(d, l.to.index);
    if (link_class == EMU_LINK_GREEN)
        return green_link(d, &to, from.blade);
    return black_link(d, &to, from.chassis, l.number);
}

/* ---- minimal routes ---- */

/* The blue links of a bundle that give the fewest hops between two routers; borrowed. */
struct shortest {
    const struct dragonfly *d;
    const struct bundle *b;
    const struct spot *src;
    const struct spot *dst;
    uint32_t hops;
    uint32_t n;
    uint32_t position; /* of the link that is looked at next; counts the links of the bundle */
};

/* Counts them. */
static struct shortest shortest_of(const struct dragonfly *d, const struct bundle *b, const struct spot *src,
                                   const struct spot *dst)
{
    struct shortest s = { .d = d, .b = b, .src = src, .dst = dst, .hops = UINT32_MAX };

    for (uint32_t cable = 0; cable < d->bundle; cable++) {
        /* Links 0 and 2 of a cable join the same two routers, and so do 1 and 3. */
        for (uint32_t number = 0; number < 2; number++) {
            const struct crossing c = crossing_at(d, b, cable, number);
            uint32_t hops = crossing_hops(src, dst, &c);

            if (hops < s.hops) {
                s.hops = hops;
                s.n = 0;
            }
            if (hops == s.hops)
                s.n += EMU_XC_LINKS_PER_CABLE / 2;
        }
    }
    return s;
}

static bool next_crossing(struct shortest *s, struct crossing *crossing_out)
{
    const struct spot src = *s->src;
    const struct spot dst = *s->dst;
    uint32_t n_links = s->d->bundle * EMU_XC_LINKS_PER_CABLE;

    for (uint32_t i = s->position; i < n_links; i++) {
        const struct crossing c = crossing_at(s->d, s->b, i / EMU_XC_LINKS_PER_CABLE, i % EMU_XC_LINKS_PER_CABLE);

        if (crossing_hops(&src, &dst, &c) == s->hops) {
            s->position = i + 1;
            *crossing_out = c;
            return true;
        }
    }
    s->position = n_links;
    return false;
}

static uint32_t take_digit(uint64_t *hash, uint32_t base)
{
    uint32_t digit = (uint32_t)(*hash % base);

    *hash /= base;
    return digit;
}

static struct choice choice_of_hash(uint64_t hash, uint32_t n_crossings)
{
    struct choice c;

    c.blue = take_digit(&hash, n_crossings);
    c.first_black = take_digit(&hash, BLACK_LINKS);
    c.second_black = take_digit(&hash, BLACK_LINKS);
    return c;
}

static void append(struct emu_route *route, uint32_t link_id)
{
    assert(route->n_links < EMU_ROUTE_LINKS_MAX);
    route->links[route->n_links++] = link_id;
}

static void append_local(const struct dragonfly *d, const struct spot *from, const struct spot *to,
                         uint32_t black_number, struct emu_route *route)
{
    struct spot at = *from;

    if (at.blade != to->blade) {
        append(route, green_link(d, &at, to->blade));
        at.blade = to->blade;
    }
    if (at.chassis != to->chassis)
        append(route, black_link(d, &at, to->chassis, black_number));
}

static void route_minimally(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                            struct emu_route *route_out)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    const struct spot src = spot_of_router(d, src_nid / NODES_PER_BLADE);
    const struct spot dst = spot_of_router(d, dst_nid / NODES_PER_BLADE);

    route_out->n_links = 0;
    append(route_out, d->first_link[EMU_LINK_PROCESSOR_IN] + src_nid);
    if (src.group == dst.group) {
        append_local(d, &src, &dst, choice_of_hash(path_hash, 1).first_black, route_out);
    } else {
        const struct bundle b = bundle_between(d, src.group, dst.group);
        struct shortest shortest = shortest_of(d, &b, &src, &dst);
        const struct choice choice = choice_of_hash(path_hash, shortest.n);
        struct crossing crossing = { 0 };

        for (uint32_t i = 0; i <= choice.blue; i++)
            next_crossing(&shortest, &crossing);
        append_local(d, &src, &crossing.from, choice.first_black, route_out);
        append(route_out, crossing.link);
        append_local(d, &crossing.to, &dst, choice.second_black, route_out);
    }
    append(route_out, d->first_link[EMU_LINK_PROCESSOR_OUT] + dst_nid);
    route_out->n_hops = route_out->n_links - 2;
}

static void visit_link(const struct emu_share_visit *v, uint32_t link_id, struct emu_share share)
{
    if (share.packets > 0)
        v->call(v->ctx, link_id, share);
}

/* Part of a share for choice `index` of `n`, where choice `first` comes first. */
static struct emu_share turned_part(struct emu_share share, uint32_t index, uint32_t first, uint32_t n)
{
    return emu_share_part(share, (index + n - first) % n, n);
}

static void spread_local(const struct dragonfly *d, const struct spot *from, const struct spot *to,
                         uint32_t black_first, struct emu_share share, const struct emu_share_visit *v)
{
    struct spot at = *from;

    if (at.blade != to->blade) {
        visit_link(v, green_link(d, &at, to->blade), share);
        at.blade = to->blade;
    }
    if (at.chassis != to->chassis) {
        for (uint32_t i = 0; i < BLACK_LINKS; i++)
            visit_link(v, black_link(d, &at, to->chassis, i), turned_part(share, i, black_first, BLACK_LINKS));
    }
}

static void spread_minimally(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                             struct emu_share share, const struct emu_share_visit *visit)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    const struct spot src = spot_of_router(d, src_nid / NODES_PER_BLADE);
    const struct spot dst = spot_of_router(d, dst_nid / NODES_PER_BLADE);
    struct shortest shortest;
    struct crossing crossing;
    struct choice first;
    struct bundle b;

    visit_link(visit, d->first_link[EMU_LINK_PROCESSOR_IN] + src_nid, share);
    visit_link(visit, d->first_link[EMU_LINK_PROCESSOR_OUT] + dst_nid, share);
    if (src.group == dst.group) {
        spread_local(d, &src, &dst, choice_of_hash(path_hash, 1).first_black, share, visit);
        return;
    }
    b = bundle_between(d, src.group, dst.group);
    shortest = shortest_of(d, &b, &src, &dst);
    first = choice_of_hash(path_hash, shortest.n);
    for (uint32_t i = 0; next_crossing(&shortest, &crossing); i++) {
        struct emu_share part = turned_part(share, i, first.blue, shortest.n);

        /* Each crossing turns its black links once more, or single packets would all take the same one. */
        spread_local(d, &src, &crossing.from, (first.first_black + i) % BLACK_LINKS, part, visit);
        visit_link(visit, crossing.link, part);
        spread_local(d, &crossing.to, &dst, (first.second_black + i) % BLACK_LINKS, part, visit);
    }
}

/* ---- rules and cables ---- */

static int check_xc_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                          void *ctx)
{
    struct emu_xc_config config = config_of(&m->params.dragonfly);

    config.cables_per_bundle = emu_dragonfly_of(m)->bundle;
    return emu_xc_check(&config, note, ctx);
}

int emu_dragonfly_shape(const struct emu_machine *m, struct emu_dragonfly_shape *shape_out)
{
    const struct dragonfly *d = emu_dragonfly_of(m);

    if (m->topology != &emu_topology_dragonfly)
        return -EINVAL;
    *shape_out = (struct emu_dragonfly_shape){
        .groups = d->groups,
        .chassis = d->chassis,
        .blades = d->blades,
        .nodes_per_blade = NODES_PER_BLADE,
        .cables_per_bundle = d->bundle,
        .connectors_per_group = emu_xc_connectors_per_group(d->chassis, d->blades),
        .last_chassis = d->last_chassis,
        .n_cables = d->groups * (d->groups - 1) / 2 * d->bundle,
        .cabinet_columns = d->columns,
    };
    return 0;
}

int emu_dragonfly_cable(const struct emu_machine *m, uint32_t group, uint32_t peer, uint32_t cable,
                        struct emu_cable_end *near_out, struct emu_cable_end *far_out)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    const struct cable_place *near, *far;

    if (m->topology != &emu_topology_dragonfly)
        return -EINVAL;
    if (group >= d->groups || peer >= d->groups || group == peer || cable >= d->bundle)
        return -ERANGE;
    near = &d->places[cable_index(d, group, peer, cable)];
    far = &d->places[cable_index(d, peer, group, cable)];
    *near_out = (struct emu_cable_end){ group, near->chassis, near->pair, near->connector };
    *far_out = (struct emu_cable_end){ peer, far->chassis, far->pair, far->connector };
    return 0;
}

#define KEY(name) "topology." #name, EMU_PARAM_COUNT, offsetof(struct emu_machine_params, dragonfly.name)
#define BIAS_KEY(mode, field, max)                                                                                     \
    {                                                                                                                  \
        "routing.adaptive_" #mode "." #field, EMU_PARAM_COUNT,                                                         \
            offsetof(struct emu_machine_params, dragonfly.bias[mode].field), 0, max                                    \
    }
#define BIAS_KEYS(mode)                                                                                                \
    BIAS_KEY(mode, shift, 16), BIAS_KEY(mode, add_flits, 65535), BIAS_KEY(mode, add_flits_per_hop, 65535)

static const struct emu_param dragonfly_params[] = {
    { KEY(groups), 1, 241 },
    { KEY(chassis), 1, EMU_XC_CHASSIS_MAX },
    { "topology.last_chassis", EMU_PARAM_COUNT_OR_AUTO, offsetof(struct emu_machine_params, dragonfly.last_chassis), 1,
      EMU_XC_CHASSIS_MAX },
    { KEY(blades), 1, EMU_XC_BLADES_MAX },
    { KEY(nodes_per_blade), NODES_PER_BLADE, NODES_PER_BLADE },
    { "topology.cables_per_bundle", EMU_PARAM_COUNT_OR_AUTO,
      offsetof(struct emu_machine_params, dragonfly.cables_per_bundle), 1, 240 },
    { KEY(cabinet_columns), 2, 1000 },
    EMU_LINK_KEYS("green", EMU_LINK_GREEN, 3),
    EMU_LINK_KEYS("black", EMU_LINK_BLACK, 3),
    EMU_LINK_KEYS("blue", EMU_LINK_BLUE, 3),
    { "router.column_buffers", EMU_PARAM_COUNT, offsetof(struct emu_machine_params, router.column_buffers), 0, 1 },
    EMU_AMO_CACHE_KEY,
    { "routing.far_percent", EMU_PARAM_COUNT, offsetof(struct emu_machine_params, dragonfly.far_percent), 0, 1000 },
    { "routing.threshold_flits", EMU_PARAM_COUNT, offsetof(struct emu_machine_params, dragonfly.threshold_flits), 0,
      65535 },
    BIAS_KEYS(0),
    BIAS_KEYS(1),
    BIAS_KEYS(2),
    BIAS_KEYS(3),
};

const struct emu_topology emu_topology_dragonfly = {
    .kind = "dragonfly",
    .params = dragonfly_params,
    .n_params = sizeof(dragonfly_params) / sizeof(dragonfly_params[0]),
    .check = check_params,
    .build = build_dragonfly,
    .destroy = destroy_dragonfly,
    .place = place_of_nid,
    .nid_at = nid_of_group_place,
    .nid_in_cabinet = nid_of_cabinet_place,
    .first_nid = first_nid_of_router,
    .chip = chip_name,
    .levels = nid_levels,
    .link = describe_link,
    .link_reverse = reverse_of_link,
    .route_minimal = route_minimally,
    .spread_minimal = spread_minimally,
    .check_rules = check_xc_rules,
    .routing = &emu_routing_dragonfly,
};
