/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Job control: named stubs for a caller without privilege.
 *
 * In the original a launcher that runs as root declares jobs, their limits and their address translation to the
 * driver. Here emunic does that on its control socket when a domain is created, and a process that links this
 * library never holds the privilege, whatever its user id is: containers make everybody root. So each call checks
 * what it can check without a device and answers GNI_RC_PERMISSION_ERROR, the documented code for an unprivileged
 * caller. Nothing is kept, nothing waits, outputs stay untouched. Any thread. Source: uGNI spec 4.2.
 */
#include <gni_pub.h>

/* Would wait for the stack; without privilege there is nothing to wait for. */
gni_return_t GNI_SuspendJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie, uint32_t timeout)
{
    (void)device_id;
    (void)job_id;
    (void)ptag;
    (void)cookie;
    (void)timeout;
    return GNI_RC_PERMISSION_ERROR;
}

gni_return_t GNI_ResumeJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie)
{
    (void)device_id;
    (void)job_id;
    (void)ptag;
    (void)cookie;
    return GNI_RC_PERMISSION_ERROR;
}

/* A NULL table is legal: it asks for clearing. */
gni_return_t GNI_ConfigureNTT(int device_id, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base)
{
    (void)device_id;
    if (ntt_desc == NULL || ntt_base == NULL)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_PERMISSION_ERROR;
}

/* NULL limits are legal: declare only. */
gni_return_t GNI_ConfigureJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                              gni_job_limits_t *limits)
{
    (void)device_id;
    (void)job_id;
    (void)ptag;
    (void)cookie;
    (void)limits;
    return GNI_RC_PERMISSION_ERROR;
}

/* A NULL ntt_desc is legal: then this is GNI_ConfigureJob() and ntt_base is not used. */
gni_return_t GNI_ConfigureNTTandJob(int device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                    gni_job_limits_t *limits, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base)
{
    (void)device_id;
    (void)job_id;
    (void)ptag;
    (void)cookie;
    (void)limits;
    if (ntt_desc != NULL && ntt_base == NULL)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_PERMISSION_ERROR;
}
