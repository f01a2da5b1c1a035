/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules: what to inject, where and when. Travel in a memfd on the admin socket; emunic checks each one
 * (emu_fault_rule_check) before it takes any.
 *
 * A rule looks at operations of its classes, between its nodes and instances. Each port counts the operations that a
 * rule looks at; which of them it hits follows from that number alone, from the seed, the rule and the port.
 */
#ifndef EMUNIC_ABI_FAULT_H
#define EMUNIC_ABI_FAULT_H

#include <assert.h>
#include <stdint.h>

#include "emunic/abi/abi.h"

#define EMU_FAULT_RULES_MAX   256u        /* of one domain */
#define EMU_FAULT_RATE_ONE    1000000000u /* rates are parts of this */
#define EMU_FAULT_ALL_DOMAINS UINT32_MAX

/* Kinds of operations. `classes` of a rule has one bit for each. */
enum emu_fault_class {
    EMU_FAULT_FMA_PUT = 0,
    EMU_FAULT_FMA_GET,
    EMU_FAULT_FMA_AMO,
    EMU_FAULT_BTE_PUT,
    EMU_FAULT_BTE_GET,
    EMU_FAULT_SMSG,
    EMU_FAULT_MSGQ,
    EMU_FAULT_CQ_WRITE,
    EMU_FAULT_CE,      /* contributions to reductions */
    EMU_FAULT_PTL_PUT, /* Portals */
    EMU_FAULT_PTL_GET,
    EMU_FAULT_PTL_GETPUT,
    EMU_FAULT_DATAGRAM,
    EMU_FAULT_REGISTRATION,
    EMU_FAULT_CLASSES,
};
#define EMU_FAULT_BIT(c)           (1u << (c))
#define EMU_FAULT_FMA_BITS         (7u << EMU_FAULT_FMA_PUT)
#define EMU_FAULT_BTE_BITS         (3u << EMU_FAULT_BTE_PUT)
#define EMU_FAULT_PTL_BITS         (7u << EMU_FAULT_PTL_PUT)
#define EMU_FAULT_TRANSACTION_BITS ((1u << EMU_FAULT_DATAGRAM) - 1)

enum emu_fault_action {
    EMU_FAULT_DROP = 1, /* never arrives: status "network"; a datagram waits for ever */
    EMU_FAULT_CORRUPT,  /* arrives broken and is found out: status "network"; a datagram ends with an error */
    EMU_FAULT_FAIL,     /* ends with `status` and does nothing */
    EMU_FAULT_DELAY,    /* goes on `delay_ns` later; what its port does after it waits as well */
    EMU_FAULT_OVERRUN,  /* works, but its event is lost at the target, as if the queue had been full */
    EMU_FAULT_KILL,     /* ends a process with SIGKILL, then the transaction: status "peer gone" */
    EMU_FAULT_REPORT,   /* works; an error event of `category` is told to subscribers */
    EMU_FAULT_THROTTLE, /* works; the initiator's node injects at its second limit from now on */
    EMU_FAULT_ACTIONS,
};

/* `status` of a rule for registrations; for datagrams. For transactions it is an enum emu_status. */
enum emu_fault_registration_status {
    EMU_FAULT_NO_RESOURCE = 1,
    EMU_FAULT_NO_MEMORY,
    EMU_FAULT_NO_PERMISSION,
    EMU_FAULT_REGISTRATION_STATUSES,
};
enum emu_fault_datagram_status {
    EMU_FAULT_DATAGRAM_ERROR = 1,
    EMU_FAULT_DATAGRAM_TIMEOUT,
    EMU_FAULT_DATAGRAM_BUSY,
    EMU_FAULT_DATAGRAM_STATUSES,
};

/* flags */
#define EMU_FAULT_FROM_INSTANCE    (1u << 0) /* from_instance counts */
#define EMU_FAULT_TO_INSTANCE      (1u << 1)
#define EMU_FAULT_VICTIM_INITIATOR (1u << 2) /* kill: the initiator instead of the target's owner */
#define EMU_FAULT_FLAGS            7u

struct emu_fault_rule {
    uint32_t id;      /* given by emunic: 1, 2, ... within a domain */
    uint32_t classes; /* EMU_FAULT_BIT() */
    uint8_t action;   /* enum emu_fault_action */
    uint8_t status;   /* fail */
    uint8_t category; /* report: one EMU_ERROR_* bit */
    uint8_t reserved;
    uint32_t flags; /* EMU_FAULT_* */
    uint64_t seed;
    uint32_t from_nid; /* initiator's node, or EMU_NID_NONE: any */
    uint32_t to_nid;   /* target's */
    uint32_t from_instance;
    uint32_t to_instance;
    /* Which of the operations: at most one of the next four; none: all of them. */
    uint32_t rate_ppb; /* parts of EMU_FAULT_RATE_ONE */
    uint32_t live_min; /* registration: when the port holds so many already */
    uint64_t nth;      /* only this one; the first is 1 */
    uint64_t every;    /* each so-manieth */
    uint64_t after;    /* operations that are let pass before counting starts */
    uint64_t count;    /* hits per port at most; 0 no limit */
    uint64_t start_ns; /* since the rule was set */
    uint64_t end_ns;   /* likewise; 0 never */
    uint64_t delay_ns; /* delay */
    uint64_t reserved2;
};
static_assert(sizeof(struct emu_fault_rule) == 112, "ABI: fault rule");

#endif
