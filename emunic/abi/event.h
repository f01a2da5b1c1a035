/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The 64-bit event word that travels through completion queues.
 *
 *   63     lap       in shared memory: which lap of the ring wrote it. In a program's hands: overrun of this queue
 *   62     remote    the queue at the other end overran
 *   61..60 type      post, short message, dmapp, message queue
 *   59..56 source    which part of the NIC produced it; never 0
 *   55..48 status    0 done, else enum emu_status
 *   47..0  data      owner's business; see libugni/src/cqe.h
 *
 * The client builds the word when it posts; the engine adds status and lap. What reaches another port is rebuilt
 * by the engine from EMU_EVENT_FOREIGN_MASK, so that a port cannot forge source or status in a peer's queue.
 * Source: own layout, recommended in spec/ugni.md 2.10.
 */
#ifndef EMUNIC_ABI_EVENT_H
#define EMUNIC_ABI_EVENT_H

#include <stdint.h>

#define EMU_EVENT_LAP          (1ull << 63)
#define EMU_EVENT_REM_OVERRUN  (1ull << 62)
#define EMU_EVENT_TYPE_SHIFT   60
#define EMU_EVENT_SOURCE_SHIFT 56
#define EMU_EVENT_STATUS_SHIFT 48
#define EMU_EVENT_DATA_MASK    ((1ull << 48) - 1)
#define EMU_EVENT_TYPE_MASK    (3ull << EMU_EVENT_TYPE_SHIFT)

/* Bits of an event that a port may choose for an entry in another port's queue. */
#define EMU_EVENT_FOREIGN_MASK (EMU_EVENT_TYPE_MASK | EMU_EVENT_DATA_MASK)

enum emu_event_source {
    EMU_SOURCE_FMA = 1,
    EMU_SOURCE_BTE = 2,
    EMU_SOURCE_SMSG = 3,
    EMU_SOURCE_REMOTE = 4,
    EMU_SOURCE_CQ_WRITE = 5,
    EMU_SOURCE_CE = 6,
    EMU_SOURCE_LIBRARY = 15,
};

/* Outcome of a transaction. Values are the status field of an event; see spec/ugni.md 7.3. */
enum emu_status {
    EMU_STATUS_OK = 0,
    EMU_STATUS_NETWORK = 1,           /* no route, or the emulated NIC is gone */
    EMU_STATUS_PEER_GONE = 2,         /* node not in the domain, or the owner of the memory has died */
    EMU_STATUS_BAD_HANDLE = 3,        /* no such memory domain, or a stale generation */
    EMU_STATUS_REMOTE_RANGE = 4,      /* outside the registration, or its pages are not there */
    EMU_STATUS_REMOTE_PERMISSION = 5, /* registration or page does not allow it */
    EMU_STATUS_REMOTE_CQ_FULL = 6,
    EMU_STATUS_LOCAL_ACCESS = 7, /* the initiator's own memory is not there, or not writable */
    EMU_STATUS_RETRANSMIT_LIMIT = 8,
    EMU_STATUS_CANCELLED = 9,
    EMU_STATUS_BAD_COMMAND = 10, /* the command itself makes no sense; only a broken client sees it */
    EMU_STATUS_MISMATCH = 11,    /* members of a reduction named different operations, ids or places in the tree */
};

static inline uint64_t emu_event_make(unsigned type, unsigned source, uint64_t data)
{
    return (uint64_t)(type & 3u) << EMU_EVENT_TYPE_SHIFT | (uint64_t)(source & 15u) << EMU_EVENT_SOURCE_SHIFT |
           (data & EMU_EVENT_DATA_MASK);
}

static inline unsigned emu_event_status(uint64_t event)
{
    return (unsigned)(event >> EMU_EVENT_STATUS_SHIFT) & 0xffu;
}

static inline uint64_t emu_event_with_status(uint64_t event, unsigned status)
{
    return (event & ~(0xffull << EMU_EVENT_STATUS_SHIFT)) | (uint64_t)(status & 0xffu) << EMU_EVENT_STATUS_SHIFT;
}

#endif
