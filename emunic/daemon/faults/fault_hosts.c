/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets on other hosts, for fault rules.
 *
 * Whose memory or interface a command is for is known on the target's host alone. A rule that asks for the target's
 * instance makes the command wait at the head of its ring until that host has told (WHO, OWNER); a rule that kills the
 * target asks it to (KILL). It checks that it has such a rule itself, so that nobody ends processes in the name of
 * none.
 */
#include "emunic/daemon/faults/fault_hosts.h"

#include <string.h>

#include "emunic/abi/portals.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/peers/lists.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/engine/transaction.h"

#define NOT_PORTALS UINT32_MAX
#define OWNER_WORDS 2u

static uint32_t node_of(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    return emu_table_node_index(port->domain->table, cmd->remote_nid);
}

static struct emu_host_target target_of(const struct emu_port_end *port, const struct emu_cmd *cmd, uint32_t rule)
{
    struct emu_host_target t = { .domain = port->domain->common_number,
                                 .rule = rule,
                                 .from_nid = port->nid,
                                 .nid = emu_domain_nid_at(port->domain, cmd->remote_nid),
                                 .pid = NOT_PORTALS,
                                 .base = cmd->remote_base,
                                 .mdh = cmd->mdh,
                                 .generation = cmd->generation,
                                 .handle_flags = cmd->handle_flags & EMU_HOST_HANDLE_FLAGS };
    struct emu_ptl_cmd ptl;

    if (!emu_ptl_is_command(cmd->op))
        return t;
    memcpy(&ptl, cmd, sizeof(ptl));
    t.pid = ptl.pid;
    t.base = 0;
    t.mdh = t.generation = 0;
    t.handle_flags = 0;
    return t;
}

/* ---- who asks ---- */

static uint64_t new_token(struct emu_port_end *port)
{
    struct emu_faults *faults = port->server->slots[EMU_SERVER_FAULTS];

    return (++faults->questions << 16) | port->index;
}

bool emu_fault_ask_owner(struct emu_port_end *port, const struct emu_cmd *cmd, bool *has_owner_out,
                         uint32_t *instance_id_out)
{
    struct emu_fault_question *q = &emu_fault_state_of(port)->question;
    struct emu_host_target target;
    uint64_t words[EMU_HOST_TARGET_WORDS];

    if (!q->is_asked || q->place != port->ring.head) {
        target = target_of(port, cmd, 0);
        *q = (struct emu_fault_question){ .place = port->ring.head,
                                          .host = emu_hosts_of_node(port->domain, node_of(port, cmd)) };
        if (!emu_hosts_is_up(port->server, q->host)) {
            *has_owner_out = false;
            return true;
        }
        q->token = new_token(port);
        q->is_asked = true;
        emu_host_target_put(words, &target);
        emu_list_send(port->server,
                      &(struct emu_list_head){ .host = q->host, .op = EMU_HOST_ADMIN_WHO, .token = q->token }, words,
                      EMU_HOST_TARGET_WORDS);
        emu_hosts_owe(port->server, q->host);
    }
    if (!q->is_answered)
        return false;
    q->is_asked = false;
    *has_owner_out = q->has_owner;
    *instance_id_out = q->instance_id;
    return true;
}

void emu_fault_kill_there(struct emu_port_end *port, const struct emu_cmd *cmd, uint32_t rule)
{
    struct emu_host_target target = target_of(port, cmd, rule);
    uint64_t words[EMU_HOST_TARGET_WORDS];

    emu_host_target_put(words, &target);
    emu_list_send(port->server,
                  &(struct emu_list_head){ .host = emu_hosts_of_node(port->domain, node_of(port, cmd)),
                                           .op = EMU_HOST_ADMIN_KILL },
                  words, EMU_HOST_TARGET_WORDS);
}

static void take_answer(struct emu_port_end *port, bool has_owner, uint32_t instance_id)
{
    emu_fault_state_of(port)->question.is_answered = true;
    emu_fault_state_of(port)->question.has_owner = has_owner;
    emu_fault_state_of(port)->question.instance_id = instance_id;
}

