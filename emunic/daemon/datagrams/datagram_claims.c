/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of ours and other hosts: what we offer and claim there, what they say, and hosts that come and go. The
 * protocol is told in datagram_hosts.h; who pairs with whom is decided in datagram_match.c.
 */
#include "emunic/daemon/datagrams/datagram_hosts.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/abi/control.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"

/* What a message says of a datagram, beside the datagram. */
struct about {
    enum emu_host_datagram_word word;
    uint64_t number;
    uint64_t claimer;
    uint32_t nid; /* of the other side */
    uint32_t instance_id;
};

static int tell_host(const struct emu_port_end *port, uint32_t host, const struct about *about,
                     const struct emu_datagram *d)
{
    const struct emu_host_datagram message = { .word = about->word,
                                               .bytes = d ? d->in_bytes : 0,
                                               .number = about->number,
                                               .claimer = about->claimer,
                                               .nid = port->nid,
                                               .instance_id = port->instance_id,
                                               .to_nid = about->nid,
                                               .to_instance = about->instance_id,
                                               .data = d ? d->in : NULL };

    return emu_datagram_tell_host(port->server, port->domain, host, &message);
}

/* Who has claimed one of `port` hears that it has it, or that there is no such datagram any more. */
static void answer_claim(const struct emu_port_end *port, uint64_t number, const struct emu_far_datagram *claimer,
                         bool is_taken)
{
    const struct about about = { .word = is_taken ? EMU_DATAGRAM_ACCEPT : EMU_DATAGRAM_REFUSE,
                                 .number = number,
                                 .claimer = claimer->number,
                                 .nid = claimer->nid,
                                 .instance_id = claimer->instance_id };

    tell_host(port, claimer->host, &about, NULL);
}

bool emu_datagram_has_room(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    uint32_t host;

    if (!emu_hosts_are_several(port->server))
        return true;
    if (emu_offers_begin(port->server, port->domain) < 0)
        return false;
    host = emu_datagram_host_of(port->server, port->domain, wanted->remote_nid);
    return host == emu_hosts_own(port->server) || emu_offers_has_room(port->domain, host);
}

void emu_datagram_introduce(struct emu_port_end *port, struct emu_datagram *d)
{
    if (!emu_hosts_are_several(port->server))
        return;
    d->number = emu_offers_number(port->domain, d);
    d->host = emu_datagram_is_wildcard(d) ? emu_hosts_own(port->server) :
                                            emu_datagram_host_of(port->server, port->domain, d->remote_nid);
    if (d->state == EMU_DATAGRAM_PENDING && emu_datagram_host_is_lost(port->domain, d->host))
        emu_datagram_end(port, d, EMU_DATAGRAM_ERROR);
}

void emu_datagram_offer(struct emu_port_end *port, struct emu_datagram *d)
{
    int r;

    if (d->is_offered || !emu_hosts_is_up(port->server, d->host))
        return;
    r = tell_host(
        port, d->host,
        &(struct about){
            .word = EMU_DATAGRAM_OFFER, .number = d->number, .nid = d->remote_nid, .instance_id = d->remote_instance },
        d);
    if (r == 0) {
        d->is_offered = true;
        emu_offers_count(port->domain, d->host, 1);
    } else if (r != -ENOTCONN) {
        emu_datagrams_in(port->server)->has_unoffered = true;
        emu_offers_wait(d);
    }
}

/* Those of a domain to one host, the longest waiting first. False: there is no room again. */
static bool offer_waiting(struct emu_domain *domain, uint32_t host)
{
    struct emu_datagram *d;

    while ((d = emu_offers_first_waiting(domain, host))) {
        if (emu_datagram_is_free(d))
            emu_datagram_offer(d->port, d);
        if (emu_datagram_is_free(d) && !d->is_offered && emu_hosts_is_up(d->port->server, host))
            return false;
        emu_offers_end_waiting(d);
    }
    return true;
}

void emu_datagram_offer_again(struct emu_server *server)
{
    struct emu_domain *domain;

    bool has_unoffered = false;

    LIST_FOREACH(domain, &server->domains, link) {
        for (uint32_t host = 0; emu_offers_of(domain) && host < emu_hosts_count(server); host++)
            has_unoffered = !offer_waiting(domain, host) || has_unoffered;
    }
    emu_datagrams_in(server)->has_unoffered = has_unoffered;
}

