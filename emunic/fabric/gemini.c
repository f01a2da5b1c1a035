/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gemini machines: Cray XE6 and XK7, Titan.
 *
 * Shape. A torus of Geminis with two nodes each; 8, 4, 8 parallel links ("tiles") along X, Y, Z, three lanes each. A
 * module has two Geminis and four nodes: node N is on Gemini N / 2. Two layouts:
 *
 *   cabinet   one cabinet: X = cage, Y = Gemini in the module, Z = slot (the 3 x 2 x 8 system of TITAN)
 *   floor     X = place of the cabinet column in its ring, Y = 2 x place of the cabinet row in its ring + Gemini,
 *             Z = 8 x cage + slot; the rings of cabinets are folded, so no cable spans more than two cabinets [OUR]
 *
 * Numbers. Two nids per Gemini. Cabinet layout: 32 nids per cage of 8 slots; in an even cage Gemini 0 in rising slot
 * order, then Gemini 1 falling; in an odd cage Gemini 1 rising, then Gemini 0 falling (exact for all 30 nodes of the
 * source). Floor: per cabinet, row by row: up the Gemini 0 of all modules, down the Gemini 1 [OUR, as at a 17 x 8 x 24
 * machine].
 *
 * Link classes. Y between the two Geminis of a module: mezzanine. Z within a cage: backplane. All others: cables. The
 * second cable of a Y ring of two is a mezzanine link as well, as TopoBW's n3 - n0 rows show.
 *
 * Tiles. The router has 6 rows x 8 columns of tiles, lRC; the map below says what each serves. The sources do not say
 * which tile meets which: both ends take the tiles of their direction by falling column, then falling row, so that the
 * one pair in print (l27 of one slot, l17 of the next) comes out [OUR].
 * Source: spec/machines.md 3.1 (TITAN).
 */
#include "emunic/fabric/gemini.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "emunic/fabric/torus.h"

enum {
    NODES_PER_ROUTER = 2,
    GEMINIS = 2, /* per module */
    CAGES = 3,   /* per cabinet */
    SLOTS = 8,   /* per cage */
    TILES_XZ = 8,
    TILES_Y = 4,
    LANES = 24, /* 3 per tile; more for a machine whose tiles are taken together as one link */
};

/* Meaning of emu_torus.layout. */
enum { COLUMNS = EMU_TORUS_COLUMNS, ROWS = EMU_TORUS_ROWS, IS_FLOOR = EMU_TORUS_LAYOUT_OWN, CAGES_USED, SLOTS_USED };

/* Directions in the order of emu_torus_direction(): small letter minus, capital plus. */
static const char tile_map[EMU_GEMINI_TILE_ROWS][EMU_GEMINI_TILE_COLUMNS + 1] = {
    "ZZxxXXzz", "ZZxxXXzz", "zzzPPZZZ", "xxzPPZXX", "xxyPPYXX", "yyyPPYYY",
};

static uint32_t direction_of_tile(uint32_t row, uint32_t column)
{
    static const char letters[] = "xXyYzZP";

    return (uint32_t)(strchr(letters, tile_map[row][column]) - letters);
}

/* ---- layout ---- */

static bool is_floor(const struct emu_torus_params *p)
{
    if (strcmp(p->layout, "auto") != 0)
        return strcmp(p->layout, "floor") == 0;
    return p->size[0] > CAGES || p->size[1] > GEMINIS || p->size[2] > SLOTS;
}

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    struct emu_torus_params p = params->torus;

    if (strcmp(p.layout, "auto") != 0 && strcmp(p.layout, "cabinet") != 0 && strcmp(p.layout, "floor") != 0) {
        *key_out = "topology.layout";
        (void)emu_text(text, text_len, "'%s' is none of auto, cabinet, floor", p.layout);
        return -EINVAL;
    }
    if (p.size[1] % GEMINIS != 0) {
        *key_out = "topology.y";
        (void)emu_text(text, text_len, "%u is odd, but the two Geminis of a module are neighbours in Y", p.size[1]);
        return -EINVAL;
    }
    if (is_floor(&p) && p.size[2] > SLOTS && p.size[2] % SLOTS != 0) {
        *key_out = "topology.z";
        (void)emu_text(text, text_len, "%u is not a whole number of cages of %d slots", p.size[2], SLOTS);
        return -EINVAL;
    }
    if (!is_floor(&p) && (p.size[0] > CAGES || p.size[1] > GEMINIS || p.size[2] > SLOTS)) {
        *key_out = "topology.layout";
        (void)emu_text(text, text_len, "%u x %u x %u Geminis do not fit into one cabinet (%d x %d x %d)", p.size[0],
                       p.size[1], p.size[2], CAGES, GEMINIS, SLOTS);
        return -EINVAL;
    }
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++)
        p.wraps[dim] = 1;
    return emu_torus_check(&p, key_out, text, text_len);
}

