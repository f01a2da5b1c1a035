/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals processes that die inside a call, at a chosen instruction.
 *
 * A child is led with ptrace (tests/common/trace.h) through one call and killed on the way: an initiator in a put, get
 * or getput to `target`; an owner in a call that changes its own lists and descriptors, while `live` sends to it; a
 * target at any moment of a stream of puts. What has to hold afterwards: nobody else hangs or loses anything. target's
 * next messages come, whole and in order; an operation whose START event it has seen also has its END event, and an
 * entry that it used up its UNLINK event; queues are not promised events that never come (PtlMDUpdate goes on),
 * descriptors are not held by who is dead (PtlMDUnlink goes on). The places are drawn (tests/common/kill_points.h).
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "tests/common/kill_points.h"
#include "tests/common/portals_part.h"
#include "tests/common/proc.h"
#include "tests/common/seed.h"
#include "tests/common/trace.h"
#include "tests/property/peers.h"

#define TARGET      0u
#define LIVE        1u
#define VICTIM_PID  250u
#define PT          4u
#define VICTIM_BITS 7u
#define WARM_BITS   8u
#define LIVE_BITS   9u
#define LAST_PT     5u /* where one put uses an entry up */
#define LAST_BITS   10u
#define MD_BYTES    24576u /* of an arena; the rest is live's source */
#define LIVE_AT     16384u
#define STEPS_MAX   400000u
#define KILLS       40u /* of each kind of call */

static struct fx fx;
static struct peers peers;
static struct emu_random random_state;
static uint64_t seed; /* of the places */
static ptl_handle_eq_t target_eq;
static ptl_handle_me_t target_me;
static ptl_handle_md_t target_md;
static ptl_handle_eq_t live_eq;
static ptl_handle_md_t live_md;
static uint64_t n_live_puts;
static ptl_process_id_t *victim_id; /* shared with the child */
static pid_t led;

/* ---- calls of those who live on ---- */

static struct peers_call must(unsigned who, struct peers_call call, int expected)
{
    int rc = peers_do(&peers, who, &call);

    if (rc != expected)
        fail_msg("process %u: verb %d gives %d instead of %d", who, (int)call.verb, rc, expected);
    return call;
}

/* A call that may be refused for a while. */
static void must_soon(unsigned who, struct peers_call call, int not_yet)
{
    uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;
    struct peers_call again;
    int rc;

    do {
        again = call;
        rc = peers_do(&peers, who, &again);
    } while (rc == not_yet && emu_clock_ns() < end_ns);
    if (rc != PTL_OK)
        fail_msg("process %u: verb %d gives %d for good", who, (int)call.verb, rc);
}

static ptl_md_t md_of(unsigned who, uint64_t at, uint64_t length, ptl_handle_eq_t eq)
{
    return (ptl_md_t){ .start = (void *)(uintptr_t)(peers.lines[who].arena_addr + at),
                       .length = length,
                       .threshold = PTL_MD_THRESH_INF,
                       .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
                       .eq_handle = eq };
}

static void attach_target(void)
{
    struct peers_call call = {
        .verb = DO_ME_ATTACH, .pt = PT, .id = pj_anybody(), .ignore = ~0ull, .position = PTL_INS_AFTER
    };

    call = must(TARGET, call, PTL_OK);
    target_me = call.me;
    call = (struct peers_call){ .verb = DO_MD_ATTACH, .me = target_me, .desc = md_of(TARGET, 0, MD_BYTES, target_eq) };
    call = must(TARGET, call, PTL_OK);
    target_md = call.md;
}

static int open_peers(void **state)
{
    struct peers_call call = { .verb = DO_EQ_ALLOC, .count = 1024 };

    (void)state;
    random_state = seeded(83);
    seed = random_state.state;
    peers_start(&peers, &fx, 2);
    target_eq = must(TARGET, call, PTL_OK).eq;
    live_eq = must(LIVE, call, PTL_OK).eq;
    attach_target();
    call = (struct peers_call){ .verb = DO_MD_BIND, .desc = md_of(LIVE, LIVE_AT, 64, live_eq) };
    live_md = must(LIVE, call, PTL_OK).md;
    return 0;
}

static int close_peers(void **state)
{
    (void)state;
    if (led)
        trace_kill(led);
    led = 0;
    return peers_stop(&peers) == 0 ? 0 : -1;
}

static void expect_live_end(ptl_event_kind_t type)
{
    ptl_event_t event = peers_next_event(&peers, LIVE, live_eq);

    assert_int_equal(event.type, type);
    assert_int_equal(event.ni_fail_type, PTL_NI_OK);
}

