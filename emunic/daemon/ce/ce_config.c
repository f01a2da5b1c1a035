/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engines from their making to their end.
 *
 *   created -> configured, as often as wanted -> destroyed, or gone with its port
 *
 * On a machine of several hosts a request is answered when all other hosts know what it has changed: then whoever hears
 * of the answer, by whatever way, finds the engine as it is. An engine that is in doubt (ce_trees.c) when it is to
 * leave, or to be configured anew, stays as it is until it knows what became of its round, so that its leaves get their
 * results.
 */
#include "emunic/daemon/ce/ce_trees.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/abi/event.h"
#include "emunic/daemon/ce/ce_hosts.h"
#include "emunic/daemon/ce/ce_inner.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/peers/sessions.h"

/* Outcomes of a part of a configuration. */
#define MORE  1 /* it is not the last one */
#define LATER 2 /* something else has to be known before */

/* ---- configuration ---- */

void emu_ce_free_children(struct emu_ce_child *children, uint32_t n_children)
{
    for (uint32_t i = 0; i < n_children; i++)
        free(children[i].waiting);
    free(children);
}

static bool link_is_sound(const struct emu_ce_end *e, const struct emu_ce_link *link)
{
    if (link->child_id >= EMU_CE_CHILDREN_MAX || emu_domain_node_of(e->domain, link->nid) == EMU_NID_NONE)
        return false;
    return link->type == EMU_CE_LINK_LEAF ||
           (link->type == EMU_CE_LINK_ENGINE && link->ce_id < emu_ce_per_node(e->server));
}

/* The staged children in the order of their ids. -EINVAL, -ENOMEM. */
static int make_children(const struct emu_ce_end *e, struct emu_ce_child **children_out)
{
    const struct emu_ce_link *at[EMU_CE_CHILDREN_MAX] = { NULL };
    struct emu_ce_child *children;
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->staging.n; i++) {
        const struct emu_ce_link *link = &e->staging.links[i];

        if (!link_is_sound(e, link) || at[link->child_id])
            return -EINVAL;
        at[link->child_id] = link;
    }
    children = calloc(e->staging.n, sizeof(*children));
    if (!children)
        return -ENOMEM;
    for (uint32_t id = 0; id < EMU_CE_CHILDREN_MAX; id++) {
        if (!at[id])
            continue;
        children[n].link = *at[id];
        if (at[id]->type == EMU_CE_LINK_LEAF) {
            children[n].waiting = calloc(EMU_CE_WAITING_MAX, sizeof(*children[n].waiting));
            if (!children[n].waiting) {
                emu_ce_free_children(children, n);
                return -ENOMEM;
            }
        }
        n++;
    }
    *children_out = children;
    return 0;
}

/* Its tree is broken afterwards. */
static void break_off(struct emu_ce_end *e, unsigned status)
{
    if (!e->is_configured)
        return;
    emu_ce_trip_ended(e);
    emu_ce_deliver(e);
    emu_ce_break_tree(e, status);
}

static void free_plan(struct emu_ce_plan *plan)
{
    if (plan)
        emu_ce_free_children(plan->children, plan->n_children);
    free(plan);
}

/* What has been staged. -EINVAL, -ENOMEM. */
static int make_plan(const struct emu_ce_end *e, const struct emu_msg_ce *msg, struct emu_ce_plan **plan_out)
{
    struct emu_ce_plan *plan;
    int r;

    if (e->staging.n == 0 || msg->rounding >= EMU_CE_ROUND_END ||
        (msg->cq != EMU_CQ_NONE && (msg->cq >= EMU_CQS_MAX || !e->port->queues.cqs[msg->cq].in_use)) ||
        (msg->parent.type != EMU_CE_LINK_NONE &&
         (msg->parent.type != EMU_CE_LINK_ENGINE || !link_is_sound(e, &msg->parent))))
        return -EINVAL;
    plan = calloc(1, sizeof(*plan));
    if (!plan)
        return -ENOMEM;
    r = make_children(e, &plan->children);
    if (r < 0) {
        free(plan);
        return r;
    }
    plan->n_children = e->staging.n;
    plan->parent = msg->parent;
    plan->cq = msg->cq;
    plan->rounding = (enum emu_ce_rounding)msg->rounding;
    plan->tells_always = (msg->flags & EMU_CE_ALWAYS) != 0;
    *plan_out = plan;
    return 0;
}

