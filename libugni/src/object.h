/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles: small numbers that look like pointers. A wrong, stale or foreign handle is recognised and never followed.
 */
#ifndef LIBUGNI_OBJECT_H
#define LIBUGNI_OBJECT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum gnii_kind {
    GNII_KIND_CDM = 1,
    GNII_KIND_NIC,
    GNII_KIND_EP,
    GNII_KIND_CQ,
    GNII_KIND_MSGQ,
    GNII_KIND_CE,
    GNII_KIND_CHAN,
};

#define GNII_OBJECT_KIND_SHIFT 24
#define GNII_OBJECT_MAX        (1u << 20)
#define GNII_OBJECT_INDEX_MASK (GNII_OBJECT_MAX - 1)

struct gnii_object_entry {
    _Atomic(void *) object;
    _Atomic uint64_t handle; /* of the live object; 0 when free */
};

/* Zero pages until they are used. At a place that the linker knows, and hidden: no load finds it. */
extern struct gnii_object_entry gnii_objects[GNII_OBJECT_MAX] __attribute__((visibility("hidden")));

/* Object behind a handle, or NULL. Any thread, no lock, two loads. */
static inline void *gnii_object_find(enum gnii_kind kind, const void *handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    struct gnii_object_entry *entry = &gnii_objects[bits & GNII_OBJECT_INDEX_MASK];

    /* Any number has an entry. The handle 0, which free entries have, is of no kind. */
    if (((bits >> GNII_OBJECT_KIND_SHIFT) & 15) != (uint64_t)kind ||
        atomic_load_explicit(&entry->handle, memory_order_acquire) != bits)
        return NULL;
    return atomic_load_explicit(&entry->object, memory_order_relaxed);
}

/*
 * The same, with the object's count raised, so that it stays when another thread destroys it. Only for kinds whose
 * objects begin with that count, an _Atomic uint32_t: NIC, EP, CQ, MSGQ and CHAN. Any thread.
 */
void *gnii_object_get(enum gnii_kind kind, const void *handle);

/* Gives the object a handle. -ENOMEM. Any thread. */
int gnii_object_add(enum gnii_kind kind, void *object, void **handle_out);

/* The handle is dead from now on; its number is used again as late as possible. Any thread. */
void gnii_object_remove(const void *handle);

/* The number that tells live handles of a process apart, within 24 bits; never 0 or 1. */
unsigned gnii_object_key(const void *handle);

#endif
