/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Titan: routing around what is missing. Paths are taken from the packet routing itself, one packet per pair.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/put_flows.h"
#include "emunic/experiments/titan.h"
#include "emunic/fabric/gemini.h"
#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/sim/sim.h"
#include "emunic/fabric/torus.h"

#define PAIRS_LISTED 8

/* Takes a packet from one router's first node to another's and adds 1 to each link; false: unroutable. */
static bool trace(const struct emu_route_view *view, uint32_t src_router, uint32_t dst_router, uint32_t *loads)
{
    const struct emu_machine *m = view->machine;
    const struct emu_routing *routing = m->topology->routing;
    struct emu_packet p = {
        .src_nid = emu_torus_first_nid(m, src_router),
        .dst_nid = emu_torus_first_nid(m, dst_router),
        .mode = EMU_MODE_IN_ORDER,
    };
    struct emu_route_at at = { .router = src_router, .is_entering = true };
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];

    if (!routing->start(view, &p, src_router))
        return false;
    for (uint32_t hop = 0; hop < 1000; hop++) {
        struct emu_link l;

        if (routing->options(view, &p, &at, options) == 0)
            return false;
        (void)emu_link_get(m, options[0].link, &l);
        if (l.to.kind == EMU_END_NIC)
            return true;
        if (loads)
            loads[options[0].link]++;
        p.route_state = options[0].route_state;
        at = (struct emu_route_at){ .router = l.to.index, .in_link = options[0].link, .in_vc = options[0].vc };
    }
    return false;
}

/* Takes a cable out: all parallel links, both ways. */
static int cut_cable(const struct emu_machine *m, struct emu_fault_map *faults, uint32_t router, uint32_t direction)
{
    const struct emu_torus *t = emu_torus_of(m);
    int r = 0;

    for (uint32_t number = 0; number < t->parallel[direction / 2] && r == 0; number++) {
        uint32_t link = emu_torus_link(t, router, direction, number);
        uint32_t reverse;

        r = emu_link_reverse(m, link, &reverse);
        if (r == 0)
            r = emu_fault_map_set_link(faults, link, false);
        if (r == 0)
            r = emu_fault_map_set_link(faults, reverse, false);
    }
    return r;
}

/* Geminis that are missing: the middle of the machine, then one at random. */
static int remove_geminis(const struct emu_machine *m, struct emu_fault_map *faults, uint32_t n, uint64_t seed)
{
    const struct emu_torus *t = emu_torus_of(m);
    struct emu_random random = { .state = seed };
    uint32_t router = emu_torus_router(t, t->size[0] / 2, t->size[1] / 2, t->size[2] / 2);
    int r = 0;

    for (uint32_t i = 0; i < n && r == 0; i++) {
        r = emu_fault_map_set_router(faults, router, false);
        while (!emu_fault_map_router_up(faults, router))
            router = (uint32_t)emu_random_below(&random, t->n_routers);
    }
    return r;
}

/* ---- AUD-TITAN ---- */

struct unroutable_list {
    struct emu_exp *x;
    const struct emu_machine *m;
    uint64_t n;
};

static void list_unroutable(void *ctx, uint32_t src_nid, uint32_t dst_nid)
{
    struct unroutable_list *list = ctx;
    char src[EMU_CNAME_MAX] = "";
    char dst[EMU_CNAME_MAX] = "";

    if (list->n++ >= PAIRS_LISTED)
        return;
    (void)emu_machine_cname(list->m, src_nid, src, sizeof(src));
    (void)emu_machine_cname(list->m, dst_nid, dst, sizeof(dst));
    emu_exp_detail(list->x, "unroutable: %s -> %s", src, dst);
}

struct audit_case {
    const char *name;
    const char *spec;
    uint64_t n_pairs; /* that are walked; 0: all */
};

