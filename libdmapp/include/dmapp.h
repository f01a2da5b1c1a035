/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dmapp.h: Distributed Memory Applications API over the emulated NIC.
 *
 * The interface of the later generation (Gemini CLE 4.x and 5.x, Aries). Source compatible with the original; binary
 * compatibility is not promised. Left out: the context interface of CLE 6.0 UP06 and concatenation collectives, whose
 * calls are not known; no surveyed program uses them.
 *
 * Reading the comments
 *
 *   spec/dmapp.md   with a section: what the text follows. Installed as share/doc/emunic/spec/dmapp.md. "Reading
 *                   9.2 no. 11" names a point that no source settles: this library does what is recommended there.
 *   Units           counts, strides and indices are in elements of `type`; lengths named size or length in bytes.
 *   Remote triple   address, segment descriptor, PE. For the data segment and the symmetric heap: an address and the
 *                   descriptor of the caller's own, from its jobinfo. For registered memory: the owner's.
 *   Flavours        F() blocking; F_nb() with a syncid, retired by dmapp_syncid_test() or _wait(); F_nbi() covered
 *                   by dmapp_gsync_test() or _wait(). Complete means visible to every PE, whatever PI_ordering says.
 *                   The target of an operation takes no part in it.
 *   Threads: any    with max_concurrency 1 one thread at a time, but for the callbacks of message queues, which may
 *                   call anything; with more, any thread at any time. Dynamic attributes belong to the thread.
 *   Status          before dmapp_init() and after the last dmapp_finalize() every call but the ones marked "any time"
 *                   gives DMAPP_RC_INVALID_PARAM, as does a NULL pointer where one is needed. After an error nothing
 *                   has happened and output arguments are unchanged, unless the comment says otherwise.
 *   Common          the statuses of all transfers and atomics, written once here:
 *       DMAPP_RC_SUCCESS            done; _nb and _nbi: accepted.
 *       DMAPP_RC_INVALID_PARAM      NULL pointer; PE out of range; no such type; not a descriptor of this library;
 *                                   address range not inside the segment, or in a block of the symmetric heap that
 *                                   has been freed; overflow of the byte count. The target is untouched.
 *       DMAPP_RC_RESOURCE_ERROR     out of memory, or emunic has gone. Nothing was issued.
 *       DMAPP_RC_NO_SPACE           _nb only: max_outstanding_nb syncids are not retired. _nbi makes room by itself.
 *       DMAPP_RC_TRANSACTION_ERROR  the network reported a failure (the peer has gone, its registration has ended).
 *                                   Blocking calls return it; else it comes from the completing call, once.
 *   Ownership       structures and index and PE lists passed in are read before the call returns. The local buffer of
 *                   a non-blocking call is the library's until it is complete.
 */
#ifndef DMAPP_H
#define DMAPP_H

#include <stddef.h>
#include <stdint.h>

#include <gni_pub.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

/*
 * Constants
 */
#define DMAPP_OFFLOAD_THRESHOLD     4096 /* bytes */
#define DMAPP_MIN_OUTSTANDING_NB    5
#define DMAPP_DEF_OUTSTANDING_NB    1024 /* Reading 9.2 no. 1 */
#define DMAPP_MAX_OUTSTANDING_NB    4096 /* Reading 9.2 no. 1 */
#define DMAPP_MAX_THREADS_UNLIMITED 255  /* of max_concurrency. Reading 9.2 no. 3, as the next four */
#define DMAPP_QUEUE_DEFAULT_DEPTH   64   /* slots */
#define DMAPP_QUEUE_DEFAULT_NELEMS  512  /* 8-byte words in a slot */
#define DMAPP_QUEUE_MAX_NELEMS      8192
#define DMAPP_QUEUE_ASYNC_PROGRESS  0x1 /* queue_flags: a helper thread delivers messages */

#define DMAPP_C_PSET_MODE_CONCAT         0x1 /* stored, without effect */
#define DMAPP_C_PSET_MODE_FAULT_TOLERANT 0x2 /* a hint */
#define DMAPP_C_PSET_MODE_HW_OFFLOAD     0x4 /* a hint */

/* Parts of this header that no source describes can be left out by defining DMAPP_NO_UNCONFIRMED. */
#ifndef DMAPP_NO_UNCONFIRMED
#define DMAPP_HAS_AMO_LAYOUT  1 /* contents of dmapp_amo_t */
#define DMAPP_HAS_GET_VERSION 1 /* prototype of dmapp_get_version() */
#endif

/*
 * Types
 */

/* Contiguous from 0. */
typedef enum dmapp_return {
    DMAPP_RC_SUCCESS = 0,           /* done, or accepted */
    DMAPP_RC_INVALID_PARAM = 1,     /* an argument is not acceptable */
    DMAPP_RC_ALIGNMENT_ERROR = 2,   /* address misaligned for the operation */
    DMAPP_RC_TRANSACTION_ERROR = 3, /* the network reported a failed transaction */
    DMAPP_RC_RESOURCE_ERROR = 4,    /* shortage, or failed initialisation; nothing was issued */
    DMAPP_RC_PERMISSION_ERROR = 5,  /* not permitted on the target memory */
    DMAPP_RC_NO_SPACE = 6,          /* out of request slots or table entries */
    DMAPP_RC_NOT_DONE = 7,          /* still in progress */
    DMAPP_RC_NOT_SUPPORTED = 8,     /* not available here, or for this type */
    DMAPP_RC_NOT_FOUND = 9,         /* named object unknown */
    DMAPP_RC_BUSY = 10,             /* object in use */
    DMAPP_RC_NOT_USED = 11          /* never returned */
} dmapp_return_t;

/* Scales counts, strides and indices. Says nothing about alignment. */
typedef enum dmapp_type {
    DMAPP_DQW = 0, /* 16 bytes */
    DMAPP_QW = 1,  /* 8 */
    DMAPP_DW = 2,  /* 4 */
    DMAPP_BYTE = 3 /* 1 */
} dmapp_type_t;

/* Values 3 to 6: reading 9.2 no. 2. */
typedef enum dmapp_routing_type {
    DMAPP_ROUTING_IN_ORDER = 0,
    DMAPP_ROUTING_DETERMINISTIC = 1,
    DMAPP_ROUTING_ADAPTIVE = 2,
    DMAPP_ROUTING_DETERMINISTIC_1 = 3,
    DMAPP_ROUTING_ADAPTIVE_1 = 4,
    DMAPP_ROUTING_ADAPTIVE_2 = 5,
    DMAPP_ROUTING_ADAPTIVE_3 = 6
} dmapp_routing_type_t;

typedef enum dmapp_pi_reg_type {
    DMAPP_PI_ORDERING_STRICT = 0,
    DMAPP_PI_ORDERING_DEFAULT = 1,
    DMAPP_PI_ORDERING_RELAXED = 2
} dmapp_pi_reg_type_t;

typedef int dmapp_pe_t;

/*
 * An exported segment. Self-contained: copied by value and sent between PEs as bytes. addr and len are exactly what was
 * registered; for the symmetric heap len is the whole reservation, so a copy stays good.
 */
typedef struct dmapp_seg_desc {
    void *addr;
    size_t len; /* bytes */
    gni_mem_handle_t memhndl;
    uint16_t flags; /* the library's */
    void *reserved; /* the library's; never followed */
} dmapp_seg_desc_t;

