/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of mpi_suite: a message from one rank to another, or to itself, in each mode of sending, of many lengths. */
#include "tests/integration/mpi/mpi_suite.h"

static const int sizes[] = { 0, 1, 7, 8, 63, 65, 4095, 4096, 4097, 16383, 16384, 16385, 65537, 1000003 };
#define N_SIZES (int)(sizeof(sizes) / sizeof(sizes[0]))

typedef int (*sender_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*starter_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

/* Each rank to the next one; receives are posted before, so that ready sends are right. */
static void pass_on(starter_fn start, int is_persistent)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;

    for (int i = 0; i < N_SIZES; i++) {
        unsigned char *out = bytes((size_t)sizes[i]), *in = bytes((size_t)sizes[i]);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        int n;

        fill(out, (size_t)sizes[i], rank, i);
        MPI_Irecv(in, sizes[i], MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[0]);
        MPI_Barrier(MPI_COMM_WORLD);
        start(out, sizes[i], MPI_BYTE, next, i, MPI_COMM_WORLD, &requests[1]);
        if (is_persistent)
            MPI_Start(&requests[1]);
        MPI_Waitall(2, requests, statuses);
        MPI_Get_count(&statuses[0], MPI_BYTE, &n);
        EXPECT(n == sizes[i] && statuses[0].MPI_SOURCE == before && statuses[0].MPI_TAG == i);
        check(in, (size_t)sizes[i], before, i);
        EXPECT(in[sizes[i]] == 0xee);
        if (is_persistent)
            MPI_Request_free(&requests[1]);
        free(in);
        free(out);
    }
}

/* Around each limit of the components, and long ones, from and to odd addresses, expected and not. */
void case_lengths(void)
{
    static const int around[] = { 248, 4096, 8120, 8184, 16384, 65536, 1 << 20, 3 << 20 };
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned char *out = bytes((3 << 20) + 64), *in = bytes((3 << 20) + 64);

    for (int i = 0; i < 8 * 11; i++) {
        int n = around[i / 11] - 5 + i % 11, from = i % 4, to = i / 4 % 4;
        MPI_Request requests[2];
        MPI_Status status;

        if (i / 11 >= 6 && i % 11 % 3 != 0)
            continue;
        fill(out + from, (size_t)n, rank, i);
        memset(in, 0xee, (size_t)n + 16);
        if (i % 2 == 0)
            MPI_Irecv(in + to, n, MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[1]);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Isend(out + from, n, MPI_BYTE, next, i, MPI_COMM_WORLD, &requests[0]);
        if (i % 2 != 0) {
            MPI_Probe(before, i, MPI_COMM_WORLD, &status);
            MPI_Irecv(in + to, n, MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[1]);
        }
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(in + to, (size_t)n, before, i);
        EXPECT((to == 0 || in[to - 1] == 0xee) && in[to + n] == 0xee);
    }
    free(out);
    free(in);
}

/* Pairs; the receiver comes late, so that messages are unexpected. */
static void pass_late(sender_fn send)
{
    int peer = rank ^ 1;

    if (peer >= size)
        return;
    for (int i = 0; i < N_SIZES; i++) {
        unsigned char *data = bytes((size_t)sizes[i]);
        MPI_Status status;
        int n;

        fill(data, (size_t)sizes[i], rank, i);
        if (rank % 2 == 0) {
            send(data, sizes[i], MPI_BYTE, peer, i, MPI_COMM_WORLD);
        } else {
            MPI_Probe(peer, i, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &n);
            EXPECT(n == sizes[i]);
            MPI_Recv(data, n, MPI_BYTE, peer, i, MPI_COMM_WORLD, &status);
            check(data, (size_t)n, peer, i);
        }
        free(data);
    }
}

void case_modes(void)
{
    size_t room = 4 * 1000003;
    void *buffer = malloc(room);

    MPI_Buffer_attach(buffer, (int)room);
    pass_on(MPI_Isend, 0);
    pass_on(MPI_Issend, 0);
    pass_on(MPI_Irsend, 0);
    pass_on(MPI_Ibsend, 0);
    pass_on(MPI_Send_init, 1);
    pass_on(MPI_Ssend_init, 1);
    pass_on(MPI_Bsend_init, 1);
    pass_late(MPI_Send);
    pass_late(MPI_Ssend);
    pass_late(MPI_Bsend);
    MPI_Buffer_detach(&buffer, &(int){ 0 });
    free(buffer);
}

/* Each start of a persistent send takes the data of that moment. */
void case_restarts(void)
{
    static int (*const makers[])(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) = {
        MPI_Send_init,
        MPI_Ssend_init,
        MPI_Bsend_init,
    };
    enum { N = 700, STARTS = 30 };
    size_t room = STARTS * (N * sizeof(int) + MPI_BSEND_OVERHEAD);
    int peer = rank ^ 1, out[N], in[2 * N], n;
    void *buffer = malloc(room);

    MPI_Buffer_attach(buffer, (int)room);
    for (size_t maker = 0; peer < size && maker < sizeof(makers) / sizeof(makers[0]); maker++) {
        MPI_Request send;

        makers[maker](out, N, MPI_INT, peer, 6, MPI_COMM_WORLD, &send);
        for (int i = 0; i < STARTS; i++) {
            MPI_Request receive;
            MPI_Status status;

            for (int k = 0; k < N; k++)
                out[k] = rank + i * k;
            MPI_Irecv(in, 2 * N, MPI_INT, peer, 6, MPI_COMM_WORLD, &receive);
            MPI_Start(&send);
            MPI_Wait(&send, MPI_STATUS_IGNORE);
            MPI_Wait(&receive, &status);
            MPI_Get_count(&status, MPI_INT, &n);
            EXPECT(n == N && in[1] == peer + i && in[N - 1] == peer + i * (N - 1));
        }
        MPI_Request_free(&send);
    }
    MPI_Buffer_detach(&buffer, &(int){ 0 });
    free(buffer);
}

void case_synchronous(void)
{
    MPI_Request request;
    int peer = rank ^ 1, done, token = 5;

    if (peer >= size)
        return;
    for (int n = 0; n < 2; n++) {
        if (rank % 2 == 0) {
            MPI_Issend(&token, n, MPI_INT, peer, 1, MPI_COMM_WORLD, &request);
            MPI_Send(&token, 1, MPI_INT, peer, 2, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            EXPECT(!done); /* nobody has received it */
            MPI_Send(&token, 1, MPI_INT, peer, 4, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&token, 1, MPI_INT, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&token, 1, MPI_INT, peer, 3, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_INT, peer, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(&token, n, MPI_INT, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
}

void case_self(void)
{
    for (int i = 0; i < N_SIZES; i++) {
        unsigned char *out = bytes((size_t)sizes[i]), *in = bytes((size_t)sizes[i]);
        MPI_Request request;

        fill(out, (size_t)sizes[i], rank, i);
        MPI_Isend(out, sizes[i], MPI_BYTE, rank, i, MPI_COMM_WORLD, &request);
        MPI_Recv(in, sizes[i], MPI_BYTE, rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(in, (size_t)sizes[i], rank, i);
        MPI_Sendrecv(out, sizes[i], MPI_BYTE, rank, i, in, sizes[i], MPI_BYTE, rank, i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        free(in);
        free(out);
    }
}
