/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports, each an attached NIC context, and their queues: what they are, and look-ups. Their life is in
 * core/port_life.h.
 */
#ifndef EMUNIC_DAEMON_WORLD_PORT_END_H
#define EMUNIC_DAEMON_WORLD_PORT_END_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/control.h"
#include "emunic/abi/segment.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/index.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/completion_queue.h"
#include "emunic/engine/rest.h"
#include "emunic/engine/transaction.h"

struct emu_amo_cache;
struct emu_connection;
struct emu_md_end;
struct emu_transfer;
struct emu_virtual_command;

/* What parts keep of a port. A part reads and writes its own slots alone. */
enum emu_port_slot {
    EMU_PORT_CE,
    EMU_PORT_DATAGRAMS,
    EMU_PORT_FAULTS,
    EMU_PORT_KEPT,
    EMU_PORT_MOVED,
    EMU_PORT_PORTALS,
    EMU_PORT_PORTALS_REMOTE,
    EMU_PORT_PORTALS_VIRTUAL,
    EMU_PORT_PORTALS_WORK,
    EMU_PORT_REMOTE,
    EMU_PORT_SLOTS,
};

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

/* Its command ring. */
struct emu_port_ring {
    struct emu_cmd *slots;
    uint64_t head;          /* commands taken */
    uint64_t served;        /* of them, for status */
    uint32_t turn;          /* of its user that it had last (world/turns.h) */
    uint64_t times_off;     /* in the segment: virtual times of the commands */
    uint64_t due_ps;        /* virtual time: of the first command, as last seen; EMU_VCLOCK_NEVER: none */
    uint64_t seen_takes;    /* virtual time: how often its process had been read then */
    uint64_t held_until_ps; /* virtual time: the first command is not due before */
    bool is_held;           /* virtual time: the first command waits for the end of an operation */
    uint64_t let_go_ps;     /* likewise: when it went on last. All that was posted before has waited */
};

struct emu_port_queues {
    struct emu_cq_end *cqs; /* owned, EMU_CQS_MAX */
    uint32_t n_cqs;
    uint64_t *arena_map; /* owned: one bit per page of the arena */
    uint64_t arena_off;
    struct emu_cq_alarm alarm;
    int *channels; /* owned, EMU_CHANNELS_MAX: pipes to the owner, or -1; NULL while none */
};

/* Its registrations. */
struct emu_port_registrations {
    LIST_HEAD(, emu_md_end) mds;
    uint32_t n_mds;
    bool may_use_vmdh;                /* has reserved virtual handles */
    struct emu_msg_segments *pending; /* owned: segments of the next registration, or NULL */
    uint32_t n_pending;
    uint32_t pending_max;
    struct emu_amo_cache *amo_cache; /* of its NIC, that they lie behind; borrowed; NULL: none */
};

/* What takes more than one round. */
struct emu_port_transfers {
    TAILQ_HEAD(, emu_transfer) list;
    uint32_t n;
    uint32_t n_blocks; /* block transfers among them, and to other hosts */
    uint64_t blocks_ended;
    LIST_HEAD(, emu_virtual_command) virtual_list;
    uint32_t n_virtual;          /* operations under way in virtual time */
    struct emu_transfer *small;  /* owned: the small command that waits for a mover; NULL: never yet */
    bool small_waits;            /* it stands at the head of the ring */
    struct emu_transfer *shared; /* borrowed: the one in `list` that the initiator helps to move, or NULL */
    uint16_t share_serial;       /* of the last such one */
};

struct emu_port_end {
    struct emu_watch watch;        /* first; the doorbell */
    LIST_ENTRY(emu_port_end) link; /* in the server's list of served ports */
    LIST_ENTRY(emu_port_end) member_link;
    struct emu_index_entry by_address;
    struct emu_server *server;
    struct emu_domain *domain;         /* borrowed: outlives the port */
    struct emu_member *member;         /* borrowed: outlives the port */
    struct emu_connection *connection; /* borrowed: outlives the port */
    uint32_t index;                    /* in the domain table */
    uint32_t node_index;
    uint32_t nid;
    uint32_t instance_id;
    uint32_t modes;
    bool shares_fma; /* GNI_CDM_MODE_FMA_SHARED */
    int doorbell;
    int segment_fd;
    struct emu_segment *segment;
    uint64_t segment_bytes;
    struct emu_view view;
    unsigned chain_status; /* for the view */
    struct emu_port_ring ring;
    struct emu_port_queues queues;
    struct emu_port_registrations memory;
    struct emu_port_transfers transfers;
    void *slots[EMU_PORT_SLOTS];
};

/* Does the address of a command lead to a node of another host? */
static inline bool emu_port_end_is_elsewhere(const struct emu_port_end *port, uint32_t address)
{
    return emu_hosts_are_several(port->server) && emu_domain_is_elsewhere(port->domain, address);
}

/* A queue of a port for events, or NULL. The port may be NULL. */
static inline struct emu_cq_producer *emu_port_end_queue(struct emu_port_end *port, uint32_t cq)
{
    return port && cq < EMU_CQS_MAX && port->queues.cqs[cq].in_use ? &port->queues.cqs[cq].producer : NULL;
}

/* Something has happened that the port's owner may wait for: wakes it where it rests. */
static inline void emu_port_end_disturb(struct emu_port_end *port)
{
    emu_rest_disturb(port->segment);
    port->member->has_news = true;
}

/* Adds what the port has sent to a node of its domain. */
void emu_port_end_add_flow(const struct emu_port_end *port, uint32_t node, struct emu_flow_counts *sum);

#endif
