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
 * Engines of other hosts are known here by what their hosts tell (ce_hosts.c); a walk that comes to one sends it on.
 * Then a round can be decided while news of a break is on its way to where it is decided. So a broken engine that has
 * handed its round up to another host is *in doubt*: it takes nothing new, but fails the round only when that host
 * says that its parent is broken, too, and delivers it when the result comes.
 *
 * Contribution, partial results and results count as puts of one result's size.
 * Source: spec/ugni.md 2.16, 4.12; spec/machines.md 2.3 (4 engines per NIC, 32 children, no host progress).
 */
#include "emunic/daemon/ce/ce_trees.h"

#include <stdio.h>

#include "emunic/abi/event.h"
#include "emunic/base/log.h"
#include "emunic/daemon/ce/ce_inner.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/engine/ce_arithmetic.h"
#include "emunic/engine/completion_queue.h"

#define LOOKS_PER_ROUND 64u

/* ---- finding ---- */

uint32_t emu_ce_per_node(const struct emu_server *server)
{
    return emu_machine_nic(server->machine)->ce_engines;
}

struct emu_ce_end *emu_ce_find(struct emu_server *server, const struct emu_domain *domain, uint32_t nid, uint32_t ce_id)
{
    uint32_t per_node = emu_ce_per_node(server);
    struct emu_ce_end *e = NULL;
    uint32_t node;

    if (nid >= server->n_nids || ce_id >= per_node)
        return NULL;
    if (emu_ce_host_of(server, domain, nid) != emu_hosts_own(server)) {
        node = emu_domain_node_of(domain, nid);
        return emu_ce_domain_of(domain)->far ? emu_ce_domain_of(domain)->far[(size_t)node * per_node + ce_id] : NULL;
    }
    if (emu_ce_engines_of(server)->at)
        e = emu_ce_engines_of(server)->at[(size_t)nid * per_node + ce_id];
    return e && e->domain == domain ? e : NULL;
}

static struct emu_ce_end *at_link(const struct emu_ce_end *e, const struct emu_ce_link *link)
{
    return link->type == EMU_CE_LINK_ENGINE ? emu_ce_find(e->server, e->domain, link->nid, link->ce_id) : NULL;
}

struct emu_ce_child *emu_ce_child_of(const struct emu_ce_end *e, uint8_t child_id)
{
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        if (e->shape.children[i].link.child_id == child_id)
            return &e->shape.children[i];
    }
    return NULL;
}

bool emu_ce_is_child_of(const struct emu_ce_end *e, const struct emu_ce_end *parent)
{
    const struct emu_ce_child *c = emu_ce_child_of(parent, e->shape.parent.child_id);

    return emu_ce_names(&e->shape.parent, parent) && c && emu_ce_names(&c->link, e);
}

bool emu_ce_has_link_to(const struct emu_ce_end *e, const struct emu_ce_end *other)
{
    bool has = e->is_configured && emu_ce_names(&e->shape.parent, other);

    for (uint32_t i = 0; e->is_configured && i < e->shape.n_children && !has; i++)
        has = emu_ce_names(&e->shape.children[i].link, other);
    return has;
}

/* The engine at the other end of a link, if it is in working order. NULL with 0: not yet; with a status: never. */
static struct emu_ce_end *other_end(const struct emu_ce_end *e, const struct emu_ce_link *link, unsigned *status_out)
{
    struct emu_ce_end *other = at_link(e, link);

    *status_out = EMU_STATUS_OK;
    if (!other) {
        bool is_up = emu_hosts_is_up(e->server, emu_ce_host_of(e->server, e->domain, link->nid));

        *status_out = is_up ? EMU_STATUS_PEER_GONE : EMU_STATUS_NETWORK;
    } else if (!other->is_configured || other->broken) {
        other = NULL;
    } else if (!emu_ce_is_child_of(link == &e->shape.parent ? e : other, link == &e->shape.parent ? other : e)) {
        *status_out = EMU_STATUS_MISMATCH;
        other = NULL;
    }
    return other;
}

