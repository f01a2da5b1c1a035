/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency by FMA, bandwidth by BTE.
 *
 *   gni_pingpong [-i ITERATIONS] [-m MAX_SIZE]
 *
 * Ranks 2i and 2i+1 form a pair; an odd last rank only takes part in the barriers. All pairs run at once, rank 0
 * prints the figures of the first. The even rank of a pair is the "ping" side.
 *
 * 1. Latency, 8 B to 4 KiB. Ping puts into pong's memory with GNI_PostFma and asks for a REMOTE event, which
 *    appears on the completion queue that pong attached to this memory; pong answers the same way. Half a round
 *    trip is printed. Beside it the time of a get, from the post to its event: ping gets one after the other.
 * 2. Bandwidth, 4 KiB to 4 MiB. Ping keeps WINDOW transfers of GNI_PostRdma outstanding, first PUTs, then GETs.
 *    Pong's program takes no part: the NIC serves its memory.
 *
 * Every size is checked: before the timed part the message carries a pattern of its own in both directions
 * (latency; gets in one), after it the target (PUT) or the initiator (GET) verifies what arrived. Exit status 0 means
 * that every byte was right.
 */
#include "examples/common.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FMA_MAX    4096u
#define BTE_MIN    4096u
#define BTE_MAX    (4u << 20)
#define WINDOW     16
#define CQ_ENTRIES 1024

/* Both sides have the same: [0, BTE_MAX) is written by the peer, [BTE_MAX, 2 BTE_MAX) is the source. */
struct pair {
    int peer;
    int is_ping;
    gni_ep_handle_t ep;
    gni_cq_handle_t src_cq; /* completions of own posts */
    gni_cq_handle_t dst_cq; /* events of the peer's puts into our memory */
    char *in;
    char *out;
    gni_mem_handle_t memory;
    gni_mem_handle_t peer_memory;
    char *peer_in; /* addresses in the peer's address space */
    char *peer_out;
};

/* What a rank tells its peer. */
struct window_info {
    gni_mem_handle_t memory;
    char *in;
    char *out;
};

static void put_fma(struct pair *pair, gni_post_descriptor_t *descr, size_t len_bytes)
{
    memset(descr, 0, sizeof(*descr));
    descr->type = GNI_POST_FMA_PUT;
    descr->cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
    descr->dlvr_mode = GNI_DLVMODE_PERFORMANCE;
    descr->local_addr = (uint64_t)pair->out;
    descr->remote_addr = (uint64_t)pair->peer_in;
    descr->remote_mem_hndl = pair->peer_memory;
    descr->length = len_bytes;
    EX_GNI(GNI_PostFma(pair->ep, descr));
}

static void check_pattern(const struct pair *pair, size_t len_bytes, uint32_t seed, const char *what)
{
    size_t wrong = ex_pattern_check(pair->in, len_bytes, seed);

    EX_EXPECT(wrong == len_bytes, "%s of %zu bytes from rank %d: byte %zu is wrong", what, len_bytes, pair->peer,
              wrong);
}

/* One message there and back. */
static void exchange_fma(struct pair *pair, size_t len_bytes)
{
    gni_post_descriptor_t descr;

    if (pair->is_ping)
        put_fma(pair, &descr, len_bytes);
    ex_wait_event(pair->dst_cq);
    if (!pair->is_ping)
        put_fma(pair, &descr, len_bytes);
    ex_wait_post(pair->src_cq, &descr);
}

static double latency_us(struct pair *pair, size_t len_bytes, int n_iterations)
{
    uint32_t seed = (uint32_t)len_bytes;
    double start_us;

    /* Each direction has its own seed; pong's buffer must hold ping's pattern before it answers, so check between. */
    ex_pattern_fill(pair->out, len_bytes, seed + (pair->is_ping ? 0 : 1));
    memset(pair->in, 0, len_bytes);
    ex_barrier();
    exchange_fma(pair, len_bytes);
    check_pattern(pair, len_bytes, seed + (pair->is_ping ? 1 : 0), "FMA put");
    ex_barrier();

    start_us = ex_time_us();
    for (int i = 0; i < n_iterations; i++)
        exchange_fma(pair, len_bytes);
    return (ex_time_us() - start_us) / n_iterations / 2;
}

