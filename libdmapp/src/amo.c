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

/* Takes values, not the access: so the short way has that in registers alone. */
static __attribute__((noinline)) dmapp_return_t post(enum dmappi_flavour flavour, const struct dmappi_place *at,
                                                     const struct dmappi_atomic *atomic, void *old,
                                                     dmapp_syncid_handle_t *syncid)
{
    struct dmappi_call call;
    dmapp_return_t rc = dmappi_call_begin(&call, flavour);

    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    return dmappi_call_end(&call, dmappi_post_amo(&call, at, atomic, old), syncid);
}

/* Where the word before goes is a->local, if the atomic fetches. */
static inline __attribute__((always_inline)) dmapp_return_t run(const struct dmappi_access *a,
                                                                const struct dmappi_atomic *atomic, bool fetches)
{
    uint64_t width_bytes = atomic->is_32bit ? 4 : 8;
    struct dmappi_place at;
    uint64_t word = 0;
    dmapp_return_t rc;

    if ((fetches && !dmappi_is_local(a->local, width_bytes)) || !dmappi_has_syncid(a))
        return DMAPP_RC_INVALID_PARAM;
    rc = dmappi_resolve(a->remote, a->seg, a->pe, width_bytes, &at);
    if (DMAPPI_UNLIKELY(rc != DMAPP_RC_SUCCESS))
        return rc;
    if (DMAPPI_UNLIKELY(((uintptr_t)a->remote & (width_bytes - 1)) != 0))
        return DMAPP_RC_ALIGNMENT_ERROR;
    if (!dmappi_launch(&at, GNII_LAUNCH_AMO + atomic->op + (atomic->is_32bit ? GNII_LAUNCH_32BIT : 0), at.addr,
                       atomic->operand1, atomic->operand2, fetches ? &word : NULL))
        return post(a->flavour, &at, atomic, fetches ? a->local : NULL, a->syncid);
    if (fetches && atomic->is_32bit)
        memcpy(a->local, &word, 4);
    else if (fetches)
        memcpy(a->local, &word, 8);
    return dmappi_done(a);
}

dmapp_return_t dmappi_amo(void *addr, dmapp_seg_desc_t *seg, dmapp_pe_t pe, const struct dmappi_atomic *atomic,
                          uint64_t *old_out)
{
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = addr, .seg = seg, .pe = pe, .local = old_out
    };

    return run(&a, atomic, old_out);
}

/* ---- 64 bits, not fetching ---- */

dmapp_return_t dmapp_aadd_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_aadd_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NB, .syncid = syncid, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_aadd_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = { .flavour = DMAPPI_NBI, .remote = target_addr, .seg = target_seg, .pe = target_pe };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_aand_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AND, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_aand_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AND, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NB, .syncid = syncid, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_aand_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AND, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = { .flavour = DMAPPI_NBI, .remote = target_addr, .seg = target_seg, .pe = target_pe };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_aor_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_OR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_aor_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                               dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_OR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NB, .syncid = syncid, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_aor_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_OR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = { .flavour = DMAPPI_NBI, .remote = target_addr, .seg = target_seg, .pe = target_pe };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_axor_qw(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_axor_qw_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand,
                                dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NB, .syncid = syncid, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run(&a, &atomic, false);
}

dmapp_return_t dmapp_axor_qw_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = { .flavour = DMAPPI_NBI, .remote = target_addr, .seg = target_seg, .pe = target_pe };

    return run(&a, &atomic, false);
}

/* ---- 64 bits, fetching ---- */

dmapp_return_t dmapp_afadd_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afadd_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afadd_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_ADD, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NBI, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afand_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AND, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afand_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AND, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afand_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AND, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NBI, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afor_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_OR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afor_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_OR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afor_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_OR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NBI, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afxor_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                              int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afxor_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t operand, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afxor_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t operand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_XOR, false, (uint64_t)operand, 0 };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NBI, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afax_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             int64_t andMask, int64_t xorMask)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AX, false, (uint64_t)andMask, (uint64_t)xorMask };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afax_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AX, false, (uint64_t)andMask, (uint64_t)xorMask };
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_afax_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, int64_t andMask, int64_t xorMask)
{
    const struct dmappi_atomic atomic = { EMU_AMO_AX, false, (uint64_t)andMask, (uint64_t)xorMask };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NBI, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_acswap_qw(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                               int64_t comperand, int64_t swaperand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_CSWAP, false, (uint64_t)comperand, (uint64_t)swaperand };
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_acswap_qw_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                  dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand,
                                  dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_atomic atomic = { EMU_AMO_CSWAP, false, (uint64_t)comperand, (uint64_t)swaperand };
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr };

    return run(&a, &atomic, true);
}

