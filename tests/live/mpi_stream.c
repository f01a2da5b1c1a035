/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of numbered messages from rank 0 to rank 1, and the time at which they arrive.
 *
 *   mpi_stream [-n MESSAGES]
 *
 * The tag is the number, and so is each word of the message. The receiver takes them as they come and prints a line for
 * each BLOCK: the number of the last one, its time since the first one, the rate since the block before. Messages that
 * are not the next one are counted; their words have to be theirs.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define WORDS  8192
#define WINDOW 8
#define BLOCK  16

static int buffers[WINDOW][WORDS];

/* A line for each block of messages. */
static void show(int i)
{
    static double first_s, block_s;
    double now_s = MPI_Wtime();

    if (i == 0)
        first_s = now_s;
    else
        printf("%8d %12.1f %10.1f\n", i, (now_s - first_s) * 1e6, sizeof(buffers[0]) * BLOCK / (now_s - block_s) / 1e6);
    block_s = now_s;
}

static void send_all(int n)
{
    MPI_Request requests[WINDOW];

    for (int i = 0; i < n; i++) {
        int slot = i % WINDOW;

        if (i >= WINDOW)
            MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
        for (int w = 0; w < WORDS; w++)
            buffers[slot][w] = i;
        MPI_Isend(buffers[slot], WORDS, MPI_INT, 1, i, MPI_COMM_WORLD, &requests[slot]);
    }
    MPI_Waitall(n < WINDOW ? n : WINDOW, requests, MPI_STATUSES_IGNORE);
}

/* How many were not the next one. */
static int receive_all(int n)
{
    MPI_Request requests[WINDOW];
    int n_reordered = 0;

    for (int i = 0; i < WINDOW && i < n; i++)
        MPI_Irecv(buffers[i], WORDS, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < n; i++) {
        int slot = i % WINDOW;
        MPI_Status status;

        MPI_Wait(&requests[slot], &status);
        if (i % BLOCK == 0)
            show(i);
        n_reordered += status.MPI_TAG != i;
        for (int w = 0; w < WORDS; w++) {
            if (buffers[slot][w] != status.MPI_TAG) {
                fprintf(stderr, "mpi_stream: word %d of message %d is wrong\n", w, status.MPI_TAG);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        if (i + WINDOW < n)
            MPI_Irecv(buffers[slot], WORDS, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[slot]);
    }
    return n_reordered;
}

int main(int argc, char **argv)
{
    int n = 400;
    int option, rank, n_reordered;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n' || atoi(optarg) < BLOCK)
            return 2;
        n = atoi(optarg);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        send_all(n);
    if (rank == 1) {
        printf("%8s %12s %10s\n", "message", "at, us", "MB/s");
        n_reordered = receive_all(n);
        printf("received %d reordered %d\n", n, n_reordered);
    }
    MPI_Finalize();
    return 0;
}
