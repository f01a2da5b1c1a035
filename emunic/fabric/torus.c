/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Three-dimensional tori and meshes.
 *
 * Shape. Routers stand at (x, y, z). In each dimension a router has a neighbour at the next higher and the next lower
 * coordinate; a dimension that wraps joins the last coordinate to 0, one that does not is a mesh and ends there.
 * Between neighbours there are one or more parallel links per direction (Gemini: 8, 4, 8). A dimension of size 1 has
 * no links. A ring of two has both cables, so its routers are joined twice.
 *
 * Numbers. The machine's kind orders the routers (serpentines, cabinets); nodes of router r are r * n .. r * n + n - 1.
 *
 * Links, by ascending id:
 *
 *   processor-in   nid
 *   processor-out  n_nodes + nid
 *   network        router by router; of each in the order X-, X+, Y-, Y+, Z-, Z+; of each direction by number
 *
 * A link in a rising direction and the link back have the same number among the parallel ones. struct emu_link numbers
 * both cables of a ring of two: those across the wrap come after the others.
 *
 * Stored are the coordinates of each router, the way back, and each router's first link: 12 bytes per router.
 *
 * Minimal routes. Dimension order X, Y, Z, the short way round; of two equal ways + [OUR] (spec/machines.md 3.2), but
 * on SeaStar machines - from odd coordinates [OUR]. The parallel links of a hop are equivalent; the path hash is read
 * as a number with one digit per dimension, and all hops in a dimension use the links of that number.
 * Source: spec/machines.md 3.1, 3.2, 4.1, 5.1.
 */
#include "emunic/fabric/torus.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static const char *const dim_keys[EMU_TORUS_DIMS] = { "topology.x", "topology.y", "topology.z" };

/* ---- building ---- */

int emu_torus_check(const struct emu_torus_params *p, const char **key_out, char *text, size_t text_len)
{
    uint32_t widest = 0;
    uint32_t hops = 0;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        hops += p->wraps[dim] ? p->size[dim] / 2 : p->size[dim] - 1;
        if (p->size[dim] > p->size[widest])
            widest = dim;
    }
    if (hops > EMU_ROUTE_LINKS_MAX - 2) {
        *key_out = dim_keys[widest];
        (void)emu_text(text, text_len,
                       "%u x %u x %u routers lie up to %u hops apart, more than the %u that a route holds", p->size[0],
                       p->size[1], p->size[2], hops, EMU_ROUTE_LINKS_MAX - 2);
        return -EINVAL;
    }
    return 0;
}

/* Offsets of the directions within the links of a router, for each set of directions that a router may have. */
static void fill_offsets(struct emu_torus *t)
{
    for (uint32_t links = 0; links < 1u << EMU_TORUS_DIRECTIONS; links++) {
        uint32_t offset = 0;

        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
            t->offset[links][direction] = (uint8_t)offset;
            if (links >> direction & 1)
                offset += t->parallel[direction / 2];
        }
    }
}

static uint8_t directions_of(const struct emu_torus *t, const uint32_t coord[EMU_TORUS_DIMS])
{
    uint8_t links = 0;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        if (t->size[dim] == 1)
            continue;
        if (t->wraps[dim] || coord[dim] > 0)
            links |= (uint8_t)(1u << emu_torus_direction(dim, false));
        if (t->wraps[dim] || coord[dim] + 1 < t->size[dim])
            links |= (uint8_t)(1u << emu_torus_direction(dim, true));
    }
    return links;
}

static void place_routers(struct emu_torus *t)
{
    uint32_t link = t->first_link;

    for (uint32_t router = 0; router < t->n_routers; router++) {
        uint32_t coord[EMU_TORUS_DIMS];
        uint8_t links;

        t->kind->coord_of(t, router, coord);
        links = directions_of(t, coord);
        t->coord[router] = (struct emu_torus_coord){
            .at = { (uint8_t)coord[0], (uint8_t)coord[1], (uint8_t)coord[2] },
            .links = links,
        };
        t->router_at[(coord[2] * t->size[1] + coord[1]) * t->size[0] + coord[0]] = router;
        t->first_link_of[router] = link;
        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++)
            link += (links >> direction & 1) * t->parallel[direction / 2];
    }
    t->first_link_of[t->n_routers] = link;
    t->n_links = link;
}

static void free_torus(struct emu_torus *t)
{
    if (!t)
        return;
    free(t->coord);
    free(t->router_at);
    free(t->first_link_of);
    free(t);
}

