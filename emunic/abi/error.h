/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error events: what emunic tells subscribers (GNI_SubscribeErrors).
 *
 * Categories have the values of GNI_ERRMASK_*; an event has exactly one. Source: spec/ugni.md 2.18, 3.8, 4.13; codes
 * and words are our own.
 */
#ifndef EMUNIC_ABI_ERROR_H
#define EMUNIC_ABI_ERROR_H

#include <assert.h>
#include <stdint.h>

#define EMU_ERROR_CORRECTABLE_MEMORY  (1u << 0)
#define EMU_ERROR_CRITICAL            (1u << 1)
#define EMU_ERROR_TRANSACTION         (1u << 2)
#define EMU_ERROR_ADDRESS_TRANSLATION (1u << 3)
#define EMU_ERROR_TRANSIENT           (1u << 4)
#define EMU_ERROR_INFORMATIONAL       (1u << 5)
#define EMU_ERROR_DIAG_ONLY           (1u << 6)
#define EMU_ERROR_UNKNOWN_TRANSACTION (1u << 7)

/* error_code. 1 to 31: a transaction ended with that enum emu_status. */
enum emu_error_code {
    EMU_ERROR_CORRUPT = 32,       /* a packet arrived broken; its transaction ended with status "network" */
    EMU_ERROR_DELAYED = 33,       /* an operation was held back */
    EMU_ERROR_RETRANSMITTED = 34, /* a short message was lost and is sent again */
    EMU_ERROR_OVERRUN = 35,       /* an event found no room in its completion queue */
    EMU_ERROR_REGISTRATION = 36,  /* a registration was refused */
    EMU_ERROR_DATAGRAM = 37,      /* a datagram was lost or ended with an error */
    EMU_ERROR_NO_ROUTE = 38,      /* nothing leads to the target, or back: transaction ended with status "network" */
    EMU_ERROR_PORT_DIED = 48,     /* a NIC handle has gone with its process, or was closed for breaking the rules */
    EMU_ERROR_NIC_GONE = 49,      /* made by the library: emunic has gone, the last event of a subscription */
    EMU_ERROR_INJECTED = 64,      /* a rule with action "report" */
    EMU_ERROR_RULES = 65,         /* fault rules were set or cleared; how many there are now */
    EMU_ERROR_NETWORK = 66,       /* a part of the network broke or was mended: info 0 (enum emu_network_thing, index),
                                     1 lanes, 2 mended */
    EMU_ERROR_ROUTES = 67,        /* traffic goes on over new routes */
};

struct emu_error_record {
    uint16_t code;    /* enum emu_error_code, or enum emu_status */
    uint8_t category; /* one EMU_ERROR_* bit */
    uint8_t ptag;
    uint32_t serial;       /* counts the events of one subscription, lost ones included */
    uint64_t timestamp_ns; /* since 1970 */
    /*
     * [0] initiator's nid << 32 | its instance   [1] target's nid << 32 | memory domain or instance
     * [2] remote address, count                  [3] fault rule << 32 | EMU_ERROR_FIRST | operation << 8 | status
     */
    uint64_t info[4];
};
static_assert(sizeof(struct emu_error_record) == 48, "ABI: error record");

/*
 * In info[3]: the first of a burst, that is, of the events that came before the subscriber had taken all earlier ones.
 * It is kept even if the queue is full with those behind it. Source: spec/machines.md 2.4.
 */
#define EMU_ERROR_FIRST (1ull << 16)

#define EMU_ERRORS_PER_REPLY 4u
#define EMU_ERRORS_DEFAULT   64u /* events that a subscription keeps */
#define EMU_ERRORS_MAX       65536u

#endif
