/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End points of the packet simulator on real machines, against arithmetic: links of different speed, rates of
 * NICs, full reception buffers.
 */
#include <errno.h>
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "emunic/fabric/topology.h"
#include "tests/unit/fabric/fixture.h"

#define NODES_MAX 4096
#define US        UINT64_C(1000000)

/* Some nodes send to one destination each, as fast as they can. */
struct flows {
    struct emu_machine *m;
    struct emu_generator *gen;
    struct emu_sim *sim;
    uint32_t to[NODES_MAX];    /* EMU_NOBODY: sends nothing */
    uint64_t packets_per_node; /* 0: without end */
};

static uint32_t pick(void *ctx, struct emu_random *random, uint32_t src_nid)
{
    const struct flows *f = ctx;

    (void)random;
    return f->to[src_nid];
}

static struct flows *make(const char *spec)
{
    struct flows *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    f->m = load(spec);
    assert_in_range(emu_machine_n_nodes(f->m), 1, NODES_MAX);
    memset(f->to, 0xff, sizeof(f->to));
    return f;
}

static void start(struct flows *f, const struct emu_sim_options *sim_options)
{
    bool senders[NODES_MAX];
    const struct emu_generator_options options = {
        .pattern = EMU_PATTERN_CUSTOM,
        .pick = pick,
        .pick_ctx = f,
        .senders = senders,
        .mode = EMU_MODE_ADAPTIVE_0,
        .packets_per_node = f->packets_per_node,
    };

    for (uint32_t nid = 0; nid < NODES_MAX; nid++)
        senders[nid] = f->to[nid] != EMU_NOBODY;
    assert_int_equal(emu_generator_create(f->m, &options, &f->gen, NULL, 0), 0);
    assert_int_equal(emu_sim_create(f->m, NULL, emu_generator_traffic(f->gen), sim_options, &f->sim), 0);
}

static void destroy(struct flows *f)
{
    emu_sim_destroy(f->sim);
    emu_generator_destroy(f->gen);
    emu_machine_destroy(f->m);
    free(f);
}

/* Bytes of payload that a node has received, after a warm-up, per second: GB/s. */
static void measure(struct flows *f, uint64_t warm_up_ps, uint64_t ps)
{
    assert_int_equal(emu_sim_run(f->sim, warm_up_ps), EMU_SIM_REACHED);
    emu_generator_reset(f->gen);
    emu_sim_reset_stats(f->sim);
    assert_int_equal(emu_sim_run(f->sim, warm_up_ps + ps), EMU_SIM_REACHED);
}

static double received_gbytes_per_s(const struct flows *f, uint32_t nid, uint64_t ps)
{
    struct emu_node_figures figures;

    emu_generator_node(f->gen, nid, &figures);
    return (double)figures.received * emu_machine_nic(f->m)->format.payload_bytes_max * 1000.0 / (double)ps;
}

/* ---- links of different speed ---- */

/* So many nodes of 25.6 GB/s each over one edge of 102.4, which is as much as four of them, to the next vertex. */
static struct flows *make_edge(uint32_t n, bool counts_occupancy)
{
    struct flows *f = make("x1");

    for (uint32_t i = 0; i < n; i++)
        f->to[i] = 8 + i;
    start(f, &(struct emu_sim_options){ .seed = 1, .count_occupancy = counts_occupancy });
    return f;
}

/* 33 flits of 8 bytes carry 256. A node's packets come on one channel of four, so of more than four nodes some share
 * one. Outputs hold what they send, so a channel goes on at once, and each node has its part of the edge. */
static void test_an_edge_is_full_and_nobody_starves(void **state)
{
    static const double of_link[9][8] = {
        [1] = { 1 },
        [2] = { 1, 1 },
        [4] = { 1, 1, 1, 1 },
        [5] = { 0.8, 0.8, 0.8, 0.8, 0.8 },
        [8] = { 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5 },
    };

    (void)state;
    for (uint32_t n = 1; n <= 8; n++) {
        struct flows *f;

        if (of_link[n][0] == 0)
            continue;
        f = make_edge(n, n == 4); /* counts of occupancy take another way to decide */
        measure(f, 20 * US, 50 * US);
        for (uint32_t i = 0; i < n; i++) {
            double bound = 25.6 * 256 / 264 * of_link[n][i];
            double got = received_gbytes_per_s(f, f->to[i], 50 * US);

            print_message("# X1, %u nodes over one edge, node %u: %.2f of %.2f GB/s\n", n, i, got, bound);
            assert_true(got > 0.99 * bound && got < 1.001 * bound);
        }
        destroy(f);
    }
}

