/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration, handles, and which memory they reach. Specification: spec/ugni.md 4.6, Appendix B.
 * Who may reach what: test_protection.c.
 */
#include <fcntl.h>
#include <unistd.h>

#include "tests/conformance/pair.h"

#define PAGE 4096u

static const uint8_t constants[PAGE] = { 1, 2, 3 };
static uint8_t statics[3 * PAGE];

/* answers: GNI_MemRegister */
static gni_return_t try_register(const struct gx_side *side, const void *mem, uint64_t bytes, uint32_t flags)
{
    gni_mem_handle_t handle = { 0x1111, 0x2222 };
    gni_return_t rc = GNI_MemRegister(side->nic, ADDR(mem), bytes, NULL, flags, (uint32_t)-1, &handle);

    if (rc == GNI_RC_SUCCESS) {
        assert_true(handle.qword1 != 0 || handle.qword2 != 0);
        assert_int_equal(GNI_MemDeregister(side->nic, &handle), GNI_RC_SUCCESS);
    } else {
        assert_int_equal(handle.qword1, 0x1111); /* untouched */
        assert_int_equal(handle.qword2, 0x2222);
    }
    return rc;
}

/* ---- what can be registered ---- */

static void test_any_alignment_and_length_can_be_registered_and_reached(void **state)
{
    uint8_t *mem = pages(4 * PAGE);
    static const struct {
        size_t offset;
        size_t length;
    } ranges[] = { { 0, 1 }, { 1, 1 }, { 4095, 1 }, { 4095, 2 }, { 100, 8000 }, { 0, PAGE }, { 0, 4 * PAGE } };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        gni_mem_handle_t handle = register_on(&b, mem + ranges[i].offset, ranges[i].length, GNI_MEM_READWRITE);
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

        memset(mem, 0, 4 * PAGE);
        memset(a.mem, 0x77, GX_BYTES);
        d.remote_addr = ADDR(mem) + ranges[i].offset;
        d.remote_mem_hndl = handle;
        d.length = ranges[i].length;
        assert_int_equal(run(&d), STATUS_OK);
        assert_true(all_bytes_are(mem + ranges[i].offset, 0x77, ranges[i].length));
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    }
    munmap(mem, 4 * PAGE);
}

static void test_registration_and_its_end_leave_content_alone(void **state)
{
    uint8_t *mem = pages(8 * PAGE);
    uint8_t *copy = pages(8 * PAGE);

    (void)state;
    fill(mem, 8 * PAGE, 4);
    memcpy(copy, mem, 8 * PAGE);
    for (size_t bytes = 1; bytes < 7 * PAGE; bytes += 1111) {
        gni_mem_handle_t handle = register_on(&b, mem + 77, bytes, GNI_MEM_READWRITE);

        assert_memory_equal(mem, copy, 8 * PAGE);
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
        assert_memory_equal(mem, copy, 8 * PAGE);
    }
    munmap(mem, 8 * PAGE);
    munmap(copy, 8 * PAGE);
}

static void test_stack_heap_static_and_shared_memory_can_be_registered(void **state)
{
    uint8_t on_stack[64] = { 0 };
    uint8_t *heap = malloc(1000);
    uint8_t *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint8_t *const kinds[] = { on_stack, heap, statics + 1234, shared };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        gni_mem_handle_t handle = register_on(&b, kinds[i], 64, GNI_MEM_READWRITE);

        assert_int_equal(put_text(kinds[i], handle, "anywhere"), STATUS_OK);
        assert_memory_equal(kinds[i], "anywhere", 8);
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    }
    free(heap);
    munmap(shared, PAGE);
}

