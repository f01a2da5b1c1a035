/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving rules of Portals 3.3, one after the other. See model.h. */
#include "tests/property/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Who posts the event of an operation, and what is in it. */
struct story {
    ptl_process_id_t initiator;
    ptl_uid_t uid;
    ptl_jid_t jid;
    ptl_pt_index_t pt;
    ptl_match_bits_t bits;
    uint64_t rlength;
    uint64_t mlength;
    uint64_t offset;
    ptl_hdr_data_t hdr_data;
    int threshold; /* what the event shows */
    uint64_t stream;
    uint64_t operation;
    uint64_t call;
    bool is_get_sent;
};

void model_init(struct model *m)
{
    memset(m, 0, sizeof(*m));
}

struct model_ni *model_ni_add(struct model *m, ptl_process_id_t id, ptl_uid_t uid, ptl_jid_t jid, uint64_t arena_addr)
{
    struct model_ni *ni = &m->nis[m->n_nis++];

    ni->id = id;
    ni->uid = uid;
    ni->jid = jid;
    ni->arena_addr = arena_addr;
    for (unsigned i = 0; i < MODEL_ACS; i++)
        ni->acs[i] = (struct model_ac){ { PTL_NID_ANY, PTL_PID_ANY }, uid, PTL_JID_ANY, PTL_PT_INDEX_ANY };
    return ni;
}

/* ---- events ---- */

static void post(struct model_ni *ni, const struct model_md *d, ptl_event_kind_t type, const struct story *s)
{
    struct model_eq *q = d->eq == MODEL_NONE ? NULL : &ni->eqs[d->eq];
    struct model_event *e;

    if (!q || !q->in_use || q->n_events == MODEL_EVENTS)
        return;
    e = &q->events[q->n_events++];
    memset(e, 0, sizeof(*e));
    e->event.type = type;
    e->event.initiator = s->initiator;
    e->event.uid = s->uid;
    e->event.jid = s->jid;
    e->event.pt_index = s->pt;
    e->event.match_bits = s->bits;
    e->event.rlength = s->rlength;
    e->event.mlength = s->mlength;
    e->event.offset = s->offset;
    e->event.md_handle = d->handle;
    e->event.md = d->md;
    e->event.md.threshold = s->threshold;
    e->event.hdr_data = s->hdr_data;
    e->event.ni_fail_type = PTL_NI_OK;
    e->stream = s->stream;
    e->operation = s->operation;
    e->call = s->call;
    e->is_get_sent = s->is_get_sent;
}

static void post_start(struct model_ni *ni, const struct model_md *d, ptl_event_kind_t type, const struct story *s)
{
    if (!(d->md.options & PTL_MD_EVENT_START_DISABLE))
        post(ni, d, type, s);
}

static void post_end(struct model_ni *ni, const struct model_md *d, ptl_event_kind_t type, const struct story *s)
{
    if (!(d->md.options & PTL_MD_EVENT_END_DISABLE))
        post(ni, d, type, s);
}

/* ---- match lists ---- */

static int free_me(const struct model_ni *ni)
{
    for (int i = 0; i < (int)MODEL_MES; i++) {
        if (!ni->mes[i].in_use)
            return i;
    }
    return MODEL_NONE;
}

static int place_of(const struct model_ni *ni, int me)
{
    const struct model_me *e = &ni->mes[me];

    for (unsigned i = 0; i < ni->n_listed[e->pt]; i++) {
        if (ni->lists[e->pt][i] == me)
            return (int)i;
    }
    return MODEL_NONE;
}

static int put_into_list(struct model_ni *ni, unsigned pt, unsigned place, struct model_me entry, int *me_out)
{
    int me = free_me(ni);

    if (ni->n_listed[pt] == MODEL_LIST_MAX || me == MODEL_NONE)
        return PTL_NO_SPACE;
    memmove(&ni->lists[pt][place + 1], &ni->lists[pt][place], (ni->n_listed[pt] - place) * sizeof(int));
    ni->lists[pt][place] = me;
    ni->n_listed[pt]++;
    ni->was_used[pt] = true;
    entry.in_use = true;
    entry.pt = pt;
    entry.md = MODEL_NONE;
    ni->mes[me] = entry;
    *me_out = me;
    return PTL_OK;
}

