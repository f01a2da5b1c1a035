/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals part of a port: portal table, match entries, descriptors and event queues of one network interface.
 *
 *   | ident | lock line | registers | portal table | access table | queues | dead list | flights | match entries |
 *   | descriptors | segments of descriptors | match lists | their indices | inboxes | rings of event queues |
 *
 * A memfd of its own, made by emunic when the interface is opened (EMU_MSG_PORTALS_OPEN), sparse and sealed against any
 * change of size. Mapped by its owner, by emunic, and on the direct path by members of the domain. Everything is an
 * index or a number; nothing here is trusted by emunic, which bounds each walk and each index.
 *
 * Key: [I] emunic, before anybody else maps it  [P] owner, under the lock  [L] whoever holds the lock
 *      [F] the one port that the flight belongs to; under the lock as far as others look
 *
 * The lock names its holder: slot of its port plus one in the lower half, generation of that port in the upper one. A
 * holder is always inside (emu_segment.inside is odd), so emunic can tell a lock that nobody holds, and break it.
 *
 * Only the owner changes lists, free places and what links them. Others change single words of a descriptor (line 0),
 * put events into queues and append to the dead list.
 *
 * Descriptor: free -> live (owner) -> dead (who completes its last operation) -> free (owner, when it next comes by)
 *                              \______________________ owner: unlinked by the program ____^
 */
#ifndef EMUNIC_ABI_PORTALS_H
#define EMUNIC_ABI_PORTALS_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/command.h"

#define EMU_PTL_MAGIC 0x4c54505f554d45ull /* "EMU_PTL" */

#define EMU_PTL_PTS         64u
#define EMU_PTL_ACES        8u
#define EMU_PTL_MES         131072u
#define EMU_PTL_MDS         131072u
#define EMU_PTL_EQS         4096u
#define EMU_PTL_IOVECS      (1u << 20)        /* segments of all descriptors */
#define EMU_PTL_IOVEC_MAX   256u              /* of one */
#define EMU_PTL_GETPUT_MAX  64u               /* bytes */
#define EMU_PTL_PLACES      (2 * EMU_PTL_MES) /* of one match list: it grows from the middle to both ends */
#define EMU_PTL_CLASSES     16u               /* of an index */
#define EMU_PTL_CHAINS      EMU_PTL_MES       /* likewise, at most; a power of two */
#define EMU_PTL_ARENA_BYTES (512u << 20)      /* of event queues: 4 Mi events */
#define EMU_PTL_FAILS       8u                /* nodes that the interface is told to be cut off from */

#define EMU_PTL_NONE     UINT32_MAX /* no index */
#define EMU_PTL_NID_ANY  UINT32_MAX
#define EMU_PTL_PID_ANY  UINT32_MAX
#define EMU_PTL_UID_ANY  UINT32_MAX
#define EMU_PTL_JID_ANY  UINT32_MAX
#define EMU_PTL_PT_ANY   UINT32_MAX
#define EMU_PTL_PID_LAST 0xfffeu /* 16 bits, and the highest is a wildcard */

/* Options of a descriptor: values of both public headers (spec/portals3.md 2.5). */
#define EMU_PTL_MD_OP_PUT              0x001u
#define EMU_PTL_MD_OP_GET              0x002u
#define EMU_PTL_MD_MANAGE_REMOTE       0x004u
#define EMU_PTL_MD_TRUNCATE            0x008u
#define EMU_PTL_MD_ACK_DISABLE         0x010u
#define EMU_PTL_MD_IOVEC               0x020u
#define EMU_PTL_MD_MAX_SIZE            0x040u
#define EMU_PTL_MD_START_DISABLE       0x080u
#define EMU_PTL_MD_END_DISABLE         0x100u
#define EMU_PTL_MD_AUTO_UNLINK_EVENT   0x200u
#define EMU_PTL_MD_MANUAL_UNLINK_EVENT 0x400u
#define EMU_PTL_MD_FLAG_AUTO_UNLINK    0x800u
#define EMU_PTL_MD_LUSTRE              0x1000u
#define EMU_PTL_MD_PHYS                0x2000u
#define EMU_PTL_MD_KIOV                0x4000u
#define EMU_PTL_MD_LOCAL_ALIGN8        0x8000u

