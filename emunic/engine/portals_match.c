/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: matching.
 *
 * A short list is walked: packed, two entries to a cache line, in the order of the list, holes where entries have gone.
 * Only an entry whose criteria fit leads to its descriptor. A descriptor that does not accept lets the search go on.
 *
 * A long list has an index (abi/portals.h; portals_index.c makes it): one chain of each class, and that of the entries
 * without a class, are walked as far as the lowest place found yet. The index only says where to look: criteria and
 * descriptors are the list's. Chains that lead elsewhere, or in which too many entries would have to be looked at,
 * mean that the list is walked, which is what costs least then. So whatever stands in an index, a search ends, after
 * little more than a walk.
 *
 * Source: spec/portals3.md 1.7.
 */
#include "emunic/engine/portals_engine_inner.h"
#include "emunic/engine/portals_index.h"

#define STEPS_SPARED 64u
#define STEPS_PART   16u /* an entry of a chain costs as much as this many of a walk */

static inline __attribute__((always_inline)) bool accepts(struct emu_ptl_ni *ni, uint32_t index,
                                                          const struct emu_ptl_request *rq, struct emu_ptl_taker *taker)
{
    static const uint32_t needed[] = {
        [EMU_PTL_PUT] = EMU_PTL_MD_OP_PUT,
        [EMU_PTL_GET] = EMU_PTL_MD_OP_GET,
        [EMU_PTL_GETPUT] = EMU_PTL_MD_OP_PUT | EMU_PTL_MD_OP_GET,
    };
    struct emu_ptl_md *md = &taker->md;
    uint64_t room;

    if (index >= EMU_PTL_MDS)
        return false;
    *md = ni->mds[index];
    if (md->state != EMU_PTL_LIVE || !is_active(md) || (~md->options & needed[rq->kind]) != 0)
        return false;
    taker->offset = (md->options & EMU_PTL_MD_MANAGE_REMOTE) ? rq->offset : md->local_offset;
    if (taker->offset > md->length_bytes)
        return false;
    room = md->length_bytes - taker->offset;
    if (rq->length_bytes > room && (md->options & EMU_PTL_MD_TRUNCATE) == 0)
        return false;
    if ((md->options & (EMU_PTL_MD_MAX_SIZE | EMU_PTL_MD_MANAGE_REMOTE | EMU_PTL_MD_TRUNCATE)) == EMU_PTL_MD_MAX_SIZE &&
        rq->length_bytes > md->max_size)
        return false;
    if (rq->kind == EMU_PTL_GETPUT && rq->length_bytes > ni->max_getput)
        return false;
    taker->index = index;
    taker->mlength = rq->length_bytes < room ? rq->length_bytes : room;
    taker->acks = rq->kind == EMU_PTL_PUT && rq->wants_ack && (md->options & EMU_PTL_MD_ACK_DISABLE) == 0;
    return true;
}

static inline bool is_from(const struct emu_ptl_place *place, const struct emu_ptl_request *rq)
{
    return (place->nid == EMU_PTL_NID_ANY || place->nid == rq->nid) &&
           (place->pid == EMU_PTL_PID_ANY || place->pid == rq->pid);
}

static inline bool fits(const struct emu_ptl_place *place, const struct emu_ptl_request *rq)
{
    return ((place->bits ^ rq->bits) & ~place->ignore) == 0 && place->md != EMU_PTL_NONE && is_from(place, rq);
}

/* ---- by the index ---- */

struct search {
    struct emu_ptl_ni *ni;
    const struct emu_ptl_request *rq;
    struct emu_ptl_taker *taker; /* of what stands at `best` */
    uint32_t best;               /* place; EMU_PTL_PLACES: nothing yet */
    uint32_t steps;              /* still to be taken */
};

/* False: that is no chain of this list, or longer than is worth while. */
static bool search_chain(struct search *s, uint32_t me)
{
    const struct emu_ptl_place *places = s->ni->places[s->rq->pt];
    struct emu_ptl_taker taker;

    for (; s->steps > 0 && me < EMU_PTL_MES; s->steps--) {
        uint32_t at = s->ni->mes[me].place;

        if (at >= EMU_PTL_PLACES || places[at].me != me)
            return false;
        if (at >= s->best)
            return true;
        if (fits(&places[at], s->rq) && accepts(s->ni, places[at].md, s->rq, &taker)) {
            s->best = at;
            *s->taker = taker;
            return true;
        }
        me = s->ni->mes[me].next;
    }
    return me == EMU_PTL_NONE;
}

