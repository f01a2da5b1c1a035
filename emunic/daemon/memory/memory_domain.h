/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations: what a node has of them, and what emunic keeps of each.
 */
#ifndef EMUNIC_DAEMON_MEMORY_MEMORY_DOMAIN_H
#define EMUNIC_DAEMON_MEMORY_MEMORY_DOMAIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/control.h"
#include "emunic/abi/table.h"
#include "emunic/base/socket.h"
#include "emunic/daemon/resources/resources.h"
#include "emunic/engine/memory.h"

struct emu_domain;
struct emu_file;
struct emu_injection;
struct emu_member;
struct emu_port_end;
struct emu_segment_list;
struct emu_server;

/* One memory domain, in the list of its port. The rest of it is in the domain table. */
struct emu_md_end {
    LIST_ENTRY(emu_md_end) link;
    uint16_t mdh;
    bool is_updatable; /* was reserved before its pages were there */
    bool is_reserved;  /* still is: waits for its first update */
    bool is_virtual;
    uint16_t vmdh;                      /* if it is */
    struct emu_translation translation; /* that it takes */
    struct emu_segment_list *segments;  /* owned by the domain's table of them; NULL: one plain region */
};

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
};

/* fds: of the request; what is wanted of them is taken. */
int emu_md_register(struct emu_port_end *port, struct emu_msg_memory *memory, struct emu_fds *fds);
/* Makes a memory domain invisible; emu_md_release() lets its number be used again. */
int emu_md_deregister(struct emu_port_end *port, uint16_t mdh, uint16_t generation);
void emu_md_release(struct emu_server *server, struct emu_domain *domain, uint32_t nid, uint16_t mdh);
void emu_md_drop_cq(struct emu_port_end *port, uint32_t cq);
int emu_md_reserve_virtual(struct emu_port_end *port, uint32_t n);
int emu_md_update(struct emu_port_end *port, const struct emu_msg_memory *memory);
int emu_md_add_segments(struct emu_port_end *port, const struct emu_msg_segments *segments);
/* For views: a segmented domain of the initiator's process. */
int emu_md_local(void *port, uint16_t mdh, uint16_t generation, struct emu_memory *mem_out);
/* Record of a node's handles, made when first needed; NULL: no memory. */
struct emu_node *emu_node_of(struct emu_server *server, uint32_t nid);
/* All of a port: their numbers (owned by the caller), to be released later. */
uint16_t *emu_md_drop_all(struct emu_port_end *port, uint32_t *n_out);
/* The space file of a process. Descriptor (emunic's own) or negative errno. */
int emu_space_get(struct emu_member *member);
/* Has the process its space file mapped at all of these addresses now? Then how they are reached. */
bool emu_space_find(struct emu_member *member, uint64_t addr, uint64_t length_bytes, bool for_writing,
                    struct emu_memory *mem_out);
/* For views: how to reach the memory of a live domain. 0 or enum emu_status. */
int emu_md_reach(void *port, const struct emu_table_md *md, uint8_t op, struct emu_memory *mem_out);
int emu_md_reach_in(const struct emu_domain *domain, const struct emu_table_md *md, struct emu_memory *mem_out);

#endif
