/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results of internal calls as codes of the API.
 *
 * One table, read from the top: the first row that names the call and the result decides. Rows of single calls come
 * first, then those that all calls have in common. A call with a row for every other result ends there. What no row
 * has is INVALID_PARAM. Source: the codes of each call in gni_pub.h.
 */
#include "libugni/src/rc.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>

#include "emunic/abi/control.h"

#define ONLY(call) (1u << GNII_CALL_##call)
#define EVERY      (~0u)
#define OTHER      INT_MIN /* every other result */
#define JOB        (ONLY(CONFIGURE) | ONLY(SUSPEND) | ONLY(SUSPEND_NOW) | ONLY(RESUME))

static const struct {
    uint32_t calls; /* a bit for each */
    int result;
    gni_return_t rc;
} rows[] = {
    { EVERY, 0, GNI_RC_SUCCESS },

    /* emunic has gone: INVALID_STATE would say that the object's own state forbids it. */
    { ONLY(CREATE), -ENETDOWN, GNI_RC_ERROR_RESOURCE },
    { ONLY(RESERVE_MDDS), -ENETDOWN, GNI_RC_ERROR_NOMEM },
    { ONLY(FIND_DATAGRAM), -ENETDOWN, GNI_RC_NO_MATCH },
    { ONLY(LAST_LOOK), EMU_OUTCOME_NO_MATCH, GNI_RC_TIMEOUT },

    { ONLY(MSGQ_INIT), -EALREADY, GNI_RC_INVALID_STATE },
    { ONLY(MSGQ_INIT), -EDEADLK, GNI_RC_INVALID_STATE },
    { ONLY(MSGQ_INIT), -ENETDOWN, GNI_RC_INVALID_STATE },
    { ONLY(MSGQ_INIT), OTHER, GNI_RC_ERROR_NOMEM }, /* memory, queues, memory domains */

    /* A NULL handle that emunic refuses to a user without privilege is a bad handle to the original. */
    { ONLY(SUBSCRIBE), -ENETDOWN, GNI_RC_ERROR_RESOURCE },
    { ONLY(SUBSCRIBE), -ECONNREFUSED, GNI_RC_ERROR_RESOURCE },
    { ONLY(SUBSCRIBE_ALL), -EACCES, GNI_RC_INVALID_PARAM },
    { ONLY(SUBSCRIBE_ALL), -ENETDOWN, GNI_RC_NO_MATCH },

    { ONLY(INJECTION), -EACCES, GNI_RC_PERMISSION_ERROR },
    { ONLY(INJECTION), OTHER, GNI_RC_INVALID_PARAM },

    { ONLY(SUSPEND) | ONLY(SUSPEND_NOW), -ENETDOWN, GNI_RC_NOT_DONE },
    { ONLY(SUSPEND_NOW) | ONLY(RESUME), -ETIMEDOUT, GNI_RC_NOT_DONE },
    { ONLY(SUSPEND), -ETIMEDOUT, GNI_RC_TIMEOUT },
    { ONLY(CONFIGURE), -ECONNREFUSED, GNI_RC_NO_MATCH },
    { JOB, -EACCES, GNI_RC_PERMISSION_ERROR },
    { JOB, -EPERM, GNI_RC_PERMISSION_ERROR },
    { JOB, -ENOENT, GNI_RC_NO_MATCH },
    { JOB, -ENOSPC, GNI_RC_ERROR_RESOURCE },
    { JOB, -ENETDOWN, GNI_RC_ERROR_RESOURCE },
    { JOB, -EHOSTUNREACH, GNI_RC_ERROR_RESOURCE },
    { JOB, -EAGAIN, GNI_RC_ERROR_RESOURCE },
    { JOB, -EMFILE, GNI_RC_ERROR_RESOURCE },
    { JOB, -ENOMEM, GNI_RC_ERROR_NOMEM },
    { JOB, -EEXIST, GNI_RC_INVALID_STATE },
    { JOB, EMU_OUTCOME_IN_USE, GNI_RC_INVALID_STATE },
    { JOB, EMU_OUTCOME_RESIZE, GNI_RC_ILLEGAL_OP },
    { JOB, OTHER, GNI_RC_INVALID_PARAM },

    { EVERY, -EACCES, GNI_RC_PERMISSION_ERROR },
    { EVERY, -EPERM, GNI_RC_PERMISSION_ERROR },
    { EVERY, -ENODEV, GNI_RC_NO_MATCH },
    { EVERY, -ENOENT, GNI_RC_NO_MATCH },
    { EVERY, -ECONNREFUSED, GNI_RC_NO_MATCH }, /* no emunic: no device */
    { EVERY, EMU_OUTCOME_NO_MATCH, GNI_RC_NO_MATCH },
    { EVERY, EMU_OUTCOME_BUSY, GNI_RC_ERROR_RESOURCE },
    { EVERY, -ENOSPC, GNI_RC_ERROR_RESOURCE },
    { EVERY, -EMFILE, GNI_RC_ERROR_RESOURCE },
    { EVERY, -ENFILE, GNI_RC_ERROR_RESOURCE },
    { EVERY, -ENOMEM, GNI_RC_ERROR_NOMEM },
    { EVERY, EMU_OUTCOME_TOO_SMALL, GNI_RC_SIZE_ERROR },
    { EVERY, -EMSGSIZE, GNI_RC_SIZE_ERROR },
    { EVERY, -EALREADY, GNI_RC_INVALID_STATE },
    { EVERY, -ENETDOWN, GNI_RC_INVALID_STATE },
    { EVERY, -ETIMEDOUT, GNI_RC_TIMEOUT },
    { EVERY, -EINTR, GNI_RC_NOT_DONE },
    { EVERY, -EAGAIN, GNI_RC_NOT_DONE },
    { EVERY, -EOPNOTSUPP, GNI_RC_ILLEGAL_OP }, /* a machine without collective engines */
};

gni_return_t gnii_rc(enum gnii_call call, int result)
{
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if ((rows[i].calls & (1u << call)) != 0 && (rows[i].result == result || rows[i].result == OTHER))
            return rows[i].rc;
    }
    return GNI_RC_INVALID_PARAM;
}