int emu_torus_build(struct emu_machine *m, const struct emu_torus_params *p, const struct emu_torus_kind *kind,
                    void (*lay_out)(struct emu_torus *t))
{
    struct emu_torus *t = calloc(1, sizeof(*t));
    bool has_edges = false;

    if (!t)
        return -ENOMEM;
    t->kind = kind;
    t->n_routers = 1;
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        assert(p->size[dim] >= 1 && p->size[dim] <= EMU_TORUS_SIZE_MAX && p->parallel[dim] >= 1 &&
               p->parallel[dim] <= 8);
        t->size[dim] = p->size[dim];
        t->wraps[dim] = p->wraps[dim] != 0;
        t->parallel[dim] = p->parallel[dim];
        t->n_routers *= p->size[dim];
        has_edges |= !t->wraps[dim] && t->size[dim] > 1;
    }
    t->first_link = 2 * t->n_routers * kind->nodes_per_router;
    t->coord = calloc(t->n_routers, sizeof(*t->coord));
    t->router_at = calloc(t->n_routers, sizeof(*t->router_at));
    t->first_link_of = calloc(t->n_routers + 1, sizeof(*t->first_link_of));
    if (!t->coord || !t->router_at || !t->first_link_of) {
        free_torus(t);
        return -ENOMEM;
    }
    if (lay_out)
        lay_out(t);
    fill_offsets(t);
    place_routers(t);
    if (!has_edges)
        t->links_per_router = t->first_link_of[1] - t->first_link_of[0];
    m->n_routers = t->n_routers;
    m->n_nodes = t->n_routers * kind->nodes_per_router;
    m->n_links = t->n_links;
    m->state = t;
    return 0;
}

void emu_torus_destroy(struct emu_machine *m)
{
    free_torus(m->state);
    m->state = NULL;
}

int emu_torus_nid_at(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    uint32_t columns = emu_torus_of(m)->layout[EMU_TORUS_COLUMNS];
    const struct emu_place in_cabinet = {
        .cabinet_column = at->group % columns,
        .cabinet_row = at->group / columns,
        .cage = at->chassis,
        .blade = at->blade,
        .node = at->node,
    };

    return m->topology->nid_in_cabinet(m, &in_cabinet, nid_out);
}

uint32_t emu_torus_first_nid(const struct emu_machine *m, uint32_t router)
{
    return router * emu_torus_of(m)->kind->nodes_per_router;
}

int emu_torus_check_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                          void *ctx)
{
    (void)m;
    (void)note;
    (void)ctx;
    return 0;
}

const char *emu_torus_direction_name(uint32_t direction)
{
    static const char *const names[EMU_TORUS_DIRECTIONS] = { "X-", "X+", "Y-", "Y+", "Z-", "Z+" };

    return names[direction];
}

/* ---- links ---- */

/* The router that a network link leaves. */
static uint32_t router_of_link(const struct emu_torus *t, uint32_t link)
{
    uint32_t low = 0;
    uint32_t high = t->n_routers;

    if (t->links_per_router != 0)
        return (link - t->first_link) / t->links_per_router;
    while (high - low > 1) { /* first_link_of[low] <= link < first_link_of[high] */
        uint32_t middle = low + (high - low) / 2;

        if (t->first_link_of[middle] <= link)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void emu_torus_link_parts(const struct emu_torus *t, uint32_t link, uint32_t *router_out, uint32_t *direction_out,
                          uint32_t *number_out)
{
    uint32_t router = router_of_link(t, link);
    uint32_t index = link - t->first_link_of[router];
    uint32_t direction = 0;

    for (uint32_t d = 0; d < EMU_TORUS_DIRECTIONS; d++) {
        if (emu_torus_has(t, router, d) && t->offset[t->coord[router].links][d] <= index)
            direction = d;
    }
    *router_out = router;
    *direction_out = direction;
    *number_out = index - t->offset[t->coord[router].links][direction];
}

void emu_torus_describe_link(const struct emu_machine *m, uint32_t link, struct emu_link *link_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router, direction, number, dim, low;

    *link_out = (struct emu_link){ .id = link };
    if (!emu_torus_is_network_link(t, link)) {
        bool is_in = link < m->n_nodes;
        uint32_t nid = is_in ? link : link - m->n_nodes;
        const struct emu_link_end nic = { EMU_END_NIC, nid };
        const struct emu_link_end chip = { EMU_END_ROUTER, nid / t->kind->nodes_per_router };

        link_out->link_class = is_in ? EMU_LINK_PROCESSOR_IN : EMU_LINK_PROCESSOR_OUT;
        link_out->from = is_in ? nic : chip;
        link_out->to = is_in ? chip : nic;
        return;
    }
    emu_torus_link_parts(t, link, &router, &direction, &number);
    dim = direction / 2;
    link_out->from = (struct emu_link_end){ EMU_END_ROUTER, router };
    link_out->to = (struct emu_link_end){ EMU_END_ROUTER, emu_torus_neighbour(t, router, direction) };
    low = emu_torus_coord(t, (direction & 1) ? router : link_out->to.index)[dim];
    link_out->link_class = t->kind->class_of(t, dim, low);
    link_out->number = number;
    if (t->size[dim] == 2 && emu_torus_crosses(t, router, direction))
        link_out->number += t->parallel[dim];
}

uint32_t emu_torus_link_reverse(const struct emu_machine *m, uint32_t link)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router, direction, number;

    if (link < m->n_nodes)
        return link + m->n_nodes;
    if (!emu_torus_is_network_link(t, link))
        return link - m->n_nodes;
    emu_torus_link_parts(t, link, &router, &direction, &number);
    return emu_torus_link(t, emu_torus_neighbour(t, router, direction), emu_torus_opposite(direction), number);
}

bool emu_torus_is_open(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t router,
                       uint32_t direction)
{
    uint32_t first = emu_torus_link(t, router, direction, 0);

    if (first == EMU_TORUS_NONE)
        return false;
    for (uint32_t number = 0; number < t->parallel[direction / 2]; number++) {
        if (emu_fault_map_link_up(faults, first + number))
            return true;
    }
    return false;
}

bool emu_torus_is_open_for(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t router,
                           uint32_t direction, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        if (!emu_torus_is_open(t, faults, router, direction))
            return false;
        router = emu_torus_neighbour(t, router, direction);
    }
    return true;
}

