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

/* Takes values, not the access: so the short way has that in registers alone. */
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

static inline __attribute__((always_inline)) dmapp_return_t put(const struct dmappi_access *a)
{
    struct dmappi_place to;
    uint64_t len_bytes;
    dmapp_return_t rc;

    if (!dmappi_bytes(a->nelems, a->type, &len_bytes) || !dmappi_has_syncid(a))
        return DMAPP_RC_INVALID_PARAM;
    if (DMAPPI_UNLIKELY(a->nelems == 0))
        return dmappi_done_at_once(a);
    if (!dmappi_is_local(a->local, len_bytes))
        return DMAPP_RC_INVALID_PARAM;
    rc = dmappi_resolve(a->remote, a->seg, a->pe, len_bytes, &to);
    if (DMAPPI_UNLIKELY(rc != DMAPP_RC_SUCCESS))
        return rc;
    if (len_bytes > GNII_LAUNCH_BYTES_MAX ||
        !dmappi_launch(&to, GNII_LAUNCH_PUT, to.addr, (uint64_t)(uintptr_t)a->local, len_bytes, NULL))
        return put_slowly(a->flavour, &to, a->local, len_bytes, a->syncid);
    return dmappi_done(a);
}

dmapp_return_t dmapp_put(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                         uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return put(&a);
}

dmapp_return_t dmapp_put_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                            uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return put(&a);
}

dmapp_return_t dmapp_put_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                             uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return put(&a);
}

/* ---- with flag ---- */

/* A word that the NIC writes behind the data. */
struct flag {
    uint64_t addr; /* the owner's */
    uint64_t value;
};

/* Takes values, as put_slowly(). */
static __attribute__((noinline)) dmapp_return_t post_flag(enum dmappi_flavour flavour, const struct dmappi_place *to,
                                                          const void *from, uint64_t len_bytes, const struct flag *flag,
                                                          dmapp_syncid_handle_t *syncid)
{
    struct dmappi_call call;
    dmapp_return_t rc = dmappi_call_begin(&call, flavour);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, dmappi_post_put_flag(&call, to, from, len_bytes, flag->addr, flag->value), syncid);
}

/* The short way as far as it goes: how many bytes. */
static uint64_t launch_some(const struct dmappi_place *to, const uint8_t *from, uint64_t len_bytes)
{
    uint64_t done = 0;

    while (done < len_bytes) {
        uint64_t n = len_bytes - done < GNII_LAUNCH_BYTES_MAX ? len_bytes - done : GNII_LAUNCH_BYTES_MAX;

        if (!dmappi_launch(to, GNII_LAUNCH_PUT, to->addr + done, (uint64_t)(uintptr_t)(from + done), n, NULL))
            break;
        done += n;
    }
    return done;
}

/* The flag word lies in the segment of the data. */
static inline __attribute__((always_inline)) dmapp_return_t put_flag(const struct dmappi_access *a,
                                                                     const void *target_flag, uint64_t flag_value)
{
    struct dmappi_place to;
    struct dmappi_place flag;
    uint64_t len_bytes;
    uint64_t done;
    dmapp_return_t rc;

    if (!dmappi_bytes(a->nelems, a->type, &len_bytes) || !dmappi_has_syncid(a) ||
        (a->nelems > 0 && !dmappi_is_local(a->local, len_bytes)))
        return DMAPP_RC_INVALID_PARAM;
    if ((uintptr_t)target_flag % 8 != 0)
        return DMAPP_RC_ALIGNMENT_ERROR;
    rc = dmappi_resolve(target_flag, a->seg, a->pe, 8, &flag);
    if (rc == DMAPP_RC_SUCCESS && a->nelems > 0)
        rc = dmappi_resolve(a->remote, a->seg, a->pe, len_bytes, &to);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    if (a->nelems == 0)
        to = flag;
    done = launch_some(&to, a->local, len_bytes);
    if (done < len_bytes || !dmappi_launch(&flag, GNII_LAUNCH_FLAG, flag.addr, flag_value, 0, NULL)) {
        to.addr += done;
        return post_flag(a->flavour, &to, (const uint8_t *)a->local + done, len_bytes - done,
                         &(struct flag){ flag.addr, flag_value }, a->syncid);
    }
    return dmappi_done(a);
}

dmapp_return_t dmapp_put_flag(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                              uint64_t nelems, dmapp_type_t type, void *target_flag, uint64_t flag_value)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return put_flag(&a, target_flag, flag_value);
}

dmapp_return_t dmapp_put_flag_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 void *source_addr, uint64_t nelems, dmapp_type_t type, void *target_flag,
                                 uint64_t flag_value, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return put_flag(&a, target_flag, flag_value);
}

dmapp_return_t dmapp_put_flag_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                  void *source_addr, uint64_t nelems, dmapp_type_t type, void *target_flag,
                                  uint64_t flag_value)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return put_flag(&a, target_flag, flag_value);
}
