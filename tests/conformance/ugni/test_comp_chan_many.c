/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels in many hands: forked children, processes that wake each other, storms, switches of the data
 * path, deaths. Specification: spec/ugni.md A.2.
 */
#include "tests/conformance/comp_chan.h"

/* ---- objects that go away ---- */

static void test_end_of_a_forked_child_disturbs_nothing(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    arm(b.dst_cq);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        GNI_CompChanDestroy(chan);
        GNI_CdmDestroy(b.cdm);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    expect_nothing();
    send_event();
    expect_queue(b.dst_cq);
    arm(b.dst_cq);
    expect_queue(b.dst_cq);
}

/* ---- no wake-up is lost ---- */

#define ROUNDS   5000u
#define STORM_NS 40000000000ull

/*
 * Sleeps until the channel says something and takes it. Arms again before it drains, as programs should, or after: then
 * what has come in between has to be told at once. Events taken.
 */
static unsigned sleep_and_drain(gni_comp_chan_handle_t channel, int epoll_fd, bool arms_first)
{
    gni_cq_handle_t cq = NULL;
    struct epoll_event event;
    gni_cq_entry_t entry;
    unsigned taken = 0;
    gni_return_t rc;

    FX_CHECK(epoll_wait(epoll_fd, &event, 1, PATIENCE_MS) == 1);
    rc = GNI_CompChanGetEvent(channel, &cq);
    if (rc == GNI_RC_NOT_DONE)
        return 0;
    FX_CHECK(rc == GNI_RC_SUCCESS);
    if (arms_first)
        FX_CHECK(GNI_CqArmCompChan(&cq, 1) == GNI_RC_SUCCESS);
    while ((rc = GNI_CqGetEvent(cq, &entry)) == GNI_RC_SUCCESS)
        taken++;
    FX_CHECK(rc == GNI_RC_NOT_DONE);
    if (!arms_first)
        FX_CHECK(GNI_CqArmCompChan(&cq, 1) == GNI_RC_SUCCESS);
    return taken;
}

/* A rank with a channel for its destination queue, which is armed, and an end point to `peer`. */
struct sleeper {
    struct gx_side side;
    gni_comp_chan_handle_t channel;
    int fd;
    int epoll_fd;
};

static void open_sleeper(struct fx_rank *r, uint32_t peer, struct sleeper *s)
{
    gni_mem_handle_t *handles = r->shared;
    struct epoll_event event = { .events = EPOLLIN };

    gx_open(&s->side, r->fx, r->fx->nids[r->rank], 60 + r->rank, 0);
    FX_CHECK(GNI_EpCreate(s->side.nic, s->side.src_cq, &s->side.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(s->side.ep, r->fx->nids[peer], 60 + peer) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CompChanCreate(s->side.nic, &s->channel) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CompChanFd(s->channel, &s->fd) == GNI_RC_SUCCESS);
    FX_CHECK(fcntl(s->fd, F_SETFL, O_NONBLOCK) == 0);
    FX_CHECK(GNI_CqAttachCompChan(s->side.dst_cq, s->channel) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CqArmCompChan(&s->side.dst_cq, 1) == GNI_RC_SUCCESS);
    s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    FX_CHECK(epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->fd, &event) == 0);
    handles[r->rank] = s->side.mem_hndl;
    pthread_barrier_wait(r->barrier);
}

static void close_sleeper(struct fx_rank *r, struct sleeper *s)
{
    pthread_barrier_wait(r->barrier);
    close(s->epoll_fd);
    FX_CHECK(GNI_CompChanDestroy(s->channel) == GNI_RC_SUCCESS);
    gx_close(&s->side);
}

static void write_peer(struct fx_rank *r, struct sleeper *s, uint32_t peer, uint64_t value)
{
    const gni_mem_handle_t *handles = r->shared;
    gni_post_descriptor_t d = {
        .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_SILENT, .cqwrite_value = value, .remote_mem_hndl = handles[peer]
    };
    gni_return_t rc;

    while ((rc = GNI_PostCqWrite(s->side.ep, &d)) == GNI_RC_ERROR_RESOURCE) {
        gni_cq_entry_t entry;

        GNI_CqGetEvent(s->side.src_cq, &entry);
    }
    FX_CHECK(rc == GNI_RC_SUCCESS);
}

/* Both sleep in turn: whatever is lost stops the game. */
static int play(struct fx_rank *r)
{
    uint32_t peer = 1 - r->rank;
    struct sleeper s;

    open_sleeper(r, peer, &s);
    for (unsigned n = 0; n < ROUNDS; n++) {
        if (r->rank == n % 2) {
            write_peer(r, &s, peer, n);
        } else {
            unsigned taken = 0;

            while (taken == 0)
                taken = sleep_and_drain(s.channel, s.epoll_fd, true);
            FX_CHECK(taken == 1);
        }
    }
    close_sleeper(r, &s);
    return 0;
}

static void test_two_processes_wake_each_other_thousands_of_times(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, play, NULL), 0);
}

