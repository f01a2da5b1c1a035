/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring with put-with-signal: a message goes round all PEs, and each adds its number to every word.
 *
 *   shmem_ring [-l WORDS] [-n ROUNDS]
 *
 * The signal counts rounds, so nothing else synchronises: who sees it has the message. After ROUNDS rounds (default
 * 1000) of WORDS words (default 16) each word has to be the sum of all PEs' numbers, once for each round. PE 0
 * prints the time of one hop.
 */
#include "examples/shmem_common.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    long n_rounds = 1000;
    size_t n_words = 16;
    uint64_t *signal;
    double start;
    long *message;
    int option;
    int next;
    long me;
    long n;

    while ((option = getopt(argc, argv, "l:n:")) != -1) {
        if (option == 'l')
            n_words = strtoul(optarg, NULL, 10);
        else if (option == 'n')
            n_rounds = strtol(optarg, NULL, 10);
        else
            return 2;
    }
    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    next = (int)((me + 1) % n);
    message = shmem_calloc(n_words, sizeof(*message));
    signal = shmem_calloc(1, sizeof(*signal));
    EX_EXPECT(message && signal);
    start = ex_seconds();
    for (long round = 0; round < n_rounds; round++) {
        /* PE 0 begins the first round; each later one begins when the round before has come back. */
        if (me != 0 || round > 0)
            shmem_signal_wait_until(signal, SHMEM_CMP_GE, (uint64_t)(me == 0 ? round : round + 1));
        for (size_t i = 0; i < n_words; i++)
            message[i] += me;
        shmem_put_signal(message, message, n_words, signal, (uint64_t)(round + 1), SHMEM_SIGNAL_SET, next);
    }
    if (me == 0) {
        shmem_signal_wait_until(signal, SHMEM_CMP_GE, (uint64_t)n_rounds);
        for (size_t i = 0; i < n_words; i++)
            EX_EXPECT(message[i] == n_rounds * (n * (n - 1) / 2));
        printf("%ld rounds of %ld PEs, every sum is right; %.2f us a hop\n", n_rounds, n,
               (ex_seconds() - start) / (double)(n_rounds * n) * 1e6);
    }
    shmem_finalize();
    return 0;
}
