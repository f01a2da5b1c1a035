/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/daemon/reports/time_report.h"

#include <stdlib.h>

#include "emunic/abi/abi.h"
#include "emunic/daemon/virtual/lag.h"

static json_t *describe_row(const struct emu_lag_row *row)
{
    json_t *rank = row->rank == EMU_NID_NONE ? json_null() : json_integer(row->rank);

    return json_pack("{so sI sI sI sI}", "rank", rank, "pid", (json_int_t)row->pid, "late_operations",
                     (json_int_t)row->lag.late_commands, "late_ps", (json_int_t)row->lag.late_ps, "spins",
                     (json_int_t)row->lag.spins);
}

json_t *emu_time_describe(const struct emu_server *server)
{
    struct emu_time_report report;
    json_t *ranks;

    if (emu_lag_report(server, &report) < 0)
        return NULL;
    ranks = json_array();
    for (size_t i = 0; i < report.n_rows; i++)
        json_array_append_new(ranks, describe_row(&report.rows[i]));
    free(report.rows);
    return json_pack("{sI sI sb sI sI sI sI so}", "now_ps", (json_int_t)report.now_ps, "max_lag_ppm",
                     (json_int_t)report.max_lag_ppm, "is_exact", (int)report.is_exact, "late_operations",
                     (json_int_t)report.lag.late_commands, "late_ps", (json_int_t)report.lag.late_ps, "spins",
                     (json_int_t)report.lag.spins, "missing_jobs", (json_int_t)report.n_missing_jobs, "ranks", ranks);
}
