/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray X1 under load: LOAD-1 and LOAD-2. The sources have no such measurement; each figure is arithmetic on their
 * numbers (spec/machines.md 6), and its tolerance was written down before the first run.
 *
 * Rates are those of the wire, headers included, because the sources' are peaks. A node puts 25.6 GB/s into the network
 * (51 GB/s both ways); an edge has 102.4 GB/s each way, half of what its eight nodes put in (6.6 [OUR]).
 *
 * 2 %: packets under way at both ends of the span. 5 %: three or more links in a row with finite buffers. At least
 * 2 - sqrt(2) = 0.586 of a bound: what queues at inputs give under uniform traffic (Karol, Hluchyj, Morgan 1987).
 */
#include <math.h>

#include "emunic/experiments/loaded.h"

enum { PER_VERTEX = 8, NODES = 128 };

static const struct loaded_spec full = { .warm_ns = 5000, .measure_ns = 10000 };

/* k nodes of vertex 0 to as many of vertex 1. */
static double over_an_edge(struct loaded *l, uint32_t k)
{
    loaded_silence(l);
    for (uint32_t i = 0; i < k; i++)
        loaded_send(l, i, PER_VERTEX + i);
    loaded_run(l, &full);
    return loaded_wire(l, PER_VERTEX, PER_VERTEX);
}

/* What a node, its link and its vertex give: 51 GB/s per node, half of it each way (6.1), and a vertex that is
 * non-blocking for its eight nodes (6.2). NICs have their rates. */
static void report_nodes(struct emu_exp *x, struct loaded *l)
{
    const struct loaded_spec ends = { .has_ends = true, .warm_ns = 5000, .measure_ns = 10000 };

    loaded_silence(l);
    loaded_send(l, 0, NODES - 1);
    loaded_run(l, &ends);
    emu_exp_figure(x, 'S', "one_node", "GB/s", emu_exp_within(25.6, 0.02), loaded_wire(l, NODES - 1, 1));
    loaded_silence(l);
    loaded_send(l, 0, NODES - 1);
    loaded_send(l, NODES - 1, 0);
    loaded_run(l, &ends);
    emu_exp_figure(x, 'S', "two_nodes_both_ways", "GB/s", emu_exp_within(51.2, 0.02),
                   loaded_wire(l, 0, 1) + loaded_wire(l, NODES - 1, 1));
    loaded_silence(l);
    for (uint32_t nid = 0; nid < PER_VERTEX; nid++)
        loaded_send(l, nid, (nid + 3) % PER_VERTEX);
    loaded_run(l, &ends);
    emu_exp_figure(x, 'S', "within_a_vertex", "GB/s", emu_exp_within(PER_VERTEX * 25.6, 0.02),
                   loaded_wire(l, 0, PER_VERTEX));
}

static void tell_edge(struct emu_exp *x, const struct loaded *l)
{
    double least = INFINITY;
    double most = 0;

    for (uint32_t i = 0; i < PER_VERTEX; i++) {
        least = fmin(least, loaded_wire(l, PER_VERTEX + i, 1));
        most = fmax(most, loaded_wire(l, PER_VERTEX + i, 1));
    }
    emu_exp_detail(x, "eight nodes over an edge: %.4g to %.4g GB/s each", least, most);
}

/* Vertex (high, low), two bits each, to (low, high). Lowest bit first, all that have the same high bits come together
 * at vertex (high, high). */
static double exchange(struct loaded *l)
{
    loaded_silence(l);
    for (uint32_t nid = 0; nid < NODES; nid++) {
        uint32_t vertex = nid / PER_VERTEX;
        uint32_t to = vertex % 4 * 4 + vertex / 4;

        if (to != vertex)
            loaded_send(l, nid, to * PER_VERTEX + nid % PER_VERTEX);
    }
    loaded_run(l, &full);
    return loaded_wire(l, 0, NODES);
}

