/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several processes that run one simulation.
 *
 * Each holds a contiguous range of routers, split further among its threads. Windows are those of run.c, the same for
 * all threads of all processes. When a window ends, each process sends what its outboxes hold to the processes that it
 * has links with, one message each; all agree on the first slot in which anything happens, messages under way included;
 * and threads take what is theirs. A lost packet is told to its sender wherever that is, so with faults everybody may
 * send to everybody.
 *
 * Loads of the neighbours' outputs (router_load.c) change by period. What routers of other processes have to know is
 * sent when a period that they may ask for has ended: one number per link and class of traffic, in an order that both
 * sides know. Readers ask for values that are a window old at least, so the end of the period before the window's start
 * is all that the window needs.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/sim/state.h"

/* What each message begins with. */
struct mail_head {
    uint64_t bytes; /* all of it */
    uint64_t n_credits;
    uint64_t n_arrivals;
};

uint32_t sim_rank_of(const struct sim_world *world, uint32_t router)
{
    uint32_t low = 0;
    uint32_t high = world->calls->size;

    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (router < world->bounds[middle])
            high = middle;
        else
            low = middle;
    }
    return low;
}

bool emu_sim_owns(const struct emu_sim *sim, uint32_t nid)
{
    return sim_is_own(sim, sim->nic_router[nid]);
}

uint64_t emu_sim_machine_hash(const struct emu_sim *sim)
{
    return !sim->world ? 0 : sim->world->machine_hash;
}

/* ---- all together ---- */

static uint64_t reduce_one(const struct emu_sim *sim, enum emu_sim_reduction how, uint64_t value)
{
    if (sim->world)
        sim->world->calls->reduce(sim->world->calls->ctx, how, &value, 1);
    return value;
}

uint64_t sim_world_least(const struct emu_sim *sim, uint64_t value)
{
    return reduce_one(sim, EMU_SIM_LEAST, value);
}

uint64_t sim_world_most(const struct emu_sim *sim, uint64_t value)
{
    return reduce_one(sim, EMU_SIM_MOST, value);
}

void sim_world_sum(const struct emu_sim *sim, uint64_t *values, size_t n)
{
    if (sim->world)
        sim->world->calls->reduce(sim->world->calls->ctx, EMU_SIM_SUM, values, n);
}

/* ---- a window's packets and credits ---- */

/* All threads' outboxes for one process, in one message. */
static void pack(struct emu_sim *sim, struct sim_peer *peer)
{
    struct mail_head head = { .bytes = sizeof(head) };
    char *place;

    for (uint32_t i = 0; i < sim->n_parts; i++) {
        head.n_credits += sim->parts[i].out[sim->n_parts + peer->rank].n_credits;
        head.n_arrivals += sim->parts[i].out[sim->n_parts + peer->rank].n_arrivals;
    }
    head.bytes += head.n_credits * sizeof(struct credit_message) + head.n_arrivals * sizeof(struct arrival_message);
    if (head.bytes > peer->out_room) {
        peer->out_room = 2 * head.bytes;
        peer->mail.out = sim_grown(peer->mail.out, peer->out_room);
    }
    memcpy(peer->mail.out, &head, sizeof(head));
    place = (char *)peer->mail.out + sizeof(head);
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        const struct outbox *box = &sim->parts[i].out[sim->n_parts + peer->rank];

        if (box->n_credits > 0)
            memcpy(place, box->credits, box->n_credits * sizeof(*box->credits));
        place += box->n_credits * sizeof(*box->credits);
    }
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        struct outbox *box = &sim->parts[i].out[sim->n_parts + peer->rank];

        if (box->n_arrivals > 0)
            memcpy(place, box->arrivals, box->n_arrivals * sizeof(*box->arrivals));
        place += box->n_arrivals * sizeof(*box->arrivals);
        box->n_credits = 0;
        box->n_arrivals = 0;
        box->first_slot = UINT64_MAX;
    }
}

uint64_t sim_world_meet(struct emu_sim *sim)
{
    struct sim_world *world = sim->world;
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < sim->n_parts; i++)
        first = sim->parts[i].next_slot < first ? sim->parts[i].next_slot : first;
    for (uint32_t i = 0; i < world->n_peers; i++)
        pack(sim, &world->peers[i]);
    world->calls->exchange(world->calls->ctx, world->mails, world->n_peers, &first);
    return first;
}

