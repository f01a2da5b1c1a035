/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Halo exchange in two dimensions: heat that spreads over a torus of PEs.
 *
 *   dmapp_halo [-s SIDE] [-n STEPS]
 *
 * Each PE has a square of SIDE x SIDE cells (default 64) with a border of its neighbours' cells around it. In each
 * of STEPS steps (default 50) a cell becomes the mean of itself and its four neighbours, so a PE needs the rows and
 * columns next to its own. It puts its own edges there:
 *
 *   rows       are contiguous: dmapp_put_flag_nbi(), whose flag tells the neighbour that the row is there
 *   columns    are strided: dmapp_iput_nbi(), then, when a gsync has completed them, a flag by dmapp_put_nbi()
 *
 * Flags count steps. Two copies of the field take turns, so a neighbour that is one step ahead writes where nobody
 * reads. At the end every cell must equal what one PE computes alone for the whole torus.
 */
#include "examples/dmapp_common.h"

#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { NORTH, SOUTH, WEST, EAST, SIDES };

struct field {
    unsigned side;
    unsigned stride; /* cells in a row, borders included */
    unsigned rows;   /* of PEs */
    unsigned columns;
    double *cells[2];           /* symmetric */
    volatile uint64_t *arrived; /* symmetric: the step whose cells have come from each side */
};

static double *cell(const struct field *f, double *cells, unsigned row, unsigned column)
{
    return cells + (size_t)row * f->stride + column;
}

static dmapp_pe_t pe_at(const struct field *f, int row, int column)
{
    unsigned r = (unsigned)(row + (int)f->rows) % f->rows;
    unsigned c = (unsigned)(column + (int)f->columns) % f->columns;

    return (dmapp_pe_t)(r * f->columns + c);
}

/* The most square torus of that many PEs. */
static void arrange(struct field *f, int npes)
{
    f->rows = (unsigned)sqrt((double)npes);
    while ((unsigned)npes % f->rows != 0)
        f->rows--;
    f->columns = (unsigned)npes / f->rows;
}

static double start_value(unsigned row, unsigned column)
{
    return (double)((row * 7919u + column * 104729u) % 1000u);
}

/* Tells four neighbours our edges of `step`. */
static void send_edges(const struct field *f, dmapp_jobinfo_t *job, double *cells, uint64_t step)
{
    dmapp_seg_desc_t *heap = &job->sheap_seg;
    int row = job->pe / (int)f->columns;
    int column = job->pe % (int)f->columns;
    unsigned last = f->side;

    EX_DMAPP(dmapp_iput_nbi(cell(f, cells, 1, last + 1), heap, pe_at(f, row, column - 1), cell(f, cells, 1, 1),
                            (ptrdiff_t)f->stride, (ptrdiff_t)f->stride, f->side, DMAPP_QW));
    EX_DMAPP(dmapp_iput_nbi(cell(f, cells, 1, 0), heap, pe_at(f, row, column + 1), cell(f, cells, 1, last),
                            (ptrdiff_t)f->stride, (ptrdiff_t)f->stride, f->side, DMAPP_QW));
    EX_DMAPP(dmapp_put_flag_nbi(cell(f, cells, last + 1, 1), heap, pe_at(f, row - 1, column), cell(f, cells, 1, 1),
                                f->side, DMAPP_QW, (void *)(uintptr_t)&f->arrived[SOUTH], step));
    EX_DMAPP(dmapp_put_flag_nbi(cell(f, cells, 0, 1), heap, pe_at(f, row + 1, column), cell(f, cells, last, 1), f->side,
                                DMAPP_QW, (void *)(uintptr_t)&f->arrived[NORTH], step));
    EX_DMAPP(dmapp_gsync_wait());
    EX_DMAPP(dmapp_put_nbi((void *)(uintptr_t)&f->arrived[EAST], heap, pe_at(f, row, column - 1), &step, 1, DMAPP_QW));
    EX_DMAPP(dmapp_put_nbi((void *)(uintptr_t)&f->arrived[WEST], heap, pe_at(f, row, column + 1), &step, 1, DMAPP_QW));
    EX_DMAPP(dmapp_gsync_wait());
}

static void wait_for_edges(const struct field *f, uint64_t step)
{
    for (unsigned side = 0; side < SIDES; side++) {
        while (f->arrived[side] < step)
            sched_yield();
    }
}

static void compute(const struct field *f, double *from, double *to)
{
    for (unsigned row = 1; row <= f->side; row++) {
        for (unsigned column = 1; column <= f->side; column++)
            *cell(f, to, row, column) =
                (*cell(f, from, row, column) + *cell(f, from, row - 1, column) + *cell(f, from, row + 1, column) +
                 *cell(f, from, row, column - 1) + *cell(f, from, row, column + 1)) /
                5.0;
    }
}

