/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GNI between two ranks on two hosts, beside libfabric by itself between the same two processes, in one run:
 *
 *   emunic run --hosts h0,h1 -n 2 -- hosts_pair [-p] [-n N]
 *
 *   hosts_put8_half_round_trip     8 bytes put into each other's memory, back and forth, seen by looking at the memory
 *   bare_put8_half_round_trip      the same by libfabric's writes
 *   bare_message8_half_round_trip  8 bytes by its messages
 *   hosts_put8_rate                8-byte puts, WINDOW under way
 *   hosts_put_bandwidth/SIZE       block transfers, two under way, and gets
 *   bare_put_bandwidth/SIZE        libfabric's writes and reads of that size, as many under way
 *   hosts_*_ratio                  ours by libfabric's: of half round trips (messages), of bandwidths
 *
 * Rounds of both alternate, and the best of each is printed, because other programs share the processors.
 * EMU_BENCH_PROVIDER: another provider than tcp;ofi_rxm, which `emunic run --provider` must be told as well.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "examples/common.h"
#include "tests/bench/bare.h"
#include "tests/bench/common.h"

#define LONG_BYTES  (4u << 20)
#define WINDOW      64u
#define LONG_WINDOW 2u
#define TIMES       5
#define WARM_UP     100

enum figure { PUT8, BARE_PUT8, BARE_MESSAGE8, RATE8, PUT, BARE_PUT, GET, BARE_GET, FIGURES };

struct side {
    struct ex_job job;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    volatile uint64_t *mem; /* LONG_BYTES to write to, LONG_BYTES to read from */
    gni_mem_handle_t hndl;
    uint64_t turn; /* number of the 8 bytes put last, back and forth; what else moves is older */
    uint64_t peer_addr;
    gni_mem_handle_t peer_hndl;
    struct bare bare;
    void *bare_mem;
};

static void *map_bytes(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    EX_EXPECT(p != MAP_FAILED, "no memory for %zu bytes", bytes);
    memset(p, 0, bytes);
    return p;
}

static void open_side(struct side *s, const struct bench_options *options)
{
    struct {
        uint64_t addr;
        gni_mem_handle_t hndl;
        struct bare_name bare;
    } mine = { 0 }, all[2], *theirs;

    ex_start(&s->job, 0);
    EX_EXPECT(s->job.n_ranks == 2, "this benchmark takes 2 ranks, not %d", s->job.n_ranks);
    if (options->is_pinned)
        bench_pin(s->job.rank);
    s->mem = map_bytes(2 * LONG_BYTES);
    s->bare_mem = map_bytes(LONG_BYTES);
    EX_GNI(GNI_CqCreate(s->job.nic, 1024, 0, GNI_CQ_NOBLOCK, NULL, NULL, &s->cq));
    EX_GNI(GNI_MemRegister(s->job.nic, (uint64_t)(uintptr_t)s->mem, 2 * LONG_BYTES, NULL, GNI_MEM_READWRITE,
                           (uint32_t)-1, &s->hndl));
    mine.addr = (uint64_t)(uintptr_t)s->mem;
    mine.hndl = s->hndl;
    bare_open(&s->bare, getenv("EMU_BENCH_PROVIDER"), NULL, s->bare_mem, LONG_BYTES, &mine.bare);
    ex_allgather(&s->job, &mine, all, sizeof(mine));
    theirs = &all[1 - s->job.rank];
    s->peer_addr = theirs->addr;
    s->peer_hndl = theirs->hndl;
    bare_join(&s->bare, &theirs->bare);
    s->ep = ex_connect(&s->job, s->cq, 1 - s->job.rank);
}

static gni_post_descriptor_t post_of(const struct side *s, gni_post_type_t type, uint64_t bytes)
{
    return (gni_post_descriptor_t){ .type = type,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .length = bytes,
                                    .local_addr = (uint64_t)(uintptr_t)s->mem + LONG_BYTES,
                                    .local_mem_hndl = s->hndl,
                                    .remote_addr = s->peer_addr,
                                    .remote_mem_hndl = s->peer_hndl,
                                    .src_cq_hndl = s->cq };
}

static void wait_one(const struct side *s)
{
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    gni_return_t rc;

    do
        rc = GNI_CqGetEvent(s->cq, &entry);
    while (rc == GNI_RC_NOT_DONE);
    EX_GNI(rc);
    EX_GNI(GNI_GetCompleted(s->cq, entry, &done));
}