/* Uniform traffic at 0.6 of what the network carries at most: mean from creation to delivery. */
static double mean_ns(const char *spec)
{
    struct flows *f = make(spec);
    const struct emu_generator_options options = {
        .pattern = EMU_PATTERN_UNIFORM,
        .gap_ps = emu_uniform_gap_ps(f->m, (uint16_t)f->m->params.router.packet_units_max, 0, 0.6),
        .packets_per_node = 300,
    };
    const struct emu_sim_options sim_options = { .seed = 1 };
    struct emu_sim_totals totals;

    assert_int_equal(emu_generator_create(f->m, &options, &f->gen, NULL, 0), 0);
    assert_int_equal(emu_sim_create(f->m, NULL, emu_generator_traffic(f->gen), &sim_options, &f->sim), 0);
    assert_int_equal(emu_sim_run(f->sim, UINT64_C(1) << 60), EMU_SIM_EMPTY);
    emu_sim_totals(f->sim, &totals);
    destroy(f);
    return (double)totals.latency_sum_ps / (double)totals.delivered * 1e-3;
}

/* Held, a link has a packet for as long as it comes in over a slower one, and others wait for it. XD1's links between
 * chassis are slower than those of its nodes. */
static void test_slow_packets_hold_up_others_unless_they_are_stored(void **state)
{
    double store_ns = mean_ns("xd1");
    double hold_ns = mean_ns("xd1:slow_input=hold");

    (void)state;
    print_message("# XD1, uniform traffic: store %.0f, hold %.0f ns\n", store_ns, hold_ns);
    assert_true(hold_ns > 1.03 * store_ns);
}

/* ---- rates of NICs ---- */

static double lone_gbytes_per_s(const char *spec, uint32_t src, uint32_t dst, bool has_ends)
{
    struct flows *f = make(spec);
    double rate;

    f->to[src] = dst;
    start(f, &(struct emu_sim_options){ .seed = 1, .has_ends = has_ends });
    measure(f, 100 * US, 400 * US);
    rate = received_gbytes_per_s(f, dst, 400 * US);
    destroy(f);
    return rate;
}

static void assert_near(double value, double expected, double share)
{
    if (!(value > expected * (1 - share) && value < expected * (1 + share)))
        fail_msg("%.4f is not within %g %% of %.4f", value, 100 * share, expected);
}

static void test_lone_sender_has_the_rate_of_its_nic(void **state)
{
    static const struct {
        const char *spec;
        uint32_t dst;
        double ends;
        double ideal;
    } machines[] = {
        { "aries", 4, 10.24, 16.0 },           /* 64 B in 5 clocks of 800 MHz; links: 3 lanes, 14 flits a packet */
        { "seastar", 1, 1.1034, 2.512 },       /* 64 B in 29 clocks of 500 MHz; the link to the NIC */
        { "gemini", 4, 8.32, 8.636 },          /* 64 B in 5 clocks of 650 MHz */
        { "bluegene-l", 1, 0.15556, 0.15556 }, /* the link: 175 MB/s, of 270 bytes 240 are payload */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        double ends = lone_gbytes_per_s(machines[i].spec, 0, machines[i].dst, true);
        double ideal = lone_gbytes_per_s(machines[i].spec, 0, machines[i].dst, false);

        print_message("# %s, one sender: %.3f GB/s, with ideal NICs %.3f\n", machines[i].spec, ends, ideal);
        assert_near(ends, machines[i].ends, 0.005);
        assert_near(ideal, machines[i].ideal, 0.005);
    }
}

/* ---- incast ---- */

/* Senders are others than the victims, each `stride` numbers from the last. One victim flow shares links with the
 * incast, the other none. */
struct spot {
    const char *spec;
    uint32_t stride;
    uint32_t near_from;
    uint32_t near_to;
    uint32_t far_from;
    uint32_t far_to;
    double drain;    /* GB/s of payload that the target takes */
    uint32_t enough; /* senders that are as fast as that */
};

enum { TARGET = 0, N_SENDERS = 5 };
static const uint32_t n_senders[N_SENDERS] = { 0, 1, 3, 15, 63 };

struct outcome {
    double hot;
    double near;
    double far;
};

static struct outcome incast(const struct spot *s, uint32_t n, bool has_ends)
{
    struct flows *f = make(s->spec);
    struct outcome o;

    f->to[s->near_from] = s->near_to;
    f->to[s->far_from] = s->far_to;
    for (uint32_t nid = TARGET + s->stride; n > 0; nid = (nid + s->stride) % emu_machine_n_nodes(f->m)) {
        if (nid == TARGET || nid == s->near_to || nid == s->far_to || f->to[nid] != EMU_NOBODY)
            continue;
        f->to[nid] = TARGET;
        n--;
    }
    start(f, &(struct emu_sim_options){ .seed = 1, .has_ends = has_ends });
    measure(f, 300 * US, 400 * US);
    o.hot = received_gbytes_per_s(f, TARGET, 400 * US);
    o.near = received_gbytes_per_s(f, s->near_to, 400 * US);
    o.far = received_gbytes_per_s(f, s->far_to, 400 * US);
    destroy(f);
    return o;
}

/* The node in front takes exactly its drain rate, whoever sends; victims behind the same links slow down, as full
 * buffers reach back to them; others do not notice. */
