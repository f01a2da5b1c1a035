/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users in the status: rows of this host, and what they say in a report.
 */
#ifndef EMUNIC_DAEMON_REPORTS_USER_ROWS_H
#define EMUNIC_DAEMON_REPORTS_USER_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct emu_server;
struct emu_word_list;
struct emu_words;

void emu_user_rows_put(struct emu_server *server, struct emu_word_list *rows);
/* One row behind its kind, of that host. Users of a host come in the order of their uids. False: it makes no sense. */
bool emu_user_rows_take(struct emu_words *words, uint32_t host, json_t *users);

#endif
