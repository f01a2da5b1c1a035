/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Match entries: order of the list, where they are put, what matches, what they say. Requests come from the previous
 * rank; which entry took one is told by its descriptor's user_ptr.
 */
#include "tests/common/portals.h"

#define PT 3

static ptl_handle_eq_t eq;
static ptl_handle_md_t empty; /* source of requests without data */

static int open_queue(void **state)
{
    (void)state;
    eq = px_eq(1024);
    empty = px_bind(px_md(NULL, 0, 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    px_barrier();
    return 0;
}

static int close_queue(void **state)
{
    (void)state;
    px_settle();
    px_nothing(eq);
    assert_int_equal(PtlMDUnlink(empty), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    return 0;
}

static ptl_handle_me_t attach(ptl_match_bits_t bits, ptl_ins_pos_t position)
{
    ptl_handle_me_t me;

    assert_int_equal(PtlMEAttach(px_ni, PT, px_anybody, bits, 0, PTL_RETAIN, position, &me), PTL_OK);
    return me;
}

static ptl_handle_me_t insert(ptl_handle_me_t base, ptl_match_bits_t bits, ptl_ins_pos_t position)
{
    ptl_handle_me_t me;

    assert_int_equal(PtlMEInsert(base, px_anybody, bits, 0, PTL_RETAIN, position, &me), PTL_OK);
    return me;
}

/* A descriptor for `threshold` puts of any length, called by a number. */
static ptl_handle_md_t equip(ptl_handle_me_t me, uintptr_t number, int threshold)
{
    ptl_md_t md = px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE, threshold, eq);
    ptl_handle_md_t mdh;

    md.user_ptr = (void *)number;
    assert_int_equal(PtlMDAttach(me, md, PTL_RETAIN, &mdh), PTL_OK);
    return mdh;
}

static void request(ptl_match_bits_t bits)
{
    assert_int_equal(PtlPut(empty, PX_NO_ACK, px_next, PT, 0, bits, 0, 0), PTL_OK);
}

/* The number of the descriptor that took the next one. */
static int taken_by(void)
{
    return (int)(uintptr_t)px_take_kind(eq, PTL_EVENT_PUT_END).md.user_ptr;
}

static void unlink_all(const ptl_handle_me_t *me, size_t n)
{
    px_settle();
    for (size_t i = 0; i < n; i++)
        assert_int_equal(PtlMEUnlink(me[i]), PTL_OK);
}

static void test_list_order_is_what_the_calls_say(void **state)
{
    ptl_handle_me_t me[6];

    (void)state;
    me[2] = attach(7, PTL_INS_AFTER);         /* 2 */
    me[1] = attach(7, PTL_INS_BEFORE);        /* 1 2 */
    me[4] = attach(7, PTL_INS_AFTER);         /* 1 2 4 */
    me[3] = insert(me[4], 7, PTL_INS_BEFORE); /* 1 2 3 4 */
    me[5] = insert(me[4], 7, PTL_INS_AFTER);  /* 1 2 3 4 5 */
    me[0] = insert(me[1], 7, PTL_INS_BEFORE); /* 0 1 2 3 4 5 */
    for (int i = 5; i >= 0; i--)
        equip(me[i], (uintptr_t)i, 1); /* each takes one */
    px_barrier();
    for (int i = 0; i < 6; i++)
        request(7);
    for (int i = 0; i < 6; i++)
        assert_int_equal(taken_by(), i);
    unlink_all(me, 6);
}

static void test_an_entry_without_descriptor_keeps_its_place(void **state)
{
    ptl_handle_me_t mark = attach(0, PTL_INS_AFTER), behind, before;

    (void)state;
    assert_int_equal(PtlMEAttach(px_ni, PT, px_anybody, 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &behind), PTL_OK);
    equip(behind, 9, PTL_MD_THRESH_INF);
    px_barrier();
    request(0);
    assert_int_equal(taken_by(), 9);
    before = insert(mark, 0, PTL_INS_BEFORE);
    equip(before, 1, PTL_MD_THRESH_INF);
    px_settle();
    request(0);
    assert_int_equal(taken_by(), 1);
    px_settle();
    assert_int_equal(PtlMEUnlink(before), PTL_OK);
    px_barrier();
    request(0);
    assert_int_equal(taken_by(), 9);
    px_settle();
    equip(mark, 5, 1); /* now it has one */
    px_barrier();
    request(0);
    assert_int_equal(taken_by(), 5);
    unlink_all((ptl_handle_me_t[]){ mark, behind }, 2);
}

static void test_bits_match_but_for_the_ignored(void **state)
{
    static const struct {
        ptl_match_bits_t bits, ignore;
    } criteria[] = {
        { 0x1000000000000001ull, 0 },
        { 0x1000000000000002ull, 0xfull },
        { 0x8000000000000000ull, 0x7fffffffffffffffull },
        { 0, ~0ull },
    };
    static const struct {
        ptl_match_bits_t bits;
        int by;
    } requests[] = {
        { 0x1000000000000001ull, 0 },
        { 0x1000000000000002ull, 1 },
        { 0x100000000000000full, 1 },
        { 0x1000000000000011ull, 3 },
        { 0x8000000000000000ull, 2 },
        { 0xffffffffffffffffull, 2 },
        { 0, 3 },
    };
    ptl_handle_me_t me[4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            PtlMEAttach(px_ni, PT, px_anybody, criteria[i].bits, criteria[i].ignore, PTL_RETAIN, PTL_INS_AFTER, &me[i]),
            PTL_OK);
        equip(me[i], (uintptr_t)i, PTL_MD_THRESH_INF);
    }
    px_barrier();
    for (size_t i = 0; i < COUNT_OF(requests); i++)
        request(requests[i].bits);
    for (size_t i = 0; i < COUNT_OF(requests); i++)
        assert_int_equal(taken_by(), requests[i].by);
    unlink_all(me, 4);
}

static void test_node_and_process_match_each_or_any(void **state)
{
    const ptl_process_id_t ids[] = {
        { px_previous.nid + 1000, px_previous.pid },           /* nobody */
        { px_previous.nid, (ptl_pid_t)(px_previous.pid ^ 1) }, /* nobody that sends here */
        { PTL_NID_ANY, (ptl_pid_t)(px_previous.pid ^ 1) },
        { px_previous.nid + 1000, PTL_PID_ANY },
        { px_previous.nid, px_previous.pid },
        { px_previous.nid, PTL_PID_ANY },
        { PTL_NID_ANY, px_previous.pid },
        { PTL_NID_ANY, PTL_PID_ANY },
    };
    ptl_handle_me_t me[COUNT_OF(ids)];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        assert_int_equal(PtlMEAttach(px_ni, PT, ids[i], 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[i]), PTL_OK);
        equip(me[i], i, 1);
    }
    px_barrier();
    for (int i = 0; i < 4; i++)
        request(0);
    for (int i = 4; i < 8; i++)
        assert_int_equal(taken_by(), i);
    unlink_all(me, COUNT_OF(me));
}

