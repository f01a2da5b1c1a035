/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases of mpi_suite: which message a receive or a probe takes, in which order, and what it says of it. */
#include "tests/integration/mpi/mpi_suite.h"

void case_any(void)
{
    enum { EACH = 50 };
    int next[1024] = { 0 };

    if (rank != 0) {
        for (int i = 0; i < EACH; i++) {
            int value[2] = { rank, i };

            MPI_Send(value, 2, MPI_INT, 0, i % 7, MPI_COMM_WORLD);
        }
    }
    for (int i = 0; rank == 0 && i < EACH * (size - 1); i++) {
        int value[2];
        MPI_Status status;

        MPI_Recv(value, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        EXPECT(status.MPI_SOURCE == value[0] && status.MPI_TAG == value[1] % 7);
        EXPECT(next[value[0]] == value[1]);
        next[value[0]]++;
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Short and long ones by turns stay in order, expected or not. */
void case_order(void)
{
    enum { N = 200 };
    static const int lengths[] = { 8, 20000, 0, 300, 70001, 16384 };
    int peer = rank ^ 1;
    unsigned char *data = bytes(70001);
    MPI_Request requests[N];
    unsigned char *out[N];

    if (peer < size) {
        for (int i = 0; i < N; i++) {
            out[i] = bytes((size_t)lengths[i % 6]);
            fill(out[i], (size_t)lengths[i % 6], rank, i);
            MPI_Isend(out[i], lengths[i % 6], MPI_BYTE, peer, 9, MPI_COMM_WORLD, &requests[i]);
        }
        for (int i = 0; i < N; i++) {
            MPI_Status status;
            int n;

            MPI_Recv(data, 70001, MPI_BYTE, peer, i % 2 ? MPI_ANY_TAG : 9, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &n);
            EXPECT(n == lengths[i % 6]);
            check(data, (size_t)n, peer, i);
        }
        MPI_Waitall(N, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; i < N; i++)
            free(out[i]);
    }
    free(data);
}

/* As long as rank after rank says; most fit into an inbox. */
static int mixed_length(unsigned seed)
{
    static const int lengths[] = { 8, 0, 96, 8, 97, 40, 8, 3000, 8, 64, 20000, 8, 1, 96, 8, 500 };

    return lengths[seed * 2654435761u >> 28];
}

/*
 * Receives of all lengths and patterns that one message after the other meets in the order of posting, sent in all
 * ways; between them others that nobody ever meets. Those of short messages are kept elsewhere than those of long ones.
 */
void case_mixed(void)
{
    enum { N = 960, WINDOW = 48, LENGTH_MAX = 20000 };
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    unsigned char *in[WINDOW], *out[WINDOW], nobody[8];
    MPI_Request receives[WINDOW], sends[WINDOW], idle;
    MPI_Status status;

    for (int i = 0; i < WINDOW; i++) {
        in[i] = bytes(LENGTH_MAX);
        out[i] = bytes(LENGTH_MAX);
    }
    for (int i = 0; i < N; i += WINDOW) {
        int n_early = i / WINDOW * 5 % (WINDOW + 1), flag;

        MPI_Irecv(nobody, 8, MPI_BYTE, from, 99, MPI_COMM_WORLD, &idle);
        for (int k = 0; k < 2 * WINDOW; k++) {
            int at = k % WINDOW, tag = (i + at) % 5, n = mixed_length((unsigned)(i + at));

            /* The first n_early receives are posted before anything is sent here, the others afterwards. */
            if ((at < n_early) == (k < WINDOW))
                MPI_Irecv(in[at], n, MPI_BYTE, at % 3 ? from : MPI_ANY_SOURCE, at % 4 ? tag : MPI_ANY_TAG,
                          MPI_COMM_WORLD, &receives[at]);
            if (k >= WINDOW)
                continue;
            fill(out[at], (size_t)n, rank, i + at);
            if ((i + at) % 7 == 3)
                MPI_Issend(out[at], n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &sends[at]);
            else
                MPI_Isend(out[at], n, MPI_BYTE, to, tag, MPI_COMM_WORLD, &sends[at]);
        }
        for (int at = 0; at < WINDOW; at++) {
            int n;

            MPI_Wait(&receives[at], &status);
            MPI_Get_count(&status, MPI_BYTE, &n);
            EXPECT(status.MPI_SOURCE == from && status.MPI_TAG == (i + at) % 5);
            EXPECT(n == mixed_length((unsigned)(i + at)));
            check(in[at], (size_t)n, from, i + at);
        }
        MPI_Waitall(WINDOW, sends, MPI_STATUSES_IGNORE);
        MPI_Cancel(&idle);
        MPI_Wait(&idle, &status);
        MPI_Test_cancelled(&status, &flag);
        EXPECT(flag);
    }
    for (int i = 0; i < WINDOW; i++) {
        free(in[i]);
        free(out[i]);
    }
}

void case_probes(void)
{
    int peer = rank ^ 1, flag = 0, n;
    unsigned char *data = bytes(30001);
    MPI_Request requests[3], request;
    MPI_Message message;
    MPI_Status status;

    for (int i = 0; peer < size && i < 2; i++) {
        int length = i == 0 ? 77 : 30001;

        fill(data, (size_t)length, rank, i);
        if (rank % 2 == 0) {
            for (int k = 0; k < 3; k++)
                MPI_Isend(data, length, MPI_BYTE, peer, k < 2 ? i : 50, MPI_COMM_WORLD, &requests[k]);
            MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
            continue;
        }
        MPI_Probe(peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        status.MPI_ERROR = MPI_ERR_TOPOLOGY; /* of requests only: stays */
        MPI_Mprobe(MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &message, &status);
        MPI_Get_count(&status, MPI_BYTE, &n);
        EXPECT(n == length && status.MPI_SOURCE == peer && status.MPI_TAG == i);
        EXPECT(status.MPI_ERROR == MPI_ERR_TOPOLOGY);
        MPI_Recv(data, length, MPI_BYTE, peer, 50, MPI_COMM_WORLD, &status); /* overtakes the one that is held */
        MPI_Mrecv(data, n, MPI_BYTE, &message, &status);
        check(data, (size_t)n, peer, i);
        do
            MPI_Iprobe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, i == 0 ? &status : MPI_STATUS_IGNORE);
        while (!flag);
        do
            MPI_Improbe(peer, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, i == 0 ? &status : MPI_STATUS_IGNORE);
        while (!flag);
        EXPECT(status.MPI_ERROR == MPI_ERR_TOPOLOGY);
        memset(data, 0, (size_t)length);
        MPI_Imrecv(data, length, MPI_BYTE, &message, &request);
        MPI_Wait(&request, &status);
        check(data, (size_t)length, peer, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
    EXPECT(!flag);
    free(data);
}

void case_cancel(void)
{
    int peer = rank ^ 1, value = 0, flag;
    MPI_Request request;
    MPI_Status status;

    for (int i = 0; peer < size && i < 20; i++) {
        MPI_Irecv(&value, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Wait(&request, &status);
        MPI_Test_cancelled(&status, &flag);
        EXPECT(flag);
        /* Both have cancelled before either sends. */
        MPI_Sendrecv(&i, 0, MPI_INT, peer, 4, &value, 0, MPI_INT, peer, 4, MPI_COMM_WORLD, &status);
        MPI_Sendrecv(&i, 1, MPI_INT, peer, 3, &value, 1, MPI_INT, peer, 3, MPI_COMM_WORLD, &status);
        EXPECT(value == i);
    }
}

void case_truncation(void)
{
    int peer = rank ^ 1, r;
    unsigned char *data = bytes(100000);
    MPI_Request request;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int length = 100; peer < size && length <= 100000; length *= 10) {
        unsigned char small[12];
        MPI_Status status;

        memset(small, 0xee, sizeof(small));
        fill(data, (size_t)length, rank, length);
        MPI_Isend(data, length, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &request);
        r = MPI_Recv(small, 11, MPI_BYTE, peer, 4, MPI_COMM_WORLD, &status);
        EXPECT(r != MPI_SUCCESS);
        MPI_Error_class(r, &r);
        EXPECT(r == MPI_ERR_TRUNCATE && small[11] == 0xee);
        check(small, 11, peer, length);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(data);
}
