/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tests of the NIC model share: a machine, parameters that make arithmetic easy, programs. The machine is a small
 * Aries one; nodes 0 to 3 share a router, so that between them no link but the NICs' own is in the way. Each program
 * includes this once.
 */
#ifndef TESTS_UNIT_MODEL_NIC_FIXTURE_H
#define TESTS_UNIT_MODEL_NIC_FIXTURE_H

#include "emunic/model/nic_model.h"
#include "emunic/model/nic_scenario.h"

#include <math.h>

#include "tests/unit/fabric/fixture.h"

#define NS 1000u

static struct emu_machine *machine; /* wide links at the NICs: 42 GB/s */

static inline int setup_group(void **state)
{
    (void)state;
    machine = load("aries:groups=1,chassis=2,blades=4,links.processor.lanes=8");
    return 0;
}

static inline int teardown_group(void **state)
{
    (void)state;
    emu_machine_destroy(machine);
    return 0;
}

/* The file's values follow the calibration; what the arithmetic of the tests needs is set here. */
static inline struct emu_nic_setup setup_of(const struct emu_machine *m)
{
    struct emu_nic_setup setup = {
        .machine = m, .host = *emu_machine_node_params(m), .mode = EMU_MODE_MINIMAL, .seed = 1
    };
    struct emu_node_params *host = &setup.host;

    host->issue_ps = 250 * NS;
    host->write_ps = 250 * NS;
    host->out_ps = 100 * NS;
    host->in_ps = 100 * NS;
    host->put_gap_ps = 400 * NS;
    host->store_kbs = 0;
    host->launch_gap_ps = 133333;
    host->launch_node_gap_ps = 8333;
    host->launch_mdh_percent = 150;
    host->interface_kbs = 16000000;
    host->overhead_bytes = 24;
    host->duplex_share = 55000;
    host->packet_gap_ps = 0;
    host->tile_kbs = 0;
    host->bte_kbs = 0;
    host->amo_miss_ps = 8 * NS;
    host->pte_miss_ps = 12 * NS;
    host->pte_entries = 1024;
    host->send_ps = 250 * NS;
    host->recv_ps = 250 * NS;
    host->send_end_ps = 0;
    host->eager_bytes_max = 8192;
    host->copy_kbs = 0;
    host->registration = EMU_REGISTRATION_HIT;
    host->register_hit_ps = 100 * NS;
    host->register_ps = 1000 * NS;
    host->register_page_ps = 50 * NS;
    host->register_page_bytes = 4096;
    host->local_ps = 300 * NS;
    host->local_kbs = 5000000;
    host->local_is_shared = 0;
    return setup;
}

static inline uint64_t latency(const struct emu_nic_setup *setup, enum emu_nic_kind kind, uint32_t bytes)
{
    const struct emu_nic_pingpong p = { .kind = kind, .a = { 0, 0 }, .b = { 4, 0 }, .bytes = bytes };
    struct emu_nic_pingpong_result r;

    assert_int_equal(emu_nic_pingpong(setup, &p, &r), 0);
    return r.latency_ps;
}

static inline struct emu_nic_stream_result stream(const struct emu_nic_setup *setup, const struct emu_nic_stream *s)
{
    struct emu_nic_stream_result r;

    assert_int_equal(emu_nic_stream(setup, s, NULL, &r), 0);
    return r;
}

/* Times of the engine are cut to its clock in places: a few of them. */
static inline void assert_time(uint64_t got, uint64_t expected)
{
    uint64_t slack = 3 * emu_machine_router(machine)->clock_ps;

    assert_in_range(got, expected - slack, expected + slack);
}

static inline void assert_close(double got, double expected, double fraction)
{
    if (fabs(got - expected) > fraction * expected)
        fail_msg("%g is not within %g %% of %g", got, fraction * 100, expected);
}

/* ---- programs ---- */

/* A program that counts what it is told. */
struct tally {
    uint32_t n_completed;
    uint32_t n_arrived;
    struct emu_nic_event last;
    uint64_t completed_ps, arrived_ps;
};

static inline void tally_completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct tally *t = ctx;

    (void)nm;
    t->n_completed++;
    t->completed_ps = e->at_ps;
    t->last = *e;
}

static inline void tally_arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct tally *t = ctx;

    (void)nm;
    t->n_arrived++;
    t->arrived_ps = e->at_ps;
    t->last = *e;
}

static inline struct emu_nic_counters counters_of(struct emu_nic_model *nm, uint32_t nid)
{
    struct emu_nic_counters c;

    emu_nic_counters(nm, nid, &c);
    return c;
}

static inline struct emu_nic_model *model_of(const struct emu_nic_setup *setup, struct tally *t)
{
    const struct emu_nic_program program = { t, tally_completed, tally_arrived };
    struct emu_nic_model *nm;

    assert_int_equal(emu_nic_model_create(setup, &program, &nm), 0);
    return nm;
}

#endif
