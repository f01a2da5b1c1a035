/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams in virtual time, for who serves commands.
 */
#ifndef EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_VIRTUAL_H
#define EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_VIRTUAL_H

struct emu_cmd;
struct emu_port_end;

/* EMU_OP_DATAGRAM, in its turn: what a request has posted before sets out. Nothing, if there is no such datagram. */
void emu_datagram_send(struct emu_port_end *port, const struct emu_cmd *cmd);

#endif
