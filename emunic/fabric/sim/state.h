/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the simulator: what it keeps. Everything is a flat array; per hop a packet touches its own line, those of the
 * router, of the input channel, and of the output link.
 *
 * Ownership while time passes: each field belongs to the partition of the router at its end of the link, and no other
 * thread looks at it. A link's output half (struct out_link) belongs to the router or NIC that sends, its input half
 * (struct in_link, struct in_vc) to the one that receives. NICs belong to the partition of their router.
 */
#ifndef EMUNIC_FABRIC_SIM_STATE_H
#define EMUNIC_FABRIC_SIM_STATE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/sim/sim.h"
#include "emunic/fabric/sim/wheel.h"
#include "emunic/fabric/topology.h"

/* For functions that are compiled once per constant argument, and for those that only fetch: a compiler may find that
 * the latter do nothing and leave out their calls. */
#define SIM_INLINE static inline __attribute__((always_inline))

#define SIM_NONE         UINT32_MAX
#define SIM_LINKS_MAX    (1u << 24)
#define SIM_RATE_SHIFT   20
#define SIM_LOAD_ENTRIES 28
#define SIM_LOAD_BITS    24 /* of the units in sim->loads */
#define SIM_LOAD_MASK    ((UINT64_C(1) << SIM_LOAD_BITS) - 1)
#define SIM_WAYS_MOSTLY  4   /* or less, of a head: one line */
#define SIM_ROUTER_BATCH 16  /* that decide one after another when what they need has been fetched */
#define SIM_LOOK_BATCH   256 /* heads of them, or more if one router has more channels */

/* What links of one class, and one number of lanes, have in common. */
struct link_kind {
    uint64_t unit_ps;   /* << SIM_RATE_SHIFT: time of a unit on the wire, frames included */
    double bits_per_ps; /* of the wire, all lanes that are up */
    uint32_t head_ps;   /* start of a transmission to the decision at the far end */
    uint32_t wire_ps;   /* credits and tails take so long */
    uint32_t overhead_units;
    uint32_t link_class;
    uint32_t lanes_up;
    uint8_t is_optical; /* counts in n_optical */
    uint8_t n_vcs;
    uint16_t capacity_tokens[EMU_VCS_MAX];
    uint16_t quarter_tokens[EMU_VCS_MAX]; /* a quarter of it, rounded up */
    uint8_t bubble_vcs;                   /* mask */
    uint8_t class_of_vc[EMU_VCS_MAX];     /* traffic class or EMU_VC_ANY */
};

struct out_link {
    uint64_t waiters; /* heads that wait for its tokens, by sim_mark() of their channel */
    uint64_t units;   /* sent */
    int16_t
        tokens[EMU_VCS_MAX]; /* free in the channels' own buffers at the far end; below 0: taken of the shared one */
    uint32_t to;             /* first channel at the far end, or nid of a link to a NIC */
    uint32_t from;           /* router, or nid with OUT_FROM_NIC */
    uint16_t kind;
    uint16_t turn; /* round robin: the channel that was served last, within its router */
    uint8_t part;  /* of the far end */
    uint8_t flags;
    uint8_t bubble_vcs;     /* mask, as of its kind */
    uint8_t wanted_vcs;     /* mask: a packet waits for tokens */
    uint16_t shared_tokens; /* free in the buffer that all channels share */
    uint32_t asker;         /* on plain machines: the request for it in this slot, 1 added; 0: none */
    uint64_t stall_ps;      /* it was idle and a packet waited for tokens, without what OUT_STALLED tells */
};
static_assert(sizeof(struct out_link) == 64, "one line: all that a decision looks at of an idle link");

/* Of a load at the ends of past periods: of the ones since it changed last nothing is written. */
struct sim_past_load {
    uint16_t units[SIM_LOAD_ENTRIES];
};

enum {
    OUT_IS_UP = 1 << 0,
    OUT_TO_NIC = 1 << 1,
    OUT_FREE_EVENT = 1 << 2, /* of a NIC: EMU_EVENT_NIC_FREE is under way */
    OUT_NOTED = 1 << 3,      /* packets that start on it are told to sim_note_step() */
    OUT_FROM_NIC = 1 << 4,
    OUT_UNRELIABLE = 1 << 5, /* has an entry in sim->errors */
    OUT_STALLED = 1 << 6,    /* a packet waits for tokens, and the link is idle */
    OUT_IS_OWN = 1 << 7,     /* this process holds it; else it is zero, or not made yet */
};

