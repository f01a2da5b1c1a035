/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slim Fly: a graph of diameter two with nearly as many routers as such a graph can have.
 *
 * Shape. McKay, Miller and Siran's graphs for a prime q = 4w + delta, delta 1 or -1: 2 q^2 routers (s, x, y), each with
 * (3q - delta) / 2 cables. With a primitive element e of the field of q elements,
 *
 *   delta  1:  X = { 1, e^2, e^4 .. e^(q-3) }               X' = { e, e^3 .. e^(q-2) }
 *   delta -1:  X = { 1, e^2 .. e^(2w-2), e^(2w-1), e^(2w+1) .. e^(4w-3) }      X' = e X
 *
 *   (0, x, y) - (0, x, y')  if y - y' is in X
 *   (1, m, c) - (1, m, c')  if c - c' is in X'
 *   (0, x, y) - (1, m, c)   if y = m x + c
 *
 * Numbers. router = (s * q + x) * q + y. Fields of prime powers would do as well and are not built.
 *
 * Ways. A minimal way has one or two hops, a non-minimal one by a random router up to four. All ranks are equal, so
 * each hop enters the next of four phases, one channel each.
 *
 * Source: M. Besta, T. Hoefler, "Slim Fly: A Cost Effective Low-Diameter Network Topology", SC 2014, II.B; B. McKay, M.
 * Miller, J. Siran, "A note on large graphs of diameter two and given maximum degree", J. Comb. Theory B 74, 1998; P.
 * Hafner, "Geometric realisation of the graphs of McKay-Miller-Siran", J. Comb. Theory B 90, 2004.
 */
#include <errno.h>

#include "emunic/fabric/graph.h"

enum { Q_MAX = 61, NODES_MAX = 256 };

static void coordinates(const struct emu_graph *g, uint32_t leaf, uint32_t xyz_out[3])
{
    uint32_t q = g->shape[0];

    xyz_out[0] = leaf / (q * q);
    xyz_out[1] = leaf / q % q;
    xyz_out[2] = leaf % q;
}

static const struct emu_graph_kind slim_fly_kind = {
    .n_phases = 4,
    .first_vc = { 0, 1, 2, 3, EMU_GRAPH_CLASS_VCS },
    .has_roots = true,
    .coordinates = coordinates,
};

static bool is_odd_prime(uint32_t q)
{
    for (uint32_t d = 2; d * d <= q; d++) {
        if (q % d == 0)
            return false;
    }
    return q > 2;
}

/* Smallest element whose powers are all of the field but 0. */
static uint32_t primitive_element(uint32_t q)
{
    for (uint32_t e = 2; e < q; e++) {
        uint32_t value = e;
        uint32_t order = 1;

        while (value != 1) {
            value = value * e % q;
            order++;
        }
        if (order == q - 1)
            return e;
    }
    return 2; /* q = 3: its only one */
}

/* Membership of X (first_power 0) or X' (1). */
static void fill_set(uint32_t q, uint32_t first_power, bool set[Q_MAX])
{
    uint32_t e = primitive_element(q);
    uint32_t w = (q + 1) / 4;
    uint32_t value = 1;

    for (uint32_t power = 0; power < q - 1 + first_power; power++, value = value * e % q) {
        uint32_t i = power - first_power; /* of X: X' is e times it */
        bool is_even = i % 2 == 0;

        if (power < first_power)
            continue;
        /* delta 1: the even powers; -1: the even ones below 2w, the odd ones from 2w - 1 to 4w - 3 */
        if (q % 4 == 1 ? is_even : (is_even ? i + 2 <= 2 * w : i + 1 >= 2 * w && i <= 4 * w - 3))
            set[value] = true;
    }
}

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_graph_params *p = &params->graph;

    *key_out = "topology.q";
    if (!is_odd_prime(p->q)) {
        (void)emu_text(text, text_len, "%u is not an odd prime; fields of prime powers are not built", p->q);
        return -EINVAL;
    }
    return emu_graph_check_size(2u * p->q * p->q, 2u * p->q * p->q, p->nodes, text, text_len);
}

static void join(struct emu_graph *g, uint32_t from, uint32_t to)
{
    emu_graph_join(g, (struct emu_graph_cable){ .ends = { from, to }, .link_class = EMU_LINK_EDGE });
}

static int build_slim_fly(struct emu_machine *m)
{
    const struct emu_graph_params *p = &m->params.graph;
    uint32_t q = p->q;
    uint32_t degree = q % 4 == 1 ? (3 * q - 1) / 2 : (3 * q + 1) / 2;
    const struct emu_graph like = {
        .kind = &slim_fly_kind,
        .n_routers = 2 * q * q,
        .n_leaves = 2 * q * q,
        .nodes = p->nodes,
        .leaves_per_group = q,
        .n_cables = q * q * degree,
        .shape = { q },
    };
    struct emu_graph *g;
    int r = emu_graph_create(m, &like, &g);

    if (r < 0)
        return r;
    for (uint32_t s = 0; s < 2; s++) {
        bool set[Q_MAX] = { false };

        fill_set(q, s, set);
        for (uint32_t from = s * q * q; from < (s + 1) * q * q; from++) {
            for (uint32_t i = 1; from % q + i < q; i++) {
                if (set[i])
                    join(g, from, from + i);
            }
        }
    }
    for (uint32_t x = 0; x < q; x++) {
        for (uint32_t slope = 0; slope < q; slope++) {
            for (uint32_t c = 0; c < q; c++)
                join(g, x * q + (slope * x + c) % q, (q + slope) * q + c);
        }
    }
    return emu_graph_finish(m);
}

static const struct emu_param slim_fly_params[] = {
    { EMU_GRAPH_KEY("q", q), 3, Q_MAX },
    { EMU_GRAPH_KEY("nodes_per_router", nodes), 1, NODES_MAX },
    EMU_GRAPH_THRESHOLD,
    EMU_LINK_KEYS("edge", EMU_LINK_EDGE, 64),
};

const struct emu_topology emu_topology_slim_fly = {
    EMU_GRAPH_SLOTS,           .kind = "slim-fly",
    .params = slim_fly_params, .n_params = sizeof(slim_fly_params) / sizeof(slim_fly_params[0]),
    .check = check_params,     .build = build_slim_fly,
};
