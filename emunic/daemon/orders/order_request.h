/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that change the machine: fault rules, the network, jobs. On the server's thread.
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

struct emu_admin_request {
    uint16_t type;      /* enum emu_msg_type */
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

/* Is it the type of such a request? */
bool emu_admin_is_change(uint16_t type);
/* From the admin socket. 0 or negative errno. */
int emu_admin_request_read(struct emu_connection *connection, const struct emu_msg *msg, const struct emu_fds *fds,
                           struct emu_admin_request **request_out);
/* From another host, and to it. NULL: it makes no sense, or there is no memory. */
struct emu_admin_request *emu_admin_request_parse(const struct emu_server *server, uint16_t type,
                                                  struct emu_words *words);
void emu_admin_request_put(const struct emu_admin_request *request, struct emu_word_list *list);
void emu_admin_request_free(struct emu_admin_request *request);
/* Is it about a domain that no other host knows? */
bool emu_admin_is_own(struct emu_server *server, const struct emu_admin_request *request);

/*
 * Does it here. is_ordered: the head has done it already, so that only what cannot be done here is refused. The head
 * fills in what others need to do the same. order: of a suspension, whose end emu_admin_suspended() is told with it.
 * origin: host of who asks. Result as at the admin socket, EMU_DEFERRED too.
 */
int emu_admin_request_do(struct emu_server *server, struct emu_admin_request *request, bool is_ordered, uint32_t origin,
                         uint64_t order);
/* What the answer tells beside the result, and how it gets into the reply. */
uint32_t emu_admin_request_value(struct emu_server *server, const struct emu_admin_request *request);
void emu_admin_request_reply(uint32_t value, struct emu_msg *reply);

#endif
