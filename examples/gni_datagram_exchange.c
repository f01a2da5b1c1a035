/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: how processes that know nothing of each other but an address exchange the first 128 bytes.
 *
 *   gni_datagram_exchange
 *
 * A datagram exchange is a rendezvous. Both sides post a payload, each gets the other's, and only then either is
 * complete. An endpoint that is bound posts to that peer; an unbound one posts a wildcard, which meets the first
 * directed datagram that comes. Programs use it to hand around what faster means need: mailboxes, memory handles,
 * keys.
 *
 * 1. Ring: every rank posts a wildcard, then a directed datagram to the next rank. Even ranks begin, odd ranks
 *    follow: with two ranks the two directed datagrams would otherwise meet each other and leave the wildcards
 *    alone, which is legal. A rank learns from GNI_PostDataProbeById() which of its datagrams is complete; probing
 *    does not take it away.
 * 2. Pairs: ranks 2i and 2i+1 post to each other without any wildcard.
 * 3. Cancel: a wildcard that nobody answers is pending, is cancelled, reads as terminated once, and is gone.
 */
#include "examples/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC        0x64617461u
/* Ids are free to choose; they come back from the probe. */
#define ID_WILDCARD  1000u
#define ID_DIRECTED  2000u
#define ID_PAIR      3000u
#define ID_CANCELLED 4000u

struct payload {
    uint32_t magic;
    uint32_t sender;  /* rank */
    uint32_t purpose; /* the id it was posted under */
    char text[GNI_DATAGRAM_MAXSIZE - 12];
};

_Static_assert(sizeof(struct payload) == GNI_DATAGRAM_MAXSIZE, "the largest datagram");

/* One datagram of this rank: out is copied by the post, in is written when the exchange is complete. */
struct datagram {
    gni_ep_handle_t ep;
    uint32_t id;
    struct payload in;
};

static void post(const struct ex_job *job, struct datagram *datagram)
{
    struct payload out = { .magic = MAGIC, .sender = (uint32_t)job->rank, .purpose = datagram->id };

    ex_pattern_fill(out.text, sizeof(out.text), out.sender + out.purpose);
    memset(&datagram->in, 0, sizeof(datagram->in));
    EX_GNI(GNI_EpPostDataWId(datagram->ep, &out, sizeof(out), &datagram->in, sizeof(datagram->in), datagram->id));
}

/* A completed datagram must name the peer it was expected from and carry what that peer posted under peer_id. */
static void check(const struct ex_job *job, const struct datagram *datagram, uint32_t remote_addr, uint32_t remote_id,
                  int peer, uint32_t peer_id)
{
    const struct payload *in = &datagram->in;

    EX_EXPECT(remote_addr == job->peers[peer].nic_addr && remote_id == job->peers[peer].inst_id,
              "datagram %u came from nic %u instance %u, not from rank %d", datagram->id, remote_addr, remote_id, peer);
    EX_EXPECT(in->magic == MAGIC && in->sender == (uint32_t)peer && in->purpose == peer_id,
              "datagram %u carries the payload of rank %u, posted as %u", datagram->id, in->sender, in->purpose);
    EX_EXPECT(ex_pattern_check(in->text, sizeof(in->text), in->sender + in->purpose) == sizeof(in->text),
              "datagram %u has wrong bytes", datagram->id);
}

/* Wait until some datagram of this process is complete; returns its id. */
static uint64_t probe(const struct ex_job *job)
{
    uint64_t id, again;
    gni_return_t rc;

    while ((rc = GNI_PostDataProbeById(job->nic, &id)) == GNI_RC_NO_MATCH)
        ex_idle();
    ex_busy();
    ex_gni_check(rc, "GNI_PostDataProbeById", __FILE__, __LINE__);
    EX_GNI(GNI_PostDataProbeById(job->nic, &again));
    EX_EXPECT(again == id, "the second probe found %llu, the first %llu", (unsigned long long)again,
              (unsigned long long)id);
    return id;
}

/* Collect a datagram that a probe has found. */
static void collect(const struct ex_job *job, struct datagram *datagram, int peer, uint32_t peer_id)
{
    uint32_t remote_addr, remote_id;
    gni_post_state_t state;

    EX_GNI(GNI_EpPostDataTestById(datagram->ep, datagram->id, &state, &remote_addr, &remote_id));
    EX_EXPECT(state == GNI_POST_COMPLETED, "datagram %u is in state %d", datagram->id, (int)state);
    check(job, datagram, remote_addr, remote_id, peer, peer_id);
}

