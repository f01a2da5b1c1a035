/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arbitration: which of several heads that ask for one thing gets it. Preferences of the machine come first (responses,
 * packets that are in the network already), its policy decides among those who are left.
 * Source: spec/machines.md 5.2.
 */
#include "emunic/fabric/sim/head.h"

static uint32_t fullness(const struct part *part, const struct request *q)
{
    const struct in_vc *v = q->v;
    const struct emu_sim *sim = part->sim;
    const struct link_kind *kind = &sim->kinds[v->kind];

    return sim_quarters(v->units, kind->quarter_tokens[v->at.in_vc] * sim->p.token_units);
}

static const struct emu_packet *packet_of(const struct part *part, const struct request *q)
{
    return &part->cells[q->v->first].packet;
}

/*
 * The head that came to the front of its channel first. Round robin's pointer moves with whoever is served, so where
 * heads can ask in some slots only, because their channels lack tokens in the others, it can pass over the same ones
 * again and again; here each head's turn comes.
 */
static uint32_t longest_waiting(const struct request *requests, const uint32_t *candidates, uint32_t n, uint32_t turn)
{
    uint32_t winner = candidates[0];

    for (uint32_t i = 1; i < n; i++) {
        const struct in_vc *v = requests[candidates[i]].v;
        const struct in_vc *best = requests[winner].v;

        if (v->ready_ps < best->ready_ps || (v->ready_ps == best->ready_ps && best->local <= turn && v->local > turn))
            winner = candidates[i];
    }
    return winner;
}

/*
 * The packet that has been in the network for longest: its age is a field of its header flit (spec/machines.md 4.2), so
 * what it waited for in its node's memory does not count. Among equals heads take turns.
 */
static uint32_t oldest(const struct part *part, const uint32_t *candidates, uint32_t n, uint32_t turn)
{
    const struct request *requests = part->requests;
    uint32_t winner = candidates[0];
    uint64_t best_ps = packet_of(part, &requests[winner])->entered_ps;

    for (uint32_t i = 1; i < n; i++) {
        uint64_t entered_ps = packet_of(part, &requests[candidates[i]])->entered_ps;

        if (entered_ps < best_ps ||
            (entered_ps == best_ps && requests[winner].v->local <= turn && requests[candidates[i]].v->local > turn)) {
            winner = candidates[i];
            best_ps = entered_ps;
        }
    }
    return winner;
}

uint32_t sim_pick(struct part *part, const uint32_t *candidates, uint32_t n, uint32_t turn, struct emu_random *random)
{
    const struct request *requests = part->requests;
    const struct emu_sim *sim = part->sim;
    uint32_t policy = sim->p.arbitration;
    uint32_t winner = candidates[0];
    uint32_t n_equal = 1;

    if (n == 1)
        return winner;
    if (policy == EMU_ARBITRATE_FULLEST && sim_draw(random, 100) >= sim->p.fullest_percent)
        policy = EMU_ARBITRATE_RANDOM;
    switch (policy) {
    case EMU_ARBITRATE_RANDOM:
        return candidates[sim_draw(random, n)];
    case EMU_ARBITRATE_AGE:
        return oldest(part, candidates, n, turn);
    case EMU_ARBITRATE_FULLEST:
        for (uint32_t i = 1; i < n; i++) {
            uint32_t best = fullness(part, &requests[winner]);
            uint32_t full = fullness(part, &requests[candidates[i]]);

            if (full > best) {
                winner = candidates[i];
                n_equal = 1;
            } else if (full == best && sim_draw(random, ++n_equal) == 0) {
                winner = candidates[i];
            }
        }
        return winner;
    case EMU_ARBITRATE_LONGEST:
        return longest_waiting(requests, candidates, n, turn);
    default:
        for (uint32_t i = 0; i < n; i++) {
            if (requests[candidates[i]].v->local > turn)
                return candidates[i];
        }
        return winner;
    }
}

/* Keeps only candidates of the kind that goes first, if there are any. */
static uint32_t prefer(const struct part *part, uint32_t *candidates, uint32_t n,
                       bool (*goes_first)(const struct part *part, const struct request *q))
{
    uint32_t n_first = 0;

    for (uint32_t i = 0; i < n; i++)
        n_first += goes_first(part, &part->requests[candidates[i]]);
    if (n_first == 0 || n_first == n)
        return n;
    n_first = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (goes_first(part, &part->requests[candidates[i]]))
            candidates[n_first++] = candidates[i];
    }
    return n_first;
}

static bool is_first_response(const struct part *part, const struct request *q)
{
    const struct emu_packet *p = packet_of(part, q);

    return p->traffic_class == EMU_TRAFFIC_RESPONSE && p->units <= part->sim->p.response_first;
}

static bool is_from_network(const struct part *part, const struct request *q)
{
    (void)part;
    return !q->v->at.is_entering;
}

uint32_t sim_prefer_responses(const struct part *part, uint32_t *candidates, uint32_t n)
{
    return prefer(part, candidates, n, is_first_response);
}

uint32_t sim_choose_sender(struct part *part, uint32_t link, uint32_t *candidates, uint32_t n,
                           struct emu_random *random)
{
    const struct emu_router_params *p = &part->sim->p;

    if (n == 1)
        return candidates[0];
    if (p->response_first != 0)
        n = sim_prefer_responses(part, candidates, n);
    if (n > 1 && p->network_first_percent > 0 &&
        (p->network_first_percent == 100 || sim_draw(random, 100) < p->network_first_percent))
        n = prefer(part, candidates, n, is_from_network);
    return sim_pick(part, candidates, n, part->sim->outs[link].turn, random);
}
