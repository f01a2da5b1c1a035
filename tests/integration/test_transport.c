/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts over libfabric's tcp on loopback (transport_pair.h): messages, transfers, connections that break.
 * test_transport_hostile.c has strangers and liars, test_transport_ends.c hosts that die.
 */
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "tests/common/seed.h"
#include "tests/integration/transport_pair.h"

#define BIG_BYTES (9u << 20)

static void test_messages_arrive_once_in_order_and_whole(void **state)
{
    struct emu_random random = seeded(7);

    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ 0 });
    while (sent < 20000) {
        uint32_t length = emu_random_below(&random, 16) ? 1 + (uint32_t)emu_random_below(&random, 100) :
                                                          1 + (uint32_t)emu_random_below(&random, EMU_WIRE_MESSAGE_MAX);
        int r = send_next(length);

        assert_true(r >= 0);
        if (r == EMU_TRANSPORT_FULL || emu_random_below(&random, 4) == 0)
            ops->progress(hosts[0].t);
        if (emu_random_below(&random, 3) == 0)
            ops->progress(hosts[1].t);
    }
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(hosts[1].n_wrong, 0);
    assert_int_equal(host_stats(&hosts[0], 1).messages_sent, sent);
    assert_int_equal(host_stats(&hosts[1], 0).messages_received, sent);
}

static void test_messages_that_queue_up_share_packets(void **state)
{
    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ 0 });
    while (sent < 1000)
        assert_int_equal(send_next(SMALL), 0);
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(hosts[1].n_wrong, 0);
    assert_in_range(host_stats(&hosts[0], 1).packets_sent, 2, 10);
}

static void test_single_message_leaves_at_once(void **state)
{
    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ 0 });
    assert_int_equal(send_next(SMALL), 0);
    assert_int_equal(host_stats(&hosts[0], 1).packets_sent, 1);
}

static void test_host_that_does_not_progress_stops_only_what_goes_to_it(void **state)
{
    struct host *others[] = { &hosts[0], &hosts[2] };
    struct host *all[] = { &hosts[0], &hosts[1], &hosts[2] };
    uint8_t bytes[4000];
    uint64_t n = 0;
    int r;

    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ .timeout_ns = 60000000000ull });
    assert_int_equal(host_open(&hosts[2], 2, (struct emu_transport_config){ 0 }), 0);
    assert_int_equal(ops->join(hosts[0].t, 2, hosts[2].blob, hosts[2].blob_bytes), 0);
    assert_int_equal(ops->join(hosts[2].t, 0, hosts[0].blob, hosts[0].blob_bytes), 0);
    while (hosts[0].n_up < 2 || hosts[2].n_up < 1) {
        ops->progress(hosts[0].t);
        ops->progress(hosts[2].t);
    }
    do {
        r = send_next(4000);
        ops->progress(hosts[0].t);
    } while (r == 0 || host_stats(&hosts[0], 1).packets_sent < 32);
    assert_int_equal(r, EMU_TRANSPORT_FULL);
    /* credits, and what waits here for more: about (32 + 16) packets of three messages */
    assert_in_range(sent, 32, 200);
    for (; n < 3000; n++) {
        message_fill(bytes, sizeof(bytes), n);
        while ((r = ops->send(hosts[0].t, 2, bytes, sizeof(bytes))) == EMU_TRANSPORT_FULL) {
            ops->progress(hosts[0].t);
            ops->progress(hosts[2].t);
        }
        assert_int_equal(r, 0);
    }
    while (hosts[2].n_messages[0] < n) {
        ops->progress(others[0]->t);
        ops->progress(others[1]->t);
    }
    assert_int_equal(hosts[2].n_wrong, 0);
    hosts[0].n_room = 0;
    assert_true(drive(all, 3, all_arrived, NULL));
    assert_int_equal(hosts[1].n_wrong, 0);
    assert_int_equal(hosts[0].n_room, 1);
}

static bool sender_is_full(void *arg)
{
    (void)arg;
    return send_next(4000) == EMU_TRANSPORT_FULL && host_stats(&hosts[0], 1).packets_sent >= 32;
}

