/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short puts and gets in epochs of locks, of which osc/emunic does most itself. The last three cases run when named.
 */
#include "tests/integration/mpi/cases.h"

#include <time.h>

/* ---- bytes ---- */

/* Displacement units that differ; the last rank has no memory. */
static MPI_Aint room_of(int of)
{
    return of == size - 1 && size > 2 ? 0 : 9000;
}

static int unit_of(int of)
{
    return 1 << of % 4;
}

/* A put and a get of n numbers of a type, from the at-th unit of the target on, and what is there then. */
static void piece(MPI_Win win, int target, MPI_Datatype type, int n, int at)
{
    unsigned char out[5000], in[5000];
    int n_bytes;

    MPI_Type_size(type, &n_bytes);
    n_bytes *= n;
    fill(out, (size_t)n_bytes, rank, n + at);
    memset(in, 0xee, sizeof(in));
    MPI_Put(out, n, type, target, at, n, type, win);
    MPI_Win_flush(target, win);
    MPI_Get(in, n_bytes, MPI_BYTE, target, at, n, type, win);
    MPI_Win_flush_local(target, win);
    check(in, (size_t)n_bytes, rank, n + at);
    EXPECT(in[n_bytes] == 0xee);
}

static void all_pieces(MPI_Win win, int target)
{
    static const int lengths[] = { 1, 2, 3, 4, 7, 8, 9, 64, 511, 512 };

    for (int i = 0; i < 10; i++) {
        piece(win, target, MPI_BYTE, lengths[i], i);
        piece(win, target, MPI_INT, lengths[i], 2 * i);
        piece(win, target, MPI_DOUBLE, lengths[i], 8);
        piece(win, target, MPI_SHORT, lengths[i], 3 + i);
    }
    piece(win, target, MPI_BYTE, 4096, 5);
    piece(win, target, MPI_BYTE, 4097, 5);
    piece(win, target, MPI_2INT, 5, 7);
}

/*
 * In turn, because all pieces of a target lie in the same bytes. Not to oneself: where units differ, osc/rdma of
 * Open MPI 4.1.4 does not know its own (docs/mpi.md).
 */
static void pieces(void)
{
    unsigned char *memory = bytes(9000);
    MPI_Win win;

    MPI_Win_create(memory, room_of(rank), unit_of(rank), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int turn = 0; turn < size; turn++) {
        int target = (rank + turn) % size;

        MPI_Barrier(MPI_COMM_WORLD);
        if (room_of(target) == 0 || target == rank)
            continue;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        all_pieces(win, target);
        MPI_Win_unlock(target, win);
    }
    for (int turn = 0; turn < size; turn++) {
        int target = (rank + turn) % size;

        MPI_Barrier(MPI_COMM_WORLD);
        if (room_of(target) == 0 || target == rank)
            continue;
        MPI_Win_lock_all(0, win);
        all_pieces(win, target);
        MPI_Win_unlock_all(win);
    }
    MPI_Win_free(&win);
    free(memory);
}

/* A vector and a pair with a gap are not plain bytes. */
static void derived(void)
{
    enum { N = 16 };
    int next = (rank + 1) % size, *window, out[2 * N], in[2 * N];
    MPI_Datatype every_second;
    MPI_Win win;

    MPI_Type_vector(N, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    MPI_Win_allocate(2 * N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    for (int i = 0; i < 2 * N; i++)
        window[i] = -1, out[i] = rank * 100 + i, in[i] = -2;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int k = 0; k < 3; k++) {
        MPI_Put(out, 1, every_second, next, 0, 1, every_second, win);
        MPI_Win_flush(next, win);
        MPI_Get(in, 2 * N, MPI_INT, next, 0, 2 * N, MPI_INT, win);
        MPI_Win_flush(next, win);
        for (int i = 0; i < 2 * N; i++)
            EXPECT(in[i] == (i % 2 == 0 ? out[i] : -1));
        MPI_Put(out, N, MPI_INT, next, 0, 1, every_second, win);
        MPI_Win_flush_all(win);
        MPI_Get(in, 1, every_second, next, 0, N, MPI_INT, win);
        MPI_Win_flush_all(win);
        for (int i = 0; i < N; i++)
            EXPECT(in[2 * i] == (i % 2 == 0 ? out[i / 2] : -1));
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    MPI_Type_free(&every_second);
}

/* ---- epochs ---- */

/* The lock is held, so nobody comes between a get and its put. */
static void locked(void)
{
    enum { N = 200 };
    long *window, value, sum = 0;
    MPI_Win win;

    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    window[0] = window[1] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < N; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        for (int word = 0; word < 2; word++) {
            MPI_Get(&value, 1, MPI_LONG, 0, word, 1, MPI_LONG, win);
            MPI_Win_flush(0, win);
            value++;
            MPI_Put(&value, 1, MPI_LONG, 0, word, 1, MPI_LONG, win);
        }
        MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int word = 0; word < 2; word++) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Get(&sum, 1, MPI_LONG, 0, word, 1, MPI_LONG, win);
        MPI_Win_unlock(0, win);
        EXPECT(sum == (long)N * size);
    }
    MPI_Win_free(&win);
}

