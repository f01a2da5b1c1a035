/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leaves of reduction trees: contributions and results.
 *
 * A contribution is a command; it is taken or refused by its engine's emunic, and then waits there for its round. The
 * leaf is the process that posts first under a child id, if it is on the node of the configuration; what instance the
 * end points are bound to means nothing. Another one that comes under the same id is a mistake.
 *
 * A leaf's result goes into memory that it has registered; the registration is looked at again at the write, so after
 * GNI_MemDeregister nothing is written.
 *
 *   engine here         taken at once -> waits in the engine's child -> result written
 *   engine elsewhere    asked (POST) -> taken (TAKEN) -> result written (RESULT)
 *                       where to write it stays here; only the value goes to the other host
 *
 * Engines of another host are asked ASKED_MAX times at once by a port; then its ring waits.
 */
#include "emunic/abi/abi.h"
#include "emunic/daemon/ce/ce_trees.h"

#include <stdio.h>
#include <stdlib.h>

#include "emunic/abi/command.h"
#include "emunic/abi/event.h"
#include "emunic/base/log.h"
#include "emunic/daemon/ce/ce_hosts.h"
#include "emunic/daemon/ce/ce_inner.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/engine/ce_arithmetic.h"
#include "emunic/engine/rest.h"
#include "emunic/engine/transaction.h"

#define ASKED_MAX 256u

/* A contribution to an engine of another host. */
struct emu_ce_post {
    LIST_ENTRY(emu_ce_post) link; /* of its port */
    struct emu_port_end *port;    /* borrowed: goes with it */
    struct emu_cmd cmd;
    struct emu_ce_contribution contribution;
    uint32_t host;
    unsigned fault;
    uint64_t number;
    bool is_taken;
};

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
    owner = port->domain->ports[md->port];
    if (!owner || owner->member != port->member || (md->flags & EMU_MD_READ_ONLY))
        return false;
    if (generation == 0 || emu_md_generation(port->domain, md) != generation)
        return false;
    first = emu_page_down(md->base);
    end = emu_page_up(md->base + md->length_bytes);
    if (addr < first || addr > end || sizeof(struct emu_ce_result) > end - addr)
        return false;
    return emu_md_reach(port, md, EMU_OP_CE, mem_out) == EMU_STATUS_OK;
}

void emu_ce_write_result(struct emu_port_end *port, const struct emu_ce_contribution *c,
                         const struct emu_ce_value *result)
{
    const uint64_t words[2] = { result->operand1, result->operand2 };
    bool is_good = result->status == EMU_STATUS_OK;
    struct emu_flag control = { c->result_addr,
                                emu_ce_control(result->status, is_good ? result->fpe : 0, c->value.red_id) };
    struct emu_memory mem;

    /* A leaf that takes its memory away gets nothing; that is its own affair. */
    if (!reach_result(port, c->result_addr, c->mdh, c->md_generation, &mem))
        return;
    mem.ops->write(&mem, c->result_addr + offsetof(struct emu_ce_result, result1), words, is_good ? sizeof(words) : 0,
                   &control);
    emu_port_end_disturb(port);
}

static struct emu_port_end *poster_of(const struct emu_ce_end *e, const struct emu_ce_contribution *c)
{
    struct emu_port_end *port = c->host == e->host ? e->domain->ports[c->port] : NULL;

    return port && emu_table_ports(port->domain->table)[c->port].generation == c->port_generation ? port : NULL;
}

static void send_result(struct emu_ce_end *e, const struct emu_ce_contribution *c, const struct emu_ce_value *result)
{
    struct emu_host_ce m = { .op = EMU_HOST_CE_RESULT, .number = c->number, .status = result->status };

    if (result->status == EMU_STATUS_OK)
        m.value =
            (struct emu_ce_value){ .operand1 = result->operand1, .operand2 = result->operand2, .fpe = result->fpe };
    emu_ce_tell(e->server, e->domain, c->host, &m);
}

