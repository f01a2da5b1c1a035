/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: event queues.
 *
 * Queues overwrite their oldest event when they are full, so nobody who posts ever looks at the consumer. An event's
 * `seq` is taken away before it is overwritten and given back after; a consumer that meets it in between looks again.
 * Queues begin at different places (in steps of 2^32), so an event of an earlier queue in the same memory is never
 * taken for a new one.
 *
 * What costs time between two processes are the lines of an interface that go from one core to the other. A put writes
 * the lock's line, its flight's, the queue's and the two of the event, and the descriptor's only if its words change;
 * the owner that polls reads the event's two alone, and when it sends itself none of those that others write. So a put
 * that answers a put waits for two lines, both under way at the same time. The poll reads the first one, so the second
 * is written before, with a number of its own, and then the first in one go: a poll in between would take the line away
 * once more.
 *
 * How an event is stored, and how it is read while somebody may be storing the next, is in portals_engine_inner.h.
 * Source: spec/portals3.md 1.6.
 */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/engine/portals_engine_inner.h"

#define TAKE_TRIES 64

void emu_ptl_wake(struct emu_ptl_ni *ni)
{
    syscall(SYS_futex, &ni->waiting, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Has the processor get a line for writing. Any address may be named. */
static void prefetch_for_write(const void *addr)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)addr));
}

void emu_ptl_expect(struct emu_ptl_ni *ni, const struct emu_ptl_taker *taker)
{
    struct emu_ptl_eq *e = taker->md.eq < EMU_PTL_EQS ? &ni->eqs[taker->md.eq] : NULL;
    const uint8_t *slot;
    struct ring ring;

    if (!e || !open_ring(ni, e, &ring))
        return;
    slot = (const uint8_t *)&ring.slots[ring.tail & ring.mask];
    prefetch_for_write(slot + EMU_CACHE_LINE);
    prefetch_for_write(slot);
}

void emu_ptl_post(struct emu_ptl_ni *ni, uint32_t eq, uint32_t eq_generation, const struct emu_ptl_event *event)
{
    struct emu_ptl_eq *e = eq_of(ni, eq, eq_generation);
    uint64_t words[EVENT_WORDS];
    struct ring ring;

    if (!e || !open_ring(ni, e, &ring))
        return;
    memcpy(words, event, sizeof(words));
    append(e, &ring, words);
    note_news(ni);
}

/* Moves the head to the oldest event that is still there. False: nothing was lost. */
static bool skip_lost(const struct emu_ptl_eq *eq, uint32_t capacity, struct emu_ptl_head *head)
{
    uint64_t tail = atomic_load_explicit(&eq->tail, memory_order_acquire);

    if (tail - head->at <= capacity || tail < head->at)
        return false;
    *head = (struct emu_ptl_head){ tail - capacity, true };
    return true;
}

enum emu_ptl_take emu_ptl_take(const struct emu_ptl_eq *eq, const struct emu_ptl_event *ring, uint32_t capacity,
                               struct emu_ptl_head *head, bool stays, struct emu_ptl_event *event_out)
{
    struct emu_ptl_head after;

    for (int tries = 0; tries < TAKE_TRIES; tries++) {
        const struct emu_ptl_event *slot = &ring[head->at & (capacity - 1)];
        uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_acquire);
        enum emu_ptl_take taken = head->has_lost ? EMU_PTL_EVENT_AFTER_LOSS : EMU_PTL_EVENT;

        /* Who polls has the second line as soon as the first. */
        __builtin_prefetch((const uint8_t *)slot + EMU_CACHE_LINE);
        if (seq == head->at + 1) {
            if (load_event(slot, seq, event_out)) {
                after = (struct emu_ptl_head){ head->at + 1, event_out->kind == EMU_PTL_EVENT_LOST };
                if (after.has_lost || !stays)
                    *head = after;
                if (after.has_lost)
                    continue;
                return taken;
            }
        } else if (seq != EMU_PTL_SEQ_WRITTEN && seq < head->at + 1) {
            break; /* of an earlier lap, or of an earlier queue, or never used */
        }
        if (!skip_lost(eq, capacity, head))
            break; /* being written */
    }
    return EMU_PTL_NO_EVENT;
}
