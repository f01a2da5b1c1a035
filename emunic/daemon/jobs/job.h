/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs: requests of the admin socket.
 */
#ifndef EMUNIC_DAEMON_JOBS_JOB_H
#define EMUNIC_DAEMON_JOBS_JOB_H

#include <stdbool.h>
#include <stdint.h>

struct emu_admin_request;
struct emu_domain;
struct emu_msg_job;
struct emu_server;
struct emu_word_list;
struct emu_words;

/* The job that a request to suspend or resume means, or NULL. */
struct emu_domain *emu_job_find(struct emu_server *server, const struct emu_msg_job *job);
/*
 * Each of the next four: on the head, or while this host is alone, it is for us to refuse; the others follow what the
 * head has done (is_ordered, emu_job_follow()).
 *
 * Configuring fills in the first entry of a table that came along, and the number of the job's domain. origin: host of
 * who asks.
 */
int emu_job_configure(struct emu_server *server, struct emu_admin_request *request, uint32_t origin);
int emu_job_follow(struct emu_server *server, const struct emu_admin_request *request);
int emu_job_clear_ntt(struct emu_server *server, const struct emu_msg_job *job, bool is_ordered);
/* 0 or EMU_DEFERRED: then emu_admin_suspended() is called with `order`; or as at the admin socket. */
int emu_job_suspend(struct emu_server *server, struct emu_admin_request *request, bool is_ordered, uint64_t order);
int emu_job_resume(struct emu_server *server, struct emu_admin_request *request, bool is_ordered);
/* The waiting for a suspension is over: quiet, or given up. */
void emu_job_suspended(struct emu_domain *domain, bool is_quiet);
/* What jobs are, for another host; and what another host has said. False: it makes no sense. */
void emu_job_put_ntt(const struct emu_server *server, struct emu_word_list *list);
bool emu_job_take_ntt(struct emu_server *server, struct emu_words *words);
void emu_job_put_state(const struct emu_domain *domain, struct emu_word_list *list);
bool emu_job_take_state(struct emu_server *server, struct emu_domain *domain, struct emu_words *words);
/* A domain goes. */
void emu_job_forget(struct emu_server *server, struct emu_domain *domain);
void emu_ntt_figures(const struct emu_server *server, uint32_t *used_out, uint32_t *granularity_out);

#endif
