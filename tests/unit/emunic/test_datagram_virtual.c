/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams in virtual time: who is complete when which message has arrived. The test is the model.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/control.h"
#include "tests/common/datagram_world.h"

enum { A, B, C };

#define EP        1u
#define WILD_EP   2u
#define SOMEWHERE 77u

static struct datagram_world *world;

static int set_up(void **state)
{
    (void)state;
    world = datagram_world_create(CROWD_NONE, 0);
    datagram_world_set_virtual(world);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    datagram_world_destroy(world);
    return 0;
}

/* Its only byte is the port's number. */
static void request(uint32_t port, uint32_t ep, uint32_t to)
{
    struct emu_msg_datagram wanted = { .ep = ep,
                                       .remote_nid = to,
                                       .flags = to == EMU_NID_NONE ? EMU_DATAGRAM_WILDCARD : 0,
                                       .length_bytes = 1,
                                       .room_bytes = EMU_DATAGRAM_MAX,
                                       .data = { (uint8_t)port } };

    assert_int_equal(datagram_world_ask(world, port, EMU_MSG_DATAGRAM_POST, &wanted), 0);
}

static void post(uint32_t port, uint32_t ep, uint32_t to)
{
    request(port, ep, to);
    datagram_world_send(world, port, ep);
}

/* Without taking it. */
static bool is_pending(uint32_t port, uint32_t ep)
{
    struct emu_msg_datagram asked = { .ep = ep };

    assert_int_equal(datagram_world_ask(world, port, EMU_MSG_DATAGRAM_PROBE, &asked) == 0, asked.state != 0);
    return asked.state == 0 || asked.ep != ep;
}

static void expect_from(uint32_t port, uint32_t ep, uint32_t from)
{
    struct emu_msg_datagram asked = { .ep = ep };

    assert_int_equal(datagram_world_ask(world, port, EMU_MSG_DATAGRAM_TEST, &asked), 0);
    assert_int_equal(asked.state, EMU_DATAGRAM_COMPLETED);
    assert_int_equal(asked.remote_nid, from);
    assert_int_equal(asked.length_bytes, 1);
    assert_int_equal(asked.data[0], from);
}

static int cancel(uint32_t port, uint32_t ep)
{
    struct emu_msg_datagram asked = { .ep = ep, .flags = EMU_DATAGRAM_ANY_ID };

    return datagram_world_ask(world, port, EMU_MSG_DATAGRAM_CANCEL, &asked);
}

static void test_nothing_sets_out_before_its_command(void **state)
{
    (void)state;
    request(A, EP, B);
    assert_false(datagram_world_arrive(world, A, B));
    datagram_world_send(world, A, SOMEWHERE);
    assert_false(datagram_world_arrive(world, A, B));
    datagram_world_send(world, A, EP);
    assert_true(datagram_world_arrive(world, A, B));
    datagram_world_send(world, A, EP);
    assert_false(datagram_world_arrive(world, A, B));
}

static void test_wildcard_ends_when_one_arrives_and_answers_it(void **state)
{
    (void)state;
    post(B, WILD_EP, EMU_NID_NONE);
    post(A, EP, B);
    assert_true(is_pending(B, WILD_EP));
    assert_true(datagram_world_arrive(world, A, B));
    expect_from(B, WILD_EP, A);
    assert_true(is_pending(A, EP));
    assert_true(datagram_world_arrive(world, B, A));
    expect_from(A, EP, B);
}

static void test_wildcard_whose_command_is_to_come_meets_nobody(void **state)
{
    (void)state;
    request(B, WILD_EP, EMU_NID_NONE);
    post(A, EP, B);
    assert_true(datagram_world_arrive(world, A, B));
    assert_true(is_pending(B, WILD_EP));
    datagram_world_send(world, B, WILD_EP);
    assert_true(datagram_world_arrive(world, B, A));
    expect_from(A, EP, B);
}

static void test_what_waits_at_the_node_is_copied_within_it(void **state)
{
    (void)state;
    post(A, EP, B);
    assert_true(datagram_world_arrive(world, A, B));
    post(B, WILD_EP, EMU_NID_NONE);
    assert_true(is_pending(B, WILD_EP));
    assert_true(datagram_world_arrive(world, B, B));
    expect_from(B, WILD_EP, A);
    assert_true(datagram_world_arrive(world, B, A));
    expect_from(A, EP, B);
}

