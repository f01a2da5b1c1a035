/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between hosts: messages, and the offers of other hosts. The protocol is told in the header.
 *
 * An index for each domain has, by kind:
 *
 *   OURS     our datagrams, by number
 *   KEPT     offers of a host, by number and target
 *   CLAIMED  the same once claimed, until the answer
 *   TARGET   offers by target, in the order of their coming
 *   PAIR     offers by target and source
 */
#include "emunic/daemon/datagrams/datagram_hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"

TAILQ_HEAD(offer_list, emu_far_datagram);

/* What a domain and another host have on offer. */
struct offer_host {
    uint32_t n_there;                   /* ours, there */
    uint32_t n_here;                    /* theirs, here */
    struct emu_datagram_list unoffered; /* ours that there was no room for */
    bool is_lost;
};

struct emu_offers {
    struct emu_index index;
    struct offer_list list; /* owned contents: theirs, here */
    uint64_t last_number;
    struct offer_host hosts[]; /* of all hosts of the machine */
};

enum { OURS, KEPT, CLAIMED, TARGET, PAIR };

static uint64_t address(uint32_t nid, uint32_t instance_id)
{
    return (uint64_t)nid << 32 | instance_id;
}

/* KEPT, CLAIMED */
static struct emu_key key_of_number(uint64_t kind, uint32_t host, uint64_t number, uint64_t to)
{
    return (struct emu_key){ { kind << 32 | host, number, to } };
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
    TAILQ_INIT(&offers->list);
    for (uint32_t i = 0; i < n_hosts; i++)
        TAILQ_INIT(&offers->hosts[i].unoffered);
    domain->slots[EMU_DOMAIN_OFFERS] = offers;
    return 0;
}

/* All, or those of one host. */
static void forget_offers(struct emu_domain *domain, bool is_all, uint32_t host)
{
    struct emu_far_datagram *offer = TAILQ_FIRST(&emu_offers_of(domain)->list);

    while (offer) {
        struct emu_far_datagram *next = TAILQ_NEXT(offer, link);

        if (is_all || offer->host == host) {
            emu_offer_take(domain, offer);
            free(offer);
        }
        offer = next;
    }
}

void emu_offers_end(struct emu_domain *domain)
{
    if (emu_offers_of(domain)) {
        forget_offers(domain, true, 0);
        emu_index_fini(&emu_offers_of(domain)->index);
    }
    free(emu_offers_of(domain));
    domain->slots[EMU_DOMAIN_OFFERS] = NULL;
}

void emu_offers_forget(struct emu_domain *domain, uint32_t host)
{
    forget_offers(domain, false, host);
}

void emu_offers_set_lost(struct emu_domain *domain, uint32_t host, bool is_lost)
{
    emu_offers_of(domain)->hosts[host].is_lost = is_lost;
}

uint64_t emu_offers_number(struct emu_domain *domain, struct emu_datagram *d)
{
    struct emu_offers *offers = emu_offers_of(domain);

    offers->last_number++;
    emu_index_add(&offers->index, (struct emu_key){ { (uint64_t)OURS << 32, offers->last_number } },
                  &d->places.by_number);
    return offers->last_number;
}

void emu_offers_forget_number(struct emu_datagram *d)
{
    emu_index_remove(&emu_offers_of(d->port->domain)->index, &d->places.by_number);
}

