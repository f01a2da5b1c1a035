/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts by FMA and block transfer: data, limits, order, what a post refuses. Specification: spec/ugni.md 4.7, 4.8. */
#include "tests/conformance/pair.h"

#define BIG_BYTES  (8u << 20)
#define HUGE_BYTES (32u << 20)

/* Registered memory of both sides, larger than a pair has. */
struct big {
    uint8_t *source; /* owned, of a */
    uint8_t *target; /* owned, of b */
    size_t bytes;
    gni_mem_handle_t source_handle;
    gni_mem_handle_t target_handle;
};

static struct big open_big(size_t bytes)
{
    struct big big = { .source = pages(bytes), .target = pages(bytes), .bytes = bytes };

    big.source_handle = register_on(&a, big.source, bytes, GNI_MEM_READWRITE);
    big.target_handle = register_on(&b, big.target, bytes, GNI_MEM_READWRITE);
    return big;
}

static void close_big(struct big *big)
{
    GNI_MemDeregister(a.nic, &big->source_handle);
    GNI_MemDeregister(b.nic, &big->target_handle);
    munmap(big->source, big->bytes);
    munmap(big->target, big->bytes);
}

static gni_post_descriptor_t big_put(const struct big *big, gni_post_type_t type, uint64_t offset, uint64_t length)
{
    return (gni_post_descriptor_t){ .type = type,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .local_addr = ADDR(big->source) + offset,
                                    .local_mem_hndl = big->source_handle,
                                    .remote_addr = ADDR(big->target) + offset,
                                    .remote_mem_hndl = big->target_handle,
                                    .length = length };
}

static void test_fma_put_delivers_data_and_all_events(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 64, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry = 0;

    (void)state;
    memcpy(a.mem + 64, "12345678", 8);
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_memory_equal(b.mem + 64, "12345678", 8);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), a.inst_id);
    assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    assert_ptr_equal(done, &d);
}

static void test_put_sizes_arrive_whole(void **state)
{
    static const uint64_t sizes[] = { 0, 1, 7, 47, 48, 49, 63, 64, 65, 4095, 4096, 4097, 40000, 65000 };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT };

        for (size_t t = 0; t < COUNT_OF(types); t++) {
            gni_post_descriptor_t d = gx_put(&a, &b, 3, sizes[i], GNI_CQMODE_GLOBAL_EVENT);

            d.type = types[t];
            fill(a.mem + 3, sizes[i], (uint32_t)i);
            memset(b.mem, 0xee, GX_BYTES);
            assert_int_equal(run(&d), STATUS_OK);
            assert_memory_equal(b.mem + 3, a.mem + 3, sizes[i]);
            assert_int_equal(b.mem[2], 0xee);
            assert_int_equal(b.mem[3 + sizes[i]], 0xee);
        }
    }
}

static void test_large_puts_arrive_whole(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT };
    static const struct {
        uint64_t offset;
        uint64_t length;
    } parts[] = { { 0, 65536 },    { 5, 65536 },          { 1, 65537 },      { 3, 69632 },     { 7, 131073 },
                  { 0, 1u << 20 }, { 1, (1u << 20) + 1 }, { 4093, 3000001 }, { 0, BIG_BYTES }, { 1, BIG_BYTES - 2 } };
    struct big big = open_big(BIG_BYTES);

    (void)state;
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        for (size_t i = 0; i < COUNT_OF(parts); i++) {
            gni_post_descriptor_t d = big_put(&big, types[t], parts[i].offset, parts[i].length);
            uint64_t end = parts[i].offset + parts[i].length;

            fill(big.source, BIG_BYTES, (uint32_t)(i + 10 * t));
            memset(big.target, 0xee, BIG_BYTES);
            assert_int_equal(run(&d), STATUS_OK);
            assert_true(memcmp(big.target + parts[i].offset, big.source + parts[i].offset, parts[i].length) == 0);
            assert_true(all_bytes_are(big.target, 0xee, parts[i].offset));
            assert_true(all_bytes_are(big.target + end, 0xee, BIG_BYTES - end));
        }
    }
    close_big(&big);
}

