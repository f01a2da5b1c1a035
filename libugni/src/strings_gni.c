/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and texts: return codes, statistics, resources, and the status of a completion queue entry.
 *
 * The two public arrays hold the enumerators' names; gni_statistic_str[] always has the long (Aries) list,
 * because a program indexes it with the GNI_NUM_STATS of its own compilation. The texts of entries and what is
 * recoverable stand in one table, a row per status number. Nothing here needs a NIC, an allocation or a lock, so
 * all of it may be called from any thread and from signal handlers.
 *
 * Recoverable means that the same transaction, posted again, may succeed without anybody doing something first:
 * only failures of the network itself. Source: spec/ugni.md 2.4, 2.19, 4.9, 7.3, 7.24.
 */
#define CRAY_CONFIG_GHAL_ARIES

#include <gni_pub.h>

#include <assert.h>
#include <string.h>

#include "libugni/src/cqe.h"

const char *gni_err_str[] = {
    [GNI_RC_SUCCESS] = "GNI_RC_SUCCESS",
    [GNI_RC_NOT_DONE] = "GNI_RC_NOT_DONE",
    [GNI_RC_INVALID_PARAM] = "GNI_RC_INVALID_PARAM",
    [GNI_RC_ERROR_RESOURCE] = "GNI_RC_ERROR_RESOURCE",
    [GNI_RC_TIMEOUT] = "GNI_RC_TIMEOUT",
    [GNI_RC_PERMISSION_ERROR] = "GNI_RC_PERMISSION_ERROR",
    [GNI_RC_DESCRIPTOR_ERROR] = "GNI_RC_DESCRIPTOR_ERROR",
    [GNI_RC_ALIGNMENT_ERROR] = "GNI_RC_ALIGNMENT_ERROR",
    [GNI_RC_INVALID_STATE] = "GNI_RC_INVALID_STATE",
    [GNI_RC_NO_MATCH] = "GNI_RC_NO_MATCH",
    [GNI_RC_SIZE_ERROR] = "GNI_RC_SIZE_ERROR",
    [GNI_RC_TRANSACTION_ERROR] = "GNI_RC_TRANSACTION_ERROR",
    [GNI_RC_ILLEGAL_OP] = "GNI_RC_ILLEGAL_OP",
    [GNI_RC_ERROR_NOMEM] = "GNI_RC_ERROR_NOMEM",
};
static_assert(sizeof(gni_err_str) / sizeof(gni_err_str[0]) == 14, "one text per return code");

const char *gni_statistic_str[] = {
    [GNI_STAT_SMSG_BUFF_CREDITS_STALL] = "GNI_STAT_SMSG_BUFF_CREDITS_STALL",
    [GNI_STAT_SMSG_DLA_STALL] = "GNI_STAT_SMSG_DLA_STALL",
    [GNI_STAT_SMSG_MBOX_CREDITS_STALL] = "GNI_STAT_SMSG_MBOX_CREDITS_STALL",
    [GNI_STAT_SMSG_REQ_STALL] = "GNI_STAT_SMSG_REQ_STALL",
    [GNI_STAT_SMSG_RETRANS_COUNT] = "GNI_STAT_SMSG_RETRANS_COUNT",
    [GNI_STAT_SMSG_RETRANS_DLA_COUNT] = "GNI_STAT_SMSG_RETRANS_DLA_COUNT",
    [GNI_STAT_SMSG_RETRANS_STALL] = "GNI_STAT_SMSG_RETRANS_STALL",
    [GNI_STAT_DLA_ALLOC_STATUS_STALL] = "GNI_STAT_DLA_ALLOC_STATUS_STALL",
    [GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT] = "GNI_STAT_DLA_ALLOC_STATUS_TIMEOUT",
    [GNI_STAT_DLA_BLOCK_ORPHANED] = "GNI_STAT_DLA_BLOCK_ORPHANED",
    [GNI_STAT_DLA_BLOCK_RETRANS_COUNT] = "GNI_STAT_DLA_BLOCK_RETRANS_COUNT",
    [GNI_STAT_DLA_FREE_BLOCKS_STALL] = "GNI_STAT_DLA_FREE_BLOCKS_STALL",
    [GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL] = "GNI_STAT_DLA_FREE_FMAD_BLOCKS_STALL",
    [GNI_STAT_DLA_HIGH_RETRANS_COUNT] = "GNI_STAT_DLA_HIGH_RETRANS_COUNT",
    [GNI_STAT_DLA_OVERFLOW_RESEND] = "GNI_STAT_DLA_OVERFLOW_RESEND",
    [GNI_STAT_DLA_RETRANS_COUNT] = "GNI_STAT_DLA_RETRANS_COUNT",
    [GNI_STAT_DLA_TOTAL_RETRANS_COUNT] = "GNI_STAT_DLA_TOTAL_RETRANS_COUNT",
    [GNI_STAT_FLBTE_TXD_CORRUPT] = "GNI_STAT_FLBTE_TXD_CORRUPT",
    [GNI_STAT_FLBTE_TXD_NONE] = "GNI_STAT_FLBTE_TXD_NONE",
};
static_assert(sizeof(gni_statistic_str) / sizeof(gni_statistic_str[0]) == 19, "one text per statistic, long list");

