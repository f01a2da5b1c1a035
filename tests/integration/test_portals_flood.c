/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that nobody has asked for: a million of them, from three processes, into blocks that the library manages
 * (max_size, unlinked when they are full, attached again), and queues that are too small for what happens.
 *
 * Shown: no message is lost, none comes twice, each is whole, those of one process come in the order of its calls, also
 * by their START events. An overflowing queue loses its oldest events and nothing else: the first event that is left
 * comes with PTL_EQ_DROPPED, the gap shows in `sequence`, memory, thresholds, acknowledgements and other queues are as
 * if nothing had been.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/portals_job.h"

#if defined(__SANITIZE_ADDRESS__)
#define MESSAGES 60000u /* of each sender; the sanitizers take their time */
#else
#define MESSAGES 333334u
#endif
#define SENDERS     3u
#define BLOCKS      4u
#define BLOCK_BYTES 262144u
#define MAX_BYTES   64u
#define WINDOW      2000u /* messages of a sender that the receiver has not taken */
#define PT          6u
#define TARGET_PID  400u

struct board {
    ptl_process_id_t target;
    _Atomic uint64_t taken[SENDERS + 1];
};

static struct fx fx;

static uint8_t byte_of(unsigned sender, uint64_t number, uint64_t i)
{
    return (uint8_t)(sender * 77 + number * 5 + i);
}

static uint64_t length_of(unsigned sender, uint64_t number)
{
    return (number * 7 + sender) % (MAX_BYTES + 1);
}

/* ---- a million ---- */

static struct {
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq;
    ptl_handle_me_t mark;
    uint8_t *blocks[BLOCKS];
    uint64_t started[SENDERS + 1];
    unsigned n_reattached;
} t;

static void attach_block(unsigned n)
{
    ptl_md_t md = { .start = t.blocks[n],
                    .length = BLOCK_BYTES,
                    .threshold = PTL_MD_THRESH_INF,
                    .max_size = MAX_BYTES,
                    .options = PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE | AUTO_UNLINK_EVENT,
                    .user_ptr = (void *)(uintptr_t)n,
                    .eq_handle = t.eq };
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

    PJ(PtlMEInsert(t.mark, pj_anybody(), 0, ~0ull, PTL_UNLINK, PTL_INS_BEFORE, &me));
    PJ(PtlMDAttach(me, md, PTL_UNLINK, &mdh));
}

static void take_message(struct board *board, const ptl_event_t *event)
{
    unsigned sender = (unsigned)event->initiator.pid - TARGET_PID;
    uint64_t number = event->hdr_data;
    const uint8_t *at = (const uint8_t *)event->md.start + event->offset;

    FX_CHECK(sender >= 1 && sender <= SENDERS);
    FX_CHECK(event->ni_fail_type == PTL_NI_OK);
    FX_CHECK(event->match_bits == number << 8);
    FX_CHECK(event->mlength == length_of(sender, number) && event->rlength == event->mlength);
    if (event->type == PTL_EVENT_PUT_START) {
        FX_CHECK(number == t.started[sender]++);
        return;
    }
    FX_CHECK(event->type == PTL_EVENT_PUT_END);
    FX_CHECK(number == atomic_load(&board->taken[sender]));
    for (uint64_t i = 0; i < event->mlength; i++)
        FX_CHECK(at[i] == byte_of(sender, number, i));
    atomic_store(&board->taken[sender], number + 1);
}

static int receive_all(struct fx_rank *rank)
{
    struct board *board = rank->shared;
    uint64_t left = (uint64_t)SENDERS * MESSAGES;
    ptl_sr_value_t drops = -1;
    ptl_event_t event;

    t.ni = pj_open(rank->fx, TARGET_PID, &board->target);
    PJ(PtlEQAlloc(t.ni, 3 * SENDERS * WINDOW, NULL, &t.eq));
    PJ(PtlMEAttach(t.ni, PT, pj_anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &t.mark));
    for (unsigned n = 0; n < BLOCKS; n++) {
        t.blocks[n] = malloc(BLOCK_BYTES);
        attach_block(n);
    }
    pthread_barrier_wait(rank->barrier);
    while (left > 0) {
        PJ(pj_next(t.eq, &event));
        if (event.type == PTL_EVENT_UNLINK) {
            attach_block((unsigned)(uintptr_t)event.md.user_ptr);
            t.n_reattached++;
            continue;
        }
        left -= event.type == PTL_EVENT_PUT_END;
        take_message(board, &event);
    }
    PJ(PtlNIStatus(t.ni, PTL_SR_DROP_COUNT, &drops));
    FX_CHECK(drops == 0);
    FX_CHECK(t.n_reattached > 8);
    pthread_barrier_wait(rank->barrier);
    PtlFini();
    for (unsigned n = 0; n < BLOCKS; n++)
        free(t.blocks[n]);
    return 0;
}

static int send_all(struct fx_rank *rank)
{
    static uint8_t data[WINDOW][MAX_BYTES];
    struct board *board = rank->shared;
    ptl_md_t md = { .start = data,
                    .length = sizeof(data),
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE,
                    .eq_handle = PTL_EQ_NONE };
    ptl_process_id_t id;
    ptl_handle_ni_t ni = pj_open(rank->fx, (ptl_pid_t)(TARGET_PID + rank->rank), &id);
    ptl_handle_md_t mdh;

    PJ(PtlMDBind(ni, md, PTL_RETAIN, &mdh));
    pthread_barrier_wait(rank->barrier);
    for (uint64_t number = 0; number < MESSAGES; number++) {
        uint64_t length = length_of(rank->rank, number);

        while (number - atomic_load(&board->taken[rank->rank]) >= WINDOW)
            sched_yield();
        for (uint64_t i = 0; i < length; i++)
            data[number % WINDOW][i] = byte_of(rank->rank, number, i);
        PJ(PtlPutRegion(mdh, number % WINDOW * MAX_BYTES, length, NO_ACK, board->target, PT, 0, number << 8, 0,
                        number));
    }
    pthread_barrier_wait(rank->barrier);
    PtlFini();
    return 0;
}