typedef struct dmapp_jobinfo {
    int version;    /* of this library; positive */
    int hw_version; /* gni_nic_device_t: 0 Gemini, 1 Aries */
    int npes;
    dmapp_pe_t pe;              /* the PMI rank and the rank in MPI_COMM_WORLD */
    dmapp_seg_desc_t data_seg;  /* the executable's static data, shared libraries' not included */
    dmapp_seg_desc_t sheap_seg; /* the symmetric heap */
} dmapp_jobinfo_t;

typedef struct dmapp_rma_attrs {
    uint32_t max_outstanding_nb;  /* static: DMAPP_MIN_OUTSTANDING_NB to DMAPP_MAX_OUTSTANDING_NB; 0 is the default */
    uint32_t offload_threshold;   /* dynamic, bytes: from here on the block transfer engine */
    uint8_t put_relaxed_ordering; /* dynamic, dmapp_routing_type_t: puts and all atomics */
    uint8_t get_relaxed_ordering; /* dynamic, dmapp_routing_type_t: gets */
    uint8_t max_concurrency;      /* static: threads, or DMAPP_MAX_THREADS_UNLIMITED; 0 counts as 1 */
} dmapp_rma_attrs_t;

/* The order behind PI_ordering is a reading (9.2 no. 4). Programs leave those fields uninitialised: never refused. */
typedef struct dmapp_rma_attrs_ext {
    uint32_t max_outstanding_nb;
    uint32_t offload_threshold;
    uint8_t put_relaxed_ordering;
    uint8_t get_relaxed_ordering;
    uint8_t max_concurrency;
    uint8_t PI_ordering;   /* static, dmapp_pi_reg_type_t */
    uint32_t queue_depth;  /* static: slots of a PE's message queue; the most that any PE asked for, as the
                                       next */
    uint32_t queue_nelems; /* static: 8-byte words in a slot, one of them the library's */
    uint64_t queue_flags;  /* static: DMAPP_QUEUE_ASYNC_PROGRESS */
    uint8_t unused[32];
} dmapp_rma_attrs_ext_t;

typedef struct dmapp_syncid *dmapp_syncid_handle_t;
typedef struct dmapp_c_pset *dmapp_c_pset_handle_t;
typedef struct dmapp_lock *dmapp_lock_handle_t;
typedef struct dmapp_queue *dmapp_queue_handle_t;

/* The program's, in memory that is exported. Zero: free. Exactly one word: programs space them by 8 bytes. */
typedef struct dmapp_lock_desc {
    uint64_t word;
} dmapp_lock_desc_t;

/* Bytes. Contents: reading 9.2 no. 5. */
typedef struct dmapp_sheap_stats {
    uint64_t size;     /* mapped */
    uint64_t max_size; /* reserved */
    uint64_t in_use;   /* in blocks, rounded to 64 */
    uint64_t free;
    uint64_t largest_free; /* the largest block that dmapp_sheap_malloc() would give now */
    uint64_t nallocs;      /* blocks */
    uint64_t spare[8];     /* 0 */
} dmapp_sheap_stats_t;

#ifdef DMAPP_HAS_AMO_LAYOUT
/* What dmapp_amo_t.op can be. Reading 9.2 no. 5. */
typedef enum dmapp_amo_op {
    DMAPP_AMO_ADD = 1,
    DMAPP_AMO_AND = 2,
    DMAPP_AMO_OR = 3,
    DMAPP_AMO_XOR = 4,
    DMAPP_AMO_SWAP = 5,  /* new value: operand1 */
    DMAPP_AMO_AX = 6,    /* (old AND operand1) XOR operand2 */
    DMAPP_AMO_CSWAP = 7, /* operand2 if old equals operand1 */
    DMAPP_AMO_MIN = 8,
    DMAPP_AMO_MAX = 9
} dmapp_amo_op_t;

/* dmapp_amo_t.type: DMAPP_DW or DMAPP_QW, with at most one of: */
#define DMAPP_AMO_SIGNED   0x000 /* integers are two's complement; MIN and MAX compare signed */
#define DMAPP_AMO_UNSIGNED 0x100 /* MIN and MAX of unsigned integers: the NIC has none (DMAPP_RC_NOT_SUPPORTED) */
#define DMAPP_AMO_FLOAT    0x200 /* float or double: ADD, MIN, MAX */

typedef union dmapp_amo_operand {
    int64_t i64;
    uint64_t u64;
    int32_t i32;
    uint32_t u32;
    double d;
    float f;
} dmapp_amo_operand_t;

typedef struct dmapp_amo {
    uint32_t op; /* dmapp_amo_op_t */
    uint32_t type;
    uint64_t flags; /* 0 */
    dmapp_amo_operand_t operand1;
    dmapp_amo_operand_t operand2;
    uint64_t spare[4];
} dmapp_amo_t;
#else
typedef struct dmapp_amo dmapp_amo_t;
#endif

/*
 * Types of process sets
 */
typedef enum dmapp_c_pset_delimiter_type {
    DMAPP_C_PSET_DELIMITER_VEC = 1,
    DMAPP_C_PSET_DELIMITER_STRIDED = 2,
    DMAPP_C_PSET_DELIMITER_LAST = 3
} dmapp_c_pset_delimiter_type_t;

typedef enum dmapp_c_pset_attrs_type {
    DMAPP_C_PSET_ATTRS_VER1 = 1,
    DMAPP_C_PSET_ATTRS_LAST = 2
} dmapp_c_pset_attrs_type_t;

typedef enum dmapp_c_type {
    DMAPP_C_INT32 = 101,
    DMAPP_C_UINT32 = 102,
    DMAPP_C_INT64 = 103,
    DMAPP_C_UINT64 = 104,
    DMAPP_C_FLOAT = 105,
    DMAPP_C_DOUBLE = 106,
    DMAPP_C_COMPLEX8 = 107,
    DMAPP_C_COMPLEX16 = 108,
    DMAPP_C_FLOAT_UINT64 = 109,
    DMAPP_C_DOUBLE_UINT64 = 110,
    DMAPP_C_INT32_UINT64 = 111,
    DMAPP_C_INT64_UINT64 = 112,
    DMAPP_C_TYPE_LAST = 113
} dmapp_c_type_t;

typedef enum dmapp_c_op {
    DMAPP_C_SUM = 201,
    DMAPP_C_MAX = 202,
    DMAPP_C_MIN = 203,
    DMAPP_C_PROD = 204,
    DMAPP_C_LAND = 205,
    DMAPP_C_BAND = 206,
    DMAPP_C_LOR = 207,
    DMAPP_C_BOR = 208,
    DMAPP_C_LXOR = 209,
    DMAPP_C_BXOR = 210,
    DMAPP_C_MINLOC = 211,
    DMAPP_C_MAXLOC = 212,
    DMAPP_C_OP_LAST = 213
} dmapp_c_op_t;

typedef struct dmapp_c_float_uint64 {
    float value;
    uint64_t loc;
} dmapp_c_float_uint64_t;

typedef struct dmapp_c_double_uint64 {
    double value;
    uint64_t loc;
} dmapp_c_double_uint64_t;

typedef struct dmapp_c_int_uint64 {
    int value;
    uint64_t loc;
} dmapp_c_int_uint64_t;

typedef struct dmapp_c_int64_uint64 {
    int64_t value;
    uint64_t loc;
} dmapp_c_int64_uint64_t;

typedef struct dmapp_c_complex8 {
    float re;
    float im;
} dmapp_c_complex8_t;

typedef struct dmapp_c_complex16 {
    double re;
    double im;
} dmapp_c_complex16_t;

typedef struct {
    uint32_t n_pes;
    uint32_t *vec_pes;
} dmapp_c_pset_delimiter_vec_t;

