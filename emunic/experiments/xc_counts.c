/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XC: cables, links and nodes, counted on the built machine (kind A of spec/machines.md 2.5).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/xc.h"
#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/xc_rules.h"

enum { NODES_PER_ROUTER = 4, BLACK_PER_CABLE = 3 };

static double gb_per_s(uint64_t bytes_per_s)
{
    return (double)bytes_per_s / 1e9;
}

static void place_of_router(const struct emu_machine *m, uint32_t router, struct emu_place *place_out)
{
    (void)emu_machine_place(m, router * NODES_PER_ROUTER, place_out);
}

/* ---- XC-5: bisection ---- */

/* Blue links from group to group, and their bytes per second. */
struct crossings {
    uint32_t groups;
    uint32_t *links;      /* owned; [from][to] */
    uint64_t bytes_per_s; /* of one link */
};

static int count_crossings(const struct emu_machine *m, struct crossings *c)
{
    struct emu_dragonfly_shape shape;
    int r = emu_dragonfly_shape(m, &shape);

    if (r < 0)
        return r;
    c->groups = shape.groups;
    c->links = calloc((size_t)shape.groups * shape.groups, sizeof(*c->links));
    if (!c->links)
        return -ENOMEM;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_place from, to;
        struct emu_link l;

        (void)emu_link_get(m, id, &l);
        if (l.link_class != EMU_LINK_BLUE)
            continue;
        place_of_router(m, l.from.index, &from);
        place_of_router(m, l.to.index, &to);
        c->links[from.group * shape.groups + to.group]++;
        c->bytes_per_s = l.bytes_per_s;
    }
    return 0;
}

/* The balanced cut with the fewest links, one direction. */
static uint32_t worst_cut(const struct crossings *c)
{
    uint32_t fewest = UINT32_MAX;

    for (uint32_t half = 0; half < 1u << c->groups; half++) {
        uint32_t links = 0;

        if ((uint32_t)__builtin_popcount(half) != c->groups / 2)
            continue;
        for (uint32_t a = 0; a < c->groups; a++) {
            for (uint32_t b = 0; b < c->groups; b++)
                links += (half >> a & 1) && !(half >> b & 1) ? c->links[a * c->groups + b] : 0;
        }
        if (links < fewest)
            fewest = links;
    }
    return fewest;
}

struct bisection {
    const char *name;
    const char *spec;
    uint32_t cut_cables; /* Table 3 of the source; 0: not in it */
    uint32_t all_cables;
    double gb_per_s;
};

static int report_bisection(struct emu_exp *x, const struct bisection *b)
{
    struct crossings c = { 0 };
    struct emu_dragonfly_shape shape;
    struct emu_machine *m;
    double cut, formula;
    char name[64];
    int r;

    r = emu_exp_machine(x, b->spec, &m);
    if (r < 0)
        return r;
    r = count_crossings(m, &c);
    if (r < 0)
        goto out;
    (void)emu_dragonfly_shape(m, &shape);
    cut = (double)worst_cut(&c);
    formula = 4 * gb_per_s(c.bytes_per_s) * shape.groups * (shape.cables_per_bundle * (shape.groups - 1)) *
              shape.groups / (2.0 * (shape.groups - 1));
    if (b->cut_cables > 0) {
        snprintf(name, sizeof(name), "%s_cables_across", b->name);
        emu_exp_exact(x, 'A', name, "cables", b->cut_cables, cut / EMU_XC_LINKS_PER_CABLE);
        snprintf(name, sizeof(name), "%s_cables", b->name);
        emu_exp_exact(x, 'A', name, "cables", b->all_cables, shape.n_cables);
        snprintf(name, sizeof(name), "%s_bisection", b->name);
        emu_exp_exact(x, 'A', name, "GB/s", b->gb_per_s, 2 * cut * gb_per_s(c.bytes_per_s));
    }
    snprintf(name, sizeof(name), "%s_formula_is_the_count", b->name);
    emu_exp_exact(x, 'A', name, "GB/s", formula, 2 * cut * gb_per_s(c.bytes_per_s));
    emu_exp_detail(x, "%s: %u groups, %u cables per bundle, %u rules broken", b->name, shape.groups,
                   shape.cables_per_bundle, (unsigned)emu_machine_check_rules(m, NULL, NULL));
out:
    free(c.links);
    emu_machine_destroy(m);
    return r;
}

