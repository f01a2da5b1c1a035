/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GNI between two processes on two hosts, that is, two emunics on loopback; transport_pair has the transport by itself.
 *
 *   hosts_put8_half_round_trip     8 bytes put into each other's memory, back and forth, seen by looking at the memory
 *   hosts_put8_rate                8-byte puts, WINDOW under way
 *   hosts_put_bandwidth/SIZE       block transfers, two under way
 *   hosts_get_bandwidth/SIZE
 *
 * The best of TIMES rounds is printed, because other programs share the processors.
 *
 *   hosts_pair [-p] [-n N]    EMU_TEST_TRANSPORT: the transport's module
 */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/bench/common.h"
#include "tests/common/gni.h"

#define LONG_BYTES (4u << 20)
#define WINDOW     64u
#define TIMES      5u

struct meeting {
    _Atomic unsigned arrived;
    uint64_t addr[2];
    gni_mem_handle_t hndl[2];
};

struct rank {
    unsigned number;
    unsigned n_met;
    struct meeting *meeting;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    volatile uint64_t *mem;     /* LONG_BYTES to write to, LONG_BYTES to read from */
    gni_mem_handle_t hndl;
};

static void check(gni_return_t rc, const char *what)
{
    if (rc == GNI_RC_SUCCESS)
        return;
    fprintf(stderr, "hosts_pair: %s: %s\n", what, gni_err_str[rc]);
    exit(1);
}

static void meet(struct rank *r)
{
    atomic_fetch_add(&r->meeting->arrived, 1);
    r->n_met++;
    while (atomic_load(&r->meeting->arrived) < 2 * r->n_met)
        sched_yield();
}

static void open_rank(struct rank *r, const struct fx *fx)
{
    uint32_t address;
    void *mem = mmap(NULL, 2 * LONG_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mem == MAP_FAILED)
        check(GNI_RC_ERROR_NOMEM, "memory");
    memset(mem, 0, 2 * LONG_BYTES);
    r->mem = mem;
    fx_set_node(r->number);
    check(GNI_CdmCreate(10 + r->number, (uint8_t)fx->ptag, fx->cookie, 0, &r->cdm), "GNI_CdmCreate");
    check(GNI_CdmAttach(r->cdm, 0, &address, &r->nic), "GNI_CdmAttach");
    check(GNI_CqCreate(r->nic, 1024, 0, GNI_CQ_NOBLOCK, NULL, NULL, &r->cq), "GNI_CqCreate");
    check(GNI_MemRegister(r->nic, (uint64_t)(uintptr_t)mem, 2 * LONG_BYTES, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                          &r->hndl),
          "GNI_MemRegister");
    check(GNI_EpCreate(r->nic, r->cq, &r->ep), "GNI_EpCreate");
    check(GNI_EpBind(r->ep, 1 - r->number, 10 + 1 - r->number), "GNI_EpBind");
    r->meeting->addr[r->number] = (uint64_t)(uintptr_t)mem;
    r->meeting->hndl[r->number] = r->hndl;
    meet(r);
}

static gni_post_descriptor_t post_of(const struct rank *r, gni_post_type_t type, uint64_t bytes)
{
    return (gni_post_descriptor_t){ .type = type, .cq_mode = GNI_CQMODE_GLOBAL_EVENT, .length = bytes,
                                    .local_addr = (uint64_t)(uintptr_t)r->mem + LONG_BYTES, .local_mem_hndl = r->hndl,
                                    .remote_addr = r->meeting->addr[1 - r->number],
                                    .remote_mem_hndl = r->meeting->hndl[1 - r->number], .src_cq_hndl = r->cq };
}

static void wait_one(const struct rank *r)
{
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    gni_return_t rc;

    do
        rc = GNI_CqGetEvent(r->cq, &entry);
    while (rc == GNI_RC_NOT_DONE);
    check(rc, "GNI_CqGetEvent");
    check(GNI_GetCompleted(r->cq, entry, &done), "GNI_GetCompleted");
}

static double ping_pong(struct rank *r, long n)
{
    gni_post_descriptor_t d = post_of(r, GNI_POST_FMA_PUT, 8);
    volatile uint64_t *from = r->mem + LONG_BYTES / 8;
    uint64_t first = r->mem[0];
    double start;

    meet(r);
    start = bench_now_us();
    for (long i = 1; i <= n; i++) {
        *from = first + (uint64_t)i;
        if (r->number == 0)
            check(GNI_PostFma(r->ep, &d), "GNI_PostFma");
        while (r->mem[0] != first + (uint64_t)i)
            sched_yield();
        if (r->number == 1)
            check(GNI_PostFma(r->ep, &d), "GNI_PostFma");
        wait_one(r);
    }
    return (bench_now_us() - start) / (2.0 * (double)n);
}

/* Rank 0 alone. Microseconds for one. */
static double stream(struct rank *r, gni_post_type_t type, uint64_t bytes, unsigned window, long n)
{
    gni_post_descriptor_t d[WINDOW];
    double us = 0;
    long posted = 0;
    long done = 0;

    meet(r);
    if (r->number == 0) {
        us = bench_now_us();
        while (done < n) {
            while (posted < n && posted - done < (long)window) {
                gni_post_descriptor_t *next = &d[posted % window];

                *next = post_of(r, type, bytes);
                if (type == GNI_POST_FMA_PUT)
                    check(GNI_PostFma(r->ep, next), "GNI_PostFma");
                else
                    check(GNI_PostRdma(r->ep, next), "GNI_PostRdma");
                posted++;
            }
            wait_one(r);
            done++;
        }
        us = (bench_now_us() - us) / (double)n;
    }
    meet(r);
    return us;
}

static void keep_best(double *best, double value)
{
    if (*best == 0 || value < *best)
        *best = value;
}

static void run(struct rank *r, const struct fx *fx, const struct bench_options *options)
{
    double latency = 0;
    double small = 0;
    double put = 0;
    double get = 0;

    if (options->is_pinned)
        bench_pin((int)r->number);
    open_rank(r, fx);
    for (unsigned i = 0; i < TIMES; i++) {
        keep_best(&latency, ping_pong(r, options->n / 10));
        keep_best(&small, stream(r, GNI_POST_FMA_PUT, 8, WINDOW, options->n));
        keep_best(&put, stream(r, GNI_POST_RDMA_PUT, LONG_BYTES, 2, 64));
        keep_best(&get, stream(r, GNI_POST_RDMA_GET, LONG_BYTES, 2, 64));
    }
    if (r->number != 0)
        return;
    bench_print("hosts_put8_half_round_trip", latency, "us");
    bench_print("hosts_put8_rate", 1 / small, "M/s");
    bench_print_sized("hosts_put_bandwidth", LONG_BYTES, LONG_BYTES / put, "MB/s");
    bench_print_sized("hosts_get_bandwidth", LONG_BYTES, LONG_BYTES / get, "MB/s");
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    struct fx_options hosts = { .n_hosts = 2 };
    struct rank r = { .meeting = bench_shared(sizeof(struct meeting)) };
    struct fx fx;
    int status = 1;
    pid_t child;

    fx_start(&fx, &hosts);
    child = fork();
    if (child == 0) {
        fx_forget(&fx);
        r.number = 1;
        run(&r, &fx, &options);
        _exit(0);
    }
    run(&r, &fx, &options);
    waitpid(child, &status, 0);
    GNI_CdmDestroy(r.cdm);
    fx_stop(&fx);
    return status != 0;
}
