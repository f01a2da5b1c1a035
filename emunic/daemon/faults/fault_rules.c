/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Injected faults.
 *
 * A domain with rules is routed: every command comes by here (emu_fault_command), before it does anything. All rules
 * look at it, in their order, so that each keeps its own count; the first that hits decides. Nothing else depends on
 * rules: a domain without them costs emunic one comparison per command and its members' direct path nothing.
 *
 * Counts belong to (rule, port). A port is known to the hash by its rank and its place among the NIC handles of that
 * process, or, outside a launched job, by nid and instance: neither depends on who attached first.
 *
 *   command:  fresh -> passes
 *                   -> held until a time, at the head of its port's ring -> passes
 *                   -> failed
 *                   -> short message with attempts left, after a recoverable fault: waits a round, then fresh again
 *
 * A held command holds what its port sends after it: order and staging stay as they are. The library's own writes
 * (credits, greetings) are nobody's transaction and are never hit. A contribution to a reduction that is hit is passed
 * on with its failure, which ends that reduction for all leaves; the tree stays whole.
 *
 * Whose a target on another host is, and killing it, is that host's to say and to do (fault_hosts.c).
 *
 * Registrations and datagrams are requests; they are decided when they arrive. A dropped datagram waits for ever, as
 * one whose packet was lost would; a delayed one cannot pair before its time.
 */
#include "emunic/daemon/faults/fault_rules.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/abi/event.h"
#include "emunic/daemon/ce/ce_trees.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/injection/injection.h"
#include "emunic/daemon/orders/order_request.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server_time.h"
#include "emunic/daemon/world/word_list.h"
#include "emunic/engine/fault_rule.h"
#include "emunic/engine/transaction.h"

struct rule_end {
    struct emu_fault_rule rule;
    struct emu_fault_count *counts; /* owned, EMU_PORTS_MAX */
    uint64_t set_at_ns;
    uint64_t seen; /* of all ports, those that have gone included */
    uint64_t hits;
};

struct emu_fault_set {
    struct rule_end *rules; /* owned */
    uint32_t n_rules;
    uint32_t next_id;
};

static struct emu_fault_set *set_of(const struct emu_domain *domain)
{
    return domain->slots[EMU_DOMAIN_FAULTS];
}

static void keep_set(struct emu_domain *domain, struct emu_fault_set *set)
{
    domain->slots[EMU_DOMAIN_FAULTS] = set;
    domain->paths.has_faults = set;
}

/* ---- rules ---- */

static void free_set(struct emu_fault_set *set)
{
    for (uint32_t i = 0; set && i < set->n_rules; i++)
        free(set->rules[i].counts);
    if (set)
        free(set->rules);
    free(set);
}

static int add_rules(struct emu_fault_set *set, uint64_t now_ns, const struct emu_fault_rule *rules, uint32_t n_rules)
{
    for (uint32_t i = 0; i < n_rules; i++) {
        struct rule_end *end = &set->rules[set->n_rules];

        *end = (struct rule_end){ .rule = rules[i], .set_at_ns = now_ns };
        end->rule.id = set->next_id++;
        end->counts = calloc(EMU_PORTS_MAX, sizeof(*end->counts));
        if (!end->counts)
            return -ENOMEM;
        set->n_rules++;
    }
    return 0;
}

/*
 * A set with the old rules, if wanted, and the new ones; the counts of the old ones move with them only when nothing
 * failed.
 */
static int make_set(const struct emu_fault_set *old, uint64_t now_ns, const struct emu_fault_rule *rules,
                    uint32_t n_rules, struct emu_fault_set **set_out)
{
    uint32_t n_old = old ? old->n_rules : 0;
    struct emu_fault_set *set = calloc(1, sizeof(*set));
    int r = -ENOMEM;

    if (!set)
        return r;
    set->next_id = old ? old->next_id : 1;
    set->rules = calloc((size_t)n_old + n_rules, sizeof(*set->rules));
    if (set->rules)
        r = add_rules(set, now_ns, rules, n_rules);
    if (r < 0) {
        free_set(set);
        return r;
    }
    memmove(set->rules + n_old, set->rules, n_rules * sizeof(*set->rules));
    if (n_old > 0)
        memcpy(set->rules, old->rules, n_old * sizeof(*set->rules));
    set->n_rules += n_old;
    *set_out = set;
    return 0;
}