int emu_xc_bisection(struct emu_exp *x)
{
    static const struct bisection table[] = {
        { "12_cabinets_initial", "aries:groups=6,cables_per_bundle=12", 108, 180, 4050 },
        { "12_cabinets_full", "aries:groups=6,cables_per_bundle=48", 432, 720, 16200 },
        { "16_cabinets_initial", "aries:groups=8,cables_per_bundle=12", 192, 336, 7200 },
        { "16_cabinets_full", "aries:groups=8,cables_per_bundle=34", 544, 952, 20400 },
        { "16_cabinets_by_rule_3", "aries:groups=8,cables_per_bundle=30", 0, 0, 0 },
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        int r = report_bisection(x, &table[i]);

        if (r < 0)
            return r;
    }
    emu_exp_detail(x, "34 cables per bundle are the source's Table 3; its rule 3 allows multiples of six, so 30");
    return 0;
}

/* ---- XC-17, XC-18, XC-19, XC-21: one group, all groups ---- */

int emu_xc_group_bisection(struct emu_exp *x)
{
    uint32_t green = 0;
    uint32_t black = 0;
    uint64_t green_bytes = 0;
    struct emu_machine *m;
    int r = emu_exp_machine(x, "aries:groups=1", &m);

    if (r < 0)
        return r;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_place from, to;
        struct emu_link l;

        (void)emu_link_get(m, id, &l);
        if (l.link_class != EMU_LINK_GREEN && l.link_class != EMU_LINK_BLACK)
            continue;
        place_of_router(m, l.from.index, &from);
        place_of_router(m, l.to.index, &to);
        black += from.chassis / 3 != to.chassis / 3;
        if (from.blade / 8 != to.blade / 8) {
            green++;
            green_bytes += l.bytes_per_s;
        }
    }
    emu_exp_exact(x, 'A', "green_links_between_halves_of_each_chassis", "links", 384, green / 2);
    emu_exp_exact(x, 'A', "black_links_between_halves_of_the_group", "links", 432, black / 2);
    emu_exp_exact(x, 'A', "bisection", "GB/s", 4032, gb_per_s(green_bytes));
    emu_machine_destroy(m);
    return 0;
}

int emu_xc_components(struct emu_exp *x)
{
    struct emu_dragonfly_shape shape;
    struct emu_machine *m;
    uint32_t black = 0;
    double groups, nodes;
    int r = emu_exp_machine(x, "aries:groups=241", &m);

    if (r < 0)
        return r;
    (void)emu_dragonfly_shape(m, &shape);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l;

        (void)emu_link_get(m, id, &l);
        black += l.link_class == EMU_LINK_BLACK;
    }
    groups = shape.groups;
    nodes = emu_machine_n_nodes(m);
    emu_exp_exact(x, 'A', "routers_per_group", "routers", 96, emu_machine_n_routers(m) / groups);
    emu_exp_exact(x, 'A', "copper_cables_per_group", "cables", 240, black / 2.0 / BLACK_PER_CABLE / groups);
    emu_exp_exact(x, 'A', "optical_cables_per_group", "cables", 120, shape.n_cables / groups);
    emu_exp_exact(x, 'A', "routers_per_node", "routers", 0.25, emu_machine_n_routers(m) / nodes);
    emu_exp_exact(x, 'A', "copper_cables_per_node", "cables", 0.625, black / 2.0 / BLACK_PER_CABLE / nodes);
    emu_exp_exact(x, 'A', "optical_cables_per_node", "cables", 0.3125, shape.n_cables / nodes);
    emu_machine_destroy(m);
    return 0;
}