static void test_owner_that_takes_nothing_gets_it_later(void **state)
{
    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ 0 });
    hosts[1].is_deaf = true;
    assert_true(drive(pair, 2, sender_is_full, NULL));
    assert_int_equal(hosts[1].n_messages[0], 0);
    hosts[1].is_deaf = false;
    assert_int_equal(ops->resume(hosts[1].t, 0), 0);
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(hosts[1].n_wrong, 0);
}

/* ---- transfers ---- */

static struct emu_transport_region *region[2];
static struct emu_transport_remote remote;

static uint8_t byte_at(uint64_t i, unsigned salt)
{
    return (uint8_t)((i * 2654435761u >> 13) + i + salt);
}

static void open_transfers(struct emu_transport_config config)
{
    open_pair(config);
    for (unsigned i = 0; i < 2; i++) {
        hosts[i].memory = malloc(BIG_BYTES);
        for (uint64_t k = 0; k < BIG_BYTES; k++)
            hosts[i].memory[k] = byte_at(k, i);
        assert_int_equal(ops->region_create(hosts[i].t, hosts[i].memory, BIG_BYTES,
                                            EMU_TRANSPORT_READ | EMU_TRANSPORT_WRITE, &region[i]),
                         0);
    }
    ops->region_remote(region[1], &remote);
}

static int close_transfers(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(ops->region_destroy(region[i]), 0);
        region[i] = NULL;
    }
    return close_all(state);
}

/* The host takes another connection; what is on its way comes too late. */
static void break_connection(unsigned host)
{
    struct emu_transport *t = hosts[host].t;
    struct emu_peer *p = t->peers[!host];
    int r;

    assert_int_equal(p->state, EMU_PEER_UP);
    while ((r = t->carrier->ops->renew(t->carrier, p->addr)) == -EAGAIN)
        sched_yield();
    assert_int_equal(r, 0);
    emu_session_mend(p, "a test");
}

/* All connections of both hosts break. What is on its way comes back with errors. */
static void shut_connections(unsigned host)
{
    struct sockaddr_in peer;

    (void)host;
    for (int fd = 3; fd < 1024; fd++) {
        socklen_t length = sizeof(peer);

        if (getpeername(fd, (struct sockaddr *)&peer, &length) == 0 && peer.sin_family == AF_INET)
            shutdown(fd, SHUT_RDWR);
    }
}

static uint32_t wanted_done;
static uint64_t break_at_bytes;    /* the connection breaks when so much was moved; 0: never */
static uint64_t break_every_bytes; /* and again after so much; 0: once */
static void (*break_it)(unsigned host);

static bool is_done(void *arg)
{
    struct emu_transport_stats stats = host_stats(&hosts[0], 1);

    (void)arg;
    if (break_at_bytes > 0 && stats.put_bytes + stats.get_bytes >= break_at_bytes) {
        break_it(break_at_bytes >> 21 & 1);
        break_at_bytes = break_every_bytes > 0 ? break_at_bytes + break_every_bytes : 0;
    }
    return hosts[0].n_done == wanted_done;
}

static void check_put_and_get(void)
{
    uint64_t length = BIG_BYTES - 3000;

    assert_int_equal(
        ops->put(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 1001, &remote, 2003, length, 77 }, NULL, 0),
        0);
    wanted_done = 1;
    assert_true(drive(pair, 2, is_done, NULL));
    assert_int_equal(hosts[0].last_cookie, 77);
    assert_int_equal(hosts[0].last_result, 0);
    for (uint64_t i = 0; i < BIG_BYTES; i++) {
        bool is_inside = i >= 2003 && i < 2003 + length;

        if (hosts[1].memory[i] != (is_inside ? byte_at(i - 2003 + 1001, 0) : byte_at(i, 1)))
            fail_msg("byte %llu of the put is wrong", (unsigned long long)i);
    }
    for (uint64_t i = 0; i < BIG_BYTES; i++)
        hosts[1].memory[i] = byte_at(i, 5);
    assert_int_equal(ops->get(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 3, &remote, 5, length, 78 }), 0);
    wanted_done = 2;
    assert_true(drive(pair, 2, is_done, NULL));
    assert_int_equal(hosts[0].last_result, 0);
    for (uint64_t i = 0; i < BIG_BYTES; i++) {
        bool is_inside = i >= 3 && i < 3 + length;

        if (hosts[0].memory[i] != (is_inside ? byte_at(i - 3 + 5, 5) : byte_at(i, 0)))
            fail_msg("byte %llu of the get is wrong", (unsigned long long)i);
    }
    assert_int_equal(host_stats(&hosts[0], 1).put_bytes, length);
    assert_int_equal(host_stats(&hosts[0], 1).get_bytes, length);
}

