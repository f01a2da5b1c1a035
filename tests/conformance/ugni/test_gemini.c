/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Gemini machine: the device that programs are told, and what came only with Aries. Specification: ugni.md 2.7, 2.13
 * to 2.18, 4.3, 4.7.3, 4.8, 4.12.
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
    setenv("EMUNIC_DEVICE", "pisces", 1);   /* nothing of the kind: the machine decides */
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
        uint64_t after;         /* before: 0xf0 */
    } rows[] = {
        { GNI_FMA_ATOMIC_FADD, 1, 0, 0xf1 },          { GNI_FMA_ATOMIC_FADD_C, 1, 0, 0xf1 },
        { GNI_FMA_ATOMIC_FAND, 0x3c, 0, 0x30 },       { GNI_FMA_ATOMIC_FOR, 0x0f, 0, 0xff },
        { GNI_FMA_ATOMIC_FXOR, 0xff, 0, 0x0f },       { GNI_FMA_ATOMIC_FAX, 0x30, 0x11, 0x21 },
        { GNI_FMA_ATOMIC_CSWAP, 0xf0, 7, 7 },         { GNI_FMA_ATOMIC_CSWAP_C, 1, 7, 0xf0 },
        { GNI_FMA_ATOMIC_ADD, 1, 0, 0xf1 },           { GNI_FMA_ATOMIC_AND, 0x3c, 0, 0x30 },
        { GNI_FMA_ATOMIC_OR_C, 0x0f, 0, 0xff },       { GNI_FMA_ATOMIC_XOR, 0xff, 0, 0x0f },
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
        GNI_FMA_ATOMIC2_FAND,    GNI_FMA_ATOMIC2_FIADD,    GNI_FMA_ATOMIC2_IADD,     GNI_FMA_ATOMIC2_FIADD_S,
        GNI_FMA_ATOMIC2_IADD_SC, GNI_FMA_ATOMIC2_FSWAP,    GNI_FMA_ATOMIC2_SWAP_S,   GNI_FMA_ATOMIC2_FCSWAP,
        GNI_FMA_ATOMIC2_CSWAP_S, GNI_FMA_ATOMIC2_FIMIN,    GNI_FMA_ATOMIC2_IMAX_S,   GNI_FMA_ATOMIC2_FFPADD,
        GNI_FMA_ATOMIC2_FPMIN_S, GNI_FMA_ATOMIC2_FFPMAX_C, GNI_FMA_ATOMIC2_FAX,      GNI_FMA_ATOMIC2_XOR_C,
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
    gni_ct_amo_post_descriptor_t second = { .ep_hndl = a.ep, .remote_addr = ADDR(b.mem + 72),
                                            .remote_mem_hndl = b.mem_hndl, .length = 8,
                                            .amo_cmd = GNI_FMA_ATOMIC2_IADD, .first_operand = 1 };
    gni_post_descriptor_t d = word_post(GNI_POST_AMO, 64);

    (void)state;
    *(uint64_t *)(void *)(b.mem + 64) = 0;
    d.amo_cmd = GNI_FMA_ATOMIC_ADD;
    d.first_operand = 1;
    d.next_descr = &second;
    assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
    assert_int_equal(*(uint64_t *)(void *)(b.mem + 64), 0);     /* all or nothing */
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
        pair_test(test_collective_engines_are_illegal),
    };

    return cmocka_run_group_tests(tests, start_gemini, stop_emunic);
}
