/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of the Blue Gene/L torus.
 *
 * Hint bits. A packet has up to six, at most one per dimension: the directions in which it has to go. Hardware
 * computes the minimal ones; software may give others, once. The bit of a dimension clears when the packet leaves for
 * the coordinate of its destination, which hardware sees in its neighbour coordinate registers. Here a packet carries
 * the sign and the number of hops to go in each dimension instead of bits and coordinates: the same thing, without a
 * division per hop. Two nodes at opposite places of a ring have two equal ways; the parity of the other coordinates
 * chooses [OUR], so that for each source half of such destinations go either way, and a pair always the same one.
 *
 * Channels of a link, by number:
 *   0 .. dynamic_vcs - 1   dynamic: any packet of the normal class in dynamic mode, in any direction it has a hint for
 *   dynamic_vcs            escape: bubble, or the lower one of a dateline pair
 *   dynamic_vcs + 1        with datelines: the higher one
 *   last                   high priority: a bubble channel, in the order of the escape channel
 *
 * A dynamic packet asks for the dynamic channels of all its directions alike (rank 0), and for the escape channel only
 * if none is available (rank 1); it may leave the escape channel again. A deterministic one has the escape channel
 * alone. The escape channel goes in dimension order (x, y, z) or direction order (x+, y+, z+, x-, y-, z-), by key. A
 * bubble ring is entered, by injection, turn or from a dynamic channel, only with room for two full packets (is_entry);
 * going straight takes room for one. Of a dateline pair the lower channel is used up to and on the link that closes the
 * ring, from the highest coordinate to 0 or back, and the higher one after it. A packet knows whether it has crossed,
 * also when it did so on a dynamic channel.
 *
 * Dead nodes. Hardware knows none, but a link to one never has tokens. Software chooses hint bits such that the packet
 * arrives: call a place clean if the escape channel's way from it is alive. From the source on, the packet goes only to
 * clean places, so that an escape channel is there at each of them; the source itself need not be clean, as a packet
 * that has not entered holds nothing. A few arrangements of three dead nodes around one source need a second hop before
 * the first clean place (EMU_BGL_WAY_LOOSE): a dynamic packet is without an escape channel there.
 *
 * Source: spec/machines.md 5.1 - 5.3 (BGL); Duato; Carrion and Puente for the bubble; Dally and Seitz for datelines.
 */
#include "emunic/fabric/bgl_routing.h"

#include <assert.h>
#include <errno.h>

#include "emunic/fabric/topology.h"
#include "emunic/fabric/torus.h"

static_assert((int)EMU_BGL_RECEPTION_HIGH == (int)EMU_TORUS_DIRECTIONS, "a reception FIFO per direction");
static_assert((int)EMU_BGL_INJECTION_FIFOS <= EMU_VCS_MAX, "injection FIFOs are channels of the NIC's link");

/*
 * A packet's route_state:  bits 0-11 | 12-23 | 24-35: hops to go in x, y, z
 *                          bits 36-38: they go in the plus direction
 *                          bits 39-41: the ring's closing link has been crossed (datelines only)
 *                          above: flags and what is below
 */
#define LEFT_BITS     12
#define LEFT_MASK     ((UINT64_C(1) << LEFT_BITS) - 1)
#define LEFT_ALL      ((UINT64_C(1) << (LEFT_BITS * EMU_TORUS_DIMS)) - 1)
#define PLUS_SHIFT    36
#define CROSSED_SHIFT 39
#define STATE_AROUND  (UINT64_C(1) << 42) /* dead nodes are near: look before each hop */
#define STATE_LOOSE   (UINT64_C(1) << 43)
#define STATE_GIVEN   (UINT64_C(1) << 44) /* by software: start() keeps it */
#define STATE_FIFO    (UINT64_C(1) << 45) /* software has chosen the injection FIFO ... */
#define FIFO_SHIFT    46                  /* ... this one, 3 bits */
#define CAME_SHIFT    49                  /* at the destination: direction of arrival, 3 bits */

