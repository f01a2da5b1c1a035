/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of any length, at the speed of memory wherever the two places lie. */
#ifndef EMUNIC_ENGINE_COPY_H
#define EMUNIC_ENGINE_COPY_H

#include <emmintrin.h>
#include <stdint.h>
#include <string.h>

#define EMU_COPY_SHORT_BYTES 1024 /* below, memmove() uses no string instruction: nothing to look at */

/* As emu_copy(), of EMU_COPY_SHORT_BYTES or more. */
void emu_copy_long(void *to, const void *from, uint64_t len_bytes);

/* As memmove(): the two may overlap. Returns nothing. Any thread. */
static inline void emu_copy(void *to, const void *from, uint64_t len_bytes)
{
    if (len_bytes < EMU_COPY_SHORT_BYTES)
        memmove(to, from, len_bytes);
    else
        emu_copy_long(to, from, len_bytes);
}

/*
 * Between places that do not overlap. From 8 to 32 bytes, which most headers of message layers have, two loads and two
 * stores that may have bytes in common: a call of memcpy() takes four times as many instructions.
 */
static inline void emu_copy_few(void *to, const void *from, uint64_t len_bytes)
{
    uint64_t words[2];
    __m128i halves[2];

    if (len_bytes >= 8 && len_bytes <= 16) {
        memcpy(&words[0], from, 8);
        memcpy(&words[1], (const uint8_t *)from + len_bytes - 8, 8);
        memcpy(to, &words[0], 8);
        memcpy((uint8_t *)to + len_bytes - 8, &words[1], 8);
    } else if (len_bytes > 16 && len_bytes <= 32) {
        halves[0] = _mm_loadu_si128((const __m128i *)from);
        halves[1] = _mm_loadu_si128((const __m128i *)(const void *)((const uint8_t *)from + len_bytes - 16));
        _mm_storeu_si128((__m128i *)to, halves[0]);
        _mm_storeu_si128((__m128i *)(void *)((uint8_t *)to + len_bytes - 16), halves[1]);
    } else if (len_bytes > 0) {
        memcpy(to, from, len_bytes);
    }
}

#endif
