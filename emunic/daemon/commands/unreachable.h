/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands whose target is out of reach while something in the network is broken.
 */
#ifndef EMUNIC_DAEMON_COMMANDS_UNREACHABLE_H
#define EMUNIC_DAEMON_COMMANDS_UNREACHABLE_H

#include <stdbool.h>

struct emu_cmd;
struct emu_port_end;
struct emu_server;

/* Has this command's target a way? False: it is dealt with, usually by an error. */
bool emu_unreachable_passes(struct emu_port_end *port, const struct emu_cmd *cmd);

/* There are ways again: makes what was kept. */
void emu_unreachable_released(struct emu_server *server);
/* -ENOMEM */
int emu_unreachable_begin_port(struct emu_port_end *port);
void emu_unreachable_end_port(struct emu_port_end *port);

#endif
