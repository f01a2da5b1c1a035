/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC model for live programs: an arrival names its operation, whatever its kind, and comes before the end.
 */
#include "emunic/model/nic_model.h"

#include <errno.h>

#include "emunic/fabric/random.h"
#include "tests/unit/fabric/fixture.h"

#define OPS 64u

struct seen {
    unsigned n_arrived[OPS];
    unsigned n_completed[OPS];
    unsigned n_begun[OPS];
    uint64_t begun_ps[OPS];
    uint64_t arrived_ps[OPS];
    uint64_t completed_ps[OPS];
    unsigned n_events;
    bool stops;
};

static void begun(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct seen *seen = ctx;

    (void)nm;
    assert_in_range(event->user, 1, OPS - 1);
    assert_int_equal(seen->n_arrived[event->user], 0);
    seen->n_begun[event->user]++;
    seen->begun_ps[event->user] = event->at_ps;
}

static void arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct seen *seen = ctx;

    assert_in_range(event->user, 1, OPS - 1);
    seen->n_arrived[event->user]++;
    seen->arrived_ps[event->user] = event->at_ps;
    seen->n_events++;
    if (seen->stops)
        emu_nic_stop(nm);
}

static void completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct seen *seen = ctx;

    assert_in_range(event->user, 1, OPS - 1);
    seen->n_completed[event->user]++;
    seen->completed_ps[event->user] = event->at_ps;
    seen->n_events++;
    if (seen->stops)
        emu_nic_stop(nm);
}

static struct emu_nic_model *make(const struct emu_machine *m, struct seen *seen)
{
    const struct emu_nic_program program = { .ctx = seen, .completed = completed, .begun = begun, .arrived = arrived };
    const struct emu_nic_setup setup = {
        .machine = m, .host = *emu_machine_node_params(m), .seed = 1, .is_live = true
    };
    struct emu_nic_model *nm;

    assert_int_equal(emu_nic_model_create(&setup, &program, &nm), 0);
    return nm;
}

static void post(struct emu_nic_model *nm, enum emu_nic_kind kind, uint32_t to, uint32_t bytes, uint64_t user)
{
    const struct emu_nic_op op = {
        .kind = kind, .to = { .nid = to }, .bytes = bytes, .is_told = true, .is_begun = true, .user = user
    };

    assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 0 }, &op, 1000), 0);
}

static void check_each_once(const char *spec)
{
    static const struct {
        enum emu_nic_kind kind;
        uint32_t bytes;
    } kinds[] = {
        { EMU_NIC_PUT, 0 },       { EMU_NIC_PUT, 8 },         { EMU_NIC_PUT, 1000 },
        { EMU_NIC_GET, 8 },       { EMU_NIC_GET, 1000 },      { EMU_NIC_AMO, 8 },
        { EMU_NIC_AMO_FETCH, 8 }, { EMU_NIC_BTE_PUT, 70000 }, { EMU_NIC_BTE_GET, 8192 },
    };
    struct emu_machine *m = load(spec);
    struct seen seen = { 0 };
    struct emu_nic_model *nm = make(m, &seen);
    uint64_t user = 1;

    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        post(nm, kinds[i].kind, 5, kinds[i].bytes, user++);
        post(nm, kinds[i].kind, 0, kinds[i].bytes, user++); /* within the node */
    }
    assert_int_equal(emu_nic_run(nm, UINT64_MAX), EMU_SIM_EMPTY);
    for (uint64_t i = 1; i < user; i++) {
        assert_int_equal(seen.n_arrived[i], 1);
        assert_int_equal(seen.n_completed[i], 1);
        assert_true(seen.arrived_ps[i] > 1000);
    }
    emu_nic_model_destroy(nm);
    emu_machine_destroy(m);
}

static void test_each_operation_arrives_and_ends_once(void **state)
{
    (void)state;
    check_each_once("aries:groups=1,chassis=2,blades=4");
    check_each_once("gemini:x=2,y=2,z=2");
}

