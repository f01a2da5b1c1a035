/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * BGL-20: the processor interface of Blue Gene/L. 2 + 6 injection FIFOs take packets for any direction; packets come to
 * 2 x 7 reception FIFOs, by direction and priority; watermarks interrupt; each injection FIFO has a checksum, the same
 * when a run is repeated; a packet with the broadcast bit leaves a copy at each node of its line. No library of ours
 * has this interface: it is that of emunic/model/bgl_interface.h over the simulated torus.
 */
#include <errno.h>
#include <string.h>

#include "emunic/fabric/torus.h"
#include "emunic/model/bgl_interface.h"
#include "tests/unit/fabric/fixture.h"

#define SIDE    4u
#define NODES   (SIDE * SIDE * SIDE)
#define MACHINE "bluegene-l:x=4,y=4,z=4"
#define PACKET  256u
#define DEPTH   1024u /* nic.fifo_bytes */
#define SENDER  21u   /* 1, 1, 1 */

/* What interrupts a node has had, and what it does about them. */
struct software {
    struct emu_random random;
    unsigned n_interrupts;
    struct emu_bgl_fifo fifo; /* of the last one */
    uint32_t bytes;
    unsigned n_left; /* packets that it still has to send when there is room */
    unsigned n_sent;
    unsigned number; /* of the next packet, for its tag */
};

struct world {
    struct emu_machine *m;
    struct emu_sim *sim;
    struct emu_bgl_interface *i;
    void (*act)(struct world *w, struct emu_sim *sim, const struct emu_bgl_fifo *fifo, uint64_t now_ps);
    struct software software[NODES];
};

static struct world world;

static void interrupt(void *ctx, struct emu_sim *sim, const struct emu_bgl_fifo *fifo, uint32_t bytes, uint64_t now_ps)
{
    struct world *w = ctx;
    struct software *s = &w->software[fifo->nid];

    s->n_interrupts++;
    s->fifo = *fifo;
    s->bytes = bytes;
    if (w->act)
        w->act(w, sim, fifo, now_ps);
}

static int start(struct world *w, uint32_t n_threads)
{
    const struct emu_bgl_interface_options options = { .ctx = w, .interrupt = interrupt };
    const struct emu_sim_options sim_options = { .seed = 1, .n_threads = n_threads, .has_ends = true };
    struct emu_traffic traffic;

    *w = (struct world){ .m = load(MACHINE) };
    if (emu_bgl_interface_create(w->m, &options, &w->i) < 0)
        return -1;
    traffic = emu_bgl_interface_traffic(w->i);
    for (uint32_t nid = 0; nid < NODES; nid++)
        w->software[nid].random.state = nid;
    return emu_sim_create(w->m, NULL, &traffic, &sim_options, &w->sim);
}

static void stop(struct world *w)
{
    emu_sim_destroy(w->sim);
    emu_bgl_interface_destroy(w->i);
    emu_machine_destroy(w->m);
}

static int start_world(void **state)
{
    (void)state;
    return start(&world, 1);
}

static int stop_world(void **state)
{
    (void)state;
    stop(&world);
    return 0;
}

#define on_torus(test) cmocka_unit_test_setup_teardown(test, start_world, stop_world)

static void run(struct world *w)
{
    assert_int_equal(emu_sim_run(w->sim, UINT64_MAX), EMU_SIM_EMPTY);
}

/* One line as the experiments of `emunic sim` print it. */
static void tell(const char *metric)
{
    print_message("# EXP BGL-20 %s src=yes got=yes unit=yes tol=0%% kind=F machine=bluegene-l\n", metric);
}

static struct emu_bgl_fifo injection(uint32_t nid, uint32_t number)
{
    return (struct emu_bgl_fifo){ .nid = nid, .side = EMU_BGL_INJECTION, .number = number };
}

static struct emu_bgl_fifo reception(uint32_t nid, uint32_t group, uint32_t number)
{
    return (struct emu_bgl_fifo){ .nid = nid, .side = EMU_BGL_RECEPTION, .group = group, .number = number };
}

