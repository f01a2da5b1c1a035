/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals, owner's side.
 *
 * Match lists are packed arrays with holes (struct emu_ptl_place). A list begins in the middle of its array, so both
 * ends are near; an insertion in between takes a neighbouring hole or shifts the shorter way to the next one, and makes
 * several holes if that is the end: receives are posted one after another before the same last entries. An entry
 * that goes leaves a hole; when holes outnumber entries the list is packed again. So insertion at the ends and removal
 * cost O(1), the walk meets at most as many holes as entries, and nobody else ever writes a list. A long list has an
 * index (portals_index.c).
 *
 * A place (of an entry, descriptor or queue) is used again only after QUARANTINE others have been freed, and its
 * generation is part of its handle: a stale handle means nothing for at least 2047 x QUARANTINE objects. On the way
 * between interfaces the whole generation is told.
 */
#include "emunic/engine/portals_owner.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/engine/portals_index.h"

#define QUARANTINE   256u
#define EQ_FEW       64u  /* events: who asks for fewer has not counted what may come at once, */
#define EQ_FOR_FEW   512u /* and gets room for a burst of 256 messages: 64 KiB, half of the arena for all queues */
#define HOLES_SPARED 64u
#define GAP          16u /* holes made at once before what is shifted to the end of a list */
#define ARENA_UNIT   4096u
#define MIDDLE       (EMU_PTL_PLACES / 2)

/* ---- pools ---- */

static int pool_init(struct emu_ptl_pool *p, uint32_t room, uint32_t limit)
{
    *p = (struct emu_ptl_pool){ .room = room, .limit = limit < room ? limit : room };
    p->freed = malloc(room * sizeof(*p->freed));
    return p->freed ? 0 : -ENOMEM;
}

static uint32_t pool_take(struct emu_ptl_pool *p)
{
    uint32_t index;

    if (p->n_in_use >= p->limit)
        return EMU_PTL_NONE;
    if (p->n_freed > 0 && (p->n_freed > QUARANTINE || p->n_fresh >= p->room)) {
        index = p->freed[p->first % p->room];
        p->first++;
        p->n_freed--;
    } else {
        index = p->n_fresh++;
    }
    p->n_in_use++;
    return index;
}

static void pool_give(struct emu_ptl_pool *p, uint32_t index)
{
    p->freed[(p->first + p->n_freed) % p->room] = index;
    p->n_freed++;
    p->n_in_use--;
}

/* ---- pieces ---- */

static unsigned order_of(uint64_t units)
{
    unsigned order = 0;

    while ((1ull << order) < units)
        order++;
    return order;
}

static bool pieces_push(struct emu_ptl_pieces *p, unsigned order, uint32_t start)
{
    if (p->n_free[order] == p->n_room[order]) {
        uint32_t room = p->n_room[order] ? 2 * p->n_room[order] : 16;
        uint32_t *more = realloc(p->free[order], room * sizeof(*more));

        if (!more)
            return false; /* the piece is lost until the interface ends */
        p->free[order] = more;
        p->n_room[order] = room;
    }
    p->free[order][p->n_free[order]++] = start;
    return true;
}

/* Start of a piece of 2^order units, or EMU_PTL_NONE. Splits larger ones when nothing else is left. */
static uint32_t pieces_take(struct emu_ptl_pieces *p, unsigned order)
{
    unsigned larger = order;
    uint32_t start;

    if (order >= EMU_PTL_PIECE_ORDERS)
        return EMU_PTL_NONE;
    if (p->n_free[order] > 0)
        return p->free[order][--p->n_free[order]];
    if (p->end - p->fresh >= 1u << order) {
        start = p->fresh;
        p->fresh += 1u << order;
        return start;
    }
    while (larger < EMU_PTL_PIECE_ORDERS && p->n_free[larger] == 0)
        larger++;
    if (larger == EMU_PTL_PIECE_ORDERS)
        return EMU_PTL_NONE;
    start = p->free[larger][--p->n_free[larger]];
    while (larger > order) {
        larger--;
        pieces_push(p, larger, start + (1u << larger));
    }
    return start;
}

static void pieces_fini(struct emu_ptl_pieces *p)
{
    for (unsigned i = 0; i < EMU_PTL_PIECE_ORDERS; i++)
        free(p->free[i]);
}

/* ---- counting ---- */

