/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data movement calls of Portals.
 *
 * A data movement call begins on the own interface (SEND_START), and is then carried out by us or by emunic:
 *
 *   direct   lock the target, match, commit and START, move the data; SEND_END and ACK at home; END, unlock; then REPLY
 *            at home. The order of requests to one target is the order of calls, because each is over before the next
 *            begins. Data above SHORT_BYTES are moved without the target's lock; a flight in the target's interface
 *            tells emunic how far we were if we die (engine/portals_engine.h).
 *   routed   a command in the port's ring; emunic does the same (daemon/portals/portals_end.c). The gate
 *            (client/lane.h) lets nothing go direct while commands of ours wait there, so switching loses and reorders
 *            nothing.
 *
 * SEND_END stands in our queue before the target can see END, and so before whatever the message causes. That of a
 * direct get, which has no data to give away, goes with SEND_START. No thread of our own sees it before the call is
 * over: the caller's lock (portals_port.h) is held. The own lock is only tried while the target's is held, so two that
 * send to each other never wait for each other; where it is not free the target's is let go of first, and taken again
 * for END.
 *
 * Cache lines of a small put from a descriptor without a queue. It writes six of the target's interface: the lock's,
 * its flight's, the queue's, two of the event and, if its words change, the descriptor's; one or more of data; and
 * three of its own (the mark, flow counters, registers). SEND events cost our own lock's line more, the queue's and two
 * for each event, all our own but for what others last wrote there. All others (domain table, list, places) are only
 * read and stay in the cache. Where one process sends, those that come from another core are the event's two and the
 * data's, and both are asked for while the words of the request are still worked on; where several send, lock, queue
 * and descriptor come from the last one. One locked instruction, the target's lock. What is known of a target is kept
 * (portals_target.c).
 *
 * Left to emunic: whatever the domain's flags say, transfers above EMUNIC_DIRECT_LIMIT, targets whose memory we cannot
 * reach.
 */
#include "emunic/client/portals_port.h"

#include <emmintrin.h>
#include <errno.h>
#include <string.h>

#include "emunic/client/direct.h"
#include "emunic/client/portals_inbox.h"
#include "emunic/client/portals_port_inner.h"
#include "emunic/engine/rest.h"
#include "emunic/engine/word.h"

#define SHORT_BYTES 8192u /* moved under the target's lock */
#define HOME_TRIES  32u   /* for the own lock while the target's is held */

static struct emu_ptl_peer peer_id(const struct emu_portals *p, const struct emu_portals_target *t,
                                   const struct emu_ptl_send *send)
{
    return (struct emu_ptl_peer){ send->nid, send->pid, emu_table_ports(p->port.table)[t->port].uid, t->ni->jid };
}

static unsigned fail_of(int result)
{
    return result == 0 ? 0 : result == -ESRCH ? EMU_STATUS_PEER_GONE : EMU_STATUS_REMOTE_RANGE;
}

static void span_of_md(struct emu_portals *p, uint32_t md, struct emu_ptl_span *span)
{
    emu_ptl_span_of(p->ni, &p->ni->mds[md], span);
}

static void count(struct emu_portals *p, const struct emu_portals_target *t, const struct emu_ptl_send *send,
                  uint64_t mlength)
{
    struct emu_flow_counts *flow = emu_direct_flow(p->port.direct, t->node_index);

    if (send->kind == EMU_PTL_PUT)
        emu_gate_count_put(p->gate, flow, mlength);
    else
        emu_flow_add_get(flow, &p->port.table->format, mlength, send->kind == EMU_PTL_GETPUT ? mlength : 0);
}

/* How far a call has come at home, and what is left to be done there. */
struct outcome {
    bool is_begun;   /* SEND_START is posted */
    bool is_sent;    /* SEND_END too */
    bool is_cut_off; /* it is to be lost (PtlFailNid) */
    bool acks;       /* an ACK is to come */
    uint64_t mlength;
    unsigned fail;
};