static const char *const dev_res_names[GNI_DEV_RES_LAST] = {
    [GNI_DEV_RES_MDD] = "MDD", [GNI_DEV_RES_MRT] = "MRT", [GNI_DEV_RES_CQ] = "CQ",
    [GNI_DEV_RES_FMA] = "FMA", [GNI_DEV_RES_CE] = "CE",   [GNI_DEV_RES_DLA] = "DLA",
};

static const char *const job_res_names[GNI_JOB_RES_LAST] = {
    [GNI_JOB_RES_MDD] = "MDD", [GNI_JOB_RES_MRT] = "MRT",   [GNI_JOB_RES_IOMMU] = "IOMMU", [GNI_JOB_RES_GART] = "GART",
    [GNI_JOB_RES_CQ] = "CQ",   [GNI_JOB_RES_FMA] = "FMA",   [GNI_JOB_RES_RMDA] = "RMDA",   [GNI_JOB_RES_CE] = "CE",
    [GNI_JOB_RES_DLA] = "DLA", [GNI_JOB_RES_SFMA] = "SFMA",
};

struct status_row {
    const char *text;
    uint32_t recoverable;
};

static const struct status_row status_rows[GNII_CQE_STATUS_COUNT] = {
    [GNII_CQE_OK] = { "no error", 1 },
    [GNII_CQE_NETWORK] = { "network failure: the transaction did not reach the target", 1 },
    [GNII_CQE_PEER_GONE] = { "peer gone: the process or node behind the address has left", 0 },
    [GNII_CQE_BAD_REMOTE_HANDLE] = { "bad remote memory handle: not registered, or no longer", 0 },
    [GNII_CQE_REMOTE_RANGE] = { "remote range: address or length outside the registered region", 0 },
    [GNII_CQE_REMOTE_PERMISSION] = { "remote permission: the region does not allow this access", 0 },
    [GNII_CQE_REMOTE_CQ_FULL] = { "remote completion queue full: the event was lost", 0 },
    [GNII_CQE_LOCAL_ACCESS] = { "local access: the initiator's own memory could not be used", 0 },
    [GNII_CQE_RETRANSMIT_LIMIT] = { "retransmission limit reached", 1 },
    [GNII_CQE_CANCELLED] = { "cancelled before completion", 0 },
    [GNII_CQE_BAD_COMMAND] = { "malformed command refused by the device", 0 },
    [GNII_CQE_MISMATCH] = { "mismatch: the members of a reduction do not agree; emunic logs who", 0 },
};

static const char overrun_text[] = "completion queue overrun: entries were lost";

/* "unknown status " and up to three digits; without stdio, so that signal handlers may come here. */
static const char *unknown_status_text(char text[static 20], unsigned status)
{
    static const char prefix[] = "unknown status ";
    char *p = text + sizeof(prefix) - 1;

    memcpy(text, prefix, sizeof(prefix) - 1);
    if (status >= 100)
        *p++ = (char)('0' + status / 100);
    if (status >= 10)
        *p++ = (char)('0' + status / 10 % 10);
    *p++ = (char)('0' + status % 10);
    *p = '\0';
    return text;
}

static const char *resource_name(const char *const *names, unsigned count, unsigned res_type)
{
    return res_type < count && names[res_type] ? names[res_type] : "UNKNOWN";
}

const char *gni_dev_res_to_str(gni_dev_res_t res_type)
{
    return resource_name(dev_res_names, GNI_DEV_RES_LAST, (unsigned)res_type);
}

const char *gni_job_res_to_str(gni_job_res_t res_type)
{
    return resource_name(job_res_names, GNI_JOB_RES_LAST, (unsigned)res_type);
}

gni_return_t GNI_CqErrorStr(gni_cq_entry_t entry, void *buffer, uint32_t len)
{
    unsigned status = gnii_cqe_status(entry);
    char unknown[20];
    const char *text;
    size_t size_bytes;

    if (!buffer)
        return GNI_RC_INVALID_PARAM;

    if (status >= GNII_CQE_STATUS_COUNT)
        text = unknown_status_text(unknown, status);
    else if (status == GNII_CQE_OK && gnii_cqe_is_overrun(entry))
        text = overrun_text;
    else
        text = status_rows[status].text;

    size_bytes = strlen(text) + 1;
    if (len < size_bytes)
        return GNI_RC_SIZE_ERROR;
    memcpy(buffer, text, size_bytes);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CqErrorRecoverable(gni_cq_entry_t entry, uint32_t *recoverable)
{
    unsigned status = gnii_cqe_status(entry);

    if (!recoverable)
        return GNI_RC_INVALID_PARAM;
    if (status >= GNII_CQE_STATUS_COUNT)
        return GNI_RC_INVALID_STATE;

    if (status == GNII_CQE_OK && gnii_cqe_is_overrun(entry))
        *recoverable = 0; /* no transaction stands behind this word */
    else
        *recoverable = status_rows[status].recoverable;
    return GNI_RC_SUCCESS;
}