static void take_out_of_list(struct model_ni *ni, int me)
{
    struct model_me *e = &ni->mes[me];
    unsigned place = (unsigned)place_of(ni, me);

    ni->n_listed[e->pt]--;
    memmove(&ni->lists[e->pt][place], &ni->lists[e->pt][place + 1], (ni->n_listed[e->pt] - place) * sizeof(int));
    e->in_use = false;
}

int model_me_attach(struct model_ni *ni, ptl_pt_index_t pt, ptl_process_id_t id, ptl_match_bits_t bits,
                    ptl_match_bits_t ignore, bool unlinks, ptl_ins_pos_t position, int *me_out)
{
    struct model_me entry = { .id = id, .bits = bits, .ignore = ignore, .unlinks = unlinks };

    if (pt >= MODEL_PTS)
        return PTL_PT_INDEX_INVALID;
    return put_into_list(ni, pt, position == PTL_INS_BEFORE ? 0 : ni->n_listed[pt], entry, me_out);
}

int model_me_attach_any(struct model_ni *ni, ptl_pt_index_t *pt_out, ptl_process_id_t id, ptl_match_bits_t bits,
                        ptl_match_bits_t ignore, bool unlinks, int *me_out)
{
    for (unsigned pass = 0; pass < 2; pass++) {
        for (unsigned pt = 0; pt < MODEL_PTS; pt++) {
            if (ni->n_listed[pt] > 0 || (pass == 0 && ni->was_used[pt]))
                continue;
            *pt_out = pt;
            return model_me_attach(ni, pt, id, bits, ignore, unlinks, PTL_INS_AFTER, me_out);
        }
    }
    return PTL_PT_FULL;
}

int model_me_insert(struct model_ni *ni, int base, ptl_process_id_t id, ptl_match_bits_t bits, ptl_match_bits_t ignore,
                    bool unlinks, ptl_ins_pos_t position, int *me_out)
{
    struct model_me entry = { .id = id, .bits = bits, .ignore = ignore, .unlinks = unlinks };

    if (!ni->mes[base].in_use)
        return PTL_ME_INVALID;
    return put_into_list(ni, ni->mes[base].pt, (unsigned)place_of(ni, base) + (position == PTL_INS_AFTER), entry,
                         me_out);
}

/* ---- descriptors ---- */

static void let_go_of(struct model_ni *ni, int md)
{
    struct model_md *d = &ni->mds[md];

    if (d->me != MODEL_NONE)
        ni->mes[d->me].md = MODEL_NONE;
    d->in_use = false;
}

static void tell_of_manual_unlink(struct model *m, struct model_ni *ni, const struct model_md *d)
{
    struct story s = { .stream = ++m->n_streams, .operation = ++m->n_operations, .call = ++m->n_calls };

    if (!IS_CRAY || !(d->md.options & MANUAL_UNLINK_EVENT) || d->eq == MODEL_NONE)
        return;
    post(ni, d, PTL_EVENT_UNLINK, &s);
    ni->eqs[d->eq].events[ni->eqs[d->eq].n_events - 1].is_manual_unlink = true;
}

int model_me_unlink(struct model *m, struct model_ni *ni, int me)
{
    struct model_me *e = &ni->mes[me];

    if (!e->in_use)
        return PTL_ME_INVALID;
    if (e->md != MODEL_NONE) {
        tell_of_manual_unlink(m, ni, &ni->mds[e->md]);
        let_go_of(ni, e->md);
    }
    take_out_of_list(ni, me);
    return PTL_OK;
}

