/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals requests from other hosts for interfaces here: the target's side (portals_remote.c is the initiator's).
 *
 *   MATCH -> [PULL: the rest of a put's data come | SERVE: the rest of a get's are asked for] -> END -> over
 *
 * The same engine as for commands of this host does it, under the same lock of the target's interface: match, START,
 * move, END. The initiator has no port here, so its flight is in the visit: emunic alone carries it out.
 *
 * Order. Requests between the same two processes are done as they come, each to its end before the next is matched:
 * what cannot be done at once stays in the list of its pair, and those behind it in the same pair wait, no others. A
 * lock that is not free is tried again each round. A target that has not been told yet how its own requests ended hears
 * of that first.
 *
 * Ends. When the initiator's host is lost, requests that have not begun are forgotten and the others end with an error.
 * When the target goes, they are answered: not taken, or failed. A host that has more going on than ours would ever let
 * it have is refused.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"

enum phase { MATCH, PULL, SERVE, END, OVER };

struct emu_portals_visit {
    TAILQ_ENTRY(emu_portals_visit) link;      /* of its hash */
    TAILQ_ENTRY(emu_portals_visit) wait_link; /* of those that wait for a lock */
    struct emu_server *server;
    struct emu_domain *domain; /* borrowed: outlives it */
    uint32_t host;
    enum phase phase;
    bool waits;   /* is in the list */
    bool is_lost; /* nobody wants an answer */
    bool acks;
    unsigned fail;
    uint64_t number; /* 0: none yet */
    uint64_t waits_since_ns;
    struct emu_host_portals_request request;
    uint32_t target; /* slot of the target's port */
    uint32_t target_generation;
    uint32_t uid; /* of the target */
    uint32_t jid;
    uint64_t mlength;
    uint64_t offset; /* in the target's descriptor */
    struct emu_ptl_flight flight;
    struct emu_portals_place place; /* of the target's descriptor */
    struct emu_portals_pull pull;
    uint8_t bytes[]; /* the request's data, once it has to wait */
};

/* ---- answers ---- */

/* The data are behind EMU_HOST_PTL_ANSWER_BYTES already. */
static void answer_with(struct emu_portals_visit *v, uint8_t *message, uint8_t flags, uint32_t data_bytes)
{
    struct emu_host_portals_answer answer = {
        .domain = v->request.domain,
        .flags = flags | (v->acks ? EMU_HOST_PTL_ACKS : 0),
        .fail = (uint8_t)v->fail,
        .id = v->request.id,
        .number = v->number,
        .uid = v->uid,
        .jid = v->jid,
        .mlength = v->mlength,
        .data_bytes = data_bytes,
    };

    if (v->is_lost)
        return;
    emu_host_portals_answer_put(message, &answer);
    emu_hosts_answer(v->server, v->host, message, EMU_HOST_PTL_ANSWER_BYTES + data_bytes);
}

static void answer_taken(struct emu_portals_visit *v)
{
    uint8_t message[EMU_HOST_PTL_ANSWER_BYTES];

    answer_with(v, message, EMU_HOST_PTL_TAKEN, 0);
}

static void answer_not_taken(struct emu_portals_visit *v, unsigned fail)
{
    uint8_t message[EMU_HOST_PTL_ANSWER_BYTES];

    v->fail = fail;
    v->acks = false;
    v->mlength = 0;
    answer_with(v, message, 0, 0);
    v->phase = OVER;
}

/* ---- targets ---- */

static struct emu_port_end *find_target(const struct emu_portals_visit *v)
{
    uint32_t nid = v->request.to_nid;
    uint32_t pid = v->request.to_pid;
    uint32_t *hint = &emu_portals_hosts_of(v->server)->hints[(nid * 31 + pid) % EMU_PORTALS_HINTS];

    if (emu_portals_end_is_that(v->domain->ports[*hint], nid, pid))
        return v->domain->ports[*hint];
    for (uint32_t i = 0; i < EMU_PORTS_MAX; i++) {
        if (emu_portals_end_is_that(v->domain->ports[i], nid, pid)) {
            *hint = i;
            return v->domain->ports[i];
        }
    }
    return NULL;
}

static uint32_t generation_of(const struct emu_port_end *port)
{
    return emu_table_ports(port->domain->table)[port->index].generation;
}

/* The target, if it is still the one at which the request was begun. */
static struct emu_port_end *target_of(const struct emu_portals_visit *v)
{
    struct emu_port_end *target = v->domain->ports[v->target];

