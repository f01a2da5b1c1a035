/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gets by FMA and block transfer: data, alignment, access, flagged response. Specification: spec/ugni.md 4.7, 4.8,
 * 4.8.6.
 */
#include "tests/conformance/pair.h"

#define BIG_BYTES (8u << 20)

static const gni_post_type_t get_types[] = { GNI_POST_FMA_GET, GNI_POST_RDMA_GET };

static gni_post_descriptor_t get(gni_post_type_t type, uint64_t offset, uint64_t length)
{
    gni_post_descriptor_t d = gx_put(&a, &b, offset, length, GNI_CQMODE_GLOBAL_EVENT);

    d.type = type;
    return d;
}

/* ---- data ---- */

static void test_get_sizes_arrive_whole(void **state)
{
    static const uint64_t sizes[] = { 4, 8, 12, 60, 64, 68, 4092, 4096, 4100, 40000, 65000 };

    (void)state;
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            gni_post_descriptor_t d = get(get_types[t], 4, sizes[i]);

            fill(b.mem + 4, sizes[i], (uint32_t)i);
            memset(a.mem, 0xee, GX_BYTES);
            assert_int_equal(run(&d), STATUS_OK);
            assert_memory_equal(a.mem + 4, b.mem + 4, sizes[i]);
            assert_int_equal(a.mem[3], 0xee);
            assert_int_equal(a.mem[4 + sizes[i]], 0xee);
        }
    }
}

static void test_large_gets_arrive_whole(void **state)
{
    static const uint64_t sizes[] = { 65536, 65540, 131076, 1u << 20, 3000000, BIG_BYTES - 4 };
    uint8_t *source = pages(BIG_BYTES);
    uint8_t *sink = pages(BIG_BYTES);
    gni_mem_handle_t source_handle = register_on(&b, source, BIG_BYTES, GNI_MEM_READWRITE);
    gni_mem_handle_t sink_handle = register_on(&a, sink, BIG_BYTES, GNI_MEM_READWRITE);

    (void)state;
    fill(source, BIG_BYTES, 3);
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            gni_post_descriptor_t d = get(get_types[t], 0, sizes[i]);

            memset(sink, 0xee, BIG_BYTES);
            d.local_addr = ADDR(sink) + 1;
            d.local_mem_hndl = sink_handle;
            d.remote_addr = ADDR(source) + 4;
            d.remote_mem_hndl = source_handle;
            assert_int_equal(run(&d), STATUS_OK);
            assert_true(memcmp(sink + 1, source + 4, sizes[i]) == 0);
            assert_int_equal(sink[0], 0xee);
            assert_true(all_bytes_are(sink + 1 + sizes[i], 0xee, BIG_BYTES - 1 - sizes[i]));
        }
    }
    GNI_MemDeregister(a.nic, &sink_handle);
    GNI_MemDeregister(b.nic, &source_handle);
    munmap(source, BIG_BYTES);
    munmap(sink, BIG_BYTES);
}

static void test_get_from_read_only_remote_memory_works(void **state)
{
    uint8_t *source = pages(4096);
    gni_mem_handle_t handle;

    (void)state;
    memcpy(source, "one way ", 8);
    assert_int_equal(mprotect(source, 4096, PROT_READ), 0);
    handle = register_on(&b, source, 4096, GNI_MEM_READ_ONLY);
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        gni_post_descriptor_t d = get(get_types[t], 0, 8);

        memset(a.mem, 0, 8);
        d.remote_addr = ADDR(source);
        d.remote_mem_hndl = handle;
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(a.mem, "one way ", 8);
    }
    GNI_MemDeregister(b.nic, &handle);
    munmap(source, 4096);
}

static void test_get_makes_a_remote_event_at_the_owner(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        gni_post_descriptor_t d = get(get_types[t], 0, 64);

        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), a.inst_id);
    }
}

static void test_small_get_completes_before_a_large_one_posted_earlier(void **state)
{
    uint8_t *source = pages(BIG_BYTES);
    uint8_t *sink = pages(BIG_BYTES);
    gni_mem_handle_t source_handle = register_on(&b, source, BIG_BYTES, GNI_MEM_READWRITE);
    gni_mem_handle_t sink_handle = register_on(&a, sink, BIG_BYTES, GNI_MEM_READWRITE);
    gni_post_descriptor_t large = get(GNI_POST_RDMA_GET, 0, BIG_BYTES);
    gni_post_descriptor_t small = get(GNI_POST_FMA_GET, 0, 8);

    (void)state;
    large.local_addr = ADDR(sink);
    large.local_mem_hndl = sink_handle;
    large.remote_addr = ADDR(source);
    large.remote_mem_hndl = source_handle;
    freeze_emunic();
    assert_int_equal(post(&large), GNI_RC_SUCCESS);
    assert_int_equal(post(&small), GNI_RC_SUCCESS);
    thaw_emunic();
    assert_int_equal(finish(&small), STATUS_OK);
    assert_int_equal(finish(&large), STATUS_OK);
    GNI_MemDeregister(a.nic, &sink_handle);
    GNI_MemDeregister(b.nic, &source_handle);
    munmap(source, BIG_BYTES);
    munmap(sink, BIG_BYTES);
}

