/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: indices of long match lists.
 *
 * Made when a list has more than EMU_PTL_SHORT_LIST entries, made anew with twice the chains when there are more
 * entries than chains, so that an insertion costs O(1) on the average; gone when fewer than EMU_PTL_FEW are left. While
 * it is made, the criteria that leave the same open and are most frequent become its classes: what more than one entry
 * of 17 has gets one. Later a free class goes to whoever comes first.
 *
 * Places grow along the list whatever is shifted or packed there, so chains need no numbers of their own. An entry goes
 * to the end of its chain, mostly, or beside the entry that it was inserted at; else its place in the chain is searched
 * from the end.
 *
 * Only the owner writes all this, under the lock: if it dies, the interface goes. Others may have written over it:
 * indices are bounded and walks end, and then there is no index until the next insertion.
 */
#include "emunic/engine/portals_index.h"

#include <stdbool.h>
#include <string.h>

static uint32_t open_of(const struct emu_ptl_place *place)
{
    return (place->nid == EMU_PTL_NID_ANY ? EMU_PTL_OPEN_NID : 0) |
           (place->pid == EMU_PTL_PID_ANY ? EMU_PTL_OPEN_PID : 0);
}

static bool is_sound(const struct emu_ptl_index *index)
{
    uint32_t n = index->n_chains;

    return n != 0 && n <= EMU_PTL_CHAINS && (n & (n - 1)) == 0 && index->n_classes <= EMU_PTL_CLASSES;
}

static uint32_t end_of(const struct emu_ptl_list *list)
{
    return list->end < EMU_PTL_PLACES ? list->end : EMU_PTL_PLACES;
}

/* ---- classes ---- */

/* The class of such entries, else one that is free, else EMU_PTL_LOOSE. */
static uint32_t class_for(const struct emu_ptl_index *index, const struct emu_ptl_place *place)
{
    uint32_t open = open_of(place);
    uint32_t free = EMU_PTL_LOOSE;
    uint32_t n = index->n_classes;

    n = n < EMU_PTL_CLASSES ? n : EMU_PTL_CLASSES;
    for (uint32_t i = 0; i < n; i++) {
        const struct emu_ptl_class *class = &index->classes[i];

        if (class->n > 0 && class->ignore == place->ignore && class->open == open)
            return i;
        if (class->n == 0 && free == EMU_PTL_LOOSE)
            free = i;
    }
    return free == EMU_PTL_LOOSE && n < EMU_PTL_CLASSES ? n : free;
}

/* One entry more in that class, which there may not have been. */
static void join(struct emu_ptl_index *index, uint32_t which, const struct emu_ptl_place *place)
{
    struct emu_ptl_class *class = &index->classes[which];

    if (index->n_classes == which)
        index->n_classes++;
    else if (class->n > 0) {
        class->n++;
        return;
    }
    *class = (struct emu_ptl_class){ .ignore = place->ignore, .open = open_of(place), .n = 1 };
}

/*
 * The most frequent: each entry that finds no class counts against all that there are. n is 1 in those that are left,
 * so that they stay until their entries come. Their bits.
 */
static uint32_t choose_classes(const struct emu_ptl_ni *ni, uint32_t pt, struct emu_ptl_index *index)
{
    uint32_t end = end_of(&ni->lists[pt]);
    uint32_t chosen = 0;

    for (uint32_t at = ni->lists[pt].first; at < end; at++) {
        const struct emu_ptl_place *place = &ni->places[pt][at];
        uint32_t which;

        if (place->me >= EMU_PTL_MES)
            continue;
        which = class_for(index, place);
        if (which != EMU_PTL_LOOSE) {
            join(index, which, place);
            continue;
        }
        for (uint32_t i = 0; i < EMU_PTL_CLASSES; i++)
            index->classes[i].n--;
    }
    for (uint32_t i = 0; i < EMU_PTL_CLASSES; i++) {
        index->classes[i].n = index->classes[i].n > 0;
        chosen |= index->classes[i].n << i;
    }
    return chosen;
}

/* ---- chains ---- */

/* The chain of an entry that has its class. */
static struct emu_ptl_chain *chain_of(struct emu_ptl_ni *ni, uint32_t me)
{
    uint32_t pt = ni->mes[me].pt % EMU_PTL_PTS;
    const struct emu_ptl_place *place = &ni->places[pt][ni->mes[me].place % EMU_PTL_PLACES];
    struct emu_ptl_index *index = &ni->indices[pt];

    if (ni->mes[me].ptl_class >= EMU_PTL_CLASSES)
        return &index->loose;
    return &ni->chains[pt][emu_ptl_hash(place->bits, place->ignore, place->nid, place->pid) & (index->n_chains - 1)];
}

