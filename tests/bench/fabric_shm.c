/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided operations and messages of libfabric's shm provider between two processes.
 *
 *   put8_half_round_trip       fi_inject_write of 8 bytes back and forth; the target looks at its memory and drives its
 *                              provider, which needs that
 *   put8_rate                  a stream of fi_write, WINDOW under way, completions consumed
 *   get8_latency               one fi_read, waited for
 *   fadd8_latency              one fi_fetch_atomic, waited for
 *   message8_half_round_trip   fi_send and fi_recv of 8 bytes back and forth
 *   put_bandwidth/SIZE         fi_write with delivery complete, one under way
 *
 * The two processes are made by fork() and tell each other addresses through a shared page. While one drives one-sided
 * operations the other drives its provider.
 */
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/common.h"

#define VERSION        FI_VERSION(1, 17)
#define WINDOW         64
#define NAME_MAX_BYTES 256
#define REMOTE_OFFSET  64u

/* What the processes tell each other. */
struct meeting {
    _Atomic int arrived;
    _Atomic int is_done; /* by rank 0; rank 1 drives its provider until then */
    struct {
        char name[NAME_MAX_BYTES];
        uint64_t addr;
        uint64_t key;
    } rank[2];
};

struct side {
    int rank;
    struct meeting *meeting;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fid_ep *ep;
    struct fid_mr *mr;
    char *mem; /* owned */
    void *desc;
    fi_addr_t peer;
    long n_complete; /* completions read and not yet waited for */
};

#define CHECK(call) check((call), #call)

static long check(long result, const char *call)
{
    if (result < 0) {
        fprintf(stderr, "%s: %s\n", call, fi_strerror((int)-result));
        exit(1);
    }
    return result;
}

/* Drives the provider. */
static void poll_cq(struct side *side)
{
    struct fi_cq_entry entries[WINDOW];
    long n = fi_cq_read(side->cq, entries, WINDOW);

    if (n != -FI_EAGAIN)
        side->n_complete += CHECK(n);
}

static void wait_one(struct side *side)
{
    while (side->n_complete == 0)
        poll_cq(side);
    side->n_complete--;
}

/* Repeat a call while the provider has no room. */
#define POST(side, call)                                                                                               \
    do {                                                                                                               \
        long posted_;                                                                                                  \
        while ((posted_ = (call)) == -FI_EAGAIN)                                                                       \
            poll_cq(side);                                                                                             \
        check(posted_, #call);                                                                                         \
    } while (0)

static void meet(struct side *side, int n_times)
{
    atomic_fetch_add(&side->meeting->arrived, 1);
    while (atomic_load(&side->meeting->arrived) < 2 * n_times)
        sched_yield();
}

static struct fi_info *find_provider(void)
{
    struct fi_info *hints = fi_allocinfo();
    struct fi_info *info;

    if (!hints)
        exit(1);
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->fabric_attr->prov_name = strdup("shm");
    CHECK(fi_getinfo(VERSION, NULL, NULL, 0, hints, &info));
    fi_freeinfo(hints);
    return info;
}

static void open_side(struct side *side)
{
    struct fi_info *info = find_provider();
    struct fi_cq_attr cq_attr = { .size = 1024, .format = FI_CQ_FORMAT_CONTEXT };
    struct fi_av_attr av_attr = { .type = FI_AV_UNSPEC, .count = 2 };
    size_t len = NAME_MAX_BYTES;
    int me = side->rank;

    CHECK(fi_fabric(info->fabric_attr, &side->fabric, NULL));
    CHECK(fi_domain(side->fabric, info, &side->domain, NULL));
    CHECK(fi_cq_open(side->domain, &cq_attr, &side->cq, NULL));
    CHECK(fi_av_open(side->domain, &av_attr, &side->av, NULL));
    CHECK(fi_endpoint(side->domain, info, &side->ep, NULL));
    CHECK(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
    CHECK(fi_ep_bind(side->ep, &side->av->fid, 0));
    CHECK(fi_enable(side->ep));

    side->mem = aligned_alloc(4096, BENCH_SIZE_MAX + 4096);
    if (!side->mem)
        exit(1);
    memset(side->mem, 0, BENCH_SIZE_MAX + 4096);
    CHECK(fi_mr_reg(side->domain, side->mem, BENCH_SIZE_MAX + 4096, FI_REMOTE_WRITE | FI_REMOTE_READ, 0,
                    (uint64_t)me + 1, 0, &side->mr, NULL));
    side->desc = fi_mr_desc(side->mr);

    CHECK(fi_getname(&side->ep->fid, side->meeting->rank[me].name, &len));
    side->meeting->rank[me].addr = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)side->mem : 0;
    side->meeting->rank[me].key = fi_mr_key(side->mr);
    meet(side, 1);
    if (fi_av_insert(side->av, side->meeting->rank[1 - me].name, 1, &side->peer, 0, NULL) != 1)
        exit(1);
    fi_freeinfo(info);
}

/* The provider leaves files in /dev/shm behind unless all is closed. */
static void close_side(struct side *side)
{
    CHECK(fi_close(&side->ep->fid));
    CHECK(fi_close(&side->mr->fid));
    CHECK(fi_close(&side->cq->fid));
    CHECK(fi_close(&side->av->fid));
    CHECK(fi_close(&side->domain->fid));
    CHECK(fi_close(&side->fabric->fid));
    free(side->mem);
}

static uint64_t peer_addr(const struct side *side)
{
    return side->meeting->rank[1 - side->rank].addr + REMOTE_OFFSET;
}

static uint64_t peer_key(const struct side *side)
{
    return side->meeting->rank[1 - side->rank].key;
}

/* ---- both sides at work ---- */

static void put_value(struct side *side, uint64_t value)
{
    POST(side, fi_inject_write(side->ep, &value, sizeof(value), side->peer, peer_addr(side), peer_key(side)));
}

static void wait_value(struct side *side, uint64_t value)
{
    volatile uint64_t *seen = (volatile uint64_t *)(side->mem + REMOTE_OFFSET);

    while (*seen != value)
        poll_cq(side);
}

static void put_turn(struct side *side, uint64_t value)
{
    if (side->rank == 0)
        put_value(side, value);
    wait_value(side, value);
    if (side->rank == 1)
        put_value(side, value);
}

static void message_turn(struct side *side, uint64_t value)
{
    char *buffer = side->mem + 2048;

    POST(side, fi_recv(side->ep, buffer, 8, side->desc, FI_ADDR_UNSPEC, NULL));
    if (side->rank == 0)
        POST(side, fi_inject(side->ep, &value, sizeof(value), side->peer));
    wait_one(side); /* inject gives no completion: this is the receive */
    if (side->rank == 1)
        POST(side, fi_inject(side->ep, &value, sizeof(value), side->peer));
}

static void measure_turns(struct side *side, const char *name, void (*turn)(struct side *, uint64_t), long n)
{
    double start_us = 0;

    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        turn(side, (uint64_t)(i + n));
    }
    if (side->rank == 0)
        bench_print(name, (bench_now_us() - start_us) / (double)n / 2, "us");
}

