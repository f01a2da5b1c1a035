/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of shared message queues.
 */
#ifndef EMUNIC_DAEMON_MSGQ_H
#define EMUNIC_DAEMON_MSGQ_H

struct emu_msg_msgq;
struct emu_port_end;

/* Joins the message queue of the port's node; the first one makes it. Descriptor (emunic's own) or negative errno. */
int emu_msgq_join(struct emu_port_end *port, struct emu_msg_msgq *msgq);
/* Leaves it in peace: nobody can join any more until all have left. -ENOENT: was not in it. */
int emu_msgq_leave(struct emu_port_end *port);
/* The port has ended. */
void emu_msgq_drop_port(struct emu_port_end *port);

#endif
