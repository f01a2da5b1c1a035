/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks: MPI_Test and MPI_Iprobe and their like, which return to the program although nothing has come; and calls of a
 * window of osc/pt2pt that need nothing from others, MPI_Win_unlock of the own rank for instance.
 *
 * Each makes one round of progress, as a wait makes many. Rounds that find nothing rest where cores are short, up to
 * 20 ms each (emunic/client/idle.c). That is right for a program that waits. One that looks in between pieces of its
 * own work loses a rest for each piece, and where all ranks do so nobody is ever woken: MPIRandomAccess of hpcc
 * looks once per update, and has a thousand of them before it sends the first message.
 */
#ifndef MPI_SHIM_OPENMPI_LOOKS_H
#define MPI_SHIM_OPENMPI_LOOKS_H

/* Once the pml is there, before other threads run: from now on stir() is called after each look that found nothing. */
void looks_begin(void (*stir)(void));

#endif
