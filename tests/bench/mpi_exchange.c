/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 8-byte messages of all ranks, and how fast a simulation of them goes on the host.
 *
 *   simulated_pingpongRANKS_rate   each rank with its neighbour, one message under way
 *   simulated_alltoallRANKS_rate   each rank to all others, all under way
 *
 * Messages of all ranks a second of the host's time. The program's clock is the simulation's, so the host's time is
 * asked of the kernel itself.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/bench/common.h"

static double host_us(void)
{
    struct timespec t;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void pingpong(int rank, int n_ranks, uint64_t *in, uint64_t *out)
{
    int peer = rank ^ 1;

    if (peer >= n_ranks)
        return;
    if (rank % 2 == 0)
        MPI_Send(out, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
    MPI_Recv(in, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank % 2 == 1)
        MPI_Send(out, 8, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
}

static void all_to_all(int rank, int n_ranks, uint64_t *in, uint64_t *out, MPI_Request *requests)
{
    int n = 0;

    for (int i = 1; i < n_ranks; i++) {
        int peer = (rank + n_ranks - i) % n_ranks;

        MPI_Irecv(&in[peer], 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[n++]);
    }
    for (int i = 1; i < n_ranks; i++) {
        int peer = (rank + i) % n_ranks;

        MPI_Isend(&out[peer], 8, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

static void print_rate(const char *pattern, int n_ranks, double messages, double time_us)
{
    char name[64];

    snprintf(name, sizeof(name), "simulated_%s%d_rate", pattern, n_ranks);
    bench_print(name, messages / time_us, "M/s");
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    uint64_t *in, *out;
    MPI_Request *requests;
    long n_rounds;
    double begin_us;
    int rank, n_ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    in = calloc((size_t)n_ranks, sizeof(*in));
    out = calloc((size_t)n_ranks, sizeof(*out));
    requests = calloc(2 * (size_t)n_ranks, sizeof(MPI_Request));
    if (!in || !out || !requests)
        MPI_Abort(MPI_COMM_WORLD, 1);

    n_rounds = options.n / n_ranks + 1;
    pingpong(rank, n_ranks, in, out);
    MPI_Barrier(MPI_COMM_WORLD);
    begin_us = host_us();
    for (long i = 0; i < n_rounds; i++)
        pingpong(rank, n_ranks, in, out);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        print_rate("pingpong", n_ranks, (double)n_rounds * (n_ranks / 2) * 2, host_us() - begin_us);

    n_rounds = options.n / n_ranks / (n_ranks - 1) + 1;
    all_to_all(rank, n_ranks, in, out, requests);
    MPI_Barrier(MPI_COMM_WORLD);
    begin_us = host_us();
    for (long i = 0; i < n_rounds; i++)
        all_to_all(rank, n_ranks, in, out, requests);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        print_rate("alltoall", n_ranks, (double)n_rounds * n_ranks * (n_ranks - 1), host_us() - begin_us);
    MPI_Finalize();
    free(in);
    free(out);
    free(requests);
    return 0;
}
