/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of the soak: objects, what it knows about everybody's memory, and what all ranks tell each other.
 *
 * Every rank has a region with one lane for each rank. Only that rank writes its lane, so it can keep a copy of it, the
 * shadow, and knows at any time what every byte must be. A lane is data, and words for atomics. One more line of the
 * region is for everybody: its words only grow, by adds whose sum all ranks know together.
 *
 * On a machine of several hosts, one can be lost (loss.c). Its ranks then have a second life, with new memory.
 */
#ifndef TESTS_SOAK_SOAK_H
#define TESTS_SOAK_SOAK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <gni_pub.h>

#include "emunic/fabric/random.h"
#include "tests/common/fixture.h"

#define SOAK_RANKS    16u
#define SOAK_NODES    4u
#define DATA_BYTES    (256u << 10)         /* of a lane */
#define WORDS         16u                  /* of a lane, for atomics */
#define LANE_BYTES    (DATA_BYTES + 4096u) /* data, words, a word for flags */
#define COMMON_WORDS  8u
#define REGION_BYTES  (SOAK_RANKS * (uint64_t)LANE_BYTES + 4096u)
#define OPS_MAX       12u /* under way at a time */
#define MESSAGE_BYTES 1024u
#define CREDITS       8u

/* What one rank tells the others. In shared memory of the test; each line is written by its rank. */
struct soak_told {
    _Alignas(64) uint64_t region_addr;
    gni_mem_handle_t region_hndl;
    uint64_t mail_addr;
    gni_mem_handle_t mail_hndl;
    uint32_t nic_addr;
    uint32_t mailbox_bytes;
    _Atomic uint64_t events_to[SOAK_RANKS];  /* remote events that its posts to that rank must have raised */
    _Atomic uint64_t written_to[SOAK_RANKS]; /* queue writes to that rank, and the sum of their values */
    _Atomic uint64_t written_sum_to[SOAK_RANKS];
    _Atomic uint64_t messages_to[SOAK_RANKS];
    _Atomic uint64_t added_to[SOAK_RANKS][COMMON_WORDS];
    /* What its posts that failed when its host was lost may have done. */
    _Atomic uint64_t maybe_events_to[SOAK_RANKS];
    _Atomic uint64_t maybe_written_to[SOAK_RANKS];
    _Atomic uint64_t maybe_written_sum_to[SOAK_RANKS];
    _Atomic uint64_t maybe_added_to[SOAK_RANKS][COMMON_WORDS];
    _Atomic uint64_t errors;       /* completions with an error */
    _Atomic uint64_t lost;         /* posts and messages that failed because of the lost host */
    _Atomic uint64_t last_lost_ns; /* when the last of them did */
    _Atomic uint32_t life;         /* to which others are to connect; 1: after its host was lost */
    _Atomic uint32_t is_down;      /* its host was lost, and all that it had there is closed */
    _Atomic uint32_t n_given_up;   /* ranks of the lost host to which nothing is under way any more */
    _Atomic uint32_t n_met;        /* of those in their second life, that it is connected to */
    _Atomic uint64_t n_ops;
    _Atomic uint64_t n_bytes;
    _Atomic uint64_t n_messages;
    _Atomic uint64_t n_mismatches;
    _Atomic uint32_t n_failed_sends;
    _Atomic uint32_t is_drained;
    _Atomic uint32_t is_checked;
    uint32_t retransmitted; /* at the end */
};

struct soak_board {
    _Atomic uint32_t is_over; /* time is up: no new operation */
    _Atomic uint64_t beats;   /* progress of all; whoever watches sees a hang */
    unsigned host_of[SOAK_RANKS];
    bool comes_back;            /* the host that is lost */
    _Atomic uint32_t lost_host; /* from just before its emunic is killed; 0, the head: none */
    _Atomic uint32_t is_back;
    _Atomic uint32_t n_open; /* ranks of it that have new memory */
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
    gni_post_descriptor_t descr;       /* first: GNI_GetCompleted gives its address */
    gni_ct_put_post_descriptor_t more; /* of a chain: its second element */
    bool in_use;
    enum soak_kind kind;
    unsigned target;
    uint32_t offset; /* in the lane */
    uint32_t len_bytes;
    uint32_t more_offset;
    uint32_t word;
    uint64_t number; /* what the data are made from */
    uint8_t *buffer; /* DATA_BYTES of registered memory, for this op alone */
};