static struct emu_packet packet_to(uint32_t dst_nid, uint32_t fifo, uint64_t tag)
{
    return (struct emu_packet){ .dst_nid = dst_nid,
                                .units = PACKET,
                                .traffic_class =
                                    fifo < EMU_BGL_INJECTION_HIGH ? EMU_TRAFFIC_RESPONSE : EMU_TRAFFIC_REQUEST,
                                .tag = tag };
}

static uint32_t neighbour(uint32_t nid, uint32_t direction)
{
    return emu_torus_neighbour(emu_torus_of(world.m), nid, direction);
}

static int inject(uint32_t nid, uint32_t fifo, uint32_t group, uint32_t dst_nid, uint64_t tag)
{
    const struct emu_bgl_fifo f = injection(nid, fifo);
    const struct emu_packet p = packet_to(dst_nid, fifo, tag);

    return emu_bgl_inject(world.i, world.sim, &f, group, &p);
}

static uint32_t fill_of(struct emu_bgl_fifo fifo)
{
    return emu_bgl_fill(world.i, world.sim, &fifo);
}

/* ---- FIFOs ---- */

static void test_each_injection_fifo_sends_in_any_direction(void **state)
{
    struct emu_sim_link_stats stats;

    (void)state;
    for (uint32_t fifo = 0; fifo < EMU_BGL_INJECTION_FIFOS; fifo++) {
        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
            uint32_t dst = neighbour(SENDER, direction);
            uint32_t number = fifo < EMU_BGL_INJECTION_HIGH ? EMU_BGL_RECEPTION_HIGH : direction;
            const struct emu_bgl_fifo there = reception(dst, fifo % 2, number);
            struct emu_packet p;

            assert_int_equal(inject(SENDER, fifo, fifo % 2, dst, fifo * 8 + direction), 0);
            run(&world);
            assert_true(emu_bgl_receive(world.i, &there, &p));
            assert_int_equal(p.tag, fifo * 8 + direction);
            assert_int_equal(p.src_nid, SENDER);
            assert_false(emu_bgl_receive(world.i, &there, &p));
        }
    }
    emu_sim_link_stats(world.sim, SENDER, &stats); /* the NIC's own link has its number */
    for (uint32_t fifo = 0; fifo < EMU_BGL_INJECTION_FIFOS; fifo++)
        assert_int_equal(stats.vc_packets[fifo], EMU_TORUS_DIRECTIONS);
    tell("any_fifo_any_direction");
}

static void test_packets_come_to_fourteen_reception_fifos(void **state)
{
    const uint32_t dst = SENDER;

    (void)state;
    for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
        uint32_t src = neighbour(dst, emu_torus_opposite(direction));

        for (uint32_t group = 0; group < EMU_BGL_GROUPS; group++) {
            assert_int_equal(inject(src, EMU_BGL_INJECTION_HIGH, group, dst, 1), 0);
            assert_int_equal(inject(src, 0, group, dst, 1), 0);
        }
    }
    run(&world);
    for (uint32_t group = 0; group < EMU_BGL_GROUPS; group++) {
        for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++)
            assert_int_equal(fill_of(reception(dst, group, direction)), PACKET);
        assert_int_equal(fill_of(reception(dst, group, EMU_BGL_RECEPTION_HIGH)), EMU_TORUS_DIRECTIONS * PACKET);
    }
    tell("two_groups_of_seven");
}

/* A dynamic packet over several dimensions comes from where its last hop was: never from one that it does not need. */
static void test_the_reception_fifo_is_that_of_the_last_hop(void **state)
{
    const uint32_t dst = emu_torus_router(emu_torus_of(world.m), 2, 2, 1);
    uint32_t bytes = 0;

    (void)state;
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(inject(SENDER, EMU_BGL_INJECTION_HIGH + k, 0, dst, k), 0);
    run(&world);
    for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
        uint32_t here = fill_of(reception(dst, 0, direction));

        assert_true(here == 0 || direction == emu_torus_direction(0, true) ||
                    direction == emu_torus_direction(1, true));
        bytes += here;
    }
    assert_int_equal(bytes, 4 * PACKET);
}

