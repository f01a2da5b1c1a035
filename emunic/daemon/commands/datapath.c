/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routed data path: emunic takes commands out of the ports' rings and runs the engine on them.
 *
 * Fairness: a port gets COMMANDS_PER_ROUND commands a round. A command that moves more than one slice becomes a
 * transfer; every transfer gets one slice a round, so that a 4 GB transfer delays no 8-byte put. Staged data are
 * always moved before the ring's head passes them, because the client reuses the space then.
 *
 * Order: small commands of a port are done in ring order. One that asks for order or carries a fence waits at the
 * head of the ring until the port's transfers are done. A transfer never overtakes an earlier command. While a fenced
 * transfer runs, no block transfer starts: as it waited for the others, it is the first in the list.
 *
 * Small puts that follow each other into private memory of one process share system calls (engine/burst.c), elements of
 * a chain as well: those that are in the ring when emunic comes by. None waits for a later one.
 *
 * A transfer's initiator may help to move it (shared_transfer.h). It rings when it has moved the last slice.
 *
 * A transfer looks at its memory domain again before each slice: after a deregistration or the owner's death it
 * ends with an error, and no byte moves any more.
 *
 * While something in the network is broken, a command whose target has no way ends with an error (unreachable.c);
 * while the network is quiesced, none starts.
 *
 * While the domain has fault rules they are asked first, before a command does anything (faults/).
 *
 * A suspended job's rings and transfers are left alone. Ports on a node whose injection is limited are served while its
 * bucket lasts (injection.c). A block transfer beyond the job's limit waits at the head of the ring.
 *
 * Commands for nodes on other hosts go out from here in the same order (remote.c).
 *
 * Where movers touch a domain's memory (movers/), a step can be asked to come again. A transfer then waits in its list,
 * a small command at the head of its ring, half done, in `transfers.small`. No burst is made there.
 *
 * The ring's tail is the client's: a value that is not at most one ring ahead ends the port.
 */
#include "emunic/daemon/commands/datapath.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/abi/host_message.h"
#include "emunic/base/clock.h"
#include "emunic/daemon/ce/ce_trees.h"
#include "emunic/daemon/commands/bulk.h"
#include "emunic/daemon/commands/remote.h"
#include "emunic/daemon/commands/shared_transfer.h"
#include "emunic/daemon/commands/unreachable.h"
#include "emunic/daemon/commands/virtual_commands.h"
#include "emunic/daemon/commands/visit.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/datagrams/datagram_virtual.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/injection/injection.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/daemon/world/server_time.h"
#include "emunic/daemon/world/turns.h"
#include "emunic/daemon/world/users.h"
#include "emunic/daemon/world/ways.h"
#include "emunic/engine/burst.h"
#include "emunic/engine/rest.h"

#define COMMANDS_PER_ROUND 64u
#define TRANSFERS_PER_PORT 256u
#define AMO_AT_ONCE_BYTES  2048u /* longer vectors of atomics are transfers */

/* Of the port that is being served, empty between two. */
static struct emu_burst *burst_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_COMMANDS];
}

static bool needs_order(const struct emu_cmd *cmd)
{
    return (cmd->flags & (EMU_CMD_FENCE | EMU_CMD_IN_ORDER)) != 0;
}

static bool is_fenced_off(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    const struct emu_transfer *first = TAILQ_FIRST(&port->transfers.list);

    return first && (cmd->flags & EMU_CMD_BLOCK) != 0 && (first->transaction.cmd.flags & EMU_CMD_FENCE) != 0;
}

/* Is it over in one go? The engine bounds inline and staged puts; on any other command these flags mean nothing. */
static bool is_small(const struct emu_cmd *cmd, uint64_t slice_bytes)
{
    if (cmd->op == EMU_OP_PUT && (cmd->flags & (EMU_CMD_INLINE | EMU_CMD_STAGED)))
        return true;
    return cmd->length_bytes <= (cmd->op == EMU_OP_AMO ? AMO_AT_ONCE_BYTES : slice_bytes);
}

/* Nothing is limited anywhere: one comparison. */
static bool may_inject(struct emu_port_end *port)
{
    return port->server->n_paced == 0 || emu_injection_is_open(port->server, port->nid);
}

