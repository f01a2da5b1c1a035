/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sends without credit. A rank sends itself short messages until it may send no more, tries again some times, and looks
 * for the completions only then. Prints by how much its clock has moved in these tries, in nanoseconds.
 *
 * For one rank.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "examples/common.h"

#define CREDITS 4
#define TRIES   6

static struct ex_job job;
static gni_cq_handle_t cq;

struct side {
    gni_smsg_attr_t attr;
    gni_ep_handle_t ep;
};

static void open_side(struct side *side)
{
    unsigned int bytes;

    side->attr = (gni_smsg_attr_t){ .msg_type = GNI_SMSG_TYPE_MBOX, .mbox_maxcredit = CREDITS, .msg_maxsize = 64 };
    EX_GNI(GNI_SmsgBufferSizeNeeded(&side->attr, &bytes));
    side->attr.msg_buffer = ex_alloc(bytes);
    side->attr.buff_size = bytes;
    EX_GNI(GNI_MemRegister(job.nic, (uint64_t)(uintptr_t)side->attr.msg_buffer, bytes, NULL, GNI_MEM_READWRITE,
                           UINT32_MAX, &side->attr.mem_hndl));
    side->ep = ex_connect(&job, cq, job.rank);
}

static void close_side(struct side *side)
{
    ex_disconnect(side->ep, cq);
    EX_GNI(GNI_MemDeregister(job.nic, &side->attr.mem_hndl));
    free(side->attr.msg_buffer);
}

static int64_t own_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static gni_return_t send_one(gni_ep_handle_t ep)
{
    uint64_t word = 7;

    return GNI_SmsgSendWTag(ep, NULL, 0, &word, sizeof(word), 0, 1);
}

int main(void)
{
    struct side sender, receiver;
    int64_t began_ns;
    int n_sent = 0;

    ex_start(&job, 0);
    EX_GNI(GNI_CqCreate(job.nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
    open_side(&sender);
    open_side(&receiver);
    EX_GNI(GNI_SmsgInit(sender.ep, &sender.attr, &receiver.attr));
    EX_GNI(GNI_SmsgInit(receiver.ep, &receiver.attr, &sender.attr));
    while (send_one(sender.ep) == GNI_RC_SUCCESS)
        n_sent++;
    EX_EXPECT(n_sent > 0, "no message was sent");
    began_ns = own_ns();
    for (int i = 0; i < TRIES; i++)
        EX_EXPECT(send_one(sender.ep) == GNI_RC_NOT_DONE, "a send without credit");
    printf("%lld\n", (long long)(own_ns() - began_ns));
    for (; n_sent > 0; n_sent--)
        ex_wait_event(cq);
    close_side(&sender);
    close_side(&receiver);
    EX_GNI(GNI_CqDestroy(cq));
    ex_stop(&job);
    return EXIT_SUCCESS;
}
