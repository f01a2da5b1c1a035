/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of the job (job.h) that nobody needs more of than the row: locks, message queue, process sets. */
#ifndef LIBDMAPP_PARTS_H
#define LIBDMAPP_PARTS_H

#include "libdmapp/src/job.h"

extern const struct dmappi_part dmappi_lock_part;
extern const struct dmappi_part dmappi_mq_part;
extern const struct dmappi_part dmappi_pset_part;

#endif
