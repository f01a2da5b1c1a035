/* SPDX-License-Identifier: BSD-3-Clause */
/* Balanced injection: settings and their effect. Specification: spec/ugni.md 2.18, 3.13, 4.3. */
#include "tests/common/raw.h"
#include "tests/conformance/pair.h"

static gni_bi_desc_t limits_of(uint32_t nid)
{
    gni_bi_desc_t desc;

    memset(&desc, 0xff, sizeof(desc));
    fx_set_node(nid);
    assert_int_equal(GNI_GetBIConfig(0, &desc), GNI_RC_SUCCESS);
    return desc;
}

static int restore(void **state)
{
    for (uint32_t nid = 0; nid < 4; nid++) {
        fx_set_node(nid);
        assert_int_equal(GNI_SetBIConfig(0, 0, 0, GNI_BI_FLAG_USE_DEFAULT_SETTINGS), GNI_RC_SUCCESS);
    }
    return close_pair(state);
}

#define injection_test(name) cmocka_unit_test_setup_teardown(name, open_pair, restore)

static void test_node_starts_without_a_limit(void **state)
{
    gni_bi_desc_t desc = limits_of(3);

    (void)state;
    assert_int_equal(desc.current_bw, 100);
    assert_int_equal(desc.current_aot_bw, 100);
    assert_int_equal(desc.current_norbs, 992);
    assert_int_equal(desc.sys_def_bw, 100);
    assert_int_equal(desc.sys_def_aot_bw, 100);
    assert_int_equal(desc.cle_seqnum, 0);
    assert_int_equal(desc.hss_seqnum, 0);
}

static void test_limit_is_of_its_node_and_told_in_both_units(void **state)
{
    gni_bi_desc_t desc;

    (void)state;
    fx_set_node(1);
    assert_int_equal(GNI_SetBIConfig(0, 50, 25, GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE),
                     GNI_RC_SUCCESS);
    assert_int_equal(GNI_BISyncWait(0, 1000), GNI_RC_SUCCESS);
    desc = limits_of(1);
    assert_int_equal(desc.current_bw, 50);
    assert_int_equal(desc.current_aot_bw, 25);
    assert_int_equal(desc.current_norbs, 496);
    assert_int_equal(desc.flags, GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE);
    assert_int_equal(desc.cle_seqnum, desc.hss_seqnum);
    assert_int_equal(limits_of(0).current_bw, 100);
    fx_set_node(1);
    assert_int_equal(GNI_SetBIConfig(0, 248, 0, GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES),
                     GNI_RC_SUCCESS);
    assert_int_equal(limits_of(1).current_bw, 25);
    assert_int_equal(limits_of(1).current_norbs, 248);
    assert_int_equal(limits_of(1).cle_seqnum, desc.cle_seqnum + 1);
}

static void test_limit_after_throttle_alone_leaves_the_current_one(void **state)
{
    (void)state;
    fx_set_node(1);
    assert_int_equal(GNI_SetBIConfig(0, 10, 20, GNI_BI_FLAG_APPLY_AFTER_THROTTLE), GNI_RC_SUCCESS);
    assert_int_equal(limits_of(1).current_bw, 100);
    assert_int_equal(limits_of(1).current_aot_bw, 20);
}

static void test_arguments_are_checked(void **state)
{
    static const struct {
        const char *name;
        uint32_t device;
        uint16_t bw;
        uint16_t aot_bw;
        uint16_t flags;
    } rows[] = {
        { "more than 100 %", 0, 101, 0, GNI_BI_FLAG_APPLY_NOW },
        { "more than 100 % of AOT", 0, 0, 101, GNI_BI_FLAG_APPLY_NOW },
        { "more entries than there are", 0, 993, 0, GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES },
        { "unknown flag", 0, 0, 0, 0x10 },
        { "device 1", 1, 0, 0, GNI_BI_FLAG_APPLY_NOW },
    };
    gni_bi_desc_t desc;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, GNI_SetBIConfig(rows[i].device, rows[i].bw, rows[i].aot_bw, rows[i].flags),
                         GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SetBIConfig(0, 999, 999, GNI_BI_FLAG_USE_DEFAULT_SETTINGS), GNI_RC_SUCCESS); /* not read */
    assert_int_equal(GNI_GetBIConfig(1, &desc), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetBIConfig(0, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_BISyncWait(1, 0), GNI_RC_INVALID_PARAM);
}

static void test_update_is_committed_when_everybody_has_seen_it(void **state)
{
    gni_bi_desc_t desc;
    struct raw raw;

    (void)state;
    assert_int_equal(raw_open(&raw, fx.hosts[fx_host_of(&fx, 2)].server, fx.ptag, fx.cookie, 50, 2), 0);
    atomic_store(&raw.segment->inside, 1); /* on its way past emunic */
    fx_set_node(2);
    assert_int_equal(GNI_SetBIConfig(0, 40, 40, GNI_BI_FLAG_APPLY_NOW), GNI_RC_SUCCESS);
    desc = limits_of(2);
    assert_int_equal(desc.current_bw, 40);
    assert_int_equal((uint16_t)(desc.hss_seqnum + 1), desc.cle_seqnum);
    assert_int_equal(GNI_BISyncWait(0, 20), GNI_RC_TIMEOUT);
    atomic_store(&raw.segment->inside, 2);
    assert_int_equal(GNI_BISyncWait(0, 5000), GNI_RC_SUCCESS);
    assert_int_equal(limits_of(2).hss_seqnum, desc.cle_seqnum);
    raw_close(&raw);
}

