/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the calls that move data share.
 */
#ifndef LIBDMAPP_TRANSFER_H
#define LIBDMAPP_TRANSFER_H

#include "libdmapp/src/request.h"

/* Non-blocking transfers from here on are worth emunic's time. */
#define DMAPPI_OFFLOAD_BYTES (4ull << 20)

/* What a call of the program asks for. */
struct dmappi_access {
    enum dmappi_flavour flavour;
    dmapp_syncid_handle_t *syncid; /* DMAPPI_NB: where the request's name goes */
    void *remote;                  /* in the segment, of that PE */
    const dmapp_seg_desc_t *seg;
    dmapp_pe_t pe;
    void *local;     /* a put reads it, a get and a fetching atomic write it */
    uint64_t nelems; /* of type; an atomic has one element of its own width */
    dmapp_type_t type;
};

/* A non-blocking call has to have a place for the request's name. */
static inline bool dmappi_has_syncid(const struct dmappi_access *a)
{
    return a->flavour != DMAPPI_NB || a->syncid;
}

/* Nothing is left to do: the outcome of the call in its flavour. */
static inline dmapp_return_t dmappi_done(const struct dmappi_access *a)
{
    if (a->flavour == DMAPPI_NB)
        *a->syncid = DMAPPI_SYNCID_DONE;
    return DMAPP_RC_SUCCESS;
}

/* There was nothing to do: as dmappi_done(), but the library has to be up. */
static inline dmapp_return_t dmappi_done_at_once(const struct dmappi_access *a)
{
    return dmappi_is_up() ? dmappi_done(a) : DMAPP_RC_INVALID_PARAM;
}

static inline bool dmappi_shall_offload(const struct dmappi_call *call, const void *local, uint64_t len_bytes)
{
    gni_mem_handle_t handle;

    return call->flavour != DMAPPI_BLOCKING && len_bytes >= DMAPPI_OFFLOAD_BYTES &&
           dmappi_local_handle((uint64_t)(uintptr_t)local, len_bytes, &handle);
}

#endif
