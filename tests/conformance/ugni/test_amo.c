/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic memory operations: every command, both ways of reaching memory, vectors, pairs, atomicity.
 * Specification: spec/ugni.md 2.15, 4.7.3, 4.8.4, 7.19, 7.20.
 */
#include <math.h>

#include "tests/conformance/pair.h"

enum op { ADD, AND, OR, XOR, SWAP, AX, CSWAP, MIN, MAX, FPMIN, FPMAX, FPADD };

struct command {
    gni_fma_cmd_type_t cmd;
    enum op op;
    unsigned width; /* bytes of an operand */
    bool fetches;
};

/* First generation: get, get cached, put, put cached; 64 bits. */
#define FIRST(op, get, put)                                                                                            \
    { GNI_FMA_ATOMIC_##get, op, 8, true }, { GNI_FMA_ATOMIC_##get##_C, op, 8, true },                                  \
        { GNI_FMA_ATOMIC_##put, op, 8, false },                                                                        \
    {                                                                                                                  \
        GNI_FMA_ATOMIC_##put##_C, op, 8, false                                                                         \
    }

/* Second generation: the same in 32 and 64 bits. */
#define SECOND(op, name)                                                                                               \
    { GNI_FMA_ATOMIC2_F##name##_S, op, 4, true }, { GNI_FMA_ATOMIC2_F##name, op, 8, true },                            \
        { GNI_FMA_ATOMIC2_F##name##_SC, op, 4, true }, { GNI_FMA_ATOMIC2_F##name##_C, op, 8, true },                   \
        { GNI_FMA_ATOMIC2_##name##_S, op, 4, false }, { GNI_FMA_ATOMIC2_##name, op, 8, false },                        \
        { GNI_FMA_ATOMIC2_##name##_SC, op, 4, false },                                                                 \
    {                                                                                                                  \
        GNI_FMA_ATOMIC2_##name##_C, op, 8, false                                                                       \
    }

static const struct command commands[] = {
    FIRST(ADD, FADD, ADD),
    FIRST(AND, FAND, AND),
    FIRST(OR, FOR, OR),
    FIRST(XOR, FXOR, XOR),
    FIRST(AX, FAX, AX),
    { GNI_FMA_ATOMIC_CSWAP, CSWAP, 8, true }, /* this one fetches */
    { GNI_FMA_ATOMIC_CSWAP_C, CSWAP, 8, true },
    SECOND(AND, AND),
    SECOND(OR, OR),
    SECOND(XOR, XOR),
    SECOND(SWAP, SWAP),
    SECOND(AX, AX),
    SECOND(CSWAP, CSWAP),
    SECOND(MIN, IMIN),
    SECOND(MAX, IMAX),
    SECOND(ADD, IADD),
    SECOND(FPMIN, FPMIN),
    SECOND(FPMAX, FPMAX),
    SECOND(FPADD, FPADD),
};

/* ---- what the specification says ---- */

static uint64_t double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, 8);
    return bits;
}

static uint64_t float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, 4);
    return bits;
}

static double to_double(uint64_t bits, unsigned width)
{
    double d;
    float f;

    memcpy(&d, &bits, 8);
    memcpy(&f, &bits, 4);
    return width == 4 ? (double)f : d;
}

static int64_t to_signed(uint64_t bits, unsigned width)
{
    return width == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits;
}

static uint64_t expected_float(const struct command *c, double m, double x)
{
    double r;

    if (c->op == FPADD)
        return c->width == 4 ? float_bits((float)m + (float)x) : double_bits(m + x);
    if (isnan(m) || isnan(x))
        r = isnan(m) ? x : m;
    else
        r = (c->op == FPMIN) == (m < x) ? m : x;
    return c->width == 4 ? float_bits((float)r) : double_bits(r);
}

/* The new word; x and y are the operands. */
static uint64_t expected(const struct command *c, uint64_t m, uint64_t x, uint64_t y)
{
    uint64_t mask = c->width == 4 ? 0xffffffff : UINT64_MAX;
    bool smaller = to_signed(x, c->width) < to_signed(m, c->width);

    switch (c->op) {
    case ADD:
        return (m + x) & mask;
    case AND:
        return m & x & mask;
    case OR:
        return (m | x) & mask;
    case XOR:
        return (m ^ x) & mask;
    case SWAP:
        return x & mask;
    case AX:
        return ((m & x) ^ y) & mask;
    case CSWAP:
        return ((m & mask) == (x & mask) ? y : m) & mask;
    case MIN:
        return (smaller ? x : m) & mask;
    case MAX:
        return (smaller ? m : x) & mask;
    default:
        return expected_float(c, to_double(m, c->width), to_double(x, c->width));
    }
}

/* Values that make a difference: signs, carries out of 32 and 64 bits, equal words, upper halves of 32-bit operands. */
static const uint64_t integers[][3] = {
    { 0, 0, 0 },
    { 5, 7, 11 },
    { UINT64_MAX, 1, 2 },
    { 1, UINT64_MAX, UINT64_MAX },
    { 0x7fffffffffffffff, 1, 0x8000000000000000 },
    { 0x8000000000000000, 0x7fffffffffffffff, 3 },
    { 0x7fffffff, 0x80000000, 0xffffffff },
    { 0xfffffffffffffffe, 3, 0x5555555555555555 },
    { 0x0123456789abcdef, 0x0123456789abcdef, 0xfedcba9876543210 },
    { 0x1111111189abcdef, 0x2222222289abcdef, 0x3333333376543210 },
    { 0xf0f0f0f0f0f0f0f0, 0xff00ff00ff00ff00, 0x0f0f0f0f0f0f0f0f },
};

static const double floats[][2] = {
    { 1.5, 2.25 },     { -1.5, 2.25 },      { 3.0, -4.0 },     { -7.0, -8.0 },     { 0.1, 0.2 }, { 1e30, 1.0 },
    { 1e-30, -1e-30 }, { 16777216.0, 1.0 }, { INFINITY, 1.0 }, { -INFINITY, 5.0 }, { NAN, 2.0 }, { 2.0, NAN },
};

static bool is_float(const struct command *c)
{
    return c->op >= FPMIN;
}

static size_t count_of_operands(const struct command *c)
{
    return is_float(c) ? COUNT_OF(floats) : COUNT_OF(integers);
}

static void operands(const struct command *c, size_t i, uint64_t *m, uint64_t *x, uint64_t *y)
{
    if (!is_float(c)) {
        *m = integers[i][0];
        *x = integers[i][1];
        *y = integers[i][2];
        return;
    }
    *m = c->width == 4 ? float_bits((float)floats[i][0]) : double_bits(floats[i][0]);
    *x = c->width == 4 ? float_bits((float)floats[i][1]) : double_bits(floats[i][1]);
    *y = 0x5a5a5a5a5a5a5a5a;
}

static bool is_same_number(const struct command *c, uint64_t left, uint64_t right)
{
    if (is_float(c) && isnan(to_double(left, c->width)) && isnan(to_double(right, c->width)))
        return true; /* any of the many */
    return left == right;
}

/* ---- one command ---- */

struct target {
    uint8_t *mem;
    gni_mem_handle_t handle;
};

static gni_post_descriptor_t amo(const struct target *target, gni_fma_cmd_type_t cmd, uint64_t offset, uint64_t length,
                                 uint64_t first, uint64_t second)
{
    return (gni_post_descriptor_t){ .type = GNI_POST_AMO,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .local_addr = ADDR(a.mem) + 64,
                                    .local_mem_hndl = a.mem_hndl,
                                    .remote_addr = ADDR(target->mem) + offset,
                                    .remote_mem_hndl = target->handle,
                                    .length = length,
                                    .amo_cmd = cmd,
                                    .first_operand = first,
                                    .second_operand = second };
}

static void expect_word(const uint8_t *mem, unsigned width, uint64_t value, const struct command *c)
{
    uint64_t found = 0;

    memcpy(&found, mem, width);
    if (!is_same_number(c, found, width == 4 ? value & 0xffffffff : value))
        fail_msg("command 0x%03x: 0x%016llx and not 0x%016llx", (unsigned)c->cmd, (unsigned long long)found,
                 (unsigned long long)value);
}

/* Runs every command with every set of operands on the word at 64; nothing around it may change. */
static void check_all_commands(const struct target *target)
{
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
        const struct command *c = &commands[k];

        for (size_t i = 0; i < count_of_operands(c); i++) {
            gni_post_descriptor_t d;
            uint64_t m, x, y;

            operands(c, i, &m, &x, &y);
            memset(target->mem, 0xee, 256);
            memset(a.mem, 0xdd, 256);
            memcpy(target->mem + 64, &m, c->width);
            d = amo(target, c->cmd, 64, c->width, x, y);
            assert_int_equal(run(&d), STATUS_OK);
            expect_word(target->mem + 64, c->width, expected(c, m, x, y), c);
            assert_true(all_bytes_are(target->mem, 0xee, 64));
            assert_true(all_bytes_are(target->mem + 64 + c->width, 0xee, 192 - c->width));
            if (c->fetches)
                expect_word(a.mem + 64, c->width, m, c);
            else
                assert_true(all_bytes_are(a.mem + 64, 0xdd, c->width));
            assert_true(all_bytes_are(a.mem, 0xdd, 64));
            assert_true(all_bytes_are(a.mem + 64 + c->width, 0xdd, 192 - c->width));
        }
    }
}

static void test_every_command_does_its_arithmetic(void **state)
{
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    assert_int_equal(COUNT_OF(commands), 22 + 12 * 8);
    check_all_commands(&target);
}

/* Memory that emunic made and has mapped itself: atomics are instructions there. */
static void test_every_command_does_its_arithmetic_on_shared_memory(void **state)
{
    static struct fx_mapped m;
    void *mem;

    (void)state;
    mem = fx_map(&m, &fx, 1, 12, 4096);
    check_all_commands(&(struct target){ mem, { (uint64_t)m.mdh << 52 | ADDR(mem) >> 12, 12ull << 28 | 1 } });
    fx_deregister_mapped(&m);
    fx_unmap(&m);
}

static void test_cached_commands_work_in_their_mode_too(void **state)
{
    struct target target;

    (void)state;
    close_pair(state);
    open_pair_in_mode(GNI_CDM_MODE_CACHED_AMO_ENABLED);
    target = (struct target){ b.mem, b.mem_hndl };
    check_all_commands(&target);
}

static void test_commands_without_result_need_no_local_side(void **state)
{
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
        const struct command *c = &commands[k];
        gni_post_descriptor_t d = amo(&target, c->cmd, 0, c->width, 1, 1);

        if (c->fetches)
            continue;
        d.local_addr = 3;
        d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        assert_int_equal(run(&d), STATUS_OK);
    }
}

