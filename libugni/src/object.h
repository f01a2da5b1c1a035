/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles: small numbers that look like pointers. A wrong, stale or foreign handle is recognised and never followed.
 */
#ifndef LIBUGNI_OBJECT_H
#define LIBUGNI_OBJECT_H

enum gnii_kind {
    GNII_KIND_CDM = 1,
    GNII_KIND_NIC,
    GNII_KIND_EP,
    GNII_KIND_CQ,
};

/* Object behind a handle, or NULL. Any thread, no lock, two loads. */
void *gnii_object_find(enum gnii_kind kind, const void *handle);

/*
 * The same, with the object's count raised, so that it stays when another thread destroys it. Only for kinds whose
 * objects begin with that count, an _Atomic uint32_t: NIC, EP and CQ. Any thread.
 */
void *gnii_object_get(enum gnii_kind kind, const void *handle);

/* Gives the object a handle. -ENOMEM. Any thread. */
int gnii_object_add(enum gnii_kind kind, void *object, void **handle_out);

/* The handle is dead from now on; its number is used again as late as possible. Any thread. */
void gnii_object_remove(const void *handle);

/* The 24 bits that tell live handles of a process apart; never 0 or 1. */
unsigned gnii_object_key(const void *handle);

#endif
