/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engines: reduction trees that need nobody's help once the leaves have posted.
 *
 * Each node has as many engines as the machine says, shared by all domains; one belongs to the port that created it.
 * A configured engine knows its children (leaves, which are ports, and engines of its domain) and its parent, or is
 * the root. A link between engines counts when both name each other.
 *
 *   leaf posts -> waits in its child's queue -> all children there: combined in the order of child ids -> `up`
 *       -> parent does the same ... -> root decides -> `down` on every engine of the tree -> each writes to its leaves
 *
 *   of one round    collecting -> has_up (not at the root) -> has_down -> written, next round
 *   of an engine    created -> configured -> broken -> configured anew
 *                   and gone from any of them
 *
 * Rounds need no number: an engine works on one round at a time, and the n-th contribution of each child belongs to its
 * n-th round. A leaf may be up to EMU_CE_WAITING_MAX rounds ahead; more are refused (retransmission limit). What
 * disagrees within a round (operation, width, reduction id) fails that round for everybody and no other.
 *
 * Broken: the tree cannot go on, because a child or an engine has gone, a leaf named a place that is not its own, or
 * two engines do not name each other (which counts from the first contribution on, so that trees may be built in any
 * order). The whole tree breaks at once, walked through its links; every contribution that waits, and each later one,
 * gets the cause, so nobody waits for ever. Rounds that the root has decided before are delivered first. Configuring
 * every engine anew, in any order, mends it; until then a broken neighbour is waited for like one that is not
 * configured yet. A leaf that has not attached yet is waited for as well: emunic does not know whom to expect.
 *
 * Work is queued and done a bounded number of engines per round of emunic (emu_ce_round); only marking a tree as
 * decided or broken is done at once, so no order of the queue can mix the two. Walks use a list through the engines,
 * no recursion: how deep a tree is, is up to clients. Links may be nonsense, even circles: nobody in a circle ever has
 * all children.
 *
 * A leaf's result goes into memory that it has registered; the registration is looked at again at the write, so after
 * GNI_MemDeregister nothing is written. Contribution, partial results and results count as puts of one result's size.
 * Source: spec ugni.md 2.16, 4.12; machines.md 2.3 (4 engines per NIC, 32 children, no host progress).
 */
#include "emunic/daemon/ce.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/abi/command.h"
#include "emunic/abi/event.h"
#include "emunic/daemon/domain.h"
#include "emunic/daemon/memory_domain.h"
#include "emunic/daemon/port.h"
#include "emunic/engine/ce.h"
#include "emunic/engine/cq.h"
#include "emunic/engine/transaction.h"

#define LOOKS_PER_ROUND 64u

/* What a leaf has posted. */
struct contribution {
    struct emu_ce_value value;
    uint64_t result_addr;
    uint32_t port;
    uint32_t port_generation;
    uint16_t mdh;
    uint16_t md_generation;
};

struct child {
    struct emu_ce_link link;
    uint32_t first;                     /* of the ring of waiting ones */
    uint32_t n_waiting;
    struct contribution *waiting;       /* owned, EMU_CE_WAITING_MAX; leaves only */
};

struct emu_ce_end {
    TAILQ_ENTRY(emu_ce_end) work_link;  /* while is_queued */
    LIST_ENTRY(emu_ce_end) link;        /* in its domain's list */
    struct emu_ce_end *next_walked;     /* while a walk goes on */
    struct emu_port_end *port;          /* borrowed: outlives it */
    uint32_t ce_id;
    bool is_queued;
    bool is_configured;
    bool has_up;
    bool has_down;
    bool is_wanted;                     /* somebody above waits for this round */
    bool tells_always;                  /* an entry for each round */
    unsigned broken;                    /* enum emu_status: why; 0 whole */
    uint32_t cq;
    enum emu_ce_rounding rounding;
    struct emu_ce_link parent;
    struct child *children;             /* owned, by child id */
    uint32_t n_children;
    struct emu_ce_value up;             /* what the parent may take */
    struct emu_ce_value down;           /* the result, not yet written to the leaves */
    struct emu_ce_link staged[EMU_CE_CHILDREN_MAX]; /* of a configuration that is being sent */
    uint32_t n_staged;
};

