/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of the status: facts of a host, a session, a domain, a node and a port.
 *
 * Each part puts its own words of a row (emu_part.status); reports/status.c sends the rows to other hosts and gives the
 * words their names. Words that no part puts are 0. The order is that of abi/host_admin.h.
 */
#ifndef EMUNIC_DAEMON_CORE_STATUS_ROW_H
#define EMUNIC_DAEMON_CORE_STATUS_ROW_H

#include <stdint.h>

#include "emunic/abi/host_admin.h"
#include "emunic/abi/table.h"

enum emu_status_host_word {
    EMU_STATUS_HOST_PID,
    EMU_STATUS_HOST_UPTIME_MS,
    EMU_STATUS_HOST_ROUNDS,
    EMU_STATUS_HOST_SLEEPS,
    EMU_STATUS_HOST_WORDS
};

struct emu_rights;

/* This host. */
struct emu_status_host {
    uint64_t words[EMU_STATUS_HOST_WORDS];
    char texts[EMU_HOST_TEXTS][EMU_HOST_TEXT_MAX + 1];
    const char *bind;                /* borrowed: option --bind; other hosts are not told */
    const struct emu_rights *rights; /* borrowed: what emunic has kept. The same */
};

/* What went between this host and another one; other hosts are not told. */
enum emu_status_session_word {
    EMU_STATUS_SESSION_COUNT,
    EMU_STATUS_SESSION_MESSAGES_SENT,
    EMU_STATUS_SESSION_MESSAGES_RECEIVED,
    EMU_STATUS_SESSION_PACKETS_SENT,
    EMU_STATUS_SESSION_PACKETS_RECEIVED,
    EMU_STATUS_SESSION_BYTES_SENT,
    EMU_STATUS_SESSION_BYTES_RECEIVED,
    EMU_STATUS_SESSION_PUT_BYTES,
    EMU_STATUS_SESSION_GET_BYTES,
    EMU_STATUS_SESSION_QUEUED,
    EMU_STATUS_SESSION_REFUSED,
    EMU_STATUS_SESSION_COUNTS,
    EMU_STATUS_SESSION_CIPHER = EMU_STATUS_SESSION_COUNTS, /* enum emu_cipher of the present session */
    EMU_STATUS_SESSION_WORDS
};

enum emu_status_domain_word {
    EMU_STATUS_DOMAIN_NUMBER, /* common_number */
    EMU_STATUS_DOMAIN_ID,
    EMU_STATUS_DOMAIN_PTAG,
    EMU_STATUS_DOMAIN_COOKIE,
    EMU_STATUS_DOMAIN_UID,
    EMU_STATUS_DOMAIN_RANKS,
    EMU_STATUS_DOMAIN_MEMBERS,
    EMU_STATUS_DOMAIN_ATTACHED,
    EMU_STATUS_DOMAIN_MEMBER_LIMIT,
    EMU_STATUS_DOMAIN_IS_ENDING,
    EMU_STATUS_DOMAIN_FAULT_RULES,
    EMU_STATUS_DOMAIN_WORDS
};

enum emu_status_node_word {
    EMU_STATUS_NODE_NID,
    EMU_STATUS_NODE_MEMORY_DOMAINS,
    EMU_STATUS_NODE_AMO_COMMANDS, /* from here a row of their own, where caches of atomics are used */
    EMU_STATUS_NODE_AMO_HITS,
    EMU_STATUS_NODE_AMO_HOST_READS,
    EMU_STATUS_NODE_AMO_HOST_WRITES,
    EMU_STATUS_NODE_WORDS
};
#define EMU_STATUS_NODE_AMO_WORDS (EMU_STATUS_NODE_WORDS - EMU_STATUS_NODE_AMO_COMMANDS)

enum emu_status_port_word {
    EMU_STATUS_PORT_INDEX,
    EMU_STATUS_PORT_NID,
    EMU_STATUS_PORT_INSTANCE_ID,
    EMU_STATUS_PORT_PID,
    EMU_STATUS_PORT_COMMANDS,
    EMU_STATUS_PORT_COMMANDS_WAITING,
    EMU_STATUS_PORT_TRANSFERS,
    EMU_STATUS_PORT_QUEUES,
    EMU_STATUS_PORT_QUEUES_IN_OVERRUN,
    EMU_STATUS_PORT_MEMORY_DOMAINS,
    EMU_STATUS_PORT_DATAGRAMS,
    EMU_STATUS_PORT_TX_OPERATIONS,
    EMU_STATUS_PORT_TX_BYTES,
    EMU_STATUS_PORT_TX_PACKETS,
    EMU_STATUS_PORT_ERRORS,
    EMU_STATUS_PORT_METHODS, /* number and bytes of the memory domains of each method */
    EMU_STATUS_PORT_WORDS = EMU_STATUS_PORT_METHODS + 2 * EMU_MEMORY_METHODS
};

#endif