/* A router, and the hops that are to go from it. */
struct spot {
    uint32_t router;
    uint64_t state;
};

static const struct emu_bgl_params *params_of(const struct emu_machine *m)
{
    return &m->params.torus.bgl;
}

static bool has_datelines(const struct emu_machine *m)
{
    return params_of(m)->escape == EMU_BGL_ESCAPE_DATELINE;
}

static uint32_t vc_escape(const struct emu_machine *m)
{
    return params_of(m)->dynamic_vcs;
}

static uint32_t vc_high_priority(const struct emu_machine *m)
{
    return params_of(m)->dynamic_vcs + 1 + has_datelines(m);
}

static bool is_bubble(const struct emu_machine *m, uint32_t vc)
{
    return vc == vc_high_priority(m) || (vc == vc_escape(m) && !has_datelines(m));
}

/* ---- hops to go ---- */

static uint32_t left_in(uint64_t state, uint32_t dim)
{
    return (uint32_t)(state >> (LEFT_BITS * dim) & LEFT_MASK);
}

static uint32_t direction_in(uint64_t state, uint32_t dim)
{
    return emu_torus_direction(dim, state >> (PLUS_SHIFT + dim) & 1);
}

static bool has_crossed(uint64_t state, uint32_t dim)
{
    return state >> (CROSSED_SHIFT + dim) & 1;
}

/* The state of a packet that goes on from a router in a direction. */
static uint64_t state_after(const struct emu_torus *t, uint32_t router, uint64_t state, uint32_t direction)
{
    uint32_t dim = direction / 2;

    state -= UINT64_C(1) << (LEFT_BITS * dim);
    if (emu_torus_crosses(t, router, direction))
        state |= UINT64_C(1) << (CROSSED_SHIFT + dim);
    return state;
}

static struct spot hop(const struct emu_torus *t, const struct spot *from, uint32_t direction)
{
    return (struct spot){
        .router = emu_torus_neighbour(t, from->router, direction),
        .state = state_after(t, from->router, from->state, direction),
    };
}

/* Where the escape channel goes on to; some hop must be left. */
static uint32_t escape_direction(const struct emu_machine *m, uint64_t state)
{
    bool is_by_direction = params_of(m)->order == EMU_BGL_ORDER_DIRECTION;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        if (left_in(state, dim) > 0 && (!is_by_direction || (direction_in(state, dim) & 1)))
            return direction_in(state, dim);
    }
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        if (left_in(state, dim) > 0)
            return direction_in(state, dim);
    }
    assert(!"a packet on its way has hops to go");
    return 0;
}

/* Place of a direction in the escape channel's order: a packet there never goes back to an earlier one. */
static uint32_t place_in_order(const struct emu_machine *m, uint32_t direction)
{
    if (params_of(m)->order == EMU_BGL_ORDER_DIRECTION)
        return direction / 2 + ((direction & 1) ? 0 : EMU_TORUS_DIMS);
    return direction / 2;
}

uint32_t emu_bgl_hints_left(uint64_t route_state)
{
    uint32_t hints = 0;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        if (left_in(route_state, dim) > 0)
            hints |= 1u << direction_in(route_state, dim);
    }
    return hints;
}

/* ---- hint bits ---- */

static uint32_t router_of(const struct emu_machine *m, uint32_t nid)
{
    return nid / emu_torus_of(m)->kind->nodes_per_router;
}

/* Of equal ways: half of a source's destinations rise. */
static bool is_tie_plus(const uint8_t *src, const uint8_t *dst, uint32_t dim)
{
    uint32_t sum = src[dim];

    for (uint32_t other = 0; other < EMU_TORUS_DIMS; other++) {
        if (other != dim)
            sum += (uint32_t)src[other] + dst[other];
    }
    return sum % 2 == 0;
}

