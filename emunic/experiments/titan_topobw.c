/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Titan: TopoBW, the program of the source. Nearest neighbours of a set of nodes send to each other, all pairs of one
 * direction at a time [OUR: six phases]; bandwidth is what one pair gets. MB are 2^20 bytes (spec/machines.md 10).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/put_flows.h"
#include "emunic/experiments/titan.h"
#include "emunic/fabric/gemini.h"
#include "emunic/fabric/node_params.h"
#include "emunic/fabric/torus.h"

#define MIB 1048576.0
#define US  1000000u /* in ps */

/* One pair of a phase, and what it got. */
struct pair {
    struct emu_flow_spec spec;
    uint32_t direction;
    char type;  /* C cable, B backplane, M mezzanine, G inside a Gemini */
    char share; /* S: the other node of the Gemini sends that way too; E */
    double mib_per_s;
};

#define PAIRS_MAX 256

uint64_t emu_titan_gap_ps(const struct emu_machine *m)
{
    const struct emu_node_params *host = emu_machine_node_params(m);

    return host ? host->packet_gap_ps : 0;
}

/* ---- phases ---- */

static bool is_in(const uint32_t *nids, uint32_t n, uint32_t nid)
{
    for (uint32_t i = 0; i < n; i++) {
        if (nids[i] == nid)
            return true;
    }
    return false;
}

static char type_of(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid)
{
    struct emu_route route;
    struct emu_link l;

    if (emu_route_minimal(m, src_nid, dst_nid, 0, &route) < 0 || route.n_hops == 0)
        return 'G';
    (void)emu_link_get(m, route.links[1], &l);
    return l.link_class == EMU_LINK_MEZZANINE ? 'M' : l.link_class == EMU_LINK_BACKPLANE ? 'B' : 'C';
}

/* The pairs of one direction among some nodes. Returns how many. */
static uint32_t make_pairs(const struct emu_machine *m, const uint32_t *nids, uint32_t n, uint32_t direction,
                           struct pair *pairs_out)
{
    uint32_t n_pairs = 0;

    for (uint32_t i = 0; i < n && n_pairs < PAIRS_MAX; i++) {
        uint32_t next = nids[i];

        (void)emu_gemini_neighbour_node(m, nids[i], direction, &next);
        if (next == nids[i] || !is_in(nids, n, next))
            continue;
        pairs_out[n_pairs++] = (struct pair){
            .spec = { nids[i], next },
            .direction = direction,
            .type = type_of(m, nids[i], next),
        };
    }
    for (uint32_t i = 0; i < n_pairs; i++) {
        pairs_out[i].share = 'E';
        for (uint32_t k = 0; k < n_pairs; k++) {
            if (pairs_out[k].spec.src_nid == (pairs_out[i].spec.src_nid ^ 1))
                pairs_out[i].share = 'S';
        }
    }
    return n_pairs;
}

/* Runs pairs together and fills in their rates. */
static int measure(struct emu_exp *x, const struct emu_machine *m, const struct emu_fault_map *faults,
                   enum emu_route_mode mode, struct pair *pairs, uint32_t n_pairs)
{
    const struct emu_flows_options options = {
        .gap_ps = emu_titan_gap_ps(m),
        .mode = mode,
        .seed = emu_exp_context(x)->seed,
        .n_threads = emu_exp_context(x)->n_threads,
    };
    struct emu_flow_spec specs[PAIRS_MAX];
    struct emu_flows *f;
    int r;

    for (uint32_t i = 0; i < n_pairs; i++)
        specs[i] = pairs[i].spec;
    r = emu_flows_create(m, faults, specs, n_pairs, &options, &f);
    if (r < 0)
        return r;
    r = emu_flows_run(f, 20 * US);
    emu_flows_reset(f);
    if (r == 0)
        r = emu_flows_run(f, (emu_exp_context(x)->is_full ? 500 : 60) * (uint64_t)US);
    for (uint32_t i = 0; i < n_pairs; i++)
        pairs[i].mib_per_s = emu_flows_rate(f, i) / MIB;
    emu_flows_destroy(f);
    return r;
}

/* All six phases of the source's thirty nodes. */
static int run_phases(struct emu_exp *x, const struct emu_machine *m, struct pair *pairs, uint32_t *n_pairs_out)
{
    uint32_t nids[EMU_TITAN_NODES];
    uint32_t n_pairs = 0;
    int r = 0;

    for (uint32_t i = 0; i < EMU_TITAN_NODES; i++)
        nids[i] = emu_titan_nodes[i].nid;
    for (uint32_t phase = 0; phase < EMU_TORUS_DIRECTIONS && r == 0; phase++) {
        uint32_t direction = phase ^ 1; /* X+, X-, Y+ ... */
        uint32_t n = make_pairs(m, nids, EMU_TITAN_NODES, direction, &pairs[n_pairs]);

        r = measure(x, m, NULL, EMU_MODE_ADAPTIVE_0, &pairs[n_pairs], n);
        n_pairs += n;
        emu_exp_progress(x, (phase + 1) / 6.0);
    }
    *n_pairs_out = n_pairs;
    return r;
}

