/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks: mutual exclusion, order, tables, what is refused. Specification: spec/dmapp.md 4.13, trap T12.
 */
#include "tests/common/dmapp.h"

#define ROUNDS 200

static dmapp_lock_desc_t static_locks[8];
static uint64_t static_counters[8];

/* Read, think, write: loses additions unless it happens under a lock. */
static void add_one(uint64_t *counter, dmapp_seg_desc_t *seg, dmapp_pe_t pe)
{
    dx_put_word(counter, seg, pe, dx_get_word(counter, seg, pe) + 1);
}

static void contend(dmapp_lock_desc_t *lock, uint64_t *counter, dmapp_seg_desc_t *seg, dmapp_pe_t host)
{
    dmapp_lock_handle_t handle;

    dx_barrier();
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(dmapp_lock_acquire(lock, seg, host, 0, &handle), DMAPP_RC_SUCCESS);
        add_one(counter, seg, host);
        assert_int_equal(dmapp_lock_release(handle, 0), DMAPP_RC_SUCCESS);
    }
    dx_barrier();
    assert_int_equal(dx_get_word(counter, seg, host), (uint64_t)ROUNDS * (unsigned)dx_job.npes);
    assert_int_equal(dx_get_word(lock, seg, host), 0);
    dx_barrier();
}

static void test_one_at_a_time_on_the_heap(void **state)
{
    uint64_t *words = dx_alloc(2 * sizeof(*words));

    (void)state;
    assert_int_equal(sizeof(dmapp_lock_desc_t), 8);
    for (dmapp_pe_t host = 0; host < dx_job.npes; host++)
        contend((dmapp_lock_desc_t *)&words[0], &words[1], &dx_job.sheap_seg, host);
    dx_free(words);
}

static void test_one_at_a_time_in_static_data(void **state)
{
    (void)state;
    contend(&static_locks[3], &static_counters[3], &dx_job.data_seg, dx_job.npes - 1);
}

static void test_one_at_a_time_in_registered_memory(void **state)
{
    struct {
        dmapp_lock_desc_t *lock;
        dmapp_seg_desc_t seg;
    } *board = dx_alloc(sizeof(*board)), theirs;
    uint64_t *mem = calloc(2, sizeof(*mem));

    (void)state;
    assert_non_null(mem);
    assert_int_equal(dmapp_mem_register(mem, 2 * sizeof(*mem), &board->seg), DMAPP_RC_SUCCESS);
    board->lock = (dmapp_lock_desc_t *)mem;
    dx_barrier();
    assert_int_equal(dmapp_get(&theirs, board, &dx_job.sheap_seg, 0, sizeof(theirs), DMAPP_BYTE), DMAPP_RC_SUCCESS);
    contend(theirs.lock, (uint64_t *)theirs.lock + 1, &theirs.seg, 0);
    assert_int_equal(dmapp_mem_unregister(&board->seg), DMAPP_RC_SUCCESS);
    dx_free(board);
    free(mem);
}

static void test_a_held_lock_is_busy_for_those_who_try(void **state)
{
    dmapp_lock_desc_t *lock = dx_alloc(sizeof(*lock));
    dmapp_lock_handle_t handle = NULL;

    (void)state;
    if (dx_job.pe == 0)
        assert_int_equal(dmapp_lock_try(lock, &dx_job.sheap_seg, 1, 0, &handle), DMAPP_RC_SUCCESS);
    dx_barrier();
    if (dx_job.pe != 0) {
        assert_int_equal(dmapp_lock_try(lock, &dx_job.sheap_seg, 1, 0, &handle), DMAPP_RC_BUSY);
        assert_null(handle);
    }
    dx_barrier();
    if (dx_job.pe == 0) {
        assert_int_equal(dmapp_lock_try(lock, &dx_job.sheap_seg, 1, 0, &handle), DMAPP_RC_BUSY);
        assert_int_equal(dmapp_lock_release(handle, 0), DMAPP_RC_SUCCESS);
    }
    dx_barrier();
    if (dx_job.pe == dx_job.npes - 1) {
        assert_int_equal(dmapp_lock_try(lock, &dx_job.sheap_seg, 1, 0, &handle), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_lock_release(handle, 0), DMAPP_RC_SUCCESS);
    }
    dx_free(lock);
}

