/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gets and swaps: data, events with all their fields, options of either side. Each rank fetches from the next one and
 * serves the previous one.
 */
#include "tests/common/portals.h"

#define PT    7
#define BYTES 5000

static ptl_handle_eq_t local_eq, target_eq;
static uint8_t local[BYTES + 64], target[BYTES];

static int open_both(void **state)
{
    (void)state;
    local_eq = px_eq(256);
    target_eq = px_eq(256);
    px_fill(target, BYTES, (uint64_t)px_rank);
    memset(local, 0xee, sizeof(local));
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    px_settle();
    px_nothing(local_eq);
    px_nothing(target_eq);
    assert_int_equal(PtlEQFree(local_eq), PTL_OK);
    assert_int_equal(PtlEQFree(target_eq), PTL_OK);
    return 0;
}

static uint64_t seed_of_next(void)
{
    return (uint64_t)((px_rank + 1) % px_size);
}

static struct px_entry serve(unsigned options, int threshold)
{
    return px_entry(PT, PX_BITS, 0, PTL_RETAIN, px_md(target, BYTES, PTL_MD_OP_GET | options, threshold, target_eq),
                    PTL_RETAIN);
}

/* SEND events of a get: CRAY has them. They count for the threshold. */
static int take_sends(struct px_want want)
{
    if (!PX_CRAY)
        return want.threshold;
    px_expect_both(local_eq, want);
    return want.threshold > 0 ? want.threshold - 1 : want.threshold;
}

/* events: get: SEND_START, SEND_END, REPLY_START, REPLY_END, GET_START, GET_END */
static void test_a_get_has_its_events(void **state)
{
    struct px_entry e = serve(0, 4);
    ptl_md_t md = px_md(local, BYTES, 0, 5, local_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);
    int left;

    (void)state;
    px_barrier();
    assert_int_equal(PtlGet(mdh, px_next, PT, 0, PX_BITS, 1234), PTL_OK);
    left = take_sends((struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, BYTES, BYTES, 0, 0, mdh, md, 5 });
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_REPLY_START, px_next, PT, PX_BITS, BYTES, BYTES, 0, 0, mdh, md, left });
    px_expect_both(target_eq, (struct px_want){ PTL_EVENT_GET_START, px_previous, PT, PX_BITS, BYTES, BYTES, 0, 0,
                                                e.mdh, e.md, 4 });
    px_same(local, BYTES, seed_of_next());
    px_all(local + BYTES, 64, 0xee);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: get of a region: SEND_START, SEND_END, REPLY_START, REPLY_END, GET_START, GET_END */
static void test_a_region_is_told_by_its_local_offset(void **state)
{
    struct px_entry e = serve(PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF);
    ptl_md_t md = px_md(local, BYTES, 0, PTL_MD_THRESH_INF, local_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);

    (void)state;
    px_barrier();
    assert_int_equal(PtlGetRegion(mdh, 600, 300, px_next, PT, 0, PX_BITS, 2000), PTL_OK);
    take_sends((struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 300, 300, 600, 0, mdh, md, -1 });
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_REPLY_START, px_next, PT, PX_BITS, 300, 300, 600, 0, mdh, md, -1 });
    px_expect_both(target_eq, (struct px_want){ PTL_EVENT_GET_START, px_previous, PT, PX_BITS, 300, 300, 2000, 0, e.mdh,
                                                e.md, -1 });
    px_settle();
    px_fill(target, BYTES, seed_of_next());
    assert_memory_equal(local + 600, target + 2000, 300);
    px_all(local, 600, 0xee);
    px_all(local + 900, 100, 0xee);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: get + local START_DISABLE: no SEND_START, SEND_END, no REPLY_START, REPLY_END */