    return target && emu_portals_end_is_open(target) && generation_of(target) == v->target_generation ? target : NULL;
}

/* The engine's words. False: the initiator has no address in this domain. */
static bool request_of(const struct emu_portals_visit *v, struct emu_ptl_request *request_out)
{
    const struct emu_host_portals_request *r = &v->request;
    uint32_t node = emu_domain_node_of(v->domain, r->from_nid);

    if (node == EMU_NID_NONE || v->domain->addresses[node] == EMU_NID_NONE)
        return false;
    *request_out = (struct emu_ptl_request){
        .kind = (enum emu_ptl_request_kind)r->kind,
        .wants_ack = (r->flags & EMU_HOST_PTL_WANTS_ACK) != 0,
        .nid = v->domain->addresses[node],
        .pid = r->from_pid,
        .uid = r->from_uid,
        .jid = r->from_jid,
        .pt = r->pt,
        .ac = r->ac,
        .bits = r->bits,
        .offset = r->offset,
        .length_bytes = r->length_bytes,
        .hdr_data = r->hdr_data,
    };
    return true;
}

/* ---- data; the target is locked ---- */

static uint32_t first_bytes(const struct emu_portals_visit *v)
{
    return v->mlength < EMU_HOST_PTL_PART_BYTES ? (uint32_t)v->mlength : EMU_HOST_PTL_PART_BYTES;
}

static int need_number(struct emu_portals_visit *v)
{
    return v->number != 0 ? 0 : emu_numbers_take(&emu_portals_hosts_of(v->server)->visits, v, &v->number);
}

static void end_at(struct emu_portals_visit *v, struct emu_port_end *target)
{
    emu_ptl_end(emu_portals_end_ni(target), &v->flight, v->fail);
    emu_portals_place_close(&v->place);
    v->phase = OVER;
}

static void begin_put(struct emu_portals_visit *v, struct emu_port_end *target)
{
    if (v->fail == 0)
        v->fail = emu_portals_place_write(target, &v->place, v->offset, v->request.data, first_bytes(v));
    if (v->fail == 0 && v->mlength > EMU_HOST_PTL_PART_BYTES) {
        if (need_number(v) == 0) {
            v->phase = PULL;
            return;
        }
        v->fail = EMU_STATUS_NETWORK;
    }
    end_at(v, target);
}

/* With the first of its data in the message. Their number. */
static uint32_t begin_get(struct emu_portals_visit *v, struct emu_port_end *target, uint8_t *data)
{
    if (v->fail == 0)
        v->fail = emu_portals_place_read(target, &v->place, v->offset, data, first_bytes(v));
    if (v->fail == 0 && v->mlength > EMU_HOST_PTL_PART_BYTES) {
        if (need_number(v) == 0) {
            v->phase = SERVE;
            return EMU_HOST_PTL_PART_BYTES;
        }
        v->fail = EMU_STATUS_NETWORK;
    }
    end_at(v, target);
    return v->fail == 0 ? first_bytes(v) : 0;
}

/* Atomic towards all others, because they need the lock, too. */
static uint32_t swap(struct emu_portals_visit *v, struct emu_port_end *target, uint8_t *old)
{
    if (v->fail == 0)
        v->fail = emu_portals_place_read(target, &v->place, v->offset, old, v->mlength);
    if (v->fail == 0)
        v->fail = emu_portals_place_write(target, &v->place, v->offset, v->request.data, v->mlength);
    end_at(v, target);
    return v->fail == 0 ? (uint32_t)v->mlength : 0;
}

/* ---- steps ---- */

static void pull_the_rest(struct emu_portals_visit *v)
{
    v->pull = (struct emu_portals_pull){
        .host = v->host,
        .domain = v->request.domain,
        .to = v->request.id,
        .from = v->number,
        .total_bytes = v->mlength,
        .asked_bytes = EMU_HOST_PTL_PART_BYTES,
        .came_bytes = EMU_HOST_PTL_PART_BYTES,
    };
    emu_portals_pull_start(v->server, &v->pull);
}

static void begin(struct emu_portals_visit *v, struct emu_port_end *target, const struct emu_ptl_request *request,
                  const struct emu_ptl_taker *taker)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(target);

    v->target = target->index;
    v->target_generation = generation_of(target);
    v->uid = (uint32_t)target->member->uid;
    v->jid = ni->jid;
    v->mlength = taker->mlength;
    v->offset = taker->offset;
    v->acks = taker->acks;
    if (emu_portals_place_open(&v->place, ni, &taker->md) < 0)
        v->fail = EMU_STATUS_REMOTE_RANGE;
    emu_ptl_begin(ni, request, taker, 0, &v->flight);
    if (v->request.flags & EMU_HOST_PTL_LOSES_END)
        emu_ptl_lose(&v->flight);
}

