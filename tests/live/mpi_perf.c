/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency and bandwidth of MPI between ranks 0 and 1, as CUG05 measured them on the X1, XD1 and XT3.
 *
 *   mpi_perf [-i ITERATIONS] [-m MAX_SIZE]
 *
 * - latency: a ping-pong; half a round trip.
 * - one way: bytes of a ping-pong's message by half a round trip.
 * - both ways: both send at once (MPI_Sendrecv); the bytes of both by the time of one such exchange.
 *
 * Each message is checked once before it is measured. Nothing here knows of emunic.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int small[] = { 0, 8, 64, 128, 1024 };
static const int large[] = { 8192, 65536, 1000000 };

static int rank;
static char *in;
static char *out;

static void ping_pong(int bytes)
{
    if (rank == 0)
        MPI_Send(out, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1)
        MPI_Send(out, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
}

static void exchange(int bytes)
{
    MPI_Sendrecv(out, bytes, MPI_CHAR, 1 - rank, 0, in, bytes, MPI_CHAR, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* us of one, after one whose bytes are checked. The first round behind a barrier pays for who comes out of it late. */
static double time_of(void (*round)(int bytes), int bytes, int n)
{
    double start_s;

    memset(in, 0, (size_t)bytes);
    memset(out, bytes % 251 + rank, (size_t)bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    round(bytes);
    for (int i = 0; i < bytes; i++) {
        if (in[i] != (char)(bytes % 251 + 1 - rank)) {
            fprintf(stderr, "mpi_perf: byte %d of %d is wrong\n", i, bytes);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    round(bytes);
    start_s = MPI_Wtime();
    for (int i = 0; i < n; i++)
        round(bytes);
    return (MPI_Wtime() - start_s) * 1e6 / n;
}

static void show_latencies(int n, int max_bytes)
{
    if (rank == 0)
        printf("%10s  latency, us\n", "bytes");
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]) && small[i] <= max_bytes; i++) {
        double us = time_of(ping_pong, small[i], n) / 2;

        if (rank == 0)
            printf("%10d  %11.3f\n", small[i], us);
    }
}

static void show_rates(int n, int max_bytes)
{
    if (rank == 0)
        printf("%10s  one way, MB/s  both ways, MB/s\n", "bytes");
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]) && large[i] <= max_bytes; i++) {
        double one_us = time_of(ping_pong, large[i], n) / 2;
        double both_us = time_of(exchange, large[i], n);

        if (rank == 0)
            printf("%10d  %13.1f  %15.1f\n", large[i], large[i] / one_us, 2.0 * large[i] / both_us);
    }
}

int main(int argc, char **argv)
{
    int max_bytes = large[sizeof(large) / sizeof(large[0]) - 1];
    int n = 20;
    int n_ranks;
    int option;

    while ((option = getopt(argc, argv, "i:m:")) != -1) {
        if (option == 'i')
            n = atoi(optarg);
        else if (option == 'm')
            max_bytes = atoi(optarg);
        else
            return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    in = malloc((size_t)large[sizeof(large) / sizeof(large[0]) - 1]);
    out = malloc((size_t)large[sizeof(large) / sizeof(large[0]) - 1]);
    if (n_ranks != 2 || !in || !out || n < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    show_latencies(n, max_bytes);
    show_rates(n, max_bytes);
    free(in);
    free(out);
    MPI_Finalize();
    return 0;
}
