/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generators are asked here as the simulator asks them; a stub takes its place.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "tests/unit/fabric/fixture.h"

/* ---- the simulator's place ---- */

static uint32_t n_wakes;
static uint32_t woken_nid;
static enum emu_traffic_class woken_class;

void emu_sim_wake(struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class)
{
    (void)sim;
    n_wakes++;
    woken_nid = nid;
    woken_class = traffic_class;
}

/* For the steady state: deliveries of each window, one after another. */
static const uint64_t *script;
static uint32_t n_script;
static uint32_t at_window;
static uint64_t now_ps;
static struct emu_sim_totals totals;

enum emu_sim_stop emu_sim_run(struct emu_sim *sim, uint64_t until_ps)
{
    (void)sim;
    now_ps = until_ps;
    if (at_window >= n_script)
        return EMU_SIM_EMPTY;
    totals.delivered_units += script[at_window++];
    return EMU_SIM_REACHED;
}

bool emu_sim_owns(const struct emu_sim *sim, uint32_t nid)
{
    (void)sim;
    (void)nid;
    return true;
}

uint64_t emu_sim_now(const struct emu_sim *sim)
{
    (void)sim;
    return now_ps;
}

void emu_sim_totals(const struct emu_sim *sim, struct emu_sim_totals *totals_out)
{
    (void)sim;
    *totals_out = totals;
}

void emu_sim_reset_stats(struct emu_sim *sim)
{
    (void)sim;
    totals = (struct emu_sim_totals){ 0 };
}

/* ---- helpers ---- */

static struct emu_generator *make(const struct emu_machine *m, struct emu_generator_options options)
{
    struct emu_generator *gen = NULL;
    char err[256] = "";

    if (options.seed == 0)
        options.seed = 1;
    if (emu_generator_create(m, &options, &gen, err, sizeof(err)) < 0)
        fail_msg("%s", err);
    n_wakes = 0;
    return gen;
}

static void assert_refused(const struct emu_machine *m, struct emu_generator_options options, const char *reason)
{
    struct emu_generator *gen = NULL;
    char err[256] = "";

    assert_int_equal(emu_generator_create(m, &options, &gen, err, sizeof(err)), -EINVAL);
    if (!strstr(err, reason))
        fail_msg("'%s' does not tell '%s'", err, reason);
}

static bool ask(struct emu_generator *gen, uint32_t nid, enum emu_traffic_class traffic_class, uint64_t now,
                struct emu_packet *p)
{
    const struct emu_traffic *t = emu_generator_traffic(gen);

    memset(p, 0xa5, sizeof(*p));
    return t->next(t->ctx, NULL, nid, traffic_class, now, p);
}

static uint32_t destination(struct emu_generator *gen, uint32_t nid)
{
    struct emu_packet p;

    return ask(gen, nid, EMU_TRAFFIC_REQUEST, 0, &p) ? p.dst_nid : EMU_NOBODY;
}

static void deliver(struct emu_generator *gen, const struct emu_packet *p, uint64_t now)
{
    const struct emu_traffic *t = emu_generator_traffic(gen);

    t->delivered(t->ctx, NULL, p->dst_nid, p, now);
}

/* ---- patterns ---- */

static void test_uniform_reaches_every_other_node_alike(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *gen = make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_UNIFORM });
    uint32_t seen[16] = { 0 };

    (void)state;
    assert_int_equal(emu_machine_n_nodes(m), 16);
    for (int i = 0; i < 15000; i++)
        seen[destination(gen, 5)]++;
    for (int nid = 0; nid < 16; nid++) {
        if (nid == 5)
            assert_int_equal(seen[nid], 0);
        else
            assert_in_range(seen[nid], 850, 1150); /* 1000 expected, five times its deviation */
    }
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static void test_hot_region_gets_its_share(void **state)
{
    struct emu_machine *m = load("aries:groups=4,chassis=2,blades=4");
    struct emu_generator *gen =
        make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_HOT, .hot_share = 0.25, .hot_size = { 1, 1 } });
    uint32_t n_hot = 0;

    (void)state;
    /* The hot box is chassis 0 of group 0: nids 0 to 15 of 128. A node outside sends 25 % + 75 % x 16 / 127 to it. */
    for (int i = 0; i < 20000; i++)
        n_hot += destination(gen, 100) < 16;
    assert_in_range(n_hot, 6500, 7280); /* 6890 expected */
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static void test_group_shift_goes_to_the_next_group_only(void **state)
{
    struct emu_machine *m = load("aries:groups=3,chassis=2,blades=4");
    struct emu_generator *gen = make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_SHIFT });
    bool seen[96] = { false };

    (void)state;
    for (uint32_t i = 0; i < 2000; i++) {
        uint32_t src = i % 96;
        uint32_t dst = destination(gen, src);

        assert_int_equal(dst / 32, (src / 32 + 1) % 3);
        seen[dst] = true;
    }
    for (uint32_t nid = 0; nid < 96; nid++)
        assert_true(seen[nid]);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

