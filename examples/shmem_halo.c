/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Halo exchange in two dimensions, with teams: a quantity that moves diagonally over a torus of PEs.
 *
 *   shmem_halo [-s SIDE] [-n STEPS]
 *
 * PEs stand in rows and columns, by shmem_team_split_2d(). Each has SIDE x SIDE cells (default 32) and a border around
 * them. In each step a cell becomes the sum of itself and its four neighbours, modulo a prime. The PE puts its edges
 * into its neighbours' borders: rows by shmem_put_signal_nbi(), columns by shmem_iput() and a signal. Contexts of
 * the row's and the column's team name the neighbours by their place in these. Two copies of the field take turns.
 * At the end each cell must be what one PE computes alone for the whole torus.
 */
#include "examples/shmem_common.h"

#include <string.h>
#include <unistd.h>

#define PRIME 1000003u

enum { NORTH, SOUTH, WEST, EAST, SIDES };

struct field {
    uint32_t side;
    uint32_t stride;    /* cells in a row, borders included */
    uint32_t *cells[2]; /* symmetric */
    uint64_t *arrived;  /* symmetric: the step whose cells have come from each side */
    shmem_team_t row;   /* PEs beside us */
    shmem_team_t column;
    shmem_ctx_t along; /* counts PEs of the row */
    shmem_ctx_t across;
};

static uint32_t *cell(const struct field *f, uint32_t *cells, uint32_t row, uint32_t column)
{
    return cells + (size_t)row * f->stride + column;
}

static uint32_t start_value(uint32_t row, uint32_t column)
{
    return (row * 7919u + column * 104729u) % PRIME;
}

static void send_edges(const struct field *f, uint32_t *cells, uint64_t step)
{
    int x = shmem_team_my_pe(f->row);
    int y = shmem_team_my_pe(f->column);
    int width = shmem_team_n_pes(f->row);
    int height = shmem_team_n_pes(f->column);

    shmem_put_signal_nbi(f->across, cell(f, cells, f->side + 1, 1), cell(f, cells, 1, 1), f->side, &f->arrived[SOUTH],
                         step, SHMEM_SIGNAL_SET, (y + height - 1) % height);
    shmem_put_signal_nbi(f->across, cell(f, cells, 0, 1), cell(f, cells, f->side, 1), f->side, &f->arrived[NORTH], step,
                         SHMEM_SIGNAL_SET, (y + 1) % height);
    shmem_iput(f->along, cell(f, cells, 1, f->side + 1), cell(f, cells, 1, 1), f->stride, f->stride, f->side,
               (x + width - 1) % width);
    shmem_iput(f->along, cell(f, cells, 1, 0), cell(f, cells, 1, f->side), f->stride, f->stride, f->side,
               (x + 1) % width);
    shmem_ctx_fence(f->along);
    shmem_atomic_set(f->along, &f->arrived[EAST], step, (x + width - 1) % width);
    shmem_atomic_set(f->along, &f->arrived[WEST], step, (x + 1) % width);
}

static void compute(const struct field *f, uint32_t *from, uint32_t *to)
{
    for (uint32_t r = 1; r <= f->side; r++) {
        for (uint32_t c = 1; c <= f->side; c++)
            *cell(f, to, r, c) = (*cell(f, from, r, c) + *cell(f, from, r - 1, c) + *cell(f, from, r + 1, c) +
                                  *cell(f, from, r, c - 1) + *cell(f, from, r, c + 1)) %
                                 PRIME;
    }
}

/* All of the torus by one PE. The caller frees it. */
static uint32_t *compute_alone(uint32_t height, uint32_t width, long steps)
{
    uint32_t *now = calloc((size_t)height * width, sizeof(*now));
    uint32_t *next = calloc((size_t)height * width, sizeof(*next));

    EX_EXPECT(now && next);
    for (uint32_t i = 0; i < height * width; i++)
        now[i] = start_value(i / width, i % width);
    for (long step = 0; step < steps; step++) {
        uint32_t *was = now;

        for (uint32_t i = 0; i < height * width; i++) {
            uint32_t r = i / width;
            uint32_t c = i % width;

            next[i] = (now[i] + now[(r + height - 1) % height * width + c] + now[(r + 1) % height * width + c] +
                       now[r * width + (c + width - 1) % width] + now[r * width + (c + 1) % width]) %
                      PRIME;
        }
        now = next;
        next = was;
    }
    free(next);
    return now;
}

static void make(struct field *f, uint32_t side)
{
    int n = shmem_n_pes();
    int width = 1;

    for (int w = 1; w * w <= n; w++)
        width = n % w == 0 ? w : width;
    *f = (struct field){ .side = side, .stride = side + 2 };
    EX_EXPECT(shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &f->row, NULL, 0, &f->column) == 0);
    EX_EXPECT(shmem_team_create_ctx(f->row, 0, &f->along) == 0 && shmem_team_create_ctx(f->column, 0, &f->across) == 0);
    for (int i = 0; i < 2; i++)
        f->cells[i] = shmem_calloc((size_t)f->stride * f->stride, sizeof(uint32_t));
    f->arrived = shmem_calloc(SIDES, sizeof(*f->arrived));
    EX_EXPECT(f->cells[0] && f->cells[1] && f->arrived);
}

static void verify(const struct field *f, uint32_t *cells, long steps)
{
    uint32_t height = f->side * (uint32_t)shmem_team_n_pes(f->column);
    uint32_t width = f->side * (uint32_t)shmem_team_n_pes(f->row);
    uint32_t top = f->side * (uint32_t)shmem_team_my_pe(f->column);
    uint32_t left = f->side * (uint32_t)shmem_team_my_pe(f->row);
    uint32_t *all = compute_alone(height, width, steps);

    for (uint32_t r = 0; r < f->side; r++) {
        for (uint32_t c = 0; c < f->side; c++)
            EX_EXPECT(*cell(f, cells, r + 1, c + 1) == all[(top + r) * width + left + c]);
    }
    free(all);
}

int main(int argc, char **argv)
{
    uint32_t side = 32;
    struct field f;
    long steps = 40;
    int option;

    while ((option = getopt(argc, argv, "s:n:")) != -1) {
        if (option == 's')
            side = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 'n')
            steps = strtol(optarg, NULL, 10);
        else
            return 2;
    }
    shmem_init();
    make(&f, side);
    for (uint32_t r = 0; r < side; r++) {
        for (uint32_t c = 0; c < side; c++)
            *cell(&f, f.cells[0], r + 1, c + 1) = start_value(side * (uint32_t)shmem_team_my_pe(f.column) + r,
                                                              side * (uint32_t)shmem_team_my_pe(f.row) + c);
    }
    for (long step = 0; step < steps; step++) {
        send_edges(&f, f.cells[step % 2], (uint64_t)step + 1);
        shmem_uint64_wait_until_all(f.arrived, SIDES, NULL, SHMEM_CMP_GE, (uint64_t)step + 1);
        compute(&f, f.cells[step % 2], f.cells[(step + 1) % 2]);
    }
    shmem_barrier_all();
    verify(&f, f.cells[steps % 2], steps);
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("%d x %d PEs, %ld steps, every cell is right\n", shmem_team_n_pes(f.column), shmem_team_n_pes(f.row),
               steps);
    shmem_finalize();
    return 0;
}
