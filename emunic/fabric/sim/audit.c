/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The deadlock audit.
 *
 * Verdict. Only escape channels count. Kahn's algorithm takes away what nothing waits in front of: a list
 * (audit_graph.c) goes when the last channel that points at it goes. What remains lies on a cycle or behind one;
 * Tarjan's algorithm, without recursion, divides it into strongly connected parts. A part is a bubble ring if all its
 * channels are bubble channels and each has one successor in the part. Any other part is a deadlock that waits to
 * happen, and a shortest cycle through one of its channels is kept for the report.
 *
 * Why escape channels alone: packets move by virtual cut-through, so one that cannot go on lies in one buffer as a
 * whole and holds nothing else. Then direct dependencies are enough (J. Duato, "A necessary and sufficient condition
 * for deadlock-free routing in cut-through and store-and-forward networks", IEEE TPDS 7(8), 1996).
 *
 * Source: spec/machines.md 1.4, 5.2; W. Dally, C. Seitz, IEEE ToC C-36(5), 1987; R. Tarjan, SIAM J. Comput. 1(2), 1972.
 */
#include "emunic/fabric/sim/audit_inner.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/link.h"

static uint32_t link_of_channel(const struct emu_audit *a, uint32_t channel)
{
    uint32_t first = 0;
    uint32_t end = a->n_links;

    /* The last link whose first channel is not behind this one; links without channels share it with the next. */
    while (end - first > 1) {
        uint32_t middle = first + (end - first) / 2;

        if (a->first_channel[middle] <= channel)
            first = middle;
        else
            end = middle;
    }
    return first;
}

static struct emu_audit_channel describe(const struct emu_audit *a, uint32_t channel)
{
    uint32_t link = link_of_channel(a, channel);

    return (struct emu_audit_channel){ .link = link, .vc = channel - a->first_channel[link] };
}

/* ---- cycles ---- */

static bool is_alive(const struct emu_audit *a, uint32_t channel)
{
    return (a->flags[channel] & (EMU_AUDIT_IS_ESCAPE | EMU_AUDIT_IS_REMOVED)) == EMU_AUDIT_IS_ESCAPE;
}

/* Kahn: marks as removed what nothing waits in front of. Leaves the number of escape channels that remain. */
static int remove_sources(struct emu_audit *a, uint64_t *n_left_out)
{
    uint32_t *holders = calloc((size_t)a->n_lists + 1, sizeof(*holders));    /* escape channels left, by list */
    uint32_t *waiting = calloc((size_t)a->n_channels + 1, sizeof(*waiting)); /* places in lists left, by channel */
    uint32_t *queue = malloc(((size_t)a->n_channels + 1) * sizeof(*queue));
    uint64_t n_left = a->result.n_escape_channels;
    size_t n_queue = 0;

    if (!holders || !waiting || !queue) {
        free(holders);
        free(waiting);
        free(queue);
        return -ENOMEM;
    }
    for (uint32_t c = 0; c < a->n_channels; c++) {
        if (!is_alive(a, c))
            continue;
        for (uint64_t h = a->holding_start[c]; h < a->holding_start[c + 1]; h++)
            holders[a->held[h]]++;
    }
    for (uint32_t list = 0; list < a->n_lists; list++) {
        if (holders[list] == 0)
            continue;
        for (uint64_t t = a->list_start[list]; t < a->list_start[list + 1]; t++)
            waiting[a->targets[t]]++;
    }
    for (uint32_t c = 0; c < a->n_channels; c++) {
        if (is_alive(a, c) && waiting[c] == 0)
            queue[n_queue++] = c;
    }
    for (size_t i = 0; i < n_queue; i++) {
        uint32_t c = queue[i];

        a->flags[c] |= EMU_AUDIT_IS_REMOVED;
        n_left--;
        for (uint64_t h = a->holding_start[c]; h < a->holding_start[c + 1]; h++) {
            uint32_t list = a->held[h];

            if (--holders[list] > 0)
                continue;
            for (uint64_t t = a->list_start[list]; t < a->list_start[list + 1]; t++) {
                uint32_t target = a->targets[t];

                if (--waiting[target] == 0 && is_alive(a, target))
                    queue[n_queue++] = target;
            }
        }
    }
    free(holders);
    free(waiting);
    free(queue);
    *n_left_out = n_left;
    return 0;
}

/* Tarjan's state. index 0: not seen. */
struct tarjan {
    struct emu_audit *audit;
    uint32_t *index;
    uint32_t *low;
    uint32_t *stack; /* channels of parts that are not complete */
    size_t n_stack;
    uint32_t *path;                   /* channels whose targets are being looked at */
    struct emu_audit_cursor *cursors; /* of those */
    size_t n_path;
    uint32_t n_seen;
    uint32_t n_parts;
};

static void enter(struct tarjan *t, uint32_t channel)
{
    t->index[channel] = t->low[channel] = ++t->n_seen;
    t->stack[t->n_stack++] = channel;
    t->path[t->n_path] = channel;
    t->cursors[t->n_path++] = emu_audit_cursor_at(t->audit, channel);
}

/* The part that ends with this channel, on top of the stack. */
static void take_part(struct tarjan *t, uint32_t channel)
{
    struct emu_audit *a = t->audit;
    bool is_cycle = t->stack[t->n_stack - 1] != channel;
    uint32_t part = is_cycle ? ++t->n_parts : 0;
    uint32_t member;

    do {
        member = t->stack[--t->n_stack];
        t->low[member] = EMU_AUDIT_NONE; /* complete */
        a->part_of[member] = part;
        a->result.n_cyclic_channels += is_cycle;
    } while (member != channel);
}

static void search_from(struct tarjan *t, uint32_t root)
{
    struct emu_audit *a = t->audit;

    enter(t, root);
    while (t->n_path > 0) {
        uint32_t c = t->path[t->n_path - 1];
        uint32_t target = emu_audit_next_target(a, c, &t->cursors[t->n_path - 1]);

        if (target == EMU_AUDIT_NONE) {
            t->n_path--;
            if (t->low[c] == t->index[c])
                take_part(t, c);
            else if (t->n_path > 0 && t->low[c] < t->low[t->path[t->n_path - 1]])
                t->low[t->path[t->n_path - 1]] = t->low[c];
        } else if (!is_alive(a, target)) {
            continue;
        } else if (t->index[target] == 0) {
            enter(t, target);
        } else if (t->low[target] != EMU_AUDIT_NONE && t->index[target] < t->low[c]) {
            t->low[c] = t->index[target];
        }
    }
}

static int find_parts(struct emu_audit *a, uint32_t *n_parts_out)
{
    size_t n = (size_t)a->n_channels + 1;
    struct tarjan t = { .audit = a };
    int r = -ENOMEM;

    a->part_of = calloc(n, sizeof(*a->part_of));
    t.index = calloc(n, sizeof(*t.index));
    t.low = calloc(n, sizeof(*t.low));
    t.stack = malloc(n * sizeof(*t.stack));
    t.path = malloc(n * sizeof(*t.path));
    t.cursors = malloc(n * sizeof(*t.cursors));
    if (!a->part_of || !t.index || !t.low || !t.stack || !t.path || !t.cursors)
        goto out;
    for (uint32_t c = 0; c < a->n_channels; c++) {
        if (is_alive(a, c) && t.index[c] == 0)
            search_from(&t, c);
    }
    *n_parts_out = t.n_parts;
    r = 0;
out:
    free(t.index);
    free(t.low);
    free(t.stack);
    free(t.path);
    free(t.cursors);
    return r;
}

/* Does the channel have exactly one successor in its part, and is it a bubble channel? */
static bool fits_ring(const struct emu_audit *a, uint32_t channel)
{
    struct emu_audit_cursor cur = emu_audit_cursor_at(a, channel);
    uint32_t successor = EMU_AUDIT_NONE;
    uint32_t target;

    while ((target = emu_audit_next_target(a, channel, &cur)) != EMU_AUDIT_NONE) {
        if (a->part_of[target] != a->part_of[channel] || target == successor)
            continue;
        if (successor != EMU_AUDIT_NONE)
            return false;
        successor = target;
    }
    return (a->flags[channel] & EMU_AUDIT_IS_BUBBLE) != 0;
}

static int judge_parts(struct emu_audit *a, uint32_t n_parts)
{
    a->part_is_ring = malloc((size_t)n_parts + 1);
    if (!a->part_is_ring)
        return -ENOMEM;
    memset(a->part_is_ring, 1, (size_t)n_parts + 1);
    for (uint32_t c = 0; c < a->n_channels; c++) {
        if (a->part_of[c] != 0 && !fits_ring(a, c))
            a->part_is_ring[a->part_of[c]] = 0;
    }
    for (uint32_t part = 1; part <= n_parts; part++) {
        a->result.n_rings += a->part_is_ring[part] != 0;
        a->result.n_other_cycles += a->part_is_ring[part] == 0;
    }
    return 0;
}

/* A shortest cycle through one channel, breadth first within its part. */
static int find_cycle(struct emu_audit *a, uint32_t start)
{
    uint32_t *parent = malloc(((size_t)a->n_channels + 1) * sizeof(*parent));
    uint32_t *queue = malloc(((size_t)a->n_channels + 1) * sizeof(*queue));
    size_t n_queue = 0;
    uint32_t last = EMU_AUDIT_NONE;
    int r = -ENOMEM;

    if (!parent || !queue)
        goto out;
    memset(parent, 0xff, ((size_t)a->n_channels + 1) * sizeof(*parent));
    queue[n_queue++] = start;
    for (size_t i = 0; i < n_queue && last == EMU_AUDIT_NONE; i++) {
        struct emu_audit_cursor cur = emu_audit_cursor_at(a, queue[i]);
        uint32_t target;

        while ((target = emu_audit_next_target(a, queue[i], &cur)) != EMU_AUDIT_NONE) {
            if (target == start) {
                last = queue[i];
                break;
            }
            if (a->part_of[target] == a->part_of[start] && parent[target] == EMU_AUDIT_NONE) {
                parent[target] = queue[i];
                queue[n_queue++] = target;
            }
        }
    }
    for (uint32_t c = last; c != EMU_AUDIT_NONE; c = c == start ? EMU_AUDIT_NONE : parent[c])
        a->cycle_len++;
    a->cycle = calloc(a->cycle_len + 1, sizeof(*a->cycle));
    if (!a->cycle) {
        a->cycle_len = 0;
        goto out;
    }
    for (size_t i = a->cycle_len; i-- > 0; last = parent[last])
        a->cycle[i] = describe(a, last);
    r = 0;
out:
    free(parent);
    free(queue);
    return r;
}

/* Which classes of traffic use a channel that is on a cycle? */
static void judge_classes(struct emu_audit *a)
{
    for (uint32_t k = 0; k < EMU_TRAFFIC_CLASSES; k++)
        a->result.class_is_acyclic[k] = true;
    if (!a->part_of)
        return;
    for (uint32_t link = 0; link < a->n_links; link++) {
        for (uint32_t c = a->first_channel[link]; c < a->first_channel[link + 1]; c++) {
            const struct emu_vc_info *info = &a->vcs[a->class_of[link]][c - a->first_channel[link]];

            for (uint32_t k = 0; a->part_of[c] != 0 && k < EMU_TRAFFIC_CLASSES; k++)
                a->result.class_is_acyclic[k] = a->result.class_is_acyclic[k] && !emu_audit_is_used_by(info, k);
        }
    }
}

static int judge(struct emu_audit *a)
{
    struct emu_audit_result *result = &a->result;
    uint32_t n_parts = 0;
    uint64_t n_left;
    uint32_t shown = EMU_AUDIT_NONE;
    int r;

    r = remove_sources(a, &n_left);
    if (r == 0 && n_left > 0)
        r = find_parts(a, &n_parts);
    if (r == 0 && n_parts > 0)
        r = judge_parts(a, n_parts);
    if (r < 0)
        return r;
    for (uint32_t c = 0; n_parts > 0 && c < a->n_channels; c++) {
        if (a->part_of[c] == 0)
            continue;
        if (shown == EMU_AUDIT_NONE || !a->part_is_ring[a->part_of[c]])
            shown = c;
        if (!a->part_is_ring[a->part_of[c]])
            break;
    }
    if (shown != EMU_AUDIT_NONE)
        r = find_cycle(a, shown);
    result->is_acyclic = n_parts == 0;
    judge_classes(a);
    result->is_free = result->n_other_cycles == 0 && result->n_stranded == 0 && result->n_impossible == 0;
    return r;
}

/* ---- the static audit ---- */

int emu_audit_create(const struct emu_machine *m, const struct emu_routing *routing, const struct emu_fault_map *faults,
                     struct emu_audit **audit_out)
{
    struct emu_audit *a = calloc(1, sizeof(*a));
    int r;

    if (!a)
        return -ENOMEM;
    a->machine = m;
    a->routing = routing;
    a->faults = faults;
    r = emu_audit_build_graph(a);
    if (r == 0)
        r = judge(a);
    if (r < 0) {
        emu_audit_destroy(a);
        return r;
    }
    *audit_out = a;
    return 0;
}

void emu_audit_destroy(struct emu_audit *a)
{
    if (!a)
        return;
    free(a->class_of);
    free(a->first_channel);
    free(a->from_router);
    free(a->to_router);
    free(a->nic_link);
    free(a->flags);
    free(a->targets);
    free(a->list_start);
    free(a->tallies);
    free(a->holdings);
    free(a->holding_start);
    free(a->held);
    free(a->part_of);
    free(a->part_is_ring);
    free(a->cycle);
    free(a);
}

const struct emu_audit_result *emu_audit_result(const struct emu_audit *audit)
{
    return &audit->result;
}

size_t emu_audit_cycle(const struct emu_audit *audit, const struct emu_audit_channel **channels_out)
{
    *channels_out = audit->cycle;
    return audit->cycle_len;
}

/* ---- report ---- */

void emu_audit_print(const struct emu_audit *audit, size_t max_links, void (*line)(void *ctx, const char *text),
                     void *ctx)
{
    const struct emu_audit_result *r = &audit->result;
    char text[EMU_LINK_NAME_MAX + 200];
    char name[EMU_LINK_NAME_MAX];

    snprintf(text, sizeof(text),
             "channels=%" PRIu64 " dependencies=%" PRIu64 " escape_channels=%" PRIu64 " escape_dependencies=%" PRIu64
             " acyclic=%d",
             r->n_channels, r->n_dependencies, r->n_escape_channels, r->n_escape_dependencies, r->is_acyclic);
    line(ctx, text);
    snprintf(text, sizeof(text),
             "requests: %u escape VCs, acyclic=%d; responses: %u, acyclic=%d; bubble rings=%u, other cycles=%u, "
             "stranded=%" PRIu64 ", impossible=%" PRIu64 ": %s",
             r->escape_vcs[EMU_TRAFFIC_REQUEST], r->class_is_acyclic[EMU_TRAFFIC_REQUEST],
             r->escape_vcs[EMU_TRAFFIC_RESPONSE], r->class_is_acyclic[EMU_TRAFFIC_RESPONSE], r->n_rings,
             r->n_other_cycles, r->n_stranded, r->n_impossible,
             !r->is_free   ? "may deadlock" :
             r->is_acyclic ? "free of deadlock" :
                             "free of deadlock by the ring rule");
    line(ctx, text);
    if (audit->cycle_len == 0 || max_links == 0)
        return;
    snprintf(text, sizeof(text), "%s of %zu channels:", r->n_other_cycles > 0 ? "cycle" : "ring", audit->cycle_len);
    line(ctx, text);
    for (size_t i = 0; i < audit->cycle_len && i < max_links; i++) {
        if (emu_link_name(audit->machine, audit->cycle[i].link, name, sizeof(name)) < 0)
            snprintf(name, sizeof(name), "link %u", audit->cycle[i].link);
        snprintf(text, sizeof(text), "  %s vc %u", name, audit->cycle[i].vc);
        line(ctx, text);
    }
    if (audit->cycle_len > max_links) {
        snprintf(text, sizeof(text), "  ... and %zu more", audit->cycle_len - max_links);
        line(ctx, text);
    }
}
