/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands in virtual time.
 *
 *   start     the data of a short put are copied out of the ring, because the client reuses their place
 *   arrived   the engine checks the command against the domain table as it is then, moves the data, tells the target.
 *             Data of a get are read then, and are at the initiator a little early: their event is not
 *   completed the initiator's events
 *
 * One that an injected fault has hit crosses the network as any other, does nothing, and ends with its error.
 *
 * A command that cannot name a node of the domain fails at once. One whose port has ended goes on through the network
 * and does nothing at its target.
 */
#include "emunic/daemon/commands/virtual_commands.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/commands/datapath.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"

struct emu_virtual_command {
    struct emu_virtual_op op; /* first */
    LIST_ENTRY(emu_virtual_command) port_link;
    struct emu_port_end *port; /* borrowed; NULL: it has ended */
    struct emu_view view;      /* the port's, with staging of our own */
    struct emu_transaction transaction;
    struct emu_cmd cmd;
    struct emu_fault_failure failure; /* of one that a fault has hit */
    uint8_t *staged;                  /* owned; NULL: nothing was staged */
};

static void free_command(struct emu_virtual_command *c)
{
    if (c->port) {
        LIST_REMOVE(c, port_link);
        c->port->transfers.n_virtual--;
    }
    free(c->staged);
    free(c);
}

static void drop(struct emu_virtual_op *op)
{
    free_command((struct emu_virtual_command *)op);
}

/* Who is at the target hears of what has come. */
static void disturb_target(const struct emu_virtual_command *c)
{
    struct emu_port_end *owner = c->port->domain->ports[c->transaction.owner_port];

    if (owner)
        emu_port_end_disturb(owner);
}

static bool arrived(struct emu_virtual_op *op)
{
    struct emu_virtual_command *c = (struct emu_virtual_command *)op;
    struct emu_transaction *t = &c->transaction;
    bool has_data;

    if (!c->port || c->failure.status != EMU_STATUS_OK)
        return true;
    has_data = emu_transaction_begin(&c->view, &c->cmd, t);
    while (has_data && emu_transaction_step(&c->view, t, UINT64_MAX))
        ;
    emu_transaction_finish_target(&c->view, t);
    disturb_target(c);
    return true;
}

/* A process whose wait it does not end is spared a turn. */
static bool is_quiet(const struct emu_virtual_command *c)
{
    return (c->cmd.events & EMU_EV_QUIET) != 0 && c->failure.status == EMU_STATUS_OK &&
           c->transaction.status == EMU_STATUS_OK;
}

static void completed(struct emu_virtual_op *op)
{
    struct emu_virtual_command *c = (struct emu_virtual_command *)op;
    struct emu_port_end *port = c->port;
    bool is_news = !is_quiet(c);

    if (port) {
        if (c->failure.status != EMU_STATUS_OK)
            emu_fault_fail(port, &c->cmd, &c->failure);
        else
            emu_transaction_finish_initiator(&c->view, &c->transaction);
        emu_datapath_end_block(port, &c->cmd);
        emu_virtual_let_go(port);
    }
    free_command(c);
    if (!port)
        return;
    emu_datapath_publish_unfinished(port);
    if (is_news)
        emu_port_end_disturb(port);
}

/* What was staged is copied: its place is free again when the command has been taken. */
static int take_staged(struct emu_virtual_command *c)
{
    int r;

    if (c->cmd.op != EMU_OP_PUT || (c->cmd.flags & EMU_CMD_STAGED) == 0 || (c->cmd.flags & EMU_CMD_INLINE) != 0)
        return 0;
    if (c->cmd.length_bytes > EMU_STAGED_MAX)
        return -EINVAL;
    c->staged = malloc(c->cmd.length_bytes + 1);
    if (!c->staged)
        return -ENOMEM;
    r = c->port->view.staging.ops->read(&c->port->view.staging, c->cmd.local_addr, c->staged, c->cmd.length_bytes);
    c->view.staging = emu_memory_map(c->staged, 0, c->cmd.length_bytes);
    c->cmd.local_addr = 0;
    return r;
}

static enum emu_virtual_kind kind_of(const struct emu_cmd *cmd)
{
    bool is_block = (cmd->flags & EMU_CMD_BLOCK) != 0;

    switch (cmd->op) {
    case EMU_OP_GET:
        return is_block ? EMU_VIRTUAL_BLOCK_GET : EMU_VIRTUAL_GET;
    case EMU_OP_AMO:
        if (cmd->length_bytes > 16) /* a vector: its words travel as data */
            return (cmd->amo_flags & EMU_AMO_FETCH) ? EMU_VIRTUAL_GET : EMU_VIRTUAL_PUT;
        return (cmd->amo_flags & EMU_AMO_FETCH) ? EMU_VIRTUAL_AMO_FETCH : EMU_VIRTUAL_AMO;
    default:
        if (cmd->flags & EMU_CMD_LAUNCH)
            return EMU_VIRTUAL_LAUNCH;
        return is_block ? EMU_VIRTUAL_BLOCK_PUT : EMU_VIRTUAL_PUT;
    }
}

