/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking things away from who may be inside: waits, without blocking the loop, until they are not in use any more.
 */
#ifndef EMUNIC_DAEMON_CORE_QUIESCE_H
#define EMUNIC_DAEMON_CORE_QUIESCE_H

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
 * After the domain's members were told to stay out: 0 when all are and what is under way to other hosts has been
 * answered; EMU_DEFERRED: emu_admin_suspended() is told with `order`, with -ETIMEDOUT after the deadline, and then the
 * suspension is off again. -ENOMEM.
 */
int emu_quiesce_suspend(struct emu_server *server, struct emu_domain *domain, uint64_t order, uint64_t deadline_ns);
/* The next round ends the waiting for the domain's suspension, as if its deadline had come. */
void emu_quiesce_give_up(struct emu_server *server, const struct emu_domain *domain);
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
