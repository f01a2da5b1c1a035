/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "tests/unit/fabric/fixture.h"

/* Both parities of blades, bundles that are and are not a multiple of the chassis, full size, no global links. */
static const char *const specs[] = {
    "aries",
    "aries:groups=6",
    "aries:groups=8,cables_per_bundle=34",
    "aries:groups=5,chassis=4,blades=7",
    "aries:groups=3,chassis=1,blades=1",
    "aries:groups=4,chassis=5,blades=6,last_chassis=2",
    "aries:groups=3,last_chassis=1",
    "aries:groups=1,chassis=1,blades=1",
    "aries:groups=241",
};

static void for_each_machine(void (*check)(const struct emu_machine *m))
{
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        check(m);
        emu_machine_destroy(m);
    }
}

static void check_ends(const struct emu_machine *m)
{
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);
        struct emu_place from, to;

        assert_int_equal(l.id, id);
        if (l.link_class == EMU_LINK_PROCESSOR_IN || l.link_class == EMU_LINK_PROCESSOR_OUT) {
            bool is_in = l.link_class == EMU_LINK_PROCESSOR_IN;
            const struct emu_link_end *nic = is_in ? &l.from : &l.to;
            const struct emu_link_end *router = is_in ? &l.to : &l.from;

            assert_int_equal(nic->kind, EMU_END_NIC);
            assert_int_equal(router->kind, EMU_END_ROUTER);
            assert_int_equal(place_of(m, nic->index).router, router->index);
            continue;
        }
        assert_int_equal(l.from.kind, EMU_END_ROUTER);
        assert_int_equal(l.to.kind, EMU_END_ROUTER);
        assert_in_range(l.from.index, 0, emu_machine_n_routers(m) - 1);
        assert_in_range(l.to.index, 0, emu_machine_n_routers(m) - 1);
        from = place_of_router(m, l.from.index);
        to = place_of_router(m, l.to.index);
        if (l.link_class == EMU_LINK_BLUE) {
            assert_int_not_equal(from.group, to.group);
            continue;
        }
        assert_int_equal(from.group, to.group);
        assert_int_equal(from.chassis == to.chassis, l.link_class == EMU_LINK_GREEN);
        assert_int_equal(from.blade == to.blade, l.link_class == EMU_LINK_BLACK);
    }
}

static void test_ends_of_every_link_fit_its_class(void **state)
{
    (void)state;
    for_each_machine(check_ends)
        ;
}

static void check_reverse(const struct emu_machine *m)
{
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);
        struct emu_link back;
        uint32_t reverse, again;

        assert_int_equal(emu_link_reverse(m, id, &reverse), 0);
        assert_int_not_equal(reverse, id);
        back = link_of(m, reverse);
        assert_memory_equal(&back.from, &l.to, sizeof(l.to));
        assert_memory_equal(&back.to, &l.from, sizeof(l.from));
        assert_int_equal(back.number, l.number);
        assert_int_equal(emu_link_reverse(m, reverse, &again), 0);
        assert_int_equal(again, id);
    }
}

static void test_every_link_has_a_reverse_over_the_same_wires(void **state)
{
    (void)state;
    for_each_machine(check_reverse)
        ;
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Two links with one name would be two links with the same ends, class and number. */
static void check_names(const struct emu_machine *m)
{
    uint32_t n = emu_machine_n_links(m);
    char(*names)[EMU_LINK_NAME_MAX];

    if (n > 100000)
        return;
    names = calloc(n, sizeof(*names));
    assert_non_null(names);
    for (uint32_t id = 0; id < n; id++)
        assert_int_equal(emu_link_name(m, id, names[id], sizeof(names[id])), 0);
    qsort(names, n, sizeof(*names), compare_texts);
    for (uint32_t i = 1; i < n; i++)
        assert_string_not_equal(names[i - 1], names[i]);
    free(names);
}

static void test_every_link_has_a_name_of_its_own(void **state)
{
    (void)state;
    for_each_machine(check_names)
        ;
}

static void test_names_read_from_to_class_number(void **state)
{
    struct emu_machine *m = load("aries");
    char name[EMU_LINK_NAME_MAX];

    (void)state;
    /* ids as dragonfly.c lists them: 2 x 768 processor links, 192 x 15 green, 192 x 15 black */
    emu_link_name(m, 1, name, sizeof(name));
    assert_string_equal(name, "c0-0c0s0n1 -> c0-0c0s0a0 processor-in 0");
    emu_link_name(m, 768 + 1, name, sizeof(name));
    assert_string_equal(name, "c0-0c0s0a0 -> c0-0c0s0n1 processor-out 0");
    emu_link_name(m, 2 * 768 + 2, name, sizeof(name));
    assert_string_equal(name, "c0-0c0s0a0 -> c0-0c0s3a0 green 0");
    emu_link_name(m, 2 * 768 + 192 * 15 + 2 * 3 + 1, name, sizeof(name));
    assert_string_equal(name, "c0-0c0s0a0 -> c1-0c0s0a0 black 1");
    emu_link_name(m, 2 * 768 + 2 * 192 * 15 + 5, name, sizeof(name));
    assert_string_equal(name, "c0-0c1s1a0 -> c2-0c1s1a0 blue 5");
    emu_machine_destroy(m);
}

static void test_bandwidth_is_the_published_one(void **state)
{
    static const uint64_t bytes_per_s[EMU_LINK_CLASSES] = {
        [EMU_LINK_PROCESSOR_IN] = 21000000000, [EMU_LINK_PROCESSOR_OUT] = 21000000000, [EMU_LINK_GREEN] = 5250000000,
        [EMU_LINK_BLACK] = 5250000000,         [EMU_LINK_BLUE] = 4687500000,
    };
    struct emu_machine *m = load("aries");

    (void)state;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);
        bool is_on_chip = l.link_class == EMU_LINK_PROCESSOR_IN || l.link_class == EMU_LINK_PROCESSOR_OUT;

        assert_int_equal(l.bytes_per_s, bytes_per_s[l.link_class]);
        assert_int_equal(l.data_bytes_per_s, is_on_chip ? l.bytes_per_s : l.bytes_per_s / 10 * 9);
    }
    emu_machine_destroy(m);
}

static void test_link_outside_the_machine_is_refused(void **state)
{
    struct emu_machine *m = load("aries");
    struct emu_link l = { .id = 77 };
    uint32_t n = emu_machine_n_links(m);
    uint32_t reverse = 77;
    char name[EMU_LINK_NAME_MAX] = "kept";

    (void)state;
    assert_int_equal(emu_link_get(m, n, &l), -ERANGE);
    assert_int_equal(emu_link_reverse(m, n, &reverse), -ERANGE);
    assert_int_equal(emu_link_name(m, n, name, sizeof(name)), -ERANGE);
    assert_int_equal(emu_link_name(m, 0, name, 10), -ENOSPC);
    assert_int_equal(l.id, 77);
    assert_int_equal(reverse, 77);
    assert_string_equal(name, "kept");
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends_of_every_link_fit_its_class),
        cmocka_unit_test(test_every_link_has_a_reverse_over_the_same_wires),
        cmocka_unit_test(test_every_link_has_a_name_of_its_own),
        cmocka_unit_test(test_names_read_from_to_class_number),
        cmocka_unit_test(test_bandwidth_is_the_published_one),
        cmocka_unit_test(test_link_outside_the_machine_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
