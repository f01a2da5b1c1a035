/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory behind a handle: how emunic reaches it.
 */
#ifndef EMUNIC_DAEMON_WORLD_REACH_H
#define EMUNIC_DAEMON_WORLD_REACH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/abi/table.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/engine/memory.h"

struct emu_domain;
struct emu_maps;
struct emu_member;
struct emu_segment;
struct emu_segment_list;

/* One memory domain, in the list of its port. The rest of it is in the domain table. */
struct emu_md_end {
    LIST_ENTRY(emu_md_end) link;
    uint16_t mdh;
    bool is_updatable; /* was reserved before its pages were there */
    bool is_reserved;  /* still is: waits for its first update */
    bool is_virtual;
    uint16_t vmdh;                      /* if it is */
    struct emu_translation translation; /* that it takes */
    uint64_t n_promised;                /* pages of the space file that emunic may have to make */
    struct emu_segment_list *segments;  /* owned by the domain's table of them; NULL: one plain region */
};

/* For views: how to reach the memory of a live domain. 0 or enum emu_status. */
int emu_md_reach(void *port, const struct emu_table_md *md, uint8_t op, struct emu_memory *mem_out);
int emu_md_reach_in(const struct emu_domain *domain, const struct emu_table_md *md, struct emu_memory *mem_out);
/* For views: a segmented domain of the initiator's process. */
int emu_md_local(void *port, uint16_t mdh, uint16_t generation, struct emu_memory *mem_out);
/* For views: the segment of a live port, or NULL. */
const struct emu_segment *emu_md_segment(void *port, uint32_t owner);
/* The generation that a handle of the memory domain must have; 0: it is gone, or its owner has parked it. */
uint16_t emu_md_generation(const struct emu_domain *domain, const struct emu_table_md *md);
/* What the process has mapped. 0 or negative errno; ends with emu_maps_close(). */
int emu_member_open_maps(const struct emu_member *member, struct emu_maps *maps);
/* Has the process its space file mapped at all of these addresses now? Then how they are reached. */
bool emu_space_find(struct emu_member *member, uint64_t addr, uint64_t length_bytes, bool for_writing,
                    struct emu_memory *mem_out);

#endif
