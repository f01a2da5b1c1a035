/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One command to the NIC: what a post becomes.
 *
 * Two cache lines. The first says what to do, where, and which events follow; the second carries the data of a
 * small put, or the rest of the arguments. emunic copies a command out of the ring before it looks at it.
 */
#ifndef EMUNIC_ABI_COMMAND_H
#define EMUNIC_ABI_COMMAND_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum emu_op {
    EMU_OP_PUT = 1,
    EMU_OP_GET,
    EMU_OP_AMO,
    EMU_OP_CQ_WRITE,
    EMU_OP_CE,      /* a leaf's contribution to a reduction; emunic alone runs it */
    EMU_OP_PTL_PUT, /* Portals: struct emu_ptl_cmd */
    EMU_OP_PTL_GET,
    EMU_OP_PTL_GETPUT,
    EMU_OP_DATAGRAM, /* virtual time: the datagram of end point operand1 sets out, or may pair if it is a wildcard */
    EMU_OP_END,
    EMU_OP_REPORT = 0x40, /* from the direct path: a command has failed. operand1: status, operand2: its op */
};

/* A chain is a run of commands with one completion: that of its last one, which also tells if another failed. */
enum emu_chain {
    EMU_CHAIN_NONE = 0,
    EMU_CHAIN_MORE,
    EMU_CHAIN_LAST,
};

/* flags */
#define EMU_CMD_INLINE   (1u << 0) /* put data are in `data`; local_addr unused */
#define EMU_CMD_STAGED   (1u << 1) /* put data are in the staging area; local_addr is an offset from its start */
#define EMU_CMD_FLAG     (1u << 2) /* after the data, store `flag_value` at `flag_addr` (same memory domain) */
#define EMU_CMD_FENCE    (1u << 3) /* start after all earlier commands are complete; later block transfers wait */
#define EMU_CMD_IN_ORDER (1u << 4) /* do not overtake earlier commands of the port */
#define EMU_CMD_GET_FLAG (1u << 5) /* set the four bytes behind the result after it has arrived */
#define EMU_CMD_BLOCK    (1u << 6) /* block transfer: counted as such, may be moved in slices */
#define EMU_CMD_LAUNCH   (1u << 7) /* FMA launch: costs less time than a window */

/* events */
#define EMU_EV_LOCAL  (1u << 0)
#define EMU_EV_GLOBAL (1u << 1)
#define EMU_EV_REMOTE (1u << 2)
#define EMU_EV_RETIRE (1u << 3) /* silent command: one source event of source "library" that frees the client's slot */
#define EMU_EV_LOSE   (1u << 4) /* emunic only: the remote event is lost, as if its queue had been full */
#define EMU_EV_HINT   (1u << 5) /* the remote event is the library's: it may use all places of a queue */
#define EMU_EV_QUIET  (1u << 6) /* virtual time: nobody waits for the command's end, unless it fails */

/* handle_flags */
#define EMU_HANDLE_OFFSET         (1u << 0) /* remote_addr counts from remote_base, not the owner's address */
#define EMU_HANDLE_VIRTUAL        (1u << 1) /* mdh is an index of the node's block of virtual handles */
#define EMU_HANDLE_LOCAL_SEGMENTS (1u << 2) /* local_addr is an offset in the initiator's segmented domain local_mdh */
#define EMU_HANDLE_CHANGED        (1u << 3) /* EMU_CMD_LAUNCH: another handle than the launch before */
#define EMU_HANDLE_MODE_SHIFT     4         /* above: enum emu_delivery */

/* How the packets of a command are routed, where they are modelled. */
enum emu_delivery {
    EMU_DELIVERY_ADAPTIVE_0 = 0,
    EMU_DELIVERY_ADAPTIVE_1,
    EMU_DELIVERY_ADAPTIVE_2,
    EMU_DELIVERY_ADAPTIVE_3,
    EMU_DELIVERY_MIN_HASH,
    EMU_DELIVERY_NMIN_HASH,
    EMU_DELIVERY_IN_ORDER,
    EMU_DELIVERIES,
};

#define EMU_CMD_DATA_BYTES     64u
#define EMU_CMD_INLINE_MAX     64u /* without EMU_CMD_FLAG */
#define EMU_CMD_INLINE_FLAGGED 48u /* with it */

struct emu_cmd {
    uint8_t op;      /* enum emu_op */
    uint8_t flags;   /* EMU_CMD_* */
    uint16_t events; /* EMU_EV_* */
    uint32_t remote_nid;
    uint64_t remote_addr;
    uint64_t length_bytes;
    uint64_t remote_base;  /* base address in the presented handle */
    uint16_t mdh;          /* memory domain on remote_nid */
    uint16_t generation;   /* of the handle; 0 = not told */
    uint8_t handle_flags;  /* EMU_HANDLE_* */
    uint8_t amo_op;        /* enum emu_amo_op */
    uint8_t amo_flags;     /* EMU_AMO_* */
    uint8_t chain;         /* enum emu_chain */
    uint64_t source_event; /* word for the source queue; the engine adds the status */
    uint64_t remote_event; /* word for the destination queue; also the value of a CQ write */
    uint32_t source_cq;    /* index of one of the port's queues, or EMU_CQ_NONE */
    uint32_t attempts;     /* short message: how often to try before "retransmit limit"; 0: failure is the outcome */

    union {
        uint8_t data[EMU_CMD_DATA_BYTES];
        struct {
            uint64_t flag_addr;
            uint64_t flag_value;
            uint8_t flagged_data[EMU_CMD_INLINE_FLAGGED];
        };
        struct {
            uint64_t pad[2];     /* flag_addr and flag_value keep their place */
            uint64_t local_addr; /* initiator's address, or staging offset */
            uint64_t operand1;
            uint64_t operand2;
            /*
             * EMU_OP_CE: local_addr is the result's, mdh and generation name its registration on the initiator's node
             */
            uint64_t ce_red_id;
            uint32_t ce_id;   /* engine on remote_nid */
            uint8_t ce_child; /* by which that engine knows the initiator */
            uint8_t ce_op;    /* enum emu_ce_op */
            uint8_t ce_flags; /* EMU_CE_*, and the exceptions met already above EMU_CE_FPE_SHIFT */
            uint8_t reserved3;
            uint16_t local_mdh; /* with EMU_HANDLE_LOCAL_SEGMENTS: on the initiator's node */
            uint16_t local_generation;
            uint32_t spare;
        };
    };
};
static_assert(offsetof(struct emu_cmd, data) == 64, "ABI: second line of a command");
static_assert(sizeof(struct emu_cmd) == 128, "ABI: a command is two cache lines");
static_assert(offsetof(struct emu_cmd, local_addr) == 80, "ABI: address behind the flag");
static_assert(offsetof(struct emu_cmd, ce_red_id) == 104, "ABI: collective engine");

#endif