typedef struct {
    uint32_t n_pes;
    uint32_t base_pe;
    uint32_t stride_pe;
} dmapp_c_pset_delimiter_strided_t;

typedef struct {
    void *concat_buf;
    uint64_t concat_buf_size;
    dmapp_c_pset_delimiter_type_t type;
    union {
        dmapp_c_pset_delimiter_vec_t vec_type;
        dmapp_c_pset_delimiter_strided_t stride_type;
    } u;
} dmapp_c_pset_desc_t;

typedef struct {
    uint32_t radix; /* fan-out of the tree in software */
} dmapp_c_pset_attrs_ver1_t;

typedef struct {
    dmapp_c_pset_attrs_type_t type;
    union {
        dmapp_c_pset_attrs_ver1_t type1;
    } u;
} dmapp_c_pset_attrs_t;

/*
 * Initialisation
 */

/**
 * Names of the return codes, by code. Static storage, never changed; 12 entries. (spec/dmapp.md 4.1)
 */
extern const char *dmapp_err_str[];

/**
 * Bring the library up: PMI, the communication domain, the data segment and the symmetric heap. Every PE calls it; it
 * waits for all of them. Again when the library is up: counted, applies the dynamic attributes. After the last
 * dmapp_finalize() it starts anew.
 *
 * Values out of range are replaced, never refused: max_outstanding_nb is brought into its range, 0 is the default;
 * unknown routing or ordering becomes the default; queue fields are brought into their range. Defaults: see
 * dmapp_init_ext().
 *
 * @param[in]  requested  Wishes, or NULL for all defaults.
 * @param[out] actual     What is in force, or NULL. May be `requested`.
 * @retval DMAPP_RC_SUCCESS         Up.
 * @retval DMAPP_RC_RESOURCE_ERROR  Not started by a launcher, emunic has gone, or the heap of XT_SYMMETRIC_HEAP_SIZE or
 *                                  SHMEM_SYMMETRIC_SIZE cannot be had (or the value is not a size). Of the first two
 *                                  one line on stderr tells which.
 * @note Threads: one. Any time. Blocks until every PE has called it.
 * @note Never DMAPP_RC_INVALID_PARAM: NULL and values out of range are replaced.
 * @note Source: spec/dmapp.md 4.1, 9.2 no. 11.
 */
dmapp_return_t dmapp_init(dmapp_rma_attrs_t *requested, dmapp_rma_attrs_t *actual);

/**
 * The same with the extended attributes. Defaults: 1024 outstanding, threshold 4096 (SHMEM_DMAPP_BTE_THRESHOLD,
 * SHMEM_MAX_OUTSTANDING_NB and SHMEM_ROUTING_MODE are SHMEM's, not read here), adaptive routing, concurrency 1, relaxed
 * PI ordering, queue of 64 slots of 512 words, no helper thread.
 *
 * @param[in]  requested  Wishes, or NULL for all defaults.
 * @param[out] actual     What is in force, or NULL. May be `requested`.
 * @retval DMAPP_RC_SUCCESS         Up.
 * @retval DMAPP_RC_RESOURCE_ERROR  As dmapp_init().
 * @note Threads: one. Any time. Blocks until every PE has called it.
 * @note Never DMAPP_RC_INVALID_PARAM: NULL and values out of range are replaced.
 * @note Source: spec/dmapp.md 1.7, 4.1; readings 9.2 no. 1, 4, 17.
 */
dmapp_return_t dmapp_init_ext(dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual);

/**
 * Is the library up in this process?
 *
 * @param[out] flag  1 or 0.
 * @retval DMAPP_RC_SUCCESS        Told.
 * @retval DMAPP_RC_INVALID_PARAM  flag is NULL.
 * @note Threads: any. Any time.
 * @note Source: spec/dmapp.md 4.1.
 */
dmapp_return_t dmapp_initialized(int *flag);

/**
 * End. The last of as many calls as there were dmapp_init()s completes the PE's requests, waits for every PE to
 * come here, and releases everything: segments, registrations, heap, locks. The heap's memory is unmapped.
 *
 * @retval DMAPP_RC_SUCCESS        Ended, or counted down.
 * @retval DMAPP_RC_INVALID_PARAM  The library is not up.
 * @note Threads: one, and no other inside the library. Blocks until every PE has called it (reading 9.2 no. 12).
 * @note Source: spec/dmapp.md 4.1.
 */
dmapp_return_t dmapp_finalize(void);

/**
 * Who and where this PE is, and its two automatic segments. A copy of some 130 bytes.
 *
 * @param[out] info  Filled.
 * @retval DMAPP_RC_SUCCESS        Filled.
 * @retval DMAPP_RC_INVALID_PARAM  info is NULL, or the library is not up.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 3.2, 4.1.
 */
dmapp_return_t dmapp_get_jobinfo(dmapp_jobinfo_t *info);

/**
 * Attributes in force for the calling thread. Before dmapp_init(): the defaults.
 *
 * @param[out] attrs  Filled.
 * @retval DMAPP_RC_SUCCESS        Filled.
 * @retval DMAPP_RC_INVALID_PARAM  attrs is NULL.
 * @note Threads: any. Any time.
 * @note Source: spec/dmapp.md 4.1.
 */
dmapp_return_t dmapp_get_rma_attrs(dmapp_rma_attrs_t *attrs);
dmapp_return_t dmapp_get_rma_attrs_ext(dmapp_rma_attrs_ext_t *attrs);

/**
 * Change the dynamic attributes of the calling thread: offload threshold and both routing modes. Static ones in the
 * structure are ignored; unknown routing becomes the default. Requests already issued are not affected.
 *
 * @param[in]  requested  Wishes.
 * @param[out] actual     What is in force, or NULL. May be `requested`.
 * @retval DMAPP_RC_SUCCESS        Set.
 * @retval DMAPP_RC_INVALID_PARAM  requested is NULL, or the library is not up.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 1.7, 4.1.
 */
dmapp_return_t dmapp_set_rma_attrs(dmapp_rma_attrs_t *requested, dmapp_rma_attrs_t *actual);
dmapp_return_t dmapp_set_rma_attrs_ext(dmapp_rma_attrs_ext_t *requested, dmapp_rma_attrs_ext_t *actual);

/**
 * A sentence for a return code.
 *
 * @param[in]  rc   The code.
 * @param[out] msg  Static, NUL-terminated text; for an unknown code a general one.
 * @retval DMAPP_RC_SUCCESS        Told.
 * @retval DMAPP_RC_INVALID_PARAM  msg is NULL, or rc is no code (*msg is set).
 * @note Threads: any. Any time.
 * @note Source: spec/dmapp.md 4.1. Reading 9.2 no. 6: the return type is not known.
 */
dmapp_return_t dmapp_explain_error(dmapp_return_t rc, const char **msg);

#ifdef DMAPP_HAS_GET_VERSION
/**
 * Version of the library.
 *
 * @param[out] major  7.
 * @param[out] minor  1.
 * @retval DMAPP_RC_SUCCESS        Told.
 * @retval DMAPP_RC_INVALID_PARAM  A pointer is NULL.
 * @note Threads: any. Any time.
 * @note Source: spec/dmapp.md 4.1. Reading 9.2 no. 6: only the name is known.
 */
dmapp_return_t dmapp_get_version(int *major, int *minor);
#endif

/*
 * Puts and gets
 */