static void coord_of_router(const struct emu_torus *t, uint32_t router, uint32_t coord_out[EMU_TORUS_DIMS])
{
    uint32_t per_column = t->size[2]; /* Geminis up one side of a cage or cabinet */
    uint32_t box = router / (GEMINIS * per_column);
    uint32_t index = router % (GEMINIS * per_column);
    uint32_t is_down = index >= per_column;
    uint32_t height = is_down ? GEMINIS * per_column - 1 - index : index;

    coord_out[2] = height;
    if (t->layout[IS_FLOOR]) {
        coord_out[0] = emu_torus_folded_position(box % t->layout[COLUMNS], t->layout[COLUMNS]);
        coord_out[1] = GEMINIS * emu_torus_folded_position(box / t->layout[COLUMNS], t->layout[ROWS]) + is_down;
    } else {
        coord_out[0] = box;
        coord_out[1] = is_down ^ (box % 2);
    }
}

static enum emu_link_class class_of_link(const struct emu_torus *t, uint32_t dim, uint32_t low)
{
    switch (dim) {
    case 0:
        return EMU_LINK_X;
    case 1:
        return low % GEMINIS == 0 || t->size[1] == GEMINIS ? EMU_LINK_MEZZANINE : EMU_LINK_Y;
    default:
        return low % SLOTS != SLOTS - 1 && low + 1 < t->size[2] ? EMU_LINK_BACKPLANE : EMU_LINK_Z;
    }
}

static const struct emu_torus_kind gemini_kind = {
    .nodes_per_router = NODES_PER_ROUTER,
    .coord_of = coord_of_router,
    .class_of = class_of_link,
};

static void lay_out(struct emu_torus *t)
{
    t->layout[COLUMNS] = t->layout[IS_FLOOR] ? t->size[0] : 1;
    t->layout[ROWS] = t->layout[IS_FLOOR] ? t->size[1] / GEMINIS : 1;
    t->layout[SLOTS_USED] = t->size[2] < SLOTS ? t->size[2] : SLOTS;
    t->layout[CAGES_USED] = t->layout[IS_FLOOR] ? t->size[2] / t->layout[SLOTS_USED] : t->size[0];
}

static void lay_out_floor(struct emu_torus *t)
{
    t->layout[IS_FLOOR] = 1;
    lay_out(t);
}

static int build_gemini(struct emu_machine *m)
{
    struct emu_torus_params p = m->params.torus;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++)
        p.wraps[dim] = 1;
    return emu_torus_build(m, &p, &gemini_kind, is_floor(&p) ? lay_out_floor : lay_out);
}

/* ---- nodes and names ---- */

static void place_of_nid(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router = nid / NODES_PER_ROUTER;
    const uint8_t *at = emu_torus_coord(t, router);
    bool floor = t->layout[IS_FLOOR];
    uint32_t cage = floor ? at[2] / SLOTS : at[0];

    *place_out = (struct emu_place){
        .chassis = cage,
        .blade = at[2] % SLOTS,
        .node = at[1] % GEMINIS * NODES_PER_ROUTER + nid % NODES_PER_ROUTER,
        .cage = cage,
        .chip = at[1] % GEMINIS,
        .router = router,
        .mesh_x = at[0],
        .mesh_y = at[1],
        .mesh_z = at[2],
    };
    if (floor) {
        place_out->cabinet_column = emu_torus_folded_place(at[0], t->layout[COLUMNS]);
        place_out->cabinet_row = emu_torus_folded_place(at[1] / GEMINIS, t->layout[ROWS]);
        place_out->group = place_out->cabinet_row * t->layout[COLUMNS] + place_out->cabinet_column;
    }
}

