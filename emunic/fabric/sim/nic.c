/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs: where traffic enters and leaves.
 *
 * A NIC holds at most one packet per traffic class that waits to enter, and asks the traffic for the next when that one
 * has started. Traffic that had none is asked again after emu_sim_wake(). Entering means crossing the NIC's own link
 * into a channel of the router that takes the class: the one with most room, or for packets that must stay in order
 * (in-order and hashed modes, deterministic) one that the pair of nodes fixes. The classes take turns, or the response
 * class goes first (router.response_first).
 *
 * With end points (struct emu_sim_options) a NIC sends no faster than nic.access_cycles allow, and a packet takes room
 * in a reception buffer until the NIC has taken it out. It takes packets one after another, each in nic.drain_cycles
 * for a full one and not before its tail is here. A full buffer gives its router no tokens, so packets wait in the
 * network. A NIC takes packets whatever else happens, so each packet in front of it goes on some time: no channel
 * depends on a reception buffer for ever, and a routing that was free of deadlock still is.
 *
 * A packet is delivered when its tail is out of the last link, or out of the reception buffer. A lost one is reported
 * to its sender, a fixed time after the loss that no window exceeds, because the sender may belong to another thread.
 *
 * What traffic hears of in a slot is brought into an order of its own first: a node's next packets may depend on it,
 * and the order in which events went into the wheel depends on who shares a thread.
 */
#include "emunic/fabric/sim/transmit.h"

#include <stdlib.h>

#define SHORT_SORT 32u /* reports that are sorted by insertion */

/* ---- entering ---- */

static bool keeps_order(const struct emu_packet *p)
{
    return p->mode == EMU_MODE_IN_ORDER || p->mode == EMU_MODE_MIN_HASH || p->mode == EMU_MODE_NMIN_HASH ||
           p->mode == EMU_MODE_DETERMINISTIC;
}

static bool takes(const struct link_kind *kind, uint32_t vc, uint32_t traffic_class)
{
    return kind->class_of_vc[vc] == EMU_VC_ANY || kind->class_of_vc[vc] == traffic_class;
}

/* The channel that a packet will enter by; false: it has no room, `*vc_out` will tell. */
static bool find_channel(struct emu_sim *sim, const struct out_link *out, const struct emu_packet *p, uint32_t *vc_out)
{
    const struct link_kind *kind = &sim->kinds[out->kind];
    uint32_t best = EMU_VCS_MAX;
    uint32_t n = 0;

    for (uint32_t vc = 0; vc < kind->n_vcs; vc++) {
        if (!takes(kind, vc, p->traffic_class))
            continue;
        n++;
        if (best == EMU_VCS_MAX || out->tokens[vc] > out->tokens[best])
            best = vc;
    }
    if (n > 1 && keeps_order(p)) {
        uint64_t k = emu_random_mix((uint64_t)p->src_nid << 32 | p->dst_nid) % n;

        for (best = 0; !takes(kind, best, p->traffic_class) || k-- > 0; best++)
            ;
    }
    if (sim->options.has_ends && sim->routing->injection_vc) {
        uint32_t own = sim->routing->injection_vc(sim->m, p);

        best = own < kind->n_vcs ? own : best;
    }
    *vc_out = best;
    return sim_free_tokens(out, best) >= sim_charge(sim, kind, best, p->units);
}

static bool ask_traffic(struct part *part, uint32_t nid, uint32_t traffic_class)
{
    struct emu_sim *sim = part->sim;
    struct nic *n = &sim->nics[nid];
    struct emu_packet packet = { .src_nid = nid, .traffic_class = (uint8_t)traffic_class };
    uint32_t cell;

    n->awake &= (uint8_t) ~(1u << traffic_class); /* before the call, which may wake it again */
    if (!sim->traffic.next(sim->traffic.ctx, sim, nid, (enum emu_traffic_class)traffic_class, part->slot_ps, &packet))
        return false;
    n->awake |= (uint8_t)(1u << traffic_class);
    assert(packet.src_nid == nid && packet.dst_nid < sim->m->n_nodes);
    assert(packet.traffic_class == traffic_class);
    assert(packet.units > 0 && packet.units <= sim->p.packet_units_max);
    cell = sim_cell_take(part);
    packet.hops = 0;
    packet.n_optical = 0;
    part->cells[cell].packet = packet;
    part->cells[cell].is_started = false;
    part->cells[cell].is_copy = false;
    n->waiting[traffic_class] = cell;
    if (packet.created_ps >= part->slot_ps + sim->clock_ps)
        sim_put(part, packet.created_ps, (struct emu_event){ .kind = EMU_EVENT_INJECT, .index = nid });
    return true;
}