/* ---- vectors and pairs ---- */

static bool steps_by_pairs(const struct command *c)
{
    return !c->fetches && (c->op == AX || c->op == CSWAP);
}

static void check_vector(const struct target *target, const struct command *c, unsigned n_words)
{
    const uint64_t m = c->op >= FPMIN ? (c->width == 4 ? float_bits(2.5f) : double_bits(2.5)) : 12;
    const uint64_t x = c->op >= FPMIN ? (c->width == 4 ? float_bits(4.0f) : double_bits(4.0)) : 12;
    gni_post_descriptor_t d = amo(target, c->cmd, 64, (uint64_t)n_words * c->width, x, 5);
    const unsigned step = steps_by_pairs(c) && n_words > 1 ? 2 : 1;

    memset(target->mem, 0xee, 64 + 8 * (n_words + 1));
    memset(a.mem, 0xdd, 64 + 8 * (n_words + 1));
    for (unsigned i = 0; i < n_words; i++)
        memcpy(target->mem + 64 + (size_t)i * c->width, &m, c->width);
    assert_int_equal(run(&d), STATUS_OK);
    for (unsigned i = 0; i < n_words; i++) {
        expect_word(target->mem + 64 + (size_t)i * c->width, c->width, i % step == 0 ? expected(c, m, x, 5) : m, c);
        if (c->fetches)
            expect_word(a.mem + 64 + (size_t)i * c->width, c->width, m, c);
    }
    assert_true(all_bytes_are(target->mem + 64 + (size_t)n_words * c->width, 0xee, 8));
    assert_true(all_bytes_are(a.mem + 64 + (c->fetches ? (size_t)n_words * c->width : 0), 0xdd, 8));
}

