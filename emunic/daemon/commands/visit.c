/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of other hosts for nodes here.
 *
 * Each is done by the same engine as commands of this host, on a view of the visitor: our own table, the bytes of the
 * message as the initiator's memory, no source queue, no counters. So all that protects memory is checked here,
 * whatever the other host has checked. The answer carries the status, and what a get or an atomic brought. What fits a
 * message is done at once, and nothing of the visitor is kept.
 *
 * Bulk. Of a part in bulk the visit is kept until its data have been moved:
 *
 *   waiting --checked; a piece and a transfer are free--> moving --transfer_done--> checked again, flag and event,
 *   answer
 *
 * It is we who move, a put's data with a read of the initiator's piece and a get's with a write to it, and only between
 * that and what was checked: no other host can ever reach memory here by itself. Where the memory is mapped the network
 * copies straight to or from it. So a deregistration is answered when what moves has ended (quiesce.c asks
 * emu_visit_holds()), and a command whose memory domain has gone meanwhile fails. Where it is not mapped, staging takes
 * the data and the engine does the rest, with the check that it always makes, when they are all there.
 *
 * Visits of a host that move end in the order in which they began, though the transport moves several at a time: so
 * long commands end as they came.
 *
 * A host has EMU_HOST_BULK_PARTS visits here at most, so one that is slow takes nothing from others. When it is lost,
 * its transfers end, and with them its visits; those that wait are forgotten.
 */
#include "emunic/daemon/commands/visit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "emunic/abi/host_message.h"
#include "emunic/daemon/commands/bulk.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/rest.h"
#include "emunic/engine/transaction.h"

static_assert(EMU_HOST_AMO_BYTES <= EMU_AMO_STEP_BYTES, "a part is done in one step");

struct visitor {
    struct emu_domain *domain;
    bool lost_its_event;
};

/* A part in bulk. */
struct visit {
    TAILQ_ENTRY(visit) link; /* among those that wait, or that move */
    struct emu_host_command command;
    uint32_t host;
    uint16_t mdh;                 /* moving: what was checked */
    struct emu_bulk_piece *piece; /* owned; NULL: waiting */
    int result;                   /* of moving, once... */
    bool has_moved;
};

TAILQ_HEAD(visit_list, visit);

struct emu_visits {
    struct visit_list waiting; /* owned */
    struct visit_list moving;  /* owned */
    uint32_t n[];              /* of each host */
};

/* NULL while this host is alone. */
static struct emu_visits *visits_in(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_VISITS];
}

static int visitor_reach(void *ctx, const struct emu_table_md *md, uint8_t op, struct emu_memory *mem_out)
{
    const struct visitor *visitor = ctx;

    (void)op;
    return emu_md_reach_in(visitor->domain, md, mem_out);
}

static struct emu_cq_producer *visitor_destination(void *ctx, const struct emu_table_md *md)
{
    const struct visitor *visitor = ctx;

    return emu_port_end_queue(visitor->domain->ports[md->port], md->cq);
}

static struct emu_cq_producer *visitor_source(void *ctx, uint32_t cq)
{
    (void)ctx;
    (void)cq;
    return NULL;
}

/* The initiator's emunic tells who wants to know; it needs to hear of one thing that the status does not say. */
static void visitor_failed(void *ctx, const struct emu_transaction *t, unsigned status)
{
    struct visitor *visitor = ctx;

    (void)status;
    visitor->lost_its_event = t->status == EMU_STATUS_OK;
}

static const struct emu_view_ops visitor_ops = {
    .reach = visitor_reach,
    .destination = visitor_destination,
    .source = visitor_source,
    .failed = visitor_failed,
};

/*
 * A command on its way. `local` has the data of the part, or room for them. A status other than OK: there is no such
 * command.
 */
static unsigned begin(struct emu_server *server, struct visitor *visitor, const struct emu_host_command *command,
                      void *local, struct emu_view *view_out, struct emu_transaction *t_out)
{
    const struct emu_domain *domain = visitor->domain;
    struct emu_cmd cmd = command->cmd;
    uint32_t node = emu_domain_node_of(domain, cmd.remote_nid);

    if (node == EMU_NID_NONE || domain->addresses[node] == EMU_NID_NONE)
        return EMU_STATUS_PEER_GONE;
    *view_out = (struct emu_view){
        .table = domain->table,
        .ops = &visitor_ops,
        .ctx = visitor,
        .n_flows = domain->n_nodes,
        .bounce = server->bounce.bytes,
        .bounce_bytes = server->bounce.len_bytes,
        .local = emu_memory_map(local, command->offset, command->part_bytes),
    };
    cmd.remote_nid = domain->addresses[node];
    cmd.local_addr = 0;
    if (!emu_host_is_last_part(command))
        cmd.events = 0;
    emu_transaction_begin(view_out, &cmd, t_out);
    t_out->done_bytes = command->offset;
    return t_out->status;
}

