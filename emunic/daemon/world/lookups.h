/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Domains, members and ports by their names: the indexes behind emu_domain_find() and its neighbours. Who makes an
 * object, or changes its name, tells them here.
 */
#ifndef EMUNIC_DAEMON_WORLD_LOOKUPS_H
#define EMUNIC_DAEMON_WORLD_LOOKUPS_H

#include <stdint.h>
#include <sys/types.h>

struct emu_domain;
struct emu_member;
struct emu_port_end;
struct emu_server;

/* -ENOMEM. */
int emu_lookups_create(struct emu_server *server);
/* All objects have gone. */
void emu_lookups_destroy(struct emu_server *server);

/* Under its cookie, its owner, its tag, and its common number if it has one. -ENOMEM. */
int emu_lookups_add_domain(struct emu_server *server, struct emu_domain *domain);
/* It has a node here. */
void emu_lookups_add_here(struct emu_domain *domain);
/* One that was never added: nothing. */
void emu_lookups_remove_domain(struct emu_domain *domain);
/* The domain has another common number now; 0: none. */
void emu_lookups_renumber(struct emu_domain *domain, uint32_t common_number);
void emu_lookups_add_member(struct emu_member *member);
void emu_lookups_remove_member(struct emu_member *member);
void emu_lookups_add_port(struct emu_port_end *port);
/* One that was never added: nothing. */
void emu_lookups_remove_port(struct emu_port_end *port);

/* Each the newest one, and the one made before it; NULL: none. */

/* Domains of a user. */
struct emu_domain *emu_domain_of_owner(struct emu_server *server, uid_t uid);
/* Those with a node here that the user owns; root may use any. */
struct emu_domain *emu_domain_here(struct emu_server *server, uid_t uid);
/* Memberships of a process. */
struct emu_member *emu_member_of(struct emu_server *server, pid_t pid);
struct emu_member *emu_member_of_older(const struct emu_member *member);
/* Ports of a domain at that address. */
struct emu_port_end *emu_port_end_at(const struct emu_domain *domain, uint32_t nid, uint32_t instance_id);
struct emu_port_end *emu_port_end_at_older(const struct emu_port_end *port);

/* Domains with that tag: the oldest one, and the one made after it; NULL: no more. */
struct emu_domain *emu_domain_of_tag(struct emu_server *server, uint32_t ptag);
struct emu_domain *emu_domain_of_tag_newer(const struct emu_domain *domain);

#endif
