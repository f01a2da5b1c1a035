/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The settings that a user gives by the environment. Source: spec/dmapp.md 4.17.
 */
#include <stdio.h>
#include <stdlib.h>

#include "emunic/base/number.h"
#include "mpi-shim/shmem/src/sma_calls.h"

#define ROUTING_MODE_MAX DMAPP_ROUTING_ADAPTIVE

static const char *first_of(const char *const names[])
{
    for (; *names; names++) {
        const char *text = getenv(*names);

        if (text && *text)
            return text;
    }
    return NULL;
}

bool smai_is_on(const char *name, const char *other_name)
{
    const char *text = first_of((const char *const[]){ name, other_name, NULL });

    return text && strcmp(text, "0") != 0;
}

bool smai_heap_bytes(int npes, char *text_out, size_t text_bytes)
{
    static const char *const names[] = { "SHMEM_SYMMETRIC_SIZE", "SMA_SYMMETRIC_SIZE", "XT_SYMMETRIC_HEAP_SIZE", NULL };
    static const char suffixes[] = "kmgt";
    const char *text = first_of(names);
    const char *suffix;
    double bytes;
    char *end;

    if (!text || *text < '0' || *text > '9')
        return false;
    bytes = strtod(text, &end);
    suffix = *end ? strchr(suffixes, *end | 0x20) : NULL;
    for (long i = suffix ? suffix - suffixes : -1; i >= 0; i--)
        bytes *= 1024;
    if ((*end && (!suffix || end[1])) || !(bytes >= 1 && bytes < 1e18))
        return false;
    snprintf(text_out, text_bytes, "%llu", (unsigned long long)bytes + smai_channels_bytes(npes));
    return true;
}

/* A whole number; ends the job for any other word. */
static uint64_t number(const char *call, const char *name, uint64_t least, uint64_t most, uint64_t otherwise)
{
    const char *text = getenv(name);
    uint64_t value = otherwise;

    if (text && *text && !emu_parse_number(text, 10, least, most, &value))
        smai_fail(call, "%s: '%s' is not a number from %llu to %llu", name, text, (unsigned long long)least,
                  (unsigned long long)most);
    return value;
}

dmapp_rma_attrs_ext_t smai_dmapp_attrs(const char *call)
{
    uint8_t routing = (uint8_t)number(call, SMAI_ROUTING_MODE, 0, ROUTING_MODE_MAX, DMAPP_ROUTING_ADAPTIVE);

    return (dmapp_rma_attrs_ext_t){
        .max_outstanding_nb = (uint32_t)number(call, SMAI_OUTSTANDING, DMAPP_MIN_OUTSTANDING_NB,
                                               DMAPP_MAX_OUTSTANDING_NB, DMAPP_DEF_OUTSTANDING_NB),
        .offload_threshold = (uint32_t)number(call, SMAI_BTE_THRESHOLD, 0, UINT32_MAX, DMAPP_OFFLOAD_THRESHOLD),
        .put_relaxed_ordering = routing,
        .get_relaxed_ordering = routing,
        .max_concurrency = DMAPP_MAX_THREADS_UNLIMITED,
        .PI_ordering = DMAPP_PI_ORDERING_RELAXED,
    };
}
