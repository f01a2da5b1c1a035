/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flushes of one-sided calls.
 *
 *   mpi_flush      prints "ok NAME" for each case, from rank 0
 *
 * A flush that has nothing to wait for must not rest as a poll does that waits, however often the program calls it.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define THREADS    4
#define FLUSHES    2000
#define SLEEPS_MAX (THREADS * FLUSHES / 10) /* the kernel counts a yield as no sleep; some are for locks */
#define PIECES     2000
#define BLOCK      (1 << 20)

struct flusher {
    MPI_Win win;
    long sleeps;
};

static int rank;
static int n_ranks;
static int failed;

static void check(int is_right, const char *what)
{
    if (is_right)
        return;
    failed = 1;
    fprintf(stderr, "rank %d: %s\n", rank, what);
}

static void end_case(const char *name)
{
    int any;

    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        MPI_Finalize();
        exit(1);
    }
    if (rank == 0)
        printf("ok %s\n", name);
}

static long count_sleeps(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

static void *flush_own(void *argument)
{
    struct flusher *flusher = argument;
    int value = 1;
    long before = count_sleeps();

    for (int i = 0; i < FLUSHES; i++) {
        MPI_Put(&value, 1, MPI_INT, rank, 0, 1, MPI_INT, flusher->win);
        MPI_Win_flush(rank, flusher->win);
    }
    flusher->sleeps = count_sleeps() - before;
    return NULL;
}

/* Threads of rank 0 work with its own memory while all others wait. */
static void flush_without_need(void)
{
    struct flusher flushers[THREADS];
    pthread_t threads[THREADS];
    char text[80];
    long sleeps = 0;
    int *window;
    MPI_Win win;

    MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_lock_all(0, win);
    for (int i = 0; rank == 0 && i < THREADS; i++) {
        flushers[i].win = win;
        pthread_create(&threads[i], NULL, flush_own, &flushers[i]);
    }
    for (int i = 0; rank == 0 && i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sleeps += flushers[i].sleeps;
    }
    snprintf(text, sizeof(text), "%d flushes without need, and %ld sleeps", THREADS * FLUSHES, sleeps);
    check(sleeps <= SLEEPS_MAX, text);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    end_case("flush_without_need");
}

/* More puts and gets than the NIC takes at a time, then a block: one flush waits for all. */
static void flush_many(void)
{
    size_t bytes = BLOCK + PIECES * sizeof(int);
    int next = (rank + 1) % n_ranks;
    int *back = calloc(1, bytes);
    int *own = malloc(bytes);
    int *window;
    MPI_Win win;

    MPI_Win_allocate((MPI_Aint)bytes, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    for (size_t i = 0; i < bytes / sizeof(int); i++)
        own[i] = rank * 1000003 + (int)i;
    MPI_Win_lock_all(0, win);
    for (int i = 0; i < PIECES; i++)
        MPI_Put(&own[i], 1, MPI_INT, next, i, 1, MPI_INT, win);
    MPI_Put(&own[PIECES], BLOCK, MPI_BYTE, next, PIECES, BLOCK, MPI_BYTE, win);
    MPI_Win_flush(next, win);
    for (int i = 0; i < PIECES; i++)
        MPI_Get(&back[i], 1, MPI_INT, next, i, 1, MPI_INT, win);
    MPI_Get(&back[PIECES], BLOCK, MPI_BYTE, next, PIECES, BLOCK, MPI_BYTE, win);
    MPI_Win_flush_all(win);
    check(memcmp(back, own, bytes) == 0, "what came back");
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
    free(back);
    free(own);
    end_case("flush_many");
}

int main(int argc, char **argv)
{
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    flush_without_need();
    flush_many();
    MPI_Finalize();
    return 0;
}
