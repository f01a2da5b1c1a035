/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions that all hosts answer, for one connection that waits: their part of a report, or whether they have heard
 * that somebody listens. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_REPORTS_GATHER_H
#define EMUNIC_DAEMON_REPORTS_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/daemon/world/word_list.h"

struct emu_connection;
struct emu_host_admin;
struct emu_msg;
struct emu_server;

int emu_gather_create(struct emu_server *server);
void emu_gather_destroy(struct emu_server *server);

/* What the others have said: rows of abi/host_admin.h. Not of hosts that are not up. */
struct emu_gathered {
    uint32_t n_hosts;
    const struct emu_word_list *rows; /* of each host; ours is empty */
    const bool *is_missing;           /* of each host: it has not answered */
};

/*
 * EMU_MSG_STATUS, EMU_MSG_LINKS or EMU_MSG_FAULTS, of all hosts. A descriptor, if nobody has to be asked; EMU_GATHERS:
 * the answer comes with one; or negative errno.
 */
#define EMU_GATHERS (1 << 30)
int emu_gather_report(struct emu_connection *connection, const struct emu_msg *msg);
/* EMU_DEFERRED: the request is answered, with the descriptor (borrowed), when all hosts know that we listen; or 0. */
int emu_gather_listening(struct emu_connection *connection, const struct emu_msg *msg, int fd);
/* The connection waits no longer. */
void emu_gather_forget(struct emu_server *server, const struct emu_connection *connection);
bool emu_gather_is_busy(const struct emu_server *server);
void emu_gather_round(struct emu_server *server, uint64_t now_ns);
/* When to look again, by emu_hosts_now_ns(); UINT64_MAX: nothing waits. */
uint64_t emu_gather_next_ns(const struct emu_server *server);

/* For admin.c. False: the message makes no sense. */
bool emu_gather_asked(struct emu_server *server, uint32_t host, const struct emu_host_admin *m);
bool emu_gather_rows(struct emu_server *server, uint32_t host, const struct emu_host_admin *m);
bool emu_gather_heard(struct emu_server *server, uint32_t host, uint64_t token);
void emu_gather_host_down(struct emu_server *server, uint32_t host);

#endif
