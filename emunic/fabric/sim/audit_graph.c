/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The graph of channels that the audit looks at.
 *
 * Channels are numbered link by link; links that are down have none. The largest Aries machine has nearly nine million
 * channels and more than two hundred million dependencies, too many to store one by one. But all links that come into
 * one router and mean the same to it may go on by the same ways: the dependencies of a channel are kept as a list of
 * targets, and equal lists are stored once, found by a hash table. So the graph has two kinds of vertices, channels and
 * lists; it has a cycle exactly if the channels have one.
 * Source: spec/machines.md 1.4.
 */
#include "emunic/fabric/sim/audit_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/random.h"

/* ---- links and channels ---- */

static void ask_channels(struct emu_audit *a)
{
    for (uint32_t c = 0; c < EMU_LINK_CLASSES; c++) {
        a->n_vcs[c] = a->routing->n_vcs(a->machine, (enum emu_link_class)c);
        if (a->n_vcs[c] > EMU_VCS_MAX)
            a->n_vcs[c] = EMU_VCS_MAX;
        for (uint32_t vc = 0; vc < a->n_vcs[c]; vc++)
            a->routing->vc(a->machine, (enum emu_link_class)c, vc, &a->vcs[c][vc]);
    }
}

static uint8_t flags_of(const struct emu_vc_info *info, bool is_to_nic)
{
    return (uint8_t)((info->is_escape ? EMU_AUDIT_IS_ESCAPE : 0) | (info->is_bubble ? EMU_AUDIT_IS_BUBBLE : 0) |
                     (is_to_nic ? EMU_AUDIT_IS_TO_NIC : 0));
}

static int number_channels(struct emu_audit *a)
{
    uint32_t n_nodes = emu_machine_n_nodes(a->machine);
    uint32_t n = 0;

    a->n_links = emu_machine_n_links(a->machine);
    a->class_of = calloc(a->n_links + 1u, sizeof(*a->class_of));
    a->first_channel = calloc(a->n_links + 1u, sizeof(*a->first_channel));
    a->from_router = calloc(a->n_links + 1u, sizeof(*a->from_router));
    a->to_router = calloc(a->n_links + 1u, sizeof(*a->to_router));
    a->nic_link = calloc(n_nodes + 1u, sizeof(*a->nic_link));
    if (!a->class_of || !a->first_channel || !a->from_router || !a->to_router || !a->nic_link)
        return -ENOMEM;
    for (uint32_t link = 0; link < a->n_links; link++) {
        struct emu_link l;

        (void)emu_link_get(a->machine, link, &l);
        a->class_of[link] = (uint8_t)l.link_class;
        a->from_router[link] = l.from.kind == EMU_END_ROUTER ? l.from.index : EMU_AUDIT_NONE;
        a->to_router[link] = l.to.kind == EMU_END_ROUTER ? l.to.index : EMU_AUDIT_NONE;
        if (l.from.kind == EMU_END_NIC)
            a->nic_link[l.from.index] = link;
        a->first_channel[link] = n;
        if (emu_fault_map_link_up(a->faults, link))
            n += a->n_vcs[l.link_class];
    }
    a->first_channel[a->n_links] = n;
    a->n_channels = n;
    a->flags = calloc(n + 1u, sizeof(*a->flags));
    if (!a->flags)
        return -ENOMEM;
    for (uint32_t link = 0; link < a->n_links; link++) {
        for (uint32_t c = a->first_channel[link]; c < a->first_channel[link + 1]; c++)
            a->flags[c] =
                flags_of(&a->vcs[a->class_of[link]][c - a->first_channel[link]], a->to_router[link] == EMU_AUDIT_NONE);
    }
    return 0;
}

/* ---- collecting dependencies ---- */

/* The channel whose dependencies are being told, and where its list goes. */
struct collector {
    struct emu_audit *audit;
    uint32_t channel;  /* EMU_AUDIT_NONE: none yet */
    uint32_t *scratch; /* owned */
    uint32_t n_scratch, scratch_room;
    uint64_t hash;
    uint32_t *table;   /* owned; list + 1 by hash, 0 is free */
    uint64_t *hash_of; /* owned; by list */
    uint32_t table_mask;
    int error;
};

