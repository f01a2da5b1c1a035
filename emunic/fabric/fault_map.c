/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is broken in a machine.
 *
 * Model: three sets of things that are down (links, routers, nodes), each a bit per thing and a count; and a sorted
 * list of the links that have lost lanes, as few have. A set gets its bits when its first member goes down: a machine
 * without faults keeps less than 100 bytes, the largest Aries machine with faults of each kind 155 KB.
 *
 * The sets are independent: a router that comes back leaves its links as they were set one by one. Whether a link can
 * be used is computed from all of them; its ends are only looked up while some router or node is down.
 *
 * Lane masks have 32 bits. No modelled link has more lanes; those of a wider one beyond the 32nd always work.
 * Source: spec/machines.md 1.2, 1.6, 3.4.
 */
#include "emunic/fabric/fault_map.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/topology.h"

/* Things that are down. */
struct down_set {
    uint64_t *bits; /* owned; NULL until something was down */
    uint32_t n;     /* things there are */
    uint32_t n_down;
};

/* A link that has lost lanes, but not all. */
struct degraded {
    uint32_t link;
    uint32_t lane_mask;
};

struct emu_fault_map {
    const struct emu_machine *machine; /* borrowed; outlives the map */
    struct down_set links;
    struct down_set routers;
    struct down_set nodes;
    struct degraded *degraded; /* owned; by link */
    uint32_t n_degraded;
    uint32_t degraded_room;
};

/* ---- sets ---- */

static size_t words_of(const struct down_set *set)
{
    return ((size_t)set->n + 63) / 64;
}

static bool is_down(const struct down_set *set, uint32_t index)
{
    return set->n_down > 0 && index < set->n && (set->bits[index / 64] >> (index % 64) & 1) != 0;
}

static int set_up(struct down_set *set, uint32_t index, bool is_up)
{
    if (index >= set->n)
        return -ERANGE;
    if (is_up == !is_down(set, index))
        return 0;
    if (!set->bits) {
        set->bits = calloc(words_of(set), sizeof(*set->bits));
        if (!set->bits)
            return -ENOMEM;
    }
    set->bits[index / 64] ^= UINT64_C(1) << (index % 64);
    set->n_down += is_up ? -1u : 1u;
    return 0;
}

/* -ENOMEM leaves the copy without bits and empty. */
static int copy_set(const struct down_set *set, struct down_set *copy)
{
    *copy = (struct down_set){ .n = set->n };
    if (set->n_down == 0)
        return 0;
    copy->bits = malloc(words_of(set) * sizeof(*set->bits));
    if (!copy->bits)
        return -ENOMEM;
    memcpy(copy->bits, set->bits, words_of(set) * sizeof(*set->bits));
    copy->n_down = set->n_down;
    return 0;
}

/* ---- lanes ---- */

static uint32_t all_lanes(const struct emu_machine *m, uint32_t link)
{
    struct emu_link l;

    if (emu_link_get(m, link, &l) < 0)
        return 0;
    return l.lanes >= 32 ? UINT32_MAX : (UINT32_C(1) << l.lanes) - 1;
}

