/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whoever sends what it must not: strangers without the key, and a host that has the key and breaks the protocol.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/common/seed.h"
#include "tests/integration/transport_pair.h"

/* ---- strangers ---- */

static bool stranger_was_refused(void *arg)
{
    (void)arg;
    return host_stats(&hosts[0], 1).refused > 3 && host_stats(&hosts[1], 0).refused > 3;
}

/* However many packets of so many peers host 0 has refused since: a line of each a second, which counts the others. */
static void expect_few_lines(uint64_t begin_ns, unsigned n_peers)
{
    uint64_t seconds = (emu_clock_ns() - begin_ns) / 1000000000;

    assert_in_range(hosts[0].n_warnings, 1, n_peers * (1 + seconds));
    assert_non_null(strstr(hosts[0].line, "lines held back"));
}

static void test_host_with_another_key_is_refused_and_told_of(void **state)
{
    struct emu_transport_config config = { .join_timeout_ns = 3000000000ull };
    struct emu_transport_config stranger = { .key = "another key, not of the job",
                                             .key_bytes = 27,
                                             .join_timeout_ns = 3000000000ull };
    uint64_t begin_ns = emu_clock_ns();

    (void)state;
    open_pair_with(config, stranger);
    assert_true(drive(pair, 2, stranger_was_refused, NULL));
    /* One for host 1, and one a second for connections of nobody. */
    assert_in_range(hosts[0].n_warnings, 1, 2 + (emu_clock_ns() - begin_ns) / 1000000000);
    assert_null(strstr(hosts[0].line, HOST_KEY));
    assert_true(drive(pair, 2, both_down, NULL));
    assert_int_equal(hosts[0].n_up + hosts[1].n_up, 0);
    assert_int_equal(hosts[0].cause[1], -EACCES);
}

/* A process that can send to host 0, for it has the key, but has no session: a bare carrier. */
struct stranger {
    struct emu_carrier *c;
    uint64_t peer;
    struct emu_carrier_op op;
    uint8_t packet[EMU_WIRE_PACKET_MAX];
};

static void stranger_open(struct stranger *s)
{
    struct emu_transport_config config = hosts[0].config;
    const char *text;
    uint8_t address[EMU_CARRIER_ADDRESS_MAX];
    uint32_t length;

    config.host = HOSTS_MAX - 1;
    assert_int_equal(emu_ofi_open(&config, &s->c, &text), 0);
    assert_int_equal(hosts[0].t->carrier->ops->address(hosts[0].t->carrier, address, &length), 0);
    assert_int_equal(s->c->ops->add(s->c, address, length, &s->peer), 0);
}

static void stranger_send(struct stranger *s, uint32_t length)
{
    struct emu_carrier_event event;
    int r;

    while ((r = s->c->ops->send(s->c, s->peer, &s->op, s->packet, length, NULL)) == -EAGAIN) {
        s->c->ops->poll(s->c, &event, 1);
        ops->progress(hosts[0].t);
    }
    assert_int_equal(r, 0);
    while (s->c->ops->poll(s->c, &event, 1) == 0)
        ops->progress(hosts[0].t);
}

static uint64_t refused_of(uint32_t peer)
{
    struct emu_transport_info info;

    ops->info(hosts[0].t, &info);
    return host_stats(&hosts[0], peer).refused + info.refused;
}

static uint64_t wanted_refused;

static bool were_refused(void *arg)
{
    (void)arg;
    return refused_of(1) >= wanted_refused;
}

