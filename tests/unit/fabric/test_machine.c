/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "emunic/abi/abi.h"
#include "emunic/fabric/dragonfly.h"
#include "tests/unit/fabric/fixture.h"

/* Full size, default, partly filled, odd and minimal. */
static const char *const specs[] = {
    "aries",
    "aries:groups=241",
    "aries:groups=34,cabinet_columns=12",
    "aries:groups=5,chassis=4,blades=7,cabinet_columns=4",
    "aries:groups=2,chassis=1,blades=1",
    "aries:groups=4,chassis=5,blades=6,last_chassis=2",
    "aries:groups=1,chassis=1,blades=1",
};

static void for_each_machine(void (*check)(const struct emu_machine *m))
{
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        check(m);
        emu_machine_destroy(m);
    }
}

static void test_default_machine_is_two_full_groups(void **state)
{
    struct emu_machine *m = load("aries");

    (void)state;
    assert_string_equal(emu_machine_name(m), "aries");
    assert_string_equal(emu_machine_topology(m), "dragonfly");
    assert_int_equal(emu_machine_n_nodes(m), 768);
    assert_int_equal(emu_machine_n_routers(m), 192);
    emu_machine_destroy(m);
}

/* XC-21 */
static void test_largest_machine_has_241_groups_and_92544_nodes(void **state)
{
    struct emu_machine *m = load("aries:groups=241");
    struct emu_dragonfly_shape shape;

    (void)state;
    assert_int_equal(emu_dragonfly_shape(m, &shape), 0);
    assert_int_equal(shape.groups, 241);
    assert_int_equal(emu_machine_n_nodes(m), 92544);
    assert_int_equal(emu_machine_n_routers(m), 92544 / 4);
    assert_int_equal(shape.connectors_per_group, 240);
    assert_int_equal(shape.connectors_per_group * EMU_XC_LINKS_PER_CABLE, 960);
    assert_int_equal(place_of(m, 92543).group, 240);
    emu_machine_destroy(m);
}

static void check_places(const struct emu_machine *m)
{
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        struct emu_place p = place_of(m, nid);
        uint32_t back;

        assert_int_equal(emu_machine_nid_at(m, p.group, p.chassis, p.blade, p.node, &back), 0);
        assert_int_equal(back, nid);
        assert_int_equal(p.router, nid / 4);
        assert_int_equal(p.mesh_x, p.group);
        assert_int_equal(p.mesh_y, p.cabinet_column % 2 * 3 + p.cage);
        assert_int_equal(p.mesh_z, p.blade);
    }
}

static void test_every_nid_comes_back_from_its_place(void **state)
{
    (void)state;
    for_each_machine(check_places)
        ;
}

static void check_cnames(const struct emu_machine *m)
{
    char name[EMU_CNAME_MAX];
    uint32_t back;

    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        assert_int_equal(emu_machine_cname(m, nid, name, sizeof(name)), 0);
        assert_int_equal(emu_machine_nid_of_cname(m, name, &back), 0);
        assert_int_equal(back, nid);
    }
}

static void test_every_nid_comes_back_from_its_cname(void **state)
{
    (void)state;
    for_each_machine(check_cnames)
        ;
}

/* spec/cray-runtime.md 4.2: examples published for a machine with 12 cabinet columns. */
static void test_full_groups_follow_the_published_xc_numbers(void **state)
{
    static const struct {
        const char *cname;
        uint32_t nid, x, y, z;
    } examples[] = {
        { "c0-1c0s0n1", 2305, 6, 0, 0 }, { "c0-1c0s2n1", 2313, 6, 0, 2 }, { "c7-5c2s15n3", 13055, 33, 5, 15 },
        { "c0-0c0s0n0", 0, 0, 0, 0 },    { "c1-0c0s0n0", 192, 0, 3, 0 },
    };
    struct emu_machine *m = load("aries:groups=34,cabinet_columns=12");

    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        uint32_t nid = UINT32_MAX;
        struct emu_place p;

        assert_int_equal(emu_machine_nid_of_cname(m, examples[i].cname, &nid), 0);
        assert_int_equal(nid, examples[i].nid);
        p = place_of(m, nid);
        assert_int_equal(p.mesh_x, examples[i].x);
        assert_int_equal(p.mesh_y, examples[i].y);
        assert_int_equal(p.mesh_z, examples[i].z);
        assert_int_equal((p.cabinet_row * 12 + p.cabinet_column) * 192 + p.cage * 64 + p.blade * 4 + p.node, nid);
    }
    emu_machine_destroy(m);
}

