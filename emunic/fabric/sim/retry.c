/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bit errors and link-level retransmission.
 *
 * A packet of b bits on the wire arrives broken with probability 1 - (1 - ber)^b. The link's check sees it except in
 * one of 2^crc_bits cases; then the packet goes on, marked corrupt. A seen error costs the link the packet's own time
 * and the time until the sender repeats it: with acknowledgements, one round trip (head there, NAK back); with
 * time-outs, retry_timeout_clocks. What the sender sends in that time is discarded by the receiver, because order is
 * kept (go-back window of at least a round trip), so the link is lost for that long and nothing else changes.
 * Repetitions may be broken again.
 * Source: spec/machines.md 2.4 (Aries), 4.4 (SeaStar), 5.4 (BG/L: time-out).
 */
#include <math.h>

#include "emunic/fabric/sim/state.h"

static double uniform(struct emu_random *random)
{
    return (double)(emu_random_next(random) >> 11) * 0x1p-53;
}

/* Of a packet that takes so long: all bits that the wire carries in that time, frames included. */
static double error_probability(const struct link_kind *kind, const struct link_errors *e, uint64_t length_ps)
{
    return -expm1((double)length_ps * kind->bits_per_ps * log1p(-e->bit_error_rate));
}

uint64_t sim_retry_ps(struct emu_sim *sim, uint32_t link, struct emu_packet *packet, uint64_t length_ps)
{
    const struct link_kind *kind = &sim->kinds[sim->outs[link].kind];
    struct link_errors *e = &sim->errors[link];
    double probability = error_probability(kind, e, length_ps);
    double missed = ldexp(1.0, -(int)sim->p.crc_bits);
    uint64_t repeat_ps = sim->p.retry_timeout_clocks > 0 ? (uint64_t)sim->p.retry_timeout_clocks * sim->clock_ps :
                                                           (uint64_t)kind->head_ps + kind->wire_ps;
    uint64_t total_ps = 0;

    for (;;) {
        uint8_t forced = e->corrupt_next;

        e->corrupt_next = 0;
        if (forced == 0 && uniform(&e->random) >= probability)
            return total_ps;
        if (forced == 2 || (forced == 0 && uniform(&e->random) < missed)) {
            packet->flags |= EMU_PACKET_CORRUPT;
            return total_ps;
        }
        e->crc_errors++;
        e->retransmissions++;
        total_ps += length_ps + repeat_ps;
    }
}
