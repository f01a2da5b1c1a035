/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engines: what ce_trees.c (rounds), ce_config.c (life), ce_leaves.c (contributions, results) and ce_hosts.c
 * (other hosts) share.
 */
#ifndef EMUNIC_DAEMON_CE_CE_INNER_H
#define EMUNIC_DAEMON_CE_CE_INNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/ce.h"
#include "emunic/abi/host_ce.h"
#include "emunic/daemon/ce/ce_trees.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"

struct emu_ce_hosts;
struct emu_ce_trip;
struct emu_ce_wait;
struct emu_connection;

/* Engines of this host. */
struct emu_ce_engines {
    struct emu_ce_end **at;         /* owned: by nid and number, made when first used; borrowed contents */
    TAILQ_HEAD(, emu_ce_end) work;  /* to look at */
    uint64_t last_version;          /* of their configurations */
    LIST_HEAD(, emu_ce_trip) trips; /* in virtual time; each belongs to its operation there */
};

/* What a domain has of them. */
struct emu_ce_domain {
    LIST_HEAD(, emu_ce_end) engines; /* owned: of its ports */
    uint32_t *hosts;                 /* owned: other hosts that its reduction trees can reach */
    uint32_t n_hosts;
    struct emu_ce_end **far; /* owned: images of those of other hosts, by node and number; NULL while none */
};

static inline struct emu_ce_engines *emu_ce_engines_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_CE];
}

/* NULL while this host is alone. */
static inline struct emu_ce_hosts *emu_ce_hosts_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_CE_HOSTS];
}

static inline struct emu_ce_domain *emu_ce_domain_of(const struct emu_domain *domain)
{
    return domain->slots[EMU_DOMAIN_CE];
}

static inline struct emu_ce_port *emu_ce_port_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_CE];
}

/* What a leaf has posted. */
struct emu_ce_contribution {
    struct emu_ce_value value;
    uint32_t host; /* the leaf's */
    /* of a leaf of this host */
    uint32_t port;
    uint32_t port_generation;
    uint64_t result_addr;
    uint16_t mdh;
    uint16_t md_generation;
    /* of one of another host */
    uint64_t number; /* there; 0: the host is lost */
    uint64_t poster; /* port, there */
};

/* Who posts as a leaf. */
struct emu_ce_leaf {
    uint32_t host;
    uint32_t nid;
    uint32_t instance_id;
    uint32_t pid;    /* there; 0: nobody has posted yet */
    uint64_t poster; /* its port, there */
};

struct emu_ce_child {
    struct emu_ce_link link;
    struct emu_ce_leaf leaf; /* that has posted last since the configuration */
    uint32_t first;          /* of the ring of waiting ones */
    uint32_t n_waiting;
    struct emu_ce_contribution *waiting; /* owned, EMU_CE_WAITING_MAX; leaves of an engine of ours only */
    uint64_t told_version;               /* an engine of another host that is to hear that we are broken; 0 none */
};

/* What a program wants an engine to be. */
struct emu_ce_plan {
    struct emu_ce_link parent;
    struct emu_ce_child *children; /* owned, by child id */
    uint32_t n_children;
    uint32_t cq;
    enum emu_ce_rounding rounding;
    bool tells_always;
};

/* Children of a configuration that is being sent. */
struct emu_ce_staging {
    struct emu_ce_link links[EMU_CE_CHILDREN_MAX];
    uint32_t n;
};

/* What others were told of an engine. */
struct emu_ce_told {
    uint64_t announced;       /* number of the announcement to other hosts that is to be acknowledged; 0 none */
    uint64_t up;              /* version of the parent, on another host, that may hold `up`; 0 none does */
    bool is_up_late;          /* in virtual time: `up` is on its way to the parent */
    bool is_down_late;        /* likewise: `down` has not come from the parent yet */
    struct emu_ce_trip *trip; /* borrowed: the one that is under way; or NULL */
};

/* An engine of this host, or what is known of one of another host. */
struct emu_ce_end {
    TAILQ_ENTRY(emu_ce_end) work_link; /* while is_queued */
    LIST_ENTRY(emu_ce_end) link;       /* in its domain's list; ours only */
    struct emu_ce_end *next_walked;    /* while a walk goes on */
    struct emu_server *server;         /* borrowed */
    struct emu_domain *domain;         /* borrowed */
    struct emu_port_end *port;         /* borrowed; NULL: of another host, or its port has gone before it */
    uint32_t nid;
    uint32_t ce_id;
    uint32_t host;
    bool is_far; /* of another host */
    bool is_queued;
    bool is_configured;
    bool has_up;
    bool has_down;
    bool is_wanted;   /* somebody above waits for this round; of a far one: it was told */
    bool is_leaving;  /* destroyed, but what becomes of its round is decided elsewhere */
    unsigned broken;  /* enum emu_status: why; 0 whole */
    uint64_t version; /* of its configuration; 0 none */
    struct emu_ce_told told;
    struct emu_ce_plan shape; /* as it was configured; of a far one its engines only */
    struct emu_ce_value up;   /* what the parent may take */
    struct emu_ce_value down; /* the result, not yet written to the leaves */
    struct emu_ce_staging staging;
    struct emu_ce_plan *plan; /* owned: comes when it is known what becomes of the round; or NULL */
    struct emu_ce_wait *wait; /* borrowed: waits for its end, or for the plan; or NULL */
};

