/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals3.h: Portals 3.3 over the emulated NIC, the dialect of Cray's XT ("CRAY"). Programs include
 * <portals/portals3.h> and link with -lportals.
 *
 * The Sandia dialect ("REF": <portals3.h>, -lp3api) is another header and another library over the same core: process
 * ids are 32 bits wide there and codes have other numbers, so that objects of the two must not be mixed. What the
 * dialects share is in p3_types.h (types) and p3_calls.h (calls); a difference in behaviour is told at the call or the
 * event it is about.
 *
 * Source compatible with the original. No numeric value of Cray's header is public: the ones here are what the
 * specification proposes (spec/portals3.md Q1 and Q2), and binary compatibility is not claimed. The specification is
 * installed as share/doc/emunic/spec/portals3.md.
 *
 * Names that programs look for with #ifdef are macros too, which expand to themselves. Not defined on purpose:
 * PTL_NO_ACK_REQ and PTL_UNKNOWN_ERROR (REF's), CRAY_ACCEL (there is no accelerated mode to choose), PTL_MAX_TRANS_SZ
 * (no limit). PtlErrorStr(), PtlEventKindStr() and PtlNIFailStr() are REF's: programs tell the dialects apart by them.
 *
 * A program that declares ptl_time_t and ptl_eq_handler_t itself, as some did for releases that lacked them, defines
 * PTL_CRAY_OLD_TYPES before it includes this.
 */
#ifndef PORTALS3_H
#define PORTALS3_H

#include <stddef.h>
#include <stdint.h>

/*
 * Base types
 *
 * All are integers that can be compared, cast and printed. (spec/portals3.md 2.1)
 */
typedef uint64_t ptl_size_t;       /* bytes */
typedef uint32_t ptl_handle_any_t; /* names one object of this process; never names another later */
typedef ptl_handle_any_t ptl_handle_ni_t;
typedef ptl_handle_any_t ptl_handle_me_t;
typedef ptl_handle_any_t ptl_handle_md_t;
typedef ptl_handle_any_t ptl_handle_eq_t;
typedef uint32_t ptl_pt_index_t; /* width unconfirmed */
typedef uint32_t ptl_ac_index_t; /* width unconfirmed */
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint32_t ptl_interface_t;
typedef uint32_t ptl_nid_t; /* node: its number in the emulated machine */
typedef uint16_t ptl_pid_t; /* 16 bits: programs print and scan it with %hu */
typedef uint32_t ptl_uid_t;
typedef uint32_t ptl_jid_t;
typedef uint32_t ptl_sr_index_t;
typedef int64_t ptl_sr_value_t; /* signed here, unsigned in REF */
typedef uint32_t ptl_ni_fail_t;
typedef uint32_t ptl_seq_t; /* width unconfirmed */

/*
 * Return codes
 *
 * Every call but PtlFini() and the helpers that return something else gives one of these; the calls tell which and
 * why. Values unconfirmed. They index ptl_err_str[].
 */
typedef enum {
    PTL_OK = 0,                /* done */
    PTL_SEGV = 1,              /* a pointer that is needed is NULL */
    PTL_NO_SPACE = 2,          /* out of memory, or of objects that were granted */
    PTL_ME_IN_USE = 3,         /* the match entry has a descriptor; or its descriptor has pending operations */
    PTL_NAL_FAILED = 4,        /* never given: the network's failures come as ni_fail_type */
    PTL_NO_INIT = 5,           /* PtlInit() is missing */
    PTL_IFACE_DUP = 6,         /* the interface is open already; its handle was stored */
    PTL_IFACE_INVALID = 7,     /* no such interface */
    PTL_HANDLE_INVALID = 8,    /* not a handle of any kind */
    PTL_MD_INVALID = 9,        /* not a descriptor, or no longer one */
    PTL_ME_INVALID = 10,       /* not a match entry, or no longer one */
    PTL_PROCESS_INVALID = 11,  /* a process id that nobody can have */
    PTL_PT_INDEX_INVALID = 12, /* beyond the portal table */
    PTL_SR_INDEX_INVALID = 13, /* no such status register */
    PTL_EQ_INVALID = 14,       /* not an event queue, or no longer one */
    PTL_EQ_DROPPED = 15,       /* an event was returned, and earlier ones were lost */
    PTL_EQ_EMPTY = 16,         /* no event */
    PTL_MD_NO_UPDATE = 17,     /* the queue to test has events, or will have */
    PTL_FAIL = 18,             /* the interface cannot be started */
    PTL_AC_INDEX_INVALID = 19, /* beyond the access control table */
    PTL_MD_ILLEGAL = 20,       /* contents of a descriptor are not acceptable */
    PTL_ME_LIST_TOO_LONG = 21, /* the match list is as long as it may be */
    PTL_MD_IN_USE = 22,        /* the descriptor has pending operations */
    PTL_NI_INVALID = 23,       /* not an interface, or no longer one */
    PTL_PID_INVALID = 24,      /* the process id cannot be had */
    PTL_PT_FULL = 25,          /* no unused portal index */
    PTL_VAL_FAILED = 26,       /* never given: no memory is pinned */
    PTL_NOT_IMPLEMENTED = 27,  /* never given */
    PTL_NO_ACK = 28,           /* never given */
    PTL_EQ_IN_USE = 29,        /* never given: a queue can be freed at any time */
    PTL_PID_IN_USE = 30,       /* never given: PTL_PID_INVALID says it */
    PTL_INV_EQ_SIZE = 31,      /* never given: see PtlEQAlloc() */
    PTL_AGAIN = 32,            /* never given: operations are queued */
    PTL_MAX_ERRNO = 33         /* one past the last */
} ptl_err_t;

#define PTL_OK               PTL_OK
#define PTL_SEGV             PTL_SEGV
#define PTL_NO_SPACE         PTL_NO_SPACE
#define PTL_ME_IN_USE        PTL_ME_IN_USE
#define PTL_NAL_FAILED       PTL_NAL_FAILED
#define PTL_NO_INIT          PTL_NO_INIT
#define PTL_IFACE_DUP        PTL_IFACE_DUP
#define PTL_IFACE_INVALID    PTL_IFACE_INVALID
#define PTL_HANDLE_INVALID   PTL_HANDLE_INVALID
#define PTL_MD_INVALID       PTL_MD_INVALID
#define PTL_ME_INVALID       PTL_ME_INVALID
#define PTL_PROCESS_INVALID  PTL_PROCESS_INVALID
#define PTL_PT_INDEX_INVALID PTL_PT_INDEX_INVALID
#define PTL_SR_INDEX_INVALID PTL_SR_INDEX_INVALID
#define PTL_EQ_INVALID       PTL_EQ_INVALID
#define PTL_EQ_DROPPED       PTL_EQ_DROPPED
#define PTL_EQ_EMPTY         PTL_EQ_EMPTY
#define PTL_MD_NO_UPDATE     PTL_MD_NO_UPDATE
#define PTL_FAIL             PTL_FAIL
#define PTL_AC_INDEX_INVALID PTL_AC_INDEX_INVALID
#define PTL_MD_ILLEGAL       PTL_MD_ILLEGAL
#define PTL_ME_LIST_TOO_LONG PTL_ME_LIST_TOO_LONG
#define PTL_MD_IN_USE        PTL_MD_IN_USE
#define PTL_NI_INVALID       PTL_NI_INVALID
#define PTL_PID_INVALID      PTL_PID_INVALID
#define PTL_PT_FULL          PTL_PT_FULL
#define PTL_VAL_FAILED       PTL_VAL_FAILED
#define PTL_NOT_IMPLEMENTED  PTL_NOT_IMPLEMENTED
#define PTL_NO_ACK           PTL_NO_ACK
#define PTL_EQ_IN_USE        PTL_EQ_IN_USE
#define PTL_PID_IN_USE       PTL_PID_IN_USE
#define PTL_INV_EQ_SIZE      PTL_INV_EQ_SIZE
#define PTL_AGAIN            PTL_AGAIN
#define PTL_MAX_ERRNO        PTL_MAX_ERRNO

/* Wanted acknowledgement of a put. Values: spec/portals3.md 2.4. */
typedef enum { PTL_ACK_REQ = 0, PTL_NOACK_REQ = 1 } ptl_ack_req_t;

#define PTL_ACK_REQ   PTL_ACK_REQ
#define PTL_NOACK_REQ PTL_NOACK_REQ

/*
 * Interfaces
 *
 * All of the names below, and PTL_IFACE_SS without a bridge, mean the one interface there is: the emulated NIC of the
 * job's node. PTL_IFACE_TCP and PTL_IFACE_ER are PTL_IFACE_INVALID. Values unconfirmed. (spec/portals3.md 2.6)
 */
#define PTL_IFACE_TCP 1
#define PTL_IFACE_ER  2
#define PTL_IFACE_SS  3

#define PTL_BRIDGE_UK   1 /* Linux process */
#define PTL_BRIDGE_QK   2 /* Catamount process */
#define PTL_BRIDGE_KERN 3 /* the kernel; our own name */

#define IFACE_FROM_BRIDGE_AND_NALID(bridge, nal) (((bridge) << 16) | (nal))

#define CRAY_UK_SSNAL IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS)
#define CRAY_USER_NAL IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS)
#define CRAY_QK_NAL   IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_QK, PTL_IFACE_SS)
#define CRAY_KERN_NAL IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_KERN, PTL_IFACE_SS)
#define CRAY_KB_ERNAL IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_KERN, PTL_IFACE_ER) /* PTL_IFACE_INVALID */

/* Some programs define it, as PTL_IFACE_SS, before they include this. */
#ifndef PTL_IFACE_DEFAULT
#define PTL_IFACE_DEFAULT IFACE_FROM_BRIDGE_AND_NALID(PTL_BRIDGE_UK, PTL_IFACE_SS)
#endif

#include <portals/p3_types.h>

/*
 * Descriptor options that this dialect has in addition. Values unconfirmed. (spec/portals3.md 2.5)
 */
#define PTL_MD_EVENT_AUTO_UNLINK_ENABLE    0x0200 /* PTL_EVENT_UNLINK by automatic unlinking; not without it */
#define PTL_MD_EVENT_MANUAL_UNLINK_ENABLE  0x0400 /* PTL_EVENT_UNLINK by PtlMDUnlink() and PtlMEUnlink() too */
#define PTL_MD_FLAG_AUTO_UNLINK            0x0800 /* as if PTL_UNLINK had been given for the descriptor */
#define PTL_MD_LUSTRE_COMPLETION_SEMANTICS 0x1000 /* PtlMDUnlink() of a busy one succeeds; ptl_event_t.unlinked */
#define PTL_MD_PHYS                        0x2000 /* kernel only: PTL_MD_ILLEGAL */
#define PTL_MD_KIOV                        0x4000 /* kernel only: PTL_MD_ILLEGAL */
#define PTL_MD_LOCAL_ALIGN8                0x8000 /* the local offset is rounded up to a multiple of 8 */

/*
 * Event. Fields by kind: p3_types.h. Field order is the specification's (3.5); `unlinked` is the position that kernel
 * programs need. Not the 128 bytes that one program's comment tells of (Q2).
 */
typedef struct {
    ptl_event_kind_t type;
    ptl_process_id_t initiator;  /* SEND: self; ACK and REPLY: the peer; else who made the request */
    ptl_uid_t uid;               /* of that process */
    ptl_jid_t jid;               /* of that process */
    ptl_pt_index_t pt_index;     /* of the request */
    ptl_match_bits_t match_bits; /* of the request */
    ptl_size_t rlength;          /* bytes asked for */
    ptl_size_t mlength;          /* bytes moved */
    ptl_size_t offset;           /* bytes from the start of the descriptor; ACK: remote_offset, echoed */
    ptl_handle_md_t md_handle;   /* local descriptor; no longer valid in and after UNLINK */
    ptl_md_t md;                 /* as it was made, but for the threshold: as it was *before* the operation (Q5) */
    ptl_hdr_data_t hdr_data;     /* of a put or getput */
    ptl_seq_t link;              /* the same in START, END and UNLINK of one operation */
    ptl_ni_fail_t ni_fail_type;  /* PTL_NI_OK, or the transfer failed and its memory is undefined */
    int unlinked;                /* 1: unlinked with this event (PTL_MD_LUSTRE_COMPLETION_SEMANTICS); else 0 */
    volatile ptl_seq_t sequence; /* one more for each event of a queue */
} ptl_event_t;

#ifndef PTL_CRAY_OLD_TYPES
typedef uint32_t ptl_time_t; /* ms */
typedef void (*ptl_eq_handler_t)(ptl_event_t *event);
#define PTL_EQ_HANDLER_NONE ((ptl_eq_handler_t)NULL)
#endif
#define PTL_TIME_FOREVER ((uint32_t)-1)

#include <portals/p3_debug.h>
#include <portals/p3_calls.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/*
 * Combined calls
 */

/**
 * PtlMEAttach() and PtlMDAttach() in one: both objects, or neither.
 *
 * @param[in]  ni           Interface.
 * @param[in]  pt           Portal index.
 * @param[in]  match_id     Who may match; nid and pid may each be ANY.
 * @param[in]  match_bits   Bits to match.
 * @param[in]  ignore_bits  Bits that need not match.
 * @param[in]  me_unlink    PTL_UNLINK: the entry goes with its descriptor.
 * @param[in]  pos          PTL_INS_BEFORE: head of the list; PTL_INS_AFTER: tail.
 * @param[in]  md           Descriptor.
 * @param[in]  md_unlink    PTL_UNLINK: unlinked when it is inactive and nothing is pending.
 * @param[out] me           Handle of the entry.
 * @param[out] mdh          Handle of the descriptor.
 * @retval PTL_OK                Both exist.
 * @retval PTL_NO_INIT           The library is not initialised.
 * @retval PTL_NI_INVALID        ni is no interface.
 * @retval PTL_PT_INDEX_INVALID  pt is beyond max_pt_index.
 * @retval PTL_ME_LIST_TOO_LONG  The list has max_me_list entries.
 * @retval PTL_MD_ILLEGAL        As PtlMDAttach().
 * @retval PTL_EQ_INVALID        md.eq_handle is no queue.
 * @retval PTL_NO_SPACE          max_mes or max_mds are in use.
 * @retval PTL_SEGV              me or mdh is NULL.
 * @note Never PTL_PROCESS_INVALID: any match_id might be legal.
 * @note Never PTL_ME_IN_USE: the entry is new.
 * @note Never PTL_VAL_FAILED: no memory is pinned.
 * @note Threads: any. CRAY only.
 * @note Source: spec/portals3.md 4.11 (argument list from CCI).
 */
int PtlMEMDAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                  ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink, ptl_ins_pos_t pos, ptl_md_t md,
                  ptl_unlink_t md_unlink, ptl_handle_me_t *me, ptl_handle_md_t *mdh);

