/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals messages to interfaces on other hosts: the initiator's side (portals_visit.c is the target's).
 *
 *   ring -> errand --request--> other host: match, START, move, END --answer--> SEND_END, ACK or REPLY here
 *
 * A command leaves the ring when its request is sent; nobody waits for the answer before the next one is. Requests to
 * one host arrive in the order of the ring, and the host delivers those of one process to another one after the other,
 * so their order is that of the calls. WINDOW requests to a host, and ERRANDS_PER_PORT of a port, may be unanswered;
 * what finds no room waits at its ring's head.
 *
 * An errand:  SENT --answer, or the host is lost--> [REPLY -> PULL ->] HOME -> over
 *
 * REPLY (a get's: REPLY_START) and HOME want the port's own lock. Errands that do not get it wait in the order of their
 * answers, and requests of other hosts for this port wait behind them (portals_visit.c): an answer comes before
 * whatever its request has caused, so SEND_END does, too. A get whose data are longer than a message asks for the
 * others (PULL) and then tells the target that it has ended.
 *
 * Ends. When the host is lost, what is under way to it fails with status "network", as do later commands to it. When
 * the port goes, its gets end at the target with an error; errands that are not answered stay without it, for the sake
 * of those who will ask for their data.
 */
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/injection/injection.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"

#define ERRANDS_PER_PORT 256u

static_assert((int)EMU_HOST_PTL_PUT == (int)EMU_PTL_PUT && (int)EMU_HOST_PTL_GET == (int)EMU_PTL_GET &&
                  (int)EMU_HOST_PTL_GETPUT == (int)EMU_PTL_GETPUT,
              "kinds of requests are the same on the wire");

enum phase { SENT, REPLY, PULL, HOME, OVER };

struct emu_portals_errand {
    TAILQ_ENTRY(emu_portals_errand) link;       /* of its port */
    TAILQ_ENTRY(emu_portals_errand) ready_link; /* of those that wait for the port's lock */
    struct emu_port_end *port;                  /* borrowed; NULL: it has gone */
    enum phase phase;
    bool is_ready;   /* is in the port's list */
    bool is_counted; /* among the host's: not over there */
    bool is_taken;
    bool is_sent; /* SEND_END is posted */
    bool has_reply;
    bool acks;
    bool goes_on; /* the target waits for the end of the get */
    unsigned fail;
    uint32_t host;
    uint32_t domain; /* number that all hosts know */
    uint64_t number;
    uint64_t target_number;
    uint64_t mlength;
    uint64_t waits_since_ns;
    struct emu_ptl_send send;
    struct emu_ptl_peer peer;
    struct emu_ptl_reply reply;
    struct emu_portals_place place; /* a put's source, a reply's destination */
    struct emu_portals_pull pull;
    uint8_t *data; /* owned: the first of a reply, that waits for the lock */
    uint32_t data_bytes;
};

static struct emu_portals_host *host_of(struct emu_server *server, const struct emu_portals_errand *errand)
{
    return &emu_portals_hosts_of(server)->hosts[errand->host];
}

/* ---- ends ---- */

static void stop_being_ready(struct emu_portals_errand *errand)
{
    if (!errand->is_ready)
        return;
    TAILQ_REMOVE(&emu_portals_remote_of(errand->port)->ready, errand, ready_link);
    errand->is_ready = false;
    emu_portals_of(errand->port->server)->n_waits--;
}

static void leave_port(struct emu_portals_errand *errand)
{
    if (!errand->port)
        return;
    stop_being_ready(errand);
    TAILQ_REMOVE(&emu_portals_remote_of(errand->port)->errands, errand, link);
    emu_portals_remote_of(errand->port)->n--;
    errand->port = NULL;
}

static void stop_counting(struct emu_server *server, struct emu_portals_errand *errand)
{
    if (errand->is_counted)
        host_of(server, errand)->n_errands--;
    errand->is_counted = false;
}

static void forget(struct emu_server *server, struct emu_portals_errand *errand)
{
    leave_port(errand);
    emu_portals_pull_stop(server, &errand->pull);
    stop_counting(server, errand);
    if (errand->number != 0)
        emu_numbers_give(&emu_portals_hosts_of(server)->errands, errand->number);
    emu_portals_place_close(&errand->place);
    free(errand->data);
    free(errand);
}

/* The target may end its side of a get. */
static void tell_done(struct emu_server *server, struct emu_portals_errand *errand)
{
    struct emu_host_portals_done done = { errand->domain, (uint8_t)errand->fail, errand->target_number };
    uint8_t message[EMU_HOST_PTL_DONE_BYTES];

    if (!errand->goes_on)
        return;
    errand->goes_on = false;
    stop_counting(server, errand);
    emu_host_portals_done_put(message, &done);
    emu_hosts_answer(server, errand->host, message, sizeof(message));
}

/* ---- steps at home ---- */

/* SEND_END; of what has a reply it says nothing of what came after. The port is locked. */
static void post_sent(struct emu_ptl_ni *ni, struct emu_portals_errand *errand)
{
    if (!errand->is_sent)
        emu_ptl_send_end(ni, &errand->send, errand->send.kind == EMU_PTL_PUT || !errand->is_taken ? errand->fail : 0);
    errand->is_sent = true;
}

/* The port is locked. */
static void begin_reply(struct emu_portals_errand *errand)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(errand->port);

    post_sent(ni, errand);
    errand->has_reply = emu_ptl_reply_begin(ni, &errand->send, &errand->peer, errand->mlength, &errand->reply);
    if (errand->has_reply && emu_portals_place_open(&errand->place, ni, &errand->reply.md) < 0)
        errand->fail = EMU_STATUS_LOCAL_ACCESS;
}

