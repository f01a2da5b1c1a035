/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strided, indexed and PE-list transfers and puts with flag against a model: what is between the elements stays as
 * it was.
 */
#include <sched.h>

#include "tests/conformance/dmapp/cases.h"

/* Both sides of a transfer, as arrays of elements. */
enum { ELEMENTS = 1024 };

static dmapp_return_t iput(enum flavour flavour, void *target, dmapp_seg_desc_t *seg, dmapp_pe_t pe, void *source,
                           ptrdiff_t tst, ptrdiff_t sst, uint64_t n, dmapp_type_t type)
{
    dmapp_syncid_handle_t syncid = NULL;
    dmapp_return_t rc = flavour == BLOCKING ? dmapp_iput(target, seg, pe, source, tst, sst, n, type) :
                        flavour == NB       ? dmapp_iput_nb(target, seg, pe, source, tst, sst, n, type, &syncid) :
                                              dmapp_iput_nbi(target, seg, pe, source, tst, sst, n, type);

    return rc == DMAPP_RC_SUCCESS ? complete(flavour, &syncid) : rc;
}

static dmapp_return_t iget(enum flavour flavour, void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe,
                           ptrdiff_t tst, ptrdiff_t sst, uint64_t n, dmapp_type_t type)
{
    dmapp_syncid_handle_t syncid = NULL;
    dmapp_return_t rc = flavour == BLOCKING ? dmapp_iget(target, source, seg, pe, tst, sst, n, type) :
                        flavour == NB       ? dmapp_iget_nb(target, source, seg, pe, tst, sst, n, type, &syncid) :
                                              dmapp_iget_nbi(target, source, seg, pe, tst, sst, n, type);

    return rc == DMAPP_RC_SUCCESS ? complete(flavour, &syncid) : rc;
}

static dmapp_return_t ixput(enum flavour flavour, void *target, dmapp_seg_desc_t *seg, dmapp_pe_t pe, void *source,
                            ptrdiff_t *idx, uint64_t n, dmapp_type_t type)
{
    dmapp_syncid_handle_t syncid = NULL;
    dmapp_return_t rc = flavour == BLOCKING ? dmapp_ixput(target, seg, pe, source, idx, n, type) :
                        flavour == NB       ? dmapp_ixput_nb(target, seg, pe, source, idx, n, type, &syncid) :
                                              dmapp_ixput_nbi(target, seg, pe, source, idx, n, type);

    return rc == DMAPP_RC_SUCCESS ? complete(flavour, &syncid) : rc;
}

static dmapp_return_t ixget(enum flavour flavour, void *target, void *source, dmapp_seg_desc_t *seg, dmapp_pe_t pe,
                            ptrdiff_t *idx, uint64_t n, dmapp_type_t type)
{
    dmapp_syncid_handle_t syncid = NULL;
    dmapp_return_t rc = flavour == BLOCKING ? dmapp_ixget(target, source, seg, pe, idx, n, type) :
                        flavour == NB       ? dmapp_ixget_nb(target, source, seg, pe, idx, n, type, &syncid) :
                                              dmapp_ixget_nbi(target, source, seg, pe, idx, n, type);

    return rc == DMAPP_RC_SUCCESS ? complete(flavour, &syncid) : rc;
}

static const ptrdiff_t strides[][2] = { { 1, 1 }, { 1, 3 }, { 2, 1 }, { 5, 2 }, { 7, 7 } };

/* covers: dmapp_iput*: DMAPP_RC_SUCCESS */
static void test_strided_puts_touch_their_elements_alone(void **state)
{
    uint8_t *source = malloc(ELEMENTS * 16);
    uint8_t *model = malloc(ELEMENTS * 16);

    (void)state;
    open_areas();
    fill(source, ELEMENTS * 16, 9);
    for (unsigned i = 0; i < COUNT_OF(types) * COUNT_OF(strides) * FLAVOURS; i++) {
        size_t size = bytes_of[i % COUNT_OF(types)];
        const ptrdiff_t *stride = strides[i / COUNT_OF(types) % COUNT_OF(strides)];
        enum flavour flavour = (enum flavour)(i / COUNT_OF(types) / COUNT_OF(strides));
        enum kind kind = (enum kind)(i % KINDS);
        struct remote to = remote_of(kind, next_pe());
        uint64_t n = 100 + i % 7;

        memset(own_area(kind), 0x77, ELEMENTS * 16);
        memset(model, 0x77, ELEMENTS * 16);
        for (uint64_t k = 0; k < n; k++)
            memcpy(model + k * (size_t)stride[0] * size, source + k * (size_t)stride[1] * size, size);
        dx_barrier();
        assert_int_equal(
            iput(flavour, to.addr, &to.seg, next_pe(), source, stride[0], stride[1], n, types[i % COUNT_OF(types)]),
            DMAPP_RC_SUCCESS);
        dx_barrier();
        assert_memory_equal(own_area(kind), model, ELEMENTS * 16);
        dx_barrier();
    }
    close_areas();
    free(source);
    free(model);
}

