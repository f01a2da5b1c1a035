/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules.
 *
 * Each port numbers the operations that a rule looks at (its classes, nodes, instances): 1, 2, 3 ... after the first
 * `after`. Which of them the rule hits depends on that number, the rule and the port's identity alone:
 *
 *   nth N     the N-th        every N   each N-th        rate R   hash(seed, rule, port, number) mod 10^9 < R * 10^9
 *   live_min  those that find so many registrations      none of them: all
 *
 * So the traffic of other ports, of other rules, and time change nothing: the same seed and the same order of a port's
 * operations give the same hits. A window of time (start, end) selects by the age that the caller tells; numbers go on
 * outside it. The hash is the finaliser of splitmix64 (Steele, Lea, Flood 2014), applied to one word after the other.
 */
#include "emunic/engine/fault_rule.h"

#include <string.h>

#include "emunic/abi/error.h"
#include "emunic/abi/event.h"
#include "emunic/abi/portals.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- names ---- */

static const char *const class_names[EMU_FAULT_CLASSES] = {
    [EMU_FAULT_FMA_PUT] = "fma-put",   [EMU_FAULT_FMA_GET] = "fma-get",           [EMU_FAULT_FMA_AMO] = "fma-amo",
    [EMU_FAULT_BTE_PUT] = "bte-put",   [EMU_FAULT_BTE_GET] = "bte-get",           [EMU_FAULT_SMSG] = "smsg",
    [EMU_FAULT_MSGQ] = "msgq",         [EMU_FAULT_CQ_WRITE] = "cq-write",         [EMU_FAULT_CE] = "ce",
    [EMU_FAULT_PTL_PUT] = "ptl-put",   [EMU_FAULT_PTL_GET] = "ptl-get",           [EMU_FAULT_PTL_GETPUT] = "ptl-getput",
    [EMU_FAULT_DATAGRAM] = "datagram", [EMU_FAULT_REGISTRATION] = "registration",
};

static const struct {
    const char *name;
    uint32_t bits;
} class_groups[] = {
    { "fma", EMU_FAULT_FMA_BITS },
    { "bte", EMU_FAULT_BTE_BITS },
    { "ptl", EMU_FAULT_PTL_BITS },
    { "any", EMU_FAULT_TRANSACTION_BITS },
};

static const char *const action_names[EMU_FAULT_ACTIONS] = {
    [EMU_FAULT_DROP] = "drop",     [EMU_FAULT_CORRUPT] = "corrupt",   [EMU_FAULT_FAIL] = "fail",
    [EMU_FAULT_DELAY] = "delay",   [EMU_FAULT_OVERRUN] = "overrun",   [EMU_FAULT_KILL] = "kill",
    [EMU_FAULT_REPORT] = "report", [EMU_FAULT_THROTTLE] = "throttle",
};

/* enum emu_status */
static const char *const transaction_names[] = {
    [EMU_STATUS_NETWORK] = "network",
    [EMU_STATUS_PEER_GONE] = "peer-gone",
    [EMU_STATUS_BAD_HANDLE] = "bad-handle",
    [EMU_STATUS_REMOTE_RANGE] = "remote-range",
    [EMU_STATUS_REMOTE_PERMISSION] = "remote-permission",
    [EMU_STATUS_REMOTE_CQ_FULL] = "remote-cq-full",
    [EMU_STATUS_LOCAL_ACCESS] = "local-access",
    [EMU_STATUS_RETRANSMIT_LIMIT] = "retransmit-limit",
    [EMU_STATUS_CANCELLED] = "cancelled",
    [EMU_STATUS_BAD_COMMAND] = "bad-command",
};

static const char *const registration_names[EMU_FAULT_REGISTRATION_STATUSES] = {
    [EMU_FAULT_NO_RESOURCE] = "resource",
    [EMU_FAULT_NO_MEMORY] = "memory",
    [EMU_FAULT_NO_PERMISSION] = "permission",
};

static const char *const datagram_names[EMU_FAULT_DATAGRAM_STATUSES] = {
    [EMU_FAULT_DATAGRAM_ERROR] = "error",
    [EMU_FAULT_DATAGRAM_TIMEOUT] = "timeout",
    [EMU_FAULT_DATAGRAM_BUSY] = "busy",
};

static const char *const category_names[8] = {
    "correctable-memory", "critical",      "transaction", "address-translation",
    "transient",          "informational", "diag-only",   "unknown-transaction",
};

struct names {
    const char *const *items;
    size_t n;
};

/* Names of `status` for a rule of these classes. */
static struct names status_names(uint32_t classes)
{
    if (classes == EMU_FAULT_BIT(EMU_FAULT_REGISTRATION))
        return (struct names){ registration_names, COUNT_OF(registration_names) };
    if (classes == EMU_FAULT_BIT(EMU_FAULT_DATAGRAM))
        return (struct names){ datagram_names, COUNT_OF(datagram_names) };
    return (struct names){ transaction_names, COUNT_OF(transaction_names) };
}

