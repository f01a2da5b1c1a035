/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: many producers, one consumer, in shared memory (layout: abi/segment.h).
 *
 * tail counts places ever reserved, head events ever taken. A producer moves tail with compare-and-swap only while
 * tail - head < capacity, so a reservation never has to be given back; it then stores the event with the lap bit of
 * its place. The lap bit alternates each time round the ring and memory starts as zero, so the first lap writes 1.
 * The consumer knows which lap bit it waits for: an unwritten or not yet published place still shows the other one.
 *
 * Cache lines per event: tail (shared by producers only), the entry's line (producer to consumer). The consumer's
 * head is read by a producer only when the queue looks full to it. An empty poll reads one line that nobody writes.
 *
 * The other side may be hostile. Nothing here follows a value from shared memory further than an index that is
 * masked with a private size: a wrong head makes the queue look full, a wrong tail or entry confuses its owner only.
 *
 * A queue can have more places than peers are given (capacity < ring): completions of the owner, and what the library
 * tells by itself, are not lost because of what peers do.
 *
 * Own events: what the owner's own transactions on the direct path leave in its queue need not go through shared
 * memory. They lie in a second ring, private to the process, which takes some only while the shared one is empty: so
 * whatever is in it is older than what is in the shared one, and the order of events is one.
 *
 * Sleepers: a waiter stores 1 into `sleepers`, looks at the queue again and sleeps on that word. A producer
 * that published an event exchanges it for 0 and wakes everybody. A waiter that is killed leaves at most one needless
 * wake. An owner who wants to be woken for several events at a time says so in `wake_after`; it looks by itself now and
 * then.
 *
 * Armed: the same protocol for an owner who waits in poll() or epoll_wait(). It stores a number into `armed` and looks
 * at the queue again. Of those with news exactly one, a producer or the owner itself, exchanges the number for 0, and
 * then sees to it that the owner's file descriptor becomes readable; how that is done is the alarm's business. A
 * producer killed in between is emunic's (daemon/quiesce.c). Both words lie in one line, so queues that nobody waits
 * for pay one load.
 */
#include "emunic/engine/completion_queue.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/engine/pages.h"

/* Runs only when somebody sleeps: one system call. */
static void wake_sleepers(struct emu_cq_shm *shm)
{
    if (atomic_exchange_explicit(&shm->sleepers, 0, memory_order_relaxed) != 0)
        syscall(SYS_futex, &shm->sleepers, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Enough for the sleepers? Without regard to places that are not filled yet: whoever fills one looks again. */
static bool is_worth_waking(struct emu_cq_shm *shm)
{
    uint64_t waiting =
        atomic_load_explicit(&shm->tail, memory_order_relaxed) - atomic_load_explicit(&shm->head, memory_order_relaxed);

    return waiting >= atomic_load_explicit(&shm->wake_after, memory_order_relaxed) ||
           atomic_load_explicit(&shm->overrun, memory_order_relaxed) != 0;
}

void emu_cq_tell(struct emu_cq_producer *p)
{
    struct emu_cq_shm *shm = p->shm;
    uint32_t armed;

    if (atomic_load_explicit(&shm->sleepers, memory_order_relaxed) != 0 && is_worth_waking(shm))
        wake_sleepers(shm);
    if (!p->alarm || atomic_load_explicit(&shm->armed, memory_order_relaxed) == 0)
        return;
    armed = atomic_exchange_explicit(&shm->armed, 0, memory_order_acq_rel);
    if (armed != 0)
        p->alarm->ring(p->alarm, (armed - 1) % EMU_CQS_MAX);
}

void emu_cq_format(struct emu_cq_shm *shm, uint64_t ring_entries, uint64_t capacity)
{
    shm->ring_entries = ring_entries;
    shm->capacity = capacity;
}

void emu_cq_producer_init(struct emu_cq_producer *p, struct emu_cq_shm *shm, uint64_t ring_entries, uint64_t capacity,
                          bool wakes, struct emu_cq_alarm *alarm)
{
    *p = (struct emu_cq_producer){
        .shm = shm, .ring_entries = ring_entries, .capacity = capacity, .alarm = alarm, .wakes = wakes
    };
}

void emu_cq_consumer_init(struct emu_cq_consumer *c, struct emu_cq_shm *shm, uint64_t ring_entries)
{
    *c = (struct emu_cq_consumer){ .shm = shm, .ring_entries = ring_entries };
}

void emu_cq_lose(struct emu_cq_producer *p)
{
    atomic_fetch_add_explicit(&p->shm->overrun, 1, memory_order_release);
    emu_cq_look_for_sleepers(p);
}

unsigned emu_cq_fill_gaps(struct emu_cq_producer *p, uint64_t tail, uint64_t event)
{
    struct emu_cq_shm *shm = p->shm;
    uint64_t place = atomic_load_explicit(&shm->head, memory_order_acquire);
    unsigned filled = 0;

    if (tail - place > p->ring_entries) /* the owner's head makes no sense: nothing to save */
        return 0;
    for (; place != tail; place++) {
        _Atomic uint64_t *entry = &shm->entries[place & (p->ring_entries - 1)];
        uint64_t lap = emu_cq_lap_bit(place, p->ring_entries);

        if ((atomic_load_explicit(entry, memory_order_acquire) & EMU_EVENT_LAP) == lap)
            continue;
        /* Taken since we began, and perhaps in use again: that was an event of the next lap. */
        if ((int64_t)(atomic_load_explicit(&shm->head, memory_order_acquire) - place) > 0)
            continue;
        atomic_store_explicit(entry, (event & ~EMU_EVENT_LAP) | lap, memory_order_release);
        filled++;
    }
    if (filled > 0) {
        wake_sleepers(shm);
        emu_cq_tell(p);
    }
    return filled;
}

int emu_cq_add_own(struct emu_cq_consumer *c)
{
    if (!c->own)
        c->own = emu_pages_take(c->ring_entries * sizeof(*c->own));
    return c->own ? 0 : -ENOMEM;
}

void emu_cq_consumer_fini(struct emu_cq_consumer *c)
{
    emu_pages_give(c->own, c->ring_entries * sizeof(*c->own));
    c->own = NULL;
}

int emu_cq_peek(const struct emu_cq_consumer *c, uint64_t ahead, uint64_t *event_out)
{
    uint64_t own_head = atomic_load_explicit(&c->own_head, memory_order_relaxed);
    uint64_t n_own = atomic_load_explicit(&c->own_tail, memory_order_relaxed) - own_head;
    uint64_t place;
    uint64_t event;

    if (ahead < n_own) {
        *event_out = c->own[(own_head + ahead) & (c->ring_entries - 1)];
        return EMU_CQ_OK;
    }
    ahead -= n_own;
    place = atomic_load_explicit(&c->head, memory_order_relaxed) + ahead;
    event = atomic_load_explicit(&c->shm->entries[place & (c->ring_entries - 1)], memory_order_acquire);
    if (ahead >= c->ring_entries || (event & EMU_EVENT_LAP) != emu_cq_lap_bit(place, c->ring_entries))
        return EMU_CQ_EMPTY;
    *event_out = event & ~EMU_EVENT_LAP;
    return EMU_CQ_OK;
}