/* Each node gets as many as it sends. */
static void check_permutation(const struct emu_machine *m, enum emu_pattern pattern)
{
    struct emu_generator *gen = make(m, (struct emu_generator_options){ .pattern = pattern });
    uint32_t n = emu_machine_n_nodes(m);
    uint32_t *received = calloc(n, sizeof(*received));

    assert_non_null(received);
    for (uint32_t nid = 0; nid < n; nid++) {
        uint32_t dst = destination(gen, nid);

        if (dst != EMU_NOBODY) {
            assert_int_not_equal(dst, nid);
            assert_in_range(dst, 0, n - 1);
            received[dst]++;
        }
    }
    for (uint32_t nid = 0; nid < n; nid++)
        assert_in_range(received[nid], 0, 1);
    free(received);
    emu_generator_destroy(gen);
}

static void test_permutations_send_one_to_each(void **state)
{
    static const char *const specs[] = { "aries:groups=1,chassis=1,blades=4", "aries:groups=3,chassis=5,blades=7" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct emu_machine *m = load(specs[i]);

        check_permutation(m, EMU_PATTERN_TRANSPOSE);
        check_permutation(m, EMU_PATTERN_TORNADO);
        check_permutation(m, EMU_PATTERN_COMPLEMENT);
        emu_machine_destroy(m);
    }
}

static void test_known_destinations_of_permutations(void **state)
{
    struct emu_machine *m = load("aries:groups=4,chassis=1,blades=4"); /* 64 nodes: a matrix of 8 x 8 */
    struct emu_generator *transpose = make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_TRANSPOSE });
    struct emu_generator *tornado = make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_TORNADO });
    struct emu_generator *complement = make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_COMPLEMENT });

    (void)state;
    assert_int_equal(destination(transpose, 10), 17);           /* (1, 2) to (2, 1) */
    assert_int_equal(destination(transpose, 9), EMU_NOBODY);    /* to itself: silent */
    assert_int_equal(destination(tornado, 0), (1 * 4 + 1) * 4); /* group + 1, blade + 1 of 4 */
    assert_int_equal(destination(tornado, 63), 3);
    assert_int_equal(destination(complement, 10), 53);
    emu_generator_destroy(transpose);
    emu_generator_destroy(tornado);
    emu_generator_destroy(complement);
    emu_machine_destroy(m);
}

