/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Gemini machine: the device that programs are told, and what came only with Aries. Specification: spec/ugni.md 2.7,
 * 2.13 to 2.18, 4.3, 4.7.3, 4.8, 4.12.
 */
#include "tests/conformance/pair.h"

static int start_gemini(void **state)
{
    struct fx_options options = { .machine = "gemini" };

    (void)state;
    fx_start(&fx, &options);
    return 0;
}

static gni_nic_device_t device_type(void)
{
    gni_nic_device_t type = GNI_DEVICE_LAST;

    assert_int_equal(GNI_GetDeviceType(&type), GNI_RC_SUCCESS);
    return type;
}

/* ---- device ---- */

/* The first test of the program: nothing has attached yet. */
static void test_device_is_a_gemini_before_anybody_attaches(void **state)
{
    (void)state;
    assert_int_equal(device_type(), GNI_DEVICE_GEMINI);
    assert_int_equal(GNI_GetDeviceType(NULL), GNI_RC_INVALID_PARAM);
}

static void test_device_is_a_gemini_with_a_nic(void **state)
{
    (void)state;
    assert_int_equal(device_type(), GNI_DEVICE_GEMINI);
}

static void test_setting_says_another_device(void **state)
{
    (void)state;
    setenv("EMUNIC_DEVICE", "aries", 1);
    assert_int_equal(device_type(), GNI_DEVICE_ARIES);
    setenv("EMUNIC_DEVICE", "gemini", 1);
    assert_int_equal(device_type(), GNI_DEVICE_GEMINI);
    setenv("EMUNIC_DEVICE", "pisces", 1); /* nothing of the kind: the machine decides */
    assert_int_equal(device_type(), GNI_DEVICE_GEMINI);
    unsetenv("EMUNIC_DEVICE");
}

static void test_nic_attached_under_the_setting_takes_what_that_device_has(void **state)
{
    gni_post_descriptor_t d;

    setenv("EMUNIC_DEVICE", "aries", 1);
    open_pair(state);
    unsetenv("EMUNIC_DEVICE");
    d = word_post(GNI_POST_AMO, 0);
    d.amo_cmd = GNI_FMA_ATOMIC2_SWAP;
    d.first_operand = 5;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(*(uint64_t *)(void *)b.mem, 5);
    close_pair(state);
}

/* ---- atomics ---- */

/* answers: GNI_PostFma */
static gni_return_t post_amo(gni_fma_cmd_type_t command, uint64_t operand1, uint64_t operand2, gni_post_descriptor_t *d)
{
    *d = word_post(GNI_POST_AMO, 64);
    d->amo_cmd = command;
    d->first_operand = operand1;
    d->second_operand = operand2;
    if (command & 0x200)
        d->length = 4;
    return post(d);
}

static void test_first_generation_of_atomics_works(void **state)
{
    static const struct {
        gni_fma_cmd_type_t command;
        uint64_t operand1;
        uint64_t operand2;
        uint64_t after; /* before: 0xf0 */
    } rows[] = {
        { GNI_FMA_ATOMIC_FADD, 1, 0, 0xf1 },     { GNI_FMA_ATOMIC_FADD_C, 1, 0, 0xf1 },
        { GNI_FMA_ATOMIC_FAND, 0x3c, 0, 0x30 },  { GNI_FMA_ATOMIC_FOR, 0x0f, 0, 0xff },
        { GNI_FMA_ATOMIC_FXOR, 0xff, 0, 0x0f },  { GNI_FMA_ATOMIC_FAX, 0x30, 0x11, 0x21 },
        { GNI_FMA_ATOMIC_CSWAP, 0xf0, 7, 7 },    { GNI_FMA_ATOMIC_CSWAP_C, 1, 7, 0xf0 },
        { GNI_FMA_ATOMIC_ADD, 1, 0, 0xf1 },      { GNI_FMA_ATOMIC_AND, 0x3c, 0, 0x30 },
        { GNI_FMA_ATOMIC_OR_C, 0x0f, 0, 0xff },  { GNI_FMA_ATOMIC_XOR, 0xff, 0, 0x0f },
        { GNI_FMA_ATOMIC_AX, 0x30, 0x11, 0x21 },
    };
    uint64_t *target = (uint64_t *)(void *)(b.mem + 64);
    uint64_t *old = (uint64_t *)(void *)(a.mem + 64);
    gni_post_descriptor_t d;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        *target = 0xf0;
        *old = 99;
        assert_int_equal(post_amo(rows[i].command, rows[i].operand1, rows[i].operand2, &d), GNI_RC_SUCCESS);
        assert_int_equal(finish(&d), STATUS_OK);
        assert_int_equal(*target, rows[i].after);
        assert_int_equal(*old, (rows[i].command & 0x100) ? 99 : 0xf0);
    }
}

