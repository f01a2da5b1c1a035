/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3_types.h: types and constants that both dialects of Portals 3.3 share. Included by <portals/portals3.h> (CRAY) and
 * <portals3.h> (REF), which define the base types before it, and ptl_event_t after it. Not to be included by itself.
 *
 * Reading the comments
 *
 *   spec/portals3.md   with a section: what the text follows; installed as share/doc/emunic/spec/portals3.md. Q5 is one
 *                      of the open questions of its section 9: no source settles it, and this library does what is
 *                      recommended.
 *   CRAY, REF          the two dialects. What is said without naming one holds for both.
 *   Units              lengths, offsets and sizes are in bytes, except ptl_md_t.length with PTL_MD_IOVEC.
 */
#ifndef PORTALS_P3_TYPES_H
#define PORTALS_P3_TYPES_H

/*
 * Handles and ids that stand for none or any
 */
#define PTL_INVALID_HANDLE ((ptl_handle_any_t)0xFFFFFFFFu)
#define PTL_EQ_NONE        ((ptl_handle_eq_t)0xBFFFFFFFu) /* no events wanted; no queue to test */
#define PTL_HANDLE_NONE    ((ptl_handle_any_t)0x7FFFFFFFu)

#define PTL_NID_ANY      ((ptl_nid_t)-1)
#define PTL_PID_ANY      ((ptl_pid_t)-1) /* in the width of ptl_pid_t */
#define PTL_UID_ANY      ((ptl_uid_t)-1)
#define PTL_JID_ANY      ((ptl_jid_t)-1)
#define PTL_PT_INDEX_ANY ((ptl_pt_index_t)-1)

#define PTL_NI_OK   ((ptl_ni_fail_t)0)
#define PTL_NI_FAIL ((ptl_ni_fail_t)1) /* the transfer failed: peer gone, fault of the fabric, bad memory */

/*
 * Enumerations. Values: spec/portals3.md 2.2, 2.3, 2.7.
 */
typedef enum { PTL_RETAIN = 0, PTL_UNLINK = 1 } ptl_unlink_t;

#define PTL_RETAIN PTL_RETAIN
#define PTL_UNLINK PTL_UNLINK

typedef enum {
    PTL_INS_BEFORE = 0, /* before an entry, or at the head of a list */
    PTL_INS_AFTER = 1   /* after an entry, or at the tail of a list */
} ptl_ins_pos_t;

#define PTL_INS_BEFORE PTL_INS_BEFORE
#define PTL_INS_AFTER  PTL_INS_AFTER

/*
 * Kinds of events, and where they are posted. All need a queue in the descriptor when the operation begins on it. In
 * one operation: START, END, UNLINK; SEND_END before ACK and before REPLY_END (Q20), and before the target can see its
 * END event. A get has SEND events with CRAY only (Q17). UNLINK is the last event of a descriptor:
 *
 *   REF   it was unlinked automatically, and START and END are not both disabled
 *   CRAY  it was unlinked automatically and has PTL_MD_EVENT_AUTO_UNLINK_ENABLE; or by a call and has
 *         PTL_MD_EVENT_MANUAL_UNLINK_ENABLE
 *
 * ACK is never disabled (spec/portals3.md 5.1). Fields, by kind (CRAY and REF alike; REF programs bear that the fields
 * which their library left zero are filled, spec/portals3.md 5.3):
 *
 *           initiator  pt_index, match_bits  rlength    mlength     offset               hdr_data       ni_fail_type
 *   SEND    self       echo                  sent       sent        local offset         echo           END: result
 *   ACK     the peer   echo                  sent       kept there  remote_offset, echo  echo           PTL_NI_OK
 *   REPLY   the peer   echo                  asked for  stored      local offset (Q4)    getput: echo   END: result
 *   PUT     requester  the request's         requested  kept        used                 the request's  END: result
 *   GET     requester  the request's         requested  sent        used                 0              END: result
 *   GETPUT  requester  the request's         requested  swapped     used                 the request's  END: result
 *   UNLINK  as in the event that completed the operation which caused it; ni_fail_type PTL_NI_OK
 *
 * START events have all fields of their END; their ni_fail_type is PTL_NI_OK.
 */
