/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data movement: arguments are checked here, in the order that the specification gives; then it is the interface's
 * (emunic/client/portals_send.c). Source: spec/portals3.md 1.10, 4.9, 4.11.
 */
#include <errno.h>

#include "libportals/src/interface.h"

static bool fits(const struct emu_ptl_md *md, uint64_t offset, uint64_t length)
{
    return offset <= md->length_bytes && length <= md->length_bytes - offset;
}

/* Before its range is looked at (Q3). A request may use it up meanwhile, which emu_portals_send() finds. */
static bool is_active(const struct emu_ptl_md *md)
{
    return md->threshold != 0 && (md->flags & EMU_PTL_MD_INACTIVE) == 0;
}

/* Descriptors and ranges; what a descriptor's length decides is filled in. The interface is locked. */
static enum p3_code check(struct p3_ni *ni, const struct p3_operation *op, struct emu_ptl_send *send)
{
    const struct emu_ptl_md *mds = ni->p.ni->mds;
    bool is_getput = op->kind == EMU_PTL_GETPUT;

    send->md = emu_ptl_find_md(&ni->p.owner, op->md);
    if (send->md == EMU_PTL_NONE)
        return P3_MD_INVALID;
    send->md_generation = mds[send->md].generation;
    send->put_md = send->md;
    send->put_md_generation = send->md_generation;
    if (is_getput) {
        send->put_md = emu_ptl_find_md(&ni->p.owner, op->put_md);
        if (send->put_md == EMU_PTL_NONE)
            return p3_is_elsewhere(ni, op->put_md) ? P3_MD_ILLEGAL : P3_MD_INVALID;
        send->put_md_generation = mds[send->put_md].generation;
    }
    if (!is_active(&mds[send->md]) || !is_active(&mds[send->put_md]))
        return P3_MD_INVALID;
    if (op->is_whole)
        send->length_bytes = mds[send->put_md].length_bytes;
    if (is_getput && (send->length_bytes > (uint64_t)ni->limits.max_getput_md ||
                      !fits(&mds[send->put_md], op->put_offset, send->length_bytes)))
        return P3_MD_ILLEGAL;
    return fits(&mds[send->md], op->local_offset, send->length_bytes) ? P3_OK : P3_MD_ILLEGAL;
}

static bool is_process(const struct p3_ni *ni, const struct p3_operation *op)
{
    return op->target.nid != EMU_PTL_NID_ANY && op->target.pid != EMU_PTL_PID_ANY &&
           (!op->on_own_node || op->target.nid == ni->p.port.nid);
}

static struct emu_ptl_send send_of(const struct p3_operation *op)
{
    return (struct emu_ptl_send){
        .kind = op->kind,
        .wants_ack = op->wants_ack,
        .local_offset = op->local_offset,
        .put_offset = op->put_offset,
        .nid = op->target.nid,
        .pid = op->target.pid,
        .pt = op->pt,
        .ac = op->ac,
        .bits = op->bits,
        .offset = op->offset,
        .length_bytes = op->length,
        .hdr_data = op->hdr_data,
    };
}

enum p3_code p3_move(const struct p3_operation *op)
{
    struct p3_ni *ni = p3_lock_ni_of(op->md);
    struct emu_ptl_send send = send_of(op);
    enum p3_code code;

    if (!ni)
        return P3_MD_INVALID;
    if (emu_ptl_has_dead(&ni->p.owner)) {
        emu_portals_hold(&ni->p);
        emu_portals_release(&ni->p);
    }
    code = check(ni, op, &send);
    if (code == P3_OK && !is_process(ni, op))
        code = P3_PROCESS_INVALID;
    if (code == P3_OK && emu_portals_send(&ni->p, &send) < 0)
        code = P3_MD_INVALID;
    p3_trace(ni, P3_DEBUG_REQUEST, "kind %u to %u:%u portal %u %llu bytes: %d", (unsigned)op->kind, op->target.nid,
             op->target.pid, op->pt, (unsigned long long)send.length_bytes, (int)code);
    p3_unlock_ni(ni);
    return code;
}

/* Of a put of a part: no structure is copied, since that would wait for the stores that filled it. */
static enum p3_code check_put(struct p3_ni *ni, uint32_t md, struct emu_ptl_send *put)
{
    const struct emu_ptl_md *mds = ni->p.ni->mds;

    put->md = put->put_md = emu_ptl_find_md(&ni->p.owner, md);
    if (put->md == EMU_PTL_NONE)
        return P3_MD_INVALID;
    put->md_generation = put->put_md_generation = mds[put->md].generation;
    if (!is_active(&mds[put->md]))
        return P3_MD_INVALID;
    if (!fits(&mds[put->md], put->local_offset, put->length_bytes))
        return P3_MD_ILLEGAL;
    return put->nid == EMU_PTL_NID_ANY || put->pid == EMU_PTL_PID_ANY ? P3_PROCESS_INVALID : P3_OK;
}

enum p3_code p3_put_at_once(uint32_t md, struct emu_ptl_send *put, bool *is_over)
{
    struct p3_ni *ni = p3_lock_ni_of(md);
    unsigned fail = 0;
    enum p3_code code;

    *is_over = false;
    if (!ni)
        return P3_MD_INVALID;
    code = check_put(ni, md, put);
    if (code == P3_OK)
        *is_over = emu_portals_send_at_once(&ni->p, put, &fail);
    p3_unlock_ni(ni);
    return *is_over && fail != 0 ? P3_FAIL : code;
}
