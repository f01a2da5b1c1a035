/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs and hosts in virtual time, on top of the packet simulator: what programs measure. Processes on nodes post
 * operations; cores, host interfaces, NIC pipelines and the network take their time; completions come back as events.
 *
 * A program is two callbacks: emu_nic_model_create() takes them, emu_nic_post() is called from them, emu_sim_run() runs
 * the simulation of emu_nic_model_sim(); a live model has emu_nic_run() for that. nic_scenario.h holds programs that
 * are written already, such as ping-pong.
 *
 * The parameters are a plain struct: change setup.host.out_ps for a variant (longer round trips, another mode), or use
 * overrides of the machine ("aries:host.out_ns=1100"). Results are exact for the same setup; they do not depend on the
 * number of threads.
 */
#ifndef EMUNIC_MODEL_NIC_MODEL_H
#define EMUNIC_MODEL_NIC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/node_params.h"
#include "emunic/fabric/sim/sim.h"

#define EMU_NIC_PROCS_MAX 32 /* of one node */

/* Where a process is. */
struct emu_nic_proc {
    uint32_t nid;
    uint32_t proc; /* 0 .. EMU_NIC_PROCS_MAX - 1, each with a core of its own */
};

enum emu_nic_kind {
    EMU_NIC_PUT = 0,   /* FMA: the core stores the data into the NIC */
    EMU_NIC_GET,       /* FMA: the core asks, data come back */
    EMU_NIC_AMO,       /* one word (bytes), answered without data */
    EMU_NIC_AMO_FETCH, /* one word, answered with one */
    EMU_NIC_LAUNCH,    /* FMA launch of one word */
    EMU_NIC_BTE_PUT,   /* block transfers: the NIC moves the data, nic.bte_channels at a time */
    EMU_NIC_BTE_GET,
    EMU_NIC_MESSAGE, /* two-sided: eager or rendezvous by size, with the overheads of both ends */
    EMU_NIC_KINDS,
};

/* Whose overhead a one-sided operation has on top of the NIC's. */
enum emu_nic_api {
    EMU_NIC_API_NONE = 0,
    EMU_NIC_API_SHMEM,
    EMU_NIC_API_CAF,
};

struct emu_nic_op {
    enum emu_nic_kind kind;
    enum emu_nic_api api;
    struct emu_nic_proc to; /* on the same node: a copy in memory, of whatever kind */
    uint32_t bytes;
    bool is_told;     /* the target's process gets an arrived(): it polls; messages always are */
    bool is_begun;    /* live, told, a put: it gets a begun() before */
    bool is_launched; /* AMO: by FMA launch */
    bool changes_mdh; /* launched: another memory handle than before */
    bool is_answer;   /* the NIC sends it by itself: no core is asked */
    bool has_mode;    /* its request packets have a mode of their own; else the setup's */
    enum emu_route_mode mode;
    uint64_t user; /* back in completed() */
};

struct emu_nic_event {
    struct emu_nic_proc at; /* the process that it happens to */
    struct emu_nic_proc peer;
    enum emu_nic_kind kind;
    uint32_t bytes;
    uint64_t at_ps; /* when its core can see it: what it posts then waits until the core is free */
    uint64_t user;  /* completed(); with is_live the others too */
};

struct emu_nic_model;

/*
 * Called on the thread that owns the node of event->at. They may post operations of that process. Live, they are called
 * between two slots of the clock, on the thread of emu_nic_run(), and may post anything.
 */
struct emu_nic_program {
    void *ctx;
    /* An operation is complete at its initiator: data fetched, put answered; without acks, handed to the network; a
     * message: the buffer may be used again. */
    void (*completed)(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event);
    /* A message was received, or a told operation has put its data into memory. */
    void (*arrived)(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event);
    /*
     * Live, or NULL: the first packet of a put is at its target, whose host has matched it, if the operation asked for
     * this (is_begun). Of puts within a node, of those alone that would have several packets.
     */
    void (*begun)(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event);
};

struct emu_nic_setup {
    const struct emu_machine *machine;
    struct emu_node_params host;
    const struct emu_fault_map *faults; /* NULL: none */
    enum emu_route_mode mode;           /* of all packets */
    bool interface_per_core;            /* each process has a host interface of its own (X1); else they share one */
    uint64_t seed;
    uint32_t n_threads; /* 0: one */
    /*
     * For programs that keep the data: arrived() names the operation, also that of another node, and tells when a get
     * or a fetching atomic reaches the memory of its target, if it is told. To be run by emu_nic_run().
     */
    bool is_live;
    uint32_t shared_events; /* live: as in struct emu_sim_options */
};

/**
 * @retval 0        Made, with its simulation.
 * @retval -ENOTSUP The machine has no routing for packets.
 * @retval -EINVAL  The machine or the host cannot work so: responses of no units but acks, more threads than routers.
 * @retval -ENOMEM  Out of memory.
 */
int emu_nic_model_create(const struct emu_nic_setup *setup, const struct emu_nic_program *program,
                         struct emu_nic_model **nm_out);
void emu_nic_model_destroy(struct emu_nic_model *nm); /* NULL is fine */

/*
 * The machine's lookahead: an operation that is posted now has no effect before now and so much. Operations that the
 * NIC posts by itself have none (is_answer).
 */
struct emu_nic_lookahead {
    uint64_t local_ps;  /* on anybody, if its target is on the same node */
    uint64_t remote_ps; /* on its target, if that is on another node */
    uint64_t own_ps;    /* likewise, on its initiator */
};

struct emu_nic_lookahead emu_nic_lookahead(const struct emu_nic_model *nm);

/* To run it, unless it is live; for link statistics and totals. Belongs to the model. */
struct emu_sim *emu_nic_model_sim(struct emu_nic_model *nm);

/*
 * Live: lets time pass, to until_ps, to an end before, or to the end of the slot of the clock in which the program
 * calls emu_nic_stop(). All that happens in a slot is told behind it, in the order of time; of the same time, of the
 * node with the lower number first. So the order does not depend on the number of threads.
 */
enum emu_sim_stop emu_nic_run(struct emu_nic_model *nm, uint64_t until_ps);
/* From the program's callbacks, live. */
void emu_nic_stop(struct emu_nic_model *nm);

/**
 * Post an operation: from the program's callbacks for the event's own process, or before the first emu_sim_run().
 *
 * @param[in] from   The process.
 * @param[in] at_ps  When its core turns to it, at the earliest: event->at_ps or later.
 * @retval 0         Posted.
 * @retval -EINVAL   No such kind, node, process or mode; an AMO or launch of more than a packet.
 * @retval -ENOBUFS  65 536 operations of this node are under way.
 * @retval -ENOMEM   Out of memory.
 */
int emu_nic_post(struct emu_nic_model *nm, struct emu_nic_proc from, const struct emu_nic_op *op, uint64_t at_ps);

struct emu_nic_counters {
    uint64_t request_packets; /* sent by this node */
    uint64_t response_packets;
    uint64_t request_units;
    uint64_t response_units;
    uint64_t payload_sent;     /* bytes, in requests and responses */
    uint64_t payload_received; /* in host memory or on its way there */
    uint64_t interrupts;       /* of the host */
    uint64_t eager_messages;   /* sent */
    uint64_t rendezvous_messages;
    uint64_t lost_packets; /* by faults; their operations never complete */
};

/* Between runs. Zeros for a node that never did anything. */
void emu_nic_counters(const struct emu_nic_model *nm, uint32_t nid, struct emu_nic_counters *counters_out);

#endif
