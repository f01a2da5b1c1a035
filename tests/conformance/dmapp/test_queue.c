/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message queues: content, order, full queues, callbacks that send, the helper thread. Specification: spec/dmapp.md
 * 4.14.
 *
 *   test_queue          messages are delivered inside library calls
 *   test_queue async    by a helper thread: nobody calls the library to receive
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "tests/common/dmapp.h"

#define DEPTH    8
#define NELEMS   33  /* 32 of them are payload */
#define MESSAGES 300 /* from each PE to each */
#define SENDERS  64

static bool is_async;

/* What the callback has seen. */
static struct {
    _Atomic uint64_t n;
    _Atomic uint64_t n_wrong;
    uint64_t next[SENDERS];
    dmapp_queue_handle_t queue; /* of callbacks that send */
    pthread_t thread;
} seen;

static uint32_t words_of(dmapp_pe_t from, dmapp_pe_t to, uint64_t n)
{
    return (uint32_t)((n * 7 + (unsigned)from * 3 + (unsigned)to) % (NELEMS - 1)) + 1;
}

static void fill(uint64_t *message, dmapp_pe_t from, dmapp_pe_t to, uint64_t n)
{
    for (uint32_t i = 0; i < words_of(from, to, n); i++)
        message[i] = n << 32 | (unsigned)from << 16 | (unsigned)to << 8 | i;
}

static int check_message(void *context, void *data, uint32_t len, dmapp_pe_t from)
{
    uint64_t expected[NELEMS];
    bool is_good = context == &seen && from >= 0 && from < dx_job.npes;

    if (is_good) {
        uint64_t n = seen.next[from]++;

        fill(expected, from, dx_job.pe, n);
        is_good = len == words_of(from, dx_job.pe, n) * 8 && memcmp(data, expected, len) == 0;
    }
    seen.thread = pthread_self();
    atomic_fetch_add(&seen.n_wrong, !is_good);
    atomic_fetch_add(&seen.n, 1);
    return 0;
}

static dmapp_queue_handle_t attach(int (*callback)(void *, void *, uint32_t, dmapp_pe_t))
{
    dmapp_queue_handle_t queue = NULL;

    memset(&seen, 0, sizeof(seen));
    assert_int_equal(dmapp_queue_attach(callback, &seen, 0, &queue), DMAPP_RC_SUCCESS);
    seen.queue = queue;
    dx_barrier();
    return queue;
}

static void detach(dmapp_queue_handle_t queue)
{
    dx_barrier();
    assert_int_equal(dmapp_queue_detach(queue, 0), DMAPP_RC_SUCCESS);
    dx_barrier();
}

static void wait_for(uint64_t n)
{
    while (atomic_load(&seen.n) < n) {
        if (is_async)
            sched_yield();
        else
            assert_int_equal(dmapp_progress(), DMAPP_RC_SUCCESS);
    }
}

static void test_messages_arrive_whole_and_in_the_order_of_their_sender(void **state)
{
    dmapp_queue_handle_t queue = attach(check_message);
    uint64_t message[NELEMS];

    (void)state;
    for (uint64_t n = 0; n < MESSAGES; n++) {
        for (dmapp_pe_t to = 0; to < dx_job.npes; to++) {
            fill(message, dx_job.pe, to, n);
            assert_int_equal(dmapp_queue_put(queue, message, words_of(dx_job.pe, to, n), DMAPP_QW, to, 0),
                             DMAPP_RC_SUCCESS);
            memset(message, 0xee, sizeof(message)); /* free on return */
        }
    }
    wait_for((uint64_t)MESSAGES * (unsigned)dx_job.npes);
    dx_barrier();
    assert_int_equal(atomic_load(&seen.n), MESSAGES * dx_job.npes);
    assert_int_equal(atomic_load(&seen.n_wrong), 0);
    if (is_async)
        assert_false(pthread_equal(seen.thread, pthread_self()));
    detach(queue);
}

/* Everybody sends to one, who has eight slots. */
static void test_a_full_queue_makes_senders_wait(void **state)
{
    dmapp_queue_handle_t queue = attach(check_message);
    uint64_t message[NELEMS];

    (void)state;
    if (dx_job.pe != 0) {
        for (uint64_t n = 0; n < 4 * MESSAGES; n++) {
            fill(message, dx_job.pe, 0, n);
            assert_int_equal(dmapp_queue_put(queue, message, words_of(dx_job.pe, 0, n), DMAPP_QW, 0, 0),
                             DMAPP_RC_SUCCESS);
        }
    } else {
        wait_for(4ull * MESSAGES * (unsigned)(dx_job.npes - 1));
        assert_int_equal(atomic_load(&seen.n_wrong), 0);
    }
    detach(queue);
}

