/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels, on the side of emunic.
 */
#ifndef EMUNIC_DAEMON_CORE_CHANNEL_END_H
#define EMUNIC_DAEMON_CORE_CHANNEL_END_H

#include <stdint.h>

struct emu_cq_alarm;
struct emu_msg_channel;
struct emu_port_end;

/* Makes a channel. The descriptor for the owner, which the caller closes, or negative errno. */
int emu_channel_end_create(struct emu_port_end *port, struct emu_msg_channel *channel);
int emu_channel_end_destroy(struct emu_port_end *port, uint32_t channel);
int emu_channel_end_attach(struct emu_port_end *port, const struct emu_msg_channel *channel);
/* All of a port that ends, or whose domain does: their owner sees the end of the pipes. */
void emu_channel_end_drop_all(struct emu_port_end *port);
/* For producers of the port's queues. */
void emu_channel_end_ring(struct emu_cq_alarm *alarm, uint32_t queue);
/* The port's doorbell was rung: passes on what it says of other ports' queues. */
void emu_channel_end_serve_calls(struct emu_port_end *port);
/* A producer may have died between disarming the queue and telling: tells, unless there is nothing to tell. */
void emu_channel_end_tell_again(struct emu_port_end *port, uint32_t queue);

#endif
