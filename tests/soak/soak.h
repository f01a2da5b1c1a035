/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of the soak: objects, what it knows about everybody's memory, and what all ranks tell each other.
 *
 * Every rank has a region with one lane for each rank. Only that rank writes its lane, so it can keep a copy of it, the
 * shadow, and knows at any time what every byte must be. A lane is data, and words for atomics. One more line of the
 * region is for everybody: its words only grow, by adds whose sum all ranks know together.
 */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <gni_pub.h>

#include "emunic/fabric/random.h"
#include "tests/common/fixture.h"

#define SOAK_RANKS      16u
#define SOAK_NODES      4u
#define DATA_BYTES      (256u << 10)                /* of a lane */
#define WORDS           16u                         /* of a lane, for atomics */
#define LANE_BYTES      (DATA_BYTES + 4096u)        /* data, words, a word for flags */
#define COMMON_WORDS    8u
#define REGION_BYTES    (SOAK_RANKS * (uint64_t)LANE_BYTES + 4096u)
#define OPS_MAX         12u                         /* under way at a time */
#define MESSAGE_BYTES   1024u
#define CREDITS         8u

/* What one rank tells the others. In shared memory of the test; each line is written by its rank. */
struct soak_told {
    _Alignas(64) uint64_t region_addr;
    gni_mem_handle_t region_hndl;
    uint64_t mail_addr;
    gni_mem_handle_t mail_hndl;
    uint32_t nic_addr;
    uint32_t mailbox_bytes;
    _Atomic uint64_t events_to[SOAK_RANKS];         /* remote events that its posts to that rank must have raised */
    _Atomic uint64_t written_to[SOAK_RANKS];        /* queue writes to that rank, and the sum of their values */
    _Atomic uint64_t written_sum_to[SOAK_RANKS];
    _Atomic uint64_t messages_to[SOAK_RANKS];
    _Atomic uint64_t added_to[SOAK_RANKS][COMMON_WORDS];
    _Atomic uint64_t errors;                        /* completions with an error */
    _Atomic uint64_t n_ops;
    _Atomic uint64_t n_bytes;
    _Atomic uint64_t n_messages;
    _Atomic uint64_t n_mismatches;
    _Atomic uint32_t n_failed_sends;
    _Atomic uint32_t is_drained;
    uint32_t retransmitted;                         /* at the end */
};

struct soak_board {
    _Atomic uint32_t is_over;                       /* time is up: no new operation */
    _Atomic uint64_t beats;                         /* progress of all; whoever watches sees a hang */
    struct soak_told ranks[SOAK_RANKS];
};

enum soak_kind {
    SOAK_PUT,
    SOAK_FLAGGED_PUT,
    SOAK_BLOCK_PUT,
    SOAK_GET,
    SOAK_FLAGGED_GET,
    SOAK_BLOCK_GET,
    SOAK_AMO,
    SOAK_COMMON_ADD,
    SOAK_QUEUE_WRITE,
    SOAK_CHAIN,
    SOAK_KINDS,
};

struct soak_rank;

/* One post under way. */
struct soak_op {
    gni_post_descriptor_t descr;                    /* first: GNI_GetCompleted gives its address */
    gni_ct_put_post_descriptor_t more;              /* of a chain: its second element */
    bool in_use;
    enum soak_kind kind;
    unsigned target;
    uint32_t offset;                                /* in the lane */
    uint32_t len_bytes;
    uint32_t more_offset;
    uint32_t word;
    uint64_t number;                                /* what the data are made from */
    uint8_t *buffer;                                /* DATA_BYTES of registered memory, for this op alone */
};

struct soak_shadow {
    uint8_t data[DATA_BYTES];
    uint64_t words[WORDS];
    uint64_t flag;
};

struct soak_rank {
    unsigned rank;
    bool allows_errors;                             /* faults are injected */
    struct soak_board *board;
    struct soak_told *told;                         /* our own line */
    struct emu_random random;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t src_cq;
    gni_cq_handle_t dst_cq;
    gni_ep_handle_t eps[SOAK_RANKS];
    uint8_t *region;
    gni_mem_handle_t region_hndl;
    uint8_t *mail;
    gni_mem_handle_t mail_hndl;
    uint8_t *buffers;
    gni_mem_handle_t buffers_hndl;
    struct soak_shadow *shadows;                    /* one per target */
    struct soak_op ops[OPS_MAX];
    uint64_t events_from[SOAK_RANKS];
    uint64_t written_from[SOAK_RANKS];
    uint64_t written_sum_from[SOAK_RANKS];
    uint64_t sent_to[SOAK_RANKS];
    uint64_t taken_from[SOAK_RANKS];
    uint32_t sends_under_way;
    unsigned next_mailbox;
};

/* Says what was wrong, counts it, and goes on: one line for each of the first few. */
void soak_mismatch(struct soak_rank *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A call that may not fail here: ends the process. */
void soak_must(gni_return_t rc, const char *what);

/* rank.c: everything a rank does, until the board says that time is over; then its part of the final check. */
int soak_rank_main(struct fx_rank *rank, struct soak_board *board, uint64_t seed, bool allows_errors);

/* posts.c: starts a random post, if there is room. Takes a completion: whatever it should have done is checked. */
void soak_post(struct soak_rank *r);
void soak_complete(struct soak_rank *r, gni_cq_entry_t entry, gni_return_t rc);
bool soak_posts_under_way(const struct soak_rank *r);
/* All lanes of ours, everywhere, byte for byte. */
void soak_check_lanes(struct soak_rank *r);

/* messages.c */
void soak_send(struct soak_rank *r);
void soak_receive(struct soak_rank *r);

#endif
