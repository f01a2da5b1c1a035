/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that both dialects share, compiled once for each: the header that <portals/portals3.h> is decides about
 * types and values, dialect.h about the rest. A call checks NULL and PtlInit(), turns its arguments into the core's,
 * and the core's answer into the dialect's.
 */
#include <portals/portals3.h>

#include <stdio.h>

#include "libportals/src/calls.h"

int p3_rc(enum p3_code code)
{
    return p3_dialect.codes[code];
}

struct p3_id p3_id_in(ptl_process_id_t id)
{
    return (struct p3_id){ id.nid, id.pid == PTL_PID_ANY ? EMU_PTL_PID_ANY : id.pid };
}

/* In place, because a structure that is handed on may lose its padding, which is to be zero. */
void p3_id_out(struct p3_id id, ptl_process_id_t *out)
{
    memset(out, 0, sizeof(*out));
    out->nid = id.nid;
    out->pid = (ptl_pid_t)id.pid;
}

struct p3_md p3_md_in(const ptl_md_t *md)
{
    return (struct p3_md){ .start = md->start,
                           .length = md->length,
                           .threshold = md->threshold,
                           .max_size = md->max_size,
                           .options = md->options,
                           .user_ptr = md->user_ptr,
                           .eq = md->eq_handle };
}

static ptl_md_t md_out(const struct p3_md *md)
{
    return (ptl_md_t){ .start = md->start,
                       .length = md->length,
                       .threshold = md->threshold,
                       .max_size = md->max_size,
                       .options = md->options,
                       .user_ptr = md->user_ptr,
                       .eq_handle = md->eq };
}

struct p3_match p3_match_in(ptl_process_id_t id, ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink)
{
    return (struct p3_match){ .id = p3_id_in(id), .bits = bits, .ignore = ignore, .unlinks = unlink == PTL_UNLINK };
}

/* What has no field in the core's event is the dialect's. */
void p3_event_out(const struct emu_ptl_event *from, ptl_event_t *event)
{
    memset(event, 0, sizeof(*event));
    event->type = (ptl_event_kind_t)from->kind;
    event->initiator.nid = from->nid;
    event->initiator.pid = (ptl_pid_t)from->pid;
    event->uid = from->uid;
    event->jid = from->jid;
    event->pt_index = from->pt;
    event->match_bits = from->bits;
    event->rlength = from->rlength;
    event->mlength = from->mlength;
    event->offset = from->offset;
    event->md_handle = from->md_handle;
    event->md.start = (void *)(uintptr_t)from->start;
    event->md.length = from->length;
    event->md.threshold = from->threshold;
    event->md.max_size = from->max_size;
    event->md.options = from->options;
    event->md.user_ptr = (void *)(uintptr_t)from->user_ptr;
    event->md.eq_handle = from->eq_handle;
    event->hdr_data = from->hdr_data;
    event->link = from->link;
    event->ni_fail_type = from->fail ? PTL_NI_FAIL : PTL_NI_OK;
    p3_event_extra(from, event);
    event->sequence = (ptl_seq_t)(atomic_load_explicit(&from->seq, memory_order_relaxed) - 1);
}

/* ---- library, interfaces ---- */

int PtlInit(int *max_interfaces)
{
    return p3_rc(p3_init(max_interfaces));
}

void PtlFini(void)
{
    p3_fini();
}

static struct p3_limits limits_in(const ptl_ni_limits_t *l)
{
    return (struct p3_limits){ l->max_mes,      l->max_mds,       l->max_eqs,     l->max_ac_index,
                               l->max_pt_index, l->max_md_iovecs, l->max_me_list, l->max_getput_md };
}

int PtlNIInit(ptl_interface_t iface, ptl_pid_t pid, ptl_ni_limits_t *desired, ptl_ni_limits_t *actual,
              ptl_handle_ni_t *ni)
{
    struct p3_limits wanted = desired ? limits_in(desired) : (struct p3_limits){ 0 };
    struct p3_limits granted;
    uint32_t handle = P3_INVALID_HANDLE;
    enum p3_code code;
    int net;

    if (!ni)
        return p3_rc(P3_SEGV);
    *ni = PTL_INVALID_HANDLE;
    if (!p3_is_init())
        return p3_rc(P3_NO_INIT);
    net = p3_dialect_interface(iface);
    if (net < 0)
        return p3_rc(P3_IFACE_INVALID);
    code = p3_ni_init((uint32_t)net, pid == PTL_PID_ANY ? EMU_PTL_PID_ANY : pid, EMU_PTL_JID_ANY,
                      desired ? &wanted : NULL, &granted, &handle);
    *ni = handle;
    if (actual && handle != P3_INVALID_HANDLE)
        *actual = (ptl_ni_limits_t){ granted.max_mes,      granted.max_mds,      granted.max_eqs,
                                     granted.max_ac_index, granted.max_pt_index, granted.max_md_iovecs,
                                     granted.max_me_list,  granted.max_getput_md };
    return p3_rc(code);
}

