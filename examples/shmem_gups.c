/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random access: a table spread over all PEs, changed one random word at a time.
 *
 *   shmem_gups [-l LOG2_WORDS] [-n UPDATES]
 *
 * As dmapp_gups, with shmem_atomic_xor(): 2^LOG2_WORDS words in each PE (default 16), UPDATES updates of each PE
 * (default 4 per word). A second round with the same numbers undoes the first, and then every word has to be what it
 * was. PE 0 prints the rate of the first round.
 */
#include "examples/shmem_common.h"

#include <unistd.h>

static double run_round(uint64_t *table, unsigned log2_words, uint64_t n_updates)
{
    uint64_t state = (uint64_t)shmem_my_pe() << 40;
    uint64_t n_pes = (uint64_t)shmem_n_pes();
    double start;

    shmem_barrier_all();
    start = ex_seconds();
    for (uint64_t i = 0; i < n_updates; i++) {
        uint64_t number = ex_random(&state);

        shmem_atomic_xor(&table[number & ((1ull << log2_words) - 1)], number, (int)((number >> 32) * n_pes >> 32));
    }
    shmem_barrier_all();
    return ex_seconds() - start;
}

int main(int argc, char **argv)
{
    unsigned log2_words = 16;
    uint64_t n_updates = 0;
    double seconds;
    uint64_t *table;
    int option;

    while ((option = getopt(argc, argv, "l:n:")) != -1) {
        if (option == 'l')
            log2_words = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'n')
            n_updates = strtoull(optarg, NULL, 10);
        else
            return 2;
    }
    if (n_updates == 0)
        n_updates = 4ull << log2_words;
    shmem_init();
    table = shmem_malloc(sizeof(*table) << log2_words);
    EX_EXPECT(table);
    for (uint64_t i = 0; i < 1ull << log2_words; i++)
        table[i] = i;
    seconds = run_round(table, log2_words, n_updates);
    run_round(table, log2_words, n_updates);
    for (uint64_t i = 0; i < 1ull << log2_words; i++)
        EX_EXPECT(table[i] == i);
    if (shmem_my_pe() == 0)
        printf("%.2f M updates/s per PE, %.2f M of all; no word is wrong\n", (double)n_updates / seconds * 1e-6,
               (double)n_updates * shmem_n_pes() / seconds * 1e-6);
    shmem_finalize();
    return 0;
}