static bool step_match(struct emu_portals_visit *v)
{
    uint8_t message[EMU_HOST_PTL_ANSWER_BYTES + EMU_HOST_PTL_PART_BYTES];
    struct emu_port_end *target = find_target(v);
    struct emu_ptl_request request;
    struct emu_ptl_taker taker;
    uint32_t data_bytes = 0;

    if (!target || !request_of(v, &request)) {
        answer_not_taken(v, 0);
        return true;
    }
    /* Its own requests whose answers have come first: this one may be what they have caused. */
    if (!TAILQ_EMPTY(&emu_portals_remote_of(target)->ready) || !emu_portals_end_lock(target, &v->waits_since_ns))
        return false;
    if (emu_ptl_match(emu_portals_end_ni(target), &request, &taker) != EMU_PTL_TAKEN) {
        emu_portals_end_unlock(target);
        answer_not_taken(v, 0);
        return true;
    }
    begin(v, target, &request, &taker);
    if (v->request.kind == EMU_HOST_PTL_PUT)
        begin_put(v, target);
    else if (v->request.kind == EMU_HOST_PTL_GET)
        data_bytes = begin_get(v, target, message + EMU_HOST_PTL_ANSWER_BYTES);
    else
        data_bytes = swap(v, target, message + EMU_HOST_PTL_ANSWER_BYTES);
    emu_portals_end_unlock(target);
    if (v->phase == PULL)
        pull_the_rest(v);
    else
        answer_with(v, message, EMU_HOST_PTL_TAKEN | (v->phase == SERVE ? EMU_HOST_PTL_GOES_ON : 0), data_bytes);
    return true;
}

static bool step_end(struct emu_portals_visit *v)
{
    struct emu_port_end *target = target_of(v);

    if (target) {
        if (!emu_portals_end_lock(target, &v->waits_since_ns))
            return false;
        end_at(v, target);
        emu_portals_end_unlock(target);
    } else if (v->fail == 0) {
        v->fail = EMU_STATUS_PEER_GONE;
    }
    if (v->request.kind == EMU_HOST_PTL_PUT)
        answer_taken(v);
    v->phase = OVER;
    return true;
}

/* False: it waits for a lock. */
static bool run(struct emu_portals_visit *v)
{
    while (v->phase == MATCH || v->phase == END) {
        if (!(v->phase == MATCH ? step_match(v) : step_end(v)))
            return false;
    }
    return true;
}

/* ---- lists ---- */

static struct emu_portals_visits *pairs_of(struct emu_server *server, const struct emu_host_portals_request *r)
{
    uint32_t hash = ((r->from_nid * 31 + r->from_pid) * 31 + r->to_nid) * 31 + r->to_pid;

    return &emu_portals_hosts_of(server)->pairs[(hash ^ hash >> 16) % EMU_PORTALS_PAIRS];
}

static bool is_same_pair(const struct emu_portals_visit *a, const struct emu_portals_visit *b)
{
    return a->domain == b->domain && a->request.from_nid == b->request.from_nid &&
           a->request.from_pid == b->request.from_pid && a->request.to_nid == b->request.to_nid &&
           a->request.to_pid == b->request.to_pid;
}

/* The next one of the pair from `other` on. */
static struct emu_portals_visit *next_of_pair(const struct emu_portals_visit *v, struct emu_portals_visit *other)
{
    while (other && !is_same_pair(other, v))
        other = TAILQ_NEXT(other, link);
    return other;
}

static void forget(struct emu_portals_visit *v)
{
    emu_portals_pull_stop(v->server, &v->pull);
    emu_portals_place_close(&v->place);
    if (v->number != 0)
        emu_numbers_give(&emu_portals_hosts_of(v->server)->visits, v->number);
    free(v);
}

static void stop_waiting(struct emu_portals_visit *v)
{
    if (!v->waits)
        return;
    TAILQ_REMOVE(&emu_portals_hosts_of(v->server)->waiting, v, wait_link);
    v->waits = false;
    emu_portals_of(v->server)->n_waits--;
}

