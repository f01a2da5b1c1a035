/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: what datagram_life.c (life, requests), datagram_places.c (where one is found), datagram_match.c (who pairs
 * with whom), datagram_virtual.c (their ways in virtual time) and datagram_claims.c (other hosts) share.
 */
#ifndef EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_INNER_H
#define EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_INNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/control.h"
#include "emunic/daemon/world/index.h"
#include "emunic/daemon/world/port_end.h"

struct emu_domain;
struct emu_far_datagram;
struct emu_host_datagram;
struct emu_port_end;
struct emu_server;

/* Where a datagram is found: datagram_places.c has the keys and the lists. */
struct emu_datagram_places {
    struct emu_index_entry by_ep;
    struct emu_index_entry by_peer;
    struct emu_index_entry by_target;
    struct emu_index_entry by_number;
    TAILQ_ENTRY(emu_datagram) wildcard;
    TAILQ_ENTRY(emu_datagram) finished;
    TAILQ_ENTRY(emu_datagram) with_id;
    TAILQ_ENTRY(emu_datagram) orphan;
    TAILQ_ENTRY(emu_datagram) unoffered;
    bool is_among_wildcards;
    bool is_unoffered;
};

/* Data under way in virtual time (datagram_virtual.c). */
struct emu_datagram_trip;

/* What a datagram has of its way. In functional time everything is everywhere at once. */
struct emu_datagram_way {
    struct emu_datagram_trip *outward; /* carries its data to its target; NULL */
    struct emu_datagram_trip *awaited; /* brings the data of who it has paired with; NULL */
    bool is_held;                      /* the command that sends it has not come yet */
    bool is_there;                     /* its data are at its target */
    bool is_paired;                    /* virtual time: and pending until the partner's data have come */
};

/* One that a port of ours has posted. */
struct emu_datagram {
    TAILQ_ENTRY(emu_datagram) link; /* in its port's list, oldest first */
    struct emu_datagram_places places;
    struct emu_port_end *port; /* borrowed: has posted it */
    uint64_t order;            /* counts those of the server */
    uint32_t ep;
    uint32_t flags;
    uint64_t id;
    uint64_t posted_ns;
    uint64_t not_before_ns; /* an injected fault: cannot pair before; UINT64_MAX never; 0 at once */
    uint32_t remote_nid;    /* target, or peer when completed */
    uint32_t remote_instance;
    uint32_t state;
    bool has_no_ep;                   /* its end point was destroyed */
    bool is_offered;                  /* to the host of its target */
    uint32_t host;                    /* of its target; our own for a wildcard */
    uint64_t number;                  /* what other hosts call it; 0: there are none */
    struct emu_far_datagram *claimed; /* owned: waits for the answer; or NULL */
    struct emu_far_datagram *claimer; /* owned: has claimed it meanwhile, and waits; or NULL */
    struct emu_msg *cancel;           /* owned: a request that waits for the answer as well; or NULL */
    struct emu_datagram_way way;
    uint16_t in_bytes; /* ours */
    uint16_t room_bytes;
    uint16_t out_bytes; /* the peer's, once completed */
    uint8_t in[EMU_DATAGRAM_MAX];
    uint8_t out[EMU_DATAGRAM_MAX];
};

TAILQ_HEAD(emu_datagram_list, emu_datagram);

/* What a port has of them. */
struct emu_datagram_port {
    struct emu_datagram_list list;      /* owned, oldest first */
    struct emu_datagram_list wildcards; /* pending and not claimed, oldest first */
    struct emu_datagram_list finished;  /* in that order, not collected */
    struct emu_datagram_list with_id;   /* of them, those that have one */
    struct emu_datagram_list orphans;   /* of them, those whose end point has gone */
    uint32_t n;
    uint32_t n_orphans;
    uint64_t delayed_until_ns; /* when the first of those that a fault delays may pair; 0 none */
};

/* What the server has of them. */
struct emu_datagrams {
    struct emu_index index;
    uint64_t n_posted;
    uint32_t n_delayed;
    bool has_unoffered; /* some wait for room in the queue to another host */
    LIST_HEAD(, emu_datagram_trip) trips;
    const struct emu_datagram *posting;  /* its command is being served; NULL */
    const struct emu_datagram *arriving; /* has just come to its target's node; NULL */
};

static inline struct emu_datagram_port *emu_datagrams_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_DATAGRAMS];
}

static inline struct emu_datagrams *emu_datagrams_in(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_DATAGRAMS];
}

/* Is it over, but for being collected? */
static inline bool emu_datagram_is_final(const struct emu_datagram *d)
{
    return d->state != EMU_DATAGRAM_PENDING && d->state != EMU_DATAGRAM_REMOTE_DATA;
}

/* May it pair with whoever is directed at its port? */
static inline bool emu_datagram_is_wildcard(const struct emu_datagram *d)
{
    return (d->flags & EMU_DATAGRAM_WILDCARD) != 0;
}

/* Is there nothing that keeps it from pairing at once? */
static inline bool emu_datagram_is_free(const struct emu_datagram *d)
{
    return d->state == EMU_DATAGRAM_PENDING && d->not_before_ns == 0 && !d->claimed && !d->way.is_held &&
           !d->way.is_paired;
}

/* Who pairs is where one of the two is at the other's node. */
static inline bool emu_datagram_meets(const struct emu_datagram *a, const struct emu_datagram *b)
{
    return a->way.is_there || b->way.is_there;
}

/* Is it directed at that port? Or was it, until it paired. */
static inline bool emu_datagram_points_to(const struct emu_datagram *d, uint32_t nid, uint32_t instance_id)
{
    return !emu_datagram_is_wildcard(d) && d->remote_nid == nid && d->remote_instance == instance_id;
}

