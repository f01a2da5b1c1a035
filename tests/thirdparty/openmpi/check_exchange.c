/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Non-blocking messages: in each round every rank has many under way to and from all others, of sizes drawn from a seed
 * that all share, received in another order than sent, half of them by MPI_ANY_SOURCE, half posted too late. Buffers
 * come from malloc and go back after each round, so registered memory is unmapped and mapped again. Then a burst of
 * small messages that no receiver waits for, which exceeds every queue between the two.
 */
#include "check.h"

#define N_ROUNDS    12
#define N_PER_PEER  8
#define N_REQUESTS  256
#define N_BURST     20000
#define BURST_WORDS 4
#define EAGER_MAX   4096 /* longer messages have lengths that can be fetched: see README.md, faults of Open MPI */

struct message {
    unsigned char *mem;
    size_t len;
    uint64_t stream;
};

static size_t size_of(int source, int target, int round, int i)
{
    uint64_t x = mix((uint64_t)source << 40 ^ (uint64_t)target << 32 ^ (uint64_t)round << 16 ^ (uint64_t)i);

    size_t len = (size_t)(mix(x) % ((uint64_t)1 << x % 22)); /* as many small ones as large ones, up to 2 MiB */

    return len > EAGER_MAX ? len & ~(size_t)3 : len;
}

static uint64_t stream_of(int source, int target, int round, int i)
{
    return mix((uint64_t)source << 48 ^ (uint64_t)target << 40 ^ (uint64_t)round << 20 ^ (uint64_t)i);
}

static void post_sends(struct message *messages, MPI_Request *requests, int *n, int round)
{
    for (int i = 0; i < N_PER_PEER; i++) {
        for (int peer = 0; peer < n_ranks; peer++) {
            struct message *m = &messages[*n];

            if (peer == my_rank)
                continue;
            m->len = size_of(my_rank, peer, round, i);
            m->mem = get_memory(m->len + 1);
            fill(m->mem, m->len, stream_of(my_rank, peer, round, i));
            MPI_Isend(m->mem, (int)m->len, MPI_BYTE, peer, round * N_PER_PEER + i, MPI_COMM_WORLD, &requests[(*n)++]);
        }
    }
}

/* Even messages are asked for by name. */
static void post_receives(struct message *messages, MPI_Request *requests, int *n, int round)
{
    for (int i = N_PER_PEER - 2; i >= 0; i -= 2) {
        for (int peer = n_ranks - 1; peer >= 0; peer--) {
            struct message *m = &messages[*n];

            if (peer == my_rank)
                continue;
            m->len = size_of(peer, my_rank, round, i);
            m->stream = stream_of(peer, my_rank, round, i);
            m->mem = (unsigned char *)get_memory(m->len + 2 * GUARD) + GUARD;
            guard(m->mem, m->len);
            MPI_Irecv(m->mem, (int)m->len, MPI_BYTE, peer, round * N_PER_PEER + i, MPI_COMM_WORLD, &requests[(*n)++]);
        }
    }
}

/* Odd ones are taken from whoever comes, after a look at what came. */
static void take_the_rest(int round)
{
    for (int i = 1; i < N_PER_PEER; i += 2) {
        for (int n = 0; n < n_ranks - 1; n++) {
            int tag = round * N_PER_PEER + i;
            MPI_Status status;
            unsigned char *mem;
            int count;

            MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            if ((size_t)count != size_of(status.MPI_SOURCE, my_rank, round, i))
                fail("round %d: %d bytes from %d announced", round, count, status.MPI_SOURCE);
            mem = get_memory((size_t)count + 1);
            MPI_Recv(mem, count, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            verify(mem, (size_t)count, stream_of(status.MPI_SOURCE, my_rank, round, i), "probed");
            crossed_bytes += (uint64_t)count;
            free(mem);
        }
    }
}

static void play_round(int round)
{
    struct message sent[N_REQUESTS], received[N_REQUESTS];
    MPI_Request sends[N_REQUESTS], receives[N_REQUESTS];
    int n_sent = 0;
    int n_received = 0;

    if (round % 2 == 0)
        post_receives(received, receives, &n_received, round);
    post_sends(sent, sends, &n_sent, round);
    if (round % 2 == 1)
        post_receives(received, receives, &n_received, round);
    take_the_rest(round);
    for (int done = 0; done < n_received; done++) {
        struct message *m;
        int at;

        MPI_Waitany(n_received, receives, &at, MPI_STATUS_IGNORE);
        m = &received[at];
        verify(m->mem, m->len, m->stream, "awaited");
        check_guard(m->mem, m->len, "awaited");
        crossed_bytes += m->len;
        free(m->mem - GUARD);
    }
    MPI_Waitall(n_sent, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n_sent; i++)
        free(sent[i].mem);
}

/* Everybody sends to rank 0, which is not looking; order per sender must hold. */
static void burst(void)
{
    uint64_t words[BURST_WORDS];

    MPI_Barrier(MPI_COMM_WORLD);
    if (my_rank != 0) {
        for (uint64_t i = 0; i < N_BURST; i++) {
            words[0] = i;
            fill(words + 1, sizeof(words) - 8, stream_of(my_rank, 0, 99, (int)i));
            MPI_Send(words, BURST_WORDS, MPI_UINT64_T, 0, 77, MPI_COMM_WORLD);
        }
        return;
    }
    for (uint64_t i = 0; i < N_BURST; i++) {
        for (int peer = n_ranks - 1; peer > 0; peer--) {
            MPI_Recv(words, BURST_WORDS, MPI_UINT64_T, peer, 77, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (words[0] != i)
                fail("burst from %d: message %llu instead of %llu", peer, (unsigned long long)words[0],
                     (unsigned long long)i);
            verify(words + 1, sizeof(words) - 8, stream_of(peer, 0, 99, (int)i), "burst");
            crossed_bytes += sizeof(words);
        }
    }
}

int main(int argc, char **argv)
{
    check_begin(&argc, &argv, "check_exchange", MPI_THREAD_SINGLE);
    if (N_PER_PEER * (n_ranks - 1) > N_REQUESTS)
        fail("too many ranks");
    for (int round = 0; round < N_ROUNDS; round++)
        play_round(round);
    burst();
    return check_end();
}
