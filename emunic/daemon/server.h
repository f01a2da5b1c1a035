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
 */
#ifndef EMUNIC_DAEMON_SERVER_H
#define EMUNIC_DAEMON_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "emunic/abi/control.h"
#include "emunic/abi/fault.h"
#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"
#include "emunic/base/log.h"
#include "emunic/base/settings.h"
#include "emunic/base/socket.h"
#include "emunic/base/window.h"
#include "emunic/engine/burst.h"
#include "emunic/engine/cq.h"
#include "emunic/engine/rest.h"
#include "emunic/engine/segments.h"
#include "emunic/engine/transaction.h"
#include "emunic/fabric/machine.h"

struct emu_server;
struct emu_domain;
struct emu_member;
struct emu_port_end;
struct emu_datagram;
struct emu_file;
struct emu_quiesce;
struct emu_msgq_end;
struct emu_ce_end;
struct emu_error_sub;
struct emu_fault_set;

/* Something that epoll watches. Embedded in its owner; called with the events that came. */
struct emu_watch {
    void (*ready)(struct emu_server *server, struct emu_watch *watch, uint32_t events);
    bool is_dead;                       /* events of this round are no longer wanted */
};

struct emu_connection {
    struct emu_watch watch;             /* first: the object is freed by this address */
    LIST_ENTRY(emu_connection) link;
    struct emu_server *server;
    int fd;
    bool is_admin;
    bool said_hello;
    bool awaits_answer;                 /* a request of it is deferred */
    struct ucred peer;
    struct emu_port_end *port;          /* owned, or NULL */
    struct emu_domain *job;             /* admin: ends with this connection; or NULL */
    struct emu_error_sub *errors;       /* owned: it is a subscription; or NULL */
    bool hung_up;                       /* ends without the farewell of an orderly end */
};

/* A queue of a port. Geometry lives here; the segment's copy is never read back. */
struct emu_cq_end {
    bool in_use;
    uint64_t serial;                    /* tells it from the next one with this index */
    uint64_t offset;
    uint32_t first_page;                /* in the arena */
    uint32_t n_pages;
    uint32_t flags;                     /* EMU_CQ_* */
    uint32_t channel;                   /* that hears of it when it is armed, or EMU_CHANNEL_NONE */
    struct emu_cq_producer producer;
};

/* One memory domain, in the list of its port. The rest of it is in the domain table. */
struct emu_md_end {
    LIST_ENTRY(emu_md_end) link;
    uint16_t mdh;
    bool is_updatable;                  /* was reserved before its pages were there */
    bool is_reserved;                   /* still is: waits for its first update */
    bool is_virtual;
    uint16_t vmdh;                      /* if it is */
    uint64_t account_bytes;             /* of address space */
    struct emu_segment_list *segments;  /* owned by the domain's table of them; NULL: one plain region */
};

/* A command that takes more than one round. */
struct emu_transfer {
    TAILQ_ENTRY(emu_transfer) link;
    struct emu_transaction transaction;
    uint16_t md_generation;             /* of the remote memory domain when it began */
};

/* What injected faults keep of a port (fault.c). */
struct emu_fault_state {
    uint64_t key;                       /* who it is, to the hash */
    uint64_t passed;                    /* place in the ring, plus 1, of the command that faults let pass last */
    uint64_t held_until_ns;             /* the next command; 0 not held */
    uint64_t datagram_at_ns;            /* when the first of its delayed datagrams may pair; 0 none */
    uint32_t attempts;                  /* of the short message at the head of the ring, that failed */
    uint32_t rule;                      /* while a fault ends a command: which, */
    uint16_t code;                      /* and what it is called; 0 by its status */
    bool loses;                         /* the command that passed loses its event */
};