struct in_link {
    uint32_t first_vc; /* number of its first channel: of the struct in_vc and sim->occupancy */
    uint32_t router;
    uint16_t kind;
    uint8_t part; /* of the sender */
    uint8_t flags;
};
static_assert(sizeof(struct in_link) == 12, "there are many");

/* The part of an input port that arbitrates between its channels, where machines limit it. */
struct in_port {
    uint64_t gap_ends_ps; /* of the gap behind the last transfer's start (router.arb_gap_clocks) */
    uint32_t turn;        /* round robin: the channel that was served last */
    uint32_t busy_slot;   /* low 32 bits: in it the last transfer out of this port ends */
};

enum {
    IN_IS_ENTERING = 1 << 0, /* from a NIC */
    IN_PATH_EVENT = 1 << 1,
    IN_IS_OWN = 1 << 2, /* this process holds it; else it is zero */
};

/* One virtual channel at the receiving router: a queue, of which only the head is decided on, and all that an arrival
 * and a departure need to know of the link. One is made when its first packet comes: memory that nobody has written
 * takes none of the host's. On machines with few channels per node they lie in the order of their numbers; else in the
 * order in which they are made, because most are hardly ever used. */
struct in_vc {
    uint64_t ready_ps; /* the head cannot go before: it was not here, or the last tail was not out */
    uint64_t tail_ps;  /* when the tail of the last packet that came is here */
    uint32_t first;    /* packets, SIM_NONE: empty */
    uint32_t last;
    uint32_t options;       /* of the head: the first of its ways on; SIM_NONE: not asked yet */
    struct emu_route_at at; /* where that is */
    uint16_t units;         /* in the buffer */
    uint16_t local;         /* number within the router */
    uint16_t kind;          /* of the link */
    uint8_t part;           /* of the sender */
    bool is_held;           /* the head waits for a path out of its input port */
    bool to_nic;            /* where the last packet went; takes no path */
    bool is_charged_full;   /* each packet takes the room of a full one */
    bool is_counted;        /* the head is in the load of the link that it would like first */
    uint8_t n_ways;         /* of the options; 0: there is no way */
    uint32_t look_slot;     /* low 32 bits: the head waits for a link until then; 0: no event is under way */
    uint16_t tokens;        /* of the head, once it has options */
    uint16_t first_ways;    /* mask: that have the lowest rank */
    bool is_listed;         /* on plain machines: in part->looks */
    bool is_made;           /* else it is zero: no packet has come so far */
};
static_assert(sizeof(struct in_vc) == 64, "one line");

struct router {
    struct emu_random random;
    uint64_t look;  /* heads to be looked at, by sim_mark() of their channel */
    uint64_t heads; /* one bit per channel that has a head, of a router with 64 or less */
    uint32_t first_vc;
    uint32_t first_word; /* of sim->heads, where those of a larger one are */
    uint32_t first_nid;
    uint32_t first_out; /* link to a router of this process; sim->next_out tells the others. SIM_NONE: none */
    uint16_t n_vcs;
    uint8_t part;
    bool is_up;
    bool is_listed; /* to decide in this slot */
    bool has_outs;  /* the struct out_link of these links are made */
    uint8_t reserved[18];
};
static_assert(sizeof(struct router) == 64, "one line");

struct nic {
    uint32_t link;                         /* into the network */
    uint32_t waiting[EMU_TRAFFIC_CLASSES]; /* packet that wants to enter, SIM_NONE */
    uint8_t awake;                         /* mask of classes to ask */
    uint8_t is_listed;
    uint8_t last_class;
    uint8_t is_up;
};

/* A packet in the network. */
struct cell {
    struct emu_packet packet;
    uint32_t next;   /* in its queue, the link that it is on, or the next free cell */
    bool is_started; /* routing has chosen its way */
    bool is_copy;    /* left behind by a broadcast */
    uint16_t reserved;
};
static_assert(sizeof(struct cell) == 64, "one line");

struct timer {
    uint64_t at_ps;
    uint64_t number;
    uint64_t cookie;
    uint32_t nid;
};

/* Those that end the run are apart, because the end of a window depends on the first of them. */
enum {
    TIMERS = 0,
    ENDING_TIMERS,
    TIMER_HEAPS,
};

struct timer_heap {
    struct timer *timers; /* owned */
    size_t n;
    size_t capacity;
};

/* What one partition sends to another during a window. */
struct arrival_message {
    uint64_t slot;
    struct emu_event event;
    struct emu_packet packet;
};

struct credit_message {
    uint64_t slot;
    struct emu_event event;
};