static void test_a_full_fifo_takes_no_more_and_holds_up_no_other(void **state)
{
    const uint32_t dst = neighbour(SENDER, 1);

    (void)state;
    for (uint32_t k = 0; k < DEPTH / PACKET; k++)
        assert_int_equal(inject(SENDER, 3, 0, dst, k), 0);
    assert_int_equal(fill_of(injection(SENDER, 3)), DEPTH);
    assert_int_equal(inject(SENDER, 3, 0, dst, 99), -EAGAIN);
    assert_int_equal(inject(SENDER, 4, 0, dst, 98), 0);
    assert_int_equal(inject(SENDER, 0, 0, dst, 97), 0);
    run(&world);
    assert_int_equal(fill_of(injection(SENDER, 3)), 0);
    assert_int_equal(inject(SENDER, 3, 0, dst, 99), 0);
    run(&world);
    assert_int_equal(fill_of(reception(dst, 0, 1)), DEPTH + 2 * PACKET);
    assert_int_equal(fill_of(reception(dst, 0, EMU_BGL_RECEPTION_HIGH)), PACKET);
}

/* While the NIC moves packets into the router's channels, before the first can have left: nothing is counted twice. */
static void test_a_fifo_is_one_from_end_to_end(void **state)
{
    (void)state;
    for (uint32_t k = 0; k < DEPTH / PACKET; k++) {
        assert_int_equal(inject(SENDER, 3, 0, neighbour(SENDER, 1), k), 0);
        assert_int_equal(inject(SENDER, 4, 0, neighbour(SENDER, 2), k), 0);
    }
    for (uint64_t cycles = 1; cycles < 10; cycles++) {
        assert_int_equal(emu_sim_run(world.sim, cycles * emu_machine_router(world.m)->clock_ps), EMU_SIM_REACHED);
        assert_int_equal(fill_of(injection(SENDER, 3)), DEPTH);
        assert_int_equal(fill_of(injection(SENDER, 4)), DEPTH);
    }
    run(&world);
    assert_int_equal(fill_of(injection(SENDER, 3)) + fill_of(injection(SENDER, 4)), 0);
}

static void test_what_no_fifo_takes_is_refused(void **state)
{
    const struct emu_bgl_fifo wrong[] = { injection(SENDER, EMU_BGL_INJECTION_FIFOS), injection(NODES, 3),
                                          reception(SENDER, 0, 3), injection(SENDER, 1) };
    struct emu_machine *aries = load("aries:groups=2");
    const struct emu_bgl_interface_options options = { 0 };
    const struct emu_bgl_fifo good = injection(SENDER, 3);
    struct emu_packet p = packet_to(0, 3, 0);
    struct emu_bgl_interface *i;

    (void)state;
    for (size_t k = 0; k < sizeof(wrong) / sizeof(wrong[0]); k++)
        assert_int_equal(emu_bgl_inject(world.i, world.sim, &wrong[k], 0, &p), -EINVAL);
    assert_int_equal(emu_bgl_inject(world.i, world.sim, &good, EMU_BGL_GROUPS, &p), -EINVAL);
    p.units = PACKET + 1;
    assert_int_equal(emu_bgl_inject(world.i, world.sim, &good, 0, &p), -EINVAL);
    assert_int_equal(emu_bgl_interface_create(aries, &options, &i), -EINVAL);
    emu_machine_destroy(aries);
}

/* ---- watermarks ---- */

/* Puts in what fits. */
static void refill(struct world *w, struct emu_sim *sim, const struct emu_bgl_fifo *fifo, uint64_t now_ps)
{
    struct software *s = &w->software[fifo->nid];

    for (; s->n_left > 0; s->n_left--) {
        struct emu_packet p = packet_to((uint32_t)emu_random_below(&s->random, NODES), fifo->number, s->number);

        if (p.dst_nid == fifo->nid)
            p.dst_nid = (p.dst_nid + 1) % NODES;
        p.created_ps = now_ps;
        if (emu_bgl_inject(w->i, sim, fifo, s->number % EMU_BGL_GROUPS, &p) < 0)
            return;
        s->number++;
        s->n_sent++;
    }
}

