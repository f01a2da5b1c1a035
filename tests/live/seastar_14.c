/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEASTAR-14: a long put followed by a short one has its start event first; the end events may swap, and each says what
 * became of its own message. A transfer that fails has an unsuccessful end event. One process on a private emunic,
 * which carries the messages out in slices.
 */
#include "tests/common/portals.h"

#include "tests/common/fixture.h"

#define PT   15
#define LONG (16 << 20)

static struct fx fx;
static ptl_handle_eq_t eq, target_eq;
static uint8_t *memory, *target;

static int set_up(void **state)
{
    char text[16];
    int n;

    (void)state;
    fx_start(&fx, &(struct fx_options){ .machine = "seastar", .n_ranks = 2 });
    fx_set_node(fx.nids[0]);
    snprintf(text, sizeof(text), "%u", fx.ptag);
    setenv("EMUNIC_PTAG", text, 1);
    snprintf(text, sizeof(text), "%u", fx.cookie);
    setenv("EMUNIC_COOKIE", text, 1);
    fx_set_routed(&fx, true);
    memory = malloc(LONG);
    target = calloc(2, LONG);
    assert_int_equal(PtlInit(&n), PTL_OK);
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &px_limits, &px_ni), PTL_OK);
    assert_int_equal(PtlGetId(px_ni, &px_self), PTL_OK);
    eq = px_eq(64);
    target_eq = px_eq(64);
    px_entry(
        PT, 0, ~0ull, PTL_RETAIN,
        px_md(target, 2 * LONG, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF, target_eq),
        PTL_RETAIN);
    return memory && target ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    PtlFini();
    free(memory);
    free(target);
    fx_stop(&fx);
    return 0;
}

static ptl_handle_md_t source(ptl_size_t length)
{
    return px_bind(px_md(memory, length, 0, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
}

static void drop(ptl_handle_md_t mdh)
{
    while (PtlMDUnlink(mdh) == PTL_MD_IN_USE)
        ;
}

static void test_starts_come_in_order_and_each_end_tells_its_own(void **state)
{
    ptl_handle_md_t large = source(LONG);
    ptl_handle_md_t small = source(64);

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        ptl_hdr_data_t started[2];
        unsigned n_started = 0;
        unsigned ended = 0;

        px_fill(memory, LONG, i);
        memset(target, 0, (size_t)2 * LONG);
        assert_int_equal(PtlPut(large, PX_NO_ACK, px_self, PT, 0, 0, 0, 1), PTL_OK);
        assert_int_equal(PtlPut(small, PX_NO_ACK, px_self, PT, 0, 0, LONG, 2), PTL_OK);
        while (ended != 3) {
            ptl_event_t event = px_take(target_eq);

            assert_int_equal(event.ni_fail_type, PTL_NI_OK);
            if (event.type == PTL_EVENT_PUT_START) {
                assert_true(n_started < 2);
                started[n_started++] = event.hdr_data;
                continue;
            }
            assert_int_equal(event.type, PTL_EVENT_PUT_END);
            assert_int_equal(ended & (unsigned)event.hdr_data, 0);
            ended |= (unsigned)event.hdr_data;
            if (event.hdr_data == 1)
                px_same(target, LONG, i); /* the end of a message is the end of its data, whatever comes when */
            else
                px_same(target + LONG, 64, i);
        }
        assert_int_equal(n_started, 2);
        assert_true(started[0] == 1 && started[1] == 2);
        for (unsigned k = 0; k < 4; k++)
            assert_int_equal(px_take(eq).ni_fail_type, PTL_NI_OK);
    }
    px_nothing(eq);
    px_nothing(target_eq);
    drop(large);
    drop(small);
}

/* The fabric loses a message: its initiator alone is told, by the end; the one behind it arrives. */
static void test_a_transfer_that_fails_has_an_unsuccessful_end(void **state)
{
    ptl_handle_md_t mdh = source(1 << 20);
    ptl_event_t event;

    (void)state;
    fx_add_fault(&fx, "class=ptl-put action=drop nth=1");
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_self, PT, 0, 0, 0, 3), PTL_OK);
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_self, PT, 0, 0, 0, 4), PTL_OK);
    event = px_take_kind(eq, PTL_EVENT_SEND_START);
    assert_int_equal(event.ni_fail_type, PTL_NI_OK); /* the start has succeeded */
    assert_true(event.hdr_data == 3);
    for (unsigned i = 0; i < 3; i++) {
        event = px_take(eq);
        if (event.type == PTL_EVENT_SEND_END)
            assert_int_equal(event.ni_fail_type == PTL_NI_OK, event.hdr_data == 4);
    }
    assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_START).hdr_data == 4);
    assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_END).hdr_data == 4);
    px_nothing(target_eq);
    fx_clear_faults(&fx);
    drop(mdh);
}

/* Memory that goes while a descriptor names it: both ends have begun, and both are told of the failure. */
static void test_a_target_without_memory_has_an_unsuccessful_end(void **state)
{
    ptl_handle_md_t mdh = source(64);
    struct px_entry e;
    ptl_event_t event;

    (void)state;
    e = px_entry(PT - 1, 0, 0, PTL_RETAIN,
                 px_md((void *)(uintptr_t)4096, 64, PTL_MD_OP_PUT, PTL_MD_THRESH_INF, target_eq), PTL_RETAIN);
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_self, PT - 1, 0, 0, 0, 5), PTL_OK);
    assert_int_equal(px_take_kind(target_eq, PTL_EVENT_PUT_START).ni_fail_type, PTL_NI_OK);
    event = px_take(target_eq);
    assert_int_equal(event.type, PTL_EVENT_PUT_END);
    assert_int_not_equal(event.ni_fail_type, PTL_NI_OK);
    px_take_kind(eq, PTL_EVENT_SEND_START);
    event = px_take(eq);
    assert_int_equal(event.type, PTL_EVENT_SEND_END);
    assert_int_not_equal(event.ni_fail_type, PTL_NI_OK);
    drop(mdh);
    while (PtlMEUnlink(e.me) == PTL_ME_IN_USE)
        ;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts_come_in_order_and_each_end_tells_its_own),
        cmocka_unit_test(test_a_transfer_that_fails_has_an_unsuccessful_end),
        cmocka_unit_test(test_a_target_without_memory_has_an_unsuccessful_end),
    };

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
