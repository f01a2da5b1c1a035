/* SPDX-License-Identifier: BSD-3-Clause */
/* The older place of shmem.h. */
#include <shmem.h>