/* ---- finding ---- */

static uint32_t engines_per_node(const struct emu_server *server)
{
    return emu_machine_nic(server->machine)->ce_engines;
}

static struct emu_ce_end **slot_of(struct emu_server *server, uint32_t nid, uint32_t ce_id)
{
    if (!server->engines || nid >= server->n_nids || ce_id >= engines_per_node(server))
        return NULL;
    return &server->engines[(size_t)nid * engines_per_node(server) + ce_id];
}

/* An engine of the domain, or NULL. Any numbers. */
static struct emu_ce_end *find(const struct emu_port_end *asker, uint32_t nid, uint32_t ce_id)
{
    struct emu_ce_end **slot = slot_of(asker->server, nid, ce_id);

    return slot && *slot && (*slot)->port->domain == asker->domain ? *slot : NULL;
}

static struct child *child_of(const struct emu_ce_end *e, uint8_t child_id)
{
    for (uint32_t i = 0; i < e->n_children; i++) {
        if (e->children[i].link.child_id == child_id)
            return &e->children[i];
    }
    return NULL;
}

static bool names(const struct emu_ce_link *link, const struct emu_ce_end *e)
{
    return link->type == EMU_CE_LINK_ENGINE && link->nid == e->port->nid && link->ce_id == e->ce_id;
}

static bool is_child_of(const struct emu_ce_end *e, const struct emu_ce_end *parent)
{
    const struct child *c = child_of(parent, e->parent.child_id);

    return names(&e->parent, parent) && c && names(&c->link, e);
}

static bool has_link_to(const struct emu_ce_end *e, const struct emu_ce_end *other)
{
    bool has = e->is_configured && names(&e->parent, other);

    for (uint32_t i = 0; e->is_configured && i < e->n_children && !has; i++)
        has = names(&e->children[i].link, other);
    return has;
}

/* The engine at the other end of a link, if it is in working order. NULL with 0: not yet; with a status: never. */
static struct emu_ce_end *other_end(const struct emu_ce_end *e, const struct emu_ce_link *link, unsigned *status_out)
{
    struct emu_ce_end *other = find(e->port, link->nid, link->ce_id);

    *status_out = EMU_STATUS_OK;
    if (!other) {
        *status_out = EMU_STATUS_PEER_GONE;
    } else if (!other->is_configured || other->broken) {
        other = NULL;
    } else if (!is_child_of(link == &e->parent ? e : other, link == &e->parent ? other : e)) {
        *status_out = EMU_STATUS_MISMATCH;
        other = NULL;
    }
    return other;
}

static void queue(struct emu_ce_end *e)
{
    if (e->is_queued)
        return;
    e->is_queued = true;
    TAILQ_INSERT_TAIL(&e->port->server->ce_work, e, work_link);
}

/* ---- walks over a tree ---- */

struct walk {
    struct emu_ce_end *pending;
};

static void push(struct walk *w, struct emu_ce_end *e)
{
    e->next_walked = w->pending;
    w->pending = e;
}

static struct emu_ce_end *pop(struct walk *w)
{
    struct emu_ce_end *e = w->pending;

    if (e)
        w->pending = e->next_walked;
    return e;
}

/* The result for everybody below the root. Each engine has one parent, so the walk meets it once. */
static void decide(struct emu_ce_end *root, const struct emu_ce_value *result)
{
    struct walk w = { NULL };
    struct emu_ce_end *e;
    unsigned status;

    push(&w, root);
    while ((e = pop(&w))) {
        e->has_down = true;
        e->down = *result;
        queue(e);
        for (uint32_t i = 0; i < e->n_children; i++) {
            struct emu_ce_end *below = NULL;

            if (e->children[i].link.type == EMU_CE_LINK_ENGINE)
                below = other_end(e, &e->children[i].link, &status);
            if (below)
                push(&w, below);
        }
    }
}

