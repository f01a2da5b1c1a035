/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transactions: from a command to its events.
 *
 *   begin   nid -> node, handle -> memory domain, address -> owner's address, access and bounds. The handle's base
 *           must be the domain's and its generation, when it carries one, the current one: a stale handle fails.
 *   step    put, get, atomic. A put's flag is stored after its last byte.
 *   finish  flow counters, then events: LOCAL before GLOBAL in the source queue, REMOTE in the owner's queue, all
 *           after the data. Of a chain only the last command has source events, and they carry the chain's first
 *           failure. A failed transaction delivers its source events with the status and no remote event.
 *
 * A virtual handle names a place in the node's block, which leads to a memory domain; its address is what lies
 * between the base in the handle and the address in the command, because the same handle serves on every node.
 *
 * Bounds are those of the registration rounded out to pages, as on the original hardware; programs round
 * misaligned gets up to four bytes and depend on it. Bytes beyond that are never touched.
 *
 * A node on another host is left to emunic, which sends the command there; that host's emunic runs this engine on its
 * own table and counts nothing, and the initiator's finishes what is the initiator's.
 *
 * The command is untrusted. Everything it says is checked here or cannot matter outside the initiator's domain:
 * what reaches another port's queue is rebuilt from the bits a port may choose.
 * Source: spec/ugni.md 4.7, 4.8 and Appendix B.
 */
#include "emunic/engine/transaction.h"

#include <errno.h>
#include <string.h>

#include "emunic/abi/ce.h"
#include "emunic/engine/park.h"

static unsigned status_of(const struct emu_view *view, int result, bool is_local)
{
    if (result == -EPERM)
        return view->declines ? EMU_REACH_NOT_HERE : EMU_STATUS_REMOTE_PERMISSION;
    if (is_local)
        return EMU_STATUS_LOCAL_ACCESS;
    return result == -ESRCH ? EMU_STATUS_PEER_GONE : EMU_STATUS_REMOTE_RANGE;
}

/* Owner's address of [addr, addr + len) if the domain covers it. */
static bool translate(const struct emu_table_md *md, const struct emu_cmd *cmd, uint64_t addr, uint64_t len_bytes,
                      uint64_t *target_out)
{
    uint64_t first = emu_page_down(md->base);
    uint64_t end = emu_page_up(md->base + md->length_bytes);
    uint64_t target;

    if (cmd->handle_flags & EMU_HANDLE_OFFSET)
        target = md->base + (addr - cmd->remote_base);
    else if (cmd->handle_flags & EMU_HANDLE_VIRTUAL)
        target = first + (addr - cmd->remote_base);
    else
        target = addr;
    if (target < first || target > end || len_bytes > end - target)
        return false;
    *target_out = target;
    return true;
}

/* Two-operand commands without a result may name one word or a pair; further pairs step by two words. */
static uint64_t amo_stride_bytes(const struct emu_cmd *cmd, const struct emu_amo *amo)
{
    uint64_t width = emu_amo_word_bytes(amo);

    return (cmd->amo_flags & EMU_AMO_PAIRS) && cmd->length_bytes > width ? 2 * width : width;
}

static struct emu_amo amo_of(const struct emu_cmd *cmd)
{
    return (struct emu_amo){
        .op = cmd->amo_op, .flags = cmd->amo_flags, .operand1 = cmd->operand1, .operand2 = cmd->operand2
    };
}

