/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What leaves a partition: kept in one outbox per receiver until the window ends, then taken by it (run.c), or sent to
 * its process (world.c). A packet is copied, because cells belong to partitions.
 */
#include "emunic/fabric/sim/transmit.h"

void sim_post_arrival(struct part *part, uint32_t to, uint64_t at_ps, struct emu_event event)
{
    struct outbox *box = &part->out[to];
    struct arrival_message *message;

    if (box->n_arrivals == box->arrival_capacity) {
        box->arrival_capacity = box->arrival_capacity == 0 ? 64 : box->arrival_capacity * 2;
        box->arrivals = sim_grown(box->arrivals, box->arrival_capacity * sizeof(*box->arrivals));
    }
    message = &box->arrivals[box->n_arrivals++];
    message->slot = sim_slot_of(part, at_ps, &event.offset_ps);
    box->first_slot = message->slot < box->first_slot ? message->slot : box->first_slot;
    message->event = event;
    message->packet = part->cells[event.payload].packet;
    sim_cell_free(part, event.payload);
}

void sim_post_credit(struct part *part, uint32_t to, uint64_t at_ps, struct emu_event event)
{
    struct outbox *box = &part->out[to];
    struct credit_message *message;

    if (box->n_credits == box->credit_capacity) {
        box->credit_capacity = box->credit_capacity == 0 ? 64 : box->credit_capacity * 2;
        box->credits = sim_grown(box->credits, box->credit_capacity * sizeof(*box->credits));
    }
    message = &box->credits[box->n_credits++];
    message->slot = sim_slot_of(part, at_ps, &event.offset_ps);
    box->first_slot = message->slot < box->first_slot ? message->slot : box->first_slot;
    message->event = event;
}
