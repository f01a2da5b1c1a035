/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Titan: what can be counted on the built machine.
 */
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/titan.h"
#include "emunic/fabric/gemini.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/torus.h"

/* ---- TITAN-1: rates of links ---- */

/* All parallel links from one router to another of a class: lanes, and raw bytes per second. */
static void sum_of_class(const struct emu_machine *m, enum emu_link_class link_class, uint32_t *lanes_out,
                         double *gbs_out)
{
    struct emu_link first = { 0 };
    uint64_t bytes_per_s = 0;

    *lanes_out = 0;
    for (uint32_t id = emu_torus_of(m)->first_link; id < emu_machine_n_links(m); id++) {
        struct emu_link l;

        (void)emu_link_get(m, id, &l);
        if (l.link_class != link_class)
            continue;
        if (*lanes_out == 0)
            first = l;
        if (l.from.index != first.from.index || l.to.index != first.to.index)
            break; /* a router's links of one direction follow each other */
        *lanes_out += l.lanes;
        bytes_per_s += l.bytes_per_s;
    }
    *gbs_out = (double)bytes_per_s * 1e-9;
}

int emu_titan_links(struct emu_exp *x)
{
    static const struct {
        enum emu_link_class link_class;
        const char *name;
        uint32_t lanes;
        double raw;
        double quoted; /* GB/s after about 35 % of protocol, as printed */
        int decimals;
    } classes[] = {
        { EMU_LINK_MEZZANINE, "y_mezzanine", 12, 9.375, 6, 0 },
        { EMU_LINK_BACKPLANE, "z_backplane", 24, 15, 9.75, 2 },
        { EMU_LINK_X, "x_cable", 24, 9.375, 6, 0 },
        { EMU_LINK_Z, "z_cable", 24, 9.375, 6, 0 },
        { EMU_LINK_Y, "y_cable", 12, 4.6875, 3, 0 },
    };
    struct emu_machine *m;
    int r = emu_exp_machine(x, EMU_TITAN_SPEC, &m);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        uint32_t lanes;
        char name[64];
        double gbs;

        sum_of_class(m, classes[i].link_class, &lanes, &gbs);
        snprintf(name, sizeof(name), "%s_lanes", classes[i].name);
        emu_exp_exact(x, 'A', name, "lanes", classes[i].lanes, lanes);
        snprintf(name, sizeof(name), "%s_raw", classes[i].name);
        emu_exp_exact(x, 'A', name, "GB/s", classes[i].raw, gbs);
        snprintf(name, sizeof(name), "%s_data", classes[i].name);
        emu_exp_class(x, EMU_CLASS_FORMULA);
        emu_exp_figure(x, 'A', name, "GB/s", emu_exp_rounded(classes[i].quoted, classes[i].decimals), gbs * 0.65);
    }
    emu_machine_destroy(m);
    return 0;
}

/* ---- TITAN-4: header lines of the thirty nodes ---- */

/* The thirty nodes, by cage and slot, as the source lists them. */
static const struct {
    uint32_t cage;
    uint32_t slot;
    const char *nodes;
} listed[] = {
    { 0, 3, "0123" }, { 0, 5, "0123" }, { 0, 7, "123" }, { 1, 0, "0123" }, { 1, 1, "3" },
    { 1, 2, "0123" }, { 1, 3, "0123" }, { 1, 5, "1" },   { 1, 6, "3" },    { 1, 7, "0123" },
};

static int rank_of_nid(const uint32_t nids[EMU_TITAN_NODES], uint32_t nid)
{
    for (int rank = 0; rank < EMU_TITAN_NODES; rank++) {
        if (nids[rank] == nid)
            return rank;
    }
    return -1;
}

/* Our row of a node, with ranks in our own order. */
static void make_header(const struct emu_machine *m, const uint32_t nids[EMU_TITAN_NODES], uint32_t nid,
                        struct emu_titan_node *row_out)
{
    struct emu_place place;

    (void)emu_machine_place(m, nid, &place);
    *row_out = (struct emu_titan_node){
        .nid = nid,
        .at = { place.mesh_x, place.mesh_y, place.mesh_z },
        .partner = rank_of_nid(nids, nid ^ 1),
    };
    for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
        uint32_t next = nid;

