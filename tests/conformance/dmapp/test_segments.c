/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registration: exact descriptors known by their contents, repeated ones, reserved ones, and memory whose own
 * process may not touch it.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/conformance/dmapp/cases.h"

/* covers: dmapp_mem_register, dmapp_mem_unregister, dmapp_segdesc_compare: DMAPP_RC_SUCCESS */
static void test_descriptor_tells_exactly_what_was_registered(void **state)
{
    uint8_t *memory = malloc(100000);
    dmapp_seg_desc_t desc;
    dmapp_seg_desc_t again;
    dmapp_seg_desc_t copy;
    int flag = 7;

    (void)state;
    assert_int_equal(dmapp_mem_register(memory + 13, 5001, &desc), DMAPP_RC_SUCCESS);
    assert_ptr_equal(desc.addr, memory + 13);
    assert_int_equal(desc.len, 5001);
    memcpy(&copy, &desc, sizeof(copy));
    assert_int_equal(dmapp_segdesc_compare(&desc, &copy, &flag), DMAPP_RC_SUCCESS);
    assert_int_equal(flag, 1);
    /* Once more: one is not the other, and each ends on its own. */
    assert_int_equal(dmapp_mem_register(memory + 13, 5001, &again), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_mem_unregister(&copy), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_mem_unregister(&copy), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_unregister(&desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_get(memory, again.addr, &again, dx_job.pe, 1, DMAPP_BYTE), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_segdesc_compare(&again, &dx_job.sheap_seg, &flag), DMAPP_RC_SUCCESS);
    assert_int_equal(flag, 0);
    assert_int_equal(dmapp_mem_unregister(&again), DMAPP_RC_SUCCESS);
    free(memory);
}

/* covers: dmapp_mem_register, dmapp_mem_unregister, dmapp_segdesc_compare: DMAPP_RC_INVALID_PARAM */
/* covers: dmapp_mem_register: DMAPP_RC_PERMISSION_ERROR */
static void test_what_cannot_be_registered_is_refused(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    dmapp_seg_desc_t desc;
    dmapp_seg_desc_t wild;
    int flag;

    (void)state;
    memset(&desc, 0x11, sizeof(desc));
    wild = desc;
    assert_int_equal(dmapp_mem_register(NULL, 8, &desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_register(pages, 0, &desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_register(pages, 8, NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_register(pages, UINT64_MAX, &desc), DMAPP_RC_INVALID_PARAM);
    munmap(pages + 2 * page, page);
    assert_int_equal(dmapp_mem_register(pages, 4 * page, &desc), DMAPP_RC_INVALID_PARAM);
    mprotect(pages, page, PROT_READ);
    assert_int_equal(dmapp_mem_register(pages, 8, &desc), DMAPP_RC_PERMISSION_ERROR);
    assert_memory_equal(&desc, &wild, sizeof(desc));
    assert_int_equal(dmapp_mem_unregister(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_unregister(&wild), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_unregister(&dx_job.sheap_seg), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_unregister(&dx_job.data_seg), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_segdesc_compare(NULL, &desc, &flag), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_segdesc_compare(&desc, NULL, &flag), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_segdesc_compare(&desc, &desc, NULL), DMAPP_RC_INVALID_PARAM);
    munmap(pages, 4 * page);
}

/* covers: dmapp_mem_reserve, dmapp_mem_update: DMAPP_RC_SUCCESS, DMAPP_RC_INVALID_PARAM */
/* covers: dmapp_mem_update: DMAPP_RC_PERMISSION_ERROR */
static void test_reserved_ranges_grow(void **state)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages = mmap(NULL, 16 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    dmapp_seg_desc_t *descs = dx_alloc(sizeof(*descs) * (size_t)dx_job.npes);
    dmapp_seg_desc_t desc;
    uint64_t word = 55;

    (void)state;
    assert_int_equal(dmapp_mem_reserve(pages, 16 * page, 1, &desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_reserve(NULL, 16 * page, 0, &desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_reserve(pages, 16 * page, 0, &desc), DMAPP_RC_SUCCESS);
    assert_ptr_equal(desc.addr, pages);
    assert_int_equal(desc.len, 16 * page);
    assert_int_equal(dmapp_mem_update(pages, 4 * page, 0, &desc), DMAPP_RC_PERMISSION_ERROR);
    assert_int_equal(mprotect(pages, 4 * page, PROT_READ | PROT_WRITE), 0);
    assert_int_equal(dmapp_mem_update(pages, 4 * page, 1, &desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_update(pages, 0, 0, &desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_update(pages + 13 * page, 4 * page, 0, &desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_update(pages, page, 0, &dx_job.sheap_seg), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_update(pages, 4 * page, 0, &desc), DMAPP_RC_SUCCESS);
    for (dmapp_pe_t pe = 0; pe < dx_job.npes; pe++)
        assert_int_equal(dmapp_put(&descs[dx_job.pe], &dx_job.sheap_seg, pe, &desc, sizeof(desc), DMAPP_BYTE),
                         DMAPP_RC_SUCCESS);
    dx_barrier();
    assert_int_equal(dmapp_put(descs[next_pe()].addr, &descs[next_pe()], next_pe(), &word, 1, DMAPP_QW),
                     DMAPP_RC_SUCCESS);
    dx_barrier();
    assert_int_equal(*(uint64_t *)(void *)pages, 55);
    assert_int_equal(dmapp_mem_unregister(&desc), DMAPP_RC_SUCCESS);
    munmap(pages, 16 * page);
    dx_free(descs);
}

/* More handles than anything here keeps, each used once or twice. */
static void test_many_registrations_come_and_go(void **state)
{
    enum { ROUNDS = 300 };
    dmapp_seg_desc_t *inbox = dx_alloc(sizeof(*inbox));
    uint64_t *memory = malloc(8192);

    (void)state;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        dmapp_seg_desc_t desc;
        uint64_t word = i * 10 + (uint64_t)dx_job.pe;

        memory[i] = 0;
        assert_int_equal(dmapp_mem_register(&memory[i], 64, &desc), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_put(inbox, &dx_job.sheap_seg, next_pe(), &desc, sizeof(desc), DMAPP_BYTE),
                         DMAPP_RC_SUCCESS);
        dx_barrier();
        /* That is the previous PE's memory. */
        assert_int_equal(dmapp_put(inbox->addr, inbox, previous_pe(), &word, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
        dx_barrier();
        assert_int_equal(memory[i], i * 10 + (uint64_t)next_pe());
        assert_int_equal(dmapp_mem_unregister(&desc), DMAPP_RC_SUCCESS);
    }
    dx_free(inbox);
    free(memory);
}

/* Static data that has a value before main(), beside data that has none. */
static uint64_t initialised[512] = { 1, 2, 3 };

static void test_initialised_data_kept_their_values(void **state)
{
    uint64_t word = 0;

    (void)state;
    assert_int_equal(initialised[2], 3);
    assert_int_equal(dmapp_get(&word, &initialised[1], &dx_job.data_seg, next_pe(), 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_int_equal(word, 2);
    dx_barrier();
    assert_int_equal(dmapp_aadd_qw(&initialised[1], &dx_job.data_seg, next_pe(), 40), DMAPP_RC_SUCCESS);
    dx_barrier();
    assert_int_equal(initialised[1], 42);
    initialised[1] = 2;
    dx_barrier();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_descriptor_tells_exactly_what_was_registered),
        cmocka_unit_test(test_what_cannot_be_registered_is_refused),
        cmocka_unit_test(test_reserved_ranges_grow),
        cmocka_unit_test(test_many_registrations_come_and_go),
        cmocka_unit_test(test_initialised_data_kept_their_values),
    };

    return dx_run(tests, NULL);
}