struct emu_datagram *emu_offers_find_ours(const struct emu_domain *domain, uint32_t nid, uint32_t instance_id,
                                          uint64_t number)
{
    struct emu_key key = { { (uint64_t)OURS << 32, number } };
    struct emu_datagram *d =
        EMU_INDEXED(emu_index_oldest(&emu_offers_of(domain)->index, key), struct emu_datagram, places.by_number);

    return d && d->port->nid == nid && d->port->instance_id == instance_id ? d : NULL;
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

void emu_offers_wait(struct emu_datagram *d)
{
    if (d->places.is_unoffered)
        return;
    d->places.is_unoffered = true;
    TAILQ_INSERT_TAIL(&emu_offers_of(d->port->domain)->hosts[d->host].unoffered, d, places.unoffered);
}

void emu_offers_end_waiting(struct emu_datagram *d)
{
    d->places.is_unoffered = false;
    TAILQ_REMOVE(&emu_offers_of(d->port->domain)->hosts[d->host].unoffered, d, places.unoffered);
}

struct emu_datagram *emu_offers_first_waiting(const struct emu_domain *domain, uint32_t host)
{
    return TAILQ_FIRST(&emu_offers_of(domain)->hosts[host].unoffered);
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
    struct emu_offers *offers = emu_offers_of(domain);
    struct offer_host *host = &offers->hosts[offer->host];
    uint64_t to = address(offer->to_nid, offer->to_instance);

    if (host->n_here >= EMU_OFFERS_MAX)
        return -ENOSPC;
    host->n_here++;
    TAILQ_INSERT_TAIL(&offers->list, offer, link);
    emu_index_add(&offers->index, key_of_number(KEPT, offer->host, offer->number, to), &offer->by_number);
    emu_index_add(&offers->index, (struct emu_key){ { (uint64_t)TARGET << 32, to } }, &offer->by_target);
    emu_index_add(&offers->index,
                  (struct emu_key){ { (uint64_t)PAIR << 32, to, address(offer->nid, offer->instance_id) } },
                  &offer->by_pair);
    return 0;
}

void emu_offer_take(struct emu_domain *domain, struct emu_far_datagram *offer)
{
    struct emu_offers *offers = emu_offers_of(domain);

    offers->hosts[offer->host].n_here--;
    TAILQ_REMOVE(&offers->list, offer, link);
    emu_index_remove(&offers->index, &offer->by_number);
    emu_index_remove(&offers->index, &offer->by_target);
    emu_index_remove(&offers->index, &offer->by_pair);
}

void emu_offers_claim(struct emu_domain *domain, struct emu_far_datagram *claimed)
{
    uint64_t to = address(claimed->to_nid, claimed->to_instance);

    emu_index_add(&emu_offers_of(domain)->index, key_of_number(CLAIMED, claimed->host, claimed->number, to),
                  &claimed->by_number);
}

void emu_offers_unclaim(struct emu_domain *domain, struct emu_far_datagram *claimed)
{
    emu_index_remove(&emu_offers_of(domain)->index, &claimed->by_number);
}

bool emu_offers_is_claimed(const struct emu_domain *domain, uint32_t host, const struct emu_host_datagram *said)
{
    uint64_t to = address(said->to_nid, said->to_instance);

    return emu_index_oldest(&emu_offers_of(domain)->index, key_of_number(CLAIMED, host, said->number, to));
}

struct emu_far_datagram *emu_offer_find(const struct emu_domain *domain, uint32_t host, uint64_t number,
                                        uint32_t to_nid, uint32_t to_instance)
{
    struct emu_key key = key_of_number(KEPT, host, number, address(to_nid, to_instance));

    return EMU_INDEXED(emu_index_oldest(&emu_offers_of(domain)->index, key), struct emu_far_datagram, by_number);
}

struct emu_far_datagram *emu_offer_to(const struct emu_port_end *port)
{
    struct emu_key key = { { (uint64_t)TARGET << 32, address(port->nid, port->instance_id) } };

    return EMU_INDEXED(emu_index_oldest(&emu_offers_of(port->domain)->index, key), struct emu_far_datagram, by_target);
}

struct emu_far_datagram *emu_offer_to_next(const struct emu_far_datagram *offer)
{
    return EMU_INDEXED(emu_index_newer(&offer->by_target), struct emu_far_datagram, by_target);
}

struct emu_far_datagram *emu_offer_between(const struct emu_port_end *port, uint32_t nid, uint32_t instance_id)
{
    struct emu_key key = { { (uint64_t)PAIR << 32, address(port->nid, port->instance_id), address(nid, instance_id) } };

    return EMU_INDEXED(emu_index_oldest(&emu_offers_of(port->domain)->index, key), struct emu_far_datagram, by_pair);
}

struct emu_far_datagram *emu_offer_between_next(const struct emu_far_datagram *offer)
{
    return EMU_INDEXED(emu_index_newer(&offer->by_pair), struct emu_far_datagram, by_pair);
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
