/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics: every operation and flavour against a model, atomic among all PEs the owner included, results on the stack.
 */
#include <sched.h>

#include "tests/conformance/dmapp/cases.h"

enum op { ADD, AND, OR, XOR, AX, CSWAP, OPS };

typedef dmapp_return_t (*plain_t)(void *, dmapp_seg_desc_t *, dmapp_pe_t, int64_t);
typedef dmapp_return_t (*plain_nb_t)(void *, dmapp_seg_desc_t *, dmapp_pe_t, int64_t, dmapp_syncid_handle_t *);
typedef dmapp_return_t (*fetch_t)(void *, void *, dmapp_seg_desc_t *, dmapp_pe_t, int64_t);
typedef dmapp_return_t (*fetch_nb_t)(void *, void *, dmapp_seg_desc_t *, dmapp_pe_t, int64_t, dmapp_syncid_handle_t *);
typedef dmapp_return_t (*fetch2_t)(void *, void *, dmapp_seg_desc_t *, dmapp_pe_t, int64_t, int64_t);
typedef dmapp_return_t (*fetch2_nb_t)(void *, void *, dmapp_seg_desc_t *, dmapp_pe_t, int64_t, int64_t,
                                      dmapp_syncid_handle_t *);

static const plain_t plain[][2] = {
    [ADD] = { dmapp_aadd_qw, dmapp_aadd_qw_nbi },
    [AND] = { dmapp_aand_qw, dmapp_aand_qw_nbi },
    [OR] = { dmapp_aor_qw, dmapp_aor_qw_nbi },
    [XOR] = { dmapp_axor_qw, dmapp_axor_qw_nbi },
};
static const plain_nb_t plain_nb[] = { dmapp_aadd_qw_nb, dmapp_aand_qw_nb, dmapp_aor_qw_nb, dmapp_axor_qw_nb };
static const fetch_t fetch[][2] = {
    [ADD] = { dmapp_afadd_qw, dmapp_afadd_qw_nbi },
    [AND] = { dmapp_afand_qw, dmapp_afand_qw_nbi },
    [OR] = { dmapp_afor_qw, dmapp_afor_qw_nbi },
    [XOR] = { dmapp_afxor_qw, dmapp_afxor_qw_nbi },
};
static const fetch_nb_t fetch_nb[] = { dmapp_afadd_qw_nb, dmapp_afand_qw_nb, dmapp_afor_qw_nb, dmapp_afxor_qw_nb };
static const fetch2_t fetch2[][2] = { { dmapp_afax_qw, dmapp_afax_qw_nbi }, { dmapp_acswap_qw, dmapp_acswap_qw_nbi } };
static const fetch2_nb_t fetch2_nb[] = { dmapp_afax_qw_nb, dmapp_acswap_qw_nb };

static uint64_t model(enum op op, uint64_t old, uint64_t a, uint64_t b)
{
    switch (op) {
    case ADD:
        return old + a;
    case AND:
        return old & a;
    case OR:
        return old | a;
    case XOR:
        return old ^ a;
    case AX:
        return (old & a) ^ b;
    default:
        return old == a ? b : old;
    }
}

/* result NULL: not fetched; only the first four. */
static dmapp_return_t run(enum op op, enum flavour flavour, void *result, void *at, dmapp_seg_desc_t *seg,
                          dmapp_pe_t pe, uint64_t a, uint64_t b)
{
    dmapp_syncid_handle_t syncid = NULL;
    unsigned way = flavour == NBI;
    int64_t x = (int64_t)a;
    int64_t y = (int64_t)b;
    dmapp_return_t rc;

    if (!result)
        rc = flavour == NB ? plain_nb[op](at, seg, pe, x, &syncid) : plain[op][way](at, seg, pe, x);
    else if (op < AX)
        rc = flavour == NB ? fetch_nb[op](result, at, seg, pe, x, &syncid) : fetch[op][way](result, at, seg, pe, x);
    else
        rc = flavour == NB ? fetch2_nb[op - AX](result, at, seg, pe, x, y, &syncid) :
                             fetch2[op - AX][way](result, at, seg, pe, x, y);
    return rc == DMAPP_RC_SUCCESS ? complete(flavour, &syncid) : rc;
}

