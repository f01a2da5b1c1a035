/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of machines that are given as a list of cables.
 *
 * Ways. A leg goes to a router with nodes, over any link that leads nearer (in dimension order where the kind says so).
 * A minimal packet has one leg. A non-minimal one has two: to a random leaf, its root, and from there to its
 * destination (Valiant). A kind without roots (a tree, whose ways up differ in their tops) takes a random one of the
 * minimal ways instead.
 *
 * Choice. The adaptive modes compare at the source (UGAL-L: A. Singh, "Load-Balanced Routing in Interconnection
 * Networks", Stanford 2005, ch. 5): the minimal way wins if
 *
 *   load x hops <= load' x hops' + routing.threshold_units << mode
 *
 * against the better of two random roots; load is what queues for the least loaded of the way's first links. A kind may
 * choose behind the first hop instead, at a router without nodes, against roots of other groups to which this router's
 * own links lead.
 *
 * Equal links are offered with equal rank, and router.choice decides. The modes that promise an order take one link and
 * channel by a hash of the pair (and, hashed modes, of the order key).
 *
 * Virtual channels, four for each class of traffic, fall into phases. A packet starts in phase 0 and goes to the next
 * one with each hop whose link's rank is not above that of the link before. So (phase, rank) only rises, and nothing
 * waits in a circle (Dally and Seitz). The topology's file shows that no way of its kind needs more phases than there
 * are.
 *
 * Faults. A hop is offered if a minimal leg from it on is whole. A packet whose minimal ways are all broken goes by a
 * root for which both legs are whole: the first from a random one on; else it is refused. A fault on its way that
 * leaves none loses it. route_state: the root + 1 until it is reached, else 0.
 */
#include "emunic/fabric/graph.h"
#include "emunic/fabric/route.h"
#include "emunic/fabric/sim/routing.h"

enum { ROOT_DRAWS = 2, ROOT_TRIES = 8 };

/* ---- ways that are whole ---- */

static bool is_whole(const struct emu_graph *g, const struct emu_fault_map *faults, uint32_t router, uint32_t leaf)
{
    uint32_t next = 0;
    uint32_t link;

    if (router == leaf)
        return true;
    while (emu_graph_next(g, router, leaf, &next, &link)) {
        if (emu_fault_map_link_up(faults, link) && is_whole(g, faults, emu_graph_to(g, link), leaf))
            return true;
    }
    return false;
}

/* May a packet take this link, on a leg to this leaf? */
static bool is_open(const struct emu_route_view *view, uint32_t link, uint32_t leaf)
{
    const struct emu_graph *g = emu_graph_of(view->machine);

    return emu_fault_map_is_clean(view->faults) ||
           (emu_fault_map_link_up(view->faults, link) && is_whole(g, view->faults, emu_graph_to(g, link), leaf));
}

/* ---- the choice at the source ---- */

static bool is_ordered(const struct emu_packet *p)
{
    return p->mode == EMU_MODE_MIN_HASH || p->mode == EMU_MODE_NMIN_HASH || p->mode == EMU_MODE_IN_ORDER ||
           p->mode == EMU_MODE_DETERMINISTIC;
}

static uint64_t hash_of(const struct emu_packet *p)
{
    bool has_key = p->mode == EMU_MODE_MIN_HASH || p->mode == EMU_MODE_NMIN_HASH;

    return emu_route_hash(p->src_nid, p->dst_nid, has_key ? p->order_key : 0);
}

/* Of the least loaded link to a leaf. */
static uint64_t load_to(const struct emu_route_view *view, const struct emu_packet *p, uint32_t router, uint32_t leaf)
{
    const struct emu_graph *g = emu_graph_of(view->machine);
    uint32_t least = UINT32_MAX;
    uint32_t next = 0;
    uint32_t link;

    while (emu_graph_next(g, router, leaf, &next, &link)) {
        uint32_t load = view->near_load(view, link, p->traffic_class);

        least = load < least ? load : least;
    }
    return least;
}

/* A leaf that is neither end of the packet. There are three leaves or more. */
static uint32_t other_leaf(const struct emu_graph *g, uint64_t number, uint32_t from, uint32_t to)
{
    uint32_t leaf = (uint32_t)(number % g->n_leaves);

    while (leaf == from || leaf == to)
        leaf = (leaf + 1) % g->n_leaves;
    return leaf;
}

static bool goes_by(const struct emu_route_view *view, uint32_t from, uint32_t root, uint32_t to)
{
    const struct emu_graph *g = emu_graph_of(view->machine);

    return is_whole(g, view->faults, from, root) && is_whole(g, view->faults, root, to);
}

/* A root for a packet that stands at a router. It is neither end of the packet; where the choice comes late, it is in
 * another group than both, and the router's own links lead there. False: the draw was none. */
static bool draw_root(const struct emu_route_view *view, const struct emu_packet *p, uint32_t router,
                      uint32_t *root_out)
{
    const struct emu_graph *g = emu_graph_of(view->machine);
    uint32_t from = p->src_nid / g->nodes;
    uint32_t to = p->dst_nid / g->nodes;
    uint32_t root = other_leaf(g, emu_random_next(view->random), from, to);

    *root_out = root;
    if (!g->kind->chooses_late)
        return true;
    return root / g->leaves_per_group != from / g->leaves_per_group &&
           root / g->leaves_per_group != to / g->leaves_per_group &&
           emu_graph_distance(g, router, root) <= emu_graph_distance(g, router, to);
}

/* UGAL-L. The root, or the destination for the minimal way. */
static uint32_t choose(const struct emu_route_view *view, const struct emu_packet *p, uint32_t from, uint32_t to)
{
    const struct emu_graph *g = emu_graph_of(view->machine);
    uint64_t minimal = load_to(view, p, from, to) * emu_graph_distance(g, from, to);
    uint64_t threshold = (uint64_t)view->machine->params.graph.threshold_units << p->mode;
    uint64_t least = UINT64_MAX;
    uint32_t best = to;

    if (minimal <= threshold)
        return to;
    for (uint32_t i = 0, n = 0; i < ROOT_TRIES && n < ROOT_DRAWS; i++) {
        uint32_t root, hops;
        uint64_t weight;

        if (!draw_root(view, p, from, &root))
            continue;
        n++;
        hops = emu_graph_distance(g, from, root) + emu_graph_distance(g, root, to);
        weight = load_to(view, p, from, root) * hops;
        if (weight < least) {
            least = weight;
            best = root;
        }
    }
    return best == to || minimal <= least + threshold ? to : best;
}

static bool is_adaptive(const struct emu_packet *p)
{
    return p->mode <= EMU_MODE_ADAPTIVE_3;
}

static uint32_t first_choice(const struct emu_route_view *view, const struct emu_packet *p, uint32_t from, uint32_t to)
{
    const struct emu_graph *g = emu_graph_of(view->machine);

    if (!g->kind->has_roots || g->n_leaves < 3)
        return to;
    if (p->mode == EMU_MODE_VALIANT)
        return other_leaf(g, emu_random_next(view->random), from, to);
    if (p->mode == EMU_MODE_NMIN_HASH)
        return other_leaf(g, hash_of(p) >> 8, from, to);
    return is_adaptive(p) && !g->kind->chooses_late ? choose(view, p, from, to) : to;
}

static bool start_packet(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    const struct emu_graph *g = emu_graph_of(view->machine);
    uint32_t to = p->dst_nid / g->nodes;
    uint32_t root;
    uint32_t first;

    p->route_state = 0;
    if (!emu_fault_map_link_up(view->faults, view->machine->n_nodes + p->dst_nid))
        return false;
    if (router == to)
        return true;
    root = first_choice(view, p, router, to);
    if (emu_fault_map_is_clean(view->faults) || goes_by(view, router, root, to)) {
        p->route_state = root == to ? 0 : root + 1;
        return true;
    }
    if (is_whole(g, view->faults, router, to))
        return true;
    first = (uint32_t)(hash_of(p) % g->n_leaves);
    for (uint32_t i = 0; i < g->n_leaves; i++) {
        root = (first + i) % g->n_leaves;
        if (root == router || root == to || !goes_by(view, router, root, to))
            continue;
        p->route_state = root + 1;
        return true;
    }
    return false;
}

/* ---- on the way ---- */

/* Channels of a link: those of a phase, without the class; a NIC's link has one phase. */
struct channels {
    uint8_t first;
    uint8_t n;
};

static struct channels nic_channels(void)
{
    return (struct channels){ 0, EMU_GRAPH_CLASS_VCS };
}

static struct channels phase_channels(const struct emu_graph *g, uint32_t phase)
{
    const uint8_t *first = &g->kind->first_vc[phase];

    return (struct channels){ first[0], (uint8_t)(first[1] - first[0]) };
}

static uint32_t phase_of(const struct emu_graph *g, uint32_t vc)
{
    uint32_t phase = 0;

    while (phase + 1 < g->kind->n_phases && g->kind->first_vc[phase + 1] <= vc % EMU_GRAPH_CLASS_VCS)
        phase++;
    return phase;
}

/* The phase behind a hop; n_phases: there is none. */
static uint32_t next_phase(const struct emu_graph *g, const struct emu_route_at *at, uint32_t link)
{
    if (at->is_entering)
        return 0;
    return phase_of(g, at->in_vc) + (emu_graph_rank(g, link) <= emu_graph_rank(g, at->in_link));
}

static struct emu_route_option option_for(const struct emu_packet *p, uint32_t link, struct channels channels,
                                          uint64_t state)
{
    uint32_t first = p->traffic_class * EMU_GRAPH_CLASS_VCS + channels.first;
    uint32_t mask = ((1u << channels.n) - 1) << first;
    struct emu_route_option option = { .link = link, .vc = (uint8_t)first, .route_state = state };

    if (is_ordered(p))
        option.vc = (uint8_t)(first + (hash_of(p) >> 48) % channels.n);
    else
        option.more_vcs = (uint8_t)(mask & ~(1u << first));
    option.flags = state != 0 ? EMU_PACKET_NONMINIMAL : 0;
    return option;
}

/* Where the choice comes late, at the packet's second router: its route_state from here on. */
static uint64_t late_choice(const struct emu_route_view *view, const struct emu_packet *p,
                            const struct emu_route_at *at)
{
    const struct emu_graph *g = emu_graph_of(view->machine);
    uint32_t to = p->dst_nid / g->nodes;
    uint32_t root;

    if (!g->kind->chooses_late || !is_adaptive(p) || p->route_state != 0 || p->hops != 1 || at->router < g->n_leaves ||
        emu_graph_distance(g, at->router, to) < 2 || g->n_leaves < 3)
        return p->route_state;
    root = choose(view, p, at->router, to);
    if (root == to || (!emu_fault_map_is_clean(view->faults) && !goes_by(view, at->router, root, to)))
        return 0;
    return root + UINT64_C(1);
}

/* Leaves the one of this number. */
static uint32_t keep_one(struct emu_route_option *options, uint32_t n, uint64_t number)
{
    if (n > 1)
        options[0] = options[number % n];
    return n > 1 ? 1 : n;
}

static uint32_t offer_ways(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                           struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_graph *g = emu_graph_of(view->machine);
    /* At the root it is forgotten. */
    uint64_t state = p->route_state == at->router + UINT64_C(1) ? 0 : late_choice(view, p, at);
    uint32_t to = state != 0 ? (uint32_t)(state - 1) : p->dst_nid / g->nodes;
    uint32_t next = 0;
    uint32_t n = 0;
    uint32_t link;

    if (at->router == to) {
        link = view->machine->n_nodes + p->dst_nid;
        options_out[0] = option_for(p, link, nic_channels(), 0);
        return emu_fault_map_link_up(view->faults, link);
    }
    while (emu_graph_next(g, at->router, to, &next, &link)) {
        uint32_t phase = next_phase(g, at, link);
        struct emu_route_option option;

        if (phase >= g->kind->n_phases || !is_open(view, link, to))
            continue;
        option = option_for(p, link, phase_channels(g, phase), state);
        /* More links than a call may offer: each is as likely to be among those that are. */
        if (n < EMU_ROUTE_OPTIONS_MAX)
            options_out[n++] = option;
        else
            options_out[emu_random_below(view->random, EMU_ROUTE_OPTIONS_MAX)] = option;
    }
    if (is_ordered(p))
        return keep_one(options_out, n, emu_random_mix(hash_of(p) + at->router));
    if (p->mode == EMU_MODE_VALIANT && !g->kind->has_roots && n > 1)
        return keep_one(options_out, n, emu_random_next(view->random));
    return n;
}

static uint32_t n_vcs_of(const struct emu_machine *m, enum emu_link_class link_class)
{
    (void)m;
    (void)link_class;
    return EMU_TRAFFIC_CLASSES * EMU_GRAPH_CLASS_VCS;
}

static void describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                        struct emu_vc_info *info_out)
{
    (void)link_class;
    *info_out = (struct emu_vc_info){
        .capacity_units = m->params.router.vc_units,
        .traffic_class = (uint8_t)(vc / EMU_GRAPH_CLASS_VCS),
        .is_escape = true,
    };
}

