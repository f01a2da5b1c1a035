/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of shared message queues.
 */
#ifndef EMUNIC_DAEMON_MSGQ_MSGQ_H
#define EMUNIC_DAEMON_MSGQ_MSGQ_H

#include <stdbool.h>
#include <stdint.h>

struct emu_msg_msgq;
struct emu_port_end;
struct emu_server;
struct emu_table_md;

/* Joins the message queue of the port's node; the first one makes it. Descriptor (emunic's own) or negative errno. */
int emu_msgq_join(struct emu_port_end *port, struct emu_msg_msgq *msgq);
/* Leaves it in peace: nobody can join any more until all have left. -ENOENT: was not in it. */
int emu_msgq_leave(struct emu_port_end *port);
/* The port has ended. */
void emu_msgq_drop_port(struct emu_port_end *port);
/* A memory domain of the port ends: other hosts hear of it if it is the region. */
void emu_msgq_md_ends(struct emu_port_end *port, uint16_t mdh, const struct emu_table_md *md);
/* For hosts.c. False: the message makes no sense. */
bool emu_msgq_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);

#endif
