/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fat tree of the Cray XD1: chassis switches are the leaves, spine switches join them.
 *
 * Shape. chassis.c has the chassis. The external ports of a chassis switch are divided evenly over the spine switches
 * of its fabric (twelve chassis, twelve uplinks, six spines with 24 ports: two links each), so the tree carries what
 * all nodes of all chassis can send. The source has the plan only; the numbers are its ports counted out.
 *
 * Routers. Spine s of fabric f is n_nodes + chassis * fabrics + s * fabrics + f.
 * Links. ((chassis * fabrics + fabric) * ports + spine * spine_links + number) * 2, + 1 on the way down.
 *
 * Minimal routes. Up to the chassis switch; if the chassis differ, up to the spine that the destination's nid gives
 * (nid mod spines: the nodes of a chassis get different ones) and down; down to the node. A flow keeps to one fabric
 * and uses all parallel links of each step. The path hash is read as a number whose digits choose among those.
 * Source: spec/machines.md 7.1, 7.2 (CUG05, [OUR]); C. Leiserson, "Fat-trees", IEEE ToC C-34(10).
 */
#include "emunic/fabric/fat_tree.h"

#include <errno.h>

#include "emunic/fabric/chassis.h"
#include "emunic/fabric/chassis_routing.h"

enum { SPINE_LINKS_MAX = 16 };

uint32_t emu_fat_tree_spine(const struct emu_chassis *c, uint32_t dst_nid)
{
    return dst_nid % c->spines;
}

/* A router. */
static uint32_t spine_switch(const struct emu_chassis *c, uint32_t spine, uint32_t fabric)
{
    return c->n_nodes + c->n_switches + spine * c->fabrics + fabric;
}

uint32_t emu_fat_tree_link(const struct emu_chassis *c, const struct emu_fat_tree_way *way, uint32_t number)
{
    uint32_t leaf = way->chassis * c->fabrics + way->fabric;

    return c->first_outer_link + ((leaf * c->spines + way->spine) * c->spine_links + number) * 2 + way->goes_down;
}

/* ---- building ---- */

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_chassis_params *p = &params->chassis;
    uint32_t each = p->external_ports / p->spines;

    if (p->external_ports % p->spines != 0 || each == 0 || each > SPINE_LINKS_MAX) {
        *key_out = "topology.spines";
        (void)emu_text(text, text_len, "%u external links of a switch are not 1 to %d for each of %u spines",
                       p->external_ports, SPINE_LINKS_MAX, p->spines);
        return -EINVAL;
    }
    if (p->chassis * each > p->switch_ports) {
        *key_out = "topology.chassis";
        (void)emu_text(text, text_len, "a spine of %u ports does not reach %u chassis with %u links each",
                       p->switch_ports, p->chassis, each);
        return -EINVAL;
    }
    return emu_chassis_check(p, key_out, text, text_len);
}

static int build_fat_tree(struct emu_machine *m)
{
    const struct emu_chassis_params *p = &m->params.chassis;
    struct emu_chassis *c;
    int r;

    r = emu_chassis_create(p, &c);
    if (r < 0)
        return r;
    c->spines = p->spines;
    c->spine_links = p->external_ports / p->spines;
    m->n_nodes = c->n_nodes;
    m->n_routers = c->n_nodes + c->n_switches + c->spines * c->fabrics;
    m->n_links = c->first_outer_link + c->n_switches * c->spines * c->spine_links * 2;
    m->state = c;
    return 0;
}

/* ---- links ---- */

static void describe_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t index, fabric;
    struct emu_link_end leaf, spine;
    bool goes_up;

    if (id < c->first_outer_link) {
        emu_chassis_link(m, id, link_out);
        return;
    }
    goes_up = (id - c->first_outer_link) % 2 == 0;
    index = (id - c->first_outer_link) / 2;
    *link_out = (struct emu_link){ .id = id, .link_class = EMU_LINK_SPINE, .number = index % c->spine_links };
    index /= c->spine_links;
    fabric = index / c->spines % c->fabrics;
    leaf = (struct emu_link_end){ EMU_END_ROUTER, emu_chassis_switch(c, index / c->spines / c->fabrics, fabric) };
    spine = (struct emu_link_end){ EMU_END_ROUTER, spine_switch(c, index % c->spines, fabric) };
    link_out->from = goes_up ? leaf : spine;
    link_out->to = goes_up ? spine : leaf;
}

static uint32_t reverse_of_link(const struct emu_machine *m, uint32_t id)
{
    const struct emu_chassis *c = emu_chassis_of(m);

    if (id < c->first_outer_link)
        return emu_chassis_link_reverse(m, id);
    return c->first_outer_link + ((id - c->first_outer_link) ^ 1);
}

