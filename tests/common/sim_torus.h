/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small torus for tests and benchmarks of the packet simulator: a machine made by hand, with a routing of its own, so
 * that the engine is tested without any real machine's rules.
 */
#ifndef TESTS_COMMON_SIM_TORUS_H
#define TESTS_COMMON_SIM_TORUS_H

#include <stdint.h>

#include "emunic/fabric/topology.h"

enum sim_torus_rules {
    SIM_TORUS_DATELINE = 0, /* channels 0 and 1: dimension order with a dateline; 2 and 3: minimal adaptive */
    SIM_TORUS_BUBBLE,       /* channel 0: dimension order in bubble rings; 1 and 2: minimal adaptive */
    SIM_TORUS_RING,         /* channel 0 only, nothing against deadlock */
};

struct sim_torus {
    uint32_t size[3]; /* 1: no links in that dimension; 2 is not possible */
    enum sim_torus_rules rules;
    struct emu_router_params router;
    uint32_t link_mbps; /* one lane of this; the class EMU_LINK_X is all there is */
    uint32_t lanes;
    uint32_t wire_ps;
    uint32_t nic_mbps; /* of the links between NIC and router */
};

/* A Blue Gene/L-like 8 x 8 x 8: bytes, 175 MB/s, packets of up to 256 + 14 bytes, 1 KB channels. */
struct sim_torus sim_torus_default(void);

/* Freed with sim_torus_destroy(). Aborts if memory runs out. */
struct emu_machine *sim_torus_create(const struct sim_torus *torus);
void sim_torus_destroy(struct emu_machine *m);

/* Link out of a router: dim 0-2, plus or minus. */
uint32_t sim_torus_link(const struct emu_machine *m, uint32_t router, uint32_t dim, int is_plus);
uint32_t sim_torus_hops(const struct emu_machine *m, uint32_t src, uint32_t dst);

#endif