static uint32_t part_of_arrival(const struct emu_sim *sim, const struct emu_event *event)
{
    uint32_t router = event->kind == EMU_EVENT_ARRIVE ? sim->ins[event->index].router : sim->nic_router[event->index];

    assert(sim_is_own(sim, router));
    return sim->routers[router].part;
}

void sim_take_arrival(struct part *part, const struct arrival_message *message)
{
    struct emu_event event = message->event;
    uint32_t cell = sim_cell_take(part);

    part->cells[cell].packet = message->packet;
    part->cells[cell].is_started = true;
    part->cells[cell].is_copy = false;
    event.payload = cell;
    if (event.kind == EMU_EVENT_ARRIVE) {
        part->cells[cell].next = event.index;
        event.index = part->sim->ins[event.index].first_vc + event.vc;
    }
    emu_wheel_put(&part->wheel, message->slot, event);
}

void sim_world_take(struct part *part)
{
    struct emu_sim *sim = part->sim;

    for (uint32_t i = 0; i < sim->world->n_peers; i++) {
        const char *mail = sim->world->peers[i].mail.in;
        const struct mail_head *head = (const void *)mail;
        const struct credit_message *credits = (const void *)(mail + sizeof(*head));
        const struct arrival_message *arrivals = (const void *)(credits + head->n_credits);

        for (uint64_t j = 0; j < head->n_credits; j++) {
            if (sim->routers[sim->outs[credits[j].event.index].from].part == part->number)
                emu_wheel_put(&part->wheel, credits[j].slot, credits[j].event);
        }
        for (uint64_t j = 0; j < head->n_arrivals; j++) {
            if (part_of_arrival(sim, &arrivals[j].event) == part->number)
                sim_take_arrival(part, &arrivals[j]);
        }
    }
}

/* ---- loads ---- */

/* At the end of a period that is over, of a link of this process. */
static uint16_t load_after(const struct emu_sim *sim, size_t index, uint64_t period)
{
    uint64_t units = sim->loads[index] & SIM_LOAD_MASK;

    if (sim->loads[index] >> SIM_LOAD_BITS > period)
        return sim->past_loads[index].units[period % SIM_LOAD_ENTRIES];
    return units > UINT16_MAX ? UINT16_MAX : (uint16_t)units;
}

static void pack_loads(const struct emu_sim *sim, struct sim_peer *peer, uint64_t first, uint64_t last)
{
    uint64_t bytes = sizeof(uint64_t) + (last - first + 1) * peer->n_told * EMU_TRAFFIC_CLASSES * sizeof(uint16_t);
    char *place;

    if (bytes > peer->loads_room) {
        peer->loads_room = bytes;
        peer->loads.out = sim_grown(peer->loads.out, bytes);
    }
    memcpy(peer->loads.out, &bytes, sizeof(bytes));
    place = (char *)peer->loads.out + sizeof(bytes);
    for (uint64_t period = first; period <= last; period++) {
        for (uint32_t i = 0; i < peer->n_told; i++) {
            for (uint32_t c = 0; c < EMU_TRAFFIC_CLASSES; c++) {
                uint16_t load = load_after(sim, sim_load_index(sim, peer->told[i], c), period);

                memcpy(place, &load, sizeof(load));
                place += sizeof(load);
            }
        }
    }
}

static void take_loads(struct sim_world *world, const struct sim_peer *peer, uint64_t first, uint64_t last)
{
    size_t bytes = (size_t)peer->n_ghosts * EMU_TRAFFIC_CLASSES * sizeof(*world->values);
    const char *place = (const char *)peer->loads.in + sizeof(uint64_t);

    for (uint64_t period = first; period <= last && bytes > 0; period++) {
        memcpy(&world->values[sim_ghost_index(world, period, peer->first_ghost)], place, bytes);
        place += bytes;
    }
}

