/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The emunic of one job: a child of `emunic run` that ends with the job.
 */
#ifndef EMUNIC_CLI_PRIVATE_SERVER_H
#define EMUNIC_CLI_PRIVATE_SERVER_H

#include "emunic/cli/child.h"
#include "emunic/daemon/daemon.h"

/*
 * See emu_child_start(). EMU_CHILD_READY comes when its sockets listen, EMU_CHILD_TAKEN when its name is taken. The end
 * of the link before: it has said why.
 */
int emu_private_server_start(const struct emu_server_options *options, struct emu_child *server_out);

/* Once its job has ended, or will not come. The wait status if it is wanted. It must not have been waited for. */
void emu_private_server_end(struct emu_child *server, int *status_out);

#endif
