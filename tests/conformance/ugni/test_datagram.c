/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: who meets whom, test, wait, probe; those that end early are in test_datagram_end.c.
 * Specification: spec/ugni.md 4.5, 7.4, 7.18.
 */
#include "tests/conformance/datagram.h"

#define NOBODY 0x7777u /* an instance that never attaches */

/* ---- matching ---- */

static void test_directed_datagrams_of_a_pair_meet(void **state)
{
    char in_a[GNI_DATAGRAM_MAXSIZE] = "";
    char in_b[GNI_DATAGRAM_MAXSIZE] = "";

    (void)state;
    assert_int_equal(post_text(a.ep, "from a", in_a, 1), GNI_RC_SUCCESS);
    expect_pending(a.ep, 1);
    assert_int_equal(post_text(b.ep, "from b", in_b, 2), GNI_RC_SUCCESS);
    expect_text(a.ep, 1, &b, in_a, "from b");
    expect_text(b.ep, 2, &a, in_b, "from a");
}

static void test_directed_datagram_meets_a_waiting_wildcard(void **state)
{
    gni_ep_handle_t any = make_ep(&b, NULL);
    char in_a[GNI_DATAGRAM_MAXSIZE] = "";
    char in_b[GNI_DATAGRAM_MAXSIZE] = "";

    (void)state;
    assert_int_equal(post_text(any, "whoever", in_b, 0), GNI_RC_SUCCESS);
    assert_int_equal(post_text(a.ep, "from a", in_a, 1), GNI_RC_SUCCESS);
    expect_text(any, 0, &a, in_b, "from a");
    expect_text(a.ep, 1, &b, in_a, "whoever");
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_wildcard_meets_a_waiting_directed_datagram(void **state)
{
    gni_ep_handle_t any = make_ep(&b, NULL);
    char in_a[GNI_DATAGRAM_MAXSIZE] = "";
    char in_b[GNI_DATAGRAM_MAXSIZE] = "";

    (void)state;
    assert_int_equal(post_text(a.ep, "from a", in_a, 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(any, "whoever", in_b, 0), GNI_RC_SUCCESS);
    expect_text(any, 0, &a, in_b, "from a");
    expect_text(a.ep, 1, &b, in_a, "whoever");
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_two_wildcards_never_meet(void **state)
{
    gni_ep_handle_t any_a = make_ep(&a, NULL);
    gni_ep_handle_t any_b = make_ep(&b, NULL);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(any_a, "x", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(any_b, "y", in[1], 2), GNI_RC_SUCCESS);
    expect_pending(any_a, 1);
    expect_pending(any_b, 2);
    assert_int_equal(GNI_EpDestroy(any_a), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(any_b), GNI_RC_SUCCESS);
}

static void test_directed_datagram_prefers_a_directed_one_to_an_older_wildcard(void **state)
{
    gni_ep_handle_t any = make_ep(&b, NULL);
    char in_any[GNI_DATAGRAM_MAXSIZE] = "";
    char in_a[GNI_DATAGRAM_MAXSIZE] = "";
    char in_b[GNI_DATAGRAM_MAXSIZE] = "";

    (void)state;
    assert_int_equal(post_text(any, "whoever", in_any, 0), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "from b", in_b, 2), GNI_RC_SUCCESS);
    assert_int_equal(post_text(a.ep, "from a", in_a, 1), GNI_RC_SUCCESS);
    expect_text(a.ep, 1, &b, in_a, "from b");
    expect_text(b.ep, 2, &a, in_b, "from a");
    expect_pending(any, 0);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_wildcards_are_used_oldest_first(void **state)
{
    gni_ep_handle_t any[4];
    char in_any[4][GNI_DATAGRAM_MAXSIZE];
    char in[2][GNI_DATAGRAM_MAXSIZE];
    gni_ep_handle_t ep_c = make_ep(&c, &b);

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        any[i] = make_ep(&b, NULL);
        assert_int_equal(post_text(any[i], "whoever", in_any[i], 50 + i), GNI_RC_SUCCESS);
    }
    assert_int_equal(post_text(a.ep, "from a", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(ep_c, "from c", in[1], 2), GNI_RC_SUCCESS);
    expect_text(any[0], 50, &a, in_any[0], "from a");
    expect_text(any[1], 51, &c, in_any[1], "from c");
    expect_pending(any[2], 52);
    expect_pending(any[3], 53);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(GNI_EpDestroy(any[i]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep_c), GNI_RC_SUCCESS);
}

static void test_wildcard_takes_the_datagram_that_has_waited_longest(void **state)
{
    gni_ep_handle_t any = make_ep(&b, NULL);
    gni_ep_handle_t ep_c = make_ep(&c, &b);
    char in[3][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        gni_ep_handle_t first = round ? ep_c : a.ep;
        gni_ep_handle_t second = round ? a.ep : ep_c;

        assert_int_equal(post_text(first, "first", in[0], 1), GNI_RC_SUCCESS);
        assert_int_equal(post_text(second, "second", in[1], 2), GNI_RC_SUCCESS);
        assert_int_equal(post_text(any, "whoever", in[2], 0), GNI_RC_SUCCESS);
        expect_text(any, 0, round ? &c : &a, in[2], "first");
        expect_pending(second, 2);
        assert_int_equal(post_text(any, "whoever", in[2], 0), GNI_RC_SUCCESS);
        expect_text(any, 0, round ? &a : &c, in[2], "second");
        expect_text(first, 1, &b, in[0], "whoever");
        expect_text(second, 2, &b, in[1], "whoever");
    }
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep_c), GNI_RC_SUCCESS);
}

static void test_datagram_waits_for_a_peer_that_has_not_attached(void **state)
{
    gni_ep_handle_t ep = NULL;
    struct gx_side late;
    char in_a[GNI_DATAGRAM_MAXSIZE] = "";
    char in_late[GNI_DATAGRAM_MAXSIZE] = "";
    gni_ep_handle_t back;

    (void)state;
    assert_int_equal(GNI_EpCreate(a.nic, NULL, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, fx.nids[3], 99), GNI_RC_SUCCESS);
    assert_int_equal(post_text(ep, "from a", in_a, 1), GNI_RC_SUCCESS);
    expect_pending(ep, 1);
    gx_open(&late, &fx, 3, 99, 0);
    expect_pending(ep, 1);
    back = make_ep(&late, &a);
    assert_int_equal(post_text(back, "late", in_late, 2), GNI_RC_SUCCESS);
    expect_text(ep, 1, &late, in_a, "late");
    expect_text(back, 2, &a, in_late, "from a");
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(back), GNI_RC_SUCCESS);
    gx_close(&late);
}

