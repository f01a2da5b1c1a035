/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many small puts posted before any poll, into memory that peers cannot map (private pages of a file): whatever the NIC
 * does with several at once, each arrives whole, in order, and has its own outcome. Each test has one way in which the
 * NIC meets the puts one by one and one in which it finds them all together. Specification: spec/ugni.md 4.7, 4.8.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/conformance/pair.h"
#include "tests/common/seed.h"

#define PAGE       4096u
#define BYTES      (16 * PAGE)
#define PUTS       120u
#define FLAG_EVERY 64u /* bytes from one flag to the next */

static uint8_t *target;
static gni_mem_handle_t target_hndl;
static gni_post_descriptor_t posts[PUTS];

static int open_target(void **state)
{
    int fd = memfd_create("target", MFD_CLOEXEC);

    open_pair(state);
    if (fd < 0 || ftruncate(fd, BYTES) < 0)
        return -1;
    target = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    close(fd);
    if (target == MAP_FAILED)
        return -1;
    return GNI_MemRegister(b.nic, ADDR(target), BYTES, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1, &target_hndl) ==
                   GNI_RC_SUCCESS ?
               0 :
               -1;
}

static int close_target(void **state)
{
    thaw_emunic(); /* a test may have failed in between */
    GNI_MemDeregister(b.nic, &target_hndl);
    munmap(target, BYTES);
    return close_pair(state);
}

static gni_post_descriptor_t put_to(uint64_t from, uint64_t to, uint64_t length, uint16_t cq_mode)
{
    gni_post_descriptor_t d = gx_put(&a, &b, from, length, cq_mode);

    d.remote_addr = ADDR(target) + to;
    d.remote_mem_hndl = target_hndl;
    return d;
}

/* Posts the first n of `posts`; together: they wait until all are there. */
static void post_all(unsigned n, bool together)
{
    if (together)
        freeze_emunic();
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(post(&posts[i]), GNI_RC_SUCCESS);
    if (together)
        thaw_emunic();
}

static void puts_arrive_whole_and_in_order(bool together)
{
    struct emu_random random = seeded(20130214);
    uint8_t *expected = calloc(1, BYTES);

    assert_non_null(expected);
    memset(target, 0, BYTES);
    for (unsigned round = 0; round < 10; round++) {
        fill(a.mem, GX_BYTES, round);
        for (unsigned i = 0; i < PUTS; i++) {
            uint64_t length = 1 + emu_random_below(&random, i % 8 ? 64 : 3 * PAGE);
            uint64_t from = emu_random_below(&random, GX_BYTES - length);
            uint64_t to = emu_random_below(&random, BYTES - length);

            posts[i] = put_to(from, to, length, GNI_CQMODE_GLOBAL_EVENT);
            memcpy(expected + to, a.mem + from, length); /* many overlap: the later one counts */
        }
        post_all(PUTS, together);
        for (unsigned i = 0; i < PUTS; i++)
            assert_int_equal(finish(&posts[i]), STATUS_OK);
        assert_memory_equal(target, expected, BYTES);
    }
    free(expected);
}

static void test_puts_arrive_whole_and_in_order(void **state)
{
    (void)state;
    puts_arrive_whole_and_in_order(false);
    puts_arrive_whole_and_in_order(true);
}

static void one_bad_put_fails_alone(unsigned bad, bool together)
{
    memset(target, 0, PAGE);
    fill(a.mem, GX_BYTES, bad);
    for (unsigned i = 0; i < PUTS; i++)
        posts[i] = put_to(8 * i, i == bad ? 2 * PAGE : 8 * i, 8, GNI_CQMODE_GLOBAL_EVENT);
    /* Registered, but nobody can write there. */
    assert_int_equal(mprotect(target + 2 * PAGE, PAGE, PROT_NONE), 0);
    post_all(PUTS, together);
    for (unsigned i = 0; i < PUTS; i++)
        assert_int_equal(finish(&posts[i]), i == bad ? STATUS_REMOTE_RANGE : STATUS_OK);
    assert_int_equal(mprotect(target + 2 * PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    for (unsigned i = 0; i < PUTS; i++) {
        if (i == bad)
            assert_true(all_bytes_are(target + 8 * i, 0, 8));
        else
            assert_memory_equal(target + 8 * i, a.mem + 8 * i, 8);
    }
}

static void test_one_bad_put_fails_alone(void **state)
{
    static const unsigned bad[] = { 0, 1, PUTS / 2, 63, 64, PUTS - 1 };

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(bad); i++) {
        one_bad_put_fails_alone(bad[i], false);
        one_bad_put_fails_alone(bad[i], true);
    }
}

/* A put that never gets so far, between two that do. */
static void test_a_put_out_of_bounds_fails_in_its_turn(void **state)
{
    (void)state;
    for (unsigned together = 0; together < 2; together++) {
        for (unsigned i = 0; i < PUTS; i++)
            posts[i] = put_to(8 * i, i % 3 == 1 ? BYTES + PAGE : 8 * i, 8, GNI_CQMODE_GLOBAL_EVENT);
        post_all(PUTS, together);
        for (unsigned i = 0; i < PUTS; i++)
            assert_int_equal(finish(&posts[i]), i % 3 == 1 ? STATUS_REMOTE_RANGE : STATUS_OK);
    }
}

/* ---- flags ---- */

/* Watches the flags as another core would: payload i must be there when flag i is. Returns how many were not. */
static void *watch(void *arg)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    uint8_t value = *(const uint8_t *)arg;
    uintptr_t wrong = 0;

    for (unsigned i = 0; i < PUTS / 2; i++) {
        const uint8_t *at = target + i * FLAG_EVERY;

        while (atomic_load_explicit((const _Atomic uint64_t *)(const void *)at, memory_order_acquire) != value) {
            if (emu_clock_ns() > end_ns)
                return (void *)(wrong + 1);
        }
        wrong += !all_bytes_are(at + 8, value, FLAG_EVERY - 8);
    }
    return (void *)wrong;
}

