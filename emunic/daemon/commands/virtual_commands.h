/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands in virtual time: each is an operation of the model, and its data move when the model says so.
 */
#ifndef EMUNIC_DAEMON_COMMANDS_VIRTUAL_COMMANDS_H
#define EMUNIC_DAEMON_COMMANDS_VIRTUAL_COMMANDS_H

#include <stdbool.h>

#include "emunic/abi/command.h"

struct emu_fault_failure;
struct emu_port_end;

/* A put, get, atomic or queue write whose turn it is. False: it waits at the head of the ring (emu_virtual_hold()). */
bool emu_virtual_command_start(struct emu_port_end *port, const struct emu_cmd *cmd);

/* The same for one that an injected fault has hit: it takes its time, does nothing, and ends so. */
void emu_virtual_command_fail(struct emu_port_end *port, const struct emu_cmd *cmd,
                              const struct emu_fault_failure *failure);

/* The port ends: its commands under way move nothing any more and tell nobody. */
void emu_virtual_commands_leave(struct emu_port_end *port);

#endif