static int answer(void *context, void *data, uint32_t len, dmapp_pe_t from)
{
    uint64_t *word = data;

    (void)context;
    atomic_fetch_add(&seen.n, 1);
    if (len != 8)
        atomic_fetch_add(&seen.n_wrong, 1);
    else if (*word > 0) {
        uint64_t next = *word - 1;

        /* To a queue that may be full, from callbacks on both sides. */
        if (dmapp_queue_put(seen.queue, &next, 1, DMAPP_QW, from, 0) != DMAPP_RC_SUCCESS)
            atomic_fetch_add(&seen.n_wrong, 1);
    }
    return 0;
}

/*
 * Each message is answered by a shorter chain until 0: 6 messages and their 5 answers each, from everybody to
 * everybody.
 */
static void test_callbacks_send(void **state)
{
    dmapp_queue_handle_t queue = attach(answer);
    const unsigned n_each = 6;

    (void)state;
    for (uint64_t i = 0; i < n_each; i++) {
        for (dmapp_pe_t to = 0; to < dx_job.npes; to++) {
            uint64_t hops = 5;

            assert_int_equal(dmapp_queue_put(queue, &hops, 1, DMAPP_QW, to, 0), DMAPP_RC_SUCCESS);
        }
    }
    wait_for((uint64_t)n_each * 6 * (unsigned)dx_job.npes);
    dx_barrier();
    assert_int_equal(atomic_load(&seen.n), n_each * 6 * (unsigned)dx_job.npes);
    assert_int_equal(atomic_load(&seen.n_wrong), 0);
    detach(queue);
}

static struct {
    uint64_t *words; /* on the heap: a lock, a counter, a copy */
} work;

static int use_everything(void *context, void *data, uint32_t len, dmapp_pe_t from)
{
    dmapp_rma_attrs_ext_t attrs;
    dmapp_lock_handle_t handle;
    uint64_t value;
    bool is_good;

    (void)context;
    (void)len;
    is_good = dmapp_get_rma_attrs_ext(&attrs) == DMAPP_RC_SUCCESS;
    attrs.offload_threshold = 128;
    is_good = is_good && dmapp_set_rma_attrs_ext(&attrs, &attrs) == DMAPP_RC_SUCCESS && attrs.offload_threshold == 128;
    is_good = is_good && dmapp_lock_acquire((dmapp_lock_desc_t *)&work.words[0], &dx_job.sheap_seg, 0, 0, &handle) ==
                             DMAPP_RC_SUCCESS;
    is_good = is_good && dmapp_get(&value, &work.words[1], &dx_job.sheap_seg, 0, 1, DMAPP_QW) == DMAPP_RC_SUCCESS;
    value++;
    is_good = is_good && dmapp_put_nbi(&work.words[1], &dx_job.sheap_seg, 0, &value, 1, DMAPP_QW) == DMAPP_RC_SUCCESS;
    is_good = is_good && dmapp_put_nbi(&work.words[2], &dx_job.sheap_seg, from, data, 1, DMAPP_QW) == DMAPP_RC_SUCCESS;
    is_good = is_good && dmapp_gsync_wait() == DMAPP_RC_SUCCESS;
    is_good = is_good && dmapp_lock_release(handle, 0) == DMAPP_RC_SUCCESS;
    atomic_fetch_add(&seen.n_wrong, !is_good);
    atomic_fetch_add(&seen.n, 1);
    return 0;
}

static void test_callbacks_transfer_lock_and_set_attributes(void **state)
{
    dmapp_queue_handle_t queue;
    dmapp_rma_attrs_ext_t before, after;
    uint64_t number = 77;

    (void)state;
    work.words = dx_alloc(3 * sizeof(*work.words));
    assert_int_equal(dmapp_get_rma_attrs_ext(&before), DMAPP_RC_SUCCESS);
    queue = attach(use_everything);
    for (dmapp_pe_t to = 0; to < dx_job.npes; to++)
        assert_int_equal(dmapp_queue_put(queue, &number, 1, DMAPP_QW, to, 0), DMAPP_RC_SUCCESS);
    wait_for((unsigned)dx_job.npes);
    dx_barrier();
    assert_int_equal(atomic_load(&seen.n_wrong), 0);
    assert_int_equal(dx_get_word(&work.words[1], &dx_job.sheap_seg, 0), dx_job.npes * dx_job.npes);
    assert_int_equal(work.words[2], 77);
    /* Attributes belong to the thread: a helper's are not ours. */
    assert_int_equal(dmapp_get_rma_attrs_ext(&after), DMAPP_RC_SUCCESS);
    if (is_async)
        assert_int_equal(after.offload_threshold, before.offload_threshold);
    assert_int_equal(dmapp_set_rma_attrs_ext(&before, NULL), DMAPP_RC_SUCCESS);
    detach(queue);
    dx_free(work.words);
}