/**
 * PtlMEInsert() and PtlMDAttach() in one: both objects, or neither.
 *
 * @param[in]  base         Entry to insert beside.
 * @param[in]  match_id     Who may match.
 * @param[in]  match_bits   Bits to match.
 * @param[in]  ignore_bits  Bits that need not match.
 * @param[in]  me_unlink    PTL_UNLINK: the entry goes with its descriptor.
 * @param[in]  pos          Before or after base.
 * @param[in]  md           Descriptor.
 * @param[in]  md_unlink    PTL_UNLINK: unlinked when it is inactive and nothing is pending.
 * @param[out] me           Handle of the entry.
 * @param[out] mdh          Handle of the descriptor.
 * @retval PTL_OK                Both exist.
 * @retval PTL_NO_INIT           The library is not initialised.
 * @retval PTL_ME_INVALID        base is no match entry, or no longer one.
 * @retval PTL_ME_LIST_TOO_LONG  The list has max_me_list entries.
 * @retval PTL_MD_ILLEGAL        As PtlMDAttach().
 * @retval PTL_EQ_INVALID        md.eq_handle is no queue.
 * @retval PTL_NO_SPACE          max_mes or max_mds are in use.
 * @retval PTL_SEGV              me or mdh is NULL.
 * @note Never PTL_PROCESS_INVALID: any match_id might be legal.
 * @note Never PTL_ME_IN_USE: the entry is new.
 * @note Never PTL_VAL_FAILED: no memory is pinned.
 * @note Threads: any. CRAY only.
 * @note Source: spec/portals3.md 4.11. The argument list is unconfirmed.
 */
int PtlMEMDInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                  ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink, ptl_ins_pos_t pos, ptl_md_t md,
                  ptl_unlink_t md_unlink, ptl_handle_me_t *me, ptl_handle_md_t *mdh);

/**
 * PtlGetPut() between parts of both descriptors: `length` bytes at put_offset go out, what was in the target comes to
 * get_offset. get_md and put_md may be one descriptor.
 *
 * @param[in]  get_md         Gets the old contents.
 * @param[in]  get_offset     Bytes from its start.
 * @param[in]  put_md         Has the new contents.
 * @param[in]  put_offset     Bytes from its start.
 * @param[in]  length         Bytes, at most max_getput_md of either side.
 * @param[in]  target         Process.
 * @param[in]  pt             Its portal index.
 * @param[in]  ac             Its access control entry; not looked at.
 * @param[in]  match_bits     Of the request.
 * @param[in]  remote_offset  For descriptors with PTL_MD_MANAGE_REMOTE.
 * @param[in]  hdr_data       Told in the target's events.
 * @retval PTL_OK               Accepted.
 * @retval PTL_NO_INIT          The library is not initialised.
 * @retval PTL_MD_INVALID       One of the two is no descriptor, or inactive.
 * @retval PTL_MD_ILLEGAL       A range does not fit; length is more than max_getput_md.
 * @retval PTL_PROCESS_INVALID  target has a wildcard.
 * @note Never PTL_NO_SPACE: operations are queued.
 * @note Threads: any. Never waits for the target. CRAY only.
 * @note Source: spec/portals3.md 4.11 (argument list from ARMCI).
 */
