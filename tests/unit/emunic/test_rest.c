/* SPDX-License-Identifier: BSD-3-Clause */
/* The word by which a port's owner rests: who announces, who clears, who is woken (emunic/engine/rest.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/engine/rest.h"

#define FOR_EVER_NS 60000000000ull
#define SLEEPERS    3u

static struct emu_segment segment;

static int clear(void **state)
{
    (void)state;
    memset(&segment, 0, sizeof(segment));
    return 0;
}

static void test_only_the_first_announcement_is_new(void **state)
{
    (void)state;
    assert_true(emu_rest_announce(&segment));
    assert_false(emu_rest_announce(&segment));
    emu_rest_disturb(&segment);
    assert_true(emu_rest_announce(&segment));
}

static void test_news_after_the_announcement_prevent_the_sleep(void **state)
{
    (void)state;
    emu_rest_announce(&segment);
    emu_rest_disturb(&segment);
    assert_true(emu_rest_sleep(&segment, FOR_EVER_NS));
}

static void test_without_news_the_time_ends_the_sleep(void **state)
{
    (void)state;
    emu_rest_announce(&segment);
    assert_false(emu_rest_sleep(&segment, 1000));
    /* It may go on without a new announcement, and news are still noticed. */
    assert_false(emu_rest_announce(&segment));
    assert_false(emu_rest_sleep(&segment, 1000));
    emu_rest_disturb(&segment);
    assert_true(emu_rest_sleep(&segment, FOR_EVER_NS));
}

static void *sleep_long(void *was_disturbed)
{
    *(bool *)was_disturbed = emu_rest_sleep(&segment, FOR_EVER_NS);
    return NULL;
}

static void test_news_wake_every_sleeping_thread(void **state)
{
    bool was_disturbed[SLEEPERS] = { false };
    pthread_t threads[SLEEPERS];

    (void)state;
    emu_rest_announce(&segment);
    for (unsigned i = 0; i < SLEEPERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_long, &was_disturbed[i]), 0);
    while (atomic_load(&segment.rests) != EMU_REST_ASLEEP)
        sched_yield();
    emu_rest_disturb(&segment);
    for (unsigned i = 0; i < SLEEPERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(was_disturbed[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_only_the_first_announcement_is_new, clear),
        cmocka_unit_test_setup(test_news_after_the_announcement_prevent_the_sleep, clear),
        cmocka_unit_test_setup(test_without_news_the_time_ends_the_sleep, clear),
        cmocka_unit_test_setup(test_news_wake_every_sleeping_thread, clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