void emu_ce_queue(struct emu_ce_end *e)
{
    if (e->is_queued)
        return;
    e->is_queued = true;
    TAILQ_INSERT_TAIL(&emu_ce_engines_of(e->server)->work, e, work_link);
}

void emu_ce_queue_those_who_name(const struct emu_ce_end *e)
{
    struct emu_ce_end *other;

    LIST_FOREACH(other, &emu_ce_domain_of(e->domain)->engines, link) {
        if (emu_ce_has_link_to(other, e))
            emu_ce_queue(other);
    }
}

void emu_ce_queue_broken(const struct emu_domain *domain)
{
    struct emu_ce_end *e;

    LIST_FOREACH(e, &emu_ce_domain_of(domain)->engines, link) {
        if (e->broken)
            emu_ce_queue(e);
    }
}

/* ---- what people are told ---- */

void emu_ce_describe_child(const struct emu_ce_child *c, char text[EMU_CE_CHILD_TEXT])
{
    if (!c)
        snprintf(text, EMU_CE_CHILD_TEXT, "nobody");
    else if (c->link.type == EMU_CE_LINK_ENGINE)
        snprintf(text, EMU_CE_CHILD_TEXT, "engine %u of nid %u", c->link.ce_id, c->link.nid);
    else if (c->leaf.pid != 0)
        snprintf(text, EMU_CE_CHILD_TEXT, "nid %u inst 0x%x pid %u", c->leaf.nid, c->leaf.instance_id, c->leaf.pid);
    else
        snprintf(text, EMU_CE_CHILD_TEXT, "a leaf on nid %u", c->link.nid);
}

static void describe_value(const struct emu_ce_value *v, char text[EMU_CE_CHILD_TEXT])
{
    static const char *const names[EMU_CE_OP_END] = {
        "none", "and", "or", "xor", "iadd", "fpadd", "imin", "imax", "fpmin", "fpmax",
    };

    snprintf(text, EMU_CE_CHILD_TEXT, "%s%s%s, id %llu", names[v->op], (v->flags & EMU_CE_32BIT) ? "_s" : "",
             (v->flags & EMU_CE_TWO_OP)   ? " of two operands" :
             (v->flags & EMU_CE_GREATEST) ? " with the greatest index" :
                                            "",
             (unsigned long long)v->red_id);
}

/* Two children of an engine that want different things. */
static void tell_difference(const struct emu_ce_end *e, const struct emu_ce_child *a, const struct emu_ce_value *of_a,
                            const struct emu_ce_child *b, const struct emu_ce_value *of_b)
{
    char texts[4][EMU_CE_CHILD_TEXT];

    emu_ce_describe_child(a, texts[0]);
    describe_value(of_a, texts[1]);
    emu_ce_describe_child(b, texts[2]);
    describe_value(of_b, texts[3]);
    emu_log_limited(&e->server->rate, EMU_LOG_WARN,
                    "reduction at engine %u of nid %u: child %u, %s, posts %s; child %u, %s, posts %s", e->ce_id,
                    e->nid, a->link.child_id, texts[0], texts[1], b->link.child_id, texts[2], texts[3]);
}