/* Nanoseconds for n puts of 32 KiB. */
static uint64_t time_puts(unsigned n)
{
    uint64_t start_ns = emu_clock_ns();

    for (unsigned i = 0; i < n; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 32768, GNI_CQMODE_GLOBAL_EVENT);

        d.type = i % 2 ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT;
        assert_int_equal(run(&d), STATUS_OK);
    }
    return emu_clock_ns() - start_ns;
}

static void test_limited_node_injects_no_faster_than_its_share(void **state)
{
    gni_post_descriptor_t d = gx_put(&b, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    /* One of 992 entries: 10.24 GB/s / 992 = 10.3 MB/s. 2 MiB less the bucket take 0.19 s at least. */
    const unsigned n = 64;

    (void)state;
    time_puts(1);
    fx_set_node(0);
    assert_int_equal(GNI_SetBIConfig(0, 1, 0, GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES),
                     GNI_RC_SUCCESS);
    assert_int_equal(GNI_BISyncWait(0, 1000), GNI_RC_SUCCESS);
    assert_true(time_puts(n) > 180000000);
    assert_int_equal(post_on(b.ep, &d), GNI_RC_SUCCESS); /* the other node is free to inject */
    assert_int_equal(finish_on(b.src_cq, &d), STATUS_OK);
    fx_set_node(0);
    assert_int_equal(GNI_SetBIConfig(0, 0, 0, GNI_BI_FLAG_USE_DEFAULT_SETTINGS), GNI_RC_SUCCESS);
    assert_int_equal(limits_of(0).current_bw, 100);
    assert_true(time_puts(n) < 180000000);
}

static void test_throttle_event_brings_the_second_limit_into_force(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_bi_desc_t before;
    gni_bi_desc_t after;

    (void)state;
    fx_set_node(0);
    assert_int_equal(GNI_SetBIConfig(0, 992, 1,
                                     GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE |
                                         GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES),
                     GNI_RC_SUCCESS);
    before = limits_of(0);
    assert_int_equal(before.current_bw, 100);
    assert_true(time_puts(64) < 180000000);
    fx_add_fault(&fx, "class=fma-put action=throttle count=1 from=0");
    assert_int_equal(run(&d), STATUS_OK); /* the node is throttled, this put is not */
    fx_set_node(0);
    assert_int_equal(GNI_BISyncWait(0, 1000), GNI_RC_SUCCESS);
    after = limits_of(0);
    assert_int_equal(after.current_norbs, 1);
    assert_int_equal(after.current_aot_bw, before.current_aot_bw);
    assert_int_equal((uint16_t)(before.hss_seqnum + 1), after.hss_seqnum);
    assert_int_equal(limits_of(1).current_bw, 100);
    assert_true(time_puts(64) > 180000000);
    fx_clear_faults(&fx);
    fx_set_node(0);
    assert_int_equal(GNI_SetBIConfig(0, 100, 100, GNI_BI_FLAG_APPLY_NOW), GNI_RC_SUCCESS); /* until somebody says so */
    assert_true(time_puts(64) < 180000000);
}

static void test_throttle_event_without_a_second_limit_changes_nothing(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_bi_desc_t before = limits_of(0);

    (void)state;
    fx_add_fault(&fx, "class=any action=throttle");
    assert_int_equal(run(&d), STATUS_OK);
    assert_true(fx_fault_hits(&fx) > 0);
    assert_int_equal(limits_of(0).current_bw, 100);
    assert_int_equal(limits_of(0).cle_seqnum, before.cle_seqnum);
    fx_clear_faults(&fx);
}

static void test_share_of_nothing_still_moves(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);

    (void)state;
    fx_set_node(0);
    assert_int_equal(GNI_SetBIConfig(0, GNI_BI_INJECT_BW_MIN, 0, GNI_BI_FLAG_APPLY_NOW), GNI_RC_SUCCESS);
    assert_int_equal(run(&d), STATUS_OK);
}

static void test_without_emunic_the_defaults_are_told(void **state)
{
    gni_bi_desc_t desc;

    (void)state;
    setenv("EMUNIC_SERVER", "test-nobody-is-here", 1);
    assert_int_equal(GNI_GetBIConfig(0, &desc), GNI_RC_SUCCESS);
    assert_int_equal(desc.current_bw, 100);
    assert_int_equal(GNI_BISyncWait(0, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SetBIConfig(0, 50, 50, GNI_BI_FLAG_APPLY_NOW), GNI_RC_INVALID_PARAM);
    setenv("EMUNIC_SERVER", fx.server, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_starts_without_a_limit),
        injection_test(test_limit_is_of_its_node_and_told_in_both_units),
        injection_test(test_limit_after_throttle_alone_leaves_the_current_one),
        injection_test(test_arguments_are_checked),
        injection_test(test_update_is_committed_when_everybody_has_seen_it),
        injection_test(test_limited_node_injects_no_faster_than_its_share),
        injection_test(test_throttle_event_brings_the_second_limit_into_force),
        injection_test(test_throttle_event_without_a_second_limit_changes_nothing),
        injection_test(test_share_of_nothing_still_moves),
        cmocka_unit_test(test_without_emunic_the_defaults_are_told),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