struct emu_port_end {
    struct emu_watch watch;             /* first; the doorbell */
    LIST_ENTRY(emu_port_end) link;      /* in the server's list of served ports */
    LIST_ENTRY(emu_port_end) member_link;
    struct emu_server *server;
    struct emu_domain *domain;          /* borrowed: outlives the port */
    struct emu_member *member;          /* borrowed: outlives the port */
    struct emu_connection *connection;  /* borrowed: outlives the port */
    uint32_t index;                     /* in the domain table */
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
    uint64_t head;                      /* commands taken */
    struct emu_view view;
    unsigned chain_status;              /* for the view */
    struct emu_cq_end *cqs;             /* owned, EMU_CQS_MAX */
    uint32_t n_cqs;
    uint64_t *arena_map;                /* owned: one bit per page of the arena */
    struct emu_cq_alarm alarm;          /* of the queues */
    int *channels;                      /* owned, EMU_CHANNELS_MAX: pipes to the owner, or -1; NULL while there is none */
    LIST_HEAD(, emu_md_end) mds;
    uint32_t n_mds;
    TAILQ_HEAD(, emu_transfer) transfers;
    uint32_t n_transfers;
    TAILQ_HEAD(, emu_datagram) datagrams;
    uint32_t n_datagrams;
    uint64_t commands;                  /* served, for status */
    struct emu_fault_state fault;
    bool shares_fma;                    /* GNI_CDM_MODE_FMA_SHARED */
    bool may_use_vmdh;                  /* has reserved virtual handles */
    uint64_t blocks_ended;
    uint32_t n_blocks;                  /* block transfers among `transfers` */
    struct emu_msg_segments *pending;   /* owned: segments of the next registration, or NULL */
    uint32_t n_pending;
    uint32_t pending_max;
};

struct emu_member {
    struct emu_watch watch;             /* first; the pidfd */
    LIST_ENTRY(emu_member) link;
    struct emu_domain *domain;          /* borrowed */
    pid_t pid;
    uid_t uid;
    int pidfd;
    uint32_t rank;                      /* or EMU_NID_NONE */
    uint32_t node_index;                /* of its rank, or EMU_NID_NONE */
    uint32_t n_ports;
    uint32_t n_ports_ever;              /* attached so far */
    LIST_HEAD(, emu_port_end) ports;
    int space_fd;                       /* made when first asked for; -1 */
    struct emu_windows windows;         /* into it */
    LIST_HEAD(, emu_file) files;        /* that its registrations lie in */
    uint32_t n_files;
};

/* A place for a file in the domain table. */
struct emu_file_place {
    struct emu_file *file;              /* owned by the registrations that lie in it; or NULL */
    uint32_t turn;                      /* of its number: grows each time the place is used */
};

/* What a job may use on one node; UINT32_MAX: as much as there is. */
struct emu_limits {
    uint32_t mdd;
    uint32_t cq;
    uint32_t fma;
    uint32_t bte;                       /* outstanding block transfers; UINT32_MAX: no limit */
    uint32_t ce;
    uint64_t iommu_bytes;               /* registered address space */
};

/* What a domain uses on one of its nodes. Memory domain handles are in n_handles. */
struct emu_account {
    uint32_t n_ports;
    uint32_t n_shared_fma;              /* of those; together they hold one descriptor */
    uint32_t n_cqs;
    uint32_t n_blocks;                  /* block transfers that emunic is moving */
    uint32_t vmdh_size;                 /* handles promised to the block of virtual ones */
    uint32_t vmdh_used;
    uint64_t iommu_bytes;
};

enum emu_suspension { EMU_RUNS, EMU_SUSPENDS, EMU_SUSPENDED };

struct emu_domain {
    LIST_ENTRY(emu_domain) link;
    uint32_t id;
    uint32_t ptag;
    uint32_t cookie;
    uid_t owner_uid;
    uint32_t member_limit;              /* processes that have a port; 0 none */
    uint32_t n_attached;                /* such processes */
    uint32_t n_ranks;
    uint32_t *rank_nids;                /* owned, n_ranks */
    uint32_t n_nodes;
    uint16_t *n_handles;                /* owned, per node: memory domain handles in use */
    struct emu_window_budget windows;   /* what emunic may still map of its members' space files */
    struct emu_table *table;            /* emunic's writable mapping */
    uint64_t table_bytes;
    int table_fd;                       /* cannot be mapped for writing by anybody else */
    struct emu_port_end **ports;        /* owned, EMU_PORTS_MAX; borrowed contents */
    bool *resting;                      /* owned, EMU_PORTS_MAX: slots that somebody inside may still mean */
    struct emu_file_place *files;       /* owned, EMU_FILES_MAX */
    uint32_t next_port;                 /* where to look for a free slot: delays reuse */
    uint32_t n_ports;
    LIST_HEAD(, emu_member) members;
    LIST_HEAD(, emu_msgq_end) msgqs;
    LIST_HEAD(, emu_ce_end) ces;        /* collective engines of its ports */
    struct emu_flow_counts **past_flows; /* owned, per source node: counters of ports that have gone */
    bool is_ending;
    bool is_routed_for_good;            /* made with EMU_TABLE_ROUTED */
    bool is_routed_on_demand;           /* by EMU_MSG_DATAPATH */
    struct emu_fault_set *faults;       /* owned: routed while it has some; NULL none */
    bool has_job_id;
    uint64_t job_id;
    bool is_declared;                   /* by GNI_ConfigureJob(), not by a launcher: ends with its last process */
    enum emu_suspension suspension;
    struct emu_limits limits;
    struct emu_account *accounts;       /* owned, per node */
    struct emu_segment_list ***segments; /* owned: per node, NULL or EMU_MDH_COUNT lists */
    uint32_t *addresses;                /* owned, per node: what members call it */
    uint32_t ntt_base;                  /* entries that its addresses come from */
    uint32_t ntt_size;                  /* 0: addresses are nids */
    bool cleans_ntt;                    /* the entries go with the domain */
    uint64_t kill_at_ns;                /* when ending: what is left then is killed */
};