/* Of a NIC, for so many units. */
static uint64_t nic_ps(uint64_t unit_ps, uint32_t units)
{
    return (units * unit_ps + (UINT64_C(1) << (SIM_RATE_SHIFT - 1))) >> SIM_RATE_SHIFT;
}

static void await_free(struct part *part, uint32_t link, struct out_link *out)
{
    if ((out->flags & OUT_FREE_EVENT) != 0)
        return;
    out->flags |= OUT_FREE_EVENT;
    sim_put(part, part->sim->free_ps[link], (struct emu_event){ .kind = EMU_EVENT_NIC_FREE, .index = link });
}

/* One packet of the class starts, if it can in this slot. */
static bool enter(struct part *part, uint32_t nid, uint32_t traffic_class)
{
    struct emu_sim *sim = part->sim;
    struct nic *n = &sim->nics[nid];
    struct out_link *out = &sim->outs[n->link];
    uint64_t end_ps = part->slot_ps + sim->clock_ps;
    uint64_t at_ps = part->slot_ps;
    struct emu_packet *p;
    uint64_t start_ps;
    uint32_t charge, units;
    uint32_t vc;

    if (n->waiting[traffic_class] == SIM_NONE &&
        ((n->awake >> traffic_class & 1) == 0 || !ask_traffic(part, nid, traffic_class)))
        return false;
    p = &part->cells[n->waiting[traffic_class]].packet;
    if (p->created_ps >= end_ps)
        return false; /* an event will come */
    if (sim->free_ps[n->link] >= end_ps) {
        await_free(part, n->link, out);
        return false;
    }
    if (!find_channel(sim, out, p, &vc)) {
        charge = sim_charge(sim, &sim->kinds[out->kind], vc, p->units);
        sim_await_tokens(sim, out, n->link, vc, charge, at_ps);
        return false;
    }
    if (at_ps < p->created_ps)
        at_ps = p->created_ps;
    start_ps = sim_later(at_ps, sim->free_ps[n->link]);
    p->entered_ps = start_ps;
    units = p->units;
    charge = sim_charge(sim, &sim->kinds[out->kind], vc, p->units);
    part->totals.entered++;
    part->totals.in_network++;
    (void)sim_transmit(part, (struct sim_start){ n->link, vc, n->waiting[traffic_class], charge }, at_ps, 0);
    if (sim->inject_unit_ps != 0)
        sim->free_ps[n->link] = sim_later(sim->free_ps[n->link], start_ps + nic_ps(sim->inject_unit_ps, units));
    n->waiting[traffic_class] = SIM_NONE;
    n->last_class = (uint8_t)traffic_class;
    return true;
}

static void decide(struct part *part, uint32_t nid)
{
    struct nic *n = &part->sim->nics[nid];
    bool went;

    n->is_listed = 0;
    if (n->is_up == 0)
        return;
    do {
        uint32_t first =
            part->sim->p.response_first != 0 ? EMU_TRAFFIC_RESPONSE : (n->last_class + 1u) % EMU_TRAFFIC_CLASSES;

        went = false;
        for (uint32_t i = 0; i < EMU_TRAFFIC_CLASSES && !went; i++)
            went = enter(part, nid, (first + i) % EMU_TRAFFIC_CLASSES);
    } while (went);
}

