/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gni_pub.h: user-level Generic Network Interface (uGNI) over the emulated NIC.
 *
 * The interface of the Aries era: revision 0x5c plus two later families, chained FMA (GNI_CtPost*) and completion
 * channels (GNI_CompChan*). Other later calls (Cdm hold/release, capabilities, dqueue, orb registers,
 * GNI_SetJobResInfo, GNI_ConfigureJobFd) are left out: their types are not known and no surveyed program calls
 * them. The kernel-level interface is left out too. Source compatible with the original; binary compatibility is
 * not promised.
 *
 * Reading the comments
 *
 *   spec/ugni.md    with a section: what the text follows. Installed as share/doc/emunic/spec/ugni.md. "Reading 7.9"
 *                   is a section, too, of a point that no source settles: this library does what it recommends.
 *   Threads: any    callable from any thread at any time, also while other threads use the same NIC handle.
 *   Threads: NIC    calls on objects of one NIC handle (and its CDM) must not overlap; the caller serialises
 *                   them. Different NIC handles are independent.
 *   Blocking        only the calls that say "Blocks" wait; the others return promptly.
 *   Status          a handle that is NULL or not live, or a NULL output pointer, is GNI_RC_INVALID_PARAM in every
 *                   call. After an error output arguments are unchanged unless the comment says otherwise.
 *   Ownership       strings, attributes and arrays passed in are copied and stay the caller's, unless stated.
 *   "GNI_X() only"  a status of that call, where several calls share a comment.
 *   "Never CODE"    a status that the original documents and this library never gives, with the reason. Every other
 *                   status is provoked by emunic-conformance-ugni(1).
 */
#ifndef GNI_PUB_H
#define GNI_PUB_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/*
 * Version
 *
 * Revision 0x5d stands for "0x5c with chained FMA". The original's number for the chained calls is not known; the
 * reading taken is the recommended one: report 0x5d and let GNI_VERSION_FMA_CHAIN_TRANSACTIONS be that version.
 */
#define GNI_MAJOR_REV 0x00
#define GNI_MINOR_REV 0x5d
#define GNI_CODE_REV  0x0000

#define GNI_GET_MAJOR(value) (((value)&0xFF000000) >> 24)
#define GNI_GET_MINOR(value) (((value)&0x00FF0000) >> 16)
#define GNI_GET_REV(value)   ((value)&0x0000FFFF)

/* Major in bits 31..24, minor in 23..16, code in 15..0. All of these work in #if. */
#define GNI_VERSION                        ((GNI_MAJOR_REV << 24) | (GNI_MINOR_REV << 16) | GNI_CODE_REV)
#define GNI_VERSION_CHECK(maj, min, code)  (((maj) << 24) | ((min) << 16) | (code))
#define GNI_VERSION_FMA_SHARING            0x5b0000
#define GNI_VERSION_FMA_CHAIN_TRANSACTIONS 0x5d0000

/* Argument annotations, empty. */
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
 * Protection tags, keys and cookies
 */
enum {
    GNI_PTAG_LND = 1,        /* kernel file system driver */
    GNI_PTAG_OFED = 2,       /* kernel */
    GNI_PTAG_USER_START = 3, /* first user value */
    GNI_PTAG_LND_KNC = 128,
    GNI_PTAG_USER_END = 253, /* last user value */
    GNI_PTAG_HSNBOOT = 254,
    GNI_PTAG_MAX = 254,
    GNI_PTAG_LB = 255
};
#define GNI_FIND_ALLOC_PTAG GNI_PTAG_LB /* Aries: the driver finds the ptag that belongs to the cookie */

enum {
    GNI_PKEY_INVALID = 0,
    GNI_PKEY_LND = 1,
    GNI_PKEY_OFED = 2,
    GNI_PKEY_USER_START = 128,
    GNI_PKEY_USER_END = 65407,
    GNI_PKEY_HSNBOOT = 65408,
    GNI_PKEY_MAX = 65534,
    GNI_PKEY_LB = 65535
};

#define GNI_COOKIE_PKEY_MASK      0xFFFF
#define GNI_COOKIE_PKEY_SHIFT     16
#define GNI_COOKIE_CBPS_MDD_MASK  0x7
#define GNI_COOKIE_CBPS_MDD_SHIFT 3
/* Callers pass 0 for cbps_mdd. */
#define GNI_JOB_CREATE_COOKIE(pkey, cbps_mdd)                                                                          \
    ((((uint32_t)(pkey)) << GNI_COOKIE_PKEY_SHIFT) |                                                                   \
     (((uint32_t)(cbps_mdd)&GNI_COOKIE_CBPS_MDD_MASK) << GNI_COOKIE_CBPS_MDD_SHIFT))

/*
 * Return codes. Programs index tables of 14 with them: no call returns any other value.
 */
typedef enum gni_return {
    GNI_RC_SUCCESS = 0,            /* done */
    GNI_RC_NOT_DONE = 1,           /* nothing there yet, or try again */
    GNI_RC_INVALID_PARAM = 2,      /* bad handle or argument */
    GNI_RC_ERROR_RESOURCE = 3,     /* a limited resource is exhausted, busy, in use or overrun */
    GNI_RC_TIMEOUT = 4,            /* time limit reached */
    GNI_RC_PERMISSION_ERROR = 5,   /* not privileged, or access conflict */
    GNI_RC_DESCRIPTOR_ERROR = 6,   /* no descriptor, or a bad one */
    GNI_RC_ALIGNMENT_ERROR = 7,    /* alignment of an address or a length */
    GNI_RC_INVALID_STATE = 8,      /* object not in the state that the call needs */
    GNI_RC_NO_MATCH = 9,           /* no such thing */
    GNI_RC_SIZE_ERROR = 10,        /* too large, or buffer too small */
    GNI_RC_TRANSACTION_ERROR = 11, /* a network transaction failed */
    GNI_RC_ILLEGAL_OP = 12,        /* operation not supported here */
    GNI_RC_ERROR_NOMEM = 13        /* out of host memory */
} gni_return_t;

/**
 * Text of each return code: 14 entries, the enumerators' names. Static storage, never changed. (Reading 7.24.)
 */
extern const char *gni_err_str[];

/*
 * CDM modes (GNI_CdmCreate). Unknown bits inside GNI_CDM_MODE_MASK are ignored, contradictory pairs accepted.
 */
#define GNI_CDM_MODE_FORK_NOCOPY            0x00000001 /* fork: registered pages not copied to the child */
#define GNI_CDM_MODE_FORK_FULLCOPY          0x00000002 /* fork: all registered pages copied */
#define GNI_CDM_MODE_FORK_PARTCOPY          0x00000004 /* fork: partly used boundary pages copied; the default */
#define GNI_CDM_MODE_ERR_NO_KILL            0x00000008 /* report network errors on the CQ, never kill */
#define GNI_CDM_MODE_ERR_ALL_KILL           0x00000010 /* kill on any transaction error */
#define GNI_CDM_MODE_FAST_DATAGRAM_POLL     0x00000020 /* datagram test and probe without the kernel */
#define GNI_CDM_MODE_BTE_SINGLE_CHANNEL     0x00000040 /* one BTE channel instead of three */
#define GNI_CDM_MODE_USE_PCI_IOMMU          0x00000080 /* force the PCI IOMMU */
#define GNI_CDM_MODE_MDD_DEDICATED          0x00000100 /* dedicated MDDs by default */
#define GNI_CDM_MODE_MDD_SHARED             0x00000200 /* shared MDD pool; the default */
#define GNI_CDM_MODE_DUAL_EVENTS            0x00001000 /* LOCAL and GLOBAL on one post; halves the posts per CQ */
#define GNI_CDM_MODE_DLA_ENABLE_FORWARDING  0x00004000
#define GNI_CDM_MODE_DLA_DISABLE_FORWARDING 0x00008000
#define GNI_CDM_MODE_FMA_DEDICATED          0x00010000 /* own FMA descriptor, or attach fails; default */
#define GNI_CDM_MODE_FMA_SHARED             0x00020000 /* share FMA descriptors inside the protection domain */
#define GNI_CDM_MODE_CACHED_AMO_ENABLED     0x00040000 /* allow the cached (_C, _SC) AMO commands */
#define GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT 0x00080000 /* CQ memory near the NIC */
#define GNI_CDM_MODE_FLBTE_DISABLE          0x00100000 /* no FMA-launched BTE */
#define GNI_CDM_MODE_FMA_SMALL_WINDOW       0x00200000 /* map only a small part of the FMA window */
#define GNI_CDM_MODE_MASK                   0x0FFFFFFF /* bits a program may set */
#define GNI_CDM_MODE_PRIV_RESERVED_1        0x10000000
#define GNI_CDM_MODE_PRIV_RESERVED_2        0x20000000
#define GNI_CDM_MODE_PRIV_RESERVED_3        0x40000000
#define GNI_CDM_MODE_PRIV_RESERVED_4        0x80000000
#define GNI_CDM_MODE_PRIV_MASK              0xF0000000

/*
 * Datagram states. All but PENDING and REMOTE_DATA are final.
 */
typedef enum gni_post_state {
    GNI_POST_PENDING = 0,
    GNI_POST_COMPLETED = 1,
    GNI_POST_ERROR = 2,
    GNI_POST_TIMEOUT = 3,
    GNI_POST_TERMINATED = 4, /* cancelled, or the endpoint went away */
    GNI_POST_REMOTE_DATA = 5 /* peer's data here, exchange unfinished (unconfirmed): pending */
} gni_post_state_t;

/*
 * Memory registration flags. The ordering flags are hints: this library always gives the strongest order.
 */
#define GNI_MEM_READWRITE           0x00000000
#define GNI_MEM_READ_ONLY           0x00000001 /* peers may only GET; a PUT source, no GET destination */
#define GNI_MEM_USE_VMDH            0x00000002 /* take the MDH from the block of GNI_SetMddResources() */
#define GNI_MEM_USE_GART            0x00000004
#define GNI_MEM_PHYS_CONT           0x00000008
#define GNI_MEM_PHYS_SEGMENTS       0x00000010 /* kernel segments only */
#define GNI_MEM_STRICT_PI_ORDERING  0x00000020
#define GNI_MEM_PI_FLUSH            0x00000040
#define GNI_MEM_MDD_CLONE           0x00000080
#define GNI_MEM_RELAXED_PI_ORDERING 0x00000100
#define GNI_MEM_RESERVE_REGION      0x00000200 /* reserve the translation range only */
#define GNI_MEM_UPDATE_REGION       0x00000400 /* populate a reserved range; the first call makes the MDH live */
#define GNI_MEM_MDD_SHARED          0x00000800 /* overrides the CDM's default */
#define GNI_MEM_MDD_DEDICATED       0x00001000 /* overrides the CDM's default */
#define GNI_MEM_CUDA                0x01000000 /* GPU device memory */
#define GNI_EXMEM_FLAGS(flag)       ((flag) >> 24)
#define GNI_MEM_IS_EXTERNAL(flag)   GNI_EXMEM_FLAGS(flag)

/* Memory handle attributes (GNI_MemHndlQueryAttr): ordinals, not bits. */
typedef enum gni_mem_handle_attr {
    GNI_MEMHNDL_ATTR_READONLY = 1,
    GNI_MEMHNDL_ATTR_VMDH = 2,
    GNI_MEMHNDL_ATTR_MRT = 3,
    GNI_MEMHNDL_ATTR_GART = 4,
    GNI_MEMHNDL_ATTR_IOMMU = 5,
    GNI_MEMHNDL_ATTR_PCI_IOMMU = 6,
    GNI_MEMHNDL_ATTR_CLONE = 7
} gni_mem_handle_attr_t;

/*
 * Completion queue modes (GNI_CqCreate)
 */
typedef uint32_t gni_cq_mode_t;

#define GNI_CQ_NOBLOCK          0x00000000 /* polling only */
#define GNI_CQ_BLOCKING         0x00000001 /* waiting allowed, polling too */
#define GNI_CQ_EMULATED         0x00000002 /* internal */
#define GNI_CQ_EMULATED_INVALID (GNI_CQ_EMULATED | GNI_CQ_BLOCKING)
#define GNI_CQ_PHYS_PAGES       0x00000004 /* CQ memory from physical pages */
#define GNI_CQ_UNMANAGED        0x00000008 /* never polled; swallows remote events without errors */

#define GNI_CQ_IS_NON_BLOCKING(modes)     (((modes)&GNI_CQ_BLOCKING) == 0)
#define GNI_CQ_IS_BLOCKING(modes)         (((modes)&GNI_CQ_BLOCKING) != 0)
#define GNI_CQ_IS_EMULATED(modes)         (((modes)&GNI_CQ_EMULATED) != 0)
#define GNI_CQ_IS_NOT_EMULATED(modes)     (((modes)&GNI_CQ_EMULATED) == 0)
#define GNI_CQ_IS_INVALID_EMULATED(modes) (((modes)&GNI_CQ_EMULATED_INVALID) == GNI_CQ_EMULATED_INVALID)
#define GNI_CQ_USE_PHYS_PAGES(modes)      (((modes)&GNI_CQ_PHYS_PAGES) != 0)

/*
 * Completion queue entries
 *
 * An entry is an opaque 64-bit word: read it with the accessors only. Never zero when one was delivered. The
 * accessors are pure functions of their argument (Threads: any); the GNI_CQ_* macros are what programs normally
 * write.
 */
typedef uint64_t gni_cq_entry_t;

#define GNI_CQ_EVENT_TYPE_POST  0x0ULL /* posted transaction, or event caused by a peer's post */
#define GNI_CQ_EVENT_TYPE_SMSG  0x1ULL
#define GNI_CQ_EVENT_TYPE_DMAPP 0x2ULL
#define GNI_CQ_EVENT_TYPE_MSGQ  0x3ULL

/* A program that defines GNI_INLINE_CQ_FUNCTIONS brings its own declarations of these. */
#ifndef GNI_INLINE_CQ_FUNCTIONS
/**
 * Payload of an entry.
 *
 * @return Bits 47..0: the 48-bit value of a CQ write; the sender's event of a remote entry; otherwise the fields
 *         below.
 * @note Source: spec/ugni.md 2.10, as for all accessors here. The bit layout is this library's own.
 */
uint64_t gni_cq_get_data(gni_cq_entry_t entry);

/**
 * Engine that made the entry: 1 FMA, 2 BTE, 3 SMSG or MSGQ send, 4 event caused by a peer, 5 CQ write, 6 CE,
 * 15 the library. (The original's numbers are not known; reading 7.3.)
 */
uint64_t gni_cq_get_source(gni_cq_entry_t entry);

/**
 * Outcome: 0 ok, 1 network failure, 2 peer gone, 3 bad remote handle, 4 outside the remote region, 5 remote
 * permission, 6 remote CQ full, 7 local access, 8 retransmission limit, 9 cancelled, 10 malformed command,
 * 11 members of a reduction that do not agree.
 * (Own numbers; reading 7.3.) GNI_CqErrorStr() puts it in words, aries/misc/exceptions.h gives them names:
 * A_STATUS_AT_PROTECTION_ERR is 5.
 */
uint64_t gni_cq_get_status(gni_cq_entry_t entry);

/** Always 0: the meaning in the original is not known. */
uint64_t gni_cq_get_info(gni_cq_entry_t entry);

/** Non-zero if this CQ overran: entries were lost. */
uint64_t gni_cq_overrun(gni_cq_entry_t entry);

/** Non-zero if the peer's destination CQ overran. */
uint64_t gni_cq_rem_overrun(gni_cq_entry_t entry);

/** Event data, low 24 bits as on Aries; on a Gemini all 32. Works on source and destination entries. */
uint64_t gni_cq_get_inst_id(gni_cq_entry_t entry);

/** Event data of a destination entry, all 32 bits; the low 32 bits of a CQ write's value. */
uint64_t gni_cq_get_rem_inst_id(gni_cq_entry_t entry);

/**
 * Transaction number (24 bits) of a POST entry on a source CQ: the key by which GNI_GetCompleted() finds the
 * descriptor.
 */
uint64_t gni_cq_get_tid(gni_cq_entry_t entry);

/** The 32-bit msg_id of an SMSG or MSGQ send completion. */
uint64_t gni_cq_get_msg_id(gni_cq_entry_t entry);

/** One of GNI_CQ_EVENT_TYPE_*. */
uint64_t gni_cq_get_type(gni_cq_entry_t entry);

/* DLA details. There is no DLA here: always 0 (reading 7.3). */
uint64_t gni_cq_get_block_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_unsuccessful_cnt(gni_cq_entry_t entry);
uint64_t gni_cq_get_marker_id(gni_cq_entry_t entry);
uint64_t gni_cq_get_failed_enqueue_cnt(gni_cq_entry_t entry);

/** VCE channel of a CE channel entry (16 bits). */
uint64_t gni_cq_get_ce_id(gni_cq_entry_t entry);

/** Reduction id of a CE channel entry (32 bits). */
uint64_t gni_cq_get_reductn_id(gni_cq_entry_t entry);

/** Always 0: the meaning in the original is not known. */
uint64_t gni_cq_get_trans_type(gni_cq_entry_t entry);

/*
 * Setters: overwrite one field of the caller's own copy, truncating the value to the field (inst_id 24 bits,
 * rem_inst_id and msg_id 32, tid 24, type 2). Fields share bits: inst_id lies inside rem_inst_id and msg_id. NULL
 * is not allowed.
 */
void gni_cq_set_inst_id(gni_cq_entry_t *entry, uint64_t val);
void gni_cq_set_rem_inst_id(gni_cq_entry_t *entry, uint64_t val);
void gni_cq_set_tid(gni_cq_entry_t *entry, uint64_t val);
void gni_cq_set_msg_id(gni_cq_entry_t *entry, uint64_t val);
void gni_cq_set_type(gni_cq_entry_t *entry, uint64_t val);

/** Set the status field to 0. The overrun marks stay. */
void gni_cq_clr_status(gni_cq_entry_t *entry);

/** Non-zero if the failure was a DLA overflow. There is no DLA here: always 0. */
unsigned gni_cq_status_dla_overflow(gni_cq_entry_t entry);

/** BTE enqueue status. No such condition here: always 0. */
unsigned gni_cq_bte_enq_status(gni_cq_entry_t entry);
#endif /* GNI_INLINE_CQ_FUNCTIONS */

