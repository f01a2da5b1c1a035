/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of domains and of their members. They also answer what launchers and ranks ask of them (emu_domains_part).
 */
#ifndef EMUNIC_DAEMON_CORE_DOMAIN_LIFE_H
#define EMUNIC_DAEMON_CORE_DOMAIN_LIFE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "emunic/daemon/core/part.h"

struct emu_connection;
struct emu_domain;
struct emu_member;

extern const struct emu_part emu_domains_part;

struct emu_domain_spec {
    uint32_t ptag;
    uint32_t cookie;
    uid_t owner_uid;
    uint32_t member_limit;
    uint32_t n_ranks;
    const uint32_t *rank_nids;
    const uint32_t *rank_hosts; /* NULL: all are here */
    uint32_t common_number;     /* 0: a domain of this host alone */
    uint32_t flags;
    uint64_t begin_after_ps; /* see struct emu_domain_job */
};

int emu_domain_create(struct emu_server *server, const struct emu_domain_spec *spec, struct emu_domain **domain_out);
/* Closes the domain. signal != 0: sends it to its processes, and SIGKILL two seconds later to what is left. */
void emu_domain_end(struct emu_server *server, struct emu_domain *domain, int signal);
void emu_domain_destroy(struct emu_server *server, struct emu_domain *domain);
/* Routed or direct, as its making, an order and its faults want. */
void emu_domain_set_path(struct emu_domain *domain);
/* Ends what is due. Returns when to look again (ns), or UINT64_MAX. */
uint64_t emu_domain_reap(struct emu_server *server, uint64_t now_ns);
/* The connection's process as a member; made when it is new. */
int emu_member_get(struct emu_domain *domain, const struct emu_connection *connection, struct emu_member **member_out);
void emu_member_destroy(struct emu_server *server, struct emu_member *member);

#endif