static void test_transfers_by_remote_access_move_every_byte(void **state)
{
    struct emu_transport_info info;

    (void)state;
    open_transfers((struct emu_transport_config){ 0 });
    ops->info(hosts[0].t, &info);
    assert_true(info.has_rma);
    assert_string_equal(info.provider, "tcp;ofi_rxm");
    check_put_and_get();
    assert_in_range(host_stats(&hosts[0], 1).packets_sent, 0, 10);
}

static void test_transfers_through_messages_move_every_byte(void **state)
{
    (void)state;
    open_transfers((struct emu_transport_config){ .is_rma_off = true });
    check_put_and_get();
}

static void check_transfers_go_on(void (*how)(unsigned host), uint64_t every_bytes, uint64_t n_moves)
{
    open_transfers((struct emu_transport_config){ 0 });
    break_it = how;
    break_every_bytes = every_bytes;
    break_at_bytes = 1;
    check_put_and_get();
    break_at_bytes = 0;
    assert_int_equal(hosts[0].n_down + hosts[1].n_down, 0);
    assert_int_equal(hosts[0].n_moved + 1, host_stats(&hosts[0], 1).sessions);
    assert_true(hosts[0].n_moved >= n_moves && hosts[1].n_moved >= n_moves);
}

static void test_transfers_go_on_over_other_connections(void **state)
{
    (void)state;
    check_transfers_go_on(break_connection, 2u << 20, 4);
}

static void test_transfers_begin_again_where_their_connection_broke(void **state)
{
    (void)state;
    check_transfers_go_on(shut_connections, 0, 1); /* once: libfabric 1.17 leaks a connection that breaks early */
}

/* The last byte of the latest put is there when its notice comes. */
static bool data_are_there(struct host *h)
{
    return h->memory[BIG_BYTES - 1] == (uint8_t)(h->n_messages[0] + 1);
}

static void check_notice_comes_after_data(void)
{
    static const char notice[8] = "notice";

    hosts[1].is_any = true;
    hosts[1].look = data_are_there;
    for (wanted_done = 1; wanted_done <= 8; wanted_done++) {
        hosts[0].memory[BIG_BYTES - 1] = (uint8_t)wanted_done;
        assert_int_equal(ops->put(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 0, &remote, 0, BIG_BYTES, 0 },
                                  notice, sizeof(notice)),
                         0);
        assert_true(drive(pair, 2, is_done, NULL));
        sent = wanted_done;
        assert_true(drive(pair, 2, all_arrived, NULL));
    }
    assert_int_equal(hosts[1].n_wrong, 0);
    assert_memory_equal(hosts[1].last, notice, sizeof(notice));
}

static void test_notice_comes_after_data(void **state)
{
    (void)state;
    open_transfers((struct emu_transport_config){ 0 });
    check_notice_comes_after_data();
}

static void test_notice_comes_after_data_through_messages(void **state)
{
    (void)state;
    open_transfers((struct emu_transport_config){ .is_rma_off = true });
    check_notice_comes_after_data();
}

