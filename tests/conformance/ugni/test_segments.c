/* SPDX-License-Identifier: BSD-3-Clause */
/* Several segments under one handle, addressed by offsets. Specification: spec/ugni.md 4.6, 4.7.1. */
#include "tests/conformance/pair.h"

#define PAGE 4096u
#define N    5u

/* Segments of 1, 2 ... N pages, not in the order of their addresses, each between pages that are not theirs. */
struct region {
    uint8_t *mem; /* all pages */
    size_t mem_bytes;
    gni_mem_segment_t segments[N];
    size_t bytes; /* of the region */
    gni_mem_handle_t handle;
};

static struct region r;

static void make_region(const struct gx_side *side, gni_cq_handle_t cq, uint32_t flags)
{
    static const size_t first_page[N] = { 30, 1, 20, 5, 11 };

    r.mem_bytes = 64 * PAGE;
    r.mem = pages(r.mem_bytes);
    memset(r.mem, 0xee, r.mem_bytes);
    r.bytes = 0;
    for (unsigned i = 0; i < N; i++) {
        r.segments[i] = (gni_mem_segment_t){ ADDR(r.mem) + first_page[i] * PAGE, (i + 1) * PAGE };
        r.bytes += (i + 1) * PAGE;
    }
    assert_int_equal(GNI_MemRegisterSegments(side->nic, r.segments, N, cq, flags, (uint32_t)-1, &r.handle),
                     GNI_RC_SUCCESS);
}

static void drop_region(const struct gx_side *side)
{
    assert_int_equal(GNI_MemDeregister(side->nic, &r.handle), GNI_RC_SUCCESS);
    munmap(r.mem, r.mem_bytes);
}

/* Where an offset of the region is. */
static uint8_t *place_of(size_t offset)
{
    for (unsigned i = 0; i < N; i++) {
        if (offset < r.segments[i].length)
            return (uint8_t *)(uintptr_t)r.segments[i].address + offset;
        offset -= r.segments[i].length;
    }
    fail();
    return NULL;
}

static void expect_region(size_t offset, const uint8_t *expected, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (*place_of(offset + i) != expected[i])
            fail_msg("byte %zu is 0x%x, not 0x%x", offset + i, *place_of(offset + i), expected[i]);
    }
}

/* Bytes of the region's memory outside the segments are as they were. */
static void expect_rest_untouched(void)
{
    for (size_t page = 0; page < r.mem_bytes / PAGE; page++) {
        uint64_t at = ADDR(r.mem) + page * PAGE;
        bool is_in = false;

        for (unsigned i = 0; i < N; i++)
            is_in = is_in || (at >= r.segments[i].address && at < r.segments[i].address + r.segments[i].length);
        if (!is_in)
            assert_true(all_bytes_are(r.mem + page * PAGE, 0xee, PAGE));
    }
}

static gni_post_descriptor_t remote_post(gni_post_type_t type, uint64_t offset, uint64_t length)
{
    gni_post_descriptor_t d = word_post(type, 0);

    d.remote_addr = offset;
    d.remote_mem_hndl = r.handle;
    d.length = length;
    return d;
}

static const struct {
    size_t offset;
    size_t length;
} ranges[] = {
    { 0, 8 },         { 0, PAGE },          { PAGE - 4, 8 },      { PAGE, PAGE }, { 100, 3 * PAGE },
    { 0, 15 * PAGE }, { 3 * PAGE - 8, 16 }, { 15 * PAGE - 8, 8 }, { 4, 60 },
};

static void test_puts_by_offset_fill_the_segments_in_their_order(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT };

    (void)state;
    make_region(&b, NULL, 0);
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        for (unsigned t = 0; t < 2; t++) {
            gni_post_descriptor_t d = remote_post(types[t], ranges[i].offset, ranges[i].length);

            fill(a.mem, ranges[i].length, (uint32_t)(2 * i + t));
            assert_int_equal(run(&d), STATUS_OK);
            expect_region(ranges[i].offset, a.mem, ranges[i].length);
        }
    }
    expect_rest_untouched();
    drop_region(&b);
}

static void test_gets_by_offset_collect_the_segments(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_GET, GNI_POST_RDMA_GET };

    (void)state;
    make_region(&b, NULL, GNI_MEM_READ_ONLY);
    for (size_t i = 0; i < r.bytes; i++)
        *place_of(i) = (uint8_t)(i * 31 >> 3);
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        for (unsigned t = 0; t < 2; t++) {
            gni_post_descriptor_t d = remote_post(types[t], ranges[i].offset, ranges[i].length);

            memset(a.mem, 0, GX_BYTES);
            assert_int_equal(run(&d), STATUS_OK);
            expect_region(ranges[i].offset, a.mem, ranges[i].length);
        }
    }
    drop_region(&b);
}

