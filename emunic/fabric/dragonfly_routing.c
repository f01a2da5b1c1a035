/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of the Dragonfly (Aries).
 *
 * Ways. A leg takes a packet from one router to another: green then black within a group; between groups green, black
 * to a gateway, one blue link, green, black. A minimal packet has one leg. A non-minimal one has two, "up" to a random
 * router, the root, and "down" to its destination; the root is in the group if both ends are in it, else anywhere.
 * Of the blue links of a bundle a leg uses one of those that make it shortest.
 *
 * Choice. The source router proposes two minimal and two non-minimal ways at random, weighs each and takes the
 * lightest. The weight is what queues for the first output, and routing.far_percent of what queues for the second one,
 * as the router behind the first last advertised it (old by up to the update period and a hop); and the packet itself,
 * so that in a quiet network all ways weigh the same. What queues is what waits for the link or, of the packet's class,
 * is not yet credited (near end, and an estimate of the far end), without what a busy link has under way when nothing
 * queues. The lightest minimal way wins if weight <= (weight of the lightest non-minimal way << shift) + add +
 * routing.threshold_flits; shift and add belong to the packet's mode. The threshold is for ways between groups: one NIC
 * has four heads that wait, no more, so a pair within a group would never use more than one link.
 *
 * A load from afar is that of the output that the way would take. A mean over all links of the neighbour would count in
 * both weights, and twice in that of the non-minimal way: then a group that is full sends all it has over its direct
 * bundle, and accepts less the more is offered (before: 0.76 of Valiant's throughput on 4 groups with shift).
 *
 * Progressive. A packet that goes directly to another group weighs its way again at each later router of its own group,
 * against two non-minimal ways that it can reach in the order of channel 0: the blue links of this router and, if it
 * came over a green link, those of the same slot in the other chassis. Modes with a bias for each hop are ever less
 * willing. Else routers keep to the way; they choose among parallel links only (three black ones, the two blue ones of
 * a cable that join the same two routers). The hashed modes draw the same proposals from a generator that starts with a
 * hash of (source, destination, mode, order key), take the first and no parallel link: one path for one hash. IN_ORDER
 * leaves the order key out.
 *
 * Virtual channels, four for each class of traffic:
 *
 *   0  source group and the blue link of the up leg, or of the only leg        green black blue
 *   1  up leg behind its blue link                                             green black
 *   2  down leg in the root's group, and its blue link                         green black blue
 *   3  destination group, behind a blue link or a root of the same group       green black
 *
 * A NIC enters by four queues of each class, one per processor tile that it reaches; the Netlink deals packets to them
 * by load, one by one.
 *
 * Each way is strictly rising in (channel, green < black < blue), so nothing waits in a circle (Dally and Seitz). The
 * longest is 2 + 1 + 2 + 2 + 1 + 2 = 10 hops.
 *
 * Faults. The fault map is what the route tables know. Proposals that cross something dead are drawn again; if luck
 * does not help all ways are tried, so that only a pair without any legal way is refused. A packet on its way that
 * finds its next output dead takes a parallel link, or makes a router of the group it is in its root (channels 1, 2 and
 * 3 are still free to a packet on 0; 2 and 3 to one on 1), or another blue link that it can reach in order. If none of
 * these helps it has no way on.
 *
 * Source: spec/machines.md 2.2 (XCWP; channels, bias and hash are ours).
 */
#include "emunic/fabric/dragonfly_routing.h"

#include "emunic/fabric/dragonfly_channels.h"
#include "emunic/fabric/dragonfly_inner.h"
#include "emunic/fabric/route.h"
#include "emunic/fabric/xc_rules.h"

enum {
    PROPOSALS = 2,                            /* of each kind */
    DRAWS = 8,                                /* of a proposal, before all ways are tried */
    BLUE_SET_WORDS_MAX = (2 * 240 + 63) / 64, /* 240 cables are all that a group has */
};

/* A packet's way, as route_state keeps it. */
struct way {
    uint32_t root;
    uint16_t up;   /* blue link of the up leg: 4 x cable + link in its bundle */
    uint16_t down; /* of the down leg, or of the only one */
    uint8_t vc;    /* for the next hop, without the class */
    uint8_t black; /* four times two bits: black link for each channel, if the way is fixed */
    bool is_up;
    bool is_fixed; /* no choice among parallel links */
};

enum { ROOT_BITS = 16, BLUE_BITS = 10, VC_BITS = 2, BLACK_BITS = 8 };

/* One hop: the parallel links that make it, and where it leads. */
struct step {
    enum emu_link_class link_class; /* PROCESSOR_OUT: the packet has arrived */
    uint32_t links[BLACK_LINKS];
    uint32_t n_links;
    struct spot to;
    struct way way; /* of the packet behind it */
    uint8_t vc;
};

static struct network network_of(const struct emu_route_view *view)
{
    return (struct network){
        .d = emu_dragonfly_of(view->machine),
        .faults = emu_fault_map_is_clean(view->faults) ? NULL : view->faults,
    };
}

/* ---- A way in 64 bits ---- */

static uint64_t pack_way(const struct way *w)
{
    uint64_t state = w->is_up;

    state = state << 1 | w->is_fixed;
    state = state << BLACK_BITS | w->black;
    state = state << VC_BITS | w->vc;
    state = state << BLUE_BITS | w->down;
    state = state << BLUE_BITS | w->up;
    return state << ROOT_BITS | w->root;
}

static uint32_t take_bits(uint64_t *state, uint32_t n_bits)
{
    uint32_t value = (uint32_t)(*state & ((UINT64_C(1) << n_bits) - 1));

    *state >>= n_bits;
    return value;
}

static struct way unpack_way(uint64_t state)
{
    struct way w;

    w.root = take_bits(&state, ROOT_BITS);
    w.up = (uint16_t)take_bits(&state, BLUE_BITS);
    w.down = (uint16_t)take_bits(&state, BLUE_BITS);
    w.vc = (uint8_t)take_bits(&state, VC_BITS);
    w.black = (uint8_t)take_bits(&state, BLACK_BITS);
    w.is_fixed = take_bits(&state, 1) != 0;
    w.is_up = take_bits(&state, 1) != 0;
    return w;
}

bool emu_dragonfly_has_root(const struct emu_packet *p, uint32_t *router_out)
{
    struct way w = unpack_way(p->route_state);

    *router_out = w.root;
    return w.is_up;
}

/* ---- steps ---- */

/* Links 0 and 2 of a cable join the same two routers, and so do 1 and 3. Ids of a cable are consecutive from link 0. */
static uint32_t twin_of(uint32_t link, uint32_t blue)
{
    return blue & 2 ? link - 2 : link + 2;
}

static void step_within_group(const struct dragonfly *d, const struct spot *here, const struct spot *to, struct step *s)
{
    s->to = *here;
    if (here->blade != to->blade) {
        s->link_class = EMU_LINK_GREEN;
        s->links[0] = green_link(d, here, to->blade);
        s->n_links = 1;
        s->to.blade = to->blade;
        return;
    }
    s->link_class = EMU_LINK_BLACK;
    for (uint32_t i = 0; i < BLACK_LINKS; i++)
        s->links[i] = black_link(d, here, to->chassis, i);
    s->n_links = BLACK_LINKS;
    s->to.chassis = to->chassis;
}

/* Where a packet with this way goes from here. */
static void next_step(const struct dragonfly *d, const struct way *way, const struct spot *here, const struct spot *dst,
                      struct step *s)
{
    struct spot target = *dst;
    struct crossing c;
    uint32_t blue;

    s->way = *way;
    if (way->is_up) {
        target = spot_of_router(d, way->root);
        if (is_same_spot(here, &target)) {
            s->way.is_up = false;
            s->way.vc = here->group == dst->group ? 3 : 2;
            target = *dst;
        }
    }
    s->vc = s->way.vc;
    if (is_same_spot(here, &target)) {
        s->link_class = EMU_LINK_PROCESSOR_OUT;
        s->n_links = 0;
        return;
    }
    if (here->group == target.group) {
        step_within_group(d, here, &target, s);
        return;
    }
    blue = s->way.is_up ? s->way.up : s->way.down;
    c = crossing_of(d, here->group, target.group, blue);
    if (!is_same_spot(here, &c.from)) {
        step_within_group(d, here, &c.from, s);
        return;
    }
    s->link_class = EMU_LINK_BLUE;
    s->links[0] = c.link;
    s->links[1] = twin_of(c.link, blue);
    s->n_links = 2;
    s->to = c.to;
    s->way.vc = s->way.is_up ? 1 : 3;
}

/* ---- what is open ---- */

static bool is_open_within_group(const struct network *n, const struct spot *from, const struct spot *to)
{
    struct spot at = *from;

    if (at.blade != to->blade) {
        if (!is_up(n, green_link(n->d, &at, to->blade)))
            return false;
        at.blade = to->blade;
    }
    if (at.chassis == to->chassis)
        return true;
    for (uint32_t i = 0; i < BLACK_LINKS; i++) {
        if (is_up(n, black_link(n->d, &at, to->chassis, i)))
            return true;
    }
    return false;
}

static bool is_leg_open(const struct network *n, const struct spot *from, const struct spot *to, uint32_t blue)
{
    struct crossing c;

    if (!n->faults)
        return true;
    if (from->group == to->group)
        return is_open_within_group(n, from, to);
    c = crossing_of(n->d, from->group, to->group, blue);
    return (is_up(n, c.link) || is_up(n, twin_of(c.link, blue))) && is_open_within_group(n, from, &c.from) &&
           is_open_within_group(n, &c.to, to);
}

/* ---- proposals ---- */

/* The bit of a set that is number `n` of its members. */
static uint32_t member_of_set(const uint64_t *set, uint32_t n)
{
    uint32_t word = 0;
    uint64_t bits;

    for (; n >= (uint32_t)__builtin_popcountll(set[word]); word++)
        n -= (uint32_t)__builtin_popcountll(set[word]);
    for (bits = set[word]; n > 0; n--)
        bits &= bits - 1;
    return word * 64 + (uint32_t)__builtin_ctzll(bits);
}

/* The same as draw_blue(), by sets: a leg has a hop less for each of chassis and blade, here and there, that a link has
 * in common with it. Adds up these four for 64 links at once, digit by digit. */
static uint16_t draw_blue_by_sets(const struct dragonfly *d, const struct spot *from, const struct spot *to,
                                  struct emu_random *random)
{
    const uint64_t *chassis = blue_set_of_chassis(d, from->group, to->group, from->chassis);
    const uint64_t *blade = blue_set_of_blade(d, from->group, to->group, from->blade);
    const uint64_t *far_chassis = blue_set_of_chassis(d, to->group, from->group, to->chassis);
    const uint64_t *far_blade = blue_set_of_blade(d, to->group, from->group, to->blade);
    uint32_t n_words = blue_set_words(d);
    uint64_t in_common[5][BLUE_SET_WORDS_MAX];
    uint32_t most = 4;
    uint32_t count = 0;
    uint64_t drawn;
    uint32_t bit;

    for (uint32_t i = 0; i < n_words; i++) {
        uint32_t n_links = 2 * d->bundle - 64 * i;
        uint64_t all = n_links < 64 ? (UINT64_C(1) << n_links) - 1 : ~UINT64_C(0);
        uint64_t one = chassis[i] ^ blade[i];
        uint64_t two = chassis[i] & blade[i];
        uint64_t far_one = far_chassis[i] ^ far_blade[i];
        uint64_t far_two = far_chassis[i] & far_blade[i];
        uint64_t ones = one ^ far_one;
        uint64_t twos = two ^ far_two ^ (one & far_one);

        in_common[0][i] = all & ~(ones | twos | (two & far_two));
        in_common[1][i] = ones & ~twos;
        in_common[2][i] = twos & ~ones;
        in_common[3][i] = ones & twos;
        in_common[4][i] = two & far_two;
    }
    for (;; most--) {
        for (uint32_t i = 0; i < n_words; i++)
            count += (uint32_t)__builtin_popcountll(in_common[most][i]);
        if (count > 0)
            break;
    }
    drawn = emu_random_below(random, count * 2);
    bit = member_of_set(in_common[most], (uint32_t)(drawn / 2));
    return (uint16_t)(bit / 2 * EMU_XC_LINKS_PER_CABLE + bit % 2 + (drawn % 2) * 2);
}

/* A random blue link among those that make the leg shortest. */
static uint16_t draw_blue(const struct dragonfly *d, const struct spot *from, const struct spot *to,
                          struct emu_random *random)
{
    const struct bundle b = bundle_between(d, from->group, to->group);
    uint16_t shortest[2 * BLUE_SETS_FROM];
    uint32_t fewest = UINT32_MAX;
    uint32_t count = 0;
    uint64_t drawn;

    if (d->sets)
        return draw_blue_by_sets(d, from, to, random);
    for (uint32_t cable = 0; cable < d->bundle; cable++) {
        for (uint32_t number = 0; number < 2; number++) {
            const struct crossing c = crossing_at(d, &b, cable, number);
            uint32_t hops = crossing_hops(from, to, &c);

            if (hops > fewest)
                continue;
            if (hops < fewest) {
                fewest = hops;
                count = 0;
            }
            shortest[count++] = (uint16_t)(cable * EMU_XC_LINKS_PER_CABLE + number);
        }
    }
    drawn = emu_random_below(random, count * 2);
    return (uint16_t)(shortest[drawn / 2] + (drawn % 2) * 2);
}

/* A random blue link of a router, and the group that it leads to; false: it has none. */
static bool draw_blue_of(const struct dragonfly *d, const struct spot *from, struct emu_random *random,
                         uint32_t *peer_out, uint32_t *blue_out)
{
    const struct pair_cables *pair = pair_of(d, from);
    uint32_t drawn, cable, number;

    if (pair->n == 0)
        return false;
    drawn = (uint32_t)emu_random_below(random, pair->n * EMU_XC_LINKS_PER_CABLE / 2);
    cable = pair->cables[drawn / 2];
    number = from->blade % 2;
    if (number == 0 && from->blade + 1u == d->blades) /* no partner */
        number = (uint32_t)emu_random_below(random, 2);
    *peer_out = peer_of_number(from->group, cable / d->bundle);
    *blue_out = cable % d->bundle * EMU_XC_LINKS_PER_CABLE + number + drawn % 2 * 2;
    return true;
}

/* Every blue link of the bundle in turn, from a random one on. */
static bool search_blue(const struct network *n, const struct spot *from, const struct spot *to,
                        struct emu_random *random, uint16_t *blue_out)
{
    uint32_t n_links = n->d->bundle * EMU_XC_LINKS_PER_CABLE;
    uint32_t first = (uint32_t)emu_random_below(random, n_links);

    for (uint32_t i = 0; i < n_links; i++) {
        uint32_t blue = (first + i) % n_links;

        if (is_leg_open(n, from, to, blue)) {
            *blue_out = (uint16_t)blue;
            return true;
        }
    }
    return false;
}

/* Decides which blue link a leg takes, if it needs one. False: no way. */
static bool plan_leg(const struct network *n, const struct spot *from, const struct spot *to, struct emu_random *random,
                     uint16_t *blue_out)
{
    *blue_out = 0;
    if (from->group == to->group)
        return is_leg_open(n, from, to, 0);
    for (uint32_t i = 0; i < DRAWS; i++) {
        *blue_out = draw_blue(n->d, from, to, random);
        if (is_leg_open(n, from, to, *blue_out))
            return true;
    }
    return search_blue(n, from, to, random, blue_out);
}

static bool plan_minimal(const struct network *n, const struct spot *src, const struct spot *dst,
                         struct emu_random *random, struct way *w)
{
    w->is_up = false;
    w->root = 0;
    w->up = 0;
    return plan_leg(n, src, dst, random, &w->down);
}

/* The up leg to a router, which becomes the root; the down leg is planned for the way that is taken. */
static bool plan_up(const struct network *n, const struct spot *src, const struct spot *dst, uint32_t root,
                    struct emu_random *random, struct way *w)
{
    const struct spot at = spot_of_router(n->d, root);

    if (is_same_spot(&at, src) || is_same_spot(&at, dst))
        return false;
    w->is_up = true;
    w->root = root;
    w->down = 0;
    return plan_leg(n, src, &at, random, &w->up);
}

static bool plan_down(const struct network *n, const struct spot *dst, struct emu_random *random, struct way *w)
{
    const struct spot root = spot_of_router(n->d, w->root);

    return !w->is_up || plan_leg(n, &root, dst, random, &w->down);
}

/* Routers that may be the root: those of the group if both ends are in it, else all. */
static void root_range(const struct dragonfly *d, const struct spot *src, const struct spot *dst, uint32_t *first_out,
                       uint32_t *count_out)
{
    *first_out = 0;
    *count_out = d->n_routers;
    if (src->group == dst->group) {
        *first_out = src->group * d->routers_per_group;
        *count_out = chassis_of_group(d, src->group) * d->blades;
    }
}

static bool plan_nonminimal(const struct network *n, const struct spot *src, const struct spot *dst,
                            struct emu_random *random, struct way *w)
{
    uint32_t first, count;

    root_range(n->d, src, dst, &first, &count);
    for (uint32_t i = 0; i < DRAWS; i++) {
        if (plan_up(n, src, dst, first + (uint32_t)emu_random_below(random, count), random, w))
            return true;
    }
    return false;
}

/* Every root in turn: when luck did not find one, or nothing else is open. */
static bool search_nonminimal(const struct network *n, const struct spot *src, const struct spot *dst,
                              struct emu_random *random, struct way *w)
{
    uint32_t first, count, start;

    root_range(n->d, src, dst, &first, &count);
    start = (uint32_t)emu_random_below(random, count);
    for (uint32_t i = 0; i < count; i++) {
        if (plan_up(n, src, dst, first + (start + i) % count, random, w) && plan_down(n, dst, random, w))
            return true;
    }
    return false;
}

/* ---- choice at the source ---- */

static uint32_t beyond(uint32_t load, uint32_t quiet)
{
    return load > quiet ? load - quiet : 0;
}

/* A packet that looks for a way from a router; all borrowed. */
struct search {
    const struct emu_route_view *view;
    const struct network *n;
    const struct emu_packet *p;
    const struct spot *here;
    const struct spot *dst;
    bool is_behind_black; /* re-choice: only blue links of this router are left */
};

/* What queues for the least loaded link of a step; UINT32_MAX: none is up. */
static uint32_t queue_of(const struct search *q, const struct step *s,
                         uint32_t (*load)(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class))
{
    uint32_t quiet = q->n->d->under_way[s->link_class];
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < s->n_links; i++) {
        uint32_t queue;

        if (!is_up(q->n, s->links[i]))
            continue;
        queue = beyond(load(q->view, s->links[i], q->p->traffic_class), quiet);
        if (queue < least)
            least = queue;
    }
    return least;
}