static void test_an_injection_watermark_interrupts_when_it_is_reached(void **state)
{
    const struct emu_bgl_fifo fifo = injection(SENDER, 5);
    struct software *s = &world.software[SENDER];

    (void)state;
    emu_bgl_set_watermark(world.i, &fifo, PACKET);
    for (uint32_t k = 0; k < DEPTH / PACKET; k++)
        assert_int_equal(inject(SENDER, 5, 0, neighbour(SENDER, 0), k), 0);
    assert_int_equal(s->n_interrupts, 0);
    run(&world);
    assert_int_equal(s->n_interrupts, 1);
    assert_int_equal(s->fifo.number, 5);
    assert_int_equal(s->fifo.side, EMU_BGL_INJECTION);
    assert_int_equal(s->bytes, PACKET); /* one is left */
    assert_int_equal(inject(SENDER, 5, 0, neighbour(SENDER, 0), 9), 0);
    run(&world);
    assert_int_equal(s->n_interrupts, 1); /* it was not above its mark */
    tell("injection_watermark_interrupts");
}

static void test_a_node_that_sends_by_interrupts_alone_sends_all(void **state)
{
    const struct emu_bgl_fifo fifo = injection(SENDER, 5);
    struct software *s = &world.software[SENDER];
    uint32_t bytes = 0;

    (void)state;
    world.act = refill;
    s->n_left = 100;
    emu_bgl_set_watermark(world.i, &fifo, DEPTH / 2);
    refill(&world, world.sim, &fifo, 0);
    assert_int_equal(s->n_sent, DEPTH / PACKET);
    run(&world);
    assert_int_equal(s->n_sent, 100);
    assert_true(s->n_interrupts >= (100 - DEPTH / PACKET) / (DEPTH / PACKET));
    for (uint32_t k = 0; k < NODES * EMU_BGL_GROUPS * EMU_BGL_RECEPTION_FIFOS; k++)
        bytes += fill_of(reception(k % NODES, k / NODES % EMU_BGL_GROUPS, k / NODES / EMU_BGL_GROUPS));
    assert_int_equal(bytes, 100 * PACKET);
}

static void test_a_reception_watermark_interrupts_once_until_it_is_read(void **state)
{
    const uint32_t dst = neighbour(SENDER, 3);
    const struct emu_bgl_fifo fifo = reception(dst, 1, 3);
    const struct software *s = &world.software[dst];
    struct emu_packet p;

    (void)state;
    emu_bgl_set_watermark(world.i, &fifo, 2 * PACKET);
    assert_int_equal(inject(SENDER, 2, 1, dst, 1), 0);
    run(&world);
    assert_int_equal(s->n_interrupts, 0);
    assert_int_equal(inject(SENDER, 2, 0, dst, 2), 0); /* the other group */
    run(&world);
    assert_int_equal(s->n_interrupts, 0);
    assert_int_equal(inject(SENDER, 2, 1, dst, 3), 0);
    assert_int_equal(inject(SENDER, 2, 1, dst, 4), 0);
    run(&world);
    assert_int_equal(s->n_interrupts, 1);
    assert_int_equal(s->bytes, 2 * PACKET);
    assert_int_equal(s->fifo.number, 3);
    assert_int_equal(s->fifo.group, 1);
    while (emu_bgl_receive(world.i, &fifo, &p))
        ;
    assert_int_equal(p.tag, 4);
    assert_int_equal(inject(SENDER, 2, 1, dst, 5), 0);
    assert_int_equal(inject(SENDER, 2, 1, dst, 6), 0);
    run(&world);
    assert_int_equal(s->n_interrupts, 2);
    tell("reception_watermark_interrupts");
}

/* ---- checksums ---- */

struct result {
    uint32_t checksums[NODES][EMU_BGL_INJECTION_FIFOS];
    uint64_t trace_hash;
};