/* Stores what came with the answer. True: there is more to come. */
static bool store_first(struct emu_portals_errand *errand)
{
    struct emu_server *server = errand->port->server;
    uint64_t bytes = errand->data_bytes < errand->reply.mlength ? errand->data_bytes : errand->reply.mlength;

    errand->fail =
        emu_portals_place_write(errand->port, &errand->place, errand->send.local_offset, errand->data, bytes);
    if (errand->fail != 0 || !errand->goes_on || errand->reply.mlength <= errand->data_bytes)
        return false;
    errand->pull = (struct emu_portals_pull){
        .host = errand->host,
        .domain = errand->domain,
        .is_at_target = true,
        .to = errand->target_number,
        .from = errand->number,
        .total_bytes = errand->reply.mlength,
        .asked_bytes = errand->data_bytes,
        .came_bytes = errand->data_bytes,
    };
    emu_portals_pull_start(server, &errand->pull);
    return true;
}

static bool step_reply(struct emu_portals_errand *errand)
{
    struct emu_port_end *port = errand->port;

    if (!emu_portals_end_lock(port, &errand->waits_since_ns))
        return false;
    begin_reply(errand);
    emu_portals_end_unlock(port);
    if (errand->has_reply && errand->fail == 0 && store_first(errand)) {
        errand->phase = PULL;
        return true;
    }
    tell_done(port->server, errand);
    errand->phase = errand->has_reply ? HOME : OVER;
    return true;
}

static bool step_home(struct emu_portals_errand *errand)
{
    struct emu_port_end *port = errand->port;
    struct emu_ptl_ni *ni = emu_portals_end_ni(port);

    if (!emu_portals_end_lock(port, &errand->waits_since_ns))
        return false;
    if (errand->has_reply) {
        emu_ptl_reply_end(ni, &errand->send, &errand->reply, errand->fail);
    } else {
        post_sent(ni, errand);
        emu_portals_end_ack(ni, &errand->send, &errand->peer, errand->acks, errand->mlength, errand->fail);
    }
    emu_portals_end_unlock(port);
    errand->phase = OVER;
    return true;
}