static void flags_come_after_their_payload(uint8_t value, bool together)
{
    pthread_t watcher;
    void *wrong;

    memset(a.mem, value, FLAG_EVERY);
    for (unsigned i = 0; i < PUTS / 2; i++) {
        posts[i] = put_to(0, i * FLAG_EVERY + 8, i % 2 ? FLAG_EVERY - 8 : 40, GNI_CQMODE_GLOBAL_EVENT);
        posts[i].type = GNI_POST_FMA_PUT_W_SYNCFLAG;
        posts[i].sync_flag_addr = ADDR(target) + i * FLAG_EVERY;
        posts[i].sync_flag_value = value;
        /* What a flagged put leaves is there from the round before. */
        memset(target + i * FLAG_EVERY + 48, value, FLAG_EVERY - 48);
    }
    assert_int_equal(pthread_create(&watcher, NULL, watch, &value), 0);
    post_all(PUTS / 2, together);
    assert_int_equal(pthread_join(watcher, &wrong), 0);
    assert_null(wrong);
    for (unsigned i = 0; i < PUTS / 2; i++)
        assert_int_equal(finish(&posts[i]), STATUS_OK);
}

static void test_flags_come_after_their_payload(void **state)
{
    (void)state;
    for (uint8_t value = 1; value < 20; value++)
        flags_come_after_their_payload(value, value % 2);
}

/* ---- in between ---- */

static void test_gets_and_atomics_in_between_keep_their_place(void **state)
{
    (void)state;
    for (unsigned together = 0; together < 2; together++) {
        uint64_t *words = (uint64_t *)(void *)a.mem;

        memset(target, 0, PAGE);
        for (unsigned i = 0; i < PUTS; i++) {
            words[2 * i] = i + 1;
            words[2 * i + 1] = 0;
            posts[i] = put_to(16 * i, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
            if (i % 5 == 3) {
                posts[i].type = GNI_POST_FMA_GET;
                posts[i].local_addr += 8;
            } else if (i % 5 == 4) {
                posts[i].type = GNI_POST_AMO;
                posts[i].amo_cmd = GNI_FMA_ATOMIC_FADD;
                posts[i].first_operand = 1000;
                posts[i].local_addr += 8;
            }
        }
        post_all(PUTS, together);
        for (unsigned i = 0; i < PUTS; i++)
            assert_int_equal(finish(&posts[i]), STATUS_OK);
        for (unsigned i = 0; i < PUTS; i++)
            assert_int_equal(words[2 * i + 1], i % 5 == 3 ? i : i % 5 == 4 ? i - 1 : 0);
    }
}

static void test_remote_events_come_once_each_and_after_the_data(void **state)
{
    (void)state;
    for (unsigned together = 0; together < 2; together++) {
        memset(target, 0, PAGE);
        memset(a.mem, 0x5a, PAGE);
        for (unsigned i = 0; i < PUTS; i++)
            posts[i] = put_to(8 * i, 8 * i, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        post_all(PUTS, together);
        for (unsigned i = 0; i < PUTS; i++) {
            gni_cq_entry_t entry;

            assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
            assert_true(all_bytes_are(target, 0x5a, 8 * (i + 1)));
        }
        assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
        for (unsigned i = 0; i < PUTS; i++)
            assert_int_equal(finish(&posts[i]), STATUS_OK);
    }
}

#define target_test(name) cmocka_unit_test_setup_teardown(name, open_target, close_target)

int main(void)
{
    const struct CMUnitTest tests[] = {
        target_test(test_puts_arrive_whole_and_in_order),
        target_test(test_one_bad_put_fails_alone),
        target_test(test_a_put_out_of_bounds_fails_in_its_turn),
        target_test(test_flags_come_after_their_payload),
        target_test(test_gets_and_atomics_in_between_keep_their_place),
        target_test(test_remote_events_come_once_each_and_after_the_data),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
