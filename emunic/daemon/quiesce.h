/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking things away from who may be inside: waits, without blocking the loop, until they are not in use any more.
 */
#ifndef EMUNIC_DAEMON_QUIESCE_H
#define EMUNIC_DAEMON_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>

struct emu_connection;
struct emu_domain;
struct emu_msg;
struct emu_port_end;
struct emu_server;

/* Can emunic have other cores run a barrier? */
bool emu_quiesce_has_barrier(void);
/* After it was made invisible: release a memory domain, a queue. 0 done, EMU_DEFERRED, -ENOMEM. */
int emu_quiesce_memory(struct emu_connection *connection, struct emu_port_end *port, uint16_t mdh,
                       const struct emu_msg *request);
int emu_quiesce_queue(struct emu_connection *connection, struct emu_port_end *port, uint32_t cq,
                      const struct emu_msg *request);
/*
 * After the domain's members were told to stay out. Answers when all are; -ETIMEDOUT after the deadline, and the
 * suspension is off again; it is also if the connection ends before.
 */
int emu_quiesce_suspend(struct emu_connection *connection, struct emu_domain *domain, const struct emu_msg *request,
                        uint64_t deadline_ns);
/* Update `seq` of a node's injection limits is done when the members of the domain have seen it. -ENOMEM. */
int emu_quiesce_pace(struct emu_server *server, struct emu_domain *domain, uint32_t nid, uint16_t seq);
/* A port has ended: its handles (taken over), its slot, and gaps that its process left if it died inside. */
void emu_quiesce_port(struct emu_port_end *port, uint16_t *mdhs, uint32_t n_mdhs, bool died_inside);
void emu_quiesce_round(struct emu_server *server);
/* The connection or the port has ended; either may be NULL. */
void emu_quiesce_forget(struct emu_server *server, const struct emu_connection *connection,
                        const struct emu_port_end *port);
void emu_quiesce_drop_domain(struct emu_server *server, const struct emu_domain *domain);

#endif