static void tell_rules(struct emu_server *server, const struct emu_domain *domain)
{
    struct emu_error_record record = { .code = EMU_ERROR_RULES, .category = EMU_ERROR_INFORMATIONAL };

    record.info[2] = set_of(domain) ? set_of(domain)->n_rules : 0;
    emu_error_tell_here(server, domain, record);
}

int emu_fault_check_rules(const struct emu_domain *domain, const struct emu_fault_rule *rules, uint32_t n_rules,
                          bool appends)
{
    const struct emu_fault_set *old = set_of(domain);

    if (n_rules == 0 || n_rules + (appends && old ? old->n_rules : 0) > EMU_FAULT_RULES_MAX)
        return n_rules == 0 ? -EINVAL : -ENOSPC;
    for (uint32_t i = 0; i < n_rules; i++) {
        if (emu_fault_rule_check(&rules[i]))
            return -EINVAL;
    }
    return 0;
}

int emu_fault_set_rules(struct emu_server *server, struct emu_domain *domain, const struct emu_fault_rule *rules,
                        uint32_t n_rules, bool appends)
{
    struct emu_fault_set *old = set_of(domain);
    struct emu_fault_set *set = NULL;
    int r = emu_fault_check_rules(domain, rules, n_rules, appends);

    if (r == 0)
        r = make_set(appends ? old : NULL, emu_server_now_ns(server), rules, n_rules, &set);
    if (r < 0)
        return r;
    if (appends && old)
        old->n_rules = 0; /* its counts have moved */
    free_set(old);
    keep_set(domain, set);
    emu_domain_set_path(domain);
    tell_rules(server, domain);
    emu_log(EMU_LOG_INFO, "domain %u: %u fault rules", domain->id, set->n_rules);
    return 0;
}

bool emu_fault_has_rule(const struct emu_domain *domain, uint32_t id)
{
    const struct emu_fault_set *set = set_of(domain);

    for (uint32_t i = 0; set && i < set->n_rules; i++) {
        if (set->rules[i].rule.id == id)
            return true;
    }
    return false;
}

static void drop(struct emu_domain *domain)
{
    free_set(set_of(domain));
    keep_set(domain, NULL);
    /* What is held goes on: nobody asks about it any more. */
    for (uint32_t i = 0; domain->ports && i < EMU_PORTS_MAX; i++) {
        if (domain->ports[i])
            emu_fault_state_of(domain->ports[i])->held_until_ns = 0;
    }
}

int emu_fault_clear_rules(struct emu_server *server, struct emu_domain *domain, uint32_t id)
{
    struct emu_fault_set *set = set_of(domain);
    uint32_t i = 0;

    if (id == 0) {
        drop(domain);
    } else {
        while (set && i < set->n_rules && set->rules[i].rule.id != id)
            i++;
        if (!set || i == set->n_rules)
            return -ENOENT;
        free(set->rules[i].counts);
        set->n_rules--;
        memmove(&set->rules[i], &set->rules[i + 1], (set->n_rules - i) * sizeof(*set->rules));
        if (set->n_rules == 0)
            drop(domain);
    }
    emu_domain_set_path(domain);
    tell_rules(server, domain);
    return 0;
}

static uint32_t count_rules(const struct emu_domain *domain)
{
    return set_of(domain) ? set_of(domain)->n_rules : 0;
}

bool emu_fault_rule_of(const struct emu_domain *domain, uint32_t place, struct emu_fault_rule *rule_out,
                       uint64_t *seen_out, uint64_t *hits_out)
{
    if (place >= count_rules(domain))
        return false;
    *rule_out = set_of(domain)->rules[place].rule;
    *seen_out = set_of(domain)->rules[place].seen;
    *hits_out = set_of(domain)->rules[place].hits;
    return true;
}

/* ---- state ---- */

static void put_state(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *list)
{
    const struct emu_fault_set *set = set_of(domain);
    uint64_t now_ns = emu_server_now_ns(server);

    emu_word_list_add(list, set ? set->next_id : 1);
    emu_word_list_add(list, set ? set->n_rules : 0);
    for (uint32_t i = 0; set && i < set->n_rules; i++) {
        uint64_t *at = emu_word_list_extend(list, EMU_HOST_RULE_WORDS);

        if (at)
            emu_host_rule_put(at, &set->rules[i].rule, now_ns - set->rules[i].set_at_ns);
    }
}

