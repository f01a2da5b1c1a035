/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The audit's walks. Nothing forces dependencies() to tell the truth, so packets are sent through start() and options()
 * without time: loads are noise, the way on is drawn among all that are offered, and each offer is looked up in the
 * graph.
 */
#include "emunic/fabric/sim/audit_inner.h"

#include <errno.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/random.h"

#define HOPS_DEFAULT 1024

/* Loads are noise that stays the same within one step of one walk. */
static uint32_t noise(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class)
{
    const uint64_t *salt = view->ctx;

    (void)traffic_class; /* the same for all of a walk */
    return (uint32_t)(emu_random_mix(*salt + link) % 1000);
}

/* One packet on its way. */
struct walk {
    struct emu_audit *audit;
    const struct emu_audit_walk_options *options;
    struct emu_audit_walks *counts;
    struct emu_route_view view;
    struct emu_random random;
    uint64_t salt;
    struct emu_packet packet;
    struct emu_route_at at;
};

static bool is_declared(const struct emu_audit *a, uint32_t channel, uint32_t target)
{
    struct emu_audit_cursor cur = emu_audit_cursor_at(a, channel);
    uint32_t t;

    while ((t = emu_audit_next_target(a, channel, &cur)) != EMU_AUDIT_NONE) {
        if (t == target)
            return true;
    }
    return false;
}

static bool is_ring_channel(const struct emu_audit *a, uint32_t channel)
{
    return a->part_of && a->part_of[channel] != 0 && a->part_is_ring[a->part_of[channel]];
}

/* Into a ring from outside of it, or from another one. */
static bool enters_ring(const struct emu_audit *a, uint32_t channel, uint32_t target)
{
    return is_ring_channel(a, target) && a->part_of[channel] != a->part_of[target];
}

static void check_offers(struct walk *w, const struct emu_route_option *offers, uint32_t n)
{
    const struct emu_audit *a = w->audit;
    uint32_t here = emu_audit_channel_at(a, w->at.in_link, w->at.in_vc);
    bool has_escape = false;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t target = emu_audit_channel_at(a, offers[i].link, offers[i].vc);

        if (here == EMU_AUDIT_NONE || target == EMU_AUDIT_NONE || !is_declared(a, here, target)) {
            w->counts->n_undeclared++;
            continue;
        }
        has_escape = has_escape || (a->flags[target] & (EMU_AUDIT_IS_ESCAPE | EMU_AUDIT_IS_TO_NIC)) != 0;
        if (enters_ring(a, here, target) && !offers[i].is_entry)
            w->counts->n_unguarded++;
        if (a->to_router[offers[i].link] != EMU_AUDIT_NONE)
            w->counts->vcs_used |= 1u << offers[i].vc;
    }
    w->counts->n_no_escape += !has_escape;
}

/* Each channel of an option as one of its own. */
static uint32_t spread(const struct emu_route_option *options, uint32_t n, struct emu_route_option *out)
{
    uint32_t n_out = 0;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t vcs = emu_route_vcs(&options[i]); vcs != 0; vcs &= vcs - 1) {
            out[n_out] = options[i];
            out[n_out].more_vcs = 0;
            out[n_out++].vc = (uint8_t)__builtin_ctz(vcs);
        }
    }
    return n_out;
}

static void step(struct walk *w, const struct emu_route_option *o)
{
    w->packet.route_state = o->route_state;
    w->packet.flags |= o->flags;
    w->at = (struct emu_route_at){ .router = w->audit->to_router[o->link], .in_link = o->link, .in_vc = o->vc };
    if (w->at.router != EMU_AUDIT_NONE && w->packet.hops < UINT8_MAX)
        w->packet.hops++;
}

/* The channel of the NIC's link that this class of traffic enters by. */
static uint8_t entry_vc(const struct emu_audit *a, uint8_t traffic_class)
{
    for (uint8_t vc = 0; vc < a->n_vcs[EMU_LINK_PROCESSOR_IN]; vc++) {
        const struct emu_vc_info *info = &a->vcs[EMU_LINK_PROCESSOR_IN][vc];

        if (info->traffic_class == traffic_class || info->traffic_class == EMU_VC_ANY)
            return vc;
    }
    return 0;
}

static bool begin(struct walk *w, uint32_t src_nid, uint32_t dst_nid)
{
    const struct emu_audit *a = w->audit;
    uint32_t link = a->nic_link[src_nid];

    w->salt = emu_random_next(&w->random);
    w->packet = (struct emu_packet){
        .src_nid = src_nid,
        .dst_nid = dst_nid,
        .units = (uint16_t)(w->options->packet_units_max > 0 ? w->options->packet_units_max : 1),
        .traffic_class = (uint8_t)w->options->traffic_class,
        .mode = (uint8_t)w->options->mode,
        .order_key = emu_random_next(&w->random),
    };
    w->at = (struct emu_route_at){
        .router = a->to_router[link],
        .in_link = link,
        .in_vc = entry_vc(a, w->packet.traffic_class),
        .is_entering = true,
    };
    return !a->routing->start || a->routing->start(&w->view, &w->packet, w->at.router);
}

