/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages on the control and admin sockets (UNIX, SOCK_SEQPACKET, abstract names).
 *
 * One request, one reply, in order; a reply carries the request's sequence number. Every message is exactly
 * sizeof(struct emu_msg) bytes. Descriptors travel beside a reply. `result` of a reply is 0, a negative errno, or
 * one of the positive outcomes named at the request. The first message on a connection is EMU_MSG_HELLO.
 *
 * Names: "emunic/<server>/ctl" and "emunic/<server>/admin" in the abstract namespace, so that nothing is left in
 * a file system and each network namespace (an emulated host) has its own. Both ends check SO_PEERCRED.
 */
#ifndef EMUNIC_ABI_CONTROL_H
#define EMUNIC_ABI_CONTROL_H

#include <assert.h>
#include <stdint.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/ce.h"
#include "emunic/abi/error.h"

#define EMU_MSG_MAGIC       0x454d4d31u /* "EMM1" */
#define EMU_SERVER_NAME_MAX 64

enum emu_msg_type {
    EMU_MSG_HELLO = 1,
    /* control socket */
    EMU_MSG_JOIN_RANK, /* launcher's wrapper: this process is rank n of the job; answers its node */
    EMU_MSG_WHERE,     /* which node is this process on */
    EMU_MSG_ATTACH,    /* + descriptors: table, segment, doorbell */
    EMU_MSG_CQ_CREATE,
    EMU_MSG_CQ_DESTROY,
    EMU_MSG_CHANNEL_CREATE, /* + descriptor: a pipe of numbers (uint16_t) of queues that were armed and have news */
    EMU_MSG_CHANNEL_DESTROY,
    EMU_MSG_CHANNEL_ATTACH, /* a queue */
    EMU_MSG_MEM_REGISTER, /* with EMU_MD_FILE + descriptor in the request: the file, open for what the memory is for */
    EMU_MSG_MEM_DEREGISTER,
    EMU_MSG_SPACE,        /* + descriptor: the process's space file, for memory that peers can map */
    EMU_MSG_PEER_SEGMENT, /* + descriptor: the segment of another port of the domain */
    EMU_MSG_PEER_SPACE,   /* + descriptor: the space file of another port's process */
    EMU_MSG_PEER_FILE,    /* + descriptor: a file of the domain that a member has registered */
    EMU_MSG_DATAGRAM_POST,
    EMU_MSG_DATAGRAM_TEST,
    EMU_MSG_DATAGRAM_PROBE,
    EMU_MSG_DATAGRAM_CANCEL,
    EMU_MSG_DATAGRAM_DROP_EP,
    EMU_MSG_RESOURCES,
    EMU_MSG_MSGQ_JOIN, /* + descriptor: the region that the instances of this node share */
    EMU_MSG_MSGQ_LEAVE,
    EMU_MSG_CE_CREATE,    /* a collective engine of the port's node */
    EMU_MSG_CE_CONFIGURE, /* its place in a tree; in parts, because the children do not fit one message */
    EMU_MSG_CE_DESTROY,
    EMU_MSG_ERRORS_OPEN,   /* this connection becomes a subscription. + descriptor: eventfd, readable while some wait */
    EMU_MSG_ERRORS_MASK,   /* replaces the mask; answers the old one */
    EMU_MSG_ERRORS_PTAG,   /* whose events; root and emunic's own user only */
    EMU_MSG_ERRORS_FETCH,  /* takes events */
    EMU_MSG_PTAG,          /* protection tag of a cookie */
    EMU_MSG_MACHINE,       /* what machine this is; if wanted + descriptor: where its nodes are (places.h) */
    EMU_MSG_INJECTION,     /* a node's injection limits */
    EMU_MSG_VMDH_RESERVE,  /* block of virtual handles on the port's node */
    EMU_MSG_MEM_UPDATE,    /* pages of a reserved region are there; the first one makes it live */
    EMU_MSG_MEM_SEGMENTS,  /* some segments of the region that the next EMU_MSG_MEM_REGISTER makes */
    EMU_MSG_PORTALS_OPEN,  /* + descriptor: the port's Portals part (portals.h) */
    EMU_MSG_PORTALS_PEER,  /* + descriptor: that of another port of the domain */
    EMU_MSG_PORTALS_STUCK, /* the lock of a port's interface does not come free: breaks it if nobody holds it */
    EMU_MSG_PORTALS_DISTANCE,
    EMU_MSG_VIRTUAL_CLOCK, /* + descriptors: the page of the process's clocks (virtual_clock.h), its doorbell */
    /* admin socket */
    EMU_MSG_DOMAIN_CREATE = 100, /* + descriptor in the request: memfd with uint32_t nids, one per rank slot; in the
                                    answer, if hosts do not reach each other: text, a line for each */
    EMU_MSG_DOMAIN_END,
    EMU_MSG_STATUS,    /* + descriptor: JSON text */
    EMU_MSG_LINKS,     /* + descriptor: JSON text */
    EMU_MSG_DATAPATH,  /* domain.flags: EMU_TABLE_ROUTED or 0 from now on */
    EMU_MSG_FAULT_SET, /* + descriptor in the request: memfd with struct emu_fault_rule, n_rules of them */
    EMU_MSG_FAULT_CLEAR,
    EMU_MSG_FAULTS,  /* + descriptor: JSON text */
    EMU_MSG_NETWORK, /* breaks or mends a part of the network */
    EMU_MSG_SHUTDOWN,
    EMU_MSG_JOB_CONFIGURE, /* + descriptor in the request with EMU_JOB_NTT: memfd of group_size struct emu_ntt_entry */
    EMU_MSG_JOB_SUSPEND,   /* answered when the job is quiet, or -ETIMEDOUT */
    EMU_MSG_JOB_RESUME,
    EMU_MSG_NTT_CLEAR,
    EMU_MSG_INJECTION_SET,
    EMU_MSG_LINKS_READ, /* + descriptor: lines as of --link-trace from now on; -EOPNOTSUPP: not in virtual time */
    EMU_MSG_TYPES
};

