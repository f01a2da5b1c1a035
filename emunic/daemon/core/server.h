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
 * Each object has a header of its own, named as the file that serves it. This one is about the server and includes
 * none of them.
 */
#ifndef EMUNIC_DAEMON_CORE_SERVER_H
#define EMUNIC_DAEMON_CORE_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/control.h"
#include "emunic/base/log.h"
#include "emunic/base/settings.h"
#include "emunic/fabric/machine.h"

struct emu_bind;
struct emu_admin;
struct emu_bulk;
struct emu_burst;
struct emu_ce_end;
struct emu_ce_hosts;
struct emu_connection;
struct emu_domain;
struct emu_error_hosts;
struct emu_error_sub;
struct emu_fault_rule;
struct emu_gather;
struct emu_host_domains;
struct emu_hosts;
struct emu_hosts_options;
struct emu_network;
struct emu_node;
struct emu_ntt;
struct emu_port_end;
struct emu_portals_hosts;
struct emu_portals_repair;
struct emu_quiesce;
struct emu_remote;
struct emu_server;
struct emu_visits;
struct emu_watcher;

/* Something that epoll watches. Embedded in its owner; called with the events that came. */
struct emu_watch {
    void (*ready)(struct emu_server *server, struct emu_watch *watch, uint32_t events);
    bool is_dead; /* events of this round are no longer wanted */
};

#define EMU_PATIENCES 256u /* ports of different domains may share one: it is a guess anyway */

struct emu_server {
    char name[EMU_SERVER_NAME_MAX + 1];
    struct emu_settings settings;
    struct emu_machine *machine; /* owned */
    char *machine_spec;          /* owned; what the machine was made from */
    int places_fd;               /* of its nodes */
    int epoll_fd;
    struct emu_watch control_watch;
    struct emu_watch admin_watch;
    struct emu_watch signal_watch;
    struct emu_watch starter_watch;
    int control_fd;
    int admin_fd;
    int signal_fd;
    int spare_fd;             /* gives way to a connection that cannot be served */
    int ready_fd;             /* borrowed */
    struct emu_log_rate rate; /* of lines that clients provoke */
    bool stops;               /* leave the loop */
    bool stops_with_last_job; /* started for one job */
    bool starts_routed;       /* new domains: all commands through emunic */
    struct emu_node **nodes;  /* owned, by nid, made when first used */
    uint32_t n_nids;
    uint32_t next_domain_id;
    LIST_HEAD(, emu_connection) connections;
    LIST_HEAD(, emu_domain) domains;
    LIST_HEAD(, emu_port_end) ports;
    LIST_HEAD(, emu_quiesce) quiesces;
    LIST_HEAD(, emu_portals_repair) portals_repairs;
    uint32_t n_portals_waits;         /* repairs and commands that wait for the lock of an interface */
    struct emu_ce_end **engines;      /* owned: by nid and number, made when first used; borrowed contents */
    TAILQ_HEAD(, emu_ce_end) ce_work; /* engines to look at */
    uint64_t last_ce_version;         /* of their configurations */
    LIST_HEAD(, emu_error_sub) error_subs;
    const struct emu_fault_rule *first_faults; /* borrowed: of each new domain */
    uint32_t n_first_faults;
    uint32_t n_delayed_datagrams;
    bool has_unoffered_datagrams;            /* that wait for room in the queue to another host */
    struct emu_network *network;             /* owned; NULL until something breaks */
    struct emu_watcher *watcher;             /* owned; NULL until it writes a line */
    struct emu_hosts *hosts;                 /* owned; NULL while the machine is this host alone */
    struct emu_remote *remote;               /* owned, beside hosts */
    struct emu_visits *visits;               /* owned, beside hosts */
    struct emu_bulk *bulk;                   /* owned, beside hosts */
    struct emu_host_domains *host_domains;   /* owned, beside hosts */
    struct emu_ce_hosts *ce_hosts;           /* owned, beside hosts */
    struct emu_portals_hosts *portals_hosts; /* owned, beside hosts */
    struct emu_bind *bind;                   /* owned: where it runs */
    struct emu_error_hosts *error_hosts;     /* owned, beside hosts */
    struct emu_gather *gather;               /* owned, beside hosts */
    struct emu_admin *admin;                 /* owned */
    uint64_t fault_questions;                /* asked so far */
    struct emu_ntt *ntt;                     /* owned; NULL until the first entry */
    uint32_t n_paced;                        /* nodes whose injection is limited */
    uint8_t *bounce;                         /* owned */
    size_t bounce_bytes;
    struct emu_burst *burst; /* owned; of the port that is being served, empty between two */
    uint64_t started_ns;
    uint64_t rounds;
    uint64_t queues_made;
    uint64_t sleeps;
    uint32_t served_port; /* whose commands were served last: its index in its domain */
    uint32_t serves;
    uint64_t linger_until_ns;        /* 0: not lingering */
    uint8_t patience[EMU_PATIENCES]; /* by served_port: has lingering behind its commands paid lately? */
    void **graveyard;                /* freed at the end of the round */
    unsigned n_graves;
    unsigned graves_max;
};

struct emu_server_options {
    const char *name;
    const char *machine; /* spec for emu_machine_load() */
    const char *machine_dir;
    const char *bind; /* processors: "auto", "none" or a list; NULL: auto */
    bool stops_with_last_job;
    bool starts_routed;
    bool stops_with_starter;             /* also when the other end of ready_fd closes before there is a job */
    int ready_fd;                        /* one byte is written when the sockets listen; -1 none */
    const struct emu_fault_rule *faults; /* of each domain from its start; valid ones; must outlive the server */
    uint32_t n_faults;
    const struct emu_hosts_options *hosts; /* NULL: this one alone */
};

int emu_server_create(const struct emu_server_options *options, struct emu_server **server_out, char *err,
                      size_t err_len);
int emu_server_run(struct emu_server *server);
void emu_server_destroy(struct emu_server *server);

int emu_server_watch(struct emu_server *server, int fd, uint32_t events, struct emu_watch *watch);
/* Stops watching; the memory at `watch` is freed at the end of the round. */
void emu_server_bury(struct emu_server *server, int fd, struct emu_watch *watch);

#endif
