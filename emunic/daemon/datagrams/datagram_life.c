/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of ports: their life, from post to the end, and the requests about them.
 *
 *   pending -> completed -> (collected by test) gone
 *   pending -> terminated (cancel, end point dropped) -> gone
 *   pending -> error, timeout (an injected fault, a lost host) -> gone
 *
 * A terminated datagram whose end point is gone stays visible to one probe and then goes; of those that nobody
 * probes a port keeps the newest ORPHANS_PER_PORT. Ports learn of changes through the datagram line of their
 * segment: how many are finished, and a futex word that changes with each.
 * Source: spec/ugni.md 4.5 and 7.4.
 */
#include "emunic/daemon/datagrams/datagram_life.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/abi/control.h"
#include "emunic/abi/segment.h"
#include "emunic/base/clock.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/datagrams/datagram_hosts.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/users.h"
#include "emunic/engine/rest.h"

#define DATAGRAMS_PER_PORT 65536u
#define ORPHANS_PER_PORT   256u

/* Tells the port's owner that something has changed. A system call only if a thread sleeps. */
static void tell(struct emu_port_end *port, int ready_change)
{
    struct emu_segment *s = port->segment;

    /* The owner may scribble over this line; it fools only itself. */
    atomic_fetch_add_explicit(&s->datagram_ready, (uint32_t)ready_change, memory_order_release);
    atomic_fetch_add_explicit(&s->datagram_news, 1, memory_order_seq_cst);
    if (atomic_exchange_explicit(&s->datagram_waits, 0, memory_order_seq_cst) != 0)
        syscall(SYS_futex, &s->datagram_news, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    emu_port_end_disturb(port);
}

static void forget(struct emu_port_end *port, struct emu_datagram *d)
{
    bool was_ready = emu_datagram_is_final(d);

    emu_datagram_end_delay(port, d);
    emu_datagram_leave_way(d, true);
    emu_datagram_displace(d);
    emu_user_give(port->member->user, EMU_USER_DATAGRAMS, 1);
    free(d);
    if (was_ready)
        tell(port, -1);
}

static void finish(struct emu_port_end *port, struct emu_datagram *d, uint32_t state)
{
    d->state = state;
    emu_datagram_leave_way(d, false);
    emu_datagram_place_finished(d);
    tell(port, 1);
}

void emu_datagram_complete(struct emu_port_end *port, struct emu_datagram *d, uint32_t nid, uint32_t instance_id,
                           const uint8_t *data, uint16_t bytes)
{
    d->remote_nid = nid;
    d->remote_instance = instance_id;
    d->out_bytes = bytes;
    memcpy(d->out, data, bytes);
    finish(port, d, EMU_DATAGRAM_COMPLETED);
}

void emu_datagram_note_pair(struct emu_datagram *d, const struct emu_datagram *partner)
{
    d->remote_nid = partner->port->nid;
    d->remote_instance = partner->port->instance_id;
    d->out_bytes = partner->in_bytes;
    memcpy(d->out, partner->in, partner->in_bytes);
    d->way.is_paired = true;
}

void emu_datagram_finish_pair(struct emu_datagram *d)
{
    finish(d->port, d, EMU_DATAGRAM_COMPLETED);
}

void emu_datagram_end(struct emu_port_end *port, struct emu_datagram *d, uint32_t state)
{
    finish(port, d, state);
    emu_datagram_let_go(port, d, d->remote_nid, d->remote_instance, false);
}

/* Is there already an exchange with that peer which the program has not finished? */
static bool exchange_is_open(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    bool is_self = wanted->remote_nid == port->nid && wanted->remote_instance == port->instance_id;

    /* To oneself the waiting one is the partner. */
    if (!is_self && emu_datagram_facing(port, wanted->remote_nid, wanted->remote_instance))
        return true;
    return emu_datagram_is_answered(port, wanted->remote_nid, wanted->remote_instance);
}

/* What an injected fault does to a new datagram. True: it may pair now. */
static bool suffer(struct emu_port_end *port, struct emu_datagram *d, const struct emu_fault_datagram *fault)
{
    emu_datagram_delay(port, d, fault->not_before_ns);
    if (fault->state == EMU_DATAGRAM_PENDING)
        return fault->not_before_ns == 0;
    finish(port, d, fault->state);
    return false;
}

static int post(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    struct emu_fault_datagram fault = { .state = EMU_DATAGRAM_PENDING };
    struct emu_datagram *d;
    bool may_pair;

    if (wanted->length_bytes > EMU_DATAGRAM_MAX || wanted->room_bytes > EMU_DATAGRAM_MAX)
        return -EMSGSIZE;
    if (emu_datagram_of_ep(port, wanted->ep))
        return EMU_OUTCOME_BUSY;
    if ((wanted->flags & EMU_DATAGRAM_WILDCARD) == 0 && exchange_is_open(port, wanted))
        return EMU_OUTCOME_BUSY;
    if (emu_datagrams_of(port)->n >= DATAGRAMS_PER_PORT || !emu_datagram_has_room(port, wanted))
        return -ENOMEM;
    if (port->domain->paths.has_faults)
        fault = emu_fault_datagram(port, wanted);
    if (fault.is_refused)
        return EMU_OUTCOME_BUSY;
    if (emu_user_take(port->server, port->member->user, EMU_USER_DATAGRAMS, 1) < 0)
        return -ENOMEM;
    d = calloc(1, sizeof(*d));
    if (!d) {
        emu_user_give(port->member->user, EMU_USER_DATAGRAMS, 1);
        return -ENOMEM;
    }
    d->ep = wanted->ep;
    d->flags = wanted->flags & (EMU_DATAGRAM_WILDCARD | EMU_DATAGRAM_HAS_ID);
    d->id = wanted->id;
    d->posted_ns = emu_clock_ns();
    d->remote_nid = (d->flags & EMU_DATAGRAM_WILDCARD) ? EMU_NID_NONE : wanted->remote_nid;
    d->remote_instance = wanted->remote_instance;
    d->in_bytes = wanted->length_bytes;
    d->room_bytes = wanted->room_bytes;
    memcpy(d->in, wanted->data, wanted->length_bytes);
    d->way.is_held = emu_server_is_virtual(port->server);
    d->way.is_there = !d->way.is_held;
    emu_datagram_place(port, d);
    may_pair = suffer(port, d, &fault);
    emu_datagram_introduce(port, d);
    if (may_pair && emu_datagram_is_free(d))
        emu_datagram_match(port, d);
    return 0;
}

static int test(struct emu_port_end *port, struct emu_msg_datagram *asked)
{
    struct emu_datagram *d = emu_datagram_of_ep(port, asked->ep);
    bool asks_id = (asked->flags & EMU_DATAGRAM_HAS_ID) != 0;
    int r = 0;

    if (!d || asks_id != ((d->flags & EMU_DATAGRAM_HAS_ID) != 0) || (asks_id && d->id != asked->id))
        return EMU_OUTCOME_NO_MATCH;
    asked->state = d->state;
    asked->length_bytes = 0;
    if (!emu_datagram_is_final(d))
        return 0;
    if (d->state == EMU_DATAGRAM_COMPLETED) {
        asked->remote_nid = d->remote_nid;
        asked->remote_instance = d->remote_instance;
        if (d->out_bytes > d->room_bytes) {
            r = EMU_OUTCOME_TOO_SMALL;
        } else {
            asked->length_bytes = d->out_bytes;
            memcpy(asked->data, d->out, d->out_bytes);
        }
    }
    forget(port, d);
    return r;
}

static int probe(struct emu_port_end *port, struct emu_msg_datagram *asked)
{
    bool asks_id = (asked->flags & EMU_DATAGRAM_HAS_ID) != 0;
    struct emu_datagram *d =
        TAILQ_FIRST(asks_id ? &emu_datagrams_of(port)->with_id : &emu_datagrams_of(port)->finished);

    if (!d)
        return EMU_OUTCOME_NO_MATCH;
    asked->id = d->id;
    asked->ep = d->ep;
    asked->state = d->state;
    asked->remote_nid = d->remote_nid;
    asked->remote_instance = d->remote_instance;
    if (d->has_no_ep)
        forget(port, d);
    return 0;
}

static int cancel(struct emu_port_end *port, const struct emu_msg *request)
{
    const struct emu_msg_datagram *asked = &request->datagram;
    struct emu_datagram *d = emu_datagram_of_ep(port, asked->ep);

    if (!d || emu_datagram_is_final(d))
        return EMU_OUTCOME_NO_MATCH;
    if ((asked->flags & EMU_DATAGRAM_ANY_ID) == 0 && ((d->flags & EMU_DATAGRAM_HAS_ID) == 0 || d->id != asked->id))
        return EMU_OUTCOME_NO_MATCH;
    if (d->way.is_paired) { /* too late; the partner may know already */
        emu_datagram_finish_pair(d);
        return EMU_OUTCOME_NO_MATCH;
    }
    if (d->claimed) {
        d->cancel = malloc(sizeof(*d->cancel));
        if (!d->cancel)
            return -ENOMEM;
        *d->cancel = *request;
        return EMU_DEFERRED;
    }
    emu_datagram_end(port, d, EMU_DATAGRAM_TERMINATED);
    return 0;
}

void emu_datagram_answer_cancel(struct emu_port_end *port, struct emu_datagram *d, int result)
{
    struct emu_msg *reply = d->cancel;

    d->cancel = NULL;
    emu_connection_answer_with(port->connection, reply, result, -1);
    free(reply);
}

/* A program that never probes must not collect records for ever. */
static void limit_orphans(struct emu_port_end *port)
{
    if (emu_datagrams_of(port)->n_orphans > ORPHANS_PER_PORT)
        forget(port, TAILQ_FIRST(&emu_datagrams_of(port)->orphans));
}

static void drop_ep(struct emu_port_end *port, uint32_t ep)
{
    struct emu_datagram *d = emu_datagram_of_ep(port, ep);

    if (!d)
        return;
    if (emu_datagram_is_final(d)) {
        forget(port, d);
        return;
    }
    emu_datagram_place_orphan(d);
    emu_datagram_end(port, d, EMU_DATAGRAM_TERMINATED);
    limit_orphans(port);
}

static void drop_all(struct emu_port_end *port)
{
    struct emu_datagram_list dropped = TAILQ_HEAD_INITIALIZER(dropped);
    struct emu_datagram *d;

    /* None pairs with what another one lets go. */
    while ((d = TAILQ_FIRST(&emu_datagrams_of(port)->list))) {
        emu_datagram_end_delay(port, d);
        emu_datagram_leave_way(d, true);
        emu_datagram_displace(d);
        TAILQ_INSERT_TAIL(&dropped, d, link);
    }
    while ((d = TAILQ_FIRST(&dropped))) {
        TAILQ_REMOVE(&dropped, d, link);
        if (!emu_datagram_is_final(d))
            emu_datagram_let_go(port, d, d->remote_nid, d->remote_instance, false);
        free(d->cancel); /* its connection ends as well */
        free(d);
        emu_user_give(port->member->user, EMU_USER_DATAGRAMS, 1);
    }
}

/* ---- requests: programs know addresses, emunic nodes; an unknown one stays unknown ---- */

static void tell_address(const struct emu_domain *domain, struct emu_msg_datagram *datagram)
{
    uint32_t node = emu_domain_node_of(domain, datagram->remote_nid);

    if (node != EMU_NID_NONE)
        datagram->remote_nid = domain->addresses[node];
}

static int answer_post(struct emu_request *request)
{
    struct emu_msg_datagram *datagram = &request->msg->datagram;

    datagram->remote_nid = emu_domain_nid_at(request->port->domain, datagram->remote_nid);
    return post(request->port, datagram);
}

static int answer_test(struct emu_request *request)
{
    int r = test(request->port, &request->msg->datagram);

    tell_address(request->port->domain, &request->msg->datagram);
    return r;
}

static int answer_probe(struct emu_request *request)
{
    int r = probe(request->port, &request->msg->datagram);

    tell_address(request->port->domain, &request->msg->datagram);
    return r;
}

static int answer_cancel(struct emu_request *request)
{
    return cancel(request->port, request->msg);
}

static int answer_drop_ep(struct emu_request *request)
{
    drop_ep(request->port, request->msg->datagram.ep);
    return 0;
}

/* Those that were not collected. */
static void put_status(const struct emu_port_end *port, uint64_t *row)
{
    row[EMU_STATUS_PORT_DATAGRAMS] = emu_datagrams_of(port)->n;
}

/* ---- the part ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    (void)options;
    (void)why;
    server->slots[EMU_SERVER_DATAGRAMS] = calloc(1, sizeof(struct emu_datagrams));
    return server->slots[EMU_SERVER_DATAGRAMS] ? 0 : -ENOMEM;
}

static void destroy(struct emu_server *server)
{
    if (emu_datagrams_in(server)) {
        emu_datagram_end_trips(emu_datagrams_in(server));
        emu_index_fini(&emu_datagrams_in(server)->index);
    }
    free(server->slots[EMU_SERVER_DATAGRAMS]);
    server->slots[EMU_SERVER_DATAGRAMS] = NULL;
}

static int begin_port(struct emu_port_end *port)
{
    struct emu_datagram_port *datagrams = calloc(1, sizeof(*datagrams));

    if (!datagrams)
        return -ENOMEM;
    TAILQ_INIT(&datagrams->list);
    TAILQ_INIT(&datagrams->wildcards);
    TAILQ_INIT(&datagrams->finished);
    TAILQ_INIT(&datagrams->with_id);
    TAILQ_INIT(&datagrams->orphans);
    port->slots[EMU_PORT_DATAGRAMS] = datagrams;
    return 0;
}

static void end_port(struct emu_port_end *port)
{
    if (!emu_datagrams_of(port))
        return;
    drop_all(port);
    free(emu_datagrams_of(port));
    port->slots[EMU_PORT_DATAGRAMS] = NULL;
}

static void end_domain(struct emu_server *server, struct emu_domain *domain)
{
    (void)server;
    emu_offers_end(domain);
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_DATAGRAM_POST, EMU_MSG_DATAGRAM_POST, EMU_NEEDS_PORT, answer_post },
    { EMU_MSG_DATAGRAM_TEST, EMU_MSG_DATAGRAM_TEST, EMU_NEEDS_PORT, answer_test },
    { EMU_MSG_DATAGRAM_PROBE, EMU_MSG_DATAGRAM_PROBE, EMU_NEEDS_PORT, answer_probe },
    { EMU_MSG_DATAGRAM_CANCEL, EMU_MSG_DATAGRAM_CANCEL, EMU_NEEDS_PORT, answer_cancel },
    { EMU_MSG_DATAGRAM_DROP_EP, EMU_MSG_DATAGRAM_DROP_EP, EMU_NEEDS_PORT, answer_drop_ep },
};
static const struct emu_message_row messages[] = { { EMU_HOST_DATAGRAM, emu_datagram_host_message } };

const struct emu_part emu_datagrams_part = {
    .name = "datagrams",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = emu_datagram_look_at_delayed, .next_ns = emu_datagram_next_ns },
    .hosts = { .messages = messages,
               .n_messages = EMU_ROWS(messages),
               .up = emu_datagram_host_up,
               .down = emu_datagram_host_down },
    .domains = { .spread = emu_datagram_domain_begins, .end = end_domain },
    .ports = { .begin = begin_port, .end = end_port },
    .released = emu_datagram_look_at_all,
    .status = { .port = put_status },
};
