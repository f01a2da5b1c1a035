/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads: many NIC handles at once, and one NIC handle in many hands. Specification: spec/ugni.md 1.6.
 *
 * Threads note their first failure; the test asserts that there is none.
 */
#include "tests/conformance/mailbox.h"
#include "tests/conformance/pair.h"

#define THREADS  4
#define ROUNDS   300
#define PATIENCE 30000u /* ms */

/* ---- threads ---- */

struct worker {
    pthread_t thread;
    unsigned number;
    int failed_line; /* 0: none */
    const char *failed;
    void *arg;
};

#define TRY(condition)                                                                                                 \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            w->failed_line = __LINE__;                                                                                 \
            w->failed = #condition;                                                                                    \
            return NULL;                                                                                               \
        }                                                                                                              \
    } while (0)

static void run_workers(struct worker *workers, unsigned n, void *(*const *bodies)(void *), unsigned n_bodies,
                        void *arg)
{
    for (unsigned i = 0; i < n; i++) {
        workers[i] = (struct worker){ .number = i, .arg = arg };
        assert_int_equal(pthread_create(&workers[i].thread, NULL, bodies[i % n_bodies], &workers[i]), 0);
    }
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (unsigned i = 0; i < n; i++) {
        if (workers[i].failed_line)
            print_error("thread %u, line %d: not true: %s\n", i, workers[i].failed_line, workers[i].failed);
        assert_int_equal(workers[i].failed_line, 0);
    }
}

/* ---- one NIC handle each ---- */

struct ring {
    pthread_barrier_t barrier;
    struct gx_side sides[THREADS];
};

static bool attach_own(struct gx_side *side, unsigned number)
{
    if (GNI_CdmCreate(100 + number, (uint8_t)fx.ptag, fx.cookie, GNI_CDM_MODE_ERR_NO_KILL, &side->cdm) ||
        GNI_CdmAttach(side->cdm, 0, &side->nic_addr, &side->nic) ||
        GNI_CqCreate(side->nic, 64, 0, GNI_CQ_BLOCKING, NULL, NULL, &side->src_cq) ||
        GNI_CqCreate(side->nic, 64, 0, GNI_CQ_BLOCKING, NULL, NULL, &side->dst_cq) ||
        GNI_EpCreate(side->nic, side->src_cq, &side->ep))
        return false;
    side->inst_id = 100 + number;
    side->mem = aligned_alloc(4096, GX_BYTES);
    return side->mem && GNI_MemRegister(side->nic, (uint64_t)(uintptr_t)side->mem, GX_BYTES, side->dst_cq,
                                        GNI_MEM_READWRITE, (uint32_t)-1, &side->mem_hndl) == GNI_RC_SUCCESS;
}

/* Everybody attaches, writes to his right neighbour and checks what the left one has written. */
static void *write_to_neighbour(void *arg)
{
    struct worker *w = arg;
    struct ring *ring = w->arg;
    struct gx_side *own = &ring->sides[w->number];
    struct gx_side *right = &ring->sides[(w->number + 1) % THREADS];
    unsigned left = (w->number + THREADS - 1) % THREADS;

    TRY(attach_own(own, w->number));
    pthread_barrier_wait(&ring->barrier);
    TRY(GNI_EpBind(own->ep, right->nic_addr, right->inst_id) == GNI_RC_SUCCESS);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        gni_post_descriptor_t d =
            gx_put(own, right, 0, 8 + round % 4000, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        gni_post_descriptor_t *done;
        gni_cq_entry_t entry;

        /* From the upper half of mine into the lower half of the neighbour's. */
        d.local_addr += GX_BYTES / 2;
        memset(own->mem + GX_BYTES / 2, (int)(w->number * 50 + round % 50), d.length);
        TRY(GNI_PostFma(own->ep, &d) == GNI_RC_SUCCESS);
        TRY(gx_complete(own->src_cq, &done) == GNI_RC_SUCCESS);
        TRY(done == &d);
        TRY(GNI_CqWaitEvent(own->dst_cq, PATIENCE, &entry) == GNI_RC_SUCCESS);
        TRY(GNI_CQ_GET_REM_INST_ID(entry) == 100 + left);
        for (uint32_t i = 0; i < d.length; i++)
            TRY(own->mem[i] == left * 50 + round % 50);
        pthread_barrier_wait(&ring->barrier);
    }
    gx_close(own);
    return NULL;
}