/* Ranks 1.. send in bursts of any size at any time; rank 0 sleeps and must get all of them. */
static int storm(struct fx_rank *r)
{
    _Atomic unsigned *received = (_Atomic unsigned *)((char *)r->shared + 4096);
    uint64_t end_ns = emu_clock_ns() + STORM_NS;
    unsigned n_senders = r->n_ranks - 1;
    struct emu_random random = { .state = ((struct emu_random *)r->arg)->state + r->rank };
    unsigned total = 0;
    struct sleeper s;

    open_sleeper(r, r->rank == 0 ? 1 : 0, &s);
    while (r->rank == 0 && total < n_senders * ROUNDS) {
        total += sleep_and_drain(s.channel, s.epoll_fd, emu_random_next(&random) % 2);
        atomic_store(received, total);
    }
    for (unsigned sent = 0; r->rank > 0 && sent < ROUNDS;) {
        unsigned burst = (unsigned)(emu_random_next(&random) % 16) + 1;

        while (burst-- > 0 && sent < ROUNDS) {
            write_peer(r, &s, 0, sent);
            sent++;
        }
        /* Never more than the queue holds, and often none: then it sleeps. */
        while (sent * n_senders > atomic_load(received) + 64 || (sent % 3 == 0 && atomic_load(received) < sent)) {
            FX_CHECK(emu_clock_ns() < end_ns);
            sched_yield();
        }
    }
    close_sleeper(r, &s);
    return 0;
}

static void test_storm_of_several_producers_loses_no_wake_up(void **state)
{
    struct emu_random random = seeded(7919);

    (void)state;
    assert_int_equal(fx_run(&fx, 4, storm, &random), 0);
}

struct pusher {
    pthread_t thread;
    _Atomic unsigned sent;
    _Atomic unsigned received;
};

/* Completions of b's own posts, made by one thread and slept for by another. */
static void *push_own(void *arg)
{
    static gni_post_descriptor_t posts[ROUNDS];
    struct pusher *p = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        posts[i] = gx_put(&b, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
        while (post_on(b.ep, &posts[i]) != GNI_RC_SUCCESS)
            sched_yield();
        atomic_fetch_add(&p->sent, 1);
        while (i % 4 == 0 && atomic_load(&p->received) <= i)
            sched_yield();
    }
    return NULL;
}

static void test_own_completions_of_another_thread_lose_no_wake_up(void **state)
{
    struct pusher p = { .sent = 0 };
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_CqAttachCompChan(b.src_cq, chan), GNI_RC_SUCCESS);
    arm(b.src_cq);
    assert_int_equal(pthread_create(&p.thread, NULL, push_own, &p), 0);
    while (atomic_load(&p.received) < ROUNDS) {
        expect_queue(b.src_cq);
        arm(b.src_cq);
        while (GNI_CqGetEvent(b.src_cq, &entry) == GNI_RC_SUCCESS) {
            assert_int_equal(GNI_GetCompleted(b.src_cq, entry, &done), GNI_RC_SUCCESS);
            atomic_fetch_add(&p.received, 1);
        }
    }
    assert_int_equal(pthread_join(p.thread, NULL), 0);
}

/* The data path changes under the events. */
static void *switch_paths(void *arg)
{
    struct fx_ranks *ranks = arg;

    for (unsigned i = 0; !fx_is_over(ranks); i++) {
        fx_set_routed(&fx, i % 2 == 0);
        for (unsigned j = 0; j < 100; j++)
            sched_yield();
    }
    fx_set_routed(&fx, false);
    return NULL;
}

static void test_switching_the_data_path_loses_no_wake_up(void **state)
{
    struct fx_ranks ranks;

    (void)state;
    fx_spawn(&fx, 2, play, NULL, &ranks);
    switch_paths(&ranks);
    assert_int_equal(fx_join(&ranks), 0);
}

/* ---- deaths ---- */

#define WORDS 300u

struct words {
    _Atomic unsigned received;
};

static struct words *words_of(void *shared)
{
    return (struct words *)((char *)shared + 4096);
}

/* Rank 0: sleeps, and counts the words of rank 1 that come in turn. What is lost to a full queue comes again. */
static void receive_words(struct fx_rank *r, struct sleeper *s)
{
    struct words *words = words_of(r->shared);

    while (atomic_load(&words->received) < WORDS) {
        gni_cq_handle_t cq = NULL;
        struct epoll_event event;
        gni_cq_entry_t entry;
        gni_return_t rc;

        FX_CHECK(epoll_wait(s->epoll_fd, &event, 1, PATIENCE_MS) == 1);
        rc = GNI_CompChanGetEvent(s->channel, &cq);
        FX_CHECK(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE); /* a death may be told for nothing */
        if (rc == GNI_RC_NOT_DONE)
            continue;
        FX_CHECK(GNI_CqArmCompChan(&cq, 1) == GNI_RC_SUCCESS);
        while ((rc = GNI_CqGetEvent(cq, &entry)) != GNI_RC_NOT_DONE) {
            if (rc == GNI_RC_SUCCESS && GNI_CQ_GET_DATA(entry) == 1000 + atomic_load(&words->received))
                atomic_fetch_add(&words->received, 1);
        }
    }
}

