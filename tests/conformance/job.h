/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of job control share. Includes pair.h; each program includes this once.
 */
#ifndef TESTS_CONFORMANCE_JOB_H
#define TESTS_CONFORMANCE_JOB_H

#define CRAY_CONFIG_GHAL_ARIES
#include <errno.h>
#include <grp.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/common/proc.h"
#include "tests/common/raw.h"
#include "tests/conformance/pair.h"

#define JOB_ID 4711ull
#define COOKIE 0x00c0ffee
#define PTAG   90

/* What leaves everything as it is. */
static inline gni_job_limits_t no_limits(void)
{
    gni_job_limits_t limits;

    memset(&limits, 0xff, sizeof(limits));
    return limits;
}

/* Attaches to a job and goes again. */
static inline gni_return_t try_attach(uint8_t ptag, uint32_t cookie, uint32_t nid, uint32_t modes)
{
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t address;
    gni_return_t rc;

    fx_set_node(nid);
    assert_int_equal(GNI_CdmCreate(1, ptag, cookie, modes | GNI_CDM_MODE_ERR_NO_KILL, &cdm), GNI_RC_SUCCESS);
    rc = GNI_CdmAttach(cdm, 0, &address, &nic);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    return rc;
}

/* Exit status of a body in a process of its own. */
static inline int in_child(int (*body)(void))
{
    int status = -1;
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        close(fx.admin.fd);
        _exit(body());
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* ---- declaring ---- */

static inline bool job_is_gone(void *arg)
{
    uint8_t ptag;

    (void)arg;
    return GNI_GetPtag(0, COOKIE, &ptag) == GNI_RC_NO_MATCH;
}

#endif
