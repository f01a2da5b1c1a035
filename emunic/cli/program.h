/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program file tells about the program.
 */
#ifndef EMUNIC_CLI_PROGRAM_H
#define EMUNIC_CLI_PROGRAM_H

#include <stdbool.h>

/** Is that a dynamic executable of this machine that names a library of Portals itself (libportals, libp3api)? */
bool emu_program_needs_portals(const char *path);

/** Is that a dynamic executable of this machine that names Cray's library of SHMEM itself (libsma)? */
bool emu_program_needs_shmem(const char *path);

/**
 * Are its messages those of MPI: a dynamic executable that names a library of MPI and none of ours itself, or a Python
 * whose module, text or script has the word mpi4py near its beginning?
 *
 * @param[in] path   Of the executable.
 * @param[in] words  Its arguments, without its name; ends with NULL.
 */
bool emu_program_is_mpi(const char *path, char *const *words);

#endif
