/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-41: the flag of a flagged get appears with its data, never before. A million gets, 64 under way at a time, carried
 * out by emunic while this process looks at their flags in an order of its own.
 */
#include <sched.h>

#include "tests/common/seed.h"
#include "tests/live/live.h"

#define WINDOW 64u
#define GETS   1000000u
#define SLOT   128u /* bytes: at most 64 of data, the flag behind them */

static uint64_t value_of(uint32_t window, uint32_t slot, uint32_t word)
{
    return (((uint64_t)window * WINDOW + slot) * 8 + word) * 0x9e3779b97f4a7c15ull | 1;
}

/* Waits for the flag, then looks at once. */
static bool is_early(uint32_t window, uint32_t slot, uint64_t length)
{
    volatile uint64_t *data = (volatile uint64_t *)(void *)(a.mem + (size_t)slot * SLOT);
    volatile uint32_t *flag = (volatile uint32_t *)(void *)(a.mem + (size_t)slot * SLOT + length);
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    for (uint32_t spins = 1; *flag == 0; spins++) {
        if (spins % 64 == 0)
            sched_yield(); /* emunic may want this core */
        if (spins % 65536 == 0 && emu_clock_ns() > end_ns)
            fail_msg("the flag of window %u slot %u does not come", window, slot);
    }
    for (uint32_t word = 0; word < length / 8; word++) {
        if (data[word] != value_of(window, slot, word))
            return true;
    }
    return false;
}

static void test_no_flag_is_early_in_a_million_gets(void **state)
{
    static gni_post_descriptor_t d[WINDOW];
    struct emu_random random = seeded(41);
    uint32_t n_early = 0;

    (void)state;
    for (uint32_t window = 0; window < GETS / WINDOW; window++) {
        uint32_t first = emu_random_below(&random, WINDOW);
        uint32_t step = 2 * emu_random_below(&random, WINDOW / 2) + 1;

        for (uint32_t slot = 0; slot < WINDOW; slot++) {
            uint64_t *source = (uint64_t *)(void *)(b.mem + (size_t)slot * SLOT);

            for (uint32_t word = 0; word < 8; word++)
                source[word] = value_of(window, slot, word);
            d[slot] =
                gx_put(&a, &b, (uint64_t)slot * SLOT, 8 * (1 + emu_random_below(&random, 8)), GNI_CQMODE_GLOBAL_EVENT);
            d[slot].type = GNI_POST_FMA_GET_W_FLAG;
            memset(a.mem + (size_t)slot * SLOT, 0, SLOT);
        }
        for (uint32_t slot = 0; slot < WINDOW; slot++)
            assert_int_equal(post(&d[slot]), GNI_RC_SUCCESS);
        for (uint32_t k = 0; k < WINDOW; k++) {
            uint32_t slot = (first + k * step) % WINDOW;

            n_early += is_early(window, slot, d[slot].length);
        }
        for (uint32_t slot = 0; slot < WINDOW; slot++)
            assert_int_equal(finish(&d[slot]), STATUS_OK);
    }
    assert_int_equal(n_early, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = { pair_test(test_no_flag_is_early_in_a_million_gets) };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