static void test_datagram_to_another_instance_of_the_node_does_not_meet_us(void **state)
{
    gni_ep_handle_t any = make_ep(&b, NULL);
    gni_ep_handle_t ep = NULL;
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(GNI_EpCreate(a.nic, NULL, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, NOBODY), GNI_RC_SUCCESS);
    assert_int_equal(post_text(any, "whoever", in[0], 0), GNI_RC_SUCCESS);
    assert_int_equal(post_text(ep, "from a", in[1], 1), GNI_RC_SUCCESS);
    expect_pending(any, 0);
    expect_pending(ep, 1);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_datagram_stays_in_its_domain(void **state)
{
    struct emu_session other;
    struct fx other_fx = fx;
    struct gx_side d;
    gni_ep_handle_t ep;
    gni_ep_handle_t any = make_ep(&b, NULL);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    other_fx.ptag = 78;
    other_fx.cookie = 0x1111;
    assert_int_equal(fx_add_domain(&fx, other_fx.ptag, other_fx.cookie, geteuid(), 0, &other), 0);
    gx_open(&d, &other_fx, 0, 10, 0); /* node and instance of a */
    ep = make_ep(&d, &b);
    assert_int_equal(post_text(any, "whoever", in[0], 0), GNI_RC_SUCCESS);
    assert_int_equal(post_text(ep, "from outside", in[1], 1), GNI_RC_SUCCESS);
    expect_pending(any, 0);
    expect_pending(ep, 1);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
    gx_close(&d);
    assert_int_equal(fx_end_domain(&other), 0);
}

static void test_datagram_to_oneself_meets_the_own_wildcard(void **state)
{
    gni_ep_handle_t any = make_ep(&a, NULL);
    gni_ep_handle_t self = make_ep(&a, &a);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(self, "to me", in[0], 1), GNI_RC_SUCCESS);
    expect_pending(self, 1); /* not with itself */
    assert_int_equal(post_text(any, "whoever", in[1], 0), GNI_RC_SUCCESS);
    expect_text(self, 1, &a, in[0], "whoever");
    expect_text(any, 0, &a, in[1], "to me");
    assert_int_equal(post_text(any, "again", in[1], 0), GNI_RC_SUCCESS);
    assert_int_equal(post_text(self, "to me", in[0], 1), GNI_RC_SUCCESS);
    expect_text(self, 1, &a, in[0], "again");
    expect_text(any, 0, &a, in[1], "to me");
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_two_directed_datagrams_to_oneself_meet(void **state)
{
    gni_ep_handle_t one = make_ep(&a, &a);
    gni_ep_handle_t two = make_ep(&a, &a);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(one, "from one", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(two, "from two", in[1], 2), GNI_RC_SUCCESS);
    expect_text(one, 1, &a, in[0], "from two");
    expect_text(two, 2, &a, in[1], "from one");
    assert_int_equal(GNI_EpDestroy(one), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(two), GNI_RC_SUCCESS);
}

/* ---- payload ---- */

static void test_payload_of_every_size_arrives_whole(void **state)
{
    uint8_t in[GNI_DATAGRAM_MAXSIZE + 1];
    uint8_t out[GNI_DATAGRAM_MAXSIZE];
    gni_post_state_t post_state;

    (void)state;
    for (uint16_t length = 0; length <= GNI_DATAGRAM_MAXSIZE; length++) {
        for (uint16_t i = 0; i < length; i++)
            out[i] = (uint8_t)(i + length);
        memset(in, 0xee, sizeof(in));
        assert_int_equal(GNI_EpPostData(a.ep, length ? out : NULL, length, NULL, 0), GNI_RC_SUCCESS);
        memset(out, 0, sizeof(out)); /* it was copied */
        assert_int_equal(GNI_EpPostData(b.ep, NULL, 0, length ? in : NULL, length), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpPostDataWait(b.ep, PATIENCE, &post_state, NULL, NULL), GNI_RC_SUCCESS);
        assert_int_equal(post_state, GNI_POST_COMPLETED);
        for (uint16_t i = 0; i < length; i++)
            assert_int_equal(in[i], (uint8_t)(i + length));
        assert_int_equal(in[length], 0xee);
        assert_int_equal(GNI_EpPostDataWait(a.ep, PATIENCE, &post_state, NULL, NULL), GNI_RC_SUCCESS);
        assert_int_equal(post_state, GNI_POST_COMPLETED);
    }
}

static void test_buffer_is_written_by_the_call_that_collects(void **state)
{
    char in_a[GNI_DATAGRAM_MAXSIZE] = "untouched";
    char in_b[GNI_DATAGRAM_MAXSIZE] = "";
    uint64_t id;

    (void)state;
    assert_int_equal(post_text(a.ep, "from a", in_a, 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "from b", in_b, 2), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, PATIENCE, &id), GNI_RC_SUCCESS);
    assert_string_equal(in_a, "untouched");
    expect_text(a.ep, 1, &b, in_a, "from b");
    expect_text(b.ep, 2, &a, in_b, "from a");
}