/* A rule that is here already goes on with its counts. */
static void keep_counts(struct emu_fault_set *set, struct emu_fault_set *old)
{
    for (uint32_t i = 0; old && i < set->n_rules; i++) {
        for (uint32_t k = 0; k < old->n_rules; k++) {
            struct emu_fault_count *counts = set->rules[i].counts;

            if (memcmp(&set->rules[i].rule, &old->rules[k].rule, sizeof(old->rules[k].rule)) != 0)
                continue;
            set->rules[i] = old->rules[k];
            old->rules[k].counts = counts;
        }
    }
}

/* Same rules in the same order? */
static bool is_same(const struct emu_fault_set *a, const struct emu_fault_set *b)
{
    if (a->n_rules != b->n_rules)
        return false;
    for (uint32_t i = 0; i < a->n_rules; i++) {
        if (memcmp(&a->rules[i].rule, &b->rules[i].rule, sizeof(a->rules[i].rule)) != 0)
            return false;
    }
    return true;
}

static struct emu_fault_set *take_set(uint64_t now_ns, struct emu_words *words)
{
    struct emu_fault_set *set = calloc(1, sizeof(*set));
    uint32_t n;

    if (!set)
        return NULL;
    set->next_id = (uint32_t)emu_words_take(words, UINT32_MAX);
    n = (uint32_t)emu_words_take(words, EMU_FAULT_RULES_MAX);
    set->rules = calloc(n ? n : 1, sizeof(*set->rules));
    for (uint32_t i = 0; set->rules && i < n && !words->is_bad; i++) {
        struct rule_end *end = &set->rules[i];
        uint64_t age_ns;

        emu_host_rule_take(words, &end->rule, &age_ns);
        end->set_at_ns = now_ns - age_ns;
        end->counts = calloc(EMU_PORTS_MAX, sizeof(*end->counts));
        words->is_bad =
            words->is_bad || !end->counts || emu_fault_rule_check(&end->rule) || end->rule.id >= set->next_id;
        set->n_rules++;
    }
    if (!set->rules || words->is_bad || words->left != 0) {
        free_set(set);
        return NULL;
    }
    return set;
}

static bool take_state(struct emu_server *server, struct emu_domain *domain, struct emu_words *words)
{
    struct emu_fault_set *old = set_of(domain);
    struct emu_fault_set *set = take_set(emu_server_now_ns(server), words);

    if (!set)
        return false;
    if (old ? is_same(set, old) && set->next_id == old->next_id : set->n_rules == 0) {
        free_set(set);
        return true;
    }
    keep_counts(set, old);
    if (set->n_rules == 0) {
        free_set(set);
        drop(domain);
    } else {
        free_set(old);
        keep_set(domain, set);
    }
    emu_domain_set_path(domain);
    tell_rules(server, domain);
    return true;
}

static void start_port(struct emu_port_end *port)
{
    const struct emu_member *member = port->member;
    bool is_rank = member->rank != EMU_NID_NONE;

    emu_fault_state_of(port)->key = is_rank ? emu_fault_key(true, member->rank, member->n_ports_ever) :
                                              emu_fault_key(false, port->nid, port->instance_id);
    for (uint32_t i = 0; i < count_rules(port->domain); i++)
        set_of(port->domain)->rules[i].counts[port->index] = (struct emu_fault_count){ 0 };
}

/* The rule that hits, or NULL. */
static const struct emu_fault_rule *decide(struct emu_port_end *port, struct emu_fault_operation *op)
{
    struct emu_fault_set *set = set_of(port->domain);
    const struct emu_fault_rule *first = NULL;
    uint64_t now_ns = emu_server_now_ns(port->server);

    op->from_nid = port->nid;
    op->from_instance = port->instance_id;
    op->port_key = emu_fault_state_of(port)->key;
    for (uint32_t i = 0; i < set->n_rules; i++) {
        struct rule_end *end = &set->rules[i];
        struct emu_fault_count *count = &end->counts[port->index];
        uint64_t seen = count->seen;
        bool hits;

        op->age_ns = now_ns - end->set_at_ns;
        hits = emu_fault_hits(&end->rule, count, op);
        end->seen += count->seen - seen;
        end->hits += hits;
        if (hits && !first)
            first = &end->rule;
    }
    return first;
}

