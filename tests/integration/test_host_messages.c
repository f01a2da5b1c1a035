/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams and short messages on a machine of two hosts, where only the distance matters: a host that is slow, goes
 * and comes back. Nodes 0 and 2 are on the head, node 1 is on the other host.
 */
#include <signal.h>

#include "tests/conformance/datagram.h"
#include "tests/conformance/mailbox.h"

#define TIMEOUT_MS 1500u

static int start_hosts(void **state)
{
    struct fx_options options = { .n_hosts = 2, .timeout_ms = TIMEOUT_MS };

    (void)state;
    fx_start(&fx, &options);
    return open_sides(state);
}

static int stop_hosts(void **state)
{
    close_sides(state);
    return fx_stop(&fx);
}

static void expect_error(gni_ep_handle_t ep, uint64_t id)
{
    gni_post_state_t post_state = GNI_POST_PENDING;

    assert_int_equal(GNI_EpPostDataWaitById(ep, id, PATIENCE, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_ERROR);
}

static void test_datagrams_to_a_lost_host_end_with_an_error_until_it_is_back(void **state)
{
    gni_ep_handle_t wildcard = make_ep(&a, NULL);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "before", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(wildcard, "from anybody", in[1], 2), GNI_RC_SUCCESS);
    fx_kill_host(&fx, 1);
    expect_error(a.ep, 1);
    assert_int_equal(post_text(a.ep, "too late", in[0], 3), GNI_RC_SUCCESS);
    expect_error(a.ep, 3);
    expect_pending(wildcard, 2);
    fx_restart_host(&fx, 1);
    fx_await_host(&fx, 0, 1, true);
    gx_close(&b);
    gx_open(&b, &fx, 1, 11, 0);
    gx_connect(&b, &a);
    assert_int_equal(post_text(b.ep, "again", in[0], 4), GNI_RC_SUCCESS);
    expect_text(wildcard, 2, &b, in[1], "again");
    expect_text(b.ep, 4, &a, in[0], "from anybody");
    assert_int_equal(GNI_EpDestroy(wildcard), GNI_RC_SUCCESS);
}

/* A wildcard here has claimed the datagram of a host that does not answer: a cancel waits for what becomes of that. */
static void test_cancel_waits_for_the_host_that_was_asked(void **state)
{
    gni_ep_handle_t wildcard = make_ep(&a, NULL);
    gni_post_descriptor_t *done = NULL;
    gni_post_descriptor_t d;
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    gx_connect(&b, &a);
    assert_int_equal(post_text(b.ep, "mine", in[0], 1), GNI_RC_SUCCESS);
    /* What a host sends arrives in order: the datagram is here when this has come. */
    d = gx_put(&b, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    assert_int_equal(GNI_PostFma(b.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(b.src_cq, &done), GNI_RC_SUCCESS);
    assert_int_equal(kill(fx.hosts[1].daemon, SIGSTOP), 0);
    assert_int_equal(GNI_EpPostDataWId(wildcard, NULL, 0, in[1], sizeof(in[1]), 2), GNI_RC_SUCCESS);
    /* Returns when the host counts as lost. */
    assert_int_equal(GNI_EpPostDataCancelById(wildcard, 2), GNI_RC_SUCCESS);
    expect_terminated(wildcard, 2);
    assert_int_equal(GNI_EpDestroy(wildcard), GNI_RC_SUCCESS);
    fx_kill_host(&fx, 1);
}

/* ---- short messages ---- */

struct line {
    struct mailbox here;
    struct mailbox there;
    gni_ep_handle_t ep; /* to there */
    gni_ep_handle_t back;
};

static void open_line(struct line *line, const struct gx_side *to)
{
    mb_open(&line->here, a.nic, NULL, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 8, 64, 0);
    mb_open(&line->there, to->nic, NULL, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 8, 64, 0);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &line->ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(line->ep, to->nic_addr, to->inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(to->nic, to->src_cq, &line->back), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(line->back, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(line->ep, &line->here.attr, &line->there.attr), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(line->back, &line->there.attr, &line->here.attr), GNI_RC_SUCCESS);
}

static void close_line(struct line *line)
{
    GNI_EpDestroy(line->ep);
    GNI_EpDestroy(line->back);
    mb_close(&line->here);
    mb_close(&line->there);
}

/* answers: GNI_SmsgSendWTag */
static gni_return_t send_text(const struct line *line, char *text, uint32_t msg_id)
{
    return GNI_SmsgSendWTag(line->ep, NULL, 0, text, (uint32_t)strlen(text) + 1, msg_id, 1);
}

static void expect_entry(uint32_t msg_id)
{
    gni_cq_entry_t entry;

    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), msg_id);
}

static void test_entries_of_sends_to_two_hosts_come_in_the_order_of_their_ends(void **state)
{
    struct line far_line;
    struct line near_line;
    uint8_t tag = 1;
    void *message;

    (void)state;
    open_line(&far_line, &b);
    open_line(&near_line, &c);
    /* The first messages of both have greetings before them. */
    assert_int_equal(send_text(&far_line, "first", 1), GNI_RC_SUCCESS);
    assert_int_equal(mb_next(far_line.back, &message, &tag), GNI_RC_SUCCESS);
    expect_entry(1);
    assert_int_equal(send_text(&near_line, "first", 2), GNI_RC_SUCCESS);
    assert_int_equal(mb_next(near_line.back, &message, &tag), GNI_RC_SUCCESS);
    expect_entry(2);
    assert_int_equal(kill(fx.hosts[1].daemon, SIGSTOP), 0);
    assert_int_equal(send_text(&far_line, "slow", 3), GNI_RC_SUCCESS);
    assert_int_equal(send_text(&near_line, "quick", 4), GNI_RC_SUCCESS);
    expect_entry(4);
    /* With nothing outstanding; the other one's entry is not taken for its. */
    assert_int_equal(GNI_EpDestroy(near_line.ep), GNI_RC_SUCCESS);
    assert_int_equal(kill(fx.hosts[1].daemon, SIGCONT), 0);
    expect_entry(3);
    near_line.ep = NULL;
    close_line(&near_line);
    close_line(&far_line);
}

#define hosts_test(test) cmocka_unit_test_setup_teardown(test, start_hosts, stop_hosts)

int main(void)
{
    const struct CMUnitTest tests[] = {
        hosts_test(test_datagrams_to_a_lost_host_end_with_an_error_until_it_is_back),
        hosts_test(test_cancel_waits_for_the_host_that_was_asked),
        hosts_test(test_entries_of_sends_to_two_hosts_come_in_the_order_of_their_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