static void describe(struct model_ni *ni, struct model_md *d, const ptl_md_t *md, int eq)
{
    d->md = *md;
    d->eq = eq;
    d->offset = 0;
    d->threshold = md->threshold == PTL_MD_THRESH_INF ? PTL_MD_THRESH_INF : md->threshold < 0 ? 0 : md->threshold;
    d->is_active = d->threshold != 0;
    d->total = 0;
    if (md->options & PTL_MD_IOVEC) {
        const ptl_md_iovec_t *iov = md->start;

        d->n_segments = (unsigned)md->length;
        for (unsigned i = 0; i < d->n_segments; i++)
            d->segments[i] =
                (struct model_segment){ (uint64_t)(uintptr_t)iov[i].iov_base - ni->arena_addr, iov[i].iov_len };
    } else {
        d->n_segments = 1;
        d->segments[0] =
            (struct model_segment){ md->length ? (uint64_t)(uintptr_t)md->start - ni->arena_addr : 0, md->length };
    }
    for (unsigned i = 0; i < d->n_segments; i++)
        d->total += d->segments[i].bytes;
}

int model_md_create(struct model_ni *ni, int me, const ptl_md_t *md, int eq, bool unlinks, int *md_out)
{
    if (me != MODEL_NONE && !ni->mes[me].in_use)
        return PTL_ME_INVALID;
    if (me != MODEL_NONE && ni->mes[me].md != MODEL_NONE)
        return PTL_ME_IN_USE;
    for (int i = 0; i < (int)MODEL_MDS; i++) {
        struct model_md *d = &ni->mds[i];

        if (d->in_use)
            continue;
        *d = (struct model_md){ .in_use = true, .me = me, .unlinks = unlinks };
#if IS_CRAY
        d->unlinks = unlinks || (md->options & PTL_MD_FLAG_AUTO_UNLINK);
#endif
        describe(ni, d, md, eq);
        if (me != MODEL_NONE)
            ni->mes[me].md = i;
        *md_out = i;
        return PTL_OK;
    }
    return PTL_NO_SPACE;
}

int model_md_unlink(struct model *m, struct model_ni *ni, int md)
{
    struct model_md *d = &ni->mds[md];
    int me = d->me;

    if (!d->in_use)
        return PTL_MD_INVALID;
    tell_of_manual_unlink(m, ni, d);
    let_go_of(ni, md);
    if (me != MODEL_NONE && ni->mes[me].unlinks)
        take_out_of_list(ni, me);
    return PTL_OK;
}

int model_md_update(struct model_ni *ni, int md, const ptl_md_t *new_md, int eq, int testq)
{
    struct model_md *d = &ni->mds[md];

    if (!d->in_use)
        return PTL_MD_INVALID;
    if (!new_md)
        return PTL_OK;
    if (testq != MODEL_NONE && ni->eqs[testq].n_events > 0)
        return PTL_MD_NO_UPDATE;
    describe(ni, d, new_md, eq);
    return PTL_OK;
}

int model_eq_alloc(struct model_ni *ni, int *eq_out)
{
    for (int i = 0; i < (int)MODEL_EQS; i++) {
        if (ni->eqs[i].in_use)
            continue;
        ni->eqs[i].in_use = true;
        ni->eqs[i].n_events = 0;
        *eq_out = i;
        return PTL_OK;
    }
    return PTL_NO_SPACE;
}

void model_eq_free(struct model_ni *ni, int eq)
{
    ni->eqs[eq].in_use = false;
    for (unsigned i = 0; i < MODEL_MDS; i++) {
        if (ni->mds[i].eq == eq)
            ni->mds[i].eq = MODEL_NONE;
    }
}

int model_ac_entry(struct model_ni *ni, ptl_ac_index_t ac, ptl_process_id_t id, ptl_uid_t uid, ptl_jid_t jid,
                   ptl_pt_index_t pt)
{
    if (ac >= MODEL_ACS)
        return PTL_AC_INDEX_INVALID;
    if (pt != PTL_PT_INDEX_ANY && pt >= MODEL_PTS)
        return PTL_PT_INDEX_INVALID;
    ni->acs[ac] = (struct model_ac){ id, uid, jid, pt };
    return PTL_OK;
}