static void test_second_generation_of_atomics_is_refused(void **state)
{
    static const gni_fma_cmd_type_t commands[] = {
        GNI_FMA_ATOMIC2_FAND,    GNI_FMA_ATOMIC2_FIADD,    GNI_FMA_ATOMIC2_IADD,   GNI_FMA_ATOMIC2_FIADD_S,
        GNI_FMA_ATOMIC2_IADD_SC, GNI_FMA_ATOMIC2_FSWAP,    GNI_FMA_ATOMIC2_SWAP_S, GNI_FMA_ATOMIC2_FCSWAP,
        GNI_FMA_ATOMIC2_CSWAP_S, GNI_FMA_ATOMIC2_FIMIN,    GNI_FMA_ATOMIC2_IMAX_S, GNI_FMA_ATOMIC2_FFPADD,
        GNI_FMA_ATOMIC2_FPMIN_S, GNI_FMA_ATOMIC2_FFPMAX_C, GNI_FMA_ATOMIC2_FAX,    GNI_FMA_ATOMIC2_XOR_C,
    };
    gni_post_descriptor_t d;

    (void)state;
    memset(b.mem + 64, 0x55, 8);
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        assert_int_equal(post_amo(commands[i], 1, 2, &d), GNI_RC_INVALID_PARAM);
    assert_true(all_bytes_are(b.mem + 64, 0x55, 8));
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

static void test_chain_with_a_second_generation_command_is_refused(void **state)
{
    gni_ct_amo_post_descriptor_t second = { .ep_hndl = a.ep,
                                            .remote_addr = ADDR(b.mem + 72),
                                            .remote_mem_hndl = b.mem_hndl,
                                            .length = 8,
                                            .amo_cmd = GNI_FMA_ATOMIC2_IADD,
                                            .first_operand = 1 };
    gni_post_descriptor_t d = word_post(GNI_POST_AMO, 64);

    (void)state;
    *(uint64_t *)(void *)(b.mem + 64) = 0;
    d.amo_cmd = GNI_FMA_ATOMIC_ADD;
    d.first_operand = 1;
    d.next_descr = &second;
    assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
    assert_int_equal(*(uint64_t *)(void *)(b.mem + 64), 0); /* all or nothing */
    second.amo_cmd = GNI_FMA_ATOMIC_ADD;
    assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_OK);
}

/* ---- types and modes ---- */

static void test_flagged_responses_are_refused(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_GET_W_FLAG, 0);

    (void)state;
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
    d.type = GNI_POST_AMO_W_FLAG;
    d.amo_cmd = GNI_FMA_ATOMIC_FADD;
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
}

static void test_put_with_flag_works(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT_W_SYNCFLAG, 0);

    (void)state;
    memset(a.mem, 0x77, 8);
    d.sync_flag_addr = ADDR(b.mem + 8);
    d.sync_flag_value = 12;
    assert_int_equal(run(&d), STATUS_OK);
    assert_true(all_bytes_are(b.mem, 0x77, 8));
    assert_int_equal(*(uint64_t *)(void *)(b.mem + 8), 12);
}