static void charge(struct emu_port_end *port, uint64_t bytes)
{
    if (port->server->n_paced > 0)
        emu_injection_charge(port->server, port->nid, bytes);
}

void emu_datapath_publish_unfinished(struct emu_port_end *port)
{
    atomic_store_explicit(&port->segment->unfinished,
                          port->transfers.n + port->transfers.n_virtual + emu_remote_of(port)->n, memory_order_release);
}

void emu_datapath_end_block(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    if (cmd->flags & EMU_CMD_BLOCK)
        atomic_store_explicit(&port->segment->blocks_ended, ++port->transfers.blocks_ended, memory_order_release);
}

/* Events and wake: its owner may rest. */
static void finish(struct emu_port_end *port, struct emu_transaction *t)
{
    struct emu_port_end *owner;

    emu_transaction_finish(&port->view, t);
    /* A transaction that failed early names port 0: whom it disturbs in vain. */
    owner = port->domain->ports[t->owner_port];
    if (owner)
        emu_port_end_disturb(owner);
}

/* At most max_bytes more. True: there is more to do; nothing was done now if the transaction waits. */
static bool step(struct emu_port_end *port, struct emu_transfer *transfer, uint64_t max_bytes)
{
    struct emu_transaction *t = &transfer->transaction;
    bool has_more;

    if (!port->domain->memory.is_moved)
        return emu_transaction_step(&port->view, t, max_bytes);
    transfer->tape.forgets = t->cmd.op == EMU_OP_AMO;
    emu_movers_begin(port->server, &transfer->tape);
    has_more = emu_transaction_step(&port->view, t, max_bytes);
    emu_movers_end(port->server);
    if (!t->is_waiting)
        emu_tape_clear(port->server, &transfer->tape);
    return has_more;
}

static uint16_t generation_of(const struct emu_port_end *port, const struct emu_transaction *t)
{
    return emu_md_generation(port->domain, &emu_table_mds(port->domain->table, t->node_index)[t->mdh]);
}

static bool memory_is_still_there(const struct emu_port_end *port, const struct emu_transfer *transfer)
{
    const struct emu_transaction *t = &transfer->transaction;
    const struct emu_table_md *md = &emu_table_mds(port->domain->table, t->node_index)[t->mdh];

    if (t->segments.segments) {
        struct emu_memory still;

        if (emu_md_local((void *)(uintptr_t)port, t->cmd.local_mdh, t->cmd.local_generation, &still) != EMU_STATUS_OK ||
            still.segments != t->segments.segments)
            return false;
    }
    return transfer->md_generation != 0 && emu_md_generation(port->domain, md) == transfer->md_generation &&
           md->port == t->owner_port;
}

/* Another transfer found pages of the window missing: what it left there must not count for this one. */
static void mend_window(struct emu_port_end *port, struct emu_transaction *t)
{
    if (emu_memory_is_broken(&t->remote))
        emu_md_reach(port, &emu_table_mds(port->domain->table, t->node_index)[t->mdh], t->cmd.op, &t->remote);
}

/* ---- small commands ---- */

static void run_burst(struct emu_port_end *port)
{
    struct emu_burst *burst = burst_of(port->server);

    if (burst->n == 0)
        return;
    emu_burst_run(burst, &port->view);
    for (unsigned i = 0; i < burst->n; i++)
        finish(port, &burst->puts[i]);
    burst->n = burst->n_segments = 0;
}

static void run_small(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_burst *burst = burst_of(port->server);
    struct emu_transaction t;
    bool has_data = emu_transaction_begin(&port->view, cmd, &t);

    if (has_data && emu_burst_pays(&t)) {
        enum emu_burst_result r = emu_burst_add(burst, &port->view, &t);

        if (r == EMU_BURST_FULL) {
            run_burst(port);
            r = emu_burst_add(burst, &port->view, &t);
        }
        if (r == EMU_BURST_TAKEN)
            return;
    }
    run_burst(port);
    while (has_data && emu_transaction_step(&port->view, &t, UINT64_MAX))
        ;
    finish(port, &t);
}

