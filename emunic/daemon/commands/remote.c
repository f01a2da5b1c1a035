/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands for nodes on other hosts: the initiator's side (visit.c is the target's).
 *
 *   ring -> errand --parts--> other host's engine --answers--> data and events here
 *
 * An errand is one command under way. A small one is one part, sent at once; nobody waits for its answer before the
 * next is sent. A long one is cut into parts of which each stands for itself at the target. Long errands to one host
 * take turns, PARTS_PER_ERRAND parts of each under way at most, and only while nothing waits for the transport: so a
 * small command finds a few packets or slices of the transport before it, never a transfer. The last part of a put that
 * sets a flag or leaves a remote event waits for the others, and is not sent if one of them has failed.
 *
 * Bulk. Parts of puts and gets from EMUNIC_BULK on carry no data. Our side of such a part is a piece (bulk.c): our
 * process's memory where that is mapped here, else staging, which is filled before the command goes and emptied when
 * the answer comes. The target's emunic moves the data, when it has checked the part and where both hosts can without
 * any copy but the kernel's. It reads from or writes to our piece until it has answered or is lost, whatever becomes of
 * the errand: so the piece belongs to the part. While injection is limited somewhere, parts are small ones, for the
 * sake of an even flow.
 *
 * Order. A host does the small commands of a port in the order of the ring and answers in that order. A command that
 * asks for order waits until what is under way cannot be overtaken: everything, if it carries a fence or goes
 * elsewhere. Of a chain all elements go to one host; the next chain may follow when its elements cannot get between
 * (emu_remote_may_start).
 *
 * Room. Of each host WINDOW parts are under way, that bring RESULT_MAX_BYTES at most: so what a host has to keep for
 * us is bounded, and a command that finds no room waits at the head of its ring, alone with those behind it.
 *
 * Ends. All events of a command come when its last part is answered, LOCAL ones too. When the host is lost, what is
 * under way to it ends with status "network" (a short message: "retransmit limit"), as does every command to a host
 * that is not there. Parts of a port that has gone are remembered until they are answered; their errand is not.
 */
#include "emunic/daemon/commands/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "emunic/abi/host_message.h"
#include "emunic/daemon/commands/bulk.h"
#include "emunic/daemon/commands/datapath.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/injection/injection.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/rest.h"
#include "emunic/engine/transaction.h"

#define WINDOW           1024u
#define RESULT_MAX_BYTES (4u << 20)
#define PARTS_PER_ERRAND 64u
#define PARTS_PER_ROUND  16u
#define ERRANDS_PER_PORT 4096u
#define NO_PART          UINT32_MAX

struct emu_errand {
    LIST_ENTRY(emu_errand) link;  /* of its port */
    TAILQ_ENTRY(emu_errand) turn; /* among the long ones of its host */
    struct emu_port_end *port;    /* borrowed: goes with it */
    struct emu_transaction t;
    uint32_t host;
    uint32_t n_parts; /* under way */
    uint64_t sent_bytes;
    bool is_sent; /* all of it, or as much as will be */
    bool is_bulk;
    bool is_long;     /* in several parts, or not sent when it began */
    bool is_block;    /* counted among the job's block transfers */
    bool takes_turns; /* is in the host's list */
    uint8_t *staged;  /* owned: a copy of its staged data, or NULL */
};

struct part {
    struct emu_errand *errand;    /* NULL: its port has gone */
    struct emu_bulk_piece *piece; /* owned; NULL: not in bulk */
    uint64_t offset;
    uint32_t length_bytes;
    uint32_t result_bytes;
    uint32_t host;
    uint32_t serial;
    uint32_t next_free;
    bool is_busy;
};

struct target_host {
    uint32_t n_parts;      /* under way */
    uint32_t n_bulk;       /* of them in bulk */
    uint64_t result_bytes; /* that they will bring */
    TAILQ_HEAD(turns, emu_errand) turns;
};

struct emu_remote {
    struct part *parts; /* owned */
    uint32_t n_parts;
    uint32_t free;
    uint32_t n_turns; /* long errands, of all hosts */
    struct target_host hosts[];
};

/* NULL while this host is alone. */
static struct emu_remote *remote_in(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_REMOTE];
}

/* ---- life ---- */