/* enum gni_post_state of spec/ugni.md 2.6, as emunic reports it */
enum emu_datagram_state {
    EMU_DATAGRAM_PENDING = 0,
    EMU_DATAGRAM_COMPLETED = 1,
    EMU_DATAGRAM_ERROR = 2,
    EMU_DATAGRAM_TIMEOUT = 3,
    EMU_DATAGRAM_TERMINATED = 4,
    EMU_DATAGRAM_REMOTE_DATA = 5,
};

/* datagram flags */
#define EMU_DATAGRAM_WILDCARD (1u << 0)
#define EMU_DATAGRAM_HAS_ID   (1u << 1)
#define EMU_DATAGRAM_ANY_ID   (1u << 2) /* cancel: whatever the end point has outstanding */

#define EMU_VMDH_ANY         UINT32_MAX
#define EMU_SEGMENTS_PER_MSG 14u
#define EMU_SEGMENTS_MAX     4096u /* of one region */

struct emu_msg_hello {
    uint32_t abi_version;
    uint32_t server_pid; /* reply */
    uint32_t server_uid; /* reply */
    uint32_t answer_ms;  /* reply: an answer may take that long, because other hosts are asked; 0: no others */
};

/* Longest name of a node, with the final zero. */
#define EMU_MSG_CNAME_MAX 40u

/* WHERE: cookie != 0 names the domain that is meant; nid: what the environment says, or EMU_NID_NONE. */
struct emu_msg_rank {
    uint32_t cookie;
    uint32_t ptag;
    uint32_t rank;
    uint32_t nid;                  /* reply */
    uint32_t local_rank;           /* reply: number among the ranks of the same node */
    char cname[EMU_MSG_CNAME_MAX]; /* reply of JOIN_RANK: physical name of the node */
};

struct emu_msg_attach {
    uint32_t ptag; /* 255: look it up by the cookie; reply: the domain's */
    uint32_t cookie;
    uint32_t instance_id;
    uint32_t modes;
    uint32_t nid_wanted; /* from the environment, or EMU_NID_NONE */
    uint32_t nid;        /* reply: the address */
    uint32_t port;       /* reply */
    uint32_t reserved;
    uint64_t probe_addr;    /* eight readable bytes in the caller, to try its memory */
    uint64_t probe_value;   /* what is there */
    uint64_t table_bytes;   /* reply */
    uint64_t segment_bytes; /* reply */
};

struct emu_msg_peer {
    uint32_t port;
    uint32_t generation;   /* reply: of the port */
    uint64_t length_bytes; /* reply */
};