/* One of the groups of four: allocated, freed, most, current. */
static void count_made(struct emu_ptl_ni *ni, unsigned group, uint32_t n_in_use)
{
    ni->registers[group]++;
    ni->registers[group + 3] = n_in_use;
    if (ni->registers[group + 2] < n_in_use)
        ni->registers[group + 2] = n_in_use;
}

static void count_freed(struct emu_ptl_ni *ni, unsigned group, uint32_t n_in_use)
{
    ni->registers[group + 1]++;
    ni->registers[group + 3] = n_in_use;
}

static void count_lists(struct emu_ptl_owner *o, int change)
{
    uint64_t *registers = o->ni->registers;

    registers[EMU_PTL_SR_PTLS_CUR] += (uint64_t)(int64_t)change;
    if (registers[EMU_PTL_SR_PTLS_MAX] < registers[EMU_PTL_SR_PTLS_CUR])
        registers[EMU_PTL_SR_PTLS_MAX] = registers[EMU_PTL_SR_PTLS_CUR];
}

static void count_alignment(struct emu_ptl_ni *ni, uint64_t start)
{
    for (unsigned i = 0; i <= EMU_PTL_SR_INTERRUPTS - 1 - EMU_PTL_SR_MD_ALIGN_128; i++) {
        if (start % (128u >> i) == 0) {
            ni->registers[EMU_PTL_SR_MD_ALIGN_128 + i]++;
            return;
        }
    }
}

/* ---- life ---- */

int emu_ptl_owner_init(struct emu_ptl_owner *o, struct emu_ptl_ni *ni, uint32_t number, uint32_t salt,
                       const struct emu_ptl_limits *limits)
{
    *o = (struct emu_ptl_owner){ .ni = ni, .number = number, .salt = salt, .limits = *limits };
    o->iovs.end = EMU_PTL_IOVECS;
    o->arena.end = EMU_PTL_ARENA_BYTES / ARENA_UNIT;
    o->eq_own = calloc(EMU_PTL_EQS, sizeof(*o->eq_own));
    /* The last place would make handles that look like constants. */
    if (pool_init(&o->mes, EMU_PTL_MES, limits->max_mes) < 0 || pool_init(&o->mds, EMU_PTL_MDS, limits->max_mds) < 0 ||
        pool_init(&o->eqs, EMU_PTL_EQS, limits->max_eqs) < 0 || !o->eq_own) {
        emu_ptl_owner_fini(o);
        return -ENOMEM;
    }
    for (uint32_t pt = 0; pt < EMU_PTL_PTS; pt++)
        ni->lists[pt] = (struct emu_ptl_list){ .first = MIDDLE, .end = MIDDLE };
    return 0;
}

void emu_ptl_owner_fini(struct emu_ptl_owner *o)
{
    free(o->mes.freed);
    free(o->mds.freed);
    free(o->eqs.freed);
    pieces_fini(&o->iovs);
    pieces_fini(&o->arena);
    free(o->eq_own);
    free(o->old_iovs);
    *o = (struct emu_ptl_owner){ .ni = NULL };
}

/* ---- handles ---- */

static uint32_t handle_of(const struct emu_ptl_owner *o, enum emu_ptl_handle_kind kind, uint32_t index,
                          uint32_t generation)
{
    return emu_ptl_handle(kind, o->number, index, generation + o->salt);
}

uint32_t emu_ptl_find_me(const struct emu_ptl_owner *o, uint32_t handle)
{
    uint32_t index = emu_ptl_handle_index(handle);
    const struct emu_ptl_me *me = &o->ni->mes[index];

    return emu_ptl_handle_kind(handle) == EMU_PTL_IS_ME && me->state == EMU_PTL_LIVE && me->handle == handle ?
               index :
               EMU_PTL_NONE;
}

uint32_t emu_ptl_find_md(const struct emu_ptl_owner *o, uint32_t handle)
{
    uint32_t index = emu_ptl_handle_index(handle);
    const struct emu_ptl_md *md = &o->ni->mds[index];

    return emu_ptl_handle_kind(handle) == EMU_PTL_IS_MD && md->state == EMU_PTL_LIVE && md->handle == handle &&
                   (md->flags & EMU_PTL_MD_WAS_ENDED) == 0 ?
               index :
               EMU_PTL_NONE;
}