/* Each PE has a word of its own in its neighbour. */
/* covers: dmapp_aadd_qw*, dmapp_aand_qw*, dmapp_aor_qw*, dmapp_axor_qw*: DMAPP_RC_SUCCESS */
/* covers: dmapp_afadd_qw*, dmapp_afand_qw*, dmapp_afor_qw*, dmapp_afxor_qw*: DMAPP_RC_SUCCESS */
/* covers: dmapp_afax_qw*, dmapp_acswap_qw*: DMAPP_RC_SUCCESS */
static void test_every_operation_agrees_with_a_model(void **state)
{
    struct emu_random random = seeded(2);
    uint8_t odd[16];

    (void)state;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++) {
        struct remote to = remote_of(kind, next_pe());
        uint64_t *word = (uint64_t *)to.addr + dx_job.pe;
        uint64_t value = 0;

        for (unsigned step = 0; step < 1000; step++) {
            enum op op = (enum op)(step % OPS);
            enum flavour flavour = (enum flavour)(step / OPS % FLAVOURS);
            uint64_t a = emu_random_next(&random);
            uint64_t b = emu_random_next(&random);
            bool fetches = op >= AX || step / (OPS * FLAVOURS) % 2 == 0;
            uint64_t old = 0;

            if (op == CSWAP && step % 4 != 0)
                a = value;
            /* Results go to the stack, and to addresses that suit nobody. */
            assert_int_equal(run(op, flavour, fetches ? odd + step % 9 : NULL, word, &to.seg, next_pe(), a, b),
                             DMAPP_RC_SUCCESS);
            memcpy(&old, odd + step % 9, 8);
            if (fetches)
                assert_true(old == value);
            value = model(op, value, a, b);
            if (step % 50 == 0)
                assert_true(dx_get_word(word, &to.seg, next_pe()) == value);
        }
        dx_put_word((uint64_t *)heap_area + AREA_BYTES / 8 - 1, &dx_job.sheap_seg, next_pe(), value);
        dx_barrier();
        assert_true(((uint64_t *)own_area(kind))[previous_pe()] == ((uint64_t *)heap_area)[AREA_BYTES / 8 - 1]);
        dx_barrier();
    }
    close_areas();
}

static void test_all_pes_and_the_owner_add_to_one_word(void **state)
{
    enum { ADDS = 2000 };

    (void)state;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++) {
        struct remote to = remote_of(kind, 0);
        uint64_t *word = (uint64_t *)to.addr + 16;
        int64_t highest = -1;

        for (unsigned i = 0; i < ADDS; i++) {
            int64_t old = -1;

            if (i % 4 == 0) {
                assert_int_equal(dmapp_afadd_qw(&old, word, &to.seg, 0, 1), DMAPP_RC_SUCCESS);
                assert_true(old > highest);
                highest = old;
            } else {
                assert_int_equal(dmapp_aadd_qw_nbi(word, &to.seg, 0, 1), DMAPP_RC_SUCCESS);
            }
        }
        assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
        dx_barrier();
        assert_int_equal(dx_get_word(word, &to.seg, 0), ADDS * (uint64_t)dx_job.npes);
        dx_barrier();
    }
    close_areas();
}

/* A spin lock of compare-and-swap around a plain counter; the owner takes it like everybody. */
static void test_compare_and_swap_makes_a_lock(void **state)
{
    enum { TURNS = 100 };
    uint64_t *words = dx_alloc(64 * 8);

    (void)state;
    for (unsigned i = 0; i < TURNS; i++) {
        int64_t old;
        uint64_t count;

        do {
            assert_int_equal(dmapp_acswap_qw(&old, words, &dx_job.sheap_seg, 0, 0, dx_job.pe + 1), DMAPP_RC_SUCCESS);
            if (old != 0)
                sched_yield();
        } while (old != 0);
        count = dx_get_word(words + 8, &dx_job.sheap_seg, 0);
        dx_put_word(words + 8, &dx_job.sheap_seg, 0, count + 1);
        assert_int_equal(dmapp_acswap_qw(&old, words, &dx_job.sheap_seg, 0, dx_job.pe + 1, 0), DMAPP_RC_SUCCESS);
        assert_int_equal(old, dx_job.pe + 1);
    }
    dx_barrier();
    assert_int_equal(dx_get_word(words + 8, &dx_job.sheap_seg, 0), TURNS * (uint64_t)dx_job.npes);
    dx_free(words);
}

/* ---- described ---- */

struct described {
    uint32_t op;
    uint32_t type;
    uint64_t old;
    uint64_t operand1;
    uint64_t operand2;
    uint64_t new;
};

static uint64_t bits_of_double(double d)
{
    uint64_t bits;

    memcpy(&bits, &d, 8);
    return bits;
}

static uint64_t bits_of_float(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, 4);
    return bits;
}

