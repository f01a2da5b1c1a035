/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Process sets: membership, barrier, every reduction against a model, states. Specification: spec/dmapp.md 4.15.
 */
#include <math.h>

#include "tests/common/dmapp.h"

static const uint64_t all_modes[] = { 0, DMAPP_C_PSET_MODE_CONCAT | DMAPP_C_PSET_MODE_FAULT_TOLERANT,
                                      DMAPP_C_PSET_MODE_HW_OFFLOAD };

static dmapp_c_pset_desc_t everybody(void)
{
    return (dmapp_c_pset_desc_t){ .type = DMAPP_C_PSET_DELIMITER_STRIDED,
                                  .u.stride_type = { .n_pes = (uint32_t)dx_job.npes, .base_pe = 0, .stride_pe = 1 } };
}

/* A set that can be used; collective over the job, members or not. NULL: not a member. */
static dmapp_c_pset_handle_t make(dmapp_c_pset_desc_t desc, uint64_t identifier, uint64_t modes, uint32_t radix,
                                  bool is_member)
{
    dmapp_c_pset_attrs_t attrs = { .type = DMAPP_C_PSET_ATTRS_VER1, .u.type1.radix = radix };
    dmapp_c_pset_handle_t set = NULL;

    if (is_member)
        assert_int_equal(dmapp_c_pset_create(&desc, identifier, modes, radix ? &attrs : NULL, &set), DMAPP_RC_SUCCESS);
    dx_barrier();
    if (is_member)
        assert_int_equal(dmapp_c_pset_export(set), DMAPP_RC_SUCCESS);
    dx_barrier();
    return set;
}

static void unmake(dmapp_c_pset_handle_t set)
{
    dx_barrier();
    if (set)
        assert_int_equal(dmapp_c_pset_destroy(set), DMAPP_RC_SUCCESS);
    dx_barrier();
}

/* ---- barriers ---- */

/* Nobody leaves round r before everybody has come to it. */
static void check_rounds(dmapp_c_pset_handle_t set, const dmapp_pe_t *members, int n, unsigned rounds, uint64_t *round)
{
    struct emu_random random = { .state = 1000 + (unsigned)dx_job.pe };

    for (uint64_t r = *round + 1; r <= *round + rounds; r++) {
        for (uint64_t spin = emu_random_next(&random) % 2000; spin > 0; spin--)
            __asm__ volatile("");
        __atomic_store_n(round + 1, r, __ATOMIC_RELEASE);
        assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_SUCCESS);
        if (r % 3 == 0) {
            dmapp_return_t rc;

            while ((rc = dmapp_c_pset_test(set)) == DMAPP_RC_NOT_DONE)
                ;
            assert_int_equal(rc, DMAPP_RC_SUCCESS);
        }
        assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
        for (int i = 0; i < n; i++)
            assert_true(dx_get_word(round + 1, &dx_job.sheap_seg, members[i]) >= r);
    }
    *round += rounds;
}

static void test_nobody_leaves_a_barrier_early(void **state)
{
    uint64_t *round = dx_alloc(2 * sizeof(*round));
    dmapp_pe_t members[64];

    (void)state;
    for (int i = 0; i < dx_job.npes; i++)
        members[i] = i;
    for (unsigned m = 0; m < 3; m++) {
        for (uint32_t radix = 0; radix <= 3; radix += radix ? 1 : 2) {
            dmapp_c_pset_handle_t set = make(everybody(), 5 + m, all_modes[m], radix, true);

            check_rounds(set, members, dx_job.npes, 100, round);
            unmake(set);
        }
    }
    dx_free(round);
}

