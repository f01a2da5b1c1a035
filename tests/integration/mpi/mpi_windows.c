/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an MPI library promises of windows. "shared" finds the ranks of its node by their processor names;
 * osc/pt2pt of Open MPI 4.1.4 refuses the windows of "dynamic" with MPI_THREAD_MULTIPLE, and "atomics" hangs there now
 * and then.
 */
#include "tests/integration/mpi/cases.h"

#include <pthread.h>

#define N_THREADS 4

/* ---- one-sided ---- */

static void onesided(void)
{
    enum { N = 3000 };
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int *window, *local = malloc(N * sizeof(int)), one = 1, old = -1;
    MPI_Win win;

    MPI_Win_allocate(2 * N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    for (int i = 0; i < N; i++) {
        local[i] = rank * 10 + i;
        window[i] = window[N + i] = 0;
    }
    MPI_Win_fence(0, win);
    MPI_Put(local, N, MPI_INT, next, 0, N, MPI_INT, win);
    MPI_Accumulate(local, N, MPI_INT, next, N, N, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++)
        EXPECT(window[i] == before * 10 + i && window[N + i] == before * 10 + i);
    MPI_Get(local, N, MPI_INT, next, 0, N, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < N; i++)
        EXPECT(local[i] == rank * 10 + i);
    window[0] = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 10; i++) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
        MPI_Fetch_and_op(&one, &old, MPI_INT, 0, 0, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        EXPECT(old >= 0 && old < 10 * size);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&old, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Win_unlock(0, win);
    EXPECT(old == 10 * size);
    MPI_Win_free(&win);
    free(local);
}

/* Puts and gets of all lengths and alignments in a window, each checked there and here. */
static void window_pieces(MPI_Win win, unsigned char *window, size_t room)
{
    static const int pieces[] = { 1, 2, 3, 4, 5, 7, 8, 63, 4090, 4095, 4096, 4097, 8191, 40001, 262147 };
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    unsigned char *out = bytes(room), *in = bytes(room);

    for (int i = 0; i < 15 * 4; i++) {
        int n = pieces[i / 4], there = i % 4 + 4, here = (i / 4 + i) % 4 + 4;

        memset(window, 0xee, room);
        memset(in, 0xee, room);
        fill(out + here, (size_t)n, rank, i);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, next, i % 2 ? MPI_MODE_NOCHECK : 0, win);
        MPI_Put(out + here, n, MPI_BYTE, next, there, n, MPI_BYTE, win);
        MPI_Win_flush(next, win);
        MPI_Get(in + 4, n, MPI_BYTE, next, there, n, MPI_BYTE, win);
        MPI_Win_unlock(next, win);
        check(in + 4, (size_t)n, rank, i);
        EXPECT(in[3] == 0xee && in[4 + n] == 0xee);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
        check(window + there, (size_t)n, before, i);
        EXPECT(window[there - 1] == 0xee && window[there + n] == 0xee);
        MPI_Win_unlock(rank, win);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    free(in);
    free(out);
}

static void windows(void)
{
    size_t room = 262147 + 64;
    unsigned char *window = bytes(room);
    MPI_Win win;

    MPI_Win_create(window, (MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    window_pieces(win, window, room);
    MPI_Win_free(&win);
    free(window);
    MPI_Win_allocate((MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    window_pieces(win, window, room);
    MPI_Win_free(&win);
}

/* A window of one process, which Open MPI registers nowhere. */
static void atomics_alone(void)
{
    long word = 1, new = 7, expected = 1, old = 0;
    MPI_Win win;

    MPI_Win_create(&word, sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_SELF, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Compare_and_swap(&new, &expected, &old, MPI_LONG, 0, 0, win);
    MPI_Win_unlock(0, win);
    MPI_Win_free(&win);
    EXPECT(old == 1 && word == 7);
}

/* A derived type of one number each, fetched while it is added to: one by one and together. */
static void accumulate_derived(void)
{
    enum { N = 8 };
    double *window, add[N], old[N];
    MPI_Datatype one;
    MPI_Win win;

    MPI_Type_contiguous(1, MPI_DOUBLE, &one);
    MPI_Type_commit(&one);
    MPI_Win_allocate(N * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    for (int i = 0; i < N; i++)
        window[i] = 0, add[i] = i + 1, old[i] = -1;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
        MPI_Get_accumulate(add, N, one, old, N, one, 0, 0, N, one, MPI_SUM, win);
        MPI_Win_flush(0, win);
        for (int i = 0; i < N; i++)
            EXPECT(old[i] == 0);
        for (int i = 0; i < N; i++)
            MPI_Get_accumulate(&add[i], 1, one, &old[i], 1, one, 0, i, 1, one, MPI_SUM, win);
        MPI_Win_unlock(0, win);
        for (int i = 0; i < N; i++)
            EXPECT(old[i] == i + 1);
    }
    MPI_Win_free(&win);
    MPI_Type_free(&one);
}

/* All ranks work on the words of rank 0 at once. */
static void atomics(void)
{
    enum { N = 25 };
    static const MPI_Datatype types[] = { MPI_INT, MPI_LONG, MPI_DOUBLE, MPI_FLOAT };
    struct {
        int i[2];
        long l[2];
        double d[2];
        float f[2];
        int most[2];
        long next[2];
    } * window, mine = { 0 }, old;
    long taken, sum = 0, n_taken = 0, all;
    MPI_Aint at[4];
    MPI_Win win;

    atomics_alone();
    accumulate_derived();
    MPI_Win_allocate(sizeof(*window), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    memset(window, 0, sizeof(*window));
    at[0] = 0, at[1] = (char *)window->l - (char *)window, at[2] = (char *)window->d - (char *)window;
    at[3] = (char *)window->f - (char *)window;
    mine.i[0] = mine.i[1] = 1, mine.l[0] = mine.l[1] = 2, mine.d[0] = mine.d[1] = 0.5, mine.f[0] = mine.f[1] = 0.25F;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    for (int k = 0; k < N; k++) {
        for (int t = 0; t < 4; t++) {
            MPI_Accumulate((char *)&mine + at[t], 2, types[t], 0, at[t], 2, types[t], MPI_SUM, win);
            MPI_Get_accumulate((char *)&mine + at[t], 1, types[t], &old, 1, types[t], 0, at[t], 1, types[t], MPI_SUM,
                               win);
            MPI_Fetch_and_op((char *)&mine + at[t], &old, types[t], 0, at[t], MPI_SUM, win);
        }
        mine.most[0] = rank * N + k;
        MPI_Accumulate(mine.most, 1, MPI_INT, 0, (char *)window->most - (char *)window, 1, MPI_INT, MPI_MAX, win);
        MPI_Win_flush(0, win);
        /* The next number is everybody's own. */
        do {
            MPI_Fetch_and_op(NULL, &taken, MPI_LONG, 0, (char *)window->next - (char *)window, MPI_NO_OP, win);
            MPI_Win_flush(0, win);
            all = taken + 1;
            MPI_Compare_and_swap(&all, &taken, &old.l[0], MPI_LONG, 0, (char *)window->next - (char *)window, win);
            MPI_Win_flush(0, win);
        } while (old.l[0] != taken);
        sum += taken;
        n_taken++;
    }
    MPI_Win_unlock_all(win);
    MPI_Allreduce(&sum, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    EXPECT(n_taken == N && all == (long)N * size * ((long)N * size - 1) / 2);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get(&mine, sizeof(mine), MPI_BYTE, 0, 0, sizeof(mine), MPI_BYTE, win);
    MPI_Win_unlock(0, win);
    EXPECT(mine.i[0] == 3 * N * size && mine.i[1] == N * size && mine.most[0] == size * N - 1);
    EXPECT(mine.l[0] == 6L * N * size && mine.l[1] == 2L * N * size && mine.next[0] == (long)N * size);
    EXPECT(mine.d[0] == 1.5 * N * size && mine.d[1] == 0.5 * N * size && mine.f[0] == 0.75F * N * size);
    MPI_Win_free(&win);
}

/* Start, post, complete, wait. */
static void epochs(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, *window, value = -1;
    MPI_Group world, group;
    MPI_Win win;

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Win_allocate(sizeof(int) * 1000, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    for (int i = 0; i < 20; i++) {
        MPI_Group_incl(world, 1, &before, &group);
        MPI_Win_post(group, 0, win);
        MPI_Group_free(&group);
        MPI_Group_incl(world, 1, &next, &group);
        MPI_Win_start(group, 0, win);
        value = rank * 100 + i;
        MPI_Put(&value, 1, MPI_INT, next, i, 1, MPI_INT, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
        MPI_Group_free(&group);
        EXPECT(window[i] == before * 100 + i);
    }
    MPI_Win_free(&win);
    MPI_Group_free(&world);
}

/* Each flush completes what was put since the last one. Most complete nothing; outside of an epoch they fail. */
static void flushes(void)
{
    enum { N = 10, EMPTY = 200 };
    int next = (rank + 1) % size, before = (rank + size - 1) % size, r, *window;
    MPI_Win win;

    MPI_Win_allocate(N * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < N; i++) {
        int value = rank * 100 + i, seen = -1;

        MPI_Win_lock_all(0, win);
        for (int k = 0; k < EMPTY; k++)
            EXPECT(MPI_Win_flush_all(win) == MPI_SUCCESS);
        MPI_Put(&value, 1, MPI_INT, next, i, 1, MPI_INT, win);
        MPI_Win_flush_all(win);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Get(&seen, 1, MPI_INT, rank, i, 1, MPI_INT, win);
        MPI_Win_flush_all(win);
        EXPECT(seen == before * 100 + i);
        MPI_Get(&seen, 1, MPI_INT, next, i, 1, MPI_INT, win);
        MPI_Win_flush_all(win);
        EXPECT(seen == value);
        MPI_Win_unlock_all(win);
        MPI_Error_class(MPI_Win_flush_all(win), &r);
        EXPECT(r == MPI_ERR_RMA_SYNC);
    }
    MPI_Win_free(&win);
}

static void dynamic(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, *window, value = -1;
    MPI_Aint address, theirs;
    MPI_Win win;

    window = malloc(1000 * sizeof(int));
    window[7] = rank * 10;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_attach(win, window, 1000 * sizeof(int));
    MPI_Get_address(&window[7], &address);
    MPI_Sendrecv(&address, 1, MPI_AINT, before, 1, &theirs, 1, MPI_AINT, next, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_SHARED, next, 0, win);
    MPI_Get(&value, 1, MPI_INT, next, theirs, 1, MPI_INT, win);
    MPI_Win_unlock(next, win);
    EXPECT(value == next * 10);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_detach(win, window);
    MPI_Win_free(&win);
    free(window);
}

/* How many ranks have this one's processor name: those of its node. */
static int count_neighbours(void)
{
    enum { LENGTH = MPI_MAX_PROCESSOR_NAME };
    char *names = (char *)bytes((size_t)size * LENGTH), own[LENGTH] = "";
    int n;

    MPI_Get_processor_name(own, &n);
    MPI_Allgather(own, LENGTH, MPI_CHAR, names, LENGTH, MPI_CHAR, MPI_COMM_WORLD);
    n = 0;
    for (int i = 0; i < size; i++)
        n += strcmp(names + (size_t)i * LENGTH, own) == 0;
    free(names);
    return n;
}

/*
 * Does a window of this node's ranks become memory that they share, as the launcher has set Open MPI? Only osc/sm gives
 * its windows no name.
 */
static void expect_node_window(MPI_Comm node)
{
    const char *setting = getenv("OMPI_MCA_osc_emunic_node_windows");
    int is_wanted = !setting || setting[0] != '0', length, *own;
    char window_name[MPI_MAX_OBJECT_NAME];
    MPI_Win win;

    MPI_Win_allocate(8, 1, MPI_INFO_NULL, node, &own, &win);
    MPI_Win_get_name(win, window_name, &length);
    EXPECT((length == 0) == is_wanted);
    MPI_Win_free(&win);
    MPI_Win_create(own = malloc(8), 8, 1, MPI_INFO_NULL, node, &win);
    MPI_Win_get_name(win, window_name, &length);
    EXPECT(length > 0);
    MPI_Win_free(&win);
    free(own);
}

/* Ranks of a node share memory, into which messages come, too. */
static void shared(void)
{
    enum { N = 5000 };
    int *own, *theirs, unit, node_rank, node_size, next, before;
    MPI_Comm node;
    MPI_Win win;
    MPI_Aint n_bytes;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &node_rank);
    MPI_Comm_size(node, &node_size);
    EXPECT(node_size == count_neighbours());
    next = (node_rank + 1) % node_size;
    before = (node_rank + node_size - 1) % node_size;
    MPI_Win_allocate_shared(2 * N * sizeof(int), sizeof(int), MPI_INFO_NULL, node, &own, &win);
    MPI_Win_shared_query(win, next, &n_bytes, &unit, &theirs);
    EXPECT(n_bytes == 2 * N * (MPI_Aint)sizeof(int) && unit == sizeof(int));
    for (int round = 0; round < 40; round++) {
        MPI_Request request;

        MPI_Irecv(own + N, N, MPI_INT, before, 3, node, &request);
        MPI_Win_fence(0, win);
        for (int i = 0; i < N; i++)
            theirs[i] = node_rank + i * round;
        MPI_Win_fence(0, win);
        MPI_Send(own, N, MPI_INT, next, 3, node);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_fence(0, win);
        for (int i = 0; i < N; i++)
            EXPECT(own[i] == before + i * round && theirs[N + i] == before + i * round);
    }
    MPI_Win_free(&win);
    expect_node_window(node);
    MPI_Comm_free(&node);
}

/* ---- threads ---- */

static MPI_Win thread_win;

/* Each thread has its own words at the next rank, and one that all threads of all ranks count in. */
static void *window_thread(void *number)
{
    int t = (int)(intptr_t)number, next = (rank + 1) % size;
    unsigned char out[3001], in[3001];
    long one = 1, old;

    for (int i = 0; i < 100; i++) {
        int n = i % 4 == 0 ? 3001 : 1 + i;

        fill(out, (size_t)n, rank, t * 100 + i);
        MPI_Put(out, n, MPI_BYTE, next, 8 + t * 3001, n, MPI_BYTE, thread_win);
        MPI_Win_flush(next, thread_win);
        memset(in, 0, sizeof(in));
        MPI_Get(in, n, MPI_BYTE, next, 8 + t * 3001, n, MPI_BYTE, thread_win);
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 0, MPI_SUM, thread_win);
        MPI_Win_flush_all(thread_win);
        check(in, (size_t)n, rank, t * 100 + i);
    }
    return NULL;
}

static void window_threads(void)
{
    pthread_t ids[N_THREADS];
    long *window, sum = 0;

    MPI_Win_allocate(8 + N_THREADS * 3001, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &thread_win);
    *window = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, thread_win);
    for (int i = 0; i < N_THREADS; i++)
        EXPECT(pthread_create(&ids[i], NULL, window_thread, (void *)(intptr_t)i) == 0);
    for (int i = 0; i < N_THREADS; i++)
        pthread_join(ids[i], NULL);
    MPI_Win_unlock_all(thread_win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, thread_win);
    MPI_Get(&sum, 1, MPI_LONG, 0, 0, 1, MPI_LONG, thread_win);
    MPI_Win_unlock(0, thread_win);
    EXPECT(sum == 100L * N_THREADS * size);
    MPI_Win_free(&thread_win);
}

/* ---- all ---- */

static const struct mpi_case cases[] = {
    { "onesided", onesided }, { "shared", shared },   { "windows", windows }, { "epochs", epochs },
    { "flushes", flushes },   { "atomics", atomics }, { "dynamic", dynamic }, { "window_threads", window_threads },
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), 3); /* atomics, dynamic, window_threads */
}