static void test_injected_packets_are_refused_and_the_session_goes_on(void **state)
{
    static struct stranger s;
    struct emu_random random = seeded(11);
    uint64_t begin_ns = emu_clock_ns();
    uint64_t before;

    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ 0 });
    before = refused_of(1);
    stranger_open(&s);
    for (unsigned i = 0; i < 300; i++) {
        uint32_t length = EMU_WIRE_HEADER_BYTES + EMU_WIRE_TAG_BYTES + 8 * (uint32_t)emu_random_below(&random, 20);
        struct emu_wire_header h = { .type = (uint8_t)(1 + emu_random_below(&random, 4)),
                                     .length = length,
                                     .from = 1,
                                     .n_records = 1,
                                     .position = 1,
                                     .session = hosts[0].t->peers[1]->session.id,
                                     .sequence = hosts[0].t->peers[1]->rx_sequence + emu_random_below(&random, 3),
                                     .granted = 32 };

        for (uint32_t k = 0; k < length; k++)
            s.packet[k] = (uint8_t)emu_random_next(&random);
        if (i % 4)
            emu_wire_header_put(s.packet, &h);
        stranger_send(&s, length);
        if (i % 50 == 0)
            assert_int_equal(send_next(SMALL), 0);
    }
    wanted_refused = before + 300;
    assert_true(drive(pair, 2, were_refused, NULL));
    expect_few_lines(begin_ns, 2); /* host 1, and nobody */
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(hosts[0].n_messages[1], 0);
    assert_int_equal(hosts[0].n_down + hosts[1].n_down, 0);
    s.c->ops->close(s.c);
}

static bool version_was_noticed(void *arg)
{
    (void)arg;
    return hosts[0].n_down == 1;
}

static void test_another_version_is_refused_and_named(void **state)
{
    static struct stranger s;
    struct emu_wire_header h = { .type = EMU_WIRE_HELLO, .length = 200, .from = 1 };
    struct host *one[] = { &hosts[0] };

    (void)state;
    assert_int_equal(host_open(&hosts[0], 0, (struct emu_transport_config){ .join_timeout_ns = 3000000000ull }), 0);
    assert_int_equal(host_open(&hosts[1], 1, (struct emu_transport_config){ 0 }), 0);
    assert_int_equal(ops->join(hosts[0].t, 1, hosts[1].blob, hosts[1].blob_bytes), 0);
    stranger_open(&s);
    emu_wire_header_put(s.packet, &h);
    emu_wire_put16(s.packet + 4, EMU_WIRE_VERSION + 1);
    stranger_send(&s, 200);
    assert_true(drive(one, 1, version_was_noticed, NULL));
    assert_int_equal(hosts[0].cause[1], -EPROTONOSUPPORT);
    assert_int_equal(hosts[0].n_warnings, 1);
    assert_non_null(strstr(hosts[0].line, "it says host 1, of version"));
    s.c->ops->close(s.c);
}

static void test_flood_of_another_version_makes_a_line_a_second(void **state)
{
    static struct stranger s;
    struct emu_wire_header h = { .type = EMU_WIRE_HELLO, .length = 200, .from = 1 };
    uint64_t begin_ns = emu_clock_ns();

    (void)state;
    sent = 0;
    open_pair((struct emu_transport_config){ 0 });
    stranger_open(&s);
    emu_wire_header_put(s.packet, &h);
    emu_wire_put16(s.packet + 4, EMU_WIRE_VERSION + 1);
    for (unsigned i = 0; i < 300; i++)
        stranger_send(&s, 200);
    wanted_refused = 300;
    assert_true(drive(pair, 2, were_refused, NULL));
    expect_few_lines(begin_ns, 1);
    assert_int_equal(send_next(SMALL), 0);
    assert_true(drive(pair, 2, all_arrived, NULL));
    s.c->ops->close(s.c);
}

/* ---- a host that has the key and breaks the protocol ---- */

#define EVIL_PACKETS 60u
#define EVIL_BYTES   4096u
#define GUARD_BYTES  4096u

static struct stranger evil;

