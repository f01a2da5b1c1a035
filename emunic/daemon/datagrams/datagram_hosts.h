/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between ports of nodes on different hosts: what hosts tell each other, and what is kept here of datagrams
 * that live elsewhere. Who pairs with whom is decided in datagram_match.c alone.
 *
 * A datagram stays with the host of its port, which alone decides what becomes of it. One that is directed at a node
 * of another host is *offered* there, with its data. The target's host keeps offers by target, whether there is such
 * a port yet or not. Who finds an offer for a datagram of his own *claims* it: the claim carries his data, and his
 * datagram waits for the answer. The offer's host completes the offered datagram and *accepts*, or *refuses*, because
 * that datagram is no more; then the claimer's goes on looking.
 *
 *   home                          target's host
 *   pending   -- offer ------->   kept, or at once:
 *   completed <------ claim --    pending, waits
 *             -- accept ------>   completed
 *   gone      <------ claim --    pending, waits
 *             -- refuse ------>   pending, looks for the next one
 *   gone      -- withdraw ---->   offer forgotten
 *
 * Of two directed datagrams that face each other the one on the host with the lower number claims; the other one waits
 * to be claimed, and keeps wildcards of its port away from the offer that it faces. Wildcards are not offered, so
 * nobody claims them. Hence a datagram that waits for an answer can be claimed itself only if it is a directed one of
 * the lower host, and what it has claimed is a directed one of the higher host, which never claims and so is answered
 * for at once: such a claim is held until the own one is answered. Nobody waits in a circle, and every claim is
 * answered once. Messages from host to host stay in order, so an offer never comes after a claim by the same datagram,
 * and there is at most one claim under way for each.
 *
 * A cancel of a datagram that waits for an answer is itself answered then: it has completed, or it is terminated. One
 * whose end point or port goes does not wait: the claim may be accepted, and the peer has completed with somebody who
 * has gone, as it could on one host.
 *
 * When a host is lost, its offers are forgotten, claims there count as refused, and what was directed at it ends with
 * an error, as does what is directed at it from then on; so nobody waits for a host that has gone. When it is there
 * again, or for the first time, what waits for it is offered. If a host is lost between accept and answer, one side has
 * completed and the other one has not.
 *
 * A host that makes a domain, or learns a new number for it, has missed what the others have told it of the domain. It
 * says so to all (EMU_DATAGRAM_BEGIN): they forget what it has offered, count their claims there as refused, and offer
 * anew; and so does it.
 *
 * A host may have EMU_OFFERS_MAX datagrams of a domain on offer at another one.
 */
#ifndef EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_HOSTS_H
#define EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_HOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/host_datagram.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/index.h"

struct emu_datagram;
struct emu_domain;
struct emu_offers;
struct emu_port_end;
struct emu_server;

#define EMU_OFFERS_MAX (1u << 18)

/* A datagram that lives on another host, as far as it is known here. */
struct emu_far_datagram {
    TAILQ_ENTRY(emu_far_datagram) link; /* all offers of its domain */
    struct emu_index_entry by_number;
    struct emu_index_entry by_target;
    struct emu_index_entry by_pair;
    uint32_t host;
    uint64_t number; /* there */
    uint32_t nid;    /* of its port */
    uint32_t instance_id;
    uint32_t to_nid; /* whom it is for */
    uint32_t to_instance;
    uint64_t arrived_ns;
    uint16_t bytes;
    uint8_t data[EMU_DATAGRAM_MAX];
};

/* ---- what host_domains.c and domain.c call ---- */

/* What a domain has of them; NULL until needed. */
static inline struct emu_offers *emu_offers_of(const struct emu_domain *domain)
{
    return domain->slots[EMU_DOMAIN_OFFERS];
}

/* The domain is new here, or has a new number: what others have told of it is lost. */
void emu_datagram_domain_begins(struct emu_server *server, struct emu_domain *domain);
/* The domain ends; its ports have gone. */
void emu_offers_end(struct emu_domain *domain);

