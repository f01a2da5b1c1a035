/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members of a domain that misuse what completion channels share: they can make a descriptor readable for nothing.
 * (They can also write each other's queues, so that there is nothing to tell.) `hostile` writes into its own segment
 * and its victim's what a peer may write there, and rings. The program is linked with the library's archive, which
 * hides nothing.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "libugni/src/ugni.h"
#include "tests/common/gni.h"
#include "tests/common/seed.h"

#define PATIENCE_MS 20000
#define RINGS       2000u

static struct fx fx;
static struct gx_side hostile;
static struct gx_side victim;
static gni_comp_chan_handle_t chan;
static int chan_fd;

static int open_sides(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    gx_open(&hostile, &fx, 0, 10, 0);
    gx_open(&victim, &fx, 1, 11, 0);
    gx_connect(&hostile, &victim);
    assert_int_equal(GNI_CompChanCreate(victim.nic, &chan), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CompChanFd(chan, &chan_fd), GNI_RC_SUCCESS);
    assert_int_equal(fcntl(chan_fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(GNI_CqAttachCompChan(victim.dst_cq, chan), GNI_RC_SUCCESS);
    return 0;
}

static int close_sides(void **state)
{
    (void)state;
    gx_close(&hostile);
    gx_close(&victim);
    return fx_stop(&fx);
}

static struct emu_port *port_of(const struct gx_side *side)
{
    return &gnii_nic_find(side->nic)->port;
}

/* Calls that name these queues of these ports. */
static void ring(uint64_t ports, uint64_t queues)
{
    struct emu_segment *own = port_of(&hostile)->segment;
    struct emu_segment *theirs = port_of(&victim)->segment;

    for (unsigned i = 0; i < EMU_CQS_MAX / 64; i++)
        atomic_fetch_or(&theirs->fired[i], queues);
    for (unsigned i = 0; i < EMU_PORTS_MAX / 64; i++)
        atomic_fetch_or(&own->calls[i], ports);
    atomic_store(&own->has_calls, (uint32_t)ports | 1);
    emu_port_ring(port_of(&hostile));
}

static gni_return_t next_queue(void)
{
    gni_cq_handle_t cq = NULL;
    gni_return_t rc = GNI_CompChanGetEvent(chan, &cq);

    if (rc == GNI_RC_SUCCESS)
        assert_ptr_equal(cq, victim.dst_cq);
    return rc;
}

/* One event wakes, and is there. */
static void expect_channel_works(void)
{
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .cqwrite_value = 5,
                                .remote_mem_hndl = victim.mem_hndl };
    struct pollfd p = { .fd = chan_fd, .events = POLLIN };
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry = 0;

    assert_int_equal(GNI_CqArmCompChan(&victim.dst_cq, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostCqWrite(hostile.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(hostile.src_cq, &done), GNI_RC_SUCCESS);
    do
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    while (next_queue() == GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqGetEvent(victim.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 5);
    assert_int_equal(GNI_CqGetEvent(victim.dst_cq, &entry), GNI_RC_NOT_DONE);
}

static void test_made_up_calls_report_no_queue(void **state)
{
    struct emu_random random = seeded(31);

    (void)state;
    assert_int_equal(GNI_CqArmCompChan(&victim.dst_cq, 1), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < RINGS; i++) {
        ring(emu_random_next(&random), emu_random_next(&random));
        assert_int_equal(next_queue(), GNI_RC_NOT_DONE);
        if (i % 100 == 0)
            expect_channel_works();
        if (i % 100 == 0)
            assert_int_equal(GNI_CqArmCompChan(&victim.dst_cq, 1), GNI_RC_SUCCESS);
    }
}

static void test_calls_that_nobody_reads_harm_nobody(void **state)
{
    char *text;

    (void)state;
    for (unsigned i = 0; i < 50 * RINGS; i++)
        ring(UINT64_MAX, UINT64_MAX);
    text = fx_report(&fx, EMU_MSG_STATUS);
    assert_non_null(text);
    free(text);
    expect_channel_works();
}

/* The pipe's reader has no say in how it is written to. */
static void test_pipe_cannot_hold_emunic_up(void **state)
{
    gni_comp_chan_handle_t other;
    int fd;

    (void)state;
    assert_int_equal(GNI_CompChanCreate(victim.nic, &other), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CompChanFd(other, &fd), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqAttachCompChan(victim.src_cq, other), GNI_RC_SUCCESS);
    for (int pipe_fd = 3; pipe_fd < 256; pipe_fd++) {
        if (fcntl(pipe_fd, F_GETPIPE_SZ) < 0)
            continue;
        fcntl(pipe_fd, F_SETFL, 0); /* blocking */
        fcntl(pipe_fd, F_SETPIPE_SZ, 4096);
    }
    for (unsigned i = 0; i < 10 * RINGS; i++)
        ring(UINT64_MAX, UINT64_MAX);
    /* A request is answered: emunic does not hang in a write. */
    assert_int_equal(GNI_CompChanDestroy(other), GNI_RC_SUCCESS);
}

#define sides_test(name) cmocka_unit_test_setup_teardown(name, open_sides, close_sides)

int main(void)
{
    const struct CMUnitTest tests[] = {
        sides_test(test_made_up_calls_report_no_queue),
        sides_test(test_calls_that_nobody_reads_harm_nobody),
        sides_test(test_pipe_cannot_hold_emunic_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
