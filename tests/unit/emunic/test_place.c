/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where emunic runs, on hosts that hwloc makes of a description: a choice names its processors and says why.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emunic/place/place.h"

#define SETS_MAX 8

/* Processors 0-7 on the first socket, 8-15 on the second. */
#define TWO_SOCKETS     "pack:2 numa:1 core:8 pu:1"
/* Socket 0: 0-7, cores of 0 and 1, 2 and 3, ...; socket 1: 8-15. */
#define TWO_SOCKETS_SMT "pack:2 numa:1 core:4 pu:2"

/* A question: sets as lists, ranks as pairs of set and number, and the answer. */
struct question {
    const char *host;
    const char *allowed; /* NULL: all */
    const char *near;    /* NULL: not known */
    struct {
        const char *set;
        unsigned n;
    } ranks[SETS_MAX];
    const char *answer; /* "": the scheduler */
    const char *why;    /* a part of it */
};

static hwloc_bitmap_t set_of(const char *list)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();

    assert_non_null(set);
    assert_int_equal(emu_place_parse(list, set), 0);
    return set;
}

static void ask(const struct question *q)
{
    struct emu_place_ranks ranks[SETS_MAX];
    hwloc_bitmap_t sets[SETS_MAX];
    struct emu_place_view view = { .device = q->near ? "nic0" : NULL, .ranks = ranks };
    hwloc_bitmap_t answer = hwloc_bitmap_alloc();
    hwloc_bitmap_t allowed;
    hwloc_bitmap_t near = q->near ? set_of(q->near) : NULL;
    char why[EMU_PLACE_WHY_MAX];
    char text[128];

    assert_int_equal(hwloc_topology_init(&view.topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(view.topology, q->host), 0);
    assert_int_equal(hwloc_topology_load(view.topology), 0);
    allowed = q->allowed ? set_of(q->allowed) : hwloc_bitmap_dup(hwloc_topology_get_topology_cpuset(view.topology));
    for (; view.n_ranks < SETS_MAX && q->ranks[view.n_ranks].set; view.n_ranks++) {
        sets[view.n_ranks] = set_of(q->ranks[view.n_ranks].set);
        ranks[view.n_ranks] = (struct emu_place_ranks){ .set = sets[view.n_ranks], .n = q->ranks[view.n_ranks].n };
    }
    view.allowed = allowed;
    view.near = near;
    assert_int_equal(emu_place_choose(&view, answer, why), 0);
    hwloc_bitmap_list_snprintf(text, sizeof(text), answer);
    assert_string_equal(text, q->answer);
    if (!strstr(why, q->why))
        fail_msg("'%s' is not in '%s'", q->why, why);
    while (view.n_ranks > 0)
        hwloc_bitmap_free(sets[--view.n_ranks]);
    hwloc_bitmap_free(answer);
    hwloc_bitmap_free(allowed);
    hwloc_bitmap_free(near);
    hwloc_topology_destroy(view.topology);
}

#define ASK(...) ask(&(struct question){ __VA_ARGS__ })

/* ---- nobody is bound ---- */

static void test_without_device_and_bound_ranks_the_scheduler_chooses(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .answer = "", .why = "no rank is bound");
    ASK(TWO_SOCKETS, .ranks = { { "0-15", 4 } }, .answer = "", .why = "no rank is bound");
    ASK("core:1 pu:1", .ranks = { { "0", 2 } }, .answer = "", .why = "no rank is bound");
    ASK("core:2 pu:1", .ranks = { { "0-1", 2 } }, .answer = "", .why = "no rank is bound");
}

static void test_near_the_device_where_ranks_may_run_everywhere(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .near = "8-15", .answer = "8-15", .why = "near nic0");
    ASK(TWO_SOCKETS, .near = "8-15", .ranks = { { "0-15", 12 } }, .answer = "8-15", .why = "near nic0");
}

static void test_ranks_that_fill_the_host_leave_it_to_the_scheduler(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .near = "8-15", .ranks = { { "0-15", 16 } }, .answer = "", .why = "every core");
    ASK(TWO_SOCKETS_SMT, .near = "8-15", .ranks = { { "0-15", 8 } }, .answer = "", .why = "every core");
}

static void test_never_tied_to_a_single_core_near_the_device(void **state)
{
    (void)state;
    ASK("numa:2 core:1 pu:1", .near = "1", .answer = "", .why = "as near to nic0");
    ASK("numa:2 core:1 pu:2", .near = "2-3", .ranks = { { "0-3", 1 } }, .answer = "", .why = "as near to nic0");
}

static void test_a_device_that_is_near_to_all_says_nothing(void **state)
{
    (void)state;
    ASK("core:4 pu:1", .near = "0-3", .answer = "", .why = "as near to nic0");
    ASK("core:1 pu:1", .near = "0", .answer = "", .why = "as near to nic0");
}

/* ---- bound ranks ---- */

static void test_near_the_device_and_away_from_the_ranks(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .near = "8-15", .ranks = { { "8", 1 }, { "9", 1 }, { "0", 1 } }, .answer = "10-15",
        .why = "away from the ranks' cores, near nic0");
}

