/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray's dialect: its constants, and the calls that only it has. One interface, under many names.
 * Source: spec/portals3.md 0.2, 2.5 to 2.8, 4.11.
 */
#include <portals/portals3.h>

#include <stdlib.h>

#include "emunic/client/message_cost.h"
#include "emunic/client/portals_inbox.h"
#include "libportals/src/calls.h"
#include "libportals/src/interface.h"
#include "libportals/src/message_layer.h"

const struct p3_dialect p3_dialect = {
    .name = "libportals",
    .behaviour = EMU_PTL_UNLINK_ON_DEMAND | EMU_PTL_GET_SENDS | EMU_PTL_THRESHOLD_BEFORE | EMU_PTL_LENIENT_REPLY,
    .n_interfaces = 1,
    .options = 0xffff,
    .codes = {
        [P3_OK] = PTL_OK,
        [P3_SEGV] = PTL_SEGV,
        [P3_NO_INIT] = PTL_NO_INIT,
        [P3_IFACE_DUP] = PTL_IFACE_DUP,
        [P3_IFACE_INVALID] = PTL_IFACE_INVALID,
        [P3_PID_INVALID] = PTL_PID_INVALID,
        [P3_NO_SPACE] = PTL_NO_SPACE,
        [P3_FAIL] = PTL_FAIL,
        [P3_NI_INVALID] = PTL_NI_INVALID,
        [P3_HANDLE_INVALID] = PTL_HANDLE_INVALID,
        [P3_SR_INDEX_INVALID] = PTL_SR_INDEX_INVALID,
        [P3_PROCESS_INVALID] = PTL_PROCESS_INVALID,
        [P3_PT_INDEX_INVALID] = PTL_PT_INDEX_INVALID,
        [P3_PT_FULL] = PTL_PT_FULL,
        [P3_ME_INVALID] = PTL_ME_INVALID,
        [P3_ME_IN_USE] = PTL_ME_IN_USE,
        [P3_ME_LIST_TOO_LONG] = PTL_ME_LIST_TOO_LONG,
        [P3_MD_INVALID] = PTL_MD_INVALID,
        [P3_MD_ILLEGAL] = PTL_MD_ILLEGAL,
        [P3_MD_IN_USE] = PTL_MD_IN_USE,
        [P3_MD_NO_UPDATE] = PTL_MD_NO_UPDATE,
        [P3_EQ_INVALID] = PTL_EQ_INVALID,
        [P3_EQ_EMPTY] = PTL_EQ_EMPTY,
        [P3_EQ_DROPPED] = PTL_EQ_DROPPED,
        [P3_AC_INDEX_INVALID] = PTL_AC_INDEX_INVALID,
    },
};

int p3_dialect_interface(uint32_t iface)
{
    uint32_t bridge = iface >> 16;

    return (iface & 0xffff) == PTL_IFACE_SS && bridge <= PTL_BRIDGE_KERN ? 0 : -1;
}

enum p3_code p3_dialect_before_open(uint32_t net, uint32_t *pid, uint32_t *jid)
{
    (void)net;
    (void)pid;
    (void)jid;
    return P3_OK;
}

enum p3_code p3_dialect_after_open(uint32_t ni, struct p3_id id, uint32_t *jid)
{
    (void)ni;
    (void)id;
    (void)jid;
    return P3_OK;
}

void p3_dialect_after_close(uint32_t ni)
{
    (void)ni;
}

void p3_dialect_fini(void)
{
}

void p3_event_extra(const struct emu_ptl_event *from, ptl_event_t *event)
{
    event->unlinked = from->unlinked;
}

/* ---- combined calls ---- */

int PtlMEMDAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                  ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink, ptl_ins_pos_t pos, ptl_md_t md,
                  ptl_unlink_t md_unlink, ptl_handle_me_t *me, ptl_handle_md_t *mdh)
{
    struct p3_post post = {
        .ni = ni,
        .pt = pt,
        .match = p3_match_in(match_id, match_bits, ignore_bits, me_unlink),
        .before = pos == PTL_INS_BEFORE,
        .md = p3_md_in(&md),
        .md_unlinks = md_unlink == PTL_UNLINK,
        .test_eq = P3_EQ_NONE,
    };

    if (!me || !mdh)
        return p3_rc(P3_SEGV);
    if (!p3_is_init())
        return p3_rc(P3_NO_INIT);
    return p3_rc(p3_ni_check(ni) == P3_OK ? p3_me_md_post(&post, me, mdh) : P3_NI_INVALID);
}

int PtlMEMDInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                  ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink, ptl_ins_pos_t pos, ptl_md_t md,
                  ptl_unlink_t md_unlink, ptl_handle_me_t *me, ptl_handle_md_t *mdh)
{
    struct p3_post post = {
        .ni = base,
        .has_base = true,
        .base = base,
        .match = p3_match_in(match_id, match_bits, ignore_bits, me_unlink),
        .before = pos == PTL_INS_BEFORE,
        .md = p3_md_in(&md),
        .md_unlinks = md_unlink == PTL_UNLINK,
        .test_eq = P3_EQ_NONE,
    };
    enum p3_code code;

    if (!me || !mdh)
        return p3_rc(P3_SEGV);
    code = p3_is_init() ? p3_me_md_post(&post, me, mdh) : P3_NO_INIT;
    return p3_rc(code == P3_NI_INVALID ? P3_ME_INVALID : code);
}

int PtlGetPutRegion(ptl_handle_md_t get_md, ptl_size_t get_offset, ptl_handle_md_t put_md, ptl_size_t put_offset,
                    ptl_size_t length, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
                    ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
    struct p3_operation op = { .kind = EMU_PTL_GETPUT,
                               .md = get_md,
                               .local_offset = get_offset,
                               .put_md = put_md,
                               .put_offset = put_offset,
                               .length = length,
                               .target = p3_id_in(target),
                               .pt = pt,
                               .ac = ac,
                               .bits = match_bits,
                               .offset = remote_offset,
                               .hdr_data = hdr_data };

    return p3_rc(p3_is_init() ? p3_move(&op) : P3_NO_INIT);
}

int PtlMDMDCopy(ptl_handle_md_t md, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
                ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
    struct p3_operation op = { .kind = EMU_PTL_GET,
                               .is_whole = true,
                               .on_own_node = true,
                               .md = md,
                               .target = p3_id_in(target),
                               .pt = pt,
                               .ac = ac,
                               .bits = match_bits,
                               .offset = remote_offset };

    return p3_rc(p3_is_init() ? p3_move(&op) : P3_NO_INIT);
}

int PtlEQPeek(ptl_handle_eq_t eq, ptl_event_t *event)
{
    struct p3_taken taken;
    enum p3_code code;

    if (!event)
        return p3_rc(P3_SEGV);
    code = p3_is_init() ? p3_eq_peek(eq, &taken) : P3_NO_INIT;
    if (code == P3_OK || code == P3_EQ_DROPPED)
        p3_event_out(&taken.event, event);
    return p3_rc(code);
}

int PtlHandleIsEqual(ptl_handle_any_t a, ptl_handle_any_t b)
{
    return a == b;
}

/* ---- message layers of this project ---- */

bool p3_message_costs(void)
{
    return emu_message_costs();
}

void p3_message_spend(enum emu_message_end end)
{
    emu_message_spend(end);
}

int p3_memory_stays(ptl_handle_ni_t handle, const void *start, ptl_size_t length_bytes)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    bool is_kept;

    if (!ni)
        return PTL_NI_INVALID;
    is_kept = emu_regions_keep(&ni->p.regions, (uint64_t)(uintptr_t)start, length_bytes);
    p3_unlock_ni(ni);
    return is_kept ? PTL_OK : PTL_NO_SPACE;
}

_Static_assert(P3_SHORT_BYTES == EMU_PTL_INBOX_BYTES, "what an inbox has room for");

