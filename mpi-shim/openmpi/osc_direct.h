/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short puts and gets, and flushes of nothing, past the component of Open MPI that has made the window: osc/rdma over
 * gni, osc/pt2pt over Portals.
 *
 * osc/rdma takes longer to find out what a put means than our NIC to do it, osc/pt2pt sends messages that the target
 * has to answer. So osc/emunic does those itself whose meaning is plain: the same number of bytes of predefined types
 * without gaps at both ends, within the window. They are over when the call returns, and counted like any other.
 *
 * Only in epochs of locks, and only at a target that an operation of the maker has been flushed at in this epoch: then
 * the lock is held, whenever the maker takes it. All others are the maker's, as they were: accumulates, requests,
 * fences, groups, derived types.
 *
 * Nothing is out of order by that. What is put here is there before any later message of this process. What the maker
 * does has ended at the target with the next flush, and before it MPI promises no order between a put and anything
 * else at the same place.
 */
#ifndef MPI_SHIM_OPENMPI_OSC_DIRECT_H
#define MPI_SHIM_OPENMPI_OSC_DIRECT_H

#include <stddef.h>

struct ompi_communicator_t;
struct ompi_win_t;

/* The window has just been made, of this memory. All processes of the communicator call it. */
int mo_make_direct(struct ompi_win_t *win, struct ompi_communicator_t *comm, void *base, size_t size, int disp_unit);

#endif
