/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libfabric by itself. One receive is always posted, so a side that is late loses nothing. A put's bytes carry its
 * number, which the other side looks for between two polls, as a program does that is driven by its memory.
 */
#include "tests/bench/bare.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/transport/crypt.h"
#include "emunic/transport/transport.h"

static void check(int r, const char *what)
{
    if (r != 0) {
        fprintf(stderr, "libfabric: %s: %s\n", what, strerror(r < 0 ? -r : EIO));
        exit(1);
    }
}

static void post_receive(struct bare *b)
{
    check(b->c->ops->receive(b->c, &b->receive_op, b->packet[1], sizeof(b->packet[1]), NULL), "receive");
}

void bare_open(struct bare *b, const char *provider, const char *node, void *memory, uint64_t length_bytes,
               struct bare_name *mine_out)
{
    static const char key[] = "a benchmark has no secrets";
    struct emu_transport_config config = { .provider = provider ? provider : "tcp;ofi_rxm",
                                           .node = node,
                                           .key = key,
                                           .key_bytes = sizeof(key),
                                           .n_hosts = EMU_WIRE_HOSTS_MAX };
    const char *text;
    uint16_t host;

    /* Both sides have numbers of their own, which nobody tells them. */
    check(emu_crypt_init(), "random numbers");
    emu_crypt_random(&host, sizeof(host));
    config.host = host;
    *b = (struct bare){ .memory = memory };
    check(emu_ofi_open(&config, &b->c, &text), "open");
    check(b->c->ops->address(b->c, mine_out->address, &mine_out->address_bytes), "address");
    check(b->c->ops->map(b->c, memory, length_bytes, EMU_TRANSPORT_READ | EMU_TRANSPORT_WRITE, 77, &b->own), "map");
    mine_out->key = b->own.key;
    mine_out->base = b->own.base;
    post_receive(b);
}

void bare_join(struct bare *b, const struct bare_name *theirs)
{
    b->theirs = *theirs;
    check(b->c->ops->add(b->c, theirs->address, theirs->address_bytes, &b->peer), "add");
}

void bare_poll(struct bare *b)
{
    struct emu_carrier_event event[8];
    int n = b->c->ops->poll(b->c, event, 8);

    for (int i = 0; i < n; i++) {
        check(event[i].result, "completion");
        if (event[i].op == &b->receive_op) {
            b->n_received++;
            post_receive(b);
        } else if (event[i].op == &b->send_op) {
            b->n_sent++;
        } else {
            b->n_moved++;
        }
    }
}

static void send_one(struct bare *b)
{
    long sent = b->n_sent;

    while (b->c->ops->send(b->c, b->peer, &b->send_op, b->packet[0], 8, NULL) == -EAGAIN)
        bare_poll(b);
    while (b->n_sent == sent)
        bare_poll(b);
}

void bare_message_pingpong(struct bare *b, int rank, long n)
{
    long first = b->n_received;

    for (long i = 1; i <= n; i++) {
        if (rank == 0)
            send_one(b);
        while (b->n_received < first + i)
            bare_poll(b);
        if (rank == 1)
            send_one(b);
    }
}

static void move_bytes(struct bare *b, bool is_put, unsigned slot, uint64_t from, uint64_t to, uint64_t bytes)
{
    struct emu_carrier_move move = { .local = (uint8_t *)(uintptr_t)b->memory + (is_put ? from : to),
                                     .desc = b->own.desc,
                                     .length_bytes = bytes,
                                     .remote = b->theirs.base + (is_put ? to : from),
                                     .key = b->theirs.key };
    int r;

    for (;;) {
        r = is_put ? b->c->ops->write(b->c, b->peer, &b->move_op[slot], &move) :
                     b->c->ops->read(b->c, b->peer, &b->move_op[slot], &move);
        if (r != -EAGAIN)
            break;
        bare_poll(b);
    }
    check(r, is_put ? "write" : "read");
}

/* The word at 8 is what is sent, that at 0 what has come. */
static void put_one(struct bare *b, uint64_t value)
{
    long moved = b->n_moved;

    *(volatile uint64_t *)(b->memory + 8) = value;
    move_bytes(b, true, 0, 8, 0, 8);
    while (b->n_moved == moved)
        bare_poll(b);
}

void bare_put_pingpong(struct bare *b, int rank, long n)
{
    volatile uint64_t *word = (volatile uint64_t *)b->memory;

    for (long i = 0; i < n; i++) {
        b->turn++;
        if (rank == 0)
            put_one(b, b->turn);
        while (*word != b->turn)
            bare_poll(b);
        if (rank == 1)
            put_one(b, b->turn);
    }
}

void bare_stream(struct bare *b, bool is_put, uint64_t bytes, unsigned window, long n)
{
    long first = b->n_moved;

    for (long i = 0; i < n; i++) {
        move_bytes(b, is_put, (unsigned)(i % window), 0, 0, bytes);
        while (i + 1 - (b->n_moved - first) >= (long)window)
            bare_poll(b);
    }
    while (b->n_moved - first < n)
        bare_poll(b);
}

void bare_serve(struct bare *b)
{
    long received = b->n_received;

    while (b->n_received == received)
        bare_poll(b);
}

void bare_dismiss(struct bare *b)
{
    send_one(b);
}