typedef enum {
    PTL_EVENT_GET_START = 0,    /* target: matched */
    PTL_EVENT_GET_END = 1,      /* target: data sent; the memory may change */
    PTL_EVENT_PUT_START = 2,    /* target: matched */
    PTL_EVENT_PUT_END = 3,      /* target: all data is in memory */
    PTL_EVENT_GETPUT_START = 4, /* target: matched */
    PTL_EVENT_GETPUT_END = 5,   /* target: swapped, reply sent */
    PTL_EVENT_REPLY_START = 6,  /* initiator of get, getput: the reply is here, not yet stored */
    PTL_EVENT_REPLY_END = 7,    /* initiator of get, getput: all data is in memory */
    PTL_EVENT_SEND_START = 8,   /* initiator of put, getput (CRAY: and get): taken in charge */
    PTL_EVENT_SEND_END = 9,     /* initiator: the memory may change (CRAY, get: the request has left) */
    PTL_EVENT_ACK = 10,         /* initiator of put: the target's descriptor took it */
    PTL_EVENT_UNLINK = 11       /* owner of the descriptor: it is unlinked */
} ptl_event_kind_t;

#define PTL_EVENT_GET_START    PTL_EVENT_GET_START
#define PTL_EVENT_GET_END      PTL_EVENT_GET_END
#define PTL_EVENT_PUT_START    PTL_EVENT_PUT_START
#define PTL_EVENT_PUT_END      PTL_EVENT_PUT_END
#define PTL_EVENT_GETPUT_START PTL_EVENT_GETPUT_START
#define PTL_EVENT_GETPUT_END   PTL_EVENT_GETPUT_END
#define PTL_EVENT_REPLY_START  PTL_EVENT_REPLY_START
#define PTL_EVENT_REPLY_END    PTL_EVENT_REPLY_END
#define PTL_EVENT_SEND_START   PTL_EVENT_SEND_START
#define PTL_EVENT_SEND_END     PTL_EVENT_SEND_END
#define PTL_EVENT_ACK          PTL_EVENT_ACK
#define PTL_EVENT_UNLINK       PTL_EVENT_UNLINK

/*
 * Descriptor options and threshold. (spec/portals3.md 2.5; with CRAY the values are unconfirmed)
 */
#define PTL_MD_THRESH_INF (-1)

#define PTL_MD_OP_PUT              0x001 /* target of puts; with OP_GET of getputs */
#define PTL_MD_OP_GET              0x002 /* target of gets */
#define PTL_MD_MANAGE_REMOTE       0x004 /* the offset comes with the request; else it is where the last one ended */
#define PTL_MD_TRUNCATE            0x008 /* takes as much of a request as there is room for */
#define PTL_MD_ACK_DISABLE         0x010 /* never acknowledges */
#define PTL_MD_IOVEC               0x020 /* start is an array of `length` ptl_md_iovec_t */
#define PTL_MD_MAX_SIZE            0x040 /* max_size is meant; not with MANAGE_REMOTE (Q19) */
#define PTL_MD_EVENT_START_DISABLE 0x080 /* no START events */
#define PTL_MD_EVENT_END_DISABLE   0x100 /* no END events */

/*
 * Status registers of an interface, for PtlNIStatus(). PTL_SR_DROP_COUNT is Portals'; the others are REF's, and here
 * CRAY's too. Monotonic but for the CUR ones. (spec/portals3.md 2.9)
 */