/* ---- commands ---- */

void emu_fault_end_command(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status, uint16_t code)
{
    emu_fault_state_of(port)->code = code;
    if (cmd->op == EMU_OP_CE)
        emu_ce_post(port, cmd, status);
    else if (emu_ptl_is_command(cmd->op))
        emu_portals_end_fail(port, cmd, status);
    else
        emu_transaction_fail(&port->view, cmd, status);
    emu_fault_state_of(port)->code = 0;
}

/* Whose memory, or engine, it goes to. */
static struct emu_port_end *owner_of(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    uint32_t node = emu_table_node_index(port->domain->table, cmd->remote_nid);
    struct emu_md_name name = { cmd->remote_base, cmd->mdh, cmd->generation, cmd->handle_flags };
    const struct emu_table_md *md;
    uint32_t number;

    if (cmd->op == EMU_OP_CE)
        return emu_ce_owner(port, cmd);
    if (emu_ptl_is_command(cmd->op))
        return emu_portals_end_target(port, cmd);
    if (node >= port->domain->n_nodes)
        return NULL;
    number = emu_transaction_find_md(port->domain->table, node, &name);
    if (number == EMU_MD_COUNT)
        return NULL;
    md = &emu_table_mds(port->domain->table, node)[number];
    return atomic_load_explicit(&md->state, memory_order_relaxed) ? port->domain->ports[md->port] : NULL;
}

void emu_fault_fail(struct emu_port_end *port, const struct emu_cmd *cmd, const struct emu_fault_failure *failure)
{
    emu_fault_state_of(port)->rule = failure->rule;
    emu_fault_end_command(port, cmd, failure->status, failure->code);
    emu_fault_state_of(port)->rule = 0;
}

/* In virtual time a transaction fails when it would have ended. */
static enum emu_fault_answer fail(struct emu_port_end *port, const struct emu_cmd *cmd,
                                  const struct emu_fault_rule *rule, unsigned status, uint16_t code)
{
    const struct emu_fault_failure failure = { .status = status, .code = code, .rule = rule->id };

    if (emu_server_is_virtual(port->server) && cmd->op != EMU_OP_CE && !emu_ptl_is_command(cmd->op)) {
        emu_fault_state_of(port)->failure = failure;
        return EMU_FAULT_FAILS;
    }
    emu_fault_fail(port, cmd, &failure);
    return EMU_FAULT_IS_DONE;
}

void emu_fault_kill_port(const struct emu_port_end *victim, uint32_t rule)
{
    emu_log(EMU_LOG_INFO, "rule %u: killing pid %d, nid %u inst 0x%x", rule, (int)victim->member->pid, victim->nid,
            victim->instance_id);
    syscall(SYS_pidfd_send_signal, victim->member->pidfd, SIGKILL, NULL, 0);
}

bool emu_fault_kills_targets(const struct emu_domain *domain, uint32_t id)
{
    const struct emu_fault_set *set = set_of(domain);

    for (uint32_t i = 0; set && i < set->n_rules; i++) {
        const struct emu_fault_rule *rule = &set->rules[i].rule;

        if (rule->id == id)
            return rule->action == EMU_FAULT_KILL && (rule->flags & EMU_FAULT_VICTIM_INITIATOR) == 0;
    }
    return false;
}

/* Contributions to reductions are not looked at beyond this host. */
static bool is_elsewhere(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    return cmd->op != EMU_OP_CE && emu_port_end_is_elsewhere(port, cmd->remote_nid);
}

static void kill_victim(struct emu_port_end *port, const struct emu_cmd *cmd, const struct emu_fault_rule *rule)
{
    bool is_initiator = (rule->flags & EMU_FAULT_VICTIM_INITIATOR) != 0;
    const struct emu_port_end *victim = is_initiator ? port : owner_of(port, cmd);

    if (!is_initiator && is_elsewhere(port, cmd))
        emu_fault_kill_there(port, cmd, rule->id);
    else if (victim)
        emu_fault_kill_port(victim, rule->id);
}

