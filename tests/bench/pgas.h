/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a library of one-sided operations costs: the same measurements for DMAPP and for OpenSHMEM. dmapp_rank.c and
 * shmem_rank.c define the operations below as static inline functions and include this at their end.
 *
 *   pgas_put8_flag_half_round_trip  8 bytes and a flag, back and forth: half of one turn
 *   pgas_get8_latency               one blocking get
 *   pgas_fadd8_latency              one fetch-and-add
 *   pgas_put8_stream_time           one of a stream of non-blocking puts, completed every 64
 *   pgas_put_bandwidth              blocking puts of 1 MiB
 *   pgas_put_ahead_bandwidth        blocking puts of 64 KiB, whose offset in the page is that of the source and 16
 *   pgas_gups_rate                  random xors into the table of the other PE and one's own, million a second
 *   pgas_sort_rate                  integer sort by buckets, million keys a second of all PEs: a place in the owner's
 *                                   buffer by a fetching add, one put for each pair of PEs, a barrier, and counting
 *   pgas_sort_exchange_rate         the same keys by the time between two barriers in which they change hands: the
 *                                   library's part of the sort, which is 5 % of all; the rest is the program's own work
 *   pgas_sort_anew_rate             the same sort with the range of keys and the memory of real ones: keys, buckets and
 *                                   counts are asked for anew in each round (128 MiB of counts for each PE of two)
 *   pgas_put8_signal_half_round_trip  as the first with put-with-signal, where OpenSHMEM is 1.5
 *   pgas_barrierN_time, _sumN_time  of N PEs
 */
#ifndef TESTS_BENCH_PGAS_H
#define TESTS_BENCH_PGAS_H

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/common.h"

#define LARGE_BYTES     (1u << 20)
#define AHEAD_BYTES     (64u << 10)
#define PAGE_BYTES      4096u
#define STREAM          64
#define TABLE           16384
#define SETTLE_BARRIERS 50000 /* some tens of ms, until the scheduler has given each PE its core */
#define UPDATES         50    /* so many times as many: the time of all is to be long beside that of two barriers */
#define SORT_KEYS       262144u
#define SORT_KEY_BITS   18
#define SORT_ROUNDS     20
#define ANEW_KEY_BITS   26
#define ANEW_ROUNDS     4

/* Symmetric. */
struct pgas {
    volatile uint64_t flag;
    uint64_t data;
    uint64_t word;
    uint64_t words[STREAM];
    uint64_t table[TABLE];
    uint8_t large[LARGE_BYTES];
    uint64_t n_keys;
    uint32_t keys[2 * SORT_KEYS]; /* twice what a PE gets on average */
};

static int own_pe;
static int n_pes;
static struct pgas *mine;

static inline void op_put_flag(struct pgas *p, uint64_t value, int pe);
static inline uint64_t op_get(uint64_t *at, int pe);
static inline uint64_t op_fadd_n(uint64_t *at, uint64_t n, int pe);
static inline void op_put_nbi(uint64_t *at, uint64_t *from, int pe);
static inline void op_complete(void);
static inline void op_put_large(void *at, void *from, size_t bytes, int pe);
static inline void op_put_keys_nbi(uint32_t *at, uint32_t *from, size_t n, int pe);
static void op_barrier(void);
static void op_sum(void);
static inline void op_xor(uint64_t *at, uint64_t value, int pe);
/* Data and flag in one call, if HAS_SIGNAL. */
static inline void op_put_signal(struct pgas *p, uint64_t value, int pe);
/* As the interface has it: DMAPP has no call that waits for a word, OpenSHMEM allows nothing but its own. */
static inline void op_wait_flag(struct pgas *p, uint64_t value);

static void ping_pong(long n, uint64_t first)
{
    for (long i = 0; i < n; i++) {
        uint64_t turn = first + (uint64_t)i;

        if (own_pe == 0)
            op_put_flag(mine, turn, 1);
        op_wait_flag(mine, turn);
        if (own_pe == 1)
            op_put_flag(mine, turn, 0);
    }
}

/* As a message lies behind a header of 16 bytes. */
static void measure_ahead(uint8_t *large, long n)
{
    uint64_t ahead_bytes = ((uintptr_t)mine->large - (uintptr_t)large) % PAGE_BYTES;
    uint8_t *source = large + (ahead_bytes + PAGE_BYTES - 16) % PAGE_BYTES;
    double start_us = 0;

    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        op_put_large(mine->large, source, AHEAD_BYTES, 1);
    }
    bench_print_sized("pgas_put_ahead_bandwidth", AHEAD_BYTES,
                      (double)n * AHEAD_BYTES / (bench_now_us() - start_us) * 1e-3, "GB/s");
}

