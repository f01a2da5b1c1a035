/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the Dragonfly: what its wiring (dragonfly.c), its routing (dragonfly_routing.c) and its channels
 * (dragonfly_channels.c) share. The numbering is described in dragonfly.c.
 */
#ifndef EMUNIC_FABRIC_DRAGONFLY_INNER_H
#define EMUNIC_FABRIC_DRAGONFLY_INNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/topology.h"
#include "emunic/fabric/xc_rules.h"

enum {
    NODES_PER_BLADE = 4,
    TILES_PER_NIC = 4, /* that a NIC can inject by; it shares them with its neighbour */
    BLACK_LINKS = 3,
    BLUE_SETS_FROM = 4, /* cables of a bundle: fewer are looked at faster one by one */
};

struct cable_place {
    uint8_t chassis;
    uint8_t pair;
    uint8_t connector;
};

/* A router's place; the group decides who is local to whom. */
struct spot {
    uint16_t group;
    uint8_t chassis;
    uint8_t blade;
};

/* The cables of a pair of blades, by their numbers in the group: peer number x cables of a bundle + cable. */
struct pair_cables {
    uint8_t n;
    uint8_t cables[EMU_XC_CONNECTORS];
};

struct dragonfly {
    uint32_t groups;
    uint32_t chassis; /* of every group but the last */
    uint32_t last_chassis;
    uint32_t blades;
    uint32_t bundle;            /* cables between each two groups */
    uint32_t columns;           /* cabinet columns of a row */
    uint32_t routers_per_group; /* of every group but the last */
    uint32_t n_routers;
    uint32_t first_link[EMU_LINK_BLUE + 1]; /* id of the first link of each class */
    uint32_t last_first_router;             /* first router of the last group ... */
    uint32_t last_first_black;              /* ... and its first black link */
    uint32_t under_way[EMU_LINK_BLUE + 1];  /* flits that a busy link without a queue has sent and has no credit for */
    struct cable_place *places;             /* owned; [group][peer number][cable] */
    struct pair_cables *pairs;              /* owned; see pair_of() */
    struct spot *spots;                     /* owned; by router */
    uint64_t *sets;                         /* owned; of blue links, see blue_set(); NULL: bundles too small for them */
};

/* The cables between two groups, seen from one of them. */
struct bundle {
    uint32_t group;
    uint32_t peer;
    uint32_t first_cable_end;       /* number of cable 0 in `places`, seen from group */
    const struct cable_place *near; /* borrowed; by cable */
    const struct cable_place *far;
};

/* One blue link: both ends, and its id. */
struct crossing {
    uint32_t link;
    struct spot from;
    struct spot to;
};

/* What a function needs to know of the network; borrowed. */
struct network {
    const struct dragonfly *d;
    const struct emu_fault_map *faults; /* NULL: nothing is broken */
};

static inline const struct dragonfly *emu_dragonfly_of(const struct emu_machine *m)
{
    return m->state;
}

static inline uint32_t chassis_of_group(const struct dragonfly *d, uint32_t group)
{
    return group + 1 == d->groups ? d->last_chassis : d->chassis;
}

/* Number of `other` in a list of all but `self`, and back. */
static inline uint32_t peer_number(uint32_t self, uint32_t other)
{
    return other < self ? other : other - 1;
}

static inline uint32_t peer_of_number(uint32_t self, uint32_t number)
{
    return number < self ? number : number + 1;
}

static inline struct spot spot_of_router(const struct dragonfly *d, uint32_t router)
{
    return d->spots[router];
}

static inline uint32_t router_at(const struct dragonfly *d, const struct spot *s)
{
    return s->group * d->routers_per_group + s->chassis * d->blades + s->blade;
}

static inline bool is_same_spot(const struct spot *a, const struct spot *b)
{
    return a->group == b->group && a->chassis == b->chassis && a->blade == b->blade;
}

/* Hops between two routers of one group. */
static inline uint32_t local_hops(const struct spot *a, const struct spot *b)
{
    return (uint32_t)(a->blade != b->blade) + (uint32_t)(a->chassis != b->chassis);
}

static inline uint32_t green_link(const struct dragonfly *d, const struct spot *from, uint32_t to_blade)
{
    return d->first_link[EMU_LINK_GREEN] + router_at(d, from) * (d->blades - 1) + peer_number(from->blade, to_blade);
}

