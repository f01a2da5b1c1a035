/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts: FMA, block transfers, queue writes, chains.
 *
 * A post is checked here as far as it can be without the target, gets a transfer slot (tid) and becomes one command
 * of the NIC; everything the target decides comes back as an error entry. The slots of a source queue are as many as
 * its entries, half of that with DUAL_EVENTS, so its entries always find room. On any error nothing was started and
 * the descriptor is untouched.
 *
 * Data of an FMA put are copied before the call returns, into the command (up to 64 bytes) or into staging (up to
 * EMU_STAGED_MAX), so the program may reuse its buffer at once; larger ones are read later, until the completion.
 * Silent posts get an entry as well, which the library swallows: their slot comes back and a failure can be shown.
 *
 * A chain (chained.c) is several commands with one slot and one completion.
 * Source: spec ugni.md 4.7, 4.8 and Appendix A.1.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/client/direct.h"
#include "libugni/src/device.h"
#include "libugni/src/post.h"
#include "libugni/src/short.h"
#include "libugni/src/stats.h"

#define TX_FIRST 256u
#define TX_MAX   (1u << 24)

/* ---- transfer slots; NIC lock held ---- */

int gnii_tx_grow(struct gnii_nic *nic)
{
    uint32_t more = nic->n_tx ? 2 * nic->n_tx : TX_FIRST;
    struct gnii_tx *tx;

    if (more > (nic->is_gemini ? GNII_CQE_WIDE_TIDS : TX_MAX))
        return -ENOSPC;
    tx = realloc(nic->tx, more * sizeof(*tx));
    if (!tx)
        return -ENOMEM;
    for (uint32_t i = nic->n_tx; i < more; i++)
        tx[i] = (struct gnii_tx){ .next = i + 1 < more ? i + 1 : UINT32_MAX };
    nic->free_tx = nic->n_tx;
    nic->tx = tx;
    nic->n_tx = more;
    return 0;
}

void gnii_tx_orphan(struct gnii_nic *nic, struct gnii_ep *ep)
{
    struct gnii_cq *cq;

    if (ep->outstanding == 0 && ep->unresolved == 0)
        return;
    for (uint32_t tid = 0; tid < nic->n_tx; tid++) {
        struct gnii_tx *tx = &nic->tx[tid];

        if (tx->ep != ep)
            continue;
        /* Entries that the program holds already will find nothing; the others are swallowed when they come. */
        tx->ep = NULL;
        tx->events_left = tx->events_due;
        if (tx->events_due == 0)
            gnii_tx_give(nic, tid);
    }
    LIST_FOREACH(cq, &nic->cqs, link) {
        for (uint64_t i = cq->sends_head; i != cq->sends_tail; i++) {
            if (cq->sends[i & cq->sends_mask].ep == ep)
                cq->sends[i & cq->sends_mask].ep = NULL;
        }
    }
    ep->outstanding = 0;
    ep->unresolved = 0;
}

/* A post that gnii_tx_wait() waits for. An element of any chain may belong to the end point. */
static bool is_waited_for(const struct gnii_tx *tx, const struct gnii_ep *ep, const struct gnii_cq *cq)
{
    return cq ? tx->cq == cq : tx->ep == ep || tx->is_chain;
}

/* Is this one of the entries that gnii_tx_wait() waits for? */
static bool is_owed(const struct gnii_nic *nic, const struct gnii_ep *ep, const struct gnii_cq *cq, uint64_t event)
{
    uint32_t tid = gnii_cqe_tid(event);

    switch (gnii_cqe_engine(event)) {
    case GNII_CQE_ENGINE_REMOTE:
    case GNII_CQE_ENGINE_CQ_WRITE:
    case GNII_CQE_ENGINE_CE:
        return false;
    case GNII_CQE_ENGINE_SMSG:
        return cq != NULL;
    default:
        return tid < nic->n_tx && is_waited_for(&nic->tx[tid], ep, cq);
    }
}

static bool all_owed_are_here(struct gnii_nic *nic, const struct gnii_ep *ep, const struct gnii_cq *only_cq)
{
    uint64_t owed = only_cq ? only_cq->sends_tail - only_cq->sends_head - only_cq->sends_settled : 0;
    const struct gnii_cq *cq;
    uint64_t event;

    for (uint32_t tid = 0; tid < nic->n_tx; tid++) {
        if (is_waited_for(&nic->tx[tid], ep, only_cq))
            owed += nic->tx[tid].events_due;
    }
    LIST_FOREACH(cq, &nic->cqs, link) {
        if (only_cq && cq != only_cq)
            continue;
        for (uint64_t ahead = 0; owed > 0 && emu_cq_peek(&cq->consumer, ahead, &event) == EMU_CQ_OK; ahead++)
            owed -= is_owed(nic, ep, only_cq, event);
    }
    return owed == 0;
}

