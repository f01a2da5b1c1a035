/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of libugni.
 *
 *   CDM ── NIC ─┬─ EP (── SMSG connection)     one port of the emulated NIC per NIC handle
 *               ├─ MSGQ                         a view of what the instances of the node share
 *               ├─ CQ                           a queue in the port's segment
 *               ├─ CE                           a collective engine of the port's node
 *               ├─ completion channel           a file descriptor that CQs are attached to
 *               └─ registrations                also in the process's job, which finds them by handle
 *
 * Locks: gnii_nic.lock guards everything below one NIC handle; the inner wait of a blocking call holds none.
 * gnii_job.lock guards the registrations of a process in one communication domain; it is taken inside a NIC's lock.
 * Objects are found through handles (object.h). No thread is started.
 *
 * Lives: the handle counts its object, an EP and a CQ count their NIC, and a blocking call counts what it looks at
 * while it holds no lock. So destroying never pulls memory away from a thread that waits: it ends with an error,
 * and the last one to leave frees. A thread may be cancelled in the inner wait and nowhere else (gnii_wait).
 */
#ifndef LIBUGNI_UGNI_H
#define LIBUGNI_UGNI_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <gni_pub.h>

#include "emunic/base/biased_lock.h"
#include "emunic/client/lane.h"
#include "emunic/client/port.h"
#include "libugni/src/cqe.h"
#include "libugni/src/early.h"
#include "libugni/src/handle_bits.h"
#include "libugni/src/object.h"

#define GNII_STATS 19 /* the long form of gni_statistic_t */

struct gnii_chan;
struct gnii_nic;
struct gnii_msgq;

/* One registration of this process. */
#define GNII_NO_PARK (-1)
struct gnii_md {
    LIST_ENTRY(gnii_md) link; /* in its NIC's list */
    LIST_ENTRY(gnii_md) job_link;
    struct gnii_nic *nic; /* borrowed */
    gni_mem_handle_t handle;
    uint64_t addr;
    uint64_t length_bytes;
    uint16_t mdh;
    uint16_t generation;
    uint32_t dst_cq; /* index in the port, or EMU_CQ_NONE */
    bool is_read_only;
    bool is_mapped;    /* peers map it; else they reach it by system calls */
    bool is_virtual;   /* handle names `vmdh` of the job's block on the node */
    bool is_updatable; /* reserved before its pages were there */
    bool is_reserved;  /* still: nobody can reach it */
    bool is_dedicated; /* shares its MDD with nobody */
    bool is_gart;      /* on a Gemini: translated by the GART, else the MRT */
    uint16_t vmdh;
    uint16_t registered_generation; /* what emunic knows it by */
    int8_t park;                    /* place in the port's segment (client/park.h), or GNII_NO_PARK */
    uint32_t flags;                 /* GNI_MEM_*, as registered */
    bool has_lost_queue;            /* dst_cq is another one by now, or none */
    uint32_t n_segments;
    uint64_t (*segments)[2]; /* owned: address, length. Then addr is 0, addresses offsets; NULL: one region */
};

/* What the NIC handles of a process with equal (ptag, cookie, nid) share: a handle made on one works on all. */
struct gnii_job {
    LIST_ENTRY(gnii_job) link;
    uint32_t cookie;
    uint32_t nid;
    LIST_HEAD(, gnii_nic) nics;
    _Atomic uint64_t changes; /* to mds, ever */
    pthread_mutex_t lock;
    LIST_HEAD(, gnii_md) live;            /* all registrations */
    struct gnii_early early;              /* entries of messages that came before their receiver was there */
    struct gnii_md *mds[EMU_MD_COUNT];    /* by number */
    uint16_t virtual_mdhs[EMU_MDH_COUNT]; /* number of each virtual index that is ours; 0 none */
};

/* Registrations that the program has given back and emunic has not (parked.c). */
struct gnii_parked {
    LIST_HEAD(, gnii_md) mds; /* owned, the newest first */
    _Atomic uint32_t n;       /* of them; for a look without lock */
    uint32_t taken;           /* a bit for each park in use, of registrations that live as well */
    struct emu_maps *maps;    /* owned: kept open; NULL: not yet, or this kernel cannot tell single mappings */
    bool cannot_look;
    uint64_t space_ino; /* of the space file; 0: not yet known */
};

