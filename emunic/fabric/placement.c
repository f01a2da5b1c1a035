/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placements.
 *
 * A nid counts through the levels of the machine, innermost first (node, blade, chassis, group). "scatter" counts
 * through them the other way: the number's digits in reversed order. So consecutive ranks lie in different groups,
 * rank and rank + groups in different chassis, and so on until all of an outer level is used.
 * "random" deals from a shuffled deck (Fisher and Yates, after Durstenfeld) with the fabric's generator.
 */
#include "emunic/fabric/placement.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/random.h"
#include "emunic/fabric/topology.h"

static void place_linear(uint32_t n_nodes, uint32_t *nids_out)
{
    for (uint32_t i = 0; i < n_nodes; i++)
        nids_out[i] = i;
}

static void place_scattered(const struct emu_machine *m, uint32_t n_nodes, uint32_t *nids_out)
{
    uint32_t sizes[EMU_TOPOLOGY_LEVELS_MAX];
    uint32_t n_levels = m->topology->levels(m, sizes);

    for (uint32_t i = 0; i < n_nodes; i++) {
        uint32_t rest = i;
        uint32_t nid = 0;

        for (uint32_t level = 0; level < n_levels; level++) {
            nid = nid * sizes[level] + rest % sizes[level];
            rest /= sizes[level];
        }
        nids_out[i] = nid;
    }
}

static int place_randomly(const struct emu_machine *m, uint64_t seed, uint32_t n_nodes, uint32_t *nids_out)
{
    struct emu_random random = { .state = seed };
    uint32_t *deck;

    deck = malloc(m->n_nodes * sizeof(*deck));
    if (!deck)
        return -ENOMEM;
    for (uint32_t i = 0; i < m->n_nodes; i++)
        deck[i] = i;
    for (uint32_t i = 0; i < n_nodes; i++) {
        uint32_t chosen = i + (uint32_t)emu_random_below(&random, m->n_nodes - i);

        nids_out[i] = deck[chosen];
        deck[chosen] = deck[i];
    }
    free(deck);
    return 0;
}

/* A whole decimal 64-bit number and nothing else. */
static bool parse_seed(const char *text, uint64_t *seed_out)
{
    uint64_t seed = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        if (__builtin_mul_overflow(seed, UINT64_C(10), &seed) ||
            __builtin_add_overflow(seed, (uint64_t)(*text - '0'), &seed))
            return false;
    }
    *seed_out = seed;
    return true;
}

int emu_machine_placement(const struct emu_machine *m, const char *policy, uint32_t n_nodes, uint32_t *nids_out)
{
    uint64_t seed;

    if (n_nodes > m->n_nodes)
        return -ERANGE;
    if (strcmp(policy, "linear") == 0) {
        place_linear(n_nodes, nids_out);
        return 0;
    }
    if (strcmp(policy, "scatter") == 0) {
        place_scattered(m, n_nodes, nids_out);
        return 0;
    }
    if (strncmp(policy, "random:", strlen("random:")) == 0 && parse_seed(policy + strlen("random:"), &seed))
        return place_randomly(m, seed, n_nodes, nids_out);
    return -EINVAL;
}
