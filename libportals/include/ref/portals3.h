/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * portals3.h: Portals 3.3 over the emulated NIC, the dialect of the Sandia reference layout ("REF"). Programs include
 * <portals3.h> and <p3nal_utcp.h>, perhaps <p3rt/p3rt.h>, and link with -lp3utcp -lp3api -lp3lib -lp3rt, of which
 * -lp3api is the library and the others hold nothing.
 *
 * Cray's dialect ("CRAY": <portals/portals3.h>, -lportals) is another header and another library over the same core.
 * What the dialects share is in p3_types.h (types) and p3_calls.h (calls). spec/portals3.md is installed as
 * share/doc/emunic/spec/portals3.md.
 *
 * Names that programs look for with #ifdef are macros too, which expand to themselves. Not defined on purpose, because
 * their absence tells programs which dialect this is: PTL_IFACE_DUP, PTL_NOACK_REQ, the options that enable UNLINK
 * events, every CRAY_ name. PtlEQWait_timeout() is not declared: the original never had it, and programs bring their
 * own.
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
typedef uint32_t ptl_pt_index_t;
typedef uint32_t ptl_ac_index_t;
typedef uint64_t ptl_match_bits_t;
typedef uint64_t ptl_hdr_data_t;
typedef uint32_t ptl_interface_t;
typedef uint32_t ptl_nid_t; /* node: its number in the emulated machine, no IPv4 address */
typedef uint32_t ptl_pid_t; /* 32 bits; the emulated NIC has 65535 of them */
typedef uint32_t ptl_uid_t;
typedef uint32_t ptl_jid_t;
typedef uint32_t ptl_sr_index_t;
typedef uint64_t ptl_sr_value_t;
typedef uint32_t ptl_ni_fail_t;
typedef uint32_t ptl_seq_t;
typedef uint32_t ptl_time_t; /* ms */
typedef uint32_t ptl_rid_t;  /* rank; prototypes take unsigned */

/*
 * Return codes
 *
 * Every call but PtlFini() and the helpers that return something else gives one of these; the calls tell which and
 * why. They index ptl_err_str[]. (spec/portals3.md 2.8)
 */
typedef enum {
    PTL_OK = 0,                /* done */
    PTL_AC_INDEX_INVALID = 1,  /* beyond the access control table */
    PTL_EQ_DROPPED = 2,        /* an event was returned, and earlier ones were lost */
    PTL_EQ_EMPTY = 3,          /* no event */
    PTL_EQ_INVALID = 4,        /* not an event queue, or no longer one */
    PTL_FAIL = 5,              /* the interface cannot be started */
    PTL_HANDLE_INVALID = 6,    /* not a handle of any kind */
    PTL_IFACE_INVALID = 7,     /* no such interface */
    PTL_MD_ILLEGAL = 8,        /* contents of a descriptor are not acceptable */
    PTL_MD_INVALID = 9,        /* not a descriptor, or no longer one */
    PTL_MD_IN_USE = 10,        /* the descriptor has pending operations */
    PTL_MD_NO_UPDATE = 11,     /* the queue to test has events, or will have */
    PTL_ME_INVALID = 12,       /* not a match entry, or no longer one */
    PTL_ME_IN_USE = 13,        /* the match entry has a descriptor; or its descriptor has pending operations */
    PTL_ME_LIST_TOO_LONG = 14, /* the match list is as long as it may be */
    PTL_NI_INVALID = 15,       /* not an interface, or no longer one */
    PTL_NO_INIT = 16,          /* PtlInit() is missing */
    PTL_NO_SPACE = 17,         /* out of memory, or of objects that were granted */
    PTL_PID_INVALID = 18,      /* the process id cannot be had, or disagrees with the pid map */
    PTL_PROCESS_INVALID = 19,  /* a process id that nobody can have */
    PTL_PT_FULL = 20,          /* no unused portal index */
    PTL_PT_INDEX_INVALID = 21, /* beyond the portal table */
    PTL_SEGV = 22,             /* a pointer that is needed is NULL */
    PTL_SR_INDEX_INVALID = 23, /* no such status register */
    PTL_UNKNOWN_ERROR = 24,    /* never given */
    PTL_MAX_ERRNO = 25         /* one past the last */
} ptl_err_t;

