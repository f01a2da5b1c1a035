/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: what dimension-order routing with datelines is the same in, on Gemini and on SeaStar. A ring
 * takes the first channel of a pair up to the cable between the last coordinate and 0, the second across it and behind
 * it.
 */
#ifndef EMUNIC_FABRIC_TORUS_ROUTING_H
#define EMUNIC_FABRIC_TORUS_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/sim/routing.h"
#include "emunic/fabric/torus.h"

/* Channels of a class: `vcs` of the network, one per traffic class to and from a NIC. */
uint32_t emu_torus_n_vcs(enum emu_link_class link_class, uint32_t vcs);
/* A channel of which `vcs_per_class` belong to each traffic class; all are escape channels. */
void emu_torus_describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                           uint32_t vcs_per_class, struct emu_vc_info *info_out);

/* One listing of channel dependencies: what its visits have in common. */
struct emu_torus_relation {
    const struct emu_torus *torus;
    const struct emu_fault_map *faults;
    uint32_t n_nodes;
    bool has_detours; /* packets may go the long way round */
    void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc);
    void *ctx;
};

/* Longest way in one direction of a dimension. */
uint32_t emu_torus_steps_max(const struct emu_torus_relation *r, uint32_t direction);

/* Does a packet ever leave a router in a direction, in the second channel of the pair (`is_behind`) or in the first? */
bool emu_torus_is_used(const struct emu_torus_relation *r, uint32_t router, uint32_t direction, bool is_behind);

/* May one that arrives at `router` so go straight on? Then it does in the channel that *is_behind_out says. */
bool emu_torus_goes_on(const struct emu_torus_relation *r, uint32_t router, uint32_t direction, bool is_behind,
                       bool *is_behind_out);

#endif