static void test_neighbours_differ_by_one_step(void **state)
{
    struct emu_machine *m = load("aries:groups=4,chassis=2,blades=5");
    struct emu_generator *gen = make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_NEIGHBOUR });
    struct emu_place from = place_of(m, 77);
    uint64_t seen = 0;

    (void)state;
    for (int i = 0; i < 400; i++) {
        struct emu_place to = place_of(m, destination(gen, 77));
        uint32_t groups = (to.group + 4 - from.group) % 4;
        uint32_t chassis = (to.chassis + 2 - from.chassis) % 2;
        uint32_t blades = (to.blade + 5 - from.blade) % 5;

        assert_int_equal(to.node, from.node);
        assert_int_equal((groups != 0) + (chassis != 0) + (blades != 0), 1);
        assert_true(groups != 2 && blades != 2 && blades != 3);
        seen |= UINT64_C(1) << (groups + 4 * chassis + 8 * blades);
    }
    assert_int_equal(__builtin_popcountll(seen), 5); /* two up and down groups, one chassis, two blades */
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static void test_all_to_all_sends_each_round_once_to_each(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=3,blades=7");
    uint32_t n = emu_machine_n_nodes(m);
    struct emu_generator *gen =
        make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_ALL_TO_ALL, .rounds = 2 });
    uint32_t first_order[2][84];

    (void)state;
    assert_int_equal(n, 84);
    for (int round = 0; round < 2; round++) {
        bool seen[84] = { false };

        for (uint32_t i = 0; i < n - 1; i++) {
            uint32_t dst = destination(gen, 33);

            assert_in_range(dst, 0, n - 1);
            assert_int_not_equal(dst, 33);
            assert_false(seen[dst]);
            seen[dst] = true;
            first_order[round][i] = dst;
        }
    }
    assert_memory_not_equal(first_order[0], first_order[1], (n - 1) * sizeof(uint32_t));
    assert_int_equal(destination(gen, 33), EMU_NOBODY);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static uint32_t pick_two_on(void *ctx, struct emu_random *random, uint32_t src)
{
    (void)random;
    return src + *(uint32_t *)ctx;
}

static void test_a_pattern_of_ones_own(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    uint32_t step = 2;
    struct emu_generator *gen = make(
        m, (struct emu_generator_options){ .pattern = EMU_PATTERN_CUSTOM, .pick = pick_two_on, .pick_ctx = &step });

    (void)state;
    assert_int_equal(destination(gen, 3), 5);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static void test_names_of_patterns(void **state)
{
    enum emu_pattern pattern;

    (void)state;
    assert_int_equal(emu_pattern_of_name("tornado", &pattern), 0);
    assert_int_equal(pattern, EMU_PATTERN_TORNADO);
    assert_int_equal(emu_pattern_of_name("custom", &pattern), -EINVAL);
    assert_int_equal(emu_pattern_of_name("", &pattern), -EINVAL);
}

static void test_bad_options_are_refused(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=2,blades=4");
    struct emu_message message = { .src_nid = 0, .dst_nid = 32 };

    (void)state;
    assert_refused(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_SHIFT }, "leads back");
    assert_refused(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_SHIFT, .dimension = 4 }, "dimension 4");
    assert_refused(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_HOT, .hot_share = 1.1 }, "hot share");
    assert_refused(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_HOT, .hot_low = { 5 } }, "hot box");
    assert_refused(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_CUSTOM }, "no function");
    assert_refused(m, (struct emu_generator_options){ .pattern = EMU_PATTERNS }, "does not exist");
    assert_refused(m, (struct emu_generator_options){ .window = 3 }, "needs responses");
    assert_refused(m, (struct emu_generator_options){ .mode = EMU_MODES }, "mode");
    assert_refused(m, (struct emu_generator_options){ .gap_ps = -1 }, "gap");
    assert_refused(m, (struct emu_generator_options){ .gap_ps = NAN }, "gap");
    assert_refused(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_MESSAGES, .messages = { &message, 1 } },
                   "message 0");
    emu_machine_destroy(m);
}

/* ---- sources ---- */

static void test_the_same_seed_gives_the_same_packets(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=2,blades=4");
    struct emu_generator_options options = { .pattern = EMU_PATTERN_UNIFORM, .seed = 9, .gap_ps = 1e6 };
    struct emu_generator *a = make(m, options);
    struct emu_generator *b = make(m, options);
    struct emu_generator *c;
    uint32_t n_same = 0;

    (void)state;
    options.seed = 10;
    c = make(m, options);
    for (int i = 0; i < 100; i++) {
        struct emu_packet p;
        struct emu_packet q;

        /* Another order of nodes, as with other threads. */
        assert_true(ask(a, 3, EMU_TRAFFIC_REQUEST, 0, &p));
        assert_true(ask(b, 4, EMU_TRAFFIC_REQUEST, 0, &q));
        assert_true(ask(b, 3, EMU_TRAFFIC_REQUEST, 0, &q));
        assert_int_equal(p.dst_nid, q.dst_nid);
        assert_int_equal(p.created_ps, q.created_ps);
        assert_true(ask(c, 3, EMU_TRAFFIC_REQUEST, 0, &q));
        n_same += p.dst_nid == q.dst_nid;
    }
    assert_true(n_same < 50);
    emu_generator_destroy(a);
    emu_generator_destroy(b);
    emu_generator_destroy(c);
    emu_machine_destroy(m);
}