/* ---- alignment and length ---- */

static void expect_refused(gni_post_descriptor_t d, gni_return_t rc)
{
    gni_post_descriptor_t before = d;

    memset(a.mem, 0xee, 4096);
    assert_int_equal(post(&d), rc);
    assert_memory_equal(&d, &before, sizeof(d));
    wait_for_all_before(&a, &b);
    assert_true(all_bytes_are(a.mem, 0xee, 4096));
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* covers: GNI_PostFma: GNI_RC_ALIGNMENT_ERROR; covers: GNI_PostRdma: GNI_RC_ALIGNMENT_ERROR */
static void test_misaligned_remote_address_gives_alignment_error(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        for (unsigned skew = 1; skew < 4; skew++) {
            gni_post_descriptor_t d = get(get_types[t], 64, 16);

            d.remote_addr += skew;
            expect_refused(d, GNI_RC_ALIGNMENT_ERROR);
        }
    }
}

static void test_misaligned_length_gives_alignment_error(void **state)
{
    static const uint64_t lengths[] = { 1, 2, 3, 5, 7, 9, 4095, 4097 };

    (void)state;
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        for (size_t i = 0; i < COUNT_OF(lengths); i++)
            expect_refused(get(get_types[t], 64, lengths[i]), GNI_RC_ALIGNMENT_ERROR);
    }
}

static void test_local_address_may_have_any_alignment(void **state)
{
    (void)state;
    fill(b.mem, GX_BYTES, 8);
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        for (unsigned skew = 0; skew < 9; skew++) {
            gni_post_descriptor_t d = get(get_types[t], 64, 100);

            d.local_addr += skew;
            assert_int_equal(run(&d), STATUS_OK);
            assert_memory_equal(a.mem + 64 + skew, b.mem + 64, 100);
        }
    }
}

static void test_get_of_no_bytes_is_refused(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT_OF(get_types); t++)
        expect_refused(get(get_types[t], 0, 0), GNI_RC_INVALID_PARAM);
}

/* ---- access ---- */

static void test_get_needs_registered_local_memory(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        gni_post_descriptor_t d = get(get_types[t], 0, 8);

        d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        expect_refused(d, GNI_RC_INVALID_PARAM);
        d = get(get_types[t], GX_BYTES, 8);
        d.remote_addr = ADDR(b.mem);
        assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
        d = get(get_types[t], GX_BYTES - 4, 8);
        d.remote_addr = ADDR(b.mem);
        assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
        d = get(get_types[t], 0, 8);
        d.remote_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        expect_refused(d, GNI_RC_INVALID_PARAM);
    }
}

static void test_get_with_a_stale_local_handle_fails_and_touches_nothing(void **state)
{
    uint8_t *sink = pages(4096);
    gni_mem_handle_t handle = register_on(&a, sink, 4096, GNI_MEM_READWRITE);

    (void)state;
    memset(b.mem, 1, 4096);
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        gni_post_descriptor_t d = get(get_types[t], 0, 8);

        d.local_addr = ADDR(sink);
        d.local_mem_hndl = handle;
        assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
    }
    assert_true(all_bytes_are(sink, 0, 4096));
    munmap(sink, 4096);
}

/* covers: GNI_PostFma: GNI_RC_PERMISSION_ERROR; covers: GNI_PostRdma: GNI_RC_PERMISSION_ERROR */
static void test_get_into_read_only_local_memory_gives_permission_error(void **state)
{
    uint8_t *sink = pages(4096);
    gni_mem_handle_t handle = register_on(&a, sink, 4096, GNI_MEM_READ_ONLY);

    (void)state;
    memset(b.mem, 1, 4096);
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        gni_post_descriptor_t d = get(get_types[t], 0, 8);

        d.local_addr = ADDR(sink);
        d.local_mem_hndl = handle;
        expect_refused(d, GNI_RC_PERMISSION_ERROR);
    }
    assert_true(all_bytes_are(sink, 0, 4096));
    GNI_MemDeregister(a.nic, &handle);
    munmap(sink, 4096);
}

static void test_get_outside_the_region_fails_and_touches_nothing(void **state)
{
    (void)state;
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        static const uint64_t offsets[] = { GX_BYTES, GX_BYTES - 4, (uint64_t)-8, (uint64_t)-4 };

        for (size_t i = 0; i < COUNT_OF(offsets); i++) {
            gni_post_descriptor_t d = get(get_types[t], 0, 8);

            memset(a.mem, 0xee, 4096);
            d.remote_addr += offsets[i];
            assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
            assert_true(all_bytes_are(a.mem, 0xee, 4096));
        }
    }
}

