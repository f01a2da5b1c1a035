/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XT3 and Red Storm under load: LOAD-5 to LOAD-8. The sources have no such measurement; each figure is
 * arithmetic on their numbers (spec/machines.md 4), and its tolerance was written down before the first run.
 *
 * Rates are of payload. A link carries 2.5 GB/s each way, a NIC 1.1 GB/s (4.1: the early system). Without a NIC's rate
 * a node sends at that of HyperTransport, more than a link takes. Lines are one row of the machine; c = 2.5 GB/s.
 *
 * 2 %: random arrivals, and 1.1 is printed to two digits. 3 %: 2.5 is printed to two digits, and packets are under way
 * at both ends of the span. 5 %: flows that go over many full links in a row.
 */
#include <math.h>

#include "emunic/experiments/loaded.h"
#include "emunic/fabric/torus.h"

enum { X = 0, Y, Z, LAST_OF_LEFT = 13 };

#define REDSTORM "seastar:x=27,wrap_x=0"

static const struct loaded_spec full = { .mode = EMU_MODE_IN_ORDER, .warm_ns = 10000, .measure_ns = 40000 };
static const struct loaded_spec ends = {
    .mode = EMU_MODE_IN_ORDER, .has_ends = true, .warm_ns = 10000, .measure_ns = 40000
};

/* The i-th node of a line in a dimension, at a third of the others. */
static uint32_t at(const struct loaded *l, uint32_t dim, uint32_t i)
{
    const struct emu_torus *t = emu_torus_of(l->m);

    return emu_torus_router(t, dim == X ? i : t->size[X] / 3, dim == Y ? i : t->size[Y] / 3,
                            dim == Z ? i : t->size[Z] / 3);
}

static double all(const struct loaded *l)
{
    return loaded_payload(l, 0, emu_machine_n_nodes(l->m));
}

/* Nodes from..to of a line, the first to the last and so on, in both directions. */
static void turn_round(struct loaded *l, uint32_t dim, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i <= to; i++) {
        if (2 * i != from + to)
            loaded_send(l, at(l, dim, i), at(l, dim, from + to - i));
    }
}

static double complement(struct loaded *l, uint32_t dim)
{
    loaded_silence(l);
    turn_round(l, dim, 0, emu_torus_of(l->m)->size[dim] - 1);
    loaded_run(l, &full);
    return all(l);
}

/* Each of a line so many on; on a mesh those that have such a node. */
static double shift(struct loaded *l, uint32_t dim, uint32_t by)
{
    const struct emu_torus *t = emu_torus_of(l->m);

    loaded_silence(l);
    for (uint32_t i = 0; i < t->size[dim]; i++) {
        if (t->wraps[dim] || i + by < t->size[dim])
            loaded_send(l, at(l, dim, i), at(l, dim, (i + by) % t->size[dim]));
    }
    loaded_run(l, &full);
    return all(l);
}

/* k nodes in a row of Y to as many behind them, over one link. */
static double share_a_link(struct loaded *l, uint32_t k, const struct loaded_spec *spec, bool is_both_ways)
{
    loaded_silence(l);
    for (uint32_t i = 0; i < k; i++) {
        loaded_send(l, at(l, Y, i), at(l, Y, i + k));
        if (is_both_ways)
            loaded_send(l, at(l, Y, i + k), at(l, Y, i));
    }
    loaded_run(l, spec);
    return all(l);
}

/* Of two rows of eight to one node between them. */
static double incast(struct loaded *l)
{
    loaded_silence(l);
    for (uint32_t i = 1; i <= 4; i++) {
        loaded_send(l, at(l, Y, 5 - i), at(l, Y, 5));
        loaded_send(l, at(l, Y, 5 + i), at(l, Y, 5));
    }
    loaded_run(l, &ends);
    return loaded_payload(l, at(l, Y, 5), 1);
}

int emu_xt3_saturated(struct emu_exp *x)
{
    const struct loaded_spec answered = {
        .mode = EMU_MODE_IN_ORDER, .is_answered = true, .window = 64, .warm_ns = 10000, .measure_ns = 40000
    };
    double one_way;
    struct loaded l;
    int r = loaded_open(x, "xt3", &l);

    if (r < 0)
        return r;
    /* Y is a mesh: eight flows each way over the middle link, 2 c. */
    emu_exp_figure(x, 'S', "y_complement", "GB/s", emu_exp_within(5, 0.03), complement(&l, Y));
    /* X and Z are rings: 4 (11) on, each of the 10 (24) links has 4 (11) flows: 10 c / 4 and 24 c / 11. */
    emu_exp_figure(x, 'S', "x_tornado", "GB/s", emu_exp_within(6.25, 0.05), shift(&l, X, 4));
    emu_exp_figure(x, 'S', "z_tornado", "GB/s", emu_exp_within(5.4545, 0.05), shift(&l, Z, 11));
    /* Two NICs do not fill a link, three do. */
    emu_exp_figure(x, 'S', "link_of_2_nodes", "GB/s", emu_exp_within(2.2, 0.02), share_a_link(&l, 2, &ends, false));
    emu_exp_figure(x, 'S', "link_of_3_nodes", "GB/s", emu_exp_within(2.5, 0.03), share_a_link(&l, 3, &ends, false));
    emu_exp_figure(x, 'S', "incast_of_8", "GB/s", emu_exp_within(1.1, 0.02), incast(&l));
    /* Links are full duplex. What the directions share are answers: one header per nine units of a packet, so each way
     * keeps 9 / 10 of a link. */
    one_way = share_a_link(&l, 3, &answered, false);
    emu_exp_figure(x, 'S', "answered_both_ways_over_one_way", "1", emu_exp_within(1.8, 0.03),
                   share_a_link(&l, 3, &answered, true) / one_way);
    loaded_close(&l);
    return l.error;
}