/* ---- memory ---- */

/* The byte of a descriptor's memory at an offset. */
static uint8_t *byte_at(struct model_ni *ni, const struct model_md *d, uint64_t offset)
{
    for (unsigned i = 0; i < d->n_segments; i++) {
        if (offset < d->segments[i].bytes)
            return &ni->arena[d->segments[i].at + offset];
        offset -= d->segments[i].bytes;
    }
    return NULL;
}

static void move_bytes(struct model_ni *to_ni, const struct model_md *to, uint64_t to_offset, struct model_ni *from_ni,
                       const struct model_md *from, uint64_t from_offset, uint64_t length)
{
    static uint8_t copy[MODEL_ARENA_BYTES];

    for (uint64_t i = 0; i < length; i++)
        copy[i] = *byte_at(from_ni, from, from_offset + i);
    for (uint64_t i = 0; i < length; i++)
        *byte_at(to_ni, to, to_offset + i) = copy[i];
}

static void swap_bytes(struct model_ni *target, const struct model_md *d, uint64_t offset, struct model_ni *from,
                       const struct model_md *sent, uint64_t sent_offset, uint8_t *old, uint64_t length)
{
    for (uint64_t i = 0; i < length; i++) {
        uint8_t *byte = byte_at(target, d, offset + i);

        old[i] = *byte;
        *byte = *byte_at(from, sent, sent_offset + i);
    }
}

/* ---- one operation on a descriptor ---- */

/* Counts it; what an event of it shows as threshold. */
static int count_operation(struct model_md *d)
{
    int before = d->threshold;

    if (d->threshold > 0)
        d->threshold--;
    if (d->threshold == 0)
        d->is_active = false;
    return IS_CRAY ? before : d->threshold;
}

/* An operation is complete: does its descriptor go with it? */
static void unlink_if_used_up(struct model_ni *ni, struct model_md *d, const struct story *s)
{
    bool is_silent = (d->md.options & PTL_MD_EVENT_START_DISABLE) && (d->md.options & PTL_MD_EVENT_END_DISABLE);
    bool is_told = IS_CRAY ? (d->md.options & AUTO_UNLINK_EVENT) != 0 : !is_silent;
    int me = d->me;

    if (d->is_active || !d->unlinks || d->replies_due > 0)
        return;
    let_go_of(ni, (int)(d - ni->mds));
    if (me != MODEL_NONE && ni->mes[me].unlinks)
        take_out_of_list(ni, me);
    if (is_told)
        post(ni, d, PTL_EVENT_UNLINK, s);
}

/* ---- the target ---- */

struct request {
    const struct model_call *call;
    struct model_ni *from;
};

static bool admits(const struct model_ni *to, const struct request *r)
{
    const struct model_ac *a = &to->acs[r->call->ac];

    return (a->id.nid == PTL_NID_ANY || a->id.nid == r->from->id.nid) &&
           (a->id.pid == PTL_PID_ANY || a->id.pid == r->from->id.pid) &&
           (a->uid == PTL_UID_ANY || a->uid == r->from->uid) && (a->jid == PTL_JID_ANY || a->jid == r->from->jid) &&
           (a->pt == PTL_PT_INDEX_ANY || a->pt == r->call->pt);
}

static bool is_managed_here(const struct model_md *d)
{
    return !(d->md.options & PTL_MD_MANAGE_REMOTE);
}

