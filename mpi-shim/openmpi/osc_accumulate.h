/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What osc/rdma of Open MPI 4.1.4 does wrongly when it accumulates. Wrong data that nobody notices are worse than a
 * call that is slow, or fails.
 *
 * - MPI_SHORT_INT, MPI_LONG_INT, MPI_DOUBLE_INT and MPI_LONG_DOUBLE_INT have unused bytes between their two members. It
 *   takes predefined types for contiguous, so the second member ends at a wrong place. Such calls are refused.
 * - With atomics of the NIC it fetches results of a derived type from behind its buffer. `emunic run` lets it take none
 *   (osc_rdma_network_max_amo): it gets, computes and puts under a lock of the target, which it holds anyway.
 * - MPI_Compare_and_swap goes without that lock. It takes it where the window says that operations are mixed.
 */
#ifndef MPI_SHIM_OPENMPI_OSC_ACCUMULATE_H
#define MPI_SHIM_OPENMPI_OSC_ACCUMULATE_H

struct ompi_win_t;

/*
 * The window has just been made by osc/rdma. From now on accumulating a pair with a gap at another process returns
 * MPI_ERR_TYPE, and MPI_Compare_and_swap takes the lock.
 */
void mo_mend_accumulate(struct ompi_win_t *win);

#endif
