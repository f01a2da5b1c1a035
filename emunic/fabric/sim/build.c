/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Building a simulation from a machine, and taking it apart.
 *
 * Links with the same class, lanes and wire share a struct link_kind. Channels are numbered router by router, within a
 * router by link id. Routers are split in contiguous ranges, one per thread (split.c).
 *
 * Of several processes each numbers the whole machine and builds its own part. The arrays have an entry for everything,
 * so that an index means the same in all processes, and memory only where something was written.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/fabric/sim/state.h"

#define QUEUE_BYTES_PER_NODE_MAX 2048
#define LARGE_LINK_BYTES         (512u << 10) /* with their channels and packets some times as much */

/* ---- kinds of links ---- */

static bool is_between_routers(const struct emu_link *link)
{
    return link->from.kind == EMU_END_ROUTER && link->to.kind == EMU_END_ROUTER;
}

static struct link_kind describe_kind(const struct emu_sim *sim, const struct emu_link *link, uint32_t lanes_up)
{
    const struct emu_router_params *p = &sim->p;
    const struct emu_link_rate rate = emu_link_rate(&sim->m->params, link->link_class, lanes_up);
    struct link_kind kind = {
        .bits_per_ps = (double)rate.mbps * 1e-6,
        .head_ps = link->wire_ps,
        .wire_ps = link->wire_ps,
        .is_optical = link->link_class == EMU_LINK_BLUE,
        .link_class = link->link_class,
        .lanes_up = lanes_up,
        .n_vcs = (uint8_t)sim->routing->n_vcs(sim->m, link->link_class),
    };

    if (is_between_routers(link)) {
        kind.overhead_units = p->packet_overhead_flits;
        kind.head_ps = p->hop_ps + (link->wire_ps > p->hop_wire_ps ? link->wire_ps - p->hop_wire_ps : 0);
    }
    /* bits / (Mb/s) = microseconds = 10^6 ps */
    kind.unit_ps =
        (uint64_t)(((unsigned __int128)sim->m->params.nic.format.flit_bits * 1000000 * rate.frame << SIM_RATE_SHIFT) /
                   ((unsigned __int128)rate.mbps * rate.payload));
    for (uint32_t vc = 0; vc < kind.n_vcs; vc++) {
        struct emu_vc_info info = { 0 };

        sim->routing->vc(sim->m, link->link_class, vc, &info);
        kind.capacity_tokens[vc] = (uint16_t)(info.capacity_units / p->token_units);
        kind.quarter_tokens[vc] = (uint16_t)((kind.capacity_tokens[vc] + p->shared_units / p->token_units + 3u) / 4);
        kind.class_of_vc[vc] = info.traffic_class;
        if (info.is_bubble)
            kind.bubble_vcs |= (uint8_t)(1u << vc);
    }
    return kind;
}

int sim_kind_of(struct emu_sim *sim, const struct emu_link *link, uint32_t lanes_up)
{
    struct link_kind *kinds;

    for (uint32_t i = sim->n_kinds; i-- > 0;) {
        const struct link_kind *k = &sim->kinds[i];

        if (k->link_class == link->link_class && k->lanes_up == lanes_up && k->wire_ps == link->wire_ps)
            return (int)i;
    }
    kinds = realloc(sim->kinds, (sim->n_kinds + 1) * sizeof(*kinds));
    if (!kinds || sim->n_kinds == UINT16_MAX)
        return -ENOMEM;
    sim->kinds = kinds;
    sim->kinds[sim->n_kinds] = describe_kind(sim, link, lanes_up);
    return (int)sim->n_kinds++;
}

/* ---- the network ---- */

static bool has_reception_buffers(const struct emu_sim *sim)
{
    return sim->options.has_ends && sim->m->params.ends.reception_units != 0;
}

/* Of each channel of a NIC. */
static int16_t reception_tokens(const struct emu_sim *sim)
{
    return has_reception_buffers(sim) ? (int16_t)(sim->m->params.ends.reception_units / sim->p.token_units) :
                                        INT16_MAX; /* it takes what comes */
}