/* ---- dependencies ---- */

/* Who is told of dependencies of a class of traffic. */
struct walk {
    const struct emu_machine *m;
    const struct emu_fault_map *faults;
    uint32_t traffic_class;
    void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc);
    void *ctx;
};

static void visit_all(const struct walk *w, uint32_t link, struct channels from, uint32_t next, struct channels to)
{
    uint32_t first = w->traffic_class * EMU_GRAPH_CLASS_VCS;

    if (!emu_fault_map_link_up(w->faults, next))
        return;
    for (uint32_t i = 0; i < from.n; i++) {
        for (uint32_t j = 0; j < to.n; j++)
            w->visit(w->ctx, link, first + from.first + i, next, first + to.first + j);
    }
}

/* Of a link into a router, in a phase of its own, on the nodes there and on the links onward. */
static void visit_onward(const struct walk *w, const struct emu_route_at *at)
{
    const struct emu_graph *g = emu_graph_of(w->m);
    struct channels from = at->is_entering ? nic_channels() : phase_channels(g, phase_of(g, at->in_vc));

    if (at->router < g->n_leaves) {
        for (uint32_t i = 0; i < g->nodes; i++)
            visit_all(w, at->in_link, from, w->m->n_nodes + at->router * g->nodes + i, nic_channels());
    }
    for (uint32_t k = g->first_out[at->router]; k < g->first_out[at->router + 1]; k++) {
        uint32_t phase = next_phase(g, at, g->outs[k]);

        if (phase < g->kind->n_phases)
            visit_all(w, at->in_link, from, g->outs[k], phase_channels(g, phase));
    }
}

