/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A destination queue is destroyed and made anew in the same place, with other uses, while a peer that knew the old one
 * goes on sending: nothing that the peer remembers of the old queue may matter.
 */
#include "tests/conformance/pair.h"

#include "libugni/src/ugni.h"

static struct gx_side c; /* node 2, a second producer */

static int open_three(void **state)
{
    (void)state;
    open_pair_in_mode(0);
    gx_open(&c, &fx, 2, 12, 0);
    if (GNI_EpCreate(c.nic, c.src_cq, &c.ep) != GNI_RC_SUCCESS)
        return -1;
    return GNI_EpBind(c.ep, b.nic_addr, b.inst_id) == GNI_RC_SUCCESS ? 0 : -1;
}

static int close_three(void **state)
{
    gx_close(&c);
    return close_pair(state);
}

static void put_from(const struct gx_side *side, uint32_t event)
{
    gni_post_descriptor_t d = gx_put(side, &b, 64, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

    assert_int_equal(GNI_EpSetEventData(side->ep, 0, event), GNI_RC_SUCCESS);
    assert_int_equal(post_on(side->ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(side->src_cq, &d), STATUS_OK);
}

static void expect_event(uint32_t event)
{
    gni_cq_entry_t entry = 0;

    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(gni_cq_get_rem_inst_id(entry), event);
}

static void replace_queue(gni_cq_mode_t mode)
{
    assert_int_equal(GNI_MemDeregister(b.nic, &b.mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(b.nic, 128, 0, mode, NULL, NULL, &b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(
        GNI_MemRegister(b.nic, ADDR(b.mem), GX_BYTES, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1, &b.mem_hndl),
        GNI_RC_SUCCESS);
}

/* a has seen the old queue's reader far on; the new queue is full at that very place. */
static void test_new_queue_in_an_old_place_is_never_overwritten(void **state)
{
    uint32_t capacity = gnii_cq_find(b.dst_cq)->capacity;
    gni_cq_entry_t entry = 0;

    (void)state;
    for (uint32_t i = 0; i <= capacity; i++) {
        put_from(&a, i);
        expect_event(i);
    }
    replace_queue(GNI_CQ_NOBLOCK);
    for (uint32_t i = 0; i < capacity; i++)
        put_from(&c, i);
    put_from(&a, 0xa);
    for (uint32_t i = 0; i < capacity; i++)
        expect_event(i);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_ERROR_RESOURCE);
    put_from(&a, 0xb);
    expect_event(0xb);
}

/* The old queue was only polled. */
static void *put_when_somebody_sleeps(void *arg)
{
    _Atomic uint32_t *sleepers = arg;

    while (atomic_load(sleepers) == 0)
        sched_yield();
    put_from(&a, 0xc);
    return (void *)(uintptr_t)(atomic_load(sleepers) == 0);
}

static void test_new_queue_in_an_old_place_wakes_its_sleepers(void **state)
{
    gni_cq_entry_t entry = 0;
    pthread_t thread;
    void *has_woken;

    (void)state;
    replace_queue(GNI_CQ_NOBLOCK);
    put_from(&a, 1);
    expect_event(1);
    replace_queue(GNI_CQ_BLOCKING);
    assert_int_equal(pthread_create(&thread, NULL, put_when_somebody_sleeps,
                                    (void *)&gnii_cq_find(b.dst_cq)->consumer.shm->sleepers),
                     0);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 10000, &entry), GNI_RC_SUCCESS);
    pthread_join(thread, &has_woken);
    assert_int_equal(gni_cq_get_rem_inst_id(entry), 0xc);
    assert_non_null(has_woken); /* and not only because a sleeper looks again by itself now and then */
}

#define three_test(name) cmocka_unit_test_setup_teardown(name, open_three, close_three)

int main(void)
{
    const struct CMUnitTest tests[] = {
        three_test(test_new_queue_in_an_old_place_is_never_overwritten),
        three_test(test_new_queue_in_an_old_place_wakes_its_sleepers),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
