/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction trees over several hosts.
 *
 * An engine is its host's alone. The others keep an image of each: whether it is configured or broken, the version of
 * its configuration, and its links to engines; so they can tell whether two engines name each other. Its host tells all
 * others of every change (STATE, GONE), and the request that brings the change is answered when they have said that
 * they know (KNOWN). What a program has configured is thus known everywhere before anybody can act on it, and an engine
 * of which there is no image is none. A port of another host that has gone before that host knew of the configuration
 * is none of its leaves; its successor, of the same instance, may be.
 *
 *   child's host  -- UP ------>  parent's host        partial result; kept in the child's image
 *                <------ DOWN --                      the result, when the root has decided
 *                <------ WANT --                      the parent waits: see whether your tree can still do it
 *                -- BROKEN -->  <-- BROKEN --         the tree is broken
 *   leaf's host   -- POST ---->  engine's host        a contribution
 *                <----- TAKEN --                      it waits now, or why not
 *                <---- RESULT --                      to be written into the leaf's memory
 *   any           -- LEFT ---->  all                  a port has gone: trees that it is a leaf of are broken
 *
 * Messages name the versions of both engines; what was meant for an earlier configuration is dropped. That loses
 * nothing: who configures an engine anew breaks its tree before, and says so first.
 *
 * A break starts where something goes wrong and walks through the tree, up before down: an engine that has handed its
 * round up does not know whether the root has decided it. It tells its parent and waits for the parent's BROKEN, or for
 * the result, which comes first if there is one, because messages stay in order (emu_ce_is_in_doubt()). So a reduction
 * succeeds for all leaves or fails for all, except where a host is lost: then its engines and leaves count as gone
 * (status "network"), as do, there, those of all others.
 *
 * A host that makes a domain, or learns a new number for it, has missed what was told of it, and says so (BEGIN): it
 * counts as lost for that domain, and is told of all engines.
 */
#include "emunic/daemon/ce/ce_hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/ce/ce_inner.h"
#include "emunic/daemon/peers/sessions.h"

/* ---- life ---- */

int emu_ce_hosts_create(struct emu_server *server)
{
    struct emu_ce_hosts *hosts = calloc(1, sizeof(*hosts));

    if (!hosts)
        return -ENOMEM;
    server->slots[EMU_SERVER_CE_HOSTS] = hosts;
    LIST_INIT(&emu_ce_hosts_of(server)->waits);
    return 0;
}

void emu_ce_hosts_destroy(struct emu_server *server)
{
    if (!emu_ce_hosts_of(server))
        return;
    emu_ce_waits_fini(emu_ce_hosts_of(server));
    emu_numbers_fini(&emu_ce_hosts_of(server)->posts);
    free(emu_ce_hosts_of(server));
    server->slots[EMU_SERVER_CE_HOSTS] = NULL;
}

bool emu_ce_spreads(const struct emu_server *server, const struct emu_domain *domain)
{
    return emu_ce_hosts_of(server) && emu_ce_domain_of(domain)->n_hosts > 0;
}

uint32_t emu_ce_host_of(const struct emu_server *server, const struct emu_domain *domain, uint32_t nid)
{
    uint32_t node = emu_ce_hosts_of(server) ? emu_domain_node_of(domain, nid) : EMU_NID_NONE;

    return node == EMU_NID_NONE ? emu_hosts_own(server) : emu_hosts_of_node(domain, node);
}

/* ---- telling ---- */

static void put_list(uint8_t *at, const struct emu_ce_end *e)
{
    if (e->shape.parent.type == EMU_CE_LINK_ENGINE)
        at = emu_host_ce_put_link(at, &e->shape.parent, true);
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        if (e->shape.children[i].link.type == EMU_CE_LINK_ENGINE)
            at = emu_host_ce_put_link(at, &e->shape.children[i].link, false);
    }
}

