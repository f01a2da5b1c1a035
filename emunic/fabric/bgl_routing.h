/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only a Blue Gene/L torus has: hint bits, which hardware computes or software gives, and the one-line broadcast.
 */
#ifndef EMUNIC_FABRIC_BGL_ROUTING_H
#define EMUNIC_FABRIC_BGL_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/sim/routing.h"

/* The six hint bits of a packet: bit number is the direction's (torus.h). */
#define EMU_BGL_X_MINUS (1u << 0)
#define EMU_BGL_X_PLUS  (1u << 1)
#define EMU_BGL_Y_MINUS (1u << 2)
#define EMU_BGL_Y_PLUS  (1u << 3)
#define EMU_BGL_Z_MINUS (1u << 4)
#define EMU_BGL_Z_PLUS  (1u << 5)

/* FIFOs of a node's processor interface (spec/machines.md 5.3): of the reception ones a group, one per processor. */
enum {
    EMU_BGL_INJECTION_HIGH = 2, /* the first ones: high priority */
    EMU_BGL_INJECTION_FIFOS = 8,
    EMU_BGL_RECEPTION_HIGH = 6, /* the others are numbered as the direction that packets have come in */
    EMU_BGL_RECEPTION_FIFOS = 7,
};

extern const struct emu_routing emu_bgl_routing;

/* Minimal hint bits, as the hardware computes them. Equal ways of a ring are divided evenly over the pairs of nodes. */
uint32_t emu_bgl_hints(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid);

enum emu_bgl_way {
    EMU_BGL_WAY_NONE = 0, /* no hint bits lead there */
    EMU_BGL_WAY_ANY,      /* every way within the hint bits' box is alive, deterministic ones too */
    EMU_BGL_WAY_ORDERED,  /* the way in the order of the escape channel is alive, others may not be */
    EMU_BGL_WAY_DYNAMIC,  /* the first hop has to be on a dynamic channel; from there on as above */
    EMU_BGL_WAY_LOOSE,    /* more than one hop without an escape channel to fall back on */
};

/*
 * Hint bits around dead nodes and links, as software chooses them: the best kind of way, and of that kind the fewest
 * hops. Machines in which no two dead nodes share a line have a way between each two live nodes.
 */
enum emu_bgl_way emu_bgl_hints_around(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src_nid,
                                      uint32_t dst_nid, uint32_t *hints_out);

/*
 * For traffic, in a packet that it makes: hint bits given by software. Bits of both directions of a dimension, or a bit
 * where no hop is needed, are refused with -EINVAL, as is a missing one; -ERANGE: no such node.
 */
int emu_bgl_give_hints(const struct emu_machine *m, struct emu_packet *p, uint32_t hints);

/*
 * The packet goes along one line: dst_nid differs from src_nid in one dimension only, the hint is the direction, and
 * each node on the way gets a copy. -EINVAL: not on one line, or no way to go.
 */
int emu_bgl_give_broadcast(const struct emu_machine *m, struct emu_packet *p, uint32_t hint);

/*
 * The injection FIFO that software puts the packet into, whatever its direction. After hint bits; without it the
 * machine chooses (nic.injection). Needs end points (emu_sim_options.has_ends). -EINVAL: none of the packet's class.
 */
int emu_bgl_give_fifo(struct emu_packet *p, uint32_t fifo);

/* The reception FIFO, of one group, that a packet was delivered to. If it never left its node: 0, or high priority. */
uint32_t emu_bgl_reception_fifo(const struct emu_packet *p);

/* The hint bits that a packet still has, from its route_state. */
uint32_t emu_bgl_hints_left(uint64_t route_state);

#endif
