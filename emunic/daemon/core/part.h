/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server is made of: parts, each of which registers here what it wants to hear and what it answers.
 *
 * The loop, the connections, the domains, the ports and the sessions with other hosts name no part: they go through the
 * table. It stands in daemon.c; its order is that of beginnings (create, host_up, begin ...) and of rounds; ends go
 * through it from last to first. A slot that is NULL is one that the part has no use for. All calls come on the
 * server's thread.
 */
#ifndef EMUNIC_DAEMON_CORE_PART_H
#define EMUNIC_DAEMON_CORE_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/control.h"
#include "emunic/base/socket.h"
#include "emunic/daemon/rights/rights.h"

struct emu_change_row;
struct emu_connection;
struct emu_domain;
struct emu_fault_rule;
struct emu_hosts_options;
struct emu_list;
struct emu_member;
struct emu_msg;
struct emu_port_end;
struct emu_server;
struct emu_state_row;
struct emu_status_host;

#define EMU_PARTS_MAX     32u
#define EMU_MESSAGE_KINDS 16u

#define EMU_ROWS(table) ((uint32_t)(sizeof(table) / sizeof((table)[0])))

/* Outcome of a request whose reply comes later. */
#define EMU_DEFERRED 1000

/* Virtual time (daemon/virtual). */
struct emu_time_options {
    uint32_t compute;        /* enum emu_vclock_compute */
    uint32_t factor_ppm;     /* of measured processor time */
    uint64_t fixed_ps;       /* of each call */
    uint64_t poll_ps;        /* of an empty poll */
    uint64_t epoch_ns;       /* date of its begin */
    uint64_t seed;           /* of the network's choices */
    uint32_t n_threads;      /* of the simulator; 0: one */
    uint32_t max_lag_ppm;    /* of the run: with more lag its figures are said to be wrong */
    const char *trace;       /* file of its operations; NULL: none */
    const char *links;       /* file of what links carry in each window; NULL: none */
    uint64_t links_every_ps; /* length of a window, above 0 */
    bool keeps_paths;        /* the ways of its packets, for reports */
    double bit_error_rate;   /* of all lanes, below 1 */
    uint32_t n_jobs;         /* that begin together; 0: each when it comes */
};

struct emu_server_options {
    const char *name;
    const char *machine; /* spec for emu_machine_load() */
    const char *machine_dir;
    struct emu_rights_plan rights; /* what it gives up; its `server` is the name above */
    const char *bind;              /* processors: "auto", "none" or a list; NULL: auto */
    bool stops_with_last_job;
    bool starts_routed;
    bool stops_with_starter;             /* also when the other end of ready_fd closes before there is a job */
    int ready_fd;                        /* one byte is written when the sockets listen; -1 none */
    const struct emu_fault_rule *faults; /* of each domain from its start; valid ones; must outlive the server */
    uint32_t n_faults;
    const struct emu_hosts_options *hosts; /* NULL: this one alone */
    const struct emu_time_options *time;   /* NULL: functional time */
    const uint64_t *user_limits;           /* what a user may have, by enum emu_user_kind; 0, NULL: the settings */
};

/* Why a server does not start. */
struct emu_complaint {
    char *text;
    size_t bytes;
};

/* ---- requests of clients and launchers ---- */

struct emu_request {
    struct emu_connection *connection;
    struct emu_port_end *port; /* with EMU_NEEDS_PORT: the connection's */
    struct emu_msg *msg;       /* request in, reply out */
    struct emu_fds *fds;       /* came with it; what is wanted of them is taken */
    int reply_fds[EMU_MSG_FDS_MAX];
    unsigned n_reply_fds;
    bool closes_fds; /* they were made for this reply only */
};

enum emu_request_needs {
    EMU_NEEDS_CONTROL, /* the control socket */
    EMU_NEEDS_PORT,    /* ...and a port */
    EMU_NEEDS_ADMIN,   /* the admin socket */
};