/* Memory domain handles of one node, in use by any domain. */
struct emu_node {
    uint64_t used[EMU_MDH_COUNT / 64];
    uint16_t generation[EMU_MDH_COUNT];
    struct emu_file *file[EMU_MDH_COUNT]; /* that the memory lies in, until its number is released; or NULL */
    uint16_t next;                      /* where to look: delays reuse */
    uint32_t n_used;
    uint32_t n_promised;                /* not used yet, but kept for blocks of virtual handles */
    struct emu_injection *injection;    /* owned; NULL: nobody has asked */
};

#define EMU_PATIENCES 256u              /* ports of different domains may share one: it is a guess anyway */

struct emu_server {
    char name[EMU_SERVER_NAME_MAX + 1];
    struct emu_settings settings;
    struct emu_machine *machine;        /* owned */
    char *machine_spec;                 /* owned; what the machine was made from */
    int epoll_fd;
    struct emu_watch control_watch;
    struct emu_watch admin_watch;
    struct emu_watch signal_watch;
    struct emu_watch starter_watch;
    int control_fd;
    int admin_fd;
    int signal_fd;
    int spare_fd;                       /* gives way to a connection that cannot be served */
    int ready_fd;                       /* borrowed */
    struct emu_log_rate rate;           /* of lines that clients provoke */
    bool stops;                         /* leave the loop */
    bool stops_with_last_job;           /* started for one job */
    bool starts_routed;                 /* new domains: all commands through emunic */
    struct emu_node **nodes;            /* owned, by nid, made when first used */
    uint32_t n_nids;
    uint32_t next_domain_id;
    LIST_HEAD(, emu_connection) connections;
    LIST_HEAD(, emu_domain) domains;
    LIST_HEAD(, emu_port_end) ports;
    LIST_HEAD(, emu_quiesce) quiesces;
    struct emu_ce_end **engines;        /* owned: by nid and number, made when first used; borrowed contents */
    TAILQ_HEAD(, emu_ce_end) ce_work;   /* engines to look at */
    LIST_HEAD(, emu_error_sub) error_subs;
    const struct emu_fault_rule *first_faults; /* borrowed: of each new domain */
    uint32_t n_first_faults;
    uint32_t n_delayed_datagrams;
    struct emu_ntt *ntt;                /* owned; NULL until the first entry */
    uint32_t n_paced;                   /* nodes whose injection is limited */
    uint8_t *bounce;                    /* owned */
    size_t bounce_bytes;
    struct emu_burst *burst;            /* owned; of the port that is being served, empty between two */
    uint64_t started_ns;
    uint64_t rounds;
    uint64_t queues_made;
    uint64_t sleeps;
    uint32_t served_port;               /* whose commands were served last: its index in its domain */
    uint32_t serves;
    uint64_t linger_until_ns;           /* 0: not lingering */
    uint8_t patience[EMU_PATIENCES];    /* by served_port: has lingering behind its commands paid lately? */
    void **graveyard;                   /* freed at the end of the round */
    unsigned n_graves;
    unsigned graves_max;
};