static inline bool emu_ce_names(const struct emu_ce_link *link, const struct emu_ce_end *e)
{
    return link->type == EMU_CE_LINK_ENGINE && link->nid == e->nid && link->ce_id == e->ce_id;
}

/* ---- ce_trees.c ---- */

uint32_t emu_ce_per_node(const struct emu_server *server);
/* An engine of the domain, or NULL. Any numbers. */
struct emu_ce_end *emu_ce_find(struct emu_server *server, const struct emu_domain *domain, uint32_t nid,
                               uint32_t ce_id);
struct emu_ce_child *emu_ce_child_of(const struct emu_ce_end *e, uint8_t child_id);
/* Who it is, for a log line; NULL: nobody. */
#define EMU_CE_CHILD_TEXT 64
void emu_ce_describe_child(const struct emu_ce_child *c, char text[EMU_CE_CHILD_TEXT]);
/* Do both name each other so? */
bool emu_ce_is_child_of(const struct emu_ce_end *e, const struct emu_ce_end *parent);
/* Does `e` name the other one? */
bool emu_ce_has_link_to(const struct emu_ce_end *e, const struct emu_ce_end *other);
/* The next round of emu_ce_round() looks at it. Ours only. */
void emu_ce_queue(struct emu_ce_end *e);
/* Has all of our engines that have a link to this one looked at. */
void emu_ce_queue_those_who_name(const struct emu_ce_end *e);
/* What another host has decided may be what a broken engine of ours waits for. */
void emu_ce_queue_broken(const struct emu_domain *domain);
/* The result for everybody below. */
void emu_ce_decide(struct emu_ce_end *top, const struct emu_ce_value *result);
/* Marks all engines of a tree. What waits there is answered when they are looked at. */
void emu_ce_break_tree(struct emu_ce_end *start, unsigned cause);
/* Is it broken with a round about which an engine of another host may have decided already? */
bool emu_ce_is_in_doubt(const struct emu_ce_end *e);
/* Ends what a broken engine is doing, and tells so. */
void emu_ce_end_broken(struct emu_ce_end *e);
/* The round's result, if it is known: to the leaves, and the next round may begin. */
void emu_ce_deliver(struct emu_ce_end *e);

/* In virtual time: what was on its way up or down has come. */
void emu_ce_trip_ended(struct emu_ce_end *e);

/* Works on the trees for a while. Number of engines looked at. */
unsigned emu_ce_round(struct emu_server *server);
bool emu_ce_has_work(struct emu_server *server);

/* ---- ce_leaves.c ---- */

/* A contribution has come to its engine's node. */
void emu_ce_contribute(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned fault);
void emu_ce_write_result(struct emu_port_end *port, const struct emu_ce_contribution *c,
                         const struct emu_ce_value *result);

/* ---- ce_virtual.c ---- */

/* In virtual time: it is on its way. False: it happens at once, as in functional time. */
bool emu_ce_send_post(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned fault);
bool emu_ce_send_result(const struct emu_ce_end *e, struct emu_port_end *port, const struct emu_ce_contribution *c,
                        const struct emu_ce_value *result);
bool emu_ce_send_up(struct emu_ce_end *e);
bool emu_ce_send_down(const struct emu_ce_end *e, struct emu_ce_end *below);
/* The engine goes on without what is under way. */
void emu_ce_forget_trip(struct emu_ce_end *e);
void emu_ce_trips_leave(const struct emu_port_end *port);
/* The server ends: trips belong to virtual time alone, which ends later. */
void emu_ce_trips_end(const struct emu_server *server);

/* ---- ce_config.c ---- */

/*
 * Creating, configuring, destroying. 0, -EINVAL, -ENOSPC, -ENOMEM, -EOPNOTSUPP: this machine has no engines;
 * EMU_DEFERRED: answered when all hosts know of it.
 */
int emu_ce_answer(struct emu_request *request);
/* The port is going: its engines with it, and the trees that it is a leaf of are broken. */
void emu_ce_drop_port(struct emu_port_end *port);
void emu_ce_drop_cq(struct emu_port_end *port, uint32_t cq);