/* Behind which entry of the chain it belongs; EMU_PTL_NONE: none. False: the chain is none. */
static bool find_previous(struct emu_ptl_ni *ni, const struct emu_ptl_chain *chain, uint32_t me, uint32_t base,
                          uint32_t *previous_out)
{
    uint32_t at = ni->mes[me].place;
    uint32_t first = chain->first;
    uint32_t previous = chain->last;

    *previous_out = EMU_PTL_NONE;
    if (first >= EMU_PTL_MES || ni->mes[first].place > at)
        return true;
    if (base < EMU_PTL_MES && chain_of(ni, base) == chain)
        previous = ni->mes[base].place < at ? base : ni->mes[base].prev;
    for (uint32_t i = 0; i < EMU_PTL_MES && previous < EMU_PTL_MES; i++) {
        if (ni->mes[previous].place < at) {
            *previous_out = previous;
            return true;
        }
        previous = ni->mes[previous].prev;
    }
    return false;
}

static void set_next(struct emu_ptl_ni *ni, struct emu_ptl_chain *chain, uint32_t me, uint32_t next)
{
    if (me < EMU_PTL_MES)
        ni->mes[me].next = next;
    else
        chain->first = next;
}

static void set_previous(struct emu_ptl_ni *ni, struct emu_ptl_chain *chain, uint32_t me, uint32_t previous)
{
    if (me < EMU_PTL_MES)
        ni->mes[me].prev = previous;
    else
        chain->last = previous;
}

static void insert(struct emu_ptl_ni *ni, uint32_t me, uint32_t base)
{
    uint32_t pt = ni->mes[me].pt % EMU_PTL_PTS;
    struct emu_ptl_index *index = &ni->indices[pt];
    const struct emu_ptl_place *place = &ni->places[pt][ni->mes[me].place % EMU_PTL_PLACES];
    uint32_t class = class_for(index, place);
    struct emu_ptl_chain *chain;
    uint32_t previous;
    uint32_t next;

    ni->mes[me].ptl_class = (uint16_t) class;
    if (class == EMU_PTL_LOOSE)
        index->n_loose++;
    else
        join(index, class, place);
    chain = chain_of(ni, me);
    if (!find_previous(ni, chain, me, base, &previous)) {
        index->n_chains = 0;
        return;
    }
    next = previous < EMU_PTL_MES ? ni->mes[previous].next : chain->first;
    ni->mes[me].prev = previous;
    ni->mes[me].next = next;
    set_next(ni, chain, previous, me);
    set_previous(ni, chain, next, me);
}

/* ---- life ---- */

static void make(struct emu_ptl_ni *ni, uint32_t pt)
{
    struct emu_ptl_index *index = &ni->indices[pt];
    uint32_t end = end_of(&ni->lists[pt]);
    uint32_t n_chains = EMU_PTL_SHORT_LIST;
    uint32_t chosen;

    while (n_chains < 2 * ni->lists[pt].n_live && n_chains < EMU_PTL_CHAINS)
        n_chains *= 2;
    *index = (struct emu_ptl_index){ .loose = { EMU_PTL_NONE, EMU_PTL_NONE } };
    chosen = choose_classes(ni, pt, index);
    memset(ni->chains[pt], 0xff, n_chains * sizeof(ni->chains[pt][0]));
    index->n_chains = n_chains;
    for (uint32_t at = ni->lists[pt].first; at < end && index->n_chains != 0; at++) {
        uint32_t me = ni->places[pt][at].me;

        if (me < EMU_PTL_MES)
            insert(ni, me, EMU_PTL_NONE);
    }
    for (uint32_t i = 0; i < EMU_PTL_CLASSES; i++)
        index->classes[i].n -= chosen >> i & 1;
}

void emu_ptl_index_take_in(struct emu_ptl_ni *ni, uint32_t me, uint32_t base)
{
    uint32_t pt = ni->mes[me].pt % EMU_PTL_PTS;
    struct emu_ptl_index *index = &ni->indices[pt];
    uint32_t n_live = ni->lists[pt].n_live;

    if (n_live > EMU_PTL_SHORT_LIST && (!is_sound(index) || (n_live > index->n_chains && n_live <= EMU_PTL_CHAINS)))
        make(ni, pt);
    else if (is_sound(index))
        insert(ni, me, base);
}

void emu_ptl_index_let_go(struct emu_ptl_ni *ni, uint32_t me)
{
    uint32_t pt = ni->mes[me].pt % EMU_PTL_PTS;
    struct emu_ptl_index *index = &ni->indices[pt];
    uint32_t class = ni->mes[me].ptl_class;
    struct emu_ptl_chain *chain;
    uint32_t previous = ni->mes[me].prev;
    uint32_t next = ni->mes[me].next;

    if (ni->lists[pt].n_live <= EMU_PTL_FEW || !is_sound(index)) {
        index->n_chains = 0;
        return;
    }
    chain = chain_of(ni, me);
    set_next(ni, chain, previous, next);
    set_previous(ni, chain, next, previous);
    if (class < EMU_PTL_CLASSES)
        index->classes[class].n -= index->classes[class].n > 0;
    else
        index->n_loose -= index->n_loose > 0;
}
