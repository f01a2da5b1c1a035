/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows into a space file: what they show, when one serves again, and where they end: number, budget, addresses.
 */
#include "emunic/base/window.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/abi/abi.h"
#include "tests/common/proc.h"

#define MIB (1ull << 20)

static int fd;
static struct emu_windows windows;
static struct emu_window_budget budget;

static int make_file(void **state)
{
    (void)state;
    fd = memfd_create("space", MFD_CLOEXEC);
    windows = (struct emu_windows){ .n = 0 };
    return fd < 0 ? -1 : ftruncate(fd, (off_t)EMU_SPACE_BYTES);
}

static int close_file(void **state)
{
    (void)state;
    emu_windows_fini(&windows);
    return close(fd);
}

static const struct emu_window *get(uint64_t addr, uint64_t len_bytes)
{
    return emu_windows_get(&windows, fd, addr, len_bytes);
}

static void test_window_shows_the_file_at_the_owners_address(void **state)
{
    const uint64_t addr = 0x7f0012345678;
    const struct emu_window *w = get(addr, 5);
    char back[5];

    (void)state;
    assert_non_null(w);
    assert_true(addr >= w->owner_addr && addr + 5 <= w->owner_addr + w->len_bytes);
    assert_int_equal(pwrite(fd, "hello", 5, (off_t)addr), 5);
    assert_memory_equal(w->base + (addr - w->owner_addr), "hello", 5);
    w->base[addr - w->owner_addr] = 'j';
    assert_int_equal(pread(fd, back, 5, (off_t)addr), 5);
    assert_memory_equal(back, "jello", 5);
}

static void test_neighbours_share_a_window(void **state)
{
    const struct emu_window *w = get(0x7f0000000000, 4096);

    (void)state;
    assert_ptr_equal(get(0x7f0000000000 + 4096, 4096), w);
    assert_ptr_equal(get(0x7f0000000000 + 64 * MIB - 1, 1), w);
    assert_int_equal(windows.n, 1);
}

static void test_range_beyond_a_window_gets_another(void **state)
{
    uint8_t *first = get(0x7f0000000000, 4096)->base;
    const struct emu_window *second = get(0x7f0000000000 + 64 * MIB - 1, 2);

    (void)state;
    assert_non_null(second);
    assert_int_equal(windows.n, 2);
    assert_int_equal(second->len_bytes, 128 * MIB);
    first[0] = 42; /* windows stay where they are, and show the same pages */
    assert_int_equal(second->base[0], 42);
    assert_ptr_equal(get(0x7f0000000000, 4096)->base, second->base);
}

static void test_addresses_that_no_process_has_are_refused(void **state)
{
    (void)state;
    assert_null(get(EMU_SPACE_BYTES, 1));
    assert_null(get(UINT64_MAX, 1));
    assert_null(get(EMU_SPACE_BYTES - 1, 2));
    assert_null(get(0, EMU_SPACE_BYTES + 1));
    assert_null(get(4096, UINT64_MAX));
    assert_non_null(get(EMU_SPACE_BYTES - 1, 1));
}

static void test_number_of_windows_is_limited(void **state)
{
    unsigned n = 0;

    (void)state;
    while (n < 2000 && get(n * 128 * MIB, 1))
        n++;
    assert_in_range(n, 256, 1999);
    assert_non_null(get(0, 1)); /* those that are there still serve */
    emu_windows_fini(&windows);
    assert_non_null(get(n * 128 * MIB, 1));
}

static void test_budget_bounds_what_is_mapped(void **state)
{
    (void)state;
    budget.left_bytes = 1ull << 40;
    windows.budget = &budget;
    assert_null(get(0, 2ull << 40));
    assert_int_equal(windows.n, 0);
    assert_non_null(get(0, 1ull << 39));
    assert_null(get(1ull << 41, 3ull << 38));
    assert_non_null(get(1ull << 42, 1ull << 38));
    assert_int_equal(windows.n, 2);
    emu_windows_fini(&windows);
    assert_int_equal(budget.left_bytes, 1ull << 40);
}

static void test_budget_is_shared_by_its_caches(void **state)
{
    struct emu_windows other = { .budget = &budget };

    (void)state;
    budget.left_bytes = 1ull << 40;
    windows.budget = &budget;
    assert_non_null(get(0, 3ull << 38));
    assert_null(emu_windows_get(&other, fd, 0, 3ull << 38));
    emu_windows_fini(&windows);
    assert_non_null(emu_windows_get(&other, fd, 0, 3ull << 38));
    emu_windows_fini(&other);
    assert_int_equal(budget.left_bytes, 1ull << 40);
}

