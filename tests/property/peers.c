/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/property/peers.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_PID 200u

struct peer {
    struct peers_line *line;
    struct peers_line *lines;
    ptl_handle_ni_t ni;
    uint8_t *arena;
    ptl_handle_eq_t fence_eq;
    ptl_handle_md_t fence_md;
};

/* ---- in the process ---- */

static void open_fence(struct peer *p)
{
    ptl_md_t md = { .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE };
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

    PJ(PtlEQAlloc(p->ni, 256, NULL, &p->fence_eq));
    md.eq_handle = p->fence_eq;
    PJ(PtlMEAttach(p->ni, PEERS_FENCE_PT, pj_anybody(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    PJ(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
    md.eq_handle = PTL_EQ_NONE;
    PJ(PtlMDBind(p->ni, md, PTL_RETAIN, &p->fence_md));
}

static int make_with_md(struct peer *p, struct peers_call *c)
{
    if (c->desc.options & PTL_MD_IOVEC)
        c->desc.start = c->iov;
    switch (c->verb) {
    case DO_MD_ATTACH:
        return PtlMDAttach(c->me, c->desc, c->md_unlink, &c->md);
    case DO_MD_BIND:
        return PtlMDBind(p->ni, c->desc, c->md_unlink, &c->md);
    case DO_MD_UPDATE:
        return PtlMDUpdate(c->md, NULL, &c->desc, c->eq);
#if IS_CRAY
    case DO_MEMD_ATTACH:
        return PtlMEMDAttach(p->ni, c->pt, c->id, c->bits, c->ignore, c->unlink, c->position, c->desc, c->md_unlink,
                             &c->me, &c->md);
    case DO_MEMD_INSERT:
        return PtlMEMDInsert(c->me, c->id, c->bits, c->ignore, c->unlink, c->position, c->desc, c->md_unlink, &c->me,
                             &c->md);
    case DO_MEMD_POST:
        return PtlMEMDPost(p->ni, c->me, c->id, c->bits, c->ignore, c->unlink, c->position, c->desc, c->md_unlink,
                           &c->me, &c->md, c->eq);
#endif
    default:
        return PTL_FAIL;
    }
}

static int query(struct peers_call *c)
{
    c->desc.options = 0; /* scalar members only */
    return PtlMDUpdate(c->md, &c->desc, NULL, PTL_EQ_NONE);
}

static int make_transfer(struct peer *p, struct peers_call *c)
{
    switch (c->verb) {
    case DO_PUT:
        return PtlPut(c->md, c->ack, c->id, c->pt, c->ac, c->bits, c->remote_offset, c->hdr_data);
    case DO_PUT_REGION:
        return PtlPutRegion(c->md, c->offset, c->length, c->ack, c->id, c->pt, c->ac, c->bits, c->remote_offset,
                            c->hdr_data);
    case DO_GET:
        return PtlGet(c->md, c->id, c->pt, c->ac, c->bits, c->remote_offset);
    case DO_GET_REGION:
        return PtlGetRegion(c->md, c->offset, c->length, c->id, c->pt, c->ac, c->bits, c->remote_offset);
    case DO_GETPUT:
        return PtlGetPut(c->md, c->put_md, c->id, c->pt, c->ac, c->bits, c->remote_offset, c->hdr_data);
#if IS_CRAY
    case DO_GETPUT_REGION:
        return PtlGetPutRegion(c->md, c->offset, c->put_md, c->put_offset, c->length, c->id, c->pt, c->ac, c->bits,
                               c->remote_offset, c->hdr_data);
#endif
    default:
        return make_with_md(p, c);
    }
}

/* `count` puts of the same kind. */
static int put_stream(struct peers_call *c)
{
    int rc = PTL_OK;

    for (ptl_size_t i = 0; i < c->count && rc == PTL_OK; i++)
        rc = PtlPut(c->md, c->ack, c->id, c->pt, c->ac, c->bits, c->remote_offset, i);
    return rc;
}

static int make_call(struct peer *p, struct peers_call *c)
{
    ptl_handle_ni_t ni = p->ni;

    switch (c->verb) {
    case DO_ME_ATTACH:
        return PtlMEAttach(ni, c->pt, c->id, c->bits, c->ignore, c->unlink, c->position, &c->me);
    case DO_ME_ATTACH_ANY:
        return PtlMEAttachAny(ni, &c->pt, c->id, c->bits, c->ignore, c->unlink, &c->me);
    case DO_ME_INSERT:
        return PtlMEInsert(c->me, c->id, c->bits, c->ignore, c->unlink, c->position, &c->me);
    case DO_ME_UNLINK:
        return PtlMEUnlink(c->me);
    case DO_MD_UNLINK:
        return PtlMDUnlink(c->md);
    case DO_MD_QUERY:
        return query(c);
    case DO_EQ_ALLOC:
        return PtlEQAlloc(ni, c->count, NULL, &c->eq);
    case DO_EQ_FREE:
        return PtlEQFree(c->eq);
    case DO_EQ_GET:
        return PtlEQGet(c->eq, &c->event);
    case DO_AC_ENTRY:
        return PtlACEntry(ni, c->ac, c->id, c->uid, c->jid, c->pt);
    case DO_STATUS:
        return PtlNIStatus(ni, PTL_SR_DROP_COUNT, &c->status);
    case DO_SNAPSHOT:
        memcpy(p->line->arena, p->arena, MODEL_ARENA_BYTES);
        return PTL_OK;
    case DO_FENCE:
        return PtlPut(p->fence_md, NO_ACK, c->id, PEERS_FENCE_PT, 0, 0, 0, c->hdr_data);
    case DO_FENCE_WAIT:
        while (pj_expect(p->fence_eq, PTL_EVENT_PUT_END).hdr_data != c->hdr_data)
            ;
        return PTL_OK;
    case DO_STREAM:
        return put_stream(c);
    default:
        return make_transfer(p, c);
    }
}

static int body(struct fx_rank *rank)
{
    struct peers_line *lines = rank->arg;
    struct peers_line *line = &lines[rank->rank];
    struct peer p = { .line = line, .lines = lines };

    p.ni = pj_open(rank->fx, (ptl_pid_t)(FIRST_PID + rank->rank), &line->id);
    PJ(PtlGetUid(p.ni, &line->uid));
    PJ(PtlGetJid(p.ni, &line->jid));
    p.arena = malloc(MODEL_ARENA_BYTES);
    for (uint64_t i = 0; i < MODEL_ARENA_BYTES; i++)
        p.arena[i] = peers_first_byte(rank->rank, i);
    line->arena_addr = (uint64_t)(uintptr_t)p.arena;
    open_fence(&p);
    atomic_store(&line->answered, 1);
    for (uint64_t turn = 2;; turn++) {
        while (atomic_load(&line->asked) != turn)
            sched_yield();
        if (line->call.verb == DO_END)
            break;
        line->call.rc = make_call(&p, &line->call);
        atomic_store(&line->answered, turn);
    }
    PJ(PtlNIFini(p.ni));
    PtlFini();
    free(p.arena);
    return 0;
}

/* ---- in the test ---- */

static void wait_for_answer(struct peers *p, unsigned who, uint64_t turn)
{
    uint64_t end_ns = emu_clock_ns() + 2 * PJ_PATIENCE_NS;

    while (atomic_load(&p->lines[who].answered) != turn) {
        if (emu_clock_ns() > end_ns) {
            fprintf(stderr, "process %u does not answer\n", who);
            exit(1);
        }
        sched_yield();
    }
}

void peers_start(struct peers *p, struct fx *fx, unsigned n)
{
    p->n = n;
    p->fx = fx;
    p->lines = mmap(NULL, n * sizeof(*p->lines), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p->lines == MAP_FAILED)
        exit(1);
    fx_spawn(fx, n, body, p->lines, &p->ranks);
    for (unsigned i = 0; i < n; i++) {
        wait_for_answer(p, i, 1);
        atomic_store(&p->lines[i].asked, 1);
    }
}

unsigned peers_stop(struct peers *p)
{
    unsigned n_bad;

    for (unsigned i = 0; i < p->n; i++) {
        p->lines[i].call.verb = DO_END;
        atomic_fetch_add(&p->lines[i].asked, 1);
    }
    n_bad = fx_join(&p->ranks);
    munmap(p->lines, p->n * sizeof(*p->lines));
    return n_bad;
}

void peers_ask(struct peers *p, unsigned who, const struct peers_call *call)
{
    struct peers_line *line = &p->lines[who];

    line->call = *call;
    atomic_fetch_add(&line->asked, 1);
}

int peers_answer(struct peers *p, unsigned who, struct peers_call *call_out)
{
    wait_for_answer(p, who, atomic_load(&p->lines[who].asked));
    *call_out = p->lines[who].call;
    return call_out->rc;
}

int peers_do(struct peers *p, unsigned who, struct peers_call *call)
{
    peers_ask(p, who, call);
    return peers_answer(p, who, call);
}

ptl_event_t peers_next_event(struct peers *p, unsigned who, ptl_handle_eq_t eq)
{
    uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;
    struct peers_call call;
    int rc;

    do {
        call = (struct peers_call){ .verb = DO_EQ_GET, .eq = eq };
        rc = peers_do(p, who, &call);
    } while (rc == PTL_EQ_EMPTY && emu_clock_ns() < end_ns);
    if (rc != PTL_OK) {
        fprintf(stderr, "process %u: PtlEQGet gives %d\n", who, rc);
        exit(1);
    }
    return call.event;
}

void peers_settle(struct peers *p, unsigned from, unsigned to)
{
    static ptl_hdr_data_t number;
    struct peers_call fence = { .verb = DO_FENCE, .id = p->lines[to].id, .hdr_data = ++number };
    struct peers_call wait = { .verb = DO_FENCE_WAIT, .hdr_data = number };

    if (peers_do(p, from, &fence) != PTL_OK || peers_do(p, to, &wait) != PTL_OK) {
        fprintf(stderr, "a fence from process %u to %u fails\n", from, to);
        exit(1);
    }
}
