/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet simulator with Blue Gene/L's router: what goes on at the same time, and how long it takes
 * (spec/machines.md 5.1
 * - 5.3).
 */
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/bgl_routing.h"
#include "emunic/fabric/sim/sim.h"
#include "emunic/fabric/torus.h"
#include "tests/unit/fabric/fixture.h"

#define CYCLES(ps) ((double)(ps) / (40000.0 / 7))

#define PACKETS_MAX 128

/* Packets that exist from the start, and what became of them. */
struct script {
    struct emu_packet packets[PACKETS_MAX];
    uint32_t n;
    bool sent[PACKETS_MAX]; /* all nodes look from the start each time: scripts are short */
    uint64_t delivered_ps[PACKETS_MAX];
    uint32_t copies[512]; /* by nid: deliveries there */
};

static bool next_of_script(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                           uint64_t now_ps, struct emu_packet *packet_out)
{
    struct script *s = ctx;

    (void)sim;
    (void)now_ps;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->sent[i] || s->packets[i].src_nid != nid || s->packets[i].traffic_class != traffic_class)
            continue;
        s->sent[i] = true;
        *packet_out = s->packets[i];
        packet_out->tag = i;
        return true;
    }
    return false;
}

static void delivered_of_script(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet,
                                uint64_t now_ps)
{
    struct script *s = ctx;

    (void)sim;
    s->copies[nid]++;
    if (nid == packet->dst_nid)
        s->delivered_ps[packet->tag] = now_ps;
}

static struct emu_packet *add(struct script *s, uint32_t src, uint32_t dst, uint32_t units)
{
    struct emu_packet *p = &s->packets[s->n++];

    *p = (struct emu_packet){ .src_nid = src, .dst_nid = dst, .units = (uint16_t)units };
    return p;
}

static struct emu_sim_totals run_with(const struct emu_machine *m, struct script *s,
                                      const struct emu_sim_options *options)
{
    const struct emu_traffic traffic = { .ctx = s, .next = next_of_script, .delivered = delivered_of_script };
    struct emu_sim_totals totals;
    struct emu_sim *sim;

    assert_int_equal(emu_sim_create(m, NULL, &traffic, options, &sim), 0);
    assert_int_equal(emu_sim_run(sim, UINT64_C(1) << 50), EMU_SIM_EMPTY);
    emu_sim_totals(sim, &totals);
    emu_sim_destroy(sim);
    return totals;
}

static void run(const struct emu_machine *m, struct script *s)
{
    (void)run_with(m, s, &(struct emu_sim_options){ .seed = 1 });
}

static uint32_t neighbour(const struct emu_machine *m, uint32_t nid, uint32_t direction)
{
    return emu_torus_neighbour(emu_torus_of(m), nid, direction);
}

static void test_node_sends_in_six_directions_at_once(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };

    (void)state;
    for (uint32_t d = 0; d < 6; d++)
        add(&s, 0, neighbour(m, 0, d), 256);
    run(m, &s);
    for (uint32_t d = 0; d < 6; d++) {
        assert_true(CYCLES(s.delivered_ps[d]) > 270);
        assert_true(CYCLES(s.delivered_ps[d]) < 2 * 270); /* one after another would take six times 270 */
    }
    emu_machine_destroy(m);
}

static void test_node_receives_from_six_directions_at_once(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };

    (void)state;
    for (uint32_t d = 0; d < 6; d++)
        add(&s, neighbour(m, 0, d), 0, 256);
    run(m, &s);
    for (uint32_t d = 0; d < 6; d++)
        assert_true(CYCLES(s.delivered_ps[d]) < 2 * 270);
    emu_machine_destroy(m);
}

/* One hop is 17 cycles, and 27 from one midplane to the next. */
static void test_hops_cost_17_cycles_and_27_between_midplanes(void **state)
{
    struct emu_machine *m = load("bluegene-l:x=16,y=8,z=8");
    struct script s = { 0 };
    double hop, far;

    (void)state;
    add(&s, 0, 1, 256);
    run(m, &s);
    hop = CYCLES(s.delivered_ps[0]);
    s = (struct script){ 0 };
    add(&s, 0, 2, 256);
    run(m, &s);
    assert_true(CYCLES(s.delivered_ps[0]) - hop > 16.9 && CYCLES(s.delivered_ps[0]) - hop < 17.1);
    s = (struct script){ 0 };
    add(&s, 7, 8, 256);
    run(m, &s);
    far = CYCLES(s.delivered_ps[0]);
    assert_true(far - hop > 9.9 && far - hop < 10.1);
    emu_machine_destroy(m);
}

