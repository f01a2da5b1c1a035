/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handle that was taken apart, as the target of a command or of a lane. Pure functions; any thread.
 */
#ifndef LIBUGNI_HANDLE_TARGET_H
#define LIBUGNI_HANDLE_TARGET_H

#include <errno.h>
#include <stdint.h>

#include "emunic/abi/command.h"
#include "emunic/client/lane.h"
#include "libugni/src/handle_bits.h"

static inline uint8_t gnii_handle_flags(const struct gnii_handle_fields *fields)
{
    if ((fields->flags & GNII_HNDL_VMDH) == 0)
        return 0;
    return fields->base_va == 0 ? EMU_HANDLE_VIRTUAL | EMU_HANDLE_OFFSET : EMU_HANDLE_VIRTUAL;
}

static inline struct emu_lane_target gnii_handle_target(uint32_t nid, const struct gnii_handle_fields *fields)
{
    return (struct emu_lane_target){
        .nid = nid,
        .mdh = fields->mdh,
        .generation = fields->generation,
        .handle_flags = gnii_handle_flags(fields),
        .remote_base = fields->base_va,
    };
}

static inline void gnii_cmd_set_handle(struct emu_cmd *cmd, uint32_t nid, const struct gnii_handle_fields *fields,
                                       uint64_t addr)
{
    cmd->remote_nid = nid;
    cmd->remote_addr = addr;
    cmd->mdh = fields->mdh;
    cmd->generation = fields->generation;
    cmd->remote_base = fields->base_va;
    cmd->handle_flags |= gnii_handle_flags(fields);
}

/* The same from the handle itself. -EINVAL: it is none. */
static inline int gnii_cmd_set_target(struct emu_cmd *cmd, uint32_t nid, const gni_mem_handle_t *handle, uint64_t addr)
{
    struct gnii_handle_fields fields;

    if (gnii_handle_decode(handle, &fields) < 0)
        return -EINVAL;
    gnii_cmd_set_handle(cmd, nid, &fields, addr);
    return 0;
}

#endif
