/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports of running servers: finding the servers, asking them, and showing the answers to people.
 * Reports are the JSON objects of emunic/daemon/reports/report.c.
 */
#ifndef EMUNIC_CLI_SERVER_REPORT_H
#define EMUNIC_CLI_SERVER_REPORT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "emunic/client/session.h"

/* Names hosts of the machine that a report lacks, on stderr. */
void emu_cli_tell_missing(const char *verb, const json_t *report);

/* How long answers of a server may take: what it has said itself, and some seconds for us. */
void emu_cli_limit_answers(struct emu_session *session);

/* Asks one server for EMU_MSG_STATUS, EMU_MSG_LINKS or EMU_MSG_FAULTS. 0 or negative errno. */
int emu_cli_ask(struct emu_session *session, uint16_t type, json_t **report_out);

/**
 * Ask a server, or all servers of this user in this network namespace.
 *
 * @param[in]  verb         For messages.
 * @param[in]  server       Name, or NULL for all.
 * @param[in]  type         EMU_MSG_STATUS, EMU_MSG_LINKS or EMU_MSG_FAULTS.
 * @param[out] answers_out  {"schema": 1, "servers": [report, ...]}, servers in the order of their names.
 * @return EMU_EXIT_DONE, also when no server runs and none was named, or EMU_EXIT_FAILED after a message.
 */
int emu_cli_collect(const char *verb, const char *server, uint16_t type, json_t **answers_out);

/**
 * Ask as emu_cli_collect() does and show the answers on stdout: as one JSON object, or each with `print`.
 *
 * @param[in] print     Shows one report to people. 0 or negative errno.
 * @param[in] what      For `print`.
 * @return EMU_EXIT_DONE or, after a message, EMU_EXIT_FAILED.
 */
int emu_cli_show(const char *verb, const char *server, uint16_t type, bool is_json,
                 int (*print)(const json_t *report, const void *what), const void *what);

/* One line of JSON on stdout. EMU_EXIT_DONE or EMU_EXIT_FAILED after a message. */
int emu_cli_print_json(const char *verb, const json_t *object, FILE *out);

/* Tables. 0 or -ENOMEM. */
int emu_cli_print_status(const json_t *report, FILE *out);
/*
 * One row per flow with the path of its messages; in virtual time, per path that packets have taken. Prints nothing
 * without any.
 */
int emu_cli_print_paths(const json_t *report, FILE *out);
/* One row per link that carried something, the busiest first. Prints nothing without such links. */
int emu_cli_print_links(const json_t *report, FILE *out);

#endif