void gnii_tx_wait(struct gnii_nic *nic, const struct gnii_ep *ep, const struct gnii_cq *cq)
{
    while (!all_owed_are_here(nic, ep, cq) && !emu_port_is_lost(&nic->port))
        emu_port_relax(&nic->port);
}

/* ---- commands ---- */

static uint8_t handle_flags_of(const struct gnii_handle_fields *fields)
{
    if ((fields->flags & GNII_HNDL_VMDH) == 0)
        return 0;
    return fields->base_va == 0 ? EMU_HANDLE_VIRTUAL | EMU_HANDLE_OFFSET : EMU_HANDLE_VIRTUAL;
}

void gnii_cmd_set_handle(struct emu_cmd *cmd, uint32_t nid, const struct gnii_handle_fields *fields, uint64_t addr)
{
    cmd->remote_nid = nid;
    cmd->remote_addr = addr;
    cmd->mdh = fields->mdh;
    cmd->generation = fields->generation;
    cmd->remote_base = fields->base_va;
    cmd->handle_flags |= handle_flags_of(fields);
}

uint8_t *gnii_cmd_put_flag(struct gnii_nic *nic, uint64_t length_bytes, uint64_t flag_addr, uint64_t flag_value,
                           struct emu_cmd **cmd_out)
{
    bool is_staged = length_bytes > EMU_CMD_INLINE_FLAGGED;
    uint64_t staging_off = 0;
    struct emu_cmd *cmd = emu_port_command(&nic->port, is_staged ? length_bytes : 0, &staging_off);

    if (!cmd)
        return NULL;
    cmd->op = EMU_OP_PUT;
    cmd->flags = EMU_CMD_FLAG | (is_staged ? EMU_CMD_STAGED : EMU_CMD_INLINE);
    cmd->length_bytes = length_bytes;
    cmd->source_cq = EMU_CQ_NONE;
    cmd->flag_addr = flag_addr;
    cmd->flag_value = flag_value;
    *cmd_out = cmd;
    if (!is_staged)
        return cmd->flagged_data;
    cmd->local_addr = staging_off;
    return nic->port.staging + staging_off;
}

struct emu_lane_target gnii_handle_target(uint32_t nid, const struct gnii_handle_fields *fields)
{
    return (struct emu_lane_target){
        .nid = nid,
        .mdh = fields->mdh,
        .generation = fields->generation,
        .handle_flags = handle_flags_of(fields),
        .remote_base = fields->base_va,
    };
}

int gnii_cmd_set_target(struct emu_cmd *cmd, uint32_t nid, const gni_mem_handle_t *handle, uint64_t addr)
{
    struct gnii_handle_fields fields;

    if (gnii_handle_decode(handle, &fields) < 0)
        return -EINVAL;
    gnii_cmd_set_handle(cmd, nid, &fields, addr);
    return 0;
}

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

/* How the data of a put travel to emunic. */
static uint8_t put_way(const struct gnii_post *p)
{
    uint64_t inline_max = (p->flags & EMU_CMD_FLAG) ? EMU_CMD_INLINE_FLAGGED : EMU_CMD_INLINE_MAX;

    if (p->op != EMU_OP_PUT || p->is_local_special) /* emunic alone knows where the segments are */
        return 0;
    if (p->length_bytes <= inline_max)
        return EMU_CMD_INLINE;
    return (p->flags & EMU_CMD_BLOCK) == 0 && p->length_bytes <= EMU_STAGED_MAX ? EMU_CMD_STAGED : 0;
}

/* Everything but the data of a put. */
static void fill_command(struct emu_cmd *cmd, const struct gnii_post *p, uint32_t tid, uint16_t events)
{
    cmd->op = p->op;
    cmd->flags = p->flags;
    cmd->chain = p->chain;
    cmd->events = events;
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

/* Copies the data of a put to where emunic finds them. */
static void hand_over_data(struct emu_cmd *cmd, const struct gnii_post *p, uint8_t way, uint8_t *staging, uint64_t off)
{
    const void *data = (const void *)(uintptr_t)p->local_addr;

    cmd->flags |= way;
    if (way == EMU_CMD_INLINE && p->length_bytes > 0)
        memcpy((p->flags & EMU_CMD_FLAG) ? cmd->flagged_data : cmd->data, data, p->length_bytes);
    if (way == EMU_CMD_STAGED) {
        memcpy(staging + off, data, p->length_bytes);
        cmd->local_addr = off;
    }
}

/* Runs the post at once, straight from the program's buffer; else gives it to emunic. */
static gni_return_t send_command(const struct gnii_post *p, uint32_t tid, uint16_t events)
{
    struct emu_port *port = &p->ep->nic->port;
    uint8_t way = put_way(p);
    uint64_t staging_off = 0;
    struct emu_cmd *cmd;

    if (port->direct && emu_direct_is_open(port->direct)) {
        cmd = emu_port_command(port, 0, NULL);
        fill_command(cmd, p, tid, events);
        if (emu_direct_run(port->direct, cmd))
            return GNI_RC_SUCCESS;
    }
    cmd = emu_port_command(port, way == EMU_CMD_STAGED ? p->length_bytes : 0, &staging_off);
    if (!cmd)
        return GNI_RC_ERROR_RESOURCE;
    fill_command(cmd, p, tid, events);
    hand_over_data(cmd, p, way, port->staging, staging_off);
    emu_port_publish(port);
    return GNI_RC_SUCCESS;
}

/* ---- start ---- */

gni_return_t gnii_post_start(const struct gnii_post *posts, uint32_t n_posts)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    uint32_t tid;

    if (!gnii_post_has_room(posts[0].cq))
        return GNI_RC_ERROR_RESOURCE;
    tid = gnii_post_take_tx(posts[0].ep, posts[0].cq, posts[0].descr, posts[0].cq_mode);
    posts[0].ep->nic->tx[tid].is_chain = posts[0].chain != EMU_CHAIN_NONE;
    for (uint32_t i = 0; i < n_posts && rc == GNI_RC_SUCCESS; i++)
        rc = send_command(&posts[i], tid, events_of(posts[i].cq_mode));
    /* Fails only when the NIC has gone: the first command then, or never mind which. */
    if (rc != GNI_RC_SUCCESS)
        gnii_tx_give(posts[0].ep->nic, tid);
    return rc;
}

