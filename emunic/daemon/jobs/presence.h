/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Declared jobs end with their last process, on whatever host: the other hosts tell the head whether they have any. On
 * the server's thread; without other hosts everything is here.
 */
#ifndef EMUNIC_DAEMON_JOBS_PRESENCE_H
#define EMUNIC_DAEMON_JOBS_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

struct emu_domain;
struct emu_server;
struct emu_list;

/* A process or a NIC handle of the domain has come or gone here. Ends a declared job that has none any more. */
void emu_presence_change(struct emu_server *server, struct emu_domain *domain);
/* Tells the head again: it may have forgotten. */
void emu_presence_tell(struct emu_server *server, struct emu_domain *domain);
/* The head: has the domain NIC handles on other hosts? */
bool emu_presence_has_ports(const struct emu_server *server, const struct emu_domain *domain);

/* For the part. False: the list makes no sense. */
bool emu_presence_hear(struct emu_server *server, uint32_t host, struct emu_list *list);
void emu_presence_host_down(struct emu_server *server, uint32_t host);

#endif