int emu_remote_create(struct emu_server *server)
{
    uint32_t n = emu_hosts_count(server);
    struct emu_remote *remote = calloc(1, sizeof(*remote) + n * sizeof(remote->hosts[0]));

    if (!remote)
        return -ENOMEM;
    remote->free = NO_PART;
    for (uint32_t i = 0; i < n; i++)
        TAILQ_INIT(&remote->hosts[i].turns);
    server->slots[EMU_SERVER_REMOTE] = remote;
    return 0;
}

void emu_remote_destroy(struct emu_server *server)
{
    if (remote_in(server))
        free(remote_in(server)->parts);
    free(remote_in(server));
    server->slots[EMU_SERVER_REMOTE] = NULL;
}

/* ---- parts ---- */

static int take_part(struct emu_remote *remote, uint32_t *number_out)
{
    uint32_t more = remote->n_parts ? 2 * remote->n_parts : 256;
    struct part *parts;

    if (remote->free == NO_PART) {
        parts = realloc(remote->parts, more * sizeof(*parts));
        if (!parts)
            return -ENOMEM;
        remote->parts = parts;
        for (uint32_t i = more; i-- > remote->n_parts;) {
            parts[i] = (struct part){ .next_free = remote->free };
            remote->free = i;
        }
        remote->n_parts = more;
    }
    *number_out = remote->free;
    remote->free = remote->parts[*number_out].next_free;
    return 0;
}

static void give_part(struct emu_server *server, uint32_t number)
{
    struct emu_remote *remote = remote_in(server);
    struct part *part = &remote->parts[number];

    emu_bulk_give_back(server, part->piece);
    if (part->is_busy) {
        remote->hosts[part->host].n_bulk -= part->piece ? 1 : 0;
        remote->hosts[part->host].n_parts--;
        remote->hosts[part->host].result_bytes -= part->result_bytes;
    }
    *part = (struct part){ .serial = part->serial + 1, .next_free = remote->free };
    remote->free = number;
}

/* ---- ends ---- */

static void stop_turns(struct emu_errand *errand)
{
    struct emu_remote *remote = remote_in(errand->port->server);

    if (!errand->takes_turns)
        return;
    TAILQ_REMOVE(&remote->hosts[errand->host].turns, errand, turn);
    errand->takes_turns = false;
    remote->n_turns--;
}

static void forget(struct emu_errand *errand)
{
    struct emu_remote_port *r = emu_remote_of(errand->port);
    const struct emu_cmd *cmd = &errand->t.cmd;

    stop_turns(errand);
    LIST_REMOVE(errand, link);
    r->n--;
    r->n_long -= errand->is_long;
    r->n_fenced_blocks -= (cmd->flags & EMU_CMD_BLOCK) && (cmd->flags & EMU_CMD_FENCE);
    r->n_chained -= cmd->chain != EMU_CHAIN_NONE;
    if (r->n == 0)
        r->is_mixed = false;
    free(errand->staged);
    free(errand);
}

static unsigned lost_status(const struct emu_cmd *cmd)
{
    return cmd->attempts > 0 ? EMU_STATUS_RETRANSMIT_LIMIT : EMU_STATUS_NETWORK;
}

/* The first failure counts, but what the target says comes before what is wrong here, as in the engine. */
static void fail(struct emu_errand *errand, unsigned status)
{
    if (errand->t.status == EMU_STATUS_OK || errand->t.status == EMU_STATUS_LOCAL_ACCESS)
        errand->t.status = status;
    errand->is_sent = true;
    stop_turns(errand);
}

/* The segments that the data lie in may have been deregistered meanwhile. */
static const struct emu_memory *local_memory(const struct emu_errand *errand)
{
    const struct emu_transaction *t = &errand->t;
    struct emu_memory still;

    if (t->segments.segments &&
        (emu_md_local(errand->port, t->cmd.local_mdh, t->cmd.local_generation, &still) != EMU_STATUS_OK ||
         still.segments != t->segments.segments))
        return NULL;
    return emu_transaction_local(&errand->port->view, t);
}

static bool write_local(struct emu_errand *errand, uint64_t offset, const void *data, size_t length_bytes)
{
    const struct emu_memory *local = local_memory(errand);

    return local && local->ops->write(local, errand->t.cmd.local_addr + offset, data, length_bytes, NULL) == 0;
}

