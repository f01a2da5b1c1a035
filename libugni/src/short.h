/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of a post: data and events are in place when the call returns, without a command. NIC lock held.
 */
#ifndef LIBUGNI_SHORT_H
#define LIBUGNI_SHORT_H

#include "emunic/client/lane.h"
#include "libugni/src/ugni.h"

/* Lanes of a NIC handle, found by the bits of a remote handle; and what a local handle was last found to cover. */
struct gnii_lanes;

/*
 * Does the post if it is an ordinary put, get or atomic to memory that is mapped here and nothing can go wrong. False:
 * nothing has happened, take the long way, which also says what is wrong. The descriptor's queue is `cq`.
 */
bool gnii_post_short(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *descr);

void gnii_lanes_free(struct gnii_nic *nic);

#endif
