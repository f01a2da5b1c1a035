/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Job control, for launchers.
 *
 * The privilege is the right to talk to emunic's admin socket: root, or the user that emunic runs as. Everybody else
 * gets PERMISSION_ERROR. The work is emunic's (daemon/jobs/job_control.c); here arguments become one request. The
 * device says which form unions have: a Gemini's translation table is a list of addresses (u.table), its limits are MRT
 * and GART entries. Any thread. Source: spec/ugni.md 2.18, 3.7, 3.9, 4.2.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gni_pub.h>

#include "libugni/src/ask.h"
#include "libugni/src/device.h"
#include "libugni/src/rc.h"

#define CLEAR_ALL UINT32_MAX

/* ---- suspending ---- */

static gni_return_t ask_about_job(enum gnii_call call, uint32_t device_id, const struct emu_msg_job *job)
{
    struct emu_msg msg = { .type = call == GNII_CALL_RESUME ? EMU_MSG_JOB_RESUME : EMU_MSG_JOB_SUSPEND, .job = *job };

    if (device_id != 0)
        return GNI_RC_INVALID_PARAM;
    return gnii_rc(call, gnii_ask(EMU_SOCKET_ADMIN, &msg, -1));
}

gni_return_t GNI_SuspendJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie, uint32_t timeout)
{
    struct emu_msg_job job = { .job_id = job_id, .ptag = ptag, .cookie = cookie, .timeout_ms = timeout };

    return ask_about_job(timeout == 0 ? GNII_CALL_SUSPEND_NOW : GNII_CALL_SUSPEND, device_id, &job);
}

gni_return_t GNI_ResumeJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie)
{
    struct emu_msg_job job = { .job_id = job_id, .ptag = ptag, .cookie = cookie };

    return ask_about_job(GNII_CALL_RESUME, device_id, &job);
}

/* ---- configuring ---- */

static struct emu_ntt_entry entry_of(const gni_ntt_descriptor_t *desc, uint32_t i, bool is_gemini)
{
    if (is_gemini) /* no replacements there */
        return (struct emu_ntt_entry){ .blck_addr = desc->u.table[i] };
    return (struct emu_ntt_entry){ desc->u.table_v2[i].blck_addr, desc->u.table_v2[i].rplc_addr,
                                   desc->u.table_v2[i].rplc_size };
}

/* A memfd with the table, or a negative errno. */
static int make_table(const gni_ntt_descriptor_t *desc)
{
    size_t bytes = (size_t)desc->group_size * sizeof(struct emu_ntt_entry);
    bool is_gemini = gnii_device() == GNI_DEVICE_GEMINI;
    struct emu_ntt_entry *entries;
    int fd;

    if (desc->group_size == 0)
        return -EINVAL;
    if (desc->group_size > EMU_NTT_ENTRIES)
        return -ENOSPC;
    entries = calloc(desc->group_size, sizeof(*entries));
    if (!entries)
        return -ENOMEM;
    for (uint32_t i = 0; i < desc->group_size; i++)
        entries[i] = entry_of(desc, i, is_gemini);
    fd = memfd_create("emunic-ntt", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, entries, bytes) != (ssize_t)bytes) {
        close(fd);
        fd = -1;
    }
    free(entries);
    return fd < 0 ? -ENOMEM : fd;
}

static gni_return_t configure(struct emu_msg *msg, const gni_ntt_descriptor_t *desc, uint32_t *ntt_base)
{
    int fd = -1;
    int r;

    msg->type = EMU_MSG_JOB_CONFIGURE;
    msg->job.nid_wanted = gnii_nid_of_environment();
    if (desc) {
        fd = make_table(desc);
        if (fd < 0)
            return gnii_rc(GNII_CALL_CONFIGURE, fd);
        msg->job.flags |= EMU_JOB_NTT;
        msg->job.group_size = desc->group_size;
        msg->job.granularity = desc->granularity;
    }
    r = gnii_ask(EMU_SOCKET_ADMIN, msg, fd);
    if (fd >= 0)
        close(fd);
    if (r == 0 && desc)
        *ntt_base = (uint32_t)msg->job.ntt_base;
    return gnii_rc(GNII_CALL_CONFIGURE, r);
}

static gni_return_t clear_table(const gni_ntt_descriptor_t *desc, uint32_t ntt_base)
{
    struct emu_msg msg = { .type = EMU_MSG_NTT_CLEAR,
                           .job = { .group_size = desc->group_size, .ntt_base = (int32_t)ntt_base } };

    if ((desc->group_size == CLEAR_ALL) != (ntt_base == (uint32_t)-1))
        return GNI_RC_INVALID_PARAM;
    return gnii_rc(GNII_CALL_CONFIGURE, gnii_ask(EMU_SOCKET_ADMIN, &msg, -1));
}

