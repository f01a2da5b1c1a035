/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The direct path: the initiating process runs the engine itself, for targets on this host.
 *
 * Thread rule: as emu_port_command(), one at a time per port.
 */
#ifndef EMUNIC_CLIENT_DIRECT_H
#define EMUNIC_CLIENT_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/command.h"
#include "emunic/abi/segment.h"
#include "emunic/engine/completion_queue.h"

struct emu_direct;
struct emu_flow_counts;
struct emu_gate;
struct emu_memory;
struct emu_port;
struct emu_table_md;

/* NULL when there is no direct path for this port: emunic sees other process numbers than we do, or no memory. */
struct emu_direct *emu_direct_create(struct emu_port *port);
/* Unmaps what was mapped of peers. NULL is fine. */
void emu_direct_destroy(struct emu_direct *direct);

/* A queue of our own, so that completions can be put into it. */
void emu_direct_add_queue(struct emu_direct *direct, uint32_t index, struct emu_cq_shm *shm, uint64_t ring_entries,
                          uint64_t capacity, bool wakes);

/* The producer of such a queue. The index is one that was added. */
struct emu_cq_producer *emu_direct_own_queue(struct emu_direct *direct, uint32_t index);

/*
 * Runs a command to its end: data and events are delivered when this returns true. False: nothing has happened and the
 * command has to go through emunic (it is larger than EMUNIC_DIRECT_LIMIT, the peer's memory cannot be reached from
 * here, or it needs emunic's arbitration). EMU_CMD_STAGED refers to the port's staging area, else local_addr is plain.
 */
bool emu_direct_run(struct emu_direct *direct, const struct emu_cmd *cmd);

/*
 * Moves the data of a put or get, of any length, and does nothing else: whoever has the command counts it and delivers
 * its events. False: not all of them could be moved from here.
 */
bool emu_direct_move(struct emu_direct *direct, const struct emu_cmd *cmd);

/* ---- for lanes and for Portals, over the same domain ---- */

struct emu_gate *emu_direct_gate(struct emu_direct *direct);
/* How to reach the memory of a live domain; an enum emu_status, or EMU_REACH_NOT_HERE. To be called inside. */
int emu_direct_reach(struct emu_direct *direct, const struct emu_table_md *md, struct emu_memory *mem_out);
/* The same for private memory of the process that has that port. */
int emu_direct_reach_private(struct emu_direct *direct, uint32_t port, struct emu_memory *mem_out);
/* The queue for events of a domain that was just reached, or NULL. To be called inside. */
struct emu_cq_producer *emu_direct_destination(struct emu_direct *direct, const struct emu_table_md *md);
/* The segment of a live port, for waking its owner; NULL if it is not to be had. To be called inside. */
struct emu_segment *emu_direct_segment_of(struct emu_direct *direct, uint32_t port);
/* The port's own counters towards a node of the domain. */
struct emu_flow_counts *emu_direct_flow(struct emu_direct *direct, uint32_t node_index);
/* Unmaps what is gone. Outside. */
void emu_direct_trim(struct emu_direct *direct);

#endif