static void test_put_between_differently_aligned_addresses(void **state)
{
    (void)state;
    fill(a.mem, GX_BYTES, 1);
    for (unsigned from = 0; from < 9; from++) {
        for (unsigned to = 0; to < 9; to++) {
            gni_post_descriptor_t d = gx_put(&a, &b, 0, 777, GNI_CQMODE_GLOBAL_EVENT);

            d.type = (from + to) % 2 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_PUT;
            d.local_addr += from;
            d.remote_addr += to;
            assert_int_equal(run(&d), STATUS_OK);
            assert_memory_equal(b.mem + to, a.mem + from, 777);
        }
    }
}

static void test_fma_put_takes_data_from_unregistered_memory(void **state)
{
    static const size_t sizes[] = { 8, 100, 60000, 200000 };
    uint8_t on_stack[8] = "stacked";

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct big big = open_big(1u << 20);
        gni_post_descriptor_t d = big_put(&big, GNI_POST_FMA_PUT, 0, sizes[i]);
        uint8_t *source = malloc(sizes[i]);

        assert_non_null(source);
        fill(source, sizes[i], 5);
        d.local_addr = i == 0 ? ADDR(on_stack) : ADDR(source);
        d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(big.target, i == 0 ? on_stack : source, sizes[i]);
        free(source);
        close_big(&big);
    }
}

static void test_fma_put_does_not_look_at_its_local_handle(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    memset(&d.local_mem_hndl, 0xa5, sizeof(d.local_mem_hndl));
    assert_int_equal(run(&d), STATUS_OK);
}

static void test_put_from_read_only_local_memory_works(void **state)
{
    uint8_t *source = pages(4096);
    gni_mem_handle_t handle = register_on(&a, source, 4096, GNI_MEM_READ_ONLY);
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    memcpy(source, "readonly", 8);
    d.local_addr = ADDR(source);
    d.local_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(b.mem, "readonly", 8);
    GNI_MemDeregister(a.nic, &handle);
    munmap(source, 4096);
}

static void test_put_to_oneself_works(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &a, 0, 300, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    d.remote_addr += 1000;
    fill(a.mem, 300, 3);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(a.mem + 1000, a.mem, 300);
    assert_int_equal(gx_next(a.dst_cq, &entry), GNI_RC_SUCCESS);
}

static void test_put_of_no_bytes_completes_with_its_events(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT };
    gni_cq_entry_t entry;

    (void)state;
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 0, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

        d.type = types[t];
        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    }
}

static void test_bytes_of_the_same_pages_are_reachable_and_no_others(void **state)
{
    uint8_t *mem = pages(3 * 4096);
    gni_mem_handle_t handle = register_on(&b, mem + 4096 + 100, 50, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    d.remote_mem_hndl = handle;
    a.mem[0] = 1;
    d.remote_addr = ADDR(mem) + 4096;
    assert_int_equal(run(&d), STATUS_OK);
    d.remote_addr = ADDR(mem) + 2 * 4096 - 8;
    assert_int_equal(run(&d), STATUS_OK);
    d.remote_addr = ADDR(mem) + 4096 - 1;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    d.remote_addr = ADDR(mem) + 2 * 4096 - 7;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    assert_true(all_bytes_are(mem, 0, 4096));
    assert_true(all_bytes_are(mem + 2 * 4096, 0, 4096));
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 3 * 4096);
}

static void test_put_outside_the_region_fails_and_touches_nothing(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT };

    (void)state;
    memset(b.mem, 0xee, GX_BYTES);
    memset(a.mem, 0x11, GX_BYTES);
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        const struct {
            uint64_t addr;
            uint64_t length;
        } ranges[] = { { ADDR(b.mem) + GX_BYTES, 8 },
                       { ADDR(b.mem) + GX_BYTES - 4, 8 },
                       { ADDR(b.mem) - 8, 8 },
                       { ADDR(b.mem) - 4, 8 },
                       { ADDR(b.mem) + 4096, GX_BYTES },
                       { 0, 8 },
                       { UINT64_MAX - 3, 8 },
                       { UINT64_MAX - 7, 8 } };

        for (size_t i = 0; i < COUNT_OF(ranges); i++) {
            gni_post_descriptor_t d = gx_put(&a, &b, 0, ranges[i].length, GNI_CQMODE_GLOBAL_EVENT);

            d.type = types[t];
            d.remote_addr = ranges[i].addr;
            assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
        }
    }
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
}