bool emu_ce_answer_oldest(struct emu_ce_end *e, struct emu_ce_child *child, const struct emu_ce_value *result)
{
    const struct emu_ce_contribution *oldest = &child->waiting[child->first];
    struct emu_port_end *port = poster_of(e, oldest);

    if (port && !emu_ce_send_result(e, port, oldest, result))
        emu_ce_write_result(port, oldest, result);
    else if (!port && oldest->number != 0)
        send_result(e, oldest, result);
    child->first = (child->first + 1) % EMU_CE_WAITING_MAX;
    child->n_waiting--;
    return port || oldest->number != 0;
}

/* ---- contributions ---- */

static struct emu_ce_value value_of(const struct emu_cmd *cmd)
{
    return (struct emu_ce_value){ .red_id = cmd->ce_red_id,
                                  .operand1 = cmd->operand1,
                                  .operand2 = cmd->operand2,
                                  .op = cmd->ce_op,
                                  .flags = cmd->ce_flags & ((1u << EMU_CE_FPE_SHIFT) - 1),
                                  .fpe = cmd->ce_flags >> EMU_CE_FPE_SHIFT };
}

static uint64_t poster_number(const struct emu_port_end *port)
{
    return (uint64_t)emu_table_ports(port->domain->table)[port->index].generation << 32 | (port->index + 1);
}

/* The engine that takes contributions, or why not. */
static unsigned find_open(struct emu_server *server, const struct emu_domain *domain, uint32_t nid, uint32_t ce_id,
                          struct emu_ce_end **e_out)
{
    struct emu_ce_end *e = emu_ce_find(server, domain, nid, ce_id);

    if (!e || !e->is_configured)
        return EMU_STATUS_BAD_HANDLE;
    *e_out = e;
    return e->broken;
}

/* A process on the node of the configuration is the leaf; which one, is decided by the first contribution. */
static bool may_be(const struct emu_ce_child *c, const struct emu_ce_leaf *who)
{
    return c && c->link.type == EMU_CE_LINK_LEAF && c->link.nid == who->nid &&
           (c->leaf.pid == 0 || c->leaf.pid == who->pid);
}

static void tell_wrong_leaf(const struct emu_ce_end *e, uint8_t child_id, const struct emu_ce_leaf *who)
{
    char configured[EMU_CE_CHILD_TEXT];

    emu_ce_describe_child(emu_ce_child_of(e, child_id), configured);
    emu_log_limited(&e->server->rate, EMU_LOG_WARN,
                    "reduction at engine %u of nid %u: its child %u is %s, but nid %u inst 0x%x pid %u posts as that",
                    e->ce_id, e->nid, child_id, configured, who->nid, who->instance_id, who->pid);
}

static unsigned enqueue(struct emu_ce_end *e, uint8_t child_id, const struct emu_ce_leaf *who,
                        struct emu_ce_contribution *new)
{
    struct emu_ce_child *c = emu_ce_child_of(e, child_id);

    if (!may_be(c, who)) {
        /* Somebody else's contribution will now be missing: better all know than all wait. */
        tell_wrong_leaf(e, child_id, who);
        emu_ce_break_tree(e, EMU_STATUS_MISMATCH);
        return EMU_STATUS_MISMATCH;
    }
    if (c->n_waiting == EMU_CE_WAITING_MAX)
        return EMU_STATUS_RETRANSMIT_LIMIT;
    c->leaf = *who;
    emu_ce_start(&new->value);
    c->waiting[(c->first + c->n_waiting++) % EMU_CE_WAITING_MAX] = *new;
    emu_ce_queue(e);
    return EMU_STATUS_OK;
}

static unsigned accept_contribution(struct emu_port_end *port, uint32_t nid, const struct emu_cmd *cmd,
                                    struct emu_ce_contribution *new)
{
    const struct emu_ce_leaf who = { .host = new->host,
                                     .nid = port->nid,
                                     .instance_id = port->instance_id,
                                     .pid = (uint32_t)port->member->pid,
                                     .poster = poster_number(port) };
    struct emu_ce_end *e;
    unsigned status = find_open(port->server, port->domain, nid, cmd->ce_id, &e);

    return status == EMU_STATUS_OK ? enqueue(e, cmd->ce_child, &who, new) : status;
}

