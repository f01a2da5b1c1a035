/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who gets which routers.
 *
 * Parts are contiguous ranges of routers of nearly equal length, one per thread; those of a process follow each other.
 * A window is the shortest time, over all links between two parts, after which a head or a credit that leaves one part
 * reaches the other. So each border looks around its place, by an eighth of a part, for the one where that time is
 * longest: between two groups of a Dragonfly, say, where only the long cables cross. Among equal ones it takes the one
 * that the fewest links cross, then the nearest.
 *
 * Traffic that ends runs says so some time ahead, and no window is longer than that.
 *
 * All processes go through all links, so all get the same answer without asking each other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/sim/state.h"

#define WINDOW_SLOTS_MAX 1000
#define SLACK            8 /* a border moves by up to this part of a part */

/* ---- all links ---- */

/* Could a packet of full size ever enter each channel? */
static bool kind_is_sound(const struct emu_sim *sim, const struct link_kind *kind)
{
    if (kind->n_vcs == 0 || kind->n_vcs > EMU_VCS_MAX)
        return false;
    if (kind->bubble_vcs != 0 && sim->p.shared_units > 0)
        return false; /* the rule is about room that nobody else can take */
    for (uint32_t vc = 0; vc < kind->n_vcs; vc++) {
        uint32_t least = (kind->bubble_vcs >> vc & 1) != 0 ? 2 * sim->full_tokens : sim->full_tokens;

        if (kind->capacity_tokens[vc] < least || kind->capacity_tokens[vc] > INT16_MAX)
            return false;
    }
    return true;
}

static void add_hash(struct sim_survey *survey, uint64_t value)
{
    survey->machine_hash = emu_random_mix(survey->machine_hash ^ value) + survey->machine_hash;
}

/* Room for the crossings of one more kind. */
static int add_kind(struct emu_sim *sim, struct sim_survey *survey)
{
    int32_t **crosses = realloc(survey->crosses, sim->n_kinds * sizeof(*crosses));

    if (!crosses)
        return -ENOMEM;
    survey->crosses = crosses;
    crosses[survey->n_kinds] = calloc(sim->m->n_routers + 1, sizeof(**crosses));
    if (!crosses[survey->n_kinds])
        return -ENOMEM;
    survey->n_kinds++;
    add_hash(survey, sim->kinds[survey->n_kinds - 1].unit_ps << 32 | sim->kinds[survey->n_kinds - 1].head_ps);
    for (uint32_t vc = 0; vc < sim->kinds[survey->n_kinds - 1].n_vcs; vc++)
        add_hash(survey, sim->kinds[survey->n_kinds - 1].capacity_tokens[vc]);
    return kind_is_sound(sim, &sim->kinds[survey->n_kinds - 1]) ? 0 : -EINVAL;
}

static int survey_link(struct emu_sim *sim, struct sim_survey *survey, uint32_t id)
{
    struct emu_link link;
    uint32_t low, high;
    int kind;
    int r;

    (void)emu_link_get(sim->m, id, &link);
    kind = sim_kind_of(sim, &link, link.lanes);
    if (kind < 0)
        return kind;
    if ((uint32_t)kind == survey->n_kinds) {
        r = add_kind(sim, survey);
        if (r < 0)
            return r;
    }
    if (sim->kinds[kind].n_vcs > sim->vcs_of_link_max)
        sim->vcs_of_link_max = sim->kinds[kind].n_vcs;
    add_hash(survey, (uint64_t)link.from.index << 32 | link.to.index);
    add_hash(survey, (uint64_t)link.wire_ps << 16 | link.lanes << 8 | link.link_class);
    add_hash(survey, link.data_bytes_per_s);
    if (link.to.kind == EMU_END_NIC)
        return 0;
    survey->n_vcs[link.to.index] += sim->kinds[kind].n_vcs;
    if (survey->n_vcs[link.to.index] > UINT16_MAX)
        return -EINVAL;
    if (link.from.kind == EMU_END_NIC)
        return 0;
    low = link.from.index < link.to.index ? link.from.index : link.to.index;
    high = link.from.index < link.to.index ? link.to.index : link.from.index;
    survey->crosses[kind][low + 1]++;
    survey->crosses[kind][high + 1]--;
    return 0;
}

int sim_survey(struct emu_sim *sim, struct sim_survey *survey)
{
    int r = 0;

    survey->n_vcs = calloc(sim->m->n_routers, sizeof(*survey->n_vcs));
    if (!survey->n_vcs)
        return -ENOMEM;
    for (uint32_t id = 0; id < sim->m->n_links && r == 0; id++)
        r = survey_link(sim, survey, id);
    for (uint32_t i = 0; i < survey->n_kinds && r == 0; i++) { /* from differences to counts */
        for (uint32_t router = 1; router <= sim->m->n_routers; router++)
            survey->crosses[i][router] += survey->crosses[i][router - 1];
    }
    return r;
}

void sim_survey_fini(struct sim_survey *survey)
{
    for (uint32_t i = 0; i < survey->n_kinds; i++)
        free(survey->crosses[i]);
    free(survey->crosses);
    free(survey->n_vcs);
}

/* ---- borders ---- */

struct border {
    uint64_t ps; /* the shortest time across it */
    uint64_t n_links;
};

static struct border border_before(const struct emu_sim *sim, const struct sim_survey *survey, uint32_t router)
{
    struct border border = { .ps = UINT64_MAX };

    for (uint32_t i = 0; i < survey->n_kinds; i++) {
        const struct link_kind *k = &sim->kinds[i];
        uint64_t credit_ps = k->wire_ps + sim->unit_ps;
        uint64_t ps = k->head_ps < credit_ps ? k->head_ps : credit_ps;

        if (survey->crosses[i][router] == 0)
            continue;
        border.ps = ps < border.ps ? ps : border.ps;
        border.n_links += (uint64_t)survey->crosses[i][router];
    }
    return border;
}

static bool is_better(const struct border *a, const struct border *b)
{
    return a->ps != b->ps ? a->ps > b->ps : a->n_links < b->n_links;
}

/* Number i of n. Nearest places first, so that equal ones lose. */
static uint32_t place_border(const struct emu_sim *sim, const struct sim_survey *survey, uint32_t i, uint32_t n)
{
    uint32_t middle = (uint32_t)((uint64_t)sim->m->n_routers * i / n);
    uint32_t slack = sim->m->n_routers / (SLACK * n);
    struct border best = border_before(sim, survey, middle);
    uint32_t place = middle;

    for (uint32_t off = 1; off <= slack; off++) {
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t other = side == 0 ? middle - off : middle + off;
            struct border border = border_before(sim, survey, other);

            if (is_better(&border, &best)) {
                best = border;
                place = other;
            }
        }
    }
    return place;
}

void sim_split(struct emu_sim *sim, const struct sim_survey *survey, uint32_t n, uint32_t *bounds_out)
{
    uint64_t shortest_ps = (uint64_t)WINDOW_SLOTS_MAX * sim->clock_ps;

    bounds_out[0] = 0;
    bounds_out[n] = sim->m->n_routers;
    for (uint32_t i = 1; i < n; i++) {
        struct border border;

        bounds_out[i] = place_border(sim, survey, i, n);
        border = border_before(sim, survey, bounds_out[i]);
        shortest_ps = border.ps < shortest_ps ? border.ps : shortest_ps;
    }
    if (sim->options.end_ahead_ps > 0 && sim->options.end_ahead_ps < shortest_ps)
        shortest_ps = sim->options.end_ahead_ps;
    sim->window_slots = shortest_ps / sim->clock_ps > 1 ? shortest_ps / sim->clock_ps : 1;
}