static void test_a_free_core_goes_before_nearness(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .near = "8-15", .ranks = { { "8-15", 8 } }, .answer = "0-7", .why = "away from the ranks' cores");
}

static void test_siblings_of_a_ranks_processor_are_its_core(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS_SMT, .near = "8-15", .ranks = { { "8", 1 }, { "10", 1 } }, .answer = "12-15", .why = "near nic0");
    ASK("core:2 pu:2", .ranks = { { "0", 1 } }, .answer = "2-3", .why = "away from the ranks' cores");
}

static void test_siblings_where_each_core_has_a_rank(void **state)
{
    (void)state;
    ASK("core:4 pu:2", .ranks = { { "0", 1 }, { "2", 1 }, { "4", 1 }, { "6", 1 } }, .answer = "1,3,5,7",
        .why = "hardware threads without ranks");
    ASK(TWO_SOCKETS_SMT, .near = "8-15", .ranks = { { "0,2,4,6,8,10,12,14", 8 } }, .answer = "9,11,13,15",
        .why = "near nic0");
}

static void test_bound_ranks_that_fill_a_small_host(void **state)
{
    (void)state;
    ASK("core:2 pu:1", .ranks = { { "0", 1 }, { "1", 1 } }, .answer = "", .why = "every core");
    ASK("core:4 pu:1", .ranks = { { "0", 1 }, { "1", 1 }, { "2", 1 }, { "3", 1 } }, .answer = "", .why = "every core");
    ASK("core:4 pu:1", .ranks = { { "0", 1 }, { "1", 1 }, { "2", 1 } }, .answer = "3",
        .why = "away from the ranks' cores");
}

static void test_ranks_bound_to_sockets_that_they_do_not_fill(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .near = "8-15", .ranks = { { "0-7", 2 }, { "8-15", 2 } }, .answer = "8-15", .why = "near nic0");
    ASK(TWO_SOCKETS, .near = "8-15", .ranks = { { "0-7", 2 }, { "8-15", 8 } }, .answer = "", .why = "every core");
    ASK(TWO_SOCKETS, .near = "8-15", .ranks = { { "0-7", 2 }, { "8-13", 6 }, { "14-15", 1 } }, .answer = "14-15",
        .why = "near nic0");
    ASK(TWO_SOCKETS, .ranks = { { "0-7", 2 }, { "8-15", 2 } }, .answer = "", .why = "every core");
}

static void test_without_device_near_the_ranks(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .ranks = { { "8", 1 }, { "9", 1 } }, .answer = "10-15", .why = "near the ranks");
    ASK(TWO_SOCKETS, .ranks = { { "0", 1 }, { "9", 1 } }, .answer = "1-8,10-15", .why = "away from the ranks' cores");
}

static void test_ranks_that_are_not_bound_may_come_to_any_core(void **state)
{
    (void)state;
    ASK("core:4 pu:1", .ranks = { { "0", 1 }, { "0-3", 3 } }, .answer = "", .why = "every core");
    ASK("core:4 pu:1", .ranks = { { "0", 1 }, { "0-3", 2 } }, .answer = "1-3", .why = "away from the ranks' cores");
}

/* ---- a part of a host ---- */

static void test_only_what_the_control_group_allows(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .allowed = "6-9", .near = "8-15", .ranks = { { "6-9", 1 } }, .answer = "8-9", .why = "near nic0");
    ASK(TWO_SOCKETS, .allowed = "4-9", .ranks = { { "4", 1 } }, .answer = "5-7", .why = "near the ranks");
    ASK(TWO_SOCKETS, .allowed = "0-3", .near = "8-15", .answer = "", .why = "as near to nic0");
    ASK(TWO_SOCKETS, .allowed = "0-1", .ranks = { { "0-1", 2 } }, .answer = "", .why = "no rank is bound");
}

static void test_ranks_elsewhere_disturb_nobody(void **state)
{
    (void)state;
    ASK(TWO_SOCKETS, .allowed = "0-3", .ranks = { { "8", 1 }, { "9", 1 } }, .answer = "",
        .why = "the scheduler chooses");
    ASK(TWO_SOCKETS, .allowed = "0-3", .ranks = { { "2-9", 1 } }, .answer = "0-1", .why = "away from the ranks' cores");
}

static void test_a_host_that_tells_no_cores(void **state)
{
    (void)state;
    ASK("numa:1 pu:4", .ranks = { { "0", 1 }, { "1", 1 } }, .answer = "2-3", .why = "away from the ranks' cores");
}

static void test_topology_is_asked_for_only_when_it_matters(void **state)
{
    hwloc_bitmap_t all = set_of("0-3");
    hwloc_bitmap_t one = set_of("1");
    struct emu_place_ranks ranks = { .set = all, .n = 4 };
    struct emu_place_view view = { .allowed = all, .ranks = &ranks, .n_ranks = 1 };

    (void)state;
    assert_false(emu_place_needs_topology(&view));
    view.near = one;
    assert_true(emu_place_needs_topology(&view));
    view.near = NULL;
    ranks.set = one;
    assert_true(emu_place_needs_topology(&view));
    hwloc_bitmap_free(all);
    hwloc_bitmap_free(one);
}

