/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-36: contact from outside of a communication domain is refused by the NIC, whatever operation it is, and told by an
 * error event with its category; the counter of these events moves by one each time, and the memory stays as it was.
 */
#include "tests/conformance/mailbox.h"
#include "tests/conformance/tree.h"
#include "tests/live/live.h"

#define OTHER_PTAG   77
#define OTHER_COOKIE 0x00770077

static struct emu_session other_admin;
static struct gx_side stranger; /* on the node of a, in another domain, bound to b's address */

static int open_stranger(void **state)
{
    struct fx other = fx;

    open_pair(state);
    other.ptag = OTHER_PTAG;
    other.cookie = OTHER_COOKIE;
    if (fx_add_domain(&fx, OTHER_PTAG, OTHER_COOKIE, geteuid(), 0, &other_admin) != 0)
        return -1;
    gx_open(&stranger, &other, 0, a.inst_id, 0);
    if (GNI_EpCreate(stranger.nic, stranger.src_cq, &stranger.ep) != GNI_RC_SUCCESS ||
        GNI_EpBind(stranger.ep, b.nic_addr, b.inst_id) != GNI_RC_SUCCESS)
        return -1;
    memset(b.mem, 0xee, GX_BYTES);
    memset(stranger.mem, 0x11, GX_BYTES);
    return 0;
}

static int close_stranger(void **state)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END };
    int r;

    gx_close(&stranger);
    close_pair(state);
    r = emu_session_request(&other_admin, &end, NULL, 0, NULL);
    emu_session_close(&other_admin);
    return r;
}

#define stranger_test(name) cmocka_unit_test_setup_teardown(name, open_stranger, close_stranger)

/* One event for what was refused, the next one of the subscription, in the category of bad addresses. */
static void expect_refusal(gni_err_handle_t err, uint32_t serial, enum status status)
{
    gni_error_event_t event = next_error(err);

    assert_int_equal(event.error_code, status);
    assert_int_equal(event.error_category, GNI_ERRMASK_ADDRESS_TRANSLATION);
    assert_int_equal(event.ptag, OTHER_PTAG);
    assert_int_equal(event.serial_number, serial);
}

static void test_transactions_from_outside_are_refused_and_told(void **state)
{
    static const struct {
        const char *name;
        gni_post_type_t type;
    } rows[] = {
        { "put", GNI_POST_FMA_PUT },         { "block put", GNI_POST_RDMA_PUT },
        { "get", GNI_POST_FMA_GET },         { "block get", GNI_POST_RDMA_GET },
        { "atomic", GNI_POST_AMO },          { "flagged put", GNI_POST_FMA_PUT_W_SYNCFLAG },
        { "queue write", GNI_POST_CQWRITE },
    };
    gni_err_handle_t err = subscribe(&stranger);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        gni_post_descriptor_t d = gx_put(&stranger, &b, 0, 64, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

        d.type = rows[i].type;
        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.first_operand = 1;
        d.length = rows[i].type == GNI_POST_AMO ? 8 : 64;
        d.sync_flag_addr = ADDR(b.mem) + 128;
        assert_row_equal(rows[i].name, post_on(stranger.ep, &d), GNI_RC_SUCCESS);
        assert_row_equal(rows[i].name, finish_on(stranger.src_cq, &d), STATUS_BAD_HANDLE);
        expect_refusal(err, (uint32_t)i + 1, STATUS_BAD_HANDLE);
    }
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
    assert_true(all_bytes_are(stranger.mem, 0x11, GX_BYTES));
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_short_messages_from_outside_are_refused_and_told(void **state)
{
    gni_err_handle_t err = subscribe(&stranger);
    struct mailbox mine;
    struct mailbox theirs;
    uint8_t *before;
    uint64_t word = 42;
    gni_cq_entry_t entry = 0;

    (void)state;
    mb_open(&mine, stranger.nic, stranger.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 64, 0);
    mb_open(&theirs, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 4, 64, 0);
    before = malloc(theirs.bytes);
    assert_non_null(before);
    memcpy(before, theirs.mem, theirs.bytes);
    assert_int_equal(GNI_SmsgInit(stranger.ep, &mine.attr, &theirs.attr), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSendWTag(stranger.ep, NULL, 0, &word, sizeof(word), 7, 3), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(stranger.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_STATUS(entry), STATUS_BAD_HANDLE);
    expect_refusal(err, 1, STATUS_BAD_HANDLE);
    assert_memory_equal(theirs.mem, before, theirs.bytes);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    mb_close(&mine);
    mb_close(&theirs);
    free(before);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

/* Both sides wait for each other by number, and are of two domains: no pairing. */
static void test_datagrams_from_outside_do_not_pair(void **state)
{
    char knock[8] = "knock";
    char in[8] = "";
    gni_post_state_t post_state = GNI_POST_ERROR;
    gni_ep_handle_t any;
    uint32_t from = 0;
    uint32_t instance = 0;

    (void)state;
    assert_int_equal(GNI_EpCreate(b.nic, NULL, &any), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(any, knock, sizeof(knock), in, sizeof(in)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(stranger.ep, knock, sizeof(knock), in, sizeof(in)), GNI_RC_SUCCESS);
    /* emunic answers requests in their order: had they met, both would be told now */
    assert_int_equal(GNI_EpPostDataTest(stranger.ep, &post_state, &from, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
    assert_int_equal(GNI_EpPostDataTest(any, &post_state, &from, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
    assert_int_equal(GNI_EpPostDataCancel(stranger.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancel(any), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

/* A leaf of another domain knows the engine's number: its contribution fails, and the tree goes on without it. */
static void test_a_reduction_cannot_be_joined_from_outside(void **state)
{
    static struct tree tree;
    struct tree_leaf outside = { .side = &stranger, .result = (gni_ce_result_t *)(void *)stranger.mem };

    (void)state;
    tree_build_flat(&tree, &b, 1);
    outside.ep = tree_ep(&stranger, stranger.src_cq, &b, tree.engines[0].id, 0, GNI_CE_CHILD_PE);
    outside.d = tree_post(&outside, GNI_FMA_CE_IADD, 1000, 0);
    outside.d.ce_red_id = 1;
    if (tree_send(&outside) == STATUS_OK)
        assert_int_equal(tree_wait(outside.result), GNI_RC_TRANSACTION_ERROR);
    tree_sum_up(&tree, 1); /* 1: without the thousand */
    GNI_EpDestroy(outside.ep);
    tree_drop(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        stranger_test(test_transactions_from_outside_are_refused_and_told),
        stranger_test(test_short_messages_from_outside_are_refused_and_told),
        stranger_test(test_datagrams_from_outside_do_not_pair),
        stranger_test(test_a_reduction_cannot_be_joined_from_outside),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