/* Those who wait get it in the order in which they came: PE 0 calls one after the other while it holds the lock. */
static void test_nobody_is_passed_over(void **state)
{
    uint64_t *words = dx_alloc(3 * sizeof(*words)); /* lock, places given, "queue up" */
    dmapp_lock_desc_t *lock = (dmapp_lock_desc_t *)&words[0];
    dmapp_seg_desc_t *seg = &dx_job.sheap_seg;
    dmapp_lock_handle_t handle;
    int64_t place;

    (void)state;
    if (dx_job.pe == 0) {
        assert_int_equal(dmapp_lock_acquire(lock, seg, 0, 0, &handle), DMAPP_RC_SUCCESS);
        for (dmapp_pe_t pe = dx_job.npes - 1; pe > 0; pe--) {
            uint64_t before = dx_get_word(lock, seg, 0);

            dx_put_word(&words[2], seg, pe, 1);
            while (dx_get_word(lock, seg, 0) == before)
                ;
        }
    } else {
        while (*(volatile uint64_t *)&words[2] == 0)
            assert_int_equal(dmapp_progress(), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_lock_acquire(lock, seg, 0, 0, &handle), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_afadd_qw(&place, &words[1], seg, 0, 1), DMAPP_RC_SUCCESS);
        assert_int_equal(place, dx_job.npes - 1 - dx_job.pe);
    }
    assert_int_equal(dmapp_lock_release(handle, 0), DMAPP_RC_SUCCESS);
    dx_free(words);
}

static void test_several_locks_are_held_at_once_and_released_by_place(void **state)
{
    dmapp_lock_desc_t *locks = dx_alloc(16 * sizeof(*locks));
    dmapp_lock_handle_t handles[16];

    (void)state;
    for (int i = 0; i < 16; i++)
        assert_int_equal(dmapp_lock_acquire(&locks[i], &dx_job.sheap_seg, dx_job.pe, 0, &handles[i]), DMAPP_RC_SUCCESS);
    for (int i = 15; i >= 0; i--) {
        if (i % 2)
            assert_int_equal(dmapp_lock_release(handles[i], 0), DMAPP_RC_SUCCESS);
        else
            assert_int_equal(dmapp_lock_release_addr(&locks[i], dx_job.pe, 0), DMAPP_RC_SUCCESS);
        assert_int_equal(locks[i].word, 0);
    }
    assert_int_equal(dmapp_lock_release_addr(&locks[0], dx_job.pe, 0), DMAPP_RC_NOT_FOUND);
    dx_free(locks);
}

/* The default of DMAPP_MAX_LOCKS. */
static void test_a_process_holds_at_most_128(void **state)
{
    dmapp_lock_desc_t *locks = dx_alloc(129 * sizeof(*locks));
    dmapp_lock_handle_t handles[129] = { 0 };

    (void)state;
    for (int i = 0; i < 128; i++)
        assert_int_equal(dmapp_lock_acquire(&locks[i], &dx_job.sheap_seg, dx_job.pe, 0, &handles[i]), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_acquire(&locks[128], &dx_job.sheap_seg, dx_job.pe, 0, &handles[128]),
                     DMAPP_RC_NO_SPACE);
    assert_int_equal(dmapp_lock_try(&locks[128], &dx_job.sheap_seg, dx_job.pe, 0, &handles[128]), DMAPP_RC_NO_SPACE);
    assert_int_equal(locks[128].word, 0);
    for (int i = 0; i < 128; i++)
        assert_int_equal(dmapp_lock_release(handles[i], 0), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_try(&locks[128], &dx_job.sheap_seg, dx_job.pe, 0, &handles[128]), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_release(handles[128], 0), DMAPP_RC_SUCCESS);
    dx_free(locks);
}

