/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * emunic's objects and who owns whom. Everything here runs on one thread.
 *
 *   server ── connections          one per control or admin socket; a control connection may own one port
 *          ├─ domains ── members   processes, each held by a pidfd
 *          │          └─ ports     attached NIC contexts
 *          └─ nodes                memory domain handles of each emulated node, shared by all domains
 *
 * A port belongs to its member (process), its connection and its domain; the first of them to end ends the port.
 * Objects that epoll may still name are freed at the end of a round (emu_server_bury).
 *
 * What a part keeps of one of these objects is the part's own, behind the object's slot for it (core/part.h). So the
 * objects name no part.
 */
#ifndef EMUNIC_DAEMON_WORLD_SERVER_H
#define EMUNIC_DAEMON_WORLD_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/control.h"
#include "emunic/base/log.h"
#include "emunic/base/settings.h"
#include "emunic/engine/memory.h"
#include "emunic/fabric/machine.h"

struct emu_connection;
struct emu_domain;
struct emu_loop;
struct emu_node;
struct emu_part_table;
struct emu_port_end;
struct emu_quiesce;
struct emu_rights;
struct emu_server;
struct emu_watches;

/* What parts keep of the server. A part reads and writes its own slots alone. */
enum emu_server_slot {
    EMU_SERVER_BIND,
    EMU_SERVER_BULK,
    EMU_SERVER_CE,
    EMU_SERVER_CE_HOSTS,
    EMU_SERVER_COMMANDS,
    EMU_SERVER_DATAGRAMS,
    EMU_SERVER_ERRORS,
    EMU_SERVER_ERROR_HOSTS,
    EMU_SERVER_FAULTS,
    EMU_SERVER_GATHER,
    EMU_SERVER_HOST_DOMAINS,
    EMU_SERVER_LISTS,
    EMU_SERVER_LOOKUPS,
    EMU_SERVER_MOVERS,
    EMU_SERVER_NETWORK,
    EMU_SERVER_NEWCOMERS,
    EMU_SERVER_NTT,
    EMU_SERVER_ORDERS,
    EMU_SERVER_PAGE_WATCH,
    EMU_SERVER_PLACES,
    EMU_SERVER_PORTALS,
    EMU_SERVER_PORTALS_HOSTS,
    EMU_SERVER_REMOTE,
    EMU_SERVER_RIGHTS,
    EMU_SERVER_SESSIONS,
    EMU_SERVER_TIME,
    EMU_SERVER_USER_SOCKETS,
    EMU_SERVER_USERS,
    EMU_SERVER_VIRTUAL,
    EMU_SERVER_VISITS,
    EMU_SERVER_WATCHER,
    EMU_SERVER_WAYS,
    EMU_SERVER_SLOTS,
};

/* Something that epoll watches. Embedded in its owner; called with the events that came. */
struct emu_watch {
    void (*ready)(struct emu_server *server, struct emu_watch *watch, uint32_t events);
    bool is_dead; /* events of this round are no longer wanted */
};

struct emu_server_counts {
    uint64_t started_ns;
    uint64_t rounds;
    uint64_t sleeps;
    uint64_t queues_made;
    uint32_t yield_ns; /* of a sched_yield() that nobody wanted, measured at the start */
    uint32_t domains_made;
    uint32_t looks_wanted; /* how many wait for a look at all clients (emu_part.loop.looked) */
    uint32_t served_port;  /* whose commands were served last: its index in its domain */
};

struct emu_server {
    char name[EMU_SERVER_NAME_MAX + 1];
    struct emu_settings settings;
    struct emu_machine *machine; /* owned */
    char *machine_spec;          /* owned; what the machine was made from */
    uint32_t n_nids;
    uint32_t own_host;        /* our number; 0 while this host is alone */
    uint32_t n_hosts;         /* 1: this host is alone */
    uint32_t answer_ms;       /* an answer may take that long, because other hosts are asked; 0: no others */
    struct emu_log_rate rate; /* of lines that clients provoke */
    bool stops;               /* leave the loop */
    bool stops_with_last_job; /* started for one job */
    bool starts_routed;       /* new domains: all commands through emunic */
    struct emu_node **nodes;  /* owned, by nid, made when first used */
    LIST_HEAD(, emu_connection) connections;
    LIST_HEAD(, emu_domain) domains;
    LIST_HEAD(, emu_port_end) ports;
    LIST_HEAD(, emu_quiesce) quiesces;
    struct emu_server_counts counts;
    uint32_t n_paced;                   /* nodes whose injection is limited */
    int spare_fd;                       /* gives way to a connection that cannot be served */
    struct emu_bounce bounce;           /* owned; where data rest on their way from one memory to another */
    struct emu_watches *watches;        /* owned */
    struct emu_loop *loop;              /* owned */
    const struct emu_part_table *parts; /* owned */
    void *slots[EMU_SERVER_SLOTS];
};

/* Are there other hosts? */
static inline bool emu_hosts_are_several(const struct emu_server *server)
{
    return server->n_hosts > 1;
}

/* Are its programs in virtual time? Known before there is a domain. */
static inline bool emu_server_is_virtual(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_VIRTUAL];
}

/* What it has given up; NULL while it starts. */
static inline struct emu_rights *emu_rights_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_RIGHTS];
}

/* Our number; 0 while there is only one. */
static inline uint32_t emu_hosts_own(const struct emu_server *server)
{
    return server->own_host;
}

static inline uint32_t emu_hosts_count(const struct emu_server *server)
{
    return server->n_hosts;
}

#endif