static void test_longer_lengths_are_vectors_of_operations(void **state)
{
    static const unsigned lengths[] = { 2, 3, 4, 5, 8, 31 };
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            if (!steps_by_pairs(&commands[k]))
                check_vector(&target, &commands[k], lengths[i]);
        }
    }
}

/* Two operands and no result: a length of one or two words means the first word, beyond that every second one. */
static void test_commands_of_two_operands_without_result_step_by_pairs(void **state)
{
    static const unsigned lengths[] = { 1, 2, 4, 6, 30 };
    struct target target = { b.mem, b.mem_hndl };
    unsigned n_commands = 0;

    (void)state;
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
        n_commands += steps_by_pairs(&commands[k]);
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            if (steps_by_pairs(&commands[k]))
                check_vector(&target, &commands[k], lengths[i]);
        }
    }
    assert_int_equal(n_commands, 2 + 8);
}

static void test_long_vectors_arrive_whole(void **state)
{
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    check_vector(&target, &(struct command){ GNI_FMA_ATOMIC_FADD, ADD, 8, true }, 7000);
    check_vector(&target, &(struct command){ GNI_FMA_ATOMIC2_FIADD_S, ADD, 4, true }, 3001);
    check_vector(&target, &(struct command){ GNI_FMA_ATOMIC_ADD, ADD, 8, false }, 257);
    check_vector(&target, &(struct command){ GNI_FMA_ATOMIC2_CSWAP_S, CSWAP, 4, false }, 4000);
}

