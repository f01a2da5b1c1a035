/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What small one-sided operations cost.
 *
 *   put8_half_round_trip   FMA puts with remote events back and forth: half of one turn
 *   put8_rate              a stream of puts, local completions consumed
 *   put8_burst4_time       4 puts posted, then waited for; likewise 16 and 64
 *   get8_latency           one get, waited for, completion consumed
 *   fadd8_latency          one 8-byte fetch-and-add, likewise
 *   fadd8_rate             a stream of them
 */
#include "tests/bench/gni_pair.h"

#define BURST_MAX 64

static void send_put(struct pair *pair, gni_post_descriptor_t *put, long value)
{
    pair->mem[0] = (uint64_t)value;
    EX_GNI(GNI_PostFma(pair->ep, put));
    pair_wait_post(pair);
}

static void ping_pong(struct pair *pair, long n)
{
    gni_post_descriptor_t put =
        pair_descriptor(pair, GNI_POST_FMA_PUT, GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_REMOTE_EVENT, 8);

    for (long i = 0; i < n; i++) {
        if (pair->job.rank == 0)
            send_put(pair, &put, i);
        (void)pair_wait(pair->dst_cq);
        if (pair->job.rank == 1)
            send_put(pair, &put, i);
    }
}

static void measure_put_latency(struct pair *pair)
{
    long n = pair->options.n;
    double start_us;

    ping_pong(pair, PAIR_WARM_UP);
    start_us = bench_now_us();
    ping_pong(pair, n);
    if (pair->job.rank == 0)
        bench_print("put8_half_round_trip", (bench_now_us() - start_us) / (double)n / 2, "us");
}

static double burst_us(struct pair *pair, const gni_post_descriptor_t *put, int n_puts, long n)
{
    static gni_post_descriptor_t puts[BURST_MAX];
    double start_us = 0;

    for (int i = 0; i < n_puts; i++)
        puts[i] = *put;
    for (long round = -n / 10 - 1; round < n; round++) {
        if (round == 0)
            start_us = bench_now_us();
        for (int i = 0; i < n_puts; i++)
            EX_GNI(GNI_PostFma(pair->ep, &puts[i]));
        for (int i = 0; i < n_puts; i++)
            pair_wait_post(pair);
    }
    return (bench_now_us() - start_us) / (double)n;
}

static void measure_bursts(struct pair *pair)
{
    gni_post_descriptor_t put = pair_descriptor(pair, GNI_POST_FMA_PUT, GNI_CQMODE_LOCAL_EVENT, 8);
    long n = pair->options.n;

    bench_print("put8_burst4_time", burst_us(pair, &put, 4, n / 4), "us");
    bench_print("put8_burst16_time", burst_us(pair, &put, 16, n / 16), "us");
    bench_print("put8_burst64_time", burst_us(pair, &put, BURST_MAX, n / BURST_MAX), "us");
}

static void measure_one_sided(struct pair *pair)
{
    long n = pair->options.n;
    gni_post_descriptor_t put = pair_descriptor(pair, GNI_POST_FMA_PUT, GNI_CQMODE_LOCAL_EVENT, 8);
    gni_post_descriptor_t get = pair_descriptor(pair, GNI_POST_FMA_GET, GNI_CQMODE_LOCAL_EVENT, 8);
    gni_post_descriptor_t fadd = pair_descriptor(pair, GNI_POST_AMO, GNI_CQMODE_LOCAL_EVENT, 8);

    fadd.amo_cmd = GNI_FMA_ATOMIC_FADD;
    fadd.first_operand = 1;
    bench_print("put8_rate", pair_rate(pair, &put, 10 * n), "M/s");
    bench_print("get8_latency", pair_blocking_us(pair, &get, n), "us");
    bench_print("fadd8_latency", pair_blocking_us(pair, &fadd, n), "us");
    bench_print("fadd8_rate", pair_rate(pair, &fadd, 10 * n), "M/s");
}

int main(int argc, char **argv)
{
    struct pair pair = { 0 };

    pair_open(&pair, bench_options(argc, argv), 4096);
    ex_barrier();
    measure_put_latency(&pair);
    ex_barrier();
    if (pair.job.rank == 0) {
        measure_one_sided(&pair);
        measure_bursts(&pair);
    }
    pair_close(&pair);
    return 0;
}
