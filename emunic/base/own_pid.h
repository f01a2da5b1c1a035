/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * getpid() without a system call, for paths that ask at each operation whether the process was forked.
 */
#ifndef EMUNIC_BASE_OWN_PID_H
#define EMUNIC_BASE_OWN_PID_H

#include <sys/types.h>

/* Any thread. A load; in a process that has not asked before, and where the kernel cannot help, a system call. */
pid_t emu_own_pid(void);

#endif