static void test_threads_work_with_a_nic_handle_each(void **state)
{
    static void *(*const bodies[])(void *) = { write_to_neighbour };
    static struct ring ring;
    struct worker workers[THREADS];

    (void)state;
    fx_set_node(2);
    pthread_barrier_init(&ring.barrier, NULL, THREADS);
    run_workers(workers, THREADS, bodies, 1, &ring);
    pthread_barrier_destroy(&ring.barrier);
}

static void *come_and_go(void *arg)
{
    struct worker *w = arg;

    for (unsigned round = 0; round < 20; round++) {
        struct gx_side side = { 0 };

        TRY(attach_own(&side, 10 * w->number + round % 3));
        gx_close(&side);
    }
    return NULL;
}

static void test_threads_attach_and_leave_at_the_same_time(void **state)
{
    static void *(*const bodies[])(void *) = { come_and_go };
    struct worker workers[THREADS];

    (void)state;
    fx_set_node(1);
    run_workers(workers, THREADS, bodies, 1, NULL);
}

/* ---- one NIC handle for all ---- */

/* Own end point and queue on the shared NIC; put, get back, compare. */
static void *transfer_on_own_queue(void *arg)
{
    struct worker *w = arg;
    uint64_t slice = GX_BYTES / 8;
    uint64_t offset = w->number % 8 * slice;
    gni_ep_handle_t ep;
    gni_cq_handle_t cq;

    TRY(GNI_CqCreate(a.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq) == GNI_RC_SUCCESS);
    TRY(GNI_EpCreate(a.nic, cq, &ep) == GNI_RC_SUCCESS);
    TRY(GNI_EpBind(ep, b.nic_addr, b.inst_id) == GNI_RC_SUCCESS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint64_t length = 4 + round % (slice / 8) * 4;
        gni_post_descriptor_t put = gx_put(&a, &b, offset, length, GNI_CQMODE_GLOBAL_EVENT);
        gni_post_descriptor_t get = put;
        gni_post_descriptor_t *done = NULL;

        get.type = GNI_POST_FMA_GET;
        get.local_addr += slice / 2;
        memset(a.mem + offset, (int)(round + w->number), length);
        memset(a.mem + offset + slice / 2, 0, length);
        TRY(GNI_PostFma(ep, &put) == GNI_RC_SUCCESS);
        TRY(gx_complete(cq, &done) == GNI_RC_SUCCESS && done == &put);
        TRY(GNI_PostFma(ep, &get) == GNI_RC_SUCCESS);
        TRY(gx_complete(cq, &done) == GNI_RC_SUCCESS && done == &get);
        TRY(memcmp(a.mem + offset, a.mem + offset + slice / 2, length) == 0);
    }
    TRY(GNI_EpUnbind(ep) == GNI_RC_SUCCESS);
    TRY(GNI_EpDestroy(ep) == GNI_RC_SUCCESS);
    TRY(GNI_CqDestroy(cq) == GNI_RC_SUCCESS);
    return NULL;
}

static void test_threads_transfer_on_queues_of_one_nic(void **state)
{
    static void *(*const bodies[])(void *) = { transfer_on_own_queue };
    struct worker workers[THREADS];

    (void)state;
    run_workers(workers, THREADS, bodies, 1, NULL);
}

/* All post on one end point; whoever finds a completion notes it. */
struct shared_queue {
    _Atomic unsigned completed[THREADS][ROUNDS];
    _Atomic unsigned total;
    gni_post_descriptor_t posts[THREADS][ROUNDS];
};

