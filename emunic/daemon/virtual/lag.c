/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/daemon/virtual/lag.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/virtual/inner.h"

#define ROWS_MAX 4096u /* of processes that have ended: a server outlives its jobs */

/* ---- what happens ---- */

void emu_lag_note_late(struct emu_virtual *v, struct emu_virtual_process *p, uint64_t ps)
{
    struct emu_lag *lags[] = { &v->lag, p ? &p->lag : NULL };

    for (int i = 0; i < 2 && lags[i]; i++) {
        lags[i]->late_commands++;
        lags[i]->late_ps += ps;
    }
}

void emu_lag_note_spin(struct emu_virtual *v, struct emu_virtual_process *p)
{
    v->lag.spins++;
    p->lag.spins++;
}

/* ---- what is told ---- */

static bool has_any(const struct emu_lag *lag)
{
    return lag->late_commands > 0 || lag->spins > 0;
}

/* Of the run, so far. */
static uint64_t length_ps(const struct emu_virtual *v)
{
    return LIST_EMPTY(&v->processes) && v->ended.latest_ps > v->time.now_ps ? v->ended.latest_ps : v->time.now_ps;
}

static bool is_exact(const struct emu_virtual *v)
{
    return (double)v->lag.late_ps <= (double)length_ps(v) * v->options.max_lag_ppm * 1e-6;
}

static void tell(const struct emu_virtual *v, const struct emu_lag *lag, const char *who)
{
    if (lag->spins > 0)
        emu_log(EMU_LOG_WARN, "virtual time: %s%llu times computed for long without a call, and others went on", who,
                (unsigned long long)lag->spins);
    if (lag->late_commands > 0)
        emu_log(EMU_LOG_WARN, "virtual time: %s%llu operations came late, by %.3f us in all, of %.3f us", who,
                (unsigned long long)lag->late_commands, (double)lag->late_ps * 1e-6, (double)length_ps(v) * 1e-6);
}

static struct emu_lag_row row_of(const struct emu_virtual_process *p)
{
    return (struct emu_lag_row){ .rank = p->rank, .pid = (uint32_t)p->member->pid, .lag = p->lag };
}

void emu_lag_end_process(struct emu_virtual *v, const struct emu_virtual_process *p)
{
    struct emu_lag_row *rows;
    char who[32];

    if (!has_any(&p->lag))
        return;
    snprintf(who, sizeof(who), "rank %d: ", (int)p->rank);
    tell(v, &p->lag, who);
    /* Without memory, or behind so many, its part is in the sum all the same. */
    rows = v->ended.n_rows < ROWS_MAX ? reallocarray(v->ended.rows, v->ended.n_rows + 1, sizeof(*rows)) : NULL;
    if (!rows)
        return;
    v->ended.rows = rows;
    v->ended.rows[v->ended.n_rows++] = row_of(p);
}

void emu_lag_end(struct emu_virtual *v)
{
    tell(v, &v->lag, "in all, ");
    if (!is_exact(v))
        emu_log(EMU_LOG_ERROR,
                "virtual time: THE FIGURES OF THIS RUN ARE NOT THE MODEL'S: its lag is %.3g %% of it, %.3g %% at most",
                (double)v->lag.late_ps / (double)length_ps(v) * 100, (double)v->options.max_lag_ppm * 1e-4);
    free(v->ended.rows);
}

int emu_lag_report(const struct emu_server *server, struct emu_time_report *report_out)
{
    const struct emu_virtual *v = virtual_of(server);
    const struct emu_virtual_process *p;
    size_t n = 0;

    if (!v)
        return -ENOENT;
    LIST_FOREACH(p, &v->processes, link)
        n += has_any(&p->lag);
    *report_out = (struct emu_time_report){ .now_ps = length_ps(v),
                                            .max_lag_ppm = v->options.max_lag_ppm,
                                            .is_exact = is_exact(v),
                                            .lag = v->lag,
                                            .n_missing_jobs = v->jobs.n_missing,
                                            .rows = calloc(v->ended.n_rows + n + 1, sizeof(*report_out->rows)) };
    if (!report_out->rows)
        return -ENOMEM;
    if (v->ended.n_rows > 0)
        memcpy(report_out->rows, v->ended.rows, v->ended.n_rows * sizeof(*v->ended.rows));
    report_out->n_rows = v->ended.n_rows;
    LIST_FOREACH(p, &v->processes, link) {
        if (has_any(&p->lag))
            report_out->rows[report_out->n_rows++] = row_of(p);
    }
    return 0;
}