/* The command that stands half done at the head of the ring. False: it waits on. */
static bool go_on_with_small(struct emu_port_end *port)
{
    struct emu_transfer *small = port->transfers.small;
    struct emu_transaction *t = &small->transaction;

    if (!emu_tape_is_ready(port->server, &small->tape))
        return false;
    if (memory_is_still_there(port, small)) {
        mend_window(port, t);
        while (step(port, small, UINT64_MAX)) {
            if (t->is_waiting)
                return false;
        }
    } else {
        t->status = EMU_STATUS_PEER_GONE;
    }
    emu_tape_clear(port->server, &small->tape);
    port->transfers.small_waits = false;
    finish(port, t);
    emu_datapath_end_block(port, &t->cmd);
    return true;
}

/* In a domain whose memory movers touch. False: it waits. */
static bool run_small_moved(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_transfer *small = port->transfers.small;

    if (!small)
        small = port->transfers.small = calloc(1, sizeof(*small));
    if (!small) { /* no memory to remember it: emunic waits */
        run_small(port, cmd);
        emu_datapath_end_block(port, cmd);
        return true;
    }
    if (!emu_transaction_begin(&port->view, cmd, &small->transaction)) {
        finish(port, &small->transaction);
        emu_datapath_end_block(port, cmd);
        return true;
    }
    small->md_generation = generation_of(port, &small->transaction);
    port->transfers.small_waits = true;
    return go_on_with_small(port);
}

void emu_datapath_run(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    if (emu_port_end_is_elsewhere(port, cmd->remote_nid)) {
        emu_remote_start(port, cmd);
        emu_datapath_publish_unfinished(port);
        return;
    }
    run_small(port, cmd);
    run_burst(port);
}

/* Its node is on another host. */
static void serve_elsewhere(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    run_burst(port); /* what came before ends before */
    if (cmd->length_bytes <= EMU_HOST_PART_BYTES)
        charge(port, cmd->length_bytes); /* else part by part */
    if (cmd->op == EMU_OP_CE)
        emu_ce_post(port, cmd, EMU_STATUS_OK);
    else if (emu_ptl_is_command(cmd->op))
        emu_portals_remote_start(port, cmd);
    else
        emu_remote_start(port, cmd);
}

/* Must it wait at the head of the ring: for order, for a limit, for room? */
static bool must_wait(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    if ((needs_order(cmd) && port->transfers.n + port->transfers.n_virtual > 0) || is_fenced_off(port, cmd) ||
        !may_inject(port) || emu_network_is_quiesced(port->server))
        return true;
    /* While this host is alone, nothing is under way to others. */
    if (!emu_hosts_are_several(port->server) ||
        (emu_remote_may_start(port, cmd) && emu_portals_remote_may_start(port, cmd) &&
         (cmd->op != EMU_OP_CE || emu_ce_may_post(port, cmd))))
        return false;
    run_burst(port);
    return true;
}

/* Runs while something is wrong: with the network, or because fault rules say so. True: the command passes. */
static bool passes_faults(struct emu_port_end *port, struct emu_cmd *cmd, bool *is_done_out)
{
    enum emu_fault_answer answer;

    run_burst(port); /* what came before ends before */
    if (port->domain->paths.is_routed_around && !emu_unreachable_passes(port, cmd)) {
        *is_done_out = true;
        return false;
    }
    if (!port->domain->paths.has_faults)
        return true;
    *is_done_out = false;
    if (emu_remote_of(port)->n > 0 || emu_portals_remote_of(port)->n > 0)
        return false;
    answer = emu_fault_command(port, cmd);
    *is_done_out = answer == EMU_FAULT_IS_DONE || answer == EMU_FAULT_FAILS;
    if (answer == EMU_FAULT_FAILS)
        emu_virtual_command_fail(port, cmd, &emu_fault_state_of(port)->failure);
    return answer == EMU_FAULT_PASSES;
}

