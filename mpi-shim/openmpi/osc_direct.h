/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short puts and gets between nodes, and flushes of nothing, past osc/rdma of Open MPI.
 *
 * osc/rdma takes longer to find out what a put means than our NIC to do it. So osc/emunic does those itself whose
 * meaning is plain: the same number of bytes of predefined types without gaps at both ends, within the window. They
 * are over when the call returns, and counted like any other.
 *
 * Only in epochs of locks, and only at a target that an operation of osc/rdma has been flushed at in this epoch: then
 * the lock is held, whenever osc/rdma takes it. All others are osc/rdma's, as they were.
 */
#ifndef MPI_SHIM_OPENMPI_OSC_DIRECT_H
#define MPI_SHIM_OPENMPI_OSC_DIRECT_H

#include <stddef.h>

struct ompi_communicator_t;
struct ompi_win_t;

/* The window has just been made by osc/rdma, of this memory. All processes of the communicator call it. */
int mo_make_direct(struct ompi_win_t *win, struct ompi_communicator_t *comm, void *base, size_t size, int disp_unit);

#endif
