/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The same peers without processes, library and emunic: interfaces in memory, calls made of the engine's functions in
 * the order in which the direct path uses them. Millions of calls in seconds, and a failure is the engine's.
 */
#include "tests/property/peers.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "emunic/engine/portals_engine.h"
#include "emunic/engine/portals_owner.h"

#define FIRST_PID 200u
#define UID       1000u
#define JID       7u

static struct engine_peer {
    struct emu_ptl_ni *ni;
    struct emu_ptl_owner owner;
    uint8_t *arena;
} own[MODEL_NIS];

/* ---- calls of the owner ---- */

static struct emu_ptl_me_spec me_spec(const struct engine_peer *p, const struct peers_call *c, bool is_insert)
{
    bool is_before = c->position == PTL_INS_BEFORE;

    return (struct emu_ptl_me_spec){
        .pt = c->pt,
        .base = is_insert ? emu_ptl_find_me(&p->owner, c->me) : 0,
        .where = is_insert ? (is_before ? EMU_PTL_BEFORE : EMU_PTL_AFTER) :
                 is_before ? EMU_PTL_HEAD :
                             EMU_PTL_TAIL,
        .nid = c->id.nid,
        .pid = c->id.pid == PTL_PID_ANY ? EMU_PTL_PID_ANY : c->id.pid,
        .bits = c->bits,
        .ignore = c->ignore,
        .unlinks = c->unlink == PTL_UNLINK,
    };
}

static int create_me(struct engine_peer *p, struct peers_call *c, bool is_insert)
{
    struct emu_ptl_me_spec spec = me_spec(p, c, is_insert);
    uint32_t me;

    if (is_insert && spec.base == EMU_PTL_NONE)
        return PTL_ME_INVALID;
    if (emu_ptl_me_create(&p->owner, &spec, &me) < 0)
        return PTL_NO_SPACE;
    c->me = p->ni->mes[me].handle;
    return PTL_OK;
}

static struct emu_ptl_md_spec md_spec(const struct engine_peer *p, struct peers_call *c, struct emu_ptl_iov *iovs)
{
    bool has_pieces = c->desc.options & PTL_MD_IOVEC;

    if (has_pieces)
        c->desc.start = c->iov;
    for (uint64_t i = 0; has_pieces && i < c->desc.length; i++)
        iovs[i] = (struct emu_ptl_iov){ (uint64_t)(uintptr_t)c->iov[i].iov_base, c->iov[i].iov_len };
    return (struct emu_ptl_md_spec){
        .start = (uint64_t)(uintptr_t)c->desc.start,
        .length = c->desc.length,
        .threshold = c->desc.threshold,
        .options = c->desc.options,
        .max_size = c->desc.max_size,
        .user_ptr = (uint64_t)(uintptr_t)c->desc.user_ptr,
        .eq_handle = c->desc.eq_handle,
        .eq = c->desc.eq_handle == PTL_EQ_NONE ? EMU_PTL_NONE : emu_ptl_find_eq(&p->owner, c->desc.eq_handle),
        .unlinks = c->md_unlink == PTL_UNLINK,
        .iovs = iovs,
    };
}

static int create_md(struct engine_peer *p, struct peers_call *c, uint32_t me)
{
    struct emu_ptl_iov iovs[MODEL_SEGMENTS];
    struct emu_ptl_md_spec spec = md_spec(p, c, iovs);
    uint32_t md;
    int r = emu_ptl_md_create(&p->owner, &spec, me, &md);

    if (r < 0)
        return r == -EEXIST ? PTL_ME_IN_USE : PTL_NO_SPACE;
    c->md = p->ni->mds[md].handle;
    return PTL_OK;
}

static int create_both(struct engine_peer *p, struct peers_call *c, bool is_insert)
{
    int rc;

    if (c->verb == DO_MEMD_POST && c->eq != PTL_EQ_NONE &&
        !emu_ptl_eq_is_quiet(&p->owner, emu_ptl_find_eq(&p->owner, c->eq)))
        return PTL_MD_NO_UPDATE;
    rc = create_me(p, c, is_insert);
    return rc == PTL_OK ? create_md(p, c, emu_ptl_find_me(&p->owner, c->me)) : rc;
}

