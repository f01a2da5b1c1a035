/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that are unlinked as soon as the other side is known to be done: two processes tell each other what they
 * have seen by memory that they share, so nothing of Portals lies in between. Neither is told that its descriptor is in
 * use, but where the emunic that has to tell it so gets no core for long. (That it is in use while an operation is
 * pending for other reasons: portals-loss, portals-busy. That it is waited for on one host: portals_order.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/common/portals_job.h"

#define PT     4u
#define BYTES  40000u
#define ROUNDS 400u
#define BRIEF  15000u /* between hosts: one message */

enum kind { PUT_8, PUT_LONG, GET_8, GET_LONG, KINDS };

/* In the memory that both share. */
struct board {
    ptl_process_id_t target;
    _Atomic uint64_t turn; /* what has been done so far, by either */
    _Atomic uint32_t refused;
};

static struct fx fx;

static void await(struct board *board, uint64_t turn)
{
    uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;

    while (atomic_load(&board->turn) < turn) {
        if (emu_clock_ns() > end_ns)
            pj_must(PTL_FAIL, "the other side is not heard of");
    }
}

/* Asleep until it comes: who wakes a process up is often the one that makes room for it. */
static void take(ptl_handle_eq_t eq, ptl_event_kind_t type)
{
    ptl_event_t event;

    PJ(PtlEQWait(eq, &event));
    if (event.type != type || event.ni_fail_type != PTL_NI_OK)
        pj_must(PTL_FAIL, "another event");
}

static void unlink_at_once(struct board *board, ptl_handle_md_t mdh)
{
    int rc = PtlMDUnlink(mdh);

    if (rc == PTL_MD_IN_USE)
        atomic_fetch_add(&board->refused, 1);
    while (rc == PTL_MD_IN_USE)
        rc = PtlMDUnlink(mdh);
    pj_must(rc, "PtlMDUnlink");
}

static void unlink_entry_at_once(struct board *board, ptl_handle_me_t me)
{
    int rc = PtlMEUnlink(me);

    if (rc == PTL_ME_IN_USE)
        atomic_fetch_add(&board->refused, 1);
    while (rc == PTL_ME_IN_USE)
        rc = PtlMEUnlink(me);
    pj_must(rc, "PtlMEUnlink");
}

static ptl_md_t md_of(uint8_t *memory, uint64_t length, unsigned options, ptl_handle_eq_t eq)
{
    return (ptl_md_t){ .start = memory,
                       .length = length,
                       .threshold = PTL_MD_THRESH_INF,
                       .options = options | PTL_MD_EVENT_START_DISABLE,
                       .eq_handle = eq };
}

static uint64_t length_of(unsigned round)
{
    return round % KINDS == PUT_8 || round % KINDS == GET_8 ? 8 : BYTES;
}

static bool is_put(unsigned round)
{
    return round % KINDS == PUT_8 || round % KINDS == PUT_LONG;
}

static void move(ptl_handle_md_t mdh, ptl_process_id_t target, unsigned round)
{
    if (is_put(round))
        PJ(PtlPut(mdh, NO_ACK, target, PT, 0, 0, 0, 0));
    else
        PJ(PtlGet(mdh, target, PT, 0, 0, 0));
}

/* ---- the initiator's descriptor, when the target has seen the END ---- */

static void initiate(struct board *board, ptl_handle_ni_t ni, uint8_t *memory)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        ptl_handle_md_t mdh;

        PJ(PtlMDBind(ni, md_of(memory, length_of(round), 0, PTL_EQ_NONE), PTL_RETAIN, &mdh));
        move(mdh, board->target, round);
        await(board, 2 * round + 2);
        unlink_at_once(board, mdh);
        atomic_fetch_add(&board->turn, 1);
    }
}

static void be_hit(struct board *board, ptl_handle_eq_t eq)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        take(eq, is_put(round) ? PTL_EVENT_PUT_END : PTL_EVENT_GET_END);
        atomic_fetch_add(&board->turn, 1);
    }
}

/* ---- the target's, when the initiator has the reply ---- */

static void get(struct board *board, ptl_handle_ni_t ni, uint8_t *memory, ptl_handle_eq_t eq)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        ptl_handle_md_t mdh;

        await(board, 2 * round + 2);
        PJ(PtlMDBind(ni, md_of(memory, round % 2 ? 8 : BRIEF, 0, eq), PTL_RETAIN, &mdh));
        PJ(PtlGet(mdh, board->target, PT, 0, 0, 0));
        if (IS_CRAY)
            take(eq, PTL_EVENT_SEND_END);
        take(eq, PTL_EVENT_REPLY_END);
        unlink_at_once(board, mdh);
        atomic_fetch_add(&board->turn, 1);
    }
}

static void attach(ptl_handle_ni_t ni, uint8_t *memory, ptl_handle_eq_t eq, ptl_handle_me_t *me, ptl_handle_md_t *mdh)
{
    unsigned options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE;

    PJ(PtlMEAttach(ni, PT, pj_anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, me));
    PJ(PtlMDAttach(*me, md_of(memory, BYTES, options, eq), PTL_RETAIN, mdh));
}

static void be_read(struct board *board, ptl_handle_ni_t ni, uint8_t *memory)
{
    ptl_handle_md_t mdh;
    ptl_handle_me_t me;

    for (unsigned round = 0; round < ROUNDS; round++) {
        attach(ni, memory, PTL_EQ_NONE, &me, &mdh);
        atomic_fetch_add(&board->turn, 1);
        await(board, 2 * round + 3);
        if (round % 4 < 2)
            unlink_at_once(board, mdh);
        unlink_entry_at_once(board, me);
    }
}

/* ---- tests ---- */

static int body(struct fx_rank *rank)
{
    static uint8_t memory[BYTES];
    struct board *board = rank->shared;
    bool unlinks_entries = *(bool *)rank->arg;
    ptl_process_id_t self;
    ptl_handle_ni_t ni = pj_open(rank->fx, (ptl_pid_t)(200 + rank->rank), &self);
    ptl_handle_md_t mdh;
    ptl_handle_me_t me;
    ptl_handle_eq_t eq;

    PJ(PtlEQAlloc(ni, 64, NULL, &eq));
    if (rank->rank == 1) {
        board->target = self;
        if (!unlinks_entries)
            attach(ni, memory, eq, &me, &mdh);
        atomic_fetch_add(&board->turn, 1);
    }
    await(board, 1);
    if (rank->rank == 0 && unlinks_entries)
        get(board, ni, memory, eq);
    else if (rank->rank == 0)
        initiate(board, ni, memory);
    else if (unlinks_entries)
        be_read(board, ni, memory);
    else
        be_hit(board, eq);
    pthread_barrier_wait(rank->barrier);
    PtlFini();
    if (rank->rank == 0)
        printf("# %u of %u refused\n", atomic_load(&board->refused), ROUNDS);
    return atomic_load(&board->refused) > ROUNDS / (getenv("FX_HOSTS") ? 4 : 50);
}

static void test_initiator_unlinks_what_the_target_has_seen(void **state)
{
    bool unlinks_entries = false;

    (void)state;
    assert_int_equal(fx_run(&fx, 2, body, &unlinks_entries), 0);
}

static void test_target_unlinks_what_the_initiator_has(void **state)
{
    bool unlinks_entries = true;

    (void)state;
    assert_int_equal(fx_run(&fx, 2, body, &unlinks_entries), 0);
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
        cmocka_unit_test(test_initiator_unlinks_what_the_target_has_seen),
        cmocka_unit_test(test_target_unlinks_what_the_initiator_has),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