static void test_answered_operation_ends_behind_its_arrival(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=2,blades=4");
    struct seen seen = { 0 };
    struct emu_nic_model *nm = make(m, &seen);

    (void)state;
    post(nm, EMU_NIC_GET, 5, 1000, 1);
    post(nm, EMU_NIC_AMO_FETCH, 5, 8, 2);
    emu_nic_run(nm, UINT64_MAX);
    assert_true(seen.completed_ps[1] > seen.arrived_ps[1]);
    assert_true(seen.completed_ps[2] > seen.arrived_ps[2]);
    emu_nic_model_destroy(nm);
    emu_machine_destroy(m);
}

/* One operation alone, which is when it is fastest. */
static void check_lookahead(const struct emu_machine *m, enum emu_nic_kind kind, uint32_t to, uint32_t bytes)
{
    struct seen seen = { 0 };
    struct emu_nic_model *nm = make(m, &seen);
    struct emu_nic_lookahead ahead = emu_nic_lookahead(nm);
    bool is_local = to == 0;

    post(nm, kind, to, bytes, 1);
    assert_int_equal(emu_nic_run(nm, UINT64_MAX), EMU_SIM_EMPTY);
    assert_int_equal(seen.n_completed[1], 1);
    assert_true(seen.arrived_ps[1] >= 1000 + (is_local ? ahead.local_ps : ahead.remote_ps));
    assert_true(seen.completed_ps[1] >= 1000 + (is_local ? ahead.local_ps : ahead.own_ps));
    emu_nic_model_destroy(nm);
}

static void test_nothing_happens_before_the_lookahead(void **state)
{
    static const char *const specs[] = {
        "aries:groups=1,chassis=2,blades=4", "gemini:x=2,y=2,z=2", "seastar:x=2,y=2,z=2", "x1", "xd1", "xt3",
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        for (int kind = EMU_NIC_PUT; kind <= EMU_NIC_BTE_GET; kind++) {
            for (uint32_t to = 0; to < 2; to++) { /* one on the same node, one that is near */
                check_lookahead(m, (enum emu_nic_kind)kind, to, 8);
                if (kind == EMU_NIC_PUT || kind == EMU_NIC_GET)
                    check_lookahead(m, (enum emu_nic_kind)kind, to, 0);
            }
        }
        emu_machine_destroy(m);
    }
}

static void check_puts_begin(const char *spec)
{
    static const uint32_t bytes[] = { 0, 8, 1000, 70000 };
    struct emu_machine *m = load(spec);
    struct seen seen = { 0 };
    struct emu_nic_model *nm = make(m, &seen);

    for (unsigned i = 0; i < 4; i++) {
        post(nm, EMU_NIC_PUT, 5, bytes[i], 2 * i + 1);
        post(nm, EMU_NIC_PUT, 0, bytes[i], 2 * i + 2);
    }
    post(nm, EMU_NIC_GET, 5, 70000, 9);
    emu_nic_run(nm, UINT64_MAX);
    for (unsigned i = 1; i <= 9; i++)
        assert_int_equal(seen.n_begun[i], (i > 4 || i % 2 == 1) && i < 9); /* within the node: if it takes time */
    emu_nic_model_destroy(nm);
    emu_machine_destroy(m);
}

static void test_put_begins_once_and_before_it_arrives(void **state)
{
    (void)state;
    check_puts_begin("aries:groups=1,chassis=2,blades=4");
    check_puts_begin("seastar:x=2,y=2,z=2");
}

/* Short ones and empty ones behind long ones: a later one may arrive first, but does not begin first. */
static void check_order(const char *spec)
{
    static const uint32_t bytes[] = { 70000, 8, 0, 1000, 20000, 0, 12, 300 };
    struct emu_machine *m = load(spec);
    struct seen seen = { 0 };
    struct emu_nic_model *nm = make(m, &seen);
    uint64_t last_ps = 0;

    for (uint64_t i = 0; i < 40; i++) {
        const struct emu_nic_op op = { .kind = EMU_NIC_PUT,
                                       .to = { .nid = 5 },
                                       .bytes = bytes[i % 8],
                                       .is_told = true,
                                       .is_begun = true,
                                       .has_mode = true,
                                       .mode = EMU_MODE_IN_ORDER,
                                       .user = i + 1 };

        assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 0 }, &op, 1000), 0);
    }
    assert_int_equal(emu_nic_run(nm, UINT64_MAX), EMU_SIM_EMPTY);
    for (unsigned i = 1; i <= 40; i++) {
        assert_int_equal(seen.n_begun[i], 1);
        assert_true(seen.begun_ps[i] >= last_ps);
        assert_true(seen.begun_ps[i] <= seen.arrived_ps[i]);
        last_ps = seen.begun_ps[i];
    }
    emu_nic_model_destroy(nm);
    emu_machine_destroy(m);
}