dmapp_return_t dmapp_acswap_qw_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                   dmapp_pe_t source_pe, int64_t comperand, int64_t swaperand)
{
    const struct dmappi_atomic atomic = { EMU_AMO_CSWAP, false, (uint64_t)comperand, (uint64_t)swaperand };
    const struct dmappi_access a = {
        .flavour = DMAPPI_NBI, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run(&a, &atomic, true);
}

/* ---- described by the program ---- */

static dmapp_return_t translate(const dmapp_amo_t *amo, struct dmappi_atomic *atomic_out)
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
    *atomic_out = (struct dmappi_atomic){ .op = integer_of[amo->op],
                                          .is_32bit = width == DMAPP_DW,
                                          .operand1 = amo->operand1.u64,
                                          .operand2 = amo->operand2.u64 };
    if (qualifier == DMAPP_AMO_FLOAT)
        atomic_out->op = float_of[amo->op];
    if (atomic_out->op == 0 || (qualifier == DMAPP_AMO_UNSIGNED && amo->op >= DMAPP_AMO_MIN))
        return DMAPP_RC_NOT_SUPPORTED;
    if (dmappi_is_up() && !dmappi_has_amo(atomic_out))
        return DMAPP_RC_NOT_SUPPORTED;
    if (atomic_out->is_32bit) {
        atomic_out->operand1 = amo->operand1.u32;
        atomic_out->operand2 = amo->operand2.u32;
    }
    return DMAPP_RC_SUCCESS;
}

static dmapp_return_t run_described(const struct dmappi_access *a, const dmapp_amo_t *amo, bool fetches)
{
    struct dmappi_atomic atomic;
    dmapp_return_t rc = translate(amo, &atomic);

    return rc == DMAPP_RC_SUCCESS ? run(a, &atomic, fetches) : rc;
}

dmapp_return_t dmapp_amo_put(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, dmapp_amo_t *amo)
{
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run_described(&a, amo, false);
}

dmapp_return_t dmapp_amo_put_nb(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe, dmapp_amo_t *amo,
                                dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = {
        .flavour = DMAPPI_NB, .syncid = syncid, .remote = target_addr, .seg = target_seg, .pe = target_pe
    };

    return run_described(&a, amo, false);
}

dmapp_return_t dmapp_amo_put_nbi(void *target_addr, dmapp_seg_desc_t *target_seg, dmapp_pe_t target_pe,
                                 dmapp_amo_t *amo)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NBI, .remote = target_addr, .seg = target_seg, .pe = target_pe };

    return run_described(&a, amo, false);
}

dmapp_return_t dmapp_amo_get(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg, dmapp_pe_t source_pe,
                             dmapp_amo_t *amo)
{
    const struct dmappi_access a = {
        .flavour = DMAPPI_BLOCKING, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run_described(&a, amo, true);
}

dmapp_return_t dmapp_amo_get_nb(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                dmapp_pe_t source_pe, dmapp_amo_t *amo, dmapp_syncid_handle_t *syncid)
{
    const struct dmappi_access a = { .flavour = DMAPPI_NB,
                                     .syncid = syncid,
                                     .remote = source_addr,
                                     .seg = source_seg,
                                     .pe = source_pe,
                                     .local = target_addr };

    return run_described(&a, amo, true);
}

dmapp_return_t dmapp_amo_get_nbi(void *target_addr, void *source_addr, dmapp_seg_desc_t *source_seg,
                                 dmapp_pe_t source_pe, dmapp_amo_t *amo)
{
    const struct dmappi_access a = {
        .flavour = DMAPPI_NBI, .remote = source_addr, .seg = source_seg, .pe = source_pe, .local = target_addr
    };

    return run_described(&a, amo, true);
}

dmapp_return_t dmapp_amo_flush(dmapp_pe_t target_pe, uint64_t flags)
{
    if (!dmappi_is_up() || (unsigned)target_pe >= (unsigned)dmappi_job.npes || flags != 0)
        return DMAPP_RC_INVALID_PARAM;
    return DMAPP_RC_SUCCESS;
}