/* covers: dmapp_lock_acquire, dmapp_lock_try: DMAPP_RC_INVALID_PARAM, DMAPP_RC_ALIGNMENT_ERROR */
static void test_what_cannot_be_a_lock_is_refused(void **state)
{
    dmapp_lock_desc_t *locks = dx_alloc(4 * sizeof(*locks));
    dmapp_lock_desc_t *odd = (dmapp_lock_desc_t *)(void *)((uint8_t *)locks + 4);
    dmapp_seg_desc_t *seg = &dx_job.sheap_seg, nonsense;
    dmapp_lock_handle_t handle = NULL;
    int elsewhere;
    const struct {
        const char *name;
        dmapp_lock_desc_t *lock;
        dmapp_seg_desc_t *seg;
        dmapp_pe_t pe;
        dmapp_lock_handle_t *out;
        dmapp_return_t rc;
    } rows[] = {
        { "no lock", NULL, seg, 0, &handle, DMAPP_RC_INVALID_PARAM },
        { "no segment", locks, NULL, 0, &handle, DMAPP_RC_INVALID_PARAM },
        { "PE -1", locks, seg, -1, &handle, DMAPP_RC_INVALID_PARAM },
        { "PE beyond the last", locks, seg, dx_job.npes, &handle, DMAPP_RC_INVALID_PARAM },
        { "no handle", locks, seg, 0, NULL, DMAPP_RC_INVALID_PARAM },
        { "segment of rubbish", locks, &nonsense, 0, &handle, DMAPP_RC_INVALID_PARAM },
        { "outside the segment", (void *)&elsewhere, seg, 0, &handle, DMAPP_RC_INVALID_PARAM },
        { "not aligned", odd, seg, 0, &handle, DMAPP_RC_ALIGNMENT_ERROR },
    };

    (void)state;
    memset(&nonsense, 0x5a, sizeof(nonsense));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_row_equal(rows[i].name, dmapp_lock_acquire(rows[i].lock, rows[i].seg, rows[i].pe, 0, rows[i].out),
                         rows[i].rc);
        assert_row_equal(rows[i].name, dmapp_lock_try(rows[i].lock, rows[i].seg, rows[i].pe, 0, rows[i].out),
                         rows[i].rc);
    }
    assert_null(handle);
    assert_int_equal(dmapp_lock_release(NULL, 0), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_lock_release((dmapp_lock_handle_t)(void *)&elsewhere, 0), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_lock_release_addr(NULL, 0, 0), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_lock_release_addr(locks, dx_job.npes, 0), DMAPP_RC_INVALID_PARAM);
    dx_barrier();
    assert_int_equal(locks[0].word, 0);
    assert_int_equal(locks[1].word, 0);
    /* A handle ends with its release. Unknown flags are ignored. */
    assert_int_equal(dmapp_lock_acquire(locks, seg, dx_job.pe, 0x80, &handle), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_release(handle, 0x80), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_release(handle, 0), DMAPP_RC_INVALID_PARAM);
    dx_free(locks);
}

/* Work that was done under the lock is seen by who gets it next, whatever way it was done. */
static void test_a_lock_orders_implicit_puts_after_a_gsync(void **state)
{
    uint64_t *words = dx_alloc(34 * sizeof(*words));
    dmapp_lock_desc_t *lock = (dmapp_lock_desc_t *)&words[0];
    dmapp_lock_handle_t handle;
    uint64_t data[32];

    (void)state;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(dmapp_lock_acquire(lock, &dx_job.sheap_seg, 0, 0, &handle), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_get(data, &words[2], &dx_job.sheap_seg, 0, 32, DMAPP_QW), DMAPP_RC_SUCCESS);
        for (int k = 1; k < 32; k++)
            assert_int_equal(data[k], data[0]);
        for (int k = 0; k < 32; k++)
            data[k]++;
        for (int k = 0; k < 32; k++)
            assert_int_equal(dmapp_put_nbi(&words[2 + k], &dx_job.sheap_seg, 0, &data[k], 1, DMAPP_QW),
                             DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_lock_release(handle, 0), DMAPP_RC_SUCCESS);
    }
    dx_barrier();
    assert_int_equal(dx_get_word(&words[2], &dx_job.sheap_seg, 0), 50 * (unsigned)dx_job.npes);
    dx_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time_on_the_heap),
        cmocka_unit_test(test_one_at_a_time_in_static_data),
        cmocka_unit_test(test_one_at_a_time_in_registered_memory),
        cmocka_unit_test(test_a_held_lock_is_busy_for_those_who_try),
        cmocka_unit_test(test_nobody_is_passed_over),
        cmocka_unit_test(test_several_locks_are_held_at_once_and_released_by_place),
        cmocka_unit_test(test_a_process_holds_at_most_128),
        cmocka_unit_test(test_what_cannot_be_a_lock_is_refused),
        cmocka_unit_test(test_a_lock_orders_implicit_puts_after_a_gsync),
    };

    return dx_run(tests, NULL);
}
