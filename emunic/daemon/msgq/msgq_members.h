/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions of shared message queues.
 */
#ifndef EMUNIC_DAEMON_MSGQ_MSGQ_MEMBERS_H
#define EMUNIC_DAEMON_MSGQ_MSGQ_MEMBERS_H

#include "emunic/daemon/core/part.h"

struct emu_port_end;
struct emu_table_md;

extern const struct emu_part emu_msgq_part;

/* A memory domain of the port ends: other hosts hear of it if it is the region. */
void emu_msgq_md_ends(struct emu_port_end *port, uint16_t mdh, const struct emu_table_md *md);

#endif
