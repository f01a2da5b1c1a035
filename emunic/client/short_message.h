/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A short message of an inbox (portals_inbox.h), as a message layer of this project is told of it.
 */
#ifndef EMUNIC_CLIENT_SHORT_MESSAGE_H
#define EMUNIC_CLIENT_SHORT_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

struct emu_short_message {
    uint32_t nid; /* its sender's */
    uint32_t pid;
    uint32_t pt;
    uint32_t length_bytes;
    uint64_t bits;
    uint64_t hdr_data;
    const void *data; /* in the inbox: there during the call only, and its sender may write there */
    bool is_first;    /* none before it stays in the inbox */
};

/*
 * A message layer's part of matching. True: it has taken the message. False: the message stays where it is, and so do
 * those of the same sender behind it. Called inside libportals, which must not be called from here.
 */
typedef bool (*emu_short_taker)(const struct emu_short_message *message);

#endif
