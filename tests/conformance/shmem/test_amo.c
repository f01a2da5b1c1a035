/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics of every type, with and without a context, blocking and not, and under their older names; the sum of what all
 * PEs do to one word.
 */
#include "tests/conformance/shmem/cases.h"

#include <pthread.h>

/* Every PE has a word of its own at its neighbour, so results are known. */
#define BEGIN(T, word, value)                                                                                          \
    do {                                                                                                               \
        shmem_barrier_all();                                                                                           \
        *(word) = (T)(value);                                                                                          \
        shmem_barrier_all();                                                                                           \
    } while (0)

#define STANDARD(NAME, T, CALL, word)                                                                                  \
    do {                                                                                                               \
        T old[4] = { 0 };                                                                                              \
                                                                                                                       \
        BEGIN(T, word, 10);                                                                                            \
        CALL(NAME, atomic_add, word, 5, next_pe());                                                                    \
        CALL(NAME, atomic_inc, word, next_pe());                                                                       \
        shmem_quiet();                                                                                                 \
        assert_true(CALL(NAME, atomic_fetch_add, word, 4, next_pe()) == 16);                                           \
        assert_true(CALL(NAME, atomic_fetch_inc, word, next_pe()) == 20);                                              \
        assert_true(CALL(NAME, atomic_compare_swap, word, 99, 1, next_pe()) == 21);                                    \
        assert_true(CALL(NAME, atomic_compare_swap, word, 21, 30, next_pe()) == 21);                                   \
        CALL(NAME, atomic_fetch_add_nbi, &old[0], word, 2, next_pe());                                                 \
        shmem_quiet();                                                                                                 \
        CALL(NAME, atomic_fetch_inc_nbi, &old[1], word, next_pe());                                                    \
        shmem_quiet();                                                                                                 \
        CALL(NAME, atomic_compare_swap_nbi, &old[2], word, 33, 40, next_pe());                                         \
        shmem_quiet();                                                                                                 \
        assert_true(old[0] == 30 && old[1] == 32 && old[2] == 33);                                                     \
        shmem_barrier_all();                                                                                           \
        assert_true(*(word) == 40);                                                                                    \
    } while (0)

#define EXTENDED(NAME, T, CALL, word)                                                                                  \
    do {                                                                                                               \
        T old[2] = { 0 };                                                                                              \
                                                                                                                       \
        BEGIN(T, word, 3);                                                                                             \
        assert_true(CALL(NAME, atomic_fetch, word, next_pe()) == 3);                                                   \
        assert_true(CALL(NAME, atomic_swap, word, 7, next_pe()) == 3);                                                 \
        CALL(NAME, atomic_set, word, 8, next_pe());                                                                    \
        shmem_quiet();                                                                                                 \
        CALL(NAME, atomic_fetch_nbi, &old[0], word, next_pe());                                                        \
        shmem_quiet();                                                                                                 \
        CALL(NAME, atomic_swap_nbi, &old[1], word, 9, next_pe());                                                      \
        shmem_quiet();                                                                                                 \
        assert_true(old[0] == 8 && old[1] == 8);                                                                       \
        shmem_barrier_all();                                                                                           \
        assert_true(*(word) == 9);                                                                                     \
    } while (0)

#define BITWISE(NAME, T, CALL, word)                                                                                   \
    do {                                                                                                               \
        T old[3] = { 0 };                                                                                              \
                                                                                                                       \
        BEGIN(T, word, 0x5a);                                                                                          \
        CALL(NAME, atomic_or, word, 0x05, next_pe());                                                                  \
        shmem_quiet();                                                                                                 \
        CALL(NAME, atomic_and, word, 0x3f, next_pe());                                                                 \
        shmem_quiet();                                                                                                 \
        CALL(NAME, atomic_xor, word, 0x01, next_pe());                                                                 \
        shmem_quiet();                                                                                                 \
        assert_true(CALL(NAME, atomic_fetch_or, word, 0x40, next_pe()) == 0x1e);                                       \
        assert_true(CALL(NAME, atomic_fetch_and, word, 0x5c, next_pe()) == 0x5e);                                      \
        assert_true(CALL(NAME, atomic_fetch_xor, word, 0x0f, next_pe()) == 0x5c);                                      \
        CALL(NAME, atomic_fetch_or_nbi, &old[0], word, 0x20, next_pe());                                               \
        shmem_quiet();                                                                                                 \
        CALL(NAME, atomic_fetch_and_nbi, &old[1], word, 0x70, next_pe());                                              \
        shmem_quiet();                                                                                                 \
        CALL(NAME, atomic_fetch_xor_nbi, &old[2], word, 0x11, next_pe());                                              \
        shmem_quiet();                                                                                                 \
        assert_true(old[0] == 0x53 && old[1] == 0x73 && old[2] == 0x70);                                               \
        shmem_barrier_all();                                                                                           \
        assert_true(*(word) == 0x61);                                                                                  \
    } while (0)

#define STANDARD_TEST(NAME, T)                                                                                         \
    {                                                                                                                  \
        static T fixed;                                                                                                \
        STANDARD(NAME, T, PLAIN, (T *)heap);                                                                           \
        STANDARD(NAME, T, WITH_CTX, &fixed);                                                                           \
    }
#define EXTENDED_TEST(NAME, T)                                                                                         \
    {                                                                                                                  \
        static T fixed;                                                                                                \
        EXTENDED(NAME, T, PLAIN, (T *)heap);                                                                           \
        EXTENDED(NAME, T, WITH_CTX, &fixed);                                                                           \
    }
#define BITWISE_TEST(NAME, T)                                                                                          \
    {                                                                                                                  \
        static T fixed;                                                                                                \
        BITWISE(NAME, T, PLAIN, (T *)heap);                                                                            \
        BITWISE(NAME, T, WITH_CTX, &fixed);                                                                            \
    }