/* How the library of an interface behaves: what tells the two dialects apart (spec/portals3.md 0.2). */
#define EMU_PTL_ACCESS_CONTROL   (1u << 0) /* the access control table is enforced */
#define EMU_PTL_UNLINK_ON_DEMAND (1u << 1) /* automatic unlinks give an event only if the descriptor asks for it */
#define EMU_PTL_GET_SENDS        (1u << 2) /* a get has SEND events and costs threshold when it is sent */
#define EMU_PTL_THRESHOLD_BEFORE (1u << 3) /* events show the threshold before the operation */
#define EMU_PTL_LENIENT_REPLY    (1u << 4) /* a reply is taken although its descriptor is inactive */

/* Values of both public headers (2.7). */
enum emu_ptl_event_kind {
    EMU_PTL_EVENT_GET_START = 0,
    EMU_PTL_EVENT_GET_END,
    EMU_PTL_EVENT_PUT_START,
    EMU_PTL_EVENT_PUT_END,
    EMU_PTL_EVENT_GETPUT_START,
    EMU_PTL_EVENT_GETPUT_END,
    EMU_PTL_EVENT_REPLY_START,
    EMU_PTL_EVENT_REPLY_END,
    EMU_PTL_EVENT_SEND_START,
    EMU_PTL_EVENT_SEND_END,
    EMU_PTL_EVENT_ACK,
    EMU_PTL_EVENT_UNLINK,
    EMU_PTL_EVENT_LOST = 0xff, /* no event: in the place of one that was made to be lost (EMU_FAULT_OVERRUN) */
};

/*
 * One event. Two cache lines. `seq` is its place in the queue plus one, EMU_PTL_SEQ_WRITTEN while the first line is
 * being written, 0 where there never was an event. `check` is the lower half of that number, stored before the rest of
 * the second line.
 */
#define EMU_PTL_SEQ_WRITTEN 1u /* queues begin at 2^32 and above */
struct emu_ptl_event {
    _Atomic uint64_t seq;
    uint8_t kind; /* enum emu_ptl_event_kind */
    uint8_t fail; /* ni_fail_type: 0 done, else enum emu_status */
    uint16_t unlinked;
    uint32_t link;
    uint32_t nid; /* initiator, or the peer */
    uint32_t pid;
    uint32_t uid;
    uint32_t jid;
    uint32_t pt;
    uint32_t md_handle;
    int32_t threshold;
    uint32_t options;
    uint64_t bits;
    uint64_t rlength;
    uint64_t mlength;
    uint64_t offset;
    uint64_t hdr_data;
    uint64_t start;  /* of the descriptor, as the program gave it */
    uint64_t length; /* likewise */
    uint64_t max_size;
    uint64_t user_ptr;
    uint32_t eq_handle;
    uint32_t check;
};
static_assert(sizeof(struct emu_ptl_event) == 128, "ABI: an event is two cache lines");
static_assert(offsetof(struct emu_ptl_event, mlength) == 64, "ABI: its second line");
static_assert(offsetof(struct emu_ptl_event, check) == 124, "ABI: the last word");

enum emu_ptl_state { EMU_PTL_FREE = 0, EMU_PTL_LIVE, EMU_PTL_DEAD };

/* flags of a descriptor */
#define EMU_PTL_MD_UNLINKS   (1u << 0) /* [P] goes when it is used up */
#define EMU_PTL_MD_INACTIVE  (1u << 1) /* [L] used up, or set so */
#define EMU_PTL_MD_WAS_ENDED (1u << 2) /* [P] unlinked by the program while busy: goes when it is idle */

