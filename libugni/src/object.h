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

#define GNII_OBJECT_INDEX_MASK 0xffffffu
#define GNII_OBJECT_KIND_SHIFT 24
#define GNII_OBJECT_MAX        (1u << 20)

struct gnii_object_entry {
    _Atomic(void *) object;
    _Atomic uint64_t handle; /* of the live object; 0 when free */
};

/* Hidden: one load, not two. */
/* GNII_OBJECT_MAX of them, once the first object was made. */
extern struct gnii_object_entry *_Atomic gnii_objects __attribute__((visibility("hidden")));

/* Object behind a handle, or NULL. Any thread, no lock, three loads. */
static inline void *gnii_object_find(enum gnii_kind kind, const void *handle)
{
    uint64_t bits = (uint64_t)(uintptr_t)handle;
    uint32_t index = (uint32_t)bits & GNII_OBJECT_INDEX_MASK;
    struct gnii_object_entry *entries = atomic_load_explicit(&gnii_objects, memory_order_acquire);

    if (!entries || index >= GNII_OBJECT_MAX || ((bits >> GNII_OBJECT_KIND_SHIFT) & 15) != (uint64_t)kind ||
        atomic_load_explicit(&entries[index].handle, memory_order_acquire) != bits)
        return NULL;
    return atomic_load_explicit(&entries[index].object, memory_order_relaxed);
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

/* The 24 bits that tell live handles of a process apart; never 0 or 1. */
unsigned gnii_object_key(const void *handle);

#endif
