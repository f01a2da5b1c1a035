/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processor interface of Blue Gene/L's torus, as the software of a node sees it: 8 injection FIFOs, two groups of
 * 7 reception FIFOs, watermarks that interrupt, and a checksum per injection FIFO to compare two runs by
 * (spec/machines.md 5.3). It is traffic for a simulation with end points.
 *
 * An injection FIFO is the router's channel of that number and what waits in front of it: nic.fifo_bytes together. A
 * reception FIFO has what the NIC has taken out of the router's buffer. Software that does not read does not stop the
 * network: that buffer is the simulator's (nic.reception_units), which empties it at a rate; so a FIFO here may hold
 * more than its depth. Which group a packet goes to, and what the checksum is, the source does not say [OUR].
 *
 * Functions for a node: on the thread that owns it, from inside the interrupt or between runs.
 */
#ifndef EMUNIC_MODEL_BGL_INTERFACE_H
#define EMUNIC_MODEL_BGL_INTERFACE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/bgl_routing.h"
#include "emunic/fabric/sim/sim.h"

#define EMU_BGL_GROUPS   2u
#define EMU_BGL_NO_MARK  UINT32_MAX
#define EMU_BGL_TAG_BITS 63 /* of a packet's tag; the rest is the interface's */

enum emu_bgl_side { EMU_BGL_INJECTION, EMU_BGL_RECEPTION };

struct emu_bgl_fifo {
    uint32_t nid;
    enum emu_bgl_side side;
    uint32_t group;  /* of reception FIFOs; else 0 */
    uint32_t number; /* within the side, or the group */
};

struct emu_bgl_interface;

struct emu_bgl_interface_options {
    void *ctx;
    /*
     * A watermark was reached: an injection FIFO has no more than so many bytes, after it had more; a reception FIFO
     * has at least so many, after it had less. NULL: nobody is told.
     */
    void (*interrupt)(void *ctx, struct emu_sim *sim, const struct emu_bgl_fifo *fifo, uint32_t bytes, uint64_t now_ps);
};

/* Must outlive the simulation. -EINVAL: not a Blue Gene/L machine; -ENOMEM. */
int emu_bgl_interface_create(const struct emu_machine *m, const struct emu_bgl_interface_options *options,
                             struct emu_bgl_interface **interface_out);
/* NULL is fine. */
void emu_bgl_interface_destroy(struct emu_bgl_interface *i);

/* For emu_sim_create(), with has_ends. */
struct emu_traffic emu_bgl_interface_traffic(struct emu_bgl_interface *i);

/**
 * Put a packet into an injection FIFO.
 *
 * @param[in] group   Of reception FIFOs at the destination.
 * @param[in] packet  dst_nid, units, traffic_class, mode, created_ps and tag; hint bits or broadcast if given.
 * @retval 0        It is in.
 * @retval -EAGAIN  No room now.
 * @retval -EINVAL  No such FIFO or group, or one of the other class, or a packet that no FIFO takes.
 * @retval -ENOMEM  Out of memory.
 */
int emu_bgl_inject(struct emu_bgl_interface *i, struct emu_sim *sim, const struct emu_bgl_fifo *fifo, uint32_t group,
                   const struct emu_packet *packet);

/* Takes the oldest packet out of a reception FIFO. False: it is empty. */
bool emu_bgl_receive(struct emu_bgl_interface *i, const struct emu_bgl_fifo *fifo, struct emu_packet *packet_out);

/* Bytes in a FIFO, in whole chunks. */
uint32_t emu_bgl_fill(const struct emu_bgl_interface *i, const struct emu_sim *sim, const struct emu_bgl_fifo *fifo);

/* Injection FIFOs are looked at when 32 bytes can have left since the last look. EMU_BGL_NO_MARK: no interrupts. */
void emu_bgl_set_watermark(struct emu_bgl_interface *i, const struct emu_bgl_fifo *fifo, uint32_t bytes);

/* Of all packets that were put into an injection FIFO, in their order: what and where to. Not of times. */
uint32_t emu_bgl_checksum(const struct emu_bgl_interface *i, const struct emu_bgl_fifo *fifo);

#endif
