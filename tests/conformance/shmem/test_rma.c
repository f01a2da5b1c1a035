/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and gets of every type and size, strided, single, non-blocking, with and without a context, in the symmetric
 * heap and in static data; puts with signal.
 */
#include "tests/conformance/shmem/cases.h"

#include <pthread.h>
#include <sched.h>

#define COUNT 24

static long double *heap; /* room for COUNT elements of any type */
static uint64_t signals[2];

#define EXPECT_FROM(at, T, step, pe)                                                                                   \
    for (int k = 0; k < COUNT; k++)                                                                                    \
    assert_true((at)[k] == (k % (step) == 0 ? VALUE(T, k / (step), pe) : (T)0))

#define FILL(at, T, pe)                                                                                                \
    for (int k = 0; k < COUNT; k++)                                                                                    \
    (at)[k] = VALUE(T, k, pe)

#define CLEAR(at)                                                                                                      \
    do {                                                                                                               \
        memset((void *)(at), 0, COUNT * sizeof(*(at)));                                                                \
        shmem_barrier_all();                                                                                           \
    } while (0)

/* All ways of one type into one memory; CALL is PLAIN or WITH_CTX. */
#define WAYS(NAME, T, CALL, at)                                                                                        \
    do {                                                                                                               \
        T source[COUNT];                                                                                               \
        T back[COUNT];                                                                                                 \
                                                                                                                       \
        FILL(source, T, me);                                                                                           \
        CLEAR(at);                                                                                                     \
        CALL(NAME, put, at, source, COUNT, next_pe());                                                                 \
        shmem_barrier_all();                                                                                           \
        EXPECT_FROM(at, T, 1, previous_pe());                                                                          \
        CALL(NAME, get, back, at, COUNT, next_pe());                                                                   \
        EXPECT_FROM(back, T, 1, me);                                                                                   \
        shmem_barrier_all();                                                                                           \
        CLEAR(at);                                                                                                     \
        CALL(NAME, put_nbi, at, source, COUNT, next_pe());                                                             \
        shmem_barrier_all();                                                                                           \
        EXPECT_FROM(at, T, 1, previous_pe());                                                                          \
        memset((void *)back, 0, sizeof(back));                                                                         \
        CALL(NAME, get_nbi, back, at, COUNT, next_pe());                                                               \
        shmem_quiet();                                                                                                 \
        EXPECT_FROM(back, T, 1, me);                                                                                   \
        shmem_barrier_all();                                                                                           \
        CLEAR(at);                                                                                                     \
        CALL(NAME, iput, at, source, 3, 1, COUNT / 3, next_pe());                                                      \
        shmem_barrier_all();                                                                                           \
        EXPECT_FROM(at, T, 3, previous_pe());                                                                          \
        memset((void *)back, 0, sizeof(back));                                                                         \
        CALL(NAME, iget, back, at, 2, 3, COUNT / 3, next_pe());                                                        \
        for (int k = 0; k < COUNT / 3; k++)                                                                            \
            assert_true(back[2 * k] == VALUE(T, k, me) && back[2 * k + 1] == (T)0);                                    \
        shmem_barrier_all();                                                                                           \
        CALL(NAME, p, &(at)[1], VALUE(T, 7, me), next_pe());                                                           \
        shmem_barrier_all();                                                                                           \
        assert_true((at)[1] == VALUE(T, 7, previous_pe()));                                                            \
        assert_true(CALL(NAME, g, &(at)[1], next_pe()) == VALUE(T, 7, me));                                            \
        shmem_barrier_all();                                                                                           \
    } while (0)