static void test_sets_of_every_other_pe_and_of_a_list_in_any_order(void **state)
{
    uint64_t *round = dx_alloc(2 * sizeof(*round));
    uint32_t n_even = (uint32_t)(dx_job.npes + 1) / 2;
    dmapp_c_pset_desc_t even = { .type = DMAPP_C_PSET_DELIMITER_STRIDED,
                                 .u.stride_type = { .n_pes = n_even, .base_pe = 0, .stride_pe = 2 } };
    dmapp_c_pset_desc_t list = { .type = DMAPP_C_PSET_DELIMITER_VEC };
    dmapp_c_pset_handle_t set;
    dmapp_pe_t members[64];
    uint32_t pes[64];
    int n;

    (void)state;
    for (n = 0; n < (int)n_even; n++)
        members[n] = 2 * n;
    set = make(even, 9, 0, 0, dx_job.pe % 2 == 0);
    if (set)
        check_rounds(set, members, n, 50, round);
    unmake(set);
    /* All but PE 1, backwards. The list is the program's again at once. */
    for (n = 0; n < dx_job.npes - 1; n++) {
        members[n] = dx_job.npes - 1 - n == 1 ? 0 : dx_job.npes - 1 - n;
        pes[n] = (uint32_t)members[n];
    }
    list.u.vec_type.n_pes = (uint32_t)n;
    list.u.vec_type.vec_pes = pes;
    set = make(list, 9, 0, 2, dx_job.pe != 1);
    memset(pes, 0xff, sizeof(pes));
    round[0] = round[1] = 100;
    dx_barrier();
    if (set)
        check_rounds(set, members, n, 50, round);
    unmake(set);
    dx_free(round);
}

static void test_sets_proceed_independently(void **state)
{
    dmapp_c_pset_handle_t one = make(everybody(), 100, 0, 0, true);
    dmapp_c_pset_handle_t two = make(everybody(), 101, 0, 0, true);
    int64_t in = 1, out[2] = { 0 };

    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        bool is_odd = (i + (unsigned)dx_job.pe) % 2;

        /* Each PE starts and ends them in another order. */
        assert_int_equal(dmapp_c_greduce_start(is_odd ? two : one, &in, &out[is_odd], 1, DMAPP_C_INT64, DMAPP_C_SUM),
                         DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_c_greduce_start(is_odd ? one : two, &in, &out[!is_odd], 1, DMAPP_C_INT64, DMAPP_C_SUM),
                         DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_c_pset_wait(one), DMAPP_RC_SUCCESS);
        assert_int_equal(out[0], dx_job.npes);
        assert_int_equal(dmapp_c_pset_wait(two), DMAPP_RC_SUCCESS);
        assert_int_equal(out[1], dx_job.npes);
        out[0] = out[1] = 0;
    }
    unmake(one);
    unmake(two);
}

/* ---- reductions ---- */

/* The model works in long double and in 64 bits, element by element. */
enum class { SIGNED, UNSIGNED, REAL, COMPLEX, PAIR };

static const struct {
    dmapp_c_type_t type;
    enum class class;
    uint32_t size;
} types[] = {
    { DMAPP_C_INT32, SIGNED, 4 },        { DMAPP_C_UINT32, UNSIGNED, 4 },    { DMAPP_C_INT64, SIGNED, 8 },
    { DMAPP_C_UINT64, UNSIGNED, 8 },     { DMAPP_C_FLOAT, REAL, 4 },         { DMAPP_C_DOUBLE, REAL, 8 },
    { DMAPP_C_COMPLEX8, COMPLEX, 8 },    { DMAPP_C_COMPLEX16, COMPLEX, 16 }, { DMAPP_C_FLOAT_UINT64, PAIR, 16 },
    { DMAPP_C_DOUBLE_UINT64, PAIR, 16 }, { DMAPP_C_INT32_UINT64, PAIR, 16 }, { DMAPP_C_INT64_UINT64, PAIR, 16 },
};
#define N_TYPES (sizeof(types) / sizeof(types[0]))

static bool is_legal(enum class class, dmapp_c_op_t op)
{
    switch (op) {
    case DMAPP_C_SUM:
    case DMAPP_C_PROD:
        return class != PAIR;
    case DMAPP_C_MAX:
    case DMAPP_C_MIN:
        return class <= REAL;
    case DMAPP_C_MINLOC:
    case DMAPP_C_MAXLOC:
        return class == PAIR;
    default:
        return class <= UNSIGNED;
    }
}

/* What a PE brings: small whole numbers, so that every type holds every result exactly; now and then equal and zero. */
static int64_t part(dmapp_pe_t pe, uint32_t i, unsigned seed)
{
    return (int64_t)((unsigned)pe * 5 + i * 3 + seed * 7) % 4 - 1;
}

struct element {
    int64_t a; /* the number, or its real part, or the value */
    int64_t b; /* imaginary part, or location */
};

static struct element element_of(enum class class, dmapp_pe_t pe, uint32_t i, unsigned seed)
{
    struct element e = { .a = part(pe, i, seed), .b = part(pe, i + 1, seed) };

