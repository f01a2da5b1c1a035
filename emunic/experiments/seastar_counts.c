/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SeaStar machines: what can be counted, and the audit of their routing.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/experiments/seastar_experiments.h"
#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/torus.h"

enum { CABINETS_MAX = 1024 };

int emu_seastar_xt3(struct emu_exp *x)
{
    static const char *const names[] = { "x_is_ring", "y_is_ring", "z_is_ring" };
    static const bool expected[] = { true, false, true };
    uint32_t nodes_of_cabinet[CABINETS_MAX] = { 0 };
    uint32_t n_cabinets = 0;
    uint32_t n_back = 0;
    bool is_even = true;
    const struct emu_torus *t;
    struct emu_machine *m;
    int r = emu_exp_machine(x, EMU_XT3_SPEC, &m);

    if (r < 0)
        return r;
    t = emu_torus_of(m);
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        static const uint32_t sizes[] = { 10, 16, 24 };
        char name[16];

        snprintf(name, sizeof(name), "size_%c", "xyz"[dim]);
        emu_exp_exact(x, 'A', name, "nodes", sizes[dim], t->size[dim]);
        /* The last router of a ring has a link that rises; the one at the end of a mesh has none. */
        emu_exp_exact(x, 'A', names[dim], "1", expected[dim],
                      emu_torus_has(t, emu_torus_router(t, dim == 0 ? 9 : 0, dim == 1 ? 15 : 0, dim == 2 ? 23 : 0),
                                    emu_torus_direction(dim, true)));
    }
    emu_exp_exact(x, 'A', "positions", "nodes", 3840, emu_machine_n_nodes(m));
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        struct emu_place p;
        uint32_t back;

        (void)emu_machine_place(m, nid, &p);
        if (p.group < CABINETS_MAX)
            n_cabinets += nodes_of_cabinet[p.group]++ == 0;
        n_back += emu_machine_nid_at(m, p.group, p.chassis, p.blade, p.node, &back) == 0 && back == nid &&
                  emu_torus_router(t, p.mesh_x, p.mesh_y, p.mesh_z) == nid;
        /* Four cabinets make a logical one of 16 x 24 in Y and Z; ten of those lie along X. */
        is_even = is_even && p.cabinet_column == p.mesh_x && p.cabinet_row == p.mesh_y / 4;
    }
    for (uint32_t cabinet = 0; cabinet < n_cabinets; cabinet++)
        is_even = is_even && nodes_of_cabinet[cabinet] == 96;
    emu_exp_exact(x, 'A', "cabinets", "cabinets", 40, n_cabinets);
    emu_exp_holds(x, 'A', "cabinets_have_96_nodes_in_their_place", is_even);
    emu_exp_exact(x, 'A', "coordinates_that_lead_back", "nodes", 3840, n_back);
    emu_machine_destroy(m);
    return 0;
}

/* ---- AUD-XT3 ---- */

/* Cuts the cable that rises from the middle of a dimension; dim 3: none. */
static int cut_middle(const struct emu_machine *m, struct emu_fault_map *faults, uint32_t dim)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t link, reverse;
    int r;

    if (dim == EMU_TORUS_DIMS)
        return 0;
    link = emu_torus_link(t, emu_torus_router(t, t->size[0] / 2, t->size[1] / 2, t->size[2] / 2),
                          emu_torus_direction(dim, true), 0);
    r = emu_link_reverse(m, link, &reverse);
    if (r == 0)
        r = emu_fault_map_set_link(faults, link, false);
    return r == 0 ? emu_fault_map_set_link(faults, reverse, false) : r;
}

static int audit_one(struct emu_exp *x, const char *size, const struct emu_machine *m, uint32_t dim)
{
    const struct emu_audit_walk_options options = {
        .mode = EMU_MODE_DETERMINISTIC,
        .n_pairs = emu_exp_context(x)->is_full ? 1000000 : 20000,
        .seed = emu_exp_context(x)->seed,
    };
    const char *fault = dim == EMU_TORUS_DIMS ? "whole" : dim == 0 ? "broken_x" : dim == 1 ? "broken_y" : "broken_z";
    struct emu_fault_map *faults;
    struct emu_audit *audit = NULL;
    struct emu_audit_walks walks;
    char name[64];
    int r = emu_fault_map_create(m, &faults);

    if (r < 0)
        return r;
    r = cut_middle(m, faults, dim);
    if (r == 0)
        r = emu_audit_create(m, m->topology->routing, faults, &audit);
    if (r == 0)
        r = emu_audit_walk(audit, &options, NULL, NULL, &walks);
    if (r == 0) {
        const struct emu_audit_result *result = emu_audit_result(audit);

        snprintf(name, sizeof(name), "%s_%s_acyclic", size, fault);
        emu_exp_exact(x, 'A', name, "1", 1, result->is_acyclic && result->is_free);
        snprintf(name, sizeof(name), "%s_%s_walks_do_what_is_declared", size, fault);
        emu_exp_holds(x, 'A', name, walks.is_clean);
        emu_exp_detail(
            x, "%s, %s: %llu channels, %llu dependencies, %llu of %llu pairs unroutable (a mesh has no other way)",
            size, fault, (unsigned long long)result->n_channels, (unsigned long long)result->n_dependencies,
            (unsigned long long)walks.n_unroutable, (unsigned long long)walks.n_walks);
    }
    emu_audit_destroy(audit);
    emu_fault_map_destroy(faults);
    return r;
}

int emu_seastar_audit(struct emu_exp *x)
{
    static const char *const specs[] = { EMU_XT3_SPEC, EMU_REDSTORM_SPEC };
    static const char *const sizes[] = { "10x16x24", "27x16x24" };
    int r = 0;

    for (uint32_t i = 0; i < 2 && r == 0; i++) {
        struct emu_machine *m;

        r = emu_exp_machine(x, specs[i], &m);
        if (r < 0)
            return r;
        for (uint32_t dim = 0; dim <= EMU_TORUS_DIMS && r == 0; dim++) {
            r = audit_one(x, sizes[i], m, dim);
            emu_exp_progress(x, (i * 4 + dim + 1) / 8.0);
        }
        emu_machine_destroy(m);
    }
    return r;
}
