/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors of messages. There are two kinds, with memory for a small and for the longest message. There are as many
 * as Open MPI holds at a time: the lists keep them for further use.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <stddef.h>
#include <string.h>

#include <opal/datatype/opal_convertor.h>

#define SMALL_BYTES 256u
#define FIRST       32
#define MORE        32

static int make_list(opal_free_list_t *list, size_t bytes)
{
    OBJ_CONSTRUCT(list, opal_free_list_t);
    return opal_free_list_init(list, sizeof(struct mg_frag) + bytes, 64, OBJ_CLASS(mca_btl_base_descriptor_t), 0, 0,
                               FIRST, -1, MORE, NULL, 0, NULL, NULL, NULL) == OPAL_SUCCESS ?
               0 :
               -1;
}

int mg_make_fragments(void)
{
    int r = make_list(&mg.small_frags, SMALL_BYTES);

    return make_list(&mg.large_frags, (size_t)mg.message_bytes) == 0 ? r : -1;
}

static struct mg_frag *take(size_t bytes, uint8_t order, uint32_t flags)
{
    opal_free_list_t *list = bytes <= SMALL_BYTES ? &mg.small_frags : &mg.large_frags;
    struct mg_frag *frag = (struct mg_frag *)opal_free_list_get(list);

    if (!frag)
        return NULL;
    frag->list = list;
    frag->next = NULL;
    frag->segments[0].seg_addr.pval = frag->data;
    frag->segments[0].seg_len = bytes;
    frag->base.des_segments = frag->segments;
    frag->base.des_segment_count = 1;
    frag->base.des_flags = flags;
    frag->base.order = order;
    return frag;
}

mca_btl_base_descriptor_t *mg_alloc(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
                                    uint8_t order, size_t size, uint32_t flags)
{
    struct mg_frag *frag;

    (void)peer;
    if (size > btl->btl_max_send_size && size > btl->btl_eager_limit)
        return NULL;
    frag = take(size, order, flags);
    return frag ? &frag->base : NULL;
}

int mg_free(struct mca_btl_base_module_t *btl, mca_btl_base_descriptor_t *descriptor)
{
    struct mg_frag *frag = (struct mg_frag *)descriptor;

    (void)btl;
    opal_free_list_return(frag->list, &frag->base.super);
    return OPAL_SUCCESS;
}

/* Contiguous memory is not copied but becomes the second segment. */
static bool refer(struct mg_frag *frag, struct opal_convertor_t *convertor, size_t *size)
{
    struct iovec iov = { .iov_base = NULL, .iov_len = *size };
    uint32_t n = 1;

    if (opal_convertor_pack(convertor, &iov, &n, size) < 0)
        return false;
    frag->segments[1].seg_addr.pval = iov.iov_base;
    frag->segments[1].seg_len = *size;
    frag->base.des_segment_count = 2;
    return true;
}

static bool copy(struct mg_frag *frag, struct opal_convertor_t *convertor, size_t reserve, size_t *size)
{
    struct iovec iov = { .iov_base = frag->data + reserve, .iov_len = *size };
    uint32_t n = 1;

    if (opal_convertor_pack(convertor, &iov, &n, size) < 0)
        return false;
    frag->segments[0].seg_len = reserve + *size;
    return true;
}

mca_btl_base_descriptor_t *mg_prepare(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
                                      struct opal_convertor_t *convertor, uint8_t order, size_t reserve, size_t *size,
                                      uint32_t flags)
{
    bool is_copied = opal_convertor_need_buffers(convertor);
    struct mg_frag *frag;

    (void)peer;
    if (reserve + *size > btl->btl_max_send_size)
        *size = btl->btl_max_send_size - reserve;
    frag = take(is_copied ? reserve + *size : reserve, order, flags);
    if (!frag)
        return NULL;
    if (is_copied ? copy(frag, convertor, reserve, size) : refer(frag, convertor, size))
        return &frag->base;
    mg_free(btl, &frag->base);
    return NULL;
}
