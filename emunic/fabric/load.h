/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From flows to link loads: what each link carried, computed when somebody asks.
 *
 * Counts are integers and nothing is lost: over any set of links that each minimal path of a flow crosses exactly
 * once, the added packets and flits sum to the flow's.
 */
#ifndef EMUNIC_FABRIC_LOAD_H
#define EMUNIC_FABRIC_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"

enum emu_flow_class {
    EMU_FLOW_REQUEST = 0,
    EMU_FLOW_RESPONSE, /* src_nid is the node that sends the responses */
};

struct emu_flow {
    uint32_t src_nid;
    uint32_t dst_nid;
    enum emu_flow_class flow_class;
    uint64_t packets;
    uint64_t flits;
};

/* What a link carried. Flits stay with their packets: a link without packets has no flits. */
struct emu_link_load {
    uint64_t packets;
    uint64_t flits;
};

enum emu_load_mode {
    EMU_LOAD_SPREAD = 0, /* adaptive routing on a quiet machine: evenly over the minimal routes */
    EMU_LOAD_HASHED,     /* in-order routing: the whole flow on the route that its hash chooses */
};

/**
 * Add the load of some flows.
 *
 * @param[in,out] loads  One entry per link, emu_machine_n_links() of them, indexed by link id. Added to.
 * @retval 0        Added.
 * @retval -ERANGE  A flow names a nid that does not exist; nothing was added.
 * @retval -EINVAL  A flow has flits but no packets, or a class or mode that does not exist; nothing was added.
 */
int emu_load_add(const struct emu_machine *m, const struct emu_flow *flows, size_t n_flows, enum emu_load_mode mode,
                 struct emu_link_load *loads);

#endif
