/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: when the descriptor becomes readable, what is then to be had, and that no wake-up is lost,
 * whoever brings the event and whatever happens meanwhile. Specification: spec/ugni.md A.2; codes as gni_pub.h
 * documents them.
 */
#include "tests/conformance/comp_chan.h"

#define CHANNELS_LIMIT 64u /* per NIC handle, as gni_pub.h says */

/* ---- fixture ---- */

static int open_exact(void **state)
{
    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    return open_all(state);
}

/* ---- short hands ---- */

static void expect_drained(gni_cq_handle_t cq, unsigned n_events)
{
    for (unsigned i = 0; i < n_events; i++)
        assert_int_equal(poll_once(cq), GNI_RC_SUCCESS);
    assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
}

static gni_cq_handle_t queue_of(const struct gx_side *side, gni_cq_mode_t mode)
{
    gni_cq_handle_t cq = NULL;

    assert_int_equal(GNI_CqCreate(side->nic, 64, 0, mode, NULL, NULL, &cq), GNI_RC_SUCCESS);
    return cq;
}

/* ---- codes ---- */

static void test_create_refuses_bad_arguments(void **state)
{
    gni_comp_chan_handle_t other = (gni_comp_chan_handle_t)0x77;

    (void)state;
    assert_int_equal(GNI_CompChanCreate(NULL, &other), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CompChanCreate((gni_nic_handle_t)b.dst_cq, &other), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CompChanCreate(b.nic, NULL), GNI_RC_INVALID_PARAM);
    assert_ptr_equal(other, (void *)0x77);
}