/* A short message that may be sent again waits for the next round. */
static bool is_tried_again(struct emu_port_end *port, const struct emu_cmd *cmd, const struct emu_fault_rule *rule,
                           uint16_t code)
{
    /* Any more would be a client that wants to keep us busy. */
    uint32_t attempts_max = cmd->attempts < UINT16_MAX + 1u ? cmd->attempts : UINT16_MAX + 1u;

    emu_fault_state_of(port)->attempts++;
    if (emu_fault_state_of(port)->attempts >= attempts_max)
        return false;
    atomic_fetch_add_explicit(&port->segment->retransmits, 1, memory_order_relaxed);
    emu_error_tell_transaction(port, cmd, EMU_STATUS_NETWORK, code ? code : EMU_ERROR_RETRANSMITTED, rule->id);
    return true;
}

/* Lost or broken on the way. */
static enum emu_fault_answer lose(struct emu_port_end *port, const struct emu_cmd *cmd,
                                  const struct emu_fault_rule *rule, uint16_t code)
{
    unsigned status = EMU_STATUS_NETWORK;

    if (cmd->op != EMU_OP_CE && cmd->attempts > 0) {
        if (is_tried_again(port, cmd, rule, code))
            return EMU_FAULT_WAITS;
        status = EMU_STATUS_RETRANSMIT_LIMIT;
        code = 0;
    }
    return fail(port, cmd, rule, status, code);
}

static enum emu_fault_answer hold(struct emu_port_end *port, const struct emu_cmd *cmd,
                                  const struct emu_fault_rule *rule)
{
    struct emu_error_record record = { .code = EMU_ERROR_DELAYED, .category = EMU_ERROR_DIAG_ONLY };

    emu_fault_state_of(port)->held_until_ns = emu_server_now_ns(port->server) + rule->delay_ns;
    record.info[0] = (uint64_t)port->nid << 32 | port->instance_id;
    record.info[1] = (uint64_t)emu_domain_nid_at(port->domain, cmd->remote_nid) << 32 | cmd->mdh;
    record.info[2] = rule->delay_ns;
    record.info[3] = (uint64_t)rule->id << 32 | (uint32_t)cmd->op << 8;
    emu_error_tell(port->server, port->domain, record);
    return EMU_FAULT_WAITS;
}

static enum emu_fault_answer act(struct emu_port_end *port, struct emu_cmd *cmd, const struct emu_fault_rule *rule)
{
    struct emu_error_record record = { .code = EMU_ERROR_INJECTED, .category = rule->category };

    switch (rule->action) {
    case EMU_FAULT_DROP:
        return lose(port, cmd, rule, 0);
    case EMU_FAULT_CORRUPT:
        return lose(port, cmd, rule, EMU_ERROR_CORRUPT);
    case EMU_FAULT_FAIL:
        if (rule->status == EMU_STATUS_NETWORK)
            return lose(port, cmd, rule, 0);
        return fail(port, cmd, rule, rule->status, 0);
    case EMU_FAULT_DELAY:
        return hold(port, cmd, rule);
    case EMU_FAULT_OVERRUN:
        cmd->events |= EMU_EV_LOSE;
        return EMU_FAULT_PASSES;
    case EMU_FAULT_KILL:
        kill_victim(port, cmd, rule);
        return fail(port, cmd, rule, EMU_STATUS_PEER_GONE, 0);
    case EMU_FAULT_THROTTLE:
        emu_injection_throttle(port->server, port->nid);
        return EMU_FAULT_PASSES;
    default:
        record.info[0] = (uint64_t)port->nid << 32 | port->instance_id;
        record.info[1] = (uint64_t)emu_domain_nid_at(port->domain, cmd->remote_nid) << 32 | cmd->mdh;
        record.info[3] = (uint64_t)rule->id << 32 | (uint32_t)cmd->op << 8;
        emu_error_tell(port->server, port->domain, record);
        return EMU_FAULT_PASSES;
    }
}

/* Is there a rule for such operations that looks at the target's instance? */
static bool asks_for_instance(const struct emu_port_end *port, const struct emu_fault_operation *op)
{
    const struct emu_fault_set *set = set_of(port->domain);

    for (uint32_t i = 0; i < set->n_rules; i++) {
        const struct emu_fault_rule *rule = &set->rules[i].rule;

        if ((rule->flags & EMU_FAULT_TO_INSTANCE) && (rule->classes & EMU_FAULT_BIT(op->op_class)) &&
            (rule->from_nid == EMU_NID_NONE || rule->from_nid == port->nid) &&
            (rule->to_nid == EMU_NID_NONE || rule->to_nid == op->to_nid))
            return true;
    }
    return false;
}

