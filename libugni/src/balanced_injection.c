/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Balanced injection: settings that can be read and not changed.
 *
 * The original throttles what a node injects, in percent of the bandwidth or as a number of
 * outstanding-request-buffer entries. The emulated device injects without limit: reading shows the defaults (100
 * percent, all 992 entries, never updated), writing is privileged and answers GNI_RC_PERMISSION_ERROR once the
 * arguments are in order (see job.c for why nobody is privileged), and as no update can be pending, waiting for
 * one succeeds at once. A node has one device, number 0. No state, any thread. Source: uGNI spec 2.18, 3.13, 4.3.
 */
#include <gni_pub.h>

#include <stdbool.h>

#define KNOWN_FLAGS                                                                                \
    (GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE | GNI_BI_FLAG_USE_DEFAULT_SETTINGS | \
     GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES)

static bool device_exists(uint32_t device_id)
{
    return device_id == 0;
}

gni_return_t GNI_SetBIConfig(uint32_t device_id, uint16_t bw, uint16_t aot_bw, uint16_t modes)
{
    uint16_t max = GNI_BI_INJECT_BW_MAX;

    if (!device_exists(device_id) || (modes & ~KNOWN_FLAGS) != 0)
        return GNI_RC_INVALID_PARAM;
    if ((modes & GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES) != 0)
        max = GNI_BI_INJECT_BW_ORB_MAX;
    if ((modes & GNI_BI_FLAG_USE_DEFAULT_SETTINGS) == 0 && (bw > max || aot_bw > max))
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_PERMISSION_ERROR;
}

gni_return_t GNI_GetBIConfig(uint32_t device_id, gni_bi_desc_t *desc)
{
    if (!device_exists(device_id) || desc == NULL)
        return GNI_RC_INVALID_PARAM;
    *desc = (gni_bi_desc_t){
        .current_bw = GNI_BI_INJECT_BW_MAX,
        .current_aot_bw = GNI_BI_INJECT_BW_MAX,
        .current_norbs = GNI_BI_INJECT_BW_ORB_MAX,
        .flags = GNI_BI_FLAG_USE_DEFAULT_SETTINGS,
        .sys_def_bw = GNI_BI_INJECT_BW_MAX,
        .sys_def_aot_bw = GNI_BI_INJECT_BW_MAX,
    };
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_BISyncWait(uint32_t device_id, uint32_t timeout)
{
    (void)timeout;
    if (!device_exists(device_id))
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_SUCCESS;
}