void sim_nics_decide(struct part *part)
{
    const struct emu_sim *sim = part->sim;
    const uint32_t *nids = part->nics;

    for (uint32_t i = 0; i < part->n_nics; i++) {
        if (i + 8 < part->n_nics)
            __builtin_prefetch(&sim->nics[nids[i + 8]], 1);
        if (i + 4 < part->n_nics)
            __builtin_prefetch(&sim->outs[sim->nics[nids[i + 4]].link], 1);
        decide(part, nids[i]);
    }
    part->n_nics = 0;
}

void sim_nic_free(struct part *part, const struct emu_event *event)
{
    struct out_link *out = &part->sim->outs[event->index];

    out->flags &= (uint8_t)~OUT_FREE_EVENT;
    sim_list_nic(part, out->from);
}

void emu_sim_wake(struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class)
{
    struct part *part = &sim->parts[sim->routers[sim->nic_router[nid]].part];
    struct nic *n = &sim->nics[nid];

    if ((n->awake >> traffic_class & 1) != 0)
        return;
    n->awake |= (uint8_t)(1u << traffic_class);
    if (part->is_applying)
        sim_list_nic(part, nid);
    else
        emu_wheel_put(&part->wheel, part->slot + part->is_running,
                      (struct emu_event){ .kind = EMU_EVENT_INJECT, .index = nid });
}

uint32_t emu_sim_injection_units(const struct emu_sim *sim, uint32_t nid, uint32_t vc)
{
    const struct out_link *out = &sim->outs[sim->nics[nid].link];
    int32_t used = (int32_t)sim->kinds[out->kind].capacity_tokens[vc] - out->tokens[vc];

    return used > 0 ? (uint32_t)used * sim->p.token_units : 0;
}

/* ---- leaving ---- */

uint64_t sim_receive(struct part *part, struct sim_start start, uint64_t start_ps, uint64_t length_ps)
{
    struct emu_sim *sim = part->sim;
    struct out_link *out = &sim->outs[start.link];
    uint64_t tail_ps = start_ps + length_ps;
    uint64_t there_ps = tail_ps + sim->kinds[out->kind].wire_ps;
    uint64_t *drained_ps = &sim->drained_ps[out->to];

    *drained_ps = sim_later(there_ps, *drained_ps + nic_ps(sim->drain_unit_ps, part->cells[start.cell].packet.units));
    sim_take_tokens(out, start.vc, start.charge);
    sim_put(part, *drained_ps,
            (struct emu_event){
                .kind = EMU_EVENT_CREDIT, .index = start.link, .payload = start.charge, .vc = (uint8_t)start.vc });
    sim_put(part, *drained_ps,
            (struct emu_event){ .kind = EMU_EVENT_DELIVER, .index = out->to, .payload = start.cell });
    return tail_ps;
}

static uint64_t delivery_hash(uint32_t nid, const struct emu_packet *p, uint64_t now_ps)
{
    uint64_t h = emu_random_mix(now_ps ^ (uint64_t)nid << 40);

    h = emu_random_mix(h ^ p->entered_ps ^ (uint64_t)p->src_nid << 40);
    h = emu_random_mix(h ^ p->created_ps ^ (uint64_t)p->hops << 56 ^ (uint64_t)p->flags << 48 ^ p->units);
    return emu_random_mix(h ^ p->route_state);
}

static void deliver(struct part *part, const struct emu_event *event)
{
    struct emu_sim *sim = part->sim;
    struct emu_sim_totals *t = &part->totals;
    uint64_t now_ps = part->slot_ps + event->offset_ps;
    struct emu_packet p = part->cells[event->payload].packet;

    t->trace_hash += delivery_hash(event->index, &p, now_ps); /* a sum: the order of nodes does not matter */
    if (part->cells[event->payload].is_copy) {
        t->deposited++;
    } else {
        t->delivered++;
        t->in_network--;
        t->nonminimal += (p.flags & EMU_PACKET_NONMINIMAL) != 0;
        t->latency_sum_ps += now_ps - p.created_ps;
        t->network_latency_sum_ps += now_ps - p.entered_ps;
        if (now_ps - p.created_ps > t->latency_max_ps)
            t->latency_max_ps = now_ps - p.created_ps;
    }
    t->delivered_units += p.units;
    sim_cell_free(part, event->payload);
    sim->traffic.delivered(sim->traffic.ctx, sim, event->index, &p, now_ps);
}

