/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Object table.
 *
 *   handle:  47 ... 28 generation   27 ... 24 kind   23 ... 20 zero   19 ... 0 index
 *
 * The table is never moved, so a look-up needs no lock: the entry's generation and kind are compared before its object
 * is used. Free indices wait in a ring, oldest first, so that an event of a destroyed end
 * point is not taken for its successor's. Indices start at 2, because UCX gives 0 and 1 a meaning of their own
 * as datagram ids while it uses the low 24 bits of a handle as another (spec/ugni.md 5.2).
 */
#include "libugni/src/object.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define GENERATION_SHIFT 28
#define GENERATION_MASK  0xfffffu
#define FIRST_INDEX      2u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct gnii_object_entry gnii_objects[GNII_OBJECT_MAX];
static uint32_t free_ring[GNII_OBJECT_MAX]; /* indices that were used before */
static uint32_t free_head;
static uint32_t free_tail;
static uint32_t next_fresh = FIRST_INDEX;
static uint32_t next_generation = 1;

void *gnii_object_get(enum gnii_kind kind, const void *handle)
{
    _Atomic uint32_t *count;

    /* Under the lock the handle cannot die between look-up and count; whoever takes it away counts down later. */
    pthread_mutex_lock(&lock);
    count = gnii_object_find(kind, handle);
    if (count)
        atomic_fetch_add(count, 1);
    pthread_mutex_unlock(&lock);
    return count;
}

static int take_index(uint32_t *index_out)
{
    /* Fresh ones first: reuse comes as late as possible. */
    if (next_fresh < GNII_OBJECT_MAX) {
        *index_out = next_fresh++;
        return 0;
    }
    if (free_head == free_tail)
        return -ENOMEM;
    *index_out = free_ring[free_head++ % GNII_OBJECT_MAX];
    return 0;
}

int gnii_object_add(enum gnii_kind kind, void *object, void **handle_out)
{
    uint64_t handle;
    uint32_t index;
    int r;

    pthread_mutex_lock(&lock);
    r = take_index(&index);
    if (r == 0) {
        struct gnii_object_entry *entry = &gnii_objects[index];

        handle = (uint64_t)next_generation << GENERATION_SHIFT | (uint64_t)kind << GNII_OBJECT_KIND_SHIFT | index;
        next_generation = (next_generation & GENERATION_MASK) % GENERATION_MASK + 1;
        atomic_store_explicit(&entry->object, object, memory_order_relaxed);
        atomic_store_explicit(&entry->handle, handle, memory_order_release);
        *handle_out = (void *)(uintptr_t)handle;
    }
    pthread_mutex_unlock(&lock);
    return r;
}

void gnii_object_remove(const void *handle)
{
    uint32_t index = (uint32_t)(uintptr_t)handle & GNII_OBJECT_INDEX_MASK;

    pthread_mutex_lock(&lock);
    atomic_store_explicit(&gnii_objects[index].handle, 0, memory_order_release);
    free_ring[free_tail++ % GNII_OBJECT_MAX] = index;
    pthread_mutex_unlock(&lock);
}

unsigned gnii_object_key(const void *handle)
{
    return (unsigned)((uintptr_t)handle & GNII_OBJECT_INDEX_MASK);
}