int PtlNIFini(ptl_handle_ni_t ni)
{
    return p3_rc(p3_is_init() ? p3_ni_fini(ni) : P3_NO_INIT);
}

int PtlNIStatus(ptl_handle_ni_t ni, ptl_sr_index_t reg, ptl_sr_value_t *status)
{
    uint64_t value = 0;
    enum p3_code code;

    if (!status)
        return p3_rc(P3_SEGV);
    code = p3_is_init() ? p3_ni_status(ni, reg, &value) : P3_NO_INIT;
    if (code == P3_OK)
        *status = (ptl_sr_value_t)value;
    return p3_rc(code);
}

int PtlNIDist(ptl_handle_ni_t ni, ptl_process_id_t process, unsigned long *distance)
{
    if (!distance)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_ni_distance(ni, process.nid, process.pid != PTL_PID_ANY, distance) : P3_NO_INIT);
}

int PtlNIHandle(ptl_handle_any_t handle, ptl_handle_ni_t *ni)
{
    if (!ni)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_ni_handle(handle, ni) : P3_NO_INIT);
}

int PtlGetUid(ptl_handle_ni_t ni, ptl_uid_t *uid)
{
    if (!uid)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_get_uid(ni, uid) : P3_NO_INIT);
}

int PtlGetId(ptl_handle_ni_t ni, ptl_process_id_t *id)
{
    struct p3_id found;
    enum p3_code code;

    if (!id)
        return p3_rc(P3_SEGV);
    code = p3_is_init() ? p3_get_id(ni, &found) : P3_NO_INIT;
    if (code == P3_OK)
        p3_id_out(found, id);
    return p3_rc(code);
}

int PtlGetJid(ptl_handle_ni_t ni, ptl_jid_t *jid)
{
    if (!jid)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_get_jid(ni, jid) : P3_NO_INIT);
}

int PtlACEntry(ptl_handle_ni_t ni, ptl_ac_index_t ac, ptl_process_id_t match_id, ptl_uid_t uid, ptl_jid_t jid,
               ptl_pt_index_t pt)
{
    return p3_rc(p3_is_init() ? p3_ac_entry(ni, ac, p3_id_in(match_id), uid, jid, pt) : P3_NO_INIT);
}

/* ---- match entries ---- */

int PtlMEAttach(ptl_handle_ni_t ni, ptl_pt_index_t pt, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me)
{
    struct p3_match match = p3_match_in(match_id, match_bits, ignore_bits, unlink);

    if (!me)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_me_attach(ni, pt, &match, position == PTL_INS_BEFORE, me) : P3_NO_INIT);
}

int PtlMEAttachAny(ptl_handle_ni_t ni, ptl_pt_index_t *pt, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                   ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_handle_me_t *me)
{
    struct p3_match match = p3_match_in(match_id, match_bits, ignore_bits, unlink);

    if (!pt || !me)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_me_attach_any(ni, pt, &match, me) : P3_NO_INIT);
}

int PtlMEInsert(ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t unlink, ptl_ins_pos_t position, ptl_handle_me_t *me)
{
    struct p3_match match = p3_match_in(match_id, match_bits, ignore_bits, unlink);

    if (!me)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_me_insert(base, &match, position == PTL_INS_BEFORE, me) : P3_NO_INIT);
}

int PtlMEUnlink(ptl_handle_me_t me)
{
    return p3_rc(p3_is_init() ? p3_me_unlink(me) : P3_NO_INIT);
}

/* ---- descriptors ---- */

int PtlMDAttach(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t *mdh)
{
    struct p3_md given = p3_md_in(&md);

    if (!mdh)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_md_attach(me, &given, unlink_op == PTL_UNLINK, mdh) : P3_NO_INIT);
}

int PtlMDBind(ptl_handle_ni_t ni, ptl_md_t md, ptl_unlink_t unlink_op, ptl_handle_md_t *mdh)
{
    struct p3_md given = p3_md_in(&md);

    if (!mdh)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_md_bind(ni, &given, unlink_op == PTL_UNLINK, mdh) : P3_NO_INIT);
}