static void get_fma(struct pair *pair, size_t len_bytes)
{
    gni_post_descriptor_t descr = { .type = GNI_POST_FMA_GET,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
                                    .local_addr = (uint64_t)pair->in,
                                    .local_mem_hndl = pair->memory,
                                    .remote_addr = (uint64_t)pair->peer_out,
                                    .remote_mem_hndl = pair->peer_memory,
                                    .length = len_bytes };

    EX_GNI(GNI_PostFma(pair->ep, &descr));
    ex_wait_post(pair->src_cq, &descr);
}

/* Us of a get on the ping side; pong provides the data. */
static double get_us(struct pair *pair, size_t len_bytes, int n_iterations)
{
    uint32_t seed = (uint32_t)len_bytes + 2;
    double start_us;

    if (!pair->is_ping)
        ex_pattern_fill(pair->out, len_bytes, seed);
    memset(pair->in, 0, len_bytes);
    ex_barrier();
    if (pair->is_ping) {
        get_fma(pair, len_bytes);
        check_pattern(pair, len_bytes, seed, "FMA get");
    }
    start_us = ex_time_us();
    for (int i = 0; pair->is_ping && i < n_iterations; i++)
        get_fma(pair, len_bytes);
    start_us = ex_time_us() - start_us;
    ex_barrier();
    return start_us / n_iterations;
}

/* n_posts transfers, at most WINDOW of them outstanding. */
static double stream_bte_us(struct pair *pair, gni_post_type_t type, size_t len_bytes, int n_posts)
{
    static gni_post_descriptor_t descr[WINDOW];
    gni_post_descriptor_t *done = NULL;
    int posted = 0, completed = 0;
    double start_us = ex_time_us();

    while (completed < n_posts) {
        if (posted < n_posts && posted - completed < WINDOW) {
            /* Completions may come in another order than posts: take the descriptor that came back. */
            gni_post_descriptor_t *next = posted < WINDOW ? &descr[posted] : done;

            memset(next, 0, sizeof(*next));
            next->type = type;
            next->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
            next->dlvr_mode = GNI_DLVMODE_PERFORMANCE;
            next->local_addr = (uint64_t)(type == GNI_POST_RDMA_PUT ? pair->out : pair->in);
            next->local_mem_hndl = pair->memory;
            next->remote_addr = (uint64_t)(type == GNI_POST_RDMA_PUT ? pair->peer_in : pair->peer_out);
            next->remote_mem_hndl = pair->peer_memory;
            next->length = len_bytes;
            next->src_cq_hndl = pair->src_cq;
            EX_GNI(GNI_PostRdma(pair->ep, next));
            posted++;
            continue;
        }
        EX_GNI(GNI_GetCompleted(pair->src_cq, ex_wait_event(pair->src_cq), &done));
        completed++;
    }
    return ex_time_us() - start_us;
}

/* Returns MB/s on the ping side, 0 on the pong side, which only provides and checks data. */
static double bandwidth_mb_s(struct pair *pair, gni_post_type_t type, size_t len_bytes, int n_posts)
{
    uint32_t seed = (uint32_t)(len_bytes * 2 + type);
    double taken_us = 0;

    ex_pattern_fill(pair->out, len_bytes, seed);
    memset(pair->in, 0, len_bytes);
    ex_barrier();
    if (pair->is_ping)
        taken_us = stream_bte_us(pair, type, len_bytes, n_posts);
    ex_barrier();
    if (type == GNI_POST_RDMA_PUT && !pair->is_ping)
        check_pattern(pair, len_bytes, seed, "BTE put");
    if (type == GNI_POST_RDMA_GET && pair->is_ping)
        check_pattern(pair, len_bytes, seed, "BTE get");
    return pair->is_ping ? (double)len_bytes * n_posts / taken_us : 0;
}

static void pair_open(struct pair *pair, const struct ex_job *job)
{
    struct window_info mine = { 0 }, *all;

    memset(pair, 0, sizeof(*pair));
    pair->is_ping = job->rank % 2 == 0;
    pair->peer = job->rank ^ 1;
    pair->in = ex_alloc(2 * BTE_MAX);
    pair->out = pair->in + BTE_MAX;
    EX_GNI(GNI_CqCreate(job->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &pair->src_cq));
    EX_GNI(GNI_CqCreate(job->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &pair->dst_cq));
    EX_GNI(GNI_MemRegister(job->nic, (uint64_t)pair->in, 2 * BTE_MAX, pair->dst_cq, GNI_MEM_READWRITE, (uint32_t)-1,
                           &pair->memory));

    mine.memory = pair->memory;
    mine.in = pair->in;
    mine.out = pair->out;
    all = ex_alloc(sizeof(*all) * (size_t)job->n_ranks);
    ex_allgather(job, &mine, all, sizeof(mine));
    if (pair->peer < job->n_ranks) {
        pair->peer_memory = all[pair->peer].memory;
        pair->peer_in = all[pair->peer].in;
        pair->peer_out = all[pair->peer].out;
        pair->ep = ex_connect(job, pair->src_cq, pair->peer);
    }
    free(all);
}