    if (class == PAIR)
        e.b = (int64_t)((unsigned)pe * 7 + i) % 11;
    if (class == UNSIGNED)
        e.a++;
    return e;
}

static struct element combine(enum class class, struct element x, struct element y, dmapp_c_op_t op)
{
    switch (op) {
    case DMAPP_C_SUM:
        return (struct element){ x.a + y.a, x.b + y.b };
    case DMAPP_C_PROD:
        if (class == COMPLEX)
            return (struct element){ x.a * y.a - x.b * y.b, x.a * y.b + x.b * y.a };
        return (struct element){ x.a * y.a, 0 };
    case DMAPP_C_MAX:
        return x.a > y.a ? x : y;
    case DMAPP_C_MIN:
        return x.a < y.a ? x : y;
    case DMAPP_C_LAND:
        return (struct element){ x.a && y.a, 0 };
    case DMAPP_C_BAND:
        return (struct element){ x.a & y.a, 0 };
    case DMAPP_C_LOR:
        return (struct element){ x.a || y.a, 0 };
    case DMAPP_C_BOR:
        return (struct element){ x.a | y.a, 0 };
    case DMAPP_C_LXOR:
        return (struct element){ !x.a != !y.a, 0 };
    case DMAPP_C_BXOR:
        return (struct element){ x.a ^ y.a, 0 };
    default:
        if (x.a == y.a)
            return x.b <= y.b ? x : y;
        return (x.a < y.a) == (op == DMAPP_C_MINLOC) ? x : y;
    }
}

static void store(void *at, uint32_t i, dmapp_c_type_t type, struct element e)
{
    switch (type) {
    case DMAPP_C_INT32:
    case DMAPP_C_UINT32:
        ((int32_t *)at)[i] = (int32_t)e.a;
        break;
    case DMAPP_C_INT64:
    case DMAPP_C_UINT64:
        ((int64_t *)at)[i] = e.a;
        break;
    case DMAPP_C_FLOAT:
        ((float *)at)[i] = (float)e.a;
        break;
    case DMAPP_C_DOUBLE:
        ((double *)at)[i] = (double)e.a;
        break;
    case DMAPP_C_COMPLEX8:
        ((dmapp_c_complex8_t *)at)[i] = (dmapp_c_complex8_t){ (float)e.a, (float)e.b };
        break;
    case DMAPP_C_COMPLEX16:
        ((dmapp_c_complex16_t *)at)[i] = (dmapp_c_complex16_t){ (double)e.a, (double)e.b };
        break;
    case DMAPP_C_FLOAT_UINT64:
        ((dmapp_c_float_uint64_t *)at)[i] = (dmapp_c_float_uint64_t){ (float)e.a, (uint64_t)e.b };
        break;
    case DMAPP_C_DOUBLE_UINT64:
        ((dmapp_c_double_uint64_t *)at)[i] = (dmapp_c_double_uint64_t){ (double)e.a, (uint64_t)e.b };
        break;
    case DMAPP_C_INT32_UINT64:
        ((dmapp_c_int_uint64_t *)at)[i] = (dmapp_c_int_uint64_t){ (int)e.a, (uint64_t)e.b };
        break;
    default:
        ((dmapp_c_int64_uint64_t *)at)[i] = (dmapp_c_int64_uint64_t){ e.a, (uint64_t)e.b };
        break;
    }
}

