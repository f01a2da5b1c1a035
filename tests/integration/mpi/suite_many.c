/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of mpi_suite: more messages at a time than queues and the NIC have places for, and several threads. */
#include "tests/integration/mpi/mpi_suite.h"

#include <pthread.h>

#define N_FLOOD   3000
#define N_MANY    1200
#define N_THREADS 4
#define MANY_SIZE 20001

/* More than unexpected ones may have, into receives that wait; then both send before they receive. */
void case_expected(void)
{
    enum { N = 2304, BYTES = 4096 };
    int other = rank ^ 1;
    unsigned char *out = bytes(BYTES), *in = bytes(BYTES);
    MPI_Request request;

    if (other < size) {
        if (rank & 1)
            MPI_Irecv(in, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, other, 2, NULL, 0, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int i = 0; i < N; i++) {
            fill(out, BYTES, rank, i % 7);
            if (!(rank & 1)) {
                MPI_Irecv(in, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
                MPI_Send(out, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD);
            }
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            check(in, BYTES, other, i % 7);
            if (rank & 1) {
                if (i + 1 < N)
                    MPI_Irecv(in, BYTES, MPI_BYTE, other, 0, MPI_COMM_WORLD, &request);
                MPI_Send(out, BYTES, MPI_BYTE, other, 1, MPI_COMM_WORLD);
            }
        }
        MPI_Send(out, 8, MPI_BYTE, other, 3, MPI_COMM_WORLD);
        MPI_Recv(in, 8, MPI_BYTE, other, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    free(out);
    free(in);
}

/* Nobody receives before all have been sent; then the last come first. */
void case_flood(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request *requests = malloc(N_FLOOD * sizeof(MPI_Request));
    unsigned char *out[8], *in = bytes(3000);
    int n = size > 4 ? N_FLOOD / 6 : N_FLOOD;

    for (int i = 0; i < 8; i++) {
        out[i] = bytes(3000);
        fill(out[i], 3000, rank, i);
    }
    for (int i = 0; i < n; i++)
        MPI_Isend(out[i % 8], i % 3000, MPI_BYTE, next, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = n - 1; i >= 0; i--) {
        MPI_Recv(in, 3000, MPI_BYTE, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(in, (size_t)(i % 3000), before, i % 8);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 8; i++)
        free(out[i]);
    free(in);
    free(requests);
}

/* A rank that computes while all others send to it as fast as they can. */
void case_storm(void)
{
    enum { EACH = 2000 };
    int n = size > 4 ? EACH / 4 : EACH;
    int value[64];

    if (rank != 0) {
        for (int i = 0; i < n; i++) {
            value[0] = i;
            MPI_Send(value, 1 + i % 64, MPI_INT, 0, 6, MPI_COMM_WORLD);
        }
    }
    for (int source = size - 1; rank == 0 && source > 0; source--) {
        for (int i = 0; i < n; i++) {
            MPI_Recv(value, 64, MPI_INT, source, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            EXPECT(value[0] == i);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

void case_many(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int n = size > 4 ? N_MANY / 8 : N_MANY;
    MPI_Request *requests = malloc(2 * N_MANY * sizeof(MPI_Request));
    unsigned char *in = bytes((size_t)n * MANY_SIZE), *out = bytes(MANY_SIZE);

    fill(out, MANY_SIZE, rank, 1);
    for (int round = 0; round < 2; round++) {
        memset(in, 0, (size_t)n * MANY_SIZE);
        if (round == 0)
            for (int i = 0; i < n; i++)
                MPI_Irecv(in + (size_t)i * MANY_SIZE, MANY_SIZE, MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[n + i]);
        for (int i = 0; i < n; i++)
            MPI_Isend(out, MANY_SIZE, MPI_BYTE, next, i, MPI_COMM_WORLD, &requests[i]);
        if (round == 1)
            for (int i = 0; i < n; i++)
                MPI_Irecv(in + (size_t)i * MANY_SIZE, MANY_SIZE, MPI_BYTE, before, i, MPI_COMM_WORLD, &requests[n + i]);
        MPI_Waitall(2 * n, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < n; i += 37)
            check(in + (size_t)i * MANY_SIZE, MANY_SIZE, before, 1);
    }
    free(requests);
    free(in);
    free(out);
}

/* More receives than the NIC has entries, in rank 1: each gets what was sent for it. */
void case_receives(void)
{
    enum { N = 70000, LENGTH = 128, SENDS = 2000 };
    MPI_Request *requests = malloc((rank == 1 ? N : SENDS) * sizeof(MPI_Request));
    unsigned char *data = bytes(rank == 1 ? (size_t)N * LENGTH : SENDS * LENGTH);

    EXPECT(requests);
    for (int i = 0; rank == 1 && i < N; i++)
        MPI_Irecv(data + (size_t)i * LENGTH, LENGTH, MPI_BYTE, 0, i % 3, MPI_COMM_WORLD, &requests[i]);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int from = 0; rank == 0 && from < N; from += SENDS) {
        for (int i = from; i < from + SENDS; i++) {
            unsigned char *out = data + (size_t)(i - from) * LENGTH;
            size_t n = (size_t)(i * 7 % (LENGTH + 1));

            fill(out, n, 0, i);
            (i % 5 == 0 ? MPI_Issend : MPI_Isend)(out, (int)n, MPI_BYTE, 1, i % 3, MPI_COMM_WORLD, &requests[i - from]);
        }
        MPI_Waitall(SENDS, requests, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; rank == 1 && i < N; i++) {
        MPI_Status status;
        int n;

        MPI_Wait(&requests[i], &status);
        MPI_Get_count(&status, MPI_BYTE, &n);
        EXPECT(n == i * 7 % (LENGTH + 1));
        check(data + (size_t)i * LENGTH, (size_t)n, 0, i);
    }
    free(requests);
    free(data);
}

static void *thread(void *number)
{
    int tag = (int)(intptr_t)number, peer = rank ^ 1;

    for (int i = 0; i < 200; i++) {
        size_t n = (size_t)(i % 5 == 0 ? 40001 : i);
        unsigned char *out = bytes(n), *in = bytes(n);
        MPI_Request requests[2];

        fill(out, n, rank, tag + i);
        MPI_Irecv(in, (int)n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[0]);
        if (i % 3 == 0)
            MPI_Issend(out, (int)n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
        else
            MPI_Isend(out, (int)n, MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check(in, n, peer, tag + i);
        free(in);
        free(out);
    }
    return NULL;
}

void case_threads(void)
{
    pthread_t ids[N_THREADS];

    if ((rank ^ 1) >= size)
        return;
    for (int i = 0; i < N_THREADS; i++)
        EXPECT(pthread_create(&ids[i], NULL, thread, (void *)(intptr_t)(1000 + i)) == 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(ids[i], NULL);
}