/* server.c */
struct emu_server_options {
    const char *name;
    const char *machine;                /* spec for emu_machine_load() */
    const char *machine_dir;
    bool stops_with_last_job;
    bool starts_routed;
    bool stops_with_starter;            /* also when the other end of ready_fd closes before there is a job */
    int ready_fd;                       /* one byte is written when the sockets listen; -1 none */
    const struct emu_fault_rule *faults; /* of each domain from its start; valid ones; must outlive the server */
    uint32_t n_faults;
};
struct emu_domain_spec {
    uint32_t ptag;
    uint32_t cookie;
    uid_t owner_uid;
    uint32_t member_limit;
    uint32_t n_ranks;
    const uint32_t *rank_nids;
    uint32_t flags;
};

int emu_server_create(const struct emu_server_options *options, struct emu_server **server_out, char *err,
                      size_t err_len);
int emu_server_run(struct emu_server *server);
void emu_server_destroy(struct emu_server *server);

int emu_server_watch(struct emu_server *server, int fd, uint32_t events, struct emu_watch *watch);
/* Stops watching; the memory at `watch` is freed at the end of the round. */
void emu_server_bury(struct emu_server *server, int fd, struct emu_watch *watch);

/* connection.c */
void emu_connection_accept(struct emu_server *server, int listener, bool is_admin);
void emu_connection_destroy(struct emu_connection *connection);
/* Sends the reply of a request that was answered with EMU_DEFERRED; result 0. */
void emu_connection_answer(struct emu_connection *connection, struct emu_msg *reply);
#define EMU_DEFERRED 1000      /* outcome of a request whose reply comes later */

/* The same with another outcome. */
void emu_connection_answer_with(struct emu_connection *connection, struct emu_msg *reply, int result);

/* quiesce.c */
/* Can emunic have other cores run a barrier? */
bool emu_quiesce_has_barrier(void);
enum emu_quiesce_kind { EMU_QUIESCE_MEMORY, EMU_QUIESCE_CQ, EMU_QUIESCE_PORT, EMU_QUIESCE_SUSPEND, EMU_QUIESCE_PACE };
/* After it was made invisible: release a memory domain, a queue. 0 done, EMU_DEFERRED, -ENOMEM. */
int emu_quiesce_memory(struct emu_connection *connection, struct emu_port_end *port, uint16_t mdh,
                       const struct emu_msg *request);
int emu_quiesce_queue(struct emu_connection *connection, struct emu_port_end *port, uint32_t cq,
                      const struct emu_msg *request);
/*
 * After the domain's members were told to stay out. Answers when all are; -ETIMEDOUT after the deadline, and the
 * suspension is off again; it is also if the connection ends before.
 */
int emu_quiesce_suspend(struct emu_connection *connection, struct emu_domain *domain, const struct emu_msg *request,
                        uint64_t deadline_ns);
/* Update `seq` of a node's injection limits is done when the members of the domain have seen it. -ENOMEM. */
int emu_quiesce_pace(struct emu_server *server, struct emu_domain *domain, uint32_t nid, uint16_t seq);
/* A port has ended: its handles (taken over), its slot, and gaps that its process left if it died inside. */
void emu_quiesce_port(struct emu_port_end *port, uint16_t *mdhs, uint32_t n_mdhs, bool died_inside);
void emu_quiesce_round(struct emu_server *server);
/* The connection or the port has ended; either may be NULL. */
void emu_quiesce_forget(struct emu_server *server, const struct emu_connection *connection,
                        const struct emu_port_end *port);
void emu_quiesce_drop_domain(struct emu_server *server, const struct emu_domain *domain);

/* domain.c */
int emu_domain_create(struct emu_server *server, const struct emu_domain_spec *spec, struct emu_domain **domain_out);
/* Closes the domain. signal != 0: sends it to its processes, and SIGKILL two seconds later to what is left. */
void emu_domain_end(struct emu_server *server, struct emu_domain *domain, int signal);
void emu_domain_destroy(struct emu_server *server, struct emu_domain *domain);
/* Routed or direct, as its making, an order and its faults want. */
void emu_domain_set_path(struct emu_domain *domain);
/* Ends what is due. Returns when to look again (ns), or UINT64_MAX. */
uint64_t emu_domain_reap(struct emu_server *server, uint64_t now_ns);
/* After a change that its members may be waiting for. */
void emu_domain_disturb(struct emu_domain *domain);
struct emu_domain *emu_domain_find(struct emu_server *server, uint32_t ptag, uint32_t cookie);
/* Index of a physical node in the domain, or EMU_NID_NONE. */
uint32_t emu_domain_node_of(const struct emu_domain *domain, uint32_t nid);
/* Node that an address of the domain leads to, as a nid; EMU_NID_NONE. */
uint32_t emu_domain_nid_at(const struct emu_domain *domain, uint32_t address);
/* A process that may use the domain: its owner's, or root's. */
bool emu_domain_may_use(const struct emu_domain *domain, const struct ucred *peer);
/* The connection's process as a member; made when it is new. */
int emu_member_get(struct emu_domain *domain, const struct emu_connection *connection, struct emu_member **member_out);
struct emu_member *emu_member_find(struct emu_domain *domain, pid_t pid);
void emu_member_destroy(struct emu_server *server, struct emu_member *member);

