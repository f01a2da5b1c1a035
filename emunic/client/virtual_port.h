/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port in virtual time: what its calls do to the clock of their thread. port.c and idle.c call these where the port
 * has times. Threads and locks are those of the calls in port.h.
 */
#ifndef EMUNIC_CLIENT_VIRTUAL_PORT_H
#define EMUNIC_CLIENT_VIRTUAL_PORT_H

#include "emunic/client/port.h"

/*
 * At the end of an attach: in a domain in virtual time it takes the process's page, and sets port->times. 0; negative
 * errno.
 */
int emu_virtual_port_open(struct emu_port *port);

/* emu_port_publish() */
void emu_virtual_port_publish(struct emu_port *port);

/* emu_port_relax(), behind so many empty polls in a row. */
bool emu_virtual_port_relax(struct emu_port *port, uint32_t in_a_row, uintptr_t polled);

/* emu_port_wait() */
int emu_virtual_port_wait(struct emu_port *port, _Atomic uint32_t *const *words, const uint32_t *seen, unsigned n_words,
                          uint64_t deadline_ns);

/*
 * Before a request whose answer depends on what others have done: all that happens up to the thread's time has
 * happened. Of a port in the host's time: nothing.
 */
void emu_virtual_port_catch_up(struct emu_port *port);

/* The ring is full: until emunic has taken something. */
void emu_virtual_port_wait_for_room(struct emu_port *port);

#endif
