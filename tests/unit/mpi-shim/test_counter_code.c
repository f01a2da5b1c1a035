/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which code reads the time-stamp counter. Each function below is followed by so many bytes of its own that a range of
 * RANGE bytes lies in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "mpi-shim/clock/src/counter.h"
#include "mpi-shim/clock/src/counter_code.h"
#include "mpi-shim/clock/src/program_clock.h"

#define RANGE 48u
#define PAGE  4096u

/* What the searched library asks of others: nothing is of the host, nothing of the runtime. */
bool clock_counter_is_of_host(uintptr_t at)
{
    (void)at;
    return false;
}

bool program_clock_is_of_runtime(const void *caller)
{
    (void)caller;
    return false;
}

/* Never called. */
#define FUNCTION(name, text)                                                                                           \
    static __attribute__((noinline, used)) void name(void)                                                             \
    {                                                                                                                  \
        __asm__ volatile(text "\n.skip 64, 0x90" ::: "rax", "rdx", "rcx");                                             \
    }

FUNCTION(reads_counter, "rdtsc")
FUNCTION(reads_counter_and_processor, "rdtscp")
FUNCTION(reads_counter_behind_a_prefix, ".byte 0xf3, 0x0f, 0x31")
FUNCTION(has_the_bytes_in_a_number, "mov $0x0f310f31, %%eax")
FUNCTION(has_the_longer_bytes_in_a_number, "mov $0xf9010f, %%eax")
FUNCTION(has_them_in_a_number_and_reads, "mov $0x0f310f31, %%eax\nrdtsc")
FUNCTION(cannot_be_decoded, ".byte 0x06\n.byte 0x0f, 0x31")
FUNCTION(has_neither, "mov $1, %%eax")

static bool reads(void (*function)(void))
{
    uintptr_t first = (uintptr_t)function;

    return clock_code_reads_counter_in(first, first + RANGE);
}

static void test_instructions_are_found(void **state)
{
    (void)state;
    assert_true(reads(reads_counter));
    assert_true(reads(reads_counter_and_processor));
    assert_true(reads(reads_counter_behind_a_prefix));
    assert_true(reads(has_them_in_a_number_and_reads));
}

static void test_their_bytes_in_others_are_none(void **state)
{
    (void)state;
    assert_false(reads(has_the_bytes_in_a_number));
    assert_false(reads(has_the_longer_bytes_in_a_number));
    assert_false(reads(has_neither));
}

static void test_code_that_cannot_be_told_may_read(void **state)
{
    unsigned char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_true(page != MAP_FAILED);
    assert_true(reads(cannot_be_decoded));
    assert_false(clock_code_reads_counter_in((uintptr_t)page, (uintptr_t)page + PAGE));
    memcpy(page + 100, "\xb8\x0f\x31", 3); /* a number, but no table tells where the function begins */
    assert_true(clock_code_reads_counter_in((uintptr_t)page, (uintptr_t)page + PAGE));
    munmap(page, PAGE);
}

static void test_instruction_at_the_end_is_found(void **state)
{
    uintptr_t first = (uintptr_t)reads_counter;
    uintptr_t end = first;

    (void)state;
    while (end < first + RANGE && !clock_code_reads_counter_in(first, end))
        end++;
    assert_memory_equal((const void *)(end - 2), "\x0f\x31", 2);
}

/* This program has both. */
static void test_process_with_the_instruction_reads(void **state)
{
    (void)state;
    assert_true(clock_code_reads_counter());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_instructions_are_found),
        cmocka_unit_test(test_their_bytes_in_others_are_none),
        cmocka_unit_test(test_code_that_cannot_be_told_may_read),
        cmocka_unit_test(test_instruction_at_the_end_is_found),
        cmocka_unit_test(test_process_with_the_instruction_reads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
