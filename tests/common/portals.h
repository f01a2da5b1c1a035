/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test programs of Portals 3. Every rank of a launched job runs the same program and goes through its tests in step;
 * rank 0 prints the TAP. An assertion that fails in any rank ends that rank, and with it the job, after its message on
 * stderr. Public headers only.
 *
 * Each source is built twice, for either dialect: PX_CRAY is 1 or 0. The ranks form a ring: each is the initiator
 * towards px_next and the target of px_previous, so that neighbours on one node and on two are tested by one text. With
 * one rank both are the rank itself.
 */
#ifndef TESTS_COMMON_PORTALS_H
#define TESTS_COMMON_PORTALS_H

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#if PX_CRAY
#include <portals/portals3.h>
#define PX_NO_ACK PTL_NOACK_REQ
#define PX_AGAIN  PTL_IFACE_DUP                   /* PtlNIInit() of what is open */
#define PX_UNLINK PTL_MD_EVENT_AUTO_UNLINK_ENABLE /* the option to have UNLINK events */
#else
#include <p3nal_utcp.h>
#include <p3rt/p3rt.h>
#include <portals3.h>
#define PX_NO_ACK PTL_NO_ACK_REQ
#define PX_AGAIN  PTL_OK
#define PX_UNLINK 0
#endif

#include "tests/common/rows.h"
#include "tests/common/seed.h"

#define PX_PATIENCE_MS 30000
#define PX_BITS        0x123456789abcdef0ull
#define PX_HDR         0xfedcba9876543210ull

/* Filled while tests run. */
extern int px_rank;
extern int px_size;
extern ptl_handle_ni_t px_ni;
extern ptl_ni_limits_t px_limits;
extern ptl_process_id_t px_self;
extern ptl_process_id_t px_next;
extern ptl_process_id_t px_previous;
extern const ptl_process_id_t px_anybody;

/* All ranks; not by Portals, so that what is tested does not test itself. */
void px_barrier(void);

/* Tells a number to all ranks; those of all ranks come back. */
void px_exchange(uint64_t mine, uint64_t *all_out);

/*
 * All ranks: what each has sent to its neighbours and to itself before is delivered, and its local events are posted.
 * Uses portal index px_limits.max_pt_index.
 */
void px_settle(void);

/* Opens the interface with these limits (NULL: the most) and tells everybody the addresses; px_close() the reverse. */
void px_open(ptl_ni_limits_t *desired);
void px_close(void);

/* The node's own number for a rank's address. */
ptl_process_id_t px_id_of(int rank);

/* ---- objects ---- */

ptl_handle_eq_t px_eq(ptl_size_t count);
/* A descriptor's contents. max_size and user_ptr have values that nobody else has. */
ptl_md_t px_md(void *start, ptl_size_t length, unsigned options, int threshold, ptl_handle_eq_t eq);
ptl_handle_md_t px_bind(ptl_md_t md, ptl_unlink_t unlink);
/* An entry at the tail of that list, for anybody, with the descriptor. */
struct px_entry {
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;
    ptl_md_t md;
};
struct px_entry px_entry(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t me_unlink,
                         ptl_md_t md, ptl_unlink_t md_unlink);

/* ---- events ---- */

/* Waits for the next event, which must not be behind lost ones. */
ptl_event_t px_take(ptl_handle_eq_t eq);
/* The next event has to be of that kind. */
ptl_event_t px_take_kind(ptl_handle_eq_t eq, ptl_event_kind_t kind);
/* Nothing is in the queue. */
void px_nothing(ptl_handle_eq_t eq);

/* What an event has to say, field by field. threshold: before the operation. */
struct px_want {
    ptl_event_kind_t kind;
    ptl_process_id_t initiator;
    ptl_pt_index_t pt;
    ptl_match_bits_t bits;
    ptl_size_t rlength, mlength, offset;
    ptl_hdr_data_t hdr_data;
    ptl_handle_md_t mdh;
    ptl_md_t md;
    int threshold;
};
void px_expect(const ptl_event_t *event, const struct px_want *want);
/* START and END of an operation, with the same link and following numbers; `want` is for START. Returns END. */
ptl_event_t px_expect_both(ptl_handle_eq_t eq, struct px_want want);

ptl_sr_value_t px_register(ptl_sr_index_t index);

/* ---- memory ---- */

/* Bytes that depend on position and seed. */
void px_fill(void *memory, size_t bytes, uint64_t seed);
void px_same(const void *memory, size_t bytes, uint64_t seed);
void px_all(const void *memory, size_t bytes, uint8_t value);

/* Opens the interface with these limits (NULL: the most; -1: no interface), runs the tests, closes. For main(). */
#define PX_CLOSED ((ptl_ni_limits_t *)-1)
int px_run_group(const char *name, const struct CMUnitTest *tests, size_t n_tests, ptl_ni_limits_t *desired);
#define px_run(tests, desired) px_run_group(#tests, tests, COUNT_OF(tests), desired)

#endif