static bool is_at(const void *at, uint32_t i, dmapp_c_type_t type, struct element e)
{
    switch (type) {
    case DMAPP_C_INT32:
    case DMAPP_C_UINT32:
        return ((const int32_t *)at)[i] == (int32_t)e.a;
    case DMAPP_C_INT64:
    case DMAPP_C_UINT64:
        return ((const int64_t *)at)[i] == e.a;
    case DMAPP_C_FLOAT:
        return ((const float *)at)[i] == (float)e.a;
    case DMAPP_C_DOUBLE:
        return ((const double *)at)[i] == (double)e.a;
    case DMAPP_C_COMPLEX8:
        return ((const dmapp_c_complex8_t *)at)[i].re == (float)e.a &&
               ((const dmapp_c_complex8_t *)at)[i].im == (float)e.b;
    case DMAPP_C_COMPLEX16:
        return ((const dmapp_c_complex16_t *)at)[i].re == (double)e.a &&
               ((const dmapp_c_complex16_t *)at)[i].im == (double)e.b;
    case DMAPP_C_FLOAT_UINT64:
        return ((const dmapp_c_float_uint64_t *)at)[i].value == (float)e.a &&
               ((const dmapp_c_float_uint64_t *)at)[i].loc == (uint64_t)e.b;
    case DMAPP_C_DOUBLE_UINT64:
        return ((const dmapp_c_double_uint64_t *)at)[i].value == (double)e.a &&
               ((const dmapp_c_double_uint64_t *)at)[i].loc == (uint64_t)e.b;
    case DMAPP_C_INT32_UINT64:
        return ((const dmapp_c_int_uint64_t *)at)[i].value == (int)e.a &&
               ((const dmapp_c_int_uint64_t *)at)[i].loc == (uint64_t)e.b;
    default:
        return ((const dmapp_c_int64_uint64_t *)at)[i].value == e.a &&
               ((const dmapp_c_int64_uint64_t *)at)[i].loc == (uint64_t)e.b;
    }
}

static void check_reduction(dmapp_c_pset_handle_t set, size_t t, dmapp_c_op_t op, uint32_t nelems, unsigned seed,
                            bool in_place)
{
    _Alignas(16) uint8_t in[4096], out[4096];
    void *result = in_place ? in : out;

    memset(out, 0x77, sizeof(out));
    for (uint32_t i = 0; i < nelems; i++)
        store(in, i, types[t].type, element_of(types[t].class, dx_job.pe, i, seed));
    assert_int_equal(dmapp_c_greduce_start(set, in, result, nelems, types[t].type, op), DMAPP_RC_SUCCESS);
    if (!in_place)
        memset(in, 0x55, sizeof(in)); /* was read before start returned */
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    for (uint32_t i = 0; i < nelems; i++) {
        struct element expected = element_of(types[t].class, 0, i, seed);

        for (dmapp_pe_t pe = 1; pe < dx_job.npes; pe++)
            expected = combine(types[t].class, expected, element_of(types[t].class, pe, i, seed), op);
        if (!is_at(result, i, types[t].type, expected))
            fail_msg("type %d op %d element %u of %u", types[t].type, op, i, nelems);
    }
    if (!in_place)
        assert_int_equal(out[nelems * types[t].size], 0x77);
}

static void test_every_reduction_gives_what_the_model_gives(void **state)
{
    (void)state;
    for (unsigned m = 0; m < 3; m++) {
        for (uint32_t radix = 0; radix <= 2; radix += 2) {
            dmapp_c_pset_handle_t set = make(everybody(), 1, all_modes[m], radix, true);

            for (size_t t = 0; t < N_TYPES; t++) {
                uint32_t most;

                assert_int_equal(dmapp_c_greduce_nelems_max(types[t].type, &most), DMAPP_RC_SUCCESS);
                assert_true(most * types[t].size >= 64 && most * types[t].size < 4000);
                for (int op = DMAPP_C_SUM; op < DMAPP_C_OP_LAST; op++) {
                    if (!is_legal(types[t].class, op))
                        continue;
                    check_reduction(set, t, op, 1, 1, false);
                    check_reduction(set, t, op, most, 2, false);
                    check_reduction(set, t, op, (most + 1) / 2, 3, true);
                }
            }
            unmake(set);
        }
    }
}

