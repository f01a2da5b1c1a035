/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device, job and library information. These calls work before any communication domain exists, and outside a job
 * they answer without a word on stderr: programs ask them while they look around.
 *
 * There is one device, of the machine's kind (device.c). Where this process is, what its job calls that node, which tag
 * belongs to a cookie and what is used of the node's resources comes from emunic's accounts (daemon/resources.c),
 * across all processes. Without an emunic the launcher's environment and the limits of an idle device are told, and no
 * cookie is known.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libugni/src/ask.h"
#include "libugni/src/device.h"
#include "libugni/src/ugni.h"

#define IDLE_NTT_GRANULARITY 1u

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
    *dev_type = gnii_device();
    return GNI_RC_SUCCESS;
}

/* Which of several jobs is meant, as the launcher has said; 0: it has not. */
static uint32_t cookie_of_environment(void)
{
    const char *text = getenv("EMUNIC_COOKIE");

    return text ? (uint32_t)strtoul(text, NULL, 0) : 0;
}

gni_return_t GNI_CdmGetNicAddress(uint32_t device_id, uint32_t *address, uint32_t *cpu_id)
{
    uint32_t nid = gnii_nid_of_environment();
    struct emu_msg msg = { .type = EMU_MSG_WHERE, .rank = { .cookie = cookie_of_environment(), .nid = nid } };

    if (!address || !cpu_id)
        return GNI_RC_INVALID_PARAM;
    if (device_id != 0)
        return GNI_RC_NO_MATCH;
    /* A job may call its nodes by other numbers: emunic knows. */
    if (gnii_ask(EMU_SOCKET_CONTROL, &msg, -1) == 0)
        nid = msg.rank.nid;
    if (nid == EMU_NID_NONE)
        return GNI_RC_NO_MATCH;
    *address = nid;
    *cpu_id = 0;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetPtag(uint32_t device_id, uint32_t cookie, uint8_t *ptag)
{
    struct emu_msg msg = { .type = EMU_MSG_PTAG, .ptag = { .cookie = cookie } };

    if (!ptag)
        return GNI_RC_INVALID_PARAM;
    if (device_id != 0 || gnii_ask(EMU_SOCKET_CONTROL, &msg, -1) != 0)
        return GNI_RC_NO_MATCH;
    *ptag = (uint8_t)msg.ptag.ptag;
    return GNI_RC_SUCCESS;
}

/* ---- resources ---- */

/* ptag 0: of the device. False: emunic cannot be asked. */
static bool ask_resource(enum emu_resource resource, uint8_t ptag, struct emu_msg_resources *answer_out)
{
    struct emu_msg msg = { .type = EMU_MSG_RESOURCES,
                           .resources = {
                               .resource = resource, .ptag = ptag, .nid_wanted = gnii_nid_of_environment() } };

    gnii_md_give_back_all(); /* what is parked would count */
    if (gnii_ask(EMU_SOCKET_CONTROL, &msg, -1) != 0)
        return false;
    *answer_out = msg.resources;
    return true;
}

/* The figures of one resource; without emunic, what a device has when nobody uses it. False: it has no such thing. */
static bool figures_of(enum emu_resource resource, uint8_t ptag, struct emu_msg_resources *figures_out)
{
    static const uint64_t idle_limits[EMU_RESOURCE_END] = {
        [EMU_RESOURCE_MDD] = EMU_MDH_COUNT - 1,
        [EMU_RESOURCE_CQ] = EMU_CQS_MAX * 4,
        [EMU_RESOURCE_FMA] = 127,
        [EMU_RESOURCE_BTE] = EMU_RING_SLOTS,
        [EMU_RESOURCE_CE] = 4,
        [EMU_RESOURCE_IOMMU] = 1u << 27,
        [EMU_RESOURCE_SFMA] = EMU_PORTS_MAX,
        [EMU_RESOURCE_MRT] = EMU_MRT_ENTRIES,
        [EMU_RESOURCE_GART] = EMU_GART_ENTRIES,
    };

    if (resource == 0)
        return false;
    if (!ask_resource(resource, ptag, figures_out))
        *figures_out = (struct emu_msg_resources){ .limit = idle_limits[resource] };
    return true;
}

gni_return_t GNI_GetNttGran(uint32_t device_id, uint32_t *ntt_gran)
{
    struct emu_msg_resources table;

    if (!ntt_gran || device_id != 0)
        return GNI_RC_INVALID_PARAM;
    *ntt_gran = ask_resource(EMU_RESOURCE_NTT, 0, &table) ? (uint32_t)table.reserved : IDLE_NTT_GRANULARITY;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetDevResInfo(uint32_t device_id, gni_dev_res_t res_type, gni_dev_res_desc_t *res_desc)
{
    static const enum emu_resource resource_of[GNI_DEVICE_PISCES][GNI_DEV_RES_LAST] = {
        [GNI_DEVICE_GEMINI] = { [GNI_DEV_RES_MDD] = EMU_RESOURCE_MDD,
                                [GNI_DEV_RES_CQ] = EMU_RESOURCE_CQ,
                                [GNI_DEV_RES_FMA] = EMU_RESOURCE_FMA,
                                [GNI_DEV_RES_MRT] = EMU_RESOURCE_MRT },
        [GNI_DEVICE_ARIES] = { [GNI_DEV_RES_MDD] = EMU_RESOURCE_MDD,
                               [GNI_DEV_RES_CQ] = EMU_RESOURCE_CQ,
                               [GNI_DEV_RES_FMA] = EMU_RESOURCE_FMA,
                               [GNI_DEV_RES_CE] = EMU_RESOURCE_CE },
    };
    struct emu_msg_resources f;
    uint64_t taken;

    if (!res_desc || device_id != 0 || res_type <= GNI_DEV_RES_FIRST || res_type >= GNI_DEV_RES_LAST)
        return GNI_RC_INVALID_PARAM;
    if (!figures_of(resource_of[gnii_device()][res_type], 0, &f))
        return GNI_RC_ERROR_RESOURCE;
    taken = f.used + f.reserved;
    *res_desc = (gni_dev_res_desc_t){
        .available = f.limit > taken ? f.limit - taken : 0, .reserved = f.reserved, .held = f.used, .total = f.limit
    };
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_GetJobResInfo(uint32_t device_id, uint8_t ptag, gni_job_res_t res_type, gni_job_res_desc_t *res_desc)
{
    static const enum emu_resource resource_of[GNI_DEVICE_PISCES][GNI_JOB_RES_LAST] = {
        [GNI_DEVICE_GEMINI] = { [GNI_JOB_RES_MDD] = EMU_RESOURCE_MDD,
                                [GNI_JOB_RES_CQ] = EMU_RESOURCE_CQ,
                                [GNI_JOB_RES_FMA] = EMU_RESOURCE_FMA,
                                [GNI_JOB_RES_RMDA] = EMU_RESOURCE_BTE,
                                [GNI_JOB_RES_SFMA] = EMU_RESOURCE_SFMA,
                                [GNI_JOB_RES_MRT] = EMU_RESOURCE_MRT,
                                [GNI_JOB_RES_GART] = EMU_RESOURCE_GART },
        [GNI_DEVICE_ARIES] = { [GNI_JOB_RES_MDD] = EMU_RESOURCE_MDD,
                               [GNI_JOB_RES_CQ] = EMU_RESOURCE_CQ,
                               [GNI_JOB_RES_FMA] = EMU_RESOURCE_FMA,
                               [GNI_JOB_RES_RMDA] = EMU_RESOURCE_BTE,
                               [GNI_JOB_RES_SFMA] = EMU_RESOURCE_SFMA,
                               [GNI_JOB_RES_CE] = EMU_RESOURCE_CE,
                               [GNI_JOB_RES_IOMMU] = EMU_RESOURCE_IOMMU },
    };
    struct emu_msg_resources f;

    if (!res_desc || ptag == 0 || device_id != 0 || res_type <= GNI_JOB_RES_FIRST || res_type >= GNI_JOB_RES_LAST)
        return GNI_RC_INVALID_PARAM;
    if (!figures_of(resource_of[gnii_device()][res_type], ptag, &f))
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
    emu_biased_lock(&nic->lock);
    *value = value_of(nic, stat);
    emu_biased_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_ResetNicStat(gni_nic_handle_t nic_hndl, gni_statistic_t stat)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);

    if (!nic || (unsigned)stat >= GNII_STATS)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&nic->lock);
    nic->stats[stat] = stat == GNI_STAT_SMSG_RETRANS_COUNT ? value_of(nic, stat) + nic->stats[stat] : 0;
    emu_biased_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}