/* port.c */
int emu_port_end_create(struct emu_connection *connection, struct emu_msg_attach *attach, int fds_out[3]);
void emu_port_end_destroy(struct emu_port_end *port);
int emu_port_end_cq_create(struct emu_port_end *port, struct emu_msg_cq *cq);
/* Makes a queue invisible; emu_port_end_cq_release() frees it when nobody can be using it. */
int emu_port_end_cq_destroy(struct emu_port_end *port, uint32_t index);
void emu_port_end_cq_release(struct emu_port_end *port, uint32_t index);
/* Adds what the port has sent to a node of its domain. */
void emu_port_end_add_flow(const struct emu_port_end *port, uint32_t node, struct emu_flow_counts *sum);

/* channel.c */
/* Makes a channel. The descriptor for the owner, which the caller closes, or negative errno. */
int emu_channel_end_create(struct emu_port_end *port, struct emu_msg_channel *channel);
int emu_channel_end_destroy(struct emu_port_end *port, uint32_t channel);
int emu_channel_end_attach(struct emu_port_end *port, const struct emu_msg_channel *channel);
/* All of a port that ends, or whose domain does: their owner sees the end of the pipes. */
void emu_channel_end_drop_all(struct emu_port_end *port);
/* For producers of the port's queues. */
void emu_channel_end_ring(struct emu_cq_alarm *alarm, uint32_t queue);
/* The port's doorbell was rung: passes on what it says of other ports' queues. */
void emu_channel_end_serve_calls(struct emu_port_end *port);
/* A producer may have died between disarming the queue and telling: tells, unless there is nothing to tell. */
void emu_channel_end_tell_again(struct emu_port_end *port, uint32_t queue);

/* memory_domain.c */
/* fds: of the request; what is wanted of them is taken. */
int emu_md_register(struct emu_port_end *port, struct emu_msg_memory *memory, struct emu_fds *fds);
/* Makes a memory domain invisible; emu_md_release() lets its number be used again. */
int emu_md_deregister(struct emu_port_end *port, uint16_t mdh, uint16_t generation);
void emu_md_release(struct emu_server *server, struct emu_domain *domain, uint32_t nid, uint16_t mdh);
void emu_md_drop_cq(struct emu_port_end *port, uint32_t cq);
int emu_md_reserve_virtual(struct emu_port_end *port, uint32_t n);
int emu_md_update(struct emu_port_end *port, const struct emu_msg_memory *memory);
int emu_md_add_segments(struct emu_port_end *port, const struct emu_msg_segments *segments);
/* For views: a segmented domain of the initiator's process. */
int emu_md_local(void *port, uint16_t mdh, uint16_t generation, struct emu_memory *mem_out);
/* Record of a node's handles, made when first needed; NULL: no memory. */
struct emu_node *emu_node_of(struct emu_server *server, uint32_t nid);
/* All of a port: their numbers (owned by the caller), to be released later. */
uint16_t *emu_md_drop_all(struct emu_port_end *port, uint32_t *n_out);
/* The space file of a process. Descriptor (emunic's own) or negative errno. */
int emu_space_get(struct emu_member *member);
/* For views: how to reach the memory of a live domain. 0 or enum emu_status. */
int emu_md_reach(void *port, const struct emu_table_md *md, uint8_t op, struct emu_memory *mem_out);

/* file.c */
/*
 * The file that a registration with EMU_MD_FILE lies in, for one more of its registrations; takes the descriptor over.
 * -EINVAL not one descriptor or no such range; -EBADF not a file that can be shared, or not open for what is wanted;
 * -ERANGE the file ends before the memory; -EPERM it is not what the process has mapped there; -EMFILE too many files.
 */
int emu_file_get(struct emu_member *member, const struct emu_msg_memory *memory, struct emu_fds *fds,
                 struct emu_file **file_out);
