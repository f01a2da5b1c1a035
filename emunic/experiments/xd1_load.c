/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XD1 under load: LOAD-3, LOAD-4 and LOAD-11. The sources have no such measurement; each figure is arithmetic on
 * their numbers (spec/machines.md 7), and its tolerance was written down before the first run.
 *
 * Rates are of payload. A RapidArray link carries 0.725 GB/s each way: 2.9 GB/s both ways over the two of a node
 * [R:Tecchannel]. Six chassis of six nodes, two links a node; chassis next to each other on the ring have three links,
 * others two (7.1). Flows spread over them (topology.flow_links).
 *
 * 2 %: random arrivals. 3 %: packets under way at both ends of the span, and 2.9 is printed to two digits. At least
 * 2 - sqrt(2) = 0.586 of a bound: what queues at inputs give under uniform traffic (Karol, Hluchyj, Morgan 1987).
 */
#include <math.h>
#include <stdio.h>

#include "emunic/experiments/loaded.h"
#include "emunic/fabric/direct_connect.h"

enum { PER_CHASSIS = 6, CHASSIS = 6, NODES = 36, TREE_CHASSIS = 12 };

static const struct loaded_spec full = { .warm_ns = 50000, .measure_ns = 200000 };

/* Each node of a chassis to the node in its place, so many chassis on. All together, or one chassis alone. */
static double chassis_shift(struct loaded *l, uint32_t shift, uint32_t n_chassis)
{
    uint32_t n_nodes = emu_machine_n_nodes(l->m);

    loaded_silence(l);
    for (uint32_t nid = 0; nid < n_chassis * PER_CHASSIS; nid++)
        loaded_send(l, nid, (nid + shift * PER_CHASSIS) % n_nodes);
    loaded_run(l, &full);
    return loaded_payload(l, 0, n_nodes);
}

/* Each node of a chassis to the next one. */
static double within_chassis(struct loaded *l)
{
    loaded_silence(l);
    for (uint32_t i = 0; i < PER_CHASSIS; i++)
        loaded_send(l, i, (i + 1) % PER_CHASSIS);
    loaded_run(l, &full);
    return loaded_payload(l, 0, PER_CHASSIS);
}

static double incast(struct loaded *l)
{
    loaded_silence(l);
    for (uint32_t nid = 1; nid < emu_machine_n_nodes(l->m); nid++)
        loaded_send(l, nid, 0);
    loaded_run(l, &full);
    return loaded_payload(l, 0, 1);
}

/* The second fabric. */
static int expanded(struct emu_exp *x)
{
    struct loaded l;
    int r = loaded_open(x, "xd1:fabrics=2", &l);

    if (r < 0)
        return r;
    /* Effective ceiling of four links, both ways [R:Arcade]. */
    loaded_send(&l, 0, 3);
    loaded_send(&l, 3, 0);
    loaded_run(&l, &full);
    emu_exp_figure(x, 'S', "two_fabrics_pair_both_ways", "GB/s", emu_exp_within(5.8, 0.03),
                   loaded_payload(&l, 0, NODES));
    emu_exp_why(x,
                "a flow keeps to one fabric, as CUG05 has it: the second one gains nothing for a single pair (XD1-6). "
                "The sources contradict each other, unless two links were meant for each of two flows");
    emu_exp_figure(x, 'S', "two_fabrics_to_next_but_one_chassis", "GB/s", emu_exp_within(17.4, 0.03),
                   chassis_shift(&l, 2, CHASSIS));
    loaded_close(&l);
    return l.error;
}

int emu_xd1_saturated(struct emu_exp *x)
{
    struct loaded l;
    int r = loaded_open(x, "xd1", &l);

    if (r < 0)
        return r;
    /* Twelve node ports, non-blocking: 12 x 0.725. */
    emu_exp_figure(x, 'S', "within_a_chassis", "GB/s", emu_exp_within(8.7, 0.03), within_chassis(&l));
    emu_exp_figure(x, 'S', "chassis_pair_of_2_links", "GB/s", emu_exp_within(1.45, 0.03), chassis_shift(&l, 2, 1));
    emu_exp_figure(x, 'S', "chassis_pair_of_3_links", "GB/s", emu_exp_within(2.175, 0.03), chassis_shift(&l, 1, 1));
    /* All chassis at once share nothing: six times as much. */
    emu_exp_figure(x, 'S', "all_to_next_chassis", "GB/s", emu_exp_within(13.05, 0.03), chassis_shift(&l, 1, CHASSIS));
    emu_exp_figure(x, 'S', "all_to_next_but_one_chassis", "GB/s", emu_exp_within(8.7, 0.03),
                   chassis_shift(&l, 2, CHASSIS));
    emu_exp_figure(x, 'S', "all_to_opposite_chassis", "GB/s", emu_exp_within(8.7, 0.03), chassis_shift(&l, 3, CHASSIS));
    /* Two links of the receiver. */
    emu_exp_figure(x, 'S', "incast_of_35", "GB/s", emu_exp_within(1.45, 0.03), incast(&l));
    loaded_close(&l);
    return l.error < 0 ? l.error : expanded(x);
}

