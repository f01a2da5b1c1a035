/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file with a line for each operation of a run in virtual time: what it was, and when it happened in the model. A
 * line is written when the operation is complete. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_VIRTUAL_TRACE_H
#define EMUNIC_DAEMON_VIRTUAL_TRACE_H

#include "emunic/daemon/core/part.h"
#include "emunic/model/nic_model.h"

struct emu_virtual_trace;

/* A line to be; owned by its operation until it is written. */
struct emu_virtual_trace_row {
    uint64_t number; /* in the order of posting, from 0 */
    struct emu_nic_proc from;
    struct emu_nic_op spec;
    uint64_t posted_ps;
    uint64_t begun_ps; /* 0: not told */
    uint64_t arrived_ps;
    uint64_t ended_ps;
};

/* 0, or a negative errno with its reason: the file cannot be made. */
int emu_virtual_trace_open(const char *path, struct emu_virtual_trace **trace_out, struct emu_complaint *why);

/* NULL is fine. A file that is not whole is told. */
void emu_virtual_trace_close(struct emu_virtual_trace *trace);

/* NULL: there is no trace, or no memory, which leaves the operation out. */
struct emu_virtual_trace_row *emu_virtual_trace_begin(struct emu_virtual_trace *trace, struct emu_nic_proc from,
                                                      const struct emu_nic_op *spec, uint64_t posted_ps);

/* The operation is complete: frees the row. NULL is fine. */
void emu_virtual_trace_end(struct emu_virtual_trace *trace, struct emu_virtual_trace_row *row);

#endif
