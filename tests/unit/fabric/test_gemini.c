/* SPDX-License-Identifier: BSD-3-Clause */
/* Names, numbers and tiles of Gemini machines, against the rows in print (spec/machines.md Appendix A). */
#include "emunic/fabric/gemini.h"

#include <errno.h>
#include <string.h>

#include "emunic/experiments/titan.h"
#include "emunic/fabric/torus.h"
#include "tests/unit/fabric/fixture.h"

static int rank_of(uint32_t nid)
{
    for (int rank = 0; rank < EMU_TITAN_NODES; rank++) {
        if (emu_titan_nodes[rank].nid == nid)
            return rank;
    }
    return -1;
}

static void test_thirty_nodes_have_the_printed_names_numbers_and_neighbours(void **state)
{
    struct emu_machine *m = load("gemini");

    (void)state;
    for (int rank = 0; rank < EMU_TITAN_NODES; rank++) {
        const struct emu_titan_node *row = &emu_titan_nodes[rank];
        struct emu_place place = place_of(m, row->nid);
        char name[EMU_CNAME_MAX];

        assert_int_equal(emu_machine_cname(m, row->nid, name, sizeof(name)), 0);
        assert_string_equal(name, row->cname);
        assert_int_equal(place.mesh_x, row->at[0]);
        assert_int_equal(place.mesh_y, row->at[1]);
        assert_int_equal(place.mesh_z, row->at[2]);
        assert_int_equal(rank_of(row->nid ^ 1), row->partner);
        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
            uint32_t nid;

            assert_int_equal(emu_gemini_neighbour_node(m, row->nid, direction, &nid), 0);
            assert_int_equal(rank_of(nid), row->neighbours[direction]);
        }
    }
    emu_machine_destroy(m);
}

static void test_nodes_along_y_form_one_ring_over_all_geminis_of_a_line(void **state)
{
    struct emu_machine *m = load("gemini:x=2,y=6,z=8,layout=floor");
    uint32_t nid = 0;
    uint32_t back;

    (void)state;
    for (uint32_t i = 0; i < 12; i++) {
        uint32_t next;

        assert_int_equal(emu_gemini_neighbour_node(m, nid, 3, &next), 0);
        assert_int_equal(emu_gemini_neighbour_node(m, next, 2, &back), 0);
        assert_int_equal(back, nid);
        assert_true((next == 0) == (i == 11));
        nid = next;
    }
    emu_machine_destroy(m);
}

static void test_titan_has_its_nodes_and_no_cable_beyond_two_cabinets(void **state)
{
    struct emu_machine *m = load("gemini:x=25,y=16,z=24");
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t columns, rows_of_cabinets;

    (void)state;
    assert_int_equal(emu_machine_n_nodes(m), 19200);
    assert_int_equal(emu_machine_n_routers(m), 9600);
    assert_int_equal(emu_gemini_cabinets(m, &columns, &rows_of_cabinets), 0);
    assert_int_equal(columns, 25);
    assert_int_equal(rows_of_cabinets, 8);
    for (uint32_t router = 0; router < 9600; router++) {
        const struct emu_place a = place_of(m, router * 2);

        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
            const struct emu_place b = place_of(m, emu_torus_neighbour(t, router, direction) * 2);
            int apart =
                abs((int)a.cabinet_column - (int)b.cabinet_column) + abs((int)a.cabinet_row - (int)b.cabinet_row);

            assert_in_range(apart, 0, direction / 2 == 2 ? 0 : 2);
        }
    }
    emu_machine_destroy(m);
}

static void test_classes_of_links_follow_modules_cages_and_cabinets(void **state)
{
    struct emu_machine *m = load("gemini:x=3,y=4,z=16");
    const struct emu_torus *t = emu_torus_of(m);

    (void)state;
    for (uint32_t id = t->first_link; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);
        struct emu_place a = place_of(m, l.from.index * 2);
        struct emu_place b = place_of(m, l.to.index * 2);

        if (a.mesh_x != b.mesh_x)
            assert_int_equal(l.link_class, EMU_LINK_X);
        else if (a.mesh_y != b.mesh_y)
            assert_int_equal(l.link_class, a.group == b.group ? EMU_LINK_MEZZANINE : EMU_LINK_Y);
        else
            assert_int_equal(l.link_class, a.cage == b.cage ? EMU_LINK_BACKPLANE : EMU_LINK_Z);
    }
    emu_machine_destroy(m);
}