static void test_length_beyond_all_memory_fails_and_touches_nothing(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    memset(b.mem, 0xee, GX_BYTES);
    d.length = UINT64_MAX - 4095;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    d.length = 1ull << 40;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
}

/* ---- what the post refuses ---- */

static void expect_refused(gni_post_descriptor_t d, gni_return_t rc)
{
    gni_post_descriptor_t before = d;

    memset(b.mem, 0xee, 4096);
    assert_int_equal(post(&d), rc);
    assert_memory_equal(&d, &before, sizeof(d));
    wait_for_all_before(&a, &b);
    assert_true(all_bytes_are(b.mem, 0xee, 4096));
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* The handle is one, but no registration of this process that holds the data stands behind it. */
static void expect_local_access(gni_post_descriptor_t d)
{
    memset(b.mem, 0xee, 4096);
    assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
    assert_true(all_bytes_are(b.mem, 0xee, 4096));
}

static void test_rdma_put_from_an_ended_registration_fails_and_moves_nothing(void **state)
{
    uint8_t *source = pages(4096);
    gni_mem_handle_t handle = register_on(&a, source, 4096, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    d.local_addr = ADDR(source);
    d.local_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    for (uint64_t length = 8; length <= 4096; length *= 8) {
        d.length = length;
        expect_local_access(d);
    }
    d.cq_mode = 0; /* nobody asked, but a failure is told */
    expect_local_access(d);
    munmap(source, 4096);
}

static void test_rdma_put_needs_registered_local_memory(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);
    uint8_t *other = pages(4096);

    (void)state;
    d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    expect_refused(d, GNI_RC_INVALID_PARAM);
    d = word_post(GNI_POST_RDMA_PUT, 0);
    d.local_addr = ADDR(other);
    expect_local_access(d);
    d = word_post(GNI_POST_RDMA_PUT, 0);
    d.local_addr = ADDR(a.mem) + GX_BYTES - 4;
    expect_local_access(d);
    d = word_post(GNI_POST_RDMA_PUT, 0);
    d.local_mem_hndl = b.mem_hndl;
    expect_local_access(d);
    munmap(other, 4096);
}

static void test_rdma_refuses_handles_with_a_wrong_checksum(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    d.remote_mem_hndl.qword2 ^= 1ull << 56;
    expect_refused(d, GNI_RC_INVALID_PARAM);
    d = word_post(GNI_POST_RDMA_PUT, 0);
    d.local_mem_hndl.qword1 ^= 1;
    expect_refused(d, GNI_RC_INVALID_PARAM);
}

static void test_physical_addresses_are_refused(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    d.rdma_mode = GNI_RDMAMODE_PHYS_ADDR;
    expect_refused(d, GNI_RC_INVALID_PARAM);
}

static void test_put_without_remote_handle_is_refused(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_PUT_W_SYNCFLAG };

    (void)state;
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        gni_post_descriptor_t d = word_post(types[t], 0);

        d.remote_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        expect_refused(d, GNI_RC_INVALID_PARAM);
    }
}

static void test_each_call_takes_its_own_types_only(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 20; type++) {
        gni_post_descriptor_t d = word_post((gni_post_type_t)type, 0);
        bool is_rdma = type == GNI_POST_RDMA_PUT || type == GNI_POST_RDMA_GET;
        bool is_fma = (type >= GNI_POST_FMA_PUT && type <= GNI_POST_AMO) || type == GNI_POST_FMA_GET_W_FLAG ||
                      type == GNI_POST_AMO_W_FLAG;

        if (!is_rdma)
            assert_int_equal(GNI_PostRdma(a.ep, &d), GNI_RC_INVALID_PARAM);
        if (!is_fma)
            assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
        if (type != GNI_POST_CQWRITE)
            assert_int_equal(GNI_PostCqWrite(a.ep, &d), GNI_RC_INVALID_PARAM);
    }
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

