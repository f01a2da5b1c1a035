/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of the network as people name them.
 */
#ifndef EMUNIC_CLI_NETWORK_WORDS_H
#define EMUNIC_CLI_NETWORK_WORDS_H

#include <stddef.h>

#include "emunic/abi/control.h"
#include "emunic/cli/fault_file.h"
#include "emunic/fabric/machine.h"

/**
 * What to break or mend: "link 17", "link c0-0c0s0a0 c0-0c0s3a0", "link c0-0c0s0a0 -> c0-0c1s0a0 black 2" (further
 * words for `one-way`), "lanes 17 3" (mask; none to mend), "router c0-0c0s3a0", "node c0-0c0s0n1", "node 4", "all" (to
 * mend).
 *
 * @param[in]  text        Words with spaces between.
 * @param[in]  is_repair   Mend it.
 * @param[out] change_out  For EMU_MSG_NETWORK; after_ns is 0.
 * @return 0, or -EINVAL and a line in `err`.
 */
int emu_network_words_read(const struct emu_machine *m, const char *text, bool is_repair,
                           struct emu_msg_network *change_out, char *err, size_t err_len);

/* The changes of a schedule, n_events of them; the caller frees them. 0, -ENOMEM, or -EINVAL and a line in `err`. */
int emu_network_events_read(const struct emu_machine *m, const struct emu_fault_schedule *schedule,
                            struct emu_msg_network **changes_out, char *err, size_t err_len);

#endif