static void test_routing_modes_of_aries_are_refused_and_those_of_gemini_work(void **state)
{
    static const uint16_t refused[] = { GNI_DLVMODE_NMIN_HASH, GNI_DLVMODE_MIN_HASH, GNI_DLVMODE_ADAPTIVE1,
                                        GNI_DLVMODE_ADAPTIVE2, GNI_DLVMODE_ADAPTIVE3 };
    static const uint16_t taken[] = { GNI_DLVMODE_PERFORMANCE, GNI_DLVMODE_NO_ADAPT, GNI_DLVMODE_NO_HASH,
                                      GNI_DLVMODE_NO_RADAPT, GNI_DLVMODE_IN_ORDER };
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_CQWRITE };

    (void)state;
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        gni_post_descriptor_t d = word_post(types[t], 0);

        for (size_t i = 0; i < COUNT_OF(refused); i++) {
            d.dlvr_mode = refused[i];
            assert_int_equal(post(&d), GNI_RC_INVALID_PARAM);
            assert_int_equal(GNI_SmsgSetDeliveryMode(a.nic, refused[i]), GNI_RC_INVALID_PARAM);
        }
        for (size_t i = 0; i < COUNT_OF(taken); i++) {
            d.dlvr_mode = taken[i];
            assert_int_equal(run(&d), STATUS_OK);
            assert_int_equal(GNI_SmsgSetDeliveryMode(a.nic, taken[i]), GNI_RC_SUCCESS);
        }
    }
}

static void test_get_without_write_combining_is_refused(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_GET, 0);

    (void)state;
    d.rdma_mode = GNI_RDMAMODE_GETWC_DIS;
    assert_int_equal(GNI_PostRdma(a.ep, &d), GNI_RC_INVALID_PARAM);
    d.rdma_mode = GNI_RDMAMODE_FENCE;
    assert_int_equal(run(&d), STATUS_OK);
}

static void test_get_to_an_odd_local_address_is_refused(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_GET, GNI_POST_RDMA_GET };

    (void)state;
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        gni_post_descriptor_t d = word_post(types[t], 0);

        d.local_addr += 2;
        assert_int_equal(post(&d), GNI_RC_ALIGNMENT_ERROR);
        d.local_addr += 2;
        assert_int_equal(run(&d), STATUS_OK);
    }
}

/* ---- event data ---- */

static void test_entries_show_all_bits_of_event_data(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_RDMA_PUT, GNI_POST_AMO };
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;

    (void)state;
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        gni_post_descriptor_t d = word_post(types[t], 0);

        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        d.amo_cmd = GNI_FMA_ATOMIC_ADD;
        assert_int_equal(GNI_EpSetEventData(a.ep, 0xfedcba98u + (uint32_t)t, 0x89abcdefu), GNI_RC_SUCCESS);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        /* What was posted keeps what it was posted with. */
        assert_int_equal(GNI_EpSetEventData(a.ep, 1, 2), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0xfedcba98u + t);
        assert_int_equal(GNI_CQ_GET_SOURCE(entry), types[t] == GNI_POST_RDMA_PUT ? 2 : 1);
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
        assert_ptr_equal(done, &d);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0x89abcdefu);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), 0x89abcdefu);
    }
}

static void test_fields_of_an_entry_can_be_set(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    gni_cq_entry_t changed;

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    changed = entry;
    GNI_CQ_SET_INST_ID(changed, 0xffffffffu);
    assert_int_equal(GNI_CQ_GET_INST_ID(changed), 0xffffffffu);
    assert_int_equal(GNI_CQ_GET_TID(changed), GNI_CQ_GET_TID(entry));
    GNI_CQ_SET_TID(changed, 7);
    assert_int_equal(GNI_CQ_GET_TID(changed), 7);
    assert_int_equal(GNI_CQ_GET_INST_ID(changed), 0xffffffffu);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
}

static void test_failed_post_shows_its_event_data(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_EpSetEventData(a.ep, 0xfedcba98u, 2), GNI_RC_SUCCESS);
    d.remote_addr = ADDR(b.mem) + 2 * GX_BYTES;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_STATUS(entry), STATUS_REMOTE_RANGE);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0xfedcba98u);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
    assert_ptr_equal(done, &d);
}

/* ---- translation ---- */

#define BLOCK (2ull << 20)

/* answers: GNI_GetJobResInfo */
static gni_return_t job_resource(gni_job_res_t type, gni_job_res_desc_t *desc_out)
{
    fx_set_node(0); /* where a is */
    return GNI_GetJobResInfo(0, (uint8_t)fx.ptag, type, desc_out);
}

static uint64_t job_use(gni_job_res_t type)
{
    gni_job_res_desc_t desc = { 0, 0 };

    assert_int_equal(job_resource(type, &desc), GNI_RC_SUCCESS);
    return desc.used;
}

