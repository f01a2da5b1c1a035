/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's life, and its main loop.
 */
#ifndef EMUNIC_DAEMON_CORE_LOOP_H
#define EMUNIC_DAEMON_CORE_LOOP_H

#include "emunic/daemon/core/part.h"

/* Made of those parts, in their order. 0 or negative errno, and then a text that says why. */
int emu_server_create(const struct emu_server_options *options, const struct emu_part *const *parts, uint32_t n_parts,
                      struct emu_complaint *why, struct emu_server **server_out);
/* Until it is told to stop. 0 or negative errno. */
int emu_server_run(struct emu_server *server);
/* What it tells of itself. */
extern const struct emu_part emu_server_part;
/* NULL is fine. */
void emu_server_destroy(struct emu_server *server);

#endif
