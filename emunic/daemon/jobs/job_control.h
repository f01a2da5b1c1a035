/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs: requests of the admin socket.
 */
#ifndef EMUNIC_DAEMON_JOBS_JOB_CONTROL_H
#define EMUNIC_DAEMON_JOBS_JOB_CONTROL_H

#include <stdint.h>

#include "emunic/daemon/core/part.h"

extern const struct emu_part emu_jobs_part;

/* Entries of the translation table that are in use, and how many addresses each has. */
void emu_ntt_figures(const struct emu_server *server, uint32_t *used_out, uint32_t *granularity_out);

#endif