static void check_message_overtakes(void)
{
    open_transfers((struct emu_transport_config){ .is_rma_off = hosts[0].config.is_rma_off });
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(
            ops->put(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 0, &remote, 0, BIG_BYTES, i }, NULL, 0),
            0);
    for (unsigned i = 0; i < 10; i++)
        ops->progress(hosts[0].t);
    sent = 0;
    assert_int_equal(send_next(SMALL), 0);
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_true(hosts[0].n_done < 5); /* of 180 MiB, next to nothing was in front of it */
    wanted_done = 20;
    assert_true(drive(pair, 2, is_done, NULL));
}

static void test_long_transfers_do_not_delay_a_message(void **state)
{
    (void)state;
    check_message_overtakes();
}

static void test_bad_transfers_end_with_an_error_each(void **state)
{
    struct emu_transport_remote bad = remote;

    (void)state;
    open_transfers((struct emu_transport_config){ .is_rma_off = true });
    bad = remote;
    assert_int_equal(
        ops->put(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 0, &remote, 1, BIG_BYTES, 1 }, NULL, 0),
        -ERANGE);
    assert_int_equal(
        ops->put(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 1, &remote, 0, BIG_BYTES, 1 }, NULL, 0),
        -ERANGE);
    assert_int_equal(ops->get(hosts[0].t, 2, &(struct emu_transport_move){ region[0], 0, &remote, 0, 8, 1 }),
                     -ENOTCONN);
    bad.length_bytes = 2 * BIG_BYTES; /* a liar: the target looks for itself */
    assert_int_equal(
        ops->put(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 0, &bad, BIG_BYTES - 100, 1000, 2 }, NULL, 0),
        0);
    wanted_done = 1;
    assert_true(drive(pair, 2, is_done, NULL));
    assert_int_equal(hosts[0].last_result, -ERANGE);
    bad.key++;
    assert_int_equal(ops->get(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 0, &bad, 0, BIG_BYTES, 3 }), 0);
    wanted_done = 2;
    assert_true(drive(pair, 2, is_done, NULL));
    assert_int_equal(hosts[0].last_result, -ENXIO);
    for (uint64_t i = 0; i < BIG_BYTES; i++)
        assert_int_equal(hosts[1].memory[i], byte_at(i, 1));
    assert_int_equal(hosts[1].n_down, 0);
}

static void test_region_in_use_stays(void **state)
{
    (void)state;
    open_transfers((struct emu_transport_config){ 0 });
    assert_int_equal(
        ops->put(hosts[0].t, 1, &(struct emu_transport_move){ region[0], 0, &remote, 0, BIG_BYTES, 1 }, NULL, 0), 0);
    assert_int_equal(ops->region_destroy(region[0]), -EBUSY);
    wanted_done = 1;
    assert_true(drive(pair, 2, is_done, NULL));
}

/* ---- packets and connections that get lost ---- */

static void test_packets_that_get_lost_come_again(void **state)
{
    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ 0 });
    hosts[0].t->peers[1]->tx_sequence++; /* as if it had sent one more */
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(send_next(SMALL), 0);
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(hosts[1].n_wrong, 0);
    assert_int_equal(hosts[0].n_down + hosts[1].n_down, 0);
    assert_int_equal(host_stats(&hosts[1], 0).sessions, 2);
}

static void test_connections_that_break_lose_nothing(void **state)
{
    struct emu_random random = seeded(17);
    unsigned n_breaks = 0;

    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ 0 });
    for (uint64_t i = 0; sent < 4000; i++) {
        uint32_t length = 1 + (uint32_t)emu_random_below(&random, 3000);
        uint8_t bytes[3000];

        assert_true(send_next(length) >= 0);
        message_fill(bytes, length, hosts[0].n_messages[1]);
        if (host_stats(&hosts[1], 0).messages_sent == hosts[0].n_messages[1])
            assert_true(ops->send(hosts[1].t, 0, bytes, length) >= 0);
        for (unsigned host = 0; host < 2; host++) {
            if (emu_random_below(&random, 2) == 0)
                ops->progress(hosts[host].t);
        }
        if (sent / 200 > n_breaks) {
            n_breaks++;
            break_connection((unsigned)emu_random_below(&random, 2));
        }
    }
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(hosts[0].n_wrong + hosts[1].n_wrong, 0);
    assert_int_equal(hosts[0].n_down + hosts[1].n_down, 0);
    assert_true(hosts[0].n_messages[1] > 0);
}

