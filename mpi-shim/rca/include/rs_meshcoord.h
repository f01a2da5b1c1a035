/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Place of a node's network chip. Source: use by public clients (share/doc/emunic/spec/cray-runtime.md 4.1).
 */
#ifndef RS_MESHCOORD_H
#define RS_MESHCOORD_H

#include <stdint.h>

/**
 * XC (Aries): group, chassis in the group, slot; four nodes share one. XE (Gemini): x, y, z of the torus; two nodes
 * share one. XT (SeaStar), Blue Gene/L: x, y, z of the torus or mesh. X1: vertex of the hypercube, node in it, 0. XD1:
 * chassis, node in it, 0.
 */
typedef struct rca_mesh_coord {
    uint16_t mesh_x;
    uint16_t mesh_y;
    uint16_t mesh_z;
} rca_mesh_coord_t;

/* The older name */
typedef rca_mesh_coord_t mesh_coord_t;

#endif
