/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes count x first. Links: n into the network, n out of it, then six per router: x+, x-, y+, y-, z+, z-.
 * A packet goes the short way round, ties to plus. On the escape channels: below the dateline while the ring's seam is
 * still ahead, above it afterwards.
 */
#include "tests/common/sim_torus.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "emunic/fabric/sim/routing.h"

/* The short way from one coordinate to another. */
enum turn {
    TURN_NONE = 0,  /* they are the same */
    TURN_PLUS,      /* with the ring's seam ahead */
    TURN_PLUS_PAST, /* no seam ahead */
    TURN_MINUS,
    TURN_MINUS_PAST,
    TURNS,
};

static const uint32_t weights[3] = { 1, TURNS, TURNS *TURNS };

/* What a packet may do that needs these turns, with the links counted from the router's first. */
struct answer {
    struct emu_route_option options[4];
    uint32_t n;
    uint32_t escape_dim;
};

struct torus_state {
    struct sim_torus torus;
    uint32_t n;
    uint8_t (*at)[4];
    uint16_t (*rows)[4]; /* of the turns: from a router's coordinates */
    uint8_t *turns[3];   /* from coordinate times size plus to coordinate: the turn, times its weight */
    struct answer answers[2][TURNS * TURNS * TURNS]; /* in order, adaptive; by the sum of the turns */
};

static const struct torus_state *state_of(const struct emu_machine *m)
{
    return m->state;
}

static void describe_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out)
{
    const struct torus_state *s = state_of(m);
    uint32_t router, dim, stride, coord, next;

    *link_out = (struct emu_link){ .id = id };
    if (id < 2 * s->n) {
        struct emu_link_end nic = { EMU_END_NIC, id % s->n };
        struct emu_link_end end = { EMU_END_ROUTER, id % s->n };

        link_out->link_class = id < s->n ? EMU_LINK_PROCESSOR_IN : EMU_LINK_PROCESSOR_OUT;
        link_out->from = id < s->n ? nic : end;
        link_out->to = id < s->n ? end : nic;
        return;
    }
    router = (id - 2 * s->n) / 6;
    dim = (id - 2 * s->n) % 6 / 2;
    stride = dim == 0 ? 1 : dim == 1 ? s->torus.size[0] : s->torus.size[0] * s->torus.size[1];
    coord = s->at[router][dim];
    next = id % 2 == (2 * s->n) % 2 ? (coord + 1) % s->torus.size[dim] :
                                      (coord + s->torus.size[dim] - 1) % s->torus.size[dim];
    link_out->link_class = EMU_LINK_X;
    link_out->from = (struct emu_link_end){ EMU_END_ROUTER, router };
    link_out->to = (struct emu_link_end){ EMU_END_ROUTER, router + next * stride - coord * stride };
}

static uint32_t first_nid(const struct emu_machine *m, uint32_t router)
{
    (void)m;
    return router;
}

static uint32_t n_vcs(const struct emu_machine *m, enum emu_link_class link_class)
{
    if (link_class != EMU_LINK_X)
        return 2;
    switch (state_of(m)->torus.rules) {
    case SIM_TORUS_DATELINE:
        return 4;
    case SIM_TORUS_BUBBLE:
        return 3;
    case SIM_TORUS_RING:
        break;
    }
    return 1;
}

static void describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                        struct emu_vc_info *info_out)
{
    enum sim_torus_rules rules = state_of(m)->torus.rules;

    *info_out = (struct emu_vc_info){
        .capacity_units = m->params.router.vc_units,
        .traffic_class = EMU_VC_ANY,
        .is_escape = rules == SIM_TORUS_DATELINE ? vc < 2 : vc == 0,
        .is_bubble = link_class == EMU_LINK_X && rules == SIM_TORUS_BUBBLE && vc == 0,
    };
}

/* Links that do not work are not needed. */
static uint32_t turns_with_faults(const struct emu_route_view *view, uint32_t first_link, uint32_t turns)
{
    uint32_t rest = 0;

    for (uint32_t dim = 0; dim < 3; dim++) {
        uint32_t turn = turns / weights[dim] % TURNS;

        if (turn != TURN_NONE && emu_fault_map_link_up(view->faults, first_link + dim * 2 + (turn >= TURN_MINUS)))
            rest += turn * weights[dim];
    }
    return rest;
}