static unsigned check_shape(const struct emu_cmd *cmd)
{
    struct emu_amo amo;
    uint64_t inline_max;

    switch (cmd->op) {
    case EMU_OP_PUT:
        if ((cmd->flags & EMU_CMD_INLINE) == 0)
            return EMU_STATUS_OK;
        inline_max = (cmd->flags & EMU_CMD_FLAG) ? EMU_CMD_INLINE_FLAGGED : EMU_CMD_INLINE_MAX;
        return cmd->length_bytes <= inline_max ? EMU_STATUS_OK : EMU_STATUS_BAD_COMMAND;
    case EMU_OP_GET:
    case EMU_OP_CQ_WRITE:
        return EMU_STATUS_OK;
    case EMU_OP_AMO:
        amo = amo_of(cmd);
        if (!emu_amo_is_valid(&amo) || cmd->length_bytes == 0 || cmd->length_bytes % emu_amo_word_bytes(&amo) != 0 ||
            cmd->remote_addr % emu_amo_word_bytes(&amo) != 0)
            return EMU_STATUS_BAD_COMMAND;
        return EMU_STATUS_OK;
    default:
        return EMU_STATUS_BAD_COMMAND;
    }
}

static unsigned check_handle(const struct emu_view *view, const struct emu_table_md *md, const struct emu_cmd *cmd)
{
    /* Pairs with the release in emunic's registration: the other fields belong to this state. */
    uint32_t state = atomic_load_explicit(&md->state, memory_order_acquire);
    const struct emu_segment *owner = NULL;
    uint32_t generation;

    if (state == EMU_MD_GONE)
        return EMU_STATUS_BAD_HANDLE;
    if (state != EMU_MD_LIVE) {
        owner = view->ops->segment ? view->ops->segment(view->ctx, md->port) : NULL;
        if (!owner)
            return view->declines ? EMU_REACH_NOT_HERE : EMU_STATUS_BAD_HANDLE;
    }
    generation = emu_park_generation(md, owner);
    if (generation == 0 || (cmd->generation != 0 && cmd->generation != generation))
        return EMU_STATUS_BAD_HANDLE;
    if ((cmd->handle_flags & (EMU_HANDLE_OFFSET | EMU_HANDLE_VIRTUAL)) == 0 &&
        cmd->remote_base != emu_page_down(md->base))
        return EMU_STATUS_BAD_HANDLE;
    return EMU_STATUS_OK;
}

static unsigned check_access(const struct emu_view *view, struct emu_transaction *t, const struct emu_table_md *md)
{
    const struct emu_cmd *cmd = &t->cmd;

    if (cmd->op == EMU_OP_CQ_WRITE) /* touches no memory, but its queue has to be within reach */
        return (unsigned)view->ops->reach(view->ctx, md, cmd->op, &t->remote);
    if (cmd->op != EMU_OP_GET && (md->flags & EMU_MD_READ_ONLY))
        return EMU_STATUS_REMOTE_PERMISSION;
    if (!translate(md, cmd, cmd->remote_addr, cmd->length_bytes, &t->target_addr))
        return EMU_STATUS_REMOTE_RANGE;
    if (cmd->op == EMU_OP_PUT && (cmd->flags & EMU_CMD_FLAG)) {
        if (!translate(md, cmd, cmd->flag_addr, 8, &t->flag_addr))
            return EMU_STATUS_REMOTE_RANGE;
        if (t->flag_addr % 8 != 0)
            return EMU_STATUS_BAD_COMMAND;
    }
    if (cmd->op == EMU_OP_AMO && t->target_addr % ((cmd->amo_flags & EMU_AMO_32BIT) ? 4 : 8) != 0)
        return EMU_STATUS_BAD_COMMAND;
    return (unsigned)view->ops->reach(view->ctx, md, cmd->op, &t->remote);
}

/* An access has returned r. */
static void fail(const struct emu_view *view, struct emu_transaction *t, int r, bool is_local)
{
    t->is_waiting = r == -EINPROGRESS;
    if (r < 0 && !t->is_waiting)
        t->status = status_of(view, r, is_local);
}

static bool is_local_segmented(const struct emu_cmd *cmd)
{
    return (cmd->handle_flags & EMU_HANDLE_LOCAL_SEGMENTS) != 0 && cmd->op != EMU_OP_CQ_WRITE &&
           (cmd->flags & (EMU_CMD_INLINE | EMU_CMD_STAGED)) == 0;
}

