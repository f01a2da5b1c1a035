/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that change the machine: fault rules, the network, jobs. On the server's thread.
 *
 * A part registers a row for each kind that it carries out (emu_part.changes), and one for what they have led to
 * (emu_part.states).
 */
#ifndef EMUNIC_DAEMON_ORDERS_ORDER_REQUEST_H
#define EMUNIC_DAEMON_ORDERS_ORDER_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "emunic/abi/control.h"
#include "emunic/abi/fault.h"
#include "emunic/base/socket.h"
#include "emunic/daemon/world/word_list.h"

struct emu_connection;
struct emu_domain;
struct emu_server;

struct emu_change {
    const struct emu_change_row *row;
    uint32_t domain;    /* number that all hosts know; 0: that of every domain, or the request finds its own */
    uint32_t domain_id; /* for a domain of this host alone; 0 */
    uid_t uid;          /* of who asks */
    bool declares;      /* JOB_CONFIGURE has made its domain */
    union {
        struct emu_msg_fault fault;
        struct emu_msg_network network;
        struct emu_msg_job job;
        uint32_t flags; /* DATAPATH */
    };
    struct emu_fault_rule *rules;  /* owned: fault.n_rules */
    struct emu_ntt_entry *entries; /* owned: job.group_size */
};

/* How a change is carried out. */
struct emu_change_order {
    bool is_ordered; /* the head has done it already: only what cannot be done here is refused */
    uint32_t origin; /* host of who asks */
    uint64_t number; /* of a suspension, whose end emu_order_ended() is told with it */
};

struct emu_change_row {
    uint16_t type; /* enum emu_msg_type */
    /* From the admin socket. 0 or negative errno. */
    int (*read)(struct emu_connection *connection, const struct emu_msg *msg, const struct emu_fds *fds,
                struct emu_change *change);
    /* To another host, and from it. False: it makes no sense, or there is no memory. */
    void (*put)(const struct emu_change *change, struct emu_word_list *list);
    bool (*take)(const struct emu_server *server, struct emu_words *words, struct emu_change *change);
    /*
     * Does it here; the head fills in what others need to do the same. Result as at the admin socket, or
     * EMU_DEFERRED.
     */
    int (*act)(struct emu_server *server, struct emu_change *change, const struct emu_change_order *order);
    /* Is it about a domain that no other host knows? NULL: only if it names one. */
    bool (*is_own)(struct emu_server *server, const struct emu_change *change);
    /* The value that the answer has beside the result, and its place in the reply. NULL: none. */
    uint32_t (*value)(struct emu_server *server, const struct emu_change *change);
    void (*reply)(uint32_t value, struct emu_msg *reply);
};

/* What changes have led to, for a host that was away. */
struct emu_state_row {
    uint16_t type; /* enum emu_msg_type by which it travels */
    bool is_of_domain;
    /* domain: NULL unless it is of one. */
    void (*put)(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *list);
    /* False: it makes no sense. */
    bool (*take)(struct emu_server *server, struct emu_domain *domain, struct emu_words *words);
};

/* Who carries out changes of that type; NULL: it is no such type. */
const struct emu_change_row *emu_change_row_of(const struct emu_server *server, uint16_t type);
/* From the admin socket. 0 or negative errno. */
int emu_change_read(struct emu_connection *connection, const struct emu_msg *msg, const struct emu_fds *fds,
                    struct emu_change **change_out);
/* From another host. NULL: it makes no sense, or there is no memory. */
struct emu_change *emu_change_parse(const struct emu_server *server, uint16_t type, struct emu_words *words);
/* To another host. */
void emu_change_put(const struct emu_change *change, struct emu_word_list *list);
void emu_change_free(struct emu_change *change);
bool emu_change_is_own(struct emu_server *server, const struct emu_change *change);

/* ---- for rows ---- */

/* A table that the caller has sent along: `size` bytes a row. */
int emu_change_read_table(const struct emu_fds *fds, uint32_t n, uint32_t n_max, size_t size, void **table_out);
/* Notes the number by which all hosts know the domain that is meant. False: there is none. */
bool emu_change_name_domain(struct emu_server *server, struct emu_change *change, uint32_t domain_id);
bool emu_change_means(const struct emu_change *change, const struct emu_domain *domain);

#endif