struct outbox {
    uint64_t first_slot; /* of all in it; UINT64_MAX: it is empty */
    struct arrival_message *arrivals;
    size_t n_arrivals;
    size_t arrival_capacity;
    struct credit_message *credits;
    size_t n_credits;
    size_t credit_capacity;
};

/* A head that could go on now. */
struct request {
    struct in_vc *v;
    uint32_t link;
    uint16_t tokens; /* of its units */
    uint8_t way;     /* that it asks for, and ... */
    uint8_t vc;      /* ... its channel */
    bool is_out;     /* of the choice */
    bool is_loser;
};

struct part {
    struct emu_sim *sim;
    uint32_t number;
    struct emu_wheel wheel;
    uint64_t slot;    /* present */
    uint64_t slot_ps; /* its start */
    uint64_t clock_ps;
    uint64_t slots_per_ps; /* << 64, rounded up */
    uint64_t ring_ps;      /* what the wheel's ring covers, beyond the present slot */
    uint64_t load_end_ps;  /* of the present period of loads */
    uint64_t load_period;  /* its number, 1 added */
    uint64_t far_slot;     /* the slot of far_period */
    uint64_t far_period;   /* of the loads that neighbours know; 0: none yet */
    struct cell *cells;
    uint32_t n_cells; /* that have ever been free */
    uint32_t cell_capacity;
    uint32_t free_cell;
    struct in_vc *vcs; /* sim->vcs, if that is there */
    uint32_t n_vcs;
    uint32_t vc_capacity;
    struct emu_route_option
        *options; /* of heads, sim->options_stride each. What is beyond the last of a head's is not valid,
                                        * but a way of another or over own_link, so that its link can be looked at. */
    uint32_t option_capacity;
    uint32_t n_options;    /* that have ever been free */
    uint32_t own_link;     /* some link out of one of its routers */
    uint32_t free_options; /* the first way's link: the next free ones */
    uint32_t *routers;     /* to decide in this slot */
    uint32_t n_routers;
    uint32_t *nics;
    uint32_t n_nics;
    bool is_running;           /* else between two runs: slot is the next one */
    bool is_applying;          /* else deciding: lists are closed */
    struct emu_event *reports; /* of this slot */
    uint32_t n_reports;
    uint32_t report_capacity;
    struct timer_heap timers[TIMER_HEAPS];
    uint64_t timer_number;
    bool has_ended;           /* the run: one of the timers that end it came due */
    struct request *requests; /* scratch, looks_max */
    uint32_t n_requests;      /* on plain machines: one per link */
    uint32_t n_losers;
    struct in_vc **losers; /* on plain machines: heads whose link another takes, looks_max */
    uint32_t *candidates;  /* the same */
    uint32_t *winners;     /* the same */
    uint32_t *looks;       /* indexes of struct in_vc; on plain machines of all heads to look at in this slot */
    uint32_t n_looks;      /* on plain machines */
    uint32_t looks_max;    /* at least SIM_LOOK_BATCH and vcs_of_router_max; on plain machines it grows */
    struct outbox *out;    /* to each partition, then to each process */
    struct emu_route_view view;
    struct emu_sim_totals totals;
    uint32_t first_router;
    uint32_t end_router;
    /* Published between the barriers of a window. */
    uint64_t next_slot;
    uint64_t ending_slot; /* of the first timer that ends the run */
    uint64_t n_done;      /* events of all windows so far */
    bool is_last;         /* the run has ended in its last window */
};

/* Bit errors of one link. */
struct link_errors {
    double bit_error_rate;
    struct emu_random random;
    uint64_t crc_errors;
    uint64_t retransmissions;
    uint8_t corrupt_next; /* 0, 1: seen by the check, 2: not */
};

/* Counts of a link when its lanes changed last. */
struct link_epoch {
    uint64_t busy_ps; /* up to then */
    uint64_t units;
    uint64_t packets;
};

/* Links that follow each other. */
struct sim_links {
    uint32_t first;
    uint32_t end;
};

/* Another process. */
struct sim_peer {
    uint32_t rank;
    struct emu_sim_mail mail;  /* packets and credits of a window; owned, as is what it points to */
    size_t out_room;           /* of mail.out */
    struct emu_sim_mail loads; /* of links out of routers next to it; likewise */
    size_t loads_room;
    uint32_t *told; /* owned; the links whose loads it wants to know */
    uint32_t n_told;
    uint32_t first_ghost; /* its links whose loads are known here: numbers that follow each other */
    uint32_t n_ghosts;
};