static uint32_t weight_of(const struct search *q, const struct way *w)
{
    uint32_t far_percent = q->view->machine->params.dragonfly.far_percent;
    uint32_t far = 0;
    struct step s, next;
    uint32_t near;

    next_step(q->n->d, w, q->here, q->dst, &s);
    near = queue_of(q, &s, q->view->near_load);
    if (near == UINT32_MAX)
        return near;
    next_step(q->n->d, &s.way, &s.to, q->dst, &next);
    if (next.link_class != EMU_LINK_PROCESSOR_OUT)
        far = queue_of(q, &next, q->view->far_load);
    if (far == UINT32_MAX)
        return far;
    return near + far * far_percent / 100 + q->p->units;
}

/* A kind of proposal. */
typedef bool plan_fn(const struct search *q, struct way *w);

static bool plan_directly(const struct search *q, struct way *w)
{
    return plan_minimal(q->n, q->here, q->dst, q->view->random, w);
}

static bool plan_by_any_root(const struct search *q, struct way *w)
{
    return plan_nonminimal(q->n, q->here, q->dst, q->view->random, w) && plan_down(q->n, q->dst, q->view->random, w);
}

/* The same from a later router of the source group, in the order of channel 0: by a blue link of this router or, if
 * the packet came over a green link, of one in the same slot of another chassis. */
