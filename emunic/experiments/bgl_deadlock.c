/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BGL-8: the published bubble rule deadlocks with packets of all sizes.
 *
 * A packet may go straight on if the next bubble channel has room for a full packet, and enter a ring if it has room
 * for two: so there is always a hole of a full packet somewhere in the ring, as long as packets are charged as full
 * ones. By true size (router.bubble_charge true) the hole breaks up: a channel with exactly a full packet free takes a
 * packet of one chunk, and there is a hole of seven chunks here and of one chunk where it came from. Nothing can use
 * either.
 *
 * That takes rings which are full to the last chunk, so heads that wait for a turn must have kept them full before. The
 * cases here do so: deterministic packets go up in x, then up in y (hint bits by software), to any node or to the nodes
 * of one row, so that the rings along x wait for those along y. Besides them there are plain rings and cubes with
 * random destinations. Traffic comes in batches: each node sends so many packets as fast as it can, then the network
 * must run empty. A batch that does not is a deadlock, without any doubt about packets that merely wait long. The
 * constructed case is the first of a list of fixed batches that deadlocks, whatever the seed of the experiment; it must
 * stop at the same time when run again, and run empty by the fixed rule.
 * Source: spec/machines.md 5.2, 5.5 (BGL).
 */
#include "emunic/experiments/bgl_experiments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "emunic/experiments/bgl_run.h"
#include "emunic/fabric/bgl_routing.h"
#include "emunic/fabric/topology.h"
#include "emunic/fabric/torus.h"

#define CHUNK             32
#define CONSTRUCTED_SEEDS 200

struct deadlock_case {
    const char *name;
    const char *size;
    enum emu_route_mode mode;
    bool is_upward; /* by hint bits, random hops up in x; random row, or row 0 */
    bool is_to_row;
    bool is_extreme;  /* one chunk or eight, else anything between */
    uint32_t packets; /* of a node in one batch */
};

struct batch {
    const struct deadlock_case *c;
    const struct emu_machine *m;
    struct batch_node {
        struct emu_random random;
        uint32_t sent;
    } * nodes; /* owned; by nid */
};

static void choose_destination(const struct batch *b, struct batch_node *n, struct emu_packet *p)
{
    const struct emu_torus *t = emu_torus_of(b->m);
    const uint8_t *at = emu_torus_coord(t, p->src_nid);
    uint32_t x, y;

    if (!b->c->is_upward) {
        p->dst_nid = (uint32_t)emu_random_below(&n->random, b->m->n_nodes - 1);
        p->dst_nid += p->dst_nid >= p->src_nid;
        return;
    }
    x = (at[0] + 1 + (uint32_t)emu_random_below(&n->random, t->size[0] - 1)) % t->size[0];
    y = b->c->is_to_row ? 0 : (uint32_t)emu_random_below(&n->random, t->size[1]);
    p->dst_nid = emu_torus_router(t, x, y, at[2]);
    (void)emu_bgl_give_hints(b->m, p, y == at[1] ? EMU_BGL_X_PLUS : EMU_BGL_X_PLUS | EMU_BGL_Y_PLUS);
}

static bool next_of_batch(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                          uint64_t now_ps, struct emu_packet *p)
{
    struct batch *b = ctx;
    struct batch_node *n = &b->nodes[nid];

    (void)sim;
    if (traffic_class != EMU_TRAFFIC_REQUEST || n->sent == b->c->packets)
        return false;
    *p = (struct emu_packet){ .src_nid = nid, .mode = (uint8_t)b->c->mode, .created_ps = now_ps };
    choose_destination(b, n, p);
    if (b->c->is_extreme)
        p->units = emu_random_below(&n->random, 2) == 0 ? CHUNK : 8 * CHUNK;
    else
        p->units = (uint16_t)(CHUNK * (1 + emu_random_below(&n->random, 8)));
    n->sent++;
    return true;
}

static void ignore_delivery(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p, uint64_t now_ps)
{
    (void)ctx;
    (void)sim;
    (void)nid;
    (void)p;
    (void)now_ps;
}