static void wait_for_lock(struct emu_portals_visit *v)
{
    if (v->waits)
        return;
    TAILQ_INSERT_TAIL(&emu_portals_hosts_of(v->server)->waiting, v, wait_link);
    v->waits = true;
    emu_portals_of(v->server)->n_waits++;
}

/* Of one that is in the lists. */
static void leave(struct emu_portals_visit *v)
{
    stop_waiting(v);
    TAILQ_REMOVE(pairs_of(v->server, &v->request), v, link);
    emu_portals_hosts_of(v->server)->hosts[v->host].n_visits--;
    forget(v);
}

static void keep(struct emu_portals_visit *v)
{
    memcpy(v->bytes, v->request.data, v->request.data_bytes);
    v->request.data = v->bytes;
    TAILQ_INSERT_TAIL(pairs_of(v->server, &v->request), v, link);
    emu_portals_hosts_of(v->server)->hosts[v->host].n_visits++;
}

/* Goes on with the first of its pair, and with those behind it. */
static void go_on(struct emu_portals_visit *v)
{
    while (v) {
        struct emu_portals_visit *next;

        if (!run(v)) {
            wait_for_lock(v);
            return;
        }
        stop_waiting(v);
        if (v->phase != OVER)
            return;
        next = next_of_pair(v, TAILQ_NEXT(v, link));
        leave(v);
        v = next;
    }
}

void emu_portals_visit_round(struct emu_server *server)
{
    struct emu_portals_visits tried = TAILQ_HEAD_INITIALIZER(tried);
    struct emu_portals_visit *v;

    TAILQ_CONCAT(&tried, &emu_portals_hosts_of(server)->waiting, wait_link);
    while ((v = TAILQ_FIRST(&tried))) {
        TAILQ_REMOVE(&tried, v, wait_link);
        v->waits = false;
        emu_portals_of(server)->n_waits--;
        go_on(v);
    }
}

/* ---- messages ---- */

/* A node of the domain that is on that host? */
static bool is_of_host(const struct emu_domain *domain, uint32_t nid, uint32_t host)
{
    uint32_t node = emu_domain_node_of(domain, nid);

    return node != EMU_NID_NONE && emu_hosts_of_node(domain, node) == host;
}

/* If it has a number, its sender hears of it. */
static void refuse(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes, unsigned fail)
{
    struct emu_host_portals_answer answer = { .fail = (uint8_t)fail };
    uint8_t message[EMU_HOST_PTL_ANSWER_BYTES];

    if (length_bytes < EMU_HOST_PTL_REQUEST_BYTES)
        return;
    answer.domain = emu_wire_get32(bytes + 4);
    answer.id = emu_wire_get64(bytes + EMU_HOST_PTL_HEAD_BYTES);
    emu_host_portals_answer_put(message, &answer);
    emu_hosts_answer(server, host, message, sizeof(message));
}

bool emu_portals_visit_request(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_host_portals_request request;
    struct emu_portals_visit *v;
    struct emu_domain *domain;
    bool is_first;

    if (!emu_host_portals_request_parse(bytes, length_bytes, &request)) {
        refuse(server, host, bytes, length_bytes, EMU_STATUS_BAD_COMMAND);
        return false;
    }
    domain = emu_hosts_find_domain(server, request.domain);
    if (!domain || domain->is_ending) {
        refuse(server, host, bytes, length_bytes, EMU_STATUS_PEER_GONE);
        return true;
    }
    if (!is_of_host(domain, request.from_nid, host) ||
        emu_portals_hosts_of(server)->hosts[host].n_visits >= 2 * EMU_PORTALS_WINDOW) {
        refuse(server, host, bytes, length_bytes, EMU_STATUS_BAD_COMMAND);
        return false;
    }
    v = calloc(1, sizeof(*v) + request.data_bytes);
    if (!v) {
        refuse(server, host, bytes, length_bytes, EMU_STATUS_NETWORK);
        return true;
    }
    v->server = server;
    v->domain = domain;
    v->host = host;
    v->request = request;
    is_first = !next_of_pair(v, TAILQ_FIRST(pairs_of(server, &request)));
    if (is_first && run(v) && v->phase == OVER) {
        forget(v);
        return true;
    }
    keep(v);
    if (is_first && v->phase == MATCH)
        wait_for_lock(v);
    return true;
}

static struct emu_portals_visit *find(struct emu_server *server, uint32_t host, uint64_t number, enum phase phase)
{
    struct emu_portals_visit *v = emu_numbers_find(&emu_portals_hosts_of(server)->visits, number);

    return v && v->host == host && v->phase == phase ? v : NULL;
}

