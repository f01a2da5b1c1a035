/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Indices of long match lists: random insertions, unlinks and messages against a list that is walked; chains; lists of
 * 100 000 entries, in which nothing but the entry sought is looked at; indices that somebody has written over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emunic/engine/portals_engine.h"
#include "emunic/engine/portals_index.h"
#include "emunic/engine/portals_owner.h"
#include "tests/common/seed.h"

#define PT   3u
#define MANY 100000u
#define MOST 1500u /* entries of the random list */

/* An entry as the naive list knows it. */
struct naive {
    uint32_t me;
    uint32_t md; /* or EMU_PTL_NONE */
    uint64_t bits;
    uint64_t ignore;
    uint32_t nid;
    uint32_t pid;
    int32_t threshold;
};

struct world {
    struct emu_ptl_ni *ni;
    struct emu_ptl_owner owner;
    struct emu_random random;
    uint32_t n_masks; /* that entries have */
    uint32_t n_bits;  /* values of match bits */
    uint32_t n;
    struct naive list[MOST];
};

static int setup(void **state)
{
    static const struct emu_ptl_limits limits = { EMU_PTL_MES, EMU_PTL_MDS, EMU_PTL_EQS, EMU_PTL_MES };
    struct world *w = calloc(1, sizeof(*w));

    if (!w)
        return -1;
    w->ni = mmap(NULL, sizeof(*w->ni), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->ni == MAP_FAILED || emu_ptl_owner_init(&w->owner, w->ni, 0, 0, &limits) < 0)
        return -1;
    w->ni->max_pt = EMU_PTL_PTS - 1;
    w->ni->max_ac = EMU_PTL_ACES - 1;
    w->ni->is_up = 1;
    w->random = seeded(31);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    emu_ptl_owner_fini(&w->owner);
    munmap(w->ni, sizeof(*w->ni));
    free(w);
    return 0;
}

static uint32_t below(struct world *w, uint32_t n)
{
    return (uint32_t)emu_random_below(&w->random, n);
}

static const struct emu_ptl_index *index_of(const struct world *w)
{
    return &w->ni->indices[PT];
}

static uint32_t attach(struct world *w, uint32_t me, int32_t threshold)
{
    struct emu_ptl_md_spec spec = { .start = 0x1000,
                                    .length = 100,
                                    .threshold = threshold,
                                    .options = EMU_PTL_MD_OP_PUT | EMU_PTL_MD_MANAGE_REMOTE,
                                    .eq = EMU_PTL_NONE,
                                    .unlinks = true };
    uint32_t md;

    assert_int_equal(emu_ptl_md_create(&w->owner, &spec, me, &md), 0);
    return md;
}

static uint32_t add(struct world *w, const struct emu_ptl_me_spec *spec)
{
    uint32_t me;

    assert_int_equal(emu_ptl_me_create(&w->owner, spec, &me), 0);
    return me;
}

static struct emu_ptl_request put_of(uint64_t bits, uint32_t nid, uint32_t pid)
{
    return (struct emu_ptl_request){ .kind = EMU_PTL_PUT, .nid = nid, .pid = pid, .pt = PT, .bits = bits };
}

/* ---- random ---- */

static void insert_something(struct world *w)
{
    uint32_t at = below(w, w->n + 1);
    uint32_t mask = below(w, w->n_masks);
    struct naive e = {
        .bits = below(w, w->n_bits),
        .ignore = mask == 0 || below(w, 4) > 0 ? 0 : ~0ull >> (64 - mask),
        .nid = below(w, 4) == 0 ? EMU_PTL_NID_ANY : below(w, 3),
        .pid = below(w, 4) == 0 ? EMU_PTL_PID_ANY : below(w, 3),
        .md = EMU_PTL_NONE,
        .threshold = (int32_t)below(w, 4) - 1,
    };
    struct emu_ptl_me_spec spec = {
        .pt = PT, .nid = e.nid, .pid = e.pid, .bits = e.bits, .ignore = e.ignore, .unlinks = true
    };

    switch (below(w, 6)) {
    case 0:
        at = 0;
        spec.where = EMU_PTL_HEAD;
        break;
    case 1:
    case 2:
        at = w->n;
        spec.where = EMU_PTL_TAIL;
        break;
    default:
        if (w->n == 0)
            return;
        at = at < w->n ? at : w->n - 1;
        spec.where = below(w, 2) ? EMU_PTL_BEFORE : EMU_PTL_AFTER;
        spec.base = w->list[at].me;
        at += spec.where == EMU_PTL_AFTER;
    }
    e.me = add(w, &spec);
    if (below(w, 8) > 0)
        e.md = attach(w, e.me, e.threshold);
    memmove(&w->list[at + 1], &w->list[at], (w->n - at) * sizeof(e));
    w->list[at] = e;
    w->n++;
}