static bool take_completion(struct shared_queue *q)
{
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry;

    if (GNI_CqTestEvent(a.src_cq) != GNI_RC_SUCCESS || GNI_CqGetEvent(a.src_cq, &entry) != GNI_RC_SUCCESS)
        return false;
    if (GNI_GetCompleted(a.src_cq, entry, &done) == GNI_RC_SUCCESS) {
        atomic_fetch_add(&q->completed[done->post_id / ROUNDS][done->post_id % ROUNDS], 1);
        atomic_fetch_add(&q->total, 1);
    }
    return true;
}

static void *post_on_shared_queue(void *arg)
{
    struct worker *w = arg;
    struct shared_queue *q = w->arg;
    uint64_t end_ns = emu_clock_ns() + 3 * MB_PATIENCE_NS;

    for (unsigned round = 0; round < ROUNDS; round++) {
        gni_post_descriptor_t *d = &q->posts[w->number][round];
        gni_return_t rc;

        *d = gx_put(&a, &b, 8 * w->number, 8, GNI_CQMODE_GLOBAL_EVENT);
        d->post_id = w->number * ROUNDS + round;
        while ((rc = GNI_PostFma(a.ep, d)) == GNI_RC_ERROR_RESOURCE)
            take_completion(q);
        TRY(rc == GNI_RC_SUCCESS);
        take_completion(q);
    }
    while (atomic_load(&q->total) < THREADS * ROUNDS) {
        TRY(emu_clock_ns() < end_ns);
        take_completion(q);
    }
    return NULL;
}

static void test_each_completion_of_a_shared_queue_is_taken_once(void **state)
{
    static void *(*const bodies[])(void *) = { post_on_shared_queue };
    struct shared_queue *q = calloc(1, sizeof(*q));
    struct worker workers[THREADS];

    (void)state;
    run_workers(workers, THREADS, bodies, 1, q);
    for (unsigned t = 0; t < THREADS; t++) {
        for (unsigned round = 0; round < ROUNDS; round++)
            assert_int_equal(atomic_load(&q->completed[t][round]), 1);
    }
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
    free(q);
}

static void *register_memory(void *arg)
{
    struct worker *w = arg;
    size_t bytes = 3 * 4096;
    uint8_t *mem = aligned_alloc(4096, bytes);

    TRY(mem != NULL);
    memset(mem, 1, bytes);
    for (unsigned round = 0; round < ROUNDS / 2; round++) {
        gni_mem_handle_t handles[2];

        for (unsigned i = 0; i < 2; i++)
            TRY(GNI_MemRegister(a.nic, (uint64_t)(uintptr_t)mem + 100 * i, bytes - 4096, a.dst_cq, GNI_MEM_READWRITE,
                                (uint32_t)-1, &handles[i]) == GNI_RC_SUCCESS);
        TRY(memcmp(&handles[0], &handles[1], sizeof(handles[0])) != 0);
        mem[round] = (uint8_t)round;
        for (unsigned i = 0; i < 2; i++)
            TRY(GNI_MemDeregister(a.nic, &handles[i]) == GNI_RC_SUCCESS);
        TRY(mem[round] == (uint8_t)round);
        TRY(GNI_MemDeregister(a.nic, &handles[0]) == GNI_RC_INVALID_PARAM);
    }
    free(mem);
    return NULL;
}

/* Datagrams to an instance that nobody has: posted, looked at, waited for, cancelled. */
static void *post_datagrams(void *arg)
{
    struct worker *w = arg;
    gni_ep_handle_t ep;

    TRY(GNI_EpCreate(a.nic, NULL, &ep) == GNI_RC_SUCCESS);
    TRY(GNI_EpBind(ep, b.nic_addr, 5000 + w->number) == GNI_RC_SUCCESS);
    for (unsigned round = 0; round < ROUNDS / 2; round++) {
        gni_post_state_t post_state = GNI_POST_ERROR;
        uint64_t id = 1000 * w->number + round;
        char in[8];

        TRY(GNI_EpPostDataWId(ep, "x", 2, in, sizeof(in), id) == GNI_RC_SUCCESS);
        TRY(GNI_EpPostDataTestById(ep, id, &post_state, NULL, NULL) == GNI_RC_SUCCESS);
        TRY(post_state == GNI_POST_PENDING);
        TRY(GNI_EpPostDataWaitById(ep, id, 1, &post_state, NULL, NULL) == GNI_RC_TIMEOUT);
        TRY(GNI_EpPostDataCancelById(ep, id) == GNI_RC_SUCCESS);
        TRY(GNI_EpPostDataWaitById(ep, id, PATIENCE, &post_state, NULL, NULL) == GNI_RC_SUCCESS);
        TRY(post_state == GNI_POST_TERMINATED);
    }
    TRY(GNI_EpDestroy(ep) == GNI_RC_SUCCESS);
    return NULL;
}

