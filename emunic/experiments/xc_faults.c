/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XC: what breaks while traffic runs, simulated (XC-31), and the synchronised clock (XC-46).
 *
 * Quiesce is US8854951's: no new requests; what is under way arrives, with its answers; new tables; requests again.
 * Here the fault map is what the tables know.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "emunic/experiments/xc.h"
#include "emunic/experiments/xc_traffic.h"
#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/route.h"

enum { NODES_PER_ROUTER = 4, STEP_PS = 1000000, DEAD_ROUTER = 21 };

static const char two_groups[] = "aries:groups=2,chassis=2,blades=8,cables_per_bundle=4";

/* Traffic, simulation and what was seen of them. */
struct stage {
    struct emu_machine *m;
    struct emu_fault_map *faults;
    struct emu_generator *gen;
    struct emu_sim *sim;
    struct emu_xc_watch watch;
    struct emu_traffic traffic;
    uint64_t *last_created_ps;
    bool *senders;
};

/* A fixed partner in another place: the order of one pair's packets can be watched at the receiver. */
static uint32_t pick_partner(void *ctx, struct emu_random *random, uint32_t src_nid)
{
    uint32_t n_nodes = *(const uint32_t *)ctx;

    (void)random;
    return (src_nid + n_nodes / 2 + 5 * NODES_PER_ROUTER) % n_nodes;
}

static int set_stage(struct emu_exp *x, struct stage *s, enum emu_route_mode mode, uint64_t stop_ps, uint32_t *n_nodes,
                     bool spare_dead_router)
{
    struct emu_generator_options options = {
        .pattern = n_nodes ? EMU_PATTERN_CUSTOM : EMU_PATTERN_UNIFORM,
        .seed = emu_exp_context(x)->seed,
        .gap_ps = 100000, /* 0.64 GB/s per node */
        .stop_ps = stop_ps,
        .units = 14,
        .response_units = 1,
        .mode = (uint8_t)mode,
        .pick = pick_partner,
        .pick_ctx = n_nodes,
    };
    const struct emu_sim_options sim_options = { .seed = emu_exp_context(x)->seed,
                                                 .n_threads = emu_exp_context(x)->n_threads };
    char err[200];
    uint32_t n;
    int r = emu_exp_machine(x, two_groups, &s->m);

    if (r < 0)
        return r;
    n = emu_machine_n_nodes(s->m);
    s->last_created_ps = calloc(n, sizeof(*s->last_created_ps));
    s->senders = calloc(n, sizeof(*s->senders));
    if (!s->last_created_ps || !s->senders)
        return -ENOMEM;
    if (n_nodes)
        *n_nodes = n;
    for (uint32_t nid = 0; nid < n; nid++) {
        uint32_t partner = n_nodes ? pick_partner(n_nodes, NULL, nid) : nid;

        s->senders[nid] =
            !spare_dead_router || (nid / NODES_PER_ROUTER != DEAD_ROUTER && partner / NODES_PER_ROUTER != DEAD_ROUTER);
    }
    options.senders = s->senders;
    r = emu_fault_map_create(s->m, &s->faults);
    if (r == 0)
        r = emu_generator_create(s->m, &options, &s->gen, err, sizeof(err));
    if (r < 0)
        return r;
    s->watch = (struct emu_xc_watch){ .inner = emu_generator_traffic(s->gen) };
    if (n_nodes)
        s->watch.last_created_ps = s->last_created_ps;
    s->traffic = emu_xc_watched(&s->watch);
    return emu_sim_create(s->m, NULL, &s->traffic, &sim_options, &s->sim);
}

static void clear_stage(struct stage *s)
{
    emu_sim_destroy(s->sim);
    emu_generator_destroy(s->gen);
    emu_fault_map_destroy(s->faults);
    free(s->last_created_ps);
    free(s->senders);
    emu_machine_destroy(s->m);
}

static void break_cable(struct stage *s, uint32_t link)
{
    uint32_t reverse;

    (void)emu_link_reverse(s->m, link, &reverse);
    (void)emu_fault_map_set_link(s->faults, link, false);
    (void)emu_fault_map_set_link(s->faults, reverse, false);
}

/* The first link of a class. */
static uint32_t first_of(const struct emu_machine *m, enum emu_link_class link_class)
{
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l;

        if (emu_link_get(m, id, &l) == 0 && l.link_class == link_class)
            return id;
    }
    return 0;
}

/* Runs in steps; delivered packets per step, from the present to until_ps. Mean of the steps but the first `skip`. */
static double run_steps(struct stage *s, uint64_t until_ps, uint32_t skip, FILE *data)
{
    uint64_t before = s->watch.delivered;
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t step = 0; emu_sim_now(s->sim) < until_ps; step++) {
        uint64_t now;

        (void)emu_sim_run(s->sim, emu_sim_now(s->sim) + STEP_PS);
        now = s->watch.delivered;
        if (data)
            fprintf(data, "delivered\t%g\t%llu\n", (double)emu_sim_now(s->sim) / 1e6,
                    (unsigned long long)(now - before));
        if (step >= skip) {
            sum += (double)(now - before);
            n++;
        }
        before = now;
    }
    return n > 0 ? sum / n : 0;
}