bool emu_fault_owner(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct emu_words *words = &list->words;
    bool has_owner = emu_words_take(words, 1) != 0;
    uint32_t instance_id = (uint32_t)emu_words_take(words, UINT32_MAX);
    struct emu_port_end *port;

    if (words->is_bad || words->left != 0)
        return false;
    emu_hosts_pay(server, host);
    LIST_FOREACH(port, &server->ports, link) {
        const struct emu_fault_question *q = &emu_fault_state_of(port)->question;

        if (q->is_asked && !q->is_answered && q->token == list->token && q->host == host)
            take_answer(port, has_owner, instance_id);
    }
    return true;
}

void emu_fault_host_down(struct emu_server *server, uint32_t host)
{
    struct emu_port_end *port;

    LIST_FOREACH(port, &server->ports, link) {
        const struct emu_fault_question *q = &emu_fault_state_of(port)->question;

        if (q->is_asked && !q->is_answered && q->host == host)
            take_answer(port, false, 0);
    }
}

/* ---- who is asked ---- */

/* *domain_out NULL: it is not here. False: the host does not speak for its own node, or of one of ours. */
static bool take_target(struct emu_server *server, uint32_t host, struct emu_words *words,
                        struct emu_host_target *target_out, struct emu_domain **domain_out)
{
    struct emu_domain *domain;
    uint32_t from;
    uint32_t to;

    if (!emu_host_target_take(words, target_out))
        return false;
    *domain_out = domain = emu_hosts_find_domain(server, target_out->domain);
    if (!domain)
        return true;
    from = emu_domain_node_of(domain, target_out->from_nid);
    to = emu_domain_node_of(domain, target_out->nid);
    return from != EMU_NID_NONE && to != EMU_NID_NONE && emu_hosts_of_node(domain, from) == host &&
           emu_hosts_of_node(domain, to) == emu_hosts_own(server);
}

static struct emu_port_end *find_owner(const struct emu_domain *domain, const struct emu_host_target *target)
{
    struct emu_md_name name = { target->base, target->mdh, target->generation, target->handle_flags };
    uint32_t node = emu_domain_node_of(domain, target->nid);
    const struct emu_table_md *md;
    uint32_t number;

    if (target->pid != NOT_PORTALS) {
        for (uint32_t i = 0; i < EMU_PORTS_MAX; i++) {
            if (emu_portals_end_is_that(domain->ports[i], target->nid, target->pid))
                return domain->ports[i];
        }
        return NULL;
    }
    number = emu_transaction_find_md(domain->table, node, &name);
    if (number == EMU_MD_COUNT)
        return NULL;
    md = &emu_table_mds(domain->table, node)[number];
    return atomic_load_explicit(&md->state, memory_order_relaxed) ? domain->ports[md->port] : NULL;
}

bool emu_fault_who(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct emu_words *words = &list->words;
    const struct emu_port_end *owner;
    struct emu_host_target target;
    struct emu_domain *domain;
    uint64_t said[OWNER_WORDS];

    if (!take_target(server, host, words, &target, &domain))
        return false;
    owner = domain ? find_owner(domain, &target) : NULL;
    said[0] = owner ? 1 : 0;
    said[1] = owner ? owner->instance_id : 0;
    emu_list_send(server, &(struct emu_list_head){ .host = host, .op = EMU_HOST_ADMIN_OWNER, .token = list->token },
                  said, OWNER_WORDS);
    return true;
}

bool emu_fault_kill(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct emu_host_target target;
    struct emu_port_end *owner;
    struct emu_domain *domain;

    if (!take_target(server, host, &list->words, &target, &domain))
        return false;
    if (!domain)
        return true;
    if (!emu_fault_kills_targets(domain, target.rule))
        return false;
    owner = find_owner(domain, &target);
    if (owner)
        emu_fault_kill_port(owner, target.rule);
    return true;
}
