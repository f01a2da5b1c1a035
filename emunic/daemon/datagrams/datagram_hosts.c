/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between hosts: messages, and the offers of other hosts. The protocol is told in the header.
 *
 * Offers of a domain lie in a hash table by their target; each place is a list in the order of their coming.
 */
#include "emunic/daemon/datagrams/datagram_hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"

#define PLACES 1024u

TAILQ_HEAD(offer_list, emu_far_datagram);

/* What a domain and another host have on offer. */
struct offer_host {
    uint32_t n_there; /* ours, there */
    uint32_t n_here;  /* theirs, here */
    bool is_lost;
};

struct emu_offers {
    struct offer_list places[PLACES]; /* owned contents */
    uint64_t last_number;
    struct offer_host hosts[]; /* of all hosts of the machine */
};

static struct offer_list *place_of(struct emu_offers *offers, uint32_t nid, uint32_t instance_id)
{
    uint64_t key = ((uint64_t)nid << 32 | instance_id) * 0x9e3779b97f4a7c15ull;

    return &offers->places[key >> 54];
}

int emu_offers_begin(struct emu_server *server, struct emu_domain *domain)
{
    uint32_t n_hosts = emu_hosts_count(server);
    struct emu_offers *offers;

    if (emu_offers_of(domain))
        return 0;
    offers = calloc(1, sizeof(*offers) + n_hosts * sizeof(offers->hosts[0]));
    if (!offers)
        return -ENOMEM;
    for (unsigned i = 0; i < PLACES; i++)
        TAILQ_INIT(&offers->places[i]);
    domain->slots[EMU_DOMAIN_OFFERS] = offers;
    return 0;
}

/* All, or those of one host. */
static void forget_offers(struct emu_offers *offers, bool is_all, uint32_t host)
{
    for (unsigned i = 0; i < PLACES; i++) {
        struct emu_far_datagram *offer = TAILQ_FIRST(&offers->places[i]);

        while (offer) {
            struct emu_far_datagram *next = TAILQ_NEXT(offer, link);

            if (is_all || offer->host == host) {
                TAILQ_REMOVE(&offers->places[i], offer, link);
                free(offer);
            }
            offer = next;
        }
    }
}

void emu_offers_end(struct emu_domain *domain)
{
    if (emu_offers_of(domain))
        forget_offers(emu_offers_of(domain), true, 0);
    free(emu_offers_of(domain));
    domain->slots[EMU_DOMAIN_OFFERS] = NULL;
}

void emu_offers_forget(struct emu_domain *domain, uint32_t host)
{
    forget_offers(emu_offers_of(domain), false, host);
    emu_offers_of(domain)->hosts[host].n_here = 0;
}

void emu_offers_set_lost(struct emu_domain *domain, uint32_t host, bool is_lost)
{
    emu_offers_of(domain)->hosts[host].is_lost = is_lost;
}

uint64_t emu_offers_number(struct emu_domain *domain)
{
    return ++emu_offers_of(domain)->last_number;
}

uint32_t emu_datagram_host_of(const struct emu_server *server, const struct emu_domain *domain, uint32_t nid)
{
    uint32_t node = emu_domain_node_of(domain, nid);

    return node == EMU_NID_NONE ? emu_hosts_own(server) : emu_hosts_of_node(domain, node);
}

bool emu_datagram_host_is_lost(const struct emu_domain *domain, uint32_t host)
{
    return emu_offers_of(domain)->hosts[host].is_lost;
}

int emu_datagram_tell_host(struct emu_server *server, const struct emu_domain *domain, uint32_t host,
                           const struct emu_host_datagram *message)
{
    uint8_t bytes[EMU_HOST_DATAGRAM_MAX];
    uint32_t length = emu_host_datagram_put(bytes, domain->common_number, message);

    /* How many of the others there are follows from what that host has offered and claimed. */
    return message->word == EMU_DATAGRAM_OFFER ? emu_hosts_send(server, host, bytes, length) :
                                                 emu_hosts_answer(server, host, bytes, length);
}

bool emu_offers_has_room(const struct emu_domain *domain, uint32_t host)
{
    return emu_offers_of(domain)->hosts[host].n_there < EMU_OFFERS_MAX;
}

void emu_offers_count(struct emu_domain *domain, uint32_t host, int change)
{
    emu_offers_of(domain)->hosts[host].n_there += (uint32_t)change;
}

struct emu_far_datagram *emu_far_datagram_create(uint32_t host, const struct emu_host_datagram *message)
{
    struct emu_far_datagram *far = calloc(1, sizeof(*far));

    if (!far)
        return NULL;
    far->host = host;
    far->number = message->word == EMU_DATAGRAM_CLAIM ? message->claimer : message->number;
    far->nid = message->nid;
    far->instance_id = message->instance_id;
    far->to_nid = message->to_nid;
    far->to_instance = message->to_instance;
    far->arrived_ns = emu_clock_ns();
    far->bytes = (uint16_t)message->bytes;
    memcpy(far->data, message->data, message->bytes);
    return far;
}

int emu_offer_keep(struct emu_domain *domain, struct emu_far_datagram *offer)
{
    struct offer_host *host = &emu_offers_of(domain)->hosts[offer->host];

    if (host->n_here >= EMU_OFFERS_MAX)
        return -ENOSPC;
    host->n_here++;
    TAILQ_INSERT_TAIL(place_of(emu_offers_of(domain), offer->to_nid, offer->to_instance), offer, link);
    return 0;
}

void emu_offer_take(struct emu_domain *domain, struct emu_far_datagram *offer)
{
    emu_offers_of(domain)->hosts[offer->host].n_here--;
    TAILQ_REMOVE(place_of(emu_offers_of(domain), offer->to_nid, offer->to_instance), offer, link);
}

struct emu_far_datagram *emu_offer_next(const struct emu_domain *domain, const struct emu_far_datagram *offer,
                                        uint32_t nid, uint32_t instance_id)
{
    struct emu_far_datagram *next =
        offer ? TAILQ_NEXT(offer, link) : TAILQ_FIRST(place_of(emu_offers_of(domain), nid, instance_id));

    while (next && (next->to_nid != nid || next->to_instance != instance_id))
        next = TAILQ_NEXT(next, link);
    return next;
}

/* ---- what comes ---- */

bool emu_datagram_host_message(struct emu_server *server, uint32_t host, const uint8_t *message, uint32_t length_bytes)
{
    struct emu_host_datagram d;
    struct emu_domain *domain;
    struct emu_host_head head;

    if (!emu_host_head_parse(message, length_bytes, &head) || !emu_host_datagram_parse(message, length_bytes, &d))
        return false;
    domain = emu_hosts_find_domain(server, head.domain);
    if (!domain)
        return true; /* it has ended, or has not come yet */
    /* Each speaks for ports of its own nodes, about those of ours. */
    if (d.word != EMU_DATAGRAM_BEGIN &&
        (emu_domain_node_of(domain, d.nid) == EMU_NID_NONE || emu_datagram_host_of(server, domain, d.nid) != host ||
         emu_domain_node_of(domain, d.to_nid) == EMU_NID_NONE ||
         emu_datagram_host_of(server, domain, d.to_nid) != emu_hosts_own(server)))
        return false;
    if (emu_offers_begin(server, domain) == 0)
        emu_datagram_hear(server, domain, host, &d);
    return true;
}
