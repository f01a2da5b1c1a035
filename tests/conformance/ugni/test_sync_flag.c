/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts with a synchronisation flag: the flag is the last thing that arrives. Specification: spec/ugni.md 4.8.5. */
#include "tests/conformance/pair.h"

#define FLAG_OFFSET 0u
#define BIG_BYTES   (2u << 20)

/* Payload to `offset`, flag to FLAG_OFFSET of b's memory. */
static gni_post_descriptor_t flagged(uint64_t offset, uint64_t length, uint64_t value)
{
    gni_post_descriptor_t d = gx_put(&a, &b, offset, length, GNI_CQMODE_GLOBAL_EVENT);

    d.type = GNI_POST_FMA_PUT_W_SYNCFLAG;
    d.sync_flag_addr = ADDR(b.mem) + FLAG_OFFSET;
    d.sync_flag_value = value;
    return d;
}

static uint64_t read_flag(const void *mem)
{
    return *(const volatile uint64_t *)mem;
}

/* Looks at memory alone, as the target's processor does. */
static void wait_for_flag(const void *mem, uint64_t value)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    while (read_flag(mem) != value && emu_clock_ns() < end_ns)
        ;
    assert_int_equal(read_flag(mem), value);
}

static void test_payload_is_there_when_the_flag_is_seen(void **state)
{
    static const uint64_t sizes[] = { 1, 8, 40, 48, 49, 56, 64, 100, 1000, 8192, 60000 };

    (void)state;
    for (uint64_t round = 1; round <= 30 * COUNT_OF(sizes); round++) {
        uint64_t length = sizes[round % COUNT_OF(sizes)];
        gni_post_descriptor_t d = flagged(64, length, round << 32 | round);

        memset(a.mem + 64, (int)(round & 0xff), length);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        wait_for_flag(b.mem + FLAG_OFFSET, round << 32 | round);
        assert_true(all_bytes_are(b.mem + 64, (uint8_t)round, length));
        assert_int_equal(finish(&d), STATUS_OK);
    }
}

static void test_flag_of_a_long_put_comes_after_its_last_byte(void **state)
{
    uint8_t *source = pages(BIG_BYTES);
    uint8_t *target = pages(BIG_BYTES);
    gni_mem_handle_t handle = register_on(&b, target, BIG_BYTES, GNI_MEM_READWRITE);

    (void)state;
    for (uint64_t round = 1; round <= 20; round++) {
        gni_post_descriptor_t d = flagged(0, BIG_BYTES - 8 - round, round);

        memset(source, (int)round, BIG_BYTES);
        d.local_addr = ADDR(source);
        d.remote_addr = ADDR(target) + 8;
        d.remote_mem_hndl = handle;
        d.sync_flag_addr = ADDR(target); /* directly before the payload */
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        wait_for_flag(target, round);
        assert_true(all_bytes_are(target + 8, (uint8_t)round, d.length));
        assert_int_equal(finish(&d), STATUS_OK);
    }
    GNI_MemDeregister(b.nic, &handle);
    munmap(source, BIG_BYTES);
    munmap(target, BIG_BYTES);
}

static void test_flag_may_lie_directly_behind_the_payload(void **state)
{
    (void)state;
    for (uint64_t length = 8; length < 200; length += 8) {
        gni_post_descriptor_t d = flagged(64, length, 0x1122334455667788);

        memset(b.mem, 0xee, 512);
        memset(a.mem, (int)length, 512);
        d.sync_flag_addr = d.remote_addr + length;
        assert_int_equal(run(&d), STATUS_OK);
        assert_true(all_bytes_are(b.mem + 64, (uint8_t)length, length));
        assert_int_equal(read_flag(b.mem + 64 + length), 0x1122334455667788);
        assert_int_equal(b.mem[63], 0xee);
        assert_int_equal(b.mem[64 + length + 8], 0xee);
    }
}

static void test_put_of_no_bytes_sets_the_flag_alone(void **state)
{
    gni_post_descriptor_t d = flagged(64, 0, 0xfeedfacecafebeef);

    (void)state;
    memset(b.mem + 8, 0xee, 1000);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(read_flag(b.mem + FLAG_OFFSET), 0xfeedfacecafebeef);
    assert_true(all_bytes_are(b.mem + 8, 0xee, 1000));
}

