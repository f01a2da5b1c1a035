/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages around a ring of all ranks.
 *
 *   gni_smsg_ring [-l LAPS] [-n MESSAGES]
 *
 * Rank r has a channel to rank r+1 and one from rank r-1. A channel is a pair of mailboxes, one in the memory of
 * each side; the receiver's mailbox has room for CREDITS messages, a send takes one of these credits, and the
 * library brings credits back as the receiver releases messages. GNI_SmsgSendWTag() answers NOT_DONE when there is
 * none: then it is tried again later.
 *
 * Every rank starts MESSAGES messages of different lengths, more than there are credits. A message runs LAPS times
 * around the ring and ends where it began. A rank never waits for a credit with unread mail: what it has to pass on
 * waits in a queue of its own (a ring in which everybody only sends would lock up).
 *
 * Checked: tag, length and every byte on every hop; the order of the messages of one origin; that exactly the
 * expected number arrives; that each send reports its completion with its msg_id once.
 */
#include "examples/common.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CREDITS    8
#define DATA_MAX   512
#define CQ_ENTRIES 1024

struct header {
    uint32_t origin;    /* rank that started the message */
    uint32_t seq;       /* its number there, from 0 */
    uint32_t n_hops;    /* hops done when it arrives */
    uint32_t len_bytes; /* of the data behind the header: SMSG does not tell the length */
};

struct message {
    struct header header;
    char data[DATA_MAX];
};

/* One direction of the ring, seen from this rank. */
struct channel {
    gni_ep_handle_t ep;
    char *mailbox;
    gni_mem_handle_t memory;
    gni_smsg_attr_t attr;
};

struct ring {
    const struct ex_job *job;
    uint32_t n_laps;
    uint32_t n_own;         /* messages that each rank starts */
    gni_cq_handle_t src_cq; /* our sends are complete */
    gni_cq_handle_t dst_cq; /* something arrived in a mailbox: a message, or credits */
    struct channel next, previous;

    struct message *queue; /* to be sent, oldest first; one slot for every message of the job */
    uint64_t n_slots;
    uint64_t queued, sent;   /* counts since the start; queued - sent are waiting */
    uint64_t completed;      /* sends reported by src_cq */
    unsigned char *reported; /* by msg_id: completion seen */

    uint64_t received;
    uint32_t *expected_seq; /* for each origin, times n_laps: order within a lap */
};

static uint8_t tag_of(uint32_t origin)
{
    return (uint8_t)(origin % GNI_SMSG_ANY_TAG);
}

static uint32_t seed_of(const struct header *header)
{
    return header->origin * 1000003u + header->seq;
}

static uint32_t length_of(uint32_t origin, uint32_t seq)
{
    return (origin * 31 + seq * 17) % (DATA_MAX + 1);
}

static uint64_t total_hops(const struct ring *ring)
{
    /* Every message visits every rank once a lap, so each rank receives all of them n_laps times. */
    return (uint64_t)ring->n_own * (uint64_t)ring->job->n_ranks * ring->n_laps;
}

/* ---- channels ---- */

static void channel_open(struct ring *ring, struct channel *channel)
{
    unsigned int size;

    channel->attr.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
    channel->attr.mbox_maxcredit = CREDITS;
    channel->attr.msg_maxsize = sizeof(struct message);
    EX_GNI(GNI_SmsgBufferSizeNeeded(&channel->attr, &size));

    channel->mailbox = ex_alloc(size); /* zeroed, as SMSG wants its mailboxes before the first use */
    EX_GNI(GNI_MemRegister(ring->job->nic, (uint64_t)channel->mailbox, size, ring->dst_cq, GNI_MEM_READWRITE,
                           (uint32_t)-1, &channel->memory));
    channel->attr.msg_buffer = channel->mailbox;
    channel->attr.buff_size = size;
    channel->attr.mem_hndl = channel->memory;
    channel->attr.mbox_offset = 0;
}

static void channel_close(struct ring *ring, struct channel *channel)
{
    ex_disconnect(channel->ep, ring->src_cq);
    EX_GNI(GNI_MemDeregister(ring->job->nic, &channel->memory));
    free(channel->mailbox);
}

static void ring_open(struct ring *ring)
{
    const struct ex_job *job = ring->job;
    int next = (job->rank + 1) % job->n_ranks;
    int previous = (job->rank + job->n_ranks - 1) % job->n_ranks;
    gni_smsg_attr_t mine[2], *all;

    EX_GNI(GNI_CqCreate(job->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &ring->src_cq));
    EX_GNI(GNI_CqCreate(job->nic, CQ_ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &ring->dst_cq));
    channel_open(ring, &ring->next);
    channel_open(ring, &ring->previous);

    /* Everybody learns all mailboxes; two are needed: what my next rank has for its previous, and the reverse. */
    mine[0] = ring->next.attr;
    mine[1] = ring->previous.attr;
    all = ex_alloc(sizeof(mine) * (size_t)job->n_ranks);
    ex_allgather(job, mine, all, sizeof(mine));
    ring->next.ep = ex_connect(job, ring->src_cq, next);
    ring->previous.ep = ex_connect(job, ring->src_cq, previous);
    EX_GNI(GNI_SmsgInit(ring->next.ep, &ring->next.attr, &all[2 * next + 1]));
    EX_GNI(GNI_SmsgInit(ring->previous.ep, &ring->previous.attr, &all[2 * previous]));
    free(all);
    /* Not required by SMSG: a message may come before the receiver's GNI_SmsgInit(). */
    ex_barrier();
}

