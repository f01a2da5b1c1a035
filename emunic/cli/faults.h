/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `emunic fault` and `emunic run --faults` share.
 */
#ifndef EMUNIC_CLI_FAULTS_H
#define EMUNIC_CLI_FAULTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "emunic/abi/fault.h"
#include "emunic/client/session.h"

/*
 * Each of these sends a request that changes the machine on an admin session; hosts that have not done it are named on
 * stderr. 0 or negative errno.
 */

/* Rules: see emu_fault_set_rules(); -ENODEV: no such domain. */
int emu_cli_set_faults(struct emu_session *session, uint32_t domain, const struct emu_fault_rule *rules,
                       uint32_t n_rules, bool appends);

int emu_cli_clear_faults(struct emu_session *session, uint32_t domain, uint32_t id);
/* See emu_network_change(). */
int emu_cli_change_network(struct emu_session *session, const struct emu_msg_network *change);

/* The rules of a faults report as a table, of one domain or (EMU_FAULT_ALL_DOMAINS) of all. 0 or -ENOMEM. */
int emu_cli_print_faults(const json_t *report, uint32_t only_domain, unsigned indent, FILE *out);

#endif