static void test_flag_value_zero_is_written(void **state)
{
    gni_post_descriptor_t d = flagged(64, 16, 0);

    (void)state;
    memset(b.mem, 0xee, 64);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(read_flag(b.mem + FLAG_OFFSET), 0);
    assert_true(all_bytes_are(b.mem + 8, 0xee, 56));
}

static void test_source_of_the_payload_needs_no_registration(void **state)
{
    gni_post_descriptor_t d = flagged(64, 12, 5);
    uint8_t source[12] = "unregistered";

    (void)state;
    d.local_addr = ADDR(source);
    d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(b.mem + 64, source, 12);
}

static void test_one_remote_event_comes_after_data_and_flag(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_EpSetEventData(a.ep, 1, 0xabcd1234), GNI_RC_SUCCESS);
    for (uint64_t round = 1; round <= 100; round++) {
        gni_post_descriptor_t d = flagged(64, round % 2 ? 20 : 5000, round);

        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        memset(a.mem + 64, (int)round, 5000);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), 0xabcd1234);
        assert_int_equal(read_flag(b.mem + FLAG_OFFSET), round);
        assert_true(all_bytes_are(b.mem + 64, (uint8_t)round, d.length));
        assert_int_equal(finish(&d), STATUS_OK);
        assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    }
}

static void test_misaligned_flag_gives_alignment_error(void **state)
{
    (void)state;
    for (unsigned skew = 1; skew < 8; skew++) {
        gni_post_descriptor_t d = flagged(64, 8, 1);

        d.sync_flag_addr += skew;
        assert_int_equal(post(&d), GNI_RC_ALIGNMENT_ERROR);
    }
    wait_for_all_before(&a, &b);
    assert_true(all_bytes_are(b.mem, 0, 256));
}

static void test_flag_outside_the_region_fails_and_touches_nothing(void **state)
{
    static const uint64_t lengths[] = { 0, 16, 200, 60000 };

    (void)state;
    memset(a.mem, 1, GX_BYTES);
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        gni_post_descriptor_t d = flagged(64, lengths[i], 1);

        d.sync_flag_addr = ADDR(b.mem) + GX_BYTES;
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
        d.sync_flag_addr = ADDR(b.mem) - 8;
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    }
    assert_true(all_bytes_are(b.mem, 0, GX_BYTES));
}

static void test_payload_outside_the_region_sets_no_flag(void **state)
{
    gni_post_descriptor_t d = flagged(64, 16, 1);

    (void)state;
    d.remote_addr = ADDR(b.mem) + GX_BYTES - 8;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    assert_true(all_bytes_are(b.mem, 0, GX_BYTES));
}

static void test_flagged_put_to_read_only_memory_fails_and_touches_nothing(void **state)
{
    uint8_t *target = pages(4096);
    gni_mem_handle_t handle = register_on(&b, target, 4096, GNI_MEM_READ_ONLY);
    gni_post_descriptor_t d = flagged(0, 16, 1);

    (void)state;
    memset(a.mem, 1, 64);
    d.remote_addr = ADDR(target) + 64;
    d.remote_mem_hndl = handle;
    d.sync_flag_addr = ADDR(target);
    assert_int_equal(run(&d), STATUS_REMOTE_PERMISSION);
    assert_true(all_bytes_are(target, 0, 4096));
    GNI_MemDeregister(b.nic, &handle);
    munmap(target, 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_payload_is_there_when_the_flag_is_seen),
        pair_test(test_flag_of_a_long_put_comes_after_its_last_byte),
        pair_test(test_flag_may_lie_directly_behind_the_payload),
        pair_test(test_put_of_no_bytes_sets_the_flag_alone),
        pair_test(test_flag_value_zero_is_written),
        pair_test(test_source_of_the_payload_needs_no_registration),
        pair_test(test_one_remote_event_comes_after_data_and_flag),
        pair_test(test_misaligned_flag_gives_alignment_error),
        pair_test(test_flag_outside_the_region_fails_and_touches_nothing),
        pair_test(test_payload_outside_the_region_sets_no_flag),
        pair_test(test_flagged_put_to_read_only_memory_fails_and_touches_nothing),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
