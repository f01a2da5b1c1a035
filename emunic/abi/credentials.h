/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credentials of a communication domain.
 *
 * A process that was told only a cookie must find the protection tag that belongs to it (GNI_GetPtag), also when
 * it never met a launcher. So the tag is a pure function of the cookie, and whoever makes up a domain uses it.
 * Source: spec/cray-runtime.md 2.6; the range is GNI_PTAG_USER_START .. GNI_PTAG_USER_END.
 */
#ifndef EMUNIC_ABI_CREDENTIALS_H
#define EMUNIC_ABI_CREDENTIALS_H

#include <stdint.h>

#define EMU_PTAG_USER_START 3u
#define EMU_PTAG_USER_END   253u

/* 3 .. 253. The top bits of the product depend on every bit of the cookie (Fibonacci hashing). */
static inline uint32_t emu_ptag_of_cookie(uint32_t cookie)
{
    uint32_t mixed = cookie * 2654435769u;

    return EMU_PTAG_USER_START + (uint32_t)((uint64_t)mixed * (EMU_PTAG_USER_END - EMU_PTAG_USER_START + 1) >> 32);
}

#endif