/* Links out of this process, into it, and within it. */
static int hold(struct emu_sim *sim, uint32_t id)
{
    struct sim_links *held = sim->held;

    if (sim->n_held > 0 && held[sim->n_held - 1].end == id) {
        held[sim->n_held - 1].end++;
        return 0;
    }
    if ((sim->n_held & (sim->n_held - 1)) == 0) { /* full: as long as a power of two */
        held = realloc(held, (sim->n_held == 0 ? 1 : 2 * (size_t)sim->n_held) * sizeof(*held));
        if (!held)
            return -ENOMEM;
        sim->held = held;
    }
    held[sim->n_held++] = (struct sim_links){ id, id + 1 };
    return 0;
}

static void build_out(struct emu_sim *sim, uint32_t id, const struct emu_link *link, uint16_t kind)
{
    struct out_link *out = &sim->outs[id];

    *out = sim_out_new(sim, kind);
    out->from = link->from.index;
    out->to = link->to.index; /* of a NIC's: to its channel, below */
    if (link->to.kind == EMU_END_NIC) {
        out->flags |= OUT_TO_NIC;
        out->shared_tokens = 0;
        for (uint32_t vc = 0; vc < EMU_VCS_MAX; vc++)
            out->tokens[vc] = reception_tokens(sim);
        return;
    }
    out->part = (uint8_t)sim_part_of(sim, link->to.index);
    if (link->from.kind == EMU_END_NIC) {
        out->flags |= OUT_FROM_NIC;
        sim->nics[link->from.index].link = id;
    } else {
        sim->parts[sim->routers[link->from.index].part].own_link = id;
    }
}

/* Between two routers of this process: made when it is needed. */
static void note_out(struct emu_sim *sim, uint32_t id, uint32_t router)
{
    struct router *r = &sim->routers[router];

    sim->next_out[id] = r->first_out;
    r->first_out = id;
    sim->parts[r->part].own_link = id;
}

static void build_in(struct emu_sim *sim, uint32_t id, const struct emu_link *link, uint16_t kind)
{
    struct router *r = &sim->routers[link->to.index];

    sim->ins[id] = (struct in_link){
        .kind = kind, .router = link->to.index, .part = r->part, .flags = IN_IS_OWN, .first_vc = r->first_vc + r->n_vcs
    };
    r->n_vcs = (uint16_t)(r->n_vcs + sim->kinds[kind].n_vcs);
    if (link->from.kind == EMU_END_NIC)
        sim->ins[id].flags |= IN_IS_ENTERING;
    else
        sim->ins[id].part = (uint8_t)sim_part_of(sim, link->from.index);
}

static int build_link(struct emu_sim *sim, uint32_t id)
{
    struct emu_link link;
    bool is_out, is_in;
    uint16_t kind;

    (void)emu_link_get(sim->m, id, &link);
    if (link.to.kind == EMU_END_NIC)
        sim->nic_router[link.to.index] = link.from.index;
    is_out = sim_is_own(sim, link.from.kind == EMU_END_NIC ? link.to.index : link.from.index);
    is_in = link.to.kind == EMU_END_ROUTER && sim_is_own(sim, link.to.index);
    if (!is_out && !is_in)
        return 0;
    kind = (uint16_t)sim_kind_of(sim, &link, link.lanes); /* is there */
    if (is_out && is_in && is_between_routers(&link))
        note_out(sim, id, link.from.index);
    else if (is_out)
        build_out(sim, id, &link, kind);
    if (is_in)
        build_in(sim, id, &link, kind);
    /* Of the others' not even read: pages that have been looked at before they are wished large stay small. */
    if (is_out && is_in && !is_between_routers(&link))
        sim->outs[id].to = sim->ins[id].first_vc;
    else if (link.to.kind == EMU_END_NIC)
        sim->ins[id] = (struct in_link){ .kind = kind };
    return hold(sim, id);
}

static int build_links(struct emu_sim *sim)
{
    const struct emu_machine *m = sim->m;
    int r = 0;

    if (reception_tokens(sim) < (int)sim->full_tokens)
        return -EINVAL;
    for (uint32_t id = 0; id < m->n_links && r == 0; id++)
        r = build_link(sim, id);
    for (uint32_t nid = m->n_nodes; nid-- > 0;) {
        if (sim_is_own(sim, sim->nic_router[nid]))
            sim->routers[sim->nic_router[nid]].first_nid = nid;
    }
    return r;
}

