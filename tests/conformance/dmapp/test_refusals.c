/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What transfers refuse: every bad argument of every call has its code, and neither side of a refused transfer is
 * touched.
 */
#include "tests/conformance/dmapp/cases.h"

/* A transfer by its remote triple, length and type; the rest is good. */
struct wrong {
    void *addr;
    dmapp_seg_desc_t *seg;
    dmapp_pe_t pe;
    void *local;
    uint64_t nelems;
    dmapp_type_t type;
};

static dmapp_syncid_handle_t syncid;
static ptrdiff_t zeros[4];

/* ---- every call in one form ---- */

typedef dmapp_return_t (*call_t)(struct wrong *w);

#define PUT_LIKE(name, ...)                                                                                            \
    static dmapp_return_t name(struct wrong *w)                                                                        \
    {                                                                                                                  \
        return dmapp_##name(__VA_ARGS__);                                                                              \
    }

#define REMOTE w->addr, w->seg, w->pe
PUT_LIKE(put, REMOTE, w->local, w->nelems, w->type)
PUT_LIKE(put_nb, REMOTE, w->local, w->nelems, w->type, &syncid)
PUT_LIKE(put_nbi, REMOTE, w->local, w->nelems, w->type)
PUT_LIKE(get, w->local, REMOTE, w->nelems, w->type)
PUT_LIKE(get_nb, w->local, REMOTE, w->nelems, w->type, &syncid)
PUT_LIKE(get_nbi, w->local, REMOTE, w->nelems, w->type)
PUT_LIKE(get_flag_nbi, w->local, REMOTE, w->nelems, w->type)
PUT_LIKE(iput, REMOTE, w->local, 1, 1, w->nelems, w->type)
PUT_LIKE(iput_nb, REMOTE, w->local, 1, 1, w->nelems, w->type, &syncid)
PUT_LIKE(iput_nbi, REMOTE, w->local, 1, 1, w->nelems, w->type)
PUT_LIKE(iget, w->local, REMOTE, 1, 1, w->nelems, w->type)
PUT_LIKE(iget_nb, w->local, REMOTE, 1, 1, w->nelems, w->type, &syncid)
PUT_LIKE(iget_nbi, w->local, REMOTE, 1, 1, w->nelems, w->type)
PUT_LIKE(ixput, REMOTE, w->local, zeros, w->nelems < 4 ? w->nelems : 4, w->type)
PUT_LIKE(ixput_nb, REMOTE, w->local, zeros, w->nelems < 4 ? w->nelems : 4, w->type, &syncid)
PUT_LIKE(ixput_nbi, REMOTE, w->local, zeros, w->nelems < 4 ? w->nelems : 4, w->type)
PUT_LIKE(ixget, w->local, REMOTE, zeros, w->nelems < 4 ? w->nelems : 4, w->type)
PUT_LIKE(ixget_nb, w->local, REMOTE, zeros, w->nelems < 4 ? w->nelems : 4, w->type, &syncid)
PUT_LIKE(ixget_nbi, w->local, REMOTE, zeros, w->nelems < 4 ? w->nelems : 4, w->type)
PUT_LIKE(put_ixpe, w->addr, w->seg, &w->pe, 1, w->local, w->nelems, w->type)
PUT_LIKE(put_ixpe_nb, w->addr, w->seg, &w->pe, 1, w->local, w->nelems, w->type, &syncid)
PUT_LIKE(put_ixpe_nbi, w->addr, w->seg, &w->pe, 1, w->local, w->nelems, w->type)
PUT_LIKE(scatter_ixpe, w->addr, w->seg, &w->pe, 1, w->local, w->nelems, w->type)
PUT_LIKE(scatter_ixpe_nb, w->addr, w->seg, &w->pe, 1, w->local, w->nelems, w->type, &syncid)
PUT_LIKE(scatter_ixpe_nbi, w->addr, w->seg, &w->pe, 1, w->local, w->nelems, w->type)
PUT_LIKE(gather_ixpe, w->local, w->addr, w->seg, &w->pe, 1, w->nelems, w->type)
PUT_LIKE(gather_ixpe_nb, w->local, w->addr, w->seg, &w->pe, 1, w->nelems, w->type, &syncid)
PUT_LIKE(gather_ixpe_nbi, w->local, w->addr, w->seg, &w->pe, 1, w->nelems, w->type)