static void test_resources_of_a_gemini_have_limits_and_others_are_missing(void **state)
{
    gni_dev_res_desc_t device;
    gni_job_res_desc_t job;

    (void)state;
    fx_set_node(0);
    for (gni_dev_res_t type = GNI_DEV_RES_FIRST + 1; type < GNI_DEV_RES_LAST; type++) {
        bool is_there = type != GNI_DEV_RES_CE && type != GNI_DEV_RES_DLA;

        device = (gni_dev_res_desc_t){ 0 };
        assert_int_equal(GNI_GetDevResInfo(0, type, &device), is_there ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE);
        assert_true(!is_there || (device.total > 0 && device.held + device.available <= device.total));
    }
    for (gni_job_res_t type = GNI_JOB_RES_FIRST + 1; type < GNI_JOB_RES_LAST; type++) {
        bool is_there = type != GNI_JOB_RES_CE && type != GNI_JOB_RES_DLA && type != GNI_JOB_RES_IOMMU;

        job = (gni_job_res_desc_t){ 0 };
        assert_int_equal(job_resource(type, &job), is_there ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE);
        assert_true(!is_there || (job.limit > 0 && job.used <= job.limit));
    }
}

/* `blocks` blocks from the middle of one on: one more than that. */
static uint8_t *off_blocks(size_t blocks, uint8_t **mem_out)
{
    uint8_t *mem = pages((blocks + 2) * BLOCK);

    *mem_out = mem;
    return (uint8_t *)((ADDR(mem) + BLOCK - 1) / BLOCK * BLOCK + BLOCK / 2);
}

static bool has_attr(gni_mem_handle_t handle, gni_mem_handle_attr_t attr)
{
    int yesno = -1;

    assert_int_equal(GNI_MemHndlQueryAttr(&handle, attr, &yesno), GNI_RC_SUCCESS);
    return yesno != 0;
}

static void test_registrations_take_blocks_of_the_mrt_or_pages_of_the_gart(void **state)
{
    uint64_t mrt = job_use(GNI_JOB_RES_MRT);
    uint64_t gart = job_use(GNI_JOB_RES_GART);
    gni_mem_handle_t handle;
    uint8_t *mem;
    uint8_t *from = off_blocks(2, &mem);

    (void)state;
    handle = register_on(&a, from, 2 * BLOCK, GNI_MEM_READWRITE);
    assert_int_equal(job_use(GNI_JOB_RES_MRT), mrt + 3);
    assert_int_equal(job_use(GNI_JOB_RES_GART), gart);
    assert_true(has_attr(handle, GNI_MEMHNDL_ATTR_MRT));
    assert_false(has_attr(handle, GNI_MEMHNDL_ATTR_GART));
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    handle = register_on(&a, from + 4095, 2, GNI_MEM_USE_GART);
    assert_int_equal(job_use(GNI_JOB_RES_MRT), mrt);
    assert_int_equal(job_use(GNI_JOB_RES_GART), gart + 2);
    assert_true(has_attr(handle, GNI_MEMHNDL_ATTR_GART));
    assert_false(has_attr(handle, GNI_MEMHNDL_ATTR_MRT));
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(job_use(GNI_JOB_RES_GART), gart);
    munmap(mem, 4 * BLOCK);
}

/* answers: GNI_MemRegister */
static gni_return_t try_register(uint8_t *mem, uint64_t length, uint32_t flags)
{
    gni_mem_handle_t handle;
    gni_return_t rc = GNI_MemRegister(a.nic, ADDR(mem), length, NULL, flags, (uint32_t)-1, &handle);

    if (rc == GNI_RC_SUCCESS)
        assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    return rc;
}

/* answers: GNI_ConfigureJob */
static gni_return_t set_limits(int32_t mrt, int32_t gart)
{
    gni_job_limits_t limits;

    memset(&limits, 0xff, sizeof(limits));
    limits.a.mrt_limit = mrt;
    limits.b.gart_limit = gart;
    return GNI_ConfigureJob(0, 4711, (uint8_t)fx.ptag, fx.cookie, &limits);
}

