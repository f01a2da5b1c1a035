/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libsma inside: what a process knows of its job, and the way of one operation.
 *
 * The public functions are generated from one table (../table.py): each checks nothing, names itself and calls what is
 * declared here. An operation first goes the short way: the address is found in the symmetric heap or the data segment
 * of the PE, and gnii_launch() does the rest; it is then complete and visible. What that does not take goes to
 * dmapp_*(), out of line. With SMA_DEBUG=1 nothing goes the short way, because `n_fast` is 0: so checks cost nothing
 * when they are off.
 *
 * Ordering: all that went the short way is visible in its order (x86). A quiet has to wait only if something was posted
 * since the last one (`n_posted`, `n_complete`), and orders later loads; a fence only in that case.
 *
 * Threads: any thread may operate. Collectives of one team are one thread's at a time, as OpenSHMEM says.
 */
#ifndef MPI_SHIM_SHMEM_SMA_H
#define MPI_SHIM_SHMEM_SMA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <dmapp.h>
#include <shmem.h>

#include "emunic/abi/amo.h"
#include "libdmapp/src/symmetric.h"
#include "libugni/src/launch.h"

#define SMAI_LIKELY(x)   __builtin_expect(!!(x), 1)
#define SMAI_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define SMAI_INLINE      static inline __attribute__((always_inline))
#define SMAI_PUBLIC      __attribute__((visibility("default")))
#define SMAI_COLD        __attribute__((cold))

/* How to reach a PE. */
struct smai_peer {
    struct gnii_launch_target *heap; /* borrowed from libdmapp, as `data`; NULL: post */
    struct gnii_launch_target *data;
    uint64_t heap_shift; /* from our addresses to its own */
    uint64_t data_shift;
    uint32_t nic_addr;
};

struct smai_job {
    int n_fast; /* PEs, while the short way is open: up, and nothing to check */
    int npes;
    int pe;
    int thread_level;
    unsigned n_spins;   /* looks of a waiting PE before it is polite */
    int n_processors;   /* 0: no two PEs share one, else those that all PEs of this host share */
    uint32_t switch_ns; /* what it costs at least to give the processor to another PE */
    int radix;          /* PEs that one tells in a round of synchronisation, and one more */
    int flat_max;       /* a collective of more PEs goes in rounds */
    uint64_t heap;      /* the symmetric heap of this PE, and its data segment */
    uint64_t heap_bytes;
    uint64_t data;
    uint64_t data_bytes;
    struct smai_peer *peers; /* owned */
    dmapp_seg_desc_t heap_seg;
    dmapp_seg_desc_t data_seg;
    _Atomic uint64_t n_posted;   /* requests that only a quiet completes, of all threads */
    _Atomic uint64_t n_complete; /* of those, the first so many are */
    bool is_up;
    bool is_checked;     /* SMA_DEBUG */
    bool is_finished;    /* shmem_finalize() has been called */
    bool shall_finalize; /* at exit, if the program has not */
};

extern struct smai_job smai __attribute__((visibility("hidden")));

/* ---- errors: sma_debug.c ---- */

/* Ends the job: one line with the PE, the call and what is wrong. */
void smai_fail(const char *call, const char *format, ...) __attribute__((noreturn, cold, format(printf, 2, 3)));
/* For a PE that cannot be reached: the same, a moment later, so that the launcher can tell of the PE's death first. */
void smai_fail_lost(const char *call, const char *format, ...) __attribute__((noreturn, cold, format(printf, 2, 3)));

/* ---- settings: sma_settings.c ---- */

#define SMAI_BTE_THRESHOLD "SHMEM_DMAPP_BTE_THRESHOLD"
#define SMAI_OUTSTANDING   "SHMEM_MAX_OUTSTANDING_NB"
#define SMAI_ROUTING_MODE  "SHMEM_ROUTING_MODE"

/* One of two variables, the first that is set: anything but 0. */
bool smai_is_on(const char *name, const char *other_name);
/* The heap's size with what the library needs of it. False: nobody says one, or it is DMAPP's to complain. */
bool smai_heap_bytes(int npes, char *text_out, size_t text_bytes);
/* What DMAPP is started with; ends the job for a value that makes no sense. */
dmapp_rma_attrs_ext_t smai_dmapp_attrs(const char *call);

