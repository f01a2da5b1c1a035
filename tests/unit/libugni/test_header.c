/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gni_pub.h against the interface specification: the value of every constant, the macros, the layout of every
 * structure (spec/ugni.md 2 and Appendix C), and the bit structure of the AMO commands (2.15). The header is
 * compiled with the long list of statistics here; test_strings.c sees the short one.
 */
#define CRAY_CONFIG_GHAL_ARIES

#include <gni_pub.h>

#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct constant {
    const char *name;
    int64_t actual;
    int64_t expected;
};

static const struct constant constants[] = {
    { "GNI_MAJOR_REV", (int64_t)GNI_MAJOR_REV, 0x00 },
    { "GNI_MINOR_REV", (int64_t)GNI_MINOR_REV, 0x5d },
    { "GNI_CODE_REV", (int64_t)GNI_CODE_REV, 0x0000 },
    { "GNI_VERSION", (int64_t)GNI_VERSION, 0x005d0000 },
    { "GNI_VERSION_FMA_SHARING", (int64_t)GNI_VERSION_FMA_SHARING, 0x5b0000 },
    { "GNI_VERSION_FMA_CHAIN_TRANSACTIONS", (int64_t)GNI_VERSION_FMA_CHAIN_TRANSACTIONS, 0x5d0000 },
    /* protection */
    { "GNI_PTAG_LND", (int64_t)GNI_PTAG_LND, 1 },
    { "GNI_PTAG_OFED", (int64_t)GNI_PTAG_OFED, 2 },
    { "GNI_PTAG_USER_START", (int64_t)GNI_PTAG_USER_START, 3 },
    { "GNI_PTAG_LND_KNC", (int64_t)GNI_PTAG_LND_KNC, 128 },
    { "GNI_PTAG_USER_END", (int64_t)GNI_PTAG_USER_END, 253 },
    { "GNI_PTAG_HSNBOOT", (int64_t)GNI_PTAG_HSNBOOT, 254 },
    { "GNI_PTAG_MAX", (int64_t)GNI_PTAG_MAX, 254 },
    { "GNI_PTAG_LB", (int64_t)GNI_PTAG_LB, 255 },
    { "GNI_FIND_ALLOC_PTAG", (int64_t)GNI_FIND_ALLOC_PTAG, 255 },
    { "GNI_PKEY_INVALID", (int64_t)GNI_PKEY_INVALID, 0 },
    { "GNI_PKEY_LND", (int64_t)GNI_PKEY_LND, 1 },
    { "GNI_PKEY_OFED", (int64_t)GNI_PKEY_OFED, 2 },
    { "GNI_PKEY_USER_START", (int64_t)GNI_PKEY_USER_START, 128 },
    { "GNI_PKEY_USER_END", (int64_t)GNI_PKEY_USER_END, 65407 },
    { "GNI_PKEY_HSNBOOT", (int64_t)GNI_PKEY_HSNBOOT, 65408 },
    { "GNI_PKEY_MAX", (int64_t)GNI_PKEY_MAX, 65534 },
    { "GNI_PKEY_LB", (int64_t)GNI_PKEY_LB, 65535 },
    { "GNI_COOKIE_PKEY_MASK", (int64_t)GNI_COOKIE_PKEY_MASK, 0xFFFF },
    { "GNI_COOKIE_PKEY_SHIFT", (int64_t)GNI_COOKIE_PKEY_SHIFT, 16 },
    { "GNI_COOKIE_CBPS_MDD_MASK", (int64_t)GNI_COOKIE_CBPS_MDD_MASK, 0x7 },
    { "GNI_COOKIE_CBPS_MDD_SHIFT", (int64_t)GNI_COOKIE_CBPS_MDD_SHIFT, 3 },
    /* return codes */
    { "GNI_RC_SUCCESS", (int64_t)GNI_RC_SUCCESS, 0 },
    { "GNI_RC_NOT_DONE", (int64_t)GNI_RC_NOT_DONE, 1 },
    { "GNI_RC_INVALID_PARAM", (int64_t)GNI_RC_INVALID_PARAM, 2 },
    { "GNI_RC_ERROR_RESOURCE", (int64_t)GNI_RC_ERROR_RESOURCE, 3 },
    { "GNI_RC_TIMEOUT", (int64_t)GNI_RC_TIMEOUT, 4 },
    { "GNI_RC_PERMISSION_ERROR", (int64_t)GNI_RC_PERMISSION_ERROR, 5 },
    { "GNI_RC_DESCRIPTOR_ERROR", (int64_t)GNI_RC_DESCRIPTOR_ERROR, 6 },
    { "GNI_RC_ALIGNMENT_ERROR", (int64_t)GNI_RC_ALIGNMENT_ERROR, 7 },
    { "GNI_RC_INVALID_STATE", (int64_t)GNI_RC_INVALID_STATE, 8 },
    { "GNI_RC_NO_MATCH", (int64_t)GNI_RC_NO_MATCH, 9 },
    { "GNI_RC_SIZE_ERROR", (int64_t)GNI_RC_SIZE_ERROR, 10 },
    { "GNI_RC_TRANSACTION_ERROR", (int64_t)GNI_RC_TRANSACTION_ERROR, 11 },
    { "GNI_RC_ILLEGAL_OP", (int64_t)GNI_RC_ILLEGAL_OP, 12 },
    { "GNI_RC_ERROR_NOMEM", (int64_t)GNI_RC_ERROR_NOMEM, 13 },
    /* CDM modes */
    { "GNI_CDM_MODE_FORK_NOCOPY", (int64_t)GNI_CDM_MODE_FORK_NOCOPY, 0x00000001 },
    { "GNI_CDM_MODE_FORK_FULLCOPY", (int64_t)GNI_CDM_MODE_FORK_FULLCOPY, 0x00000002 },
    { "GNI_CDM_MODE_FORK_PARTCOPY", (int64_t)GNI_CDM_MODE_FORK_PARTCOPY, 0x00000004 },
    { "GNI_CDM_MODE_ERR_NO_KILL", (int64_t)GNI_CDM_MODE_ERR_NO_KILL, 0x00000008 },
    { "GNI_CDM_MODE_ERR_ALL_KILL", (int64_t)GNI_CDM_MODE_ERR_ALL_KILL, 0x00000010 },
    { "GNI_CDM_MODE_FAST_DATAGRAM_POLL", (int64_t)GNI_CDM_MODE_FAST_DATAGRAM_POLL, 0x00000020 },
    { "GNI_CDM_MODE_BTE_SINGLE_CHANNEL", (int64_t)GNI_CDM_MODE_BTE_SINGLE_CHANNEL, 0x00000040 },
    { "GNI_CDM_MODE_USE_PCI_IOMMU", (int64_t)GNI_CDM_MODE_USE_PCI_IOMMU, 0x00000080 },
    { "GNI_CDM_MODE_MDD_DEDICATED", (int64_t)GNI_CDM_MODE_MDD_DEDICATED, 0x00000100 },
    { "GNI_CDM_MODE_MDD_SHARED", (int64_t)GNI_CDM_MODE_MDD_SHARED, 0x00000200 },
    { "GNI_CDM_MODE_DUAL_EVENTS", (int64_t)GNI_CDM_MODE_DUAL_EVENTS, 0x00001000 },
    { "GNI_CDM_MODE_DLA_ENABLE_FORWARDING", (int64_t)GNI_CDM_MODE_DLA_ENABLE_FORWARDING, 0x00004000 },
    { "GNI_CDM_MODE_DLA_DISABLE_FORWARDING", (int64_t)GNI_CDM_MODE_DLA_DISABLE_FORWARDING, 0x00008000 },
    { "GNI_CDM_MODE_FMA_DEDICATED", (int64_t)GNI_CDM_MODE_FMA_DEDICATED, 0x00010000 },
    { "GNI_CDM_MODE_FMA_SHARED", (int64_t)GNI_CDM_MODE_FMA_SHARED, 0x00020000 },
    { "GNI_CDM_MODE_CACHED_AMO_ENABLED", (int64_t)GNI_CDM_MODE_CACHED_AMO_ENABLED, 0x00040000 },
    { "GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT", (int64_t)GNI_CDM_MODE_CQ_NIC_LOCAL_PLACEMENT, 0x00080000 },
    { "GNI_CDM_MODE_FLBTE_DISABLE", (int64_t)GNI_CDM_MODE_FLBTE_DISABLE, 0x00100000 },
    { "GNI_CDM_MODE_FMA_SMALL_WINDOW", (int64_t)GNI_CDM_MODE_FMA_SMALL_WINDOW, 0x00200000 },
    { "GNI_CDM_MODE_MASK", (int64_t)GNI_CDM_MODE_MASK, 0x0FFFFFFF },
    { "GNI_CDM_MODE_PRIV_RESERVED_1", (int64_t)GNI_CDM_MODE_PRIV_RESERVED_1, 0x10000000 },
    { "GNI_CDM_MODE_PRIV_RESERVED_2", (int64_t)GNI_CDM_MODE_PRIV_RESERVED_2, 0x20000000 },
    { "GNI_CDM_MODE_PRIV_RESERVED_3", (int64_t)GNI_CDM_MODE_PRIV_RESERVED_3, 0x40000000 },
    { "GNI_CDM_MODE_PRIV_RESERVED_4", (int64_t)GNI_CDM_MODE_PRIV_RESERVED_4, 0x80000000 },
    { "GNI_CDM_MODE_PRIV_MASK", (int64_t)GNI_CDM_MODE_PRIV_MASK, 0xF0000000 },
    /* datagram states */
    { "GNI_POST_PENDING", (int64_t)GNI_POST_PENDING, 0 },
    { "GNI_POST_COMPLETED", (int64_t)GNI_POST_COMPLETED, 1 },
    { "GNI_POST_ERROR", (int64_t)GNI_POST_ERROR, 2 },
    { "GNI_POST_TIMEOUT", (int64_t)GNI_POST_TIMEOUT, 3 },
    { "GNI_POST_TERMINATED", (int64_t)GNI_POST_TERMINATED, 4 },
    { "GNI_POST_REMOTE_DATA", (int64_t)GNI_POST_REMOTE_DATA, 5 },
    /* registration */
    { "GNI_MEM_READWRITE", (int64_t)GNI_MEM_READWRITE, 0x00000000 },
    { "GNI_MEM_READ_ONLY", (int64_t)GNI_MEM_READ_ONLY, 0x00000001 },
    { "GNI_MEM_USE_VMDH", (int64_t)GNI_MEM_USE_VMDH, 0x00000002 },
    { "GNI_MEM_USE_GART", (int64_t)GNI_MEM_USE_GART, 0x00000004 },
    { "GNI_MEM_PHYS_CONT", (int64_t)GNI_MEM_PHYS_CONT, 0x00000008 },
    { "GNI_MEM_PHYS_SEGMENTS", (int64_t)GNI_MEM_PHYS_SEGMENTS, 0x00000010 },
    { "GNI_MEM_STRICT_PI_ORDERING", (int64_t)GNI_MEM_STRICT_PI_ORDERING, 0x00000020 },
    { "GNI_MEM_PI_FLUSH", (int64_t)GNI_MEM_PI_FLUSH, 0x00000040 },
    { "GNI_MEM_MDD_CLONE", (int64_t)GNI_MEM_MDD_CLONE, 0x00000080 },
    { "GNI_MEM_RELAXED_PI_ORDERING", (int64_t)GNI_MEM_RELAXED_PI_ORDERING, 0x00000100 },
    { "GNI_MEM_RESERVE_REGION", (int64_t)GNI_MEM_RESERVE_REGION, 0x00000200 },
    { "GNI_MEM_UPDATE_REGION", (int64_t)GNI_MEM_UPDATE_REGION, 0x00000400 },
    { "GNI_MEM_MDD_SHARED", (int64_t)GNI_MEM_MDD_SHARED, 0x00000800 },
    { "GNI_MEM_MDD_DEDICATED", (int64_t)GNI_MEM_MDD_DEDICATED, 0x00001000 },
    { "GNI_MEM_CUDA", (int64_t)GNI_MEM_CUDA, 0x01000000 },
    { "GNI_MEMHNDL_ATTR_READONLY", (int64_t)GNI_MEMHNDL_ATTR_READONLY, 1 },
    { "GNI_MEMHNDL_ATTR_VMDH", (int64_t)GNI_MEMHNDL_ATTR_VMDH, 2 },
    { "GNI_MEMHNDL_ATTR_MRT", (int64_t)GNI_MEMHNDL_ATTR_MRT, 3 },
    { "GNI_MEMHNDL_ATTR_GART", (int64_t)GNI_MEMHNDL_ATTR_GART, 4 },
    { "GNI_MEMHNDL_ATTR_IOMMU", (int64_t)GNI_MEMHNDL_ATTR_IOMMU, 5 },
    { "GNI_MEMHNDL_ATTR_PCI_IOMMU", (int64_t)GNI_MEMHNDL_ATTR_PCI_IOMMU, 6 },
    { "GNI_MEMHNDL_ATTR_CLONE", (int64_t)GNI_MEMHNDL_ATTR_CLONE, 7 },
    /* completion queues */
    { "GNI_CQ_NOBLOCK", (int64_t)GNI_CQ_NOBLOCK, 0 },
    { "GNI_CQ_BLOCKING", (int64_t)GNI_CQ_BLOCKING, 1 },
    { "GNI_CQ_EMULATED", (int64_t)GNI_CQ_EMULATED, 2 },
    { "GNI_CQ_EMULATED_INVALID", (int64_t)GNI_CQ_EMULATED_INVALID, 3 },
    { "GNI_CQ_PHYS_PAGES", (int64_t)GNI_CQ_PHYS_PAGES, 4 },
    { "GNI_CQ_UNMANAGED", (int64_t)GNI_CQ_UNMANAGED, 8 },
    { "GNI_CQ_EVENT_TYPE_POST", (int64_t)GNI_CQ_EVENT_TYPE_POST, 0 },
    { "GNI_CQ_EVENT_TYPE_SMSG", (int64_t)GNI_CQ_EVENT_TYPE_SMSG, 1 },
    { "GNI_CQ_EVENT_TYPE_DMAPP", (int64_t)GNI_CQ_EVENT_TYPE_DMAPP, 2 },
    { "GNI_CQ_EVENT_TYPE_MSGQ", (int64_t)GNI_CQ_EVENT_TYPE_MSGQ, 3 },
    /* posts */
    { "GNI_POST_RDMA_PUT", (int64_t)GNI_POST_RDMA_PUT, 1 },
    { "GNI_POST_RDMA_GET", (int64_t)GNI_POST_RDMA_GET, 2 },
    { "GNI_POST_FMA_PUT", (int64_t)GNI_POST_FMA_PUT, 3 },
    { "GNI_POST_FMA_PUT_W_SYNCFLAG", (int64_t)GNI_POST_FMA_PUT_W_SYNCFLAG, 4 },
    { "GNI_POST_FMA_GET", (int64_t)GNI_POST_FMA_GET, 5 },
    { "GNI_POST_AMO", (int64_t)GNI_POST_AMO, 6 },
    { "GNI_POST_CQWRITE", (int64_t)GNI_POST_CQWRITE, 7 },
    { "GNI_POST_CE", (int64_t)GNI_POST_CE, 8 },
    { "GNI_POST_FMA_GET_W_FLAG", (int64_t)GNI_POST_FMA_GET_W_FLAG, 9 },
    { "GNI_POST_AMO_W_FLAG", (int64_t)GNI_POST_AMO_W_FLAG, 10 },
    { "GNI_FMA_FLAGGED_RESPONSE_SIZE", (int64_t)GNI_FMA_FLAGGED_RESPONSE_SIZE, 4 },
    { "GNI_CQMODE_SILENT", (int64_t)GNI_CQMODE_SILENT, 0x0000 },
    { "GNI_CQMODE_LOCAL_EVENT", (int64_t)GNI_CQMODE_LOCAL_EVENT, 0x0001 },
    { "GNI_CQMODE_GLOBAL_EVENT", (int64_t)GNI_CQMODE_GLOBAL_EVENT, 0x0002 },
    { "GNI_CQMODE_REMOTE_EVENT", (int64_t)GNI_CQMODE_REMOTE_EVENT, 0x0004 },
    { "GNI_CQMODE_DUAL_EVENTS", (int64_t)GNI_CQMODE_DUAL_EVENTS, 0x0003 },
    { "GNI_DLVMODE_PERFORMANCE", (int64_t)GNI_DLVMODE_PERFORMANCE, 0x0000 },
    { "GNI_DLVMODE_NO_ADAPT", (int64_t)GNI_DLVMODE_NO_ADAPT, 0x0001 },
    { "GNI_DLVMODE_NO_HASH", (int64_t)GNI_DLVMODE_NO_HASH, 0x0002 },
    { "GNI_DLVMODE_NO_RADAPT", (int64_t)GNI_DLVMODE_NO_RADAPT, 0x0004 },
    { "GNI_DLVMODE_IN_ORDER", (int64_t)GNI_DLVMODE_IN_ORDER, 0x0003 },
    { "GNI_DLVMODE_MNON_HASH", (int64_t)GNI_DLVMODE_MNON_HASH, 0x0003 },
    { "GNI_DLVMODE_NMIN_HASH", (int64_t)GNI_DLVMODE_NMIN_HASH, 0x0008 },
    { "GNI_DLVMODE_MIN_HASH", (int64_t)GNI_DLVMODE_MIN_HASH, 0x0010 },
    { "GNI_DLVMODE_ADAPTIVE0", (int64_t)GNI_DLVMODE_ADAPTIVE0, 0x0000 },
    { "GNI_DLVMODE_ADAPTIVE1", (int64_t)GNI_DLVMODE_ADAPTIVE1, 0x0020 },
    { "GNI_DLVMODE_ADAPTIVE2", (int64_t)GNI_DLVMODE_ADAPTIVE2, 0x0040 },
    { "GNI_DLVMODE_ADAPTIVE3", (int64_t)GNI_DLVMODE_ADAPTIVE3, 0x0080 },
    { "GNI_DLVMODE_ORDERED_TAIL", (int64_t)GNI_DLVMODE_ORDERED_TAIL, 0x0100 },
    { "GNI_RDMAMODE_PHYS_ADDR", (int64_t)GNI_RDMAMODE_PHYS_ADDR, 0x0001 },
    { "GNI_RDMAMODE_FENCE", (int64_t)GNI_RDMAMODE_FENCE, 0x0002 },
    { "GNI_RDMAMODE_GETWC_DIS", (int64_t)GNI_RDMAMODE_GETWC_DIS, 0x0004 },
    /* AMO commands */
    { "GNI_FMA_ATOMIC_FADD", (int64_t)GNI_FMA_ATOMIC_FADD, 0x008 },
    { "GNI_FMA_ATOMIC_FADD_C", (int64_t)GNI_FMA_ATOMIC_FADD_C, 0x018 },
    { "GNI_FMA_ATOMIC_ADD", (int64_t)GNI_FMA_ATOMIC_ADD, 0x108 },
    { "GNI_FMA_ATOMIC_ADD_C", (int64_t)GNI_FMA_ATOMIC_ADD_C, 0x118 },
    { "GNI_FMA_ATOMIC_FAND", (int64_t)GNI_FMA_ATOMIC_FAND, 0x009 },
    { "GNI_FMA_ATOMIC_FAND_C", (int64_t)GNI_FMA_ATOMIC_FAND_C, 0x019 },
    { "GNI_FMA_ATOMIC_AND", (int64_t)GNI_FMA_ATOMIC_AND, 0x109 },
    { "GNI_FMA_ATOMIC_AND_C", (int64_t)GNI_FMA_ATOMIC_AND_C, 0x119 },
    { "GNI_FMA_ATOMIC_FOR", (int64_t)GNI_FMA_ATOMIC_FOR, 0x00A },
    { "GNI_FMA_ATOMIC_FOR_C", (int64_t)GNI_FMA_ATOMIC_FOR_C, 0x01A },
    { "GNI_FMA_ATOMIC_OR", (int64_t)GNI_FMA_ATOMIC_OR, 0x10A },
    { "GNI_FMA_ATOMIC_OR_C", (int64_t)GNI_FMA_ATOMIC_OR_C, 0x11A },
    { "GNI_FMA_ATOMIC_FXOR", (int64_t)GNI_FMA_ATOMIC_FXOR, 0x00B },
    { "GNI_FMA_ATOMIC_FXOR_C", (int64_t)GNI_FMA_ATOMIC_FXOR_C, 0x01B },
    { "GNI_FMA_ATOMIC_XOR", (int64_t)GNI_FMA_ATOMIC_XOR, 0x10B },
    { "GNI_FMA_ATOMIC_XOR_C", (int64_t)GNI_FMA_ATOMIC_XOR_C, 0x11B },
    { "GNI_FMA_ATOMIC_FAX", (int64_t)GNI_FMA_ATOMIC_FAX, 0x00C },
    { "GNI_FMA_ATOMIC_FAX_C", (int64_t)GNI_FMA_ATOMIC_FAX_C, 0x01C },
    { "GNI_FMA_ATOMIC_AX", (int64_t)GNI_FMA_ATOMIC_AX, 0x10C },
    { "GNI_FMA_ATOMIC_AX_C", (int64_t)GNI_FMA_ATOMIC_AX_C, 0x11C },
    { "GNI_FMA_ATOMIC_CSWAP", (int64_t)GNI_FMA_ATOMIC_CSWAP, 0x00D },
    { "GNI_FMA_ATOMIC_CSWAP_C", (int64_t)GNI_FMA_ATOMIC_CSWAP_C, 0x01D },
    { "GNI_FMA_ATOMIC2_FAND_S", (int64_t)GNI_FMA_ATOMIC2_FAND_S, 0x240 },
    { "GNI_FMA_ATOMIC2_FAND", (int64_t)GNI_FMA_ATOMIC2_FAND, 0x041 },
    { "GNI_FMA_ATOMIC2_FAND_SC", (int64_t)GNI_FMA_ATOMIC2_FAND_SC, 0x260 },
    { "GNI_FMA_ATOMIC2_FAND_C", (int64_t)GNI_FMA_ATOMIC2_FAND_C, 0x061 },
    { "GNI_FMA_ATOMIC2_AND_S", (int64_t)GNI_FMA_ATOMIC2_AND_S, 0x340 },
    { "GNI_FMA_ATOMIC2_AND", (int64_t)GNI_FMA_ATOMIC2_AND, 0x141 },
    { "GNI_FMA_ATOMIC2_AND_SC", (int64_t)GNI_FMA_ATOMIC2_AND_SC, 0x360 },
    { "GNI_FMA_ATOMIC2_AND_C", (int64_t)GNI_FMA_ATOMIC2_AND_C, 0x161 },
    { "GNI_FMA_ATOMIC2_FOR_S", (int64_t)GNI_FMA_ATOMIC2_FOR_S, 0x242 },
    { "GNI_FMA_ATOMIC2_FOR", (int64_t)GNI_FMA_ATOMIC2_FOR, 0x043 },
    { "GNI_FMA_ATOMIC2_FOR_SC", (int64_t)GNI_FMA_ATOMIC2_FOR_SC, 0x262 },
    { "GNI_FMA_ATOMIC2_FOR_C", (int64_t)GNI_FMA_ATOMIC2_FOR_C, 0x063 },
    { "GNI_FMA_ATOMIC2_OR_S", (int64_t)GNI_FMA_ATOMIC2_OR_S, 0x342 },
    { "GNI_FMA_ATOMIC2_OR", (int64_t)GNI_FMA_ATOMIC2_OR, 0x143 },
    { "GNI_FMA_ATOMIC2_OR_SC", (int64_t)GNI_FMA_ATOMIC2_OR_SC, 0x362 },
    { "GNI_FMA_ATOMIC2_OR_C", (int64_t)GNI_FMA_ATOMIC2_OR_C, 0x163 },
    { "GNI_FMA_ATOMIC2_FXOR_S", (int64_t)GNI_FMA_ATOMIC2_FXOR_S, 0x244 },
    { "GNI_FMA_ATOMIC2_FXOR", (int64_t)GNI_FMA_ATOMIC2_FXOR, 0x045 },
    { "GNI_FMA_ATOMIC2_FXOR_SC", (int64_t)GNI_FMA_ATOMIC2_FXOR_SC, 0x264 },
    { "GNI_FMA_ATOMIC2_FXOR_C", (int64_t)GNI_FMA_ATOMIC2_FXOR_C, 0x065 },
    { "GNI_FMA_ATOMIC2_XOR_S", (int64_t)GNI_FMA_ATOMIC2_XOR_S, 0x344 },
    { "GNI_FMA_ATOMIC2_XOR", (int64_t)GNI_FMA_ATOMIC2_XOR, 0x145 },
    { "GNI_FMA_ATOMIC2_XOR_SC", (int64_t)GNI_FMA_ATOMIC2_XOR_SC, 0x364 },
    { "GNI_FMA_ATOMIC2_XOR_C", (int64_t)GNI_FMA_ATOMIC2_XOR_C, 0x165 },
    { "GNI_FMA_ATOMIC2_FSWAP_S", (int64_t)GNI_FMA_ATOMIC2_FSWAP_S, 0x246 },
    { "GNI_FMA_ATOMIC2_FSWAP", (int64_t)GNI_FMA_ATOMIC2_FSWAP, 0x047 },
    { "GNI_FMA_ATOMIC2_FSWAP_SC", (int64_t)GNI_FMA_ATOMIC2_FSWAP_SC, 0x266 },
    { "GNI_FMA_ATOMIC2_FSWAP_C", (int64_t)GNI_FMA_ATOMIC2_FSWAP_C, 0x067 },
    { "GNI_FMA_ATOMIC2_SWAP_S", (int64_t)GNI_FMA_ATOMIC2_SWAP_S, 0x346 },
    { "GNI_FMA_ATOMIC2_SWAP", (int64_t)GNI_FMA_ATOMIC2_SWAP, 0x147 },
    { "GNI_FMA_ATOMIC2_SWAP_SC", (int64_t)GNI_FMA_ATOMIC2_SWAP_SC, 0x366 },
    { "GNI_FMA_ATOMIC2_SWAP_C", (int64_t)GNI_FMA_ATOMIC2_SWAP_C, 0x167 },
    { "GNI_FMA_ATOMIC2_FAX_S", (int64_t)GNI_FMA_ATOMIC2_FAX_S, 0x248 },
    { "GNI_FMA_ATOMIC2_FAX", (int64_t)GNI_FMA_ATOMIC2_FAX, 0x049 },
    { "GNI_FMA_ATOMIC2_FAX_SC", (int64_t)GNI_FMA_ATOMIC2_FAX_SC, 0x268 },
    { "GNI_FMA_ATOMIC2_FAX_C", (int64_t)GNI_FMA_ATOMIC2_FAX_C, 0x069 },
    { "GNI_FMA_ATOMIC2_AX_S", (int64_t)GNI_FMA_ATOMIC2_AX_S, 0x348 },
    { "GNI_FMA_ATOMIC2_AX", (int64_t)GNI_FMA_ATOMIC2_AX, 0x149 },
    { "GNI_FMA_ATOMIC2_AX_SC", (int64_t)GNI_FMA_ATOMIC2_AX_SC, 0x368 },
    { "GNI_FMA_ATOMIC2_AX_C", (int64_t)GNI_FMA_ATOMIC2_AX_C, 0x169 },
    { "GNI_FMA_ATOMIC2_FCSWAP_S", (int64_t)GNI_FMA_ATOMIC2_FCSWAP_S, 0x24A },
    { "GNI_FMA_ATOMIC2_FCSWAP", (int64_t)GNI_FMA_ATOMIC2_FCSWAP, 0x04B },
    { "GNI_FMA_ATOMIC2_FCSWAP_SC", (int64_t)GNI_FMA_ATOMIC2_FCSWAP_SC, 0x26A },
    { "GNI_FMA_ATOMIC2_FCSWAP_C", (int64_t)GNI_FMA_ATOMIC2_FCSWAP_C, 0x06B },
    { "GNI_FMA_ATOMIC2_CSWAP_S", (int64_t)GNI_FMA_ATOMIC2_CSWAP_S, 0x34A },
    { "GNI_FMA_ATOMIC2_CSWAP", (int64_t)GNI_FMA_ATOMIC2_CSWAP, 0x14B },
    { "GNI_FMA_ATOMIC2_CSWAP_SC", (int64_t)GNI_FMA_ATOMIC2_CSWAP_SC, 0x36A },
    { "GNI_FMA_ATOMIC2_CSWAP_C", (int64_t)GNI_FMA_ATOMIC2_CSWAP_C, 0x16B },
    { "GNI_FMA_ATOMIC2_FIMIN_S", (int64_t)GNI_FMA_ATOMIC2_FIMIN_S, 0x250 },
    { "GNI_FMA_ATOMIC2_FIMIN", (int64_t)GNI_FMA_ATOMIC2_FIMIN, 0x051 },
    { "GNI_FMA_ATOMIC2_FIMIN_SC", (int64_t)GNI_FMA_ATOMIC2_FIMIN_SC, 0x270 },
    { "GNI_FMA_ATOMIC2_FIMIN_C", (int64_t)GNI_FMA_ATOMIC2_FIMIN_C, 0x071 },
    { "GNI_FMA_ATOMIC2_IMIN_S", (int64_t)GNI_FMA_ATOMIC2_IMIN_S, 0x350 },
    { "GNI_FMA_ATOMIC2_IMIN", (int64_t)GNI_FMA_ATOMIC2_IMIN, 0x151 },
    { "GNI_FMA_ATOMIC2_IMIN_SC", (int64_t)GNI_FMA_ATOMIC2_IMIN_SC, 0x370 },
    { "GNI_FMA_ATOMIC2_IMIN_C", (int64_t)GNI_FMA_ATOMIC2_IMIN_C, 0x171 },
    { "GNI_FMA_ATOMIC2_FIMAX_S", (int64_t)GNI_FMA_ATOMIC2_FIMAX_S, 0x252 },
    { "GNI_FMA_ATOMIC2_FIMAX", (int64_t)GNI_FMA_ATOMIC2_FIMAX, 0x053 },
    { "GNI_FMA_ATOMIC2_FIMAX_SC", (int64_t)GNI_FMA_ATOMIC2_FIMAX_SC, 0x272 },
    { "GNI_FMA_ATOMIC2_FIMAX_C", (int64_t)GNI_FMA_ATOMIC2_FIMAX_C, 0x073 },
    { "GNI_FMA_ATOMIC2_IMAX_S", (int64_t)GNI_FMA_ATOMIC2_IMAX_S, 0x352 },
    { "GNI_FMA_ATOMIC2_IMAX", (int64_t)GNI_FMA_ATOMIC2_IMAX, 0x153 },
    { "GNI_FMA_ATOMIC2_IMAX_SC", (int64_t)GNI_FMA_ATOMIC2_IMAX_SC, 0x372 },
    { "GNI_FMA_ATOMIC2_IMAX_C", (int64_t)GNI_FMA_ATOMIC2_IMAX_C, 0x173 },
    { "GNI_FMA_ATOMIC2_FIADD_S", (int64_t)GNI_FMA_ATOMIC2_FIADD_S, 0x254 },
    { "GNI_FMA_ATOMIC2_FIADD", (int64_t)GNI_FMA_ATOMIC2_FIADD, 0x055 },
    { "GNI_FMA_ATOMIC2_FIADD_SC", (int64_t)GNI_FMA_ATOMIC2_FIADD_SC, 0x274 },
    { "GNI_FMA_ATOMIC2_FIADD_C", (int64_t)GNI_FMA_ATOMIC2_FIADD_C, 0x075 },
    { "GNI_FMA_ATOMIC2_IADD_S", (int64_t)GNI_FMA_ATOMIC2_IADD_S, 0x354 },
    { "GNI_FMA_ATOMIC2_IADD", (int64_t)GNI_FMA_ATOMIC2_IADD, 0x155 },
    { "GNI_FMA_ATOMIC2_IADD_SC", (int64_t)GNI_FMA_ATOMIC2_IADD_SC, 0x374 },
    { "GNI_FMA_ATOMIC2_IADD_C", (int64_t)GNI_FMA_ATOMIC2_IADD_C, 0x175 },
    { "GNI_FMA_ATOMIC2_FFPMIN_S", (int64_t)GNI_FMA_ATOMIC2_FFPMIN_S, 0x258 },
    { "GNI_FMA_ATOMIC2_FFPMIN", (int64_t)GNI_FMA_ATOMIC2_FFPMIN, 0x059 },
    { "GNI_FMA_ATOMIC2_FFPMIN_SC", (int64_t)GNI_FMA_ATOMIC2_FFPMIN_SC, 0x278 },
    { "GNI_FMA_ATOMIC2_FFPMIN_C", (int64_t)GNI_FMA_ATOMIC2_FFPMIN_C, 0x079 },
    { "GNI_FMA_ATOMIC2_FPMIN_S", (int64_t)GNI_FMA_ATOMIC2_FPMIN_S, 0x358 },
    { "GNI_FMA_ATOMIC2_FPMIN", (int64_t)GNI_FMA_ATOMIC2_FPMIN, 0x159 },
    { "GNI_FMA_ATOMIC2_FPMIN_SC", (int64_t)GNI_FMA_ATOMIC2_FPMIN_SC, 0x378 },
    { "GNI_FMA_ATOMIC2_FPMIN_C", (int64_t)GNI_FMA_ATOMIC2_FPMIN_C, 0x179 },
    { "GNI_FMA_ATOMIC2_FFPMAX_S", (int64_t)GNI_FMA_ATOMIC2_FFPMAX_S, 0x25A },
    { "GNI_FMA_ATOMIC2_FFPMAX", (int64_t)GNI_FMA_ATOMIC2_FFPMAX, 0x05B },
    { "GNI_FMA_ATOMIC2_FFPMAX_SC", (int64_t)GNI_FMA_ATOMIC2_FFPMAX_SC, 0x27A },
    { "GNI_FMA_ATOMIC2_FFPMAX_C", (int64_t)GNI_FMA_ATOMIC2_FFPMAX_C, 0x07B },
    { "GNI_FMA_ATOMIC2_FPMAX_S", (int64_t)GNI_FMA_ATOMIC2_FPMAX_S, 0x35A },
    { "GNI_FMA_ATOMIC2_FPMAX", (int64_t)GNI_FMA_ATOMIC2_FPMAX, 0x15B },
    { "GNI_FMA_ATOMIC2_FPMAX_SC", (int64_t)GNI_FMA_ATOMIC2_FPMAX_SC, 0x37A },
    { "GNI_FMA_ATOMIC2_FPMAX_C", (int64_t)GNI_FMA_ATOMIC2_FPMAX_C, 0x17B },
    { "GNI_FMA_ATOMIC2_FFPADD_S", (int64_t)GNI_FMA_ATOMIC2_FFPADD_S, 0x25C },
    { "GNI_FMA_ATOMIC2_FFPADD", (int64_t)GNI_FMA_ATOMIC2_FFPADD, 0x05D },
    { "GNI_FMA_ATOMIC2_FFPADD_SC", (int64_t)GNI_FMA_ATOMIC2_FFPADD_SC, 0x27C },
    { "GNI_FMA_ATOMIC2_FFPADD_C", (int64_t)GNI_FMA_ATOMIC2_FFPADD_C, 0x07D },
    { "GNI_FMA_ATOMIC2_FPADD_S", (int64_t)GNI_FMA_ATOMIC2_FPADD_S, 0x35C },
    { "GNI_FMA_ATOMIC2_FPADD", (int64_t)GNI_FMA_ATOMIC2_FPADD, 0x15D },
    { "GNI_FMA_ATOMIC2_FPADD_SC", (int64_t)GNI_FMA_ATOMIC2_FPADD_SC, 0x37C },
    { "GNI_FMA_ATOMIC2_FPADD_C", (int64_t)GNI_FMA_ATOMIC2_FPADD_C, 0x17D },
    /* CE */
    { "GNI_FMA_CE_AND_S", (int64_t)GNI_FMA_CE_AND_S, 0x00 },
    { "GNI_FMA_CE_AND", (int64_t)GNI_FMA_CE_AND, 0x01 },
    { "GNI_FMA_CE_OR_S", (int64_t)GNI_FMA_CE_OR_S, 0x02 },
    { "GNI_FMA_CE_OR", (int64_t)GNI_FMA_CE_OR, 0x03 },
    { "GNI_FMA_CE_XOR_S", (int64_t)GNI_FMA_CE_XOR_S, 0x04 },
    { "GNI_FMA_CE_XOR", (int64_t)GNI_FMA_CE_XOR, 0x05 },
    { "GNI_FMA_CE_IMIN_LIDX_S", (int64_t)GNI_FMA_CE_IMIN_LIDX_S, 0x10 },
    { "GNI_FMA_CE_IMIN_LIDX", (int64_t)GNI_FMA_CE_IMIN_LIDX, 0x11 },
    { "GNI_FMA_CE_IMAX_LIDX_S", (int64_t)GNI_FMA_CE_IMAX_LIDX_S, 0x12 },
    { "GNI_FMA_CE_IMAX_LIDX", (int64_t)GNI_FMA_CE_IMAX_LIDX, 0x13 },
    { "GNI_FMA_CE_IADD_S", (int64_t)GNI_FMA_CE_IADD_S, 0x14 },
    { "GNI_FMA_CE_IADD", (int64_t)GNI_FMA_CE_IADD, 0x15 },
    { "GNI_FMA_CE_FPMIN_LIDX_S", (int64_t)GNI_FMA_CE_FPMIN_LIDX_S, 0x18 },
    { "GNI_FMA_CE_FPMIN_LIDX", (int64_t)GNI_FMA_CE_FPMIN_LIDX, 0x19 },
    { "GNI_FMA_CE_FPMAX_LIDX_S", (int64_t)GNI_FMA_CE_FPMAX_LIDX_S, 0x1a },
    { "GNI_FMA_CE_FPMAX_LIDX", (int64_t)GNI_FMA_CE_FPMAX_LIDX, 0x1b },
    { "GNI_FMA_CE_FPADD_S", (int64_t)GNI_FMA_CE_FPADD_S, 0x1c },
    { "GNI_FMA_CE_FPADD", (int64_t)GNI_FMA_CE_FPADD, 0x1d },
    { "GNI_FMA_CE_IMIN_GIDX_S", (int64_t)GNI_FMA_CE_IMIN_GIDX_S, 0x30 },
    { "GNI_FMA_CE_IMIN_GIDX", (int64_t)GNI_FMA_CE_IMIN_GIDX, 0x31 },
    { "GNI_FMA_CE_IMAX_GIDX_S", (int64_t)GNI_FMA_CE_IMAX_GIDX_S, 0x32 },
    { "GNI_FMA_CE_IMAX_GIDX", (int64_t)GNI_FMA_CE_IMAX_GIDX, 0x33 },
    { "GNI_FMA_CE_FPMIN_GIDX_S", (int64_t)GNI_FMA_CE_FPMIN_GIDX_S, 0x38 },
    { "GNI_FMA_CE_FPMIN_GIDX", (int64_t)GNI_FMA_CE_FPMIN_GIDX, 0x39 },
    { "GNI_FMA_CE_FPMAX_GIDX_S", (int64_t)GNI_FMA_CE_FPMAX_GIDX_S, 0x3a },
    { "GNI_FMA_CE_FPMAX_GIDX", (int64_t)GNI_FMA_CE_FPMAX_GIDX, 0x3b },
    { "GNI_CE_FPE_OP_INVAL", (int64_t)GNI_CE_FPE_OP_INVAL, 0x1 },
    { "GNI_CE_FPE_OFLOW", (int64_t)GNI_CE_FPE_OFLOW, 0x2 },
    { "GNI_CE_FPE_UFLOW", (int64_t)GNI_CE_FPE_UFLOW, 0x4 },
    { "GNI_CE_FPE_PRECISION", (int64_t)GNI_CE_FPE_PRECISION, 0x8 },
    { "GNI_CE_CHILD_UNUSED", (int64_t)GNI_CE_CHILD_UNUSED, 0 },
    { "GNI_CE_CHILD_VCE", (int64_t)GNI_CE_CHILD_VCE, 1 },
    { "GNI_CE_CHILD_PE", (int64_t)GNI_CE_CHILD_PE, 2 },
    { "GNI_CE_MAX_CHILDREN", (int64_t)GNI_CE_MAX_CHILDREN, 32 },
    { "GNI_CE_MODE_ROUND_UP", (int64_t)GNI_CE_MODE_ROUND_UP, 0x1 },
    { "GNI_CE_MODE_ROUND_DOWN", (int64_t)GNI_CE_MODE_ROUND_DOWN, 0x2 },
    { "GNI_CE_MODE_ROUND_NEAR", (int64_t)GNI_CE_MODE_ROUND_NEAR, 0x4 },
    { "GNI_CE_MODE_ROUND_ZERO", (int64_t)GNI_CE_MODE_ROUND_ZERO, 0x8 },
    { "GNI_CE_MODE_CQE_ONCOMP", (int64_t)GNI_CE_MODE_CQE_ONCOMP, 0x10 },
    { "GNI_CE_MODE_CQE_ONERR", (int64_t)GNI_CE_MODE_CQE_ONERR, 0x40 },
    { "GNI_CE_MODE_RC_NMIN_HASH", (int64_t)GNI_CE_MODE_RC_NMIN_HASH, 0x80 },
    { "GNI_CE_MODE_RC_MIN_HASH", (int64_t)GNI_CE_MODE_RC_MIN_HASH, 0x100 },
    { "GNI_CE_MODE_RC_MNON_HASH", (int64_t)GNI_CE_MODE_RC_MNON_HASH, 0x200 },
    { "GNI_CE_MODE_RC_ADAPT", (int64_t)GNI_CE_MODE_RC_ADAPT, 0x400 },
    { "GNI_CEMODE_TWO_OP", (int64_t)GNI_CEMODE_TWO_OP, 0x01 },
    { "GNI_CEMODE_FPE_OP_INVAL", (int64_t)GNI_CEMODE_FPE_OP_INVAL, 0x02 },
    { "GNI_CEMODE_FPE_OFLOW", (int64_t)GNI_CEMODE_FPE_OFLOW, 0x04 },
    { "GNI_CEMODE_FPE_UFLOW", (int64_t)GNI_CEMODE_FPE_UFLOW, 0x08 },
    { "GNI_CEMODE_FPE_PRECISION", (int64_t)GNI_CEMODE_FPE_PRECISION, 0x10 },
    /* messages */
    { "GNI_SMSG_TYPE_INVALID", (int64_t)GNI_SMSG_TYPE_INVALID, 0 },
    { "GNI_SMSG_TYPE_MBOX", (int64_t)GNI_SMSG_TYPE_MBOX, 1 },
    { "GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT", (int64_t)GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 2 },
    { "GNI_SMSG_ANY_TAG", (int64_t)GNI_SMSG_ANY_TAG, 0xFF },
    { "FMA_SMSG_MAX_RETRANS_DEFAULT", (int64_t)FMA_SMSG_MAX_RETRANS_DEFAULT, 10 },
    { "GNI_SMSG_MAX_SIZE", (int64_t)GNI_SMSG_MAX_SIZE, 65535 },
    { "GNI_DATAGRAM_MAXSIZE", (int64_t)GNI_DATAGRAM_MAXSIZE, 128 },
    { "GNI_MSGQ_MSG_SZ_MAX", (int64_t)GNI_MSGQ_MSG_SZ_MAX, 128 },
    { "GNI_MSGQ_NODE_INSTS_MAX", (int64_t)GNI_MSGQ_NODE_INSTS_MAX, 48 },
    { "GNI_MSGQ_MODE_BLOCKING", (int64_t)GNI_MSGQ_MODE_BLOCKING, 0x01 },
    /* errors, jobs, devices, resources */
    { "GNI_ERRMASK_CORRECTABLE_MEMORY", (int64_t)GNI_ERRMASK_CORRECTABLE_MEMORY, 0x01 },
    { "GNI_ERRMASK_CRITICAL", (int64_t)GNI_ERRMASK_CRITICAL, 0x02 },
    { "GNI_ERRMASK_TRANSACTION", (int64_t)GNI_ERRMASK_TRANSACTION, 0x04 },
    { "GNI_ERRMASK_ADDRESS_TRANSLATION", (int64_t)GNI_ERRMASK_ADDRESS_TRANSLATION, 0x08 },
    { "GNI_ERRMASK_TRANSIENT", (int64_t)GNI_ERRMASK_TRANSIENT, 0x10 },
    { "GNI_ERRMASK_INFORMATIONAL", (int64_t)GNI_ERRMASK_INFORMATIONAL, 0x20 },
    { "GNI_ERRMASK_DIAG_ONLY", (int64_t)GNI_ERRMASK_DIAG_ONLY, 0x40 },
    { "GNI_ERRMASK_UNKNOWN_TRANSACTION", (int64_t)GNI_ERRMASK_UNKNOWN_TRANSACTION, 0x80 },
    { "GNI_JOB_INVALID_LIMIT", (int64_t)GNI_JOB_INVALID_LIMIT, -1 },
    { "GNI_JOB_CTRL_NTT_CLEANUP", (int64_t)GNI_JOB_CTRL_NTT_CLEANUP, 0x01 },
    { "GNI_JOB_CTRL_CE0_MASK", (int64_t)GNI_JOB_CTRL_CE0_MASK, 0x1 },
    { "GNI_JOB_CTRL_CE1_MASK", (int64_t)GNI_JOB_CTRL_CE1_MASK, 0x2 },
    { "GNI_JOB_CTRL_CE2_MASK", (int64_t)GNI_JOB_CTRL_CE2_MASK, 0x4 },
    { "GNI_JOB_CTRL_CE3_MASK", (int64_t)GNI_JOB_CTRL_CE3_MASK, 0x8 },
    { "GNI_JOB_CTRL_ALL_CE_MASK", (int64_t)GNI_JOB_CTRL_ALL_CE_MASK, 0xF },
    { "GNI_DEVICE_GEMINI", (int64_t)GNI_DEVICE_GEMINI, 0 },
    { "GNI_DEVICE_ARIES", (int64_t)GNI_DEVICE_ARIES, 1 },
    { "GNI_DEVICE_PISCES", (int64_t)GNI_DEVICE_PISCES, 2 },
    { "GNI_DEVICE_LAST", (int64_t)GNI_DEVICE_LAST, 3 },
    { "GNI_DEV_RES_FIRST", (int64_t)GNI_DEV_RES_FIRST, 0 },
    { "GNI_DEV_RES_MDD", (int64_t)GNI_DEV_RES_MDD, 1 },
    { "GNI_DEV_RES_MRT", (int64_t)GNI_DEV_RES_MRT, 2 },
    { "GNI_DEV_RES_CQ", (int64_t)GNI_DEV_RES_CQ, 3 },
    { "GNI_DEV_RES_FMA", (int64_t)GNI_DEV_RES_FMA, 4 },
    { "GNI_DEV_RES_CE", (int64_t)GNI_DEV_RES_CE, 5 },
    { "GNI_DEV_RES_DLA", (int64_t)GNI_DEV_RES_DLA, 6 },
    { "GNI_DEV_RES_LAST", (int64_t)GNI_DEV_RES_LAST, 7 },
    { "GNI_JOB_RES_FIRST", (int64_t)GNI_JOB_RES_FIRST, 0 },
    { "GNI_JOB_RES_MDD", (int64_t)GNI_JOB_RES_MDD, 1 },
    { "GNI_JOB_RES_MRT", (int64_t)GNI_JOB_RES_MRT, 2 },
    { "GNI_JOB_RES_IOMMU", (int64_t)GNI_JOB_RES_IOMMU, 3 },
    { "GNI_JOB_RES_GART", (int64_t)GNI_JOB_RES_GART, 4 },
    { "GNI_JOB_RES_CQ", (int64_t)GNI_JOB_RES_CQ, 5 },
    { "GNI_JOB_RES_FMA", (int64_t)GNI_JOB_RES_FMA, 6 },
    { "GNI_JOB_RES_RMDA", (int64_t)GNI_JOB_RES_RMDA, 7 },
    { "GNI_JOB_RES_CE", (int64_t)GNI_JOB_RES_CE, 8 },
    { "GNI_JOB_RES_DLA", (int64_t)GNI_JOB_RES_DLA, 9 },
    { "GNI_JOB_RES_SFMA", (int64_t)GNI_JOB_RES_SFMA, 10 },
    { "GNI_JOB_RES_LAST", (int64_t)GNI_JOB_RES_LAST, 11 },
    { "MAX_BUILD_STRING_LENGTH", (int64_t)MAX_BUILD_STRING_LENGTH, 80 },
    { "GNI_BI_FLAG_APPLY_NOW", (int64_t)GNI_BI_FLAG_APPLY_NOW, 0x1 },
    { "GNI_BI_FLAG_APPLY_AFTER_THROTTLE", (int64_t)GNI_BI_FLAG_APPLY_AFTER_THROTTLE, 0x2 },
    { "GNI_BI_FLAG_USE_DEFAULT_SETTINGS", (int64_t)GNI_BI_FLAG_USE_DEFAULT_SETTINGS, 0x4 },
    { "GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES", (int64_t)GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES, 0x8 },
    { "GNI_BI_INJECT_BW_MIN", (int64_t)GNI_BI_INJECT_BW_MIN, 0 },
    { "GNI_BI_INJECT_BW_MAX", (int64_t)GNI_BI_INJECT_BW_MAX, 100 },
    { "GNI_BI_INJECT_BW_ORB_MIN", (int64_t)GNI_BI_INJECT_BW_ORB_MIN, 0 },
    { "GNI_BI_INJECT_BW_ORB_MAX", (int64_t)GNI_BI_INJECT_BW_ORB_MAX, 992 },
    /* statistics, long list */
    { "GNI_STAT_SMSG_BUFF_CREDITS_STALL", (int64_t)GNI_STAT_SMSG_BUFF_CREDITS_STALL, 0 },
    { "GNI_STAT_SMSG_DLA_STALL", (int64_t)GNI_STAT_SMSG_DLA_STALL, 1 },
    { "GNI_STAT_SMSG_MBOX_CREDITS_STALL", (int64_t)GNI_STAT_SMSG_MBOX_CREDITS_STALL, 2 },
    { "GNI_STAT_SMSG_REQ_STALL", (int64_t)GNI_STAT_SMSG_REQ_STALL, 3 },
    { "GNI_STAT_SMSG_RETRANS_COUNT", (int64_t)GNI_STAT_SMSG_RETRANS_COUNT, 4 },
    { "GNI_STAT_SMSG_RETRANS_DLA_COUNT", (int64_t)GNI_STAT_SMSG_RETRANS_DLA_COUNT, 5 },
    { "GNI_STAT_SMSG_RETRANS_STALL", (int64_t)GNI_STAT_SMSG_RETRANS_STALL, 6 },
    { "GNI_STAT_DLA_ALLOC_STATUS_STALL", (int64_t)GNI_STAT_DLA_ALLOC_STATUS_STALL, 7 },
    { "GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT", (int64_t)GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT, 8 },
    { "GNI_STAT_DLA_BLOCK_ORPHANED", (int64_t)GNI_STAT_DLA_BLOCK_ORPHANED, 9 },
    { "GNI_STAT_DLA_BLOCK_RETRANS_COUNT", (int64_t)GNI_STAT_DLA_BLOCK_RETRANS_COUNT, 10 },
    { "GNI_STAT_DLA_FREE_BLOCKS_STALL", (int64_t)GNI_STAT_DLA_FREE_BLOCKS_STALL, 11 },
    { "GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL", (int64_t)GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL, 12 },
    { "GNI_STAT_DLA_HIGH_RETRANS_COUNT", (int64_t)GNI_STAT_DLA_HIGH_RETRANS_COUNT, 13 },
    { "GNI_STAT_DLA_OVERFLOW_RESEND", (int64_t)GNI_STAT_DLA_OVERFLOW_RESEND, 14 },
    { "GNI_STAT_DLA_RETRANS_COUNT", (int64_t)GNI_STAT_DLA_RETRANS_COUNT, 15 },
    { "GNI_STAT_DLA_TOTAL_RETRANS_COUNT", (int64_t)GNI_STAT_DLA_TOTAL_RETRANS_COUNT, 16 },
    { "GNI_STAT_FLBTE_TXD_CORRUPT", (int64_t)GNI_STAT_FLBTE_TXD_CORRUPT, 17 },
    { "GNI_STAT_FLBTE_TXD_NONE", (int64_t)GNI_STAT_FLBTE_TXD_NONE, 18 },
    { "GNI_NUM_STATS", (int64_t)GNI_NUM_STATS, 19 },
};

