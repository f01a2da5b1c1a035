/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look-ups about nodes of domains, and about people.
 */
#include "emunic/daemon/world/domain.h"

#include <sys/socket.h>
#include <unistd.h>

#include "emunic/daemon/world/lookups.h"

/* ---- nodes ---- */

uint32_t emu_domain_node_of(const struct emu_domain *domain, uint32_t nid)
{
    const struct emu_table_node *nodes = emu_table_nodes(domain->table);
    uint32_t low = 0;
    uint32_t high = domain->n_nodes;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (nodes[middle].nid < nid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < domain->n_nodes && nodes[low].nid == nid ? low : EMU_NID_NONE;
}

uint32_t emu_domain_first_here(const struct emu_domain *domain)
{
    const struct emu_table_node *nodes = emu_table_nodes(domain->table);

    for (uint32_t i = 0; i < domain->n_nodes; i++) {
        if (nodes[i].host == EMU_NODE_HERE)
            return i;
    }
    return EMU_NID_NONE;
}

uint32_t emu_domain_nid_at(const struct emu_domain *domain, uint32_t address)
{
    uint32_t node = emu_table_node_index(domain->table, address);

    return node < domain->n_nodes ? emu_table_nodes(domain->table)[node].nid : EMU_NID_NONE;
}

uint32_t emu_hosts_of_node(const struct emu_domain *domain, uint32_t node_index)
{
    uint32_t host = emu_table_nodes(domain->table)[node_index].host;

    return host == EMU_NODE_HERE ? domain->own_host : host - 1;
}

bool emu_domain_is_elsewhere(const struct emu_domain *domain, uint32_t address)
{
    uint32_t node = emu_table_node_index(domain->table, address);

    return node < domain->n_nodes && emu_table_nodes(domain->table)[node].host != EMU_NODE_HERE;
}

/* ---- people ---- */

bool emu_domain_may_use(const struct emu_domain *domain, const struct ucred *peer)
{
    return peer->uid == domain->owner_uid || peer->uid == 0;
}

/* The newest domain that a process has a node in by its rank, or NULL. */
static const struct emu_member *ranked_member(struct emu_server *server, pid_t pid)
{
    const struct emu_member *found = NULL;
    const struct emu_member *member;

    for (member = emu_member_of(server, pid); member; member = emu_member_of_older(member)) {
        if (member->node_index != EMU_NID_NONE && (!found || member->domain->id > found->domain->id))
            found = member;
    }
    return found;
}

uint32_t emu_place_of(struct emu_server *server, const struct ucred *peer, uint32_t nid_wanted)
{
    const struct emu_member *member = ranked_member(server, peer->pid);
    const struct emu_domain *domain;

    if (member)
        return emu_table_nodes(member->domain->table)[member->node_index].nid;
    if (nid_wanted < server->n_nids)
        return nid_wanted;
    domain = emu_domain_here(server, peer->uid);
    return domain ? emu_table_nodes(domain->table)[emu_domain_first_here(domain)].nid : 0;
}