/* What a local handle was last found to cover; good while the job's registrations have not changed since. */
struct gnii_local {
    uint64_t changes;
    uint64_t qword1;
    uint64_t qword2;
    uint64_t first;
    uint64_t end;
    bool is_read_only;
    bool crc_is_good;
};

struct gnii_cdm {
    void *handle;
    uint32_t inst_id;
    uint32_t cookie;
    uint32_t modes;
    uint8_t ptag;
    bool is_checkpointed;
    struct gnii_nic *nic; /* owned: the one device's, or NULL */
};

/* A post on its way, found by the tid in its completion entry. Idle ones form a list by `next`. */
struct gnii_tx {
    gni_post_descriptor_t *descr; /* the program's; NULL when idle */
    struct gnii_ep *ep;           /* NULL once the end point was destroyed */
    struct gnii_cq *cq;           /* source queue */
    uint32_t next;
    uint32_t local_event; /* as posted */
    uint8_t events_left;  /* entries not yet resolved by GNI_GetCompleted */
    uint8_t events_due;   /* entries not yet taken off the queue */
    uint16_t cq_mode;     /* as posted: the program may rewrite the descriptor's */
    bool is_silent;
    bool is_chain; /* other end points may take part */
    uint8_t status;
};

/* A message, from its send until its completion entry and those of all earlier ones were taken. */
struct gnii_send {
    struct gnii_ep *ep; /* NULL once the end point was destroyed */
    uint32_t msg_id;
    bool is_msgq;           /* else a short message */
    bool is_settled;        /* its entry was taken, before those of earlier ones */
    struct gnii_msgq *msgq; /* NULL once the shared message queue was released */
    uint64_t stamp;         /* of its slot in the peer's mailbox; msgq: connection, lower half of its number */
};

struct gnii_cq {
    _Atomic uint32_t refs; /* first: object.h */
    _Atomic bool is_dead;  /* its handle has gone; only threads that wait on it still know it */
    void *handle;
    LIST_ENTRY(gnii_cq) link;
    struct gnii_nic *nic; /* counted */
    struct emu_cq_consumer consumer;
    uint32_t index; /* in the port */
    uint32_t capacity;
    uint32_t posts_max;         /* half of that with GNI_CDM_MODE_DUAL_EVENTS */
    uint32_t mode;              /* GNI_CQ_* */
    uint32_t n_eps;             /* end points that use it as source queue */
    uint32_t in_use;            /* posts not resolved and sends not taken: never more than capacity */
    bool has_lost;              /* an overrun was told, ever */
    _Atomic bool loss_was_told; /* since then GNI_CqGetEvent() has not said NOT_DONE. NIC lock to write */
    _Atomic uint32_t interrupt_mask;
    struct gnii_chan *chan; /* borrowed: attached to, or NULL. NIC lock */
    bool is_armed;          /* since then GNI_CompChanGetEvent has not returned it. The channel's lock */
    void (*handler)(gni_cq_entry_t *, void *);
    void *context;
    struct gnii_send *sends; /* owned ring of sends_mask + 1, made at the first send */
    uint64_t sends_mask;
    uint64_t sends_head; /* number of the oldest one that is not settled; equal to the tail: there is none */
    uint64_t sends_tail;
    uint64_t sends_settled; /* in between */
    uint64_t sends_max;     /* in the ring */
};

