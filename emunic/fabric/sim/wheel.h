/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the simulator: events of one partition, ordered by the slot of the router clock in which they happen.
 *
 * A ring of buckets covers the near future; an event further away waits in a heap and moves into the ring as soon as
 * the ring reaches it. Each bucket keeps credits, arrivals, looks at heads and all else apart, because the first
 * three are most of all events and a loop over one kind is short. A slot's events come out in any order: applying
 * them must come to the same in each. No locks: one thread per wheel.
 */
#ifndef EMUNIC_FABRIC_SIM_WHEEL_H
#define EMUNIC_FABRIC_SIM_WHEEL_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum emu_event_kind {
    EMU_EVENT_ARRIVE = 0, /* index: channel; a packet's head is in it and can be decided on */
    EMU_EVENT_CREDIT,     /* index: link; payload: tokens that came back for vc */
    EMU_EVENT_LOOK,       /* index: channel; its head can be decided on, or one of its links is free */
    EMU_EVENT_NIC_FREE,   /* index: link of a NIC; it ends its transmission */
    EMU_EVENT_PATH,       /* index: link; its input port has a path to spare again */
    EMU_EVENT_INJECT,     /* index: nid; its NIC has something to do */
    EMU_EVENT_DELIVER,    /* index: nid; payload: packet, whose tail has reached the NIC */
    EMU_EVENT_LOST,       /* index: nid; payload: packet that this node sent and that will not arrive */
};

struct emu_event {
    uint32_t index;
    uint32_t payload;   /* a packet or a count */
    uint32_t length_ps; /* of an arriving packet, on the link */
    uint16_t offset_ps; /* in its slot */
    uint8_t kind;
    uint8_t vc;
};
static_assert(sizeof(struct emu_event) == 16, "four to a cache line");

#define EMU_WHEEL_CHUNK_EVENTS 14

struct emu_wheel_chunk {
    struct emu_wheel_chunk *next; /* the next older one of its list, or free one; NULL: the last */
    uint64_t reserved[3];
    struct emu_event events[EMU_WHEEL_CHUNK_EVENTS];
};
static_assert(sizeof(struct emu_wheel_chunk) == 256, "aligned to it, so that a cursor tells when a chunk is full");

struct emu_wheel_list {
    struct emu_event *cursor; /* in its newest chunk, behind the last event; NULL: empty */
};

enum emu_wheel_list_number {
    EMU_WHEEL_CREDITS = 0,
    EMU_WHEEL_ARRIVALS,
    EMU_WHEEL_LOOKS,
    EMU_WHEEL_OTHERS,
    EMU_WHEEL_LISTS,
};

struct emu_wheel_bucket {
    struct emu_wheel_list lists[EMU_WHEEL_LISTS];
};
static_assert(sizeof(struct emu_wheel_bucket) == 32, "half a line");

struct emu_far_event {
    uint64_t slot;
    struct emu_event event;
};

struct emu_wheel {
    struct emu_wheel_bucket *buckets;
    uint8_t *busy;    /* 1 per bucket that is not empty */
    uint64_t now;     /* slot; everything before it is done */
    uint32_t n_slots; /* a power of two, at least 64 */
    struct emu_wheel_chunk *free_chunks;
    struct emu_wheel_chunk **slabs; /* owned */
    size_t n_slabs;
    size_t slab_bytes;
    struct emu_far_event *far; /* heap */
    size_t n_far;
    size_t far_capacity;
};

/* n_slots is rounded up to a power of two. -ENOMEM. */
int emu_wheel_init(struct emu_wheel *w, uint64_t n_slots);
void emu_wheel_fini(struct emu_wheel *w);
size_t emu_wheel_memory(const struct emu_wheel *w);

/* Slot of the first event, UINT64_MAX if there is none. */
uint64_t emu_wheel_next(const struct emu_wheel *w);

/* Makes `slot` the present: not before `now`, not after emu_wheel_next(). */
void emu_wheel_advance(struct emu_wheel *w, uint64_t slot);

/* Takes the events of the present slot. Each list is gone through from its newest chunk by emu_wheel_done(). */
struct emu_wheel_bucket emu_wheel_take(struct emu_wheel *w);

