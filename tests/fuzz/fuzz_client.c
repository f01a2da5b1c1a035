/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hostile clients beside a well-behaved job.
 *
 * For EMU_FUZZ_SECONDS (60) two hostile members of one domain (hostile_member.c) and a confused administrator
 * (hostile_admin.c) do what they can; each lives for a random while, is killed and comes again. In another domain, on
 * the same nodes of the same emunic, jobs of three processes put, get, add and send messages, check every byte and end,
 * one after the other. At the end emunic must be alive, must have let go of everything, and must end cleanly.
 * EMU_TEST_SEED repeats the choices of a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"
#include "tests/fuzz/beside.h"
#include "tests/fuzz/hostile.h"

#define ROUNDS      12u
#define CREDITS     4u
#define MESSAGE_MAX 1000u
#define ADDS        20u
#define MEMBERS     2u
#define WORKERS     (MEMBERS + 1)
#define PATIENCE_NS 20000000000ull

static struct beside beside;
static struct hostile_counts *counts;

/* ---- the job ---- */

struct card { /* what a rank tells the others */
    uint32_t nic_addr;
    gni_mem_handle_t mem_hndl;
    uint64_t mem;
    gni_smsg_attr_t to_next;
    gni_smsg_attr_t to_previous;
};

struct job_rank {
    const struct fx_rank *rank;
    struct emu_random random;
    struct gx_side side;
    struct card *cards; /* of all ranks, shared */
    unsigned next;
    unsigned previous;
    gni_ep_handle_t next_ep;
    gni_ep_handle_t previous_ep;
    uint8_t *boxes[2];
    gni_mem_handle_t box_hndls[2];
};

static void wait_for_all(const struct job_rank *j)
{
    pthread_barrier_wait(j->rank->barrier);
}

static gni_smsg_attr_t open_box(struct job_rank *j, unsigned which)
{
    gni_smsg_attr_t attr = { .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                             .mbox_maxcredit = CREDITS,
                             .msg_maxsize = MESSAGE_MAX };
    unsigned bytes;

    FX_CHECK(GNI_SmsgBufferSizeNeeded(&attr, &bytes) == GNI_RC_SUCCESS);
    j->boxes[which] = aligned_alloc(4096, (bytes + 4095) & ~4095u);
    FX_CHECK(j->boxes[which]);
    memset(j->boxes[which], 0, bytes);
    FX_CHECK(GNI_MemRegister(j->side.nic, (uint64_t)(uintptr_t)j->boxes[which], bytes, NULL, GNI_MEM_READWRITE,
                             (uint32_t)-1, &j->box_hndls[which]) == GNI_RC_SUCCESS);
    attr.msg_buffer = j->boxes[which];
    attr.buff_size = bytes;
    attr.mem_hndl = j->box_hndls[which];
    return attr;
}

static gni_ep_handle_t connect_to(struct job_rank *j, unsigned peer)
{
    gni_ep_handle_t ep;

    FX_CHECK(GNI_EpCreate(j->side.nic, j->side.src_cq, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, j->cards[peer].nic_addr, peer) == GNI_RC_SUCCESS);
    return ep;
}

static void open_job(struct job_rank *j, const struct fx_rank *rank)
{
    struct card *own;

    *j = (struct job_rank){ .rank = rank,
                            .random = { *(const uint64_t *)rank->arg + rank->rank },
                            .cards = rank->shared,
                            .next = (rank->rank + 1) % rank->n_ranks,
                            .previous = (rank->rank + rank->n_ranks - 1) % rank->n_ranks };
    gx_open(&j->side, rank->fx, rank->fx->nids[rank->rank], rank->rank, 0);
    own = &j->cards[rank->rank];
    own->to_next = open_box(j, 0);
    own->to_previous = open_box(j, 1);
    own->nic_addr = j->side.nic_addr;
    own->mem_hndl = j->side.mem_hndl;
    own->mem = (uint64_t)(uintptr_t)j->side.mem;
    wait_for_all(j);
    j->next_ep = connect_to(j, j->next);
    j->previous_ep = connect_to(j, j->previous);
    FX_CHECK(GNI_SmsgInit(j->next_ep, &own->to_next, &j->cards[j->next].to_previous) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_SmsgInit(j->previous_ep, &own->to_previous, &j->cards[j->previous].to_next) == GNI_RC_SUCCESS);
    wait_for_all(j);
}