uint32_t emu_ptl_find_eq(const struct emu_ptl_owner *o, uint32_t handle)
{
    uint32_t index = emu_ptl_handle_index(handle);

    return emu_ptl_handle_kind(handle) == EMU_PTL_IS_EQ && index < EMU_PTL_EQS && o->eq_own[index].handle == handle ?
               index :
               EMU_PTL_NONE;
}

/* ---- lists ---- */

static const struct emu_ptl_place hole = { .bits = ~0ull, .me = EMU_PTL_NONE, .md = EMU_PTL_NONE };

static bool is_hole(const struct emu_ptl_place *place)
{
    return place->me == EMU_PTL_NONE;
}

static void put(struct emu_ptl_ni *ni, uint32_t pt, uint32_t at, const struct emu_ptl_place *place)
{
    ni->places[pt][at] = *place;
    if (place->me < EMU_PTL_MES)
        ni->mes[place->me].place = at;
}

/* Packs the list, its entries around the middle of the array. */
static void pack(struct emu_ptl_ni *ni, uint32_t pt)
{
    struct emu_ptl_list *list = &ni->lists[pt];
    struct emu_ptl_place *places = ni->places[pt];
    uint32_t n = 0;
    uint32_t first;

    /* Towards the front first, so that nothing is overwritten before it has moved; then to the middle. */
    for (uint32_t i = list->first; i < list->end; i++) {
        if (is_hole(&places[i]))
            continue;
        if (list->first + n != i)
            places[list->first + n] = places[i];
        n++;
    }
    first = MIDDLE - n / 2;
    memmove(&places[first], &places[list->first], n * sizeof(*places));
    list->first = first;
    list->end = first + n;
    for (uint32_t i = list->first; i < list->end; i++) {
        if (places[i].me < EMU_PTL_MES)
            ni->mes[places[i].me].place = i;
    }
}

/* A place at the head or the tail. */
static uint32_t grow(struct emu_ptl_ni *ni, uint32_t pt, bool at_head)
{
    struct emu_ptl_list *list = &ni->lists[pt];

    if (at_head ? list->first == 0 : list->end == EMU_PTL_PLACES)
        pack(ni, pt);
    return at_head ? --list->first : list->end++;
}

static void make_holes(struct emu_ptl_place *places, uint32_t from, uint32_t end)
{
    for (uint32_t i = from; i < end; i++)
        places[i] = hole;
}

/* One where the list would have more holes than removals may leave, or the array less room. */
static uint32_t gap_of(const struct emu_ptl_list *list, uint32_t room)
{
    return room < GAP || list->end - list->first + GAP > 2 * list->n_live + HOLES_SPARED ? 1 : GAP;
}

/* Shifts what stands from `at` to the end, and leaves holes behind `at` for those that are inserted there next. */
static uint32_t open_gap_to_end(struct emu_ptl_ni *ni, uint32_t pt, uint32_t at)
{
    struct emu_ptl_list *list = &ni->lists[pt];
    struct emu_ptl_place *places = ni->places[pt];
    uint32_t gap = gap_of(list, EMU_PTL_PLACES - list->end);

    for (uint32_t from = list->end; from-- > at;)
        put(ni, pt, from + gap, &places[from]);
    list->end += gap;
    make_holes(places, at, at + gap);
    return at;
}

/* The same with what stands before `at`. */
static uint32_t open_gap_to_first(struct emu_ptl_ni *ni, uint32_t pt, uint32_t at)
{
    struct emu_ptl_list *list = &ni->lists[pt];
    struct emu_ptl_place *places = ni->places[pt];
    uint32_t gap = gap_of(list, list->first);

    for (uint32_t from = list->first; from < at; from++)
        put(ni, pt, from - gap, &places[from]);
    list->first -= gap;
    make_holes(places, at - gap, at);
    return at - gap;
}

/* Makes `at` free by shifting what stands before or behind it towards the next hole. The place that became free. */
static uint32_t shift(struct emu_ptl_ni *ni, uint32_t pt, uint32_t at)
{
    struct emu_ptl_list *list = &ni->lists[pt];
    struct emu_ptl_place *places = ni->places[pt];
    bool forward = list->end - at < at - list->first;
    uint32_t to;

    if (forward ? list->end == EMU_PTL_PLACES : list->first == 0)
        forward = !forward; /* a list has fewer entries than half its array: the other end has room */
    if (forward) {
        for (to = at; to < list->end && !is_hole(&places[to]); to++)
            ;
        if (to == list->end)
            return open_gap_to_end(ni, pt, at);
        for (; to > at; to--)
            put(ni, pt, to, &places[to - 1]);
        return at;
    }
    for (to = at; to > list->first && !is_hole(&places[to - 1]); to--)
        ;
    if (to == list->first)
        return open_gap_to_first(ni, pt, at);
    for (to--; to < at - 1; to++)
        put(ni, pt, to, &places[to + 1]);
    return at - 1;
}

