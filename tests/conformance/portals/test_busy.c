/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a target sees while a long message is on its way: its descriptor is in use, its queue has an event promised. Two
 * processes are needed; the message is so long that its owner can look in between, and is sent again until it did.
 */
#include "tests/common/portals.h"

#include <sys/mman.h>

#define PT    14
#define BYTES ((size_t)96 << 20)
#define TRIES 40

static uint8_t *memory;

static int map_memory(void **state)
{
    (void)state;
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return memory == MAP_FAILED ? -1 : 0;
}

static int unmap_memory(void **state)
{
    (void)state;
    return munmap(memory, BYTES);
}

/* Only ranks 0 and 1 take part: 0 sends, 1 looks. Ends when rank 1 says that it has seen what it looks for. */
static bool again(bool is_seen, int tries)
{
    uint64_t *all = calloc((size_t)px_size, sizeof(*all));
    bool goes_on;

    px_exchange(is_seen, all);
    goes_on = all[1 % px_size] == 0 && tries < TRIES;
    free(all);
    return goes_on;
}

static void send_long(void)
{
    ptl_handle_eq_t eq = px_eq(8);
    ptl_handle_md_t mdh = px_bind(px_md(memory, BYTES, PTL_MD_EVENT_START_DISABLE, 1, eq), PTL_RETAIN);

    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_id_of(1), PT, 0, 0, 0, 0), PTL_OK);
    px_take_kind(eq, PTL_EVENT_SEND_END);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* covers: PtlMEUnlink: PTL_ME_IN_USE */