static void test_every_ordering_and_sharing_flag_is_accepted(void **state)
{
    static const uint32_t flags[] = {
        GNI_MEM_READWRITE,
        GNI_MEM_READ_ONLY,
        GNI_MEM_USE_GART,
        GNI_MEM_PHYS_CONT,
        GNI_MEM_STRICT_PI_ORDERING,
        GNI_MEM_PI_FLUSH,
        GNI_MEM_MDD_CLONE,
        GNI_MEM_MDD_SHARED,
        GNI_MEM_MDD_DEDICATED,
        GNI_MEM_RELAXED_PI_ORDERING,
        GNI_MEM_READ_ONLY | GNI_MEM_RELAXED_PI_ORDERING,
        GNI_MEM_STRICT_PI_ORDERING | GNI_MEM_PI_FLUSH,
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        assert_int_equal(try_register(&b, statics, PAGE, flags[i]), GNI_RC_SUCCESS);
}

static void test_bad_flags_are_refused(void **state)
{
    static const uint32_t flags[] = {
        GNI_MEM_PHYS_SEGMENTS,
        GNI_MEM_CUDA,
        0x2000,
        0x80000000,
        GNI_MEM_USE_VMDH, /* no GNI_SetMddResources() */
        GNI_MEM_USE_VMDH | GNI_MEM_RESERVE_REGION,
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(flags); i++)
        assert_int_equal(try_register(&b, statics, PAGE, flags[i]), GNI_RC_INVALID_PARAM);
}

static void test_registration_refuses_bad_arguments(void **state)
{
    gni_mem_handle_t handle;
    gni_cq_handle_t dead;

    (void)state;
    assert_int_equal(try_register(&b, statics, 0, GNI_MEM_READWRITE), GNI_RC_INVALID_PARAM);
    assert_int_equal(try_register(&b, statics, UINT64_MAX, GNI_MEM_READWRITE), GNI_RC_INVALID_PARAM);
    assert_int_equal(try_register(&b, statics, UINT64_MAX - ADDR(statics) + 1, GNI_MEM_READWRITE),
                     GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(statics), PAGE, NULL, 0, (uint32_t)-1, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegister(NULL, ADDR(statics), PAGE, NULL, 0, (uint32_t)-1, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(statics), PAGE, a.dst_cq, 0, (uint32_t)-1, &handle),
                     GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqCreate(b.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &dead), GNI_RC_SUCCESS);
    GNI_CqDestroy(dead);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(statics), PAGE, dead, 0, (uint32_t)-1, &handle), GNI_RC_INVALID_PARAM);
}

static void test_addresses_without_pages_are_refused(void **state)
{
    uint8_t *mem = pages(4 * PAGE);
    const struct {
        const char *name;
        void *mem;
        uint64_t bytes;
        uint32_t flags;
    } rows[] = {
        { "the hole", mem + PAGE, PAGE, GNI_MEM_READWRITE },
        { "the hole, to read", mem + PAGE, PAGE, GNI_MEM_READ_ONLY },
        { "into the hole", mem, PAGE + 1, GNI_MEM_READWRITE },
        { "around the hole", mem, 4 * PAGE, GNI_MEM_READWRITE },
        { "NULL", NULL, PAGE, GNI_MEM_READWRITE },
        { "beyond the program", (void *)0x7ffffffff000, PAGE, GNI_MEM_READWRITE },
    };

    (void)state;
    assert_int_equal(munmap(mem + PAGE, PAGE), 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, try_register(&b, rows[i].mem, rows[i].bytes, rows[i].flags),
                         GNI_RC_INVALID_PARAM);
    assert_int_equal(try_register(&b, mem, PAGE, GNI_MEM_READWRITE), GNI_RC_SUCCESS);
    munmap(mem, 4 * PAGE);
}

