/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of any length, at the speed of memory wherever the two places lie. */
#ifndef EMUNIC_ENGINE_COPY_H
#define EMUNIC_ENGINE_COPY_H

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

#endif