static bool accepts(const struct model_md *d, const struct request *r, uint64_t *offset_out, uint64_t *length_out)
{
    unsigned needed = r->call->kind == MODEL_PUT ? PTL_MD_OP_PUT :
                      r->call->kind == MODEL_GET ? PTL_MD_OP_GET :
                                                   PTL_MD_OP_PUT | PTL_MD_OP_GET;
    uint64_t offset = is_managed_here(d) ? d->offset : r->call->remote_offset;
    bool shortens = d->md.options & PTL_MD_TRUNCATE;

    if (!d->is_active || (d->md.options & needed) != needed)
        return false;
    if (offset > d->total)
        return false;
    if (r->call->length > d->total - offset && !shortens)
        return false;
    if ((d->md.options & PTL_MD_MAX_SIZE) && is_managed_here(d) && !shortens && r->call->length > d->md.max_size)
        return false;
    *offset_out = offset;
    *length_out = r->call->length < d->total - offset ? r->call->length : d->total - offset;
    return true;
}

static bool matches(const struct model_me *e, const struct request *r)
{
    return (e->id.nid == PTL_NID_ANY || e->id.nid == r->from->id.nid) &&
           (e->id.pid == PTL_PID_ANY || e->id.pid == r->from->id.pid) && ((e->bits ^ r->call->bits) & ~e->ignore) == 0;
}

/* The descriptor that takes the request, or NULL: it is dropped. */
static struct model_md *translate(struct model_ni *to, const struct request *r, uint64_t *offset_out,
                                  uint64_t *length_out)
{
    if (r->call->pt < MODEL_PTS && r->call->ac < MODEL_ACS && (IS_CRAY || admits(to, r))) {
        for (unsigned i = 0; i < to->n_listed[r->call->pt]; i++) {
            const struct model_me *e = &to->mes[to->lists[r->call->pt][i]];

            if (e->md != MODEL_NONE && matches(e, r) && accepts(&to->mds[e->md], r, offset_out, length_out))
                return &to->mds[e->md];
        }
    }
    to->drops++;
    return NULL;
}

struct result {
    bool is_accepted;
    bool is_acked;
    uint64_t mlength;
    uint8_t data[MODEL_ARENA_BYTES]; /* of the reply */
};

static void receive(struct model *m, struct model_ni *to, const struct request *r, struct result *out)
{
    static const ptl_event_kind_t starts[] = { PTL_EVENT_PUT_START, PTL_EVENT_GET_START, PTL_EVENT_GETPUT_START };
    static const ptl_event_kind_t ends[] = { PTL_EVENT_PUT_END, PTL_EVENT_GET_END, PTL_EVENT_GETPUT_END };
    const struct model_call *c = r->call;
    uint64_t offset = 0;
    uint64_t length = 0;
    struct model_md *d = translate(to, r, &offset, &length);
    struct story s = { .initiator = r->from->id,
                       .uid = r->from->uid,
                       .jid = r->from->jid,
                       .pt = c->pt,
                       .bits = c->bits,
                       .rlength = c->length,
                       .mlength = length,
                       .offset = offset,
                       .hdr_data = c->kind == MODEL_GET ? 0 : c->hdr_data,
                       .call = m->n_calls };

    out->is_accepted = d != NULL;
    if (!d)
        return;
    out->is_acked = c->kind == MODEL_PUT && c->wants_ack && !(d->md.options & PTL_MD_ACK_DISABLE);
    out->mlength = length;
    s.stream = ++m->n_streams;
    s.operation = ++m->n_operations;
    if (is_managed_here(d))
        d->offset += length;
    s.threshold = count_operation(d);
    if ((d->md.options & PTL_MD_MAX_SIZE) && is_managed_here(d) && d->total - d->offset < d->md.max_size)
        d->is_active = false;
    post_start(to, d, starts[c->kind], &s);
    if (c->kind == MODEL_PUT) {
        move_bytes(to, d, offset, r->from, &r->from->mds[c->md], c->local_offset, length);
    } else if (c->kind == MODEL_GET) {
        for (uint64_t i = 0; i < length; i++)
            out->data[i] = *byte_at(to, d, offset + i);
    } else {
        swap_bytes(to, d, offset, r->from, &r->from->mds[c->put_md], c->put_offset, out->data, length);
    }
    post_end(to, d, ends[c->kind], &s);
    unlink_if_used_up(to, d, &s);
}

