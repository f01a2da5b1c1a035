/* SPDX-License-Identifier: BSD-3-Clause */
/* What an MPI library promises of messages and collective calls, over whatever it sends with. */
#include "tests/integration/mpi/cases.h"

#include <pthread.h>

#define N_FLOOD   3000
#define N_MANY    1200
#define N_THREADS 4
#define MANY_SIZE 20001

/* ---- between two ranks ---- */

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
static void lengths(void)
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

static void modes(void)
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
static void restarts(void)
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

static void synchronous(void)
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

static void self(void)
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

/* ---- matching ---- */

static void any(void)
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
static void order(void)
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
static void mixed(void)
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

static void probes(void)
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

static void cancel(void)
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

static void truncation(void)
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

/* ---- many ---- */

/* Nobody receives before all have been sent; then the last come first. */
/* More than unexpected ones may have, into receives that wait; then both send before they receive. */
static void expected(void)
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

static void flood(void)
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
static void storm(void)
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

static void many(void)
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
static void receives(void)
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

/* ---- communicators ---- */

static void communicators(void)
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

static void intercommunicators(void)
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
static void graph(void)
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

/* ---- datatypes ---- */

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

static void datatypes(void)
{
    static const int counts[] = { 1, 10, 1000, 5000, 100003 };

    for (int i = 0; i < 5; i++) {
        vectors(counts[i]);
        displaced(counts[i]);
    }
}

/* ---- collectives ---- */

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

static void collectives(void)
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

static void small(void)
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

/* ---- threads ---- */

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

static void threads(void)
{
    pthread_t ids[N_THREADS];

    if ((rank ^ 1) >= size)
        return;
    for (int i = 0; i < N_THREADS; i++)
        EXPECT(pthread_create(&ids[i], NULL, thread, (void *)(intptr_t)(1000 + i)) == 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(ids[i], NULL);
}

/* ---- processes ---- */

/* One more of this program. */
static void spawn(void)
{
    MPI_Comm inter;

    MPI_Comm_spawn(program, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter, MPI_ERRCODES_IGNORE);
}

/* ---- all ---- */

static const struct mpi_case cases[] = {
    { "modes", modes },
    { "restarts", restarts },
    { "synchronous", synchronous },
    { "lengths", lengths },
    { "self", self },
    { "any", any },
    { "order", order },
    { "mixed", mixed },
    { "probes", probes },
    { "cancel", cancel },
    { "truncation", truncation },
    { "expected", expected },
    { "flood", flood },
    { "storm", storm },
    { "many", many },
    { "communicators", communicators },
    { "intercommunicators", intercommunicators },
    { "graph", graph },
    { "datatypes", datatypes },
    { "collectives", collectives },
    { "small", small },
    { "receives", receives },
    { "threads", threads },
    { "spawn", spawn },
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), 3); /* receives, threads, spawn */
}
