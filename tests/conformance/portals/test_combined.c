/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that make an entry and its descriptor in one step.
 */
#include "tests/common/portals.h"

#define PT 12

static ptl_handle_eq_t eq;
static ptl_handle_md_t empty;

static int open_queue(void **state)
{
    (void)state;
    eq = px_eq(64);
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

static ptl_md_t numbered(uintptr_t number)
{
    ptl_md_t md = px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, 1, eq);

    md.user_ptr = (void *)number;
    return md;
}

static void request(void)
{
    assert_int_equal(PtlPut(empty, PX_NO_ACK, px_next, PT, 0, 1, 0, 0), PTL_OK);
}

static int taken_by(void)
{
    int number = (int)(uintptr_t)px_take_kind(eq, PTL_EVENT_PUT_END).md.user_ptr;

    if (!PX_CRAY)
        px_take_kind(eq, PTL_EVENT_UNLINK);
    return number;
}

static ptl_handle_me_t mark(void)
{
    ptl_handle_me_t me;

    assert_int_equal(PtlMEAttach(px_ni, PT, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    return me;
}

static int post(ptl_handle_me_t base, ptl_ins_pos_t pos, uintptr_t number, ptl_handle_eq_t testq)
{
    ptl_handle_me_t me = PTL_INVALID_HANDLE;
    ptl_handle_md_t mdh = PTL_INVALID_HANDLE;

    return PtlMEMDPost(px_ni, base, px_anybody, 1, 0, PTL_UNLINK, pos, numbered(number), PTL_UNLINK, &me, &mdh, testq);
}

static void test_posting_beside_an_entry(void **state)
{
    ptl_handle_me_t base = mark();

    (void)state;
    /* covers: PtlMEMDPost: PTL_OK */
    assert_int_equal(post(base, PTL_INS_BEFORE, 1, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(post(base, PTL_INS_AFTER, 3, eq), PTL_OK);
    assert_int_equal(post(base, PTL_INS_BEFORE, 2, eq), PTL_OK);
    assert_int_equal(post(base, PTL_INS_AFTER, 4, eq), PTL_OK); /* 1 2 (mark) 4 3 */
    px_barrier();
    for (int i = 0; i < 4; i++)
        request();
    assert_int_equal(taken_by(), 1);
    assert_int_equal(taken_by(), 2);
    assert_int_equal(taken_by(), 4);
    assert_int_equal(taken_by(), 3);
    px_settle();
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(PT)), 1);
    assert_int_equal(PtlMEUnlink(base), PTL_OK);
}

/* All or nothing: refused, there is no entry and no descriptor. */
static void test_posting_is_refused_by_an_unread_event(void **state)
{
    ptl_handle_me_t base = mark();
    ptl_handle_eq_t always_empty = px_eq(1);
    struct px_entry catcher = px_entry(PT, 1, 0, PTL_RETAIN, numbered(9), PTL_RETAIN);
    ptl_sr_value_t mds = px_register(PTL_SR_MDS_CUR);

    (void)state;
    px_barrier();
    request();
    px_settle();
    /* covers: PtlMEMDPost: PTL_MD_NO_UPDATE */
    assert_int_equal(post(base, PTL_INS_BEFORE, 1, eq), PTL_MD_NO_UPDATE);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(PT)), 2);
    assert_true(px_register(PTL_SR_MDS_CUR) == mds);
    assert_int_equal(post(base, PTL_INS_BEFORE, 2, always_empty), PTL_OK); /* true whatever comes */
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(PT)), 3);
    px_take_kind(eq, PTL_EVENT_PUT_END);
    assert_int_equal(post(base, PTL_INS_BEFORE, 3, eq), PTL_OK);
    px_barrier();
    request();
    request();
    assert_int_equal(taken_by(), 2);
    assert_int_equal(taken_by(), 3);
    px_settle();
    assert_int_equal(PtlMEUnlink(base), PTL_OK);
    assert_int_equal(PtlMEUnlink(catcher.me), PTL_OK);
    assert_int_equal(PtlEQFree(always_empty), PTL_OK);
}

static void test_posting_bad_arguments(void **state)
{
    ptl_handle_me_t base = mark(), me = 1;
    ptl_handle_md_t mdh = 2;

    (void)state;
#define POST(ni, base, me, mdh, testq)                                                                                 \
    PtlMEMDPost(ni, base, px_anybody, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, numbered(1), PTL_UNLINK, me, mdh, testq)
    /* covers: PtlMEMDPost: PTL_NI_INVALID, PTL_ME_INVALID, PTL_EQ_INVALID, PTL_SEGV */
    assert_int_equal(POST(PTL_INVALID_HANDLE, base, &me, &mdh, PTL_EQ_NONE), PTL_NI_INVALID);
    assert_int_equal(POST(px_ni, PTL_INVALID_HANDLE, &me, &mdh, PTL_EQ_NONE), PTL_ME_INVALID);
    assert_int_equal(POST(px_ni, base, &me, &mdh, PTL_INVALID_HANDLE), PTL_EQ_INVALID);
    assert_int_equal(POST(px_ni, base, NULL, &mdh, PTL_EQ_NONE), PTL_SEGV);
    assert_int_equal(POST(px_ni, base, &me, NULL, PTL_EQ_NONE), PTL_SEGV);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(PT)), 1);
    assert_int_equal(PtlMEUnlink(base), PTL_OK);
    assert_int_equal(POST(px_ni, base, &me, &mdh, PTL_EQ_NONE), PTL_ME_INVALID);
}