struct emu_msg_cq {
    uint32_t capacity;     /* wanted: for events of peers */
    uint32_t index;        /* reply; argument of destroy */
    uint64_t offset;       /* reply: struct emu_cq_shm in the segment */
    uint64_t ring_entries; /* wanted: more places for the owner's own; 0: no more. Reply: places */
    uint32_t flags;        /* EMU_CQ_* */
};

struct emu_msg_channel {
    uint32_t channel; /* create: reply; argument of the others */
    uint32_t cq;      /* attach: index */
};

struct emu_msg_memory {
    uint64_t addr;
    uint64_t length_bytes;
    uint32_t flags;       /* EMU_MD_* */
    uint32_t cq;          /* index or EMU_CQ_NONE */
    uint16_t mdh;         /* reply; argument of deregister and update */
    uint16_t generation;  /* reply; argument of deregister and update */
    uint32_t vmdh;        /* with EMU_MD_VMDH: index wanted, or EMU_VMDH_ANY; reply: index. With EMU_MD_PARKS: park.
                             Argument of deregister: the latest generation that a handle had, or 0 */
    uint64_t file_offset; /* EMU_MD_FILE: of the page that addr lies in */
};

struct emu_msg_segments {
    uint32_t first; /* number of the first one here; 0 begins a new list */
    uint32_t n;
    struct {
        uint64_t addr;
        uint64_t length_bytes;
    } segments[EMU_SEGMENTS_PER_MSG];
};

/* Of a file that is shared by a member */
struct emu_msg_file {
    uint32_t file; /* number from the domain table */
    uint32_t reserved;
    uint64_t page_bytes; /* reply: 0, or the size of the file's huge pages */
};

struct emu_msg_datagram {
    uint32_t ep;    /* caller's number of its end point */
    uint32_t flags; /* EMU_DATAGRAM_* */
    uint64_t id;
    uint32_t remote_nid; /* post: target; test: peer */
    uint32_t remote_instance;
    uint32_t state; /* test reply */
    uint16_t length_bytes;
    uint16_t room_bytes; /* post: what the caller can take */
    uint8_t data[EMU_DATAGRAM_MAX];
};

/* Instances that may share one region (spec/ugni.md 2.17). */
#define EMU_MSGQ_INSTS_MAX 48u

/* What all instances of a node must agree on, in the words of the API; emunic only compares. */
struct emu_msgq_shape {
    uint32_t max_bytes;
    uint32_t credits;
    uint32_t pooled;
    uint32_t n_connections;
    uint32_t n_insts;
    uint32_t modes;
    uint32_t queue_entries;
    uint32_t reserved;
    uint64_t region_bytes; /* below 4 GiB */
};

struct emu_msg_msgq {
    struct emu_msgq_shape shape;
    uint32_t slot; /* reply: below n_insts, nobody else's */
};

struct emu_msg_portals {
    uint32_t pid;        /* open: wanted, or UINT32_MAX; reply: granted */
    uint32_t port;       /* peer, stuck; reply of open: the own one */
    uint32_t generation; /* reply: of the port */
    uint32_t nid;        /* distance: to that node; reply of open: own address */
    uint32_t distance;   /* reply: hops between routers plus one; 0 the same node */
    uint32_t reserved;
    uint64_t length_bytes; /* reply */
};

enum emu_resource {
    EMU_RESOURCE_MDD = 1,
    EMU_RESOURCE_CQ,
    EMU_RESOURCE_FMA,
    EMU_RESOURCE_BTE,
    EMU_RESOURCE_CE,
    EMU_RESOURCE_IOMMU, /* registered address space in MiB */
    EMU_RESOURCE_SFMA,  /* NIC handles that share FMA descriptors */
    EMU_RESOURCE_MRT,   /* translation entries of a Gemini: blocks */
    EMU_RESOURCE_GART,  /* and pages */
    EMU_RESOURCE_END,
    EMU_RESOURCE_NTT = 64, /* entries of the translation table; reserved: its granularity */
};

struct emu_msg_resources {
    uint32_t resource;   /* enum emu_resource */
    uint32_t ptag;       /* 0: of the device; else of the job on it */
    uint64_t used;       /* reply */
    uint64_t limit;      /* reply */
    uint64_t reserved;   /* reply: promised, but not used */
    uint32_t nid_wanted; /* of the device; EMU_NID_NONE: the caller's */
    uint32_t reserved1;
};