/* More than a slice. False: no more of them may start. */
static bool serve_large(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    const uint64_t slice_bytes = port->server->settings.slice_bytes;
    struct emu_transfer *transfer;
    struct emu_transaction t;

    run_burst(port);
    if (port->transfers.n >= TRANSFERS_PER_PORT ||
        !emu_user_has_room(port->server, port->member->user, EMU_USER_TRANSFERS) ||
        ((cmd->flags & EMU_CMD_BLOCK) != 0 && !emu_account_may_start_block(port)))
        return false;
    charge(port, slice_bytes);
    if (!emu_transaction_begin(&port->view, cmd, &t) ||
        (!port->domain->memory.is_moved && !emu_transaction_step(&port->view, &t, slice_bytes))) {
        finish(port, &t);
        emu_datapath_end_block(port, cmd);
        return true;
    }
    transfer = calloc(1, sizeof(*transfer));
    if (!transfer) { /* no memory to remember it: finish it now */
        while (emu_transaction_step(&port->view, &t, slice_bytes))
            ;
        finish(port, &t);
        emu_datapath_end_block(port, cmd);
        return true;
    }
    if (cmd->flags & EMU_CMD_BLOCK)
        emu_account_add_block(port, 1);
    transfer->transaction = t;
    transfer->md_generation = generation_of(port, &t);
    transfer->number = port->ring.head;
    TAILQ_INSERT_TAIL(&port->transfers.list, transfer, link);
    port->transfers.n++;
    emu_user_add(port->member->user, EMU_USER_TRANSFERS, 1);
    return true;
}

/* True: the command is dealt with. False: it must wait where it is. */
static bool serve_command(struct emu_port_end *port, struct emu_cmd *cmd)
{
    const uint64_t slice_bytes = port->server->settings.slice_bytes;
    bool is_done;

    if (emu_ptl_is_command(cmd->op)) {
        if (emu_portals_end_is_open(port) && emu_portals_end_is_busy(port))
            return emu_portals_end_serve(port, cmd);
        cmd->attempts = 0; /* means something for short messages only */
        cmd->flags &= EMU_CMD_STAGED;
    }
    if (must_wait(port, cmd))
        return false;
    if (cmd->op == EMU_OP_REPORT) {
        emu_error_take_report(port, cmd);
        return true;
    }
    if (cmd->op == EMU_OP_DATAGRAM && emu_server_is_virtual(port->server)) {
        emu_datagram_send(port, cmd);
        return true;
    }
    cmd->events &= (uint16_t)~EMU_EV_LOSE; /* not for clients to say */
    if ((port->domain->paths.is_routed_around || port->domain->paths.has_faults) && !passes_faults(port, cmd, &is_done))
        return is_done;
    if (emu_port_end_is_elsewhere(port, cmd->remote_nid)) {
        serve_elsewhere(port, cmd);
        return true;
    }
    if (cmd->op == EMU_OP_CE) {
        emu_ce_post(port, cmd, EMU_STATUS_OK);
        return true;
    }
    if (emu_ptl_is_command(cmd->op)) {
        run_burst(port); /* what came before ends before */
        charge(port, cmd->length_bytes < slice_bytes ? cmd->length_bytes : slice_bytes);
        if (emu_server_is_virtual(port->server) && emu_portals_end_is_open(port))
            return emu_portals_virtual_start(port, cmd);
        return emu_portals_end_serve(port, cmd);
    }
    if (emu_server_is_virtual(port->server)) {
        if (!emu_virtual_command_start(port, cmd))
            return false;
        charge(port, cmd->length_bytes);
        return true;
    }
    if (!is_small(cmd, slice_bytes))
        return serve_large(port, cmd);
    charge(port, cmd->length_bytes);
    if (port->domain->memory.is_moved)
        return run_small_moved(port, cmd);
    run_small(port, cmd);
    emu_datapath_end_block(port, cmd);
    return true;
}

/* Its tail is no more than a ring ahead; else the port ends. */
static bool has_sound_ring(struct emu_port_end *port, uint64_t waiting)
{
    if (waiting <= EMU_RING_SLOTS)
        return true;
    emu_log_limited(&port->server->rate, EMU_LOG_WARN, "nid %u inst 0x%x pid %d: command ring broken, port closed",
                    port->nid, port->instance_id, (int)port->member->pid);
    port->connection->hung_up = true;
    emu_connection_destroy(port->connection);
    return false;
}