/* Twelve chassis, twelve links from each to the spines, two to each spine. A flow goes by the spine of its destination,
 * and those of six nodes in a row are six. */
int emu_xd1_tree(struct emu_exp *x)
{
    struct loaded l;
    int r = loaded_open(x, "xd1-fat-tree", &l);

    if (r < 0)
        return r;
    emu_exp_figure(x, 'S', "within_a_chassis", "GB/s", emu_exp_within(8.7, 0.03), within_chassis(&l));
    /* Twelve uplinks, as many as the links of the six nodes: 12 x 0.725; and twelve times that. */
    emu_exp_figure(x, 'S', "chassis_to_the_next", "GB/s", emu_exp_within(8.7, 0.03), chassis_shift(&l, 1, 1));
    emu_exp_figure(x, 'S', "all_to_next_chassis", "GB/s", emu_exp_within(104.4, 0.03),
                   chassis_shift(&l, 1, TREE_CHASSIS));
    /* Three nodes to one node each of three chassis, in the same place: by one spine, over two links. */
    loaded_silence(&l);
    for (uint32_t i = 0; i < 3; i++)
        loaded_send(&l, i, (i + 1) * PER_CHASSIS);
    loaded_run(&l, &full);
    emu_exp_figure(x, 'S', "three_nodes_by_one_spine", "GB/s", emu_exp_within(1.45, 0.03),
                   loaded_payload(&l, PER_CHASSIS, 3 * PER_CHASSIS));
    emu_exp_figure(x, 'S', "incast_of_71", "GB/s", emu_exp_within(1.45, 0.03), incast(&l));
    loaded_close(&l);
    return l.error;
}

/* Chassis of the switches that an external link joins have so many links. */
static bool joins(const struct emu_machine *m, const struct emu_link *link, uint32_t n)
{
    uint32_t first = emu_machine_n_nodes(m);
    uint32_t n_links = 0;

    if (link->link_class != EMU_LINK_EXTERNAL)
        return false;
    (void)emu_direct_pair_links(m, link->from.index - first, link->to.index - first, &n_links);
    return n_links == n;
}

static bool is_of_two(const struct emu_machine *m, const struct emu_link *link)
{
    return joins(m, link, 2);
}

static bool is_of_three(const struct emu_machine *m, const struct emu_link *link)
{
    return joins(m, link, 3);
}

static bool is_of_node(const struct emu_machine *m, const struct emu_link *link)
{
    (void)m;
    return link->link_class == EMU_LINK_NODE;
}

int emu_xd1_half(struct emu_exp *x)
{
    const struct loaded_spec half = { .payload_gbs = 0.725, .warm_ns = 100000, .measure_ns = 1000000 };
    struct loaded l;
    int r = loaded_open(x, "xd1", &l);

    if (r < 0)
        return r;
    loaded_uniform(&l);
    loaded_run(&l, &half);
    emu_exp_figure(x, 'S', "carried_per_node", "GB/s", emu_exp_within(0.725, 0.02),
                   loaded_payload(&l, 0, NODES) / NODES);
    emu_exp_figure(x, 'S', "node_links_busy", "1", emu_exp_within(0.5, 0.02), loaded_busy(&l, is_of_node));
    /* Six nodes send 6 / 35 of 0.725 to another chassis, over two links of 0.725 or three. */
    emu_exp_figure(x, 'S', "links_of_2_busy", "1", emu_exp_within(0.5143, 0.03), loaded_busy(&l, is_of_two));
    emu_exp_figure(x, 'S', "links_of_3_busy", "1", emu_exp_within(0.3429, 0.03), loaded_busy(&l, is_of_three));
    /* 6 x 6 / 35 of a node's rate fill two links at 1.41; and at least 0.586 of it. */
    loaded_run(&l, &full);
    emu_exp_figure(x, 'S', "saturated_per_node", "GB/s", emu_exp_range(0.826, 1.41),
                   loaded_payload(&l, 0, NODES) / NODES);
    loaded_close(&l);
    return l.error;
}
