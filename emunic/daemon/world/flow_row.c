/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A dense row of a domain of 19 200 nodes would be 1.2 MB for each node that has sent, and every report reads all rows.
 */
#include "emunic/daemon/world/flow_row.h"

#include <stdlib.h>

static uint32_t pages_of(uint32_t n_nodes)
{
    return (n_nodes + EMU_FLOW_PAGE - 1) / EMU_FLOW_PAGE;
}

struct emu_flow_counts *emu_flow_row_at(struct emu_flow_row *row, uint32_t n_nodes, uint32_t node, bool is_made)
{
    struct emu_flow_counts **page;

    if (!row->pages && is_made)
        row->pages = calloc(pages_of(n_nodes), sizeof(*row->pages));
    if (!row->pages)
        return NULL;
    page = &row->pages[node / EMU_FLOW_PAGE];
    if (!*page && is_made)
        *page = calloc(EMU_FLOW_PAGE, sizeof(**page));
    return *page ? &(*page)[node % EMU_FLOW_PAGE] : NULL;
}

const struct emu_flow_counts *emu_flow_row_page(const struct emu_flow_row *row, uint32_t node)
{
    const struct emu_flow_counts *page = row->pages ? row->pages[node / EMU_FLOW_PAGE] : NULL;

    return page ? &page[node % EMU_FLOW_PAGE] : NULL;
}

void emu_flow_row_free(struct emu_flow_row *row, uint32_t n_nodes)
{
    for (uint32_t i = 0; row->pages && i < pages_of(n_nodes); i++)
        free(row->pages[i]);
    free(row->pages);
    row->pages = NULL;
}

bool emu_flow_is_empty(const struct emu_flow_counts *flow)
{
    return (flow->operations | flow->payload_bytes | flow->request_packets | flow->request_flits |
            flow->response_packets | flow->response_flits | flow->errors) == 0;
}

void emu_flow_add(struct emu_flow_counts *sum, const struct emu_flow_counts *flow)
{
    sum->operations += flow->operations;
    sum->payload_bytes += flow->payload_bytes;
    sum->request_packets += flow->request_packets;
    sum->request_flits += flow->request_flits;
    sum->response_packets += flow->response_packets;
    sum->response_flits += flow->response_flits;
    sum->errors += flow->errors;
}