void emu_datagram_claim(struct emu_port_end *port, struct emu_datagram *d, struct emu_far_datagram *offer)
{
    emu_offer_take(port->domain, offer);
    const struct about about = { .word = EMU_DATAGRAM_CLAIM,
                                 .number = offer->number,
                                 .claimer = d->number,
                                 .nid = offer->nid,
                                 .instance_id = offer->instance_id };

    if (tell_host(port, offer->host, &about, d) < 0) {
        free(offer); /* its host is going down */
        return;
    }
    d->claimed = offer;
    emu_datagram_place_claim(d);
    emu_offers_claim(port->domain, offer);
}

/* Its claim is answered, or nobody waits for the answer any more. */
static void end_claim(struct emu_datagram *d)
{
    if (!d->claimed)
        return;
    emu_offers_unclaim(d->port->domain, d->claimed);
    free(d->claimed);
    d->claimed = NULL;
}

void emu_datagram_let_go(struct emu_port_end *port, struct emu_datagram *d, uint32_t nid, uint32_t instance_id,
                         bool is_known_there)
{
    if (d->claimer)
        answer_claim(port, d->number, d->claimer, false);
    free(d->claimer);
    d->claimer = NULL;
    end_claim(d);
    if (d->is_offered) {
        if (!is_known_there)
            tell_host(port, d->host,
                      &(struct about){
                          .word = EMU_DATAGRAM_WITHDRAW, .number = d->number, .nid = nid, .instance_id = instance_id },
                      NULL);
        d->is_offered = false;
        emu_offers_count(port->domain, d->host, -1);
    }
    if (d->number != 0 && !emu_datagram_is_wildcard(d))
        emu_datagram_match_offers_of(port, nid, instance_id);
}

static void complete_far(struct emu_port_end *port, struct emu_datagram *d, const struct emu_far_datagram *far)
{
    emu_datagram_complete(port, d, far->nid, far->instance_id, far->data, far->bytes);
}

/* ---- what they say ---- */

static void forget_offer(struct emu_domain *domain, uint32_t host, uint64_t number, uint32_t to_nid,
                         uint32_t to_instance)
{
    struct emu_far_datagram *offered = emu_offer_find(domain, host, number, to_nid, to_instance);

    if (offered)
        emu_offer_take(domain, offered);
    free(offered);
}

static void hear_offer(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                       const struct emu_host_datagram *said)
{
    struct emu_far_datagram *offered;

    /* Again, because a host began anew? */
    if (emu_offer_find(domain, host, said->number, said->to_nid, said->to_instance) ||
        emu_offers_is_claimed(domain, host, said))
        return;
    offered = emu_far_datagram_create(host, said);
    if (!offered)
        return;
    if (emu_offer_keep(domain, offered) < 0) {
        emu_hosts_refuse(server, host, "an offer of a datagram, beyond all that it may have");
        free(offered);
        return;
    }
    emu_datagram_match_offer(domain, offered);
}

/* One of ours pairs with who has claimed it. */
static void accept_claim(struct emu_port_end *port, struct emu_datagram *d, const struct emu_far_datagram *claimer)
{
    complete_far(port, d, claimer);
    answer_claim(port, d->number, claimer, true);
    forget_offer(port->domain, claimer->host, claimer->number, port->nid, port->instance_id);
    emu_datagram_let_go(port, d, claimer->nid, claimer->instance_id, true);
}

static void hear_claim(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                       const struct emu_host_datagram *said)
{
    struct emu_far_datagram *claimer = emu_far_datagram_create(host, said);
    struct emu_datagram *d;

    if (!claimer)
        return;
    d = emu_offers_find_ours(domain, said->to_nid, said->to_instance, said->number);
    if (d && d->state == EMU_DATAGRAM_PENDING && d->is_offered &&
        emu_datagram_points_to(d, said->nid, said->instance_id) && !d->claimer) {
        if (d->claimed) {
            d->claimer = claimer;
            return;
        }
        accept_claim(d->port, d, claimer);
    } else {
        const struct emu_host_datagram answer = { .word = EMU_DATAGRAM_REFUSE,
                                                  .number = said->number,
                                                  .claimer = said->claimer,
                                                  .nid = said->to_nid,
                                                  .instance_id = said->to_instance,
                                                  .to_nid = said->nid,
                                                  .to_instance = said->instance_id };

        emu_datagram_tell_host(server, domain, host, &answer);
    }
    free(claimer);
}

/* Its claim has come to nothing. */
static void go_on(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_far_datagram *claimer = d->claimer;

    end_claim(d);
    emu_datagram_place_again(d);
    if (d->cancel) {
        emu_datagram_end(port, d, EMU_DATAGRAM_TERMINATED);
        emu_datagram_answer_cancel(port, d, 0);
    } else if (claimer) {
        d->claimer = NULL;
        accept_claim(port, d, claimer);
        free(claimer);
    } else {
        emu_datagram_match(port, d);
    }
}

