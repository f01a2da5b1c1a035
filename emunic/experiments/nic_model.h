/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs and hosts in virtual time, on top of the packet simulator: what programs measure. Processes on nodes post
 * operations; cores, host interfaces, NIC pipelines and the network take their time; completions come back as events.
 *
 * Two ways to use it:
 * - scenarios (second half): ping-pong, exchange, streams of many pairs, rates, each in one call:
 *
 *     struct emu_nic_setup setup = { .machine = m, .host = *emu_machine_host(m), .seed = 1 };
 *     struct emu_nic_pingpong_result r;
 *     const struct emu_nic_pingpong p = { .kind = EMU_NIC_PUT, .a = { 0, 0 }, .b = { 4, 0 }, .bytes = 8 };
 *     emu_nic_pingpong(&setup, &p, &r);
 *     emu_exp_fitted(x, "put8_latency", "us", 0.8, r.latency_ps * 1e-6, "host.write_ns", ...);
 *
 *   The parameters are a plain struct: change setup.host.out_ps for a variant (longer round trips, accelerated mode),
 *   or use overrides of the machine ("aries:host.out_ns=1100").
 *   For a K experiment, emu_nic_fit() finds the value of a parameter that makes a scenario give the source's figure;
 *   write it into the machine file, and let the experiment show that the file's value gives it within 2 %.
 * - a program of your own: emu_nic_model_create() with two callbacks, emu_nic_post() from the callbacks, emu_sim_run().
 *
 * Results are exact for the same setup; they do not depend on the number of threads.
 */
#ifndef EMUNIC_EXPERIMENTS_NIC_MODEL_H
#define EMUNIC_EXPERIMENTS_NIC_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/host.h"
#include "emunic/fabric/machine.h"
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
    bool changes_mdh; /* LAUNCH: another memory handle than before */
    uint64_t user;    /* back in completed() */
};

struct emu_nic_event {
    struct emu_nic_proc at; /* the process that it happens to */
    struct emu_nic_proc peer;
    enum emu_nic_kind kind;
    uint32_t bytes;
    uint64_t at_ps; /* when its core can see it: what it posts then waits until the core is free */
    uint64_t user;  /* completed() only */
};

struct emu_nic_model;

/* Called on the thread that owns the node of event->at. They may post operations of that process. */
struct emu_nic_program {
    void *ctx;
    /* An operation is complete at its initiator: data fetched, put answered; without acks, handed to the network; a
     * message: the buffer may be used again. */
    void (*completed)(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event);
    /* A message was received, or a told operation has put its data into memory. */
    void (*arrived)(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event);
};

