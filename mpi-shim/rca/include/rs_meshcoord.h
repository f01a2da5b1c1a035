/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Place of a node's network chip. Source: use by public clients (cray-runtime.md, 4.1).
 */
#ifndef RS_MESHCOORD_H
#define RS_MESHCOORD_H

#include <stdint.h>

/** On XC: group, chassis in the group, slot. Four nodes share one. */
typedef struct rca_mesh_coord {
    uint16_t mesh_x;
    uint16_t mesh_y;
    uint16_t mesh_z;
} rca_mesh_coord_t;

/* The older name */
typedef rca_mesh_coord_t mesh_coord_t;

#endif
