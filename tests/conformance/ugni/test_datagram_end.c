/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams that end early: cancelled, of destroyed end points and domains; the shut-down sequences of known programs;
 * crossing datagrams and servers of many clients. Specification: spec/ugni.md 4.5, 7.4, 7.21, 5.1-5.3.
 */
#include "tests/conformance/datagram.h"

/* ---- cancel ---- */

static void test_cancelled_datagram_stays_visible_until_collected(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];
    uint64_t id = 0;

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in[0], 6), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, 6), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 6);
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    expect_pending(b.ep, 2); /* does not meet it any more */
    expect_terminated(a.ep, 6);
    assert_int_equal(post_text(a.ep, "again", in[0], 6), GNI_RC_SUCCESS);
    expect_text(b.ep, 2, &a, in[1], "again");
}

static void test_cancel_finds_nothing_when_nothing_is_active(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];
    uint64_t id;

    (void)state;
    assert_int_equal(GNI_EpPostDataCancel(a.ep), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, 1), GNI_RC_NO_MATCH);
    assert_int_equal(post_text(a.ep, "x", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, 2), GNI_RC_NO_MATCH);
    expect_pending(a.ep, 1);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, 1), GNI_RC_NO_MATCH); /* final already */
    expect_terminated(a.ep, 1);
    assert_int_equal(post_text(a.ep, "x", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, PATIENCE, &id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, 1), GNI_RC_NO_MATCH); /* complete */
    expect_text(a.ep, 1, &b, in[0], "y");
}