/* Portal indices have lists of their own. */
static void test_lists_are_apart(void **state)
{
    ptl_handle_me_t me[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(PtlMEAttach(px_ni, PT + i, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[i]), PTL_OK);
        equip(me[i], i, PTL_MD_THRESH_INF);
    }
    px_barrier();
    assert_int_equal(PtlPut(empty, PX_NO_ACK, px_next, PT + 1, 0, 0, 0, 0), PTL_OK);
    assert_int_equal(PtlPut(empty, PX_NO_ACK, px_next, PT, 0, 0, 0, 0), PTL_OK);
    assert_int_equal(taken_by(), 1);
    assert_int_equal(taken_by(), 0);
    unlink_all(me, 2);
}

/* What the descriptor does not accept goes on to the next entry. */
static void test_refused_requests_fall_through(void **state)
{
    static char memory[64];
    ptl_md_t contents[] = {
        px_md(memory, 64, PTL_MD_OP_GET, PTL_MD_THRESH_INF, eq),                       /* no put */
        px_md(memory, 64, PTL_MD_OP_PUT, 0, eq),                                       /* inactive */
        px_md(memory, 15, PTL_MD_OP_PUT, PTL_MD_THRESH_INF, eq),                       /* too short */
        px_md(memory, 64, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE, PTL_MD_THRESH_INF, eq),     /* max_size 8 */
        px_md(memory, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF, eq), /* beyond the end */
        px_md(memory, 8, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE, PTL_MD_THRESH_INF, eq),
        px_md(memory, 64, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, eq),
    };
    ptl_handle_md_t source = px_bind(px_md(memory, 16, 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    ptl_handle_me_t me[COUNT_OF(contents)];
    ptl_handle_md_t mdh;

    (void)state;
    contents[3].max_size = 8;
    for (size_t i = 0; i < COUNT_OF(contents); i++) {
        me[i] = attach(0, PTL_INS_AFTER);
        contents[i].user_ptr = (void *)i;
        assert_int_equal(PtlMDAttach(me[i], contents[i], PTL_RETAIN, &mdh), PTL_OK);
    }
    px_barrier();
    assert_int_equal(PtlPut(source, PX_NO_ACK, px_next, PT, 0, 0, 9, 0), PTL_OK);
    assert_int_equal(taken_by(), 6);
    unlink_all(me, COUNT_OF(me));
    assert_int_equal(PtlMDUnlink(source), PTL_OK);
}

static void test_unlinking_an_entry_takes_its_descriptor(void **state)
{
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

    (void)state;
    for (int unlink = 0; unlink < 2; unlink++) {
        me = attach(1, PTL_INS_AFTER);
        assert_int_equal(PtlMDAttach(me, px_md(NULL, 0, PTL_MD_OP_PUT, 1, eq), unlink ? PTL_UNLINK : PTL_RETAIN, &mdh),
                         PTL_OK);
        assert_int_equal(PtlMEUnlink(me), PTL_OK);
        assert_int_equal(PtlMEUnlink(me), PTL_ME_INVALID);
        assert_int_equal(PtlMDUnlink(mdh), PTL_MD_INVALID);
    }
    px_nothing(eq); /* without a word */
    assert_int_equal(PtlMEUnlink(PTL_INVALID_HANDLE), PTL_ME_INVALID);
}

/* With PTL_UNLINK the entry goes with its descriptor, by either's own end. */
static void test_unlinking_a_descriptor_takes_its_entry_if_asked(void **state)
{
    ptl_handle_me_t me[2];
    ptl_handle_md_t mdh;

    (void)state;
    for (int unlink = 0; unlink < 2; unlink++) {
        assert_int_equal(
            PtlMEAttach(px_ni, PT, px_anybody, 0, 0, unlink ? PTL_UNLINK : PTL_RETAIN, PTL_INS_AFTER, &me[unlink]),
            PTL_OK);
        mdh = equip(me[unlink], 1, 1);
        assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    }
    assert_int_equal(PtlMEUnlink(me[1]), PTL_ME_INVALID);
    equip(me[0], 2, 1); /* empty: takes another */
    px_barrier();
    request(0);
    assert_int_equal(taken_by(), 2);
    unlink_all(me, 1);
}

/* An inactive one goes as well: who posts receives in vain does not pile up entries. */
static void test_inactive_descriptors_take_their_entries_too(void **state)
{
    ptl_handle_me_t me;

    (void)state;
    assert_int_equal(PtlMEAttach(px_ni, PT, px_anybody, 0, 0, PTL_UNLINK, PTL_INS_AFTER, &me), PTL_OK);
    assert_int_equal(PtlMDUnlink(equip(me, 1, 0)), PTL_OK);
    assert_int_equal(PtlMEUnlink(me), PTL_ME_INVALID);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(PT)), 0);
}