static void test_too_small_a_buffer_is_a_size_error_and_ends_the_exchange(void **state)
{
    char in_a[8] = "1234567";
    char in_b[GNI_DATAGRAM_MAXSIZE];
    gni_post_state_t post_state;

    (void)state;
    assert_int_equal(GNI_EpPostDataWId(a.ep, "x", 2, in_a, 7, 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "1234567", in_b, 2), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWaitById(a.ep, 1, PATIENCE, &post_state, NULL, NULL), GNI_RC_SIZE_ERROR);
    assert_string_equal(in_a, "1234567");
    assert_int_equal(test_id(a.ep, 1, &post_state), GNI_RC_NO_MATCH);
    expect_text(b.ep, 2, &a, in_b, "x"); /* the other side is well */
    assert_int_equal(GNI_EpPostDataWId(a.ep, "x", 2, in_a, 8, 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "1234567", in_b, 2), GNI_RC_SUCCESS);
    expect_text(a.ep, 1, &b, in_a, "1234567");
    expect_text(b.ep, 2, &a, in_b, "x");
}

static void test_test_reports_size_error_too(void **state)
{
    gni_post_state_t post_state;
    uint64_t id;

    (void)state;
    assert_int_equal(GNI_EpPostDataWId(a.ep, NULL, 0, NULL, 0, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWId(b.ep, "x", 2, NULL, 0, 2), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, PATIENCE, &id), GNI_RC_SUCCESS);
    assert_int_equal(test_id(a.ep, 1, &post_state), GNI_RC_SIZE_ERROR);
    assert_int_equal(test_id(a.ep, 1, &post_state), GNI_RC_NO_MATCH);
}

