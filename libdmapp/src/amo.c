/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics.
 *
 * On memory that is mapped here an atomic is one instruction of the processor, or a loop around compare-and-swap, for
 * everybody: the owner's own atomics, peers' and emunic's go to the same words in the same way, so they are atomic
 * among each other. On memory that is not, all of them are posted, also the owner's own, and emunic alone does them.
 */
#include "libdmapp/src/transfer.h"

#include <string.h>

#include "emunic/abi/amo.h"

/* One atomic as the NIC knows it. */
struct atomic_op {
    unsigned op; /* enum emu_amo_op */
    bool is_32bit;
    uint64_t operand1;
    uint64_t operand2;
};

static __attribute__((noinline)) dmapp_return_t post(enum dmappi_flavour flavour, const struct dmappi_place *at,
                                                     const struct atomic_op *a, void *old,
                                                     dmapp_syncid_handle_t *syncid)
{
    struct dmappi_call call;
    dmapp_return_t rc = dmappi_call_begin(&call, flavour);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, dmappi_post_amo(&call, at, a->op, a->is_32bit, a->operand1, a->operand2, old),
                           syncid);
}

/* old NULL: not fetched. */
static inline dmapp_return_t run(enum dmappi_flavour flavour, void *addr, const dmapp_seg_desc_t *seg, dmapp_pe_t pe,
                                 const struct atomic_op *a, void *old, bool fetches, dmapp_syncid_handle_t *syncid)
{
    uint64_t width_bytes = a->is_32bit ? 4 : 8;
    struct dmappi_place at;
    uint64_t word = 0;
    dmapp_return_t rc;

    if ((fetches && !dmappi_is_local(old, width_bytes)) || (flavour == DMAPPI_NB && !syncid))
        return DMAPP_RC_INVALID_PARAM;
    rc = dmappi_resolve(addr, seg, pe, width_bytes, &at);
    if (DMAPPI_UNLIKELY(rc != DMAPP_RC_SUCCESS))
        return rc;
    if (DMAPPI_UNLIKELY(((uintptr_t)addr & (width_bytes - 1)) != 0))
        return DMAPP_RC_ALIGNMENT_ERROR;
    if (!dmappi_launch(&at, GNII_LAUNCH_AMO + a->op + (a->is_32bit ? GNII_LAUNCH_32BIT : 0), at.addr, a->operand1,
                       a->operand2, fetches ? &word : NULL))
        return post(flavour, &at, a, fetches ? old : NULL, syncid);
    if (fetches && a->is_32bit)
        memcpy(old, &word, 4);
    else if (fetches)
        memcpy(old, &word, 8);
    if (flavour == DMAPPI_NB)
        *syncid = DMAPPI_SYNCID_DONE;
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmappi_amo(void *addr, dmapp_seg_desc_t *seg, dmapp_pe_t pe, unsigned op, uint64_t operand1,
                          uint64_t operand2, uint64_t *old_out)
{
    const struct atomic_op a = { op, false, operand1, operand2 };

    return run(DMAPPI_BLOCKING, addr, seg, pe, &a, old_out, old_out != NULL, NULL);
}

/* ---- 64 bits, not fetching ---- */

dmapp_return_t dmapp_aadd_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };

    return run(DMAPPI_BLOCKING, target_addr, target_seg, target_pe, &a, NULL, false, NULL);
}

dmapp_return_t dmapp_aadd_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NB, target_addr, target_seg, target_pe, &a, NULL, false, syncid);
}

dmapp_return_t dmapp_aadd_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NBI, target_addr, target_seg, target_pe, &a, NULL, false, NULL);
}

dmapp_return_t dmapp_aand_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_AND, false, (uint64_t)operand, 0 };

    return run(DMAPPI_BLOCKING, target_addr, target_seg, target_pe, &a, NULL, false, NULL);
}

dmapp_return_t dmapp_aand_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_AND, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NB, target_addr, target_seg, target_pe, &a, NULL, false, syncid);
}

dmapp_return_t dmapp_aand_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_AND, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NBI, target_addr, target_seg, target_pe, &a, NULL, false, NULL);
}