struct emu_ptl_md {
    uint32_t state;             /* [L] enum emu_ptl_state */
    uint32_t generation;        /* [P] of this place */
    int32_t threshold;          /* [L] -1: no end */
    uint32_t pending;           /* [L] operations that are going on */
    uint64_t local_offset;      /* [L] */
    uint32_t flags;             /* [L] EMU_PTL_MD_* above */
    uint32_t awaits;            /* [L] replies to come that hold the descriptor */
    uint32_t me;                /* [P] that it is attached to, or EMU_PTL_NONE */
    uint32_t options;           /* [P] EMU_PTL_MD_*, as the program gave them */
    uint32_t eq;                /* [P] index or EMU_PTL_NONE */
    uint32_t eq_generation;     /* [P] */
    uint64_t length_bytes;      /* [P] of all segments together */
    uint64_t max_size;          /* [P] as given */
    alignas(64) uint64_t start; /* [P] as given: memory, or the program's array of segments */
    uint64_t length;            /* [P] as given: bytes or segments */
    uint64_t user_ptr;          /* [P] */
    uint32_t iov_first;         /* [P] in `iovs` */
    uint32_t iov_count;         /* [P] 0: the memory at `start` */
    uint32_t handle;            /* [P] the owner's */
    uint32_t eq_handle;         /* [P] likewise */
    uint32_t mdh;               /* [P] memory domain of the owner that covers all of it; 0: none */
    uint32_t mdh_generation;    /* [P] */
    uint32_t reserved[4];
};
static_assert(sizeof(struct emu_ptl_md) == 128, "ABI: a descriptor is two cache lines");

struct emu_ptl_me {
    uint16_t state;      /* [P] free or live */
    uint16_t ptl_class;  /* [P] in the index of its list; EMU_PTL_LOOSE: none */
    uint32_t generation; /* [P] */
    uint16_t pt;         /* [P] */
    uint16_t unlinks;    /* [P] goes with its descriptor */
    uint32_t place;      /* [P] in the list */
    uint32_t md;         /* [P] index or EMU_PTL_NONE */
    uint32_t handle;     /* [P] */
    uint32_t next;       /* [P] in its chain, or EMU_PTL_NONE */
    uint32_t prev;       /* [P] likewise */
};
static_assert(sizeof(struct emu_ptl_me) == 32, "ABI: match entry");

/* What matching reads, packed in the order of the list. */
struct emu_ptl_place {
    uint64_t bits;
    uint64_t ignore;
    uint32_t nid;
    uint32_t pid;
    uint32_t me; /* EMU_PTL_NONE: nothing here */
    uint32_t md; /* or EMU_PTL_NONE */
};
static_assert(sizeof(struct emu_ptl_place) == 32, "ABI: two places in a cache line");

struct emu_ptl_list {
    uint32_t first;  /* [P] */
    uint32_t end;    /* [P] */
    uint32_t n_live; /* [P] entries */
    uint32_t n_max;  /* [P] most there ever were; 0: never used */
};

/*
 * Index of a long list. Entries that leave the same bits and the same of nid and pid open are a class, and are in a
 * chain by the hash of the rest. Those for whose criteria there was no class left are in one chain. A chain is in the
 * order of the list, which the places tell: of all that the chains of a request give, the one with the lowest place has
 * it. An index that is not sound is no index.
 */
#define EMU_PTL_LOOSE    0xffffu
#define EMU_PTL_OPEN_NID (1u << 0)
#define EMU_PTL_OPEN_PID (1u << 1)

struct emu_ptl_class {
    uint64_t ignore; /* [P] */
    uint32_t open;   /* [P] EMU_PTL_OPEN_* */
    uint32_t n;      /* [P] entries; 0: free */
};

struct emu_ptl_chain {
    uint32_t first; /* [P] entry, or EMU_PTL_NONE */
    uint32_t last;  /* [P] likewise */
};

