/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals engine: lists, matching, what an operation leaves behind, queues that overflow, and every place at which
 * whoever carries an operation out may die.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emunic/engine/portals_engine.h"
#include "emunic/engine/portals_owner.h"
#include "tests/common/seed.h"

#define ANY UINT32_MAX

struct world {
    struct emu_ptl_ni *ni;
    struct emu_ptl_owner owner;
    uint32_t eq;
};

static int setup(void **state)
{
    static const struct emu_ptl_limits limits = { EMU_PTL_MES, EMU_PTL_MDS, EMU_PTL_EQS, EMU_PTL_MES };
    struct world *w = calloc(1, sizeof(*w));

    if (!w)
        return -1;
    w->ni = mmap(NULL, sizeof(*w->ni), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (w->ni == MAP_FAILED || emu_ptl_owner_init(&w->owner, w->ni, 0, 0, &limits) < 0 ||
        emu_ptl_eq_create(&w->owner, 64, &w->eq) < 0)
        return -1;
    w->ni->max_pt = EMU_PTL_PTS - 1;
    w->ni->max_ac = EMU_PTL_ACES - 1;
    w->ni->max_getput = EMU_PTL_GETPUT_MAX;
    w->ni->is_up = 1;
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

static uint32_t add_me(struct world *w, enum emu_ptl_where where, uint32_t base, uint64_t bits, uint64_t ignore)
{
    struct emu_ptl_me_spec spec = {
        .pt = 3, .base = base, .where = where, .nid = ANY, .pid = ANY, .bits = bits, .ignore = ignore, .unlinks = true
    };
    uint32_t me;

    assert_int_equal(emu_ptl_me_create(&w->owner, &spec, &me), 0);
    return me;
}

static struct emu_ptl_md_spec md_spec(const struct world *w)
{
    return (struct emu_ptl_md_spec){ .start = 0x1000,
                                     .length = 100,
                                     .threshold = -1,
                                     .options = EMU_PTL_MD_OP_PUT | EMU_PTL_MD_OP_GET,
                                     .eq = w->eq,
                                     .unlinks = true };
}

static uint32_t attach(struct world *w, uint32_t me, const struct emu_ptl_md_spec *spec)
{
    uint32_t md;

    assert_int_equal(emu_ptl_md_create(&w->owner, spec, me, &md), 0);
    return md;
}

static struct emu_ptl_request put_of(uint64_t bits, uint64_t length)
{
    return (struct emu_ptl_request){
        .kind = EMU_PTL_PUT, .nid = 7, .pid = 8, .pt = 3, .bits = bits, .length_bytes = length, .hdr_data = 99
    };
}

/* Runs a request to its end. The descriptor that took it, or EMU_PTL_NONE. */
static uint32_t deliver(struct world *w, const struct emu_ptl_request *rq)
{
    struct emu_ptl_taker taker;
    struct emu_ptl_flight flight = { 0 };

    if (emu_ptl_match(w->ni, rq, &taker) != EMU_PTL_TAKEN)
        return EMU_PTL_NONE;
    emu_ptl_begin(w->ni, rq, &taker, 1, &flight);
    emu_ptl_end(w->ni, &flight, 0);
    return taker.index;
}

static void expect(struct world *w, uint8_t kind, struct emu_ptl_event *event_out)
{
    assert_int_equal(emu_ptl_eq_take(&w->owner, w->eq, false, event_out), EMU_PTL_EVENT);
    assert_int_equal(event_out->kind, kind);
}

static void expect_nothing(struct world *w)
{
    struct emu_ptl_event event;

    assert_int_equal(emu_ptl_eq_take(&w->owner, w->eq, false, &event), EMU_PTL_NO_EVENT);
}

/* ---- lists ---- */

static void test_list_keeps_the_order_of_any_insertions(void **state)
{
    struct world *w = *state;
    enum { N = 3000 };
    uint32_t *order = calloc(N, sizeof(*order)); /* of entries, as it should be */
    uint32_t n = 0;

    assert_non_null(order);
    srand((unsigned)seeded(20).state);
    for (int step = 0; step < 4 * N; step++) {
        uint32_t at = n ? (uint32_t)rand() % n : 0;
        int what = rand() % 8;

        if (n > 0 && (n == N || what == 0 || what == 1)) {
            assert_int_equal(emu_ptl_me_unlink(&w->owner, order[at]), 0);
            memmove(&order[at], &order[at + 1], (n - at - 1) * sizeof(*order));
            n--;
            continue;
        }
        if (n == 0 || what == 2) {
            at = 0;
            memmove(&order[1], &order[0], n * sizeof(*order));
            order[0] = add_me(w, EMU_PTL_HEAD, 0, 0, 0);
        } else if (what == 3) {
            order[n] = add_me(w, EMU_PTL_TAIL, 0, 0, 0);
        } else {
            uint32_t me = add_me(w, what & 1 ? EMU_PTL_BEFORE : EMU_PTL_AFTER, order[at], 0, 0);

            at += !(what & 1);
            memmove(&order[at + 1], &order[at], (n - at) * sizeof(*order));
            order[at] = me;
        }
        n++;
        if (step % 500 == 0) {
            uint32_t seen = 0;

            for (uint32_t i = w->ni->lists[3].first; i < w->ni->lists[3].end; i++) {
                if (w->ni->places[3][i].me == EMU_PTL_NONE)
                    continue;
                assert_int_equal(w->ni->places[3][i].me, order[seen]);
                assert_int_equal(w->ni->mes[order[seen]].place, i);
                seen++;
            }
            assert_int_equal(seen, n);
        }
    }
    free(order);
}

/* Each insertion finds no hole before the nearer end. */
static void test_holes_made_for_insertions_do_not_outnumber_entries(void **state)
{
    struct world *w = *state;
    enum { N = 2000, SPARED = 64 };
    const struct emu_ptl_list *list = &w->ni->lists[3];
    uint32_t entries[N];

    for (unsigned i = 0; i < N; i++)
        entries[i] = add_me(w, EMU_PTL_TAIL, 0, 0, 0);
    for (unsigned i = 0; i < N / 2; i++) {
        add_me(w, EMU_PTL_BEFORE, entries[N / 2 + i], 0, 0);
        add_me(w, EMU_PTL_BEFORE, entries[N / 2 - i], 0, 0);
        assert_true(list->end - list->first <= 2 * list->n_live + SPARED);
    }
}

static void test_first_entry_that_accepts_takes_the_request(void **state)
{
    struct world *w = *state;
    struct emu_ptl_md_spec spec = md_spec(w);
    struct emu_ptl_request rq = put_of(5, 80);
    uint32_t marker = add_me(w, EMU_PTL_TAIL, 0, 5, 0);
    uint32_t second = add_me(w, EMU_PTL_TAIL, 0, 0, ~0ull);
    uint32_t first = add_me(w, EMU_PTL_BEFORE, second, 5, 0);
    uint32_t small, large;

    (void)marker; /* without a descriptor it takes nothing */
    spec.length = 50;
    small = attach(w, first, &spec);
    spec.length = 100;
    large = attach(w, second, &spec);
    assert_int_equal(deliver(w, &rq), large);
    rq.length_bytes = 50;
    assert_int_equal(deliver(w, &rq), small);
    rq.bits = 6;
    rq.length_bytes = 20;
    assert_int_equal(deliver(w, &rq), large);
    assert_int_equal(deliver(w, &rq), EMU_PTL_NONE); /* 80 and 20 have filled it */
    assert_int_equal(w->ni->drops, 1);
    assert_int_equal(w->ni->dropped_bytes, 20);
}

static void test_used_up_descriptor_goes_with_its_entry(void **state)
{
    struct world *w = *state;
    struct emu_ptl_md_spec spec = md_spec(w);
    struct emu_ptl_request rq = put_of(1, 10);
    uint32_t me = add_me(w, EMU_PTL_TAIL, 0, 1, 0);
    uint32_t handle = w->ni->mes[me].handle;
    struct emu_ptl_event start, end, unlink;
    uint32_t md;

    spec.threshold = 1;
    md = attach(w, me, &spec);
    assert_int_equal(deliver(w, &rq), md);
    expect(w, EMU_PTL_EVENT_PUT_START, &start);
    expect(w, EMU_PTL_EVENT_PUT_END, &end);
    expect(w, EMU_PTL_EVENT_UNLINK, &unlink);
    assert_int_equal(start.link, end.link);
    assert_int_equal(unlink.link, end.link);
    assert_int_equal(start.rlength, 10);
    assert_int_equal(end.hdr_data, 99);
    assert_int_equal(unlink.md_handle, end.md_handle);
    assert_int_equal(deliver(w, &rq), EMU_PTL_NONE);
    emu_ptl_reap(&w->owner);
    assert_int_equal(emu_ptl_find_me(&w->owner, handle), EMU_PTL_NONE);
    assert_int_equal(w->owner.mes.n_in_use, 0);
    assert_int_equal(w->owner.mds.n_in_use, 0);
}

static void test_room_below_max_size_ends_a_descriptor(void **state)
{
    struct world *w = *state;
    struct emu_ptl_md_spec spec = md_spec(w);
    struct emu_ptl_request rq = put_of(1, 40);
    struct emu_ptl_event event;

    spec.options |= EMU_PTL_MD_MAX_SIZE | EMU_PTL_MD_START_DISABLE;
    spec.max_size = 50;
    attach(w, add_me(w, EMU_PTL_TAIL, 0, 1, 0), &spec);
    assert_int_not_equal(deliver(w, &rq), EMU_PTL_NONE);
    expect(w, EMU_PTL_EVENT_PUT_END, &event);
    assert_int_equal(event.offset, 0);
    assert_int_not_equal(deliver(w, &rq), EMU_PTL_NONE);
    expect(w, EMU_PTL_EVENT_PUT_END, &event);
    assert_int_equal(event.offset, 40);
    expect(w, EMU_PTL_EVENT_UNLINK, &event);
    assert_int_equal(deliver(w, &rq), EMU_PTL_NONE);
}

/* ---- update ---- */

static void test_update_is_refused_while_an_event_waits_or_is_promised(void **state)
{
    struct world *w = *state;
    struct emu_ptl_md_spec spec = md_spec(w);
    struct emu_ptl_request rq = put_of(1, 10);
    struct emu_ptl_taker taker;
    struct emu_ptl_flight flight = { 0 };
    struct emu_ptl_event event;
    uint32_t other;

    spec.options |= EMU_PTL_MD_START_DISABLE;
    attach(w, add_me(w, EMU_PTL_TAIL, 0, 1, 0), &spec);
    other = attach(w, add_me(w, EMU_PTL_TAIL, 0, 2, 0), &spec);
    assert_int_equal(emu_ptl_md_update(&w->owner, other, &spec, w->eq), 0);
    assert_int_equal(emu_ptl_match(w->ni, &rq, &taker), EMU_PTL_TAKEN);
    emu_ptl_begin(w->ni, &rq, &taker, 1, &flight);
    assert_int_equal(emu_ptl_md_update(&w->owner, other, &spec, w->eq), -EAGAIN);
    emu_ptl_end(w->ni, &flight, 0);
    assert_int_equal(emu_ptl_md_update(&w->owner, other, &spec, w->eq), -EAGAIN);
    expect(w, EMU_PTL_EVENT_PUT_END, &event);
    assert_int_equal(emu_ptl_md_update(&w->owner, other, &spec, w->eq), 0);
}

/* ---- queues ---- */

static void test_full_queue_loses_its_oldest_events_and_says_so_once(void **state)
{
    struct world *w = *state;
    struct emu_ptl_md_spec spec = md_spec(w);
    struct emu_ptl_request rq = put_of(1, 0);
    struct emu_ptl_event event;
    uint64_t first;

    spec.options |= EMU_PTL_MD_START_DISABLE;
    attach(w, add_me(w, EMU_PTL_TAIL, 0, 1, 0), &spec);
    for (int i = 0; i < 70; i++) {
        rq.hdr_data = (uint64_t)i;
        deliver(w, &rq);
    }
    assert_int_equal(emu_ptl_eq_take(&w->owner, w->eq, false, &event), EMU_PTL_EVENT_AFTER_LOSS);
    assert_int_equal(event.hdr_data, 6);
    first = event.seq;
    for (unsigned i = 7; i < 70; i++) {
        assert_int_equal(emu_ptl_eq_take(&w->owner, w->eq, false, &event), EMU_PTL_EVENT);
        assert_int_equal(event.hdr_data, i);
        assert_int_equal(event.seq, first + i - 6);
    }
    expect_nothing(w);
}

static void test_new_queue_shows_nothing_of_the_one_before(void **state)
{
    struct world *w = *state;
    struct emu_ptl_event event = { .kind = 5 };
    uint32_t generation = w->ni->eqs[w->eq].generation;
    uint64_t ring = w->ni->eqs[w->eq].ring_off;

    for (int i = 0; i < 100; i++)
        emu_ptl_post(w->ni, w->eq, generation, &event);
    emu_ptl_eq_destroy(&w->owner, w->eq);
    emu_ptl_post(w->ni, w->eq, generation, &event);
    assert_int_equal(emu_ptl_eq_create(&w->owner, 64, &w->eq), 0);
    assert_int_equal(w->ni->eqs[w->eq].ring_off, ring);
    expect_nothing(w);
    emu_ptl_post(w->ni, w->eq, w->ni->eqs[w->eq].generation, &event);
    expect(w, 5, &event);
}

/* As by a fault rule: its END is lost, which the next event tells, whenever that comes. */
static void test_lost_event_is_told_by_the_next_one(void **state)
{
    struct world *w = *state;
    struct emu_ptl_md_spec spec = md_spec(w);
    struct emu_ptl_request rq = put_of(1, 10);
    struct emu_ptl_taker taker;
    struct emu_ptl_event event;
    uint32_t md;

    spec.options |= EMU_PTL_MD_START_DISABLE;
    md = attach(w, add_me(w, EMU_PTL_TAIL, 0, 1, 0), &spec);
    for (int looks = 0; looks < 2; looks++) {
        struct emu_ptl_flight flight = { 0 };

        deliver(w, &rq);
        expect(w, EMU_PTL_EVENT_PUT_END, &event);
        assert_int_equal(emu_ptl_match(w->ni, &rq, &taker), EMU_PTL_TAKEN);
        emu_ptl_begin(w->ni, &rq, &taker, 1, &flight);
        emu_ptl_lose(&flight);
        emu_ptl_end(w->ni, &flight, 0);
        if (looks)
            expect_nothing(w);
        /* Nothing waits there. */
        assert_int_equal(emu_ptl_md_update(&w->owner, md, &spec, w->eq), 0);
        deliver(w, &rq);
        assert_int_equal(emu_ptl_eq_take(&w->owner, w->eq, true, &event), EMU_PTL_EVENT_AFTER_LOSS);
        assert_int_equal(emu_ptl_eq_take(&w->owner, w->eq, false, &event), EMU_PTL_EVENT_AFTER_LOSS);
        assert_int_equal(event.kind, EMU_PTL_EVENT_PUT_END);
        expect_nothing(w);
    }
}

/* ---- death ---- */

static struct world *start_again(void **state)
{
    assert_int_equal(teardown(state), 0);
    assert_int_equal(setup(state), 0);
    return *state;
}

/* Leaves the state in which its process died at that stage; is_posted: the stage's event is in the queue. */
static void cut_off(struct world *w, uint32_t md, struct emu_ptl_flight *flight, uint32_t stage, bool is_posted)
{
    struct emu_ptl_eq *eq = &w->ni->eqs[w->eq];

    if (stage == EMU_PTL_PREPARED) {
        /* Its words are changed, its START is not there yet. */
        eq->tail--;
        flight->stage = stage;
        return;
    }
    if (stage == EMU_PTL_BEGUN) {
        if (!is_posted) {
            eq->tail--;
            flight->flags |= EMU_PTL_FLIGHT_START;
        }
        return;
    }
    emu_ptl_end(w->ni, flight, 0);
    flight->stage = stage;
    if (stage == EMU_PTL_ENDING) {
        /* Between END and the rest. */
        flight->flags |= EMU_PTL_FLIGHT_END;
        eq->tail -= 1 + !is_posted;
        w->ni->mds[md].state = EMU_PTL_LIVE;
        w->ni->mds[md].pending = 1;
        flight->eq_tail = eq->tail - (uint64_t)is_posted;
    } else if (!is_posted) {
        eq->tail--;
    }
}

/* What is left when an operation was cut off at some stage and repaired. */
static void check_cut_off(struct world *w, uint32_t stage, bool is_posted)
{
    struct emu_ptl_md_spec spec = md_spec(w);
    struct emu_ptl_request rq = put_of(1, 10);
    struct emu_ptl_taker taker;
    struct emu_ptl_flight flight = { 0 };
    struct emu_ptl_event event;
    uint32_t md;

    spec.threshold = 1;
    md = attach(w, add_me(w, EMU_PTL_TAIL, 0, 1, 0), &spec);
    assert_int_equal(emu_ptl_match(w->ni, &rq, &taker), EMU_PTL_TAKEN);
    emu_ptl_begin(w->ni, &rq, &taker, 1, &flight);
    cut_off(w, md, &flight, stage, is_posted);
    emu_ptl_repair(w->ni, &flight, true);
    assert_int_equal(flight.stage, EMU_PTL_IDLE);
    if (stage == EMU_PTL_PREPARED) {
        assert_int_equal(w->ni->mds[md].threshold, 1);
        assert_int_equal(w->ni->mds[md].pending, 0);
        assert_int_equal(w->ni->mds[md].local_offset, 0);
        assert_int_equal(w->ni->eqs[w->eq].promised, 0);
        assert_int_equal(deliver(w, &rq), md);
    }
    expect(w, EMU_PTL_EVENT_PUT_START, &event);
    expect(w, EMU_PTL_EVENT_PUT_END, &event);
    assert_int_equal(event.fail, stage == EMU_PTL_BEGUN ? EMU_STATUS_PEER_GONE : 0);
    expect(w, EMU_PTL_EVENT_UNLINK, &event);
    expect_nothing(w);
    assert_int_equal(w->ni->eqs[w->eq].promised, 0);
    emu_ptl_reap(&w->owner);
    assert_int_equal(w->owner.mds.n_in_use, 0);
}

static void test_cut_off_operation_never_was_or_has_failed(void **state)
{
    for (uint32_t stage = EMU_PTL_PREPARED; stage <= EMU_PTL_UNLINKING; stage++) {
        check_cut_off(start_again(state), stage, false);
        check_cut_off(start_again(state), stage, true);
    }
}

/* ---- brief operations ---- */

static void begin_brief(struct world *w, const struct emu_ptl_request *rq, struct emu_ptl_taker *taker,
                        struct emu_ptl_flight *flight)
{
    assert_int_equal(emu_ptl_match(w->ni, rq, taker), EMU_PTL_TAKEN);
    emu_ptl_begin_brief(w->ni, taker, 1, flight);
}

enum { EVENTS_MOST = 3 };

/* A descriptor after it took a request, and the events of it without what differs in each: link, handle, number. */
struct taken {
    uint32_t md;
    struct emu_ptl_event events[EVENTS_MOST];
};

static void take_request(struct world *w, const struct emu_ptl_request *rq, const struct emu_ptl_md_spec *spec,
                         bool is_brief, struct taken *out)
{
    uint32_t link = w->ni->next_link;
    uint64_t received = w->ni->received_bytes;
    struct emu_ptl_taker taker;
    struct emu_ptl_flight flight = { 0 };

    memset(out, 0, sizeof(*out));
    out->md = attach(w, add_me(w, EMU_PTL_HEAD, 0, rq->bits, 0), spec);
    if (is_brief) {
        begin_brief(w, rq, &taker, &flight);
        expect_nothing(w);
        emu_ptl_end_brief(w->ni, rq, &taker, &flight, 0);
        assert_int_equal(flight.stage, EMU_PTL_IDLE);
    } else {
        deliver(w, rq);
    }
    for (unsigned n = 0; n < EVENTS_MOST; n++) {
        struct emu_ptl_event *event = &out->events[n];

        if (emu_ptl_eq_take(&w->owner, w->eq, false, event) != EMU_PTL_EVENT)
            break;
        assert_int_equal(event->link, link);
        assert_int_equal(event->md_handle, w->ni->mds[out->md].handle);
        event->seq = event->link = event->md_handle = event->check = 0;
    }
    expect_nothing(w);
    assert_int_equal(w->ni->received_bytes - received, 33);
    assert_int_equal(w->ni->next_link - link, 1);
}

/* The same request to two equal descriptors. */
static void test_brief_operation_leaves_what_a_long_one_does(void **state)
{
    static const uint32_t options[] = { 0,
                                        EMU_PTL_MD_MANAGE_REMOTE,
                                        EMU_PTL_MD_START_DISABLE,
                                        EMU_PTL_MD_END_DISABLE,
                                        EMU_PTL_MD_LOCAL_ALIGN8 | EMU_PTL_MD_TRUNCATE,
                                        EMU_PTL_MD_AUTO_UNLINK_EVENT,
                                        EMU_PTL_MD_START_DISABLE | EMU_PTL_MD_END_DISABLE |
                                            EMU_PTL_MD_AUTO_UNLINK_EVENT,
                                        EMU_PTL_MD_LUSTRE | EMU_PTL_MD_MAX_SIZE };
    static const int thresholds[] = { -1, 5, 1 };
    enum { N_OPTIONS = sizeof(options) / sizeof(options[0]) };
    struct world *w = *state;

    for (unsigned i = 0; i < 6 * N_OPTIONS; i++) {
        struct emu_ptl_request rq = put_of(i, 33);
        struct emu_ptl_md_spec spec = md_spec(w);
        struct taken by_long, by_brief;
        const struct emu_ptl_md *first, *second;

        w->ni->behaviour = i % 2 ? EMU_PTL_THRESHOLD_BEFORE | EMU_PTL_UNLINK_ON_DEMAND : 0;
        rq.uid = 3;
        rq.jid = 4;
        rq.offset = 17;
        spec.options |= options[i / 6];
        spec.threshold = thresholds[i / 2 % 3];
        spec.max_size = 80;
        spec.user_ptr = 2000;
        spec.eq_handle = 3000;
        take_request(w, &rq, &spec, false, &by_long);
        take_request(w, &rq, &spec, true, &by_brief);
        assert_memory_equal(by_brief.events, by_long.events, sizeof(by_long.events));
        first = &w->ni->mds[by_long.md];
        second = &w->ni->mds[by_brief.md];
        assert_int_equal(second->threshold, first->threshold);
        assert_int_equal(second->local_offset, first->local_offset);
        assert_int_equal(second->flags, first->flags);
        assert_int_equal(second->state, first->state);
        assert_int_equal(second->pending, 0);
        emu_ptl_reap(&w->owner);
        assert_int_equal(second->state, first->state);
        assert_int_equal(w->ni->eqs[w->eq].promised, 0);
        assert_int_equal(w->ni->n_open, 0);
        assert_int_equal(w->ni->n_open_max, 1);
    }
}

/* How far it had come: events in the queue; is the last of them counted? */
static void test_cut_off_brief_operation_never_was_or_has_its_end(void **state)
{
    for (int i = 0; i < 12; i++) {
        uint32_t disabled = i / 6 ? EMU_PTL_MD_START_DISABLE : 0;
        uint64_t n_posted = (uint64_t)(i / 2 % 3);
        bool is_counted = i % 2 == 0;
        struct emu_ptl_md_spec spec;
        struct emu_ptl_request rq = put_of(1, 10);
        struct emu_ptl_taker taker;
        struct emu_ptl_flight flight = { 0 }, cut;
        struct emu_ptl_event event;
        struct world *w;
        uint64_t tail;
        uint32_t md;

        if (disabled && n_posted == 2)
            continue; /* there is END alone */
        w = start_again(state);
        spec = md_spec(w);
        spec.threshold = 2;
        spec.options |= disabled;
        md = attach(w, add_me(w, EMU_PTL_TAIL, 0, 1, 0), &spec);
        tail = w->ni->eqs[w->eq].tail;
        begin_brief(w, &rq, &taker, &flight);
        cut = flight;
        emu_ptl_end_brief(w->ni, &rq, &taker, &flight, 0);
        /* What had not been done yet is taken back. */
        for (uint64_t n = n_posted; n < (disabled ? 1 : 2); n++)
            ((struct emu_ptl_event *)(void *)(w->ni->arena + w->ni->eqs[w->eq].ring_off))[(tail + n) % 64].seq =
                EMU_PTL_SEQ_WRITTEN;
        w->ni->eqs[w->eq].tail = tail + n_posted - (n_posted > 0 && !is_counted);
        emu_ptl_repair(w->ni, &cut, true);
        assert_int_equal(cut.stage, EMU_PTL_IDLE);
        if (n_posted > 0) {
            if (!disabled)
                expect(w, EMU_PTL_EVENT_PUT_START, &event);
            expect(w, EMU_PTL_EVENT_PUT_END, &event);
            assert_int_equal(event.fail, n_posted == 1 && !disabled ? EMU_STATUS_PEER_GONE : 0);
            assert_int_equal(event.hdr_data, 99);
        }
        expect_nothing(w);
        assert_int_equal(w->ni->mds[md].threshold, n_posted > 0 ? 1 : 2);
        assert_int_equal(w->ni->mds[md].local_offset, n_posted > 0 ? 10 : 0);
        assert_int_equal(w->ni->mds[md].pending, 0);
        assert_int_equal(deliver(w, &rq), md);
    }
}

/* One that uses its descriptor up, with all its events: cut off between END and the last. */
static void test_cut_off_brief_operation_takes_its_descriptor_along(void **state)
{
    for (int step = 0; step < 4; step++) {
        struct emu_ptl_md_spec spec;
        struct emu_ptl_request rq = put_of(1, 10);
        struct emu_ptl_taker taker;
        struct emu_ptl_flight flight = { 0 };
        struct emu_ptl_event event, *slots;
        struct world *w;
        uint64_t tail;
        uint32_t md;

        w = start_again(state);
        spec = md_spec(w);
        spec.threshold = 1;
        md = attach(w, add_me(w, EMU_PTL_TAIL, 0, 1, 0), &spec);
        tail = w->ni->eqs[w->eq].tail;
        slots = (struct emu_ptl_event *)(void *)(w->ni->arena + w->ni->eqs[w->eq].ring_off);
        begin_brief(w, &rq, &taker, &flight);
        emu_ptl_end_brief(w->ni, &rq, &taker, &flight, 0);
        /* UNLINK is not there; not counted in the last step. */
        w->ni->eqs[w->eq].tail = tail + 2;
        if (step < 3)
            slots[(tail + 2) % 64].seq = EMU_PTL_SEQ_WRITTEN;
        if (step < 2) { /* nor is the descriptor dead */
            w->ni->mds[md].state = EMU_PTL_LIVE;
            w->ni->n_dead--;
        }
        flight.stage = step == 0 ? EMU_PTL_BRIEF : step == 1 ? EMU_PTL_RETIRING : EMU_PTL_UNLINKING;
        flight.eq_tail = step == 0 ? tail : tail + 2;
        emu_ptl_repair(w->ni, &flight, true);
        assert_int_equal(flight.stage, EMU_PTL_IDLE);
        expect(w, EMU_PTL_EVENT_PUT_START, &event);
        expect(w, EMU_PTL_EVENT_PUT_END, &event);
        assert_int_equal(event.fail, 0);
        expect(w, EMU_PTL_EVENT_UNLINK, &event);
        assert_int_equal(event.hdr_data, 99);
        expect_nothing(w);
        emu_ptl_reap(&w->owner);
        assert_int_equal(w->owner.mds.n_in_use, 0);
        assert_int_equal(w->owner.mes.n_in_use, 0);
    }
}

/* ---- memory ---- */

static void test_segments_are_copied_piece_by_piece(void **state)
{
    struct world *w = *state;
    char from[32] = "abcdefghijklmnopqrstuvwxyz", to[32] = { 0 };
    struct emu_ptl_iov pieces[] = { { (uintptr_t)from, 3 }, { (uintptr_t)from, 0 }, { (uintptr_t)from + 10, 7 } };
    struct emu_ptl_md_spec spec = md_spec(w);
    struct emu_ptl_span source, sink = { .n = 1, .one = { (uintptr_t)to, sizeof(to) } };
    struct emu_memory self = emu_memory_self();
    int fault;
    uint32_t md;

    spec.options |= EMU_PTL_MD_IOVEC;
    spec.length = 3;
    spec.iovs = pieces;
    md = attach(w, EMU_PTL_NONE, &spec);
    assert_int_equal(w->ni->mds[md].length_bytes, 10);
    emu_ptl_span_of(w->ni, &w->ni->mds[md], &source);
    assert_int_equal(emu_ptl_move((struct emu_ptl_at){ &self, &sink, 1 }, (struct emu_ptl_at){ &self, &source, 2 }, 8,
                                  (struct emu_bounce){ to, 1 }, &fault),
                     0);
    assert_memory_equal(to, "\0cklmnopq", 10);
    assert_int_equal(emu_ptl_move((struct emu_ptl_at){ &self, &sink, 1 }, (struct emu_ptl_at){ &self, &source, 2 }, 9,
                                  (struct emu_bounce){ to, 1 }, &fault),
                     -EFAULT);
    assert_int_equal(fault, 0);
}

/* ---- whatever stands there ---- */

static void test_garbage_in_an_interface_ends_each_call(void **state)
{
    struct world *w = *state;
    uint32_t *words = (uint32_t *)(void *)w->ni;
    struct emu_ptl_taker taker;

    srand((unsigned)seeded(20).state);
    for (int round = 0; round < 200; round++) {
        struct emu_ptl_request rq = put_of((uint64_t)rand() & 3, (uint64_t)rand() & 127);
        struct emu_ptl_flight flight = { .stage = (uint32_t)rand() % 8,
                                         .md = (uint32_t)rand(),
                                         .eq = (uint32_t)rand() & 7,
                                         .eq_generation = (uint32_t)rand() & 1,
                                         .flags = (uint32_t)rand() };

        for (int i = 0; i < 2000; i++)
            words[(uint32_t)rand() % (offsetof(struct emu_ptl_ni, eqs[8]) / 4)] = (uint32_t)rand() & (i & 1 ? 7u : ~0u);
        for (int i = 0; i < 2000; i++)
            ((uint32_t *)(void *)&w->ni->mds[0])[(uint32_t)rand() % 4096] = (uint32_t)rand() & (i & 1 ? 3u : ~0u);
        w->ni->is_up = 1;
        w->ni->max_pt = 63;
        w->ni->lists[3].first %= EMU_PTL_PLACES;
        if (emu_ptl_match(w->ni, &rq, &taker) == EMU_PTL_TAKEN) {
            struct emu_ptl_flight own = { 0 };

            emu_ptl_begin(w->ni, &rq, &taker, 1, &own);
            emu_ptl_end(w->ni, &own, 0);
        }
        if (emu_ptl_match(w->ni, &rq, &taker) == EMU_PTL_TAKEN) {
            struct emu_ptl_flight own = { 0 };

            emu_ptl_expect(w->ni, &taker);
            emu_ptl_begin_brief(w->ni, &taker, 1, &own);
            emu_ptl_end_brief(w->ni, &rq, &taker, &own, 0);
        }
        emu_ptl_repair(w->ni, &flight, round & 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_list_keeps_the_order_of_any_insertions, setup, teardown),
        cmocka_unit_test_setup_teardown(test_holes_made_for_insertions_do_not_outnumber_entries, setup, teardown),
        cmocka_unit_test_setup_teardown(test_first_entry_that_accepts_takes_the_request, setup, teardown),
        cmocka_unit_test_setup_teardown(test_used_up_descriptor_goes_with_its_entry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_room_below_max_size_ends_a_descriptor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_update_is_refused_while_an_event_waits_or_is_promised, setup, teardown),
        cmocka_unit_test_setup_teardown(test_full_queue_loses_its_oldest_events_and_says_so_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_new_queue_shows_nothing_of_the_one_before, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_event_is_told_by_the_next_one, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_off_operation_never_was_or_has_failed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_brief_operation_leaves_what_a_long_one_does, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_off_brief_operation_takes_its_descriptor_along, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cut_off_brief_operation_never_was_or_has_its_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_segments_are_copied_piece_by_piece, setup, teardown),
        cmocka_unit_test_setup_teardown(test_garbage_in_an_interface_ends_each_call, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