static bool plan_onward(const struct search *q, struct way *w)
{
    const struct dragonfly *d = q->n->d;
    struct emu_random *random = q->view->random;
    struct spot from = *q->here;
    uint32_t peer, blue;
    struct spot root;

    if (!q->is_behind_black)
        from.chassis = (uint8_t)emu_random_below(random, chassis_of_group(d, from.group));
    if (!draw_blue_of(d, &from, random, &peer, &blue) || peer == q->dst->group)
        return false;
    *w = (struct way){ .is_up = true, .up = (uint16_t)blue };
    w->root = peer * d->routers_per_group + (uint32_t)emu_random_below(random, chassis_of_group(d, peer) * d->blades);
    root = spot_of_router(d, w->root);
    return is_leg_open(q->n, q->here, &root, blue) && plan_down(q->n, q->dst, random, w);
}

/* The lightest of some proposals. False: none is open. */
static bool propose(const struct search *q, plan_fn *plan, struct way *best_out, uint32_t *weight_out)
{
    bool is_found = false;

    for (uint32_t i = 0; i < PROPOSALS; i++) {
        struct way w = { 0 };
        uint32_t weight;

        if (!plan(q, &w))
            continue;
        weight = weight_of(q, &w);
        if (is_found && weight >= *weight_out)
            continue;
        is_found = true;
        *best_out = w;
        *weight_out = weight;
        if (weight <= q->p->units)
            break; /* nothing is lighter */
    }
    return is_found;
}

