/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of Portals in emunic share: portals_end.c (interfaces), portals_command.c (commands for this host),
 * portals_repair.c (ends of dead processes), portals_remote.c (commands for other hosts), portals_visit.c (their
 * requests), portals_parts.c (data that are longer than a message) and portals_life.c (the part of the server).
 */
#ifndef EMUNIC_DAEMON_PORTALS_PORTALS_END_INNER_H
#define EMUNIC_DAEMON_PORTALS_PORTALS_END_INNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/host_portals.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/index.h"
#include "emunic/daemon/world/numbers.h"
#include "emunic/engine/portals_engine.h"

struct emu_domain;
struct emu_portals_repair;
struct emu_port_end;

/* Interfaces, and what waits for locks. */
struct emu_portals {
    struct emu_index ends;                   /* by domain, node, process id */
    LIST_HEAD(, emu_portals_repair) repairs; /* owned */
    uint32_t n_waits;                        /* repairs and commands that wait for the lock of an interface */
};

static inline struct emu_portals *emu_portals_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_PORTALS];
}

static inline uint32_t emu_portals_generation(const struct emu_domain *domain, uint32_t port)
{
    return emu_table_ports(domain->table)[port].generation;
}

/* ---- portals_end.c: interfaces ---- */

/* Makes the port's. Its descriptor, which stays the interface's, or negative errno. */
int emu_portals_end_open(struct emu_port_end *port, struct emu_msg_portals *asked);
/* Members find it no longer; also of a port that has none. */
void emu_portals_end_hide(struct emu_port_end *port);
void emu_portals_end_close(struct emu_port_end *port);
/* The descriptor of another port's interface, or negative errno. */
int emu_portals_end_peer(const struct emu_port_end *port, struct emu_msg_portals *asked);
/* 0 or -EHOSTUNREACH. */
int emu_portals_end_distance(const struct emu_port_end *port, struct emu_msg_portals *asked);

/* ---- of ports that have one ---- */

struct emu_ptl_ni *emu_portals_end_ni(const struct emu_port_end *port);
uint32_t emu_portals_end_pid(const struct emu_port_end *port);
/* nid: physical. The port may be NULL, and need not have an interface. */
bool emu_portals_end_is_that(const struct emu_port_end *port, uint32_t nid, uint32_t pid);
/*
 * Tries to lock the interface for a step of an operation. waits_since_ns is the operation's, 0 at first: a lock that
 * stays taken is looked into.
 */
bool emu_portals_end_lock(struct emu_port_end *owner, uint64_t *waits_since_ns);
bool emu_portals_end_try_lock(struct emu_ptl_ni *ni);
void emu_portals_end_unlock(struct emu_port_end *owner);
/* A descriptor's memory, from its own registrations or by system calls. */
struct emu_memory emu_portals_end_reach(struct emu_port_end *owner, const struct emu_ptl_md *md);
/* The port waits for the lock of that port's interface: breaks it if it is nobody's. */
void emu_portals_end_look_at(struct emu_port_end *port, uint32_t locked);
/* The port of the interface with that process id, as the port addresses it; NULL: none here. */
struct emu_port_end *emu_portals_end_find(struct emu_port_end *port, uint32_t address, uint32_t pid);

/* ---- portals_command.c ---- */

/* Room for the command that the port works off. 0, also if there is some already, or -ENOMEM. */
int emu_portals_command_open(struct emu_port_end *port);
void emu_portals_command_close(struct emu_port_end *port);
/* Goes on with those that have left their rings. */
void emu_portals_command_round(struct emu_server *server);

/* ---- portals_virtual.c: commands in virtual time ---- */

/* Room for them. 0, also if there is some already, or -ENOMEM. */
int emu_portals_virtual_open(struct emu_port_end *port);
void emu_portals_virtual_close(struct emu_port_end *port);

/* ---- portals_work.c ---- */

/* What a command says. */
struct emu_ptl_send emu_portals_send_of(const struct emu_ptl_cmd *cmd);
/* 0, or the enum emu_status for what emu_ptl_move() returned. */
unsigned emu_portals_fail_of(int result);
/* What is to be done at home when a message is over and SEND_END posted: ACK. Locked. */
void emu_portals_end_ack(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                         bool acks, uint64_t mlength, unsigned fail);

/* ---- portals_host_work.c: registers; the interface is locked ---- */

/* Commands for the NIC to send or store that part of a descriptor's memory: at least one. No lock needed. */
uint64_t emu_portals_host_commands(const struct emu_port_end *port, const struct emu_ptl_span *span, uint64_t offset,
                                   uint64_t length_bytes);
/* A message with so many bytes for that memory arrives. span NULL: without data, or for nobody. */
void emu_portals_host_takes(struct emu_port_end *port, const struct emu_ptl_span *span, uint64_t offset,
                            uint64_t length_bytes);
/* A host that matches has the reply sent. */
void emu_portals_host_answers(struct emu_port_end *port, const struct emu_ptl_span *span, uint64_t offset,
                              uint64_t length_bytes);

/* ---- portals_repair.c ---- */