/* Where the link is in the list, or would be. */
static uint32_t find_degraded(const struct emu_fault_map *map, uint32_t link)
{
    uint32_t first = 0;
    uint32_t end = map->n_degraded;

    while (first < end) {
        uint32_t middle = first + (end - first) / 2;

        if (map->degraded[middle].link < link)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

static bool is_degraded(const struct emu_fault_map *map, uint32_t at, uint32_t link)
{
    return at < map->n_degraded && map->degraded[at].link == link;
}

static int insert_degraded(struct emu_fault_map *map, uint32_t at, uint32_t link, uint32_t lane_mask)
{
    if (map->n_degraded == map->degraded_room) {
        uint32_t room = map->degraded_room == 0 ? 8 : map->degraded_room * 2;
        struct degraded *bigger = realloc(map->degraded, (size_t)room * sizeof(*bigger));

        if (!bigger)
            return -ENOMEM;
        map->degraded = bigger;
        map->degraded_room = room;
    }
    memmove(&map->degraded[at + 1], &map->degraded[at], (map->n_degraded - at) * sizeof(*map->degraded));
    map->degraded[at] = (struct degraded){ .link = link, .lane_mask = lane_mask };
    map->n_degraded++;
    return 0;
}

static void remove_degraded(struct emu_fault_map *map, uint32_t at)
{
    map->n_degraded--;
    memmove(&map->degraded[at], &map->degraded[at + 1], (map->n_degraded - at) * sizeof(*map->degraded));
}

/* ---- lifecycle ---- */

int emu_fault_map_create(const struct emu_machine *m, struct emu_fault_map **map_out)
{
    struct emu_fault_map *map = calloc(1, sizeof(*map));

    if (!map)
        return -ENOMEM;
    map->machine = m;
    map->links.n = m->n_links;
    map->routers.n = m->n_routers;
    map->nodes.n = m->n_nodes;
    *map_out = map;
    return 0;
}

void emu_fault_map_destroy(struct emu_fault_map *map)
{
    if (!map)
        return;
    free(map->links.bits);
    free(map->routers.bits);
    free(map->nodes.bits);
    free(map->degraded);
    free(map);
}

int emu_fault_map_copy(const struct emu_fault_map *map, struct emu_fault_map **copy_out)
{
    struct emu_fault_map *copy;
    int r;

    r = emu_fault_map_create(map->machine, &copy);
    if (r < 0)
        return r;
    r = copy_set(&map->links, &copy->links);
    if (r == 0)
        r = copy_set(&map->routers, &copy->routers);
    if (r == 0)
        r = copy_set(&map->nodes, &copy->nodes);
    for (uint32_t i = 0; r == 0 && i < map->n_degraded; i++)
        r = insert_degraded(copy, i, map->degraded[i].link, map->degraded[i].lane_mask);
    if (r < 0) {
        emu_fault_map_destroy(copy);
        return r;
    }
    *copy_out = copy;
    return 0;
}

/* ---- changing ---- */

int emu_fault_map_set_link(struct emu_fault_map *map, uint32_t link, bool is_up)
{
    return set_up(&map->links, link, is_up);
}

int emu_fault_map_set_router(struct emu_fault_map *map, uint32_t router, bool is_up)
{
    return set_up(&map->routers, router, is_up);
}

int emu_fault_map_set_node(struct emu_fault_map *map, uint32_t nid, bool is_up)
{
    return set_up(&map->nodes, nid, is_up);
}

int emu_fault_map_set_lanes(struct emu_fault_map *map, uint32_t link, uint32_t lane_mask)
{
    uint32_t all, at;

    if (link >= map->links.n)
        return -ERANGE;
    all = all_lanes(map->machine, link);
    if (lane_mask == 0 || (lane_mask & ~all) != 0)
        return -EINVAL;
    at = find_degraded(map, link);
    if (!is_degraded(map, at, link))
        return lane_mask == all ? 0 : insert_degraded(map, at, link, lane_mask);
    if (lane_mask == all)
        remove_degraded(map, at);
    else
        map->degraded[at].lane_mask = lane_mask;
    return 0;
}

/* ---- asking ---- */

static bool is_end_up(const struct emu_fault_map *map, const struct emu_link_end *end)
{
    return end->kind == EMU_END_NIC ? !is_down(&map->nodes, end->index) : !is_down(&map->routers, end->index);
}

bool emu_fault_map_link_up(const struct emu_fault_map *map, uint32_t link)
{
    struct emu_link l;

    if (!map)
        return true;
    if (is_down(&map->links, link))
        return false;
    if (map->routers.n_down == 0 && map->nodes.n_down == 0)
        return true;
    if (emu_link_get(map->machine, link, &l) < 0)
        return false;
    return is_end_up(map, &l.from) && is_end_up(map, &l.to);
}

bool emu_fault_map_link_itself_up(const struct emu_fault_map *map, uint32_t link)
{
    return !map || !is_down(&map->links, link);
}

bool emu_fault_map_router_up(const struct emu_fault_map *map, uint32_t router)
{
    return !map || !is_down(&map->routers, router);
}

bool emu_fault_map_node_up(const struct emu_fault_map *map, uint32_t nid)
{
    return !map || !is_down(&map->nodes, nid);
}

uint32_t emu_fault_map_lane_mask(const struct emu_fault_map *map, uint32_t link)
{
    uint32_t at;

    if (!map)
        return UINT32_MAX;
    at = find_degraded(map, link);
    return is_degraded(map, at, link) ? map->degraded[at].lane_mask : all_lanes(map->machine, link);
}

bool emu_fault_map_is_clean(const struct emu_fault_map *map)
{
    return !map ||
           (map->links.n_down == 0 && map->routers.n_down == 0 && map->nodes.n_down == 0 && map->n_degraded == 0);
}
