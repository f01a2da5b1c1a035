/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of small puts: byte-exact, in order, each with its own status, none done twice (emunic/engine/burst.c). The
 * memory is this process's own, reached as another's would be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/engine/burst.h"
#include "tests/common/seed.h"

#define PAGE  4096u
#define PAGES 8u
#define BYTES (PAGE * PAGES)

static struct emu_burst burst;
static uint8_t staging[BYTES];
static uint8_t expected[BYTES];
static uint8_t bounce[64];
static uint8_t *memory;
static struct emu_view view;

static int start(void **state)
{
    (void)state;
    memset(&burst, 0, sizeof(burst));
    memset(staging, 0, sizeof(staging));
    memset(expected, 0, sizeof(expected));
    memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    view = (struct emu_view){ .staging = emu_memory_map(staging, 0, sizeof(staging)),
                              .bounce = bounce,
                              .bounce_bytes = sizeof(bounce) };
    return memory == MAP_FAILED ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    return munmap(memory, BYTES);
}

static uint64_t address(uint64_t offset)
{
    return (uint64_t)(uintptr_t)memory + offset;
}

/* As emu_transaction_begin() would leave it. */
static struct emu_transaction put_of(uint64_t offset, const void *data, uint64_t length_bytes)
{
    struct emu_transaction t = { .cmd = { .op = EMU_OP_PUT, .flags = EMU_CMD_INLINE, .length_bytes = length_bytes },
                                 .remote = emu_memory_cma(getpid()),
                                 .target_addr = address(offset) };

    memcpy(t.cmd.data, data, length_bytes);
    return t;
}

static struct emu_transaction staged_put_of(uint64_t offset, uint64_t staging_off, uint64_t length_bytes)
{
    return (struct emu_transaction){
        .cmd = { .op = EMU_OP_PUT, .flags = EMU_CMD_STAGED, .local_addr = staging_off, .length_bytes = length_bytes },
        .remote = emu_memory_cma(getpid()),
        .target_addr = address(offset)
    };
}

static void add(const struct emu_transaction *t)
{
    assert_int_equal(emu_burst_add(&burst, &view, t), EMU_BURST_TAKEN);
}

static void add_word(uint64_t offset, uint64_t value)
{
    struct emu_transaction t = put_of(offset, &value, sizeof(value));

    add(&t);
}

static uint64_t word_at(uint64_t offset)
{
    uint64_t word;

    memcpy(&word, memory + offset, sizeof(word));
    return word;
}

/* ---- what gets into a burst ---- */

static void test_only_small_puts_at_hand_get_in(void **state)
{
    uint64_t value = 1;
    struct emu_transaction far_away = put_of(0, &value, 8);
    struct emu_transaction get = put_of(0, &value, 8);
    struct emu_transaction empty = put_of(0, &value, 0);
    struct emu_transaction beyond = staged_put_of(0, BYTES - 8, 16);
    struct emu_transaction mapped = put_of(0, &value, 8);

    (void)state;
    far_away.cmd.flags = 0; /* data in the initiator's memory */
    get.cmd.op = EMU_OP_GET;
    mapped.remote = emu_memory_self();
    assert_int_equal(emu_burst_add(&burst, &view, &far_away), EMU_BURST_NEVER);
    assert_int_equal(emu_burst_add(&burst, &view, &get), EMU_BURST_NEVER);
    assert_int_equal(emu_burst_add(&burst, &view, &empty), EMU_BURST_NEVER);
    assert_int_equal(emu_burst_add(&burst, &view, &beyond), EMU_BURST_NEVER);
    assert_int_equal(emu_burst_add(&burst, &view, &mapped), EMU_BURST_NEVER);
    assert_int_equal(burst.n, 0);
}

static void test_a_burst_goes_to_one_process(void **state)
{
    uint64_t value = 1;
    struct emu_transaction other = put_of(0, &value, 8);

    (void)state;
    add_word(0, 1);
    other.remote.pid = getppid();
    assert_int_equal(emu_burst_add(&burst, &view, &other), EMU_BURST_FULL);
}

static void test_a_burst_has_an_end(void **state)
{
    uint64_t value = 1;
    struct emu_transaction t = put_of(0, &value, 8);
    unsigned n = 0;

    (void)state;
    while (emu_burst_add(&burst, &view, &t) == EMU_BURST_TAKEN)
        assert_in_range(++n, 1, EMU_BURST_SEGMENTS);
    assert_in_range(n, EMU_BURST_SEGMENTS - 2, EMU_BURST_SEGMENTS);
    assert_in_range(burst.n_segments, 1, EMU_BURST_SEGMENTS);
}

/* ---- what a burst does ---- */

static void put_something(struct emu_random *random, unsigned number)
{
    uint64_t length_bytes = 1 + emu_random_below(random, number % 3 ? EMU_CMD_INLINE_FLAGGED : 2 * PAGE);
    uint64_t offset = emu_random_below(random, BYTES - length_bytes - 16);
    struct emu_transaction t;
    uint8_t *data = staging + emu_random_below(random, BYTES - length_bytes);

    if (length_bytes <= EMU_CMD_INLINE_FLAGGED)
        t = put_of(offset, data, length_bytes);
    else
        t = staged_put_of(offset, (uint64_t)(data - staging), length_bytes);
    memcpy(expected + offset, data, length_bytes);
    if (number % 4 == 0) {
        uint64_t flag_off = (offset + length_bytes + 7) & ~7ull;

        t.cmd.flags |= EMU_CMD_FLAG;
        memcpy(t.cmd.flagged_data, data, t.cmd.flags & EMU_CMD_INLINE ? length_bytes : 0);
        t.cmd.flag_value = emu_random_next(random);
        t.flag_addr = address(flag_off);
        memcpy(expected + flag_off, &t.cmd.flag_value, 8);
    }
    add(&t);
}

