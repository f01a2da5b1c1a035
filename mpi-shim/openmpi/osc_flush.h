/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Win_flush_all where nothing has to be completed.
 *
 * osc/pt2pt asks all other processes each time, and waits for their answers. Libraries over MPI (Global Arrays, say)
 * call it for each of their windows at each barrier, most of the time without any operation before it.
 *
 * And locks with MPI_MODE_NOCHECK, in which a put or an accumulate of more than 8 KiB never ended.
 */
#ifndef MPI_SHIM_OPENMPI_OSC_FLUSH_H
#define MPI_SHIM_OPENMPI_OSC_FLUSH_H

struct ompi_win_t;

/*
 * The window has just been made by osc/pt2pt. From now on one flush follows another at once if nothing is between,
 * and locks are asked for whatever they promise.
 */
void mo_spare_flushes(struct ompi_win_t *win);

#endif
