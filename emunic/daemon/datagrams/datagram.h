/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of ports.
 */
#ifndef EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_H
#define EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_H

#include <stdint.h>

struct emu_msg;
struct emu_msg_datagram;
struct emu_port_end;
struct emu_server;

int emu_datagram_post(struct emu_port_end *port, const struct emu_msg_datagram *d);
int emu_datagram_test(struct emu_port_end *port, struct emu_msg_datagram *d);
int emu_datagram_probe(struct emu_port_end *port, struct emu_msg_datagram *d);
/* EMU_DEFERRED: answered when another host has said whether it has paired. */
int emu_datagram_cancel(struct emu_port_end *port, const struct emu_msg *request);
void emu_datagram_drop_ep(struct emu_port_end *port, uint32_t ep);
void emu_datagram_drop_all(struct emu_port_end *port);
/* Lets delayed datagrams pair whose time has come, and offers those to other hosts that there was no room for. */
void emu_datagram_look_at_delayed(struct emu_server *server);
/* The network has changed: lets those pair that have a way now. */
void emu_datagram_look_at_all(struct emu_server *server);

#endif
