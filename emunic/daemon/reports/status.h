/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What EMU_MSG_STATUS tells: hosts, domains, nodes and ports of the whole machine. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_REPORTS_STATUS_H
#define EMUNIC_DAEMON_REPORTS_STATUS_H

#include <jansson.h>

struct emu_gathered;
struct emu_server;
struct emu_word_list;

/* With what the other hosts have said; NULL: this is the only one. */
json_t *emu_status_describe(struct emu_server *server, const struct emu_gathered *gathered);
/* What this host tells: rows of abi/host_admin.h. */
void emu_status_rows(struct emu_server *server, struct emu_word_list *rows);

#endif