/* What several processes that simulate together keep: world.c. */
struct sim_world {
    const struct emu_sim_world *calls;
    uint32_t *bounds;       /* owned; first router of each process, then the end of the last */
    struct sim_peer *peers; /* owned; those that something may be sent to, by rising rank */
    uint32_t n_peers;
    struct emu_sim_mail **mails; /* owned; of the peers */
    struct emu_sim_mail **load_mails;
    uint64_t machine_hash;
    /* Loads that routers of other processes have told. */
    uint32_t *ghosts; /* owned; by link: number, 1 added; 0: none. NULL: nobody asks */
    uint32_t n_ghosts;
    uint16_t *values;   /* owned; by period, number and class of traffic: sim_ghost_index() */
    uint32_t n_periods; /* that are kept */
    uint64_t period;    /* the last that is known */
};

/* The process that a router belongs to. */
uint32_t sim_rank_of(const struct sim_world *world, uint32_t router);

struct emu_sim {
    const struct emu_machine *m;
    const struct emu_routing *routing;
    struct emu_traffic traffic;
    struct emu_sim_options options;
    struct emu_router_params p;   /* copy */
    struct emu_fault_map *faults; /* owned; NULL: none */
    uint32_t clock_ps;
    uint32_t full_tokens;
    uint32_t options_stride;
    uint32_t token_shift;    /* log2 of token_units; 32: it is no power of two */
    uint64_t inject_unit_ps; /* << SIM_RATE_SHIFT: a NIC's time for a unit that it sends; 0: its link's */
    uint64_t drain_unit_ps;  /* likewise: that it takes out of a reception buffer; 0: none */
    uint64_t *drained_ps;    /* by nid: when its NIC has taken what has come; NULL: reception buffers have no end */
    uint64_t unit_ps;        /* that a packet takes to leave a buffer, at least */
    uint32_t lost_ps;        /* until the sender knows of a lost packet */
    uint32_t far_ps;         /* age of the loads that neighbours know, beyond the period */
    uint64_t now_ps;
    uint64_t window_slots;
    uint64_t n_window_events; /* of the last window, without other processes */
    struct sim_crew *crew;    /* owned; NULL: no run had several threads so far */
    bool is_large;            /* fits in no cache, so that what an event will touch is fetched ahead */
    bool is_plain;            /* decides in plain.c */
    struct link_kind *kinds;
    uint32_t n_kinds;
    struct out_link *outs; /* by link. Those between routers of this process are zero until a packet comes to ... */
    uint32_t *next_out;    /* ... their router: sim_make_outs(). By link: the router's next one, SIM_NONE: the last */
    uint64_t *free_ps;     /* by link: end of its last transmission; those of a router on one line or two */
    struct in_link *ins;   /* by link */
    struct in_port *ports; /* by link; NULL: all channels may ask, and send, at once */
    uint64_t *stalled_ps;  /* by link, with OUT_STALLED: since when */
    uint32_t *sent;        /* packets, by link and virtual channel: sim_out_vc() */
    uint16_t *wanted;      /* likewise: fewest tokens that let a waiting packet go */
    uint32_t vcs_of_link_max;
    struct in_vc *vcs;  /* by channel, on machines that have few; else NULL, and ... */
    uint32_t *vc_index; /* ... the index in the partition's store, 1 added, by channel; 0: not used yet */
    uint32_t n_vcs;
    uint64_t *heads;
    uint32_t n_words;
    uint64_t *mark_members; /* of large routers: channels that share each mark, mark_words words of bits */
    uint32_t mark_words;
    struct router *routers;
    /* Units that wait for a link out of a router, or are on it and not yet credited, by class of traffic and link:
     * sim_load_index(). The period in which it changed last, 1 added, << SIM_LOAD_BITS | units. Routing reads many of
     * them for each packet, so they lie close, and apart from what is past. NULL: nobody reads them. */
    uint64_t *loads;
    struct sim_past_load *past_loads;
    uint64_t load_period_ps; /* of what neighbours know; UINT64_MAX / 2: they know nothing */
    struct nic *nics;
    uint32_t *nic_router;       /* router of each nid */
    uint64_t *occupancy;        /* units x ps per channel, NULL: not counted */
    struct link_errors *errors; /* by link, NULL: none ever */
    struct link_epoch *epochs;  /* by link, NULL: lanes have never changed */
    struct sim_paths *paths;    /* NULL: nobody keeps them */
    struct part *parts;
    uint32_t n_parts;
    uint32_t vcs_of_router_max;
    /* What this process holds; it is all there is unless there are others. */
    struct sim_world *world; /* owned; NULL: no others */
    bool has_faults;         /* from the start */
    uint32_t first_router;
    uint32_t n_own_routers;
    uint32_t first_own_vc; /* its channels follow each other */
    uint32_t n_own_vcs;
    struct sim_links *held; /* owned; links of which at least one end is here */
    uint32_t n_held;
};

