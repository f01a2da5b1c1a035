/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Suspending: the commands of a job wait until it is resumed.
 */
#ifndef EMUNIC_DAEMON_JOBS_SUSPEND_H
#define EMUNIC_DAEMON_JOBS_SUSPEND_H

#include <stdbool.h>
#include <stdint.h>

struct emu_domain;
struct emu_server;

/* Of a job that runs. 0; EMU_DEFERRED: the order ends when nobody is inside, or the time is up; -ENOMEM. */
int emu_job_suspend(struct emu_server *server, struct emu_domain *domain, uint64_t order, uint32_t timeout_ms);
/* Does nothing if it runs. */
void emu_job_run_again(struct emu_server *server, struct emu_domain *domain);
/* It was suspended or resumed while this host was not told. */
void emu_job_follow_suspension(struct emu_server *server, struct emu_domain *domain, bool is_suspended);

#endif
