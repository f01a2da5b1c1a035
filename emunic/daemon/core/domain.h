/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains and their members.
 */
#ifndef EMUNIC_DAEMON_CORE_DOMAIN_H
#define EMUNIC_DAEMON_CORE_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "emunic/abi/table.h"
#include "emunic/base/window.h"
#include "emunic/daemon/resources/resources.h"
#include "emunic/daemon/core/server.h"

struct emu_bind_group;
struct emu_bulk_piece;
struct emu_ce_end;
struct emu_connection;
struct emu_fault_set;
struct emu_file;
struct emu_file_place;
struct emu_msgq_end;
struct emu_offers;
struct emu_port_end;
struct emu_segment_list;
struct ucred;

struct emu_member {
    struct emu_watch watch; /* first; the pidfd */
    LIST_ENTRY(emu_member) link;
    struct emu_domain *domain; /* borrowed */
    pid_t pid;
    uid_t uid;
    int pidfd;
    uint32_t rank;       /* or EMU_NID_NONE */
    uint32_t node_index; /* of its rank, or EMU_NID_NONE */
    uint32_t n_ports;
    uint32_t n_ports_ever; /* attached so far */
    LIST_HEAD(, emu_port_end) ports;
    int space_fd;                       /* made when first asked for; -1 */
    struct emu_windows windows;         /* into it */
    LIST_HEAD(, emu_bulk_piece) pieces; /* of them, that the transport reads or writes */
    LIST_HEAD(, emu_file) files;        /* that its registrations lie in */
    uint32_t n_files;
    struct emu_bind_group *bind_group; /* borrowed; NULL: not known */
};

enum emu_suspension { EMU_RUNS, EMU_SUSPENDS, EMU_SUSPENDED };

struct emu_domain {
    LIST_ENTRY(emu_domain) link;
    uint32_t id;
    uint32_t common_number; /* by which all hosts know it; 0: it is of this host alone */
    uint32_t own_host;      /* our number */
    uint32_t ptag;
    uint32_t cookie;
    uid_t owner_uid;
    uint32_t member_limit; /* processes that have a port; 0 none */
    uint32_t n_attached;   /* such processes */
    uint32_t n_ranks;
    uint32_t *rank_nids; /* owned, n_ranks */
    uint32_t n_nodes;
    uint16_t *n_handles;              /* owned, per node: memory domain handles (MDHs) in use */
    struct emu_window_budget windows; /* what emunic may still map of its members' space files */
    struct emu_table *table;          /* emunic's writable mapping */
    uint64_t table_bytes;
    int table_fd;                 /* cannot be mapped for writing by anybody else */
    struct emu_port_end **ports;  /* owned, EMU_PORTS_MAX; borrowed contents */
    bool *resting;                /* owned, EMU_PORTS_MAX: slots that somebody inside may still mean */
    struct emu_file_place *files; /* owned, EMU_FILES_MAX */
    uint32_t next_port;           /* where to look for a free slot: delays reuse */
    uint32_t n_ports;
    LIST_HEAD(, emu_member) members;
    LIST_HEAD(, emu_msgq_end) msgqs;
    LIST_HEAD(, emu_ce_end) ces; /* owned: collective engines of its ports */
    uint32_t *ce_hosts;          /* owned: other hosts that its reduction trees can reach */
    uint32_t n_ce_hosts;
    struct emu_ce_end **far_ces; /* owned: images of those of other hosts, by node and number; NULL while none */
    struct emu_offers *offers;   /* owned: datagrams of other hosts; NULL until needed */
    struct emu_flow_counts *marked_flows; /* owned, n_nodes x n_nodes: when the network changed last; NULL never */
    struct emu_flow_counts **past_flows;  /* owned, per source node: counters of ports that have gone */
    bool is_ending;
    uint8_t *presence;            /* owned, on the head: what each host has of it (presence.c); NULL none */
    uint8_t told_presence;        /* elsewhere: what the head was told last */
    bool is_in_doubt;             /* the head has not said yet that it still exists */
    uint32_t told_lack;           /* elsewhere: what the head was told by EMU_HOST_DOMAIN_REACHES last */
    bool is_routed_for_good;      /* made with EMU_TABLE_ROUTED */
    bool is_routed_on_demand;     /* by EMU_MSG_DATAPATH */
    bool is_routed_around;        /* something in the network is broken */
    struct emu_fault_set *faults; /* owned: routed while it has some; NULL none */
    bool has_job_id;
    uint64_t job_id;
    bool is_declared; /* by GNI_ConfigureJob(), not by a launcher: ends with its last process */
    enum emu_suspension suspension;
    struct emu_limits limits;
    struct emu_account *accounts;        /* owned, per node */
    struct emu_segment_list ***segments; /* owned: per node, NULL or EMU_MD_COUNT lists */
    uint32_t *addresses;                 /* owned, per node: what members call it */
    uint32_t ntt_base;                   /* entries that its addresses come from */
    uint32_t ntt_size;                   /* 0: addresses are nids */
    bool cleans_ntt;                     /* the entries go with the domain */
    uint64_t kill_at_ns;                 /* when ending: what is left then is killed */
};

struct emu_domain_spec {
    uint32_t ptag;
    uint32_t cookie;
    uid_t owner_uid;
    uint32_t member_limit;
    uint32_t n_ranks;
    const uint32_t *rank_nids;
    const uint32_t *rank_hosts; /* NULL: all are here */
    uint32_t common_number;     /* 0: a domain of this host alone */
    uint32_t flags;
};

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
/* Index of its first node on this host, or EMU_NID_NONE. */
uint32_t emu_domain_first_here(const struct emu_domain *domain);
/* Node that an address of the domain leads to, as a nid; EMU_NID_NONE. */
uint32_t emu_domain_nid_at(const struct emu_domain *domain, uint32_t address);
/* A process that may use the domain: its owner's, or root's. */
bool emu_domain_may_use(const struct emu_domain *domain, const struct ucred *peer);
/* The connection's process as a member; made when it is new. */
int emu_member_get(struct emu_domain *domain, const struct emu_connection *connection, struct emu_member **member_out);
struct emu_member *emu_member_find(struct emu_domain *domain, pid_t pid);
void emu_member_destroy(struct emu_server *server, struct emu_member *member);

#endif
