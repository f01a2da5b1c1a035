/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contiguous gets; as put.c. The short way loads from any address; only posts know of 4-byte words (request.c).
 */
#include "libdmapp/src/transfer.h"

dmapp_return_t dmappi_get_bytes(struct dmappi_call *call, void *to, const struct dmappi_place *from, uint64_t len_bytes)
{
    struct dmappi_place at = *from;
    uint8_t *data = to;
    uint64_t done = 0;

    while (done < len_bytes && !dmappi_shall_offload(call, data, len_bytes)) {
        uint64_t n = len_bytes - done < GNII_LAUNCH_BYTES_MAX ? len_bytes - done : GNII_LAUNCH_BYTES_MAX;

        if (!dmappi_launch(from, GNII_LAUNCH_GET, from->addr + done, (uint64_t)(uintptr_t)(data + done), n, NULL))
            break;
        done += n;
    }
    if (done == len_bytes)
        return DMAPP_RC_SUCCESS;
    at.addr += done;
    return dmappi_post_get(call, data + done, &at, len_bytes - done);
}

/* Takes values, not the access: so the short way has that in registers alone. */
static __attribute__((noinline)) dmapp_return_t get_slowly(enum dmappi_flavour flavour, void *to,
                                                           const struct dmappi_place *from, uint64_t len_bytes,
                                                           dmapp_syncid_handle_t *syncid)
{
    struct dmappi_call call;
    dmapp_return_t rc = dmappi_call_begin(&call, flavour);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, dmappi_get_bytes(&call, to, from, len_bytes), syncid);
}

static inline __attribute__((always_inline)) dmapp_return_t get(const struct dmappi_access *a)
{
    struct dmappi_place from;
    uint64_t len_bytes;
    dmapp_return_t rc;

    if (!dmappi_bytes(a->nelems, a->type, &len_bytes) || !dmappi_has_syncid(a))
        return DMAPP_RC_INVALID_PARAM;
    if (DMAPPI_UNLIKELY(a->nelems == 0))
        return dmappi_done_at_once(a);
    if (!dmappi_is_local(a->local, len_bytes))
        return DMAPP_RC_INVALID_PARAM;
    rc = dmappi_resolve(a->remote, a->seg, a->pe, len_bytes, &from);
    if (DMAPPI_UNLIKELY(rc != DMAPP_RC_SUCCESS))
        return rc;
    if (len_bytes > GNII_LAUNCH_BYTES_MAX ||
        !dmappi_launch(&from, GNII_LAUNCH_GET, from.addr, (uint64_t)(uintptr_t)a->local, len_bytes, NULL))
        return get_slowly(a->flavour, a->local, &from, len_bytes, a->syncid);
    return dmappi_done(a);
}

dmapp_return_t dmapp_get(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                         uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return get(&a);
}

dmapp_return_t dmapp_get_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                            uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return get(&a);
}

dmapp_return_t dmapp_get_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return get(&a);
}

dmapp_return_t dmapp_get_flag_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return get(&a);
}
