/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contiguous puts and puts with flag.
 *
 * Up to GNII_LAUNCH_BYTES_MAX in one launch, which is the whole operation on memory that is mapped here; longer ones in
 * pieces of that size. What the launch entry does not take is posted. Large non-blocking puts from registered
 * memory are posted at once, so that emunic moves them while the caller goes on.
 */
#include "libdmapp/src/transfer.h"

dmapp_return_t dmappi_put_bytes(struct dmappi_call *call, const struct dmappi_place *to, const void *from,
                                uint64_t len_bytes)
{
    struct dmappi_place at = *to;
    const uint8_t *data = from;
    uint64_t done = 0;

    while (done < len_bytes && !dmappi_shall_offload(call, data, len_bytes)) {
        uint64_t n = len_bytes - done < GNII_LAUNCH_BYTES_MAX ? len_bytes - done : GNII_LAUNCH_BYTES_MAX;

        if (!dmappi_launch(to, GNII_LAUNCH_PUT, to->addr + done, (uint64_t)(uintptr_t)(data + done), n, NULL))
            break;
        done += n;
    }
    if (done == len_bytes)
        return DMAPP_RC_SUCCESS;
    at.addr += done;
    return dmappi_post_put(call, &at, data + done, len_bytes - done);
}

static __attribute__((noinline)) dmapp_return_t put_slowly(enum dmappi_flavour flavour, const struct dmappi_place *to,
                                                           const void *from, uint64_t len_bytes,
                                                           dmapp_syncid_handle_t *syncid)
{
    struct dmappi_call call;
    dmapp_return_t rc = dmappi_call_begin(&call, flavour);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, dmappi_put_bytes(&call, to, from, len_bytes), syncid);
}

static inline dmapp_return_t put(enum dmappi_flavour flavour, void *target_addr, const dmapp_seg_desc_t *target_seg,
                                 dmapp_pe_t target_pe, const void *source_addr, uint64_t nelems, dmapp_type_t type,
                                 dmapp_syncid_handle_t *syncid)
{
    struct dmappi_place to;
    uint64_t len_bytes;
    dmapp_return_t rc;

    if (!dmappi_bytes(nelems, type, &len_bytes) || (flavour == DMAPPI_NB && !syncid))
        return DMAPP_RC_INVALID_PARAM;
    if (DMAPPI_UNLIKELY(nelems == 0))
        return dmappi_done_at_once(flavour, syncid);
    if (!dmappi_is_local(source_addr, len_bytes))
        return DMAPP_RC_INVALID_PARAM;
    rc = dmappi_resolve(target_addr, target_seg, target_pe, len_bytes, &to);
    if (DMAPPI_UNLIKELY(rc != DMAPP_RC_SUCCESS))
        return rc;
    if (len_bytes > GNII_LAUNCH_BYTES_MAX ||
        !dmappi_launch(&to, GNII_LAUNCH_PUT, to.addr, (uint64_t)(uintptr_t)source_addr, len_bytes, NULL))
        return put_slowly(flavour, &to, source_addr, len_bytes, syncid);
    if (flavour == DMAPPI_NB)
        *syncid = DMAPPI_SYNCID_DONE;
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_put(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                         uint64_t nelems, dmapp_type_t type)
{
    return put(DMAPPI_BLOCKING, target_addr, target_seg, target_pe, source_addr, nelems, type, NULL);
}

dmapp_return_t dmapp_put_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                            uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
    return put(DMAPPI_NB, target_addr, target_seg, target_pe, source_addr, nelems, type, syncid);
}

dmapp_return_t dmapp_put_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                             uint64_t nelems, dmapp_type_t type)
{
    return put(DMAPPI_NBI, target_addr, target_seg, target_pe, source_addr, nelems, type, NULL);
}

/* ---- with flag ---- */

static __attribute__((noinline)) dmapp_return_t post_flag(enum dmappi_flavour flavour, const struct dmappi_place *to,
                                                          const void *from, uint64_t len_bytes, uint64_t flag,
                                                          uint64_t value, dmapp_syncid_handle_t *syncid)
{
    struct dmappi_call call;
    dmapp_return_t rc = dmappi_call_begin(&call, flavour);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, dmappi_post_put_flag(&call, to, from, len_bytes, flag, value), syncid);
}

/* All data the short way. False: at least the rest has to be posted, from *done_out on. */
static bool launch_all(const struct dmappi_place *to, const uint8_t *from, uint64_t len_bytes, uint64_t *done_out)
{
    uint64_t done = 0;

    while (done < len_bytes) {
        uint64_t n = len_bytes - done < GNII_LAUNCH_BYTES_MAX ? len_bytes - done : GNII_LAUNCH_BYTES_MAX;

        if (!dmappi_launch(to, GNII_LAUNCH_PUT, to->addr + done, (uint64_t)(uintptr_t)(from + done), n, NULL))
            break;
        done += n;
    }
    *done_out = done;
    return done == len_bytes;
}

static inline dmapp_return_t put_flag(enum dmappi_flavour flavour, void *target_addr,
                                      const dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, const void *source_addr,
                                      uint64_t nelems, dmapp_type_t type, void *target_flag, uint64_t flag_value,
                                      dmapp_syncid_handle_t *syncid)
{
    struct dmappi_place to;
    struct dmappi_place flag;
    uint64_t len_bytes;
    uint64_t done;
    dmapp_return_t rc;

    if (!dmappi_bytes(nelems, type, &len_bytes) || (flavour == DMAPPI_NB && !syncid) ||
        (nelems > 0 && !dmappi_is_local(source_addr, len_bytes)))
        return DMAPP_RC_INVALID_PARAM;
    if ((uintptr_t)target_flag % 8 != 0)
        return DMAPP_RC_ALIGNMENT_ERROR;
    rc = dmappi_resolve(target_flag, target_seg, target_pe, 8, &flag);
    if (rc == DMAPP_RC_SUCCESS && nelems > 0)
        rc = dmappi_resolve(target_addr, target_seg, target_pe, len_bytes, &to);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    if (nelems == 0)
        to = flag;
    if (!launch_all(&to, source_addr, len_bytes, &done) ||
        !dmappi_launch(&flag, GNII_LAUNCH_FLAG, flag.addr, flag_value, 0, NULL)) {
        to.addr += done;
        return post_flag(flavour, &to, (const uint8_t *)source_addr + done, len_bytes - done, flag.addr, flag_value,
                         syncid);
    }
    if (flavour == DMAPPI_NB)
        *syncid = DMAPPI_SYNCID_DONE;
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_put_flag(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                              uint64_t nelems, dmapp_type_t type, void *target_flag, uint64_t flag_value)
{
    return put_flag(DMAPPI_BLOCKING, target_addr, target_seg, target_pe, source_addr, nelems, type, target_flag,
                    flag_value, NULL);
}

dmapp_return_t dmapp_put_flag_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 void *source_addr, uint64_t nelems, dmapp_type_t type, void *target_flag,
                                 uint64_t flag_value, dmapp_syncid_handle_t *syncid)
{
    return put_flag(DMAPPI_NB, target_addr, target_seg, target_pe, source_addr, nelems, type, target_flag, flag_value,
                    syncid);
}

dmapp_return_t dmapp_put_flag_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                  void *source_addr, uint64_t nelems, dmapp_type_t type, void *target_flag,
                                  uint64_t flag_value)
{
    return put_flag(DMAPPI_NBI, target_addr, target_seg, target_pe, source_addr, nelems, type, target_flag, flag_value,
                    NULL);
}