#define GNI_CQ_GET_DATA                    gni_cq_get_data
#define GNI_CQ_GET_SOURCE                  gni_cq_get_source
#define GNI_CQ_GET_STATUS                  gni_cq_get_status
#define GNI_CQ_GET_INFO                    gni_cq_get_info
#define GNI_CQ_OVERRUN                     gni_cq_overrun
#define GNI_CQ_REM_OVERRUN                 gni_cq_rem_overrun
#define GNI_CQ_GET_INST_ID                 gni_cq_get_inst_id
#define GNI_CQ_GET_REM_INST_ID             gni_cq_get_rem_inst_id
#define GNI_CQ_GET_TID                     gni_cq_get_tid
#define GNI_CQ_GET_MSG_ID                  gni_cq_get_msg_id
#define GNI_CQ_GET_TYPE                    gni_cq_get_type
#define GNI_CQ_GET_BLOCK_ID                gni_cq_get_block_id
#define GNI_CQ_GET_UNSUCCESSFUL_CNT        gni_cq_get_unsuccessful_cnt
#define GNI_CQ_GET_MARKER_ID               gni_cq_get_marker_id
#define GNI_CQ_GET_FAILED_ENQUEUE_CNT      gni_cq_get_failed_enqueue_cnt
#define GNI_CQ_GET_CE_ID                   gni_cq_get_ce_id
#define GNI_CQ_GET_REDUCTN_ID              gni_cq_get_reductn_id
#define GNI_CQ_GET_TRANS_TYPE              gni_cq_get_trans_type
#define GNI_CQ_SET_INST_ID(entry, val)     gni_cq_set_inst_id(&(entry), val)
#define GNI_CQ_SET_REM_INST_ID(entry, val) gni_cq_set_rem_inst_id(&(entry), val)
#define GNI_CQ_SET_TID(entry, val)         gni_cq_set_tid(&(entry), val)
#define GNI_CQ_SET_MSG_ID(entry, val)      gni_cq_set_msg_id(&(entry), val)
#define GNI_CQ_SET_TYPE(entry, val)        gni_cq_set_type(&(entry), val)
#define GNI_CQ_CLR_STATUS(entry)           gni_cq_clr_status(&(entry))
#define GNI_CQ_STATUS_DLA_OVERFLOW(entry)  gni_cq_status_dla_overflow(entry)
#define GNI_CQ_BTE_ENQ_STATUS(entry)       gni_cq_bte_enq_status(entry)
#define GNI_CQ_STATUS_OK(entry)            (gni_cq_get_status(entry) == 0)

/*
 * Posts: types and modes
 */
typedef enum gni_post_type {
    GNI_POST_RDMA_PUT = 1,           /* GNI_PostRdma */
    GNI_POST_RDMA_GET = 2,           /* GNI_PostRdma */
    GNI_POST_FMA_PUT = 3,            /* GNI_PostFma, GNI_CtPostFma */
    GNI_POST_FMA_PUT_W_SYNCFLAG = 4, /* GNI_PostFma */
    GNI_POST_FMA_GET = 5,            /* GNI_PostFma, GNI_CtPostFma */
    GNI_POST_AMO = 6,                /* GNI_PostFma, GNI_CtPostFma */
    GNI_POST_CQWRITE = 7,            /* GNI_PostCqWrite, GNI_CtPostCqWrite */
    GNI_POST_CE = 8,                 /* GNI_PostFma */
    GNI_POST_FMA_GET_W_FLAG = 9,     /* GNI_PostFma */
    GNI_POST_AMO_W_FLAG = 10         /* GNI_PostFma */
} gni_post_type_t;

/* Bytes of the flag that the two _W_FLAG types append to the response. */
#define GNI_FMA_FLAGGED_RESPONSE_SIZE 4

/* cq_mode: which events a post asks for. LOCAL with GLOBAL needs GNI_CDM_MODE_DUAL_EVENTS. */
#define GNI_CQMODE_SILENT       0x0000
#define GNI_CQMODE_LOCAL_EVENT  0x0001 /* source CQ: local buffer reusable */
#define GNI_CQMODE_GLOBAL_EVENT 0x0002 /* source CQ: delivered, or result in local memory */
#define GNI_CQMODE_REMOTE_EVENT 0x0004 /* destination CQ of the remote region */
#define GNI_CQMODE_DUAL_EVENTS  (GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT)

/* dlvr_mode: routing and order. */
#define GNI_DLVMODE_PERFORMANCE  0x0000                                       /* adaptive, no order */
#define GNI_DLVMODE_NO_ADAPT     0x0001                                       /* requests not routed adaptively */
#define GNI_DLVMODE_NO_HASH      0x0002                                       /* no address hashing */
#define GNI_DLVMODE_NO_RADAPT    0x0004                                       /* responses not routed adaptively */
#define GNI_DLVMODE_IN_ORDER     (GNI_DLVMODE_NO_ADAPT | GNI_DLVMODE_NO_HASH) /* a pair of nodes stays ordered */
#define GNI_DLVMODE_MNON_HASH    GNI_DLVMODE_IN_ORDER
#define GNI_DLVMODE_NMIN_HASH    0x0008 /* Aries, as the next one and ADAPTIVE1 to 3 */
#define GNI_DLVMODE_MIN_HASH     0x0010
#define GNI_DLVMODE_ADAPTIVE0    GNI_DLVMODE_PERFORMANCE
#define GNI_DLVMODE_ADAPTIVE1    0x0020
#define GNI_DLVMODE_ADAPTIVE2    0x0040
#define GNI_DLVMODE_ADAPTIVE3    0x0080
#define GNI_DLVMODE_ORDERED_TAIL 0x0100 /* unconfirmed: last packet ordered behind the rest */

/* rdma_mode */
#define GNI_RDMAMODE_PHYS_ADDR 0x0001 /* kernel only: refused */
#define GNI_RDMAMODE_FENCE     0x0002 /* finish this and all earlier posts before the next descriptor starts */
#define GNI_RDMAMODE_GETWC_DIS 0x0004 /* Aries: no write combining of incoming GET data */

/*
 * AMO commands
 *
 * Bits: 0x100 PUT semantics (nothing returned; clear: the old value goes to local_addr), 0x200 32-bit operands
 * (_S), 0x040 second generation (ATOMIC2), cached 0x010 in the first and 0x020 in the second generation. Trap:
 * GNI_FMA_ATOMIC_CSWAP fetches, GNI_FMA_ATOMIC2_CSWAP* do not. With m the target word, a and b the operands,
 * modulo the word size:
 *
 *   ADD, IADD m+a   AND m&a   OR m|a   XOR m^a   SWAP a   AX (m&a)^b   CSWAP m==a ? b : m
 *   IMIN, IMAX signed   FPMIN, FPMAX, FPADD IEEE, single precision with _S, else double
 */
typedef enum gni_fma_cmd_type {
    /* First generation (Gemini and Aries), 64-bit operands: GET, GET cached, PUT, PUT cached. */
    GNI_FMA_ATOMIC_FADD = 0x008,
    GNI_FMA_ATOMIC_FADD_C = 0x018,
    GNI_FMA_ATOMIC_ADD = 0x108,
    GNI_FMA_ATOMIC_ADD_C = 0x118,
    GNI_FMA_ATOMIC_FAND = 0x009,
    GNI_FMA_ATOMIC_FAND_C = 0x019,
    GNI_FMA_ATOMIC_AND = 0x109,
    GNI_FMA_ATOMIC_AND_C = 0x119,
    GNI_FMA_ATOMIC_FOR = 0x00A,
    GNI_FMA_ATOMIC_FOR_C = 0x01A,
    GNI_FMA_ATOMIC_OR = 0x10A,
    GNI_FMA_ATOMIC_OR_C = 0x11A,
    GNI_FMA_ATOMIC_FXOR = 0x00B,
    GNI_FMA_ATOMIC_FXOR_C = 0x01B,
    GNI_FMA_ATOMIC_XOR = 0x10B,
    GNI_FMA_ATOMIC_XOR_C = 0x11B,
    GNI_FMA_ATOMIC_FAX = 0x00C,
    GNI_FMA_ATOMIC_FAX_C = 0x01C,
    GNI_FMA_ATOMIC_AX = 0x10C,
    GNI_FMA_ATOMIC_AX_C = 0x11C,
    GNI_FMA_ATOMIC_CSWAP = 0x00D,
    GNI_FMA_ATOMIC_CSWAP_C = 0x01D,

    /* Second generation (Aries): GET 32 and 64 bits, the same cached, PUT 32 and 64 bits, the same cached. */
    GNI_FMA_ATOMIC2_FAND_S = 0x240,
    GNI_FMA_ATOMIC2_FAND = 0x041,
    GNI_FMA_ATOMIC2_FAND_SC = 0x260,
    GNI_FMA_ATOMIC2_FAND_C = 0x061,
    GNI_FMA_ATOMIC2_AND_S = 0x340,
    GNI_FMA_ATOMIC2_AND = 0x141,
    GNI_FMA_ATOMIC2_AND_SC = 0x360,
    GNI_FMA_ATOMIC2_AND_C = 0x161,
    GNI_FMA_ATOMIC2_FOR_S = 0x242,
    GNI_FMA_ATOMIC2_FOR = 0x043,
    GNI_FMA_ATOMIC2_FOR_SC = 0x262,
    GNI_FMA_ATOMIC2_FOR_C = 0x063,
    GNI_FMA_ATOMIC2_OR_S = 0x342,
    GNI_FMA_ATOMIC2_OR = 0x143,
    GNI_FMA_ATOMIC2_OR_SC = 0x362,
    GNI_FMA_ATOMIC2_OR_C = 0x163,
    GNI_FMA_ATOMIC2_FXOR_S = 0x244,
    GNI_FMA_ATOMIC2_FXOR = 0x045,
    GNI_FMA_ATOMIC2_FXOR_SC = 0x264,
    GNI_FMA_ATOMIC2_FXOR_C = 0x065,
    GNI_FMA_ATOMIC2_XOR_S = 0x344,
    GNI_FMA_ATOMIC2_XOR = 0x145,
    GNI_FMA_ATOMIC2_XOR_SC = 0x364,
    GNI_FMA_ATOMIC2_XOR_C = 0x165,
    GNI_FMA_ATOMIC2_FSWAP_S = 0x246,
    GNI_FMA_ATOMIC2_FSWAP = 0x047,
    GNI_FMA_ATOMIC2_FSWAP_SC = 0x266,
    GNI_FMA_ATOMIC2_FSWAP_C = 0x067,
    GNI_FMA_ATOMIC2_SWAP_S = 0x346,
    GNI_FMA_ATOMIC2_SWAP = 0x147,
    GNI_FMA_ATOMIC2_SWAP_SC = 0x366,
    GNI_FMA_ATOMIC2_SWAP_C = 0x167,
    GNI_FMA_ATOMIC2_FAX_S = 0x248,
    GNI_FMA_ATOMIC2_FAX = 0x049,
    GNI_FMA_ATOMIC2_FAX_SC = 0x268,
    GNI_FMA_ATOMIC2_FAX_C = 0x069,
    GNI_FMA_ATOMIC2_AX_S = 0x348,
    GNI_FMA_ATOMIC2_AX = 0x149,
    GNI_FMA_ATOMIC2_AX_SC = 0x368,
    GNI_FMA_ATOMIC2_AX_C = 0x169,
    GNI_FMA_ATOMIC2_FCSWAP_S = 0x24A,
    GNI_FMA_ATOMIC2_FCSWAP = 0x04B,
    GNI_FMA_ATOMIC2_FCSWAP_SC = 0x26A,
    GNI_FMA_ATOMIC2_FCSWAP_C = 0x06B,
    GNI_FMA_ATOMIC2_CSWAP_S = 0x34A,
    GNI_FMA_ATOMIC2_CSWAP = 0x14B,
    GNI_FMA_ATOMIC2_CSWAP_SC = 0x36A,
    GNI_FMA_ATOMIC2_CSWAP_C = 0x16B,
    GNI_FMA_ATOMIC2_FIMIN_S = 0x250,
    GNI_FMA_ATOMIC2_FIMIN = 0x051,
    GNI_FMA_ATOMIC2_FIMIN_SC = 0x270,
    GNI_FMA_ATOMIC2_FIMIN_C = 0x071,
    GNI_FMA_ATOMIC2_IMIN_S = 0x350,
    GNI_FMA_ATOMIC2_IMIN = 0x151,
    GNI_FMA_ATOMIC2_IMIN_SC = 0x370,
    GNI_FMA_ATOMIC2_IMIN_C = 0x171,
    GNI_FMA_ATOMIC2_FIMAX_S = 0x252,
    GNI_FMA_ATOMIC2_FIMAX = 0x053,
    GNI_FMA_ATOMIC2_FIMAX_SC = 0x272,
    GNI_FMA_ATOMIC2_FIMAX_C = 0x073,
    GNI_FMA_ATOMIC2_IMAX_S = 0x352,
    GNI_FMA_ATOMIC2_IMAX = 0x153,
    GNI_FMA_ATOMIC2_IMAX_SC = 0x372,
    GNI_FMA_ATOMIC2_IMAX_C = 0x173,
    GNI_FMA_ATOMIC2_FIADD_S = 0x254,
    GNI_FMA_ATOMIC2_FIADD = 0x055,
    GNI_FMA_ATOMIC2_FIADD_SC = 0x274,
    GNI_FMA_ATOMIC2_FIADD_C = 0x075,
    GNI_FMA_ATOMIC2_IADD_S = 0x354,
    GNI_FMA_ATOMIC2_IADD = 0x155,
    GNI_FMA_ATOMIC2_IADD_SC = 0x374,
    GNI_FMA_ATOMIC2_IADD_C = 0x175,
    GNI_FMA_ATOMIC2_FFPMIN_S = 0x258,
    GNI_FMA_ATOMIC2_FFPMIN = 0x059,
    GNI_FMA_ATOMIC2_FFPMIN_SC = 0x278,
    GNI_FMA_ATOMIC2_FFPMIN_C = 0x079,
    GNI_FMA_ATOMIC2_FPMIN_S = 0x358,
    GNI_FMA_ATOMIC2_FPMIN = 0x159,
    GNI_FMA_ATOMIC2_FPMIN_SC = 0x378,
    GNI_FMA_ATOMIC2_FPMIN_C = 0x179,
    GNI_FMA_ATOMIC2_FFPMAX_S = 0x25A,
    GNI_FMA_ATOMIC2_FFPMAX = 0x05B,
    GNI_FMA_ATOMIC2_FFPMAX_SC = 0x27A,
    GNI_FMA_ATOMIC2_FFPMAX_C = 0x07B,
    GNI_FMA_ATOMIC2_FPMAX_S = 0x35A,
    GNI_FMA_ATOMIC2_FPMAX = 0x15B,
    GNI_FMA_ATOMIC2_FPMAX_SC = 0x37A,
    GNI_FMA_ATOMIC2_FPMAX_C = 0x17B,
    GNI_FMA_ATOMIC2_FFPADD_S = 0x25C,
    GNI_FMA_ATOMIC2_FFPADD = 0x05D,
    GNI_FMA_ATOMIC2_FFPADD_SC = 0x27C,
    GNI_FMA_ATOMIC2_FFPADD_C = 0x07D,
    GNI_FMA_ATOMIC2_FPADD_S = 0x35C,
    GNI_FMA_ATOMIC2_FPADD = 0x15D,
    GNI_FMA_ATOMIC2_FPADD_SC = 0x37C,
    GNI_FMA_ATOMIC2_FPADD_C = 0x17D
} gni_fma_cmd_type_t;

typedef enum gni_ce_cmd_type {
    GNI_FMA_CE_AND_S = 0x00,
    GNI_FMA_CE_AND = 0x01,
    GNI_FMA_CE_OR_S = 0x02,
    GNI_FMA_CE_OR = 0x03,
    GNI_FMA_CE_XOR_S = 0x04,
    GNI_FMA_CE_XOR = 0x05,
    GNI_FMA_CE_IMIN_LIDX_S = 0x10,
    GNI_FMA_CE_IMIN_LIDX = 0x11,
    GNI_FMA_CE_IMAX_LIDX_S = 0x12,
    GNI_FMA_CE_IMAX_LIDX = 0x13,
    GNI_FMA_CE_IADD_S = 0x14,
    GNI_FMA_CE_IADD = 0x15,
    GNI_FMA_CE_FPMIN_LIDX_S = 0x18,
    GNI_FMA_CE_FPMIN_LIDX = 0x19,
    GNI_FMA_CE_FPMAX_LIDX_S = 0x1a,
    GNI_FMA_CE_FPMAX_LIDX = 0x1b,
    GNI_FMA_CE_FPADD_S = 0x1c,
    GNI_FMA_CE_FPADD = 0x1d,
    GNI_FMA_CE_IMIN_GIDX_S = 0x30,
    GNI_FMA_CE_IMIN_GIDX = 0x31,
    GNI_FMA_CE_IMAX_GIDX_S = 0x32,
    GNI_FMA_CE_IMAX_GIDX = 0x33,
    GNI_FMA_CE_FPMIN_GIDX_S = 0x38,
    GNI_FMA_CE_FPMIN_GIDX = 0x39,
    GNI_FMA_CE_FPMAX_GIDX_S = 0x3a,
    GNI_FMA_CE_FPMAX_GIDX = 0x3b
} gni_ce_cmd_type_t;

/*
 * Collective engine (CE): results, children, modes
 */
/* Exceptions met while reducing (gni_ce_res_get_fpe). */
#define GNI_CE_FPE_OP_INVAL  0x1
#define GNI_CE_FPE_OFLOW     0x2
#define GNI_CE_FPE_UFLOW     0x4
#define GNI_CE_FPE_PRECISION 0x8

typedef enum { GNI_CE_CHILD_UNUSED = 0, GNI_CE_CHILD_VCE = 1, GNI_CE_CHILD_PE = 2 } gni_ce_child_t;

#define GNI_CE_MAX_CHILDREN 32

/* GNI_CeConfigure: one rounding mode, one CQE mode, at most one routing mode. */
#define GNI_CE_MODE_ROUND_UP     0x1
#define GNI_CE_MODE_ROUND_DOWN   0x2
#define GNI_CE_MODE_ROUND_NEAR   0x4
#define GNI_CE_MODE_ROUND_ZERO   0x8
#define GNI_CE_MODE_CQE_ONCOMP   0x10
#define GNI_CE_MODE_CQE_ONERR    0x40
#define GNI_CE_MODE_RC_NMIN_HASH 0x80
#define GNI_CE_MODE_RC_MIN_HASH  0x100
#define GNI_CE_MODE_RC_MNON_HASH 0x200
#define GNI_CE_MODE_RC_ADAPT     0x400

/* ce_mode of a post. The FPE bits say that the operands are a partial result that already met the exception. */
#define GNI_CEMODE_TWO_OP        (1 << 0) /* use both operands for a single-operand operation */
#define GNI_CEMODE_FPE_OP_INVAL  (1 << 1)
#define GNI_CEMODE_FPE_OFLOW     (1 << 2)
#define GNI_CEMODE_FPE_UFLOW     (1 << 3)
#define GNI_CEMODE_FPE_PRECISION (1 << 4)

/*
 * Limits of short messages, datagrams and message queues
 */
typedef enum gni_smsg_type {
    GNI_SMSG_TYPE_INVALID = 0,
    GNI_SMSG_TYPE_MBOX = 1,
    GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT = 2
} gni_smsg_type_t;