/* The minimal way, as route_state. */
static uint64_t minimal_state(const struct emu_machine *m, uint32_t src, uint32_t dst)
{
    const struct emu_torus *t = emu_torus_of(m);
    const uint8_t *from = emu_torus_coord(t, src);
    const uint8_t *to = emu_torus_coord(t, dst);
    uint64_t state = 0;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        bool is_plus;
        uint32_t left = emu_torus_way(t, dim, from[dim], to[dim], &is_plus);

        if (left * 2 == t->size[dim])
            is_plus = is_tie_plus(from, to, dim);
        state |= (uint64_t)left << (LEFT_BITS * dim) | (uint64_t)is_plus << (PLUS_SHIFT + dim);
    }
    return state;
}

/* The way that hint bits say. False: not a set of hint bits for these two. */
static bool state_of_hints(const struct emu_machine *m, uint32_t src, uint32_t dst, uint32_t hints, uint64_t *state_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    const uint8_t *from = emu_torus_coord(t, src);
    const uint8_t *to = emu_torus_coord(t, dst);
    uint64_t state = 0;

    if (hints >> EMU_TORUS_DIRECTIONS != 0)
        return false;
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        uint32_t bits = hints >> (2 * dim) & 3;
        bool is_plus = bits == 2;

        if (bits == 3 || (bits != 0) != (from[dim] != to[dim]))
            return false;
        if (bits != 0)
            state |= (uint64_t)emu_torus_steps(t, dim, is_plus, from[dim], to[dim]) << (LEFT_BITS * dim) |
                     (uint64_t)is_plus << (PLUS_SHIFT + dim);
    }
    *state_out = state;
    return true;
}

uint32_t emu_bgl_hints(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid)
{
    return emu_bgl_hints_left(minimal_state(m, router_of(m, src_nid), router_of(m, dst_nid)));
}

/* ---- around dead nodes ---- */

static bool link_up(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t router, uint32_t direction)
{
    return emu_fault_map_link_up(faults, emu_torus_link(t, router, direction, 0));
}

/* Is the escape channel's way from here alive to its end? */
static bool is_clean(const struct emu_machine *m, const struct emu_fault_map *faults, struct spot at)
{
    const struct emu_torus *t = emu_torus_of(m);

    while ((at.state & LEFT_ALL) != 0) {
        uint32_t direction = escape_direction(m, at.state);

        if (!link_up(t, faults, at.router, direction))
            return false;
        at = hop(t, &at, direction);
    }
    return true;
}

/* Can a packet come from here to a clean place within so many hops? */
static bool is_near_clean(const struct emu_machine *m, const struct emu_fault_map *faults, struct spot at,
                          uint32_t hops)
{
    const struct emu_torus *t = emu_torus_of(m);

    if (is_clean(m, faults, at))
        return true;
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS && hops > 0; dim++) {
        uint32_t direction = direction_in(at.state, dim);

        if (left_in(at.state, dim) > 0 && link_up(t, faults, at.router, direction) &&
            is_near_clean(m, faults, hop(t, &at, direction), hops - 1))
            return true;
    }
    return false;
}

/* Is there a dead link anywhere in the box that the hint bits span? */
static bool is_box_alive(const struct emu_machine *m, const struct emu_fault_map *faults, struct spot corner)
{
    const struct emu_torus *t = emu_torus_of(m);
    struct spot plane, line, at;

    /* All places, z outermost; at each of them, all links that a packet there may take. */
    for (plane = corner;; plane = hop(t, &plane, direction_in(plane.state, 2))) {
        for (line = plane;; line = hop(t, &line, direction_in(line.state, 1))) {
            for (at = line;; at = hop(t, &at, direction_in(at.state, 0))) {
                for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
                    if (left_in(at.state, dim) > 0 && !link_up(t, faults, at.router, direction_in(at.state, dim)))
                        return false;
                }
                if (left_in(at.state, 0) == 0)
                    break;
            }
            if (left_in(line.state, 1) == 0)
                break;
        }
        if (left_in(plane.state, 2) == 0)
            break;
    }
    return true;
}