/* ---- joining, leaving, waiting ---- */

static void test_host_that_leaves_can_join_again(void **state)
{
    (void)state;
    open_pair((struct emu_transport_config){ 0 });
    assert_int_equal(ops->join(hosts[0].t, 1, hosts[1].blob, hosts[1].blob_bytes), -EBUSY);
    assert_int_equal(ops->leave(hosts[1].t, 0), 0);
    assert_true(drive(pair, 2, both_down, NULL));
    assert_int_equal(hosts[0].cause[1], -ESHUTDOWN);
    assert_int_equal(hosts[1].cause[0], -ECANCELED);
    assert_int_equal(ops->send(hosts[0].t, 1, "x", 1), -ENOTCONN);
    hosts[0].n_up = hosts[1].n_up = 0;
    assert_int_equal(ops->join(hosts[0].t, 1, hosts[1].blob, hosts[1].blob_bytes), 0);
    assert_int_equal(ops->join(hosts[1].t, 0, hosts[0].blob, hosts[0].blob_bytes), 0);
    assert_true(drive(pair, 2, both_up, NULL));
    sent = 0;
    while (sent < 100)
        assert_int_equal(send_next(SMALL), 0);
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(hosts[1].n_wrong, 0);
}

static void test_bad_arguments_are_refused(void **state)
{
    struct emu_transport *t;
    struct emu_transport_config config;
    uint8_t blob[EMU_TRANSPORT_BLOB_MAX];

    (void)state;
    open_pair((struct emu_transport_config){ 0 });
    config = hosts[0].config;
    config.key_bytes = EMU_TRANSPORT_KEY_MIN - 1;
    assert_int_equal(ops->open(&config, &t), -EINVAL);
    config = hosts[0].config;
    config.provider = "no such provider";
    assert_int_equal(ops->open(&config, &t), -ENODATA);
    assert_int_equal(ops->send(hosts[0].t, 1, blob, 0), -EINVAL);
    assert_int_equal(ops->send(hosts[0].t, 1, blob, EMU_WIRE_MESSAGE_MAX + 1), -EINVAL);
    assert_int_equal(ops->send(hosts[0].t, 2, blob, 1), -ENOTCONN);
    assert_int_equal(ops->send(hosts[0].t, 1000, blob, 1), -ENOTCONN);
    memcpy(blob, hosts[1].blob, sizeof(blob));
    assert_int_equal(ops->join(hosts[0].t, 2, blob, hosts[1].blob_bytes), -EINVAL); /* of host 1 */
    assert_int_equal(ops->join(hosts[0].t, 0, blob, hosts[1].blob_bytes), -EINVAL);
    for (uint32_t length = 0; length < hosts[1].blob_bytes; length++)
        assert_int_equal(ops->join(hosts[0].t, 1, blob, length), -EINVAL);
}

static uint64_t processor_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static void test_idle_hosts_sleep_and_wake_for_a_message(void **state)
{
    struct pollfd fds[2];
    uint64_t begin_ns;
    uint64_t used_ns;

    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ .timeout_ns = 2000000000ull });
    for (unsigned i = 0; i < 2; i++)
        fds[i] = (struct pollfd){ .fd = ops->fd(hosts[i].t), .events = POLLIN };
    begin_ns = emu_clock_ns();
    used_ns = processor_ns();
    /* Longer than the timeout, on heartbeats alone. */
    while (emu_clock_ns() - begin_ns < 3000000000ull) {
        bool may_sleep = true;

        for (unsigned i = 0; i < 2; i++) {
            ops->progress(hosts[i].t);
            may_sleep = may_sleep && ops->may_sleep(hosts[i].t);
        }
        if (may_sleep)
            poll(fds, 2, 1000);
    }
    used_ns = processor_ns() - used_ns;
    printf("# processor time of two idle hosts in 3 s: %.1f ms\n", (double)used_ns / 1e6);
    assert_true(used_ns < 300000000ull);
    assert_int_equal(hosts[0].n_down + hosts[1].n_down, 0);
    /* Wakes for a message that it was not driven for. */
    while (!ops->may_sleep(hosts[1].t))
        ops->progress(hosts[1].t);
    assert_int_equal(send_next(SMALL), 0);
    while (hosts[1].n_messages[0] == 0) {
        ops->progress(hosts[0].t);
        if (ops->may_sleep(hosts[1].t))
            assert_int_equal(poll(&fds[1], 1, 5000), 1);
        ops->progress(hosts[1].t);
    }
}

