/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bar on stderr for long work. Nothing at all if stderr is no terminal, or if it is told to be quiet. One thread.
 */
#ifndef EMUNIC_CLI_PROGRESS_H
#define EMUNIC_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct emu_cli_progress {
    bool is_on;
    bool is_drawn;
    uint64_t drawn_ns;
};

void emu_cli_progress_init(struct emu_cli_progress *progress, bool is_quiet);

/* At most ten times a second, whatever the caller does. `text` stands behind the bar. */
void emu_cli_progress_draw(struct emu_cli_progress *progress, double fraction, const char *text);

/* Takes the bar away: before anything else is printed, and at the end. */
void emu_cli_progress_clear(struct emu_cli_progress *progress);

#endif
