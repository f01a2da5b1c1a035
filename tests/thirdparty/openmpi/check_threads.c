/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_THREAD_MULTIPLE: several threads of each rank talk, each with its like on the next rank, in a communicator of its
 * own; sizes of all protocols. All have messages under way at the same time, and whoever is in MPI moves those of all,
 * but one at a time is in it: btl/ugni loses messages where two are (README.md).
 */
#include <pthread.h>
#include <sched.h>

#include "check.h"

#define N_THREADS 3
#define N_TURNS   100

struct worker {
    MPI_Comm comm;
    int number;
    uint64_t received_bytes;
};

static pthread_mutex_t inside_mpi = PTHREAD_MUTEX_INITIALIZER;

static uint64_t stream_of(int rank, int thread, int turn)
{
    return mix((uint64_t)rank << 40 ^ (uint64_t)thread << 32 ^ (uint64_t)turn);
}

static void exchange(MPI_Comm comm, unsigned char *out, int right, unsigned char *in, int left, size_t len, int turn)
{
    MPI_Request requests[2];
    int is_done = 0;

    pthread_mutex_lock(&inside_mpi);
    MPI_Irecv(in, (int)len, MPI_BYTE, left, turn, comm, &requests[0]);
    MPI_Isend(out, (int)len, MPI_BYTE, right, turn, comm, &requests[1]);
    pthread_mutex_unlock(&inside_mpi);
    while (!is_done) {
        pthread_mutex_lock(&inside_mpi);
        MPI_Testall(2, requests, &is_done, MPI_STATUSES_IGNORE);
        pthread_mutex_unlock(&inside_mpi);
        sched_yield();
    }
}

static void *talk(void *arg)
{
    static const size_t sizes[] = { 1, 64, 1000, 4000, 9000, 70000, 300000 };
    struct worker *w = arg;
    int right = (my_rank + 1) % n_ranks;
    int left = (my_rank + n_ranks - 1) % n_ranks;
    unsigned char *out = get_memory(300000);
    unsigned char *in = get_memory(300000);

    for (int turn = 0; turn < N_TURNS; turn++) {
        size_t len = sizes[(turn + w->number) % 7];

        fill(out, len, stream_of(my_rank, w->number, turn));
        exchange(w->comm, out, right, in, left, len, turn);
        verify(in, len, stream_of(left, w->number, turn), "threads");
        w->received_bytes += len;
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv)
{
    struct worker workers[N_THREADS];
    pthread_t threads[N_THREADS];

    check_begin(&argc, &argv, "check_threads", MPI_THREAD_MULTIPLE);
    for (int i = 0; i < N_THREADS; i++) {
        workers[i] = (struct worker){ .number = i };
        MPI_Comm_dup(MPI_COMM_WORLD, &workers[i].comm);
    }
    for (int i = 0; i < N_THREADS; i++) {
        if (pthread_create(&threads[i], NULL, talk, &workers[i]) != 0)
            fail("no thread");
    }
    for (int i = 0; i < N_THREADS; i++) {
        pthread_join(threads[i], NULL);
        crossed_bytes += workers[i].received_bytes;
        MPI_Comm_free(&workers[i].comm);
    }
    return check_end();
}
