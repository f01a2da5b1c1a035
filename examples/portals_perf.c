/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency and bandwidth of put, get and bidirectional put, as PortalPerf measured them on the XT3.
 *
 *   portals_perf [-i ITERATIONS] [-m MAX_SIZE]
 *
 * Ranks 2i and 2i+1 form a pair; an odd last rank only takes part in the barriers. Rank 0 prints the figures of the
 * first pair.
 *
 * Both sides attach one descriptor, managed by the initiator, behind a one-entry match list.
 *
 * - put: a ping-pong of puts, each answered when its PUT_END event is there; half a round trip.
 * - get: one get after the other, each waited for until REPLY_END.
 * - both: both sides put at once and wait for the other's PUT_END; the time of one such exchange.
 *
 * Bandwidth, above 4 KiB: WINDOW puts with acknowledgement, or gets, under way. Every size is checked before it is
 * measured: the message carries a pattern of its own in each direction.
 */
#include "examples/portals_common.h"

#include <unistd.h>

#define PT         37u
#define BITS       0x1234u
#define WINDOW     16
#define LARGE      4096u
#define EQ_ENTRIES 1024

/* User data up to 12 bytes go in the header packet of a SeaStar. 100 kB and 2 MB are sizes of the source. */
static const size_t latency_bytes[] = { 0,  1,   2,   4,   8,    12,   13,   16,     32,
                                        64, 128, 256, 512, 1024, 2048, 4096, 100000, 2000000 };

struct pair {
    struct ex_job job;
    int peer;
    int is_ping;
    size_t max_bytes;
    char *in;
    char *out;
    ptl_handle_eq_t target_eq; /* the peer has put here */
    ptl_handle_eq_t own_eq;    /* our calls */
};

static ptl_handle_md_t bind_buffer(struct pair *p, char *memory, size_t len_bytes)
{
    ptl_md_t md = { .start = memory,
                    .length = len_bytes,
                    .threshold = PTL_MD_THRESH_INF,
                    .eq_handle = p->own_eq,
                    .options = PTL_MD_EVENT_START_DISABLE };
    ptl_handle_md_t handle;

    EX_PTL(PtlMDBind(p->job.ni, md, PTL_RETAIN, &handle));
    return handle;
}

static void put(struct pair *p, ptl_handle_md_t md, ptl_ack_req_t ack)
{
    EX_PTL(PtlPut(md, ack, p->job.ids[p->peer], PT, 0, BITS, 0, 0));
}

static void get(struct pair *p, ptl_handle_md_t md)
{
    EX_PTL(PtlGet(md, p->job.ids[p->peer], PT, 0, BITS, p->max_bytes));
}

/* Which way a size is tried. Each does one message, or one in each direction. */
static void ping_pong(struct pair *p, ptl_handle_md_t md)
{
    if (p->is_ping)
        put(p, md, PTL_NOACK_REQ);
    ex_wait_for(p->target_eq, PTL_EVENT_PUT_END);
    if (!p->is_ping)
        put(p, md, PTL_NOACK_REQ);
    ex_wait_for(p->own_eq, PTL_EVENT_SEND_END);
}

static void both_put(struct pair *p, ptl_handle_md_t md)
{
    put(p, md, PTL_NOACK_REQ);
    ex_wait_for(p->target_eq, PTL_EVENT_PUT_END);
    ex_wait_for(p->own_eq, PTL_EVENT_SEND_END);
}

static void one_get(struct pair *p, ptl_handle_md_t md)
{
    if (!p->is_ping)
        return;
    get(p, md);
    ex_wait_for(p->own_eq, PTL_EVENT_REPLY_END);
}

/* Checks what a round brings, then times n of them: us each. */
static double time_of(struct pair *p, size_t len_bytes, int n, void (*round)(struct pair *p, ptl_handle_md_t md),
                      int is_get)
{
    uint32_t seed = (uint32_t)len_bytes * 4 + (uint32_t)p->is_ping;
    ptl_handle_md_t md = bind_buffer(p, is_get ? p->in : p->out, len_bytes);
    double start_us;

    ex_fill(p->out, len_bytes, seed);
    memset(p->in, 0, len_bytes);
    ex_barrier();
    round(p, md);
    if (!is_get || p->is_ping)
        EX_EXPECT(ex_is_filled(p->in, len_bytes, seed ^ 1));
    ex_barrier();
    start_us = ex_time_us();
    for (int i = 0; i < n; i++)
        round(p, md);
    start_us = ex_time_us() - start_us;
    ex_barrier();
    EX_PTL(PtlMDUnlink(md));
    return start_us / n;
}

/* MB/s with WINDOW calls under way; both sides send when is_both. 0 on a side that does not. */
static double bandwidth(struct pair *p, size_t len_bytes, int n, int is_get, int is_both)
{
    ptl_handle_md_t md = bind_buffer(p, is_get ? p->in : p->out, len_bytes);
    int started = 0;
    int done = 0;
    double start_us;

    ex_barrier();
    start_us = ex_time_us();
    while ((p->is_ping || is_both) && done < n) {
        if (started < n && started - done < WINDOW) {
            if (is_get)
                get(p, md);
            else
                put(p, md, PTL_ACK_REQ);
            started++;
            continue;
        }
        ex_wait_for(p->own_eq, is_get ? PTL_EVENT_REPLY_END : PTL_EVENT_ACK);
        done++;
    }
    start_us = ex_time_us() - start_us;
    ex_barrier();
    EX_PTL(PtlMDUnlink(md));
    return done > 0 ? (double)len_bytes * done * (is_both ? 2 : 1) / start_us : 0;
}