/* A Gemini has 64 bits, and no minimum, maximum or floating point. */
static bool has_device(const struct described *c)
{
    bool is_integer = (c->type & ~0xffu) != DMAPP_AMO_FLOAT;

    return dx_job.hw_version != 0 || (is_integer && (c->type & 0xff) == DMAPP_QW && c->op <= DMAPP_AMO_CSWAP);
}

struct way {
    bool fetches;
    enum flavour flavour;
};

static const struct way ways[] = {
    { false, BLOCKING }, { false, NB }, { false, NBI }, { true, BLOCKING }, { true, NB }, { true, NBI },
};

static dmapp_return_t run_described(struct way way, uint64_t *result, uint64_t *word, dmapp_seg_desc_t *seg,
                                    dmapp_amo_t *amo, dmapp_syncid_handle_t *syncid)
{
    if (way.fetches)
        return way.flavour == NB  ? dmapp_amo_get_nb(result, word, seg, next_pe(), amo, syncid) :
               way.flavour == NBI ? dmapp_amo_get_nbi(result, word, seg, next_pe(), amo) :
                                    dmapp_amo_get(result, word, seg, next_pe(), amo);
    return way.flavour == NB  ? dmapp_amo_put_nb(word, seg, next_pe(), amo, syncid) :
           way.flavour == NBI ? dmapp_amo_put_nbi(word, seg, next_pe(), amo) :
                                dmapp_amo_put(word, seg, next_pe(), amo);
}

static void check_described(const struct described *c, struct way way, uint64_t *word, dmapp_seg_desc_t *seg)
{
    bool is_32bit = (c->type & 0xff) == DMAPP_DW;
    dmapp_amo_t amo = { .op = c->op, .type = c->type };
    dmapp_syncid_handle_t syncid = NULL;
    uint64_t result = 0;
    dmapp_return_t rc;

    memcpy(&amo.operand1, &c->operand1, 8);
    memcpy(&amo.operand2, &c->operand2, 8);
    /* The other half of the word must stay as it is. */
    dx_put_word(word, seg, next_pe(), is_32bit ? c->old | 0xabcdull << 32 : c->old);
    rc = run_described(way, &result, word, seg, &amo, &syncid);
    assert_int_equal(rc, has_device(c) ? DMAPP_RC_SUCCESS : DMAPP_RC_NOT_SUPPORTED);
    if (rc != DMAPP_RC_SUCCESS)
        return;
    assert_int_equal(complete(way.flavour, &syncid), DMAPP_RC_SUCCESS);
    if (way.fetches)
        assert_true(result == c->old);
    assert_true(dx_get_word(word, seg, next_pe()) == (is_32bit ? c->new | 0xabcdull << 32 : c->new));
}

/* covers: dmapp_amo_put*, dmapp_amo_get*: DMAPP_RC_SUCCESS */
static void test_described_operations_of_both_widths(void **state)
{
    const struct described cases[] = {
        { DMAPP_AMO_ADD, DMAPP_QW, 5, 7, 0, 12 },
        { DMAPP_AMO_ADD, DMAPP_DW, UINT32_MAX, 2, 0, 1 },
        { DMAPP_AMO_AND, DMAPP_DW, 0xff00, 0x0ff0, 0, 0x0f00 },
        { DMAPP_AMO_OR, DMAPP_QW, 0xff00, 0x0ff0, 0, 0xfff0 },
        { DMAPP_AMO_XOR, DMAPP_DW, 0xff00, 0x0ff0, 0, 0xf0f0 },
        { DMAPP_AMO_SWAP, DMAPP_DW, 1, 2, 0, 2 },
        { DMAPP_AMO_SWAP, DMAPP_QW, 1, 1ull << 40, 0, 1ull << 40 },
        { DMAPP_AMO_AX, DMAPP_QW, 0xff, 0x0f, 0xf0, 0xff },
        { DMAPP_AMO_CSWAP, DMAPP_DW, 9, 9, 10, 10 },
        { DMAPP_AMO_CSWAP, DMAPP_QW, 9, 8, 10, 9 },
        { DMAPP_AMO_MIN, DMAPP_QW, 3, (uint64_t)-2, 0, (uint64_t)-2 },
        { DMAPP_AMO_MAX, DMAPP_DW, 3, (uint32_t)-2, 0, 3 },
        { DMAPP_AMO_ADD | 0, DMAPP_QW | DMAPP_AMO_UNSIGNED, 1, 2, 0, 3 },
        { DMAPP_AMO_ADD, DMAPP_QW | DMAPP_AMO_FLOAT, bits_of_double(1.5), bits_of_double(2.25), 0,
          bits_of_double(3.75) },
        { DMAPP_AMO_ADD, DMAPP_DW | DMAPP_AMO_FLOAT, bits_of_float(1.5f), bits_of_float(2.25f), 0,
          bits_of_float(3.75f) },
        { DMAPP_AMO_MIN, DMAPP_QW | DMAPP_AMO_FLOAT, bits_of_double(1.5), bits_of_double(-2), 0, bits_of_double(-2) },
        { DMAPP_AMO_MAX, DMAPP_DW | DMAPP_AMO_FLOAT, bits_of_float(1.5f), bits_of_float(-2), 0, bits_of_float(1.5f) },
    };

    (void)state;
    open_areas();
    for (enum kind kind = HEAP; kind < KINDS; kind++) {
        struct remote to = remote_of(kind, next_pe());
        uint64_t *word = (uint64_t *)to.addr + dx_job.pe;

        for (unsigned i = 0; i < COUNT_OF(cases); i++) {
            for (unsigned k = 0; k < COUNT_OF(ways); k++)
                check_described(&cases[i], ways[k], word, &to.seg);
        }
    }
    assert_int_equal(dmapp_amo_flush(next_pe(), 0), DMAPP_RC_SUCCESS);
    close_areas();
}

