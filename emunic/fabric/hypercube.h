/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only a hypercube machine has.
 */
#ifndef EMUNIC_FABRIC_HYPERCUBE_H
#define EMUNIC_FABRIC_HYPERCUBE_H

#define EMU_X1_MSPS_PER_NODE 4 /* processors of a node; the machine counts nodes */

#endif