static uint32_t count_engines(const struct emu_ce_end *e)
{
    uint32_t n = e->shape.parent.type == EMU_CE_LINK_ENGINE;

    for (uint32_t i = 0; i < e->shape.n_children; i++)
        n += e->shape.children[i].link.type == EMU_CE_LINK_ENGINE;
    return n;
}

/* What must not be lost is taken however much there is; it is little. */
int emu_ce_send(struct emu_server *server, uint32_t host, uint32_t domain_number, const struct emu_host_ce *m)
{
    uint8_t message[EMU_HOST_CE_MAX];
    uint8_t *list = emu_host_ce_put(message, domain_number, m);
    uint32_t length_bytes = EMU_HOST_CE_BYTES + 8 * m->n;
    int r;

    if (m->n > 0)
        memcpy(list, m->list, 8 * m->n);
    r = emu_hosts_send(server, host, message, length_bytes);
    return r == -ENOBUFS || r == -ENOMEM ? emu_hosts_answer(server, host, message, length_bytes) : r;
}

static int tell(struct emu_server *server, const struct emu_domain *domain, uint32_t host, const struct emu_host_ce *m)
{
    return emu_ce_send(server, host, domain->common_number, m);
}

void emu_ce_tell(struct emu_server *server, const struct emu_domain *domain, uint32_t host, const struct emu_host_ce *m)
{
    tell(server, domain, host, m);
}

void emu_ce_tell_broken(const struct emu_ce_end *e, const struct emu_ce_link *to, uint64_t version)
{
    const struct emu_host_ce m = { .op = EMU_HOST_CE_BROKEN,
                                   .status = (uint8_t)e->broken,
                                   .from_nid = e->nid,
                                   .from_ce = (uint16_t)e->ce_id,
                                   .from_version = e->version,
                                   .to_nid = to->nid,
                                   .to_ce = to->ce_id,
                                   .to_version = version };

    tell(e->server, e->domain, emu_ce_host_of(e->server, e->domain, to->nid), &m);
}

void emu_ce_tell_neighbour(const struct emu_ce_end *e, const struct emu_ce_end *to, enum emu_host_ce_op op,
                           const struct emu_ce_value *value)
{
    struct emu_host_ce m = { .op = (uint8_t)op,
                             .from_nid = e->nid,
                             .from_ce = (uint16_t)e->ce_id,
                             .from_version = e->version,
                             .to_nid = to->nid,
                             .to_ce = (uint16_t)to->ce_id,
                             .to_version = to->version };

    if (value)
        m.value = *value;
    tell(e->server, e->domain, to->host, &m);
}

static int announce_to(const struct emu_ce_end *e, uint32_t host, enum emu_host_ce_op op, uint64_t number)
{
    uint8_t list[8 * (EMU_CE_CHILDREN_MAX + 1)];
    struct emu_host_ce m = { .op = (uint8_t)op,
                             .from_nid = e->nid,
                             .from_ce = (uint16_t)e->ce_id,
                             .from_version = e->version,
                             .number = number };

    if (op == EMU_HOST_CE_STATE && e->is_configured) {
        m.flags = EMU_HOST_CE_CONFIGURED;
        m.status = (uint8_t)(emu_ce_is_in_doubt(e) ? EMU_STATUS_OK : e->broken);
        m.n = count_engines(e);
        m.list = list;
        put_list(list, e);
    }
    return tell(e->server, e->domain, host, &m);
}

void emu_ce_announce(struct emu_ce_end *e, enum emu_host_ce_op op, struct emu_ce_wait *wait)
{
    const struct emu_domain *domain = e->domain;

    if (!emu_ce_spreads(e->server, domain))
        return;
    e->told.announced = emu_ce_wait_announce(wait);
    for (uint32_t i = 0; i < emu_ce_domain_of(domain)->n_hosts; i++) {
        if (announce_to(e, emu_ce_domain_of(domain)->hosts[i], op, e->told.announced) == 0 && e->told.announced != 0)
            emu_ce_wait_for(wait, emu_ce_domain_of(domain)->hosts[i]);
    }
}