/* ---- what is refused ---- */

static void expect_refused(gni_post_descriptor_t d, gni_return_t rc)
{
    gni_post_descriptor_t before = d;

    memset(b.mem, 0xee, 256);
    assert_int_equal(post(&d), rc);
    assert_memory_equal(&d, &before, sizeof(d));
    assert_true(all_bytes_are(b.mem, 0xee, 256));
}

/* The result has no place to go to: nothing is done. */
static void expect_local_access(gni_post_descriptor_t d)
{
    memset(b.mem, 0xee, 256);
    assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
    assert_true(all_bytes_are(b.mem, 0xee, 256));
}

static void test_misaligned_addresses_give_alignment_error(void **state)
{
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
        const struct command *c = &commands[k];

        for (unsigned skew = 1; skew < c->width; skew++) {
            gni_post_descriptor_t d = amo(&target, c->cmd, 64, c->width, 1, 1);

            d.remote_addr += skew;
            expect_refused(d, GNI_RC_ALIGNMENT_ERROR);
            d.remote_addr -= skew;
            d.local_addr += skew;
            if (c->fetches)
                expect_refused(d, GNI_RC_ALIGNMENT_ERROR);
        }
    }
}

static void test_lengths_that_are_no_whole_words_give_alignment_error(void **state)
{
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
        const struct command *c = &commands[k];

        expect_refused(amo(&target, c->cmd, 64, c->width - 1, 1, 1), GNI_RC_ALIGNMENT_ERROR);
        expect_refused(amo(&target, c->cmd, 64, c->width + 2, 1, 1), GNI_RC_ALIGNMENT_ERROR);
        expect_refused(amo(&target, c->cmd, 64, c->width + c->width / 2, 1, 1), GNI_RC_ALIGNMENT_ERROR);
    }
}

static void test_words_of_32_bits_need_four_byte_alignment_only(void **state)
{
    struct target target = { b.mem, b.mem_hndl };
    gni_post_descriptor_t d = amo(&target, GNI_FMA_ATOMIC2_FIADD_S, 68, 4, 1, 0);

    (void)state;
    d.local_addr += 4;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(b.mem[68], 1);
}

static void test_length_zero_is_refused(void **state)
{
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    for (size_t k = 0; k < COUNT_OF(commands); k++)
        expect_refused(amo(&target, commands[k].cmd, 64, 0, 1, 1), GNI_RC_INVALID_PARAM);
}

static bool is_command(uint32_t number)
{
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
        if (commands[k].cmd == number)
            return true;
    }
    return false;
}