struct emu_msg_ptag {
    uint32_t cookie;
    uint32_t ptag; /* reply */
};

struct emu_msg_machine {
    uint32_t device;       /* reply: enum emu_device */
    uint32_t wants_places; /* 0 or 1 */
};

/* A block of the translation table: `granularity` addresses from blck_addr, the last rplc_size ones from rplc_addr. */
struct emu_ntt_entry {
    uint32_t blck_addr;
    uint32_t rplc_addr;
    uint32_t rplc_size;
};

/* flags of struct emu_msg_job */
#define EMU_JOB_DECLARE     (1u << 0) /* job_id, ptag, cookie */
#define EMU_JOB_LIMITS      (1u << 1) /* the limits and ntt_* below count */
#define EMU_JOB_NTT         (1u << 2) /* a table of group_size entries comes along */
#define EMU_JOB_NTT_CLEANUP (1u << 3) /* its entries go with the job */
#define EMU_JOB_LIMIT_NONE  (-1)      /* leave as it is */

struct emu_msg_job {
    uint64_t job_id;
    uint32_t ptag; /* 255: that of the cookie */
    uint32_t cookie;
    uint32_t flags;      /* EMU_JOB_* */
    uint32_t timeout_ms; /* suspend */
    int32_t mdd_limit;   /* per node, as all of these */
    int32_t cq_limit;
    int32_t fma_limit;
    int32_t bte_limit;
    int32_t ce_limit;
    int32_t iommu_limit; /* log2 of MiB */
    int32_t mrt_limit;
    int32_t gart_limit;
    int32_t ntt_base; /* entries to bind; -1 none. Reply: first entry of a table that came along */
    int32_t ntt_size;
    uint32_t group_size;  /* entries in the table; clear: how many, UINT32_MAX all unused */
    uint32_t granularity; /* addresses per entry; 0 as the device has it */
    uint32_t nid_wanted;  /* of the caller, for a job that no launcher has declared */
    uint32_t reserved;
};

struct emu_msg_injection {
    uint32_t nid_wanted;
    uint16_t flags; /* GNI_BI_FLAG_* of spec/ugni.md 2.18 */
    uint16_t bw;    /* set; reply: current percent */
    uint16_t aot_bw;
    uint16_t norbs;          /* reply: as the number of outstanding packets */
    uint16_t default_bw;     /* reply */
    uint16_t default_aot_bw; /* reply */
    uint16_t asked_seq;      /* reply: of the last set */
    uint16_t done_seq;       /* reply: of the last one that everybody obeys */
};

/* flags of a part of a configuration */
#define EMU_CE_FIRST  (1u << 0) /* forgets what was sent before */
#define EMU_CE_LAST   (1u << 1) /* the children are complete: takes effect, or fails, as a whole */
#define EMU_CE_ALWAYS (1u << 2) /* an entry for every reduction, else only for failed ones */

#define EMU_CE_CHILDREN_PER_MSG 16u

struct emu_msg_ce {
    uint32_t ce_id;            /* create: reply; else argument */
    uint32_t cq;               /* configure: for the engine's own entries, or EMU_CQ_NONE */
    uint32_t rounding;         /* enum emu_ce_rounding */
    uint16_t flags;            /* EMU_CE_FIRST ... */
    uint16_t n_children;       /* in this part */
    struct emu_ce_link parent; /* EMU_CE_LINK_NONE: the root */
    struct emu_ce_link children[EMU_CE_CHILDREN_PER_MSG];
};

#define EMU_DOMAIN_HAS_HOSTS (1u << 31) /* on all hosts of the machine; to be asked of the head */
#define EMU_DOMAIN_OWN_NODES (1u << 30) /* -EBUSY if another domain has one of its nodes */

struct emu_msg_domain {
    uint32_t ptag;
    uint32_t cookie;
    uint32_t owner_uid;
    uint32_t member_limit;   /* processes; 0 = no limit */
    uint32_t n_ranks;        /* entries in the memfd, each a nid; EMU_DOMAIN_HAS_HOSTS: then as many host numbers */
    uint32_t domain_id;      /* reply; argument of end */
    uint32_t signal;         /* DOMAIN_END: sent to what is left of the job; 0 none */
    uint32_t flags;          /* EMU_TABLE_* to start with, EMU_DOMAIN_* */
    uint64_t begin_after_ps; /* virtual time between its first fence, or that of all jobs, and its begin */
};

