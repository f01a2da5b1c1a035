/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtual channels of a dragonfly, for its routing: how many a link has, and which may follow which.
 */
#ifndef EMUNIC_FABRIC_DRAGONFLY_CHANNELS_H
#define EMUNIC_FABRIC_DRAGONFLY_CHANNELS_H

#include <stdint.h>

#include "emunic/fabric/sim/routing.h"

typedef void emu_dragonfly_visit_fn(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc);

uint32_t emu_dragonfly_n_vcs(const struct emu_machine *m, enum emu_link_class link_class);
void emu_dragonfly_describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                               struct emu_vc_info *info_out);
/* Calls visit() for each channel of a live link and each one behind it that a packet on it may wait for. */
void emu_dragonfly_visit_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                                      emu_dragonfly_visit_fn *visit, void *ctx);

#endif
