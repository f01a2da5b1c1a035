/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Administration of the machine: whoever asks the emunic of one host asks all of them. On the server's thread; while
 * this host is alone everything is done at once.
 */
#ifndef EMUNIC_DAEMON_ORDERS_ORDERS_H
#define EMUNIC_DAEMON_ORDERS_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/base/socket.h"

struct emu_connection;
struct emu_domain;
struct emu_msg;
struct emu_msg_network;
struct emu_server;

int emu_admin_create(struct emu_server *server);
void emu_admin_destroy(struct emu_server *server);

/*
 * A request of the admin socket that changes the machine (admin_request.h). Its result, or EMU_DEFERRED: the answer
 * comes when all hosts that are up have done the same, with a descriptor of a text if some have not: a line for each,
 * "NAME: why". -EHOSTUNREACH: the head is not up, is lost meanwhile, or does not answer.
 */
int emu_admin_answer(struct emu_connection *connection, const struct emu_msg *msg, const struct emu_fds *fds);
/* The connection waits no longer. A suspension that it has asked for ends. */
void emu_admin_forget(struct emu_server *server, const struct emu_connection *connection);
/* The end of a suspension that was begun with this order. */
void emu_admin_suspended(struct emu_server *server, uint64_t order, int result);
/* A change of the network that is due, on all hosts. 0 or negative errno: see emu_network_change(). */
int emu_admin_change_network(struct emu_server *server, const struct emu_msg_network *change);
/* The head has released an entry of the translation table. */
void emu_admin_release_ntt(struct emu_server *server, uint32_t entry);
/* To a host that was told of the domain just before: its rules, limits and all. */
void emu_admin_tell_domain(struct emu_server *server, uint32_t host, const struct emu_domain *domain);
/* Ends what has waited too long. */
void emu_admin_round(struct emu_server *server);
/* When to look again, by emu_clock_ns(); UINT64_MAX: nothing waits. */
uint64_t emu_admin_next_ns(const struct emu_server *server);

/* For hosts.c. False: the message makes no sense. */
bool emu_admin_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
/* Before the head tells it of domains. */
void emu_admin_host_up(struct emu_server *server, uint32_t host);
void emu_admin_host_down(struct emu_server *server, uint32_t host);

#endif