/* Looks without a lock, as libfabric does, while others post. */
static void *look_at_queues(void *arg)
{
    struct worker *w = arg;

    for (unsigned round = 0; round < 20 * ROUNDS; round++) {
        gni_return_t rc = GNI_CqTestEvent(a.src_cq);
        uint32_t which;
        uint64_t id;

        TRY(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);
        TRY(GNI_CqVectorMonitor(&a.dst_cq, 1, 0, &which) != GNI_RC_INVALID_PARAM);
        if (round % 10 == 0) {
            rc = GNI_PostdataProbeWaitById(a.nic, 0, &id);
            TRY(rc == GNI_RC_TIMEOUT || rc == GNI_RC_SUCCESS);
        }
    }
    return NULL;
}

static void *make_and_destroy_objects(void *arg)
{
    struct worker *w = arg;

    for (unsigned round = 0; round < ROUNDS / 2; round++) {
        gni_cq_handle_t cq;
        gni_ep_handle_t ep;

        TRY(GNI_CqCreate(a.nic, 10, 0, GNI_CQ_BLOCKING, NULL, NULL, &cq) == GNI_RC_SUCCESS);
        TRY(GNI_EpCreate(a.nic, cq, &ep) == GNI_RC_SUCCESS);
        TRY(GNI_EpBind(ep, b.nic_addr, b.inst_id) == GNI_RC_SUCCESS);
        TRY(GNI_EpSetEventData(ep, round, round) == GNI_RC_SUCCESS);
        TRY(GNI_CqDestroy(cq) == GNI_RC_ERROR_RESOURCE);
        TRY(GNI_EpDestroy(ep) == GNI_RC_SUCCESS);
        TRY(GNI_CqDestroy(cq) == GNI_RC_SUCCESS);
    }
    return NULL;
}

static void test_everything_at_once_on_one_nic(void **state)
{
    static void *(*const bodies[])(void *) = { transfer_on_own_queue, register_memory, post_datagrams, look_at_queues,
                                               make_and_destroy_objects };
    struct worker workers[6];

    (void)state;
    run_workers(workers, 6, bodies, 5, NULL);
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
}

/* ---- messages ---- */

struct channels {
    struct {
        gni_ep_handle_t ep_a;
        gni_ep_handle_t ep_b;
        struct mailbox box_a;
        struct mailbox box_b;
    } one[THREADS / 2];
};

#define MESSAGES 3000u

static void *send_messages(void *arg)
{
    struct worker *w = arg;
    struct channels *c = w->arg;
    gni_ep_handle_t ep = c->one[w->number / 2].ep_a;
    uint64_t end_ns = emu_clock_ns() + 3 * MB_PATIENCE_NS;

    for (uint32_t n = 0; n < MESSAGES; n++) {
        gni_return_t rc;

        while ((rc = GNI_SmsgSendWTag(ep, &n, sizeof(n), "tail", 5, n, 1)) == GNI_RC_NOT_DONE) {
            gni_cq_entry_t entry;

            TRY(emu_clock_ns() < end_ns);
            GNI_CqGetEvent(a.src_cq, &entry); /* shared by all senders */
        }
        TRY(rc == GNI_RC_SUCCESS);
    }
    return NULL;
}