static void ring(const struct ex_job *job)
{
    int next = (job->rank + 1) % job->n_ranks;
    int previous = (job->rank + job->n_ranks - 1) % job->n_ranks;
    struct datagram wildcard = { .id = ID_WILDCARD };
    struct datagram directed = { .id = ID_DIRECTED };
    int n_wildcard = 0, n_directed = 0;

    EX_GNI(GNI_EpCreate(job->nic, NULL, &wildcard.ep)); /* not bound: a wildcard */
    directed.ep = ex_connect(job, NULL, next);
    post(job, &wildcard);

    for (int turn = 0; turn < 2; turn++) {
        /* In an odd ring the last rank is even like its next one; both post in the first turn, to different peers. */
        int posts = job->rank % 2 == turn;
        int collects = previous % 2 == turn;

        ex_barrier();
        if (posts)
            post(job, &directed);
        for (int n = posts + collects; n > 0; n--) {
            uint64_t id = probe(job);

            if (id == ID_WILDCARD) {
                collect(job, &wildcard, previous, ID_DIRECTED);
                n_wildcard++;
            } else {
                EX_EXPECT(id == ID_DIRECTED, "probe found %llu", (unsigned long long)id);
                collect(job, &directed, next, ID_WILDCARD);
                n_directed++;
            }
        }
    }
    EX_EXPECT(n_wildcard == 1 && n_directed == 1, "%d wildcard, %d directed", n_wildcard, n_directed);
    ex_disconnect(directed.ep, NULL);
    EX_GNI(GNI_EpDestroy(wildcard.ep));
}

static void pairs(const struct ex_job *job)
{
    struct datagram datagram = { .id = ID_PAIR };
    uint32_t remote_addr, remote_id;
    gni_post_state_t state;
    int peer = job->rank ^ 1;

    if (peer >= job->n_ranks)
        return;
    datagram.ep = ex_connect(job, NULL, peer);
    post(job, &datagram);
    /* The waiting form sleeps; -1: for ever, but the peer is certain to come. */
    EX_GNI(GNI_EpPostDataWaitById(datagram.ep, datagram.id, (uint32_t)-1, &state, &remote_addr, &remote_id));
    EX_EXPECT(state == GNI_POST_COMPLETED, "datagram of a pair is in state %d", (int)state);
    check(job, &datagram, remote_addr, remote_id, peer, ID_PAIR);
    ex_disconnect(datagram.ep, NULL);
}

static void cancel(const struct ex_job *job)
{
    struct datagram wildcard = { .id = ID_CANCELLED };
    uint32_t remote_addr, remote_id;
    gni_post_state_t state;
    gni_return_t rc;

    EX_GNI(GNI_EpCreate(job->nic, NULL, &wildcard.ep));
    post(job, &wildcard);
    EX_GNI(GNI_EpPostDataTestById(wildcard.ep, wildcard.id, &state, &remote_addr, &remote_id));
    EX_EXPECT(state == GNI_POST_PENDING, "unanswered wildcard is in state %d", (int)state);

    EX_GNI(GNI_EpPostDataCancelById(wildcard.ep, wildcard.id));
    EX_GNI(GNI_EpPostDataTestById(wildcard.ep, wildcard.id, &state, &remote_addr, &remote_id));
    EX_EXPECT(state == GNI_POST_TERMINATED, "cancelled wildcard is in state %d", (int)state);
    rc = GNI_EpPostDataTestById(wildcard.ep, wildcard.id, &state, &remote_addr, &remote_id);
    EX_EXPECT(rc == GNI_RC_NO_MATCH, "collected wildcard: %s", gni_err_str[rc]);
    EX_GNI(GNI_EpDestroy(wildcard.ep));
}

int main(int argc, char **argv)
{
    struct ex_job job;

    if (argc > 1) {
        int is_help = strcmp(argv[1], "-h") == 0;

        fputs("usage: gni_datagram_exchange\n"
              "example: emunic run -n 4 --ppn 1 -- gni_datagram_exchange\n",
              is_help ? stdout : stderr);
        return is_help ? 0 : 2;
    }
    ex_start(&job, GNI_CDM_MODE_FAST_DATAGRAM_POLL);
    EX_EXPECT(job.n_ranks >= 2, "needs at least 2 ranks");

    ring(&job);
    ex_barrier(); /* no datagram of the pairs may meet a wildcard of the ring */
    pairs(&job);
    ex_barrier(); /* ... nor a wildcard of the last part */
    cancel(&job);

    if (job.rank == 0)
        printf("%d ranks: wildcards met the ring, pairs met each other, cancelled wildcards ended\n", job.n_ranks);
    ex_stop(&job);
    return 0;
}
