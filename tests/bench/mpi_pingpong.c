/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-sided messages of an MPI library between two ranks.
 *
 *   message8_half_round_trip   8 bytes back and forth, half of one turn
 *   message8_rate              a stream of 8-byte messages, WINDOW under way, one answer at the end
 *   message_bandwidth/SIZE     SIZE bytes back and forth: bytes per half turn
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/common.h"

#define WINDOW  64
#define WARM_UP 1000

static double half_turn_us(int rank, char *mem, int len_bytes, long n)
{
    double start_us = 0;

    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        if (rank == 0) {
            MPI_Send(mem, len_bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(mem, len_bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(mem, len_bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(mem, len_bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
    }
    return (bench_now_us() - start_us) / (double)n / 2;
}

static void stream(int rank, char *mem, long n_windows)
{
    MPI_Request requests[WINDOW];

    for (long w = 0; w < n_windows; w++) {
        for (int i = 0; i < WINDOW; i++) {
            if (rank == 0)
                MPI_Isend(mem + 8 * i, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(mem + 8 * i, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    }
    if (rank == 0)
        MPI_Recv(mem, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(mem, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    char *mem = malloc(BENCH_SIZE_MAX);
    long n_windows = 10 * options.n / WINDOW + 1;
    double time_us;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!mem)
        MPI_Abort(MPI_COMM_WORLD, 1);
    memset(mem, 1, BENCH_SIZE_MAX);
    if (options.is_pinned)
        bench_pin(rank);

    time_us = half_turn_us(rank, mem, 8, options.n);
    if (rank == 0)
        bench_print("message8_half_round_trip", time_us, "us");
    stream(rank, mem, WARM_UP / WINDOW);
    time_us = bench_now_us();
    stream(rank, mem, n_windows);
    if (rank == 0)
        bench_print("message8_rate", (double)n_windows * WINDOW / (bench_now_us() - time_us), "M/s");
    for (size_t len = BENCH_SIZE_MIN; len <= BENCH_SIZE_MAX; len *= BENCH_SIZE_STEP) {
        time_us = half_turn_us(rank, mem, (int)len, bench_rounds(&options, len) / 2 + 1);
        if (rank == 0)
            bench_print_sized("message_bandwidth", len, (double)len / time_us * 1e-3, "GB/s");
    }
    MPI_Finalize();
    free(mem);
    return 0;
}