/* All routers are numbered, and so their channels; this process's exist. */
static void build_routers(struct emu_sim *sim, const uint32_t *n_vcs)
{
    for (uint32_t i = 0; i < sim->m->n_routers; i++) {
        if (sim_is_own(sim, i)) {
            struct router *r = &sim->routers[i];

            r->random.state = emu_random_mix(sim->options.seed ^ emu_random_mix(i + 1));
            r->is_up = true;
            r->first_nid = SIM_NONE;
            r->first_out = SIM_NONE;
            r->first_vc = sim->n_vcs;
            r->first_word = sim->n_words;
            if (i == sim->first_router)
                sim->first_own_vc = sim->n_vcs;
            sim->n_own_vcs += n_vcs[i];
        }
        sim->n_vcs += n_vcs[i];
        sim->n_words += n_vcs[i] > 64 ? (n_vcs[i] + 63u) / 64 : 0;
        if (n_vcs[i] > sim->vcs_of_router_max)
            sim->vcs_of_router_max = n_vcs[i];
    }
}

/* Large pages for what will be used of an array by link, or by class of traffic and link. */
static void wish_links_of(const struct emu_sim *sim, void *array, size_t bytes_each, uint32_t n_classes)
{
    for (uint32_t i = 0; i < n_classes * sim->n_held; i++) {
        size_t first = (size_t)(i / sim->n_held) * sim->m->n_links;
        const struct sim_links *links = &sim->held[i % sim->n_held];

        sim_array_wish(array, (first + links->first) * bytes_each, (first + links->end) * bytes_each);
    }
}

static void wish_links(const struct emu_sim *sim, void *array, size_t bytes_each)
{
    wish_links_of(sim, array, bytes_each, 1);
}

/* Room for the channels, when partitions are known. */
static int build_queues(struct emu_sim *sim)
{
    const struct emu_machine *m = sim->m;
    size_t first_vc = sim->first_own_vc;

    if (sim->n_vcs * sizeof(*sim->vcs) > (size_t)m->n_nodes * QUEUE_BYTES_PER_NODE_MAX) {
        sim->vc_index = sim_array(NULL, 0, sim->n_vcs * sizeof(*sim->vc_index));
        if (!sim->vc_index)
            return -ENOMEM;
        sim_array_wish(sim->vc_index, first_vc * sizeof(*sim->vc_index),
                       (first_vc + sim->n_own_vcs) * sizeof(*sim->vc_index));
        return 0;
    }
    sim->vcs = sim_array(NULL, 0, sim->n_vcs * sizeof(*sim->vcs));
    if (!sim->vcs)
        return -ENOMEM;
    sim_array_wish(sim->vcs, first_vc * sizeof(*sim->vcs), (first_vc + sim->n_own_vcs) * sizeof(*sim->vcs));
    for (uint32_t i = 0; i < sim->n_parts; i++)
        sim->parts[i].vcs = sim->vcs;
    return 0;
}

static int build_marks(struct emu_sim *sim)
{
    if (sim->vcs_of_router_max <= 64)
        return 0;
    sim->mark_words = (sim->vcs_of_router_max + 63) / 64;
    sim->mark_members = calloc(64 * (size_t)sim->mark_words, sizeof(*sim->mark_members));
    if (!sim->mark_members)
        return -ENOMEM;
    for (uint32_t local = 0; local < sim->vcs_of_router_max; local++)
        sim->mark_members[sim_mark_number(local) * sim->mark_words + local / 64] |= UINT64_C(1) << (local % 64);
    return 0;
}

/* ---- partitions ---- */

static uint64_t wheel_slots(const struct emu_sim *sim)
{
    uint64_t longest = 0;

    for (uint32_t i = 0; i < sim->n_kinds; i++) {
        const struct link_kind *k = &sim->kinds[i];
        uint64_t ps = 2 * sim_length_ps(k, sim->p.packet_units_max) + k->head_ps + k->wire_ps;

        if (ps > longest)
            longest = ps;
    }
    return longest / sim->clock_ps + 4;
}