static unsigned serve_ring(struct emu_port_end *port)
{
    /* Pairs with the release in emu_port_publish(): the commands before their count. */
    uint64_t tail = atomic_load_explicit(&port->segment->tail, memory_order_acquire);
    uint64_t waiting = tail - port->ring.head;
    unsigned done = 0;

    if (waiting == 0)
        return 0;
    if (!has_sound_ring(port, waiting))
        return 1;
    while (done < waiting && done < COMMANDS_PER_ROUND) {
        struct emu_cmd cmd = port->ring.slots[port->ring.head & (EMU_RING_SLOTS - 1)];

        if (port->transfers.small_waits ? !go_on_with_small(port) : !serve_command(port, &cmd))
            break;
        port->ring.head++;
        done++;
    }
    run_burst(port);
    port->ring.served += done;
    /* Pairs with the acquire in the client: slots and staging are free again, and these are still being moved. */
    emu_datapath_publish_unfinished(port);
    if (done > 0) {
        atomic_store_explicit(&port->segment->head, port->ring.head, memory_order_release);
        emu_port_end_disturb(port);
        port->server->counts.served_port = port->index;
    }
    return done;
}

static void free_transfer(struct emu_port_end *port, struct emu_transfer *transfer)
{
    if (transfer) {
        emu_shared_close(port, transfer);
        emu_tape_fini(port->server, &transfer->tape);
    }
    free(transfer);
}

/* The next slice, unless the initiator moves the last ones. True: the transfer is not over. */
static bool step_shared(struct emu_port_end *port, struct emu_transfer *transfer)
{
    enum emu_shared_turn turn = emu_shared_turn(port, transfer);

    if (turn == EMU_SHARED_STEP)
        return step(port, transfer, port->server->settings.slice_bytes);
    return turn == EMU_SHARED_WAITS;
}

/* Neither a mover nor the initiator has to come first. */
static bool is_ready(const struct emu_port_end *port, const struct emu_transfer *transfer)
{
    return emu_tape_is_ready(port->server, &transfer->tape) && !emu_shared_waits(port, transfer);
}

static unsigned serve_transfers(struct emu_port_end *port)
{
    struct emu_transfer *transfer = TAILQ_FIRST(&port->transfers.list);
    unsigned done = 0;

    while (transfer) {
        struct emu_transfer *next = TAILQ_NEXT(transfer, link);
        bool has_more = false;

        if (!may_inject(port))
            break;
        if (!is_ready(port, transfer)) {
            transfer = next;
            continue;
        }
        charge(port, port->server->settings.slice_bytes);
        if (port->domain->paths.is_routed_around && !emu_network_is_quiesced(port->server) &&
            !emu_network_reaches(port->server, port->nid,
                                 emu_table_nodes(port->domain->table)[transfer->transaction.node_index].nid)) {
            transfer->transaction.status = EMU_STATUS_NETWORK;
        } else if (memory_is_still_there(port, transfer)) {
            mend_window(port, &transfer->transaction);
            has_more = step_shared(port, transfer);
        } else {
            transfer->transaction.status = EMU_STATUS_PEER_GONE;
        }
        if (!has_more) {
            finish(port, &transfer->transaction);
            TAILQ_REMOVE(&port->transfers.list, transfer, link);
            port->transfers.n--;
            emu_user_give(port->member->user, EMU_USER_TRANSFERS, 1);
            if (transfer->transaction.cmd.flags & EMU_CMD_BLOCK)
                emu_account_add_block(port, -1);
            emu_datapath_end_block(port, &transfer->transaction.cmd);
            emu_datapath_publish_unfinished(port);
            free_transfer(port, transfer);
            emu_port_end_disturb(port);
        }
        transfer = next;
        done++;
    }
    return done;
}

static bool has_transfers_to_serve(const struct emu_port_end *port)
{
    const struct emu_transfer *transfer;

    TAILQ_FOREACH(transfer, &port->transfers.list, link) {
        if (is_ready(port, transfer))
            return true;
    }
    return false;
}

static bool small_waits(const struct emu_port_end *port)
{
    return port->transfers.small_waits && !emu_tape_is_ready(port->server, &port->transfers.small->tape);
}

/* A turn that only waited would count as a turn that was taken, and others would rest for it. */
static bool needs_a_turn(const struct emu_port_end *port)
{
    return has_transfers_to_serve(port) ||
           (!small_waits(port) && atomic_load_explicit(&port->segment->tail, memory_order_acquire) != port->ring.head);
}