static const char *name_of(struct names names, unsigned number)
{
    return number < names.n ? names.items[number] : NULL;
}

static bool number_of(struct names names, const char *name, uint8_t *number_out)
{
    for (size_t i = 0; i < names.n; i++) {
        if (names.items[i] && strcmp(names.items[i], name) == 0) {
            *number_out = (uint8_t)i;
            return true;
        }
    }
    return false;
}

const char *emu_fault_class_name(unsigned op_class)
{
    return name_of((struct names){ class_names, COUNT_OF(class_names) }, op_class);
}

const char *emu_fault_action_name(unsigned action)
{
    return name_of((struct names){ action_names, COUNT_OF(action_names) }, action);
}

const char *emu_fault_status_name(const struct emu_fault_rule *rule)
{
    const char *name = rule->action == EMU_FAULT_FAIL ? name_of(status_names(rule->classes), rule->status) : NULL;

    return name ? name : "";
}

const char *emu_error_category_name(unsigned category)
{
    for (unsigned bit = 0; bit < COUNT_OF(category_names); bit++) {
        if (category == 1u << bit)
            return category_names[bit];
    }
    return NULL;
}

bool emu_fault_parse_classes(const char *name, uint32_t *bits_out)
{
    uint8_t number;

    for (size_t i = 0; i < COUNT_OF(class_groups); i++) {
        if (strcmp(class_groups[i].name, name) == 0) {
            *bits_out = class_groups[i].bits;
            return true;
        }
    }
    if (!number_of((struct names){ class_names, COUNT_OF(class_names) }, name, &number))
        return false;
    *bits_out = EMU_FAULT_BIT(number);
    return true;
}

bool emu_fault_parse_action(const char *name, uint8_t *action_out)
{
    return number_of((struct names){ action_names, COUNT_OF(action_names) }, name, action_out);
}

bool emu_fault_parse_status(const char *name, uint32_t classes, uint8_t *status_out)
{
    return number_of(status_names(classes), name, status_out);
}

bool emu_error_parse_category(const char *name, uint8_t *category_out)
{
    uint8_t bit;

    if (!number_of((struct names){ category_names, COUNT_OF(category_names) }, name, &bit))
        return false;
    *category_out = (uint8_t)(1u << bit);
    return true;
}

/* ---- validity ---- */

static bool has_only(const struct emu_fault_rule *rule, uint32_t classes)
{
    return (rule->classes & ~classes) == 0;
}

static const char *check_action(const struct emu_fault_rule *rule)
{
    if (!emu_fault_action_name(rule->action))
        return "no such action";
    if (rule->action == EMU_FAULT_FAIL) {
        if ((rule->classes & EMU_FAULT_TRANSACTION_BITS) != 0 && !has_only(rule, EMU_FAULT_TRANSACTION_BITS))
            return "action fail: transactions, datagrams and registrations need rules of their own";
        if ((rule->classes & (rule->classes - 1)) != 0 && !has_only(rule, EMU_FAULT_TRANSACTION_BITS))
            return "action fail: datagrams and registrations need rules of their own";
        if (rule->status == 0 || emu_fault_status_name(rule)[0] == '\0')
            return "action fail: needs a status of its class";
    } else if (rule->status != 0) {
        return "a status belongs to action fail";
    }
    if ((rule->action == EMU_FAULT_DELAY) != (rule->delay_ns != 0))
        return "action delay, and only this one, needs a delay";
    if (rule->delay_ns > 3600000000000ull)
        return "a delay is an hour at most";
    if ((rule->action == EMU_FAULT_REPORT) != (rule->category != 0))
        return "action report, and only this one, needs a category";
    if (rule->category != 0 && !emu_error_category_name(rule->category))
        return "no such category";
    if (rule->action != EMU_FAULT_KILL && (rule->flags & EMU_FAULT_VICTIM_INITIATOR))
        return "a victim belongs to action kill";
    if ((rule->action == EMU_FAULT_OVERRUN || rule->action == EMU_FAULT_KILL || rule->action == EMU_FAULT_THROTTLE) &&
        !has_only(rule, EMU_FAULT_TRANSACTION_BITS))
        return "actions overrun, kill and throttle are for transactions";
    if (rule->action == EMU_FAULT_DELAY &&
        !has_only(rule, EMU_FAULT_TRANSACTION_BITS | EMU_FAULT_BIT(EMU_FAULT_DATAGRAM)))
        return "a registration cannot be delayed";
    if (rule->action == EMU_FAULT_DROP && (rule->classes & EMU_FAULT_BIT(EMU_FAULT_REGISTRATION)))
        return "a registration cannot be dropped: use fail";
    return NULL;
}

static const char *check_choice(const struct emu_fault_rule *rule)
{
    int choices = (rule->rate_ppb != 0) + (rule->nth != 0) + (rule->every != 0) + (rule->live_min != 0);

    if (choices > 1)
        return "only one of rate, nth, every and live_min";
    if (rule->rate_ppb > EMU_FAULT_RATE_ONE)
        return "a rate is 1 at most";
    if (rule->live_min != 0 && rule->classes != EMU_FAULT_BIT(EMU_FAULT_REGISTRATION))
        return "live_min is for class registration";
    if (rule->end_ns != 0 && rule->end_ns <= rule->start_ns)
        return "the window of time is empty";
    return NULL;
}