/* covers: dmapp_iget*: DMAPP_RC_SUCCESS */
static void test_strided_gets_touch_their_elements_alone(void **state)
{
    uint8_t *target = malloc(ELEMENTS * 16 + 1);
    uint8_t *model = malloc(ELEMENTS * 16 + 1);
    uint8_t *theirs = malloc(ELEMENTS * 16);

    (void)state;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++)
        fill(own_area(kind), ELEMENTS * 16, (uint64_t)(dx_job.pe + 100 * (int)kind));
    dx_barrier();
    for (unsigned i = 0; i < COUNT_OF(types) * COUNT_OF(strides) * FLAVOURS; i++) {
        size_t size = bytes_of[i % COUNT_OF(types)];
        const ptrdiff_t *stride = strides[i / COUNT_OF(types) % COUNT_OF(strides)];
        enum kind kind = (enum kind)(i % KINDS);
        struct remote from = remote_of(kind, next_pe());
        unsigned odd = size == 1;
        uint64_t n = 100 + i % 7;

        fill(theirs, ELEMENTS * 16, (uint64_t)(next_pe() + 100 * (int)kind));
        memset(target, 0x77, ELEMENTS * 16 + 1);
        memset(model, 0x77, ELEMENTS * 16 + 1);
        for (uint64_t k = 0; k < n; k++)
            memcpy(model + odd + k * (size_t)stride[0] * size, theirs + odd + k * (size_t)stride[1] * size, size);
        assert_int_equal(iget((enum flavour)(i / COUNT_OF(types) / COUNT_OF(strides)), target + odd, from.addr + odd,
                              &from.seg, next_pe(), stride[0], stride[1], n, types[i % COUNT_OF(types)]),
                         DMAPP_RC_SUCCESS);
        assert_memory_equal(target, model, ELEMENTS * 16 + 1);
    }
    close_areas();
    free(target);
    free(model);
    free(theirs);
}

/* covers: dmapp_ixput*, dmapp_ixget*: DMAPP_RC_SUCCESS */
static void test_indexed_transfers_find_their_elements(void **state)
{
    enum { N = 50 };
    uint8_t dense[N * 16];
    uint8_t back[N * 16];
    ptrdiff_t indices[N];
    ptrdiff_t copy[N];

    (void)state;
    open_areas();
    for (unsigned i = 0; i < COUNT_OF(types) * FLAVOURS * KINDS; i++) {
        dmapp_type_t type = types[i % COUNT_OF(types)];
        size_t size = bytes_of[i % COUNT_OF(types)];
        enum flavour flavour = (enum flavour)(i / COUNT_OF(types) % FLAVOURS);
        struct remote to = remote_of((enum kind)(i / COUNT_OF(types) / FLAVOURS), next_pe());

        fill(dense, sizeof(dense), i);
        for (unsigned k = 0; k < N; k++)
            indices[k] = (ptrdiff_t)((k * 37 + i) % 997);
        memcpy(copy, indices, sizeof(copy));
        assert_int_equal(ixput(flavour, to.addr, &to.seg, next_pe(), dense, copy, N, type), DMAPP_RC_SUCCESS);
        for (unsigned k = 0; k < N; k++) {
            uint8_t element[16];

            assert_int_equal(dmapp_get(element, to.addr + (size_t)indices[k] * size, &to.seg, next_pe(), 1, type),
                             DMAPP_RC_SUCCESS);
            assert_memory_equal(element, dense + k * size, size);
        }
        memset(back, 0, sizeof(back));
        assert_int_equal(ixget(flavour, back, to.addr, &to.seg, next_pe(), copy, N, type), DMAPP_RC_SUCCESS);
        assert_memory_equal(back, dense, N * size);
        dx_barrier();
    }
    close_areas();
}