static int audit_one(struct emu_exp *x, const struct audit_case *c, const struct emu_machine *m, uint32_t n_dead,
                     const char *retry)
{
    const struct emu_audit_walk_options options = {
        .mode = EMU_MODE_ADAPTIVE_0,
        .n_pairs = c->n_pairs,
        .seed = emu_exp_context(x)->seed,
    };
    struct unroutable_list list = { .x = x, .m = m };
    struct emu_audit *audit = NULL;
    struct emu_fault_map *faults;
    struct emu_audit_walks walks;
    char name[64];
    int r = emu_fault_map_create(m, &faults);

    if (r < 0)
        return r;
    r = remove_geminis(m, faults, n_dead, emu_exp_context(x)->seed);
    if (r == 0)
        r = emu_audit_create(m, m->topology->routing, faults, &audit);
    if (r == 0)
        r = emu_audit_walk(audit, &options, n_dead ? list_unroutable : NULL, &list, &walks);
    if (r == 0) {
        const struct emu_audit_result *result = emu_audit_result(audit);

        snprintf(name, sizeof(name), "%s_%u_dead_%s_acyclic", c->name, n_dead, retry);
        emu_exp_exact(x, 'A', name, "1", 1, result->is_acyclic && result->is_free);
        snprintf(name, sizeof(name), "%s_%u_dead_%s_walks_do_what_is_declared", c->name, n_dead, retry);
        emu_exp_holds(x, 'A', name, walks.is_clean);
        if (n_dead == 0) {
            snprintf(name, sizeof(name), "%s_%u_dead_%s_unroutable", c->name, n_dead, retry);
            emu_exp_exact(x, 'A', name, "pairs", 0, (double)walks.n_unroutable);
        }
        emu_exp_detail(
            x,
            "%s, %u dead, %s: %llu channels, %llu dependencies, %llu of %llu pairs unroutable (those of dead "
            "Geminis among them), longest walk %u hops",
            c->name, n_dead, retry, (unsigned long long)result->n_channels, (unsigned long long)result->n_dependencies,
            (unsigned long long)walks.n_unroutable, (unsigned long long)walks.n_walks, walks.longest_hops);
    }
    emu_audit_destroy(audit);
    emu_fault_map_destroy(faults);
    return r;
}

int emu_titan_audit(struct emu_exp *x)
{
    /* Parallel tiles are equivalent channels: Titan is audited with one per direction. */
    const struct audit_case cases[] = {
        { "3x2x8", "gemini", 0 },
        { "4x4x8", "gemini:x=4,y=4,z=8", emu_exp_context(x)->is_full ? 0 : 4000 },
        { "25x16x24", EMU_TITAN_SPEC ",tiles_x=1,tiles_y=1,tiles_z=1", emu_exp_context(x)->is_full ? 1000000 : 20000 },
    };
    int r = 0;

    for (uint32_t i = 0; i < 6 && r == 0; i++) {
        const struct audit_case *c = &cases[i / 2];
        const char *retry = i % 2 ? "retry" : "no_retry";
        struct emu_machine *m;
        char spec[128];

        snprintf(spec, sizeof(spec), "%s%sorder_retry=%u", c->spec, i / 2 == 0 ? ":" : ",", i % 2);
        r = emu_exp_machine(x, spec, &m);
        if (r < 0)
            return r;
        for (uint32_t n_dead = 0; n_dead <= 2 && r == 0; n_dead++) {
            bool is_left_out = !emu_exp_context(x)->is_full && i / 2 == 2 && (i % 2 == 1) != (n_dead == 2);

            /* Quick: Titan whole and with one dead Gemini as it is by default, with two as retry has it. */
            r = is_left_out ? 0 : audit_one(x, c, m, n_dead, retry);
            emu_exp_progress(x, (i * 3 + n_dead + 1) / 18.0);
        }
        emu_machine_destroy(m);
    }
    return r;
}

/* ---- TITAN-10 ---- */

/*
 * Each node exchanges with its neighbours in all six directions, as a program on a grid does and as TopoBW does one
 * direction after the other. Where a Gemini is missing its neighbours are each other's next: "a missing Gemini pushes
 * its neighbours' traffic through turns".
 */