static int update(struct engine_peer *p, struct peers_call *c)
{
    uint32_t md = emu_ptl_find_md(&p->owner, c->md);
    struct emu_ptl_iov iovs[MODEL_SEGMENTS];
    struct emu_ptl_md_spec spec = md_spec(p, c, iovs);
    uint32_t test = c->eq == PTL_EQ_NONE ? EMU_PTL_NONE : emu_ptl_find_eq(&p->owner, c->eq);
    int r;

    if (md == EMU_PTL_NONE)
        return PTL_MD_INVALID;
    r = emu_ptl_md_update(&p->owner, md, &spec, test);
    return r == -EAGAIN ? PTL_MD_NO_UPDATE : r < 0 ? PTL_NO_SPACE : PTL_OK;
}

/* What the library adds: the event of an unlink by hand, for who asked for it. */
static void tell_of_unlink(struct engine_peer *p, uint32_t index)
{
#if IS_CRAY
    const struct emu_ptl_md *md = &p->ni->mds[index];
    struct emu_ptl_event event = { .kind = EMU_PTL_EVENT_UNLINK, .md_handle = md->handle, .user_ptr = md->user_ptr };

    if (md->options & MANUAL_UNLINK_EVENT)
        emu_ptl_post(p->ni, md->eq, md->eq_generation, &event);
#else
    (void)p;
    (void)index;
#endif
}

static int unlink_me(struct engine_peer *p, ptl_handle_me_t handle)
{
    uint32_t me = emu_ptl_find_me(&p->owner, handle);

    if (me == EMU_PTL_NONE)
        return PTL_ME_INVALID;
    if (p->ni->mes[me].md != EMU_PTL_NONE)
        tell_of_unlink(p, p->ni->mes[me].md);
    return emu_ptl_me_unlink(&p->owner, me) < 0 ? PTL_ME_IN_USE : PTL_OK;
}

static int unlink_md(struct engine_peer *p, ptl_handle_md_t handle)
{
    uint32_t md = emu_ptl_find_md(&p->owner, handle);

    if (md == EMU_PTL_NONE)
        return PTL_MD_INVALID;
    tell_of_unlink(p, md);
    return emu_ptl_md_unlink(&p->owner, md) < 0 ? PTL_MD_IN_USE : PTL_OK;
}

static int query(struct engine_peer *p, struct peers_call *c)
{
    uint32_t md = emu_ptl_find_md(&p->owner, c->md);

    if (md == EMU_PTL_NONE)
        return PTL_MD_INVALID;
    c->desc.threshold = p->ni->mds[md].threshold;
    return PTL_OK;
}

static int alloc_eq(struct engine_peer *p, struct peers_call *c)
{
    uint32_t eq;

    if (emu_ptl_eq_create(&p->owner, c->count, &eq) < 0)
        return PTL_NO_SPACE;
    c->eq = p->ni->eqs[eq].handle;
    return PTL_OK;
}

static int get_event(struct engine_peer *p, struct peers_call *c)
{
    uint32_t eq = emu_ptl_find_eq(&p->owner, c->eq);
    struct emu_ptl_event e;
    enum emu_ptl_take r = emu_ptl_eq_take(&p->owner, eq, false, &e);

    if (r == EMU_PTL_NO_EVENT)
        return PTL_EQ_EMPTY;
    c->event = (ptl_event_t){
        .type = (ptl_event_kind_t)e.kind,
        .initiator = { e.nid, (ptl_pid_t)e.pid },
        .uid = e.uid,
        .jid = e.jid,
        .pt_index = e.pt,
        .match_bits = e.bits,
        .rlength = e.rlength,
        .mlength = e.mlength,
        .offset = e.offset,
        .md_handle = e.md_handle,
        .md = { .start = (void *)(uintptr_t)e.start,
                .length = e.length,
                .threshold = e.threshold,
                .max_size = e.max_size,
                .options = e.options,
                .user_ptr = (void *)(uintptr_t)e.user_ptr,
                .eq_handle = e.eq_handle },
        .hdr_data = e.hdr_data,
        .link = e.link,
        .ni_fail_type = e.fail,
        .sequence = (ptl_seq_t)e.seq,
    };
    return r == EMU_PTL_EVENT ? PTL_OK : PTL_EQ_DROPPED;
}