/* events: get + local END_DISABLE: SEND_START, no SEND_END, REPLY_START, no REPLY_END */
/* events: get + local both disabled: no SEND_START, no SEND_END, no REPLY_START, no REPLY_END */
/* events: get + target START_DISABLE: no GET_START, GET_END */
/* events: get + target END_DISABLE: GET_START, no GET_END */
/* events: get + target both disabled: no GET_START, no GET_END */
static void test_start_and_end_can_be_disabled(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 16; which++) {
        unsigned on_local = (which & 1 ? PTL_MD_EVENT_START_DISABLE : 0) | (which & 2 ? PTL_MD_EVENT_END_DISABLE : 0);
        unsigned on_target = (which & 4 ? PTL_MD_EVENT_START_DISABLE : 0) | (which & 8 ? PTL_MD_EVENT_END_DISABLE : 0);
        struct px_entry e = serve(on_target, PTL_MD_THRESH_INF);
        ptl_handle_md_t mdh = px_bind(px_md(local, 16, on_local, PTL_MD_THRESH_INF, local_eq), PTL_RETAIN);

        memset(local, 0xee, 16);
        px_barrier();
        assert_int_equal(PtlGet(mdh, px_next, PT, 0, PX_BITS, 0), PTL_OK);
        if (PX_CRAY && !(which & 1))
            px_take_kind(local_eq, PTL_EVENT_SEND_START);
        if (PX_CRAY && !(which & 2))
            px_take_kind(local_eq, PTL_EVENT_SEND_END);
        if (!(which & 1))
            px_take_kind(local_eq, PTL_EVENT_REPLY_START);
        if (!(which & 2))
            px_take_kind(local_eq, PTL_EVENT_REPLY_END);
        px_settle();
        if (!(which & 4))
            px_take_kind(target_eq, PTL_EVENT_GET_START);
        if (!(which & 8))
            px_take_kind(target_eq, PTL_EVENT_GET_END);
        px_nothing(local_eq);
        px_nothing(target_eq);
        px_same(local, 16, seed_of_next());
        assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    }
}

/* events: get + target TRUNCATE: GET_START, GET_END, REPLY_START, REPLY_END */
static void test_a_short_target_gives_what_it_has(void **state)
{
    struct px_entry e =
        px_entry(PT, PX_BITS, 0, PTL_RETAIN,
                 px_md(target, 60, PTL_MD_OP_GET | PTL_MD_TRUNCATE, PTL_MD_THRESH_INF, target_eq), PTL_RETAIN);
    ptl_md_t md = px_md(local, 100, 0, PTL_MD_THRESH_INF, local_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);

    (void)state;
    px_barrier();
    assert_int_equal(PtlGet(mdh, px_next, PT, 0, PX_BITS, 0), PTL_OK);
    take_sends((struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 100, 100, 0, 0, mdh, md, -1 });
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_REPLY_START, px_next, PT, PX_BITS, 100, 60, 0, 0, mdh, md, -1 });
    px_expect_both(target_eq,
                   (struct px_want){ PTL_EVENT_GET_START, px_previous, PT, PX_BITS, 100, 60, 0, 0, e.mdh, e.md, -1 });
    px_same(local, 60, seed_of_next());
    px_all(local + 60, 40, 0xee);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: get + IOVEC: REPLY_START, REPLY_END, GET_START, GET_END */
static void test_scattered_memory_on_both_sides(void **state)
{
    ptl_md_iovec_t out[3] = { { target, 100 }, { target + 300, 1 }, { target + 500, 399 } };
    ptl_md_iovec_t in[3] = { { local + 7, 3 }, { NULL, 0 }, { local + 1000, 497 } };
    uint8_t flat_out[500], flat_in[500];
    struct px_entry e = px_entry(PT, PX_BITS, 0, PTL_RETAIN,
                                 px_md(out, 3, PTL_MD_OP_GET | PTL_MD_IOVEC, PTL_MD_THRESH_INF, target_eq), PTL_RETAIN);
    ptl_md_t md = px_md(in, 3, PTL_MD_IOVEC, PTL_MD_THRESH_INF, local_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);

    (void)state;
    px_barrier();
    assert_int_equal(PtlGet(mdh, px_next, PT, 0, PX_BITS, 0), PTL_OK);
    take_sends((struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 500, 500, 0, 0, mdh, md, -1 });
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_REPLY_START, px_next, PT, PX_BITS, 500, 500, 0, 0, mdh, md, -1 });
    px_expect_both(target_eq,
                   (struct px_want){ PTL_EVENT_GET_START, px_previous, PT, PX_BITS, 500, 500, 0, 0, e.mdh, e.md, -1 });
    px_settle();
    px_fill(target, BYTES, seed_of_next());
    memcpy(flat_out, target, 100);
    memcpy(flat_out + 100, target + 300, 1);
    memcpy(flat_out + 101, target + 500, 399);
    memcpy(flat_in, local + 7, 3);
    memcpy(flat_in + 3, local + 1000, 497);
    assert_memory_equal(flat_in, flat_out, 500);
    px_all(local + 10, 990, 0xee);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* The threshold of a get: two with CRAY, one with REF. With CRAY one is enough for the reply to come, too. */
