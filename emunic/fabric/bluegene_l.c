/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blue Gene/L machines.
 *
 * Shape. One node per router, one link per direction, all three dimensions rings. A midplane is 8 x 8 x 8 nodes, 16
 * node cards of 4 x 4 x 2. Machines up to 8 in a dimension are parts of a midplane; larger ones have whole midplanes in
 * it, and a link from one midplane to the next one has a longer delay (links.midplane_ns). Racks are cabled to their
 * next but one neighbours, so that no cable is long (1, 3, 5, 6, 4, 2, 1); coordinates count in ring order, and all
 * such cables are alike.
 *
 * Numbers [OUR]: nid = (z * size y + y) * size x + x, as the machine's own order of ranks has it. Names [OUR] are in
 * the form of all machines here: cabinet column, row and cage are the midplane's x, y and z; the slot is the node card
 * in it, ((z / 2) * 2 + y / 4) * 2 + x / 4; the node is the chip on the card, (z mod 2 * 4 + y mod 4) * 4 + x mod 4.
 * Source: spec/machines.md 5.1 (BGL).
 */
#include <errno.h>

#include "emunic/fabric/bgl_routing.h"
#include "emunic/fabric/torus.h"

enum {
    MIDPLANE = 8, /* nodes along each dimension */
    CARD_XY = 4,  /* nodes of a node card along x and y */
    CARD_Z = 2,
    CARDS = 16, /* per midplane */
    CARD_NODES = 32,
};

static const char *const size_keys[EMU_TORUS_DIMS] = { "topology.x", "topology.y", "topology.z" };

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_torus_params *p = &params->torus;
    struct emu_torus_params rings = *p;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        if (p->size[dim] > MIDPLANE && p->size[dim] % MIDPLANE != 0) {
            *key_out = size_keys[dim];
            (void)emu_text(text, text_len, "%u is not a whole number of midplanes of %d nodes", p->size[dim], MIDPLANE);
            return -EINVAL;
        }
        rings.wraps[dim] = 1;
    }
    if (params->router.vc_units < 2 * params->router.packet_units_max) {
        *key_out = "router.vc_units";
        (void)emu_text(text, text_len, "%u is less than the two packets of %u that a bubble channel is entered with",
                       params->router.vc_units, params->router.packet_units_max);
        return -EINVAL;
    }
    return emu_torus_check(&rings, key_out, text, text_len);
}

static void coord_of_router(const struct emu_torus *t, uint32_t router, uint32_t coord_out[EMU_TORUS_DIMS])
{
    coord_out[0] = router % t->size[0];
    coord_out[1] = router / t->size[0] % t->size[1];
    coord_out[2] = router / t->size[0] / t->size[1];
}

static enum emu_link_class class_of_link(const struct emu_torus *t, uint32_t dim, uint32_t low)
{
    (void)t;
    (void)low;
    return dim == 0 ? EMU_LINK_X : dim == 1 ? EMU_LINK_Y : EMU_LINK_Z;
}

static const struct emu_torus_kind bluegene_l_kind = {
    .nodes_per_router = 1,
    .coord_of = coord_of_router,
    .class_of = class_of_link,
};

static int build_bluegene_l(struct emu_machine *m)
{
    struct emu_torus_params p = m->params.torus;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        p.wraps[dim] = 1;
        p.parallel[dim] = 1;
    }
    return emu_torus_build(m, &p, &bluegene_l_kind, NULL);
}

/* ---- places ---- */

static uint32_t midplanes(const struct emu_torus *t, uint32_t dim)
{
    return (t->size[dim] + MIDPLANE - 1) / MIDPLANE;
}

static void place_of_nid(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    const uint8_t *at = emu_torus_coord(t, nid);
    uint32_t x = at[0] % MIDPLANE;
    uint32_t y = at[1] % MIDPLANE;
    uint32_t z = at[2] % MIDPLANE;

    *place_out = (struct emu_place){
        .blade = (z / CARD_Z * 2 + y / CARD_XY) * 2 + x / CARD_XY,
        .node = (z % CARD_Z * CARD_XY + y % CARD_XY) * CARD_XY + x % CARD_XY,
        .cabinet_column = at[0] / MIDPLANE,
        .cabinet_row = at[1] / MIDPLANE,
        .cage = at[2] / MIDPLANE,
        .router = nid,
        .mesh_x = at[0],
        .mesh_y = at[1],
        .mesh_z = at[2],
    };
    place_out->group =
        (place_out->cage * midplanes(t, 1) + place_out->cabinet_row) * midplanes(t, 0) + place_out->cabinet_column;
}