        (void)emu_gemini_neighbour_node(m, nid, direction, &next);
        row_out->neighbours[direction] = rank_of_nid(nids, next);
    }
}

/* The same node of the same rank, were our ranks the source's? -1 stays -1. */
static bool is_same_rank(int printed, int ours, const uint32_t nids[EMU_TITAN_NODES])
{
    return printed < 0 ? ours < 0 : ours >= 0 && nids[ours] == emu_titan_nodes[printed].nid;
}

static bool is_same_row(const struct emu_titan_node *printed, const struct emu_titan_node *ours,
                        const uint32_t nids[EMU_TITAN_NODES])
{
    bool is_same = printed->nid == ours->nid && memcmp(printed->at, ours->at, sizeof(ours->at)) == 0 &&
                   is_same_rank(printed->partner, ours->partner, nids);

    for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++)
        is_same = is_same && is_same_rank(printed->neighbours[direction], ours->neighbours[direction], nids);
    return is_same;
}

int emu_titan_headers(struct emu_exp *x)
{
    uint32_t nids[EMU_TITAN_NODES];
    uint32_t n_same = 0;
    uint32_t n = 0;
    struct emu_machine *m;
    int r = emu_exp_machine(x, "gemini", &m);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++) {
        for (const char *node = listed[i].nodes; *node != '\0'; node++) {
            char name[EMU_CNAME_MAX];

            snprintf(name, sizeof(name), "c0-0c%us%un%c", listed[i].cage, listed[i].slot, *node);
            r = emu_machine_nid_of_cname(m, name, &nids[n++]);
            if (r < 0)
                goto out;
        }
    }
    emu_exp_exact(x, 'A', "nodes", "nodes", EMU_TITAN_NODES, n);
    for (uint32_t rank = 0; rank < n; rank++) {
        char name[EMU_CNAME_MAX];
        struct emu_titan_node ours;
        bool is_same = false;

        make_header(m, nids, nids[rank], &ours);
        (void)emu_machine_cname(m, nids[rank], name, sizeof(name));
        for (uint32_t i = 0; i < EMU_TITAN_NODES; i++)
            is_same = is_same ||
                      (strcmp(emu_titan_nodes[i].cname, name) == 0 && is_same_row(&emu_titan_nodes[i], &ours, nids));
        n_same += is_same;
        emu_exp_detail(x, "%u %s %u [%u,%u,%u] %d %d %d %d %d %d partner %d%s", rank, name, ours.nid, ours.at[0],
                       ours.at[1], ours.at[2], ours.neighbours[0], ours.neighbours[1], ours.neighbours[2],
                       ours.neighbours[3], ours.neighbours[4], ours.neighbours[5], ours.partner,
                       is_same ? "" : "  differs");
    }
    emu_exp_exact(x, 'A', "rows_identical", "rows", EMU_TITAN_NODES, n_same);
out:
    emu_machine_destroy(m);
    return r;
}

/* ---- TITAN-5: tiles ---- */

int emu_titan_tiles(struct emu_exp *x)
{
    static const char *const names[] = { "x_minus", "x_plus", "y_minus", "y_plus", "z_minus", "z_plus", "processor" };
    static const uint32_t expected[] = { 8, 8, 4, 4, 8, 8, 8 };
    uint32_t counts[7] = { 0 };
    uint32_t n_links = 0;
    uint32_t n_back = 0;
    uint32_t direction = 0;
    struct emu_machine *m;
    int r = emu_exp_machine(x, EMU_TITAN_SPEC, &m);

    if (r < 0)
        return r;
    for (uint32_t row = 0; row < EMU_GEMINI_TILE_ROWS; row++) {
        for (uint32_t column = 0; column < EMU_GEMINI_TILE_COLUMNS; column++) {
            (void)emu_gemini_tile(row, column, &direction);
            counts[direction]++;
        }
    }
    for (size_t i = 0; i < 7; i++)
        emu_exp_exact(x, 'A', names[i], "tiles", expected[i], counts[i]);
    (void)emu_gemini_tile(2, 7, &direction);
    emu_exp_text(x, 'A', "l27", "Z+", direction < 6 ? emu_torus_direction_name(direction) : "P");
    (void)emu_gemini_tile(1, 7, &direction);
    emu_exp_text(x, 'A', "l17", "Z-", direction < 6 ? emu_torus_direction_name(direction) : "P");
    for (uint32_t id = emu_torus_of(m)->first_link; id < emu_machine_n_links(m); id++) {
        char name[EMU_CNAME_MAX];
        uint32_t back;

        n_links++;
        n_back += emu_gemini_tile_name(m, id, name, sizeof(name)) == 0 &&
                  emu_gemini_link_of_tile(m, name, &back) == 0 && back == id;
    }
    emu_exp_exact(x, 'A', "names_that_lead_back", "links", n_links, n_back);
    emu_machine_destroy(m);
    return 0;
}

