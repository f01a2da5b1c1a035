/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lag: what the model could not have exactly, of each process and of the run. It is told when a process and the run
 * end, and kept for reports. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_VIRTUAL_LAG_H
#define EMUNIC_DAEMON_VIRTUAL_LAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct emu_server;
struct emu_virtual;
struct emu_virtual_process;

struct emu_lag {
    uint64_t late_commands; /* that came from a time that had passed */
    uint64_t late_ps;       /* by so much in all */
    uint64_t spins;         /* a thread computed for long without a call, and others went on */
};

/* Of a process that has any. */
struct emu_lag_row {
    uint32_t rank; /* EMU_NID_NONE: none */
    uint32_t pid;
    struct emu_lag lag;
};

struct emu_time_report {
    uint64_t now_ps;
    uint32_t max_lag_ppm;
    bool is_exact; /* late by no more than that */
    struct emu_lag lag;
    uint32_t n_missing_jobs; /* until those that are here begin */
    size_t n_rows;
    struct emu_lag_row *rows; /* the caller's to free() */
};

/* The process: NULL if it has gone. */
void emu_lag_note_late(struct emu_virtual *v, struct emu_virtual_process *p, uint64_t ps);
void emu_lag_note_spin(struct emu_virtual *v, struct emu_virtual_process *p);

/* The process ends. */
void emu_lag_end_process(struct emu_virtual *v, const struct emu_virtual_process *p);
/* The run ends. */
void emu_lag_end(struct emu_virtual *v);

/* 0; -ENOENT: the server's time is that of the host; -ENOMEM. */
int emu_lag_report(const struct emu_server *server, struct emu_time_report *report_out);

#endif