void sim_world_tell_loads(struct emu_sim *sim, uint64_t start_slot)
{
    struct sim_world *world = sim->world;
    uint64_t start_ps = start_slot * sim->clock_ps;
    uint64_t last, first;
    uint64_t ignored = 0;

    if (!world->ghosts)
        return;
    last = start_ps / sim->load_period_ps;
    if (last <= world->period)
        return;
    first = world->period + 1;
    if (last - first >= world->n_periods) /* nobody asks for older ones any more */
        first = last - world->n_periods + 1;
    for (uint32_t i = 0; i < world->n_peers; i++)
        pack_loads(sim, &world->peers[i], first, last);
    world->calls->exchange(world->calls->ctx, world->load_mails, world->n_peers, &ignored);
    for (uint32_t i = 0; i < world->n_peers; i++)
        take_loads(world, &world->peers[i], first, last);
    world->period = last;
}

/* ---- building ---- */

/* Which routers are next to which processes. */
struct neighbours {
    uint8_t *is_next;   /* by router: of another process, and a link goes there from here */
    uint32_t n_words;   /* of bits, by rank */
    uint64_t *wanted;   /* by own router: processes that have a link to it */
    bool *is_peer;      /* by rank */
    uint32_t *n_told;   /* by rank */
    uint32_t *n_ghosts; /* by rank */
};

static int init_neighbours(struct neighbours *n, const struct emu_sim *sim)
{
    uint32_t size = sim->world->calls->size;

    n->n_words = (size + 63) / 64;
    n->is_next = calloc(sim->m->n_routers, sizeof(*n->is_next));
    n->wanted = calloc((size_t)sim->n_own_routers * n->n_words, sizeof(*n->wanted));
    n->is_peer = calloc(size, sizeof(*n->is_peer));
    n->n_told = calloc(size, sizeof(*n->n_told));
    n->n_ghosts = calloc(size, sizeof(*n->n_ghosts));
    return !n->is_next || !n->wanted || !n->is_peer || !n->n_told || !n->n_ghosts ? -ENOMEM : 0;
}

static void fini_neighbours(struct neighbours *n)
{
    free(n->is_next);
    free(n->wanted);
    free(n->is_peer);
    free(n->n_told);
    free(n->n_ghosts);
}

/* Are both ends here? */
static bool is_within(const struct emu_sim *sim, uint32_t id)
{
    if ((sim->ins[id].flags & IN_IS_OWN) != 0)
        return sim->ins[id].part < sim->n_parts;
    return sim->outs[id].part < sim->n_parts; /* of a link to a NIC it is 0 */
}

static void find_neighbours(struct neighbours *n, const struct emu_sim *sim)
{
    for (uint32_t i = 0; i < sim->n_held; i++) {
        for (uint32_t id = sim->held[i].first; id < sim->held[i].end; id++) {
            struct emu_link link;
            uint32_t rank;

            if (is_within(sim, id))
                continue;
            (void)emu_link_get(sim->m, id, &link);
            if ((sim->outs[id].flags & OUT_IS_OWN) != 0) {
                n->is_next[link.to.index] = 1;
                rank = sim_rank_of(sim->world, link.to.index);
            } else {
                uint32_t own = link.to.index - sim->first_router;

                rank = sim_rank_of(sim->world, link.from.index);
                n->wanted[(size_t)own * n->n_words + rank / 64] |= UINT64_C(1) << (rank % 64);
            }
            n->is_peer[rank] = true;
        }
    }
}

static int add_peers(struct emu_sim *sim, const struct neighbours *n)
{
    struct sim_world *world = sim->world;
    uint32_t size = world->calls->size;

    world->peers = calloc(size, sizeof(*world->peers));
    world->mails = calloc(size, sizeof(*world->mails));
    world->load_mails = calloc(size, sizeof(*world->load_mails));
    if (!world->peers || !world->mails || !world->load_mails)
        return -ENOMEM;
    for (uint32_t rank = 0; rank < size; rank++) {
        struct sim_peer *peer = &world->peers[world->n_peers];

        if (rank == world->calls->rank || !(n->is_peer[rank] || sim->has_faults))
            continue;
        peer->rank = rank;
        peer->mail.rank = rank;
        peer->loads.rank = rank;
        world->mails[world->n_peers] = &peer->mail;
        world->load_mails[world->n_peers++] = &peer->loads;
    }
    return 0;
}

