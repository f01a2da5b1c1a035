/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs that poll a queue fifty times in a row and then sleep, as the originals' examples do: on an idle fabric what
 * they wait for comes within those polls, and who slept once does not go on to miss whoever sleeps in turn.
 *
 * The ranks are processes with one port each. They sleep as such programs do; nothing here waits by sleeping. What is
 * counted are polls, of which a busy machine may spoil some: without the library's patience it would be all.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "libugni/src/ugni.h"
#include "tests/common/gni.h"

#define N_RANKS 4u
#define ROUNDS  40u
#define POLLS   50u
#define MS_NS   1000000

static struct fx fx;

/* Of the ranks and the test. */
static struct board {
    struct {
        uint32_t nic_addr;
        uint64_t addr;
        gni_mem_handle_t hndl;
    } of[N_RANKS];
    _Atomic unsigned n_unseen; /* polls that found nothing although something was there when they returned */
    _Atomic unsigned n_missed; /* times that POLLS polls were not enough */
} * board;

static int start(void **state)
{
    (void)state;
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return -1;
    fx_start(&fx, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    munmap(board, sizeof(*board));
    return fx_stop(&fx);
}

/* ---- ranks ---- */

static void nap(long ns)
{
    nanosleep(&(struct timespec){ .tv_nsec = ns }, NULL);
}

/* With an end point to the next rank. */
static void open_rank(struct fx_rank *rank, struct gx_side *me)
{
    unsigned next = (rank->rank + 1) % rank->n_ranks;

    gx_open(me, rank->fx, rank->fx->nids[rank->rank], 10 + rank->rank, 0);
    board->of[rank->rank].nic_addr = me->nic_addr;
    board->of[rank->rank].addr = (uint64_t)(uintptr_t)me->mem;
    board->of[rank->rank].hndl = me->mem_hndl;
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(GNI_EpCreate(me->nic, me->src_cq, &me->ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(me->ep, board->of[next].nic_addr, 10 + next) == GNI_RC_SUCCESS);
}

static int close_rank(struct fx_rank *rank, struct gx_side *me)
{
    pthread_barrier_wait(rank->barrier);
    gx_close(me);
    return 0;
}

static void post(struct fx_rank *rank, struct gx_side *me, gni_post_type_t type, uint16_t cq_mode,
                 gni_post_descriptor_t *d)
{
    unsigned next = (rank->rank + 1) % rank->n_ranks;

    *d = (gni_post_descriptor_t){ .type = type,
                                  .cq_mode = cq_mode,
                                  .length = 8,
                                  .local_addr = (uint64_t)(uintptr_t)me->mem + 64,
                                  .local_mem_hndl = me->mem_hndl,
                                  .remote_addr = board->of[next].addr,
                                  .remote_mem_hndl = board->of[next].hndl };
    FX_CHECK(GNI_PostFma(me->ep, d) == GNI_RC_SUCCESS);
}

/* A put whose own completion is taken as well. */
static void put(struct fx_rank *rank, struct gx_side *me)
{
    gni_post_descriptor_t *done = NULL;
    gni_post_descriptor_t d;

    post(rank, me, GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT, &d);
    FX_CHECK(gx_complete(me->src_cq, &done) == GNI_RC_SUCCESS && done == &d);
}

/* Polls as such a program does. */
static void await(gni_cq_handle_t cq, long nap_ns, gni_cq_entry_t *entry_out)
{
    unsigned polls = 0;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(cq, entry_out)) == GNI_RC_NOT_DONE) {
        if (++polls % POLLS != 0)
            continue;
        if (polls == POLLS)
            atomic_fetch_add(&board->n_missed, 1);
        nap(nap_ns);
    }
    FX_CHECK(rc == GNI_RC_SUCCESS);
}

/* ---- a poll that waits ---- */

static void await_and_count(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(cq, &entry)) == GNI_RC_NOT_DONE) {
        if (!emu_cq_is_empty(&gnii_cq_find(cq)->consumer))
            atomic_fetch_add(&board->n_unseen, 1);
    }
    FX_CHECK(rc == GNI_RC_SUCCESS);
}

/* Two ranks on one core: each has its turn while the other one's poll yields. */
static int take_turns(struct fx_rank *rank)
{
    struct gx_side me;
    cpu_set_t cpus;

    FX_CHECK(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
    for (int cpu = 0, n = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &cpus) && n++ > 0)
            CPU_CLR(cpu, &cpus);
    }
    FX_CHECK(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
    open_rank(rank, &me);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (rank->rank == 0)
            put(rank, &me);
        await_and_count(me.dst_cq);
        if (rank->rank == 1)
            put(rank, &me);
    }
    return close_rank(rank, &me);
}

static void test_a_poll_returns_what_came_while_it_waited(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, take_turns, NULL), 0);
    assert_in_range(atomic_load(&board->n_unseen), 0, ROUNDS / 2);
}

/* ---- the fabric's time ---- */

/* The nap lets emunic fall asleep, too. */
static int get_after_naps(struct fx_rank *rank)
{
    struct gx_side me;

    open_rank(rank, &me);
    for (unsigned i = 0; i < ROUNDS; i++) {
        gni_post_descriptor_t *done = NULL;
        gni_post_descriptor_t d;
        gni_cq_entry_t entry;

        nap(3 * MS_NS);
        post(rank, &me, GNI_POST_FMA_GET, GNI_CQMODE_GLOBAL_EVENT, &d);
        await(me.src_cq, 10 * MS_NS, &entry);
        FX_CHECK(GNI_GetCompleted(me.src_cq, entry, &done) == GNI_RC_SUCCESS && done == &d);
    }
    return close_rank(rank, &me);
}

static void test_an_idle_fabric_answers_within_fifty_polls(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, get_after_naps, NULL), 0);
    assert_in_range(atomic_load(&board->n_missed), 0, 2 * ROUNDS / 4);
    atomic_store(&board->n_missed, 0);
    assert_int_equal(fx_run(&fx, N_RANKS, get_after_naps, NULL), 0);
    assert_in_range(atomic_load(&board->n_missed), 0, N_RANKS * ROUNDS / 4);
}

/* ---- sleepers ---- */

/* Rank 0 puts a millisecond later than rank 1 begins to poll, who would sleep for twenty. */
static int meet_late(struct fx_rank *rank)
{
    struct gx_side me;
    gni_cq_entry_t entry;

    open_rank(rank, &me);
    for (unsigned i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(rank->barrier);
        if (rank->rank == 0) {
            nap(MS_NS);
            put(rank, &me);
        } else {
            await(me.dst_cq, 20 * MS_NS, &entry);
        }
    }
    return close_rank(rank, &me);
}

static void test_who_slept_finds_what_comes_a_part_of_that_later(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, meet_late, NULL), 0);
    assert_in_range(atomic_load(&board->n_missed), 0, ROUNDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_poll_returns_what_came_while_it_waited, start, stop),
        cmocka_unit_test_setup_teardown(test_an_idle_fabric_answers_within_fifty_polls, start, stop),
        cmocka_unit_test_setup_teardown(test_who_slept_finds_what_comes_a_part_of_that_later, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