static inline uint32_t sim_n_outboxes(const struct emu_sim *sim)
{
    return sim->n_parts + (!sim->world ? 0 : sim->world->calls->size);
}

static inline bool sim_is_own(const struct emu_sim *sim, uint32_t router)
{
    return router - sim->first_router < sim->n_own_routers;
}

/* Partition of a router; n_parts + rank: it belongs to another process. */
static inline uint32_t sim_part_of(const struct emu_sim *sim, uint32_t router)
{
    return sim_is_own(sim, router) ? sim->routers[router].part : sim->n_parts + sim_rank_of(sim->world, router);
}

/* ---- time ---- */

/* Below n, from 32 random bits: a bias of n / 2^32 that arbitration does not feel. */
static inline uint32_t sim_draw(struct emu_random *random, uint32_t n)
{
    return (uint32_t)((emu_random_next(random) >> 32) * n >> 32);
}

static inline uint64_t sim_length_ps(const struct link_kind *kind, uint32_t units)
{
    return ((units + kind->overhead_units) * kind->unit_ps + (UINT64_C(1) << (SIM_RATE_SHIFT - 1))) >> SIM_RATE_SHIFT;
}

static inline uint64_t sim_later(uint64_t a_ps, uint64_t b_ps)
{
    return a_ps > b_ps ? a_ps : b_ps;
}

/* Slot and offset of a time that is not before the present slot. Events go to the next slot at the earliest. */
static inline uint64_t sim_slot_of(const struct part *part, uint64_t at_ps, uint16_t *offset_out)
{
    uint64_t clock_ps = part->clock_ps;
    uint64_t delta = at_ps - part->slot_ps;
    uint64_t slots;

    if (__builtin_expect(delta > UINT32_MAX, 0))
        slots = delta / clock_ps;
    else
        slots = (uint64_t)((unsigned __int128)delta * part->slots_per_ps >> 64); /* exact, as clock_ps is below 2^32 */
    if (__builtin_expect(slots == 0, 0)) {
        *offset_out = 0;
        return part->slot + 1;
    }
    *offset_out = (uint16_t)(delta - slots * clock_ps);
    return part->slot + slots;
}

/* Of a time in the present slot or beyond the ring. */
struct emu_event *sim_place_elsewhere(struct part *part, uint64_t at_ps, enum emu_event_kind kind);

/* Room for an event of this kind; the caller fills in all but kind and offset. */
static inline struct emu_event *sim_place(struct part *part, uint64_t at_ps, enum emu_event_kind kind)
{
    uint32_t clock_ps = part->clock_ps;
    uint64_t delta = at_ps - part->slot_ps;
    uint64_t slots;
    struct emu_event *event;

    if (__builtin_expect(delta - clock_ps >= part->ring_ps, 0))
        return sim_place_elsewhere(part, at_ps, kind);
    slots = (uint64_t)((unsigned __int128)delta * part->slots_per_ps >> 64);
    event = emu_wheel_place_near(&part->wheel, part->slot + slots, emu_wheel_list_of(kind));
    event->kind = kind;
    if (kind != EMU_EVENT_CREDIT) /* counts for the whole slot */
        event->offset_ps = (uint16_t)((uint32_t)delta - (uint32_t)slots * clock_ps);
    return event;
}

static inline void sim_put(struct part *part, uint64_t at_ps, struct emu_event event)
{
    uint64_t slot = sim_slot_of(part, at_ps, &event.offset_ps);

    emu_wheel_put(&part->wheel, slot, event);
}

/* The head of a channel can be decided on then. */
static inline void sim_look_at(struct part *part, uint32_t channel, uint64_t at_ps)
{
    sim_put(part, at_ps, (struct emu_event){ .kind = EMU_EVENT_LOOK, .index = channel });
}

/* The chunk behind the one that is applied now. */
SIM_INLINE void sim_fetch_chunk(const struct emu_wheel_chunk *chunk)
{
    if (!chunk)
        return;
    for (size_t i = 0; i < EMU_WHEEL_CHUNK_EVENTS; i += 4)
        __builtin_prefetch(&chunk->events[i], 0);
}

