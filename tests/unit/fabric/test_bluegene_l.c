/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blue Gene/L machines: numbers, names, links, delays (spec/machines.md 5.1).
 */
#include <errno.h>
#include <string.h>

#include "emunic/fabric/torus.h"
#include "tests/unit/fabric/fixture.h"

static void test_midplane_has_512_nodes_and_12_links_each(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    uint32_t out[512] = { 0 };
    uint32_t in[512] = { 0 };

    (void)state;
    assert_int_equal(emu_machine_n_nodes(m), 512);
    assert_int_equal(emu_machine_n_routers(m), 512);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.from.kind != EMU_END_ROUTER || l.to.kind != EMU_END_ROUTER)
            continue;
        assert_int_equal(l.bytes_per_s, 175000000);
        assert_int_equal(l.data_bytes_per_s, 175000000);
        out[l.from.index]++;
        in[l.to.index]++;
    }
    for (uint32_t i = 0; i < 512; i++) {
        assert_int_equal(out[i], 6);
        assert_int_equal(in[i], 6);
    }
    emu_machine_destroy(m);
}

static void test_names_are_read_back(void **state)
{
    static const char *const specs[] = { "bluegene-l", "bluegene-l:x=4,y=4,z=2", "bluegene-l:x=32,y=16,z=8",
                                         "bluegene-l:x=8,y=8,z=1" };

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
            struct emu_place place = place_of(m, nid);
            char name[EMU_CNAME_MAX];
            uint32_t back = UINT32_MAX;

            assert_int_equal(emu_machine_cname(m, nid, name, sizeof(name)), 0);
            assert_int_equal(emu_machine_nid_of_cname(m, name, &back), 0);
            assert_int_equal(back, nid);
            assert_int_equal(emu_machine_nid_at(m, place.group, place.chassis, place.blade, place.node, &back), 0);
            assert_int_equal(back, nid);
            assert_int_equal(emu_torus_router(emu_torus_of(m), place.mesh_x, place.mesh_y, place.mesh_z), nid);
        }
        emu_machine_destroy(m);
    }
}

static void test_node_card_is_4_x_4_x_2(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    uint32_t nodes[16] = { 0 };

    (void)state;
    for (uint32_t nid = 0; nid < 512; nid++) {
        struct emu_place place = place_of(m, nid);

        nodes[place.blade]++;
        assert_int_equal(place.blade, (place.mesh_z / 2 * 2 + place.mesh_y / 4) * 2 + place.mesh_x / 4);
    }
    for (uint32_t card = 0; card < 16; card++)
        assert_int_equal(nodes[card], 32);
    emu_machine_destroy(m);
}

static void test_names_of_nobody_are_refused(void **state)
{
    struct emu_machine *m = load("bluegene-l:x=4,y=4,z=2");
    uint32_t nid;

    (void)state;
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c0s0n31", &nid), 0);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c0s0n32", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c0s1n0", &nid), -ERANGE); /* x = 4 */
    assert_int_equal(emu_machine_nid_of_cname(m, "c1-0c0s0n0", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_at(m, 0, 1, 0, 0, &nid), -ERANGE);
    emu_machine_destroy(m);
}

static void test_links_between_midplanes_are_ten_cycles_longer(void **state)
{
    struct emu_machine *m = load("bluegene-l:x=16,y=8,z=8");
    uint32_t longer = 0;

    (void)state;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);
        struct emu_place from, to;

        if (l.from.kind != EMU_END_ROUTER || l.to.kind != EMU_END_ROUTER)
            continue;
        from = place_of(m, l.from.index);
        to = place_of(m, l.to.index);
        assert_int_equal(l.wire_ps, from.group == to.group ? 34286 : 91429);
        longer += from.group != to.group;
    }
    assert_int_equal(longer, 2 * 2 * 64); /* two cuts, both directions */
    emu_machine_destroy(m);
}

static void test_full_machine_has_65536_nodes(void **state)
{
    struct emu_machine *m = load("bluegene-l:x=64,y=32,z=32");

    (void)state;
    assert_int_equal(emu_machine_n_nodes(m), 65536);
    assert_int_equal(emu_machine_n_links(m), 65536 * 8);
    emu_machine_destroy(m);
}

static void test_impossible_machines_are_refused(void **state)
{
    static const struct {
        const char *spec;
        const char *reason;
    } bad[] = {
        { "bluegene-l:x=12", "midplanes" },
        { "bluegene-l:vc_units=500", "two packets" },
        { "bluegene-l:escape=wormhole", "none of" },
        { "bluegene-l:order=xyz", "none of" },
        { "bluegene-l:dynamic_vcs=5", "out of range" },
        { "bluegene-l:x=0", "out of range" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct emu_machine *m = NULL;
        char err[300] = "";

        assert_int_equal(emu_machine_load(bad[i].spec, EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)), -EINVAL);
        if (!strstr(err, bad[i].reason))
            fail_msg("%s: '%s' does not say '%s'", bad[i].spec, err, bad[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_midplane_has_512_nodes_and_12_links_each),
        cmocka_unit_test(test_names_are_read_back),
        cmocka_unit_test(test_node_card_is_4_x_4_x_2),
        cmocka_unit_test(test_names_of_nobody_are_refused),
        cmocka_unit_test(test_links_between_midplanes_are_ten_cycles_longer),
        cmocka_unit_test(test_full_machine_has_65536_nodes),
        cmocka_unit_test(test_impossible_machines_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