/* Layouts of spec/ugni.md Appendix C. */
static_assert(sizeof(gni_mem_handle_t) == 16, "gni_mem_handle_t");
static_assert(offsetof(gni_mem_handle_t, qword1) == 0, "gni_mem_handle_t.qword1");
static_assert(offsetof(gni_mem_handle_t, qword2) == 8, "gni_mem_handle_t.qword2");

static_assert(sizeof(gni_smsg_attr_t) == 56, "gni_smsg_attr_t");
static_assert(offsetof(gni_smsg_attr_t, msg_type) == 0, "gni_smsg_attr_t.msg_type");
static_assert(offsetof(gni_smsg_attr_t, msg_buffer) == 8, "gni_smsg_attr_t.msg_buffer");
static_assert(offsetof(gni_smsg_attr_t, buff_size) == 16, "gni_smsg_attr_t.buff_size");
static_assert(offsetof(gni_smsg_attr_t, mem_hndl) == 24, "gni_smsg_attr_t.mem_hndl");
static_assert(offsetof(gni_smsg_attr_t, mbox_offset) == 40, "gni_smsg_attr_t.mbox_offset");
static_assert(offsetof(gni_smsg_attr_t, mbox_maxcredit) == 44, "gni_smsg_attr_t.mbox_maxcredit");
static_assert(offsetof(gni_smsg_attr_t, msg_maxsize) == 48, "gni_smsg_attr_t.msg_maxsize");