static void break_one(struct walk *w, struct emu_ce_end *e, unsigned status)
{
    if (!e || !e->is_configured || e->broken)
        return;
    e->broken = status;
    queue(e);
    push(w, e);
}

/* Marks all engines of a tree. What waits there is answered when they are looked at. */
static void break_tree(struct emu_ce_end *start, unsigned cause)
{
    struct walk w = { NULL };
    struct emu_ce_end *e;
    unsigned status;

    break_one(&w, start, cause);
    while ((e = pop(&w))) {
        if (e->parent.type == EMU_CE_LINK_ENGINE) {
            struct emu_ce_end *above = find(e->port, e->parent.nid, e->parent.ce_id);

            if (above && is_child_of(e, above))
                break_one(&w, above, cause);
        }
        for (uint32_t i = 0; i < e->n_children; i++) {
            if (e->children[i].link.type == EMU_CE_LINK_ENGINE)
                break_one(&w, other_end(e, &e->children[i].link, &status), cause);
        }
    }
}

/* ---- results ---- */

/* Is that place in a registration that the process may have results written to? Then how to reach it. */
static bool reach_result(struct emu_port_end *port, uint64_t addr, uint16_t mdh, uint16_t generation,
                         struct emu_memory *mem_out)
{
    const struct emu_table_md *md;
    const struct emu_port_end *owner;
    uint64_t first;
    uint64_t end;

    if (mdh >= EMU_MD_COUNT || addr % EMU_CE_RESULT_ALIGN != 0)
        return false;
    md = &emu_table_mds(port->domain->table, port->node_index)[mdh];
    if (atomic_load_explicit(&md->state, memory_order_relaxed) == 0 || md->generation != generation ||
        (md->flags & EMU_MD_READ_ONLY))
        return false;
    owner = port->domain->ports[md->port];
    if (!owner || owner->member != port->member)
        return false;
    first = md->base & ~4095ull;
    end = (md->base + md->length_bytes + 4095) & ~4095ull;
    if (addr < first || addr > end || sizeof(struct emu_ce_result) > end - addr)
        return false;
    return emu_md_reach(port, md, EMU_OP_CE, mem_out) == EMU_STATUS_OK;
}

static void write_result(struct emu_port_end *port, const struct contribution *c, const struct emu_ce_value *result)
{
    const uint64_t words[2] = { result->operand1, result->operand2 };
    bool is_good = result->status == EMU_STATUS_OK;
    struct emu_flag control = { c->result_addr, emu_ce_control(result->status, is_good ? result->fpe : 0,
                                                               c->value.red_id) };
    struct emu_memory mem;

    /* A leaf that takes its memory away gets nothing; that is its own affair. */
    if (reach_result(port, c->result_addr, c->mdh, c->md_generation, &mem))
        mem.ops->write(&mem, c->result_addr + offsetof(struct emu_ce_result, result1), words,
                       is_good ? sizeof(words) : 0, &control);
}

static struct emu_port_end *poster_of(const struct emu_ce_end *e, const struct contribution *c)
{
    struct emu_port_end *port = e->port->domain->ports[c->port];

    return port && emu_table_ports(port->domain->table)[c->port].generation == c->port_generation ? port : NULL;
}

/* Counts one packet from an engine to a node. */
static void count(const struct emu_ce_end *e, uint32_t nid)
{
    const struct emu_domain *domain = e->port->domain;

    emu_flow_add_put(&e->port->view.flows[emu_domain_node_of(domain, nid)], &domain->table->format,
                     sizeof(struct emu_ce_result));
}