static int build_part(struct emu_sim *sim, struct part *part, uint32_t n_nodes)
{
    uint32_t n_routers = part->end_router - part->first_router;
    size_t n = sim->vcs_of_router_max;

    part->sim = sim;
    part->number = (uint32_t)(part - sim->parts);
    part->clock_ps = sim->clock_ps;
    part->slots_per_ps = UINT64_MAX / sim->clock_ps + 1;
    part->free_cell = SIM_NONE;
    part->free_options = SIM_NONE;
    part->routers = calloc(n_routers, sizeof(*part->routers));
    part->nics = calloc(n_nodes > 0 ? n_nodes : 1, sizeof(*part->nics));
    part->candidates = calloc(n, sizeof(*part->candidates));
    part->winners = calloc(n, sizeof(*part->winners));
    part->looks_max = n > SIM_LOOK_BATCH ? (uint32_t)n : SIM_LOOK_BATCH;
    part->looks = calloc(part->looks_max, sizeof(*part->looks));
    part->requests = calloc(part->looks_max, sizeof(*part->requests));
    part->losers = calloc(part->looks_max, sizeof(struct in_vc *));
    part->out = calloc(sim_n_outboxes(sim), sizeof(*part->out));
    if (!part->routers || !part->nics || !part->requests || !part->candidates || !part->winners || !part->looks ||
        !part->losers || !part->out)
        return -ENOMEM;
    for (uint32_t i = 0; i < sim_n_outboxes(sim); i++)
        part->out[i].first_slot = UINT64_MAX;
    part->view = (struct emu_route_view){
        .machine = sim->m,
        .faults = sim->faults,
        .near_load = sim_near_load,
        .far_load = sim_far_load,
        .ctx = part,
    };
    if (emu_wheel_init(&part->wheel, wheel_slots(sim)) < 0)
        return -ENOMEM;
    part->ring_ps = (uint64_t)(part->wheel.n_slots - 1) * sim->clock_ps;
    if (part->ring_ps > UINT32_MAX - sim->clock_ps)
        part->ring_ps = UINT32_MAX - sim->clock_ps;
    return 0;
}

/* Where the routers of each part are; which are this process's. */
static int place_parts(struct emu_sim *sim, const struct sim_survey *survey)
{
    uint32_t size = !sim->world ? 1 : sim->world->calls->size;
    uint32_t rank = !sim->world ? 0 : sim->world->calls->rank;
    uint32_t n = sim->n_parts * size;
    uint32_t *bounds = calloc(n + 1, sizeof(*bounds));

    sim->parts = aligned_alloc(64, (sim->n_parts * sizeof(*sim->parts) + 63) / 64 * 64);
    if (!sim->parts || !bounds) {
        free(bounds);
        return -ENOMEM;
    }
    sim_split(sim, survey, n, bounds);
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        uint32_t number = rank * sim->n_parts + i;

        sim->parts[i] = (struct part){ .first_router = bounds[number], .end_router = bounds[number + 1] };
        for (uint32_t j = bounds[number]; j < bounds[number + 1]; j++)
            sim->routers[j].part = (uint8_t)i;
    }
    sim->first_router = bounds[rank * sim->n_parts];
    sim->n_own_routers = bounds[(rank + 1) * sim->n_parts] - sim->first_router;
    for (uint32_t i = 0; sim->world && i <= size; i++)
        sim->world->bounds[i] = bounds[i * sim->n_parts];
    free(bounds);
    return 0;
}

static int build_parts(struct emu_sim *sim)
{
    const struct emu_machine *m = sim->m;
    uint32_t *n_nodes = calloc(sim->n_parts, sizeof(*n_nodes));
    int r = 0;

    if (!n_nodes)
        return -ENOMEM;
    for (uint32_t nid = 0; nid < m->n_nodes; nid++) {
        if (sim_is_own(sim, sim->nic_router[nid]))
            n_nodes[sim->routers[sim->nic_router[nid]].part]++;
    }
    for (uint32_t i = 0; i < sim->n_parts && r == 0; i++)
        r = build_part(sim, &sim->parts[i], n_nodes[i]);
    free(n_nodes);
    return r;
}

/* ---- what depends on all kinds of links ---- */