static void test_gaps_have_the_mean_that_was_asked_for(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *random = make(m, (struct emu_generator_options){ .gap_ps = 5000 });
    struct emu_generator *regular = make(m, (struct emu_generator_options){ .gap_ps = 5000, .is_regular = true });
    struct emu_packet p;
    uint64_t before = 0;

    (void)state;
    for (int i = 0; i < 20000; i++)
        assert_true(ask(random, 0, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_in_range(p.created_ps, 20000 * 4800ull, 20000 * 5200ull);
    assert_true(ask(regular, 0, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_in_range(p.created_ps, 0, 5000);
    for (int i = 0; i < 10; i++) {
        before = p.created_ps;
        assert_true(ask(regular, 0, EMU_TRAFFIC_REQUEST, 0, &p));
        assert_int_equal(p.created_ps, before + 5000);
    }
    emu_generator_destroy(random);
    emu_generator_destroy(regular);
    emu_machine_destroy(m);
}

/* Sizes come as often as their weights say: 3 of 4 are short. */
static void test_sizes_come_by_their_weights(void **state)
{
    static const struct emu_size list[] = { { 2, 3 }, { 14, 1 } };
    const struct emu_sizes sizes = { list, 2 };
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *gen = make(m, (struct emu_generator_options){ .sizes = sizes });
    uint32_t n_short = 0;

    (void)state;
    for (int i = 0; i < 10000; i++) {
        struct emu_packet p;

        assert_true(ask(gen, 5, EMU_TRAFFIC_REQUEST, 0, &p));
        assert_true(p.units == 2 || p.units == 14);
        n_short += p.units == 2;
    }
    assert_in_range(n_short, 7280, 7720); /* 7500 expected, five times its deviation */
    assert_float_equal(emu_mean_units(&sizes), 5, 1e-12);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

/* Bursts of ten packets for a tenth of the time: the mean gap stays, and nine of ten gaps are short. */
static void test_bursts_keep_the_mean_gap(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *gen =
        make(m, (struct emu_generator_options){ .gap_ps = 1000000, .burst = { .packets = 10, .on = 0.1 } });
    uint64_t last = 0;
    uint32_t n_short = 0;

    (void)state;
    for (int i = 0; i < 50000; i++) {
        struct emu_packet p;

        assert_true(ask(gen, 5, EMU_TRAFFIC_REQUEST, 0, &p));
        n_short += p.created_ps - last < 700000; /* e^-7 of those in a burst are longer */
        last = p.created_ps;
    }
    assert_in_range((uint64_t)((double)last / 50000), 930000, 1070000);
    assert_in_range(n_short, 45000, 46200); /* 0.9, and 0.08 of the pauses, which last 9 us, are short, too */
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static void test_nodes_have_rates_of_their_own(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    double rates[16];
    struct emu_generator *gen;

    (void)state;
    for (uint32_t nid = 0; nid < 16; nid++)
        rates[nid] = nid == 5 ? 4 : 1;
    gen = make(m, (struct emu_generator_options){ .gap_ps = 1000000, .is_regular = true, .rates = rates });
    for (uint32_t nid = 5; nid < 7; nid++) {
        struct emu_packet first, second;

        assert_true(ask(gen, nid, EMU_TRAFFIC_REQUEST, 0, &first));
        assert_true(ask(gen, nid, EMU_TRAFFIC_REQUEST, 0, &second));
        assert_int_equal(second.created_ps - first.created_ps, nid == 5 ? 250000 : 1000000);
    }
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static void test_sources_end_by_count_and_time(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *counted = make(m, (struct emu_generator_options){ .packets_per_node = 3 });
    struct emu_generator *timed = make(m, (struct emu_generator_options){ .stop_ps = 1000 });
    bool senders[16] = { [2] = true };
    struct emu_generator *chosen = make(m, (struct emu_generator_options){ .senders = senders });
    struct emu_packet p;

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_true(ask(counted, 0, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_false(ask(counted, 0, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_true(ask(counted, 1, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_true(ask(timed, 0, EMU_TRAFFIC_REQUEST, 999, &p));
    assert_false(ask(timed, 0, EMU_TRAFFIC_REQUEST, 1000, &p));
    assert_false(ask(chosen, 1, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_true(ask(chosen, 2, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_false(ask(chosen, 2, EMU_TRAFFIC_RESPONSE, 0, &p));
    emu_generator_destroy(counted);
    emu_generator_destroy(timed);
    emu_generator_destroy(chosen);
    emu_machine_destroy(m);
}

static void test_packets_are_answered_in_order(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *gen =
        make(m, (struct emu_generator_options){ .units = 14, .response_units = 1, .mode = EMU_MODE_IN_ORDER });
    struct emu_histogram round_trips;
    struct emu_packet requests[40];
    struct emu_packet answer;

    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        assert_true(ask(gen, i % 4, EMU_TRAFFIC_REQUEST, 100 * i, &requests[i]));
        requests[i].dst_nid = 9;
        requests[i].entered_ps = requests[i].created_ps;
        deliver(gen, &requests[i], 10000);
    }
    assert_int_equal(n_wakes, 1); /* the others found the queue of answers not empty */
    assert_int_equal(woken_nid, 9);
    assert_int_equal(woken_class, EMU_TRAFFIC_RESPONSE);
    for (uint32_t i = 0; i < 40; i++) {
        assert_true(ask(gen, 9, EMU_TRAFFIC_RESPONSE, 20000, &answer));
        assert_int_equal(answer.src_nid, 9);
        assert_int_equal(answer.dst_nid, i % 4);
        assert_int_equal(answer.units, 1);
        assert_int_equal(answer.mode, EMU_MODE_IN_ORDER);
        assert_int_equal(answer.traffic_class, EMU_TRAFFIC_RESPONSE);
        deliver(gen, &answer, 30000);
    }
    assert_false(ask(gen, 9, EMU_TRAFFIC_RESPONSE, 20000, &answer));
    emu_generator_latency(gen, EMU_LATENCY_ROUND_TRIP, &round_trips);
    assert_int_equal(round_trips.count, 40);
    assert_int_equal(round_trips.sum_ps, 40 * 30000 - 100 * (40 * 39 / 2));
    assert_int_equal(emu_generator_status(gen), 0);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static void test_a_full_window_waits_for_a_response(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *gen = make(m, (struct emu_generator_options){ .response_units = 1, .window = 2 });
    const struct emu_traffic *t = emu_generator_traffic(gen);
    struct emu_packet p;
    struct emu_packet answer;

    (void)state;
    assert_true(ask(gen, 0, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_true(ask(gen, 0, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_false(ask(gen, 0, EMU_TRAFFIC_REQUEST, 0, &answer));
    p.entered_ps = 0;
    deliver(gen, &p, 10);
    assert_true(ask(gen, p.dst_nid, EMU_TRAFFIC_RESPONSE, 10, &answer));
    deliver(gen, &answer, 20);
    assert_int_equal(woken_nid, 0);
    assert_int_equal(woken_class, EMU_TRAFFIC_REQUEST);
    assert_true(ask(gen, 0, EMU_TRAFFIC_REQUEST, 20, &p));
    assert_false(ask(gen, 0, EMU_TRAFFIC_REQUEST, 20, &answer));
    /* A lost packet makes room as well. */
    t->lost(t->ctx, NULL, 0, &p, 30);
    assert_true(ask(gen, 0, EMU_TRAFFIC_REQUEST, 30, &p));
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

static void test_messages_are_cut_into_packets(void **state)
{
    static struct emu_message messages[] = {
        { .start_ps = 500, .src_nid = 2, .dst_nid = 7, .bytes = 150 },
        { .start_ps = 100, .src_nid = 2, .dst_nid = 8, .bytes = 0 },
        { .start_ps = 100, .src_nid = 3, .dst_nid = 8, .bytes = 64 },
    };
    static const struct {
        uint32_t dst;
        uint16_t units;
        uint64_t created;
    } expected[] = { { 8, 3, 100 }, { 7, 14, 500 }, { 7, 14, 500 }, { 7, 7, 500 } };
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *gen =
        make(m, (struct emu_generator_options){ .pattern = EMU_PATTERN_MESSAGES, .messages = { messages, 3 } });
    struct emu_node_figures figures;
    struct emu_packet p;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        assert_true(ask(gen, 2, EMU_TRAFFIC_REQUEST, 0, &p));
        assert_int_equal(p.dst_nid, expected[i].dst);
        assert_int_equal(p.units, expected[i].units);
        assert_int_equal(p.created_ps, expected[i].created);
        assert_int_equal(emu_generator_message_done_ps(gen, 0), 0);
        p.entered_ps = p.created_ps;
        p.hops = 5;
        deliver(gen, &p, 1000 + i);
    }
    assert_false(ask(gen, 2, EMU_TRAFFIC_REQUEST, 0, &p));
    assert_int_equal(emu_generator_message_done_ps(gen, 0), 1003);
    assert_int_equal(emu_generator_message_done_ps(gen, 1), 1000);
    assert_int_equal(emu_generator_message_done_ps(gen, 2), 0);
    emu_generator_node(gen, 7, &figures);
    assert_int_equal(figures.received, 3);
    assert_int_equal(figures.received_units, 35);
    assert_int_equal(figures.received_hops, 15);
    emu_generator_node(gen, 2, &figures);
    assert_int_equal(figures.sent, 4);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

/* ---- latency ---- */

static void test_buckets_hold_their_values(void **state)
{
    struct emu_random random = seeded(20261121);

    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t value = emu_random_next(&random) >> emu_random_below(&random, 64);
        uint32_t bucket = emu_histogram_bucket(value);

        assert_in_range(bucket, 0, EMU_HISTOGRAM_BUCKETS - 1);
        assert_true(emu_histogram_low_ps(bucket) <= value);
        assert_true(bucket == EMU_HISTOGRAM_BUCKETS - 1 || emu_histogram_low_ps(bucket + 1) > value);
    }
    for (uint32_t b = 0; b < EMU_HISTOGRAM_BUCKETS - 1; b++)
        assert_true(emu_histogram_low_ps(b) < emu_histogram_low_ps(b + 1));
}

static void test_quantiles_of_known_latencies(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_generator *gen = make(m, (struct emu_generator_options){ 0 });
    struct emu_histogram h;
    struct emu_packet p = { .dst_nid = 3 };

    (void)state;
    for (uint64_t i = 1; i <= 1000; i++)
        deliver(gen, &p, i * 1000);
    emu_generator_latency(gen, EMU_LATENCY_CREATED, &h);
    assert_int_equal(h.count, 1000);
    assert_true(fabs(emu_histogram_mean_ps(&h) - 500500) < 1e-6);
    assert_true(fabs(emu_histogram_quantile_ps(&h, 0.5) - 500000) < 0.03 * 500000);
    assert_true(fabs(emu_histogram_quantile_ps(&h, 0.99) - 990000) < 0.03 * 990000);
    emu_generator_reset(gen);
    emu_generator_latency(gen, EMU_LATENCY_CREATED, &h);
    assert_int_equal(h.count, 0);
    assert_true(emu_histogram_mean_ps(&h) == 0 && emu_histogram_quantile_ps(&h, 0.5) == 0);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
}

/* ---- steady state ---- */

static struct emu_steady_result run_script(struct emu_machine *m, const uint64_t *windows, uint32_t n,
                                           struct emu_steady_options options)
{
    struct emu_generator *gen = make(m, (struct emu_generator_options){ 0 });
    struct emu_steady_result result;

    script = windows;
    n_script = n;
    at_window = 0;
    now_ps = 0;
    totals = (struct emu_sim_totals){ 0 };
    emu_generator_steady(gen, NULL, &options, &result);
    emu_generator_destroy(gen);
    return result;
}

static void test_warm_up_ends_when_two_windows_agree(void **state)
{
    static const uint64_t windows[] = { 100, 500, 800, 900, 1000, 1019, 1010, 1000, 990, 1000, 1000, 9999 };
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_steady_result r = run_script(m, windows, 12, (struct emu_steady_options){ .window_ps = 1000000 });

    (void)state;
    assert_true(r.is_steady);
    assert_int_equal(r.warmup_windows, 6); /* 1000 and 1019 */
    assert_int_equal(r.windows, 5);
    assert_int_equal(r.measured_ps, 5000000);
    assert_int_equal(r.totals.delivered_units, 5000);
    assert_true(fabs(r.units_per_ns - 1.0) < 1e-9);
    assert_true(fabs(r.spread - 0.02) < 1e-9);
    emu_machine_destroy(m);
}

static void test_what_never_settles_is_measured_and_told(void **state)
{
    static const uint64_t windows[] = { 100, 200, 100, 200, 100, 200, 100, 200, 100, 200 };
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_steady_result r =
        run_script(m, windows, 10, (struct emu_steady_options){ .window_ps = 1000, .warmup_max = 4, .windows = 2 });

    (void)state;
    assert_false(r.is_steady);
    assert_int_equal(r.warmup_windows, 4);
    assert_int_equal(r.windows, 2);
    emu_machine_destroy(m);
}

static void test_traffic_that_ends_is_told(void **state)
{
    static const uint64_t windows[] = { 100, 100, 100, 100 };
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    struct emu_steady_result r = run_script(m, windows, 4, (struct emu_steady_options){ .window_ps = 1000 });

    (void)state;
    assert_true(r.is_empty);
    assert_false(r.is_steady);
    assert_int_equal(r.windows, 3); /* two, and the one in which nothing came */
    emu_machine_destroy(m);
}

static void test_a_window_is_ten_thousand_cycles_of_the_slowest_link(void **state)
{
    static const uint64_t windows[] = { 1, 1, 1 };
    struct emu_machine *m = load("aries:groups=2,chassis=1,blades=4");
    struct emu_steady_result r = run_script(m, windows, 3, (struct emu_steady_options){ .windows = 1 });

    (void)state;
    assert_int_equal(emu_link_cycle_ps(m), 1280); /* 48 bits at 3 x 12.5 Gb/s */
    assert_int_equal(r.measured_ps, 12800000);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_uniform_reaches_every_other_node_alike),
        cmocka_unit_test(test_hot_region_gets_its_share),
        cmocka_unit_test(test_group_shift_goes_to_the_next_group_only),
        cmocka_unit_test(test_permutations_send_one_to_each),
        cmocka_unit_test(test_known_destinations_of_permutations),
        cmocka_unit_test(test_neighbours_differ_by_one_step),
        cmocka_unit_test(test_all_to_all_sends_each_round_once_to_each),
        cmocka_unit_test(test_a_pattern_of_ones_own),
        cmocka_unit_test(test_names_of_patterns),
        cmocka_unit_test(test_bad_options_are_refused),
        cmocka_unit_test(test_the_same_seed_gives_the_same_packets),
        cmocka_unit_test(test_gaps_have_the_mean_that_was_asked_for),
        cmocka_unit_test(test_sizes_come_by_their_weights),
        cmocka_unit_test(test_bursts_keep_the_mean_gap),
        cmocka_unit_test(test_nodes_have_rates_of_their_own),
        cmocka_unit_test(test_sources_end_by_count_and_time),
        cmocka_unit_test(test_packets_are_answered_in_order),
        cmocka_unit_test(test_a_full_window_waits_for_a_response),
        cmocka_unit_test(test_messages_are_cut_into_packets),
        cmocka_unit_test(test_buckets_hold_their_values),
        cmocka_unit_test(test_quantiles_of_known_latencies),
        cmocka_unit_test(test_warm_up_ends_when_two_windows_agree),
        cmocka_unit_test(test_what_never_settles_is_measured_and_told),
        cmocka_unit_test(test_traffic_that_ends_is_told),
        cmocka_unit_test(test_a_window_is_ten_thousand_cycles_of_the_slowest_link),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
