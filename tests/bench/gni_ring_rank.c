/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages around a ring of all ranks.
 *
 *   smsg_ring_hop        one message, time of a hop: how soon the rank whose turn it is gets to run
 *   smsg_ring_full_hop   a message from every rank at once, time per hop done by anyone: who runs always has work
 *
 * With many more ranks than CPUs this shows how well idle ranks and emunic make room. Nobody is pinned.
 */
#include "tests/bench/common.h"
#include "tests/bench/gni_mailbox.h"

#define CQ_ENTRIES 1024

enum { NEXT, PREVIOUS, N_BOXES };

static void wait_entry(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(cq, &entry)) == GNI_RC_NOT_DONE)
        ;
    EX_GNI(rc);
}

static void send_on(struct mailbox *next, uint64_t value)
{
    uint64_t mail;

    while (!mailbox_try_send(next, value))
        EX_EXPECT(!mailbox_try_receive(next, &mail), "a message against the ring");
    wait_entry(next->src_cq);
}

static uint64_t receive(struct mailbox *previous)
{
    uint64_t value;

    do {
        wait_entry(previous->dst_cq);
    } while (!mailbox_try_receive(previous, &value));
    return value;
}

/* Rank 0 starts each lap and counts it. */
static void pass_one(const struct ex_job *job, struct mailbox *box, long n_laps)
{
    for (long lap = 0; lap < n_laps; lap++) {
        if (job->rank == 0)
            send_on(&box[NEXT], (uint64_t)lap);
        EX_EXPECT(receive(&box[PREVIOUS]) == (uint64_t)lap, "wrong lap");
        if (job->rank != 0)
            send_on(&box[NEXT], (uint64_t)lap);
    }
}

/* Every rank passes on what it gets; its own message is back after each lap. */
static void pass_all(const struct ex_job *job, struct mailbox *box, long n_laps)
{
    uint64_t held = (uint64_t)job->rank;

    for (long hop = 0; hop < n_laps * job->n_ranks; hop++) {
        send_on(&box[NEXT], held);
        held = receive(&box[PREVIOUS]);
    }
    EX_EXPECT(held == (uint64_t)job->rank, "message of rank %llu came home", (unsigned long long)held);
}

static void measure(const struct ex_job *job, const char *name, struct mailbox *box, long n_laps, long n_messages,
                    void (*pass)(const struct ex_job *, struct mailbox *, long))
{
    double start_us;

    ex_barrier();
    pass(job, box, n_laps / 10 + 1);
    start_us = bench_now_us();
    pass(job, box, n_laps);
    if (job->rank == 0)
        bench_print(name, (bench_now_us() - start_us) / (double)(n_laps * job->n_ranks * n_messages), "us");
}

int main(int argc, char **argv)
{
    struct bench_options options = bench_options(argc, argv);
    long n_laps = options.n / 100 + 1;
    struct ex_job job;
    struct mailbox box[N_BOXES] = { 0 };
    int back[N_BOXES] = { PREVIOUS, NEXT };
    int peers[N_BOXES];
    gni_cq_handle_t src_cq, dst_cq;

    ex_start(&job, 0);
    EX_EXPECT(job.n_ranks >= 2, "needs at least 2 ranks");
    EX_GNI(GNI_CqCreate(job.nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &src_cq));
    EX_GNI(GNI_CqCreate(job.nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &dst_cq));
    peers[NEXT] = (job.rank + 1) % job.n_ranks;
    peers[PREVIOUS] = (job.rank + job.n_ranks - 1) % job.n_ranks;
    for (int i = 0; i < N_BOXES; i++) {
        box[i].src_cq = src_cq;
        box[i].dst_cq = dst_cq;
    }
    mailbox_open(&job, box, peers, back, N_BOXES);

    measure(&job, "smsg_ring_hop", box, n_laps, 1, pass_one);
    measure(&job, "smsg_ring_full_hop", box, n_laps, job.n_ranks, pass_all);

    ex_barrier();
    for (int i = 0; i < N_BOXES; i++)
        mailbox_close(&job, &box[i]);
    EX_GNI(GNI_CqDestroy(dst_cq));
    EX_GNI(GNI_CqDestroy(src_cq));
    ex_stop(&job);
    return 0;
}