static int build_times(struct emu_sim *sim)
{
    uint32_t longest_ps = 0;

    sim->unit_ps = UINT64_MAX;
    for (uint32_t i = 0; i < sim->n_kinds; i++) {
        if (sim->kinds[i].head_ps > longest_ps)
            longest_ps = sim->kinds[i].head_ps;
        if (sim_length_ps(&sim->kinds[i], 1) < sim->unit_ps)
            sim->unit_ps = sim_length_ps(&sim->kinds[i], 1);
    }
    if (sim->p.column_buffers != 0)
        sim->unit_ps = 0; /* an output may take a packet over at once */
    /* At least a window, whatever the partitions. */
    sim->lost_ps = longest_ps + 1000 * sim->clock_ps;
    sim->far_ps = longest_ps + sim->clock_ps;
    if (!sim->routing->reads_loads)
        return 0;
    sim->load_period_ps = (uint64_t)sim->p.load_period_clocks * sim->clock_ps;
    if (sim->load_period_ps == 0)
        sim->load_period_ps = UINT64_MAX / 2;
    /* One router may be two windows ahead of another, and the entries must reach so far back. */
    if (sim->load_period_ps < 2 * (uint64_t)sim->far_ps / (SIM_LOAD_ENTRIES - 4))
        sim->load_period_ps = 2 * (uint64_t)sim->far_ps / (SIM_LOAD_ENTRIES - 4);
    sim->loads = sim_array(NULL, 0, sim_load_index(sim, 0, EMU_TRAFFIC_CLASSES) * sizeof(*sim->loads));
    sim->past_loads = sim_array(NULL, 0, sim_load_index(sim, 0, EMU_TRAFFIC_CLASSES) * sizeof(*sim->past_loads));
    return !sim->loads || !sim->past_loads ? -ENOMEM : 0;
}

/* Does it matter what else an input port has just done? */
static bool has_ports(const struct emu_sim *sim)
{
    return sim->p.paths != 0 || sim->p.requests != 0 || sim->p.arb_gap_clocks != 0;
}

static bool is_plain(const struct emu_sim *sim)
{
    bool has_others = false;

    for (uint32_t i = 0; i < sim->n_kinds; i++)
        has_others |= sim->kinds[i].bubble_vcs != 0 || sim->kinds[i].is_optical;
    return !has_others && !sim->ports && !sim->loads && !sim->occupancy && sim->vcs && !sim->routing->reads_router &&
           sim->vcs_of_router_max <= 64 && sim->p.column_buffers == 0 && sim->p.shared_units == 0 &&
           sim->p.choice == EMU_CHOICE_CREDITS && sim->p.arbitration == EMU_ARBITRATE_ROUND_ROBIN &&
           sim->p.network_first_percent == 0 && sim->p.response_first == 0;
}

static void wake_all(struct emu_sim *sim)
{
    for (uint32_t nid = 0; nid < sim->m->n_nodes; nid++) {
        struct part *part;

        if (!emu_sim_owns(sim, nid))
            continue;
        part = &sim->parts[sim->routers[sim->nic_router[nid]].part];
        sim->nics[nid].awake = (1u << EMU_TRAFFIC_CLASSES) - 1;
        sim->nics[nid].is_up = 1;
        for (uint32_t c = 0; c < EMU_TRAFFIC_CLASSES; c++)
            sim->nics[nid].waiting[c] = SIM_NONE;
        emu_wheel_put(&part->wheel, 0, (struct emu_event){ .kind = EMU_EVENT_INJECT, .index = nid });
    }
}

/* Whole lines. */
static uint32_t options_stride(const struct emu_routing *routing)
{
    uint32_t max = routing->options_max == 0 ? EMU_ROUTE_OPTIONS_MAX : routing->options_max;

    return (max + SIM_WAYS_MOSTLY - 1) / SIM_WAYS_MOSTLY * SIM_WAYS_MOSTLY;
}

/* << SIM_RATE_SHIFT: of a unit, if a full packet takes so many clocks of the NIC. */
static uint64_t nic_unit_ps(const struct emu_sim *sim, uint32_t cycles)
{
    return (uint64_t)(((unsigned __int128)cycles * 1000000 << SIM_RATE_SHIFT) /
                      ((uint64_t)sim->m->params.nic.clock_mhz * sim->p.packet_units_max));
}

/* The arrays that have an entry per link, router or node: each as if the whole machine were here, and in memory what
 * this process uses of it. */