static const struct pair *pair_of(const struct pair *pairs, uint32_t n_pairs, uint32_t src_nid, uint32_t dst_nid)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        if (pairs[i].spec.src_nid == src_nid && pairs[i].spec.dst_nid == dst_nid && (pairs[i].direction & 1))
            return &pairs[i];
    }
    return NULL;
}

/* "X+CE" */
static void code_of(const struct pair *p, char code[5])
{
    memcpy(code, emu_torus_direction_name(p->direction), 2);
    code[2] = p->type;
    code[3] = p->share;
    code[4] = '\0';
}

static void print_pair(struct emu_exp *x, const struct emu_machine *m, const struct pair *p)
{
    char src[EMU_CNAME_MAX];
    char dst[EMU_CNAME_MAX];
    char code[5];

    code_of(p, code);
    (void)emu_machine_cname(m, p->spec.src_nid, src, sizeof(src));
    (void)emu_machine_cname(m, p->spec.dst_nid, dst, sizeof(dst));
    emu_exp_detail(x, "%s %s %s (%u to %u): %.4f seconds = %.2f MB/sec", src, code, dst, p->spec.src_nid,
                   p->spec.dst_nid, 30000 / p->mib_per_s, p->mib_per_s);
}

/* ---- TITAN-2: the printed rows ---- */

static const struct printed {
    const char *part;
    const char *code;
    uint32_t src_nid;
    uint32_t dst_nid;
    double mb_per_s;
    char kind;
    double tolerance;
} printed[] = {
    { "a", "X+CE", 11, 53, 5945.98, 'K', 0.01 },  { "b", "X+CS", 24, 38, 2974.83, 'P', 0.01 },
    { "b", "X+CS", 25, 39, 2974.68, 'P', 0.01 },  { "c", "Y+ME", 15, 16, 5947.03, 'P', 0.01 },
    { "d", "Y+MS", 33, 62, 5477.70, 'P', 0.015 }, { "e", "Y+GS", 6, 7, 6777.84, 'K', 0.01 },
    { "f", "Z+BE", 45, 47, 6762.15, 'P', 0.01 },  { "g", "Z+BS", 58, 56, 4118.02, 'K', 0.01 },
    { "g", "Z+BS", 59, 57, 4118.23, 'K', 0.01 },  { "h", "Z+CS", 48, 62, 2853.55, 'P', 0.06 },
};

static void report_row(struct emu_exp *x, const struct emu_machine *m, const struct printed *row, const struct pair *p)
{
    struct emu_metric metric = {
        .kind = row->kind,
        .unit = "MiB/s",
        .tolerance = EMU_TOL_RELATIVE,
        .src = row->mb_per_s,
        .got = p ? p->mib_per_s : NAN,
        .tol = row->tolerance,
    };
    char name[64];
    char code[5] = "";

    if (p)
        code_of(p, code);
    snprintf(name, sizeof(name), "%c_%s_%c%c_%u_to_%u", row->code[0] | 0x20, row->code[1] == '+' ? "plus" : "minus",
             row->code[2] | 0x20, row->code[3] | 0x20, row->src_nid, row->dst_nid);
    metric.name = name;
    emu_exp_part(x, row->part);
    if (row->kind == 'K') {
        metric.param_name = row->part[0] == 'a' ? "bytes_per_MB" :
                            row->part[0] == 'e' ? "host.packet_gap_ns" :
                                                  "links.backplane.lost_percent";
        metric.param_value = row->part[0] == 'a' ? MIB :
                             row->part[0] == 'e' ? (double)emu_titan_gap_ps(m) * 1e-3 :
                                                   m->params.link[EMU_LINK_BACKPLANE].lost_share * 1e-3;
    }
    (void)emu_exp_report(x, &metric);
    if (strcmp(code, row->code) != 0)
        emu_exp_holds(x, row->kind == 'K' ? 'P' : row->kind, "code_is_as_printed", false);
}

