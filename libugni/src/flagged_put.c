/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library's own puts: data, then a flag word that tells of them, without entries.
 */
#include "libugni/src/ugni.h"

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