/* On a machine with bubbles, and with faults. */
static __attribute__((noinline)) uint32_t adjust(const struct emu_route_view *view, const struct emu_route_at *at,
                                                 uint32_t turns, bool is_adaptive, struct emu_route_option *out)
{
    const struct torus_state *s = state_of(view->machine);
    uint32_t first_link = 2 * s->n + at->router * 6;
    const struct answer *answer;

    if (view->faults != NULL)
        turns = turns_with_faults(view, first_link, turns);
    if (turns == 0)
        return 0;
    answer = &s->answers[is_adaptive][turns];
    for (uint32_t i = 0; i < 4; i++) {
        out[i] = answer->options[i];
        out[i].link += first_link;
    }
    if (s->torus.rules != SIM_TORUS_DATELINE)
        out[answer->n - 1].is_entry =
            at->is_entering || at->in_vc != 0 || (at->in_link - 2 * s->n) % 6 / 2 != answer->escape_dim;
    return answer->n;
}

static uint32_t options(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                        struct emu_route_option out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct torus_state *s = state_of(view->machine);
    const uint16_t *row = s->rows[at->router];
    const uint8_t *there = s->at[p->dst_nid];
    uint32_t turns = (uint32_t)s->turns[0][(uint32_t)row[0] + there[0]] + s->turns[1][(uint32_t)row[1] + there[1]] +
                     s->turns[2][(uint32_t)row[2] + there[2]];
    bool is_adaptive = p->mode != EMU_MODE_DETERMINISTIC;
    const struct answer *answer = &s->answers[is_adaptive][turns];
    uint32_t first_link;

    if (__builtin_expect((view->faults != NULL) | (s->torus.rules != SIM_TORUS_DATELINE), 0) && turns != 0)
        return adjust(view, at, turns, is_adaptive, out);
    first_link = s->n + at->router + (turns != 0) * (s->n + at->router * 5); /* to the NIC, if it is here */
    for (uint32_t i = 0; i < 4; i++) {
        out[i] = answer->options[i];
        out[i].link += first_link;
    }
    return answer->n;
}

static void dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                         void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc),
                         void *ctx)
{
    (void)m;
    (void)faults;
    (void)visit;
    (void)ctx;
}

static const struct emu_routing routing = {
    .n_vcs = n_vcs,
    .vc = describe_vc,
    .options = options,
    .dependencies = dependencies,
    .options_max = 4,
};

static const struct emu_topology topology = {
    .kind = "test-torus",
    .first_nid = first_nid,
    .link = describe_link,
    .routing = &routing,
};

struct sim_torus sim_torus_default(void)
{
    return (struct sim_torus){
        .size = { 8, 8, 8 },
        .router = {
            .hop_ps = 97143,
            .hop_wire_ps = 34286,
            .frame_flits = 1,
            .packet_overhead_flits = 14,
            .crc_bits = 24,
            .retry_timeout_clocks = 1024,
            .clock_ps = 5714,
            .vc_units = 1024,
            .token_units = 32,
            .packet_units_max = 256,
            .room = EMU_CHARGE_FULL,
            .bubble_charge = EMU_CHARGE_FULL,
            .choice = EMU_CHOICE_TOKENS,
            .arbitration = EMU_ARBITRATE_FULLEST,
            .fullest_percent = 75,
            .network_first_percent = 100,
            .response_first = 65535,
            .paths = 2,
            .requests = 1,
        },
        .link_mbps = 1400,
        .lanes = 1,
        .wire_ps = 34286,
        .nic_mbps = 11200,
    };
}

static uint8_t *list_turns(const struct sim_torus *torus, uint32_t dim)
{
    uint32_t size = torus->size[dim];
    uint8_t *turns = calloc(size, size);

    for (uint32_t here = 0; turns != NULL && here < size; here++) {
        for (uint32_t there = 0; there < size; there++) {
            bool is_plus = 2 * ((there + size - here) % size) <= size;
            enum turn turn =
                is_plus ? (there > here ? TURN_PLUS_PAST : TURN_PLUS) : (there < here ? TURN_MINUS_PAST : TURN_MINUS);

            if (there != here)
                turns[here * size + there] = (uint8_t)(turn * weights[dim]);
        }
    }
    return turns;
}

static struct answer answer_of(const struct sim_torus *torus, bool is_adaptive, uint32_t turns)
{
    uint32_t first_adaptive = torus->rules == SIM_TORUS_DATELINE ? 2 : 1;
    struct emu_route_option escape = { .rank = is_adaptive };
    struct answer answer = { .escape_dim = 3 };