static int flood(struct fx_rank *rank)
{
    return rank->rank == 0 ? receive_all(rank) : send_all(rank);
}

static void test_a_million_unexpected_messages_come_in_order(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 1 + SENDERS, flood, NULL), 0);
}

/* ---- queues that overflow ---- */

#define COUNT    16u /* asked for */
#define TOO_MANY 5000u
#define SLOTS    8u /* of the memory */

static void put_number(struct fx_rank *rank, ptl_handle_md_t mdh, ptl_process_id_t target, uint64_t *number,
                       uint64_t value, ptl_pt_index_t pt)
{
    (void)rank;
    *number = value;
    PJ(PtlPut(mdh, PTL_ACK_REQ, target, pt, 0, 0, value % SLOTS * 8, value));
}

static int overflow_sender(struct fx_rank *rank)
{
    struct board *board = rank->shared;
    static uint64_t number;
    ptl_process_id_t id;
    ptl_handle_ni_t ni = pj_open(rank->fx, TARGET_PID + 1, &id);
    ptl_md_t md = {
        .start = &number, .length = 8, .threshold = PTL_MD_THRESH_INF, .options = PTL_MD_EVENT_START_DISABLE
    };
    ptl_handle_md_t mdh;
    uint64_t n_acks = 0;

    PJ(PtlEQAlloc(ni, 1024, NULL, &md.eq_handle));
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &mdh));
    pthread_barrier_wait(rank->barrier);
    for (uint64_t i = 0; i < TOO_MANY; i++) {
        put_number(rank, mdh, board->target, &number, i, PT);
        pj_expect(md.eq_handle, PTL_EVENT_SEND_END);
        FX_CHECK(pj_expect(md.eq_handle, PTL_EVENT_ACK).mlength == 8);
        n_acks++;
    }
    FX_CHECK(n_acks == TOO_MANY);
    pthread_barrier_wait(rank->barrier);
    pthread_barrier_wait(rank->barrier);
    put_number(rank, mdh, board->target, &number, TOO_MANY, PT);
    pj_expect(md.eq_handle, PTL_EVENT_SEND_END);
    pj_expect(md.eq_handle, PTL_EVENT_ACK);
    pthread_barrier_wait(rank->barrier);
    PtlFini();
    return 0;
}

/* Takes what is left. The numbers are without a gap up to the last; the first came with PTL_EQ_DROPPED. */
static void take_what_is_left(ptl_handle_eq_t eq, ptl_seq_t *sequence_out)
{
    ptl_event_t event;
    uint64_t next = 0;
    unsigned n = 0;
    int rc;

    while ((rc = PtlEQGet(eq, &event)) != PTL_EQ_EMPTY) {
        FX_CHECK(rc == (n == 0 ? PTL_EQ_DROPPED : PTL_OK));
        FX_CHECK(event.type == PTL_EVENT_PUT_END && event.mlength == 8);
        FX_CHECK(n == 0 ? event.hdr_data > 0 : event.hdr_data == next);
        FX_CHECK(n == 0 || event.sequence == (ptl_seq_t)(*sequence_out + 1));
        next = event.hdr_data + 1;
        *sequence_out = event.sequence;
        n++;
    }
    FX_CHECK(next == TOO_MANY);
    FX_CHECK(n >= COUNT && n < TOO_MANY);
}

static int overflow_target(struct fx_rank *rank)
{
    struct board *board = rank->shared;
    static uint64_t slots[SLOTS];
    ptl_handle_ni_t ni = pj_open(rank->fx, TARGET_PID, &board->target);
    ptl_md_t md = { .start = slots,
                    .length = sizeof(slots),
                    .threshold = 2 * TOO_MANY,
                    .options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE };
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;
    ptl_seq_t sequence = 0;
    ptl_event_t event;
    ptl_md_t now = { 0 };
    ptl_sr_value_t drops = -1;

    PJ(PtlEQAlloc(ni, COUNT, NULL, &md.eq_handle));
    PJ(PtlMEAttach(ni, PT, pj_anybody(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    PJ(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
    pthread_barrier_wait(rank->barrier);
    pthread_barrier_wait(rank->barrier);
    PJ(PtlMDUpdate(mdh, &now, NULL, PTL_EQ_NONE));
    FX_CHECK(now.threshold == (int)TOO_MANY);
    for (uint64_t i = 0; i < SLOTS; i++)
        FX_CHECK(slots[i] == TOO_MANY - SLOTS + i);
    PJ(PtlNIStatus(ni, PTL_SR_DROP_COUNT, &drops));
    FX_CHECK(drops == 0);
    take_what_is_left(md.eq_handle, &sequence);
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(pj_next(md.eq_handle, &event) == PTL_OK); /* said once */
    FX_CHECK(event.hdr_data == TOO_MANY && event.sequence == (ptl_seq_t)(sequence + 1));
    pthread_barrier_wait(rank->barrier);
    PtlFini();
    return 0;
}

static int overflow(struct fx_rank *rank)
{
    return rank->rank == 0 ? overflow_target(rank) : overflow_sender(rank);
}

static void test_overflow_loses_the_oldest_events_and_nothing_else(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, overflow, NULL), 0);
}

static int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_million_unexpected_messages_come_in_order),
        cmocka_unit_test(test_overflow_loses_the_oldest_events_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
