/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared message queues: instances, nodes and NICs that go, garbage in the region, and traffic of real processes, two
 * on each of three nodes. Specification: spec/ugni.md 2.17, 3.11, 4.11.
 */
#include "tests/conformance/msgq.h"

/* ---- blocking; leaving; dying ---- */

static void test_instance_that_goes_leaves_the_others_their_queue(void **state)
{
    unsigned sent = 0;

    (void)state;
    for (; sent < POOLED + 2; sent++)
        send_surely(&a0, &b1, sent, &b0); /* some in its pool, some in the mailbox */
    close_inst(&b1);                      /* without a release, as if it had died */
    send_until_refused(&a0);
    for (uint32_t i = 0; i < 5 * CREDITS; i++)
        send_surely(i % 2 ? &a0 : &a1, &b0, i, &b0);
    progress_until(&b0, 5 * CREDITS);
    for (uint32_t i = 0; i < 5 * CREDITS; i++) {
        assert_int_equal(number_in(&b0.got[i]), i);
        send_surely(&b0, i % 2 ? &a0 : &a1, i, i % 2 ? &a0 : &a1);
    }
    progress_until(&a0, 5 * CREDITS / 2);
    progress_until(&a1, 5 * CREDITS / 2);
    /* Another one may take the place; its node tells the others by a new connection. */
    open_inst(&b1);
    assert_int_equal(init(&b1, usual_attrs()), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(a0.msgq, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(b0.msgq, 0), GNI_RC_SUCCESS);
    connect_nodes(&a0, &b1);
    send_surely(&a0, &b1, 4711, &b1);
    progress_until(&b1, 1);
    assert_int_equal(number_in(&b1.got[0]), 4711);
}

static void test_leader_may_go(void **state)
{
    (void)state;
    close_inst(&a0); /* it had made the connection */
    close_inst(&b0);
    for (uint32_t i = 0; i < 3 * CREDITS; i++)
        send_surely(&a1, &b1, i, &b1);
    progress_until(&b1, 3 * CREDITS);
    assert_int_equal(GNI_MsgqConnRelease(a1.msgq, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(b1.msgq, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(a1.msgq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(b1.msgq), GNI_RC_SUCCESS);
}

static void test_node_without_instances_refuses_sends(void **state)
{
    (void)state;
    close_inst(&b0);
    ep_to(&a0, &b1);
    close_inst(&b1);
    send_until_refused(&a0);
    assert_int_equal(progress(&a0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(a0.msgq, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_SUCCESS);
}

static void test_lost_nic_ends_the_queue(void **state)
{
    gni_cq_entry_t entry;
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    (void)state;
    fx_set_routed(&fx, true);
    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    assert_int_equal(send_number(&a0, &b0, 321), GNI_RC_SUCCESS);
    assert_int_equal(kill(fx.daemon, SIGKILL), 0);
    assert_int_equal(gx_next(a0.side.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_MSGQ);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 321);
    assert_false(GNI_CQ_STATUS_OK(entry));
    assert_int_equal(send_number(&a0, &b0, 1), GNI_RC_INVALID_STATE);
    while (progress(&b0) == GNI_RC_SUCCESS && emu_clock_ns() < end_ns)
        ;
    assert_int_equal(progress(&b0), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_SUCCESS);
}

/* ---- garbage ---- */

/* This process's mappings of a node's region. */
static unsigned find_regions(uint8_t *regions[8])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned n = 0;
    char line[512];

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long long first;

        if (strstr(line, "memfd:emunic-msgq") && sscanf(line, "%llx-", &first) == 1 && n < 8)
            regions[n++] = (uint8_t *)(uintptr_t)first;
    }
    fclose(maps);
    return n;
}

static bool is_documented(gni_return_t rc)
{
    return rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE || rc == GNI_RC_NO_MATCH || rc == GNI_RC_INVALID_STATE ||
           rc == GNI_RC_SIZE_ERROR || rc == GNI_RC_ERROR_RESOURCE || rc == GNI_RC_PERMISSION_ERROR ||
           rc == GNI_RC_INVALID_PARAM;
}

/* Sends and looks while words of the regions change. */
static void work_with_garbage(struct emu_random *random, uint8_t *const *regions, unsigned n_regions)
{
    struct inst *from = all[emu_random_below(random, 4)];
    struct inst *to = all[(number_of(from) < 2 ? 2 : 0) + emu_random_below(random, 2)];
    uint32_t *words = (uint32_t *)regions[emu_random_below(random, n_regions)];
    uint32_t pe = 1 - node_of[number_of(from)];
    gni_msgq_ep_attr_t attrs = { .pe_addr = 1 };
    gni_cq_entry_t entry;

    words[emu_random_below(random, 6000)] = (uint32_t)(emu_random_next(random) >> emu_random_below(random, 64));
    assert_true(is_documented(send_number(from, to, 1)));
    assert_true(is_documented(progress(to)));
    while (GNI_CqGetEvent(from->side.src_cq, &entry) != GNI_RC_NOT_DONE)
        ;
    if (emu_random_below(random, 16) > 0)
        return;
    assert_true(is_documented(GNI_MsgqConnRelease(from->msgq, pe)));
    assert_true(is_documented(GNI_MsgqGetConnAttrs(from->msgq, pe, &attrs, NULL)));
    assert_true(is_documented(GNI_MsgqConnect(to->msgq, 1 - pe, &attrs)));
    assert_true(is_documented(GNI_MsgqIdle(from->msgq)));
}

/* Any word at any time: calls may say anything, but they return, and touch nothing else (sanitizers look). */
static void test_garbage_in_the_region_breaks_messages_only(void **state)
{
    struct emu_random random = seeded(1234);
    uint8_t *regions[8];

    for (unsigned round = 0; round < 40; round++) {
        unsigned n_regions = find_regions(regions);

        assert_int_equal(n_regions, 4);
        for (unsigned i = 0; i < 300; i++)
            work_with_garbage(&random, regions, n_regions);
        close_nodes(state);
        open_connected(state);
    }
    /* A new queue is as good as any. */
    send_surely(&a0, &b0, 1, &b0);
    progress_until(&b0, 1);
}

/* ---- traffic between processes ---- */

#define NODES    3u
#define PER_NODE (RANKS / NODES)
#define NOBODY   UINT32_MAX

struct board { /* what the ranks share */
    gni_msgq_ep_attr_t attrs[NODES][NODES];
    _Atomic uint32_t pid[RANKS];
    _Atomic uint32_t n_done;
};
_Static_assert(sizeof(struct board) <= FX_SHARED_BYTES, "the fixture's memory");

struct traffic {
    uint32_t messages;        /* to each instance of another node */
    uint32_t victim;          /* rank that dies, or NOBODY */
    uint32_t victim_steps;    /* after so many of its own steps; 0: killed by the last rank ... */
    uint32_t victim_messages; /* ... when that has so many messages of it */
    bool blocks;
    gni_msgq_attr_t attrs;
    uint64_t seed;
};

struct rank {
    struct fx_rank *fr;
    const struct traffic *t;
    struct board *board;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_msgq_handle_t msgq;
    gni_ep_handle_t ep[RANKS];
    uint32_t sent[RANKS];
    uint32_t received[RANKS];
    bool is_gone[RANKS];
};

/* The first words of a message; the rest follows from them. */
struct head {
    uint32_t from;
    uint32_t to;
    uint32_t number;
    uint32_t size;
};

static uint8_t byte_at(const struct head *h, uint32_t i)
{
    return (uint8_t)((h->from * 2654435761u + h->to * 40503u + h->number * 2246822519u + i * 3266489917u) >> 11);
}

static uint32_t size_of(const struct traffic *t, uint32_t from, uint32_t to, uint32_t number)
{
    struct emu_random random = { .state = t->seed + from * 131u + to * 17u + number };

    return (uint32_t)(sizeof(struct head) + emu_random_next(&random) % (GNI_MSGQ_MSG_SZ_MAX - sizeof(struct head) + 1));
}

static int check_message(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    struct rank *r = cb_data;
    const uint8_t *bytes = (const uint8_t *)msg + sizeof(struct head);
    struct head h;

    memcpy(&h, msg, sizeof(h));
    FX_CHECK(h.from < RANKS && h.to == r->fr->rank);
    FX_CHECK(snd_id == 100 + h.from && snd_pe == r->fr->fx->nids[h.from] && msg_tag == (uint8_t)h.number);
    FX_CHECK(h.number == r->received[h.from]); /* in order, none lost, none twice */
    FX_CHECK(h.size == size_of(r->t, h.from, h.to, h.number));
    for (uint32_t i = 0; i < h.size - sizeof(h); i++)
        FX_CHECK(bytes[i] == byte_at(&h, i));
    r->received[h.from]++;
    return 1;
}

static uint32_t node_of_rank(uint32_t rank)
{
    return rank / PER_NODE;
}

static void open_rank(struct rank *r)
{
    struct fx_rank *fr = r->fr;
    gni_msgq_attr_t attrs = r->t->attrs;
    uint32_t addr;

    FX_CHECK(GNI_CdmCreate(100 + fr->rank, (uint8_t)fr->fx->ptag, fr->fx->cookie, GNI_CDM_MODE_ERR_NO_KILL, &r->cdm) ==
             GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmAttach(r->cdm, 0, &addr, &r->nic) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CqCreate(r->nic, 256, 0, GNI_CQ_NOBLOCK, NULL, NULL, &r->cq) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_MsgqInit(r->nic, check_message, r, r->cq, &attrs, &r->msgq) == GNI_RC_SUCCESS);
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        if (node_of_rank(peer) == node_of_rank(fr->rank))
            continue;
        FX_CHECK(GNI_EpCreate(r->nic, r->cq, &r->ep[peer]) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpBind(r->ep[peer], fr->fx->nids[peer], 100 + peer) == GNI_RC_SUCCESS);
    }
    r->board->pid[fr->rank] = (uint32_t)getpid();
}

/* As the specification tells: one leader per node. */
static void connect_rank(struct rank *r)
{
    uint32_t own = node_of_rank(r->fr->rank);
    bool leads = r->fr->rank % PER_NODE == 0;

    pthread_barrier_wait(r->fr->barrier);
    for (uint32_t node = 0; leads && node < NODES; node++) {
        uint32_t size;

        if (node == own)
            continue;
        FX_CHECK(GNI_MsgqGetConnAttrs(r->msgq, r->fr->fx->nids[node * PER_NODE], &r->board->attrs[own][node], &size) ==
                 GNI_RC_SUCCESS);
        FX_CHECK(size == 16 + 32 * PER_NODE);
    }
    pthread_barrier_wait(r->fr->barrier);
    for (uint32_t node = 0; leads && node < NODES; node++) {
        if (node != own)
            FX_CHECK(GNI_MsgqConnect(r->msgq, r->fr->fx->nids[node * PER_NODE], &r->board->attrs[node][own]) ==
                     GNI_RC_SUCCESS);
    }
    pthread_barrier_wait(r->fr->barrier);
}

static void send_next(struct rank *r, uint32_t peer)
{
    struct head h = { .from = r->fr->rank, .to = peer, .number = r->sent[peer] };
    uint8_t bytes[GNI_MSGQ_MSG_SZ_MAX];
    gni_return_t rc;

    h.size = size_of(r->t, h.from, h.to, h.number);
    for (uint32_t i = 0; i < h.size - sizeof(h); i++)
        bytes[i] = byte_at(&h, i);
    rc = GNI_MsgqSend(r->msgq, r->ep[peer], &h, sizeof(h), bytes, h.size - (uint32_t)sizeof(h), h.number,
                      (uint8_t)h.number);
    if (rc == GNI_RC_SUCCESS)
        r->sent[peer]++;
    else if (rc == GNI_RC_INVALID_STATE && peer == r->t->victim)
        r->is_gone[peer] = true;
    else
        FX_CHECK(rc == GNI_RC_NOT_DONE);
}

static void take_entries(struct rank *r)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(r->cq, &entry)) != GNI_RC_NOT_DONE) {
        FX_CHECK(rc == GNI_RC_SUCCESS || (rc == GNI_RC_TRANSACTION_ERROR && r->t->victim != NOBODY));
        FX_CHECK(GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_MSGQ);
    }
}