static void close_job(struct job_rank *j)
{
    wait_for_all(j);
    FX_CHECK(GNI_EpDestroy(j->next_ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpDestroy(j->previous_ep) == GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        FX_CHECK(GNI_MemDeregister(j->side.nic, &j->box_hndls[i]) == GNI_RC_SUCCESS);
        free(j->boxes[i]);
    }
    gx_close(&j->side);
}

/* One transfer of any kind between our memory and the next rank's; done when this returns. */
static void transfer(struct job_rank *j, gni_post_type_t type, uint64_t own_off, uint64_t peer_off, uint64_t length)
{
    gni_post_descriptor_t *done = NULL;
    gni_post_descriptor_t d = {
        .type = type,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .local_addr = (uint64_t)(uintptr_t)j->side.mem + own_off,
        .local_mem_hndl = j->side.mem_hndl,
        .remote_addr = j->cards[j->next].mem + peer_off,
        .remote_mem_hndl = j->cards[j->next].mem_hndl,
        .length = length,
    };
    bool is_rdma = type == GNI_POST_RDMA_PUT || type == GNI_POST_RDMA_GET;

    FX_CHECK((is_rdma ? GNI_PostRdma(j->next_ep, &d) : GNI_PostFma(j->next_ep, &d)) == GNI_RC_SUCCESS);
    FX_CHECK(gx_complete(j->side.src_cq, &done) == GNI_RC_SUCCESS);
    FX_CHECK(done == &d);
}

/* Memory: what we offer, what the previous rank puts, what we fetch, the counter. */
#define OFFER_AT   0u
#define LANDING_AT 20480u
#define FETCHED_AT 40960u
#define COUNTER_AT 61440u
#define AREA_BYTES 20000u

static void exchange_data(struct job_rank *j, unsigned round)
{
    uint64_t length = 4 * (1 + emu_random_below(&j->random, AREA_BYTES / 4 - 1));
    bool is_rdma = emu_random_below(&j->random, 2);
    uint8_t *mem = j->side.mem;

    for (uint64_t i = 0; i < AREA_BYTES; i++)
        mem[OFFER_AT + i] = beside_pattern(j->rank->rank, round, i);
    memset(mem + LANDING_AT, 0xee, AREA_BYTES);
    memset(mem + FETCHED_AT, 0xee, AREA_BYTES);
    wait_for_all(j);
    transfer(j, is_rdma ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, OFFER_AT, LANDING_AT, AREA_BYTES);
    transfer(j, is_rdma ? GNI_POST_RDMA_GET : GNI_POST_FMA_GET, FETCHED_AT, OFFER_AT, length);
    wait_for_all(j);
    for (uint64_t i = 0; i < AREA_BYTES; i++) {
        FX_CHECK(mem[LANDING_AT + i] == beside_pattern(j->previous, round, i));
        FX_CHECK(mem[FETCHED_AT + i] == (i < length ? beside_pattern(j->next, round, i) : 0xee));
    }
}

/* Everybody adds to the next rank's counter; each value is fetched by one only. */
static void add_up(struct job_rank *j, unsigned round)
{
    uint64_t *counter = (uint64_t *)(j->side.mem + COUNTER_AT);
    uint64_t *old = counter + 1;

    for (unsigned i = 0; i < ADDS; i++) {
        gni_post_descriptor_t *done = NULL;
        gni_post_descriptor_t d = {
            .type = GNI_POST_AMO,
            .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
            .amo_cmd = GNI_FMA_ATOMIC_FADD,
            .first_operand = 3,
            .local_addr = (uint64_t)(uintptr_t)old,
            .local_mem_hndl = j->side.mem_hndl,
            .remote_addr = j->cards[j->next].mem + COUNTER_AT,
            .remote_mem_hndl = j->cards[j->next].mem_hndl,
            .length = 8,
        };

        FX_CHECK(GNI_PostFma(j->next_ep, &d) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(j->side.src_cq, &done) == GNI_RC_SUCCESS);
        FX_CHECK(*old == 3ull * (round * ADDS + i));
    }
    wait_for_all(j);
    FX_CHECK(*(volatile uint64_t *)counter == 3ull * ADDS * (round + 1));
}

static void receive_message(struct job_rank *j, unsigned round, unsigned number)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;
    void *data = NULL;
    uint8_t tag = GNI_SMSG_ANY_TAG;
    uint32_t length;

    while ((rc = GNI_SmsgGetNextWTag(j->previous_ep, &data, &tag)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        sched_yield();
    FX_CHECK(rc == GNI_RC_SUCCESS);
    FX_CHECK(tag == (uint8_t)number);
    memcpy(&length, data, sizeof(length));
    FX_CHECK(length <= MESSAGE_MAX - sizeof(length));
    for (uint32_t i = 0; i < length; i++)
        FX_CHECK(((uint8_t *)data)[4 + i] == beside_pattern(j->previous, round, i + number));
    FX_CHECK(GNI_SmsgRelease(j->previous_ep) == GNI_RC_SUCCESS);
    tag = GNI_SMSG_ANY_TAG;
}

static void send_messages(struct job_rank *j, unsigned round)
{
    for (unsigned n = 0; n < CREDITS; n++) {
        uint8_t data[MESSAGE_MAX];
        uint32_t length = (uint32_t)emu_random_below(&j->random, MESSAGE_MAX - sizeof(length) + 1);
        gni_cq_entry_t entry;
        gni_return_t rc;
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

        for (uint32_t i = 0; i < length; i++)
            data[i] = beside_pattern(j->rank->rank, round, i + n);
        while ((rc = GNI_SmsgSendWTag(j->next_ep, &length, sizeof(length), data, length, n, (uint8_t)n)) ==
                   GNI_RC_NOT_DONE &&
               emu_clock_ns() < end_ns)
            sched_yield();
        FX_CHECK(rc == GNI_RC_SUCCESS);
        FX_CHECK(gx_next(j->side.src_cq, &entry) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_SMSG);
    }
    for (unsigned n = 0; n < CREDITS; n++)
        receive_message(j, round, n);
}

static int body_of_a_job(struct fx_rank *rank)
{
    struct job_rank j;

    alarm(40); /* one that fails would leave the others at the barrier */
    open_job(&j, rank);
    for (unsigned round = 0; round < ROUNDS; round++) {
        exchange_data(&j, round);
        add_up(&j, round);
        send_messages(&j, round);
    }
    close_job(&j);
    return 0;
}

/* ---- the hostile side ---- */

static void be_hostile(unsigned number, uint64_t own_seed)
{
    const struct hostile_target target = { .server = beside.fx.server,
                                           .ptag = HOSTILE_PTAG,
                                           .cookie = HOSTILE_COOKIE,
                                           .nids = beside.fx.nids,
                                           .n_nids = beside.fx.n_ranks,
                                           .domain_id = beside.fx.domain_id + 1,
                                           .counts = counts };

    if (number < MEMBERS)
        hostile_member(&target, own_seed);
    hostile_admin(&target, own_seed);
}

static void note_end(unsigned number, int status)
{
    (void)number;
    if (WIFEXITED(status) && WEXITSTATUS(status) == HOSTILE_BROKE_A_SEAL) {
        fprintf(stderr, "a seal is broken\n");
        _exit(1);
    }
}

/* ---- the run ---- */

static void test_jobs_beside_hostile_clients_end_correctly(void **state)
{
    static const struct hostiles hostiles = { .n = WORKERS, .life_ms = 3000, .body = be_hostile, .ended = note_end };

    (void)state;
    beside_run_jobs(&beside, &hostiles, body_of_a_job);
    printf("# %llu jobs; hostile: %llu processes, %llu attaches, %llu thrown out, %llu scribbles, %llu of %llu "
           "commands taken, %llu messages, %llu replies, %llu granted; admin: %llu messages, %llu granted\n",
           (unsigned long long)beside.n_jobs, (unsigned long long)counts->workers, (unsigned long long)counts->attaches,
           (unsigned long long)counts->thrown_out, (unsigned long long)counts->scribbles,
           (unsigned long long)counts->commands_taken, (unsigned long long)counts->commands,
           (unsigned long long)counts->messages, (unsigned long long)counts->replies,
           (unsigned long long)counts->replies_good, (unsigned long long)counts->admin_messages,
           (unsigned long long)counts->admin_good);
}

static void test_hostile_clients_got_past_the_first_checks(void **state)
{
    (void)state;
    assert_true(beside.n_jobs > 0);
    assert_true(counts->workers > WORKERS);
    assert_true(counts->attaches > counts->workers / 2);
    assert_true(counts->thrown_out > 0);
    assert_true(counts->scribbles > 5);
    assert_true(counts->commands_taken > 500);
    assert_true(counts->replies_good > 50);
    assert_true(counts->admin_good > 5);
}

static void test_emunic_is_alive_and_holds_nothing(void **state)
{
    (void)state;
    beside_assert_nothing_left(&beside);
}

static int start(void **state)
{
    (void)state;
    counts = beside_start(&beside, 20130607, sizeof(*counts));
    return counts ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    return beside_stop(&beside);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_jobs_beside_hostile_clients_end_correctly),
        cmocka_unit_test(test_hostile_clients_got_past_the_first_checks),
        cmocka_unit_test(test_emunic_is_alive_and_holds_nothing),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
