/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet simulator: a machine's network in virtual time. Packets wait in virtual channels, links take them one
 * after another, credits come back; all in integer picoseconds, event by event.
 *
 * A simulation belongs to the caller. It may use several threads inside (conservative windows); its results are the
 * same bits for any number of them, and for the same machine, traffic and seed.
 *
 * Memory for packets on their way grows while time passes; if it runs out then, the process ends with a message.
 */
#ifndef EMUNIC_FABRIC_SIM_SIM_H
#define EMUNIC_FABRIC_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/sim/routing.h"

struct emu_sim;

#define EMU_SIM_PARTS_MAX 255 /* threads of a process, and other processes */

/* ---- several processes ---- */

/*
 * Processes that run one simulation together. Each holds some of the routers, with their nodes, and calls all the
 * functions below that say so at the same points with the same arguments (the traffic's own apart). Results are the
 * same bits as those of one process. How the processes talk is up to the caller: cli/sim_mpi.c does it by MPI.
 */
struct emu_sim_mail {
    uint32_t rank;  /* of the other process */
    void *out;      /* begins with its length, a uint64_t */
    void *in;       /* likewise; malloc'ed, grows as needed */
    size_t in_room; /* of it */
};

enum emu_sim_reduction {
    EMU_SIM_SUM = 0,
    EMU_SIM_LEAST,
    EMU_SIM_MOST,
};

/* All are called by every process, on the thread that runs the simulation. They do not fail: they end the process. */
struct emu_sim_world {
    void *ctx;
    uint32_t rank;
    uint32_t size;
    /* To each process in the list, and from it; meanwhile *least becomes the least of all processes. */
    void (*exchange)(void *ctx, struct emu_sim_mail *const *mails, uint32_t n_mails, uint64_t *least);
    void (*reduce)(void *ctx, enum emu_sim_reduction how, uint64_t *values, size_t n); /* in place, for all */
};

/*
 * Where packets come from and go to. Both functions are called on the thread that owns the node's router, never at the
 * same time for one node; state that belongs to a node needs no lock, anything else must not be written.
 */
struct emu_traffic {
    void *ctx;
    /*
     * The next packet of a node, asked when its injection channel for the class has room. Fill src_nid, dst_nid, units,
     * traffic_class, mode, order_key, tag and created_ps: when it exists, now or later (the simulator then asks for
     * nothing else of this class until that time has come and the packet is in). False: none now; emu_sim_wake() asks
     * again.
     */
    bool (*next)(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class, uint64_t now_ps,
                 struct emu_packet *packet_out);
    /* A packet's last unit has left the network at its destination (broadcast: at each node of the line). */
    void (*delivered)(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps);
    /* A packet was lost to a fault or has no route. Called at the node that sent it; NULL: nobody asks. */
    void (*lost)(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps);
    /* emu_sim_call_at() or emu_sim_end_at() came due; NULL if the traffic never asks. */
    void (*timer)(void *ctx, struct emu_sim *sim, uint32_t nid, uint64_t cookie, uint64_t now_ps);
};

struct emu_sim_options {
    uint64_t seed;
    uint32_t n_threads; /* 0: one; of each process */
    /*
     * With several threads, for simulations in which emu_sim_end_at() is called: how long before its time at least, 1
     * or more. No window is longer, nor than a slot of the clock if that is longer.
     */
    uint64_t end_ahead_ps;
    /*
     * Events of a window that are worth several threads: while windows have fewer, the caller's thread goes through the
     * partitions alone. 0: any.
     */
    uint32_t shared_events;
    bool count_occupancy; /* integrals of buffer use per channel: costs some time per hop */
    /* NICs have their rates and buffers (nic.access_cycles, drain_cycles, reception_units, injection); else they send
     * as fast as their link and take what comes. */
    bool has_ends;
    bool count_unblocking;             /* credits that free a blocked packet: costs more, in a full network */
    const struct emu_sim_world *world; /* NULL: this process alone; must outlive the simulation */
};

/**
 * @param[in]  m        Must outlive the simulation. Its routing and router parameters decide everything but the
 * traffic.
 * @param[in]  faults   Links, lanes and routers that are down at the start; NULL: none. Copied.
 * @retval 0        Built.
 * @retval -ENOTSUP The machine's topology has no routing for packets.
 * @retval -EINVAL  More threads than routers or than 255, traffic without next() or delivered(), or a channel that its
 *                  largest packet (on a bubble channel, two of them) could never enter; likewise a reception buffer.
 *                  With several processes: more threads of all than routers, more than 255 processes and threads of
 *                  one.
 * @retval -ENOMEM  Out of memory. Other processes do not hear of it.
 */
int emu_sim_create(const struct emu_machine *m, const struct emu_fault_map *faults, const struct emu_traffic *traffic,
                   const struct emu_sim_options *options, struct emu_sim **sim_out);

/* NULL is fine. */
void emu_sim_destroy(struct emu_sim *sim);

enum emu_sim_stop {
    EMU_SIM_REACHED = 0, /* the time that was asked for */
    EMU_SIM_EMPTY,       /* no packet in the network, none to come, no timer */
    EMU_SIM_DEADLOCK,    /* packets in the network, and none of them can ever move */
};

/* Is the node one of this process? */
bool emu_sim_owns(const struct emu_sim *sim, uint32_t nid);

/* Differs between machines whose links or routers differ. With several processes only; else 0. */
uint64_t emu_sim_machine_hash(const struct emu_sim *sim);