/* One direction pair of short messages; layout in smsg.c. */
struct gnii_smsg {
    uint64_t in_addr; /* own mailbox, aligned */
    uint64_t in_stride_bytes;
    uint32_t in_credits;
    uint32_t in_direction;  /* hash of the attributes */
    uint32_t in_mark;       /* of messages to us; 0 until the peer's hello was seen */
    uint64_t in_hello;      /* that hello */
    uint32_t past_number;   /* of the peer's connection before this one */
    uint32_t before_number; /* of our own */
    uint64_t taken;         /* messages released */
    uint32_t in_slot;       /* of the next one: taken modulo in_credits, without the division */
    uint64_t returned;      /* of those, told to the peer */
    uint32_t empty_looks;   /* since the last message */
    uint32_t in_a_row;      /* messages since the last empty look */
    uint32_t early_event;   /* data of the entries of its early messages; valid with has_early */
    bool has_early;
    bool has_current;
    uint8_t current_flags; /* of its slot */
    uint16_t in_mdh;
    uint16_t in_generation;

    uint64_t out_addr; /* the peer's mailbox, aligned */
    uint64_t out_stride_bytes;
    uint32_t out_credits;
    uint32_t out_mark;  /* of our messages */
    uint64_t out_hello; /* what we say of this connection */
    uint64_t sent;
    uint32_t out_slot;     /* of the next one, likewise */
    uint64_t acknowledged; /* messages that the peer has told us it released */
    struct gnii_handle_fields out_handle;
    struct emu_lane out_lane; /* to the peer's mailbox */
    bool retransmits;         /* the NIC tries again what is lost on the way */
};

struct gnii_post_lane;
struct gnii_post_lanes;

struct gnii_ep {
    _Atomic uint32_t refs; /* first: object.h */
    void *handle;
    LIST_ENTRY(gnii_ep) link;
    struct gnii_nic *nic;          /* counted */
    struct gnii_cq *cq;            /* counted: source queue, or NULL */
    struct gnii_post_lane *latest; /* borrowed from the NIC: lane of the latest post, or NULL */
    uint32_t key;                  /* 24 bits, unique in the process */
    bool is_bound;
    bool has_event_data;
    uint32_t remote_addr;
    uint32_t remote_id;
    uint32_t local_event;
    uint32_t remote_event;
    /*
     * Not beside each other: one load of both would have to wait until the processor's stores of each are done, because
     * two stores are not forwarded to one load.
     */
    uint32_t outstanding;   /* posts and sends whose entries were not taken */
    struct gnii_smsg *smsg; /* owned, or NULL */
    uint32_t unresolved;    /* posts that still have a descriptor to give back */
    struct emu_ce_link ce;  /* role in a reduction tree; EMU_CE_LINK_NONE: not told */

    bool has_datagram;
    uint64_t datagram_id;
    bool datagram_has_id;
    void *datagram_out; /* the program's */
    uint16_t datagram_room_bytes;
    bool datagram_was_pending; /* at ... */
    uint32_t datagram_news;    /* ... this state of the port's news */
};

/* A collective engine of the NIC. */
struct gnii_ce {
    void *handle;
    LIST_ENTRY(gnii_ce) link;
    struct gnii_nic *nic; /* borrowed: its list holds us */
    uint32_t ce_id;
};

struct gnii_nic {
    _Atomic uint32_t refs;   /* first: object.h */
    _Atomic bool is_closing; /* its CDM is being or was destroyed */
    void *handle;
    uint32_t modes;       /* of its CDM */
    bool is_gemini;       /* refuses what came with Aries */
    bool launches;        /* single words go by FMA launch: DMAPP's */
    struct gnii_job *job; /* owned by all NICs in it */
    LIST_ENTRY(gnii_nic) job_link;
    struct emu_biased_lock lock;
    struct emu_port port;
    LIST_HEAD(, gnii_ep) eps;
    LIST_HEAD(, gnii_cq) cqs;
    LIST_HEAD(, gnii_chan) chans;
    LIST_HEAD(, gnii_md) mds;
    struct gnii_parked parked;
    struct gnii_msgq *msgq; /* owned, or NULL */
    LIST_HEAD(, gnii_ce) ces;
    struct gnii_post_lanes *lanes; /* owned, post.c */
    struct gnii_local local;
    _Atomic(const void *) next_slot; /* where the latest mailbox in use expects its next message; only prefetched */
    struct gnii_tx *tx;              /* owned */
    uint32_t n_tx;
    uint32_t free_tx;     /* first idle one, or UINT32_MAX */
    uint32_t n_mailboxes; /* end points with a short-message connection */
    uint32_t stats[GNII_STATS];
    uint16_t smsg_dlvr_mode;
    uint16_t smsg_max_retrans;
    bool loss_was_told;
};

