/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of other hosts for nodes here.
 *
 * Each is done at once, by the same engine as commands of this host, on a view of the visitor: our own table, the bytes
 * of the message as the initiator's memory, no source queue, no counters. So all that protects memory is checked here,
 * whatever the other host has checked, and nothing of a visitor is kept: when its host is lost there is nothing to clean
 * up. The answer carries the status, and what a get or an atomic brought.
 */
#include "emunic/daemon/visit.h"

#include "emunic/abi/host.h"
#include "emunic/daemon/domain.h"
#include "emunic/daemon/hosts.h"
#include "emunic/daemon/memory_domain.h"
#include "emunic/daemon/port.h"
#include "emunic/daemon/server.h"
#include "emunic/engine/rest.h"
#include "emunic/engine/transaction.h"

static_assert(EMU_HOST_AMO_BYTES <= EMU_AMO_STEP_BYTES, "a part is done in one step");

struct visitor {
    struct emu_domain *domain;
    bool lost_its_event;
};

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

static unsigned run(struct emu_server *server, struct visitor *visitor, const struct emu_host_command *command,
                    void *result)
{
    const struct emu_domain *domain = visitor->domain;
    struct emu_cmd cmd = command->cmd;
    unsigned chain_status = EMU_STATUS_OK;
    struct emu_view view = {
        .table = domain->table,
        .ops = &visitor_ops,
        .ctx = visitor,
        .n_flows = domain->n_nodes,
        .chain_status = &chain_status,
        .bounce = server->bounce,
        .bounce_bytes = server->bounce_bytes,
    };
    uint32_t node = emu_domain_node_of(domain, cmd.remote_nid);
    struct emu_transaction t;

    if (node == EMU_NID_NONE || domain->addresses[node] == EMU_NID_NONE)
        return EMU_STATUS_PEER_GONE;
    cmd.remote_nid = domain->addresses[node];
    cmd.local_addr = 0;
    if (!emu_host_is_last_part(command))
        cmd.events = 0;
    view.local = emu_memory_map(cmd.op == EMU_OP_PUT ? (void *)(uintptr_t)command->data : result, command->offset,
                                command->part_bytes);
    if (emu_transaction_begin(&view, &cmd, &t)) {
        t.done_bytes = command->offset;
        emu_transaction_step(&view, &t, command->part_bytes);
    }
    emu_transaction_finish(&view, &t);
    if (domain->ports[t.owner_port])
        emu_rest_disturb(domain->ports[t.owner_port]->segment);
    return t.status;
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

bool emu_visit_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    uint8_t message[EMU_HOST_ANSWER_BYTES + EMU_HOST_PART_BYTES];
    struct emu_host_command command;
    struct emu_host_answer answer;
    struct visitor visitor = { 0 };

    if (!emu_host_command_parse(bytes, length_bytes, &command))
        return refuse(server, host, bytes, length_bytes);
    answer = (struct emu_host_answer){ .domain = command.domain, .id = command.id, .status = EMU_STATUS_PEER_GONE };
    visitor.domain = emu_hosts_find_domain(server, command.domain);
    if (visitor.domain && !visitor.domain->is_ending) {
        if (!is_of_host(visitor.domain, command.from_nid, host))
            return refuse(server, host, bytes, length_bytes);
        answer.status = (uint8_t)run(server, &visitor, &command, message + EMU_HOST_ANSWER_BYTES);
    }
    if (answer.status == EMU_STATUS_OK)
        answer.length_bytes = emu_host_result_bytes(&command);
    answer.flags = visitor.lost_its_event ? EMU_HOST_EVENT_LOST : 0;
    emu_host_answer_put(message, &answer);
    emu_hosts_answer(server, host, message, EMU_HOST_ANSWER_BYTES + answer.length_bytes);
    return true;
}