/* Which part answers what. 0, EMU_DEFERRED, a positive outcome, or negative errno; -EPROTO ends the connection. */
struct emu_request_row {
    uint16_t first; /* enum emu_msg_type */
    uint16_t last;
    enum emu_request_needs needs;
    int (*answer)(struct emu_request *request);
};

/* Passes one descriptor with the reply. fd < 0: the result. */
static inline int emu_request_pass(struct emu_request *request, int fd, bool closes)
{
    if (fd < 0)
        return fd;
    request->reply_fds[0] = fd;
    request->n_reply_fds = 1;
    request->closes_fds = closes;
    return 0;
}

/* ---- messages of other hosts ---- */

/* Handlers return false if the message makes no sense. */
struct emu_message_row {
    uint16_t kind; /* enum emu_host_kind */
    bool (*take)(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
};

/* Lists of words (peers/lists.h). */
struct emu_list_row {
    uint16_t op; /* enum emu_host_admin_op */
    bool (*take)(struct emu_server *server, uint32_t host, struct emu_list *list);
};

/* ---- a part ---- */

struct emu_part_loop {
    /* In each round. Number of things done; others than 0 keep the loop awake. */
    unsigned (*round)(struct emu_server *server);
    /* Before a sleep: when to look again, by emu_clock_ns(); UINT64_MAX: nothing waits. */
    uint64_t (*next_ns)(const struct emu_server *server);
    /* With nothing to do: shall the loop yield rather than sleep? Something will come in microseconds. */
    bool (*stays_awake)(const struct emu_server *server);
    /* Before a sleep, and after it was announced: would a round find something to do? */
    bool (*has_work)(struct emu_server *server);
    /* While emu_server.counts.looks_wanted > 0: all that clients have done so far was taken in. */
    void (*looked)(struct emu_server *server);
    /* Some request was served: something may be due that no round looks at. */
    void (*served)(struct emu_server *server);
};

struct emu_part_hosts {
    const struct emu_message_row *messages;
    uint32_t n_messages;
    const struct emu_list_row *lists;
    uint32_t n_lists;
    void (*up)(struct emu_server *server, uint32_t host);
    void (*down)(struct emu_server *server, uint32_t host);
    /* It has changed over to another connection, or is lost. */
    void (*moved)(struct emu_server *server, uint32_t host);
    /* A transfer that the part has begun is over. */
    void (*transfer_done)(struct emu_server *server, uint64_t cookie, int result);
    /* Must the transport be looked at in each round? */
    bool (*is_moving)(const struct emu_server *server);
};

struct emu_part_domains {
    /* 0 or negative errno: then it is destroyed again. */
    int (*begin)(struct emu_server *server, struct emu_domain *domain);
    /* It was made on all hosts, or has another number now: what others have told of it is lost. */
    void (*spread)(struct emu_server *server, struct emu_domain *domain);
    /* Its members are told to end, by the signal if it is not 0. */
    void (*ending)(struct emu_server *server, struct emu_domain *domain, int signal);
    /* Its members have gone. */
    void (*end)(struct emu_server *server, struct emu_domain *domain);
    /* A process or a NIC handle of it has come or gone here. */
    void (*changed)(struct emu_server *server, struct emu_domain *domain);
};

struct emu_part_members {
    /* It is new, or has shown itself again. */
    void (*seen)(struct emu_server *server, struct emu_member *member);
    void (*end)(struct emu_server *server, struct emu_member *member);
};

struct emu_part_ports {
    /* 0 or negative errno: then it ends again. The port is not in the domain table yet. */
    int (*begin)(struct emu_port_end *port);
    /* It is in the domain table. */
    void (*live)(struct emu_port_end *port);
    /* No command of it is served any more; the table says that it is dead. Also of one whose begin failed. */
    void (*end)(struct emu_port_end *port);
    /* One of its completion queues goes. */
    void (*queue_end)(struct emu_port_end *port, uint32_t queue);
};

/* Rows of `emunic status`: each function puts the words that are its part's, and leaves the others (status_row.h). */
struct emu_part_status {
    void (*host)(const struct emu_server *server, struct emu_status_host *row);
    /* Of each host, when there are several. */
    void (*session)(const struct emu_server *server, uint32_t host, uint64_t *row);
    void (*domain)(const struct emu_domain *domain, uint64_t *row);
    void (*node)(const struct emu_server *server, uint32_t nid, uint64_t *row);
    void (*port)(const struct emu_port_end *port, uint64_t *row);
};

struct emu_part {
    const char *name;
    int (*create)(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why);
    /* Also of what was created in part, or not at all. */
    void (*destroy)(struct emu_server *server);
    const struct emu_request_row *requests;
    uint32_t n_requests;
    const struct emu_change_row *changes; /* of the machine, on all hosts (orders/orders.h) */
    uint32_t n_changes;
    const struct emu_state_row *states; /* what those have led to */
    uint32_t n_states;
    struct emu_part_loop loop;
    struct emu_part_hosts hosts;
    struct emu_part_domains domains;
    struct emu_part_members members;
    struct emu_part_ports ports;
    struct emu_part_status status;
    /* The connection waits no longer. */
    void (*connection_end)(struct emu_connection *connection);
    /* What the network held back may go. */
    void (*released)(struct emu_server *server);
};

/* ---- the table ---- */

/* Parts by what they do: made once, so that a round makes no call in vain. */
struct emu_part_table {
    const struct emu_part *const *all;
    uint32_t n;
    uint32_t n_rounds;
    unsigned (*rounds[EMU_PARTS_MAX])(struct emu_server *server);
    const struct emu_request_row *requests[EMU_MSG_TYPES];
    const struct emu_message_row *messages[EMU_MESSAGE_KINDS];
};

/* NULL: no memory. Freed with free(). */
struct emu_part_table *emu_part_table_make(const struct emu_part *const *parts, uint32_t n);
/* Who takes a list of that kind; NULL: nobody. */
const struct emu_list_row *emu_parts_list(const struct emu_server *server, uint16_t op);

/* Each calls the slot of its name in all parts; see there. */
int emu_parts_create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why);
void emu_parts_destroy(struct emu_server *server);
uint64_t emu_parts_next_ns(const struct emu_server *server);
bool emu_parts_stay_awake(const struct emu_server *server);
bool emu_parts_have_work(struct emu_server *server);
void emu_parts_looked(struct emu_server *server);
void emu_parts_served(struct emu_server *server);
void emu_parts_host_up(struct emu_server *server, uint32_t host);
void emu_parts_host_down(struct emu_server *server, uint32_t host);
void emu_parts_host_moved(struct emu_server *server, uint32_t host);
void emu_parts_transfer_done(struct emu_server *server, uint64_t cookie, int result);
bool emu_parts_are_moving(const struct emu_server *server);
int emu_parts_domain_begin(struct emu_server *server, struct emu_domain *domain);
void emu_parts_domain_spread(struct emu_server *server, struct emu_domain *domain);
void emu_parts_domain_ending(struct emu_server *server, struct emu_domain *domain, int signal);
void emu_parts_domain_end(struct emu_server *server, struct emu_domain *domain);
void emu_parts_domain_changed(struct emu_server *server, struct emu_domain *domain);
void emu_parts_member_seen(struct emu_server *server, struct emu_member *member);
void emu_parts_member_end(struct emu_server *server, struct emu_member *member);
int emu_parts_port_begin(struct emu_port_end *port);
void emu_parts_port_live(struct emu_port_end *port);
void emu_parts_port_end(struct emu_port_end *port);
void emu_parts_queue_end(struct emu_port_end *port, uint32_t queue);
void emu_parts_connection_end(struct emu_connection *connection);
void emu_parts_released(struct emu_server *server);
/* The row is all zero before. */
void emu_parts_status_host(const struct emu_server *server, struct emu_status_host *row);
void emu_parts_status_session(const struct emu_server *server, uint32_t host, uint64_t *row);
void emu_parts_status_domain(const struct emu_server *server, const struct emu_domain *domain, uint64_t *row);
void emu_parts_status_node(const struct emu_server *server, uint32_t nid, uint64_t *row);
void emu_parts_status_port(const struct emu_port_end *port, uint64_t *row);

#endif
