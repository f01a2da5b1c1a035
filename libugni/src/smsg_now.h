/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages without completion entries, and without a pointer into the mailbox. Private: exported by libugni.so
 * for message layers of this project, in no installed header.
 */
#ifndef LIBUGNI_SMSG_NOW_H
#define LIBUGNI_SMSG_NOW_H

#include <stdbool.h>

#include <gni_pub.h>

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

struct gnii_smsg_message {
    const void *header;
    const void *data; /* behind it; NULL: nothing */
    uint32_t header_bytes;
    uint32_t data_bytes;
    uint32_t msg_id;
    uint8_t tag;   /* not GNI_SMSG_ANY_TAG */
    bool *is_over; /* set where it is delivered without a completion entry */
};

/*
 * GNI_SmsgSendWTag(), but a message that is delivered when the call returns has no completion entry: is_over. It could
 * only have told that. On the direct path all messages are so, on others none. In virtual time the entry of another is
 * no news: the caller takes it when it comes by. Nor does NOT_DONE wait for a turn: the caller polls. Any thread.
 */
gni_return_t gnii_smsg_send_now(gni_ep_handle_t ep_hndl, const struct gnii_smsg_message *message);

/*
 * GNI_SmsgGetNextWTag(), a copy and GNI_SmsgRelease() in one: the next message, of any tag, goes to room_bytes at `to`.
 * Statuses of the first; and SIZE_ERROR: it is longer than that and stays where it is. Any thread.
 */
gni_return_t gnii_smsg_take(gni_ep_handle_t ep_hndl, void *to, uint32_t room_bytes, uint32_t *length_bytes_out,
                            uint8_t *tag_out);

/*
 * Would gnii_smsg_take() find a message? A read of one line, without lock: the caller sees to it that nobody else looks
 * at this endpoint, takes or releases meanwhile. It does not tell of a NIC that was lost, and is no poll in virtual
 * time: a taker comes by from time to time, and there always.
 */
bool gnii_smsg_waits(gni_ep_handle_t ep_hndl);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
