/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XC: ways of packets through a quiet network, without time, and the deadlock audit.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/xc.h"
#include "emunic/experiments/xc_traffic.h"
#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/dragonfly_routing.h"
#include "emunic/fabric/random.h"
#include "emunic/fabric/sim/audit.h"

/* ---- A packet, hop by hop ---- */

#define HOPS_MAX 10

struct trip {
    uint32_t hops;
    uint32_t optical;
    bool has_arrived;
};

static struct trip walk(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, enum emu_route_mode mode,
                        struct emu_random *random)
{
    const struct emu_route_view view = {
        .machine = m, .random = random, .near_load = emu_route_no_load, .far_load = emu_route_no_load
    };
    struct emu_packet p = { .src_nid = src_nid, .dst_nid = dst_nid, .mode = (uint8_t)mode };
    struct emu_route_at at = { .router = src_nid / 4, .in_link = src_nid, .is_entering = true };
    struct trip trip = { 0 };

    if (!emu_routing_dragonfly.start(&view, &p, at.router))
        return trip;
    for (;;) {
        struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
        uint32_t n = emu_routing_dragonfly.options(&view, &p, &at, options);
        const struct emu_route_option *o;
        struct emu_link l;

        if (n == 0 || trip.hops > 2 * HOPS_MAX)
            return trip;
        o = &options[emu_random_below(random, n)];
        (void)emu_link_get(m, o->link, &l);
        if (l.to.kind == EMU_END_NIC) {
            trip.has_arrived = l.to.index == dst_nid;
            return trip;
        }
        p.route_state = o->route_state;
        trip.hops++;
        trip.optical += l.link_class == EMU_LINK_BLUE;
        at = (struct emu_route_at){ .router = l.to.index, .in_link = o->link, .in_vc = o->vc };
    }
}

/* ---- many of them ---- */

struct histogram {
    uint64_t count[2 * HOPS_MAX + 2];
    uint64_t n;
    uint64_t hops;
    uint64_t optical;
    uint64_t lost;
    uint32_t most;
};

/* n packets between random nodes of different groups. */
static void walk_many(const struct emu_machine *m, enum emu_route_mode mode, uint64_t n, struct emu_random *random,
                      struct histogram *h)
{
    uint32_t n_nodes = emu_machine_n_nodes(m);

    memset(h, 0, sizeof(*h));
    while (h->n < n) {
        uint32_t src = (uint32_t)emu_random_below(random, n_nodes);
        uint32_t dst = (uint32_t)emu_random_below(random, n_nodes);
        struct emu_place from, to;
        struct trip trip;

        (void)emu_machine_place(m, src, &from);
        (void)emu_machine_place(m, dst, &to);
        if (from.group == to.group)
            continue;
        trip = walk(m, src, dst, mode, random);
        h->n++;
        h->lost += !trip.has_arrived;
        h->hops += trip.hops;
        h->optical += trip.optical;
        h->count[trip.hops]++;
        h->most = trip.hops > h->most ? trip.hops : h->most;
    }
}

static double mean_hops(const struct histogram *h)
{
    return (double)h->hops / (double)h->n;
}

static uint32_t median(const struct histogram *h)
{
    uint64_t seen = 0;
    uint32_t hops = 0;

    while (seen + h->count[hops] < (h->n + 1) / 2)
        seen += h->count[hops++];
    return hops;
}

static void print_histogram(struct emu_exp *x, const char *name, const char *what, const struct histogram *h)
{
    char text[256] = "";
    size_t len = 0;

    for (uint32_t hops = 0; hops <= h->most && len < sizeof(text); hops++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, " %u:%.2f%%", hops,
                                100.0 * (double)h->count[hops] / (double)h->n);
    emu_exp_detail(x, "%s %s, hops:%s; mean %.3f, %llu paths", name, what, text, mean_hops(h),
                   (unsigned long long)h->n);
}

static void plot_histogram(FILE *data, const char *name, const struct histogram *h)
{
    for (uint32_t hops = 0; data && hops <= h->most; hops++)
        fprintf(data, "%s\t%u\t%g\n", name, hops, (double)h->count[hops] / (double)h->n);
}

/* ---- XC-23 ---- */