/* ---- contexts and teams: sma_context.c, sma_team.c ---- */

struct smai_channel;
struct smai_engines;

/* The members of a team or active set. */
struct smai_group {
    int *pes; /* owned: their numbers in the job, in order */
    int n;
    int me;
    struct smai_channel *channel; /* borrowed */
    struct smai_engines *engines; /* owned; NULL: it goes by messages alone */
};

struct shmem_team {
    struct smai_group group;
    int slot; /* of its channel */
    long config_mask;
    shmem_team_config_t config;
    struct shmem_ctx *contexts; /* owned. The lock of sma_context.c */
    struct shmem_team *next;    /* of all that are live. The lock of sma_team.c */
};

struct shmem_ctx {
    const int *pes; /* borrowed from its team */
    int n;
    long options;
    struct shmem_team *team;
    struct shmem_ctx *next; /* of its team */
};

/* The PE of the job that a context means; -1: none. */
int smai_context_pe(shmem_ctx_t ctx, int pe, const char *call);
void smai_contexts_drop(struct shmem_team *team);

/* NULL: no team. */
struct shmem_team *smai_team_of(shmem_team_t team);
/* The same; ends the job if there is none. */
struct shmem_team *smai_team_must(shmem_team_t team, const char *call);
struct smai_group *smai_active_set(int start, int log_stride, int size, const char *call);
int smai_teams_start(void);
void smai_teams_stop(void);

SMAI_INLINE int smai_pe_of(shmem_ctx_t ctx, int pe, const char *call)
{
    return SMAI_LIKELY(ctx == SHMEM_CTX_DEFAULT) ? pe : smai_context_pe(ctx, pe, call);
}

/* ---- one operation ---- */

/* What a call is about. */
struct smai_remote {
    shmem_ctx_t ctx;
    const void *at; /* our own symmetric address */
    int pe;         /* as the program says it */
    const char *call;
};

/* A place that can be reached the short way. */
struct smai_place {
    struct gnii_launch_target *target;
    uint64_t addr; /* the owner's */
};

SMAI_INLINE bool smai_reach(const void *at, uint64_t len_bytes, int pe, struct smai_place *out)
{
    uint64_t addr = (uint64_t)(uintptr_t)at;
    const struct smai_peer *peer;

    if (SMAI_UNLIKELY((unsigned)pe >= (unsigned)smai.n_fast))
        return false;
    peer = &smai.peers[pe];
    if (SMAI_LIKELY(addr - smai.heap < smai.heap_bytes && len_bytes <= smai.heap_bytes - (addr - smai.heap))) {
        *out = (struct smai_place){ peer->heap, addr + peer->heap_shift };
        return SMAI_LIKELY(peer->heap);
    }
    if (addr - smai.data < smai.data_bytes && len_bytes <= smai.data_bytes - (addr - smai.data)) {
        *out = (struct smai_place){ peer->data, addr + peer->data_shift };
        return SMAI_LIKELY(peer->data);
    }
    return false;
}

SMAI_INLINE bool smai_launch(const struct smai_place *place, unsigned op, uint64_t arg1, uint64_t arg2, uint64_t *old)
{
    return SMAI_LIKELY(gnii_launch(place->target, op, place->addr, arg1, arg2, old) == GNII_LAUNCH_DONE);
}

/* The descriptor of the segment of [at, at + len); ends the job if there is none, or for a PE that is not there. */
SMAI_COLD dmapp_seg_desc_t *smai_check(struct smai_remote r, int pe, uint64_t len_bytes);

/*
 * sma_rma.c: checks, then DMAPP's calls. Descriptions go by value: so the short way has them in registers, writes
 * nothing to the stack. Their callers below put each description together anew, because one that is passed on whole
 * would be stored ahead of the short way.
 */