/* The array of indices is the caller's again when the call returns. */
static void test_indices_are_read_before_the_call_returns(void **state)
{
    uint64_t *target = dx_alloc(64 * 8);
    uint64_t source[64];
    ptrdiff_t indices[64];

    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        source[i] = i;
        indices[i] = 63 - i;
    }
    assert_int_equal(dmapp_ixput_nbi(target, &dx_job.sheap_seg, next_pe(), source, indices, 64, DMAPP_QW),
                     DMAPP_RC_SUCCESS);
    memset(indices, 0x7f, sizeof(indices));
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
    dx_barrier();
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(target[63 - i], i);
    dx_free(target);
}

/* ---- lists of PEs ---- */

/* covers: dmapp_put_ixpe*, dmapp_scatter_ixpe*, dmapp_gather_ixpe*: DMAPP_RC_SUCCESS */
static void test_lists_of_pes_reach_each_of_them(void **state)
{
    enum { N = 5 };
    size_t npes = (size_t)dx_job.npes;
    uint64_t *area = dx_alloc(FLAVOURS * 3 * npes * N * 8);
    uint64_t *source = malloc(npes * N * 8);
    uint64_t *back = malloc(npes * N * 8);
    dmapp_pe_t *list = malloc(npes * sizeof(*list));
    dmapp_seg_desc_t *heap = &dx_job.sheap_seg;

    (void)state;
    for (size_t i = 0; i < npes; i++)
        list[i] = (dmapp_pe_t)(npes - 1 - i); /* backwards, the caller among them */
    for (size_t i = 0; i < npes * N; i++)
        source[i] = (uint64_t)dx_job.pe * 1000 + i;
    for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++) {
        uint64_t *multicast = area + ((size_t)flavour * 3 * npes + (size_t)dx_job.pe) * N;
        uint64_t *scattered = multicast + npes * N;
        dmapp_syncid_handle_t syncid[3] = { NULL };
        uint32_t n = (uint32_t)npes;

        if (flavour == BLOCKING) {
            assert_int_equal(dmapp_put_ixpe(multicast, heap, list, n, source, N, DMAPP_QW), DMAPP_RC_SUCCESS);
            assert_int_equal(dmapp_scatter_ixpe(scattered, heap, list, n, source, N, DMAPP_QW), DMAPP_RC_SUCCESS);
        } else if (flavour == NB) {
            assert_int_equal(dmapp_put_ixpe_nb(multicast, heap, list, n, source, N, DMAPP_QW, &syncid[0]),
                             DMAPP_RC_SUCCESS);
            assert_int_equal(dmapp_scatter_ixpe_nb(scattered, heap, list, n, source, N, DMAPP_QW, &syncid[1]),
                             DMAPP_RC_SUCCESS);
        } else {
            assert_int_equal(dmapp_put_ixpe_nbi(multicast, heap, list, n, source, N, DMAPP_QW), DMAPP_RC_SUCCESS);
            assert_int_equal(dmapp_scatter_ixpe_nbi(scattered, heap, list, n, source, N, DMAPP_QW), DMAPP_RC_SUCCESS);
        }
        assert_int_equal(complete(flavour, &syncid[0]), DMAPP_RC_SUCCESS);
        assert_int_equal(complete(flavour, &syncid[1]), DMAPP_RC_SUCCESS);
        dx_barrier();
        for (size_t pe = 0; pe < npes; pe++) {
            for (size_t k = 0; k < N; k++) {
                assert_int_equal(area[((size_t)flavour * 3 * npes + pe) * N + k], pe * 1000 + k);
                assert_int_equal(area[((size_t)flavour * 3 * npes + npes + pe) * N + k],
                                 pe * 1000 + (npes - 1 - (size_t)dx_job.pe) * N + k);
            }
        }
        if (flavour == BLOCKING)
            assert_int_equal(dmapp_gather_ixpe(back, scattered, heap, list, n, N, DMAPP_QW), DMAPP_RC_SUCCESS);
        else if (flavour == NB)
            assert_int_equal(dmapp_gather_ixpe_nb(back, scattered, heap, list, n, N, DMAPP_QW, &syncid[2]),
                             DMAPP_RC_SUCCESS);
        else
            assert_int_equal(dmapp_gather_ixpe_nbi(back, scattered, heap, list, n, N, DMAPP_QW), DMAPP_RC_SUCCESS);
        assert_int_equal(complete(flavour, &syncid[2]), DMAPP_RC_SUCCESS);
        assert_memory_equal(back, source, npes * N * 8);
        dx_barrier();
    }
    dx_free(area);
    free(source);
    free(back);
    free(list);
}

