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

static dmapp_return_t check(const void *remote, const dmapp_seg_desc_t *seg, const dmapp_pe_t *pes, uint32_t n_pes,
                            uint64_t len_bytes)
{
    struct dmappi_place place;
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    if (!seg || (seg->flags != DMAPPI_MARK_DATA && seg->flags != DMAPPI_MARK_SHEAP))
        return DMAPP_RC_INVALID_PARAM;
    for (uint32_t i = 0; rc == DMAPP_RC_SUCCESS && i < n_pes; i++)
        rc = dmappi_resolve(remote, seg, pes[i], len_bytes, &place);
    return rc;
}

static dmapp_return_t move_all(struct dmappi_call *call, enum direction direction, const void *remote,
                               const dmapp_seg_desc_t *seg, const dmapp_pe_t *pes, uint32_t n_pes, uint8_t *local,
                               uint64_t len_bytes)
{
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    for (uint32_t i = 0; rc == DMAPP_RC_SUCCESS && i < n_pes; i++) {
        uint8_t *here = direction == MULTICAST ? local : local + i * len_bytes;
        struct dmappi_place place;

        rc = dmappi_resolve(remote, seg, pes[i], len_bytes, &place);
        if (rc == DMAPP_RC_SUCCESS)
            rc = direction == GATHER ? dmappi_get_bytes(call, here, &place, len_bytes) :
                                       dmappi_put_bytes(call, &place, here, len_bytes);
    }
    return rc;
}

static dmapp_return_t run(enum dmappi_flavour flavour, enum direction direction, const void *remote,
                          const dmapp_seg_desc_t *seg, const dmapp_pe_t *pes, uint32_t n_pes, void *local,
                          uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
    struct dmappi_call call;
    uint64_t len_bytes;
    uint64_t local_bytes;
    dmapp_return_t rc;

    if (!dmappi_bytes(nelems, type, &len_bytes) || (flavour == DMAPPI_NB && !syncid) ||
        __builtin_mul_overflow(len_bytes, direction == MULTICAST ? 1 : (uint64_t)n_pes, &local_bytes))
        return DMAPP_RC_INVALID_PARAM;
    if (nelems == 0 || n_pes == 0)
        return dmappi_done_at_once(flavour, syncid);
    if (!pes || !dmappi_is_local(local, local_bytes))
        return DMAPP_RC_INVALID_PARAM;
    rc = check(remote, seg, pes, n_pes, len_bytes);
    if (rc == DMAPP_RC_SUCCESS)
        rc = dmappi_call_begin(&call, flavour);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, move_all(&call, direction, remote, seg, pes, n_pes, local, len_bytes), syncid);
}

dmapp_return_t dmapp_put_ixpe(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                              uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type)
{
    return run(DMAPPI_BLOCKING, MULTICAST, target_addr, target_seg, target_pe_list, num_target_pes, source_addr, nelems,
               type, NULL);
}

dmapp_return_t dmapp_put_ixpe_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                 uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type,
                                 dmapp_syncid_handle_t *syncid)
{
    return run(DMAPPI_NB, MULTICAST, target_addr, target_seg, target_pe_list, num_target_pes, source_addr, nelems, type,
               syncid);
}

dmapp_return_t dmapp_put_ixpe_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                  uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type)
{
    return run(DMAPPI_NBI, MULTICAST, target_addr, target_seg, target_pe_list, num_target_pes, source_addr, nelems,
               type, NULL);
}

dmapp_return_t dmapp_scatter_ixpe(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                  uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type)
{
    return run(DMAPPI_BLOCKING, SCATTER, target_addr, target_seg, target_pe_list, num_target_pes, source_addr, nelems,
               type, NULL);
}

dmapp_return_t dmapp_scatter_ixpe_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                     uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type,
                                     dmapp_syncid_handle_t *syncid)
{
    return run(DMAPPI_NB, SCATTER, target_addr, target_seg, target_pe_list, num_target_pes, source_addr, nelems, type,
               syncid);
}

dmapp_return_t dmapp_scatter_ixpe_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t *target_pe_list,
                                      uint32_t num_target_pes, void *source_addr, uint64_t nelems, dmapp_type_t type)
{
    return run(DMAPPI_NBI, SCATTER, target_addr, target_seg, target_pe_list, num_target_pes, source_addr, nelems, type,
               NULL);
}

dmapp_return_t dmapp_gather_ixpe(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                 dmapp_type_t type)
{
    return run(DMAPPI_BLOCKING, GATHER, source_addr, source_seg, source_pe_list, num_source_pes, target_addr, nelems,
               type, NULL);
}

dmapp_return_t dmapp_gather_ixpe_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                    dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                    dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
    return run(DMAPPI_NB, GATHER, source_addr, source_seg, source_pe_list, num_source_pes, target_addr, nelems, type,
               syncid);
}

dmapp_return_t dmapp_gather_ixpe_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                     dmapp_pe_t *source_pe_list, uint32_t num_source_pes, uint64_t nelems,
                                     dmapp_type_t type)
{
    return run(DMAPPI_NBI, GATHER, source_addr, source_seg, source_pe_list, num_source_pes, target_addr, nelems, type,
               NULL);
}