/* May the minimal way have this weight, held against the non-minimal one? */
static bool is_minimal_better(const struct search *q, uint32_t minimal, uint32_t nonminimal)
{
    const struct emu_dragonfly_params *params = &q->view->machine->params.dragonfly;
    uint32_t mode = q->p->mode <= EMU_MODE_ADAPTIVE_3 ? q->p->mode : EMU_MODE_ADAPTIVE_0;
    const struct emu_dragonfly_bias *bias = &params->bias[mode];
    uint64_t add = bias->add_flits + (uint64_t)bias->add_flits_per_hop * q->p->hops;

    if (q->here->group != q->dst->group)
        add += params->threshold_flits;

    return minimal <= ((uint64_t)nonminimal << bias->shift) + add;
}

static bool choose_adaptively(const struct search *q, struct way *w)
{
    uint32_t minimal_weight = 0;
    uint32_t nonminimal_weight = 0;
    struct way minimal, nonminimal;
    bool has_minimal = propose(q, plan_directly, &minimal, &minimal_weight);
    bool has_nonminimal;

    if (has_minimal && is_minimal_better(q, minimal_weight, q->p->units)) { /* no other can be better */
        *w = minimal;
        return true;
    }
    has_nonminimal = propose(q, plan_by_any_root, &nonminimal, &nonminimal_weight);
    if (has_minimal && (!has_nonminimal || is_minimal_better(q, minimal_weight, nonminimal_weight))) {
        *w = minimal;
        return true;
    }
    if (has_nonminimal)
        *w = nonminimal;
    return has_nonminimal;
}

