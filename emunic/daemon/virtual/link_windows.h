/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each link has carried in each window of virtual time, counted by the packets that crossed it: a line for each
 * link and window, in a file or to a reader. Links without any packet or stall in a window have no line there. On the
 * server's thread.
 *
 * A reader has a pipe. It may be as slow as it likes: emunic never waits for it, keeps what it has not read yet, and
 * lets it go when that is too much.
 */
#ifndef EMUNIC_DAEMON_VIRTUAL_LINK_WINDOWS_H
#define EMUNIC_DAEMON_VIRTUAL_LINK_WINDOWS_H

#include <sys/queue.h>

#include "emunic/daemon/core/part.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/sim/sim.h"

struct emu_link_windows;
LIST_HEAD(emu_link_windows_list, emu_link_windows);

/*
 * The file of the options. `machine` is borrowed. 0, or a negative errno with its reason: the file cannot be made, or
 * there is no memory.
 */
int emu_link_windows_open(const struct emu_time_options *options, const struct emu_machine *machine,
                          struct emu_link_windows_list *list, struct emu_complaint *why);

/*
 * For a reader, from the window of now_ps on. The descriptor that it reads from, which is the caller's; negative errno:
 * -EINVAL if the windows are too short, -EBUSY if there are sixteen readers.
 */
int emu_link_windows_add_reader(struct emu_link_windows_list *list, const struct emu_machine *machine,
                                const struct emu_sim *sim, uint64_t every_ps, uint64_t now_ps);

/* Readers get what they have room for; those that have gone, or are too slow, are forgotten. True: some want more. */
bool emu_link_windows_flush(struct emu_link_windows_list *list);

/* When the first of the present windows ends, ps. NEVER (UINT64_MAX): there are none. */
uint64_t emu_link_windows_end_ps(const struct emu_link_windows_list *list);

/*
 * The simulation may go on up to until_ps. Where nothing more happens in a present window before that or the next
 * event, its lines are written, and the window there begins.
 */
void emu_link_windows_pass(struct emu_link_windows_list *list, const struct emu_sim *sim, uint64_t until_ps);

/* The simulation has come to that time: lines of windows that end are written, and the next ones begin. */
void emu_link_windows_take(struct emu_link_windows_list *list, const struct emu_sim *sim, uint64_t at_ps);

/* Readers get what they read within a second. A file that is not whole is told. */
void emu_link_windows_close(struct emu_link_windows_list *list);

#endif