static void test_an_unused_index_is_found(void **state)
{
    ptl_pt_index_t first = 99, second = 99;
    ptl_handle_me_t me[3];

    (void)state;
    assert_int_equal(PtlMEAttachAny(px_ni, &first, px_anybody, 5, 0, PTL_RETAIN, &me[0]), PTL_OK);
    assert_int_equal(PtlMEAttachAny(px_ni, &second, px_anybody, 5, 0, PTL_RETAIN, &me[1]), PTL_OK);
    assert_true(first < second && second <= (ptl_pt_index_t)px_limits.max_pt_index);
    assert_int_not_equal(first, PT); /* was used */
    assert_int_equal(PtlMEUnlink(me[1]), PTL_OK);
    assert_int_equal(PtlMEAttachAny(px_ni, &second, px_anybody, 5, 0, PTL_RETAIN, &me[1]), PTL_OK);
    equip(me[0], 1, 1);
    px_barrier();
    assert_int_equal(PtlPut(empty, PX_NO_ACK, px_next, first, 0, 5, 0, 0), PTL_OK);
    assert_int_equal(taken_by(), 1);
    assert_int_equal(PtlMEAttachAny(px_ni, NULL, px_anybody, 0, 0, PTL_RETAIN, &me[2]), PTL_SEGV);
    assert_int_equal(PtlMEAttachAny(px_ni, &first, px_anybody, 0, 0, PTL_RETAIN, NULL), PTL_SEGV);
    assert_int_equal(PtlMEAttachAny(PTL_INVALID_HANDLE, &first, px_anybody, 0, 0, PTL_RETAIN, &me[2]), PTL_NI_INVALID);
    unlink_all(me, 2);
}

static void test_bad_arguments(void **state)
{
    const ptl_pt_index_t beyond = (ptl_pt_index_t)px_limits.max_pt_index + 1;
    ptl_handle_me_t me = attach(0, PTL_INS_AFTER), out = 77;

    (void)state;
    assert_int_equal(PtlMEAttach(PTL_INVALID_HANDLE, 0, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out),
                     PTL_NI_INVALID);
    assert_int_equal(PtlMEAttach(px_ni, beyond, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out),
                     PTL_PT_INDEX_INVALID);
    assert_int_equal(PtlMEAttach(px_ni, PTL_PT_INDEX_ANY, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out),
                     PTL_PT_INDEX_INVALID);
    assert_int_equal(PtlMEAttach(px_ni, 0, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL), PTL_SEGV);
    assert_int_equal(PtlMEInsert(PTL_INVALID_HANDLE, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out),
                     PTL_ME_INVALID);
    assert_int_equal(PtlMEInsert(me, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, NULL), PTL_SEGV);
    assert_int_equal(out, 77);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(PT)), 1);
    assert_int_equal(PtlMEUnlink(me), PTL_OK);
    assert_int_equal(PtlMEInsert(me, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out), PTL_ME_INVALID);
}