#define GNI_SMSG_ANY_TAG             0xFF
#define FMA_SMSG_MAX_RETRANS_DEFAULT 10
#define GNI_SMSG_MAX_SIZE            65535 /* header and data, bytes */
#define GNI_DATAGRAM_MAXSIZE         128   /* bytes */
#define GNI_MSGQ_MSG_SZ_MAX          128   /* bytes */
#define GNI_MSGQ_NODE_INSTS_MAX      48
#define GNI_MSGQ_MODE_BLOCKING       0x01

/*
 * Errors, jobs, devices, resources
 */
typedef uint8_t gni_error_mask_t;

#define GNI_ERRMASK_CORRECTABLE_MEMORY  (1 << 0)
#define GNI_ERRMASK_CRITICAL            (1 << 1)
#define GNI_ERRMASK_TRANSACTION         (1 << 2)
#define GNI_ERRMASK_ADDRESS_TRANSLATION (1 << 3)
#define GNI_ERRMASK_TRANSIENT           (1 << 4)
#define GNI_ERRMASK_INFORMATIONAL       (1 << 5)
#define GNI_ERRMASK_DIAG_ONLY           (1 << 6)
#define GNI_ERRMASK_UNKNOWN_TRANSACTION (1 << 7)

#define GNI_JOB_INVALID_LIMIT    (-1) /* leave this limit unchanged */
#define GNI_JOB_CTRL_NTT_CLEANUP 0x01
#define GNI_JOB_CTRL_CE0_MASK    (1 << 0)
#define GNI_JOB_CTRL_CE1_MASK    (1 << 1)
#define GNI_JOB_CTRL_CE2_MASK    (1 << 2)
#define GNI_JOB_CTRL_CE3_MASK    (1 << 3)
#define GNI_JOB_CTRL_ALL_CE_MASK                                                                                       \
    (GNI_JOB_CTRL_CE0_MASK | GNI_JOB_CTRL_CE1_MASK | GNI_JOB_CTRL_CE2_MASK | GNI_JOB_CTRL_CE3_MASK)

typedef enum gni_nic_device {
    GNI_DEVICE_GEMINI = 0,
    GNI_DEVICE_ARIES = 1,
    GNI_DEVICE_PISCES = 2,
    GNI_DEVICE_LAST = 3
} gni_nic_device_t;

typedef enum gni_dev_res {
    GNI_DEV_RES_FIRST = 0,
    GNI_DEV_RES_MDD = 1,
    GNI_DEV_RES_MRT = 2,
    GNI_DEV_RES_CQ = 3,
    GNI_DEV_RES_FMA = 4,
    GNI_DEV_RES_CE = 5,
    GNI_DEV_RES_DLA = 6,
    GNI_DEV_RES_LAST = 7
} gni_dev_res_t;

typedef enum gni_job_res {
    GNI_JOB_RES_FIRST = 0,
    GNI_JOB_RES_MDD = 1,
    GNI_JOB_RES_MRT = 2,
    GNI_JOB_RES_IOMMU = 3,
    GNI_JOB_RES_GART = 4,
    GNI_JOB_RES_CQ = 5,
    GNI_JOB_RES_FMA = 6,
    GNI_JOB_RES_RMDA = 7, /* spelled so in the original */
    GNI_JOB_RES_CE = 8,
    GNI_JOB_RES_DLA = 9,
    GNI_JOB_RES_SFMA = 10,
    GNI_JOB_RES_LAST = 11
} gni_job_res_t;

#define MAX_BUILD_STRING_LENGTH 80

/* Balanced injection */
#define GNI_BI_FLAG_APPLY_NOW                0x1
#define GNI_BI_FLAG_APPLY_AFTER_THROTTLE     0x2
#define GNI_BI_FLAG_USE_DEFAULT_SETTINGS     0x4
#define GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES 0x8
#define GNI_BI_INJECT_BW_MIN                 0   /* percent */
#define GNI_BI_INJECT_BW_MAX                 100 /* percent */
#define GNI_BI_INJECT_BW_ORB_MIN             0   /* ORB entries */
#define GNI_BI_INJECT_BW_ORB_MAX             992 /* ORB entries */

/*
 * Statistics of a NIC handle. The long list needs CRAY_CONFIG_GHAL_ARIES; the library knows it in any case. What
 * the counters count is read off their names (unconfirmed).
 */
typedef enum gni_statistic {
    GNI_STAT_SMSG_BUFF_CREDITS_STALL = 0, /* sends refused: no buffer credit */
    GNI_STAT_SMSG_DLA_STALL = 1,          /* sends refused: DLA */
    GNI_STAT_SMSG_MBOX_CREDITS_STALL = 2, /* sends refused: no mailbox credit */
    GNI_STAT_SMSG_REQ_STALL = 3,          /* sends refused: no request slot */
    GNI_STAT_SMSG_RETRANS_COUNT = 4,      /* retransmissions */
    GNI_STAT_SMSG_RETRANS_DLA_COUNT = 5,  /* retransmissions due to DLA */
    GNI_STAT_SMSG_RETRANS_STALL = 6,      /* stalled retransmissions */
#ifdef CRAY_CONFIG_GHAL_ARIES
    GNI_STAT_DLA_ALLOC_STATUS_STALL = 7,
    GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT = 8,
    GNI_STAT_DLA_BLOCK_ORPHANED = 9,
    GNI_STAT_DLA_BLOCK_RETRANS_COUNT = 10,
    GNI_STAT_DLA_FREE_BLOCKS_STALL = 11,
    GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL = 12,
    GNI_STAT_DLA_HIGH_RETRANS_COUNT = 13,
    GNI_STAT_DLA_OVERFLOW_RESEND = 14,
    GNI_STAT_DLA_RETRANS_COUNT = 15,
    GNI_STAT_DLA_TOTAL_RETRANS_COUNT = 16,
    GNI_STAT_FLBTE_TXD_CORRUPT = 17,
    GNI_STAT_FLBTE_TXD_NONE = 18,
#endif
    GNI_NUM_STATS
} gni_statistic_t;

/**
 * Name of each statistic: 19 entries, whichever GNI_NUM_STATS the program sees. Static storage, never changed.
 */
extern const char *gni_statistic_str[];

/**
 * Short name of a resource of a device or a job: its enumerator without the prefix, e.g. "FMA".
 *
 * @return  Static text; "UNKNOWN" for what is no resource, the FIRST and LAST marks included. Never NULL.
 * @note Any thread. Source: known from libfabric's use alone, texts are ours.
 */
const char *gni_dev_res_to_str(gni_dev_res_t res_type);
const char *gni_job_res_to_str(gni_job_res_t res_type);

/*
 * Handles: opaque pointers, NULL is never a live one.
 */
typedef struct gni_nic *gni_nic_handle_t;
typedef struct gni_cdm *gni_cdm_handle_t;
typedef struct gni_ep *gni_ep_handle_t;
typedef struct gni_cq *gni_cq_handle_t;
typedef struct gni_err *gni_err_handle_t;
typedef struct gni_msgq *gni_msgq_handle_t;
typedef struct gni_ce *gni_ce_handle_t;

/* Memory handle: 16 bytes, copied by value, sent to peers as raw bytes. {0, 0} means "no handle". */
typedef struct gni_mem_handle {
    uint64_t qword1;
    uint64_t qword2;
} gni_mem_handle_t;

/*
 * Structures. P: the program writes the field, L: the library.
 */
/* A mailbox: starts at msg_buffer + mbox_offset. All P. */
typedef struct gni_smsg_attr {
    gni_smsg_type_t msg_type;
    void *msg_buffer;          /* base address in the owner's address space */
    uint32_t buff_size;        /* bytes of this mailbox */
    gni_mem_handle_t mem_hndl; /* registration over the mailbox; its destination CQ gets the arrival events */
    uint32_t mbox_offset;      /* bytes from msg_buffer */
    uint16_t mbox_maxcredit;   /* messages that may be outstanding */
    uint32_t msg_maxsize;      /* largest header plus data, bytes */
} gni_smsg_attr_t;

typedef struct gni_mem_segment {
    uint64_t address; /* P: start */
    uint64_t length;  /* P: bytes */
} gni_mem_segment_t;

/*
 * A transaction. Belongs to the library from a successful post until GNI_GetCompleted() hands it back; P fields
 * come back unchanged. Fields that the type does not use are not read. The library may use the L fields freely.
 */
typedef struct gni_post_descriptor {
    void *next_descr;                 /* L; P in a chained post: first chained element */
    void *prev_descr;                 /* L */
    uint64_t post_id;                 /* P: the program's own, never interpreted */
    uint64_t status;                  /* L: 0 ok, else the status of gni_cq_get_status() */
    uint16_t cq_mode_complete;        /* L: GNI_CQMODE_* bits completed so far */
    gni_post_type_t type;             /* P */
    uint16_t cq_mode;                 /* P: GNI_CQMODE_* */
    uint16_t dlvr_mode;               /* P: GNI_DLVMODE_* */
    uint64_t local_addr;              /* P: PUT source, GET destination, AMO or CE result */
    gni_mem_handle_t local_mem_hndl;  /* P */
    uint64_t remote_addr;             /* P: PUT target, GET source, AMO target; virtual address or offset */
    gni_mem_handle_t remote_mem_hndl; /* P */
    uint64_t length;                  /* P: bytes */
    uint16_t rdma_mode;               /* P: GNI_RDMAMODE_* */
    gni_cq_handle_t src_cq_hndl;      /* P: source CQ of RDMA; NULL is the endpoint's */
    uint64_t sync_flag_value;         /* P */
    uint64_t sync_flag_addr;          /* P: remote address of the flag, in remote_mem_hndl's region */
    gni_fma_cmd_type_t amo_cmd;       /* P */
    uint64_t first_operand;           /* P */
    uint64_t second_operand;          /* P */
    uint64_t cqwrite_value;           /* P: the low 48 bits travel */
    gni_ce_cmd_type_t ce_cmd;         /* P */
    uint32_t ce_mode;                 /* P: GNI_CEMODE_* */
    uint64_t ce_red_id;               /* P */
} gni_post_descriptor_t;

/* Result of a reduction, 32-byte aligned by the program. All L. */
typedef struct gni_ce_result {
    uint64_t control; /* private: status, exceptions, reduction id, completion mark */
    uint64_t result1;
    uint64_t result2;
} gni_ce_result_t;

/*
 * Fields of a finished CE result. Each reads the structure and writes nothing; NULL is not allowed. Threads: any.
 *   status     0 delivered, else the status of gni_cq_get_status()
 *   status_ok  non-zero if the result was delivered (with or without exceptions)
 *   fpe        GNI_CE_FPE_* bits
 *   red_id     reduction id, low 48 bits
 * Source: spec/ugni.md 2.16, 3.6; the encoding is this library's own.
 */
uint64_t gni_ce_res_get_status(gni_ce_result_t *result);
uint64_t gni_ce_res_status_ok(gni_ce_result_t *result);
uint64_t gni_ce_res_get_fpe(gni_ce_result_t *result);
uint64_t gni_ce_res_get_red_id(gni_ce_result_t *result);

#define GNI_CE_RES_GET_STATUS gni_ce_res_get_status
#define GNI_CE_RES_STATUS_OK  gni_ce_res_status_ok
#define GNI_CE_RES_GET_FPE    gni_ce_res_get_fpe
#define GNI_CE_RES_GET_RED_ID gni_ce_res_get_red_id

/* Network translation table. All P. */
typedef struct gni_ntt_entry {
    uint32_t blck_addr;
    uint32_t rplc_addr;
    uint8_t rplc_size;
} gni_ntt_entry_t;

typedef struct gni_ntt_descriptor {
    uint32_t group_size; /* entries */
    uint8_t granularity;
    union {
        uint32_t *table;           /* Gemini form */
        gni_ntt_entry_t *table_v2; /* newer form */
    } u;
    uint8_t flags; /* unused */
} gni_ntt_descriptor_t;

/* An asynchronous error event; see GNI_SubscribeErrors(). All L. */
typedef struct gni_error_event {
    uint16_t error_code;
    uint8_t error_category;
    uint8_t ptag;
    uint32_t serial_number;
    uint64_t timestamp;
    uint64_t info_mmrs[4];
} gni_error_event_t;

/* Limits of a job, GNI_JOB_INVALID_LIMIT leaves one unchanged. All P. */
typedef struct gni_job_limits {
    int32_t mdd_limit;
    union {
        int32_t mrt_limit; /* Gemini: MRT entries */
        struct {
            uint8_t ce_limit;    /* Aries: CE channels */
            uint8_t iommu_limit; /* Aries: address space of 2^N MiB */
            uint8_t res_byte2;
            uint8_t res_byte3;
        } m;
    } a;
    union {
        int32_t gart_limit; /* Gemini: GART entries */
        int32_t dla_limit;  /* Aries: DLA entries */
    } b;
    int32_t fma_limit; /* FMA descriptors */
    int32_t bte_limit; /* outstanding BTE descriptors */
    int32_t cq_limit;  /* CQs */
    int32_t ntt_ctrl;  /* GNI_JOB_CTRL_* */
    int32_t ntt_base;  /* first NTT entry */
    int32_t ntt_size;  /* NTT entries */
} gni_job_limits_t;

/* Counts of one resource. All L. */
typedef struct gni_dev_res_desc {
    uint64_t available;
    uint64_t reserved;
    uint64_t held;
    uint64_t total;
} gni_dev_res_desc_t;

typedef struct gni_job_res_desc {
    uint64_t used;
    uint64_t limit;
} gni_job_res_desc_t;

/*
 * Receiver of shared message queue messages (a function type). msg is the header followed by the data, valid
 * during the call only; snd_id and snd_pe are the sender's instance id and NIC address. Return non-zero to go on,
 * 0 to make GNI_MsgqProgress() return.
 */
typedef int gni_msgq_rcv_cb_func(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data);

/* All P. */
typedef struct gni_msgq_attr {
    uint32_t max_msg_sz;   /* header plus data, bytes, at most GNI_MSGQ_MSG_SZ_MAX */
    uint32_t smsg_q_sz;    /* mailbox credits per connection: 1, or even */
    uint32_t rcv_pool_sz;  /* messages pooled for each local instance (unit unconfirmed) */
    uint32_t num_msgq_eps; /* remote nodes to connect to */
    uint32_t nloc_insts;   /* instances on this node, at most GNI_MSGQ_NODE_INSTS_MAX */
    uint8_t modes;         /* GNI_MSGQ_MODE_BLOCKING or 0 */
    uint32_t rcv_cq_sz;    /* entries of the private receive CQ */
} gni_msgq_attr_t;

/* All L. */
typedef struct gni_msgq_rem_inst {
    uint32_t id;
    gni_mem_handle_t mdh;
    uint64_t mdh_off; /* low 32 bits: bytes from the start of the shared region; the rest: nonce of this mailbox */
} gni_msgq_rem_inst_t;

/* All L; the program ships it to the other node. */
typedef struct gni_msgq_ep_attr {
    uint32_t pe_addr;
    uint32_t max_msg_sz;
    uint32_t smsg_q_sz;
    uint32_t num_insts;
    gni_msgq_rem_inst_t insts[GNI_MSGQ_NODE_INSTS_MAX];
} gni_msgq_ep_attr_t;

/* All L; the versions are packed like GNI_VERSION. */
typedef struct gni_version_info {
    uint32_t ugni_version;
    uint32_t ugni_svn_revision;
    char ugni_build_string[MAX_BUILD_STRING_LENGTH];
    uint32_t kgni_version;
    uint32_t kgni_svn_revision;
    char kgni_build_string[MAX_BUILD_STRING_LENGTH];
} gni_version_info_t;

/* Balanced injection settings. All L. */
typedef struct gni_bi_desc {
    uint16_t current_bw;
    uint16_t current_aot_bw;
    uint16_t current_norbs;
    uint16_t flags;
    uint16_t sys_def_bw;
    uint16_t sys_def_aot_bw;
    uint16_t cle_seqnum;
    uint16_t hss_seqnum;
} gni_bi_desc_t;

/*
 * Elements of a chained post (GNI_CtPostFma, GNI_CtPostCqWrite), newer than 0x5c. The layouts are the recommended
 * readings of spec/ugni.md A.1, reconstructed from use. All P; they stay the program's, but must stay valid until
 * completion.
 */
typedef struct gni_ct_put_post_descriptor {
    void *next_descr; /* next element, NULL ends the chain */
    gni_ep_handle_t ep_hndl;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t length;
    uint64_t local_addr;
} gni_ct_put_post_descriptor_t;

typedef struct gni_ct_get_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t length;
    uint64_t local_addr;
    gni_mem_handle_t local_mem_hndl;
} gni_ct_get_post_descriptor_t;

typedef struct gni_ct_amo_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    uint64_t remote_addr;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t length;
    gni_fma_cmd_type_t amo_cmd;
    uint64_t first_operand;
    uint64_t second_operand;
    uint64_t local_addr; /* this and the next: fetching commands only, else not read */
    gni_mem_handle_t local_mem_hndl;
} gni_ct_amo_post_descriptor_t;

/* The name is a guess. */
typedef struct gni_ct_cqw_post_descriptor {
    void *next_descr;
    gni_ep_handle_t ep_hndl;
    gni_mem_handle_t remote_mem_hndl;
    uint64_t cqwrite_value;
} gni_ct_cqw_post_descriptor_t;

typedef struct gni_comp_chan *gni_comp_chan_handle_t; /* newer than 0x5c */

/*
 * Communication domains
 */

/**
 * Create a communication domain: a process-local object, no device is contacted.
 *
 * @param[in]  inst_id   This member's number; all 32 bits are kept.
 * @param[in]  ptag      Protection tag, or GNI_FIND_ALLOC_PTAG. Any value is accepted here; GNI_CdmAttach()
 *                       decides.
 * @param[in]  cookie    From the launcher.
 * @param[in]  modes     OR of GNI_CDM_MODE_*. Unknown bits inside GNI_CDM_MODE_MASK are ignored.
 * @param[out] cdm_hndl  Owned by the caller, released with GNI_CdmDestroy().
 * @retval GNI_RC_SUCCESS        Created. Several per process are normal.
 * @retval GNI_RC_INVALID_PARAM  cdm_hndl is NULL, or a bit of GNI_CDM_MODE_PRIV_MASK is set.
 * @retval GNI_RC_ERROR_NOMEM    Out of memory.
 * @note Threads: any. Source: spec/ugni.md 4.1; ptag reading 7.29.
 */
gni_return_t GNI_CdmCreate(uint32_t inst_id, uint8_t ptag, uint32_t cookie, uint32_t modes, gni_cdm_handle_t *cdm_hndl);

/**
 * Detach a domain from its devices and free it. Live children (NIC, EP, CQ handles) become invalid; threads that
 * wait on them return. Outstanding datagrams are withdrawn.
 *
 * @retval GNI_RC_SUCCESS        Gone.
 * @retval GNI_RC_INVALID_PARAM  Not a live domain.
 * @note Threads: NIC. Source: spec/ugni.md 4.1; live children reading 7.22.
 */
gni_return_t GNI_CdmDestroy(gni_cdm_handle_t cdm_hndl);

