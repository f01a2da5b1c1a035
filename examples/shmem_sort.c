/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Integer sort: keys spread over all PEs are brought into order by their size.
 *
 *   shmem_sort [-n KEYS]
 *
 * Each PE has KEYS random keys (default 100000) and owns a range of values. It counts its keys for each owner, gets a
 * place in the owner's buffer by a fetching add, and puts its keys there in one piece: a bucket sort with one
 * message for each pair of PEs. Then each owner sorts what it has got. Checked: every key is in its owner's range,
 * keys are in order, and their number and sum are what they were.
 */
#include "examples/shmem_common.h"

#include <string.h>
#include <unistd.h>

#define KEY_BITS 28

static int compare(const void *a, const void *b)
{
    const uint32_t *x = a;
    const uint32_t *y = b;

    return (*x > *y) - (*x < *y);
}

static int owner_of(uint32_t key, int n)
{
    return (int)((uint64_t)key * (uint64_t)n >> KEY_BITS);
}

struct keys {
    uint32_t *own;      /* in the order of owners after the exchange */
    uint32_t *received; /* symmetric */
    uint64_t *n_received;
    uint64_t room;
    uint64_t n;
};

static void exchange(struct keys *k)
{
    int n_pes = shmem_n_pes();
    uint64_t *count = calloc((size_t)n_pes + 1, sizeof(*count));
    uint64_t *at = calloc((size_t)n_pes, sizeof(*at));
    uint32_t *ordered = malloc(k->n * sizeof(*ordered));

    EX_EXPECT(count && at && ordered);
    for (uint64_t i = 0; i < k->n; i++)
        count[owner_of(k->own[i], n_pes) + 1]++;
    for (int pe = 0; pe < n_pes; pe++) {
        count[pe + 1] += count[pe];
        at[pe] = count[pe];
    }
    for (uint64_t i = 0; i < k->n; i++)
        ordered[at[owner_of(k->own[i], n_pes)]++] = k->own[i];
    for (int i = 0; i < n_pes; i++) {
        int pe = (shmem_my_pe() + i) % n_pes;
        uint64_t n = count[pe + 1] - count[pe];
        uint64_t place = shmem_atomic_fetch_add(k->n_received, n, pe);

        EX_EXPECT(place + n <= k->room);
        shmem_put_nbi(k->received + place, ordered + count[pe], n, pe);
    }
    shmem_barrier_all();
    free(ordered);
    free(count);
    free(at);
}

static void verify(const struct keys *k, uint64_t sum)
{
    static uint64_t before[2];
    static uint64_t after[2];

    after[0] = *k->n_received;
    after[1] = 0;
    for (uint64_t i = 0; i < after[0]; i++) {
        EX_EXPECT(owner_of(k->received[i], shmem_n_pes()) == shmem_my_pe());
        EX_EXPECT(i == 0 || k->received[i - 1] <= k->received[i]);
        after[1] += k->received[i];
    }
    before[0] = k->n;
    before[1] = sum;
    shmem_sum_reduce(SHMEM_TEAM_WORLD, before, before, 2);
    shmem_sum_reduce(SHMEM_TEAM_WORLD, after, after, 2);
    EX_EXPECT(before[0] == after[0] && before[1] == after[1]);
}

int main(int argc, char **argv)
{
    struct keys k = { .n = 100000 };
    uint64_t state;
    uint64_t sum = 0;
    double seconds;
    int option;

    while ((option = getopt(argc, argv, "n:")) != -1) {
        if (option != 'n')
            return 2;
        k.n = strtoull(optarg, NULL, 10);
    }
    shmem_init();
    state = (uint64_t)shmem_my_pe() << 40;
    k.room = k.n * 2 + 1000;
    k.own = malloc(k.n * sizeof(*k.own));
    k.received = shmem_malloc(k.room * sizeof(*k.received));
    k.n_received = shmem_calloc(1, sizeof(*k.n_received));
    EX_EXPECT(k.own && k.received && k.n_received);
    for (uint64_t i = 0; i < k.n; i++) {
        k.own[i] = (uint32_t)(ex_random(&state) >> (64 - KEY_BITS));
        sum += k.own[i];
    }
    shmem_barrier_all();
    seconds = ex_seconds();
    exchange(&k);
    qsort(k.received, *k.n_received, sizeof(*k.received), compare);
    shmem_barrier_all();
    seconds = ex_seconds() - seconds;
    verify(&k, sum);
    if (shmem_my_pe() == 0)
        printf("%llu keys in order, %.1f M keys/s\n", (unsigned long long)k.n * (unsigned)shmem_n_pes(),
               (double)k.n * shmem_n_pes() / seconds * 1e-6);
    free(k.own);
    shmem_finalize();
    return 0;
}