struct emu_ptl_index {
    uint32_t n_chains;  /* [P] a power of two; 0: there is no index */
    uint32_t n_classes; /* [P] those behind it are free */
    uint32_t n_loose;   /* [P] entries without a class */
    uint32_t reserved;
    struct emu_ptl_chain loose;
    alignas(64) struct emu_ptl_class classes[EMU_PTL_CLASSES];
};
static_assert(sizeof(struct emu_ptl_index) == 320, "ABI: index");

struct emu_ptl_ace {
    uint32_t nid;
    uint32_t pid;
    uint32_t uid;
    uint32_t jid;
    uint32_t pt;
    uint32_t reserved[3];
};

struct emu_ptl_fail {
    uint32_t nid;  /* or EMU_PTL_NID_ANY */
    int32_t count; /* messages yet to be lost; -1 no end; 0: place is free */
};

struct emu_ptl_eq {
    uint32_t state;        /* [P] */
    uint32_t generation;   /* [P] */
    _Atomic uint64_t tail; /* [L] events ever put in, from an arbitrary start */
    uint64_t ring_off;     /* [P] in the arena */
    uint32_t capacity;     /* [P] a power of two */
    uint32_t promised;     /* [L] events to come of operations that have begun */
    uint32_t handle;       /* [P] */
    uint32_t reserved[7];
};
static_assert(sizeof(struct emu_ptl_eq) == 64, "ABI: one line per event queue");

/*
 * An operation on a descriptor of this interface that somebody else's process carries out. Says at each step what is to
 * be done if that process dies: all values are absolute, so that doing it twice changes nothing.
 */
enum emu_ptl_stage {
    EMU_PTL_IDLE = 0,
    EMU_PTL_PREPARED,  /* words are being changed: put them back */
    EMU_PTL_BEGUN,     /* they are changed; START may be posted: END says that it failed */
    EMU_PTL_ENDING,    /* END may be posted; the descriptor's words are still to be changed */
    EMU_PTL_UNLINKING, /* they are changed; UNLINK may be posted */
    EMU_PTL_BRIEF,     /* of a brief operation: words are being changed, then data, then START and END are posted */
    EMU_PTL_RETIRING,  /* likewise: all that is done; the descriptor goes, with an UNLINK */
};

/* flags of a flight */
#define EMU_PTL_FLIGHT_START    (1u << 0) /* posts START */
#define EMU_PTL_FLIGHT_END      (1u << 1) /* posts END */
#define EMU_PTL_FLIGHT_PROMISED (1u << 2) /* counts among the promises of the queue */
#define EMU_PTL_FLIGHT_ACKS     (1u << 3) /* the sender gets an ACK */

struct emu_ptl_flight {
    _Atomic uint32_t stage; /* [F] enum emu_ptl_stage */
    uint32_t generation;    /* [F] of the port */
    uint32_t md;            /* [F] */
    uint32_t md_generation; /* [F] */
    uint32_t eq;            /* [F] or EMU_PTL_NONE */
    uint32_t eq_generation; /* [F] */
    uint64_t eq_tail;       /* [F] before the event of this stage */
    uint64_t old_offset;    /* [F] */
    int32_t old_threshold;  /* [F] */
    uint32_t old_pending;   /* [F] */
    uint32_t old_flags;     /* [F] */
    uint32_t old_promised;  /* [F] */
    uint32_t flags;         /* [F] EMU_PTL_FLIGHT_* */
    uint32_t reserved;
    alignas(64) struct emu_ptl_event event; /* [F] what END will say */
};
static_assert(sizeof(struct emu_ptl_flight) == 192, "ABI: flight");

enum emu_ptl_register {
    EMU_PTL_SR_DROP_COUNT = 0,
    EMU_PTL_SR_DROP_LENGTH,
    EMU_PTL_SR_RECV_COUNT,
    EMU_PTL_SR_RECV_LENGTH,
    EMU_PTL_SR_SEND_COUNT,
    EMU_PTL_SR_SEND_LENGTH,
    EMU_PTL_SR_PTLS_MAX,
    EMU_PTL_SR_PTLS_CUR,
    EMU_PTL_SR_MSGS, /* of each of the following: allocated, freed, most, current */
    EMU_PTL_SR_MES = 12,
    EMU_PTL_SR_MDS = 16,
    EMU_PTL_SR_EQS = 20,
    EMU_PTL_SR_MD_ALIGN_128 = 24, /* down to _8 */
    EMU_PTL_SR_INTERRUPTS = 29,   /* [L] emunic, on the routed path: of the host, by messages that arrived */
    EMU_PTL_SR_COMMANDS,          /* [L] likewise: that the host gave its NIC, to send and to store */
    EMU_PTL_SR_END,
};