/* A link between routers, for those who ask for the load of it; counts, or lists when there is room. */
static void tell_link(struct emu_sim *sim, struct neighbours *n, uint32_t id, uint32_t router, bool is_counting)
{
    struct sim_world *world = sim->world;
    bool is_own = sim_is_own(sim, router);

    for (uint32_t i = 0; i < world->n_peers; i++) {
        struct sim_peer *peer = &world->peers[i];
        size_t word = (size_t)(router - sim->first_router) * n->n_words + peer->rank / 64;

        if (is_own ? (n->wanted[word] >> (peer->rank % 64) & 1) == 0 :
                     n->is_next[router] == 0 || sim_rank_of(world, router) != peer->rank)
            continue;
        if (is_counting && is_own)
            n->n_told[peer->rank]++;
        else if (is_counting)
            n->n_ghosts[peer->rank]++;
        else if (is_own)
            peer->told[peer->n_told++] = id;
        else
            world->ghosts[id] = peer->first_ghost + ++peer->n_ghosts;
    }
}

static void tell_links(struct emu_sim *sim, struct neighbours *n, bool is_counting)
{
    for (uint32_t id = 0; id < sim->m->n_links; id++) {
        struct emu_link link;

        (void)emu_link_get(sim->m, id, &link);
        if (link.from.kind != EMU_END_ROUTER || link.to.kind != EMU_END_ROUTER)
            continue;
        if (sim_is_own(sim, link.from.index) || n->is_next[link.from.index] != 0)
            tell_link(sim, n, id, link.from.index, is_counting);
    }
}

static int make_ghosts(struct emu_sim *sim, const struct neighbours *n)
{
    struct sim_world *world = sim->world;

    /* Those from far_ps before a window's start up to that. */
    world->n_periods = (uint32_t)(sim->far_ps / sim->load_period_ps) + 2;
    world->ghosts = sim_array(NULL, 0, sim->m->n_links * sizeof(*world->ghosts));
    if (!world->ghosts)
        return -ENOMEM;
    for (uint32_t i = 0; i < world->n_peers; i++) {
        struct sim_peer *peer = &world->peers[i];

        peer->first_ghost = world->n_ghosts;
        world->n_ghosts += n->n_ghosts[peer->rank];
        peer->told = malloc(((size_t)n->n_told[peer->rank] + 1) * sizeof(*peer->told));
        if (!peer->told)
            return -ENOMEM;
    }
    world->values = calloc(sim_ghost_index(world, world->n_periods - 1, world->n_ghosts) + 1, sizeof(*world->values));
    return !world->values ? -ENOMEM : 0;
}

int sim_world_build(struct emu_sim *sim)
{
    struct neighbours n = { 0 };
    int r = init_neighbours(&n, sim);

    if (r == 0) {
        find_neighbours(&n, sim);
        r = add_peers(sim, &n);
    }
    if (r == 0 && sim->routing->reads_far_loads) {
        tell_links(sim, &n, true);
        r = make_ghosts(sim, &n);
        if (r == 0)
            tell_links(sim, &n, false);
    }
    fini_neighbours(&n);
    return r;
}

void sim_world_fini(struct sim_world *world)
{
    if (!world)
        return;
    for (uint32_t i = 0; i < world->n_peers; i++) {
        free(world->peers[i].mail.out);
        free(world->peers[i].mail.in);
        free(world->peers[i].loads.out);
        free(world->peers[i].loads.in);
        free(world->peers[i].told);
    }
    free(world->peers);
    free(world->mails);
    free(world->load_mails);
    free(world->values);
    sim_array_free(world->ghosts);
    free(world->bounds);
    free(world);
}

size_t sim_world_memory(const struct emu_sim *sim)
{
    const struct sim_world *world = sim->world;
    size_t bytes =
        sizeof(*world) + (size_t)world->n_periods * world->n_ghosts * EMU_TRAFFIC_CLASSES * sizeof(*world->values);

    for (uint32_t i = 0; i < world->n_peers; i++) {
        const struct sim_peer *peer = &world->peers[i];

        bytes += sizeof(*peer) + peer->out_room + peer->loads_room + peer->mail.in_room + peer->loads.in_room +
                 peer->n_told * sizeof(*peer->told);
    }
    return bytes + world->n_ghosts * sizeof(*world->ghosts);
}
