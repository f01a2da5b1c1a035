/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closing descriptors that somebody else has made. The last thing that a file system, a socket or a terminal does with
 * a file is theirs, and may last for ever: FUSE asks its program, a socket lingers. So whoever must not wait does not
 * call close(), but this. One thread calls the functions.
 */
#ifndef EMUNIC_BASE_CLOSING_H
#define EMUNIC_BASE_CLOSING_H

#include <stdbool.h>

#include "emunic/base/socket.h"

#define EMU_CLOSING_MAX 16u /* sets of descriptors under way at a time */

/* Sets of descriptors of one user that are being closed. NULL: there were none. */
struct emu_closing;

/* May there be one more set? */
bool emu_closing_has_room(const struct emu_closing *closing);
/*
 * Closes all of them; never waits. Memory files at once; others in a thread, for which *closing is made. What there is
 * no memory or no thread for stays open, and counts as under way if it can.
 */
void emu_closing_begin(struct emu_closing **closing, struct emu_fds *fds);
/* Nobody asks any more. NULL: nothing. */
void emu_closing_leave(struct emu_closing *closing);

#endif
