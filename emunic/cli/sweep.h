/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Leaving nothing behind: processes of a job that nobody waits for any more, and its folder.
 */
#ifndef EMUNIC_CLI_SWEEP_H
#define EMUNIC_CLI_SWEEP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Which processes are meant: those that fit one of the two descriptions. The caller itself never is. */
struct emu_sweep {
    pid_t parent;       /* children of this process; 0: this tells nothing */
    pid_t except;       /* but not this one */
    const char *marker; /* "NAME=value" in the environment they were started with; NULL: this tells nothing */
    uint64_t since;     /* those with the marker started no earlier, by the clock of emu_sweep_since() */
};

/* When this process started. 0, which is before all others, if that cannot be told. */
uint64_t emu_sweep_since(void);

/*
 * Is that the only child of the calling thread? False, too, where the kernel does not tell. Costs one read; a sweep
 * costs one for each process of the machine.
 */
bool emu_sweep_is_only_child(pid_t child);

/**
 * Signal processes and wait until they have ended.
 *
 * @param[in] signal   Sent to each, and to none of anybody else: processes are held by pidfd. 0: only wait.
 * @param[in] wait_ms  At most this long.
 * @return Number of processes found (zombies do not count), or negative errno. Found is not all: they may have had
 *         children since. Call again until it finds none.
 */
int emu_sweep(const struct emu_sweep *what, int signal, int wait_ms);

/* Removes a folder and all in it; symbolic links are removed, not followed. What is not there is fine. */
void emu_remove_folder(const char *path);

#endif