static void test_the_usual_thresholds_are_enough(void **state)
{
    static const int thresholds[] = { 1, 2 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct px_entry e = serve(PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, 1);
        ptl_md_t now = { 0 };
        ptl_handle_md_t mdh =
            px_bind(px_md(local, 100, PTL_MD_EVENT_START_DISABLE, thresholds[i], local_eq), PTL_RETAIN);

        memset(local, 0, 100);
        px_barrier();
        assert_int_equal(PtlGet(mdh, px_next, PT, 0, PX_BITS, 0), PTL_OK);
        if (PX_CRAY)
            px_take_kind(local_eq, PTL_EVENT_SEND_END);
        px_take_kind(local_eq, PTL_EVENT_REPLY_END);
        px_same(local, 100, seed_of_next());
        assert_int_equal(PtlMDUpdate(mdh, &now, NULL, PTL_EQ_NONE), PTL_OK);
        assert_int_equal(now.threshold, PX_CRAY || i == 0 ? 0 : 1);
        px_settle();
        assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    }
}

/* Local memory takes a reply whatever its options. */
static void test_a_reply_needs_no_options(void **state)
{
    struct px_entry e = serve(PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, PTL_MD_THRESH_INF);
    ptl_md_t md =
        px_md(local, 64,
              PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE | PTL_MD_EVENT_START_DISABLE,
              PTL_MD_THRESH_INF, local_eq);
    struct px_entry into;

    (void)state;
    md.max_size = 1;
    into = px_entry(PT + 1, 0, 0, PTL_RETAIN, md, PTL_RETAIN); /* attached as well */
    px_barrier();
    assert_int_equal(PtlGet(into.mdh, px_next, PT, 0, PX_BITS, 0), PTL_OK);
    if (PX_CRAY)
        px_take_kind(local_eq, PTL_EVENT_SEND_END);
    px_take_kind(local_eq, PTL_EVENT_REPLY_END);
    px_same(local, 64, seed_of_next());
    px_settle();
    assert_int_equal(PtlMEUnlink(into.me), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

static void test_every_size_arrives(void **state)
{
    static const size_t sizes[] = { 0, 1, 7, 9, 12, 13, 64, 65, 1023, 1025, 4097, 65535, 262144, 1048583, 4194301 };
    size_t most = sizes[COUNT_OF(sizes) - 1];
    uint8_t *from = malloc(most + 3), *to = malloc(most + 5 + 64);

    (void)state;
    assert_non_null(from);
    assert_non_null(to);
    px_fill(from + 3, most, (uint64_t)px_rank + 7);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        ptl_handle_md_t mdh = px_bind(px_md(to + 5, sizes[i], PTL_MD_EVENT_START_DISABLE, 2, local_eq), PTL_RETAIN);
        struct px_entry e =
            px_entry(PT, 0, 0, PTL_UNLINK,
                     px_md(from + 3, sizes[i], PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE, 1, target_eq), PTL_RETAIN);

        memset(to, 0xdd, sizes[i] + 5 + 64);
        px_barrier();
        assert_int_equal(PtlGet(mdh, px_next, PT, 0, 0, 0), PTL_OK);
        if (PX_CRAY)
            px_take_kind(local_eq, PTL_EVENT_SEND_END);
        assert_true(px_take_kind(local_eq, PTL_EVENT_REPLY_END).mlength == sizes[i]);
        px_same(to + 5, sizes[i], seed_of_next() + 7);
        px_all(to, 5, 0xdd);
        px_all(to + 5 + sizes[i], 64, 0xdd);
        px_take_kind(target_eq, PTL_EVENT_GET_END);
        assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
        assert_int_equal(PtlMDUnlink(e.mdh), PTL_OK);
        px_barrier();
    }
    free(from);
    free(to);
}

/* events: get from oneself: SEND_START, SEND_END, REPLY_START, REPLY_END, GET_START, GET_END */
static void test_gets_from_oneself(void **state)
{
    struct px_entry e = serve(0, 1);
    ptl_handle_md_t mdh = px_bind(px_md(local, 100, 0, 2, local_eq), PTL_RETAIN);

    (void)state;
    assert_int_equal(PtlGet(mdh, px_self, PT, 0, PX_BITS, 0), PTL_OK);
    if (PX_CRAY) {
        px_take_kind(local_eq, PTL_EVENT_SEND_START);
        px_take_kind(local_eq, PTL_EVENT_SEND_END);
    }
    px_take_kind(local_eq, PTL_EVENT_REPLY_START);
    px_take_kind(local_eq, PTL_EVENT_REPLY_END);
    px_take_kind(target_eq, PTL_EVENT_GET_START);
    px_take_kind(target_eq, PTL_EVENT_GET_END);
    px_same(local, 100, (uint64_t)px_rank);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

#if PX_CRAY
static void getput_regions_are_refused(ptl_handle_md_t mdh, ptl_handle_md_t inactive)
{
    const struct {
        const char *name;
        ptl_handle_md_t get;
        ptl_size_t get_offset;
        ptl_handle_md_t put;
        ptl_size_t put_offset;
        ptl_size_t length;
        int rc;
    } rows[] = {
        { "no descriptor to get", PTL_INVALID_HANDLE, 0, mdh, 0, 1, PTL_MD_INVALID },
        { "inactive descriptor to put", mdh, 0, inactive, 0, 1, PTL_MD_INVALID },
        { "inactive before the range", mdh, 60, inactive, 60, 8, PTL_MD_INVALID },
        { "range to get", mdh, 60, mdh, 0, 8, PTL_MD_ILLEGAL },
        { "range to put", mdh, 0, mdh, 60, 8, PTL_MD_ILLEGAL },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name,
                         PtlGetPutRegion(rows[i].get, rows[i].get_offset, rows[i].put, rows[i].put_offset,
                                         rows[i].length, px_next, PT, 0, 0, 0, 0),
                         rows[i].rc);
}
#endif

/* covers: PtlGetPutRegion: PTL_MD_INVALID, PTL_MD_ILLEGAL */
static void test_bad_arguments(void **state)
{
    ptl_handle_md_t mdh = px_bind(px_md(local, 64, 0, PTL_MD_THRESH_INF, local_eq), PTL_RETAIN);
    ptl_handle_md_t inactive = px_bind(px_md(local, 64, 0, 0, local_eq), PTL_RETAIN);
    ptl_handle_md_t longer = px_bind(px_md(local, 65 + 64, 0, PTL_MD_THRESH_INF, local_eq), PTL_RETAIN);
    ptl_handle_md_t shorter = px_bind(px_md(local, 8, 0, PTL_MD_THRESH_INF, local_eq), PTL_RETAIN);
    const ptl_process_id_t bad[] = { { PTL_NID_ANY, px_next.pid }, { px_next.nid, PTL_PID_ANY }, px_anybody };

    (void)state;
    assert_int_equal(PtlGet(PTL_INVALID_HANDLE, px_next, PT, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGetRegion(PTL_INVALID_HANDLE, 0, 0, px_next, PT, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGet(inactive, px_next, PT, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGetRegion(inactive, 0, 1, px_next, PT, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGetRegion(inactive, 65, 1, px_next, PT, 0, 0, 0), PTL_MD_INVALID); /* whatever its range */
    assert_int_equal(PtlGetRegion(inactive, 0, 1, px_anybody, PT, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGetPut(PTL_INVALID_HANDLE, mdh, px_next, PT, 0, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGetPut(mdh, PTL_INVALID_HANDLE, px_next, PT, 0, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGetPut(inactive, mdh, px_next, PT, 0, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGetPut(mdh, inactive, px_next, PT, 0, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlGetRegion(mdh, 65, 0, px_next, PT, 0, 0, 0), PTL_MD_ILLEGAL);
    assert_int_equal(PtlGetRegion(mdh, 1, 64, px_next, PT, 0, 0, 0), PTL_MD_ILLEGAL);
    assert_int_equal(PtlGetRegion(mdh, ~0ull, 2, px_next, PT, 0, 0, 0), PTL_MD_ILLEGAL);
    assert_int_equal(PtlGetPut(longer, longer, px_next, PT, 0, 0, 0, 0), PTL_MD_ILLEGAL);
    assert_int_equal(PtlGetPut(shorter, mdh, px_next, PT, 0, 0, 0, 0), PTL_MD_ILLEGAL);
#if PX_CRAY
    getput_regions_are_refused(mdh, inactive);
    assert_int_equal(PtlMDMDCopy(PTL_INVALID_HANDLE, px_self, PT, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlMDMDCopy(inactive, px_self, PT, 0, 0, 0), PTL_MD_INVALID);
#endif
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(PtlGet(mdh, bad[i], PT, 0, 0, 0), PTL_PROCESS_INVALID);
        assert_int_equal(PtlGetRegion(mdh, 0, 1, bad[i], PT, 0, 0, 0), PTL_PROCESS_INVALID);
        assert_int_equal(PtlGetPut(mdh, mdh, bad[i], PT, 0, 0, 0, 0), PTL_PROCESS_INVALID);
#if PX_CRAY
        assert_int_equal(PtlGetPutRegion(mdh, 0, mdh, 0, 8, bad[i], PT, 0, 0, 0, 0), PTL_PROCESS_INVALID);
        assert_int_equal(PtlMDMDCopy(mdh, bad[i], PT, 0, 0, 0), PTL_PROCESS_INVALID);
#endif
    }
    px_nothing(local_eq);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMDUnlink(inactive), PTL_OK);
    assert_int_equal(PtlMDUnlink(longer), PTL_OK);
    assert_int_equal(PtlMDUnlink(shorter), PTL_OK);
}

/* ---- swaps ---- */

static struct px_entry exchange(unsigned options, ptl_size_t bytes, int threshold)
{
    return px_entry(PT, PX_BITS, 0, PTL_RETAIN,
                    px_md(target, bytes, PTL_MD_OP_GET | PTL_MD_OP_PUT | options, threshold, target_eq), PTL_RETAIN);
}

/* events: getput: SEND_START, SEND_END, REPLY_START, REPLY_END, GETPUT_START, GETPUT_END */
static void test_a_getput_has_six_events(void **state)
{
    static uint8_t out[64];
    struct px_entry e = exchange(PTL_MD_MANAGE_REMOTE, BYTES, 3);
    ptl_md_t md_get = px_md(local, 64, 0, 5, local_eq), md_put = px_md(out, 64, 0, 7, local_eq);
    ptl_handle_md_t get = px_bind(md_get, PTL_RETAIN), put = px_bind(md_put, PTL_RETAIN);

    (void)state;
    px_fill(out, 64, (uint64_t)px_rank + 50);
    px_barrier();
    assert_int_equal(PtlGetPut(get, put, px_next, PT, 0, PX_BITS, 128, PX_HDR), PTL_OK);
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 64, 64, 0, PX_HDR, put, md_put, 7 });
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_REPLY_START, px_next, PT, PX_BITS, 64, 64, 0, PX_HDR, get, md_get, 5 });
    px_expect_both(target_eq, (struct px_want){ PTL_EVENT_GETPUT_START, px_previous, PT, PX_BITS, 64, 64, 128, PX_HDR,
                                                e.mdh, e.md, 3 });
    px_settle();
    px_same(target + 128, 64, (uint64_t)((px_rank + px_size - 1) % px_size) + 50);
    px_same(target, 128, (uint64_t)px_rank);
    px_fill(target, BYTES, seed_of_next());
    assert_memory_equal(local, target + 128, 64);
    assert_int_equal(PtlMDUnlink(get), PTL_OK);
    assert_int_equal(PtlMDUnlink(put), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: getput + target START_DISABLE: no GETPUT_START, GETPUT_END */
/* events: getput + target END_DISABLE: GETPUT_START, no GETPUT_END */
/* events: getput + local both disabled: no SEND_START, no SEND_END, no REPLY_START, no REPLY_END */
static void test_getput_events_can_be_disabled(void **state)
{
    static const unsigned disabled[] = { PTL_MD_EVENT_START_DISABLE, PTL_MD_EVENT_END_DISABLE };
    unsigned both = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct px_entry e = exchange(disabled[i], 8, PTL_MD_THRESH_INF);
        ptl_handle_md_t mdh = px_bind(px_md(local, 8, both, PTL_MD_THRESH_INF, local_eq), PTL_RETAIN);

        px_barrier();
        assert_int_equal(PtlGetPut(mdh, mdh, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
        px_settle();
        px_nothing(local_eq);
        px_take_kind(target_eq, i == 0 ? PTL_EVENT_GETPUT_END : PTL_EVENT_GETPUT_START);
        px_nothing(target_eq);
        assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    }
}

/* One descriptor for both directions: it ends with what was in the target. */
static void test_a_swap_in_place(void **state)
{
    struct px_entry e = exchange(PTL_MD_EVENT_START_DISABLE, 32, 1);
    ptl_handle_md_t mdh = px_bind(px_md(local, 32, PTL_MD_EVENT_START_DISABLE, 2, local_eq), PTL_RETAIN);

    (void)state;
    px_fill(local, 32, (uint64_t)px_rank + 70);
    px_barrier();
    assert_int_equal(PtlGetPut(mdh, mdh, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
    px_take_kind(local_eq, PTL_EVENT_SEND_END);
    px_take_kind(local_eq, PTL_EVENT_REPLY_END);
    px_take_kind(target_eq, PTL_EVENT_GETPUT_END);
    px_same(local, 32, seed_of_next());
    px_same(target, 32, (uint64_t)((px_rank + px_size - 1) % px_size) + 70);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* A descriptor with only one of the two does not take it. */
static void test_a_swap_needs_both_operations(void **state)
{
    struct px_entry only_put =
        px_entry(PT, PX_BITS, 0, PTL_RETAIN, px_md(target, 8, PTL_MD_OP_PUT, -1, target_eq), PTL_RETAIN);
    struct px_entry only_get =
        px_entry(PT, PX_BITS, 0, PTL_RETAIN, px_md(target, 8, PTL_MD_OP_GET, -1, target_eq), PTL_RETAIN);
    struct px_entry both = exchange(PTL_MD_EVENT_START_DISABLE, 8, -1);
    ptl_handle_md_t mdh =
        px_bind(px_md(local, 8, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, -1, local_eq), PTL_RETAIN);

    (void)state;
    px_barrier();
    assert_int_equal(PtlGetPut(mdh, mdh, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
    assert_int_equal(px_take_kind(target_eq, PTL_EVENT_GETPUT_END).md_handle, both.mdh);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(only_put.me), PTL_OK);
    assert_int_equal(PtlMEUnlink(only_get.me), PTL_OK);
    assert_int_equal(PtlMEUnlink(both.me), PTL_OK);
}

/* A lock made of it: everybody takes it in rank 0's memory, changes an unprotected counter there, gives it back. */
static void test_swaps_make_a_lock(void **state)
{
    enum { TURNS = 25, FREE = 0, TAKEN = 1 };
    static uint64_t word, counter, mine, seen;
    ptl_handle_md_t swap =
        px_bind(px_md(&mine, 8, PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, local_eq), PTL_RETAIN);
    ptl_handle_md_t copy =
        px_bind(px_md(&seen, 8, PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, local_eq), PTL_RETAIN);
    const ptl_process_id_t home = px_id_of(0);
    ptl_handle_me_t me[2] = { 0, 0 };

    (void)state;
    word = counter = 0;
    if (px_rank == 0) {
        me[0] = px_entry(PT, 1, 0, PTL_RETAIN,
                         px_md(&word, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF,
                               PTL_EQ_NONE),
                         PTL_RETAIN)
                    .me;
        me[1] = px_entry(PT, 2, 0, PTL_RETAIN,
                         px_md(&counter, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF,
                               PTL_EQ_NONE),
                         PTL_RETAIN)
                    .me;
    }
    px_barrier();
    for (int turn = 0; turn < TURNS; turn++) {
        do {
            mine = TAKEN;
            assert_int_equal(PtlGetPut(swap, swap, home, PT, 0, 1, 0, 0), PTL_OK);
            px_take_kind(local_eq, PTL_EVENT_SEND_END);
            px_take_kind(local_eq, PTL_EVENT_REPLY_END);
        } while (mine != FREE);
        assert_int_equal(PtlGet(copy, home, PT, 0, 2, 0), PTL_OK);
        if (PX_CRAY)
            px_take_kind(local_eq, PTL_EVENT_SEND_END);
        px_take_kind(local_eq, PTL_EVENT_REPLY_END);
        seen++;
        assert_int_equal(PtlPut(copy, PTL_ACK_REQ, home, PT, 0, 2, 0, 0), PTL_OK);
        px_take_kind(local_eq, PTL_EVENT_SEND_END);
        px_take_kind(local_eq, PTL_EVENT_ACK);
        mine = FREE;
        assert_int_equal(PtlGetPut(swap, swap, home, PT, 0, 1, 0, 0), PTL_OK);
        px_take_kind(local_eq, PTL_EVENT_SEND_END);
        px_take_kind(local_eq, PTL_EVENT_REPLY_END);
        assert_int_equal(mine, TAKEN);
    }
    px_barrier();
    px_settle();
    if (px_rank == 0) {
        assert_int_equal(counter, TURNS * px_size);
        assert_int_equal(PtlMEUnlink(me[0]), PTL_OK);
        assert_int_equal(PtlMEUnlink(me[1]), PTL_OK);
    }
    assert_int_equal(PtlMDUnlink(swap), PTL_OK);
    assert_int_equal(PtlMDUnlink(copy), PTL_OK);
}

#if PX_CRAY
/* events: getput of a region: SEND_START, SEND_END, REPLY_START, REPLY_END, GETPUT_START, GETPUT_END */
static void test_parts_can_be_swapped(void **state)
{
    static uint8_t out[100];
    struct px_entry e = exchange(PTL_MD_MANAGE_REMOTE, BYTES, -1);
    ptl_md_t md_get = px_md(local, 100, 0, -1, local_eq), md_put = px_md(out, 100, 0, -1, local_eq);
    ptl_handle_md_t get = px_bind(md_get, PTL_RETAIN), put = px_bind(md_put, PTL_RETAIN);

    (void)state;
    px_fill(out, 100, (uint64_t)px_rank + 50);
    px_barrier();
    assert_int_equal(PtlGetPutRegion(get, 80, put, 10, 16, px_next, PT, 0, PX_BITS, 64, 5), PTL_OK);
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 16, 16, 10, 5, put, md_put, -1 });
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_REPLY_START, px_next, PT, PX_BITS, 16, 16, 80, 5, get, md_get, -1 });
    px_expect_both(target_eq, (struct px_want){ PTL_EVENT_GETPUT_START, px_previous, PT, PX_BITS, 16, 16, 64, 5, e.mdh,
                                                e.md, -1 });
    px_settle();
    px_fill(out, 100, (uint64_t)((px_rank + px_size - 1) % px_size) + 50);
    assert_memory_equal(target + 64, out + 10, 16);
    px_fill(target, BYTES, seed_of_next());
    assert_memory_equal(local + 80, target + 64, 16);
    px_all(local, 80, 0xee);
    px_all(local + 96, 64, 0xee);
    assert_int_equal(PtlMDUnlink(get), PTL_OK);
    assert_int_equal(PtlMDUnlink(put), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: PtlMDMDCopy: SEND_START, SEND_END, REPLY_START, REPLY_END, GET_START, GET_END */
static void test_copies_on_a_node_are_gets(void **state)
{
    struct px_entry e = serve(PTL_MD_MANAGE_REMOTE, -1);
    ptl_md_t md = px_md(local, 100, 0, -1, local_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);
    ptl_process_id_t far = px_self;

    (void)state;
    assert_int_equal(PtlMDMDCopy(mdh, px_self, PT, 0, PX_BITS, 200), PTL_OK);
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 100, 100, 0, 0, mdh, md, -1 });
    px_expect_both(local_eq,
                   (struct px_want){ PTL_EVENT_REPLY_START, px_self, PT, PX_BITS, 100, 100, 0, 0, mdh, md, -1 });
    px_expect_both(target_eq,
                   (struct px_want){ PTL_EVENT_GET_START, px_self, PT, PX_BITS, 100, 100, 200, 0, e.mdh, e.md, -1 });
    assert_memory_equal(local, target + 200, 100);
    far.nid++;
    assert_int_equal(PtlMDMDCopy(mdh, far, PT, 0, PX_BITS, 200), PTL_PROCESS_INVALID);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
#define both_test(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)
        both_test(test_a_get_has_its_events),
        both_test(test_a_region_is_told_by_its_local_offset),
        both_test(test_start_and_end_can_be_disabled),
        both_test(test_a_short_target_gives_what_it_has),
        both_test(test_scattered_memory_on_both_sides),
        both_test(test_the_usual_thresholds_are_enough),
        both_test(test_a_reply_needs_no_options),
        both_test(test_every_size_arrives),
        both_test(test_gets_from_oneself),
        both_test(test_bad_arguments),
        both_test(test_a_getput_has_six_events),
        both_test(test_getput_events_can_be_disabled),
        both_test(test_a_swap_in_place),
        both_test(test_a_swap_needs_both_operations),
        both_test(test_swaps_make_a_lock),
#if PX_CRAY
        both_test(test_parts_can_be_swapped),
        both_test(test_copies_on_a_node_are_gets),
#endif
    };

    return px_run(tests, NULL);
}