/* Events, and wakes who may wait for what has come. */
static unsigned finish(const struct visitor *visitor, const struct emu_view *view, struct emu_transaction *t)
{
    struct emu_port_end *owner;

    emu_transaction_finish(view, t);
    owner = visitor->domain->ports[t->owner_port];
    if (owner)
        emu_port_end_disturb(owner);
    return t->status;
}

static unsigned run(struct emu_server *server, struct visitor *visitor, const struct emu_host_command *command,
                    void *local)
{
    struct emu_transaction t;
    struct emu_view view;
    unsigned status = begin(server, visitor, command, local, &view, &t);

    if (status != EMU_STATUS_OK)
        return status;
    if (command->cmd.op != EMU_OP_CQ_WRITE)
        emu_transaction_step(&view, &t, command->part_bytes);
    return finish(visitor, &view, &t);
}

/* A node of the domain that is on that host? */
static bool is_of_host(const struct emu_domain *domain, uint32_t nid, uint32_t host)
{
    uint32_t node = emu_domain_node_of(domain, nid);

    return node != EMU_NID_NONE && emu_hosts_of_node(domain, node) == host;
}

/* If it has a number, its sender hears of it. */
static bool refuse(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_host_answer answer = { .status = EMU_STATUS_BAD_COMMAND };
    uint8_t message[EMU_HOST_ANSWER_BYTES];

    if (length_bytes >= EMU_HOST_COMMAND_BYTES) {
        answer.id = emu_wire_get64(bytes + EMU_HOST_HEAD_BYTES);
        emu_host_answer_put(message, &answer);
        emu_hosts_answer(server, host, message, sizeof(message));
    }
    return false;
}

static void answer(struct emu_server *server, uint32_t host, const struct emu_host_command *command, unsigned status,
                   bool lost_its_event, uint8_t message[EMU_HOST_ANSWER_BYTES])
{
    struct emu_host_answer answer = { .domain = command->domain,
                                      .id = command->id,
                                      .status = (uint8_t)status,
                                      .flags = lost_its_event ? EMU_HOST_EVENT_LOST : 0 };

    if (status == EMU_STATUS_OK)
        answer.length_bytes = emu_host_result_bytes(command);
    emu_host_answer_put(message, &answer);
    emu_hosts_answer(server, host, message, EMU_HOST_ANSWER_BYTES + answer.length_bytes);
}

static struct emu_domain *domain_of(struct emu_server *server, const struct emu_host_command *command)
{
    struct emu_domain *domain = emu_hosts_find_domain(server, command->domain);

    return domain && !domain->is_ending ? domain : NULL;
}

/* ---- bulk ---- */

int emu_visit_create(struct emu_server *server)
{
    uint32_t n = emu_hosts_count(server);
    struct emu_visits *visits = calloc(1, sizeof(*visits) + n * sizeof(visits->n[0]));

    if (!visits)
        return -ENOMEM;
    TAILQ_INIT(&visits->waiting);
    TAILQ_INIT(&visits->moving);
    server->slots[EMU_SERVER_VISITS] = visits;
    return 0;
}

static void drop(struct visit_list *list, struct visit *visit)
{
    TAILQ_REMOVE(list, visit, link);
    free(visit);
}

void emu_visit_destroy(struct emu_server *server)
{
    struct emu_visits *visits = visits_in(server);

    while (visits && !TAILQ_EMPTY(&visits->waiting))
        drop(&visits->waiting, TAILQ_FIRST(&visits->waiting));
    while (visits && !TAILQ_EMPTY(&visits->moving))
        drop(&visits->moving, TAILQ_FIRST(&visits->moving));
    free(visits);
    server->slots[EMU_SERVER_VISITS] = NULL;
}