static void test_posts_refuse_null_and_dead_arguments(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    assert_int_equal(GNI_PostFma(a.ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostRdma(a.ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostCqWrite(a.ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostFma(NULL, &d), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostRdma(NULL, &d), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostCqWrite(NULL, &d), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
    a.ep = NULL;
}

/* ---- source queue of block transfers ---- */

static void test_rdma_completes_on_the_queue_that_it_names(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET };
    gni_cq_handle_t own;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &own), GNI_RC_SUCCESS);
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        gni_post_descriptor_t d = word_post(types[t], 0);

        d.src_cq_hndl = own;
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(finish_on(own, &d), STATUS_OK);
        assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
        d.src_cq_hndl = a.src_cq; /* the end point's, named */
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(finish(&d), STATUS_OK);
    }
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
    GNI_CqDestroy(own);
}

static void test_rdma_refuses_dead_and_foreign_source_queues(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);
    gni_cq_handle_t dead;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &dead), GNI_RC_SUCCESS);
    GNI_CqDestroy(dead);
    d.src_cq_hndl = dead;
    expect_refused(d, GNI_RC_INVALID_PARAM);
    d.src_cq_hndl = b.src_cq;
    expect_refused(d, GNI_RC_INVALID_PARAM);
}

static void test_fma_does_not_look_at_the_source_queue_field(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    d.src_cq_hndl = (gni_cq_handle_t)&fx;
    assert_int_equal(run(&d), STATUS_OK);
}

/* ---- order ---- */

/*
 * A rank that polls its queue moves large transfers together with emunic, and may be faster with them than an emunic
 * that has lost its core. So nobody polls until the data of a last small put are there: the events of those before it
 * are in the queue by then, and emunic alone has not moved 8 MiB.
 */
static void test_small_puts_complete_before_large_ones_posted_earlier(void **state)
{
    struct big big = open_big(HUGE_BYTES);
    gni_post_descriptor_t large[3];
    gni_post_descriptor_t small[20];
    gni_post_descriptor_t last = word_post(GNI_POST_FMA_PUT, 8 * COUNT_OF(small));
    gni_post_descriptor_t *done;

    (void)state;
    fill(big.source, HUGE_BYTES, 9);
    memset(a.mem, 1, 8 * COUNT_OF(small) + 8);
    memset(b.mem, 0, 8 * COUNT_OF(small) + 8);
    freeze_emunic();
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        large[i] = big_put(&big, i == 1 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_PUT, i * (8u << 20), 8u << 20);
        assert_int_equal(post(&large[i]), GNI_RC_SUCCESS);
    }
    for (size_t i = 0; i < COUNT_OF(small); i++) {
        small[i] = word_post(i % 2 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_PUT, 8 * i);
        assert_int_equal(post(&small[i]), GNI_RC_SUCCESS);
    }
    assert_int_equal(post(&last), GNI_RC_SUCCESS);
    thaw_emunic();
    while (atomic_load((_Atomic uint64_t *)(uintptr_t)last.remote_addr) == 0)
        sched_yield();
    for (size_t i = 0; i < COUNT_OF(small); i++)
        assert_int_equal(finish(&small[i]), STATUS_OK);
    for (size_t i = 0; i < COUNT_OF(large) + 1; i++)
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    assert_true(memcmp(big.target, big.source, 24u << 20) == 0);
    close_big(&big);
}

/* Both end in b's memory, so their remote events tell which was first. */
static void test_large_transfer_of_one_side_delays_no_put_of_another(void **state)
{
    struct big big = open_big(HUGE_BYTES);
    gni_post_descriptor_t large = big_put(&big, GNI_POST_RDMA_PUT, 0, HUGE_BYTES);
    gni_post_descriptor_t small = gx_put(&b, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_mem_handle_t with_queue;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_EpUnbind(b.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(b.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(
        GNI_MemRegister(b.nic, ADDR(big.target), HUGE_BYTES, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1, &with_queue),
        GNI_RC_SUCCESS);
    large.remote_mem_hndl = with_queue;
    large.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    freeze_emunic();
    assert_int_equal(post(&large), GNI_RC_SUCCESS);
    assert_int_equal(post_on(b.ep, &small), GNI_RC_SUCCESS);
    thaw_emunic();
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), b.inst_id);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), a.inst_id);
    assert_int_equal(finish_on(b.src_cq, &small), STATUS_OK);
    assert_int_equal(finish(&large), STATUS_OK);
    GNI_MemDeregister(b.nic, &with_queue);
    close_big(&big);
}

