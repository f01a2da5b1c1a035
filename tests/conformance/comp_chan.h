/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of completion channels share. Each program includes this once; the objects are its own.
 */
#ifndef TESTS_CONFORMANCE_COMP_CHAN_H
#define TESTS_CONFORMANCE_COMP_CHAN_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "tests/common/proc.h"
#include "tests/common/seed.h"
#include "tests/conformance/pair.h"

#define PATIENCE_MS 20000

static gni_comp_chan_handle_t chan; /* of b */
static int chan_fd;

/* ---- fixture ---- */

static inline void open_channel(const struct gx_side *side, gni_comp_chan_handle_t *chan_out, int *fd_out)
{
    assert_int_equal(GNI_CompChanCreate(side->nic, chan_out), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CompChanFd(*chan_out, fd_out), GNI_RC_SUCCESS);
    assert_int_equal(fcntl(*fd_out, F_SETFL, fcntl(*fd_out, F_GETFL) | O_NONBLOCK), 0);
}

/* b has a channel, and its destination queue is attached to it. */
static inline int open_all(void **state)
{
    open_pair(state);
    open_channel(&b, &chan, &chan_fd);
    assert_int_equal(GNI_CqAttachCompChan(b.dst_cq, chan), GNI_RC_SUCCESS);
    return 0;
}

static inline int close_all(void **state)
{
    if (chan)
        GNI_CompChanDestroy(chan);
    chan = NULL;
    return close_pair(state);
}

#define chan_test(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

/* ---- short hands ---- */

static inline bool is_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static inline void wait_readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_true(p.revents & POLLIN);
}

static inline void arm(gni_cq_handle_t cq)
{
    assert_int_equal(GNI_CqArmCompChan(&cq, 1), GNI_RC_SUCCESS);
}

/* answers: GNI_CompChanGetEvent */
static inline gni_return_t next_queue(gni_cq_handle_t *cq_out)
{
    *cq_out = NULL;
    return GNI_CompChanGetEvent(chan, cq_out);
}

static inline void expect_queue(gni_cq_handle_t expected)
{
    gni_cq_handle_t cq;

    wait_readable(chan_fd);
    assert_int_equal(next_queue(&cq), GNI_RC_SUCCESS);
    assert_ptr_equal(cq, expected);
}

static inline void expect_nothing(void)
{
    gni_cq_handle_t cq;

    assert_false(is_readable(chan_fd));
    assert_int_equal(next_queue(&cq), GNI_RC_NOT_DONE);
    assert_null(cq);
}

/* An event on the destination queue of b, from a. When this returns, whoever had to tell of it has told. */
static inline void send_event(void)
{
    gni_post_descriptor_t d = word_post(GNI_POST_CQWRITE, 0);

    d.cqwrite_value = 77;
    assert_int_equal(run(&d), STATUS_OK);
    wait_for_all_before(&a, &b);
}

/* ---- the descriptor ---- */

struct getter {
    pthread_t thread;
    _Atomic bool is_there;
    _Atomic bool has_returned;
    gni_return_t rc;
    gni_cq_handle_t cq;
};

static inline void *get_in_thread(void *arg)
{
    struct getter *g = arg;

    atomic_store(&g->is_there, true);
    g->rc = GNI_CompChanGetEvent(chan, &g->cq);
    atomic_store(&g->has_returned, true);
    return NULL;
}

static inline void start_getter(struct getter *g)
{
    *g = (struct getter){ .rc = GNI_RC_ERROR_NOMEM };
    assert_int_equal(fcntl(chan_fd, F_SETFL, fcntl(chan_fd, F_GETFL) & ~O_NONBLOCK), 0);
    assert_int_equal(pthread_create(&g->thread, NULL, get_in_thread, g), 0);
    while (!atomic_load(&g->is_there))
        sched_yield();
}

#endif
