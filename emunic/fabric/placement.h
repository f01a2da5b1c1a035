/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placements: which nodes of the machine a job gets.
 */
#ifndef EMUNIC_FABRIC_PLACEMENT_H
#define EMUNIC_FABRIC_PLACEMENT_H

#include <stdint.h>

#include "emunic/fabric/machine.h"

/**
 * Choose nodes. The same arguments always give the same nodes.
 *
 * @param[in]  policy   "linear": nids 0, 1, 2 ...
 *                      "scatter": neighbours in rank far apart in the machine, round robin over groups, then
 *                      chassis, then blades, then nodes.
 *                      "random:SEED": the first n_nodes of a random permutation; SEED is a decimal 64-bit number.
 *                      "nids:LIST": the first n_nodes of the list, in its order; nids and ranges, as 6,7,10-13.
 * @param[in]  n_nodes  How many are wanted.
 * @param[out] nids_out n_nodes entries, all different.
 * @retval 0         Done.
 * @retval -EINVAL   Unknown policy, bad seed or list; the list names a node twice.
 * @retval -ENODATA  The list names fewer nodes.
 * @retval -ERANGE   The machine has fewer nodes, or not one that the list names.
 * @retval -ENOMEM   Out of memory.
 */
int emu_machine_placement(const struct emu_machine *m, const char *policy, uint32_t n_nodes, uint32_t *nids_out);

#endif
