/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction trees over several hosts: what goes between their emunics. On the server's thread; a machine of one host
 * has none of it.
 */
#ifndef EMUNIC_DAEMON_CE_CE_HOSTS_H
#define EMUNIC_DAEMON_CE_CE_HOSTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/daemon/world/numbers.h"

struct emu_ce_owed;
struct emu_ce_wait;
struct emu_connection;
struct emu_domain;
struct emu_server;

/* Of a server with several hosts. */
struct emu_ce_hosts {
    LIST_HEAD(, emu_ce_wait) waits;     /* owned: requests that wait for other hosts */
    struct emu_numbers waits_by_number; /* of those that were announced */
    struct emu_numbers posts;           /* contributions to engines of other hosts */
    struct emu_ce_owed *owed;           /* owned: acknowledgements that wait for a look at the clients */
    uint32_t n_owed;
    uint32_t owed_room;
};

int emu_ce_hosts_create(struct emu_server *server);
void emu_ce_hosts_destroy(struct emu_server *server);

/* A domain was made, or has another number now. */
void emu_ce_domain_begins(struct emu_server *server, struct emu_domain *domain);
/* The domain ends; its ports have gone. */
void emu_ce_drop_domain(struct emu_server *server, struct emu_domain *domain);
/* The connection waits no longer. */
void emu_ce_forget(struct emu_connection *connection);

/* All that clients have done so far, or that has become of them, was taken in. */
void emu_ce_looked(struct emu_server *server);

/* For the part. False: the message makes no sense. */
bool emu_ce_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
void emu_ce_host_up(struct emu_server *server, uint32_t host);
void emu_ce_host_down(struct emu_server *server, uint32_t host);

#endif
