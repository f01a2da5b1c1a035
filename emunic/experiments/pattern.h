/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: the destination of a node's next packet.
 */
#ifndef EMUNIC_EXPERIMENTS_PATTERN_H
#define EMUNIC_EXPERIMENTS_PATTERN_H

#include "emunic/experiments/traffic.h"

struct emu_destinations {
    enum emu_pattern pattern;
    uint32_t n_nodes;
    struct emu_grid grid;
    uint32_t *fixed;  /* owned; by nid: the one destination, or EMU_NOBODY */
    uint32_t *listed; /* owned; HOT: the hot nodes; SHIFT: all nodes, slice by slice */
    uint32_t n_listed;
    uint32_t *slice_ends; /* owned; SHIFT: by slice, where it ends in `listed` */
    uint32_t dimension;
    uint32_t shift;
    double hot_share;
    uint64_t seed;
    uint64_t n_packets; /* ALL_TO_ALL: of one node */
    uint32_t (*pick)(void *ctx, struct emu_random *random, uint32_t src_nid);
    void *pick_ctx;
};

/* 0, -ENOMEM, -EINVAL with a line in err. */
int emu_destinations_init(struct emu_destinations *d, const struct emu_machine *m,
                          const struct emu_generator_options *options, char *err, size_t err_len);
void emu_destinations_fini(struct emu_destinations *d);

/* Of packet number `index` of this node. EMU_NOBODY: it sends no more. Any thread. */
uint32_t emu_destinations_pick(const struct emu_destinations *d, struct emu_random *random, uint32_t src,
                               uint64_t index);

#endif
