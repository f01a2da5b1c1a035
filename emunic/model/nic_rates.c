/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rates that need no packets: the host interface, the packet gap, and the unit for atomic operations with its caches.
 */
#include "emunic/model/nic_rates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "emunic/fabric/random.h"

double emu_nic_interface_mbytes_per_s(const struct emu_nic_setup *setup, uint32_t packet_bytes, bool is_both_ways)
{
    const struct emu_node_params *host = &setup->host;
    double share = is_both_ways ? 1 + host->duplex_share / 100000.0 : 1;

    return host->interface_kbs / 1000.0 * packet_bytes / (((double)packet_bytes + host->overhead_bytes) * share);
}

double emu_nic_packet_mbytes_per_s(const struct emu_nic_setup *setup)
{
    const struct emu_nic_params *nic = emu_machine_nic(setup->machine);
    double gap_ps = emu_node_packet_gap_ps(&setup->host, (uint64_t)nic->access_cycles * 1000000 / nic->clock_mhz);

    return nic->format.payload_bytes_max / gap_ps * 1e6;
}

/* ---- atomic operations ---- */

/* Keys that were used last; the one used longest ago makes room. */
struct lru {
    uint64_t *keys;       /* owned; + 1, 0: free; by hash, open addressing */
    uint64_t *used;       /* owned; when, beside each key */
    uint64_t *order;      /* owned; ring of (key, when) in the order of use, with old entries among them */
    uint64_t *order_used; /* owned */
    uint64_t room, first, n_order, order_room, mask, n, clock;
};

static void lru_fini(struct lru *c)
{
    free(c->keys);
    free(c->used);
    free(c->order);
    free(c->order_used);
}

static int lru_init(struct lru *c, uint64_t room)
{
    uint64_t size = 4;

    *c = (struct lru){ .room = room };
    while (size < room * 4 + 4)
        size *= 2;
    c->mask = size - 1;
    c->order_room = size;
    c->keys = calloc(size, sizeof(*c->keys));
    c->used = calloc(size, sizeof(*c->used));
    c->order = calloc(size, sizeof(*c->order));
    c->order_used = calloc(size, sizeof(*c->order_used));
    if (c->keys && c->used && c->order && c->order_used)
        return 0;
    lru_fini(c);
    return -ENOMEM;
}

static uint64_t lru_slot(const struct lru *c, uint64_t key)
{
    uint64_t at = emu_random_mix(key) & c->mask;

    while (c->keys[at] != 0 && c->keys[at] != key)
        at = (at + 1) & c->mask;
    return at;
}

static void lru_remove(struct lru *c, uint64_t at)
{
    c->keys[at] = 0;
    c->n--;
    for (at = (at + 1) & c->mask; c->keys[at] != 0; at = (at + 1) & c->mask) { /* those that probed past it move up */
        uint64_t key = c->keys[at];
        uint64_t used = c->used[at];
        uint64_t to;

        c->keys[at] = 0;
        to = lru_slot(c, key);
        c->keys[to] = key;
        c->used[to] = used;
    }
}

/* Passes over entries of the ring that were used again since. */
static void lru_remove_oldest(struct lru *c)
{
    while (c->n_order > 0) {
        uint64_t at = lru_slot(c, c->order[c->first]);
        bool is_live = c->keys[at] != 0 && c->used[at] == c->order_used[c->first];

        c->first = (c->first + 1) % c->order_room;
        c->n_order--;
        if (is_live) {
            lru_remove(c, at);
            return;
        }
    }
}

/* Keeps live entries only. */
static void lru_compact(struct lru *c)
{
    uint64_t kept = 0;

    for (uint64_t i = 0; i < c->n_order; i++) {
        uint64_t from = (c->first + i) % c->order_room;
        uint64_t at = lru_slot(c, c->order[from]);

        if (c->keys[at] == 0 || c->used[at] != c->order_used[from])
            continue;
        c->order[(c->first + kept) % c->order_room] = c->order[from];
        c->order_used[(c->first + kept) % c->order_room] = c->order_used[from];
        kept++;
    }
    c->n_order = kept;
}

/* Was it there? It is now. */
static bool lru_use(struct lru *c, uint64_t value)
{
    uint64_t key = value + 1;
    uint64_t at = lru_slot(c, key);
    bool is_hit = c->keys[at] == key;

    if (c->room == 0)
        return false;
    if (!is_hit && c->n == c->room) {
        lru_remove_oldest(c);
        at = lru_slot(c, key);
    }
    if (c->n_order == c->order_room)
        lru_compact(c);
    c->n += !is_hit;
    c->keys[at] = key;
    c->used[at] = ++c->clock;
    c->order[(c->first + c->n_order) % c->order_room] = key;
    c->order_used[(c->first + c->n_order++) % c->order_room] = c->clock;
    return is_hit;
}

double emu_nic_amo_rate(const struct emu_nic_setup *setup, uint64_t n_words, uint64_t page_bytes, bool is_random,
                        uint64_t n_operations)
{
    const struct emu_nic_params *nic = emu_machine_nic(setup->machine);
    double hit_ps = nic->amo_cycles * 1e6 / nic->clock_mhz;
    struct emu_random random = { .state = setup->seed };
    struct lru words, pages;
    uint64_t n_words_missed = 0, n_pages_missed = 0;
    uint64_t warm = 2 * ((uint64_t)nic->amo_cache_entries + setup->host.pte_entries);

    if (n_words == 0 || page_bytes < 8 || n_operations == 0 || lru_init(&words, nic->amo_cache_entries) < 0)
        return NAN;
    if (lru_init(&pages, setup->host.pte_entries) < 0) {
        lru_fini(&words);
        return NAN;
    }
    for (uint64_t i = 0; i < warm + n_operations; i++) {
        uint64_t word = is_random ? emu_random_below(&random, n_words) : i % n_words;
        bool is_word_there = lru_use(&words, word);
        bool is_page_there = is_word_there || lru_use(&pages, word * 8 / page_bytes);

        n_words_missed += i >= warm && !is_word_there;
        n_pages_missed += i >= warm && !is_page_there;
    }
    lru_fini(&words);
    lru_fini(&pages);
    return 1e12 * (double)n_operations /
           ((double)(n_operations - n_words_missed) * hit_ps +
            (double)n_words_missed * fmax(hit_ps, setup->host.amo_miss_ps) +
            (double)n_pages_missed * setup->host.pte_miss_ps);
}
