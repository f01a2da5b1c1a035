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

/* A decimal 64-bit number. Returns what stands behind it; NULL: there is none. */
static const char *parse_number(const char *text, uint64_t *number_out)
{
    uint64_t number = 0;

    if (*text < '0' || *text > '9')
        return NULL;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(number, UINT64_C(10), &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return NULL;
    }
    *number_out = number;
    return text;
}

/* A whole number and nothing else. */
static bool parse_seed(const char *text, uint64_t *seed_out)
{
    const char *end = parse_number(text, seed_out);

    return end && *end == '\0';
}

/* "6" or "10-13", and the comma behind it. Returns what follows; NULL: neither. */
static const char *parse_range(const char *text, uint64_t *first_out, uint64_t *last_out)
{
    text = parse_number(text, first_out);
    *last_out = *first_out;
    if (text && *text == '-')
        text = parse_number(text + 1, last_out);
    if (!text || *last_out < *first_out || (*text == ',' && text[1] == '\0'))
        return NULL;
    return *text == ',' ? text + 1 : *text == '\0' ? text : NULL;
}

/* is_taken: one for each node of the machine, all false. nids_out NULL: only looks whether the list is good. */
static int take_listed(const struct emu_machine *m, const char *list, bool *is_taken, uint32_t n_nodes,
                       uint32_t *nids_out)
{
    uint32_t n = 0;
    uint64_t first = 0;
    uint64_t last;

    do {
        list = parse_range(list, &first, &last);
        if (!list)
            return -EINVAL;
        if (last >= m->n_nodes)
            return -ERANGE;
        for (uint64_t nid = first; nid <= last; nid++) {
            if (is_taken[nid])
                return -EINVAL;
            is_taken[nid] = true;
            if (nids_out && n < n_nodes)
                nids_out[n] = (uint32_t)nid;
            n++;
        }
    } while (*list);
    return n < n_nodes ? -ENODATA : 0;
}

static int place_listed(const struct emu_machine *m, const char *list, uint32_t n_nodes, uint32_t *nids_out)
{
    bool *is_taken = calloc(m->n_nodes, sizeof(*is_taken));
    int r = is_taken ? take_listed(m, list, is_taken, n_nodes, NULL) : -ENOMEM;

    if (r == 0) {
        memset(is_taken, 0, m->n_nodes * sizeof(*is_taken));
        r = take_listed(m, list, is_taken, n_nodes, nids_out);
    }
    free(is_taken);
    return r;
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
    if (strncmp(policy, "nids:", strlen("nids:")) == 0)
        return place_listed(m, policy + strlen("nids:"), n_nodes, nids_out);
    return -EINVAL;
}
