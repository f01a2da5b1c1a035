/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The audit of one machine as an experiment (spec/machines.md 1.4): the channel dependency graph must have no cycle,
 * and walks between all pairs must find nothing that the graph does not say.
 */
#include "emunic/experiments/cug.h"

#include <errno.h>
#include <stdio.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/random.h"
#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/topology.h"

/* "xd1:fabrics=2" with two faults: "xd1_fabrics_2_faults_2". */
static void metric_name(const char *spec, uint32_t n_faults, char *name, size_t len)
{
    size_t n = 0;

    for (; *spec != '\0' && n + 1 < len; spec++)
        name[n++] = (*spec >= 'a' && *spec <= 'z') || (*spec >= '0' && *spec <= '9') ? *spec : '_';
    name[n] = '\0';
    if (n_faults > 0)
        snprintf(name + n, len - n, "_faults_%u", n_faults);
}

static int cut_cables(const struct emu_machine *m, uint64_t seed, uint32_t n, struct emu_fault_map **faults_out)
{
    struct emu_random random = { .state = seed };
    struct emu_fault_map *faults;
    int r = emu_fault_map_create(m, &faults);

    if (r < 0)
        return r;
    while (n > 0) {
        uint32_t id = (uint32_t)emu_random_below(&random, emu_machine_n_links(m));
        struct emu_link link;
        uint32_t reverse;

        if (emu_link_get(m, id, &link) < 0 || emu_link_reverse(m, id, &reverse) < 0 ||
            link.from.kind != EMU_END_ROUTER || link.to.kind != EMU_END_ROUTER)
            continue;
        (void)emu_fault_map_set_link(faults, id, false);
        (void)emu_fault_map_set_link(faults, reverse, false);
        n--;
    }
    *faults_out = faults;
    return 0;
}

static bool walks_are_clean(struct emu_audit *audit, uint64_t seed, uint64_t *n_walks, uint64_t *n_unroutable)
{
    static const enum emu_route_mode modes[] = { EMU_MODE_ADAPTIVE_0, EMU_MODE_IN_ORDER, EMU_MODE_MIN_HASH };
    bool is_clean = true;

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        for (uint32_t k = 0; k < EMU_TRAFFIC_CLASSES; k++) {
            const struct emu_audit_walk_options options = { .mode = modes[i], .traffic_class = k, .seed = seed };
            struct emu_audit_walks walks;

            if (emu_audit_walk(audit, &options, NULL, NULL, &walks) < 0)
                return false;
            is_clean = is_clean && walks.is_clean;
            *n_walks += walks.n_walks;
            *n_unroutable += walks.n_unroutable;
        }
    }
    return is_clean;
}

int cug_audit(struct emu_exp *x, const char *spec, uint32_t n_faults)
{
    uint64_t seed = emu_exp_context(x)->seed;
    struct emu_fault_map *faults = NULL;
    struct emu_audit *audit = NULL;
    const struct emu_audit_result *result;
    struct emu_machine *m = NULL;
    uint64_t n_walks = 0;
    uint64_t n_unroutable = 0;
    char name[64];
    int r;

    metric_name(spec, n_faults, name, sizeof(name));
    r = emu_exp_machine(x, spec, &m);
    if (r < 0)
        return r;
    r = n_faults > 0 ? cut_cables(m, seed, n_faults, &faults) : 0;
    if (r < 0)
        goto out;
    r = emu_audit_create(m, m->topology->routing, faults, &audit);
    if (r < 0)
        goto out;
    result = emu_audit_result(audit);
    emu_exp_exact(x, 'A', name, "acyclic", 1, result->is_acyclic && result->is_free);
    emu_exp_holds(x, 'A', "walks_clean", walks_are_clean(audit, seed, &n_walks, &n_unroutable));
    emu_exp_detail(x, "%s: channels=%llu dependencies=%llu acyclic=%d walks=%llu unroutable=%llu", spec,
                   (unsigned long long)result->n_channels, (unsigned long long)result->n_dependencies,
                   result->is_acyclic, (unsigned long long)n_walks, (unsigned long long)n_unroutable);
out:
    emu_audit_destroy(audit);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
    return r;
}