static_assert(sizeof(gni_mem_segment_t) == 16, "gni_mem_segment_t");
static_assert(offsetof(gni_mem_segment_t, address) == 0, "gni_mem_segment_t.address");
static_assert(offsetof(gni_mem_segment_t, length) == 8, "gni_mem_segment_t.length");

static_assert(sizeof(gni_post_descriptor_t) == 184, "gni_post_descriptor_t");
static_assert(offsetof(gni_post_descriptor_t, next_descr) == 0, "gni_post_descriptor_t.next_descr");
static_assert(offsetof(gni_post_descriptor_t, prev_descr) == 8, "gni_post_descriptor_t.prev_descr");
static_assert(offsetof(gni_post_descriptor_t, post_id) == 16, "gni_post_descriptor_t.post_id");
static_assert(offsetof(gni_post_descriptor_t, status) == 24, "gni_post_descriptor_t.status");
static_assert(offsetof(gni_post_descriptor_t, cq_mode_complete) == 32, "gni_post_descriptor_t.cq_mode_complete");
static_assert(offsetof(gni_post_descriptor_t, type) == 36, "gni_post_descriptor_t.type");
static_assert(offsetof(gni_post_descriptor_t, cq_mode) == 40, "gni_post_descriptor_t.cq_mode");
static_assert(offsetof(gni_post_descriptor_t, dlvr_mode) == 42, "gni_post_descriptor_t.dlvr_mode");
static_assert(offsetof(gni_post_descriptor_t, local_addr) == 48, "gni_post_descriptor_t.local_addr");
static_assert(offsetof(gni_post_descriptor_t, local_mem_hndl) == 56, "gni_post_descriptor_t.local_mem_hndl");
static_assert(offsetof(gni_post_descriptor_t, remote_addr) == 72, "gni_post_descriptor_t.remote_addr");
static_assert(offsetof(gni_post_descriptor_t, remote_mem_hndl) == 80, "gni_post_descriptor_t.remote_mem_hndl");
static_assert(offsetof(gni_post_descriptor_t, length) == 96, "gni_post_descriptor_t.length");
static_assert(offsetof(gni_post_descriptor_t, rdma_mode) == 104, "gni_post_descriptor_t.rdma_mode");
static_assert(offsetof(gni_post_descriptor_t, src_cq_hndl) == 112, "gni_post_descriptor_t.src_cq_hndl");
static_assert(offsetof(gni_post_descriptor_t, sync_flag_value) == 120, "gni_post_descriptor_t.sync_flag_value");
static_assert(offsetof(gni_post_descriptor_t, sync_flag_addr) == 128, "gni_post_descriptor_t.sync_flag_addr");
static_assert(offsetof(gni_post_descriptor_t, amo_cmd) == 136, "gni_post_descriptor_t.amo_cmd");
static_assert(offsetof(gni_post_descriptor_t, first_operand) == 144, "gni_post_descriptor_t.first_operand");
static_assert(offsetof(gni_post_descriptor_t, second_operand) == 152, "gni_post_descriptor_t.second_operand");
static_assert(offsetof(gni_post_descriptor_t, cqwrite_value) == 160, "gni_post_descriptor_t.cqwrite_value");
static_assert(offsetof(gni_post_descriptor_t, ce_cmd) == 168, "gni_post_descriptor_t.ce_cmd");
static_assert(offsetof(gni_post_descriptor_t, ce_mode) == 172, "gni_post_descriptor_t.ce_mode");
static_assert(offsetof(gni_post_descriptor_t, ce_red_id) == 176, "gni_post_descriptor_t.ce_red_id");