static inline uint32_t sim_tokens(const struct emu_sim *sim, uint32_t units)
{
    if (sim->token_shift < 32)
        return (units + sim->p.token_units - 1) >> sim->token_shift;
    return (units + sim->p.token_units - 1) / sim->p.token_units;
}

/* Tokens that a channel could have now: its own, and the shared ones. */
static inline uint32_t sim_free_tokens(const struct out_link *out, uint32_t vc)
{
    int32_t own = out->tokens[vc];

    return (uint32_t)(own > 0 ? own : 0) + out->shared_tokens;
}

/* Its own go first, and come back last. */
static inline void sim_take_tokens(struct out_link *out, uint32_t vc, uint32_t n)
{
    int32_t before = out->tokens[vc];
    int32_t after = before - (int32_t)n;

    out->tokens[vc] = (int16_t)after;
    if (after < 0)
        out->shared_tokens = (uint16_t)(out->shared_tokens - (before < 0 ? (int32_t)n : -after));
}

static inline void sim_return_tokens(struct out_link *out, uint32_t vc, uint32_t n)
{
    int32_t before = out->tokens[vc];
    int32_t after = before + (int32_t)n;

    out->tokens[vc] = (int16_t)after;
    if (before < 0)
        out->shared_tokens = (uint16_t)(out->shared_tokens + (after < 0 ? (int32_t)n : -before));
}

/* In sim->sent and sim->wanted. */
static inline size_t sim_out_vc(const struct emu_sim *sim, uint32_t link, uint32_t vc)
{
    return (size_t)link * sim->vcs_of_link_max + vc;
}

/* What a packet takes of a channel's buffer. */
static inline uint32_t sim_charge(const struct emu_sim *sim, const struct link_kind *kind, uint32_t vc, uint32_t units)
{
    if ((kind->bubble_vcs >> vc & 1) != 0 && sim->p.bubble_charge == EMU_CHARGE_FULL)
        return sim->full_tokens;
    return sim_tokens(sim, units);
}

/* ---- lists of what must be decided in this slot ---- */

static inline void sim_list_router(struct part *part, uint32_t router)
{
    struct router *r = &part->sim->routers[router];

    if (!r->is_listed) {
        r->is_listed = true;
        part->routers[part->n_routers++] = router;
    }
}

static inline void sim_list_nic(struct part *part, uint32_t nid)
{
    struct nic *n = &part->sim->nics[nid];

    if (!n->is_listed) {
        n->is_listed = 1;
        part->nics[part->n_nics++] = nid;
    }
}

/* The bit of a channel in sets of one word. Channels of a large router share bits, so now and then a head is looked at
 * in vain. Those in use are alike (one virtual channel of each link, say), and a multiplicative hash keeps such
 * apart. */
static inline uint32_t sim_mark_number(uint32_t local)
{
    return local * UINT32_C(0x9e3779b1) >> 26;
}

static inline uint64_t sim_mark(const struct router *r, uint32_t local)
{
    return UINT64_C(1) << (r->n_vcs <= 64 ? local : sim_mark_number(local));
}

/* The head of a channel shall be looked at in the present slot. */
static inline void sim_look(struct part *part, uint32_t router, uint32_t local)
{
    struct router *r = &part->sim->routers[router];

    r->look |= sim_mark(r, local);
    sim_list_router(part, router);
}

/* ---- cells.c: packets and options of waiting heads ---- */

void sim_cells_add(struct part *part); /* to the free list */
void sim_options_add(struct part *part);
uint32_t sim_vc_make(struct part *part, uint32_t link, uint32_t vc);   /* its index, when its first packet comes */
struct out_link sim_out_new(const struct emu_sim *sim, uint16_t kind); /* without ends */
void sim_make_outs(struct emu_sim *sim);                               /* of all routers, for those who look at all */
/*
 * An array, or a longer one in its place: zero beyond old_bytes, aligned to cache lines. A large one takes memory page
 * by page, as it is written. NULL: no memory.
 */
void *sim_array(void *old, size_t old_bytes, size_t bytes);
void sim_array_free(void *array);                                     /* NULL is fine */
void sim_array_wish(void *array, size_t first_byte, size_t end_byte); /* all of this will be used: large pages */
void *sim_grown(void *memory, size_t bytes); /* realloc; memory that runs out ends the process */

