/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texts and rules about ranks and nodes, without any state.
 *
 * A nid list gives the node of every rank in rank order; "nid*count" stands for count equal neighbours. From it
 * follow node numbers (order of first appearance) and the process mapping: a list of blocks (b,n,c), "from node
 * b on, n nodes with the next c ranks each". Neighbouring runs join into one block when the node number grows
 * by one and the count is equal; every rank is written out, so no reader has to know the rule that a mapping
 * repeats.
 *
 * XC coordinates: 192 nodes per cabinet, 64 per chassis, 4 per slot; two neighbouring cabinets of a row are one
 * group (X), with chassis 0-2 in the first and 3-5 in the second (Y), slot is Z.
 * Source: spec/cray-runtime.md 2.3 and 4.2.
 */
#include "mpi-shim/pmi/src/nidmap.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANKS (1 << 24)

struct int_list {
    int *items; /* owned */
    int n;
    int capacity;
};

static int list_add(struct int_list *list, int value, int count)
{
    if (count > MAX_RANKS - list->n)
        return -EINVAL;
    if (list->n + count > list->capacity) {
        int capacity = list->capacity * 2 > list->n + count ? list->capacity * 2 : list->n + count;
        int *items = realloc(list->items, (size_t)capacity * sizeof(*items));

        if (!items)
            return -ENOMEM;
        list->items = items;
        list->capacity = capacity;
    }
    for (int i = 0; i < count; i++)
        list->items[list->n++] = value;
    return 0;
}

/* Digits at *cursor as a number; the cursor moves behind them. */
static bool take_int(const char **cursor, int *value_out)
{
    const char *c = *cursor;
    int64_t value = 0;

    if (*c < '0' || *c > '9')
        return false;
    for (; *c >= '0' && *c <= '9'; c++) {
        value = value * 10 + (*c - '0');
        if (value > INT_MAX)
            return false;
    }
    *cursor = c;
    *value_out = (int)value;
    return true;
}

static void skip_blanks(const char **cursor)
{
    while (**cursor == ' ' || **cursor == '\t')
        (*cursor)++;
}

bool pmii_parse_int(const char *text, int *value_out)
{
    const char *c = text;
    int value;

    if (!text || !take_int(&c, &value) || *c != '\0')
        return false;
    *value_out = value;
    return true;
}

int pmii_nids_parse(const char *text, int **nids_out, int *n_ranks_out)
{
    struct int_list list = { 0 };
    const char *c = text;
    int r = -EINVAL;

    for (;;) {
        int nid, count = 1;

        skip_blanks(&c);
        if (!take_int(&c, &nid))
            goto err_free;
        skip_blanks(&c);
        if (*c == '*') {
            c++;
            skip_blanks(&c);
            if (!take_int(&c, &count) || count == 0)
                goto err_free;
            skip_blanks(&c);
        }
        r = list_add(&list, nid, count);
        if (r < 0)
            goto err_free;
        r = -EINVAL;
        if (*c == '\0')
            break;
        if (*c++ != ',')
            goto err_free;
    }
    *nids_out = list.items;
    *n_ranks_out = list.n;
    return 0;

err_free:
    free(list.items);
    return r;
}

int pmii_counts_parse(const char *text, int **counts_out, int *n_counts_out)
{
    struct int_list list = { 0 };
    const char *c = text;
    int r = -EINVAL;

    for (;;) {
        int count;

        skip_blanks(&c);
        if (*c == '\0' && list.n > 0)
            break;
        if (!take_int(&c, &count) || (*c != '\0' && *c != ' ' && *c != '\t' && *c != ','))
            goto err_free;
        r = list_add(&list, count, 1);
        if (r < 0)
            goto err_free;
        r = -EINVAL;
        if (*c == ',' && *++c == '\0')
            goto err_free;
    }
    *counts_out = list.items;
    *n_counts_out = list.n;
    return 0;

err_free:
    free(list.items);
    return r;
}

struct nid_rank {
    int nid;
    int rank;
};