static char *memory_way;

/* The next registrations leave private pages where they are, so that they can go. */
static uint8_t *private_pages(size_t bytes)
{
    memory_way = getenv("EMUNIC_MEMORY");
    setenv("EMUNIC_MEMORY", "cma", 1);
    return pages(bytes);
}

static void allow_adopting(void)
{
    if (!memory_way)
        unsetenv("EMUNIC_MEMORY");
}

/* emunic finds out; on the direct path the program writes its own memory, and missing pages are its own fault. */
static void test_routed_get_into_pages_that_have_gone_fails_as_local_access(void **state)
{
    uint8_t *sink = private_pages(4096);
    gni_mem_handle_t handle = register_on(&a, sink, 4096, GNI_MEM_READWRITE);

    (void)state;
    allow_adopting();
    fx_set_routed(&fx, true);
    munmap(sink, 4096);
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        gni_post_descriptor_t d = get(get_types[t], 0, 8);

        d.local_addr = ADDR(sink);
        d.local_mem_hndl = handle;
        assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
    }
    fx_set_routed(&fx, false);
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
}

/* Pages that the NIC had adopted would still be there. Nothing else may take their place meanwhile. */
static void test_get_from_private_pages_that_have_gone_fails(void **state)
{
    uint8_t *source = private_pages(4096);
    gni_mem_handle_t handle = register_on(&b, source, 4096, GNI_MEM_READWRITE);

    (void)state;
    allow_adopting();
    assert_ptr_equal(mmap(source, 4096, PROT_NONE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), source);
    for (size_t t = 0; t < COUNT_OF(get_types); t++) {
        gni_post_descriptor_t d = get(get_types[t], 0, 8);

        d.remote_addr = ADDR(source);
        d.remote_mem_hndl = handle;
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    }
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    munmap(source, 4096);
}

/* ---- flagged response ---- */

static void test_flagged_get_sets_four_bytes_behind_the_data(void **state)
{
    static const uint64_t lengths[] = { 4, 8, 64, 4096, 20000 };

    (void)state;
    fill(b.mem, GX_BYTES, 21);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        gni_post_descriptor_t d = get(GNI_POST_FMA_GET_W_FLAG, 0, lengths[i]);
        uint32_t flag = 0;

        memset(a.mem, 0, GX_BYTES);
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(a.mem, b.mem, lengths[i]);
        memcpy(&flag, a.mem + lengths[i], GNI_FMA_FLAGGED_RESPONSE_SIZE);
        assert_int_not_equal(flag, 0);
        assert_true(all_bytes_are(a.mem + lengths[i] + GNI_FMA_FLAGGED_RESPONSE_SIZE, 0, 1000));
    }
}

static void test_flag_of_a_get_is_seen_after_its_data(void **state)
{
    (void)state;
    for (unsigned round = 1; round <= 200; round++) {
        gni_post_descriptor_t d = get(GNI_POST_FMA_GET_W_FLAG, 0, 8000);
        volatile uint32_t *flag = (volatile uint32_t *)(void *)(a.mem + 8000);
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

        *flag = 0;
        memset(b.mem, (int)(round & 0xff), 8000);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        while (*flag == 0 && emu_clock_ns() < end_ns)
            ;
        assert_true(all_bytes_are(a.mem, (uint8_t)round, 8000));
        assert_int_equal(finish(&d), STATUS_OK);
    }
}

static void test_flagged_get_needs_room_for_the_flag(void **state)
{
    gni_post_descriptor_t d = get(GNI_POST_FMA_GET_W_FLAG, GX_BYTES - 8, 8);

    (void)state;
    d.remote_addr = ADDR(b.mem);
    assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_get_sizes_arrive_whole),
        pair_test(test_large_gets_arrive_whole),
        pair_test(test_get_from_read_only_remote_memory_works),
        pair_test(test_get_makes_a_remote_event_at_the_owner),
        pair_test(test_small_get_completes_before_a_large_one_posted_earlier),
        pair_test(test_misaligned_remote_address_gives_alignment_error),
        pair_test(test_misaligned_length_gives_alignment_error),
        pair_test(test_local_address_may_have_any_alignment),
        pair_test(test_get_of_no_bytes_is_refused),
        pair_test(test_get_needs_registered_local_memory),
        pair_test(test_get_with_a_stale_local_handle_fails_and_touches_nothing),
        pair_test(test_get_into_read_only_local_memory_gives_permission_error),
        pair_test(test_get_outside_the_region_fails_and_touches_nothing),
        pair_test(test_routed_get_into_pages_that_have_gone_fails_as_local_access),
        pair_test(test_get_from_private_pages_that_have_gone_fails),
        pair_test(test_flagged_get_sets_four_bytes_behind_the_data),
        pair_test(test_flag_of_a_get_is_seen_after_its_data),
        pair_test(test_flagged_get_needs_room_for_the_flag),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
