/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What short messages cost.
 *
 *   message8_half_round_trip           8 bytes back and forth: the receiver waits for the event of its queue, then
 *                                      takes the message; the sender consumes its completion
 *   message8_mailbox_half_round_trip   the same when the receiver looks into the mailbox and has no queue for arrivals
 *   message8_rate                      a stream of messages, events of both sides consumed
 */
#include "tests/bench/gni_mailbox.h"
#include "tests/bench/gni_pair.h"

enum { WITH_EVENTS, WITHOUT_EVENTS, N_BOXES };

static void send_one(struct mailbox *box, uint64_t value)
{
    uint64_t mail;

    while (!mailbox_try_send(box, value))
        EX_EXPECT(!mailbox_try_receive(box, &mail), "a message out of turn");
    (void)pair_wait(box->src_cq);
}

static void receive_one(struct mailbox *box, uint64_t expected)
{
    uint64_t value = 0;

    do {
        /* An entry is a hint: it may stand for returned credits. */
        if (box->dst_cq)
            (void)pair_wait(box->dst_cq);
    } while (!mailbox_try_receive(box, &value));
    EX_EXPECT(value == expected, "message %llu instead of %llu", (unsigned long long)value,
              (unsigned long long)expected);
}

static void ping_pong(struct pair *pair, struct mailbox *box, long n)
{
    for (long i = 0; i < n; i++) {
        if (pair->job.rank == 0)
            send_one(box, (uint64_t)i);
        receive_one(box, (uint64_t)i);
        if (pair->job.rank == 1)
            send_one(box, (uint64_t)i);
    }
}

static void measure_latency(struct pair *pair, const char *name, struct mailbox *box)
{
    long n = pair->options.n;
    double start_us;

    ex_barrier();
    ping_pong(pair, box, PAIR_WARM_UP);
    start_us = bench_now_us();
    ping_pong(pair, box, n);
    if (pair->job.rank == 0)
        bench_print(name, (bench_now_us() - start_us) / (double)n / 2, "us");
}

static void drain(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(cq, &entry)) == GNI_RC_SUCCESS)
        ;
    EX_EXPECT(rc == GNI_RC_NOT_DONE, "GNI_CqGetEvent: %s", gni_err_str[rc]);
}

/* The receiver answers once, after the last message. */
static void stream_out(struct mailbox *box, long n)
{
    bool is_answered = false;
    long sent = 0;
    uint64_t mail;

    while (!is_answered) {
        while (sent < n && mailbox_try_send(box, (uint64_t)sent))
            sent++;
        drain(box->src_cq);
        drain(box->dst_cq);
        is_answered = mailbox_try_receive(box, &mail);
        EX_EXPECT(!is_answered || sent == n, "a message out of turn");
    }
}

static void stream_in(struct mailbox *box, long n)
{
    uint64_t mail;

    for (long received = 0; received < n;) {
        drain(box->dst_cq);
        /* Not for as long as messages come: their events would fill the queue. */
        for (unsigned i = 0; i < MAILBOX_CREDITS && mailbox_try_receive(box, &mail); i++) {
            EX_EXPECT(mail == (uint64_t)received, "message %llu instead of %ld", (unsigned long long)mail, received);
            received++;
        }
    }
    send_one(box, 0);
}

static void measure_rate(struct pair *pair, struct mailbox *box)
{
    long n = 10 * pair->options.n;
    double start_us;

    ex_barrier();
    start_us = bench_now_us();
    if (pair->job.rank == 0)
        stream_out(box, n);
    else
        stream_in(box, n);
    if (pair->job.rank == 0)
        bench_print("message8_rate", (double)n / (bench_now_us() - start_us), "M/s");
}

int main(int argc, char **argv)
{
    struct pair pair = { 0 };
    struct mailbox box[N_BOXES] = { 0 };
    int peers[N_BOXES], back[N_BOXES] = { WITH_EVENTS, WITHOUT_EVENTS };

    pair_open(&pair, bench_options(argc, argv), 4096);
    for (int i = 0; i < N_BOXES; i++) {
        box[i].src_cq = pair.src_cq;
        box[i].dst_cq = i == WITH_EVENTS ? pair.dst_cq : NULL;
        peers[i] = 1 - pair.job.rank;
    }
    mailbox_open(&pair.job, box, peers, back, N_BOXES);
    measure_latency(&pair, "message8_half_round_trip", &box[WITH_EVENTS]);
    measure_latency(&pair, "message8_mailbox_half_round_trip", &box[WITHOUT_EVENTS]);
    measure_rate(&pair, &box[WITH_EVENTS]);
    ex_barrier();
    for (int i = 0; i < N_BOXES; i++)
        mailbox_close(&pair.job, &box[i]);
    pair_close(&pair);
    return 0;
}