static uint64_t *flag_word;
PUT_LIKE(put_flag, REMOTE, w->local, w->nelems, w->type, flag_word, 1)
PUT_LIKE(put_flag_nb, REMOTE, w->local, w->nelems, w->type, flag_word, 1, &syncid)
PUT_LIKE(put_flag_nbi, REMOTE, w->local, w->nelems, w->type, flag_word, 1)

static const call_t calls[] = {
    put,
    put_nb,
    put_nbi,
    get,
    get_nb,
    get_nbi,
    get_flag_nbi,
    iput,
    iput_nb,
    iput_nbi,
    iget,
    iget_nb,
    iget_nbi,
    ixput,
    ixput_nb,
    ixput_nbi,
    ixget,
    ixget_nb,
    ixget_nbi,
    put_ixpe,
    put_ixpe_nb,
    put_ixpe_nbi,
    scatter_ixpe,
    scatter_ixpe_nb,
    scatter_ixpe_nbi,
    gather_ixpe,
    gather_ixpe_nb,
    gather_ixpe_nbi,
    put_flag,
    put_flag_nb,
    put_flag_nbi,
};

static void refuse(struct wrong w)
{
    for (unsigned i = 0; i < COUNT_OF(calls); i++) {
        dmapp_return_t rc = calls[i](&w);

        if (rc != DMAPP_RC_INVALID_PARAM)
            fail_msg("call %u: %s", i, dmapp_err_str[rc]);
        assert_null(syncid);
    }
}

/* covers: dmapp_put*, dmapp_get*, dmapp_put_flag*, dmapp_iput*, dmapp_iget*: DMAPP_RC_INVALID_PARAM */
/* covers: dmapp_ixput*, dmapp_ixget*, dmapp_put_ixpe*, dmapp_scatter_ixpe*: DMAPP_RC_INVALID_PARAM */
/* covers: dmapp_gather_ixpe*, dmapp_get_flag_nbi: DMAPP_RC_INVALID_PARAM */
static void test_bad_arguments_touch_nothing(void **state)
{
    uint8_t *block = dx_alloc(4096);
    uint8_t local[64];
    dmapp_seg_desc_t *heap = &dx_job.sheap_seg;
    dmapp_seg_desc_t wild[6];
    struct wrong good = { block, heap, next_pe(), local, 2, DMAPP_QW };
    struct wrong w;

    (void)state;
    flag_word = (uint64_t *)(void *)(block + 4088);
    memset(local, 0x33, sizeof(local));
    /* Rubbish; and good descriptors with one thing wrong in them. */
    memset(&wild[0], 0x5a, sizeof(wild[0]));
    memset(&wild[1], 0, sizeof(wild[1]));
    for (unsigned i = 2; i < COUNT_OF(wild); i++)
        wild[i] = dx_job.sheap_seg;
    wild[2].addr = (uint8_t *)wild[2].addr - 4096;
    wild[3].flags ^= 1;
    wild[4].memhndl.qword2 ^= 1ull << 20;
    wild[5] = dx_job.data_seg; /* the address is not in there */

    w = good, w.pe = -1, refuse(w);
    w = good, w.pe = dx_job.npes, refuse(w);
    w = good, w.pe = 1 << 30, refuse(w);
    w = good, w.seg = NULL, refuse(w);
    w = good, w.addr = NULL, refuse(w);
    w = good, w.local = NULL, refuse(w);
    w = good, w.type = (dmapp_type_t)4, refuse(w);
    w = good, w.type = (dmapp_type_t)-1, refuse(w);
    w = good, w.addr = (uint8_t *)heap->addr - 8, refuse(w);
    w = good, w.addr = (uint8_t *)heap->addr + heap->len, refuse(w);
    w = good, w.addr = (uint8_t *)heap->addr + heap->len - 7, refuse(w);
    for (unsigned i = 0; i < COUNT_OF(wild); i++)
        w = good, w.seg = &wild[i], refuse(w);
    dx_barrier();
    expect_zero(block, 4096);
    for (unsigned i = 0; i < sizeof(local); i++)
        assert_int_equal(local[i], 0x33);
    dx_free(block);
}

