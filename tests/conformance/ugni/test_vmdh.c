/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual memory handles, reserved regions and handles derived from them. Specification: spec/ugni.md 4.6, 4.7.1,
 * Appendix B.
 */
#include "tests/conformance/pair.h"

#define PAGE 4096u
#define N    16u /* indices in the block */

static gni_mem_handle_t register_virtual(const struct gx_side *side, void *mem, size_t bytes, uint32_t flags,
                                         uint32_t index)
{
    gni_mem_handle_t handle = { 0, 0 };

    assert_int_equal(GNI_MemRegister(side->nic, ADDR(mem), bytes, NULL, GNI_MEM_USE_VMDH | flags, index, &handle),
                     GNI_RC_SUCCESS);
    return handle;
}

static gni_return_t try_virtual(const struct gx_side *side, void *mem, uint32_t flags, uint32_t index)
{
    gni_mem_handle_t handle = { 0x1111, 0x2222 };
    gni_return_t rc = GNI_MemRegister(side->nic, ADDR(mem), PAGE, NULL, GNI_MEM_USE_VMDH | flags, index, &handle);

    if (rc == GNI_RC_SUCCESS)
        GNI_MemDeregister(side->nic, &handle);
    else
        assert_int_equal(handle.qword1, 0x1111);
    return rc;
}

static void reserve_blocks(void)
{
    assert_int_equal(GNI_SetMddResources(a.nic, N), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SetMddResources(b.nic, N), GNI_RC_SUCCESS);
}

static int open_pair_with_blocks(void **state)
{
    open_pair(state);
    reserve_blocks();
    return 0;
}

#define vmdh_test(name) cmocka_unit_test_setup_teardown(name, open_pair_with_blocks, close_pair)

/* A handle as libfabric makes it from its key: format 1, no address, all ones as pages. */
static gni_mem_handle_t handle_of_key(uint32_t index)
{
    return (gni_mem_handle_t){ (uint64_t)index << 52, 0xfffffff | 12ull << 28 | 2ull << 34 };
}

static enum status put_word(uint64_t remote_addr, gni_mem_handle_t handle, uint64_t word)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    memcpy(a.mem, &word, 8);
    d.remote_addr = remote_addr;
    d.remote_mem_hndl = handle;
    return run(&d);
}

static uint64_t word_at(const void *place)
{
    uint64_t word;

    memcpy(&word, place, 8);
    return word;
}

static bool is_virtual(gni_mem_handle_t handle)
{
    int yes = 0;

    assert_int_equal(GNI_MemHndlQueryAttr(&handle, GNI_MEMHNDL_ATTR_VMDH, &yes), GNI_RC_SUCCESS);
    return yes;
}

static uint64_t mdds_of_job(uint32_t nid)
{
    gni_job_res_desc_t desc;

    fx_set_node(nid);
    assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, GNI_JOB_RES_MDD, &desc), GNI_RC_SUCCESS);
    return desc.used;
}

/* ---- blocks ---- */

static void test_block_is_needed_and_bounds_the_index(void **state)
{
    (void)state;
    assert_int_equal(try_virtual(&b, b.mem, 0, 0), GNI_RC_INVALID_PARAM); /* no GNI_SetMddResources() */
    assert_int_equal(GNI_SetMddResources(NULL, 4), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SetMddResources(b.nic, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SetMddResources(b.nic, 4096), GNI_RC_INVALID_PARAM); /* a handle has 12 bits */
    assert_int_equal(GNI_SetMddResources(b.nic, N), GNI_RC_SUCCESS);
    assert_int_equal(try_virtual(&b, b.mem, 0, N - 1), GNI_RC_SUCCESS);
    assert_int_equal(try_virtual(&b, b.mem, 0, N), GNI_RC_INVALID_PARAM);
}

static void test_block_is_reserved_and_given_back(void **state)
{
    uint64_t before = mdds_of_job(1);
    gni_dev_res_desc_t device;
    gni_dev_res_desc_t idle;
    struct gx_side side;

    (void)state;
    fx_set_node(2);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &idle), GNI_RC_SUCCESS);
    gx_open(&side, &fx, 2, 12, 0);
    assert_int_equal(GNI_SetMddResources(side.nic, 100), GNI_RC_SUCCESS);
    assert_int_equal(mdds_of_job(2), 101);
    assert_int_equal(mdds_of_job(1), before);
    fx_set_node(2);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &device), GNI_RC_SUCCESS);
    assert_int_equal(device.reserved, 100);
    assert_int_equal(device.held, 1);
    assert_int_equal(device.available, device.total - 101);
    assert_int_equal(GNI_SetMddResources(side.nic, 50), GNI_RC_SUCCESS); /* shares the block */
    assert_int_equal(mdds_of_job(2), 101);
    assert_int_equal(GNI_SetMddResources(side.nic, 120), GNI_RC_SUCCESS); /* makes it grow */
    assert_int_equal(mdds_of_job(2), 121);
    assert_int_equal(GNI_SetMddResources(side.nic, 4095), GNI_RC_ERROR_NOMEM);
    gx_close(&side);
    fx_set_node(2);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &device), GNI_RC_SUCCESS);
    assert_int_equal(device.reserved, idle.reserved);
}