static void forget(struct world *w, uint32_t at)
{
    w->n--;
    memmove(&w->list[at], &w->list[at + 1], (w->n - at) * sizeof(w->list[0]));
}

static uint32_t first_that_takes(const struct world *w, const struct emu_ptl_request *rq)
{
    for (uint32_t i = 0; i < w->n; i++) {
        const struct naive *e = &w->list[i];

        if (((e->bits ^ rq->bits) & ~e->ignore) == 0 && (e->nid == EMU_PTL_NID_ANY || e->nid == rq->nid) &&
            (e->pid == EMU_PTL_PID_ANY || e->pid == rq->pid) && e->md != EMU_PTL_NONE && e->threshold != 0)
            return i;
    }
    return EMU_PTL_NONE;
}

static void send_something(struct world *w)
{
    struct emu_ptl_request rq = put_of(below(w, w->n_bits), below(w, 3), below(w, 3));
    uint32_t expected = first_that_takes(w, &rq);
    struct emu_ptl_flight flight = { 0 };
    struct emu_ptl_taker taker;

    if (!emu_ptl_find(w->ni, &rq, &taker)) {
        assert_int_equal(expected, EMU_PTL_NONE);
        return;
    }
    assert_int_not_equal(expected, EMU_PTL_NONE);
    assert_int_equal(taker.index, w->list[expected].md);
    emu_ptl_begin(w->ni, &rq, &taker, 1, &flight);
    emu_ptl_end(w->ni, &flight, 0);
    if (w->list[expected].threshold > 0 && --w->list[expected].threshold == 0)
        forget(w, expected);
    /* Dead ones stay where they are for a time, as they do beside an owner that is busy. */
    if (below(w, 8) == 0)
        emu_ptl_reap(&w->owner);
}

static void unlink_something(struct world *w)
{
    uint32_t at = below(w, w->n);

    emu_ptl_reap(&w->owner);
    assert_int_equal(emu_ptl_me_unlink(&w->owner, w->list[at].me), 0);
    forget(w, at);
}

/* Each entry is in one chain, behind those before it in the list. */
static uint32_t count_chain(const struct world *w, const struct emu_ptl_chain *chain)
{
    uint32_t previous = EMU_PTL_NONE;
    uint32_t n = 0;

    for (uint32_t me = chain->first; me != EMU_PTL_NONE; me = w->ni->mes[me].next) {
        assert_true(me < EMU_PTL_MES);
        assert_int_equal(w->ni->mes[me].prev, previous);
        assert_int_equal(w->ni->places[PT][w->ni->mes[me].place].me, me);
        if (previous != EMU_PTL_NONE)
            assert_true(w->ni->mes[previous].place < w->ni->mes[me].place);
        previous = me;
        n++;
    }
    assert_int_equal(chain->last, previous);
    return n;
}

static void check_chains(const struct world *w)
{
    const struct emu_ptl_index *index = index_of(w);
    uint32_t n_loose = count_chain(w, &index->loose);
    uint32_t n = n_loose;
    uint32_t n_in_classes = 0;

    assert_int_equal(n_loose, index->n_loose);
    for (uint32_t i = 0; i < index->n_chains; i++)
        n += count_chain(w, &w->ni->chains[PT][i]);
    for (uint32_t i = 0; i < index->n_classes; i++)
        n_in_classes += index->classes[i].n;
    assert_int_equal(n, w->ni->lists[PT].n_live);
    assert_int_equal(n_in_classes + n_loose, n);
}

/* The list grows to MOST, shrinks to nothing, and so on. The searches that there was an index for. */
static uint32_t run_at_random(struct world *w, uint32_t n_steps)
{
    bool grows = true;
    uint32_t n_indexed = 0;

    for (uint32_t step = 0; step < n_steps; step++) {
        uint32_t what = below(w, 10);

        grows = w->n == 0 || (grows && w->n < MOST - 1);
        if (what < 4) {
            n_indexed += index_of(w)->n_chains != 0;
            send_something(w);
        } else if (w->n > 0 && (what == 4 || !grows)) {
            unlink_something(w);
        } else if (w->n < MOST - 1) {
            insert_something(w);
        }
        if (step % 512 == 0 && index_of(w)->n_chains != 0) {
            emu_ptl_reap(&w->owner);
            check_chains(w);
        }
    }
    return n_indexed;
}