/* All nodes send 40 packets at random from all FIFOs, by interrupts. odd: this node's first packet is another one. */
static void run_all(uint32_t n_threads, uint32_t odd, struct result *result_out)
{
    static struct world w;
    struct emu_sim_totals totals;

    assert_int_equal(start(&w, n_threads), 0);
    w.act = refill;
    for (uint32_t nid = 0; nid < NODES; nid++) {
        w.software[nid].n_left = 40;
        w.software[nid].number = nid == odd;
    }
    for (uint32_t k = 0; k < NODES * EMU_BGL_INJECTION_FIFOS; k++) {
        const struct emu_bgl_fifo fifo = injection(k / EMU_BGL_INJECTION_FIFOS, k % EMU_BGL_INJECTION_FIFOS);

        emu_bgl_set_watermark(w.i, &fifo, DEPTH / 2);
        refill(&w, w.sim, &fifo, 0);
    }
    run(&w);
    for (uint32_t k = 0; k < NODES * EMU_BGL_INJECTION_FIFOS; k++) {
        const struct emu_bgl_fifo fifo = injection(k / EMU_BGL_INJECTION_FIFOS, k % EMU_BGL_INJECTION_FIFOS);

        result_out->checksums[fifo.nid][fifo.number] = emu_bgl_checksum(w.i, &fifo);
    }
    emu_sim_totals(w.sim, &totals);
    assert_int_equal(totals.delivered, NODES * 40);
    result_out->trace_hash = totals.trace_hash;
    stop(&w);
}

static void test_checksums_are_equal_in_repeated_runs(void **state)
{
    static struct result first;
    static struct result again;

    (void)state;
    run_all(1, NODES, &first);
    for (uint32_t n_threads = 1; n_threads <= 3; n_threads++) {
        run_all(n_threads, NODES, &again);
        assert_memory_equal(first.checksums, again.checksums, sizeof(first.checksums));
        assert_true(first.trace_hash == again.trace_hash);
    }
    tell("checksums_equal_in_repeated_runs");
}

static void test_a_checksum_tells_the_fifo_that_differs(void **state)
{
    static struct result first;
    static struct result odd;

    (void)state;
    run_all(1, NODES, &first);
    run_all(1, SENDER, &odd);
    for (uint32_t nid = 0; nid < NODES; nid++) {
        bool is_same = memcmp(first.checksums[nid], odd.checksums[nid], sizeof(first.checksums[nid])) == 0;

        assert_int_equal(is_same, nid != SENDER);
    }
}

/* ---- the broadcast bit ---- */

static void test_the_broadcast_bit_deposits_along_one_line(void **state)
{
    (void)state;
    for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
        const struct emu_bgl_fifo fifo = injection(SENDER, EMU_BGL_INJECTION_HIGH + direction);
        uint32_t last = neighbour(SENDER, emu_torus_opposite(direction)); /* all the way round */
        struct emu_packet p = packet_to(last, fifo.number, direction);
        uint32_t n_got = 0;

        p.src_nid = SENDER;
        assert_int_equal(emu_bgl_give_broadcast(world.m, &p, 1u << direction), 0);
        assert_int_equal(emu_bgl_inject(world.i, world.sim, &fifo, 1, &p), 0);
        run(&world);
        for (uint32_t nid = neighbour(SENDER, direction); nid != SENDER; nid = neighbour(nid, direction)) {
            const struct emu_bgl_fifo there = reception(nid, 1, direction);
            struct emu_packet got;

            assert_true(emu_bgl_receive(world.i, &there, &got));
            assert_int_equal(got.tag, direction);
            n_got++;
        }
        assert_int_equal(n_got, SIDE - 1);
        for (uint32_t k = 0; k < NODES * EMU_BGL_GROUPS * EMU_BGL_RECEPTION_FIFOS; k++)
            assert_int_equal(fill_of(reception(k % NODES, k / NODES % EMU_BGL_GROUPS, k / NODES / EMU_BGL_GROUPS)), 0);
    }
    tell("broadcast_bit_deposits_along_one_dimension");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_torus(test_each_injection_fifo_sends_in_any_direction),
        on_torus(test_packets_come_to_fourteen_reception_fifos),
        on_torus(test_the_reception_fifo_is_that_of_the_last_hop),
        on_torus(test_a_full_fifo_takes_no_more_and_holds_up_no_other),
        on_torus(test_a_fifo_is_one_from_end_to_end),
        on_torus(test_what_no_fifo_takes_is_refused),
        on_torus(test_an_injection_watermark_interrupts_when_it_is_reached),
        on_torus(test_a_node_that_sends_by_interrupts_alone_sends_all),
        on_torus(test_a_reception_watermark_interrupts_once_until_it_is_read),
        cmocka_unit_test(test_checksums_are_equal_in_repeated_runs),
        cmocka_unit_test(test_a_checksum_tells_the_fifo_that_differs),
        on_torus(test_the_broadcast_bit_deposits_along_one_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