static void test_wildcard_has_the_one_that_came_first(void **state)
{
    (void)state;
    post(C, EP, B);
    post(A, EP, B);
    assert_true(datagram_world_arrive(world, A, B));
    assert_true(datagram_world_arrive(world, C, B));
    post(B, WILD_EP, EMU_NID_NONE);
    assert_true(datagram_world_arrive(world, B, B));
    expect_from(B, WILD_EP, A);
    assert_false(datagram_world_arrive(world, B, C));
}

static void test_two_that_cross_need_one_message_each(void **state)
{
    (void)state;
    post(A, EP, B);
    post(B, EP, A);
    assert_true(datagram_world_arrive(world, A, B));
    expect_from(B, EP, A);
    assert_true(is_pending(A, EP));
    assert_true(datagram_world_arrive(world, B, A));
    expect_from(A, EP, B);
    assert_false(datagram_world_arrive(world, A, B));
    assert_false(datagram_world_arrive(world, B, A));
}

static void test_one_that_faces_what_has_arrived_is_copied_at_once(void **state)
{
    (void)state;
    post(A, EP, B);
    assert_true(datagram_world_arrive(world, A, B));
    post(B, EP, A);
    assert_true(datagram_world_arrive(world, B, B));
    expect_from(B, EP, A);
    assert_true(datagram_world_arrive(world, B, A));
    expect_from(A, EP, B);
}

static void test_who_cancels_a_pair_comes_too_late(void **state)
{
    (void)state;
    post(A, EP, B);
    assert_true(datagram_world_arrive(world, A, B));
    post(B, EP, A);
    assert_int_equal(cancel(A, EP), EMU_OUTCOME_NO_MATCH);
    expect_from(A, EP, B);
    assert_true(datagram_world_arrive(world, B, B));
    expect_from(B, EP, A);
    assert_true(datagram_world_arrive(world, B, A));
}

static void test_what_was_cancelled_on_its_way_meets_nobody(void **state)
{
    (void)state;
    post(B, WILD_EP, EMU_NID_NONE);
    post(A, EP, B);
    assert_int_equal(cancel(A, EP), 0);
    assert_true(datagram_world_arrive(world, A, B));
    assert_true(is_pending(B, WILD_EP));
}

/* Its data have been taken over when it paired. */
static void test_port_that_ends_leaves_its_partner_complete(void **state)
{
    (void)state;
    post(A, EP, B);
    assert_true(datagram_world_arrive(world, A, B));
    post(B, EP, A);
    datagram_world_renew_port(world, B);
    assert_true(is_pending(A, EP));
    assert_true(datagram_world_arrive(world, B, A));
    expect_from(A, EP, B);
    assert_true(datagram_world_arrive(world, B, B));
}

static void test_port_that_ends_takes_what_is_on_its_way(void **state)
{
    (void)state;
    post(B, WILD_EP, EMU_NID_NONE);
    post(A, EP, B);
    datagram_world_renew_port(world, A);
    assert_true(datagram_world_arrive(world, A, B));
    assert_true(is_pending(B, WILD_EP));
}

static void test_port_may_be_its_own_peer(void **state)
{
    (void)state;
    post(A, EP, A);
    assert_true(datagram_world_arrive(world, A, A));
    assert_true(is_pending(A, EP));
    post(A, WILD_EP, EMU_NID_NONE);
    while (datagram_world_arrive(world, A, A))
        ;
    expect_from(A, EP, A);
    expect_from(A, WILD_EP, A);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_sets_out_before_its_command, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wildcard_ends_when_one_arrives_and_answers_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wildcard_whose_command_is_to_come_meets_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_waits_at_the_node_is_copied_within_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wildcard_has_the_one_that_came_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_two_that_cross_need_one_message_each, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_one_that_faces_what_has_arrived_is_copied_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_who_cancels_a_pair_comes_too_late, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_what_was_cancelled_on_its_way_meets_nobody, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_port_that_ends_leaves_its_partner_complete, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_port_that_ends_takes_what_is_on_its_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_port_may_be_its_own_peer, set_up, tear_down),
    };

    return cmocka_run_group_tests_name("datagrams in virtual time", tests, NULL, NULL) != 0;
}
