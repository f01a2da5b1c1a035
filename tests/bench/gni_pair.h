/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks with a registered buffer each, an endpoint to the other and a queue for either direction: what every
 * measurement of GNI starts from. Only GNI and PMI calls, as in any program; errors end the job.
 */
#ifndef BENCH_GNI_PAIR_H
#define BENCH_GNI_PAIR_H

#include "examples/common.h"
#include "tests/bench/common.h"

#define PAIR_CQ_ENTRIES 4096
#define PAIR_WINDOW     512 /* operations under way in a rate measurement */
#define PAIR_WARM_UP    1000

struct pair {
    struct ex_job job;
    struct bench_options options;
    gni_cq_handle_t src_cq; /* our operations are complete */
    gni_cq_handle_t dst_cq; /* something arrived */
    gni_ep_handle_t ep;
    uint64_t *mem; /* owned, malloc'd, registered with dst_cq */
    gni_mem_handle_t mem_hndl;
    uint64_t peer_addr;
    gni_mem_handle_t peer_hndl;
};

/* Rank r runs on the r-th CPU when the options say so. */
void pair_open(struct pair *pair, struct bench_options options, size_t len_bytes);
void pair_close(struct pair *pair);

/* One operation between the first bytes of both buffers; remote at +64, so that nobody overwrites what it sends. */
gni_post_descriptor_t pair_descriptor(const struct pair *pair, gni_post_type_t type, uint16_t cq_mode,
                                      size_t len_bytes);

/* Poll until the queue gives an entry. */
gni_cq_entry_t pair_wait(gni_cq_handle_t cq);
/* Wait for the one operation under way and take its descriptor back. */
void pair_wait_post(struct pair *pair);

/* Time of one operation when each is waited for before the next. */
double pair_blocking_us(struct pair *pair, gni_post_descriptor_t *operation, long n);
/* Operations per microsecond with PAIR_WINDOW under way, all completions consumed. */
double pair_rate(struct pair *pair, const gni_post_descriptor_t *operation, long n);

#endif
