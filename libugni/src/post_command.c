/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From a descriptor to a command: checks it as far as it can be without the target, and builds the command.
 *
 * Everything the target decides comes back as an error entry. Data of an FMA put are copied before the call returns,
 * into the command (up to 64 bytes) or into staging (up to EMU_STAGED_MAX), so the program may reuse its buffer at
 * once; larger ones are read later, until the completion. Source: spec/ugni.md 4.7, 4.8.
 */
#include <string.h>

#include "libugni/src/device.h"
#include "libugni/src/handle_target.h"
#include "libugni/src/post.h"

bool gnii_post_came_with_aries(const gni_post_descriptor_t *d)
{
    if (d->dlvr_mode & GNII_ARIES_DLVMODES)
        return true;
    switch (d->type) {
    case GNI_POST_RDMA_PUT:
    case GNI_POST_RDMA_GET:
        return (d->rdma_mode & GNII_ARIES_RDMAMODES) != 0;
    case GNI_POST_AMO:
        return (d->amo_cmd & GNII_SECOND_GENERATION) != 0;
    case GNI_POST_FMA_GET_W_FLAG:
    case GNI_POST_AMO_W_FLAG:
    case GNI_POST_CE:
        return true;
    default:
        return false;
    }
}

/* What a Gemini does not know it has refused before. */
static enum emu_delivery delivery_of(uint16_t dlvr_mode)
{
    if ((dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER)
        return EMU_DELIVERY_IN_ORDER;
    if (dlvr_mode & GNI_DLVMODE_NMIN_HASH)
        return EMU_DELIVERY_NMIN_HASH;
    if (dlvr_mode & (GNI_DLVMODE_MIN_HASH | GNI_DLVMODE_NO_ADAPT))
        return EMU_DELIVERY_MIN_HASH;
    if (dlvr_mode & GNI_DLVMODE_ADAPTIVE1)
        return EMU_DELIVERY_ADAPTIVE_1;
    if (dlvr_mode & GNI_DLVMODE_ADAPTIVE2)
        return EMU_DELIVERY_ADAPTIVE_2;
    return (dlvr_mode & GNI_DLVMODE_ADAPTIVE3) ? EMU_DELIVERY_ADAPTIVE_3 : EMU_DELIVERY_ADAPTIVE_0;
}

gni_return_t gnii_post_set_common(struct gnii_post *p, struct gnii_ep *ep, gni_post_descriptor_t *descr,
                                  struct gnii_cq *cq)
{
    *p = (struct gnii_post){
        .ep = ep, .cq = cq, .descr = descr, .cq_mode = descr->cq_mode, .engine = GNII_CQE_ENGINE_FMA
    };
    if (!ep->is_bound || !cq || cq->nic != ep->nic)
        return GNI_RC_INVALID_PARAM;
    if ((descr->cq_mode & GNI_CQMODE_DUAL_EVENTS) == GNI_CQMODE_DUAL_EVENTS &&
        (ep->nic->modes & GNI_CDM_MODE_DUAL_EVENTS) == 0)
        return GNI_RC_INVALID_PARAM;
    if (!gnii_post_is_of_device(ep->nic, descr))
        return GNI_RC_INVALID_PARAM;
    if ((descr->dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER)
        p->flags |= EMU_CMD_IN_ORDER;
    p->delivery = (uint8_t)delivery_of(descr->dlvr_mode);
    return GNI_RC_SUCCESS;
}

/*
 * A local buffer that needs a registration of this process; written says that data arrive in it. A handle that is none
 * is refused; whether a registration stands behind one is the NIC's to say, with an error entry.
 */
static gni_return_t check_local(struct gnii_post *p, const gni_mem_handle_t *handle, uint64_t length_bytes,
                                bool is_written)
{
    const struct gnii_md *md = gnii_md_find(p->ep->nic, handle, p->local_addr, length_bytes);

    if (gnii_handle_is_null(handle))
        return GNI_RC_INVALID_PARAM;
    p->is_local_special = !md || md->segments;
    if (!md)
        return GNI_RC_SUCCESS;
    if (md->segments) {
        p->local_mdh = md->mdh;
        p->local_generation = md->generation;
    }
    return is_written && md->is_read_only ? GNI_RC_PERMISSION_ERROR : GNI_RC_SUCCESS;
}

static gni_return_t set_remote(struct gnii_post *p, const gni_mem_handle_t *handle, uint64_t addr)
{
    p->remote_addr = addr;
    return gnii_handle_decode(handle, &p->remote) < 0 ? GNI_RC_INVALID_PARAM : GNI_RC_SUCCESS;
}

/* First generation: 64 bits only. Numbers without the PUT bit (0x100) and the cached bit (0x010). */
static uint8_t amo_of_first_generation(uint32_t command)
{
    switch (command & ~0x110u) {
    case GNI_FMA_ATOMIC_FADD:
        return EMU_AMO_ADD;
    case GNI_FMA_ATOMIC_FAND:
        return EMU_AMO_AND;
    case GNI_FMA_ATOMIC_FOR:
        return EMU_AMO_OR;
    case GNI_FMA_ATOMIC_FXOR:
        return EMU_AMO_XOR;
    case GNI_FMA_ATOMIC_FAX:
        return EMU_AMO_AX;
    case GNI_FMA_ATOMIC_CSWAP:
        return (command & 0x100u) ? 0 : EMU_AMO_CSWAP;
    default:
        return 0;
    }
}

/* Second generation: the operation in the low five bits, bit 0 set for 64 bits. */
static uint8_t amo_of_second_generation(uint32_t command)
{
    static const uint8_t op_of[16] = {
        [0x00 / 2] = EMU_AMO_AND, [0x02 / 2] = EMU_AMO_OR,    [0x04 / 2] = EMU_AMO_XOR,   [0x06 / 2] = EMU_AMO_SWAP,
        [0x08 / 2] = EMU_AMO_AX,  [0x0a / 2] = EMU_AMO_CSWAP, [0x10 / 2] = EMU_AMO_IMIN,  [0x12 / 2] = EMU_AMO_IMAX,
        [0x14 / 2] = EMU_AMO_ADD, [0x18 / 2] = EMU_AMO_FPMIN, [0x1a / 2] = EMU_AMO_FPMAX, [0x1c / 2] = EMU_AMO_FPADD,
    };
    bool is_32bit = (command & 0x200u) != 0;

    if ((command & ~0x37fu) != 0 || (command & 1u) == is_32bit)
        return 0;
    return op_of[(command & 0x1fu) / 2];
}

bool gnii_post_amo_of(uint32_t command, uint8_t *op_out, uint8_t *flags_out)
{
    uint8_t op =
        (command & GNII_SECOND_GENERATION) ? amo_of_second_generation(command) : amo_of_first_generation(command);
    uint8_t flags = 0;

    if (command & 0x200u)
        flags |= EMU_AMO_32BIT;
    if ((command & 0x100u) == 0)
        flags |= EMU_AMO_FETCH;
    else if (op == EMU_AMO_AX || op == EMU_AMO_CSWAP)
        flags |= EMU_AMO_PAIRS;
    if (command & ((command & GNII_SECOND_GENERATION) ? 0x020u : 0x010u))
        flags |= EMU_AMO_CACHED;
    *op_out = op;
    *flags_out = flags;
    return op != 0;
}

static gni_return_t check_amo(struct gnii_post *p, uint32_t command, const gni_mem_handle_t *local_handle)
{
    uint64_t width;

    if (!gnii_post_amo_of(command, &p->amo_op, &p->amo_flags) || p->length_bytes == 0)
        return GNI_RC_INVALID_PARAM;
    if ((p->ep->nic->modes & GNI_CDM_MODE_CACHED_AMO_ENABLED) == 0)
        p->amo_flags &= (uint8_t)~EMU_AMO_CACHED;
    width = (p->amo_flags & EMU_AMO_32BIT) ? 4 : 8;
    if (p->remote_addr % width != 0 || p->length_bytes % width != 0)
        return GNI_RC_ALIGNMENT_ERROR;
    if ((p->amo_flags & EMU_AMO_FETCH) == 0 && (p->flags & EMU_CMD_GET_FLAG) == 0)
        return GNI_RC_SUCCESS;
    if (p->local_addr % width != 0)
        return GNI_RC_ALIGNMENT_ERROR;
    return check_local(p, local_handle,
                       p->length_bytes + ((p->flags & EMU_CMD_GET_FLAG) ? GNI_FMA_FLAGGED_RESPONSE_SIZE : 0), true);
}

static gni_return_t check_get(struct gnii_post *p, const gni_mem_handle_t *local_handle)
{
    uint64_t with_flag = p->length_bytes + ((p->flags & EMU_CMD_GET_FLAG) ? GNI_FMA_FLAGGED_RESPONSE_SIZE : 0);

    if (p->length_bytes == 0)
        return GNI_RC_INVALID_PARAM;
    /* The local address may be any on Aries. */
    if (p->remote_addr % 4 != 0 || p->length_bytes % 4 != 0 || (p->ep->nic->is_gemini && p->local_addr % 4 != 0))
        return GNI_RC_ALIGNMENT_ERROR;
    return check_local(p, local_handle, with_flag, true);
}

gni_return_t gnii_post_prepare_fma(struct gnii_post *p, const gni_post_descriptor_t *d)
{
    gni_return_t rc = set_remote(p, &d->remote_mem_hndl, d->remote_addr);

    if (rc != GNI_RC_SUCCESS)
        return rc;
    p->local_addr = d->local_addr;
    p->length_bytes = d->length;
    switch (d->type) {
    case GNI_POST_FMA_PUT_W_SYNCFLAG:
        if (d->sync_flag_addr % 8 != 0)
            return GNI_RC_ALIGNMENT_ERROR;
        p->flag_addr = d->sync_flag_addr;
        p->value = d->sync_flag_value;
        p->flags |= EMU_CMD_FLAG;
        p->op = EMU_OP_PUT;
        return GNI_RC_SUCCESS;
    case GNI_POST_FMA_PUT:
        p->op = EMU_OP_PUT;
        return GNI_RC_SUCCESS;
    case GNI_POST_FMA_GET_W_FLAG:
    case GNI_POST_FMA_GET:
        if (d->type == GNI_POST_FMA_GET_W_FLAG)
            p->flags |= EMU_CMD_GET_FLAG;
        p->op = EMU_OP_GET;
        return check_get(p, &d->local_mem_hndl);
    case GNI_POST_AMO_W_FLAG:
    case GNI_POST_AMO:
        if (d->type == GNI_POST_AMO_W_FLAG)
            p->flags |= EMU_CMD_GET_FLAG;
        p->op = EMU_OP_AMO;
        p->operand1 = d->first_operand;
        p->operand2 = d->second_operand;
        return check_amo(p, d->amo_cmd, &d->local_mem_hndl);
    default:
        return GNI_RC_INVALID_PARAM;
    }
}

gni_return_t gnii_post_prepare_rdma(struct gnii_post *p, const gni_post_descriptor_t *d)
{
    gni_return_t rc = set_remote(p, &d->remote_mem_hndl, d->remote_addr);

    if (rc != GNI_RC_SUCCESS)
        return rc;
    if ((d->rdma_mode & GNI_RDMAMODE_PHYS_ADDR) != 0 || !gnii_handle_crc_is_good(&d->remote_mem_hndl) ||
        !gnii_handle_crc_is_good(&d->local_mem_hndl))
        return GNI_RC_INVALID_PARAM;
    p->local_addr = d->local_addr;
    p->length_bytes = d->length;
    p->engine = GNII_CQE_ENGINE_BTE;
    p->flags |= EMU_CMD_BLOCK;
    if (d->rdma_mode & GNI_RDMAMODE_FENCE)
        p->flags |= EMU_CMD_FENCE;
    if (d->type == GNI_POST_RDMA_GET) {
        p->op = EMU_OP_GET;
        return check_get(p, &d->local_mem_hndl);
    }
    if (d->type != GNI_POST_RDMA_PUT)
        return GNI_RC_INVALID_PARAM;
    p->op = EMU_OP_PUT;
    return p->length_bytes == 0 ? GNI_RC_SUCCESS : check_local(p, &d->local_mem_hndl, p->length_bytes, false);
}

gni_return_t gnii_post_prepare_cqwrite(struct gnii_post *p, const gni_post_descriptor_t *d)
{
    gni_return_t rc = set_remote(p, &d->remote_mem_hndl, 0);

    p->op = EMU_OP_CQ_WRITE;
    p->value = d->cqwrite_value;
    return rc;
}

/* ---- the command ---- */

static uint16_t events_of(uint16_t cq_mode)
{
    uint16_t events = 0;

    if (cq_mode & GNI_CQMODE_LOCAL_EVENT)
        events |= EMU_EV_LOCAL;
    if (cq_mode & GNI_CQMODE_GLOBAL_EVENT)
        events |= EMU_EV_GLOBAL;
    if (cq_mode & GNI_CQMODE_REMOTE_EVENT)
        events |= EMU_EV_REMOTE;
    if ((cq_mode & GNI_CQMODE_DUAL_EVENTS) == 0)
        events |= EMU_EV_RETIRE;
    return events;
}

/* How the data of a put travel to emunic: a flag of the command, or 0 where emunic reads them itself. */
static uint8_t put_way(const struct gnii_post *p)
{
    uint64_t inline_max = (p->flags & EMU_CMD_FLAG) ? EMU_CMD_INLINE_FLAGGED : EMU_CMD_INLINE_MAX;

    if (p->op != EMU_OP_PUT || p->is_local_special) /* emunic alone knows where the segments are */
        return 0;
    if (p->length_bytes <= inline_max)
        return EMU_CMD_INLINE;
    return (p->flags & EMU_CMD_BLOCK) == 0 && p->length_bytes <= EMU_STAGED_MAX ? EMU_CMD_STAGED : 0;
}

/* One word to or from anywhere, without an event at the target. */
static bool is_launch(const struct gnii_post *p)
{
    return p->ep->nic->launches && (p->op == EMU_OP_PUT || p->op == EMU_OP_AMO) && p->length_bytes <= 8 &&
           (p->flags & (EMU_CMD_BLOCK | EMU_CMD_FLAG)) == 0 && (p->cq_mode & GNI_CQMODE_REMOTE_EVENT) == 0;
}

/* Everything but the data of a put. */
static void fill_command(struct emu_cmd *cmd, const struct gnii_post *p, uint32_t tid)
{
    cmd->op = p->op;
    cmd->flags = p->flags | (is_launch(p) ? EMU_CMD_LAUNCH : 0);
    cmd->handle_flags = (uint8_t)(p->delivery << EMU_HANDLE_MODE_SHIFT);
    cmd->chain = p->chain;
    cmd->events = events_of(p->cq_mode);
    cmd->length_bytes = p->length_bytes;
    gnii_cmd_set_handle(cmd, p->ep->remote_addr, &p->remote, p->remote_addr);
    cmd->source_cq = p->cq->index;
    cmd->source_event = gnii_cqe_post(p->engine, tid, p->ep->local_event, GNII_CQE_OK);
    cmd->remote_event = p->op == EMU_OP_CQ_WRITE ? p->value & GNII_CQE_DATA_MASK :
                                                   gnii_cqe_remote(GNI_CQ_EVENT_TYPE_POST, p->ep->remote_event);
    if (p->op == EMU_OP_CQ_WRITE)
        return;
    cmd->local_addr = p->local_addr;
    if (p->is_local_special) {
        cmd->handle_flags |= EMU_HANDLE_LOCAL_SEGMENTS;
        cmd->local_mdh = p->local_mdh;
        cmd->local_generation = p->local_generation;
    }
    if (p->op == EMU_OP_AMO) {
        cmd->operand1 = p->operand1;
        cmd->operand2 = p->operand2;
        cmd->amo_op = p->amo_op;
        cmd->amo_flags = p->amo_flags;
    } else if (p->flags & EMU_CMD_FLAG) {
        cmd->flag_addr = p->flag_addr;
        cmd->flag_value = p->value;
    }
}

struct emu_cmd *gnii_post_build(const struct gnii_post *p, uint32_t tid, uint64_t *staging_off_out)
{
    uint64_t staged_bytes = put_way(p) == EMU_CMD_STAGED ? p->length_bytes : 0;
    struct emu_cmd *cmd = emu_port_command(&p->ep->nic->port, staged_bytes, staging_off_out);

    if (cmd)
        fill_command(cmd, p, tid);
    return cmd;
}

void gnii_post_hand_over_data(const struct gnii_post *p, struct emu_cmd *cmd, uint64_t staging_off)
{
    const void *data = (const void *)(uintptr_t)p->local_addr;
    uint8_t way = put_way(p);

    cmd->flags |= way;
    if (way == EMU_CMD_INLINE && p->length_bytes > 0)
        memcpy((p->flags & EMU_CMD_FLAG) ? cmd->flagged_data : cmd->data, data, p->length_bytes);
    if (way == EMU_CMD_STAGED) {
        memcpy(p->ep->nic->port.staging + staging_off, data, p->length_bytes);
        cmd->local_addr = staging_off;
    }
}
