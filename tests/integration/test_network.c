/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network that breaks and is mended under running programs: what goes another way, what ends with an error at whom,
 * what waits, and what links tell of it. The machine is a Dragonfly of two groups; the ranks sit on routers 0, 1 and
 * 96, the last one in the other group.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"

#define PATIENCE_NS 30000000000ull

static const uint32_t nids[] = { 0, 4, 384 };
static struct fx fx;
static struct gx_side near_side;
static struct gx_side far_side;

static void change(enum emu_network_thing thing, uint32_t index, uint32_t flags)
{
    const struct emu_msg_network wanted = { .thing = thing, .index = index, .flags = flags };

    assert_int_equal(fx_change_network(&fx, wanted), 0);
}

static void mend_all(void)
{
    change(EMU_NETWORK_ALL, 0, EMU_NETWORK_REPAIR);
}

static gni_return_t put(uint8_t value)
{
    gni_post_descriptor_t d = gx_put(&near_side, &far_side, 64, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t *done = NULL;
    gni_return_t rc;

    memset(near_side.mem + 64, value, 8);
    assert_int_equal(GNI_PostFma(near_side.ep, &d), GNI_RC_SUCCESS);
    rc = gx_complete(near_side.src_cq, &done);
    assert_ptr_equal(done, &d);
    return rc;
}

static void assert_put_arrives(uint8_t value)
{
    gni_cq_entry_t entry;

    assert_int_equal(put(value), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(far_side.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(far_side.mem[64], value);
}

static void assert_put_fails(uint8_t value)
{
    gni_cq_entry_t entry;

    far_side.mem[64] = 0;
    assert_int_equal(put(value), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(far_side.mem[64], 0);
    assert_int_equal(GNI_CqGetEvent(far_side.dst_cq, &entry), GNI_RC_NOT_DONE);
}

static int open_sides(void **state)
{
    const struct fx_options options = { .n_ranks = 3, .nids = nids };

    (void)state;
    setenv("EMUNIC_QUIESCE", "1000000", 1);
    fx_start(&fx, &options);
    gx_open(&near_side, &fx, nids[0], 1, GNI_CDM_MODE_ERR_NO_KILL);
    gx_open(&far_side, &fx, nids[2], 2, GNI_CDM_MODE_ERR_NO_KILL);
    gx_connect(&near_side, &far_side);
    return 0;
}

static int close_sides(void **state)
{
    (void)state;
    gx_close(&near_side);
    gx_close(&far_side);
    return fx_stop(&fx);
}

/* ---- tests ---- */

static void test_a_dead_router_ends_transactions_of_its_nodes_until_it_is_mended(void **state)
{
    (void)state;
    assert_put_arrives(1);
    change(EMU_NETWORK_ROUTER, 96, 0);
    assert_put_fails(2);
    change(EMU_NETWORK_ROUTER, 96, EMU_NETWORK_REPAIR);
    assert_put_arrives(3);
}

static void test_a_dead_nic_is_out_of_reach_and_its_neighbour_is_not(void **state)
{
    (void)state;
    change(EMU_NETWORK_NODE, nids[2] + 1, 0);
    assert_put_arrives(4);
    change(EMU_NETWORK_NODE, nids[2], 0);
    assert_put_fails(5);
    mend_all();
    assert_put_arrives(6);
}

/* Both groups are full, so every router has several ways into the other one. */
static void test_traffic_goes_around_dead_routers_in_between(void **state)
{
    (void)state;
    for (uint32_t router = 1; router < 96; router += 2)
        change(EMU_NETWORK_ROUTER, router, 0);
    assert_put_arrives(7);
    mend_all();
}

static void test_what_is_posted_while_the_network_is_quiet_waits(void **state)
{
    const struct emu_msg_network back = { .thing = EMU_NETWORK_ROUTER, .index = 96, .flags = EMU_NETWORK_REPAIR };
    (void)state;

    /* Broken and mended within one pause: nobody notices but by the clock. */
    change(EMU_NETWORK_ROUTER, 96, 0);
    assert_int_equal(fx_change_network(&fx, back), 0);
    assert_put_arrives(8);
}

static void test_changes_of_a_schedule_come_in_their_time(void **state)
{
    struct emu_msg_network later = { .thing = EMU_NETWORK_ROUTER, .index = 96, .after_ns = 20000000 };
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    bool has_failed = false;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(fx_change_network(&fx, later), 0);
    while (!has_failed && emu_clock_ns() < end_ns)
        has_failed = put(9) != GNI_RC_SUCCESS;
    assert_true(has_failed);
    /* Not scheduled before: on a busy machine both could come between two puts. */
    later.flags = EMU_NETWORK_REPAIR;
    assert_int_equal(fx_change_network(&fx, later), 0);
    while (put(10) != GNI_RC_SUCCESS && emu_clock_ns() < end_ns)
        ;
    while (GNI_CqGetEvent(far_side.dst_cq, &entry) != GNI_RC_NOT_DONE)
        ;
    assert_put_arrives(11);
}

static void test_a_short_message_that_has_no_way_ends_with_an_error_and_the_next_arrives(void **state)
{
    gni_smsg_attr_t attr[2] = {
        { .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, .mbox_maxcredit = 8, .msg_maxsize = 64 }
    };
    uint8_t tag = GNI_SMSG_ANY_TAG;
    gni_cq_entry_t entry;
    unsigned int bytes;
    void *mail = NULL;
    uint64_t word = 42;

    (void)state;
    assert_int_equal(GNI_SmsgBufferSizeNeeded(&attr[0], &bytes), GNI_RC_SUCCESS);
    attr[0].msg_buffer = near_side.mem;
    attr[0].buff_size = bytes;
    attr[0].mem_hndl = near_side.mem_hndl;
    attr[1] = attr[0];
    attr[1].msg_buffer = far_side.mem;
    attr[1].mem_hndl = far_side.mem_hndl;
    assert_int_equal(GNI_SmsgInit(near_side.ep, &attr[0], &attr[1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(far_side.ep, &attr[1], &attr[0]), GNI_RC_SUCCESS);
    change(EMU_NETWORK_ROUTER, 96, 0);
    assert_int_equal(GNI_SmsgSendWTag(near_side.ep, NULL, 0, &word, sizeof(word), 7, 3), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(near_side.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 7);
    mend_all();
    assert_int_equal(GNI_SmsgSendWTag(near_side.ep, NULL, 0, &word, sizeof(word), 8, 3), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(near_side.src_cq, &entry), GNI_RC_SUCCESS);
    for (uint64_t end_ns = emu_clock_ns() + PATIENCE_NS; emu_clock_ns() < end_ns && !mail; tag = GNI_SMSG_ANY_TAG) {
        if (GNI_SmsgGetNextWTag(far_side.ep, &mail, &tag) != GNI_RC_SUCCESS)
            mail = NULL;
    }
    assert_non_null(mail);
    assert_int_equal(*(uint64_t *)mail, 42);
    assert_int_equal(GNI_SmsgRelease(far_side.ep), GNI_RC_SUCCESS);
    while (GNI_CqGetEvent(far_side.dst_cq, &entry) != GNI_RC_NOT_DONE)
        ;
}

static void test_a_datagram_waits_for_a_way(void **state)
{
    uint32_t near_data = 1, far_data = 2, seen = 0, from, instance;
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_post_state_t post_state = GNI_POST_PENDING;

    (void)state;
    change(EMU_NETWORK_ROUTER, 96, 0);
    assert_int_equal(GNI_EpPostData(near_side.ep, &near_data, sizeof(near_data), &seen, sizeof(seen)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(far_side.ep, &far_data, sizeof(far_data), &seen, sizeof(seen)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataTest(near_side.ep, &post_state, &from, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
    mend_all();
    while (post_state != GNI_POST_COMPLETED && emu_clock_ns() < end_ns)
        assert_int_equal(GNI_EpPostDataTest(near_side.ep, &post_state, &from, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_int_equal(GNI_EpPostDataWait(far_side.ep, (uint32_t)-1, &post_state, &from, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
}

static void test_the_report_names_what_is_broken(void **state)
{
    const struct emu_msg_network lanes = { .thing = EMU_NETWORK_LANES, .index = 5000, .lane_mask = 3 };
    char *text;

    (void)state;
    change(EMU_NETWORK_ROUTER, 17, 0);
    assert_int_equal(fx_change_network(&fx, lanes), 0);
    text = fx_report(&fx, EMU_MSG_FAULTS);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"thing\":\"router\",\"index\":17"));
    assert_non_null(strstr(text, "\"thing\":\"link\",\"index\":5000"));
    assert_non_null(strstr(text, "lane mask 3"));
    free(text);
    text = fx_report(&fx, EMU_MSG_LINKS);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"link\":5000"));
    assert_non_null(strstr(text, "\"lanes_up\":2"));
    free(text);
    mend_all();
    text = fx_report(&fx, EMU_MSG_FAULTS);
    assert_non_null(strstr(text, "\"broken\":[]"));
    free(text);
}

static void test_changes_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        struct emu_msg_network change;
        int result;
    } rows[] = {
        { { .thing = 0 }, -EINVAL },
        { { .thing = 99 }, -EINVAL },
        { { .thing = EMU_NETWORK_ALL }, -EINVAL },
        { { .thing = EMU_NETWORK_LINK, .index = UINT32_MAX }, -ERANGE },
        { { .thing = EMU_NETWORK_ROUTER, .index = 192 }, -ERANGE },
        { { .thing = EMU_NETWORK_NODE, .index = 768 }, -ERANGE },
        { { .thing = EMU_NETWORK_NODE, .flags = 8 }, -EINVAL },
        { { .thing = EMU_NETWORK_LANES, .index = UINT32_MAX, .lane_mask = 1 }, -ERANGE },
        { { .thing = EMU_NETWORK_LANES, .index = 5000 }, -EINVAL },
        { { .thing = EMU_NETWORK_LANES, .index = 5000, .lane_mask = 8 }, -EINVAL },
        { { .thing = EMU_NETWORK_NODE, .after_ns = UINT64_MAX }, -EINVAL },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(fx_change_network(&fx, rows[i].change), rows[i].result);
    assert_put_arrives(12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_dead_router_ends_transactions_of_its_nodes_until_it_is_mended),
        cmocka_unit_test(test_a_dead_nic_is_out_of_reach_and_its_neighbour_is_not),
        cmocka_unit_test(test_traffic_goes_around_dead_routers_in_between),
        cmocka_unit_test(test_what_is_posted_while_the_network_is_quiet_waits),
        cmocka_unit_test(test_changes_of_a_schedule_come_in_their_time),
        cmocka_unit_test(test_a_short_message_that_has_no_way_ends_with_an_error_and_the_next_arrives),
        cmocka_unit_test(test_a_datagram_waits_for_a_way),
        cmocka_unit_test(test_the_report_names_what_is_broken),
        cmocka_unit_test(test_changes_that_make_no_sense_are_refused),
    };

    return cmocka_run_group_tests(tests, open_sides, close_sides);
}