/* A green, a black and a blue cable break under adaptive traffic: it goes around at once. */
static int break_links(struct emu_exp *x)
{
    const uint64_t break_ps = 20 * (uint64_t)STEP_PS;
    const uint64_t stop_ps = 60 * (uint64_t)STEP_PS;
    struct emu_sim_link_stats stats;
    struct stage s = { 0 };
    double before, after;
    uint32_t green;
    FILE *data;
    int r = set_stage(x, &s, EMU_MODE_ADAPTIVE_0, stop_ps, NULL, false);

    if (r < 0)
        goto out;
    data = emu_exp_data(x, "links", "Three cables break at 20 us", "us", "packets delivered in 1 us");
    green = first_of(s.m, EMU_LINK_GREEN);
    before = run_steps(&s, break_ps, 5, data);
    break_cable(&s, green);
    break_cable(&s, first_of(s.m, EMU_LINK_BLACK));
    break_cable(&s, first_of(s.m, EMU_LINK_BLUE));
    emu_sim_set_faults(s.sim, s.faults);
    emu_sim_reset_stats(s.sim);
    after = run_steps(&s, stop_ps, 2, data);
    if (emu_sim_run(s.sim, UINT64_MAX / 2) != EMU_SIM_EMPTY)
        r = -EIO;
    emu_sim_link_stats(s.sim, green, &stats);
    if (data)
        fclose(data);
    emu_exp_exact(x, 'S', "packets_on_the_broken_link_since", "packets", 0, (double)stats.packets);
    emu_exp_figure(x, 'S', "throughput_after_over_before", "1", emu_exp_within(1, 0.03), after / before);
    emu_exp_at_most(x, 'S', "last_loss_after_the_break", "us", 1,
                    s.watch.lost == 0 ? 0 : ((double)s.watch.last_lost_ps - (double)break_ps) / 1e6);
    emu_exp_exact(x, 'S', "made_less_delivered_and_lost", "packets", 0,
                  (double)s.watch.made - (double)s.watch.delivered - (double)s.watch.lost);
    emu_exp_detail(x, "links: %llu packets made, %llu of them lost with what was on the broken links",
                   (unsigned long long)s.watch.made, (unsigned long long)s.watch.lost);
out:
    clear_stage(&s);
    return r;
}

/* A blade is taken out behind a quiesce: in-order traffic of the others loses nothing and keeps its order. */
static int quiesce(struct emu_exp *x)
{
    const uint64_t pause_ps = 20 * (uint64_t)STEP_PS;
    const uint64_t resume_ps = 40 * (uint64_t)STEP_PS;
    const uint64_t stop_ps = 60 * (uint64_t)STEP_PS;
    struct emu_sim_totals totals;
    struct stage s = { 0 };
    uint32_t n_nodes;
    int r = set_stage(x, &s, EMU_MODE_IN_ORDER, stop_ps, &n_nodes, true);

    if (r < 0)
        goto out;
    s.watch.pause_from_ps = pause_ps;
    s.watch.pause_to_ps = resume_ps;
    (void)emu_sim_run(s.sim, resume_ps - STEP_PS);
    emu_sim_totals(s.sim, &totals);
    emu_exp_exact(x, 'S', "packets_under_way_when_tables_change", "packets", 0, (double)totals.in_network);
    (void)emu_fault_map_set_router(s.faults, DEAD_ROUTER, false);
    emu_sim_set_faults(s.sim, s.faults);
    if (emu_sim_run(s.sim, UINT64_MAX / 2) != EMU_SIM_EMPTY)
        r = -EIO;
    emu_exp_exact(x, 'S', "quiesce_lost", "packets", 0, (double)s.watch.lost);
    emu_exp_exact(x, 'S', "quiesce_out_of_order", "packets", 0, (double)s.watch.inversions);
    emu_exp_exact(x, 'S', "quiesce_made_less_delivered", "packets", 0,
                  (double)s.watch.made - (double)s.watch.delivered);
out:
    clear_stage(&s);
    return r;
}

/* A blade goes without warning: each packet of the others that is lost ends in one report at its sender. */
static int lose_blade(struct emu_exp *x)
{
    const uint64_t break_ps = 20 * (uint64_t)STEP_PS;
    struct stage s = { 0 };
    int r = set_stage(x, &s, EMU_MODE_ADAPTIVE_0, 40 * (uint64_t)STEP_PS, NULL, false);

    if (r < 0)
        goto out;
    s.watch.has_dead_router = true;
    s.watch.dead_router = DEAD_ROUTER;
    (void)emu_sim_run(s.sim, break_ps);
    (void)emu_fault_map_set_router(s.faults, DEAD_ROUTER, false);
    emu_sim_set_faults(s.sim, s.faults);
    if (emu_sim_run(s.sim, UINT64_MAX / 2) != EMU_SIM_EMPTY)
        r = -EIO;
    emu_exp_above(x, 'S', "blade_loss_reports", "packets", 0, (double)s.watch.lost);
    emu_exp_exact(x, 'S', "blade_loss_made_less_delivered_and_reported", "packets", 0,
                  (double)s.watch.made - (double)s.watch.delivered - (double)s.watch.lost);
out:
    clear_stage(&s);
    return r;
}