static uint32_t make_place(struct emu_ptl_owner *o, uint32_t pt, const struct emu_ptl_me_spec *spec)
{
    struct emu_ptl_ni *ni = o->ni;
    struct emu_ptl_list *list = &ni->lists[pt];
    uint32_t at;

    if (spec->where == EMU_PTL_HEAD || spec->where == EMU_PTL_TAIL)
        return grow(ni, pt, spec->where == EMU_PTL_HEAD);
    at = ni->mes[spec->base].place + (spec->where == EMU_PTL_AFTER);
    if (at == list->end)
        return grow(ni, pt, false);
    if (at == list->first)
        return grow(ni, pt, true);
    if (is_hole(&ni->places[pt][at - 1])) {
        while (at - 1 > list->first && is_hole(&ni->places[pt][at - 2]))
            at--;
        return at - 1;
    }
    return shift(ni, pt, at);
}

static void drop_place(struct emu_ptl_ni *ni, uint32_t pt, uint32_t at)
{
    struct emu_ptl_list *list = &ni->lists[pt];
    struct emu_ptl_place *places = ni->places[pt];

    places[at] = hole;
    list->n_live--;
    while (list->first < list->end && is_hole(&places[list->first]))
        list->first++;
    while (list->end > list->first && is_hole(&places[list->end - 1]))
        list->end--;
    if (list->n_live == 0)
        list->first = list->end = MIDDLE;
    else if (list->end - list->first > 2 * list->n_live + HOLES_SPARED)
        pack(ni, pt);
}

/* ---- match entries ---- */

uint32_t emu_ptl_unused_pt(const struct emu_ptl_owner *o)
{
    const struct emu_ptl_ni *ni = o->ni;

    for (uint32_t pt = 0; pt <= ni->max_pt && pt < EMU_PTL_PTS; pt++) {
        if (ni->lists[pt].n_max == 0)
            return pt;
    }
    for (uint32_t pt = 0; pt <= ni->max_pt && pt < EMU_PTL_PTS; pt++) {
        if (ni->lists[pt].n_live == 0)
            return pt;
    }
    return EMU_PTL_NONE;
}

int emu_ptl_me_create(struct emu_ptl_owner *o, const struct emu_ptl_me_spec *spec, uint32_t *me_out)
{
    bool has_base = spec->where == EMU_PTL_BEFORE || spec->where == EMU_PTL_AFTER;
    struct emu_ptl_ni *ni = o->ni;
    uint32_t pt = has_base ? ni->mes[spec->base].pt : spec->pt;
    struct emu_ptl_list *list = &ni->lists[pt % EMU_PTL_PTS];
    struct emu_ptl_place place = { spec->bits, spec->ignore, spec->nid, spec->pid, 0, EMU_PTL_NONE };
    struct emu_ptl_me *me;
    uint32_t index;

    if (pt >= EMU_PTL_PTS)
        return -EIO; /* somebody has written over it */
    if (list->n_live >= o->limits.max_list)
        return -E2BIG;
    index = pool_take(&o->mes);
    if (index == EMU_PTL_NONE)
        return -ENOSPC;
    me = &ni->mes[index];
    *me = (struct emu_ptl_me){ .state = EMU_PTL_LIVE,
                               .generation = me->generation + 1,
                               .pt = (uint16_t)pt,
                               .md = EMU_PTL_NONE,
                               .unlinks = spec->unlinks };
    me->handle = handle_of(o, EMU_PTL_IS_ME, index, me->generation);
    place.me = index;
    put(ni, pt, make_place(o, pt, spec), &place);
    if (list->n_live++ == 0)
        count_lists(o, 1);
    emu_ptl_index_add(ni, list, index, has_base ? spec->base : EMU_PTL_NONE);
    if (list->n_max < list->n_live)
        list->n_max = list->n_live;
    count_made(ni, EMU_PTL_SR_MES, o->mes.n_in_use);
    *me_out = index;
    return 0;
}