static void *receive_messages(void *arg)
{
    struct worker *w = arg;
    struct channels *c = w->arg;
    gni_ep_handle_t ep = c->one[w->number / 2].ep_b;

    for (uint32_t n = 0; n < MESSAGES; n++) {
        uint8_t tag = GNI_SMSG_ANY_TAG;
        void *message = NULL;

        TRY(mb_next(ep, &message, &tag) == GNI_RC_SUCCESS);
        TRY(memcmp(message, &n, sizeof(n)) == 0);
        TRY(strcmp((char *)message + sizeof(n), "tail") == 0);
        TRY(GNI_SmsgRelease(ep) == GNI_RC_SUCCESS);
        mb_drain(b.dst_cq);
    }
    return NULL;
}

static void test_threads_send_and_receive_on_connections_of_one_nic(void **state)
{
    static void *(*const bodies[])(void *) = { send_messages, receive_messages };
    struct worker workers[THREADS];
    struct channels c;

    (void)state;
    for (unsigned i = 0; i < THREADS / 2; i++) {
        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &c.one[i].ep_a), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &c.one[i].ep_b), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(c.one[i].ep_a, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(c.one[i].ep_b, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
        mb_open(&c.one[i].box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 8, 100, 0);
        mb_open(&c.one[i].box_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 8, 100, 0);
        assert_int_equal(GNI_SmsgInit(c.one[i].ep_a, &c.one[i].box_a.attr, &c.one[i].box_b.attr), GNI_RC_SUCCESS);
        assert_int_equal(GNI_SmsgInit(c.one[i].ep_b, &c.one[i].box_b.attr, &c.one[i].box_a.attr), GNI_RC_SUCCESS);
    }
    run_workers(workers, THREADS, bodies, 2, &c);
    for (unsigned i = 0; i < THREADS / 2; i++) {
        assert_int_equal(GNI_EpDestroy(c.one[i].ep_a), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpDestroy(c.one[i].ep_b), GNI_RC_SUCCESS);
        mb_close(&c.one[i].box_a);
        mb_close(&c.one[i].box_b);
    }
}

/* ---- as known programs do ---- */

/* Chapel: one thread waits for events and reads what came with them, the others put. */
static void *poll_for_puts(void *arg)
{
    struct worker *w = arg;
    uint32_t seen[THREADS] = { 0 };

    for (unsigned n = 0; n < (THREADS - 1) * ROUNDS; n++) {
        gni_cq_entry_t entry = 0;
        uint32_t from;

        TRY(GNI_CqWaitEvent(b.dst_cq, PATIENCE, &entry) == GNI_RC_SUCCESS);
        from = (uint32_t)GNI_CQ_GET_REM_INST_ID(entry);
        TRY(from >= 1 && from < THREADS);
        seen[from]++;
    }
    for (unsigned t = 1; t < THREADS; t++)
        TRY(seen[t] == ROUNDS);
    return NULL;
}

static void *put_with_event(void *arg)
{
    struct worker *w = arg;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;

    if (w->number == 0)
        return poll_for_puts(arg);
    TRY(GNI_CqCreate(a.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq) == GNI_RC_SUCCESS);
    TRY(GNI_EpCreate(a.nic, cq, &ep) == GNI_RC_SUCCESS);
    TRY(GNI_EpBind(ep, b.nic_addr, b.inst_id) == GNI_RC_SUCCESS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 8 * w->number, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        gni_post_descriptor_t *done;

        TRY(GNI_EpSetEventData(ep, 0, w->number) == GNI_RC_SUCCESS);
        TRY(GNI_PostFma(ep, &d) == GNI_RC_SUCCESS);
        TRY(gx_complete(cq, &done) == GNI_RC_SUCCESS);
    }
    TRY(GNI_EpDestroy(ep) == GNI_RC_SUCCESS);
    TRY(GNI_CqDestroy(cq) == GNI_RC_SUCCESS);
    return NULL;
}