static void test_index_is_taken_once_and_minus_one_is_the_next_free(void **state)
{
    gni_mem_handle_t fixed = register_virtual(&b, b.mem, PAGE, 0, 1);
    gni_mem_handle_t first = register_virtual(&b, b.mem, PAGE, 0, (uint32_t)-1);
    gni_mem_handle_t next = register_virtual(&b, b.mem, PAGE, 0, (uint32_t)-1);

    (void)state;
    assert_int_equal(first.qword1 >> 52, 0);
    assert_int_equal(fixed.qword1 >> 52, 1);
    assert_int_equal(next.qword1 >> 52, 2);
    assert_int_equal(try_virtual(&b, b.mem, 0, 1), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_MemDeregister(b.nic, &fixed), GNI_RC_SUCCESS);
    assert_int_equal(try_virtual(&b, b.mem, 0, 1), GNI_RC_SUCCESS);
    GNI_MemDeregister(b.nic, &first);
    GNI_MemDeregister(b.nic, &next);
    for (uint32_t i = 0; i < N; i++)
        register_virtual(&b, b.mem, PAGE, 0, (uint32_t)-1);
    assert_int_equal(try_virtual(&b, b.mem, 0, (uint32_t)-1), GNI_RC_ERROR_RESOURCE);
}

/* ---- handles ---- */

static void test_handle_is_the_same_on_every_node(void **state)
{
    uint8_t *mem = pages(PAGE);
    gni_mem_handle_t of_a = register_virtual(&a, mem, PAGE, 0, 7);
    gni_mem_handle_t of_b = register_virtual(&b, mem, PAGE, 0, 7);

    (void)state;
    assert_true(is_virtual(of_a));
    assert_int_equal(of_a.qword1, of_b.qword1);
    assert_int_equal(of_a.qword2, of_b.qword2);
    assert_int_equal((of_a.qword1 & ((1ull << 52) - 1)) << 12, ADDR(mem)); /* carries the address */
    assert_int_equal(put_word(ADDR(mem) + 8, of_a, 0x1234), STATUS_OK);
    assert_int_equal(word_at(mem + 8), 0x1234);
    assert_int_equal(GNI_MemDeregister(b.nic, &of_b), GNI_RC_SUCCESS);
    assert_int_equal(put_word(ADDR(mem) + 8, of_a, 0x5678), STATUS_BAD_HANDLE); /* a's own is on another node */
    assert_int_equal(word_at(mem + 8), 0x1234);
    assert_int_equal(GNI_MemDeregister(a.nic, &of_a), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(a.nic, &of_a), GNI_RC_INVALID_PARAM);
    munmap(mem, PAGE);
}

static void test_handle_of_a_key_addresses_by_offset_from_the_start(void **state)
{
    uint8_t *mem = pages(4 * PAGE);
    gni_mem_handle_t handle = register_virtual(&b, mem + 100, 3 * PAGE, 0, 5);
    gni_mem_handle_t key = handle_of_key(5);

    (void)state;
    assert_int_equal(put_word(0, key, 1), STATUS_OK);
    assert_int_equal(word_at(mem + 100), 1);
    assert_int_equal(put_word(2 * PAGE, key, 2), STATUS_OK);
    assert_int_equal(word_at(mem + 100 + 2 * PAGE), 2);
    assert_int_equal(put_word(4 * PAGE, key, 3), STATUS_REMOTE_RANGE);
    assert_int_equal(put_word(0, handle_of_key(6), 4), STATUS_BAD_HANDLE);    /* free */
    assert_int_equal(put_word(0, handle_of_key(4000), 4), STATUS_BAD_HANDLE); /* not in the block */
    GNI_MemDeregister(b.nic, &handle);
    assert_int_equal(put_word(0, key, 5), STATUS_BAD_HANDLE);
    munmap(mem, 4 * PAGE);
}

