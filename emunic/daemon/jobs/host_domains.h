/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains that all hosts of the machine have. On the server's thread; without other hosts nothing happens.
 */
#ifndef EMUNIC_DAEMON_JOBS_HOST_DOMAINS_H
#define EMUNIC_DAEMON_JOBS_HOST_DOMAINS_H

#include <stdbool.h>
#include <stdint.h>

struct emu_connection;
struct emu_domain;
struct emu_domain_spec;
struct emu_msg;
struct emu_server;

int emu_host_domains_create(struct emu_server *server);
void emu_host_domains_destroy(struct emu_server *server);

/*
 * Makes a domain here and on all other hosts; the head only. 0: made, the others have been told; -EPERM: this is not
 * the head; -EHOSTUNREACH: a host that has nodes of it is not up, and must be. One that comes up later is told then.
 */
int emu_host_domains_make(struct emu_server *server, const struct emu_domain_spec *spec, bool must_be_up,
                          struct emu_domain **domain_out);
/*
 * The connection's request `reply` is answered when all hosts have made the domain and those with nodes of it have
 * sessions with each other, or one has failed; then it ends. -EHOSTUNREACH: a host was lost; or, with a
 * descriptor of a text that says which, one does not reach another within the peer timeout. EMU_DEFERRED, 0 (nobody has
 * to be asked), -ENOMEM.
 */
int emu_host_domains_await(struct emu_connection *connection, const struct emu_domain *domain,
                           const struct emu_msg *reply);
/* The domain ends: tells the others if this is the head. */
void emu_host_domains_end(struct emu_server *server, const struct emu_domain *domain, int signal);
/* The connection waits no longer. */
void emu_host_domains_forget(struct emu_server *server, const struct emu_connection *connection);

/* Ends what has waited too long; in each round. */
void emu_host_domains_round(struct emu_server *server);

/* For hosts.c. False: the message makes no sense. */
bool emu_host_domains_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
void emu_host_domains_up(struct emu_server *server, uint32_t host);
void emu_host_domains_down(struct emu_server *server, uint32_t host);

#endif