static unsigned reach_segments(const struct emu_view *view, const struct emu_cmd *cmd, struct emu_memory *mem_out)
{
    if (!view->ops->local)
        return view->declines ? EMU_REACH_NOT_HERE : EMU_STATUS_LOCAL_ACCESS;
    return (unsigned)view->ops->local(view->ctx, cmd->local_mdh, cmd->local_generation, mem_out);
}

const struct emu_memory *emu_transaction_local(const struct emu_view *view, const struct emu_transaction *t)
{
    return is_local_segmented(&t->cmd) ? &t->segments : &view->local;
}

uint32_t emu_transaction_find_md(const struct emu_table *table, uint32_t node_index, const struct emu_md_name *name)
{
    const struct emu_table_md *mds = emu_table_mds(table, node_index);
    uint16_t md = name->mdh;

    if (name->handle_flags & EMU_HANDLE_VIRTUAL) {
        if (md >= EMU_MDH_COUNT)
            return EMU_MD_COUNT;
        md = atomic_load_explicit(&emu_table_vmdhs(table, node_index)[md], memory_order_acquire);
        return md != 0 && md < EMU_MD_COUNT ? md : EMU_MD_COUNT;
    }
    if (md >= EMU_MD_COUNT)
        return EMU_MD_COUNT;
    if (name->generation != 0)
        return md;
    for (uint32_t sharer = md % EMU_MDH_COUNT; sharer < EMU_MD_COUNT; sharer += EMU_MDH_COUNT) {
        /* Pairs with the release in emunic's registration. */
        if (atomic_load_explicit(&mds[sharer].state, memory_order_acquire) != 0 &&
            emu_page_down(mds[sharer].base) == name->remote_base)
            return sharer;
    }
    return EMU_MD_COUNT;
}

bool emu_transaction_begin(const struct emu_view *view, const struct emu_cmd *cmd, struct emu_transaction *t)
{
    const struct emu_table_md *md;
    struct emu_md_name name;
    uint32_t number;

    *t = (struct emu_transaction){ .cmd = *cmd };
    t->node_index = emu_table_node_index(view->table, cmd->remote_nid);
    if (t->node_index >= view->n_flows) {
        t->node_index = EMU_NID_NONE;
        t->status = EMU_STATUS_PEER_GONE;
        return false;
    }
    /* Its memory domains are not in this table. emunic asks before it comes here. */
    if (emu_table_nodes(view->table)[t->node_index].host != EMU_NODE_HERE) {
        t->status = view->declines ? EMU_REACH_NOT_HERE : EMU_STATUS_PEER_GONE;
        return false;
    }
    t->status = check_shape(cmd);
    if (t->status != EMU_STATUS_OK)
        return false;
    name = (struct emu_md_name){ cmd->remote_base, cmd->mdh, cmd->generation, cmd->handle_flags };
    number = emu_transaction_find_md(view->table, t->node_index, &name);
    if (number == EMU_MD_COUNT) {
        t->status = EMU_STATUS_BAD_HANDLE;
        return false;
    }
    t->mdh = (uint16_t)number;
    md = &emu_table_mds(view->table, t->node_index)[number];
    t->status = check_handle(view, md, cmd);
    if (t->status != EMU_STATUS_OK)
        return false;
    t->owner_port = md->port;
    t->status = check_access(view, t, md);
    if (t->status == EMU_STATUS_OK && is_local_segmented(cmd))
        t->status = reach_segments(view, cmd, &t->segments);
    if (t->status != EMU_STATUS_OK)
        return false;
    return cmd->op != EMU_OP_CQ_WRITE;
}

