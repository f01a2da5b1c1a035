/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Children of `emunic run` that outlive it if they must: the keeper and the job's emunic.
 */
#ifndef EMUNIC_CLI_CHILD_H
#define EMUNIC_CLI_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

struct emu_child {
    pid_t pid; /* 0: none */
    int link;  /* socket between the two, and the sign of life; -1: none */
};

/* First byte on the link, from the child. */
#define EMU_CHILD_READY 'r'
#define EMU_CHILD_TAKEN 't' /* somebody has the name of the server already: it ends */

/*
 * Forks. The child has a process group and a command line of its own, nothing open but standard error and the link, and
 * calls body(ctx, link), whose answer is its exit status. What ctx points at must not be in argv. Call it with the
 * signals blocked that the parent waits for. 0 or negative errno.
 */
int emu_child_start(const char *title, int (*body)(const void *ctx, int link), const void *ctx,
                    struct emu_child *child_out);

/* Sends a byte; nothing happens when the other end has gone. */
void emu_child_tell(int link, char byte);

/* Waits until it has ended, and kills it when it does not end. Closes the link. NULL: the status is not wanted. */
void emu_child_await(struct emu_child *child, int patience_ms, int *status_out);

#endif