/**
 * Fabric address of a local device. Works before any domain exists.
 *
 * @param[in]  device_id  0-based.
 * @param[out] address    NIC address; the one that GNI_CdmAttach() reports.
 * @param[out] cpu_id     First CPU close to the device; may be 0.
 * @retval GNI_RC_SUCCESS        Both set.
 * @retval GNI_RC_INVALID_PARAM  address or cpu_id is NULL.
 * @retval GNI_RC_NO_MATCH       No such device.
 * @note Threads: any. Source: spec/ugni.md 4.1.
 */
gni_return_t GNI_CdmGetNicAddress(uint32_t device_id, uint32_t *address, uint32_t *cpu_id);

/**
 * Attach a domain to a device. From then on peers can address this instance.
 *
 * @param[in]  cdm_hndl    From GNI_CdmCreate(). Its ptag is settled here if it was GNI_FIND_ALLOC_PTAG.
 * @param[in]  device_id   0-based, or (uint32_t)-1 for the nearest device not yet attached.
 * @param[out] local_addr  NIC address of the device: its nid, or the job's own number of it (GNI_ConfigureNTT()).
 * @param[out] nic_hndl    Belongs to the domain; ends with GNI_CdmDestroy().
 * @retval GNI_RC_SUCCESS           Attached.
 * @retval GNI_RC_INVALID_PARAM     Not a live domain, or an output is NULL.
 * @retval GNI_RC_NO_MATCH          No such device, which is also said of an emunic that does not run: then one
 *                                  line on stderr, once per process, tells the name that was looked for.
 * @retval GNI_RC_ERROR_RESOURCE    Out of device resources: FMA descriptors (127 per node, or the job's limit). With
 *                                  neither mode, a handle shares one when none is left for it alone. Or the daemon
 *                                  ended the connection.
 * @retval GNI_RC_ERROR_NOMEM       Out of memory.
 * @retval GNI_RC_PERMISSION_ERROR  This ptag and cookie are not configured for this user.
 * @retval GNI_RC_INVALID_STATE     Already attached to this device; with -1: no device left.
 * @note Never GNI_RC_NOT_DONE: the original's "interrupted, call again"; a signal does not interrupt the call here.
 * @note Threads: any for different domains. Two members with the same ids: allowed, the newest wins (reading
 *       7.5). Source: spec/ugni.md 4.1.
 */
gni_return_t GNI_CdmAttach(gni_cdm_handle_t cdm_hndl, uint32_t device_id, uint32_t *local_addr,
                           gni_nic_handle_t *nic_hndl);

/**
 * Checkpoint: mark all NIC handles of a domain stale. Until GNI_CdmResume() no call makes a system call on the device:
 * requests (registration, queues, datagrams, attaching) fail at once with GNI_RC_ERROR_RESOURCE, GNI_RC_INVALID_STATE
 * or their code for a lost NIC, and GNI_CqDestroy(), GNI_EpDestroy(), GNI_MemDeregister() and GNI_CdmDestroy() only
 * give back what is in this process. So they are safe after the process was restarted somewhere else. Posting is for
 * after the resume. Resume: take the mark off.
 *
 * @retval GNI_RC_SUCCESS        Marked; unmarked.
 * @retval GNI_RC_INVALID_PARAM  Not a live domain.
 * @note A domain that is destroyed stale stays known to the emulator, and its memory registered, until the process
 *       ends; its descriptors stay open, because their numbers may be somebody else's. Threads: NIC. Source:
 *       spec/ugni.md 4.1.
 */
gni_return_t GNI_CdmCheckpoint(gni_cdm_handle_t cdm_handle);
gni_return_t GNI_CdmResume(gni_cdm_handle_t cdm_handle);

/*
 * Job control
 *
 * The privileged half, for launchers: root and the user that runs the emulator's daemon may, everybody else gets
 * GNI_RC_PERMISSION_ERROR. A job is what GNI_CdmAttach() finds by its ptag and cookie; limits are per node. None of
 * these calls keeps a pointer. Threads: any. Source: spec/ugni.md 3.7, 3.9, 4.2.
 */

/**
 * Suspend a job: its processes may be stopped then. From now on posts and messages are accepted and wait; nothing of
 * the job's moves data. Returns when no process of the job is inside the NIC any more. Blocks for up to timeout ms.
 *
 * @param[in] job_id   As declared; any, if nobody has declared one.
 * @param[in] timeout  ms; 0 looks once.
 * @retval GNI_RC_SUCCESS           Suspended.
 * @retval GNI_RC_INVALID_PARAM     Not device 0, or no such job.
 * @retval GNI_RC_TIMEOUT           A process was inside all the time. The job goes on.
 * @retval GNI_RC_NOT_DONE          The same with timeout 0, or the daemon can take no more connections now: try again.
 * @retval GNI_RC_PERMISSION_ERROR  Not privileged.
 * @retval GNI_RC_INVALID_STATE     Suspended already, or about to be.
 * @retval GNI_RC_ERROR_RESOURCE    The job is ending.
 * @note A post blocks when a NIC handle has 1024 of them waiting. Datagrams, registrations and queues are served as
 *       ever. If the caller ends before the job is suspended, the job goes on.
 */
gni_return_t GNI_SuspendJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie, uint32_t timeout);

/**
 * End a suspension: what has waited goes on, in its order.
 *
 * @retval GNI_RC_SUCCESS           The job runs.
 * @retval GNI_RC_INVALID_PARAM     Not device 0, or no such job.
 * @retval GNI_RC_PERMISSION_ERROR  Not privileged.
 * @retval GNI_RC_INVALID_STATE     Not suspended.
 * @retval GNI_RC_ERROR_RESOURCE    The daemon can take no more connections now: try again.
 */
gni_return_t GNI_ResumeJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie);

/**
 * Fill entries of the network translation table; or, with a NULL table, clear group_size entries from *ntt_base on,
 * or all that no job uses if *ntt_base and group_size are -1.
 *
 * An entry is `granularity` addresses long and sends them to the nodes blck_addr, blck_addr + 1 ...; the last rplc_size
 * of them to rplc_addr, rplc_addr + 1 ... instead, which maps around failed nodes. A job bound to n entries calls its
 * nodes 0 .. n * granularity - 1.
 *
 * @param[in]     ntt_desc  u.table_v2 counts on an Aries; on a Gemini u.table, a list of blck_addr alone. granularity:
 *                          a power of two up to 128, the same for all entries of the table; 0 is that of the device
 *                          (1 while it is empty).
 * @param[in,out] ntt_base  First of the entries: output with a table, input without.
 * @retval GNI_RC_SUCCESS           Filled; cleared.
 * @retval GNI_RC_INVALID_PARAM     NULL, no entries, a granularity or a node that cannot be, or entries to clear that
 *                                  are not filled.
 * @retval GNI_RC_PERMISSION_ERROR  Not privileged.
 * @retval GNI_RC_ERROR_RESOURCE    Not so many entries (8192) left in one piece, another granularity is in use, an
 *                                  entry to clear belongs to a job, or the daemon can take no more connections.
 * @retval GNI_RC_ERROR_NOMEM       Out of memory.
 * @retval GNI_RC_NO_MATCH          No such device.
 * @note What the entries' fields mean is our reading: the source names them only.
 */
gni_return_t GNI_ConfigureNTT(int device_id, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base);

/**
 * Declare a job (job_id, ptag, cookie) on a device, set its limits, bind it to translation entries. A known job with
 * NULL limits is left alone.
 *
 * @param[in] ptag    1 .. 254, or GNI_FIND_ALLOC_PTAG: chosen by the cookie.
 * @param[in] limits  NULL: declare only. GNI_JOB_INVALID_LIMIT leaves a limit unchanged (0xff in the bytes of a.m). A
 *                    limit above what the device has is what the device has; one below what is held lets nothing more
 *                    be taken. Enforced: mdd_limit and a.m.iommu_limit by registrations, cq_limit by GNI_CqCreate(),
 *                    fma_limit by GNI_CdmAttach(), bte_limit by GNI_PostRdma(), a.m.ce_limit by GNI_CeCreate(), each
 *                    with GNI_RC_ERROR_RESOURCE. b.dla_limit limits nothing: the device has
 *                    no DLA. On a Gemini a.mrt_limit and b.gart_limit count, by registrations. ntt_size > 0 binds
 *                    entries ntt_base ...; GNI_JOB_CTRL_NTT_CLEANUP in ntt_ctrl clears them when the job ends.
 * @retval GNI_RC_SUCCESS           Done.
 * @retval GNI_RC_INVALID_PARAM     ptag 0, or a limit below -1.
 * @retval GNI_RC_PERMISSION_ERROR  Not privileged.
 * @retval GNI_RC_NO_MATCH          No such device, or translation entries that nobody has filled.
 * @retval GNI_RC_INVALID_STATE     ptag, cookie or job_id belong to another job; or entries are to be bound after the
 *                                  first attach.
 * @retval GNI_RC_ILLEGAL_OP        The job is bound to other entries.
 * @retval GNI_RC_ERROR_RESOURCE    More addresses than the machine has nodes, or the daemon can take no more
 *                                  connections.
 * @retval GNI_RC_ERROR_NOMEM       Out of memory.
 * @note A job that no launcher has made is its declarer's: that user and root may attach to it, on the nodes of its
 *       entries, else on those of the other jobs and of the declarer. It ends with the last process that has
 *       attached; until one has, it stays, also when its declarer has ended.
 */
gni_return_t GNI_ConfigureJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                              gni_job_limits_t *limits);

/**
 * GNI_ConfigureNTT() and GNI_ConfigureJob() in one step: the job is bound to the new entries. Both or nothing. Cannot
 * clear.
 *
 * @param[in]  limits    Its ntt_base and ntt_size are not read if there is a table.
 * @param[in]  ntt_desc  NULL: as GNI_ConfigureJob().
 * @param[out] ntt_base  First entry; may be NULL only if ntt_desc is.
 * @retval GNI_RC_INVALID_PARAM     Also: ntt_desc without a table or without ntt_base.
 * @retval GNI_RC_SUCCESS           The others as of the two calls.
 * @retval GNI_RC_PERMISSION_ERROR  Not privileged.
 * @retval GNI_RC_NO_MATCH          No such device.
 * @retval GNI_RC_INVALID_STATE     As of GNI_ConfigureJob().
 * @retval GNI_RC_ILLEGAL_OP        As of GNI_ConfigureJob().
 * @retval GNI_RC_ERROR_RESOURCE    As of either.
 * @retval GNI_RC_ERROR_NOMEM       Out of memory.
 */
gni_return_t GNI_ConfigureNTTandJob(int device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                    gni_job_limits_t *limits, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base);

/*
 * Device and library information. Threads: any.
 */

/**
 * Number of local NICs. Real programs expect 1.
 *
 * @retval GNI_RC_SUCCESS         *num_devices set.
 * @retval GNI_RC_INVALID_PARAM   num_devices is NULL.
 * @note Never GNI_RC_ERROR_RESOURCE: the original's "there is none"; an emulated node has one device.
 * @note Source: spec/ugni.md 4.3.
 */
gni_return_t GNI_GetNumLocalDevices(int *num_devices);

/**
 * Ids of the local NICs: 0, 1, ...
 *
 * @param[in]  len         Room in device_ids, entries.
 * @param[out] device_ids  Up to len ids.
 * @retval GNI_RC_SUCCESS         Filled.
 * @retval GNI_RC_INVALID_PARAM   device_ids is NULL, or len is not positive.
 * @note Never GNI_RC_ERROR_RESOURCE: the original's "there is none"; an emulated node has one device.
 * @note Source: spec/ugni.md 4.3.
 */
gni_return_t GNI_GetLocalDeviceIds(int len, int *device_ids);

/**
 * Version of the library, packed like GNI_VERSION.
 *
 * @retval GNI_RC_SUCCESS        *version set.
 * @retval GNI_RC_INVALID_PARAM  version is NULL.
 * @note Source: spec/ugni.md 4.3.
 */
gni_return_t GNI_GetVersion(uint32_t *version);

/**
 * Versions and build strings of the library and of the emulator (in the place of the kernel driver).
 *
 * @retval GNI_RC_SUCCESS        *version_info filled; ugni_version is never below GNI_VERSION of this header.
 * @retval GNI_RC_INVALID_PARAM  version_info is NULL.
 * @note Source: spec/ugni.md 4.3.
 */
gni_return_t GNI_GetVersionInformation(gni_version_info_t *version_info);

/**
 * Kind of NIC, as the machine has it (`device` in the nic section of its file): GNI_DEVICE_GEMINI on gemini,
 * GNI_DEVICE_ARIES on aries and, because programs of uGNI have to find one of the two, on machines that never had
 * uGNI. EMUNIC_DEVICE (aries or gemini; else the machine decides) overrides it, for this call and for NIC handles
 * attached under it. May be called before any attach and outside a job: emunic is asked, on a connection of its own;
 * without an emunic it is an Aries.
 *
 * A Gemini refuses what came with Aries. INVALID_PARAM from posts: FMA_ATOMIC2 commands, GNI_POST_FMA_GET_W_FLAG,
 * GNI_POST_AMO_W_FLAG, GNI_POST_CE; GNI_DLVMODE_NMIN_HASH, MIN_HASH, ADAPTIVE1 to 3; GNI_RDMAMODE_GETWC_DIS.
 * ALIGNMENT_ERROR: a GET to a local address that is no multiple of 4. ILLEGAL_OP: collective engines.
 *
 * @retval GNI_RC_SUCCESS         *dev_type set.
 * @retval GNI_RC_INVALID_PARAM   dev_type is NULL.
 * @note Never GNI_RC_ERROR_RESOURCE: the original's "there is no device"; an emulated node has one.
 * @note Source: spec/ugni.md 4.3.
 */
gni_return_t GNI_GetDeviceType(gni_nic_device_t *dev_type);

/**
 * Use and limits of one resource, of a device or of a job (ptag) on it. The device is this node's; what all processes
 * use of it counts.
 *
 * Device: MDD, CQ, FMA, CE. Job: MDD, IOMMU (registered address space, MiB), CQ, FMA, RMDA (block transfers that the
 * NIC is moving), CE, SFMA (NIC handles that share FMA descriptors). On a Gemini neither CE nor IOMMU, but MRT (2 MiB
 * blocks that registrations touch, of 65536) and, of a job, GART (4 KiB pages of those with GNI_MEM_USE_GART, of
 * 524288): size and number are our choice. Blocks of GNI_SetMddResources() are `reserved`
 * of a device and `used` of a job. An FMA descriptor is held by each NIC handle that does not share, and one by all
 * handles of a job that do.
 *
 * @param[in]  ptag      Not 0. A tag that nobody uses has used nothing.
 * @param[in]  res_type  Between the FIRST and LAST marks of its enumeration.
 * @param[out] res_desc  Counts in entries of that resource.
 * @retval GNI_RC_SUCCESS         *res_desc filled.
 * @retval GNI_RC_INVALID_PARAM   Bad device, ptag, type or pointer.
 * @retval GNI_RC_ERROR_RESOURCE  The device does not have this resource: MRT and GART (Aries), CE and IOMMU (Gemini),
 *                                DLA.
 * @note Without a daemon to ask: the limits of an idle device. Source: spec/ugni.md 2.18, 3.10, 4.3.
 */
gni_return_t GNI_GetDevResInfo(uint32_t device_id, gni_dev_res_t res_type, gni_dev_res_desc_t *res_desc);
gni_return_t GNI_GetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type, gni_job_res_desc_t *res_desc);

/**
 * Granularity of the network translation table: addresses per entry, 1 while it is empty.
 *
 * @retval GNI_RC_SUCCESS        *ntt_gran set.
 * @retval GNI_RC_INVALID_PARAM  Bad device, or ntt_gran is NULL.
 * @note Source: spec/ugni.md 4.3.
 */
gni_return_t GNI_GetNttGran(uint32_t device_id, uint32_t *ntt_gran);

/**
 * Protection tag that belongs to a cookie: that of the job which has the cookie and this user. Allocates none.
 *
 * @retval GNI_RC_SUCCESS        *ptag set.
 * @retval GNI_RC_INVALID_PARAM  ptag is NULL.
 * @retval GNI_RC_NO_MATCH       Unknown cookie or device, or no daemon to ask.
 * @note Never GNI_RC_ERROR_RESOURCE: the original may allocate a tag and fail; none is allocated here.
 * @note Source: spec/ugni.md 4.3.
 */
gni_return_t GNI_GetPtag(uint32_t device_id, uint32_t cookie, uint8_t *ptag);

/**
 * Read or clear one 32-bit counter of a NIC handle.
 *
 * SMSG_MBOX_CREDITS_STALL: sends refused, all slots of the peer's mailbox taken. SMSG_REQ_STALL: sends refused, no
 * room in the source CQ. SMSG_BUFF_CREDITS_STALL: sends refused, no memory to remember them. SMSG_RETRANS_COUNT:
 * messages sent again. FLBTE_TXD_NONE: block transfers refused, the job's limit reached. The others belong to parts
 * that the emulated NIC does not have (DLA and the like) and stay 0.
 *
 * @param[in] stat  0..18; the long list of gni_statistic_t counts even if the program was compiled with the short
 *                  one.
 * @retval GNI_RC_SUCCESS        Read into *value; cleared.
 * @retval GNI_RC_INVALID_PARAM  Not a live NIC handle, stat out of range, or value is NULL.
 * @note The meanings are read from the names. Threads: any. Source: spec/ugni.md 2.19, 4.3.
 */
gni_return_t GNI_GetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat, uint32_t *value);
gni_return_t GNI_ResetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat);

/*
 * Balanced injection: the share of its NIC's rate at which this process's node may put requests into the network. The
 * daemon paces what a limited node sends; the jobs on it give up the direct path meanwhile. Threads: any. Source:
 * spec/ugni.md 2.18, 3.13, 4.3.
 */

/**
 * Set the injection limits of a device. Privileged (see Job control).
 *
 * @param[in] bw      Percent 0..100; ORB entries 0..992 with GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES. 0 is taken as one
 *                    entry.
 * @param[in] aot_bw  The same, for the time after a throttle event; in force if it is the lower one, until the next
 *                    call. What throttles a node here is an injected fault (emunic-fault(1), action throttle).
 * @param[in] modes   OR of GNI_BI_FLAG_*: APPLY_NOW sets bw, APPLY_AFTER_THROTTLE sets aot_bw, neither sets both. With
 *                    GNI_BI_FLAG_USE_DEFAULT_SETTINGS the values are not read and the system's defaults are set.
 * @retval GNI_RC_SUCCESS           Asked for; GNI_BISyncWait() tells when it is in force.
 * @retval GNI_RC_INVALID_PARAM     device_id is not 0, an unknown flag, a value out of range, or no daemon that can be
 *                                  asked.
 * @retval GNI_RC_PERMISSION_ERROR  Not privileged.
 */