static int nid_of_cabinet_place(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t gemini = at->node / NODES_PER_ROUTER;
    uint32_t router;

    if (at->cabinet_column >= t->layout[COLUMNS] || at->cabinet_row >= t->layout[ROWS] ||
        at->cage >= t->layout[CAGES_USED] || at->blade >= t->layout[SLOTS_USED] || gemini >= GEMINIS)
        return -ERANGE;
    if (t->layout[IS_FLOOR])
        router = emu_torus_router(t, emu_torus_folded_position(at->cabinet_column, t->layout[COLUMNS]),
                                  GEMINIS * emu_torus_folded_position(at->cabinet_row, t->layout[ROWS]) + gemini,
                                  SLOTS * at->cage + at->blade);
    else
        router = emu_torus_router(t, at->cage, gemini, at->blade);
    *nid_out = router * NODES_PER_ROUTER + at->node % NODES_PER_ROUTER;
    return 0;
}

static const char *chip_name(const struct emu_machine *m, uint32_t router)
{
    return emu_torus_coord(emu_torus_of(m), router)[1] % GEMINIS == 0 ? "g0" : "g1";
}

/* Cabinets or cages, Geminis of one, nodes. */
static uint32_t nid_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX])
{
    const struct emu_torus *t = emu_torus_of(m);

    sizes_out[1] = GEMINIS * t->size[2];
    sizes_out[0] = t->n_routers / sizes_out[1];
    sizes_out[2] = NODES_PER_ROUTER;
    return 3;
}

/* ---- tiles ---- */

/* The tile that carries parallel link `number` of a direction, or the other way round: how many come before a tile. */
static void find_tile(uint32_t direction, uint32_t number, uint32_t *row_out, uint32_t *column_out)
{
    uint32_t seen = 0;

    for (uint32_t column = EMU_GEMINI_TILE_COLUMNS; column-- > 0;) {
        for (uint32_t row = EMU_GEMINI_TILE_ROWS; row-- > 0;) {
            if (direction_of_tile(row, column) != direction || seen++ != number)
                continue;
            *row_out = row;
            *column_out = column;
            return;
        }
    }
}

static uint32_t number_of_tile(uint32_t row, uint32_t column)
{
    uint32_t direction = direction_of_tile(row, column);
    uint32_t before = 0;

    for (uint32_t c = EMU_GEMINI_TILE_COLUMNS; c-- > column;) {
        for (uint32_t r = EMU_GEMINI_TILE_ROWS; r-- > 0;) {
            if (c == column && r == row)
                return before;
            before += direction_of_tile(r, c) == direction;
        }
    }
    return before;
}

int emu_gemini_tile(uint32_t row, uint32_t column, uint32_t *direction_out)
{
    if (row >= EMU_GEMINI_TILE_ROWS || column >= EMU_GEMINI_TILE_COLUMNS)
        return -ERANGE;
    *direction_out = direction_of_tile(row, column);
    return 0;
}

int emu_gemini_tile_name(const struct emu_machine *m, uint32_t link, char *buf, size_t len)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router, direction, number;
    uint32_t row = 0;
    uint32_t column = 0;
    char chip[EMU_CNAME_MAX];
    int r;

    if (m->topology != &emu_topology_gemini)
        return -EINVAL;
    if (link >= m->n_links)
        return -ERANGE;
    if (!emu_torus_is_network_link(t, link))
        return -EINVAL;
    emu_torus_link_parts(t, link, &router, &direction, &number);
    find_tile(direction, number, &row, &column);
    r = emu_machine_router_cname(m, router, chip, sizeof(chip));
    if (r < 0)
        return r;
    return emu_text(buf, len, "%sl%u%u", chip, row, column);
}