/* Takes what the peer's last measurement left. */
static void forget_events(struct pair *p)
{
    ptl_event_t event;
    int rc;

    while ((rc = PtlEQGet(p->target_eq, &event)) != PTL_EQ_EMPTY)
        EX_EXPECT(rc == PTL_OK || rc == PTL_EQ_DROPPED);
}

static void pair_open(struct pair *p)
{
    ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };
    ptl_md_t md = { .length = 2 * p->max_bytes,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE };
    ptl_handle_me_t me;
    ptl_handle_md_t handle;

    p->is_ping = p->job.rank % 2 == 0;
    p->peer = p->job.rank ^ 1;
    p->in = aligned_alloc(4096, 2 * p->max_bytes); /* the peer puts into the first half and gets from the second */
    EX_EXPECT(p->in);
    memset(p->in, 0, 2 * p->max_bytes);
    p->out = p->in + p->max_bytes;
    EX_PTL(PtlEQAlloc(p->job.ni, EQ_ENTRIES, PTL_EQ_HANDLER_NONE, &p->target_eq));
    EX_PTL(PtlEQAlloc(p->job.ni, EQ_ENTRIES, PTL_EQ_HANDLER_NONE, &p->own_eq));
    md.start = p->in;
    md.eq_handle = p->target_eq;
    EX_PTL(PtlMEAttach(p->job.ni, PT, anybody, BITS, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    EX_PTL(PtlMDAttach(me, md, PTL_RETAIN, &handle));
    ex_barrier();
}

/* Ranks without a peer take part in the barriers only: three of each measurement of latency, two of bandwidth. */
static void measure_latency(struct pair *p, int has_peer, size_t len_bytes, int n)
{
    double put_us = 0, get_us = 0, both_us = 0;

    for (int what = 0; what < 3; what++) {
        if (!has_peer) {
            for (int i = 0; i < 3; i++)
                ex_barrier();
            continue;
        }
        forget_events(p);
        if (what == 0)
            put_us = time_of(p, len_bytes, n, ping_pong, 0) / 2;
        else if (what == 1)
            get_us = time_of(p, len_bytes, n, one_get, 1);
        else
            both_us = time_of(p, len_bytes, n, both_put, 0);
    }
    if (p->job.rank == 0)
        printf("%10zu %12.3f %12.3f %12.3f\n", len_bytes, put_us, get_us, both_us);
}

static void measure_bandwidth(struct pair *p, int has_peer, size_t len_bytes, int n)
{
    double mb_s[3] = { 0, 0, 0 };

    for (int what = 0; what < 3; what++) {
        if (!has_peer) {
            ex_barrier();
            ex_barrier();
            continue;
        }
        mb_s[what] = bandwidth(p, len_bytes, n, what == 1, what == 2);
        forget_events(p);
    }
    if (p->job.rank == 0)
        printf("%10zu %12.1f %12.1f %12.1f\n", len_bytes, mb_s[0], mb_s[1], mb_s[2]);
}

static void measure(struct pair *p, int n)
{
    int has_peer = p->peer < p->job.n_ranks;

    if (p->job.rank == 0)
        printf("%10s %12s %12s %12s\n", "bytes", "put, us", "get, us", "both put, us");
    for (size_t i = 0; i < sizeof(latency_bytes) / sizeof(latency_bytes[0]); i++) {
        size_t len_bytes = latency_bytes[i];

        if (len_bytes <= p->max_bytes)
            measure_latency(p, has_peer, len_bytes, len_bytes > LARGE ? n / 10 + 1 : n);
    }
    if (p->job.rank == 0)
        printf("%10s %12s %12s %12s\n", "bytes", "put, MB/s", "get, MB/s", "both, MB/s");
    for (size_t len_bytes = LARGE; len_bytes <= p->max_bytes; len_bytes *= 4)
        measure_bandwidth(p, has_peer, len_bytes, n / 10 + 1);
}

int main(int argc, char **argv)
{
    struct pair p = { .max_bytes = 4u << 20 };
    int n = 1000;
    int option;

    while ((option = getopt(argc, argv, "hi:m:")) != -1) {
        if (option == 'i' && atoi(optarg) > 0) {
            n = atoi(optarg);
        } else if (option == 'm' && atol(optarg) > 0) {
            p.max_bytes = ((size_t)atol(optarg) + 4095) & ~(size_t)4095;
        } else {
            fprintf(option == 'h' ? stdout : stderr, "usage: portals_perf [-i ITERATIONS] [-m MAX_SIZE]\n");
            return option == 'h' ? 0 : 2;
        }
    }
    ex_start(&p.job);
    pair_open(&p);
    measure(&p, n);
    ex_stop(&p.job);
    free(p.in);
    return 0;
}