/* One path for one hash. */
static bool choose_by_hash(const struct search *q, struct way *w)
{
    const struct emu_packet *p = q->p;
    bool has_key = p->mode == EMU_MODE_MIN_HASH || p->mode == EMU_MODE_NMIN_HASH;
    uint64_t hash = emu_route_hash(p->src_nid, p->dst_nid, p->mode);
    struct emu_random random = { .state = has_key ? emu_random_mix(hash ^ emu_random_mix(p->order_key)) : hash };
    bool is_found = false;

    if (p->mode == EMU_MODE_NMIN_HASH)
        is_found = plan_nonminimal(q->n, q->here, q->dst, &random, w) && plan_down(q->n, q->dst, &random, w);
    if (!is_found)
        is_found = plan_minimal(q->n, q->here, q->dst, &random, w);
    if (!is_found)
        is_found = search_nonminimal(q->n, q->here, q->dst, &random, w);
    w->is_fixed = true;
    for (uint32_t vc = 0; vc < EMU_DRAGONFLY_CLASS_VCS; vc++)
        w->black = (uint8_t)(w->black << 2 | emu_random_below(&random, BLACK_LINKS));
    return is_found;
}

static bool choose(const struct search *q, struct way *w)
{
    uint32_t weight = 0;

    switch ((enum emu_route_mode)q->p->mode) {
    case EMU_MODE_MINIMAL:
        return propose(q, plan_directly, w, &weight);
    case EMU_MODE_VALIANT:
        return propose(q, plan_by_any_root, w, &weight) || propose(q, plan_directly, w, &weight);
    case EMU_MODE_MIN_HASH:
    case EMU_MODE_NMIN_HASH:
    case EMU_MODE_IN_ORDER:
    case EMU_MODE_DETERMINISTIC:
        return choose_by_hash(q, w);
    default:
        return choose_adaptively(q, w);
    }
}