void emu_ce_tell_left(const struct emu_port_end *port, uint64_t poster, bool port_has_twin)
{
    uint8_t list[8];
    const struct emu_host_ce m = { .op = EMU_HOST_CE_LEFT,
                                   .flags = port_has_twin ? EMU_HOST_CE_HAS_TWIN : 0,
                                   .from_nid = port->nid,
                                   .poster = poster,
                                   .n = 1,
                                   .list = list };

    if (port->domain->is_ending)
        return; /* on all hosts */
    emu_host_ce_put_instance(list, port->instance_id);
    for (uint32_t i = 0; i < emu_ce_domain_of(port->domain)->n_hosts; i++)
        tell(port->server, port->domain, emu_ce_domain_of(port->domain)->hosts[i], &m);
}

/* ---- images ---- */

static struct emu_ce_end **far_slot(struct emu_domain *domain, uint32_t per_node, uint32_t nid, uint32_t ce_id)
{
    return &emu_ce_domain_of(domain)->far[(size_t)emu_domain_node_of(domain, nid) * per_node + ce_id];
}

static void free_image(struct emu_ce_end *e)
{
    emu_ce_free_children(e->shape.children, e->shape.n_children);
    free(e);
}

static void drop_image(struct emu_ce_end *e)
{
    *far_slot(e->domain, emu_ce_per_node(e->server), e->nid, e->ce_id) = NULL;
    emu_ce_queue_those_who_name(e);
    free_image(e);
}

/* -ENOMEM. */
static int get_image(struct emu_server *server, struct emu_domain *domain, uint32_t host, const struct emu_host_ce *m,
                     struct emu_ce_end **e_out)
{
    uint32_t per_node = emu_ce_per_node(server);
    struct emu_ce_end **slot;

    if (!emu_ce_domain_of(domain)->far)
        emu_ce_domain_of(domain)->far = calloc(domain->n_nodes, per_node * sizeof(*emu_ce_domain_of(domain)->far));
    if (!emu_ce_domain_of(domain)->far)
        return -ENOMEM;
    slot = far_slot(domain, per_node, m->from_nid, m->from_ce);
    if (!*slot)
        *slot = calloc(1, sizeof(**slot));
    if (!*slot)
        return -ENOMEM;
    (*slot)->server = server;
    (*slot)->domain = domain;
    (*slot)->nid = m->from_nid;
    (*slot)->ce_id = m->from_ce;
    (*slot)->host = host;
    (*slot)->is_far = true;
    *e_out = *slot;
    return 0;
}

/* As if there were none if there is no memory for it. */
static void take_state(struct emu_server *server, struct emu_domain *domain, uint32_t host, const struct emu_host_ce *m)
{
    struct emu_ce_child *children = calloc(m->n + 1, sizeof(*children));
    struct emu_ce_end *e;

    if (!children || get_image(server, domain, host, m, &e) < 0) {
        free(children);
        return;
    }
    emu_ce_free_children(e->shape.children, e->shape.n_children);
    e->shape.children = children;
    e->shape.n_children = 0;
    e->shape.parent = (struct emu_ce_link){ .type = EMU_CE_LINK_NONE };
    for (uint32_t i = 0; i < m->n; i++) {
        bool is_parent;
        struct emu_ce_link link = emu_host_ce_link(m, i, &is_parent);

        if (is_parent)
            e->shape.parent = link;
        else
            e->shape.children[e->shape.n_children++].link = link;
    }
    e->version = m->from_version;
    e->is_configured = (m->flags & EMU_HOST_CE_CONFIGURED) != 0;
    e->broken = m->status;
    e->has_up = false;
    e->is_wanted = false;
    emu_ce_queue_those_who_name(e);
}

/* The image of the engine that speaks, as it was configured when it spoke; NULL. */
static struct emu_ce_end *speaker(struct emu_server *server, const struct emu_domain *domain,
                                  const struct emu_host_ce *m)
{
    struct emu_ce_end *e = emu_ce_find(server, domain, m->from_nid, m->from_ce);

    return e && e->version == m->from_version ? e : NULL;
}