static int change_access(struct engine_peer *p, const struct peers_call *c)
{
    if (c->ac > p->ni->max_ac)
        return PTL_AC_INDEX_INVALID;
    if (c->pt != PTL_PT_INDEX_ANY && c->pt > p->ni->max_pt)
        return PTL_PT_INDEX_INVALID;
    p->ni->aces[c->ac] = (struct emu_ptl_ace){ .nid = c->id.nid,
                                               .pid = c->id.pid == PTL_PID_ANY ? EMU_PTL_PID_ANY : c->id.pid,
                                               .uid = c->uid,
                                               .jid = c->jid,
                                               .pt = c->pt };
    return PTL_OK;
}

/* ---- data movement ---- */

static uint8_t *byte_at(const struct emu_ptl_span *span, uint64_t offset)
{
    for (uint32_t i = 0; i < span->n; i++) {
        const struct emu_ptl_iov *iov = span->iovs ? &span->iovs[i] : &span->one;

        if (offset < iov->length_bytes)
            return (uint8_t *)(uintptr_t)(iov->addr + offset);
        offset -= iov->length_bytes;
    }
    abort();
}

static void copy(const struct emu_ptl_span *to, uint64_t to_offset, const struct emu_ptl_span *from,
                 uint64_t from_offset, uint64_t n)
{
    struct emu_memory here = emu_memory_self();
    static uint8_t bounce[4096];
    int fault;

    if (emu_ptl_move((struct emu_ptl_at){ &here, to, to_offset }, (struct emu_ptl_at){ &here, from, from_offset }, n,
                     (struct emu_bounce){ bounce, sizeof(bounce) }, &fault) < 0)
        abort();
}

static struct emu_ptl_span span_of(struct engine_peer *p, uint32_t md)
{
    struct emu_ptl_span span;

    emu_ptl_span_of(p->ni, &p->ni->mds[md], &span);
    return span;
}

static void move_data(struct engine_peer *from, struct engine_peer *to, const struct emu_ptl_send *send,
                      const struct emu_ptl_taker *taker, uint8_t *reply)
{
    struct emu_ptl_span here = span_of(from, send->kind == EMU_PTL_GETPUT ? send->put_md : send->md);
    struct emu_ptl_span there;

    emu_ptl_span_of(to->ni, &taker->md, &there);
    if (send->kind == EMU_PTL_PUT)
        copy(&there, taker->offset, &here, send->local_offset, taker->mlength);
    for (uint64_t i = 0; send->kind != EMU_PTL_PUT && i < taker->mlength; i++) {
        uint8_t *byte = byte_at(&there, taker->offset + i);

        reply[i] = *byte;
        if (send->kind == EMU_PTL_GETPUT)
            *byte = *byte_at(&here, send->put_offset + i);
    }
}

static void take_reply(struct engine_peer *from, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                       uint64_t mlength, const uint8_t *data)
{
    struct emu_ptl_reply reply;
    struct emu_ptl_span span;

    if (!emu_ptl_reply_begin(from->ni, send, peer, mlength, &reply))
        return;
    emu_ptl_span_of(from->ni, &reply.md, &span);
    for (uint64_t i = 0; i < reply.mlength; i++)
        *byte_at(&span, send->local_offset + i) = data[i];
    emu_ptl_reply_end(from->ni, send, &reply, 0);
}

