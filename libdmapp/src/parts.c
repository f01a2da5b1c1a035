/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the job, in the order of their areas, which is the same in every PE. */
#include "libdmapp/src/parts.h"
#include "libdmapp/src/sheap.h"

const struct dmappi_part *const dmappi_parts[] = {
    &dmappi_sheap_part, &dmappi_lock_part, &dmappi_mq_part, &dmappi_pset_part, &dmappi_completion_part,
};
const unsigned dmappi_n_parts = sizeof(dmappi_parts) / sizeof(dmappi_parts[0]);