static inline uint32_t black_link(const struct dragonfly *d, const struct spot *from, uint32_t to_chassis,
                                  uint32_t number)
{
    uint32_t router = router_at(d, from);
    uint32_t peer = peer_number(from->chassis, to_chassis);

    if (from->group + 1u == d->groups)
        return d->last_first_black + ((router - d->last_first_router) * (d->last_chassis - 1) + peer) * BLACK_LINKS +
               number;
    return d->first_link[EMU_LINK_BLACK] + (router * (d->chassis - 1) + peer) * BLACK_LINKS + number;
}

/* Cable ends are numbered by the bundle they lie in, seen from their group. */
static inline uint32_t cable_index(const struct dragonfly *d, uint32_t group, uint32_t peer, uint32_t cable)
{
    return (group * (d->groups - 1) + peer_number(group, peer)) * d->bundle + cable;
}

static inline struct bundle bundle_between(const struct dragonfly *d, uint32_t group, uint32_t peer)
{
    uint32_t near = cable_index(d, group, peer, 0);

    return (struct bundle){
        .group = group,
        .peer = peer,
        .first_cable_end = near,
        .near = &d->places[near],
        .far = &d->places[cable_index(d, peer, group, 0)],
    };
}

/* The blade that link `number` of a cable uses: the two of the pair in turn, or the last one if it has no partner. */
static inline struct spot spot_of_cable(const struct dragonfly *d, uint32_t group, const struct cable_place *p,
                                        uint32_t number)
{
    uint32_t blade = p->pair * 2u + number % 2;

    return (struct spot){
        .group = (uint16_t)group,
        .chassis = p->chassis,
        .blade = (uint8_t)(blade < d->blades ? blade : d->blades - 1),
    };
}

static inline struct crossing crossing_at(const struct dragonfly *d, const struct bundle *b, uint32_t cable,
                                          uint32_t number)
{
    return (struct crossing){
        .link = d->first_link[EMU_LINK_BLUE] + (b->first_cable_end + cable) * EMU_XC_LINKS_PER_CABLE + number,
        .from = spot_of_cable(d, b->group, &b->near[cable], number),
        .to = spot_of_cable(d, b->peer, &b->far[cable], number),
    };
}

/* Link `blue` of all that join two groups. */
static inline struct crossing crossing_of(const struct dragonfly *d, uint32_t from_group, uint32_t to_group,
                                          uint32_t blue)
{
    const struct bundle b = bundle_between(d, from_group, to_group);

    return crossing_at(d, &b, blue / EMU_XC_LINKS_PER_CABLE, blue % EMU_XC_LINKS_PER_CABLE);
}

/* Of the pair of blades that a router is in. */
static inline struct pair_cables *pair_of(const struct dragonfly *d, const struct spot *s)
{
    return &d->pairs[(s->group * d->chassis + s->chassis) * ((d->blades + 1) / 2) + s->blade / 2];
}

/* The blue links of a bundle as a set: two bits per cable, because links 2 and 3 are where 0 and 1 are. */
static inline uint32_t blue_set_words(const struct dragonfly *d)
{
    return (2 * d->bundle + 63) / 64;
}

/* Those between a group and a peer that begin in this chassis of the group, or at this blade of a chassis. */
static inline uint64_t *blue_set(const struct dragonfly *d, uint32_t group, uint32_t peer, uint32_t chassis_or_blade)
{
    uint32_t pair = group * (d->groups - 1) + peer_number(group, peer);

    return &d->sets[(size_t)(pair * (d->chassis + d->blades) + chassis_or_blade) * blue_set_words(d)];
}

static inline uint64_t *blue_set_of_chassis(const struct dragonfly *d, uint32_t group, uint32_t peer, uint32_t chassis)
{
    return blue_set(d, group, peer, chassis);
}

static inline uint64_t *blue_set_of_blade(const struct dragonfly *d, uint32_t group, uint32_t peer, uint32_t blade)
{
    return blue_set(d, group, peer, d->chassis + blade);
}

static inline uint32_t crossing_hops(const struct spot *src, const struct spot *dst, const struct crossing *c)
{
    return local_hops(src, &c->from) + 1 + local_hops(&c->to, dst);
}

static inline bool is_up(const struct network *n, uint32_t link)
{
    return !n->faults || emu_fault_map_link_up(n->faults, link);
}

#endif