static void test_every_kind_of_post_reaches_a_virtual_region(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT,  GNI_POST_RDMA_PUT, GNI_POST_FMA_GET,
                                             GNI_POST_RDMA_GET, GNI_POST_AMO,      GNI_POST_CQWRITE };
    gni_mem_handle_t remote = { 0, 0 };
    gni_mem_handle_t local = register_virtual(&a, a.mem, GX_BYTES, 0, 3);
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(b.mem), GX_BYTES, b.dst_cq, GNI_MEM_USE_VMDH, 3, &remote),
                     GNI_RC_SUCCESS);
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(types); i++) {
            gni_post_descriptor_t d = word_post(types[i], 64 * i);

            d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
            d.local_mem_hndl = local; /* a virtual handle serves locally as well */
            d.remote_mem_hndl = remote;
            d.amo_cmd = GNI_FMA_ATOMIC_FADD;
            d.first_operand = 5;
            d.cqwrite_value = 99;
            memset(a.mem + 64 * i, (int)(0x10 + i), 8);
            memset(b.mem + 64 * i, 0x70, 8);
            assert_int_equal(run(&d), STATUS_OK);
            assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        }
        assert_int_equal(word_at(b.mem), 0x1010101010101010);
        assert_int_equal(word_at(a.mem + 64 * 2), 0x7070707070707070);
        assert_int_equal(word_at(a.mem + 64 * 4), 0x7070707070707070);
        assert_int_equal(word_at(b.mem + 64 * 4), 0x7070707070707075);
    }
    GNI_MemDeregister(a.nic, &local);
    GNI_MemDeregister(b.nic, &remote);
}

static void test_index_used_again_leads_to_the_new_region_only(void **state)
{
    uint8_t *old = pages(PAGE);
    uint8_t *new = pages(PAGE);
    gni_mem_handle_t handle;

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        handle = register_virtual(&b, i % 2 ? old : new, PAGE, 0, 9);
        memset(old, 0, PAGE);
        memset(new, 0, PAGE);
        assert_int_equal(put_word(16, handle_of_key(9), i + 1), STATUS_OK);
        assert_int_equal(word_at((i % 2 ? old : new) + 16), i + 1);
        assert_int_equal(word_at((i % 2 ? new : old) + 16), 0);
        GNI_MemDeregister(b.nic, &handle);
    }
    munmap(old, PAGE);
    munmap(new, PAGE);
}

static void test_read_only_virtual_region_refuses_puts(void **state)
{
    uint8_t *mem = pages(PAGE);
    gni_mem_handle_t handle = register_virtual(&b, mem, PAGE, GNI_MEM_READ_ONLY, 2);

    (void)state;
    assert_int_equal(put_word(ADDR(mem), handle, 1), STATUS_REMOTE_PERMISSION);
    assert_int_equal(put_word(0, handle_of_key(2), 1), STATUS_REMOTE_PERMISSION);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, PAGE);
}

static void test_registrations_are_walked_with_their_virtual_handles(void **state)
{
    gni_mem_handle_t handle = register_virtual(&b, b.mem, 2 * PAGE, 0, 4);
    gni_mem_handle_t at = { 0, 0 };
    uint64_t address;
    uint64_t length;
    unsigned n = 0;
    bool seen = false;

    (void)state;
    while (GNI_MemQueryHndls(b.nic, -1, &at, &address, &length) == GNI_RC_SUCCESS) {
        if (at.qword1 == handle.qword1 && at.qword2 == handle.qword2) {
            seen = true;
            assert_int_equal(address, ADDR(b.mem));
            assert_int_equal(length, 2 * PAGE);
        }
        n++;
    }
    assert_true(seen);
    assert_int_equal(n, 2);
    GNI_MemDeregister(b.nic, &handle);
}

/* ---- reserved regions ---- */