static void ping_pong(struct side *s, long n)
{
    gni_post_descriptor_t d = post_of(s, GNI_POST_FMA_PUT, 8);
    volatile uint64_t *from = s->mem + LONG_BYTES / 8;

    for (long i = 0; i < n; i++) {
        *from = ++s->turn;
        if (s->job.rank == 0)
            EX_GNI(GNI_PostFma(s->ep, &d));
        while (s->mem[0] != s->turn)
            sched_yield();
        if (s->job.rank == 1)
            EX_GNI(GNI_PostFma(s->ep, &d));
        wait_one(s);
    }
}

static void stream(struct side *s, gni_post_type_t type, uint64_t bytes, unsigned window, long n)
{
    gni_post_descriptor_t d[WINDOW];
    long posted = 0;

    for (long done = 0; done < n; done++) {
        for (; posted < n && posted - done < (long)window; posted++) {
            gni_post_descriptor_t *next = &d[posted % window];

            *next = post_of(s, type, bytes);
            EX_GNI(type == GNI_POST_FMA_PUT ? GNI_PostFma(s->ep, next) : GNI_PostRdma(s->ep, next));
        }
        wait_one(s);
    }
}

/* Of both sides, or of rank 0 alone while the other one serves. */
static void work(struct side *s, enum figure figure, long n)
{
    int rank = s->job.rank;
    bool is_bare = figure == BARE_PUT || figure == BARE_GET;

    if (figure == PUT8) {
        ping_pong(s, n);
    } else if (figure == BARE_PUT8) {
        bare_put_pingpong(&s->bare, rank, n);
    } else if (figure == BARE_MESSAGE8) {
        bare_message_pingpong(&s->bare, rank, n);
    } else if (rank == 0 && is_bare) {
        bare_stream(&s->bare, figure == BARE_PUT, LONG_BYTES, LONG_WINDOW, n);
        bare_dismiss(&s->bare);
    } else if (is_bare) {
        bare_serve(&s->bare);
    } else if (rank == 0 && figure == RATE8) {
        stream(s, GNI_POST_FMA_PUT, 8, WINDOW, n);
    } else if (rank == 0) {
        stream(s, figure == PUT ? GNI_POST_RDMA_PUT : GNI_POST_RDMA_GET, LONG_BYTES, LONG_WINDOW, n);
    }
}

/* Microseconds for one. The other rank of a one-sided measurement waits in the barrier, which uses no processor. */
static double time_of(struct side *s, enum figure figure, long n, long n_warm_up)
{
    double start_us;

    ex_barrier();
    work(s, figure, n_warm_up);
    start_us = bench_now_us();
    work(s, figure, n);
    start_us = (bench_now_us() - start_us) / (double)n;
    ex_barrier();
    return start_us;
}

static void print_all(const double best[FIGURES])
{
    bench_print("hosts_put8_half_round_trip", best[PUT8] / 2, "us");
    bench_print("bare_put8_half_round_trip", best[BARE_PUT8] / 2, "us");
    bench_print("bare_message8_half_round_trip", best[BARE_MESSAGE8] / 2, "us");
    bench_print("hosts_put8_rate", 1 / best[RATE8], "M/s");
    bench_print_sized("hosts_put_bandwidth", LONG_BYTES, LONG_BYTES / best[PUT] / 1000, "GB/s");
    bench_print_sized("bare_put_bandwidth", LONG_BYTES, LONG_BYTES / best[BARE_PUT] / 1000, "GB/s");
    bench_print_sized("hosts_get_bandwidth", LONG_BYTES, LONG_BYTES / best[GET] / 1000, "GB/s");
    bench_print_sized("bare_get_bandwidth", LONG_BYTES, LONG_BYTES / best[BARE_GET] / 1000, "GB/s");
    bench_print("hosts_put8_ratio", best[PUT8] / best[BARE_MESSAGE8], "x");
    bench_print_sized("hosts_put_bandwidth_ratio", LONG_BYTES, best[BARE_PUT] / best[PUT], "x");
    bench_print_sized("hosts_get_bandwidth_ratio", LONG_BYTES, best[BARE_GET] / best[GET], "x");
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    double best[FIGURES] = { 0 };
    struct side s = { 0 };

    open_side(&s, &options);
    for (int i = 0; i < TIMES; i++) {
        for (enum figure figure = 0; figure < FIGURES; figure++) {
            bool is_long = figure >= PUT;
            double us = time_of(&s, figure, is_long ? bench_rounds(&options, LONG_BYTES) : options.n / TIMES + 1,
                                is_long ? LONG_WINDOW : WARM_UP);

            if (best[figure] == 0 || us < best[figure])
                best[figure] = us;
        }
    }
    if (s.job.rank == 0)
        print_all(best);
    ex_disconnect(s.ep, s.cq);
    EX_GNI(GNI_MemDeregister(s.job.nic, &s.hndl));
    EX_GNI(GNI_CqDestroy(s.cq));
    ex_stop(&s.job);
    return 0;
}