/* The next node that is there; itself if there is none. */
static uint32_t next_present(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t nid,
                             uint32_t direction)
{
    uint32_t next = nid;

    do
        (void)emu_gemini_neighbour_node(m, next, direction, &next);
    while (next != nid && !emu_fault_map_router_up(faults, next / 2));
    return next;
}

/* Flows over each direction of each router; n_lost: flows without a way. */
static void load_map(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t *loads, uint64_t *n_lost)
{
    const struct emu_route_view view = {
        .machine = m, .faults = faults, .near_load = emu_route_no_load, .far_load = emu_route_no_load
    };

    *n_lost = 0;
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        if (!emu_fault_map_router_up(faults, nid / 2))
            continue;
        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
            uint32_t next = next_present(m, faults, nid, direction);

            if (next / 2 != nid / 2)
                *n_lost += !trace(&view, nid / 2, next / 2, loads);
        }
    }
}

/* The most loaded direction of all, as flows per GB/s of its tiles. */
static double largest_load(const struct emu_machine *m, const uint32_t *loads, uint32_t *link_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    double largest = 0;

    for (uint32_t router = 0; router < t->n_routers; router++) {
        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
            uint32_t first = emu_torus_link(t, router, direction, 0);
            uint64_t sum = 0;
            struct emu_link l;
            double load;

            if (first == EMU_TORUS_NONE)
                continue;
            (void)emu_link_get(m, first, &l);
            for (uint32_t number = 0; number < t->parallel[direction / 2]; number++)
                sum += loads[first + number];
            load = (double)sum / (t->parallel[direction / 2] * (double)l.data_bytes_per_s * 1e-9);
            if (load > largest) {
                largest = load;
                *link_out = first;
            }
        }
    }
    return largest;
}

/* The same traffic along X in the packet simulator: what the slowest pair gets, in bytes per second; and does each pair
 * get through? */
static int slowest_pair(struct emu_exp *x, const struct emu_machine *m, const struct emu_fault_map *faults,
                        double *rate_out, uint64_t *n_starved_out)
{
    const struct emu_flows_options options = {
        .gap_ps = emu_titan_gap_ps(m),
        .seed = emu_exp_context(x)->seed,
        .n_threads = emu_exp_context(x)->n_threads,
    };
    struct emu_flow_spec *specs = calloc(2 * emu_machine_n_nodes(m), sizeof(*specs));
    struct emu_flows *f = NULL;
    size_t n = 0;
    int r = specs ? 0 : -ENOMEM;

    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m) && r == 0; nid++) {
        for (uint32_t direction = 0; direction < 2 && emu_fault_map_router_up(faults, nid / 2); direction++) {
            uint32_t next = next_present(m, faults, nid, direction);

            if (next != nid)
                specs[n++] = (struct emu_flow_spec){ nid, next };
        }
    }
    if (r == 0)
        r = emu_flows_create(m, faults, specs, n, &options, &f);
    if (r == 0)
        r = emu_flows_run(f, 3000000);
    if (r == 0) {
        emu_flows_reset(f);
        r = emu_flows_run(f, emu_exp_context(x)->is_full && emu_machine_n_nodes(m) < 1000 ? 50000000 : 4000000);
    }
    *rate_out = 0;
    *n_starved_out = 0;
    for (size_t i = 0; i < n && r == 0; i++) {
        double rate = emu_flows_rate(f, i);

        *rate_out = i == 0 || rate < *rate_out ? rate : *rate_out;
        *n_starved_out += rate == 0;
    }
    emu_flows_destroy(f);
    free(specs);
    return r;
}

