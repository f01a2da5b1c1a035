/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look-ups about domains, their nodes and their members.
 */
#include "emunic/daemon/world/domain.h"

#include <sys/socket.h>

/* ---- finding ---- */

struct emu_domain *emu_domain_find(struct emu_server *server, uint32_t ptag, uint32_t cookie)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (!domain->is_ending && domain->cookie == cookie && (ptag == 255 || domain->ptag == ptag))
            return domain;
    }
    return NULL;
}

struct emu_domain *emu_hosts_find_domain(struct emu_server *server, uint32_t number)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (number != 0 && domain->common_number == number)
            return domain;
    }
    return NULL;
}

struct emu_member *emu_member_find(struct emu_domain *domain, pid_t pid)
{
    struct emu_member *member;

    LIST_FOREACH(member, &domain->members, link) {
        if (member->pid == pid)
            return member;
    }
    return NULL;
}

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

uint32_t emu_place_of(struct emu_server *server, const struct ucred *peer, uint32_t nid_wanted)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        struct emu_member *member = domain->table ? emu_member_find(domain, peer->pid) : NULL;

        if (member && member->node_index != EMU_NID_NONE)
            return emu_table_nodes(domain->table)[member->node_index].nid;
    }
    if (nid_wanted < server->n_nids)
        return nid_wanted;
    LIST_FOREACH(domain, &server->domains, link) {
        uint32_t node = domain->table ? emu_domain_first_here(domain) : EMU_NID_NONE;

        if (node != EMU_NID_NONE && emu_domain_may_use(domain, peer))
            return emu_table_nodes(domain->table)[node].nid;
    }
    return 0;
}
