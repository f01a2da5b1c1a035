/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-sided messages of every size: 0 to 64 bytes one by one, then each power of two up to 16 MiB with its neighbours,
 * from and to addresses that are aligned and not, into buffers that are posted before and after the message arrives.
 * Rank 0 with every other in turn, then all pairs at once.
 *
 *   check_pingpong [any]     any: above 1 MiB also lengths that are no multiple of 4. By default Open MPI 4.1.4 never
 *                            completes such a send over any transport with btl/ugni's limits; see README.md
 */
#include "check.h"

#define GET_LIMIT ((size_t)1 << 20) /* of btl/ugni: longer messages are fetched in pieces */

static unsigned char *out_mem, *in_mem;
static bool is_any_length;

static uint64_t stream_of(int source, size_t len, int turn)
{
    return mix((uint64_t)source << 48 ^ (uint64_t)turn << 40 ^ len);
}

static void send_to(int peer, size_t len, size_t shift, int turn)
{
    fill(out_mem + shift, len, stream_of(my_rank, len, turn));
    MPI_Send(out_mem + shift, (int)len, MPI_BYTE, peer, turn, MPI_COMM_WORLD);
}

static void receive_from(int peer, size_t len, size_t shift, int turn)
{
    unsigned char *mem = in_mem + GUARD + shift;
    MPI_Status status;
    int count;

    guard(mem, len);
    MPI_Recv(mem, (int)len, MPI_BYTE, peer, turn, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    if ((size_t)count != len || status.MPI_SOURCE != peer || status.MPI_TAG != turn)
        fail("%zu bytes from %d: status says %d bytes from %d, tag %d", len, peer, count, status.MPI_SOURCE,
             status.MPI_TAG);
    verify(mem, len, stream_of(peer, len, turn), "ping-pong");
    check_guard(mem, len, "ping-pong");
    crossed_bytes += len;
}

/* There and back, then both at once. */
static void exchange(int peer, size_t len)
{
    static const size_t shifts[] = { 0, 1, 4, 9 };
    size_t shift = shifts[len % 4];
    MPI_Request request;

    if (my_rank < peer) {
        send_to(peer, len, shift, 0);
        receive_from(peer, len, 13 - shift, 1);
    } else {
        receive_from(peer, len, 13 - shift, 0);
        send_to(peer, len, shift, 1);
    }
    fill(out_mem, len, stream_of(my_rank, len, 2));
    MPI_Isend(out_mem, (int)len, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &request);
    receive_from(peer, len, 0, 2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void all_sizes(int peer, size_t len_max)
{
    for (size_t len = 0; len <= 64; len++)
        exchange(peer, len);
    for (size_t len = 128; len <= len_max; len *= 2) {
        size_t below = len > GET_LIMIT && !is_any_length ? 4 : 1;
        size_t above = len >= GET_LIMIT && !is_any_length ? 4 : 1;

        exchange(peer, len - below);
        exchange(peer, len);
        if (len < LEN_MAX)
            exchange(peer, len + above);
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, "check_pingpong", MPI_THREAD_SINGLE);
    is_any_length = argc > 1 && strcmp(argv[1], "any") == 0;
    out_mem = get_memory(LEN_MAX + 16);
    in_mem = get_memory(LEN_MAX + 16 + 2 * GUARD);
    for (int other = 1; other < n_ranks; other++) {
        if (my_rank == 0)
            all_sizes(other, other == 1 ? LEN_MAX : 1 << 20);
        else if (my_rank == other)
            all_sizes(0, other == 1 ? LEN_MAX : 1 << 20);
    }
    for (int step = 1; step < n_ranks; step++) {
        if ((my_rank ^ step) < n_ranks)
            all_sizes(my_rank ^ step, 4 << 20);
    }
    free(out_mem);
    free(in_mem);
    return check_end();
}