static void end_visit(struct emu_server *server, struct visit_list *list, struct visit *visit, unsigned status,
                      bool lost_its_event)
{
    uint8_t message[EMU_HOST_ANSWER_BYTES];

    answer(server, visit->host, &visit->command, status, lost_its_event, message);
    emu_bulk_give_back(server, visit->piece);
    visits_in(server)->n[visit->host]--;
    drop(list, visit);
}

/* The piece of the target's memory; what of it is staged for a get is read. 0, -EAGAIN, or an enum emu_status. */
static int take_piece(struct emu_server *server, struct visit *visit, const struct emu_domain *domain,
                      const struct emu_transaction *t)
{
    const struct emu_host_command *command = &visit->command;
    uint64_t addr = t->target_addr + command->offset;
    struct emu_bulk_wish wish = { .host = visit->host,
                                  .pool = EMU_BULK_VISITORS,
                                  .memory = &t->remote,
                                  .addr = addr,
                                  .member = domain->ports[t->owner_port]->member,
                                  .length_bytes = command->part_bytes,
                                  .is_filled = command->cmd.op != EMU_OP_GET };
    int r = emu_bulk_take(server, &wish, &visit->piece);

    if (r < 0)
        return r == -EAGAIN ? r : EMU_STATUS_NETWORK;
    if (command->cmd.op != EMU_OP_GET || !visit->piece->is_staged)
        return 0;
    r = t->remote.ops->read(&t->remote, addr, visit->piece->bytes, command->part_bytes);
    if (r == 0)
        return 0;
    return r == -ESRCH ? EMU_STATUS_PEER_GONE : r == -EPERM ? EMU_STATUS_REMOTE_PERMISSION : EMU_STATUS_REMOTE_RANGE;
}

static int move_bulk(struct emu_server *server, struct visit *visit)
{
    const struct emu_host_command *command = &visit->command;
    const struct emu_transport_ops *ops;
    struct emu_transport *transport = emu_hosts_transport(server, &ops);
    struct emu_transport_remote place = { .key = command->key,
                                          .base = command->base,
                                          .length_bytes = command->part_bytes };
    struct emu_transport_move move = { .region = visit->piece->region,
                                       .remote = &place,
                                       .length_bytes = command->part_bytes,
                                       .cookie = (uint64_t)(uintptr_t)visit };

    if (command->cmd.op == EMU_OP_PUT)
        return ops->get(transport, visit->host, &move);
    return ops->put(transport, visit->host, &move, NULL, 0);
}

/* A visit that waits begins to move, or ends, or goes on waiting. */
static void try_to_begin(struct emu_server *server, struct visit *visit)
{
    struct emu_visits *visits = visits_in(server);
    struct visitor visitor = { .domain = domain_of(server, &visit->command) };
    struct emu_transaction t;
    struct emu_view view;
    unsigned status = EMU_STATUS_PEER_GONE;
    int r;

    if (visitor.domain)
        status = begin(server, &visitor, &visit->command, NULL, &view, &t);
    if (status != EMU_STATUS_OK) {
        end_visit(server, &visits->waiting, visit, status, false);
        return;
    }
    r = take_piece(server, visit, visitor.domain, &t);
    if (r == -EAGAIN)
        return;
    if (r > 0) {
        end_visit(server, &visits->waiting, visit, (unsigned)r, false);
        return;
    }
    r = move_bulk(server, visit);
    if (r == 0) {
        visit->mdh = t.mdh;
        TAILQ_REMOVE(&visits->waiting, visit, link);
        TAILQ_INSERT_TAIL(&visits->moving, visit, link);
    } else if (r == EMU_TRANSPORT_FULL) {
        emu_bulk_give_back(server, visit->piece);
        visit->piece = NULL;
    } else {
        end_visit(server, &visits->waiting, visit, EMU_STATUS_NETWORK, false);
    }
}

/* Staging or a transfer has become free. */
static void try_all_to_begin(struct emu_server *server)
{
    struct visit *visit = TAILQ_FIRST(&visits_in(server)->waiting);

    while (visit) {
        struct visit *next = TAILQ_NEXT(visit, link);

        try_to_begin(server, visit);
        visit = next;
    }
}