static int turns_of(struct emu_exp *x, const char *size, const char *spec, bool is_simulated)
{
    double whole = 0;
    double whole_rate = 0;
    struct emu_machine *m;
    uint32_t *loads;
    int r = emu_exp_machine(x, spec, &m);

    if (r < 0)
        return r;
    loads = malloc(emu_machine_n_links(m) * sizeof(*loads));
    r = loads ? 0 : -ENOMEM;
    for (uint32_t n_dead = 0; n_dead <= 2 && r == 0; n_dead++) {
        struct emu_fault_map *faults;
        char link_name[EMU_LINK_NAME_MAX] = "";
        uint64_t n_lost = 0;
        uint64_t n_starved = 0;
        double rate = 0;
        uint32_t link = 0;
        char name[64];
        double largest;

        r = emu_fault_map_create(m, &faults);
        if (r < 0)
            break;
        r = remove_geminis(m, faults, n_dead, emu_exp_context(x)->seed);
        memset(loads, 0, emu_machine_n_links(m) * sizeof(*loads));
        if (r == 0)
            load_map(m, faults, loads, &n_lost);
        if (r == 0 && is_simulated)
            r = slowest_pair(x, m, faults, &rate, &n_starved);
        largest = largest_load(m, loads, &link);
        (void)emu_link_name(m, link, link_name, sizeof(link_name));
        emu_exp_detail(x, "%s, %u missing: most loaded %s, %.3f flows per GB/s", size, n_dead, link_name, largest);
        if (n_dead == 0) {
            whole = largest;
            whole_rate = rate;
        } else if (r == 0) {
            snprintf(name, sizeof(name), "%s_%u_missing_max_load_ratio", size, n_dead);
            emu_exp_at_least(x, 'S', name, "1", 1.5, largest / whole);
            snprintf(name, sizeof(name), "%s_%u_missing_pairs_without_way", size, n_dead);
            emu_exp_exact(x, 'S', name, "pairs", 0, (double)n_lost);
            if (is_simulated) {
                snprintf(name, sizeof(name), "%s_%u_missing_pairs_not_delivered", size, n_dead);
                emu_exp_exact(x, 'S', name, "pairs", 0, (double)n_starved);
                emu_exp_detail(x, "%s, %u missing: the slowest pair along X gets %.0f MB/s, %.2f of what it was", size,
                               n_dead, rate * 1e-6, rate / whole_rate);
            }
        }
        emu_fault_map_destroy(faults);
    }
    free(loads);
    emu_machine_destroy(m);
    return r;
}

int emu_titan_turns(struct emu_exp *x)
{
    int r = turns_of(x, "4x4x8", "gemini:x=4,y=4,z=8", true);

    emu_exp_progress(x, 0.7);
    if (r == 0)
        r = turns_of(x, "25x16x24", EMU_TITAN_SPEC, emu_exp_context(x)->is_full);
    return r;
}

/* ---- TITAN-11 ---- */

static uint64_t count_unroutable(const struct emu_machine *m, const struct emu_fault_map *faults)
{
    const struct emu_route_view view = {
        .machine = m, .faults = faults, .near_load = emu_route_no_load, .far_load = emu_route_no_load
    };
    uint32_t n = emu_machine_n_routers(m);
    uint64_t count = 0;

    for (uint32_t src = 0; src < n; src++) {
        for (uint32_t dst = 0; dst < n; dst++) {
            if (src != dst && emu_fault_map_router_up(faults, src) && emu_fault_map_router_up(faults, dst))
                count += !trace(&view, src, dst, NULL);
        }
    }
    return count;
}

/* The source has cables along Y only, the destination along X only: neither X, Y, Z nor one turn more gets there, but
 * Y, Z, X does. */
static int construct_faults(const struct emu_machine *m, struct emu_fault_map *faults)
{
    const struct emu_torus *t = emu_torus_of(m);
    const uint32_t routers[2] = { emu_torus_router(t, 0, 0, 0), emu_torus_router(t, 2, 2, 4) };
    const uint32_t kept[2] = { 1, 0 };
    int r = 0;

    for (uint32_t i = 0; i < 2; i++) {
        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS && r == 0; direction++) {
            if (direction / 2 != kept[i])
                r = cut_cable(m, faults, routers[i], direction);
        }
    }
    return r;
}

static int random_faults(const struct emu_machine *m, struct emu_fault_map *faults, uint32_t n_cables, uint32_t n_dead,
                         struct emu_random *random)
{
    const struct emu_torus *t = emu_torus_of(m);
    int r = 0;

