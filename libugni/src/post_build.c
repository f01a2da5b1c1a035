/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builds commands: of a checked post, and of the library's own flagged puts.
 *
 * Data of an FMA put are copied before the call returns, into the command (up to 64 bytes) or into staging (up to
 * EMU_STAGED_MAX), so the program may reuse its buffer at once; larger ones are read later, until the completion.
 */
#include <errno.h>
#include <string.h>

#include "libugni/src/post.h"

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

/* Everything but the data of a put. */
static void fill_command(struct emu_cmd *cmd, const struct gnii_post *p, uint32_t tid)
{
    cmd->op = p->op;
    cmd->flags = p->flags;
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
