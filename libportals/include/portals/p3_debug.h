/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3_debug.h: what PtlNIDebug() can be asked to trace, in both dialects. Traces go to standard error.
 * (share/doc/emunic/spec/portals3.md 2.10)
 */
#ifndef PORTALS_P3_DEBUG_H
#define PORTALS_P3_DEBUG_H

#define PTL_DBG_NONE     0x00000000u
#define PTL_DBG_API      0x00000001u /* calls */
#define PTL_DBG_PARSE    0x00000002u /* requests taken apart */
#define PTL_DBG_MOVE     0x00000004u /* data moved */
#define PTL_DBG_DROP     0x00000008u /* requests dropped, with the reason */
#define PTL_DBG_REQUEST  0x00000010u /* requests made */
#define PTL_DBG_DELIVERY 0x00000020u /* requests delivered */
#define PTL_DBG_MD       0x00000040u
#define PTL_DBG_ME       0x00000080u
#define PTL_DBG_UNLINK   0x00000100u
#define PTL_DBG_EQ       0x00000200u
#define PTL_DBG_EVENT    0x00000400u
#define PTL_DBG_MEMORY   0x00000800u
#define PTL_DBG_SETUP    0x00001000u
#define PTL_DBG_SHUTDOWN 0x00002000u
#define PTL_DBG_ALL      0x0000FFFFu

/* Interfaces whose actions are traced; for the mask of the library (PTL_INVALID_HANDLE). */
#define PTL_DBG_NI_00  0x00010000u
#define PTL_DBG_NI_01  0x00020000u
#define PTL_DBG_NI_02  0x00040000u
#define PTL_DBG_NI_03  0x00080000u
#define PTL_DBG_NI_04  0x00100000u
#define PTL_DBG_NI_05  0x00200000u
#define PTL_DBG_NI_06  0x00400000u
#define PTL_DBG_NI_07  0x00800000u
#define PTL_DBG_NI_08  0x01000000u
#define PTL_DBG_NI_09  0x02000000u
#define PTL_DBG_NI_10  0x04000000u
#define PTL_DBG_NI_11  0x08000000u
#define PTL_DBG_NI_12  0x10000000u
#define PTL_DBG_NI_13  0x20000000u
#define PTL_DBG_NI_14  0x40000000u
#define PTL_DBG_NI_15  0x80000000u
#define PTL_DBG_NI_ALL 0xFFFF0000u

/* Older names. */
#define PTL_DEBUG_ALL    PTL_DBG_ALL
#define PTL_DEBUG_NI_ALL PTL_DBG_NI_ALL
#define PTL_DEBUG_DROP   PTL_DBG_DROP

#endif /* PORTALS_P3_DEBUG_H */