static void test_reserved_region_is_live_from_its_first_update_on(void **state)
{
    uint8_t *mem = pages(8 * PAGE);
    gni_mem_handle_t reserved = register_virtual(&b, mem, 8 * PAGE, GNI_MEM_RESERVE_REGION, 6);
    gni_mem_handle_t updated = { 0, 0 };

    (void)state;
    assert_int_equal(put_word(ADDR(mem), reserved, 1), STATUS_BAD_HANDLE);
    assert_int_equal(put_word(0, handle_of_key(6), 1), STATUS_BAD_HANDLE);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 8 * PAGE, NULL, GNI_MEM_UPDATE_REGION, 6, &updated),
                     GNI_RC_SUCCESS);
    assert_int_equal(updated.qword1, reserved.qword1);
    assert_int_equal(updated.qword2, reserved.qword2);
    assert_int_equal(put_word(ADDR(mem), reserved, 2), STATUS_OK);
    assert_int_equal(word_at(mem), 2);
    assert_int_equal(put_word(7 * PAGE, handle_of_key(6), 3), STATUS_OK);
    assert_int_equal(word_at(mem + 7 * PAGE), 3);
    assert_int_equal(GNI_MemDeregister(b.nic, &updated), GNI_RC_SUCCESS); /* one for both calls */
    assert_int_equal(put_word(0, handle_of_key(6), 4), STATUS_BAD_HANDLE);
    munmap(mem, 8 * PAGE);
}

static void test_range_may_be_reserved_before_its_memory_is_there(void **state)
{
    uint8_t *mem = pages(4 * PAGE);
    gni_mem_handle_t reserved;
    gni_mem_handle_t updated = { 0, 0 };

    (void)state;
    munmap(mem, 4 * PAGE);
    reserved = register_virtual(&b, mem, 4 * PAGE, GNI_MEM_RESERVE_REGION, 6);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 2 * PAGE, NULL, GNI_MEM_UPDATE_REGION, 6, &updated),
                     GNI_RC_INVALID_PARAM); /* nothing there */
    assert_ptr_equal(mmap(mem, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), mem);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 2 * PAGE, NULL, GNI_MEM_UPDATE_REGION, 6, &updated),
                     GNI_RC_SUCCESS);
    assert_int_equal(put_word(ADDR(mem) + PAGE, reserved, 7), STATUS_OK);
    assert_int_equal(put_word(ADDR(mem) + 3 * PAGE, reserved, 7), STATUS_REMOTE_RANGE);
    assert_ptr_equal(
        mmap(mem + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        mem + 2 * PAGE);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem) + 2 * PAGE, 2 * PAGE, NULL, GNI_MEM_UPDATE_REGION, 6, &updated),
                     GNI_RC_SUCCESS);
    assert_int_equal(put_word(ADDR(mem) + 3 * PAGE, reserved, 8), STATUS_OK);
    assert_int_equal(word_at(mem + 3 * PAGE), 8);
    GNI_MemDeregister(b.nic, &reserved);
    munmap(mem, 4 * PAGE);
}

static void test_ordinary_region_may_be_reserved_too(void **state)
{
    uint8_t *mem = pages(2 * PAGE);
    gni_mem_handle_t handle = { 0, 0 };

    (void)state;
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), 2 * PAGE, NULL, GNI_MEM_RESERVE_REGION, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    assert_false(is_virtual(handle));
    assert_int_equal(put_word(ADDR(mem), handle, 1), STATUS_BAD_HANDLE);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), PAGE, NULL, GNI_MEM_UPDATE_REGION, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS); /* the handle says which */
    assert_int_equal(put_word(ADDR(mem), handle, 2), STATUS_OK);
    assert_int_equal(word_at(mem), 2);
    GNI_MemDeregister(b.nic, &handle);
    munmap(mem, 2 * PAGE);
}

