/* SPDX-License-Identifier: BSD-3-Clause */
/* The place where programs for Catamount look for it. */
#include <cnos_mpi_os.h>