static void put_from_live(void)
{
    struct peers_call call = { .verb = DO_PUT,
                               .md = live_md,
                               .ack = PTL_ACK_REQ,
                               .id = peers.lines[TARGET].id,
                               .pt = PT,
                               .bits = LIVE_BITS,
                               .remote_offset = LIVE_AT,
                               .hdr_data = ++n_live_puts };

    must(LIVE, call, PTL_OK);
    expect_live_end(PTL_EVENT_SEND_START);
    expect_live_end(PTL_EVENT_SEND_END);
    expect_live_end(PTL_EVENT_ACK);
}

/*
 * live's put, behind whatever the dead one has left: a START event with its END event, or neither. Returns whether
 * there was something.
 */
static bool take_until_live(void)
{
    unsigned n_started = 0;
    unsigned n_ended = 0;
    ptl_event_t event;

    for (;;) {
        event = peers_next_event(&peers, TARGET, target_eq);
        if (event.match_bits == LIVE_BITS)
            break;
        assert_int_equal(event.match_bits, VICTIM_BITS);
        if (event.type == PTL_EVENT_PUT_START || event.type == PTL_EVENT_GET_START ||
            event.type == PTL_EVENT_GETPUT_START)
            n_started++;
        else
            n_ended++;
    }
    assert_int_equal(event.type, PTL_EVENT_PUT_START);
    assert_int_equal(event.hdr_data, n_live_puts);
    event = peers_next_event(&peers, TARGET, target_eq);
    /* emunic may mend it a moment later than live's put comes. */
    while (event.match_bits == VICTIM_BITS) {
        n_ended++;
        event = peers_next_event(&peers, TARGET, target_eq);
    }
    assert_int_equal(event.match_bits, LIVE_BITS);
    assert_int_equal(event.type, PTL_EVENT_PUT_END);
    assert_int_equal(event.ni_fail_type, PTL_NI_OK);
    while (n_ended < n_started) {
        assert_int_equal(peers_next_event(&peers, TARGET, target_eq).match_bits, VICTIM_BITS);
        n_ended++;
    }
    assert_true(n_started <= 1 && n_ended == n_started);
    return n_started > 0;
}

/* Nothing of the dead one holds what is target's: the queue promises nothing, the descriptor and its entry can go. */
static void expect_target_is_free(bool with_new_entry)
{
    struct peers_call update = {
        .verb = DO_MD_UPDATE, .md = target_md, .desc = md_of(TARGET, 0, MD_BYTES, target_eq), .eq = target_eq
    };

    must_soon(TARGET, update, PTL_MD_NO_UPDATE);
    if (!with_new_entry)
        return;
    must_soon(TARGET, (struct peers_call){ .verb = DO_MD_UNLINK, .md = target_md }, PTL_MD_IN_USE);
    must_soon(TARGET, (struct peers_call){ .verb = DO_ME_UNLINK, .me = target_me }, PTL_ME_IN_USE);
    attach_target();
}

static void expect_live_arrives(void)
{
    uint64_t mixed = emu_random_next(&random_state);

    put_from_live();
    take_until_live();
    expect_target_is_free(mixed % 4 == 0);
    put_from_live();
    assert_false(take_until_live());
}

/* ---- the one that dies ---- */

enum victim_call {
    PUT_8,
    PUT_600,
    PUT_LARGE,
    GET_64,
    GETPUT_8,
    PUT_OF_PIECES,
    INITIATOR_CALLS,
    ME_ATTACH = INITIATOR_CALLS,
    ME_UNLINK,
    MD_ATTACH,
    MD_UNLINK,
    MD_UPDATE,
    EQ_GET,
    VICTIM_CALLS,
    PUT_LAST = VICTIM_CALLS, /* to an entry that it uses up */
    PUT_BUSY,                /* its own interface is locked by somebody else until the target has seen START */
};

static bool is_initiator(enum victim_call call)
{
    return call < INITIATOR_CALLS || call == PUT_LAST || call == PUT_BUSY;
}

static enum victim_call plan;