static void tell_wrong_link(const struct emu_ce_end *e, const struct emu_ce_link *link)
{
    const char *format =
        link == &e->shape.parent ?
            "reduction at engine %u of nid %u: it is configured as child %u of engine %u of nid %u, which does not "
            "say so" :
            "reduction at engine %u of nid %u: its child %u is engine %u of nid %u, which is configured otherwise";
    char line[192];

    snprintf(line, sizeof(line), format, e->ce_id, e->nid, link->child_id, link->ce_id, link->nid);
    emu_log_limited(&e->server->rate, EMU_LOG_WARN, "%s", line);
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

/* Each engine has one parent, so the walk meets it once. Broken ones that have handed this round up are in doubt. */
void emu_ce_decide(struct emu_ce_end *top, const struct emu_ce_value *result)
{
    struct walk w = { NULL };
    struct emu_ce_end *e;

    push(&w, top);
    while ((e = pop(&w))) {
        e->has_down = true;
        e->told.is_down_late = e != top && emu_server_is_virtual(e->server);
        e->down = *result;
        emu_ce_queue(e);
        for (uint32_t i = 0; i < e->shape.n_children; i++) {
            struct emu_ce_end *below = at_link(e, &e->shape.children[i].link);

            if (!below || !below->has_up || below->has_down || !emu_ce_is_child_of(below, e))
                continue;
            if (below->is_far) {
                below->has_up = below->is_wanted = false;
                emu_ce_tell_neighbour(e, below, EMU_HOST_CE_DOWN, result);
            } else {
                push(&w, below);
            }
        }
    }
}

/* Whom of its children on other hosts a broken engine has to tell, as they are now. */
static void note_far_children(struct emu_ce_end *e)
{
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        const struct emu_ce_end *below = at_link(e, &e->shape.children[i].link);
        bool is_told = below && below->is_far && emu_ce_is_child_of(below, e);

        e->shape.children[i].told_version = is_told ? below->version : 0;
    }
}

static void break_one(struct walk *w, struct emu_ce_end *e, unsigned status)
{
    if (!e || e->is_far || !e->is_configured || e->broken)
        return;
    emu_ce_trip_ended(e);
    e->broken = status;
    note_far_children(e);
    emu_ce_queue(e);
    push(w, e);
}

/* Children on other hosts are told when it is clear what becomes of the round. */
void emu_ce_break_tree(struct emu_ce_end *start, unsigned cause)
{
    struct walk w = { NULL };
    struct emu_ce_end *e;
    unsigned status;

    break_one(&w, start, cause);
    while ((e = pop(&w))) {
        struct emu_ce_end *above = at_link(e, &e->shape.parent);

        if (above && emu_ce_is_child_of(e, above)) {
            if (above->is_far)
                emu_ce_tell_broken(e, &e->shape.parent, above->version);
            else
                break_one(&w, above, cause);
        }
        for (uint32_t i = 0; i < e->shape.n_children; i++) {
            if (e->shape.children[i].link.type == EMU_CE_LINK_ENGINE)
                break_one(&w, other_end(e, &e->shape.children[i].link, &status), cause);
        }
    }
}

bool emu_ce_is_in_doubt(const struct emu_ce_end *e)
{
    while (e->has_up && !e->has_down) {
        const struct emu_ce_end *above = at_link(e, &e->shape.parent);

        if (!above || !emu_ce_is_child_of(e, above))
            return false;
        if (above->is_far)
            return e->told.up == above->version;
        e = above;
    }
    return false;
}

/* ---- results ---- */

/* Counts one packet from an engine to a node. */
static void count(const struct emu_ce_end *e, uint32_t nid)
{
    if (e->port)
        emu_flow_add_put(&e->port->view.flows[emu_domain_node_of(e->domain, nid)], &e->domain->table->format,
                         sizeof(struct emu_ce_result));
}

static void answer_oldest(struct emu_ce_end *e, struct emu_ce_child *c, const struct emu_ce_value *result)
{
    if (emu_ce_answer_oldest(e, c, result))
        count(e, c->link.nid);
}

/* The engine's own entry. */
static void tell_owner(const struct emu_ce_end *e, uint64_t red_id, unsigned status)
{
    struct emu_cq_end *cq = e->port && e->shape.cq < EMU_CQS_MAX ? &e->port->queues.cqs[e->shape.cq] : NULL;
    uint64_t event = emu_event_make(0, EMU_SOURCE_CE, emu_ce_event_data(e->ce_id, red_id));

    if (cq && cq->in_use && (e->shape.tells_always || status != EMU_STATUS_OK))
        emu_cq_push_all(&cq->producer, emu_event_with_status(event, status));
}