/* Our engine that it speaks to; NULL: it was configured anew meanwhile, or is gone. */
static struct emu_ce_end *listener(struct emu_server *server, const struct emu_domain *domain,
                                   const struct emu_host_ce *m)
{
    struct emu_ce_end *e = emu_ce_find(server, domain, m->to_nid, m->to_ce);

    return e && e->is_configured && e->version == m->to_version ? e : NULL;
}

/*
 * What a parent says to a child settles the child's doubt, for a result would have come before. What a child says to
 * its parent settles nothing for children of that child, though they may be of our host.
 */
static void take_broken(struct emu_server *server, const struct emu_domain *domain, const struct emu_host_ce *m)
{
    struct emu_ce_end *from = speaker(server, domain, m);
    struct emu_ce_end *to = emu_ce_find(server, domain, m->to_nid, m->to_ce);
    bool is_listening = listener(server, domain, m);

    if (!from)
        return;
    from->broken = m->status;
    if (to && (is_listening || m->to_version == 0) && emu_ce_names(&to->shape.parent, from))
        to->told.up = 0;
    if (is_listening && emu_ce_has_link_to(to, from))
        emu_ce_break_tree(to, m->status);
    emu_ce_queue_broken(domain);
}

static void take_up(struct emu_server *server, const struct emu_domain *domain, const struct emu_host_ce *m)
{
    struct emu_ce_end *from = speaker(server, domain, m);
    struct emu_ce_end *to = listener(server, domain, m);
    const struct emu_ce_link back = { .nid = m->from_nid, .ce_id = m->from_ce };

    if (!from || !to || !emu_ce_is_child_of(from, to) || from->has_up)
        return;
    if (to->broken) {
        emu_ce_tell_broken(to, &back, 0); /* it did not know: it waits until we are configured anew */
        return;
    }
    from->up = m->value;
    from->has_up = true;
    emu_ce_queue(to);
}

static void take_down(struct emu_server *server, const struct emu_domain *domain, const struct emu_host_ce *m)
{
    const struct emu_ce_end *from = speaker(server, domain, m);
    struct emu_ce_end *to = listener(server, domain, m);

    if (from && to && to->has_up && !to->has_down && to->told.up == from->version && emu_ce_is_child_of(to, from))
        emu_ce_decide(to, &m->value);
}

static void take_want(struct emu_server *server, const struct emu_domain *domain, const struct emu_host_ce *m)
{
    const struct emu_ce_end *from = speaker(server, domain, m);
    struct emu_ce_end *to = listener(server, domain, m);

    if (!from || !to || !emu_ce_is_child_of(to, from))
        return;
    to->is_wanted = true;
    emu_ce_queue(to);
}

static void take_gone(struct emu_server *server, struct emu_domain *domain, const struct emu_host_ce *m)
{
    struct emu_ce_end *e = emu_ce_find(server, domain, m->from_nid, m->from_ce);

    if (!e)
        return;
    drop_image(e);
    emu_ce_queue_broken(domain);
}

/* ---- hosts that come and go ---- */

static bool has_leaf_on(const struct emu_ce_end *e, uint32_t host)
{
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        const struct emu_ce_link *link = &e->shape.children[i].link;

        if (link->type == EMU_CE_LINK_LEAF && emu_ce_host_of(e->server, e->domain, link->nid) == host)
            return true;
    }
    return false;
}

static void lose_engine(struct emu_domain *domain, struct emu_ce_end *image)
{
    struct emu_ce_end *e;

    LIST_FOREACH(e, &emu_ce_domain_of(domain)->engines, link) {
        if (emu_ce_has_link_to(e, image))
            emu_ce_break_tree(e, EMU_STATUS_NETWORK);
    }
    drop_image(image);
}

