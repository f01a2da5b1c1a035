/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits and tests of every type in every form: a neighbour changes the words.
 */
#include "tests/conformance/shmem/cases.h"

#define COUNT 4

#define CASES(NAME, T)                                                                                                 \
    do {                                                                                                               \
        static T words[COUNT];                                                                                         \
        T wanted[COUNT] = { 1, 2, 3, 4 };                                                                              \
        const int status[COUNT] = { 0, 1, 0, 0 };                                                                      \
        size_t indices[COUNT];                                                                                         \
        size_t n;                                                                                                      \
                                                                                                                       \
        memset(words, 0, sizeof(words));                                                                               \
        shmem_barrier_all();                                                                                           \
        assert_int_equal(shmem_##NAME##_test(&words[0], SHMEM_CMP_NE, 0), 0);                                          \
        assert_int_equal(shmem_##NAME##_test_all(words, COUNT, NULL, SHMEM_CMP_EQ, 0), 1);                             \
        assert_true(shmem_##NAME##_test_any(words, COUNT, NULL, SHMEM_CMP_GT, 0) == SIZE_MAX);                         \
        assert_true(shmem_##NAME##_test_some(words, COUNT, indices, status, SHMEM_CMP_LE, 0) == COUNT - 1);            \
        assert_true(shmem_##NAME##_test_all_vector(words, COUNT, NULL, SHMEM_CMP_EQ, wanted) == 0);                    \
        assert_true(shmem_##NAME##_test_any_vector(words, COUNT, NULL, SHMEM_CMP_GE, wanted) == SIZE_MAX);             \
        assert_true(shmem_##NAME##_test_some_vector(words, COUNT, indices, NULL, SHMEM_CMP_LT, wanted) == COUNT);      \
        shmem_barrier_all();                                                                                           \
        shmem_##NAME##_p(&words[2], 3, next_pe());                                                                     \
        assert_true(shmem_##NAME##_wait_until_any(words, COUNT, status, SHMEM_CMP_NE, 0) == 2);                        \
        assert_true(shmem_##NAME##_wait_until_any_vector(words, COUNT, NULL, SHMEM_CMP_EQ, wanted) == 2);              \
        n = shmem_##NAME##_wait_until_some(words, COUNT, indices, NULL, SHMEM_CMP_GT, 2);                              \
        assert_true(n == 1 && indices[0] == 2);                                                                        \
        n = shmem_##NAME##_wait_until_some_vector(words, COUNT, indices, status, SHMEM_CMP_GE, wanted);                \
        assert_true(n == 1 && indices[0] == 2);                                                                        \
        shmem_barrier_all();                                                                                           \
        for (int k = 0; k < COUNT; k++)                                                                                \
            shmem_##NAME##_p(&words[k], (T)(k + 1), next_pe());                                                        \
        shmem_##NAME##_wait_until(&words[0], SHMEM_CMP_EQ, 1);                                                         \
        shmem_##NAME##_wait_until_all(words, COUNT, NULL, SHMEM_CMP_GE, 1);                                            \
        shmem_##NAME##_wait_until_all_vector(words, COUNT, NULL, SHMEM_CMP_EQ, wanted);                                \
        assert_int_equal(shmem_##NAME##_test_all_vector(words, COUNT, NULL, SHMEM_CMP_EQ, wanted), 1);                 \
        assert_int_equal(shmem_##NAME##_test(&words[3], SHMEM_CMP_EQ, 4), 1);                                          \
        shmem_barrier_all();                                                                                           \
    } while (0);

static void test_every_type_in_every_form(void **state)
{
    (void)state;
    SMA_P2P_TYPES(CASES)
}

#define OLD_CASES(NAME, T)                                                                                             \
    {                                                                                                                  \
        static T word;                                                                                                 \
        shmem_barrier_all();                                                                                           \
        shmem_##NAME##_p(&word, 5, next_pe());                                                                         \
        shmem_##NAME##_wait(&word, 0);                                                                                 \
        assert_true(word == 5);                                                                                        \
        shmem_barrier_all();                                                                                           \
    }

static void test_older_names_wait_too(void **state)
{
    static long last;

    (void)state;
    SMA_OLD_WAIT_TYPES(OLD_CASES)
    shmem_long_p(&last, 1, next_pe());
    shmem_wait(&last, 0);
    (shmem_wait_until)(&last, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
}

static void test_nothing_to_look_at_is_no_wait(void **state)
{
    static long words[2];
    const int none[2] = { 1, 1 };
    size_t index;

    (void)state;
    shmem_long_wait_until_all(words, 0, NULL, SHMEM_CMP_EQ, 1);
    shmem_long_wait_until_all(words, 2, none, SHMEM_CMP_EQ, 1);
    assert_true(shmem_long_wait_until_any(words, 2, none, SHMEM_CMP_EQ, 1) == SIZE_MAX);
    assert_true(shmem_long_wait_until_some(words, 2, &index, none, SHMEM_CMP_EQ, 1) == 0);
    assert_true(shmem_long_test_any(words, 0, NULL, SHMEM_CMP_EQ, 0) == SIZE_MAX);
    assert_int_equal(shmem_long_test_all(words, 0, NULL, SHMEM_CMP_EQ, 1), 1);
}

static void test_comparisons_of_unsigned_words_are_unsigned(void **state)
{
    static uint64_t word;
    static int32_t narrow;

    (void)state;
    word = UINT64_MAX;
    narrow = -1;
    assert_int_equal(shmem_uint64_test(&word, SHMEM_CMP_GT, 1), 1);
    assert_int_equal(shmem_int32_test(&narrow, SHMEM_CMP_LT, 0), 1);
    shmem_barrier_all();
}

static void test_c11_chooses_the_function_by_type(void **state)
{
    static unsigned int words[2];
    size_t indices[2];

    (void)state;
    shmem_barrier_all();
    shmem_p(&words[1], 3u, next_pe());
    shmem_wait_until(&words[1], SHMEM_CMP_EQ, 3u);
    assert_true(shmem_wait_until_any(words, 2, NULL, SHMEM_CMP_EQ, 3u) == 1);
    assert_true(shmem_test_some(words, 2, indices, NULL, SHMEM_CMP_EQ, 3u) == 1);
    shmem_barrier_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_in_every_form),
        cmocka_unit_test(test_older_names_wait_too),
        cmocka_unit_test(test_nothing_to_look_at_is_no_wait),
        cmocka_unit_test(test_comparisons_of_unsigned_words_are_unsigned),
        cmocka_unit_test(test_c11_chooses_the_function_by_type),
    };

    return run(tests);
}
