/* SPDX-License-Identifier: BSD-3-Clause */
/* A short-message channel of a rank to one other rank: the mailbox, its registration and the endpoint. */
#ifndef BENCH_GNI_MAILBOX_H
#define BENCH_GNI_MAILBOX_H

#include <stdbool.h>

#include "examples/common.h"

#define MAILBOX_CREDITS 64u
#define MAILBOX_BYTES   64u /* longest message */

struct mailbox {
    gni_ep_handle_t ep;
    gni_cq_handle_t src_cq; /* borrowed */
    gni_cq_handle_t dst_cq; /* borrowed; NULL: arrivals are seen in the mailbox only */
    char *buffer;           /* owned */
    gni_mem_handle_t mem_hndl;
    gni_smsg_attr_t attr;
};

/* Collective. box[i] leads to peers[i], whose own box number back[i] leads here. At most MAILBOXES_MAX of them. */
#define MAILBOXES_MAX 2
void mailbox_open(struct ex_job *job, struct mailbox *box, const int *peers, const int *back, int n_boxes);
/* Nobody may send any more. */
void mailbox_close(struct ex_job *job, struct mailbox *box);

/* Send 8 bytes; -> false when there is no credit. */
bool mailbox_try_send(struct mailbox *box, uint64_t value);
/* Take the next message; -> false when there is none. Takes in returned credits as well. */
bool mailbox_try_receive(struct mailbox *box, uint64_t *value_out);

#endif
