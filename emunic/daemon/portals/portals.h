/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals interfaces: making them, their commands, and what a dead process has left undone in others'.
 */
#ifndef EMUNIC_DAEMON_PORTALS_PORTALS_H
#define EMUNIC_DAEMON_PORTALS_PORTALS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/portals.h"

struct emu_cmd;
struct emu_domain;
struct emu_msg_portals;
struct emu_port_end;
struct emu_portals_errand;
struct emu_server;

/* Messages of a port to interfaces on other hosts that are not over. */
struct emu_portals_remote_port {
    TAILQ_HEAD(, emu_portals_errand) errands; /* owned */
    TAILQ_HEAD(, emu_portals_errand) ready;   /* of them, as answered: those that wait for the port's own lock */
    uint32_t n;
};

/* Makes the port an interface. Its descriptor, or -EALREADY; -EADDRINUSE; -EADDRNOTAVAIL; -ENOMEM ... */
int emu_portals_end_open(struct emu_port_end *port, struct emu_msg_portals *asked);
/* Descriptor of another one of the domain; -ENOENT; -EPERM: members are kept apart. */
int emu_portals_end_peer(struct emu_port_end *port, struct emu_msg_portals *asked);
int emu_portals_end_distance(struct emu_port_end *port, struct emu_msg_portals *asked);
/* The port waits in vain for the lock of another one's interface, or its own: breaks it if it is nobody's. */
void emu_portals_end_stuck(struct emu_port_end *port, uint32_t locked);

/* Is the command at the head of the port's ring begun, and not over, or must it wait for one that has left the ring? */
bool emu_portals_end_is_busy(struct emu_port_end *port);
/* Goes on with the command at the head of the port's ring. True: it is over. */
bool emu_portals_end_serve(struct emu_port_end *port, const struct emu_cmd *cmd);
/* The command fails before anything of it was done; its initiator hears of it. */
void emu_portals_end_fail(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status);
/* Whom a command goes to; NULL: nobody. */
struct emu_port_end *emu_portals_end_target(const struct emu_port_end *port, const struct emu_cmd *cmd);

/* The port ends: what it was doing at others', and its own interface. */
void emu_portals_drop_port(struct emu_port_end *port);
/* Goes on with what waits for a lock. */
void emu_portals_round(struct emu_server *server);
bool emu_portals_has_work(const struct emu_server *server);
void emu_portals_drop_domain(struct emu_server *server, const struct emu_domain *domain);

/* ---- interfaces on other hosts (portals_remote.c, portals_visit.c) ---- */

int emu_portals_hosts_create(struct emu_server *server);
void emu_portals_hosts_destroy(struct emu_server *server);
/* Is there room for the command, or does it go to nobody elsewhere? */
bool emu_portals_remote_may_start(const struct emu_port_end *port, const struct emu_cmd *cmd);
/* Takes a command for another host over. */
void emu_portals_remote_start(struct emu_port_end *port, const struct emu_cmd *cmd);
void emu_portals_remote_drop_port(struct emu_port_end *port);

/* For hosts.c. False: the message makes no sense. */
bool emu_portals_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
void emu_portals_host_down(struct emu_server *server, uint32_t host);

#endif
