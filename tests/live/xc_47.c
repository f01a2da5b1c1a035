/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-47: memory of 4 KiB to 64 GiB can be registered and reached up to its last byte; what is not registered, or
 * outside, is an error in the category of address translation. What a translation costs (one level or two) is XC-16.
 */
#include "tests/live/live.h"

#define PAGE 4096ull

static void test_every_size_is_reached_up_to_its_last_byte(void **state)
{
    (void)state;
    for (uint64_t bytes = PAGE; bytes <= 64ull << 30; bytes *= 4) {
        uint8_t *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        uint64_t word = bytes;

        assert_ptr_not_equal(mem, MAP_FAILED);
        d.remote_mem_hndl = register_on(&b, mem, bytes, GNI_MEM_READWRITE);
        d.remote_addr = ADDR(mem) + bytes - 8;
        memcpy(a.mem, &word, 8);
        assert_int_equal(run(&d), STATUS_OK);
        assert_memory_equal(mem + bytes - 8, &word, 8);
        d.remote_addr = ADDR(mem) + bytes; /* one further */
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
        assert_int_equal(GNI_MemDeregister(b.nic, &d.remote_mem_hndl), GNI_RC_SUCCESS);
        munmap(mem, bytes);
    }
}

static void test_bad_addresses_are_told_as_such(void **state)
{
    gni_err_handle_t err = subscribe(&a);
    gni_mem_handle_t gone = register_on(&b, b.mem, PAGE, GNI_MEM_READWRITE);
    gni_mem_handle_t read_only = register_on(&b, b.mem, PAGE, GNI_MEM_READ_ONLY);
    const struct {
        const char *name;
        gni_mem_handle_t handle;
        uint64_t address;
        enum status status;
    } rows[] = {
        { "behind", b.mem_hndl, ADDR(b.mem) + GX_BYTES, STATUS_REMOTE_RANGE },
        { "before", b.mem_hndl, ADDR(b.mem) - PAGE, STATUS_REMOTE_RANGE },
        { "across the end", b.mem_hndl, ADDR(b.mem) + GX_BYTES - 4, STATUS_REMOTE_RANGE },
        { "not registered", gone, ADDR(b.mem), STATUS_BAD_HANDLE },
        { "read only", read_only, ADDR(b.mem), STATUS_REMOTE_PERMISSION },
    };

    (void)state;
    assert_int_equal(GNI_MemDeregister(b.nic, &gone), GNI_RC_SUCCESS);
    memset(b.mem, 0xee, GX_BYTES);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        gni_error_event_t event;

        d.remote_mem_hndl = rows[i].handle;
        d.remote_addr = rows[i].address;
        assert_row_equal(rows[i].name, run(&d), rows[i].status);
        event = next_error(err);
        assert_row_equal(rows[i].name, event.error_category, GNI_ERRMASK_ADDRESS_TRANSLATION);
        assert_row_equal(rows[i].name, event.serial_number, i + 1); /* the counter moves */
        assert_true(event.info_mmrs[2] == rows[i].address);
    }
    assert_true(all_bytes_are(b.mem, 0xee, GX_BYTES));
    assert_int_equal(GNI_MemDeregister(b.nic, &read_only), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_every_size_is_reached_up_to_its_last_byte),
        pair_test(test_bad_addresses_are_told_as_such),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