struct batch_outcome {
    bool is_deadlock;
    bool is_empty;
    uint64_t delivered;
    uint64_t end_ps;
};

static int run_batch(const struct emu_machine *m, const struct deadlock_case *c, uint64_t seed,
                     struct batch_outcome *out)
{
    struct batch b = { .c = c, .m = m, .nodes = calloc(m->n_nodes, sizeof(*b.nodes)) };
    const struct emu_traffic traffic = { .ctx = &b, .next = next_of_batch, .delivered = ignore_delivery };
    const struct emu_sim_options options = { .seed = seed };
    struct emu_sim_totals totals;
    struct emu_sim *sim = NULL;
    enum emu_sim_stop stop;
    int r = !b.nodes ? -ENOMEM : 0;

    for (uint32_t nid = 0; r == 0 && nid < m->n_nodes; nid++)
        b.nodes[nid].random.state = emu_random_mix(seed) ^ emu_random_mix(nid + 8);
    if (r == 0)
        r = emu_sim_create(m, NULL, &traffic, &options, &sim);
    if (r == 0) {
        stop = emu_sim_run(sim, UINT64_C(1) << 60);
        emu_sim_totals(sim, &totals);
        *out = (struct batch_outcome){
            .is_deadlock = stop == EMU_SIM_DEADLOCK,
            .is_empty = stop == EMU_SIM_EMPTY && totals.delivered == (uint64_t)m->n_nodes * c->packets,
            .delivered = totals.delivered,
            .end_ps = emu_sim_now(sim),
        };
    }
    emu_sim_destroy(sim);
    free(b.nodes);
    return r;
}

static int load_case(struct emu_exp *x, const struct deadlock_case *c, const char *charge, struct emu_machine **m_out)
{
    char spec[120];

    snprintf(spec, sizeof(spec), "bluegene-l:%s,bubble_charge=%s", c->size, charge);
    return emu_exp_machine(x, spec, m_out);
}

/* ---- random batches ---- */

struct tally {
    uint64_t batches;
    uint64_t deadlocks;
    uint64_t unfinished; /* neither deadlocked nor empty */
    uint64_t packets;
};

/* Batches until so many packets are through. */
/* A share of the experiment: how many packets, and its part of the progress. */
struct portion {
    double packets;
    double from, to;
};

static int run_batches(struct emu_exp *x, const struct deadlock_case *c, const char *charge,
                       const struct portion *portion, struct tally *t)
{
    uint64_t seed = emu_random_mix(emu_exp_context(x)->seed);
    struct emu_machine *m = NULL;
    int r = load_case(x, c, charge, &m);

    *t = (struct tally){ 0 };
    while (r == 0 && (double)t->packets < portion->packets) {
        struct batch_outcome o = { 0 };

        r = run_batch(m, c, seed + t->batches, &o);
        t->batches++;
        t->deadlocks += o.is_deadlock;
        t->unfinished += !o.is_deadlock && !o.is_empty;
        t->packets += o.delivered;
        emu_exp_progress(x, portion->from +
                                (portion->to - portion->from) * fmin(1, (double)t->packets / portion->packets));
    }
    emu_machine_destroy(m);
    if (r == 0)
        emu_exp_detail(x, "%s, charged %s size: %llu of %llu batches of %u packets per node deadlocked, %llu packets",
                       c->name, charge, (unsigned long long)t->deadlocks, (unsigned long long)t->batches, c->packets,
                       (unsigned long long)t->packets);
    return r;
}

/* ---- the constructed case ---- */