/* More of a put's data. Those of one that has ended are nobody's. */
bool emu_portals_visit_data(struct emu_server *server, uint32_t host, const struct emu_host_portals_part *part)
{
    struct emu_portals_visit *v = find(server, host, part->to, PULL);
    struct emu_port_end *target;
    struct emu_portals_pull *pull;

    if (!v)
        return true;
    pull = &v->pull;
    if (!emu_portals_pull_take(pull, part))
        return false;
    target = target_of(v);
    if (pull->fail == 0)
        pull->fail = !target ? EMU_STATUS_PEER_GONE :
                               emu_portals_place_write(target, &v->place, v->offset + part->offset, part->data,
                                                       part->part_bytes);
    if (!emu_portals_pull_go_on(server, pull))
        return true;
    v->fail = pull->fail;
    v->phase = END;
    go_on(v);
    return true;
}

/* The initiator wants more of a get's data. */
void emu_portals_visit_want(struct emu_server *server, uint32_t host, const struct emu_host_portals_part *want)
{
    struct emu_portals_visit *v = find(server, host, want->to, SERVE);
    struct emu_port_end *target = v ? target_of(v) : NULL;
    struct emu_host_portals_part part = *want;
    uint8_t message[EMU_HOST_PTL_DATA_BYTES + EMU_HOST_PTL_PART_BYTES];

    part.is_at_target = false;
    part.to = want->from;
    if (!target)
        part.fail = EMU_STATUS_PEER_GONE;
    else if (want->offset > v->mlength || want->part_bytes > v->mlength - want->offset)
        part.fail = EMU_STATUS_BAD_COMMAND;
    else
        part.fail = (uint8_t)emu_portals_place_read(target, &v->place, v->offset + want->offset,
                                                    message + EMU_HOST_PTL_DATA_BYTES, want->part_bytes);
    emu_host_portals_data_put(message, &part);
    emu_hosts_answer(server, host, message, EMU_HOST_PTL_DATA_BYTES + (part.fail ? 0 : part.part_bytes));
}

bool emu_portals_visit_done(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_host_portals_done done;
    struct emu_portals_visit *v;

    if (!emu_host_portals_done_parse(bytes, length_bytes, &done))
        return false;
    v = find(server, host, done.to, SERVE);
    if (!v)
        return true; /* it has gone with its domain */
    v->fail = done.fail;
    v->phase = END;
    go_on(v);
    return true;
}

/* ---- hosts and domains that go ---- */

void emu_portals_visit_down(struct emu_server *server, uint32_t host)
{
    for (uint32_t i = 0; i < EMU_PORTALS_PAIRS; i++) {
        struct emu_portals_visit *v = TAILQ_FIRST(&emu_portals_hosts_of(server)->pairs[i]);

        while (v) {
            struct emu_portals_visit *next = TAILQ_NEXT(v, link);

            if (v->host == host && v->phase == MATCH)
                leave(v);
            v = next;
        }
    }
    /* At most one of each pair is left. */
    for (uint32_t i = 0; i < EMU_PORTALS_PAIRS; i++) {
        struct emu_portals_visit *v = TAILQ_FIRST(&emu_portals_hosts_of(server)->pairs[i]);

        while (v) {
            struct emu_portals_visit *next = TAILQ_NEXT(v, link);

            if (v->host == host) {
                emu_portals_pull_stop(server, &v->pull);
                v->is_lost = true;
                v->fail = EMU_STATUS_NETWORK;
                v->phase = END;
                go_on(v);
            }
            v = next;
        }
    }
}

static void fail_answer(struct emu_portals_visit *v)
{
    v->fail = EMU_STATUS_PEER_GONE;
    if (v->request.kind == EMU_HOST_PTL_PUT)
        answer_taken(v); /* a get has been answered; who asks for its data hears of it */
}

void emu_portals_visit_drop_domain(struct emu_server *server, const struct emu_domain *domain)
{
    for (uint32_t i = 0; i < EMU_PORTALS_PAIRS; i++) {
        struct emu_portals_visit *v = TAILQ_FIRST(&emu_portals_hosts_of(server)->pairs[i]);

        while (v) {
            struct emu_portals_visit *next = TAILQ_NEXT(v, link);

            if (v->domain == domain) {
                if (v->phase == MATCH)
                    answer_not_taken(v, EMU_STATUS_PEER_GONE);
                else
                    fail_answer(v);
                leave(v);
            }
            v = next;
        }
    }
}
