/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Port segment: the shared memory of one port. Mapped by its owner and by emunic.
 *
 *   | ident | ring tail [P] | ring head [E] | datagrams [E] | direct [P] | rests [P][N], parks [P] | fired [N] |
 *   | calls [P] |
 *   | slots | staging | times [P] | flows | queues ... |
 *
 * Times: _Atomic uint64_t[ring_slots] right behind the staging area, of the commands in virtual time (virtual_clock.h).
 *
 * Key: [I] emunic, before the owner maps it  [P] owning process  [E] emunic
 *
 * On the direct path the members of the domain map each other's segments, to put events into the queues: [N] is whoever
 * runs the engine.
 *
 * emunic copies every [I] value into its own memory when it makes the segment and never reads it here again; it
 * treats [P] as hostile. The owner checks [I] once when it maps the segment.
 *
 * Commands: single producer (the owner, under its NIC lock), single consumer (emunic). A command is published by
 * the store of `tail`; a slot is free again when `head` has passed it. Staging space is handed out in command order
 * and is free again with its command's slot, so it needs no counters of its own.
 */
#ifndef EMUNIC_ABI_SEGMENT_H
#define EMUNIC_ABI_SEGMENT_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/command.h"

#define EMU_RING_SLOTS     1024u        /* commands; a power of two */
#define EMU_STAGING_BYTES  (512u << 10) /* data of short messages and middle-sized puts on their way */
#define EMU_STAGED_MAX     (68u << 10)  /* one command's share: the largest short message with its header */
#define EMU_CQ_ARENA_BYTES (32u << 20)  /* sparse: 4 Mi entries */

/* Registrations that the owner may park: as many as fit beside `rests`, a line that whoever brings news looks at. */
#define EMU_PARKS 30u

enum emu_rest {
    EMU_REST_NONE = 0,
    EMU_REST_ANNOUNCED = 1, /* the owner polls and will go to sleep if nothing comes */
    EMU_REST_ASLEEP = 2,    /* the owner sleeps on the word, or did when it was last changed */
};

struct emu_segment {
    uint64_t magic;                    /* [I] EMU_SEGMENT_MAGIC */
    uint32_t abi_version;              /* [I] */
    uint32_t port;                     /* [I] slot in the domain table */
    uint64_t segment_bytes;            /* [I] */
    uint32_t ring_slots;               /* [I] */
    uint32_t n_flows;                  /* [I] one per node of the domain, in node index order */
    uint64_t slot_off;                 /* [I] struct emu_cmd[ring_slots] */
    uint64_t staging_off;              /* [I] */
    uint64_t staging_bytes;            /* [I] */
    uint64_t flow_off;                 /* [I] struct emu_flow_counts[2][n_flows]: [E] first, then [P] */
    alignas(64) _Atomic uint64_t tail; /* [P] commands ever published */
    alignas(64) _Atomic uint64_t head; /* [E] commands ever taken */
    _Atomic uint32_t unfinished;       /* [E] of those, still being moved */
    _Atomic uint32_t retransmits;      /* [E] short messages sent again */
    _Atomic uint64_t blocks_ended;     /* [E] block transfers (EMU_CMD_BLOCK) among the commands that are over */
    alignas(64) _Atomic uint32_t datagram_ready; /* [E] finished datagrams that nobody has collected */
    _Atomic uint32_t datagram_news;              /* [E] futex; changes whenever a datagram of the port changes state */
    _Atomic uint32_t datagram_waits;             /* [P] 1: a thread sleeps on datagram_news */
    alignas(64) _Atomic uint64_t inside;         /* [P] odd while the owner runs the engine itself */
    alignas(64) _Atomic uint32_t rests; /* [P][N] enum emu_rest; futex. News for the owner clear it (engine/rest.c) */
    _Atomic uint16_t parks[EMU_PARKS];  /* [P] generation of the memory domain with that park; 0: nobody reaches it */
    /*
     * A producer that has disarmed a queue of another port sets the queue's bit in that port's `fired` and the port's
     * bit in its own `calls`, and rings its doorbell; emunic passes it on to the owner's completion channel
     * (daemon/channel.c).
     */
    alignas(64) _Atomic uint64_t fired[EMU_CQS_MAX / 64];   /* [N] */
    alignas(64) _Atomic uint32_t has_calls;                 /* [P] */
    alignas(64) _Atomic uint64_t calls[EMU_PORTS_MAX / 64]; /* [P] */
    /* A block transfer that its initiator helps to move (engine/share.h). */
    alignas(64) _Atomic uint64_t share; /* [E][P] slices that nobody has taken; 0: there is no transfer */
    _Atomic uint64_t share_moved;       /* [P] slices that the owner has moved */
    uint64_t share_command;             /* [E] which command it is, as counted by `tail` */
    uint64_t share_slice_bytes;         /* [E] */
    alignas(64) uint64_t end[0];
};
static_assert(offsetof(struct emu_segment, tail) == 64, "ABI: producer line");
static_assert(offsetof(struct emu_segment, head) == 128, "ABI: consumer line");
static_assert(sizeof(struct emu_segment) == 1152, "ABI: segment header");

/*
 * Completion queue in the arena. Many producers, one consumer.
 *
 *   byte 0        64           128          192          256
 *        | ident  | head [P]   | tail [N]   | rare [N][P]| entries ...
 *
 * [N] is whoever runs the engine. An entry is one 64-bit event whose top bit tells the lap in which it was written,
 * so the consumer of an empty queue reads only the line of the next entry. A producer reserves a place by moving
 * `tail`, then stores the entry: the store publishes it. `capacity` may be smaller than the ring (exact sizes).
 */
struct emu_cq_shm {
    uint64_t ring_entries; /* [I] a power of two */
    uint64_t capacity;     /* [I] entries that may wait when a peer adds one */
    uint64_t reserved[6];
    alignas(64) _Atomic uint64_t head;    /* [P] events ever taken */
    alignas(64) _Atomic uint64_t tail;    /* [N] places ever reserved */
    alignas(64) _Atomic uint32_t overrun; /* [N] events lost since the owner last cleared it */
    _Atomic uint32_t sleepers;            /* [P] 1: somebody sleeps on this word. futex; the producer clears it */
    _Atomic uint32_t armed;      /* [P] number of the queue plus one: a channel waits; the producer clears it */
    _Atomic uint32_t wake_after; /* [P] events that are worth waking a sleeper; 0 and 1: each is */
    alignas(64) _Atomic uint64_t entries[];
};
static_assert(offsetof(struct emu_cq_shm, entries) == 256, "ABI: completion queue header");

#endif
