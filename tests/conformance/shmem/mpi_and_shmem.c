/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI and SHMEM in one program: whichever begins or ends first, PE and rank are the same number, and both carry data
 * between the same two calls.
 *
 *   mpi_and_shmem FIRST    "mpi" or "shmem": which of them begins first and ends last
 */
#include <mpi.h>
#include <shmem.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define ROUNDS 50

static long from_left;
static long sum;
static long mine;

static void begin(bool is_mpi_first, int *argc, char ***argv)
{
    if (is_mpi_first)
        MPI_Init(argc, argv);
    shmem_init();
    if (!is_mpi_first)
        MPI_Init(argc, argv);
}

static void end(bool is_mpi_first)
{
    if (!is_mpi_first)
        MPI_Finalize();
    shmem_finalize();
    if (is_mpi_first)
        MPI_Finalize();
}

static int complain(int pe, int round, const char *what)
{
    fprintf(stderr, "PE %d, round %d: %s\n", pe, round, what);
    return 1;
}

/* A message to the right by MPI, a put to the right by SHMEM, and both sums. */
static int exchange(int pe, int n, int round)
{
    int right = (pe + 1) % n;
    int left = (pe + n - 1) % n;
    long message = -1;
    long mpi_sum = -1;
    long sent = 1000L * round + pe;

    shmem_long_put_nbi(&from_left, &sent, 1, right);
    MPI_Sendrecv(&sent, 1, MPI_LONG, right, round, &message, 1, MPI_LONG, left, round, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    if (message != 1000L * round + left)
        return complain(pe, round, "MPI's message is wrong");
    shmem_barrier_all();
    if (from_left != message)
        return complain(pe, round, "SHMEM's put is not MPI's message");
    mine = pe + round;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &mine, 1);
    MPI_Allreduce(&mine, &mpi_sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (sum != mpi_sum || sum != (long)n * (n - 1) / 2 + (long)n * round)
        return complain(pe, round, "the sums differ");
    MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}

int main(int argc, char **argv)
{
    bool is_mpi_first = argc > 1 && strcmp(argv[1], "mpi") == 0;
    int rank;
    int size;
    int r = 0;

    begin(is_mpi_first, &argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != shmem_my_pe() || size != shmem_n_pes())
        r = complain(shmem_my_pe(), 0, "rank and PE differ");
    for (int round = 0; r == 0 && round < ROUNDS; round++)
        r = exchange(rank, size, round);
    if (r != 0)
        MPI_Abort(MPI_COMM_WORLD, r);
    end(is_mpi_first);
    return 0;
}