int emu_gemini_link_of_tile(const struct emu_machine *m, const char *name, uint32_t *link_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    const char *tail = strrchr(name, 'l');
    const char *chip = strrchr(name, 'g');
    uint32_t row, column, direction, link, nid;
    char text[EMU_CNAME_MAX + 8];
    int r;

    if (m->topology != &emu_topology_gemini || !tail || !chip || tail - chip != 2 ||
        (size_t)(chip - name) >= EMU_CNAME_MAX - 4 || strlen(tail) != 3 || (chip[1] != '0' && chip[1] != '1'))
        return -EINVAL;
    row = (uint32_t)(tail[1] - '0');
    column = (uint32_t)(tail[2] - '0');
    if (row >= EMU_GEMINI_TILE_ROWS || column >= EMU_GEMINI_TILE_COLUMNS)
        return -EINVAL;
    direction = direction_of_tile(row, column);
    if (direction == EMU_GEMINI_TILE_PROCESSOR || number_of_tile(row, column) >= t->parallel[direction / 2])
        return -EINVAL;
    r = emu_text(text, sizeof(text), "%.*sn%d", (int)(chip - name), name, chip[1] == '0' ? 0 : NODES_PER_ROUTER);
    if (r == 0)
        r = emu_machine_nid_of_cname(m, text, &nid);
    if (r < 0)
        return r;
    link = emu_torus_link(t, nid / NODES_PER_ROUTER, direction, number_of_tile(row, column));
    if (link == EMU_TORUS_NONE)
        return -EINVAL;
    *link_out = link;
    return 0;
}

/* ---- neighbours ---- */

int emu_gemini_neighbour_node(const struct emu_machine *m, uint32_t nid, uint32_t direction, uint32_t *nid_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router = nid / NODES_PER_ROUTER;
    uint32_t node = nid % NODES_PER_ROUTER;
    bool is_plus = direction & 1;

    if (m->topology != &emu_topology_gemini)
        return -EINVAL;
    if (nid >= m->n_nodes || direction >= EMU_TORUS_DIRECTIONS)
        return -ERANGE;
    if (direction / 2 == 1) {
        if (node != is_plus) { /* the other node of this Gemini */
            *nid_out = router * NODES_PER_ROUTER + is_plus;
            return 0;
        }
        node = !is_plus;
    }
    if (emu_torus_has(t, router, direction))
        router = emu_torus_neighbour(t, router, direction);
    *nid_out = router * NODES_PER_ROUTER + node;
    return 0;
}

int emu_gemini_cabinets(const struct emu_machine *m, uint32_t *columns_out, uint32_t *rows_out)
{
    if (m->topology != &emu_topology_gemini)
        return -EINVAL;
    *columns_out = emu_torus_of(m)->layout[COLUMNS];
    *rows_out = emu_torus_of(m)->layout[ROWS];
    return 0;
}

static const struct emu_param gemini_params[] = {
    EMU_TORUS_SIZE_KEYS(64, 64, CAGES *SLOTS),
    { "topology.layout", EMU_PARAM_NAME, EMU_TORUS_FIELD(layout), 0, 0 },
    { "topology.tiles_x", EMU_PARAM_COUNT, EMU_TORUS_FIELD(parallel[0]), 1, TILES_XZ },
    { "topology.tiles_y", EMU_PARAM_COUNT, EMU_TORUS_FIELD(parallel[1]), 1, TILES_Y },
    { "topology.tiles_z", EMU_PARAM_COUNT, EMU_TORUS_FIELD(parallel[2]), 1, TILES_XZ },
    { "router.column_buffers", EMU_PARAM_COUNT, offsetof(struct emu_machine_params, router.column_buffers), 0, 1 },
    EMU_AMO_CACHE_KEY,
    { "topology.order_retry", EMU_PARAM_COUNT, EMU_TORUS_FIELD(order_retry), 0, 1 },
    EMU_LINK_KEYS("x", EMU_LINK_X, LANES),
    EMU_LINK_KEYS("y", EMU_LINK_Y, LANES),
    EMU_LINK_KEYS("z", EMU_LINK_Z, LANES),
    EMU_LINK_KEYS("mezzanine", EMU_LINK_MEZZANINE, LANES),
    EMU_LINK_KEYS("backplane", EMU_LINK_BACKPLANE, LANES),
    { "links.backplane.lost_percent", EMU_PARAM_MILLI,
      offsetof(struct emu_machine_params, link[EMU_LINK_BACKPLANE].lost_share), 0, 99999 },
};

const struct emu_topology emu_topology_gemini = {
    EMU_TORUS_COMMON_SLOTS,
    .kind = "gemini-torus",
    .params = gemini_params,
    .n_params = sizeof(gemini_params) / sizeof(gemini_params[0]),
    .check = check_params,
    .build = build_gemini,
    .place = place_of_nid,
    .nid_at = emu_torus_nid_at,
    .nid_in_cabinet = nid_of_cabinet_place,
    .chip = chip_name,
    .levels = nid_levels,
    .link = emu_torus_describe_link,
    .routing = &emu_gemini_routing,
};