/* Answers the oldest contribution of a leaf. */
static void answer(struct emu_ce_end *e, struct child *c, const struct emu_ce_value *result)
{
    const struct contribution *oldest = &c->waiting[c->first];
    struct emu_port_end *port = poster_of(e, oldest);

    if (port) {
        write_result(port, oldest, result);
        count(e, c->link.nid);
    }
    c->first = (c->first + 1) % EMU_CE_WAITING_MAX;
    c->n_waiting--;
}

/* The engine's own entry. */
static void tell_owner(const struct emu_ce_end *e, uint64_t red_id, unsigned status)
{
    struct emu_cq_end *cq = e->cq < EMU_CQS_MAX ? &e->port->cqs[e->cq] : NULL;
    uint64_t event = emu_event_make(0, EMU_SOURCE_CE, emu_ce_event_data(e->ce_id, red_id));

    if (cq && cq->in_use && (e->tells_always || status != EMU_STATUS_OK))
        emu_cq_push(&cq->producer, emu_event_with_status(event, status));
}

/* The round's result is known: to the leaves, and the next round may begin. */
static void deliver(struct emu_ce_end *e)
{
    if (!e->has_down)
        return;
    for (uint32_t i = 0; i < e->n_children; i++) {
        struct child *c = &e->children[i];

        if (c->link.type == EMU_CE_LINK_LEAF && c->n_waiting > 0)
            answer(e, c, &e->down);
        else
            count(e, c->link.nid);
    }
    tell_owner(e, e->down.red_id, e->down.status);
    e->has_down = false;
    e->has_up = false;
    e->is_wanted = false;
}

/* Everything that waits in a broken engine. */
static void fail_all(struct emu_ce_end *e)
{
    struct emu_ce_value failed = { .status = (uint8_t)e->broken, .red_id = e->up.red_id };
    bool was_busy = e->has_up;

    for (uint32_t i = 0; i < e->n_children; i++) {
        struct child *c = &e->children[i];

        if (c->n_waiting > 0 && !was_busy) {
            failed.red_id = c->waiting[c->first].value.red_id;
            was_busy = true;
        }
        while (c->n_waiting > 0)
            answer(e, c, &failed);
    }
    e->has_up = false;
    if (was_busy)
        tell_owner(e, failed.red_id, e->broken);
}

/* ---- rounds ---- */

/* What a child has for this round, or NULL. */
static const struct emu_ce_value *offer_of(const struct emu_ce_end *e, const struct child *c)
{
    const struct emu_ce_end *below;
    unsigned status;

    if (c->link.type == EMU_CE_LINK_LEAF)
        return c->n_waiting > 0 ? &c->waiting[c->first].value : NULL;
    below = other_end(e, &c->link, &status);
    return below && below->has_up && !below->has_down ? &below->up : NULL;
}

/* Breaks the tree if the link will never work; and that of the other end, if it counts on us in another way. */
static bool link_is_good(struct emu_ce_end *e, const struct emu_ce_link *link)
{
    struct emu_ce_end *other;
    unsigned status = EMU_STATUS_OK;

    if (link->type == EMU_CE_LINK_ENGINE)
        other_end(e, link, &status);
    if (status == EMU_STATUS_OK)
        return true;
    break_tree(e, status);
    other = find(e->port, link->nid, link->ce_id);
    if (other && has_link_to(other, e))
        break_tree(other, status);
    return false;
}

static bool links_are_good(struct emu_ce_end *e)
{
    bool are_good = link_is_good(e, &e->parent);

    for (uint32_t i = 0; i < e->n_children && are_good; i++)
        are_good = link_is_good(e, &e->children[i].link);
    return are_good;
}

/* Is anything of this round here, or waited for above? */
static bool is_busy(const struct emu_ce_end *e)
{
    bool is = e->has_up || e->is_wanted;

    for (uint32_t i = 0; i < e->n_children && !is; i++)
        is = offer_of(e, &e->children[i]) != NULL;
    return is;
}