static int make_arrays(struct emu_sim *sim)
{
    const struct emu_machine *m = sim->m;

    sim->outs = sim_array(NULL, 0, m->n_links * sizeof(*sim->outs));
    sim->next_out = sim_array(NULL, 0, m->n_links * sizeof(*sim->next_out));
    sim->free_ps = sim_array(NULL, 0, m->n_links * sizeof(*sim->free_ps));
    sim->stalled_ps = sim_array(NULL, 0, m->n_links * sizeof(*sim->stalled_ps));
    sim->ins = sim_array(NULL, 0, m->n_links * sizeof(*sim->ins));
    if (has_ports(sim))
        sim->ports = sim_array(NULL, 0, m->n_links * sizeof(*sim->ports));
    sim->routers = sim_array(NULL, 0, m->n_routers * sizeof(*sim->routers));
    sim->nics = sim_array(NULL, 0, m->n_nodes * sizeof(*sim->nics));
    sim->nic_router = sim_array(NULL, 0, m->n_nodes * sizeof(*sim->nic_router));
    if ((has_ports(sim) && !sim->ports) || !sim->outs || !sim->next_out || !sim->ins || !sim->free_ps ||
        !sim->stalled_ps || !sim->routers || !sim->nics || !sim->nic_router)
        return -ENOMEM;
    if (!sim->world) /* all of it will be written while links are built */
        sim_array_wish(sim->ins, 0, m->n_links * sizeof(*sim->ins));
    return 0;
}

static int build_ends(struct emu_sim *sim)
{
    if (!sim->options.has_ends)
        return 0;
    sim->inject_unit_ps = nic_unit_ps(sim, sim->m->params.nic.access_cycles);
    sim->drain_unit_ps = nic_unit_ps(sim, sim->m->params.ends.drain_cycles);
    if (!has_reception_buffers(sim))
        return 0;
    sim->drained_ps = sim_array(NULL, 0, sim->m->n_nodes * sizeof(*sim->drained_ps));
    return !sim->drained_ps ? -ENOMEM : 0;
}

/* What has an entry per link and channel, or is asked for by options. */
static int make_counters(struct emu_sim *sim)
{
    size_t n = sim_out_vc(sim, sim->m->n_links, 0);

    sim->sent = sim_array(NULL, 0, n * sizeof(*sim->sent));
    sim->wanted = sim_array(NULL, 0, n * sizeof(*sim->wanted));
    sim->heads = sim_array(NULL, 0, sim->n_words * sizeof(*sim->heads));
    if (sim->options.count_occupancy)
        sim->occupancy = sim_array(NULL, 0, sim->n_vcs * sizeof(*sim->occupancy));
    if (!sim->sent || !sim->wanted || !sim->heads || (sim->options.count_occupancy && !sim->occupancy))
        return -ENOMEM;
    return 0;
}

static void wish_pages(struct emu_sim *sim)
{
    size_t each = sim->vcs_of_link_max;

    wish_links(sim, sim->outs, sizeof(*sim->outs));
    wish_links(sim, sim->ins, sizeof(*sim->ins));
    wish_links(sim, sim->free_ps, sizeof(*sim->free_ps));
    wish_links(sim, sim->stalled_ps, sizeof(*sim->stalled_ps));
    wish_links(sim, sim->ports, sizeof(*sim->ports));
    wish_links(sim, sim->sent, each * sizeof(*sim->sent));
    wish_links(sim, sim->wanted, each * sizeof(*sim->wanted));
    wish_links_of(sim, sim->loads, sizeof(*sim->loads), EMU_TRAFFIC_CLASSES);
    wish_links_of(sim, sim->past_loads, sizeof(*sim->past_loads), EMU_TRAFFIC_CLASSES);
}

/* Whose routers are which, and their numbers. */
static int build_places(struct emu_sim *sim)
{
    struct sim_survey survey = { 0 };
    int r = sim_survey(sim, &survey);

    if (r == 0)
        r = build_times(sim);
    if (r == 0)
        r = make_arrays(sim);
    if (r == 0)
        r = place_parts(sim, &survey);
    if (r == 0)
        build_routers(sim, survey.n_vcs);
    if (r == 0 && sim->world)
        sim->world->machine_hash = survey.machine_hash;
    sim_survey_fini(&survey);
    return r;
}

static int build_world(struct emu_sim *sim)
{
    return !sim->world ? 0 : sim_world_build(sim);
}

/* All steps; each needs what those before it have built. */
static int build(struct emu_sim *sim)
{
    static int (*const steps[])(struct emu_sim *) = {
        build_places, build_links, make_counters, build_marks, build_parts, build_queues, build_ends, build_world,
    };
    int r = 0;

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && r == 0; i++)
        r = steps[i](sim);
    return r;
}

/* Other processes, if there are. */
static int make_world(struct emu_sim *sim)
{
    const struct emu_sim_world *calls = sim->options.world;

    if (!calls || calls->size == 1)
        return 0;
    sim->world = calloc(1, sizeof(*sim->world));
    if (!sim->world)
        return -ENOMEM;
    sim->world->calls = calls;
    sim->world->bounds = calloc((size_t)calls->size + 1, sizeof(*sim->world->bounds));
    return !sim->world->bounds ? -ENOMEM : 0;
}