/* If nothing of it is under way or to be sent. */
static void finish_if_over(struct emu_errand *errand)
{
    struct emu_port_end *port = errand->port;
    const struct emu_cmd *cmd = &errand->t.cmd;
    static const uint32_t arrived = 1;

    if (!errand->is_sent || errand->n_parts > 0)
        return;
    if (errand->t.status == EMU_STATUS_OK && cmd->op != EMU_OP_PUT && cmd->op != EMU_OP_CQ_WRITE &&
        (cmd->flags & EMU_CMD_GET_FLAG) && !write_local(errand, cmd->length_bytes, &arrived, sizeof(arrived)))
        errand->t.status = EMU_STATUS_LOCAL_ACCESS;
    emu_transaction_finish(&port->view, &errand->t);
    if (errand->is_block)
        emu_account_add_block(port, -1);
    emu_datapath_end_block(port, cmd);
    forget(errand);
    emu_datapath_publish_unfinished(port);
    emu_port_end_disturb(port);
}

/* ---- sending ---- */

static uint64_t total_bytes(const struct emu_errand *errand)
{
    return errand->t.cmd.op == EMU_OP_CQ_WRITE ? 0 : errand->t.cmd.length_bytes;
}

/* The most that a part moves which is not in bulk. */
static uint32_t part_bytes_of(const struct emu_cmd *cmd)
{
    return cmd->op == EMU_OP_AMO ? EMU_HOST_AMO_BYTES : EMU_HOST_PART_BYTES;
}

static bool goes_in_bulk(const struct emu_errand *errand)
{
    return errand->is_bulk && errand->port->server->n_paced == 0;
}

/* Copies the data of a part of a put. */
static bool read_data(const struct emu_errand *errand, uint64_t offset, void *to, uint32_t length_bytes)
{
    const struct emu_cmd *cmd = &errand->t.cmd;
    const struct emu_memory *from;

    if (length_bytes == 0)
        return true;
    if (cmd->flags & EMU_CMD_INLINE) {
        memcpy(to, (cmd->flags & EMU_CMD_FLAG) ? cmd->flagged_data : cmd->data, length_bytes);
        return true;
    }
    if (errand->staged) {
        memcpy(to, errand->staged + offset, length_bytes);
        return true;
    }
    from = (cmd->flags & EMU_CMD_STAGED) ? &errand->port->view.staging : local_memory(errand);
    return from && from->ops->read(from, cmd->local_addr + offset, to, length_bytes) == 0;
}

/* Its place is free again when the ring's head passes the command. */
static bool copy_staged(struct emu_errand *errand)
{
    const struct emu_cmd *cmd = &errand->t.cmd;
    const struct emu_memory *from = &errand->port->view.staging;

    if (cmd->op != EMU_OP_PUT || (cmd->flags & (EMU_CMD_INLINE | EMU_CMD_STAGED)) != EMU_CMD_STAGED || errand->staged ||
        cmd->length_bytes == 0)
        return true;
    if (cmd->length_bytes > EMU_STAGING_BYTES)
        return false;
    errand->staged = malloc(cmd->length_bytes);
    return errand->staged && from->ops->read(from, cmd->local_addr, errand->staged, cmd->length_bytes) == 0;
}

/* Length of the part that comes next. */
static uint32_t next_bytes(const struct emu_errand *errand)
{
    uint64_t left = total_bytes(errand) - errand->sent_bytes;
    uint32_t most = part_bytes_of(&errand->t.cmd);

    if (goes_in_bulk(errand))
        most = EMU_HOST_BULK_BYTES;
    return left < most ? (uint32_t)left : most;
}

static struct emu_host_command command_of(const struct emu_errand *errand, uint32_t part_bytes)
{
    struct emu_host_command c = { .domain = errand->port->domain->common_number,
                                  .from_nid = errand->port->nid,
                                  .cmd = errand->t.cmd,
                                  .offset = errand->sent_bytes,
                                  .part_bytes = part_bytes };

    c.cmd.remote_nid = emu_table_nodes(errand->port->domain->table)[errand->t.node_index].nid;
    c.cmd.length_bytes = total_bytes(errand);
    if (c.cmd.op != EMU_OP_PUT)
        c.cmd.flags &= (uint8_t)~EMU_CMD_FLAG;
    return c;
}

