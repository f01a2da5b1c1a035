/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short sends are over when the call returns, also where emunic carries them: at the first look at the request, with
 * the buffer free for the next one. What nobody waits for arrives all the same, though its sender ends at once.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define MESSAGES 16
#define BYTES    1000

static int send_all(int peer)
{
    char data[BYTES];

    for (int i = 0; i < MESSAGES; i++) {
        MPI_Request request;
        int is_over;

        memset(data, 'a' + i, sizeof(data));
        MPI_Isend(data, BYTES, MPI_CHAR, peer, i, MPI_COMM_WORLD, &request);
        MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
        if (!is_over) {
            fprintf(stderr, "send %d is not over\n", i);
            return 1;
        }
    }
    return 0;
}

static int receive_all(int peer)
{
    char data[BYTES];

    for (int i = MESSAGES - 1; i >= 0; i--) {
        MPI_Recv(data, BYTES, MPI_CHAR, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int at = 0; at < BYTES; at++) {
            if (data[at] == 'a' + i)
                continue;
            fprintf(stderr, "message %d has '%c' at %d\n", i, data[at], at);
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    int rank;
    int r;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    r = rank == 0 ? send_all(1) : receive_all(0);
    if (r != 0)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Finalize();
    return 0;
}