static int run_constructed(struct emu_exp *x)
{
    static const struct deadlock_case c = {
        "constructed", "x=4,y=8,z=1", EMU_MODE_DETERMINISTIC, true, false, true, 60
    };
    struct batch_outcome first = { 0 };
    struct batch_outcome again = { 0 };
    struct batch_outcome fixed = { 0 };
    struct emu_machine *published = NULL;
    struct emu_machine *repaired = NULL;
    uint64_t seed = 0;
    int r = load_case(x, &c, "true", &published);

    if (r == 0)
        r = load_case(x, &c, "full", &repaired);
    while (r == 0 && !first.is_deadlock && seed < CONSTRUCTED_SEEDS)
        r = run_batch(published, &c, ++seed, &first);
    if (r == 0)
        r = run_batch(published, &c, seed, &again);
    if (r == 0)
        r = run_batch(repaired, &c, seed, &fixed);
    emu_machine_destroy(published);
    emu_machine_destroy(repaired);
    if (r < 0)
        return r;
    emu_exp_detail(x,
                   "constructed: batch %llu on a plane of 4 x 8, 60 packets of one or eight chunks per node, "
                   "deadlocks after %llu packets",
                   (unsigned long long)seed, (unsigned long long)first.delivered);
    emu_exp_holds(x, 'S', "published_rule_constructed_deadlock", first.is_deadlock);
    emu_exp_holds(x, 'S', "constructed_deadlock_repeats",
                  again.is_deadlock && again.end_ps == first.end_ps && again.delivered == first.delivered);
    emu_exp_holds(x, 'S', "fixed_rule_constructed_runs_empty", fixed.is_empty);
    return 0;
}

int bgl_run_deadlock(struct emu_exp *x)
{
    static const struct deadlock_case cases[] = {
        { "plane of 4 x 8, upward", "x=4,y=8,z=1", EMU_MODE_DETERMINISTIC, true, false, true, 100 },
        { "plane of 4 x 8, upward, all sizes", "x=4,y=8,z=1", EMU_MODE_DETERMINISTIC, true, false, false, 100 },
        { "4 x 4 x 4, upward to a row", "x=4,y=4,z=4", EMU_MODE_DETERMINISTIC, true, true, true, 100 },
        { "plane of 8 x 8, upward to a row, 512 B", "x=8,y=8,z=1,vc_units=512", EMU_MODE_DETERMINISTIC, true, true,
          true, 100 },
        { "ring of 4", "x=4,y=1,z=1", EMU_MODE_DETERMINISTIC, false, false, false, 2000 },
        { "ring of 8", "x=8,y=1,z=1", EMU_MODE_DETERMINISTIC, false, false, false, 2000 },
        { "4 x 4 x 4", "x=4,y=4,z=4", EMU_MODE_DETERMINISTIC, false, false, false, 1000 },
        { "4 x 4 x 4, dynamic", "x=4,y=4,z=4", EMU_MODE_ADAPTIVE_0, false, false, false, 1000 },
    };
    const uint32_t n = sizeof(cases) / sizeof(cases[0]);
    bool is_full = emu_exp_context(x)->is_full;
    double packets = is_full ? 1e8 : 5e5;
    struct tally fixed_sum = { 0 };
    uint64_t published_deadlocks = 0;
    int r = run_constructed(x);

    for (uint32_t i = 0; r == 0 && i < n; i++) {
        struct tally published = { 0 };
        struct tally fixed = { 0 };
        /* By the published rule, fewer: the point is made once there are some. */
        const struct portion first = { fmin(packets, 4e6) / n, (double)i / n, (i + 0.3) / n };
        const struct portion second = { packets / n, (i + 0.3) / n, (i + 1.0) / n };

        r = run_batches(x, &cases[i], "true", &first, &published);
        if (r == 0)
            r = run_batches(x, &cases[i], "full", &second, &fixed);
        if (r < 0)
            break;
        published_deadlocks += published.deadlocks;
        fixed_sum.deadlocks += fixed.deadlocks;
        fixed_sum.unfinished += fixed.unfinished;
        fixed_sum.packets += fixed.packets;
    }
    if (r < 0)
        return r;
    emu_exp_at_least(x, 'S', "published_rule_random_deadlocks", "batches", 1, (double)published_deadlocks);
    emu_exp_exact(x, 'S', "fixed_rule_deadlocks", "batches", 0, (double)fixed_sum.deadlocks);
    emu_exp_exact(x, 'S', "fixed_rule_unfinished", "batches", 0, (double)fixed_sum.unfinished);
    emu_exp_at_least(x, 'S', "fixed_rule_packets", "packets", packets, (double)fixed_sum.packets);
    return 0;
}
