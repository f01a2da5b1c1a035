/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/base/barriers.h"

#include <linux/membarrier.h>
#include <sys/single_threaded.h>
#include <sys/syscall.h>
#include <unistd.h>

void emu_barriers_register_early(void)
{
    if (!__libc_single_threaded)
        return;
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}