static void be_an_initiator(ptl_handle_ni_t ni)
{
    static uint8_t data[20000];
    ptl_process_id_t target = peers.lines[TARGET].id;
    ptl_md_t md = { .start = data, .length = 8, .threshold = PTL_MD_THRESH_INF };
    ptl_md_iovec_t pieces[2] = { { data, 100 }, { data + 4096, 1000 } };
    ptl_handle_md_t warm, mdh, other;

    PJ(PtlEQAlloc(ni, 64, NULL, &md.eq_handle));
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &warm));
    md.length = plan == PUT_600 ? 600 : plan == PUT_LARGE ? sizeof(data) : plan == GET_64 ? 64 : 8;
    if (plan == PUT_OF_PIECES) {
        md.start = pieces;
        md.length = 2;
        md.options = PTL_MD_IOVEC;
    }
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &mdh));
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &other));
    PJ(PtlPut(warm, PTL_ACK_REQ, target, PT, 0, WARM_BITS, 0, 0));
    pj_expect(md.eq_handle, PTL_EVENT_SEND_START);
    pj_expect(md.eq_handle, PTL_EVENT_SEND_END);
    pj_expect(md.eq_handle, PTL_EVENT_ACK);
    trace_here();
    if (plan == GET_64)
        PJ(PtlGet(mdh, target, PT, 0, VICTIM_BITS, 0));
    else if (plan == GETPUT_8)
        PJ(PtlGetPut(mdh, other, target, PT, 0, VICTIM_BITS, 0, 0));
    else
        PJ(PtlPut(mdh, PTL_ACK_REQ, target, plan == PUT_LAST ? LAST_PT : PT, 0,
                  plan == PUT_LAST ? LAST_BITS : VICTIM_BITS, 0, 0));
    trace_here();
}

static void be_an_owner(ptl_handle_ni_t ni)
{
    static uint8_t data[64];
    ptl_md_t md = {
        .start = data, .length = 64, .threshold = PTL_MD_THRESH_INF, .options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE
    };
    ptl_handle_me_t me, empty, third;
    ptl_handle_md_t mdh, other;
    ptl_event_t event;

    PJ(PtlEQAlloc(ni, 64, NULL, &md.eq_handle));
    PJ(PtlMEAttach(ni, PT, pj_anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &me));
    PJ(PtlMEAttach(ni, PT, pj_anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_BEFORE, &empty));
    PJ(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
    PJ(PtlPut(mdh, NO_ACK, *victim_id, PT, 0, 0, 0, 0));
    trace_here();
    if (plan == ME_ATTACH)
        PJ(PtlMEInsert(me, pj_anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_BEFORE, &third));
    else if (plan == ME_UNLINK)
        PJ(PtlMEUnlink(empty));
    else if (plan == MD_ATTACH)
        PJ(PtlMDAttach(empty, md, PTL_UNLINK, &other));
    else if (plan == MD_UNLINK)
        PJ(PtlMDUnlink(mdh));
    else if (plan == MD_UPDATE)
        PJ(PtlMDUpdate(mdh, NULL, &md, PTL_EQ_NONE));
    else
        PJ(PtlEQGet(md.eq_handle, &event));
    trace_here();
}

/* A child that stands before its call. */
static pid_t start_victim(enum victim_call call)
{
    ptl_event_t event;
    pid_t pid;

    plan = call;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        ptl_handle_ni_t ni;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fx_forget(&fx);
        fx_set_node(fx.nids[2]);
        ni = pj_open(&fx, VICTIM_PID, victim_id);
        if (is_initiator(call))
            be_an_initiator(ni);
        else
            be_an_owner(ni);
        _exit(0);
    }
    led = pid;
    assert_true(trace_begin(pid));
    if (is_initiator(call)) {
        event = peers_next_event(&peers, TARGET, target_eq);
        assert_int_equal(event.match_bits, WARM_BITS);
        event = peers_next_event(&peers, TARGET, target_eq);
        assert_int_equal(event.type, PTL_EVENT_PUT_END);
    }
    return pid;
}

static void kill_victim(pid_t pid)
{
    led = 0;
    assert_true(trace_kill(pid));
}

static unsigned count_steps(enum victim_call call)
{
    pid_t pid = start_victim(call);
    unsigned n = 0;

    while (trace_step(pid))
        assert_true(++n < STEPS_MAX);
    kill_victim(pid);
    return n;
}

static struct kill_points places_in(enum victim_call call, unsigned n_steps, unsigned usual)
{
    return kill_points_of(seed, (unsigned)call, n_steps, kill_points_wanted(usual));
}

static pid_t lead(enum victim_call call, unsigned steps)
{
    pid_t pid = start_victim(call);

    while (steps-- > 0 && trace_step(pid))
        ;
    return pid;
}

/* ---- an initiator whose own interface is busy ---- */

static struct emu_port locker;
static struct emu_ptl_ni *victim_part;
static struct emu_ptl_ni *target_part;