/* Cables that have two ends in the built machine: those of each bundle, looked up from both sides. */
static int count_cables(struct emu_exp *x, const char *spec, uint32_t *cables_out)
{
    struct emu_dragonfly_shape shape;
    struct emu_machine *m;
    int r = emu_exp_machine(x, spec, &m);

    if (r < 0)
        return r;
    *cables_out = 0;
    (void)emu_dragonfly_shape(m, &shape);
    for (uint32_t g = 0; g < shape.groups; g++) {
        for (uint32_t h = 0; h < g; h++) {
            struct emu_cable_end near, far;

            for (uint32_t cable = 0; emu_dragonfly_cable(m, g, h, cable, &near, &far) == 0; cable++)
                *cables_out += near.group == g && far.group == h;
        }
    }
    emu_machine_destroy(m);
    return 0;
}

int emu_xc_optical_cables(struct emu_exp *x)
{
    uint32_t six, eight;
    int r = count_cables(x, "aries:groups=6,cables_per_bundle=12", &six);

    if (r == 0)
        r = count_cables(x, "aries:groups=8,cables_per_bundle=12", &eight);
    if (r < 0)
        return r;
    emu_exp_exact(x, 'A', "cables_of_6_groups_by_12", "cables", 180, six);
    emu_exp_exact(x, 'A', "cables_of_8_groups_by_12", "cables", 336, eight);
    return 0;
}

int emu_xc_largest(struct emu_exp *x)
{
    struct emu_dragonfly_shape shape;
    struct emu_machine *m;
    uint32_t *per_group;
    uint32_t most = 0;
    uint32_t fewest = UINT32_MAX;
    int r = emu_exp_machine(x, "aries:groups=241", &m);

    if (r < 0)
        return r;
    (void)emu_dragonfly_shape(m, &shape);
    per_group = calloc(shape.groups, sizeof(*per_group));
    if (!per_group) {
        emu_machine_destroy(m);
        return -ENOMEM;
    }
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_place from;
        struct emu_link l;

        (void)emu_link_get(m, id, &l);
        if (l.link_class != EMU_LINK_BLUE)
            continue;
        place_of_router(m, l.from.index, &from);
        per_group[from.group]++;
    }
    for (uint32_t g = 0; g < shape.groups; g++) {
        most = per_group[g] > most ? per_group[g] : most;
        fewest = per_group[g] < fewest ? per_group[g] : fewest;
    }
    emu_exp_exact(x, 'A', "blue_links_per_group_most", "links", 960, most);
    emu_exp_exact(x, 'A', "blue_links_per_group_fewest", "links", 960, fewest);
    emu_exp_exact(x, 'A', "cables_per_group", "cables", 240, most / (double)EMU_XC_LINKS_PER_CABLE);
    emu_exp_exact(x, 'A', "groups", "groups", 241, shape.groups);
    emu_exp_exact(x, 'A', "nodes", "nodes", 92544, emu_machine_n_nodes(m));
    free(per_group);
    emu_machine_destroy(m);
    r = emu_machine_load("aries:groups=242", emu_exp_context(x)->machine_dir, &m, NULL, 0);
    if (r == 0)
        emu_machine_destroy(m);
    emu_exp_holds(x, 'A', "a_242nd_group_is_refused", r == -EINVAL);
    return 0;
}

/* ---- XC-26: fat trees ---- */

/* Ports of a full fat tree of switches with so many ports. */
static double fat_tree_ports(uint32_t radix, uint32_t stages)
{
    return 2 * pow(radix / 2.0, stages);
}

/*
 * With a top stage of large switches, each chassis with so many uplinks: one to each top switch, which sees each
 * chassis.
 */
static double chassis_tree_ports(uint32_t uplinks, uint32_t top_ports)
{
    return (double)uplinks * top_ports;
}

int emu_xc_fat_tree(struct emu_exp *x)
{
    emu_exp_exact(x, 'A', "ports_of_36_port_switches_in_3_stages", "ports", 11664, fat_tree_ports(36, 3));
    emu_exp_exact(x, 'A', "ports_of_18_uplinks_and_108_port_tops", "ports", 1944, chassis_tree_ports(18, 108));
    return 0;
}

/* ---- XC-33: upgrade ---- */

