/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: three-dimensional tori and meshes. Gemini (gemini.c), SeaStar (seastar.c) and Blue Gene/L share
 * everything here; each has its own row of functions, because names, numbers and link classes differ.
 *
 * A machine of this kind has a struct emu_torus as its state. It is constant once built.
 */
#ifndef EMUNIC_FABRIC_TORUS_H
#define EMUNIC_FABRIC_TORUS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/topology.h"

#define EMU_TORUS_SIZE_MAX 255        /* routers along one dimension */
#define EMU_TORUS_NONE     UINT32_MAX /* no router, no link */

/* Directions: twice the dimension, plus one for rising coordinates. X-, X+, Y-, Y+, Z-, Z+. */
#define EMU_TORUS_DIRECTIONS 6

static inline uint32_t emu_torus_direction(uint32_t dim, bool is_plus)
{
    return 2 * dim + is_plus;
}

static inline uint32_t emu_torus_opposite(uint32_t direction)
{
    return direction ^ 1;
}

struct emu_torus_coord {
    uint8_t at[EMU_TORUS_DIMS];
    uint8_t links; /* bit per direction: there is a neighbour */
};

struct emu_torus;

/* What the machines do differently. */
struct emu_torus_kind {
    uint32_t nodes_per_router; /* nids of router r are r * nodes_per_router and those after it */
    bool splits_ties;          /* emu_torus_way() */
    /* Where router number `router` stands; a one to one map, called while the torus is built. */
    void (*coord_of)(const struct emu_torus *t, uint32_t router, uint32_t coord_out[EMU_TORUS_DIMS]);
    /* Class of the cable between `low` and the next coordinate of a dimension (of the last one: across the wrap). */
    enum emu_link_class (*class_of)(const struct emu_torus *t, uint32_t dim, uint32_t low);
};

struct emu_torus {
    const struct emu_torus_kind *kind; /* static */
    uint32_t size[EMU_TORUS_DIMS];
    bool wraps[EMU_TORUS_DIMS];
    uint32_t parallel[EMU_TORUS_DIMS]; /* links in each direction of a dimension */
    uint32_t n_routers;
    uint32_t first_link; /* of the network: smaller ids are the NICs' */
    uint32_t n_links;
    uint32_t links_per_router;                                       /* 0: routers at the edge of a mesh have fewer */
    uint8_t offset[1 << EMU_TORUS_DIRECTIONS][EMU_TORUS_DIRECTIONS]; /* of a direction among a router's links */
    struct emu_torus_coord *coord;                                   /* owned; by router */
    uint32_t *router_at;                                             /* owned; by (z * size y + y) * size x + x */
    uint32_t *first_link_of;                                         /* owned; by router, and one more */
    uint32_t layout[8]; /* cabinets and the like; the rest belongs to the kind */
};

/* Meaning of emu_torus.layout, for machines whose groups are cabinets. */
enum { EMU_TORUS_COLUMNS, EMU_TORUS_ROWS, EMU_TORUS_LAYOUT_OWN };

static inline const struct emu_torus *emu_torus_of(const struct emu_machine *m)
{
    return m->state;
}

/* ---- cheap questions: packet routing asks them per hop ---- */

static inline const uint8_t *emu_torus_coord(const struct emu_torus *t, uint32_t router)
{
    return t->coord[router].at;
}

static inline uint32_t emu_torus_router(const struct emu_torus *t, uint32_t x, uint32_t y, uint32_t z)
{
    return t->router_at[(z * t->size[1] + y) * t->size[0] + x];
}

static inline bool emu_torus_has(const struct emu_torus *t, uint32_t router, uint32_t direction)
{
    return t->coord[router].links >> direction & 1;
}

/* The next router in a direction; EMU_TORUS_NONE at the edge of a mesh. */
static inline uint32_t emu_torus_neighbour(const struct emu_torus *t, uint32_t router, uint32_t direction)
{
    uint32_t dim = direction / 2;
    uint32_t at[EMU_TORUS_DIMS];

    if (!emu_torus_has(t, router, direction))
        return EMU_TORUS_NONE;
    for (uint32_t d = 0; d < EMU_TORUS_DIMS; d++)
        at[d] = t->coord[router].at[d];
    if (direction & 1)
        at[dim] = at[dim] + 1 == t->size[dim] ? 0 : at[dim] + 1;
    else
        at[dim] = at[dim] == 0 ? t->size[dim] - 1 : at[dim] - 1;
    return emu_torus_router(t, at[0], at[1], at[2]);
}

/* Link `number` (below parallel[dim]) out of a router; EMU_TORUS_NONE at the edge of a mesh. */
static inline uint32_t emu_torus_link(const struct emu_torus *t, uint32_t router, uint32_t direction, uint32_t number)
{
    if (!emu_torus_has(t, router, direction))
        return EMU_TORUS_NONE;
    return t->first_link_of[router] + t->offset[t->coord[router].links][direction] + number;
}

/* Does the step from a router in a direction cross the dateline, the cable between the last coordinate and 0? */
static inline bool emu_torus_crosses(const struct emu_torus *t, uint32_t router, uint32_t direction)
{
    uint32_t dim = direction / 2;

    return t->coord[router].at[dim] == ((direction & 1) ? t->size[dim] - 1 : 0);
}

/* Steps from one coordinate of a dimension to another in one direction; EMU_TORUS_NONE: the mesh ends before. */
static inline uint32_t emu_torus_steps(const struct emu_torus *t, uint32_t dim, bool is_plus, uint32_t from,
                                       uint32_t to)
{
    if (is_plus)
        return to >= from ? to - from : t->wraps[dim] ? to + t->size[dim] - from : EMU_TORUS_NONE;
    return to <= from ? from - to : t->wraps[dim] ? from + t->size[dim] - to : EMU_TORUS_NONE;
}