gni_return_t GNI_SetBIConfig(uint32_t device_id, uint16_t bw, uint16_t aot_bw, uint16_t modes);

/**
 * Read the injection limits. The defaults are 100 percent, 992 ORB entries.
 *
 * @param[out] desc  current_bw and current_aot_bw in percent, current_norbs in entries, flags of the last update;
 *                   cle_seqnum is the number of the last update asked for, hss_seqnum that of the last one in force.
 * @retval GNI_RC_SUCCESS        *desc filled.
 * @retval GNI_RC_INVALID_PARAM  device_id is not 0, or desc is NULL.
 */
gni_return_t GNI_GetBIConfig(uint32_t device_id, gni_bi_desc_t *desc);

/**
 * Wait until the last update is in force: no process is on its way past it any more. Blocks.
 *
 * @param[in] timeout  ms; an input, although the original annotates it as output. 0 looks once.
 * @retval GNI_RC_SUCCESS        In force.
 * @retval GNI_RC_INVALID_PARAM  device_id is not 0.
 * @retval GNI_RC_TIMEOUT        Not yet.
 */
gni_return_t GNI_BISyncWait(uint32_t device_id, uint32_t timeout);

/*
 * Endpoints
 */

/**
 * Create an unbound endpoint.
 *
 * @param[in]  src_cq_hndl  Source CQ for completions, used by the EP until it is destroyed. NULL: datagrams only.
 * @param[out] ep_hndl      Owned by the caller. Live handles differ in their low 24 bits.
 * @retval GNI_RC_SUCCESS        Created.
 * @retval GNI_RC_INVALID_PARAM  Not a live NIC handle, a non-NULL CQ that is not live, or ep_hndl is NULL.
 * @retval GNI_RC_ERROR_NOMEM    Out of memory.
 * @note Threads: NIC. Source: spec/ugni.md 4.4.
 */
gni_return_t GNI_EpCreate(gni_nic_handle_t nic_hndl, gni_cq_handle_t src_cq_hndl, gni_ep_handle_t *ep_hndl);

/**
 * Set the event data of later transactions; posted ones keep theirs. Bound or unbound, before or after
 * GNI_SmsgInit().
 *
 * @param[in] local_event   For entries on the source CQ (LOCAL and GLOBAL, reading 7.1); 24 bits can be read back
 *                          there. Default: the remote id of GNI_EpBind().
 * @param[in] remote_event  For entries on the peer's destination CQ, 32 bits. Default: this CDM's instance id.
 * @retval GNI_RC_SUCCESS        Set.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint.
 * @note Threads: NIC. Source: spec/ugni.md 4.4.
 */
gni_return_t GNI_EpSetEventData(gni_ep_handle_t ep_hndl, uint32_t local_event, uint32_t remote_event);

/**
 * Bind an endpoint to a peer. Local only: no handshake, the peer need not exist. Binding to oneself, and several
 * endpoints to one peer, are fine.
 *
 * @param[in] remote_addr  NIC address.
 * @param[in] remote_id    Instance id.
 * @retval GNI_RC_SUCCESS         Bound.
 * @retval GNI_RC_INVALID_PARAM   Not a live endpoint, or already bound (reading).
 * @note Never GNI_RC_ERROR_RESOURCE, GNI_RC_ERROR_NOMEM: binding takes neither slots nor memory.
 * @note Transfer slots are counted per source CQ, not per EP (reading 7.10). Threads: NIC. Source: spec/ugni.md 4.4.
 */
gni_return_t GNI_EpBind(gni_ep_handle_t ep_hndl, uint32_t remote_addr, uint32_t remote_id);

/**
 * Unbind: remove the association and its SMSG state. An active datagram is cancelled (reading 7.21).
 *
 * @retval GNI_RC_SUCCESS        Unbound.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint.
 * @retval GNI_RC_NOT_DONE       Transactions or SMSG sends of this EP are outstanding or their entries not
 *                               collected: poll the source CQ and call again.
 * @note Threads: NIC. Source: spec/ugni.md 4.4.
 */
gni_return_t GNI_EpUnbind(gni_ep_handle_t ep_hndl);

/**
 * Ask whether GNI_EpUnbind() would succeed. Changes nothing.
 *
 * @retval GNI_RC_SUCCESS        Idle.
 * @retval GNI_RC_NOT_DONE       Busy.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint.
 * @note Threads: NIC. Source: spec/ugni.md 4.4.
 */
gni_return_t GNI_EpIdle(gni_ep_handle_t ep_hndl);

/**
 * Destroy an endpoint. Never refuses: a bound one is unbound, an active datagram cancelled (its TERMINATED record
 * stays visible to a probe). After the call the library touches none of its descriptors or local buffers again;
 * events still queued for it are dropped, or GNI_GetCompleted() answers DESCRIPTOR_ERROR for them. Waits for its
 * transfers on their way, which end by themselves.
 *
 * @retval GNI_RC_SUCCESS        Gone.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint.
 * @note Threads: NIC. Source: spec/ugni.md 4.4.
 */
gni_return_t GNI_EpDestroy(gni_ep_handle_t ep_hndl);

/*
 * Datagrams
 *
 * A rendezvous: both sides post, each gets the other's payload of up to GNI_DATAGRAM_MAXSIZE bytes. A bound EP
 * addresses its peer; an unbound EP is a wildcard and takes the first directed datagram of the domain. A directed
 * datagram pairs with the peer's directed one first, then with its oldest wildcard (reading 7.4), and otherwise
 * waits, also for a peer that has not attached yet. One outstanding datagram per EP. Source: spec/ugni.md 4.5.
 */

/**
 * Post a datagram, without or with an id.
 *
 * @param[in]  in_data      Outgoing payload, copied during the call. NULL with data_len 0 is fine.
 * @param[in]  data_len     Bytes, at most GNI_DATAGRAM_MAXSIZE.
 * @param[out] out_buf      Room for the peer's payload. Stays the library's until the datagram is collected;
 *                          written by the test or wait call that reports COMPLETED. NULL with buf_size 0 is fine.
 * @param[in]  buf_size     Bytes, at most GNI_DATAGRAM_MAXSIZE.
 * @param[in]  datagram_id  Anything but all ones; need not be unique.
 * @retval GNI_RC_SUCCESS         Queued.
 * @retval GNI_RC_INVALID_PARAM   Not a live endpoint, id -1, or a NULL buffer with a size.
 * @retval GNI_RC_ERROR_RESOURCE  This EP already has one outstanding; or one from this very peer has matched a
 *                                wildcard and waits to be collected; or an earlier one to this peer is in
 *                                progress. Transient.
 * @retval GNI_RC_ERROR_NOMEM     The emulator is out of memory, or 65536 are outstanding on this NIC handle.
 * @retval GNI_RC_SIZE_ERROR      data_len or buf_size above GNI_DATAGRAM_MAXSIZE.
 * @note Threads: NIC.
 */
gni_return_t GNI_EpPostData(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len, void *out_buf,
                            uint16_t buf_size);
gni_return_t GNI_EpPostDataWId(gni_ep_handle_t ep_hndl, void *in_data, uint16_t data_len, void *out_buf,
                               uint16_t buf_size, uint64_t datagram_id);

/**
 * Look at a datagram at once; the ById form at the one posted on this EP with that id. Reporting a final state
 * collects it: the EP is free again and the next test says NO_MATCH.
 *
 * @param[out] post_state   State; PENDING and REMOTE_DATA collect nothing.
 * @param[out] remote_addr  Peer's NIC address; only with COMPLETED.
 * @param[out] remote_id    Peer's instance id; only with COMPLETED.
 * @retval GNI_RC_SUCCESS        *post_state set.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint, id -1, or a NULL output.
 * @retval GNI_RC_NO_MATCH       No such datagram, or collected already.
 * @retval GNI_RC_SIZE_ERROR     The peer's payload exceeds buf_size; collected (reading).
 * @note Never GNI_RC_ERROR_NOMEM: everything was allocated when the datagram was posted.
 * @note Never blocks. Threads: NIC.
 */
gni_return_t GNI_EpPostDataTest(gni_ep_handle_t ep_hndl, gni_post_state_t *post_state, uint32_t *remote_addr,
                                uint32_t *remote_id);
gni_return_t GNI_EpPostDataTestById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, gni_post_state_t *post_state,
                                    uint32_t *remote_addr, uint32_t *remote_id);

/**
 * The same, waiting for a final state. Blocks.
 *
 * @param[in]  timeout      ms; (uint32_t)-1 is for ever, 0 is refused.
 * @param[out] post_state   A final state, with SUCCESS only.
 * @param[out] remote_addr  As for GNI_EpPostDataTest().
 * @param[out] remote_id    As for GNI_EpPostDataTest().
 * @retval GNI_RC_SUCCESS        Final state reported, datagram collected.
 * @retval GNI_RC_INVALID_PARAM  As for the test, or timeout 0.
 * @retval GNI_RC_TIMEOUT        No final state in time.
 * @retval GNI_RC_NO_MATCH       No such datagram, or collected already.
 * @retval GNI_RC_SIZE_ERROR     The peer's payload exceeds buf_size; collected (reading).
 * @retval GNI_RC_INVALID_STATE  The CDM was destroyed meanwhile.
 * @note Never GNI_RC_ERROR_NOMEM: everything was allocated when the datagram was posted.
 * @note Threads: NIC.
 */
gni_return_t GNI_EpPostDataWait(gni_ep_handle_t ep_hndl, uint32_t timeout, gni_post_state_t *post_state,
                                uint32_t *remote_addr, uint32_t *remote_id);
gni_return_t GNI_EpPostDataWaitById(gni_ep_handle_t ep_hndl, uint64_t datagram_id, uint32_t timeout,
                                    gni_post_state_t *post_state, uint32_t *remote_addr, uint32_t *remote_id);

/**
 * Find the first datagram of the domain in a final state without collecting it: the next probe finds the same
 * one. The plain form reports the peer, the ById form the id and sees only datagrams posted with one.
 *
 * @param[out] remote_addr  Peer's NIC address.
 * @param[out] remote_id    Peer's instance id.
 * @param[out] datagram_id  Id given to GNI_EpPostDataWId().
 * @retval GNI_RC_SUCCESS        Found. Another thread may collect it first; then the test says NO_MATCH.
 * @retval GNI_RC_NO_MATCH       None.
 * @retval GNI_RC_INVALID_PARAM  Not a live NIC handle, or a NULL output.
 * @note Never blocks. Threads: NIC.
 */
gni_return_t GNI_PostDataProbe(gni_nic_handle_t nic_hndl, uint32_t *remote_addr, uint32_t *remote_id);
gni_return_t GNI_PostDataProbeById(gni_nic_handle_t nic_hndl, uint64_t *datagram_id);

/**
 * GNI_PostDataProbeById() that waits. Blocks. Wakes for completion, cancellation and the destruction of an EP.
 *
 * @param[in]  timeout      ms; (uint32_t)-1 is for ever, 0 looks once (reading 7.18).
 * @param[out] datagram_id  Id given to GNI_EpPostDataWId().
 * @retval GNI_RC_SUCCESS        Found, not collected.
 * @retval GNI_RC_TIMEOUT        None in time.
 * @retval GNI_RC_INVALID_PARAM  Not a live NIC handle, or a NULL output.
 * @retval GNI_RC_INVALID_STATE  The CDM was destroyed, or the NIC has gone and nothing is outstanding. A
 *                               cancellation point.
 * @note Threads: any; may be ended by pthread_cancel().
 */
gni_return_t GNI_PostdataProbeWaitById(gni_nic_handle_t nic_hndl, uint32_t timeout, uint64_t *datagram_id);

/**
 * Cancel a datagram: it becomes TERMINATED and stays visible to probe and test until collected. The plain form
 * takes datagrams with and without id.
 *
 * @retval GNI_RC_SUCCESS        Cancelled: the exchange will not complete any more.
 * @retval GNI_RC_NO_MATCH       Nothing active: never posted, or already in a final state.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint, or id -1.
 * @note Threads: NIC.
 */
gni_return_t GNI_EpPostDataCancel(gni_ep_handle_t ep_hndl);
gni_return_t GNI_EpPostDataCancelById(gni_ep_handle_t ep_hndl, uint64_t datagram_id);

/*
 * Memory registration
 */

/**
 * Register memory. Any alignment; bytes up to the page boundaries become reachable too. Content is not touched.
 * Each call makes a new handle; overlaps are fine.
 *
 * Virtual handles (GNI_MEM_USE_VMDH) name an index of the block of GNI_SetMddResources() and the address: with equal
 * layouts the handle is the same on every node. A post resolves remote_addr minus the address in the handle from the
 * start of the region's first page; a handle whose address is 0 counts remote_addr from the start of the region.
 *
 * GNI_MEM_RESERVE_REGION reserves a range, whose memory may come later; nobody can reach it. GNI_MEM_UPDATE_REGION
 * says that pages of it are there: the first such call makes the whole region live (pages that are not there fail a
 * transaction), further ones are for new pages. One GNI_MemDeregister() ends it.
 *
 * GNI_MEM_READ_ONLY: peers may only get, and here the region is no target of a get. GNI_MEM_MDD_CLONE shows in the
 * handle. Ordering flags and GNI_MEM_PHYS_CONT are hints without effect: ordering is always strict. On a Gemini memory
 * takes entries of the MRT or, with GNI_MEM_USE_GART, of the GART, which GNI_MemHndlQueryAttr() shows and
 * GNI_GetJobResInfo() counts; on an Aries that flag is such a hint.
 * GNI_MEM_PHYS_SEGMENTS and GNI_MEM_CUDA are refused.
 *
 * A registration takes one of the node's 4095 MDDs. When the job may have no more of them, it shares one that the job
 * has, with up to 7 others that begin in other pages; not with GNI_MEM_MDD_DEDICATED, nor in a CDM with
 * GNI_CDM_MODE_MDD_DEDICATED unless GNI_MEM_MDD_SHARED is given, nor with GNI_MEM_USE_VMDH.
 *
 * @param[in]     address      Start.
 * @param[in]     length       Bytes, not 0.
 * @param[in]     dst_cq_hndl  CQ for events that peers cause on this region, or NULL. It may be destroyed earlier.
 *                             NULL with GNI_MEM_UPDATE_REGION: it was named with the reservation.
 * @param[in]     flags        OR of GNI_MEM_*.
 * @param[in]     vmdh_index   (uint32_t)-1; with GNI_MEM_USE_VMDH an index of the block, or -1 for the next free. With
 *                             GNI_MEM_UPDATE_REGION the region's index, or -1: mem_hndl tells which.
 * @param[in,out] mem_hndl     Valid as local handle on every NIC handle of the same ptag and cookie in this process,
 *                             and as remote handle in the whole job. An input with GNI_MEM_UPDATE_REGION and index -1.
 * @retval GNI_RC_SUCCESS           Registered.
 * @retval GNI_RC_INVALID_PARAM     Not a live NIC handle or CQ, length 0, bad flags, GNI_MEM_USE_VMDH without
 *                                  GNI_SetMddResources() or with an index outside the block, an update of what was not
 *                                  reserved or beyond it, or memory that cannot be registered at all.
 * @retval GNI_RC_ERROR_RESOURCE    Limit of the node, or of the job (GNI_ConfigureJob()) reached, or VMDH slot taken.
 *                                  Free some and retry.
 * @retval GNI_RC_ERROR_NOMEM       Out of memory.
 * @retval GNI_RC_PERMISSION_ERROR  The pages may not be accessed as the flags say.
 * @note Threads: NIC. Source: spec/ugni.md 2.7, 4.6, Appendix B. GNI_MEM_RESERVE_REGION works without GNI_MEM_USE_VMDH
 *       too.
 */
gni_return_t GNI_MemRegister(gni_nic_handle_t nic_hndl, uint64_t address, uint64_t length, gni_cq_handle_t dst_cq_hndl,
                             uint32_t flags, uint32_t vmdh_index, gni_mem_handle_t *mem_hndl);

/**
 * Register several segments under one handle. Transactions then use offsets from 0 in the concatenation, in which
 * each segment takes the whole pages that it touches: as remote_addr, and as local_addr of block transfers, gets and
 * atomics. The source of an FMA PUT stays a virtual address.
 *
 * @param[in] mem_segments  Array of segments_cnt, up to 4096, copied.
 * @param[in] flags         As for GNI_MemRegister(), without RESERVE_REGION and UPDATE_REGION.
 * @retval GNI_RC_SUCCESS           Registered.
 * @retval GNI_RC_INVALID_PARAM     As for GNI_MemRegister(), no segments, or a segment of length 0.
 * @retval GNI_RC_ERROR_RESOURCE    As for GNI_MemRegister(), or too many segments.
 * @retval GNI_RC_ERROR_NOMEM       Out of memory.
 * @retval GNI_RC_PERMISSION_ERROR  As for GNI_MemRegister().
 * @note Transactions with such a region go through the daemon on either data path. GNI_MemQueryHndls() tells address
 *       0 and the length of the concatenation. One segment is taken by offsets as well. Threads: NIC. Source:
 *       spec/ugni.md 4.6, 4.7.
 */
gni_return_t GNI_MemRegisterSegments(gni_nic_handle_t nic_hndl, gni_mem_segment_t *mem_segments, uint32_t segments_cnt,
                                     gni_cq_handle_t dst_cq_hndl, uint32_t flags, uint32_t vmdh_index,
                                     gni_mem_handle_t *mem_hndl);

/**
 * Reserve num_entries consecutive indices, 0 .. num_entries - 1, for GNI_MEM_USE_VMDH. Once per NIC handle, before
 * the first such registration.
 *
 * @retval GNI_RC_SUCCESS        Reserved.
 * @retval GNI_RC_INVALID_PARAM  Not a live NIC handle, or a count that is 0 or above 4095.
 * @retval GNI_RC_ERROR_NOMEM    Not so many MDDs left on the node, or for the job; or the NIC has gone.
 * @note The block is the job's on this node: all its NIC handles there, also of other processes, share it, and it is
 *       as large as the largest call asked for. It goes with the last of them. Threads: NIC. Source: spec/ugni.md 4.6.
 */
gni_return_t GNI_SetMddResources(gni_nic_handle_t nic_hndl, uint32_t num_entries);

/**
 * End a registration. Later accesses by peers fail at the initiator and touch nothing. The destination CQ and the
 * memory itself may be gone already.
 *
 * @param[in] mem_hndl  As registration returned it. Not changed.
 * @retval GNI_RC_SUCCESS        Gone.
 * @retval GNI_RC_INVALID_PARAM  Unknown handle, or registered on another NIC.
 * @note Threads: any. Source: spec/ugni.md 4.6.
 */
gni_return_t GNI_MemDeregister(gni_nic_handle_t nic_hndl, gni_mem_handle_t *mem_hndl);

/**
 * Check a handle's integrity and read one attribute. Needs no NIC handle; works on handles from peers.
 *
 * @param[out] yesno  1 if the attribute is set, else 0.
 * @retval GNI_RC_SUCCESS        *yesno set.
 * @retval GNI_RC_INVALID_PARAM  Malformed handle, unknown attribute, or a NULL pointer.
 * @note Threads: any. Source: spec/ugni.md 4.6.
 */
