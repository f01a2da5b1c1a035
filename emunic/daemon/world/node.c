/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of nodes.
 */
#include "emunic/daemon/world/node.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/daemon/world/server.h"
#include "emunic/engine/amo_cache.h"

struct emu_node *emu_node_of(struct emu_server *server, uint32_t nid)
{
    if (!server->nodes[nid]) {
        server->nodes[nid] = calloc(1, sizeof(struct emu_node));
        if (server->nodes[nid]) {
            server->nodes[nid]->mdhs[0] = (struct emu_mdh){ .turns = 1, .is_dedicated = true }; /* never handed out */
            server->nodes[nid]->next = 1;
        }
    }
    return server->nodes[nid];
}

void emu_node_destroy(struct emu_node *node)
{
    if (!node)
        return;
    emu_amo_cache_destroy(node->amo_cache);
    free(node);
}

bool emu_amo_caches_are_used(const struct emu_server *server)
{
    const struct emu_nic_params *nic = emu_machine_nic(server->machine);

    return nic->amo_cache != EMU_AMO_CACHE_OFF && nic->amo_cache_entries > 0;
}

int emu_amo_cache_of(struct emu_server *server, uint32_t nid, struct emu_amo_cache **cache_out)
{
    const struct emu_nic_params *nic = emu_machine_nic(server->machine);
    struct emu_node *node;

    *cache_out = NULL;
    if (!emu_amo_caches_are_used(server))
        return 0;
    node = emu_node_of(server, nid);
    if (node && !node->amo_cache)
        node->amo_cache = emu_amo_cache_create(nic->amo_cache == EMU_AMO_CACHE_LAZY, nic->amo_cache_entries);
    if (!node || !node->amo_cache)
        return -ENOMEM;
    *cache_out = node->amo_cache;
    return 0;
}