/* Ends what the port, which has gone, was doing in other interfaces. */
void emu_portals_repair_port(struct emu_port_end *port);
void emu_portals_repair_round(struct emu_server *server);
void emu_portals_repair_drop_domain(struct emu_server *server, const struct emu_domain *domain);

/* ---- portals_parts.c ---- */

/* The memory of a descriptor, as it was when an operation began. */
struct emu_portals_place {
    struct emu_ptl_md md;
    struct emu_ptl_span span;
    struct emu_ptl_iov *iovs; /* owned: the span's */
};

/* -ENOMEM */
int emu_portals_place_open(struct emu_portals_place *place, struct emu_ptl_ni *ni, const struct emu_ptl_md *md);
void emu_portals_place_close(struct emu_portals_place *place);
/* 0 or enum emu_status. The registrations are asked each time. */
unsigned emu_portals_place_read(struct emu_port_end *owner, const struct emu_portals_place *place, uint64_t offset,
                                void *to, uint64_t length_bytes);
unsigned emu_portals_place_write(struct emu_port_end *owner, const struct emu_portals_place *place, uint64_t offset,
                                 const void *from, uint64_t length_bytes);

/* Data that are asked for part by part. All parts come in the order in which they were asked for. */
struct emu_portals_pull {
    TAILQ_ENTRY(emu_portals_pull) link; /* of those that wait until less is asked of their host */
    bool waits;
    uint32_t host;
    uint32_t domain;   /* number that all hosts know */
    bool is_at_target; /* the data are */
    uint64_t to;       /* number there */
    uint64_t from;     /* number here */
    uint64_t total_bytes;
    uint64_t asked_bytes; /* from the first byte of the operation on */
    uint64_t came_bytes;  /* likewise */
    unsigned fail;
};

/* came_bytes and asked_bytes are what is there already. */
void emu_portals_pull_start(struct emu_server *server, struct emu_portals_pull *pull);
/* A part has come; the caller stores its data, if it has not failed. False: it is not the one that was asked for. */
bool emu_portals_pull_take(struct emu_portals_pull *pull, const struct emu_host_portals_part *part);
/* Asks for more. True: no more is to come. */
bool emu_portals_pull_go_on(struct emu_server *server, struct emu_portals_pull *pull);
/* Forgets it; what still comes has no number any more. */
void emu_portals_pull_stop(struct emu_server *server, struct emu_portals_pull *pull);

/* ---- between hosts ---- */

#define EMU_PORTALS_WINDOW 1024u /* requests of one host to another that are not over there */
#define EMU_PORTALS_HINTS  256u
#define EMU_PORTALS_PAIRS  256u

struct emu_portals_errand;
struct emu_portals_visit;
TAILQ_HEAD(emu_portals_visits, emu_portals_visit);

struct emu_portals_host {
    uint32_t n_errands;                   /* of ours, that are going on there */
    uint32_t n_visits;                    /* of theirs, that are going on */
    uint64_t asked_bytes;                 /* of them, that have not come */
    TAILQ_HEAD(, emu_portals_pull) pulls; /* that wait for those */
};

struct emu_portals_hosts {
    struct emu_numbers errands;
    struct emu_numbers visits;                          /* those that have been asked for data, or may be */
    struct emu_portals_visits waiting;                  /* for a lock */
    struct emu_portals_visits pairs[EMU_PORTALS_PAIRS]; /* all going on, by their processes' hash, as they came */
    uint32_t hints[EMU_PORTALS_HINTS];                  /* slot where a process was found last */
    struct emu_portals_host hosts[];
};

/* NULL while this host is alone. */
static inline struct emu_portals_hosts *emu_portals_hosts_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_PORTALS_HOSTS];
}

int emu_portals_hosts_create(struct emu_server *server);
void emu_portals_hosts_destroy(struct emu_server *server);
/* For the part. False: the message makes no sense. */
bool emu_portals_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
void emu_portals_host_down(struct emu_server *server, uint32_t host);

/* portals_remote.c */
void emu_portals_remote_drop_port(struct emu_port_end *port);
bool emu_portals_remote_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
void emu_portals_remote_want(struct emu_server *server, uint32_t host, const struct emu_host_portals_part *part);
bool emu_portals_remote_data(struct emu_server *server, uint32_t host, const struct emu_host_portals_part *part);
void emu_portals_remote_down(struct emu_server *server, uint32_t host);
void emu_portals_remote_round(struct emu_server *server);
void emu_portals_remote_destroy(struct emu_server *server);

/* portals_visit.c */
bool emu_portals_visit_request(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
bool emu_portals_visit_done(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
void emu_portals_visit_want(struct emu_server *server, uint32_t host, const struct emu_host_portals_part *part);
bool emu_portals_visit_data(struct emu_server *server, uint32_t host, const struct emu_host_portals_part *part);
void emu_portals_visit_down(struct emu_server *server, uint32_t host);
void emu_portals_visit_round(struct emu_server *server);
void emu_portals_visit_drop_domain(struct emu_server *server, const struct emu_domain *domain);

#endif