static bool has_finished(const struct rank *r)
{
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        if (!r->ep[peer] || peer == r->t->victim)
            continue;
        if (r->sent[peer] < r->t->messages || r->received[peer] < r->t->messages)
            return false;
    }
    return true;
}

/* What the test does with the victim. */
static void maybe_die(struct rank *r, uint32_t step)
{
    const struct traffic *t = r->t;

    if (t->victim == NOBODY)
        return;
    if (r->fr->rank == t->victim && t->victim_steps != 0 && step >= t->victim_steps)
        kill(getpid(), SIGKILL);
    if (r->fr->rank == RANKS - 1 && t->victim_steps == 0 && r->received[t->victim] >= t->victim_messages)
        kill((pid_t)r->board->pid[t->victim], SIGKILL);
}

static int run_traffic(struct fx_rank *fr)
{
    struct rank *r = calloc(1, sizeof(*r));
    struct emu_random random;
    uint64_t end_ns;
    bool is_done = false;
    uint32_t survivors;
    gni_return_t rc;

    FX_CHECK(r);
    r->fr = fr;
    r->t = fr->arg;
    r->board = fr->shared;
    survivors = RANKS - (r->t->victim != NOBODY);
    random.state = r->t->seed * 977 + fr->rank;
    open_rank(r);
    connect_rank(r);
    end_ns = emu_clock_ns() + 2 * PATIENCE_NS;
    for (uint32_t step = 1; r->board->n_done < survivors; step++) {
        uint32_t peer = (uint32_t)(emu_random_next(&random) % RANKS);

        if (emu_clock_ns() > end_ns)
            fprintf(stderr, "rank %u: sent %u %u %u %u %u %u received %u %u %u %u %u %u\n", fr->rank, r->sent[0],
                    r->sent[1], r->sent[2], r->sent[3], r->sent[4], r->sent[5], r->received[0], r->received[1],
                    r->received[2], r->received[3], r->received[4], r->received[5]);
        FX_CHECK(emu_clock_ns() < end_ns);
        if (r->ep[peer] && !r->is_gone[peer] && r->sent[peer] < r->t->messages)
            send_next(r, peer);
        take_entries(r);
        rc = GNI_MsgqProgress(r->msgq, r->t->blocks ? (uint32_t)(emu_random_next(&random) % 2) : DO_NOT_BLOCK);
        FX_CHECK(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);
        maybe_die(r, step);
        if (!is_done && fr->rank != r->t->victim && has_finished(r)) {
            is_done = true;
            atomic_fetch_add(&r->board->n_done, 1);
        }
    }
    if (fr->rank == r->t->victim) {
        /* Too slow to be killed in the middle. */
        kill(getpid(), SIGKILL);
    }
    while ((rc = GNI_MsgqRelease(r->msgq)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns) {
        take_entries(r);
        GNI_MsgqProgress(r->msgq, DO_NOT_BLOCK);
    }
    FX_CHECK(rc == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmDestroy(r->cdm) == GNI_RC_SUCCESS);
    free(r);
    return 0;
}

static struct traffic usual_traffic(uint64_t seed)
{
    struct traffic t = { .messages = 60, .victim = NOBODY, .seed = seed, .attrs = usual_attrs() };

    t.attrs.nloc_insts = PER_NODE;
    t.attrs.num_msgq_eps = NODES - 1;
    return t;
}

static void test_all_to_all_traffic_arrives_whole_and_in_order(void **state)
{
    struct emu_random random = seeded(2024);
    struct traffic t = usual_traffic(emu_random_next(&random));

    (void)state;
    t.messages = 200;
    assert_int_equal(fx_run(&fx, RANKS, run_traffic, &t), 0);
}

static void test_all_to_all_traffic_of_blocking_queues(void **state)
{
    struct emu_random random = seeded(7);
    struct traffic t = usual_traffic(emu_random_next(&random));

    (void)state;
    t.attrs.modes = GNI_MSGQ_MODE_BLOCKING;
    t.blocks = true;
    t.messages = 40;
    assert_int_equal(fx_run(&fx, RANKS, run_traffic, &t), 0);
}

static void test_all_to_all_traffic_through_one_slot(void **state)
{
    struct emu_random random = seeded(8);
    struct traffic t = usual_traffic(emu_random_next(&random));

    (void)state;
    t.attrs.smsg_q_sz = 1;
    t.attrs.rcv_pool_sz = 1;
    t.attrs.rcv_cq_sz = 1;
    t.messages = 40;
    assert_int_equal(fx_run(&fx, RANKS, run_traffic, &t), 0);
}

static void test_survivors_of_a_killed_instance_lose_nothing(void **state)
{
    struct emu_random random = seeded(99);

    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        struct traffic t = usual_traffic(emu_random_next(&random));

        t.attrs.smsg_q_sz = round % 2 ? 4 : 16;
        t.victim = (uint32_t)(emu_random_next(&random) % (RANKS - 1));
        if (round % 4 < 2)
            t.victim_steps = 1 + (uint32_t)(emu_random_next(&random) % 200);
        else
            t.victim_messages = 1 + (uint32_t)(emu_random_next(&random) % 50);
        assert_int_equal(fx_run(&fx, RANKS, run_traffic, &t), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        connected_test(test_instance_that_goes_leaves_the_others_their_queue),
        connected_test(test_leader_may_go),
        connected_test(test_node_without_instances_refuses_sends),
        connected_test(test_garbage_in_the_region_breaks_messages_only),
        cmocka_unit_test(test_all_to_all_traffic_arrives_whole_and_in_order),
        cmocka_unit_test(test_all_to_all_traffic_of_blocking_queues),
        cmocka_unit_test(test_all_to_all_traffic_through_one_slot),
        cmocka_unit_test(test_survivors_of_a_killed_instance_lose_nothing),
        connected_test(test_lost_nic_ends_the_queue),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