static void ring_close(struct ring *ring)
{
    /* Nobody takes down a mailbox into which a neighbour may still return credits. */
    ex_barrier();
    channel_close(ring, &ring->next);
    channel_close(ring, &ring->previous);
    EX_GNI(GNI_CqDestroy(ring->dst_cq));
    EX_GNI(GNI_CqDestroy(ring->src_cq));
}

/* ---- messages ---- */

static struct message *queue_slot(struct ring *ring)
{
    EX_EXPECT(ring->queued - ring->sent < ring->n_slots, "more messages under way than were started");
    return &ring->queue[ring->queued++ % ring->n_slots];
}

static void start_messages(struct ring *ring)
{
    for (uint32_t seq = 0; seq < ring->n_own; seq++) {
        struct message *message = queue_slot(ring);

        message->header.origin = (uint32_t)ring->job->rank;
        message->header.seq = seq;
        message->header.n_hops = 0;
        message->header.len_bytes = length_of(message->header.origin, seq);
        ex_pattern_fill(message->data, message->header.len_bytes, seed_of(&message->header));
    }
}

/* Send what credits allow. Returns how many. */
static int send_queued(struct ring *ring)
{
    int n_sent = 0;

    while (ring->sent < ring->queued) {
        struct message *message = &ring->queue[ring->sent % ring->n_slots];
        gni_return_t rc;

        message->header.n_hops++;
        rc = GNI_SmsgSendWTag(ring->next.ep, &message->header, sizeof(message->header), message->data,
                              message->header.len_bytes, (uint32_t)ring->sent, tag_of(message->header.origin));
        if (rc == GNI_RC_NOT_DONE) {
            message->header.n_hops--;
            break;
        }
        ex_gni_check(rc, "GNI_SmsgSendWTag", __FILE__, __LINE__);
        ring->sent++;
        n_sent++;
    }
    return n_sent;
}

static void check_message(struct ring *ring, const struct header *header, const char *data, uint8_t tag)
{
    uint32_t n_ranks = (uint32_t)ring->job->n_ranks;
    uint32_t rank = (uint32_t)ring->job->rank;
    uint32_t lap, *expected;

    EX_EXPECT(header->origin < n_ranks, "message from rank %u", header->origin);
    EX_EXPECT(header->n_hops >= 1 && header->n_hops <= n_ranks * ring->n_laps, "message after %u hops", header->n_hops);
    EX_EXPECT((header->origin + header->n_hops) % n_ranks == rank,
              "message of rank %u is at the wrong rank after %u hops", header->origin, header->n_hops);
    EX_EXPECT(tag == tag_of(header->origin), "tag %u on a message of rank %u", tag, header->origin);

    /* A channel keeps order and so does our queue: within one lap the messages of an origin stay in sequence. */
    lap = (header->n_hops - 1) / n_ranks;
    expected = &ring->expected_seq[header->origin * ring->n_laps + lap];
    EX_EXPECT(header->seq == *expected, "message %u of rank %u came in place of %u (lap %u)", header->seq,
              header->origin, *expected, lap);
    ++*expected;

    EX_EXPECT(header->len_bytes == length_of(header->origin, header->seq), "message %u of rank %u says %u bytes",
              header->seq, header->origin, header->len_bytes);
    EX_EXPECT(ex_pattern_check(data, header->len_bytes, seed_of(header)) == header->len_bytes,
              "message %u of rank %u: wrong data after %u hops", header->seq, header->origin, header->n_hops);
}

/* Take all mail from the previous rank. Returns how much. */
static int receive(struct ring *ring)
{
    int n_received = 0;

    for (;;) {
        uint8_t tag = GNI_SMSG_ANY_TAG;
        void *mail;
        struct header *header;
        gni_return_t rc = GNI_SmsgGetNextWTag(ring->previous.ep, &mail, &tag);

        if (rc == GNI_RC_NOT_DONE)
            return n_received;
        ex_gni_check(rc, "GNI_SmsgGetNextWTag", __FILE__, __LINE__);

        /* Header and data lie one behind the other in the mailbox, ours until the release. */
        header = mail;
        check_message(ring, header, (const char *)mail + sizeof(*header), tag);
        if (header->n_hops < (uint32_t)ring->job->n_ranks * ring->n_laps)
            memcpy(queue_slot(ring), mail, sizeof(*header) + header->len_bytes);
        EX_GNI(GNI_SmsgRelease(ring->previous.ep));
        ring->received++;
        n_received++;
    }
}