/* ---- minimal routes ---- */

static void route_minimally(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                            struct emu_route *route_out)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t fabric = emu_chassis_fabric(c, src_nid, dst_nid, 0);
    uint32_t spine = emu_fat_tree_spine(c, dst_nid);
    const struct emu_fat_tree_way up = { src_nid / c->nodes, fabric, spine, false };
    const struct emu_fat_tree_way down = { dst_nid / c->nodes, fabric, spine, true };

    route_out->n_links = 0;
    emu_chassis_append(route_out, src_nid);
    if (src_nid != dst_nid) {
        emu_chassis_append(route_out,
                           emu_chassis_up_link(c, src_nid, fabric, emu_chassis_digit(&path_hash, c->links_per_node)));
        if (src_nid / c->nodes != dst_nid / c->nodes) {
            emu_chassis_append(route_out, emu_fat_tree_link(c, &up, emu_chassis_digit(&path_hash, c->spine_links)));
            emu_chassis_append(route_out, emu_fat_tree_link(c, &down, emu_chassis_digit(&path_hash, c->spine_links)));
        }
        emu_chassis_append(route_out,
                           emu_chassis_down_link(c, dst_nid, fabric, emu_chassis_digit(&path_hash, c->links_per_node)));
    }
    emu_chassis_append(route_out, c->n_nodes + dst_nid);
    route_out->n_hops = route_out->n_links - 2;
}

static void spread_spine(const struct emu_chassis *c, const struct emu_share_visit *visit, struct emu_share share,
                         const struct emu_fat_tree_way *way, uint32_t first)
{
    uint32_t links[SPINE_LINKS_MAX];

    for (uint32_t i = 0; i < c->spine_links; i++)
        links[i] = emu_fat_tree_link(c, way, i);
    emu_chassis_spread(visit, share, links, c->spine_links, first);
}

static void spread_minimally(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                             struct emu_share share, const struct emu_share_visit *visit)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t fabric = emu_chassis_fabric(c, src_nid, dst_nid, 0);
    uint32_t spine = emu_fat_tree_spine(c, dst_nid);
    const struct emu_fat_tree_way up = { src_nid / c->nodes, fabric, spine, false };
    const struct emu_fat_tree_way down = { dst_nid / c->nodes, fabric, spine, true };
    uint32_t node_links[EMU_CHASSIS_NODE_LINKS_MAX];
    uint32_t out = c->n_nodes + dst_nid;
    uint32_t n;

    emu_chassis_spread(visit, share, &src_nid, 1, 0);
    if (src_nid != dst_nid) {
        n = emu_chassis_node_links(c, src_nid, fabric, false, node_links);
        emu_chassis_spread(visit, share, node_links, n, emu_chassis_digit(&path_hash, n));
        if (up.chassis != down.chassis) {
            spread_spine(c, visit, share, &up, emu_chassis_digit(&path_hash, c->spine_links));
            spread_spine(c, visit, share, &down, emu_chassis_digit(&path_hash, c->spine_links));
        }
        n = emu_chassis_node_links(c, dst_nid, fabric, true, node_links);
        emu_chassis_spread(visit, share, node_links, n, emu_chassis_digit(&path_hash, n));
    }
    emu_chassis_spread(visit, share, &out, 1, 0);
}

int emu_fat_tree_shape(const struct emu_machine *m, struct emu_fat_tree_shape *shape_out)
{
    const struct emu_chassis *c = emu_chassis_of(m);

    if (m->topology != &emu_topology_fat_tree)
        return -EINVAL;
    *shape_out = (struct emu_fat_tree_shape){
        .chassis = c->chassis,
        .fabrics = c->fabrics,
        .spines = c->spines,
        .spine_links = c->spine_links,
    };
    return 0;
}

static const struct emu_param fat_tree_params[] = {
    EMU_CHASSIS_COMMON_KEYS,
    { EMU_CHASSIS_KEY(spines), 1, EMU_CHASSIS_SPINES_MAX },
    EMU_LINK_KEYS("spine", EMU_LINK_SPINE, 31),
};

const struct emu_topology emu_topology_fat_tree = {
    EMU_CHASSIS_COMMON_SLOTS,
    .kind = "fat-tree",
    .params = fat_tree_params,
    .n_params = sizeof(fat_tree_params) / sizeof(fat_tree_params[0]),
    .check = check_params,
    .build = build_fat_tree,
    .link = describe_link,
    .link_reverse = reverse_of_link,
    .route_minimal = route_minimally,
    .spread_minimal = spread_minimally,
    .routing = &emu_routing_fat_tree,
};