static void test_limits_of_translation_entries_hold(void **state)
{
    gni_job_res_desc_t desc;
    uint8_t *mem;
    uint8_t *from = off_blocks(2, &mem);

    (void)state;
    assert_int_equal(set_limits((int32_t)job_use(GNI_JOB_RES_MRT) + 2, 1), GNI_RC_SUCCESS);
    assert_int_equal(job_resource(GNI_JOB_RES_GART, &desc), GNI_RC_SUCCESS);
    assert_int_equal(desc.limit, 1);
    assert_int_equal(try_register(from, 2 * BLOCK, 0), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(try_register(from, BLOCK, 0), GNI_RC_SUCCESS);
    assert_int_equal(try_register(from + 4095, 2, GNI_MEM_USE_GART), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(try_register(from, 2, GNI_MEM_USE_GART), GNI_RC_SUCCESS);
    assert_int_equal(set_limits(-2, -1), GNI_RC_INVALID_PARAM);
    assert_int_equal(set_limits(-1, -2), GNI_RC_INVALID_PARAM);
    assert_int_equal(set_limits(INT32_MAX, INT32_MAX), GNI_RC_SUCCESS);
    assert_int_equal(job_resource(GNI_JOB_RES_GART, &desc), GNI_RC_SUCCESS);
    assert_true(desc.limit > 1 && desc.limit < INT32_MAX); /* what the device has */
    munmap(mem, 4 * BLOCK);
}

static void test_translation_table_is_a_list_of_addresses(void **state)
{
    uint32_t addresses[] = { 8, 4 };
    gni_ntt_descriptor_t table = { .group_size = COUNT_OF(addresses), .granularity = 4, .u.table = addresses };
    gni_ntt_descriptor_t nothing = { .group_size = COUNT_OF(addresses) };
    uint32_t granularity = 0;
    uint32_t base = 77;

    (void)state;
    assert_int_equal(GNI_ConfigureNTT(0, &table, &base), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetNttGran(0, &granularity), GNI_RC_SUCCESS);
    assert_int_equal(granularity, 4);
    assert_int_equal(GNI_ConfigureNTT(0, &nothing, &base), GNI_RC_SUCCESS);
    addresses[1] = 96; /* a node that the machine does not have */
    assert_int_equal(GNI_ConfigureNTT(0, &table, &base), GNI_RC_INVALID_PARAM);
}

/* ---- collective engines ---- */

static void test_collective_engines_are_illegal(void **state)
{
    gni_ce_handle_t ce = NULL;
    gni_ce_result_t result = { 0 };
    gni_post_descriptor_t d = word_post(GNI_POST_CE, 0);

    (void)state;
    assert_int_equal(GNI_CeCreate(a.nic, &ce), GNI_RC_ILLEGAL_OP);
    assert_null(ce);
    assert_int_equal(GNI_EpSetCeAttr(a.ep, 0, 0, GNI_CE_CHILD_PE), GNI_RC_ILLEGAL_OP);
    assert_int_equal(GNI_CeCheckResult(&result, 1), GNI_RC_ILLEGAL_OP);
    d.ce_cmd = GNI_FMA_CE_IADD;
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_is_a_gemini_before_anybody_attaches),
        pair_test(test_device_is_a_gemini_with_a_nic),
        cmocka_unit_test(test_setting_says_another_device),
        cmocka_unit_test(test_nic_attached_under_the_setting_takes_what_that_device_has),
        pair_test(test_first_generation_of_atomics_works),
        pair_test(test_second_generation_of_atomics_is_refused),
        pair_test(test_chain_with_a_second_generation_command_is_refused),
        pair_test(test_flagged_responses_are_refused),
        pair_test(test_put_with_flag_works),
        pair_test(test_routing_modes_of_aries_are_refused_and_those_of_gemini_work),
        pair_test(test_get_without_write_combining_is_refused),
        pair_test(test_get_to_an_odd_local_address_is_refused),
        pair_test(test_entries_show_all_bits_of_event_data),
        pair_test(test_fields_of_an_entry_can_be_set),
        pair_test(test_failed_post_shows_its_event_data),
        cmocka_unit_test(test_resources_of_a_gemini_have_limits_and_others_are_missing),
        pair_test(test_registrations_take_blocks_of_the_mrt_or_pages_of_the_gart),
        pair_test(test_limits_of_translation_entries_hold),
        cmocka_unit_test(test_translation_table_is_a_list_of_addresses),
        pair_test(test_collective_engines_are_illegal),
    };

    return cmocka_run_group_tests(tests, start_gemini, stop_emunic);
}
