/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes: the list of links from one NIC to another. The first link is the NIC's own into its router, the last the
 * other router's to its NIC.
 */
#ifndef EMUNIC_FABRIC_ROUTE_H
#define EMUNIC_FABRIC_ROUTE_H

#include <stdint.h>

#include "emunic/fabric/machine.h"

/* Longest minimal path in spec/machines.md: Red Storm's 27 x 16 mesh with a ring of 24, 26 + 15 + 12 hops; BG/L 64. */
#define EMU_ROUTE_LINKS_MAX 192

struct emu_route {
    uint32_t n_links;
    uint32_t n_hops;                     /* router to router: n_links - 2 */
    uint32_t links[EMU_ROUTE_LINKS_MAX]; /* ids, in the order of travel */
};

/**
 * One of the minimal routes between two nodes.
 *
 * @param[in] path_hash  Chooses among the equivalent minimal routes, the same one each time. Consecutive values step
 *                       through all of them, so a caller that wants them spread passes emu_route_hash().
 * @retval 0        Found; src_nid == dst_nid gives the way to the router and back.
 * @retval -ERANGE  No such nid.
 */
int emu_route_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                      struct emu_route *route_out);

/* 64-bit mix of two node ids and a salt (traffic class, routing mode, destination address / 64 ...). Pure. */
uint64_t emu_route_hash(uint32_t src_nid, uint32_t dst_nid, uint64_t salt);

#endif
