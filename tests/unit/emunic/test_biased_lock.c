/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The biased lock: its owner alone, others that come while the owner is inside, many at once, and a bias that comes
 * late.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/base/biased_lock.h"

#define OTHERS 3
#define ROUNDS 20000

static struct emu_biased_lock lock;
static unsigned long counter; /* guarded by the lock and by nothing else */
static _Atomic unsigned n_ready;
static _Atomic bool may_leave;
static _Atomic bool was_inside;

/* With this thread as its owner. */
static void make(void)
{
    emu_biased_lock_init(&lock);
    emu_biased_lock_bias(&lock);
}

static void *count(void *arg)
{
    (void)arg;
    atomic_fetch_add(&n_ready, 1);
    for (int i = 0; i < ROUNDS; i++) {
        emu_biased_lock(&lock);
        counter++;
        emu_biased_unlock(&lock);
    }
    return NULL;
}

static void test_owner_alone_stays_on_the_short_way(void **state)
{
    (void)state;
    make();
    for (int i = 0; i < 10; i++) {
        emu_biased_lock(&lock);
        assert_true(atomic_load(&lock.is_held) || atomic_load(&lock.is_shared));
        emu_biased_unlock(&lock);
        assert_false(atomic_load(&lock.is_held));
    }
    emu_biased_lock_fini(&lock);
}

static void test_no_count_is_lost_when_others_join_the_owner(void **state)
{
    pthread_t others[OTHERS];

    (void)state;
    for (int round = 0; round < 20; round++) {
        counter = 0;
        atomic_store(&n_ready, 0);
        make();
        for (int i = 0; i < OTHERS; i++)
            assert_int_equal(pthread_create(&others[i], NULL, count, NULL), 0);
        /* The owner is counting on the short way when the first of them comes. */
        count(NULL);
        for (int i = 0; i < OTHERS; i++)
            pthread_join(others[i], NULL);
        assert_int_equal(counter, (OTHERS + 1) * ROUNDS);
        assert_true(atomic_load(&lock.is_shared));
        emu_biased_lock_fini(&lock);
    }
}

static void *count_and_bias(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        emu_biased_lock(&lock);
        counter++;
        if (i == ROUNDS / 4)
            emu_biased_lock_bias(&lock);
        emu_biased_unlock(&lock);
    }
    return NULL;
}

/* Each of them tries to become the owner while the others are using the mutex; one of them does. */
static void test_bias_of_a_lock_in_use_loses_no_count(void **state)
{
    pthread_t others[OTHERS];

    (void)state;
    for (int round = 0; round < 20; round++) {
        counter = 0;
        emu_biased_lock_init(&lock);
        for (int i = 0; i < OTHERS; i++)
            assert_int_equal(pthread_create(&others[i], NULL, count_and_bias, NULL), 0);
        count_and_bias(NULL);
        for (int i = 0; i < OTHERS; i++)
            pthread_join(others[i], NULL);
        assert_int_equal(counter, (OTHERS + 1) * ROUNDS);
        emu_biased_lock_fini(&lock);
    }
}

static void test_without_bias_the_lock_is_shared(void **state)
{
    (void)state;
    emu_biased_lock_init(&lock);
    emu_biased_lock(&lock);
    assert_false(atomic_load(&lock.is_held));
    assert_int_not_equal(pthread_mutex_trylock(&lock.mutex), 0);
    emu_biased_unlock(&lock);
    assert_true(atomic_load(&lock.is_shared));
    emu_biased_lock_fini(&lock);
}

static void *enter_once(void *arg)
{
    (void)arg;
    atomic_fetch_add(&n_ready, 1);
    emu_biased_lock(&lock);
    atomic_store(&was_inside, true);
    /* The owner is out: it has said so before it unlocked. */
    counter += atomic_load(&may_leave) ? 1 : 0;
    emu_biased_unlock(&lock);
    return NULL;
}

static void test_another_thread_waits_until_the_owner_is_out(void **state)
{
    pthread_t other;

    (void)state;
    counter = 0;
    atomic_store(&n_ready, 0);
    atomic_store(&may_leave, false);
    atomic_store(&was_inside, false);
    make();
    emu_biased_lock(&lock);
    assert_int_equal(pthread_create(&other, NULL, enter_once, NULL), 0);
    while (atomic_load(&n_ready) == 0 || (!atomic_load(&lock.is_shared)))
        ; /* it is asking now */
    assert_false(atomic_load(&was_inside));
    atomic_store(&may_leave, true);
    emu_biased_unlock(&lock);
    pthread_join(other, NULL);
    assert_int_equal(counter, 1);
    /* The owner goes by the mutex now. */
    emu_biased_lock(&lock);
    assert_false(atomic_load(&lock.is_held));
    emu_biased_unlock(&lock);
    emu_biased_lock_fini(&lock);
}

/* In the child the owner does not exist, and the lock says that it holds it. */
static void *fork_and_lock(void *arg)
{
    int *status = arg;
    pid_t child = fork();

    if (child == 0) {
        alarm(20);
        emu_biased_lock(&lock);
        emu_biased_unlock(&lock);
        _exit(0);
    }
    if (child < 0 || waitpid(child, status, 0) != child)
        *status = -1;
    return NULL;
}

static void test_child_does_not_wait_for_an_owner_that_it_has_not(void **state)
{
    pthread_t other;
    int status = -1;

    (void)state;
    make();
    emu_biased_lock(&lock);
    assert_int_equal(pthread_create(&other, NULL, fork_and_lock, &status), 0);
    pthread_join(other, NULL);
    assert_int_equal(status, 0);
    emu_biased_unlock(&lock);
    emu_biased_lock_fini(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_owner_alone_stays_on_the_short_way),
        cmocka_unit_test(test_no_count_is_lost_when_others_join_the_owner),
        cmocka_unit_test(test_bias_of_a_lock_in_use_loses_no_count),
        cmocka_unit_test(test_without_bias_the_lock_is_shared),
        cmocka_unit_test(test_another_thread_waits_until_the_owner_is_out),
        cmocka_unit_test(test_child_does_not_wait_for_an_owner_that_it_has_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
