/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided communication on a window over ordinary memory (MPI_Win_create: Open MPI serves windows that it allocates
 * itself from shared memory, past the network): put and get of every size under fence, under a lock and under lock_all
 * with flush; then atomics, whose sum must be exact while all ranks hit one place at once.
 */
#include "check.h"

#define WINDOW_LEN ((size_t)8 << 20)
#define N_HITS     2000

enum { COUNT32, COUNT64, TICKET, LOCK, LATEST, N_WORDS };

static unsigned char *window_mem;
static MPI_Win window;

static uint64_t stream_of(int rank, size_t len, int way)
{
    return mix((uint64_t)rank << 48 ^ (uint64_t)way << 40 ^ len);
}

static size_t next_size(size_t len)
{
    if (len < 16)
        return len + 1;
    return len % 2 ? 2 * (len - 1) : len + 1; /* 16, 17, 32, 33, ... */
}

/* Everybody puts to the right neighbour's window. */
static void put_under_fence(unsigned char *mem)
{
    int right = (my_rank + 1) % n_ranks;
    int left = (my_rank + n_ranks - 1) % n_ranks;

    for (size_t len = 1; len <= WINDOW_LEN / 2; len = next_size(len)) {
        fill(mem, len, stream_of(my_rank, len, 0));
        guard(window_mem + GUARD, len);
        MPI_Win_fence(0, window);
        MPI_Put(mem, (int)len, MPI_BYTE, right, GUARD, (int)len, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        verify(window_mem + GUARD, len, stream_of(left, len, 0), "put, fence");
        check_guard(window_mem + GUARD, len, "put, fence");
        crossed_bytes += len;
    }
}

/* Everybody gets from the right neighbour what was left there, at all alignments. */
static void get_under_lock(unsigned char *mem)
{
    int right = (my_rank + 1) % n_ranks;

    MPI_Barrier(MPI_COMM_WORLD);
    fill(window_mem, WINDOW_LEN, stream_of(my_rank, 0, 1));
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t len = 1; len <= WINDOW_LEN / 2; len = next_size(len)) {
        size_t at = mix(len) % (WINDOW_LEN / 2) & ~(size_t)7; /* patterns are made of words */
        size_t into = len % 8;

        guard(mem + GUARD + into, len);
        MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
        MPI_Get(mem + GUARD + into, (int)len, MPI_BYTE, right, (MPI_Aint)at, (int)len, MPI_BYTE, window);
        MPI_Win_unlock(right, window);
        for (size_t i = 0; i < len; i += 8) {
            uint64_t value = pattern(stream_of(right, 0, 1), (at + i) / 8);

            if (memcmp(mem + GUARD + into + i, &value, len - i < 8 ? len - i : 8) != 0)
                fail("get, lock: %zu bytes from %zu: wrong at %zu", len, at, i);
        }
        check_guard(mem + GUARD + into, len, "get, lock");
        crossed_bytes += len;
    }
}