static void test_dead_and_foreign_handles_are_refused(void **state)
{
    gni_comp_chan_handle_t dead;
    gni_comp_chan_handle_t bad[4];
    gni_cq_handle_t cq = (gni_cq_handle_t)0x77;
    int fd = 77;

    (void)state;
    assert_int_equal(GNI_CompChanCreate(b.nic, &dead), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CompChanDestroy(dead), GNI_RC_SUCCESS);
    bad[0] = NULL;
    bad[1] = (gni_comp_chan_handle_t)0x1234;
    bad[2] = (gni_comp_chan_handle_t)b.dst_cq;
    bad[3] = dead;
    for (unsigned i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(GNI_CompChanDestroy(bad[i]), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_CompChanFd(bad[i], &fd), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_CompChanGetEvent(bad[i], &cq), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_CqAttachCompChan(b.src_cq, bad[i]), GNI_RC_INVALID_PARAM);
    }
    assert_int_equal(GNI_CompChanFd(chan, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CompChanGetEvent(chan, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(fd, 77);
    assert_ptr_equal(cq, (void *)0x77);
}

static void test_attach_tells_why_it_refuses(void **state)
{
    gni_cq_handle_t polled = queue_of(&b, GNI_CQ_NOBLOCK);
    gni_comp_chan_handle_t second;

    (void)state;
    assert_int_equal(GNI_CqAttachCompChan(NULL, chan), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqAttachCompChan((gni_cq_handle_t)chan, chan), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqAttachCompChan(a.dst_cq, chan), GNI_RC_INVALID_PARAM); /* another NIC's */
    assert_int_equal(GNI_CqAttachCompChan(polled, chan), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_CqAttachCompChan(b.dst_cq, chan), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_CompChanCreate(b.nic, &second), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqAttachCompChan(b.dst_cq, second), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_CompChanDestroy(second), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(polled), GNI_RC_SUCCESS);
}

static void test_arm_tells_why_it_refuses_and_then_arms_nothing(void **state)
{
    gni_cq_handle_t polled = queue_of(&b, GNI_CQ_NOBLOCK);
    gni_cq_handle_t cqs[2] = { b.dst_cq, polled };

    (void)state;
    assert_int_equal(GNI_CqArmCompChan(NULL, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqArmCompChan(cqs, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqArmCompChan(cqs, 2), GNI_RC_ERROR_RESOURCE);
    cqs[1] = b.src_cq; /* attached to nothing */
    assert_int_equal(GNI_CqArmCompChan(cqs, 2), GNI_RC_INVALID_STATE);
    cqs[1] = NULL;
    assert_int_equal(GNI_CqArmCompChan(cqs, 2), GNI_RC_INVALID_PARAM);
    send_event();
    expect_nothing();
    assert_int_equal(GNI_CqDestroy(polled), GNI_RC_SUCCESS);
}

static void test_limit_of_channels_gives_error_resource_until_one_goes(void **state)
{
    gni_comp_chan_handle_t more[CHANNELS_LIMIT];
    unsigned n = 0;

    (void)state;
    while (n < CHANNELS_LIMIT && GNI_CompChanCreate(b.nic, &more[n]) == GNI_RC_SUCCESS)
        n++;
    assert_int_equal(n, CHANNELS_LIMIT - 1); /* and `chan` */
    assert_int_equal(GNI_CompChanCreate(b.nic, &more[n]), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_CompChanDestroy(more[7]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CompChanCreate(b.nic, &more[7]), GNI_RC_SUCCESS);
    while (n > 0)
        assert_int_equal(GNI_CompChanDestroy(more[--n]), GNI_RC_SUCCESS);
}

static void test_channels_leave_no_descriptors(void **state)
{
    gni_comp_chan_handle_t other;
    int here = proc_count_fds(getpid());
    int there = fx_count_fds(&fx);

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(GNI_CompChanCreate(b.nic, &other), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqAttachCompChan(b.src_cq, other), GNI_RC_SUCCESS);
        arm(b.src_cq);
        assert_int_equal(GNI_CompChanDestroy(other), GNI_RC_SUCCESS);
    }
    assert_int_equal(proc_count_fds(getpid()), here);
    assert_int_equal(fx_count_fds(&fx), there);
}

/* ---- when it is readable ---- */

static void test_new_channel_is_not_readable(void **state)
{
    (void)state;
    expect_nothing();
    arm(b.dst_cq);
    expect_nothing();
}

static void test_event_of_a_queue_that_is_not_armed_is_not_told(void **state)
{
    (void)state;
    send_event();
    expect_nothing();
    expect_drained(b.dst_cq, 1);
}

static void test_event_of_an_armed_queue_is_told_once(void **state)
{
    (void)state;
    arm(b.dst_cq);
    send_event();
    send_event();
    expect_queue(b.dst_cq);
    expect_nothing();
    send_event(); /* disarmed by then */
    expect_nothing();
    expect_drained(b.dst_cq, 3);
    arm(b.dst_cq);
    expect_nothing();
    send_event();
    expect_queue(b.dst_cq);
    expect_drained(b.dst_cq, 1);
}

static void test_arming_a_queue_with_events_tells_at_once(void **state)
{
    (void)state;
    send_event();
    arm(b.dst_cq);
    assert_true(is_readable(chan_fd));
    expect_queue(b.dst_cq);
    expect_nothing();
    arm(b.dst_cq); /* still something in it */
    assert_true(is_readable(chan_fd));
    expect_queue(b.dst_cq);
    expect_drained(b.dst_cq, 1);
}

static void test_arming_twice_is_arming_once(void **state)
{
    (void)state;
    arm(b.dst_cq);
    arm(b.dst_cq);
    send_event();
    arm(b.dst_cq); /* in line already */
    expect_queue(b.dst_cq);
    expect_nothing();
    expect_drained(b.dst_cq, 1);
}

static void test_queue_drained_meanwhile_is_still_told_and_armed_again(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        arm(b.dst_cq);
        send_event();
        expect_drained(b.dst_cq, 1);
        expect_queue(b.dst_cq);
        expect_nothing();
    }
}

static void test_own_completion_is_told(void **state)
{
    gni_post_descriptor_t d = gx_put(&b, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t big = gx_put(&b, &a, 0, GX_BYTES, GNI_CQMODE_GLOBAL_EVENT);

    (void)state;
    big.type = GNI_POST_RDMA_PUT;
    assert_int_equal(GNI_CqAttachCompChan(b.src_cq, chan), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 20; i++) {
        gni_post_descriptor_t *posted = i % 2 ? &d : &big;

        arm(b.src_cq);
        assert_int_equal(post_on(b.ep, posted), GNI_RC_SUCCESS);
        expect_queue(b.src_cq);
        assert_int_equal(finish_on(b.src_cq, posted), STATUS_OK);
        expect_nothing();
    }
}

static void test_silent_completion_is_not_told_by_arming(void **state)
{
    gni_post_descriptor_t d = gx_put(&b, &a, 0, 8, GNI_CQMODE_SILENT);

    (void)state;
    assert_int_equal(GNI_CqAttachCompChan(b.src_cq, chan), GNI_RC_SUCCESS);
    assert_int_equal(post_on(b.ep, &d), GNI_RC_SUCCESS);
    wait_for_all_before(&b, &a);
    arm(b.src_cq);
    expect_nothing();
}

static void test_event_to_oneself_is_told(void **state)
{
    gni_post_descriptor_t d = {
        .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_GLOBAL_EVENT, .cqwrite_value = 5, .remote_mem_hndl = b.mem_hndl
    };
    gni_ep_handle_t self;

    (void)state;
    assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &self), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(self, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 20; i++) {
        arm(b.dst_cq);
        assert_int_equal(post_on(self, &d), GNI_RC_SUCCESS);
        expect_queue(b.dst_cq);
        assert_int_equal(finish_on(b.src_cq, &d), STATUS_OK);
        expect_drained(b.dst_cq, 1);
    }
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
}

static void test_failed_transaction_is_told(void **state)
{
    gni_post_descriptor_t d = gx_put(&b, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);

    (void)state;
    d.remote_addr += GX_BYTES;
    assert_int_equal(GNI_CqAttachCompChan(b.src_cq, chan), GNI_RC_SUCCESS);
    arm(b.src_cq);
    assert_int_equal(post_on(b.ep, &d), GNI_RC_SUCCESS);
    expect_queue(b.src_cq);
    assert_int_equal(finish_on(b.src_cq, &d), STATUS_REMOTE_RANGE);
}

static void test_overrun_is_told(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    for (unsigned i = 0; i < 128; i++)
        send_event();
    arm(b.dst_cq);
    expect_queue(b.dst_cq);
    for (unsigned i = 0; i < 128; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

        if (i == 0)
            assert_int_equal(run(&d), STATUS_OK); /* its event is lost */
        assert_int_equal(poll_once(b.dst_cq), GNI_RC_SUCCESS);
    }
    arm(b.dst_cq);
    expect_queue(b.dst_cq);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_ERROR_RESOURCE);
    assert_true(GNI_CQ_OVERRUN(entry) != 0);
    arm(b.dst_cq);
    expect_nothing();
    send_event();
    expect_queue(b.dst_cq);
}

static void test_message_is_told_to_a_sleeping_receiver(void **state)
{
    uint8_t *boxes = pages(2 * 4096);
    gni_smsg_attr_t attr[2];
    gni_mem_handle_t handles[2];
    const struct gx_side *sides[2] = { &a, &b };
    uint32_t bytes = 0;
    void *message;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        attr[i] = (gni_smsg_attr_t){ .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
                                     .mbox_maxcredit = 4,
                                     .msg_maxsize = 64,
                                     .msg_buffer = boxes + i * 4096 };
        assert_int_equal(GNI_SmsgBufferSizeNeeded(&attr[i], &bytes), GNI_RC_SUCCESS);
        assert_true(bytes <= 4096);
        assert_int_equal(GNI_MemRegister(sides[i]->nic, ADDR(boxes + i * 4096), 4096, sides[i]->dst_cq,
                                         GNI_MEM_READWRITE, (uint32_t)-1, &handles[i]),
                         GNI_RC_SUCCESS);
        attr[i].buff_size = bytes;
        attr[i].mem_hndl = handles[i];
    }
    assert_int_equal(GNI_SmsgInit(a.ep, &attr[0], &attr[1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(b.ep, &attr[1], &attr[0]), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 100; i++) {
        gni_cq_entry_t entry;

        arm(b.dst_cq);
        assert_int_equal(GNI_SmsgSend(a.ep, "hello", 6, NULL, 0, i), GNI_RC_SUCCESS);
        wait_readable(chan_fd);
        expect_queue(b.dst_cq);
        while (GNI_SmsgGetNext(b.ep, &message) == GNI_RC_NOT_DONE)
            ;
        assert_string_equal(message, "hello");
        assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
        while (poll_once(a.dst_cq) == GNI_RC_SUCCESS) /* credits */
            ;
        while (poll_once(b.dst_cq) == GNI_RC_SUCCESS)
            ;
    }
    GNI_EpDestroy(a.ep);
    GNI_EpDestroy(b.ep);
    a.ep = b.ep = NULL;
    GNI_MemDeregister(a.nic, &handles[0]);
    GNI_MemDeregister(b.nic, &handles[1]);
    munmap(boxes, 2 * 4096);
    gx_connect(&a, &b); /* for the tear-down */
}

/* ---- several queues and channels ---- */

static void test_each_queue_is_told_and_the_descriptor_stays_readable_until_the_last(void **state)
{
    gni_post_descriptor_t d = gx_put(&b, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_cq_handle_t cqs[2] = { b.dst_cq, b.src_cq };
    gni_cq_handle_t got[2];

    (void)state;
    assert_int_equal(GNI_CqAttachCompChan(b.src_cq, chan), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(GNI_CqArmCompChan(cqs, 2), GNI_RC_SUCCESS);
        send_event();
        assert_int_equal(post_on(b.ep, &d), GNI_RC_SUCCESS);
        for (unsigned j = 0; j < 2; j++) {
            wait_readable(chan_fd);
            assert_int_equal(next_queue(&got[j]), GNI_RC_SUCCESS);
        }
        expect_nothing();
        assert_true((got[0] == cqs[0] && got[1] == cqs[1]) || (got[0] == cqs[1] && got[1] == cqs[0]));
        assert_int_equal(finish_on(b.src_cq, &d), STATUS_OK);
        expect_drained(b.dst_cq, 1);
    }
}

#define MANY 300u

static void test_hundreds_of_queues_are_told_each_once(void **state)
{
    static gni_cq_handle_t cqs[MANY];
    static gni_mem_handle_t handles[MANY];
    static unsigned told[MANY];
    uint8_t *mem = pages(MANY * 4096);

    (void)state;
    memset(told, 0, sizeof(told));
    for (unsigned i = 0; i < MANY; i++) {
        cqs[i] = queue_of(&b, GNI_CQ_BLOCKING);
        assert_int_equal(GNI_CqAttachCompChan(cqs[i], chan), GNI_RC_SUCCESS);
        assert_int_equal(
            GNI_MemRegister(b.nic, ADDR(mem + i * 4096), 4096, cqs[i], GNI_MEM_READWRITE, (uint32_t)-1, &handles[i]),
            GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_CqArmCompChan(cqs, MANY), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < MANY; i++) {
        gni_post_descriptor_t d = word_post(GNI_POST_CQWRITE, 0);

        d.remote_mem_hndl = handles[i];
        assert_int_equal(run(&d), STATUS_OK);
    }
    for (unsigned n = 0; n < MANY; n++) {
        gni_cq_handle_t cq;
        unsigned i = 0;

        wait_readable(chan_fd);
        assert_int_equal(next_queue(&cq), GNI_RC_SUCCESS);
        while (i < MANY && cqs[i] != cq)
            i++;
        assert_true(i < MANY);
        told[i]++;
    }
    expect_nothing();
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(told[i], 1);
        assert_int_equal(poll_once(cqs[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_MemDeregister(b.nic, &handles[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqDestroy(cqs[i]), GNI_RC_SUCCESS);
    }
    munmap(mem, MANY * 4096);
}

static void test_channels_do_not_hear_of_each_others_queues(void **state)
{
    gni_comp_chan_handle_t second;
    gni_cq_handle_t cq;
    int second_fd;

    (void)state;
    open_channel(&b, &second, &second_fd);
    assert_int_equal(GNI_CqAttachCompChan(b.src_cq, second), GNI_RC_SUCCESS);
    arm(b.dst_cq);
    arm(b.src_cq);
    send_event();
    expect_queue(b.dst_cq);
    assert_false(is_readable(second_fd));
    wait_for_all_before(&b, &a);
    wait_readable(second_fd);
    assert_int_equal(GNI_CompChanGetEvent(second, &cq), GNI_RC_SUCCESS);
    assert_ptr_equal(cq, b.src_cq);
    expect_nothing();
    assert_int_equal(GNI_CompChanDestroy(second), GNI_RC_SUCCESS);
}

/* ---- the descriptor ---- */

static void test_descriptor_works_with_select_and_epoll(void **state)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLET };
    struct timeval patience = { .tv_sec = PATIENCE_MS / 1000 };
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    fd_set set;

    (void)state;
    assert_true(epoll_fd >= 0 && chan_fd < FD_SETSIZE);
    assert_int_equal(epoll_ctl(epoll_fd, EPOLL_CTL_ADD, chan_fd, &event), 0);
    for (unsigned i = 0; i < 200; i++) {
        arm(b.dst_cq);
        assert_int_equal(epoll_wait(epoll_fd, &event, 1, 0), 0);
        send_event();
        assert_int_equal(epoll_wait(epoll_fd, &event, 1, PATIENCE_MS), 1); /* an edge each time */
        FD_ZERO(&set);
        FD_SET(chan_fd, &set);
        assert_int_equal(select(chan_fd + 1, &set, NULL, NULL, &patience), 1);
        expect_queue(b.dst_cq);
        expect_drained(b.dst_cq, 1);
    }
    close(epoll_fd);
}

static void test_blocking_descriptor_makes_get_event_wait(void **state)
{
    struct getter g;

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        arm(b.dst_cq);
        start_getter(&g);
        send_event();
        assert_int_equal(pthread_join(g.thread, NULL), 0);
        assert_int_equal(g.rc, GNI_RC_SUCCESS);
        assert_ptr_equal(g.cq, b.dst_cq);
        expect_drained(b.dst_cq, 1);
    }
}

static void on_signal(int number)
{
    (void)number;
}

static void test_signal_ends_a_waiting_get_event_with_not_done(void **state)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct getter g;

    (void)state;
    sigaction(SIGUSR1, &action, NULL);
    start_getter(&g);
    while (!atomic_load(&g.has_returned)) {
        pthread_kill(g.thread, SIGUSR1);
        sched_yield();
    }
    assert_int_equal(pthread_join(g.thread, NULL), 0);
    assert_int_equal(g.rc, GNI_RC_NOT_DONE);
    signal(SIGUSR1, SIG_DFL);
}

static void *get_asynchronously(void *arg)
{
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    return get_in_thread(arg);
}

static void test_waiting_get_event_may_be_cancelled(void **state)
{
    (void)state;
    assert_int_equal(fcntl(chan_fd, F_SETFL, fcntl(chan_fd, F_GETFL) & ~O_NONBLOCK), 0);
    for (unsigned i = 0; i < 100; i++) {
        struct getter g = { .rc = GNI_RC_ERROR_NOMEM };
        void *result = NULL;

        assert_int_equal(pthread_create(&g.thread, NULL, i % 2 ? get_asynchronously : get_in_thread, &g), 0);
        while (!atomic_load(&g.is_there))
            sched_yield();
        if (i % 3 == 0)
            wait_for_all_before(&a, &b); /* some time for it to fall asleep */
        assert_int_equal(pthread_cancel(g.thread), 0);
        assert_int_equal(pthread_join(g.thread, &result), 0);
        assert_ptr_equal(result, PTHREAD_CANCELED);
    }
    arm(b.dst_cq);
    send_event();
    expect_queue(b.dst_cq);
}

/* ---- objects that go away ---- */

static void test_channel_may_go_before_its_queues(void **state)
{
    gni_cq_handle_t cq = b.dst_cq;

    (void)state;
    arm(b.dst_cq);
    assert_int_equal(GNI_CompChanDestroy(chan), GNI_RC_SUCCESS);
    send_event();
    expect_drained(b.dst_cq, 1);
    assert_int_equal(GNI_CqArmCompChan(&cq, 1), GNI_RC_INVALID_STATE);
    open_channel(&b, &chan, &chan_fd);
    assert_int_equal(GNI_CqAttachCompChan(b.dst_cq, chan), GNI_RC_SUCCESS);
    expect_nothing();
    arm(b.dst_cq);
    send_event();
    expect_queue(b.dst_cq);
}

static void test_queues_may_go_before_their_channel(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        gni_cq_handle_t cq = queue_of(&b, GNI_CQ_BLOCKING);
        gni_mem_handle_t handle;
        uint8_t *mem = pages(4096);
        gni_post_descriptor_t d = word_post(GNI_POST_CQWRITE, 0);
        gni_cq_handle_t got;

        assert_int_equal(GNI_CqAttachCompChan(cq, chan), GNI_RC_SUCCESS);
        assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 4096, cq, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                         GNI_RC_SUCCESS);
        if (i % 3 != 0)
            arm(cq);
        d.remote_mem_hndl = handle;
        if (i % 3 != 1)
            assert_int_equal(run(&d), STATUS_OK);
        if (i % 3 == 2)
            wait_readable(chan_fd);
        assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
        assert_int_equal(next_queue(&got), GNI_RC_NOT_DONE);
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
        munmap(mem, 4096);
    }
    arm(b.dst_cq);
    send_event();
    expect_queue(b.dst_cq);
}

static void test_destroyed_channel_ends_a_waiting_get_event(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        struct getter g;

        start_getter(&g);
        if (i % 2)
            wait_for_all_before(&a, &b);
        assert_int_equal(GNI_CompChanDestroy(chan), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(g.thread, NULL), 0);
        assert_int_equal(g.rc, GNI_RC_INVALID_PARAM);
        open_channel(&b, &chan, &chan_fd);
    }
}

static void test_destroyed_cdm_takes_its_channels_along(void **state)
{
    gni_cq_handle_t cq;
    struct getter g;
    int fd;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        start_getter(&g);
        if (i % 2)
            wait_for_all_before(&a, &b);
        assert_int_equal(GNI_CdmDestroy(b.cdm), GNI_RC_SUCCESS);
        assert_int_equal(pthread_join(g.thread, NULL), 0);
        assert_true(g.rc == GNI_RC_INVALID_STATE || g.rc == GNI_RC_INVALID_PARAM);
        assert_int_equal(fcntl(chan_fd, F_GETFL), -1);
        assert_int_equal(errno, EBADF);
        assert_int_equal(GNI_CompChanFd(chan, &fd), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_CompChanGetEvent(chan, &cq), GNI_RC_INVALID_PARAM);
        free(b.mem);
        GNI_EpDestroy(a.ep);
        gx_open(&b, &fx, 1, 11, 0);
        gx_connect(&a, &b);
        open_channel(&b, &chan, &chan_fd);
        assert_int_equal(GNI_CqAttachCompChan(b.dst_cq, chan), GNI_RC_SUCCESS);
    }
    arm(b.dst_cq);
    send_event();
    expect_queue(b.dst_cq);
}

/* ---- deaths ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        chan_test(test_create_refuses_bad_arguments),
        chan_test(test_dead_and_foreign_handles_are_refused),
        chan_test(test_attach_tells_why_it_refuses),
        chan_test(test_arm_tells_why_it_refuses_and_then_arms_nothing),
        chan_test(test_limit_of_channels_gives_error_resource_until_one_goes),
        chan_test(test_channels_leave_no_descriptors),
        chan_test(test_new_channel_is_not_readable),
        chan_test(test_event_of_a_queue_that_is_not_armed_is_not_told),
        chan_test(test_event_of_an_armed_queue_is_told_once),
        chan_test(test_arming_a_queue_with_events_tells_at_once),
        chan_test(test_arming_twice_is_arming_once),
        chan_test(test_queue_drained_meanwhile_is_still_told_and_armed_again),
        chan_test(test_own_completion_is_told),
        chan_test(test_silent_completion_is_not_told_by_arming),
        chan_test(test_event_to_oneself_is_told),
        chan_test(test_failed_transaction_is_told),
        cmocka_unit_test_setup_teardown(test_overrun_is_told, open_exact, close_all),
        chan_test(test_message_is_told_to_a_sleeping_receiver),
        chan_test(test_each_queue_is_told_and_the_descriptor_stays_readable_until_the_last),
        chan_test(test_hundreds_of_queues_are_told_each_once),
        chan_test(test_channels_do_not_hear_of_each_others_queues),
        chan_test(test_descriptor_works_with_select_and_epoll),
        chan_test(test_blocking_descriptor_makes_get_event_wait),
        chan_test(test_signal_ends_a_waiting_get_event_with_not_done),
        chan_test(test_waiting_get_event_may_be_cancelled),
        chan_test(test_channel_may_go_before_its_queues),
        chan_test(test_queues_may_go_before_their_channel),
        chan_test(test_destroyed_channel_ends_a_waiting_get_event),
        chan_test(test_destroyed_cdm_takes_its_channels_along),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
