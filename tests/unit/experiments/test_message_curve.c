/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Curves of messages on each machine with an MPI or Portals: from 1 byte to 4 MiB the time never falls, bandwidth
 * never dips but at the change of protocol, where twice the bytes make up for it, and both ends are where the
 * machine's parts put them.
 */
#include "emunic/experiments/message_curve.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "tests/unit/fabric/fixture.h"

enum { MB = 1000000 };

struct curve {
    struct emu_message_point points[EMU_MESSAGE_SIZES_MAX];
    size_t n;
};

static bool is_power_of_two(uint32_t bytes)
{
    return (bytes & (bytes - 1)) == 0;
}

/* All special sizes, and each other power of two. */
static void measure(const struct emu_machine *m, struct curve *c)
{
    const struct emu_nic_setup setup = { .machine = m, .host = *emu_machine_node_params(m), .seed = 1 };
    uint32_t sizes[EMU_MESSAGE_SIZES_MAX];
    size_t n = emu_message_sizes(m, 1, EMU_MESSAGE_BYTES_MAX, sizes);
    struct emu_message_pair pair;

    c->n = 0;
    assert_int_equal(emu_message_pair_of(m, &pair), 0);
    for (size_t i = 0; i < n; i++) {
        if (is_power_of_two(sizes[i]) && __builtin_ctz(sizes[i]) % 2 != 0 && sizes[i] != 8 && sizes[i] != 8192)
            continue;
        assert_int_equal(emu_message_point(&setup, &pair, sizes[i], &c->points[c->n++]), 0);
    }
    assert_int_equal(c->points[0].bytes, 1);
    assert_int_equal(c->points[c->n - 1].bytes, EMU_MESSAGE_BYTES_MAX);
}

/* What is left of the rate both ways from one size to the next: XD1-4 has a step from 50 to 60 % of one way. */
static double both_left(uint32_t step_bytes, const struct emu_message_point *a, const struct emu_message_point *b)
{
    return a->bytes < step_bytes && b->bytes >= step_bytes ? 0.8 : 1;
}

static void judge_step(const char *spec, const struct emu_message_point *a, const struct emu_message_point *b,
                       bool swap_is_monotone, uint32_t step_bytes)
{
    bool is_switch = a->is_rendezvous != b->is_rendezvous;
    double dip = is_switch ? 0.7 : 0.97;

    if (b->latency_us < a->latency_us)
        fail_msg("%s: %u bytes take %g us, %u bytes %g", spec, a->bytes, a->latency_us, b->bytes, b->latency_us);
    if (swap_is_monotone && b->swap_us < a->swap_us)
        fail_msg("%s: swaps of %u bytes take %g us, of %u bytes %g", spec, a->bytes, a->swap_us, b->bytes, b->swap_us);
    if (b->pingpong_mb_per_s < dip * a->pingpong_mb_per_s || b->stream_mb_per_s < dip * a->stream_mb_per_s ||
        b->both_mb_per_s < both_left(step_bytes, a, b) * dip * a->both_mb_per_s)
        fail_msg("%s: a dip from %u to %u bytes", spec, a->bytes, b->bytes);
}

/* From one power of two to the next one, a change of protocol between them included. */
static void judge_powers(const char *spec, const struct curve *c, uint32_t step_bytes)
{
    const struct emu_message_point *a = &c->points[0];

    for (size_t i = 1; i < c->n; i++) {
        const struct emu_message_point *b = &c->points[i];

        if (!is_power_of_two(b->bytes))
            continue;
        if (b->pingpong_mb_per_s < a->pingpong_mb_per_s || b->stream_mb_per_s < a->stream_mb_per_s ||
            b->both_mb_per_s < both_left(step_bytes, a, b) * a->both_mb_per_s)
            fail_msg("%s: %u bytes are slower than %u", spec, b->bytes, a->bytes);
        a = b;
    }
}

/* Figures of one machine's host: what holds at the ends for all of them. */
static void judge_ends(const char *spec, const struct curve *c, double one_way, double both_ways)
{
    const struct emu_message_point *last = &c->points[c->n - 1];

    if (fabs(last->stream_mb_per_s / one_way - 1) > 0.03 || last->pingpong_mb_per_s > last->stream_mb_per_s)
        fail_msg("%s: streams end at %g, ping-pong at %g MB/s", spec, last->stream_mb_per_s, last->pingpong_mb_per_s);
    if (fabs(last->both_mb_per_s / both_ways - 1) > 0.03)
        fail_msg("%s: both ways end at %g MB/s", spec, last->both_mb_per_s);
}