/*
 * The short way between two coordinates: steps, and whether they rise. Of equal ways the one that rises [OUR]
 * (spec/machines.md 3.2), or, where the kind splits ties, that only from even coordinates.
 */
static inline uint32_t emu_torus_way(const struct emu_torus *t, uint32_t dim, uint32_t from, uint32_t to,
                                     bool *is_plus_out)
{
    uint32_t up = emu_torus_steps(t, dim, true, from, to);
    uint32_t down = emu_torus_steps(t, dim, false, from, to);

    *is_plus_out = up < down || (up == down && (from % 2 == 0 || !t->kind->splits_ties));
    return up <= down ? up : down;
}

/*
 * Folded rings: neighbours of a ring of `n` stand at most two places apart, because the ring visits every second place
 * and comes back over the others: 0, 2, 4 ... 5, 3, 1.
 */
static inline uint32_t emu_torus_folded_place(uint32_t position, uint32_t n)
{
    return 2 * position < n ? 2 * position : 2 * (n - position) - 1;
}

static inline uint32_t emu_torus_folded_position(uint32_t place, uint32_t n)
{
    return place % 2 == 0 ? place / 2 : n - (place + 1) / 2;
}

static inline bool emu_torus_is_network_link(const struct emu_torus *t, uint32_t link)
{
    return link >= t->first_link;
}

/* The router that a network link leaves, its direction, and its number among the parallel ones. */
void emu_torus_link_parts(const struct emu_torus *t, uint32_t link, uint32_t *router_out, uint32_t *direction_out,
                          uint32_t *number_out);

/* "X-" ... "Z+"; static. */
const char *emu_torus_direction_name(uint32_t direction);

/* Can a packet leave in this direction? At least one of the parallel links is up, and so is the router behind it. */
bool emu_torus_is_open(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t router,
                       uint32_t direction);

/* The same for `steps` steps on end. */
bool emu_torus_is_open_for(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t router,
                           uint32_t direction, uint32_t steps);

/*
 * Does a packet of a ring's second channel ever cross this link? It goes around in one direction and takes the first
 * channel up to the dateline, the second across it and behind it, and never more than max_steps in all.
 */
bool emu_torus_is_behind_dateline(const struct emu_torus *t, uint32_t router, uint32_t direction, uint32_t max_steps);

/* ---- for rows of functions: each fits the slot of struct emu_topology that it is named for ---- */

/* Sizes that fit together and a diameter that a route can hold; the kind checks its own rules besides. */
int emu_torus_check(const struct emu_torus_params *p, const char **key_out, char *text, size_t text_len);

/*
 * Makes the state and the machine's counts from the parameters. lay_out (may be NULL) fills the layout numbers before
 * coord_of is asked. -ENOMEM leaves nothing behind.
 */
int emu_torus_build(struct emu_machine *m, const struct emu_torus_params *p, const struct emu_torus_kind *kind,
                    void (*lay_out)(struct emu_torus *t));
void emu_torus_destroy(struct emu_machine *m);

/* A group is a cabinet: the machine's own nid_in_cabinet() at its place, among the layout's COLUMNS. */
int emu_torus_nid_at(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out);
uint32_t emu_torus_first_nid(const struct emu_machine *m, uint32_t router);
void emu_torus_describe_link(const struct emu_machine *m, uint32_t link, struct emu_link *link_out);
uint32_t emu_torus_link_reverse(const struct emu_machine *m, uint32_t link);
void emu_torus_route_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                             struct emu_route *route_out);
void emu_torus_spread_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                              struct emu_share share, const struct emu_share_visit *visit);
/* No configuration rules are published: 0. */
int emu_torus_check_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                          void *ctx);

/* Slots that all of these machines fill alike. */
#define EMU_TORUS_COMMON_SLOTS                                                                                         \
    .destroy = emu_torus_destroy, .first_nid = emu_torus_first_nid, .link_reverse = emu_torus_link_reverse,            \
    .route_minimal = emu_torus_route_minimal, .spread_minimal = emu_torus_spread_minimal,                              \
    .check_rules = emu_torus_check_rules

/* Rows of a params table: sizes, and which dimensions wrap. */
#define EMU_TORUS_FIELD(field) offsetof(struct emu_machine_params, torus.field)
#define EMU_TORUS_SIZE_KEYS(x_max, y_max, z_max)                                                                       \
    { "topology.x", EMU_PARAM_COUNT, EMU_TORUS_FIELD(size[0]), 1, x_max },                                             \
        { "topology.y", EMU_PARAM_COUNT, EMU_TORUS_FIELD(size[1]), 1, y_max },                                         \
    {                                                                                                                  \
        "topology.z", EMU_PARAM_COUNT, EMU_TORUS_FIELD(size[2]), 1, z_max                                              \
    }
#define EMU_TORUS_WRAP_KEYS                                                                                            \
    { "topology.wrap_x", EMU_PARAM_COUNT, EMU_TORUS_FIELD(wraps[0]), 0, 1 },                                           \
        { "topology.wrap_y", EMU_PARAM_COUNT, EMU_TORUS_FIELD(wraps[1]), 0, 1 },                                       \
    {                                                                                                                  \
        "topology.wrap_z", EMU_PARAM_COUNT, EMU_TORUS_FIELD(wraps[2]), 0, 1                                            \
    }

#endif