static void test_puts_begin_in_their_order(void **state)
{
    (void)state;
    check_order("aries:groups=1,chassis=2,blades=4");
    check_order("seastar:x=2,y=2,z=2");
    check_order("gemini:x=2,y=2,z=2");
}

static void test_run_ends_at_the_event_that_stops_it(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=2,blades=4");
    struct seen seen = { .stops = true };
    struct emu_nic_model *nm = make(m, &seen);
    struct emu_sim *sim = emu_nic_model_sim(nm);

    (void)state;
    post(nm, EMU_NIC_PUT, 5, 8, 1);
    assert_int_equal(emu_nic_run(nm, UINT64_MAX / 4), EMU_SIM_REACHED);
    assert_int_equal(seen.n_events, 1);
    assert_true(emu_sim_now(sim) < seen.arrived_ps[1] + 2 * emu_machine_router(m)->clock_ps);
    assert_int_equal(emu_nic_run(nm, UINT64_MAX / 4), EMU_SIM_EMPTY);
    assert_int_equal(seen.n_events, 2);
    emu_nic_model_destroy(nm);
    emu_machine_destroy(m);
}

/* ---- threads ---- */

#define MIX_NODES 32u
#define MIX_PROCS 2u
#define MIX_FIRST 8u /* posted before the first run */

/* What a program of random operations sees, and has been given. */
struct mix {
    const struct emu_machine *m;
    uint64_t seed;
    uint32_t n_ops;
    uint32_t n_posted;
    uint64_t events_hash;
    uint64_t stops_hash; /* of the times at which runs end, and when something is to come then */
    uint32_t n_events;
    struct emu_sim_totals totals;
    uint64_t links_hash;
};

static void post_random(struct emu_nic_model *nm, struct mix *mix, struct emu_nic_proc from, uint64_t at_ps)
{
    static const struct {
        enum emu_nic_kind kind;
        uint32_t bytes_max;
    } kinds[] = { { EMU_NIC_PUT, 2000 },    { EMU_NIC_GET, 2000 },     { EMU_NIC_AMO, 0 },
                  { EMU_NIC_AMO_FETCH, 0 }, { EMU_NIC_BTE_PUT, 9000 }, { EMU_NIC_BTE_GET, 9000 } };
    uint64_t draw = emu_random_mix(mix->seed ^ ++mix->n_posted);
    unsigned kind = draw % 6;
    const struct emu_nic_op op = {
        .kind = kinds[kind].kind,
        .to = { .nid = draw >> 8 & (MIX_NODES - 1), .proc = draw >> 16 & (MIX_PROCS - 1) },
        .bytes = kinds[kind].bytes_max == 0 ? 8 : (uint32_t)(draw >> 24 & 0xffff) % kinds[kind].bytes_max,
        .is_told = true,
        .is_begun = (draw >> 40 & 1) != 0,
        .has_mode = true,
        .mode = (draw >> 41 & 1) != 0 ? EMU_MODE_ADAPTIVE_0 : EMU_MODE_MIN_HASH,
        .user = mix->n_posted,
    };

    assert_int_equal(emu_nic_post(nm, from, &op, at_ps), 0);
}

static void see(struct emu_nic_model *nm, struct mix *mix, const struct emu_nic_event *event, uint64_t kind)
{
    mix->events_hash = emu_random_mix(mix->events_hash ^ event->at_ps ^ event->user << 40);
    mix->events_hash = emu_random_mix(mix->events_hash ^ kind << 32 ^ (uint64_t)event->at.nid << 8 ^ event->at.proc);
    mix->n_events++;
    emu_nic_stop(nm);
}

static void mix_begun(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    see(nm, ctx, event, 1);
}

static void mix_arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    see(nm, ctx, event, 2);
}

