/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records of nodes.
 */
#include "emunic/daemon/world/node.h"

#include <stdlib.h>

#include "emunic/daemon/world/server.h"

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