int PtlGetPutRegion(ptl_handle_md_t get_md, ptl_size_t get_offset, ptl_handle_md_t put_md, ptl_size_t put_offset,
                    ptl_size_t length, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
                    ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data);

/**
 * PtlGet() from a process of the same node. The same events; here it is PtlGet().
 *
 * @param[in]  md             Gets the data.
 * @param[in]  target         Process.
 * @param[in]  pt             Its portal index.
 * @param[in]  ac             Its access control entry; not looked at.
 * @param[in]  match_bits     Of the request.
 * @param[in]  remote_offset  For descriptors with PTL_MD_MANAGE_REMOTE.
 * @retval PTL_OK               Accepted.
 * @retval PTL_NO_INIT          The library is not initialised.
 * @retval PTL_MD_INVALID       md is no descriptor, or inactive.
 * @retval PTL_PROCESS_INVALID  target has a wildcard, or is on another node.
 * @note Never PTL_NO_SPACE: operations are queued.
 * @note Threads: any. CRAY only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlMDMDCopy(ptl_handle_md_t md, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
                ptl_match_bits_t match_bits, ptl_size_t remote_offset);

/**
 * Look at the oldest event and leave it in the queue. A handler is not called; a report of losses is not used up.
 *
 * @param[in]  eq     Queue.
 * @param[out] event  The event; untouched if there is none.
 * @retval PTL_OK          There is one.
 * @retval PTL_EQ_DROPPED  There is one, and earlier ones were lost.
 * @retval PTL_EQ_EMPTY    There is none.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_EQ_INVALID  eq is no queue.
 * @retval PTL_SEGV        event is NULL.
 * @note Threads: any. CRAY only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlEQPeek(ptl_handle_eq_t eq, ptl_event_t *event);

/**
 * Do two handles name the same object? Never a code of this library. (Q14)
 *
 * @param[in] a  Handle of any kind.
 * @param[in] b  Handle of any kind.
 * @return 1 if they do, else 0.
 * @note Threads: any. Any time. CRAY only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlHandleIsEqual(ptl_handle_any_t a, ptl_handle_any_t b);

/*
 * Tables of names
 *
 * By code: the C identifiers. Static, never changed. Entry PTL_MAX_ERRNO spells its own name. (spec/portals3.md 4.10)
 *
 * The library also exports ptl_event_str, by kind of event. It is declared nowhere, because programs declare it
 * themselves, some as an array of `const char *` and some of `char *`.
 */
extern const char *ptl_err_str[];

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3_H */