/* ---- rank 0 at work ---- */

static void write_once(struct side *side, size_t len_bytes)
{
    struct iovec local = { side->mem, len_bytes };
    struct fi_rma_iov remote = { peer_addr(side), len_bytes, peer_key(side) };
    struct fi_msg_rma msg = { .msg_iov = &local,
                              .desc = &side->desc,
                              .iov_count = 1,
                              .addr = side->peer,
                              .rma_iov = &remote,
                              .rma_iov_count = 1 };

    POST(side, fi_writemsg(side->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    wait_one(side);
}

static void read_once(struct side *side, size_t len_bytes)
{
    POST(side, fi_read(side->ep, side->mem, len_bytes, side->desc, side->peer, peer_addr(side), peer_key(side), NULL));
    wait_one(side);
}

static void fadd_once(struct side *side, size_t len_bytes)
{
    uint64_t one = 1;

    (void)len_bytes;
    POST(side, fi_fetch_atomic(side->ep, &one, 1, NULL, side->mem, side->desc, side->peer, peer_addr(side),
                               peer_key(side), FI_UINT64, FI_SUM, NULL));
    wait_one(side);
}

static double once_us(struct side *side, void (*once)(struct side *, size_t), size_t len_bytes, long n)
{
    double start_us = 0;

    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        once(side, len_bytes);
    }
    return (bench_now_us() - start_us) / (double)n;
}

static double write_rate(struct side *side, long n)
{
    double start_us = bench_now_us();
    long posted = 0;

    for (long done = 0; done < n; done++) {
        for (; posted < n && posted - done < WINDOW; posted++)
            POST(side, fi_write(side->ep, side->mem, 8, side->desc, side->peer, peer_addr(side), peer_key(side), NULL));
        wait_one(side);
    }
    return (double)n / (bench_now_us() - start_us);
}

static void measure_one_sided(struct side *side, const struct bench_options *options)
{
    long n = options->n;

    bench_print("get8_latency", once_us(side, read_once, 8, n), "us");
    bench_print("fadd8_latency", once_us(side, fadd_once, 8, n), "us");
    for (size_t len = BENCH_SIZE_MIN; len <= BENCH_SIZE_MAX; len *= BENCH_SIZE_STEP) {
        double time_us = once_us(side, write_once, len, bench_rounds(options, len));

        bench_print_sized("put_bandwidth", len, (double)len / time_us * 1e-3, "GB/s");
    }
    bench_print("put8_rate", write_rate(side, n), "M/s");
}

static void run(struct side *side, const struct bench_options *options)
{
    if (options->is_pinned)
        bench_pin(side->rank);
    open_side(side);
    meet(side, 2);
    measure_turns(side, "put8_half_round_trip", put_turn, options->n);
    measure_turns(side, "message8_half_round_trip", message_turn, options->n);
    if (side->rank == 0) {
        measure_one_sided(side, options);
        atomic_store(&side->meeting->is_done, 1);
    }
    while (atomic_load(&side->meeting->is_done) == 0)
        poll_cq(side);
    close_side(side);
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    struct side side = { .meeting = bench_shared(sizeof(struct meeting)) };
    pid_t pid = fork();
    int status;

    if (pid < 0)
        return 1;
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        side.rank = 1;
        run(&side, &options);
        return 0;
    }
    run(&side, &options);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        return 1;
    return 0;
}
