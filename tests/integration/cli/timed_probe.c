/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Probes for datagrams as Open MPI's: in a loop of events, by a timer of the host's time, between polls of a queue. The
 * timer is due again where a probe has lasted longer, and the loop goes round until it is not. Puts words to itself so,
 * and ends with status 1 where the loop goes round too often.
 *
 * For one rank.
 */
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "examples/common.h"

#define PUTS       200
#define TIMER_NS   2000 /* shorter than a request to emunic takes */
#define ROUNDS_MAX 1000 /* of the loop of events. A probe of a hundred nanoseconds may be preempted, but not so often */

static int64_t host_ns(void)
{
    struct timespec t;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void process_timers(const struct ex_job *job)
{
    uint64_t id;
    int64_t began_ns;
    int n_rounds = 0;

    do {
        EX_EXPECT(n_rounds++ < ROUNDS_MAX, "the timer is always due");
        began_ns = host_ns();
        EX_EXPECT(GNI_PostDataProbeById(job->nic, &id) == GNI_RC_NO_MATCH, "a datagram that nobody has sent");
    } while (host_ns() - began_ns > TIMER_NS);
}

static void put_a_word(const struct ex_job *job, gni_cq_handle_t cq, gni_ep_handle_t ep, gni_mem_handle_t memory,
                       uint64_t *words)
{
    gni_post_descriptor_t put = {
        .type = GNI_POST_FMA_PUT,
        .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)&words[0],
        .remote_addr = (uint64_t)(uintptr_t)&words[1],
        .remote_mem_hndl = memory,
        .length = sizeof(*words),
    };
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;

    EX_GNI(GNI_PostFma(ep, &put));
    /* The probe comes first, so it begins the row of polls in vain. */
    do
        process_timers(job);
    while (GNI_CqGetEvent(cq, &entry) == GNI_RC_NOT_DONE);
    EX_GNI(GNI_GetCompleted(cq, entry, &done));
}

int main(void)
{
    struct ex_job job;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;
    gni_mem_handle_t memory;
    uint64_t *words;

    ex_start(&job, 0);
    words = ex_alloc(4096);
    EX_GNI(GNI_CqCreate(job.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
    EX_GNI(GNI_MemRegister(job.nic, (uint64_t)(uintptr_t)words, 4096, NULL, GNI_MEM_READWRITE, UINT32_MAX, &memory));
    ep = ex_connect(&job, cq, job.rank);
    for (int i = 0; i < PUTS; i++)
        put_a_word(&job, cq, ep, memory, words);
    ex_disconnect(ep, cq);
    EX_GNI(GNI_MemDeregister(job.nic, &memory));
    EX_GNI(GNI_CqDestroy(cq));
    free(words);
    ex_stop(&job);
    return EXIT_SUCCESS;
}