/* An operation at the target between begin and end. */
struct stay {
    struct emu_ptl_request request;
    struct emu_ptl_taker taker;
    bool is_brief;
    struct emu_ptl_flight *flight;
    struct emu_ptl_flight own; /* at ourselves nobody has to be told */
    struct emu_ptl_span span;
    struct emu_memory memory;
    struct emu_ptl_iov iovs[EMU_PTL_IOVEC_MAX];
};

/* The target may change its descriptor while we work on the memory: a copy of the segments. */
static void keep_span(struct stay *stay, const struct emu_portals_target *t)
{
    emu_ptl_span_of(t->ni, &stay->taker.md, &stay->span);
    if (!stay->span.iovs)
        return;
    memcpy(stay->iovs, stay->span.iovs, stay->span.n * sizeof(stay->iovs[0]));
    stay->span.iovs = stay->iovs;
}

enum begun { HAS_BEGUN, IS_DROPPED, IS_LEFT };

/* What will be written at once is got on its way: the event's place, and the first of the data's. */
static void expect(const struct emu_portals_target *t, const struct stay *stay)
{
    emu_ptl_expect(t->ni, &stay->taker);
    if (stay->taker.mlength > 0 && stay->memory.ops->window && !stay->span.iovs)
        emu_prefetch_for_write(stay->memory.ops->window(&stay->memory, stay->span.one.addr + stay->taker.offset, 0));
}

/* The target is locked; afterwards it is so only with HAS_BEGUN. */
static enum begun begin_at(struct emu_portals *p, const struct emu_portals_target *t, const struct emu_ptl_send *send,
                           struct stay *stay)
{
    stay->request = emu_ptl_request_of(send, (struct emu_ptl_peer){ p->port.nid, p->pid, p->ni->uid, p->ni->jid });
    if (emu_ptl_match(t->ni, &stay->request, &stay->taker) != EMU_PTL_TAKEN) {
        emu_ptl_unlock(t->ni);
        return IS_DROPPED;
    }
    if (stay->taker.mlength > 0 && emu_portals_reach(p, t, &stay->taker.md, &stay->memory) != EMU_STATUS_OK) {
        emu_ptl_unlock(t->ni);
        return IS_LEFT;
    }
    keep_span(stay, t);
    expect(t, stay);
    stay->flight = t->peer ? &t->ni->flights[p->port.index] : &stay->own;
    /* A get lets go of the lock in between, a long put too; what is sent to itself must not go with its SEND_END. */
    stay->is_brief = send->kind != EMU_PTL_GET && stay->taker.mlength <= SHORT_BYTES &&
                     (t->peer || stay->taker.index != send->put_md);
    if (stay->is_brief)
        emu_ptl_begin_brief(t->ni, &stay->taker, p->generation, stay->flight);
    else
        emu_ptl_begin(t->ni, &stay->request, &stay->taker, p->generation, stay->flight);
    return HAS_BEGUN;
}

/* The target is locked, and is not afterwards. */
static void end_at(const struct emu_portals_target *t, struct stay *stay, unsigned fail)
{
    if (stay->is_brief)
        emu_ptl_end_brief(t->ni, &stay->request, &stay->taker, stay->flight, fail);
    else
        emu_ptl_end(t->ni, stay->flight, fail);
    emu_ptl_unlock(t->ni);
}

/* The owner may have gone while we did not hold it; then nobody wants to know. */
static bool lock_again(struct emu_portals *p, const struct emu_portals_target *t)
{
    return emu_portals_lock(p, t->ni, t->port, t->generation);
}

/* ---- at home ---- */

/* Has it neither SEND events nor a threshold? Then nothing at home changes but counters of our own. */
static bool is_silent(const struct emu_portals *p, const struct emu_ptl_send *send)
{
    const struct emu_ptl_md *md = &p->ni->mds[send->md];

    return md->threshold < 0 &&
           (md->eq == EMU_PTL_NONE || (~md->options & (EMU_PTL_MD_START_DISABLE | EMU_PTL_MD_END_DISABLE)) == 0);
}