/* errors flags */
#define EMU_ERRORS_ALL (1u << 0) /* of all domains: root and emunic's own user only */

struct emu_msg_errors {
    uint32_t ptag; /* open: with cookie, the domain. ptag: 0 all */
    uint32_t cookie;
    uint32_t flags;     /* open: EMU_ERRORS_* */
    uint32_t mask;      /* open, mask: EMU_ERROR_* bits; reply of mask: the old ones */
    uint32_t room;      /* open: events to keep, 0 = EMU_ERRORS_DEFAULT; fetch: events wanted */
    uint32_t n_records; /* reply of fetch */
    struct emu_error_record records[EMU_ERRORS_PER_REPLY];
};

/* fault flags */
#define EMU_FAULT_APPEND (1u << 0) /* set: keep the rules that are there */

struct emu_msg_fault {
    uint32_t domain_id; /* or EMU_FAULT_ALL_DOMAINS */
    uint32_t flags;     /* EMU_FAULT_APPEND */
    uint32_t n_rules;   /* set: in the memfd; reply: rules there are now, of the last domain */
    uint32_t id;        /* clear: this rule only; 0 all */
};

/* What EMU_MSG_NETWORK is about. */
enum emu_network_thing {
    EMU_NETWORK_LINK = 1, /* and the link that runs the other way over the same wires */
    EMU_NETWORK_LANES,    /* of one direction of a link: those outside lane_mask do not work */
    EMU_NETWORK_ROUTER,
    EMU_NETWORK_NODE, /* its NIC: its processes go on, and nothing reaches them */
    EMU_NETWORK_ALL,  /* repair only */
};
#define EMU_NETWORK_REPAIR  (1u << 0) /* mends it; else breaks it */
#define EMU_NETWORK_ONE_WAY (1u << 1) /* link: this direction only */

struct emu_msg_network {
    uint32_t thing;     /* enum emu_network_thing */
    uint32_t index;     /* link, router or nid */
    uint32_t lane_mask; /* lanes: bit i set: lane i works; at least one */
    uint32_t flags;     /* EMU_NETWORK_* */
    uint64_t after_ns;  /* from now; 0 at once */
};
#define EMU_NETWORK_PENDING_MAX 256u /* changes that wait for their time */

struct emu_msg_windows {
    uint64_t every_ps; /* of virtual time */
};

struct emu_msg {
    uint32_t magic;
    uint16_t type; /* enum emu_msg_type; reply: the same */
    uint16_t abi_version;
    uint32_t sequence;
    int32_t result; /* reply */
    union {
        struct emu_msg_hello hello;
        struct emu_msg_rank rank;
        struct emu_msg_attach attach;
        struct emu_msg_cq cq;
        struct emu_msg_channel channel;
        struct emu_msg_peer peer;
        struct emu_msg_memory memory;
        struct emu_msg_file file;
        struct emu_msg_datagram datagram;
        struct emu_msg_resources resources;
        struct emu_msg_msgq msgq;
        struct emu_msg_domain domain;
        struct emu_msg_ce ce;
        struct emu_msg_errors errors;
        struct emu_msg_fault fault;
        struct emu_msg_network network;
        struct emu_msg_segments segments;
        struct emu_msg_ptag ptag;
        struct emu_msg_machine machine;
        struct emu_msg_job job;
        struct emu_msg_injection injection;
        struct emu_msg_portals portals;
        struct emu_msg_windows windows;
        uint8_t bytes[240];
    };
};
static_assert(sizeof(struct emu_msg) == 256, "ABI: control message");

/* Positive outcomes of requests */
enum emu_msg_outcome {
    EMU_OUTCOME_NO_MATCH = 1, /* datagram: no such thing */
    EMU_OUTCOME_BUSY,         /* datagram: try again later */
    EMU_OUTCOME_TOO_SMALL,    /* datagram: the peer's data do not fit */
    EMU_OUTCOME_RESIZE,       /* job: it is bound to other entries of the translation table */
    EMU_OUTCOME_IN_USE,       /* job: the tag or the cookie belongs to another job; state does not allow it */
};

#endif