static void mix_completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct mix *mix = ctx;

    see(nm, mix, event, 3);
    if (mix->n_posted < mix->n_ops)
        post_random(nm, mix, event->at, event->at_ps);
}

static struct mix run_mix(const struct emu_machine *m, uint32_t n_ops, uint32_t n_threads, uint32_t shared_events)
{
    struct mix mix = { .m = m, .seed = 7, .n_ops = n_ops };
    const struct emu_nic_program program = {
        .ctx = &mix, .completed = mix_completed, .begun = mix_begun, .arrived = mix_arrived
    };
    const struct emu_nic_setup setup = { .machine = m,
                                         .host = *emu_machine_node_params(m),
                                         .seed = 1,
                                         .n_threads = n_threads,
                                         .is_live = true,
                                         .shared_events = shared_events };
    struct emu_nic_model *nm;
    struct emu_sim *sim;

    assert_int_equal(emu_nic_model_create(&setup, &program, &nm), 0);
    sim = emu_nic_model_sim(nm);
    while (mix.n_posted < MIX_FIRST)
        post_random(nm, &mix, (struct emu_nic_proc){ mix.n_posted % MIX_NODES, mix.n_posted & (MIX_PROCS - 1) }, 1000);
    while (emu_nic_run(nm, UINT64_MAX / 4) == EMU_SIM_REACHED)
        mix.stops_hash = emu_random_mix(mix.stops_hash ^ emu_sim_now(sim) ^ emu_sim_next_ps(sim) << 1);
    emu_sim_totals(sim, &mix.totals);
    for (uint32_t link = 0; link < emu_machine_n_links(m); link++) {
        struct emu_sim_link_stats stats;

        emu_sim_link_stats(sim, link, &stats);
        mix.links_hash = emu_random_mix(mix.links_hash ^ stats.packets ^ stats.units << 20);
        mix.links_hash = emu_random_mix(mix.links_hash ^ stats.busy_ps ^ stats.stall_ps << 1);
    }
    emu_nic_model_destroy(nm);
    return mix;
}

static void check_threads(const char *spec, unsigned n_ways)
{
    static const struct {
        uint32_t n_ops; /* few where threads meet, which takes long on a busy host */
        uint32_t n_threads;
        uint32_t shared_events; /* 0: all windows; of the most: none */
    } ways[] = { { 2000, 2, UINT32_MAX }, { 2000, 5, UINT32_MAX }, { 12, 2, 0 } };
    struct emu_machine *m = load(spec);

    for (unsigned i = 0; i < n_ways; i++) {
        struct mix first = run_mix(m, ways[i].n_ops, 1, 0);
        struct mix other = run_mix(m, ways[i].n_ops, ways[i].n_threads, ways[i].shared_events);

        assert_int_equal(first.n_posted, ways[i].n_ops);
        assert_in_range(first.n_events, 2 * ways[i].n_ops, 3 * ways[i].n_ops);

        assert_int_equal(other.n_events, first.n_events);
        assert_int_equal(other.events_hash, first.events_hash);
        assert_int_equal(other.stops_hash, first.stops_hash);
        assert_int_equal(other.totals.trace_hash, first.totals.trace_hash);
        assert_int_equal(other.links_hash, first.links_hash);
    }
    emu_machine_destroy(m);
}

static void test_threads_change_nothing_with_answers(void **state)
{
    (void)state;
    check_threads("aries:groups=2,chassis=1,blades=4", 3);
    check_threads("gemini:x=4,y=2,z=2", 3);
}

/* Operations end when they are sent, so windows are as short as they can be: too many for threads to meet in each. */
static void test_threads_change_nothing_without_answers(void **state)
{
    (void)state;
    check_threads("seastar:x=4,y=4,z=2", 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_operation_arrives_and_ends_once),
        cmocka_unit_test(test_answered_operation_ends_behind_its_arrival),
        cmocka_unit_test(test_nothing_happens_before_the_lookahead),
        cmocka_unit_test(test_put_begins_once_and_before_it_arrives),
        cmocka_unit_test(test_puts_begin_in_their_order),
        cmocka_unit_test(test_run_ends_at_the_event_that_stops_it),
        cmocka_unit_test(test_threads_change_nothing_with_answers),
        cmocka_unit_test(test_threads_change_nothing_without_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