/*
 * A blocking call: begin; count objects; sleep, perhaps often; give the counts back; end. In between cancellation is
 * off but for the sleep, so that locks and counts are safe from a program that uses asynchronous cancellation. A thread
 * that is cancelled in its sleep runs `leave` and is gone.
 */
struct gnii_wait {
    struct emu_cancel cancel;
    void (*leave)(void *); /* gives back what was counted */
    void *arg;
};

/* cdm.c */
struct gnii_nic *gnii_nic_find(gni_nic_handle_t handle);
/* Counts down; the last one ends the port. */
void gnii_nic_put(struct gnii_nic *nic);
/* emunic has died or has ended the domain, as far as is known. Any thread. */
static inline bool gnii_nic_is_lost(const struct gnii_nic *nic)
{
    return atomic_load_explicit(&nic->port.session.is_lost, memory_order_relaxed);
}
/* Says once that the NIC has gone; kills the process unless it asked not to be. NIC lock held. */
void gnii_nic_tell_loss(struct gnii_nic *nic);
void gnii_wait_begin(struct gnii_wait *wait, void (*leave)(void *), void *arg);
/* Runs `leave`. */
void gnii_wait_end(struct gnii_wait *wait);
/* emu_port_wait() as the one place where the thread may be cancelled. No lock held. */
int gnii_wait_sleep(const struct gnii_wait *wait, struct gnii_nic *nic, _Atomic uint32_t *const *words,
                    const uint32_t *seen, unsigned n_words, uint64_t deadline_ns);
/* A transaction has failed: ends the process if its CDM wants that. */
void gnii_nic_note_error(struct gnii_nic *nic, unsigned status);

/* mem.c: registration of this process that covers [addr, addr + length), rounded out to pages; NULL if none does. */
const struct gnii_md *gnii_md_find(struct gnii_nic *nic, const gni_mem_handle_t *handle, uint64_t addr,
                                   uint64_t length_bytes);
/* Finds the registration of a local handle, whatever it covers. */
bool gnii_local_find(struct gnii_nic *nic, const gni_mem_handle_t *handle, struct gnii_local *local_out);
bool gnii_md_is_live(struct gnii_nic *nic, uint16_t mdh, uint16_t generation);
/* At emunic: no transfer touches the memory any more when it returns. NIC lock held. */
void gnii_md_deregister(struct gnii_nic *nic, const struct gnii_md *md);
void gnii_md_drop_all(struct gnii_nic *nic);
/* Deregisters what is parked of all NICs of the process, so that it does not count. No lock held. */
void gnii_md_give_back_all(void);
/* The NIC joins the other ones of its job. -ENOMEM. */
int gnii_job_join(struct gnii_nic *nic, uint32_t cookie);
void gnii_job_leave(struct gnii_nic *nic);

/* cq.c, NIC lock held */
static inline struct gnii_cq *gnii_cq_find(gni_cq_handle_t handle)
{
    return gnii_object_find(GNII_KIND_CQ, handle);
}
void gnii_cq_free(struct gnii_cq *cq);
/* Wakes the threads that sleep on the queue, to look at its state. Any thread. */
void gnii_cq_wake(struct gnii_cq *cq);
/* Makes the ring of sends. False: there is one, or no memory. */
bool gnii_cq_make_sends(struct gnii_cq *cq);
/* Is there room in the ring of sends? Made at the first one. False: full, or out of memory. */
static inline bool gnii_cq_has_room_for_send(struct gnii_cq *cq)
{
    return cq->sends_tail - cq->sends_head < cq->sends_max || gnii_cq_make_sends(cq);
}
/*
 * Has GNI_CqGetEvent() something to look at? Without lock; may be out of date, or mean entries that nobody shall see.
 */