static unsigned serve_port(struct emu_port_end *port)
{
    unsigned done = port->transfers.n > 0 ? serve_transfers(port) : 0;

    return done + serve_ring(port);
}

/* Several users want something: each has its turns. */
static unsigned serve_in_turns(struct emu_server *server)
{
    struct emu_users *users = emu_users_of(server);
    struct emu_port_end *port = LIST_FIRST(&server->ports);
    uint64_t now_ns = emu_clock_ns();
    unsigned done = 0;

    emu_users_begin_round(users);
    while (port) {
        struct emu_port_end *next = LIST_NEXT(port, link); /* serving may end the port */
        struct emu_user *user = port->member->user;

        if (port->domain->job.suspension == EMU_RUNS && needs_a_turn(port) &&
            !emu_user_must_wait(user, &port->ring.turn, now_ns)) {
            uint64_t began_ns = now_ns;

            done += serve_port(port);
            now_ns = emu_clock_ns();
            emu_user_worked(users, user, began_ns, now_ns);
        }
        port = next;
    }
    return done;
}

/* Until a fault or a limit of injection lets it go on, or an operation of the port has ended. */
static void hold_in_virtual_time(struct emu_port_end *port)
{
    const struct emu_fault_state *fault = emu_fault_state_of(port);

    if (fault->held_until_ns != 0)
        emu_virtual_hold_until(port, fault->held_until_ns);
    else if (!may_inject(port))
        emu_virtual_hold_until(port, emu_injection_open_ns(port->server, port->nid));
    else if (fault->attempts > 0)
        emu_virtual_hold_until(port, emu_server_now_ns(port->server) + emu_virtual_retry_ns(port->server));
    else
        emu_virtual_hold(port);
}

/* Virtual time: the port's first command, whose turn it is. */
static void serve_one(struct emu_port_end *port)
{
    uint64_t tail = atomic_load_explicit(&port->segment->tail, memory_order_acquire);
    uint64_t waiting = tail - port->ring.head;
    struct emu_cmd cmd;

    if (!has_sound_ring(port, waiting))
        return;
    cmd = port->ring.slots[port->ring.head & (EMU_RING_SLOTS - 1)];
    if (!serve_command(port, &cmd)) {
        hold_in_virtual_time(port);
        return;
    }
    port->ring.head++;
    port->ring.served++;
    emu_virtual_served(port);
    emu_datapath_publish_unfinished(port);
    atomic_store_explicit(&port->segment->head, port->ring.head, memory_order_release);
    if (waiting == EMU_RING_SLOTS) /* else nobody waits for that */
        emu_port_end_disturb(port);
}

static unsigned serve_in_virtual_time(struct emu_server *server)
{
    struct emu_port_end *port;
    unsigned done = 0;

    while (done < COMMANDS_PER_ROUND && (port = emu_virtual_next(server, done == 0))) {
        serve_one(port);
        done++;
    }
    return done;
}

static unsigned serve_all(struct emu_server *server)
{
    struct emu_port_end *port = LIST_FIRST(&server->ports);
    unsigned done;

    if (emu_server_is_virtual(server))
        return serve_in_virtual_time(server);
    done = emu_remote_round(server);
    if (emu_users_compete(emu_users_of(server)))
        return done + serve_in_turns(server);
    while (port) {
        struct emu_port_end *next = LIST_NEXT(port, link); /* serving may end the port */

        if (port->domain->job.suspension == EMU_RUNS)
            done += serve_port(port);
        port = next;
    }
    return done;
}

static bool has_commands_to_serve(const struct emu_port_end *port)
{
    if (small_waits(port))
        return false;
    return emu_fault_state_of(port)->held_until_ns == 0 && !emu_network_is_quiesced(port->server) &&
           atomic_load_explicit(&port->segment->tail, memory_order_acquire) != port->ring.head;
}

static bool has_work(struct emu_server *server)
{
    struct emu_port_end *port;

    if (emu_server_is_virtual(server))
        return emu_virtual_has_work(server);
    if (emu_remote_has_work(server))
        return true;
    LIST_FOREACH(port, &server->ports, link) {
        if (port->domain->job.suspension == EMU_RUNS && (has_transfers_to_serve(port) || has_commands_to_serve(port)))
            return true;
    }
    return false;
}