/* All that a silent put leaves at home. */
static void count_silent(struct emu_portals *p, const struct emu_ptl_send *send)
{
    p->ni->registers[EMU_PTL_SR_SEND_COUNT]++;
    p->ni->registers[EMU_PTL_SR_SEND_LENGTH] += send->length_bytes;
}

/* SEND_START if it is not there yet, SEND_END, and the ACK if the target is known. The own interface is locked. */
static void post_sent(struct emu_portals *p, const struct emu_portals_target *t, struct emu_ptl_send *send,
                      struct outcome *out)
{
    struct emu_ptl_peer peer;

    if (!out->is_sent && (out->is_begun || emu_ptl_send_begin(p->ni, send) == 0))
        emu_ptl_send_end(p->ni, send, send->kind == EMU_PTL_PUT ? out->fail : 0);
    out->is_begun = out->is_sent = true;
    if (!out->acks || !t)
        return;
    peer = peer_id(p, t, send);
    emu_ptl_ack(p->ni, send, &peer, out->mlength, 0);
    out->acks = false;
}

static void tell_home(struct emu_portals *p, const struct emu_portals_target *t, struct emu_ptl_send *send,
                      struct outcome *out)
{
    emu_portals_lock_own(p);
    post_sent(p, t, send, out);
    emu_ptl_unlock(p->ni);
}

/* Runs when our own lock is not free while we hold the target's. False: the target has gone meanwhile. */
static __attribute__((noinline)) bool tell_home_unlocked(struct emu_portals *p, const struct emu_portals_target *t,
                                                         struct emu_ptl_send *send, struct stay *stay,
                                                         struct outcome *out)
{
    if (stay->is_brief)
        emu_ptl_prolong(t->ni, &stay->request, &stay->taker, p->generation, stay->flight);
    stay->is_brief = false;
    emu_ptl_unlock(t->ni);
    tell_home(p, NULL, send, out);
    return lock_again(p, t);
}

/*
 * The data are out of the source memory, and the target is locked: what is to stand at home before the target sees that
 * it has them. False: the target has gone.
 */
static bool tell_home_first(struct emu_portals *p, const struct emu_portals_target *t, struct emu_ptl_send *send,
                            struct stay *stay, struct outcome *out)
{
    if (!out->is_begun && is_silent(p, send)) {
        count_silent(p, send);
        out->is_begun = out->is_sent = true;
        return true;
    }
    if (!t->peer) {
        post_sent(p, NULL, send, out); /* the target's lock is ours */
        return true;
    }
    for (unsigned tries = 0; tries < HOME_TRIES; tries++) {
        if (emu_ptl_try_lock(p->ni, p->holder)) {
            post_sent(p, t, send, out);
            emu_ptl_unlock(p->ni);
            return true;
        }
        _mm_pause();
    }
    return tell_home_unlocked(p, t, send, stay, out);
}

/* ---- requests ---- */

static int move_put(struct emu_portals *p, const struct emu_ptl_send *send, struct stay *stay)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span from;
    void *to = NULL;
    int fault;

    if (stay->taker.mlength == 0)
        return 0;
    span_of_md(p, send->md, &from);
    if (stay->is_brief && !from.iovs && !stay->span.iovs && stay->memory.ops->window)
        to = stay->memory.ops->window(&stay->memory, stay->span.one.addr + stay->taker.offset, stay->taker.mlength);
    if (to) {
        emu_word_store(to, (const void *)(uintptr_t)(from.one.addr + send->local_offset), stay->taker.mlength);
        return emu_memory_is_broken(&stay->memory) ? -EFAULT : 0;
    }
    return emu_ptl_move((struct emu_ptl_at){ &stay->memory, &stay->span, stay->taker.offset },
                        (struct emu_ptl_at){ &self, &from, send->local_offset }, stay->taker.mlength,
                        (struct emu_bounce){ p, 1 }, &fault);
}

