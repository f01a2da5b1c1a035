/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes: the memory domain handles of each, of any domain.
 */
#ifndef EMUNIC_DAEMON_WORLD_NODE_H
#define EMUNIC_DAEMON_WORLD_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/table.h"

struct emu_amo_cache;
struct emu_file;
struct emu_injection;
struct emu_server;

/* A handle number of a node. */
struct emu_mdh {
    uint8_t turns;      /* a bit for each memory domain that has it; 0: free */
    bool is_dedicated;  /* nobody else may have it */
    uint32_t domain_id; /* whose it is */
};

/* Memory domains of one node, of any domain. */
struct emu_node {
    struct emu_mdh mdhs[EMU_MDH_COUNT];
    uint16_t generation[EMU_MD_COUNT];
    struct emu_file *file[EMU_MD_COUNT]; /* that the memory lies in, until its number is released; or NULL */
    uint16_t next;                       /* MDH: where to look; delays reuse */
    uint16_t next_shared;                /* likewise for one that can be shared */
    uint32_t n_used;                     /* MDHs */
    uint32_t n_promised;                 /* not used yet, but kept for blocks of virtual handles */
    struct emu_injection *injection;     /* owned; NULL: nobody has asked */
    struct emu_amo_cache *amo_cache;     /* owned; NULL: the machine uses none, or nobody has attached */
};

/* Record of a node's handles, made when first needed; NULL: no memory. */
struct emu_node *emu_node_of(struct emu_server *server, uint32_t nid);
/* NULL is fine. */
void emu_node_destroy(struct emu_node *node);

/* Do cached atomics use the caches of the machine's NICs? */
bool emu_amo_caches_are_used(const struct emu_server *server);
/* The cache of a node's NIC, made when first needed. 0, with NULL where none is used; -ENOMEM. */
int emu_amo_cache_of(struct emu_server *server, uint32_t nid, struct emu_amo_cache **cache_out);

#endif
