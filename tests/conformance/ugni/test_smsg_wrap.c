/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The numbers of messages go past 32 bits, in the stamps and in the returned credits. Nobody waits for four thousand
 * million messages: this program links libugni.a and moves the counters of both sides itself (libugni/src/smsg.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "libugni/src/ugni.h"
#include "tests/conformance/mailbox.h"

#define CREDITS  4
#define DISTANCE 8u /* from the wrap after the jump; of both this and 2^32 CREDITS is a divisor */

static struct fx fx;
static struct gx_side a;
static struct gx_side b;
static struct mailbox box_a;
static struct mailbox box_b;

static void send_and_take(gni_ep_handle_t from, gni_cq_handle_t src_cq, gni_ep_handle_t to, uint32_t number)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;

    assert_int_equal(mb_send(from, src_cq, &number, sizeof(number), NULL, 0, number, 0), GNI_RC_SUCCESS);
    assert_int_equal(mb_next(to, &message, &tag), GNI_RC_SUCCESS);
    assert_memory_equal(message, &number, sizeof(number));
    assert_int_equal(GNI_SmsgRelease(to), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgGetNext(to, &message), GNI_RC_NOT_DONE);
}

/* As if the connection were nearly 2^32 messages older. */
static void jump(gni_ep_handle_t sender, gni_ep_handle_t receiver)
{
    const uint64_t more = (1ull << 32) - DISTANCE;
    struct gnii_smsg *s = gnii_ep_find(sender)->smsg;
    struct gnii_smsg *r = gnii_ep_find(receiver)->smsg;

    s->sent += more;
    s->acknowledged += more;
    r->taken += more;
    r->returned += more;
}

static void test_numbers_may_pass_32_bits(void **state)
{
    (void)state;
    send_and_take(a.ep, a.src_cq, b.ep, 0);
    send_and_take(b.ep, b.src_cq, a.ep, 0);
    jump(a.ep, b.ep);
    jump(b.ep, a.ep);
    for (uint32_t n = 1; n < 10 * DISTANCE; n++) {
        send_and_take(a.ep, a.src_cq, b.ep, n);
        send_and_take(b.ep, b.src_cq, a.ep, ~n);
    }
    assert_true(gnii_ep_find(a.ep)->smsg->acknowledged > 1ull << 32);
}

static void test_credits_are_counted_across_32_bits(void **state)
{
    uint64_t end_ns = emu_clock_ns() + MB_PATIENCE_NS;

    (void)state;
    send_and_take(a.ep, a.src_cq, b.ep, 0);
    jump(a.ep, b.ep);
    while (gnii_ep_find(a.ep)->smsg->sent < (1ull << 32) + DISTANCE) {
        uint32_t sent = 0;
        void *message = NULL;

        assert_true(emu_clock_ns() < end_ns);
        while (GNI_SmsgSend(a.ep, &sent, sizeof(sent), NULL, 0, 0) == GNI_RC_SUCCESS)
            sent++;
        assert_true(sent <= CREDITS);
        mb_drain(a.src_cq);
        for (uint32_t n = 0; n < sent; n++) {
            uint8_t tag = GNI_SMSG_ANY_TAG;

            assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
            assert_memory_equal(message, &n, sizeof(n));
            assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
        }
    }
}

static int start(void **state)
{
    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    gx_connect(&a, &b);
    mb_open(&box_a, a.nic, NULL, GNI_SMSG_TYPE_MBOX, CREDITS, 64, 0);
    mb_open(&box_b, b.nic, NULL, GNI_SMSG_TYPE_MBOX, CREDITS, 64, 0);
    assert_int_equal(GNI_SmsgInit(a.ep, &box_a.attr, &box_b.attr), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(b.ep, &box_b.attr, &box_a.attr), GNI_RC_SUCCESS);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    mb_close(&box_a);
    mb_close(&box_b);
    gx_close(&a);
    gx_close(&b);
    return 0;
}

static int start_server(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_numbers_may_pass_32_bits, start, stop),
        cmocka_unit_test_setup_teardown(test_credits_are_counted_across_32_bits, start, stop),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