unsigned emu_ce_take_post(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                          const struct emu_host_ce *m)
{
    struct emu_ce_contribution new = { .value = m->value, .host = host, .number = m->number, .poster = m->poster };
    const struct emu_ce_leaf who = { .host = host,
                                     .nid = m->from_nid,
                                     .instance_id = emu_host_ce_instance(m),
                                     .pid = emu_host_ce_pid(m),
                                     .poster = m->poster };
    struct emu_ce_end *e;
    unsigned status;

    if (!emu_ce_is_valid(&m->value))
        return EMU_STATUS_BAD_COMMAND;
    status = find_open(server, domain, m->to_nid, m->to_ce, &e);
    return status == EMU_STATUS_OK ? enqueue(e, m->child, &who, &new) : status;
}

struct emu_port_end *emu_ce_owner(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t nid = emu_domain_nid_at(port->domain, cmd->remote_nid);
    struct emu_ce_end *e = nid == EMU_NID_NONE ? NULL : emu_ce_find(port->server, port->domain, nid, cmd->ce_id);

    return e ? e->port : NULL;
}

static void finish_post(struct emu_port_end *port, const struct emu_cmd *cmd, const struct emu_ce_contribution *c,
                        unsigned status, unsigned fault)
{
    struct emu_transaction t = { .cmd = *cmd,
                                 .node_index = emu_table_node_index(port->domain->table, cmd->remote_nid) };
    struct emu_ce_value failed = { .status = (uint8_t)status };

    t.status = status == EMU_STATUS_OK ? fault : status;
    /* Both ways to wait come to an end: the entry and the result. */
    if (status != EMU_STATUS_OK)
        emu_ce_write_result(port, c, &failed);
    t.cmd.events &= (uint16_t)~EMU_EV_REMOTE;
    t.cmd.chain = EMU_CHAIN_NONE;
    emu_transaction_finish(&port->view, &t);
}

/* What can be said without the engine. */
static unsigned check_post(struct emu_port_end *port, uint32_t nid, const struct emu_ce_contribution *new)
{
    struct emu_memory mem;

    if (!emu_ce_is_valid(&new->value))
        return EMU_STATUS_BAD_COMMAND;
    if (!reach_result(port, new->result_addr, new->mdh, new->md_generation, &mem))
        return EMU_STATUS_LOCAL_ACCESS;
    return nid == EMU_NID_NONE ? EMU_STATUS_PEER_GONE : EMU_STATUS_OK;
}

/* ---- engines of other hosts ---- */

static void forget_post(struct emu_ce_post *post)
{
    emu_ce_port_of(post->port)->n_asked -= !post->is_taken;
    emu_numbers_give(&emu_ce_hosts_of(post->port->server)->posts, post->number);
    LIST_REMOVE(post, link);
    free(post);
}

static void ask(const struct emu_ce_post *post, uint32_t nid)
{
    const struct emu_port_end *port = post->port;
    uint8_t list[8];
    const struct emu_host_ce m = { .op = EMU_HOST_CE_POST,
                                   .child = post->cmd.ce_child,
                                   .from_nid = port->nid,
                                   .to_nid = nid,
                                   .to_ce = post->cmd.ce_id,
                                   .number = post->number,
                                   .poster = poster_number(port),
                                   .value = post->contribution.value,
                                   .n = 1,
                                   .list = list };

    emu_host_ce_put_leaf(list, port->instance_id, (uint32_t)port->member->pid);
    emu_ce_tell(port->server, port->domain, post->host, &m);
}

/* EMU_STATUS_OK: it is under way; else nothing has happened. */
static unsigned post_elsewhere(struct emu_port_end *port, uint32_t nid, uint32_t host, const struct emu_cmd *cmd,
                               const struct emu_ce_contribution *new, unsigned fault)
{
    struct emu_ce_post *post;

    if (!emu_hosts_is_up(port->server, host))
        return EMU_STATUS_NETWORK;
    post = calloc(1, sizeof(*post));
    if (!post || emu_numbers_take(&emu_ce_hosts_of(port->server)->posts, post, &post->number) < 0) {
        free(post);
        return EMU_STATUS_NETWORK;
    }
    post->port = port;
    post->cmd = *cmd;
    post->contribution = *new;
    post->host = host;
    post->fault = fault;
    LIST_INSERT_HEAD(&emu_ce_port_of(port)->posts, post, link);
    emu_ce_port_of(port)->n_asked++;
    ask(post, nid);
    return EMU_STATUS_OK;
}