static enum emu_bgl_way way_of(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src,
                               uint64_t state)
{
    const struct spot from = { .router = src, .state = state };

    if (is_clean(m, faults, from))
        return is_box_alive(m, faults, from) ? EMU_BGL_WAY_ANY : EMU_BGL_WAY_ORDERED;
    if (params_of(m)->dynamic_vcs == 0)
        return EMU_BGL_WAY_NONE;
    if (is_near_clean(m, faults, from, 1))
        return EMU_BGL_WAY_DYNAMIC;
    return is_near_clean(m, faults, from, 2) ? EMU_BGL_WAY_LOOSE : EMU_BGL_WAY_NONE;
}

static uint32_t hops_of(uint64_t state)
{
    return left_in(state, 0) + left_in(state, 1) + left_in(state, 2);
}

/* The best way around, as route_state. */
static enum emu_bgl_way state_around(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src,
                                     uint32_t dst, uint64_t *state_out)
{
    uint64_t state = minimal_state(m, src, dst);
    uint32_t minimal = emu_bgl_hints_left(state);
    enum emu_bgl_way best = EMU_BGL_WAY_NONE;

    if (!emu_fault_map_router_up(faults, src) || !emu_fault_map_router_up(faults, dst))
        return EMU_BGL_WAY_NONE;
    /* The minimal bits first; then with any of the dimensions turned round. */
    for (uint32_t turned = 0; turned < 1u << EMU_TORUS_DIMS; turned++) {
        uint32_t hints = minimal;
        uint64_t candidate;
        enum emu_bgl_way way;

        for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
            if ((turned >> dim & 1) != 0)
                hints ^= 3u << (2 * dim);
        }
        if (!state_of_hints(m, src, dst, hints, &candidate))
            continue;
        way = way_of(m, faults, src, candidate);
        if (way == EMU_BGL_WAY_NONE)
            continue;
        if (best == EMU_BGL_WAY_NONE || way < best || (way == best && hops_of(candidate) < hops_of(*state_out))) {
            best = way;
            *state_out = candidate;
        }
    }
    return best;
}

enum emu_bgl_way emu_bgl_hints_around(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src_nid,
                                      uint32_t dst_nid, uint32_t *hints_out)
{
    uint64_t state = 0;
    enum emu_bgl_way way = state_around(m, faults, router_of(m, src_nid), router_of(m, dst_nid), &state);

    if (way != EMU_BGL_WAY_NONE)
        *hints_out = emu_bgl_hints_left(state);
    return way;
}

/* ---- what traffic may ask for ---- */

int emu_bgl_give_hints(const struct emu_machine *m, struct emu_packet *p, uint32_t hints)
{
    uint64_t state;

    if (p->src_nid >= m->n_nodes || p->dst_nid >= m->n_nodes)
        return -ERANGE;
    if (!state_of_hints(m, router_of(m, p->src_nid), router_of(m, p->dst_nid), hints, &state))
        return -EINVAL;
    p->route_state = state | STATE_GIVEN;
    return 0;
}

int emu_bgl_give_broadcast(const struct emu_machine *m, struct emu_packet *p, uint32_t hint)
{
    int result;

    if (hint == 0 || (hint & (hint - 1)) != 0) /* one bit */
        return -EINVAL;
    result = emu_bgl_give_hints(m, p, hint);
    if (result == 0)
        p->flags |= EMU_PACKET_BROADCAST;
    return result;
}

int emu_bgl_give_fifo(struct emu_packet *p, uint32_t fifo)
{
    if (fifo >= EMU_BGL_INJECTION_FIFOS ||
        (fifo < EMU_BGL_INJECTION_HIGH) != (p->traffic_class == EMU_TRAFFIC_RESPONSE))
        return -EINVAL;
    p->route_state &= ~(UINT64_C(7) << FIFO_SHIFT);
    p->route_state |= STATE_FIFO | (uint64_t)fifo << FIFO_SHIFT;
    return 0;
}

uint32_t emu_bgl_reception_fifo(const struct emu_packet *p)
{
    if (p->traffic_class == EMU_TRAFFIC_RESPONSE)
        return EMU_BGL_RECEPTION_HIGH;
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        if (left_in(p->route_state, dim) > 0) /* a copy that a broadcast has left on its line */
            return direction_in(p->route_state, dim);
    }
    return (uint32_t)(p->route_state >> CAME_SHIFT & 7);
}

