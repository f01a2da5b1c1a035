/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file with what each link has carried in each window of virtual time, counted by the packets that crossed it. Links
 * without any packet or stall in a window have no line there. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_VIRTUAL_LINK_WINDOWS_H
#define EMUNIC_DAEMON_VIRTUAL_LINK_WINDOWS_H

#include "emunic/daemon/core/part.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/sim/sim.h"

struct emu_link_windows;

/*
 * `machine` is borrowed. 0, or a negative errno with its reason: the file cannot be made, or there is no memory.
 */
int emu_link_windows_open(const struct emu_time_options *options, const struct emu_machine *machine,
                          struct emu_link_windows **windows_out, struct emu_complaint *why);

/* When the present window ends, ps. */
uint64_t emu_link_windows_end_ps(const struct emu_link_windows *windows);

/* Nothing more happens in the present window: its lines are written, and the one of the next event begins. */
void emu_link_windows_pass(struct emu_link_windows *windows, const struct emu_sim *sim);

/* The simulation has come to the end of the window, or of all: its lines are written, and the next one begins. */
void emu_link_windows_take(struct emu_link_windows *windows, const struct emu_sim *sim);

/* NULL is fine. A file that is not whole is told. */
void emu_link_windows_close(struct emu_link_windows *windows);

#endif
