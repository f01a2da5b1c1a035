/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains and their members: what they are, and look-ups. Their life is in core/domain_life.h.
 */
#ifndef EMUNIC_DAEMON_WORLD_DOMAIN_H
#define EMUNIC_DAEMON_WORLD_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "emunic/abi/table.h"
#include "emunic/base/window.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/daemon/world/index.h"
#include "emunic/daemon/world/server.h"

struct emu_bind_group;
struct emu_bulk_piece;
struct emu_file;
struct emu_file_place;
struct emu_port_end;
struct emu_segment_list;
struct emu_user;
struct emu_virtual_process;
struct ucred;

/* What parts keep of a domain. A part reads and writes its own slots alone. */
enum emu_domain_slot {
    EMU_DOMAIN_CE,
    EMU_DOMAIN_FAULTS,
    EMU_DOMAIN_HOSTS,
    EMU_DOMAIN_MSGQ,
    EMU_DOMAIN_NAMES,
    EMU_DOMAIN_OFFERS,
    EMU_DOMAIN_VIRTUAL,
    EMU_DOMAIN_SLOTS,
};

/* Memory of a part that a process may fill: its pages are the member's (shared_pages.c). */
struct emu_shared_file {
    LIST_ENTRY(emu_shared_file) link; /* in the member's list, by the part */
    int fd;                           /* the part's */
};

struct emu_member {
    struct emu_watch watch; /* first; the pidfd */
    LIST_ENTRY(emu_member) link;
    struct emu_index_entry by_process;
    struct emu_domain *domain; /* borrowed */
    pid_t pid;
    uid_t uid;
    bool is_moved;         /* emunic does not touch its memory itself (daemon/movers) */
    int maps_fd;           /* of such a process, from its last attach; -1 */
    struct emu_user *user; /* counted */
    uint64_t n_pages;      /* that are charged to it */
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
    LIST_HEAD(, emu_shared_file) shared;         /* what parts share with it */
    struct emu_bind_group *bind_group;           /* borrowed; NULL: not known */
    struct emu_virtual_process *virtual_process; /* borrowed; NULL: it has no clocks (yet) */
    bool has_news;                               /* something has happened to its memory, queues or requests */
};

enum emu_suspension { EMU_RUNS, EMU_SUSPENDS, EMU_SUSPENDED };

/* Why its commands go through emunic. */
struct emu_domain_paths {
    bool is_routed_for_good;  /* made with EMU_TABLE_ROUTED */
    bool is_routed_on_demand; /* by EMU_MSG_DATAPATH */
    bool is_routed_around;    /* something in the network is broken */
    bool has_faults;          /* it has fault rules */
};

/* What a launcher with privilege has made of it (jobs/job_control.c). */
struct emu_domain_job {
    bool has_id;
    uint64_t id;
    bool is_declared; /* by GNI_ConfigureJob(), not by a launcher: ends with its last process */
    enum emu_suspension suspension;
    uint32_t ntt_base;       /* entries that its addresses come from */
    uint32_t ntt_size;       /* 0: addresses are nids */
    bool cleans_ntt;         /* the entries go with the domain */
    uint64_t begin_after_ps; /* virtual time between its first fence, or that of all jobs, and its begin */
};

/* Where its registrations lie. */
struct emu_domain_memory {
    struct emu_window_budget windows;    /* what emunic may still map of its members' space files */
    struct emu_file_place *files;        /* owned, EMU_FILES_MAX */
    struct emu_segment_list ***segments; /* owned: per node, NULL or EMU_MD_COUNT lists */
    bool is_moved;                       /* some of it by movers (daemon/movers) */
};

/* Against what it may hold. */
struct emu_domain_budget {
    struct emu_limits limits;
    struct emu_account *accounts; /* owned, per node */
    uint16_t *n_handles;          /* owned, per node: memory domain handles (MDHs) in use */
};

struct emu_domain_flows {
    struct emu_flow_row *marked; /* owned, per source node: when the network changed last; NULL never */
    struct emu_flow_row *past;   /* owned, per source node: counters of ports that have gone */
};

/* Its slots for ports. */
struct emu_domain_slots {
    bool *resting; /* owned, EMU_PORTS_MAX: slots that somebody inside may still mean */
    uint32_t next; /* where to look for a free one: delays reuse */
    uint32_t n_used;
    uint32_t n_attached; /* processes that have a port */
};

struct emu_table_file {
    uint64_t bytes;
    int fd; /* cannot be mapped for writing by anybody else */
};

struct emu_domain {
    LIST_ENTRY(emu_domain) link;
    uint32_t id;
    uint32_t common_number; /* by which all hosts know it; 0: it is of this host alone */
    uint32_t own_host;      /* our number */
    uint32_t ptag;
    uint32_t cookie;
    uid_t owner_uid;
    uint32_t member_limit; /* processes that have a port; 0 none */
    uint32_t n_ranks;
    uint32_t *rank_nids; /* owned, n_ranks */
    uint32_t n_nodes;
    uint32_t *addresses;     /* owned, per node: what members call it */
    struct emu_table *table; /* emunic's writable mapping */
    struct emu_table_file table_file;
    LIST_HEAD(, emu_member) members;
    struct emu_port_end **ports; /* owned, EMU_PORTS_MAX; borrowed contents */
    struct emu_domain_slots port_slots;
    struct emu_domain_memory memory;
    struct emu_domain_budget budget;
    struct emu_domain_flows flows;
    struct emu_domain_paths paths;
    struct emu_domain_job job;
    bool is_ending;
    uint64_t kill_at_ns; /* when ending: what is left then is killed */
    void *slots[EMU_DOMAIN_SLOTS];
};

/* ---- finding (lookups.c; lookups.h has more) ---- */

struct emu_domain *emu_domain_find(struct emu_server *server, uint32_t ptag, uint32_t cookie);
/* The domain that all hosts know by this number, or NULL. */
struct emu_domain *emu_hosts_find_domain(struct emu_server *server, uint32_t number);
struct emu_member *emu_member_find(struct emu_domain *domain, pid_t pid);

/* ---- nodes ---- */

/* Index of a physical node in the domain, or EMU_NID_NONE. */
uint32_t emu_domain_node_of(const struct emu_domain *domain, uint32_t nid);
/* Index of its first node on this host, or EMU_NID_NONE. */
uint32_t emu_domain_first_here(const struct emu_domain *domain);
/* Node that an address of the domain leads to, as a nid; EMU_NID_NONE. */
uint32_t emu_domain_nid_at(const struct emu_domain *domain, uint32_t address);
/* The host that a node of the domain is on; ours for those that are here. */
uint32_t emu_hosts_of_node(const struct emu_domain *domain, uint32_t node_index);
/* Is the target of a port's command on another host? */
bool emu_domain_is_elsewhere(const struct emu_domain *domain, uint32_t address);

/* ---- people ---- */

/* A process that may use the domain: its owner's, or root's. */
bool emu_domain_may_use(const struct emu_domain *domain, const struct ucred *peer);
/* Node of a process: that of its rank, the one it names, or the first of a domain it may use. */
uint32_t emu_place_of(struct emu_server *server, const struct ucred *peer, uint32_t nid_wanted);

#endif