SMAI_COLD void smai_must(struct smai_remote r, dmapp_return_t rc); /* ends the job for all but success */
SMAI_COLD void smai_put_slowly(struct smai_remote r, const void *from, uint64_t len_bytes, bool is_nbi);
SMAI_COLD void smai_get_slowly(struct smai_remote r, void *to, uint64_t len_bytes, bool is_nbi);

SMAI_INLINE uint64_t smai_bytes(struct smai_remote r, size_t nelems, size_t elem_bytes)
{
    uint64_t len_bytes;

    if (SMAI_UNLIKELY(__builtin_mul_overflow(nelems, elem_bytes, &len_bytes)))
        smai_fail(r.call, "%zu elements of %zu bytes are too many", nelems, elem_bytes);
    return len_bytes;
}

SMAI_INLINE void smai_put(struct smai_remote r, const void *from, size_t nelems, size_t elem_bytes, bool is_nbi)
{
    uint64_t len_bytes = smai_bytes(r, nelems, elem_bytes);
    struct smai_place to;

    if (SMAI_LIKELY(len_bytes <= GNII_LAUNCH_BYTES_MAX &&
                    smai_reach(r.at, len_bytes, smai_pe_of(r.ctx, r.pe, r.call), &to)) &&
        smai_launch(&to, GNII_LAUNCH_PUT, (uint64_t)(uintptr_t)from, len_bytes, NULL))
        return;
    smai_put_slowly((struct smai_remote){ r.ctx, r.at, r.pe, r.call }, from, len_bytes, is_nbi);
}

SMAI_INLINE void smai_get(struct smai_remote r, void *to, size_t nelems, size_t elem_bytes, bool is_nbi)
{
    uint64_t len_bytes = smai_bytes(r, nelems, elem_bytes);
    struct smai_place from;

    if (SMAI_LIKELY(len_bytes <= GNII_LAUNCH_BYTES_MAX &&
                    smai_reach(r.at, len_bytes, smai_pe_of(r.ctx, r.pe, r.call), &from)) &&
        smai_launch(&from, GNII_LAUNCH_GET, (uint64_t)(uintptr_t)to, len_bytes, NULL))
        return;
    smai_get_slowly((struct smai_remote){ r.ctx, r.at, r.pe, r.call }, to, len_bytes, is_nbi);
}

/* The local side of a strided transfer; strides in elements. */
struct smai_stride {
    void *local;
    ptrdiff_t remote_stride;
    ptrdiff_t local_stride;
    size_t nelems;
    size_t elem_bytes;
};

void smai_iput(struct smai_remote r, const struct smai_stride *s);
void smai_iget(struct smai_remote r, const struct smai_stride *s);

/* ---- atomics: sma_amo.c ---- */

struct smai_atomic {
    unsigned op; /* enum emu_amo_op */
    bool fetches;
    size_t width_bytes; /* 4 or 8 */
    uint64_t operand1;
    uint64_t operand2;
};

SMAI_COLD uint64_t smai_amo_slowly(struct smai_remote r, struct smai_atomic a);
SMAI_COLD uint64_t smai_fetch_slowly(struct smai_remote r, size_t width_bytes);

/* The old value's bits, if it fetches. */
SMAI_INLINE uint64_t smai_amo(struct smai_remote r, struct smai_atomic a)
{
    struct smai_place at;
    uint64_t old = 0;

    if (SMAI_LIKELY(((uintptr_t)r.at & (a.width_bytes - 1)) == 0 &&
                    smai_reach(r.at, a.width_bytes, smai_pe_of(r.ctx, r.pe, r.call), &at)) &&
        smai_launch(&at, GNII_LAUNCH_AMO + a.op + (a.width_bytes == 4 ? GNII_LAUNCH_32BIT : 0), a.operand1, a.operand2,
                    a.fetches ? &old : NULL))
        return old;
    return smai_amo_slowly((struct smai_remote){ r.ctx, r.at, r.pe, r.call },
                           (struct smai_atomic){ a.op, a.fetches, a.width_bytes, a.operand1, a.operand2 });
}

/* Old value, if it fetches, into *fetch by the next quiet. */
SMAI_COLD void smai_amo_nbi_slowly(struct smai_remote r, struct smai_atomic a, void *fetch);