static void test_router_is_named_after_its_chip(void **state)
{
    struct emu_machine *m = load("aries");
    char name[EMU_CNAME_MAX];

    (void)state;
    assert_int_equal(emu_machine_router_cname(m, 0, name, sizeof(name)), 0);
    assert_string_equal(name, "c0-0c0s0a0");
    assert_int_equal(emu_machine_router_cname(m, 191, name, sizeof(name)), 0);
    assert_string_equal(name, "c3-0c2s15a0");
    assert_int_equal(emu_machine_router_cname(m, 192, name, sizeof(name)), -ERANGE);
    emu_machine_destroy(m);
}

static void test_malformed_cname_is_refused(void **state)
{
    static const char *const names[] = {
        "",
        "c0-0c0s0",
        "c0-0c0s0n",
        "c0-0c0s0n1 ",
        " c0-0c0s0n1",
        "c00-0c0s0n1",
        "c0-0c0s01n1",
        "c+0-0c0s0n1",
        "C0-0c0s0n1",
        "c0-0c0s0a0",
        "c-1-0c0s0n1",
        "c0-0c0s0n1n1",
        "c0-0c0s0n12345678901234567890",
        "nid00001",
    };
    struct emu_machine *m = load("aries");
    uint32_t nid = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(emu_machine_nid_of_cname(m, names[i], &nid), -EINVAL);
    assert_int_equal(nid, 77);
    emu_machine_destroy(m);
}

static void test_cname_of_another_machine_is_refused(void **state)
{
    static const char *const names[] = {
        "c4-0c0s0n0",  /* group 2 */
        "c12-0c0s0n0", /* beyond the row: not the first of the next one */
        "c0-1c0s0n0",  /* group 6 */
        "c0-0c3s0n0",  "c0-0c0s16n0", "c0-0c0s0n4", "c999999-999999c999999s999999n999999",
    };
    struct emu_machine *m = load("aries");
    uint32_t nid = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_int_equal(emu_machine_nid_of_cname(m, names[i], &nid), -ERANGE);
    assert_int_equal(nid, 77);
    emu_machine_destroy(m);
}

