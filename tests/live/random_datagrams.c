/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams that a seed decides: wildcards and pairs that point at each other, of all lengths, posted after sleeps,
 * some of them cancelled. Each rank prints when each of its own had which end.
 *
 *   random_datagrams -s SEED [-n ROUNDS]
 */
#include "examples/common.h"

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t state;

/* Numbers below n, from the seed alone (xorshift64*). */
static uint32_t below(uint32_t n)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545f4914f6cdd1dull >> 32) % n);
}

struct datagram {
    gni_ep_handle_t ep;
    char in[GNI_DATAGRAM_MAXSIZE];
};

static void post(struct datagram *d)
{
    char out[GNI_DATAGRAM_MAXSIZE] = { 0 };

    EX_GNI(GNI_EpPostData(d->ep, out, (uint16_t)(1 + below(sizeof(out))), d->in, sizeof(d->in)));
}

static void rest(void)
{
    const struct timespec some = { .tv_nsec = (long)below(3000) };

    nanosleep(&some, NULL);
}

static uint64_t now_ns(void)
{
    static uint64_t began_ns;
    struct timespec t;
    uint64_t ns;

    clock_gettime(CLOCK_MONOTONIC, &t);
    ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    if (began_ns == 0)
        began_ns = ns;
    return ns - began_ns;
}

static void await_end(const struct ex_job *job, const struct datagram *d, const char *what)
{
    gni_post_state_t end = GNI_POST_PENDING;
    uint32_t remote_addr = 0, remote_id = 0;

    if (below(2) == 0) {
        EX_GNI(GNI_EpPostDataWait(d->ep, (uint32_t)-1, &end, &remote_addr, &remote_id));
    } else {
        while (end == GNI_POST_PENDING)
            EX_GNI(GNI_EpPostDataTest(d->ep, &end, &remote_addr, &remote_id));
    }
    printf("%d %s %d from %u at %llu ns\n", job->rank, what, (int)end, remote_id, (unsigned long long)now_ns());
}

/* To the next rank, whose wildcard waits, or comes later. */
static void meet_wildcard(const struct ex_job *job, gni_ep_handle_t directed_ep)
{
    struct datagram wildcard, directed = { .ep = directed_ep };

    EX_GNI(GNI_EpCreate(job->nic, NULL, &wildcard.ep));
    rest();
    if (job->rank % 2 == 0) {
        post(&wildcard);
        rest();
        post(&directed);
    } else {
        post(&directed);
        rest();
        post(&wildcard);
    }
    await_end(job, &wildcard, "wildcard");
    await_end(job, &directed, "directed");
    EX_GNI(GNI_EpDestroy(wildcard.ep));
}

/* Somebody of the pair may have given up before. */
static void meet_peer(const struct ex_job *job, gni_ep_handle_t ep)
{
    struct datagram d = { .ep = ep };
    gni_return_t rc = GNI_RC_NO_MATCH;
    bool gives_up = below(3) == 0;

    rest();
    post(&d);
    if (gives_up) {
        rest();
        rc = GNI_EpPostDataCancel(ep);
        printf("%d cancels: %d\n", job->rank, (int)rc);
    }
    ex_barrier(); /* who is left alone gives up, too */
    if (rc == GNI_RC_NO_MATCH)
        rc = GNI_EpPostDataCancel(ep);
    await_end(job, &d, "pair");
}

int main(int argc, char **argv)
{
    uint32_t n_rounds = 10;
    uint64_t seed = 1;
    struct ex_job job;
    gni_ep_handle_t next, peer;
    int option;

    while ((option = getopt(argc, argv, "n:s:")) != -1) {
        if (option == 'n')
            n_rounds = (uint32_t)strtoul(optarg, NULL, 10);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else
            return 2;
    }
    ex_start(&job, 0);
    EX_EXPECT(job.n_ranks > 2 && job.n_ranks % 2 == 0, "needs an even number of ranks, at least 4");
    state = (seed * 1000003 + (uint64_t)job.rank + 1) * 0x9e3779b97f4a7c15ull;
    next = ex_connect(&job, NULL, (job.rank + 1) % job.n_ranks);
    peer = ex_connect(&job, NULL, job.rank ^ 1);
    now_ns();
    for (uint32_t i = 0; i < n_rounds; i++) {
        ex_barrier();
        meet_wildcard(&job, next);
        ex_barrier();
        meet_peer(&job, peer);
    }
    ex_barrier();
    ex_disconnect(next, NULL);
    ex_disconnect(peer, NULL);
    ex_stop(&job);
    return 0;
}