static void test_tiles_are_counted_as_in_print(void **state)
{
    static const uint32_t expected[] = { 8, 8, 4, 4, 8, 8, 8 };
    uint32_t counts[7] = { 0 };
    uint32_t direction;

    (void)state;
    for (uint32_t row = 0; row < EMU_GEMINI_TILE_ROWS; row++) {
        for (uint32_t column = 0; column < EMU_GEMINI_TILE_COLUMNS; column++) {
            assert_int_equal(emu_gemini_tile(row, column, &direction), 0);
            counts[direction]++;
        }
    }
    assert_memory_equal(counts, expected, sizeof(counts));
    assert_int_equal(emu_gemini_tile(2, 7, &direction), 0);
    assert_int_equal(direction, 5);
    assert_int_equal(emu_gemini_tile(1, 7, &direction), 0);
    assert_int_equal(direction, 4);
    assert_int_equal(emu_gemini_tile(6, 0, &direction), -ERANGE);
}

static void test_every_tile_name_leads_back_to_its_link(void **state)
{
    struct emu_machine *m = load("gemini");

    (void)state;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        char name[EMU_CNAME_MAX];
        uint32_t back;

        if (id < 2 * emu_machine_n_nodes(m)) {
            assert_int_equal(emu_gemini_tile_name(m, id, name, sizeof(name)), -EINVAL);
            continue;
        }
        assert_int_equal(emu_gemini_tile_name(m, id, name, sizeof(name)), 0);
        assert_int_equal(emu_gemini_link_of_tile(m, name, &back), 0);
        assert_int_equal(back, id);
    }
    emu_machine_destroy(m);
}

static void test_the_printed_pair_of_tiles_is_one_cable(void **state)
{
    struct emu_machine *m = load("gemini");
    uint32_t link, reverse;
    char name[EMU_CNAME_MAX];

    (void)state;
    assert_int_equal(emu_gemini_link_of_tile(m, "c0-0c1s0g0l27", &link), 0);
    assert_int_equal(link_of(m, link).link_class, EMU_LINK_BACKPLANE);
    assert_int_equal(emu_link_reverse(m, link, &reverse), 0);
    assert_int_equal(emu_gemini_tile_name(m, reverse, name, sizeof(name)), 0);
    assert_string_equal(name, "c0-0c1s1g0l17");
    emu_machine_destroy(m);
}

static void test_wrong_tile_names_are_refused(void **state)
{
    static const char *const wrong[] = { "",
                                         "l27",
                                         "c0-0c1s0g0",
                                         "c0-0c1s0g0l2",
                                         "c0-0c1s0g0l277",
                                         "c0-0c1s0g2l27",
                                         "c0-0c1s0g0l33",
                                         "c0-0c1s0g0l80",
                                         "c0-0c1s0g0l08",
                                         "c0-0c01s0g0l27",
                                         "c0-0c1s0g0x27",
                                         "c0-0c1s0n0l27",
                                         "c0-0c0000000000000000000000000000000000000000000000000001s0g0l27" };
    struct emu_machine *m = load("gemini");
    struct emu_machine *aries = load("aries");
    uint32_t link;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(emu_gemini_link_of_tile(m, wrong[i], &link), -EINVAL);
    assert_int_equal(emu_gemini_link_of_tile(m, "c9-0c1s0g0l27", &link), -ERANGE);
    assert_int_equal(emu_gemini_link_of_tile(aries, "c0-0c1s0g0l27", &link), -EINVAL);
    emu_machine_destroy(aries);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thirty_nodes_have_the_printed_names_numbers_and_neighbours),
        cmocka_unit_test(test_nodes_along_y_form_one_ring_over_all_geminis_of_a_line),
        cmocka_unit_test(test_titan_has_its_nodes_and_no_cable_beyond_two_cabinets),
        cmocka_unit_test(test_classes_of_links_follow_modules_cages_and_cabinets),
        cmocka_unit_test(test_tiles_are_counted_as_in_print),
        cmocka_unit_test(test_every_tile_name_leads_back_to_its_link),
        cmocka_unit_test(test_the_printed_pair_of_tiles_is_one_cable),
        cmocka_unit_test(test_wrong_tile_names_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