static uint32_t host_of_command(const struct emu_port_end *port, uint32_t nid)
{
    return emu_ce_host_of(port->server, port->domain, nid);
}

bool emu_ce_may_post(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t host;

    if (!emu_hosts_are_several(port->server))
        return true;
    host = host_of_command(port, emu_domain_nid_at(port->domain, cmd->remote_nid));
    if (host == emu_hosts_own(port->server) || !emu_hosts_is_up(port->server, host))
        return true;
    return emu_ce_port_of(port)->n_asked < ASKED_MAX && emu_hosts_has_room(port->server, host);
}

void emu_ce_contribute(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned fault)
{
    struct emu_ce_contribution new = { .value = value_of(cmd),
                                       .result_addr = cmd->local_addr,
                                       .port = port->index,
                                       .port_generation = emu_table_ports(port->domain->table)[port->index].generation,
                                       .host = emu_hosts_own(port->server),
                                       .mdh = cmd->mdh,
                                       .md_generation = cmd->generation };
    uint32_t nid = emu_domain_nid_at(port->domain, cmd->remote_nid);
    uint32_t host = host_of_command(port, nid);
    unsigned status;

    new.value.status = (uint8_t)fault; /* the others hear of it where the reduction is decided */
    status = check_post(port, nid, &new);
    if (status == EMU_STATUS_OK && host != new.host) {
        status = post_elsewhere(port, nid, host, cmd, &new, fault);
        if (status == EMU_STATUS_OK)
            return;
    } else if (status == EMU_STATUS_OK) {
        status = accept_contribution(port, nid, cmd, &new);
    }
    finish_post(port, cmd, &new, status, fault);
}

void emu_ce_post(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned fault)
{
    if (!emu_ce_send_post(port, cmd, fault))
        emu_ce_contribute(port, cmd, fault);
}

static struct emu_ce_post *find_post(struct emu_server *server, uint32_t host, uint64_t number)
{
    struct emu_ce_post *post = emu_numbers_find(&emu_ce_hosts_of(server)->posts, number);

    return post && post->host == host ? post : NULL;
}

bool emu_ce_post_taken(struct emu_server *server, uint32_t host, const struct emu_host_ce *m)
{
    struct emu_ce_post *post = find_post(server, host, m->number);

    if (!post)
        return true; /* its port has gone */
    if (post->is_taken)
        return false;
    finish_post(post->port, &post->cmd, &post->contribution, m->status, post->fault);
    emu_port_end_disturb(post->port);
    if (m->status != EMU_STATUS_OK) {
        forget_post(post);
        return true;
    }
    post->is_taken = true;
    emu_ce_port_of(post->port)->n_asked--;
    return true;
}

bool emu_ce_post_result(struct emu_server *server, uint32_t host, const struct emu_host_ce *m)
{
    struct emu_ce_post *post = find_post(server, host, m->number);
    struct emu_ce_value result = m->value;

    if (!post)
        return true;
    if (!post->is_taken)
        return false;
    result.status = m->status;
    emu_ce_write_result(post->port, &post->contribution, &result);
    forget_post(post);
    return true;
}

/* ---- who goes ---- */

static void fail_post(struct emu_ce_post *post, unsigned status)
{
    const struct emu_ce_value failed = { .status = (uint8_t)status };

    if (post->is_taken)
        emu_ce_write_result(post->port, &post->contribution, &failed);
    else
        finish_post(post->port, &post->cmd, &post->contribution, status, post->fault);
    emu_port_end_disturb(post->port);
    forget_post(post);
}

static void forget_posters(struct emu_ce_end *e, uint32_t host)
{
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        struct emu_ce_child *c = &e->shape.children[i];

        for (uint32_t k = 0; k < c->n_waiting; k++) {
            struct emu_ce_contribution *waiting = &c->waiting[(c->first + k) % EMU_CE_WAITING_MAX];

            if (waiting->host == host)
                waiting->number = 0;
        }
    }
}