struct emu_ptl_iov {
    uint64_t addr;
    uint64_t length_bytes;
};

/*
 * Where one process leaves its short messages, in the order in which it sends them, until the owner takes them. The
 * sender writes a place's second line, then the first, its number last: one line goes from core to core, two with more
 * than 32 bytes. The owner writes none of them.
 */
#define EMU_PTL_INBOXES      16u
#define EMU_PTL_INBOX_PLACES 64u
#define EMU_PTL_INBOX_BYTES  96u /* of data */

struct emu_ptl_short {
    _Atomic uint64_t number; /* from 1: message `number` of its inbox is here */
    uint64_t bits;
    uint64_t hdr_data;
    uint32_t pt;
    uint32_t length_bytes;
    uint8_t data[EMU_PTL_INBOX_BYTES];
};
static_assert(sizeof(struct emu_ptl_short) == 128, "ABI: short message");

struct emu_ptl_inbox {
    _Atomic uint64_t sender; /* holder's name of the port whose it is, until the interface ends; 0: nobody's */
    uint32_t nid;            /* its address, written by it before its first message */
    uint32_t pid;
    uint32_t uid;
    uint32_t jid;
    alignas(64) _Atomic uint64_t taken; /* messages, by the owner */
    alignas(64) struct emu_ptl_short places[EMU_PTL_INBOX_PLACES];
};

struct emu_ptl_ni {
    uint64_t magic;                    /* [I] EMU_PTL_MAGIC */
    uint32_t abi_version;              /* [I] */
    uint32_t port;                     /* [I] slot in the domain table */
    uint64_t bytes;                    /* [I] */
    uint32_t behaviour;                /* [P] EMU_PTL_* */
    uint32_t max_pt;                   /* [P] largest portal index */
    uint32_t max_ac;                   /* [P] largest access index */
    uint32_t max_getput;               /* [P] bytes */
    uint32_t nid;                      /* [P] own address */
    uint32_t pid;                      /* [P] own process id */
    uint32_t uid;                      /* [P] */
    uint32_t jid;                      /* [P] */
    uint32_t is_up;                    /* [P] requests are taken */
    uint32_t n_fails;                  /* [P] places of `fails` in use */
    alignas(64) _Atomic uint64_t lock; /* holder, or 0 */
    _Atomic uint32_t waiting;          /* [L] 1: the owner sleeps on this word until a queue has news. futex */
    uint32_t next_link;                /* [L] */
    uint64_t drops;                    /* [L] registers that change with each message, beside the lock */
    uint64_t dropped_bytes;            /* [L] */
    uint64_t received;                 /* [L] */
    uint64_t received_bytes;           /* [L] */
    uint32_t n_open;                   /* [L] operations that are going on, and at most so far */
    uint32_t n_open_max;               /* [L] */
    alignas(64) uint32_t n_dead;       /* [L] descriptors ever put on the dead list: a line the owner looks at often */
    alignas(64) _Atomic uint32_t takes_short;             /* [P] the owner looks into its inboxes */
    _Atomic uint32_t n_inboxes;                           /* those behind it are nobody's */
    alignas(64) uint64_t registers[EMU_PTL_SR_END];       /* [P], but for the last two */
    alignas(64) struct emu_ptl_fail fails[EMU_PTL_FAILS]; /* [L] */
    alignas(64) struct emu_ptl_list lists[EMU_PTL_PTS];
    alignas(64) struct emu_ptl_ace aces[EMU_PTL_ACES]; /* [P] */
    alignas(64) struct emu_ptl_eq eqs[EMU_PTL_EQS];
    alignas(64) uint32_t dead[EMU_PTL_MDS];                   /* [L] ring of indices */
    alignas(64) struct emu_ptl_flight flights[EMU_PORTS_MAX]; /* by port of the initiator */
    alignas(64) struct emu_ptl_me mes[EMU_PTL_MES];
    alignas(64) struct emu_ptl_md mds[EMU_PTL_MDS];
    alignas(64) struct emu_ptl_iov iovs[EMU_PTL_IOVECS];                  /* [P] */
    alignas(64) struct emu_ptl_place places[EMU_PTL_PTS][EMU_PTL_PLACES]; /* [P] */
    alignas(64) struct emu_ptl_index indices[EMU_PTL_PTS];
    alignas(64) struct emu_ptl_chain chains[EMU_PTL_PTS][EMU_PTL_CHAINS]; /* [P] */
    alignas(64) struct emu_ptl_inbox inboxes[EMU_PTL_INBOXES];
    alignas(EMU_PAGE_BYTES) uint8_t arena[EMU_PTL_ARENA_BYTES];
};
static_assert(offsetof(struct emu_ptl_ni, lock) == 64, "ABI: lock line");
static_assert(offsetof(struct emu_ptl_ni, n_dead) == 128, "ABI: what each message changes is in one line");

