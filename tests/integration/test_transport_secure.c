/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Secure sessions over libfabric's tcp on loopback, with somebody between the two hosts: a carrier that repeats,
 * changes, reorders and refuses what host 0 sends.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/common/seed.h"
#include "tests/integration/transport_pair.h"

#define BIG_BYTES (3u << 20)
#define SECURE    ((struct emu_transport_config){ .is_secure = true, .timeout_ns = 2000000000ull })

/* ---- between the hosts ---- */

enum way { PASS, REFUSE, REPEAT, CHANGE, CUT, SWAP, WAYS };

static const struct emu_carrier_ops *real;
static struct emu_carrier_ops between;
static struct emu_random random_way;
static enum way way;
static unsigned one_in;    /* packets it happens to */
static unsigned n_left;    /* times that it may still happen */
static unsigned n_crossed; /* times that it did */
static struct emu_carrier_op copy_op;
static uint8_t copy[EMU_WIRE_PACKET_MAX];
static uint32_t copy_bytes; /* 0: the copy is free */

static bool is_greeting(const uint8_t *packet)
{
    return packet[6] == EMU_WIRE_HELLO || packet[6] == EMU_WIRE_PROOF;
}

/* The copy is sent behind what was sent now. Its completion is of no kind. */
static void send_copy(struct emu_carrier *c, uint64_t peer)
{
    if (real->send(c, peer, &copy_op, copy, copy_bytes, NULL) == 0)
        n_crossed++;
}

static int cross(struct emu_carrier *c, uint64_t peer, struct emu_carrier_op *op, const void *packet, uint32_t length,
                 void *desc)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)packet;
    bool is_hit = !is_greeting(packet) && n_left > 0 && emu_random_below(&random_way, one_in) == 0;
    int r;

    if (is_hit && way == REFUSE) {
        n_left--;
        n_crossed++;
        return -EAGAIN;
    }
    if (is_hit && way == CHANGE) {
        bytes[emu_random_below(&random_way, length)] ^= (uint8_t)(1u << emu_random_below(&random_way, 8));
        n_crossed++;
    }
    if (is_hit && way == CUT) {
        length -= 1 + (uint32_t)emu_random_below(&random_way, length - 1);
        n_crossed++;
    }
    if (is_hit && (way == REPEAT || way == SWAP) && copy_bytes == 0) {
        memcpy(copy, packet, length);
        copy_bytes = length;
        if (way == SWAP) { /* it comes behind the next one, in the place of a packet of nobody */
            memset(bytes, 0, EMU_WIRE_HEADER_BYTES);
            is_hit = false;
            n_left--;
        }
    } else if (copy_bytes > 0 && way == SWAP) {
        r = real->send(c, peer, op, packet, length, desc);
        if (r == 0) {
            send_copy(c, peer);
            copy_bytes = 0;
        }
        return r;
    }
    r = real->send(c, peer, op, packet, length, desc);
    if (r == 0 && is_hit && way == REPEAT && copy_bytes > 0) {
        send_copy(c, peer);
        copy_bytes = 0;
    }
    if (r == 0 && is_hit)
        n_left--;
    return r;
}

static void stand_between(enum way what, unsigned of, unsigned times)
{
    struct emu_carrier *c = hosts[0].t->carrier;

    real = c->ops;
    between = *real;
    between.send = cross;
    c->ops = &between;
    random_way = seeded(23);
    way = what;
    one_in = of;
    n_left = times;
    n_crossed = 0;
    copy_bytes = 0;
}

static int close_between(void **state)
{
    if (hosts[0].t && real)
        hosts[0].t->carrier->ops = real;
    real = NULL;
    return close_all(state);
}

static void open_with(struct emu_transport_config config, bool has_aes)
{
    assert_int_equal(host_open(&hosts[0], 0, config), 0);
    assert_int_equal(host_open(&hosts[1], 1, config), 0);
    hosts[1].t->has_aes = hosts[1].t->has_aes && has_aes;
    assert_int_equal(ops->join(hosts[0].t, 1, hosts[1].blob, hosts[1].blob_bytes), 0);
    assert_int_equal(ops->join(hosts[1].t, 0, hosts[0].blob, hosts[0].blob_bytes), 0);
    assert_true(drive(pair, 2, both_up, NULL));
}