dmapp_return_t dmapp_aor_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_OR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_BLOCKING, target_addr, target_seg, target_pe, &a, NULL, false, NULL);
}

dmapp_return_t dmapp_aor_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                               dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_OR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NB, target_addr, target_seg, target_pe, &a, NULL, false, syncid);
}

dmapp_return_t dmapp_aor_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_OR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NBI, target_addr, target_seg, target_pe, &a, NULL, false, NULL);
}

dmapp_return_t dmapp_axor_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_BLOCKING, target_addr, target_seg, target_pe, &a, NULL, false, NULL);
}

dmapp_return_t dmapp_axor_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NB, target_addr, target_seg, target_pe, &a, NULL, false, syncid);
}

dmapp_return_t dmapp_axor_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NBI, target_addr, target_seg, target_pe, &a, NULL, false, NULL);
}

/* ---- 64 bits, fetching ---- */

dmapp_return_t dmapp_afadd_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };

    return run(DMAPPI_BLOCKING, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afadd_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NB, source_addr, source_seg, source_pe, &a, target_addr, true, syncid);
}

dmapp_return_t dmapp_afadd_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NBI, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afand_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_AND, false, (uint64_t)operand, 0 };

    return run(DMAPPI_BLOCKING, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afand_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_AND, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NB, source_addr, source_seg, source_pe, &a, target_addr, true, syncid);
}

dmapp_return_t dmapp_afand_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_AND, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NBI, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afor_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_OR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_BLOCKING, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afor_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_OR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NB, source_addr, source_seg, source_pe, &a, target_addr, true, syncid);
}

dmapp_return_t dmapp_afor_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_OR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NBI, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afxor_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_BLOCKING, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afxor_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NB, source_addr, source_seg, source_pe, &a, target_addr, true, syncid);
}

dmapp_return_t dmapp_afxor_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand)
{
    const struct atomic_op a = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };

    return run(DMAPPI_NBI, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afax_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             int64_t andMask, int64_t xorMask)
{
    const struct atomic_op a = { EMU_AMO_AX, false, (uint64_t)andMask, (uint64_t)xorMask };

    return run(DMAPPI_BLOCKING, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_afax_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask, dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_AX, false, (uint64_t)andMask, (uint64_t)xorMask };

    return run(DMAPPI_NB, source_addr, source_seg, source_pe, &a, target_addr, true, syncid);
}

