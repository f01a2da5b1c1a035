/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside the core: an open interface, and how calls find it. */
#ifndef LIBPORTALS_INTERFACE_H
#define LIBPORTALS_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/base/biased_lock.h"
#include "emunic/client/portals_port.h"
#include "libportals/src/core.h"

struct p3_ni {
    struct emu_biased_lock lock; /* of everything below and of `p` */
    bool is_open;
    bool told_of_end;  /* emunic has gone, and the log has it */
    bool is_inherited; /* a forked child's copy of what is its parent's */
    uint32_t handle;
    uint32_t net;
    struct p3_limits limits;
    struct emu_portals p;
    void (**handlers)(void); /* owned, by queue index */
    int loopback;
    unsigned debug;
};

/*
 * The open interface that a handle belongs to, locked, or NULL. Of any object's handle: whether the object exists is
 * another question.
 */
struct p3_ni *p3_lock_ni_of(uint32_t handle);
/* The same for an interface's own handle. */
struct p3_ni *p3_lock_ni(uint32_t handle);
static inline void p3_unlock_ni(struct p3_ni *ni)
{
    emu_biased_unlock(&ni->lock);
}

/* Is that a live object of an open interface other than `than`? That one is locked by the caller. */
bool p3_is_elsewhere(const struct p3_ni *than, uint32_t handle);

/* Bits of PtlNIDebug() masks. */
enum p3_debug_bit {
    P3_DEBUG_REQUEST = 1 << 4,
    P3_DEBUG_MD = 1 << 6,
    P3_DEBUG_ME = 1 << 7,
    P3_DEBUG_EQ = 1 << 9,
    P3_DEBUG_EVENT = 1 << 10,
    P3_DEBUG_SETUP = 1 << 12,
    P3_DEBUG_SHUTDOWN = 1 << 13,
};
void p3_trace_line(const struct p3_ni *ni, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define p3_trace(ni, bit, ...)                                                                                         \
    do {                                                                                                               \
        if (__builtin_expect((ni)->debug & (bit), 0))                                                                  \
            p3_trace_line((ni), __VA_ARGS__);                                                                          \
    } while (0)

#endif