/* Has the engines below see to it that what is missing can come. */
static void want_the_rest(struct emu_ce_end *e)
{
    unsigned status;

    for (uint32_t i = 0; i < e->n_children; i++) {
        struct child *c = &e->children[i];
        struct emu_ce_end *below = NULL;

        if (c->link.type == EMU_CE_LINK_ENGINE && !offer_of(e, c))
            below = other_end(e, &c->link, &status);
        if (below && !below->is_wanted) {
            below->is_wanted = true;
            queue(below);
        }
    }
}

static bool collect(const struct emu_ce_end *e, struct emu_ce_value *sum_out)
{
    for (uint32_t i = 0; i < e->n_children; i++) {
        if (!offer_of(e, &e->children[i]))
            return false;
    }
    *sum_out = *offer_of(e, &e->children[0]);
    for (uint32_t i = 1; i < e->n_children; i++)
        emu_ce_combine(sum_out, offer_of(e, &e->children[i]), e->rounding);
    return true;
}

static void look(struct emu_ce_end *e)
{
    struct emu_ce_end *above;
    struct emu_ce_value sum;
    unsigned status;

    if (!e->is_configured)
        return;
    deliver(e);
    if (e->broken) {
        fail_all(e);
        return;
    }
    if (!is_busy(e) || !links_are_good(e))
        return;
    if (!e->has_up) {
        if (!collect(e, &sum)) {
            want_the_rest(e);
            return;
        }
        if (e->parent.type == EMU_CE_LINK_NONE) {
            decide(e, &sum);
            return;
        }
        e->up = sum;
        e->has_up = true;
        count(e, e->parent.nid);
    }
    above = other_end(e, &e->parent, &status);
    if (above)
        queue(above);
}

/* Engines of a suspended job wait in the queue. */
static struct emu_ce_end *first_that_runs(const struct emu_server *server)
{
    struct emu_ce_end *e;

    TAILQ_FOREACH(e, &server->ce_work, work_link) {
        if (e->port->domain->suspension == EMU_RUNS)
            return e;
    }
    return NULL;
}

unsigned emu_ce_round(struct emu_server *server)
{
    struct emu_ce_end *e;
    unsigned done = 0;

    while (done < LOOKS_PER_ROUND && (e = first_that_runs(server))) {
        TAILQ_REMOVE(&server->ce_work, e, work_link);
        e->is_queued = false;
        look(e);
        done++;
    }
    return done;
}

bool emu_ce_has_work(const struct emu_server *server)
{
    return first_that_runs(server) != NULL;
}

/* ---- contributions ---- */

/* The leaf that a link means; any port of the same process on that node may post for it. */
static bool is_leaf(const struct emu_port_end *port, const struct emu_ce_link *link)
{
    const struct emu_port_end *other;

    if (link->type != EMU_CE_LINK_LEAF || port->nid != link->nid)
        return false;
    LIST_FOREACH(other, &port->member->ports, member_link) {
        if (other->nid == link->nid && other->instance_id == link->instance_id)
            return true;
    }
    return false;
}

static struct emu_ce_value value_of(const struct emu_cmd *cmd)
{
    return (struct emu_ce_value){ .red_id = cmd->ce_red_id, .operand1 = cmd->operand1, .operand2 = cmd->operand2,
                                  .op = cmd->ce_op, .flags = cmd->ce_flags & ((1u << EMU_CE_FPE_SHIFT) - 1),
                                  .fpe = cmd->ce_flags >> EMU_CE_FPE_SHIFT };
}