/* It is what it was to become. */
static void carry_out(struct emu_ce_end *e)
{
    struct emu_ce_plan *plan = e->plan;

    emu_ce_free_children(e->shape.children, e->shape.n_children);
    e->shape.children = plan->children;
    e->shape.n_children = plan->n_children;
    e->shape.parent = plan->parent;
    e->shape.cq = plan->cq;
    e->shape.rounding = plan->rounding;
    e->shape.tells_always = plan->tells_always;
    e->plan = NULL;
    free(plan);
    e->is_configured = true;
    e->is_wanted = false;
    e->broken = EMU_STATUS_OK;
    e->version = ++emu_ce_engines_of(e->server)->last_version;
    emu_ce_queue(e);
    emu_ce_queue_those_who_name(e);
}

static int apply(struct emu_ce_end *e, const struct emu_msg_ce *msg)
{
    int r = make_plan(e, msg, &e->plan);

    if (r < 0)
        return r;
    break_off(e, EMU_STATUS_CANCELLED);
    if (emu_ce_is_in_doubt(e))
        return LATER;
    if (e->is_configured)
        emu_ce_end_broken(e);
    carry_out(e);
    return 0;
}

static int configure(struct emu_ce_end *e, const struct emu_msg_ce *msg)
{
    int r = MORE;

    if (msg->flags & EMU_CE_FIRST)
        e->staging.n = 0;
    if (msg->n_children > EMU_CE_CHILDREN_PER_MSG || e->staging.n + msg->n_children > EMU_CE_CHILDREN_MAX) {
        e->staging.n = 0;
        return -EINVAL;
    }
    for (uint32_t i = 0; i < msg->n_children; i++)
        e->staging.links[e->staging.n++] = msg->children[i];
    if (msg->flags & EMU_CE_LAST) {
        r = apply(e, msg);
        e->staging.n = 0;
    }
    return r;
}

/* ---- life ---- */

static struct emu_ce_end **slot_of(struct emu_server *server, uint32_t nid, uint32_t ce_id)
{
    return &emu_ce_engines_of(server)->at[(size_t)nid * emu_ce_per_node(server) + ce_id];
}

static int make_slots(struct emu_server *server)
{
    if (emu_ce_per_node(server) == 0)
        return -EOPNOTSUPP;
    if (!emu_ce_engines_of(server)->at)
        emu_ce_engines_of(server)->at =
            calloc(server->n_nids, emu_ce_per_node(server) * sizeof(*emu_ce_engines_of(server)->at));
    return emu_ce_engines_of(server)->at ? 0 : -ENOMEM;
}

static int create(struct emu_port_end *port, struct emu_ce_end **e_out)
{
    struct emu_server *server = port->server;
    struct emu_ce_end *e;
    uint32_t ce_id = 0;
    int r = make_slots(server);

    if (r < 0)
        return r;
    while (ce_id < emu_ce_per_node(server) && *slot_of(server, port->nid, ce_id))
        ce_id++;
    if (ce_id == emu_ce_per_node(server) || emu_ce_in_use(port->domain, port->nid) >= port->domain->budget.limits.ce)
        return -ENOSPC;
    e = calloc(1, sizeof(*e));
    if (!e)
        return -ENOMEM;
    e->server = server;
    e->domain = port->domain;
    e->port = port;
    e->nid = port->nid;
    e->host = emu_hosts_own(server);
    e->ce_id = ce_id;
    e->shape.cq = EMU_CQ_NONE;
    e->version = ++emu_ce_engines_of(server)->last_version;
    *slot_of(server, port->nid, ce_id) = e;
    LIST_INSERT_HEAD(&emu_ce_domain_of(port->domain)->engines, e, link);
    *e_out = e;
    return 0;
}

void emu_ce_remove(struct emu_ce_end *e)
{
    struct emu_ce_wait *wait = e->wait;

    emu_ce_forget_trip(e);
    /* Whoever waits for it one-sidedly finds that it is gone. */
    emu_ce_queue_those_who_name(e);
    if (e->is_queued)
        TAILQ_REMOVE(&emu_ce_engines_of(e->server)->work, e, work_link);
    LIST_REMOVE(e, link);
    *slot_of(e->server, e->nid, e->ce_id) = NULL;
    emu_ce_announce(e, EMU_HOST_CE_GONE, wait);
    emu_ce_free_children(e->shape.children, e->shape.n_children);
    free_plan(e->plan);
    free(e);
    emu_ce_wait_check(wait);
}

