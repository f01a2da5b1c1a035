/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens at the granted limits: entries, descriptors, queues, lists, parts, indices.
 */
#include "tests/common/portals.h"

static ptl_ni_limits_t few = { .max_mes = 6,
                               .max_mds = 8,
                               .max_eqs = 3,
                               .max_ac_index = 1,
                               .max_pt_index = 4,
                               .max_md_iovecs = 3,
                               .max_me_list = 3,
                               .max_getput_md = 16 };

static ptl_md_t nothing(void)
{
    return px_md(NULL, 0, PTL_MD_OP_PUT, PTL_MD_THRESH_INF, PTL_EQ_NONE);
}

static void test_lists_are_no_longer_than_granted(void **state)
{
    ptl_handle_me_t me[3], out = 1;
    ptl_handle_md_t mdh = 2;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(PtlMEAttach(px_ni, 0, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[i]), PTL_OK);
    assert_int_equal(PtlMEAttach(px_ni, 0, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &out), PTL_ME_LIST_TOO_LONG);
    assert_int_equal(PtlMEInsert(me[1], px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out), PTL_ME_LIST_TOO_LONG);
    assert_int_equal(PtlMEMDPost(px_ni, me[1], px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, nothing(), PTL_RETAIN, &out,
                                 &mdh, PTL_EQ_NONE),
                     PTL_ME_LIST_TOO_LONG);
#if PX_CRAY
    assert_int_equal(
        PtlMEMDAttach(px_ni, 0, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, nothing(), PTL_RETAIN, &out, &mdh),
        PTL_ME_LIST_TOO_LONG);
    assert_int_equal(
        PtlMEMDInsert(me[1], px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, nothing(), PTL_RETAIN, &out, &mdh),
        PTL_ME_LIST_TOO_LONG);
#endif
    assert_int_equal(out, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(PtlMEUnlink(me[i]), PTL_OK);
}

static void test_entries_are_no_more_than_granted(void **state)
{
    ptl_handle_me_t me[5], out = 1; /* one is the fixture's */
    ptl_handle_md_t mdh = 2;
    ptl_pt_index_t pt;

    (void)state;
    for (int i = 0; i < 5; i++)
        assert_int_equal(PtlMEAttach(px_ni, (ptl_pt_index_t)i / 3, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[i]),
                         PTL_OK);
    assert_int_equal(PtlMEAttach(px_ni, 2, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out), PTL_NO_SPACE);
    assert_int_equal(PtlMEAttachAny(px_ni, &pt, px_anybody, 0, 0, PTL_RETAIN, &out), PTL_NO_SPACE);
    assert_int_equal(PtlMEInsert(me[4], px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out), PTL_NO_SPACE);
    assert_int_equal(PtlMEMDPost(px_ni, me[4], px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, nothing(), PTL_RETAIN, &out,
                                 &mdh, PTL_EQ_NONE),
                     PTL_NO_SPACE);
#if PX_CRAY
    assert_int_equal(
        PtlMEMDAttach(px_ni, 2, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, nothing(), PTL_RETAIN, &out, &mdh),
        PTL_NO_SPACE);
    assert_int_equal(
        PtlMEMDInsert(me[4], px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, nothing(), PTL_RETAIN, &out, &mdh),
        PTL_NO_SPACE);
#endif
    assert_int_equal(out, 1);
    assert_int_equal(PtlMEUnlink(me[2]), PTL_OK);
    assert_int_equal(PtlMEAttach(px_ni, 2, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[2]), PTL_OK);
    for (int i = 0; i < 5; i++)
        assert_int_equal(PtlMEUnlink(me[i]), PTL_OK);
}

static void test_descriptors_are_no_more_than_granted(void **state)
{
    ptl_handle_md_t md[6], out = 1; /* two are the fixture's */
    ptl_handle_me_t me, new_me = 2;

    (void)state;
    assert_int_equal(PtlMEAttach(px_ni, 0, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    for (int i = 0; i < 6; i++)
        md[i] = px_bind(nothing(), PTL_RETAIN);
    assert_int_equal(PtlMDBind(px_ni, nothing(), PTL_RETAIN, &out), PTL_NO_SPACE);
    assert_int_equal(PtlMDAttach(me, nothing(), PTL_RETAIN, &out), PTL_NO_SPACE);
    assert_int_equal(PtlMEMDPost(px_ni, me, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, nothing(), PTL_RETAIN, &new_me,
                                 &out, PTL_EQ_NONE),
                     PTL_NO_SPACE);
    assert_int_equal(out, 1);
    assert_int_equal(px_register(PTL_SR_MES_CUR), 2); /* no half of a combined call stays */
    for (int i = 0; i < 6; i++)
        assert_int_equal(PtlMDUnlink(md[i]), PTL_OK);
    assert_int_equal(PtlMDAttach(me, nothing(), PTL_RETAIN, &out), PTL_OK);
    assert_int_equal(PtlMEUnlink(me), PTL_OK);
}

static void test_queues_are_no_more_than_granted(void **state)
{
    ptl_handle_eq_t eq[2], out = 1; /* one is the fixture's */

    (void)state;
    for (int i = 0; i < 2; i++)
        eq[i] = px_eq(4);
    assert_int_equal(PtlEQAlloc(px_ni, 4, NULL, &out), PTL_NO_SPACE);
    assert_int_equal(out, 1);
    assert_int_equal(PtlEQFree(eq[0]), PTL_OK);
    assert_int_equal(PtlEQAlloc(px_ni, 1ull << 60, NULL, &out), PTL_NO_SPACE); /* absurd */
    assert_int_equal(PtlEQAlloc(px_ni, ~0ull, NULL, &out), PTL_NO_SPACE);
    eq[0] = px_eq(4);
    for (int i = 0; i < 2; i++)
        assert_int_equal(PtlEQFree(eq[i]), PTL_OK);
}

static void test_every_index_in_use(void **state)
{
    ptl_handle_me_t me[4], out = 1;
    ptl_pt_index_t pt = 99;

    (void)state;
    for (ptl_pt_index_t i = 0; i < 4; i++)
        assert_int_equal(PtlMEAttach(px_ni, i, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me[i]), PTL_OK);
    assert_int_equal(PtlMEAttachAny(px_ni, &pt, px_anybody, 0, 0, PTL_RETAIN, &out), PTL_PT_FULL);
    assert_int_equal(pt, 99);
    assert_int_equal(PtlMEUnlink(me[2]), PTL_OK);
    /* Was used, but there is none that never was. */
    assert_int_equal(PtlMEAttachAny(px_ni, &pt, px_anybody, 0, 0, PTL_RETAIN, &me[2]), PTL_OK);
    assert_int_equal(pt, 2);
    for (int i = 0; i < 4; i++)
        assert_int_equal(PtlMEUnlink(me[i]), PTL_OK);
    assert_int_equal(PtlMEAttach(px_ni, 5, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &out), PTL_PT_INDEX_INVALID);
}

static void test_parts_are_no_more_than_granted(void **state)
{
    static char memory[64];
    ptl_md_iovec_t parts[4];
    ptl_md_t md = px_md(parts, 4, PTL_MD_OP_PUT | PTL_MD_IOVEC, 1, PTL_EQ_NONE);
    ptl_handle_md_t mdh = 1;

    (void)state;
    for (int i = 0; i < 4; i++)
        parts[i] = (ptl_md_iovec_t){ .iov_base = memory + 16 * i, .iov_len = 16 };
    assert_int_equal(PtlMDBind(px_ni, md, PTL_RETAIN, &mdh), PTL_MD_ILLEGAL);
    md.length = 3;
    assert_int_equal(PtlMDBind(px_ni, md, PTL_RETAIN, &mdh), PTL_OK);
    md.length = 4;
    assert_int_equal(PtlMDUpdate(mdh, NULL, &md, PTL_EQ_NONE), PTL_MD_ILLEGAL);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
}

static void test_getputs_are_no_longer_than_granted(void **state)
{
    static char memory[64];
    ptl_handle_md_t get = px_bind(px_md(memory, 17, 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    ptl_handle_md_t put = px_bind(px_md(memory, 17, 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);

    (void)state;
    assert_int_equal(PtlGetPut(get, put, px_next, 0, 0, 0, 0, 0), PTL_MD_ILLEGAL);
#if PX_CRAY
    assert_int_equal(PtlGetPutRegion(get, 0, put, 0, 17, px_next, 0, 0, 0, 0, 0), PTL_MD_ILLEGAL);
    assert_int_equal(PtlGetPutRegion(get, 0, put, 0, 16, px_next, 0, 0, 0, 0, 0), PTL_OK);
#endif
    px_settle();
    assert_int_equal(PtlMDUnlink(get), PTL_OK);
    assert_int_equal(PtlMDUnlink(put), PTL_OK);
}

static void test_access_entries_are_no_more_than_granted(void **state)
{
    (void)state;
    assert_int_equal(PtlACEntry(px_ni, 1, px_anybody, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY), PTL_OK);
    assert_int_equal(PtlACEntry(px_ni, 2, px_anybody, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY),
                     PTL_AC_INDEX_INVALID);
    assert_int_equal(PtlACEntry(px_ni, 1, px_anybody, PTL_UID_ANY, PTL_JID_ANY, 5), PTL_PT_INDEX_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_are_no_longer_than_granted),
        cmocka_unit_test(test_entries_are_no_more_than_granted),
        cmocka_unit_test(test_descriptors_are_no_more_than_granted),
        cmocka_unit_test(test_queues_are_no_more_than_granted),
        cmocka_unit_test(test_every_index_in_use),
        cmocka_unit_test(test_parts_are_no_more_than_granted),
        cmocka_unit_test(test_getputs_are_no_longer_than_granted),
        cmocka_unit_test(test_access_entries_are_no_more_than_granted),
    };

    return px_run(tests, &few);
}
