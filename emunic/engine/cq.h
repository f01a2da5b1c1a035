/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMUNIC_ENGINE_CQ_H
#define EMUNIC_ENGINE_CQ_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/event.h"
#include "emunic/abi/segment.h"

enum emu_cq_result {
    EMU_CQ_OK = 0,
    EMU_CQ_EMPTY, /* nothing published at the head */
    EMU_CQ_FULL,  /* the event is lost and the overrun counter has moved */
};

/* One producer's private view. Not to be shared between threads; any number of producers may feed one queue. */
struct emu_cq_producer {
    struct emu_cq_shm *shm;   /* borrowed from a mapped segment */
    uint64_t ring_entries;    /* private copies: what the segment says is never read again */
    uint64_t capacity;
    uint64_t seen_head;       /* last look at the consumer's line */
    bool wakes;               /* the queue may have sleepers */
};

/* The owner's private view. One thread at a time takes events; others may look whether there are any. */
struct emu_cq_consumer {
    struct emu_cq_shm *shm;   /* borrowed */
    uint64_t ring_entries;
    _Atomic uint64_t head;    /* events taken so far */
};

/* Writes the constant part of a queue into zeroed memory. capacity <= ring_entries, which is a power of two. */
void emu_cq_format(struct emu_cq_shm *shm, uint64_t ring_entries, uint64_t capacity);

void emu_cq_producer_init(struct emu_cq_producer *p, struct emu_cq_shm *shm, uint64_t ring_entries, uint64_t capacity,
                          bool wakes);
void emu_cq_consumer_init(struct emu_cq_consumer *c, struct emu_cq_shm *shm, uint64_t ring_entries);

/* Appends an event (its top bit is ignored). EMU_CQ_OK or EMU_CQ_FULL. Any thread or process, lock-free. */
int emu_cq_push(struct emu_cq_producer *p, uint64_t event);

/*
 * Repair: puts the event into each place before `tail` that was reserved and never filled. Only when no producer can be
 * about to fill one of them. Number of places filled.
 */
unsigned emu_cq_fill_gaps(struct emu_cq_producer *p, uint64_t tail, uint64_t event);

/* Takes the oldest event. EMU_CQ_OK or EMU_CQ_EMPTY. */
int emu_cq_pop(struct emu_cq_consumer *c, uint64_t *event_out);

/* The event `ahead` places behind the oldest, which stays there. EMU_CQ_OK or EMU_CQ_EMPTY. Owner only. */
int emu_cq_peek(const struct emu_cq_consumer *c, uint64_t ahead, uint64_t *event_out);

/* Is there an event? Any thread; may be out of date when it returns. */
bool emu_cq_is_empty(const struct emu_cq_consumer *c);

/* Number of events lost since the last call; clears it. Owner only. */
uint32_t emu_cq_take_overrun(struct emu_cq_consumer *c);
bool emu_cq_has_overrun(const struct emu_cq_consumer *c);

#endif