/* The whole torus by one PE. Caller frees. */
static double *compute_alone(const struct field *f, unsigned steps)
{
    unsigned height = f->rows * f->side;
    unsigned width = f->columns * f->side;
    double *now = malloc(sizeof(double) * height * width);
    double *next = malloc(sizeof(double) * height * width);

    EX_EXPECT(now && next);
    for (unsigned r = 0; r < height; r++) {
        for (unsigned c = 0; c < width; c++)
            now[(size_t)r * width + c] = start_value(r, c);
    }
    for (unsigned step = 0; step < steps; step++) {
        double *old = now;

        for (unsigned r = 0; r < height; r++) {
            for (unsigned c = 0; c < width; c++) {
                size_t north = (size_t)((r + height - 1) % height) * width + c;
                size_t south = (size_t)((r + 1) % height) * width + c;
                size_t row = (size_t)r * width;

                next[row + c] = (now[row + c] + now[north] + now[south] + now[row + (c + width - 1) % width] +
                                 now[row + (c + 1) % width]) /
                                5.0;
            }
        }
        now = next;
        next = old;
    }
    free(next);
    return now;
}

static unsigned count_wrong(const struct field *f, const dmapp_jobinfo_t *job, double *cells, unsigned steps)
{
    unsigned first_row = (unsigned)job->pe / f->columns * f->side;
    unsigned first_column = (unsigned)job->pe % f->columns * f->side;
    double *all = compute_alone(f, steps);
    unsigned n = 0;

    for (unsigned r = 0; r < f->side; r++) {
        for (unsigned c = 0; c < f->side; c++)
            n +=
                *cell(f, cells, r + 1, c + 1) != all[(size_t)(first_row + r) * f->columns * f->side + first_column + c];
    }
    free(all);
    return n;
}

int main(int argc, char **argv)
{
    struct field f = { .side = 64 };
    unsigned steps = 50;
    dmapp_jobinfo_t job;
    uint64_t *n_wrong;
    size_t bytes;
    int option;
    int status;

    while ((option = getopt(argc, argv, "s:n:")) != -1) {
        if (option == 's')
            f.side = (unsigned)strtoul(optarg, NULL, 0);
        else if (option == 'n')
            steps = (unsigned)strtoul(optarg, NULL, 0);
        if (option == '?' || f.side < 1 || f.side > 4096) {
            fprintf(stderr, "usage: dmapp_halo [-s SIDE] [-n STEPS], sides of 1 to 4096\n");
            return 2;
        }
    }
    EX_DMAPP(dmapp_init(NULL, NULL));
    EX_DMAPP(dmapp_get_jobinfo(&job));
    arrange(&f, job.npes);
    f.stride = f.side + 2;
    bytes = sizeof(double) * f.stride * f.stride;
    f.cells[0] = dmapp_sheap_malloc(bytes);
    f.cells[1] = dmapp_sheap_malloc(bytes);
    f.arrived = dmapp_sheap_malloc(SIDES * sizeof(uint64_t));
    n_wrong = dmapp_sheap_malloc(sizeof(*n_wrong));
    EX_EXPECT(f.cells[0] && f.cells[1] && f.arrived && n_wrong);
    memset((void *)(uintptr_t)f.arrived, 0, SIDES * sizeof(uint64_t));
    *n_wrong = 0;
    for (unsigned r = 0; r < f.side; r++) {
        for (unsigned c = 0; c < f.side; c++)
            *cell(&f, f.cells[0], r + 1, c + 1) =
                start_value((unsigned)job.pe / f.columns * f.side + r, (unsigned)job.pe % f.columns * f.side + c);
    }
    ex_barrier();
    for (unsigned step = 0; step < steps; step++) {
        send_edges(&f, &job, f.cells[step % 2], step + 1);
        wait_for_edges(&f, step + 1);
        compute(&f, f.cells[step % 2], f.cells[(step + 1) % 2]);
    }
    EX_DMAPP(dmapp_aadd_qw(n_wrong, &job.sheap_seg, 0, count_wrong(&f, &job, f.cells[steps % 2], steps)));
    ex_barrier();
    status = job.pe == 0 && *n_wrong > 0;
    if (job.pe == 0)
        printf("%u x %u PEs, %u x %u cells each, %u steps: %llu cells wrong\n", f.rows, f.columns, f.side, f.side,
               steps, (unsigned long long)*n_wrong);
    EX_DMAPP(dmapp_finalize());
    return status;
}
