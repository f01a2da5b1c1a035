/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registering for the barriers of the kernel (membarrier) that our locks and emunic use.
 *
 * A lock needs the barrier of its process (biased_lock.c), the direct path that of all processes (client/direct.c).
 * Both register when they are made, and whoever registers twice pays for the first time only. In a process of one
 * thread that takes a microsecond. In one of several the kernel waits for all processors twice, 10 ms each, so a
 * library or component that is loaded early registers before others start threads.
 */
#ifndef EMUNIC_BASE_BARRIERS_H
#define EMUNIC_BASE_BARRIERS_H

/*
 * Two system calls in a process of one thread, nothing in others. What the kernel refuses is learnt where the barrier
 * is needed. At any time; meant for constructors.
 */
void emu_barriers_register_early(void);

#endif
