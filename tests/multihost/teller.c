/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks on two hosts that send each other words which a reader of the wire is to look for (test_secure.py): a small
 * put, a large put, a large get, a datagram. Each kind has words of its own, 64 bytes of 'KIND KIND ...'.
 *
 * What has arrived is checked. Prints "told" at the end, from rank 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/common.h"

#define WORDS 64u
#define LARGE (1u << 20)
#define MEM   (WORDS + 2 * LARGE) /* for the small put, the large put; from where the large get reads */

static void say(uint8_t *to, size_t bytes, const char *kind)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = (uint8_t)kind[i % 8];
}

static void expect(const uint8_t *at, size_t bytes, const char *kind)
{
    for (size_t i = 0; i < bytes; i++)
        EX_EXPECT(at[i] == (uint8_t)kind[i % 8], "byte %zu of '%s' is wrong", i, kind);
}

struct side {
    struct ex_job job;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    uint8_t *mem;  /* MEM that the other rank reaches */
    uint8_t *from; /* MEM of ours */
    gni_mem_handle_t hndl;
    gni_mem_handle_t from_hndl;
    uint64_t peer_addr;
    gni_mem_handle_t peer_hndl;
};

static void move(struct side *s, gni_post_type_t type, uint64_t offset, uint64_t bytes)
{
    gni_post_descriptor_t d = { .type = type,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .length = bytes,
                                .local_addr = (uint64_t)(uintptr_t)s->from + offset,
                                .local_mem_hndl = s->from_hndl,
                                .remote_addr = s->peer_addr + offset,
                                .remote_mem_hndl = s->peer_hndl,
                                .src_cq_hndl = s->cq };

    EX_GNI(type == GNI_POST_FMA_PUT ? GNI_PostFma(s->ep, &d) : GNI_PostRdma(s->ep, &d));
    ex_wait_post(s->cq, &d);
}

static void exchange_datagrams(const struct side *s)
{
    gni_ep_handle_t ep = ex_connect(&s->job, NULL, 1 - s->job.rank);
    uint8_t out[WORDS], in[WORDS] = { 0 };
    uint32_t addr, id;
    gni_post_state_t state;

    say(out, sizeof(out), "datagram");
    EX_GNI(GNI_EpPostData(ep, out, sizeof(out), in, sizeof(in)));
    do {
        EX_GNI(GNI_EpPostDataTest(ep, &state, &addr, &id));
        if (state == GNI_POST_PENDING)
            ex_idle();
    } while (state != GNI_POST_COMPLETED);
    ex_busy();
    expect(in, sizeof(in), "datagram");
    EX_GNI(GNI_EpUnbind(ep));
    EX_GNI(GNI_EpDestroy(ep));
}

int main(void)
{
    struct side s = { 0 };
    struct {
        uint64_t addr;
        gni_mem_handle_t hndl;
    } mine, all[2];

    ex_start(&s.job, 0);
    EX_EXPECT(s.job.n_ranks == 2, "this takes 2 ranks, not %d", s.job.n_ranks);
    s.mem = ex_alloc(MEM);
    s.from = ex_alloc(MEM);
    EX_GNI(GNI_CqCreate(s.job.nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &s.cq));
    EX_GNI(GNI_MemRegister(s.job.nic, (uint64_t)(uintptr_t)s.mem, MEM, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &s.hndl));
    EX_GNI(GNI_MemRegister(s.job.nic, (uint64_t)(uintptr_t)s.from, MEM, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                           &s.from_hndl));
    mine.addr = (uint64_t)(uintptr_t)s.mem;
    mine.hndl = s.hndl;
    ex_allgather(&s.job, &mine, all, sizeof(mine));
    s.peer_addr = all[1 - s.job.rank].addr;
    s.peer_hndl = all[1 - s.job.rank].hndl;
    s.ep = ex_connect(&s.job, s.cq, 1 - s.job.rank);
    say(s.from, WORDS, "smallput");
    say(s.from + WORDS, LARGE, "largeput");
    say(s.mem + WORDS + LARGE, LARGE, "largeget");
    ex_barrier();
    move(&s, GNI_POST_FMA_PUT, 0, WORDS);
    move(&s, GNI_POST_RDMA_PUT, WORDS, LARGE);
    move(&s, GNI_POST_RDMA_GET, WORDS + LARGE, LARGE);
    ex_barrier();
    expect(s.mem, WORDS, "smallput");
    expect(s.mem + WORDS, LARGE, "largeput");
    expect(s.from + WORDS + LARGE, LARGE, "largeget");
    exchange_datagrams(&s);
    ex_barrier();
    if (s.job.rank == 0)
        puts("told");
    ex_disconnect(s.ep, s.cq);
    EX_GNI(GNI_MemDeregister(s.job.nic, &s.hndl));
    EX_GNI(GNI_MemDeregister(s.job.nic, &s.from_hndl));
    EX_GNI(GNI_CqDestroy(s.cq));
    ex_stop(&s.job);
    free(s.mem);
    free(s.from);
    return 0;
}