struct soak_shadow {
    uint8_t data[DATA_BYTES];
    uint64_t words[WORDS];
    uint64_t flag;
};

struct soak_rank {
    const struct fx *fx;
    unsigned rank;
    int n_fds;          /* without NIC and memory */
    bool allows_errors; /* faults are injected */
    bool is_cut_off;    /* our own host has been lost */
    struct soak_board *board;
    struct soak_told *told; /* our own line */
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
    struct soak_shadow *shadows; /* one per target */
    struct soak_op ops[OPS_MAX];
    uint64_t events_from[SOAK_RANKS];
    uint64_t written_from[SOAK_RANKS];
    uint64_t written_sum_from[SOAK_RANKS];
    uint64_t sent_to[SOAK_RANKS];
    uint64_t taken_from[SOAK_RANKS];
    uint32_t sends_under_way;
    uint32_t lives[SOAK_RANKS];     /* to which of a rank's we are connected */
    bool is_gone[SOAK_RANKS];       /* something to that life has failed: nothing new goes there */
    bool has_given_up[SOAK_RANKS];  /* and nothing is under way there any more */
    uint32_t sends_to[SOAK_RANKS];  /* under way */
    struct soak_op unsure[OPS_MAX]; /* failed when our host was lost: done or not */
    unsigned n_unsure;
    unsigned next_mailbox;
};

/* Says what was wrong, counts it, and goes on: one line for each of the first few. */
void soak_mismatch(struct soak_rank *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A call that may not fail here: ends the process. If our host has been lost it may, and that is noted. */
void soak_must(struct soak_rank *r, gni_return_t rc, const char *what);

/* rank.c: everything a rank does, until the board says that time is over; then its part of the final check. */
int soak_rank_main(struct fx_rank *rank, struct soak_board *board, uint64_t seed, bool allows_errors);
/* NIC and memory; then endpoints. */
void soak_open(struct soak_rank *r);
void soak_connect(struct soak_rank *r, unsigned peer);
void soak_close(struct soak_rank *r);
void soak_take_completions(struct soak_rank *r);

/* posts.c: starts a random post, if there is room. Takes a completion: whatever it should have done is checked. */
void soak_post(struct soak_rank *r);
void soak_complete(struct soak_rank *r, gni_cq_entry_t entry, gni_return_t rc);
bool soak_posts_under_way(const struct soak_rank *r);
bool soak_posts_to(const struct soak_rank *r, unsigned target);
/*
 * All lanes of ours, byte for byte, wherever there is somebody. What an unsure post would have made of a byte is right,
 * too, and is then what the shadow says.
 */
void soak_check_lanes(struct soak_rank *r);

/* messages.c */
void soak_send(struct soak_rank *r);
void soak_receive(struct soak_rank *r);

/* loss.c */

/* May what goes to that rank fail, because one of the two is on the lost host, and not in its second life? */
bool soak_may_fail(const struct soak_rank *r, unsigned target);
/* Something to that rank has failed for that reason. */
void soak_note_loss(struct soak_rank *r, unsigned target);
/* On other hosts: gives up ranks that are lost, and connects to their second lives. */
void soak_meet(struct soak_rank *r);
/* On the lost host: waits for the end of all that is under way and closes everything. */
void soak_go_down(struct soak_rank *r);
/* Once the host is back: everything anew. What the first life has left elsewhere is compared. */
void soak_come_back(struct soak_rank *r);

#endif
