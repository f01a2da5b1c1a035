/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A mix of operations that a seed decides: FMA and BTE, puts and gets, atomics, of all lengths and routing modes, from
 * every rank to any, itself among them, some at once and some after a sleep.
 *
 *   random_mix -s SEED [-n OPERATIONS]   of each rank
 */
#include "examples/common.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROOM       (1u << 17)
#define WINDOW     16
#define CQ_ENTRIES 256

struct window {
    char *memory;
    gni_mem_handle_t handle;
};

static uint64_t state;

/* Numbers below n, from the seed alone (xorshift64*). */
static uint32_t below(uint32_t n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545f4914f6cdd1dull >> 32) % n);
}

/* n_modes: the first ones, which the NIC knows. */
static void choose(gni_post_descriptor_t *post, const struct window *mine, const struct window *theirs,
                   uint32_t n_modes)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET,
                                             GNI_POST_AMO };
    static const uint16_t modes[] = { GNI_DLVMODE_PERFORMANCE, GNI_DLVMODE_IN_ORDER, GNI_DLVMODE_NO_ADAPT,
                                      GNI_DLVMODE_MIN_HASH, GNI_DLVMODE_NMIN_HASH };
    static const gni_fma_cmd_type_t amos[] = { GNI_FMA_ATOMIC_ADD, GNI_FMA_ATOMIC_FADD };
    uint32_t is_long = below(4) == 0;

    memset(post, 0, sizeof(*post));
    post->type = types[below(5)];
    post->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    post->dlvr_mode = modes[below(n_modes)];
    post->local_addr = (uint64_t)mine->memory;
    post->local_mem_hndl = mine->handle;
    post->remote_addr = (uint64_t)theirs->memory;
    post->remote_mem_hndl = theirs->handle;
    post->length = post->type == GNI_POST_AMO ? 8 : 4 * (1 + below(is_long ? ROOM / 8 : 256));
    post->amo_cmd = amos[below(2)];
    post->first_operand = 1;
}

static void post_one(gni_ep_handle_t ep, gni_post_descriptor_t *post)
{
    if (post->type == GNI_POST_RDMA_PUT || post->type == GNI_POST_RDMA_GET)
        EX_GNI(GNI_PostRdma(ep, post));
    else
        EX_GNI(GNI_PostFma(ep, post));
}

static void rest(void)
{
    const struct timespec some = { .tv_nsec = (long)below(20000) };

    if (below(3) == 0)
        nanosleep(&some, NULL);
}

static void await_all(gni_cq_handle_t cq, uint32_t n)
{
    for (; n > 0; n--) {
        gni_cq_entry_t event = ex_wait_event(cq);
        gni_post_descriptor_t *done;

        EX_GNI(GNI_GetCompleted(cq, event, &done));
    }
}

static void run(const struct ex_job *job, uint32_t n_posts, gni_cq_handle_t cq, const struct window *windows,
                gni_ep_handle_t *eps)
{
    static gni_post_descriptor_t posts[WINDOW];
    uint32_t n_under_way = 0;

    for (uint32_t i = 0; i < n_posts; i++) {
        uint32_t peer = below((uint32_t)job->n_ranks);
        gni_post_descriptor_t *post = &posts[i % WINDOW];

        choose(post, &windows[job->rank], &windows[peer], job->device_type == GNI_DEVICE_ARIES ? 5 : 3);
        post_one(eps[peer], post);
        n_under_way++;
        if (n_under_way == WINDOW) { /* before one of its descriptors is used again */
            await_all(cq, n_under_way);
            n_under_way = 0;
        }
        rest();
    }
    await_all(cq, n_under_way);
}

int main(int argc, char **argv)
{
    uint32_t n_posts = 40;
    uint64_t seed = 1;
    struct ex_job job;
    struct window *windows, mine;
    gni_ep_handle_t *eps;
    gni_cq_handle_t cq;
    int option;

    while ((option = getopt(argc, argv, "n:s:")) != -1) {
        if (option == 'n')
            n_posts = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else
            return 2;
    }
    ex_start(&job, 0);
    state = (seed * 1000003 + (uint64_t)job.rank + 1) * 0x9e3779b97f4a7c15ull;
    EX_GNI(GNI_CqCreate(job.nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
    mine.memory = ex_alloc(ROOM);
    EX_GNI(GNI_MemRegister(job.nic, (uint64_t)mine.memory, ROOM, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &mine.handle));
    windows = ex_alloc(sizeof(*windows) * (size_t)job.n_ranks);
    eps = ex_alloc(sizeof(*eps) * (size_t)job.n_ranks);
    ex_allgather(&job, &mine, windows, sizeof(mine));
    for (int peer = 0; peer < job.n_ranks; peer++)
        eps[peer] = ex_connect(&job, cq, peer);
    ex_barrier();
    run(&job, n_posts, cq, windows, eps);
    ex_barrier();
    for (int peer = 0; peer < job.n_ranks; peer++)
        ex_disconnect(eps[peer], cq);
    EX_GNI(GNI_MemDeregister(job.nic, &mine.handle));
    EX_GNI(GNI_CqDestroy(cq));
    ex_stop(&job);
    free(mine.memory);
    free(windows);
    free(eps);
    return 0;
}