static bool start_packet(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    const struct network n = network_of(view);
    const struct spot src = spot_of_router(n.d, router);
    const struct spot dst = spot_of_router(n.d, p->dst_nid / NODES_PER_BLADE);
    const struct search q = { .view = view, .n = &n, .p = p, .here = &src, .dst = &dst };
    struct way w = { 0 };

    if (!is_up(&n, n.d->first_link[EMU_LINK_PROCESSOR_OUT] + p->dst_nid))
        return false;
    if (!is_same_spot(&src, &dst) && !choose(&q, &w) && !search_nonminimal(&n, &src, &dst, view->random, &w))
        return false;
    p->route_state = pack_way(&w);
    if (w.is_up)
        p->flags |= EMU_PACKET_NONMINIMAL;
    return true;
}

/* ---- around what broke while the packet was on its way ---- */

/* The way from a router, as if it were the root: channels 2 and 3. */
static bool go_down(const struct network *n, const struct spot *here, const struct spot *dst, struct emu_random *random,
                    struct way *w)
{
    w->is_up = false;
    w->vc = here->group == dst->group ? 3 : 2;
    return plan_leg(n, here, dst, random, &w->down);
}

/* Another root in this group, on channel 1 or 2. */
static bool go_by_neighbour(const struct network *n, const struct spot *here, const struct spot *dst, uint8_t vc,
                            struct emu_random *random, struct way *w)
{
    uint32_t first = here->group * n->d->routers_per_group;
    uint32_t count = chassis_of_group(n->d, here->group) * n->d->blades;
    uint32_t start = (uint32_t)emu_random_below(random, count);

