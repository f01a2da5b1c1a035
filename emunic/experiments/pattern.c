/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic patterns.
 *
 * Permutations (transpose, tornado, complement) are a table, made once. The random ones draw from the node's own
 * generator. All-to-all needs a random order of all others per node without storing it: packet i goes to the i-th
 * number of a pseudo-random permutation, a Feistel network of four rounds over the next even number of bits, walked
 * until it falls below n - 1. Source: J. Black, P. Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002. The
 * patterns are those of Dally & Towles, Principles and Practices of Interconnection Networks, 3.2.
 */
#include "emunic/experiments/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[EMU_PATTERNS] = {
    [EMU_PATTERN_UNIFORM] = "uniform",       [EMU_PATTERN_HOT] = "hot",
    [EMU_PATTERN_SHIFT] = "shift",           [EMU_PATTERN_TRANSPOSE] = "transpose",
    [EMU_PATTERN_TORNADO] = "tornado",       [EMU_PATTERN_NEIGHBOUR] = "neighbour",
    [EMU_PATTERN_COMPLEMENT] = "complement", [EMU_PATTERN_ALL_TO_ALL] = "all-to-all",
    [EMU_PATTERN_MESSAGES] = "messages",     [EMU_PATTERN_CUSTOM] = "custom",
};

const char *emu_pattern_name(enum emu_pattern pattern)
{
    return names[pattern];
}

int emu_pattern_of_name(const char *name, enum emu_pattern *pattern_out)
{
    for (int p = 0; p < EMU_PATTERN_MESSAGES; p++) {
        if (strcmp(names[p], name) == 0) {
            *pattern_out = (enum emu_pattern)p;
            return 0;
        }
    }
    return -EINVAL;
}

/* ---- tables ---- */

/* First row length: the largest divisor of n up to its square root is the number of rows. */
static uint32_t transposed(uint32_t n, uint32_t rows, uint32_t nid)
{
    uint32_t columns = n / rows;

    return nid % columns * rows + nid / columns;
}

static uint32_t matrix_rows(uint32_t n)
{
    uint32_t rows = 1;

    for (uint32_t i = 1; (uint64_t)i * i <= n; i++) {
        if (n % i == 0)
            rows = i;
    }
    return rows;
}

/* Routers of a machine without mesh coordinates stand in the last dimension. */
static void moving_dimensions(const struct emu_grid *grid, uint32_t *first_out, uint32_t *end_out)
{
    bool is_line = grid->size[0] == 1 && grid->size[1] == 1 && grid->size[2] == 1;

    *first_out = is_line ? 3 : 0;
    *end_out = is_line ? 4 : 3;
}

static uint32_t tornado(const struct emu_grid *grid, uint32_t nid)
{
    uint32_t at[EMU_GRID_DIMS];
    uint32_t first;
    uint32_t end;

    emu_grid_at(grid, nid, at);
    moving_dimensions(grid, &first, &end);
    for (uint32_t d = first; d < end; d++)
        at[d] = (at[d] + (grid->size[d] + 1) / 2 - 1) % grid->size[d];
    return emu_grid_nid(grid, at);
}

static int make_fixed(struct emu_destinations *d)
{
    uint32_t rows = matrix_rows(d->n_nodes);

    d->fixed = malloc(d->n_nodes * sizeof(*d->fixed));
    if (!d->fixed)
        return -ENOMEM;
    for (uint32_t nid = 0; nid < d->n_nodes; nid++) {
        uint32_t to = d->pattern == EMU_PATTERN_TRANSPOSE ? transposed(d->n_nodes, rows, nid) :
                      d->pattern == EMU_PATTERN_TORNADO   ? tornado(&d->grid, nid) :
                                                            d->n_nodes - 1 - nid;

        d->fixed[nid] = to == nid ? EMU_NOBODY : to;
    }
    return 0;
}

static bool is_hot(const uint32_t at[EMU_GRID_DIMS], const struct emu_generator_options *options)
{
    for (uint32_t i = 0; i < EMU_GRID_DIMS; i++) {
        if (at[i] < options->hot_low[i] ||
            (options->hot_size[i] != 0 && at[i] - options->hot_low[i] >= options->hot_size[i]))
            return false;
    }
    return true;
}