/* ---- the routing row ---- */

static uint32_t count_vcs(const struct emu_machine *m, enum emu_link_class link_class)
{
    if (link_class == EMU_LINK_PROCESSOR_IN)
        return EMU_BGL_INJECTION_FIFOS;
    if (link_class == EMU_LINK_PROCESSOR_OUT)
        return EMU_BGL_RECEPTION_FIFOS;
    return vc_high_priority(m) + 1;
}

static void describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                        struct emu_vc_info *info_out)
{
    bool is_high;

    if (link_class == EMU_LINK_PROCESSOR_IN || link_class == EMU_LINK_PROCESSOR_OUT) {
        is_high = link_class == EMU_LINK_PROCESSOR_IN ? vc < EMU_BGL_INJECTION_HIGH : vc == EMU_BGL_RECEPTION_HIGH;
        *info_out = (struct emu_vc_info){
            .capacity_units = params_of(m)->fifo_bytes,
            .traffic_class = is_high ? EMU_TRAFFIC_RESPONSE : EMU_TRAFFIC_REQUEST,
        };
        return;
    }
    is_high = vc == vc_high_priority(m);
    *info_out = (struct emu_vc_info){
        .capacity_units = m->params.router.vc_units,
        .traffic_class = is_high ? EMU_TRAFFIC_RESPONSE : EMU_TRAFFIC_REQUEST,
        .is_escape = vc >= vc_escape(m),
        .is_bubble = is_bubble(m, vc),
    };
}

static bool is_dynamic(const struct emu_machine *m, const struct emu_packet *p)
{
    return p->traffic_class == EMU_TRAFFIC_REQUEST && p->mode != EMU_MODE_DETERMINISTIC &&
           (p->flags & EMU_PACKET_BROADCAST) == 0 && params_of(m)->dynamic_vcs > 0;
}

static bool start_packet(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    const struct emu_machine *m = view->machine;
    uint32_t dst = router_of(m, p->dst_nid);
    bool is_whole = emu_fault_map_is_clean(view->faults);
    enum emu_bgl_way way = EMU_BGL_WAY_ANY;

    if ((p->route_state & STATE_GIVEN) != 0) {
        if (!is_whole)
            way = emu_fault_map_router_up(view->faults, dst) ? way_of(m, view->faults, router, p->route_state) :
                                                               EMU_BGL_WAY_NONE;
    } else if (is_whole) {
        p->route_state = minimal_state(m, router, dst);
    } else {
        way = state_around(m, view->faults, router, dst, &p->route_state);
    }
    if (way == EMU_BGL_WAY_NONE || (way > EMU_BGL_WAY_ORDERED && !is_dynamic(m, p)))
        return false;
    if (way != EMU_BGL_WAY_ANY)
        p->route_state |= STATE_AROUND;
    if (way == EMU_BGL_WAY_LOOSE)
        p->route_state |= STATE_LOOSE;
    return true;
}

/* Software gives each direction an injection FIFO. A packet that may go several ways takes any. */
static uint32_t injection_fifo(const struct emu_machine *m, const struct emu_packet *p)
{
    uint64_t state = p->route_state;
    uint32_t n = 0;

    if ((state & STATE_FIFO) != 0)
        return (uint32_t)(state >> FIFO_SHIFT & 7);
    if (params_of(m)->injection != EMU_BGL_INJECT_DIRECTION || p->traffic_class == EMU_TRAFFIC_RESPONSE)
        return EMU_VCS_MAX;
    if ((state & STATE_GIVEN) == 0)
        state = minimal_state(m, router_of(m, p->src_nid), router_of(m, p->dst_nid));
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++)
        n += left_in(state, dim) > 0;
    if (n == 0 || (n > 1 && is_dynamic(m, p)))
        return EMU_VCS_MAX;
    return EMU_BGL_INJECTION_HIGH + escape_direction(m, state);
}