static_assert(sizeof(gni_ce_result_t) == 24, "gni_ce_result_t");
static_assert(offsetof(gni_ce_result_t, control) == 0, "gni_ce_result_t.control");
static_assert(offsetof(gni_ce_result_t, result1) == 8, "gni_ce_result_t.result1");
static_assert(offsetof(gni_ce_result_t, result2) == 16, "gni_ce_result_t.result2");

static_assert(sizeof(gni_ntt_entry_t) == 12, "gni_ntt_entry_t");
static_assert(offsetof(gni_ntt_entry_t, blck_addr) == 0, "gni_ntt_entry_t.blck_addr");
static_assert(offsetof(gni_ntt_entry_t, rplc_addr) == 4, "gni_ntt_entry_t.rplc_addr");
static_assert(offsetof(gni_ntt_entry_t, rplc_size) == 8, "gni_ntt_entry_t.rplc_size");

static_assert(sizeof(gni_ntt_descriptor_t) == 24, "gni_ntt_descriptor_t");
static_assert(offsetof(gni_ntt_descriptor_t, group_size) == 0, "gni_ntt_descriptor_t.group_size");
static_assert(offsetof(gni_ntt_descriptor_t, granularity) == 4, "gni_ntt_descriptor_t.granularity");
static_assert(offsetof(gni_ntt_descriptor_t, u) == 8, "gni_ntt_descriptor_t.u");
static_assert(offsetof(gni_ntt_descriptor_t, flags) == 16, "gni_ntt_descriptor_t.flags");