static void test_block_transfers_have_a_segmented_side_here(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET, GNI_POST_FMA_GET };

    (void)state;
    make_region(&a, NULL, 0);
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        for (unsigned t = 0; t < COUNT_OF(types); t++) {
            gni_post_descriptor_t d = word_post(types[t], 0);

            d.local_addr = ranges[i].offset;
            d.local_mem_hndl = r.handle;
            d.length = ranges[i].length;
            fill(b.mem, GX_BYTES, (uint32_t)(10 * i + t));
            for (size_t k = 0; types[t] == GNI_POST_RDMA_PUT && k < ranges[i].length; k++)
                *place_of(ranges[i].offset + k) = (uint8_t)(k * 7 + t);
            assert_int_equal(run(&d), STATUS_OK);
            expect_region(ranges[i].offset, b.mem, ranges[i].length);
        }
    }
    expect_rest_untouched();
    drop_region(&a);
}

static void test_atomics_reach_a_word_by_offset(void **state)
{
    (void)state;
    make_region(&b, NULL, 0);
    for (size_t offset = 0; offset < r.bytes; offset += PAGE + 8) {
        gni_post_descriptor_t d = remote_post(GNI_POST_AMO, offset & ~7ull, 8);
        uint64_t word = 40;

        memcpy(place_of(offset & ~7ull), &word, 8);
        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.first_operand = 2;
        assert_int_equal(run(&d), STATUS_OK);
        memcpy(&word, place_of(offset & ~7ull), 8);
        assert_int_equal(word, 42);
        memcpy(&word, a.mem, 8);
        assert_int_equal(word, 40);
    }
    drop_region(&b);
}

static void test_flagged_put_stores_its_flag_by_offset_after_the_data(void **state)
{
    gni_post_descriptor_t d;
    uint64_t flag;

    (void)state;
    make_region(&b, NULL, 0);
    d = remote_post(GNI_POST_FMA_PUT_W_SYNCFLAG, PAGE - 100, 2 * PAGE);
    d.sync_flag_addr = 14 * PAGE;
    d.sync_flag_value = 0x1234567812345678;
    fill(a.mem, 2 * PAGE, 5);
    assert_int_equal(run(&d), STATUS_OK);
    expect_region(PAGE - 100, a.mem, 2 * PAGE);
    memcpy(&flag, place_of(14 * PAGE), 8);
    assert_int_equal(flag, 0x1234567812345678);
    drop_region(&b);
}

static void test_remote_events_of_a_segmented_region_arrive(void **state)
{
    gni_post_descriptor_t d;
    gni_cq_entry_t entry = 0;

    (void)state;
    make_region(&b, b.dst_cq, 0);
    d = remote_post(GNI_POST_FMA_PUT, 8, 8);
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), a.inst_id);
    d = remote_post(GNI_POST_CQWRITE, 0, 0);
    d.cqwrite_value = 0xabcdef;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 0xabcdef);
    drop_region(&b);
}

static void test_bounds_and_access_of_the_region_hold(void **state)
{
    gni_post_descriptor_t d;
    uint8_t *mem;

    (void)state;
    make_region(&b, NULL, GNI_MEM_READ_ONLY);
    d = remote_post(GNI_POST_FMA_PUT, 0, 8);
    assert_int_equal(run(&d), STATUS_REMOTE_PERMISSION);
    d = remote_post(GNI_POST_FMA_GET, r.bytes - 4, 8);
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    d = remote_post(GNI_POST_FMA_GET, r.bytes, 8);
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    d = remote_post(GNI_POST_FMA_GET, r.segments[0].address, 8); /* no virtual addresses here */
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    mem = r.mem;
    r.mem = pages(PAGE); /* drop_region() must not unmap it yet */
    assert_int_equal(GNI_MemDeregister(b.nic, &r.handle), GNI_RC_SUCCESS);
    d = remote_post(GNI_POST_FMA_GET, 0, 8);
    assert_int_equal(run(&d), STATUS_BAD_HANDLE);
    munmap(mem, r.mem_bytes);
    munmap(r.mem, PAGE);
}

static void test_local_side_is_checked(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_GET, 0);

    (void)state;
    make_region(&a, NULL, GNI_MEM_READ_ONLY);
    d.local_mem_hndl = r.handle;
    d.local_addr = 0;
    assert_int_equal(post(&d), GNI_RC_PERMISSION_ERROR); /* data would arrive in it */
    d.type = GNI_POST_RDMA_PUT;
    d.local_addr = r.bytes - 4;
    assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
    d.local_addr = r.bytes - 8;
    assert_int_equal(run(&d), STATUS_OK);
    drop_region(&a);
}