/* Collect completions of sends. Returns how many. */
static int collect_sends(struct ring *ring)
{
    int n_collected = 0;
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(ring->src_cq, &entry)) != GNI_RC_NOT_DONE) {
        uint32_t msg_id;

        ex_gni_check(rc, "GNI_CqGetEvent of the source queue", __FILE__, __LINE__);
        EX_EXPECT(GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_SMSG, "entry of type %llu among the sends",
                  (unsigned long long)GNI_CQ_GET_TYPE(entry));
        msg_id = (uint32_t)GNI_CQ_GET_MSG_ID(entry);
        EX_EXPECT(msg_id < ring->sent && !ring->reported[msg_id], "completion of send %u was not expected", msg_id);
        ring->reported[msg_id] = 1;
        ring->completed++;
        n_collected++;
    }
    return n_collected;
}

/*
 * Entries of the destination queue are hints: one look into a mailbox may take several messages, an entry may stand
 * for returned credits only, and on real networks it may even be seen before its message. So empty the queue and
 * look in any case.
 */
static int poll_mail(struct ring *ring)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    gni_cq_entry_t entry;
    gni_return_t rc;
    void *mail;

    while ((rc = GNI_CqGetEvent(ring->dst_cq, &entry)) == GNI_RC_SUCCESS)
        continue;
    EX_EXPECT(rc == GNI_RC_NOT_DONE, "GNI_CqGetEvent of the destination queue: %s", gni_err_str[rc]);
    /* Nobody sends against the ring, but this look takes in the credits that the next rank gave back. */
    rc = GNI_SmsgGetNextWTag(ring->next.ep, &mail, &tag);
    EX_EXPECT(rc == GNI_RC_NOT_DONE, "mail from the next rank: %s", gni_err_str[rc]);
    return receive(ring);
}

static void run(struct ring *ring)
{
    start_messages(ring);
    while (ring->received < total_hops(ring) || ring->completed < total_hops(ring)) {
        int progress = poll_mail(ring);

        progress += send_queued(ring);
        progress += collect_sends(ring);
        if (progress > 0)
            ex_busy();
        else
            ex_idle();
    }
    EX_EXPECT(ring->received == total_hops(ring) && ring->sent == ring->received && ring->sent == ring->queued,
              "received %llu, sent %llu, expected %llu", (unsigned long long)ring->received,
              (unsigned long long)ring->sent, (unsigned long long)total_hops(ring));
}

int main(int argc, char **argv)
{
    struct ex_job job;
    struct ring ring = { .n_laps = 3, .n_own = 4 * CREDITS };
    double taken_us;
    int option;

    while ((option = getopt(argc, argv, "l:n:h")) != -1) {
        if (option == 'l') {
            ring.n_laps = (uint32_t)atoi(optarg);
        } else if (option == 'n') {
            ring.n_own = (uint32_t)atoi(optarg);
        } else {
            fputs("usage: gni_smsg_ring [-l LAPS] [-n MESSAGES]\n"
                  "example: emunic run -n 4 --ppn 1 -- gni_smsg_ring -l 10\n",
                  option == 'h' ? stdout : stderr);
            return option == 'h' ? 0 : 2;
        }
    }
    if (ring.n_laps - 1 >= 1000 || ring.n_own - 1 >= 10000 || optind != argc) {
        fputs("gni_smsg_ring: 1 to 1000 laps, 1 to 10000 messages; try -h\n", stderr);
        return 2;
    }

    ex_start(&job, 0);
    EX_EXPECT(job.n_ranks >= 2, "needs at least 2 ranks");
    ring.job = &job;
    EX_EXPECT(total_hops(&ring) <= UINT32_MAX, "too many messages for 32-bit ids");
    ring.n_slots = (uint64_t)ring.n_own * (uint64_t)job.n_ranks;
    ring.queue = ex_alloc(ring.n_slots * sizeof(*ring.queue));
    ring.reported = ex_alloc(total_hops(&ring));
    ring.expected_seq = ex_alloc((size_t)job.n_ranks * ring.n_laps * sizeof(*ring.expected_seq));
    ring_open(&ring);

    taken_us = ex_time_us();
    run(&ring);
    taken_us = ex_time_us() - taken_us;

    ring_close(&ring);
    if (job.rank == 0)
        printf("%d ranks, %u laps: %llu messages received by each, in order, %.3f us each\n", job.n_ranks, ring.n_laps,
               (unsigned long long)total_hops(&ring), taken_us / (double)total_hops(&ring));
    free(ring.expected_seq);
    free(ring.reported);
    free(ring.queue);
    ex_stop(&job);
    return 0;
}
