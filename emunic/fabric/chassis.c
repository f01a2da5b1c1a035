/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chassis of the Cray XD1.
 *
 * Shape. A node is two processors behind one RapidArray processor, which is a router with one NIC; it has
 * links_per_node links into each fabric, main and perhaps expansion. A chassis has one switch per fabric: node ports
 * and external ports. How the external ports are joined is the affair of direct_connect.c and fat_tree.c.
 *
 * Numbers. nid = chassis * nodes + node. Routers: a node's is its nid; then the chassis switches,
 * n_nodes + chassis * fabrics + fabric; then the spine switches of a fat tree. Links by ascending id:
 *
 *   processor-in   nid
 *   processor-out  nid
 *   node           ((nid * fabrics + fabric) * links_per_node + number) * 2, + 1 on the way down to the node
 *   external or spine
 *
 * The number of a link tells the fabrics apart as well: fabric * links_per_node + number.
 *
 * Places. Twelve chassis stand in a cabinet, one cabinet beside the other; a chassis is the cage of a name and the node
 * its slot. Routers: r0 at a node, m0 and x0 for the switches of main and expansion fabric, named for slot 0 of their
 * chassis; spine switches p0, p1 ... for the first chassis of all. Mesh coordinates are (chassis, node, 0).
 * Source: spec/machines.md 7.1 (CUG05; names [OUR]).
 */
#include "emunic/fabric/chassis.h"

#include <errno.h>
#include <stdlib.h>

enum { CHASSIS_PER_CABINET = 12 };

int emu_chassis_create(const struct emu_chassis_params *p, struct emu_chassis **c_out)
{
    struct emu_chassis *c = calloc(1, sizeof(*c));

    if (!c)
        return -ENOMEM;
    c->chassis = p->chassis;
    c->nodes = p->nodes;
    c->fabrics = p->fabrics;
    c->links_per_node = p->links_per_node;
    c->n_nodes = p->chassis * p->nodes;
    c->n_switches = p->chassis * p->fabrics;
    c->first_node_link = 2 * c->n_nodes;
    c->first_outer_link = c->first_node_link + c->n_nodes * p->fabrics * p->links_per_node * 2;
    *c_out = c;
    return 0;
}

int emu_chassis_check(const struct emu_chassis_params *p, const char **key_out, char *text, size_t text_len)
{
    uint32_t node_ports = p->nodes * p->links_per_node;

    if (node_ports + p->external_ports <= p->switch_ports)
        return 0;
    *key_out = "topology.switch_ports";
    (void)emu_text(text, text_len, "%u ports do not suffice for %u nodes with %u links each and %u external links",
                   p->switch_ports, p->nodes, p->links_per_node, p->external_ports);
    return -EINVAL;
}

void emu_chassis_destroy(struct emu_machine *m)
{
    free(m->state);
    m->state = NULL;
}

/* ---- nodes and routers ---- */

void emu_chassis_place(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t chassis = nid / c->nodes;

    *place_out = (struct emu_place){
        .group = chassis / CHASSIS_PER_CABINET,
        .chassis = chassis % CHASSIS_PER_CABINET,
        .blade = nid % c->nodes,
        .cabinet_column = chassis / CHASSIS_PER_CABINET,
        .cage = chassis % CHASSIS_PER_CABINET,
        .router = nid,
        .mesh_x = chassis,
        .mesh_y = nid % c->nodes,
    };
}

static int nid_of_parts(const struct emu_chassis *c, uint32_t cabinet, uint32_t chassis, uint32_t slot, uint32_t node,
                        uint32_t *nid_out)
{
    uint32_t number;

    if (cabinet >= c->chassis || chassis >= CHASSIS_PER_CABINET || slot >= c->nodes || node != 0)
        return -ERANGE;
    number = cabinet * CHASSIS_PER_CABINET + chassis;
    if (number >= c->chassis)
        return -ERANGE;
    *nid_out = number * c->nodes + slot;
    return 0;
}

int emu_chassis_nid_at(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    return nid_of_parts(emu_chassis_of(m), at->group, at->chassis, at->blade, at->node, nid_out);
}