/* Lists change at both ends and in the middle while requests come; each is taken by exactly one. */
static void test_lists_change_while_requests_come(void **state)
{
    enum { ROUNDS = 300, EXTRA = 4 };
    ptl_handle_me_t catcher, extra[EXTRA];

    (void)state;
    assert_int_equal(PtlMEAttach(px_ni, PT, px_anybody, 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &catcher), PTL_OK);
    equip(catcher, 1, PTL_MD_THRESH_INF);
    px_barrier();
    for (int i = 0; i < ROUNDS; i++) {
        request((ptl_match_bits_t)i);
        for (int k = 0; k < EXTRA; k++)
            extra[k] = insert(catcher, ~0ull, k % 2 ? PTL_INS_AFTER : PTL_INS_BEFORE);
        for (int k = 0; k < EXTRA; k++)
            assert_int_equal(PtlMEUnlink(extra[(k + i) % EXTRA]), PTL_OK);
        if (i % 100 == 99) {
            for (int n = 0; n < 100; n++)
                assert_true(px_take_kind(eq, PTL_EVENT_PUT_END).match_bits == (ptl_match_bits_t)(i - 99 + n));
        }
    }
    unlink_all(&catcher, 1);
}

static void expect_taker(ptl_match_bits_t bits, int by)
{
    request(bits);
    assert_int_equal(taken_by(), by);
}

/* Longer than an interface had entries in earlier versions. */
static void test_a_list_of_a_hundred_thousand(void **state)
{
    static ptl_handle_me_t me[100000];
    const int n = COUNT_OF(me);
    ptl_handle_me_t any[2], twin;

    (void)state;
    for (int i = 0; i < n; i++) {
        me[i] = attach((ptl_match_bits_t)i, PTL_INS_AFTER);
        equip(me[i], (uintptr_t)i, PTL_MD_THRESH_INF);
    }
    px_barrier();
    for (int i = 0; i < n; i += 9999)
        expect_taker((ptl_match_bits_t)i, i);
    px_settle();
    assert_int_equal(PtlMEAttach(px_ni, PT, px_anybody, 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &any[0]), PTL_OK);
    assert_int_equal(PtlMEInsert(me[n / 2], px_anybody, 0, ~0ull, PTL_RETAIN, PTL_INS_BEFORE, &any[1]), PTL_OK);
    twin = insert(me[1], (ptl_match_bits_t)(n / 2 - 1), PTL_INS_BEFORE);
    equip(any[0], 1000000, PTL_MD_THRESH_INF);
    equip(any[1], 1000001, PTL_MD_THRESH_INF);
    equip(twin, 1000002, 1);
    px_barrier();
    expect_taker((ptl_match_bits_t)n - 1, 1000001);
    expect_taker((ptl_match_bits_t)n / 2 - 1, 1000002);
    expect_taker((ptl_match_bits_t)n / 2 - 1, n / 2 - 1);
    expect_taker(0, 0);
    px_settle();
    assert_int_equal(PtlMEUnlink(any[1]), PTL_OK);
    assert_int_equal(PtlMEUnlink(me[n - 2]), PTL_OK);
    px_barrier();
    expect_taker((ptl_match_bits_t)n - 1, n - 1);
    expect_taker((ptl_match_bits_t)n - 2, 1000000);
    unlink_all(&twin, 1);
    assert_int_equal(PtlMEUnlink(any[0]), PTL_OK);
    me[n - 2] = me[n - 1];
    for (int i = 0; i < n - 1; i++)
        assert_int_equal(PtlMEUnlink(me[i]), PTL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define queue_test(name) cmocka_unit_test_setup_teardown(name, open_queue, close_queue)
        queue_test(test_list_order_is_what_the_calls_say),
        queue_test(test_an_entry_without_descriptor_keeps_its_place),
        queue_test(test_bits_match_but_for_the_ignored),
        queue_test(test_node_and_process_match_each_or_any),
        queue_test(test_lists_are_apart),
        queue_test(test_refused_requests_fall_through),
        queue_test(test_unlinking_an_entry_takes_its_descriptor),
        queue_test(test_unlinking_a_descriptor_takes_its_entry_if_asked),
        queue_test(test_inactive_descriptors_take_their_entries_too),
        queue_test(test_an_unused_index_is_found),
        queue_test(test_bad_arguments),
        queue_test(test_lists_change_while_requests_come),
        queue_test(test_a_list_of_a_hundred_thousand),
    };

    return px_run(tests, NULL);
}