dmapp_return_t dmapp_afax_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask)
{
    const struct atomic_op a = { EMU_AMO_AX, false, (uint64_t)andMask, (uint64_t)xorMask };

    return run(DMAPPI_NBI, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_acswap_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                               int64_t comperand, int64_t swaperand)
{
    const struct atomic_op a = { EMU_AMO_CSWAP, false, (uint64_t)comperand, (uint64_t)swaperand };

    return run(DMAPPI_BLOCKING, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

dmapp_return_t dmapp_acswap_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand,
                                  dmapp_syncid_handle_t *syncid)
{
    const struct atomic_op a = { EMU_AMO_CSWAP, false, (uint64_t)comperand, (uint64_t)swaperand };

    return run(DMAPPI_NB, source_addr, source_seg, source_pe, &a, target_addr, true, syncid);
}

dmapp_return_t dmapp_acswap_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                   dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand)
{
    const struct atomic_op a = { EMU_AMO_CSWAP, false, (uint64_t)comperand, (uint64_t)swaperand };

    return run(DMAPPI_NBI, source_addr, source_seg, source_pe, &a, target_addr, true, NULL);
}

/* ---- described by the program ---- */

static dmapp_return_t translate(const dmapp_amo_t *amo, struct atomic_op *a_out)
{
    static const uint8_t integer_of[] = {
        [DMAPP_AMO_ADD] = EMU_AMO_ADD,     [DMAPP_AMO_AND] = EMU_AMO_AND,   [DMAPP_AMO_OR] = EMU_AMO_OR,
        [DMAPP_AMO_XOR] = EMU_AMO_XOR,     [DMAPP_AMO_SWAP] = EMU_AMO_SWAP, [DMAPP_AMO_AX] = EMU_AMO_AX,
        [DMAPP_AMO_CSWAP] = EMU_AMO_CSWAP, [DMAPP_AMO_MIN] = EMU_AMO_IMIN,  [DMAPP_AMO_MAX] = EMU_AMO_IMAX,
    };
    static const uint8_t float_of[] = {
        [DMAPP_AMO_ADD] = EMU_AMO_FPADD,
        [DMAPP_AMO_MIN] = EMU_AMO_FPMIN,
        [DMAPP_AMO_MAX] = EMU_AMO_FPMAX,
    };
    uint32_t qualifier;
    uint32_t width;

    if (!amo || amo->op < DMAPP_AMO_ADD || amo->op > DMAPP_AMO_MAX || amo->flags != 0)
        return DMAPP_RC_INVALID_PARAM;
    qualifier = amo->type & ~0xffu;
    width = amo->type & 0xffu;
    if ((width != DMAPP_DW && width != DMAPP_QW) ||
        (qualifier != DMAPP_AMO_SIGNED && qualifier != DMAPP_AMO_UNSIGNED && qualifier != DMAPP_AMO_FLOAT))
        return DMAPP_RC_INVALID_PARAM;
    *a_out = (struct atomic_op){ .op = integer_of[amo->op],
                                 .is_32bit = width == DMAPP_DW,
                                 .operand1 = amo->operand1.u64,
                                 .operand2 = amo->operand2.u64 };
    if (qualifier == DMAPP_AMO_FLOAT)
        a_out->op = float_of[amo->op];
    if (a_out->op == 0 || (qualifier == DMAPP_AMO_UNSIGNED && amo->op >= DMAPP_AMO_MIN))
        return DMAPP_RC_NOT_SUPPORTED;
    if (dmappi_is_up() && !dmappi_has_amo(a_out->op, a_out->is_32bit))
        return DMAPP_RC_NOT_SUPPORTED;
    if (a_out->is_32bit) {
        a_out->operand1 = amo->operand1.u32;
        a_out->operand2 = amo->operand2.u32;
    }
    return DMAPP_RC_SUCCESS;
}

static dmapp_return_t run_described(enum dmappi_flavour flavour, void *addr, const dmapp_seg_desc_t *seg, dmapp_pe_t pe,
                                    const dmapp_amo_t *amo, void *old, bool fetches, dmapp_syncid_handle_t *syncid)
{
    struct atomic_op a;
    dmapp_return_t rc = translate(amo, &a);

    return rc == DMAPP_RC_SUCCESS ? run(flavour, addr, seg, pe, &a, old, fetches, syncid) : rc;
}

dmapp_return_t dmapp_amo_put(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, dmapp_amo_t *amo)
{
    return run_described(DMAPPI_BLOCKING, target_addr, target_seg, target_pe, amo, NULL, false, NULL);
}

dmapp_return_t dmapp_amo_put_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, dmapp_amo_t *amo,
                                dmapp_syncid_handle_t *syncid)
{
    return run_described(DMAPPI_NB, target_addr, target_seg, target_pe, amo, NULL, false, syncid);
}

dmapp_return_t dmapp_amo_put_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 dmapp_amo_t *amo)
{
    return run_described(DMAPPI_NBI, target_addr, target_seg, target_pe, amo, NULL, false, NULL);
}

dmapp_return_t dmapp_amo_get(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             dmapp_amo_t *amo)
{
    return run_described(DMAPPI_BLOCKING, source_addr, source_seg, source_pe, amo, target_addr, true, NULL);
}

dmapp_return_t dmapp_amo_get_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, dmapp_amo_t *amo, dmapp_syncid_handle_t *syncid)
{
    return run_described(DMAPPI_NB, source_addr, source_seg, source_pe, amo, target_addr, true, syncid);
}

dmapp_return_t dmapp_amo_get_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, dmapp_amo_t *amo)
{
    return run_described(DMAPPI_NBI, source_addr, source_seg, source_pe, amo, target_addr, true, NULL);
}

dmapp_return_t dmapp_amo_flush(dmapp_pe_t target_pe, uint64_t flags)
{
    if (!dmappi_is_up() || (unsigned)target_pe >= (unsigned)dmappi_job.npes || flags != 0)
        return DMAPP_RC_INVALID_PARAM;
    return DMAPP_RC_SUCCESS;
}
