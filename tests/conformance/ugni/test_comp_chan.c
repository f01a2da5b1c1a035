/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: when the descriptor becomes readable, what is then to be had, and that no wake-up is lost, whoever
 * brings the event and whatever happens meanwhile. Specification: ugni.md A.2; codes as gni_pub.h documents them.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "tests/common/proc.h"
#include "tests/common/seed.h"
#include "tests/conformance/pair.h"

#define PATIENCE_MS    20000
#define CHANNELS_LIMIT 64u      /* per NIC handle, as gni_pub.h says */

static gni_comp_chan_handle_t chan;     /* of b */
static int chan_fd;

/* ---- fixture ---- */

static void open_channel(const struct gx_side *side, gni_comp_chan_handle_t *chan_out, int *fd_out)
{
    assert_int_equal(GNI_CompChanCreate(side->nic, chan_out), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CompChanFd(*chan_out, fd_out), GNI_RC_SUCCESS);
    assert_int_equal(fcntl(*fd_out, F_SETFL, fcntl(*fd_out, F_GETFL) | O_NONBLOCK), 0);
}

/* b has a channel, and its destination queue is attached to it. */
static int open_all(void **state)
{
    open_pair(state);
    open_channel(&b, &chan, &chan_fd);
    assert_int_equal(GNI_CqAttachCompChan(b.dst_cq, chan), GNI_RC_SUCCESS);
    return 0;
}

static int open_exact(void **state)
{
    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    return open_all(state);
}

static int close_all(void **state)
{
    if (chan)
        GNI_CompChanDestroy(chan);
    chan = NULL;
    return close_pair(state);
}

#define chan_test(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

/* ---- short hands ---- */

static bool is_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static void wait_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_true(p.revents & POLLIN);
}

static void arm(gni_cq_handle_t cq)
{
    assert_int_equal(GNI_CqArmCompChan(&cq, 1), GNI_RC_SUCCESS);
}

/* answers: GNI_CompChanGetEvent */
static gni_return_t next_queue(gni_cq_handle_t *cq_out)
{
    *cq_out = NULL;
    return GNI_CompChanGetEvent(chan, cq_out);
}

static void expect_queue(gni_cq_handle_t expected)
{
    gni_cq_handle_t cq;

    wait_readable(chan_fd);
    assert_int_equal(next_queue(&cq), GNI_RC_SUCCESS);
    assert_ptr_equal(cq, expected);
}

static void expect_nothing(void)
{
    gni_cq_handle_t cq;

    assert_false(is_readable(chan_fd));
    assert_int_equal(next_queue(&cq), GNI_RC_NOT_DONE);
    assert_null(cq);
}

/* An event on the destination queue of b, from a. When this returns, whoever had to tell of it has told. */
static void send_event(void)
{
    gni_post_descriptor_t d = word_post(GNI_POST_CQWRITE, 0);

    d.cqwrite_value = 77;
    assert_int_equal(run(&d), STATUS_OK);
    wait_for_all_before(&a, &b);
}

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
    assert_int_equal(GNI_CqAttachCompChan(a.dst_cq, chan), GNI_RC_INVALID_PARAM);   /* another NIC's */
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
    cqs[1] = b.src_cq;      /* attached to nothing */
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
    assert_int_equal(n, CHANNELS_LIMIT - 1);    /* and `chan` */
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
    send_event();           /* disarmed by then */
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
    arm(b.dst_cq);          /* still something in it */
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
    arm(b.dst_cq);          /* in line already */
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
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_GLOBAL_EVENT, .cqwrite_value = 5,
                                .remote_mem_hndl = b.mem_hndl };
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
            assert_int_equal(run(&d), STATUS_OK);       /* its event is lost */
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
        attr[i] = (gni_smsg_attr_t){ .msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, .mbox_maxcredit = 4,
                                     .msg_maxsize = 64, .msg_buffer = boxes + i * 4096 };
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
        while (poll_once(a.dst_cq) == GNI_RC_SUCCESS)   /* credits */
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
    gx_connect(&a, &b);     /* for the tear-down */
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
        assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem + i * 4096), 4096, cqs[i], GNI_MEM_READWRITE, (uint32_t)-1,
                                         &handles[i]),
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
        assert_int_equal(epoll_wait(epoll_fd, &event, 1, PATIENCE_MS), 1);     /* an edge each time */
        FD_ZERO(&set);
        FD_SET(chan_fd, &set);
        assert_int_equal(select(chan_fd + 1, &set, NULL, NULL, &patience), 1);
        expect_queue(b.dst_cq);
        expect_drained(b.dst_cq, 1);
    }
    close(epoll_fd);
}

struct getter {
    pthread_t thread;
    _Atomic bool is_there;
    _Atomic bool has_returned;
    gni_return_t rc;
    gni_cq_handle_t cq;
};

static void *get_in_thread(void *arg)
{
    struct getter *g = arg;

    atomic_store(&g->is_there, true);
    g->rc = GNI_CompChanGetEvent(chan, &g->cq);
    atomic_store(&g->has_returned, true);
    return NULL;
}

static void start_getter(struct getter *g)
{
    *g = (struct getter){ .rc = GNI_RC_ERROR_NOMEM };
    assert_int_equal(fcntl(chan_fd, F_SETFL, fcntl(chan_fd, F_GETFL) & ~O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&g->thread, NULL, get_in_thread, g), 0);
    while (!atomic_load(&g->is_there))
        sched_yield();
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
            wait_for_all_before(&a, &b);        /* some time for it to fall asleep */
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
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_SILENT, .cqwrite_value = value,
                                .remote_mem_hndl = handles[peer] };
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
        FX_CHECK(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);    /* a death may be told for nothing */
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
        write_peer(r, &s, 0, 1);        /* until it is killed */
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
        assert_int_equal(fx_join(&ranks), 2);       /* those that were killed */
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
    expect_queue(b.dst_cq);     /* it still has something to say */
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
    assert_int_equal(g.rc, GNI_RC_INVALID_STATE);       /* nothing was armed */
}

static void test_end_of_the_domain_is_told(void **state)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END };    /* without a signal: we are a member */

    (void)state;
    arm(b.dst_cq);
    assert_int_equal(emu_session_request(&fx.admin, &end, NULL, 0, NULL), 0);
    expect_loss();
}

/* ---- */

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
