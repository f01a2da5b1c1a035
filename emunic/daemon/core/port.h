/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports, each an attached NIC context, and their queues.
 */
#ifndef EMUNIC_DAEMON_CORE_PORT_H
#define EMUNIC_DAEMON_CORE_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/control.h"
#include "emunic/abi/segment.h"
#include "emunic/daemon/ce/ce.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/commands/remote.h"
#include "emunic/daemon/portals/portals.h"
#include "emunic/daemon/core/server.h"
#include "emunic/engine/cq.h"
#include "emunic/engine/transaction.h"

struct emu_connection;
struct emu_datagram;
struct emu_domain;
struct emu_md_end;
struct emu_member;
struct emu_portals_end;
struct emu_transfer;

/* A queue of a port. Geometry lives here; the segment's copy is never read back. */
struct emu_cq_end {
    bool in_use;
    uint64_t serial; /* tells it from the next one with this index */
    uint64_t offset;
    uint32_t first_page; /* in the arena */
    uint32_t n_pages;
    uint32_t flags;   /* EMU_CQ_* */
    uint32_t channel; /* that hears of it when it is armed, or EMU_CHANNEL_NONE */
    struct emu_cq_producer producer;
};

struct emu_port_end {
    struct emu_watch watch;        /* first; the doorbell */
    LIST_ENTRY(emu_port_end) link; /* in the server's list of served ports */
    LIST_ENTRY(emu_port_end) member_link;
    struct emu_server *server;
    struct emu_domain *domain;         /* borrowed: outlives the port */
    struct emu_member *member;         /* borrowed: outlives the port */
    struct emu_connection *connection; /* borrowed: outlives the port */
    uint32_t index;                    /* in the domain table */
    uint32_t node_index;
    uint32_t nid;
    uint32_t instance_id;
    uint32_t modes;
    int doorbell;
    int segment_fd;
    struct emu_segment *segment;
    uint64_t segment_bytes;
    uint64_t arena_off;
    struct emu_cmd *slots;
    uint64_t head; /* commands taken */
    struct emu_view view;
    unsigned chain_status;  /* for the view */
    struct emu_cq_end *cqs; /* owned, EMU_CQS_MAX */
    uint32_t n_cqs;
    uint64_t *arena_map;       /* owned: one bit per page of the arena */
    struct emu_cq_alarm alarm; /* of the queues */
    int *channels;             /* owned, EMU_CHANNELS_MAX: pipes to the owner, or -1; NULL while none */
    LIST_HEAD(, emu_md_end) mds;
    uint32_t n_mds;
    TAILQ_HEAD(, emu_transfer) transfers;
    uint32_t n_transfers;
    struct emu_remote_port remote;
    struct emu_portals_remote_port portals_remote;
    struct emu_ce_port ce;
    TAILQ_HEAD(, emu_datagram) datagrams;
    uint32_t n_datagrams;
    uint64_t commands; /* served, for status */
    struct emu_fault_state fault;
    struct emu_portals_end *portals; /* owned: NULL while the port is no Portals interface */
    struct emu_cmd *kept;            /* owned: writes that wait for the network to be mended */
    uint32_t n_kept;
    bool shares_fma;   /* GNI_CDM_MODE_FMA_SHARED */
    bool may_use_vmdh; /* has reserved virtual handles */
    uint64_t blocks_ended;
    uint32_t n_blocks;                /* block transfers among `transfers` */
    struct emu_msg_segments *pending; /* owned: segments of the next registration, or NULL */
    uint32_t n_pending;
    uint32_t pending_max;
};

int emu_port_end_create(struct emu_connection *connection, struct emu_msg_attach *attach, int fds_out[3]);
void emu_port_end_destroy(struct emu_port_end *port);
int emu_port_end_cq_create(struct emu_port_end *port, struct emu_msg_cq *cq);
/* Makes a queue invisible; emu_port_end_cq_release() frees it when nobody can be using it. */
int emu_port_end_cq_destroy(struct emu_port_end *port, uint32_t index);
void emu_port_end_cq_release(struct emu_port_end *port, uint32_t index);
/* A queue of a port for events, or NULL. The port may be NULL. */
struct emu_cq_producer *emu_port_end_queue(struct emu_port_end *port, uint32_t cq);
/* Adds what the port has sent to a node of its domain. */
void emu_port_end_add_flow(const struct emu_port_end *port, uint32_t node, struct emu_flow_counts *sum);

#endif