/* Cables of `before` that are elsewhere in `after`. */
static uint32_t moved_cables(const struct emu_machine *before, const struct emu_machine *after)
{
    struct emu_dragonfly_shape shape;
    uint32_t moved = 0;

    (void)emu_dragonfly_shape(before, &shape);
    for (uint32_t g = 0; g < shape.groups; g++) {
        for (uint32_t h = 0; h < g; h++) {
            for (uint32_t cable = 0; cable < shape.cables_per_bundle; cable++) {
                struct emu_cable_end near[2], far[2];

                (void)emu_dragonfly_cable(before, g, h, cable, &near[0], &far[0]);
                if (emu_dragonfly_cable(after, g, h, cable, &near[1], &far[1]) < 0 ||
                    memcmp(&near[0], &near[1], sizeof(near[0])) != 0 || memcmp(&far[0], &far[1], sizeof(far[0])) != 0)
                    moved++;
            }
        }
    }
    return moved;
}

static int compare_upgrade(struct emu_exp *x, const char *before_spec, const char *after_spec, uint32_t *moved_out,
                           uint32_t *added_out)
{
    struct emu_dragonfly_shape before_shape, after_shape;
    struct emu_machine *before, *after;
    int r = emu_exp_machine(x, before_spec, &before);

    if (r < 0)
        return r;
    r = emu_exp_machine(x, after_spec, &after);
    if (r == 0) {
        (void)emu_dragonfly_shape(before, &before_shape);
        (void)emu_dragonfly_shape(after, &after_shape);
        *moved_out = moved_cables(before, after);
        *added_out = after_shape.n_cables - before_shape.n_cables;
        emu_machine_destroy(after);
    }
    emu_machine_destroy(before);
    return r;
}

int emu_xc_upgrade(struct emu_exp *x)
{
    uint32_t moved, added;
    int r = compare_upgrade(x, "aries:groups=6,cables_per_bundle=12", "aries:groups=8,cables_per_bundle=12", &moved,
                            &added);

    if (r < 0)
        return r;
    emu_exp_exact(x, 'A', "cables_moved", "cables", 0, moved);
    emu_exp_exact(x, 'A', "cables_added", "cables", 156, added);
    return 0;
}

/* ---- XC-51: configuration rules ---- */

enum { RULES = 8, CABINETS_MAX = 482, BUNDLE_MAX = 240 };

/* How often each rule let a configuration that it speaks of pass, or refused it. */
struct rule_table {
    uint32_t accepted[RULES + 1];
    uint32_t rejected[RULES + 1];
    uint32_t n_configurations;
    uint32_t n_accepted;
    FILE *data;
};

static void note_rule(void *ctx, uint32_t rule, const char *text)
{
    (void)text;
    *(uint32_t *)ctx |= 1u << rule;
}

static uint32_t broken_rules(const struct emu_xc_config *c)
{
    uint32_t broken = 0;

    (void)emu_xc_check(c, note_rule, &broken);
    return broken;
}

/* Rules that say something about such a configuration; 7 is about two of them. */
static uint32_t rules_that_apply(const struct emu_xc_config *c, bool is_air_cooled)
{
    uint32_t cabinets = emu_xc_cabinets(c);
    uint32_t rules = c->groups > 1 ? 1u << 1 : 0;

    if (is_air_cooled)
        return rules | 1u << 8;
    rules |= c->groups > 1 ? 1u << 2 | 1u << 6 : 0;
    if (cabinets <= 26)
        return rules | 1u << 3;
    return rules | 1u << (cabinets <= 64 ? 4 : 5);
}

static void judge(struct rule_table *t, const struct emu_xc_config *c, bool is_air_cooled)
{
    uint32_t broken = broken_rules(c);
    uint32_t applying = rules_that_apply(c, is_air_cooled);

    t->n_configurations++;
    t->n_accepted += broken == 0;
    for (uint32_t rule = 1; rule <= RULES; rule++) {
        t->accepted[rule] += (applying & ~broken) >> rule & 1;
        t->rejected[rule] += broken >> rule & 1;
        if (t->data && (broken >> rule & 1))
            fprintf(t->data, "rule %u\t%u\t%u\n", rule, emu_xc_cabinets(c), c->cables_per_bundle);
    }
    if (t->data && broken == 0)
        fprintf(t->data, "accepted\t%u\t%u\n", emu_xc_cabinets(c), c->cables_per_bundle);
}

