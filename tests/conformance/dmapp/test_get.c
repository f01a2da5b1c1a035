/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contiguous gets: every type and flavour from every kind of memory, odd addresses and lengths, to any local
 * memory, and not a byte more than was asked for.
 */
#include "tests/conformance/dmapp/cases.h"

static dmapp_return_t get(enum flavour flavour, void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe,
                          uint64_t nelems, dmapp_type_t type)
{
    dmapp_syncid_handle_t syncid = NULL;
    dmapp_return_t rc = flavour == BLOCKING ? dmapp_get(target, source, seg, pe, nelems, type) :
                        flavour == NB       ? dmapp_get_nb(target, source, seg, pe, nelems, type, &syncid) :
                                              dmapp_get_nbi(target, source, seg, pe, nelems, type);

    return rc == DMAPP_RC_SUCCESS ? complete(flavour, &syncid) : rc;
}

/* covers: dmapp_get*: DMAPP_RC_SUCCESS */
static void test_every_type_and_flavour_fetches_from_every_kind_of_memory(void **state)
{
    static const uint64_t counts[] = { 1, 2, 3, 5, 31, 33, 127, 4096 };
    uint8_t *target = malloc(4096 * 16 + 2);

    (void)state;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++)
        fill(own_area(kind), AREA_BYTES, (uint64_t)(dx_job.pe * KINDS + (int)kind));
    dx_barrier();
    for (enum kind kind = HEAP; kind < KINDS; kind++) {
        struct remote from = remote_of(kind, next_pe());
        uint64_t seed = (uint64_t)(next_pe() * KINDS + (int)kind);

        for (unsigned t = 0; t < COUNT_OF(types); t++) {
            for (unsigned c = 0; c < COUNT_OF(counts) * FLAVOURS; c++) {
                uint64_t nelems = counts[c / FLAVOURS];
                size_t bytes = nelems * bytes_of[t];
                size_t offset = 7 * c + t; /* odd ones among them */

                memset(target, 0xee, bytes + 2);
                assert_int_equal(get((enum flavour)(c % FLAVOURS), target + 1, from.addr + offset, &from.seg, next_pe(),
                                     nelems, types[t]),
                                 DMAPP_RC_SUCCESS);
                for (size_t i = 0; i < bytes; i++)
                    assert_int_equal(target[1 + i], pattern(offset + i, seed));
                assert_int_equal(target[0], 0xee);
                assert_int_equal(target[bytes + 1], 0xee);
            }
        }
    }
    close_areas();
    free(target);
}

/* The first and the last byte of a registration that begins and ends anywhere. */
static void test_ends_of_a_segment_can_be_fetched(void **state)
{
    uint8_t *memory = malloc(64);
    dmapp_seg_desc_t *descs = dx_alloc(sizeof(*descs) * (size_t)dx_job.npes);
    dmapp_seg_desc_t own;
    dmapp_seg_desc_t *theirs = &descs[next_pe()];
    uint8_t byte = 0;

    (void)state;
    fill(memory, 64, (uint64_t)dx_job.pe);
    assert_int_equal(dmapp_mem_register(memory + 3, 35, &own), DMAPP_RC_SUCCESS);
    for (dmapp_pe_t pe = 0; pe < dx_job.npes; pe++)
        assert_int_equal(dmapp_put(&descs[dx_job.pe], &dx_job.sheap_seg, pe, &own, sizeof(own), DMAPP_BYTE),
                         DMAPP_RC_SUCCESS);
    dx_barrier();
    assert_int_equal(dmapp_get(&byte, theirs->addr, theirs, next_pe(), 1, DMAPP_BYTE), DMAPP_RC_SUCCESS);
    assert_int_equal(byte, pattern(3, (uint64_t)next_pe()));
    assert_int_equal(dmapp_get(&byte, (uint8_t *)theirs->addr + 34, theirs, next_pe(), 1, DMAPP_BYTE),
                     DMAPP_RC_SUCCESS);
    assert_int_equal(byte, pattern(37, (uint64_t)next_pe()));
    assert_int_equal(dmapp_get(&byte, (uint8_t *)theirs->addr + 35, theirs, next_pe(), 1, DMAPP_BYTE),
                     DMAPP_RC_INVALID_PARAM);
    dx_barrier();
    assert_int_equal(dmapp_mem_unregister(&own), DMAPP_RC_SUCCESS);
    dx_free(descs);
    free(memory);
}

static void test_large_gets_arrive_whole(void **state)
{
    const size_t bytes = (9u << 20) + 13;
    uint8_t *source = dx_alloc(bytes + 5);
    uint8_t *target = malloc(bytes);
    dmapp_seg_desc_t desc;

    (void)state;
    fill(source + 5, bytes, (uint64_t)dx_job.pe);
    for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++) {
        for (unsigned is_registered = 0; is_registered < 2; is_registered++) {
            size_t n = is_registered ? bytes & ~(size_t)15 : bytes;

            memset(target, 0, bytes);
            if (is_registered)
                assert_int_equal(dmapp_mem_register(target, bytes, &desc), DMAPP_RC_SUCCESS);
            dx_barrier();
            assert_int_equal(get(flavour, target, source + 5, &dx_job.sheap_seg, next_pe(), n, DMAPP_BYTE),
                             DMAPP_RC_SUCCESS);
            expect(target, n, (uint64_t)next_pe());
            if (is_registered)
                assert_int_equal(dmapp_mem_unregister(&desc), DMAPP_RC_SUCCESS);
        }
    }
    dx_free(source);
    free(target);
}

static void test_no_elements_succeed_without_a_look_at_pointers(void **state)
{
    dmapp_syncid_handle_t syncid = NULL;

    (void)state;
    assert_int_equal(dmapp_get(NULL, NULL, NULL, next_pe(), 0, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_get_nbi(NULL, NULL, NULL, next_pe(), 0, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_get_nb(NULL, NULL, NULL, next_pe(), 0, DMAPP_QW, &syncid), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_syncid_wait(&syncid), DMAPP_RC_SUCCESS);
}

/* A get of every word, from a page that the caller has never touched. */
static void test_many_gets_are_outstanding_at_once(void **state)
{
    enum { N = 8192 };
    uint64_t *source = dx_alloc(N * 8);
    uint64_t *target = calloc(N, 8);

    (void)state;
    for (uint64_t i = 0; i < N; i++)
        source[i] = i * 3 + (uint64_t)dx_job.pe;
    dx_barrier();
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(dmapp_get_flag_nbi(&target[i], &source[i], &dx_job.sheap_seg, next_pe(), 1, DMAPP_QW),
                         DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(target[i], i * 3 + (uint64_t)next_pe());
    dx_free(source);
    free(target);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_type_and_flavour_fetches_from_every_kind_of_memory),
        cmocka_unit_test(test_ends_of_a_segment_can_be_fetched),
        cmocka_unit_test(test_large_gets_arrive_whole),
        cmocka_unit_test(test_no_elements_succeed_without_a_look_at_pointers),
        cmocka_unit_test(test_many_gets_are_outstanding_at_once),
    };

    return dx_run(tests, NULL);
}