static void test_nid_or_place_outside_the_machine_is_refused(void **state)
{
    struct emu_machine *m = load("aries");
    struct emu_place place = { .group = 99 };
    char name[EMU_CNAME_MAX] = "kept";
    uint32_t nid = 77;

    (void)state;
    assert_int_equal(emu_machine_place(m, 768, &place), -ERANGE);
    assert_int_equal(place.group, 99);
    assert_int_equal(emu_machine_cname(m, 768, name, sizeof(name)), -ERANGE);
    assert_string_equal(name, "kept");
    assert_int_equal(emu_machine_nid_at(m, 2, 0, 0, 0, &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_at(m, 0, 6, 0, 0, &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_at(m, 0, 0, 16, 0, &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_at(m, 0, 0, 0, 4, &nid), -ERANGE);
    assert_int_equal(nid, 77);
    emu_machine_destroy(m);
}

static void test_short_buffer_is_left_alone(void **state)
{
    struct emu_machine *m = load("aries");
    char name[11] = "kept";

    (void)state;
    assert_int_equal(emu_machine_cname(m, 0, name, strlen("c0-0c0s0n0")), -ENOSPC);
    assert_string_equal(name, "kept");
    assert_int_equal(emu_machine_cname(m, 0, name, sizeof(name)), 0);
    assert_string_equal(name, "c0-0c0s0n0");
    emu_machine_destroy(m);
}

/* XC-6: flits and efficiency. */
static void test_packet_format_gives_the_published_flits(void **state)
{
    struct emu_machine *m = load("aries");
    const struct emu_packet_format *format = &emu_machine_nic(m)->format;
    const struct emu_router_params *router = emu_machine_router(m);
    struct emu_flow_counts put = { 0 };
    struct emu_flow_counts get = { 0 };
    double wire_bytes;

    (void)state;
    emu_flow_add_put(&put, format, 64);
    assert_int_equal(put.request_flits, 14);
    assert_int_equal(put.response_flits, 1);
    emu_flow_add_get(&get, format, 64, 0);
    assert_int_equal(get.request_flits, 3);
    assert_int_equal(get.response_flits, 12);
    wire_bytes =
        15.0 * format->flit_bits / 8 * router->frame_flits / (router->frame_flits - router->frame_overhead_flits);
    assert_true(64 / wire_bytes > 0.6399 && 64 / wire_bytes < 0.6401);
    emu_machine_destroy(m);
}

/* XC-7 and the rest of spec/machines.md 2.3 that the file holds. */
static void test_nic_has_the_published_figures(void **state)
{
    struct emu_machine *m = load("aries");
    const struct emu_nic_params *nic = emu_machine_nic(m);

    (void)state;
    assert_int_equal(nic->clock_mhz * nic->format.payload_bytes_max / nic->access_cycles, 10240);
    assert_int_equal(nic->outstanding_packets, 1024);
    assert_int_equal(nic->fma_descriptors, 127);
    assert_int_equal(nic->bte_channels, 4);
    assert_int_equal(nic->ce_engines, 4);
    assert_int_equal(nic->ce_children_max, 32);
    assert_int_equal(nic->amo_cache_entries, 64);
    assert_int_equal(nic->clock_mhz / nic->amo_cycles, 400);
    assert_int_equal(emu_machine_router(m)->hop_ps, 100000);
    emu_machine_destroy(m);
}

/* What GNI_GetDeviceType() says there. */
static void test_gemini_is_a_gemini_and_every_other_machine_an_aries(void **state)
{
    static const char *const names[] = { "aries", "seastar", "xt3", "bluegene-l", "x1", "xd1", "xd1-fat-tree" };
    struct emu_machine *m = load("gemini");

    (void)state;
    assert_int_equal(emu_machine_nic(m)->device, EMU_DEVICE_GEMINI);
    emu_machine_destroy(m);
    m = load("gemini:device=aries");
    assert_int_equal(emu_machine_nic(m)->device, EMU_DEVICE_ARIES);
    emu_machine_destroy(m);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        m = load(names[i]);
        assert_int_equal(emu_machine_nic(m)->device, EMU_DEVICE_ARIES);
        emu_machine_destroy(m);
    }
}

static void note_rule(void *ctx, uint32_t rule, const char *text)
{
    uint32_t *rules = ctx;

    assert_true(strlen(text) > 0);
    *rules |= 1u << rule;
}

static void test_machine_that_could_be_bought_breaks_no_rule(void **state)
{
    struct emu_machine *m = load("aries");

    (void)state;
    assert_int_equal(emu_machine_check_rules(m, NULL, NULL), 0);
    emu_machine_destroy(m);
}

static void test_machine_that_breaks_a_rule_is_built_and_told(void **state)
{
    struct emu_machine *m = load("aries:groups=8,cables_per_bundle=34");
    uint32_t rules = 0;

    (void)state;
    assert_int_equal(emu_machine_check_rules(m, note_rule, &rules), 1);
    assert_int_equal(rules, 1u << 3);
    emu_machine_destroy(m);
}

static void test_destroy_accepts_null(void **state)
{
    (void)state;
    emu_machine_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_machine_is_two_full_groups),
        cmocka_unit_test(test_largest_machine_has_241_groups_and_92544_nodes),
        cmocka_unit_test(test_every_nid_comes_back_from_its_place),
        cmocka_unit_test(test_every_nid_comes_back_from_its_cname),
        cmocka_unit_test(test_full_groups_follow_the_published_xc_numbers),
        cmocka_unit_test(test_router_is_named_after_its_chip),
        cmocka_unit_test(test_malformed_cname_is_refused),
        cmocka_unit_test(test_cname_of_another_machine_is_refused),
        cmocka_unit_test(test_nid_or_place_outside_the_machine_is_refused),
        cmocka_unit_test(test_short_buffer_is_left_alone),
        cmocka_unit_test(test_packet_format_gives_the_published_flits),
        cmocka_unit_test(test_nic_has_the_published_figures),
        cmocka_unit_test(test_gemini_is_a_gemini_and_every_other_machine_an_aries),
        cmocka_unit_test(test_machine_that_could_be_bought_breaks_no_rule),
        cmocka_unit_test(test_machine_that_breaks_a_rule_is_built_and_told),
        cmocka_unit_test(test_destroy_accepts_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
