/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Places of a machine's nodes, for libraries that may not know the fabric: coordinates and physical names.
 *
 *   | header | struct emu_node_place by nid |
 *
 * One memfd per emunic, sealed against any change, handed to whoever asks (EMU_MSG_MACHINE): one copy per host,
 * whatever the number of processes, and no request per node.
 *
 * All of it is set before it is handed out.
 */
#ifndef EMUNIC_ABI_PLACES_H
#define EMUNIC_ABI_PLACES_H

#include <assert.h>
#include <stdint.h>

#include "emunic/abi/abi.h"

#define EMU_PLACES_MAGIC 0x43414c505f554d45ull /* "EMU_PLAC" */

struct emu_places {
    uint64_t magic;
    uint32_t abi_version;
    uint32_t n_nids;
    uint16_t mesh_max[3]; /* largest coordinate of any node */
    uint16_t reserved;
    uint64_t reserved1;
};
static_assert(sizeof(struct emu_places) == 32, "ABI: places begin behind the header");

struct emu_node_place {
    uint16_t mesh[3]; /* of its network chip: as rca_get_meshcoord() answers */
    uint16_t column;  /* of the cabinet, on the floor */
    uint16_t row;
    uint16_t cage; /* in the cabinet */
    uint16_t slot; /* in the cage */
    uint16_t node; /* on the blade */
    uint16_t chip; /* the network chip on the blade */
};
static_assert(sizeof(struct emu_node_place) == 18, "ABI: one node");

static inline uint64_t emu_places_bytes(uint32_t n_nids)
{
    return sizeof(struct emu_places) + (uint64_t)n_nids * sizeof(struct emu_node_place);
}

static inline const struct emu_node_place *emu_places_nodes(const struct emu_places *places)
{
    return (const struct emu_node_place *)(places + 1);
}

#endif