bool emu_transaction_begin_elsewhere(const struct emu_view *view, const struct emu_cmd *cmd, uint32_t node_index,
                                     struct emu_transaction *t)
{
    *t = (struct emu_transaction){ .cmd = *cmd, .node_index = node_index, .is_elsewhere = true };
    t->status = check_shape(cmd);
    if (t->status == EMU_STATUS_OK && is_local_segmented(cmd))
        t->status = reach_segments(view, cmd, &t->segments);
    return t->status == EMU_STATUS_OK;
}

/* Where the target's memory goes on. */
static struct emu_memory_at target_of(const struct emu_transaction *t)
{
    return (struct emu_memory_at){ &t->remote, t->target_addr + t->done_bytes };
}

static struct emu_bounce bounce_of(const struct emu_view *view)
{
    return (struct emu_bounce){ view->bounce, view->bounce_bytes };
}

static void step_put(const struct emu_view *view, struct emu_transaction *t, uint64_t len_bytes, bool is_last)
{
    const struct emu_cmd *cmd = &t->cmd;
    struct emu_flag flag = { t->flag_addr, cmd->flag_value };
    const struct emu_flag *after = is_last && (cmd->flags & EMU_CMD_FLAG) ? &flag : NULL;
    const struct emu_memory *from;
    int fault = 1;
    int r;

    if (cmd->flags & EMU_CMD_INLINE) {
        const uint8_t *data = (cmd->flags & EMU_CMD_FLAG) ? cmd->flagged_data : cmd->data;

        r = t->remote.ops->write(&t->remote, t->target_addr, data, len_bytes, after);
    } else {
        from = (cmd->flags & EMU_CMD_STAGED) ? &view->staging : emu_transaction_local(view, t);
        if (len_bytes == 0)
            r = t->remote.ops->write(&t->remote, t->target_addr, NULL, 0, after);
        else
            r = emu_memory_copy(target_of(t), (struct emu_memory_at){ from, cmd->local_addr + t->done_bytes },
                                len_bytes, after, bounce_of(view), &fault);
    }
    fail(view, t, r, fault == 0);
}

static void step_get(const struct emu_view *view, struct emu_transaction *t, uint64_t len_bytes, bool is_last)
{
    const struct emu_cmd *cmd = &t->cmd;
    const struct emu_memory *local = emu_transaction_local(view, t);
    static const uint32_t arrived = 1;
    int fault = 0;
    int r;

    r = emu_memory_copy((struct emu_memory_at){ local, cmd->local_addr + t->done_bytes }, target_of(t), len_bytes, NULL,
                        bounce_of(view), &fault);
    if (r == 0 && is_last && (cmd->flags & EMU_CMD_GET_FLAG)) {
        fault = 1;
        r = local->ops->write(local, cmd->local_addr + cmd->length_bytes, &arrived, sizeof(arrived), NULL);
    }
    fail(view, t, r, fault == 1);
}

/* Moves on by at most EMU_AMO_STEP_BYTES, so that a long vector of atomics delays nobody. */
static void step_amo(const struct emu_view *view, struct emu_transaction *t)
{
    const struct emu_cmd *cmd = &t->cmd;
    struct emu_amo amo = amo_of(cmd);
    uint64_t width = emu_amo_word_bytes(&amo);
    uint64_t stride = amo_stride_bytes(cmd, &amo);
    uint64_t left = cmd->length_bytes - t->done_bytes;
    uint64_t end = t->done_bytes + (left < EMU_AMO_STEP_BYTES ? left : EMU_AMO_STEP_BYTES);
    const struct emu_memory *local = emu_transaction_local(view, t);
    static const uint32_t arrived = 1;
    int r = 0;

    for (; t->done_bytes < end; t->done_bytes += stride) {
        if (!t->has_old)
            r = t->remote.ops->atomic(&t->remote, t->target_addr + t->done_bytes, &amo, &t->old);
        fail(view, t, r, false);
        if (r < 0)
            return;
        if ((cmd->amo_flags & EMU_AMO_FETCH) == 0)
            continue;
        t->has_old = true;
        r = local->ops->write(local, cmd->local_addr + t->done_bytes, &t->old, width, NULL);
        fail(view, t, r, true);
        if (r < 0)
            return;
        t->has_old = false;
    }
    if (t->done_bytes >= cmd->length_bytes && (cmd->flags & EMU_CMD_GET_FLAG)) {
        r = local->ops->write(local, cmd->local_addr + cmd->length_bytes, &arrived, sizeof(arrived), NULL);
        fail(view, t, r, true);
    }
}

