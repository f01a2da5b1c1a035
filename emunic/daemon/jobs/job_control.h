/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs: requests of the admin socket.
 */
#ifndef EMUNIC_DAEMON_JOBS_JOB_CONTROL_H
#define EMUNIC_DAEMON_JOBS_JOB_CONTROL_H

#include "emunic/daemon/core/part.h"

extern const struct emu_part emu_jobs_part;

#endif
