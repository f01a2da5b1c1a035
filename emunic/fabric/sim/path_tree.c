/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ways that packets have taken.
 *
 * Ways are a tree: a step is a link behind the steps before it, and the first steps are those out of a NIC, one for
 * each class of traffic. A packet on its way is at a step, which is kept by the number of its cell. With the link to
 * its NIC the way is whole, and the packet counts there. Steps are found by a hash table with open addressing.
 *
 * One partition only, because cells are numbered in each.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/fabric/sim/state.h"

#define STEPS_MAX     (1u << 20) /* 40 MiB with their table */
#define STEPS_AT_ONCE 1024u
#define N_ROOTS       EMU_TRAFFIC_CLASSES /* steps before the first link */

struct step {
    uint32_t before;
    uint32_t link;
    uint64_t packets; /* whose way ends here */
    uint64_t units;
};

struct sim_paths {
    struct step *steps;
    uint32_t n_steps;
    uint32_t step_capacity;
    uint32_t *table; /* steps, 0: none */
    uint32_t table_mask;
    uint32_t *at; /* by cell: the step of its packet; SIM_NONE: it has been given up */
    uint32_t at_capacity;
    uint64_t untold; /* packets of which there was no room for a step */
};

static uint32_t slot_of(const struct sim_paths *paths, uint32_t before, uint32_t link)
{
    return (uint32_t)emu_random_mix((uint64_t)before << 32 | link) & paths->table_mask;
}

static void put_into_table(struct sim_paths *paths, uint32_t number)
{
    const struct step *step = &paths->steps[number];
    uint32_t slot = slot_of(paths, step->before, step->link);

    while (paths->table[slot] != 0)
        slot = (slot + 1) & paths->table_mask;
    paths->table[slot] = number;
}

/* Twice as many steps; a table at most half full. */
static void grow(struct sim_paths *paths)
{
    uint32_t capacity = paths->step_capacity == 0 ? STEPS_AT_ONCE : 2 * paths->step_capacity;

    paths->steps = sim_grown(paths->steps, capacity * sizeof(*paths->steps));
    paths->step_capacity = capacity;
    paths->table_mask = 2 * capacity - 1;
    free(paths->table);
    paths->table = calloc(2 * (size_t)capacity, sizeof(*paths->table));
    if (!paths->table)
        emu_wheel_no_memory();
    for (uint32_t i = N_ROOTS; i < paths->n_steps; i++)
        put_into_table(paths, i);
}

/* SIM_NONE: there are too many. */
static uint32_t step_behind(struct sim_paths *paths, uint32_t before, uint32_t link)
{
    uint32_t slot = slot_of(paths, before, link);

    for (; paths->table[slot] != 0; slot = (slot + 1) & paths->table_mask) {
        const struct step *step = &paths->steps[paths->table[slot]];

        if (step->before == before && step->link == link)
            return paths->table[slot];
    }
    if (paths->n_steps == STEPS_MAX)
        return SIM_NONE;
    if (paths->n_steps == paths->step_capacity)
        grow(paths);
    paths->steps[paths->n_steps] = (struct step){ .before = before, .link = link };
    put_into_table(paths, paths->n_steps);
    return paths->n_steps++;
}

static uint32_t *step_of_cell(struct sim_paths *paths, const struct part *part, uint32_t cell)
{
    if (cell >= paths->at_capacity) {
        paths->at = sim_grown(paths->at, part->cell_capacity * sizeof(*paths->at));
        for (uint32_t i = paths->at_capacity; i < part->cell_capacity; i++)
            paths->at[i] = SIM_NONE;
        paths->at_capacity = part->cell_capacity;
    }
    return &paths->at[cell];
}

void sim_note_step(const struct part *part, uint32_t link, uint32_t cell)
{
    struct sim_paths *paths = part->sim->paths;
    const struct emu_packet *p = &part->cells[cell].packet;
    uint32_t flags = part->sim->outs[link].flags;
    uint32_t *at = step_of_cell(paths, part, cell);

    if ((flags & OUT_FROM_NIC) != 0)
        *at = p->traffic_class; /* the root */
    if (*at != SIM_NONE)
        *at = step_behind(paths, *at, link);
    if ((flags & OUT_TO_NIC) == 0)
        return;
    if (*at == SIM_NONE) {
        paths->untold++;
        return;
    }
    paths->steps[*at].packets++;
    paths->steps[*at].units += p->units;
}

int emu_sim_keep_paths(struct emu_sim *sim)
{
    if (sim->n_parts != 1)
        return -EINVAL;
    if (sim->paths)
        return 0;
    sim->paths = calloc(1, sizeof(*sim->paths));
    if (!sim->paths)
        return -ENOMEM;
    grow(sim->paths);
    for (uint32_t i = 0; i < N_ROOTS; i++)
        sim->paths->steps[i] = (struct step){ .link = SIM_NONE };
    sim->paths->n_steps = N_ROOTS;
    sim_make_outs(sim);
    for (uint32_t id = 0; id < sim->m->n_links; id++)
        sim->outs[id].flags |= OUT_NOTED;
    return 0;
}

void sim_paths_free(struct sim_paths *paths)
{
    if (!paths)
        return;
    free(paths->steps);
    free(paths->table);
    free(paths->at);
    free(paths);
}

bool emu_sim_keeps_paths(const struct emu_sim *sim)
{
    return sim->paths;
}

uint64_t emu_sim_untold_packets(const struct emu_sim *sim)
{
    return sim->paths ? sim->paths->untold : 0;
}

static void describe(const struct emu_sim *sim, uint32_t number, struct emu_sim_path *path_out)
{
    const struct step *steps = sim->paths->steps;
    uint32_t n = 0;

    *path_out = (struct emu_sim_path){ .packets = steps[number].packets, .units = steps[number].units };
    path_out->dst_nid = sim->outs[steps[number].link].to;
    for (uint32_t i = number; i >= N_ROOTS; i = steps[i].before)
        n++;
    path_out->n_links = n;
    for (uint32_t i = number; n > 0; i = steps[i].before) {
        if (--n < EMU_SIM_PATH_LINKS_MAX)
            path_out->links[n] = steps[i].link;
        path_out->src_nid = sim->outs[steps[i].link].from;
        path_out->traffic_class = (enum emu_traffic_class)steps[i].before;
    }
}

bool emu_sim_next_path(const struct emu_sim *sim, uint32_t *place, struct emu_sim_path *path_out)
{
    const struct sim_paths *paths = sim->paths;

    for (uint32_t i = *place > N_ROOTS ? *place : N_ROOTS; paths && i < paths->n_steps; i++) {
        if (paths->steps[i].packets == 0)
            continue;
        describe(sim, i, path_out);
        *place = i + 1;
        return true;
    }
    return false;
}