#define PTL_OK               PTL_OK
#define PTL_AC_INDEX_INVALID PTL_AC_INDEX_INVALID
#define PTL_EQ_DROPPED       PTL_EQ_DROPPED
#define PTL_EQ_EMPTY         PTL_EQ_EMPTY
#define PTL_EQ_INVALID       PTL_EQ_INVALID
#define PTL_FAIL             PTL_FAIL
#define PTL_HANDLE_INVALID   PTL_HANDLE_INVALID
#define PTL_IFACE_INVALID    PTL_IFACE_INVALID
#define PTL_MD_ILLEGAL       PTL_MD_ILLEGAL
#define PTL_MD_INVALID       PTL_MD_INVALID
#define PTL_MD_IN_USE        PTL_MD_IN_USE
#define PTL_MD_NO_UPDATE     PTL_MD_NO_UPDATE
#define PTL_ME_INVALID       PTL_ME_INVALID
#define PTL_ME_IN_USE        PTL_ME_IN_USE
#define PTL_ME_LIST_TOO_LONG PTL_ME_LIST_TOO_LONG
#define PTL_NI_INVALID       PTL_NI_INVALID
#define PTL_NO_INIT          PTL_NO_INIT
#define PTL_NO_SPACE         PTL_NO_SPACE
#define PTL_PID_INVALID      PTL_PID_INVALID
#define PTL_PROCESS_INVALID  PTL_PROCESS_INVALID
#define PTL_PT_FULL          PTL_PT_FULL
#define PTL_PT_INDEX_INVALID PTL_PT_INDEX_INVALID
#define PTL_SEGV             PTL_SEGV
#define PTL_SR_INDEX_INVALID PTL_SR_INDEX_INVALID
#define PTL_UNKNOWN_ERROR    PTL_UNKNOWN_ERROR
#define PTL_MAX_ERRNO        PTL_MAX_ERRNO

/* Wanted acknowledgement of a put. Values: spec/portals3.md 2.4. */
typedef enum { PTL_ACK_REQ = 0, PTL_NO_ACK_REQ = 1 } ptl_ack_req_t;

#define PTL_ACK_REQ    PTL_ACK_REQ
#define PTL_NO_ACK_REQ PTL_NO_ACK_REQ

#include <portals/p3_types.h>

/*
 * Event. Fields by kind: p3_types.h. Field order: spec/portals3.md 3.5. 144 bytes where pointers have 64 bits.
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
    ptl_md_t md;                 /* as it was made, but for the threshold: as it is *after* the operation (Q5) */
    ptl_hdr_data_t hdr_data;     /* of a put or getput */
    ptl_seq_t link;              /* the same in START, END and UNLINK of one operation */
    ptl_ni_fail_t ni_fail_type;  /* PTL_NI_OK, or the transfer failed and its memory is undefined */
    volatile ptl_seq_t sequence; /* one more for each event of a queue */
} ptl_event_t;

typedef void (*ptl_eq_handler_t)(ptl_event_t *event);
#define PTL_EQ_HANDLER_NONE ((ptl_eq_handler_t)NULL)
#define PTL_TIME_FOREVER    ((ptl_time_t)-1)

#include <portals/p3_calls.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/*
 * Texts
 */

/**
 * Names of codes, of kinds of events, of failures: the C identifiers. Static, never changed.
 *
 * @param[in] rc  Code; any other gives PTL_UNKNOWN_ERROR.
 * @param[in] k   Kind of event; any other gives PTL_UNKNOWN_EVENT_KIND.
 * @param[in] ni  Interface; not looked at.
 * @param[in] e   ni_fail_type; any other gives PTL_NI_UNKNOWN_ERROR.
 * @return The name.
 * @note Threads: any. Any time. REF only: programs tell the dialects apart by these.
 * @note Source: spec/portals3.md 4.10.
 */
const char *PtlErrorStr(unsigned rc);
const char *PtlEventKindStr(ptl_event_kind_t k);
const char *PtlNIFailStr(ptl_handle_ni_t ni, ptl_ni_fail_t e);

/* Names by code; entry PTL_MAX_ERRNO spells its own name. */
extern const char *ptl_err_str[];

/*
 * Dumps and progress
 */

/**
 * Write the entries of a match list, with their descriptors, to standard error.
 *
 * @param[in] ni        Interface.
 * @param[in] pt_index  Portal index.
 * @retval PTL_OK                Written.
 * @retval PTL_NO_INIT           The library is not initialised.
 * @retval PTL_NI_INVALID        ni is no interface.
 * @retval PTL_PT_INDEX_INVALID  No such index.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.10; its output is our own.
 */
int PtlTblDump(ptl_handle_ni_t ni, int pt_index);

/**
 * Write one match entry to standard error.
 *
 * @param[in] me  Entry.
 * @retval PTL_OK          Written.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_ME_INVALID  me is no entry, or no longer one.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.10; its output is our own.
 */
int PtlMEDump(ptl_handle_me_t me);

/**
 * Write the queues of an interface, with the events they hold, to standard error.
 *
 * @param[in] ni  Interface.
 * @retval PTL_OK          Written.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.10; its output is our own.
 */
int PtlNIEqDump(ptl_handle_ni_t ni);

/**
 * Give the network layer an opportunity to work. It works without; the call returns at once when there is nothing to
 * do.
 *
 * @param[in] handle   Of an interface or of an object of it.
 * @param[in] timeout  Milliseconds at most.
 * @retval PTL_OK          Done.
 * @retval PTL_NO_INIT     The library is not initialised.
 * @retval PTL_NI_INVALID  handle is nothing of an open interface.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.10.
 */
int PtlProgress(ptl_handle_any_t handle, ptl_time_t timeout);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* PORTALS3_H */