struct emu_nic_setup {
    const struct emu_machine *machine;
    struct emu_host_params host;
    const struct emu_fault_map *faults; /* NULL: none */
    enum emu_route_mode mode;           /* of all packets */
    bool interface_per_core;            /* each process has a host interface of its own (X1); else they share one */
    uint64_t seed;
    uint32_t n_threads; /* 0: one */
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

/* To run it, for link statistics and totals. Belongs to the model. */
struct emu_sim *emu_nic_model_sim(struct emu_nic_model *nm);

/**
 * Post an operation: from the program's callbacks for the event's own process, or before the first emu_sim_run().
 *
 * @param[in] from   The process.
 * @param[in] at_ps  When its core turns to it, at the earliest: event->at_ps or later.
 * @retval 0         Posted.
 * @retval -EINVAL   No such kind, node or process; an AMO or launch of more than a packet.
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

/* --- Scenarios --------------------------------------------------------------------------------------------------
 * All return 0; what emu_nic_model_create() and emu_nic_post() return; -EIO: it did not come to its end (packets lost,
 * no route, deadlock).
 */

struct emu_nic_pingpong {
    enum emu_nic_kind kind; /* PUT, LAUNCH, AMO: told, and put back; GET, AMO_FETCH: a alone; MESSAGE */
    enum emu_nic_api api;
    struct emu_nic_proc a, b;
    uint32_t bytes;
    uint32_t rounds; /* 0: 8 */
};

struct emu_nic_pingpong_result {
    uint64_t latency_ps; /* half of a round trip (gets: post to data), mean of all rounds but the first */
    double mbytes_per_s; /* bytes / latency, 10^6 */
};

int emu_nic_pingpong(const struct emu_nic_setup *setup, const struct emu_nic_pingpong *p,
                     struct emu_nic_pingpong_result *result_out);

/* Both send at once, and go on when both their own is sent and the other's is here. */
struct emu_nic_exchange_result {
    uint64_t round_ps;   /* one exchange */
    double mbytes_per_s; /* both directions together */
};

int emu_nic_exchange(const struct emu_nic_setup *setup, const struct emu_nic_pingpong *p,
                     struct emu_nic_exchange_result *result_out);

struct emu_nic_pair {
    struct emu_nic_proc from, to;
};

struct emu_nic_stream {
    enum emu_nic_kind kind;
    enum emu_nic_api api;
    const struct emu_nic_pair *pairs;
    size_t n_pairs;
    bool is_bidirectional; /* each pair sends both ways */
    bool changes_mdh;      /* LAUNCH */
    uint32_t bytes;        /* of one operation */
    uint32_t window;       /* operations of one sender under way; 0: 64 */
    uint64_t warmup_ps;    /* 0: 20 us */
    uint64_t measure_ps;   /* 0: 100 us; what arrives in this time counts */
    uint64_t operations;   /* not 0: no times, each sender does so many and its rate is over its own run */
};

struct emu_nic_stream_result {
    double mbytes_per_s;          /* payload of all pairs and directions together, 10^6 */
    double pair_min_mbytes_per_s; /* of one pair, both directions if it has both */
    double pair_max_mbytes_per_s;
    double operations_per_s; /* all together */
    uint64_t elapsed_ps;     /* measure_ps, or to the end of the last sender */
    uint64_t interrupts;     /* of all hosts, in the whole run */
};

/* pair_mbytes_per_s: n_pairs entries, or NULL. */
int emu_nic_stream(const struct emu_nic_setup *setup, const struct emu_nic_stream *s, double *pair_mbytes_per_s,
                   struct emu_nic_stream_result *result_out);

/* Processes proc 0 .. n - 1 of one node, each with a peer of the same number on the other. Fills n pairs. */
void emu_nic_pairs_between(uint32_t from_nid, uint32_t to_nid, uint32_t n, struct emu_nic_pair *pairs_out);

/* --- Without packets -------------------------------------------------------------------------------------------- */

/* Payload through the host interface, each way, if one or both ways are busy; 10^6 bytes/s. 0: no limit. */
double emu_nic_interface_mbytes_per_s(const struct emu_nic_setup *setup, uint32_t packet_bytes, bool is_both_ways);

/* Rate of payload through the NIC, 10^6 bytes/s: nic.clock_mhz and nic.access_cycles, or host.packet_gap_ns. */
double emu_nic_packet_mbytes_per_s(const struct emu_nic_setup *setup);

/*
 * Atomic operations on the words of an array, random or one after another, as fast as the unit takes them: a cache of
 * nic.amo_cache_entries words and a translation cache of host.pte_entries pages; the least recently used goes.
 * Operations per second over n_operations, the caches full before.
 */
double emu_nic_amo_rate(const struct emu_nic_setup *setup, uint64_t n_words, uint64_t page_bytes, bool is_random,
                        uint64_t n_operations);

/**
 * Find the value of a parameter that makes a measurement give a target. The measurement must be monotone in it.
 *
 * @param[in]     measure    Runs a scenario with the parameter's present value; NAN ends the search.
 * @param[in,out] parameter  The one that is varied, e.g. &setup.host.write_ps; holds the best value afterwards.
 * @param[in]     low, high  Values to look between.
 * @retval 0       Within 0.01 % of the target, or the closest value there is.
 * @retval -ERANGE The target is not between the measurements at low and high; the parameter is the nearer one.
 * @retval -EIO    The measurement failed.
 */
int emu_nic_fit(double (*measure)(void *ctx), void *ctx, uint32_t *parameter, uint32_t low, uint32_t high,
                double target);

#endif
