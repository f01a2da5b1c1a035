/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Private: exported by libportals.so for message layers of this project, in no installed header. Their own cost in
 * virtual time is in emunic/client/message_cost.h.
 */
#ifndef LIBPORTALS_MESSAGE_LAYER_H
#define LIBPORTALS_MESSAGE_LAYER_H

#include <stdbool.h>

#include <portals/portals3.h>

#include "emunic/client/short_message.h"

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* Where a message goes. */
struct p3_message {
    ptl_process_id_t target;
    ptl_pt_index_t pt;
    ptl_match_bits_t bits;
    ptl_hdr_data_t hdr_data;
};

/*
 * Promises that these bytes stay mapped as they are until PtlNIFini(). Descriptors of such memory are made without
 * asking the kernel whether it still is what it was, which takes longer than all the rest of a descriptor. Pages that
 * are only in part within the bytes are not meant. Any thread. PTL_OK; PTL_NI_INVALID; PTL_NO_SPACE: there are
 * promises enough already, and nothing has changed.
 */
int p3_memory_stays(ptl_handle_ni_t ni, const void *start, ptl_size_t length_bytes);

/*
 * PtlPutRegion() of a short message, without acknowledgement, if it can be over at once: *is_over. Its data may be
 * changed then, and if the descriptor has no SEND events the interface of the sender is not touched, which saves a lock
 * and an event. Else nothing has happened, and the message takes the usual way. Any thread. PTL_OK; PTL_MD_INVALID,
 * PTL_MD_ILLEGAL, PTL_PROCESS_INVALID as of PtlPutRegion(); PTL_FAIL: the data could not be moved.
 */
int p3_put_now(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length_bytes, const struct p3_message *message,
               bool *is_over);

#define P3_SHORT_BYTES 96u

struct p3_way;

/* A way to a process for many such messages. NULL: out of memory, or the handle is none. Any thread. */
struct p3_way *p3_way_open(ptl_handle_ni_t ni, ptl_process_id_t target);
void p3_way_close(struct p3_way *way);

/*
 * As p3_put_now() of at most P3_SHORT_BYTES, for a process with open inboxes. Of the message the target is not looked
 * at. False: nothing has happened. Any thread.
 */
bool p3_way_leave(struct p3_way *way, const void *data, ptl_size_t length_bytes, const struct p3_message *message);

/*
 * From now on p3_put_now() of others may leave messages of at most P3_SHORT_BYTES in an inbox, and this process matches
 * them itself when it next polls a queue of this interface: so no cache line of the interface goes to the sender, but
 * none arrives before a poll. Any thread. A handle that is none changes nothing.
 *
 * taker: a message layer that keeps receives of its own. Polls take nothing from inboxes then, p3_inboxes_take() does,
 * and hands over what it finds: so such a message costs neither entry, descriptor, lock nor event. NULL: there is none.
 */
void p3_inboxes_open(ptl_handle_ni_t ni, emu_short_taker taker);

/*
 * Hands the messages that are there to the taker, those of one sender in order, up to the first that it leaves. `quiet`
 * is the queue of the last entries of the lists. While it holds an event, which may be of a message that was sent
 * before, nothing is handed over. has_entries: there may be entries for one message (threshold 1) at the lists; such an
 * entry takes its message as ever, and the taker gets the others. Returns how many have been taken. One thread at a
 * time. A handle that is none changes nothing.
 */
unsigned p3_inboxes_take(ptl_handle_ni_t ni, ptl_handle_eq_t quiet, bool has_entries);

/*
 * Has the target taken all that p3_put_now() has left for it? Until then no other put to it may be begun, because it
 * would overtake them. Also true of a target that has gone, and of a handle that is none. Any thread.
 */
bool p3_has_taken(ptl_handle_ni_t ni, ptl_process_id_t target);

/* ---- memory that others reach without entry and event ---- */

/* Memory of a process, as it tells others. */
struct p3_exposed {
    ptl_nid_t nid;
    uint16_t domain;
    uint16_t generation;
};

struct p3_reach;

/*
 * Makes memory of this process one that others reach. False: not possible, they send messages then; where somebody is
 * just sending something here it may be possible later. It stays so until PtlNIFini(), or as long as it is mapped. Any
 * thread.
 */
bool p3_expose(ptl_handle_ni_t ni, void *start, ptl_size_t length_bytes, struct p3_exposed *exposed_out);

/* A way to such memory of another process. NULL: out of memory, or the handle is none. Any thread. */
struct p3_reach *p3_reach_open(ptl_handle_ni_t ni, const struct p3_exposed *exposed);
void p3_reach_close(struct p3_reach *reach);

/*
 * A put or get that is over when the call returns, and counted like any other. `address` is the owner's, within what it
 * has exposed. False: nothing has happened, because the process cannot be reached so (another host, the routed path,
 * virtual time), at least not now. At most P3_REACH_BYTES. Any thread.
 */
bool p3_reach_put(struct p3_reach *reach, uint64_t address, const void *data, ptl_size_t length_bytes);
bool p3_reach_get(struct p3_reach *reach, uint64_t address, void *data, ptl_size_t length_bytes);

#define P3_REACH_BYTES (256u << 10)

/*
 * Rounds of polls, as libugni/src/poll_rounds.h explains them: from now on empty polls of this interface return at
 * once. Any thread. A handle that is none changes nothing.
 */
void p3_rounds_begin(ptl_handle_ni_t ni);

/*
 * A round has found nothing: gives the core away where others want it, unless the caller does that itself. Now and then
 * it looks whether emunic lives. Any thread, without locks of the caller; nobody closes the interface meanwhile.
 */
void p3_rounds_end_one(ptl_handle_ni_t ni, bool may_yield);

/* As gnii_rounds_stir(). Any thread, without locks of the caller. */
void p3_rounds_stir(ptl_handle_ni_t ni);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#endif