void p3_inboxes_open(ptl_handle_ni_t handle, emu_short_taker taker)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return;
    emu_portals_open_inboxes(&ni->p, taker);
    p3_unlock_ni(ni);
}

unsigned p3_inboxes_take(ptl_handle_ni_t handle, ptl_handle_eq_t quiet, bool has_entries)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    unsigned n = 0;
    uint32_t eq;

    if (!ni)
        return 0;
    if (ni->p.taker && emu_portals_has_short(&ni->p)) {
        eq = emu_ptl_find_eq(&ni->p.owner, quiet);
        n = eq == EMU_PTL_NONE ? 0 : emu_portals_hand_short(&ni->p, eq, has_entries);
    }
    if (n > 0)
        emu_port_found(&ni->p.port);
    p3_unlock_ni(ni);
    return n;
}

bool p3_has_taken(ptl_handle_ni_t handle, ptl_process_id_t target)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    bool has_taken;

    if (!ni)
        return true;
    has_taken = emu_portals_has_taken(&ni->p, target.nid, target.pid);
    p3_unlock_ni(ni);
    return has_taken;
}

void p3_rounds_begin(ptl_handle_ni_t handle)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return;
    emu_port_poll_in_rounds(&ni->p.port);
    p3_unlock_ni(ni);
}

void p3_rounds_end_one(ptl_handle_ni_t handle, bool may_yield)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return;
    p3_unlock_ni(ni); /* other threads have things to do while this one rests */
    emu_port_end_round(&ni->p.port, may_yield);
}

void p3_rounds_stir(ptl_handle_ni_t handle)
{
    struct p3_ni *ni = p3_lock_ni(handle);

    if (!ni)
        return;
    emu_port_stir(&ni->p.port);
    p3_unlock_ni(ni);
}

int p3_put_now(ptl_handle_md_t md, ptl_size_t local_offset, ptl_size_t length_bytes, const struct p3_message *message,
               bool *is_over)
{
    struct emu_ptl_send put;

    /* One by one: to clear it first takes as long as all the rest. The interface fills in what is not here. */
    put.kind = EMU_PTL_PUT;
    put.wants_ack = false;
    put.local_offset = local_offset;
    put.put_offset = 0;
    put.nid = message->target.nid;
    put.pid = message->target.pid == PTL_PID_ANY ? EMU_PTL_PID_ANY : message->target.pid;
    put.pt = message->pt;
    put.ac = 0;
    put.bits = message->bits;
    put.offset = 0;
    put.length_bytes = length_bytes;
    put.hdr_data = message->hdr_data;
    *is_over = false;
    return p3_rc(p3_is_init() ? p3_put_at_once(md, &put, is_over) : P3_NO_INIT);
}

struct p3_way {
    uint32_t ni;
    struct emu_portals_way way;
};

struct p3_way *p3_way_open(ptl_handle_ni_t ni, ptl_process_id_t target)
{
    struct p3_way *way = p3_ni_check(ni) == P3_OK ? calloc(1, sizeof(*way)) : NULL;

    if (!way)
        return NULL;
    way->ni = ni;
    way->way.nid = target.nid;
    way->way.pid = target.pid;
    return way;
}

void p3_way_close(struct p3_way *way)
{
    free(way);
}

bool p3_way_leave(struct p3_way *way, const void *data, ptl_size_t length_bytes, const struct p3_message *message)
{
    const struct emu_portals_short left = { .pt = message->pt,
                                            .length_bytes = (uint32_t)length_bytes,
                                            .bits = message->bits,
                                            .hdr_data = message->hdr_data,
                                            .data = data };
    struct p3_ni *ni = length_bytes <= P3_SHORT_BYTES ? p3_lock_ni(way->ni) : NULL;
    bool is_left;

    if (!ni)
        return false;
    is_left = emu_portals_leave_on(&ni->p, &way->way, &left);
    p3_unlock_ni(ni);
    return is_left;
}