struct hop_case {
    const char *name;
    const char *spec;
    double minimal_mean;         /* spec/machines.md XC-23: expected, two digits behind the point, rounded or cut off */
    double nonminimal_mean;      /* one digit */
    uint32_t minimal_exactly;    /* longest; 0: at most five */
    uint32_t nonminimal_exactly; /* longest; 0: at most ten */
    bool has_median;             /* 8 to 30 groups: six or seven */
};

static int report_hops(struct emu_exp *x, const struct hop_case *c, uint64_t n, FILE *data)
{
    struct emu_random random = { .state = emu_exp_context(x)->seed };
    struct histogram minimal, nonminimal;
    struct emu_machine *m;
    char name[64];
    int r = emu_exp_machine(x, c->spec, &m);

    if (r < 0)
        return r;
    walk_many(m, EMU_MODE_MINIMAL, n, &random, &minimal);
    walk_many(m, EMU_MODE_VALIANT, n, &random, &nonminimal);
    snprintf(name, sizeof(name), "%s_minimal_max", c->name);
    if (c->minimal_exactly > 0)
        emu_exp_exact(x, 'A', name, "hops", c->minimal_exactly, minimal.most);
    else
        emu_exp_at_most(x, 'A', name, "hops", 5, minimal.most);
    snprintf(name, sizeof(name), "%s_nonminimal_max", c->name);
    if (c->nonminimal_exactly > 0)
        emu_exp_exact(x, 'A', name, "hops", c->nonminimal_exactly, nonminimal.most);
    else
        emu_exp_at_most(x, 'A', name, "hops", 10, nonminimal.most);
    snprintf(name, sizeof(name), "%s_minimal_mean", c->name);
    emu_exp_figure(x, 'A', name, "hops", emu_exp_points(c->minimal_mean, 0.01), mean_hops(&minimal));
    snprintf(name, sizeof(name), "%s_nonminimal_mean", c->name);
    emu_exp_figure(x, 'A', name, "hops", emu_exp_points(c->nonminimal_mean, 0.1), mean_hops(&nonminimal));
    if (c->has_median) {
        snprintf(name, sizeof(name), "%s_nonminimal_median", c->name);
        emu_exp_figure(x, 'A', name, "hops", emu_exp_range(6, 7), median(&nonminimal));
    }
    snprintf(name, sizeof(name), "%s_all_arrive", c->name);
    emu_exp_holds(x, 'A', name, minimal.lost == 0 && nonminimal.lost == 0);
    print_histogram(x, c->name, "minimal", &minimal);
    print_histogram(x, c->name, "non-minimal", &nonminimal);
    snprintf(name, sizeof(name), "%s minimal", c->name);
    plot_histogram(data, name, &minimal);
    snprintf(name, sizeof(name), "%s non-minimal", c->name);
    plot_histogram(data, name, &nonminimal);
    emu_machine_destroy(m);
    return 0;
}

int emu_xc_hops(struct emu_exp *x)
{
    static const struct hop_case cases[] = {
        { "6x48", "aries:groups=6,cables_per_bundle=48", 2.77, 5.2, 3, 0, false },
        { "8x12", "aries:groups=8,cables_per_bundle=12", 3.38, 6.3, 0, 0, true },
        { "30x8", "aries:groups=30,cables_per_bundle=8", 3.39, 6.7, 0, 0, true },
        { "241x1", "aries:groups=241,cables_per_bundle=1", 4.42, 8.8, 5, 10, false },
    };
    uint64_t n = emu_exp_context(x)->is_full ? 2000000 : 100000;
    FILE *data = emu_exp_data(x, "hops", "Lengths of paths between groups", "hops", "share of the paths");
    int r = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && r == 0; i++) {
        r = report_hops(x, &cases[i], n, data);
        emu_exp_progress(x, (double)(i + 1) / (sizeof(cases) / sizeof(cases[0])));
    }
    emu_exp_detail(x, "expected means have no tolerance of their own: one unit of their last digit, which may be cut "
                      "off");
    if (data)
        fclose(data);
    return r;
}

/* ---- XC-27 ---- */