static void test_forms_without_an_id_report_the_same(void **state)
{
    gni_post_state_t post_state = GNI_POST_ERROR;
    uint32_t addr = 0;
    uint32_t inst = 0;
    char in[2] = "";

    (void)state;
    assert_int_equal(GNI_EpPostDataWait(a.ep, 1, &post_state, &addr, &inst), GNI_RC_NO_MATCH); /* never posted */
    assert_int_equal(GNI_EpPostData(a.ep, NULL, 0, NULL, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWait(a.ep, 1, &post_state, &addr, &inst), GNI_RC_TIMEOUT);
    assert_int_equal(GNI_EpPostData(b.ep, "x", 2, NULL, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWait(a.ep, PATIENCE, &post_state, &addr, &inst), GNI_RC_SIZE_ERROR);
    assert_int_equal(GNI_EpPostDataWait(a.ep, 1, &post_state, &addr, &inst), GNI_RC_NO_MATCH); /* collected */
    assert_int_equal(GNI_EpPostDataWait(b.ep, PATIENCE, &post_state, &addr, &inst), GNI_RC_SUCCESS);

    assert_int_equal(GNI_EpPostData(a.ep, NULL, 0, NULL, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(b.ep, "x", 2, in, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWait(b.ep, PATIENCE, &post_state, &addr, &inst), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_int_equal(addr, a.nic_addr);
    assert_int_equal(inst, a.inst_id);
    assert_int_equal(GNI_EpPostDataTest(a.ep, &post_state, &addr, &inst), GNI_RC_SIZE_ERROR);
    assert_int_equal(GNI_EpPostDataTest(a.ep, &post_state, &addr, &inst), GNI_RC_NO_MATCH);
}

/* ---- posting ---- */

static void test_post_refuses_wrong_arguments(void **state)
{
    char buf[GNI_DATAGRAM_MAXSIZE + 1] = "";
    gni_ep_handle_t stale = make_ep(&a, &b);

    (void)state;
    assert_int_equal(GNI_EpDestroy(stale), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(NULL, buf, 1, buf, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWId(stale, buf, 1, buf, 1, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWId(a.ep, buf, 1, buf, 1, ~0ull), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostData(a.ep, NULL, 1, buf, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostData(a.ep, buf, 1, NULL, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostData(a.ep, buf, GNI_DATAGRAM_MAXSIZE + 1, buf, 1), GNI_RC_SIZE_ERROR);
    assert_int_equal(GNI_EpPostDataWId(a.ep, buf, 1, buf, GNI_DATAGRAM_MAXSIZE + 1, 1), GNI_RC_SIZE_ERROR);
    assert_int_equal(GNI_EpPostData(a.ep, buf, GNI_DATAGRAM_MAXSIZE, buf, GNI_DATAGRAM_MAXSIZE), GNI_RC_SUCCESS);
}

static void test_end_point_has_one_datagram_at_a_time(void **state)
{
    gni_ep_handle_t any = make_ep(&a, NULL);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "one", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(a.ep, "two", in[0], 2), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(post_text(any, "one", in[1], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(any, "two", in[1], 2), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(post_text(b.ep, "from b", in[1], 3), GNI_RC_SUCCESS);
    assert_int_equal(post_text(a.ep, "two", in[0], 2), GNI_RC_ERROR_RESOURCE); /* complete, not collected */
    expect_text(a.ep, 1, &b, in[0], "from b");
    assert_int_equal(post_text(a.ep, "two", in[0], 2), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_second_datagram_to_a_peer_must_wait_for_the_first(void **state)
{
    gni_ep_handle_t second = make_ep(&a, &b);
    char in[3][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "first", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(second, "second", in[1], 2), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(post_text(b.ep, "from b", in[2], 3), GNI_RC_SUCCESS);
    expect_text(a.ep, 1, &b, in[0], "from b");
    assert_int_equal(post_text(second, "second", in[1], 2), GNI_RC_SUCCESS); /* transient */
    assert_int_equal(GNI_EpDestroy(second), GNI_RC_SUCCESS);
}

static void test_answer_to_an_uncollected_wildcard_exchange_is_busy(void **state)
{
    gni_ep_handle_t any = make_ep(&b, NULL);
    char in_any[GNI_DATAGRAM_MAXSIZE];
    char in_a[GNI_DATAGRAM_MAXSIZE];
    char in_b[GNI_DATAGRAM_MAXSIZE];
    uint64_t id = 1;

    (void)state;
    assert_int_equal(post_text(any, "whoever", in_any, 0), GNI_RC_SUCCESS);
    assert_int_equal(post_text(a.ep, "from a", in_a, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostdataProbeWaitById(b.nic, PATIENCE, &id), GNI_RC_SUCCESS); /* on two hosts not at once */
    assert_int_equal(id, 0);
    assert_int_equal(post_text(b.ep, "from b", in_b, 2), GNI_RC_ERROR_RESOURCE);
    expect_text(any, 0, &a, in_any, "from a");
    assert_int_equal(post_text(b.ep, "from b", in_b, 2), GNI_RC_SUCCESS); /* a new exchange */
    expect_pending(b.ep, 2);
    expect_text(a.ep, 1, &b, in_a, "whoever");
    assert_int_equal(post_text(a.ep, "again", in_a, 1), GNI_RC_SUCCESS);
    expect_text(b.ep, 2, &a, in_b, "again");
    expect_text(a.ep, 1, &b, in_a, "from b");
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_end_point_is_free_again_after_collecting(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        assert_int_equal(post_text(a.ep, "from a", in[0], 7), GNI_RC_SUCCESS);
        assert_int_equal(post_text(b.ep, "from b", in[1], 8), GNI_RC_SUCCESS);
        expect_text(a.ep, 7, &b, in[0], "from b");
        expect_text(b.ep, 8, &a, in[1], "from a");
        assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS); /* as libfabric does at once */
        assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    }
}

static void test_one_id_serves_several_end_points(void **state)
{
    gni_ep_handle_t any[2] = { make_ep(&b, NULL), make_ep(&b, NULL) };
    gni_ep_handle_t ep_c = make_ep(&c, &b);
    char in[4][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(any[0], "whoever", in[0], 5), GNI_RC_SUCCESS);
    assert_int_equal(post_text(any[1], "whoever", in[1], 5), GNI_RC_SUCCESS);
    assert_int_equal(post_text(a.ep, "from a", in[2], 5), GNI_RC_SUCCESS);
    assert_int_equal(post_text(ep_c, "from c", in[3], 5), GNI_RC_SUCCESS);
    expect_text(any[1], 5, &c, in[1], "from c");
    expect_text(any[0], 5, &a, in[0], "from a");
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(GNI_EpDestroy(any[i]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep_c), GNI_RC_SUCCESS);
}

/* ---- test and wait ---- */

static void test_collected_datagram_is_no_match(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];
    gni_post_state_t post_state;

    (void)state;
    assert_int_equal(test_id(a.ep, 1, &post_state), GNI_RC_NO_MATCH); /* never posted */
    assert_int_equal(GNI_EpPostDataTest(a.ep, &post_state, NULL, NULL), GNI_RC_NO_MATCH);
    assert_int_equal(post_text(a.ep, "x", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    expect_text(a.ep, 1, &b, in[0], "y");
    assert_int_equal(test_id(a.ep, 1, &post_state), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_EpPostDataWaitById(a.ep, 1, PATIENCE, &post_state, NULL, NULL), GNI_RC_NO_MATCH);
}

static void test_pending_is_not_collected(void **state)
{
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in, 1), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 100; i++)
        expect_pending(a.ep, 1);
}

static void test_test_sees_only_its_end_points_datagram_with_that_id(void **state)
{
    gni_ep_handle_t other = make_ep(&a, &c);
    gni_post_state_t post_state;
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in, 1), GNI_RC_SUCCESS);
    assert_int_equal(test_id(a.ep, 2, &post_state), GNI_RC_NO_MATCH);
    assert_int_equal(test_id(other, 1, &post_state), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_EpPostDataTest(a.ep, &post_state, NULL, NULL), GNI_RC_NO_MATCH); /* posted with an id */
    assert_int_equal(GNI_EpPostData(other, NULL, 0, in, sizeof(in)), GNI_RC_SUCCESS);
    assert_int_equal(test_id(other, 0, &post_state), GNI_RC_NO_MATCH); /* posted without */
    assert_int_equal(GNI_EpPostDataTest(other, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
    assert_int_equal(GNI_EpDestroy(other), GNI_RC_SUCCESS);
}

static void test_polling_sees_the_completion(void **state)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE * 1000000ull;
    gni_post_state_t post_state = GNI_POST_PENDING;
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in[0], 1), GNI_RC_SUCCESS);
    expect_pending(a.ep, 1);
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    while (post_state == GNI_POST_PENDING && emu_clock_ns() < end_ns)
        assert_int_equal(test_id(a.ep, 1, &post_state), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_string_equal(in[0], "y");
}

static void test_wait_times_out_and_leaves_the_datagram(void **state)
{
    uint64_t before_ns = emu_clock_ns();
    gni_post_state_t post_state = GNI_POST_ERROR;
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWaitById(a.ep, 1, 20, &post_state, NULL, NULL), GNI_RC_TIMEOUT);
    assert_true(emu_clock_ns() - before_ns >= 20000000);
    assert_int_equal(post_state, GNI_POST_ERROR); /* untouched */
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    expect_text(a.ep, 1, &b, in[0], "y");
}

static void test_wait_refuses_timeout_0_and_wrong_arguments(void **state)
{
    gni_post_state_t post_state;

    (void)state;
    assert_int_equal(GNI_EpPostData(a.ep, NULL, 0, NULL, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWait(a.ep, 0, &post_state, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWaitById(a.ep, 1, 0, &post_state, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWait(NULL, 1, &post_state, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWait(a.ep, 1, NULL, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataWaitById(a.ep, ~0ull, 1, &post_state, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataTestById(a.ep, ~0ull, &post_state, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataTest(NULL, &post_state, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataTest(a.ep, NULL, NULL, NULL), GNI_RC_INVALID_PARAM);
}

/* ---- a second thread ---- */

static void test_wait_for_ever_wakes_for_the_completion(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        struct waiter w = { .ep = a.ep, .id = 1, .timeout = FOR_EVER };

        assert_int_equal(post_text(a.ep, "x", in[0], 1), GNI_RC_SUCCESS);
        start_waiter(&w);
        assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(w.thread, NULL), 0);
        assert_int_equal(w.rc, GNI_RC_SUCCESS);
        assert_int_equal(w.post_state, GNI_POST_COMPLETED);
        assert_string_equal(in[0], "y");
        expect_text(b.ep, 2, &a, in[1], "x");
    }
}

static void test_wait_wakes_for_the_cancel(void **state)
{
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        struct waiter w = { .ep = a.ep, .id = 1, .timeout = FOR_EVER };

        assert_int_equal(post_text(a.ep, "x", in, 1), GNI_RC_SUCCESS);
        start_waiter(&w);
        assert_int_equal(GNI_EpPostDataCancelById(a.ep, 1), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(w.thread, NULL), 0);
        assert_int_equal(w.rc, GNI_RC_SUCCESS);
        assert_int_equal(w.post_state, GNI_POST_TERMINATED);
    }
}

static void test_wait_ends_when_its_end_point_is_destroyed(void **state)
{
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        gni_ep_handle_t ep = make_ep(&a, &b);
        struct waiter w = { .ep = ep, .id = 1, .timeout = FOR_EVER };

        assert_int_equal(post_text(ep, "x", in, 1), GNI_RC_SUCCESS);
        start_waiter(&w);
        assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(w.thread, NULL), 0);
        assert_true(w.rc == GNI_RC_NO_MATCH || w.rc == GNI_RC_INVALID_PARAM);
    }
}

static void test_probe_wait_wakes_for_the_completion(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        struct waiter w = { .nic = a.nic, .timeout = FOR_EVER };

        start_waiter(&w);
        assert_int_equal(post_text(a.ep, "x", in[0], 1000 + i), GNI_RC_SUCCESS);
        assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(w.thread, NULL), 0);
        assert_int_equal(w.rc, GNI_RC_SUCCESS);
        assert_int_equal(w.id, 1000 + i);
        expect_text(a.ep, 1000 + i, &b, in[0], "y");
        expect_text(b.ep, 2, &a, in[1], "x");
    }
}

/* After a moment, in which the owner may collect it: see the shut-down of UCX below. */
static void test_probe_wait_wakes_for_the_cancel(void **state)
{
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct waiter w = { .nic = a.nic, .timeout = PATIENCE };

        assert_int_equal(post_text(a.ep, "x", in, 5), GNI_RC_SUCCESS);
        start_waiter(&w);
        assert_int_equal(GNI_EpPostDataCancelById(a.ep, 5), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(w.thread, NULL), 0);
        assert_int_equal(w.rc, GNI_RC_SUCCESS);
        assert_int_equal(w.id, 5);
        expect_terminated(a.ep, 5);
    }
}

static void test_probe_wait_wakes_for_a_destroyed_end_point(void **state)
{
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        gni_ep_handle_t ep = make_ep(&a, &b);
        struct waiter w = { .nic = a.nic, .timeout = FOR_EVER };

        assert_int_equal(post_text(ep, "x", in, 7), GNI_RC_SUCCESS);
        start_waiter(&w);
        assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(w.thread, NULL), 0);
        assert_int_equal(w.rc, GNI_RC_SUCCESS);
        assert_int_equal(w.id, 7);
    }
}

/* ---- probe ---- */

static void test_probe_finds_the_same_one_until_it_is_collected(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];
    uint32_t addr = 0;
    uint32_t inst = 0;
    uint64_t id = 0;

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in[0], 41), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_PostDataProbe(a.nic, &addr, &inst), GNI_RC_NO_MATCH);
    assert_int_equal(post_text(b.ep, "y", in[1], 42), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, PATIENCE, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 41);
    for (unsigned i = 0; i < 5; i++) {
        id = 0;
        assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_SUCCESS);
        assert_int_equal(id, 41);
        assert_int_equal(GNI_PostDataProbe(a.nic, &addr, &inst), GNI_RC_SUCCESS);
        assert_int_equal(addr, b.nic_addr);
        assert_int_equal(inst, b.inst_id);
    }
    expect_text(a.ep, 41, &b, in[0], "y");
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_PostDataProbe(a.nic, &addr, &inst), GNI_RC_NO_MATCH);
}

static void test_probe_keeps_to_its_datagram_when_an_older_one_ends(void **state)
{
    gni_ep_handle_t any = make_ep(&a, NULL);
    char in[4][GNI_DATAGRAM_MAXSIZE];
    uint64_t id = 0;

    (void)state;
    assert_int_equal(post_text(any, "older", in[0], 41), GNI_RC_SUCCESS);
    assert_int_equal(post_text(a.ep, "newer", in[1], 42), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "to the newer one", in[2], 1), GNI_RC_SUCCESS);
    expect_text(b.ep, 1, &a, in[2], "newer");
    /* On two hosts one side knows first. */
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, PATIENCE, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 42);
    assert_int_equal(post_text(b.ep, "to the older one", in[3], 2), GNI_RC_SUCCESS);
    expect_text(b.ep, 2, &a, in[3], "older");
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 42);
    expect_text(a.ep, 42, &b, in[1], "to the newer one");
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, PATIENCE, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 41);
    expect_text(any, 41, &b, in[0], "to the older one");
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_probe_by_id_sees_only_datagrams_with_an_id(void **state)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE * 1000000ull;
    gni_post_state_t post_state;
    uint64_t id = 0;
    uint32_t addr;
    uint32_t inst;

    (void)state;
    assert_int_equal(GNI_EpPostData(a.ep, NULL, 0, NULL, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWId(b.ep, NULL, 0, NULL, 0, 3), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostdataProbeWaitById(b.nic, PATIENCE, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 3);
    /* On two hosts one side knows first. */
    while (GNI_PostDataProbe(a.nic, &addr, &inst) != GNI_RC_SUCCESS && emu_clock_ns() < end_ns)
        ;
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_PostDataProbe(a.nic, &addr, &inst), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataTest(a.ep, &post_state, &addr, &inst), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
}

/* shows: ucx-wait-after-probe */
static void test_wait_after_a_probe_returns_at_once(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];
    gni_post_state_t post_state;
    uint64_t id;

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in[0], 9), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, FOR_EVER, &id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWaitById(a.ep, id, FOR_EVER, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
}