/* Bytes as the body of a packet that host 1 really sends, with its number, position and tag. */
static uint64_t evil_send(const uint8_t *body, uint32_t body_bytes, uint32_t n_records, uint64_t skip_positions)
{
    struct emu_transport *t = hosts[1].t;
    struct emu_peer *p = t->peers[0];
    uint32_t length = EMU_WIRE_HEADER_BYTES + body_bytes + EMU_WIRE_TAG_BYTES;
    struct emu_wire_header h = { .type = EMU_WIRE_DATA,
                                 .length = length,
                                 .from = 1,
                                 .to = 0,
                                 .n_records = n_records,
                                 .session = p->session.id,
                                 .sequence = p->tx_sequence + 1,
                                 .granted = p->rx_consumed + t->credits,
                                 .received = p->rx_packets };
    int r;

    h.position = n_records > 0 ? p->tx_packets + 1 + skip_positions : 0;
    emu_wire_header_put(evil.packet, &h);
    memcpy(evil.packet + EMU_WIRE_HEADER_BYTES, body, body_bytes);
    emu_crypt_seal(p->session.tx, h.sequence, evil.packet, length);
    while ((r = t->carrier->ops->send(t->carrier, p->addr, &evil.op, evil.packet, length, NULL)) == -EAGAIN) {
        ops->progress(hosts[0].t);
        ops->progress(hosts[1].t);
    }
    assert_int_equal(r, 0);
    p->tx_sequence = h.sequence;
    p->tx_packets += n_records > 0;
    return h.sequence;
}

static uint64_t evil_sequence;

static bool evil_was_seen(void *arg)
{
    (void)arg;
    return hosts[0].n_down || hosts[1].n_down || hosts[0].t->peers[1]->rx_sequence >= evil_sequence;
}

static void join_again(void)
{
    if (!hosts[1].n_down)
        ops->leave(hosts[1].t, 0);
    if (!hosts[0].n_down)
        ops->leave(hosts[0].t, 1);
    assert_true(drive(pair, 2, both_down, NULL));
    for (unsigned i = 0; i < 2; i++)
        hosts[i].n_up = hosts[i].n_down = 0;
    assert_int_equal(ops->join(hosts[0].t, 1, hosts[1].blob, hosts[1].blob_bytes), 0);
    assert_int_equal(ops->join(hosts[1].t, 0, hosts[0].blob, hosts[0].blob_bytes), 0);
    assert_true(drive(pair, 2, both_up, NULL));
}

static void test_positions_that_are_left_out_end_the_session(void **state)
{
    uint8_t body[EMU_WIRE_RECORD_BYTES + 8] = { 0 };

    (void)state;
    open_pair((struct emu_transport_config){ 0 });
    emu_wire_record_put(body, EMU_WIRE_MESSAGE, 8);
    evil_sequence = evil_send(body, sizeof(body), 1, 1);
    assert_true(drive(pair, 2, evil_was_seen, NULL));
    while (!hosts[0].n_down)
        ops->progress(hosts[0].t);
    assert_int_equal(hosts[0].cause[1], -EPROTO);
    assert_int_equal(hosts[0].n_messages[1], 0);
}

/* Sessions end, one after the other. */
static void test_host_that_breaks_the_protocol_again_and_again_makes_a_line_a_second(void **state)
{
    enum { UNKNOWN_KIND, BYTES_BEHIND, POSITION_LEFT_OUT, N_WAYS };
    uint8_t body[EMU_WIRE_RECORD_BYTES + 16] = { 0 };
    uint64_t begin_ns;

    (void)state;
    open_pair((struct emu_transport_config){ 0 });
    hosts[0].is_any = true;
    begin_ns = emu_clock_ns();
    for (unsigned i = 0; i < 10 * N_WAYS; i++) {
        unsigned way = i % N_WAYS;

        emu_wire_record_put(body, way == UNKNOWN_KIND ? EMU_WIRE_KINDS : EMU_WIRE_MESSAGE, 8);
        evil_sequence =
            evil_send(body, EMU_WIRE_RECORD_BYTES + (way == BYTES_BEHIND ? 16 : 8), 1, way == POSITION_LEFT_OUT);
        assert_true(drive(pair, 2, evil_was_seen, NULL));
        while (!hosts[0].n_down)
            ops->progress(hosts[0].t);
        assert_int_equal(hosts[0].cause[1], -EPROTO);
        join_again();
    }
    assert_true(host_stats(&hosts[0], 1).refused >= 10 * N_WAYS);
    expect_few_lines(begin_ns, 2); /* of host 1 before it has joined again, too: nobody then */
}