static enum emu_fault_answer answer(struct emu_port_end *port, struct emu_cmd *cmd)
{
    struct emu_fault_operation op = { .to_nid = emu_domain_nid_at(port->domain, cmd->remote_nid) };
    const struct emu_fault_rule *rule;
    const struct emu_port_end *owner;

    if (!emu_fault_class_of(cmd, &op.op_class))
        return EMU_FAULT_PASSES;
    if (!is_elsewhere(port, cmd)) {
        owner = owner_of(port, cmd);
        op.has_to_instance = owner;
        op.to_instance = owner ? owner->instance_id : 0;
    } else if (asks_for_instance(port, &op) && !emu_fault_ask_owner(port, cmd, &op.has_to_instance, &op.to_instance)) {
        return EMU_FAULT_WAITS;
    }
    rule = decide(port, &op);
    return rule ? act(port, cmd, rule) : EMU_FAULT_PASSES;
}

enum emu_fault_answer emu_fault_command(struct emu_port_end *port, struct emu_cmd *cmd)
{
    enum emu_fault_answer a;

    if (emu_fault_state_of(port)->held_until_ns != 0) {
        if (emu_server_now_ns(port->server) < emu_fault_state_of(port)->held_until_ns)
            return EMU_FAULT_WAITS;
        emu_fault_state_of(port)->held_until_ns = 0;
        a = EMU_FAULT_PASSES;
    } else if (emu_fault_state_of(port)->passed == port->ring.head + 1) {
        a = EMU_FAULT_PASSES; /* it waits for something else */
        if (emu_fault_state_of(port)->loses)
            cmd->events |= EMU_EV_LOSE;
    } else {
        a = answer(port, cmd);
    }
    if (a == EMU_FAULT_PASSES) {
        emu_fault_state_of(port)->passed = port->ring.head + 1;
        emu_fault_state_of(port)->loses = (cmd->events & EMU_EV_LOSE) != 0;
    }
    if (a != EMU_FAULT_WAITS)
        emu_fault_state_of(port)->attempts = 0;
    return a;
}

static uint64_t next_ns(const struct emu_server *server)
{
    uint64_t first_ns = UINT64_MAX;
    const struct emu_port_end *port;

    if (emu_server_is_virtual(server))
        return first_ns; /* its ports' commands are due then */
    LIST_FOREACH(port, &server->ports, link) {
        const struct emu_fault_state *state = emu_fault_state_of(port);

        if (state->held_until_ns != 0 && state->held_until_ns < first_ns)
            first_ns = state->held_until_ns;
    }
    return first_ns;
}

/* ---- requests ---- */

static void tell_injected(const struct emu_port_end *port, const struct emu_fault_rule *rule)
{
    emu_error_tell_port(port, EMU_ERROR_INJECTED, rule->category, 0, rule->id);
}

int emu_fault_registration(struct emu_port_end *port)
{
    static const int results[EMU_FAULT_REGISTRATION_STATUSES] = {
        [0] = -ENOSPC, /* corrupt */
        [EMU_FAULT_NO_RESOURCE] = -ENOSPC,
        [EMU_FAULT_NO_MEMORY] = -ENOMEM,
        [EMU_FAULT_NO_PERMISSION] = -EPERM,
    };
    struct emu_fault_operation op = { .op_class = EMU_FAULT_REGISTRATION,
                                      .to_nid = EMU_NID_NONE,
                                      .live = port->memory.n_mds };
    const struct emu_fault_rule *rule = decide(port, &op);

    if (!rule)
        return 0;
    if (rule->action == EMU_FAULT_REPORT) {
        tell_injected(port, rule);
        return 0;
    }
    emu_error_tell_port(port, EMU_ERROR_REGISTRATION, EMU_ERROR_ADDRESS_TRANSLATION, port->memory.n_mds, rule->id);
    return results[rule->status];
}