    w->vc = vc;
    for (uint32_t i = 0; i < count; i++) {
        if (plan_up(n, here, dst, first + (start + i) % count, random, w) && plan_down(n, dst, random, w))
            return true;
    }
    return false;
}

/* On the way to a gateway on channel 2: another blue link of this router, or of this slot if no black one was taken. */
static bool change_gateway(const struct network *n, const struct spot *here, const struct spot *dst,
                           bool may_take_black, struct way *w)
{
    uint32_t n_links = n->d->bundle * EMU_XC_LINKS_PER_CABLE;

    for (uint32_t blue = 0; blue < n_links && here->group != dst->group; blue++) {
        const struct crossing c = crossing_of(n->d, here->group, dst->group, blue);

        if (c.from.blade != here->blade || (c.from.chassis != here->chassis && !may_take_black))
            continue;
        if (is_leg_open(n, here, dst, blue)) {
            w->down = (uint16_t)blue;
            return true;
        }
    }
    return false;
}

/* False: the packet is lost. */
static bool detour(const struct search *q, const struct emu_route_at *at, struct way *w)
{
    const struct network *n = q->n;
    const struct emu_packet *p = q->p;
    const struct spot *here = q->here;
    const struct spot *dst = q->dst;
    struct emu_random random = { .state = emu_route_hash(p->src_nid, p->dst_nid, p->order_key ^ p->created_ps) };
    struct emu_link in;

    if (at->is_entering)
        return plan_minimal(n, here, dst, &random, w) || search_nonminimal(n, here, dst, &random, w);
    (void)emu_link_get(q->view->machine, at->in_link, &in);
    switch (at->in_vc % EMU_DRAGONFLY_CLASS_VCS) {
    case 0:
        return go_down(n, here, dst, &random, w) || go_by_neighbour(n, here, dst, 1, &random, w);
    case 1:
        return go_down(n, here, dst, &random, w) ||
               (here->group == dst->group && go_by_neighbour(n, here, dst, 2, &random, w));
    case 2:
        return in.link_class != EMU_LINK_BLUE && change_gateway(n, here, dst, in.link_class == EMU_LINK_GREEN, w);
    default:
        return false;
    }
}

/* ---- ways on ---- */

