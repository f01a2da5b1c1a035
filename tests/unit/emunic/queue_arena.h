/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue between two guards, for the tests of emunic/engine/completion_queue.c, whose top comment is the
 * model. Each program includes this once.
 */
#ifndef TESTS_UNIT_EMUNIC_QUEUE_ARENA_H
#define TESTS_UNIT_EMUNIC_QUEUE_ARENA_H

#include "emunic/engine/completion_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define RING        8u
#define RING_MAX    1024u
#define GUARD_BYTES 4096u
#define GUARD_BYTE  0xa5

#define UNIT(name) cmocka_unit_test_setup(name, make_small)

/* A queue between two guards, in memory that a forked child shares. */
struct arena {
    uint8_t before[GUARD_BYTES];
    _Alignas(64) uint8_t queue[sizeof(struct emu_cq_shm) + RING_MAX * sizeof(uint64_t)];
    uint8_t after[GUARD_BYTES];
};

static struct arena *arena;
static struct emu_cq_shm *shm;
static struct emu_cq_producer producer;
static struct emu_cq_consumer consumer;

static inline int map_arena(void **state)
{
    (void)state;
    arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        return -1;
    shm = (struct emu_cq_shm *)arena->queue;
    return 0;
}

static inline int unmap_arena(void **state)
{
    (void)state;
    return munmap(arena, sizeof(*arena));
}

static inline void make(uint64_t ring_entries, uint64_t capacity, bool wakes)
{
    memset(arena->before, GUARD_BYTE, GUARD_BYTES);
    memset(arena->queue, 0, sizeof(arena->queue));
    memset(arena->queue + sizeof(*shm) + ring_entries * 8, GUARD_BYTE, (RING_MAX - ring_entries) * 8);
    memset(arena->after, GUARD_BYTE, GUARD_BYTES);
    emu_cq_format(shm, ring_entries, capacity);
    emu_cq_producer_init(&producer, shm, ring_entries, capacity, wakes, NULL);
    emu_cq_consumer_init(&consumer, shm, ring_entries);
}

static inline int make_small(void **state)
{
    (void)state;
    make(RING, RING, false);
    return 0;
}

static inline void assert_guards_untouched(uint64_t ring_entries)
{
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        assert_int_equal(arena->before[i], GUARD_BYTE);
        assert_int_equal(arena->after[i], GUARD_BYTE);
    }
    for (size_t i = sizeof(*shm) + ring_entries * 8; i < sizeof(arena->queue); i++)
        assert_int_equal(arena->queue[i], GUARD_BYTE);
}

static inline void expect_pop(uint64_t expected)
{
    uint64_t event = ~expected;

    assert_int_equal(emu_cq_pop(&consumer, &event), EMU_CQ_OK);
    assert_int_equal(event, expected);
}

static inline void expect_empty(void)
{
    uint64_t event = 77;

    assert_true(emu_cq_is_empty(&consumer));
    assert_int_equal(emu_cq_pop(&consumer, &event), EMU_CQ_EMPTY);
    assert_int_equal(event, 77);
}

#endif