/* ---- words ---- */

static void test_lists(void **state)
{
    static const char *const bad[] = { "",   "a",  "1-",     "-1",  "3-1", "1,,2",
                                       "1,", ",1", "0-8192", "1 2", "0x3", "99999999999999999999" };
    hwloc_bitmap_t set = set_of("0-2,7,5");
    char text[32];

    (void)state;
    hwloc_bitmap_list_snprintf(text, sizeof(text), set);
    assert_string_equal(text, "0-2,5,7");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(emu_place_parse(bad[i], set), -EINVAL);
    hwloc_bitmap_free(set);
}

static void test_own_processors(void **state)
{
    hwloc_bitmap_t before = hwloc_bitmap_alloc();
    hwloc_bitmap_t one = hwloc_bitmap_alloc();
    hwloc_bitmap_t after = hwloc_bitmap_alloc();

    (void)state;
    assert_int_equal(emu_place_affinity(0, before), 0);
    hwloc_bitmap_only(one, (unsigned)hwloc_bitmap_first(before));
    assert_int_equal(emu_place_bind(one), 0);
    assert_int_equal(emu_place_affinity(getpid(), after), 0);
    assert_true(hwloc_bitmap_isequal(one, after));
    assert_int_equal(emu_place_bind(before), 0);
    hwloc_bitmap_free(before);
    hwloc_bitmap_free(one);
    hwloc_bitmap_free(after);
}

/* ---- devices ---- */

static void write_device(const char *folder, const char *kind, const char *name, const char *mask)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "mkdir -p %s/%s/%s/device", folder, kind, name);
    assert_int_equal(system(path), 0);
    snprintf(path, sizeof(path), "%s/%s/%s/device/local_cpus", folder, kind, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s\n", mask);
    assert_int_equal(fclose(file), 0);
}

static void test_what_is_near_a_device(void **state)
{
    char folder[] = "/tmp/emunic-place.XXXXXX";
    hwloc_bitmap_t near = hwloc_bitmap_alloc();
    char text[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    write_device(folder, "infiniband", "mlx5_0", "ff,00000000");
    write_device(folder, "net", "eth0", "0f");
    write_device(folder, "net", "none0", "0");
    assert_int_equal(emu_place_near(folder, "mlx5_0", near), 0);
    hwloc_bitmap_list_snprintf(text, sizeof(text), near);
    assert_string_equal(text, "32-39");
    assert_int_equal(emu_place_near(folder, "mlx5_0-dgram", near), 0);
    assert_int_equal(emu_place_near(folder, "eth0", near), 0);
    hwloc_bitmap_list_snprintf(text, sizeof(text), near);
    assert_string_equal(text, "0-3");
    assert_int_equal(emu_place_near(folder, "none0", near), -ENOENT);
    assert_int_equal(emu_place_near(folder, "lo", near), -ENOENT);
    assert_int_equal(emu_place_near(folder, "../net/eth0", near), -ENOENT);
    assert_int_equal(emu_place_near(folder, "..", near), -ENOENT);
    assert_int_equal(emu_place_near(folder, "", near), -ENOENT);
    hwloc_bitmap_free(near);
    snprintf(text, sizeof(text), "rm -r %s", folder);
    assert_int_equal(system(text), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_device_and_bound_ranks_the_scheduler_chooses),
        cmocka_unit_test(test_near_the_device_where_ranks_may_run_everywhere),
        cmocka_unit_test(test_ranks_that_fill_the_host_leave_it_to_the_scheduler),
        cmocka_unit_test(test_never_tied_to_a_single_core_near_the_device),
        cmocka_unit_test(test_a_device_that_is_near_to_all_says_nothing),
        cmocka_unit_test(test_near_the_device_and_away_from_the_ranks),
        cmocka_unit_test(test_a_free_core_goes_before_nearness),
        cmocka_unit_test(test_siblings_of_a_ranks_processor_are_its_core),
        cmocka_unit_test(test_siblings_where_each_core_has_a_rank),
        cmocka_unit_test(test_bound_ranks_that_fill_a_small_host),
        cmocka_unit_test(test_ranks_bound_to_sockets_that_they_do_not_fill),
        cmocka_unit_test(test_without_device_near_the_ranks),
        cmocka_unit_test(test_ranks_that_are_not_bound_may_come_to_any_core),
        cmocka_unit_test(test_only_what_the_control_group_allows),
        cmocka_unit_test(test_ranks_elsewhere_disturb_nobody),
        cmocka_unit_test(test_a_host_that_tells_no_cores),
        cmocka_unit_test(test_topology_is_asked_for_only_when_it_matters),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_own_processors),
        cmocka_unit_test(test_what_is_near_a_device),
    };

    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
