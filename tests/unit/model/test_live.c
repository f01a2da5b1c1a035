/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC model for live programs: an arrival names its operation, whatever its kind, and comes before the end.
 */
#include "emunic/model/nic_model.h"

#include <errno.h>

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
        emu_sim_stop(emu_nic_model_sim(nm));
}

static void completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct seen *seen = ctx;

    assert_in_range(event->user, 1, OPS - 1);
    seen->n_completed[event->user]++;
    seen->completed_ps[event->user] = event->at_ps;
    seen->n_events++;
    if (seen->stops)
        emu_sim_stop(emu_nic_model_sim(nm));
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
    const struct emu_nic_op op = { .kind = kind, .to = { .nid = to }, .bytes = bytes, .is_told = true, .user = user };

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
    assert_int_equal(emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX), EMU_SIM_EMPTY);
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
    emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX);
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
    assert_int_equal(emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX), EMU_SIM_EMPTY);
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
    emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX);
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
                                       .has_mode = true,
                                       .mode = EMU_MODE_IN_ORDER,
                                       .user = i + 1 };

        assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 0 }, &op, 1000), 0);
    }
    assert_int_equal(emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX), EMU_SIM_EMPTY);
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
    assert_int_equal(emu_sim_run(sim, UINT64_MAX / 4), EMU_SIM_REACHED);
    assert_int_equal(seen.n_events, 1);
    assert_true(emu_sim_now(sim) < seen.arrived_ps[1] + 2 * emu_machine_router(m)->clock_ps);
    assert_int_equal(emu_sim_run(sim, UINT64_MAX / 4), EMU_SIM_EMPTY);
    assert_int_equal(seen.n_events, 2);
    emu_nic_model_destroy(nm);
    emu_machine_destroy(m);
}

static void test_live_model_has_one_thread(void **state)
{
    struct emu_machine *m = load("aries:groups=1,chassis=2,blades=4");
    const struct emu_nic_program program = { .completed = completed, .arrived = arrived };
    const struct emu_nic_setup setup = {
        .machine = m, .host = *emu_machine_node_params(m), .n_threads = 2, .is_live = true
    };
    struct emu_nic_model *nm;

    (void)state;
    assert_int_equal(emu_nic_model_create(&setup, &program, &nm), -EINVAL);
    emu_machine_destroy(m);
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
        cmocka_unit_test(test_live_model_has_one_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