static void measure_alone(long n)
{
    static uint64_t source[STREAM];
    static uint8_t large[LARGE_BYTES];
    long rounds = n / 40 + 4;
    double start_us = 0;

    memset(large, 1, sizeof(large));
    for (long i = -n / 10; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        (void)op_get(&mine->word, 1);
    }
    bench_print("pgas_get8_latency", (bench_now_us() - start_us) / (double)n, "us");
    for (long i = -n / 10; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        (void)op_fadd_n(&mine->word, 1, 1);
    }
    bench_print("pgas_fadd8_latency", (bench_now_us() - start_us) / (double)n, "us");
    start_us = bench_now_us();
    for (long i = 0; i < 10 * n; i++) {
        op_put_nbi(&mine->words[i % STREAM], &source[i % STREAM], 1);
        if (i % STREAM == STREAM - 1)
            op_complete();
    }
    op_complete();
    bench_print("pgas_put8_stream_time", (bench_now_us() - start_us) / (double)(10 * n), "us");
    op_put_large(mine->large, large, LARGE_BYTES, 1);
    start_us = bench_now_us();
    for (long i = 0; i < rounds; i++)
        op_put_large(mine->large, large, LARGE_BYTES, 1);
    bench_print_sized("pgas_put_bandwidth", LARGE_BYTES,
                      (double)rounds * LARGE_BYTES / (bench_now_us() - start_us) * 1e-3, "GB/s");
    measure_ahead(large, rounds);
}

/* Both PEs at once. */
static void measure_gups(long n)
{
    uint64_t x = (uint64_t)own_pe + 1;
    long n_updates = n * UPDATES;
    double start_us;

    op_barrier();
    start_us = bench_now_us();
    for (long i = 0; i < n_updates; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        op_xor(&mine->table[x % TABLE], x, (int)(x >> 40 & 1));
    }
    op_complete();
    op_barrier();
    if (own_pe == 0)
        bench_print("pgas_gups_rate", (double)n_updates / (bench_now_us() - start_us), "M/s");
}

/* SORT_KEYS each of keys and buckets, one count for each possible key. */
struct sort {
    unsigned key_bits;
    uint32_t *keys;
    uint32_t *buckets;
    uint32_t *counts;
};

static int sort_owner(uint32_t key, unsigned key_bits)
{
    return (int)((uint64_t)key * (uint64_t)n_pes >> key_bits);
}

/* In the order of their owners, and where each owner's begin. */
static void sort_into_buckets(const struct sort *sort, uint32_t *first)
{
    uint32_t at[3] = { 0 };

    for (uint32_t i = 0; i < SORT_KEYS; i++)
        at[sort_owner(sort->keys[i], sort->key_bits) + 1]++;
    at[2] += at[1];
    memcpy(first, at, sizeof(at));
    for (uint32_t i = 0; i < SORT_KEYS; i++)
        sort->buckets[at[sort_owner(sort->keys[i], sort->key_bits)]++] = sort->keys[i];
}

/* Of two PEs. Adds what the exchange took. Answers 0 if a key of another owner has come, or one is missing. */
static uint64_t sort_round(const struct sort *sort, double *exchange_us)
{
    uint64_t n_counted = 0;
    uint32_t first[3];
    double start_us;

    sort_into_buckets(sort, first);
    op_barrier();
    start_us = bench_now_us();
    for (int i = 0; i < n_pes; i++) {
        int pe = (own_pe + i) % n_pes;
        uint32_t n = first[pe + 1] - first[pe];

        op_put_keys_nbi(mine->keys + op_fadd_n(&mine->n_keys, n, pe), sort->buckets + first[pe], n, pe);
    }
    op_complete();
    op_barrier();
    *exchange_us += bench_now_us() - start_us;
    memset(sort->counts, 0, sizeof(*sort->counts) << sort->key_bits);
    for (uint64_t i = 0; i < mine->n_keys; i++) {
        sort->counts[mine->keys[i]]++;
        n_counted += sort_owner(mine->keys[i], sort->key_bits) == own_pe;
    }
    n_counted = n_counted == mine->n_keys ? n_counted : 0;
    mine->n_keys = 0;
    op_barrier();
    return n_counted;
}