bool emu_torus_is_behind_dateline(const struct emu_torus *t, uint32_t router, uint32_t direction, uint32_t max_steps)
{
    uint32_t dim = direction / 2;
    uint32_t at = emu_torus_coord(t, router)[dim];
    uint32_t behind = (direction & 1) ? at : t->size[dim] - 1 - at; /* steps from the dateline's far side to here */

    if (!t->wraps[dim] || t->size[dim] == 1)
        return false;
    return emu_torus_crosses(t, router, direction) || behind + 2 <= max_steps;
}

/* ---- minimal routes ---- */

static void append(struct emu_route *route, uint32_t link)
{
    assert(route->n_links < EMU_ROUTE_LINKS_MAX);
    route->links[route->n_links++] = link;
}

/* One digit of the hash per dimension: the parallel link. */
static void numbers_of_hash(const struct emu_torus *t, uint64_t hash, uint32_t numbers_out[EMU_TORUS_DIMS])
{
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        numbers_out[dim] = (uint32_t)(hash % t->parallel[dim]);
        hash /= t->parallel[dim];
    }
}

void emu_torus_route_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                             struct emu_route *route_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router = src_nid / t->kind->nodes_per_router;
    const uint8_t *to = emu_torus_coord(t, dst_nid / t->kind->nodes_per_router);
    uint32_t numbers[EMU_TORUS_DIMS];

    numbers_of_hash(t, path_hash, numbers);
    route_out->n_links = 0;
    append(route_out, src_nid);
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        bool is_plus;
        uint32_t steps = emu_torus_way(t, dim, emu_torus_coord(t, router)[dim], to[dim], &is_plus);
        uint32_t direction = emu_torus_direction(dim, is_plus);

        for (uint32_t i = 0; i < steps; i++) {
            append(route_out, emu_torus_link(t, router, direction, numbers[dim]));
            router = emu_torus_neighbour(t, router, direction);
        }
    }
    append(route_out, m->n_nodes + dst_nid);
    route_out->n_hops = route_out->n_links - 2;
}

void emu_torus_spread_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                              struct emu_share share, const struct emu_share_visit *visit)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router = src_nid / t->kind->nodes_per_router;
    const uint8_t *to = emu_torus_coord(t, dst_nid / t->kind->nodes_per_router);
    uint32_t firsts[EMU_TORUS_DIMS];

    if (share.packets == 0)
        return;
    numbers_of_hash(t, path_hash, firsts);
    visit->call(visit->ctx, src_nid, share);
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        bool is_plus;
        uint32_t parallel = t->parallel[dim];
        uint32_t steps = emu_torus_way(t, dim, emu_torus_coord(t, router)[dim], to[dim], &is_plus);
        uint32_t direction = emu_torus_direction(dim, is_plus);

        for (uint32_t i = 0; i < steps; i++) {
            for (uint32_t number = 0; number < parallel; number++) {
                uint32_t index = (number + parallel - firsts[dim]) % parallel;
                struct emu_share part = emu_share_part(share, index, parallel);

                if (part.packets > 0)
                    visit->call(visit->ctx, emu_torus_link(t, router, direction, number), part);
            }
            router = emu_torus_neighbour(t, router, direction);
        }
    }
    visit->call(visit->ctx, m->n_nodes + dst_nid, share);
}