gni_return_t GNI_MemHndlQueryAttr(gni_mem_handle_t *mem_hndl, gni_mem_handle_attr_t attr, int *yesno);

/**
 * Derive a handle with the same address and length and another VMDH index: a peer's, if its layout is ours.
 *
 * @param[in]  src_mem_hndl  A VMDH handle of this process.
 * @param[out] dst_mem_hndl  The derived one.
 * @retval GNI_RC_SUCCESS        Derived.
 * @retval GNI_RC_INVALID_PARAM  Malformed or not virtual handle, index above 4095, or a NULL pointer.
 * @retval GNI_RC_INVALID_STATE  No live region of this process: reserved, but never populated with
 *                               GNI_MEM_UPDATE_REGION, or gone.
 * @note Threads: any. Source: spec/ugni.md 4.6.
 */
gni_return_t GNI_RebuildMemHndl(gni_mem_handle_t *src_mem_hndl, uint32_t vmdh_index, gni_mem_handle_t *dst_mem_hndl);

/**
 * Walk the registrations of a NIC.
 *
 * @param[in]     nic_hndl  NIC handle, or NULL if fd selects the NIC: exactly one of the two.
 * @param[in]     fd        Descriptor of a NIC handle of this process, which here is that of its connection to the
 *                          daemon; -1 or 0 with nic_hndl.
 * @param[in,out] mem_hndl  {0, 0}: first one; else the one after it.
 * @param[out]    address   Start of the region; 0 after an error.
 * @param[out]    length    Bytes; 0 after an error.
 * @retval GNI_RC_SUCCESS        One found.
 * @retval GNI_RC_INVALID_PARAM  Not exactly one selector, not a live NIC, or a NULL pointer.
 * @retval GNI_RC_NO_MATCH       None, or none after the given one.
 * @retval GNI_RC_INVALID_STATE  The given handle is not registered.
 * @note Threads: NIC. Source: spec/ugni.md 4.6.
 */
gni_return_t GNI_MemQueryHndls(gni_nic_handle_t nic_hndl, int fd, gni_mem_handle_t *mem_hndl, uint64_t *address,
                               uint64_t *length);

/*
 * Completion queues
 */

/**
 * Create a completion queue, to be used either as source CQ (completions of own work) or as destination CQ
 * (events caused by peers).
 *
 * @param[in]  entry_count  Least number of entries; the queue holds at least EMUNIC_CQ_FLOOR (512; reading 7.9). Who
 *                          asks for EMUNIC_CQ_LITERAL (1) or fewer means it: of what peers cause such a queue holds no
 *                          more, and overruns. As a source CQ it has room, and transfer slots, for as many as others.
 * @param[in]  delay_count  Events that must wait before a sleeper is woken, BLOCKING only; 0 and 1 are every event. A
 *                          sleeper looks by itself every quarter second and when its time is over, so fewer are found
 *                          too, but late. Completion channels tell of every event.
 * @param[in]  mode         OR of GNI_CQ_*. Events for an UNMANAGED destination CQ vanish: nothing can be taken off, and
 *                          whoever waits for it waits until his time is over. EMULATED and PHYS_PAGES change nothing.
 * @param[in]  handler      NULL, or called with each entry and context inside the call that takes the entry off,
 *                          when that answers SUCCESS or TRANSACTION_ERROR. It may use the NIC, but not destroy the CQ.
 * @param[in]  context      Passed to handler.
 * @param[out] cq_hndl      Owned by the caller.
 * @retval GNI_RC_SUCCESS         Created.
 * @retval GNI_RC_INVALID_PARAM   Not a live NIC handle, entry_count 0, GNI_CQ_EMULATED_INVALID, or cq_hndl is
 *                                NULL.
 * @retval GNI_RC_ERROR_RESOURCE  Limit of CQs reached.
 * @retval GNI_RC_ERROR_NOMEM     Out of memory.
 * @note Threads: NIC. Source: spec/ugni.md 4.9.
 */
gni_return_t GNI_CqCreate(gni_nic_handle_t nic_hndl, uint32_t entry_count, uint32_t delay_count, gni_cq_mode_t mode,
                          void (*handler)(gni_cq_entry_t *, void *), void *context, gni_cq_handle_t *cq_hndl);

/**
 * Destroy a completion queue. Registrations that name it as destination do not hinder; their later events are
 * dropped. Waits for transfers on their way that would complete here.
 *
 * @retval GNI_RC_SUCCESS         Gone.
 * @retval GNI_RC_INVALID_PARAM   Not a live CQ.
 * @retval GNI_RC_ERROR_RESOURCE  An endpoint uses it as source CQ.
 * @note Threads: NIC. Source: spec/ugni.md 4.9.
 */
gni_return_t GNI_CqDestroy(gni_cq_handle_t cq_hndl);

/*
 * Posts
 */

/**
 * Start a transaction: block transfers (RDMA PUT and GET), FMA (PUT, with or without flag, GET, AMO, CE), CQ
 * writes. The call queues the work; completion comes through the CQ and GNI_GetCompleted().
 *
 * @param[in,out] post_descr  Belongs to the library from SUCCESS until GNI_GetCompleted() returns it; so do the
 *                            local buffers until the event that was asked for. Untouched after an error.
 * @retval GNI_RC_SUCCESS           Accepted.
 * @retval GNI_RC_INVALID_PARAM     EP not live or not bound; type not for this call; NULL descriptor; LOCAL and
 *                                  GLOBAL without GNI_CDM_MODE_DUAL_EVENTS; malformed handle; length 0 of a GET
 *                                  or an AMO (reading 7.11); GNI_RDMAMODE_PHYS_ADDR; CE on an EP without leaf
 *                                  attributes, unknown ce_cmd or ce_mode bits; on a Gemini what came with Aries
 *                                  (GNI_GetDeviceType()).
 * @retval GNI_RC_ALIGNMENT_ERROR   GNI_PostRdma() and GNI_PostFma() only: GET with remote address or length (on a
 *                                  Gemini also local address) not a multiple of 4, AMO not of its operand size,
 *                                  sync_flag_addr not of 8 (reading), CE result not of 32.
 * @retval GNI_RC_ERROR_RESOURCE    No transfer slot, queue full: poll the source CQ and retry.
 * @retval GNI_RC_PERMISSION_ERROR  GNI_PostRdma() and GNI_PostFma() only: the local region does not allow it: GET,
 *                                  fetched value or CE result into READ_ONLY. Nothing was started and no entry
 *                                  comes. The original documents it for GNI_PostRdma(); of GNI_PostFma() no source
 *                                  tells, and here it says the same. What the remote region does not allow is an
 *                                  entry with status 5 (A_STATUS_AT_PROTECTION_ERR).
 * @note Never GNI_RC_ERROR_NOMEM of GNI_PostRdma(): no memory for a transfer slot is ERROR_RESOURCE; programs retry
 *       both.
 * @note What only the target can decide arrives as an event with a status (reading 7.6), and so does a local handle
 *       that is one but whose registration has ended or does not hold the buffer ("local access"); only a CE result
 *       there gives INVALID_PARAM. No order between posts,
 *       except: posts of one EP with GNI_DLVMODE_IN_ORDER; GNI_RDMAMODE_FENCE; a REMOTE event after the data of
 *       its post. Threads: NIC. Source: spec/ugni.md 4.7, 4.8.
 */
gni_return_t GNI_PostRdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);
gni_return_t GNI_PostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);
gni_return_t GNI_PostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);

/**
 * Find the descriptor of a POST entry that was taken off this source CQ. Frees its transfer slot (with
 * DUAL_EVENTS at the second entry). Entries may be resolved in any order, also after the EP was unbound.
 *
 * @param[out] post_descr  The very pointer that was posted; NULL if nothing matches.
 * @retval GNI_RC_SUCCESS            Completed well.
 * @retval GNI_RC_TRANSACTION_ERROR  Completed with an error, see gni_cq_get_status(); *post_descr is set.
 * @retval GNI_RC_DESCRIPTOR_ERROR   Nothing outstanding matches; *post_descr is NULL.
 * @retval GNI_RC_INVALID_PARAM      Not a live CQ, or post_descr is NULL.
 * @note Never blocks. Threads: NIC. Source: spec/ugni.md 4.9.
 */
gni_return_t GNI_GetCompleted(gni_cq_handle_t cq_hndl, gni_cq_entry_t event_data, gni_post_descriptor_t **post_descr);

/*
 * Events
 */

/**
 * Take the oldest event off a completion queue. Never blocks, but where a fabric takes long to answer each further
 * empty look in a row takes longer, at most a millisecond, or 20 where nothing has come for long, and ends with the
 * first news for the NIC. Also does internal work: returning SMSG credits, sending again; a program that only sends
 * must call it too.
 *
 * @param[out] event_data  The event with SUCCESS and TRANSACTION_ERROR; a non-zero word with GNI_CQ_OVERRUN set
 *                         with ERROR_RESOURCE; 0 with NOT_DONE (reading 7.16).
 * @retval GNI_RC_SUCCESS            Event taken.
 * @retval GNI_RC_NOT_DONE           Queue empty; or the end of what came before a loss that is still to be told.
 * @retval GNI_RC_INVALID_PARAM      Not a live CQ, or event_data is NULL.
 * @retval GNI_RC_TRANSACTION_ERROR  Event taken; its transaction failed. POST entries still go to
 *                                   GNI_GetCompleted().
 * @retval GNI_RC_ERROR_RESOURCE     The queue overran, an event was lost. Said once for each lost event, after those
 *                                   that are queued; between two of these answers there is a NOT_DONE, also while
 *                                   the queue is empty. It works as before meanwhile.
 * @note How long the overrun state lasts is a reading. Some programs wait for an answer for each event that was sent,
 *       others drain the queue to NOT_DONE after the first error and then look at all mailboxes: both find what they
 *       want. Threads: NIC. Source: spec/ugni.md 4.9, 5.
 */
gni_return_t GNI_CqGetEvent(gni_cq_handle_t cq_hndl, gni_cq_entry_t *event_data);

/**
 * GNI_CqGetEvent() that waits. Blocks.
 *
 * @param[in]  timeout     ms; (uint64_t)-1 is for ever.
 * @param[out] event_data  As for GNI_CqGetEvent(); 0 if the CQ is not BLOCKING (reading 7.28).
 * @retval GNI_RC_SUCCESS            Event taken.
 * @retval GNI_RC_TIMEOUT            None in time.
 * @retval GNI_RC_NOT_DONE           Interrupted by a signal, or the CQ's interrupts are masked.
 * @retval GNI_RC_INVALID_PARAM      Not a live CQ, or event_data is NULL.
 * @retval GNI_RC_ERROR_RESOURCE     Overrun (GNI_CQ_OVERRUN set in the word), or the CQ is not BLOCKING.
 * @retval GNI_RC_TRANSACTION_ERROR  Event taken; its transaction failed.
 * @retval GNI_RC_INVALID_STATE      The CDM was destroyed meanwhile (a destroyed CQ gives INVALID_PARAM). A
 *                                   cancellation point.
 * @note Threads: any. Source: spec/ugni.md 4.9.
 */
gni_return_t GNI_CqWaitEvent(gni_cq_handle_t cq_hndl, uint64_t timeout, gni_cq_entry_t *event_data);

/**
 * Wait for the first event on any of several BLOCKING queues, also of several NIC handles. Blocks. WaitEvent takes the
 * event off; Monitor only reports that one is there, at once if any queue is non-empty. Another thread may take it
 * before the caller does.
 *
 * @param[in]  cq_hndls    Array of num_cqs handles; must stay until the call returns. With more than 128 the call looks
 *                         every millisecond instead of being woken by each.
 * @param[in]  timeout     ms; (uint64_t)-1 is for ever.
 * @param[out] event_data  WaitEvent: as for GNI_CqGetEvent().
 * @param[out] which       Index in cq_hndls.
 * @retval GNI_RC_SUCCESS            Event found.
 * @retval GNI_RC_TIMEOUT            None in time.
 * @retval GNI_RC_NOT_DONE           A queue's interrupts are masked, or a signal came: call again.
 * @retval GNI_RC_INVALID_PARAM      num_cqs is 0 or above 128, a handle is not live, or a pointer is NULL.
 * @retval GNI_RC_ERROR_RESOURCE     A queue is not BLOCKING; WaitEvent also: a queue overran.
 * @retval GNI_RC_TRANSACTION_ERROR  GNI_CqVectorWaitEvent() only: event taken; its transaction failed.
 * @retval GNI_RC_INVALID_STATE      The CDM was destroyed meanwhile (a destroyed CQ gives INVALID_PARAM). A
 *                                   cancellation point.
 * @note Never GNI_RC_ERROR_NOMEM: the calls allocate nothing.
 * @note Threads: any. Monitor may be ended by pthread_cancel(). Source: spec/ugni.md 4.9.
 */
gni_return_t GNI_CqVectorWaitEvent(gni_cq_handle_t *cq_hndls, uint32_t num_cqs, uint64_t timeout,
                                   gni_cq_entry_t *event_data, uint32_t *which);
gni_return_t GNI_CqVectorMonitor(gni_cq_handle_t *cq_hndls, uint32_t num_cqs, uint64_t timeout, uint32_t *which);

/**
 * Raise or lower the count of interrupt masks on a BLOCKING queue. While it is not 0, waiting calls answer
 * NOT_DONE instead of sleeping on that queue.
 *
 * @retval GNI_RC_SUCCESS         Count changed.
 * @retval GNI_RC_NOT_DONE        GNI_CqInterruptUnmask() only: the count is 0.
 * @retval GNI_RC_INVALID_PARAM   Not a live CQ, or not BLOCKING.
 * @note Never GNI_RC_ERROR_RESOURCE: every BLOCKING queue has a mask.
 * @note Never GNI_RC_NOT_DONE of GNI_CqInterruptMask(): it says so at 2^32 - 1 masks, and no program gets there.
 * @note A mask does not hold back a completion channel. Threads: any. Source: spec/ugni.md 4.9.
 */
gni_return_t GNI_CqInterruptMask(gni_cq_handle_t cq_hndl);
gni_return_t GNI_CqInterruptUnmask(gni_cq_handle_t cq_hndl);

/**
 * Look whether GNI_CqGetEvent() would return something. Takes nothing off that could be returned.
 *
 * @retval GNI_RC_SUCCESS         It would.
 * @retval GNI_RC_NOT_DONE        Empty; may be stale by the time it is read.
 * @retval GNI_RC_ERROR_RESOURCE  An overrun is waiting to be reported.
 * @retval GNI_RC_INVALID_PARAM   Not a live CQ.
 * @note Threads: any. Source: spec/ugni.md 4.9.
 */
gni_return_t GNI_CqTestEvent(gni_cq_handle_t cq_hndl);

/**
 * Put the status of an entry into words.
 *
 * @param[in]  entry   From a queue. The word of an overrun has its own text, an ok entry says "no error".
 * @param[out] buffer  len bytes; a NUL-terminated text of less than 256.
 * @retval GNI_RC_SUCCESS        Written. A status that this library does not know gives its number.
 * @retval GNI_RC_INVALID_PARAM  buffer is NULL.
 * @retval GNI_RC_SIZE_ERROR     len is too small for text and NUL; buffer untouched.
 * @note Threads: any, also in signal handlers. Source: spec/ugni.md 4.9.
 */
gni_return_t GNI_CqErrorStr(gni_cq_entry_t entry, void *buffer, uint32_t len);

/**
 * Ask whether posting the same transaction again may succeed.
 *
 * @param[out] recoverable  1 for ok, network failure and retransmission limit; 0 for peer gone, bad handle,
 *                          range, permission, remote CQ full, local access, cancelled, malformed command, and for
 *                          the word of an overrun. A full remote CQ counts as a resource of the
 *                          target; whoever knows that it is drained may post again.
 * @retval GNI_RC_SUCCESS        *recoverable set.
 * @retval GNI_RC_INVALID_PARAM  recoverable is NULL.
 * @retval GNI_RC_INVALID_STATE  A status that this library does not know.
 * @note Threads: any, also in signal handlers. Source: spec/ugni.md 4.9, 7.3.
 */
gni_return_t GNI_CqErrorRecoverable(gni_cq_entry_t entry, uint32_t *recoverable);

/*
 * Short messages (SMSG)
 *
 * Each side of a bound EP pair owns a mailbox of mbox_maxcredit slots of msg_maxsize bytes, which the other
 * fills. Messages of one pair arrive once, whole and in order. Entries on the destination CQ are hints: fetch
 * until NOT_DONE at each. Source: spec/ugni.md 4.10.
 */

/**
 * Bytes that one mailbox needs. A pure function of msg_type, mbox_maxcredit and msg_maxsize; nothing else is
 * read.
 *
 * @param[out] size  128 + credits * (msg_maxsize + 16 rounded up to 64): reading 7.14, and one line more because a
 *                   mailbox may start at any address.
 * @retval GNI_RC_SUCCESS        *size set.
 * @retval GNI_RC_INVALID_PARAM  Unknown type, credits or size 0, size above GNI_SMSG_MAX_SIZE, or a NULL pointer.
 * @note Threads: any.
 */
gni_return_t GNI_SmsgBufferSizeNeeded(gni_smsg_attr_t *smsg_attr, unsigned int *size);

/**
 * Make a bound endpoint able to send and receive. Local; the peer may do it earlier or later, and its messages
 * that are already there are not lost. Leftovers of an earlier connection in the mailbox are never taken for
 * messages.
 *
 * One message has one entry. That of a message which is already there waits in the queue, or is on its way; only if it
 * was taken before this call, when nobody could fetch the message, the call puts it back. The same if the queue had no
 * room for it.
 *
 * @param[in] local_smsg_attr   Own mailbox. Copied; the memory stays in use until unbind.
 * @param[in] remote_smsg_attr  The peer's; its credits and size bind the sender.
 * @retval GNI_RC_SUCCESS        Ready.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint, or attributes that do not fit together.
 * @retval GNI_RC_INVALID_STATE  Not bound.
 * @retval GNI_RC_ERROR_NOMEM    Out of memory.
 * @note Threads: NIC.
 */
gni_return_t GNI_SmsgInit(gni_ep_handle_t ep_hndl, gni_smsg_attr_t *local_smsg_attr, gni_smsg_attr_t *remote_smsg_attr);

/**
 * Delivery mode of all messages of a NIC handle. Default GNI_DLVMODE_PERFORMANCE.
 *
 * @retval GNI_RC_SUCCESS        Set.
 * @retval GNI_RC_INVALID_PARAM  Not a live NIC handle, or not a GNI_DLVMODE_* value, or not one of this device.
 * @note Threads: NIC.
 */
gni_return_t GNI_SmsgSetDeliveryMode(gni_nic_handle_t nic_handle, uint16_t dlvr_mode);