/**
 * Copy nelems elements from local memory to the remote triple. Any size, any alignment, any local memory that can be
 * read. nelems 0 succeeds without effect (reading 9.2 no. 7), pointers unseen. The target may be the caller itself.
 *
 * @param[in]  target_addr  Remote triple.
 * @param[in]  target_seg   Remote triple.
 * @param[in]  target_pe    Remote triple.
 * @param[in]  source_addr  Local. _nb, _nbi: unchanged until complete.
 * @param[in]  nelems       Elements.
 * @param[in]  type         Their size.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            As under COMMON; so are the others.
 * @retval DMAPP_RC_INVALID_PARAM      Common; the local range wraps around.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_put_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_put() only.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.2, 4.3. Never DMAPP_RC_ALIGNMENT_ERROR.
 */
dmapp_return_t dmapp_put(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                         uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_put_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                            uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_put_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                             uint64_t nelems, dmapp_type_t type);

/**
 * Copy nelems elements from the remote triple to local memory; else as dmapp_put(). The local buffer holds the data
 * when the call is complete.
 *
 * @param[out] target_addr  Local.
 * @param[in]  source_addr  Remote triple.
 * @param[in]  source_seg   Remote triple.
 * @param[in]  source_pe    Remote triple.
 * @param[in]  nelems       Elements.
 * @param[in]  type         Their size.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            As under COMMON; so are the others.
 * @retval DMAPP_RC_INVALID_PARAM      Common; the local range wraps around.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_get_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_get() only.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.2, 4.3. Odd addresses and lengths are served by fetching the words around them and
 *       never reading outside the pages of the segment. Never DMAPP_RC_ALIGNMENT_ERROR.
 */
dmapp_return_t dmapp_get(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                         uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_get_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                            uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_get_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             uint64_t nelems, dmapp_type_t type);

/**
 * Put, then store flag_value in the 64-bit word target_flag of the same PE and segment: whoever sees the flag sees all
 * data. With nelems 0 only the flag is stored.
 *
 * @param[in]  target_addr  Remote triple.
 * @param[in]  target_seg   Remote triple.
 * @param[in]  target_pe    Remote triple.
 * @param[in]  source_addr  Local.
 * @param[in]  nelems       Elements.
 * @param[in]  type         Their size.
 * @param[in]  target_flag  In the same segment, 8-byte aligned.
 * @param[in]  flag_value   Stored there.
 * @param[out] syncid       _nb only; covers data and flag.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common; the flag is not inside the segment.
 * @retval DMAPP_RC_ALIGNMENT_ERROR    target_flag is not 8-byte aligned.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_put_flag_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_put_flag() only.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.7.
 */
dmapp_return_t dmapp_put_flag(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                              uint64_t nelems, dmapp_type_t type, void *target_flag, uint64_t flag_value);
dmapp_return_t dmapp_put_flag_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 void *source_addr, uint64_t nelems, dmapp_type_t type, void *target_flag,
                                 uint64_t flag_value, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_put_flag_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                  void *source_addr, uint64_t nelems, dmapp_type_t type, void *target_flag,
                                  uint64_t flag_value);

/**
 * dmapp_get_nbi() under another name (reading: the difference in the original is not visible to programs).
 *
 * @param[out] target_addr  Local.
 * @param[in]  source_addr  Remote triple.
 * @param[in]  source_seg   Remote triple.
 * @param[in]  source_pe    Remote triple.
 * @param[in]  nelems       Elements.
 * @param[in]  type         Their size.
 * @retval DMAPP_RC_SUCCESS         Common.
 * @retval DMAPP_RC_INVALID_PARAM   Common.
 * @retval DMAPP_RC_RESOURCE_ERROR  Common.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.7.
 */
dmapp_return_t dmapp_get_flag_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type);

/*
 * Strided, indexed and PE-list transfers
 */

/**
 * Strided put: element i*sst of the source goes to element i*tst of the target, for i in 0 .. nelems-1.
 *
 * @param[in]  target_addr  Remote triple; all elements reached must be inside the segment.
 * @param[in]  target_seg   Remote triple.
 * @param[in]  target_pe    Remote triple.
 * @param[in]  source_addr  Local.
 * @param[in]  tst          Stride of the target, elements, at least 1.
 * @param[in]  sst          Stride of the source, elements, at least 1.
 * @param[in]  nelems       Elements.
 * @param[in]  type         Their size.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common; a stride below 1.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_iput_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_iput() only; some elements may have been written.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.4.
 */
dmapp_return_t dmapp_iput(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                          ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_iput_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                             ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type,
                             dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_iput_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                              ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type);

/**
 * Strided get: element i*sst of the remote source goes to element i*tst of the local target. Else as dmapp_iput().
 * Local elements in between are not touched.
 *
 * @param[out] target_addr  Local.
 * @param[in]  source_addr  Remote triple.
 * @param[in]  source_seg   Remote triple.
 * @param[in]  source_pe    Remote triple.
 * @param[in]  tst          Stride of the target, elements, at least 1.
 * @param[in]  sst          Stride of the source, elements, at least 1.
 * @param[in]  nelems       Elements.
 * @param[in]  type         Their size.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common; a stride below 1.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_iget_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_iget() only.
 * @note Threads: any.
 * @note Never DMAPP_RC_ALIGNMENT_ERROR: any alignment is served (spec/dmapp.md 4.3).
 * @note Source: spec/dmapp.md 4.4.
 */
dmapp_return_t dmapp_iget(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                          ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_iget_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type,
                             dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_iget_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type);

/**
 * Indexed put: element i of the dense source goes to element tidx[i] of the target.
 *
 * @param[in]  target_addr  Remote triple; element 0 of the target.
 * @param[in]  target_seg   Remote triple.
 * @param[in]  target_pe    Remote triple.
 * @param[in]  source_addr  Local.
 * @param[in]  tidx         nelems indices, elements, none negative. Read before the call returns.
 * @param[in]  nelems       Elements.
 * @param[in]  type         Their size.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common; a negative index, or one that leads out of the segment.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_ixput_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_ixput() only; some elements may have been written.
 * @note Threads: any. Indices that occur twice: which element wins is open.
 * @note Source: spec/dmapp.md 4.5.
 */
dmapp_return_t dmapp_ixput(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                           ptrdiff_t *tidx, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_ixput_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                              ptrdiff_t *tidx, uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_ixput_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                               ptrdiff_t *tidx, uint64_t nelems, dmapp_type_t type);

/**
 * Indexed get: element sidx[i] of the remote source goes to element i of the dense target.
 *
 * @param[out] target_addr  Local.
 * @param[in]  source_addr  Remote triple; element 0 of the source.
 * @param[in]  source_seg   Remote triple.
 * @param[in]  source_pe    Remote triple.
 * @param[in]  sidx         nelems indices, elements, none negative. Read before the call returns.
 * @param[in]  nelems       Elements.
 * @param[in]  type         Their size.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common; a negative index, or one that leads out of the segment.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_ixget_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_ixget() only.
 * @note Threads: any.
 * @note Never DMAPP_RC_ALIGNMENT_ERROR: any alignment is served.
 * @note Never DMAPP_RC_NOT_SUPPORTED: DMAPP_BYTE, which the original does not serve here, is served.
 * @note Source: spec/dmapp.md 4.5.
 */
dmapp_return_t dmapp_ixget(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                           ptrdiff_t *sidx, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_ixget_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              ptrdiff_t *sidx, uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_ixget_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                               ptrdiff_t *sidx, uint64_t nelems, dmapp_type_t type);

