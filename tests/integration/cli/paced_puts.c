/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 puts blocks to rank 1 under a limit of injection, and prints the rate.
 *
 *   paced_puts PERCENT
 */
#include "examples/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK  4096u
#define BLOCKS 500u

struct window {
    char *memory;
    gni_mem_handle_t handle;
};

static void put_all(const struct window *mine, const struct window *theirs, gni_ep_handle_t ep, gni_cq_handle_t cq)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        gni_post_descriptor_t post = { .type = GNI_POST_FMA_PUT,
                                       .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                       .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
                                       .local_addr = (uint64_t)mine->memory,
                                       .local_mem_hndl = mine->handle,
                                       .remote_addr = (uint64_t)theirs->memory,
                                       .remote_mem_hndl = theirs->handle,
                                       .length = BLOCK };

        EX_GNI(GNI_PostFma(ep, &post));
        ex_wait_post(cq, &post);
    }
}

int main(int argc, char **argv)
{
    uint16_t percent = argc > 1 ? (uint16_t)atoi(argv[1]) : 100;
    struct window windows[2], mine;
    struct ex_job job;
    gni_ep_handle_t ep;
    gni_cq_handle_t cq;
    double began_us;

    ex_start(&job, 0);
    EX_EXPECT(job.n_ranks == 2, "needs 2 ranks");
    EX_GNI(GNI_CqCreate(job.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
    mine.memory = ex_alloc(BLOCK);
    EX_GNI(GNI_MemRegister(job.nic, (uint64_t)mine.memory, BLOCK, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &mine.handle));
    ex_allgather(&job, &mine, windows, sizeof(mine));
    ep = ex_connect(&job, cq, job.rank ^ 1);
    if (job.rank == 0)
        EX_GNI(GNI_SetBIConfig(0, percent, percent, GNI_BI_FLAG_APPLY_NOW));
    ex_barrier();
    began_us = ex_time_us();
    if (job.rank == 0) {
        put_all(&mine, &windows[1], ep, cq);
        printf("%u %% %.1f MB/s\n", percent, BLOCKS * BLOCK / (ex_time_us() - began_us));
    }
    ex_barrier();
    ex_disconnect(ep, cq);
    EX_GNI(GNI_MemDeregister(job.nic, &mine.handle));
    EX_GNI(GNI_CqDestroy(cq));
    ex_stop(&job);
    free(mine.memory);
    return 0;
}