static void make_keys(const struct sort *sort)
{
    uint64_t x = (uint64_t)own_pe + 1;

    for (uint32_t i = 0; i < SORT_KEYS; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        sort->keys[i] = (uint32_t)(x >> (64 - sort->key_bits));
    }
}

static void measure_sort(void)
{
    static uint32_t counts[1u << SORT_KEY_BITS];
    static uint32_t buckets[SORT_KEYS];
    static uint32_t keys[SORT_KEYS];
    struct sort sort = { .key_bits = SORT_KEY_BITS, .keys = keys, .buckets = buckets, .counts = counts };
    double n_keys = (double)n_pes * SORT_KEYS * SORT_ROUNDS;
    double exchange_us = 0;
    double start_us = 0;

    make_keys(&sort);
    op_barrier();
    for (int i = -2; i < SORT_ROUNDS; i++) {
        if (i == 0) {
            exchange_us = 0;
            start_us = bench_now_us();
        }
        if (sort_round(&sort, &exchange_us) == 0)
            return;
    }
    if (own_pe == 0) {
        bench_print("pgas_sort_rate", n_keys / (bench_now_us() - start_us), "M/s");
        bench_print("pgas_sort_exchange_rate", n_keys / exchange_us, "M/s");
    }
}

static uint64_t sort_round_anew(void)
{
    struct sort sort = { .key_bits = ANEW_KEY_BITS,
                         .keys = malloc(SORT_KEYS * sizeof(*sort.keys)),
                         .buckets = malloc(SORT_KEYS * sizeof(*sort.buckets)),
                         .counts = malloc(sizeof(*sort.counts) << ANEW_KEY_BITS) };
    double exchange_us = 0;
    uint64_t n_counted = 0;

    if (sort.keys && sort.buckets && sort.counts) {
        make_keys(&sort);
        n_counted = sort_round(&sort, &exchange_us);
    }
    free(sort.counts);
    free(sort.buckets);
    free(sort.keys);
    return n_counted;
}

static void measure_sort_anew(void)
{
    double start_us = 0;

    for (int i = -1; i < ANEW_ROUNDS; i++) {
        if (i == 0)
            start_us = bench_now_us();
        if (sort_round_anew() == 0)
            return;
    }
    if (own_pe == 0)
        bench_print("pgas_sort_anew_rate", (double)n_pes * SORT_KEYS * ANEW_ROUNDS / (bench_now_us() - start_us),
                    "M/s");
}

static void signal_ping_pong(long n, uint64_t first)
{
    for (long i = 0; i < n; i++) {
        uint64_t turn = first + (uint64_t)i;

        if (own_pe == 0)
            op_put_signal(mine, turn, 1);
        op_wait_flag(mine, turn);
        if (own_pe == 1)
            op_put_signal(mine, turn, 0);
    }
}

static void measure_signal(long n)
{
    double start_us;

    op_barrier();
    signal_ping_pong(n / 10 + 1, 3000000000);
    start_us = bench_now_us();
    signal_ping_pong(n, 4000000000);
    if (own_pe == 0)
        bench_print("pgas_put8_signal_half_round_trip", (bench_now_us() - start_us) / (double)n / 2, "us");
    op_barrier();
}

static void measure_together(long n)
{
    char name[64];
    double start_us = 0;

    for (long i = -SETTLE_BARRIERS; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        op_barrier();
    }
    snprintf(name, sizeof(name), "pgas_barrier%d_time", n_pes);
    if (own_pe == 0)
        bench_print(name, (bench_now_us() - start_us) / (double)n, "us");
    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        op_sum();
    }
    snprintf(name, sizeof(name), "pgas_sum%d_time", n_pes);
    if (own_pe == 0)
        bench_print(name, (bench_now_us() - start_us) / (double)n, "us");
}

static void measure(const struct bench_options *options)
{
    long n = options->n;
    double start_us;

    if (n_pes > 2) {
        measure_together(n / 20 + 1);
        return;
    }
    op_barrier();
    ping_pong(n / 10 + 1, 1);
    start_us = bench_now_us();
    ping_pong(n, 1000000000);
    if (own_pe == 0)
        bench_print("pgas_put8_flag_half_round_trip", (bench_now_us() - start_us) / (double)n / 2, "us");
    op_barrier();
    if (own_pe == 0)
        measure_alone(n);
    op_barrier();
    measure_together(n / 20 + 1);
    measure_gups(n);
    measure_sort();
    measure_sort_anew();
    if (HAS_SIGNAL)
        measure_signal(n);
}

#endif
