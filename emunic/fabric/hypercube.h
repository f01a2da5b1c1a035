/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only a hypercube machine has: vertices and edges.
 */
#ifndef EMUNIC_FABRIC_HYPERCUBE_H
#define EMUNIC_FABRIC_HYPERCUBE_H

#include <stdint.h>

#include "emunic/fabric/machine.h"

#define EMU_X1_MSPS_PER_NODE 4 /* processors of a node; the machine counts nodes */

struct emu_hypercube_shape {
    uint32_t dimensions;
    uint32_t n_vertices; /* 2^dimensions; a vertex is one router, with its own number */
    uint32_t nodes_per_vertex;
    uint32_t n_edges; /* each both ways: two links */
};

/* -EINVAL: not a hypercube. */
int emu_hypercube_shape(const struct emu_machine *m, struct emu_hypercube_shape *shape_out);

/* The link from a vertex along a dimension. -EINVAL: not a hypercube; -ERANGE. */
int emu_hypercube_edge(const struct emu_machine *m, uint32_t vertex, uint32_t dimension, uint32_t *link_out);

#endif
