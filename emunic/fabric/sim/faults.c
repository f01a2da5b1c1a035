/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Faults and errors that come and go between two runs.
 *
 * A link that goes down drops what is on its wire, that is, whose head has not yet been decidable at the far end; a
 * router that goes down drops what it holds too. What waits elsewhere is asked for its ways again: a packet without any
 * is dropped by its router as soon as it is looked at. Tokens of dropped packets come back at once, so a repaired link
 * starts with all the room there is. A link that comes back up carries what waits for it. A node that is down sends
 * nothing and keeps what it wanted to send.
 */
#include <stdlib.h>

#include "emunic/fabric/sim/state.h"

struct cleaning {
    struct emu_sim *sim;
    struct part *part;
    uint32_t *cells; /* to lose */
    size_t n_cells;
    size_t capacity;
};

static void drop_cell(struct cleaning *c, uint32_t cell)
{
    if (c->n_cells == c->capacity) {
        c->capacity = c->capacity == 0 ? 64 : c->capacity * 2;
        c->cells = sim_grown(c->cells, c->capacity * sizeof(*c->cells));
    }
    c->cells[c->n_cells++] = cell;
}

static void return_tokens(struct emu_sim *sim, uint32_t link, uint32_t vc, uint32_t units)
{
    struct out_link *out = &sim->outs[link];
    uint32_t tokens = sim_charge(sim, &sim->kinds[out->kind], vc, units);

    sim_return_tokens(out, vc, tokens);
    if (sim->loads && (out->flags & OUT_FROM_NIC) == 0)
        sim_load_credited(&sim->parts[sim->routers[out->from].part], link, vc, tokens);
}

static bool stays(void *ctx, const struct emu_event *event)
{
    struct cleaning *c = ctx;
    struct emu_sim *sim = c->sim;

    if (event->kind == EMU_EVENT_ARRIVE) {
        uint32_t link = c->part->cells[event->payload].next;

        if ((sim->outs[link].flags & OUT_IS_UP) != 0)
            return true;
        return_tokens(sim, link, event->vc, c->part->cells[event->payload].packet.units);
        drop_cell(c, event->payload);
        return false;
    }
    if (event->kind == EMU_EVENT_DELIVER && sim->nics[event->index].is_up == 0) {
        if (c->part->cells[event->payload].is_copy)
            sim_cell_free(c->part, event->payload);
        else
            drop_cell(c, event->payload);
        return false;
    }
    return true;
}

/* All that a dead router holds. */
static void empty_router(struct cleaning *c, uint32_t router)
{
    struct emu_sim *sim = c->sim;
    struct router *r = &sim->routers[router];

    for (uint32_t i = r->first_vc; i < r->first_vc + r->n_vcs; i++) {
        struct in_vc *v = sim_vc_find(c->part, i);

        if (!v)
            continue;
        sim_forget_options(c->part, v);
        for (uint32_t cell = v->first; cell != SIM_NONE; cell = c->part->cells[cell].next) {
            return_tokens(sim, v->at.in_link, v->at.in_vc, c->part->cells[cell].packet.units);
            drop_cell(c, cell);
        }
        if (sim->occupancy)
            sim->occupancy[i] += v->units * sim->now_ps;
        v->first = SIM_NONE;
        v->last = SIM_NONE;
        v->units = 0;
        v->is_held = false;
    }
    r->heads = 0;
    for (uint32_t w = 0; r->n_vcs > 64 && w < (r->n_vcs + 63u) / 64; w++)
        sim->heads[r->first_word + w] = 0;
}

/* Heads ask for their ways again, and waiting counts start anew. */
static void look_everywhere(struct part *part)
{
    struct emu_sim *sim = part->sim;

    for (uint32_t i = part->first_router; i < part->end_router; i++) {
        struct router *r = &sim->routers[i];

        for (uint32_t j = r->first_vc; j < r->first_vc + r->n_vcs; j++) {
            struct in_vc *v = sim_vc_find(part, j);

            if (!v)
                continue;
            sim_forget_options(part, v);
            if (v->first != SIM_NONE)
                emu_wheel_put(&part->wheel, part->slot, (struct emu_event){ .kind = EMU_EVENT_LOOK, .index = j });
        }
    }
}

/* What the link has carried with the lanes it had. */
static void begin_epoch(struct emu_sim *sim, uint32_t link)
{
    struct link_epoch epoch = {
        .busy_ps = sim_busy_ps(sim, link),
        .units = sim->outs[link].units,
        .packets = sim_packets(sim, link),
    };

    if (!sim->epochs) {
        sim->epochs = sim_grown(NULL, sim->m->n_links * sizeof(*sim->epochs));
        for (uint32_t id = 0; id < sim->m->n_links; id++)
            sim->epochs[id] = (struct link_epoch){ 0 };
    }
    sim->epochs[link] = epoch;
}