static uint32_t offer(const struct network *n, const struct step *s, uint8_t traffic_class, uint8_t flags,
                      struct emu_route_option *options_out)
{
    uint64_t state = pack_way(&s->way);
    uint32_t first = 0;
    uint32_t count = 0;

    if (s->way.is_fixed && s->link_class == EMU_LINK_BLACK)
        first = (s->way.black >> (2 * s->vc)) & 3;
    for (uint32_t i = 0; i < s->n_links; i++) {
        uint32_t link = s->links[(first + i) % s->n_links];

        if (!is_up(n, link))
            continue;
        options_out[count++] = (struct emu_route_option){
            .link = link,
            .vc = (uint8_t)(s->vc + traffic_class * EMU_DRAGONFLY_CLASS_VCS),
            .flags = flags,
            .route_state = state,
        };
        if (s->way.is_fixed)
            break;
    }
    return count;
}

/*
 * Progressive: a packet that still goes directly weighs its way anew at each later router of its source group, as long
 * as it can reach another group in order, that is on channel 0. False: it keeps to its way.
 */
static bool choose_anew(const struct search *q, const struct emu_route_at *at, struct way *w)
{
    uint32_t nonminimal_weight = 0;
    struct way nonminimal = { 0 };
    uint32_t minimal_weight;

    if (at->is_entering || w->is_up || w->is_fixed || at->in_vc % EMU_DRAGONFLY_CLASS_VCS != 0 ||
        q->p->mode > EMU_MODE_ADAPTIVE_3 || q->here->group == q->dst->group ||
        q->here->group != spot_of_router(q->n->d, q->p->src_nid / NODES_PER_BLADE).group)
        return false;
    minimal_weight = weight_of(q, w);
    if (is_minimal_better(q, minimal_weight, q->p->units))
        return false;
    if (!propose(q, plan_onward, &nonminimal, &nonminimal_weight) ||
        is_minimal_better(q, minimal_weight, nonminimal_weight))
        return false;
    *w = nonminimal;
    return true;
}

/* To the NIC: the packet is at its last router. */
static uint32_t deliver(const struct network *n, const struct emu_packet *p,
                        struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    uint32_t link = n->d->first_link[EMU_LINK_PROCESSOR_OUT] + p->dst_nid;

    if (!is_up(n, link))
        return 0;
    options_out[0] = (struct emu_route_option){
        .link = link,
        .vc = p->traffic_class,
        .route_state = p->route_state,
    };
    return 1;
}

static uint32_t ways_on(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                        struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct network n = network_of(view);
    const struct spot here = spot_of_router(n.d, at->router);
    const struct spot dst = spot_of_router(n.d, p->dst_nid / NODES_PER_BLADE);
    const struct search q = { .view = view,
                              .n = &n,
                              .p = p,
                              .here = &here,
                              .dst = &dst,
                              .is_behind_black = at->in_link >= n.d->first_link[EMU_LINK_BLACK] };
    struct way w = unpack_way(p->route_state);
    struct step s;
    uint32_t count;
    uint8_t flags = choose_anew(&q, at, &w) ? EMU_PACKET_NONMINIMAL : 0;

    next_step(n.d, &w, &here, &dst, &s);
    if (s.link_class == EMU_LINK_PROCESSOR_OUT)
        return deliver(&n, p, options_out);
    count = offer(&n, &s, p->traffic_class, flags, options_out);
    if (count > 0 || !detour(&q, at, &w))
        return count;
    next_step(n.d, &w, &here, &dst, &s);
    if (s.link_class == EMU_LINK_PROCESSOR_OUT) /* it was only passing its destination */
        return deliver(&n, p, options_out);
    return offer(&n, &s, p->traffic_class, EMU_PACKET_DETOUR | (w.is_up ? EMU_PACKET_NONMINIMAL : 0), options_out);
}

const struct emu_routing emu_routing_dragonfly = {
    .n_vcs = emu_dragonfly_n_vcs,
    .vc = emu_dragonfly_describe_vc,
    .start = start_packet,
    .options = ways_on,
    .dependencies = emu_dragonfly_visit_dependencies,
    .options_max = BLACK_LINKS,
    .reads_router = true,
    .reads_loads = true,
    .reads_far_loads = true,
};