static void test_few_kinds_of_criteria(void **state)
{
    struct world *w = *state;

    w->n_masks = 3;
    w->n_bits = 4096;
    assert_true(run_at_random(w, 40000) > 5000);
}

static void test_more_kinds_than_classes(void **state)
{
    struct world *w = *state;

    w->n_masks = 12; /* each with and without nid and pid: 48 */
    w->n_bits = 1024;
    assert_true(run_at_random(w, 40000) > 5000);
}

static void test_same_criteria_again_and_again(void **state)
{
    struct world *w = *state;

    w->n_masks = 1;
    w->n_bits = 3;
    assert_true(run_at_random(w, 20000) > 2000);
}

/* ---- many ---- */

static void fill_many(struct world *w, uint64_t (*bits_of)(uint32_t))
{
    struct emu_ptl_me_spec spec = { .pt = PT, .where = EMU_PTL_TAIL, .nid = 1, .pid = 2 };

    for (uint32_t i = 0; i < MANY; i++) {
        spec.bits = bits_of(i);
        attach(w, add(w, &spec), -1);
    }
}

static uint64_t number(uint32_t i)
{
    return i;
}

static uint64_t the_same(uint32_t i)
{
    (void)i;
    return 7;
}

/* Whoever comes by one of the entries between the first and the last takes it to fit. */
static void make_others_fit(struct world *w, const struct emu_ptl_request *rq)
{
    const struct emu_ptl_list *list = &w->ni->lists[PT];
    uint32_t chain = emu_ptl_hash(rq->bits, 0, rq->nid, rq->pid) & (index_of(w)->n_chains - 1);

    for (uint32_t at = list->first + 1; at < list->end - 1; at++) {
        struct emu_ptl_place *place = &w->ni->places[PT][at];

        if ((emu_ptl_hash(place->bits, 0, place->nid, place->pid) & (index_of(w)->n_chains - 1)) != chain)
            place->ignore = ~0ull;
    }
}

static void test_last_of_many_is_found_without_a_walk(void **state)
{
    struct world *w = *state;
    struct emu_ptl_request rq = put_of(MANY - 1, 1, 2);
    struct emu_ptl_taker taker;

    fill_many(w, number);
    assert_int_equal(index_of(w)->n_classes, 1);
    make_others_fit(w, &rq);
    assert_true(emu_ptl_find(w->ni, &rq, &taker));
    assert_int_equal(taker.index, w->ni->places[PT][w->ni->lists[PT].end - 1].md);
}

static void test_catch_all_before_or_behind_many(void **state)
{
    struct world *w = *state;
    struct emu_ptl_me_spec spec = {
        .pt = PT, .where = EMU_PTL_TAIL, .nid = EMU_PTL_NID_ANY, .pid = EMU_PTL_PID_ANY, .ignore = ~0ull
    };
    struct emu_ptl_request rq = put_of(MANY + 7, 1, 2);
    struct emu_ptl_taker taker;
    uint32_t behind, before;

    fill_many(w, number);
    behind = attach(w, add(w, &spec), -1);
    assert_true(emu_ptl_find(w->ni, &rq, &taker));
    assert_int_equal(taker.index, behind);
    rq.bits = MANY - 1;
    assert_true(emu_ptl_find(w->ni, &rq, &taker));
    assert_int_not_equal(taker.index, behind);
    spec.where = EMU_PTL_HEAD;
    before = attach(w, add(w, &spec), -1);
    assert_true(emu_ptl_find(w->ni, &rq, &taker));
    assert_int_equal(taker.index, before);
}

/* Receives of one kind before the same last entry, as a message layer posts them, then taken in turn. */
static void test_many_of_one_kind_are_taken_in_order(void **state)
{
    struct world *w = *state;
    struct emu_ptl_me_spec spec = { .pt = PT, .where = EMU_PTL_TAIL, .bits = 7, .unlinks = true };
    struct emu_ptl_request rq = put_of(7, 0, 0);
    uint32_t *mds = malloc(MANY * sizeof(*mds));
    struct emu_ptl_flight flight = { 0 };
    struct emu_ptl_taker taker;

    assert_non_null(mds);
    spec.base = add(w, &spec);
    spec.where = EMU_PTL_BEFORE;
    for (uint32_t i = 0; i < MANY; i++)
        mds[i] = attach(w, add(w, &spec), 1);
    check_chains(w);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_true(emu_ptl_find(w->ni, &rq, &taker));
        assert_int_equal(taker.index, mds[i]);
        emu_ptl_begin_brief(w->ni, &taker, 1, &flight);
        emu_ptl_end_brief(w->ni, &rq, &taker, &flight, 0);
        emu_ptl_reap(&w->owner);
    }
    assert_false(emu_ptl_find(w->ni, &rq, &taker));
    assert_int_equal(w->ni->lists[PT].n_live, 1);
    assert_int_equal(index_of(w)->n_chains, 0);
    free(mds);
}