static void set_kind(struct emu_sim *sim, uint32_t link, uint16_t kind)
{
    struct in_link *in = &sim->ins[link];

    if ((sim->outs[link].flags & OUT_IS_OWN) != 0)
        sim->outs[link].kind = kind;
    if ((in->flags & IN_IS_OWN) != 0 || (sim->outs[link].flags & OUT_TO_NIC) != 0)
        in->kind = kind;
    for (uint32_t vc = 0; (in->flags & IN_IS_OWN) != 0 && vc < sim->kinds[kind].n_vcs; vc++) {
        struct in_vc *v = sim_vc_find(&sim->parts[sim->routers[in->router].part], in->first_vc + vc);

        if (v)
            v->kind = kind;
    }
}

static void set_link(struct emu_sim *sim, uint32_t id)
{
    struct out_link *out = &sim->outs[id];
    bool is_out = (out->flags & OUT_IS_OWN) != 0;
    bool is_up = emu_fault_map_link_up(sim->faults, id);
    uint32_t lanes_up = (uint32_t)__builtin_popcount(emu_fault_map_lane_mask(sim->faults, id));
    struct emu_link link;
    int kind;

    if (is_out)
        out->flags = (uint8_t)(is_up ? out->flags | OUT_IS_UP : out->flags & ~OUT_IS_UP);
    if (lanes_up == sim->kinds[is_out ? out->kind : sim->ins[id].kind].lanes_up)
        return;
    (void)emu_link_get(sim->m, id, &link);
    kind = sim_kind_of(sim, &link, lanes_up);
    if (kind < 0)
        emu_wheel_no_memory();
    if (is_out)
        begin_epoch(sim, id);
    set_kind(sim, id, (uint16_t)kind);
}

static void set_links(struct emu_sim *sim)
{
    for (uint32_t i = 0; i < sim->n_held; i++) {
        for (uint32_t id = sim->held[i].first; id < sim->held[i].end; id++)
            set_link(sim, id);
    }
}

void emu_sim_set_faults(struct emu_sim *sim, const struct emu_fault_map *faults)
{
    struct emu_fault_map *copy = NULL;

    if ((!faults ? emu_fault_map_create(sim->m, &copy) : emu_fault_map_copy(faults, &copy)) < 0)
        emu_wheel_no_memory();
    emu_fault_map_destroy(sim->faults);
    sim->faults = copy;
    sim_make_outs(sim);
    set_links(sim);
    for (uint32_t i = sim->first_router; sim_is_own(sim, i); i++)
        sim->routers[i].is_up = emu_fault_map_router_up(sim->faults, i);
    for (uint32_t nid = 0; nid < sim->m->n_nodes; nid++) {
        struct nic *n = &sim->nics[nid];

        if (!emu_sim_owns(sim, nid))
            continue;
        n->is_up = (sim->outs[n->link].flags & OUT_IS_UP) != 0;
        emu_wheel_put(&sim->parts[sim->routers[sim->nic_router[nid]].part].wheel,
                      sim->parts[sim->routers[sim->nic_router[nid]].part].slot,
                      (struct emu_event){ .kind = EMU_EVENT_INJECT, .index = nid });
    }
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        struct part *part = &sim->parts[i];
        struct cleaning c = { .sim = sim, .part = part };

        part->view.faults = sim->faults;
        look_everywhere(part);
        emu_wheel_filter(&part->wheel, stays, &c);
        for (uint32_t j = part->first_router; j < part->end_router; j++) {
            if (sim->routers[j].is_up == 0)
                empty_router(&c, j);
        }
        for (size_t j = 0; j < c.n_cells; j++)
            sim_lose_now(part, c.cells[j]);
        free(c.cells);
    }
}

static void make_errors(struct emu_sim *sim)
{
    if (sim->errors)
        return;
    sim_make_outs(sim);
    sim->errors = sim_grown(NULL, sim->m->n_links * sizeof(*sim->errors));
    for (uint32_t id = 0; id < sim->m->n_links; id++) {
        sim->errors[id] =
            (struct link_errors){ .random = { .state = emu_random_mix(~sim->options.seed ^ emu_random_mix(id + 1)) } };
    }
}

void emu_sim_set_bit_error_rate(struct emu_sim *sim, uint32_t link, double ber)
{
    uint32_t first = link == EMU_SIM_ALL_LINKS ? 0 : link;
    uint32_t end = link == EMU_SIM_ALL_LINKS ? sim->m->n_links : link + 1;

    assert(end <= sim->m->n_links && ber >= 0 && ber < 1 && !sim->world);
    make_errors(sim);
    for (uint32_t id = first; id < end; id++) {
        /* Links of NICs are on the chip: only asked for by name. */
        if (link == EMU_SIM_ALL_LINKS && (sim->outs[id].flags & (OUT_TO_NIC | OUT_FROM_NIC)) != 0)
            continue;
        sim->errors[id].bit_error_rate = ber;
        sim->outs[id].flags |= OUT_UNRELIABLE;
    }
}

void emu_sim_corrupt_next(struct emu_sim *sim, uint32_t link, bool is_seen)
{
    assert(link < sim->m->n_links);
    make_errors(sim);
    sim->errors[link].corrupt_next = is_seen ? 1 : 2;
    sim->outs[link].flags |= OUT_UNRELIABLE;
}