static void test_pages_that_forbid_it_give_permission_error(void **state)
{
    uint8_t *mem = pages(2 * PAGE);

    (void)state;
    assert_int_equal(mprotect(mem + PAGE, PAGE, PROT_READ), 0);
    assert_int_equal(try_register(&b, mem + PAGE, PAGE, GNI_MEM_READWRITE), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(try_register(&b, mem, 2 * PAGE, GNI_MEM_READWRITE), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(try_register(&b, mem, 2 * PAGE, GNI_MEM_READ_ONLY), GNI_RC_SUCCESS);
    assert_int_equal(try_register(&b, constants, PAGE, GNI_MEM_READWRITE), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(mprotect(mem + PAGE, PAGE, PROT_NONE), 0);
    assert_int_equal(try_register(&b, mem + PAGE, PAGE, GNI_MEM_READ_ONLY), GNI_RC_PERMISSION_ERROR);
    munmap(mem, 2 * PAGE);
}

static void test_constants_can_be_read_by_peers(void **state)
{
    gni_mem_handle_t handle = register_on(&b, (void *)(uintptr_t)constants, sizeof(constants), GNI_MEM_READ_ONLY);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_GET, 0);

    (void)state;
    d.remote_addr = ADDR(constants) & ~3ull;
    d.remote_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(a.mem, (const void *)(uintptr_t)d.remote_addr, 8);
    GNI_MemDeregister(b.nic, &handle);
}

static void test_a_gigabyte_can_be_registered_without_touching_it(void **state)
{
    const uint64_t bytes = 1ull << 30;
    uint8_t *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    gni_mem_handle_t handle = register_on(&b, mem, bytes, GNI_MEM_READWRITE);

    (void)state;
    assert_int_equal(put_text(mem + bytes - 8, handle, "the last"), STATUS_OK);
    assert_memory_equal(mem + bytes - 8, "the last", 8);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, bytes);
}

static void test_limit_of_registrations_gives_error_resource_until_some_go(void **state)
{
    static gni_mem_handle_t handles[20000];
    gni_job_res_desc_t mdds;
    gni_return_t rc = GNI_RC_SUCCESS;
    size_t n = 0;

    (void)state;
    while (n < COUNT_OF(handles)) {
        rc = GNI_MemRegister(b.nic, ADDR(statics), 8, NULL, 0, (uint32_t)-1, &handles[n]);
        if (rc != GNI_RC_SUCCESS)
            break;
        n++;
    }
    assert_int_equal(rc, GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, GNI_JOB_RES_MDD, &mdds), GNI_RC_SUCCESS);
    assert_true(mdds.used >= n);
    assert_int_equal(put_text(statics, handles[n / 2], "still on"), STATUS_OK);
    assert_int_equal(GNI_MemDeregister(b.nic, &handles[n - 1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(statics), 8, NULL, 0, (uint32_t)-1, &handles[n - 1]), GNI_RC_SUCCESS);
    while (n > 0)
        assert_int_equal(GNI_MemDeregister(b.nic, &handles[--n]), GNI_RC_SUCCESS);
}

/* ---- handles ---- */

static void test_every_registration_has_a_handle_of_its_own(void **state)
{
    gni_mem_handle_t handles[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        handles[i] = register_on(&b, statics, PAGE + i * PAGE, GNI_MEM_READWRITE); /* overlapping */
    for (unsigned i = 0; i < 3; i++)
        assert_memory_not_equal(&handles[i], &handles[(i + 1) % 3], sizeof(handles[0]));
    assert_int_equal(GNI_MemDeregister(b.nic, &handles[1]), GNI_RC_SUCCESS);
    assert_int_equal(put_text(statics, handles[0], "number 0"), STATUS_OK);
    assert_int_equal(put_text(statics, handles[1], "number 1"), STATUS_BAD_HANDLE);
    assert_int_equal(put_text(statics, handles[2], "number 2"), STATUS_OK);
    assert_memory_equal(statics, "number 2", 8);
    GNI_MemDeregister(b.nic, &handles[0]);
    GNI_MemDeregister(b.nic, &handles[2]);
}

static void test_stale_handle_does_not_reach_the_next_registration_of_the_same_memory(void **state)
{
    gni_mem_handle_t old = register_on(&b, statics, PAGE, GNI_MEM_READWRITE);
    gni_mem_handle_t new;

    (void)state;
    assert_int_equal(GNI_MemDeregister(b.nic, &old), GNI_RC_SUCCESS);
    new = register_on(&b, statics, PAGE, GNI_MEM_READWRITE);
    memset(statics, 0xee, PAGE);
    assert_int_equal(put_text(statics, old, "too late"), STATUS_BAD_HANDLE);
    assert_true(all_bytes_are(statics, 0xee, PAGE));
    assert_int_equal(put_text(statics, new, "in time "), STATUS_OK);
    GNI_MemDeregister(b.nic, &new);
}

/* Asking for figures gives back what the library keeps of registrations that are over (libugni/src/parked.c). */
static void give_back_for_real(void)
{
    gni_dev_res_desc_t figures;

    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &figures), GNI_RC_SUCCESS);
}

/* All indices of the node are used once, so that the old one's index comes again. */
static void test_stale_handle_does_not_reach_the_next_owner_of_its_index(void **state)
{
    gni_mem_handle_t old = register_on(&b, statics, PAGE, GNI_MEM_READWRITE);
    gni_mem_handle_t new = { 0, 0 };

    (void)state;
    assert_int_equal(GNI_MemDeregister(b.nic, &old), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 20000 && new.qword1 != old.qword1; i++) {
        if (i > 0)
            assert_int_equal(GNI_MemDeregister(b.nic, &new), GNI_RC_SUCCESS);
        give_back_for_real();
        new = register_on(&b, statics, PAGE, GNI_MEM_READWRITE);
    }
    assert_int_equal(new.qword1, old.qword1); /* same index, same address */
    memset(statics, 0xee, PAGE);
    assert_int_equal(put_text(statics, old, "too late"), STATUS_BAD_HANDLE);
    assert_true(all_bytes_are(statics, 0xee, PAGE));
    assert_int_equal(put_text(statics, new, "in time "), STATUS_OK);
    GNI_MemDeregister(b.nic, &new);
}