static void test_streams_use_every_cycle_of_a_link(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };

    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        add(&s, 0, 1, 256);
    run(m, &s);
    {
        double first = 1e18;
        double last = 0;

        for (uint32_t i = 0; i < 40; i++) {
            first = CYCLES(s.delivered_ps[i]) < first ? CYCLES(s.delivered_ps[i]) : first;
            last = CYCLES(s.delivered_ps[i]) > last ? CYCLES(s.delivered_ps[i]) : last;
        }
        assert_true(last - first > 39 * 270 - 1 && last - first < 39 * 270 * 1.005);
    }
    emu_machine_destroy(m);
}

static void test_broadcast_leaves_a_copy_at_every_node_of_the_line(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };
    struct emu_packet *p = add(&s, 3, 2, 256);

    (void)state;
    assert_int_equal(emu_bgl_give_broadcast(m, p, EMU_BGL_X_PLUS), 0);
    run(m, &s);
    for (uint32_t nid = 0; nid < 512; nid++)
        assert_int_equal(s.copies[nid], nid < 8 && nid != 3);
    emu_machine_destroy(m);
}

/* While node 1 has a long queue for its link in x+, a high-priority packet from node 0 passes it. */
static void test_high_priority_passes_a_queue(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };
    struct emu_packet *p;

    (void)state;
    for (uint32_t i = 0; i < 30; i++) {
        p = add(&s, 1, 2, 256);
        p->mode = EMU_MODE_DETERMINISTIC;
    }
    p = add(&s, 0, 2, 256);
    p->traffic_class = EMU_TRAFFIC_RESPONSE;
    run(m, &s);
    assert_true(CYCLES(s.delivered_ps[30]) < 3 * 270);
    emu_machine_destroy(m);
}

/* ---- credits that free a packet ---- */

#define ESCAPE_VC 2  /* behind two dynamic channels */
#define STREAM    16 /* packets */
#define ENTERED   3  /* into an empty channel of four, whose ring keeps room for one */

/* From node 0 through 1 to 2 on the escape channel; and so many packets from 1 to 2, out of six FIFOs. */
static struct script streams(uint32_t n_second)
{
    struct script s = { 0 };

    for (uint32_t i = 0; i < STREAM; i++)
        add(&s, 0, 2, 256)->mode = EMU_MODE_DETERMINISTIC;
    for (uint32_t i = 0; i < n_second; i++)
        add(&s, 1, 2, 256); /* on the dynamic channels */
    return s;
}

static uint64_t sum_of(const uint64_t counts[EMU_VCS_MAX])
{
    uint64_t sum = 0;

    for (uint32_t vc = 0; vc < EMU_VCS_MAX; vc++)
        sum += counts[vc];
    return sum;
}

/* A stream that nobody slows down waits for its links, never for room behind them. */
static void test_no_credit_frees_a_packet_of_a_lone_stream(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    const struct emu_sim_options options = { .seed = 1, .count_unblocking = true };
    struct script s = streams(0);
    struct emu_sim_totals totals = run_with(m, &s, &options);

    (void)state;
    assert_in_range(totals.credits_returned[ESCAPE_VC], 2 * STREAM - 2, 2 * STREAM); /* the last may be under way */
    assert_int_equal(sum_of(totals.credits_returned), totals.credits_returned[ESCAPE_VC]);
    assert_int_equal(sum_of(totals.credits_unblocking), 0);
    emu_machine_destroy(m);
}

/* Where another one takes most of its next link, its packets fill the channel, and from then on each waits for a
 * credit; but now and then two go on there one right after the other, before the next is in front. The credits of the
 * next link free nobody. */
static void test_credits_of_a_full_channel_free_a_packet_each(void **state)
{
    struct emu_machine *m = load("bluegene-l:network_first_percent=0,arbitration=random");
    const struct emu_sim_options options = { .seed = 1, .count_unblocking = true };
    struct script s = streams(PACKETS_MAX - STREAM);
    struct emu_sim_totals totals = run_with(m, &s, &options);

    (void)state;
    assert_in_range(totals.credits_unblocking[ESCAPE_VC], STREAM - 2 * ENTERED, STREAM - ENTERED);
    assert_int_equal(sum_of(totals.credits_unblocking), totals.credits_unblocking[ESCAPE_VC]);
    emu_machine_destroy(m);
}

static void test_credits_are_counted_on_request_only(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = streams(STREAM);
    struct emu_sim_totals totals = run_with(m, &s, &(struct emu_sim_options){ .seed = 1 });

    (void)state;
    assert_int_equal(sum_of(totals.credits_returned), 0);
    assert_int_equal(sum_of(totals.credits_unblocking), 0);
    emu_machine_destroy(m);
}

/* ---- traffic that answers ---- */

#define RELAY_EDGE  8
#define RELAY_NODES (RELAY_EDGE * RELAY_EDGE)
#define RELAY_QUEUE 1024
#define RELAY_DEPTH 12

/*
 * Broadcasts along lines of a plane. One in seven copies makes its node send the next broadcast; whether, and which
 * way, depends on how many packets the node has heard before: order is all that counts.
 */