/* False: the pair has no route. */
static bool walk_once(struct walk *w, uint32_t src_nid, uint32_t dst_nid)
{
    uint32_t max_hops = w->options->max_hops > 0 ? w->options->max_hops : HOPS_DEFAULT;

    w->counts->n_walks++;
    if (!begin(w, src_nid, dst_nid)) {
        w->counts->n_unroutable++;
        return false;
    }
    for (uint32_t hops = 0; hops <= max_hops; hops++) {
        struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
        struct emu_route_option offers[EMU_ROUTE_OPTIONS_MAX * EMU_VCS_MAX];
        const struct emu_route_option *o;
        struct emu_link l;
        uint32_t n;

        w->salt = emu_random_next(&w->random);
        n = w->audit->routing->options(&w->view, &w->packet, &w->at, options);
        if (n == 0 || n > EMU_ROUTE_OPTIONS_MAX) {
            w->counts->n_dead_ends++;
            return true;
        }
        n = spread(options, n, offers);
        check_offers(w, offers, n);
        o = &offers[emu_random_below(&w->random, n)];
        if (emu_link_get(w->audit->machine, o->link, &l) < 0)
            break;
        step(w, o);
        if (l.to.kind == EMU_END_ROUTER)
            continue;
        if (l.to.index != dst_nid)
            break;
        w->counts->n_arrived++;
        w->counts->sum_hops += hops;
        if (hops > w->counts->longest_hops)
            w->counts->longest_hops = hops;
        return true;
    }
    w->counts->n_lost++;
    return true;
}

static uint64_t trouble(const struct emu_audit_walks *counts)
{
    return counts->n_dead_ends + counts->n_lost + counts->n_undeclared + counts->n_no_escape + counts->n_unguarded;
}

static void walk_pair(struct walk *w, uint32_t src_nid, uint32_t dst_nid,
                      void (*unroutable)(void *ctx, uint32_t src_nid, uint32_t dst_nid), void *ctx)
{
    uint32_t n = w->options->walks_per_pair > 0 ? w->options->walks_per_pair : 1;
    bool was_clean = trouble(w->counts) == 0;
    bool is_told = false;

    for (uint32_t i = 0; i < n; i++) {
        if (!walk_once(w, src_nid, dst_nid) && !is_told && unroutable) {
            unroutable(ctx, src_nid, dst_nid);
            is_told = true;
        }
    }
    if (was_clean && trouble(w->counts) > 0) {
        w->counts->bad_src_nid = src_nid;
        w->counts->bad_dst_nid = dst_nid;
    }
}

static void check_rings(const struct emu_audit *a, uint32_t units_max, struct emu_audit_walks *counts)
{
    for (uint32_t link = 0; a->part_of && units_max > 0 && link < a->n_links; link++) {
        for (uint32_t c = a->first_channel[link]; c < a->first_channel[link + 1]; c++) {
            const struct emu_vc_info *info = &a->vcs[a->class_of[link]][c - a->first_channel[link]];

            counts->n_ring_too_small += is_ring_channel(a, c) && info->capacity_units < 2 * units_max;
        }
    }
}

static bool can_talk(const struct emu_audit *a, uint32_t nid)
{
    return emu_fault_map_link_up(a->faults, a->nic_link[nid]);
}

int emu_audit_walk(struct emu_audit *audit, const struct emu_audit_walk_options *options,
                   void (*unroutable)(void *ctx, uint32_t src_nid, uint32_t dst_nid), void *ctx,
                   struct emu_audit_walks *walks_out)
{
    uint32_t n_nodes = emu_machine_n_nodes(audit->machine);
    struct emu_audit_walks counts = { 0 };
    struct walk w = {
        .audit = audit,
        .options = options,
        .counts = &counts,
        .random = { .state = options->seed },
    };

    if ((unsigned)options->mode >= EMU_MODES || (unsigned)options->traffic_class >= EMU_TRAFFIC_CLASSES)
        return -EINVAL;
    w.view = (struct emu_route_view){
        .machine = audit->machine,
        .faults = audit->faults,
        .random = &w.random,
        .near_load = noise,
        .far_load = noise,
        .ctx = &w.salt,
    };
    if (options->n_pairs == 0) {
        for (uint32_t src = 0; src < n_nodes; src++) {
            for (uint32_t dst = 0; dst < n_nodes; dst++) {
                if (src != dst && can_talk(audit, src) && can_talk(audit, dst))
                    walk_pair(&w, src, dst, unroutable, ctx);
            }
        }
    }
    for (uint64_t i = 0; i < options->n_pairs; i++) {
        uint32_t src = (uint32_t)emu_random_below(&w.random, n_nodes);
        uint32_t dst = (uint32_t)emu_random_below(&w.random, n_nodes);

        if (src != dst && can_talk(audit, src) && can_talk(audit, dst))
            walk_pair(&w, src, dst, unroutable, ctx);
    }
    check_rings(audit, options->packet_units_max, &counts);
    counts.is_clean = trouble(&counts) == 0 && counts.n_ring_too_small == 0;
    *walks_out = counts;
    return 0;
}