int PtlMDUnlink(ptl_handle_md_t mdh)
{
    return p3_rc(p3_is_init() ? p3_md_unlink(mdh) : P3_NO_INIT);
}

int PtlMDUpdate(ptl_handle_md_t mdh, ptl_md_t *old_md, ptl_md_t *new_md, ptl_handle_eq_t testq)
{
    struct p3_md old = { .length = 0 };
    struct p3_md given;
    enum p3_code code;

    if (!p3_is_init())
        return p3_rc(P3_NO_INIT);
    /* Of what the program has not asked for, nothing is read: it may never have been written. */
    if (old_md && (old_md->options & PTL_MD_IOVEC))
        old = p3_md_in(old_md);
    if (new_md)
        given = p3_md_in(new_md);
    code = p3_md_update(mdh, old_md ? &old : NULL, new_md ? &given : NULL, testq);
    if (old_md && (code == P3_OK || code == P3_MD_NO_UPDATE))
        *old_md = md_out(&old);
    return p3_rc(code);
}

int PtlMEMDPost(ptl_handle_ni_t ni, ptl_handle_me_t base, ptl_process_id_t match_id, ptl_match_bits_t match_bits,
                ptl_match_bits_t ignore_bits, ptl_unlink_t me_unlink, ptl_ins_pos_t pos, ptl_md_t md,
                ptl_unlink_t md_unlink, ptl_handle_me_t *me, ptl_handle_md_t *mdh, ptl_handle_eq_t testq)
{
    struct p3_post post = {
        .ni = ni,
        .has_base = true,
        .base = base,
        .match = p3_match_in(match_id, match_bits, ignore_bits, me_unlink),
        .before = pos == PTL_INS_BEFORE,
        .md = p3_md_in(&md),
        .md_unlinks = md_unlink == PTL_UNLINK,
        .test_eq = testq,
    };

    if (!me || !mdh)
        return p3_rc(P3_SEGV);
    if (!p3_is_init())
        return p3_rc(P3_NO_INIT);
    return p3_rc(p3_ni_check(ni) == P3_OK ? p3_me_md_post(&post, me, mdh) : P3_NI_INVALID);
}

/* ---- event queues ---- */

int PtlEQAlloc(ptl_handle_ni_t ni, ptl_size_t count, void (*handler)(ptl_event_t *event), ptl_handle_eq_t *eq)
{
    if (!eq)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_eq_alloc(ni, count, (void (*)(void))handler, eq) : P3_NO_INIT);
}

int PtlEQFree(ptl_handle_eq_t eq)
{
    return p3_rc(p3_is_init() ? p3_eq_free(eq) : P3_NO_INIT);
}

/* The event goes to the program, and to the queue's handler before. */
static void give(const struct p3_taken *taken, ptl_event_t *event)
{
    p3_event_out(&taken->event, event);
    if (taken->handler)
        ((void (*)(ptl_event_t *))taken->handler)(event);
}

static bool has_event(enum p3_code code)
{
    return code == P3_OK || code == P3_EQ_DROPPED;
}

static int poll_one(ptl_handle_eq_t eq, uint32_t timeout, ptl_event_t *event)
{
    struct p3_taken taken;
    enum p3_code code;

    if (!event)
        return p3_rc(P3_SEGV);
    if (!p3_is_init())
        return p3_rc(P3_NO_INIT);
    code = p3_eq_poll(&eq, 1, timeout, &taken);
    if (has_event(code))
        give(&taken, event);
    return p3_rc(code);
}

int PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event)
{
    return poll_one(eq, 0, event);
}

int PtlEQWait(ptl_handle_eq_t eq, ptl_event_t *event)
{
    return poll_one(eq, P3_FOREVER, event);
}

int PtlEQPoll(ptl_handle_eq_t *eqs, int size, uint32_t timeout, ptl_event_t *event, int *which)
{
    struct p3_taken taken;
    enum p3_code code;

    if (!eqs || !event || !which)
        return p3_rc(P3_SEGV);
    if (!p3_is_init())
        return p3_rc(P3_NO_INIT);
    code = p3_eq_poll(eqs, size, timeout, &taken);
    if (has_event(code) || (code == P3_EQ_INVALID && taken.which >= 0))
        *which = taken.which;
    if (has_event(code))
        give(&taken, event);
    return p3_rc(code);
}

/* ---- data movement ---- */