static enum begun run_put(struct emu_portals *p, const struct emu_portals_target *t, struct emu_ptl_send *send,
                          struct stay *stay, struct outcome *out)
{
    enum begun begun = begin_at(p, t, send, stay);
    bool is_long = begun == HAS_BEGUN && stay->taker.mlength > SHORT_BYTES;
    bool is_held;

    if (begun != HAS_BEGUN)
        return begun;
    out->mlength = stay->taker.mlength;
    if (is_long)
        emu_ptl_unlock(t->ni);
    out->fail = fail_of(move_put(p, send, stay));
    out->acks = stay->taker.acks && out->fail == 0;
    if (is_long) {
        tell_home(p, NULL, send, out);
        is_held = lock_again(p, t);
    } else {
        is_held = tell_home_first(p, t, send, stay, out);
    }
    if (is_held)
        end_at(t, stay, out->fail);
    else
        out->acks = false; /* there is nobody any more who would send it */
    return HAS_BEGUN;
}

/* The reply's data: from the target's memory, or from `swapped`. */
static int move_reply(struct emu_portals *p, const struct emu_ptl_send *send, const struct emu_ptl_reply *reply,
                      struct stay *stay, void *swapped)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span to;
    struct emu_ptl_span swap = { .n = 1, .one = { (uint64_t)(uintptr_t)swapped, EMU_PTL_GETPUT_MAX } };
    int fault;

    emu_ptl_span_of(p->ni, &reply->md, &to);
    if (swapped)
        return emu_ptl_move((struct emu_ptl_at){ &self, &to, send->local_offset },
                            (struct emu_ptl_at){ &self, &swap, 0 }, reply->mlength, (struct emu_bounce){ p, 1 },
                            &fault);
    return emu_ptl_move((struct emu_ptl_at){ &self, &to, send->local_offset },
                        (struct emu_ptl_at){ &stay->memory, &stay->span, stay->taker.offset }, reply->mlength,
                        (struct emu_bounce){ p, 1 }, &fault);
}

/* REPLY_START at home. True: the data shall be stored, then finish_reply(). */
static bool begin_reply(struct emu_portals *p, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                        uint64_t mlength, struct emu_ptl_reply *reply)
{
    bool is_taken;

    emu_portals_lock_own(p);
    is_taken = emu_ptl_reply_begin(p->ni, send, peer, mlength, reply);
    emu_ptl_unlock(p->ni);
    return is_taken;
}

static void finish_reply(struct emu_portals *p, const struct emu_ptl_send *send, struct emu_ptl_reply *reply,
                         unsigned fail)
{
    emu_portals_lock_own(p);
    emu_ptl_reply_end(p->ni, send, reply, fail);
    emu_ptl_unlock(p->ni);
}

static enum begun run_get(struct emu_portals *p, const struct emu_portals_target *t, const struct emu_ptl_send *send,
                          struct stay *stay, struct outcome *out)
{
    enum begun begun = begin_at(p, t, send, stay);
    struct emu_ptl_reply reply;
    struct emu_ptl_peer peer;
    bool is_taken;

    if (begun != HAS_BEGUN)
        return begun;
    peer = peer_id(p, t, send);
    emu_ptl_unlock(t->ni);
    is_taken = begin_reply(p, send, &peer, stay->taker.mlength, &reply);
    if (is_taken)
        out->fail = fail_of(move_reply(p, send, &reply, stay, NULL));
    if (lock_again(p, t))
        end_at(t, stay, out->fail);
    if (is_taken)
        finish_reply(p, send, &reply, out->fail);
    out->mlength = stay->taker.mlength;
    return HAS_BEGUN;
}