/* Index of a channel's struct in_vc in the partition's store; SIM_NONE, or one that is zero: not made yet. */
static inline uint32_t sim_vc_index(const struct emu_sim *sim, uint32_t channel)
{
    return !sim->vc_index ? channel : sim->vc_index[channel] - 1; /* of 0: SIM_NONE */
}

/* NULL: not made yet. */
static inline struct in_vc *sim_vc_find(const struct part *part, uint32_t channel)
{
    uint32_t index = sim_vc_index(part->sim, channel);

    return index == SIM_NONE || !part->vcs[index].is_made ? NULL : &part->vcs[index];
}

static inline uint32_t sim_cell_take(struct part *part)
{
    uint32_t cell;

    if (part->free_cell == SIM_NONE)
        sim_cells_add(part);
    cell = part->free_cell;
    part->free_cell = part->cells[cell].next;
    return cell;
}

static inline void sim_cell_free(struct part *part, uint32_t cell)
{
    part->cells[cell].next = part->free_cell;
    part->free_cell = cell;
}

static inline uint32_t sim_options_take(struct part *part)
{
    uint32_t options;

    if (part->free_options == SIM_NONE)
        sim_options_add(part);
    options = part->free_options;
    part->free_options = part->options[options].link;
    return options;
}

static inline void sim_options_free(struct part *part, uint32_t options)
{
    part->options[options].link = part->free_options;
    part->free_options = options;
}

/* Two bits: full quarters, and the fourth as the third. */
static inline uint32_t sim_quarters(uint32_t count, uint32_t quarter)
{
    return (count >= quarter) + (count >= 2 * quarter) + (count >= 3 * quarter);
}

/* ---- router.c ---- */

void sim_routers_arrive(struct part *part, const struct emu_wheel_list *list);
void sim_routers_look(struct part *part, const struct emu_wheel_list *list);
void sim_router_path(struct part *part, const struct emu_event *event);
void sim_routers_decide(struct part *part); /* all that are listed */

/* The head's options are void, as is its claim on the first of them. */
void sim_forget_options(struct part *part, struct in_vc *v);

/* ---- plain.c: the same for plain machines ---- */

void sim_plain_arrive(struct part *part, const struct emu_wheel_list *list);
void sim_plain_look(struct part *part, const struct emu_wheel_list *list);
void sim_plain_wake(struct part *part, struct out_link *out); /* heads that wait for its tokens look in this slot */
void sim_plain_decide(struct part *part);

/* ---- tokens.c ---- */

void sim_credit_links(struct part *part, const struct emu_wheel_list *list);
/* A channel without room: whoever waits for it is told when it has so many tokens. The link stalls from since_ps on. */
void sim_await_tokens(const struct emu_sim *sim, struct out_link *out, uint32_t link, uint32_t vc, uint32_t needed,
                      uint64_t since_ps);

/* ---- unblocking.c ---- */

void sim_count_unblocking(struct part *part, const struct emu_wheel_list *list); /* before they are applied */

/* ---- nic.c ---- */

void sim_nics_decide(struct part *part); /* all that are listed */
void sim_nic_free(struct part *part, const struct emu_event *event);
void sim_nic_report(struct part *part, const struct emu_event *event); /* a delivery, or a loss */
void sim_nics_tell(struct part *part); /* traffic hears of what was reported in this slot */
/* A packet that is gone: tells its sender after sim->lost_ps and frees the cell. */
void sim_lose(struct part *part, uint32_t cell);
/* The same between two runs, counted as lost; the sender hears of it when time goes on. */
void sim_lose_now(struct part *part, uint32_t cell);
void sim_timers(struct part *part);
uint64_t sim_timer_slot(const struct part *part);  /* of the first; UINT64_MAX: none */
uint64_t sim_ending_slot(const struct part *part); /* likewise, of those that end the run */

/* ---- router_load.c: what routers know of each other ---- */

uint32_t sim_near_load(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class);
uint32_t sim_far_load(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class);
void sim_load_next_period(struct part *part);                                 /* of slot_ps */
void sim_load_keep(const struct emu_sim *sim, size_t index, uint64_t period); /* before it changes in a later period */

static inline size_t sim_load_index(const struct emu_sim *sim, uint32_t link, uint32_t traffic_class)
{
    return (size_t)traffic_class * sim->m->n_links + link;
}