void emu_ce_posts_lose_host(struct emu_server *server, const struct emu_domain *domain, uint32_t host)
{
    const struct emu_numbers *posts = &emu_ce_hosts_of(server)->posts;
    struct emu_ce_end *e;

    for (uint32_t i = 0; i < posts->n_used; i++) {
        struct emu_ce_post *post = posts->places[i].what;

        if (post && post->host == host && post->port->domain == domain)
            fail_post(post, EMU_STATUS_NETWORK);
    }
    LIST_FOREACH(e, &emu_ce_domain_of(domain)->engines, link)
        forget_posters(e, host);
}

void emu_ce_drop_posts(struct emu_port_end *port)
{
    struct emu_ce_post *post;

    while ((post = LIST_FIRST(&emu_ce_port_of(port)->posts)))
        forget_post(post);
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

/* Whom trees lose. */
struct leaver {
    uint32_t nid;
    uint32_t instance_id;
    bool has_twin;
    uint32_t host;
    const struct emu_port_end *port; /* NULL: of another host */
    uint64_t poster;
};

static bool is_from(const struct emu_ce_end *e, const struct emu_ce_contribution *c, const struct leaver *leaver)
{
    if (leaver->port)
        return poster_of(e, c) == leaver->port;
    return c->host == leaver->host && c->poster == leaver->poster;
}

/* Of a leaf that has not posted yet nothing is known but what instance its end point is bound to, if that is one. */
static bool is_leaf(const struct emu_ce_end *e, const struct emu_ce_child *c, const struct leaver *leaver)
{
    if (c->leaf.pid != 0)
        return c->leaf.host == leaver->host && c->leaf.poster == leaver->poster;
    return c->link.instance_id == leaver->instance_id && !leaver->has_twin &&
           (leaver->port || emu_ce_is_known_at(e, leaver->host));
}

/* Does the engine count on the port, which is going? */
static bool loses(const struct emu_ce_end *e, const struct leaver *leaver)
{
    for (uint32_t i = 0; i < e->shape.n_children; i++) {
        const struct emu_ce_child *c = &e->shape.children[i];

        if (c->link.type != EMU_CE_LINK_LEAF || c->link.nid != leaver->nid)
            continue;
        if (is_leaf(e, c, leaver))
            return true;
        for (uint32_t k = 0; k < c->n_waiting; k++) {
            if (is_from(e, &c->waiting[(c->first + k) % EMU_CE_WAITING_MAX], leaver))
                return true;
        }
    }
    return false;
}

static void drop_leaver(struct emu_domain *domain, const struct leaver *leaver)
{
    struct emu_ce_end *e;

    LIST_FOREACH(e, &emu_ce_domain_of(domain)->engines, link) {
        if (e->is_configured && !e->broken && loses(e, leaver))
            emu_ce_break_tree(e, EMU_STATUS_PEER_GONE);
    }
}

void emu_ce_drop_leaf(struct emu_port_end *port)
{
    struct leaver leaver = { .nid = port->nid,
                             .instance_id = port->instance_id,
                             .host = emu_hosts_own(port->server),
                             .port = port,
                             .poster = poster_number(port) };
    bool spreads = emu_ce_spreads(port->server, port->domain);

    if (LIST_EMPTY(&emu_ce_domain_of(port->domain)->engines) && !spreads)
        return;
    leaver.has_twin = has_twin(port);
    drop_leaver(port->domain, &leaver);
    if (spreads)
        emu_ce_tell_left(port, leaver.poster, leaver.has_twin);
}

void emu_ce_port_left(struct emu_domain *domain, uint32_t host, const struct emu_host_ce *m)
{
    const struct leaver leaver = { .nid = m->from_nid,
                                   .instance_id = emu_host_ce_instance(m),
                                   .has_twin = (m->flags & EMU_HOST_CE_HAS_TWIN) != 0,
                                   .host = host,
                                   .poster = m->poster };

    drop_leaver(domain, &leaver);
}
