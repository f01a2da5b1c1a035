/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes by coordinates. The machine tells where each router is; nodes of one router are told apart by the order of
 * their ids, which becomes the last dimension.
 */
#include "emunic/experiments/traffic.h"

#include <errno.h>
#include <stdlib.h>

#define PLACES_MAX (UINT64_C(1) << 26)

static void place_of(const struct emu_machine *m, uint32_t nid, uint32_t coordinates[EMU_GRID_DIMS])
{
    struct emu_place place = { 0 };

    (void)emu_machine_place(m, nid, &place);
    coordinates[0] = place.mesh_x;
    coordinates[1] = place.mesh_y;
    coordinates[2] = place.mesh_z;
    coordinates[3] = 0;
}

static uint64_t index_of(const struct emu_grid *grid, const uint32_t coordinates[EMU_GRID_DIMS])
{
    uint64_t index = 0;

    for (uint32_t d = 0; d < EMU_GRID_DIMS; d++)
        index = index * grid->size[d] + coordinates[d];
    return index;
}

/* Sizes of the first three dimensions, and how many nodes share a place at most. */
static int measure(struct emu_grid *grid, const struct emu_machine *m)
{
    uint64_t places = 1;
    uint32_t *counts;
    uint32_t at[EMU_GRID_DIMS];
    uint32_t most = 1;

    for (uint32_t d = 0; d < EMU_GRID_DIMS; d++)
        grid->size[d] = 1;
    for (uint32_t nid = 0; nid < grid->n_nodes; nid++) {
        place_of(m, nid, at);
        for (uint32_t d = 0; d < 3; d++) {
            if (at[d] >= PLACES_MAX)
                return -EINVAL;
            grid->size[d] = at[d] + 1 > grid->size[d] ? at[d] + 1 : grid->size[d];
        }
    }
    for (uint32_t d = 0; d < 3; d++) {
        places *= grid->size[d];
        if (places > PLACES_MAX)
            return -EINVAL;
    }
    counts = calloc(places, sizeof(*counts));
    if (!counts)
        return -ENOMEM;
    for (uint32_t nid = 0; nid < grid->n_nodes; nid++) {
        place_of(m, nid, at);
        if (++counts[index_of(grid, at)] > most)
            most = counts[index_of(grid, at)];
    }
    free(counts);
    grid->size[3] = most;
    return places * most > PLACES_MAX ? -EINVAL : 0;
}

int emu_grid_init(struct emu_grid *grid, const struct emu_machine *m)
{
    uint64_t n_places;
    int r;

    *grid = (struct emu_grid){ .n_nodes = emu_machine_n_nodes(m) };
    r = measure(grid, m);
    if (r < 0)
        return r;
    n_places = (uint64_t)grid->size[0] * grid->size[1] * grid->size[2] * grid->size[3];
    grid->nids = malloc(n_places * sizeof(*grid->nids));
    grid->places = malloc(grid->n_nodes * sizeof(*grid->places));
    if (!grid->nids || !grid->places) {
        emu_grid_fini(grid);
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < n_places; i++)
        grid->nids[i] = EMU_NOBODY;
    for (uint32_t nid = 0; nid < grid->n_nodes; nid++) {
        uint32_t at[EMU_GRID_DIMS];
        uint64_t index;

        place_of(m, nid, at);
        index = index_of(grid, at);
        while (grid->nids[index] != EMU_NOBODY)
            index++;
        grid->nids[index] = nid;
        grid->places[nid] = (uint32_t)index;
    }
    return 0;
}

void emu_grid_fini(struct emu_grid *grid)
{
    free(grid->nids);
    free(grid->places);
    *grid = (struct emu_grid){ 0 };
}

void emu_grid_at(const struct emu_grid *grid, uint32_t nid, uint32_t coordinates_out[EMU_GRID_DIMS])
{
    uint32_t rest = grid->places[nid];

    for (uint32_t d = EMU_GRID_DIMS; d-- > 0;) {
        coordinates_out[d] = rest % grid->size[d];
        rest /= grid->size[d];
    }
}

uint32_t emu_grid_nid(const struct emu_grid *grid, const uint32_t coordinates[EMU_GRID_DIMS])
{
    for (uint32_t d = 0; d < EMU_GRID_DIMS; d++) {
        if (coordinates[d] >= grid->size[d])
            return EMU_NOBODY;
    }
    return grid->nids[index_of(grid, coordinates)];
}
