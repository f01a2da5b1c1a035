/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Portals costs, between two ranks.
 *
 *   portals_put0_half_round_trip   puts of no bytes back and forth through a match list of one entry, PUT_END events
 *                                  taken: half of one turn
 *   portals_put8_half_round_trip   likewise with 8 bytes
 *   portals_get8_latency           one get, waited for
 *   put_bandwidth/SIZE             puts of SIZE bytes, the acknowledgement of each waited for before the next
 *   portals_match1000_time         what an 8-byte put costs more when its entry is the last of 1000 than when it is the
 *                                  only one
 *   portals_match10000_time        likewise of 10000
 *   portals_match100000_time       likewise of 100000
 *   portals_last1000_put           8-byte put without events to the last of 1000 entries
 *   portals_last100000_put         likewise of 100000
 *   list_walk1000_time             a plain list in C of as many entries with the same tests, walked to the last one
 *   list_walk10000_time
 *   list_walk100000_time
 *
 * The measuring rank does all of a put itself on the direct path, matching included; elsewhere the matching figures
 * mean nothing and are left out (-r).
 */
#include <stdbool.h>
#include <unistd.h>

#include "examples/portals_common.h"
#include "tests/bench/common.h"

#define PT         5u
#define LIST_PT    6u /* and behind it: lists of all lengths */
#define BITS       0x77u
#define WARM_UP    1000
#define MOST_BYTES BENCH_SIZE_MAX

#define N_LISTS 4u

static const long lengths[N_LISTS] = { 1, 1000, 10000, 100000 };

static struct ex_job job;
static ptl_handle_eq_t target_eq;
static ptl_handle_eq_t own_eq;
static ptl_process_id_t peer;
static char *target_memory;
static char *source_memory;

static ptl_handle_md_t new_md(size_t len_bytes, ptl_handle_eq_t eq)
{
    ptl_md_t md = { .start = source_memory,
                    .length = len_bytes,
                    .threshold = PTL_MD_THRESH_INF,
                    .eq_handle = eq,
                    .options = PTL_MD_EVENT_START_DISABLE };
    ptl_handle_md_t mdh;

    EX_PTL(PtlMDBind(job.ni, md, PTL_RETAIN, &mdh));
    return mdh;
}

/* Puts whose end nobody has waited for may still be emunic's to do. */
static void end_md(ptl_handle_md_t md)
{
    int rc;

    while ((rc = PtlMDUnlink(md)) == PTL_MD_IN_USE)
        ;
    EX_PTL(rc);
}