/* False: it waits for the lock. Else it waits for others, or is gone. */
static bool run(struct emu_portals_errand *errand)
{
    while (errand->phase == REPLY || errand->phase == HOME) {
        if (!(errand->phase == REPLY ? step_reply(errand) : step_home(errand)))
            return false;
    }
    stop_being_ready(errand);
    if (errand->phase == OVER)
        forget(errand->port->server, errand);
    return true;
}

/* Behind those of its port that wait already. */
static void go_on(struct emu_portals_errand *errand)
{
    struct emu_port_end *port = errand->port;

    if (errand->is_ready || (TAILQ_EMPTY(&emu_portals_remote_of(port)->ready) && run(errand)))
        return;
    TAILQ_INSERT_TAIL(&emu_portals_remote_of(port)->ready, errand, ready_link);
    errand->is_ready = true;
    emu_portals_of(port->server)->n_waits++;
}

void emu_portals_remote_round(struct emu_server *server)
{
    struct emu_port_end *port;
    struct emu_portals_errand *errand;

    LIST_FOREACH(port, &server->ports, link) {
        while ((errand = TAILQ_FIRST(&emu_portals_remote_of(port)->ready)) && run(errand))
            ;
    }
}

/* Nothing was delivered, or nobody knows. */
static void fail(struct emu_portals_errand *errand, unsigned status)
{
    emu_portals_place_close(&errand->place);
    errand->fail = status;
    errand->phase = errand->send.kind == EMU_PTL_PUT ? HOME : REPLY;
    go_on(errand);
}

/* ---- commands ---- */

/* Number of the host that a command goes to; our own: none other. */
static uint32_t host_of_command(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t node = emu_table_node_index(port->domain->table, cmd->remote_nid);

    return node < port->domain->n_nodes ? emu_hosts_of_node(port->domain, node) : emu_hosts_own(port->server);
}

bool emu_portals_remote_may_start(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    const struct emu_server *server = port->server;
    uint32_t host;

    if (!emu_portals_hosts_of(server) || !emu_ptl_is_command(cmd->op))
        return true;
    host = host_of_command(port, cmd);
    if (host == emu_hosts_own(server) || !emu_hosts_is_up(server, host))
        return true;
    return emu_portals_remote_of(port)->n < ERRANDS_PER_PORT &&
           emu_portals_hosts_of(server)->hosts[host].n_errands < EMU_PORTALS_WINDOW && emu_hosts_has_room(server, host);
}

/* The source of a put whose data do not all go with the request. */
static unsigned open_source(struct emu_portals_errand *errand)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(errand->port);
    const struct emu_ptl_send *send = &errand->send;
    struct emu_ptl_md md;

    if (send->put_md >= EMU_PTL_MDS)
        return EMU_STATUS_LOCAL_ACCESS;
    md = ni->mds[send->put_md];
    if (md.generation != send->put_md_generation || emu_portals_place_open(&errand->place, ni, &md) < 0)
        return EMU_STATUS_LOCAL_ACCESS;
    return EMU_STATUS_OK;
}

static unsigned read_first(struct emu_portals_errand *errand, const struct emu_ptl_cmd *cmd, void *to, uint32_t bytes)
{
    const struct emu_memory *staging = &errand->port->view.staging;
    const struct emu_ptl_send *send = &errand->send;
    unsigned status;

    if (bytes == 0)
        return EMU_STATUS_OK;
    if (cmd->flags & EMU_CMD_STAGED) {
        if (bytes < send->length_bytes || staging->ops->read(staging, cmd->staging_off, to, bytes) != 0)
            return EMU_STATUS_LOCAL_ACCESS;
        return EMU_STATUS_OK;
    }
    status = open_source(errand);
    if (status != EMU_STATUS_OK)
        return status;
    return emu_portals_place_read(errand->port, &errand->place,
                                  send->kind == EMU_PTL_GETPUT ? send->put_offset : send->local_offset, to, bytes);
}