static unsigned accept_contribution(struct emu_port_end *port, const struct emu_cmd *cmd, struct contribution *new)
{
    struct emu_memory mem;
    struct emu_ce_end *e;
    struct child *c;
    uint32_t nid;

    if (!emu_ce_is_valid(&new->value))
        return EMU_STATUS_BAD_COMMAND;
    if (!reach_result(port, new->result_addr, new->mdh, new->md_generation, &mem))
        return EMU_STATUS_LOCAL_ACCESS;
    nid = emu_domain_nid_at(port->domain, cmd->remote_nid);
    if (nid == EMU_NID_NONE)
        return EMU_STATUS_PEER_GONE;
    e = find(port, nid, cmd->ce_id);
    if (!e || !e->is_configured)
        return EMU_STATUS_BAD_HANDLE;
    if (e->broken)
        return e->broken;
    c = child_of(e, cmd->ce_child);
    if (!c || !is_leaf(port, &c->link)) {
        /* Somebody else's contribution will now be missing: better all know than all wait. */
        break_tree(e, EMU_STATUS_MISMATCH);
        return EMU_STATUS_MISMATCH;
    }
    if (c->n_waiting == EMU_CE_WAITING_MAX)
        return EMU_STATUS_RETRANSMIT_LIMIT;
    emu_ce_start(&new->value);
    c->waiting[(c->first + c->n_waiting++) % EMU_CE_WAITING_MAX] = *new;
    queue(e);
    return EMU_STATUS_OK;
}

void emu_ce_post(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned fault)
{
    struct contribution new = { .value = value_of(cmd), .result_addr = cmd->local_addr, .port = port->index,
                                .port_generation = emu_table_ports(port->domain->table)[port->index].generation,
                                .mdh = cmd->mdh, .md_generation = cmd->generation };
    struct emu_transaction t = { .cmd = *cmd,
                                 .node_index = emu_table_node_index(port->domain->table, cmd->remote_nid) };
    struct emu_ce_value failed = { .status = 0 };

    new.value.status = (uint8_t)fault;  /* the others hear of it where the reduction is decided */
    t.status = accept_contribution(port, cmd, &new);
    if (t.status == EMU_STATUS_OK) {
        t.status = fault;
    } else {
        /* Both ways to wait come to an end: the entry and the result. */
        failed.status = (uint8_t)t.status;
        write_result(port, &new, &failed);
    }
    t.cmd.events &= (uint16_t)~EMU_EV_REMOTE;
    t.cmd.chain = EMU_CHAIN_NONE;
    emu_transaction_finish(&port->view, &t);
}

struct emu_port_end *emu_ce_owner(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t nid = emu_domain_nid_at(port->domain, cmd->remote_nid);
    struct emu_ce_end *e = nid == EMU_NID_NONE ? NULL : find(port, nid, cmd->ce_id);

    return e ? e->port : NULL;
}

/* ---- configuration ---- */

static void free_children(struct child *children, uint32_t n_children)
{
    for (uint32_t i = 0; i < n_children; i++)
        free(children[i].waiting);
    free(children);
}

/* A tree does not reach to other hosts. */
static bool link_is_sound(const struct emu_ce_end *e, const struct emu_ce_link *link)
{
    const struct emu_domain *domain = e->port->domain;
    uint32_t node = emu_domain_node_of(domain, link->nid);

    if (link->child_id >= EMU_CE_CHILDREN_MAX || node == EMU_NID_NONE ||
        emu_table_nodes(domain->table)[node].host != EMU_NODE_HERE)
        return false;
    return link->type == EMU_CE_LINK_LEAF ||
           (link->type == EMU_CE_LINK_ENGINE && link->ce_id < engines_per_node(e->port->server));
}

/* The staged children in the order of their ids. -EINVAL, -ENOMEM. */
static int make_children(const struct emu_ce_end *e, struct child **children_out)
{
    const struct emu_ce_link *at[EMU_CE_CHILDREN_MAX] = { NULL };
    struct child *children;
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->n_staged; i++) {
        const struct emu_ce_link *link = &e->staged[i];

        if (!link_is_sound(e, link) || at[link->child_id])
            return -EINVAL;
        at[link->child_id] = link;
    }
    children = calloc(e->n_staged, sizeof(*children));
    if (!children)
        return -ENOMEM;
    for (uint32_t id = 0; id < EMU_CE_CHILDREN_MAX; id++) {
        if (!at[id])
            continue;
        children[n].link = *at[id];
        if (at[id]->type == EMU_CE_LINK_LEAF) {
            children[n].waiting = calloc(EMU_CE_WAITING_MAX, sizeof(*children[n].waiting));
            if (!children[n].waiting) {
                free_children(children, n);
                return -ENOMEM;
            }
        }
        n++;
    }
    *children_out = children;
    return 0;
}

