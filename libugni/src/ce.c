/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engine (CE): the calls of a NIC that has none, and the reading of reduction results.
 *
 * The Aries CE is a reduction tree in hardware. The emulated NIC has no such unit, so every call that would set
 * one up answers GNI_RC_ILLEGAL_OP, the documented "not supported on this NIC type" and the conforming minimum;
 * the one production user falls back to software on it. Handles and pointers that the calls name are checked for
 * NULL first; nothing is read through them and nothing is kept.
 *
 * A result is complete in itself, so reading one is real. The engine that fills a gni_ce_result_t writes result1
 * and result2 first and `control` last, as one 8-byte store-release; the program zeroes the structure before it
 * posts.
 *
 *   control   63       62 ..... 56   55 .. 52     51 .. 48   47 ............. 0
 *           | done   | status      | exceptions | 0        | reduction id      |
 *
 *   done        1 once the result is here
 *   status      0 delivered, else enum gnii_cqe_status
 *   exceptions  GNI_CE_FPE_* bits, 4 of them
 *
 * Source: uGNI spec 2.16, 3.6, 4.12. The encoding of control is private in the original too; this one is ours.
 */
#include <gni_pub.h>

#define CE_DONE           (1ULL << 63)
#define CE_STATUS_SHIFT   56
#define CE_STATUS_MASK    0x7fULL
#define CE_FPE_SHIFT      52
#define CE_FPE_MASK       0xfULL
#define CE_RED_ID_MASK    ((1ULL << 48) - 1)

/* Pairs with the store-release of whoever delivers the result: the operands before the mark. */
static uint64_t control_of(const gni_ce_result_t *result)
{
    return __atomic_load_n(&result->control, __ATOMIC_ACQUIRE);
}

/* Reading a result */

uint64_t gni_ce_res_get_status(gni_ce_result_t *result)
{
    return control_of(result) >> CE_STATUS_SHIFT & CE_STATUS_MASK;
}

uint64_t gni_ce_res_status_ok(gni_ce_result_t *result)
{
    uint64_t control = control_of(result);

    return (control & CE_DONE) != 0 && (control >> CE_STATUS_SHIFT & CE_STATUS_MASK) == 0;
}

uint64_t gni_ce_res_get_fpe(gni_ce_result_t *result)
{
    return control_of(result) >> CE_FPE_SHIFT & CE_FPE_MASK;
}

uint64_t gni_ce_res_get_red_id(gni_ce_result_t *result)
{
    return control_of(result) & CE_RED_ID_MASK;
}

/* `length` is ignored: real programs pass 0 and 1 alike. */
gni_return_t GNI_CeCheckResult(gni_ce_result_t *result, uint32_t length)
{
    uint64_t control;

    (void)length;
    if (result == NULL)
        return GNI_RC_INVALID_PARAM;

    control = control_of(result);
    if ((control & CE_DONE) == 0)
        return GNI_RC_NOT_DONE;
    if ((control >> CE_STATUS_SHIFT & CE_STATUS_MASK) != 0 || (control >> CE_FPE_SHIFT & CE_FPE_MASK) != 0)
        return GNI_RC_TRANSACTION_ERROR;
    return GNI_RC_SUCCESS;
}

/* The engine that is not there */

gni_return_t GNI_CeCreate(gni_nic_handle_t nic_hndl, gni_ce_handle_t *ce_hndl)
{
    if (nic_hndl == NULL || ce_hndl == NULL)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_ILLEGAL_OP;
}

gni_return_t GNI_CeGetId(gni_ce_handle_t ce_hndl, uint32_t *ce_id)
{
    if (ce_hndl == NULL || ce_id == NULL)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_ILLEGAL_OP;
}

gni_return_t GNI_EpSetCeAttr(gni_ep_handle_t ep_hndl, uint32_t ce_id, uint32_t child_id, gni_ce_child_t child_type)
{
    (void)ce_id;
    if (ep_hndl == NULL || child_id >= GNI_CE_MAX_CHILDREN)
        return GNI_RC_INVALID_PARAM;
    if (child_type != GNI_CE_CHILD_VCE && child_type != GNI_CE_CHILD_PE)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_ILLEGAL_OP;
}

gni_return_t GNI_CeConfigure(gni_ce_handle_t ce_hndl, gni_ep_handle_t *child_eps, uint32_t num_child_eps,
                             gni_ep_handle_t parent_ep, gni_cq_handle_t cq_hndl, uint32_t modes)
{
    (void)parent_ep; /* NULL at the root */
    (void)modes;
    if (ce_hndl == NULL || child_eps == NULL || cq_hndl == NULL)
        return GNI_RC_INVALID_PARAM;
    if (num_child_eps == 0 || num_child_eps > GNI_CE_MAX_CHILDREN)
        return GNI_RC_INVALID_PARAM;
    for (uint32_t i = 0; i < num_child_eps; i++) {
        if (child_eps[i] == NULL)
            return GNI_RC_INVALID_PARAM;
    }
    return GNI_RC_ILLEGAL_OP;
}

gni_return_t GNI_CeDestroy(gni_ce_handle_t ce_hndl)
{
    if (ce_hndl == NULL)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_ILLEGAL_OP;
}