static void free_me(struct emu_ptl_owner *o, uint32_t index)
{
    struct emu_ptl_me *me = &o->ni->mes[index];
    uint32_t pt = me->pt % EMU_PTL_PTS;

    emu_ptl_index_remove(o->ni, &o->ni->lists[pt], index);
    me->state = EMU_PTL_FREE;
    drop_place(o->ni, pt, me->place % EMU_PTL_PLACES);
    if (o->ni->lists[pt].n_live == 0)
        count_lists(o, -1);
    pool_give(&o->mes, index);
    count_freed(o->ni, EMU_PTL_SR_MES, o->mes.n_in_use);
}

static void free_md(struct emu_ptl_owner *o, uint32_t index);

int emu_ptl_me_unlink(struct emu_ptl_owner *o, uint32_t index)
{
    uint32_t md = o->ni->mes[index].md;

    if (md < EMU_PTL_MDS) {
        if (o->ni->mds[md].pending != 0)
            return -EBUSY;
        o->ni->mds[md].me = EMU_PTL_NONE;
        free_md(o, md);
    }
    free_me(o, index);
    return 0;
}

/* ---- descriptors ---- */

static int take_iovs(struct emu_ptl_owner *o, const struct emu_ptl_md_spec *spec, struct emu_ptl_md *md)
{
    uint64_t total = 0;

    md->iov_first = md->iov_count = 0;
    if ((spec->options & EMU_PTL_MD_IOVEC) == 0) {
        md->length_bytes = spec->length;
        return 0;
    }
    if (spec->length > 0) {
        md->iov_first = pieces_take(&o->iovs, order_of(spec->length));
        if (md->iov_first == EMU_PTL_NONE)
            return -ENOSPC;
    }
    md->iov_count = (uint32_t)spec->length;
    for (uint32_t i = 0; i < md->iov_count; i++) {
        o->ni->iovs[md->iov_first + i] = spec->iovs[i];
        total += spec->iovs[i].length_bytes;
    }
    md->length_bytes = total;
    return 0;
}

static void give_iovs(struct emu_ptl_owner *o, uint32_t first, uint32_t count)
{
    if (count > 0)
        pieces_push(&o->iovs, order_of(count), first);
}

/* All that the program says, but not what the descriptor has been through. */
static void fill(struct emu_ptl_owner *o, struct emu_ptl_md *md, const struct emu_ptl_md_spec *spec)
{
    md->threshold = spec->threshold;
    md->local_offset = 0;
    md->options = spec->options;
    md->eq = spec->eq;
    md->eq_generation = spec->eq < EMU_PTL_EQS ? o->ni->eqs[spec->eq].generation : 0;
    md->eq_handle = spec->eq_handle;
    md->max_size = spec->max_size;
    md->start = spec->start;
    md->length = spec->length;
    md->user_ptr = spec->user_ptr;
    md->mdh = spec->mdh;
    md->mdh_generation = spec->mdh_generation;
}

int emu_ptl_md_create(struct emu_ptl_owner *o, const struct emu_ptl_md_spec *spec, uint32_t me, uint32_t *md_out)
{
    struct emu_ptl_ni *ni = o->ni;
    struct emu_ptl_md *md;
    uint32_t index;

    if (me != EMU_PTL_NONE && ni->mes[me].md != EMU_PTL_NONE)
        return -EEXIST;
    index = pool_take(&o->mds);
    if (index == EMU_PTL_NONE)
        return -ENOSPC;
    md = &ni->mds[index];
    if (take_iovs(o, spec, md) < 0) {
        pool_give(&o->mds, index);
        return -ENOSPC;
    }
    fill(o, md, spec);
    md->pending = 0;
    md->awaits = 0;
    md->flags = spec->unlinks ? EMU_PTL_MD_UNLINKS : 0;
    md->me = me;
    md->generation++;
    md->handle = handle_of(o, EMU_PTL_IS_MD, index, md->generation);
    md->state = EMU_PTL_LIVE;
    if (me != EMU_PTL_NONE) {
        ni->mes[me].md = index;
        ni->places[ni->mes[me].pt % EMU_PTL_PTS][ni->mes[me].place % EMU_PTL_PLACES].md = index;
    }
    count_alignment(ni, spec->start);
    count_made(ni, EMU_PTL_SR_MDS, o->mds.n_in_use);
    *md_out = index;
    return 0;
}