/* ---- checks ---- */

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
    if ((descr->dlvr_mode & (GNI_DLVMODE_IN_ORDER | GNI_DLVMODE_ORDERED_TAIL)) != 0 &&
        (descr->dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER)
        p->flags |= EMU_CMD_IN_ORDER;
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
    *op_out = op;
    *flags_out = flags;
    return op != 0;
}

static gni_return_t check_amo(struct gnii_post *p, uint32_t command, const gni_mem_handle_t *local_handle)
{
    uint64_t width;

    if (!gnii_post_amo_of(command, &p->amo_op, &p->amo_flags) || p->length_bytes == 0)
        return GNI_RC_INVALID_PARAM;
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

static gni_return_t prepare_rdma(struct gnii_post *p, const gni_post_descriptor_t *d)
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

/* ---- calls ---- */

static bool is_fma(const gni_post_descriptor_t *d)
{
    return d->type == GNI_POST_FMA_PUT || d->type == GNI_POST_FMA_GET || d->type == GNI_POST_AMO;
}

static bool is_rdma(const gni_post_descriptor_t *d)
{
    return d->type == GNI_POST_RDMA_PUT || d->type == GNI_POST_RDMA_GET;
}

static gni_return_t post_fma(struct gnii_ep *ep, gni_post_descriptor_t *descr)
{
    struct gnii_post p;
    gni_return_t rc = gnii_post_set_common(&p, ep, descr, ep->cq);

    if (rc == GNI_RC_SUCCESS)
        rc = gnii_post_prepare_fma(&p, descr);
    return rc == GNI_RC_SUCCESS ? gnii_post_start(&p, 1) : rc;
}

static gni_return_t post_rdma(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *descr)
{
    struct gnii_post p;
    gni_return_t rc = gnii_post_set_common(&p, ep, descr, cq);

    if (rc == GNI_RC_SUCCESS)
        rc = prepare_rdma(&p, descr);
    if (rc == GNI_RC_SUCCESS && emu_port_blocks_are_used_up(&ep->nic->port)) {
        gnii_stat_count(ep->nic, GNII_STAT_FLBTE_TXD_NONE);
        rc = GNI_RC_ERROR_RESOURCE;
    }
    return rc == GNI_RC_SUCCESS ? gnii_post_start(&p, 1) : rc;
}

gni_return_t GNI_PostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    gni_return_t rc;

    if (!ep || !post_descr)
        return GNI_RC_INVALID_PARAM;
    if (post_descr->type == GNI_POST_CE)
        return gnii_ce_post(ep, post_descr);
    emu_biased_lock(&ep->nic->lock);
    rc = is_fma(post_descr) && gnii_post_short_fma(ep, post_descr) ? GNI_RC_SUCCESS : post_fma(ep, post_descr);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

gni_return_t GNI_PostRdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    struct gnii_cq *cq;
    gni_return_t rc;

    if (!ep || !post_descr)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    cq = post_descr->src_cq_hndl ? gnii_cq_find(post_descr->src_cq_hndl) : ep->cq;
    rc = is_rdma(post_descr) && gnii_post_short_rdma(ep, cq, post_descr) ? GNI_RC_SUCCESS :
                                                                           post_rdma(ep, cq, post_descr);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

gni_return_t GNI_PostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    struct gnii_post p;
    gni_return_t rc;

    if (!ep || !post_descr || post_descr->type != GNI_POST_CQWRITE)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    rc = gnii_post_set_common(&p, ep, post_descr, ep->cq);
    if (rc == GNI_RC_SUCCESS)
        rc = gnii_post_prepare_cqwrite(&p, post_descr);
    if (rc == GNI_RC_SUCCESS)
        rc = gnii_post_start(&p, 1);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}