static struct emu_host_portals_request request_of(const struct emu_portals_errand *errand, const struct emu_cmd *cmd)
{
    const struct emu_port_end *port = errand->port;
    const struct emu_ptl_send *send = &errand->send;

    return (struct emu_host_portals_request){
        .domain = errand->domain,
        .kind = (uint8_t)send->kind,
        .flags =
            (send->wants_ack ? EMU_HOST_PTL_WANTS_ACK : 0) | ((cmd->events & EMU_EV_LOSE) ? EMU_HOST_PTL_LOSES_END : 0),
        .id = errand->number,
        .from_nid = port->nid,
        .from_pid = emu_portals_end_pid(port),
        .from_uid = (uint32_t)port->member->uid,
        .from_jid = emu_portals_end_ni(port)->jid,
        .to_nid = emu_domain_nid_at(port->domain, send->nid),
        .to_pid = send->pid,
        .pt = send->pt,
        .ac = send->ac,
        .bits = send->bits,
        .offset = send->offset,
        .length_bytes = send->length_bytes,
        .hdr_data = send->hdr_data,
        .data_bytes = emu_host_portals_first_bytes((unsigned)send->kind, send->length_bytes),
    };
}

static unsigned send_request(struct emu_server *server, struct emu_portals_errand *errand, const struct emu_cmd *cmd)
{
    uint8_t message[EMU_HOST_PTL_REQUEST_BYTES + EMU_HOST_PTL_PART_BYTES];
    struct emu_host_portals_request request;
    struct emu_ptl_cmd ptl;
    unsigned status;

    memcpy(&ptl, cmd, sizeof(ptl));
    if (!emu_hosts_is_up(server, errand->host) ||
        emu_numbers_take(&emu_portals_hosts_of(server)->errands, errand, &errand->number) < 0)
        return EMU_STATUS_NETWORK;
    request = request_of(errand, cmd);
    status = read_first(errand, &ptl, message + EMU_HOST_PTL_REQUEST_BYTES, request.data_bytes);
    if (status != EMU_STATUS_OK)
        return status;
    emu_host_portals_request_put(message, &request);
    if (emu_hosts_send(server, errand->host, message, EMU_HOST_PTL_REQUEST_BYTES + request.data_bytes) < 0)
        return EMU_STATUS_NETWORK;
    errand->is_counted = true;
    host_of(server, errand)->n_errands++;
    return EMU_STATUS_OK;
}

/* No client of ours sends that: nobody can have the id, no interface takes so much. */
static bool is_for_nobody(const struct emu_ptl_send *send)
{
    return send->pid > EMU_PTL_PID_LAST || (send->kind == EMU_PTL_GETPUT && send->length_bytes > EMU_PTL_GETPUT_MAX);
}

void emu_portals_remote_start(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_portals_errand *errand;
    struct emu_ptl_cmd ptl;
    unsigned status;

    if (!emu_portals_end_is_open(port))
        return; /* a client that has no interface */
    errand = calloc(1, sizeof(*errand));
    if (!errand) {
        emu_portals_end_fail(port, cmd, EMU_STATUS_NETWORK);
        return;
    }
    memcpy(&ptl, cmd, sizeof(ptl));
    errand->port = port;
    errand->host = host_of_command(port, cmd);
    errand->domain = port->domain->common_number;
    errand->send = emu_portals_send_of(&ptl);
    errand->is_sent = (ptl.ptl_flags & EMU_PTL_CMD_SENT) != 0;
    errand->peer = (struct emu_ptl_peer){ errand->send.nid, errand->send.pid, 0, 0 };
    TAILQ_INSERT_TAIL(&emu_portals_remote_of(port)->errands, errand, link);
    emu_portals_remote_of(port)->n++;
    if (is_for_nobody(&errand->send)) {
        errand->phase = HOME;
        go_on(errand);
        return;
    }
    status = send_request(port->server, errand, cmd);
    if (status != EMU_STATUS_OK)
        fail(errand, status);
}