/* The channel that a packet of the escape order takes in a direction. */
static uint32_t ordered_vc(const struct emu_machine *m, const struct emu_packet *p, uint64_t state, uint32_t direction)
{
    if (p->traffic_class == EMU_TRAFFIC_RESPONSE)
        return vc_high_priority(m);
    return vc_escape(m) + (has_datelines(m) && has_crossed(state, direction / 2));
}

/* May a dynamic packet go that way, as far as faults are concerned? */
static bool is_passable(const struct emu_route_view *view, const struct spot *at, uint32_t direction)
{
    const struct emu_machine *m = view->machine;
    const struct emu_torus *t = emu_torus_of(m);

    if (!link_up(t, view->faults, at->router, direction))
        return false;
    if ((at->state & STATE_AROUND) == 0)
        return true;
    return is_near_clean(m, view->faults, hop(t, at, direction), (at->state & STATE_LOOSE) != 0 ? 1 : 0);
}

static uint32_t list_options(const struct emu_route_view *view, const struct emu_packet *p,
                             const struct emu_route_at *at, struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_machine *m = view->machine;
    const struct emu_torus *t = emu_torus_of(m);
    const struct spot here = { .router = at->router, .state = p->route_state };
    bool is_whole = emu_fault_map_is_clean(view->faults);
    bool has_choice = is_dynamic(m, p);
    uint32_t n = 0;
    uint32_t direction, vc, in_direction, in_router, number;

    if ((here.state & LEFT_ALL) == 0) {
        options_out[0] = (struct emu_route_option){ .link = m->n_nodes + p->dst_nid, .route_state = here.state };
        if (p->traffic_class == EMU_TRAFFIC_RESPONSE) {
            options_out[0].vc = EMU_BGL_RECEPTION_HIGH;
        } else if (!at->is_entering) {
            emu_torus_link_parts(t, at->in_link, &in_router, &in_direction, &number);
            options_out[0].vc = (uint8_t)in_direction;
            options_out[0].route_state |= (uint64_t)in_direction << CAME_SHIFT;
        }
        return 1;
    }
    for (uint32_t dim = 0; has_choice && dim < EMU_TORUS_DIMS; dim++) {
        if (left_in(here.state, dim) == 0)
            continue;
        direction = direction_in(here.state, dim);
        if (!is_whole && !is_passable(view, &here, direction))
            continue;
        options_out[n++] = (struct emu_route_option){
            .link = emu_torus_link(t, here.router, direction, 0),
            .more_vcs = (uint8_t)((1u << params_of(m)->dynamic_vcs) - 2), /* besides channel 0 */
            .route_state = state_after(t, here.router, here.state, direction),
        };
    }
    if (!is_whole && !is_clean(m, view->faults, here))
        return n;
    direction = escape_direction(m, here.state);
    vc = ordered_vc(m, p, here.state, direction);
    in_direction = EMU_TORUS_DIRECTIONS;
    if (!at->is_entering && at->in_vc == vc)
        emu_torus_link_parts(t, at->in_link, &in_router, &in_direction, &number);
    options_out[n++] = (struct emu_route_option){
        .link = emu_torus_link(t, here.router, direction, 0),
        .vc = (uint8_t)vc,
        .rank = has_choice,
        .is_entry = is_bubble(m, vc) && in_direction != direction,
        .route_state = state_after(t, here.router, here.state, direction),
    };
    return n;
}

/* ---- dependencies ---- */

struct relation {
    const struct emu_machine *m;
    const struct emu_fault_map *faults;
    void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc);
    void *ctx;
};

/* What a packet is in that holds a channel. */
struct holder {
    uint32_t link;
    uint32_t vc;
    uint32_t router;    /* behind the link */
    uint32_t direction; /* EMU_TORUS_DIRECTIONS: it is entering */
    bool has_crossed;   /* the link closes a ring */
};