static int compare_nid_rank(const void *a, const void *b)
{
    const struct nid_rank *x = a, *y = b;

    if (x->nid != y->nid)
        return x->nid < y->nid ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

int pmii_node_numbers(const int *nids, int n_ranks, int *nodes_out)
{
    struct nid_rank *sorted;
    int n_nodes = 0;

    if (n_ranks == 0)
        return 0;
    sorted = malloc((size_t)n_ranks * sizeof(*sorted));
    if (!sorted)
        return -ENOMEM;
    for (int i = 0; i < n_ranks; i++)
        sorted[i] = (struct nid_rank){ nids[i], i };
    qsort(sorted, (size_t)n_ranks, sizeof(*sorted), compare_nid_rank);

    /* First the lowest rank of each rank's node; an entry equal to its own index then marks a new node. */
    for (int i = 0, first = 0; i < n_ranks; i++) {
        if (sorted[i].nid != sorted[first].nid)
            first = i;
        nodes_out[sorted[i].rank] = sorted[first].rank;
    }
    free(sorted);
    for (int i = 0; i < n_ranks; i++) {
        if (nodes_out[i] == i)
            nodes_out[i] = n_nodes++;
        else
            nodes_out[i] = nodes_out[nodes_out[i]]; /* a lower rank: already numbered */
    }
    return 0;
}

struct block {
    int node;    /* b */
    int n_nodes; /* n */
    int n_ranks; /* c */
};

/* Fill the blocks of a map that has been numbered; at most one block per rank. */
static int build_blocks(const int *nodes, int n_ranks, struct block *blocks)
{
    int n_blocks = 0;

    for (int i = 0; i < n_ranks;) {
        int run = 1;

        while (i + run < n_ranks && nodes[i + run] == nodes[i])
            run++;
        if (n_blocks > 0 && blocks[n_blocks - 1].n_ranks == run &&
            blocks[n_blocks - 1].node + blocks[n_blocks - 1].n_nodes == nodes[i])
            blocks[n_blocks - 1].n_nodes++;
        else
            blocks[n_blocks++] = (struct block){ nodes[i], 1, run };
        i += run;
    }
    return n_blocks;
}

int pmii_mapping_text(const int *nids, int n_ranks, char **text_out)
{
    static const char head[] = "(vector";
    enum { BLOCK_TEXT_MAX = sizeof(",(2147483647,2147483647,2147483647)") };
    struct block *blocks = NULL;
    size_t len, room;
    char *text = NULL;
    int *nodes;
    int n_blocks;
    int r = -ENOMEM;

    nodes = malloc(((size_t)n_ranks + 1) * sizeof(*nodes));
    blocks = malloc(((size_t)n_ranks + 1) * sizeof(*blocks));
    if (!nodes || !blocks)
        goto out;
    r = pmii_node_numbers(nids, n_ranks, nodes);
    if (r < 0)
        goto out;
    n_blocks = build_blocks(nodes, n_ranks, blocks);
    room = sizeof(head) + (size_t)n_blocks * BLOCK_TEXT_MAX + sizeof(")");
    text = malloc(room);
    if (!text) {
        r = -ENOMEM;
        goto out;
    }
    len = (size_t)snprintf(text, room, "%s", head);
    for (int i = 0; i < n_blocks; i++)
        len += (size_t)snprintf(text + len, room - len, ",(%d,%d,%d)", blocks[i].node, blocks[i].n_nodes,
                                blocks[i].n_ranks);
    snprintf(text + len, room - len, ")");
    *text_out = text;
out:
    free(blocks);
    free(nodes);
    return r;
}

int pmii_host_nid(const char *host, int *nid_out)
{
    const char *c = host;
    int nid;

    if (strncmp(c, "nid", 3) != 0)
        return -EINVAL;
    c += 3;
    if (!take_int(&c, &nid) || (*c != '\0' && *c != '.'))
        return -EINVAL;
    *nid_out = nid;
    return 0;
}

void pmii_xc_coordinate(int nid, int n_columns, unsigned xyz_out[3])
{
    int cabinet = nid / 192;
    int in_cabinet = nid % 192;
    int row = cabinet / n_columns;
    int column = cabinet % n_columns;

    /* An odd number of columns leaves half a group at the end of each row. */
    xyz_out[0] = (unsigned)(row * ((n_columns + 1) / 2) + column / 2);
    xyz_out[1] = (unsigned)(column % 2 * 3 + in_cabinet / 64);
    xyz_out[2] = (unsigned)(in_cabinet % 64 / 4);
}