static void test_unknown_commands_are_refused(void **state)
{
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    for (uint32_t number = 0; number < 0x1000; number++) {
        if (!is_command(number))
            expect_refused(amo(&target, (gni_fma_cmd_type_t)number, 64, 8, 1, 1), GNI_RC_INVALID_PARAM);
    }
    expect_refused(amo(&target, (gni_fma_cmd_type_t)(0x10000 | GNI_FMA_ATOMIC_FADD), 64, 8, 1, 1),
                   GNI_RC_INVALID_PARAM);
}

static void test_fetching_needs_registered_writable_local_memory(void **state)
{
    struct target target = { b.mem, b.mem_hndl };
    gni_post_descriptor_t d = amo(&target, GNI_FMA_ATOMIC_FADD, 64, 8, 1, 0);
    uint8_t *sink = pages(4096);
    gni_mem_handle_t handle = register_on(&a, sink, 4096, GNI_MEM_READ_ONLY);

    (void)state;
    d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    expect_refused(d, GNI_RC_INVALID_PARAM);
    d.local_mem_hndl = a.mem_hndl;
    d.local_addr = ADDR(a.mem) + GX_BYTES;
    expect_local_access(d);
    d.local_mem_hndl = handle;
    d.local_addr = ADDR(sink);
    expect_refused(d, GNI_RC_PERMISSION_ERROR);
    GNI_MemDeregister(a.nic, &handle);
    munmap(sink, 4096);
}

/* ---- what the target refuses ---- */

static void test_atomics_on_read_only_memory_fail_and_change_nothing(void **state)
{
    uint8_t *mem = pages(4096);
    struct target target = { mem, register_on(&b, mem, 4096, GNI_MEM_READ_ONLY) };

    (void)state;
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
        gni_post_descriptor_t d = amo(&target, commands[k].cmd, 64, commands[k].width, UINT64_MAX, 0);

        memset(a.mem, 0xdd, 256);
        assert_int_equal(run(&d), STATUS_REMOTE_PERMISSION);
        assert_true(all_bytes_are(a.mem, 0xdd, 256));
    }
    assert_true(all_bytes_are(mem, 0, 4096));
    GNI_MemDeregister(b.nic, &target.handle);
    munmap(mem, 4096);
}

static void test_atomics_outside_the_region_fail(void **state)
{
    struct target target = { b.mem, b.mem_hndl };
    gni_post_descriptor_t d = amo(&target, GNI_FMA_ATOMIC_FADD, GX_BYTES, 8, 1, 0);

    (void)state;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    d = amo(&target, GNI_FMA_ATOMIC_ADD, GX_BYTES - 8, 16, 1, 0);
    memset(b.mem + GX_BYTES - 8, 0, 8);
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    assert_true(all_bytes_are(b.mem + GX_BYTES - 8, 0, 8)); /* not even the word inside */
}

/* ---- events, flag ---- */

static void test_remote_event_of_an_atomic_comes_after_the_operation(void **state)
{
    struct target target = { b.mem, b.mem_hndl };
    gni_cq_entry_t entry;

    (void)state;
    for (unsigned round = 1; round <= 100; round++) {
        gni_post_descriptor_t d = amo(&target, round % 2 ? GNI_FMA_ATOMIC_ADD : GNI_FMA_ATOMIC_FADD, 0, 8, 1, 0);

        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(b.mem[0], round);
        assert_int_equal(finish(&d), STATUS_OK);
    }
}

static void test_flagged_atomic_sets_four_bytes_behind_the_result(void **state)
{
    struct target target = { b.mem, b.mem_hndl };
    gni_post_descriptor_t d = amo(&target, GNI_FMA_ATOMIC_FADD, 0, 8, 1, 0);
    uint32_t flag = 0;
    uint64_t old = 0;

    (void)state;
    b.mem[0] = 41;
    d.type = GNI_POST_AMO_W_FLAG;
    assert_int_equal(run(&d), STATUS_OK);
    memcpy(&old, a.mem + 64, 8);
    memcpy(&flag, a.mem + 72, GNI_FMA_FLAGGED_RESPONSE_SIZE);
    assert_int_equal(old, 41);
    assert_int_not_equal(flag, 0);
    assert_true(all_bytes_are(a.mem + 76, 0, 100));
}

