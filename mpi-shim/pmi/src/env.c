/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What happens when the library is loaded: GNI credentials for readers that look only into the environment.
 *
 * When our launcher's EMUNIC_COOKIE and EMUNIC_PTAG are there and PMI_GNI_COOKIE is not, the pair is exported
 * as PMI_GNI_COOKIE and PMI_GNI_PTAG, one element each, in decimal (several readers use atoi). The launcher
 * normally exports both itself; this serves programs started another way, and it works for UCX, which loads
 * this library before it looks. PMI_GNI_DEV_ID and PMI_GNI_LOC_ADDR stay absent, as a pair: readers then ask
 * libugni. No fork, no input or output, no connection; PMI_NO_PREINITIALIZE and PMI_NO_FORK have nothing to
 * switch off. Source: spec/cray-runtime.md 2.1 and 2.6.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A number in any C base that fits 32 bits, as decimal. */
static const char *as_decimal(const char *text, char room[static 16])
{
    char *end;
    unsigned long long value;

    if (!text || *text == '\0' || *text == '-')
        return NULL;
    value = strtoull(text, &end, 0);
    if (*end != '\0' || value > UINT32_MAX)
        return NULL;
    snprintf(room, 16, "%llu", value);
    return room;
}

static void __attribute__((constructor)) export_credentials(void)
{
    char cookie_room[16], ptag_room[16];
    const char *cookie = as_decimal(getenv("EMUNIC_COOKIE"), cookie_room);
    const char *ptag = as_decimal(getenv("EMUNIC_PTAG"), ptag_room);

    if (getenv("PMI_GNI_COOKIE") || !cookie || !ptag)
        return;
    setenv("PMI_GNI_COOKIE", cookie, 0);
    setenv("PMI_GNI_PTAG", ptag, 0);
}