enum sent { SENT, NO_ROOM, NOT_IN_BULK, ENDED };

/*
 * Our side of a part in bulk. A put's data are there when this returns. NOT_IN_BULK: not all of them can be read; who
 * takes smaller parts gets as far as they reach, and hears what the target says of the whole.
 */
static enum sent prepare_bulk(struct emu_errand *errand, struct part *part, struct emu_host_command *command)
{
    struct emu_port_end *port = errand->port;
    bool is_put = command->cmd.op == EMU_OP_PUT;
    uint64_t addr = errand->t.cmd.local_addr + command->offset;
    const struct emu_memory *local = local_memory(errand);
    struct emu_memory mapped;
    struct emu_bulk_wish wish = { .host = errand->host,
                                  .pool = EMU_BULK_OWN,
                                  .member = port->member,
                                  .memory = local,
                                  .addr = addr,
                                  .length_bytes = command->part_bytes,
                                  .access = is_put ? EMU_TRANSPORT_READ : EMU_TRANSPORT_WRITE,
                                  .is_filled = !is_put };
    struct emu_transport_remote place;
    const struct emu_transport_ops *ops;
    int r;

    if (!local) {
        fail(errand, EMU_STATUS_LOCAL_ACCESS);
        return ENDED;
    }
    if (!errand->t.segments.segments && !port->memory.amo_cache &&
        emu_space_find(port->member, addr, command->part_bytes, !is_put, &mapped))
        wish.memory = &mapped;
    r = emu_bulk_take(port->server, &wish, &part->piece);
    if (r == -EAGAIN)
        return NO_ROOM;
    if (r < 0) {
        fail(errand, EMU_STATUS_NETWORK);
        return ENDED;
    }
    if (is_put && part->piece->is_staged &&
        !read_data(errand, command->offset, part->piece->bytes, command->part_bytes))
        return NOT_IN_BULK;
    emu_hosts_transport(port->server, &ops);
    ops->region_remote(part->piece->region, &place);
    command->is_bulk = true;
    command->key = place.key;
    command->base = place.base;
    return SENT;
}

/* The part is under way. */
static void note_sent(struct emu_errand *errand, struct part *part, const struct emu_host_command *command)
{
    struct emu_server *server = errand->port->server;
    struct target_host *target = &remote_in(server)->hosts[errand->host];

    part->errand = errand;
    part->offset = errand->sent_bytes;
    part->length_bytes = command->part_bytes;
    part->result_bytes = emu_host_result_bytes(command);
    part->host = errand->host;
    part->is_busy = true;
    if (part->piece)
        target->n_bulk++;
    else
        emu_hosts_owe(server, part->host); /* the answer to a piece takes as long as the network needs for it */
    target->n_parts++;
    target->result_bytes += part->result_bytes;
    errand->n_parts++;
    errand->sent_bytes += part->length_bytes;
    errand->is_sent = errand->sent_bytes == total_bytes(errand);
}

/* Sends the next part. ENDED: the errand cannot go on; its status tells why. */
static enum sent send_part(struct emu_errand *errand)
{
    struct emu_server *server = errand->port->server;
    struct emu_remote *remote = remote_in(server);
    uint8_t message[EMU_HOST_COMMAND_BYTES + EMU_HOST_PART_BYTES];
    uint32_t length = next_bytes(errand);
    struct emu_host_command command = command_of(errand, length);
    uint32_t data_bytes = 0;
    struct part *part;
    uint32_t number;
    enum sent sent = SENT;
    int r;

