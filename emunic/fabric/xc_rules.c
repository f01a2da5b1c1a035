/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Configuration rules of Cray XC systems.
 *
 * Model: a configuration is a number of groups of `chassis` chassis each, the last one perhaps smaller, and one bundle
 * size. A cabinet holds three chassis. A system of up to eight groups of one chassis is read as the air-cooled
 * variant, where a cabinet holds one chassis and the global links are electrical: rule 8 replaces rules 2 to 6.
 *
 * Readings where the text leaves room:
 * - rule 3's granularity of one chassis also holds for one and two liquid-cooled cabinets;
 * - rules 1 and 2 count against the smallest and a full group of the configuration, whose blades may be fewer than 16;
 * - rule 8: half or fully populated means floor(c / (groups - 1)) cables per bundle with c all or half of a chassis's
 *   connectors.
 * Ten links of each of two blades share five connectors of four links; a blade without a partner fills two.
 * Source: spec/machines.md 2.1 (XCWP).
 */
#include "emunic/fabric/xc_rules.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { AIR_COOLED_GROUPS_MAX = 8, AIR_COOLED_NODES_MIN = 64, NODES_PER_BLADE = 4 };

/* Collects the broken rules of one check. */
struct findings {
    void (*note)(void *ctx, uint32_t rule, const char *text);
    void *ctx;
    int n_broken;
};

static void __attribute__((format(printf, 3, 4))) find(struct findings *f, uint32_t rule, const char *format, ...)
{
    char text[200];
    va_list ap;

    f->n_broken++;
    if (!f->note)
        return;
    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    f->note(f->ctx, rule, text);
}

static bool is_air_cooled(const struct emu_xc_config *c)
{
    return c->groups <= AIR_COOLED_GROUPS_MAX && c->chassis == 1 && c->last_chassis == 1;
}

static uint32_t cabinets_of(uint32_t chassis)
{
    return (chassis + EMU_XC_CAGES - 1) / EMU_XC_CAGES;
}

uint32_t emu_xc_connectors_per_chassis(uint32_t blades)
{
    return blades / 2 * EMU_XC_CONNECTORS + blades % 2 * EMU_XC_CONNECTORS_LONE;
}

uint32_t emu_xc_connectors_per_group(uint32_t chassis, uint32_t blades)
{
    return chassis * emu_xc_connectors_per_chassis(blades);
}

uint32_t emu_xc_cabinets(const struct emu_xc_config *c)
{
    if (is_air_cooled(c))
        return c->groups;
    return (c->groups - 1) * cabinets_of(c->chassis) + cabinets_of(c->last_chassis);
}

/* What a bundle must be a multiple of: rules 3 and 4. */
static uint32_t bundle_step(const struct emu_xc_config *c)
{
    uint32_t cabinets = emu_xc_cabinets(c);

    if (is_air_cooled(c) || cabinets < 3 || cabinets > 64)
        return 1;
    return cabinets <= 26 ? 6 : 2;
}

/* The most that fits: rule 1. The smallest group limits all. */
static uint32_t bundle_limit(const struct emu_xc_config *c)
{
    uint32_t chassis = c->last_chassis < c->chassis ? c->last_chassis : c->chassis;

    return emu_xc_connectors_per_group(chassis, c->blades) / (c->groups - 1);
}

uint32_t emu_xc_bundle_max(const struct emu_xc_config *c)
{
    uint32_t limit, legal;

    if (c->groups == 1)
        return 0;
    limit = bundle_limit(c);
    legal = limit - limit % bundle_step(c);
    return legal > 0 ? legal : limit;
}

static void check_bundle(const struct emu_xc_config *c, struct findings *f)
{
    uint32_t step = bundle_step(c);
    uint32_t connectors = emu_xc_connectors_per_group(c->chassis, c->blades);
    uint32_t used = c->cables_per_bundle * (c->groups - 1);

    if (c->cables_per_bundle > bundle_limit(c))
        find(f, 1, "%u cables between each two of %u groups do not fit: the smallest group has room for %u",
             c->cables_per_bundle, c->groups, bundle_limit(c));
    if (is_air_cooled(c))
        return;
    if (4 * used < connectors)
        find(f, 2, "a group uses %u of its %u global cable connectors, less than a quarter", used, connectors);
    if (c->cables_per_bundle % step != 0)
        find(f, step == 6 ? 3 : 4, "%u cabinets take bundles in multiples of %u cables, not %u", emu_xc_cabinets(c),
             step, c->cables_per_bundle);
}

static void check_air_cooled(const struct emu_xc_config *c, struct findings *f)
{
    uint32_t nodes = c->groups * c->blades * NODES_PER_BLADE;
    uint32_t connectors = emu_xc_connectors_per_chassis(c->blades);

    if (nodes < AIR_COOLED_NODES_MIN)
        find(f, 8, "%u nodes: the smallest air-cooled system has %u", nodes, AIR_COOLED_NODES_MIN);
    if (c->groups > 1 && c->cables_per_bundle != connectors / (c->groups - 1) &&
        c->cables_per_bundle != connectors / 2 / (c->groups - 1))
        find(f, 8,
             "%u cables per bundle: the global network of an air-cooled system is fully (%u) or half (%u) populated",
             c->cables_per_bundle, connectors / (c->groups - 1), connectors / 2 / (c->groups - 1));
}

static void check_liquid_cooled(const struct emu_xc_config *c, struct findings *f)
{
    uint32_t cabinets = emu_xc_cabinets(c);

    if (c->blades != EMU_XC_BLADES_MAX)
        find(f, 3, "a chassis has %u of %u blades: systems grow by whole chassis", c->blades, EMU_XC_BLADES_MAX);
    if (cabinets > 64 && c->last_chassis != EMU_XC_CHASSIS_MAX)
        find(f, 5, "%u cabinets: above 64 each group is whole, the last one has %u of %u chassis", cabinets,
             c->last_chassis, EMU_XC_CHASSIS_MAX);
    else if (cabinets > 26 && c->last_chassis % EMU_XC_CAGES != 0)
        find(f, 4, "%u cabinets: above 26 each cabinet is whole, the last group has %u chassis", cabinets,
             c->last_chassis);
    if (c->groups > 1 && c->chassis != EMU_XC_CHASSIS_MAX)
        find(f, 6, "groups of %u chassis: every group but the last has %u", c->chassis, EMU_XC_CHASSIS_MAX);
}

int emu_xc_check(const struct emu_xc_config *c, void (*note)(void *ctx, uint32_t rule, const char *text), void *ctx)
{
    struct findings f = { .note = note, .ctx = ctx };

    if (c->groups > 1)
        check_bundle(c, &f);
    if (is_air_cooled(c))
        check_air_cooled(c, &f);
    else
        check_liquid_cooled(c, &f);
    return f.n_broken;
}