static void test_small_windows_take_of_the_budget_too(void **state)
{
    unsigned n = 0;

    (void)state;
    budget.left_bytes = 4ull << 30;
    windows.budget = &budget;
    while (n < 1000 && get(n * 128 * MIB, 1))
        n++;
    assert_in_range(n, 8, 64);
}

static void test_end_unmaps_everything(void **state)
{
    int before = proc_count_memfd_maps(getpid());

    (void)state;
    for (uint64_t i = 0; i < 50; i++)
        assert_non_null(get(i * 128 * MIB, 1));
    assert_int_equal(proc_count_memfd_maps(getpid()), before + 50);
    emu_windows_fini(&windows);
    assert_int_equal(proc_count_memfd_maps(getpid()), before);
    emu_windows_fini(&windows);
}

/* ---- files that can be shortened, and those that are only read ---- */

static bool is_marked(const struct emu_window *w)
{
    return atomic_load(emu_window_mark(w)) != 0;
}

static void test_window_is_mapped_again_after_its_file_was_short(void **state)
{
    const struct emu_window *w;
    uint8_t *base;

    (void)state;
    windows.can_break = true;
    assert_int_equal(ftruncate(fd, 3 * 4096), 0);
    w = get(0, 3 * 4096);
    base = w->base;
    base[0] = 1;
    assert_false(is_marked(w));
    assert_int_equal(ftruncate(fd, 4096), 0);
    base[4096] = 2;
    assert_true(is_marked(w));
    assert_null(emu_windows_find(&windows, 0, 4096));
    w = get(0, 3 * 4096);
    assert_non_null(w);
    assert_ptr_equal(w->base, base); /* a transfer may hold it */
    assert_false(is_marked(w));
    assert_int_equal(base[0], 1);
    assert_int_equal(windows.n, 1);
    assert_ptr_equal(emu_windows_find(&windows, 0, 4096), w);
    base[4096] = 2;
    assert_true(is_marked(w));
    assert_int_equal(ftruncate(fd, 2 * 4096), 0);
    w = get(0, 3 * 4096);
    base[4096] = 3;
    assert_false(is_marked(w));
}

static void test_window_of_a_space_file_has_no_mark(void **state)
{
    (void)state;
    assert_null(emu_window_mark(get(0, 4096)));
}

static void test_look_up_maps_nothing(void **state)
{
    (void)state;
    assert_null(emu_windows_find(&windows, 0, 4096));
    assert_int_equal(windows.n, 0);
    assert_non_null(get(0, 4096));
    assert_non_null(emu_windows_find(&windows, 4096, 4096));
    assert_null(emu_windows_find(&windows, UINT64_MAX, 4096));
}

static void test_window_for_reading_takes_a_descriptor_for_reading(void **state)
{
    char name[64];
    int read_fd;

    (void)state;
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    read_fd = open(name, O_RDONLY | O_CLOEXEC);
    assert_true(read_fd >= 0);
    assert_null(emu_windows_get(&windows, read_fd, 0, 4096));
    windows.is_read_only = true;
    assert_int_equal(pwrite(fd, "seen", 4, 0), 4);
    assert_memory_equal(emu_windows_get(&windows, read_fd, 0, 4096)->base, "seen", 4);
    close(read_fd);
}

static void test_window_with_large_pages_ends_where_it_must(void **state)
{
    const struct emu_window *w;

    (void)state;
    windows.page_bytes = 2 * MIB;
    w = get(5 * MIB, MIB);
    assert_int_equal(w->owner_addr, 4 * MIB);
    assert_int_equal(w->len_bytes, 2 * MIB);
    w = get(5 * MIB, 2 * MIB);
    assert_int_equal(w->len_bytes, 4 * MIB);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, make_file, close_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_window_shows_the_file_at_the_owners_address),
        UNIT(test_neighbours_share_a_window),
        UNIT(test_range_beyond_a_window_gets_another),
        UNIT(test_addresses_that_no_process_has_are_refused),
        UNIT(test_number_of_windows_is_limited),
        UNIT(test_budget_bounds_what_is_mapped),
        UNIT(test_budget_is_shared_by_its_caches),
        UNIT(test_small_windows_take_of_the_budget_too),
        UNIT(test_end_unmaps_everything),
        UNIT(test_window_is_mapped_again_after_its_file_was_short),
        UNIT(test_window_of_a_space_file_has_no_mark),
        UNIT(test_look_up_maps_nothing),
        UNIT(test_window_for_reading_takes_a_descriptor_for_reading),
        UNIT(test_window_with_large_pages_ends_where_it_must),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
