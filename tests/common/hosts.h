/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transports for tests, several in one process or one per process: what each was told is kept beside it. A test drives
 * those that it wants to run; one that is not driven is a host that does not progress. Include after cmocka.h.
 */
#ifndef TESTS_COMMON_HOSTS_H
#define TESTS_COMMON_HOSTS_H

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "emunic/transport/inner.h"

#define HOSTS_MAX        4u
#define HOST_PATIENCE_NS 20000000000ull
#define HOST_KEY         "a key of a job for tests"

struct host {
    struct emu_transport *t;
    struct emu_transport_config config;
    uint8_t blob[EMU_TRANSPORT_BLOB_MAX];
    uint32_t blob_bytes;
    uint32_t n_up;
    uint32_t n_down;
    uint32_t n_moved;
    uint32_t n_differs;
    int cause[HOSTS_MAX]; /* of the last peer_down */
    uint64_t n_messages[HOSTS_MAX];
    uint64_t n_wrong; /* messages that were not the next one of their sender */
    bool is_deaf;     /* takes no messages */
    bool is_any;      /* takes all messages as they are */
    uint8_t last[64]; /* first bytes of the last message */
    uint32_t last_bytes;
    uint32_t n_room;
    uint32_t n_done;
    uint64_t last_cookie;
    int last_result;
    bool (*look)(struct host *host); /* at each message, is it right now? */
    uint8_t *memory;
    uint32_t n_warnings;
    char line[256]; /* of the log, the last that was no information */
};

static inline void host_up(void *owner, uint32_t peer)
{
    struct host *h = owner;

    (void)peer;
    h->n_up++;
}

static inline void host_down(void *owner, uint32_t peer, int cause)
{
    struct host *h = owner;

    h->n_down++;
    h->cause[peer] = cause;
}

static inline void host_moved(void *owner, uint32_t peer)
{
    struct host *h = owner;

    (void)peer;
    h->n_moved++;
}

static inline void host_differs(void *owner, uint32_t peer)
{
    struct host *h = owner;

    (void)peer;
    h->n_differs++;
}

/* Message n of a sender begins with n, and every byte after is a function of n and place. */
static inline void message_fill(uint8_t *bytes, uint32_t length, uint64_t n)
{
    for (uint32_t i = 0; i < length; i++)
        bytes[i] = (uint8_t)(n * 31 + i * 7);
    memcpy(bytes, &n, length < sizeof(n) ? length : sizeof(n));
}

static inline bool host_message(void *owner, uint32_t peer, const void *data, uint32_t length)
{
    struct host *h = owner;
    uint8_t expected[EMU_WIRE_MESSAGE_MAX];

    if (h->is_deaf)
        return false;
    if (!h->is_any) {
        message_fill(expected, length, h->n_messages[peer]);
        h->n_wrong += memcmp(expected, data, length) != 0;
    }
    if (h->look && !h->look(h))
        h->n_wrong++;
    h->last_bytes = length;
    memcpy(h->last, data, length < sizeof(h->last) ? length : sizeof(h->last));
    h->n_messages[peer]++;
    return true;
}

static inline void host_room(void *owner, uint32_t peer)
{
    struct host *h = owner;

    (void)peer;
    h->n_room++;
}

static inline void host_done(void *owner, uint64_t cookie, int result)
{
    struct host *h = owner;

    h->n_done++;
    h->last_cookie = cookie;
    h->last_result = result;
}

static inline void host_log(void *owner, enum emu_log_level level, const char *line)
{
    struct host *h = owner;

    if (level <= EMU_LOG_WARN) {
        h->n_warnings++;
        snprintf(h->line, sizeof(h->line), "%s", line);
    }
    if (getenv("EMU_TEST_LOG"))
        fprintf(stderr, "# host %u: %s\n", h->config.host, line);
}

static const struct emu_transport_events host_events = {
    .peer_up = host_up,
    .peer_down = host_down,
    .peer_moved = host_moved,
    .message = host_message,
    .room = host_room,
    .transfer_done = host_done,
    .secure_differs = host_differs,
    .log = host_log,
};

/* Fields of `config` that are not set get values for a test on loopback. 0 or negative errno. */
static inline int host_open(struct host *h, uint32_t number, struct emu_transport_config config)
{
    int r;

    memset(h, 0, sizeof(*h));
    h->config = config;
    h->config.host = number;
    h->config.n_hosts = HOSTS_MAX;
    if (!config.incarnation)
        h->config.incarnation = 1;
    if (!config.key) {
        h->config.key = HOST_KEY;
        h->config.key_bytes = sizeof(HOST_KEY);
    }
    if (!config.provider)
        h->config.provider = "tcp;ofi_rxm";
    if (!config.node)
        h->config.node = "127.0.0.1";
    h->config.events = &host_events;
    h->config.owner = h;
    r = emu_transport_ops.open(&h->config, &h->t);
    if (r == 0)
        r = emu_transport_ops.address(h->t, h->blob, &h->blob_bytes);
    return r;
}

static inline void host_close(struct host *h)
{
    emu_transport_ops.close(h->t);
    h->t = NULL;
}

/* Drives those that are not NULL until `is_true`. False: patience is at its end. */
static inline bool drive(struct host *const hosts[], unsigned n, bool (*is_true)(void *arg), void *arg)
{
    uint64_t end_ns = emu_clock_ns() + HOST_PATIENCE_NS;

    while (!is_true(arg)) {
        for (unsigned i = 0; i < n; i++) {
            if (hosts[i])
                emu_transport_ops.progress(hosts[i]->t);
        }
        if (emu_clock_ns() > end_ns)
            return false;
        sched_yield();
    }
    return true;
}

static inline struct emu_transport_stats host_stats(const struct host *h, uint32_t peer)
{
    struct emu_transport_stats stats;

    emu_transport_ops.stats(h->t, peer, &stats);
    return stats;
}

#endif