static void test_updates_are_checked(void **state)
{
    uint8_t *mem = pages(4 * PAGE);
    gni_mem_handle_t reserved = register_virtual(&b, mem + PAGE, 2 * PAGE, GNI_MEM_RESERVE_REGION, 6);
    gni_mem_handle_t plain = register_virtual(&b, mem, PAGE, 0, 7);
    static const struct {
        uint64_t offset;
        uint64_t length;
        uint32_t flags;
        uint32_t index;
    } bad[] = {
        { 0, PAGE, 0, 6 },                         /* before it */
        { 2 * PAGE, 2 * PAGE, 0, 6 },              /* beyond it */
        { PAGE, 0, 0, 6 },                         /* nothing */
        { PAGE, UINT64_MAX, 0, 6 },                /* round the end */
        { PAGE, PAGE, GNI_MEM_RESERVE_REGION, 6 }, /* both at once */
        { 0, PAGE, 0, 7 },                         /* never reserved */
        { PAGE, PAGE, 0, 8 },                      /* nobody */
        { PAGE, PAGE, GNI_MEM_PHYS_SEGMENTS, 6 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        gni_mem_handle_t handle = { 0x1111, 0x2222 };

        assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem) + bad[i].offset, bad[i].length, NULL,
                                         GNI_MEM_UPDATE_REGION | bad[i].flags, bad[i].index, &handle),
                         GNI_RC_INVALID_PARAM);
        assert_int_equal(handle.qword1, 0x1111);
    }
    assert_int_equal(GNI_MemRegister(a.nic, ADDR(mem) + PAGE, PAGE, NULL, GNI_MEM_UPDATE_REGION, 6, &plain),
                     GNI_RC_INVALID_PARAM); /* another NIC's */
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem) + PAGE, PAGE, b.dst_cq, GNI_MEM_UPDATE_REGION, 6, &plain),
                     GNI_RC_INVALID_PARAM); /* the queue was named when it was reserved */
    GNI_MemDeregister(b.nic, &reserved);
    GNI_MemDeregister(b.nic, &plain);
    munmap(mem, 4 * PAGE);
}

/* ---- derived handles ---- */

static void test_derived_handle_names_another_index_of_the_same_layout(void **state)
{
    uint8_t *mem = pages(PAGE);
    gni_mem_handle_t of_a = register_virtual(&a, mem, PAGE, 0, 3);
    gni_mem_handle_t of_b = register_virtual(&b, mem, PAGE, 0, 8);
    gni_mem_handle_t derived = { 0, 0 };

    (void)state;
    assert_int_equal(GNI_RebuildMemHndl(&of_a, 8, &derived), GNI_RC_SUCCESS);
    assert_int_equal(derived.qword1, of_b.qword1);
    assert_int_equal(derived.qword2, of_b.qword2);
    assert_int_equal(put_word(ADDR(mem) + 24, derived, 77), STATUS_OK);
    assert_int_equal(word_at(mem + 24), 77);
    GNI_MemDeregister(a.nic, &of_a);
    GNI_MemDeregister(b.nic, &of_b);
    munmap(mem, PAGE);
}

static void test_deriving_needs_a_region_that_was_updated(void **state)
{
    uint8_t *mem = pages(PAGE);
    gni_mem_handle_t reserved = register_virtual(&a, mem, PAGE, GNI_MEM_RESERVE_REGION, 3);
    gni_mem_handle_t derived = { 0x1111, 0 };
    gni_mem_handle_t broken = reserved;

    (void)state;
    assert_int_equal(GNI_RebuildMemHndl(&reserved, 4, &derived), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_RebuildMemHndl(&reserved, 4096, &derived), GNI_RC_INVALID_PARAM);
    broken.qword1 ^= 1;
    assert_int_equal(GNI_RebuildMemHndl(&broken, 4, &derived), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_RebuildMemHndl(&a.mem_hndl, 4, &derived), GNI_RC_INVALID_PARAM); /* not virtual */
    assert_int_equal(derived.qword1, 0x1111);
    assert_int_equal(GNI_MemRegister(a.nic, ADDR(mem), PAGE, NULL, GNI_MEM_UPDATE_REGION, 3, &reserved),
                     GNI_RC_SUCCESS);
    assert_int_equal(GNI_RebuildMemHndl(&reserved, 4, &derived), GNI_RC_SUCCESS);
    GNI_MemDeregister(a.nic, &reserved);
    munmap(mem, PAGE);
}

static void test_attributes_show_what_was_asked_for(void **state)
{
    gni_mem_handle_t handle = register_on(&a, a.mem, PAGE, GNI_MEM_MDD_CLONE | GNI_MEM_READ_ONLY);
    struct gx_side side;
    int yes = 0;

    (void)state;
    assert_int_equal(GNI_MemHndlQueryAttr(&handle, GNI_MEMHNDL_ATTR_CLONE, &yes), GNI_RC_SUCCESS);
    assert_int_equal(yes, 1);
    assert_int_equal(GNI_MemHndlQueryAttr(&handle, GNI_MEMHNDL_ATTR_READONLY, &yes), GNI_RC_SUCCESS);
    assert_int_equal(yes, 1);
    assert_int_equal(GNI_MemHndlQueryAttr(&handle, GNI_MEMHNDL_ATTR_PCI_IOMMU, &yes), GNI_RC_SUCCESS);
    assert_int_equal(yes, 0);
    GNI_MemDeregister(a.nic, &handle);
    gx_open(&side, &fx, 2, 40, GNI_CDM_MODE_USE_PCI_IOMMU);
    assert_int_equal(GNI_MemHndlQueryAttr(&side.mem_hndl, GNI_MEMHNDL_ATTR_PCI_IOMMU, &yes), GNI_RC_SUCCESS);
    assert_int_equal(yes, 1);
    gx_close(&side);
}

