/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic memory operations: tickets and a lock in the memory of rank 0.
 *
 *   gni_amo_counter [-n COUNT]
 *
 * 1. All ranks draw COUNT tickets by a fetching add of 1 on a 64-bit counter, then on a 32-bit one (Aries; Gemini
 *    has no 32-bit operations). Every number must be drawn exactly once.
 * 2. All ranks raise an ordinary variable COUNT / 10 times by GET, add, PUT. That is safe only under a lock, which
 *    is a word that compare-and-swap turns from 0 into rank + 1 and back. No increment may be lost.
 *
 * The operations run in the NIC of rank 0's node; rank 0's program only takes part as one of the users. A word that
 * is the target of network atomics is changed by network atomics only: on the original hardware they are not atomic
 * against the CPU.
 */
#include "examples/common.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CQ_ENTRIES 64

/* In the memory of rank 0; the others have the same, unused. */
struct shared {
    uint64_t tickets_64;
    uint64_t lock;
    uint64_t guarded;
    uint32_t tickets_32;
};

/* What operations leave in local memory; registered. */
struct result {
    uint64_t value;
};

struct counter {
    const struct ex_job *job;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep; /* to rank 0, also on rank 0 */
    struct shared *shared;
    struct result *result;
    gni_mem_handle_t shared_memory, result_memory;
    struct shared *remote; /* address of rank 0's struct, not to be followed here */
    gni_mem_handle_t remote_memory;
};

struct home {
    gni_mem_handle_t memory;
    struct shared *shared;
};

/* One atomic operation on rank 0; returns the word's old value. first and second: operands, see gni_pub.h. */
static uint64_t fetching_amo(struct counter *counter, gni_fma_cmd_type_t command, void *remote, size_t len_bytes,
                             uint64_t first, uint64_t second)
{
    gni_post_descriptor_t descr = {
        .type = GNI_POST_AMO,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)&counter->result->value,
        .local_mem_hndl = counter->result_memory,
        .remote_addr = (uint64_t)remote,
        .remote_mem_hndl = counter->remote_memory,
        .length = len_bytes,
        .amo_cmd = command,
        .first_operand = first,
        .second_operand = second,
    };
    uint32_t low;

    EX_GNI(GNI_PostFma(counter->ep, &descr));
    ex_wait_post(counter->cq, &descr);
    if (len_bytes == sizeof(uint64_t))
        return counter->result->value;
    memcpy(&low, counter->result, sizeof(low));
    return low;
}

/* GET into, or PUT from, the result word. */
static void transfer(struct counter *counter, gni_post_type_t type, void *remote)
{
    gni_post_descriptor_t descr = {
        .type = type,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)&counter->result->value,
        .local_mem_hndl = counter->result_memory,
        .remote_addr = (uint64_t)remote,
        .remote_mem_hndl = counter->remote_memory,
        .length = sizeof(uint64_t),
    };

    EX_GNI(GNI_PostFma(counter->ep, &descr));
    ex_wait_post(counter->cq, &descr);
}

/*
 * Every rank draws n_draws tickets; together they must be 0, 1, 2, ... without gap or double.
 * Returns the time of one draw.
 */
static double draw_tickets(struct counter *counter, int n_draws, size_t len_bytes)
{
    const struct ex_job *job = counter->job;
    size_t n_all = (size_t)n_draws * (size_t)job->n_ranks;
    uint64_t *mine = ex_alloc((size_t)n_draws * sizeof(*mine));
    uint64_t *all = ex_alloc(n_all * sizeof(*all));
    unsigned char *seen = ex_alloc(n_all);
    double taken_us;

    ex_barrier();
    taken_us = ex_time_us();
    for (int i = 0; i < n_draws; i++) {
        if (len_bytes == sizeof(uint64_t))
            mine[i] = fetching_amo(counter, GNI_FMA_ATOMIC_FADD, &counter->remote->tickets_64, len_bytes, 1, 0);
        else
            mine[i] = fetching_amo(counter, GNI_FMA_ATOMIC2_FIADD_S, &counter->remote->tickets_32, len_bytes, 1, 0);
        EX_EXPECT(i == 0 || mine[i] > mine[i - 1], "ticket %llu came after %llu", (unsigned long long)mine[i],
                  (unsigned long long)mine[i - 1]);
    }
    taken_us = ex_time_us() - taken_us;

    ex_allgather(job, mine, all, (size_t)n_draws * sizeof(*mine));
    for (size_t i = 0; i < n_all; i++) {
        EX_EXPECT(all[i] < n_all, "rank %zu drew ticket %llu of %zu", i / (size_t)n_draws, (unsigned long long)all[i],
                  n_all);
        EX_EXPECT(!seen[all[i]], "ticket %llu was drawn twice", (unsigned long long)all[i]);
        seen[all[i]] = 1;
    }
    free(seen);
    free(all);
    free(mine);
    return taken_us / n_draws;
}