static void test_one_thread_waits_for_the_puts_of_the_others(void **state)
{
    static void *(*const bodies[])(void *) = { put_with_event };
    struct worker workers[THREADS];

    (void)state;
    /* Room for all events: nobody says how fast the poller is. */
    assert_int_equal(GNI_MemDeregister(b.nic, &b.mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(b.nic, THREADS * ROUNDS, 0, GNI_CQ_BLOCKING, NULL, NULL, &b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, (uint64_t)(uintptr_t)b.mem, GX_BYTES, b.dst_cq, GNI_MEM_READWRITE,
                                     (uint32_t)-1, &b.mem_hndl),
                     GNI_RC_SUCCESS);
    run_workers(workers, THREADS, bodies, 1, NULL);
}

/* UCX: one thread sits in the probe and collects, others post to us. */
#define CALLS 200u

static void *collect_datagrams(void *arg)
{
    struct worker *w = arg;
    uint32_t got[THREADS] = { 0 };
    gni_ep_handle_t any;
    uint32_t in[2];

    TRY(GNI_EpCreate(b.nic, NULL, &any) == GNI_RC_SUCCESS);
    TRY(GNI_EpPostDataWId(any, NULL, 0, in, sizeof(in), 7) == GNI_RC_SUCCESS);
    for (unsigned n = 0; n < (THREADS - 1) * CALLS; n++) {
        gni_post_state_t post_state;
        uint64_t id = 0;

        TRY(GNI_PostdataProbeWaitById(b.nic, PATIENCE, &id) == GNI_RC_SUCCESS);
        TRY(id == 7);
        TRY(GNI_EpPostDataWaitById(any, id, (uint32_t)-1, &post_state, NULL, NULL) == GNI_RC_SUCCESS);
        TRY(post_state == GNI_POST_COMPLETED);
        TRY(in[0] >= 1 && in[0] < THREADS && in[1] == got[in[0]]++);
        TRY(GNI_EpPostDataWId(any, NULL, 0, in, sizeof(in), 7) == GNI_RC_SUCCESS);
    }
    TRY(GNI_EpDestroy(any) == GNI_RC_SUCCESS);
    return NULL;
}

static void *call_collector(void *arg)
{
    struct worker *w = arg;
    uint64_t end_ns = emu_clock_ns() + 3 * MB_PATIENCE_NS;
    gni_ep_handle_t ep;

    if (w->number == 0)
        return collect_datagrams(arg);
    TRY(GNI_EpCreate(a.nic, NULL, &ep) == GNI_RC_SUCCESS);
    TRY(GNI_EpBind(ep, b.nic_addr, b.inst_id) == GNI_RC_SUCCESS);
    for (uint32_t n = 0; n < CALLS; n++) {
        uint32_t out[2] = { w->number, n };
        gni_post_state_t post_state;
        gni_return_t rc;

        /* The others' datagrams to the same peer make ours wait. */
        while ((rc = GNI_EpPostDataWId(ep, out, sizeof(out), NULL, 0, w->number)) == GNI_RC_ERROR_RESOURCE)
            TRY(emu_clock_ns() < end_ns);
        TRY(rc == GNI_RC_SUCCESS);
        TRY(GNI_EpPostDataWaitById(ep, w->number, PATIENCE, &post_state, NULL, NULL) == GNI_RC_SUCCESS);
        TRY(post_state == GNI_POST_COMPLETED);
    }
    TRY(GNI_EpDestroy(ep) == GNI_RC_SUCCESS);
    return NULL;
}

static void test_one_thread_collects_the_datagrams_of_the_others(void **state)
{
    static void *(*const bodies[])(void *) = { call_collector };
    struct worker workers[THREADS];

    (void)state;
    run_workers(workers, THREADS, bodies, 1, NULL);
}

#define WITH_SIDES(test) cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_work_with_a_nic_handle_each),
        cmocka_unit_test(test_threads_attach_and_leave_at_the_same_time),
        WITH_SIDES(test_threads_transfer_on_queues_of_one_nic),
        WITH_SIDES(test_each_completion_of_a_shared_queue_is_taken_once),
        WITH_SIDES(test_everything_at_once_on_one_nic),
        WITH_SIDES(test_threads_send_and_receive_on_connections_of_one_nic),
        WITH_SIDES(test_one_thread_waits_for_the_puts_of_the_others),
        WITH_SIDES(test_one_thread_collects_the_datagrams_of_the_others),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