enum {
    PTL_SR_DROP_COUNT = 0,  /* requests dropped here: not admitted, no match ...; late replies */
    PTL_SR_DROP_LENGTH = 1, /* bytes of them */
    PTL_SR_RECV_COUNT = 2,  /* messages received, and bytes */
    PTL_SR_RECV_LENGTH = 3,
    PTL_SR_SEND_COUNT = 4, /* messages sent, and bytes */
    PTL_SR_SEND_LENGTH = 5,
    PTL_SR_PTLS_MAX = 6, /* portal indices in use: at most so far, and now */
    PTL_SR_PTLS_CUR = 7,
    PTL_SR_MSGS_ALLOC = 8, /* operations begun, ended, at most at a time, and now */
    PTL_SR_MSGS_FREED = 9,
    PTL_SR_MSGS_MAX = 10,
    PTL_SR_MSGS_CUR = 11,
    PTL_SR_MES_ALLOC = 12, /* match entries made, gone, at most at a time, and now */
    PTL_SR_MES_FREED = 13,
    PTL_SR_MES_MAX = 14,
    PTL_SR_MES_CUR = 15,
    PTL_SR_MDS_ALLOC = 16, /* descriptors likewise */
    PTL_SR_MDS_FREED = 17,
    PTL_SR_MDS_MAX = 18,
    PTL_SR_MDS_CUR = 19,
    PTL_SR_EQS_ALLOC = 20, /* event queues likewise */
    PTL_SR_EQS_FREED = 21,
    PTL_SR_EQS_MAX = 22,
    PTL_SR_EQS_CUR = 23,
    PTL_SR_MD_ALIGN_128 = 24, /* descriptors by the best alignment that start has: 128 or more, 64 ... */
    PTL_SR_MD_ALIGN_64 = 25,
    PTL_SR_MD_ALIGN_32 = 26,
    PTL_SR_MD_ALIGN_16 = 27,
    PTL_SR_MD_ALIGN_8 = 28,
    /*
     * Of the NIC, our own: interrupts of the host by messages that arrived here (SeaStar's generic mode: 1, or 2 where
     * the data do not fit the header packet; none where the NIC matches), and commands that the host gave its NIC (one
     * for a message, or for each page: EMUNIC_COMMAND_PAGE). They count what emunic carries out within a host
     * (--datapath routed).
     */
    PTL_SR_NAL_REGS_START = 29,
    PTL_SR_NAL_INTERRUPTS = 29,
    PTL_SR_NAL_COMMANDS = 30
};

#define PTL_SR_DROP_COUNT PTL_SR_DROP_COUNT

/* Entries in the match list of a portal index now, and at most so far. */
#define PTL_SR_MLIST_LEN(i) ((ptl_sr_index_t)(0x80000000u | ((uint32_t)(i) << 16) | PTL_SR_MES_CUR))
#define PTL_SR_MLIST_MAX(i) ((ptl_sr_index_t)(0x80000000u | ((uint32_t)(i) << 16) | PTL_SR_MES_MAX))

/*
 * Structures
 */

/* Address of a process. Positional initialisers {nid, pid} are in use. Padding is zero where the library stores one. */
typedef struct {
    ptl_nid_t nid;
    ptl_pid_t pid;
} ptl_process_id_t;

/* What an interface may use. Wanted values are cut to what there is; below 1 (indices: below 0) they count as that. */
typedef struct {
    int max_mes;       /* match entries: 131072 */
    int max_mds;       /* descriptors: 131072 */
    int max_eqs;       /* event queues: 4096 */
    int max_ac_index;  /* largest index of the access control table: 7 */
    int max_pt_index;  /* largest portal index: 63 */
    int max_md_iovecs; /* parts of one descriptor: 256 */
    int max_me_list;   /* entries of one match list: 131072 */
    int max_getput_md; /* bytes that a getput swaps: 64 */
} ptl_ni_limits_t;

/*
 * Memory descriptor.
 *
 * threshold: operations until it becomes inactive; PTL_MD_THRESH_INF never; 0 and other negative values: inactive from
 * the start. Counted: at the target each put, get and getput that it takes; at the initiator each put and getput sent,
 * each ACK and each REPLY that comes, and with CRAY each get sent. Disabled events count as well; UNLINK does not.
 *
 * max_size, with PTL_MD_MAX_SIZE: it becomes inactive when less than this remains, and it does not take requests that
 * are longer, unless it has PTL_MD_TRUNCATE (Q6).
 */
typedef struct {
    void *start;       /* memory, or array of ptl_md_iovec_t (copied); may be NULL if there are no bytes */
    ptl_size_t length; /* bytes, or parts with PTL_MD_IOVEC */
    int threshold;
    ptl_size_t max_size;
    unsigned int options;      /* PTL_MD_... */
    void *user_ptr;            /* the program's; comes back in each event as md.user_ptr */
    ptl_handle_eq_t eq_handle; /* queue for its events, or PTL_EQ_NONE */
} ptl_md_t;

/* One part of a scattered descriptor. A program whose size_t is 64 bits wide may ask for the system's. */
#ifdef PTL_SIZET_MATCHES_SYSTEM
#include <sys/uio.h>
typedef struct iovec ptl_md_iovec_t;
#else
typedef struct {
    void *iov_base;
    ptl_size_t iov_len;
} ptl_md_iovec_t;
#endif

#endif /* PORTALS_P3_TYPES_H */
