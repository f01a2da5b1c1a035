/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a message layer above the libraries costs the core in virtual time: host.send_ns and host.recv_ns of the machine
 * file, half each of what the machine's MPI adds to a put (docs/virtual-time.md, "Costs"). Programs are charged for it
 * by the message layer that they use, once for each message at each end. Whoever uses the interface of the NIC itself
 * (puts, gets, Portals messages of the program) is not.
 *
 * Message layers of this project are linked with libugni or libportals and charge through the door of that library,
 * because each library has its own view of the process's clocks.
 */
#ifndef EMUNIC_CLIENT_MESSAGE_COST_H
#define EMUNIC_CLIENT_MESSAGE_COST_H

#include <stdbool.h>

enum emu_message_end {
    EMU_MESSAGE_SENT = 0, /* charge it before the first operation of the message is posted */
    EMU_MESSAGE_RECEIVED, /* charge it when the message is whole and matched, before the program hears of it */
};

/* False: this process has functional time and no message will ever cost anything. Any thread. */
bool emu_message_costs(void);

/* Any thread, not inside a call of a library; no lock. Nothing in functional time. */
void emu_message_spend(enum emu_message_end end);

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* The same, as libugni and libportals export it. Private: for message layers of this project. */
bool gnii_message_costs(void);
void gnii_message_spend(enum emu_message_end end);
bool p3_message_costs(void);
void p3_message_spend(enum emu_message_end end);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