void emu_portals_remote_drop_port(struct emu_port_end *port)
{
    struct emu_portals_errand *errand;

    while ((errand = TAILQ_FIRST(&emu_portals_remote_of(port)->errands))) {
        errand->fail = EMU_STATUS_PEER_GONE;
        if (errand->phase == SENT) {
            leave_port(errand);
        } else {
            tell_done(port->server, errand);
            forget(port->server, errand);
        }
    }
}

/* ---- messages ---- */

static struct emu_portals_errand *find(struct emu_server *server, uint32_t host, uint64_t number, enum phase phase)
{
    struct emu_portals_errand *errand = emu_numbers_find(&emu_portals_hosts_of(server)->errands, number);

    return errand && errand->host == host && errand->phase == phase ? errand : NULL;
}

/* Does the answer fit what was asked? */
static bool fits(const struct emu_portals_errand *errand, const struct emu_host_portals_answer *a)
{
    bool is_get = errand->send.kind != EMU_PTL_PUT;
    uint64_t first = a->mlength < EMU_HOST_PTL_PART_BYTES ? a->mlength : EMU_HOST_PTL_PART_BYTES;
    bool has_data = is_get && (a->flags & EMU_HOST_PTL_TAKEN) != 0 && a->fail == 0;
    bool has_more = has_data && errand->send.kind == EMU_PTL_GET && a->mlength > first;

    return a->mlength <= errand->send.length_bytes && a->data_bytes == (has_data ? first : 0) &&
           ((a->flags & EMU_HOST_PTL_GOES_ON) != 0) == has_more &&
           ((a->flags & EMU_HOST_PTL_ACKS) == 0 || errand->send.wants_ack);
}

static void count(const struct emu_portals_errand *errand)
{
    struct emu_port_end *port = errand->port;
    uint32_t node = emu_table_node_index(port->domain->table, errand->send.nid);
    const struct emu_packet_format *format = &port->domain->table->format;

    if (node >= port->domain->n_nodes)
        return;
    if (errand->send.kind == EMU_PTL_PUT)
        emu_flow_add_put(&port->view.flows[node], format, errand->mlength);
    else
        emu_flow_add_get(&port->view.flows[node], format, errand->mlength,
                         errand->send.kind == EMU_PTL_GETPUT ? errand->mlength : 0);
}

/* A copy, because it may have to wait for the port's lock. */
static void take_reply(struct emu_portals_errand *errand, const struct emu_host_portals_answer *a)
{
    errand->data = malloc(a->data_bytes ? a->data_bytes : 1);
    if (!errand->data) {
        errand->fail = EMU_STATUS_LOCAL_ACCESS;
        return;
    }
    memcpy(errand->data, a->data, a->data_bytes);
    errand->data_bytes = a->data_bytes;
}

bool emu_portals_remote_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_host_portals_answer answer;
    struct emu_portals_errand *errand;

    if (!emu_host_portals_answer_parse(bytes, length_bytes, &answer))
        return false;
    errand = find(server, host, answer.id, SENT);
    if (!errand || !fits(errand, &answer))
        return false;
    errand->is_taken = (answer.flags & EMU_HOST_PTL_TAKEN) != 0;
    errand->acks = (answer.flags & EMU_HOST_PTL_ACKS) != 0;
    errand->goes_on = (answer.flags & EMU_HOST_PTL_GOES_ON) != 0;
    errand->target_number = answer.number;
    if (!errand->goes_on)
        stop_counting(server, errand);
    if (!errand->port) {
        tell_done(server, errand);
        forget(server, errand);
        return true;
    }
    errand->fail = answer.fail;
    errand->mlength = answer.mlength;
    errand->peer.uid = answer.uid;
    errand->peer.jid = answer.jid;
    emu_portals_place_close(&errand->place);
    if (errand->is_taken)
        count(errand);
    errand->phase = HOME;
    if (errand->send.kind != EMU_PTL_PUT && (errand->is_taken || errand->fail != 0)) {
        errand->phase = REPLY;
        take_reply(errand, &answer);
    }
    go_on(errand);
    return true;
}