int PtlPut(ptl_handle_md_t mdh, ptl_ack_req_t ack, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
    struct p3_operation op = { .kind = EMU_PTL_PUT,
                               .is_whole = true,
                               .md = mdh,
                               .wants_ack = ack == PTL_ACK_REQ,
                               .target = p3_id_in(target),
                               .pt = pt,
                               .ac = ac,
                               .bits = match_bits,
                               .offset = remote_offset,
                               .hdr_data = hdr_data };

    return p3_rc(p3_is_init() ? p3_move(&op) : P3_NO_INIT);
}

int PtlPutRegion(ptl_handle_md_t mdh, ptl_size_t local_offset, ptl_size_t length, ptl_ack_req_t ack,
                 ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t match_bits,
                 ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
    struct p3_operation op = { .kind = EMU_PTL_PUT,
                               .md = mdh,
                               .local_offset = local_offset,
                               .length = length,
                               .wants_ack = ack == PTL_ACK_REQ,
                               .target = p3_id_in(target),
                               .pt = pt,
                               .ac = ac,
                               .bits = match_bits,
                               .offset = remote_offset,
                               .hdr_data = hdr_data };

    return p3_rc(p3_is_init() ? p3_move(&op) : P3_NO_INIT);
}

int PtlGet(ptl_handle_md_t mdh, ptl_process_id_t target, ptl_pt_index_t pt, ptl_ac_index_t ac,
           ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
    struct p3_operation op = { .kind = EMU_PTL_GET,
                               .is_whole = true,
                               .md = mdh,
                               .target = p3_id_in(target),
                               .pt = pt,
                               .ac = ac,
                               .bits = match_bits,
                               .offset = remote_offset };

    return p3_rc(p3_is_init() ? p3_move(&op) : P3_NO_INIT);
}

int PtlGetRegion(ptl_handle_md_t mdh, ptl_size_t local_offset, ptl_size_t length, ptl_process_id_t target,
                 ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset)
{
    struct p3_operation op = { .kind = EMU_PTL_GET,
                               .md = mdh,
                               .local_offset = local_offset,
                               .length = length,
                               .target = p3_id_in(target),
                               .pt = pt,
                               .ac = ac,
                               .bits = match_bits,
                               .offset = remote_offset };

    return p3_rc(p3_is_init() ? p3_move(&op) : P3_NO_INIT);
}

int PtlGetPut(ptl_handle_md_t get_md, ptl_handle_md_t put_md, ptl_process_id_t target, ptl_pt_index_t pt,
              ptl_ac_index_t ac, ptl_match_bits_t match_bits, ptl_size_t remote_offset, ptl_hdr_data_t hdr_data)
{
    struct p3_operation op = { .kind = EMU_PTL_GETPUT,
                               .is_whole = true,
                               .md = get_md,
                               .put_md = put_md,
                               .target = p3_id_in(target),
                               .pt = pt,
                               .ac = ac,
                               .bits = match_bits,
                               .offset = remote_offset,
                               .hdr_data = hdr_data };

    return p3_rc(p3_is_init() ? p3_move(&op) : P3_NO_INIT);
}

/* ---- debugging ---- */

unsigned int PtlNIDebug(ptl_handle_ni_t ni, unsigned int mask)
{
    return p3_debug(ni, mask);
}

int PtlFailNid(ptl_handle_ni_t ni, ptl_nid_t nid, unsigned count)
{
    return p3_rc(p3_is_init() ? p3_fail_nid(ni, nid, count) : P3_NO_INIT);
}

int PtlNIFailNid(ptl_handle_ni_t ni, ptl_nid_t nid, unsigned count)
{
    return PtlFailNid(ni, nid, count);
}

int PtlLoopback(ptl_handle_ni_t ni, int set, int *enabled)
{
    if (!enabled)
        return p3_rc(P3_SEGV);
    return p3_rc(p3_is_init() ? p3_loopback(ni, set != 0, enabled) : P3_NO_INIT);
}

void PtlSnprintHandle(char *s, int len, ptl_handle_any_t h)
{
    static const char *const kinds[] = { "ni", "me", "eq", "md" };

    if (!s || len < 1)
        return;
    if (h == PTL_INVALID_HANDLE)
        snprintf(s, (size_t)len, "invalid");
    else if (h == PTL_EQ_NONE || h == PTL_HANDLE_NONE)
        snprintf(s, (size_t)len, "none");
    else
        snprintf(s, (size_t)len, "%s 0x%08x", kinds[h >> 30], (unsigned)h);
}