static void end_round(struct emu_ce_end *e)
{
    e->has_down = false;
    e->has_up = false;
    e->told.is_up_late = e->told.is_down_late = false;
    e->told.up = 0;
}

/* In virtual time the engine below goes on when it hears of it. */
static void tell_below(struct emu_ce_end *e, const struct emu_ce_child *c)
{
    struct emu_ce_end *below = at_link(e, &c->link);

    if (below && below->told.is_down_late && !below->told.trip && emu_ce_is_child_of(below, e) &&
        !emu_ce_send_down(e, below))
        emu_ce_trip_ended(below);
}

void emu_ce_trip_ended(struct emu_ce_end *e)
{
    emu_ce_forget_trip(e);
    if (!e->told.is_up_late && !e->told.is_down_late)
        return;
    e->told.is_up_late = e->told.is_down_late = false;
    emu_ce_queue(e);
}

void emu_ce_deliver(struct emu_ce_end *e)
{
    if (!e->has_down || e->told.is_down_late)
        return;
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        struct emu_ce_child *c = &e->shape.children[i];

        if (c->link.type == EMU_CE_LINK_LEAF && c->n_waiting > 0)
            answer_oldest(e, c, &e->down);
        else
            count(e, c->link.nid);
        tell_below(e, c);
    }
    tell_owner(e, e->down.red_id, e->down.status);
    end_round(e);
    e->is_wanted = false;
}

/* Everything that waits in a broken engine. */
static void fail_all(struct emu_ce_end *e)
{
    struct emu_ce_value failed = { .status = (uint8_t)e->broken, .red_id = e->up.red_id };
    bool was_busy = e->has_up;

    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        struct emu_ce_child *c = &e->shape.children[i];

        if (c->n_waiting > 0 && !was_busy) {
            failed.red_id = c->waiting[c->first].value.red_id;
            was_busy = true;
        }
        while (c->n_waiting > 0)
            answer_oldest(e, c, &failed);
    }
    end_round(e);
    if (was_busy)
        tell_owner(e, failed.red_id, e->broken);
}

void emu_ce_end_broken(struct emu_ce_end *e)
{
    fail_all(e);
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        struct emu_ce_child *c = &e->shape.children[i];

        if (c->told_version != 0)
            emu_ce_tell_broken(e, &c->link, c->told_version);
        c->told_version = 0;
    }
}

/* ---- rounds ---- */

/* What a child has for this round, or NULL. */
static const struct emu_ce_value *offer_of(const struct emu_ce_end *e, const struct emu_ce_child *c)
{
    const struct emu_ce_end *below;
    unsigned status;

    if (c->link.type == EMU_CE_LINK_LEAF)
        return c->n_waiting > 0 ? &c->waiting[c->first].value : NULL;
    below = other_end(e, &c->link, &status);
    return below && below->has_up && !below->told.is_up_late && !below->has_down ? &below->up : NULL;
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
    if (status == EMU_STATUS_MISMATCH)
        tell_wrong_link(e, link);
    emu_ce_break_tree(e, status);
    other = at_link(e, link);
    if (other && emu_ce_has_link_to(other, e)) {
        if (other->is_far)
            emu_ce_tell_broken(e, link, other->version);
        else
            emu_ce_break_tree(other, status);
    }
    return false;
}

static bool links_are_good(struct emu_ce_end *e)
{
    bool are_good = link_is_good(e, &e->shape.parent);

    for (uint32_t i = 0; i < e->shape.n_children && are_good; i++)
        are_good = link_is_good(e, &e->shape.children[i].link);
    return are_good;
}

/* Is anything of this round here, or waited for above? */
static bool is_busy(const struct emu_ce_end *e)
{
    bool is = e->has_up || e->is_wanted;

    for (uint32_t i = 0; i < e->shape.n_children && !is; i++)
        is = offer_of(e, &e->shape.children[i]);
    return is;
}