/* Ends what an engine is doing. Its tree is broken afterwards. */
static void stop(struct emu_ce_end *e, unsigned status)
{
    if (!e->is_configured)
        return;
    deliver(e);
    break_tree(e, status);
    fail_all(e);
}

/* Calls for a look at everybody who has a link to the engine. */
static void queue_those_who_name(struct emu_ce_end *e)
{
    struct emu_ce_end *other;

    LIST_FOREACH(other, &e->port->domain->ces, link) {
        if (has_link_to(other, e))
            queue(other);
    }
}

static int apply(struct emu_ce_end *e, const struct emu_msg_ce *msg)
{
    struct child *children;
    int r;

    if (e->n_staged == 0 || msg->rounding >= EMU_CE_ROUND_END ||
        (msg->cq != EMU_CQ_NONE && (msg->cq >= EMU_CQS_MAX || !e->port->cqs[msg->cq].in_use)) ||
        (msg->parent.type != EMU_CE_LINK_NONE &&
         (msg->parent.type != EMU_CE_LINK_ENGINE || !link_is_sound(e, &msg->parent))))
        return -EINVAL;
    r = make_children(e, &children);
    if (r < 0)
        return r;
    stop(e, EMU_STATUS_CANCELLED);
    free_children(e->children, e->n_children);
    e->children = children;
    e->n_children = e->n_staged;
    e->parent = msg->parent;
    e->cq = msg->cq;
    e->rounding = (enum emu_ce_rounding)msg->rounding;
    e->tells_always = (msg->flags & EMU_CE_ALWAYS) != 0;
    e->is_configured = true;
    e->is_wanted = false;
    e->broken = EMU_STATUS_OK;
    queue(e);
    queue_those_who_name(e);
    return 0;
}

static int configure(struct emu_ce_end *e, const struct emu_msg_ce *msg)
{
    int r = 0;

    if (msg->flags & EMU_CE_FIRST)
        e->n_staged = 0;
    if (msg->n_children > EMU_CE_CHILDREN_PER_MSG || e->n_staged + msg->n_children > EMU_CE_CHILDREN_MAX) {
        e->n_staged = 0;
        return -EINVAL;
    }
    for (uint32_t i = 0; i < msg->n_children; i++)
        e->staged[e->n_staged++] = msg->children[i];
    if (msg->flags & EMU_CE_LAST) {
        r = apply(e, msg);
        e->n_staged = 0;
    }
    return r;
}

/* ---- life ---- */

static int make_slots(struct emu_server *server)
{
    if (engines_per_node(server) == 0)
        return -EOPNOTSUPP;
    if (!server->engines)
        server->engines = calloc(server->n_nids, engines_per_node(server) * sizeof(*server->engines));
    return server->engines ? 0 : -ENOMEM;
}

static int create(struct emu_port_end *port, uint32_t *ce_id_out)
{
    struct emu_ce_end *e;
    uint32_t ce_id = 0;
    int r = make_slots(port->server);

    if (r < 0)
        return r;
    while (ce_id < engines_per_node(port->server) && *slot_of(port->server, port->nid, ce_id))
        ce_id++;
    if (ce_id == engines_per_node(port->server) ||
        emu_ce_in_use(port->domain, port->nid) >= port->domain->limits.ce)
        return -ENOSPC;
    e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    e->port = port;
    e->ce_id = ce_id;
    e->cq = EMU_CQ_NONE;
    *slot_of(port->server, port->nid, ce_id) = e;
    LIST_INSERT_HEAD(&port->domain->ces, e, link);
    *ce_id_out = ce_id;
    return 0;
}

