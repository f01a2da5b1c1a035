/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes: the short way for what a program does most, small operations on memory that is mapped here.
 *
 * A lane remembers what one memory handle of a peer means: node, memory domain, owner, window, destination queue. The
 * engine finds that out for each command anew (engine/transaction.c) and stays the only place that judges errors; a
 * lane serves operations that cannot fail, and says no to everything else. Between emu_lane_enter() and
 * emu_lane_leave() the caller works on the peer's memory with plain pointers. A lane to memory that is not mapped here
 * (method cma) has no pointers, but emu_lane_write() and emu_lane_read(), one system call each.
 *
 * What a lane remembers is compared with the domain table at each use, while our mark is up (gate): the memory domain's
 * line and its owner's port. Both lines stay in the cache until emunic changes them. So is the domain's switch to the
 * routed path, and whether commands of ours are still in emunic's hands.
 *
 * Pages of a file that a program has mapped itself can go while they are written. Then what a lane stored is nowhere,
 * and emu_lane_is_broken() tells so afterwards: whoever works on such a lane (`broken` is set) looks before anything
 * tells of the operation, and has the engine do it again from the beginning.
 *
 * The gate's mark costs one plain store. emunic orders it against its own changes with membarrier (daemon/quiesce.c);
 * where that is not to be had (EMU_TABLE_FENCED, or this process could not register for it), with an exchange.
 *
 * Thread rule: as emu_port_command(), one thread at a time per port. No thread may be cancelled in between.
 */
#ifndef EMUNIC_CLIENT_LANE_H
#define EMUNIC_CLIENT_LANE_H

#include <assert.h>
#include <emmintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "emunic/abi/flow.h"
#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"
#include "emunic/engine/cq.h"
#include "emunic/engine/rest.h"

/*
 * Bytes that may be stored between reserving the place of the event that tells of them and publishing it. Reserving
 * first is faster, because its locked instruction waits for all stores before it; but others' events wait behind the
 * place.
 */
#define EMU_LANE_EARLY_MAX 256u

#define EMU_GATE_FLITS_MAX 64u /* bytes whose flits are computed once */

/* A port's way in and out of the shared state. One per port, in emu_direct. */
struct emu_gate {
    const struct emu_table *table; /* borrowed */
    struct emu_segment *segment;   /* borrowed: our own */
    const uint64_t *tail;          /* borrowed: commands that we published */
    const _Atomic bool *is_lost;   /* borrowed */
    uint64_t inside;               /* our mark as last written */
    uint64_t epoch;                /* grows when a mapping of a peer goes away: lanes before it are void */
    uint32_t files_gone;           /* of the table, as last seen: files that went later are to be unmapped */
    bool fences;
    bool is_for_ordered; /* around operations that must not overtake transfers which emunic moves */
    uint16_t data_flits[EMU_GATE_FLITS_MAX + 1];
};

#define EMU_LANE_SEEN_BYTES offsetof(struct emu_table_md, file_offset) /* of the memory domain's line */
static_assert(EMU_LANE_SEEN_BYTES == 48, "three vectors");

struct emu_lane {
    struct emu_gate *gate;             /* borrowed */
    uint64_t epoch;                    /* 0: never found */
    const struct emu_table_md *md;     /* borrowed, in the table */
    const struct emu_table_port *port; /* borrowed, in the table */
    struct emu_flow_counts *flow;      /* borrowed: our counters towards that node */
    uint8_t *window;                   /* where `first` is mapped here; NULL: nowhere, */
    pid_t pid;                         /* then it is this process's private memory */
    uint64_t first;                    /* the owner's addresses that may be reached */
    uint64_t end;
    uint64_t shift; /* of the caller's addresses: not 0 for a virtual handle */
    uint32_t port_generation;
    bool is_read_only;
    bool has_destination;
    const _Atomic uint32_t *broken; /* the window's mark; NULL: its pages cannot go */
    uint32_t file;                  /* that the window shows, or 0 */
    struct emu_cq_producer destination;
    struct emu_segment *owner;                      /* the peer's segment, or NULL: whom to wake */
    _Alignas(16) uint8_t seen[EMU_LANE_SEEN_BYTES]; /* the table's line when it was found: live, and all that matters */
};