/* ---- for the part ---- */

/* False: the message makes no sense. */
bool emu_datagram_host_message(struct emu_server *server, uint32_t host, const uint8_t *message, uint32_t length_bytes);
void emu_datagram_host_up(struct emu_server *server, uint32_t host);
void emu_datagram_host_down(struct emu_server *server, uint32_t host);

/* ---- for datagram_claims.c and datagram_match.c; the server has several hosts ---- */

/* What all others need; once more is nothing. -ENOMEM. */
int emu_offers_begin(struct emu_server *server, struct emu_domain *domain);
/* Of a datagram of ours that others may hear of; never twice, never 0. */
uint64_t emu_offers_number(struct emu_domain *domain, struct emu_datagram *d);
void emu_offers_forget_number(struct emu_datagram *d);
/* The datagram of a port of ours with this number, or NULL. */
struct emu_datagram *emu_offers_find_ours(const struct emu_domain *domain, uint32_t nid, uint32_t instance_id,
                                          uint64_t number);
/* Host of a node of the domain; our own also for what is none. */
uint32_t emu_datagram_host_of(const struct emu_server *server, const struct emu_domain *domain, uint32_t nid);
/* Was it there, and is not any more? */
bool emu_datagram_host_is_lost(const struct emu_domain *domain, uint32_t host);
/* `message` goes to the domain there. 0; -ENOTCONN, -ENOMEM; an offer also -ENOBUFS: again in a later round. */
int emu_datagram_tell_host(struct emu_server *server, const struct emu_domain *domain, uint32_t host,
                           const struct emu_host_datagram *message);
/* Ours that are on offer there: may there be one more; one more, one less. */
bool emu_offers_has_room(const struct emu_domain *domain, uint32_t host);
void emu_offers_count(struct emu_domain *domain, uint32_t host, int change);
/* There was no room for an offer of ours: those wait in order, by host. */
void emu_offers_wait(struct emu_datagram *d);
void emu_offers_end_waiting(struct emu_datagram *d);
struct emu_datagram *emu_offers_first_waiting(const struct emu_domain *domain, uint32_t host);
/* Theirs. Copy of what an offer or a claim tells; the caller's. NULL: no memory. */
struct emu_far_datagram *emu_far_datagram_create(uint32_t host, const struct emu_host_datagram *message);
/* -ENOSPC: its host has too many. */
int emu_offer_keep(struct emu_domain *domain, struct emu_far_datagram *offer);
/* Takes one out; it is the caller's. */
void emu_offer_take(struct emu_domain *domain, struct emu_far_datagram *offer);
/* One that was taken out waits for the answer to its claim, or does not any more. */
void emu_offers_claim(struct emu_domain *domain, struct emu_far_datagram *claimed);
void emu_offers_unclaim(struct emu_domain *domain, struct emu_far_datagram *claimed);
bool emu_offers_is_claimed(const struct emu_domain *domain, uint32_t host, const struct emu_host_datagram *said);
/* The offer with that number, which is not claimed; NULL. */
struct emu_far_datagram *emu_offer_find(const struct emu_domain *domain, uint32_t host, uint64_t number,
                                        uint32_t to_nid, uint32_t to_instance);
/* Those to a port, as they came, and of them those from one address: the first, the next. NULL: no more. */
struct emu_far_datagram *emu_offer_to(const struct emu_port_end *port);
struct emu_far_datagram *emu_offer_to_next(const struct emu_far_datagram *offer);
struct emu_far_datagram *emu_offer_between(const struct emu_port_end *port, uint32_t nid, uint32_t instance_id);
struct emu_far_datagram *emu_offer_between_next(const struct emu_far_datagram *offer);
/* Forgets all of that host. */
void emu_offers_forget(struct emu_domain *domain, uint32_t host);
void emu_offers_set_lost(struct emu_domain *domain, uint32_t host, bool is_lost);

#endif