/* The same, counted on the blue links of the simulation; group shift, so that each packet leaves its group. */
static int simulate_optical_hops(struct emu_exp *x)
{
    struct emu_xc_run run = {
        .pattern = EMU_PATTERN_SHIFT,
        .mode = EMU_MODE_MINIMAL,
        .gap_ps = 1e6,
        .window_ps = 20000000,
    };
    struct emu_xc_result result;
    struct emu_machine *m;
    int r = emu_exp_machine(x, emu_xc_eight_groups(x), &m);

    if (r < 0)
        return r;
    r = emu_xc_saturate(x, m, &run, &result);
    if (r == 0) {
        emu_exp_figure(x, 'S', "minimal_optical_hops_simulated", "hops", emu_exp_within(1, 0.01), result.optical_hops);
        run.mode = EMU_MODE_VALIANT;
        r = emu_xc_saturate(x, m, &run, &result);
    }
    if (r == 0)
        emu_exp_figure(x, 'S', "nonminimal_optical_hops_simulated", "hops", emu_exp_range(1.75, 2.0),
                       result.optical_hops);
    emu_machine_destroy(m);
    return r;
}

int emu_xc_optical_hops(struct emu_exp *x)
{
    static const char *const specs[] = { "aries:groups=8,cables_per_bundle=12", "aries:groups=30,cables_per_bundle=8" };
    static const char *const names[] = { "8x12", "30x8" };

    for (size_t i = 0; i < 2; i++) {
        struct emu_random random = { .state = emu_exp_context(x)->seed };
        struct histogram h;
        struct emu_machine *m;
        char name[64];
        int r = emu_exp_machine(x, specs[i], &m);

        if (r < 0)
            return r;
        walk_many(m, EMU_MODE_MINIMAL, 200000, &random, &h);
        snprintf(name, sizeof(name), "%s_minimal_optical_hops", names[i]);
        emu_exp_at_most(x, 'A', name, "hops", 1, (double)h.optical / (double)h.n);
        walk_many(m, EMU_MODE_VALIANT, 200000, &random, &h);
        snprintf(name, sizeof(name), "%s_nonminimal_optical_hops", names[i]);
        emu_exp_figure(x, 'A', name, "hops", emu_exp_range(1.75, 2.0), (double)h.optical / (double)h.n);
        emu_machine_destroy(m);
    }
    return simulate_optical_hops(x);
}

/* ---- AUD-XC ---- */

/* Longest chain of channels that packets could hold one after another, in hops. Channels are link x VCs + vc. */
struct chain {
    uint8_t *hops;           /* owned; that end with this channel */
    uint32_t first_hop_link; /* NIC links come before: not a hop */
    uint32_t longest;
    uint64_t mixed_classes; /* dependencies from one class of traffic to the other */
    bool has_changed;
};

static void extend_chain(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc)
{
    struct chain *c = ctx;
    uint32_t before = 0;
    uint8_t *next;

    if (next_link < c->first_hop_link)
        return;
    if (link >= c->first_hop_link) {
        before = c->hops[(size_t)link * EMU_VCS_MAX + vc];
        c->mixed_classes += vc / EMU_DRAGONFLY_CLASS_VCS != next_vc / EMU_DRAGONFLY_CLASS_VCS;
    }
    next = &c->hops[(size_t)next_link * EMU_VCS_MAX + next_vc];
    if (*next > before || before >= 100)
        return;
    *next = (uint8_t)(before + 1);
    c->longest = *next > c->longest ? *next : c->longest;
    c->has_changed = true;
}

static int longest_chain(const struct emu_machine *m, struct chain *c)
{
    *c = (struct chain){ .first_hop_link = 2 * emu_machine_n_nodes(m), .has_changed = true };
    c->hops = calloc((size_t)emu_machine_n_links(m) * EMU_VCS_MAX, sizeof(*c->hops));
    if (!c->hops)
        return -ENOMEM;
    while (c->has_changed && c->longest < 100) {
        c->has_changed = false;
        c->mixed_classes = 0;
        emu_routing_dragonfly.dependencies(m, NULL, extend_chain, c);
    }
    free(c->hops);
    return 0;
}

struct audit_case {
    const char *name;
    const char *spec;
    uint32_t longest; /* hops */
};