static_assert(sizeof(gni_error_event_t) == 48, "gni_error_event_t");
static_assert(offsetof(gni_error_event_t, error_code) == 0, "gni_error_event_t.error_code");
static_assert(offsetof(gni_error_event_t, error_category) == 2, "gni_error_event_t.error_category");
static_assert(offsetof(gni_error_event_t, ptag) == 3, "gni_error_event_t.ptag");
static_assert(offsetof(gni_error_event_t, serial_number) == 4, "gni_error_event_t.serial_number");
static_assert(offsetof(gni_error_event_t, timestamp) == 8, "gni_error_event_t.timestamp");
static_assert(offsetof(gni_error_event_t, info_mmrs) == 16, "gni_error_event_t.info_mmrs");

static_assert(sizeof(gni_job_limits_t) == 36, "gni_job_limits_t");
static_assert(offsetof(gni_job_limits_t, mdd_limit) == 0, "gni_job_limits_t.mdd_limit");
static_assert(offsetof(gni_job_limits_t, a) == 4, "gni_job_limits_t.a");
static_assert(offsetof(gni_job_limits_t, b) == 8, "gni_job_limits_t.b");
static_assert(offsetof(gni_job_limits_t, fma_limit) == 12, "gni_job_limits_t.fma_limit");
static_assert(offsetof(gni_job_limits_t, bte_limit) == 16, "gni_job_limits_t.bte_limit");
static_assert(offsetof(gni_job_limits_t, cq_limit) == 20, "gni_job_limits_t.cq_limit");
static_assert(offsetof(gni_job_limits_t, ntt_ctrl) == 24, "gni_job_limits_t.ntt_ctrl");
static_assert(offsetof(gni_job_limits_t, ntt_base) == 28, "gni_job_limits_t.ntt_base");
static_assert(offsetof(gni_job_limits_t, ntt_size) == 32, "gni_job_limits_t.ntt_size");