    if (take_part(remote, &number) < 0) {
        fail(errand, EMU_STATUS_NETWORK);
        return ENDED;
    }
    part = &remote->parts[number];
    if (goes_in_bulk(errand)) {
        sent = prepare_bulk(errand, part, &command);
        data_bytes = EMU_HOST_PLACE_BYTES;
    } else if (command.cmd.op == EMU_OP_PUT) {
        data_bytes = length;
        if (!read_data(errand, errand->sent_bytes, message + EMU_HOST_COMMAND_BYTES, data_bytes)) {
            fail(errand, EMU_STATUS_LOCAL_ACCESS);
            sent = ENDED;
        }
    }
    if (sent != SENT) {
        give_part(server, number);
        errand->is_bulk = errand->is_bulk && sent != NOT_IN_BULK;
        return sent == NOT_IN_BULK ? send_part(errand) : sent;
    }
    command.id = (uint64_t)part->serial << 32 | number;
    emu_host_command_put(message, &command);
    if (command.is_bulk)
        emu_host_place_put(message + EMU_HOST_COMMAND_BYTES, &command);
    r = emu_hosts_send(server, errand->host, message, EMU_HOST_COMMAND_BYTES + data_bytes);
    if (r < 0) {
        give_part(server, number);
        if (r == -ENOBUFS)
            return NO_ROOM;
        fail(errand, lost_status(&errand->t.cmd));
        return ENDED;
    }
    note_sent(errand, part, &command);
    return SENT;
}

static bool has_room(const struct emu_remote *remote, uint32_t host)
{
    return remote->hosts[host].n_parts < WINDOW && remote->hosts[host].result_bytes < RESULT_MAX_BYTES;
}

static bool may_inject(const struct emu_port_end *port)
{
    return port->server->n_paced == 0 || emu_injection_is_open(port->server, port->nid);
}

/* Must the part that comes next wait for those before it? */
static bool last_part_waits(const struct emu_errand *errand)
{
    const struct emu_cmd *cmd = &errand->t.cmd;

    return errand->n_parts > 0 && total_bytes(errand) - errand->sent_bytes <= next_bytes(errand) &&
           ((cmd->events & EMU_EV_REMOTE) != 0 || (cmd->flags & EMU_CMD_FLAG) != 0);
}

/* The next one whose turn it is and that can send. */
static struct emu_errand *next_turn(struct target_host *target)
{
    struct emu_errand *errand;

    TAILQ_FOREACH(errand, &target->turns, turn) {
        if (errand->n_parts < PARTS_PER_ERRAND && !last_part_waits(errand) && may_inject(errand->port) &&
            errand->port->domain->job.suspension == EMU_RUNS &&
            (target->n_bulk < EMU_HOST_BULK_PARTS || !goes_in_bulk(errand)))
            return errand;
    }
    return NULL;
}

static unsigned serve_turns(struct emu_server *server, uint32_t host)
{
    struct emu_remote *remote = remote_in(server);
    struct target_host *target = &remote->hosts[host];
    struct emu_errand *errand;
    unsigned sent = 0;

    while (sent < PARTS_PER_ROUND && has_room(remote, host) && emu_hosts_is_idle(server, host) &&
           (errand = next_turn(target))) {
        if (server->n_paced > 0)
            emu_injection_charge(server, errand->port->nid, next_bytes(errand));
        if (send_part(errand) == NO_ROOM)
            break;
        sent++;
        if (errand->is_sent) {
            stop_turns(errand);
            finish_if_over(errand);
        } else {
            TAILQ_REMOVE(&target->turns, errand, turn);
            TAILQ_INSERT_TAIL(&target->turns, errand, turn);
        }
    }
    return sent;
}

unsigned emu_remote_round(struct emu_server *server)
{
    unsigned sent = 0;

    if (!remote_in(server) || remote_in(server)->n_turns == 0)
        return 0;
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (!TAILQ_EMPTY(&remote_in(server)->hosts[i].turns))
            sent += serve_turns(server, i);
    }
    return sent;
}

/* What waits for answers or for room is woken by them; what waits for an injection limit is not. */
bool emu_remote_has_work(const struct emu_server *server)
{
    return remote_in(server) && remote_in(server)->n_turns > 0 && server->n_paced > 0;
}

/* ---- commands ---- */

static uint32_t host_of(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t node = emu_table_node_index(port->domain->table, cmd->remote_nid);

    return node < port->domain->n_nodes ? emu_table_nodes(port->domain->table)[node].host : EMU_NODE_HERE;
}

static bool is_long(const struct emu_cmd *cmd)
{
    return cmd->op != EMU_OP_CQ_WRITE && cmd->length_bytes > part_bytes_of(cmd);
}

