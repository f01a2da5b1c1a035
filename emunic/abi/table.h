/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domain table: who may talk to whom, and what may be reached. One per communication domain and host. It has all nodes
 * of the domain; places of ports and memory domains on other hosts are empty: commands for them are emunic's
 * (node.host).
 *
 *   | header | address -> node index | nodes | ports | files | memory domains: node index x EMU_MD_COUNT |
 *   | virtual handles: node index x EMU_MDH_COUNT |
 *
 * Written by emunic alone. Members get a descriptor that cannot be mapped for writing (the memfd carries
 * F_SEAL_FUTURE_WRITE once emunic has its own mapping), so a registration or an identity cannot be forged.
 * The memfd is sparse: untouched memory domains cost nothing.
 *
 * An address is what programs of the job call a node: its nid, or, if the job was bound to entries of the network
 * translation table before its first attach, a number from 0 (daemon/jobs/job_control.c).
 *
 * Key: [I] set before the table is handed out  [E] emunic at any time
 */
#ifndef EMUNIC_ABI_TABLE_H
#define EMUNIC_ABI_TABLE_H

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/flow.h"

/* emu_table.flags */
#define EMU_TABLE_ROUTED     (1u << 0) /* every command goes through emunic */
#define EMU_TABLE_CLOSED     (1u << 1) /* the domain has ended: posts fail, waiters return */
#define EMU_TABLE_FENCED     (1u << 2) /* [I] emunic cannot run barriers on its members' cores: they run their own */
#define EMU_TABLE_WATCHED    (1u << 3) /* somebody wants to hear of errors: tell emunic of those of the direct path */
#define EMU_TABLE_SUSPENDED  (1u << 4) /* the job is suspended: commands wait in the rings, nobody enters the engine */
#define EMU_TABLE_PACED      (1u << 5) /* a node of the domain may inject at a limited rate only: emunic meters it */
#define EMU_TABLE_VIRTUAL    (1u << 6) /* [I] in virtual time: members have clocks (virtual_clock.h) */
/* Any of these: the initiator leaves the command to emunic. */
#define EMU_TABLE_NOT_DIRECT (EMU_TABLE_ROUTED | EMU_TABLE_CLOSED | EMU_TABLE_SUSPENDED | EMU_TABLE_PACED)

struct emu_table {
    uint64_t magic;                  /* [I] EMU_TABLE_MAGIC */
    uint32_t abi_version;            /* [I] EMU_ABI_VERSION */
    uint32_t domain_id;              /* [I] emunic's own number for the domain */
    uint64_t table_bytes;            /* [I] */
    uint32_t ptag;                   /* [I] */
    uint32_t cookie;                 /* [I] */
    uint32_t n_nids;                 /* [I] length of the address -> node index array */
    uint32_t n_nodes;                /* [I] nodes of the domain, on all hosts */
    uint32_t n_ports;                /* [I] length of the port array */
    uint32_t device;                 /* [I] enum emu_device */
    uint64_t nid_off;                /* [I] uint32_t[n_nids]: node index or EMU_NID_NONE */
    uint64_t node_off;               /* [I] struct emu_table_node[n_nodes] */
    uint64_t port_off;               /* [I] struct emu_table_port[n_ports] */
    uint64_t file_off;               /* [I] uint32_t[EMU_FILES_MAX] */
    uint64_t md_off;                 /* [I] struct emu_table_md[n_nodes][EMU_MD_COUNT] */
    uint64_t vmdh_off;               /* [I] _Atomic uint16_t[n_nodes][EMU_MDH_COUNT]: index -> memory domain, 0 none */
    struct emu_packet_format format; /* [I] */
    uint32_t yield_ns;               /* [I] of a sched_yield() that nobody wanted, as emunic measured it */
    alignas(64) _Atomic uint32_t flags;         /* [E] EMU_TABLE_*; read at every post */
    _Atomic uint32_t emunic_sleeps;             /* [E] 1: ring the doorbell after a command */
    _Atomic uint32_t live_processes;            /* [E] attached to this domain; tells when polling must yield */
    _Atomic uint32_t files_gone;                /* [E] how many files were released so far: members unmap them */
    _Atomic uint32_t ports_end;                 /* [E] no port slot from here on was ever used */
    alignas(64) _Atomic uint64_t emunic_inside; /* [E] odd while emunic may touch memory; written in each round */
};
static_assert(offsetof(struct emu_table, flags) == 128, "ABI: changing line of the table");

#define EMU_NODE_HERE 0u /* emu_table_node.host */

struct emu_table_node {
    uint32_t nid;                 /* [I] physical, whatever its address is */
    _Atomic uint32_t bte_limit;   /* [E] block transfers that the job may have outstanding here; 0: no limit */
    _Atomic uint32_t bte_running; /* [E] such transfers that emunic is moving */
    uint32_t host; /* [I] EMU_NODE_HERE, or 1 + number of the host that alone knows its ports and memory */
};

enum emu_port_state {
    EMU_PORT_FREE = 0,
    EMU_PORT_LIVE = 1,
    EMU_PORT_DEAD = 2, /* being cleaned up; becomes free, with a new generation */
};

