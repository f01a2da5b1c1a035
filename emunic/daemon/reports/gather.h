/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions that all hosts answer, for one connection that waits: their part of a report, or whether they have heard
 * that somebody listens. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_REPORTS_GATHER_H
#define EMUNIC_DAEMON_REPORTS_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/daemon/core/part.h"
#include "emunic/daemon/world/word_list.h"

extern const struct emu_part emu_reports_part;

/* What the others have said: rows of abi/host_admin.h. Not of hosts that are not up. */
struct emu_gathered {
    uint32_t n_hosts;
    const struct emu_word_list *rows; /* of each host; ours is empty */
    const bool *is_missing;           /* of each host: it has not answered */
};

#endif