struct emu_fault_datagram emu_fault_datagram(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    bool is_wildcard = (wanted->flags & EMU_DATAGRAM_WILDCARD) != 0;
    struct emu_fault_operation op = { .op_class = EMU_FAULT_DATAGRAM,
                                      .to_nid = is_wildcard ? EMU_NID_NONE : wanted->remote_nid,
                                      .to_instance = wanted->remote_instance,
                                      .has_to_instance = !is_wildcard };
    const struct emu_fault_rule *rule = decide(port, &op);
    struct emu_fault_datagram d = { .state = EMU_DATAGRAM_PENDING };

    if (!rule)
        return d;
    if (rule->action == EMU_FAULT_REPORT) {
        tell_injected(port, rule);
        return d;
    }
    if (rule->action == EMU_FAULT_DELAY) {
        d.not_before_ns = emu_server_now_ns(port->server) + rule->delay_ns;
        emu_error_tell_port(port, EMU_ERROR_DELAYED, EMU_ERROR_DIAG_ONLY, rule->delay_ns, rule->id);
        return d;
    }
    if (rule->action == EMU_FAULT_DROP)
        d.not_before_ns = UINT64_MAX;
    else if (rule->action == EMU_FAULT_CORRUPT || rule->status == EMU_FAULT_DATAGRAM_ERROR)
        d.state = EMU_DATAGRAM_ERROR;
    else if (rule->status == EMU_FAULT_DATAGRAM_TIMEOUT)
        d.state = EMU_DATAGRAM_TIMEOUT;
    else
        d.is_refused = true;
    emu_error_tell_port(port, EMU_ERROR_DATAGRAM, EMU_ERROR_TRANSIENT, 0, rule->id);
    return d;
}

/* ---- orders: rules for domains ---- */

static int read_change(struct emu_connection *c, const struct emu_msg *msg, const struct emu_fds *fds,
                       struct emu_change *change)
{
    void *rules = NULL;
    int r = 0;

    change->fault = msg->fault;
    if ((msg->fault.flags & ~EMU_FAULT_APPEND) != 0 || fds->n_fds != (msg->type == EMU_MSG_FAULT_SET))
        return -EINVAL;
    if (msg->type == EMU_MSG_FAULT_SET)
        r = emu_change_read_table(fds, msg->fault.n_rules, EMU_FAULT_RULES_MAX, sizeof(*change->rules), &rules);
    change->rules = rules;
    if (r == 0 && msg->fault.domain_id != EMU_FAULT_ALL_DOMAINS &&
        !emu_change_name_domain(c->server, change, msg->fault.domain_id))
        r = -ENODEV;
    return r;
}

static void put_change(const struct emu_change *change, struct emu_word_list *list)
{
    emu_word_list_add(list, change->fault.flags);
    emu_word_list_add(list, change->fault.id);
    emu_word_list_add(list, change->rules ? change->fault.n_rules : 0);
    for (uint32_t i = 0; change->rules && i < change->fault.n_rules; i++) {
        uint64_t *at = emu_word_list_extend(list, EMU_HOST_RULE_WORDS);

        if (at)
            emu_host_rule_put(at, &change->rules[i], 0);
    }
}

static bool sets_rules(const struct emu_change *change)
{
    return change->row->type == EMU_MSG_FAULT_SET;
}

static bool take_change(const struct emu_server *server, struct emu_words *words, struct emu_change *change)
{
    uint64_t age_ns;
    uint32_t n;

    (void)server;
    change->fault.flags = (uint32_t)emu_words_take(words, EMU_FAULT_APPEND);
    change->fault.id = (uint32_t)emu_words_take(words, UINT32_MAX);
    change->fault.n_rules = n = (uint32_t)emu_words_take(words, EMU_FAULT_RULES_MAX);
    if (words->is_bad || (n != 0) != sets_rules(change))
        return false;
    if (n > 0)
        change->rules = calloc(n, sizeof(*change->rules));
    for (uint32_t i = 0; change->rules && i < n; i++)
        emu_host_rule_take(words, &change->rules[i], &age_ns);
    return n == 0 || change->rules;
}

static int check_change(struct emu_server *server, const struct emu_change *change)
{
    const struct emu_domain *domain;
    uint32_t n_domains = 0;
    int r = -ENODEV;

    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->is_ending || !emu_change_means(change, domain))
            continue;
        n_domains++;
        if (sets_rules(change))
            r = emu_fault_check_rules(domain, change->rules, change->fault.n_rules,
                                      (change->fault.flags & EMU_FAULT_APPEND) != 0);
        else if (r != 0) /* one that has it will do */
            r = change->fault.id == 0 || emu_fault_has_rule(domain, change->fault.id) ? 0 : -ENOENT;
        if (sets_rules(change) && r < 0)
            return r;
    }
    return n_domains > 0 ? r : -ENODEV;
}