static uint64_t bytes_of(const struct emu_cmd *cmd)
{
    if (cmd->op == EMU_OP_CQ_WRITE)
        return sizeof(uint64_t);
    return cmd->length_bytes + ((cmd->flags & EMU_CMD_FLAG) && cmd->op == EMU_OP_PUT ? sizeof(uint64_t) : 0);
}

/* The process whose memory the handle means now; the engine decides when the command arrives. */
static const struct emu_member *owner_of(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t node = emu_table_node_index(port->domain->table, cmd->remote_nid);
    const struct emu_md_name name = { cmd->remote_base, cmd->mdh, cmd->generation, cmd->handle_flags };
    uint32_t md = emu_transaction_find_md(port->domain->table, node, &name);
    const struct emu_port_end *owner;

    if (md == EMU_MD_COUNT)
        return NULL;
    owner = port->domain->ports[emu_table_mds(port->domain->table, node)[md].port];
    return owner ? owner->member : NULL;
}

static_assert((int)EMU_DELIVERY_ADAPTIVE_0 == EMU_MODE_ADAPTIVE_0 &&
                  (int)EMU_DELIVERY_ADAPTIVE_3 == EMU_MODE_ADAPTIVE_3 &&
                  (int)EMU_DELIVERY_MIN_HASH == EMU_MODE_MIN_HASH && (int)EMU_DELIVERY_IN_ORDER == EMU_MODE_IN_ORDER,
              "the network's modes");

static enum emu_route_mode mode_of(const struct emu_cmd *cmd)
{
    unsigned mode = cmd->handle_flags >> EMU_HANDLE_MODE_SHIFT;

    return mode < EMU_DELIVERIES ? (enum emu_route_mode)mode : EMU_MODE_ADAPTIVE_0;
}

static int post(struct emu_virtual_command *c)
{
    const struct emu_virtual_move move = { .kind = kind_of(&c->cmd),
                                           .to_nid = emu_domain_nid_at(c->port->domain, c->cmd.remote_nid),
                                           .to = owner_of(c->port, &c->cmd),
                                           .bytes = bytes_of(&c->cmd),
                                           .is_launched = (c->cmd.flags & EMU_CMD_LAUNCH) != 0,
                                           .changes_mdh = (c->cmd.handle_flags & EMU_HANDLE_CHANGED) != 0,
                                           .mode = mode_of(&c->cmd) };

    return emu_virtual_post(c->port, &c->op, &move);
}

static struct emu_virtual_command *make(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_virtual_command *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->op.arrived = arrived;
    c->op.completed = completed;
    c->op.drop = drop;
    c->port = port;
    c->view = port->view;
    c->cmd = *cmd;
    LIST_INSERT_HEAD(&port->transfers.virtual_list, c, port_link);
    port->transfers.n_virtual++;
    return c;
}

bool emu_virtual_command_start(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_virtual_command *c;
    int r;

    if (emu_domain_nid_at(port->domain, cmd->remote_nid) == EMU_NID_NONE) {
        emu_transaction_fail(&port->view, cmd, EMU_STATUS_PEER_GONE);
        emu_datapath_end_block(port, cmd);
        emu_port_end_disturb(port);
        return true;
    }
    c = make(port, cmd);
    if (!c)
        return false;
    r = take_staged(c);
    if (r == 0)
        r = post(c);
    if (r == 0)
        return true;
    free_command(c);
    if (r == -ENOBUFS || r == -ENOMEM)
        return port->transfers.n_virtual == 0;
    emu_transaction_fail(&port->view, cmd, EMU_STATUS_BAD_COMMAND);
    emu_datapath_end_block(port, cmd);
    emu_port_end_disturb(port);
    return true;
}

void emu_virtual_command_fail(struct emu_port_end *port, const struct emu_cmd *cmd,
                              const struct emu_fault_failure *failure)
{
    bool has_way = emu_domain_nid_at(port->domain, cmd->remote_nid) != EMU_NID_NONE;
    struct emu_virtual_command *c = has_way ? make(port, cmd) : NULL;

    if (c) {
        c->failure = *failure;
        if (post(c) == 0)
            return;
        free_command(c);
    }
    emu_fault_fail(port, cmd, failure);
    emu_datapath_end_block(port, cmd);
    emu_port_end_disturb(port);
}

void emu_virtual_commands_leave(struct emu_port_end *port)
{
    struct emu_virtual_command *c;

    while ((c = LIST_FIRST(&port->transfers.virtual_list))) {
        LIST_REMOVE(c, port_link);
        c->port = NULL;
    }
    port->transfers.n_virtual = 0;
}