static int make_hot(struct emu_destinations *d, const struct emu_generator_options *options, char *err, size_t err_len)
{
    uint32_t at[EMU_GRID_DIMS];

    if (!(options->hot_share >= 0 && options->hot_share <= 1)) {
        snprintf(err, err_len, "the hot share %g is not between 0 and 1", options->hot_share);
        return -EINVAL;
    }
    d->hot_share = options->hot_share;
    d->listed = malloc(d->n_nodes * sizeof(*d->listed));
    if (!d->listed)
        return -ENOMEM;
    for (uint32_t nid = 0; nid < d->n_nodes; nid++) {
        emu_grid_at(&d->grid, nid, at);
        if (is_hot(at, options))
            d->listed[d->n_listed++] = nid;
    }
    if (d->n_listed == 0) {
        snprintf(err, err_len, "no node is in the hot box");
        return -EINVAL;
    }
    return 0;
}

static int make_slices(struct emu_destinations *d, const struct emu_generator_options *options, char *err,
                       size_t err_len)
{
    uint32_t n_slices;
    uint32_t at[EMU_GRID_DIMS];

    if (options->dimension >= EMU_GRID_DIMS) {
        snprintf(err, err_len, "dimension %u does not exist", options->dimension);
        return -EINVAL;
    }
    d->dimension = options->dimension;
    d->shift = options->shift ? options->shift : 1;
    n_slices = d->grid.size[d->dimension];
    if (d->shift % n_slices == 0) {
        snprintf(err, err_len, "a shift by %u of %u slices leads back to the same", d->shift, n_slices);
        return -EINVAL;
    }
    d->listed = malloc(d->n_nodes * sizeof(*d->listed));
    d->slice_ends = calloc(n_slices, sizeof(*d->slice_ends));
    if (!d->listed || !d->slice_ends)
        return -ENOMEM;
    /* Sorted by counting: first the number of each slice, then where it starts, and as it fills up where it ends. */
    for (uint32_t nid = 0; nid < d->n_nodes; nid++) {
        emu_grid_at(&d->grid, nid, at);
        d->slice_ends[at[d->dimension]]++;
    }
    for (uint32_t slice = 0; slice < n_slices; slice++) {
        uint32_t n = d->slice_ends[slice];

        d->slice_ends[slice] = d->n_listed;
        d->n_listed += n;
    }
    for (uint32_t nid = 0; nid < d->n_nodes; nid++) {
        emu_grid_at(&d->grid, nid, at);
        d->listed[d->slice_ends[at[d->dimension]]++] = nid;
    }
    return 0;
}

int emu_destinations_init(struct emu_destinations *d, const struct emu_machine *m,
                          const struct emu_generator_options *options, char *err, size_t err_len)
{
    int r;

    *d = (struct emu_destinations){ .pattern = options->pattern,
                                    .n_nodes = emu_machine_n_nodes(m),
                                    .seed = options->seed,
                                    .pick = options->pick,
                                    .pick_ctx = options->pick_ctx };
    if (d->n_nodes < 2) {
        snprintf(err, err_len, "a machine of one node has no traffic");
        return -EINVAL;
    }
    if (options->pattern == EMU_PATTERN_CUSTOM && !options->pick) {
        snprintf(err, err_len, "the pattern 'custom' has no function");
        return -EINVAL;
    }
    d->n_packets = (uint64_t)(options->rounds ? options->rounds : 1) * (d->n_nodes - 1);
    r = emu_grid_init(&d->grid, m);
    if (r == -EINVAL)
        snprintf(err, err_len, "the machine's coordinates span too many places");
    if (r < 0)
        return r;
    switch (options->pattern) {
    case EMU_PATTERN_HOT:
        r = make_hot(d, options, err, err_len);
        break;
    case EMU_PATTERN_SHIFT:
        r = make_slices(d, options, err, err_len);
        break;
    case EMU_PATTERN_TRANSPOSE:
    case EMU_PATTERN_TORNADO:
    case EMU_PATTERN_COMPLEMENT:
        r = make_fixed(d);
        break;
    case EMU_PATTERN_UNIFORM:
    case EMU_PATTERN_NEIGHBOUR:
    case EMU_PATTERN_ALL_TO_ALL:
    case EMU_PATTERN_MESSAGES:
    case EMU_PATTERN_CUSTOM:
        break;
    default:
        snprintf(err, err_len, "pattern %d does not exist", (int)options->pattern);
        r = -EINVAL;
    }
    if (r < 0)
        emu_destinations_fini(d);
    return r;
}