int emu_chassis_nid_in_cabinet(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    if (at->cabinet_row != 0)
        return -ERANGE;
    return nid_of_parts(emu_chassis_of(m), at->cabinet_column, at->cage, at->blade, at->node, nid_out);
}

uint32_t emu_chassis_first_nid(const struct emu_machine *m, uint32_t router)
{
    const struct emu_chassis *c = emu_chassis_of(m);

    if (router < c->n_nodes)
        return router;
    if (router < c->n_nodes + c->n_switches)
        return emu_chassis_of_switch(c, router) * c->nodes;
    return 0;
}

const char *emu_chassis_chip(const struct emu_machine *m, uint32_t router)
{
    static const char *const switches[EMU_CHASSIS_FABRICS_MAX] = { "m0", "x0" };
    static const char *const spines[EMU_CHASSIS_SPINES_MAX * EMU_CHASSIS_FABRICS_MAX] = {
        "p0",  "p1",  "p2",  "p3",  "p4",  "p5",  "p6",  "p7",  "p8",  "p9",  "p10", "p11",
        "p12", "p13", "p14", "p15", "p16", "p17", "p18", "p19", "p20", "p21", "p22", "p23",
    };
    const struct emu_chassis *c = emu_chassis_of(m);

    if (router < c->n_nodes)
        return "r0";
    if (router < c->n_nodes + c->n_switches)
        return switches[emu_fabric_of_switch(c, router)];
    return spines[router - c->n_nodes - c->n_switches];
}

uint32_t emu_chassis_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX])
{
    const struct emu_chassis *c = emu_chassis_of(m);

    sizes_out[0] = c->chassis;
    sizes_out[1] = c->nodes;
    return 2;
}

int emu_chassis_check_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                            void *ctx)
{
    (void)m; /* the source has no rules of configuration; the ports are counted when the machine is loaded */
    (void)note;
    (void)ctx;
    return 0;
}

/* ---- links ---- */

void emu_chassis_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t index;
    uint32_t nid;

    *link_out = (struct emu_link){ .id = id };
    if (id < c->first_node_link) {
        const struct emu_link_end nic = { EMU_END_NIC, id % c->n_nodes };
        const struct emu_link_end router = { EMU_END_ROUTER, id % c->n_nodes };

        link_out->link_class = id < c->n_nodes ? EMU_LINK_PROCESSOR_IN : EMU_LINK_PROCESSOR_OUT;
        link_out->from = id < c->n_nodes ? nic : router;
        link_out->to = id < c->n_nodes ? router : nic;
        return;
    }
    index = (id - c->first_node_link) / 2;
    nid = index / (c->fabrics * c->links_per_node);
    link_out->link_class = EMU_LINK_NODE;
    link_out->number = index % (c->fabrics * c->links_per_node);
    link_out->from = (struct emu_link_end){ EMU_END_ROUTER, nid };
    link_out->to = (struct emu_link_end){ EMU_END_ROUTER,
                                          emu_chassis_switch(c, nid / c->nodes, link_out->number / c->links_per_node) };
    if ((id - c->first_node_link) % 2 == 1) {
        const struct emu_link_end up = link_out->from;

        link_out->from = link_out->to;
        link_out->to = up;
    }
}

uint32_t emu_chassis_link_reverse(const struct emu_machine *m, uint32_t id)
{
    const struct emu_chassis *c = emu_chassis_of(m);

    if (id < c->n_nodes)
        return id + c->n_nodes;
    if (id < c->first_node_link)
        return id - c->n_nodes;
    return c->first_node_link + ((id - c->first_node_link) ^ 1);
}

/* ---- routes ---- */

void emu_chassis_spread(const struct emu_share_visit *v, struct emu_share share, const uint32_t *links,
                        uint32_t n_links, uint32_t first)
{
    for (uint32_t i = 0; i < n_links; i++) {
        const struct emu_share part = emu_share_part(share, (i + n_links - first) % n_links, n_links);

        if (part.packets > 0)
            v->call(v->ctx, links[i], part);
    }
}
