/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For the files of this folder.
 */
#ifndef EMUNIC_DAEMON_RIGHTS_INNER_H
#define EMUNIC_DAEMON_RIGHTS_INNER_H

#include "emunic/daemon/rights/rights.h"

/* ---- filter.c ---- */

/* On all threads. 0; negative errno: -ENOSYS, the kernel has no filters. */
int emu_filter_load(const struct emu_rights *rights);

/* ---- landlock.c ---- */

/* Version of the kernel's Landlock; 0: it has none. */
unsigned emu_landlock_abi(void);
/* On this thread and those that it starts. 0 or negative errno. */
int emu_landlock_restrict(unsigned abi, const char *module);

#endif