SMAI_INLINE void smai_amo_nbi(struct smai_remote r, struct smai_atomic a, void *fetch)
{
    struct smai_place at;
    uint64_t old = 0;

    if (SMAI_LIKELY(((uintptr_t)r.at & (a.width_bytes - 1)) == 0 &&
                    smai_reach(r.at, a.width_bytes, smai_pe_of(r.ctx, r.pe, r.call), &at)) &&
        smai_launch(&at, GNII_LAUNCH_AMO + a.op + (a.width_bytes == 4 ? GNII_LAUNCH_32BIT : 0), a.operand1, a.operand2,
                    &old))
        memcpy(fetch, &old, a.width_bytes);
    else
        smai_amo_nbi_slowly((struct smai_remote){ r.ctx, r.at, r.pe, r.call },
                            (struct smai_atomic){ a.op, a.fetches, a.width_bytes, a.operand1, a.operand2 }, fetch);
}

/* Aligned words are stored in one piece. */
SMAI_INLINE void smai_set(struct smai_remote r, size_t width_bytes, uint64_t value)
{
    struct smai_place at;

    if (SMAI_LIKELY(((uintptr_t)r.at & (width_bytes - 1)) == 0 &&
                    smai_reach(r.at, width_bytes, smai_pe_of(r.ctx, r.pe, r.call), &at)) &&
        smai_launch(&at, GNII_LAUNCH_PUT, (uint64_t)(uintptr_t)&value, width_bytes, NULL))
        return;
    (void)smai_amo_slowly((struct smai_remote){ r.ctx, r.at, r.pe, r.call },
                          (struct smai_atomic){ EMU_AMO_SWAP, false, width_bytes, value, 0 });
}

/* Aligned words are loaded in one piece. */
SMAI_INLINE uint64_t smai_fetch(struct smai_remote r, size_t width_bytes)
{
    struct smai_place at;
    uint64_t value = 0;

    if (SMAI_LIKELY(((uintptr_t)r.at & (width_bytes - 1)) == 0 &&
                    smai_reach(r.at, width_bytes, smai_pe_of(r.ctx, r.pe, r.call), &at)) &&
        smai_launch(&at, GNII_LAUNCH_GET, (uint64_t)(uintptr_t)&value, width_bytes, NULL))
        return value;
    return smai_fetch_slowly((struct smai_remote){ r.ctx, r.at, r.pe, r.call }, width_bytes);
}

/* Values as bits, and back. */
#define SMAI_BITS(type, value)                                                                                         \
    __extension__({                                                                                                    \
        type value_ = (value);                                                                                         \
        uint64_t bits_ = 0;                                                                                            \
        memcpy(&bits_, &value_, sizeof(value_));                                                                       \
        bits_;                                                                                                         \
    })
#define SMAI_VALUE(type, bits)                                                                                         \
    __extension__({                                                                                                    \
        uint64_t word_ = (bits);                                                                                       \
        type result_;                                                                                                  \
        memcpy(&result_, &word_, sizeof(result_));                                                                     \
        result_;                                                                                                       \
    })

/* ---- signals ---- */

struct smai_signal {
    uint64_t *addr;
    uint64_t value;
    int op;
};

SMAI_COLD void smai_put_signal_slowly(struct smai_remote r, const void *from, uint64_t len_bytes,
                                      struct smai_signal signal, bool is_nbi);

/* The short way for data and signal, or neither. */
SMAI_INLINE bool smai_try_put_signal(struct smai_remote r, const void *from, uint64_t len_bytes,
                                     struct smai_signal signal)
{
    int pe = smai_pe_of(r.ctx, r.pe, r.call);
    struct smai_place word;
    struct smai_place to;