/* Makes room for one more. */
static int grow(void **array, uint64_t n, uint64_t *room, size_t size)
{
    uint64_t bigger_room = *room == 0 ? 1024 : *room * 2;
    void *bigger;

    if (n < *room)
        return 0;
    bigger = realloc(*array, bigger_room * size);
    if (!bigger)
        return -ENOMEM;
    *array = bigger;
    *room = bigger_room;
    return 0;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Sorts the targets and counts them. */
static struct emu_audit_tally count_targets(const struct emu_audit *a, uint32_t *targets, size_t n)
{
    struct emu_audit_tally tally = { 0 };

    qsort(targets, n, sizeof(*targets), compare_u32);
    for (size_t i = 0; i < n; i++) {
        uint8_t flags = a->flags[targets[i]];

        if (i > 0 && targets[i] == targets[i - 1])
            continue;
        tally.n_distinct++;
        tally.n_escape += (flags & EMU_AUDIT_IS_ESCAPE) != 0;
        tally.is_settling = tally.is_settling || (flags & (EMU_AUDIT_IS_ESCAPE | EMU_AUDIT_IS_TO_NIC)) != 0;
    }
    return tally;
}

static int rebuild_table(struct collector *col)
{
    struct emu_audit *a = col->audit;
    uint32_t mask = col->table_mask == 0 ? 1023 : col->table_mask * 2 + 1;
    uint32_t *table = calloc((size_t)mask + 1, sizeof(*table));

    if (!table)
        return -ENOMEM;
    for (uint32_t list = 0; list < a->n_lists; list++) {
        uint32_t at = (uint32_t)col->hash_of[list] & mask;

        while (table[at] != 0)
            at = (at + 1) & mask;
        table[at] = list + 1;
    }
    free(col->table);
    col->table = table;
    col->table_mask = mask;
    return 0;
}

static int room_for_list(struct collector *col)
{
    struct emu_audit *a = col->audit;
    uint32_t room = a->lists_room == 0 ? 1024 : a->lists_room * 2;
    uint64_t *start, *hash_of;
    struct emu_audit_tally *tallies;

    if (a->n_lists + 1 < a->lists_room)
        return 0;
    start = realloc(a->list_start, room * sizeof(*start));
    if (!start)
        return -ENOMEM;
    a->list_start = start;
    tallies = realloc(a->tallies, room * sizeof(*tallies));
    if (!tallies)
        return -ENOMEM;
    a->tallies = tallies;
    hash_of = realloc(col->hash_of, room * sizeof(*hash_of));
    if (!hash_of)
        return -ENOMEM;
    col->hash_of = hash_of;
    if (a->lists_room == 0)
        a->list_start[0] = 0;
    a->lists_room = room;
    return 0;
}

static int add_list(struct collector *col, uint32_t *list_out)
{
    struct emu_audit *a = col->audit;
    uint32_t list = a->n_lists;
    int r;

    r = room_for_list(col);
    for (uint32_t i = 0; r == 0 && i < col->n_scratch; i++) {
        r = grow((void **)&a->targets, a->n_targets, &a->targets_room, sizeof(*a->targets));
        if (r == 0)
            a->targets[a->n_targets++] = col->scratch[i];
    }
    if (r < 0)
        return r;
    col->hash_of[list] = col->hash;
    a->tallies[list] = count_targets(a, col->scratch, col->n_scratch);
    a->list_start[++a->n_lists] = a->n_targets;
    *list_out = list;
    return 0;
}

/* The list that holds what was collected: an old one, or a new one. */
static int find_list(struct collector *col, uint32_t *list_out)
{
    struct emu_audit *a = col->audit;
    uint32_t at;

    if (a->n_lists >= col->table_mask / 2) {
        int r = rebuild_table(col);

        if (r < 0)
            return r;
    }
    for (at = (uint32_t)col->hash & col->table_mask; col->table[at] != 0; at = (at + 1) & col->table_mask) {
        uint32_t list = col->table[at] - 1;
        uint64_t start = a->list_start[list];

        if (col->hash_of[list] == col->hash && a->list_start[list + 1] - start == col->n_scratch &&
            memcmp(&a->targets[start], col->scratch, col->n_scratch * sizeof(*col->scratch)) == 0) {
            *list_out = list;
            return 0;
        }
    }
    col->table[at] = a->n_lists + 1;
    return add_list(col, list_out);
}

static int close_list(struct collector *col)
{
    struct emu_audit *a = col->audit;
    uint32_t list = 0;
    int r;

    if (col->channel == EMU_AUDIT_NONE || col->n_scratch == 0)
        return 0;
    r = find_list(col, &list);
    if (r == 0)
        r = grow((void **)&a->holdings, a->n_holdings, &a->holdings_room, sizeof(*a->holdings));
    if (r < 0)
        return r;
    a->holdings[a->n_holdings++] = (struct emu_audit_holding){ .channel = col->channel, .list = list };
    return 0;
}

static void collect(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc)
{
    struct collector *col = ctx;
    struct emu_audit *a = col->audit;
    uint32_t channel = emu_audit_channel_at(a, link, vc);
    uint32_t target = emu_audit_channel_at(a, next_link, next_vc);
    uint64_t room = col->scratch_room;

    if (col->error < 0)
        return;
    if (channel == EMU_AUDIT_NONE || target == EMU_AUDIT_NONE || a->to_router[link] == EMU_AUDIT_NONE ||
        a->to_router[link] != a->from_router[next_link]) {
        a->result.n_impossible++;
        return;
    }
    if (channel != col->channel) {
        col->error = close_list(col);
        col->channel = channel;
        col->n_scratch = 0;
        col->hash = 0;
    }
    if (col->error == 0)
        col->error = grow((void **)&col->scratch, col->n_scratch, &room, sizeof(*col->scratch));
    if (col->error < 0)
        return;
    col->scratch_room = (uint32_t)room;
    col->scratch[col->n_scratch++] = target;
    col->hash = emu_random_mix(col->hash ^ target);
}

static int collect_all(struct emu_audit *a)
{
    struct collector col = { .audit = a, .channel = EMU_AUDIT_NONE };

    a->routing->dependencies(a->machine, a->faults, collect, &col);
    if (col.error == 0)
        col.error = close_list(&col);
    free(col.scratch);
    free(col.table);
    free(col.hash_of);
    return col.error;
}

/* From pairs in the order of visits to lists by channel. */
static int sort_holdings(struct emu_audit *a)
{
    uint64_t sum = 0;

    a->holding_start = calloc((size_t)a->n_channels + 2, sizeof(*a->holding_start));
    a->held = calloc(a->n_holdings + 1, sizeof(*a->held));
    if (!a->holding_start || !a->held)
        return -ENOMEM;
    for (uint64_t i = 0; i < a->n_holdings; i++)
        a->holding_start[a->holdings[i].channel + 2]++;
    for (size_t c = 0; c < (size_t)a->n_channels + 2; c++) {
        sum += a->holding_start[c];
        a->holding_start[c] = sum;
    }
    for (uint64_t i = 0; i < a->n_holdings; i++) /* entry c + 1 moves from the start of c to its end */
        a->held[a->holding_start[a->holdings[i].channel + 1]++] = a->holdings[i].list;
    free(a->holdings);
    a->holdings = NULL;
    return 0;
}

/* ---- counting ---- */

/* All lists of a channel together. */
static int count_merged(const struct emu_audit *a, uint32_t channel, struct emu_audit_tally *tally_out)
{
    uint32_t *all;
    size_t n = 0;

    for (uint64_t h = a->holding_start[channel]; h < a->holding_start[channel + 1]; h++)
        n += a->list_start[a->held[h] + 1] - a->list_start[a->held[h]];
    all = malloc(n * sizeof(*all));
    if (!all)
        return -ENOMEM;
    n = 0;
    for (uint64_t h = a->holding_start[channel]; h < a->holding_start[channel + 1]; h++) {
        for (uint64_t t = a->list_start[a->held[h]]; t < a->list_start[a->held[h] + 1]; t++)
            all[n++] = a->targets[t];
    }
    *tally_out = count_targets(a, all, n);
    free(all);
    return 0;
}

static int count_dependencies(struct emu_audit *a)
{
    struct emu_audit_result *result = &a->result;

    result->n_channels = a->n_channels;
    for (uint32_t c = 0; c < a->n_channels; c++) {
        uint64_t n = a->holding_start[c + 1] - a->holding_start[c];
        bool is_escape = (a->flags[c] & EMU_AUDIT_IS_ESCAPE) != 0;
        struct emu_audit_tally tally = { 0 };

        result->n_escape_channels += is_escape;
        if (n == 0)
            continue;
        if (n == 1)
            tally = a->tallies[a->held[a->holding_start[c]]];
        else if (count_merged(a, c, &tally) < 0)
            return -ENOMEM;
        result->n_dependencies += tally.n_distinct;
        result->n_escape_dependencies += is_escape ? tally.n_escape : 0;
        result->n_stranded += !tally.is_settling;
    }
    return 0;
}

static void count_escape_vcs(struct emu_audit *a)
{
    bool is_present[EMU_LINK_CLASSES] = { false };

    for (uint32_t link = 0; link < a->n_links; link++)
        is_present[a->class_of[link]] = a->from_router[link] != EMU_AUDIT_NONE && a->to_router[link] != EMU_AUDIT_NONE;
    for (uint32_t c = 0; c < EMU_LINK_CLASSES; c++) {
        uint32_t n[EMU_TRAFFIC_CLASSES] = { 0 };

        for (uint32_t vc = 0; is_present[c] && vc < a->n_vcs[c]; vc++) {
            for (uint32_t k = 0; k < EMU_TRAFFIC_CLASSES; k++)
                n[k] += a->vcs[c][vc].is_escape && emu_audit_is_used_by(&a->vcs[c][vc], k);
        }
        for (uint32_t k = 0; k < EMU_TRAFFIC_CLASSES; k++) {
            if (n[k] > a->result.escape_vcs[k])
                a->result.escape_vcs[k] = n[k];
        }
    }
}

int emu_audit_build_graph(struct emu_audit *a)
{
    int r;

    ask_channels(a);
    r = number_channels(a);
    if (r == 0)
        r = collect_all(a);
    if (r == 0)
        r = sort_holdings(a);
    if (r == 0)
        r = count_dependencies(a);
    if (r == 0)
        count_escape_vcs(a);
    return r;
}