static void give_old_iovs(struct emu_ptl_owner *o, uint32_t index)
{
    for (uint32_t i = 0; i < o->n_old_iovs;) {
        if (o->old_iovs[i].md != index) {
            i++;
            continue;
        }
        give_iovs(o, o->old_iovs[i].first, o->old_iovs[i].count);
        o->old_iovs[i] = o->old_iovs[--o->n_old_iovs];
    }
}

static void free_md(struct emu_ptl_owner *o, uint32_t index)
{
    struct emu_ptl_md *md = &o->ni->mds[index];

    md->state = EMU_PTL_FREE;
    if (md->iov_count > 0 && md->iov_count <= EMU_PTL_IOVEC_MAX)
        give_iovs(o, md->iov_first, md->iov_count);
    md->iov_count = 0;
    if (o->n_old_iovs > 0)
        give_old_iovs(o, index);
    pool_give(&o->mds, index);
    count_freed(o->ni, EMU_PTL_SR_MDS, o->mds.n_in_use);
}

/* Takes a descriptor out of its entry, which goes too if it was made so. */
static void detach(struct emu_ptl_owner *o, uint32_t index)
{
    struct emu_ptl_ni *ni = o->ni;
    uint32_t me = ni->mds[index].me;

    if (me >= EMU_PTL_MES || ni->mes[me].state != EMU_PTL_LIVE || ni->mes[me].md != index)
        return;
    ni->mes[me].md = EMU_PTL_NONE;
    ni->places[ni->mes[me].pt % EMU_PTL_PTS][ni->mes[me].place % EMU_PTL_PLACES].md = EMU_PTL_NONE;
    if (ni->mes[me].unlinks)
        free_me(o, me);
}

int emu_ptl_md_unlink(struct emu_ptl_owner *o, uint32_t index)
{
    if (o->ni->mds[index].pending != 0)
        return -EBUSY;
    detach(o, index);
    free_md(o, index);
    return 0;
}

void emu_ptl_md_tell_unlink(struct emu_ptl_owner *o, uint32_t index)
{
    struct emu_ptl_ni *ni = o->ni;
    const struct emu_ptl_md *md = &ni->mds[index];
    struct emu_ptl_event event = {
        .kind = EMU_PTL_EVENT_UNLINK,
        .unlinked = (md->options & EMU_PTL_MD_LUSTRE) != 0,
        .link = ni->next_link++,
        .nid = ni->nid,
        .pid = ni->pid,
        .uid = ni->uid,
        .jid = ni->jid,
        .md_handle = md->handle,
        .threshold = md->threshold,
        .options = md->options,
        .start = md->start,
        .length = md->length,
        .max_size = md->max_size,
        .user_ptr = md->user_ptr,
        .eq_handle = md->eq_handle,
    };

    emu_ptl_post(ni, md->eq, md->eq_generation, &event);
}

void emu_ptl_reap(struct emu_ptl_owner *o)
{
    struct emu_ptl_ni *ni = o->ni;

    if (ni->n_dead - o->reaped > EMU_PTL_MDS)
        o->reaped = ni->n_dead; /* somebody has written over it */
    while (o->reaped != ni->n_dead) {
        uint32_t index = ni->dead[o->reaped++ % EMU_PTL_MDS];

        if (index >= EMU_PTL_MDS || ni->mds[index].state != EMU_PTL_DEAD)
            continue;
        detach(o, index);
        free_md(o, index);
    }
}

bool emu_ptl_eq_is_quiet(struct emu_ptl_owner *o, uint32_t eq)
{
    struct emu_ptl_event event;

    /* Looking for the next event passes places of lost ones. */
    return eq == EMU_PTL_NONE ||
           (o->ni->eqs[eq].promised == 0 && emu_ptl_eq_take(o, eq, true, &event) == EMU_PTL_NO_EVENT &&
            atomic_load_explicit(&o->ni->eqs[eq].tail, memory_order_relaxed) == o->eq_own[eq].head.at);
}