int emu_titan_rows(struct emu_exp *x)
{
    static struct pair pairs[6 * PAIRS_MAX];
    double y_min = INFINITY;
    double z_min = INFINITY;
    uint32_t n_pairs;
    struct emu_machine *m;
    int r = emu_exp_machine(x, "gemini", &m);

    if (r < 0)
        return r;
    r = run_phases(x, m, pairs, &n_pairs);
    for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]) && r == 0; i++)
        report_row(x, m, &printed[i], pair_of(pairs, n_pairs, printed[i].src_nid, printed[i].dst_nid));
    for (uint32_t i = 0; i < n_pairs && r == 0; i++) {
        double *least = pairs[i].direction / 2 == 1 ? &y_min : pairs[i].direction / 2 == 2 ? &z_min : NULL;

        if (least)
            *least = fmin(*least, pairs[i].mib_per_s);
        print_pair(x, m, &pairs[i]);
    }
    if (r == 0) {
        emu_exp_part(x, "d");
        emu_exp_figure(x, 'P', "y_min", "MiB/s", emu_exp_within(5437.83, 0.015), y_min);
        emu_exp_part(x, "h");
        emu_exp_figure(x, 'P', "z_min", "MiB/s", emu_exp_within(2667.21, 0.12), z_min);
        emu_exp_part(x, NULL);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- TITAN-3: the summaries ---- */

/* The source's summary of a dimension. */
struct summary {
    uint32_t dim;
    double average; /* MiB/s */
    double tolerance;
    const char *min_class;
    const char *max_class;
};

static void summarize(struct emu_exp *x, const struct emu_machine *m, const struct pair *pairs, uint32_t n_pairs,
                      const struct summary *source)
{
    static const char letters[] = "xyz";
    const struct pair *least = NULL;
    const struct pair *most = NULL;
    double sum = 0;
    uint32_t n = 0;
    char least_class[3] = "", most_class[3] = "";
    char name[32];

    for (uint32_t i = 0; i < n_pairs; i++) {
        const struct pair *p = &pairs[i];

        if (p->direction / 2 != source->dim)
            continue;
        if (!least || p->mib_per_s < least->mib_per_s)
            least = p;
        if (!most || p->mib_per_s > most->mib_per_s)
            most = p;
        sum += p->mib_per_s;
        n++;
    }
    if (n == 0)
        return;
    snprintf(name, sizeof(name), "%c_average", letters[source->dim]);
    emu_exp_figure(x, 'P', name, "MiB/s", emu_exp_within(source->average, source->tolerance), sum / n);
    /* Only what the source's class says: type, share, or both. */
    snprintf(least_class, sizeof(least_class), "%c%c", least->type, least->share);
    snprintf(most_class, sizeof(most_class), "%c%c", most->type, most->share);
    if (source->min_class[1] == '\0')
        memmove(least_class,
                strchr("SE", source->min_class[0]) ? least_class + 1 : (least_class[1] = '\0', least_class), 2);
    if (source->max_class[1] == '\0')
        memmove(most_class, strchr("SE", source->max_class[0]) ? most_class + 1 : (most_class[1] = '\0', most_class),
                2);
    snprintf(name, sizeof(name), "%c_min_class", letters[source->dim]);
    emu_exp_text(x, 'P', name, source->min_class, least_class);
    snprintf(name, sizeof(name), "%c_max_class", letters[source->dim]);
    emu_exp_text(x, 'P', name, source->max_class, most_class);
    emu_exp_detail(x, "%c: %u flows, min %.2f, max %.2f, avg %.2f", letters[source->dim] - 32, n, least->mib_per_s,
                   most->mib_per_s, sum / n);
    print_pair(x, m, least);
    print_pair(x, m, most);
}

int emu_titan_summaries(struct emu_exp *x)
{
    static const struct summary summaries[] = {
        { 0, 3717.81, 0.01, "S", "E" },
        { 1, 6124.41, 0.01, "M", "G" },
        { 2, 4364.39, 0.03, "C", "BE" },
    };
    static struct pair pairs[6 * PAIRS_MAX];
    uint32_t n_pairs;
    struct emu_machine *m;
    int r = emu_exp_machine(x, "gemini", &m);

    if (r < 0)
        return r;
    r = run_phases(x, m, pairs, &n_pairs);
    if (r == 0) {
        for (size_t i = 0; i < sizeof(summaries) / sizeof(summaries[0]); i++)
            summarize(x, m, pairs, n_pairs, &summaries[i]);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- TITAN-7 and 9: lost lanes ---- */

/* Both nodes (or one) of c0-0c1s0g0 to c0-0c1s1g0 over the backplane, n_lost of its 24 lanes down: one lane of the
 * first tile, of the second and so on. MiB/s of all senders together. */
static int lossy_backplane(struct emu_exp *x, const struct emu_machine *m, uint32_t n_senders, uint32_t n_lost,
                           enum emu_route_mode mode, double *mib_per_s_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t from = emu_torus_router(t, 1, 0, 0);
    uint32_t to = emu_torus_router(t, 1, 0, 1);
    struct emu_fault_map *faults;
    struct pair pairs[2];
    int r = emu_fault_map_create(m, &faults);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < n_lost && r == 0; i++) {
        uint32_t link = emu_torus_link(t, from, emu_torus_direction(2, true), i % t->parallel[2]);
        uint32_t mask = emu_fault_map_lane_mask(faults, link);

        r = emu_fault_map_set_lanes(faults, link, mask & (mask - 1));
    }
    for (uint32_t i = 0; i < n_senders; i++)
        pairs[i] = (struct pair){ .spec = { 2 * from + i, 2 * to + i } };
    if (r == 0)
        r = measure(x, m, faults, mode, pairs, n_senders);
    *mib_per_s_out = 0;
    for (uint32_t i = 0; i < n_senders; i++)
        *mib_per_s_out += pairs[i].mib_per_s;
    emu_fault_map_destroy(faults);
    return r;
}

/* Lane of one tile lost, a flow that keeps its order: what its tile gives. The worst of all tiles, as a share. */
static int worst_ordered(struct emu_exp *x, const struct emu_machine *m, double *change_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t from = emu_torus_router(t, 1, 0, 0);
    uint32_t to = emu_torus_router(t, 1, 0, 1);
    double whole = 0;
    int r = 0;

    *change_out = 0;
    for (uint32_t tile = 0; tile <= t->parallel[2] && r == 0; tile++) { /* the last: none is slow */
        struct pair pair = { .spec = { 2 * from, 2 * to } };
        uint32_t number = t->parallel[2] - tile;
        struct emu_fault_map *faults;

        r = emu_fault_map_create(m, &faults);
        if (r < 0)
            break;
        if (number < t->parallel[2])
            r = emu_fault_map_set_lanes(faults, emu_torus_link(t, from, emu_torus_direction(2, true), number), 3);
        if (r == 0)
            r = measure(x, m, faults, EMU_MODE_IN_ORDER, &pair, 1);
        if (tile == 0)
            whole = pair.mib_per_s;
        *change_out = fmin(*change_out, pair.mib_per_s / whole - 1);
        emu_fault_map_destroy(faults);
    }
    return r;
}

int emu_titan_lanes(struct emu_exp *x)
{
    double adaptive[2], hashed[2];
    double ordered = 0;
    struct emu_machine *m;
    int r = emu_exp_machine(x, "gemini", &m);

    if (r < 0)
        return r;
    for (uint32_t n_lost = 0; n_lost < 2 && r == 0; n_lost++) {
        r = lossy_backplane(x, m, 2, n_lost, EMU_MODE_ADAPTIVE_0, &adaptive[n_lost]);
        if (r == 0)
            r = lossy_backplane(x, m, 2, n_lost, EMU_MODE_MIN_HASH, &hashed[n_lost]);
    }
    if (r == 0)
        r = worst_ordered(x, m, &ordered);
    if (r == 0) {
        emu_exp_figure(x, 'S', "adaptive_change", "%", emu_exp_points(-100.0 / 24, 2),
                       100 * (adaptive[1] / adaptive[0] - 1));
        emu_exp_figure(x, 'S', "hashed_change_worst", "%", emu_exp_points(-100.0 / 3, 2), 100 * ordered);
        emu_exp_detail(x, "adaptive: %.2f, one lane down %.2f MiB/s", adaptive[0], adaptive[1]);
        emu_exp_detail(
            x,
            "hashed by pair: a flow on the slow tile loses %.1f %%; hashed by address, over all tiles: %.2f, %.2f "
            "MiB/s, %.1f %%",
            -100 * ordered, hashed[0], hashed[1], 100 - 100 * hashed[1] / hashed[0]);
    }
    emu_machine_destroy(m);
    return r;
}

int emu_titan_hidden(struct emu_exp *x)
{
    uint32_t seen[2] = { 0, 0 };
    struct emu_machine *m;
    int r = emu_exp_machine(x, "gemini", &m);

    if (r < 0)
        return r;
    for (uint32_t n_senders = 1; n_senders <= 2 && r == 0; n_senders++) {
        double whole = 0;

        for (uint32_t n_lost = 0; n_lost <= 8 && seen[n_senders - 1] == 0 && r == 0; n_lost++) {
            double got;

            r = lossy_backplane(x, m, n_senders, n_lost, EMU_MODE_ADAPTIVE_0, &got);
            if (n_lost == 0)
                whole = got;
            if (got <= 0.97 * whole)
                seen[n_senders - 1] = n_lost;
            emu_exp_detail(x, "%u sender%s, %u lanes lost: %.2f MiB/s", n_senders, n_senders > 1 ? "s" : "", n_lost,
                           got);
            emu_exp_progress(x, ((n_senders - 1) * 9 + n_lost) / 12.0);
        }
    }
    if (r == 0) {
        emu_exp_exact(x, 'P', "shared_visible_from", "lanes", 1, seen[1]);
        emu_exp_exact(x, 'P', "exclusive_visible_from", "lanes", 5, seen[0]);
    }
    emu_machine_destroy(m);
    return r;
}