static void test_all_types_and_lengths(void **state)
{
    static const struct {
        dmapp_type_t type;
        uint64_t size;
    } types[] = { { DMAPP_BYTE, 1 }, { DMAPP_DW, 4 }, { DMAPP_QW, 8 }, { DMAPP_DQW, 16 } };
    dmapp_queue_handle_t queue = attach(check_message);
    uint64_t message[NELEMS] = { 0 };
    uint64_t n = 0;

    (void)state;
    if (dx_job.pe == 0) {
        for (size_t t = 0; t < sizeof(types) / sizeof(types[0]); t++) {
            uint64_t room = (NELEMS - 1) * 8 / types[t].size;

            assert_int_equal(dmapp_queue_put(queue, message, room, types[t].type, 0, 0), DMAPP_RC_SUCCESS);
            assert_int_equal(dmapp_queue_put(queue, message, 1, types[t].type, 0, 0), DMAPP_RC_SUCCESS);
            assert_int_equal(dmapp_queue_put(queue, message, room + 1, types[t].type, 0, 0), DMAPP_RC_INVALID_PARAM);
            assert_int_equal(dmapp_queue_put(queue, message, UINT64_MAX / types[t].size + (t > 0), types[t].type, 0, 0),
                             DMAPP_RC_INVALID_PARAM);
            n += 2;
        }
        assert_int_equal(dmapp_queue_put(queue, NULL, 0, DMAPP_QW, 0, 0), DMAPP_RC_SUCCESS);
        wait_for(n + 1);
        dx_barrier();
    } else {
        dx_barrier();
    }
    detach(queue);
}

static void test_what_is_wrong_is_refused(void **state)
{
    dmapp_queue_handle_t queue = attach(check_message);
    dmapp_queue_handle_t other = NULL;
    uint64_t word = 0;
    const struct {
        const char *name;
        dmapp_queue_handle_t queue;
        void *data;
        dmapp_type_t type;
        dmapp_pe_t pe;
    } rows[] = {
        { "no queue", NULL, &word, DMAPP_QW, 0 },
        { "no data", queue, NULL, DMAPP_QW, 0 },
        { "PE -1", queue, &word, DMAPP_QW, -1 },
        { "PE beyond the last", queue, &word, DMAPP_QW, dx_job.npes },
        { "unknown type", queue, &word, (dmapp_type_t)9, 0 },
    };

    (void)state;
    assert_int_equal(dmapp_queue_attach(NULL, NULL, 0, &other), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_queue_attach(check_message, NULL, 0, NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_queue_attach(check_message, NULL, 0, &other), DMAPP_RC_BUSY);
    assert_null(other);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, dmapp_queue_put(rows[i].queue, rows[i].data, 1, rows[i].type, rows[i].pe, 0),
                         DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_queue_detach(NULL, 0), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(atomic_load(&seen.n), 0);
    detach(queue);
    assert_int_equal(dmapp_queue_detach(queue, 0), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_queue_put(queue, &word, 1, DMAPP_QW, 0, 0), DMAPP_RC_INVALID_PARAM);
    dx_barrier();
}

static int detach_it(void *context, void *data, uint32_t len, dmapp_pe_t from)
{
    (void)context;
    (void)data;
    (void)len;
    (void)from;
    atomic_fetch_add(&seen.n_wrong, dmapp_queue_detach(seen.queue, 0) != DMAPP_RC_INVALID_PARAM);
    atomic_fetch_add(&seen.n, 1);
    return 0;
}

static void test_a_callback_cannot_detach(void **state)
{
    dmapp_queue_handle_t queue = attach(detach_it);
    uint64_t word = 0;

    (void)state;
    assert_int_equal(dmapp_queue_put(queue, &word, 1, DMAPP_QW, dx_job.pe, 0), DMAPP_RC_SUCCESS);
    wait_for(1);
    assert_int_equal(atomic_load(&seen.n_wrong), 0);
    detach(queue);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_arrive_whole_and_in_the_order_of_their_sender),
        cmocka_unit_test(test_a_full_queue_makes_senders_wait),
        cmocka_unit_test(test_callbacks_send),
        cmocka_unit_test(test_callbacks_transfer_lock_and_set_attributes),
        cmocka_unit_test(test_all_types_and_lengths),
        cmocka_unit_test(test_what_is_wrong_is_refused),
        cmocka_unit_test(test_a_callback_cannot_detach),
    };
    dmapp_rma_attrs_ext_t attrs;

    is_async = argc > 1 && strcmp(argv[1], "async") == 0;
    if (dmapp_get_rma_attrs_ext(&attrs) != DMAPP_RC_SUCCESS)
        return 1;
    attrs.queue_depth = DEPTH;
    attrs.queue_nelems = NELEMS;
    attrs.queue_flags = is_async ? DMAPP_QUEUE_ASYNC_PROGRESS : 0;
    return dx_run(tests, &attrs);
}