static void new_entry(ptl_pt_index_t pt, ptl_match_bits_t bits, size_t len_bytes, ptl_handle_eq_t eq)
{
    ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
    ptl_md_t md = { .start = target_memory,
                    .length = len_bytes,
                    .threshold = PTL_MD_THRESH_INF,
                    .eq_handle = eq,
                    .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE };
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

    EX_PTL(PtlMEAttach(job.ni, pt, anybody, bits, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    EX_PTL(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
}

static void ping_pong(ptl_handle_md_t md, long n)
{
    for (long i = 0; i < n; i++) {
        if (job.rank == 0)
            EX_PTL(PtlPut(md, PTL_NOACK_REQ, peer, PT, 0, BITS, 0, 0));
        (void)ex_wait_for(target_eq, PTL_EVENT_PUT_END);
        if (job.rank == 1)
            EX_PTL(PtlPut(md, PTL_NOACK_REQ, peer, PT, 0, BITS, 0, 0));
    }
}

static void measure_put_latency(const char *name, size_t len_bytes, long n)
{
    ptl_handle_md_t md = new_md(len_bytes, PTL_EQ_NONE);
    double start_us;

    ex_barrier();
    ping_pong(md, WARM_UP);
    start_us = bench_now_us();
    ping_pong(md, n);
    if (job.rank == 0)
        bench_print(name, (bench_now_us() - start_us) / (double)n / 2, "us");
    ex_barrier();
    end_md(md);
}

static void measure_get_latency(long n)
{
    ptl_handle_md_t md = new_md(8, own_eq);
    double start_us = 0;

    for (long i = -WARM_UP; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        EX_PTL(PtlGet(md, peer, PT, 0, BITS, 0));
        (void)ex_wait_for(own_eq, PTL_EVENT_REPLY_END);
    }
    bench_print("portals_get8_latency", (bench_now_us() - start_us) / (double)n, "us");
    end_md(md);
}

static void measure_bandwidth(const struct bench_options *options)
{
    for (size_t len = BENCH_SIZE_MIN; len <= BENCH_SIZE_MAX; len *= BENCH_SIZE_STEP) {
        ptl_handle_md_t md = new_md(len, own_eq);
        long rounds = bench_rounds(options, len);
        double start_us = 0;

        for (long i = -rounds / 10 - 1; i < rounds; i++) {
            if (i == 0)
                start_us = bench_now_us();
            EX_PTL(PtlPut(md, PTL_ACK_REQ, peer, PT, 0, BITS, 0, 0));
            (void)ex_wait_for(own_eq, PTL_EVENT_ACK);
        }
        bench_print_sized("put_bandwidth", len, (double)len * (double)rounds / (bench_now_us() - start_us) * 1e-3,
                          "GB/s");
        end_md(md);
    }
}

/* ---- matching ---- */

/* A put to the last entry of a list, without any event. */
static double put_time_us(unsigned list, long n)
{
    ptl_handle_md_t md = new_md(8, PTL_EQ_NONE);
    double start_us = 0;
    double time_us;

    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        EX_PTL(PtlPut(md, PTL_NOACK_REQ, peer, LIST_PT + list, 0, (ptl_match_bits_t)lengths[list], 0, 0));
    }
    time_us = (bench_now_us() - start_us) / (double)n;
    end_md(md);
    return time_us;
}

struct node {
    struct node *next;
    ptl_process_id_t id;
    ptl_match_bits_t bits;
    ptl_match_bits_t ignore;
    void *md;
};

static const struct node *find(const struct node *at, ptl_process_id_t from, ptl_match_bits_t bits)
{
    for (; at; at = at->next) {
        if (at->md && (at->id.nid == PTL_NID_ANY || at->id.nid == from.nid) &&
            (at->id.pid == PTL_PID_ANY || at->id.pid == from.pid) && ((at->bits ^ bits) & ~at->ignore) == 0)
            return at;
    }
    return NULL;
}

static double walk_time_us(long length, long n)
{
    struct node *nodes = calloc((size_t)length, sizeof(*nodes));
    const struct node *volatile found = NULL;
    double start_us = 0;

    EX_EXPECT(nodes);
    for (long i = 0; i < length; i++)
        nodes[i] = (struct node){ .next = i + 1 < length ? &nodes[i + 1] : NULL,
                                  .id = { PTL_NID_ANY, PTL_PID_ANY },
                                  .bits = (ptl_match_bits_t)i + 1,
                                  .md = nodes };
    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        found = find(nodes, peer, (ptl_match_bits_t)length);
    }
    EX_EXPECT(found == &nodes[length - 1]);
    start_us = (bench_now_us() - start_us) / (double)n;
    free(nodes);
    return start_us;
}

static void open_lists(void)
{
    for (unsigned list = 0; list < N_LISTS; list++) {
        for (long i = 1; i <= lengths[list]; i++)
            new_entry(LIST_PT + list, (ptl_match_bits_t)i, 8, PTL_EQ_NONE);
    }
}

/* All lists in turn, so that what else the machine does meets all of them. The least of each. */
static void measure_puts(long n, double *times_us)
{
    for (unsigned turn = 0; turn < 5; turn++) {
        for (unsigned list = 0; list < N_LISTS; list++) {
            double time_us = put_time_us(list, n / 5 + 10);

            times_us[list] = turn == 0 || time_us < times_us[list] ? time_us : times_us[list];
        }
    }
}

static void print_of_list(const char *format, unsigned list, double time_us)
{
    char name[64];

    snprintf(name, sizeof(name), format, lengths[list]);
    bench_print(name, time_us, "us");
}

static void measure_matching(long n)
{
    double times_us[N_LISTS];

    measure_puts(n, times_us);
    for (unsigned list = 1; list < N_LISTS; list++) {
        double more_us = times_us[list] - times_us[0];

        print_of_list("portals_match%ld_time", list, more_us > 0 ? more_us : 0);
        print_of_list("list_walk%ld_time", list, walk_time_us(lengths[list], n / lengths[list] * 100 + 10));
    }
    print_of_list("portals_last%ld_put", 1, times_us[1]);
    print_of_list("portals_last%ld_put", 3, times_us[3]);
}

static void open_all(void)
{
    target_memory = aligned_alloc(4096, MOST_BYTES);
    source_memory = aligned_alloc(4096, MOST_BYTES);
    EX_EXPECT(target_memory && source_memory);
    memset(target_memory, 1, MOST_BYTES);
    memset(source_memory, 2, MOST_BYTES);
    peer = job.ids[job.rank ^ 1];
    EX_PTL(PtlEQAlloc(job.ni, 1024, PTL_EQ_HANDLER_NONE, &target_eq));
    EX_PTL(PtlEQAlloc(job.ni, 1024, PTL_EQ_HANDLER_NONE, &own_eq));
    new_entry(PT, BITS, MOST_BYTES, target_eq);
    open_lists();
    ex_barrier();
}

int main(int argc, char **argv)
{
    bool is_routed = argc > 1 && strcmp(argv[1], "-r") == 0;
    struct bench_options options = bench_options(argc - is_routed, argv + is_routed);

    ex_start(&job);
    EX_EXPECT(job.n_ranks == 2);
    if (options.is_pinned)
        bench_pin(job.rank);
    open_all();
    measure_put_latency("portals_put0_half_round_trip", 0, options.n);
    measure_put_latency("portals_put8_half_round_trip", 8, options.n);
    if (job.rank == 0) {
        measure_get_latency(options.n);
        measure_bandwidth(&options);
        if (!is_routed)
            measure_matching(options.n);
    }
    ex_stop(&job);
    free(target_memory);
    free(source_memory);
    return 0;
}
