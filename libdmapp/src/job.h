/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process knows of its job, and what the files of libdmapp give each other.
 *
 *   job ─┬─ one uGNI domain, NIC handle and source queue
 *        ├─ peers: place, data segment and heap of each PE, an end point made at the first post
 *        ├─ own segments: data, heap (with the library's areas in front of it), registrations (segments.c)
 *        ├─ threads: dynamic attributes and the account of implicit requests (completion.c)
 *        └─ parts: what else starts, stops and makes progress with the job (parts.c)
 *
 * An operation first goes the short way, libugni/src/launch.h: on memory of this host that is mapped here it is
 * done when that call returns. What cannot go there becomes a request: a uGNI post with a descriptor from a pool,
 * completed through the source queue (request.c). Nobody waits for the target.
 *
 * Memory of the heap's mapping, at the same offsets in every PE:
 *
 *   heap_map     +area_off[0]       +area_off[..]                        heap.addr = heap_map + heap_off
 *      | area 0: freed blocks | areas of the other parts ...           | heap ...                       |
 *
 * One registration covers all of it. Programs reach the heap alone; dmappi_op() reaches the areas too.
 *
 * Locks: `lock` guards the pool, the end points, the source queue and the accounts; sheap.c and each part have
 * their own. No lock is held while a callback of the program runs. The short way takes none of them.
 */
#ifndef LIBDMAPP_JOB_H
#define LIBDMAPP_JOB_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <dmapp.h>

#include "libdmapp/src/symmetric.h"
#include "libugni/src/launch.h"

#define DMAPPI_LIKELY(x)   __builtin_expect(!!(x), 1)
#define DMAPPI_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* What a descriptor's flags say; chosen so that stray bytes are none of them. */
enum dmappi_seg_mark {
    DMAPPI_MARK_DATA = 0xda5c,
    DMAPPI_MARK_SHEAP = 0xda5d,
    DMAPPI_MARK_REGISTERED = 0xda5e,
};

/* A symmetric segment of one PE. */
struct dmappi_segment {
    uint64_t addr; /* of what programs reach */
    uint64_t len_bytes;
    gni_mem_handle_t handle;
    struct gnii_launch_target *target; /* owned */
};

struct dmappi_peer {
    uint32_t nic_addr;
    uint32_t instance_id;
    _Atomic(gni_ep_handle_t) ep; /* owned; NULL until the first post. Made under the job lock */
    struct dmappi_segment seg[DMAPPI_SYMMETRIC];
    uint64_t area_addr; /* where its areas begin */
};

/* The account of a thread, kept until dmapp_finalize(). */
struct dmappi_thread {
    struct dmappi_thread *next; /* in the job's list. Job lock */
    uint32_t offload_threshold; /* the dynamic attributes */
    uint8_t put_relaxed_ordering;
    uint8_t get_relaxed_ordering;
    bool is_registered;          /* job lock */
    bool has_left;               /* the thread has ended, another one may take the account. Job lock */
    _Atomic uint64_t n_implicit; /* requests outstanding */
    _Atomic bool has_failed;     /* one of them, not yet told */
};

struct dmappi_job {
    _Atomic bool is_up;
    uint32_t n_inits;
    uint64_t epoch; /* counts jobs of this process: accounts of an earlier one are void */
    int npes;
    dmapp_pe_t pe;
    int hw_version;
    dmapp_rma_attrs_ext_t attrs; /* in force at init; static ones for good */
    dmapp_seg_desc_t data_seg;   /* our own */
    dmapp_seg_desc_t sheap_seg;
    struct dmappi_peer *peers; /* owned, npes */

    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    pthread_mutex_t lock;
    struct dmappi_thread *threads; /* owned. Job lock */
    uint32_t n_registered;         /* threads. Job lock */
    _Atomic uint64_t n_implicit;   /* requests of all threads */
    _Atomic uint64_t n_posts;      /* of any kind, outstanding */
    _Atomic bool has_failed;       /* some account's has_failed may be set */
    _Atomic uint32_t n_helpers;    /* helper threads and registered threads: then gsync is per thread */
    _Atomic bool is_lost;          /* emunic has gone */

    uint8_t *heap_map; /* owned mapping: areas, then heap */
    uint64_t heap_map_bytes;
    int heap_fd;
    const _Atomic uint64_t *freed; /* area of sheap.c: a bit per 64 bytes of the heap */
};

extern struct dmappi_job dmappi_job __attribute__((visibility("hidden")));

/* A NIC of the first generation: 64-bit atomics without minimum, maximum and floating point, gets to whole words. */
static inline bool dmappi_is_gemini(void)
{
    return dmappi_job.hw_version == GNI_DEVICE_GEMINI;
}

static inline bool dmappi_is_up(void)
{
    return atomic_load_explicit(&dmappi_job.is_up, memory_order_acquire);
}

/* ---- init.c ---- */

/* out[pe * len ...] becomes what each PE passed as in. Collective over the job, by PMI. 0 or -EIO. */
int dmappi_exchange(const void *in, void *out, size_t len_bytes);
/* All PEs, by PMI. 0 or -EIO. */
int dmappi_barrier(void);
/* uGNI's code as DMAPP's: of a registration or of a post. */
dmapp_return_t dmappi_rc(gni_return_t rc);

/* ---- parts.c: what other files add to the job. Each call may be NULL. ---- */

struct dmappi_part {
    const char *name;
    uint64_t (*area_bytes)(void); /* of symmetric memory wanted; attributes are in force, npes is known. Zeroed */
    int (*start)(void *area);     /* areas are registered and exchanged; before any PE leaves
                                           dmapp_init(). 0 or negative errno */
    void (*progress)(void);       /* now and then from whoever waits; no lock held */
    void (*drain)(void);          /* dmapp_finalize(), before the barrier: complete what is under way */
    void (*stop)(void);           /* after it: forget everything. Also after a start that failed */
};

extern const struct dmappi_part *const dmappi_parts[];
extern const unsigned dmappi_n_parts;

/* ---- threads, completion.c ---- */

extern _Thread_local struct dmappi_thread *dmappi_thread_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
extern _Thread_local uint64_t dmappi_thread_epoch /* of the job that the account belongs to */
    __attribute__((tls_model("initial-exec"), visibility("hidden")));
struct dmappi_thread *dmappi_thread_make(void);

/* The calling thread's account while the library is up. NULL: out of memory. */
static inline struct dmappi_thread *dmappi_thread(void)
{
    return DMAPPI_LIKELY(dmappi_thread_epoch == dmappi_job.epoch) ? dmappi_thread_self : dmappi_thread_make();
}

extern const struct dmappi_part dmappi_completion_part;

/* ---- waiting, completion.c ---- */

/*
 * One step of whoever waits: collects completions, lets parts and progress callbacks of the program run, is polite if
 * there was nothing (it may sleep until something arrives in this process's exported memory). No lock held.
 */
void dmappi_wait_step(void);

/* True once emunic has gone. */
static inline bool dmappi_is_lost(void)
{
    return atomic_load_explicit(&dmappi_job.is_lost, memory_order_relaxed);
}

/* ---- operations of the library itself: area.c ---- */

/*
 * These block, and work on the areas or the heap of a PE. `at` is the address of the same place in this process.
 * DMAPP_RC_SUCCESS, _TRANSACTION_ERROR, _RESOURCE_ERROR.
 */

/* Returns when the data are there. */
dmapp_return_t dmappi_area_put(dmapp_pe_t pe, const void *at, const void *data, uint64_t len_bytes);

/* The length is a multiple of 4 bytes. */
dmapp_return_t dmappi_area_get(dmapp_pe_t pe, const void *at, void *data, uint64_t len_bytes);
/* Data first, then the 64-bit word `flag`, which lies in the same mapping. len_bytes may be 0. */
dmapp_return_t dmappi_area_put_flag(dmapp_pe_t pe, const void *at, const void *data, uint64_t len_bytes,
                                    const void *flag, uint64_t value);
/* An atomic as the NIC knows it. */
struct dmappi_atomic {
    unsigned op; /* enum emu_amo_op */
    bool is_32bit;
    uint64_t operand1;
    uint64_t operand2;
};

/* 64 bits. old_out may be NULL. */
dmapp_return_t dmappi_area_amo(dmapp_pe_t pe, const void *at, const struct dmappi_atomic *atomic, uint64_t *old_out);

/*
 * A blocking 64-bit atomic on a remote triple, with the checks and codes of the public calls; what locks are made of.
 * old_out may be NULL.
 */
dmapp_return_t dmappi_amo(void *addr, dmapp_seg_desc_t *seg, dmapp_pe_t pe, const struct dmappi_atomic *atomic,
                          uint64_t *old_out);

#endif
