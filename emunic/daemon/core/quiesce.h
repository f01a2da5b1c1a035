/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking things away from who may be inside: waits, without blocking the loop, until they are not in use any more.
 */
#ifndef EMUNIC_DAEMON_CORE_QUIESCE_H
#define EMUNIC_DAEMON_CORE_QUIESCE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/control.h"

struct emu_connection;
struct emu_domain;
struct emu_inside;
struct emu_port_end;
struct emu_quiesce;
struct emu_server;

struct emu_quiesce_ops {
    /* All who were inside have left, or the waiting was given up. The thing may be released. */
    void (*left)(struct emu_server *server, struct emu_quiesce *q);
    /* Is the thing in use by others than members? NULL: never. */
    bool (*is_busy)(const struct emu_server *server, const struct emu_quiesce *q);
};

struct emu_quiesce {
    LIST_ENTRY(emu_quiesce) link;
    const struct emu_quiesce_ops *ops;
    struct emu_domain *domain;         /* borrowed: outlives it */
    struct emu_connection *connection; /* to answer, or NULL */
    struct emu_msg reply;
    struct emu_port_end *port; /* whose thing it is; NULL: nobody's, or it has gone */
    uint32_t nid;
    uint32_t number;          /* of the thing */
    void *ctx;                /* owned: freed with it */
    struct emu_inside *waits; /* owned */
    uint32_t n_waits;
    uint64_t deadline_ns; /* then the waiting is given up; 0: never */
    bool gave_up;
};

/* Can emunic have other cores run a barrier? */
bool emu_quiesce_has_barrier(void);
/* To be filled in and started. ctx is taken over, also when there is no memory: NULL. */
struct emu_quiesce *emu_quiesce_create(struct emu_domain *domain, const struct emu_quiesce_ops *ops, void *ctx);
/* It was not to be: frees one that was not started. */
void emu_quiesce_cancel(struct emu_quiesce *q);
/* The thing is invisible now. True: `left` was called already, and q is freed. */
bool emu_quiesce_start(struct emu_server *server, struct emu_quiesce *q);
/* Starts it for a request of that connection. 0, or EMU_DEFERRED: it is answered when the thing is released. */
int emu_quiesce_answer(struct emu_connection *connection, struct emu_quiesce *q, const struct emu_msg *request);
/* The next round ends the waiting of this kind in the domain, as if its deadline had come. */
void emu_quiesce_give_up(struct emu_server *server, const struct emu_domain *domain, const struct emu_quiesce_ops *ops);
void emu_quiesce_round(struct emu_server *server);
/* The connection or the port has ended; either may be NULL. */
void emu_quiesce_forget(struct emu_server *server, const struct emu_connection *connection,
                        const struct emu_port_end *port);
void emu_quiesce_drop_domain(struct emu_server *server, const struct emu_domain *domain);

#endif