/* ---- TITAN-6: the whole system ---- */

/* Longest cable of a ring of cabinets, in cabinet pitches. */
static uint32_t longest_cable(uint32_t n, bool is_folded)
{
    uint32_t longest = 0;

    for (uint32_t position = 0; position < n; position++) {
        uint32_t next = (position + 1) % n;
        uint32_t a = is_folded ? emu_torus_folded_place(position, n) : position;
        uint32_t b = is_folded ? emu_torus_folded_place(next, n) : next;
        uint32_t pitches = a > b ? a - b : b - a;

        longest = pitches > longest ? pitches : longest;
    }
    return longest;
}

/* The same on the built machine: cabinet columns and rows between the ends of all links. */
static uint32_t longest_link(const struct emu_machine *m)
{
    uint32_t longest = 0;

    for (uint32_t id = emu_torus_of(m)->first_link; id < emu_machine_n_links(m); id++) {
        struct emu_place a, b;
        struct emu_link l;
        uint32_t pitches;

        (void)emu_link_get(m, id, &l);
        (void)emu_machine_place(m, emu_torus_first_nid(m, l.from.index), &a);
        (void)emu_machine_place(m, emu_torus_first_nid(m, l.to.index), &b);
        pitches = (uint32_t)abs((int)a.cabinet_column - (int)b.cabinet_column) +
                  (uint32_t)abs((int)a.cabinet_row - (int)b.cabinet_row);
        longest = pitches > longest ? pitches : longest;
    }
    return longest;
}

int emu_titan_system(struct emu_exp *x)
{
    uint32_t columns = 0;
    uint32_t rows = 0;
    const struct emu_torus *t;
    struct emu_machine *m;
    int r = emu_exp_machine(x, EMU_TITAN_SPEC, &m);

    if (r < 0)
        return r;
    t = emu_torus_of(m);
    (void)emu_gemini_cabinets(m, &columns, &rows);
    emu_exp_exact(x, 'A', "nodes", "nodes", 18688 + 512, emu_machine_n_nodes(m));
    emu_exp_exact(x, 'A', "geminis", "routers", 9600, emu_machine_n_routers(m));
    emu_exp_exact(x, 'A', "cabinets", "cabinets", 200, columns * rows);
    emu_exp_exact(x, 'A', "size_x", "routers", 25, t->size[0]);
    emu_exp_exact(x, 'A', "size_y", "routers", 16, t->size[1]);
    emu_exp_exact(x, 'A', "size_z", "routers", 24, t->size[2]);
    emu_exp_holds(x, 'A', "is_torus", t->wraps[0] && t->wraps[1] && t->wraps[2]);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_exact(x, 'A', "longest_cable_25_folded", "pitches", 2, longest_cable(25, true));
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_exact(x, 'A', "longest_cable_25_unfolded", "pitches", 24, longest_cable(25, false));
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_exact(x, 'A', "longest_cable_8_folded", "pitches", 2, longest_cable(8, true));
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_exact(x, 'A', "longest_cable_8_unfolded", "pitches", 7, longest_cable(8, false));
    emu_exp_exact(x, 'A', "longest_cable_built", "pitches", 2, longest_link(m));
    emu_machine_destroy(m);
    return 0;
}
