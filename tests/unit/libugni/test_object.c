/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles of libugni: live, dead, of another kind, made up. Model: the top comment of libugni/src/object.c.
 */
#include "libugni/src/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/common/seed.h"

static int things[4];

static void *add(enum gnii_kind kind, void *object)
{
    void *handle = NULL;

    assert_int_equal(gnii_object_add(kind, object, &handle), 0);
    return handle;
}

static void test_handle_finds_its_object(void **state)
{
    void *a = add(GNII_KIND_EP, &things[0]);
    void *b = add(GNII_KIND_EP, &things[1]);

    (void)state;
    assert_ptr_equal(gnii_object_find(GNII_KIND_EP, a), &things[0]);
    assert_ptr_equal(gnii_object_find(GNII_KIND_EP, b), &things[1]);
    gnii_object_remove(a);
    gnii_object_remove(b);
}

static void test_handle_of_another_kind_finds_nothing(void **state)
{
    void *handle = add(GNII_KIND_CQ, &things[0]);

    (void)state;
    assert_null(gnii_object_find(GNII_KIND_CDM, handle));
    assert_null(gnii_object_find(GNII_KIND_NIC, handle));
    assert_null(gnii_object_find(GNII_KIND_EP, handle));
    gnii_object_remove(handle);
}

static void test_removed_handle_finds_nothing(void **state)
{
    void *handle = add(GNII_KIND_NIC, &things[0]);

    (void)state;
    gnii_object_remove(handle);
    assert_null(gnii_object_find(GNII_KIND_NIC, handle));
    for (unsigned i = 0; i < 1000; i++) {
        void *other = add(GNII_KIND_NIC, &things[1]);

        assert_null(gnii_object_find(GNII_KIND_NIC, handle));
        gnii_object_remove(other);
    }
}

static void test_made_up_handles_find_nothing(void **state)
{
    struct emu_random random = seeded(51);
    void *live = add(GNII_KIND_EP, &things[0]);
    static const uint64_t edges[] = { 0, 1, 2, 0x77, 0x1000000, 0x3000002, UINT64_MAX, 1ull << 47 };

    (void)state;
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
        assert_null(gnii_object_find(GNII_KIND_EP, (void *)(uintptr_t)edges[i]));
    assert_null(gnii_object_find(GNII_KIND_EP, things));
    for (unsigned i = 0; i < 100000; i++) {
        uint64_t bits = emu_random_next(&random) >> emu_random_below(&random, 40);

        if (bits != (uint64_t)(uintptr_t)live)
            assert_null(gnii_object_find(GNII_KIND_EP, (void *)(uintptr_t)bits));
    }
    gnii_object_remove(live);
}

static void test_keys_of_live_handles_differ_and_are_never_0_or_1(void **state)
{
    void *handles[500];
    bool is_seen[1u << 16] = { false };

    (void)state;
    for (unsigned i = 0; i < 500; i++) {
        unsigned key;

        handles[i] = add(GNII_KIND_EP, &things[i % 4]);
        key = gnii_object_key(handles[i]);
        assert_in_range(key, 2, (1u << 16) - 1);
        assert_false(is_seen[key]);
        is_seen[key] = true;
    }
    for (unsigned i = 0; i < 500; i++)
        gnii_object_remove(handles[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handle_finds_its_object),
        cmocka_unit_test(test_handle_of_another_kind_finds_nothing),
        cmocka_unit_test(test_removed_handle_finds_nothing),
        cmocka_unit_test(test_made_up_handles_find_nothing),
        cmocka_unit_test(test_keys_of_live_handles_differ_and_are_never_0_or_1),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
