/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The keeper of a job: a child of `emunic run`, on other hosts of emunic-agent, that makes the job's folder and cleans
 * up if its parent cannot.
 */
#ifndef EMUNIC_CLI_KEEPER_H
#define EMUNIC_CLI_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/cli/child.h"

/* Said on the link: there is nothing to clean up. */
#define EMU_KEEPER_DISMISS 'd'

struct emu_keeper_plan {
    const char *folder; /* made, for this user only, before it is ready. Not a pointer into argv */
    bool may_exist;     /* the folder, if it is this user's alone */
    /* "NAME=value" in the environment of the job's processes. NULL: ends none, and removes only an empty folder. */
    const char *marker;
    uint64_t since; /* those started no earlier (emu_sweep_since()) */
};

/*
 * See emu_child_start(). EMU_CHILD_READY comes when the folder is there. The end of the link before: it has said why.
 * The plan must last as long as the keeper.
 */
int emu_keeper_start(const struct emu_keeper_plan *plan, struct emu_child *keeper_out);

/* It cleans up, as if this process had died, and goes: waits for that, and kills what takes too long. */
void emu_keeper_leave(struct emu_child *keeper);

/* All is clean: it goes. It must not have been waited for. */
void emu_keeper_dismiss(struct emu_child *keeper);

/** The same where the keeper itself has ended and was waited for: its second one may be about to take its place. */
void emu_keeper_dismiss_second(const struct emu_child *keeper);

#endif
