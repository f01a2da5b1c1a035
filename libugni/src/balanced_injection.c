/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Balanced injection: how fast this process's node may put requests into the network.
 *
 * emunic keeps the limits of each node and paces what a limited node injects (daemon/injection.c). Setting is
 * privileged (see job.c); reading and waiting are not. An update is committed when no member of a job is on its way
 * past emunic any more; its number is hss_seqnum then, while cle_seqnum is that of the last update asked for. A node
 * has one device, number 0. Any thread. Source: spec/ugni.md 2.18, 3.13, 4.3.
 */
#include <stdbool.h>
#include <time.h>

#include <gni_pub.h>

#include "emunic/base/clock.h"
#include "libugni/src/ask.h"
#include "libugni/src/rc.h"

#define KNOWN_FLAGS                                                                                                    \
    (GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE | GNI_BI_FLAG_USE_DEFAULT_SETTINGS |                     \
     GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES)
#define LOOK_AGAIN_NS 200000

static bool device_exists(uint32_t device_id)
{
    return device_id == 0;
}

gni_return_t GNI_SetBIConfig(uint32_t device_id, uint16_t bw, uint16_t aot_bw, uint16_t modes)
{
    struct emu_msg msg = { .type = EMU_MSG_INJECTION_SET };
    uint16_t max = GNI_BI_INJECT_BW_MAX;

    if (!device_exists(device_id) || (modes & ~KNOWN_FLAGS) != 0)
        return GNI_RC_INVALID_PARAM;
    if ((modes & GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES) != 0)
        max = GNI_BI_INJECT_BW_ORB_MAX;
    if ((modes & GNI_BI_FLAG_USE_DEFAULT_SETTINGS) == 0 && (bw > max || aot_bw > max))
        return GNI_RC_INVALID_PARAM;
    msg.injection = (struct emu_msg_injection){
        .nid_wanted = gnii_nid_of_environment(), .flags = modes, .bw = bw, .aot_bw = aot_bw
    };
    return gnii_rc(GNII_CALL_INJECTION, gnii_ask(EMU_SOCKET_ADMIN, &msg, -1));
}

/* What the node has; without emunic, what a node has that nobody has limited. */
static struct emu_msg_injection ask_for_limits(void)
{
    struct emu_msg msg = { .type = EMU_MSG_INJECTION, .injection = { .nid_wanted = gnii_nid_of_environment() } };

    if (gnii_ask(EMU_SOCKET_CONTROL, &msg, -1) != 0)
        msg.injection = (struct emu_msg_injection){ .flags = GNI_BI_FLAG_USE_DEFAULT_SETTINGS,
                                                    .bw = GNI_BI_INJECT_BW_MAX,
                                                    .aot_bw = GNI_BI_INJECT_BW_MAX,
                                                    .norbs = GNI_BI_INJECT_BW_ORB_MAX,
                                                    .default_bw = GNI_BI_INJECT_BW_MAX,
                                                    .default_aot_bw = GNI_BI_INJECT_BW_MAX };
    return msg.injection;
}

gni_return_t GNI_GetBIConfig(uint32_t device_id, gni_bi_desc_t *desc)
{
    struct emu_msg_injection now;

    if (!device_exists(device_id) || !desc)
        return GNI_RC_INVALID_PARAM;
    now = ask_for_limits();
    *desc = (gni_bi_desc_t){
        .current_bw = now.bw,
        .current_aot_bw = now.aot_bw,
        .current_norbs = now.norbs,
        .flags = now.flags,
        .sys_def_bw = now.default_bw,
        .sys_def_aot_bw = now.default_aot_bw,
        .cle_seqnum = now.asked_seq,
        .hss_seqnum = now.done_seq,
    };
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_BISyncWait(uint32_t device_id, uint32_t timeout)
{
    uint64_t end_ns = emu_clock_ns() + timeout * 1000000ull;
    struct emu_msg_injection now;

    if (!device_exists(device_id))
        return GNI_RC_INVALID_PARAM;
    for (;;) {
        now = ask_for_limits();
        if (now.asked_seq == now.done_seq)
            return GNI_RC_SUCCESS;
        if (emu_clock_ns() >= end_ns)
            return GNI_RC_TIMEOUT;
        nanosleep(&(struct timespec){ .tv_nsec = LOOK_AGAIN_NS }, NULL);
    }
}