int emu_x1_saturated(struct emu_exp *x)
{
    const struct loaded_spec ends = { .has_ends = true, .warm_ns = 5000, .measure_ns = 10000 };
    struct loaded l;
    int r = loaded_open(x, "x1", &l);

    if (r < 0)
        return r;
    report_nodes(x, &l);
    /* Two nodes are not held up, four fill the edge, eight get no more. */
    emu_exp_figure(x, 'S', "edge_of_2_nodes", "GB/s", emu_exp_within(51.2, 0.02), over_an_edge(&l, 2));
    emu_exp_figure(x, 'S', "edge_of_4_nodes", "GB/s", emu_exp_within(102.4, 0.02), over_an_edge(&l, 4));
    emu_exp_figure(x, 'S', "edge_of_8_nodes", "GB/s", emu_exp_within(102.4, 0.02), over_an_edge(&l, 8));
    tell_edge(x, &l);
    /* Every packet crosses four of the 64 directed edges, and all are alike: 64 x 102.4 / 4. */
    loaded_silence(&l);
    for (uint32_t nid = 0; nid < NODES; nid++)
        loaded_send(&l, nid, NODES - 1 - nid);
    loaded_run(&l, &full);
    emu_exp_figure(x, 'S', "complement_all", "GB/s", emu_exp_within(1638.4, 0.05), loaded_wire(&l, 0, NODES));
    /* Of the three vertices that meet at (high, high) the one two bits away shares an edge with each of the others:
     * from 3 x 51.2 (all alike) to 2 x 102.4 (the others only), four times. */
    emu_exp_figure(x, 'S', "exchange_of_dimensions_all", "GB/s", emu_exp_range(614.4, 819.2), exchange(&l));
    /* All to one: what a node takes. */
    loaded_silence(&l);
    for (uint32_t nid = 1; nid < NODES; nid++)
        loaded_send(&l, nid, 0);
    loaded_run(&l, &ends);
    emu_exp_figure(x, 'S', "incast_of_127", "GB/s", emu_exp_within(25.6, 0.02), loaded_wire(&l, 0, 1));
    loaded_close(&l);
    return l.error;
}

static bool is_edge(const struct emu_machine *m, const struct emu_link *link)
{
    (void)m;
    return link->link_class == EMU_LINK_EDGE;
}

static bool is_processor(const struct emu_machine *m, const struct emu_link *link)
{
    (void)m;
    return link->link_class == EMU_LINK_PROCESSOR_IN;
}

/* Added by each further edge, from one to four, while all other nodes send at random. */
static double hop_slope(struct loaded *l, const struct loaded_spec *spec)
{
    static const uint32_t vertices[] = { 1, 3, 7, 15 };
    double near, far;

    loaded_uniform(l);
    for (uint32_t i = 0; i < 4; i++)
        loaded_probe(l, i, vertices[i] * PER_VERTEX + i);
    loaded_run(l, spec);
    near = loaded_latency_ns(l, vertices[0] * PER_VERTEX);
    far = loaded_latency_ns(l, vertices[3] * PER_VERTEX + 3);
    return (far - near) / 3;
}

int emu_x1_half(struct emu_exp *x)
{
    const struct loaded_spec half = { .wire_gbs = 12.8, .warm_ns = 2000, .measure_ns = 8000 };
    struct loaded l;
    int r = loaded_open(x, "x1", &l);

    if (r < 0)
        return r;
    loaded_uniform(&l);
    loaded_run(&l, &half);
    emu_exp_figure(x, 'S', "carried_per_node", "GB/s", emu_exp_within(12.8, 0.02), loaded_wire(&l, 0, NODES) / NODES);
    /* 2 + 2 / 127 edges per packet: 128 x 12.8 x 256 / 127 / 64 / 102.4. */
    emu_exp_figure(x, 'S', "edges_busy", "1", emu_exp_within(0.504, 0.02), loaded_busy(&l, is_edge));
    emu_exp_figure(x, 'S', "processor_links_busy", "1", emu_exp_within(0.5, 0.02), loaded_busy(&l, is_processor));
    /* 7.3 us within and between nodes to 0.1 us: less than 100 ns for the mean two hops, loaded or not (X1-1, X1-3). */
    emu_exp_at_most(x, 'S', "latency_per_hop", "ns", 50, hop_slope(&l, &half));
    emu_exp_before(x,
                   &(struct emu_exp_before){
                       .source = { .tolerance = EMU_TOL_AT_MOST, .src = 50 },
                       .got = 51.6309,
                       .text = "model revised: outputs of a vertex hold the packet that they send (column_buffers), as "
                               "one that is non-blocking for its nodes (6.2). Before, a packet for a node's link held "
                               "the channel of those under way for 10.3 ns: 49.2, 45.5 and 51.6 with seeds 1 to 3" });
    /* Eight edges each way for 64 nodes, 64 / 127 of whose packets cross: 25.4; and at least 0.586 of it. */
    loaded_uniform(&l);
    loaded_run(&l, &(struct loaded_spec){ .warm_ns = 3000, .measure_ns = 3000 });
    emu_exp_figure(x, 'S', "saturated_per_node", "GB/s", emu_exp_range(14.9, 25.4), loaded_wire(&l, 0, NODES) / NODES);
    loaded_close(&l);
    return l.error;
}