static int carry_out(struct engine_peer *from, struct emu_ptl_send *send)
{
    static uint8_t data[MODEL_ARENA_BYTES];
    struct engine_peer *to = &own[send->pid - FIRST_PID];
    struct emu_ptl_peer peer = { to->ni->nid, to->ni->pid, to->ni->uid, to->ni->jid };
    struct emu_ptl_request request = { .kind = send->kind,
                                       .wants_ack = send->wants_ack,
                                       .nid = from->ni->nid,
                                       .pid = from->ni->pid,
                                       .uid = UID,
                                       .jid = JID,
                                       .pt = send->pt,
                                       .ac = send->ac,
                                       .bits = send->bits,
                                       .offset = send->offset,
                                       .length_bytes = send->length_bytes,
                                       .hdr_data = send->hdr_data };
    struct emu_ptl_flight flight = { .stage = 0 };
    struct emu_ptl_taker taker;
    bool is_taken;

    if (emu_ptl_send_begin(from->ni, send) < 0)
        return PTL_MD_INVALID;
    is_taken = emu_ptl_match(to->ni, &request, &taker) == EMU_PTL_TAKEN;
    if (is_taken) {
        emu_ptl_begin(to->ni, &request, &taker, 1, &flight);
        move_data(from, to, send, &taker, data);
        emu_ptl_end(to->ni, &flight, 0);
    }
    emu_ptl_send_end(from->ni, send, 0);
    if (is_taken && taker.acks)
        emu_ptl_ack(from->ni, send, &peer, taker.mlength, 0);
    if (is_taken && send->kind != EMU_PTL_PUT)
        take_reply(from, send, &peer, taker.mlength, data);
    return PTL_OK;
}

static int move(struct engine_peer *p, const struct peers_call *c, enum emu_ptl_request_kind kind, bool is_region)
{
    uint32_t md = emu_ptl_find_md(&p->owner, c->md);
    uint32_t put_md = kind == EMU_PTL_GETPUT ? emu_ptl_find_md(&p->owner, c->put_md) : md;
    struct emu_ptl_send send = { .kind = kind,
                                 .wants_ack = c->ack == PTL_ACK_REQ,
                                 .md = md,
                                 .put_md = put_md,
                                 .nid = c->id.nid,
                                 .pid = c->id.pid,
                                 .pt = c->pt,
                                 .ac = c->ac,
                                 .bits = c->bits,
                                 .offset = c->remote_offset,
                                 .hdr_data = c->hdr_data };

    if (md == EMU_PTL_NONE || put_md == EMU_PTL_NONE)
        return PTL_MD_INVALID;
    send.md_generation = p->ni->mds[md].generation;
    send.put_md_generation = p->ni->mds[put_md].generation;
    send.length_bytes = p->ni->mds[put_md].length_bytes;
    if (is_region) {
        send.local_offset = c->offset;
        send.put_offset = c->put_offset;
        send.length_bytes = c->length;
        if (c->offset > p->ni->mds[md].length_bytes || c->length > p->ni->mds[md].length_bytes - c->offset)
            return PTL_MD_ILLEGAL;
    }
    return carry_out(p, &send);
}

/* ---- peers.h ---- */

static int make_call(struct engine_peer *p, struct peers_line *line)
{
    struct peers_call *c = &line->call;
    uint32_t me;

    emu_ptl_reap(&p->owner);
    switch (c->verb) {
    case DO_ME_ATTACH_ANY:
        c->pt = emu_ptl_unused_pt(&p->owner);
        c->position = PTL_INS_AFTER;
        return c->pt == EMU_PTL_NONE ? PTL_PT_FULL : create_me(p, c, false);
    case DO_ME_ATTACH:
        return create_me(p, c, false);
    case DO_ME_INSERT:
        return create_me(p, c, true);
    case DO_ME_UNLINK:
        return unlink_me(p, c->me);
    case DO_MD_ATTACH:
        me = emu_ptl_find_me(&p->owner, c->me);
        return me == EMU_PTL_NONE ? PTL_ME_INVALID : create_md(p, c, me);
    case DO_MD_BIND:
        return create_md(p, c, EMU_PTL_NONE);
    case DO_MD_UNLINK:
        return unlink_md(p, c->md);
    case DO_MD_UPDATE:
        return update(p, c);
    case DO_MD_QUERY:
        return query(p, c);
    case DO_MEMD_ATTACH:
        return create_both(p, c, false);
    case DO_MEMD_INSERT:
    case DO_MEMD_POST:
        return create_both(p, c, true);
    case DO_EQ_ALLOC:
        return alloc_eq(p, c);
    case DO_EQ_GET:
        return get_event(p, c);
    case DO_AC_ENTRY:
        return change_access(p, c);
    case DO_PUT:
    case DO_PUT_REGION:
        return move(p, c, EMU_PTL_PUT, c->verb == DO_PUT_REGION);
    case DO_GET:
    case DO_GET_REGION:
        return move(p, c, EMU_PTL_GET, c->verb == DO_GET_REGION);
    case DO_GETPUT:
    case DO_GETPUT_REGION:
        return move(p, c, EMU_PTL_GETPUT, c->verb == DO_GETPUT_REGION);
    case DO_STATUS:
        c->status = (ptl_sr_value_t)p->ni->drops;
        return PTL_OK;
    case DO_SNAPSHOT:
        memcpy(line->arena, p->arena, MODEL_ARENA_BYTES);
        return PTL_OK;
    default:
        return PTL_FAIL;
    }
}

