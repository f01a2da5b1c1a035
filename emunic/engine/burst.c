/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of small puts.
 *
 * A system call for each put into private memory costs three times what the call's share is when 64 of them go in one
 * (spec/figures.md "Limits"). Whoever has several puts at hand collects those whose data lie in memory of its own: in
 * the command, or in the staging area. A put never waits here for a later one; what is at hand is run.
 *
 * The kernel copies segments in order, and says how many bytes it has done when it stops at one. So a put whose bytes
 * are all done is done; the first that is not runs by itself, which gives it its own status, and the rest goes on
 * behind it. No put that was done is repeated: its owner may have changed the memory since. Of the one that runs by
 * itself the flag had not been written.
 */
#include "emunic/engine/burst.h"

/* Where the data of a put lie here, or NULL. */
static const void *data_of(const struct emu_view *view, const struct emu_transaction *t)
{
    const struct emu_cmd *cmd = &t->cmd;

    if (cmd->flags & EMU_CMD_INLINE)
        return (cmd->flags & EMU_CMD_FLAG) ? cmd->flagged_data : cmd->data;
    if (cmd->flags & EMU_CMD_STAGED)
        return view->staging.ops->window(&view->staging, cmd->local_addr, cmd->length_bytes);
    return NULL;
}

static void add_segment(struct emu_burst *burst, const void *local, uint64_t remote, uint64_t len_bytes)
{
    burst->local[burst->n_segments] = (struct iovec){ (void *)(uintptr_t)local, len_bytes };
    burst->remote[burst->n_segments] = (struct iovec){ (void *)(uintptr_t)remote, len_bytes };
    burst->n_segments++;
}

enum emu_burst_result emu_burst_add(struct emu_burst *burst, const struct emu_view *view,
                                    const struct emu_transaction *t)
{
    const struct emu_memory *remote = &t->remote;
    const struct emu_cmd *cmd = &t->cmd;
    struct emu_transaction *put;

    if (cmd->op != EMU_OP_PUT || cmd->length_bytes == 0 || !remote->ops->write_many || !data_of(view, t))
        return EMU_BURST_NEVER;
    if (burst->n_segments + 2 > EMU_BURST_SEGMENTS || burst->n == EMU_BURST_SEGMENTS ||
        (burst->n > 0 && (burst->puts[0].remote.ops != remote->ops || burst->puts[0].remote.pid != remote->pid)))
        return EMU_BURST_FULL;
    put = &burst->puts[burst->n];
    *put = *t;
    burst->end_bytes[burst->n] = (burst->n ? burst->end_bytes[burst->n - 1] : 0) + cmd->length_bytes;
    add_segment(burst, data_of(view, put), put->target_addr, cmd->length_bytes);
    if (cmd->flags & EMU_CMD_FLAG) {
        burst->end_bytes[burst->n] += sizeof(put->cmd.flag_value);
        add_segment(burst, &put->cmd.flag_value, put->flag_addr, sizeof(put->cmd.flag_value));
    }
    burst->n++;
    return EMU_BURST_TAKEN;
}

static void run_alone(struct emu_transaction *put, const struct emu_view *view)
{
    while (emu_transaction_step(view, put, UINT64_MAX))
        ;
}

void emu_burst_run(struct emu_burst *burst, const struct emu_view *view)
{
    unsigned segment = 0;
    uint64_t done_bytes = 0; /* with those that failed */
    unsigned i = 0;

    while (i < burst->n) {
        struct emu_transaction *put = &burst->puts[i];

        if (i + 1 < burst->n)
            done_bytes += put->remote.ops->write_many(&put->remote, &burst->local[segment], &burst->remote[segment],
                                                      burst->n_segments - segment);
        for (; i < burst->n && burst->end_bytes[i] <= done_bytes; i++) {
            burst->puts[i].done_bytes = burst->puts[i].cmd.length_bytes;
            segment += (burst->puts[i].cmd.flags & EMU_CMD_FLAG) ? 2 : 1;
        }
        if (i == burst->n)
            break;
        run_alone(&burst->puts[i], view);
        done_bytes = burst->end_bytes[i];
        segment += (burst->puts[i].cmd.flags & EMU_CMD_FLAG) ? 2 : 1;
        i++;
    }
}