static void test_as_many_as_there_are_places(void **state)
{
    struct world *w = *state;
    struct emu_ptl_me_spec spec = { .pt = PT, .where = EMU_PTL_HEAD, .nid = 1, .pid = 2 };
    struct emu_ptl_request rq = put_of(0, 1, 2);
    struct emu_ptl_taker taker;
    uint32_t me, md;

    md = attach(w, add(w, &spec), -1);
    for (uint32_t i = 1; i < EMU_PTL_MES; i++) {
        spec.bits = i;
        me = add(w, &spec);
        assert_int_equal(emu_ptl_find_me(&w->owner, w->ni->mes[me].handle), me);
    }
    assert_int_not_equal(emu_ptl_me_create(&w->owner, &spec, &me), 0);
    assert_true(emu_ptl_find(w->ni, &rq, &taker));
    assert_int_equal(taker.index, md);
    assert_int_equal(emu_ptl_find_md(&w->owner, w->ni->mds[md].handle), md);
}

/* ---- trust ---- */

static void spoil(struct world *w, void *what, size_t bytes)
{
    uint8_t *at = what;

    for (size_t i = 0; i < bytes; i++) {
        if (below(w, 8) == 0)
            at[i] = (uint8_t)below(w, 256);
    }
}

/* Whatever stands there, each search and each call of the owner returns, and nothing outside is touched. */
static void test_index_that_is_written_over(void **state)
{
    struct world *w = *state;
    struct emu_ptl_me_spec spec = { .pt = PT, .where = EMU_PTL_TAIL, .nid = 1, .pid = 2 };
    uint32_t entries[300];

    for (unsigned round = 0; round < 200; round++) {
        for (uint32_t i = 0; i < 300; i++) {
            spec.bits = i;
            spec.ignore = i % 20;
            entries[i] = add(w, &spec);
            if (i % 40 == 0)
                spoil(w, &w->ni->indices[PT], sizeof(w->ni->indices[PT]));
            if (i % 64 == 0)
                spoil(w, w->ni->chains[PT], 512 * sizeof(w->ni->chains[PT][0]));
            w->ni->mes[entries[below(w, i + 1)]].next = below(w, 400);
            w->ni->mes[entries[below(w, i + 1)]].prev = below(w, 400);
        }
        for (uint32_t i = 0; i < 300; i++) {
            struct emu_ptl_request rq = put_of(i, 1, 2);
            struct emu_ptl_taker taker;

            emu_ptl_find(w->ni, &rq, &taker);
            assert_int_equal(emu_ptl_me_unlink(&w->owner, entries[i]), 0);
        }
    }
}

/* Chains in a ring, and no fit: the search walks. */
static void test_ring_of_entries_ends(void **state)
{
    struct world *w = *state;
    struct emu_ptl_request rq = put_of(8, 1, 2);
    struct emu_ptl_taker taker;
    uint32_t first;

    fill_many(w, the_same);
    first = index_of(w)->loose.first;
    assert_int_equal(first, EMU_PTL_NONE);
    for (uint32_t i = 0; i < index_of(w)->n_chains; i++)
        w->ni->chains[PT][i].first = w->ni->places[PT][w->ni->lists[PT].first].me;
    w->ni->mes[w->ni->places[PT][w->ni->lists[PT].first].me].next = w->ni->places[PT][w->ni->lists[PT].first].me;
    assert_false(emu_ptl_find(w->ni, &rq, &taker));
    rq.bits = 7;
    assert_true(emu_ptl_find(w->ni, &rq, &taker));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_few_kinds_of_criteria, setup, teardown),
        cmocka_unit_test_setup_teardown(test_more_kinds_than_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_same_criteria_again_and_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_last_of_many_is_found_without_a_walk, setup, teardown),
        cmocka_unit_test_setup_teardown(test_catch_all_before_or_behind_many, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_of_one_kind_are_taken_in_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_as_many_as_there_are_places, setup, teardown),
        cmocka_unit_test_setup_teardown(test_index_that_is_written_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ring_of_entries_ends, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
