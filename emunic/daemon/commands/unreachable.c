/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands whose target is out of reach while something in the network is broken.
 *
 * One whose target (or the way back) cannot be reached ends as a packet lost on the machine does: status "network" at
 * its initiator; a short message has used up its attempts. The library's own writes (credits, greetings, voids in place
 * of lost messages) end nobody's transaction, so they are kept and made when there is a way again: a channel outlives
 * the fault.
 * Source: spec/machines.md 2.4.
 */
#include "emunic/daemon/commands/unreachable.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/abi/event.h"
#include "emunic/daemon/ce/ce_trees.h"
#include "emunic/daemon/commands/datapath.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/ways.h"

#define KEPT_MAX 4096u /* writes of a port: more mailboxes than that lose some */

/* Writes that wait for the network to be mended. */
struct kept {
    struct emu_cmd *writes; /* owned */
    uint32_t n;
};

static struct kept *kept_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_KEPT];
}

/* A small put whose end nobody hears of. */
static bool is_own_write(const struct emu_cmd *cmd)
{
    return cmd->op == EMU_OP_PUT && (cmd->flags & EMU_CMD_INLINE) != 0 && cmd->source_cq == EMU_CQ_NONE;
}

/* The newest for each place. False: no room. */
static bool keep(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_cmd *more;

    for (uint32_t i = 0; i < kept_of(port)->n; i++) {
        struct emu_cmd *old = &kept_of(port)->writes[i];

        if (old->remote_nid == cmd->remote_nid && old->mdh == cmd->mdh && old->remote_addr == cmd->remote_addr) {
            *old = *cmd;
            return true;
        }
    }
    if (kept_of(port)->n == KEPT_MAX)
        return false;
    more = realloc(kept_of(port)->writes, (kept_of(port)->n + 1) * sizeof(*more));
    if (!more)
        return false;
    kept_of(port)->writes = more;
    kept_of(port)->writes[kept_of(port)->n++] = *cmd;
    return true;
}

/* A contribution goes to its engine's node; one without an engine is for the engine's code to refuse. */
static uint32_t target_of(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t nid = emu_domain_nid_at(port->domain, cmd->remote_nid);

    if (cmd->op != EMU_OP_CE || emu_port_end_is_elsewhere(port, cmd->remote_nid))
        return nid;
    return emu_ce_owner(port, cmd) ? nid : EMU_NID_NONE;
}

bool emu_unreachable_passes(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t dst_nid = target_of(port, cmd);

    /* An address that is none is the engine's to refuse. */
    if (dst_nid == EMU_NID_NONE || emu_network_reaches(port->server, port->nid, dst_nid))
        return true;
    if (is_own_write(cmd) && keep(port, cmd))
        return false;
    emu_fault_end_command(port, cmd, cmd->attempts > 0 ? EMU_STATUS_RETRANSMIT_LIMIT : EMU_STATUS_NETWORK,
                          EMU_ERROR_NO_ROUTE);
    return false;
}

/* There is a way again. */
static void make_kept_writes(struct emu_port_end *port)
{
    struct emu_cmd *kept = kept_of(port)->writes;
    uint32_t n = kept_of(port)->n;

    kept_of(port)->writes = NULL;
    kept_of(port)->n = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (emu_unreachable_passes(port, &kept[i])) /* else it is kept once more */
            emu_datapath_run(port, &kept[i]);
    }
    free(kept);
}

/* ---- for the part ---- */

void emu_unreachable_released(struct emu_server *server)
{
    struct emu_port_end *port;

    LIST_FOREACH(port, &server->ports, link) {
        if (kept_of(port)->n > 0)
            make_kept_writes(port);
    }
}

int emu_unreachable_begin_port(struct emu_port_end *port)
{
    port->slots[EMU_PORT_KEPT] = calloc(1, sizeof(struct kept));
    return port->slots[EMU_PORT_KEPT] ? 0 : -ENOMEM;
}

void emu_unreachable_end_port(struct emu_port_end *port)
{
    if (kept_of(port))
        free(kept_of(port)->writes);
    free(kept_of(port));
    port->slots[EMU_PORT_KEPT] = NULL;
}
