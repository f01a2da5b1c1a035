/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the ranks of an MPI job do together.
 *
 *   mpi_barrierN_time     of N ranks
 *   mpi_sumN_time         MPI_Allreduce of one double
 *   mpi_put8_flush_time   two ranks: MPI_Put of 8 bytes into a window of MPI_Win_allocate, and MPI_Win_flush
 */
#include <mpi.h>
#include <stdio.h>

#include "tests/bench/common.h"

static void barrier(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
}

static void sum(void)
{
    double mine = 1;
    double all = 0;

    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static double time_of(void (*call)(void), long n)
{
    double start_us = 0;

    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        call();
    }
    return (bench_now_us() - start_us) / (double)n;
}

static double put_time_us(int rank, long n)
{
    double start_us = 0;
    double value = 1;
    void *memory;
    MPI_Win window;

    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, (void *)&memory, &window);
    MPI_Win_lock_all(0, window);
    MPI_Barrier(MPI_COMM_WORLD);
    for (long i = -n / 10 - 1; rank == 0 && i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        MPI_Put(&value, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, window);
        MPI_Win_flush(1, window);
    }
    start_us = (bench_now_us() - start_us) / (double)n;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    return start_us;
}

static void print(const char *name, int n_ranks, double time_us)
{
    char text[64];

    snprintf(text, sizeof(text), "mpi_%s%d_time", name, n_ranks);
    bench_print(text, time_us, "us");
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    int rank, n_ranks;
    double barrier_us, sum_us;
    double put_us = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (options.is_pinned)
        bench_pin(rank);
    barrier_us = time_of(barrier, options.n / n_ranks);
    sum_us = time_of(sum, options.n / n_ranks);
    if (n_ranks == 2)
        put_us = put_time_us(rank, options.n);
    if (rank == 0) {
        print("barrier", n_ranks, barrier_us);
        print("sum", n_ranks, sum_us);
        if (n_ranks == 2)
            bench_print("mpi_put8_flush_time", put_us, "us");
    }
    MPI_Finalize();
    return 0;
}
