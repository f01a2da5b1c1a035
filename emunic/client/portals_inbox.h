/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inboxes of a Portals interface: short messages that its owner matches, instead of the sender.
 *
 * For message layers, whose processes look at their queues all the time, and expect nothing before they do. A message
 * is matched when the owner next polls, so a program that watches its memory alone would wait for ever: an interface
 * has no inboxes until its owner opens them. Messages of one sender stay in order with each other. Whatever else it
 * sends there has to wait until all are taken.
 *
 * Thread rule: under the caller's lock, as in portals_port.h.
 */
#ifndef EMUNIC_CLIENT_PORTALS_INBOX_H
#define EMUNIC_CLIENT_PORTALS_INBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/client/portals_port.h"

struct emu_portals_peer;
struct emu_portals_target;

/* ---- the owner ---- */

/*
 * From now on others leave messages, and the owner has to look for them. taker: who takes those that no entry for one
 * message takes, by emu_portals_hand_short(); NULL: nobody, it is emu_portals_take_short() then.
 */
void emu_portals_open_inboxes(struct emu_portals *p, emu_short_taker taker);

/* What is looked at in vain, mostly: a line for each sender, which nobody writes meanwhile. */
static inline bool emu_portals_has_short(const struct emu_portals *p)
{
    uint32_t n = atomic_load_explicit(&p->ni->n_inboxes, memory_order_relaxed);

    for (uint32_t i = 0; i < n && i < EMU_PTL_INBOXES; i++) {
        const struct emu_ptl_short *place = &p->ni->inboxes[i].places[p->taken[i] % EMU_PTL_INBOX_PLACES];

        if (atomic_load_explicit(&place->number, memory_order_relaxed) == p->taken[i] + 1)
            return true;
    }
    return false;
}

/*
 * Matches and stores the next message of each sender, and further ones for which there is a descriptor that takes one
 * message alone. The others stay where they are, because receives for them may be yet to come.
 */
void emu_portals_take_short(struct emu_portals *p);

/*
 * Hands the messages that are there to the taker; with has_entries only what no entry for one message takes. quiet: a
 * queue; while it holds an event, which may be of something that was sent before, nothing is handed over. How many.
 * Without has_entries nothing of the interface is touched that others write.
 */
uint32_t emu_portals_hand_short(struct emu_portals *p, uint32_t quiet, bool has_entries);

/* ---- the sender ---- */

/* Has that process taken all that we have left for it? Also true of one that has gone. */
bool emu_portals_has_taken(struct emu_portals *p, uint32_t nid, uint32_t pid);
bool emu_portals_peer_has_taken(struct emu_portals_peer *peer);

/*
 * Leaves a message of at most EMU_PTL_INBOX_BYTES for another process, from: its data, without the offset. False: the
 * target takes none, has no inbox left for us, or has not taken as many as there is room for. We are inside.
 */
bool emu_portals_leave_short(struct emu_portals *p, const struct emu_portals_target *t, const struct emu_ptl_send *send,
                             const uint8_t *from);

#endif
