/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/base/processors.h"

#include <sched.h>

uint32_t emu_processors_allowed(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) < 0 || CPU_COUNT(&set) < 1)
        return 1;
    return (uint32_t)CPU_COUNT(&set);
}
