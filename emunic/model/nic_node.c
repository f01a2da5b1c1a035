/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Nodes of the NIC model: made at their first use, with tables of operations and of things to come that grow as needed.
 */
#include "emunic/model/nic_inner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SEQS 65536u

/* ---- nodes ---- */

static struct node *make_node(struct emu_nic_model *nm, uint32_t nid)
{
    struct node *n = calloc(1, sizeof(*n));

    if (!n)
        return NULL;
    n->nid = nid;
    n->free_pending = UINT32_MAX;
    for (uint32_t c = 0; c < EMU_TRAFFIC_CLASSES; c++)
        n->wake_ps[c] = NEVER;
    n->bte = calloc((size_t)nm->nic.bte_channels + 1, sizeof(struct op *));
    n->window = calloc(nm->nic.outstanding_packets, sizeof(*n->window));
    if (!n->bte || !n->window) {
        free(n->bte);
        free(n->window);
        free(n);
        return NULL;
    }
    n->n_free = nm->nic.outstanding_packets;
    nm->nodes[nid] = n;
    return n;
}

struct node *emu_nic_node_of(struct emu_nic_model *nm, uint32_t nid)
{
    return nm->nodes[nid] ? nm->nodes[nid] : make_node(nm, nid);
}

static void free_op_list(struct op *op)
{
    while (op) {
        struct op *next = op->next;

        free(op);
        op = next;
    }
}

void emu_nic_node_destroy(struct node *n)
{
    if (!n)
        return;
    for (uint32_t i = 0; i < n->ops_size; i++)
        free(n->ops[i]); /* queued ones are there as well */
    free_op_list(n->free_ops);
    free(n->ops);
    free(n->bte);
    free(n->window);
    free(n->answers);
    free(n->assemblies);
    free(n->pending);
    free(n->due);
    free(n);
}

/* ---- operations ---- */

static int grow_ops(struct node *n)
{
    uint32_t size = n->ops_size == 0 ? 16 : n->ops_size * 2;
    struct op **bigger = calloc(size, sizeof(struct op *));

    if (!bigger)
        return -ENOMEM;
    for (uint32_t i = 0; i < n->ops_size; i++) {
        if (n->ops[i])
            bigger[n->ops[i]->seq & (size - 1)] = n->ops[i];
    }
    free(n->ops);
    n->ops = bigger;
    n->ops_size = size;
    return 0;
}

int emu_nic_take_op(struct node *n, struct op **op_out)
{
    struct op *op;

    while (n->ops_size == 0 || n->ops[n->next_seq & (n->ops_size - 1)]) {
        if (n->ops_size == SEQS) { /* the oldest is still there: look on */
            uint32_t tries = 0;

            while (n->ops[n->next_seq]) {
                if (++tries == SEQS)
                    return -ENOBUFS;
                n->next_seq++;
            }
            break;
        }
        if (grow_ops(n) < 0)
            return -ENOMEM;
    }
    op = n->free_ops;
    if (op)
        n->free_ops = op->next;
    else
        op = malloc(sizeof(*op));
    if (!op)
        return -ENOMEM;
    memset(op, 0, sizeof(*op));
    op->seq = op->tag_seq = n->next_seq++;
    n->ops[op->seq & (n->ops_size - 1)] = op;
    *op_out = op;
    return 0;
}

/* ---- things to come ---- */

static bool ends_run(enum pending_kind kind)
{
    return kind == PENDING_COMPLETED || kind == PENDING_BEGUN || kind == PENDING_ARRIVED;
}

void emu_nic_await(struct emu_nic_model *nm, struct node *n, uint64_t at_ps, const struct pending *what)
{
    uint32_t index = n->free_pending;

    if (index != UINT32_MAX) {
        n->free_pending = n->pending[index].next_free;
    } else {
        if ((n->n_pending & (n->n_pending - 1)) == 0) { /* a power of two, or none: full */
            uint32_t room = n->n_pending == 0 ? 1 : n->n_pending * 2;
            struct pending *bigger = realloc(n->pending, room * sizeof(*bigger));

            if (!bigger) {
                n->is_out_of_memory = true;
                return;
            }
            n->pending = bigger;
        }
        index = n->n_pending++;
    }
    n->pending[index] = *what;
    if (nm->is_live && ends_run(what->kind))
        emu_sim_end_at(nm->sim, n->nid, at_ps, (uint64_t)index + EMU_TRAFFIC_CLASSES);
    else
        emu_sim_call_at(nm->sim, n->nid, at_ps, (uint64_t)index + EMU_TRAFFIC_CLASSES);
}

void emu_nic_note_due(struct emu_nic_model *nm, struct node *n, const struct pending *what)
{
    if (n->n_due == n->due_room) {
        uint32_t room = n->due_room == 0 ? 4 : n->due_room * 2;
        struct pending *bigger = realloc(n->due, room * sizeof(*bigger));

        if (!bigger) {
            n->is_out_of_memory = true;
            return;
        }
        n->due = bigger;
        n->due_room = room;
    }
    n->due[n->n_due++] = *what;
    if (n->n_due > 1)
        return;
    n->next_due = atomic_load_explicit(&nm->due_nodes, memory_order_relaxed);
    /* Nodes of other threads come here too. They are taken between two runs, which order memory. */
    while (!atomic_compare_exchange_weak_explicit(&nm->due_nodes, &n->next_due, n, memory_order_relaxed,
                                                  memory_order_relaxed))
        ;
}

void emu_nic_wake_at(struct emu_nic_model *nm, struct node *n, enum emu_traffic_class c, uint64_t at_ps)
{
    if (at_ps < n->now_ps + nm->clock_ps) {
        emu_sim_wake(nm->sim, n->nid, c);
    } else if (at_ps < n->wake_ps[c]) {
        n->wake_ps[c] = at_ps;
        emu_sim_call_at(nm->sim, n->nid, at_ps, c);
    }
}