/* ---- the initiator ---- */

static void send(struct model *m, struct model_ni *ni, struct model_md *d, const struct model_call *c, uint64_t offset,
                 uint64_t stream)
{
    struct story s = { .initiator = ni->id,
                       .uid = ni->uid,
                       .jid = ni->jid,
                       .pt = c->pt,
                       .bits = c->bits,
                       .rlength = c->length,
                       .mlength = c->length,
                       .offset = offset,
                       .hdr_data = c->kind == MODEL_GET ? 0 : c->hdr_data,
                       .stream = stream,
                       .operation = ++m->n_operations,
                       .call = m->n_calls,
                       .is_get_sent = c->kind == MODEL_GET };

    s.threshold = count_operation(d);
    post_start(ni, d, PTL_EVENT_SEND_START, &s);
    post_end(ni, d, PTL_EVENT_SEND_END, &s);
    unlink_if_used_up(ni, d, &s);
}

static struct story story_of_answer(struct model *m, const struct model_call *c, uint64_t mlength, uint64_t stream)
{
    const struct model_ni *peer = &m->nis[c->target];

    return (struct story){ .initiator = peer->id,
                           .uid = peer->uid,
                           .jid = peer->jid,
                           .pt = c->pt,
                           .bits = c->bits,
                           .rlength = c->length,
                           .mlength = mlength,
                           .offset = c->remote_offset,
                           .hdr_data = c->kind == MODEL_GET ? 0 : c->hdr_data,
                           .stream = stream,
                           .operation = ++m->n_operations,
                           .call = m->n_calls };
}

static void take_ack(struct model *m, struct model_ni *ni, struct model_md *d, const struct model_call *c,
                     uint64_t mlength, uint64_t stream)
{
    struct story s = story_of_answer(m, c, mlength, stream);

    if (!d->in_use || !d->is_active)
        return;
    s.threshold = count_operation(d);
    post(ni, d, PTL_EVENT_ACK, &s);
    unlink_if_used_up(ni, d, &s);
}

static void take_reply(struct model *m, struct model_ni *ni, struct model_md *d, const struct model_call *c,
                       const struct result *result, uint64_t stream)
{
    uint64_t room = c->local_offset < d->total ? d->total - c->local_offset : 0;
    uint64_t length = result->mlength < room ? result->mlength : room;
    struct story s = story_of_answer(m, c, length, stream);

    if (!d->in_use || (!d->is_active && !IS_CRAY)) {
        ni->drops++;
        return;
    }
    s.offset = c->local_offset;
    d->replies_due -= d->replies_due > 0;
    s.threshold = count_operation(d);
    post_start(ni, d, PTL_EVENT_REPLY_START, &s);
    for (uint64_t i = 0; i < length; i++)
        *byte_at(ni, d, c->local_offset + i) = result->data[i];
    post_end(ni, d, PTL_EVENT_REPLY_END, &s);
    unlink_if_used_up(ni, d, &s);
}

bool model_is_accepted(struct model *m, struct model_ni *from, const struct model_call *call)
{
    struct model_ni *to = &m->nis[call->target];
    struct request request = { call, from };
    uint64_t drops = to->drops;
    uint64_t offset;
    uint64_t length;
    bool is_accepted = translate(to, &request, &offset, &length) != NULL;

    to->drops = drops;
    return is_accepted;
}

