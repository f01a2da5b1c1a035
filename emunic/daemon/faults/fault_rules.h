/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Injected faults.
 */
#ifndef EMUNIC_DAEMON_FAULTS_FAULT_RULES_H
#define EMUNIC_DAEMON_FAULTS_FAULT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/fault.h"
#include "emunic/daemon/core/part.h"
#include "emunic/daemon/faults/fault_hosts.h"
#include "emunic/daemon/world/port_end.h"

struct emu_cmd;
struct emu_domain;
struct emu_msg_datagram;
struct emu_port_end;
struct emu_server;

/* What they keep of the server... */
struct emu_faults {
    const struct emu_fault_rule *first; /* borrowed: of each new domain */
    uint32_t n_first;
    uint64_t questions; /* asked so far */
};

/* How a fault ends a command. */
struct emu_fault_failure {
    unsigned status; /* EMU_STATUS_OK: none does */
    uint16_t code;   /* of its error event; 0: by its status */
    uint32_t rule;
};

/* ...and of a port. */
struct emu_fault_state {
    uint64_t key;                       /* who it is, to the hash */
    uint64_t passed;                    /* place in the ring, plus 1, of the command that faults let pass last */
    uint64_t held_until_ns;             /* the next command; 0 not held */
    uint32_t attempts;                  /* of the short message at the head of the ring, that failed */
    uint32_t rule;                      /* while a fault ends a command: which, */
    uint16_t code;                      /* and what it is called; 0 by its status */
    struct emu_fault_failure failure;   /* virtual time: of the command that EMU_FAULT_FAILS told of */
    bool loses;                         /* the command that passed loses its event */
    struct emu_fault_question question; /* whose its target on another host is */
};

static inline struct emu_fault_state *emu_fault_state_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_FAULTS];
}

extern const struct emu_part emu_faults_part;

enum emu_fault_answer {
    EMU_FAULT_PASSES,  /* run it, perhaps changed */
    EMU_FAULT_IS_DONE, /* it has ended with an error */
    EMU_FAULT_WAITS,   /* ask again in the next round; in virtual time, when it is to be tried again */
    EMU_FAULT_FAILS,   /* virtual time: it has to end with the state's `failure`, when it would have ended */
};

struct emu_fault_datagram {
    uint32_t state;         /* enum emu_datagram_state: pending, or how it ends at once */
    bool is_refused;        /* as if another exchange were open */
    uint64_t not_before_ns; /* may not pair before; UINT64_MAX: never */
};

/* -EINVAL: a rule is not valid; -ENOSPC: too many; -ENOMEM. Nothing has changed then. */
int emu_fault_set_rules(struct emu_server *server, struct emu_domain *domain, const struct emu_fault_rule *rules,
                        uint32_t n_rules, bool appends);
/* One rule, or with id 0 all. -ENOENT: no such rule. */
int emu_fault_clear_rules(struct emu_server *server, struct emu_domain *domain, uint32_t id);
/* What emu_fault_set_rules() would say, memory aside. */
int emu_fault_check_rules(const struct emu_domain *domain, const struct emu_fault_rule *rules, uint32_t n_rules,
                          bool appends);
bool emu_fault_has_rule(const struct emu_domain *domain, uint32_t id);
bool emu_fault_rule_of(const struct emu_domain *domain, uint32_t place, struct emu_fault_rule *rule_out,
                       uint64_t *seen_out, uint64_t *hits_out);
/* Has the domain this rule, and does it kill targets? */
bool emu_fault_kills_targets(const struct emu_domain *domain, uint32_t id);
void emu_fault_kill_port(const struct emu_port_end *victim, uint32_t rule);
/* The following three only for a domain with rules. The command is emunic's copy of the one at the ring's head. */
enum emu_fault_answer emu_fault_command(struct emu_port_end *port, struct emu_cmd *cmd);
/* Ends a command with an error before it did anything; code: of its error event, 0 by its status. */
void emu_fault_end_command(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status, uint16_t code);
/* The end of a command that EMU_FAULT_FAILS was told of. */
void emu_fault_fail(struct emu_port_end *port, const struct emu_cmd *cmd, const struct emu_fault_failure *failure);
/* 0, or the registration's result. */
int emu_fault_registration(struct emu_port_end *port);
struct emu_fault_datagram emu_fault_datagram(struct emu_port_end *port, const struct emu_msg_datagram *wanted);

#endif