/**
 * PE lists. dmapp_put_ixpe(): the same nelems elements go to every PE of the list. dmapp_scatter_ixpe(): the source
 * holds nelems elements for each entry of the list, in its order. Both write at the same symmetric address of each PE.
 *
 * @param[in]  target_addr      Symmetric address.
 * @param[in]  target_seg       The data segment's or the symmetric heap's descriptor.
 * @param[in]  target_pe_list   PEs. Read before the call returns.
 * @param[in]  num_target_pes   Entries; 0 succeeds without effect.
 * @param[in]  source_addr      Local.
 * @param[in]  nelems           Elements for one PE.
 * @param[in]  type             Their size.
 * @param[out] syncid           _nb only; covers all PEs.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common; a PE of the list is out of range (then nothing was written); the
 *                                     descriptor is one of registered memory.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_put_ixpe_nb(), dmapp_scatter_ixpe_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_put_ixpe(), dmapp_scatter_ixpe() only; other PEs may have been written.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.6.
 */
dmapp_return_t dmapp_put_ixpe(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                              uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_put_ixpe_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                 uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type,
                                 dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_put_ixpe_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                  uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_scatter_ixpe(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                  uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type);
dmapp_return_t dmapp_scatter_ixpe_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                     uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type,
                                     dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_scatter_ixpe_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                      uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type);

/**
 * Fetch nelems elements from the same symmetric address of every PE of the list, and concatenate them in its order.
 *
 * @param[out] target_addr      Local, num_source_pes * nelems elements.
 * @param[in]  source_addr      Symmetric address.
 * @param[in]  source_seg       The data segment's or the symmetric heap's descriptor.
 * @param[in]  source_pe_list   PEs. Read before the call returns.
 * @param[in]  num_source_pes   Entries; 0 succeeds without effect.
 * @param[in]  nelems           Elements from one PE.
 * @param[in]  type             Their size.
 * @param[out] syncid           _nb only; covers all PEs.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common; a PE of the list is out of range; the descriptor is one of registered
 *                                     memory.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           dmapp_gather_ixpe_nb() only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  dmapp_gather_ixpe() only.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.6.
 */
dmapp_return_t dmapp_gather_ixpe(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                 dmapp_type_t type);
dmapp_return_t dmapp_gather_ixpe_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                    dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                    dmapp_type_t type, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_gather_ixpe_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                     dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                     dmapp_type_t type);

/*
 * Atomics
 *
 * Atomic with respect to each other, whoever issues them, the owner included. On memory that peers map (the
 * symmetric heap, the data segment and most registered memory on one host) also with respect to the processor's
 * atomics.
 */

/**
 * The remote 64-bit word becomes old + operand, old AND operand, old OR operand, old XOR operand.
 *
 * @param[in]  target_addr  Remote triple, 8-byte aligned.
 * @param[in]  target_seg   Remote triple.
 * @param[in]  target_pe    Remote triple.
 * @param[in]  operand      By value: free at once.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common.
 * @retval DMAPP_RC_ALIGNMENT_ERROR    target_addr is not 8-byte aligned.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           The _nb calls only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  The blocking calls only.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.8.
 */
dmapp_return_t dmapp_aadd_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand);
dmapp_return_t dmapp_aadd_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_aadd_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 int64_t operand);
dmapp_return_t dmapp_aand_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand);
dmapp_return_t dmapp_aand_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_aand_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 int64_t operand);
dmapp_return_t dmapp_aor_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand);
dmapp_return_t dmapp_aor_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                               dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_aor_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand);
dmapp_return_t dmapp_axor_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand);
dmapp_return_t dmapp_axor_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_axor_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 int64_t operand);

/**
 * The same, and the old value goes to local memory.
 *
 * @param[out] target_addr  Local, 8 bytes, any alignment.
 * @param[in]  source_addr  Remote triple, 8-byte aligned.
 * @param[in]  source_seg   Remote triple.
 * @param[in]  source_pe    Remote triple.
 * @param[in]  operand      By value.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common.
 * @retval DMAPP_RC_ALIGNMENT_ERROR    source_addr is not 8-byte aligned.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           The _nb calls only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  The blocking calls only.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.8.
 */
dmapp_return_t dmapp_afadd_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand);
dmapp_return_t dmapp_afadd_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afadd_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand);
dmapp_return_t dmapp_afand_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand);
dmapp_return_t dmapp_afand_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afand_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand);
dmapp_return_t dmapp_afor_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             int64_t operand);
dmapp_return_t dmapp_afor_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afor_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand);
dmapp_return_t dmapp_afxor_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand);
dmapp_return_t dmapp_afxor_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afxor_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand);

/**
 * dmapp_afax_qw(): the word becomes (old AND andMask) XOR xorMask; with andMask 0 a swap. dmapp_acswap_qw(): it becomes
 * swaperand if it equals comperand. The old value goes to local memory.
 *
 * @param[out] target_addr  Local, 8 bytes, any alignment.
 * @param[in]  source_addr  Remote triple, 8-byte aligned.
 * @param[in]  source_seg   Remote triple.
 * @param[in]  source_pe    Remote triple.
 * @param[in]  andMask, xorMask, comperand, swaperand  By value.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common.
 * @retval DMAPP_RC_ALIGNMENT_ERROR    source_addr is not 8-byte aligned.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           The _nb calls only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  The blocking calls only.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.8.
 */
dmapp_return_t dmapp_afax_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             int64_t andMask, int64_t xorMask);
dmapp_return_t dmapp_afax_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_afax_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask);
dmapp_return_t dmapp_acswap_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                               int64_t comperand, int64_t swaperand);
dmapp_return_t dmapp_acswap_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand,
                                  dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_acswap_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                   dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand);

/**
 * Atomics described by a dmapp_amo_t: 32 and 64 bits, integer and floating point. dmapp_amo_put() changes the
 * remote word, dmapp_amo_get() also fetches the old value.
 *
 *   ADD AND OR XOR SWAP AX CSWAP   integers of 32 and 64 bits
 *   MIN MAX                        signed integers and floating point
 *   ADD                            floating point
 *
 * On a Gemini (hw_version 0): ADD AND OR XOR SWAP AX CSWAP, 64 bits.
 *
 * @param[in]  target_addr  dmapp_amo_put(): remote triple. dmapp_amo_get(): local, any alignment.
 * @param[in]  source_addr, source_seg, source_pe, target_seg, target_pe  Remote triple, aligned to the word.
 * @param[in]  amo          Read before the call returns.
 * @param[out] syncid       _nb only.
 * @retval DMAPP_RC_SUCCESS            Common.
 * @retval DMAPP_RC_INVALID_PARAM      Common; unknown op, type or flag.
 * @retval DMAPP_RC_ALIGNMENT_ERROR    The remote address is not aligned to the word.
 * @retval DMAPP_RC_NOT_SUPPORTED      The NIC has no such operation on that type.
 * @retval DMAPP_RC_RESOURCE_ERROR     Common.
 * @retval DMAPP_RC_NO_SPACE           The _nb calls only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  The blocking calls only.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 3.11, 4.9. The contents of dmapp_amo_t are a reading (9.2 no. 5).
 */
dmapp_return_t dmapp_amo_put(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, dmapp_amo_t *amo);
dmapp_return_t dmapp_amo_put_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, dmapp_amo_t *amo,
                                dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_amo_put_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 dmapp_amo_t *amo);
dmapp_return_t dmapp_amo_get(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             dmapp_amo_t *amo);
dmapp_return_t dmapp_amo_get_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, dmapp_amo_t *amo, dmapp_syncid_handle_t *syncid);
dmapp_return_t dmapp_amo_get_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, dmapp_amo_t *amo);