static void destroy(struct emu_ce_end *e, unsigned status)
{
    struct emu_server *server = e->port->server;

    stop(e, status);
    /* Whoever waits for it one-sidedly finds that it is gone. */
    queue_those_who_name(e);
    if (e->is_queued)
        TAILQ_REMOVE(&server->ce_work, e, work_link);
    LIST_REMOVE(e, link);
    *slot_of(server, e->port->nid, e->ce_id) = NULL;
    free_children(e->children, e->n_children);
    free(e);
}

/* Programs know addresses, emunic nodes. An unknown one stays unknown. */
static void name_nodes(const struct emu_domain *domain, struct emu_msg_ce *msg)
{
    msg->parent.nid = emu_domain_nid_at(domain, msg->parent.nid);
    for (uint32_t i = 0; i < EMU_CE_CHILDREN_PER_MSG; i++)
        msg->children[i].nid = emu_domain_nid_at(domain, msg->children[i].nid);
}

int emu_ce_answer(struct emu_port_end *port, struct emu_msg *msg)
{
    struct emu_ce_end *e;

    if (msg->type == EMU_MSG_CE_CREATE)
        return create(port, &msg->ce.ce_id);
    e = find(port, port->nid, msg->ce.ce_id);
    if (!e || e->port != port)
        return -EINVAL;
    if (msg->type == EMU_MSG_CE_CONFIGURE) {
        name_nodes(port->domain, &msg->ce);
        return configure(e, &msg->ce);
    }
    destroy(e, EMU_STATUS_CANCELLED);
    return 0;
}

static bool has_twin(const struct emu_port_end *port)
{
    const struct emu_member *member;
    const struct emu_port_end *other;

    LIST_FOREACH(member, &port->domain->members, link) {
        LIST_FOREACH(other, &member->ports, member_link) {
            if (other != port && other->nid == port->nid && other->instance_id == port->instance_id)
                return true;
        }
    }
    return false;
}

/* Does the engine count on the port, which is going? */
static bool loses(const struct emu_ce_end *e, const struct emu_port_end *port, bool port_has_twin)
{
    for (uint32_t i = 0; i < e->n_children; i++) {
        const struct child *c = &e->children[i];

        if (c->link.type != EMU_CE_LINK_LEAF || c->link.nid != port->nid)
            continue;
        if (c->link.instance_id == port->instance_id && !port_has_twin)
            return true;
        for (uint32_t k = 0; k < c->n_waiting; k++) {
            if (poster_of(e, &c->waiting[(c->first + k) % EMU_CE_WAITING_MAX]) == port)
                return true;
        }
    }
    return false;
}

void emu_ce_drop_port(struct emu_port_end *port)
{
    struct emu_ce_end *e = LIST_FIRST(&port->domain->ces);
    bool port_has_twin = e && has_twin(port);

    while (e) {
        struct emu_ce_end *next = LIST_NEXT(e, link);

        if (e->port == port)
            destroy(e, EMU_STATUS_PEER_GONE);
        else if (e->is_configured && !e->broken && loses(e, port, port_has_twin))
            break_tree(e, EMU_STATUS_PEER_GONE);
        e = next;
    }
}

void emu_ce_drop_cq(struct emu_port_end *port, uint32_t cq)
{
    struct emu_ce_end *e;

    LIST_FOREACH(e, &port->domain->ces, link) {
        if (e->port == port && e->cq == cq)
            e->cq = EMU_CQ_NONE;
    }
}

uint32_t emu_ce_in_use(const struct emu_domain *domain, uint32_t nid)
{
    const struct emu_ce_end *e;
    uint32_t n = 0;

    LIST_FOREACH(e, &domain->ces, link)
        n += e->port->nid == nid;
    return n;
}
