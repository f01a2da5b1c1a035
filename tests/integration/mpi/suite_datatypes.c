/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of mpi_suite: messages whose data are in pieces, or at addresses of their own. */
#include "tests/integration/mpi/mpi_suite.h"

static void send_typed(MPI_Datatype type, int count, const void *out, void *in)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request request;

    MPI_Irecv(in, count, type, before, 8, MPI_COMM_WORLD, &request);
    MPI_Send(out, count, type, next, 8, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isend(out, count, type, next, 8, MPI_COMM_WORLD, &request);
    MPI_Recv(in, count, type, before, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void vectors(int n)
{
    int before = (rank + size - 1) % size;
    int *out = malloc(3 * (size_t)n * sizeof(int)), *in = malloc(3 * (size_t)n * sizeof(int));
    MPI_Datatype type;

    for (int i = 0; i < 3 * n; i++) {
        out[i] = rank * 1000 + i;
        in[i] = -1;
    }
    MPI_Type_vector(n, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    send_typed(type, 1, out, in);
    for (int i = 0; i < 3 * n; i++)
        EXPECT(in[i] == (i % 3 == 0 ? before * 1000 + i : -1));
    MPI_Type_free(&type);
    free(in);
    free(out);
}

/* One block at an absolute address, and one at a displacement. */
static void displaced(int n)
{
    int before = (rank + size - 1) % size;
    int *out = malloc((size_t)(n + 5) * sizeof(int)), *in = malloc((size_t)(n + 5) * sizeof(int));
    MPI_Datatype there, here, shifted;
    MPI_Aint address[2], shift = 5 * sizeof(int);
    MPI_Request request;

    for (int i = 0; i < n + 5; i++) {
        out[i] = rank * 1000 + i;
        in[i] = -1;
    }
    MPI_Get_address(out, &address[0]);
    MPI_Get_address(in, &address[1]);
    MPI_Type_create_hindexed(1, &n, &address[0], MPI_INT, &there);
    MPI_Type_create_hindexed(1, &n, &address[1], MPI_INT, &here);
    MPI_Type_create_hindexed(1, &n, &shift, MPI_INT, &shifted);
    MPI_Type_commit(&there);
    MPI_Type_commit(&here);
    MPI_Type_commit(&shifted);
    MPI_Irecv(MPI_BOTTOM, 1, here, before, 8, MPI_COMM_WORLD, &request);
    MPI_Send(MPI_BOTTOM, 1, there, (rank + 1) % size, 8, MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < n; i++)
        EXPECT(in[i] == before * 1000 + i);
    for (int i = 0; i < n + 5; i++)
        in[i] = -1;
    send_typed(shifted, 1, out, in);
    for (int i = 0; i < n + 5; i++)
        EXPECT(in[i] == (i < 5 ? -1 : before * 1000 + i));
    for (int is_persistent = 0; is_persistent < 2; is_persistent++) {
        in[0] = in[n - 1] = -1;
        if (is_persistent) {
            MPI_Send_init(MPI_BOTTOM, 1, there, (rank + 1) % size, 8, MPI_COMM_WORLD, &request);
            MPI_Start(&request);
        } else {
            MPI_Isend(MPI_BOTTOM, 1, there, (rank + 1) % size, 8, MPI_COMM_WORLD, &request);
        }
        MPI_Recv(MPI_BOTTOM, 1, here, before, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT(in[0] == before * 1000 && in[n - 1] == before * 1000 + n - 1);
        if (is_persistent)
            MPI_Request_free(&request);
    }
    MPI_Type_free(&there);
    MPI_Type_free(&here);
    MPI_Type_free(&shifted);
    free(in);
    free(out);
}

void case_datatypes(void)
{
    static const int counts[] = { 1, 10, 1000, 5000, 100003 };

    for (int i = 0; i < 5; i++) {
        vectors(counts[i]);
        displaced(counts[i]);
    }
}