static int nid_of_cabinet_place(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t x, y, z;

    if (at->cabinet_column >= midplanes(t, 0) || at->cabinet_row >= midplanes(t, 1) || at->cage >= midplanes(t, 2) ||
        at->blade >= CARDS || at->node >= CARD_NODES)
        return -ERANGE;
    x = at->cabinet_column * MIDPLANE + at->blade % 2 * CARD_XY + at->node % CARD_XY;
    y = at->cabinet_row * MIDPLANE + at->blade / 2 % 2 * CARD_XY + at->node / CARD_XY % CARD_XY;
    z = at->cage * MIDPLANE + at->blade / 4 * CARD_Z + at->node / CARD_XY / CARD_XY;
    if (x >= t->size[0] || y >= t->size[1] || z >= t->size[2])
        return -ERANGE;
    *nid_out = emu_torus_router(t, x, y, z);
    return 0;
}

/* A group is a midplane; its only chassis has the node cards. */
static int nid_of_group_place(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    struct emu_place in_cabinet = {
        .cabinet_column = at->group % midplanes(t, 0),
        .cabinet_row = at->group / midplanes(t, 0) % midplanes(t, 1),
        .cage = at->group / midplanes(t, 0) / midplanes(t, 1),
        .blade = at->blade,
        .node = at->node,
    };

    return at->chassis != 0 ? -ERANGE : nid_of_cabinet_place(m, &in_cabinet, nid_out);
}

/* "r0" ... "r31": the router of each node of a card. */
static const char *chip_name(const struct emu_machine *m, uint32_t router)
{
    static const char names[CARD_NODES][4] = {
        "r0",  "r1",  "r2",  "r3",  "r4",  "r5",  "r6",  "r7",  "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15",
        "r16", "r17", "r18", "r19", "r20", "r21", "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31",
    };
    struct emu_place place;

    place_of_nid(m, router, &place);
    return names[place.node];
}

static uint32_t nid_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX])
{
    const struct emu_torus *t = emu_torus_of(m);

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++)
        sizes_out[dim] = t->size[EMU_TORUS_DIMS - 1 - dim];
    return EMU_TORUS_DIMS;
}

/* ---- links ---- */

static void describe_link(const struct emu_machine *m, uint32_t link, struct emu_link *link_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router, direction, number, at;

    emu_torus_describe_link(m, link, link_out);
    if (!emu_torus_is_network_link(t, link))
        return;
    emu_torus_link_parts(t, link, &router, &direction, &number);
    at = emu_torus_coord(t, router)[direction / 2] % MIDPLANE;
    if (t->size[direction / 2] > MIDPLANE && at == ((direction & 1) ? MIDPLANE - 1 : 0))
        link_out->wire_ps += m->params.torus.bgl.midplane_ps;
}

/* ---- parameters ---- */

static const char *const escape_choices[] = { "bubble", "dateline", NULL };
static const char *const order_choices[] = { "dimension", "direction", NULL };
static const char *const injection_choices[] = { "emptiest", "direction", NULL };

#define FIELD(field) offsetof(struct emu_machine_params, torus.bgl.field)

static const struct emu_param bluegene_l_params[] = {
    EMU_TORUS_SIZE_KEYS(64, 64, 64),
    EMU_LINK_KEYS("x", EMU_LINK_X, 1),
    EMU_LINK_KEYS("y", EMU_LINK_Y, 1),
    EMU_LINK_KEYS("z", EMU_LINK_Z, 1),
    { "links.midplane_ns", EMU_PARAM_MILLI, FIELD(midplane_ps), 0, 1000000000, NULL },
    { "router.dynamic_vcs", EMU_PARAM_COUNT, FIELD(dynamic_vcs), 0, 4, NULL },
    { "router.escape", EMU_PARAM_CHOICE, FIELD(escape), 0, 0, escape_choices },
    { "router.order", EMU_PARAM_CHOICE, FIELD(order), 0, 0, order_choices },
    { "nic.injection", EMU_PARAM_CHOICE, FIELD(injection), 0, 0, injection_choices },
    { "nic.packet_start_ns", EMU_PARAM_MILLI, FIELD(packet_start_ps), 0, 1000000, NULL },
    { "nic.fifo_bytes", EMU_PARAM_COUNT, FIELD(fifo_bytes), 256, 65535, NULL },
};

const struct emu_topology emu_topology_bluegene_l = {
    EMU_TORUS_COMMON_SLOTS,
    .kind = "bluegene-l-torus",
    .params = bluegene_l_params,
    .n_params = sizeof(bluegene_l_params) / sizeof(bluegene_l_params[0]),
    .check = check_params,
    .build = build_bluegene_l,
    .place = place_of_nid,
    .nid_at = nid_of_group_place,
    .nid_in_cabinet = nid_of_cabinet_place,
    .chip = chip_name,
    .levels = nid_levels,
    .link = describe_link,
    .routing = &emu_bgl_routing,
};