/* Under the target's lock, which is what makes it atomic towards other swaps. */
static unsigned swap(struct emu_portals *p, const struct emu_ptl_send *send, struct stay *stay, uint8_t *old)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span from;
    struct emu_ptl_span to = { .n = 1, .one = { (uint64_t)(uintptr_t)old, EMU_PTL_GETPUT_MAX } };
    int fault;
    int r;

    span_of_md(p, send->put_md, &from);
    r = emu_ptl_move((struct emu_ptl_at){ &self, &to, 0 },
                     (struct emu_ptl_at){ &stay->memory, &stay->span, stay->taker.offset }, stay->taker.mlength,
                     (struct emu_bounce){ p, 1 }, &fault);
    if (r == 0)
        r = emu_ptl_move((struct emu_ptl_at){ &stay->memory, &stay->span, stay->taker.offset },
                         (struct emu_ptl_at){ &self, &from, send->put_offset }, stay->taker.mlength,
                         (struct emu_bounce){ p, 1 }, &fault);
    return fail_of(r);
}

static enum begun run_getput(struct emu_portals *p, const struct emu_portals_target *t, struct emu_ptl_send *send,
                             struct stay *stay, struct outcome *out)
{
    uint8_t old[EMU_PTL_GETPUT_MAX] = { 0 };
    enum begun begun = begin_at(p, t, send, stay);
    struct emu_ptl_reply reply;
    struct emu_ptl_peer peer;

    if (begun != HAS_BEGUN)
        return begun;
    peer = peer_id(p, t, send);
    out->mlength = stay->taker.mlength;
    out->fail = out->mlength <= sizeof(old) ? swap(p, send, stay, old) : EMU_STATUS_BAD_COMMAND;
    if (tell_home_first(p, t, send, stay, out))
        end_at(t, stay, out->fail);
    if (begin_reply(p, send, &peer, out->mlength, &reply)) {
        if (out->fail == 0)
            out->fail = fail_of(move_reply(p, send, &reply, stay, old));
        finish_reply(p, send, &reply, out->fail);
    }
    return HAS_BEGUN;
}

/* The target has it: its packets are counted, its owner is woken, and what is left to do at home is done. */
static void conclude(struct emu_portals *p, const struct emu_portals_target *t, struct emu_ptl_send *send,
                     struct emu_segment *segment, struct outcome *out)
{
    count(p, t, send, out->mlength);
    if (segment)
        emu_rest_disturb(segment);
    if (!out->is_sent || out->acks)
        tell_home(p, t, send, out);
}

/* True: it is over. False: emunic has to do it. We are inside, nothing is locked. */
static bool run_direct(struct emu_portals *p, const struct emu_portals_target *t, struct emu_ptl_send *send,
                       struct outcome *out)
{
    struct emu_segment *segment = emu_portals_segment_of(p, t);
    enum begun begun = IS_DROPPED;
    struct stay stay;

    if (emu_portals_lock(p, t->ni, t->port, t->generation)) {
        if (send->kind == EMU_PTL_PUT)
            begun = run_put(p, t, send, &stay, out);
        else if (send->kind == EMU_PTL_GET)
            begun = run_get(p, t, send, &stay, out);
        else
            begun = run_getput(p, t, send, &stay, out);
        if (begun == IS_LEFT)
            return false;
        conclude(p, t, send, segment, out);
    } else if (!out->is_sent || out->acks) {
        tell_home(p, t, send, out);
    }
    return true;
}

/* ---- routed ---- */

static void fill_command(struct emu_ptl_cmd *cmd, const struct emu_ptl_send *send, const struct outcome *out)
{
    static const uint8_t ops[] = { EMU_OP_PTL_PUT, EMU_OP_PTL_GET, EMU_OP_PTL_GETPUT };

    *cmd = (struct emu_ptl_cmd){
        .op = ops[send->kind],
        .nid = send->nid,
        .remote_offset = send->offset,
        .length_bytes = send->length_bytes,
        .bits = send->bits,
        .hdr_data = send->hdr_data,
        .pid = send->pid,
        .pt = send->pt,
        .ac = send->ac,
        .ptl_flags = (send->wants_ack ? EMU_PTL_CMD_ACK : 0) | (out->is_sent ? EMU_PTL_CMD_SENT : 0),
        .md = send->md,
        .md_generation = send->md_generation,
        .local_offset = send->local_offset,
        .put_md = send->put_md,
        .put_md_generation = send->put_md_generation,
        .put_offset = send->put_offset,
        .link = send->link,
        .threshold = send->threshold,
        .eq = send->eq,
        .eq_generation = send->eq_generation,
    };
}