/**
 * Make sure that atomics kept in the NIC of a PE are in its memory. They always are here.
 *
 * @param[in] target_pe  PE.
 * @param[in] flags      0.
 * @retval DMAPP_RC_SUCCESS        Done.
 * @retval DMAPP_RC_INVALID_PARAM  PE out of range, or an unknown flag.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.9; reading 9.2 no. 13.
 */
dmapp_return_t dmapp_amo_flush(dmapp_pe_t target_pe, uint64_t flags);

/*
 * Completion
 */

/**
 * Is a request complete? Makes progress.
 *
 * @param[in,out] syncid  From an _nb call. NULL inside counts as complete. Set to NULL when the request is complete.
 * @param[out]    flag    dmapp_syncid_test() only: 1 complete and visible, 0 not. Also set, to 1, with
 *                        DMAPP_RC_TRANSACTION_ERROR.
 * @retval DMAPP_RC_SUCCESS            Told; dmapp_syncid_wait(): complete.
 * @retval DMAPP_RC_INVALID_PARAM      A pointer is NULL, or not a live syncid (a second copy of a retired one).
 * @retval DMAPP_RC_TRANSACTION_ERROR  The request has failed; it is retired.
 * @note Threads: any; one at a time per syncid.
 * @note Source: spec/dmapp.md 4.10; reading 9.2 no. 18.
 */
dmapp_return_t dmapp_syncid_test(dmapp_syncid_handle_t *syncid, int *flag);
dmapp_return_t dmapp_syncid_wait(dmapp_syncid_handle_t *syncid);

/**
 * Are the implicit (_nbi) requests complete? Those of all threads; while a helper thread or registered threads exist,
 * those of the calling thread. dmapp_thread_gsync_*(): always those of the calling thread alone. Syncids are not
 * covered. A few instructions when nothing is outstanding.
 *
 * @param[out] flag  The test calls only: 1 all complete and visible, 0 not. Set to 1 with DMAPP_RC_TRANSACTION_ERROR.
 * @retval DMAPP_RC_SUCCESS            Told; the wait calls: all complete.
 * @retval DMAPP_RC_INVALID_PARAM      flag is NULL, or the library is not up.
 * @retval DMAPP_RC_TRANSACTION_ERROR  All have ended, at least one of them has failed. Told once.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.10. The prototypes of the thread calls are a reading (9.2 no. 6).
 */
dmapp_return_t dmapp_gsync_test(int *flag);
dmapp_return_t dmapp_gsync_wait(void);
dmapp_return_t dmapp_thread_gsync_test(int *flag);
dmapp_return_t dmapp_thread_gsync_wait(void);

/*
 * Registration
 */

/**
 * Export [addr, addr + length) of this process.
 *
 * @param[in]  addr      Any alignment, present and writable memory.
 * @param[in]  length    Bytes, not 0.
 * @param[out] seg_desc  Filled with exactly that address and length. To be sent to whoever shall reach the memory.
 * @retval DMAPP_RC_SUCCESS           Exported. The same range again: another registration, with its own unregister.
 * @retval DMAPP_RC_INVALID_PARAM     NULL, length 0, a range that wraps around or is not mapped.
 * @retval DMAPP_RC_PERMISSION_ERROR  The pages may not be read and written.
 * @retval DMAPP_RC_RESOURCE_ERROR    No registration left, or emunic has gone.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 3.1, 4.11. Private memory up to EMUNIC_ADOPT_LIMIT is moved to pages that peers map.
 */
dmapp_return_t dmapp_mem_register(void *addr, uint64_t length, dmapp_seg_desc_t *seg_desc);

/**
 * End an export made by dmapp_mem_register() or dmapp_mem_reserve(). When it returns nobody reaches the memory any
 * more; later requests fail.
 *
 * @param[in] seg_desc  The descriptor, or a copy: its contents count.
 * @retval DMAPP_RC_SUCCESS        Ended.
 * @retval DMAPP_RC_INVALID_PARAM  Not a live registration of this process, or a symmetric segment.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.11.
 */
dmapp_return_t dmapp_mem_unregister(dmapp_seg_desc_t *seg_desc);

/**
 * Do two descriptors describe the same region?
 *
 * @param[in]  a, b  Descriptors.
 * @param[out] flag  1 same address, length and registration, else 0.
 * @retval DMAPP_RC_SUCCESS        Told.
 * @retval DMAPP_RC_INVALID_PARAM  A pointer is NULL.
 * @note Threads: any. Any time.
 * @note Source: spec/dmapp.md 4.11.
 */
dmapp_return_t dmapp_segdesc_compare(dmapp_seg_desc_t *a, dmapp_seg_desc_t *b, int *flag);

/**
 * dmapp_mem_reserve(): reserve a registration for a range whose pages need not be there yet; nobody can reach it.
 * dmapp_mem_update(): make part of it, inside the reserved range, reachable. The descriptor stays the same.
 *
 * @param[in]     addr      Range.
 * @param[in]     length    Bytes, not 0.
 * @param[in]     flags     0.
 * @param[in,out] seg_desc  Filled by reserve; update is given it.
 * @retval DMAPP_RC_SUCCESS           Reserved; reachable.
 * @retval DMAPP_RC_INVALID_PARAM     NULL, length 0, unknown flags, not mapped, not a reserved region, outside of it.
 * @retval DMAPP_RC_PERMISSION_ERROR  dmapp_mem_update() only: the pages may not be read and written.
 * @retval DMAPP_RC_RESOURCE_ERROR    No registration left, or emunic has gone.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.11; reading 9.2 no. 13.
 */
dmapp_return_t dmapp_mem_reserve(void *addr, uint64_t length, uint64_t flags, dmapp_seg_desc_t *seg_desc);
dmapp_return_t dmapp_mem_update(void *addr, uint64_t length, uint64_t flags, dmapp_seg_desc_t *seg_desc);

/*
 * Symmetric heap
 */

/**
 * A block of the symmetric heap, 64-byte aligned, content undefined. Not collective, no barrier. The same sequence of
 * calls gives the same addresses in every PE. The heap's size is XT_SYMMETRIC_HEAP_SIZE or, first,
 * SHMEM_SYMMETRIC_SIZE: a number with one of the suffixes k m g (either case); 2 GiB without.
 *
 * @param[in] size  Bytes; 0 gives a block of its own.
 * @return The block, or NULL: no space, or the library is not up.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.12.
 */
void *dmapp_sheap_malloc(size_t size);

/**
 * Change the size of a block, as C's realloc() does.
 *
 * @param[in] ptr   A block, or NULL: as dmapp_sheap_malloc().
 * @param[in] size  Bytes; 0 frees the block.
 * @return The block, perhaps elsewhere. NULL: freed; no space (the old block stays); ptr is not a block.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.12.
 */
void *dmapp_sheap_realloc(void *ptr, size_t size);

/**
 * Give a block back. NULL and what is not a block are ignored. From now on puts, gets and atomics to it are refused
 * (DMAPP_RC_INVALID_PARAM) until it is allocated again.
 *
 * @param[in] ptr  A block.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.12.
 */
void dmapp_sheap_free(void *ptr);

/**
 * How full the heap is.
 *
 * @param[out] stats  Filled.
 * @retval DMAPP_RC_SUCCESS        Filled.
 * @retval DMAPP_RC_INVALID_PARAM  stats is NULL, or the library is not up.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 3.10, 4.12.
 */
dmapp_return_t dmapp_sheap_stats(dmapp_sheap_stats_t *stats);

