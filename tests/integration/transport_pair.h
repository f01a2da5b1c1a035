/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts and more that talk over libfabric's tcp on loopback, all in this process: whoever is not driven does not
 * progress. Host 0 sends numbered messages to host 1. Include after cmocka.h.
 */
#ifndef TESTS_INTEGRATION_TRANSPORT_PAIR_H
#define TESTS_INTEGRATION_TRANSPORT_PAIR_H

#include "tests/common/hosts.h"

#define SMALL 8u

static struct host hosts[HOSTS_MAX];
static struct host *pair[2] = { &hosts[0], &hosts[1] };
static const struct emu_transport_ops *const ops = &emu_transport_ops;

static inline bool both_up(void *arg)
{
    (void)arg;
    return hosts[0].n_up == 1 && hosts[1].n_up == 1;
}

static inline void open_pair_with(struct emu_transport_config first, struct emu_transport_config second)
{
    assert_int_equal(host_open(&hosts[0], 0, first), 0);
    assert_int_equal(host_open(&hosts[1], 1, second), 0);
    assert_int_equal(ops->join(hosts[0].t, 1, hosts[1].blob, hosts[1].blob_bytes), 0);
    assert_int_equal(ops->join(hosts[1].t, 0, hosts[0].blob, hosts[0].blob_bytes), 0);
}

static inline void open_pair(struct emu_transport_config config)
{
    open_pair_with(config, config);
    assert_true(drive(pair, 2, both_up, NULL));
}

static inline int close_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HOSTS_MAX; i++) {
        host_close(&hosts[i]);
        free(hosts[i].memory);
    }
    memset(hosts, 0, sizeof(hosts));
    return 0;
}

static uint64_t sent;

static inline int send_next(uint32_t length)
{
    uint8_t bytes[EMU_WIRE_MESSAGE_MAX];
    int r;

    message_fill(bytes, length, sent);
    r = ops->send(hosts[0].t, 1, bytes, length);
    sent += r == 0;
    return r;
}

static inline bool all_arrived(void *arg)
{
    (void)arg;
    return hosts[1].n_messages[0] == sent;
}

static inline bool both_down(void *arg)
{
    (void)arg;
    return hosts[0].n_down == 1 && hosts[1].n_down == 1;
}

#endif