/* One registration less. NULL is fine. */
void emu_file_put(struct emu_file *file);
uint32_t emu_file_number(const struct emu_file *file);
/* The process has ended. Its files stay until the last of its registrations is released. */
void emu_file_drop_member(struct emu_member *member);
/* For a peer: emunic's descriptor, or -ENOENT. */
int emu_file_of(const struct emu_domain *domain, struct emu_msg_file *asked);
/* The memory of a live memory domain in a file. False: there is no window to be had. */
bool emu_file_reach(struct emu_file *file, const struct emu_table_md *md, struct emu_memory *mem_out);

/* datagram.c */
int emu_datagram_post(struct emu_port_end *port, const struct emu_msg_datagram *d);
int emu_datagram_test(struct emu_port_end *port, struct emu_msg_datagram *d);
int emu_datagram_probe(struct emu_port_end *port, struct emu_msg_datagram *d);
int emu_datagram_cancel(struct emu_port_end *port, const struct emu_msg_datagram *d);
void emu_datagram_drop_ep(struct emu_port_end *port, uint32_t ep);
void emu_datagram_drop_all(struct emu_port_end *port);
/* Lets delayed datagrams pair whose time has come. */
void emu_datagram_look_at_delayed(struct emu_server *server);

/* msgq.c */
/* Joins the message queue of the port's node; the first one makes it. Descriptor (emunic's own) or negative errno. */
int emu_msgq_join(struct emu_port_end *port, struct emu_msg_msgq *msgq);
/* Leaves it in peace: nobody can join any more until all have left. -ENOENT: was not in it. */
int emu_msgq_leave(struct emu_port_end *port);
/* The port has ended. */
void emu_msgq_drop_port(struct emu_port_end *port);

/* ce.c */
/* Creating, configuring, destroying. 0, -EINVAL, -ENOSPC, -ENOMEM, -EOPNOTSUPP: this machine has no engines. */
int emu_ce_answer(struct emu_port_end *port, struct emu_msg *msg);
/* A contribution: it is taken or refused at once; either way its events and, when refused, its result are delivered. */
void emu_ce_post(struct emu_port_end *port, const struct emu_cmd *cmd);
/* Works on the trees for a while. Number of engines looked at. */
unsigned emu_ce_round(struct emu_server *server);
bool emu_ce_has_work(const struct emu_server *server);
/* The port is going: its engines with it, and the trees that it is a leaf of are broken. */
void emu_ce_drop_port(struct emu_port_end *port);
void emu_ce_drop_cq(struct emu_port_end *port, uint32_t cq);
/* Engines of a domain on a node. */
uint32_t emu_ce_in_use(const struct emu_domain *domain, uint32_t nid);

/* datapath.c */
/* Serves every port once. Number of commands and slices done. */
unsigned emu_datapath_round(struct emu_server *server);
bool emu_datapath_has_work(struct emu_server *server);
void emu_datapath_drop_port(struct emu_port_end *port);

/* error_stream.c */
/* Tells subscribers; ptag, serial number and time stamp are filled in. */
void emu_error_tell(struct emu_server *server, const struct emu_domain *domain, struct emu_error_record record);
/* A transaction has failed. code 0: by its status; rule 0: not injected. */
void emu_error_tell_transaction(const struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status,
                                uint16_t code, uint32_t rule);
void emu_error_tell_port(const struct emu_port_end *port, uint16_t code, uint8_t category, uint64_t count, uint32_t rule);
/* An EMU_OP_REPORT command. */
void emu_error_take_report(const struct emu_port_end *port, const struct emu_cmd *cmd);
/* Tells the members whether anybody listens. */
void emu_error_watch_domain(const struct emu_server *server, struct emu_domain *domain);
/* The connection becomes a subscription. The descriptor to pass on, or negative errno. */
int emu_error_open(struct emu_connection *connection, const struct emu_msg_errors *asked);
void emu_error_close(struct emu_connection *connection);
/* EMU_MSG_ERRORS_MASK, _PTAG, _FETCH */
int emu_error_request(struct emu_connection *connection, uint16_t type, struct emu_msg_errors *asked);

