/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End points of the packet simulator on real machines, against arithmetic: links of different speed.
 */
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "emunic/fabric/topology.h"
#include "tests/unit/fabric/fixture.h"

#define NODES_MAX 1024
#define US        UINT64_C(1000000)

/* Some nodes send to one destination each, as fast as they can. */
struct flows {
    struct emu_machine *m;
    struct emu_generator *gen;
    struct emu_sim *sim;
    uint32_t to[NODES_MAX]; /* EMU_NOBODY: sends nothing */
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
        .mode = EMU_MODE_MINIMAL,
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

/* Four nodes of 25.6 GB/s each over one edge of 102.4: 33 flits of 8 bytes carry 256, so 99.3 GB/s. */
static double edge_gbytes_per_s(const char *spec, bool counts_occupancy)
{
    struct flows *f = make(spec);
    double sum = 0;

    for (uint32_t i = 0; i < 4; i++)
        f->to[i] = 8 + i; /* of the next vertex */
    start(f, &(struct emu_sim_options){ .seed = 1, .count_occupancy = counts_occupancy });
    measure(f, 20 * US, 50 * US);
    for (uint32_t i = 0; i < 4; i++)
        sum += received_gbytes_per_s(f, f->to[i], 50 * US);
    destroy(f);
    return sum;
}

static void test_slow_links_fill_a_fast_one(void **state)
{
    const double bound = 4 * 25.6 * 256 / 264;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) { /* X1 is plain, and counts of occupancy take it to the other way to decide */
        double store = edge_gbytes_per_s("x1", i == 1);
        double hold = edge_gbytes_per_s("x1:slow_input=hold", i == 1);

        print_message("# X1, four nodes over one edge: store %.1f, hold %.1f of %.1f GB/s\n", store, hold, bound);
        assert_true(store > 0.98 * bound && store < 1.001 * bound);
        assert_true(hold < 0.8 * bound);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_links_fill_a_fast_one),
    };

    return cmocka_run_group_tests_name("experiments/ends", tests, NULL, NULL);
}