/* What names a peer's memory in a command. */
struct emu_lane_target {
    uint32_t nid;
    uint16_t mdh;
    uint16_t generation;
    uint8_t handle_flags;
    uint64_t remote_base;
};

struct emu_direct;

/* Finds a lane. False: there is none for this memory (now), commands go their usual way. May ask emunic. */
bool emu_lane_find(struct emu_direct *direct, const struct emu_lane_target *target, struct emu_lane *lane_out);

/* ---- gate ---- */

static inline void emu_gate_enter(struct emu_gate *gate)
{
    _Atomic uint64_t *inside = &gate->segment->inside;

    /* Pairs with emunic's membarrier or fence: either emunic sees our mark, or we see what it has taken away. */
    if (gate->fences) {
        atomic_exchange_explicit(inside, ++gate->inside, memory_order_seq_cst);
    } else {
        atomic_store_explicit(inside, ++gate->inside, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    }
}

static inline void emu_gate_leave(struct emu_gate *gate)
{
    /* All our accesses before the mark is gone. */
    atomic_store_explicit(&gate->segment->inside, ++gate->inside, memory_order_release);
    /* Another thread of ours may rest and wait for what we did. */
    emu_rest_disturb(gate->segment);
}

/*
 * May the next command take the direct path? No while the domain is switched to routed, and no while commands of this
 * port are still in emunic's hands: so switching loses no operation and changes no order. An ordered operation also
 * waits for transfers that emunic has taken out of the ring and not finished; only behind the look at the ring can
 * their number be believed.
 */
static inline bool emu_gate_is_open(const struct emu_gate *gate)
{
    if (atomic_load_explicit(&gate->table->flags, memory_order_acquire) & EMU_TABLE_NOT_DIRECT)
        return false;
    /* Pairs with the release in serve_ring(): what was taken out is counted before. */
    return atomic_load_explicit(&gate->segment->head, memory_order_acquire) == *gate->tail &&
           !(gate->is_for_ordered && atomic_load_explicit(&gate->segment->unfinished, memory_order_acquire) != 0);
}

/* ---- lanes ---- */

static inline bool emu_lane_is_current(const struct emu_lane *lane)
{
    const __m128i *md = (const __m128i *)lane->md;
    const __m128i *seen = (const __m128i *)lane->seen;
    __m128i same;

    /* Nothing of the line may be read before our mark is up. Pairs with emunic's barrier. */
    atomic_signal_fence(memory_order_acquire);
    same = _mm_and_si128(_mm_cmpeq_epi32(_mm_load_si128(&md[0]), _mm_load_si128(&seen[0])),
                         _mm_and_si128(_mm_cmpeq_epi32(_mm_load_si128(&md[1]), _mm_load_si128(&seen[1])),
                                       _mm_cmpeq_epi32(_mm_load_si128(&md[2]), _mm_load_si128(&seen[2]))));
    return _mm_movemask_epi8(same) == 0xffff && lane->port->generation == lane->port_generation;
}

/*
 * Has the processor get a line for writing. Any address may be named; where the instruction is unknown nothing happens.
 */
static inline void emu_prefetch_for_write(const void *addr)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)addr));
}

/*
 * Something will be written to `addr` at once, and perhaps an event after it: gets both lines on their way while the
 * caller still checks what it has to check. Both come from the peer's cache, and together take as long as one.
 */
static inline void emu_lane_expect(const struct emu_lane *lane, uint64_t addr, bool has_event)
{
    const struct emu_cq_producer *cq = &lane->destination;

    if (lane->epoch != lane->gate->epoch || !lane->window)
        return;
    emu_prefetch_for_write(lane->window + (addr + lane->shift - lane->first));
    if (has_event && lane->has_destination)
        emu_prefetch_for_write(
            &cq->shm->entries[atomic_load_explicit(&cq->shm->tail, memory_order_relaxed) & (cq->ring_entries - 1)]);
}

/* Were pages missing when the caller worked on them? */
static inline bool emu_lane_is_broken(const struct emu_lane *lane)
{
    /* The mark is set by a signal handler on this thread. */
    atomic_signal_fence(memory_order_seq_cst);
    return lane->broken && atomic_load_explicit(lane->broken, memory_order_relaxed) != 0;
}

