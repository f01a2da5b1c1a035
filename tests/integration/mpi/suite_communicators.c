/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of mpi_suite: communicators keep their messages apart, and number their ranks as they were asked to. */
#include "tests/integration/mpi/mpi_suite.h"

void case_communicators(void)
{
    MPI_Comm dup, half;
    int value = -1, half_rank, half_size, sum;
    MPI_Request requests[2];
    int peer = rank ^ 1;

    MPI_Comm_dup(MPI_COMM_WORLD, &dup);
    if (peer < size) {
        int in_world = -1, in_dup = -1, one = 1, two = 2;

        MPI_Irecv(&in_dup, 1, MPI_INT, peer, 0, dup, &requests[0]);
        MPI_Irecv(&in_world, 1, MPI_INT, peer, 0, MPI_COMM_WORLD, &requests[1]);
        MPI_Send(&one, 1, MPI_INT, peer, 0, MPI_COMM_WORLD);
        MPI_Send(&two, 1, MPI_INT, peer, 0, dup);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        EXPECT(in_world == 1 && in_dup == 2);
    }
    for (int i = 0; i < 20; i++) {
        MPI_Comm_split(dup, rank % 2, -rank, &half);
        MPI_Comm_rank(half, &half_rank);
        MPI_Comm_size(half, &half_size);
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, half);
        value = 0;
        for (int r = rank % 2; r < size; r += 2)
            value += r;
        EXPECT(sum == value);
        EXPECT(half_rank == half_size - 1 - rank / 2);
        MPI_Comm_free(&half);
    }
    MPI_Comm_free(&dup);
}

void case_intercommunicators(void)
{
    MPI_Comm half, inter, merged;
    int value, sum, peer_size, merged_size, i = rank % 2;

    if (size < 2)
        return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 77, &inter);
    MPI_Comm_remote_size(inter, &peer_size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, inter);
    value = 0;
    for (int r = 1 - rank % 2; r < size; r += 2)
        value += r;
    EXPECT(sum == value);
    MPI_Comm_rank(half, &value);
    if (value < peer_size) {
        int theirs = -1;

        MPI_Sendrecv(&rank, 1, MPI_INT, value, 5, &theirs, 1, MPI_INT, value, 5, inter, MPI_STATUS_IGNORE);
        EXPECT(theirs == (rank ^ 1));
    }
    MPI_Intercomm_merge(inter, i, &merged);
    MPI_Comm_size(merged, &merged_size);
    EXPECT(merged_size == size);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

/* A ring as a graph that the library may reorder; neighbours exchange their ranks in it. */
void case_graph(void)
{
    int from, to, in = -1, graph_rank, sources = 0, targets = 0, is_weighted;
    int one = 1, next = (rank + 1) % size, weights[2];
    MPI_Comm ring;

    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &rank, &one, &next, &one, MPI_INFO_NULL, 1, &ring);
    MPI_Comm_rank(ring, &graph_rank);
    MPI_Dist_graph_neighbors_count(ring, &sources, &targets, &is_weighted);
    EXPECT(sources == 1 && targets == 1 && is_weighted);
    MPI_Dist_graph_neighbors(ring, 1, &from, &weights[0], 1, &to, &weights[1]);
    MPI_Neighbor_alltoall(&graph_rank, 1, MPI_INT, &in, 1, MPI_INT, ring);
    EXPECT(in == from);
    MPI_Comm_free(&ring);
}
