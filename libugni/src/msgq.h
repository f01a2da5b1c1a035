/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shared message queue as one instance sees it. msgq.c: life and progress; msgq_connection.c: connections;
 * msgq_traffic.c: messages; msgq_region.h: what the instances of the node share.
 */
#ifndef LIBUGNI_MSGQ_H
#define LIBUGNI_MSGQ_H

#include "libugni/src/msgq_region.h"
#include "libugni/src/ugni.h"

#define GNII_MSGQ_BATCH 64u
#define GNII_MSGQ_KNOWN 64u

/* A message that is out of the region and on its way to the program. */
struct gnii_msgq_message {
    uint32_t src_id;
    uint32_t pe;
    uint8_t tag;
    alignas(16) uint8_t bytes[GNI_MSGQ_MSG_SZ_MAX];
};

/* All but refs and is_dead: NIC lock held. */
struct gnii_msgq {
    _Atomic uint32_t refs; /* first: object.h */
    _Atomic bool is_dead;  /* its handle has gone; only a thread in GNI_MsgqProgress() still knows it */
    void *handle;
    struct gnii_nic *nic; /* counted */
    gni_msgq_rcv_cb_func *rcv_cb;
    void *cb_data;
    bool is_blocking;
    struct gnii_msgq_geometry geometry;
    uint8_t *region;    /* mapped */
    uint64_t me;        /* identity of our port */
    uint32_t slot;      /* among the instances of the node */
    uint32_t in_flight; /* sends whose completion entries were not taken */
    uint16_t mdh;       /* our registration of the region */
    uint16_t generation;
    uint32_t queue_index;
    uint32_t queue_entries;
    struct emu_cq_consumer queue;    /* arrival events: where to look */
    bool got_foreign_event;          /* in that queue: not caused by a message */
    uint64_t *news;                  /* owned: one bit per connection that must be looked at */
    uint64_t *seen;                  /* owned: stamp of the last message taken from each slot of each mailbox */
    uint32_t next_look;              /* connection that is looked at next without cause */
    uint32_t known[GNII_MSGQ_KNOWN]; /* by node number: connection that it had last */
    struct gnii_msgq_message batch[GNII_MSGQ_BATCH];
    uint32_t batch_first;
    uint32_t batch_end;
};

/* msgq.c */
static inline const struct emu_table *gnii_msgq_table(const struct gnii_msgq *m)
{
    return m->nic->port.table;
}
/* Takes a lock of the region with patience. False: the NIC has gone, or a live instance keeps it for seconds. */
bool gnii_msgq_lock_patiently(struct gnii_msgq *m, _Atomic uint64_t *lock);

/* msgq_connection.c: connection of a node and its state, GNII_MSGQ_FREE if it has none. */
enum gnii_msgq_state gnii_msgq_find_connection(struct gnii_msgq *m, uint32_t pe, uint32_t *index_out);
static inline enum gnii_msgq_state gnii_msgq_state_of(uint64_t directory_entry)
{
    uint64_t state = directory_entry >> 32;

    return state <= GNII_MSGQ_CONNECTED ? (enum gnii_msgq_state)state : GNII_MSGQ_FREE;
}

/* msgq_traffic.c */

/* Looks at a connection: takes what is for us, pools what is for others, returns credits. False: its lock is held. */
bool gnii_msgq_look(struct gnii_msgq *m, uint32_t index);
/* Takes what others have put into our pool. */
void gnii_msgq_look_into_pool(struct gnii_msgq *m);
/* Is a message for us in the region? Without locks. */
bool gnii_msgq_has_message(struct gnii_msgq *m);
/* Is a message of that connection waiting for an instance that lives? Its lock held. */
bool gnii_msgq_connection_has_message(struct gnii_msgq *m, uint32_t index);
/* Tells the remote node that the connection has been released. Its lock held. */
void gnii_msgq_tell_release(struct gnii_msgq *m, uint32_t index, uint32_t pe);

#endif
