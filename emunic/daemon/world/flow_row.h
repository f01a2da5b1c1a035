/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters from one node to the nodes of a domain, kept in pages of 4 KB: most nodes speak to few others.
 */
#ifndef EMUNIC_DAEMON_WORLD_FLOW_ROW_H
#define EMUNIC_DAEMON_WORLD_FLOW_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/flow.h"

enum { EMU_FLOW_PAGE = 64 }; /* target nodes */

/* All zero: nothing has been counted. */
struct emu_flow_row {
    struct emu_flow_counts **pages; /* owned, (n_nodes + 63) / 64; NULL as a whole and each: nothing there */
};

/* The counters to `node`, made if `is_made`. Borrowed. NULL: none are there, or no memory for them. */
struct emu_flow_counts *emu_flow_row_at(struct emu_flow_row *row, uint32_t n_nodes, uint32_t node, bool is_made);

/* The counters to `node` and those behind it up to the end of its page. NULL: all of them are 0. Borrowed. */
const struct emu_flow_counts *emu_flow_row_page(const struct emu_flow_row *row, uint32_t node);

void emu_flow_row_free(struct emu_flow_row *row, uint32_t n_nodes);

bool emu_flow_is_empty(const struct emu_flow_counts *flow);
void emu_flow_add(struct emu_flow_counts *sum, const struct emu_flow_counts *flow);

#endif
