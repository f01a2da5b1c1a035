/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of internal calls as codes of the core. p3_rc() makes those of the dialect out of them.
 */
#ifndef LIBPORTALS_CODE_H
#define LIBPORTALS_CODE_H

#include "libportals/src/core.h"

/* The call that answers, where calls have different codes for the same result. */
enum p3_call {
    P3_CALL_OPEN,   /* of an interface */
    P3_CALL_CREATE, /* of a match entry or a descriptor */
    P3_CALL_UPDATE, /* of a descriptor */
};

/* The code that `call` answers. result: 0 or a negative errno. */
enum p3_code p3_code_of(enum p3_call call, int result);

#endif
