/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of internal calls as codes of the core: one table. The first row that names the call and the result decides;
 * each call ends with a row for every other result.
 */
#include "libportals/src/code.h"

#include <errno.h>
#include <limits.h>

#define ONLY(call) (1u << P3_CALL_##call)
#define TABLES     (ONLY(CREATE) | ONLY(UPDATE))
#define EVERY      (~0u)
#define OTHER      INT_MIN /* every other result */

static const struct {
    uint32_t calls; /* a bit for each */
    int result;
    enum p3_code code;
} rows[] = {
    { EVERY, 0, P3_OK },

    { ONLY(OPEN), -EADDRINUSE, P3_PID_INVALID },
    { ONLY(OPEN), -EADDRNOTAVAIL, P3_PID_INVALID },
    { ONLY(OPEN), -ENOMEM, P3_NO_SPACE },
    { ONLY(OPEN), -ENOSPC, P3_NO_SPACE },
    { ONLY(OPEN), -EMFILE, P3_NO_SPACE },
    { ONLY(OPEN), -ENFILE, P3_NO_SPACE },
    { ONLY(OPEN), OTHER, P3_FAIL },

    { ONLY(UPDATE), -EAGAIN, P3_MD_NO_UPDATE },
    { TABLES, -E2BIG, P3_ME_LIST_TOO_LONG },
    { TABLES, -EEXIST, P3_ME_IN_USE },
    { TABLES, -EBUSY, P3_ME_IN_USE },
    { TABLES, OTHER, P3_NO_SPACE },
};

enum p3_code p3_code_of(enum p3_call call, int result)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((rows[i].calls & (1u << call)) != 0 && (rows[i].result == result || rows[i].result == OTHER))
            return rows[i].code;
    }
    return P3_FAIL;
}