static void test_unaligned_segments_take_whole_pages(void **state)
{
    uint8_t *mem = pages(8 * PAGE);
    gni_mem_segment_t segments[2] = { { ADDR(mem) + PAGE + 100, PAGE }, { ADDR(mem) + 5 * PAGE, 10 } };
    gni_mem_handle_t handle = { 0, 0 };
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    uint64_t address = 7;
    uint64_t length = 0;

    (void)state;
    assert_int_equal(GNI_MemRegisterSegments(b.nic, segments, 2, NULL, 0, (uint32_t)-1, &handle), GNI_RC_SUCCESS);
    memcpy(a.mem, "12345678", 8);
    d.remote_mem_hndl = handle;
    d.remote_addr = 100;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + PAGE + 100, "12345678", 8);
    d.remote_addr = 2 * PAGE; /* the first one touches two pages */
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + 5 * PAGE, "12345678", 8);
    assert_int_equal(GNI_MemQueryHndls(b.nic, -1, &(gni_mem_handle_t){ 0, 0 }, &address, &length), GNI_RC_SUCCESS);
    assert_int_equal(address, 0);
    assert_int_equal(length, 3 * PAGE);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 8 * PAGE);
}

static void test_large_transfer_between_two_segmented_regions(void **state)
{
    const size_t piece = 3 << 20;
    uint8_t *from = pages(4 * piece);
    uint8_t *to = pages(4 * piece);
    gni_mem_segment_t of_from[3] = { { ADDR(from), piece },
                                     { ADDR(from) + 3 * piece, piece },
                                     { ADDR(from) + 2 * piece, piece } };
    gni_mem_segment_t of_to[2] = { { ADDR(to) + 2 * piece, 2 * piece }, { ADDR(to), piece } };
    gni_mem_handle_t from_handle = { 0, 0 };
    gni_mem_handle_t to_handle = { 0, 0 };
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    fill(from, 4 * piece, 77);
    assert_int_equal(GNI_MemRegisterSegments(a.nic, of_from, 3, NULL, 0, (uint32_t)-1, &from_handle), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, of_to, 2, NULL, 0, (uint32_t)-1, &to_handle), GNI_RC_SUCCESS);
    d.local_addr = d.remote_addr = 0;
    d.local_mem_hndl = from_handle;
    d.remote_mem_hndl = to_handle;
    d.length = 3 * piece;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(memcmp(to + 2 * piece, from, piece), 0);
    assert_int_equal(memcmp(to + 3 * piece, from + 3 * piece, piece), 0);
    assert_int_equal(memcmp(to, from + 2 * piece, piece), 0);
    assert_true(all_bytes_are(to + piece, 0, piece));
    /* While it is moved the memory may go. */
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(a.nic, &from_handle), GNI_RC_SUCCESS);
    munmap(from, 4 * piece);
    finish(&d);
    GNI_MemDeregister(b.nic, &to_handle);
    munmap(to, 4 * piece);
}

static void test_many_segments_fit_and_too_many_are_refused(void **state)
{
    enum { MOST = 4096 };
    static gni_mem_segment_t segments[MOST + 1];
    uint8_t *mem = pages(MOST * PAGE);
    gni_mem_handle_t handle = { 0, 0 };
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    for (size_t i = 0; i <= MOST; i++)
        segments[i] = (gni_mem_segment_t){ ADDR(mem) + (MOST - 1 - i % MOST) * PAGE, PAGE };
    assert_int_equal(GNI_MemRegisterSegments(b.nic, segments, MOST + 1, NULL, 0, (uint32_t)-1, &handle),
                     GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, segments, 999, NULL, 0, (uint32_t)-1, &handle), GNI_RC_SUCCESS);
    memcpy(a.mem, "the last", 8);
    d.remote_mem_hndl = handle;
    d.remote_addr = 998 * PAGE;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + (MOST - 999) * PAGE, "the last", 8);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, MOST * PAGE);
}

static void test_bad_segments_are_refused(void **state)
{
    static const uint8_t constants[PAGE] = { 1 };
    gni_mem_segment_t two[2] = { { ADDR(b.mem), PAGE }, { ADDR(b.mem) + PAGE, 0 } };
    gni_mem_segment_t constant = { ADDR(constants), 10 };
    gni_mem_segment_t nowhere = { 0x1000, PAGE };
    gni_mem_segment_t round_the_end = { UINT64_MAX - 10, 100 };
    gni_mem_handle_t handle = { 0x1111, 0 };

    (void)state;
    assert_int_equal(GNI_MemRegisterSegments(b.nic, two, 2, NULL, 0, (uint32_t)-1, &handle), GNI_RC_INVALID_PARAM);
    two[1].length = PAGE;
    assert_int_equal(GNI_MemRegisterSegments(b.nic, two, 2, a.dst_cq, 0, (uint32_t)-1, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, two, 2, NULL, GNI_MEM_RESERVE_REGION, (uint32_t)-1, &handle),
                     GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, two, 2, NULL, GNI_MEM_UPDATE_REGION, (uint32_t)-1, &handle),
                     GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, two, 2, NULL, GNI_MEM_USE_VMDH, 0, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, &constant, 1, NULL, 0, (uint32_t)-1, &handle),
                     GNI_RC_PERMISSION_ERROR);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, &nowhere, 1, NULL, 0, (uint32_t)-1, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, &round_the_end, 1, NULL, 0, (uint32_t)-1, &handle),
                     GNI_RC_INVALID_PARAM);
    assert_int_equal(handle.qword1, 0x1111);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, &constant, 1, NULL, GNI_MEM_READ_ONLY, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    GNI_MemDeregister(b.nic, &handle);
}