static void test_integers_wrap_and_extremes_compare(void **state)
{
    dmapp_c_pset_handle_t set = make(everybody(), 1, 0, 0, true);
    int64_t big = INT64_MAX, sum;
    uint32_t high = dx_job.pe == 0 ? UINT32_MAX : 1, most;
    double number = dx_job.pe == 0 ? NAN : dx_job.pe, largest;

    (void)state;
    assert_int_equal(dmapp_c_greduce_start(set, &big, &sum, 1, DMAPP_C_INT64, DMAPP_C_SUM), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    assert_int_equal((uint64_t)sum, (uint64_t)INT64_MAX * (unsigned)dx_job.npes);
    assert_int_equal(dmapp_c_greduce_start(set, &high, &most, 1, DMAPP_C_UINT32, DMAPP_C_MAX), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    assert_int_equal(most, UINT32_MAX);
    assert_int_equal(dmapp_c_greduce_start(set, &high, &most, 1, DMAPP_C_INT32, DMAPP_C_MAX), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    assert_int_equal(most, 1);
    assert_int_equal(dmapp_c_greduce_start(set, &number, &largest, 1, DMAPP_C_DOUBLE, DMAPP_C_MAX), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    assert_true(largest == dx_job.npes - 1);
    unmake(set);
}

/* Sums of doubles that depend on their order: the same bits in every PE and every time. */
static void test_results_do_not_depend_on_the_order_of_arrival(void **state)
{
    dmapp_c_pset_handle_t set = make(everybody(), 1, 0, 0, true);
    double *sums = dx_alloc(2 * sizeof(*sums));
    double in = 1.0 / (3 + dx_job.pe) * (dx_job.pe % 2 ? 1e16 : 1), first = 0;
    struct emu_random random = { .state = 7 + (unsigned)dx_job.pe };

    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        for (uint64_t spin = emu_random_next(&random) % 5000; spin > 0; spin--)
            __asm__ volatile("");
        assert_int_equal(dmapp_c_greduce_start(set, &in, &sums[0], 1, DMAPP_C_DOUBLE, DMAPP_C_SUM), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
        if (i == 0)
            first = sums[0];
        assert_memory_equal(&sums[0], &first, sizeof(first));
    }
    dx_barrier();
    assert_int_equal(dmapp_get(&in, &sums[0], &dx_job.sheap_seg, 0, 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    assert_memory_equal(&in, &first, sizeof(first));
    dx_free(sums);
    unmake(set);
}

/* ---- states ---- */

static void test_one_operation_at_a_time(void **state)
{
    dmapp_c_pset_handle_t set = make(everybody(), 1, 0, 0, true);
    int64_t in = 1, out = 0;
    dmapp_return_t rc;

    (void)state;
    assert_int_equal(dmapp_c_pset_test(set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    if (dx_job.pe == 0) {
        assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_c_pset_test(set), DMAPP_RC_NOT_DONE);
        assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_BUSY);
        assert_int_equal(dmapp_c_greduce_start(set, &in, &out, 1, DMAPP_C_INT64, DMAPP_C_SUM), DMAPP_RC_BUSY);
        assert_int_equal(dmapp_c_pset_destroy(set), DMAPP_RC_BUSY);
        dx_barrier();
    } else {
        dx_barrier();
        assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_SUCCESS);
    }
    while ((rc = dmapp_c_pset_test(set)) == DMAPP_RC_NOT_DONE)
        ;
    assert_int_equal(rc, DMAPP_RC_SUCCESS);
    assert_int_equal(out, 0);
    unmake(set);
}

static void test_different_operations_fail(void **state)
{
    dmapp_c_pset_handle_t set = make(everybody(), 1, 0, 0, true);
    int64_t in = 1, out = 5;

    (void)state;
    assert_int_equal(dmapp_c_greduce_start(set, &in, &out, 1, DMAPP_C_INT64, dx_job.pe ? DMAPP_C_SUM : DMAPP_C_MAX),
                     DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(out, 5);
    assert_int_equal(dmapp_c_greduce_start(set, &in, &out, dx_job.pe ? 1 : 2, DMAPP_C_INT32, DMAPP_C_SUM),
                     DMAPP_RC_SUCCESS);
    for (dmapp_return_t rc = DMAPP_RC_NOT_DONE; rc == DMAPP_RC_NOT_DONE;) {
        rc = dmapp_c_pset_test(set);
        if (rc != DMAPP_RC_NOT_DONE) {
            /* covers: dmapp_c_pset_test: DMAPP_RC_TRANSACTION_ERROR */
            assert_int_equal(rc, DMAPP_RC_TRANSACTION_ERROR);
        }
    }
    /* The set is as good as before. */
    assert_int_equal(dmapp_c_greduce_start(set, &in, &out, 1, DMAPP_C_INT64, DMAPP_C_SUM), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    assert_int_equal(out, dx_job.npes);
    unmake(set);
}

static void test_a_cancelled_set_can_only_be_destroyed(void **state)
{
    dmapp_c_pset_handle_t set = make(everybody(), 1, 0, 0, true);

    (void)state;
    assert_int_equal(dmapp_c_pset_cancel_op(set), DMAPP_RC_SUCCESS); /* nothing runs: nothing happens */
    assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    dx_barrier();
    if (dx_job.pe == 0) {
        assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_c_pset_cancel_op(set), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_INVALID_PARAM);
    }
    unmake(set);
    /* Its identifier is free again. */
    set = make(everybody(), 1, 0, 0, true);
    assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    unmake(set);
}

static void test_export_needs_every_member(void **state)
{
    dmapp_c_pset_desc_t desc = everybody();
    dmapp_c_pset_handle_t set = NULL;

    (void)state;
    if (dx_job.pe != 1)
        assert_int_equal(dmapp_c_pset_create(&desc, 44, 0, NULL, &set), DMAPP_RC_SUCCESS);
    dx_barrier();
    if (dx_job.pe != 1) {
        assert_int_equal(dmapp_c_pset_export(set), DMAPP_RC_NOT_FOUND);
        assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_INVALID_PARAM);
    }
    dx_barrier();
    if (dx_job.pe == 1)
        assert_int_equal(dmapp_c_pset_create(&desc, 44, 0, NULL, &set), DMAPP_RC_SUCCESS);
    dx_barrier();
    assert_int_equal(dmapp_c_pset_export(set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_export(set), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_barrier_join(set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_SUCCESS);
    unmake(set);
}

static void test_sets_that_cannot_be_are_refused(void **state)
{
    dmapp_c_pset_attrs_t attrs = { .type = DMAPP_C_PSET_ATTRS_LAST };
    dmapp_c_pset_desc_t good = everybody(), no_type = good, no_pe = good, many_pes = good, beyond = good;
    uint32_t us_and_twice[3] = { (uint32_t)dx_job.pe, 0, 0 };
    uint32_t others[1] = { (uint32_t)((dx_job.pe + 1) % dx_job.npes) };
    dmapp_c_pset_desc_t twice = { .type = DMAPP_C_PSET_DELIMITER_VEC,
                                  .u.vec_type = { .n_pes = 3, .vec_pes = us_and_twice } };
    dmapp_c_pset_desc_t no_vector = twice, without_us = twice;
    dmapp_c_pset_handle_t set = NULL, other = NULL;
    const struct {
        const char *name;
        dmapp_c_pset_desc_t *desc;
        uint64_t identifier;
        uint64_t modes;
        dmapp_c_pset_attrs_t *attrs;
        dmapp_c_pset_handle_t *out;
    } rows[] = {
        { "no description", NULL, 1, 0, NULL, &set },
        { "no handle", &good, 1, 0, NULL, NULL },
        { "identifier 0", &good, 0, 0, NULL, &set },
        { "unknown mode", &good, 1, 0x80, NULL, &set },
        { "unknown attributes", &good, 1, 0, &attrs, &set },
        { "no type", &no_type, 1, 0, NULL, &set },
        { "no PE", &no_pe, 1, 0, NULL, &set },
        { "too many PEs", &many_pes, 1, 0, NULL, &set },
        { "one PE beyond the last", &beyond, 1, 0, NULL, &set },
        { "a PE twice", &twice, 1, 0, NULL, &set },
        { "no vector", &no_vector, 1, 0, NULL, &set },
        { "without us", &without_us, 1, 0, NULL, &set },
    };

    (void)state;
    no_type.type = DMAPP_C_PSET_DELIMITER_LAST;
    no_pe.u.stride_type.n_pes = 0;
    many_pes.u.stride_type.n_pes = UINT32_MAX;
    beyond.u.stride_type.base_pe = 1;
    no_vector.u.vec_type.vec_pes = NULL;
    without_us.u.vec_type = (dmapp_c_pset_delimiter_vec_t){ .n_pes = 1, .vec_pes = others };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(
            rows[i].name,
            dmapp_c_pset_create(rows[i].desc, rows[i].identifier, rows[i].modes, rows[i].attrs, rows[i].out),
            DMAPP_RC_INVALID_PARAM);
    assert_null(set);

    assert_int_equal(dmapp_c_pset_create(&good, 1, 0, NULL, &set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_create(&good, 1, 0, NULL, &other), DMAPP_RC_BUSY);
    assert_null(other);
    assert_int_equal(dmapp_c_pset_destroy(set), DMAPP_RC_SUCCESS);
    dx_barrier();
}

static void test_calls_on_no_set_are_refused(void **state)
{
    dmapp_c_pset_handle_t set = make(everybody(), 1, 0, 0, true);
    dmapp_c_pset_handle_t nonsense = (dmapp_c_pset_handle_t)(void *)&set;
    int64_t word = 0;
    uint32_t most;

    (void)state;
    assert_int_equal(dmapp_c_greduce_start(set, NULL, &word, 1, DMAPP_C_INT64, DMAPP_C_SUM), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_greduce_start(set, &word, NULL, 1, DMAPP_C_INT64, DMAPP_C_SUM), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_greduce_start(set, &word, &word, 0, DMAPP_C_INT64, DMAPP_C_SUM), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_greduce_nelems_max(DMAPP_C_INT64, &most), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_greduce_start(set, &word, &word, most + 1, DMAPP_C_INT64, DMAPP_C_SUM),
                     DMAPP_RC_INVALID_PARAM);
    for (size_t t = 0; t < N_TYPES; t++) {
        for (int op = DMAPP_C_SUM - 1; op <= DMAPP_C_OP_LAST; op++) {
            if (op < DMAPP_C_SUM || op == DMAPP_C_OP_LAST || !is_legal(types[t].class, op))
                assert_int_equal(dmapp_c_greduce_start(set, &word, &word, 1, types[t].type, op),
                                 DMAPP_RC_INVALID_PARAM);
        }
    }
    assert_int_equal(dmapp_c_greduce_start(set, &word, &word, 1, DMAPP_C_TYPE_LAST, DMAPP_C_SUM),
                     DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_greduce_nelems_max(DMAPP_C_TYPE_LAST, &most), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_greduce_nelems_max(DMAPP_C_INT64, NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_pset_export(nonsense), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_barrier_join(nonsense), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_greduce_start(NULL, &word, &word, 1, DMAPP_C_INT64, DMAPP_C_SUM), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_pset_test(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_pset_wait(nonsense), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_pset_cancel_op(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_pset_destroy(nonsense), DMAPP_RC_INVALID_PARAM);
    unmake(set);
    assert_int_equal(dmapp_c_pset_destroy(set), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_c_pset_wait(set), DMAPP_RC_INVALID_PARAM);
}

static void test_there_are_many_sets_but_not_any_number(void **state)
{
    dmapp_c_pset_handle_t sets[4096];
    dmapp_c_pset_desc_t desc = everybody();
    dmapp_return_t rc = DMAPP_RC_SUCCESS;
    unsigned n = 0;

    (void)state;
    while (rc == DMAPP_RC_SUCCESS && n < 4096) {
        rc = dmapp_c_pset_create(&desc, n + 1, 0, NULL, &sets[n]);
        n += rc == DMAPP_RC_SUCCESS;
    }
    /* covers: dmapp_c_pset_create: DMAPP_RC_NO_SPACE */
    assert_int_equal(rc, DMAPP_RC_NO_SPACE);
    assert_true(n >= 16);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(dmapp_c_pset_destroy(sets[i]), DMAPP_RC_SUCCESS);
    dx_barrier();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_leaves_a_barrier_early),
        cmocka_unit_test(test_sets_of_every_other_pe_and_of_a_list_in_any_order),
        cmocka_unit_test(test_sets_proceed_independently),
        cmocka_unit_test(test_every_reduction_gives_what_the_model_gives),
        cmocka_unit_test(test_integers_wrap_and_extremes_compare),
        cmocka_unit_test(test_results_do_not_depend_on_the_order_of_arrival),
        cmocka_unit_test(test_one_operation_at_a_time),
        cmocka_unit_test(test_different_operations_fail),
        cmocka_unit_test(test_a_cancelled_set_can_only_be_destroyed),
        cmocka_unit_test(test_export_needs_every_member),
        cmocka_unit_test(test_sets_that_cannot_be_are_refused),
        cmocka_unit_test(test_calls_on_no_set_are_refused),
        cmocka_unit_test(test_there_are_many_sets_but_not_any_number),
    };
    uint32_t most;

    /* Legal before init. */
    if (dmapp_c_greduce_nelems_max(DMAPP_C_DOUBLE, &most) != DMAPP_RC_SUCCESS || most < 8)
        return 1;
    return dx_run(tests, NULL);
}
