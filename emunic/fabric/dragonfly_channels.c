/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which channel may follow which, of the ways that dragonfly_routing.c takes. The audit looks for circles in it.
 */
#include "emunic/fabric/dragonfly_channels.h"

#include "emunic/fabric/dragonfly_inner.h"
#include "emunic/fabric/dragonfly_routing.h"

uint32_t emu_dragonfly_n_vcs(const struct emu_machine *m, enum emu_link_class link_class)
{
    (void)m;
    if (link_class == EMU_LINK_PROCESSOR_OUT)
        return EMU_TRAFFIC_CLASSES;
    return EMU_TRAFFIC_CLASSES * (link_class == EMU_LINK_PROCESSOR_IN ? TILES_PER_NIC : EMU_DRAGONFLY_CLASS_VCS);
}

void emu_dragonfly_describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                               struct emu_vc_info *info_out)
{
    uint32_t per_class = emu_dragonfly_n_vcs(m, link_class) / EMU_TRAFFIC_CLASSES;

    *info_out = (struct emu_vc_info){
        .capacity_units = m->params.router.vc_units,
        .traffic_class = (uint8_t)(vc / per_class),
        .is_escape = true, /* all of them: there is no cycle to escape from */
    };
}

/* Who asks for the relation, and of which network. */
struct relation {
    struct network n;
    emu_dragonfly_visit_fn *visit;
    void *ctx;
};

/* The links that leave one router. */
struct outputs {
    uint32_t router;
    uint32_t green[EMU_XC_BLADES_MAX];
    uint32_t black[EMU_XC_CHASSIS_MAX * BLACK_LINKS];
    uint32_t blue[2 * EMU_XC_CONNECTORS * EMU_XC_LINKS_PER_CABLE];
    uint32_t n_green;
    uint32_t n_black;
    uint32_t n_blue;
};

/* Bits of channels. What follows what within a class of traffic: see dragonfly_routing.c, and detour() there. */
enum { VC0 = 1, VC1 = 2, VC2 = 4, VC3 = 8 };

struct follow {
    uint8_t green;
    uint8_t black;
    uint8_t blue;
    bool out;
};

static const struct follow follow_green[EMU_DRAGONFLY_CLASS_VCS] = {
    { VC1 | VC2 | VC3, VC0 | VC1 | VC2 | VC3, VC0 | VC2, true },
    { VC2 | VC3, VC1 | VC2 | VC3, VC2, true }, /* out: detour() of a packet that passes its destination */
    { VC3, VC2 | VC3, VC2, false },
    { 0, VC3, 0, true },
};
static const struct follow follow_black[EMU_DRAGONFLY_CLASS_VCS] = {
    { VC1 | VC2 | VC3, VC1 | VC2 | VC3, VC0 | VC2, true },
    { VC2 | VC3, VC2 | VC3, VC2, true },
    { VC3, VC3, VC2, false },
    { 0, 0, 0, true },
};
static const struct follow follow_blue[EMU_DRAGONFLY_CLASS_VCS] = {
    { VC1 | VC2 | VC3, VC1 | VC2 | VC3, VC2, true },
    { 0, 0, 0, false },
    { VC3, VC3, 0, true },
    { 0, 0, 0, false },
};
static const struct follow follow_entry = { VC0, VC0, VC0, true };

/* One channel of a link into a router. */
struct channel {
    uint32_t link;
    uint32_t vc;
    uint32_t traffic_class;
};

static void visit_links(const struct relation *r, const struct channel *c, const uint32_t *nexts, uint32_t n_nexts,
                        uint32_t vc_bits)
{
    uint32_t first_vc = c->traffic_class * EMU_DRAGONFLY_CLASS_VCS;

    for (uint32_t i = 0; i < n_nexts && vc_bits != 0; i++) {
        if (!is_up(&r->n, nexts[i]))
            continue;
        for (uint32_t next_vc = 0; next_vc < EMU_DRAGONFLY_CLASS_VCS; next_vc++) {
            if (vc_bits >> next_vc & 1)
                r->visit(r->ctx, c->link, c->vc, nexts[i], first_vc + next_vc);
        }
    }
}

