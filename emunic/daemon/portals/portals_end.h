/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals interfaces: making them, their commands, and what a dead process has left undone in others'.
 */
#ifndef EMUNIC_DAEMON_PORTALS_PORTALS_END_H
#define EMUNIC_DAEMON_PORTALS_PORTALS_END_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/portals.h"
#include "emunic/daemon/core/part.h"
#include "emunic/daemon/world/port_end.h"

struct emu_cmd;
struct emu_domain;
struct emu_msg_portals;
struct emu_port_end;
struct emu_portals_errand;
struct emu_server;

extern const struct emu_part emu_portals_part;

/* Messages of a port to interfaces on other hosts that are not over. */
struct emu_portals_remote_port {
    TAILQ_HEAD(, emu_portals_errand) errands; /* owned */
    TAILQ_HEAD(, emu_portals_errand) ready;   /* of them, as answered: those that wait for the port's own lock */
    uint32_t n;
};

/* What the port has under way to other hosts. */
static inline struct emu_portals_remote_port *emu_portals_remote_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_PORTALS_REMOTE];
}

/* Is the port an interface? */
static inline bool emu_portals_end_is_open(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_PORTALS];
}

/* Is the command at the head of the port's ring begun, and not over, or must it wait for one that has left the ring? */
bool emu_portals_end_is_busy(struct emu_port_end *port);
/* Goes on with the command at the head of the port's ring. True: it is over. */
bool emu_portals_end_serve(struct emu_port_end *port, const struct emu_cmd *cmd);
/* Virtual time: the command at the head of the ring goes into the model. False: it must wait for one that is there. */
bool emu_portals_virtual_start(struct emu_port_end *port, const struct emu_cmd *cmd);
/* The command fails before anything of it was done; its initiator hears of it. */
void emu_portals_end_fail(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status);
/* Whom a command goes to; NULL: nobody. */
struct emu_port_end *emu_portals_end_target(const struct emu_port_end *port, const struct emu_cmd *cmd);

/* ---- interfaces on other hosts (portals_remote.c, portals_visit.c) ---- */

/* Is there room for the command, or does it go to nobody elsewhere? */
bool emu_portals_remote_may_start(const struct emu_port_end *port, const struct emu_cmd *cmd);
/* Takes a command for another host over. */
void emu_portals_remote_start(struct emu_port_end *port, const struct emu_cmd *cmd);

#endif