static void lose_host(struct emu_server *server, struct emu_domain *domain, uint32_t host)
{
    size_t n = emu_ce_domain_of(domain)->far ? (size_t)domain->n_nodes * emu_ce_per_node(server) : 0;
    struct emu_ce_end *e;

    emu_ce_posts_lose_host(server, domain, host);
    for (size_t i = 0; i < n; i++) {
        if (emu_ce_domain_of(domain)->far[i] && emu_ce_domain_of(domain)->far[i]->host == host)
            lose_engine(domain, emu_ce_domain_of(domain)->far[i]);
    }
    LIST_FOREACH(e, &emu_ce_domain_of(domain)->engines, link) {
        if (e->is_configured && has_leaf_on(e, host))
            emu_ce_break_tree(e, EMU_STATUS_NETWORK);
    }
    emu_ce_queue_broken(domain);
}

static void tell_all_engines(const struct emu_domain *domain, uint32_t host)
{
    const struct emu_ce_end *e;

    LIST_FOREACH(e, &emu_ce_domain_of(domain)->engines, link)
        announce_to(e, host, EMU_HOST_CE_STATE, 0);
}

/* Does the host have nodes of the domain? */
static bool is_with(const struct emu_domain *domain, uint32_t host)
{
    uint32_t i = 0;

    while (i < emu_ce_domain_of(domain)->n_hosts && emu_ce_domain_of(domain)->hosts[i] != host)
        i++;
    return i < emu_ce_domain_of(domain)->n_hosts;
}

void emu_ce_host_up(struct emu_server *server, uint32_t host)
{
    const struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (is_with(domain, host))
            tell_all_engines(domain, host);
    }
}

void emu_ce_host_down(struct emu_server *server, uint32_t host)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (is_with(domain, host))
            lose_host(server, domain, host);
    }
    emu_ce_waits_host_down(server, host);
}

/* Without memory for it there are no trees with them. */
static void find_hosts(const struct emu_server *server, struct emu_domain *domain)
{
    bool *has_nodes = calloc(emu_hosts_count(server), sizeof(*has_nodes));

    emu_ce_domain_of(domain)->hosts = calloc(emu_hosts_count(server), sizeof(*emu_ce_domain_of(domain)->hosts));
    for (uint32_t i = 0; has_nodes && emu_ce_domain_of(domain)->hosts && i < domain->n_nodes; i++)
        has_nodes[emu_hosts_of_node(domain, i)] = true;
    for (uint32_t i = 0; has_nodes && emu_ce_domain_of(domain)->hosts && i < emu_hosts_count(server); i++) {
        if (has_nodes[i] && i != emu_hosts_own(server) && emu_ce_per_node(server) > 0)
            emu_ce_domain_of(domain)->hosts[emu_ce_domain_of(domain)->n_hosts++] = i;
    }
    free(has_nodes);
}

void emu_ce_domain_begins(struct emu_server *server, struct emu_domain *domain)
{
    const struct emu_host_ce begin = { .op = EMU_HOST_CE_BEGIN };

    if (!emu_ce_domain_of(domain)->hosts)
        find_hosts(server, domain);
    for (uint32_t i = 0; i < emu_ce_domain_of(domain)->n_hosts; i++) {
        lose_host(server, domain, emu_ce_domain_of(domain)->hosts[i]);
        tell(server, domain, emu_ce_domain_of(domain)->hosts[i], &begin);
        tell_all_engines(domain, emu_ce_domain_of(domain)->hosts[i]);
    }
}

void emu_ce_drop_domain(struct emu_server *server, struct emu_domain *domain)
{
    size_t n = emu_ce_domain_of(domain)->far ? (size_t)domain->n_nodes * emu_ce_per_node(server) : 0;
    struct emu_ce_end *e;

    /* Those that were still in doubt. */
    while ((e = LIST_FIRST(&emu_ce_domain_of(domain)->engines)))
        emu_ce_remove(e);
    for (size_t i = 0; i < n; i++) {
        if (emu_ce_domain_of(domain)->far[i])
            free_image(emu_ce_domain_of(domain)->far[i]);
    }
    free(emu_ce_domain_of(domain)->far);
    free(emu_ce_domain_of(domain)->hosts);
    emu_ce_domain_of(domain)->far = NULL;
    emu_ce_domain_of(domain)->hosts = NULL;
    emu_ce_domain_of(domain)->n_hosts = 0;
}