static void test_probe_wait_times_out(void **state)
{
    uint64_t before_ns = emu_clock_ns();
    uint64_t id = 77;

    (void)state;
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, 0, &id), GNI_RC_TIMEOUT); /* looks once */
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, 20, &id), GNI_RC_TIMEOUT);
    assert_true(emu_clock_ns() - before_ns >= 20000000);
    assert_int_equal(id, 77);
}

static void test_probe_refuses_wrong_arguments(void **state)
{
    uint64_t id;
    uint32_t n;

    (void)state;
    assert_int_equal(GNI_PostDataProbe(NULL, &n, &n), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostDataProbe(a.nic, NULL, &n), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostDataProbe(a.nic, &n, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostDataProbeById(NULL, &id), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostDataProbeById(a.nic, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostdataProbeWaitById(NULL, 1, &id), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, 1, NULL), GNI_RC_INVALID_PARAM);
}

/* ---- crossing posts between processes ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SIDES(test_directed_datagrams_of_a_pair_meet),
        WITH_SIDES(test_directed_datagram_meets_a_waiting_wildcard),
        WITH_SIDES(test_wildcard_meets_a_waiting_directed_datagram),
        WITH_SIDES(test_two_wildcards_never_meet),
        WITH_SIDES(test_directed_datagram_prefers_a_directed_one_to_an_older_wildcard),
        WITH_SIDES(test_wildcards_are_used_oldest_first),
        WITH_SIDES(test_wildcard_takes_the_datagram_that_has_waited_longest),
        WITH_SIDES(test_datagram_waits_for_a_peer_that_has_not_attached),
        WITH_SIDES(test_datagram_to_another_instance_of_the_node_does_not_meet_us),
        WITH_SIDES(test_datagram_stays_in_its_domain),
        WITH_SIDES(test_datagram_to_oneself_meets_the_own_wildcard),
        WITH_SIDES(test_two_directed_datagrams_to_oneself_meet),
        WITH_SIDES(test_payload_of_every_size_arrives_whole),
        WITH_SIDES(test_buffer_is_written_by_the_call_that_collects),
        WITH_SIDES(test_too_small_a_buffer_is_a_size_error_and_ends_the_exchange),
        WITH_SIDES(test_test_reports_size_error_too),
        WITH_SIDES(test_forms_without_an_id_report_the_same),
        WITH_SIDES(test_post_refuses_wrong_arguments),
        WITH_SIDES(test_end_point_has_one_datagram_at_a_time),
        WITH_SIDES(test_second_datagram_to_a_peer_must_wait_for_the_first),
        WITH_SIDES(test_answer_to_an_uncollected_wildcard_exchange_is_busy),
        WITH_SIDES(test_end_point_is_free_again_after_collecting),
        WITH_SIDES(test_one_id_serves_several_end_points),
        WITH_SIDES(test_collected_datagram_is_no_match),
        WITH_SIDES(test_pending_is_not_collected),
        WITH_SIDES(test_test_sees_only_its_end_points_datagram_with_that_id),
        WITH_SIDES(test_polling_sees_the_completion),
        WITH_SIDES(test_wait_times_out_and_leaves_the_datagram),
        WITH_SIDES(test_wait_refuses_timeout_0_and_wrong_arguments),
        WITH_SIDES(test_wait_for_ever_wakes_for_the_completion),
        WITH_SIDES(test_wait_wakes_for_the_cancel),
        WITH_SIDES(test_wait_ends_when_its_end_point_is_destroyed),
        WITH_SIDES(test_probe_wait_wakes_for_the_completion),
        WITH_SIDES(test_probe_wait_wakes_for_the_cancel),
        WITH_SIDES(test_probe_wait_wakes_for_a_destroyed_end_point),
        WITH_SIDES(test_probe_finds_the_same_one_until_it_is_collected),
        WITH_SIDES(test_probe_keeps_to_its_datagram_when_an_older_one_ends),
        WITH_SIDES(test_probe_by_id_sees_only_datagrams_with_an_id),
        WITH_SIDES(test_wait_after_a_probe_returns_at_once),
        WITH_SIDES(test_probe_wait_times_out),
        WITH_SIDES(test_probe_refuses_wrong_arguments),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