static pid_t start_busy(void)
{
    pid_t pid = start_victim(PUT_BUSY);

    victim_part = part_map(&locker, part_slot_of(&locker, *victim_id));
    part_hold(&locker, victim_part);
    return pid;
}

static void make_idle(void)
{
    if (victim_part) {
        part_release(&locker, victim_part);
        part_unmap(victim_part);
    }
    victim_part = NULL;
}

/* Up to so many instructions, of which *held with the interface locked; 0: until the target sees something. */
static unsigned lead_busy(pid_t pid, unsigned steps, unsigned *held)
{
    uint64_t before = part_events(target_part, target_eq);
    unsigned n = 0;

    while (n < steps && trace_step(pid)) {
        n++;
        if (victim_part && (*held ? n == *held : part_events(target_part, target_eq) != before)) {
            *held = n;
            make_idle();
        }
    }
    make_idle();
    return n;
}

static bool is_routed(void)
{
    const char *path = getenv("FX_DATAPATH");

    return path && strcmp(path, "routed") == 0;
}

/* ---- tests ---- */

static void test_initiator_that_dies_while_its_own_interface_is_busy_harms_nobody_else(void **state)
{
    struct kill_points places;
    unsigned held = 0;
    unsigned n_steps;
    unsigned steps;
    pid_t pid;

    (void)state;
    if (is_routed())
        return; /* its own interface is of no interest then */
    fx_set_node(fx.nids[3]);
    assert_int_equal(emu_port_attach(&locker, fx.ptag, fx.cookie, 77, 0), 0);
    target_part = part_map(&locker, part_slot_of(&locker, peers.lines[TARGET].id));
    pid = start_busy();
    n_steps = lead_busy(pid, STEPS_MAX, &held);
    kill_victim(pid);
    assert_in_range(n_steps, 1, STEPS_MAX - 1);
    printf("# %u instructions, %u of them busy\n", n_steps, held);
    expect_live_arrives();
    places = places_in(PUT_BUSY, n_steps, 2 * KILLS);
    while (kill_points_next(&places, &steps)) {
        pid = start_busy();
        lead_busy(pid, steps, &held);
        kill_victim(pid);
        expect_live_arrives();
    }
    part_unmap(target_part);
    emu_port_detach(&locker);
}

static void test_initiator_that_dies_anywhere_harms_nobody_else(void **state)
{
    (void)state;
    for (enum victim_call call = 0; call < INITIATOR_CALLS; call++) {
        unsigned n_steps = count_steps(call);
        struct kill_points places;
        unsigned steps;

        expect_live_arrives();
        places = places_in(call, n_steps, KILLS);
        while (kill_points_next(&places, &steps)) {
            kill_victim(lead(call, steps));
            expect_live_arrives();
        }
    }
}

static ptl_handle_me_t attach_last(void)
{
    ptl_md_t md = md_of(TARGET, 0, MD_BYTES, target_eq);
    struct peers_call call = { .verb = DO_ME_ATTACH,
                               .pt = LAST_PT,
                               .id = pj_anybody(),
                               .bits = LAST_BITS,
                               .unlink = PTL_UNLINK,
                               .position = PTL_INS_BEFORE };
    ptl_handle_me_t me = must(TARGET, call, PTL_OK).me;

    md.threshold = 1;
    md.options |= AUTO_UNLINK_EVENT;
    must(TARGET, (struct peers_call){ .verb = DO_MD_ATTACH, .me = me, .desc = md, .md_unlink = PTL_UNLINK }, PTL_OK);
    return me;
}

static void expect_last(ptl_event_kind_t type)
{
    ptl_event_t event = peers_next_event(&peers, TARGET, target_eq);

    assert_int_equal(event.type, type);
    assert_int_equal(event.match_bits, LAST_BITS);
}

static void expect_last_events(void)
{
    expect_last(PTL_EVENT_PUT_START);
    expect_last(PTL_EVENT_PUT_END);
    expect_last(PTL_EVENT_UNLINK);
}

/* All of its events, and it is gone; or none, and it can be taken away. Returns whether it was used. */
static bool is_last_used(ptl_handle_me_t me)
{
    struct peers_call call = { .verb = DO_ME_UNLINK, .me = me };
    uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;
    struct peers_call again;
    int rc;

    do {
        again = call;
        rc = peers_do(&peers, TARGET, &again);
    } while (rc == PTL_ME_IN_USE && emu_clock_ns() < end_ns);
    if (rc == PTL_OK)
        return false;
    assert_int_equal(rc, PTL_ME_INVALID);
    expect_last_events();
    return true;
}

