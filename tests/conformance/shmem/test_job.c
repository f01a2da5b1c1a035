/* SPDX-License-Identifier: BSD-3-Clause */
/* Identity, the symmetric heap beside DMAPP, locks, cache calls, older names, the profiling interface. */
#include "tests/conformance/shmem/cases.h"

#include <mpp/shmem.h>
#include <pshmem.h>

#include <dmapp.h>

static int n_profiled;

/* As a tool does. */
void shmem_long_put(long *dest, const long *source, size_t nelems, int pe)
{
    n_profiled++;
    pshmem_long_put(dest, source, nelems, pe);
}

static void test_identity_is_the_launchers(void **state)
{
    char name[SHMEM_MAX_NAME_LEN];
    int major;
    int minor;
    int level;

    (void)state;
    assert_int_equal(me, atoi(getenv("EMUNIC_RANK")));
    assert_int_equal(my_pe(), me);
    assert_int_equal(_my_pe(), me);
    assert_int_equal(num_pes(), n_pes);
    assert_int_equal(_num_pes(), n_pes);
    shmem_info_get_version(&major, &minor);
    assert_int_equal(major * 10 + minor, 15);
    shmem_info_get_name(name);
    assert_string_equal(name, SHMEM_VENDOR_STRING);
    shmem_query_thread(&level);
    assert_int_equal(level, SHMEM_THREAD_MULTIPLE);
    shmem_init();
    start_pes(0);
    shmem_pcontrol(1);
    assert_true(shmem_init_thread(17, &level) != 0);
}

static void test_what_is_symmetric_is_accessible(void **state)
{
    static int fixed;
    int local = 0;
    void *block = shmem_malloc(8);

    (void)state;
    assert_int_equal(shmem_pe_accessible(n_pes - 1), 1);
    assert_int_equal(shmem_pe_accessible(n_pes), 0);
    assert_int_equal(shmem_pe_accessible(-1), 0);
    assert_int_equal(shmem_addr_accessible(block, 0), 1);
    assert_int_equal(shmem_addr_accessible(&fixed, n_pes - 1), 1);
    assert_int_equal(shmem_addr_accessible(&local, 0), 0);
    assert_ptr_equal(shmem_ptr(&fixed, me), &fixed);
    assert_null(shmem_ptr(&local, me));
    assert_null(shmem_ptr(block, n_pes));
    shmem_free(block);
}

static void test_a_pointer_shows_the_peers_memory(void **state)
{
    long *block = shmem_malloc(sizeof(*block));
    long *there = shmem_ptr(block, next_pe());

    (void)state;
    *block = -1;
    shmem_barrier_all();
    if (there)
        *there = me;
    else
        shmem_long_p(block, me, next_pe());
    shmem_barrier_all();
    assert_int_equal(*block, previous_pe());
    shmem_free(block);
}

static void test_blocks_have_one_place_in_all_pes(void **state)
{
    static uint64_t places[64];
    static uint64_t place;
    void *blocks[6];

    (void)state;
    blocks[0] = shmem_malloc(100);
    blocks[1] = shmem_align(4096, 100);
    blocks[2] = shmem_calloc(25, 4);
    blocks[3] = shmem_malloc_with_hints(100, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
    blocks[4] = shmalloc(100);
    blocks[5] = shmemalign(256, 100);
    assert_int_equal((uintptr_t)blocks[1] % 4096, 0);
    assert_int_equal((uintptr_t)blocks[5] % 256, 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(((char *)blocks[2])[i], 0);
    for (int i = 0; i < 6; i++) {
        assert_non_null(blocks[i]);
        memset(blocks[i], i + 1, 100);
        place = (uint64_t)(uintptr_t)blocks[i];
        shmem_barrier_all();
        shmem_fcollect(SHMEM_TEAM_WORLD, places, &place, 1);
        assert_int_equal(places[next_pe()], place);
    }
    blocks[0] = shmem_realloc(blocks[0], 5000);
    blocks[1] = shrealloc(blocks[1], 5000);
    assert_int_equal(((char *)blocks[0])[99], 1);
    assert_int_equal(((char *)blocks[1])[99], 2);
    for (int i = 0; i < 5; i++)
        shmem_free(blocks[i]);
    shfree(blocks[5]);
    assert_null(shmem_malloc(0));
    assert_null(shmem_calloc(0, 8));
    assert_null(shmem_calloc(SIZE_MAX, 8));
    assert_null(shmem_malloc(1ull << 50));
    assert_null(shmem_realloc(shmem_realloc(NULL, 10), 0));
    assert_null(shmem_align(3, 10));
    shmem_free(NULL);
}

static void test_dmapp_and_shmem_share_the_heap(void **state)
{
    dmapp_jobinfo_t job;
    long *block;
    long value = me + 50;

    (void)state;
    assert_int_equal(dmapp_get_jobinfo(&job), DMAPP_RC_SUCCESS);
    assert_int_equal(job.pe, me);
    block = dmapp_sheap_malloc(sizeof(*block));
    shmem_barrier_all();
    assert_int_equal(dmapp_put(block, &job.sheap_seg, next_pe(), &value, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    shmem_barrier_all();
    assert_int_equal(*block, previous_pe() + 50);
    assert_int_equal(shmem_long_g(block, next_pe()), value);
    shmem_barrier_all();
    dmapp_sheap_free(block);
}

static void test_a_lock_lets_one_in_at_a_time(void **state)
{
    static long locks[3];
    static long counters[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        shmem_barrier_all();
        for (int round = 0; round < 30; round++) {
            if (round % 3 != 0 || shmem_test_lock(&locks[i]) != 0)
                shmem_set_lock(&locks[i]);
            shmem_long_p(&counters[i], shmem_long_g(&counters[i], 0) + 1, 0);
            shmem_clear_lock(&locks[i]);
        }
        shmem_barrier_all();
        assert_int_equal(shmem_long_g(&counters[i], 0), 30L * n_pes);
        assert_int_equal(locks[i], 0);
    }
    shmem_barrier_all();
    if (me == 0)
        shmem_set_lock(&locks[0]);
    shmem_barrier_all();
    if (me != 0)
        assert_int_equal(shmem_test_lock(&locks[0]), 1);
    shmem_barrier_all();
    if (me == 0)
        shmem_clear_lock(&locks[0]);
    shmem_barrier_all();
}

static void test_cache_calls_do_no_harm(void **state)
{
    static long line;

    (void)state;
    shmem_set_cache_inv();
    shmem_set_cache_line_inv(&line);
    shmem_clear_cache_line_inv(&line);
    shmem_clear_cache_inv();
    shmem_udcflush();
    shmem_udcflush_line(&line);
}

static void test_a_tool_can_stand_between(void **state)
{
    static long word;
    long value = me;

    (void)state;
    n_profiled = 0;
    shmem_long_put(&word, &value, 1, next_pe());
    assert_int_equal(n_profiled, 1);
    pshmem_barrier_all();
    assert_int_equal(word, previous_pe());
    assert_int_equal(pshmem_my_pe(), me);
    shmem_barrier_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity_is_the_launchers),
        cmocka_unit_test(test_what_is_symmetric_is_accessible),
        cmocka_unit_test(test_a_pointer_shows_the_peers_memory),
        cmocka_unit_test(test_blocks_have_one_place_in_all_pes),
        cmocka_unit_test(test_dmapp_and_shmem_share_the_heap),
        cmocka_unit_test(test_a_lock_lets_one_in_at_a_time),
        cmocka_unit_test(test_cache_calls_do_no_harm),
        cmocka_unit_test(test_a_tool_can_stand_between),
    };

    return run(tests);
}
