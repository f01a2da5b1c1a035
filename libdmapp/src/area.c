/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of the library itself on the mapping of the heap: like the program's, without their checks.
 */
#include "libdmapp/src/transfer.h"

static bool place_of(dmapp_pe_t pe, const void *at, struct dmappi_place *place_out)
{
    struct dmappi_peer *peer = &dmappi_job.peers[pe];
    uint64_t offset = (uint64_t)((const uint8_t *)at - dmappi_job.heap_map);

    *place_out = (struct dmappi_place){ .addr = peer->area_addr + offset,
                                        .first = peer->area_addr,
                                        .end = peer->area_addr + dmappi_job.heap_map_bytes,
                                        .target = peer->seg[DMAPPI_SHEAP].target,
                                        .handle = &peer->seg[DMAPPI_SHEAP].handle,
                                        .peer = peer };
    return offset < dmappi_job.heap_map_bytes;
}

dmapp_return_t dmappi_area_put(dmapp_pe_t pe, const void *at, const void *data, uint64_t len_bytes)
{
    struct dmappi_place place;
    struct dmappi_call call;
    dmapp_return_t rc;

    if (!place_of(pe, at, &place))
        return DMAPP_RC_INVALID_PARAM;
    if (len_bytes <= GNII_LAUNCH_BYTES_MAX &&
        dmappi_launch(&place, GNII_LAUNCH_PUT, place.addr, (uint64_t)(uintptr_t)data, len_bytes, NULL))
        return DMAPP_RC_SUCCESS;
    rc = dmappi_call_begin(&call, DMAPPI_BLOCKING);
    return rc == DMAPP_RC_SUCCESS ? dmappi_call_end(&call, dmappi_put_bytes(&call, &place, data, len_bytes), NULL) : rc;
}

dmapp_return_t dmappi_area_get(dmapp_pe_t pe, const void *at, void *data, uint64_t len_bytes)
{
    struct dmappi_place place;
    struct dmappi_call call;
    dmapp_return_t rc;

    if (!place_of(pe, at, &place))
        return DMAPP_RC_INVALID_PARAM;
    if (len_bytes <= GNII_LAUNCH_BYTES_MAX &&
        dmappi_launch(&place, GNII_LAUNCH_GET, place.addr, (uint64_t)(uintptr_t)data, len_bytes, NULL))
        return DMAPP_RC_SUCCESS;
    rc = dmappi_call_begin(&call, DMAPPI_BLOCKING);
    return rc == DMAPP_RC_SUCCESS ? dmappi_call_end(&call, dmappi_get_bytes(&call, data, &place, len_bytes), NULL) : rc;
}

dmapp_return_t dmappi_area_put_flag(dmapp_pe_t pe, const void *at, const void *data, uint64_t len_bytes,
                                    const void *flag, uint64_t value)
{
    struct dmappi_place place;
    struct dmappi_place word;
    struct dmappi_call call;
    dmapp_return_t rc;

    if (!place_of(pe, flag, &word) || !place_of(pe, len_bytes > 0 ? at : flag, &place))
        return DMAPP_RC_INVALID_PARAM;
    if (len_bytes <= GNII_LAUNCH_BYTES_MAX &&
        (len_bytes == 0 ||
         dmappi_launch(&place, GNII_LAUNCH_PUT, place.addr, (uint64_t)(uintptr_t)data, len_bytes, NULL)) &&
        dmappi_launch(&word, GNII_LAUNCH_FLAG, word.addr, value, 0, NULL))
        return DMAPP_RC_SUCCESS;
    rc = dmappi_call_begin(&call, DMAPPI_BLOCKING);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, dmappi_post_put_flag(&call, &place, data, len_bytes, word.addr, value), NULL);
}

dmapp_return_t dmappi_area_amo(dmapp_pe_t pe, const void *at, const struct dmappi_atomic *atomic, uint64_t *old_out)
{
    struct dmappi_place place;
    struct dmappi_call call;
    dmapp_return_t rc;

    if (!place_of(pe, at, &place))
        return DMAPP_RC_INVALID_PARAM;
    if (dmappi_launch(&place, GNII_LAUNCH_AMO + atomic->op, place.addr, atomic->operand1, atomic->operand2, old_out))
        return DMAPP_RC_SUCCESS;
    rc = dmappi_call_begin(&call, DMAPPI_BLOCKING);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, dmappi_post_amo(&call, &place, atomic, old_out), NULL);
}
