/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How many processors a thread may run on.
 */
#ifndef EMUNIC_BASE_PROCESSORS_H
#define EMUNIC_BASE_PROCESSORS_H

#include <stdint.h>

/* Those of the calling thread's affinity, at least 1; all that are on where there are over 1024. Any thread. */
uint32_t emu_processors_allowed(void);

#endif
