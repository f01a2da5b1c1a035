/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engine as the NIC knows it: operations, modes, tree links and the result that a leaf finds in its memory.
 *
 * A result is complete in itself: emunic writes the two words first and `control` last, as one 8-byte store. The
 * program zeroes the structure before it posts.
 *
 *   control   63       62 ..... 56   55 .. 52     51 .. 48   47 ............. 0
 *           | done   | status      | exceptions | 0        | reduction id      |
 *
 *   done        1 once the result is here
 *   status      0 delivered, else enum emu_status; the two words are then untouched
 *   exceptions  EMU_CE_FPE_* bits
 *
 * Source: operation list and semantics of spec/ugni.md 2.16, 3.6 and 4.12. The encodings are our own.
 */
#ifndef EMUNIC_ABI_CE_H
#define EMUNIC_ABI_CE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum emu_ce_op {
    EMU_CE_AND = 1,
    EMU_CE_OR,
    EMU_CE_XOR,
    EMU_CE_IADD, /* wraps */
    EMU_CE_FPADD,
    EMU_CE_IMIN, /* signed; carries an index, as the next three do */
    EMU_CE_IMAX,
    EMU_CE_FPMIN,
    EMU_CE_FPMAX,
    EMU_CE_OP_END,
};

/* Flags of a contribution. */
#define EMU_CE_32BIT     (1u << 0) /* operands are 4 bytes wide, else 8 */
#define EMU_CE_TWO_OP    (1u << 1) /* AND, OR, XOR, ADD: both operands, each by itself */
#define EMU_CE_GREATEST  (1u << 2) /* minimum and maximum: on ties the greatest index wins, else the lowest */
#define EMU_CE_FLAG_MASK 7u
#define EMU_CE_FPE_SHIFT 4 /* exceptions that the operands have met already */

#define EMU_CE_FPE_INVALID   (1u << 0)
#define EMU_CE_FPE_OVERFLOW  (1u << 1)
#define EMU_CE_FPE_UNDERFLOW (1u << 2)
#define EMU_CE_FPE_INEXACT   (1u << 3)
#define EMU_CE_FPE_MASK      15u

/* How an engine rounds. */
enum emu_ce_rounding {
    EMU_CE_ROUND_NEAR = 0, /* ties to even */
    EMU_CE_ROUND_UP,
    EMU_CE_ROUND_DOWN,
    EMU_CE_ROUND_ZERO,
    EMU_CE_ROUND_END,
};

#define EMU_CE_CHILDREN_MAX 32u
#define EMU_CE_WAITING_MAX  16u /* contributions of one leaf that wait for the other children */

enum emu_ce_link_type {
    EMU_CE_LINK_NONE = 0,
    EMU_CE_LINK_ENGINE = 1,
    EMU_CE_LINK_LEAF = 2,
};

/* One edge of a tree, as the engine at its end sees the other end. */
struct emu_ce_link {
    uint32_t nid;
    uint32_t instance_id; /* of a leaf */
    uint16_t ce_id;       /* of an engine on nid */
    uint8_t child_id;     /* by which the parent knows the child */
    uint8_t type;         /* enum emu_ce_link_type */
};
static_assert(sizeof(struct emu_ce_link) == 12, "ABI: link of a reduction tree");

/* What travels along the edges of a reduction tree: a contribution, a partial result, or the result. */
struct emu_ce_value {
    uint64_t red_id;
    uint64_t operand1; /* result1 */
    uint64_t operand2; /* result2; of minimum and maximum the index */
    uint8_t op;        /* enum emu_ce_op */
    uint8_t flags;     /* EMU_CE_32BIT, _TWO_OP, _GREATEST */
    uint8_t fpe;       /* EMU_CE_FPE_*: exceptions met so far */
    uint8_t status;    /* enum emu_status: why there is no result */
};

struct emu_ce_result {
    uint64_t control;
    uint64_t result1;
    uint64_t result2;
};
static_assert(sizeof(struct emu_ce_result) == 24, "ABI: result of a reduction");

#define EMU_CE_RESULT_ALIGN         32u
#define EMU_CE_CONTROL_DONE         (1ull << 63)
#define EMU_CE_CONTROL_STATUS_SHIFT 56
#define EMU_CE_CONTROL_STATUS_MASK  0x7full
#define EMU_CE_CONTROL_FPE_SHIFT    52
#define EMU_CE_CONTROL_ID_MASK      ((1ull << 48) - 1)

static inline uint64_t emu_ce_control(unsigned status, unsigned fpe, uint64_t red_id)
{
    return EMU_CE_CONTROL_DONE | (uint64_t)(status & EMU_CE_CONTROL_STATUS_MASK) << EMU_CE_CONTROL_STATUS_SHIFT |
           (uint64_t)(fpe & EMU_CE_FPE_MASK) << EMU_CE_CONTROL_FPE_SHIFT | (red_id & EMU_CE_CONTROL_ID_MASK);
}

/* Data of an engine's own entry in a completion queue; libugni/src/cqe.h takes it apart. */
static inline uint64_t emu_ce_event_data(uint32_t ce_id, uint64_t red_id)
{
    return (uint64_t)(ce_id & 0xffffu) << 32 | (red_id & 0xffffffffu);
}

#endif
