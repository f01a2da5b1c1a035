/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the calls that move data share.
 */
#ifndef LIBDMAPP_TRANSFER_H
#define LIBDMAPP_TRANSFER_H

#include "libdmapp/src/request.h"

/* Non-blocking transfers from here on are worth emunic's time. */
#define DMAPPI_OFFLOAD_BYTES (4ull << 20)

/* Nothing to do, or all done: the outcome of a call in its flavour. */
static inline dmapp_return_t dmappi_done_at_once(enum dmappi_flavour flavour, dmapp_syncid_handle_t *syncid)
{
    if (!dmappi_is_up())
        return DMAPP_RC_INVALID_PARAM;
    if (flavour == DMAPPI_NB)
        *syncid = DMAPPI_SYNCID_DONE;
    return DMAPP_RC_SUCCESS;
}

static inline bool dmappi_shall_offload(const struct dmappi_call *call, const void *local, uint64_t len_bytes)
{
    gni_mem_handle_t handle;

    return call->flavour != DMAPPI_BLOCKING && len_bytes >= DMAPPI_OFFLOAD_BYTES &&
           dmappi_local_handle((uint64_t)(uintptr_t)local, len_bytes, &handle);
}

#endif