/**
 * Send a message: header, then data. Both are copied during the call. One SMSG entry with msg_id follows on the
 * source CQ. An entry with an error says that this message was not delivered; those sent behind it are delivered once
 * the entry has been taken, and the program may send the lost one again, as a new message.
 *
 * @param[in] header, data  May be NULL with length 0; both empty is a message too.
 * @param[in] msg_id        Returned in the entry, for both mailbox types (reading).
 * @param[in] tag           Anything but GNI_SMSG_ANY_TAG. GNI_SmsgSend() sends tag 0 (reading).
 * @retval GNI_RC_SUCCESS         Sent; the buffers are free.
 * @retval GNI_RC_INVALID_PARAM   Not a live endpoint, no GNI_SmsgInit() yet, NULL with a length, or tag ANY_TAG.
 * @retval GNI_RC_NOT_DONE        No credit, no room in the source CQ or no request slot: poll both CQs and retry.
 *                                Nothing was done.
 * @retval GNI_RC_ERROR_RESOURCE  Header and data exceed the msg_maxsize of the connection.
 * @note Threads: NIC.
 */
gni_return_t GNI_SmsgSend(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length, void *data,
                          uint32_t data_length, uint32_t msg_id);
gni_return_t GNI_SmsgSendWTag(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length, void *data,
                              uint32_t data_length, uint32_t msg_id, uint8_t tag);

/**
 * Make the next message current. A second call before GNI_SmsgRelease() returns the same one (reading). Also
 * takes in returned credits.
 *
 * @param[out]    header  The message in the mailbox, data right behind the header, 8-byte aligned; readable until
 *                        GNI_SmsgRelease(). The length is not told.
 * @param[in,out] tag     In: wanted tag or GNI_SMSG_ANY_TAG; out: the message's. Unchanged unless SUCCESS
 *                        (reading).
 * @retval GNI_RC_SUCCESS        A message is current.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint, no GNI_SmsgInit() yet, or a NULL pointer.
 * @retval GNI_RC_NOT_DONE       None there.
 * @retval GNI_RC_NO_MATCH       GNI_SmsgGetNextWTag() only: the next message has another tag.
 * @retval GNI_RC_INVALID_STATE  The connection is broken.
 * @note Never blocks. Threads: NIC.
 */
gni_return_t GNI_SmsgGetNext(gni_ep_handle_t ep_hndl, void **header);
gni_return_t GNI_SmsgGetNextWTag(gni_ep_handle_t ep_hndl, void **header, uint8_t *tag);

/**
 * Free the slot of the current message. Credits go back when half of them wait, or at once if the peer may be out
 * of them (reading 7.13).
 *
 * @retval GNI_RC_SUCCESS        Freed; never fails for lack of resources.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint, or no GNI_SmsgInit() yet.
 * @retval GNI_RC_NOT_DONE       No message is current.
 * @note Threads: NIC.
 */
gni_return_t GNI_SmsgRelease(gni_ep_handle_t ep_hndl);

/*
 * Shared message queues (MSGQ)
 *
 * The instances of a node (NIC handles of one communication domain there, usually one per process) share mailboxes,
 * one per connected remote node, instead of having a channel per pair of processes. Only between nodes. The usual
 * order: every instance GNI_MsgqInit(); when all have, one instance per node GNI_MsgqGetConnAttrs() for each other
 * node, carries the attributes there, GNI_MsgqConnect() with what came back; GNI_MsgqSend(), GNI_MsgqProgress();
 * GNI_MsgqConnRelease() on both sides once all are quiet; GNI_MsgqRelease().
 *
 * Messages of one instance to another arrive once, whole and in order. The death of an instance loses its own
 * messages and those for it, nobody else's, and no credits. Instances of one communication domain and node trust each
 * other as they do with memory they share: one that writes garbage into the region harms the others' messages.
 *
 * Difference from the original: the region is not in huge pages that the program can see; emunic hands it to the
 * instances, so no call fails for lack of a hugetlbfs.
 *
 * Threads: NIC, for all calls but GNI_MsgqSize(); the callback runs without the NIC's lock. Source: spec/ugni.md 3.11,
 * 4.11.
 */

/**
 * Attach to the node's shared message queue; the first instance makes it. Waits for nobody.
 *
 * @param[in]  nic_hndl    One queue per NIC handle.
 * @param[in]  rcv_cb      Called by GNI_MsgqProgress() for each message, in the thread that called it, which cannot be
 *                         cancelled meanwhile. It may call anything.
 * @param[in]  cb_data     Passed to rcv_cb; may be NULL.
 * @param[in]  snd_cq      A CQ of this NIC handle. Checked, otherwise not used: entries of sends go to the end
 *                         point's CQ.
 * @param[in]  attrs       Equal in all instances of the node; nodes may differ. Copied.
 * @param[out] msgq_hndl   Until GNI_MsgqRelease() or GNI_CdmDestroy().
 * @retval GNI_RC_SUCCESS        In.
 * @retval GNI_RC_INVALID_PARAM  Not a live NIC handle, not a live CQ of it, a NULL pointer, or attributes outside
 *                               their limits: a 0 other than rcv_pool_sz and modes, max_msg_sz above
 *                               GNI_MSGQ_MSG_SZ_MAX, smsg_q_sz neither 1 nor even, nloc_insts above
 *                               GNI_MSGQ_NODE_INSTS_MAX, rcv_cq_sz above 2^20, unknown modes, a region of 4 GiB and
 *                               more.
 * @retval GNI_RC_INVALID_STATE  Attributes differ from those of the instances that are in, nloc_insts are in, one
 *                               with this instance id is in, this NIC handle has a queue already, an instance has
 *                               released the queue and not all have, or the NIC has gone.
 * @retval GNI_RC_ERROR_NOMEM    Out of memory, queue memory (rcv_cq_sz) or memory domains.
 * @note Never GNI_RC_PERMISSION_ERROR: the original's "no hugetlbfs"; the region is not in huge pages here.
 * @note rcv_pool_sz counts messages (reading: the unit is not known). An instance that replaces a dead one may attach;
 *       other nodes reach it after a new connection.
 */
gni_return_t GNI_MsgqInit(gni_nic_handle_t nic_hndl, gni_msgq_rcv_cb_func *rcv_cb, void *cb_data,
                          gni_cq_handle_t snd_cq, gni_msgq_attr_t *attrs, gni_msgq_handle_t *msgq_hndl);

/**
 * Leave the queue; ask whether leaving would succeed. With the last instance the queue ends, connections included.
 * From the first successful release on no connection is made.
 *
 * @retval GNI_RC_SUCCESS        Left; idle.
 * @retval GNI_RC_INVALID_PARAM  Not a live queue.
 * @retval GNI_RC_NOT_DONE       Completion entries of sends have not been taken, or messages for this instance have
 *                               arrived and have not been given to its callback (reading of "outstanding work"), or
 *                               another instance is at work on a connection just now.
 * @note GNI_MsgqRelease() succeeds at once when the NIC has gone.
 */
gni_return_t GNI_MsgqRelease(gni_msgq_handle_t msgq_hndl);
gni_return_t GNI_MsgqIdle(gni_msgq_handle_t msgq_hndl);

/**
 * Assign a mailbox to remote node pe_addr and tell what that node needs to connect. Messages may arrive from then on.
 *
 * @param[in]  pe_addr     NIC address of the remote node.
 * @param[out] attrs       Describes this node's live instances: to be carried to the other node as bytes.
 * @param[out] attrs_size  Bytes used of attrs: 16, and 32 per instance. May be NULL.
 * @retval GNI_RC_SUCCESS           Assigned.
 * @retval GNI_RC_INVALID_PARAM     Not a live queue, attrs is NULL, pe_addr is this node or none of the domain.
 * @retval GNI_RC_INVALID_STATE     Assigned already, by any instance of this node; or another instance that is stopped
 *                                  holds the directory of connections (after five seconds).
 * @retval GNI_RC_ERROR_RESOURCE    num_msgq_eps nodes have one.
 * @retval GNI_RC_PERMISSION_ERROR  Not all nloc_insts instances have attached yet, one has released the queue, or the
 *                                  NIC has gone.
 */
gni_return_t GNI_MsgqGetConnAttrs(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t *attrs,
                                  uint32_t *attrs_size);

/**
 * Complete a connection with the other node's attributes. Every instance of this node may send from then on, also
 * before the other node has connected.
 *
 * @param[in] attrs  What GNI_MsgqGetConnAttrs() gave to an instance of pe_addr; the first attrs_size bytes are read.
 *                   Copied.
 * @retval GNI_RC_SUCCESS           Connected.
 * @retval GNI_RC_INVALID_PARAM     Not a live queue, attrs is NULL, or not attributes of pe_addr.
 * @retval GNI_RC_NO_MATCH          No mailbox assigned to pe_addr.
 * @retval GNI_RC_INVALID_STATE     Connected already; or as GNI_MsgqGetConnAttrs().
 * @retval GNI_RC_PERMISSION_ERROR  As GNI_MsgqGetConnAttrs().
 */
gni_return_t GNI_MsgqConnect(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t *attrs);

/**
 * Give the mailbox of a node back. The other node is told: its sends are refused with INVALID_STATE until it connects
 * anew.
 *
 * @retval GNI_RC_SUCCESS        Free.
 * @retval GNI_RC_INVALID_PARAM  Not a live queue.
 * @retval GNI_RC_NO_MATCH       The node has no mailbox here.
 * @retval GNI_RC_NOT_DONE       Messages for live instances of this node wait in it, or another instance is at work
 *                               on it: all should GNI_MsgqProgress(), then try again.
 * @note Both nodes should have stopped sending: what is under way is lost.
 */
gni_return_t GNI_MsgqConnRelease(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr);

/**
 * Send a message to the node and instance that ep_hndl is bound to: header, then data, both copied during the call. One
 * entry of type GNI_CQ_EVENT_TYPE_MSGQ with msg_id follows on the end point's CQ; it tells of the network, not of the
 * receiver's callback. If the receiver dies at that moment the entry carries an error.
 *
 * @param[in] ep_hndl   Of the same NIC handle, bound, with a CQ. No GNI_SmsgInit() needed.
 * @param[in] hdr, msg  May be NULL with length 0; both empty is a message too.
 * @param[in] msg_tag   Any value.
 * @retval GNI_RC_SUCCESS        Sent; the buffers are free.
 * @retval GNI_RC_INVALID_PARAM  Not a live queue or end point, not of one NIC handle, not bound, no CQ, NULL with a
 *                               length.
 * @retval GNI_RC_NO_MATCH       No connection to that node, or it has no such instance.
 * @retval GNI_RC_NOT_DONE       No credit (the mailbox is full; the credits are shared by all instances of this
 *                               node), no room in the CQ, or another instance is sending: poll the CQ,
 *                               GNI_MsgqProgress(), retry. Nothing was done.
 * @retval GNI_RC_SIZE_ERROR     Header and data exceed the max_msg_sz of the remote node.
 * @retval GNI_RC_INVALID_STATE  Mailbox assigned but not connected, released by the other node, the receiving
 *                               instance has ended, or the NIC has gone.
 */
gni_return_t GNI_MsgqSend(gni_msgq_handle_t msgq_hndl, gni_ep_handle_t ep_hndl, void *hdr, uint32_t hdr_len, void *msg,
                          uint32_t msg_len, uint32_t msg_id, uint8_t msg_tag);

/**
 * Hand received messages to rcv_cb until it returns 0 or none is left. Also does the node's work: takes messages for
 * other instances out of the mailboxes, up to rcv_pool_sz for each, and returns credits. An instance that never calls
 * it costs the senders to its node credits once its pool is full.
 *
 * @param[in] timeout  A queue with GNI_MSGQ_MODE_BLOCKING: ms to wait for each message. (uint32_t)-1 does not block,
 *                     and is the only value for a queue without it.
 * @retval GNI_RC_SUCCESS        None was left; in blocking mode: none came for that time.
 * @retval GNI_RC_INVALID_PARAM  Not a live queue, or a timeout that is not -1 for a non-blocking one.
 * @retval GNI_RC_NOT_DONE       More may be there: rcv_cb returned 0, 4096 messages were given to it, or another
 *                               instance is at work on a connection just now.
 * @retval GNI_RC_INVALID_STATE  An event that no message caused came into the private receive queue (told once,
 *                               nothing is lost); the queue or its NIC has ended.
 * @note Never GNI_RC_ERROR_RESOURCE: the original's "send CQ full"; this call takes nothing off that queue.
 * @note Never GNI_RC_ERROR_NOMEM: everything is allocated by GNI_MsgqInit().
 * @note An overrun of the private receive queue
 *       loses no message.
 */
gni_return_t GNI_MsgqProgress(gni_msgq_handle_t msgq_hndl, uint32_t timeout);

/**
 * Bytes of shared memory that a queue with these attributes takes: a multiple of 2 MiB. Pages that are never used
 * take none.
 *
 * @param[in]  attrs  rcv_cq_sz and modes are not read.
 * @param[out] size   Bytes, by this library's own formula; see msgq_region.c.
 * @retval GNI_RC_SUCCESS        *size set.
 * @retval GNI_RC_INVALID_PARAM  A NULL pointer, 4 GiB and more, or attributes as refused by GNI_MsgqInit().
 * @note Threads: any.
 */
gni_return_t GNI_MsgqSize(gni_msgq_attr_t *attrs, uint32_t *size);

/**
 * How often a message is sent again after transient failures, for messages sent from now on by all endpoints of a NIC
 * handle whose mailbox has type GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT. Default FMA_SMSG_MAX_RETRANS_DEFAULT. After that
 * its entry has status 8, retransmission limit. Retransmissions are counted in GNI_STAT_SMSG_RETRANS_COUNT.
 *
 * @param[in] max_retrans  0: the first failure is the limit.
 * @retval GNI_RC_SUCCESS        Set.
 * @retval GNI_RC_INVALID_PARAM  Not a live NIC handle.
 * @note Threads: NIC. Source: spec/ugni.md 4.10. The emulated NIC does the work, in order: a message that is sent again
 *       holds those behind it. On one host nothing fails unless `emunic fault` makes it fail.
 */
gni_return_t GNI_SmsgSetMaxRetrans(gni_nic_handle_t nic_handle, uint16_t max_retrans);

/*
 * Error subscription
 *
 * Events beside those of completion queues, for programs that watch a job: transactions that failed, refused
 * registrations, NIC handles that died with their process, injected faults (`emunic fault`). error_category is one
 * GNI_ERRMASK_* bit, timestamp ns since 1970, serial_number counts the events of this subscription, lost ones included.
 *
 *   error_code                                            error_category
 *   1 network (also a message that hit the limit: 8)      TRANSIENT (8: TRANSACTION)
 *   2 peer gone, 6 remote CQ full, 9 cancelled            TRANSACTION
 *   3 bad handle, 4 range, 5 permission, 7 local access   ADDRESS_TRANSLATION
 *   10 malformed command                                  UNKNOWN_TRANSACTION
 *   32 a packet arrived broken (its status: network)      TRANSIENT
 *   33 an operation was held back                         DIAG_ONLY
 *   34 a short message was lost and is sent again         TRANSIENT
 *   35 an event found its queue full                      TRANSACTION
 *   36 a registration was refused                         ADDRESS_TRANSLATION
 *   37 a datagram was lost or failed                      TRANSIENT
 *   48 a NIC handle died without being destroyed          CRITICAL
 *   49 emunic has gone; the last event                    CRITICAL
 *   64 `emunic fault` with action report                  as asked for
 *   65 fault rules changed                                INFORMATIONAL
 *
 * info_mmrs: [0] initiator's NIC address << 32 | instance id, [1] target's NIC address << 32 | number of its region,
 * [2] remote address or a count, [3] fault rule << 32 | first << 16 | operation << 8 | status. `first` is 1 for the
 * first event of a burst, which came when the subscriber had taken all earlier ones. It is never lost, however many
 * follow. Codes and words are our own: those of the original are not known. Code 35 comes where the emulated NIC itself
 * finds the queue full; on the short way between processes of a host only the queue's owner learns of it.
 *
 * Privileged are root and the user that runs emunic. Threads: any. Source: spec/ugni.md 2.18, 3.8, 4.13.
 */

/**
 * Subscribe to error events. They flow from the return on.
 *
 * @param[in]  nic_handle  Events of this handle's communication domain. NULL is the privileged form: all domains.
 * @param[in]  device_id   Read only with a NULL nic_handle.
 * @param[in]  mask        OR of GNI_ERRMASK_*.
 * @param[in]  EEQ_size    Events that wait at most; 0 is 64. When so many wait further ones are lost, and the next
 *                         serial number shows how many.
 * @param[out] err_handle  Owned by the caller until GNI_ReleaseErrors(), also after the NIC handle is gone.
 * @retval GNI_RC_SUCCESS           Subscribed.
 * @retval GNI_RC_INVALID_PARAM     Not a live NIC handle, err_handle is NULL, or a NULL handle without privilege.
 * @retval GNI_RC_NO_MATCH          NULL handle: no such device, or no emunic.
 * @retval GNI_RC_ERROR_RESOURCE    EEQ_size above 65536, 256 subscriptions of this user, or the NIC has gone.
 * @retval GNI_RC_PERMISSION_ERROR  The handle's domain has ended.
 * @retval GNI_RC_ERROR_NOMEM       Out of memory.
 */
gni_return_t GNI_SubscribeErrors(gni_nic_handle_t nic_handle, uint32_t device_id, gni_error_mask_t mask,
                                 uint32_t EEQ_size, gni_err_handle_t *err_handle);

/**
 * End a subscription; events that wait are lost.
 *
 * @retval GNI_RC_SUCCESS        Gone.
 * @retval GNI_RC_INVALID_PARAM  Not a live subscription.
 * @retval GNI_RC_NOT_DONE       A thread waits in GNI_WaitErrorEvents().
 */
gni_return_t GNI_ReleaseErrors(gni_err_handle_t err_handle);

/**
 * Read, or replace, the mask of a subscription. Events that wait already stay.
 *
 * @param[out] mask      Current mask.
 * @param[out] mask_out  Mask before the call.
 * @retval GNI_RC_SUCCESS        Done.
 * @retval GNI_RC_INVALID_PARAM  Not a live subscription, or a NULL pointer.
 */
gni_return_t GNI_GetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t *mask);
gni_return_t GNI_SetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t mask_in, gni_error_mask_t *mask_out);

/**
 * Take one event. Never blocks.
 *
 * @param[out] event  Set with SUCCESS.
 * @retval GNI_RC_SUCCESS        Taken.
 * @retval GNI_RC_NOT_DONE       None waits.
 * @retval GNI_RC_INVALID_PARAM  Not a live subscription, or event is NULL.
 */
gni_return_t GNI_GetErrorEvent(gni_err_handle_t err_handle, gni_error_event_t *event);

