/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The region of a shared message queue: what the instances of one node share. Layout, geometry, locks.
 *
 *   | head: locks, instances | directory | pool 0 | pool 1 ... | connection 0 | connection 1 ... |
 *
 *   pool         lock, tail | head | messages that others took out of mailboxes for this instance
 *   connection   what is known of one remote node | credits | mailbox: messages from that node | taken | sent
 *
 * Who writes: [L] whoever holds the lock beside it, [I] the instance that owns the slot, [R] the remote node's NICs,
 * with puts that emunic or the engine has checked. Everything here can be overwritten with garbage by any instance of
 * the node and, in the connections, by any member of the domain. A reader takes a value once, and follows it no
 * further than an index that it has bounded with its own geometry; identities and who lives come from the domain
 * table, which only emunic writes. Garbage makes messages wrong or lost, never an access outside the region or a loop
 * without end.
 */
#ifndef LIBUGNI_MSGQ_REGION_H
#define LIBUGNI_MSGQ_REGION_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <gni_pub.h>

#include "emunic/abi/table.h"

#define GNII_MSGQ_LINE 64u

/* Sizes and places, computed from the instance's own attributes and kept outside the region. */
struct gnii_msgq_geometry {
    uint32_t max_bytes; /* of a message */
    uint32_t credits;   /* slots of a mailbox */
    uint32_t pooled;    /* messages of a pool */
    uint32_t n_connections;
    uint32_t n_insts;
    uint64_t slot_bytes;
    uint64_t directory_off;
    uint64_t pool_off;
    uint64_t pool_stride;
    uint64_t connection_off;
    uint64_t connection_stride;
    uint64_t region_bytes; /* whole huge pages, below 4 GiB */
};

/* One instance of the node. */
struct gnii_msgq_inst {
    _Atomic uint64_t owner;     /* [I] gnii_msgq_identity() of its port, stored last; 0 nobody */
    _Atomic uint64_t handle[2]; /* [I] memory handle of its view of the region */
    uint64_t reserved[5];
};
static_assert(sizeof(struct gnii_msgq_inst) == GNII_MSGQ_LINE, "one line per instance");

struct gnii_msgq_head {
    alignas(64) _Atomic uint64_t lock; /* of the directory */
    _Atomic uint32_t next;             /* [L] connection to look at first for a free one: delays reuse */
    _Atomic uint32_t is_closing;       /* an instance has left in peace: no more connections */
    _Atomic uint64_t ready;            /* bit per instance slot that was ever filled */
    struct gnii_msgq_inst insts[GNI_MSGQ_NODE_INSTS_MAX];
};

/* Directory entry: state << 32 | node. */
enum gnii_msgq_state {
    GNII_MSGQ_FREE = 0,
    GNII_MSGQ_ASSIGNED,  /* may receive */
    GNII_MSGQ_CONNECTED, /* may send as well */
};

struct gnii_msgq_pool {
    alignas(64) _Atomic uint64_t lock;
    _Atomic uint64_t tail;             /* [L] messages ever put in */
    alignas(64) _Atomic uint64_t head; /* [I] messages ever taken out */
};

/* A message in a pool. */
struct gnii_msgq_pooled {
    uint64_t stamp;
    uint32_t connection;
    uint32_t pe;
    uint32_t src_id;
    uint16_t length_bytes;
    uint8_t tag;
    uint8_t reserved;
    uint64_t reserved2;
    uint8_t bytes[];
};

/* A message in a mailbox: one put, whose flag is the stamp. */
struct gnii_msgq_slot {
    _Atomic uint64_t stamp;      /* [R] gnii_msgq_stamp() of the message, stored last */
    _Atomic uint64_t void_stamp; /* [R] the same instead: there is and will be no such message */
    uint32_t src_id;             /* [R] */
    uint32_t dst_id;             /* [R] */
    uint16_t length_bytes;       /* [R] */
    uint8_t tag;                 /* [R] */
    uint8_t reserved[5];
    uint8_t bytes[]; /* [R] */
};
static_assert(offsetof(struct gnii_msgq_slot, bytes) == 32 && offsetof(struct gnii_msgq_pooled, bytes) == 32,
              "header of a message");

/* An instance of the remote node, as its node described it. */
struct gnii_msgq_peer {
    _Atomic uint32_t id;             /* [L] */
    _Atomic uint32_t connection_off; /* [L] of the mailbox in its region */
    _Atomic uint64_t handle[2];      /* [L] */
    uint64_t reserved;
};
static_assert(sizeof(struct gnii_msgq_peer) == 32, "two per line");

/* A word that the remote node writes, with its complement: taken only when it is whole. */
struct gnii_msgq_pair {
    _Atomic uint64_t value;      /* [R] our nonce << 32 | something */
    _Atomic uint64_t complement; /* [R] stored first */
};