void sim_lose(struct part *part, uint32_t cell)
{
    struct emu_sim *sim = part->sim;
    uint32_t nid = part->cells[cell].packet.src_nid;
    uint32_t home = sim_part_of(sim, sim->nic_router[nid]);
    struct emu_event event = { .kind = EMU_EVENT_LOST, .index = nid, .payload = cell };

    part->totals.in_network--;
    if (home == sim_number(part))
        sim_put(part, part->slot_ps + sim->lost_ps, event);
    else
        sim_post_arrival(part, home, part->slot_ps + sim->lost_ps, event);
}

void sim_lose_now(struct part *part, uint32_t cell)
{
    struct emu_sim *sim = part->sim;
    uint32_t nid = part->cells[cell].packet.src_nid;
    struct part *home = &sim->parts[sim->routers[sim->nic_router[nid]].part];
    uint32_t there = cell;

    part->totals.lost++;
    part->totals.in_network--;
    if (home != part) {
        there = sim_cell_take(home);
        home->cells[there].packet = part->cells[cell].packet;
        sim_cell_free(part, cell);
    }
    emu_wheel_put(&home->wheel, home->slot,
                  (struct emu_event){ .kind = EMU_EVENT_LOST, .index = nid, .payload = there });
}

static void tell_lost(struct part *part, const struct emu_event *event)
{
    struct emu_sim *sim = part->sim;
    struct emu_packet p = part->cells[event->payload].packet;

    sim_cell_free(part, event->payload);
    if (sim->traffic.lost)
        sim->traffic.lost(sim->traffic.ctx, sim, event->index, &p, part->slot_ps + event->offset_ps);
}

/* ---- what traffic hears of ---- */

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* By node and time; of the same moment by what does not depend on where packets are kept. */
static int compare_reports(const void *a_report, const void *b_report, void *ctx)
{
    const struct part *part = ctx;
    const struct emu_event *a = a_report;
    const struct emu_event *b = b_report;
    const struct emu_packet *p = &part->cells[a->payload].packet;
    const struct emu_packet *q = &part->cells[b->payload].packet;
    int order = compare((uint64_t)a->index << 16 | a->offset_ps, (uint64_t)b->index << 16 | b->offset_ps);

    if (order == 0)
        order = compare(a->kind, b->kind);
    if (order == 0)
        order = compare(p->entered_ps, q->entered_ps);
    if (order == 0)
        order = compare((uint64_t)p->src_nid << 32 | p->dst_nid, (uint64_t)q->src_nid << 32 | q->dst_nid);
    return order != 0 ? order : compare(p->tag, q->tag);
}

static void sort_reports(struct part *part)
{
    struct emu_event *reports = part->reports;

    if (part->n_reports > SHORT_SORT) {
        qsort_r(reports, part->n_reports, sizeof(*reports), compare_reports, part);
        return;
    }
    for (uint32_t i = 1; i < part->n_reports; i++) {
        struct emu_event report = reports[i];
        uint32_t at = i;

        for (; at > 0 && compare_reports(&reports[at - 1], &report, part) > 0; at--)
            reports[at] = reports[at - 1];
        reports[at] = report;
    }
}

void sim_nic_report(struct part *part, const struct emu_event *event)
{
    if (part->n_reports == part->report_capacity) {
        part->report_capacity = part->report_capacity == 0 ? 64 : 2 * part->report_capacity;
        part->reports = sim_grown(part->reports, part->report_capacity * sizeof(*part->reports));
    }
    part->reports[part->n_reports++] = *event;
}

void sim_nics_tell(struct part *part)
{
    sort_reports(part);
    for (uint32_t i = 0; i < part->n_reports; i++) {
        if (part->reports[i].kind == EMU_EVENT_DELIVER)
            deliver(part, &part->reports[i]);
        else
            tell_lost(part, &part->reports[i]);
    }
    part->n_reports = 0;
}

