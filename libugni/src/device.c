/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which device programs see.
 *
 * The machine file says it (nic.device). A NIC handle has it from its domain table; whoever asks before the first
 * attach gets it from emunic, by a request on a connection of its own. EMUNIC_DEVICE overrides both, for programs
 * that refuse the machine's. It changes what this library promises and refuses, and nothing in emunic: a machine
 * without collective engines stays without.
 */
#include "libugni/src/device.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/abi.h"
#include "emunic/base/log.h"
#include "libugni/src/ask.h"

static_assert((int)EMU_DEVICE_GEMINI == (int)GNI_DEVICE_GEMINI && (int)EMU_DEVICE_ARIES == (int)GNI_DEVICE_ARIES,
              "device numbers");

#define UNKNOWN UINT32_MAX

static _Atomic uint32_t known = UNKNOWN;

static bool device_of_setting(gni_nic_device_t *device_out)
{
    const char *text = getenv("EMUNIC_DEVICE");

    if (!text || !text[0])
        return false;
    if (strcmp(text, "gemini") == 0) {
        *device_out = GNI_DEVICE_GEMINI;
        return true;
    }
    if (strcmp(text, "aries") == 0) {
        *device_out = GNI_DEVICE_ARIES;
        return true;
    }
    emu_log(EMU_LOG_WARN, "EMUNIC_DEVICE is neither aries nor gemini; the machine decides");
    return false;
}

gni_nic_device_t gnii_device_of(uint32_t device)
{
    gni_nic_device_t shown = device == EMU_DEVICE_GEMINI ? GNI_DEVICE_GEMINI : GNI_DEVICE_ARIES;

    device_of_setting(&shown);
    atomic_store_explicit(&known, (uint32_t)shown, memory_order_relaxed);
    return shown;
}

gni_nic_device_t gnii_device(void)
{
    struct emu_msg msg = { .type = EMU_MSG_MACHINE };
    gni_nic_device_t wanted;

    if (device_of_setting(&wanted))
        return wanted;
    if (gnii_ask(EMU_SOCKET_CONTROL, &msg, -1) != 0)
        return GNI_DEVICE_ARIES;
    return gnii_device_of(msg.machine.device);
}

gni_nic_device_t gnii_device_known(void)
{
    uint32_t device = atomic_load_explicit(&known, memory_order_relaxed);

    return device == UNKNOWN ? gnii_device() : (gni_nic_device_t)device;
}