static_assert(sizeof(gni_dev_res_desc_t) == 32, "gni_dev_res_desc_t");
static_assert(offsetof(gni_dev_res_desc_t, available) == 0, "gni_dev_res_desc_t.available");
static_assert(offsetof(gni_dev_res_desc_t, reserved) == 8, "gni_dev_res_desc_t.reserved");
static_assert(offsetof(gni_dev_res_desc_t, held) == 16, "gni_dev_res_desc_t.held");
static_assert(offsetof(gni_dev_res_desc_t, total) == 24, "gni_dev_res_desc_t.total");

static_assert(sizeof(gni_job_res_desc_t) == 16, "gni_job_res_desc_t");
static_assert(offsetof(gni_job_res_desc_t, used) == 0, "gni_job_res_desc_t.used");
static_assert(offsetof(gni_job_res_desc_t, limit) == 8, "gni_job_res_desc_t.limit");

static_assert(sizeof(gni_msgq_attr_t) == 28, "gni_msgq_attr_t");
static_assert(offsetof(gni_msgq_attr_t, max_msg_sz) == 0, "gni_msgq_attr_t.max_msg_sz");
static_assert(offsetof(gni_msgq_attr_t, smsg_q_sz) == 4, "gni_msgq_attr_t.smsg_q_sz");
static_assert(offsetof(gni_msgq_attr_t, rcv_pool_sz) == 8, "gni_msgq_attr_t.rcv_pool_sz");
static_assert(offsetof(gni_msgq_attr_t, num_msgq_eps) == 12, "gni_msgq_attr_t.num_msgq_eps");
static_assert(offsetof(gni_msgq_attr_t, nloc_insts) == 16, "gni_msgq_attr_t.nloc_insts");
static_assert(offsetof(gni_msgq_attr_t, modes) == 20, "gni_msgq_attr_t.modes");
static_assert(offsetof(gni_msgq_attr_t, rcv_cq_sz) == 24, "gni_msgq_attr_t.rcv_cq_sz");

