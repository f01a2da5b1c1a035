/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIBDMAPP_SHEAP_H
#define LIBDMAPP_SHEAP_H

#include "libdmapp/src/job.h"

#define DMAPPI_UNIT_SHIFT 6 /* the heap is given out in units of 64 bytes */
#define DMAPPI_UNIT_BYTES (1ull << DMAPPI_UNIT_SHIFT)

/* First area: a bit for each unit of the heap whose block has been freed. Peers read it. */
extern const struct dmappi_part dmappi_sheap_part;

/* The heap's size from the environment. -EINVAL: not a size; -ENOMEM: more than there is. */
int dmappi_sheap_size(uint64_t *bytes_out);

#endif