bool gnii_cq_has_news(struct gnii_cq *cq);
/* Takes entries that the program shall not see off the head of a queue. True: one that it shall see is there now. */
bool gnii_cq_reclaim(struct gnii_cq *cq);
void gnii_cq_reclaim_all(struct gnii_nic *nic);

/* comp_chan.c, NIC lock held */
/* The queue ends. */
void gnii_chan_forget(struct gnii_cq *cq);
/* All channels of a NIC that is being destroyed. */
void gnii_chan_free_all(struct gnii_nic *nic);

/* ep.c, NIC lock held */
static inline struct gnii_ep *gnii_ep_find(gni_ep_handle_t handle)
{
    return gnii_object_find(GNII_KIND_EP, handle);
}
void gnii_ep_free(struct gnii_ep *ep);
/* Counts down; the last one frees. Without lock. */
void gnii_ep_put(struct gnii_ep *ep);

/* tx.c, NIC lock held */
/* More transfer slots. -ENOSPC, -ENOMEM. */
int gnii_tx_grow(struct gnii_nic *nic);

/* Gives a slot back, with what its post held. */
static inline void gnii_tx_give(struct gnii_nic *nic, uint32_t tid)
{
    struct gnii_tx *tx = &nic->tx[tid];

    if (tx->cq)
        tx->cq->in_use--;
    if (tx->ep) {
        tx->ep->unresolved--;
        if (tx->events_due > 0)
            tx->ep->outstanding--;
    }
    tx->descr = NULL;
    tx->ep = NULL;
    tx->cq = NULL;
    tx->events_left = 0;
    tx->events_due = 0;
    tx->is_chain = false;
    tx->next = nic->free_tx;
    nic->free_tx = tid;
}

/* Everything of a destroyed end point becomes nobody's. */
void gnii_tx_orphan(struct gnii_nic *nic, struct gnii_ep *ep);
/*
 * Waits until every entry that the posts of an end point, or the posts and sends of a source queue, still owe is in its
 * queue: emunic then touches neither their buffers nor that queue any more. One of ep and cq is NULL.
 */
void gnii_tx_wait(struct gnii_nic *nic, const struct gnii_ep *ep, const struct gnii_cq *cq);

/* post.c, NIC lock held */
void gnii_post_lanes_free(struct gnii_nic *nic);

/* flagged_put.c, NIC lock held */
/*
 * A command that puts `length_bytes` and then a flag word, without entries, in the next free slot. Returns where to
 * write the data, or NULL when the NIC has gone. The caller sets target, data and events, and submits.
 */
uint8_t *gnii_cmd_put_flag(struct gnii_nic *nic, uint64_t length_bytes, uint64_t flag_addr, uint64_t flag_value,
                           struct emu_cmd **cmd_out);

/* msgq.c, NIC lock held */
/* Takes the queue from its NIC, whatever is outstanding. is_in_peace: released by the program. */
void gnii_msgq_free(struct gnii_msgq *msgq, bool is_in_peace);
/* Wakes the threads that sleep in it. Any thread. */
void gnii_msgq_wake(struct gnii_msgq *msgq);
/* The completion entry of one of its sends was taken, or will never be. NULL: of no queue, or of one that has gone. */
void gnii_msgq_settle(struct gnii_msgq *msgq);
/* A message got lost: its entry says so and is about to be taken. place: gnii_send.stamp. */
void gnii_msgq_note_lost(struct gnii_msgq *msgq, uint64_t place, unsigned status);

/* ce.c */
/* Posts a contribution to a reduction. Takes the NIC lock. */
gni_return_t gnii_ce_post(struct gnii_ep *ep, gni_post_descriptor_t *descr);
/* Forgets the engines of a NIC handle and results that have not come. NIC lock held. */
void gnii_ce_drop_all(struct gnii_nic *nic);

/* smsg_connect.c, NIC lock held */
void gnii_smsg_free(struct gnii_ep *ep);
/* smsg.c, NIC lock held. A send has failed: lets the receiver get past its slot. */
void gnii_smsg_fill_hole(struct gnii_ep *ep, uint64_t stamp);

#endif