static_assert(sizeof(gni_msgq_rem_inst_t) == 32, "gni_msgq_rem_inst_t");
static_assert(offsetof(gni_msgq_rem_inst_t, id) == 0, "gni_msgq_rem_inst_t.id");
static_assert(offsetof(gni_msgq_rem_inst_t, mdh) == 8, "gni_msgq_rem_inst_t.mdh");
static_assert(offsetof(gni_msgq_rem_inst_t, mdh_off) == 24, "gni_msgq_rem_inst_t.mdh_off");

static_assert(sizeof(gni_msgq_ep_attr_t) == 1552, "gni_msgq_ep_attr_t");
static_assert(offsetof(gni_msgq_ep_attr_t, pe_addr) == 0, "gni_msgq_ep_attr_t.pe_addr");
static_assert(offsetof(gni_msgq_ep_attr_t, max_msg_sz) == 4, "gni_msgq_ep_attr_t.max_msg_sz");
static_assert(offsetof(gni_msgq_ep_attr_t, smsg_q_sz) == 8, "gni_msgq_ep_attr_t.smsg_q_sz");
static_assert(offsetof(gni_msgq_ep_attr_t, num_insts) == 12, "gni_msgq_ep_attr_t.num_insts");
static_assert(offsetof(gni_msgq_ep_attr_t, insts) == 16, "gni_msgq_ep_attr_t.insts");

static_assert(sizeof(gni_version_info_t) == 176, "gni_version_info_t");
static_assert(offsetof(gni_version_info_t, ugni_version) == 0, "gni_version_info_t.ugni_version");
static_assert(offsetof(gni_version_info_t, ugni_svn_revision) == 4, "gni_version_info_t.ugni_svn_revision");
static_assert(offsetof(gni_version_info_t, ugni_build_string) == 8, "gni_version_info_t.ugni_build_string");
static_assert(offsetof(gni_version_info_t, kgni_version) == 88, "gni_version_info_t.kgni_version");
static_assert(offsetof(gni_version_info_t, kgni_svn_revision) == 92, "gni_version_info_t.kgni_svn_revision");
static_assert(offsetof(gni_version_info_t, kgni_build_string) == 96, "gni_version_info_t.kgni_build_string");

static_assert(sizeof(gni_bi_desc_t) == 16, "gni_bi_desc_t");
static_assert(offsetof(gni_bi_desc_t, current_bw) == 0, "gni_bi_desc_t.current_bw");
static_assert(offsetof(gni_bi_desc_t, current_aot_bw) == 2, "gni_bi_desc_t.current_aot_bw");
static_assert(offsetof(gni_bi_desc_t, current_norbs) == 4, "gni_bi_desc_t.current_norbs");
static_assert(offsetof(gni_bi_desc_t, flags) == 6, "gni_bi_desc_t.flags");
static_assert(offsetof(gni_bi_desc_t, sys_def_bw) == 8, "gni_bi_desc_t.sys_def_bw");
static_assert(offsetof(gni_bi_desc_t, sys_def_aot_bw) == 10, "gni_bi_desc_t.sys_def_aot_bw");
static_assert(offsetof(gni_bi_desc_t, cle_seqnum) == 12, "gni_bi_desc_t.cle_seqnum");
static_assert(offsetof(gni_bi_desc_t, hss_seqnum) == 14, "gni_bi_desc_t.hss_seqnum");