    for (uint32_t dim = 0; dim < 3; dim++) {
        enum turn turn = turns / weights[dim] % TURNS;
        uint32_t link = dim * 2 + (turn >= TURN_MINUS);

        if (turn == TURN_NONE)
            continue;
        if (is_adaptive)
            answer.options[answer.n++] = (struct emu_route_option){ .link = link,
                                                                    .vc = (uint8_t)first_adaptive,
                                                                    .more_vcs = (uint8_t)(2u << first_adaptive) };
        if (answer.escape_dim == 3) {
            answer.escape_dim = dim;
            escape.link = link;
            escape.vc = torus->rules == SIM_TORUS_DATELINE && (turn == TURN_PLUS_PAST || turn == TURN_MINUS_PAST);
        }
    }
    if (answer.escape_dim < 3)
        answer.options[answer.n++] = escape;
    return answer;
}

static void no_memory(void)
{
    fprintf(stderr, "no memory for a test torus\n");
    abort();
}

struct emu_machine *sim_torus_create(const struct sim_torus *torus)
{
    uint32_t n = torus->size[0] * torus->size[1] * torus->size[2];
    struct emu_machine *m = calloc(1, sizeof(*m));
    struct torus_state *s = calloc(1, sizeof(*s));

    if (m == NULL || s == NULL || (s->at = calloc(n, sizeof(*s->at))) == NULL ||
        (s->rows = calloc(n, sizeof(*s->rows))) == NULL)
        no_memory();
    s->torus = *torus;
    s->n = n;
    for (uint32_t i = 0; i < n; i++) {
        s->at[i][0] = (uint8_t)(i % torus->size[0]);
        s->at[i][1] = (uint8_t)(i / torus->size[0] % torus->size[1]);
        s->at[i][2] = (uint8_t)(i / torus->size[0] / torus->size[1]);
        for (uint32_t dim = 0; dim < 3; dim++)
            s->rows[i][dim] = (uint16_t)(s->at[i][dim] * torus->size[dim]);
    }
    for (uint32_t dim = 0; dim < 3; dim++) {
        if ((s->turns[dim] = list_turns(torus, dim)) == NULL)
            no_memory();
    }
    for (uint32_t turns = 0; turns < TURNS * TURNS * TURNS; turns++) {
        s->answers[0][turns] = answer_of(torus, false, turns);
        s->answers[1][turns] = answer_of(torus, torus->rules != SIM_TORUS_RING, turns);
    }
    for (uint32_t i = 0; i < 2; i++)
        s->answers[i][0] = (struct answer){ .n = 1, .escape_dim = 3 }; /* to the NIC */
    m->topology = &topology;
    m->state = s;
    m->n_nodes = n;
    m->n_routers = n;
    m->n_links = 8 * n;
    m->params.router = torus->router;
    m->params.nic.format.flit_bits = 8;
    m->params.link[EMU_LINK_X] = (struct emu_link_params){ torus->lanes, torus->link_mbps, torus->wire_ps };
    m->params.link[EMU_LINK_PROCESSOR_IN] = (struct emu_link_params){ 1, torus->nic_mbps, 0 };
    m->params.link[EMU_LINK_PROCESSOR_OUT] = (struct emu_link_params){ 1, torus->nic_mbps, 0 };
    return m;
}

void sim_torus_destroy(struct emu_machine *m)
{
    struct torus_state *s = m->state;

    for (uint32_t dim = 0; dim < 3; dim++)
        free(s->turns[dim]);
    free(s->at);
    free(s->rows);
    free(s);
    free(m);
}

uint32_t sim_torus_link(const struct emu_machine *m, uint32_t router, uint32_t dim, int is_plus)
{
    return 2 * state_of(m)->n + router * 6 + dim * 2 + !is_plus;
}

uint32_t sim_torus_hops(const struct emu_machine *m, uint32_t src, uint32_t dst)
{
    const struct torus_state *s = state_of(m);
    uint32_t hops = 0;

    for (uint32_t dim = 0; dim < 3; dim++) {
        uint32_t size = s->torus.size[dim];
        uint32_t ahead = (uint32_t)(s->at[dst][dim] + size - s->at[src][dim]) % size;

        hops += ahead < size - ahead ? ahead : size - ahead;
    }
    return hops;
}
