/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules: their names, what makes one valid, and which operations they hit. Pure functions: no clock, no state but
 * the caller's counters, so that a schedule can be repeated.
 */
#ifndef EMUNIC_ENGINE_FAULT_RULE_H
#define EMUNIC_ENGINE_FAULT_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/command.h"
#include "emunic/abi/fault.h"

/* What one rule has seen of one port. */
struct emu_fault_count {
    uint64_t seen; /* operations that the rule looked at */
    uint64_t hits;
};

/* One operation as rules look at it. */
struct emu_fault_operation {
    enum emu_fault_class op_class;
    uint32_t from_nid;
    uint32_t from_instance;
    uint32_t to_nid; /* EMU_NID_NONE: has no target (registration, wildcard datagram) */
    uint32_t to_instance;
    bool has_to_instance; /* the target is known to that degree */
    uint64_t port_key;    /* of the initiating port: the same in each run (emu_fault_key) */
    uint64_t age_ns;      /* of the rule */
    uint32_t live;        /* registrations that the port holds */
};

/* Names. NULL: no such number. */
const char *emu_fault_class_name(unsigned op_class);
const char *emu_fault_action_name(unsigned action);
/* Of a rule's `status`, which depends on its classes; "" if its action has none. */
const char *emu_fault_status_name(const struct emu_fault_rule *rule);
const char *emu_error_category_name(unsigned category);

/* Bits of a class by its name, or of "fma", "bte" or "any" (all that have a completion, but msgq). False: no such. */
bool emu_fault_parse_classes(const char *name, uint32_t *bits_out);

/* An action by its name. False: no such. */
bool emu_fault_parse_action(const char *name, uint8_t *action_out);

/* A status by its name among those that a rule of these classes may have. False: no such. */
bool emu_fault_parse_status(const char *name, uint32_t classes, uint8_t *status_out);

/* A category of errors by its name. False: no such. */
bool emu_error_parse_category(const char *name, uint8_t *category_out);

/* NULL, or what is wrong with a rule, in words. Safe for any content. */
const char *emu_fault_rule_check(const struct emu_fault_rule *rule);

/* The class of a command; false: the library's own business, which no rule hits. */
bool emu_fault_class_of(const struct emu_cmd *cmd, enum emu_fault_class *class_out);

/*
 * Identity of a port that does not depend on the order of attaches: rank and place among its NIC handles, or nid and
 * instance.
 */
uint64_t emu_fault_key(bool is_rank, uint32_t major, uint32_t minor);

/* Does the rule hit this operation? Counts it if the rule looks at it. The rule must be valid. */
bool emu_fault_hits(const struct emu_fault_rule *rule, struct emu_fault_count *count,
                    const struct emu_fault_operation *op);

#endif
