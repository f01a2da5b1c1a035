/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many more ranks than cores, all of them polling: they make room for each other (EMUNIC_REST_AFTER), and still nothing
 * is lost, in whatever they poll. Behaviour only; what it costs is tests/bench/gni_ring_rank.c. Specification:
 * spec/ugni.md 4.9.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/proc.h"
#include "tests/conformance/mailbox.h"

#define RANKS   16u
#define LAPS    20u
#define CREDITS 4

static struct fx fx;

/* Whatever the machine has, ranks get two cores: they are a crowd there. */
static void stay_on_two_cpus(void)
{
    cpu_set_t all, two;

    CPU_ZERO(&two);
    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&two) < 2; cpu++) {
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &two);
    }
    assert_int_equal(sched_setaffinity(0, sizeof(two), &two), 0);
}

static int start(void **state)
{
    struct fx_options options = { .n_ranks = RANKS };

    (void)state;
    stay_on_two_cpus();
    fx_start(&fx, &options);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fx_stop(&fx);
    return 0;
}

/* What ranks tell each other. */
struct card {
    uint32_t nic_addr;
    pid_t pid;
    uint64_t mem;
    gni_mem_handle_t mem_hndl;
    gni_smsg_attr_t to_next; /* mailbox for messages between this rank and its next */
    gni_smsg_attr_t to_previous;
    _Atomic bool polls;
    bool has_slept; /* since then */
};

static uint32_t next_of(const struct fx_rank *rank)
{
    return (rank->rank + 1) % rank->n_ranks;
}

static uint32_t previous_of(const struct fx_rank *rank)
{
    return (rank->rank + rank->n_ranks - 1) % rank->n_ranks;
}

static gni_ep_handle_t connect_to(const struct gx_side *side, const struct card *cards, uint32_t peer)
{
    gni_ep_handle_t ep;

    FX_CHECK(GNI_EpCreate(side->nic, side->src_cq, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, cards[peer].nic_addr, peer) == GNI_RC_SUCCESS);
    return ep;
}

static struct card *open_rank(struct fx_rank *rank, struct gx_side *side)
{
    struct card *cards = rank->shared;

    gx_open(side, rank->fx, rank->rank, rank->rank, 0);
    cards[rank->rank].nic_addr = side->nic_addr;
    cards[rank->rank].pid = getpid();
    cards[rank->rank].mem = (uint64_t)(uintptr_t)side->mem;
    cards[rank->rank].mem_hndl = side->mem_hndl;
    return cards;
}

static void take(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;

    FX_CHECK(gx_next(cq, &entry) == GNI_RC_SUCCESS);
}

/* ---- rings: rank 0 starts each lap ---- */

/*
 * The next message, looked for at each entry of cq (NULL: at each poll). Returned credits raise entries as well, and
 * the entry of a message that came with another's is still there next time: entries are hints.
 */
static void *next_message(gni_ep_handle_t ep, gni_cq_handle_t cq)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;

    if (!cq) {
        FX_CHECK(mb_next(ep, &message, &tag) == GNI_RC_SUCCESS);
        return message;
    }
    do {
        take(cq);
        tag = GNI_SMSG_ANY_TAG;
    } while (GNI_SmsgGetNextWTag(ep, &message, &tag) == GNI_RC_NOT_DONE);
    FX_CHECK(message);
    return message;
}

/* A message around the ring. `events`: arrivals are polled in a queue; else in the mailbox. */
static int pass_messages(struct fx_rank *rank, bool has_events)
{
    struct mailbox out, in;
    struct gx_side side;
    struct card *cards = open_rank(rank, &side);
    gni_cq_handle_t cq = has_events ? side.dst_cq : NULL;
    gni_ep_handle_t next, previous;

    mb_open(&out, side.nic, cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64, 0);
    mb_open(&in, side.nic, cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64, 0);
    cards[rank->rank].to_next = out.attr;
    cards[rank->rank].to_previous = in.attr;
    pthread_barrier_wait(rank->barrier);
    next = connect_to(&side, cards, next_of(rank));
    previous = connect_to(&side, cards, previous_of(rank));
    FX_CHECK(GNI_SmsgInit(next, &out.attr, &cards[next_of(rank)].to_previous) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_SmsgInit(previous, &in.attr, &cards[previous_of(rank)].to_next) == GNI_RC_SUCCESS);
    pthread_barrier_wait(rank->barrier);

    for (uint32_t lap = 0; lap < LAPS; lap++) {
        if (rank->rank == 0)
            FX_CHECK(mb_send(next, side.src_cq, NULL, 0, &lap, sizeof(lap), 0, 1) == GNI_RC_SUCCESS);
        FX_CHECK(memcmp(next_message(previous, cq), &lap, sizeof(lap)) == 0);
        FX_CHECK(GNI_SmsgRelease(previous) == GNI_RC_SUCCESS);
        if (rank->rank != 0)
            FX_CHECK(mb_send(next, side.src_cq, NULL, 0, &lap, sizeof(lap), 0, 1) == GNI_RC_SUCCESS);
        take(side.src_cq);
    }
    pthread_barrier_wait(rank->barrier);
    GNI_EpDestroy(next);
    GNI_EpDestroy(previous);
    mb_close(&out);
    mb_close(&in);
    gx_close(&side);
    return 0;
}