static void drop_transfers(struct emu_port_end *port)
{
    struct emu_transfer *transfer;

    while ((transfer = TAILQ_FIRST(&port->transfers.list))) {
        TAILQ_REMOVE(&port->transfers.list, transfer, link);
        free_transfer(port, transfer);
    }
    emu_user_give(port->member->user, EMU_USER_TRANSFERS, port->transfers.n);
    port->transfers.n = 0;
    free_transfer(port, port->transfers.small);
    port->transfers.small = NULL;
    port->transfers.small_waits = false;
}

/* ---- views ---- */

static struct emu_cq_producer *view_source(void *ctx, uint32_t cq)
{
    return emu_port_end_queue(ctx, cq);
}

static struct emu_cq_producer *view_destination(void *ctx, const struct emu_table_md *md)
{
    struct emu_port_end *self = ctx;

    return emu_port_end_queue(self->domain->ports[md->port], md->cq);
}

static void view_failed(void *ctx, const struct emu_transaction *t, unsigned status)
{
    struct emu_port_end *self = ctx;
    const struct emu_fault_state *fault = emu_fault_state_of(self);
    bool lost_its_event = t->status == EMU_STATUS_OK;

    emu_error_tell_transaction(self, &t->cmd, status, lost_its_event ? EMU_ERROR_OVERRUN : fault->code, fault->rule);
}

static const struct emu_view_ops view_ops = {
    .reach = emu_md_reach,
    .destination = view_destination,
    .source = view_source,
    .failed = view_failed,
    .local = emu_md_local,
    .segment = emu_md_segment,
};

/* ---- the part ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    int r = 0;

    (void)options;
    (void)why;
    server->slots[EMU_SERVER_COMMANDS] = calloc(1, sizeof(struct emu_burst));
    if (!burst_of(server))
        return -ENOMEM;
    if (!emu_hosts_are_several(server))
        return 0;
    r = emu_bulk_create(server);
    if (r == 0)
        r = emu_remote_create(server);
    return r == 0 ? emu_visit_create(server) : r;
}

/* The transport is closed. */
static void destroy(struct emu_server *server)
{
    emu_remote_destroy(server);
    emu_visit_destroy(server);
    emu_bulk_destroy(server);
    free(burst_of(server));
    server->slots[EMU_SERVER_COMMANDS] = NULL;
}

static int begin_port(struct emu_port_end *port)
{
    int r = emu_remote_begin_port(port);

    port->view.ops = &view_ops;
    return r == 0 ? emu_unreachable_begin_port(port) : r;
}

static void end_port(struct emu_port_end *port)
{
    drop_transfers(port);
    emu_virtual_commands_leave(port);
    emu_remote_end_port(port);
    emu_unreachable_end_port(port);
}

static void host_down(struct emu_server *server, uint32_t host)
{
    emu_remote_host_down(server, host);
    emu_visit_host_down(server, host);
    emu_bulk_host_moved(server, host);
}

static void end_member(struct emu_server *server, struct emu_member *member)
{
    (void)server;
    emu_bulk_member_ends(member);
}

static void put_status(const struct emu_port_end *port, uint64_t *row)
{
    row[EMU_STATUS_PORT_COMMANDS] = port->ring.served;
    row[EMU_STATUS_PORT_COMMANDS_WAITING] =
        atomic_load_explicit(&port->segment->tail, memory_order_relaxed) - port->ring.head;
    row[EMU_STATUS_PORT_TRANSFERS] = port->transfers.n;
}

static const struct emu_message_row messages[] = {
    { EMU_HOST_COMMAND, emu_visit_host_message },
    { EMU_HOST_ANSWER, emu_remote_host_message },
};

const struct emu_part emu_commands_part = {
    .name = "commands",
    .create = create,
    .destroy = destroy,
    .loop = { .round = serve_all, .has_work = has_work },
    .hosts = { .messages = messages,
               .n_messages = EMU_ROWS(messages),
               .down = host_down,
               .moved = emu_bulk_host_moved,
               .transfer_done = emu_visit_transfer_done,
               .is_moving = emu_bulk_is_busy },
    .members = { .end = end_member },
    .ports = { .begin = begin_port, .end = end_port },
    .released = emu_unreachable_released,
    .status = { .port = put_status },
};