gni_return_t GNI_ConfigureNTT(int device_id, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base)
{
    struct emu_msg msg = { .type = 0 };

    if (!ntt_desc || !ntt_base)
        return GNI_RC_INVALID_PARAM;
    if (device_id != 0)
        return GNI_RC_NO_MATCH;
    return ntt_desc->u.table_v2 ? configure(&msg, ntt_desc, ntt_base) : clear_table(ntt_desc, *ntt_base);
}

/* The union's bytes are limits of their own on Aries; 0xff is the byte of GNI_JOB_INVALID_LIMIT. */
static int32_t limit_of_byte(uint8_t byte)
{
    return byte == (uint8_t)GNI_JOB_INVALID_LIMIT ? EMU_JOB_LIMIT_NONE : byte;
}

/* The unions: MRT and GART entries of a Gemini, engines and address space of an Aries. */
static void set_limits_of_device(struct emu_msg_job *job, const gni_job_limits_t *limits)
{
    job->ce_limit = job->iommu_limit = job->mrt_limit = job->gart_limit = EMU_JOB_LIMIT_NONE;
    if (gnii_device() == GNI_DEVICE_GEMINI) {
        job->mrt_limit = limits->a.mrt_limit;
        job->gart_limit = limits->b.gart_limit;
        return;
    }
    job->ce_limit = limit_of_byte(limits->a.m.ce_limit);
    job->iommu_limit = limit_of_byte(limits->a.m.iommu_limit);
}

static gni_return_t set_limits(struct emu_msg_job *job, const gni_job_limits_t *limits)
{
    if (!limits)
        return GNI_RC_SUCCESS;
    /* There is no DLA here, so its limit limits nothing; but it has to be one, as that of a Gemini's GART. */
    if (limits->b.dla_limit < GNI_JOB_INVALID_LIMIT || limits->ntt_size < GNI_JOB_INVALID_LIMIT)
        return GNI_RC_INVALID_PARAM;
    job->flags |= EMU_JOB_LIMITS;
    job->mdd_limit = limits->mdd_limit;
    job->cq_limit = limits->cq_limit;
    job->fma_limit = limits->fma_limit;
    job->bte_limit = limits->bte_limit;
    set_limits_of_device(job, limits);
    job->ntt_base = limits->ntt_size > 0 ? limits->ntt_base : -1;
    job->ntt_size = limits->ntt_size > 0 ? limits->ntt_size : 0;
    if (limits->ntt_ctrl != GNI_JOB_INVALID_LIMIT && (limits->ntt_ctrl & GNI_JOB_CTRL_NTT_CLEANUP))
        job->flags |= EMU_JOB_NTT_CLEANUP;
    return GNI_RC_SUCCESS;
}

static gni_return_t declare(int device_id, const struct emu_msg_job *triple, const gni_job_limits_t *limits,
                            const gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base)
{
    struct emu_msg msg = { .job = *triple };
    gni_return_t rc;

    if (device_id != 0)
        return GNI_RC_NO_MATCH;
    msg.job.flags = EMU_JOB_DECLARE;
    msg.job.ntt_base = -1;
    rc = set_limits(&msg.job, limits);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    if (ntt_desc) { /* brings its own range */
        msg.job.ntt_base = -1;
        msg.job.ntt_size = 0;
    }
    return configure(&msg, ntt_desc, ntt_base);
}

gni_return_t GNI_ConfigureJob(uint32_t device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                              gni_job_limits_t *limits)
{
    struct emu_msg_job triple = { .job_id = job_id, .ptag = ptag, .cookie = cookie };

    return declare((int)device_id, &triple, limits, NULL, NULL);
}

gni_return_t GNI_ConfigureNTTandJob(int device_id, uint64_t job_id, uint8_t ptag, uint32_t cookie,
                                    gni_job_limits_t *limits, gni_ntt_descriptor_t *ntt_desc, uint32_t *ntt_base)
{
    struct emu_msg_job triple = { .job_id = job_id, .ptag = ptag, .cookie = cookie };

    /* Without a table there is nothing to allocate, and clearing is not for this call. */
    if (ntt_desc && (!ntt_base || !ntt_desc->u.table_v2))
        return GNI_RC_INVALID_PARAM;
    return declare(device_id, &triple, limits, ntt_desc, ntt_base);
}
