/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which device programs see. A Gemini lacks what came with Aries: second-generation atomics, collective engines,
 * flagged responses, some routing modes; and has what Aries dropped: MRT and GART entries.
 */
#ifndef LIBUGNI_DEVICE_H
#define LIBUGNI_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include <gni_pub.h>

/* EMUNIC_DEVICE, else emunic's machine; an Aries when there is nobody to ask. May open a connection. */
gni_nic_device_t gnii_device(void);

/* EMUNIC_DEVICE, else `device` (enum emu_device, from a domain table). No system call. */
gni_nic_device_t gnii_device_of(uint32_t device);

/* What this process was last told; it asks only if that never was. For polls. Any thread. */
gni_nic_device_t gnii_device_known(void);

/* Bits of dlvr_mode and rdma_mode that came with Aries. */
#define GNII_ARIES_DLVMODES                                                                                            \
    (GNI_DLVMODE_NMIN_HASH | GNI_DLVMODE_MIN_HASH | GNI_DLVMODE_ADAPTIVE1 | GNI_DLVMODE_ADAPTIVE2 |                    \
     GNI_DLVMODE_ADAPTIVE3)
#define GNII_ARIES_RDMAMODES GNI_RDMAMODE_GETWC_DIS

#endif