/* ---- what comes ---- */

/* Each speaks for its own nodes, about ours. */
static bool may_say(struct emu_server *server, const struct emu_domain *domain, uint32_t host,
                    const struct emu_host_ce *m)
{
    unsigned fields = emu_host_ce_fields(m->op);
    uint32_t per_node = emu_ce_per_node(server);

    if ((fields & (EMU_CE_HAS_FROM | EMU_CE_HAS_FROM_NODE)) &&
        (emu_domain_node_of(domain, m->from_nid) == EMU_NID_NONE || m->from_ce >= per_node ||
         emu_ce_host_of(server, domain, m->from_nid) != host))
        return false;
    return !(fields & (EMU_CE_HAS_TO | EMU_CE_HAS_TO_ANY)) ||
           emu_ce_host_of(server, domain, m->to_nid) == emu_hosts_own(server);
}

static bool hear_of_engine(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                           const struct emu_host_ce *m)
{
    switch (m->op) {
    case EMU_HOST_CE_STATE:
        take_state(server, domain, host, m);
        break;
    case EMU_HOST_CE_GONE:
        take_gone(server, domain, m);
        break;
    case EMU_HOST_CE_BROKEN:
        take_broken(server, domain, m);
        break;
    case EMU_HOST_CE_WANT:
        take_want(server, domain, m);
        break;
    case EMU_HOST_CE_UP:
        take_up(server, domain, m);
        break;
    default:
        take_down(server, domain, m);
        break;
    }
    emu_ce_owe(server, host, domain->common_number, m->number);
    return true;
}

static void take_post(struct emu_server *server, uint32_t number, struct emu_domain *domain, uint32_t host,
                      const struct emu_host_ce *m)
{
    struct emu_host_ce taken = { .op = EMU_HOST_CE_TAKEN, .number = m->number };
    uint8_t message[EMU_HOST_CE_BYTES];

    taken.status = (uint8_t)(domain ? emu_ce_take_post(server, domain, host, m) : EMU_STATUS_PEER_GONE);
    emu_host_ce_put(message, number, &taken);
    emu_hosts_answer(server, host, message, sizeof(message));
}

/* It has ended, or has not come yet. */
static bool hear_of_no_domain(struct emu_server *server, uint32_t number, uint32_t host, const struct emu_host_ce *m)
{
    if (m->op == EMU_HOST_CE_POST)
        take_post(server, number, NULL, host, m);
    else if (m->op == EMU_HOST_CE_STATE || m->op == EMU_HOST_CE_GONE)
        emu_ce_owe(server, host, number, m->number);
    return true;
}

bool emu_ce_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    uint32_t number = emu_wire_get32(bytes + 4);
    struct emu_domain *domain = emu_hosts_find_domain(server, number);
    struct emu_host_ce m;

    if (!emu_host_ce_parse(bytes, length_bytes, &m))
        return false;
    switch (m.op) { /* what needs no domain */
    case EMU_HOST_CE_KNOWN:
        return emu_ce_wait_known(server, host, m.number);
    case EMU_HOST_CE_TAKEN:
        return emu_ce_post_taken(server, host, &m);
    case EMU_HOST_CE_RESULT:
        return emu_ce_post_result(server, host, &m);
    default:
        break;
    }
    if (!domain || domain->is_ending)
        return hear_of_no_domain(server, number, host, &m);
    if (!is_with(domain, host) || !may_say(server, domain, host, &m))
        return false;
    switch (m.op) {
    case EMU_HOST_CE_BEGIN:
        lose_host(server, domain, host);
        tell_all_engines(domain, host);
        return true;
    case EMU_HOST_CE_POST:
        take_post(server, number, domain, host, &m);
        return true;
    case EMU_HOST_CE_LEFT:
        emu_ce_port_left(domain, host, &m);
        return true;
    default:
        return hear_of_engine(server, domain, host, &m);
    }
}