static double value_of(const struct emu_message_point *p, const char *what)
{
    return strcmp(what, "latency_us") == 0        ? p->latency_us :
           strcmp(what, "pingpong_mb_per_s") == 0 ? p->pingpong_mb_per_s :
           strcmp(what, "stream_mb_per_s") == 0   ? p->stream_mb_per_s :
           strcmp(what, "swap_mb_per_s") == 0     ? p->swap_mb_per_s :
                                                    NAN;
}

/* None is fitted on this curve, so the bound is wide: a curve through them, not the tolerance of their rows. */
static void judge_published(const struct emu_machine *m, const struct curve *c)
{
    const struct emu_message_published *p;

    for (size_t i = 0; (p = emu_message_published_at(i)); i++) {
        double got = NAN;

        if (strcmp(p->machine, emu_machine_name(m)) != 0)
            continue;
        for (size_t k = 0; k < c->n; k++) {
            if (c->points[k].bytes == p->bytes)
                got = value_of(&c->points[k], p->what);
        }
        if (!(fabs(got / p->value - 1) <= 0.2))
            fail_msg("%s: %s of %u bytes is %g, published %g", p->machine, p->what, p->bytes, got, p->value);
    }
}

static void test_curves_rise_from_one_byte_to_four_mebibytes(void **state)
{
    /* Ends: NIC's peak and the interface both ways on Aries (XC-7, XC-8); packet_gap_ns; interface_mbs, duplex. */
    static const struct {
        const char *spec;
        double one_way, both_ways;
        bool swap_is_monotone; /* not the X1: its swaps of 512 to 2 048 bytes do not overlap (X1-4) */
    } machines[] = {
        { "aries:groups=1", 10240, 15010, true },
        { "gemini", 7107, 14214, true },
        { "seastar", 1108, 2216, true },
        { "x1", 10054, 18058, false },
        { "xd1", 1347, 2180, true },
        { "xt3", 1149, 2298, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        struct emu_machine *m = load(machines[i].spec);
        uint32_t step_bytes = emu_machine_node_params(m)->duplex_bytes_min;
        struct curve c;

        measure(m, &c);
        for (size_t k = 1; k < c.n; k++)
            judge_step(machines[i].spec, &c.points[k - 1], &c.points[k], machines[i].swap_is_monotone, step_bytes);
        judge_powers(machines[i].spec, &c, step_bytes);
        judge_ends(machines[i].spec, &c, machines[i].one_way, machines[i].both_ways);
        judge_published(m, &c);
        emu_machine_destroy(m);
    }
}

static void test_a_miss_of_the_cache_costs_rendezvous_only(void **state)
{
    struct emu_machine *m = load("aries:groups=1");
    struct emu_nic_setup setup = { .machine = m, .host = *emu_machine_node_params(m), .seed = 1 };
    struct emu_message_point hit[2], miss[2];
    struct emu_message_pair pair;

    (void)state;
    assert_int_equal(emu_message_pair_of(m, &pair), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(emu_message_point(&setup, &pair, i == 0 ? 4096 : 65536, &hit[i]), 0);
    setup.host.registration = EMU_REGISTRATION_MISS;
    for (int i = 0; i < 2; i++)
        assert_int_equal(emu_message_point(&setup, &pair, i == 0 ? 4096 : 65536, &miss[i]), 0);
    assert_true(miss[0].latency_us == hit[0].latency_us);
    /* Two registrations of 1 us and 16 pages of 0.1 us. */
    assert_true(fabs(miss[1].latency_us - hit[1].latency_us - 5.2) < 0.01);
    assert_int_equal(emu_message_point(&setup, &pair, 0, &hit[0]), -EINVAL);
    assert_int_equal(emu_message_point(&setup, &pair, EMU_MESSAGE_BYTES_MAX + 1, &hit[0]), -EINVAL);
    emu_machine_destroy(m);
}

static void test_sizes_have_the_change_of_protocol_and_published_points(void **state)
{
    struct emu_machine *m = load("aries:groups=1,eager_bytes_max=5000");
    uint32_t sizes[EMU_MESSAGE_SIZES_MAX];
    size_t n = emu_message_sizes(m, 4096, 8192, sizes);

    (void)state;
    assert_int_equal(n, 4);
    assert_int_equal(sizes[1], 5000);
    assert_int_equal(sizes[2], 5001);
    emu_machine_destroy(m);
    m = load("xt3");
    n = emu_message_sizes(m, MB, MB, sizes);
    assert_int_equal(n, 1);
    assert_int_equal(sizes[0], MB);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_curves_rise_from_one_byte_to_four_mebibytes),
        cmocka_unit_test(test_a_miss_of_the_cache_costs_rendezvous_only),
        cmocka_unit_test(test_sizes_have_the_change_of_protocol_and_published_points),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