static void test_handle_serves_as_local_one_on_other_nic_handles_of_the_process(void **state)
{
    gni_mem_handle_t handle = register_on(&a, statics, PAGE, GNI_MEM_READWRITE);
    gni_post_descriptor_t d;
    struct gx_side other;

    (void)state;
    gx_open(&other, &fx, 0, 99, 0);
    assert_int_equal(GNI_EpCreate(other.nic, other.src_cq, &other.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(other.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    d = gx_put(&other, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    d.type = GNI_POST_RDMA_GET;
    d.local_addr = ADDR(statics);
    d.local_mem_hndl = handle;
    memcpy(b.mem, "from b  ", 8);
    assert_int_equal(post_on(other.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(other.src_cq, &d), STATUS_OK);
    assert_memory_equal(statics, "from b  ", 8);
    assert_int_equal(GNI_MemDeregister(other.nic, &handle), GNI_RC_INVALID_PARAM); /* that is the first one's */
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(post_on(other.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(other.src_cq, &d), STATUS_LOCAL_ACCESS);
    gx_close(&other);
}

static void test_deregister_refuses_what_it_does_not_know(void **state)
{
    gni_mem_handle_t handle = register_on(&b, statics, PAGE, GNI_MEM_READWRITE);
    gni_mem_handle_t none = { 0, 0 };

    (void)state;
    assert_int_equal(GNI_MemDeregister(NULL, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemDeregister(b.nic, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemDeregister(b.nic, &none), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_INVALID_PARAM);
}

static void test_memory_may_go_before_its_registration(void **state)
{
    uint8_t *mem = pages(PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, PAGE, GNI_MEM_READWRITE);

    (void)state;
    munmap(mem, PAGE);
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
}

/* Whether such an access fails is not documented; other memory and later posts must be unharmed. */
static void test_access_to_pages_that_have_gone_harms_nothing(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_GET,
                                             GNI_POST_AMO };
    uint8_t *mem = pages(PAGE);
    gni_mem_handle_t handle = register_on(&b, mem, PAGE, GNI_MEM_READWRITE);

    (void)state;
    munmap(mem, PAGE);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        gni_post_descriptor_t d = word_post(types[i], 0);
        enum status status;

        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.remote_addr = ADDR(mem);
        d.remote_mem_hndl = handle;
        status = run(&d);
        assert_true(status == STATUS_OK || status == STATUS_REMOTE_RANGE);
    }
    assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(put_text(b.mem, b.mem_hndl, "alive   "), STATUS_OK);
    assert_memory_equal(b.mem, "alive   ", 8);
}

static void test_memory_registered_again_at_the_same_address_is_reached(void **state)
{
    uint8_t *mem = pages(16 * PAGE);

    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        gni_mem_handle_t handle = register_on(&b, mem, 16 * PAGE, GNI_MEM_READWRITE);
        char text[9];

        snprintf(text, sizeof(text), "round %2u", round);
        assert_int_equal(put_text(mem + 9 * PAGE, handle, text), STATUS_OK);
        assert_memory_equal(mem + 9 * PAGE, text, 8);
        assert_int_equal(GNI_MemDeregister(b.nic, &handle), GNI_RC_SUCCESS);
        munmap(mem, 16 * PAGE);
        assert_ptr_equal(mmap(mem, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                         mem);
        assert_true(all_bytes_are(mem, 0, 16 * PAGE));
    }
    munmap(mem, 16 * PAGE);
}

/* ---- handles that a program builds itself (libfabric) ---- */

static uint64_t crc8(const gni_mem_handle_t *handle)
{
    uint8_t crc = 0;

    for (unsigned i = 0; i < 15; i++) {
        crc ^= (uint8_t)(i < 8 ? handle->qword1 >> (8 * i) : handle->qword2 >> (8 * (i - 8)));
        for (unsigned bit = 0; bit < 8; bit++)
            crc = (uint8_t)(crc >> 1 ^ (crc & 1 ? 0x8c : 0));
    }
    return crc;
}

/* From the index, the address and the read-only flag of a key: format 1, 4 KiB pages, all ones as page count. */
static gni_mem_handle_t rebuild(gni_mem_handle_t handle, bool has_crc)
{
    const uint64_t mdh = handle.qword1 >> 52;
    const uint64_t va = (uint64_t)((int64_t)(handle.qword1 << 27) >> 27) & 0xfffffffffffff; /* 37 bits, extended */
    const uint64_t is_read_only = handle.qword2 >> 34 & 1;
    gni_mem_handle_t built = { .qword1 = mdh << 52 | va, .qword2 = 0xfffffff | 12ull << 28 | is_read_only << 34 };

    if (has_crc)
        built.qword2 |= crc8(&built) << 56;
    return built;
}

static void test_handles_have_the_documented_layout(void **state)
{
    gni_mem_handle_t handle = b.mem_hndl;

    (void)state;
    assert_true((handle.qword1 & 0xfffffffffffff) == ADDR(b.mem) >> 12);
    assert_int_equal(handle.qword2 & 0xfffffff, GX_BYTES / PAGE);
    assert_int_equal(handle.qword2 >> 28 & 0x3f, 12);
    assert_int_equal(handle.qword2 >> 34 & 0xff, 0); /* format 1, no flags */
    assert_int_equal(handle.qword2 >> 56, crc8(&handle));
}

static void test_rebuilt_handle_works_for_fma(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_FMA_PUT_W_SYNCFLAG, GNI_POST_FMA_GET,
                                             GNI_POST_AMO };
    gni_mem_handle_t rebuilt = rebuild(b.mem_hndl, false);

    (void)state;
    assert_int_equal(rebuilt.qword2 >> 56, 0);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        gni_post_descriptor_t d = word_post(types[i], 64 * i);

        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.remote_mem_hndl = rebuilt;
        d.sync_flag_addr = d.remote_addr + 8;
        a.mem[64 * i] = 9;
        assert_int_equal(run(&d), STATUS_OK);
    }
    assert_int_equal(b.mem[0], 9);
    assert_int_equal(b.mem[64], 9);
}

static void test_rebuilt_handle_works_for_queue_writes(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_CQWRITE, 0);
    gni_cq_entry_t entry;

    (void)state;
    d.remote_mem_hndl = rebuild(b.mem_hndl, false);
    d.cqwrite_value = 71;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 71);
}

static void test_rebuilt_handle_works_for_block_transfers_with_a_checksum_only(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    d.remote_mem_hndl = rebuild(b.mem_hndl, false);
    if (crc8(&d.remote_mem_hndl) != 0) /* else 0 happens to be right */
        assert_int_equal(post(&d), GNI_RC_INVALID_PARAM);
    d.remote_mem_hndl = rebuild(b.mem_hndl, true);
    d.local_mem_hndl = rebuild(a.mem_hndl, true);
    memcpy(a.mem, "rebuilt ", 8);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(b.mem, "rebuilt ", 8);
    d.type = GNI_POST_RDMA_GET;
    assert_int_equal(run(&d), STATUS_OK);
}

static void test_bounds_come_from_the_owner_and_not_from_the_page_count(void **state)
{
    (void)state;
    assert_int_equal(put_text(b.mem + GX_BYTES, rebuild(b.mem_hndl, false), "far away"), STATUS_REMOTE_RANGE);
}

static void test_rebuilt_handle_of_read_only_memory_stays_read_only(void **state)
{
    gni_mem_handle_t handle = register_on(&b, statics, PAGE, GNI_MEM_READ_ONLY);
    gni_mem_handle_t rebuilt = rebuild(handle, false);

    (void)state;
    memset(statics, 0xee, PAGE);
    assert_int_equal(put_text(statics, rebuilt, "written?"), STATUS_REMOTE_PERMISSION);
    rebuilt.qword2 &= ~(1ull << 34); /* the owner's word counts */
    assert_int_equal(put_text(statics, rebuilt, "written?"), STATUS_REMOTE_PERMISSION);
    assert_true(all_bytes_are(statics, 0xee, PAGE));
    GNI_MemDeregister(b.nic, &handle);
}

static void test_handle_with_another_base_address_finds_nothing(void **state)
{
    gni_mem_handle_t wrong = rebuild(b.mem_hndl, false);

    (void)state;
    memset(b.mem, 0xee, GX_BYTES);
    wrong.qword1 += 1;
    assert_int_equal(put_text(b.mem + PAGE, wrong, "shifted "), STATUS_BAD_HANDLE);
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
}

static void test_handle_with_another_generation_finds_nothing(void **state)
{
    gni_mem_handle_t wrong = b.mem_hndl;

    (void)state;
    memset(b.mem, 0xee, GX_BYTES);
    for (unsigned bit = 42; bit < 56; bit++) {
        wrong.qword2 = b.mem_hndl.qword2 ^ 1ull << bit;
        if ((wrong.qword2 >> 42 & 0x3fff) != 0) /* 0 is "not told" */
            assert_int_equal(put_text(b.mem, wrong, "other   "), STATUS_BAD_HANDLE);
    }
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
}

/* ---- attributes, iteration, rebuilding ---- */

static void test_attributes_tell_read_only_and_nothing_else(void **state)
{
    gni_mem_handle_t writable = register_on(&b, statics, PAGE, GNI_MEM_READWRITE);
    gni_mem_handle_t read_only = register_on(&b, statics, PAGE, GNI_MEM_READ_ONLY);

    (void)state;
    for (gni_mem_handle_attr_t attr = GNI_MEMHNDL_ATTR_READONLY; attr <= GNI_MEMHNDL_ATTR_CLONE; attr++) {
        int yesno = 77;

        assert_int_equal(GNI_MemHndlQueryAttr(&writable, attr, &yesno), GNI_RC_SUCCESS);
        assert_int_equal(yesno, 0);
        yesno = 77;
        assert_int_equal(GNI_MemHndlQueryAttr(&read_only, attr, &yesno), GNI_RC_SUCCESS);
        assert_int_equal(yesno, attr == GNI_MEMHNDL_ATTR_READONLY);
    }
    GNI_MemDeregister(b.nic, &writable);
    GNI_MemDeregister(b.nic, &read_only);
}

static void test_attributes_of_a_malformed_handle_are_refused(void **state)
{
    gni_mem_handle_t broken = b.mem_hndl;
    gni_mem_handle_t none = { 0, 0 };
    int yesno = 77;
    const struct {
        const char *name;
        gni_mem_handle_t *handle;
        gni_mem_handle_attr_t attr;
        int *out;
    } rows[] = {
        { "wrong check sum", &broken, GNI_MEMHNDL_ATTR_READONLY, &yesno },
        { "all zeros", &none, GNI_MEMHNDL_ATTR_READONLY, &yesno },
        { "no handle", NULL, GNI_MEMHNDL_ATTR_READONLY, &yesno },
        { "no result", &b.mem_hndl, GNI_MEMHNDL_ATTR_READONLY, NULL },
        { "attribute 0", &b.mem_hndl, (gni_mem_handle_attr_t)0, &yesno },
        { "attribute 8", &b.mem_hndl, (gni_mem_handle_attr_t)8, &yesno },
    };

    (void)state;
    broken.qword1 ^= 4;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, GNI_MemHndlQueryAttr(rows[i].handle, rows[i].attr, rows[i].out),
                         GNI_RC_INVALID_PARAM);
    assert_int_equal(yesno, 77);
}

static void test_query_walks_all_registrations_once(void **state)
{
    gni_mem_handle_t own[5];
    gni_mem_handle_t at = { 0, 0 };
    unsigned seen = 0;
    uint64_t address;
    uint64_t length;

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        own[i] = register_on(&b, statics + i, 100 + i, GNI_MEM_READWRITE);
    while (GNI_MemQueryHndls(b.nic, -1, &at, &address, &length) == GNI_RC_SUCCESS) {
        bool is_known = memcmp(&at, &b.mem_hndl, sizeof(at)) == 0;

        assert_true(!is_known || (address == ADDR(b.mem) && length == GX_BYTES));
        for (unsigned i = 0; i < 5; i++) {
            if (memcmp(&at, &own[i], sizeof(at)) != 0)
                continue;
            is_known = true;
            assert_true(address == ADDR(statics) + i && length == 100 + i);
        }
        assert_true(is_known);
        assert_true(++seen <= 6);
    }
    assert_int_equal(seen, 6);
    for (unsigned i = 0; i < 5; i++)
        GNI_MemDeregister(b.nic, &own[i]);
}

static void test_query_at_the_end_gives_no_match_and_zeroes(void **state)
{
    gni_mem_handle_t at = { 0, 0 };
    uint64_t address = 1;
    uint64_t length = 1;

    (void)state;
    assert_int_equal(GNI_MemQueryHndls(b.nic, -1, &at, &address, &length), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemQueryHndls(b.nic, -1, &at, &address, &length), GNI_RC_NO_MATCH);
    assert_int_equal(address, 0);
    assert_int_equal(length, 0);
    assert_int_equal(GNI_MemDeregister(b.nic, &b.mem_hndl), GNI_RC_SUCCESS);
    at = (gni_mem_handle_t){ 0, 0 };
    assert_int_equal(GNI_MemQueryHndls(b.nic, -1, &at, &address, &length), GNI_RC_NO_MATCH);
}

static void test_query_behind_an_unknown_handle_gives_invalid_state(void **state)
{
    gni_mem_handle_t at = register_on(&b, statics, PAGE, GNI_MEM_READWRITE);
    uint64_t address = 1;
    uint64_t length = 1;

    (void)state;
    GNI_MemDeregister(b.nic, &at);
    assert_int_equal(GNI_MemQueryHndls(b.nic, -1, &at, &address, &length), GNI_RC_INVALID_STATE);
    assert_int_equal(address, 0);
    assert_int_equal(length, 0);
}

/* Which descriptor it is, the program finds out: those of NIC handles answer, all others are refused. */
static void test_query_takes_the_descriptor_of_a_nic_handle_instead(void **state)
{
    gni_mem_handle_t at;
    uint64_t address;
    uint64_t length;
    unsigned n_b = 0;
    unsigned n = 0;

    (void)state;
    for (int fd = 0; fd < 1024; fd++) {
        at = (gni_mem_handle_t){ 0, 0 };
        if (GNI_MemQueryHndls(NULL, fd, &at, &address, &length) != GNI_RC_SUCCESS)
            continue;
        n++;
        assert_true(fcntl(fd, F_GETFD) >= 0);
        assert_int_equal(length, GX_BYTES);
        n_b += address == ADDR(b.mem);
        assert_int_equal(GNI_MemQueryHndls(NULL, fd, &at, &address, &length), GNI_RC_NO_MATCH);
    }
    assert_int_equal(n, 2); /* a's and b's */
    assert_int_equal(n_b, 1);
    assert_int_equal(GNI_MemQueryHndls(NULL, 1023, &at, &address, &length), GNI_RC_INVALID_PARAM);
}

static void test_query_needs_exactly_one_selector(void **state)
{
    gni_mem_handle_t at = { 0, 0 };
    uint64_t address;
    uint64_t length;
    const struct {
        const char *name;
        gni_nic_handle_t nic;
        int fd;
        gni_mem_handle_t *handle;
        uint64_t *address;
        uint64_t *length;
    } rows[] = {
        { "no selector", NULL, -1, &at, &address, &length }, { "two selectors", b.nic, 5, &at, &address, &length },
        { "no handle", b.nic, -1, NULL, &address, &length }, { "no address", b.nic, -1, &at, NULL, &length },
        { "no length", b.nic, -1, &at, &address, NULL },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name,
                         GNI_MemQueryHndls(rows[i].nic, rows[i].fd, rows[i].handle, rows[i].address, rows[i].length),
                         GNI_RC_INVALID_PARAM);
}

static void test_rebuild_takes_virtual_handles_only(void **state)
{
    gni_mem_handle_t virtual = { ADDR(b.mem) >> 12 | 5ull << 52, 0xfffffff | 12ull << 28 | 2ull << 34 };
    gni_mem_handle_t none = { 0, 0 };
    gni_mem_handle_t out;

    (void)state;
    virtual.qword2 |= crc8(&virtual) << 56;
    assert_int_equal(GNI_RebuildMemHndl(&b.mem_hndl, 1, &out), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_RebuildMemHndl(&none, 1, &out), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_RebuildMemHndl(NULL, 1, &out), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_RebuildMemHndl(&virtual, 1, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_RebuildMemHndl(&virtual, 1, &out), GNI_RC_INVALID_STATE); /* never updated */
}

static void test_segments_check_their_arguments(void **state)
{
    gni_mem_segment_t segments[2] = { { ADDR(statics), PAGE }, { ADDR(statics) + PAGE, 0 } };
    gni_mem_handle_t handle;
    const struct {
        const char *name;
        gni_nic_handle_t nic;
        gni_mem_segment_t *segments;
        uint32_t n;
        gni_mem_handle_t *out;
    } rows[] = {
        { "no NIC", NULL, segments, 1, &handle },      { "no table", b.nic, NULL, 1, &handle },
        { "no segment", b.nic, segments, 0, &handle }, { "an empty segment", b.nic, segments, 2, &handle },
        { "no handle", b.nic, segments, 1, NULL },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(
            rows[i].name,
            GNI_MemRegisterSegments(rows[i].nic, rows[i].segments, rows[i].n, NULL, 0, (uint32_t)-1, rows[i].out),
            GNI_RC_INVALID_PARAM);
}

static void test_reserving_indices_checks_its_arguments(void **state)
{
    (void)state;
    assert_int_equal(GNI_SetMddResources(NULL, 10), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SetMddResources(b.nic, 0), GNI_RC_INVALID_PARAM);
}

/* ---- memory that the owner's port made itself ---- */

static void test_memory_made_by_a_port_is_reached_by_every_kind_of_post(void **state)
{
    static struct fx_mapped m;
    gni_mem_handle_t handle;
    gni_post_descriptor_t d;
    uint64_t *words;
    void *mem;

    (void)state;
    mem = fx_map(&m, &fx, 1, 12, 16 * PAGE);
    handle = (gni_mem_handle_t){ (uint64_t)m.mdh << 52 | ADDR(mem) >> 12, 0xfffffff | 12ull << 28 };
    handle.qword2 |= crc8(&handle) << 56;
    words = mem;

    assert_int_equal(put_text(&words[0], handle, "by fma  "), STATUS_OK);
    assert_memory_equal(&words[0], "by fma  ", 8);

    fill(a.mem, 10 * PAGE, 1);
    d = gx_put(&a, &b, 0, 10 * PAGE, GNI_CQMODE_GLOBAL_EVENT);
    d.type = GNI_POST_RDMA_PUT;
    d.remote_addr = ADDR(mem) + 64;
    d.remote_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal((uint8_t *)mem + 64, a.mem, 10 * PAGE);

    d.type = GNI_POST_FMA_PUT_W_SYNCFLAG;
    d.length = 100;
    d.sync_flag_addr = ADDR(mem);
    d.sync_flag_value = 0x123456789abcdef0;
    assert_int_equal(run(&d), STATUS_OK);
    assert_true(words[0] == 0x123456789abcdef0);

    words[1] = 40;
    d.type = GNI_POST_AMO;
    d.length = 8;
    d.amo_cmd = GNI_FMA_ATOMIC_FADD;
    d.first_operand = 2;
    d.remote_addr = ADDR(&words[1]);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(words[1], 42);
    assert_int_equal(a.mem[0], 40);

    d.type = GNI_POST_FMA_GET;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(a.mem[0], 42);
    d.type = GNI_POST_RDMA_GET;
    d.length = 16 * PAGE;
    d.remote_addr = ADDR(mem);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(a.mem, mem, 16 * PAGE);

    fx_deregister_mapped(&m);
    assert_int_equal(put_text(&words[0], handle, "too late"), STATUS_BAD_HANDLE);
    fx_unmap(&m);
}

/* ---- fork ---- */

static void test_child_of_a_fork_has_copies_and_leaves_the_nic_alone(void **state)
{
    int status = -1;
    pid_t child;

    (void)state;
    memset(b.mem, 0x21, GX_BYTES);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool is_whole = all_bytes_are(b.mem, 0x21, GX_BYTES);

        memset(b.mem, 0x42, GX_BYTES);
        _exit(is_whole ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(all_bytes_are(b.mem, 0x21, GX_BYTES));
    assert_int_equal(put_text(b.mem, b.mem_hndl, "the same"), STATUS_OK);
    assert_memory_equal(b.mem, "the same", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_any_alignment_and_length_can_be_registered_and_reached),
        pair_test(test_registration_and_its_end_leave_content_alone),
        pair_test(test_stack_heap_static_and_shared_memory_can_be_registered),
        pair_test(test_every_ordering_and_sharing_flag_is_accepted),
        pair_test(test_bad_flags_are_refused),
        pair_test(test_registration_refuses_bad_arguments),
        pair_test(test_addresses_without_pages_are_refused),
        pair_test(test_pages_that_forbid_it_give_permission_error),
        pair_test(test_constants_can_be_read_by_peers),
        pair_test(test_a_gigabyte_can_be_registered_without_touching_it),
        pair_test(test_limit_of_registrations_gives_error_resource_until_some_go),
        pair_test(test_every_registration_has_a_handle_of_its_own),
        pair_test(test_stale_handle_does_not_reach_the_next_registration_of_the_same_memory),
        pair_test(test_stale_handle_does_not_reach_the_next_owner_of_its_index),
        pair_test(test_handle_serves_as_local_one_on_other_nic_handles_of_the_process),
        pair_test(test_deregister_refuses_what_it_does_not_know),
        pair_test(test_memory_may_go_before_its_registration),
        pair_test(test_access_to_pages_that_have_gone_harms_nothing),
        pair_test(test_memory_registered_again_at_the_same_address_is_reached),
        pair_test(test_handles_have_the_documented_layout),
        pair_test(test_rebuilt_handle_works_for_fma),
        pair_test(test_rebuilt_handle_works_for_queue_writes),
        pair_test(test_rebuilt_handle_works_for_block_transfers_with_a_checksum_only),
        pair_test(test_bounds_come_from_the_owner_and_not_from_the_page_count),
        pair_test(test_rebuilt_handle_of_read_only_memory_stays_read_only),
        pair_test(test_handle_with_another_base_address_finds_nothing),
        pair_test(test_handle_with_another_generation_finds_nothing),
        pair_test(test_attributes_tell_read_only_and_nothing_else),
        pair_test(test_attributes_of_a_malformed_handle_are_refused),
        pair_test(test_query_walks_all_registrations_once),
        pair_test(test_query_at_the_end_gives_no_match_and_zeroes),
        pair_test(test_query_behind_an_unknown_handle_gives_invalid_state),
        pair_test(test_query_takes_the_descriptor_of_a_nic_handle_instead),
        pair_test(test_query_needs_exactly_one_selector),
        pair_test(test_rebuild_takes_virtual_handles_only),
        pair_test(test_segments_check_their_arguments),
        pair_test(test_reserving_indices_checks_its_arguments),
        pair_test(test_memory_made_by_a_port_is_reached_by_every_kind_of_post),
        pair_test(test_child_of_a_fork_has_copies_and_leaves_the_nic_alone),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
