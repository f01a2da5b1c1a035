/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of message layers of this project (libugni/src/smsg_now.h): what is delivered at once has no entry. On the
 * routed path, and in memory that cannot be mapped, they are like others.
 */
#include "libugni/src/smsg_now.h"
#include "tests/conformance/smsg.h"

static bool is_direct(void)
{
    const char *datapath = getenv("FX_DATAPATH");
    const char *memory = getenv("EMUNIC_MEMORY");

    return (!datapath || strcmp(datapath, "auto") == 0) && (!memory || strcmp(memory, "cma") != 0);
}

/* NOT_DONE is for the caller. */
static gni_return_t send_now(uint32_t number, bool *is_over)
{
    uint32_t data[3] = { number, ~number, number * 7 };
    const struct gnii_smsg_message message = { data, data + 1, 4, 8, number, 5, is_over };

    return gnii_smsg_send_now(a.ep, &message);
}

/* A credit may still be on its way back. */
static void send_now_soon(uint32_t number, bool *is_over)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    do
        rc = send_now(number, is_over);
    while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    assert_int_equal(rc, GNI_RC_SUCCESS);
}

static void expect_now(uint32_t number)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;
    uint32_t data[3];

    assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
    memcpy(data, message, sizeof(data));
    assert_int_equal(tag, 5);
    assert_int_equal(data[0], number);
    assert_int_equal(data[1], ~number);
    assert_int_equal(data[2], number * 7);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
}

static void test_what_is_over_has_no_entry(void **state)
{
    gni_cq_entry_t entry;
    unsigned n_over = 0;
    bool is_over;

    (void)state;
    for (uint32_t i = 0; i < 100; i++) {
        send_now_soon(i, &is_over);
        n_over += is_over;
        if (!is_over) {
            assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
            assert_int_equal(GNI_CQ_GET_MSG_ID(entry), i);
        }
        expect_now(i);
    }
    assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_NOT_DONE);
    /* The first ones follow the greeting, which emunic may still have. */
    assert_in_range(n_over, is_direct() ? 50 : 0, is_direct() ? 100 : 0);
}

/* The entries of others between them are those of these others. */
static void test_both_kinds_keep_their_order(void **state)
{
    gni_cq_entry_t entry;
    bool is_over;

    (void)state;
    for (uint32_t i = 0; i < 20; i++) {
        send_now_soon(1000 + i, &is_over);
        if (!is_over)
            assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(send_number_soon(a.ep, i), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_MSG_ID(entry), i);
        expect_now(1000 + i);
        expect_number(b.ep, i);
    }
    assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_NOT_DONE);
}

static void test_without_a_credit_it_is_not_sent(void **state)
{
    uint32_t n = 0;
    bool is_over;

    (void)state;
    while (send_now(n, &is_over) == GNI_RC_SUCCESS)
        n++;
    assert_int_equal(n, CREDITS);
    assert_false(is_over);
    for (uint32_t i = 0; i < n; i++)
        expect_now(i);
    expect_nothing(b.ep);
    send_now_soon(n, &is_over);
    expect_now(n);
}

static void test_a_handle_that_is_none_is_refused(void **state)
{
    bool is_over = true;
    const struct gnii_smsg_message message = { NULL, NULL, 0, 0, 0, 0, &is_over };

    (void)state;
    assert_int_equal(gnii_smsg_send_now(NULL, &message), GNI_RC_INVALID_PARAM);
    assert_false(is_over);
}

/* NOT_DONE is for the caller. */
static gni_return_t take_soon(uint8_t *to, uint32_t room_bytes, uint32_t *length_bytes, uint8_t *tag)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    do
        rc = gnii_smsg_take(b.ep, to, room_bytes, length_bytes, tag);
    while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    return rc;
}

static gni_return_t send_soon(void *text, uint32_t length_bytes, uint8_t tag)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_SmsgSendWTag(a.ep, text, length_bytes, NULL, 0, 1, tag)) == GNI_RC_NOT_DONE &&
           emu_clock_ns() < end_ns)
        sched_yield();
    return rc == GNI_RC_SUCCESS ? gx_next(a.src_cq, &entry) : rc;
}

static void test_take_copies_and_releases(void **state)
{
    uint8_t text[32] = "0123456789abcdef";
    uint8_t got[32];
    uint32_t length_bytes = 77;
    uint8_t tag = 0;

    (void)state;
    for (uint32_t i = 0; i < 10 * CREDITS; i++) { /* more than fit: each place comes back */
        uint32_t n = i % 17;

        memset(got, 0xee, sizeof(got));
        assert_int_equal(send_soon(text, n, (uint8_t)(i % 250)), GNI_RC_SUCCESS);
        assert_int_equal(take_soon(got, sizeof(got), &length_bytes, &tag), GNI_RC_SUCCESS);
        assert_int_equal(length_bytes, n);
        assert_int_equal(tag, i % 250);
        assert_memory_equal(got, text, n);
        assert_int_equal(got[n], 0xee);
    }
    assert_int_equal(gnii_smsg_take(b.ep, got, sizeof(got), &length_bytes, &tag), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_NOT_DONE);
}

static void test_take_leaves_what_is_too_long(void **state)
{
    uint8_t text[16] = "longer than room";
    uint8_t got[16];
    uint32_t length_bytes;
    uint8_t tag;

    (void)state;
    memset(got, 0xee, sizeof(got));
    assert_int_equal(send_soon(text, sizeof(text), 9), GNI_RC_SUCCESS);
    assert_int_equal(take_soon(got, 15, &length_bytes, &tag), GNI_RC_SIZE_ERROR);
    assert_int_equal(got[0], 0xee);
    assert_int_equal(take_soon(got, 16, &length_bytes, &tag), GNI_RC_SUCCESS);
    assert_memory_equal(got, text, sizeof(text));
    assert_int_equal(gnii_smsg_take(NULL, got, 16, &length_bytes, &tag), GNI_RC_INVALID_PARAM);
}

#define connected(name) cmocka_unit_test_setup_teardown(name, open_connection, close_connection)

int main(void)
{
    const struct CMUnitTest tests[] = {
        connected(test_what_is_over_has_no_entry),       connected(test_both_kinds_keep_their_order),
        connected(test_without_a_credit_it_is_not_sent), connected(test_take_copies_and_releases),
        connected(test_take_leaves_what_is_too_long),    cmocka_unit_test(test_a_handle_that_is_none_is_refused),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