/* ---- refusals ---- */

/*
 * covers: dmapp_aadd_qw*, dmapp_aand_qw*, dmapp_aor_qw*, dmapp_axor_qw*: DMAPP_RC_ALIGNMENT_ERROR,
 * DMAPP_RC_INVALID_PARAM
 */
/* covers: dmapp_afadd_qw*, dmapp_afand_qw*, dmapp_afor_qw*: DMAPP_RC_ALIGNMENT_ERROR, DMAPP_RC_INVALID_PARAM */
/* covers: dmapp_afxor_qw*, dmapp_afax_qw*, dmapp_acswap_qw*: DMAPP_RC_ALIGNMENT_ERROR, DMAPP_RC_INVALID_PARAM */
static void test_bad_operands_leave_everything_as_it_was(void **state)
{
    uint64_t *words = dx_alloc(64);
    dmapp_seg_desc_t wild;
    uint64_t result = 42;

    (void)state;
    memset(&wild, 0x5a, sizeof(wild));
    for (enum op op = ADD; op < OPS; op++) {
        for (enum flavour flavour = BLOCKING; flavour < FLAVOURS; flavour++) {
            for (unsigned fetches = op >= AX; fetches < 2; fetches++) {
                void *to = fetches ? &result : NULL;
                dmapp_seg_desc_t *heap = &dx_job.sheap_seg;

                for (unsigned shift = 1; shift < 8; shift++)
                    assert_int_equal(run(op, flavour, to, (uint8_t *)words + shift, heap, next_pe(), 1, 2),
                                     DMAPP_RC_ALIGNMENT_ERROR);
                assert_int_equal(run(op, flavour, to, words, heap, -1, 1, 2), DMAPP_RC_INVALID_PARAM);
                assert_int_equal(run(op, flavour, to, words, heap, dx_job.npes, 1, 2), DMAPP_RC_INVALID_PARAM);
                assert_int_equal(run(op, flavour, to, words, NULL, next_pe(), 1, 2), DMAPP_RC_INVALID_PARAM);
                assert_int_equal(run(op, flavour, to, words, &wild, next_pe(), 1, 2), DMAPP_RC_INVALID_PARAM);
                assert_int_equal(run(op, flavour, to, NULL, heap, next_pe(), 1, 2), DMAPP_RC_INVALID_PARAM);
                assert_int_equal(run(op, flavour, to, (uint8_t *)heap->addr + heap->len, heap, next_pe(), 1, 2),
                                 DMAPP_RC_INVALID_PARAM);
            }
        }
    }
    assert_int_equal(dmapp_afadd_qw(NULL, words, &dx_job.sheap_seg, next_pe(), 1), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_acswap_qw_nb(&result, words, &dx_job.sheap_seg, next_pe(), 0, 1, NULL),
                     DMAPP_RC_INVALID_PARAM);
    assert_int_equal(result, 42);
    dx_barrier();
    expect_zero(words, 64);
    dx_free(words);
}

