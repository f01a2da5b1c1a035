/* SPDX-License-Identifier: BSD-3-Clause */
/* Included next to cnos_mpi_os.h by programs for Catamount. What else the original declared is not known. */
#include <cnos_mpi_os.h>
