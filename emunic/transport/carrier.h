/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What transport needs of a network: packets to an address, remote memory access, completions, a descriptor to wait on.
 *
 * Packets to one address arrive in order and once, or an error comes for one of them. Every operation that was accepted
 * ends with exactly one event, whose `op` is the caller's; an op and its memory belong to the carrier until then.
 * All on the owner's thread. Results: 0, -EAGAIN (no room now: poll and try again), or another negative errno.
 */
#ifndef EMUNIC_TRANSPORT_CARRIER_H
#define EMUNIC_TRANSPORT_CARRIER_H

#include <stdbool.h>
#include <stdint.h>

#define EMU_CARRIER_ADDRESS_MAX 256u

struct emu_carrier_op {
    void *space[8]; /* the carrier's; first member of whatever the caller makes of it */
    uint32_t kind;  /* the caller's */
};

struct emu_carrier_event {
    struct emu_carrier_op *op;
    uint64_t length_bytes; /* of a packet that arrived */
    int result;            /* 0 or negative errno */
};

/* Local memory that the carrier may use, and what peers need to reach it. */
struct emu_carrier_memory {
    void *handle;
    void *desc;
    uint64_t key;
    uint64_t base;
};

/* Remote memory access: one stretch of local memory, one of a peer's. */
struct emu_carrier_move {
    void *local;
    void *desc; /* of the local memory, from map() */
    uint64_t length_bytes;
    uint64_t remote; /* address as the peer's base and key have it */
    uint64_t key;
};

struct emu_carrier_limits {
    const char *provider;
    const char *domain;
    bool has_rma;
    int fd;               /* -1: none */
    uint64_t piece_bytes; /* of remote memory access: the most that one operation may move */
};

/* Who wanted to connect and may not. */
struct emu_carrier_strangers {
    uint64_t refused;   /* since it was opened */
    int error;          /* why the last of them was: -EACCES and the like */
    const char *reason; /* of that, for a log */
    char address[64];   /* its */
};

struct emu_carrier;

struct emu_carrier_ops {
    /* False: it could not within a second. Memory that it was given is not to be freed then. */
    bool (*close)(struct emu_carrier *c);
    void (*limits)(struct emu_carrier *c, struct emu_carrier_limits *limits_out);
    int (*address)(struct emu_carrier *c, void *address_out, uint32_t *length_out);
    /* Of a host by name and port, or NULL. May block. */
    int (*resolve)(struct emu_carrier *c, const char *node, const char *service, void *address_out,
                   uint32_t *length_out);
    int (*add)(struct emu_carrier *c, const void *address, uint32_t length_bytes, uint64_t *peer_out);
    /*
     * What is sent to it from now on goes over a new connection; what was sent before may still arrive, or end with an
     * error. -EAGAIN: it is being made; nothing has changed, call again. -ENOSYS: the provider's connections are not
     * ours to choose.
     */
    int (*renew)(struct emu_carrier *c, uint64_t peer);
    /*
     * Asks whether anybody listens at its address, instead of what was asked before; `is_wanted` false: never mind.
     * NULL: nobody can tell.
     */
    void (*ask)(struct emu_carrier *c, uint64_t peer, bool is_wanted);
    /* What came of it. -EAGAIN: nothing yet; 0: somebody does, or it is not known; -ECONNREFUSED: nobody. */
    int (*answer)(struct emu_carrier *c, uint64_t peer);
    /* What is under way to it ends as it will. */
    void (*remove)(struct emu_carrier *c, uint64_t peer);
    /*
     * For remote access only with access != 0 (EMU_TRANSPORT_READ, EMU_TRANSPORT_WRITE); wanted_key if the provider
     * lets us.
     */
    int (*map)(struct emu_carrier *c, void *addr, uint64_t length_bytes, uint32_t access, uint64_t wanted_key,
               struct emu_carrier_memory *memory_out);
    void (*unmap)(struct emu_carrier *c, struct emu_carrier_memory *memory);
    int (*receive)(struct emu_carrier *c, struct emu_carrier_op *op, void *packet, uint32_t room_bytes, void *desc);
    int (*send)(struct emu_carrier *c, uint64_t peer, struct emu_carrier_op *op, const void *packet,
                uint32_t length_bytes, void *desc);
    /* From `local` to the peer's memory. Ends when the data are there. */
    int (*write)(struct emu_carrier *c, uint64_t peer, struct emu_carrier_op *op, const struct emu_carrier_move *move);
    /* From the peer's memory to `local`. */
    int (*read)(struct emu_carrier *c, uint64_t peer, struct emu_carrier_op *op, const struct emu_carrier_move *move);
    /* Number of events, at most max; 0: none now. */
    int (*poll)(struct emu_carrier *c, struct emu_carrier_event *events_out, int max);
    bool (*may_sleep)(struct emu_carrier *c);
    /*
     * Why there can be no connection to a peer: -EACCES, it has another key; -EPROTONOSUPPORT, another version;
     * -EOPNOTSUPP, only one of us is secure; 0: not known, or there can. NULL: never known. reason_out for a log,
     * unless 0.
     */
    int (*verdict)(struct emu_carrier *c, uint64_t peer, const char **reason_out);
    /* NULL: it lets in everybody. */
    void (*strangers)(struct emu_carrier *c, struct emu_carrier_strangers *strangers_out);
};

struct emu_carrier {
    const struct emu_carrier_ops *ops;
};

struct emu_transport_config;

/* libfabric. -ENODATA: no provider. text_out tells which step failed, or "". */
int emu_ofi_open(const struct emu_transport_config *config, struct emu_carrier **carrier_out, const char **text_out);

#endif
