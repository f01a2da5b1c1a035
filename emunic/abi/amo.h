/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic memory operations as the NIC knows them. Every API translates its own command numbers into these.
 * Source: operation list and semantics of spec/ugni.md 2.15.
 */
#ifndef EMUNIC_ABI_AMO_H
#define EMUNIC_ABI_AMO_H

enum emu_amo_op {
    EMU_AMO_ADD = 1, /* m + a, wraps */
    EMU_AMO_AND,     /* m & a */
    EMU_AMO_OR,      /* m | a */
    EMU_AMO_XOR,     /* m ^ a */
    EMU_AMO_SWAP,    /* a */
    EMU_AMO_AX,      /* (m & a) ^ b */
    EMU_AMO_CSWAP,   /* m == a ? b : m */
    EMU_AMO_IMIN,    /* signed */
    EMU_AMO_IMAX,
    EMU_AMO_FPMIN, /* IEEE minNum */
    EMU_AMO_FPMAX,
    EMU_AMO_FPADD,
    EMU_AMO_OP_END,
};

#define EMU_AMO_FETCH  (1u << 0) /* the old value goes to the initiator */
#define EMU_AMO_32BIT  (1u << 1) /* operands are 4 bytes wide, else 8 */
#define EMU_AMO_PAIRS  (1u << 2) /* step over pairs of words; only the first of each changes */
#define EMU_AMO_CACHED (1u << 3) /* a NIC with a cache of atomics may keep the word in it (engine/amo_cache.h) */

#endif
