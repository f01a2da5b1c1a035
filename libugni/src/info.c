/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device, job and library information. These calls work before any communication domain exists, and outside a job
 * they answer without a word on stderr: programs ask them while they look around.
 *
 * There is one device, an Aries. Which node this process is on comes from the launcher's environment, else from
 * emunic. Resource figures come from emunic; without one, the limits of an idle device are told.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/credentials.h"
#include "libugni/src/ugni.h"

#define NTT_GRANULARITY 1u

gni_return_t GNI_GetNumLocalDevices(int *num_devices)
{
    if (!num_devices)
        return GNI_RC_INVALID_PARAM;
    *num_devices = 1;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetLocalDeviceIds(int len, int *device_ids)
{
    if (!device_ids || len < 1)
        return GNI_RC_INVALID_PARAM;
    device_ids[0] = 0;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetVersion(uint32_t *version)
{
    if (!version)
        return GNI_RC_INVALID_PARAM;
    *version = GNI_VERSION;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetVersionInformation(gni_version_info_t *version_info)
{
    if (!version_info)
        return GNI_RC_INVALID_PARAM;
    memset(version_info, 0, sizeof(*version_info));
    version_info->ugni_version = GNI_VERSION;
    version_info->kgni_version = GNI_VERSION;
    snprintf(version_info->ugni_build_string, sizeof(version_info->ugni_build_string), "emunic libugni");
    snprintf(version_info->kgni_build_string, sizeof(version_info->kgni_build_string), "emunic ABI %u",
             EMU_ABI_VERSION);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetDeviceType(gni_nic_device_t *dev_type)
{
    if (!dev_type)
        return GNI_RC_INVALID_PARAM;
    *dev_type = GNI_DEVICE_ARIES;
    return GNI_RC_SUCCESS;
}

/* One question to emunic on a connection of its own. */
static int ask(struct emu_msg *msg)
{
    char name[EMU_SERVER_NAME_MAX + 1];
    struct emu_session session;
    int r;

    r = emu_session_open(&session, emu_session_default_server(name, sizeof(name)), EMU_SOCKET_CONTROL);
    if (r < 0)
        return r;
    r = emu_session_request(&session, msg, NULL, 0, NULL);
    emu_session_close(&session);
    return r < 0 ? r : msg->result;
}

static bool nid_from_environment(uint32_t *nid_out)
{
    const char *text = getenv("EMUNIC_NID");
    unsigned long nid;
    char *end;

    if (!text || !text[0])
        return false;
    nid = strtoul(text, &end, 10);
    if (*end || nid > EMU_NID_MAX)
        return false;
    *nid_out = (uint32_t)nid;
    return true;
}

gni_return_t GNI_CdmGetNicAddress(uint32_t device_id, uint32_t *address, uint32_t *cpu_id)
{
    struct emu_msg msg = { .type = EMU_MSG_WHERE };
    uint32_t nid;

    if (!address || !cpu_id)
        return GNI_RC_INVALID_PARAM;
    if (device_id != 0)
        return GNI_RC_NO_MATCH;
    if (!nid_from_environment(&nid)) {
        if (ask(&msg) < 0)
            return GNI_RC_NO_MATCH;
        nid = msg.rank.nid;
    }
    *address = nid;
    *cpu_id = 0;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetPtag(uint32_t device_id, uint32_t cookie, uint8_t *ptag)
{
    if (!ptag)
        return GNI_RC_INVALID_PARAM;
    if (device_id != 0)
        return GNI_RC_NO_MATCH;
    *ptag = (uint8_t)emu_ptag_of_cookie(cookie);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetNttGran(uint32_t device_id, uint32_t *ntt_gran)
{
    if (!ntt_gran || device_id != 0)
        return GNI_RC_INVALID_PARAM;
    *ntt_gran = NTT_GRANULARITY;
    return GNI_RC_SUCCESS;
}

/* ---- resources ---- */

struct figures {
    uint64_t used;
    uint64_t limit;
};

/* What an Aries has when nobody uses it; also the answer when emunic cannot be asked. */
static struct figures ask_resource(enum emu_resource resource, uint64_t idle_limit)
{
    struct emu_msg msg = { .type = EMU_MSG_RESOURCES, .resources = { .resource = resource } };

    if (ask(&msg) < 0)
        return (struct figures){ .limit = idle_limit };
    return (struct figures){ .used = msg.resources.used, .limit = msg.resources.limit };
}

static bool figures_of(enum emu_resource resource, struct figures *figures_out)
{
    switch (resource) {
    case EMU_RESOURCE_MDD:
        *figures_out = ask_resource(resource, EMU_MDH_COUNT - 1);
        return true;
    case EMU_RESOURCE_CQ:
        *figures_out = ask_resource(resource, EMU_CQS_MAX * 4);
        return true;
    case EMU_RESOURCE_FMA:
        *figures_out = ask_resource(resource, 127);
        return true;
    case EMU_RESOURCE_BTE:
        *figures_out = ask_resource(resource, EMU_RING_SLOTS);
        return true;
    case EMU_RESOURCE_CE:
        *figures_out = ask_resource(resource, 4);
        return true;
    default:
        return false;
    }
}

gni_return_t GNI_GetDevResInfo(uint32_t device_id, gni_dev_res_t res_type, gni_dev_res_desc_t *res_desc)
{
    static const enum emu_resource resource_of[GNI_DEV_RES_LAST] = {
        [GNI_DEV_RES_MDD] = EMU_RESOURCE_MDD, [GNI_DEV_RES_CQ] = EMU_RESOURCE_CQ,
        [GNI_DEV_RES_FMA] = EMU_RESOURCE_FMA, [GNI_DEV_RES_CE] = EMU_RESOURCE_CE,
    };
    struct figures f;

    if (!res_desc || device_id != 0 || res_type <= GNI_DEV_RES_FIRST || res_type >= GNI_DEV_RES_LAST)
        return GNI_RC_INVALID_PARAM;
    if (!figures_of(resource_of[res_type], &f))
        return GNI_RC_ERROR_RESOURCE;
    *res_desc = (gni_dev_res_desc_t){ .available = f.limit > f.used ? f.limit - f.used : 0, .reserved = 0,
                                      .held = f.used, .total = f.limit };
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type, gni_job_res_desc_t *res_desc)
{
    static const enum emu_resource resource_of[GNI_JOB_RES_LAST] = {
        [GNI_JOB_RES_MDD] = EMU_RESOURCE_MDD,  [GNI_JOB_RES_CQ] = EMU_RESOURCE_CQ,
        [GNI_JOB_RES_FMA] = EMU_RESOURCE_FMA,  [GNI_JOB_RES_RMDA] = EMU_RESOURCE_BTE,
        [GNI_JOB_RES_CE] = EMU_RESOURCE_CE,    [GNI_JOB_RES_SFMA] = EMU_RESOURCE_FMA,
    };
    struct figures f;

    (void)ptag;     /* figures are the device's: jobs have no limits of their own */
    if (!res_desc || device_id != 0 || res_type <= GNI_JOB_RES_FIRST || res_type >= GNI_JOB_RES_LAST)
        return GNI_RC_INVALID_PARAM;
    if (!figures_of(resource_of[res_type], &f))
        return GNI_RC_ERROR_RESOURCE;
    *res_desc = (gni_job_res_desc_t){ .used = f.used, .limit = f.limit };
    return GNI_RC_SUCCESS;
}

/* ---- statistics ---- */

/* Retransmissions are emunic's work and in its count; ours is what the last reset left behind. */
static uint32_t value_of(const struct gnii_nic *nic, gni_statistic_t stat)
{
    if (stat != GNI_STAT_SMSG_RETRANS_COUNT)
        return nic->stats[stat];
    return atomic_load_explicit(&nic->port.segment->retransmits, memory_order_relaxed) - nic->stats[stat];
}

gni_return_t GNI_GetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat, uint32_t *value)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);

    if (!nic || !value || (unsigned)stat >= GNII_STATS)
        return GNI_RC_INVALID_PARAM;
    gnii_lock(&nic->lock);
    *value = value_of(nic, stat);
    gnii_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_ResetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);

    if (!nic || (unsigned)stat >= GNII_STATS)
        return GNI_RC_INVALID_PARAM;
    gnii_lock(&nic->lock);
    nic->stats[stat] = stat == GNI_STAT_SMSG_RETRANS_COUNT ? value_of(nic, stat) + nic->stats[stat] : 0;
    gnii_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}
