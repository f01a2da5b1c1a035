/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Portals command of a port, and what is done for it at each of its places: at home, at its target, on the way of its
 * data. Whoever works commands off (portals_command.c, portals_virtual.c) decides when, and takes the locks.
 */
#ifndef EMUNIC_DAEMON_PORTALS_PORTALS_WORK_H
#define EMUNIC_DAEMON_PORTALS_PORTALS_WORK_H

#include "emunic/daemon/portals/portals_end_inner.h"

/* A command that is being worked off. */
struct emu_portals_work {
    struct emu_ptl_send send;
    struct emu_ptl_cmd cmd;
    uint64_t waits_since_ns; /* for a lock; 0: not */
    uint32_t target;         /* slot of the target's port */
    uint32_t target_generation;
    bool is_taken;
    bool is_sent; /* SEND_END is posted */
    bool has_reply;
    bool acks;
    unsigned fail;
    uint64_t mlength;
    uint64_t done_bytes;
    uint64_t source_off; /* where a put's data begin in near_span */
    uint8_t *kept;       /* borrowed; a reply's data. NULL: they are in the target's memory */
    uint64_t n_commands; /* that its host gave the NIC to send it */
    struct emu_ptl_peer peer;
    struct emu_ptl_taker taker;
    struct emu_ptl_reply reply;
    struct emu_memory near; /* the initiator's memory */
    struct emu_memory far;  /* the target's */
    struct emu_ptl_span near_span;
    struct emu_ptl_span far_span;
    struct emu_ptl_iov near_iovs[EMU_PTL_IOVEC_MAX];
    struct emu_ptl_iov far_iovs[EMU_PTL_IOVEC_MAX];
    uint8_t swapped[EMU_PTL_GETPUT_MAX];
};

/* Begins with a command of the port's. */
void emu_portals_work_start(struct emu_port_end *port, struct emu_portals_work *work, const struct emu_cmd *cmd);
/* The port whose interface the command goes to, if it is still the one that took it. NULL: it has gone. */
struct emu_port_end *emu_portals_work_target(const struct emu_port_end *port, const struct emu_portals_work *work);
/* Has the interface been told to be cut off from the target (PtlFailNid)? Counts it. False: its lock is not free. */
bool emu_portals_work_look_at_cut(struct emu_port_end *port, struct emu_portals_work *work, bool *is_cut_out);

/* Where the data of a put or getput come from: near. */
void emu_portals_work_open_source(struct emu_port_end *port, struct emu_portals_work *work);
/* ---- with the target locked ---- */

/* Matches. True: taken; mlength, peer and far are known, and its host's work is counted. */
bool emu_portals_work_match(struct emu_port_end *port, struct emu_portals_work *work, struct emu_port_end *target,
                            struct emu_ptl_request *request_out);
/* START, and what it counts. */
void emu_portals_work_begin(struct emu_port_end *port, struct emu_portals_work *work, struct emu_port_end *target,
                            const struct emu_ptl_request *request, struct emu_ptl_flight *flight);
/* A getput's exchange; the old data are in `swapped`. 0 or enum emu_status. */
unsigned emu_portals_work_swap(struct emu_port_end *port, struct emu_portals_work *work);

/* ---- with nothing locked ---- */

/* Moves at most that much of a put's or a reply's data. True: there is more. */
bool emu_portals_work_move(struct emu_port_end *port, struct emu_portals_work *work, uint64_t bytes_max);

/* These two lock the initiator's interface. False: its lock is not free. */
bool emu_portals_work_tell_sent(struct emu_port_end *port, struct emu_portals_work *work);
/* REPLY_START: the reply may be stored if has_reply says so. */
bool emu_portals_work_begin_reply(struct emu_port_end *port, struct emu_portals_work *work);
/* REPLY_END, or SEND_END and ACK: the command is over. */
bool emu_portals_work_come_home(struct emu_port_end *port, struct emu_portals_work *work);

/* ---- with the initiator locked ---- */

/* SEND_END, once. */
void emu_portals_work_post_sent(struct emu_ptl_ni *ni, struct emu_portals_work *work);

#endif