/* False: the index is of no use for this request. */
static bool search_index(struct search *s, const struct emu_ptl_index *index)
{
    const struct emu_ptl_request *rq = s->rq;
    const struct emu_ptl_chain *chains = s->ni->chains[rq->pt];
    uint32_t n_chains = index->n_chains;
    uint32_t n_classes = index->n_classes;

    if (n_chains == 0 || n_chains > EMU_PTL_CHAINS || (n_chains & (n_chains - 1)) != 0 || n_classes > EMU_PTL_CLASSES ||
        index->n_loose > s->steps)
        return false;
    for (uint32_t i = 0; i < n_classes; i++) {
        const struct emu_ptl_class *class = &index->classes[i];
        uint32_t nid = (class->open & EMU_PTL_OPEN_NID) ? EMU_PTL_NID_ANY : rq->nid;
        uint32_t pid = (class->open & EMU_PTL_OPEN_PID) ? EMU_PTL_PID_ANY : rq->pid;

        if (class->n > 0 &&
            !search_chain(s, chains[emu_ptl_hash(rq->bits, class->ignore, nid, pid) & (n_chains - 1)].first))
            return false;
    }
    return search_chain(s, index->loose.first);
}

/* ---- by walking ---- */

/* Of a short list it is most of what matching costs. */
static inline __attribute__((always_inline)) bool walk_list(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq,
                                                            struct emu_ptl_taker *taker, uint32_t first, uint32_t end)
{
    const struct emu_ptl_place *places = ni->places[rq->pt];
    const uint64_t bits = rq->bits;

    for (uint32_t i = first; i < end; i++) {
        const struct emu_ptl_place *place = &places[i];

        if (((place->bits ^ bits) & ~place->ignore) != 0)
            continue;
        if (place->md != EMU_PTL_NONE && is_from(place, rq) && accepts(ni, place->md, rq, taker))
            return true;
    }
    return false;
}

static __attribute__((noinline)) bool find_in_long_list(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq,
                                                        struct emu_ptl_taker *taker, uint32_t first, uint32_t end)
{
    struct search search = { .ni = ni, .rq = rq, .taker = taker, .best = EMU_PTL_PLACES };

    if (first > end || end > EMU_PTL_PLACES)
        return false;
    search.steps = STEPS_SPARED + (end - first) / STEPS_PART;
    if (search_index(&search, &ni->indices[rq->pt]))
        return search.best != EMU_PTL_PLACES;
    return walk_list(ni, rq, taker, first, end);
}

static bool find_taker(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq, struct emu_ptl_taker *taker)
{
    uint32_t first = ni->lists[rq->pt].first;
    uint32_t end = ni->lists[rq->pt].end;

    /* One that makes no sense looks long. */
    if (end - first > EMU_PTL_SHORT_LIST || first > EMU_PTL_PLACES - EMU_PTL_SHORT_LIST)
        return find_in_long_list(ni, rq, taker, first, end);
    return walk_list(ni, rq, taker, first, end);
}

static bool is_any_or(uint32_t wanted, uint32_t value)
{
    return wanted == UINT32_MAX || wanted == value;
}

static bool is_admitted(const struct emu_ptl_ni *ni, const struct emu_ptl_request *rq)
{
    const struct emu_ptl_ace *ace = &ni->aces[rq->ac];

    return (ni->behaviour & EMU_PTL_ACCESS_CONTROL) == 0 ||
           (is_any_or(ace->nid, rq->nid) && is_any_or(ace->pid, rq->pid) && is_any_or(ace->uid, rq->uid) &&
            is_any_or(ace->jid, rq->jid) && is_any_or(ace->pt, rq->pt));
}

bool emu_ptl_is_cut_off(struct emu_ptl_ni *ni, uint32_t nid)
{
    uint32_t n = ni->n_fails < EMU_PTL_FAILS ? ni->n_fails : EMU_PTL_FAILS;

    for (uint32_t i = 0; i < n; i++) {
        struct emu_ptl_fail *fail = &ni->fails[i];

        if (fail->count == 0 || (fail->nid != EMU_PTL_NID_ANY && fail->nid != nid))
            continue;
        if (fail->count > 0)
            fail->count--;
        return true;
    }
    return false;
}

bool emu_ptl_find(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq, struct emu_ptl_taker *taker_out)
{
    return ni->is_up && rq->pt <= ni->max_pt && rq->pt < EMU_PTL_PTS && rq->ac <= ni->max_ac && rq->ac < EMU_PTL_ACES &&
           is_admitted(ni, rq) && find_taker(ni, rq, taker_out);
}

enum emu_ptl_result emu_ptl_match(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq,
                                  struct emu_ptl_taker *taker_out)
{
    if (ni->n_fails > 0 && emu_ptl_is_cut_off(ni, rq->nid))
        return EMU_PTL_LOST;
    if (emu_ptl_find(ni, rq, taker_out))
        return EMU_PTL_TAKEN;
    ni->drops++;
    ni->dropped_bytes += rq->length_bytes;
    return EMU_PTL_DROPPED;
}