static double use_lock(struct counter *counter, int n_uses)
{
    uint64_t me = (uint64_t)counter->job->rank + 1;
    double taken_us;
    uint64_t holder;

    ex_barrier();
    taken_us = ex_time_us();
    for (int i = 0; i < n_uses; i++) {
        while (fetching_amo(counter, GNI_FMA_ATOMIC_CSWAP, &counter->remote->lock, sizeof(uint64_t), 0, me) != 0)
            continue;
        transfer(counter, GNI_POST_FMA_GET, &counter->remote->guarded);
        counter->result->value++;
        /* The GLOBAL event says that the new value is in place, so the next holder cannot read the old one. */
        transfer(counter, GNI_POST_FMA_PUT, &counter->remote->guarded);
        holder = fetching_amo(counter, GNI_FMA_ATOMIC_CSWAP, &counter->remote->lock, sizeof(uint64_t), me, 0);
        EX_EXPECT(holder == me, "the lock was held by %llu", (unsigned long long)holder);
    }
    taken_us = ex_time_us() - taken_us;
    ex_barrier();

    transfer(counter, GNI_POST_FMA_GET, &counter->remote->guarded);
    EX_EXPECT(counter->result->value == (uint64_t)n_uses * (uint64_t)counter->job->n_ranks,
              "%d ranks added 1 %d times each and got %llu", counter->job->n_ranks, n_uses,
              (unsigned long long)counter->result->value);
    return taken_us / n_uses;
}

static void counter_open(struct counter *counter)
{
    const struct ex_job *job = counter->job;
    struct home mine = { 0 }, *all = ex_alloc(sizeof(*all) * (size_t)job->n_ranks);

    counter->shared = ex_alloc(sizeof(*counter->shared));
    counter->result = ex_alloc(sizeof(*counter->result));
    EX_GNI(GNI_CqCreate(job->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &counter->cq));
    EX_GNI(GNI_MemRegister(job->nic, (uint64_t)counter->shared, sizeof(*counter->shared), NULL, GNI_MEM_READWRITE,
                           (uint32_t)-1, &counter->shared_memory));
    EX_GNI(GNI_MemRegister(job->nic, (uint64_t)counter->result, sizeof(*counter->result), NULL, GNI_MEM_READWRITE,
                           (uint32_t)-1, &counter->result_memory));
    mine.memory = counter->shared_memory;
    mine.shared = counter->shared;
    ex_allgather(job, &mine, all, sizeof(mine));
    counter->remote = all[0].shared;
    counter->remote_memory = all[0].memory;
    counter->ep = ex_connect(job, counter->cq, 0);
    free(all);
}

static void counter_close(struct counter *counter)
{
    ex_barrier(); /* rank 0's memory is in use until everybody is through */
    ex_disconnect(counter->ep, counter->cq);
    EX_GNI(GNI_MemDeregister(counter->job->nic, &counter->shared_memory));
    EX_GNI(GNI_MemDeregister(counter->job->nic, &counter->result_memory));
    EX_GNI(GNI_CqDestroy(counter->cq));
    free(counter->shared);
    free(counter->result);
}

int main(int argc, char **argv)
{
    struct ex_job job;
    struct counter counter = { .job = &job };
    int n_draws = 1000, option;
    double taken_us;

    while ((option = getopt(argc, argv, "n:h")) != -1) {
        if (option == 'n') {
            n_draws = atoi(optarg);
        } else {
            fputs("usage: gni_amo_counter [-n COUNT]\n"
                  "example: emunic run -n 4 --ppn 1 -- gni_amo_counter -n 10000\n",
                  option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
    }
    if (n_draws < 10 || n_draws > 100000 || optind != argc) {
        fputs("gni_amo_counter: 10 to 100000 tickets; try -h\n", stderr);
        return 2;
    }

    ex_start(&job, 0);
    counter_open(&counter);

    taken_us = draw_tickets(&counter, n_draws, sizeof(uint64_t));
    if (job.rank == 0)
        printf("64-bit fetch-add: %d ranks drew %d tickets each, all different, %.3f us each\n", job.n_ranks, n_draws,
               taken_us);
    if (job.device_type == GNI_DEVICE_ARIES) {
        taken_us = draw_tickets(&counter, n_draws, sizeof(uint32_t));
        if (job.rank == 0)
            printf("32-bit fetch-add: %d ranks drew %d tickets each, all different, %.3f us each\n", job.n_ranks,
                   n_draws, taken_us);
    }
    taken_us = use_lock(&counter, n_draws / 10);
    if (job.rank == 0)
        printf("lock: %d ranks held it %d times each, nothing lost, %.3f us each\n", job.n_ranks, n_draws / 10,
               taken_us);

    counter_close(&counter);
    ex_stop(&job);
    return 0;
}