static void test_segmented_region_may_have_a_virtual_handle(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_mem_segment_t segments[2];
    uint8_t *mem = pages(4 * PAGE);
    gni_mem_handle_t handle = { 0, 0 };

    (void)state;
    segments[0] = (gni_mem_segment_t){ ADDR(mem) + 2 * PAGE, PAGE };
    segments[1] = (gni_mem_segment_t){ ADDR(mem), PAGE };
    assert_int_equal(GNI_SetMddResources(b.nic, 4), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegisterSegments(b.nic, segments, 2, NULL, GNI_MEM_USE_VMDH, 2, &handle), GNI_RC_SUCCESS);
    memcpy(a.mem, "offsets!", 8);
    d.remote_mem_hndl = handle;
    d.remote_addr = PAGE + 8;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(mem + 8, "offsets!", 8);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 4 * PAGE);
}

/* ---- between processes ---- */

static int scatter_to_the_next(struct fx_rank *rank)
{
    struct {
        uint32_t address;
        gni_mem_handle_t handle;
    } *infos = rank->shared;
    uint32_t next = (rank->rank + 1) % rank->n_ranks;
    uint32_t before = (rank->rank + rank->n_ranks - 1) % rank->n_ranks;
    uint8_t *mem = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    gni_mem_segment_t segments[2] = { { ADDR(mem) + 8 * PAGE, PAGE }, { ADDR(mem) + (2 + rank->rank) * PAGE, PAGE } };
    gni_post_descriptor_t d = {
        .type = GNI_POST_RDMA_PUT, .cq_mode = GNI_CQMODE_GLOBAL_EVENT, .length = 2 * PAGE - 64, .remote_addr = 64
    };
    gni_post_descriptor_t *done = NULL;
    struct gx_side side;
    gni_ep_handle_t ep;

    alarm(30);
    gx_open(&side, rank->fx, rank->fx->nids[rank->rank], rank->rank, 0);
    FX_CHECK(GNI_MemRegisterSegments(side.nic, segments, 2, NULL, 0, (uint32_t)-1, &infos[rank->rank].handle) ==
             GNI_RC_SUCCESS);
    infos[rank->rank].address = side.nic_addr;
    pthread_barrier_wait(rank->barrier);
    memset(side.mem, (int)(0x40 + rank->rank), 2 * PAGE);
    d.local_addr = ADDR(side.mem);
    d.local_mem_hndl = side.mem_hndl;
    d.remote_mem_hndl = infos[next].handle;
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, infos[next].address, next) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_PostRdma(ep, &d) == GNI_RC_SUCCESS);
    FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS);
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(all_bytes_are(mem + 8 * PAGE, 0, 64));
    FX_CHECK(all_bytes_are(mem + 8 * PAGE + 64, (uint8_t)(0x40 + before), PAGE - 64));
    FX_CHECK(all_bytes_are(mem + (2 + rank->rank) * PAGE, (uint8_t)(0x40 + before), PAGE));
    GNI_EpDestroy(ep);
    gx_close(&side);
    return 0;
}

static void test_processes_scatter_into_each_others_segments(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 4, scatter_to_the_next, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_scatter_into_each_others_segments),
        pair_test(test_puts_by_offset_fill_the_segments_in_their_order),
        pair_test(test_gets_by_offset_collect_the_segments),
        pair_test(test_block_transfers_have_a_segmented_side_here),
        pair_test(test_atomics_reach_a_word_by_offset),
        pair_test(test_flagged_put_stores_its_flag_by_offset_after_the_data),
        pair_test(test_remote_events_of_a_segmented_region_arrive),
        pair_test(test_bounds_and_access_of_the_region_hold),
        pair_test(test_local_side_is_checked),
        pair_test(test_unaligned_segments_take_whole_pages),
        pair_test(test_large_transfer_between_two_segmented_regions),
        pair_test(test_many_segments_fit_and_too_many_are_refused),
        pair_test(test_bad_segments_are_refused),
        pair_test(test_segmented_region_may_have_a_virtual_handle),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