bool emu_transaction_step(const struct emu_view *view, struct emu_transaction *t, uint64_t max_bytes)
{
    uint64_t left = t->cmd.length_bytes - t->done_bytes;
    bool is_inline = t->cmd.op == EMU_OP_PUT && (t->cmd.flags & EMU_CMD_INLINE);
    uint64_t part = left < max_bytes || is_inline ? left : max_bytes;
    bool is_last = part == left;

    t->is_waiting = false;
    switch (t->cmd.op) {
    case EMU_OP_PUT:
        step_put(view, t, part, is_last);
        break;
    case EMU_OP_GET:
        step_get(view, t, part, is_last);
        break;
    default:
        step_amo(view, t);
        return t->is_waiting || (t->done_bytes < t->cmd.length_bytes && t->status == EMU_STATUS_OK);
    }
    if (t->is_waiting)
        return true;
    t->done_bytes += part;
    return !is_last && t->status == EMU_STATUS_OK;
}

static void count(const struct emu_view *view, const struct emu_transaction *t)
{
    const struct emu_packet_format *format = &view->table->format;
    const struct emu_cmd *cmd = &t->cmd;
    struct emu_flow_counts *flow;
    struct emu_amo amo;

    if (t->node_index == EMU_NID_NONE || !view->flows)
        return;
    flow = &view->flows[t->node_index];
    if (t->status != EMU_STATUS_OK) {
        flow->errors++;
        return;
    }
    switch (cmd->op) {
    case EMU_OP_PUT:
        emu_flow_add_put(flow, format, cmd->length_bytes + ((cmd->flags & EMU_CMD_FLAG) ? 8 : 0));
        break;
    case EMU_OP_GET:
        emu_flow_add_get(flow, format, cmd->length_bytes, 0);
        break;
    case EMU_OP_AMO:
        amo = amo_of(cmd);
        if (cmd->amo_flags & EMU_AMO_FETCH)
            emu_flow_add_get(flow, format, cmd->length_bytes, emu_amo_operand_bytes(&amo));
        else
            emu_flow_add_put(flow, format, cmd->length_bytes);
        break;
    case EMU_OP_CE:
        emu_flow_add_put(flow, format, sizeof(struct emu_ce_result));
        break;
    default:
        emu_flow_add_put(flow, format, 8);
        break;
    }
}

static void push_source(const struct emu_view *view, const struct emu_cmd *cmd, uint64_t event)
{
    struct emu_cq_producer *cq = view->ops->source(view->ctx, cmd->source_cq);

    if (cq)
        emu_cq_push_all(cq, event);
}

/*
 * Delivers the remote event. EMU_CQ_FULL only when a live queue had no room. The queue is looked up now: while a long
 * transfer was on its way the owner may have destroyed it.
 */
static int push_remote(const struct emu_view *view, const struct emu_transaction *t, unsigned source)
{
    const struct emu_table_md *md = &emu_table_mds(view->table, t->node_index)[t->mdh];
    uint64_t event = (t->cmd.remote_event & EMU_EVENT_FOREIGN_MASK) | (uint64_t)source << EMU_EVENT_SOURCE_SHIFT;
    struct emu_cq_producer *cq = md->cq == EMU_CQ_NONE ? NULL : view->ops->destination(view->ctx, md);

    if (!cq)
        return EMU_CQ_OK;
    if ((t->cmd.events & EMU_EV_LOSE) == 0)
        return emu_cq_push_of(cq, emu_cq_places(cq, (t->cmd.events & EMU_EV_HINT) == 0), event);
    emu_cq_lose(cq);
    return EMU_CQ_FULL;
}