static void test_flagged_atomic_writes_to_registered_memory_only(void **state)
{
    static const gni_fma_cmd_type_t cmds[] = { GNI_FMA_ATOMIC_FADD, GNI_FMA_ATOMIC_ADD };
    struct target target = { b.mem, b.mem_hndl };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cmds); i++) {
        gni_post_descriptor_t d = amo(&target, cmds[i], 0, 8, 1, 0);

        d.type = GNI_POST_AMO_W_FLAG;
        d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        expect_refused(d, GNI_RC_INVALID_PARAM);
        d.local_mem_hndl = a.mem_hndl;
        d.local_addr = ADDR(a.mem) + GX_BYTES - 8; /* the flag would lie outside */
        expect_local_access(d);
    }
}

/* ---- atomicity ---- */

#define ADDERS 4
#define ADDS   1000

struct counter {
    uint64_t addr;
    gni_mem_handle_t handle;
    uint32_t nic_addr;
    uint8_t seen[ADDERS * ADDS];
};

static int add_to_rank_zero(struct fx_rank *rank)
{
    struct counter *counter = rank->shared;
    struct gx_side side;
    uint64_t total = 0;

    gx_open(&side, rank->fx, rank->fx->nids[rank->rank], rank->rank, 0);
    if (rank->rank == 0) {
        counter->addr = ADDR(side.mem);
        counter->handle = side.mem_hndl;
        counter->nic_addr = side.nic_addr;
    }
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &side.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(side.ep, counter->nic_addr, 0) == GNI_RC_SUCCESS);
    for (unsigned i = 0; i < ADDS; i++) {
        gni_post_descriptor_t d = { .type = GNI_POST_AMO,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .local_addr = ADDR(side.mem) + 64,
                                    .local_mem_hndl = side.mem_hndl,
                                    .remote_addr = counter->addr,
                                    .remote_mem_hndl = counter->handle,
                                    .length = 8,
                                    .amo_cmd = GNI_FMA_ATOMIC_FADD,
                                    .first_operand = 1 };
        gni_post_descriptor_t *done;
        uint64_t old;

        FX_CHECK(GNI_PostFma(side.ep, &d) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS);
        memcpy(&old, side.mem + 64, 8);
        FX_CHECK(old < ADDERS * ADDS);
        counter->seen[old]++;
    }
    pthread_barrier_wait(rank->barrier);
    memcpy(&total, side.mem, 8);
    FX_CHECK(rank->rank != 0 || total == ADDERS * ADDS);
    FX_CHECK(all_bytes_are(counter->seen, 1, sizeof(counter->seen))); /* each old value was returned once */
    gx_close(&side);
    return 0;
}

static void test_adds_of_several_processes_all_count(void **state)
{
    (void)state;
    assert_true(sizeof(struct counter) <= FX_SHARED_BYTES);
    assert_int_equal(fx_run(&fx, ADDERS, add_to_rank_zero, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_every_command_does_its_arithmetic),
        pair_test(test_every_command_does_its_arithmetic_on_shared_memory),
        pair_test(test_cached_commands_work_in_their_mode_too),
        pair_test(test_commands_without_result_need_no_local_side),
        pair_test(test_longer_lengths_are_vectors_of_operations),
        pair_test(test_commands_of_two_operands_without_result_step_by_pairs),
        pair_test(test_long_vectors_arrive_whole),
        pair_test(test_misaligned_addresses_give_alignment_error),
        pair_test(test_lengths_that_are_no_whole_words_give_alignment_error),
        pair_test(test_words_of_32_bits_need_four_byte_alignment_only),
        pair_test(test_length_zero_is_refused),
        pair_test(test_unknown_commands_are_refused),
        pair_test(test_fetching_needs_registered_writable_local_memory),
        pair_test(test_atomics_on_read_only_memory_fail_and_change_nothing),
        pair_test(test_atomics_outside_the_region_fail),
        pair_test(test_remote_event_of_an_atomic_comes_after_the_operation),
        pair_test(test_flagged_atomic_sets_four_bytes_behind_the_result),
        pair_test(test_flagged_atomic_writes_to_registered_memory_only),
        cmocka_unit_test(test_adds_of_several_processes_all_count),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
