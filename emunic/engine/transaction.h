/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC itself: translate, check, move, complete.
 *
 * The engine has no threads, sockets, globals or policy. It works on a view: what the caller has mapped and knows
 * of one initiating port. emunic builds views of the ports it serves; a process may build one of its own port.
 */
#ifndef EMUNIC_ENGINE_TRANSACTION_H
#define EMUNIC_ENGINE_TRANSACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/command.h"
#include "emunic/abi/event.h"
#include "emunic/abi/flow.h"
#include "emunic/abi/table.h"
#include "emunic/engine/completion_queue.h"
#include "emunic/engine/memory.h"

struct emu_segment;
struct emu_transaction;

/* What the engine asks of whoever runs it. Called on the caller's thread, within emu_transaction_*(). */
#define EMU_REACH_NOT_HERE 0xff /* this caller cannot do it; nothing has happened */

struct emu_view_ops {
    /* The memory of a live domain's owner, for a command of that kind. An enum emu_status, or EMU_REACH_NOT_HERE. */
    int (*reach)(void *ctx, const struct emu_table_md *md, uint8_t op, struct emu_memory *mem_out);
    /* The queue for remote events of a memory domain that has one; NULL if it is gone. Used at once. */
    struct emu_cq_producer *(*destination)(void *ctx, const struct emu_table_md *md);
    /* A queue of the initiator; NULL if there is none. */
    struct emu_cq_producer *(*source)(void *ctx, uint32_t cq);
    /*
     * A transaction has failed with that status, or (EMU_STATUS_REMOTE_CQ_FULL) its event found no room; its own events
     * come after. NULL: nobody wants to know.
     */
    void (*failed)(void *ctx, const struct emu_transaction *t, unsigned status);
    /* A segmented memory domain of the initiator's own process. An enum emu_status. May be NULL. */
    int (*local)(void *ctx, uint16_t mdh, uint16_t generation, struct emu_memory *mem_out);
    /* The segment of a live port, for memory domains that have a park; NULL if it is not to be had. May be NULL. */
    const struct emu_segment *(*segment)(void *ctx, uint32_t port);
};

struct emu_view {
    const struct emu_table *table; /* borrowed */
    const struct emu_view_ops *ops;
    void *ctx;                     /* for ops */
    struct emu_memory local;       /* the initiator's memory */
    struct emu_memory staging;     /* the initiator's staging area, addresses from 0 */
    struct emu_flow_counts *flows; /* borrowed: the initiator's counters; NULL: somebody else counts */
    uint32_t n_flows;
    unsigned *chain_status; /* borrowed: first failure of the initiator's open chain */
    void *bounce;           /* borrowed: for copies between two memories without a window */
    size_t bounce_bytes;
    bool declines; /* what it may not reach it leaves to somebody else (EMU_REACH_NOT_HERE) */
};

/* A command on its way. Owned by the caller; holds no resources. */
struct emu_transaction {
    struct emu_cmd cmd;
    struct emu_memory remote;
    struct emu_memory segments; /* the initiator's side, if it is segmented */
    uint64_t target_addr;       /* in the owner's address space */
    uint64_t flag_addr;         /* likewise */
    uint64_t done_bytes;
    uint32_t node_index;
    uint32_t owner_port;
    uint16_t mdh;
    unsigned status; /* enum emu_status */
    bool is_waiting; /* the last step did nothing, because a memory was not there yet (-EINPROGRESS) */
    bool has_old;    /* `old` has been fetched, and not yet delivered */
    uint64_t old;
    bool is_elsewhere; /* another host has done what there was to do there, remote events too */
};

/* What a memory handle says of a memory domain. */
struct emu_md_name {
    uint64_t remote_base;
    uint16_t mdh;         /* number, or index of a virtual handle */
    uint16_t generation;  /* 0: a rebuilt handle, which tells its MDH and its page only */
    uint8_t handle_flags; /* EMU_HANDLE_* */
};

/* The number of the memory domain that a handle means on a node, live or not; EMU_MD_COUNT: none. Any thread. */
uint32_t emu_transaction_find_md(const struct emu_table *table, uint32_t node_index, const struct emu_md_name *name);

/*
 * Takes a command over and checks it against the domain table. The command must be the caller's own copy. True: there
 * is data to move, call emu_transaction_step(). False: nothing to move (any more), call emu_transaction_finish();
 * `status` tells whether it failed. A status of EMU_REACH_NOT_HERE is the one after which nothing may be called: the
 * command has to take another way.
 */
bool emu_transaction_begin(const struct emu_view *view, const struct emu_cmd *cmd, struct emu_transaction *t);

#define EMU_AMO_STEP_BYTES 2048u

/*
 * Moves at most max_bytes more (atomics: as many words as lie in EMU_AMO_STEP_BYTES, at most). True: call again, with
 * the same max_bytes; where t->is_waiting, when the memory can be there.
 */
bool emu_transaction_step(const struct emu_view *view, struct emu_transaction *t, uint64_t max_bytes);

/* Counts the transaction and delivers its events. Ends the transaction's life. */
void emu_transaction_finish(const struct emu_view *view, struct emu_transaction *t);

/* Its two halves, for those who have time between them: the remote event; then counters and the initiator's events. */
void emu_transaction_finish_target(const struct emu_view *view, struct emu_transaction *t);
void emu_transaction_finish_initiator(const struct emu_view *view, struct emu_transaction *t);

/*
 * A transaction whose node is on another host, which checks and does it: what of it is the initiator's. False: `status`
 * tells why it is over already. Call emu_transaction_finish() in the end.
 */
bool emu_transaction_begin_elsewhere(const struct emu_view *view, const struct emu_cmd *cmd, uint32_t node_index,
                                     struct emu_transaction *t);

/* The side of the initiator: its memory, or the list of segments that the command names. */
const struct emu_memory *emu_transaction_local(const struct emu_view *view, const struct emu_transaction *t);

/* Ends a command with an error before anything of it was done. */
void emu_transaction_fail(const struct emu_view *view, const struct emu_cmd *cmd, unsigned status);

/* All three in one go, for small commands. False: EMU_REACH_NOT_HERE. */
bool emu_transaction_run(const struct emu_view *view, const struct emu_cmd *cmd);

#endif