static void test_incast_has_the_drain_rate_and_victims(void **state)
{
    static const struct spot spots[] = {
        { "aries", 5, 6, 1, 700, 600, 10.24, 1 },
        { "gemini", 1, 5, 1, 60, 70, 8.32, 15 },
        { "seastar:x=16,y=8,z=8", 1, 1023, 1, 600, 601, 1.1034, 1 },
        { "bluegene-l", 37, 6, 2, 219, 220, 0.866, 63 }, /* 240 B in 194 clocks of 700 MHz */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(spots) / sizeof(spots[0]); i++) {
        const struct spot *s = &spots[i];
        struct outcome alone = incast(s, 0, true);

        for (uint32_t k = 1; k < N_SENDERS; k++) {
            uint32_t n = n_senders[k];
            struct outcome o = incast(s, n, true);

            print_message("# %s, %u senders: %.3f GB/s, victims %.3f and %.3f of %.3f and %.3f\n", s->spec, n, o.hot,
                          o.near, o.far, alone.near, alone.far);
            assert_true(o.hot < s->drain * 1.005);
            if (n >= s->enough)
                assert_near(o.hot, s->drain, 0.01);
            assert_near(o.far, alone.far, 0.005);
            assert_true(o.near < alone.near * 1.005 && (n < 63 || o.near < alone.near / 2));
        }
        assert_true(incast(s, 63, false).hot > s->drain * 1.05); /* ideal NICs take more */
    }
}

/* ---- nothing is lost, and nothing waits for ever ---- */

/* All nodes to one, or each to all with answers, into buffers of one packet. */
static struct emu_sim_totals run_whole(const char *spec, bool is_incast, uint32_t n_threads)
{
    struct emu_generator_options options = { .pattern = EMU_PATTERN_HOT, .hot_share = 1, .packets_per_node = 20 };
    struct emu_machine *m = load(spec);
    struct emu_sim_totals totals;
    struct emu_generator *gen = NULL;
    struct emu_sim *sim = NULL;

    if (!is_incast)
        options = (struct emu_generator_options){ .pattern = EMU_PATTERN_UNIFORM,
                                                  .packets_per_node = 60,
                                                  .response_units = emu_packet_units(m, 0) };
    for (uint32_t dim = 0; dim < EMU_GRID_DIMS; dim++)
        options.hot_size[dim] = 1;
    assert_int_equal(emu_generator_create(m, &options, &gen, NULL, 0), 0);
    assert_int_equal(emu_sim_create(m, NULL, emu_generator_traffic(gen),
                                    &(struct emu_sim_options){ .seed = 1, .has_ends = true, .n_threads = n_threads },
                                    &sim),
                     0);
    assert_int_equal(emu_sim_run(sim, UINT64_C(1) << 60), EMU_SIM_EMPTY);
    emu_sim_totals(sim, &totals);
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
    return totals;
}

static void test_small_buffers_lose_nothing_and_never_block(void **state)
{
    static const char *const specs[] = {
        "aries:groups=2,chassis=1,reception_units=14",
        "gemini:reception_units=32",
        "seastar:x=6,y=4,z=4,reception_units=9",
        "bluegene-l:x=4,y=4,z=4,reception_units=256",
        "bluegene-l:x=8,y=4,z=1,reception_units=256,escape=dateline",
        "x1:reception_units=33",
        "xd1:reception_units=65",
        "xd1-fat-tree:reception_units=65",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        for (uint32_t k = 0; k < 2; k++) {
            struct emu_sim_totals one = run_whole(specs[i], k == 0, 1);
            struct emu_sim_totals three = run_whole(specs[i], k == 0, 3);

            assert_true(one.entered > 600);
            assert_int_equal(one.delivered, one.entered);
            assert_int_equal(one.in_network, 0);
            assert_int_equal(one.lost + one.unroutable, 0);
            assert_memory_equal(&one, &three, sizeof(one));
        }
    }
}

static void test_buffer_below_a_packet_is_refused(void **state)
{
    struct flows *f = make("aries:reception_units=13");
    struct emu_generator_options options = { .pattern = EMU_PATTERN_UNIFORM };

    (void)state;
    assert_int_equal(emu_generator_create(f->m, &options, &f->gen, NULL, 0), 0);
    assert_int_equal(emu_sim_create(f->m, NULL, emu_generator_traffic(f->gen),
                                    &(struct emu_sim_options){ .has_ends = true }, &f->sim),
                     -EINVAL);
    destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_edge_is_full_and_nobody_starves),
        cmocka_unit_test(test_slow_packets_hold_up_others_unless_they_are_stored),
        cmocka_unit_test(test_lone_sender_has_the_rate_of_its_nic),
        cmocka_unit_test(test_incast_has_the_drain_rate_and_victims),
        cmocka_unit_test(test_small_buffers_lose_nothing_and_never_block),
        cmocka_unit_test(test_buffer_below_a_packet_is_refused),
    };

    return cmocka_run_group_tests_name("experiments/ends", tests, NULL, NULL);
}