/*
 * All bundles for one number of cabinets, with every last group that fills so many cabinets; one with smaller groups.
 */
static void judge_cabinets(struct rule_table *t, uint32_t cabinets)
{
    uint32_t groups = (cabinets + 1) / 2;
    uint32_t first = cabinets % 2 == 1 ? 1 : 4;

    for (uint32_t last = first; last < first + 3; last++) {
        for (uint32_t bundle = 1; bundle <= BUNDLE_MAX; bundle++) {
            struct emu_xc_config c = { groups, EMU_XC_CHASSIS_MAX, last, EMU_XC_BLADES_MAX, groups > 1 ? bundle : 0 };

            judge(t, &c, false);
            if (groups == 1)
                break;
        }
    }
    if (groups > 1) {
        struct emu_xc_config c = { groups, 3, 3, EMU_XC_BLADES_MAX, 6 };

        judge(t, &c, false);
    }
}

static void judge_air_cooled(struct rule_table *t)
{
    for (uint32_t groups = 1; groups <= 8; groups++) {
        for (uint32_t blades = 1; blades <= EMU_XC_BLADES_MAX; blades++) {
            for (uint32_t bundle = groups > 1; bundle <= (groups > 1 ? 40u : 0u); bundle++) {
                struct emu_xc_config c = { groups, 1, 1, blades, bundle };

                judge(t, &c, true);
            }
        }
    }
}

static struct emu_xc_config full_groups(uint32_t groups, uint32_t bundle)
{
    return (struct emu_xc_config){ groups, EMU_XC_CHASSIS_MAX, EMU_XC_CHASSIS_MAX, EMU_XC_BLADES_MAX, bundle };
}

int emu_xc_rule_table(struct emu_exp *x)
{
    const struct emu_xc_config small = full_groups(6, 12);
    const struct emu_xc_config wide = full_groups(8, 34);
    struct rule_table t = { 0 };
    uint32_t moved, added, rewired;
    char name[64];
    int r;

    r = compare_upgrade(x, "aries:groups=6,cables_per_bundle=12", "aries:groups=8,cables_per_bundle=12", &moved,
                        &added);
    if (r == 0)
        r = compare_upgrade(x, "aries:groups=6,cables_per_bundle=12", "aries:groups=8,cables_per_bundle=18", &rewired,
                            &added);
    if (r < 0)
        return r;
    t.data = emu_exp_data(x, "rules", "Configurations of Cray XC", "cabinets", "cables per bundle");
    for (uint32_t cabinets = 1; cabinets <= CABINETS_MAX; cabinets++)
        judge_cabinets(&t, cabinets);
    judge_air_cooled(&t);
    t.accepted[7] = moved == 0;
    t.rejected[7] = rewired > 0;
    if (t.data)
        fclose(t.data);

    for (uint32_t rule = 1; rule <= RULES; rule++) {
        snprintf(name, sizeof(name), "rule_%u_accepts_something", rule);
        emu_exp_holds(x, 'A', name, t.accepted[rule] > 0);
        snprintf(name, sizeof(name), "rule_%u_rejects_something", rule);
        emu_exp_holds(x, 'A', name, t.rejected[rule] > 0);
        emu_exp_detail(x, "rule %u: lets %u of %u configurations pass, refuses %u", rule, t.accepted[rule],
                       t.n_configurations, t.rejected[rule]);
    }
    emu_exp_exact(x, 'A', "connectors_used_by_12_cabinets_of_12_cables", "connectors", 60,
                  small.cables_per_bundle * (small.groups - 1));
    emu_exp_exact(x, 'A', "connectors_of_a_group", "connectors", 240,
                  emu_xc_connectors_per_group(small.chassis, small.blades));
    emu_exp_holds(x, 'A', "12_cabinets_of_12_cables_are_accepted", broken_rules(&small) == 0);
    emu_exp_holds(x, 'A', "16_cabinets_of_34_cables_break_rule_3_only", broken_rules(&wide) == 1u << 3);
    emu_exp_detail(x, "%u of %u configurations keep all rules", t.n_accepted, t.n_configurations);
    return 0;
}