/* Holder of a lock. emunic is nobody's port. */
#define EMU_PTL_HOLDER_EMUNIC 0xffffffffull

static inline uint64_t emu_ptl_holder(uint32_t port, uint32_t generation)
{
    return (uint64_t)generation << 32 | (port + 1);
}

/* ---- the routed path ---- */

/* A command with op EMU_OP_PTL_*: the same slot as struct emu_cmd, of which it shares the first 24 bytes. */
struct emu_ptl_cmd {
    uint8_t op;      /* enum emu_op */
    uint8_t flags;   /* EMU_CMD_STAGED */
    uint16_t events; /* 0; emunic: EMU_EV_LOSE */
    uint32_t nid;    /* target */
    uint64_t remote_offset;
    uint64_t length_bytes;
    uint64_t bits;
    uint64_t hdr_data;
    uint32_t pid;
    uint32_t pt;
    uint32_t ac;
    uint32_t ptl_flags; /* EMU_PTL_CMD_* */
    uint32_t reserved;
    uint32_t attempts; /* 0 */
    uint32_t md;       /* put: source. get, getput: where the reply goes */
    uint32_t md_generation;
    uint64_t local_offset;
    uint32_t put_md; /* getput: source */
    uint32_t put_md_generation;
    uint64_t put_offset;
    uint64_t staging_off;
    uint32_t link;     /* of the SEND events */
    int32_t threshold; /* that they show */
    uint32_t eq;       /* that SEND_END is promised to, or EMU_PTL_NONE */
    uint32_t eq_generation;
    uint64_t spare;
};
static_assert(sizeof(struct emu_ptl_cmd) == sizeof(struct emu_cmd), "ABI: one slot");
static_assert(offsetof(struct emu_ptl_cmd, nid) == offsetof(struct emu_cmd, remote_nid) &&
                  offsetof(struct emu_ptl_cmd, length_bytes) == offsetof(struct emu_cmd, length_bytes) &&
                  offsetof(struct emu_ptl_cmd, attempts) == offsetof(struct emu_cmd, attempts),
              "ABI: common part");

static inline int emu_ptl_is_command(unsigned op)
{
    return op >= EMU_OP_PTL_PUT && op <= EMU_OP_PTL_GETPUT;
}

#define EMU_PTL_CMD_ACK    (1u << 0) /* an ACK is wanted */
#define EMU_PTL_CMD_SENT   (1u << 1) /* SEND_END is posted */
#define EMU_PTL_STAGED_MAX 4096u     /* longer puts are read from where they are */

#endif