/* Small data are read now: emunic finds them in the staging area without a system call. */
static bool stage(struct emu_portals *p, const struct emu_ptl_send *send, uint64_t staging_off)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span from;
    struct emu_ptl_span to = { .n = 1,
                               .one = { (uint64_t)(uintptr_t)(p->port.staging + staging_off), send->length_bytes } };
    int fault;

    span_of_md(p, send->put_md, &from);
    return emu_ptl_move(
               (struct emu_ptl_at){ &self, &to, 0 },
               (struct emu_ptl_at){ &self, &from, send->kind == EMU_PTL_PUT ? send->local_offset : send->put_offset },
               send->length_bytes, (struct emu_bounce){ p, 1 }, &fault) == 0;
}

static void run_routed(struct emu_portals *p, struct emu_ptl_send *send, struct outcome *out)
{
    bool may_stage = send->kind != EMU_PTL_GET && send->length_bytes > 0 && send->length_bytes <= EMU_PTL_STAGED_MAX;
    uint64_t staging_off = 0;
    struct emu_ptl_cmd cmd;
    struct emu_cmd *slot = emu_port_command(&p->port, may_stage ? send->length_bytes : 0, &staging_off);

    if (!slot) { /* emunic has gone */
        p->is_broken = true;
        out->fail = EMU_STATUS_NETWORK;
        emu_portals_enter(p);
        tell_home(p, NULL, send, out);
        emu_portals_leave(p);
        return;
    }
    fill_command(&cmd, send, out);
    if (may_stage && stage(p, send, staging_off)) {
        cmd.flags = EMU_CMD_STAGED;
        cmd.staging_off = staging_off;
    }
    memcpy(slot, &cmd, sizeof(cmd));
    emu_port_publish(&p->port);
}

static bool may_be_direct(const struct emu_portals *p, const struct emu_ptl_send *send)
{
    return p->gate && send->length_bytes <= p->port.settings.direct_limit_bytes && emu_gate_is_open(p->gate) &&
           !atomic_load_explicit(&p->port.session.is_lost, memory_order_relaxed);
}

/* ---- the short way ---- */

/*
 * A small put from a descriptor that requests cannot hit: nobody else changes its words, so everything at home,
 * SEND_START included, waits until the data are moved, and one lock does for all of it; or none, where nobody is to be
 * told.
 */
static bool may_be_short(const struct emu_portals *p, const struct emu_ptl_send *send)
{
    const struct emu_ptl_md *md = &p->ni->mds[send->md];

    return send->kind == EMU_PTL_PUT && send->length_bytes <= SHORT_BYTES && md->me == EMU_PTL_NONE &&
           md->threshold != 0 && (md->flags & EMU_PTL_MD_INACTIVE) == 0 && p->ni->n_fails == 0 &&
           md->generation == send->md_generation && may_be_direct(p, send);
}

/* What will be written at home, of which others have written some last. */
static void expect_at_home(const struct emu_portals *p, const struct emu_ptl_send *send)
{
    const struct emu_ptl_md *md = &p->ni->mds[send->md];

    if (md->eq >= EMU_PTL_EQS)
        return;
    emu_prefetch_for_write(&p->ni->lock);
    emu_prefetch_for_write(&p->ni->eqs[md->eq]);
}

/* True: it is over. False: nothing has happened. We are inside. */
static bool run_short(struct emu_portals *p, const struct emu_portals_target *t, struct emu_ptl_send *send,
                      struct outcome *out)
{
    struct emu_segment *segment;
    struct stay stay;

    emu_prefetch_for_write(&t->ni->lock);
    expect_at_home(p, send);
    segment = emu_portals_segment_of(p, t);
    if (!emu_portals_lock(p, t->ni, t->port, t->generation) || run_put(p, t, send, &stay, out) == IS_LEFT)
        return false;
    conclude(p, t, send, segment, out);
    return true;
}