struct gnii_msgq_connection {
    alignas(64) _Atomic uint64_t lock;
    _Atomic uint32_t nonce;            /* [L] of this use of the mailbox: in what the remote node writes here */
    _Atomic uint32_t peer_nonce;       /* [L] likewise, in what we write there */
    _Atomic uint32_t peer_max_bytes;   /* [L] */
    _Atomic uint32_t peer_credits;     /* [L] */
    _Atomic uint32_t n_peers;          /* [L] */
    _Atomic uint32_t returned_via;     /* [L] index of the peer through which credits were returned last */
    _Atomic uint64_t returned_by;      /* [L] identity of the instance that did it */
    _Atomic uint64_t head;             /* [L] incoming: all messages before this number were taken */
    _Atomic uint64_t returned;         /* [L] incoming: of those, told to the sender */
    alignas(64) _Atomic uint64_t sent; /* [L] outgoing: messages ever sent */
    _Atomic uint64_t acknowledged;     /* [L] outgoing: of those, taken there as far as we know */
    struct gnii_msgq_pair closed;      /* [R] the remote node has released the connection */
    uint64_t reserved[4];
    struct gnii_msgq_pair credits[GNI_MSGQ_NODE_INSTS_MAX]; /* [R] one per instance there: messages taken */
    struct gnii_msgq_peer peers[GNI_MSGQ_NODE_INSTS_MAX];
    /* mailbox: credits x slot; taken: credits x uint64_t; sent: credits x struct gnii_msgq_sent */
};
static_assert(sizeof(struct gnii_msgq_connection) % GNII_MSGQ_LINE == 0, "the mailbox begins on a line");

/* Who sent the message, to whom: so that the others can tell the receiver when nothing will come any more. */
struct gnii_msgq_sent {
    _Atomic uint64_t by;         /* [L] identity of the sender, who alone may clear it: the message is lost */
    _Atomic uint64_t voided_by;  /* [L] identity of who has told the receiver; 0 nobody */
    _Atomic uint32_t peer;       /* [L] index of the receiver */
    _Atomic uint32_t voided_via; /* [L] index of the instance through whose handle it was told */
};

/* The attributes that shape the region are within their limits, and it stays below 4 GiB. */
bool gnii_msgq_geometry_init(struct gnii_msgq_geometry *g, const gni_msgq_attr_t *attrs);

/* ---- places; index and number may be anything ---- */

static inline struct gnii_msgq_head *gnii_msgq_head(uint8_t *region)
{
    return (struct gnii_msgq_head *)region;
}

static inline _Atomic uint64_t *gnii_msgq_directory(uint8_t *region, const struct gnii_msgq_geometry *g, uint32_t index)
{
    return (_Atomic uint64_t *)(region + g->directory_off) + index % g->n_connections;
}

static inline struct gnii_msgq_pool *gnii_msgq_pool(uint8_t *region, const struct gnii_msgq_geometry *g, uint32_t inst)
{
    return (struct gnii_msgq_pool *)(region + g->pool_off + inst % g->n_insts * g->pool_stride);
}

/* Not for a pool of none. */
static inline struct gnii_msgq_pooled *gnii_msgq_pool_entry(struct gnii_msgq_pool *pool,
                                                            const struct gnii_msgq_geometry *g, uint64_t number)
{
    return (struct gnii_msgq_pooled *)((uint8_t *)(pool + 1) + number % g->pooled * g->slot_bytes);
}

static inline uint64_t gnii_msgq_connection_off(const struct gnii_msgq_geometry *g, uint32_t index)
{
    return g->connection_off + index % g->n_connections * g->connection_stride;
}

static inline struct gnii_msgq_connection *gnii_msgq_connection(uint8_t *region, const struct gnii_msgq_geometry *g,
                                                                uint32_t index)
{
    return (struct gnii_msgq_connection *)(region + gnii_msgq_connection_off(g, index));
}

static inline struct gnii_msgq_slot *gnii_msgq_slot(struct gnii_msgq_connection *c, const struct gnii_msgq_geometry *g,
                                                    uint64_t number)
{
    return (struct gnii_msgq_slot *)((uint8_t *)(c + 1) + number % g->credits * g->slot_bytes);
}

/* number + 1 once the message was taken. */
static inline _Atomic uint64_t *gnii_msgq_taken(struct gnii_msgq_connection *c, const struct gnii_msgq_geometry *g,
                                                uint64_t number)
{
    return (_Atomic uint64_t *)((uint8_t *)(c + 1) + g->credits * g->slot_bytes) + number % g->credits;
}

static inline struct gnii_msgq_sent *gnii_msgq_sent(struct gnii_msgq_connection *c, const struct gnii_msgq_geometry *g,
                                                    uint64_t number)
{
    return (struct gnii_msgq_sent *)((uint8_t *)(c + 1) + g->credits * (g->slot_bytes + sizeof(uint64_t))) +
           number % g->credits;
}

/* Slots of another node's mailbox, whose messages may have another size. */
static inline uint64_t gnii_msgq_slot_bytes(uint32_t max_bytes)
{
    return (sizeof(struct gnii_msgq_slot) + max_bytes + GNII_MSGQ_LINE - 1) & ~(uint64_t)(GNII_MSGQ_LINE - 1);
}

static inline uint64_t gnii_msgq_stamp(uint32_t nonce, uint64_t number)
{
    return (uint64_t)nonce << 32 | (uint32_t)(number + 1);
}

/* ---- who lives ---- */

/* Identity of a port, never 0. */
static inline uint64_t gnii_msgq_identity(uint32_t port, uint32_t generation)
{
    return (uint64_t)generation << 32 | (port + 1);
}

/* Does that port still exist? Any value is allowed; 0 does not. When it is gone, so is every access it was making. */
bool gnii_msgq_lives(const struct emu_table *table, uint64_t identity);

/*
 * Takes a lock. False: a live instance holds it and kept it for a while (some 64 yields). A lock whose holder has
 * died is taken over; what it guards makes sense after every single store of its holder.
 */
bool gnii_msgq_lock(_Atomic uint64_t *lock, const struct emu_table *table, uint64_t me);

void gnii_msgq_unlock(_Atomic uint64_t *lock);

#endif