/* ---- the module ---- */

static void test_module_is_loaded_when_it_is_needed(void **state)
{
    const char *path = getenv("EMU_TEST_TRANSPORT");
    const struct emu_transport_ops *loaded;
    const char *text;

    (void)state;
    assert_int_equal(emu_transport_load("/no/such/module.so", &loaded, &text), -ENOENT);
    assert_true(text[0] != '\0');
    if (!path)
        skip();
    assert_int_equal(emu_transport_load(path, &loaded, &text), 0);
    assert_ptr_not_equal(loaded, ops);
    assert_int_equal(loaded->version, EMU_TRANSPORT_OPS_VERSION);
}

/* As if host 0 had been stopped for `ns`. */
static void pretend_pause(uint64_t ns)
{
    struct emu_transport *t = hosts[0].t;

    t->now_ns -= ns;
    t->peers[1]->last_heard_ns -= ns;
    t->next_tick_ns = t->now_ns;
}

static void test_own_pause_is_not_the_peers_silence(void **state)
{
    (void)state;
    open_pair((struct emu_transport_config){ 0 });
    sent = 0;
    for (unsigned with_message = 0; with_message < 2; with_message++) {
        pretend_pause(30000000000ull);
        if (with_message) {
            /* It lies here already when host 0 goes on. */
            assert_int_equal(ops->send(hosts[1].t, 0, "\0\0\0\0\0\0\0", 8), 0);
            while (host_stats(&hosts[1], 0).packets_sent == 0)
                ops->progress(hosts[1].t);
        }
        ops->progress(hosts[0].t);
        assert_int_equal(send_next(SMALL), 0);
        assert_true(drive(pair, 2, all_arrived, NULL));
        assert_int_equal(hosts[0].n_down, 0);
    }
}

int main(void)
{
#define TEST(f)          cmocka_unit_test_teardown(f, close_all)
#define TRANSFER_TEST(f) cmocka_unit_test_teardown(f, close_transfers)
    const struct CMUnitTest tests[] = {
        TEST(test_messages_arrive_once_in_order_and_whole),
        TEST(test_messages_that_queue_up_share_packets),
        TEST(test_single_message_leaves_at_once),
        TEST(test_host_that_does_not_progress_stops_only_what_goes_to_it),
        TEST(test_owner_that_takes_nothing_gets_it_later),
        TRANSFER_TEST(test_transfers_by_remote_access_move_every_byte),
        TRANSFER_TEST(test_transfers_through_messages_move_every_byte),
        TRANSFER_TEST(test_notice_comes_after_data),
        TRANSFER_TEST(test_notice_comes_after_data_through_messages),
        TRANSFER_TEST(test_long_transfers_do_not_delay_a_message),
        TRANSFER_TEST(test_bad_transfers_end_with_an_error_each),
        TRANSFER_TEST(test_region_in_use_stays),
        TEST(test_host_that_leaves_can_join_again),
        TEST(test_bad_arguments_are_refused),
        TEST(test_packets_that_get_lost_come_again),
        TEST(test_connections_that_break_lose_nothing),
        TRANSFER_TEST(test_transfers_go_on_over_other_connections),
        TRANSFER_TEST(test_transfers_begin_again_where_their_connection_broke),
        TEST(test_module_is_loaded_when_it_is_needed),
        TEST(test_own_pause_is_not_the_peers_silence),
        TEST(test_idle_hosts_sleep_and_wake_for_a_message),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
