/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that make one Portals call after the other, as the test tells them: one call at a time over all of them, so
 * that what has to happen is known. Their memory, the arena, is private; a snapshot of it comes back on request.
 *
 * On the routed path a call's effects at its target come later than the call returns. peers_settle() waits for them: a
 * zero-length put of the same two processes behind it has been matched, so everything before has been too (5.5).
 */
#ifndef TESTS_PROPERTY_PEERS_H
#define TESTS_PROPERTY_PEERS_H

#include "tests/common/portals_job.h"
#include "tests/property/model.h"

#define PEERS_FENCE_PT 50u

enum peers_verb {
    DO_ME_ATTACH,
    DO_ME_ATTACH_ANY,
    DO_ME_INSERT,
    DO_ME_UNLINK,
    DO_MD_ATTACH,
    DO_MD_BIND,
    DO_MD_UNLINK,
    DO_MD_UPDATE,
    DO_MD_QUERY,
    DO_MEMD_ATTACH,
    DO_MEMD_INSERT,
    DO_MEMD_POST,
    DO_EQ_ALLOC,
    DO_EQ_FREE,
    DO_EQ_GET,
    DO_AC_ENTRY,
    DO_PUT,
    DO_PUT_REGION,
    DO_GET,
    DO_GET_REGION,
    DO_GETPUT,
    DO_GETPUT_REGION,
    DO_STATUS,
    DO_SNAPSHOT,
    DO_FENCE,
    DO_FENCE_WAIT,
    DO_STREAM,
    DO_END,
};

/* One call: its arguments, then its results. */
struct peers_call {
    enum peers_verb verb;
    ptl_handle_me_t me;
    ptl_handle_md_t md;
    ptl_handle_md_t put_md;
    ptl_handle_eq_t eq;
    ptl_pt_index_t pt;
    ptl_ac_index_t ac;
    ptl_process_id_t id;
    ptl_match_bits_t bits;
    ptl_match_bits_t ignore;
    ptl_unlink_t unlink;
    ptl_unlink_t md_unlink;
    ptl_ins_pos_t position;
    ptl_md_t desc;
    ptl_md_iovec_t iov[MODEL_SEGMENTS]; /* with PTL_MD_IOVEC in desc.options the process fills in desc.start */
    ptl_ack_req_t ack;
    ptl_size_t offset;
    ptl_size_t put_offset;
    ptl_size_t length;
    ptl_size_t remote_offset;
    ptl_hdr_data_t hdr_data;
    ptl_uid_t uid;
    ptl_jid_t jid;
    ptl_size_t count;

    int rc;
    ptl_event_t event;
    ptl_sr_value_t status;
};

struct peers_line {
    _Alignas(64) _Atomic uint64_t asked;
    _Alignas(64) _Atomic uint64_t answered;
    ptl_process_id_t id;
    ptl_uid_t uid;
    ptl_jid_t jid;
    uint64_t arena_addr;
    struct peers_call call;
    uint8_t arena[MODEL_ARENA_BYTES];
};

struct peers {
    unsigned n;
    struct fx *fx;
    struct fx_ranks ranks;
    struct peers_line *lines;
};

/* n processes on the fixture's nodes, interfaces open. Their arenas start as model_first_byte() says. */
void peers_start(struct peers *p, struct fx *fx, unsigned n);
/* How many ended badly. */
unsigned peers_stop(struct peers *p);

/* Has the process make the call, and returns its code. Ends the test when no answer comes. */
int peers_do(struct peers *p, unsigned who, struct peers_call *call);
/* Polls for the queue's next event. Ends the test when none comes. */
ptl_event_t peers_next_event(struct peers *p, unsigned who, ptl_handle_eq_t eq);
/* peers_do() in halves, for a test that does something meanwhile. */
void peers_ask(struct peers *p, unsigned who, const struct peers_call *call);
int peers_answer(struct peers *p, unsigned who, struct peers_call *call_out);
/* Everything that `from` has sent to `to` so far has been matched. */
void peers_settle(struct peers *p, unsigned from, unsigned to);

static inline uint8_t peers_first_byte(unsigned who, uint64_t i)
{
    return (uint8_t)(who * 101 + i * 7 + (i >> 8));
}

#endif