/*
 * Locks
 */

/**
 * Mutual exclusion among all PEs and threads. A lock is a word of exported memory at lock_host, free when zero.
 * dmapp_lock_acquire() waits; dmapp_lock_try() does not. Releasing completes no _nbi requests.
 *
 * @param[in]  lock_addr  Remote triple of the lock, 8-byte aligned.
 * @param[in]  lock_seg   Remote triple.
 * @param[in]  lock_host  Remote triple.
 * @param[in]  flags      0; other bits are ignored (reading 9.2 no. 13).
 * @param[out] handle     Names the acquisition until it is released. For the thread that got it.
 * @retval DMAPP_RC_SUCCESS            Acquired.
 * @retval DMAPP_RC_INVALID_PARAM      NULL, PE out of range, bad descriptor, address outside the segment.
 * @retval DMAPP_RC_ALIGNMENT_ERROR    lock_addr is not 8-byte aligned.
 * @retval DMAPP_RC_BUSY               dmapp_lock_try() only: held by somebody (reading 9.2 no. 8).
 * @retval DMAPP_RC_NO_SPACE           The process holds DMAPP_MAX_LOCKS locks (default 128, at most 1023).
 * @retval DMAPP_RC_RESOURCE_ERROR     emunic has gone.
 * @retval DMAPP_RC_TRANSACTION_ERROR  The host of the lock, or who queues in front, has gone; or the network failed a
 *                                     transaction.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.13.
 */
dmapp_return_t dmapp_lock_acquire(dmapp_lock_desc_t *lock_addr, dmapp_seg_desc_t *lock_seg, dmapp_pe_t lock_host,
                                  uint64_t flags, dmapp_lock_handle_t *handle);
dmapp_return_t dmapp_lock_try(dmapp_lock_desc_t *lock_addr, dmapp_seg_desc_t *lock_seg, dmapp_pe_t lock_host,
                              uint64_t flags, dmapp_lock_handle_t *handle);

/**
 * Release a lock, by its handle or by its place.
 *
 * @param[in] handle     From dmapp_lock_acquire() or dmapp_lock_try().
 * @param[in] lock_addr  Where a lock is that this process holds.
 * @param[in] lock_host  Its PE.
 * @param[in] flags      0; other bits are ignored.
 * @retval DMAPP_RC_SUCCESS            Released.
 * @retval DMAPP_RC_INVALID_PARAM      Not a live handle.
 * @retval DMAPP_RC_NOT_FOUND          dmapp_lock_release_addr() only: this process holds no lock there.
 * @retval DMAPP_RC_RESOURCE_ERROR     emunic has gone.
 * @retval DMAPP_RC_TRANSACTION_ERROR  The host of the lock has gone; the handle has ended.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.13.
 */
dmapp_return_t dmapp_lock_release(dmapp_lock_handle_t handle, uint64_t flags);
dmapp_return_t dmapp_lock_release_addr(dmapp_lock_desc_t *lock_addr, dmapp_pe_t lock_host, uint64_t flags);

/*
 * Message queues
 */

/**
 * Receive messages: the callback runs for each, in the helper thread (DMAPP_QUEUE_ASYNC_PROGRESS) or inside library
 * calls. Every PE attaches before anybody sends; the program sees to that. One queue per process.
 *
 * @param[in]  queue_cb    Gets the context, the message, its length in bytes (reading 9.2 no. 9) and the sender. The
 *                         message is valid during the call. May call anything here. Returns 0.
 * @param[in]  context     Passed on.
 * @param[in]  flags       0; other bits are ignored.
 * @param[out] queue_hndl  The queue.
 * @retval DMAPP_RC_SUCCESS         Attached.
 * @retval DMAPP_RC_INVALID_PARAM   A pointer is NULL, or the library is not up.
 * @retval DMAPP_RC_BUSY            There is a queue already.
 * @retval DMAPP_RC_RESOURCE_ERROR  No memory, or no thread.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.14.
 */
dmapp_return_t dmapp_queue_attach(int (*queue_cb)(void *context, void *data, uint32_t len, dmapp_pe_t rank),
                                  void *context, uint64_t flags, dmapp_queue_handle_t *queue_hndl);

/**
 * Send a message to a PE's queue. Waits while it is full, and makes progress meanwhile. In order per sender and target.
 *
 * @param[in] queue_hndl  The queue.
 * @param[in] source      Local, any memory, free on return.
 * @param[in] nelems      Elements: together at most (queue_nelems - 1) * 8 bytes.
 * @param[in] type        Their size.
 * @param[in] target_pe   PE; may be the caller.
 * @param[in] flags       0; other bits are ignored.
 * @retval DMAPP_RC_SUCCESS            Sent.
 * @retval DMAPP_RC_INVALID_PARAM      Not a queue, NULL, PE out of range, bad type, too long.
 * @retval DMAPP_RC_RESOURCE_ERROR     emunic has gone.
 * @retval DMAPP_RC_TRANSACTION_ERROR  The target has gone.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.14. Never DMAPP_RC_NO_SPACE or DMAPP_RC_BUSY.
 */
dmapp_return_t dmapp_queue_put(dmapp_queue_handle_t queue_hndl, void *source, uint64_t nelems, dmapp_type_t type,
                               dmapp_pe_t target_pe, uint64_t flags);

/**
 * Stop receiving. Messages that are in the queue are dropped. Not from a callback.
 *
 * @param[in] queue_hndl  The queue.
 * @param[in] flags       0; other bits are ignored.
 * @retval DMAPP_RC_SUCCESS        Detached.
 * @retval DMAPP_RC_INVALID_PARAM  Not a queue.
 * @note Threads: one. Waits for a callback that runs.
 * @note Source: spec/dmapp.md 4.14.
 */
dmapp_return_t dmapp_queue_detach(dmapp_queue_handle_t queue_hndl, uint64_t flags);

/*
 * Process sets
 */

/**
 * Describe a process set. Local. All members create it before any of them exports it; the program sees to that.
 *
 * @param[in]  pdesc       Members: a list, or base, stride and count. The caller is one of them.
 * @param[in]  identifier  Not 0, the same in all members, no other set's.
 * @param[in]  modes       DMAPP_C_PSET_MODE_*.
 * @param[in]  attrs       NULL, or the radix of the tree.
 * @param[out] pset_hndl   The set.
 * @retval DMAPP_RC_SUCCESS         Created.
 * @retval DMAPP_RC_INVALID_PARAM   NULL, identifier 0, unknown modes or types, PE out of range or twice, caller not
 *                                  a member.
 * @retval DMAPP_RC_BUSY            The identifier is in use in this process.
 * @retval DMAPP_RC_NO_SPACE        Too many sets (64 in a process; each that was cancelled counts until
 *                                  dmapp_finalize()).
 * @retval DMAPP_RC_RESOURCE_ERROR  No memory, or emunic has gone.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.15.
 */
dmapp_return_t dmapp_c_pset_create(dmapp_c_pset_desc_t *pdesc, uint64_t identifier, uint64_t modes,
                                   dmapp_c_pset_attrs_t *attrs, dmapp_c_pset_handle_t *pset_hndl);

/**
 * Make a set usable. Every member calls it. Not a synchronisation.
 *
 * @param[in] pset_hndl  The set.
 * @retval DMAPP_RC_SUCCESS            Usable.
 * @retval DMAPP_RC_INVALID_PARAM      Not a set, cancelled, or exported already.
 * @retval DMAPP_RC_NOT_FOUND          A member has not created it.
 * @retval DMAPP_RC_RESOURCE_ERROR     emunic has gone.
 * @retval DMAPP_RC_TRANSACTION_ERROR  A member has gone.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.15.
 */