/* fault.c */
enum emu_fault_answer {
    EMU_FAULT_PASSES,       /* run it, perhaps changed */
    EMU_FAULT_IS_DONE,      /* it has ended with an error */
    EMU_FAULT_WAITS,        /* ask again in the next round */
};
struct emu_fault_datagram {
    uint32_t state;         /* enum emu_datagram_state: pending, or how it ends at once */
    bool is_refused;        /* as if another exchange were open */
    uint64_t not_before_ns; /* may not pair before; UINT64_MAX: never */
};
/* -EINVAL: a rule is not valid; -ENOSPC: too many; -ENOMEM. Nothing has changed then. */
int emu_fault_set_rules(struct emu_server *server, struct emu_domain *domain, const struct emu_fault_rule *rules,
                  uint32_t n_rules, bool appends);
/* One rule, or with id 0 all. -ENOENT: no such rule. */
int emu_fault_clear_rules(struct emu_server *server, struct emu_domain *domain, uint32_t id);
void emu_fault_drop(struct emu_domain *domain);
uint32_t emu_fault_count_rules(const struct emu_domain *domain);
bool emu_fault_rule_of(const struct emu_domain *domain, uint32_t place, struct emu_fault_rule *rule_out, uint64_t *seen_out,
                       uint64_t *hits_out);
/* A port is new: its counts begin. */
void emu_fault_start_port(struct emu_port_end *port);
/* The following three only for a domain with rules. The command is emunic's copy of the one at the ring's head. */
enum emu_fault_answer emu_fault_command(struct emu_port_end *port, struct emu_cmd *cmd);
/* 0, or the registration's result. */
int emu_fault_registration(struct emu_port_end *port);
struct emu_fault_datagram emu_fault_datagram(struct emu_port_end *port, const struct emu_msg_datagram *wanted);
/* When the first thing that is held back goes on; UINT64_MAX: nothing is. */
uint64_t emu_fault_next_ns(const struct emu_server *server);
/* resources.c: what jobs hold, against what they and the device may. 0 or -ENOSPC. */
void emu_limits_init(struct emu_limits *limits);
int emu_account_add_port(struct emu_port_end *port);
void emu_account_drop_port(struct emu_port_end *port);
int emu_account_may_add_cq(const struct emu_port_end *port);
/* bytes: of address space; is_promised: from the block of virtual handles. */
int emu_account_may_add_md(const struct emu_port_end *port, uint64_t bytes, bool is_promised);
bool emu_account_may_start_block(const struct emu_port_end *port);
/* A block transfer of the port begins (+1) or ends (-1) to be moved in slices. */
void emu_account_add_block(struct emu_port_end *port, int change);
int emu_resources_answer(struct emu_connection *connection, struct emu_msg_resources *res);
int emu_resources_ptag(struct emu_connection *connection, struct emu_msg_ptag *ptag);
/* Where a process is: node of its rank, the one it names, or the first of a domain it may use. */
uint32_t emu_place_of(struct emu_connection *connection, uint32_t nid_wanted);

/* job.c: requests of the admin socket */
int emu_job_configure(struct emu_connection *connection, struct emu_msg_job *job, const struct emu_fds *fds);
int emu_job_clear_ntt(struct emu_connection *connection, const struct emu_msg_job *job);
int emu_job_suspend(struct emu_connection *connection, const struct emu_msg *request);
int emu_job_resume(struct emu_connection *connection, const struct emu_msg_job *job);
/* The waiting for a suspension is over: quiet, or given up. */
void emu_job_suspended(struct emu_domain *domain, bool is_quiet);
/* A domain goes. */
void emu_job_forget(struct emu_server *server, struct emu_domain *domain);
void emu_ntt_figures(const struct emu_server *server, uint32_t *used_out, uint32_t *granularity_out);

/* injection.c */
int emu_injection_get(struct emu_connection *connection, struct emu_msg_injection *injection);
int emu_injection_set(struct emu_connection *connection, struct emu_msg_injection *injection);
void emu_injection_done(struct emu_server *server, uint32_t nid, uint16_t seq);
/* For a new domain on nodes that are paced already. */
void emu_injection_mark(struct emu_server *server, struct emu_domain *domain);
/* May ports of the node inject now? */
bool emu_injection_is_open(struct emu_server *server, uint32_t nid);
void emu_injection_charge(struct emu_server *server, uint32_t nid, uint64_t bytes);

/* report.c: JSON text in a new memfd. Descriptor or negative errno. */
int emu_report_status(struct emu_server *server);
int emu_report_links(struct emu_server *server);
int emu_report_faults(struct emu_server *server);

#endif