int emu_xc_failures(struct emu_exp *x)
{
    int r = break_links(x);

    emu_exp_progress(x, 0.4);
    if (r == 0)
        r = quiesce(x);
    emu_exp_progress(x, 0.7);
    if (r == 0)
        r = lose_blade(x);
    return r;
}

/* ---- XC-46: clock pulses ---- */

enum { PULSE_SIZES = 2, PULSE_GAP_PS = 5000000 };
static const uint32_t pulse_bytes[PULSE_SIZES] = { 1, 64 };

/* Pulses of both sizes to a node of each router, one after another: they never meet. */
static struct emu_message *list_pulses(const struct emu_machine *m, uint32_t *depth_out)
{
    uint32_t n = emu_machine_n_routers(m) * PULSE_SIZES;
    struct emu_message *list = calloc(n, sizeof(*list));

    *depth_out = 0;
    for (uint32_t i = 0; list && i < n; i++) {
        struct emu_route route;

        list[i] = (struct emu_message){ .start_ps = (uint64_t)i * PULSE_GAP_PS,
                                        .src_nid = 0,
                                        .dst_nid = i < PULSE_SIZES ? 1 : i / PULSE_SIZES * NODES_PER_ROUTER,
                                        .bytes = pulse_bytes[i % PULSE_SIZES] };
        if (emu_route_minimal(m, 0, list[i].dst_nid, 0, &route) == 0 && route.n_hops > *depth_out)
            *depth_out = route.n_hops;
    }
    return list;
}

/* When a router hears a pulse that has no length: two packets of different lengths, carried on to none. */
static double pulse_ps(const struct emu_machine *m, const struct emu_generator *gen, const struct emu_message *list,
                       size_t router)
{
    const struct emu_packet_format *format = &emu_machine_nic(m)->format;
    double units[PULSE_SIZES], took[PULSE_SIZES];

    for (size_t i = 0; i < PULSE_SIZES; i++) {
        size_t at = router * PULSE_SIZES + i;

        units[i] = format->request_header_flits + (double)emu_data_flits(format, list[at].bytes);
        took[i] = (double)(emu_generator_message_done_ps(gen, at) - list[at].start_ps);
    }
    return took[0] - units[0] * (took[1] - took[0]) / (units[1] - units[0]);
}

/*
 * Pulses are packets from router 0 along minimal routes. The skew is what the last router hears later than the first,
 * without correction for the known delays.
 */
static int pulse_skew(struct emu_exp *x, const char *spec, const char *name)
{
    struct emu_generator_options options = { .pattern = EMU_PATTERN_MESSAGES, .mode = EMU_MODE_MINIMAL };
    const struct emu_sim_options sim_options = { .seed = emu_exp_context(x)->seed };
    double earliest = INFINITY, latest = 0;
    struct emu_generator *gen = NULL;
    struct emu_message *list = NULL;
    struct emu_sim *sim = NULL;
    struct emu_machine *m;
    uint32_t depth;
    char text[200];
    int r = emu_exp_machine(x, spec, &m);

    if (r < 0)
        return r;
    list = list_pulses(m, &depth);
    options.messages.list = list;
    options.messages.n = (size_t)emu_machine_n_routers(m) * PULSE_SIZES;
    options.seed = emu_exp_context(x)->seed;
    r = list ? emu_generator_create(m, &options, &gen, text, sizeof(text)) : -ENOMEM;
    if (r == 0)
        r = emu_sim_create(m, NULL, emu_generator_traffic(gen), &sim_options, &sim);
    if (r == 0 && emu_sim_run(sim, UINT64_MAX / 2) != EMU_SIM_EMPTY)
        r = -EIO;
    for (size_t i = 0; r == 0 && i < emu_machine_n_routers(m); i++) {
        double heard_ps = pulse_ps(m, gen, list, i);

        earliest = fmin(earliest, heard_ps);
        latest = fmax(latest, heard_ps);
    }
    if (r == 0) {
        snprintf(text, sizeof(text), "skew_%s", name);
        emu_exp_at_most(x, 'S', text, "ns", (double)emu_machine_router(m)->hop_ps / 1000 * depth,
                        (latest - earliest) / 1000);
        emu_exp_detail(x, "%s: tree of depth %u", name, depth);
    }
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
    free(list);
    return r;
}

/* Reduced: nine groups, whose tree is as deep but for the smaller groups. */
int emu_xc_clock(struct emu_exp *x)
{
    int r = pulse_skew(x, "aries:groups=1", "one_group");

    if (r < 0)
        return r;
    return emu_exp_context(x)->is_full ? pulse_skew(x, "aries:groups=241", "241_groups") :
                                         pulse_skew(x, "aries:groups=9", "9_groups");
}
