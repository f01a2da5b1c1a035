/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only a Gemini machine (Cray XE6, XK7) has: tiles with names, and the ring that its nodes form along Y.
 */
#ifndef EMUNIC_FABRIC_GEMINI_H
#define EMUNIC_FABRIC_GEMINI_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"

#define EMU_GEMINI_TILE_ROWS      6
#define EMU_GEMINI_TILE_COLUMNS   8
#define EMU_GEMINI_TILE_PROCESSOR 6 /* in place of a direction */

/* What a tile of the router serves: direction 0 .. 5 (X-, X+, Y-, Y+, Z-, Z+) or the processors. -ERANGE. */
int emu_gemini_tile(uint32_t row, uint32_t column, uint32_t *direction_out);

/* "c0-0c1s0g0l27": the tile that a link leaves. -EINVAL: not a Gemini, or a NIC's link; -ERANGE: no such link;
 * -ENOSPC. */
int emu_gemini_tile_name(const struct emu_machine *m, uint32_t link, char *buf, size_t len);

/* The link that leaves a tile. -EINVAL: not a Gemini, not such a name, or a tile without a link; -ERANGE: not in it. */
int emu_gemini_link_of_tile(const struct emu_machine *m, const char *name, uint32_t *link_out);

/**
 * The next node in a direction (0 .. 5). Along X and Z the node with the same number on the next module or Gemini;
 * along Y the nodes of a line of Geminis form one ring, n0 - n1 - n2 - n3 - n0 within a single module (spec/machines.md
 * 3.1).
 *
 * @retval 0        Found; may be the node itself in a dimension of size 1.
 * @retval -EINVAL  Not a Gemini.
 * @retval -ERANGE  No such nid or direction.
 */
int emu_gemini_neighbour_node(const struct emu_machine *m, uint32_t nid, uint32_t direction, uint32_t *nid_out);

/* Cabinets along the two sides of the floor. -EINVAL: not a Gemini. */
int emu_gemini_cabinets(const struct emu_machine *m, uint32_t *columns_out, uint32_t *rows_out);

#endif