/* SET by the first, ADD by the second. */
#define SIGNALLED(NAME, T, CALL, at)                                                                                   \
    do {                                                                                                               \
        T source[COUNT];                                                                                               \
                                                                                                                       \
        FILL(source, T, me);                                                                                           \
        signals[0] = signals[1] = 0;                                                                                   \
        CLEAR(at);                                                                                                     \
        CALL(NAME, put_signal, at, source, COUNT / 2, &signals[0], 5, SHMEM_SIGNAL_SET, next_pe());                    \
        assert_int_equal(shmem_signal_wait_until(&signals[0], SHMEM_CMP_EQ, 5), 5);                                    \
        for (int k = 0; k < COUNT / 2; k++)                                                                            \
            assert_true((at)[k] == VALUE(T, k, previous_pe()));                                                        \
        CALL(NAME, put_signal_nbi, (at) + COUNT / 2, source + COUNT / 2, COUNT / 2, &signals[1], 3, SHMEM_SIGNAL_ADD,  \
             next_pe());                                                                                               \
        assert_int_equal(shmem_signal_wait_until(&signals[1], SHMEM_CMP_NE, 0), 3);                                    \
        assert_int_equal(shmem_signal_fetch(&signals[1]), 3);                                                          \
        EXPECT_FROM(at, T, 1, previous_pe());                                                                          \
        shmem_barrier_all();                                                                                           \
    } while (0)

#define TYPE_TEST(NAME, T)                                                                                             \
    static void type_##NAME(void)                                                                                      \
    {                                                                                                                  \
        static T fixed[COUNT];                                                                                         \
                                                                                                                       \
        WAYS(NAME, T, PLAIN, (T *)heap);                                                                               \
        WAYS(NAME, T, WITH_CTX, (T *)heap);                                                                            \
        WAYS(NAME, T, PLAIN, fixed);                                                                                   \
        WAYS(NAME, T, WITH_CTX, fixed);                                                                                \
        SIGNALLED(NAME, T, PLAIN, (T *)heap);                                                                          \
        SIGNALLED(NAME, T, WITH_CTX, fixed);                                                                           \
    }
SMA_RMA_TYPES(TYPE_TEST)

static void test_every_type_arrives_by_every_way(void **state)
{
    (void)state;
    heap = shmem_malloc(COUNT * sizeof(*heap));
    assert_non_null(heap);
#define CALL_TYPE_TEST(NAME, T) type_##NAME();
    SMA_RMA_TYPES(CALL_TYPE_TEST)
    shmem_free(heap);
}

/* Elements of so many bytes: patterns of bytes. */
static uint8_t bytes[COUNT * 16];

static void expect_bytes(const uint8_t *at, size_t len, int pe)
{
    for (size_t i = 0; i < len; i++)
        assert_int_equal(at[i], VALUE(uint8_t, (int)i, pe));
}

static void clear_bytes(void)
{
    shmem_barrier_all();
    memset(bytes, 0, sizeof(bytes));
    signals[0] = signals[1] = 0;
    shmem_barrier_all();
}

