/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-50, in virtual time: messages up to the eager limit go into buffers that the receiver has given before, longer
 * ones wait for it (rendezvous). The receiver makes progress in calls of MPI, or by a thread that makes them; a receive
 * that was posted in time needs neither.
 *
 * Who does not call sleeps: that takes virtual time alone. A 1 MB message takes some 100 us.
 */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLEEP_US 2000
#define LARGE    1000000
#define EAGER    16384 /* mtl_portals3_eager_limit */

static char *buffer;
static int rank;
static int n_wrong;
static int n_tests;

static double now_us(void)
{
    return MPI_Wtime() * 1e6;
}

/* Both ranks have to hold it; rank 0 prints. */
static void report(int is_true, const char *what)
{
    int both = 0;

    MPI_Allreduce(&is_true, &both, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    n_wrong += !both;
    n_tests++;
    if (rank == 0)
        printf("%s %d - %s\n", both ? "ok" : "not ok", n_tests, what);
}

/* Us that MPI_Send takes while the receiver sleeps; on the receiver how long its MPI_Recv takes then. */
static double send_to_a_sleeper(int bytes)
{
    double start_us;

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        usleep(SLEEP_US);
    start_us = now_us();
    if (rank == 0)
        MPI_Send(buffer, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    else
        MPI_Recv(buffer, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return now_us() - start_us;
}

static void check_protocols(void)
{
    static const int eager[] = { 0, 1, 64, 4096, EAGER };
    static const int long_ones[] = { EAGER + 1, 65536, LARGE };
    int is_eager = 1;
    int is_rendezvous = 1;

    for (int i = 0; i < 5; i++) {
        double us = send_to_a_sleeper(eager[i]);

        if (us > SLEEP_US / 10.0) {
            printf("# rank %d, %d bytes: %.1f us\n", rank, eager[i], us);
            is_eager = 0;
        }
    }
    report(is_eager, "up to the eager limit a send ends without its receiver, whose data are there when it calls");
    for (int i = 0; i < 3; i++) {
        double us = send_to_a_sleeper(long_ones[i]);

        if (rank == 0 && us < SLEEP_US * 0.9) {
            printf("# %d bytes: %.1f us\n", long_ones[i], us);
            is_rendezvous = 0;
        }
    }
    report(is_rendezvous, "above it a send waits for its receiver");
}

/* Us that the receiver still waits when it has slept: what has not happened meanwhile. */
static double wait_after_sleep(int is_posted_before)
{
    MPI_Request request = MPI_REQUEST_NULL;
    double start_us;

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        usleep(SLEEP_US / 10);
        MPI_Send(buffer, LARGE, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        return 0;
    }
    if (is_posted_before)
        MPI_Irecv(buffer, LARGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    usleep(SLEEP_US);
    start_us = now_us();
    if (!is_posted_before)
        MPI_Irecv(buffer, LARGE, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return now_us() - start_us;
}

static void *receive(void *unused)
{
    double *took_until_us = unused;

    MPI_Recv(buffer, LARGE, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    *took_until_us = now_us();
    return NULL;
}

/* The sender is first, so the message meets no receive: a thread gets it while the main thread sleeps. */
static int thread_receives_meanwhile(void)
{
    double start_us, until_us = 0;
    pthread_t thread;

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Send(buffer, LARGE, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
        return 1;
    }
    usleep(SLEEP_US / 10);
    start_us = now_us();
    pthread_create(&thread, NULL, receive, &until_us);
    usleep(SLEEP_US);
    pthread_join(thread, NULL);
    if (until_us - start_us < SLEEP_US / 2.0)
        return 1;
    printf("# the thread took %.1f us\n", until_us - start_us);
    return 0;
}

int main(int argc, char **argv)
{
    double us;
    int provided;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    buffer = calloc(1, LARGE);
    if (!buffer || provided != MPI_THREAD_MULTIPLE)
        MPI_Abort(MPI_COMM_WORLD, 1);
    check_protocols();
    us = wait_after_sleep(0);
    if (rank == 1)
        printf("# receive posted after the sleep: waits %.1f us\n", us);
    report(rank == 0 || us > 50, "a long message makes no progress before its receiver calls");
    us = wait_after_sleep(1);
    if (rank == 1)
        printf("# receive posted before: waits %.1f us\n", us);
    report(rank == 0 || us < 5, "a receive that was posted in time makes progress without a call");
    report(thread_receives_meanwhile(), "a thread makes progress while the program does something else");
    if (rank == 0)
        printf("1..%d\n", n_tests);
    free(buffer);
    MPI_Finalize();
    return n_wrong != 0;
}
