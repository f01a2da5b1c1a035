/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-45: a put's global event comes when its data can be seen at the target, its local one not after it; a get's event
 * when its data are here; the target's event after the data. Each thread with a queue of its own gets its own events
 * alone.
 */
#include <pthread.h>

#include "tests/live/live.h"

#define ROUNDS  500u
#define THREADS 4u

static void test_local_comes_before_global_and_global_after_the_data(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT);
        gni_cq_entry_t local = 0;
        gni_cq_entry_t global = 0;
        gni_post_descriptor_t *done = NULL;

        memcpy(a.mem, &i, 8);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &local), GNI_RC_SUCCESS);
        assert_true(GNI_CQ_GET_TYPE(local) == GNI_CQ_EVENT_TYPE_POST);
        assert_int_equal(GNI_GetCompleted(a.src_cq, local, &done), GNI_RC_SUCCESS);
        memset(a.mem, 0xee, 8); /* the source is ours again */
        assert_int_equal(gx_next(a.src_cq, &global), GNI_RC_SUCCESS);
        assert_memory_equal(b.mem, &i, 8);
        assert_int_equal(GNI_GetCompleted(a.src_cq, global, &done), GNI_RC_SUCCESS);
        assert_ptr_equal(done, &d);
        assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    }
}

static void test_a_gets_event_comes_after_its_data(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        gni_post_descriptor_t d = word_post(i % 2 ? GNI_POST_FMA_GET : GNI_POST_RDMA_GET, 0);

        d.length = 4096;
        fill(b.mem, 4096, i << 13); /* each byte changes */
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(a.mem, b.mem, 4096);
    }
}

static void test_the_targets_event_comes_after_the_data(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 4096, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        gni_cq_entry_t entry = 0;

        fill(a.mem, 4096, i << 13);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_memory_equal(b.mem, a.mem, 4096);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), a.inst_id);
        assert_int_equal(finish(&d), STATUS_OK);
    }
}

struct worker {
    pthread_t thread;
    unsigned number;
    unsigned n_wrong;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    gni_cq_handle_t cq = NULL;
    gni_ep_handle_t ep = NULL;

    w->n_wrong = GNI_CqCreate(a.nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq) != GNI_RC_SUCCESS ||
                 GNI_EpCreate(a.nic, cq, &ep) != GNI_RC_SUCCESS ||
                 GNI_EpBind(ep, b.nic_addr, b.inst_id) != GNI_RC_SUCCESS;
    for (unsigned i = 0; i < ROUNDS && w->n_wrong == 0; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, (uint64_t)8 * w->number, 8, GNI_CQMODE_GLOBAL_EVENT);
        gni_post_descriptor_t *done = NULL;

        w->n_wrong += GNI_PostFma(ep, &d) != GNI_RC_SUCCESS;
        w->n_wrong += gx_complete(cq, &done) != GNI_RC_SUCCESS;
        w->n_wrong += done != &d; /* somebody else's event */
    }
    w->n_wrong += poll_once(cq) != GNI_RC_NOT_DONE;
    GNI_EpDestroy(ep);
    GNI_CqDestroy(cq);
    return NULL;
}

static void test_a_queue_of_a_thread_has_the_threads_events(void **state)
{
    struct worker workers[THREADS] = { 0 };

    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i].number = i;
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(workers[i].n_wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        dual_pair_test(test_local_comes_before_global_and_global_after_the_data),
        pair_test(test_a_gets_event_comes_after_its_data),
        pair_test(test_the_targets_event_comes_after_the_data),
        pair_test(test_a_queue_of_a_thread_has_the_threads_events),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