static void test_empty_lists_succeed(void **state)
{
    dmapp_syncid_handle_t syncid = NULL;

    (void)state;
    assert_int_equal(dmapp_put_ixpe(NULL, NULL, NULL, 0, NULL, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_gather_ixpe_nb(NULL, NULL, NULL, NULL, 0, 1, DMAPP_QW, &syncid), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_syncid_wait(&syncid), DMAPP_RC_SUCCESS);
}

/* ---- with flag ---- */

static dmapp_return_t put_flag(enum flavour flavour, void *target, dmapp_seg_desc_t *seg, dmapp_pe_t pe, void *source,
                               uint64_t n, dmapp_type_t type, void *flag, uint64_t value)
{
    dmapp_syncid_handle_t syncid = NULL;
    dmapp_return_t rc = flavour == BLOCKING ? dmapp_put_flag(target, seg, pe, source, n, type, flag, value) :
                        flavour == NB ? dmapp_put_flag_nb(target, seg, pe, source, n, type, flag, value, &syncid) :
                                        dmapp_put_flag_nbi(target, seg, pe, source, n, type, flag, value);

    return rc == DMAPP_RC_SUCCESS ? complete(flavour, &syncid) : rc;
}

/* Around the ring, PE by PE: whoever sees the flag finds the data, of any length, and answers into its neighbour. */
/* covers: dmapp_put_flag*: DMAPP_RC_SUCCESS */
static void test_who_sees_the_flag_sees_the_data(void **state)
{
    static const size_t lengths[] = { 1, 8, 64, 1000, 65536, 65537, 400000 };
    uint8_t *area = dx_alloc(500000);
    volatile uint64_t *flag = (volatile uint64_t *)(void *)area;
    uint8_t *source = malloc(500000);
    uint64_t round = 0;

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(lengths) * FLAVOURS; i++) {
        size_t bytes = lengths[i / FLAVOURS];
        enum flavour flavour = (enum flavour)(i % FLAVOURS);

        round++;
        fill(source, bytes, round);
        if (dx_job.pe == 0)
            assert_int_equal(
                put_flag(flavour, area + 64, &dx_job.sheap_seg, next_pe(), source, bytes, DMAPP_BYTE, area, round),
                DMAPP_RC_SUCCESS);
        while (*flag != round)
            sched_yield();
        expect(area + 64, bytes, round);
        if (dx_job.pe != 0)
            assert_int_equal(
                put_flag(flavour, area + 64, &dx_job.sheap_seg, next_pe(), source, bytes, DMAPP_BYTE, area, round),
                DMAPP_RC_SUCCESS);
        dx_barrier();
    }
    dx_free(area);
    free(source);
}

static void test_flag_alone_is_stored(void **state)
{
    uint64_t *area = dx_alloc(64);

    (void)state;
    for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++)
        assert_int_equal(put_flag(flavour, NULL, &dx_job.sheap_seg, next_pe(), NULL, 0, DMAPP_QW, &area[flavour], 7),
                         DMAPP_RC_SUCCESS);
    dx_barrier();
    for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++)
        assert_int_equal(area[flavour], 7);
    dx_free(area);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strided_puts_touch_their_elements_alone),
        cmocka_unit_test(test_strided_gets_touch_their_elements_alone),
        cmocka_unit_test(test_indexed_transfers_find_their_elements),
        cmocka_unit_test(test_indices_are_read_before_the_call_returns),
        cmocka_unit_test(test_lists_of_pes_reach_each_of_them),
        cmocka_unit_test(test_empty_lists_succeed),
        cmocka_unit_test(test_who_sees_the_flag_sees_the_data),
        cmocka_unit_test(test_flag_alone_is_stored),
    };

    return dx_run(tests, NULL);
}