/* Puts the mark up if [target, target + len), in the owner's addresses, may be reached. */
static inline bool emu_lane_may_enter(struct emu_lane *lane, uint64_t target, uint64_t len_bytes, bool is_written)
{
    struct emu_gate *gate = lane->gate;

    if (lane->epoch != gate->epoch || target < lane->first || target > lane->end || len_bytes > lane->end - target ||
        (is_written && lane->is_read_only) || atomic_load_explicit(gate->is_lost, memory_order_relaxed) ||
        atomic_load_explicit(&gate->table->files_gone, memory_order_relaxed) != gate->files_gone)
        return false;
    emu_gate_enter(gate);
    if (emu_gate_is_open(gate) && emu_lane_is_current(lane) && lane->md->file == lane->file &&
        !emu_lane_is_broken(lane))
        return true;
    emu_gate_leave(gate);
    return false;
}

/*
 * Where [addr, addr + len) of the peer lies here, and the mark is up; or NULL, and nothing has happened. The caller's
 * address as it would go into a command.
 */
static inline uint8_t *emu_lane_enter(struct emu_lane *lane, uint64_t addr, uint64_t len_bytes, bool is_written)
{
    uint64_t target = addr + lane->shift;

    if (!lane->window || !emu_lane_may_enter(lane, target, len_bytes, is_written))
        return NULL;
    return lane->window + (target - lane->first);
}

/*
 * The same without a window: the mark is up and the bytes have been moved, or false and nothing has happened that
 * matters (a part may have been moved; the engine will move them again, or say why not).
 */
bool emu_lane_write(struct emu_lane *lane, uint64_t addr, const void *data, uint64_t len_bytes);
bool emu_lane_read(struct emu_lane *lane, uint64_t addr, void *data, uint64_t len_bytes);

static inline void emu_lane_leave(struct emu_lane *lane)
{
    emu_gate_leave(lane->gate);
    if (lane->owner)
        emu_rest_disturb(lane->owner);
}

/* Flits of `bytes` of data. Divisions cost more than all the rest of a small operation, so small ones are looked up. */
static inline uint64_t emu_gate_data_flits(const struct emu_gate *gate, uint64_t bytes)
{
    return bytes <= EMU_GATE_FLITS_MAX ? gate->data_flits[bytes] : emu_payload_flits(&gate->table->format, bytes);
}

static inline uint64_t emu_gate_packets(const struct emu_gate *gate, uint64_t bytes)
{
    const struct emu_packet_format *format = &gate->table->format;

    return bytes <= format->payload_bytes_max ? 1 : emu_packets(format, bytes);
}

/* As emu_flow_add_put() and emu_flow_add_get(). */
static inline void emu_gate_count_put(const struct emu_gate *gate, struct emu_flow_counts *flow, uint64_t bytes)
{
    const struct emu_packet_format *format = &gate->table->format;
    uint64_t packets = emu_gate_packets(gate, bytes);

    flow->operations++;
    flow->payload_bytes += bytes;
    flow->request_packets += packets;
    flow->request_flits += packets * format->request_header_flits + emu_gate_data_flits(gate, bytes);
    flow->response_packets += packets;
    flow->response_flits += packets * format->response_header_flits;
}

static inline void emu_lane_count_put(struct emu_lane *lane, uint64_t bytes)
{
    emu_gate_count_put(lane->gate, lane->flow, bytes);
}

static inline void emu_lane_count_get(struct emu_lane *lane, uint64_t bytes, uint64_t operand_bytes)
{
    const struct emu_packet_format *format = &lane->gate->table->format;
    uint64_t packets = emu_gate_packets(lane->gate, bytes);
    struct emu_flow_counts *flow = lane->flow;

    flow->operations++;
    flow->payload_bytes += bytes;
    flow->request_packets += packets;
    flow->request_flits += packets * format->request_header_flits + emu_gate_data_flits(lane->gate, operand_bytes);
    flow->response_packets += packets;
    flow->response_flits += packets * format->response_header_flits + emu_gate_data_flits(lane->gate, bytes);
}

#endif
