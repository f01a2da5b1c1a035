/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper of a job: a child of `emunic run` that outlives it if it must.
 */
#ifndef EMUNIC_CLI_KEEPER_H
#define EMUNIC_CLI_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "emunic/daemon/daemon.h"

struct emu_keeper_plan {
    const struct emu_server_options *server; /* run this server; NULL: the job uses one that runs already */
    const char *folder;                      /* made, for this user only, before it is ready. Not a pointer into argv */
    bool may_exist;                          /* the folder, if it is this user's alone */
    const char *marker;                      /* "NAME=value" in the environment of the job's processes */
};

struct emu_keeper {
    pid_t pid; /* 0: none */
    int link;  /* socket: what follows comes and goes there */
};

/* One byte each. */
#define EMU_KEEPER_READY   'r' /* from the keeper: the folder is there and the server listens */
#define EMU_KEEPER_ENDED   'e' /* from the keeper: its server has stopped, for whatever reason */
#define EMU_KEEPER_DISMISS 'd' /* to the keeper: all is clean, go */

/* Forks. Call it with the signals blocked that `run` waits for. The end of the link before READY: it has said why. */
int emu_keeper_start(const struct emu_keeper_plan *plan, struct emu_keeper *keeper_out);

/*
 * Ends it: tells it to go, or if the job never came to be hangs up, so that its server stops and it cleans up. Waits,
 * and kills it when it does not go. It must not have been waited for.
 */
void emu_keeper_dismiss(struct emu_keeper *keeper, bool had_job);

#endif