/* Byte counts that 64 bits do not hold, and ranges that are longer than the segment. */
static void test_counts_that_overflow_are_refused(void **state)
{
    static const uint64_t counts[] = { 1ull << 60, 1ull << 61, UINT64_MAX / 8, UINT64_MAX, (2ull << 30) / 8 + 1 };
    uint64_t *block = dx_alloc(4096);
    uint64_t local[8] = { 0 };
    dmapp_seg_desc_t *heap = &dx_job.sheap_seg;

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(counts); i++) {
        uint64_t n = counts[i];

        assert_int_equal(dmapp_put(block, heap, next_pe(), local, n, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
        assert_int_equal(dmapp_get_nbi(local, block, heap, next_pe(), n, DMAPP_DQW), DMAPP_RC_INVALID_PARAM);
        assert_int_equal(dmapp_iput(block, heap, next_pe(), local, 1, 1, n, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
        assert_int_equal(dmapp_iget(local, block, heap, next_pe(), 1, (ptrdiff_t)(n >> 1), 3, DMAPP_QW),
                         DMAPP_RC_INVALID_PARAM);
        assert_int_equal(dmapp_scatter_ixpe(block, heap, &dx_job.pe, UINT32_MAX, local, n, DMAPP_QW),
                         DMAPP_RC_INVALID_PARAM);
    }
    dx_barrier();
    expect_zero(block, 4096);
    dx_free(block);
}

static void test_strides_and_indices_have_bounds(void **state)
{
    static ptrdiff_t negative[] = { 0, -1 };
    static ptrdiff_t far[] = { 0, PTRDIFF_MAX };
    static ptrdiff_t out[2];
    uint64_t *block = dx_alloc(4096);
    uint64_t local[8] = { 0 };
    dmapp_seg_desc_t *heap = &dx_job.sheap_seg;

    (void)state;
    out[1] = (ptrdiff_t)(heap->len / 8);
    assert_int_equal(dmapp_iput(block, heap, next_pe(), local, 0, 1, 2, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_iput_nbi(block, heap, next_pe(), local, 1, 0, 2, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_iget(local, block, heap, next_pe(), 1, -1, 2, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_iget(local, block, heap, next_pe(), 1, PTRDIFF_MAX, 2, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_ixput(block, heap, next_pe(), local, negative, 2, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_ixput_nbi(block, heap, next_pe(), local, far, 2, DMAPP_BYTE), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_ixput(block, heap, next_pe(), local, out, 2, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_ixget(local, block, heap, next_pe(), out, 2, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_ixget(local, block, heap, next_pe(), NULL, 2, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    dx_barrier();
    expect_zero(block, 4096);
    dx_free(block);
}

static void test_lists_are_for_symmetric_memory_and_all_good(void **state)
{
    dmapp_pe_t list[] = { 0, 0, 99999 };
    struct remote to;
    uint64_t local[8] = { 1 };

    (void)state;
    open_areas();
    to = remote_of(REGISTERED, next_pe());
    list[0] = next_pe();
    assert_int_equal(dmapp_put_ixpe(to.addr, &to.seg, list, 1, local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_put_ixpe(heap_area, &dx_job.sheap_seg, list, 3, local, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_scatter_ixpe_nbi(heap_area, &dx_job.sheap_seg, list, 3, local, 1, DMAPP_QW),
                     DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_gather_ixpe(local, heap_area, &dx_job.sheap_seg, NULL, 3, 1, DMAPP_QW),
                     DMAPP_RC_INVALID_PARAM);
    dx_barrier();
    expect_zero(heap_area, 4096);
    close_areas();
}

/* covers: dmapp_put_flag*: DMAPP_RC_ALIGNMENT_ERROR, DMAPP_RC_INVALID_PARAM */
static void test_flags_are_aligned_words_of_the_segment(void **state)
{
    uint64_t *block = dx_alloc(4096);
    uint64_t local[8] = { 1, 2, 3 };
    dmapp_seg_desc_t *heap = &dx_job.sheap_seg;

    (void)state;
    for (unsigned shift = 1; shift < 8; shift++) {
        void *flag = (uint8_t *)block + 64 + shift;

        assert_int_equal(dmapp_put_flag(block, heap, next_pe(), local, 2, DMAPP_QW, flag, 1), DMAPP_RC_ALIGNMENT_ERROR);
        assert_int_equal(dmapp_put_flag_nb(block, heap, next_pe(), local, 2, DMAPP_QW, flag, 1, &syncid),
                         DMAPP_RC_ALIGNMENT_ERROR);
        assert_int_equal(dmapp_put_flag_nbi(block, heap, next_pe(), local, 2, DMAPP_QW, flag, 1),
                         DMAPP_RC_ALIGNMENT_ERROR);
    }
    assert_int_equal(dmapp_put_flag(block, heap, next_pe(), local, 2, DMAPP_QW, NULL, 1), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_put_flag(block, heap, next_pe(), local, 2, DMAPP_QW, (uint8_t *)heap->addr + heap->len, 1),
                     DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_put_flag_nbi(block, heap, next_pe(), local, 2, DMAPP_QW, static_area, 1),
                     DMAPP_RC_INVALID_PARAM);
    dx_barrier();
    expect_zero(block, 4096);
    dx_free(block);
}

/* ---- the heap's blocks ---- */

static void test_freed_blocks_are_refused_until_they_are_used_again(void **state)
{
    uint8_t *kept = dx_alloc(256);
    uint8_t *block = dx_alloc(256);
    uint8_t local[256] = { 1 };
    struct wrong w = { block, &dx_job.sheap_seg, next_pe(), local, 2, DMAPP_QW };
    uint8_t *again;

    (void)state;
    flag_word = (uint64_t *)(void *)kept;
    dx_free(block);
    refuse(w);
    w.addr = block + 255, w.nelems = 1, w.type = DMAPP_BYTE;
    refuse(w);
    assert_int_equal(dmapp_aadd_qw(block, &dx_job.sheap_seg, next_pe(), 1), DMAPP_RC_INVALID_PARAM);
    /* A range that begins in a good block and ends in the freed one. */
    assert_int_equal(dmapp_put(kept, &dx_job.sheap_seg, next_pe(), local, (uint64_t)(block - kept) + 1, DMAPP_BYTE),
                     DMAPP_RC_INVALID_PARAM);
    dx_barrier();
    expect_zero(block, 256);
    again = dx_alloc(256);
    assert_ptr_equal(again, block);
    assert_int_equal(dmapp_put(again, &dx_job.sheap_seg, next_pe(), local, 256, DMAPP_BYTE), DMAPP_RC_SUCCESS);
    dx_free(again);
    dx_free(kept);
}

/* What one PE has freed another may still have; the target's word counts. */
static void test_a_block_freed_here_alone_is_still_there(void **state)
{
    uint64_t *block = dmapp_sheap_malloc(64);
    uint64_t word = 5;

    (void)state;
    assert_non_null(block);
    memset(block, 0, 64);
    dx_barrier();
    if (dx_job.pe == 0) {
        dmapp_sheap_free(block);
        assert_int_equal(dmapp_put(block, &dx_job.sheap_seg, 0, &word, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
        assert_int_equal(dmapp_put(block, &dx_job.sheap_seg, 1, &word, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    }
    dx_barrier();
    assert_int_equal(*block, dx_job.pe == 1 ? 5 : 0);
    dx_barrier();
    if (dx_job.pe != 0)
        dmapp_sheap_free(block);
    dx_barrier();
}

/* ---- registrations that have ended ---- */

static void blocking_calls_fail(void *at, dmapp_seg_desc_t *seg, uint64_t local[4])
{
    dmapp_amo_t described = { .op = DMAPP_AMO_ADD, .type = DMAPP_QW };

    assert_int_equal(dmapp_put(at, seg, next_pe(), local, 1, DMAPP_QW), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_get(local, at, seg, next_pe(), 1, DMAPP_QW), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_put_flag(at, seg, next_pe(), local, 1, DMAPP_QW, (uint64_t *)at + 4, 1),
                     DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_iput(at, seg, next_pe(), local, 2, 2, 2, DMAPP_QW), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_iget(local, at, seg, next_pe(), 2, 2, 2, DMAPP_QW), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_ixput(at, seg, next_pe(), local, zeros, 2, DMAPP_QW), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_ixget(local, at, seg, next_pe(), zeros, 2, DMAPP_QW), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_aadd_qw(at, seg, next_pe(), 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_aand_qw(at, seg, next_pe(), 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_aor_qw(at, seg, next_pe(), 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_axor_qw(at, seg, next_pe(), 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_afadd_qw(local, at, seg, next_pe(), 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_afand_qw(local, at, seg, next_pe(), 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_afor_qw(local, at, seg, next_pe(), 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_afxor_qw(local, at, seg, next_pe(), 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_afax_qw(local, at, seg, next_pe(), 1, 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_acswap_qw(local, at, seg, next_pe(), 1, 1), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_amo_put(at, seg, next_pe(), &described), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_amo_get(local, at, seg, next_pe(), &described), DMAPP_RC_TRANSACTION_ERROR);
}

/* Told once, by whoever completes it; then everything is as before. */
static void split_calls_fail_at_completion(void *at, dmapp_seg_desc_t *seg, uint64_t local[4])
{
    int flag = 0;

    assert_int_equal(dmapp_put_nb(at, seg, next_pe(), local, 1, DMAPP_QW, &syncid), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_syncid_wait(&syncid), DMAPP_RC_TRANSACTION_ERROR);
    assert_null(syncid);
    assert_int_equal(dmapp_syncid_wait(&syncid), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_get_nb(local, at, seg, next_pe(), 1, DMAPP_QW, &syncid), DMAPP_RC_SUCCESS);
    while (dmapp_syncid_test(&syncid, &flag) == DMAPP_RC_SUCCESS)
        assert_int_equal(flag, 0);
    assert_int_equal(flag, 1);
    assert_null(syncid);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(dmapp_put_nbi(at, seg, next_pe(), local, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_aadd_qw_nbi(at, seg, next_pe(), 1), DMAPP_RC_SUCCESS);
    while (dmapp_gsync_test(&flag) == DMAPP_RC_SUCCESS)
        assert_int_equal(flag, 0);
    assert_int_equal(dmapp_gsync_test(&flag), DMAPP_RC_SUCCESS);
    assert_int_equal(flag, 1);
}

/*
 * covers: dmapp_put, dmapp_get, dmapp_put_flag, dmapp_iput, dmapp_iget, dmapp_ixput, dmapp_ixget:
 * DMAPP_RC_TRANSACTION_ERROR
 */
/* covers: dmapp_aadd_qw, dmapp_aand_qw, dmapp_aor_qw, dmapp_axor_qw: DMAPP_RC_TRANSACTION_ERROR */
/* covers: dmapp_afadd_qw, dmapp_afand_qw, dmapp_afor_qw, dmapp_afxor_qw: DMAPP_RC_TRANSACTION_ERROR */
/* covers: dmapp_afax_qw, dmapp_acswap_qw, dmapp_amo_put, dmapp_amo_get: DMAPP_RC_TRANSACTION_ERROR */
/* covers: dmapp_syncid_wait, dmapp_syncid_test, dmapp_gsync_wait, dmapp_gsync_test: DMAPP_RC_TRANSACTION_ERROR */
static void test_memory_that_was_unregistered_fails_the_transaction(void **state)
{
    uint64_t *memory = calloc(8, 512);
    dmapp_seg_desc_t *descs = dx_alloc(sizeof(*descs) * (size_t)dx_job.npes);
    dmapp_seg_desc_t own;
    dmapp_seg_desc_t seg;
    uint64_t local[4] = { 9, 9, 9, 9 };
    void *at;

    (void)state;
    assert_int_equal(dmapp_mem_register(memory, 4096, &own), DMAPP_RC_SUCCESS);
    for (dmapp_pe_t pe = 0; pe < dx_job.npes; pe++)
        assert_int_equal(dmapp_put(&descs[dx_job.pe], &dx_job.sheap_seg, pe, &own, sizeof(own), DMAPP_BYTE),
                         DMAPP_RC_SUCCESS);
    dx_barrier();
    seg = descs[next_pe()];
    at = seg.addr;
    assert_int_equal(dmapp_put(at, &seg, next_pe(), local + 3, 0, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_get(local, at, &seg, next_pe(), 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    local[0] = 9;
    dx_barrier();
    assert_int_equal(dmapp_mem_unregister(&own), DMAPP_RC_SUCCESS);
    dx_barrier();

    blocking_calls_fail(at, &seg, local);
    split_calls_fail_at_completion(at, &seg, local);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(local[i], 9);
    dx_barrier();
    expect_zero(memory, 4096);
    dx_free(descs);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bad_arguments_touch_nothing),
        cmocka_unit_test(test_counts_that_overflow_are_refused),
        cmocka_unit_test(test_strides_and_indices_have_bounds),
        cmocka_unit_test(test_lists_are_for_symmetric_memory_and_all_good),
        cmocka_unit_test(test_flags_are_aligned_words_of_the_segment),
        cmocka_unit_test(test_freed_blocks_are_refused_until_they_are_used_again),
        cmocka_unit_test(test_a_block_freed_here_alone_is_still_there),
        cmocka_unit_test(test_memory_that_was_unregistered_fails_the_transaction),
    };

    return dx_run(tests, NULL);
}
