/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Block transfers whose initiator may help to move them (engine/share.h): one of a port at a time. The loop's thread.
 */
#ifndef EMUNIC_DAEMON_COMMANDS_SHARED_TRANSFER_H
#define EMUNIC_DAEMON_COMMANDS_SHARED_TRANSFER_H

#include <stdbool.h>

struct emu_port_end;
struct emu_transfer;

enum emu_shared_turn {
    EMU_SHARED_STEP,  /* the next slice is emunic's: move it. So is that of each transfer which is not shared */
    EMU_SHARED_WAITS, /* the initiator is about to move the last ones, and rings afterwards */
    EMU_SHARED_ENDS,  /* all is moved; the transaction says so */
};

/* Opens the transfer to the initiator if it is worth that and no other of the port is open. */
void emu_shared_open(struct emu_port_end *port, struct emu_transfer *transfer);
/* What is to be done in this round. */
enum emu_shared_turn emu_shared_turn(struct emu_port_end *port, struct emu_transfer *transfer);
/* Would the turn be EMU_SHARED_WAITS? Takes nothing. */
bool emu_shared_waits(const struct emu_port_end *port, const struct emu_transfer *transfer);
/* The initiator takes no more slices of the transfer. One that is not shared: nothing. */
void emu_shared_close(struct emu_port_end *port, const struct emu_transfer *transfer);

#endif
