/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: the hypercube's state, for hypercube.c and hypercube_routing.c.
 */
#ifndef EMUNIC_FABRIC_HYPERCUBE_INNER_H
#define EMUNIC_FABRIC_HYPERCUBE_INNER_H

#include <stdint.h>

#include "emunic/fabric/topology.h"

struct hypercube {
    uint32_t dimensions;
    uint32_t vertices;
    uint32_t nodes;      /* of a vertex */
    uint32_t first_edge; /* link id */
};

extern const struct emu_routing emu_routing_hypercube;

static inline const struct hypercube *hypercube_of(const struct emu_machine *m)
{
    return m->state;
}

/* The link from a vertex along a dimension. */
static inline uint32_t edge_link(const struct hypercube *h, uint32_t vertex, uint32_t dimension)
{
    return h->first_edge + vertex * h->dimensions + dimension;
}

#endif