/* The newest chunk of a list; NULL: it is empty. */
static inline struct emu_wheel_chunk *emu_wheel_newest(const struct emu_wheel_list *list)
{
    if (!list->cursor)
        return NULL;
    return (struct emu_wheel_chunk *)((uintptr_t)(list->cursor - 1) & -sizeof(struct emu_wheel_chunk));
}

/*
 * The oldest one, from which emu_wheel_done() leads to newer ones: for events that have to come in the order in which
 * they were put.
 */
static inline struct emu_wheel_chunk *emu_wheel_oldest(const struct emu_wheel_list *list)
{
    struct emu_wheel_chunk *chunk = emu_wheel_newest(list);
    struct emu_wheel_chunk *newer = NULL;

    while (chunk) {
        struct emu_wheel_chunk *older = chunk->next;

        chunk->next = newer;
        newer = chunk;
        chunk = older;
    }
    return newer;
}

/* The events of a chunk are done: it is free. Returns the next older one. */
static inline struct emu_wheel_chunk *emu_wheel_done(struct emu_wheel *w, struct emu_wheel_chunk *chunk)
{
    struct emu_wheel_chunk *older = chunk->next;

    chunk->next = w->free_chunks;
    w->free_chunks = chunk;
    return older;
}

/* How many events a chunk of a list holds. */
static inline size_t emu_wheel_count(const struct emu_wheel_list *list, const struct emu_wheel_chunk *chunk)
{
    return chunk == emu_wheel_newest(list) ? (size_t)(list->cursor - chunk->events) : EMU_WHEEL_CHUNK_EVENTS;
}

/* Calls `keep` for each event and drops those for which it says no. */
void emu_wheel_filter(struct emu_wheel *w, bool (*keep)(void *ctx, const struct emu_event *event), void *ctx);

/* Says so and ends the process. */
_Noreturn void emu_wheel_no_memory(void);

/* The slow parts of emu_wheel_place(). Memory that runs out ends the process. */
__attribute__((cold)) void emu_wheel_add_slab(struct emu_wheel *w);
struct emu_event *emu_wheel_place_far(struct emu_wheel *w, uint64_t slot);

/* Here and not in wheel.c: the callers' loops keep in registers what a call would spill (4 % of a run). */
static inline struct emu_event *emu_wheel_add_chunk(struct emu_wheel *w, struct emu_wheel_list *list)
{
    struct emu_wheel_chunk *chunk = w->free_chunks;

    w->free_chunks = chunk->next;
    if (__builtin_expect(!w->free_chunks, 0))
        emu_wheel_add_slab(w);
    chunk->next = emu_wheel_newest(list);
    list->cursor = chunk->events + 1;
    return chunk->events;
}

/* Room for one more event at the end of a list, to be filled in before the wheel is used again. The slot lies in the
 * ring. */
static inline struct emu_event *emu_wheel_place_near(struct emu_wheel *w, uint64_t slot,
                                                     enum emu_wheel_list_number number)
{
    uint32_t index = (uint32_t)slot & (w->n_slots - 1);
    struct emu_wheel_list *list = &w->buckets[index].lists[number];
    struct emu_event *cursor = list->cursor;

    w->busy[index] = 1;
    /* Behind the last event of a full chunk the next begins; an empty list has none. */
    if (__builtin_expect((uintptr_t)cursor % sizeof(struct emu_wheel_chunk) == 0, 0))
        return emu_wheel_add_chunk(w, list);
    list->cursor = cursor + 1;
    return cursor;
}

static inline struct emu_event *emu_wheel_place(struct emu_wheel *w, uint64_t slot, enum emu_wheel_list_number number)
{
    assert(slot >= w->now);
    return slot - w->now < w->n_slots ? emu_wheel_place_near(w, slot, number) : emu_wheel_place_far(w, slot);
}

static inline enum emu_wheel_list_number emu_wheel_list_of(uint8_t kind)
{
    switch (kind) {
    case EMU_EVENT_CREDIT:
        return EMU_WHEEL_CREDITS;
    case EMU_EVENT_ARRIVE:
        return EMU_WHEEL_ARRIVALS;
    case EMU_EVENT_LOOK:
        return EMU_WHEEL_LOOKS;
    default:
        return EMU_WHEEL_OTHERS;
    }
}

static inline void emu_wheel_put(struct emu_wheel *w, uint64_t slot, struct emu_event event)
{
    *emu_wheel_place(w, slot, emu_wheel_list_of(event.kind)) = event;
}

#endif