static void test_plain_cancel_takes_datagrams_with_and_without_id(void **state)
{
    gni_post_state_t post_state;
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancel(a.ep), GNI_RC_SUCCESS);
    expect_terminated(a.ep, 1);
    assert_int_equal(GNI_EpPostData(a.ep, NULL, 0, in, sizeof(in)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, 0), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_EpPostDataCancel(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataTest(a.ep, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_TERMINATED);
}

static void test_cancel_refuses_wrong_arguments(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpPostDataCancel(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataCancelById(NULL, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, ~0ull), GNI_RC_INVALID_PARAM);
}

static void test_cancelled_wildcard_takes_nothing(void **state)
{
    gni_ep_handle_t any = make_ep(&b, NULL);
    char in[2][GNI_DATAGRAM_MAXSIZE] = { "", "untouched" };

    (void)state;
    assert_int_equal(post_text(any, "whoever", in[1], 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancelById(any, 0), GNI_RC_SUCCESS);
    assert_int_equal(post_text(a.ep, "x", in[0], 1), GNI_RC_SUCCESS);
    expect_pending(a.ep, 1);
    expect_terminated(any, 0);
    assert_string_equal(in[1], "untouched");
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

/* ---- end points that go ---- */

static void test_destroyed_end_point_leaves_a_record_for_one_probe(void **state)
{
    gni_ep_handle_t ep = make_ep(&a, &b);
    char in[GNI_DATAGRAM_MAXSIZE] = "untouched";
    uint64_t id = 0;

    (void)state;
    assert_int_equal(post_text(ep, "x", in, 33), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 33);
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_NO_MATCH);
    assert_string_equal(in, "untouched");
}

static void test_destroyed_end_points_datagram_meets_nobody(void **state)
{
    gni_ep_handle_t ep = make_ep(&a, &b);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(ep, "x", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    expect_pending(b.ep, 2);
    assert_int_equal(post_text(a.ep, "new", in[0], 1), GNI_RC_SUCCESS);
    expect_text(b.ep, 2, &a, in[1], "new");
}

static void test_complete_datagram_of_a_destroyed_end_point_is_gone(void **state)
{
    gni_ep_handle_t ep = make_ep(&a, &b);
    char in[2][GNI_DATAGRAM_MAXSIZE];
    uint64_t id;

    (void)state;
    assert_int_equal(post_text(ep, "x", in[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    expect_text(b.ep, 2, &a, in[1], "x");
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_NO_MATCH);
}

static void test_unbind_cancels_the_datagram(void **state)
{
    char in[2][GNI_DATAGRAM_MAXSIZE];
    gni_post_state_t post_state;
    uint64_t id = 0;

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in[0], 21), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostDataProbeById(a.nic, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 21);
    assert_int_equal(test_id(a.ep, 21, &post_state), GNI_RC_NO_MATCH);
    assert_int_equal(post_text(b.ep, "y", in[1], 2), GNI_RC_SUCCESS);
    expect_pending(b.ep, 2);
}

static void test_destroyed_cdm_withdraws_its_datagrams(void **state)
{
    struct gx_side d;
    gni_ep_handle_t ep;
    gni_ep_handle_t any = make_ep(&b, NULL);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    gx_open(&d, &fx, 0, 13, 0);
    ep = make_ep(&d, &b);
    assert_int_equal(post_text(ep, "x", in[0], 1), GNI_RC_SUCCESS);
    gx_close(&d); /* the end point is still there and goes with it */
    assert_int_equal(post_text(any, "whoever", in[1], 0), GNI_RC_SUCCESS);
    expect_pending(any, 0);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

static void test_records_that_nobody_probes_do_not_pile_up(void **state)
{
    char in[GNI_DATAGRAM_MAXSIZE];
    unsigned found = 0;
    uint64_t id = 0;

    (void)state;
    for (unsigned i = 0; i < 2000; i++) {
        gni_ep_handle_t ep = make_ep(&a, &b);

        assert_int_equal(post_text(ep, "x", in, i), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    }
    while (GNI_PostDataProbeById(a.nic, &id) == GNI_RC_SUCCESS)
        found++;
    assert_true(found < 1000);
    assert_int_equal(id, 1999); /* the newest were kept */
}

/* ---- sequences of known programs ---- */

/* UCX closes an UDT end point that way. */
static void test_cancel_then_wait_is_terminated_at_once(void **state)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(a.ep, "x", in, 3), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancelById(a.ep, 3), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWaitById(a.ep, 3, 100, &post_state, NULL, NULL), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_TERMINATED);
}

/*
 * UCX shuts its UDT thread down that way: id 1 must be reported, the cancelled wildcard (id 0) must not. shows:
 * ucx-thread
 */
static void test_blocked_thread_learns_of_the_shut_down_and_of_nothing_else(void **state)
{
    char in[GNI_DATAGRAM_MAXSIZE];

    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        gni_ep_handle_t any = make_ep(&a, NULL);
        gni_ep_handle_t self = NULL;
        gni_post_state_t post_state;
        struct waiter w = { .nic = a.nic, .timeout = FOR_EVER, .id = 99 };
        gni_return_t rc;

        assert_int_equal(post_text(any, "whoever", in, 0), GNI_RC_SUCCESS);
        start_waiter(&w);
        if (i % 2) /* perhaps it sleeps by now */
            assert_int_equal(GNI_EpPostDataWaitById(any, 0, 1, &post_state, NULL, NULL), GNI_RC_TIMEOUT);
        assert_int_equal(GNI_EpPostDataCancelById(any, 0), GNI_RC_SUCCESS);
        rc = test_id(any, 0, &post_state);
        assert_int_equal(rc, GNI_RC_SUCCESS);
        assert_int_equal(post_state, GNI_POST_TERMINATED);
        assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
        self = make_ep(&a, &a);
        assert_int_equal(GNI_EpPostDataWId(self, NULL, 0, NULL, 0, 1), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(w.thread, NULL), 0);
        assert_int_equal(w.rc, GNI_RC_SUCCESS);
        assert_int_equal(w.id, 1);
    }
}

static void test_shut_down_record_waits_for_a_late_thread(void **state)
{
    gni_ep_handle_t self = make_ep(&a, &a);
    uint64_t id = 0;

    (void)state;
    assert_int_equal(GNI_EpPostDataWId(self, NULL, 0, NULL, 0, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostdataProbeWaitById(a.nic, FOR_EVER, &id), GNI_RC_SUCCESS);
    assert_int_equal(id, 1);
}

/* Open MPI cancels its wildcard by an id that it did not post. */
static void test_cancel_by_a_wrong_id_leaves_the_wildcard(void **state)
{
    gni_ep_handle_t any = make_ep(&a, NULL);
    char in[2][GNI_DATAGRAM_MAXSIZE];

    (void)state;
    assert_int_equal(post_text(any, "whoever", in[0], 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancelById(any, 1), GNI_RC_NO_MATCH);
    assert_int_equal(post_text(b.ep, "from b", in[1], 2), GNI_RC_SUCCESS);
    expect_text(any, 0, &b, in[0], "from b");
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

/* Open MPI: the side reached by wildcard answers with a directed datagram, which meets the peer's next one. */
static void test_exchange_by_wildcard_is_followed_by_a_directed_one(void **state)
{
    gni_ep_handle_t any = make_ep(&b, NULL);
    char in_any[GNI_DATAGRAM_MAXSIZE];
    char in_a[GNI_DATAGRAM_MAXSIZE];
    char in_b[GNI_DATAGRAM_MAXSIZE];
    uint64_t id;

    (void)state;
    assert_int_equal(post_text(any, "", in_any, 0), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(post_text(a.ep, "mailbox of a", in_a, 1ull << 63 | i), GNI_RC_SUCCESS);
        assert_int_equal(GNI_PostdataProbeWaitById(b.nic, PATIENCE, &id), GNI_RC_SUCCESS);
        assert_int_equal(id, 0);
        expect_text(any, 0, &a, in_any, "mailbox of a");
        assert_int_equal(post_text(any, "", in_any, 0), GNI_RC_SUCCESS);
        assert_int_equal(post_text(b.ep, "mailbox of b", in_b, 1ull << 63 | i), GNI_RC_SUCCESS);
        expect_text(a.ep, 1ull << 63 | i, &b, in_a, "");
        assert_int_equal(post_text(a.ep, "mailbox of a", in_a, 1ull << 63 | i), GNI_RC_SUCCESS);
        expect_text(a.ep, 1ull << 63 | i, &b, in_a, "mailbox of b");
        expect_text(b.ep, 1ull << 63 | i, &a, in_b, "mailbox of a");
    }
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

/* ---- crossing posts between processes ---- */

#define CROSSINGS 1500

enum outcome {
    MET_DIRECTED = 1, /* the peer's directed datagram */
    MET_WILDCARD,     /* the peer's wildcard */
    WAS_BUSY,         /* refused, because the peer's datagram has met our wildcard */
};

struct crossing {
    struct gx_side side;
    uint32_t peer;
    gni_ep_handle_t ep;
    gni_ep_handle_t any; /* wildcard, or NULL */
    uint32_t in_any[2];
};

static void post_wildcard(struct crossing *x)
{
    uint32_t out[2] = { 0xabc, 0 };

    FX_CHECK(GNI_EpPostDataWId(x->any, out, sizeof(out), x->in_any, sizeof(x->in_any), 1) == GNI_RC_SUCCESS);
}

static void collect(gni_ep_handle_t ep, uint64_t id, uint32_t peer)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    uint32_t addr;
    uint32_t inst;

    FX_CHECK(GNI_EpPostDataWaitById(ep, id, PATIENCE, &post_state, &addr, &inst) == GNI_RC_SUCCESS);
    FX_CHECK(post_state == GNI_POST_COMPLETED);
    FX_CHECK(inst == 100 + peer);
}

static enum outcome cross_once(struct fx_rank *r, struct crossing *x, uint32_t round)
{
    uint32_t out[2] = { r->rank, round };
    uint32_t in[2] = { ~0u, ~0u };
    gni_return_t rc = GNI_EpPostDataWId(x->ep, out, sizeof(out), in, sizeof(in), 2);

    if (rc == GNI_RC_ERROR_RESOURCE) {
        FX_CHECK(x->any != NULL);
        collect(x->any, 1, x->peer);
        FX_CHECK(x->in_any[0] == x->peer && x->in_any[1] == round);
        post_wildcard(x);
        return WAS_BUSY;
    }
    FX_CHECK(rc == GNI_RC_SUCCESS);
    collect(x->ep, 2, x->peer);
    if (in[0] == 0xabc)
        return MET_WILDCARD;
    FX_CHECK(in[0] == x->peer && in[1] == round);
    return MET_DIRECTED;
}

/* Both sides post at the same time, round after round. Whatever comes first, each meets the other exactly once. */
static int cross(struct fx_rank *r)
{
    struct crossing x = { .peer = 1 - r->rank };
    uint8_t *outcomes = r->shared;
    bool *has_wildcards = r->arg;
    uint64_t id;

    gx_open(&x.side, r->fx, r->fx->nids[r->rank], 100 + r->rank, 0);
    FX_CHECK(GNI_EpCreate(x.side.nic, NULL, &x.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(x.ep, r->fx->nids[x.peer], 100 + x.peer) == GNI_RC_SUCCESS);
    if (*has_wildcards) {
        FX_CHECK(GNI_EpCreate(x.side.nic, NULL, &x.any) == GNI_RC_SUCCESS);
        post_wildcard(&x);
    }
    for (uint32_t round = 0; round < CROSSINGS; round++) {
        pthread_barrier_wait(r->barrier);
        outcomes[r->rank] = (uint8_t)cross_once(r, &x, round);
        pthread_barrier_wait(r->barrier);
        FX_CHECK(outcomes[0] + outcomes[1] == MET_DIRECTED + MET_DIRECTED ||
                 (outcomes[0] + outcomes[1] == MET_WILDCARD + WAS_BUSY && *has_wildcards));
        FX_CHECK(GNI_PostDataProbeById(x.side.nic, &id) == GNI_RC_NO_MATCH); /* nothing else was used up */
    }
    FX_CHECK(GNI_EpDestroy(x.ep) == GNI_RC_SUCCESS);
    FX_CHECK(!x.any || GNI_EpDestroy(x.any) == GNI_RC_SUCCESS);
    gx_close(&x.side);
    return 0;
}

static void test_crossing_datagrams_meet_each_other(void **state)
{
    bool has_wildcards = false;

    (void)state;
    assert_int_equal(fx_run(&fx, 2, cross, &has_wildcards), 0);
}

static void test_crossing_datagrams_meet_once_though_wildcards_wait(void **state)
{
    bool has_wildcards = true;

    (void)state;
    assert_int_equal(fx_run(&fx, 2, cross, &has_wildcards), 0);
}

/* Many clients, one server with four wildcards, as libfabric connects: everybody is served, nothing twice. */
#define CLIENT_ROUNDS 300

static int serve(struct fx_rank *r, struct gx_side *side)
{
    uint32_t served[FX_RANKS_MAX] = { 0 };
    gni_ep_handle_t any[4];
    uint32_t in[4][2];
    uint32_t out[2] = { 0 };

    for (unsigned i = 0; i < 4; i++) {
        FX_CHECK(GNI_EpCreate(side->nic, NULL, &any[i]) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpPostDataWId(any[i], out, sizeof(out), in[i], sizeof(in[i]), i) == GNI_RC_SUCCESS);
    }
    for (unsigned n = 0; n < CLIENT_ROUNDS * (r->n_ranks - 1); n++) {
        gni_post_state_t post_state;
        uint32_t addr;
        uint32_t inst;
        uint64_t id;

        FX_CHECK(GNI_PostdataProbeWaitById(side->nic, PATIENCE, &id) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpPostDataTestById(any[id], id, &post_state, &addr, &inst) == GNI_RC_SUCCESS);
        FX_CHECK(post_state == GNI_POST_COMPLETED);
        FX_CHECK(inst == 200 + in[id][0] && addr == r->fx->nids[in[id][0]]);
        FX_CHECK(in[id][1] == served[in[id][0]]++);
        FX_CHECK(GNI_EpPostDataWId(any[id], out, sizeof(out), in[id], sizeof(in[id]), id) == GNI_RC_SUCCESS);
    }
    return 0;
}

static int call_server(struct fx_rank *r, struct gx_side *side)
{
    gni_ep_handle_t ep;

    FX_CHECK(GNI_EpCreate(side->nic, NULL, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, r->fx->nids[0], 200) == GNI_RC_SUCCESS);
    for (uint32_t round = 0; round < CLIENT_ROUNDS; round++) {
        uint32_t out[2] = { r->rank, round };
        gni_post_state_t post_state;
        uint32_t in[2];

        FX_CHECK(GNI_EpPostDataWId(ep, out, sizeof(out), in, sizeof(in), 9) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpPostDataWaitById(ep, 9, PATIENCE, &post_state, NULL, NULL) == GNI_RC_SUCCESS);
        FX_CHECK(post_state == GNI_POST_COMPLETED);
    }
    return 0;
}

static int serve_or_call(struct fx_rank *r)
{
    struct gx_side side;
    int status;

    gx_open(&side, r->fx, r->fx->nids[r->rank], 200 + r->rank, 0);
    status = r->rank == 0 ? serve(r, &side) : call_server(r, &side);
    pthread_barrier_wait(r->barrier);
    gx_close(&side);
    return status;
}

static void test_a_server_with_wildcards_serves_every_client_once(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 4, serve_or_call, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_SIDES(test_cancelled_datagram_stays_visible_until_collected),
        WITH_SIDES(test_cancel_finds_nothing_when_nothing_is_active),
        WITH_SIDES(test_plain_cancel_takes_datagrams_with_and_without_id),
        WITH_SIDES(test_cancel_refuses_wrong_arguments),
        WITH_SIDES(test_cancelled_wildcard_takes_nothing),
        WITH_SIDES(test_destroyed_end_point_leaves_a_record_for_one_probe),
        WITH_SIDES(test_destroyed_end_points_datagram_meets_nobody),
        WITH_SIDES(test_complete_datagram_of_a_destroyed_end_point_is_gone),
        WITH_SIDES(test_unbind_cancels_the_datagram),
        WITH_SIDES(test_destroyed_cdm_withdraws_its_datagrams),
        WITH_SIDES(test_records_that_nobody_probes_do_not_pile_up),
        WITH_SIDES(test_cancel_then_wait_is_terminated_at_once),
        WITH_SIDES(test_blocked_thread_learns_of_the_shut_down_and_of_nothing_else),
        WITH_SIDES(test_shut_down_record_waits_for_a_late_thread),
        WITH_SIDES(test_cancel_by_a_wrong_id_leaves_the_wildcard),
        WITH_SIDES(test_exchange_by_wildcard_is_followed_by_a_directed_one),
        cmocka_unit_test(test_crossing_datagrams_meet_each_other),
        cmocka_unit_test(test_crossing_datagrams_meet_once_though_wildcards_wait),
        cmocka_unit_test(test_a_server_with_wildcards_serves_every_client_once),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
