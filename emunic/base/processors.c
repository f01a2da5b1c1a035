/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/base/processors.h"

#include <sched.h>
#include <unistd.h>

uint32_t emu_processors_allowed(void)
{
    cpu_set_t set;
    long n;

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        n = CPU_COUNT(&set);
    else
        n = sysconf(_SC_NPROCESSORS_ONLN); /* more of them than the set has room for */
    return n > 0 ? (uint32_t)n : 1;
}
