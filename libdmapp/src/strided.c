/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Strided and indexed transfers: the same loop over elements, which differ in where the next one is. Both ends
 * dense: one contiguous transfer. All of the remote range is checked before the first element moves; for strides
 * that is one check of everything between the first and the last element, gaps included, because a segment has no
 * holes.
 */
#include "libdmapp/src/transfer.h"

/* Where element i lies, in bytes from the first. */
struct steps {
    const ptrdiff_t *indices; /* of the remote side, in elements; NULL: strides */
    uint64_t remote_bytes;
    uint64_t local_bytes;
    uint64_t element_bytes;
    uint64_t n;
};

static inline uint64_t remote_offset(const struct steps *s, uint64_t i)
{
    return s->indices ? (uint64_t)s->indices[i] * s->element_bytes : i * s->remote_bytes;
}

static dmapp_return_t move(struct dmappi_call *call, bool is_put, const struct dmappi_place *base, uint8_t *local,
                           const struct steps *s)
{
    struct dmappi_place at = *base;
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    for (uint64_t i = 0; rc == DMAPP_RC_SUCCESS && i < s->n; i++) {
        uint8_t *here = local + i * s->local_bytes;

        at.addr = base->addr + remote_offset(s, i);
        if (dmappi_launch(&at, is_put ? GNII_LAUNCH_PUT : GNII_LAUNCH_GET, at.addr, (uint64_t)(uintptr_t)here,
                          s->element_bytes, NULL))
            continue;
        rc = is_put ? dmappi_post_put(call, &at, here, s->element_bytes) :
                      dmappi_post_get(call, here, &at, s->element_bytes);
    }
    return rc;
}

static dmapp_return_t start(const struct dmappi_access *a, bool is_put, const struct dmappi_place *base,
                            const struct steps *s)
{
    struct dmappi_call call;
    dmapp_return_t rc = dmappi_call_begin(&call, a->flavour);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    if (!s->indices && s->remote_bytes == s->element_bytes && s->local_bytes == s->element_bytes)
        rc = is_put ? dmappi_put_bytes(&call, base, a->local, s->n * s->element_bytes) :
                      dmappi_get_bytes(&call, a->local, base, s->n * s->element_bytes);
    else
        rc = move(&call, is_put, base, a->local, s);
    return dmappi_call_end(&call, rc, a->syncid);
}

/* Bytes from the first to behind the last of n elements. False: more than there can be. */
static bool span(uint64_t n, uint64_t stride, uint64_t element_bytes, uint64_t *bytes_out)
{
    uint64_t elements;

    return !__builtin_mul_overflow(n - 1, stride, &elements) && !__builtin_add_overflow(elements, 1, &elements) &&
           !__builtin_mul_overflow(elements, element_bytes, bytes_out) && *bytes_out >> 62 == 0;
}

static dmapp_return_t strided(const struct dmappi_access *a, bool is_put, ptrdiff_t remote_stride,
                              ptrdiff_t local_stride)
{
    struct dmappi_place base;
    uint64_t remote_bytes;
    uint64_t local_bytes;
    struct steps s;
    dmapp_return_t rc;

    if ((unsigned)a->type > DMAPP_BYTE || remote_stride < 1 || local_stride < 1 || !dmappi_has_syncid(a))
        return DMAPP_RC_INVALID_PARAM;
    if (a->nelems == 0)
        return dmappi_done_at_once(a);
    s = (struct steps){ .element_bytes = dmappi_type_bytes(a->type), .n = a->nelems };
    if (!span(a->nelems, (uint64_t)remote_stride, s.element_bytes, &remote_bytes) ||
        !span(a->nelems, (uint64_t)local_stride, s.element_bytes, &local_bytes) ||
        !dmappi_is_local(a->local, local_bytes))
        return DMAPP_RC_INVALID_PARAM;
    s.remote_bytes = (uint64_t)remote_stride * s.element_bytes;
    s.local_bytes = (uint64_t)local_stride * s.element_bytes;
    rc = dmappi_resolve(a->remote, a->seg, a->pe, remote_bytes, &base);
    return rc == DMAPP_RC_SUCCESS ? start(a, is_put, &base, &s) : rc;
}

static dmapp_return_t indexed(const struct dmappi_access *a, bool is_put, const ptrdiff_t *indices)
{
    ptrdiff_t least = PTRDIFF_MAX;
    ptrdiff_t most = 0;
    struct dmappi_place base;
    uint64_t remote_bytes;
    uint64_t local_bytes;
    struct steps s;
    dmapp_return_t rc;

    if (!dmappi_bytes(a->nelems, a->type, &local_bytes) || !dmappi_has_syncid(a))
        return DMAPP_RC_INVALID_PARAM;
    if (a->nelems == 0)
        return dmappi_done_at_once(a);
    if (!indices || !dmappi_is_local(a->local, local_bytes))
        return DMAPP_RC_INVALID_PARAM;
    for (uint64_t i = 0; i < a->nelems; i++) {
        least = indices[i] < least ? indices[i] : least;
        most = indices[i] > most ? indices[i] : most;
    }
    s = (struct steps){ .indices = indices, .element_bytes = dmappi_type_bytes(a->type), .n = a->nelems };
    s.local_bytes = s.element_bytes;
    if (least < 0 || !span(2, (uint64_t)(most - least), s.element_bytes, &remote_bytes) ||
        (uint64_t)least > (UINT64_MAX >> 2) / s.element_bytes)
        return DMAPP_RC_INVALID_PARAM;
    /* From the lowest element to the highest; element 0 itself need not be inside. */
    rc = dmappi_resolve((uint8_t *)a->remote + (uint64_t)least * s.element_bytes, a->seg, a->pe, remote_bytes, &base);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    base.addr -= (uint64_t)least * s.element_bytes;
    return start(a, is_put, &base, &s);
}

dmapp_return_t dmapp_iput(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                          ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return strided(&a, true, tst, sst);
}

dmapp_return_t dmapp_iput_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                             ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type,
                             dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return strided(&a, true, tst, sst);
}

dmapp_return_t dmapp_iput_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                              ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return strided(&a, true, tst, sst);
}

dmapp_return_t dmapp_iget(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                          ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return strided(&a, false, sst, tst);
}

dmapp_return_t dmapp_iget_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type,
                             dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return strided(&a, false, sst, tst);
}

dmapp_return_t dmapp_iget_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              ptrdiff_t tst, ptrdiff_t sst, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return strided(&a, false, sst, tst);
}

dmapp_return_t dmapp_ixput(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                           ptrdiff_t *tidx, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return indexed(&a, true, tidx);
}

dmapp_return_t dmapp_ixput_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                              ptrdiff_t *tidx, uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return indexed(&a, true, tidx);
}

dmapp_return_t dmapp_ixput_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, void *source_addr,
                               ptrdiff_t *tidx, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = target_addr,
                                     .seg = target_seg,
                                     .pe = target_pe,
                                     .local = source_addr,
                                     .nelems = nelems,
                                     .type = type };

    return indexed(&a, true, tidx);
}

dmapp_return_t dmapp_ixget(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                           ptrdiff_t *sidx, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_BLOCKING,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return indexed(&a, false, sidx);
}

dmapp_return_t dmapp_ixget_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              ptrdiff_t *sidx, uint64_t nelems, dmapp_type_t type, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return indexed(&a, false, sidx);
}

dmapp_return_t dmapp_ixget_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                               ptrdiff_t *sidx, uint64_t nelems, dmapp_type_t type)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr,
                                     .nelems = nelems,
                                     .type = type };

    return indexed(&a, false, sidx);
}