void emu_destinations_fini(struct emu_destinations *d)
{
    emu_grid_fini(&d->grid);
    free(d->fixed);
    free(d->listed);
    free(d->slice_ends);
    *d = (struct emu_destinations){ 0 };
}

/* ---- picking ---- */

/* Number `index` of the others, itself left out. */
static uint32_t other(uint32_t src, uint32_t index)
{
    return index < src ? index : index + 1;
}

static uint32_t pick_uniform(const struct emu_destinations *d, struct emu_random *random, uint32_t src)
{
    return other(src, (uint32_t)emu_random_below(random, d->n_nodes - 1));
}

static uint32_t pick_hot(const struct emu_destinations *d, struct emu_random *random, uint32_t src)
{
    double draw = (double)(emu_random_next(random) >> 11) * 0x1p-53;
    uint32_t to = src;

    if (draw < d->hot_share)
        to = d->listed[emu_random_below(random, d->n_listed)];
    return to == src ? pick_uniform(d, random, src) : to;
}

static uint32_t pick_shifted(const struct emu_destinations *d, struct emu_random *random, uint32_t src)
{
    uint32_t at[EMU_GRID_DIMS];
    uint32_t slice;
    uint32_t start;

    emu_grid_at(&d->grid, src, at);
    slice = (at[d->dimension] + d->shift) % d->grid.size[d->dimension];
    start = slice == 0 ? 0 : d->slice_ends[slice - 1];
    if (start == d->slice_ends[slice])
        return EMU_NOBODY;
    return d->listed[start + emu_random_below(random, d->slice_ends[slice] - start)];
}

static uint32_t pick_neighbour(const struct emu_destinations *d, struct emu_random *random, uint32_t src)
{
    uint32_t choices[2 * EMU_GRID_DIMS];
    uint32_t n = 0;
    uint32_t at[EMU_GRID_DIMS];
    uint32_t first;
    uint32_t end;

    emu_grid_at(&d->grid, src, at);
    moving_dimensions(&d->grid, &first, &end);
    for (uint32_t i = first; i < end; i++) {
        uint32_t here = at[i];
        uint32_t size = d->grid.size[i];

        for (uint32_t step = 1; step<size; step += size> 2 ? size - 2 : 1) {
            at[i] = (here + step) % size;
            choices[n] = emu_grid_nid(&d->grid, at);
            n += choices[n] != EMU_NOBODY;
        }
        at[i] = here;
    }
    return n == 0 ? EMU_NOBODY : choices[emu_random_below(random, n)];
}

/* One step of the permutation of 0 .. 4^half_bits - 1. */
static uint64_t shuffle_step(uint64_t value, uint32_t half_bits, uint64_t key)
{
    uint64_t mask = (UINT64_C(1) << half_bits) - 1;
    uint64_t left = value >> half_bits;
    uint64_t right = value & mask;

    for (uint64_t round = 0; round < 4; round++) {
        uint64_t next = left ^ (emu_random_mix(right + (round << 32) + key) & mask);

        left = right;
        right = next;
    }
    return left << half_bits | right;
}

static uint32_t pick_next_of_all(const struct emu_destinations *d, uint32_t src, uint64_t index)
{
    uint64_t n_others = d->n_nodes - 1;
    uint64_t round = index / n_others;
    uint64_t value = index % n_others;
    uint64_t key = emu_random_mix(d->seed ^ emu_random_mix(((uint64_t)src << 32) + round + 1));
    uint32_t half_bits = 1;

    if (index >= d->n_packets)
        return EMU_NOBODY;
    while ((UINT64_C(1) << 2 * half_bits) < n_others)
        half_bits++;
    do
        value = shuffle_step(value, half_bits, key);
    while (value >= n_others);
    return other(src, (uint32_t)value);
}

uint32_t emu_destinations_pick(const struct emu_destinations *d, struct emu_random *random, uint32_t src,
                               uint64_t index)
{
    switch (d->pattern) {
    case EMU_PATTERN_UNIFORM:
        return pick_uniform(d, random, src);
    case EMU_PATTERN_HOT:
        return pick_hot(d, random, src);
    case EMU_PATTERN_SHIFT:
        return pick_shifted(d, random, src);
    case EMU_PATTERN_NEIGHBOUR:
        return pick_neighbour(d, random, src);
    case EMU_PATTERN_ALL_TO_ALL:
        return pick_next_of_all(d, src, index);
    case EMU_PATTERN_CUSTOM:
        return d->pick(d->pick_ctx, random, src);
    default:
        return d->fixed[src];
    }
}