/* Until emu_ce_end_doubt(). */
static void hold(struct emu_ce_end *e, struct emu_ce_wait *wait)
{
    e->wait = wait;
    emu_ce_wait_hold(wait);
}

void emu_ce_end_doubt(struct emu_ce_end *e)
{
    struct emu_ce_wait *wait = e->wait;

    emu_ce_end_broken(e);
    if (e->is_leaving) {
        emu_ce_remove(e);
    } else if (e->plan) {
        e->wait = NULL;
        carry_out(e);
        emu_ce_announce(e, EMU_HOST_CE_STATE, wait);
        emu_ce_wait_check(wait);
    }
}

static void destroy(struct emu_ce_end *e, unsigned status, struct emu_ce_wait *wait)
{
    e->is_leaving = true;
    emu_ce_wait_check(e->wait); /* its port goes, and nobody waits for the plan any more */
    e->wait = NULL;
    break_off(e, status);
    if (emu_ce_is_in_doubt(e)) {
        hold(e, wait);
        return;
    }
    e->wait = wait;
    if (e->is_configured)
        emu_ce_end_broken(e);
    emu_ce_remove(e);
}

/* Programs know addresses, emunic nodes. An unknown one stays unknown. */
static void name_nodes(const struct emu_domain *domain, struct emu_msg_ce *msg)
{
    msg->parent.nid = emu_domain_nid_at(domain, msg->parent.nid);
    for (uint32_t i = 0; i < EMU_CE_CHILDREN_PER_MSG; i++)
        msg->children[i].nid = emu_domain_nid_at(domain, msg->children[i].nid);
}

/* The engine that a request is about. */
static int answer(struct emu_port_end *port, struct emu_msg *msg, struct emu_ce_wait *wait)
{
    struct emu_ce_end *e;
    int r = 0;

    if (msg->type == EMU_MSG_CE_CREATE) {
        r = create(port, &e);
        if (r < 0)
            return r;
        msg->ce.ce_id = e->ce_id;
    } else {
        e = emu_ce_find(port->server, port->domain, port->nid, msg->ce.ce_id);
        if (!e || e->port != port || e->is_leaving || e->plan)
            return -EINVAL;
    }
    if (msg->type == EMU_MSG_CE_CONFIGURE) {
        name_nodes(port->domain, &msg->ce);
        r = configure(e, &msg->ce);
    }
    if (msg->type == EMU_MSG_CE_DESTROY)
        destroy(e, EMU_STATUS_CANCELLED, wait);
    else if (r == 0)
        emu_ce_announce(e, EMU_HOST_CE_STATE, wait);
    else if (r == LATER)
        hold(e, wait);
    return r < 0 ? r : 0;
}

int emu_ce_answer(struct emu_request *request)
{
    struct emu_port_end *port = request->port;
    struct emu_msg *msg = request->msg;
    struct emu_ce_wait *wait;
    int r;

    if (!emu_ce_spreads(port->server, port->domain))
        return answer(port, msg, NULL);
    wait = emu_ce_wait_create(port->connection);
    if (!wait)
        return -ENOMEM;
    r = answer(port, msg, wait);
    return emu_ce_wait_begin(wait, msg, r);
}

void emu_ce_drop_port(struct emu_port_end *port)
{
    struct emu_ce_end *e = LIST_FIRST(&emu_ce_domain_of(port->domain)->engines);

    if (emu_ce_port_of(port))
        emu_ce_drop_posts(port);
    emu_ce_trips_leave(port);
    while (e) {
        struct emu_ce_end *next = LIST_NEXT(e, link);

        if (e->port == port && !e->is_leaving)
            destroy(e, EMU_STATUS_PEER_GONE, NULL);
        e = next;
    }
    /* Of those that are still in doubt. */
    LIST_FOREACH(e, &emu_ce_domain_of(port->domain)->engines, link) {
        if (e->port == port)
            e->port = NULL;
    }
    emu_ce_drop_leaf(port);
}

void emu_ce_drop_cq(struct emu_port_end *port, uint32_t cq)
{
    struct emu_ce_end *e;

    LIST_FOREACH(e, &emu_ce_domain_of(port->domain)->engines, link) {
        if (e->port == port && e->shape.cq == cq)
            e->shape.cq = EMU_CQ_NONE;
    }
}