/**
 * Wait without limit for the first event, then up to timeout ms for more. May be ended by pthread_cancel(). When emunic
 * has gone and its last event was taken it waits for ever: programs call this in a loop, and an error would make them
 * spin.
 *
 * @param[out] events       Room for events_size events.
 * @param[in]  events_size  Entries, not 0.
 * @param[in]  timeout      ms to collect more after the first; 0: only what is there.
 * @param[out] num_events   Events delivered; set with SUCCESS and TIMEOUT.
 * @retval GNI_RC_SUCCESS        The buffer is full, or timeout is 0 and there is at least one event.
 * @retval GNI_RC_TIMEOUT        The time to collect ran out; *num_events events, at least one, were delivered.
 * @retval GNI_RC_NOT_DONE       A signal came before the first event.
 * @retval GNI_RC_INVALID_PARAM  Not a live subscription, events_size 0, or a NULL pointer.
 * @note Never GNI_RC_PERMISSION_ERROR: the original's "buffer not writable"; here such a buffer is a fault of the
 *       program.
 */
gni_return_t GNI_WaitErrorEvents(gni_err_handle_t err_handle, gni_error_event_t *events, uint32_t events_size,
                                 uint32_t timeout, uint32_t *num_events);

/**
 * Watch another protection tag from now on, 0 for all, instead of the domain of the subscription. Privileged.
 *
 * @retval GNI_RC_SUCCESS           Set.
 * @retval GNI_RC_INVALID_PARAM     Not a live subscription.
 * @retval GNI_RC_PERMISSION_ERROR  Not privileged, or emunic has gone.
 */
gni_return_t GNI_SetErrorPtag(gni_err_handle_t err_handle, uint8_t ptag);

/*
 * Collective engine (CE)
 *
 * A reduction tree: its inner nodes are engines (VCE channels), its leaves are processes. Each leaf posts GNI_POST_CE;
 * when all have, each finds the result in its own memory. From a leaf's post on the tree needs no call of anybody:
 * members may compute, sleep or be stopped. Every NIC has as many engines as the machine says (4 on Aries), which all
 * jobs on the node share.
 *
 *   1. GNI_CeCreate() and GNI_CeGetId() where an engine shall be; tell the others node, instance and id.
 *   2. On the engine's NIC: one bound endpoint for each child, and one for the parent engine, each with its role:
 *
 *      endpoint                          ce_id              child_id                          child_type
 *      in an engine's list: a process    not used           by which this engine knows it     GNI_CE_CHILD_PE
 *      in an engine's list: an engine    the child's        by which this engine knows it     GNI_CE_CHILD_VCE
 *      parent_ep                         the parent's       by which the parent knows this    GNI_CE_CHILD_VCE
 *      on which a leaf posts             its engine's       by which that engine knows it     GNI_CE_CHILD_PE
 *
 *      Of what these endpoints are bound to the node counts: that of the child, of the parent, of the engine. The
 *      instance may be any number. A leaf is the process that first posts with the engine's ce_id and its child_id, on
 *      the node that the engine's endpoint names; any of its NIC handles there will do.
 *
 *   3. GNI_CeConfigure() on all engines, in any order; then a barrier, because posts to an engine that is not
 *      configured fail.
 *   4. Each leaf: zero a gni_ce_result_t, post, wait for the entry, poll GNI_CeCheckResult().
 *
 * A post: ce_cmd; ce_red_id; first_operand; second_operand, which is the index for minimum and maximum, counts for
 * the others with GNI_CEMODE_TWO_OP, and is ignored otherwise; local_addr, 32-byte aligned, and local_mem_hndl of the
 * result. All leaves of one reduction name the same ce_cmd, ce_red_id and GNI_CEMODE_TWO_OP. The GLOBAL entry says
 * that the contribution was taken, no more; LOCAL means the same, REMOTE nothing. The n-th contribution of each leaf
 * belongs to the n-th reduction; a leaf may be 16 reductions ahead of the others.
 *
 * Operations: integers wrap, minimum and maximum are signed; of equal values the lowest (LIDX) or greatest (GIDX) index
 * wins. An index is unsigned and as wide as the operands; 32-bit operands and results are low halves. Sums of floating
 * point round as the engine is configured and are done in the order of child ids. Minimum and maximum of floating
 * point follow IEEE minNum and maxNum, with -0 equal to +0. result1 is the value; result2 the index, or what became
 * of the second operands with GNI_CEMODE_TWO_OP, else 0. Exceptions met on the way, also those that leaves hand in
 * (GNI_CEMODE_FPE_*), are in GNI_CE_RES_GET_FPE(); sums are seldom exact, so GNI_CE_FPE_PRECISION is normal for them.
 *
 * What goes wrong reaches every leaf as GNI_RC_TRANSACTION_ERROR of GNI_CeCheckResult() with a status, so nobody waits
 * for ever (numbers of gni_cq_get_status()):
 *
 *   11  different ce_cmd, ce_red_id or GNI_CEMODE_TWO_OP: this reduction only
 *   11  a leaf names a child_id that is not its own: none of the configuration, an engine's, one of another node, or
 *       one that another process has posted with; engines that do not name each other: the tree is broken
 *    2  a leaf's or an engine's NIC handle has gone, or its process has died: the tree is broken. Of a leaf that has
 *       not posted yet this is noticed if the engine's endpoint is bound to its instance
 *    9  an engine was destroyed or configured anew: the tree is broken
 *    1  the NIC has gone; or a host of the machine is lost that has an engine or a leaf: the tree is broken
 *
 * emunic logs both sides of what does not agree (11): who is configured and who came.
 *
 * In a broken tree posts fail at once, in the entry and in the result, until every engine is configured anew. Other
 * refusals, of one post alone: 3 no such engine in this communication domain, or not configured; 8 sixteen
 * contributions of this leaf wait already; 2 no such node; 1 the engine's host is lost.
 *
 * On a machine of several hosts a tree may span them. GNI_CeCreate(), GNI_CeConfigure() and GNI_CeDestroy() return when
 * all hosts of the job know what has changed, or are lost (emunic-run(1), --peer-timeout).
 *
 * An engine's own entries go to the CQ of GNI_CeConfigure(): source 6, GNI_CQ_GET_CE_ID(), GNI_CQ_GET_REDUCTN_ID()
 * (low 32 bits), status as above. GNI_GetCompleted() has nothing for them.
 *
 * The original is documented thinly here. Our reading: who a leaf is, index width and sign, NaN and zero, running
 * ahead, what breaks a tree, entries for failures alone not telling of exceptions. Routing modes are taken and have no
 * effect. Source: spec/ugni.md 2.16, 3.6, 4.12; spec/machines.md 2.3.
 */

/**
 * Take a collective engine of the NIC's node. It belongs to the NIC handle.
 *
 * @param[out] ce_hndl  Released by GNI_CeDestroy(), with the NIC handle, or with the process.
 * @retval GNI_RC_SUCCESS         Created, not configured.
 * @retval GNI_RC_INVALID_PARAM   Not a live NIC handle, or ce_hndl is NULL.
 * @retval GNI_RC_ERROR_RESOURCE  All engines of the node are in use, by whomever; or the NIC has gone.
 * @retval GNI_RC_ERROR_NOMEM     Out of memory.
 * @retval GNI_RC_ILLEGAL_OP      A Gemini, or the machine's NICs have no engines (ce_engines: 0 in its file).
 * @note Threads: NIC. Source: spec/ugni.md 4.12.
 */
gni_return_t GNI_CeCreate(gni_nic_handle_t nic_hndl, gni_ce_handle_t *ce_hndl);

/**
 * Id of an engine on its node, for the attributes of other nodes' endpoints: 0 .. engines - 1.
 *
 * @retval GNI_RC_SUCCESS        *ce_id set.
 * @retval GNI_RC_INVALID_PARAM  Not a live engine, or ce_id is NULL.
 * @note Never GNI_RC_ILLEGAL_OP: a NIC without engines is told of by GNI_CeCreate().
 * @note Threads: any.
 */
gni_return_t GNI_CeGetId(gni_ce_handle_t ce_hndl, uint32_t *ce_id);

/**
 * Role of an endpoint in a reduction tree (table above). Copied by GNI_CeConfigure() and by each post, so an endpoint
 * may take another role afterwards; ordinary traffic is not affected. Bound or not.
 *
 * @param[in] ce_id       Any number here; one that no engine has shows later.
 * @param[in] child_id    0..GNI_CE_MAX_CHILDREN - 1.
 * @param[in] child_type  GNI_CE_CHILD_PE or GNI_CE_CHILD_VCE.
 * @retval GNI_RC_SUCCESS        Set.
 * @retval GNI_RC_INVALID_PARAM  Not a live endpoint, or child_id or child_type is out of range.
 * @retval GNI_RC_ILLEGAL_OP     The NIC is a Gemini.
 * @note Threads: NIC.
 */
gni_return_t GNI_EpSetCeAttr(gni_ep_handle_t ep_hndl, uint32_t ce_id, uint32_t child_id, gni_ce_child_t child_type);

/**
 * Connect an engine to its children and its parent. An engine that is configured already gives up what it is doing: its
 * tree is broken until all its engines were configured anew.
 *
 * @param[in] child_eps  Array of num_child_eps, 1..GNI_CE_MAX_CHILDREN: bound endpoints of the engine's NIC handle with
 *                       attributes, each with another child_id, to nodes of the domain.
 * @param[in] parent_ep  The same with type GNI_CE_CHILD_VCE; NULL at the root.
 * @param[in] cq_hndl    CQ of the NIC handle for the engine's own entries; may go before the engine does, then
 *                       they are dropped. On a CQ that is a source CQ as well take the entries in time: they use
 *                       places that posts count on.
 * @param[in] modes      One of GNI_CE_MODE_ROUND_*; one of GNI_CE_MODE_CQE_ONCOMP (an entry for every reduction)
 *                       and _ONERR (for those that are not delivered); at most one of GNI_CE_MODE_RC_*.
 * @retval GNI_RC_SUCCESS        Configured.
 * @retval GNI_RC_INVALID_PARAM  Anything of the above does not hold. The engine is as before.
 * @retval GNI_RC_ERROR_NOMEM    Out of memory. The engine is as before.
 * @retval GNI_RC_ERROR_RESOURCE The NIC has gone.
 * @note Never GNI_RC_ILLEGAL_OP: a NIC without engines is told of by GNI_CeCreate().
 * @note Threads: NIC.
 */
gni_return_t GNI_CeConfigure(gni_ce_handle_t ce_hndl, gni_ep_handle_t *child_eps, uint32_t num_child_eps,
                             gni_ep_handle_t parent_ep, gni_cq_handle_t cq_hndl, uint32_t modes);

/**
 * Look whether a result has arrived. Never blocks; an empty look gives the processor away.
 *
 * @param[in] result  Zeroed by the program before the post. Written by the call itself only when the NIC has gone.
 * @param[in] length  Not read.
 * @retval GNI_RC_SUCCESS            Delivered.
 * @retval GNI_RC_NOT_DONE           Not yet.
 * @retval GNI_RC_TRANSACTION_ERROR  Finished with an error: GNI_CE_RES_STATUS_OK false: not delivered; true:
 *                                   delivered with the exceptions of GNI_CE_RES_GET_FPE.
 * @retval GNI_RC_INVALID_PARAM      result is NULL.
 * @retval GNI_RC_ILLEGAL_OP         No post has named this place, and the NIC is a Gemini.
 * @note SUCCESS makes the result words visible to the caller. Threads: any.
 */
gni_return_t GNI_CeCheckResult(gni_ce_result_t *result, uint32_t length);

/**
 * Give an engine back. What its tree has not decided yet is cancelled (status 9); results that it has decided still
 * reach all leaves.
 *
 * @retval GNI_RC_SUCCESS        Gone.
 * @retval GNI_RC_INVALID_PARAM  Not a live engine.
 * @note Never GNI_RC_ILLEGAL_OP: a NIC without engines is told of by GNI_CeCreate().
 * @note Threads: NIC.
 */
gni_return_t GNI_CeDestroy(gni_ce_handle_t ce_hndl);

/*
 * Newer than 0x5c: chained FMA
 */

/**
 * Run an FMA PUT, GET or AMO and a list of further ones of the same type, each on its own endpoint, with one
 * completion for all: one slot, and after the last element one entry for the head, whose descriptor
 * GNI_GetCompleted() returns. If an element fails the entry carries the first failure; others may have been
 * executed. REMOTE events come from each element. Elements run in order, and must stay valid until the completion.
 *
 * @param[in] post_descr  Head, run on ep_hndl; next_descr leads to gni_ct_{put,get,amo}_post_descriptor_t
 *                        elements, at most 1023, on endpoints of the same NIC handle. Fields that do not apply are
 *                        not read.
 * @retval GNI_RC_SUCCESS           Accepted.
 * @retval GNI_RC_INVALID_PARAM     As for GNI_PostFma() for any element, or another type than FMA_PUT, FMA_GET, AMO.
 * @retval GNI_RC_ALIGNMENT_ERROR   As for GNI_PostFma() for any element.
 * @retval GNI_RC_PERMISSION_ERROR  As for GNI_PostFma() for any element.
 * @retval GNI_RC_ERROR_RESOURCE    No free transfer slot; poll the source CQ and retry.
 * @retval GNI_RC_ERROR_NOMEM       Out of memory.
 * @note After an error nothing was started. Threads: NIC. Source: spec/ugni.md A.1; layouts and codes are unconfirmed.
 */
gni_return_t GNI_CtPostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);

/**
 * The same for CQ writes; the elements are gni_ct_cqw_post_descriptor_t.
 *
 * @param[in] post_descr  Head, of type CQWRITE.
 * @retval GNI_RC_SUCCESS         Accepted.
 * @retval GNI_RC_INVALID_PARAM   As for GNI_PostCqWrite() for any element, or another type.
 * @retval GNI_RC_ERROR_RESOURCE  No free transfer slot; poll the source CQ and retry.
 * @retval GNI_RC_ERROR_NOMEM     Out of memory.
 * @note Threads: NIC. Source: spec/ugni.md A.1.
 */
gni_return_t GNI_CtPostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr);

/*
 * Newer than 0x5c: completion channels
 *
 * For programs that sleep in poll(), select() or epoll_wait(): a file descriptor that is readable while BLOCKING queues
 * that were armed have got something. Create a channel, attach queues to it, arm them; when the descriptor is readable
 * ask which queue it is, arm that one again, and then take events off it until there are none. Each arming is told
 * once.
 *
 * When the emulated NIC has gone, or the domain has ended, the descriptor is readable for good.
 *
 * All codes of the original are unconfirmed; these are readings. Source: spec/ugni.md A.2.
 */

/**
 * Create a channel. At most 64 per NIC handle.
 *
 * @param[out] chan_hndl  Owned by the caller; GNI_CdmDestroy() destroys what is left.
 * @retval GNI_RC_SUCCESS         Created.
 * @retval GNI_RC_INVALID_PARAM   Not a live NIC handle, or chan_hndl is NULL.
 * @retval GNI_RC_ERROR_RESOURCE  Limit of channels, or of the process's descriptors (it takes three), reached; or the
 *                                emulated NIC has gone.
 * @retval GNI_RC_ERROR_NOMEM     Out of memory.
 * @note Does not block. Threads: NIC.
 */
gni_return_t GNI_CompChanCreate(gni_nic_handle_t nic_hndl, gni_comp_chan_handle_t *chan_hndl);

/**
 * Destroy a channel and close its descriptor. Queues that are attached are no longer, nor armed; they live on and may
 * be attached to another channel. Threads that wait in GNI_CompChanGetEvent() return; the last of them closes the
 * descriptor.
 *
 * @retval GNI_RC_SUCCESS        Gone.
 * @retval GNI_RC_INVALID_PARAM  Not a live channel.
 * @note Threads: NIC.
 */
gni_return_t GNI_CompChanDestroy(gni_comp_chan_handle_t chan_hndl);

/**
 * The channel's descriptor, the same each time. It can be polled in every way (edge-triggered too) and made
 * non-blocking with fcntl(); it starts as blocking. It cannot be read from, and is closed by GNI_CompChanDestroy()
 * only. Close-on-exec.
 *
 * @retval GNI_RC_SUCCESS        *comp_chan_fd is set.
 * @retval GNI_RC_INVALID_PARAM  Not a live channel, or comp_chan_fd is NULL.
 * @note Threads: any.
 */
gni_return_t GNI_CompChanFd(gni_comp_chan_handle_t chan_hndl, int *comp_chan_fd);

/**
 * Take the next queue that got something since it was armed, and disarm it. It may have been drained meanwhile. Waits
 * while there is none, unless the descriptor is non-blocking or was readable.
 *
 * @param[out] cq_hndl  Set with SUCCESS only.
 * @retval GNI_RC_SUCCESS        That queue was armed, and is no longer.
 * @retval GNI_RC_NOT_DONE       None, and the descriptor is non-blocking; or a signal came; or the descriptor was
 *                               readable for nothing, as it may be after the death of a peer.
 * @retval GNI_RC_INVALID_PARAM  Not a live channel (also: destroyed meanwhile), or cq_hndl is NULL.
 * @retval GNI_RC_INVALID_STATE  The emulated NIC has gone, and no armed queue is left to say so: each is told once,
 *                               then its GNI_CqGetEvent() answers TRANSACTION_ERROR. Or the CDM was destroyed
 *                               meanwhile.
 * @note A cancellation point while it waits. Threads: any.
 */
gni_return_t GNI_CompChanGetEvent(gni_comp_chan_handle_t chan_hndl, gni_cq_handle_t *cq_hndl);

/**
 * Attach a BLOCKING queue to a channel of its NIC handle, for as long as both live. It is not armed.
 *
 * @retval GNI_RC_SUCCESS         Attached.
 * @retval GNI_RC_INVALID_PARAM   Not a live queue, not a live channel, or of different NIC handles.
 * @retval GNI_RC_ERROR_RESOURCE  The queue is not BLOCKING; or the emulated NIC has gone.
 * @retval GNI_RC_INVALID_STATE   The queue is attached to a channel already.
 * @note Does not block. Threads: NIC.
 */
gni_return_t GNI_CqAttachCompChan(gni_cq_handle_t cq_hndl, gni_comp_chan_handle_t chan_hndl);

/**
 * Arm queues, of any channels: the next event or overrun of each, or one that is there already, makes its channel's
 * descriptor readable. A queue that is armed, or has not been told since, stays as it is.
 *
 * @param[in]  cq_hndls  Array of num_cqs handles.
 * @retval GNI_RC_SUCCESS         All are armed.
 * @retval GNI_RC_INVALID_PARAM   num_cqs is 0, cq_hndls is NULL, or a handle is not live; nothing was armed.
 * @retval GNI_RC_ERROR_RESOURCE  A queue is not BLOCKING; nothing was armed.
 * @retval GNI_RC_INVALID_STATE   A queue is not attached to a channel; nothing was armed.
 * @note Does not block. Threads: NIC.
 */
gni_return_t GNI_CqArmCompChan(gni_cq_handle_t *cq_hndls, uint32_t num_cqs);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* GNI_PUB_H */