/* ---- timers ---- */

static bool timer_before(const struct timer *a, const struct timer *b)
{
    return a->at_ps < b->at_ps || (a->at_ps == b->at_ps && a->number < b->number);
}

static void add_timer(struct emu_sim *sim, unsigned heap_number, struct timer timer)
{
    struct part *part = &sim->parts[sim->routers[sim->nic_router[timer.nid]].part];
    struct timer_heap *heap = &part->timers[heap_number];
    size_t i = heap->n;

    timer.number = part->timer_number++;
    if (timer.at_ps < part->slot_ps + sim->clock_ps && part->is_running) /* this slot's are done */
        timer.at_ps = part->slot_ps + sim->clock_ps;
    else if (timer.at_ps < part->slot_ps) /* between two runs: time does not go back */
        timer.at_ps = part->slot_ps;
    if (heap->n == heap->capacity) {
        heap->capacity = heap->capacity == 0 ? 256 : heap->capacity * 2;
        heap->timers = sim_grown(heap->timers, heap->capacity * sizeof(*heap->timers));
    }
    heap->n++;
    for (; i > 0 && timer_before(&timer, &heap->timers[(i - 1) / 2]); i = (i - 1) / 2)
        heap->timers[i] = heap->timers[(i - 1) / 2];
    heap->timers[i] = timer;
}

void emu_sim_call_at(struct emu_sim *sim, uint32_t nid, uint64_t at_ps, uint64_t cookie)
{
    add_timer(sim, TIMERS, (struct timer){ .at_ps = at_ps, .cookie = cookie, .nid = nid });
}

void emu_sim_end_at(struct emu_sim *sim, uint32_t nid, uint64_t at_ps, uint64_t cookie)
{
    add_timer(sim, ENDING_TIMERS, (struct timer){ .at_ps = at_ps, .cookie = cookie, .nid = nid });
}

static uint64_t slot_of_heap(const struct part *part, unsigned number)
{
    const struct timer_heap *heap = &part->timers[number];

    return heap->n == 0 ? UINT64_MAX : heap->timers[0].at_ps / part->sim->clock_ps;
}

uint64_t sim_ending_slot(const struct part *part)
{
    return slot_of_heap(part, ENDING_TIMERS);
}

uint64_t sim_timer_slot(const struct part *part)
{
    uint64_t slot = slot_of_heap(part, TIMERS);
    uint64_t ending = slot_of_heap(part, ENDING_TIMERS);

    return slot < ending ? slot : ending;
}

static struct timer take_timer(struct timer_heap *heap)
{
    struct timer first = heap->timers[0];
    struct timer last = heap->timers[--heap->n];
    size_t i = 0;

    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= heap->n)
            break;
        if (child + 1 < heap->n && timer_before(&heap->timers[child + 1], &heap->timers[child]))
            child++;
        if (!timer_before(&heap->timers[child], &last))
            break;
        heap->timers[i] = heap->timers[child];
        i = child;
    }
    heap->timers[i] = last;
    return first;
}

/* The heap with the first timer of both. NULL: none is due. */
static struct timer_heap *due_heap(struct part *part)
{
    struct timer_heap *heap = &part->timers[TIMERS];
    struct timer_heap *ending = &part->timers[ENDING_TIMERS];

    if (heap->n == 0 || (ending->n > 0 && timer_before(&ending->timers[0], &heap->timers[0])))
        heap = ending;
    return heap->n > 0 && heap->timers[0].at_ps < part->slot_ps + part->sim->clock_ps ? heap : NULL;
}

void sim_timers(struct part *part)
{
    struct emu_sim *sim = part->sim;
    struct timer_heap *heap;

    while ((heap = due_heap(part))) {
        struct timer timer = take_timer(heap);

        part->totals.events++;
        part->has_ended = part->has_ended || heap == &part->timers[ENDING_TIMERS];
        if (sim->traffic.timer)
            sim->traffic.timer(sim->traffic.ctx, sim, timer.nid, timer.cookie, timer.at_ps);
    }
}
