/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues of a port.
 */
#ifndef EMUNIC_DAEMON_CORE_PORT_QUEUES_H
#define EMUNIC_DAEMON_CORE_PORT_QUEUES_H

#include <stdint.h>

struct emu_msg_cq;
struct emu_port_end;

/* Of a new port. -ENOMEM. */
int emu_queues_init(struct emu_port_end *port);
/* Also of one that was not initialised whole. */
void emu_queues_fini(struct emu_port_end *port);
/* 0; -EINVAL; -ENOSPC: no room in the arena, or the job may have no more. */
int emu_queue_create(struct emu_port_end *port, struct emu_msg_cq *cq);
/* Makes a queue invisible; emu_queue_release() frees it when nobody can be using it. -EINVAL: there is none. */
int emu_queue_destroy(struct emu_port_end *port, uint32_t index);
void emu_queue_release(struct emu_port_end *port, uint32_t index);

#endif