/* A short put to another process that is reached from here? We are inside. */
static bool has_short_way(struct emu_portals *p, const struct emu_ptl_send *send, struct emu_portals_target *t)
{
    return may_be_short(p, send) && emu_portals_find_target(p, send, t) == EMU_PORTALS_HERE && t->peer;
}

/* ---- the call ---- */

/* SEND_START, and of a get that goes direct SEND_END. -ENOENT: a descriptor is gone or inactive. */
static int begin_at_home(struct emu_portals *p, struct emu_ptl_send *send, bool is_direct, struct outcome *out)
{
    int r;

    emu_portals_lock_own(p);
    r = emu_ptl_send_begin(p->ni, send);
    out->is_begun = r == 0;
    out->is_cut_off = r == 0 && p->ni->n_fails > 0 && emu_ptl_is_cut_off(p->ni, send->nid);
    if (r == 0 && send->kind == EMU_PTL_GET && is_direct)
        post_sent(p, NULL, send, out);
    emu_ptl_unlock(p->ni);
    return r;
}

int emu_portals_send(struct emu_portals *p, struct emu_ptl_send *send)
{
    enum emu_portals_found found = EMU_PORTALS_NOT_REACHED;
    struct outcome out = { .is_begun = false };
    struct emu_portals_target t;
    bool is_done = false;
    int r;

    if (p->port.direct)
        emu_direct_trim(p->port.direct);
    emu_portals_enter(p);
    if (has_short_way(p, send, &t) && run_short(p, &t, send, &out)) {
        emu_portals_leave(p);
        return 0;
    }
    if (may_be_direct(p, send))
        found = emu_portals_find_target(p, send, &t);
    r = begin_at_home(p, send, found == EMU_PORTALS_HERE, &out);
    if (r < 0) {
        emu_portals_leave(p);
        return r;
    }
    if (!out.is_cut_off && found == EMU_PORTALS_HERE) {
        is_done = run_direct(p, &t, send, &out);
    } else if (out.is_cut_off || found == EMU_PORTALS_NOWHERE) {
        tell_home(p, NULL, send, &out);
        is_done = true;
    }
    emu_portals_leave(p);
    if (!is_done)
        run_routed(p, send, &out);
    return 0;
}

/* Leaves it in the target's inbox, if it fits and nobody is to be told at home. */
static bool leave_short(struct emu_portals *p, const struct emu_portals_target *t, const struct emu_ptl_send *send)
{
    struct emu_portals_short message;
    struct emu_segment *segment;
    struct emu_ptl_span from;

    if (send->length_bytes > EMU_PTL_INBOX_BYTES || !is_silent(p, send))
        return false;
    span_of_md(p, send->md, &from);
    message = (struct emu_portals_short){ .pt = send->pt,
                                          .length_bytes = (uint32_t)send->length_bytes,
                                          .bits = send->bits,
                                          .hdr_data = send->hdr_data,
                                          .data = (const void *)(uintptr_t)(from.one.addr + send->local_offset) };
    if (from.iovs || !emu_portals_leave_short(p, t, &message))
        return false;
    count_silent(p, send);
    count(p, t, send, send->length_bytes);
    segment = emu_portals_segment_of(p, t);
    if (segment)
        emu_rest_disturb(segment);
    return true;
}

bool emu_portals_send_at_once(struct emu_portals *p, struct emu_ptl_send *send, unsigned *fail_out)
{
    struct outcome out = { .is_begun = false };
    struct emu_portals_target t;
    bool is_over = false;

    if (p->port.direct)
        emu_direct_trim(p->port.direct);
    emu_portals_enter(p);
    if (has_short_way(p, send, &t))
        is_over = leave_short(p, &t, send) || (emu_portals_peer_has_taken(t.peer) && run_short(p, &t, send, &out));
    emu_portals_leave(p);
    *fail_out = out.fail;
    return is_over;
}