static void test_entry_that_a_dying_initiator_uses_up_goes_with_all_its_events(void **state)
{
    struct kill_points places;
    ptl_handle_me_t me;
    unsigned n_steps;
    unsigned steps;
    unsigned n_used = 0;

    (void)state;
    attach_last();
    n_steps = count_steps(PUT_LAST);
    expect_last_events(); /* that initiator lives: the put arrives, but emunic may take its time */
    places = places_in(PUT_LAST, n_steps, 2 * KILLS);
    while (kill_points_next(&places, &steps)) {
        me = attach_last();
        kill_victim(lead(PUT_LAST, steps));
        n_used += is_last_used(me);
        put_from_live();
        assert_false(take_until_live());
    }
    printf("# used %u times\n", n_used);
    expect_live_arrives();
}

static void take_live_ends(unsigned n)
{
    while (n > 0) {
        ptl_event_t event = peers_next_event(&peers, LIVE, live_eq);

        n -= event.type == PTL_EVENT_SEND_END;
        assert_true(event.type == PTL_EVENT_SEND_START || event.type == PTL_EVENT_SEND_END ||
                    event.type == PTL_EVENT_ACK);
    }
}

/* What may still come of a put to one who dies: its acknowledgement. */
static void forget_live_events(void)
{
    struct peers_call call;
    int rc;

    do {
        call = (struct peers_call){ .verb = DO_EQ_GET, .eq = live_eq };
        rc = peers_do(&peers, LIVE, &call);
    } while (rc == PTL_OK);
    assert_int_equal(rc, PTL_EQ_EMPTY);
}

static struct peers_call put_to_victim(void)
{
    return (struct peers_call){ .verb = DO_PUT, .md = live_md, .ack = PTL_ACK_REQ, .id = *victim_id, .pt = PT };
}

/* live sends while the owner stands somewhere in its call, perhaps with its lock, and is killed then. */
static void test_owner_that_dies_anywhere_stops_nobody(void **state)
{
    (void)state;
    for (enum victim_call call = INITIATOR_CALLS; call < VICTIM_CALLS; call++) {
        unsigned n_steps = count_steps(call);
        struct kill_points places = places_in(call, n_steps, KILLS);
        unsigned steps;

        while (kill_points_next(&places, &steps)) {
            pid_t pid = lead(call, steps);
            struct peers_call put = put_to_victim();

            peers_ask(&peers, LIVE, &put);
            kill_victim(pid);
            assert_int_equal(peers_answer(&peers, LIVE, &put), PTL_OK);
            take_live_ends(1);
            must(LIVE, put_to_victim(), PTL_OK); /* to nobody */
            take_live_ends(1);
            forget_live_events();
            put_from_live();
            take_until_live();
        }
    }
    expect_live_arrives();
}

static void test_target_that_dies_in_a_stream_stops_nobody(void **state)
{
    (void)state;
    for (unsigned i = 0; i < KILLS; i++) {
        pid_t pid = start_victim(EQ_GET); /* stands still, open to puts */
        struct peers_call stream = put_to_victim();
        uint64_t end_ns;

        stream.verb = DO_STREAM;
        stream.count = 200;
        stream.ack = PTL_ACK_REQ;
        peers_ask(&peers, LIVE, &stream);
        end_ns = emu_clock_ns() + emu_random_below(&random_state, 400000);
        while (emu_clock_ns() < end_ns)
            ;
        led = 0;
        assert_true(trace_kill(pid));
        assert_int_equal(peers_answer(&peers, LIVE, &stream), PTL_OK);
        take_live_ends(200);
        forget_live_events();
        put_from_live();
        take_until_live();
    }
    expect_live_arrives();
}

static int start(void **state)
{
    (void)state;
    victim_id = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fx_start(&fx, NULL);
    return victim_id == MAP_FAILED ? -1 : 0;
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_peers, close_peers)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_initiator_that_dies_anywhere_harms_nobody_else),
        TEST(test_initiator_that_dies_while_its_own_interface_is_busy_harms_nobody_else),
        TEST(test_entry_that_a_dying_initiator_uses_up_goes_with_all_its_events),
        TEST(test_owner_that_dies_anywhere_stops_nobody),
        TEST(test_target_that_dies_in_a_stream_stops_nobody),
    };

    if (!trace_is_permitted()) {
        printf("1..0 # SKIP ptrace is not permitted here\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, start, stop);
}