struct relay {
    const struct emu_machine *m;
    struct relay_node {
        uint32_t n_heard;
        uint32_t head;
        uint32_t tail;
        struct {
            uint32_t direction;
            uint32_t n_left;
        } queue[RELAY_QUEUE];
    } nodes[RELAY_NODES];
};

static void pass_on(struct relay_node *n, uint32_t direction, uint32_t n_left)
{
    assert_true(n->tail < RELAY_QUEUE);
    n->queue[n->tail].direction = direction;
    n->queue[n->tail++].n_left = n_left;
}

static bool next_of_relay(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                          uint64_t now_ps, struct emu_packet *packet_out)
{
    struct relay *relay = ctx;
    struct relay_node *n = &relay->nodes[nid];
    uint32_t direction;

    (void)sim;
    if (traffic_class != EMU_TRAFFIC_REQUEST || n->head == n->tail)
        return false;
    direction = n->queue[n->head].direction;
    *packet_out = (struct emu_packet){
        .src_nid = nid, .dst_nid = nid, .units = 256, .created_ps = now_ps, .tag = n->queue[n->head++].n_left
    };
    for (uint32_t i = 0; i < RELAY_EDGE - 1; i++)
        packet_out->dst_nid = neighbour(relay->m, packet_out->dst_nid, direction);
    assert_int_equal(emu_bgl_give_broadcast(relay->m, packet_out, 1u << direction), 0);
    return true;
}

static void delivered_of_relay(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet,
                               uint64_t now_ps)
{
    struct relay_node *n = &((struct relay *)ctx)->nodes[nid];
    uint64_t dice = emu_random_mix((uint64_t)nid << 40 ^ (uint64_t)n->n_heard++ << 16 ^ packet->src_nid);

    (void)now_ps;
    if (packet->tag == 0 || dice % (RELAY_EDGE - 1) != 0)
        return;
    pass_on(n, (uint32_t)(dice >> 32) % 4, (uint32_t)packet->tag - 1);
    emu_sim_wake(sim, nid, EMU_TRAFFIC_REQUEST);
}

static struct emu_sim_totals totals_of_relay(const struct emu_machine *m, uint32_t n_threads)
{
    struct relay *relay = calloc(1, sizeof(*relay));
    const struct emu_traffic traffic = { .ctx = relay, .next = next_of_relay, .delivered = delivered_of_relay };
    const struct emu_sim_options options = { .seed = 1, .n_threads = n_threads, .count_unblocking = true };
    struct emu_sim_totals totals;
    struct emu_sim *sim;

    assert_non_null(relay);
    relay->m = m;
    for (uint32_t nid = 0; nid < RELAY_NODES; nid++) {
        for (uint32_t direction = 0; direction < 4; direction++)
            pass_on(&relay->nodes[nid], direction, RELAY_DEPTH);
    }
    assert_int_equal(emu_sim_create(m, NULL, &traffic, &options, &sim), 0);
    assert_int_equal(emu_sim_run(sim, UINT64_C(1) << 50), EMU_SIM_EMPTY);
    emu_sim_totals(sim, &totals);
    assert_true(totals.deposited > RELAY_NODES * 4 * 2 * (RELAY_EDGE - 2)); /* answers, too */
    emu_sim_destroy(sim);
    free(relay);
    return totals;
}

/* Packets that end at a node at the same moment are heard in the same order, whoever shares a thread with whom. */
static void test_threads_do_not_change_what_nodes_answer(void **state)
{
    struct emu_machine *m = load("bluegene-l:x=8,y=8,z=1");
    struct emu_sim_totals one = totals_of_relay(m, 1);

    (void)state;
    assert_true(sum_of(one.credits_unblocking) > 0);
    for (uint32_t n_threads = 2; n_threads <= 4; n_threads++) {
        struct emu_sim_totals totals = totals_of_relay(m, n_threads);

        assert_int_equal(totals.trace_hash, one.trace_hash);
        assert_int_equal(totals.latency_sum_ps, one.latency_sum_ps);
        assert_memory_equal(totals.credits_returned, one.credits_returned, sizeof(one.credits_returned));
        assert_memory_equal(totals.credits_unblocking, one.credits_unblocking, sizeof(one.credits_unblocking));
    }
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_sends_in_six_directions_at_once),
        cmocka_unit_test(test_node_receives_from_six_directions_at_once),
        cmocka_unit_test(test_hops_cost_17_cycles_and_27_between_midplanes),
        cmocka_unit_test(test_streams_use_every_cycle_of_a_link),
        cmocka_unit_test(test_broadcast_leaves_a_copy_at_every_node_of_the_line),
        cmocka_unit_test(test_high_priority_passes_a_queue),
        cmocka_unit_test(test_no_credit_frees_a_packet_of_a_lone_stream),
        cmocka_unit_test(test_credits_of_a_full_channel_free_a_packet_each),
        cmocka_unit_test(test_credits_are_counted_on_request_only),
        cmocka_unit_test(test_threads_do_not_change_what_nodes_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
