/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides may live in one process: each has a port of its own, on the node it names.
 */
#include "tests/common/gni.h"

#include <stdlib.h>
#include <string.h>

#include "emunic/base/clock.h"

#define PATIENCE_NS 30000000000ull

static void must(gni_return_t rc, const char *what)
{
    if (rc == GNI_RC_SUCCESS)
        return;
    fprintf(stderr, "gx: %s: %s\n", what, gni_err_str[rc]);
    exit(1);
}

void gx_open(struct gx_side *side, const struct fx *fx, uint32_t nid, uint32_t inst_id, uint32_t modes)
{
    memset(side, 0, sizeof(*side));
    side->inst_id = inst_id;
    fx_set_node(nid);
    must(GNI_CdmCreate(inst_id, (uint8_t)fx->ptag, fx->cookie, modes | GNI_CDM_MODE_ERR_NO_KILL, &side->cdm),
         "GNI_CdmCreate");
    must(GNI_CdmAttach(side->cdm, 0, &side->nic_addr, &side->nic), "GNI_CdmAttach");
    must(GNI_CqCreate(side->nic, 128, 0, GNI_CQ_BLOCKING, NULL, NULL, &side->src_cq), "GNI_CqCreate");
    must(GNI_CqCreate(side->nic, 128, 0, GNI_CQ_BLOCKING, NULL, NULL, &side->dst_cq), "GNI_CqCreate");
    side->mem = aligned_alloc(4096, GX_BYTES);
    if (!side->mem)
        must(GNI_RC_ERROR_NOMEM, "memory");
    memset(side->mem, 0, GX_BYTES);
    must(GNI_MemRegister(side->nic, (uint64_t)(uintptr_t)side->mem, GX_BYTES, side->dst_cq, GNI_MEM_READWRITE,
                         (uint32_t)-1, &side->mem_hndl),
         "GNI_MemRegister");
}

void gx_close(struct gx_side *side)
{
    if (side->ep)
        GNI_EpDestroy(side->ep);
    GNI_MemDeregister(side->nic, &side->mem_hndl);
    GNI_CqDestroy(side->src_cq);
    GNI_CqDestroy(side->dst_cq);
    must(GNI_CdmDestroy(side->cdm), "GNI_CdmDestroy");
    free(side->mem);
}

void gx_connect(struct gx_side *a, struct gx_side *b)
{
    must(GNI_EpCreate(a->nic, a->src_cq, &a->ep), "GNI_EpCreate");
    must(GNI_EpCreate(b->nic, b->src_cq, &b->ep), "GNI_EpCreate");
    must(GNI_EpBind(a->ep, b->nic_addr, b->inst_id), "GNI_EpBind");
    must(GNI_EpBind(b->ep, a->nic_addr, a->inst_id), "GNI_EpBind");
}

gni_return_t gx_next(gni_cq_handle_t cq, gni_cq_entry_t *entry_out)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    do {
        rc = GNI_CqGetEvent(cq, entry_out);
    } while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    return rc;
}

gni_post_descriptor_t gx_put(const struct gx_side *from, const struct gx_side *to, uint64_t offset, uint64_t length,
                             uint16_t cq_mode)
{
    return (gni_post_descriptor_t){
        .type = GNI_POST_FMA_PUT,
        .cq_mode = cq_mode,
        .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
        .local_addr = (uint64_t)(uintptr_t)from->mem + offset,
        .local_mem_hndl = from->mem_hndl,
        .remote_addr = (uint64_t)(uintptr_t)to->mem + offset,
        .remote_mem_hndl = to->mem_hndl,
        .length = length,
    };
}

gni_return_t gx_complete(gni_cq_handle_t cq, gni_post_descriptor_t **descr_out)
{
    gni_cq_entry_t entry = 0;
    gni_return_t rc = gx_next(cq, &entry);

    if (rc != GNI_RC_SUCCESS && rc != GNI_RC_TRANSACTION_ERROR)
        return rc;
    return GNI_GetCompleted(cq, entry, descr_out);
}