dmapp_return_t dmapp_c_pset_export(dmapp_c_pset_handle_t pset_hndl);

/**
 * Start a barrier; dmapp_c_pset_test() or dmapp_c_pset_wait() completes it.
 *
 * @param[in] pset_hndl  An exported set.
 * @retval DMAPP_RC_SUCCESS        Started.
 * @retval DMAPP_RC_INVALID_PARAM  Not a set, not exported, or cancelled.
 * @retval DMAPP_RC_BUSY           An operation runs on the set.
 * @note Threads: any; one at a time per set.
 * @note Source: spec/dmapp.md 4.15.
 */
dmapp_return_t dmapp_c_barrier_join(dmapp_c_pset_handle_t pset_hndl);

/**
 * Start a reduction whose result every member gets. Legal: SUM and PROD on all numbers; MAX and MIN on real ones;
 * logical and bitwise ones on integers; MINLOC and MAXLOC on the pairs, the smaller location wins ties. Integers wrap;
 * MAX and MIN prefer a number to a NaN. The same contributions give the same bits in every member and every time,
 * whoever comes last. Members that start different operations get DMAPP_RC_TRANSACTION_ERROR from completion as far as
 * they notice (a barrier notices nothing), and the set is as before.
 *
 * @param[in]  pset    An exported set.
 * @param[in]  in      nelems elements, read before the call returns.
 * @param[out] out     nelems elements, written at completion. May be `in`.
 * @param[in]  nelems  1 to dmapp_c_greduce_nelems_max().
 * @param[in]  type    Elements.
 * @param[in]  op      Operation.
 * @retval DMAPP_RC_SUCCESS        Started.
 * @retval DMAPP_RC_INVALID_PARAM  Not a set, not exported or cancelled, NULL, nelems, type or op not legal.
 * @retval DMAPP_RC_BUSY           An operation runs on the set.
 * @note Threads: any; one at a time per set.
 * @note Source: spec/dmapp.md 4.15.
 */
dmapp_return_t dmapp_c_greduce_start(dmapp_c_pset_handle_t pset, void *in, void *out, uint32_t nelems,
                                     dmapp_c_type_t type, dmapp_c_op_t op);

/**
 * Most elements of one reduction.
 *
 * @param[in]  type        Elements.
 * @param[out] nelems_max  At least 64 bytes' worth (reading 9.2 no. 10).
 * @retval DMAPP_RC_SUCCESS        Told.
 * @retval DMAPP_RC_INVALID_PARAM  NULL, or no such type.
 * @note Threads: any. Any time.
 * @note Source: spec/dmapp.md 4.15.
 */
dmapp_return_t dmapp_c_greduce_nelems_max(dmapp_c_type_t type, uint32_t *nelems_max);

/**
 * Has the set's operation ended? dmapp_c_pset_wait() waits for it. Without an operation: it has.
 *
 * @param[in] pset_hndl  The set.
 * @retval DMAPP_RC_SUCCESS            Ended; results are there.
 * @retval DMAPP_RC_NOT_DONE           dmapp_c_pset_test() only: it runs.
 * @retval DMAPP_RC_INVALID_PARAM      Not a set.
 * @retval DMAPP_RC_TRANSACTION_ERROR  It has failed: members started different ones; or the network did, or emunic has
 *                                     gone: then the set can only be destroyed.
 * @note Threads: any; one at a time per set.
 * @note Source: spec/dmapp.md 4.15.
 */
dmapp_return_t dmapp_c_pset_test(dmapp_c_pset_handle_t pset_hndl);
dmapp_return_t dmapp_c_pset_wait(dmapp_c_pset_handle_t pset_hndl);

/**
 * Drop the operation that runs, in this PE alone. Afterwards the set may only be destroyed. Nothing runs: nothing
 * happens.
 *
 * @param[in] pset_hndl  The set.
 * @retval DMAPP_RC_SUCCESS        Dropped.
 * @retval DMAPP_RC_INVALID_PARAM  Not a set.
 * @note Threads: any; one at a time per set.
 * @note Source: spec/dmapp.md 4.15.
 */
dmapp_return_t dmapp_c_pset_cancel_op(dmapp_c_pset_handle_t pset_hndl);

/**
 * Forget a set. Local.
 *
 * @param[in] pset_hndl  The set.
 * @retval DMAPP_RC_SUCCESS        Destroyed.
 * @retval DMAPP_RC_INVALID_PARAM  Not a set.
 * @retval DMAPP_RC_BUSY           An operation or its traffic is pending.
 * @note Threads: any; one at a time per set.
 * @note Source: spec/dmapp.md 4.15.
 */
dmapp_return_t dmapp_c_pset_destroy(dmapp_c_pset_handle_t pset_hndl);

/*
 * Progress and checkpoints
 */

/**
 * A callback that runs while the library waits for something. At most 16.
 *
 * @param[in] progress_cb  Returns 0, or -1: it is not called again in this wait.
 * @param[in] data         Passed on.
 * @retval DMAPP_RC_SUCCESS        Registered. A callback that is registered already gets the new data.
 * @retval DMAPP_RC_INVALID_PARAM  NULL, or the library is not up.
 * @retval DMAPP_RC_NO_SPACE       The table is full.
 * @note Threads: any. A callback must not wait for what only its caller can do.
 * @note Source: spec/dmapp.md 4.16.
 */
dmapp_return_t dmapp_register_progress_cb(int (*progress_cb)(void *), void *data);

/**
 * Take a progress callback away.
 *
 * @param[in] progress_cb  The callback.
 * @retval DMAPP_RC_SUCCESS        Taken away.
 * @retval DMAPP_RC_INVALID_PARAM  NULL, or the library is not up.
 * @retval DMAPP_RC_NOT_FOUND      Not registered.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.16.
 */
dmapp_return_t dmapp_deregister_progress_cb(int (*progress_cb)(void *));

/**
 * Make progress: collect completions, deliver messages of the queue.
 *
 * @retval DMAPP_RC_SUCCESS        Done.
 * @retval DMAPP_RC_INVALID_PARAM  The library is not up.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.16.
 */
dmapp_return_t dmapp_progress(void);

/**
 * Checkpoint and restart of a job. Not available.
 *
 * @param[in] restart_modes  Not looked at.
 * @retval DMAPP_RC_NOT_DONE       dmapp_checkpoint() only: requests are outstanding.
 * @retval DMAPP_RC_NOT_SUPPORTED  Else.
 * @retval DMAPP_RC_INVALID_PARAM  The library is not up.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 4.16.
 */
dmapp_return_t dmapp_checkpoint(void);
dmapp_return_t dmapp_restart(uint32_t restart_modes);

/**
 * Give the calling thread an account of its own implicit requests, or take it back (waits for them). Threads that
 * do not register still work.
 *
 * @retval DMAPP_RC_SUCCESS        Done. Registered already: done.
 * @retval DMAPP_RC_INVALID_PARAM  The library is not up.
 * @retval DMAPP_RC_NO_SPACE       dmapp_thread_register() only: max_concurrency threads are registered.
 * @retval DMAPP_RC_NOT_FOUND      dmapp_thread_unregister() only: not registered.
 * @note Threads: any.
 * @note Source: spec/dmapp.md 1.8, 4.16. Prototypes: reading 9.2 no. 6.
 */
dmapp_return_t dmapp_thread_register(void);
dmapp_return_t dmapp_thread_unregister(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif
