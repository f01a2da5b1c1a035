/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loss: emunic is killed or the domain is ended while posts, messages, waits and datagrams are on their
 * way. Every call must say so within LIMIT_NS. Specification: spec/ugni.md 1.5, 2.5, 4.5, 4.9, 4.10; the reaction of
 * libugni/src/cdm.c.
 *
 * Each test has an emunic of its own. `lose` ends it in both ways: a killed server, a domain ended by its owner.
 */
#include "tests/conformance/loss.h"

/* ---- fixture ---- */

enum way { KILLED, ENDED };

static void lose(enum way way)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END }; /* without a signal: we are a member */

    if (way == KILLED) {
        assert_int_equal(kill(fx.daemon, SIGKILL), 0);
        return;
    }
    assert_int_equal(emu_session_request(&fx.admin, &end, NULL, 0, NULL), 0);
    assert_int_equal(end.result, 0);
}

/* Transactions stay where they are until emunic is killed. */
static void hold_emunic(void)
{
    fx_set_routed(&fx, true);
    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
}

/* ---- what is on its way ---- */

#define POSTS 20

static void test_posts_on_their_way_fail_once_each(void **state)
{
    gni_post_descriptor_t posts[POSTS];
    unsigned failed[POSTS] = { 0 };

    (void)state;
    hold_emunic();
    for (unsigned i = 0; i < POSTS; i++) {
        posts[i] = gx_put(&a, &b, 8 * i, 8, i % 2 ? GNI_CQMODE_GLOBAL_EVENT : GNI_CQMODE_LOCAL_EVENT);
        assert_int_equal(GNI_PostFma(a.ep, &posts[i]), GNI_RC_SUCCESS);
    }
    lose(KILLED);
    for (unsigned i = 0; i < POSTS; i++) {
        gni_post_descriptor_t *done = NULL;
        gni_cq_entry_t entry = 0;

        assert_int_equal(next_within_limit(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
        assert_true(entry != 0);
        assert_false(GNI_CQ_STATUS_OK(entry));
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
        assert_true(done >= posts && done < posts + POSTS);
        failed[done - posts]++;
    }
    for (unsigned i = 0; i < POSTS; i++)
        assert_int_equal(failed[i], 1);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_messages_on_their_way_fail_with_their_msg_ids(void **state)
{
    (void)state;
    hold_emunic();
    for (uint32_t i = 0; i < CREDITS; i++)
        assert_int_equal(GNI_SmsgSend(a.ep, "x", 2, NULL, 0, 500 + i), GNI_RC_SUCCESS);
    lose(KILLED);
    for (uint32_t i = 0; i < CREDITS; i++) {
        gni_cq_entry_t entry = 0;

        assert_int_equal(next_within_limit(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
        assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 500 + i);
        assert_false(GNI_CQ_STATUS_OK(entry));
    }
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_large_transfers_end_when_the_domain_does(void **state)
{
    size_t bytes = 64u << 20;
    gni_post_descriptor_t posts[4];
    gni_mem_handle_t from_hndl;
    gni_mem_handle_t to_hndl;
    void *from = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(from != MAP_FAILED && to != MAP_FAILED);
    assert_int_equal(
        GNI_MemRegister(a.nic, (uint64_t)(uintptr_t)from, bytes, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &from_hndl),
        GNI_RC_SUCCESS);
    assert_int_equal(
        GNI_MemRegister(b.nic, (uint64_t)(uintptr_t)to, bytes, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &to_hndl),
        GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 4; i++) {
        posts[i] = (gni_post_descriptor_t){
            .type = GNI_POST_RDMA_PUT,
            .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
            .length = bytes,
            .local_addr = (uint64_t)(uintptr_t)from,
            .local_mem_hndl = from_hndl,
            .remote_addr = (uint64_t)(uintptr_t)to,
            .remote_mem_hndl = to_hndl,
        };
        assert_int_equal(GNI_PostRdma(a.ep, &posts[i]), GNI_RC_SUCCESS);
    }
    lose(ENDED);
    for (unsigned i = 0; i < 4; i++) {
        gni_post_descriptor_t *done = NULL;
        gni_cq_entry_t entry = 0;
        gni_return_t rc = next_within_limit(a.src_cq, &entry);

        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR); /* some may have been done */
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), rc);
        assert_true(done >= posts && done < posts + 4);
    }
    munmap(from, bytes);
    munmap(to, bytes);
}

static void *post_until_refused(void *arg)
{
    _Atomic unsigned *accepted = arg;
    gni_post_descriptor_t *posts = calloc(8192, sizeof(*posts));

    while (posts && *accepted < 8192) {
        posts[*accepted] = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
        if (GNI_PostFma(a.ep, &posts[*accepted]) != GNI_RC_SUCCESS)
            break;
        atomic_fetch_add(accepted, 1);
    }
    return posts;
}

static void test_post_that_waits_for_room_is_refused(void **state)
{
    uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
    _Atomic unsigned accepted = 0;
    unsigned before = 0;
    gni_cq_handle_t large;
    pthread_t thread;
    void *posts;

    (void)state;
    /* So many slots that the command ring is full first. */
    assert_int_equal(GNI_CqCreate(a.nic, 8192, 0, GNI_CQ_NOBLOCK, NULL, NULL, &large), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, large, &a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    hold_emunic();
    assert_int_equal(pthread_create(&thread, NULL, post_until_refused, (void *)&accepted), 0);
    do {
        before = atomic_load(&accepted);
        sched_yield();
    } while (before < 1000 && emu_clock_ns() < end_ns);
    lose(KILLED);
    end_ns = emu_clock_ns() + LIMIT_NS;
    assert_int_equal(pthread_join(thread, &posts), 0);
    assert_true(emu_clock_ns() < end_ns);
    assert_true(atomic_load(&accepted) < 8192);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    a.ep = NULL;
    free(posts);
}

/* ---- waits ---- */

enum call { WAIT_EVENT, VECTOR_WAIT, VECTOR_MONITOR, POST_DATA_WAIT, PROBE_WAIT, N_CALLS };

struct waiter {
    pthread_t thread;
    enum call call;
    const struct gx_side *side;
    _Atomic bool is_there;
    uint64_t ended_ns;
    gni_return_t rc;
    gni_cq_entry_t entry;
    gni_post_state_t post_state;
    uint64_t id;
    uint32_t which;
};

static void *wait_in_thread(void *arg)
{
    struct waiter *w = arg;
    gni_cq_handle_t cqs[2] = { w->side->dst_cq, w->side->src_cq };

    atomic_store(&w->is_there, true);
    switch (w->call) {
    case WAIT_EVENT:
        w->rc = GNI_CqWaitEvent(cqs[0], (uint64_t)-1, &w->entry);
        break;
    case VECTOR_WAIT:
        w->rc = GNI_CqVectorWaitEvent(cqs, 2, (uint64_t)-1, &w->entry, &w->which);
        break;
    case VECTOR_MONITOR:
        w->rc = GNI_CqVectorMonitor(cqs, 2, (uint64_t)-1, &w->which);
        break;
    case POST_DATA_WAIT:
        w->rc = GNI_EpPostDataWaitById(w->side->ep, 1, (uint32_t)-1, &w->post_state, NULL, NULL);
        break;
    default:
        w->rc = GNI_PostdataProbeWaitById(w->side->nic, (uint32_t)-1, &w->id);
        break;
    }
    w->ended_ns = emu_clock_ns();
    return NULL;
}

static void start_waiter(struct waiter *w, const struct gx_side *side, enum call call)
{
    *w = (struct waiter){ .call = call, .side = side, .rc = GNI_RC_NOT_DONE };
    assert_int_equal(pthread_create(&w->thread, NULL, wait_in_thread, w), 0);
    while (!atomic_load(&w->is_there))
        sched_yield();
}

static void waits_end(enum way way)
{
    struct waiter w[4];
    uint64_t lost_ns;

    for (enum call call = WAIT_EVENT; call <= VECTOR_MONITOR; call++)
        start_waiter(&w[call], &a, call);
    start_waiter(&w[3], &b, PROBE_WAIT); /* nothing of b is outstanding */
    lost_ns = emu_clock_ns();
    lose(way);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(w[i].thread, NULL), 0);
        assert_true(w[i].ended_ns - lost_ns < LIMIT_NS);
    }
    assert_int_equal(w[WAIT_EVENT].rc, GNI_RC_TRANSACTION_ERROR);
    assert_false(GNI_CQ_STATUS_OK(w[WAIT_EVENT].entry));
    assert_int_equal(w[VECTOR_WAIT].rc, GNI_RC_TRANSACTION_ERROR);
    assert_false(GNI_CQ_STATUS_OK(w[VECTOR_WAIT].entry));
    assert_int_equal(w[VECTOR_MONITOR].rc, GNI_RC_SUCCESS); /* look at the queue: it says the same */
    assert_int_equal(GNI_CqGetEvent(a.dst_cq, &w[2].entry), GNI_RC_TRANSACTION_ERROR);
    /* covers: GNI_PostdataProbeWaitById: GNI_RC_INVALID_STATE */
    assert_int_equal(w[3].rc, GNI_RC_INVALID_STATE);
}

static void count_failure(gni_cq_entry_t *entry, void *context)
{
    unsigned *failures = context;

    *failures += !GNI_CQ_STATUS_OK(*entry);
}

static void test_handler_hears_of_lost_posts(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    unsigned failures = 0;
    gni_cq_entry_t entry;
    gni_cq_handle_t cq;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 8, 0, GNI_CQ_NOBLOCK, count_failure, &failures, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, cq, &a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    hold_emunic();
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
    lose(KILLED);
    assert_int_equal(next_within_limit(cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(failures, 1);
}

/* The queue of another domain stands behind one of a domain that goes on. */
static void test_wait_for_queues_of_two_domains_ends_when_the_second_does(void **state)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END }; /* without a signal: we are a member */
    struct emu_session other_admin;
    struct fx other = fx;
    struct gx_side side;
    gni_cq_handle_t cqs[2];
    gni_cq_entry_t entry;
    uint32_t which = 99;

    (void)state;
    other.ptag = fx.ptag + 1;
    other.cookie = fx.cookie + 1;
    assert_int_equal(fx_add_domain(&fx, other.ptag, other.cookie, getuid(), 0, &other_admin), 0);
    gx_open(&side, &other, 0, 10, 0);
    cqs[0] = a.dst_cq;
    cqs[1] = side.dst_cq;
    assert_int_equal(emu_session_request(&other_admin, &end, NULL, 0, NULL), 0);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 2, LIMIT_NS / 1000000, &entry, &which), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(which, 1);
    gx_close(&side);
    emu_session_close(&other_admin);
}

static void test_waits_for_events_end_when_emunic_is_killed(void **state)
{
    (void)state;
    waits_end(KILLED);
}

static void test_waits_for_events_end_when_the_domain_does(void **state)
{
    (void)state;
    waits_end(ENDED);
}

static void datagrams_fail(enum way way)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    gni_ep_handle_t any;
    struct waiter w[2];
    uint64_t lost_ns;
    uint64_t id = 0;
    char in[8];

    assert_int_equal(GNI_EpCreate(b.nic, NULL, &any), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWId(any, NULL, 0, in, sizeof(in), 77), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, 3, 12345), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWId(a.ep, "x", 2, in, sizeof(in), 1), GNI_RC_SUCCESS);
    start_waiter(&w[0], &a, POST_DATA_WAIT);
    start_waiter(&w[1], &b, PROBE_WAIT);
    lost_ns = emu_clock_ns();
    lose(way);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(w[i].thread, NULL), 0);
        assert_int_equal(w[i].rc, GNI_RC_SUCCESS);
        assert_true(w[i].ended_ns - lost_ns < LIMIT_NS);
    }
    assert_int_equal(w[0].post_state, GNI_POST_ERROR);
    assert_int_equal(w[1].id, 77);
    assert_int_equal(GNI_PostDataProbeById(b.nic, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 77);
    assert_int_equal(GNI_EpPostDataTestById(any, 77, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_ERROR);
    assert_int_equal(GNI_EpPostDataTestById(any, 77, &post_state, NULL, NULL), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_PostDataProbeById(b.nic, &id), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_datagrams_fail_when_emunic_is_killed(void **state)
{
    (void)state;
    datagrams_fail(KILLED);
}

static void test_datagrams_fail_when_the_domain_ends(void **state)
{
    (void)state;
    datagrams_fail(ENDED);
}

/* ---- polling ---- */

static void test_polling_a_datagram_shows_the_loss(void **state)
{
    uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
    gni_post_state_t post_state = GNI_POST_PENDING;

    (void)state;
    assert_int_equal(GNI_EpPostDataWId(a.ep, NULL, 0, NULL, 0, 1), GNI_RC_SUCCESS);
    lose(KILLED);
    while (post_state == GNI_POST_PENDING && emu_clock_ns() < end_ns)
        assert_int_equal(GNI_EpPostDataTestById(a.ep, 1, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_ERROR);
}

static void test_polling_a_probe_shows_the_loss(void **state)
{
    uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
    gni_return_t rc = GNI_RC_NO_MATCH;
    uint64_t id = 0;

    (void)state;
    assert_int_equal(GNI_EpPostDataWId(a.ep, NULL, 0, NULL, 0, 44), GNI_RC_SUCCESS);
    lose(KILLED);
    while (rc == GNI_RC_NO_MATCH && emu_clock_ns() < end_ns)
        rc = GNI_PostDataProbeById(a.nic, &id);
    assert_int_equal(rc, GNI_RC_SUCCESS);
    assert_int_equal(id, 44);
}

static void polling_a_queue_shows_the_loss(enum way way)
{
    gni_cq_entry_t entry = 0;
    gni_post_descriptor_t *done = &(gni_post_descriptor_t){ 0 };

    lose(way);
    assert_int_equal(next_within_limit(a.dst_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_true(entry != 0);
    assert_false(GNI_CQ_STATUS_OK(entry));
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_DESCRIPTOR_ERROR); /* nobody's */
    assert_null(done);
    assert_int_equal(GNI_CqTestEvent(a.src_cq), GNI_RC_SUCCESS);
}

static void test_polling_a_queue_shows_that_emunic_was_killed(void **state)
{
    (void)state;
    polling_a_queue_shows_the_loss(KILLED);
}

static void test_polling_a_queue_shows_that_the_domain_has_ended(void **state)
{
    (void)state;
    polling_a_queue_shows_the_loss(ENDED);
}

static void test_events_from_before_the_loss_come_first(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry = 0;

    (void)state;
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    lose(KILLED);
    while (GNI_CqTestEvent(a.src_cq) != GNI_RC_SUCCESS)
        ; /* until it is known */
    assert_int_equal(next_within_limit(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(next_within_limit(b.dst_cq, &entry), GNI_RC_TRANSACTION_ERROR);
}

static void test_polling_a_mailbox_shows_the_loss(void **state)
{
    uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
    gni_return_t rc = GNI_RC_NOT_DONE;
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message;

    (void)state;
    lose(KILLED);
    while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        rc = GNI_SmsgGetNext(a.ep, &message);
    assert_int_equal(rc, GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_SmsgGetNextWTag(a.ep, &message, &tag), GNI_RC_INVALID_STATE);
}

static void test_message_from_before_the_loss_is_still_delivered(void **state)
{
    gni_cq_entry_t entry;
    void *message = NULL;

    (void)state;
    assert_int_equal(GNI_SmsgSend(a.ep, "abc", 4, NULL, 0, 0), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    lose(KILLED);
    assert_int_equal(next_within_limit(b.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_SmsgGetNext(b.ep, &message), GNI_RC_SUCCESS);
    assert_string_equal(message, "abc");
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgGetNext(b.ep, &message), GNI_RC_INVALID_STATE);
}

static void test_sending_does_not_try_for_ever(void **state)
{
    uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
    gni_return_t rc = GNI_RC_SUCCESS;

    (void)state;
    lose(KILLED);
    while ((rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE) && emu_clock_ns() < end_ns)
        rc = GNI_SmsgSend(a.ep, "x", 2, NULL, 0, 0);
    assert_int_equal(rc, GNI_RC_ERROR_RESOURCE);
}

/* ---- afterwards ---- */

static void calls_afterwards(enum way way)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done = NULL;
    gni_mem_handle_t handle;
    gni_cq_entry_t entry = 0;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_return_t rc;
    uint32_t addr;

    lose(way);
    assert_int_equal(next_within_limit(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    rc = GNI_PostFma(a.ep, &d);
    assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_ERROR_RESOURCE);
    if (rc == GNI_RC_SUCCESS) {
        assert_int_equal(next_within_limit(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
        assert_ptr_equal(done, &d);
    }
    assert_int_equal(GNI_CqCreate(a.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(
        GNI_MemRegister(a.nic, (uint64_t)(uintptr_t)a.mem, 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
        GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_EpPostData(a.ep, NULL, 0, NULL, 0), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_EpPostDataCancel(a.ep), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_CdmCreate(20, (uint8_t)fx.ptag, fx.cookie, GNI_CDM_MODE_ERR_NO_KILL, &cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, &nic), way == KILLED ? GNI_RC_NO_MATCH : GNI_RC_PERMISSION_ERROR);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(a.nic, &a.mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(a.src_cq), GNI_RC_SUCCESS);
    a.ep = NULL;
}

static void test_calls_after_emunic_was_killed_fail_and_objects_can_go(void **state)
{
    (void)state;
    calls_afterwards(KILLED);
}

static void test_calls_after_the_end_of_the_domain_fail_and_objects_can_go(void **state)
{
    (void)state;
    calls_afterwards(ENDED);
}

/* ---- the process ---- */

/* What a program may be doing when it loses its NIC. Ends only by the reaction to the loss. */
static void be_busy(struct gx_side *side, enum call call)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    gni_return_t rc = GNI_RC_NOT_DONE;
    gni_cq_entry_t entry;
    uint64_t id;

    switch (call) {
    case WAIT_EVENT:
        rc = GNI_CqWaitEvent(side->dst_cq, (uint64_t)-1, &entry);
        break;
    case POST_DATA_WAIT:
        rc = GNI_EpPostDataWId(side->ep, NULL, 0, NULL, 0, 1);
        if (rc == GNI_RC_SUCCESS)
            rc = GNI_EpPostDataWaitById(side->ep, 1, (uint32_t)-1, &post_state, NULL, NULL);
        break;
    case PROBE_WAIT:
        rc = GNI_PostdataProbeWaitById(side->nic, (uint32_t)-1, &id);
        break;
    default:
        while (rc == GNI_RC_NOT_DONE)
            rc = GNI_CqGetEvent(side->src_cq, &entry);
        break;
    }
}

static void child_program(uint32_t modes, enum call call, int ready_fd, int error_fd)
{
    struct gx_side side = { 0 };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(fx.admin.fd);
    dup2(error_fd, STDERR_FILENO);
    fx_set_node(2);
    if (GNI_CdmCreate(55, (uint8_t)fx.ptag, fx.cookie, modes, &side.cdm) ||
        GNI_CdmAttach(side.cdm, 0, &side.nic_addr, &side.nic) ||
        GNI_CqCreate(side.nic, 16, 0, GNI_CQ_BLOCKING, NULL, NULL, &side.src_cq) ||
        GNI_CqCreate(side.nic, 16, 0, GNI_CQ_BLOCKING, NULL, NULL, &side.dst_cq) ||
        GNI_EpCreate(side.nic, side.src_cq, &side.ep) || GNI_EpBind(side.ep, 3, 56))
        _exit(3);
    if (write(ready_fd, "r", 1) != 1)
        _exit(4);
    be_busy(&side, call);
    /* Whoever lives on may ask again and again and is told nothing more. */
    for (unsigned i = 0; i < 100; i++) {
        gni_cq_entry_t entry;

        GNI_CqGetEvent(side.dst_cq, &entry);
        GNI_CqGetEvent(side.src_cq, &entry);
    }
    _exit(0);
}

/* Runs the program, loses its NIC, returns its wait status and what it has said. */
static int run_program(uint32_t modes, enum call call, enum way way, char *said, size_t said_bytes)
{
    uint64_t end_ns;
    size_t used = 0;
    int ready[2];
    int error[2];
    int status = -1;
    ssize_t n;
    char byte;
    pid_t pid;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(error), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        child_program(modes, call, ready[1], error[1]);
    close(ready[1]);
    close(error[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    end_ns = emu_clock_ns() + LIMIT_NS;
    lose(way);
    while ((n = read(error[0], said + used, said_bytes - 1 - used)) > 0)
        used += (size_t)n;
    said[used] = '\0';
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(emu_clock_ns() < end_ns);
    close(ready[0]);
    close(error[0]);
    return status;
}

static unsigned count_lines(const char *text)
{
    unsigned lines = 0;

    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

static void expect_kill(enum call call, enum way way)
{
    char said[2000];
    int status = run_program(0, call, way, said, sizeof(said));

    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_int_equal(count_lines(said), 1);
    assert_non_null(strstr(said, "the emulated NIC has gone"));
    assert_non_null(strstr(said, "GNI_CDM_MODE_ERR_NO_KILL"));
}

static void expect_life(enum call call, enum way way)
{
    char said[2000];
    int status = run_program(GNI_CDM_MODE_ERR_NO_KILL, call, way, said, sizeof(said));

    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(count_lines(said), 1);
    assert_non_null(strstr(said, "the emulated NIC has gone"));
}

#define FATE(name, expect, call, way)                                                                                  \
    static void name(void **state)                                                                                     \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        expect(call, way);                                                                                             \
    }
FATE(test_polling_process_is_killed_with_one_line, expect_kill, N_CALLS, KILLED)
FATE(test_polling_process_of_an_ended_domain_is_killed_with_one_line, expect_kill, N_CALLS, ENDED)
FATE(test_process_that_waits_for_events_is_killed_with_one_line, expect_kill, WAIT_EVENT, KILLED)
FATE(test_process_that_waits_for_a_datagram_is_killed_with_one_line, expect_kill, POST_DATA_WAIT, KILLED)
FATE(test_process_that_waits_in_a_probe_is_killed_with_one_line, expect_kill, PROBE_WAIT, ENDED)
FATE(test_polling_process_lives_on_if_it_wants, expect_life, N_CALLS, KILLED)
FATE(test_process_that_waits_for_events_lives_on_if_it_wants, expect_life, WAIT_EVENT, ENDED)
FATE(test_process_that_waits_for_a_datagram_lives_on_if_it_wants, expect_life, POST_DATA_WAIT, KILLED)
FATE(test_process_that_waits_in_a_probe_lives_on_if_it_wants, expect_life, PROBE_WAIT, KILLED)

/* ---- a peer that is killed ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        ALONE(test_posts_on_their_way_fail_once_each),
        ALONE(test_messages_on_their_way_fail_with_their_msg_ids),
        ALONE(test_large_transfers_end_when_the_domain_does),
        ALONE(test_post_that_waits_for_room_is_refused),
        ALONE(test_waits_for_events_end_when_emunic_is_killed),
        ALONE(test_handler_hears_of_lost_posts),
        ALONE(test_wait_for_queues_of_two_domains_ends_when_the_second_does),
        ALONE(test_waits_for_events_end_when_the_domain_does),
        ALONE(test_datagrams_fail_when_emunic_is_killed),
        ALONE(test_datagrams_fail_when_the_domain_ends),
        ALONE(test_polling_a_datagram_shows_the_loss),
        ALONE(test_polling_a_probe_shows_the_loss),
        ALONE(test_polling_a_queue_shows_that_emunic_was_killed),
        ALONE(test_polling_a_queue_shows_that_the_domain_has_ended),
        ALONE(test_events_from_before_the_loss_come_first),
        ALONE(test_polling_a_mailbox_shows_the_loss),
        ALONE(test_message_from_before_the_loss_is_still_delivered),
        ALONE(test_sending_does_not_try_for_ever),
        ALONE(test_calls_after_emunic_was_killed_fail_and_objects_can_go),
        ALONE(test_calls_after_the_end_of_the_domain_fail_and_objects_can_go),
        ALONE(test_polling_process_is_killed_with_one_line),
        ALONE(test_polling_process_of_an_ended_domain_is_killed_with_one_line),
        ALONE(test_process_that_waits_for_events_is_killed_with_one_line),
        ALONE(test_process_that_waits_for_a_datagram_is_killed_with_one_line),
        ALONE(test_process_that_waits_in_a_probe_is_killed_with_one_line),
        ALONE(test_polling_process_lives_on_if_it_wants),
        ALONE(test_process_that_waits_for_events_lives_on_if_it_wants),
        ALONE(test_process_that_waits_for_a_datagram_lives_on_if_it_wants),
        ALONE(test_process_that_waits_in_a_probe_lives_on_if_it_wants),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