/* Links of a dimension that rise or fall between a coordinate and the next. */
static bool is_between(const struct emu_machine *m, const struct emu_link *link, uint32_t dim, uint32_t low)
{
    static const enum emu_link_class classes[] = { EMU_LINK_X, EMU_LINK_Y, EMU_LINK_Z };
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t a, b;

    if (link->link_class != classes[dim])
        return false;
    a = emu_torus_coord(t, link->from.index)[dim];
    b = emu_torus_coord(t, link->to.index)[dim];
    return (a == low && b == low + 1) || (b == low && a == low + 1);
}

static bool is_y_middle(const struct emu_machine *m, const struct emu_link *link)
{
    return is_between(m, link, Y, 7);
}

static bool is_y_end(const struct emu_machine *m, const struct emu_link *link)
{
    return is_between(m, link, Y, 0);
}

static bool is_x_middle(const struct emu_machine *m, const struct emu_link *link)
{
    return is_between(m, link, X, 12);
}

static bool is_x_end(const struct emu_machine *m, const struct emu_link *link)
{
    return is_between(m, link, X, 0);
}

static bool is_z(const struct emu_machine *m, const struct emu_link *link)
{
    (void)m;
    return link->link_class == EMU_LINK_Z;
}

/* Added by each further hop between two nodes so far apart and two that are neighbours, others at random. */
static double hop_slope(struct loaded *l, uint32_t dim, uint32_t from, uint32_t to, const struct loaded_spec *spec)
{
    uint32_t hops = to - from;

    loaded_uniform(l);
    loaded_probe(l, at(l, dim, from), at(l, dim, to));
    loaded_probe(l, at(l, dim, from + 1), at(l, dim, from + 2));
    loaded_run(l, spec);
    return (loaded_latency_ns(l, at(l, dim, to)) - loaded_latency_ns(l, at(l, dim, from + 2))) / (hops - 1);
}

/* Y and Z do not depend on the length of X, so that the reduced machine has a short one. */
int emu_xt3_half(struct emu_exp *x)
{
    bool is_full = emu_exp_context(x)->is_full;
    const struct loaded_spec half = {
        .mode = EMU_MODE_IN_ORDER, .payload_gbs = 0.3125, .warm_ns = 4000, .measure_ns = is_full ? 20000 : 6000
    };
    const struct loaded_spec light = {
        .mode = EMU_MODE_IN_ORDER, .payload_gbs = 0.03125, .warm_ns = 4000, .measure_ns = is_full ? 80000 : 30000
    };
    struct loaded l;
    int r = loaded_open(x, is_full ? "xt3" : "xt3:x=3", &l);

    if (r < 0)
        return r;
    loaded_uniform(&l);
    loaded_run(&l, &half);
    emu_exp_figure(x, 'S', "carried_per_node", "GB/s", emu_exp_within(0.3125, 0.02),
                   all(&l) / emu_machine_n_nodes(l.m));
    /* Half of a line's 16 nodes send half of their packets over its middle: 4 x 0.3125 / c. At twice the load the mesh
     * dimension is full, first of the three. */
    emu_exp_figure(x, 'S', "y_middle_busy", "1", emu_exp_within(0.5, 0.03), loaded_busy(&l, is_y_middle));
    emu_exp_figure(x, 'S', "y_end_busy", "1", emu_exp_within(15.0 / 16 * 0.125, 0.03), loaded_busy(&l, is_y_end));
    /* Six links of a ring of 24 on average, half of them each way: 3 x 0.3125 / c. */
    emu_exp_figure(x, 'S', "z_busy", "1", emu_exp_within(0.375, 0.03), loaded_busy(&l, is_z));
    /* 53 to 57 ns (4.6); links are 5 % busy, which adds 1 ns for 25 ns packets (M/D/1). */
    emu_exp_figure(x, 'S', "latency_per_hop", "ns", emu_exp_range(53, 58), hop_slope(&l, Z, 1, 12, &light));
    loaded_close(&l);
    return l.error;
}

