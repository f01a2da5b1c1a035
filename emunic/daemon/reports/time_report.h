/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMUNIC_DAEMON_REPORTS_TIME_REPORT_H
#define EMUNIC_DAEMON_REPORTS_TIME_REPORT_H

#include <jansson.h>

struct emu_server;

/*
 * The server's virtual time and its lag: {"now_ps", "max_lag_ppm", "is_exact", "late_operations", "late_ps", "spins",
 * "missing_jobs", "ranks": [{"rank" or null, "pid", "late_operations", "late_ps", "spins"}...]}. NULL: it has none, or
 * out of memory.
 */
json_t *emu_time_describe(const struct emu_server *server);

#endif
