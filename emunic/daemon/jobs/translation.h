/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The translation table: the node that each address of a bound job leads to.
 */
#ifndef EMUNIC_DAEMON_JOBS_TRANSLATION_H
#define EMUNIC_DAEMON_JOBS_TRANSLATION_H

#include <stdbool.h>
#include <stdint.h>

struct emu_change;
struct emu_domain;
struct emu_msg_job;
struct emu_server;
struct emu_word_list;
struct emu_words;

/* ---- entries ---- */

/* Entries that are in use, and how many addresses each has. */
void emu_ntt_figures(const struct emu_server *server, uint32_t *used_out, uint32_t *granularity_out);
/* Are all entries from `base` on in use? False also for n = 0. */
bool emu_ntt_is_known(const struct emu_server *server, uint32_t base, uint32_t n);
/* 0; -EINVAL: the table has no such entries; -ENOMEM: there is no table. */
int emu_ntt_check_range(struct emu_server *server, uint32_t base, uint32_t n);
/*
 * Finds room for the request's entries and fills it; the request's granularity is set if it was 0. -EINVAL: they are
 * not sound; -ENOSPC: no room, or another granularity; -ENOMEM.
 */
int emu_ntt_allocate(struct emu_server *server, struct emu_change *request, uint32_t *base_out);
/* Fills entries that the head has found; the range was checked. -EINVAL: they are not sound. */
int emu_ntt_fill(struct emu_server *server, const struct emu_change *request, uint32_t base);
void emu_ntt_release(struct emu_server *server, uint32_t base, uint32_t n);
/* GNI_JobClearNtt. -EINVAL: not all are in use; -ENOSPC: jobs are bound to some, and nobody has ordered it. */
int emu_ntt_clear(struct emu_server *server, const struct emu_msg_job *job, bool is_ordered);

/* ---- addresses: of entries that are in use ---- */

/* How many addresses n entries have. */
uint64_t emu_ntt_n_addresses(const struct emu_server *server, uint32_t n);
/* The node that an address leads to; address 0 is the first one of entry `base`. */
uint32_t emu_ntt_translate(const struct emu_server *server, uint32_t base, uint32_t address);
/* From now on the domain's members call its nodes by address. */
void emu_ntt_bind(struct emu_server *server, struct emu_domain *domain, uint32_t base, uint32_t size);

/* ---- for the part ---- */

/* Releases its entries, if they go with it. */
void emu_ntt_end_domain(struct emu_server *server, struct emu_domain *domain);
/* struct emu_state_row. */
void emu_ntt_put_state(const struct emu_server *server, const struct emu_domain *domain, struct emu_word_list *list);
bool emu_ntt_take_state(struct emu_server *server, struct emu_domain *domain, struct emu_words *words);
void emu_ntt_destroy(struct emu_server *server);

#endif