static void open_peer(struct engine_peer *p, struct peers_line *line, unsigned who)
{
    static const struct emu_ptl_limits limits = { EMU_PTL_MES, EMU_PTL_MDS, EMU_PTL_EQS, EMU_PTL_MES };

    *p = (struct engine_peer){ .arena = malloc(MODEL_ARENA_BYTES) };
    p->ni = mmap(NULL, sizeof(*p->ni), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->ni == MAP_FAILED || !p->arena || emu_ptl_owner_init(&p->owner, p->ni, 0, who, &limits) < 0)
        exit(1);
    p->ni->max_pt = EMU_PTL_PTS - 1;
    p->ni->max_ac = EMU_PTL_ACES - 1;
    p->ni->max_getput = EMU_PTL_GETPUT_MAX;
    p->ni->behaviour =
        IS_CRAY ? EMU_PTL_UNLINK_ON_DEMAND | EMU_PTL_GET_SENDS | EMU_PTL_THRESHOLD_BEFORE | EMU_PTL_LENIENT_REPLY :
                  EMU_PTL_ACCESS_CONTROL;
    p->ni->nid = who;
    p->ni->pid = FIRST_PID + who;
    p->ni->uid = UID;
    p->ni->jid = JID;
    for (unsigned i = 0; i < EMU_PTL_ACES; i++)
        p->ni->aces[i] =
            (struct emu_ptl_ace){ EMU_PTL_NID_ANY, EMU_PTL_PID_ANY, UID, EMU_PTL_JID_ANY, EMU_PTL_PT_ANY, { 0 } };
    p->ni->is_up = 1;
    for (uint64_t i = 0; i < MODEL_ARENA_BYTES; i++)
        p->arena[i] = peers_first_byte(who, i);
    line->id = (ptl_process_id_t){ who, (ptl_pid_t)(FIRST_PID + who) };
    line->uid = UID;
    line->jid = JID;
    line->arena_addr = (uint64_t)(uintptr_t)p->arena;
}

void peers_start(struct peers *p, struct fx *fx, unsigned n)
{
    *p = (struct peers){ .n = n, .fx = fx, .lines = calloc(n, sizeof(*p->lines)) };
    if (!p->lines)
        exit(1);
    for (unsigned i = 0; i < n; i++)
        open_peer(&own[i], &p->lines[i], i);
}

unsigned peers_stop(struct peers *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        emu_ptl_owner_fini(&own[i].owner);
        munmap(own[i].ni, sizeof(*own[i].ni));
        free(own[i].arena);
    }
    free(p->lines);
    return 0;
}

void peers_ask(struct peers *p, unsigned who, const struct peers_call *call)
{
    p->lines[who].call = *call;
    p->lines[who].call.rc = make_call(&own[who], &p->lines[who]);
}

int peers_answer(struct peers *p, unsigned who, struct peers_call *call_out)
{
    *call_out = p->lines[who].call;
    return call_out->rc;
}

int peers_do(struct peers *p, unsigned who, struct peers_call *call)
{
    peers_ask(p, who, call);
    return peers_answer(p, who, call);
}

void peers_settle(struct peers *p, unsigned from, unsigned to)
{
    (void)p;
    (void)from;
    (void)to;
}