/* Of a put; the target has asked for it. */
static unsigned read_part(struct emu_portals_errand *errand, const struct emu_host_portals_part *want, void *to)
{
    struct emu_port_end *port = errand->port;
    const struct emu_ptl_send *send = &errand->send;

    if (!port)
        return EMU_STATUS_PEER_GONE;
    if (send->kind != EMU_PTL_PUT || !errand->place.md.state || want->offset > send->length_bytes ||
        want->part_bytes > send->length_bytes - want->offset)
        return EMU_STATUS_BAD_COMMAND;
    if (port->server->n_paced > 0)
        emu_injection_charge(port->server, port->nid, want->part_bytes);
    return emu_portals_place_read(port, &errand->place, send->local_offset + want->offset, to, want->part_bytes);
}

void emu_portals_remote_want(struct emu_server *server, uint32_t host, const struct emu_host_portals_part *want)
{
    struct emu_portals_errand *errand = find(server, host, want->to, SENT);
    struct emu_host_portals_part part = *want;
    uint8_t message[EMU_HOST_PTL_DATA_BYTES + EMU_HOST_PTL_PART_BYTES];

    part.is_at_target = true;
    part.to = want->from;
    part.fail = (uint8_t)(errand ? read_part(errand, want, message + EMU_HOST_PTL_DATA_BYTES) : EMU_STATUS_PEER_GONE);
    emu_host_portals_data_put(message, &part);
    emu_hosts_answer(server, host, message, EMU_HOST_PTL_DATA_BYTES + (part.fail ? 0 : part.part_bytes));
}

/* More of a get's data. Those of an errand that has ended are nobody's. */
bool emu_portals_remote_data(struct emu_server *server, uint32_t host, const struct emu_host_portals_part *part)
{
    struct emu_portals_errand *errand = find(server, host, part->to, PULL);
    struct emu_portals_pull *pull;

    if (!errand)
        return true;
    pull = &errand->pull;
    if (!emu_portals_pull_take(pull, part))
        return false;
    if (pull->fail == 0)
        pull->fail = emu_portals_place_write(errand->port, &errand->place, errand->send.local_offset + part->offset,
                                             part->data, part->part_bytes);
    if (!emu_portals_pull_go_on(server, pull))
        return true;
    errand->fail = pull->fail;
    tell_done(server, errand);
    errand->phase = HOME;
    go_on(errand);
    return true;
}

/* ---- hosts that go ---- */

static void lose(struct emu_server *server, struct emu_portals_errand *errand)
{
    bool is_short = errand->goes_on;

    errand->goes_on = false;
    stop_counting(server, errand);
    switch (errand->phase) {
    case SENT:
        if (errand->port)
            fail(errand, EMU_STATUS_NETWORK);
        else
            forget(server, errand);
        break;
    case REPLY:
        if (is_short)
            errand->fail = EMU_STATUS_NETWORK;
        break;
    case PULL:
        emu_portals_pull_stop(server, &errand->pull);
        errand->fail = EMU_STATUS_NETWORK;
        errand->phase = HOME;
        go_on(errand);
        break;
    default:
        break;
    }
}

void emu_portals_remote_down(struct emu_server *server, uint32_t host)
{
    struct emu_numbers *errands = &emu_portals_hosts_of(server)->errands;

    for (uint32_t i = 0; i < errands->n_used; i++) {
        struct emu_portals_errand *errand = errands->places[i].what;

        if (errand && errand->host == host)
            lose(server, errand);
    }
}

void emu_portals_remote_destroy(struct emu_server *server)
{
    struct emu_numbers *errands = &emu_portals_hosts_of(server)->errands;

    for (uint32_t i = 0; i < errands->n_used; i++) {
        if (errands->places[i].what)
            forget(server, errands->places[i].what);
    }
}