/* Threads of all processes together, if they can be told apart. */
static bool is_few(const struct emu_machine *m, const struct emu_sim_world *world, uint32_t n_threads)
{
    uint64_t size = !world ? 1 : world->size;

    return size * n_threads <= m->n_routers && n_threads + (size > 1 ? size : 0) <= EMU_SIM_PARTS_MAX;
}

int emu_sim_create(const struct emu_machine *m, const struct emu_fault_map *faults, const struct emu_traffic *traffic,
                   const struct emu_sim_options *options, struct emu_sim **sim_out)
{
    uint32_t n_threads = options->n_threads == 0 ? 1 : options->n_threads;
    struct emu_sim *sim;
    int r;

    if (!m->topology->routing)
        return -ENOTSUP;
    if (!is_few(m, options->world, n_threads) || !traffic->next || !traffic->delivered || m->n_links > SIM_LINKS_MAX)
        return -EINVAL;
    sim = calloc(1, sizeof(*sim));
    if (!sim)
        return -ENOMEM;
    sim->m = m;
    sim->routing = m->topology->routing;
    sim->traffic = *traffic;
    sim->options = *options;
    sim->p = m->params.router;
    sim->clock_ps = sim->p.clock_ps;
    sim->token_shift =
        (sim->p.token_units & (sim->p.token_units - 1)) == 0 ? (uint32_t)__builtin_ctz(sim->p.token_units) : 32;
    sim->full_tokens = sim_tokens(sim, sim->p.packet_units_max);
    sim->options_stride = options_stride(sim->routing);
    sim->n_parts = n_threads;
    sim->has_faults = faults;
    sim->is_large = m->n_links * sizeof(*sim->outs) > LARGE_LINK_BYTES;
    r = make_world(sim);
    if (r == 0)
        r = build(sim);
    if (r < 0) {
        emu_sim_destroy(sim);
        return r;
    }
    wish_pages(sim);
    sim->is_plain = is_plain(sim);
    wake_all(sim);
    if (faults)
        emu_sim_set_faults(sim, faults);
    *sim_out = sim;
    return 0;
}

static void destroy_part(const struct emu_sim *sim, struct part *part)
{
    if (part->out) {
        for (uint32_t i = 0; i < sim_n_outboxes(sim); i++) {
            free(part->out[i].arrivals);
            free(part->out[i].credits);
        }
    }
    free(part->out);
    free(part->candidates);
    free(part->winners);
    free(part->looks);
    free(part->losers);
    free(part->requests);
    for (uint32_t i = 0; i < TIMER_HEAPS; i++)
        free(part->timers[i].timers);
    free(part->nics);
    free(part->reports);
    free(part->routers);
    sim_array_free(part->options);
    if (part->vcs != sim->vcs)
        sim_array_free(part->vcs);
    sim_array_free(part->cells);
    emu_wheel_fini(&part->wheel);
}

void emu_sim_destroy(struct emu_sim *sim)
{
    if (!sim)
        return;
    sim_crew_destroy(sim->crew);
    for (uint32_t i = 0; sim->parts && i < sim->n_parts; i++)
        destroy_part(sim, &sim->parts[i]);
    free(sim->parts);
    free(sim->errors);
    sim_array_free(sim->occupancy);
    sim_array_free(sim->nic_router);
    sim_array_free(sim->nics);
    sim_array_free(sim->drained_ps);
    sim_array_free(sim->loads);
    sim_array_free(sim->past_loads);
    sim_array_free(sim->routers);
    sim_array_free(sim->heads);
    free(sim->mark_members);
    sim_array_free(sim->vcs);
    sim_array_free(sim->vc_index);
    sim_array_free(sim->sent);
    sim_array_free(sim->wanted);
    sim_array_free(sim->stalled_ps);
    free(sim->epochs);
    sim_paths_free(sim->paths);
    sim_array_free(sim->ports);
    sim_array_free(sim->ins);
    sim_array_free(sim->free_ps);
    sim_array_free(sim->next_out);
    sim_array_free(sim->outs);
    free(sim->kinds);
    free(sim->held);
    sim_world_fini(sim->world);
    emu_fault_map_destroy(sim->faults);
    free(sim);
}