void emu_ce_free_children(struct emu_ce_child *children, uint32_t n_children);
/* Takes it away; it is in nobody's work any more. Whoever waits for that is answered. */
void emu_ce_remove(struct emu_ce_end *e);
/* It is broken, and what becomes of its round is known: ends that, and goes or becomes what it was to become. */
void emu_ce_end_doubt(struct emu_ce_end *e);

/* ---- ce_leaves.c ---- */

/* Answers the oldest contribution of a leaf. True: there was somebody to answer. */
bool emu_ce_answer_oldest(struct emu_ce_end *e, struct emu_ce_child *c, const struct emu_ce_value *result);
/* A contribution from another host. enum emu_status: taken, or why not. */
unsigned emu_ce_take_post(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                          const struct emu_host_ce *m);
/* What another host says of a contribution of ours. False: it makes no sense. */
bool emu_ce_post_taken(struct emu_server *server, uint32_t host, const struct emu_host_ce *m);
bool emu_ce_post_result(struct emu_server *server, uint32_t host, const struct emu_host_ce *m);
/* The host is lost: ends all contributions to it, and forgets who of it has posted here. */
void emu_ce_posts_lose_host(struct emu_server *server, const struct emu_domain *domain, uint32_t host);
/* The port is going: its contributions to other hosts, and its places in trees. */
void emu_ce_drop_posts(struct emu_port_end *port);
void emu_ce_drop_leaf(struct emu_port_end *port);
/* A port of another host has gone. */
void emu_ce_port_left(struct emu_domain *domain, uint32_t host, const struct emu_host_ce *m);

/* ---- ce_hosts.c ---- */

/* Are there other hosts that its trees can reach? */
bool emu_ce_spreads(const struct emu_server *server, const struct emu_domain *domain);
/* Host of a node of the domain; our own for what is none. */
uint32_t emu_ce_host_of(const struct emu_server *server, const struct emu_domain *domain, uint32_t nid);
/* 0; -ENOTCONN: the host is not up; -ENOMEM: it will not be any more. */
int emu_ce_send(struct emu_server *server, uint32_t host, uint32_t domain_number, const struct emu_host_ce *m);
void emu_ce_tell(struct emu_server *server, const struct emu_domain *domain, uint32_t host,
                 const struct emu_host_ce *m);
/* `e`, ours, is broken; and so is `to`, of another host, if that is its version. */
void emu_ce_tell_broken(const struct emu_ce_end *e, const struct emu_ce_link *to, uint64_t version);
/* WANT, UP, DOWN (value NULL for the first): ours to one of another host. */
void emu_ce_tell_neighbour(const struct emu_ce_end *e, const struct emu_ce_end *to, enum emu_host_ce_op op,
                           const struct emu_ce_value *value);
/* All other hosts hear what it is now, or that it is no more. */
void emu_ce_announce(struct emu_ce_end *e, enum emu_host_ce_op state_or_gone, struct emu_ce_wait *wait);
/* The port's leaf has gone. */
void emu_ce_tell_left(const struct emu_port_end *port, uint64_t poster, bool port_has_twin);

/* ---- ce_waits.c ---- */

/* A request that is answered when all other hosts know what it has changed. NULL: no memory. */
struct emu_ce_wait *emu_ce_wait_create(struct emu_connection *connection);
/* What it asked for has been done, or begun: EMU_DEFERRED, or its result, when nobody has to be waited for. */
int emu_ce_wait_begin(struct emu_ce_wait *wait, const struct emu_msg *reply, int result);
/* It will be announced later. `wait` may be NULL, here and in the next two. */
void emu_ce_wait_hold(struct emu_ce_wait *wait);
/* The number that it is announced by; 0: nobody has to acknowledge. */
uint64_t emu_ce_wait_announce(struct emu_ce_wait *wait);
/* It was announced; answers if nobody has to be waited for. */
void emu_ce_wait_check(struct emu_ce_wait *wait);
/* The host is to acknowledge. */
void emu_ce_wait_for(struct emu_ce_wait *wait, uint32_t host);
/* It has. False: it makes no sense. */
bool emu_ce_wait_known(struct emu_server *server, uint32_t host, uint64_t number);
/* Has the host said that it knows what was announced last? */
bool emu_ce_is_known_at(const struct emu_ce_end *e, uint32_t host);
/* Acknowledges what the host has announced by that number, after the next look at the clients; 0: nothing. */
void emu_ce_owe(struct emu_server *server, uint32_t host, uint32_t domain_number, uint64_t number);
void emu_ce_waits_host_down(struct emu_server *server, uint32_t host);
void emu_ce_waits_fini(struct emu_ce_hosts *hosts);

#endif