    for (uint32_t i = 0; i < n_cables && r == 0; i++)
        r = cut_cable(m, faults, (uint32_t)emu_random_below(random, t->n_routers),
                      (uint32_t)emu_random_below(random, EMU_TORUS_DIRECTIONS));
    for (uint32_t i = 0; i < n_dead && r == 0; i++)
        r = emu_fault_map_set_router(faults, (uint32_t)emu_random_below(random, t->n_routers), false);
    return r;
}

/* Set 0 is the constructed one. Counts with retry off and on; is the relation acyclic? */
static int judge_set(struct emu_machine *const m[2], uint32_t set, uint64_t seed, uint64_t counts_out[2],
                     bool *is_acyclic)
{
    for (uint32_t retry = 0; retry < 2; retry++) {
        struct emu_random random = { .state = seed + set };
        struct emu_audit *audit = NULL;
        struct emu_fault_map *faults;
        int r = emu_fault_map_create(m[retry], &faults);

        if (r < 0)
            return r;
        r = set == 0 ? construct_faults(m[retry], faults) :
                       random_faults(m[retry], faults, 16 + 8 * (set % 8), set % 3, &random);
        if (r == 0)
            r = emu_audit_create(m[retry], m[retry]->topology->routing, faults, &audit);
        if (r == 0) {
            counts_out[retry] = count_unroutable(m[retry], faults);
            *is_acyclic = *is_acyclic && emu_audit_result(audit)->is_acyclic;
        }
        emu_audit_destroy(audit);
        emu_fault_map_destroy(faults);
        if (r < 0)
            return r;
    }
    return 0;
}

int emu_titan_unroutable(struct emu_exp *x)
{
    static const char *const specs[2] = { "gemini:x=4,y=4,z=8,tiles_x=1,tiles_y=1,tiles_z=1",
                                          "gemini:x=4,y=4,z=8,tiles_x=1,tiles_y=1,tiles_z=1,order_retry=1" };
    uint32_t n_sets = emu_exp_context(x)->is_full ? 200 : 24;
    struct emu_machine *m[2] = { NULL, NULL };
    uint64_t sums[2] = { 0, 0 };
    uint64_t constructed[2] = { 0, 0 };
    uint32_t n_worse = 0;
    bool is_acyclic = true;
    int r = emu_exp_machine(x, specs[0], &m[0]);

    if (r == 0)
        r = emu_exp_machine(x, specs[1], &m[1]);
    for (uint32_t set = 0; set <= n_sets && r == 0; set++) {
        uint64_t counts[2] = { 0, 0 };

        r = judge_set(m, set, emu_exp_context(x)->seed * 1000, counts, &is_acyclic);
        for (uint32_t retry = 0; retry < 2; retry++) {
            sums[retry] += set ? counts[retry] : 0;
            constructed[retry] = set ? constructed[retry] : counts[retry];
        }
        n_worse += counts[1] > counts[0];
        emu_exp_progress(x, (double)set / n_sets);
    }
    if (r == 0) {
        emu_exp_above(x, 'A', "constructed_without_retry", "pairs", 0, (double)constructed[0]);
        emu_exp_at_most(x, 'A', "constructed_with_retry", "pairs", (double)constructed[0], (double)constructed[1]);
        emu_exp_at_most(x, 'S', "random_sets_with_retry", "pairs", (double)sums[0], (double)sums[1]);
        emu_exp_exact(x, 'S', "sets_where_retry_is_worse", "sets", 0, n_worse);
        emu_exp_exact(x, 'A', "acyclic", "1", 1, is_acyclic);
        emu_exp_detail(
            x,
            "%u random sets of 16 to 72 cut cables and 0 to 2 dead Geminis of 4 x 4 x 8: %llu unroutable pairs of "
            "Geminis without retry, %llu with it",
            n_sets, (unsigned long long)sums[0], (unsigned long long)sums[1]);
    }
    emu_machine_destroy(m[0]);
    emu_machine_destroy(m[1]);
    return r;
}