/* Off the fast path: somebody may want to know. */
static void tell_failure(const struct emu_view *view, const struct emu_transaction *t, unsigned status)
{
    if (view->ops->failed)
        view->ops->failed(view->ctx, t, status);
}

static inline void finish_at_target(const struct emu_view *view, struct emu_transaction *t)
{
    if (t->status != EMU_STATUS_OK || t->is_elsewhere)
        return;
    if (t->cmd.op == EMU_OP_CQ_WRITE) {
        if (push_remote(view, t, EMU_SOURCE_CQ_WRITE) == EMU_CQ_FULL)
            t->status = EMU_STATUS_REMOTE_CQ_FULL;
    } else if (t->cmd.events & EMU_EV_REMOTE) {
        if (push_remote(view, t, EMU_SOURCE_REMOTE) == EMU_CQ_FULL)
            tell_failure(view, t, EMU_STATUS_REMOTE_CQ_FULL);
    }
}

static inline void finish_at_initiator(const struct emu_view *view, struct emu_transaction *t)
{
    const struct emu_cmd *cmd = &t->cmd;
    uint64_t event = cmd->source_event & ~(EMU_EVENT_LAP | EMU_EVENT_REM_OVERRUN);

    count(view, t);
    if (t->status != EMU_STATUS_OK)
        tell_failure(view, t, t->status);
    if (t->status == EMU_STATUS_REMOTE_CQ_FULL)
        event |= EMU_EVENT_REM_OVERRUN;
    if (cmd->chain == EMU_CHAIN_MORE) {
        if (*view->chain_status == EMU_STATUS_OK)
            *view->chain_status = t->status;
        return;
    }
    if (cmd->chain == EMU_CHAIN_LAST) {
        if (*view->chain_status != EMU_STATUS_OK)
            t->status = *view->chain_status;
        *view->chain_status = EMU_STATUS_OK;
    }
    event = emu_event_with_status(event, t->status);
    if (cmd->events & EMU_EV_LOCAL)
        push_source(view, cmd, event);
    if (cmd->events & EMU_EV_GLOBAL)
        push_source(view, cmd, event);
    if (cmd->events & EMU_EV_RETIRE) {
        if (t->status == EMU_STATUS_OK)
            event |= (uint64_t)EMU_SOURCE_LIBRARY << EMU_EVENT_SOURCE_SHIFT;
        push_source(view, cmd, event);
    }
}

void emu_transaction_finish(const struct emu_view *view, struct emu_transaction *t)
{
    finish_at_target(view, t);
    finish_at_initiator(view, t);
}

void emu_transaction_finish_target(const struct emu_view *view, struct emu_transaction *t)
{
    finish_at_target(view, t);
}

void emu_transaction_finish_initiator(const struct emu_view *view, struct emu_transaction *t)
{
    finish_at_initiator(view, t);
}

void emu_transaction_fail(const struct emu_view *view, const struct emu_cmd *cmd, unsigned status)
{
    struct emu_transaction t = { .cmd = *cmd, .status = status };

    t.node_index = emu_table_node_index(view->table, cmd->remote_nid);
    if (t.node_index >= view->n_flows)
        t.node_index = EMU_NID_NONE;
    emu_transaction_finish(view, &t);
}

bool emu_transaction_run(const struct emu_view *view, const struct emu_cmd *cmd)
{
    struct emu_transaction t;

    if (emu_transaction_begin(view, cmd, &t)) {
        while (emu_transaction_step(view, &t, UINT64_MAX))
            ;
    }
    if (t.status == EMU_REACH_NOT_HERE)
        return false;
    emu_transaction_finish(view, &t);
    return true;
}
