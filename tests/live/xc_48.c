/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-48: the routing mode is chosen for each operation. Three nodes put into one, short behind long: in order mode the
 * order of each initiator's puts is that of its posts; adaptive ones come as they can.
 */
#include "tests/live/live.h"

#define SENDERS 3u
#define PUTS    40u        /* of each: every fourth is long */
#define LONG    (8u << 20) /* beyond EMUNIC_DIRECT_LIMIT: returns at once */

static struct gx_side hot;
static struct gx_side senders[SENDERS];
static gni_post_descriptor_t d[SENDERS][PUTS];
static uint8_t *target;
static gni_mem_handle_t target_handle;
static uint8_t *sources[SENDERS];
static gni_mem_handle_t source_handles[SENDERS];

static int open_hot_spot(void **state)
{
    (void)state;
    gx_open(&hot, &fx, 0, 10, 0);
    target = pages(LONG);
    target_handle = register_on(&hot, target, LONG, GNI_MEM_READWRITE);
    for (unsigned s = 0; s < SENDERS; s++) {
        gx_open(&senders[s], &fx, s + 1, 11 + s, 0);
        sources[s] = pages(LONG);
        source_handles[s] = register_on(&senders[s], sources[s], LONG, GNI_MEM_READWRITE);
        if (GNI_EpCreate(senders[s].nic, senders[s].src_cq, &senders[s].ep) != GNI_RC_SUCCESS ||
            GNI_EpBind(senders[s].ep, hot.nic_addr, hot.inst_id) != GNI_RC_SUCCESS)
            return -1;
    }
    return 0;
}

static int close_hot_spot(void **state)
{
    (void)state;
    for (unsigned s = 0; s < SENDERS; s++) {
        GNI_MemDeregister(senders[s].nic, &source_handles[s]);
        munmap(sources[s], LONG);
        gx_close(&senders[s]);
    }
    GNI_MemDeregister(hot.nic, &target_handle);
    munmap(target, LONG);
    gx_close(&hot);
    return 0;
}

/* All of them at once; how often a put is seen at the target before one of the same initiator posted earlier. */
static unsigned inversions(uint16_t dlvr_mode)
{
    unsigned n = 0;

    for (unsigned i = 0; i < PUTS; i++) {
        for (unsigned s = 0; s < SENDERS; s++) {
            d[s][i] = gx_put(&senders[s], &hot, 0, i % 4 == 0 ? LONG : 8, GNI_CQMODE_GLOBAL_EVENT);
            d[s][i].type = GNI_POST_RDMA_PUT;
            d[s][i].local_addr = ADDR(sources[s]);
            d[s][i].local_mem_hndl = source_handles[s];
            d[s][i].remote_addr = ADDR(target);
            d[s][i].remote_mem_hndl = target_handle;
            d[s][i].dlvr_mode = dlvr_mode;
            d[s][i].post_id = i;
            assert_int_equal(post_on(senders[s].ep, &d[s][i]), GNI_RC_SUCCESS);
        }
    }
    for (unsigned s = 0; s < SENDERS; s++) {
        uint64_t highest = 0;

        for (unsigned i = 0; i < PUTS; i++) {
            gni_post_descriptor_t *done = NULL;

            assert_int_equal(gx_complete(senders[s].src_cq, &done), GNI_RC_SUCCESS);
            n += done->post_id < highest;
            highest = done->post_id > highest ? done->post_id : highest;
        }
    }
    return n;
}

static void test_order_is_kept_where_it_is_asked_for_alone(void **state)
{
    (void)state;
    assert_int_equal(inversions(GNI_DLVMODE_IN_ORDER), 0);
    assert_true(inversions(GNI_DLVMODE_PERFORMANCE) > 0);
    assert_int_equal(inversions(GNI_DLVMODE_IN_ORDER), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_order_is_kept_where_it_is_asked_for_alone, open_hot_spot, close_hot_spot),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