    if (len_bytes > GNII_LAUNCH_BYTES_MAX || ((uintptr_t)signal.addr & 7) != 0 ||
        (signal.op != SHMEM_SIGNAL_SET && signal.op != SHMEM_SIGNAL_ADD) || !smai_reach(signal.addr, 8, pe, &word))
        return false;
    if (len_bytes > 0 && (!smai_reach(r.at, len_bytes, pe, &to) ||
                          !smai_launch(&to, GNII_LAUNCH_PUT, (uint64_t)(uintptr_t)from, len_bytes, NULL)))
        return false;
    if (signal.op == SHMEM_SIGNAL_SET)
        return smai_launch(&word, GNII_LAUNCH_FLAG, signal.value, 0, NULL);
    return smai_launch(&word, GNII_LAUNCH_AMO + EMU_AMO_ADD, signal.value, 0, NULL);
}

SMAI_INLINE void smai_put_signal(struct smai_remote r, const void *from, uint64_t len_bytes, struct smai_signal signal,
                                 bool is_nbi)
{
    if (SMAI_UNLIKELY(!smai_try_put_signal(r, from, len_bytes, signal)))
        smai_put_signal_slowly((struct smai_remote){ r.ctx, r.at, r.pe, r.call }, from, len_bytes,
                               (struct smai_signal){ signal.addr, signal.value, signal.op }, is_nbi);
}

/* ---- ordering ---- */

SMAI_COLD void smai_complete(const char *call);
/* Ends the job: nobody knows which request it was, but a PE that is lost is found and named. */
void smai_fail_requests(const char *call, dmapp_return_t rc) __attribute__((noreturn, cold));

/* Behind the post of a request that only a quiet completes. */
static inline void smai_note_posted(void)
{
    atomic_fetch_add_explicit(&smai.n_posted, 1, memory_order_release);
}

SMAI_INLINE void smai_order(const char *call)
{
    /* Another thread's quiet may be under way with our requests: only what it has completed counts. */
    if (SMAI_UNLIKELY(!smai.is_up || atomic_load_explicit(&smai.n_complete, memory_order_acquire) !=
                                         atomic_load_explicit(&smai.n_posted, memory_order_relaxed)))
        smai_complete(call);
    atomic_signal_fence(memory_order_seq_cst);
}