#if PX_CRAY
static void test_entry_and_descriptor_in_one(void **state)
{
    ptl_handle_me_t me[4];
    ptl_handle_md_t mdh[4];

    (void)state;
    assert_int_equal(
        PtlMEMDAttach(px_ni, PT, px_anybody, 1, 0, PTL_UNLINK, PTL_INS_AFTER, numbered(2), PTL_UNLINK, &me[2], &mdh[2]),
        PTL_OK);
    assert_int_equal(PtlMEMDAttach(px_ni, PT, px_anybody, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, numbered(0), PTL_UNLINK,
                                   &me[0], &mdh[0]),
                     PTL_OK);
    assert_int_equal(
        PtlMEMDInsert(me[2], px_anybody, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, numbered(1), PTL_UNLINK, &me[1], &mdh[1]),
        PTL_OK);
    assert_int_equal(
        PtlMEMDInsert(me[2], px_anybody, 1, 0, PTL_UNLINK, PTL_INS_AFTER, numbered(3), PTL_UNLINK, &me[3], &mdh[3]),
        PTL_OK);
    px_barrier();
    for (int i = 0; i < 4; i++)
        request();
    for (int i = 0; i < 4; i++)
        assert_int_equal(taken_by(), i);
    px_settle();
    for (int i = 0; i < 4; i++) {
        assert_int_equal(PtlMEUnlink(me[i]), PTL_ME_INVALID);
        assert_int_equal(PtlMDUnlink(mdh[i]), PTL_MD_INVALID);
    }
}

static void test_one_step_bad_arguments(void **state)
{
    const ptl_pt_index_t beyond = (ptl_pt_index_t)px_limits.max_pt_index + 1;
    ptl_handle_me_t base = mark(), me = 1;
    ptl_handle_md_t mdh = 2;

    (void)state;
#define ATTACH(ni, pt, me, mdh)                                                                                        \
    PtlMEMDAttach(ni, pt, px_anybody, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, numbered(1), PTL_UNLINK, me, mdh)
#define INSERT(base, me, mdh)                                                                                          \
    PtlMEMDInsert(base, px_anybody, 1, 0, PTL_UNLINK, PTL_INS_BEFORE, numbered(1), PTL_UNLINK, me, mdh)
    /* covers: PtlMEMDAttach: PTL_NI_INVALID, PTL_PT_INDEX_INVALID, PTL_SEGV */
    /* covers: PtlMEMDInsert: PTL_ME_INVALID, PTL_SEGV */
    assert_int_equal(ATTACH(PTL_INVALID_HANDLE, PT, &me, &mdh), PTL_NI_INVALID);
    assert_int_equal(ATTACH(px_ni, beyond, &me, &mdh), PTL_PT_INDEX_INVALID);
    assert_int_equal(ATTACH(px_ni, PT, NULL, &mdh), PTL_SEGV);
    assert_int_equal(ATTACH(px_ni, PT, &me, NULL), PTL_SEGV);
    assert_int_equal(INSERT(PTL_INVALID_HANDLE, &me, &mdh), PTL_ME_INVALID);
    assert_int_equal(INSERT(base, NULL, &mdh), PTL_SEGV);
    assert_int_equal(INSERT(base, &me, NULL), PTL_SEGV);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(PT)), 1);
    assert_int_equal(PtlMEUnlink(base), PTL_OK);
    assert_int_equal(INSERT(base, &me, &mdh), PTL_ME_INVALID);
}

static void test_handles_are_compared(void **state)
{
    ptl_handle_me_t one = mark(), two = mark();

    (void)state;
    assert_int_equal(PtlHandleIsEqual(one, one), 1);
    assert_int_equal(PtlHandleIsEqual(one, two), 0);
    assert_int_equal(PtlHandleIsEqual(PTL_INVALID_HANDLE, PTL_EQ_NONE), 0);
    assert_int_equal(PtlHandleIsEqual(PTL_EQ_NONE, PTL_EQ_NONE), 1);
    assert_int_equal(PtlMEUnlink(one), PTL_OK);
    assert_int_equal(PtlMEUnlink(two), PTL_OK);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#define combined_test(name) cmocka_unit_test_setup_teardown(name, open_queue, close_queue)
        combined_test(test_posting_beside_an_entry),
        combined_test(test_posting_is_refused_by_an_unread_event),
        combined_test(test_posting_bad_arguments),
#if PX_CRAY
        combined_test(test_entry_and_descriptor_in_one),
        combined_test(test_one_step_bad_arguments),
        combined_test(test_handles_are_compared),
#endif
    };

    return px_run(tests, NULL);
}