static void hear_answer(struct emu_domain *domain, uint32_t host, const struct emu_host_datagram *said)
{
    struct emu_datagram *d = emu_offers_find_ours(domain, said->to_nid, said->to_instance, said->claimer);

    if (!d || !d->claimed || d->claimed->host != host || d->claimed->number != said->number) {
        /* Who asked has gone. The offer is over, even if it was made again. */
        forget_offer(domain, host, said->number, said->to_nid, said->to_instance);
        return;
    }
    if (said->word == EMU_DATAGRAM_REFUSE) {
        go_on(d->port, d);
        return;
    }
    complete_far(d->port, d, d->claimed);
    emu_datagram_let_go(d->port, d, d->remote_nid, d->remote_instance, true);
    if (d->cancel)
        emu_datagram_answer_cancel(d->port, d, EMU_OUTCOME_NO_MATCH);
}

/* What we and that host have told each other of the domain counts no more. */
static void start_anew(struct emu_server *server, struct emu_domain *domain, uint32_t host)
{
    struct emu_port_end *port;
    struct emu_datagram *d;

    emu_offers_forget(domain, host);
    LIST_FOREACH(port, &server->ports, link) {
        if (port->domain != domain)
            continue;
        TAILQ_FOREACH(d, &emu_datagrams_of(port)->list, link) {
            if (d->state != EMU_DATAGRAM_PENDING)
                continue;
            if (d->is_offered && d->host == host) {
                d->is_offered = false;
                emu_offers_count(domain, host, -1);
                free(d->claimer);
                d->claimer = NULL;
            }
            if (d->claimed && d->claimed->host == host)
                go_on(port, d);
            else if (emu_datagram_is_free(d) && !emu_datagram_is_wildcard(d) && d->host == host)
                emu_datagram_offer(port, d);
        }
    }
}

void emu_datagram_hear(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                       const struct emu_host_datagram *said)
{
    switch (said->word) {
    case EMU_DATAGRAM_BEGIN:
        start_anew(server, domain, host);
        break;
    case EMU_DATAGRAM_OFFER:
        hear_offer(server, domain, host, said);
        break;
    case EMU_DATAGRAM_WITHDRAW:
        forget_offer(domain, host, said->number, said->to_nid, said->to_instance);
        break;
    case EMU_DATAGRAM_CLAIM:
        hear_claim(server, domain, host, said);
        break;
    default:
        hear_answer(domain, host, said);
    }
}

/* ---- hosts and domains that come and go ---- */

void emu_datagram_domain_begins(struct emu_server *server, struct emu_domain *domain)
{
    const struct emu_host_datagram begin = { .word = EMU_DATAGRAM_BEGIN };

    if (!emu_hosts_are_several(server) || emu_offers_begin(server, domain) < 0)
        return;
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (i == emu_hosts_own(server))
            continue;
        emu_datagram_tell_host(server, domain, i, &begin);
        start_anew(server, domain, i);
    }
}

void emu_datagram_host_up(struct emu_server *server, uint32_t host)
{
    struct emu_domain *domain;
    struct emu_port_end *port;
    struct emu_datagram *d;

    LIST_FOREACH(domain, &server->domains, link) {
        if (emu_offers_of(domain))
            emu_offers_set_lost(domain, host, false);
    }
    LIST_FOREACH(port, &server->ports, link) {
        TAILQ_FOREACH(d, &emu_datagrams_of(port)->list, link) {
            if (emu_datagram_is_free(d) && !emu_datagram_is_wildcard(d) && d->number != 0 && d->host == host)
                emu_datagram_offer(port, d);
        }
    }
}

void emu_datagram_host_down(struct emu_server *server, uint32_t host)
{
    struct emu_domain *domain;
    struct emu_port_end *port;
    struct emu_datagram *d;

    LIST_FOREACH(domain, &server->domains, link) {
        if (emu_offers_begin(server, domain) < 0)
            continue;
        emu_offers_forget(domain, host);
        emu_offers_set_lost(domain, host, true);
    }
    LIST_FOREACH(port, &server->ports, link) {
        TAILQ_FOREACH(d, &emu_datagrams_of(port)->list, link) {
            if (d->state != EMU_DATAGRAM_PENDING || d->number == 0)
                continue;
            if (!emu_datagram_is_wildcard(d) && d->host == host) {
                emu_datagram_end(port, d, EMU_DATAGRAM_ERROR);
                if (d->cancel)
                    emu_datagram_answer_cancel(port, d, EMU_OUTCOME_NO_MATCH);
            } else if (d->claimed && d->claimed->host == host) {
                go_on(port, d);
            }
        }
    }
}