/* The data have been moved to where they belong, or from there; what is left are the flag and the event. */
static unsigned complete(struct emu_server *server, struct visitor *visitor, const struct visit *visit)
{
    const struct emu_host_command *command = &visit->command;
    struct emu_transaction t;
    struct emu_view view;
    unsigned status = begin(server, visitor, command, NULL, &view, &t);

    if (status == EMU_STATUS_OK && t.mdh != visit->mdh)
        status = EMU_STATUS_BAD_HANDLE;
    if (status != EMU_STATUS_OK)
        return status;
    t.done_bytes += command->part_bytes;
    if (command->cmd.op == EMU_OP_PUT && emu_host_is_last_part(command))
        emu_transaction_step(&view, &t, 0);
    return finish(visitor, &view, &t);
}

/* Its data have been moved, or not. */
static void end_moving(struct emu_server *server, struct visit *visit)
{
    struct visitor visitor = { .domain = domain_of(server, &visit->command) };
    unsigned status = EMU_STATUS_NETWORK;

    if (visit->result == 0 && !visitor.domain)
        status = EMU_STATUS_PEER_GONE;
    else if (visit->result == 0 && visit->piece->is_staged && visit->command.cmd.op == EMU_OP_PUT)
        status = run(server, &visitor, &visit->command, visit->piece->bytes);
    else if (visit->result == 0)
        status = complete(server, &visitor, visit);
    end_visit(server, &visits_in(server)->moving, visit, status, visitor.lost_its_event);
}

void emu_visit_transfer_done(struct emu_server *server, uint64_t cookie, int result)
{
    struct visit *visit = (struct visit *)(uintptr_t)cookie;
    uint32_t host = visit->host;

    visit->result = result;
    visit->has_moved = true;
    visit = TAILQ_FIRST(&visits_in(server)->moving);
    while (visit) {
        struct visit *next = TAILQ_NEXT(visit, link);

        if (visit->host == host) {
            if (!visit->has_moved)
                break;
            end_moving(server, visit);
        }
        visit = next;
    }
    try_all_to_begin(server);
}

void emu_visit_host_down(struct emu_server *server, uint32_t host)
{
    struct visit *visit = TAILQ_FIRST(&visits_in(server)->waiting);

    while (visit) {
        struct visit *next = TAILQ_NEXT(visit, link);

        if (visit->host == host) {
            visits_in(server)->n[host]--;
            drop(&visits_in(server)->waiting, visit);
        }
        visit = next;
    }
}

bool emu_visit_holds(const struct emu_server *server, const struct emu_domain *domain, uint32_t nid, uint16_t mdh)
{
    const struct visit *visit;

    if (!visits_in(server) || domain->common_number == 0)
        return false;
    TAILQ_FOREACH(visit, &visits_in(server)->moving, link) {
        if (!visit->piece->is_staged && visit->command.domain == domain->common_number &&
            visit->command.cmd.remote_nid == nid && visit->mdh == mdh)
            return true;
    }
    return false;
}

/* False: the host has no more visits to make. */
static bool receive(struct emu_server *server, uint32_t host, const struct emu_host_command *command)
{
    struct emu_visits *visits = visits_in(server);
    uint8_t message[EMU_HOST_ANSWER_BYTES];
    struct visit *visit;

    if (visits->n[host] == EMU_HOST_BULK_PARTS)
        return false;
    visit = calloc(1, sizeof(*visit));
    if (!visit) {
        answer(server, host, command, EMU_STATUS_NETWORK, false, message);
        return true;
    }
    visit->command = *command;
    visit->host = host;
    visits->n[host]++;
    TAILQ_INSERT_TAIL(&visits->waiting, visit, link);
    try_to_begin(server, visit);
    return true;
}

/* ---- messages ---- */

bool emu_visit_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    uint8_t message[EMU_HOST_ANSWER_BYTES + EMU_HOST_PART_BYTES];
    struct emu_host_command command;
    struct visitor visitor = { 0 };
    unsigned status = EMU_STATUS_PEER_GONE;
    void *local;

    if (!emu_host_command_parse(bytes, length_bytes, &command))
        return refuse(server, host, bytes, length_bytes);
    visitor.domain = domain_of(server, &command);
    if (visitor.domain && !is_of_host(visitor.domain, command.from_nid, host))
        return refuse(server, host, bytes, length_bytes);
    if (command.is_bulk)
        return receive(server, host, &command) || refuse(server, host, bytes, length_bytes);
    local = command.cmd.op == EMU_OP_PUT ? (void *)(uintptr_t)command.data : message + EMU_HOST_ANSWER_BYTES;
    if (visitor.domain)
        status = run(server, &visitor, &command, local);
    answer(server, host, &command, status, visitor.lost_its_event, message);
    return true;
}
