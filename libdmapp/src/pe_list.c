/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers with a list of PEs: one contiguous transfer for each entry, under one request. Every entry is checked
 * before the first transfer, so a list with a bad one does nothing.
 */
#include "libdmapp/src/transfer.h"

enum direction {
    MULTICAST, /* the same data to all */
    SCATTER,
    GATHER,
};

/* The PEs of a call, instead of access.pe. */
struct pe_list {
    const dmapp_pe_t *pes;
    uint32_t n;
};

static dmapp_return_t check(const struct dmappi_access *a, const struct pe_list *list, uint64_t len_bytes)
{
    struct dmappi_place place;
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    if (!a->seg || (a->seg->flags != DMAPPI_MARK_DATA && a->seg->flags != DMAPPI_MARK_SHEAP))
        return DMAPP_RC_INVALID_PARAM;
    for (uint32_t i = 0; rc == DMAPP_RC_SUCCESS && i < list->n; i++)
        rc = dmappi_resolve(a->remote, a->seg, list->pes[i], len_bytes, &place);
    return rc;
}

static dmapp_return_t move_all(struct dmappi_call *call, enum direction direction, const struct dmappi_access *a,
                               const struct pe_list *list, uint64_t len_bytes)
{
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    for (uint32_t i = 0; rc == DMAPP_RC_SUCCESS && i < list->n; i++) {
        uint8_t *here = (uint8_t *)a->local + (direction == MULTICAST ? 0 : i * len_bytes);
        struct dmappi_place place;

        rc = dmappi_resolve(a->remote, a->seg, list->pes[i], len_bytes, &place);
        if (rc == DMAPP_RC_SUCCESS)
            rc = direction == GATHER ? dmappi_get_bytes(call, here, &place, len_bytes) :
                                       dmappi_put_bytes(call, &place, here, len_bytes);
    }
    return rc;
}

static dmapp_return_t run(enum direction direction, const struct dmappi_access *a, const dmapp_pe_t *pes,
                          uint32_t n_pes)
{
    const struct pe_list list = { pes, n_pes };
    struct dmappi_call call;
    uint64_t len_bytes;
    uint64_t local_bytes;
    dmapp_return_t rc;

    if (!dmappi_bytes(a->nelems, a->type, &len_bytes) || !dmappi_has_syncid(a) ||
        __builtin_mul_overflow(len_bytes, direction == MULTICAST ? 1 : (uint64_t)n_pes, &local_bytes))
        return DMAPP_RC_INVALID_PARAM;
    if (a->nelems == 0 || n_pes == 0)
        return dmappi_done_at_once(a);
    if (!pes || !dmappi_is_local(a->local, local_bytes))
        return DMAPP_RC_INVALID_PARAM;
    rc = check(a, &list, len_bytes);
    if (rc == DMAPP_RC_SUCCESS)
        rc = dmappi_call_begin(&call, a->flavour);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, move_all(&call, direction, a, &list, len_bytes), a->syncid);
}

dmapp_return_t dmapp_put_ixpe(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                              uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(MULTICAST, &a, target_pe_list, num_target_pes);
}

dmapp_return_t dmapp_put_ixpe_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                 uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type,
                                 dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(MULTICAST, &a, target_pe_list, num_target_pes);
}

dmapp_return_t dmapp_put_ixpe_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                  uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(MULTICAST, &a, target_pe_list, num_target_pes);
}

dmapp_return_t dmapp_scatter_ixpe(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                  uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(SCATTER, &a, target_pe_list, num_target_pes);
}

dmapp_return_t dmapp_scatter_ixpe_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                     uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type,
                                     dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(SCATTER, &a, target_pe_list, num_target_pes);
}

dmapp_return_t dmapp_scatter_ixpe_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                      uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(SCATTER, &a, target_pe_list, num_target_pes);
}

dmapp_return_t dmapp_gather_ixpe(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                 dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(GATHER, &a, source_pe_list, num_source_pes);
}

dmapp_return_t dmapp_gather_ixpe_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                    dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                    dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(GATHER, &a, source_pe_list, num_source_pes);
}

dmapp_return_t dmapp_gather_ixpe_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                     dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                     dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return run(GATHER, &a, source_pe_list, num_source_pes);
}