/* Everything that may follow one channel into a router. */
static void visit_follow(const struct relation *r, const struct outputs *o, struct channel c, const struct follow *f)
{
    visit_links(r, &c, o->green, o->n_green, f->green);
    visit_links(r, &c, o->black, o->n_black, f->black);
    visit_links(r, &c, o->blue, o->n_blue, f->blue);
    for (uint32_t node = 0; node < NODES_PER_BLADE && f->out; node++) {
        uint32_t out = r->n.d->first_link[EMU_LINK_PROCESSOR_OUT] + o->router * NODES_PER_BLADE + node;

        if (is_up(&r->n, out))
            r->visit(r->ctx, c.link, c.vc, out, c.traffic_class);
    }
}

/* The links that enter a router are the reverse ones of those that leave it. */
static void visit_inputs(const struct relation *r, const struct emu_machine *m, const struct outputs *o,
                         const uint32_t *outs, uint32_t n_outs, const struct follow follow[EMU_DRAGONFLY_CLASS_VCS])
{
    for (uint32_t i = 0; i < n_outs; i++) {
        uint32_t in = m->topology->link_reverse(m, outs[i]);

        if (!is_up(&r->n, in))
            continue;
        for (uint32_t vc = 0; vc < EMU_TRAFFIC_CLASSES * EMU_DRAGONFLY_CLASS_VCS; vc++)
            visit_follow(r, o, (struct channel){ in, vc, vc / EMU_DRAGONFLY_CLASS_VCS },
                         &follow[vc % EMU_DRAGONFLY_CLASS_VCS]);
    }
}

static void visit_router(const struct relation *r, const struct emu_machine *m, const struct outputs *o)
{
    for (uint32_t node = 0; node < NODES_PER_BLADE; node++) {
        uint32_t in = r->n.d->first_link[EMU_LINK_PROCESSOR_IN] + o->router * NODES_PER_BLADE + node;

        for (uint32_t vc = 0; vc < EMU_TRAFFIC_CLASSES * TILES_PER_NIC && is_up(&r->n, in); vc++)
            visit_follow(r, o, (struct channel){ in, vc, vc / TILES_PER_NIC }, &follow_entry);
    }
    visit_inputs(r, m, o, o->green, o->n_green, follow_green);
    visit_inputs(r, m, o, o->black, o->n_black, follow_black);
    visit_inputs(r, m, o, o->blue, o->n_blue, follow_blue);
}

static void list_local_outputs(const struct dragonfly *d, uint32_t router, struct outputs *o)
{
    const struct spot s = spot_of_router(d, router);

    o->router = router;
    o->n_green = 0;
    o->n_black = 0;
    o->n_blue = 0;
    for (uint32_t blade = 0; blade < d->blades; blade++) {
        if (blade != s.blade)
            o->green[o->n_green++] = green_link(d, &s, blade);
    }
    for (uint32_t chassis = 0; chassis < chassis_of_group(d, s.group); chassis++) {
        for (uint32_t i = 0; i < BLACK_LINKS && chassis != s.chassis; i++)
            o->black[o->n_black++] = black_link(d, &s, chassis, i);
    }
}

static void list_blue_outputs(const struct dragonfly *d, uint32_t group, struct outputs *outputs)
{
    for (uint32_t peer = 0; peer < d->groups; peer++) {
        for (uint32_t blue = 0; blue < d->bundle * EMU_XC_LINKS_PER_CABLE && peer != group; blue++) {
            const struct crossing c = crossing_of(d, group, peer, blue);
            struct outputs *o = &outputs[router_at(d, &c.from) - group * d->routers_per_group];

            o->blue[o->n_blue++] = c.link;
        }
    }
}

void emu_dragonfly_visit_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                                      emu_dragonfly_visit_fn *visit, void *ctx)
{
    const struct dragonfly *d = emu_dragonfly_of(m);
    const struct relation r = {
        .n = { .d = d, .faults = emu_fault_map_is_clean(faults) ? NULL : faults },
        .visit = visit,
        .ctx = ctx,
    };

    for (uint32_t group = 0; group < d->groups; group++) {
        struct outputs outputs[EMU_XC_CHASSIS_MAX * EMU_XC_BLADES_MAX];
        uint32_t first = group * d->routers_per_group;
        uint32_t n_routers = chassis_of_group(d, group) * d->blades;

        for (uint32_t i = 0; i < n_routers; i++)
            list_local_outputs(d, first + i, &outputs[i]);
        list_blue_outputs(d, group, outputs);
        for (uint32_t i = 0; i < n_routers; i++)
            visit_router(&r, m, &outputs[i]);
    }
}