#define SIZED(PUT, GET, CALL, bytes_each)                                                                              \
    do {                                                                                                               \
        clear_bytes();                                                                                                 \
        CALL(PUT, bytes, source, COUNT, next_pe());                                                                    \
        shmem_barrier_all();                                                                                           \
        expect_bytes(bytes, COUNT *(bytes_each), previous_pe());                                                       \
        CALL(GET, back, bytes, COUNT, next_pe());                                                                      \
        expect_bytes(back, COUNT *(bytes_each), me);                                                                   \
        clear_bytes();                                                                                                 \
        CALL(PUT##_nbi, bytes, source, COUNT, next_pe());                                                              \
        shmem_barrier_all();                                                                                           \
        expect_bytes(bytes, COUNT *(bytes_each), previous_pe());                                                       \
        memset(back, 0, sizeof(back));                                                                                 \
        CALL(GET##_nbi, back, bytes, COUNT, next_pe());                                                                \
        shmem_quiet();                                                                                                 \
        expect_bytes(back, COUNT *(bytes_each), me);                                                                   \
        clear_bytes();                                                                                                 \
        CALL(PUT##_signal, bytes, source, COUNT, &signals[0], 1, SHMEM_SIGNAL_ADD, next_pe());                         \
        shmem_signal_wait_until(&signals[0], SHMEM_CMP_GT, 0);                                                         \
        expect_bytes(bytes, COUNT *(bytes_each), previous_pe());                                                       \
        clear_bytes();                                                                                                 \
        CALL(PUT##_signal_nbi, bytes, source, COUNT, &signals[1], 9, SHMEM_SIGNAL_SET, next_pe());                     \
        shmem_signal_wait_until(&signals[1], SHMEM_CMP_GE, 9);                                                         \
        expect_bytes(bytes, COUNT *(bytes_each), previous_pe());                                                       \
    } while (0)

#define SIZED_STRIDES(BITS, CALL, bytes_each)                                                                          \
    do {                                                                                                               \
        clear_bytes();                                                                                                 \
        CALL(iput##BITS, bytes, source, 2, 1, COUNT / 2, next_pe());                                                   \
        shmem_barrier_all();                                                                                           \
        for (int k = 0; k < COUNT / 2; k++)                                                                            \
            assert_memory_equal(bytes + 2 * k * (bytes_each), theirs + k * (bytes_each), bytes_each);                  \
        memset(back, 0, sizeof(back));                                                                                 \
        CALL(iget##BITS, back, bytes, 1, 2, COUNT / 2, next_pe());                                                     \
        expect_bytes(back, COUNT / 2 * (bytes_each), me);                                                              \
    } while (0)

static void test_every_size_arrives_by_every_way(void **state)
{
    uint8_t source[COUNT * 16];
    uint8_t theirs[COUNT * 16];
    uint8_t back[COUNT * 16];

    (void)state;
    for (int i = 0; i < COUNT * 16; i++) {
        source[i] = VALUE(uint8_t, i, me);
        theirs[i] = VALUE(uint8_t, i, previous_pe());
    }
#define SIZE_TEST(BITS, bytes_each)                                                                                    \
    SIZED(put##BITS, get##BITS, PLAIN_SIZED, bytes_each);                                                              \
    SIZED(put##BITS, get##BITS, WITH_CTX_SIZED, bytes_each);                                                           \
    SIZED_STRIDES(BITS, PLAIN_SIZED, bytes_each);                                                                      \
    SIZED_STRIDES(BITS, WITH_CTX_SIZED, bytes_each);
    SMA_SIZES(SIZE_TEST)
    SIZED(putmem, getmem, PLAIN_SIZED, 1);
    SIZED(putmem, getmem, WITH_CTX_SIZED, 1);
    shmem_barrier_all();
}

static void test_large_transfers_arrive_whole(void **state)
{
    static const size_t sizes[] = { 4096, 1 << 20, (1 << 20) + 1, 3000001, 5 << 20 };
    size_t most = sizes[4];
    uint8_t *there = shmem_malloc(most);
    uint8_t *here = malloc(most);

    (void)state;
    assert_non_null(there);
    for (int s = 0; s < 5; s++) {
        for (size_t i = 0; i < sizes[s]; i++)
            here[i] = (uint8_t)(i * 31 + (size_t)(me + s));
        if (s % 2 == 0)
            shmem_putmem(there, here, sizes[s], next_pe());
        else
            shmem_putmem_nbi(there, here, sizes[s], next_pe());
        shmem_barrier_all();
        for (size_t i = 0; i < sizes[s]; i++) {
            if (there[i] != (uint8_t)(i * 31 + (size_t)(previous_pe() + s)))
                fail_msg("byte %zu of %zu", i, sizes[s]);
        }
        memset(here, 0, sizes[s]);
        if (s % 2 == 0)
            shmem_getmem_nbi(here, there, sizes[s], next_pe());
        else
            shmem_getmem(here, there, sizes[s], next_pe());
        shmem_quiet();
        assert_int_equal(here[sizes[s] - 1], (uint8_t)((sizes[s] - 1) * 31 + (size_t)(me + s)));
        shmem_barrier_all();
    }
    free(here);
    shmem_free(there);
}

static void test_nothing_is_moved_by_zero_elements(void **state)
{
    static long word;
    long mine = 5;

    (void)state;
    word = 1;
    shmem_barrier_all();
    shmem_long_put(&word, &mine, 0, next_pe());
    shmem_long_put_nbi(&word, &mine, 0, next_pe());
    shmem_long_get(&mine, &word, 0, next_pe());
    shmem_long_iput(&word, &mine, 1, 1, 0, next_pe());
    shmem_long_iget(&mine, &word, 1, 1, 0, next_pe());
    shmem_barrier_all();
    assert_int_equal(word, 1);
    assert_int_equal(mine, 5);
}

static void test_a_fence_orders_puts_to_one_pe(void **state)
{
    static long data[8];
    static volatile long flag;

    (void)state;
    for (long round = 1; round <= 200; round++) {
        long values[8] = { round, round, round, round, round, round, round, round };

        shmem_long_put_nbi(data, values, 8, next_pe());
        if (round % 2)
            shmem_fence();
        else
            shmem_ctx_fence(context);
        shmem_long_p((long *)(uintptr_t)&flag, round, next_pe());
        shmem_long_wait_until((long *)(uintptr_t)&flag, SHMEM_CMP_GE, round);
        assert_int_equal(data[7], round);
        shmem_ctx_quiet(context);
        shmem_barrier_all();
    }
}

static uint64_t *words; /* 8 in the heap */

/* The other thread's quiet may be under way with our gets. */
static void *get_and_look(void *failed)
{
    uint64_t back[8];
    shmem_ctx_t own;

    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) != 0)
        return failed;
    for (int round = 0; round < 2000; round++) {
        memset(back, 0, sizeof(back));
        shmem_ctx_uint64_get_nbi(own, back, words, 8, next_pe());
        if (round % 2 == 0)
            sched_yield();
        shmem_ctx_quiet(own);
        for (int k = 0; k < 8; k++) {
            if (back[k] != 77)
                return failed;
        }
    }
    shmem_ctx_destroy(own);
    return NULL;
}

static void test_quiet_completes_what_its_thread_has_posted(void **state)
{
    pthread_t threads[2];
    void *failed = NULL;

    (void)state;
    words = shmem_malloc(8 * sizeof(*words));
    assert_non_null(words);
    for (int k = 0; k < 8; k++)
        words[k] = 77;
    shmem_barrier_all();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_and_look, &failed), 0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    shmem_free(words);
}

static void test_c11_chooses_the_function_by_type(void **state)
{
    static double there[4];
    static uint64_t signal;
    double mine[4] = { 1.5, 2.5, 3.5, 4.5 + me };
    double back[4] = { 0 };

    (void)state;
    shmem_put(there, mine, 4, next_pe());
    shmem_put(context, there, mine, 4, next_pe());
    shmem_put_nbi(context, there, mine, 4, next_pe());
    shmem_barrier_all();
    shmem_get(back, there, 4, next_pe());
    assert_true(back[3] == mine[3]);
    shmem_get_nbi(back, there, 4, next_pe());
    shmem_quiet();
    assert_true(shmem_g(context, &there[3], next_pe()) == mine[3]);
    shmem_barrier_all();
    shmem_p(&there[0], 9.0, next_pe());
    shmem_iput(there + 1, mine, 2, 1, 1, next_pe());
    shmem_put_signal(context, there + 2, mine, 1, &signal, 1, SHMEM_SIGNAL_SET, next_pe());
    shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
    assert_true(there[0] == 9.0 && there[1] == 1.5 && there[2] == 1.5);
    shmem_iget(context, back, there, 1, 1, 1, next_pe());
    assert_true(back[0] == 9.0);
    shmem_barrier_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_arrives_by_every_way),
        cmocka_unit_test(test_every_size_arrives_by_every_way),
        cmocka_unit_test(test_large_transfers_arrive_whole),
        cmocka_unit_test(test_nothing_is_moved_by_zero_elements),
        cmocka_unit_test(test_a_fence_orders_puts_to_one_pe),
        cmocka_unit_test(test_quiet_completes_what_its_thread_has_posted),
        cmocka_unit_test(test_c11_chooses_the_function_by_type),
    };

    return run(tests);
}
