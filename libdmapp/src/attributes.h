/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LIBDMAPP_ATTRIBUTES_H
#define LIBDMAPP_ATTRIBUTES_H

#include "libdmapp/src/job.h"

/* What requested means, NULL: the defaults. */
dmapp_rma_attrs_ext_t dmappi_attrs_of(const dmapp_rma_attrs_ext_t *requested);
/* The classic fields of one form as the other, the rest by default. */
dmapp_rma_attrs_ext_t dmappi_attrs_extend(const dmapp_rma_attrs_t *attrs);
/* Dynamic attributes of the calling thread become those of attrs; what is in force then. NULL: no change. */
dmapp_return_t dmappi_attrs_apply(const dmapp_rma_attrs_ext_t *attrs, dmapp_rma_attrs_ext_t *actual_out);

#endif