static int keep_old_iovs(struct emu_ptl_owner *o, uint32_t index, const struct emu_ptl_md *md)
{
    struct emu_ptl_old_iov *more;

    if (md->iov_count == 0)
        return 0;
    more = realloc(o->old_iovs, (o->n_old_iovs + 1) * sizeof(*more));
    if (!more)
        return -ENOSPC;
    o->old_iovs = more;
    o->old_iovs[o->n_old_iovs++] = (struct emu_ptl_old_iov){ index, md->iov_first, md->iov_count };
    return 0;
}

int emu_ptl_md_update(struct emu_ptl_owner *o, uint32_t index, const struct emu_ptl_md_spec *spec, uint32_t test_eq)
{
    struct emu_ptl_md *md = &o->ni->mds[index];
    struct emu_ptl_md with = *md;
    int r;

    if (test_eq != EMU_PTL_NONE && (md->pending != 0 || !emu_ptl_eq_is_quiet(o, test_eq)))
        return -EAGAIN;
    r = take_iovs(o, spec, &with);
    if (r < 0)
        return r;
    /* Transfers that are going on use the old segments. */
    r = keep_old_iovs(o, index, md);
    if (r < 0) {
        give_iovs(o, with.iov_first, with.iov_count);
        return r;
    }
    md->iov_first = with.iov_first;
    md->iov_count = with.iov_count;
    md->length_bytes = with.length_bytes;
    fill(o, md, spec);
    md->flags &= ~EMU_PTL_MD_INACTIVE;
    if (md->pending == 0 && o->n_old_iovs > 0)
        give_old_iovs(o, index);
    return 0;
}

/* ---- queues ---- */

int emu_ptl_eq_create(struct emu_ptl_owner *o, uint64_t capacity, uint32_t *eq_out)
{
    uint64_t most = EMU_PTL_ARENA_BYTES / sizeof(struct emu_ptl_event);
    struct emu_ptl_eq *eq;
    uint32_t entries;
    uint32_t index;
    uint32_t piece;

    if (capacity > most)
        return -ENOSPC;
    entries = capacity < EQ_FEW ? EQ_FOR_FEW : 1u << order_of(capacity);
    index = pool_take(&o->eqs);
    if (index == EMU_PTL_NONE)
        return -ENOSPC;
    piece = pieces_take(&o->arena, order_of(entries * sizeof(struct emu_ptl_event) / ARENA_UNIT));
    if (piece == EMU_PTL_NONE) {
        pool_give(&o->eqs, index);
        return -ENOSPC;
    }
    eq = &o->ni->eqs[index];
    o->eq_own[index] = (struct emu_ptl_eq_own){
        .head.at = ++o->eqs_made << 32, .ring_off = (uint64_t)piece * ARENA_UNIT, .capacity = entries, .piece = piece
    };
    eq->generation++;
    eq->ring_off = o->eq_own[index].ring_off;
    eq->capacity = entries;
    eq->promised = 0;
    eq->handle = handle_of(o, EMU_PTL_IS_EQ, index, eq->generation);
    o->eq_own[index].handle = eq->handle;
    atomic_store_explicit(&eq->tail, o->eq_own[index].head.at, memory_order_relaxed);
    eq->state = EMU_PTL_LIVE;
    count_made(o->ni, EMU_PTL_SR_EQS, o->eqs.n_in_use);
    *eq_out = index;
    return 0;
}

void emu_ptl_eq_destroy(struct emu_ptl_owner *o, uint32_t index)
{
    struct emu_ptl_eq_own *own = &o->eq_own[index];

    own->handle = 0;
    o->ni->eqs[index].state = EMU_PTL_FREE;
    pieces_push(&o->arena, order_of(own->capacity * sizeof(struct emu_ptl_event) / ARENA_UNIT), own->piece);
    pool_give(&o->eqs, index);
    count_freed(o->ni, EMU_PTL_SR_EQS, o->eqs.n_in_use);
}

bool emu_ptl_eq_holds_event(const struct emu_ptl_owner *o, uint32_t eq)
{
    return atomic_load_explicit(&o->ni->eqs[eq].tail, memory_order_acquire) != o->eq_own[eq].head.at;
}

enum emu_ptl_take emu_ptl_eq_take(struct emu_ptl_owner *o, uint32_t index, bool stays, struct emu_ptl_event *event_out)
{
    struct emu_ptl_eq_own *own = &o->eq_own[index];

    return emu_ptl_take(&o->ni->eqs[index], (struct emu_ptl_event *)(o->ni->arena + own->ring_off), own->capacity,
                        &own->head, stays, event_out);
}