static void test_puts_arrive_whole_and_in_order(void **state)
{
    struct emu_random random = seeded(20121107);

    (void)state;
    for (unsigned i = 0; i < BYTES; i++)
        staging[i] = (uint8_t)emu_random_next(&random);
    /* Many overlap: the later one counts. */
    for (unsigned round = 0; round < 200; round++) {
        unsigned n_puts = 1 + (unsigned)emu_random_below(&random, EMU_BURST_SEGMENTS / 2);

        for (unsigned i = 0; i < n_puts; i++)
            put_something(&random, i);
        emu_burst_run(&burst, &view);
        for (unsigned i = 0; i < burst.n; i++)
            assert_int_equal(burst.puts[i].status, EMU_STATUS_OK);
        burst.n = burst.n_segments = 0;
        assert_memory_equal(memory, expected, BYTES);
    }
}

static void test_a_bad_put_fails_alone(void **state)
{
    (void)state;
    for (unsigned bad = 0; bad < 5; bad++) {
        assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
        for (unsigned i = 0; i < 5; i++)
            add_word(i == bad ? PAGE : 8 * i, 100 * bad + i + 1);
        emu_burst_run(&burst, &view);
        assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
        for (unsigned i = 0; i < 5; i++) {
            assert_int_equal(burst.puts[i].status, i == bad ? EMU_STATUS_REMOTE_RANGE : EMU_STATUS_OK);
            if (i != bad)
                assert_int_equal(word_at(8 * i), 100 * bad + i + 1);
        }
        assert_int_equal(word_at(PAGE), 0);
        burst.n = burst.n_segments = 0;
    }
}

static void test_data_without_a_place_for_the_flag_fail(void **state)
{
    uint64_t value = 7;
    struct emu_transaction t = put_of(0, &value, 0);

    (void)state;
    assert_int_equal(mprotect(memory + PAGE, PAGE, PROT_NONE), 0);
    add_word(8, 1);
    t.cmd.flags |= EMU_CMD_FLAG;
    t.cmd.length_bytes = 8;
    memcpy(t.cmd.flagged_data, &value, 8);
    t.flag_addr = address(PAGE);
    add(&t);
    add_word(16, 2);
    emu_burst_run(&burst, &view);
    assert_int_equal(burst.puts[0].status, EMU_STATUS_OK);
    assert_int_equal(burst.puts[1].status, EMU_STATUS_REMOTE_RANGE);
    assert_int_equal(burst.puts[2].status, EMU_STATUS_OK);
    assert_int_equal(word_at(8), 1);
    assert_int_equal(word_at(16), 2);
}

static void test_a_process_that_is_gone_fails_all(void **state)
{
    uint64_t value = 1;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        struct emu_transaction t = put_of(8 * i, &value, sizeof(value));

        t.remote.pid = 0x7ffffff0; /* above any process number */
        add(&t);
    }
    emu_burst_run(&burst, &view);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(burst.puts[i].status, EMU_STATUS_PEER_GONE);
}

/* ---- none twice: a memory that counts its writes and refuses one segment ---- */

static unsigned n_written[16];
static uint64_t refused;

static size_t count_many(const struct emu_memory *mem, const struct iovec *local, const struct iovec *remote,
                         unsigned n)
{
    size_t done = 0;

    (void)mem;
    for (unsigned i = 0; i < n && (uint64_t)(uintptr_t)remote[i].iov_base != refused; i++) {
        n_written[(uint64_t)(uintptr_t)remote[i].iov_base / 8]++;
        done += local[i].iov_len;
    }
    return done;
}

static int count_one(const struct emu_memory *mem, uint64_t addr, const void *src, size_t len_bytes,
                     const struct emu_flag *flag)
{
    (void)mem;
    (void)src;
    (void)len_bytes;
    (void)flag;
    if (addr == refused)
        return -EFAULT;
    n_written[addr / 8]++;
    return 0;
}

static void test_no_put_is_done_twice(void **state)
{
    static const struct emu_memory_ops ops = { .name = "counting", .write = count_one, .write_many = count_many };
    uint64_t value = 1;

    (void)state;
    for (unsigned bad = 0; bad < 16; bad++) {
        refused = 8 * bad;
        memset(n_written, 0, sizeof(n_written));
        for (unsigned i = 0; i < 16; i++) {
            struct emu_transaction t = put_of(0, &value, 8);

            t.remote.ops = &ops;
            t.target_addr = 8 * i;
            add(&t);
        }
        emu_burst_run(&burst, &view);
        for (unsigned i = 0; i < 16; i++)
            assert_int_equal(n_written[i], i == bad ? 0 : 1);
        burst.n = burst.n_segments = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_only_small_puts_at_hand_get_in, start, stop),
        cmocka_unit_test_setup_teardown(test_a_burst_goes_to_one_process, start, stop),
        cmocka_unit_test_setup_teardown(test_a_burst_has_an_end, start, stop),
        cmocka_unit_test_setup_teardown(test_puts_arrive_whole_and_in_order, start, stop),
        cmocka_unit_test_setup_teardown(test_a_bad_put_fails_alone, start, stop),
        cmocka_unit_test_setup_teardown(test_data_without_a_place_for_the_flag_fail, start, stop),
        cmocka_unit_test_setup_teardown(test_a_process_that_is_gone_fails_all, start, stop),
        cmocka_unit_test_setup_teardown(test_no_put_is_done_twice, start, stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
