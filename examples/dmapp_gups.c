/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random access: a table spread over all PEs, changed one random word at a time.
 *
 *   dmapp_gups [-l LOG2_WORDS] [-n UPDATES]
 *
 * The table has 2^LOG2_WORDS words in each PE (default 20: 8 MiB). Each PE makes UPDATES updates (default 4 per
 * word), where an update is the exclusive or of a random number with the word that its upper bits choose, anywhere
 * in the job: an implicit atomic, so none is lost. A second round with the same numbers undoes everything; a word
 * that is not what it was at the start is an error, and the program counts them.
 *
 * Rank 0 prints the rate of the first round: updates per second of one PE and of all. The idea is HPC Challenge's.
 */
#include "examples/dmapp_common.h"

#include <stdint.h>
#include <unistd.h>

/* Numbers as good as random, different in each PE and the same in each round. */
static uint64_t next_number(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static double run_round(const dmapp_jobinfo_t *job, uint64_t *table, unsigned log2_words, uint64_t n_updates)
{
    dmapp_seg_desc_t heap = job->sheap_seg;
    uint64_t state = (uint64_t)job->pe << 40;
    double start;

    ex_barrier();
    start = ex_seconds();
    for (uint64_t i = 0; i < n_updates; i++) {
        uint64_t number = next_number(&state);
        uint64_t word = number & ((1ull << log2_words) - 1);
        dmapp_pe_t pe = (dmapp_pe_t)((number >> 32) * (uint64_t)job->npes >> 32);

        EX_DMAPP(dmapp_axor_qw_nbi(&table[word], &heap, pe, (int64_t)number));
    }
    EX_DMAPP(dmapp_gsync_wait());
    ex_barrier();
    return ex_seconds() - start;
}

int main(int argc, char **argv)
{
    unsigned log2_words = 20;
    uint64_t n_updates = 0;
    uint64_t n_wrong = 0;
    dmapp_jobinfo_t job;
    uint64_t *table;
    uint64_t *wrong;
    double seconds;
    int option;

    while ((option = getopt(argc, argv, "l:n:")) != -1) {
        if (option == 'l')
            log2_words = (unsigned)strtoul(optarg, NULL, 0);
        else if (option == 'n')
            n_updates = strtoull(optarg, NULL, 0);
        if (option == '?' || log2_words < 4 || log2_words > 26) {
            fprintf(stderr, "usage: dmapp_gups [-l LOG2_WORDS] [-n UPDATES], 4 to 26 words\n");
            return 2;
        }
    }
    if (n_updates == 0)
        n_updates = 4ull << log2_words;
    EX_DMAPP(dmapp_init(NULL, NULL));
    EX_DMAPP(dmapp_get_jobinfo(&job));
    table = dmapp_sheap_malloc(sizeof(*table) << log2_words);
    wrong = dmapp_sheap_malloc(sizeof(*wrong));
    EX_EXPECT(table && wrong);
    for (uint64_t i = 0; i < 1ull << log2_words; i++)
        table[i] = i;
    *wrong = 0;

    seconds = run_round(&job, table, log2_words, n_updates);
    run_round(&job, table, log2_words, n_updates);
    for (uint64_t i = 0; i < 1ull << log2_words; i++)
        n_wrong += table[i] != i;
    EX_DMAPP(dmapp_aadd_qw(wrong, &job.sheap_seg, 0, (int64_t)n_wrong));
    ex_barrier();
    if (job.pe == 0)
        printf("%d PEs, %llu words each: %.2f M updates/s per PE, %.2f M/s in all, %llu wrong\n", job.npes,
               1ull << log2_words, (double)n_updates / seconds * 1e-6, (double)n_updates * job.npes / seconds * 1e-6,
               (unsigned long long)*wrong);
    n_wrong = *wrong;
    EX_DMAPP(dmapp_finalize());
    return job.pe == 0 && n_wrong > 0;
}