static const char *check_place(const struct emu_fault_rule *rule)
{
    if ((rule->from_nid != EMU_NID_NONE && rule->from_nid > EMU_NID_MAX) ||
        (rule->to_nid != EMU_NID_NONE && rule->to_nid > EMU_NID_MAX))
        return "no such node";
    if (rule->classes == EMU_FAULT_BIT(EMU_FAULT_REGISTRATION) &&
        (rule->to_nid != EMU_NID_NONE || (rule->flags & EMU_FAULT_TO_INSTANCE)))
        return "a registration has no target";
    return NULL;
}

const char *emu_fault_rule_check(const struct emu_fault_rule *rule)
{
    const char *what;

    if (rule->classes == 0 || (rule->classes >> EMU_FAULT_CLASSES) != 0)
        return "no such class";
    if ((rule->flags & ~EMU_FAULT_FLAGS) != 0 || rule->reserved != 0 || rule->reserved2 != 0)
        return "unknown bits are set";
    what = check_action(rule);
    if (!what)
        what = check_choice(rule);
    return what ? what : check_place(rule);
}

/* ---- operations ---- */

bool emu_fault_class_of(const struct emu_cmd *cmd, enum emu_fault_class *class_out)
{
    bool is_msgq = ((cmd->source_event & EMU_EVENT_TYPE_MASK) >> EMU_EVENT_TYPE_SHIFT) == 3;
    unsigned source = (unsigned)(cmd->source_event >> EMU_EVENT_SOURCE_SHIFT) & 15u;

    if (cmd->op == EMU_OP_CE) {
        *class_out = EMU_FAULT_CE;
        return true;
    }
    if (emu_ptl_is_command(cmd->op)) {
        *class_out = EMU_FAULT_PTL_PUT + (cmd->op - EMU_OP_PTL_PUT);
        return true;
    }
    if (cmd->op == EMU_OP_CQ_WRITE && source != 0) {
        *class_out = EMU_FAULT_CQ_WRITE;
        return true;
    }
    switch (source) {
    case EMU_SOURCE_FMA:
        *class_out = cmd->op == EMU_OP_GET ? EMU_FAULT_FMA_GET :
                     cmd->op == EMU_OP_AMO ? EMU_FAULT_FMA_AMO :
                                             EMU_FAULT_FMA_PUT;
        return true;
    case EMU_SOURCE_BTE:
        *class_out = cmd->op == EMU_OP_GET ? EMU_FAULT_BTE_GET : EMU_FAULT_BTE_PUT;
        return true;
    case EMU_SOURCE_SMSG:
        *class_out = is_msgq ? EMU_FAULT_MSGQ : EMU_FAULT_SMSG;
        return true;
    default:
        return false;
    }
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash += value + 0x9e3779b97f4a7c15ull;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ull;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebull;
    return hash ^ hash >> 31;
}

uint64_t emu_fault_key(bool is_rank, uint32_t major, uint32_t minor)
{
    return mix(mix(is_rank, major), minor);
}

static bool looks_at(const struct emu_fault_rule *rule, const struct emu_fault_operation *op)
{
    if ((rule->classes & EMU_FAULT_BIT(op->op_class)) == 0)
        return false;
    if ((rule->from_nid != EMU_NID_NONE && rule->from_nid != op->from_nid) ||
        (rule->to_nid != EMU_NID_NONE && rule->to_nid != op->to_nid))
        return false;
    if ((rule->flags & EMU_FAULT_FROM_INSTANCE) && rule->from_instance != op->from_instance)
        return false;
    return (rule->flags & EMU_FAULT_TO_INSTANCE) == 0 || (op->has_to_instance && rule->to_instance == op->to_instance);
}

static bool chooses(const struct emu_fault_rule *rule, const struct emu_fault_operation *op, uint64_t number)
{
    if (rule->nth != 0)
        return number == rule->nth;
    if (rule->every != 0)
        return number % rule->every == 0;
    if (rule->live_min != 0)
        return op->live >= rule->live_min;
    if (rule->rate_ppb == 0)
        return true;
    return mix(mix(mix(rule->seed, rule->id), op->port_key), number) % EMU_FAULT_RATE_ONE < rule->rate_ppb;
}

bool emu_fault_hits(const struct emu_fault_rule *rule, struct emu_fault_count *count,
                    const struct emu_fault_operation *op)
{
    if (!looks_at(rule, op))
        return false;
    count->seen++;
    if (count->seen <= rule->after || !chooses(rule, op, count->seen - rule->after))
        return false;
    if (op->age_ns < rule->start_ns || (rule->end_ns != 0 && op->age_ns >= rule->end_ns))
        return false;
    if (rule->count != 0 && count->hits >= rule->count)
        return false;
    count->hits++;
    return true;
}