/* Chained elements, spec/ugni.md A.1: our own numbers, kept. */
static_assert(sizeof(gni_ct_put_post_descriptor_t) == 56, "chained put");
static_assert(offsetof(gni_ct_put_post_descriptor_t, local_addr) == 48, "chained put");
static_assert(sizeof(gni_ct_get_post_descriptor_t) == 72, "chained get");
static_assert(offsetof(gni_ct_get_post_descriptor_t, local_mem_hndl) == 56, "chained get");
static_assert(sizeof(gni_ct_amo_post_descriptor_t) == 96, "chained amo");
static_assert(offsetof(gni_ct_amo_post_descriptor_t, amo_cmd) == 48, "chained amo");
static_assert(offsetof(gni_ct_amo_post_descriptor_t, local_addr) == 72, "chained amo");
static_assert(sizeof(gni_ct_cqw_post_descriptor_t) == 40, "chained cq write");
static_assert(offsetof(gni_ct_cqw_post_descriptor_t, cqwrite_value) == 32, "chained cq write");

/* Programs test these with the preprocessor. */
#if !defined(GNI_VERSION_FMA_CHAIN_TRANSACTIONS) || GNI_VERSION < GNI_VERSION_FMA_CHAIN_TRANSACTIONS
#error "chained FMA is part of this version"
#endif
#if GNI_VERSION < GNI_VERSION_FMA_SHARING || GNI_VERSION != GNI_VERSION_CHECK(0, 0x5d, 0)
#error "version"
#endif

static void test_every_constant_has_its_specified_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (constants[i].actual != constants[i].expected)
            fail_msg("%s is %lld, specified %lld", constants[i].name, (long long)constants[i].actual,
                     (long long)constants[i].expected);
    }
}

static void test_version_macros_take_a_packed_version_apart(void **state)
{
    (void)state;
    assert_int_equal(GNI_GET_MAJOR(0x125c0304), 0x12);
    assert_int_equal(GNI_GET_MINOR(0x125c0304), 0x5c);
    assert_int_equal(GNI_GET_REV(0x125c0304), 0x0304);
    assert_int_equal(GNI_VERSION_CHECK(0x12, 0x5c, 0x0304), 0x125c0304);
}

static void test_cookie_holds_key_and_cbps_bits(void **state)
{
    (void)state;
    assert_int_equal(GNI_JOB_CREATE_COOKIE(0x8001, 0), 0x80010000);
    assert_int_equal(GNI_JOB_CREATE_COOKIE(1, 0xf), 0x10038);
}

static void test_external_memory_kind_is_the_top_byte(void **state)
{
    (void)state;
    assert_int_equal(GNI_EXMEM_FLAGS(GNI_MEM_CUDA | GNI_MEM_READ_ONLY), 1);
    assert_true(GNI_MEM_IS_EXTERNAL(GNI_MEM_CUDA));
    assert_false(GNI_MEM_IS_EXTERNAL(GNI_MEM_MDD_DEDICATED | GNI_MEM_READ_ONLY));
}

static void test_cq_mode_predicates_are_booleans_of_their_bit(void **state)
{
    (void)state;
    for (uint32_t mode = 0; mode < 16; mode++) {
        bool is_blocking = (mode & 1) != 0, is_emulated = (mode & 2) != 0;

        assert_int_equal(GNI_CQ_IS_BLOCKING(mode), is_blocking);
        assert_int_equal(GNI_CQ_IS_NON_BLOCKING(mode), !is_blocking);
        assert_int_equal(GNI_CQ_IS_EMULATED(mode), is_emulated);
        assert_int_equal(GNI_CQ_IS_NOT_EMULATED(mode), !is_emulated);
        assert_int_equal(GNI_CQ_IS_INVALID_EMULATED(mode), is_blocking && is_emulated);
        assert_int_equal(GNI_CQ_USE_PHYS_PAGES(mode), (mode & 4) != 0);
    }
}

static void test_event_types_are_unsigned_long_long(void **state)
{
    (void)state;
    assert_true(_Generic(GNI_CQ_EVENT_TYPE_POST, unsigned long long : 1, default : 0));
    assert_true(_Generic(GNI_CQ_EVENT_TYPE_SMSG, unsigned long long : 1, default : 0));
    assert_true(_Generic(GNI_CQ_EVENT_TYPE_DMAPP, unsigned long long : 1, default : 0));
    assert_true(_Generic(GNI_CQ_EVENT_TYPE_MSGQ, unsigned long long : 1, default : 0));
}

/* The AMO commands: what the name says must be what the bits say. */

static bool is_amo(const struct constant *c)
{
    return strncmp(c->name, "GNI_FMA_ATOMIC", strlen("GNI_FMA_ATOMIC")) == 0;
}

static bool is_second_generation(const struct constant *c)
{
    return strncmp(c->name, "GNI_FMA_ATOMIC2_", strlen("GNI_FMA_ATOMIC2_")) == 0;
}

static const char *operation_of(const struct constant *c)
{
    return c->name + strlen(is_second_generation(c) ? "GNI_FMA_ATOMIC2_" : "GNI_FMA_ATOMIC_");
}

static bool name_ends_with(const struct constant *c, const char *suffix)
{
    size_t len = strlen(c->name), suffix_len = strlen(suffix);

    return len >= suffix_len && strcmp(c->name + len - suffix_len, suffix) == 0;
}

/* A leading F fetches, except in FPMIN, FPMAX, FPADD; the first generation's CSWAP fetches without one. */
static bool name_says_fetch(const struct constant *c)
{
    const char *op = operation_of(c);

    if (!is_second_generation(c) && strncmp(op, "CSWAP", 5) == 0)
        return true;
    return op[0] == 'F' && strncmp(op, "FP", 2) != 0;
}

static void test_there_are_118_amo_commands_and_all_differ(void **state)
{
    size_t n_amos = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        if (!is_amo(&constants[i]))
            continue;
        n_amos++;
        for (size_t j = 0; j < i; j++) {
            if (is_amo(&constants[j]) && constants[j].actual == constants[i].actual)
                fail_msg("%s and %s are equal", constants[j].name, constants[i].name);
        }
    }
    assert_int_equal(n_amos, 118);
}

static void test_amo_bits_say_what_the_names_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
        const struct constant *c = &constants[i];
        bool is_second, is_short, is_cached;

        if (!is_amo(c))
            continue;
        is_second = is_second_generation(c);
        is_short = name_ends_with(c, "_S") || name_ends_with(c, "_SC");
        is_cached = name_ends_with(c, "_C") || name_ends_with(c, "_SC");
        if (((c->actual & 0x100) == 0) != name_says_fetch(c))
            fail_msg("%s: PUT bit", c->name);
        if (((c->actual & 0x200) != 0) != is_short)
            fail_msg("%s: 32-bit bit", c->name);
        if (((c->actual & 0x040) != 0) != is_second)
            fail_msg("%s: generation bit", c->name);
        if (((c->actual & (is_second ? 0x020 : 0x010)) != 0) != is_cached)
            fail_msg("%s: cached bit", c->name);
        if (is_second && ((c->actual & 1) == 0) != is_short)
            fail_msg("%s: low bit", c->name);
    }
}

static void test_second_generation_amo_codes_equal_the_ce_codes(void **state)
{
    (void)state;
    assert_int_equal(GNI_FMA_ATOMIC2_FAND & 0x1f, GNI_FMA_CE_AND);
    assert_int_equal(GNI_FMA_ATOMIC2_FOR & 0x1f, GNI_FMA_CE_OR);
    assert_int_equal(GNI_FMA_ATOMIC2_FXOR & 0x1f, GNI_FMA_CE_XOR);
    assert_int_equal(GNI_FMA_ATOMIC2_FIMIN & 0x1f, GNI_FMA_CE_IMIN_LIDX);
    assert_int_equal(GNI_FMA_ATOMIC2_FIMAX & 0x1f, GNI_FMA_CE_IMAX_LIDX);
    assert_int_equal(GNI_FMA_ATOMIC2_FIADD_S & 0x1f, GNI_FMA_CE_IADD_S);
    assert_int_equal(GNI_FMA_ATOMIC2_FFPMIN & 0x1f, GNI_FMA_CE_FPMIN_LIDX);
    assert_int_equal(GNI_FMA_ATOMIC2_FFPMAX & 0x1f, GNI_FMA_CE_FPMAX_LIDX);
    assert_int_equal(GNI_FMA_ATOMIC2_FFPADD & 0x1f, GNI_FMA_CE_FPADD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_constant_has_its_specified_value),
        cmocka_unit_test(test_version_macros_take_a_packed_version_apart),
        cmocka_unit_test(test_cookie_holds_key_and_cbps_bits),
        cmocka_unit_test(test_external_memory_kind_is_the_top_byte),
        cmocka_unit_test(test_cq_mode_predicates_are_booleans_of_their_bit),
        cmocka_unit_test(test_event_types_are_unsigned_long_long),
        cmocka_unit_test(test_there_are_118_amo_commands_and_all_differ),
        cmocka_unit_test(test_amo_bits_say_what_the_names_say),
        cmocka_unit_test(test_second_generation_amo_codes_equal_the_ce_codes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