static long *heap;

static void test_arithmetic_of_every_type(void **state)
{
    (void)state;
    heap = shmem_malloc(sizeof(*heap));
    SMA_AMO_TYPES(STANDARD_TEST)
    shmem_free(heap);
}

static void test_fetch_set_and_swap_of_every_type(void **state)
{
    (void)state;
    heap = shmem_malloc(sizeof(*heap));
    SMA_AMO_EXTENDED_TYPES(EXTENDED_TEST)
    shmem_free(heap);
}

static void test_bits_of_every_type(void **state)
{
    (void)state;
    heap = shmem_malloc(sizeof(*heap));
    SMA_AMO_BITWISE_TYPES(BITWISE_TEST)
    shmem_free(heap);
}

#define OLD_INTEGER_TEST(NAME, T)                                                                                      \
    {                                                                                                                  \
        static T word;                                                                                                 \
        BEGIN(T, &word, 10);                                                                                           \
        shmem_##NAME##_add(&word, 5, next_pe());                                                                       \
        shmem_##NAME##_inc(&word, next_pe());                                                                          \
        shmem_quiet();                                                                                                 \
        assert_true(shmem_##NAME##_fadd(&word, 4, next_pe()) == 16);                                                   \
        assert_true(shmem_##NAME##_finc(&word, next_pe()) == 20);                                                      \
        assert_true(shmem_##NAME##_cswap(&word, 21, 30, next_pe()) == 21);                                             \
        shmem_barrier_all();                                                                                           \
        assert_true(word == 30);                                                                                       \
    }
#define OLD_VALUE_TEST(NAME, T)                                                                                        \
    {                                                                                                                  \
        static T word;                                                                                                 \
        BEGIN(T, &word, 3);                                                                                            \
        assert_true(shmem_##NAME##_fetch(&word, next_pe()) == 3);                                                      \
        assert_true(shmem_##NAME##_swap(&word, 7, next_pe()) == 3);                                                    \
        shmem_##NAME##_set(&word, 8, next_pe());                                                                       \
        shmem_barrier_all();                                                                                           \
        assert_true(word == 8);                                                                                        \
    }

static void test_older_names_do_the_same(void **state)
{
    static long long_word;

    (void)state;
    SMA_OLD_INTEGER_TYPES(OLD_INTEGER_TEST)
    SMA_OLD_VALUE_TYPES(OLD_VALUE_TEST)
    BEGIN(long, &long_word, 4);
    assert_int_equal((shmem_swap)(&long_word, 5, next_pe()), 4);
    shmem_barrier_all();
}

static void test_a_half_word_leaves_its_neighbour(void **state)
{
    static uint32_t pair[2];

    (void)state;
    BEGIN(uint32_t, &pair[0], 1);
    BEGIN(uint32_t, &pair[1], 0xfffffff0u);
    for (int i = 0; i < 32; i++)
        shmem_uint_atomic_add(&pair[i % 2], 1, next_pe());
    shmem_barrier_all();
    assert_int_equal(pair[0], 17);
    assert_int_equal(pair[1], 0);
}

static void test_no_update_of_a_word_is_lost(void **state)
{
    static long sum;
    static int narrow;
    long expected = 0;

    (void)state;
    BEGIN(long, &sum, 0);
    BEGIN(int, &narrow, 0);
    for (int i = 0; i < 300; i++) {
        shmem_long_atomic_add(&sum, i, 0);
        (void)shmem_int_atomic_fetch_inc(&narrow, n_pes - 1);
        expected += i;
    }
    shmem_barrier_all();
    assert_int_equal(shmem_long_atomic_fetch(&sum, 0), expected * n_pes);
    assert_int_equal(shmem_int_atomic_fetch(&narrow, n_pes - 1), 300 * n_pes);
    shmem_barrier_all();
}

static void *count_up(void *arg)
{
    for (int i = 0; i < 200; i++)
        (void)shmem_long_atomic_fetch_inc(arg, 0);
    shmem_quiet();
    return NULL;
}

static void test_threads_of_a_pe_operate_at_once(void **state)
{
    static long sum;
    pthread_t threads[3];

    (void)state;
    BEGIN(long, &sum, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_up, &sum), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    assert_int_equal(shmem_long_atomic_fetch(&sum, 0), 600L * n_pes);
    shmem_barrier_all();
}

static void test_c11_chooses_the_function_by_type(void **state)
{
    static unsigned long word;
    static float real;
    unsigned long old;

    (void)state;
    BEGIN(unsigned long, &word, 1);
    shmem_atomic_add(&word, 2ul, next_pe());
    shmem_quiet();
    assert_int_equal(shmem_atomic_fetch_or(context, &word, 4ul, next_pe()), 3);
    shmem_atomic_fetch_nbi(&old, &word, next_pe());
    shmem_quiet();
    assert_int_equal(old, 7);
    shmem_atomic_set(&real, 2.5f, next_pe());
    shmem_barrier_all();
    assert_true(real == 2.5f && shmem_fetch(&real, next_pe()) == 2.5f);
    shmem_barrier_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arithmetic_of_every_type),
        cmocka_unit_test(test_fetch_set_and_swap_of_every_type),
        cmocka_unit_test(test_bits_of_every_type),
        cmocka_unit_test(test_older_names_do_the_same),
        cmocka_unit_test(test_a_half_word_leaves_its_neighbour),
        cmocka_unit_test(test_no_update_of_a_word_is_lost),
        cmocka_unit_test(test_threads_of_a_pe_operate_at_once),
        cmocka_unit_test(test_c11_chooses_the_function_by_type),
    };

    return run(tests);
}