/* Could it overtake, or be taken for, what is under way? */
static bool keeps_order(const struct emu_remote_port *r, const struct emu_cmd *cmd, bool is_elsewhere, uint32_t host)
{
    bool is_behind_all = is_elsewhere && r->n_long == 0 && !r->is_mixed && r->host == host;

    if (cmd->flags & EMU_CMD_FENCE)
        return false;
    if ((cmd->flags & EMU_CMD_BLOCK) && r->n_fenced_blocks > 0)
        return false;
    if ((cmd->flags & EMU_CMD_IN_ORDER) && !is_behind_all)
        return false;
    return cmd->chain == EMU_CHAIN_NONE || r->n_chained == 0 || is_behind_all;
}

bool emu_remote_may_start(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    const struct emu_remote_port *r = emu_remote_of(port);
    uint32_t host;

    if (!emu_hosts_are_several(port->server) || cmd->op < EMU_OP_PUT || cmd->op > EMU_OP_CQ_WRITE)
        return true;
    host = host_of(port, cmd);
    if (r->n > 0 && !keeps_order(r, cmd, host != EMU_NODE_HERE, host - 1))
        return false;
    if (host == EMU_NODE_HERE || !emu_hosts_is_up(port->server, host - 1))
        return true;
    if (r->n >= ERRANDS_PER_PORT || !has_room(remote_in(port->server), host - 1) ||
        !emu_hosts_has_room(port->server, host - 1))
        return false;
    return !is_long(cmd) || (cmd->flags & EMU_CMD_BLOCK) == 0 || emu_account_may_start_block(port);
}

/* No memory for it. */
static void fail_now(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    emu_transaction_fail(&port->view, cmd, EMU_STATUS_NETWORK);
    emu_datapath_end_block(port, cmd);
}

static struct emu_errand *make_errand(struct emu_port_end *port, uint32_t host)
{
    struct emu_remote_port *r = emu_remote_of(port);
    struct emu_errand *errand = calloc(1, sizeof(*errand));

    if (!errand)
        return NULL;
    errand->port = port;
    errand->host = host;
    r->is_mixed = r->is_mixed || (r->n > 0 && r->host != host);
    r->host = host;
    r->n++;
    LIST_INSERT_HEAD(&r->errands, errand, link);
    return errand;
}

static void take_turns(struct emu_errand *errand)
{
    struct emu_remote *remote = remote_in(errand->port->server);

    TAILQ_INSERT_TAIL(&remote->hosts[errand->host].turns, errand, turn);
    errand->takes_turns = true;
    remote->n_turns++;
    errand->is_long = true;
    emu_remote_of(errand->port)->n_long++;
}

void emu_remote_start(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t host = host_of(port, cmd) - 1;
    struct emu_errand *errand = make_errand(port, host);
    struct emu_remote_port *r = emu_remote_of(port);

    if (!errand) {
        fail_now(port, cmd);
        return;
    }
    r->n_fenced_blocks += (cmd->flags & EMU_CMD_BLOCK) && (cmd->flags & EMU_CMD_FENCE);
    r->n_chained += cmd->chain != EMU_CHAIN_NONE;
    errand->is_bulk = (cmd->op == EMU_OP_PUT || cmd->op == EMU_OP_GET) &&
                      cmd->length_bytes >= port->server->settings.bulk_bytes &&
                      !(cmd->op == EMU_OP_PUT && (cmd->flags & EMU_CMD_STAGED));
    if (!emu_transaction_begin_elsewhere(&port->view, cmd, emu_table_node_index(port->domain->table, cmd->remote_nid),
                                         &errand->t))
        fail(errand, errand->t.status);
    else if (!emu_hosts_is_up(port->server, host))
        fail(errand, lost_status(cmd));
    else if (is_long(cmd) || send_part(errand) == NO_ROOM) {
        if (copy_staged(errand))
            take_turns(errand);
        else
            fail(errand, EMU_STATUS_LOCAL_ACCESS);
        errand->is_block = errand->takes_turns && (cmd->flags & EMU_CMD_BLOCK) != 0;
        if (errand->is_block)
            emu_account_add_block(port, 1);
    }
    finish_if_over(errand);
}

bool emu_remote_awaits_answers(const struct emu_port_end *port)
{
    const struct emu_errand *errand;

    LIST_FOREACH(errand, &emu_remote_of(port)->errands, link) {
        if (errand->n_parts > 0)
            return true;
    }
    return false;
}