/* Accumulates and requests between puts, and all kinds of epochs one after another. */
static void mixed(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    long *window, one = 1, value, seen;
    MPI_Request request;
    MPI_Win win;

    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    for (int i = 0; i < 20; i++) {
        value = rank * 1000 + i;
        MPI_Win_fence(0, win);
        MPI_Put(&value, 1, MPI_LONG, next, 0, 1, MPI_LONG, win);
        MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
        EXPECT(window[0] == before * 1000 + i);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock_all(i % 2 ? MPI_MODE_NOCHECK : 0, win);
        MPI_Put(&value, 1, MPI_LONG, next, 1, 1, MPI_LONG, win);
        MPI_Win_flush(next, win);
        for (int k = 0; k < 20; k++) {
            MPI_Accumulate(&one, 1, MPI_LONG, next, 1, 1, MPI_LONG, MPI_SUM, win);
            MPI_Win_flush(next, win);
            MPI_Get(&seen, 1, MPI_LONG, next, 1, 1, MPI_LONG, win);
            MPI_Win_flush(next, win);
            EXPECT(seen == value + k + 1);
        }
        MPI_Rput(&value, 1, MPI_LONG, next, 1, 1, MPI_LONG, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_flush_all(win);
        MPI_Fetch_and_op(&one, &seen, MPI_LONG, next, 1, MPI_SUM, win);
        MPI_Win_flush_all(win);
        EXPECT(seen == value);
        MPI_Win_unlock_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        EXPECT(window[1] == before * 1000 + i + 1);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_free(&win);
}

/* A rank polls a word of another's window, which puts it there when it has been told by a message. */
static void polled(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, *window, zero = 0, value;
    MPI_Win win;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    *window = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int i = 1; i <= 100; i++) {
        MPI_Put(&i, 1, MPI_INT, next, 0, 1, MPI_INT, win);
        MPI_Win_flush(next, win);
        do {
            MPI_Get(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, win);
            MPI_Win_flush(rank, win);
        } while (value != i);
        MPI_Sendrecv(&zero, 1, MPI_INT, before, i, &value, 1, MPI_INT, next, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

/* Windows come and go in another order than they were made. */
static void many(void)
{
    enum { N = 12 };
    int next = (rank + 1) % size, *window[N], value;
    MPI_Win win[N];

    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < N; i++)
            MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window[i], &win[i]);
        for (int i = 0; i < N; i++) {
            MPI_Win_lock_all(0, win[i]);
            for (int k = 0; k < 3; k++) {
                value = rank + 100 * i + k;
                MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win[i]);
                MPI_Win_flush(next, win[i]);
            }
            MPI_Win_unlock_all(win[i]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; i < N; i++)
            EXPECT(*window[i] == (rank + size - 1) % size + 100 * i + 2);
        for (int i = 0; i < N; i++)
            MPI_Win_free(&win[turn % 2 ? i : N - 1 - i]);
    }
}

/* The memory goes before its window does. Other memory at the same address is another's in long messages. */
static void freed(void)
{
    enum { BYTES = 4 << 20 };
    int next = (rank + 1) % size, before = (rank + size - 1) % size;

    for (int i = 0; i < 3; i++) {
        unsigned char *memory = bytes(BYTES), *out = bytes(BYTES), *in;
        MPI_Win win;

        fill(out, BYTES, rank, i);
        MPI_Win_create(memory, BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
        MPI_Win_fence(0, win);
        MPI_Put(out, BYTES, MPI_BYTE, next, 0, BYTES, MPI_BYTE, win);
        MPI_Win_fence(0, win);
        check(memory, BYTES, before, i);
        free(memory);
        in = bytes(BYTES);
        MPI_Sendrecv(out, BYTES, MPI_BYTE, next, i, in, BYTES, MPI_BYTE, before, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(in, BYTES, before, i);
        MPI_Win_free(&win);
        MPI_Sendrecv(in, BYTES, MPI_BYTE, before, i, out, BYTES, MPI_BYTE, next, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(out, BYTES, rank, i);
        free(in);
        free(out);
    }
}

/* Puts of all lengths, between messages whose buffers are the window's memory, and accumulates there. */
static void buffers(void)
{
    enum { ROOM = 300000, HALF = 2 * ROOM };
    static const int lengths[] = { 8, 100, 4097, 70000, 262144, 262145, 300000 };
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned char *memory = bytes(HALF), *out = bytes(ROOM);
    MPI_Win win;

    MPI_Win_create(memory, HALF, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 4 * 7; i++) {
        int n = lengths[i / 4], one = 1, is_even = i % 2 == 0;

        fill(out, (size_t)n, rank, i);
        MPI_Put(out, n, MPI_BYTE, next, 0, n, MPI_BYTE, win);
        MPI_Win_flush(next, win);
        if (is_even) {
            MPI_Accumulate(&one, 1, MPI_INT, next, 0, 1, MPI_INT, MPI_REPLACE, win);
            MPI_Win_flush(next, win);
            MPI_Put(out, 4, MPI_BYTE, next, 0, 4, MPI_BYTE, win);
            MPI_Win_flush(next, win);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Sendrecv(memory, n, MPI_BYTE, next, i, memory + ROOM, n, MPI_BYTE, before, i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        check(memory, (size_t)n, before, i);
        check(memory + ROOM, (size_t)n, (before + size - 1) % size, i);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Get(out, n, MPI_BYTE, next, ROOM, n, MPI_BYTE, win);
        MPI_Win_flush(next, win);
        check(out, (size_t)n, before, i);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(memory);
    free(out);
}

/* Outside of an epoch nothing is done, as ever. */
static void refused(void)
{
    int next = (rank + 1) % size, value = 1, memory = 0, class;
    MPI_Win win;

    MPI_Win_create(&memory, sizeof(memory), sizeof(memory), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < 3; i++) {
        MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win);
        EXPECT(MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win) == MPI_SUCCESS);
        MPI_Win_flush(next, win);
    }
    MPI_Win_unlock_all(win);
    MPI_Error_class(MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win), &class);
    EXPECT(class == MPI_ERR_RMA_SYNC);
    MPI_Error_class(MPI_Win_flush(next, win), &class);
    EXPECT(class == MPI_ERR_RMA_SYNC);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(memory == 1);
    MPI_Win_free(&win);
}

/* ---- by name ---- */

/* Outside of the window: osc/rdma refuses that, osc/pt2pt does it. */
static void outside(void)
{
    int next = (rank + 1) % size, value = 1, memory[3] = { 7, 7, 7 };
    MPI_Win win;

    MPI_Win_create(&memory[1], sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Win_lock_all(0, win);
    MPI_Put(&value, 1, MPI_INT, next, 0, 1, MPI_INT, win);
    MPI_Win_flush(next, win);
    EXPECT(MPI_Put(&value, 1, MPI_INT, next, 1, 1, MPI_INT, win) != MPI_SUCCESS);
    EXPECT(MPI_Put(&value, 1, MPI_INT, next, -1, 1, MPI_INT, win) != MPI_SUCCESS);
    EXPECT(MPI_Put(memory, 2, MPI_INT, next, 0, 2, MPI_INT, win) != MPI_SUCCESS);
    EXPECT(MPI_Get(memory, 1, MPI_DOUBLE, next, 0, 1, MPI_DOUBLE, win) != MPI_SUCCESS);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT(memory[0] == 7 && memory[1] == 1 && memory[2] == 7);
    MPI_Win_free(&win);
}

static double cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/*
 * Prints "time NANOSECONDS": of the processor, for a put and flush, where the host disturbed least. After barriers,
 * which coll/flat does from the fourth on.
 */
static void put_time(void)
{
    enum { TURNS = 500, N = 200 };
    double value = 1, least = 1e9, *window;
    MPI_Win win;

    for (int i = 0; i < 8; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_allocate(4096, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_lock_all(0, win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; rank == 0 && turn < TURNS; turn++) {
        double before = cpu_ns(), time;

        for (int i = 0; i < N; i++) {
            MPI_Put(&value, 1, MPI_DOUBLE, 1, 0, 1, MPI_DOUBLE, win);
            MPI_Win_flush(1, win);
        }
        time = (cpu_ns() - before) / N;
        least = time < least ? time : least;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    if (rank == 0)
        printf("time %.0f\n", least);
}

/* Atomics in windows of one process, made and freed all the time. */
static void alone(void)
{
    for (int i = 0; i < 300; i++) {
        long word = 1, *memory = &word, new = i, expected = 1, old = 0, one = 1;
        MPI_Win win;

        if (i % 2)
            MPI_Win_allocate(sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win);
        else
            MPI_Win_create(&word, sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_SELF, &win);
        *memory = 1;
        MPI_Win_lock(i % 3 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, win);
        MPI_Compare_and_swap(&new, &expected, &old, MPI_LONG, 0, 0, win);
        MPI_Win_flush(0, win);
        EXPECT(old == 1);
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, win);
        MPI_Win_flush(0, win);
        EXPECT(old == i);
        MPI_Get_accumulate(&one, 1, MPI_LONG, &old, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        EXPECT(old == i + 1 && *memory == i + 2);
        MPI_Win_free(&win);
    }
}

static const struct mpi_case cases[] = {
    { "pieces", pieces },   { "derived", derived }, { "locked", locked }, { "mixed", mixed },
    { "polled", polled },   { "many", many },       { "freed", freed },   { "buffers", buffers },
    { "refused", refused }, { "time", put_time },   { "alone", alone },   { "outside", outside },
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), 3); /* time, alone, outside */
}
