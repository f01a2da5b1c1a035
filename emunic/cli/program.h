/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program file tells about the program.
 */
#ifndef EMUNIC_CLI_PROGRAM_H
#define EMUNIC_CLI_PROGRAM_H

#include <stdbool.h>

/** Is that a dynamic executable of this machine that names a library of Portals itself (libportals, libp3api)? */
bool emu_program_needs_portals(const char *path);

#endif