/* Has the engines below see to it that what is missing can come. */
static void want_the_rest(struct emu_ce_end *e)
{
    unsigned status;

    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        struct emu_ce_child *c = &e->shape.children[i];
        struct emu_ce_end *below = NULL;

        if (c->link.type == EMU_CE_LINK_ENGINE && !offer_of(e, c))
            below = other_end(e, &c->link, &status);
        if (!below || below->is_wanted)
            continue;
        below->is_wanted = true;
        if (below->is_far)
            emu_ce_tell_neighbour(e, below, EMU_HOST_CE_WANT, NULL);
        else
            emu_ce_queue(below);
    }
}

static void add_offer(const struct emu_ce_end *e, const struct emu_ce_child *c, struct emu_ce_value *sum)
{
    const struct emu_ce_value *offer = offer_of(e, c);
    bool was_good = sum->status == EMU_STATUS_OK;

    emu_ce_combine(sum, offer, e->shape.rounding);
    if (was_good && sum->status == EMU_STATUS_MISMATCH && offer->status == EMU_STATUS_OK)
        tell_difference(e, &e->shape.children[0], sum, c, offer);
}

static bool collect(const struct emu_ce_end *e, struct emu_ce_value *sum_out)
{
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        if (!offer_of(e, &e->shape.children[i]))
            return false;
    }
    *sum_out = *offer_of(e, &e->shape.children[0]);
    for (uint32_t i = 1; i < e->shape.n_children; i++)
        add_offer(e, &e->shape.children[i], sum_out);
    return true;
}

/* The parent, if it is ready, has something to look at. */
static void hand_up(struct emu_ce_end *e)
{
    unsigned status;
    struct emu_ce_end *above = other_end(e, &e->shape.parent, &status);

    if (!above)
        return;
    if (!above->is_far) {
        emu_ce_queue(above);
    } else if (e->told.up != above->version) {
        e->told.up = above->version;
        emu_ce_tell_neighbour(e, above, EMU_HOST_CE_UP, &e->up);
    }
}

static void look(struct emu_ce_end *e)
{
    struct emu_ce_value sum;

    if (!e->is_configured)
        return;
    emu_ce_deliver(e);
    if (e->broken) {
        if (!emu_ce_is_in_doubt(e))
            emu_ce_end_doubt(e);
        return;
    }
    if (!is_busy(e) || !links_are_good(e))
        return;
    if (!e->has_up) {
        if (!collect(e, &sum)) {
            want_the_rest(e);
            return;
        }
        if (e->shape.parent.type == EMU_CE_LINK_NONE) {
            emu_ce_decide(e, &sum);
            return;
        }
        e->up = sum;
        e->has_up = true;
        count(e, e->shape.parent.nid);
        e->told.is_up_late = emu_ce_send_up(e);
    }
    if (!e->told.is_up_late)
        hand_up(e);
}

/* Engines of a suspended job wait in the queue. */
static struct emu_ce_end *first_that_runs(const struct emu_server *server)
{
    struct emu_ce_end *e;

    TAILQ_FOREACH(e, &emu_ce_engines_of(server)->work, work_link) {
        if (e->domain->job.suspension == EMU_RUNS)
            return e;
    }
    return NULL;
}

unsigned emu_ce_round(struct emu_server *server)
{
    struct emu_ce_end *e;
    unsigned done = 0;

    while (done < LOOKS_PER_ROUND && (e = first_that_runs(server))) {
        TAILQ_REMOVE(&emu_ce_engines_of(server)->work, e, work_link);
        e->is_queued = false;
        look(e);
        done++;
    }
    return done;
}

bool emu_ce_has_work(struct emu_server *server)
{
    return first_that_runs(server);
}

uint32_t emu_ce_in_use(const struct emu_domain *domain, uint32_t nid)
{
    const struct emu_ce_end *e;
    uint32_t n = 0;

    LIST_FOREACH(e, &emu_ce_domain_of(domain)->engines, link)
        n += e->nid == nid;
    return n;
}