static int pass_messages_with_events(struct fx_rank *rank)
{
    return pass_messages(rank, true);
}

static int pass_messages_without_events(struct fx_rank *rank)
{
    return pass_messages(rank, false);
}

/* A word around the ring: each rank looks into its memory, and polls a queue where nothing ever comes. */
static int pass_words(struct fx_rank *rank)
{
    struct gx_side side;
    struct card *cards = open_rank(rank, &side);
    _Atomic uint64_t *word = (_Atomic uint64_t *)(void *)side.mem;
    gni_post_descriptor_t put;
    gni_post_descriptor_t *done;
    gni_ep_handle_t next;
    gni_cq_entry_t entry;

    pthread_barrier_wait(rank->barrier);
    next = connect_to(&side, cards, next_of(rank));
    for (uint64_t lap = 1; lap <= LAPS; lap++) {
        uint64_t end_ns = emu_clock_ns() + MB_PATIENCE_NS;
        uint64_t *value = (uint64_t *)(void *)(side.mem + 64);

        for (unsigned turn = 0; turn < 2; turn++) {
            if (turn == (rank->rank == 0 ? 0u : 1u)) {
                *value = lap;
                put = (gni_post_descriptor_t){ .type = GNI_POST_FMA_PUT,
                                               .cq_mode = GNI_CQMODE_LOCAL_EVENT,
                                               .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
                                               .local_addr = (uint64_t)(uintptr_t)value,
                                               .local_mem_hndl = side.mem_hndl,
                                               .length = sizeof(*value),
                                               .remote_addr = cards[next_of(rank)].mem,
                                               .remote_mem_hndl = cards[next_of(rank)].mem_hndl };
                FX_CHECK(GNI_PostFma(next, &put) == GNI_RC_SUCCESS);
                FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS);
            } else {
                while (atomic_load(word) < lap && emu_clock_ns() < end_ns)
                    FX_CHECK(GNI_CqGetEvent(side.dst_cq, &entry) == GNI_RC_NOT_DONE);
                FX_CHECK(atomic_load(word) == lap);
            }
        }
    }
    pthread_barrier_wait(rank->barrier);
    GNI_EpDestroy(next);
    gx_close(&side);
    return 0;
}

static void test_messages_go_round_when_ranks_poll_queues(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, RANKS, pass_messages_with_events, NULL), 0);
}

static void test_messages_go_round_when_ranks_poll_mailboxes(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, RANKS, pass_messages_without_events, NULL), 0);
}

static void test_words_go_round_when_ranks_poll_memory(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, RANKS, pass_words, NULL), 0);
}

/* ---- loss ---- */

static bool sleeps(pid_t pid)
{
    char path[64], state = '?';
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (!file)
        return false;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = '?';
    fclose(file);
    return state == 'S';
}

/* Has each of the others been seen asleep, in a poll? */
static bool all_have_slept(void *arg)
{
    struct fx_rank *rank = arg;
    struct card *cards = rank->shared;

    for (unsigned r = 1; r < rank->n_ranks; r++) {
        cards[r].has_slept = cards[r].has_slept || (atomic_load(&cards[r].polls) && sleeps(cards[r].pid));
        if (!cards[r].has_slept)
            return false;
    }
    return true;
}

static int poll_until_emunic_dies(struct fx_rank *rank)
{
    struct gx_side side;
    struct card *cards = open_rank(rank, &side);
    gni_cq_entry_t entry;

    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 0) {
        FX_CHECK(eventually(all_have_slept, rank, MB_PATIENCE_NS));
        FX_CHECK(kill(rank->fx->daemon, SIGKILL) == 0);
    }
    atomic_store(&cards[rank->rank].polls, true);
    FX_CHECK(gx_next(side.dst_cq, &entry) == GNI_RC_TRANSACTION_ERROR);
    return 0;
}

static void test_loss_of_emunic_is_seen_by_all_that_rest(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, RANKS, poll_until_emunic_dies, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_messages_go_round_when_ranks_poll_queues, start, stop),
        cmocka_unit_test_setup_teardown(test_messages_go_round_when_ranks_poll_mailboxes, start, stop),
        cmocka_unit_test_setup_teardown(test_words_go_round_when_ranks_poll_memory, start, stop),
        cmocka_unit_test_setup_teardown(test_loss_of_emunic_is_seen_by_all_that_rest, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
