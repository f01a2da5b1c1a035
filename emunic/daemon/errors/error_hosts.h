/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error events between hosts: a subscription hears of the errors of all. On the server's thread; without other hosts
 * nothing happens.
 */
#ifndef EMUNIC_DAEMON_ERRORS_ERROR_HOSTS_H
#define EMUNIC_DAEMON_ERRORS_ERROR_HOSTS_H

#include <stdbool.h>
#include <stdint.h>

struct emu_domain;
struct emu_error_record;
struct emu_server;
struct emu_list;

int emu_error_hosts_create(struct emu_server *server);
void emu_error_hosts_destroy(struct emu_server *server);

/* Does anybody on another host want to hear? */
bool emu_error_others_listen(const struct emu_server *server);
/* Tells those who do. */
void emu_error_tell_others(struct emu_server *server, const struct emu_domain *domain,
                           const struct emu_error_record *record);
/* Subscribers here listen from now on, or none does: tells a host. It says that it has heard, unless the token is 0. */
void emu_error_tell_listening(struct emu_server *server, uint32_t host, uint64_t token, bool listens);

/* For the part. False: the list makes no sense. */
bool emu_error_host_listens(struct emu_server *server, uint32_t host, struct emu_list *list);
bool emu_error_take_event(struct emu_server *server, uint32_t host, struct emu_list *list);
void emu_error_host_up(struct emu_server *server, uint32_t host);
void emu_error_host_down(struct emu_server *server, uint32_t host);

#endif