int emu_remote_begin_port(struct emu_port_end *port)
{
    port->slots[EMU_PORT_REMOTE] = calloc(1, sizeof(struct emu_remote_port)); /* an empty list */
    return port->slots[EMU_PORT_REMOTE] ? 0 : -ENOMEM;
}

static void drop_errands(struct emu_port_end *port)
{
    struct emu_remote *remote = remote_in(port->server);
    struct emu_errand *errand;

    if (!remote)
        return;
    for (uint32_t i = 0; i < remote->n_parts && emu_remote_of(port)->n > 0; i++) {
        if (remote->parts[i].errand && remote->parts[i].errand->port == port)
            remote->parts[i].errand = NULL;
    }
    while ((errand = LIST_FIRST(&emu_remote_of(port)->errands)))
        forget(errand);
}

void emu_remote_end_port(struct emu_port_end *port)
{
    if (emu_remote_of(port))
        drop_errands(port);
    free(emu_remote_of(port));
    port->slots[EMU_PORT_REMOTE] = NULL;
}

/* ---- answers ---- */

static void end_part(struct emu_server *server, uint32_t number, unsigned status)
{
    struct emu_errand *errand = remote_in(server)->parts[number].errand;

    give_part(server, number);
    if (!errand)
        return;
    errand->n_parts--;
    if (status != EMU_STATUS_OK)
        fail(errand, status);
    finish_if_over(errand);
}

/* What a get or an atomic has brought. False: there is no place for it. */
static bool take_result(struct emu_errand *errand, const struct part *part, const struct emu_host_answer *answer)
{
    if (answer->length_bytes > 0)
        return write_local(errand, part->offset, answer->data, answer->length_bytes);
    if (errand->t.cmd.op == EMU_OP_GET && part->piece && part->piece->is_staged)
        return write_local(errand, part->offset, part->piece->bytes, part->length_bytes);
    return true;
}

bool emu_remote_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_remote *remote = remote_in(server);
    struct emu_host_answer answer;
    struct emu_errand *errand;
    struct part *part;
    uint32_t number;
    unsigned status;

    if (!emu_host_answer_parse(bytes, length_bytes, &answer))
        return false;
    number = (uint32_t)answer.id;
    part = number < remote->n_parts ? &remote->parts[number] : NULL;
    if (!part || !part->is_busy || part->host != host || part->serial != answer.id >> 32)
        return false;
    status = answer.status;
    errand = part->errand;
    if (answer.length_bytes != (status == EMU_STATUS_OK ? part->result_bytes : 0))
        return false;
    if (!part->piece)
        emu_hosts_pay(server, host);
    if (errand && status == EMU_STATUS_OK && !take_result(errand, part, &answer))
        status = EMU_STATUS_LOCAL_ACCESS;
    if (errand && (answer.flags & EMU_HOST_EVENT_LOST))
        emu_error_tell_transaction(errand->port, &errand->t.cmd, EMU_STATUS_REMOTE_CQ_FULL, EMU_ERROR_OVERRUN, 0);
    end_part(server, number, status);
    return true;
}

static void end_parts_of(struct emu_server *server, uint32_t host, bool are_last)
{
    struct emu_remote *remote = remote_in(server);

    for (uint32_t i = 0; i < remote->n_parts; i++) {
        const struct part *part = &remote->parts[i];
        bool is_last = part->errand && part->errand->t.cmd.chain == EMU_CHAIN_LAST;

        if (part->is_busy && part->host == host && is_last == are_last)
            end_part(server, i, part->errand ? lost_status(&part->errand->t.cmd) : EMU_STATUS_OK);
    }
}

void emu_remote_host_down(struct emu_server *server, uint32_t host)
{
    struct emu_remote *remote = remote_in(server);
    struct emu_errand *errand;

    /* What failed before the last of its chain is the chain's; what fails later would be the next one's. */
    end_parts_of(server, host, false);
    end_parts_of(server, host, true);
    while ((errand = TAILQ_FIRST(&remote->hosts[host].turns))) {
        fail(errand, lost_status(&errand->t.cmd));
        finish_if_over(errand);
    }
}