/* Nothing happens unless it can in each domain. */
static int act_on_change(struct emu_server *server, struct emu_change *change, const struct emu_change_order *order)
{
    struct emu_domain *domain;
    int r = check_change(server, change);

    (void)order;
    if (r < 0)
        return r;
    LIST_FOREACH(domain, &server->domains, link) {
        int failed = 0;

        if (domain->is_ending || !emu_change_means(change, domain))
            continue;
        if (sets_rules(change))
            failed = emu_fault_set_rules(server, domain, change->rules, change->fault.n_rules,
                                         (change->fault.flags & EMU_FAULT_APPEND) != 0);
        else if (change->fault.id == 0 || emu_fault_has_rule(domain, change->fault.id))
            failed = emu_fault_clear_rules(server, domain, change->fault.id);
        r = r < 0 ? r : failed;
    }
    return r;
}

static uint32_t value_of_change(struct emu_server *server, const struct emu_change *change)
{
    const struct emu_domain *domain;
    uint32_t n = 0;

    LIST_FOREACH(domain, &server->domains, link) {
        if (!domain->is_ending && emu_change_means(change, domain))
            n = count_rules(domain);
    }
    return n;
}

static void reply_to_change(uint32_t value, struct emu_msg *reply)
{
    reply->fault.n_rules = value;
}

/* ---- the part ---- */

static struct emu_faults *faults_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_FAULTS];
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_faults *faults = calloc(1, sizeof(*faults));

    (void)why;
    if (!faults)
        return -ENOMEM;
    faults->first = options->faults;
    faults->n_first = options->n_faults;
    server->slots[EMU_SERVER_FAULTS] = faults;
    return 0;
}

static void destroy(struct emu_server *server)
{
    free(faults_of(server));
    server->slots[EMU_SERVER_FAULTS] = NULL;
}

static int begin_domain(struct emu_server *server, struct emu_domain *domain)
{
    const struct emu_faults *faults = faults_of(server);

    return faults->n_first > 0 ? emu_fault_set_rules(server, domain, faults->first, faults->n_first, false) : 0;
}

static void end_domain(struct emu_server *server, struct emu_domain *domain)
{
    (void)server;
    drop(domain);
}

static int begin_port(struct emu_port_end *port)
{
    port->slots[EMU_PORT_FAULTS] = calloc(1, sizeof(struct emu_fault_state));
    return port->slots[EMU_PORT_FAULTS] ? 0 : -ENOMEM;
}

static void end_port(struct emu_port_end *port)
{
    free(port->slots[EMU_PORT_FAULTS]);
    port->slots[EMU_PORT_FAULTS] = NULL;
}

static void put_status(const struct emu_domain *domain, uint64_t *row)
{
    row[EMU_STATUS_DOMAIN_FAULT_RULES] = count_rules(domain);
}

static const struct emu_change_row changes[] = {
    { .type = EMU_MSG_FAULT_SET,
      .read = read_change,
      .put = put_change,
      .take = take_change,
      .act = act_on_change,
      .value = value_of_change,
      .reply = reply_to_change },
    { .type = EMU_MSG_FAULT_CLEAR,
      .read = read_change,
      .put = put_change,
      .take = take_change,
      .act = act_on_change,
      .value = value_of_change,
      .reply = reply_to_change },
};
static const struct emu_state_row states[] = { { EMU_MSG_FAULT_SET, true, put_state, take_state } };
static const struct emu_list_row lists[] = {
    { EMU_HOST_ADMIN_WHO, emu_fault_who },
    { EMU_HOST_ADMIN_OWNER, emu_fault_owner },
    { EMU_HOST_ADMIN_KILL, emu_fault_kill },
};

const struct emu_part emu_faults_part = {
    .name = "faults",
    .create = create,
    .destroy = destroy,
    .changes = changes,
    .n_changes = EMU_ROWS(changes),
    .states = states,
    .n_states = EMU_ROWS(states),
    .loop = { .next_ns = next_ns },
    .hosts = { .lists = lists, .n_lists = EMU_ROWS(lists), .down = emu_fault_host_down },
    .domains = { .begin = begin_domain, .end = end_domain },
    .ports = { .begin = begin_port, .live = start_port, .end = end_port },
    .status = { .domain = put_status },
};