/* Let time pass, to until_ps or to an end before. May be called again and again; by all processes. */
enum emu_sim_stop emu_sim_run(struct emu_sim *sim, uint64_t until_ps);

uint64_t emu_sim_now(const struct emu_sim *sim);

/* Between runs: nothing happens before that. UINT64_MAX: nothing is under way. */
uint64_t emu_sim_next_ps(const struct emu_sim *sim);

/* Packets that all simulations of this process have delivered so far. Any thread; counted when a run returns. */
uint64_t emu_sim_packets_of_process(void);

/* ---- from inside the traffic's functions, for a node that the calling thread owns (its own nid) ---- */

void emu_sim_wake(struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class);
void emu_sim_call_at(struct emu_sim *sim, uint32_t nid, uint64_t at_ps, uint64_t cookie);
/* Units in a channel that the node's packets enter the network by, as its NIC knows them. Between runs, too. */
uint32_t emu_sim_injection_units(const struct emu_sim *sim, uint32_t nid, uint32_t vc);
/* Likewise, and the run ends behind the slot of the clock in which that is, as if its end had been asked for. */
void emu_sim_end_at(struct emu_sim *sim, uint32_t nid, uint64_t at_ps, uint64_t cookie);

/* ---- between runs ---- */

/* With several processes only what is broken at the start can be told, and bit errors cannot.
 * Takes effect at once: changed lanes slow their link, a dead link or router drops what is on it (lost() hears of it
 * when time goes on). NULL: everything works again. */
void emu_sim_set_faults(struct emu_sim *sim, const struct emu_fault_map *faults);

/*
 * Bit error rate of all lanes of a link (EMU_SIM_ALL_LINKS: of all). Packets that the link's check catches are sent
 * again.
 */
#define EMU_SIM_ALL_LINKS UINT32_MAX
void emu_sim_set_bit_error_rate(struct emu_sim *sim, uint32_t link, double ber);

/* The next packet that starts on the link arrives broken; seen by the link's check (and sent again), or not. */
void emu_sim_corrupt_next(struct emu_sim *sim, uint32_t link, bool is_seen);

struct emu_sim_link_stats {
    uint64_t packets;
    uint64_t units;
    uint64_t busy_ps;  /* units on the wire */
    uint64_t stall_ps; /* something wanted the link and could not have it for lack of credits */
    uint64_t crc_errors;
    uint64_t retransmissions;
    uint32_t lanes_up;
    uint64_t vc_packets[EMU_VCS_MAX];
    uint64_t vc_occupancy[EMU_VCS_MAX]; /* units x ps, of the buffer at the far end; 0 without count_occupancy */
};

struct emu_sim_totals {
    uint64_t entered; /* packets */
    uint64_t delivered;
    uint64_t deposited;       /* copies that broadcasts left on their way, not in `delivered` */
    uint64_t delivered_units; /* copies included */
    uint64_t lost;
    uint64_t unroutable;
    uint64_t in_network;
    uint64_t packet_hops; /* links crossed by packet heads, NIC links not counted */
    uint64_t events;
    uint64_t nonminimal;             /* of those delivered */
    uint64_t latency_sum_ps;         /* created to delivered */
    uint64_t network_latency_sum_ps; /* entered to delivered */
    uint64_t latency_max_ps;
    /*
     * With count_unblocking, by number of the virtual channel, on links between routers: credits that came back, and of
     * those the ones that gave room to a packet in front that had none on any of its ways.
     */
    uint64_t credits_returned[EMU_VCS_MAX];
    uint64_t credits_unblocking[EMU_VCS_MAX];
    uint64_t trace_hash; /* of every delivery: who, when, which way */
};

/* With several processes: what this one knows, zeros for the rest. The sums over all are those of one process. */
void emu_sim_link_stats(const struct emu_sim *sim, uint32_t link, struct emu_sim_link_stats *stats_out);
/* Of all processes; all call it. */
void emu_sim_totals(const struct emu_sim *sim, struct emu_sim_totals *totals_out);

/*
 * The ways of all packets that enter from now on, for simulations of one thread. Costs a search in a table per hop, and
 * memory for each way that is taken, up to 40 MiB.
 *
 * @retval 0        Kept.
 * @retval -EINVAL  The simulation has several threads.
 * @retval -ENOMEM  Out of memory.
 */
int emu_sim_keep_paths(struct emu_sim *sim);
bool emu_sim_keeps_paths(const struct emu_sim *sim);

#define EMU_SIM_PATH_LINKS_MAX 256u

struct emu_sim_path {
    uint32_t src_nid;
    uint32_t dst_nid;
    enum emu_traffic_class traffic_class;
    uint64_t packets; /* that have taken it to its end */
    uint64_t units;
    uint32_t n_links;                       /* from NIC to NIC; those beyond the most are not in `links` */
    uint32_t links[EMU_SIM_PATH_LINKS_MAX]; /* in the order of travel */
};

/* Between runs. The first at place 0, which then stands behind it; in the order of their first packets. False: none. */
bool emu_sim_next_path(const struct emu_sim *sim, uint32_t *place, struct emu_sim_path *path_out);

/* Packets whose ways there was no room for. */
uint64_t emu_sim_untold_packets(const struct emu_sim *sim);

/* All statistics to zero (not the trace hash, nor paths): the end of a warm-up. */
void emu_sim_reset_stats(struct emu_sim *sim);

/* Bytes that the simulation keeps in this process, without traffic's own. Those of links and channels that no packet
 * has come near are counted, but take none of the host's memory. */
size_t emu_sim_memory(const struct emu_sim *sim);

#endif