static void pair_close(struct pair *pair, const struct ex_job *job)
{
    ex_barrier();
    if (pair->ep)
        ex_disconnect(pair->ep, pair->src_cq);
    EX_GNI(GNI_MemDeregister(job->nic, &pair->memory));
    EX_GNI(GNI_CqDestroy(pair->dst_cq));
    EX_GNI(GNI_CqDestroy(pair->src_cq));
    free(pair->in);
}

static void usage(FILE *to)
{
    fputs("usage: gni_pingpong [-i ITERATIONS] [-m MAX_SIZE]\n"
          "  -i ITERATIONS  round trips of each small size (default 10000); large sizes use fewer\n"
          "  -m MAX_SIZE    largest transfer in bytes (default 4194304)\n"
          "example: emunic run -n 2 --ppn 1 -- gni_pingpong -i 1000\n",
          to);
}

/* An idle last rank has to meet the others in their barriers: `n` for each size. */
static void meet(int n)
{
    while (n-- > 0)
        ex_barrier();
}

static void show_latencies(struct pair *pair, const struct ex_job *job, size_t max_size, int n_iterations)
{
    if (job->rank == 0)
        printf("# FMA put with remote event, FMA get\n%12s %14s %14s\n", "bytes", "latency us", "get us");
    for (size_t size = 8; size <= FMA_MAX && size <= max_size; size *= 2) {
        double taken_us, got_us;

        if (!pair->ep) {
            meet(4);
            continue;
        }
        taken_us = latency_us(pair, size, n_iterations);
        got_us = get_us(pair, size, n_iterations);
        if (job->rank == 0)
            printf("%12zu %14.3f %14.3f\n", size, taken_us, got_us);
    }
}

static void show_bandwidths(struct pair *pair, const struct ex_job *job, size_t max_size, int n_iterations)
{
    if (job->rank == 0)
        printf("# BTE, %d transfers outstanding\n%12s %14s %14s\n", WINDOW, "bytes", "put MB/s", "get MB/s");
    for (size_t size = BTE_MIN; size <= max_size; size *= 2) {
        /* About the same number of bytes for every size, but never less than one window. */
        int n_posts = (int)((size_t)n_iterations * BTE_MIN / size);
        double put, get;

        if (!pair->ep) {
            meet(4);
            continue;
        }
        if (n_posts < 2 * WINDOW)
            n_posts = 2 * WINDOW;
        put = bandwidth_mb_s(pair, GNI_POST_RDMA_PUT, size, n_posts);
        get = bandwidth_mb_s(pair, GNI_POST_RDMA_GET, size, n_posts);
        if (job->rank == 0)
            printf("%12zu %14.1f %14.1f\n", size, put, get);
    }
}

int main(int argc, char **argv)
{
    int n_iterations = 10000, option;
    size_t max_size = BTE_MAX;
    struct ex_job job;
    struct pair pair;

    while ((option = getopt(argc, argv, "i:m:h")) != -1) {
        if (option == 'i') {
            n_iterations = atoi(optarg);
        } else if (option == 'm') {
            max_size = strtoul(optarg, NULL, 0);
        } else {
            usage(option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
    }
    if (n_iterations < 1 || max_size < 8 || max_size > BTE_MAX || optind != argc) {
        fputs("gni_pingpong: iterations must be at least 1 and the size 8 to 4194304; try -h\n", stderr);
        return 2;
    }

    ex_start(&job, 0);
    EX_EXPECT(job.n_ranks >= 2, "needs at least 2 ranks");
    pair_open(&pair, &job);
    if (job.rank == 0)
        printf("# rank 0 (nic %u) and rank 1 (nic %u), %d pairs at a time\n", job.peers[0].nic_addr,
               job.peers[1].nic_addr, job.n_ranks / 2);
    show_latencies(&pair, &job, max_size, n_iterations);
    show_bandwidths(&pair, &job, max_size, n_iterations);
    pair_close(&pair, &job);
    ex_stop(&job);
    return 0;
}
