/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs: requests of the admin socket.
 */
#ifndef EMUNIC_DAEMON_JOB_H
#define EMUNIC_DAEMON_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/base/socket.h"

struct emu_connection;
struct emu_domain;
struct emu_msg;
struct emu_msg_job;
struct emu_server;

int emu_job_configure(struct emu_connection *connection, struct emu_msg_job *job, const struct emu_fds *fds);
int emu_job_clear_ntt(struct emu_connection *connection, const struct emu_msg_job *job);
int emu_job_suspend(struct emu_connection *connection, const struct emu_msg *request);
int emu_job_resume(struct emu_connection *connection, const struct emu_msg_job *job);
/* The waiting for a suspension is over: quiet, or given up. */
void emu_job_suspended(struct emu_domain *domain, bool is_quiet);
/* A domain goes. */
void emu_job_forget(struct emu_server *server, struct emu_domain *domain);
void emu_ntt_figures(const struct emu_server *server, uint32_t *used_out, uint32_t *granularity_out);

#endif
