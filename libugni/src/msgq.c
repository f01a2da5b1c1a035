/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared message queues (MSGQ): named stubs, and the size calculation.
 *
 * The original keeps one set of mailboxes per pair of nodes in huge pages that all instances of a node share.
 * That memory does not exist here. GNI_MsgqInit() therefore answers GNI_RC_PERMISSION_ERROR, its documented code
 * for "no hugetlbfs": GNI_RC_ILLEGAL_OP, the general "not supported here", is not among the codes of any MSGQ
 * call, and a program that handles the documented ones already knows this one as "do without". As no queue can be
 * created, no handle is ever live, and every call that takes one answers GNI_RC_INVALID_PARAM, as for any dead
 * handle. None of them reads through its arguments.
 *
 * GNI_MsgqSize() needs no queue and computes. Its region, in this order: a control page; per connection a mailbox
 * as SMSG has it (spec 7.14: 64 bytes and, per credit, the message with 16 bytes of header, rounded up to 64);
 * per local instance a pool of rcv_pool_sz such messages; all rounded up to 2 MiB pages. The formula is ours: the
 * original's is not known, and neither is the unit of rcv_pool_sz, which is read as messages like its neighbours.
 *
 * No state, no lock, any thread. Source: uGNI spec 3.11, 4.11, 7.14.
 */
#include <gni_pub.h>

#include <stdbool.h>

#define HUGE_PAGE_BYTES    (2ULL << 20)
#define CONTROL_BYTES      4096ULL
#define MBOX_CONTROL_BYTES 64ULL
#define MSG_HEADER_BYTES   16ULL
#define LINE_BYTES         64ULL

/* The attributes that shape the region are within their limits. */
static bool region_is_valid(const gni_msgq_attr_t *attrs)
{
    if (attrs->max_msg_sz == 0 || attrs->max_msg_sz > GNI_MSGQ_MSG_SZ_MAX)
        return false;
    if (attrs->smsg_q_sz == 0 || (attrs->smsg_q_sz != 1 && attrs->smsg_q_sz % 2 != 0))
        return false;
    if (attrs->num_msgq_eps == 0)
        return false;
    return attrs->nloc_insts > 0 && attrs->nloc_insts <= GNI_MSGQ_NODE_INSTS_MAX;
}

gni_return_t GNI_MsgqSize(gni_msgq_attr_t *attrs, uint32_t *size)
{
    uint64_t slot_bytes, total_bytes, mbox_bytes, pool_bytes;

    if (attrs == NULL || size == NULL || !region_is_valid(attrs))
        return GNI_RC_INVALID_PARAM;

    slot_bytes = (attrs->max_msg_sz + MSG_HEADER_BYTES + LINE_BYTES - 1) & ~(LINE_BYTES - 1);
    mbox_bytes = MBOX_CONTROL_BYTES + attrs->smsg_q_sz * slot_bytes; /* below 2^40: no overflow */
    pool_bytes = attrs->rcv_pool_sz * slot_bytes * attrs->nloc_insts; /* below 2^46 */
    if (__builtin_mul_overflow(mbox_bytes, (uint64_t)attrs->num_msgq_eps, &total_bytes) ||
        __builtin_add_overflow(total_bytes, CONTROL_BYTES + pool_bytes + HUGE_PAGE_BYTES - 1, &total_bytes))
        return GNI_RC_INVALID_PARAM;

    total_bytes &= ~(HUGE_PAGE_BYTES - 1);
    if (total_bytes > UINT32_MAX)
        return GNI_RC_INVALID_PARAM;
    *size = (uint32_t)total_bytes;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqInit(gni_nic_handle_t nic_hndl, gni_msgq_rcv_cb_func *rcv_cb, void *cb_data,
                          gni_cq_handle_t snd_cq, gni_msgq_attr_t *attrs, gni_msgq_handle_t *msgq_hndl)
{
    (void)cb_data;
    if (nic_hndl == NULL || rcv_cb == NULL || snd_cq == NULL || attrs == NULL || msgq_hndl == NULL)
        return GNI_RC_INVALID_PARAM;
    if (!region_is_valid(attrs) || attrs->rcv_cq_sz == 0 || (attrs->modes & ~GNI_MSGQ_MODE_BLOCKING) != 0)
        return GNI_RC_INVALID_PARAM;
    return GNI_RC_PERMISSION_ERROR;
}

/* The calls below need a queue, and GNI_MsgqInit() makes none: whatever msgq_hndl is, it is not live. */

gni_return_t GNI_MsgqRelease(gni_msgq_handle_t msgq_hndl)
{
    (void)msgq_hndl;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_MsgqIdle(gni_msgq_handle_t msgq_hndl)
{
    (void)msgq_hndl;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_MsgqGetConnAttrs(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t *attrs,
                                  uint32_t *attrs_size)
{
    (void)msgq_hndl;
    (void)pe_addr;
    (void)attrs;
    (void)attrs_size;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_MsgqConnect(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t *attrs)
{
    (void)msgq_hndl;
    (void)pe_addr;
    (void)attrs;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_MsgqConnRelease(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr)
{
    (void)msgq_hndl;
    (void)pe_addr;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_MsgqSend(gni_msgq_handle_t msgq_hndl, gni_ep_handle_t ep_hndl, void *hdr, uint32_t hdr_len,
                          void *msg, uint32_t msg_len, uint32_t msg_id, uint8_t msg_tag)
{
    (void)msgq_hndl;
    (void)ep_hndl;
    (void)hdr;
    (void)hdr_len;
    (void)msg;
    (void)msg_len;
    (void)msg_id;
    (void)msg_tag;
    return GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_MsgqProgress(gni_msgq_handle_t msgq_hndl, uint32_t timeout)
{
    (void)msgq_hndl;
    (void)timeout;
    return GNI_RC_INVALID_PARAM;
}