/* The dateline channels of the next link that a packet may ask for: it has crossed before, or not, or either. */
static void visit_datelines(const struct relation *r, const struct holder *h, uint32_t next, uint32_t next_link)
{
    const struct emu_torus *t = emu_torus_of(r->m);
    uint32_t low = vc_escape(r->m);
    bool is_straight = next == h->direction;
    bool was_high = is_straight && (h->has_crossed || h->vc == low + 1);
    bool was_low = is_straight && !h->has_crossed && h->vc == low;

    if (!was_high)
        r->visit(r->ctx, h->link, h->vc, next_link, low);
    if (!was_low && !emu_torus_crosses(t, h->router, next)) /* nobody crosses twice */
        r->visit(r->ctx, h->link, h->vc, next_link, low + 1);
}

static void visit_next(const struct relation *r, const struct holder *h)
{
    const struct emu_machine *m = r->m;
    const struct emu_torus *t = emu_torus_of(m);
    bool is_entering = h->direction == EMU_TORUS_DIRECTIONS;
    bool is_high = is_entering ? h->vc < EMU_BGL_INJECTION_HIGH : h->vc == vc_high_priority(m);
    bool is_ordered = !is_entering && h->vc >= vc_escape(m);
    uint32_t reception = is_high ? EMU_BGL_RECEPTION_HIGH : is_entering ? 0 : h->direction;

    for (uint32_t next = 0; next < EMU_TORUS_DIRECTIONS; next++) {
        uint32_t next_link = emu_torus_link(t, h->router, next, 0);

        if (next_link == EMU_TORUS_NONE || !emu_fault_map_link_up(r->faults, next_link))
            continue;
        if (!is_entering && next == emu_torus_opposite(h->direction))
            continue;
        if (is_ordered && place_in_order(m, next) < place_in_order(m, h->direction))
            continue;
        if (is_high) {
            r->visit(r->ctx, h->link, h->vc, next_link, vc_high_priority(m));
            continue;
        }
        for (uint32_t vc = 0; vc < params_of(m)->dynamic_vcs; vc++)
            r->visit(r->ctx, h->link, h->vc, next_link, vc);
        if (has_datelines(m))
            visit_datelines(r, h, next, next_link);
        else
            r->visit(r->ctx, h->link, h->vc, next_link, vc_escape(m));
    }
    r->visit(r->ctx, h->link, h->vc, m->n_nodes + h->router, reception);
}

static void visit_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                               void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link,
                                             uint32_t next_vc),
                               void *ctx)
{
    const struct emu_torus *t = emu_torus_of(m);
    const struct relation r = { .m = m, .faults = faults, .visit = visit, .ctx = ctx };

    for (uint32_t nid = 0; nid < m->n_nodes; nid++) {
        struct holder h = { .link = nid, .router = nid, .direction = EMU_TORUS_DIRECTIONS };

        for (h.vc = 0; emu_fault_map_link_up(faults, h.link) && h.vc < EMU_BGL_INJECTION_FIFOS; h.vc++)
            visit_next(&r, &h);
    }
    for (uint32_t router = 0; router < m->n_routers; router++) {
        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
            struct holder h = { .direction = direction };

            if (!emu_torus_has(t, router, direction))
                continue;
            h.link = emu_torus_link(t, router, direction, 0);
            h.router = emu_torus_neighbour(t, router, direction);
            h.has_crossed = emu_torus_crosses(t, router, direction);
            if (!emu_fault_map_link_up(faults, h.link))
                continue;
            for (h.vc = 0; h.vc <= vc_high_priority(m); h.vc++) {
                if (!(has_datelines(m) && h.has_crossed && h.vc == vc_escape(m) + 1)) /* used by nobody */
                    visit_next(&r, &h);
            }
        }
    }
}

const struct emu_routing emu_bgl_routing = {
    .n_vcs = count_vcs,
    .vc = describe_vc,
    .start = start_packet,
    .options = list_options,
    .injection_vc = injection_fifo,
    .dependencies = visit_dependencies,
    .options_max = EMU_TORUS_DIMS + 1,
};
