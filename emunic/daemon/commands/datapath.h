/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The routed data path: commands of the ports, and what takes them more than one round.
 */
#ifndef EMUNIC_DAEMON_COMMANDS_DATAPATH_H
#define EMUNIC_DAEMON_COMMANDS_DATAPATH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/daemon/core/part.h"
#include "emunic/daemon/movers/movers.h"
#include "emunic/engine/share.h"
#include "emunic/engine/transaction.h"

struct emu_port_end;
struct emu_server;

/* A command that takes more than one round. */
struct emu_transfer {
    TAILQ_ENTRY(emu_transfer) link;
    struct emu_transaction transaction;
    uint16_t md_generation; /* of the remote memory domain when it began */
    struct emu_tape tape;   /* of the step that is being made */
    uint64_t number;        /* of the command, as counted by the ring's tail */
    struct emu_share free;  /* shared (shared_transfer.h): as last taken by emunic */
    uint32_t n_slices;      /* likewise: of all */
};

extern const struct emu_part emu_commands_part;

/* A small command out of turn: one that waited for something. */
void emu_datapath_run(struct emu_port_end *port, const struct emu_cmd *cmd);
/* A block transfer is over: the poster counts them (client/port.c). Other commands: nothing. */
void emu_datapath_end_block(struct emu_port_end *port, const struct emu_cmd *cmd);
/* The client sees how many of its commands are still being done. */
void emu_datapath_publish_unfinished(struct emu_port_end *port);

#endif