/* Many puts of all ranks into disjoint parts of everybody's window, completed by one flush. */
static void put_and_flush(unsigned char *mem)
{
    size_t part = WINDOW_LEN / (size_t)n_ranks & ~(size_t)4095;

    fill(mem, part, stream_of(my_rank, part, 2));
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    for (int target = 0; target < n_ranks; target++) {
        for (size_t at = 0; at < part; at += 4096)
            MPI_Put(mem + at, 4096, MPI_BYTE, target, (MPI_Aint)((size_t)my_rank * part + at), 4096, MPI_BYTE, window);
    }
    MPI_Win_flush_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(window);
    for (int source = 0; source < n_ranks; source++) {
        verify(window_mem + (size_t)source * part, part, stream_of(source, part, 2), "put, flush");
        crossed_bytes += source == my_rank ? 0 : part;
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* ---- atomics, on a window of words of rank 0 ---- */

static void hit_counters(MPI_Win words)
{
    int64_t one = 1, before, *tickets = get_memory(N_HITS * sizeof(*tickets));
    int32_t one32 = 1;

    for (int i = 0; i < N_HITS; i++) {
        MPI_Accumulate(&one32, 1, MPI_INT32_T, 0, COUNT32, 1, MPI_INT32_T, MPI_SUM, words);
        MPI_Accumulate(&one, 1, MPI_INT64_T, 0, COUNT64, 1, MPI_INT64_T, MPI_SUM, words);
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, TICKET, MPI_SUM, words);
        MPI_Win_flush(0, words);
        if (i > 0 && before <= tickets[i - 1])
            fail("fetch and add: %lld after %lld", (long long)before, (long long)tickets[i - 1]);
        tickets[i] = before;
    }
    if (tickets[N_HITS - 1] >= (int64_t)N_HITS * n_ranks)
        fail("fetch and add: ticket %lld", (long long)tickets[N_HITS - 1]);
    free(tickets);
}

/*
 * A lock by compare and swap guards a sum that is read and written without atomics. Not by the owner of the memory:
 * Open MPI 4.1.4 has no handle of it and crashes when all ranks are on one host.
 */
static void add_under_own_lock(MPI_Win words)
{
    int64_t mine = my_rank + 1, nobody = 0, found, value;

    for (int i = 0; i < N_HITS / 10; i++) {
        do {
            MPI_Compare_and_swap(&mine, &nobody, &found, MPI_INT64_T, 0, LOCK, words);
            MPI_Win_flush(0, words);
        } while (found != nobody);
        MPI_Get(&value, 1, MPI_INT64_T, 0, LATEST, 1, MPI_INT64_T, words);
        MPI_Win_flush(0, words);
        value++;
        MPI_Put(&value, 1, MPI_INT64_T, 0, LATEST, 1, MPI_INT64_T, words);
        MPI_Win_flush(0, words);
        MPI_Fetch_and_op(&nobody, &found, MPI_INT64_T, 0, LOCK, MPI_REPLACE, words);
        MPI_Win_flush(0, words);
        if (found != mine)
            fail("lock of %lld held by %lld", (long long)mine, (long long)found);
    }
}

static void atomics(void)
{
    int64_t memory[N_WORDS] = { 0 };
    int32_t count32;
    MPI_Win words;

    MPI_Win_create(memory, sizeof(memory), 8, MPI_INFO_NULL, MPI_COMM_WORLD, &words);
    MPI_Win_lock_all(0, words);
    hit_counters(words);
    if (my_rank != 0)
        add_under_own_lock(words);
    MPI_Win_unlock_all(words);
    MPI_Barrier(MPI_COMM_WORLD);
    memcpy(&count32, &memory[COUNT32], sizeof(count32));
    if (my_rank == 0 && (count32 != N_HITS * n_ranks || memory[COUNT64] != N_HITS * n_ranks ||
                         memory[TICKET] != N_HITS * n_ranks || memory[LATEST] != N_HITS / 10 * (n_ranks - 1)))
        fail("counters %d, %lld, %lld, %lld after %d hits of each of %d ranks", count32, (long long)memory[COUNT64],
             (long long)memory[TICKET], (long long)memory[LATEST], N_HITS, n_ranks);
    MPI_Win_free(&words);
    if (my_rank != 0)
        crossed_bytes += (uint64_t)N_HITS * (4 + 8 + 8);
}

int main(int argc, char **argv)
{
    unsigned char *mem;

    check_begin(&argc, &argv, "check_onesided", MPI_THREAD_SINGLE);
    mem = get_memory(WINDOW_LEN + 2 * GUARD);
    window_mem = get_memory(WINDOW_LEN);
    MPI_Win_create(window_mem, (MPI_Aint)WINDOW_LEN, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    put_under_fence(mem);
    get_under_lock(mem);
    put_and_flush(mem);
    MPI_Win_free(&window);
    atomics();
    free(window_mem);
    free(mem);
    return check_end();
}
