/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of waiting calls share. Includes pair.h; each program includes this once.
 */
#ifndef TESTS_CONFORMANCE_BLOCKING_H
#define TESTS_CONFORMANCE_BLOCKING_H

#include "tests/common/proc.h"
#include "tests/conformance/pair.h"

#define FOR_EVER ((uint64_t)-1)
#define PATIENCE 30000u /* ms */

/* ---- fixture ---- */

/* A blocking call goes to sleep at its first chance instead of polling for a while. */
static inline int open_sleepers(void **state)
{
    setenv("EMUNIC_SPIN", "0", 1);
    open_pair(state);
    unsetenv("EMUNIC_SPIN");
    return 0;
}

/* ---- short hands ---- */

/* An entry with that value on a queue of `to` that has registered memory: a write to its queue. */
static inline void write_queue(const struct gx_side *from, const struct gx_side *to, uint64_t value)
{
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .cqwrite_value = value,
                                .dlvr_mode = GNI_DLVMODE_IN_ORDER,
                                .remote_mem_hndl = to->mem_hndl };
    gni_post_descriptor_t *done;

    assert_int_equal(GNI_PostCqWrite(from->ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(from->src_cq, &done), GNI_RC_SUCCESS);
}

/* A put into memory that is not registered: one failed entry on the source queue of a. */
static inline void post_failure(gni_post_descriptor_t *d)
{
    *d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    d->remote_addr += GX_BYTES;
    assert_int_equal(GNI_PostFma(a.ep, d), GNI_RC_SUCCESS);
}

enum call {
    WAIT_EVENT,
    VECTOR_WAIT,
    VECTOR_MONITOR,
    POST_DATA_WAIT,
    PROBE_WAIT,
    N_CALLS,
    POST_DATA_WAIT_PLAIN /* needs a datagram of its own kind */
};

/* A thread inside a blocking call. */
struct sleeper {
    pthread_t thread;
    pid_t tid; /* once it is there */
    enum call call;
    gni_nic_handle_t nic;
    gni_ep_handle_t ep;
    gni_cq_handle_t cqs[2];
    int cancel_type;
    _Atomic bool is_there; /* about to call */
    _Atomic bool has_returned;
    gni_return_t rc;
    gni_cq_entry_t entry;
    uint32_t which;
    uint64_t id;
};

static inline gni_return_t call_and_wait(struct sleeper *s)
{
    gni_post_state_t post_state;

    switch (s->call) {
    case WAIT_EVENT:
        return GNI_CqWaitEvent(s->cqs[0], FOR_EVER, &s->entry);
    case VECTOR_WAIT:
        return GNI_CqVectorWaitEvent(s->cqs, 2, FOR_EVER, &s->entry, &s->which);
    case VECTOR_MONITOR:
        return GNI_CqVectorMonitor(s->cqs, 2, FOR_EVER, &s->which);
    case POST_DATA_WAIT:
        return GNI_EpPostDataWaitById(s->ep, 1, (uint32_t)-1, &post_state, NULL, NULL);
    case POST_DATA_WAIT_PLAIN:
        return GNI_EpPostDataWait(s->ep, (uint32_t)-1, &post_state, NULL, NULL);
    default:
        return GNI_PostdataProbeWaitById(s->nic, (uint32_t)-1, &s->id);
    }
}

static inline void *sleep_in_thread(void *arg)
{
    struct sleeper *s = arg;

    pthread_setcanceltype(s->cancel_type, NULL);
    s->tid = gettid();
    atomic_store(&s->is_there, true);
    s->rc = call_and_wait(s);
    atomic_store(&s->has_returned, true);
    return NULL;
}

static inline void start_sleeper(struct sleeper *s, const struct gx_side *side, enum call call)
{
    *s = (struct sleeper){ .call = call,
                           .nic = side->nic,
                           .ep = side->ep,
                           .cqs = { side->dst_cq, side->src_cq },
                           .cancel_type = PTHREAD_CANCEL_DEFERRED,
                           .rc = GNI_RC_ERROR_NOMEM };
    assert_int_equal(pthread_create(&s->thread, NULL, sleep_in_thread, s), 0);
    while (!atomic_load(&s->is_there))
        sched_yield();
}

static inline void join_sleeper(struct sleeper *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    assert_true(atomic_load(&s->has_returned));
}

#define POLLING(test)  cmocka_unit_test_setup_teardown(test, open_pair, close_pair)
#define SLEEPING(test) cmocka_unit_test_setup_teardown(test, open_sleepers, close_pair)

#endif