/* So many more units, or less; only if sim->loads, and not of a NIC's link. */
static inline void sim_load_add(struct part *part, uint32_t link, uint32_t traffic_class, int32_t units)
{
    size_t index = sim_load_index(part->sim, link, traffic_class);
    uint64_t *load = &part->sim->loads[index];
    int64_t now = (int64_t)(*load & SIM_LOAD_MASK) + units;

    if (__builtin_expect(part->slot_ps >= part->load_end_ps, 0))
        sim_load_next_period(part);
    if (*load >> SIM_LOAD_BITS != part->load_period)
        sim_load_keep(part->sim, index, part->load_period);
    assert(now >= 0 && now <= (int64_t)SIM_LOAD_MASK);
    __atomic_store_n(load, part->load_period << SIM_LOAD_BITS | (uint64_t)now, __ATOMIC_RELEASE);
}

/* Tokens are back; only if sim->loads. */
static inline void sim_load_credited(struct part *part, uint32_t link, uint32_t vc, uint32_t tokens)
{
    const struct emu_sim *sim = part->sim;
    const struct out_link *out = &sim->outs[link];

    if ((out->flags & (OUT_FROM_NIC | OUT_TO_NIC)) == 0)
        sim_load_add(part, link, sim->kinds[out->kind].class_of_vc[vc], -(int32_t)(tokens * sim->p.token_units));
}

/* ---- stats.c ---- */

uint64_t sim_packets(const struct emu_sim *sim, uint32_t link);
uint64_t sim_busy_ps(const struct emu_sim *sim, uint32_t link);

/* ---- retry.c ---- */

/* Time that repetitions take before the packet gets through; sets EMU_PACKET_CORRUPT if the check missed an error. */
uint64_t sim_retry_ps(struct emu_sim *sim, uint32_t link, struct emu_packet *packet, uint64_t length_ps);

/* ---- path_tree.c ---- */

/* A packet starts on the link. */
void sim_note_step(const struct part *part, uint32_t link, uint32_t cell);
void sim_paths_free(struct sim_paths *paths); /* NULL is fine */

/* ---- split.c: who gets which routers ---- */

/* What is counted before routers are split. */
struct sim_survey {
    uint32_t *n_vcs;   /* owned; by router */
    int32_t **crosses; /* owned; by kind, then by router: links that run across the place before it, as differences */
    uint32_t n_kinds;
    uint64_t machine_hash;
};

/* Goes through all links; makes sim->kinds. 0, -EINVAL, -ENOMEM. */
int sim_survey(struct emu_sim *sim, struct sim_survey *survey);
void sim_survey_fini(struct sim_survey *survey);
/* Places n parts, bounds_out[0 .. n], and sets sim->window_slots; when sim->unit_ps is known. */
void sim_split(struct emu_sim *sim, const struct sim_survey *survey, uint32_t n, uint32_t *bounds_out);

/* ---- crew.c: threads ---- */

/* Calls work for each partition, each on its own thread, the first one on this. Threads are made by the first call. */
void sim_crew_work(struct emu_sim *sim, void (*work)(void *ctx, struct part *part), void *ctx);
/* In such a call: goes on when all have come here. What each did before is seen by all behind it. */
void sim_crew_meet(struct emu_sim *sim);
void sim_crew_destroy(struct sim_crew *crew); /* NULL is fine */

/* ---- world.c: several processes ---- */

void sim_take_arrival(struct part *part, const struct arrival_message *message); /* also of another thread */

int sim_world_build(struct emu_sim *sim);     /* when all links are built. 0 or -ENOMEM */
void sim_world_fini(struct sim_world *world); /* NULL is fine */
size_t sim_world_memory(const struct emu_sim *sim);
/* Sends what is in the outboxes for others, takes what they sent. Returns the first slot of all processes. */
uint64_t sim_world_meet(struct emu_sim *sim);
void sim_world_take(struct part *part);                              /* what has come for it */
void sim_world_tell_loads(struct emu_sim *sim, uint64_t start_slot); /* before the window that begins there */
/* Of all processes together; the same without others. */
uint64_t sim_world_least(const struct emu_sim *sim, uint64_t value);
uint64_t sim_world_most(const struct emu_sim *sim, uint64_t value);
void sim_world_sum(const struct emu_sim *sim, uint64_t *values, size_t n);

static inline size_t sim_ghost_index(const struct sim_world *world, uint64_t period, uint32_t number)
{
    return ((size_t)(period % world->n_periods) * world->n_ghosts + number) * EMU_TRAFFIC_CLASSES;
}

/* ---- build.c ---- */

/* Kind of a link with its lanes as they are; adds one if it is new. Negative: -ENOMEM. */
int sim_kind_of(struct emu_sim *sim, const struct emu_link *link, uint32_t lanes_up);

#endif