static int send_words(struct fx_rank *r)
{
    struct words *words = words_of(r->shared);
    uint64_t end_ns = emu_clock_ns() + STORM_NS;
    struct sleeper s;

    open_sleeper(r, r->rank == 0 ? 1 : 0, &s);
    if (r->rank == 0)
        receive_words(r, &s);
    while (r->rank > 1)
        write_peer(r, &s, 0, 1); /* until it is killed */
    for (unsigned n = 0; r->rank == 1 && n < WORDS; n++) {
        while (atomic_load(&words->received) == n) {
            write_peer(r, &s, 0, 1000 + n);
            FX_CHECK(emu_clock_ns() < end_ns);
            for (unsigned i = 0; i < 1000 && atomic_load(&words->received) == n; i++)
                sched_yield();
        }
    }
    return 0;
}

static bool has_come(struct fx_ranks *ranks, unsigned n)
{
    uint64_t end_ns = emu_clock_ns() + 2 * PATIENCE_NS;

    while (atomic_load(&words_of(ranks->shared)->received) < n) {
        if (fx_is_over(ranks) || emu_clock_ns() > end_ns)
            return false;
        sched_yield();
    }
    return true;
}

static void test_death_of_producers_does_not_silence_the_channel(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 4; round++) {
        struct fx_ranks ranks;

        fx_spawn(&fx, 4, send_words, NULL, &ranks);
        for (unsigned victim = 2; victim < 4; victim++) {
            bool goes_on = has_come(&ranks, (victim - 1) * WORDS / 4);

            kill(ranks.pids[victim], SIGKILL);
            assert_true(goes_on);
        }
        assert_int_equal(fx_join(&ranks), 2); /* those that were killed */
    }
}

static void expect_loss(void)
{
    gni_cq_handle_t cq;
    gni_cq_entry_t entry;

    expect_queue(b.dst_cq);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_false(GNI_CQ_STATUS_OK(entry));
    assert_true(is_readable(chan_fd));
    assert_int_equal(next_queue(&cq), GNI_RC_INVALID_STATE);
    arm(b.dst_cq);
    expect_queue(b.dst_cq); /* it still has something to say */
    assert_int_equal(next_queue(&cq), GNI_RC_INVALID_STATE);
}

static struct fx common_fx;

/* With an emunic of its own, which it may kill. */
static int open_alone(void **state)
{
    common_fx = fx;
    start_emunic(state);
    return open_all(state);
}

static int close_lost(void **state)
{
    (void)state;
    GNI_CompChanDestroy(chan);
    chan = NULL;
    gx_close(&a);
    gx_close(&b);
    fx_stop(&fx);
    fx = common_fx;
    setenv("EMUNIC_SERVER", fx.server, 1);
    return 0;
}

static void test_death_of_emunic_is_told(void **state)
{
    gni_comp_chan_handle_t late;

    (void)state;
    arm(b.dst_cq);
    assert_int_equal(kill(fx.daemon, SIGKILL), 0);
    expect_loss();
    assert_int_equal(GNI_CompChanCreate(b.nic, &late), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_CqAttachCompChan(b.src_cq, chan), GNI_RC_ERROR_RESOURCE);
}

static void test_death_of_emunic_ends_a_waiting_get_event(void **state)
{
    struct getter g;

    (void)state;
    start_getter(&g);
    assert_int_equal(kill(fx.daemon, SIGKILL), 0);
    assert_int_equal(pthread_join(g.thread, NULL), 0);
    assert_int_equal(g.rc, GNI_RC_INVALID_STATE); /* nothing was armed */
}

static void test_end_of_the_domain_is_told(void **state)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END }; /* without a signal: we are a member */

    (void)state;
    arm(b.dst_cq);
    assert_int_equal(emu_session_request(&fx.admin, &end, NULL, 0, NULL), 0);
    expect_loss();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        chan_test(test_end_of_a_forked_child_disturbs_nothing),
        chan_test(test_own_completions_of_another_thread_lose_no_wake_up),
        cmocka_unit_test(test_two_processes_wake_each_other_thousands_of_times),
        cmocka_unit_test(test_storm_of_several_producers_loses_no_wake_up),
        cmocka_unit_test(test_switching_the_data_path_loses_no_wake_up),
        cmocka_unit_test(test_death_of_producers_does_not_silence_the_channel),
        cmocka_unit_test_setup_teardown(test_death_of_emunic_is_told, open_alone, close_lost),
        cmocka_unit_test_setup_teardown(test_death_of_emunic_ends_a_waiting_get_event, open_alone, close_lost),
        cmocka_unit_test_setup_teardown(test_end_of_the_domain_is_told, open_alone, close_lost),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