SMAI_INLINE void smai_settle(const char *call)
{
    smai_order(call);
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- waiting: sma_wait.c ---- */

/* One step of whoever waits, the n-th in vain: spins at first, then lets the library below be polite. */
void smai_wait_politely(void);
/* Looks before a PE is polite where each has a processor: the first ones without a pause, all some tens of us. */
#define SMAI_SPINS 1000u
#define SMAI_LOOKS 100u

SMAI_INLINE void smai_wait_step(unsigned *n)
{
    if (++*n > smai.n_spins)
        smai_wait_politely();
    else if (*n > SMAI_LOOKS)
        __builtin_ia32_pause();
}

/* Of who waits for several PEs. Begins as zeros. */
struct smai_patience {
    uint64_t until_ns; /* 0: no time has been set */
    unsigned n_looks;
};

void smai_wait_crowded(struct smai_patience *patience, int n_missing);

/* One step in vain, n of them are missing. */
SMAI_INLINE void smai_wait_for_several(struct smai_patience *patience, int n_missing)
{
    if (smai.n_processors == 0)
        smai_wait_step(&patience->n_looks);
    else
        smai_wait_crowded(patience, n_missing);
}

/* Does `*ivar cmp value` hold? Generated for each type. */
typedef bool (*smai_holds_fn)(const volatile void *ivar, int cmp, const void *value);

struct smai_condition {
    smai_holds_fn holds;
    const char *call;
    const volatile void *ivars;
    const void *values;
    size_t n;
    size_t elem_bytes;
    const int *status;
    int cmp;
    bool is_vector; /* a value for each, else one */
};

/* Ends the job for arguments that are none. */
void smai_check_wait(const char *call, const volatile void *ivar, size_t bytes, int cmp);
void smai_wait_all(const struct smai_condition *c);
size_t smai_wait_any(const struct smai_condition *c);
size_t smai_wait_some(const struct smai_condition *c, size_t *indices);
bool smai_test_all(const struct smai_condition *c);
size_t smai_test_any(const struct smai_condition *c);
size_t smai_test_some(const struct smai_condition *c, size_t *indices);

/* ---- messages of collectives: sma_channel.c ---- */

#define SMAI_SLOTS         64
#define SMAI_PAYLOAD_BYTES 48u

/* The slots that nobody chooses. */
enum smai_slot { SMAI_SLOT_WORLD, SMAI_SLOT_SHARED, SMAI_SLOT_SETS, SMAI_SLOT_FIRST };

int smai_channels_start(void);
void smai_channels_stop(void);
/* NULL: out of memory. Lives until the end. */
struct smai_channel *smai_channel_of(int slot);

/* Tells a member that we have come so far; waits for one. Ranks are those of the group. */
void smai_tell(const struct smai_group *g, int rank);
/* The same, behind data that go into its buffer. */
void smai_put_and_tell(const struct smai_group *g, int rank, void *at, const void *from, uint64_t len_bytes);
void smai_await(const struct smai_group *g, int rank);
/* A few bytes to a member, and from one. Members that send to each other do both in one collective. */
void smai_send(const struct smai_group *g, int rank, const void *data, uint32_t len_bytes);
void smai_receive(const struct smai_group *g, int rank, void *data_out, uint32_t len_bytes);

/* Members so many ranks behind us, around the end: first, first + step ... < end. */
struct smai_behind {
    int64_t first;
    int64_t end;
    int64_t step;
};

/* As smai_await() of each; and until the next message of each is here, for smai_receive(). */
void smai_await_behind(const struct smai_group *g, const struct smai_behind *behind);
void smai_await_messages(const struct smai_group *g, const struct smai_behind *behind);

/* ---- collectives: sma_collective.c, sma_reduce.c ---- */

/* One block of data, as a collective gets it. */
struct smai_blocks {
    const char *call;
    void *dest;
    const void *source;
    size_t nelems;
    size_t elem_bytes;
    ptrdiff_t dest_stride; /* alltoalls */
    ptrdiff_t source_stride;
};

void smai_sync(const struct smai_group *g);
/* Never by engines. */
void smai_sync_by_messages(const struct smai_group *g);
void smai_share_words(const struct smai_group *g, uint64_t word, uint64_t *words_out);
void smai_broadcast(const struct smai_group *g, const struct smai_blocks *b, int root, bool to_root);
void smai_collect(const struct smai_group *g, const struct smai_blocks *b);
void smai_fcollect(const struct smai_group *g, const struct smai_blocks *b);
void smai_alltoall(const struct smai_group *g, const struct smai_blocks *b);
void smai_alltoalls(const struct smai_group *g, const struct smai_blocks *b);

/* into[i] = into[i] op from[i]. */
typedef void (*smai_combine_fn)(void *into, const void *from, size_t n);

/* Generated for each type and operation. */
struct smai_operation {
    smai_combine_fn combine;
    size_t n_by_engines; /* so many elements at most by collective engines, with this command of theirs */
    gni_ce_cmd_type_t command;
};

void smai_reduce(const struct smai_group *g, const struct smai_blocks *b, const struct smai_operation *op);
/* Words become the bitwise or of all members' words. By messages. */
void smai_share_bits(const struct smai_group *g, uint64_t *words, size_t n);

/* ---- collective engines: sma_engines.c ---- */

/* For a group, the same answer in all members; NULL: it has none. */
struct smai_engines *smai_engines_of(int n_members);
/* When all members have come out of the last collective. NULL: nothing. */
void smai_engines_drop(struct smai_engines *engines);
/* Of a group that has them. False: nothing has happened, go by messages. */
bool smai_engines_sync(const struct smai_group *g);
bool smai_engines_reduce(const struct smai_group *g, const struct smai_blocks *b, const struct smai_operation *op);

/* With SMA_DEBUG: both buffers are symmetric. */
void smai_check_blocks(const struct smai_blocks *b, size_t n_dest, size_t n_source);
void smai_check_symmetric(const char *call, const char *argument, const volatile void *at, uint64_t len_bytes);

/* The symmetric mapping of a PE, or NULL. */
void *smai_window(const void *at, int pe);

#endif