/* ---- datagram.c ---- */

/* It has paired with one of that port, whose data these are. */
void emu_datagram_complete(struct emu_port_end *port, struct emu_datagram *d, uint32_t nid, uint32_t instance_id,
                           const uint8_t *data, uint16_t bytes);
/* A pending one ends without having paired. `state`: enum emu_datagram_state. */
void emu_datagram_end(struct emu_port_end *port, struct emu_datagram *d, uint32_t state);
/* A datagram that was to be cancelled has its answer. */
void emu_datagram_answer_cancel(struct emu_port_end *port, struct emu_datagram *d, int result);

/* Likewise, but its partner's data are still under way: emu_datagram_finish_pair() when they have come. */
void emu_datagram_note_pair(struct emu_datagram *d, const struct emu_datagram *partner);
void emu_datagram_finish_pair(struct emu_datagram *d);

/* ---- datagram_virtual.c ---- */

/* They have met: each is complete when the other's data are at its node. */
void emu_datagram_bring_pair(struct emu_datagram *a, struct emu_datagram *b);
/* A directed one that has no partner sets out, unless it has. */
void emu_datagram_set_out(struct emu_datagram *d);
/* It waits for nothing any more; goes: its data are nobody's either. */
void emu_datagram_leave_way(struct emu_datagram *d, bool goes);
/* The server ends. */
void emu_datagram_end_trips(struct emu_datagrams *datagrams);

/* ---- datagram_places.c ---- */

/* A new, pending one. */
void emu_datagram_place(struct emu_port_end *port, struct emu_datagram *d);
/* A directed one is at its target now. */
void emu_datagram_place_there(struct emu_datagram *d);
/* Other hosts may speak of it by its number. */
void emu_datagram_place_number(struct emu_datagram *d);
/* It has claimed an offer, or its claim has come to nothing. */
void emu_datagram_place_claim(struct emu_datagram *d);
void emu_datagram_place_again(struct emu_datagram *d);
/* It is final now. */
void emu_datagram_place_finished(struct emu_datagram *d);
/* Its end point has gone. */
void emu_datagram_place_orphan(struct emu_datagram *d);
/* It goes. */
void emu_datagram_displace(struct emu_datagram *d);

/* Of an end point of the port; NULL. */
struct emu_datagram *emu_datagram_of_ep(const struct emu_port_end *port, uint32_t ep);
/* Is there a pending one of the port that is directed at that address? The oldest; or the next one. */
struct emu_datagram *emu_datagram_facing(const struct emu_port_end *port, uint32_t nid, uint32_t instance_id);
struct emu_datagram *emu_datagram_facing_next(const struct emu_datagram *d);
/* Has a wildcard of the port paired with that address, or claimed from it, and was not collected? */
bool emu_datagram_is_answered(const struct emu_port_end *port, uint32_t nid, uint32_t instance_id);
/* Pending ones of any port of the domain that are directed at that address: the oldest; the next one. */
struct emu_datagram *emu_datagram_waiting_for(const struct emu_port_end *target);
struct emu_datagram *emu_datagram_waiting_next(const struct emu_datagram *d);

/* ---- datagram_match.c ---- */

/* Finds a partner for a free one, among ours or the offers of other hosts; or offers it. */
void emu_datagram_match(struct emu_port_end *port, struct emu_datagram *d);
/* Finds one of ours for an offer. */
void emu_datagram_match_offer(struct emu_domain *domain, struct emu_far_datagram *offered);
/* A directed one of `port` does not face offers of its target any more: they are free for wildcards. */
void emu_datagram_match_offers_of(struct emu_port_end *port, uint32_t nid, uint32_t instance_id);
/* Lets delayed datagrams pair whose time has come, and offers those to other hosts that there was no room for. */
unsigned emu_datagram_look_at_delayed(struct emu_server *server);
/* The network has changed: lets those pair that have a way now. */
void emu_datagram_look_at_all(struct emu_server *server);
/* When the first delayed one may pair; UINT64_MAX: none is. */
uint64_t emu_datagram_next_ns(const struct emu_server *server);
/* A new one cannot pair before; UINT64_MAX never; 0 at once. */
void emu_datagram_delay(struct emu_port_end *port, struct emu_datagram *d, uint64_t not_before_ns);
/* A delayed datagram's time has come, or it goes. */
void emu_datagram_end_delay(struct emu_port_end *port, struct emu_datagram *d);

/* ---- datagram_claims.c; nothing on a machine of one host ---- */

/* May there be a new one, which is offered if it is for another host? */
bool emu_datagram_has_room(struct emu_port_end *port, const struct emu_msg_datagram *wanted);
/* What other hosts need to know of a new datagram; one for a host that is lost ends. */
void emu_datagram_introduce(struct emu_port_end *port, struct emu_datagram *d);
/* Tells the host of its target, once it may pair. */
void emu_datagram_offer(struct emu_port_end *port, struct emu_datagram *d);
/* Offers those that the queue to their host had no room for. */
void emu_datagram_offer_again(struct emu_server *server);
/* Asks the home of `offer`, which is taken, for it; `d` waits for the answer. */
void emu_datagram_claim(struct emu_port_end *port, struct emu_datagram *d, struct emu_far_datagram *offer);
/* It will pair no more, and is not pending: others give it up. nid, instance_id: its target, or who it paired with. */
void emu_datagram_let_go(struct emu_port_end *port, struct emu_datagram *d, uint32_t nid, uint32_t instance_id,
                         bool is_known_there);
/* Another host says something of datagrams. */
void emu_datagram_hear(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                       const struct emu_host_datagram *said);

#endif
