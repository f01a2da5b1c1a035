/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs for kills: they exchange messages until a rank is killed, or kills itself. */
#include "tests/integration/mpi/cases.h"

#include <signal.h>

/* Messages around the ring, of many lengths, for ever; but the last rank kills itself after n_to_death of them. */
static void ring(long n_to_death, void (*between)(long i))
{
    unsigned char *out = bytes(20000), *in = bytes(20000);
    int next = (rank + 1) % size, before = (rank + size - 1) % size;

    for (long i = 0;; i++) {
        int length = i % 3 == 0 ? 20000 : (int)(i % 500);

        if (rank == size - 1 && i == n_to_death)
            raise(SIGKILL);
        MPI_Sendrecv(out, length, MPI_BYTE, next, 0, in, length, MPI_BYTE, before, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        between(i);
    }
}

static void nothing(long i)
{
    (void)i;
}

static long n_to_death(void)
{
    return strtol(getenv("EMU_TEST_SEED") ? getenv("EMU_TEST_SEED") : "1", NULL, 10) % 3000 + 1;
}

static void death(void)
{
    ring(n_to_death(), nothing);
}

/* The same, in sums and barriers, where the others wait for it. */
static void sums(void)
{
    for (long i = 0, n = n_to_death();; i++) {
        long mine = i, sum = 0;

        if (rank == size - 1 && i == n)
            raise(SIGKILL);
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(sum == i * size);
        if (i % 3 == 0)
            MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* The same, in puts that nobody answers. */
static void puts_and_flushes(void)
{
    long n = n_to_death(), *window;
    MPI_Win win;

    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win);
    MPI_Win_lock_all(0, win);
    for (long i = 0;; i++) {
        if (rank == size - 1 && i == n)
            raise(SIGKILL);
        MPI_Put(&i, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, win);
        MPI_Win_flush((rank + 1) % size, win);
    }
}

static MPI_Win endless_win;

/* Collective and one-sided calls, now and then. */
static void all_together(long i)
{
    long mine = i, sum = 0;

    if (i % 8 == 0) {
        MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        EXPECT(sum == i * size);
    }
    if (i % 16 == 0) {
        MPI_Put(&mine, 1, MPI_LONG, (rank + 1) % size, 0, 1, MPI_LONG, endless_win);
        MPI_Win_fence(0, endless_win);
    }
}

/* Until somebody kills a rank; a line when all are there. */
static void endless(void)
{
    static long word;

    MPI_Win_create(&word, sizeof(word), sizeof(word), MPI_INFO_NULL, MPI_COMM_WORLD, &endless_win);
    MPI_Win_fence(0, endless_win);
    if (rank == 0) {
        puts("endless");
        fflush(stdout);
    }
    ring(-1, all_together);
}

/* ---- all ---- */

static const struct mpi_case cases[] = {
    { "death", death },
    { "sums", sums },
    { "puts", puts_and_flushes },
    { "endless", endless },
};

int main(int argc, char **argv)
{
    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]), 4); /* all only when named */
}
