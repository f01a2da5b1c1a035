/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog: a thread that takes the signals which end emunic, so that they do also while the loop hangs.
 */
#ifndef EMUNIC_DAEMON_CORE_WATCHDOG_H
#define EMUNIC_DAEMON_CORE_WATCHDOG_H

struct emu_watchdog;

/*
 * SIGTERM, SIGINT and SIGHUP are the watchdog's from now on; they stay blocked in this thread and in those that it
 * starts. 0 or negative errno.
 */
int emu_watchdog_start(struct emu_watchdog **watchdog_out);

/* Readable once a signal has come. */
int emu_watchdog_fd(const struct emu_watchdog *watchdog);
/* The signal that has come; 0: none. */
int emu_watchdog_signal(struct emu_watchdog *watchdog);

/* Whatever could hang is over. The signals stay blocked. NULL: nothing. */
void emu_watchdog_stop(struct emu_watchdog *watchdog);

#endif