/* covers: PtlMDUnlink: PTL_MD_IN_USE */
static void test_descriptors_are_in_use_while_data_comes(void **state)
{
    bool is_me_seen = false, is_md_seen = false, is_last;
    int tries = 0;

    (void)state;
    if (px_size < 2)
        return;
    do {
        ptl_handle_eq_t eq = px_eq(8);
        struct px_entry e = { 0 };

        if (px_rank == 1)
            e = px_entry(PT, 0, 0, PTL_UNLINK, px_md(memory, BYTES, PTL_MD_OP_PUT, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
        px_barrier();
        if (px_rank == 0)
            send_long();
        if (px_rank == 1) {
            int rc;

            px_take_kind(eq, PTL_EVENT_PUT_START);
            if (tries % 2 == 0) {
                rc = PtlMEUnlink(e.me);
                is_me_seen = is_me_seen || rc == PTL_ME_IN_USE;
                /* It ends without any event being taken. */
                while (rc == PTL_ME_IN_USE)
                    rc = PtlMEUnlink(e.me);
            } else {
                rc = PtlMDUnlink(e.mdh);
                is_md_seen = is_md_seen || rc == PTL_MD_IN_USE;
                while (rc == PTL_MD_IN_USE)
                    rc = PtlMDUnlink(e.mdh);
            }
            assert_int_equal(rc, PTL_OK);
            px_take_kind(eq, PTL_EVENT_PUT_END);
        }
        is_last = !again(is_me_seen && is_md_seen, ++tries);
        assert_int_equal(PtlEQFree(eq), PTL_OK);
    } while (!is_last);
    if (px_rank == 1)
        assert_true(is_me_seen && is_md_seen);
}

/* START was taken, END is not there yet: promised. What refuses ends in an event. */
/* covers: PtlMDUpdate, PtlMEMDPost: PTL_MD_NO_UPDATE */
static void test_a_promised_event_prevents_an_update(void **state)
{
    bool is_update_seen = false, is_post_seen = false, is_last;
    int tries = 0;

    (void)state;
    if (px_size < 2)
        return;
    do {
        ptl_handle_eq_t eq = px_eq(8);
        ptl_handle_md_t receive = px_bind(px_md(NULL, 0, PTL_MD_OP_PUT, 0, PTL_EQ_NONE), PTL_RETAIN), mdh;
        ptl_md_t active = px_md(NULL, 0, PTL_MD_OP_PUT, 1, PTL_EQ_NONE);
        struct px_entry e = { 0 };
        ptl_handle_me_t me;
        ptl_event_t event;

        if (px_rank == 1)
            e = px_entry(PT, 0, 0, PTL_UNLINK, px_md(memory, BYTES, PTL_MD_OP_PUT, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
        px_barrier();
        if (px_rank == 0)
            send_long();
        if (px_rank == 1) {
            bool is_post = tries % 2 == 1;
            int rc;

            px_take_kind(eq, PTL_EVENT_PUT_START);
            rc = is_post ? PtlMEMDPost(px_ni, e.me, px_anybody, 9, 0, PTL_UNLINK, PTL_INS_BEFORE, active, PTL_UNLINK,
                                       &me, &mdh, eq) :
                           PtlMDUpdate(receive, NULL, &active, eq);
            if (rc == PTL_MD_NO_UPDATE) {
                if (PtlEQGet(eq, &event) == PTL_EQ_EMPTY) { /* by a promise alone */
                    is_post_seen = is_post_seen || is_post;
                    is_update_seen = is_update_seen || !is_post;
                    event = px_take(eq);
                }
                assert_int_equal(event.type, PTL_EVENT_PUT_END);
                rc = is_post ? PtlMEMDPost(px_ni, e.me, px_anybody, 9, 0, PTL_UNLINK, PTL_INS_BEFORE, active,
                                           PTL_UNLINK, &me, &mdh, eq) :
                               PtlMDUpdate(receive, NULL, &active, eq);
                assert_int_equal(rc, PTL_OK);
                if (is_post)
                    assert_int_equal(PtlMEUnlink(me), PTL_OK);
            } else {
                fail_msg("granted although an event was promised, or there: %s", ptl_err_str[rc]);
            }
            assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
        }
        is_last = !again(is_update_seen && is_post_seen, ++tries);
        assert_int_equal(PtlMDUnlink(receive), PTL_OK);
        assert_int_equal(PtlEQFree(eq), PTL_OK);
    } while (!is_last);
    if (px_rank == 1)
        assert_true(is_update_seen && is_post_seen);
}

/* The data of many long messages to one descriptor lies apart, and each is whole when it is told. */
static void test_long_messages_do_not_mix(void **state)
{
    enum { PIECE = 3 << 20 };
    ptl_handle_eq_t eq = px_eq(64), local_eq = px_eq(64);
    struct px_entry e = { 0 };
    ptl_handle_md_t mdh;

    (void)state;
    px_barrier();
    px_fill(memory, PIECE, (uint64_t)px_rank + 5);
    mdh = px_bind(px_md(memory, PIECE, PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, local_eq), PTL_RETAIN);
    if (px_rank == 0)
        e = px_entry(
            PT, 0, 0, PTL_RETAIN,
            px_md(memory + PIECE, BYTES - PIECE, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, eq),
            PTL_RETAIN);
    px_barrier();
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_id_of(0), PT, 0, 0, 0, (ptl_hdr_data_t)px_rank), PTL_OK);
    for (int i = 0; px_rank == 0 && i < 2 * px_size; i++) {
        ptl_event_t event = px_take_kind(eq, PTL_EVENT_PUT_END);

        assert_true(event.offset % PIECE == 0 && event.mlength == PIECE);
        px_same((uint8_t *)event.md.start + event.offset, PIECE, event.hdr_data + 5);
    }
    for (int i = 0; i < 4; i++)
        px_take(local_eq);
    px_settle();
    if (px_rank == 0)
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(PtlEQFree(local_eq), PTL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define busy_test(name) cmocka_unit_test_setup_teardown(name, map_memory, unmap_memory)
        busy_test(test_descriptors_are_in_use_while_data_comes),
        busy_test(test_a_promised_event_prevents_an_update),
        busy_test(test_long_messages_do_not_mix),
    };

    return px_run(tests, NULL);
}
