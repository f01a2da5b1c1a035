/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the system names a node.
 * Source: use by public clients (share/doc/emunic/spec/cray-runtime.md 4.1); names only. The layout is our own:
 * programs must use the names.
 */
#ifndef RS_ID_H
#define RS_ID_H

#include <stdint.h>

/** State of a node that takes jobs. */
#define RS_CS_READY 7

/* Kinds of node */
#define RT_NODE  1
#define RT_ACCEL 2

/** A node, 64 bits. */
typedef union rs_node {
    struct {
        uint64_t _node_id : 20;     /* nid */
        uint64_t _node_type : 2;    /* RT_NODE */
        uint64_t _node_state : 4;   /* RS_CS_READY */
        uint64_t _node_arch : 3;    /* 0 */
        uint64_t _node_is_svc : 1;  /* 0: all emulated nodes are compute nodes */
        uint64_t _node_subtype : 1; /* 0 */
        uint64_t _node_x : 9;       /* column of the cabinet */
        uint64_t _node_row : 9;     /* row of the cabinet */
        uint64_t _node_cage : 4;    /* in the cabinet: 0 .. 2, on an XD1 .. 11 */
        uint64_t _node_slot : 4;    /* 0 .. 15 in the cage */
        uint64_t _node_modcomp : 5; /* node on the blade: 0 .. 3, on a Blue Gene/L .. 31 */
        uint64_t _node_link : 2;    /* network chip on the blade: 0, Gemini .. 1, SeaStar .. 3 */
    } rs_node_s;
    uint64_t rs_node_flat;
} rs_node_t;

/** A list of nodes. */
typedef struct rs_node_array {
    int32_t na_len;
    rs_node_t *na_ids; /* malloc-ed, the caller's */
} rs_node_array_t;

#endif
