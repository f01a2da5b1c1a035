/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SeaStar machines: Cray XT3 and Red Storm.
 *
 * Shape. One SeaStar per node, one link per direction, each dimension a ring or a mesh. A physical cabinet has 3 cages
 * of 8 modules of 4 nodes: 4 positions along Y and 24 along Z. So Y = 4 x cabinet row + node, Z = 8 x cage + slot, and
 * the column of the floor is X (spec/machines.md 4.1: 40 cabinets, four of which make a logical cabinet of 16 x 24, ten
 * of those along X). Which of the cabinet's two sides is which is [OUR], and so is the order of cabinets along a ring:
 * X and Y count cabinets in ring order, not as they stand on the floor.
 *
 * Numbers [OUR]: cabinet by cabinet, row by row, then cage, slot, node, as on later Cray machines.
 * Source: spec/machines.md 4.1 (SEA, CUG05).
 */
#include <errno.h>

#include "emunic/fabric/torus.h"

enum {
    BLADE_NODES = 4, /* per module */
    CAGES = 3,       /* per cabinet */
    SLOTS = 8,       /* per cage */
};

/* Meaning of emu_torus.layout. */
enum { COLUMNS = EMU_TORUS_COLUMNS, ROWS = EMU_TORUS_ROWS, CAGES_USED = EMU_TORUS_LAYOUT_OWN, SLOTS_USED, NODES_USED };

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_torus_params *p = &params->torus;

    if (p->size[1] > BLADE_NODES && p->size[1] % BLADE_NODES != 0) {
        *key_out = "topology.y";
        (void)emu_text(text, text_len, "%u is not a whole number of modules of %d nodes", p->size[1], BLADE_NODES);
        return -EINVAL;
    }
    if (p->size[2] > SLOTS && p->size[2] % SLOTS != 0) {
        *key_out = "topology.z";
        (void)emu_text(text, text_len, "%u is not a whole number of cages of %d slots", p->size[2], SLOTS);
        return -EINVAL;
    }
    return emu_torus_check(p, key_out, text, text_len);
}

static void coord_of_router(const struct emu_torus *t, uint32_t router, uint32_t coord_out[EMU_TORUS_DIMS])
{
    uint32_t node = router % t->layout[NODES_USED];
    uint32_t height = router / t->layout[NODES_USED] % t->size[2];
    uint32_t cabinet = router / t->layout[NODES_USED] / t->size[2];

    coord_out[0] = cabinet % t->layout[COLUMNS];
    coord_out[1] = cabinet / t->layout[COLUMNS] * t->layout[NODES_USED] + node;
    coord_out[2] = height;
}

static enum emu_link_class class_of_link(const struct emu_torus *t, uint32_t dim, uint32_t low)
{
    (void)t;
    (void)low;
    return dim == 0 ? EMU_LINK_X : dim == 1 ? EMU_LINK_Y : EMU_LINK_Z;
}

static const struct emu_torus_kind seastar_kind = {
    .nodes_per_router = 1,
    .splits_ties = true,
    .coord_of = coord_of_router,
    .class_of = class_of_link,
};

static void lay_out(struct emu_torus *t)
{
    t->layout[NODES_USED] = t->size[1] < BLADE_NODES ? t->size[1] : BLADE_NODES;
    t->layout[SLOTS_USED] = t->size[2] < SLOTS ? t->size[2] : SLOTS;
    t->layout[CAGES_USED] = t->size[2] / t->layout[SLOTS_USED];
    t->layout[COLUMNS] = t->size[0];
    t->layout[ROWS] = t->size[1] / t->layout[NODES_USED];
}

static int build_seastar(struct emu_machine *m)
{
    struct emu_torus_params p = m->params.torus;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++)
        p.parallel[dim] = 1;
    return emu_torus_build(m, &p, &seastar_kind, lay_out);
}

static void place_of_nid(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    const uint8_t *at = emu_torus_coord(t, nid);
    uint32_t row = at[1] / t->layout[NODES_USED];

    *place_out = (struct emu_place){
        .group = row * t->layout[COLUMNS] + at[0],
        .chassis = at[2] / SLOTS,
        .blade = at[2] % SLOTS,
        .node = at[1] % t->layout[NODES_USED],
        .cabinet_column = at[0],
        .cabinet_row = row,
        .cage = at[2] / SLOTS,
        .chip = at[1] % t->layout[NODES_USED],
        .router = nid,
        .mesh_x = at[0],
        .mesh_y = at[1],
        .mesh_z = at[2],
    };
}

static int nid_of_cabinet_place(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    const struct emu_torus *t = emu_torus_of(m);

    if (at->cabinet_column >= t->layout[COLUMNS] || at->cabinet_row >= t->layout[ROWS] ||
        at->cage >= t->layout[CAGES_USED] || at->blade >= t->layout[SLOTS_USED] || at->node >= t->layout[NODES_USED])
        return -ERANGE;
    *nid_out = emu_torus_router(t, at->cabinet_column, at->cabinet_row * t->layout[NODES_USED] + at->node,
                                SLOTS * at->cage + at->blade);
    return 0;
}

static const char *chip_name(const struct emu_machine *m, uint32_t router)
{
    static const char *const names[BLADE_NODES] = { "s0", "s1", "s2", "s3" };
    const struct emu_torus *t = emu_torus_of(m);

    return names[emu_torus_coord(t, router)[1] % t->layout[NODES_USED]];
}

static uint32_t nid_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX])
{
    const struct emu_torus *t = emu_torus_of(m);

    sizes_out[0] = t->layout[COLUMNS] * t->layout[ROWS];
    sizes_out[1] = t->layout[CAGES_USED];
    sizes_out[2] = t->layout[SLOTS_USED];
    sizes_out[3] = t->layout[NODES_USED];
    return 4;
}

static const struct emu_param seastar_params[] = {
    EMU_TORUS_SIZE_KEYS(64, 64, CAGES *SLOTS), EMU_TORUS_WRAP_KEYS,
    EMU_LINK_KEYS("x", EMU_LINK_X, 64),        EMU_LINK_KEYS("y", EMU_LINK_Y, 64),
    EMU_LINK_KEYS("z", EMU_LINK_Z, 64),
};

const struct emu_topology emu_topology_seastar = {
    EMU_TORUS_COMMON_SLOTS,
    .kind = "seastar-torus",
    .params = seastar_params,
    .n_params = sizeof(seastar_params) / sizeof(seastar_params[0]),
    .check = check_params,
    .build = build_seastar,
    .place = place_of_nid,
    .nid_at = emu_torus_nid_at,
    .nid_in_cabinet = nid_of_cabinet_place,
    .chip = chip_name,
    .levels = nid_levels,
    .link = emu_torus_describe_link,
    .routing = &emu_seastar_routing,
};
