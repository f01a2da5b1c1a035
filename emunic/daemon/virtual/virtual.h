/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time: operations of the ports go through the model of NICs and network, and programs see the times that it
 * gives.
 *
 * The part knows clocks and operations, not commands. Whoever serves commands asks emu_virtual_next() whose turn it is,
 * posts the operation, and hears when it has reached its target and when it is complete.
 */
#ifndef EMUNIC_DAEMON_VIRTUAL_VIRTUAL_H
#define EMUNIC_DAEMON_VIRTUAL_VIRTUAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/daemon/core/part.h"
#include "emunic/fabric/sim/routing.h"
#include "emunic/fabric/sim/sim.h"

struct emu_port_end;
struct emu_server;
struct emu_virtual_trace_row;

extern const struct emu_part emu_virtual_part;

enum emu_virtual_kind {
    EMU_VIRTUAL_PUT,
    EMU_VIRTUAL_GET,
    EMU_VIRTUAL_AMO,
    EMU_VIRTUAL_AMO_FETCH,
    EMU_VIRTUAL_BLOCK_PUT,
    EMU_VIRTUAL_BLOCK_GET,
    EMU_VIRTUAL_LAUNCH, /* a put of a word */
    EMU_VIRTUAL_ANSWER, /* a put that the NIC sends by itself */
};

/* An operation under way. Embedded in its owner's; all functions are called on the server's thread. */
struct emu_virtual_op {
    LIST_ENTRY(emu_virtual_op) link;
    struct emu_virtual_process *from; /* borrowed; NULL: it has gone */
    struct emu_virtual_process *to;   /* likewise, or not known */
    bool is_unaddressed;              /* it was posted without knowing that */
    bool has_arrived;
    bool has_ended;
    struct emu_virtual_trace_row *row; /* owned; NULL: it is not traced */
    /* The first packet of a put is at its target. False: as below. NULL: nothing is to be done. */
    bool (*begun)(struct emu_virtual_op *op);
    /* It has reached the memory of its target. False: not yet possible, because somebody holds a lock; ask again. */
    bool (*arrived)(struct emu_virtual_op *op);
    /* It is complete at its initiator, before or behind its arrival. False: likewise. NULL: nothing is to be done. */
    bool (*ended)(struct emu_virtual_op *op);
    /* Both have happened. Nothing names it any more. */
    void (*completed)(struct emu_virtual_op *op);
    /* The server ends: frees it. */
    void (*drop)(struct emu_virtual_op *op);
};

/* What the model has to know of it. */
struct emu_virtual_move {
    enum emu_virtual_kind kind;
    uint32_t to_nid;
    const struct emu_member *to; /* whose memory; NULL: not known */
    uint64_t bytes;
    bool is_launched; /* an atomic: by FMA launch */
    bool changes_mdh; /* launched: by another handle than the launch before */
    enum emu_route_mode mode;
};

/*
 * The port whose first command is due: all that may happen before has happened. NULL: none yet. Serve it, and call
 * again. is_first: in this round of the loop; then all processes and rings are read, else those that may have moved.
 */
struct emu_port_end *emu_virtual_next(struct emu_server *server, bool is_first);

/* The port's first command waits until one of its operations has ended. */
void emu_virtual_hold(struct emu_port_end *port);

/* It waits until then, whatever ends. */
void emu_virtual_hold_until(struct emu_port_end *port, uint64_t until_ns);

/* After which a message that a fault has lost is sent again: no less than it needs there and back. */
uint64_t emu_virtual_retry_ns(const struct emu_server *server);

/* The port has room again: its first command is served if it was held. */
void emu_virtual_let_go(struct emu_port_end *port);

/* The port's first command was served, and its ring has gone on. */
void emu_virtual_served(struct emu_port_end *port);

/*
 * Posts an operation of the port at the present time.
 *
 * @retval 0         Posted.
 * @retval -ENOBUFS  The node has too many operations under way: hold the port.
 * @retval -ENOMEM   No memory.
 */
int emu_virtual_post(struct emu_port_end *port, struct emu_virtual_op *op, const struct emu_virtual_move *move);

/* Before a sleep: would emu_virtual_next() do anything? */
bool emu_virtual_has_work(struct emu_server *server);

/* By the packets that crossed it. Where no process is left, those under way arrive first. False: time is the host's. */
bool emu_virtual_link_stats(const struct emu_server *server, uint32_t link, struct emu_sim_link_stats *stats_out);

/* Is it virtual time, and are the ways of packets kept? */
bool emu_virtual_keeps_paths(const struct emu_server *server);
/* As emu_sim_next_path(), and likewise. */
bool emu_virtual_next_path(const struct emu_server *server, uint32_t *place, struct emu_sim_path *path_out);

#endif
