/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of mpi_suite: collective calls of few bytes and of many. */
#include "tests/integration/mpi/mpi_suite.h"

static void collective(int n)
{
    int *in = malloc((size_t)size * (size_t)n * sizeof(int)), *out = malloc((size_t)size * (size_t)n * sizeof(int));
    MPI_Request requests[2];

    for (int i = 0; i < size * n; i++) {
        in[i] = rank * 7 + i;
        out[i] = -1;
    }
    MPI_Alltoall(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size * n; i++)
        EXPECT(out[i] == i / n * 7 + rank * n + i % n);
    MPI_Allgather(in, n, MPI_INT, out, n, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size * n; i++)
        EXPECT(out[i] == i / n * 7 + i % n);
    MPI_Allreduce(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        EXPECT(out[i] == size * i + 7 * size * (size - 1) / 2);
    MPI_Iallreduce(in, out, n, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        EXPECT(out[i] == (size - 1) * 7 + i);
    MPI_Scan(in, out, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        EXPECT(out[i] == (rank + 1) * i + 7 * rank * (rank + 1) / 2);
    for (int root = 0; root < size; root++) {
        MPI_Bcast(rank == root ? in : out, n, MPI_INT, root, MPI_COMM_WORLD);
        EXPECT(rank == root || (out[0] == root * 7 && out[n - 1] == root * 7 + n - 1));
        MPI_Gather(in, n, MPI_INT, out, n, MPI_INT, root, MPI_COMM_WORLD);
        EXPECT(rank != root || out[size * n - 1] == (size - 1) * 7 + n - 1);
        MPI_Scatter(in, n, MPI_INT, out, n, MPI_INT, root, MPI_COMM_WORLD);
        EXPECT(out[0] == root * 7 + rank * n);
    }
    free(in);
    free(out);
}

void case_collectives(void)
{
    collective(1);
    collective(13);
    collective(size > 4 ? 1000 : 20011);
}

/* Results of a few bytes, in each communicator anew: the engines of the machine may do them. */
static void small_collective(MPI_Comm comm, int n, int me)
{
    long sum = (long)n * (n - 1) / 2, in, out;
    int pair[2], both[2], least;
    float part = (float)me + 0.5F, whole = 0;
    double mine = 1.0 / (me + 1), first = 0, again;
    char text[17], expected[17];

    for (int i = 0; i < 20; i++) {
        in = me + i, out = -1;
        MPI_Allreduce(&in, &out, 1, MPI_LONG, MPI_SUM, comm);
        EXPECT(out == sum + (long)i * n);
        pair[0] = me, pair[1] = -me;
        MPI_Allreduce(pair, both, 2, MPI_INT, MPI_SUM, comm);
        EXPECT(both[0] == sum && both[1] == -sum);
        MPI_Allreduce(MPI_IN_PLACE, pair, 2, MPI_INT, MPI_MAX, comm);
        EXPECT(pair[0] == n - 1 && pair[1] == 0);
        least = -me;
        MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, comm);
        EXPECT(least == 1 - n);
        in = 1L << (me % 60), out = 0;
        MPI_Reduce(&in, &out, 1, MPI_LONG, MPI_BOR, i % n, comm);
        EXPECT(me != i % n || out == (1L << (n < 60 ? n : 60)) - 1);
        MPI_Reduce(&part, &whole, 1, MPI_FLOAT, MPI_SUM, 0, comm);
        EXPECT(me != 0 || whole == (float)sum + 0.5F * (float)n);
        /* The order of a sum does not change. */
        MPI_Allreduce(&mine, &again, 1, MPI_DOUBLE, MPI_SUM, comm);
        EXPECT(i < 4 || first == again);
        first = again;
        memset(text, 0, sizeof(text));
        snprintf(expected, sizeof(expected), "%d of %d", i, n);
        if (me == i % n)
            memcpy(text, expected, sizeof(text));
        MPI_Bcast(text, i % 17, MPI_CHAR, i % n, comm);
        EXPECT(strncmp(text, expected, (size_t)(i % 17)) == 0);
        MPI_Barrier(comm);
    }
}

void case_small(void)
{
    MPI_Comm half;

    small_collective(MPI_COMM_WORLD, size, rank);
    for (int i = 0; i < 8; i++) {
        int half_rank, half_size;

        MPI_Comm_split(MPI_COMM_WORLD, (rank + i) % 2, rank, &half);
        MPI_Comm_rank(half, &half_rank);
        MPI_Comm_size(half, &half_size);
        small_collective(half, half_size, half_rank);
        MPI_Comm_free(&half);
    }
    small_collective(MPI_COMM_WORLD, size, rank);
}