static void exchange(uint64_t n)
{
    struct emu_random random = seeded(29);

    for (uint64_t end = sent + n; sent < end;) {
        int r = send_next(1 + (uint32_t)emu_random_below(&random, emu_random_below(&random, 8) ? 200 : 15000));

        assert_true(r >= 0);
        for (unsigned i = 0; i < 2; i++)
            ops->progress(hosts[i].t);
    }
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(hosts[1].n_wrong, 0);
    assert_int_equal(hosts[0].n_down + hosts[1].n_down, 0);
}

/* ---- tests ---- */

static void check_messages_and_transfers(bool has_aes)
{
    struct emu_transport_region *region[2];
    struct emu_transport_remote remote;
    struct emu_transport_info info;

    sent = 0;
    open_with(SECURE, has_aes);
    assert_int_equal(host_stats(&hosts[0], 1).cipher,
                     has_aes && emu_envelope_has_aes() ? EMU_CIPHER_AES256_GCM : EMU_CIPHER_CHACHA20_POLY1305);
    assert_int_equal(host_stats(&hosts[0], 1).cipher, host_stats(&hosts[1], 0).cipher);
    ops->info(hosts[0].t, &info);
    assert_false(info.has_rma);
    exchange(2000);
    for (unsigned i = 0; i < 2; i++) {
        hosts[i].memory = malloc(BIG_BYTES);
        for (uint32_t k = 0; k < BIG_BYTES; k++)
            hosts[i].memory[k] = (uint8_t)(k >> 8 ^ k ^ i);
        assert_int_equal(ops->region_create(hosts[i].t, hosts[i].memory, BIG_BYTES,
                                            EMU_TRANSPORT_READ | EMU_TRANSPORT_WRITE, &region[i]),
                         0);
    }
    ops->region_remote(region[1], &remote);
    for (uint64_t end_ns = emu_clock_ns() + HOST_PATIENCE_NS, n = 0; n < 2; n++) {
        struct emu_transport_move move = { region[0], 5, &remote, 7, BIG_BYTES - 100, n };

        assert_int_equal(n == 0 ? ops->put(hosts[0].t, 1, &move, NULL, 0) : ops->get(hosts[0].t, 1, &move), 0);
        while (hosts[0].n_done <= n && emu_clock_ns() < end_ns) {
            ops->progress(hosts[0].t);
            ops->progress(hosts[1].t);
        }
        assert_int_equal(hosts[0].last_result, 0);
        assert_memory_equal(hosts[0].memory + 5, hosts[1].memory + 7, BIG_BYTES - 100);
        memset(hosts[1].memory, 0x5a, BIG_BYTES);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(ops->region_destroy(region[i]), 0);
}

static void test_messages_and_transfers_arrive_whole(void **state)
{
    (void)state;
    check_messages_and_transfers(true);
}

static void test_hosts_of_which_one_has_no_instructions_for_AES_use_ChaCha20(void **state)
{
    (void)state;
    check_messages_and_transfers(false);
}

static void test_what_the_carrier_refuses_is_sent_as_it_was_sealed(void **state)
{
    (void)state;
    sent = 0;
    open_with(SECURE, true);
    stand_between(REFUSE, 2, 500);
    exchange(2000);
    assert_int_equal(n_crossed, 500);
    /* No number was left out, or there would have been another session. */
    assert_int_equal(host_stats(&hosts[0], 1).sessions, 1);
    assert_int_equal(host_stats(&hosts[1], 0).refused, 0);
}

static void test_repeated_packets_are_refused_and_counted(void **state)
{
    uint64_t before;

    (void)state;
    sent = 0;
    open_with(SECURE, true);
    before = host_stats(&hosts[1], 0).refused;
    stand_between(REPEAT, 3, 200);
    exchange(2000);
    assert_in_range(n_crossed, 50, 200);
    assert_int_equal(host_stats(&hosts[1], 0).refused - before, n_crossed);
    assert_int_equal(host_stats(&hosts[0], 1).sessions, 1);
}

static void check_disturbed(enum way what)
{
    uint64_t refused;
    struct emu_transport_info info;

    sent = 0;
    open_with(SECURE, true);
    stand_between(what, 20, 6);
    exchange(1500);
    assert_true(n_crossed > 0);
    ops->info(hosts[1].t, &info);
    refused = host_stats(&hosts[1], 0).refused + info.refused;
    assert_in_range(refused, 1, 1000);
    /* It went on in other sessions, with other keys. */
    assert_in_range(host_stats(&hosts[0], 1).sessions, 2, 2 * 6 + 1);
}

static void test_changed_packets_are_refused_and_come_again(void **state)
{
    (void)state;
    check_disturbed(CHANGE);
}

static void test_cut_packets_are_refused_and_come_again(void **state)
{
    (void)state;
    check_disturbed(CUT);
}

static void test_packets_out_of_order_are_not_taken_and_come_again(void **state)
{
    (void)state;
    check_disturbed(SWAP);
}

static bool have_the_same_numbers(void *arg)
{
    const struct emu_crypt_session *a = &hosts[0].t->peers[1]->session;
    const struct emu_crypt_session *b = &hosts[1].t->peers[0]->session;

    (void)arg;
    return a->sealing.number == b->opening.number && b->sealing.number == a->opening.number;
}

static void test_keys_change_in_the_middle_of_traffic(void **state)
{
    uint8_t first[EMU_ENVELOPE_KEY_BYTES];
    struct emu_crypt_session *a, *b;

    (void)state;
    sent = 0;
    open_with(SECURE, true);
    a = &hosts[0].t->peers[1]->session;
    b = &hosts[1].t->peers[0]->session;
    assert_true(drive(pair, 2, have_the_same_numbers, NULL));
    a->sealing.left = a->sealing.key_packets = b->opening.left = b->opening.key_packets = 7;
    a->opening.left = a->opening.key_packets = b->sealing.left = b->sealing.key_packets = 7;
    memcpy(first, a->sealing.key, sizeof(first));
    stand_between(REFUSE, 2, 300);
    exchange(2000);
    assert_true(a->sealing.number > 100);
    assert_memory_not_equal(a->sealing.key, first, sizeof(first));
    assert_int_equal(host_stats(&hosts[0], 1).sessions, 1);
    assert_int_equal(host_stats(&hosts[1], 0).refused + host_stats(&hosts[0], 1).refused, 0);
}

static void test_secrets_of_a_session_are_gone_once_it_is_up(void **state)
{
    static const uint8_t nothing[EMU_CRYPT_KEY_BYTES];

    (void)state;
    sent = 0;
    open_with(SECURE, true);
    for (unsigned i = 0; i < 2; i++)
        assert_memory_equal(hosts[i].t->peers[!i]->mine.secret, nothing, sizeof(nothing));
}

static void check_mixed(void)
{
    assert_true(drive(pair, 2, both_down, NULL));
    assert_int_equal(hosts[0].n_up + hosts[1].n_up, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(hosts[i].cause[!i], -EOPNOTSUPP);
        assert_int_equal(hosts[i].n_differs, 1);
    }
}

static void test_host_that_is_not_secure_is_refused_at_the_gate(void **state)
{
    struct emu_transport_config config = { .join_timeout_ns = 1000000000ull };
    struct emu_transport_config secure = { .join_timeout_ns = 1000000000ull, .is_secure = true };

    (void)state;
    open_pair_with(config, secure);
    check_mixed();
}

static void test_host_that_is_not_secure_is_refused_by_the_handshake(void **state)
{
    struct emu_transport_config config = { .join_timeout_ns = 1000000000ull };

    (void)state;
    assert_int_equal(host_open(&hosts[0], 0, config), 0);
    assert_int_equal(host_open(&hosts[1], 1, config), 0);
    hosts[1].t->is_secure = true; /* behind its gate's back */
    assert_int_equal(ops->join(hosts[0].t, 1, hosts[1].blob, hosts[1].blob_bytes), 0);
    assert_int_equal(ops->join(hosts[1].t, 0, hosts[0].blob, hosts[0].blob_bytes), 0);
    check_mixed();
    assert_true(host_stats(&hosts[0], 1).refused > 0 && host_stats(&hosts[1], 0).refused > 0);
}

#define TEST(name) cmocka_unit_test_teardown(name, close_between)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_messages_and_transfers_arrive_whole),
        TEST(test_hosts_of_which_one_has_no_instructions_for_AES_use_ChaCha20),
        TEST(test_what_the_carrier_refuses_is_sent_as_it_was_sealed),
        TEST(test_repeated_packets_are_refused_and_counted),
        TEST(test_changed_packets_are_refused_and_come_again),
        TEST(test_cut_packets_are_refused_and_come_again),
        TEST(test_packets_out_of_order_are_not_taken_and_come_again),
        TEST(test_keys_change_in_the_middle_of_traffic),
        TEST(test_secrets_of_a_session_are_gone_once_it_is_up),
        TEST(test_host_that_is_not_secure_is_refused_at_the_gate),
        TEST(test_host_that_is_not_secure_is_refused_by_the_handshake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
