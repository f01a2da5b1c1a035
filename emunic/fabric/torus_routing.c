/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/fabric/torus_routing.h"

/* ---- channels ---- */

static bool is_processor(enum emu_link_class link_class)
{
    return link_class == EMU_LINK_PROCESSOR_IN || link_class == EMU_LINK_PROCESSOR_OUT;
}

uint32_t emu_torus_n_vcs(enum emu_link_class link_class, uint32_t vcs)
{
    return is_processor(link_class) ? EMU_TRAFFIC_CLASSES : vcs;
}

void emu_torus_describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                           uint32_t vcs_per_class, struct emu_vc_info *info_out)
{
    *info_out = (struct emu_vc_info){
        .capacity_units = m->params.router.vc_units,
        .traffic_class = (uint8_t)(is_processor(link_class) ? vc : vc / vcs_per_class),
        .is_escape = true,
    };
}

/* ---- dependencies ---- */

uint32_t emu_torus_steps_max(const struct emu_torus_relation *r, uint32_t direction)
{
    uint32_t size = r->torus->size[direction / 2];

    if (r->has_detours || !r->torus->wraps[direction / 2])
        return size - 1;
    return (direction & 1) || r->torus->kind->splits_ties ? size / 2 : (size - 1) / 2;
}

bool emu_torus_is_used(const struct emu_torus_relation *r, uint32_t router, uint32_t direction, bool is_behind)
{
    uint32_t limit = emu_torus_steps_max(r, direction);

    if (limit == 0)
        return false;
    return is_behind ? emu_torus_is_behind_dateline(r->torus, router, direction, limit) :
                       !emu_torus_crosses(r->torus, router, direction);
}

bool emu_torus_goes_on(const struct emu_torus_relation *r, uint32_t router, uint32_t direction, bool is_behind,
                       bool *is_behind_out)
{
    uint32_t limit = emu_torus_steps_max(r, direction);
    bool crosses;

    if (limit <= 1 || !emu_torus_has(r->torus, router, direction))
        return false;
    crosses = emu_torus_crosses(r->torus, router, direction);
    *is_behind_out = is_behind || crosses;
    return !is_behind || (!crosses && emu_torus_is_behind_dateline(r->torus, router, direction, limit));
}
