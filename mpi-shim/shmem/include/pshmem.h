/* SPDX-License-Identifier: BSD-3-Clause */
/* The place where some libraries have the profiling interface: here shmem.h has all of it. */
#include <shmem.h>
