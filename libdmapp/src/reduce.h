/* SPDX-License-Identifier: BSD-3-Clause */
/* Arithmetic of reductions: which operations there are on which elements, and what they give. */
#ifndef LIBDMAPP_REDUCE_H
#define LIBDMAPP_REDUCE_H

#include <stdbool.h>

#include <dmapp.h>

/* Bytes of an element. 0: no such type. */
uint32_t dmappi_reduce_size(dmapp_c_type_t type);

/* Does the operation exist for the type? */
bool dmappi_reduce_is_legal(dmapp_c_type_t type, dmapp_c_op_t op);

/*
 * into[i] = into[i] op from[i]. Legal type and op, both aligned to 8 bytes. Integers wrap. MIN and MAX of a
 * number and a NaN give the number. The value that a MINLOC or MAXLOC tie keeps is the one with the smaller location.
 */
void dmappi_reduce(void *into, const void *from, uint32_t nelems, dmapp_c_type_t type, dmapp_c_op_t op);

#endif
