/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics that do not go the short way.
 *
 * A NIC of the first generation (Gemini) has neither 32-bit atomics nor a swap: a 32-bit one becomes a loop around
 * compare-and-swap of the 64-bit word that it lies in, a swap the and-xor with 0.
 */
#include "mpi-shim/shmem/src/sma.h"

static dmapp_amo_t described(const struct smai_atomic *a)
{
    static const uint8_t op_of[] = {
        [EMU_AMO_ADD] = DMAPP_AMO_ADD,     [EMU_AMO_AND] = DMAPP_AMO_AND,   [EMU_AMO_OR] = DMAPP_AMO_OR,
        [EMU_AMO_XOR] = DMAPP_AMO_XOR,     [EMU_AMO_SWAP] = DMAPP_AMO_SWAP, [EMU_AMO_AX] = DMAPP_AMO_AX,
        [EMU_AMO_CSWAP] = DMAPP_AMO_CSWAP,
    };

    return (dmapp_amo_t){ .op = op_of[a->op],
                          .type = a->width_bytes == 4 ? DMAPP_DW : DMAPP_QW,
                          .operand1.u64 = a->operand1,
                          .operand2.u64 = a->operand2 };
}

/* What nobody fetches is complete after a quiet. */
static uint64_t post(struct smai_remote r, int pe, dmapp_seg_desc_t *seg, const struct smai_atomic *a,
                     dmapp_return_t *rc_out)
{
    dmapp_amo_t amo = described(a);
    uint64_t old = 0;

    if (a->fetches) {
        *rc_out = dmapp_amo_get(&old, (void *)(uintptr_t)r.at, seg, pe, &amo);
    } else {
        *rc_out = dmapp_amo_put_nbi((void *)(uintptr_t)r.at, seg, pe, &amo);
        smai_note_posted();
    }
    return old;
}

static void check_alignment(struct smai_remote r, const struct smai_atomic *a)
{
    if (((uintptr_t)r.at & (a->width_bytes - 1)) != 0)
        smai_fail(r.call, "address %p: not aligned to %zu bytes", r.at, a->width_bytes);
}

static uint32_t applied(const struct smai_atomic *a, uint32_t old)
{
    uint32_t operand = (uint32_t)a->operand1;

    switch (a->op) {
    case EMU_AMO_ADD:
        return old + operand;
    case EMU_AMO_AND:
        return old & operand;
    case EMU_AMO_OR:
        return old | operand;
    case EMU_AMO_XOR:
        return old ^ operand;
    case EMU_AMO_CSWAP:
        return old == operand ? (uint32_t)a->operand2 : old;
    default:
        return operand;
    }
}

/* Half of an aligned 64-bit word. */
static uint64_t by_compare(struct smai_remote r, const struct smai_atomic *a)
{
    unsigned shift = ((uintptr_t)r.at & 4) != 0 ? 32 : 0;
    struct smai_remote word = r;
    uint64_t old;

    word.at = (const void *)((uintptr_t)r.at & ~(uintptr_t)7);
    old = smai_fetch(word, 8);
    for (;;) {
        uint64_t new = (old & ~(0xffffffffull << shift)) | (uint64_t)applied(a, (uint32_t)(old >> shift)) << shift;
        uint64_t seen = smai_amo(word, (struct smai_atomic){ EMU_AMO_CSWAP, true, 8, old, new });

        if (seen == old)
            return (uint32_t)(old >> shift);
        old = seen;
    }
}

uint64_t smai_amo_slowly(struct smai_remote r, struct smai_atomic a)
{
    int pe = smai_pe_of(r.ctx, r.pe, r.call);
    dmapp_seg_desc_t *seg = smai_check(r, pe, a.width_bytes);
    struct smai_atomic other = a;
    dmapp_return_t rc;
    uint64_t old;

    check_alignment(r, &a);
    old = post(r, pe, seg, &a, &rc);
    if (rc == DMAPP_RC_NOT_SUPPORTED && a.width_bytes == 4)
        return by_compare(r, &a);
    if (rc == DMAPP_RC_NOT_SUPPORTED && a.op == EMU_AMO_SWAP) {
        other = (struct smai_atomic){ EMU_AMO_AX, a.fetches, 8, 0, a.operand1 };
        old = post(r, pe, seg, &other, &rc);
    }
    smai_must(r, rc);
    return old;
}

uint64_t smai_fetch_slowly(struct smai_remote r, size_t width_bytes)
{
    return smai_amo_slowly(r, (struct smai_atomic){ EMU_AMO_ADD, true, width_bytes, 0, 0 });
}

void smai_amo_nbi_slowly(struct smai_remote r, struct smai_atomic a, void *fetch)
{
    int pe = smai_pe_of(r.ctx, r.pe, r.call);
    dmapp_seg_desc_t *seg = smai_check(r, pe, a.width_bytes);
    dmapp_amo_t amo = described(&a);
    dmapp_return_t rc;
    uint64_t old;

    check_alignment(r, &a);
    rc = dmapp_amo_get_nbi(fetch, (void *)(uintptr_t)r.at, seg, pe, &amo);
    smai_note_posted();
    if (rc == DMAPP_RC_SUCCESS)
        return;
    old = smai_amo_slowly(r, a); /* not of this NIC, or an error, which that tells */
    memcpy(fetch, &old, a.width_bytes);
}