static void list_class(const struct walk *w)
{
    const struct emu_graph *g = emu_graph_of(w->m);

    for (uint32_t nid = 0; nid < w->m->n_nodes; nid++) {
        if (emu_fault_map_link_up(w->faults, nid))
            visit_onward(w, &(struct emu_route_at){ .router = nid / g->nodes, .in_link = nid, .is_entering = true });
    }
    for (uint32_t link = g->first_link; link < w->m->n_links; link++) {
        for (uint32_t phase = 0; phase < g->kind->n_phases && emu_fault_map_link_up(w->faults, link); phase++)
            visit_onward(w, &(struct emu_route_at){
                                .router = emu_graph_to(g, link), .in_link = link, .in_vc = g->kind->first_vc[phase] });
    }
}

static void list_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                              void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link,
                                            uint32_t next_vc),
                              void *ctx)
{
    struct walk w = { .m = m, .faults = faults, .visit = visit, .ctx = ctx };

    for (w.traffic_class = 0; w.traffic_class < EMU_TRAFFIC_CLASSES; w.traffic_class++)
        list_class(&w);
}

const struct emu_routing emu_routing_graph = {
    .n_vcs = n_vcs_of,
    .vc = describe_vc,
    .start = start_packet,
    .options = offer_ways,
    .dependencies = list_dependencies,
    .reads_router = true,
    .reads_loads = true,
};