/* One record of any kind at `to`, which names memory by `key`. Its bytes. */
static uint32_t draw_record(struct emu_random *random, uint8_t *to, enum emu_wire_kind kind, uint64_t key)
{
    bool has_data = kind == EMU_WIRE_PUT || kind == EMU_WIRE_GOT;
    uint32_t data = 1 + (uint32_t)emu_random_below(random, 100);
    struct emu_wire_piece piece = { .id = emu_random_below(random, 64),
                                    .key = key,
                                    .offset = emu_random_below(random, EVIL_BYTES + 200),
                                    .length = data };
    uint32_t length = kind == EMU_WIRE_MESSAGE ? data : EMU_WIRE_PIECE_BYTES + (has_data ? data : 0);
    uint8_t *content = emu_wire_record_put(to, kind, length);

    if (kind != EMU_WIRE_MESSAGE) {
        content = emu_wire_piece_put(content, &piece);
        if (has_data)
            memset(content, 0xee, data);
    }
    return emu_wire_record_space(length);
}

/* Sends records of all kinds, of which up to two bits are turned over. */
static void send_mutated_records(struct emu_random *random, uint64_t key)
{
    uint8_t body[1024] = { 0 };
    uint32_t at = 0;
    uint32_t n_records = 0;

    while (at < 700) {
        enum emu_wire_kind kind = (enum emu_wire_kind)(1 + emu_random_below(random, EMU_WIRE_KINDS - 1));

        if (kind > EMU_WIRE_GET && emu_random_below(random, 8)) /* answers to nothing end the session at once */
            continue;
        at += draw_record(random, body + at, kind, key);
        n_records++;
    }
    for (uint64_t k = emu_random_below(random, 3); k > 0; k--)
        body[emu_random_below(random, at)] ^= (uint8_t)(1u << emu_random_below(random, 8));
    evil_sequence = evil_send(body, at, n_records, 0);
    assert_true(drive(pair, 2, evil_was_seen, NULL));
}

static void test_mutated_records_of_a_peer_reach_nothing_but_its_region(void **state)
{
    struct emu_random random = seeded(5);
    uint8_t *memory = calloc(1, EVIL_BYTES + 2 * GUARD_BYTES);
    struct emu_transport_region *own;
    struct emu_transport_remote target;
    unsigned n_ends = 0;

    (void)state;
    assert_non_null(memory);
    open_pair((struct emu_transport_config){ .is_rma_off = true });
    hosts[0].is_any = hosts[1].is_any = true;
    assert_int_equal(ops->region_create(hosts[0].t, memory + GUARD_BYTES, EVIL_BYTES,
                                        EMU_TRANSPORT_READ | EMU_TRANSPORT_WRITE, &own),
                     0);
    ops->region_remote(own, &target);
    for (unsigned n = 0; n < EVIL_PACKETS; n++) {
        send_mutated_records(&random, target.key);
        if (hosts[0].n_down || hosts[1].n_down || hosts[0].t->peers[1]->state != EMU_PEER_UP) {
            n_ends++;
            join_again();
        }
    }
    printf("# %u sessions ended\n", n_ends);
    for (unsigned i = 0; i < GUARD_BYTES; i++)
        assert_true(memory[i] == 0 && memory[GUARD_BYTES + EVIL_BYTES + i] == 0);
    assert_true(n_ends > 0); /* host 1 itself ends most: it gets answers that it has not asked for */
    join_again();
    hosts[0].is_any = hosts[1].is_any = false;
    hosts[1].n_messages[0] = 0;
    sent = 0;
    assert_int_equal(send_next(SMALL), 0);
    assert_true(drive(pair, 2, all_arrived, NULL));
    assert_int_equal(ops->region_destroy(own), 0);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_host_with_another_key_is_refused_and_told_of, close_all),
        cmocka_unit_test_teardown(test_injected_packets_are_refused_and_the_session_goes_on, close_all),
        cmocka_unit_test_teardown(test_another_version_is_refused_and_named, close_all),
        cmocka_unit_test_teardown(test_flood_of_another_version_makes_a_line_a_second, close_all),
        cmocka_unit_test_teardown(test_positions_that_are_left_out_end_the_session, close_all),
        cmocka_unit_test_teardown(test_host_that_breaks_the_protocol_again_and_again_makes_a_line_a_second, close_all),
        cmocka_unit_test_teardown(test_mutated_records_of_a_peer_reach_nothing_but_its_region, close_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