/* ---- Red Storm ---- */

/* The sections part: all cables of X behind a plane are switched off. */
static int part_sections(struct loaded *l)
{
    int r = 0;

    for (uint32_t id = 0; id < emu_machine_n_links(l->m) && r == 0; id++) {
        struct emu_link link;

        if (emu_link_get(l->m, id, &link) == 0 && is_between(l->m, &link, X, LAST_OF_LEFT))
            r = emu_fault_map_set_link(l->faults, id, false);
    }
    return r;
}

static void explain_shift(struct emu_exp *x, const struct loaded *l)
{
    double halves[2] = { 0, 0 };

    for (uint32_t i = 9; i < 27; i++)
        halves[i >= 18] += loaded_payload(l, at(l, X, i), 1);
    emu_exp_why(x,
                "the bound asks for flows of 2.5 / 9 GB/s all along. Nodes 9 to 17 send into the links that flows of "
                "nodes 1 to 8 still need; those wait in front of node 0's, which would leave there. The first link "
                "carries %.3g GB/s, the second %.3g",
                halves[0], halves[1]);
}

int emu_redstorm_saturated(struct emu_exp *x)
{
    struct loaded l;
    int r = loaded_open(x, REDSTORM, &l);

    if (r < 0)
        return r;
    /* X is a mesh: 13 flows each way over its middle link, 2 c. */
    emu_exp_figure(x, 'S', "x_complement", "GB/s", emu_exp_within(5, 0.03), complement(&l, X));
    /* Nine on: the first nine flows meet on one link, the other nine on another: 2 c. */
    emu_exp_figure(x, 'S', "x_shift_of_9", "GB/s", emu_exp_within(5, 0.05), shift(&l, X, 9));
    explain_shift(x, &l);
    emu_exp_figure(x, 'S', "z_tornado", "GB/s", emu_exp_within(5.4545, 0.05), shift(&l, Z, 11));
    emu_exp_figure(x, 'S', "link_of_3_nodes", "GB/s", emu_exp_within(2.5, 0.03), share_a_link(&l, 3, &ends, false));
    emu_exp_figure(x, 'S', "incast_of_8", "GB/s", emu_exp_within(1.1, 0.02), incast(&l));
    r = part_sections(&l);
    /* Each section has a middle link of its own: 4 c. Nothing goes from one to the other. */
    loaded_silence(&l);
    turn_round(&l, X, 0, LAST_OF_LEFT);
    turn_round(&l, X, LAST_OF_LEFT + 1, 26);
    loaded_run(&l, &full);
    emu_exp_figure(x, 'S', "sections_complement", "GB/s", emu_exp_within(10, 0.03), all(&l));
    emu_exp_exact(x, 'S', "between_sections", "GB/s", 0, complement(&l, X));
    loaded_close(&l);
    return r < 0 ? r : l.error;
}

/* X and Y do not depend on the length of Z, so that the reduced machine has a short one. */
int emu_redstorm_half(struct emu_exp *x)
{
    bool is_full = emu_exp_context(x)->is_full;
    const struct loaded_spec half = {
        .mode = EMU_MODE_IN_ORDER, .payload_gbs = 0.1854, .warm_ns = 5000, .measure_ns = is_full ? 30000 : 10000
    };
    const struct loaded_spec light = {
        .mode = EMU_MODE_IN_ORDER, .payload_gbs = 0.01854, .warm_ns = 6000, .measure_ns = is_full ? 80000 : 40000
    };
    struct loaded l;
    int r = loaded_open(x, is_full ? REDSTORM : REDSTORM ",z=3", &l);

    if (r < 0)
        return r;
    loaded_uniform(&l);
    loaded_run(&l, &half);
    emu_exp_figure(x, 'S', "carried_per_node", "GB/s", emu_exp_within(0.1854, 0.02),
                   all(&l) / emu_machine_n_nodes(l.m));
    /* 13 of a line's 27 nodes send 14 / 27 of their packets over its middle: 13 x 14 / 27 x 0.1854 / c. At twice the
     * load the longer mesh dimension is full. */
    emu_exp_figure(x, 'S', "x_middle_busy", "1", emu_exp_within(0.5, 0.03), loaded_busy(&l, is_x_middle));
    emu_exp_figure(x, 'S', "x_end_busy", "1", emu_exp_within(0.0714, 0.05), loaded_busy(&l, is_x_end));
    emu_exp_figure(x, 'S', "y_middle_busy", "1", emu_exp_within(0.2967, 0.03), loaded_busy(&l, is_y_middle));
    /* 53 to 57 ns (4.6); links are 5 % busy, which adds 1 ns for 25 ns packets (M/D/1). */
    emu_exp_figure(x, 'S', "latency_per_hop", "ns", emu_exp_range(53, 58), hop_slope(&l, X, 0, 26, &light));
    loaded_close(&l);
    return l.error;
}