int model_move(struct model *m, struct model_ni *from, const struct model_call *call)
{
    static struct result result;
    struct model_md *d = &from->mds[call->md];
    struct model_md *sent = call->kind == MODEL_GETPUT ? &from->mds[call->put_md] : d;
    uint64_t sent_offset = call->kind == MODEL_GETPUT ? call->put_offset : call->local_offset;
    struct request request = { call, from };
    uint64_t stream = ++m->n_streams;

    m->n_calls++;
    if (!d->in_use || !d->is_active || !sent->in_use || !sent->is_active)
        return PTL_MD_INVALID;
    if (call->local_offset > d->total || call->length > d->total - call->local_offset || sent_offset > sent->total ||
        call->length > sent->total - sent_offset)
        return PTL_MD_ILLEGAL;
    if (call->kind == MODEL_GET && IS_CRAY)
        d->replies_due++; /* keeps an MD of threshold 1 until its reply is here (5.2) */
    if (call->kind != MODEL_GET || IS_CRAY)
        send(m, from, sent, call, sent_offset, stream);
    /*
     * The target works on what was sent, also when that was the descriptor's last operation: copies of it are on the
     * way.
     */
    result = (struct result){ .is_accepted = false };
    receive(m, &m->nis[call->target], &request, &result);
    if (!result.is_accepted)
        d->replies_due -= d->replies_due > 0;
    if (call->kind == MODEL_PUT && result.is_acked)
        take_ack(m, from, d, call, result.mlength, stream);
    if (call->kind != MODEL_PUT && result.is_accepted)
        take_reply(m, from, d, call, &result, call->kind == MODEL_GETPUT && sent != d ? ++m->n_streams : stream);
    return PTL_OK;
}

/* ---- comparison ---- */

static bool differs(char *why, size_t why_bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool differs(char *why, size_t why_bytes, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, why_bytes, format, arguments);
    va_end(arguments);
    return false;
}

#define SAME(field)                                                                                                    \
    do {                                                                                                               \
        if ((uint64_t)(got->field) != (uint64_t)(want->field))                                                         \
            return differs(why, why_bytes, "event %d: " #field " is %llx instead of %llx", (int)want->type,            \
                           (unsigned long long)got->field, (unsigned long long)want->field);                           \
    } while (0)

static bool is_same(const struct model_event *expected, const ptl_event_t *got, char *why, size_t why_bytes)
{
    const ptl_event_t *want = &expected->event;

    SAME(type);
    SAME(md_handle);
    if (got->md.user_ptr != want->md.user_ptr)
        return differs(why, why_bytes, "event %d: md.user_ptr differs", (int)want->type);
    if (expected->is_manual_unlink)
        return true;
    SAME(initiator.nid);
    SAME(initiator.pid);
    SAME(uid);
    SAME(jid);
    SAME(pt_index);
    SAME(match_bits);
    SAME(rlength);
    if (!expected->is_get_sent)
        SAME(mlength);
    SAME(offset);
    if (got->md.start != want->md.start)
        return differs(why, why_bytes, "event %d: md.start differs", (int)want->type);
    SAME(md.length);
    SAME(md.threshold);
    if (want->md.options & PTL_MD_MAX_SIZE)
        SAME(md.max_size);
    SAME(md.options);
    SAME(md.eq_handle);
    SAME(hdr_data);
    SAME(ni_fail_type);
    return true;
}

bool model_event_take(struct model_ni *ni, int eq, const ptl_event_t *event, struct model_event *taken_out, char *why,
                      size_t why_bytes)
{
    struct model_eq *q = &ni->eqs[eq];

    if (q->n_events == 0)
        return differs(why, why_bytes, "event %d that nobody expects", (int)event->type);
    for (unsigned i = 0; i < q->n_events; i++) {
        bool is_first_of_its_stream = true;
        char first_why[160];

        for (unsigned k = 0; k < i; k++)
            is_first_of_its_stream = is_first_of_its_stream && q->events[k].stream != q->events[i].stream;
        if (q->events[i].call != q->events[0].call)
            break;
        if (!is_first_of_its_stream)
            continue;
        if (!is_same(&q->events[i], event, first_why, sizeof(first_why))) {
            if (i == 0)
                snprintf(why, why_bytes, "%s", first_why);
            continue;
        }
        *taken_out = q->events[i];
        q->n_events--;
        memmove(&q->events[i], &q->events[i + 1], (q->n_events - i) * sizeof(q->events[0]));
        return true;
    }
    return false;
}
