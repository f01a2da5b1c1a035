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

#include "emunic/client/portals_port_inner.h"

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

/* A message of at most EMU_PTL_INBOX_BYTES. */
struct emu_portals_short {
    uint32_t pt;
    uint32_t length_bytes;
    uint64_t bits;
    uint64_t hdr_data;
    const void *data;
};

/*
 * Leaves a message for another process. False: the target takes none, has no inbox left for us, or has not taken as
 * many as there is room for. We are inside.
 */
bool emu_portals_leave_short(struct emu_portals *p, const struct emu_portals_target *t,
                             const struct emu_portals_short *message);

/* A process that messages are left for again and again. */
struct emu_portals_way {
    uint32_t nid;
    uint32_t pid;
    struct emu_portals_target target; /* peer NULL: to be looked for */
    struct emu_segment *segment;      /* borrowed: whom to wake, or NULL */
    struct emu_flow_counts *flow;     /* borrowed */
};

/*
 * emu_portals_send_at_once() of a message that fits, from no descriptor: with less than half of the instructions,
 * because what does not change is kept in the way. False: nothing has happened.
 */
bool emu_portals_leave_on(struct emu_portals *p, struct emu_portals_way *way, const struct emu_portals_short *message);

#endif