struct emu_table_port {
    _Atomic uint32_t state;  /* [E] enum emu_port_state */
    uint32_t generation;     /* [E] grows each time the slot is used again */
    uint32_t nid;            /* [E] */
    uint32_t instance_id;    /* [E] */
    uint32_t pid;            /* [E] as emunic sees it */
    _Atomic uint32_t ptl_id; /* [E] Portals interface: process id plus one; 0: the port is none */
    uint32_t uid;            /* [E] of its process */
    /* [E] registrations of memory that others write where its process has it, by system calls */
    _Atomic uint32_t n_private;
};

#define EMU_CQ_WAKES        (1u << 0) /* somebody may sleep on the queue: producers look */
#define EMU_CQ_SERIAL_SHIFT 8         /* in cq_flags: tells a queue from its successor in the same place */

/*
 * emu_table_md.state. EMU_MD_LIVE + 1 + p: live as far as emunic is concerned, and its generation stands in park p of
 * the owner's segment, whose owner takes it away and gives it back by himself (client/park.c).
 */
#define EMU_MD_GONE 0u
#define EMU_MD_LIVE 1u

#define EMU_MD_READ_ONLY (1u << 0)
#define EMU_MD_VMDH      (1u << 1)
#define EMU_MD_MAPPED    (1u << 2) /* all its pages are those of the process's space file, at offset = address */
#define EMU_MD_FILE      (1u << 3) /* all its pages are those of one file that the process has mapped shared */
#define EMU_MD_DEDICATED (1u << 4) /* request only: shares its MDH with nobody */
#define EMU_MD_RESERVED  (1u << 5) /* request only: not live before its first update */
#define EMU_MD_GART      (1u << 7) /* request only: on a Gemini, translated by the GART */
#define EMU_MD_PARKS     (1u << 8) /* request: it is to have the park `vmdh`; reply: it has */
#define EMU_MD_SEGMENTED (1u << 6) /* addresses are offsets in a list of segments that emunic alone has: base is 0 */

enum emu_memory_method {
    EMU_MEMORY_CMA = 0,  /* process_vm_readv/writev */
    EMU_MEMORY_MAP = 1,  /* pages of the owner's space file, which both sides can map */
    EMU_MEMORY_FILE = 2, /* pages of a file of the domain, likewise */
    EMU_MEMORY_METHODS
};

struct emu_table_md {
    _Atomic uint32_t state;   /* [E] stored last on registration, first on deregistration */
    uint16_t generation;      /* [E] 1 .. EMU_MD_GENERATION_MAX */
    uint8_t flags;            /* [E] EMU_MD_* */
    uint8_t method;           /* [E] enum emu_memory_method */
    uint32_t port;            /* [E] owner */
    uint32_t cq;              /* [E] owner's queue index for remote events, or EMU_CQ_NONE */
    uint64_t base;            /* [E] owner's virtual address */
    uint64_t length_bytes;    /* [E] as registered */
    uint32_t cq_line;         /* [E] where the queue lies in the owner's segment, in cache lines */
    uint32_t cq_ring_entries; /* [E] geometry of the queue */
    uint32_t cq_capacity;     /* [E] */
    uint32_t cq_flags;        /* [E] EMU_CQ_*, and a serial number */
    uint64_t file_offset;     /* [E] EMU_MEMORY_FILE: of the page that `base` lies in */
    uint32_t file;            /* [E] number of the file, or 0 */
    _Atomic uint32_t ended;   /* [E] node of another host: generation of a message queue's region that has ended */
};
static_assert(sizeof(struct emu_table_md) == 64, "ABI: one line per memory domain");

static inline const uint32_t *emu_table_nids(const struct emu_table *t)
{
    return (const uint32_t *)((const char *)t + t->nid_off);
}

static inline struct emu_table_node *emu_table_nodes(const struct emu_table *t)
{
    return (struct emu_table_node *)((const char *)t + t->node_off);
}

static inline struct emu_table_port *emu_table_ports(const struct emu_table *t)
{
    return (struct emu_table_port *)((const char *)t + t->port_off);
}

/* By place: the number of the file that is there, or 0. A file stays while a memory domain of it can be in use. */
static inline _Atomic uint32_t *emu_table_files(const struct emu_table *t)
{
    return (_Atomic uint32_t *)((const char *)t + t->file_off);
}

static inline struct emu_table_md *emu_table_mds(const struct emu_table *t, uint32_t node_index)
{
    return (struct emu_table_md *)((const char *)t + t->md_off) + (uint64_t)node_index * EMU_MD_COUNT;
}

/* The block of virtual handles of a node. */
static inline _Atomic uint16_t *emu_table_vmdhs(const struct emu_table *t, uint32_t node_index)
{
    return (_Atomic uint16_t *)((const char *)t + t->vmdh_off) + (uint64_t)node_index * EMU_MDH_COUNT;
}

/* Node index of an address, or EMU_NID_NONE. Any value is allowed. */
static inline uint32_t emu_table_node_index(const struct emu_table *t, uint32_t address)
{
    return address < t->n_nids ? emu_table_nids(t)[address] : EMU_NID_NONE;
}

#endif