/* ---- between processes ---- */

/* All ranks register at index 0 and 1 + rank, whatever their layout; everybody writes to everybody by key. */
static int write_by_keys(struct fx_rank *rank)
{
    uint64_t *words;
    struct gx_side side;

    gx_open(&side, rank->fx, rank->fx->nids[rank->rank], rank->rank, 0);
    words = mmap(NULL, (1 + rank->rank) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FX_CHECK(GNI_SetMddResources(side.nic, N) == GNI_RC_SUCCESS);
    {
        gni_mem_handle_t own;

        FX_CHECK(GNI_MemRegister(side.nic, ADDR(words), PAGE, NULL, GNI_MEM_USE_VMDH, 1, &own) == GNI_RC_SUCCESS);
    }
    pthread_barrier_wait(rank->barrier);
    for (uint32_t to = 0; to < rank->n_ranks; to++) {
        gni_post_descriptor_t d = { .type = GNI_POST_FMA_PUT,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .length = 8,
                                    .local_addr = ADDR(side.mem),
                                    .remote_addr = 8 * rank->rank,
                                    .remote_mem_hndl = handle_of_key(1) };
        gni_post_descriptor_t *done = NULL;
        uint64_t word = 100 + rank->rank;
        gni_ep_handle_t ep;

        memcpy(side.mem, &word, 8);
        FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &ep) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpBind(ep, rank->fx->nids[to], to) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_PostFma(ep, &d) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS && done == &d);
        GNI_EpDestroy(ep);
    }
    pthread_barrier_wait(rank->barrier);
    for (uint32_t from = 0; from < rank->n_ranks; from++)
        FX_CHECK(words[from] == 100 + from);
    gx_close(&side);
    return 0;
}

static void test_processes_write_to_each_other_by_keys(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 4, write_by_keys, NULL), 0);
}

/* Two processes of a job on one node share the block: an index is whose registration came first. */
static int share_the_block(struct fx_rank *rank)
{
    gni_mem_handle_t handle = { 0, 0 };
    struct gx_side side;

    gx_open(&side, rank->fx, 3, rank->rank, 0);
    FX_CHECK(GNI_SetMddResources(side.nic, 4) == GNI_RC_SUCCESS);
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(GNI_MemRegister(side.nic, ADDR(side.mem), PAGE, NULL, GNI_MEM_USE_VMDH, rank->rank, &handle) ==
             GNI_RC_SUCCESS);
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(GNI_MemRegister(side.nic, ADDR(side.mem), PAGE, NULL, GNI_MEM_USE_VMDH, 1 - rank->rank, &handle) ==
             GNI_RC_ERROR_RESOURCE);
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void test_processes_of_a_node_share_the_block(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, share_the_block, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_processes_write_to_each_other_by_keys),
        cmocka_unit_test(test_processes_of_a_node_share_the_block),
        pair_test(test_block_is_needed_and_bounds_the_index),
        pair_test(test_block_is_reserved_and_given_back),
        vmdh_test(test_index_is_taken_once_and_minus_one_is_the_next_free),
        vmdh_test(test_handle_is_the_same_on_every_node),
        vmdh_test(test_handle_of_a_key_addresses_by_offset_from_the_start),
        vmdh_test(test_every_kind_of_post_reaches_a_virtual_region),
        vmdh_test(test_index_used_again_leads_to_the_new_region_only),
        vmdh_test(test_read_only_virtual_region_refuses_puts),
        vmdh_test(test_registrations_are_walked_with_their_virtual_handles),
        vmdh_test(test_reserved_region_is_live_from_its_first_update_on),
        vmdh_test(test_range_may_be_reserved_before_its_memory_is_there),
        pair_test(test_ordinary_region_may_be_reserved_too),
        vmdh_test(test_updates_are_checked),
        vmdh_test(test_derived_handle_names_another_index_of_the_same_layout),
        vmdh_test(test_deriving_needs_a_region_that_was_updated),
        pair_test(test_attributes_show_what_was_asked_for),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
