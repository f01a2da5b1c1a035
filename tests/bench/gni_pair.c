/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Set-up and the two loops of one-sided measurements.
 *
 * One-sided operations are driven by rank 0; meanwhile rank 1 waits in a PMI barrier, which does not use its CPU. FMA
 * and BTE operations differ in the call that posts them; the descriptor's type tells which.
 */
#include "tests/bench/gni_pair.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define REMOTE_OFFSET 64u
#define HUGE_BYTES    (2u << 20)

static gni_return_t post(struct pair *pair, gni_post_descriptor_t *operation)
{
    if (operation->type == GNI_POST_RDMA_PUT || operation->type == GNI_POST_RDMA_GET)
        return GNI_PostRdma(pair->ep, operation);
    return GNI_PostFma(pair->ep, operation);
}

/*
 * In huge pages where the machine has them for those who ask, as ucx_perftest's memory is. What is adopted is in small
 * ones all the same.
 */
static uint64_t *alloc_memory(size_t len_bytes)
{
    size_t room = (len_bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    void *memory = aligned_alloc(HUGE_BYTES, room);

    EX_EXPECT(memory, "no memory for %zu bytes", room);
    madvise(memory, room, MADV_HUGEPAGE);
    return memset(memory, 0, room);
}

void pair_open(struct pair *pair, struct bench_options options, size_t len_bytes)
{
    struct {
        uint64_t addr;
        gni_mem_handle_t hndl;
    } mine, all[2];

    ex_start(&pair->job, 0);
    EX_EXPECT(pair->job.n_ranks == 2, "this benchmark takes 2 ranks, not %d", pair->job.n_ranks);
    pair->options = options;
    if (options.is_pinned)
        bench_pin(pair->job.rank);
    EX_GNI(GNI_CqCreate(pair->job.nic, PAIR_CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &pair->src_cq));
    EX_GNI(GNI_CqCreate(pair->job.nic, PAIR_CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &pair->dst_cq));
    pair->mem = alloc_memory(len_bytes + REMOTE_OFFSET);
    EX_GNI(GNI_MemRegister(pair->job.nic, (uint64_t)(uintptr_t)pair->mem, len_bytes + REMOTE_OFFSET, pair->dst_cq,
                           GNI_MEM_READWRITE, (uint32_t)-1, &pair->mem_hndl));
    mine.addr = (uint64_t)(uintptr_t)pair->mem;
    mine.hndl = pair->mem_hndl;
    ex_allgather(&pair->job, &mine, all, sizeof(mine));
    pair->peer_addr = all[1 - pair->job.rank].addr;
    pair->peer_hndl = all[1 - pair->job.rank].hndl;
    pair->ep = ex_connect(&pair->job, pair->src_cq, 1 - pair->job.rank);
}

void pair_close(struct pair *pair)
{
    ex_barrier();
    ex_disconnect(pair->ep, pair->src_cq);
    EX_GNI(GNI_MemDeregister(pair->job.nic, &pair->mem_hndl));
    EX_GNI(GNI_CqDestroy(pair->src_cq));
    EX_GNI(GNI_CqDestroy(pair->dst_cq));
    ex_stop(&pair->job);
    free(pair->mem);
}

gni_post_descriptor_t pair_descriptor(const struct pair *pair, gni_post_type_t type, uint16_t cq_mode, size_t len_bytes)
{
    return (gni_post_descriptor_t){ .type = type,
                                    .cq_mode = cq_mode,
                                    .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
                                    .local_addr = (uint64_t)(uintptr_t)pair->mem,
                                    .local_mem_hndl = pair->mem_hndl,
                                    .remote_addr = pair->peer_addr + REMOTE_OFFSET,
                                    .remote_mem_hndl = pair->peer_hndl,
                                    .length = len_bytes };
}

gni_cq_entry_t pair_wait(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    do {
        rc = GNI_CqGetEvent(cq, &entry);
    } while (rc == GNI_RC_NOT_DONE);
    EX_GNI(rc);
    return entry;
}

void pair_wait_post(struct pair *pair)
{
    gni_post_descriptor_t *done;

    EX_GNI(GNI_GetCompleted(pair->src_cq, pair_wait(pair->src_cq), &done));
}

double pair_blocking_us(struct pair *pair, gni_post_descriptor_t *operation, long n)
{
    double start_us = 0;

    for (long i = -n / 10 - 1; i < n; i++) {
        if (i == 0)
            start_us = bench_now_us();
        EX_GNI(post(pair, operation));
        pair_wait_post(pair);
    }
    return (bench_now_us() - start_us) / (double)n;
}

static void stream(struct pair *pair, gni_post_descriptor_t *window, long n)
{
    gni_post_descriptor_t *completed;
    gni_cq_entry_t entry;
    gni_return_t rc;
    long posted = 0;
    long done = 0;

    while (done < n) {
        while (posted < n && posted - done < PAIR_WINDOW)
            EX_GNI(post(pair, &window[posted++ % PAIR_WINDOW]));
        while ((rc = GNI_CqGetEvent(pair->src_cq, &entry)) == GNI_RC_SUCCESS) {
            EX_GNI(GNI_GetCompleted(pair->src_cq, entry, &completed));
            done++;
        }
        EX_EXPECT(rc == GNI_RC_NOT_DONE, "GNI_CqGetEvent: %s", gni_err_str[rc]);
    }
}

double pair_rate(struct pair *pair, const gni_post_descriptor_t *operation, long n)
{
    static gni_post_descriptor_t window[PAIR_WINDOW];
    double start_us;

    for (int i = 0; i < PAIR_WINDOW; i++)
        window[i] = *operation;
    stream(pair, window, n / 10 + PAIR_WARM_UP);
    start_us = bench_now_us();
    stream(pair, window, n);
    return (double)n / (bench_now_us() - start_us);
}