static int walk_audit(struct emu_exp *x, const struct audit_case *c, struct emu_audit *audit)
{
    uint32_t vcs = 0;
    uint32_t longest = 0;
    bool is_clean = true;
    char name[64];

    for (uint32_t mode = 0; mode < EMU_MODES; mode++) {
        for (uint32_t class = 0; class < EMU_TRAFFIC_CLASSES; class ++) {
            const struct emu_audit_walk_options options = {
                .mode = (enum emu_route_mode)mode,
                .traffic_class = (enum emu_traffic_class) class,
                .n_pairs = emu_exp_context(x)->is_full ? 20000 : 1000,
                .walks_per_pair = 2,
                .seed = emu_exp_context(x)->seed,
            };
            struct emu_audit_walks walks;
            int r = emu_audit_walk(audit, &options, NULL, NULL, &walks);

            if (r < 0)
                return r;
            is_clean = is_clean && walks.is_clean && walks.n_unroutable == 0;
            vcs |= walks.vcs_used;
            longest = walks.longest_hops > longest ? walks.longest_hops : longest;
        }
    }
    snprintf(name, sizeof(name), "%s_walks_do_what_is_declared", c->name);
    emu_exp_holds(x, 'A', name, is_clean);
    snprintf(name, sizeof(name), "%s_channels_used_by_requests", c->name);
    emu_exp_exact(x, 'A', name, "channels", 4, __builtin_popcount(vcs & 0x0f));
    snprintf(name, sizeof(name), "%s_channels_used_by_responses", c->name);
    emu_exp_exact(x, 'A', name, "channels", 4, __builtin_popcount(vcs & 0xf0));
    snprintf(name, sizeof(name), "%s_longest_walk", c->name);
    emu_exp_at_most(x, 'A', name, "hops", 10, longest);
    return 0;
}

static int audit_machine(struct emu_exp *x, const struct audit_case *c)
{
    const struct emu_audit_result *result;
    struct emu_audit *audit;
    struct emu_machine *m;
    struct chain chain;
    char name[64];
    int r = emu_exp_machine(x, c->spec, &m);

    if (r < 0)
        return r;
    r = emu_audit_create(m, &emu_routing_dragonfly, NULL, &audit);
    if (r < 0)
        goto out_machine;
    result = emu_audit_result(audit);
    r = longest_chain(m, &chain);
    if (r < 0)
        goto out_audit;
    snprintf(name, sizeof(name), "%s_acyclic", c->name);
    emu_exp_exact(x, 'A', name, "1", 1, result->is_acyclic && result->is_free);
    snprintf(name, sizeof(name), "%s_dependencies_between_classes", c->name);
    emu_exp_exact(x, 'A', name, "dependencies", 0, (double)chain.mixed_classes);
    snprintf(name, sizeof(name), "%s_longest_path", c->name);
    emu_exp_exact(x, 'A', name, "hops", c->longest, chain.longest);
    emu_exp_detail(x, "%s: %llu channels, %llu dependencies, %llu on a cycle", c->name,
                   (unsigned long long)result->n_channels, (unsigned long long)result->n_dependencies,
                   (unsigned long long)result->n_cyclic_channels);
    r = walk_audit(x, c, audit);
out_audit:
    emu_audit_destroy(audit);
out_machine:
    emu_machine_destroy(m);
    return r;
}

int emu_xc_audit(struct emu_exp *x)
{
    static const struct audit_case cases[] = {
        { "2", "aries:groups=2", 10 },
        { "6x48", "aries:groups=6,cables_per_bundle=48", 10 },
        { "8x12", "aries:groups=8,cables_per_bundle=12", 10 },
        { "8x34", "aries:groups=8,cables_per_bundle=34", 10 },
        { "15x12", "aries:groups=15,cables_per_bundle=12", 10 },
        { "air_cooled", "aries:groups=8,chassis=1", 6 }, /* no black links: four of the ten hops are not there */
    };
    int r = 0;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]) && r == 0; i++) {
        r = audit_machine(x, &cases[i]);
        emu_exp_progress(x, (double)(i + 1) / (sizeof(cases) / sizeof(cases[0])));
    }
    return r;
}