static void test_in_order_put_waits_for_larger_ones_before_it(void **state)
{
    struct big big = open_big(BIG_BYTES);
    gni_post_descriptor_t large = big_put(&big, GNI_POST_FMA_PUT, 0, BIG_BYTES);
    gni_post_descriptor_t small = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    large.dlvr_mode = small.dlvr_mode = GNI_DLVMODE_IN_ORDER;
    big.source[BIG_BYTES - 1] = 0x77;
    freeze_emunic();
    assert_int_equal(post(&large), GNI_RC_SUCCESS);
    assert_int_equal(post(&small), GNI_RC_SUCCESS);
    thaw_emunic();
    assert_int_equal(finish(&large), STATUS_OK);
    assert_int_equal(big.target[BIG_BYTES - 1], 0x77);
    assert_int_equal(finish(&small), STATUS_OK);
    close_big(&big);
}

static void test_in_order_posts_reach_memory_in_the_order_posted(void **state)
{
    struct big big = open_big(1u << 20);
    gni_post_descriptor_t d[60];
    uint32_t last = 0;

    (void)state;
    freeze_emunic();
    for (uint32_t i = 0; i < COUNT_OF(d); i++) {
        uint64_t length = i % 3 == 0 ? 200000 : i % 3 == 1 ? 8 : 30000;

        /* Each ends on the same four bytes; its own copy of the source is left alone until it completes. */
        d[i] = big_put(&big, i % 2 ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT, 0, length);
        d[i].local_addr += 8 * i;
        d[i].remote_addr = ADDR(big.target) + (1u << 20) - length;
        d[i].dlvr_mode = i % 4 ? GNI_DLVMODE_IN_ORDER : GNI_DLVMODE_MNON_HASH;
        memcpy(big.source + 8 * i + length - 4, &i, 4);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    thaw_emunic();
    for (uint32_t i = 0; i < COUNT_OF(d); i++)
        assert_int_equal(finish(&d[i]), STATUS_OK);
    memcpy(&last, big.target + (1u << 20) - 4, 4);
    assert_int_equal(last, COUNT_OF(d) - 1);
    close_big(&big);
}

static void test_fence_holds_block_transfers_behind_it(void **state)
{
    struct big big = open_big(BIG_BYTES);
    gni_post_descriptor_t fenced = big_put(&big, GNI_POST_RDMA_PUT, 0, BIG_BYTES);
    gni_post_descriptor_t next = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    fenced.rdma_mode = GNI_RDMAMODE_FENCE;
    freeze_emunic();
    assert_int_equal(post(&fenced), GNI_RC_SUCCESS);
    assert_int_equal(post(&next), GNI_RC_SUCCESS);
    thaw_emunic();
    assert_int_equal(finish(&fenced), STATUS_OK);
    assert_int_equal(finish(&next), STATUS_OK);
    close_big(&big);
}

static void test_fence_waits_for_block_transfers_before_it(void **state)
{
    struct big big = open_big(BIG_BYTES);
    gni_post_descriptor_t before = big_put(&big, GNI_POST_RDMA_PUT, 0, BIG_BYTES);
    gni_post_descriptor_t fenced = word_post(GNI_POST_RDMA_PUT, 0);
    gni_post_descriptor_t next = word_post(GNI_POST_RDMA_PUT, 8);

    (void)state;
    fenced.rdma_mode = GNI_RDMAMODE_FENCE;
    freeze_emunic();
    assert_int_equal(post(&before), GNI_RC_SUCCESS);
    assert_int_equal(post(&fenced), GNI_RC_SUCCESS);
    assert_int_equal(post(&next), GNI_RC_SUCCESS);
    thaw_emunic();
    assert_int_equal(finish(&before), STATUS_OK);
    assert_int_equal(finish(&fenced), STATUS_OK);
    assert_int_equal(finish(&next), STATUS_OK);
    close_big(&big);
}

/* ---- between processes ---- */

struct meeting {
    uint64_t addr;
    gni_mem_handle_t handle;
    uint32_t nic_addr;
};

/* Rank 0 gives its memory; the others each fill a part of it, by FMA and by block transfer. */
static int fill_rank_zero(struct fx_rank *rank)
{
    struct meeting *meeting = rank->shared;
    const uint64_t part = GX_BYTES / 4;
    struct gx_side side;

    gx_open(&side, rank->fx, rank->fx->nids[rank->rank], rank->rank, 0);
    if (rank->rank == 0)
        *meeting = (struct meeting){ ADDR(side.mem), side.mem_hndl, side.nic_addr };
    pthread_barrier_wait(rank->barrier);
    if (rank->rank != 0) {
        gni_post_descriptor_t d = { .type = rank->rank == 1 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_PUT,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT,
                                    .local_addr = ADDR(side.mem),
                                    .local_mem_hndl = side.mem_hndl,
                                    .remote_addr = meeting->addr + rank->rank * part,
                                    .remote_mem_hndl = meeting->handle,
                                    .length = part };
        gni_post_descriptor_t *done;

        memset(side.mem, (int)rank->rank, part);
        FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &side.ep) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpBind(side.ep, meeting->nic_addr, 0) == GNI_RC_SUCCESS);
        FX_CHECK(post_on(side.ep, &d) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS);
        FX_CHECK(done == &d);
    } else {
        unsigned seen = 0;

        while (seen != 0xe) {
            gni_cq_entry_t entry;
            unsigned from;

            FX_CHECK(gx_next(side.dst_cq, &entry) == GNI_RC_SUCCESS);
            from = (unsigned)GNI_CQ_GET_REM_INST_ID(entry);
            FX_CHECK(from >= 1 && from <= 3 && (seen & 1u << from) == 0);
            FX_CHECK(all_bytes_are(side.mem + from * part, (uint8_t)from, part));
            seen |= 1u << from;
        }
        FX_CHECK(all_bytes_are(side.mem, 0, part));
    }
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void test_processes_put_into_each_others_memory(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 4, fill_rank_zero, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_fma_put_delivers_data_and_all_events),
        pair_test(test_put_sizes_arrive_whole),
        pair_test(test_large_puts_arrive_whole),
        pair_test(test_put_between_differently_aligned_addresses),
        pair_test(test_fma_put_takes_data_from_unregistered_memory),
        pair_test(test_fma_put_does_not_look_at_its_local_handle),
        pair_test(test_put_from_read_only_local_memory_works),
        pair_test(test_put_to_oneself_works),
        pair_test(test_put_of_no_bytes_completes_with_its_events),
        pair_test(test_bytes_of_the_same_pages_are_reachable_and_no_others),
        pair_test(test_put_outside_the_region_fails_and_touches_nothing),
        pair_test(test_length_beyond_all_memory_fails_and_touches_nothing),
        pair_test(test_rdma_put_from_an_ended_registration_fails_and_moves_nothing),
        pair_test(test_rdma_put_needs_registered_local_memory),
        pair_test(test_rdma_refuses_handles_with_a_wrong_checksum),
        pair_test(test_physical_addresses_are_refused),
        pair_test(test_put_without_remote_handle_is_refused),
        pair_test(test_each_call_takes_its_own_types_only),
        pair_test(test_posts_refuse_null_and_dead_arguments),
        pair_test(test_rdma_completes_on_the_queue_that_it_names),
        pair_test(test_rdma_refuses_dead_and_foreign_source_queues),
        pair_test(test_fma_does_not_look_at_the_source_queue_field),
        pair_test(test_small_puts_complete_before_large_ones_posted_earlier),
        pair_test(test_large_transfer_of_one_side_delays_no_put_of_another),
        pair_test(test_in_order_put_waits_for_larger_ones_before_it),
        pair_test(test_in_order_posts_reach_memory_in_the_order_posted),
        pair_test(test_fence_holds_block_transfers_behind_it),
        pair_test(test_fence_waits_for_block_transfers_before_it),
        cmocka_unit_test(test_processes_put_into_each_others_memory),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
