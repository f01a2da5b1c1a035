/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every GNI program needs before its first transfer, shared by the examples so that each of them can show one
 * idea only. Plain GNI and PMI: nothing here knows about the emulator.
 *
 * Errors end the whole job: the examples have nothing to save, and a peer must not wait for a rank that gave up.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <stddef.h>
#include <stdint.h>

#include <gni_pub.h>

/* Where a rank can be reached. Filled for every rank by ex_start(). */
struct ex_peer {
    uint32_t nic_addr; /* NIC address of its node */
    uint32_t inst_id;  /* its instance in the communication domain */
};

struct ex_job {
    int rank;
    int n_ranks;
    gni_nic_device_t device_type;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    struct ex_peer *peers; /* n_ranks entries, owned */
};

/* Print "file:line: rank R: text" to stderr and end the job with status 1. */
_Noreturn void ex_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#define EX_FAIL(...) ex_fail(__FILE__, __LINE__, __VA_ARGS__)

/* A call that has to succeed: on anything but GNI_RC_SUCCESS say where, which call and why, and end the job. */
#define EX_GNI(call) ex_gni_check((call), #call, __FILE__, __LINE__)
void ex_gni_check(gni_return_t rc, const char *call, const char *file, int line);

/* A fact that has to hold; the remaining arguments say what was found instead. */
#define EX_EXPECT(condition, ...)                                                                                      \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            EX_FAIL(__VA_ARGS__);                                                                                      \
    } while (0)

/*
 * Start up: PMI, credentials, communication domain attached to the NIC, addresses of all ranks.
 * mode_bits: GNI_CDM_MODE_* beyond GNI_CDM_MODE_ERR_NO_KILL, which is always set.
 */
void ex_start(struct ex_job *job, uint32_t mode_bits);

/* Shut down, after the caller destroyed its endpoints, queues and registrations. Waits for all ranks. */
void ex_stop(struct ex_job *job);

void ex_barrier(void);

/* out[r * len_bytes ...] becomes what rank r passed as in, on every rank. */
void ex_allgather(const struct ex_job *job, const void *in, void *out, size_t len_bytes);

/* Zeroed memory that begins at a page border; ends the job when there is none. Release with free(). */
void *ex_alloc(size_t len_bytes);

/* Bind a new endpoint to a rank; src_cq takes its local completions and may be NULL for datagrams only. */
gni_ep_handle_t ex_connect(const struct ex_job *job, gni_cq_handle_t src_cq, int peer);

/* Unbind and destroy. Polls src_cq for what is still outstanding on the endpoint. */
void ex_disconnect(gni_ep_handle_t ep, gni_cq_handle_t src_cq);

/* Poll until the queue gives an entry; errors and a minute without one end the job. */
gni_cq_entry_t ex_wait_event(gni_cq_handle_t cq);

/* Wait until a post is complete and check that it is this one. One post outstanding on the queue. */
void ex_wait_post(gni_cq_handle_t src_cq, const gni_post_descriptor_t *descr);

/* For polling loops: call after every poll that found nothing; ends the job after a minute of that. */
void ex_idle(void);
/* ... and after a poll that found something. */
void ex_busy(void);

double ex_time_us(void);

/* A pattern that depends on position and seed, so that misplaced and stale bytes show. */
void ex_pattern_fill(void *buffer, size_t len_bytes, uint32_t seed);
/* Index of the first wrong byte, or len_bytes. */
size_t ex_pattern_check(const void *buffer, size_t len_bytes, uint32_t seed);

#endif
