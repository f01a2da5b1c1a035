/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engines.
 */
#ifndef EMUNIC_DAEMON_CE_CE_TREES_H
#define EMUNIC_DAEMON_CE_CE_TREES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/daemon/core/part.h"

struct emu_ce_post;
struct emu_cmd;
struct emu_domain;
struct emu_msg;
struct emu_port_end;
struct emu_server;

/* What a port has under way to engines of other hosts. */
struct emu_ce_port {
    LIST_HEAD(, emu_ce_post) posts; /* owned */
    uint32_t n_asked;               /* of them not taken yet */
};

extern const struct emu_part emu_ce_part;

/*
 * A contribution: it is taken or refused, at once unless its engine is on another host; either way its events and, when
 * refused, its result are delivered.
 * fault: EMU_STATUS_OK, or what happens to it on the way, which fails its reduction for all leaves.
 */
void emu_ce_post(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned fault);
/* Is there room for a contribution? If not, it waits in its ring. */
bool emu_ce_may_post(const struct emu_port_end *port, const struct emu_cmd *cmd);
/* Who owns the engine that a contribution goes to; NULL: there is none on this host. */
struct emu_port_end *emu_ce_owner(const struct emu_port_end *port, const struct emu_cmd *cmd);
/* Engines of a domain on a node. */
uint32_t emu_ce_in_use(const struct emu_domain *domain, uint32_t nid);

#endif