/* covers: dmapp_amo_put*, dmapp_amo_get*: DMAPP_RC_ALIGNMENT_ERROR, DMAPP_RC_INVALID_PARAM, DMAPP_RC_NOT_SUPPORTED */
static void test_descriptions_that_cannot_be_are_refused(void **state)
{
    static const struct {
        dmapp_amo_t amo;
        dmapp_return_t rc;
    } cases[] = {
        { { .op = 0, .type = DMAPP_QW }, DMAPP_RC_INVALID_PARAM },
        { { .op = DMAPP_AMO_MAX + 1, .type = DMAPP_QW }, DMAPP_RC_INVALID_PARAM },
        { { .op = DMAPP_AMO_ADD, .type = DMAPP_DQW }, DMAPP_RC_INVALID_PARAM },
        { { .op = DMAPP_AMO_ADD, .type = DMAPP_BYTE }, DMAPP_RC_INVALID_PARAM },
        { { .op = DMAPP_AMO_ADD, .type = DMAPP_QW | 0x400 }, DMAPP_RC_INVALID_PARAM },
        { { .op = DMAPP_AMO_ADD, .type = DMAPP_QW, .flags = 1 }, DMAPP_RC_INVALID_PARAM },
        { { .op = DMAPP_AMO_MIN, .type = DMAPP_QW | DMAPP_AMO_UNSIGNED }, DMAPP_RC_NOT_SUPPORTED },
        { { .op = DMAPP_AMO_MAX, .type = DMAPP_DW | DMAPP_AMO_UNSIGNED }, DMAPP_RC_NOT_SUPPORTED },
        { { .op = DMAPP_AMO_XOR, .type = DMAPP_QW | DMAPP_AMO_FLOAT }, DMAPP_RC_NOT_SUPPORTED },
        { { .op = DMAPP_AMO_SWAP, .type = DMAPP_DW | DMAPP_AMO_FLOAT }, DMAPP_RC_NOT_SUPPORTED },
    };
    uint64_t *words = dx_alloc(64);
    dmapp_seg_desc_t *heap = &dx_job.sheap_seg;
    dmapp_syncid_handle_t syncid = NULL;
    uint64_t result = 42;
    dmapp_amo_t amo;

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        amo = cases[i].amo;
        assert_int_equal(dmapp_amo_put(words, heap, next_pe(), &amo), cases[i].rc);
        assert_int_equal(dmapp_amo_put_nb(words, heap, next_pe(), &amo, &syncid), cases[i].rc);
        assert_int_equal(dmapp_amo_put_nbi(words, heap, next_pe(), &amo), cases[i].rc);
        assert_int_equal(dmapp_amo_get(&result, words, heap, next_pe(), &amo), cases[i].rc);
        assert_int_equal(dmapp_amo_get_nb(&result, words, heap, next_pe(), &amo, &syncid), cases[i].rc);
        assert_int_equal(dmapp_amo_get_nbi(&result, words, heap, next_pe(), &amo), cases[i].rc);
    }
    amo = (dmapp_amo_t){ .op = DMAPP_AMO_ADD, .type = DMAPP_DW, .operand1.u32 = 1 };
    if (dx_job.hw_version == 0)
        amo.type = DMAPP_QW;
    for (unsigned shift = 1; shift < 4; shift++) {
        uint8_t *at = (uint8_t *)words + shift;

        assert_int_equal(dmapp_amo_put(at, heap, next_pe(), &amo), DMAPP_RC_ALIGNMENT_ERROR);
        assert_int_equal(dmapp_amo_put_nb(at, heap, next_pe(), &amo, &syncid), DMAPP_RC_ALIGNMENT_ERROR);
        assert_int_equal(dmapp_amo_put_nbi(at, heap, next_pe(), &amo), DMAPP_RC_ALIGNMENT_ERROR);
        assert_int_equal(dmapp_amo_get(&result, at, heap, next_pe(), &amo), DMAPP_RC_ALIGNMENT_ERROR);
        assert_int_equal(dmapp_amo_get_nb(&result, at, heap, next_pe(), &amo, &syncid), DMAPP_RC_ALIGNMENT_ERROR);
        assert_int_equal(dmapp_amo_get_nbi(&result, at, heap, next_pe(), &amo), DMAPP_RC_ALIGNMENT_ERROR);
    }
    assert_int_equal(dmapp_amo_put(words, heap, next_pe(), NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_amo_flush(dx_job.npes, 0), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_amo_flush(0, 1), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(result, 42);
    assert_null(syncid);
    dx_barrier();
    expect_zero(words, 64);
    dx_free(words);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_operation_agrees_with_a_model),
        cmocka_unit_test(test_all_pes_and_the_owner_add_to_one_word),
        cmocka_unit_test(test_compare_and_swap_makes_a_lock),
        cmocka_unit_test(test_described_operations_of_both_widths),
        cmocka_unit_test(test_bad_operands_leave_everything_as_it_was),
        cmocka_unit_test(test_descriptions_that_cannot_be_are_refused),
    };

    return dx_run(tests, NULL);
}
