/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What emunic and a mover share: one request and its answer at a time, in a memfd that only the two have.
 *
 * Written by: [E] emunic  [M] the mover
 *
 *   byte 0       64          128       192          320
 *        | ident | posted [E] | done [M] | request [E] | bytes: [E] with a write, [M] of a read |
 *
 *   emunic: request, bytes; posted + 1 (release)   ->   mover: moves; result, bytes; done = posted (release)
 *
 * A mover waits on `posted` (futex); emunic says in `wants` how it wants to hear of `done`. emunic believes nothing
 * that it reads here: the length of an answer is the one that it asked for.
 */
#ifndef EMUNIC_ABI_MOVER_H
#define EMUNIC_ABI_MOVER_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define EMU_MOVER_MAGIC 0x656d766du
#define EMU_MOVER_BYTES 65536u /* of one request */
#define EMU_MOVER_SLOTS 4096u  /* memories that a mover holds */

/* The mover's descriptors. */
#define EMU_MOVER_RING_FD  3
#define EMU_MOVER_BELL_FD  4
#define EMU_MOVER_PIDFD_FD 5 /* of the process, if it is for one alone */

enum emu_mover_op {
    EMU_MOVER_OPEN,   /* takes the memory of process `pid` into the slot, in place of what it held */
    EMU_MOVER_CHECK,  /* is the process still what it was? */
    EMU_MOVER_READ,   /* from `addr` into the bytes */
    EMU_MOVER_WRITE,  /* the bytes to `addr`, then the flag */
    EMU_MOVER_ATOMIC, /* on the word at `addr` */
    EMU_MOVER_COPY,   /* from `from_addr` in `from_slot`, then as a write; `old`: the side that failed, 0 the source */
};

/* How emunic wants to hear that a request is done. */
enum emu_mover_wants {
    EMU_MOVER_LOOKS = 0, /* it looks */
    EMU_MOVER_WAITS,     /* it waits on `done` (futex) */
    EMU_MOVER_LISTENS,   /* it wants the bell (eventfd) */
};

#define EMU_MOVER_HAS_FLAG 1u

struct emu_mover_request {
    uint32_t op;
    uint32_t slot;
    uint32_t pid;
    uint32_t flags;
    uint64_t addr;
    uint64_t len_bytes; /* at most EMU_MOVER_BYTES */
    uint64_t flag_addr;
    uint64_t flag_value;
    uint64_t operand1;
    uint64_t operand2;
    uint32_t amo_op;
    uint32_t amo_flags;
    uint64_t from_addr;
    uint32_t from_slot;
    uint32_t zero[11];
};

struct emu_mover_ring {
    uint32_t magic;
    uint32_t abi_version;
    alignas(64) _Atomic uint32_t posted; /* requests ever posted */
    _Atomic uint32_t wants;              /* enum emu_mover_wants; the mover takes it back when it has told */
    alignas(64) _Atomic uint32_t done;   /* requests ever done */
    _Atomic uint32_t sleeps;             /* the mover has to be woken */
    int32_t result;                      /* 0 or negative errno */
    uint32_t zero;
    uint64_t old; /* that an atomic operation found, or see EMU_MOVER_COPY */
    alignas(64) struct emu_mover_request request;
    alignas(64) uint8_t bytes[EMU_MOVER_BYTES];
};
static_assert(sizeof(struct emu_mover_request) == 128, "ABI: request");
static_assert(offsetof(struct emu_mover_ring, done) == 128, "ABI: mover's line");
static_assert(offsetof(struct emu_mover_ring, request) == 192, "ABI: request's line");
static_assert(offsetof(struct emu_mover_ring, bytes) == 320, "ABI: bytes");

#endif
