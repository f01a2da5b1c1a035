/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEND_END stands in the initiator's queue before the target can see that it has the message, so it comes before
 * whatever the message causes: an answer, above all.
 *
 * Nothing here is left to luck. On the direct path an initiator is led through its call instruction by instruction
 * (tests/common/trace.h), and a member of the domain looks into both interfaces after each. Where the initiator's own
 * interface is locked by somebody else, on either path, the target has to see nothing until it is free, and nobody else
 * may wait for that.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "tests/common/portals_part.h"
#include "tests/common/proc.h"
#include "tests/common/trace.h"
#include "tests/property/peers.h"

#define SENDER    0u
#define TARGET    1u
#define LED_PID   250u
#define PT        4u
#define BITS      9u
#define SELF_BITS 10u
#define MD_BYTES  24576u

struct told {
    ptl_process_id_t id;
    ptl_handle_eq_t eq;
};

static struct fx fx;
static struct peers peers;
static struct emu_port member;
static struct emu_ptl_ni *parts[2];
static ptl_handle_eq_t target_eq, sender_eq;
static ptl_handle_md_t sender_md;
static struct told *told; /* by the one that is led; shared with it */
static pid_t led;

/* ---- calls ---- */

static struct peers_call must(unsigned who, struct peers_call call)
{
    int rc = peers_do(&peers, who, &call);

    if (rc != PTL_OK)
        fail_msg("process %u: verb %d gives %d", who, (int)call.verb, rc);
    return call;
}

static void expect(unsigned who, ptl_handle_eq_t eq, ptl_event_kind_t type)
{
    ptl_event_t event = peers_next_event(&peers, who, eq);

    if (event.type != type)
        fail_msg("process %u: event %d instead of %d", who, (int)event.type, (int)type);
    assert_int_equal(event.ni_fail_type, PTL_NI_OK);
}

static ptl_md_t md_of(unsigned who, uint64_t length, ptl_handle_eq_t eq)
{
    return (ptl_md_t){ .start = (void *)(uintptr_t)peers.lines[who].arena_addr,
                       .length = length,
                       .threshold = PTL_MD_THRESH_INF,
                       .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE,
                       .eq_handle = eq };
}

static ptl_handle_md_t attach(unsigned who, ptl_match_bits_t bits, ptl_md_t md, ptl_unlink_t unlink)
{
    struct peers_call call = {
        .verb = DO_ME_ATTACH, .pt = PT, .id = pj_anybody(), .bits = bits, .unlink = unlink, .position = PTL_INS_AFTER
    };

    call = (struct peers_call){ .verb = DO_MD_ATTACH, .me = must(who, call).me, .desc = md, .md_unlink = unlink };
    return must(who, call).md;
}

static struct peers_call a_put(ptl_handle_md_t md, ptl_process_id_t to, ptl_match_bits_t bits)
{
    return (struct peers_call){ .verb = DO_PUT, .md = md, .ack = PTL_ACK_REQ, .id = to, .pt = PT, .bits = bits };
}

static struct peers_call put_of_sender(void)
{
    return a_put(sender_md, peers.lines[TARGET].id, BITS);
}

static void expect_put_of_sender(void)
{
    expect(SENDER, sender_eq, PTL_EVENT_SEND_START);
    expect(SENDER, sender_eq, PTL_EVENT_SEND_END);
    expect(SENDER, sender_eq, PTL_EVENT_ACK);
    expect(TARGET, target_eq, PTL_EVENT_PUT_START);
    expect(TARGET, target_eq, PTL_EVENT_PUT_END);
}

/* ---- surroundings ---- */

static int start(void **state)
{
    struct peers_call call = { .verb = DO_EQ_ALLOC, .count = 1024 };

    (void)state;
    told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fx_start(&fx, NULL);
    peers_start(&peers, &fx, 2);
    sender_eq = must(SENDER, call).eq;
    target_eq = must(TARGET, call).eq;
    attach(TARGET, BITS, md_of(TARGET, MD_BYTES, target_eq), PTL_RETAIN);
    call = (struct peers_call){ .verb = DO_MD_BIND, .desc = md_of(SENDER, 64, sender_eq) };
    sender_md = must(SENDER, call).md;
    fx_set_node(fx.nids[2]);
    if (told == MAP_FAILED || emu_port_attach(&member, fx.ptag, fx.cookie, 77, 0) < 0)
        return -1;
    for (unsigned who = 0; who < 2; who++)
        parts[who] = part_map(&member, part_slot_of(&member, peers.lines[who].id));
    must(SENDER, put_of_sender());
    expect_put_of_sender();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    if (led)
        trace_kill(led);
    part_unmap(parts[SENDER]);
    part_unmap(parts[TARGET]);
    emu_port_detach(&member);
    return peers_stop(&peers) == 0 && fx_stop(&fx) == 0 ? 0 : -1;
}

/* ---- the one that is led ---- */

enum call { PUT_8, PUT_600, PUT_OF_PIECES, PUT_LONG, GETPUT_8, GET_64, CALLS };

static void be_led(enum call call, ptl_handle_ni_t ni)
{
    static uint8_t data[20000];
    ptl_process_id_t target = peers.lines[TARGET].id;
    ptl_md_t md = { .start = data, .length = 8, .threshold = PTL_MD_THRESH_INF };
    ptl_md_iovec_t pieces[2] = { { data, 100 }, { data + 4096, 1000 } };
    ptl_handle_md_t warm, mdh, other;

    PJ(PtlEQAlloc(ni, 64, NULL, &md.eq_handle));
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &warm));
    told->eq = md.eq_handle;
    md.length = call == PUT_600 ? 600 : call == PUT_LONG ? sizeof(data) : call == GET_64 ? 64 : 8;
    if (call == PUT_OF_PIECES) {
        md.start = pieces;
        md.length = 2;
        md.options = PTL_MD_IOVEC;
    }
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &mdh));
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &other));
    PJ(PtlPut(warm, NO_ACK, target, PT, 0, BITS, 0, 0));
    trace_here();
    if (call == GET_64)
        PJ(PtlGet(mdh, target, PT, 0, BITS, 0));
    else if (call == GETPUT_8)
        PJ(PtlGetPut(mdh, other, target, PT, 0, BITS, 0, 0));
    else
        PJ(PtlPut(mdh, PTL_ACK_REQ, target, PT, 0, BITS, 0, 0));
    trace_here();
}

static pid_t start_led(enum call call)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fx_forget(&fx);
        fx_set_node(fx.nids[3]);
        be_led(call, pj_open(&fx, LED_PID, &told->id));
        _exit(0);
    }
    led = pid;
    assert_true(trace_begin(pid));
    expect(TARGET, target_eq, PTL_EVENT_PUT_START);
    expect(TARGET, target_eq, PTL_EVENT_PUT_END);
    return pid;
}

/* ---- tests ---- */

/* A long put's START comes when its data begin to move; its END after SEND_END, as all of the others. */
static void lead_until_target_sees(enum call call)
{
    pid_t pid = start_led(call);
    struct emu_ptl_ni *own = part_map(&member, part_slot_of(&member, told->id));
    uint64_t own_before = part_events(own, told->eq);
    uint64_t seen_before = part_events(parts[TARGET], target_eq);
    uint64_t enough = call == PUT_LONG ? 2 : 1;
    uint64_t n_own = 0;
    bool is_seen = false;

    while (!is_seen && trace_step(pid)) {
        n_own = part_events(own, told->eq) - own_before;
        is_seen = part_events(parts[TARGET], target_eq) - seen_before >= enough;
    }
    part_unmap(own);
    led = 0;
    assert_true(trace_run(pid) && trace_kill(pid));
    assert_true(is_seen);
    printf("# call %d: %u events at home before\n", (int)call, (unsigned)n_own);
    assert_true(n_own >= 2); /* SEND_START, SEND_END */
    (void)peers_next_event(&peers, TARGET, target_eq);
    (void)peers_next_event(&peers, TARGET, target_eq);
}

static void test_send_end_stands_before_the_target_sees_anything(void **state)
{
    (void)state;
    for (enum call call = 0; call < CALLS; call++) {
        if (call != GET_64 || IS_CRAY) /* REF: a get has no SEND events */
            lead_until_target_sees(call);
    }
}

/* The target has seen nothing of the put, is free for others, and sees all of it when the initiator is free again. */
static void test_put_with_its_own_interface_busy_holds_nobody_up(void **state)
{
    struct peers_call put = put_of_sender();
    uint64_t before = part_events(parts[TARGET], target_eq);
    ptl_handle_md_t other;

    (void)state;
    other = must(TARGET, (struct peers_call){ .verb = DO_MD_BIND, .desc = md_of(TARGET, 8, PTL_EQ_NONE) }).md;
    part_hold(&member, parts[SENDER]);
    peers_ask(&peers, SENDER, &put);
    /* START says that it has found the own interface busy. */
    while (part_events(parts[TARGET], target_eq) == before)
        sched_yield();
    must(TARGET, a_put(other, peers.lines[TARGET].id, BITS));
    expect(TARGET, target_eq, PTL_EVENT_PUT_START);
    expect(TARGET, target_eq, PTL_EVENT_PUT_START);
    expect(TARGET, target_eq, PTL_EVENT_PUT_END);
    assert_int_equal(part_events(parts[TARGET], target_eq), before + 3);
    part_release(&member, parts[SENDER]);
    assert_int_equal(peers_answer(&peers, SENDER, &put), PTL_OK);
    expect(TARGET, target_eq, PTL_EVENT_PUT_END);
    expect(SENDER, sender_eq, PTL_EVENT_SEND_START);
    expect(SENDER, sender_eq, PTL_EVENT_SEND_END);
    expect(SENDER, sender_eq, PTL_EVENT_ACK);
    must(TARGET, (struct peers_call){ .verb = DO_MD_UNLINK, .md = other });
    must(SENDER, put_of_sender());
    expect_put_of_sender();
}

/* emunic finds the initiator busy: the same. */
static void expect_routed_order(uint64_t length)
{
    struct peers_call bind = { .verb = DO_MD_BIND, .desc = md_of(SENDER, length, sender_eq) };
    ptl_handle_md_t md = must(SENDER, bind).md;
    struct peers_call unlink = { .verb = DO_MD_UNLINK, .md = md };
    struct peers_call get = { .verb = DO_EQ_GET, .eq = sender_eq };
    uint64_t at_home = part_events(parts[SENDER], sender_eq);
    uint64_t before = part_events(parts[TARGET], target_eq);
    int rc;

    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    must(SENDER, a_put(md, peers.lines[TARGET].id, BITS));
    part_hold(&member, parts[SENDER]);
    assert_int_equal(kill(fx.daemon, SIGCONT), 0);
    /* emunic takes its turns. */
    for (unsigned i = 0; i < 10; i++)
        peers_settle(&peers, TARGET, TARGET);
    expect(TARGET, target_eq, PTL_EVENT_PUT_START);
    assert_int_equal(part_events(parts[SENDER], sender_eq), at_home + 1);
    assert_int_equal(part_events(parts[TARGET], target_eq), before + 1);
    /* The descriptor can be unlinked as soon as emunic has had its turn. */
    peers_ask(&peers, SENDER, &unlink);
    part_release(&member, parts[SENDER]);
    while ((rc = peers_answer(&peers, SENDER, &unlink)) == PTL_MD_IN_USE)
        peers_ask(&peers, SENDER, &unlink);
    assert_int_equal(rc, PTL_OK);
    expect(TARGET, target_eq, PTL_EVENT_PUT_END);
    assert_true(part_events(parts[SENDER], sender_eq) >= at_home + 2);
    expect(SENDER, sender_eq, PTL_EVENT_SEND_START);
    expect(SENDER, sender_eq, PTL_EVENT_SEND_END);
    peers_settle(&peers, SENDER, TARGET); /* an ACK finds no descriptor, or came before */
    while (peers_do(&peers, SENDER, &get) == PTL_OK)
        assert_int_equal(get.event.type, PTL_EVENT_ACK);
}

static void test_routed_put_is_seen_after_its_send_end(void **state)
{
    (void)state;
    fx_set_routed(&fx, true);
    expect_routed_order(8);
    expect_routed_order(20000);
    fx_set_routed(&fx, false);
}

static void expect_order_to_itself(void)
{
    ptl_process_id_t self = peers.lines[SENDER].id;
    ptl_md_t md = md_of(SENDER, 64, sender_eq);
    ptl_event_t event;

    attach(SENDER, SELF_BITS, md, PTL_UNLINK);
    must(SENDER, a_put(sender_md, self, SELF_BITS));
    for (unsigned i = 0; i < 5; i++) {
        event = peers_next_event(&peers, SENDER, sender_eq);
        assert_int_equal(event.ni_fail_type, PTL_NI_OK);
        if (event.type == PTL_EVENT_PUT_END)
            fail_msg("PUT_END before SEND_END");
        if (event.type == PTL_EVENT_SEND_END)
            break;
    }
    while (event.type != PTL_EVENT_PUT_END)
        event = peers_next_event(&peers, SENDER, sender_eq);
    while (event.type != PTL_EVENT_ACK)
        event = peers_next_event(&peers, SENDER, sender_eq);
}

/* A descriptor that sends itself to itself, and is used up by that: its UNLINK is the last of all, and comes once. */
static void expect_own_last_words(void)
{
    static const ptl_event_kind_t kinds[] = { PTL_EVENT_SEND_START, PTL_EVENT_SEND_END, PTL_EVENT_PUT_START,
                                              PTL_EVENT_PUT_END, PTL_EVENT_UNLINK };
    struct peers_call get = { .verb = DO_EQ_GET, .eq = sender_eq };
    unsigned n[PTL_EVENT_UNLINK + 1] = { 0 };
    ptl_md_t md = md_of(SENDER, 64, sender_eq);
    struct peers_call put;
    ptl_event_t event;

    md.threshold = 2;
    md.options |= AUTO_UNLINK_EVENT;
    put = a_put(attach(SENDER, SELF_BITS + 1, md, PTL_UNLINK), peers.lines[SENDER].id, SELF_BITS + 1);
    put.ack = NO_ACK;
    must(SENDER, put);
    for (unsigned i = 0; i < 5; i++) {
        event = peers_next_event(&peers, SENDER, sender_eq);
        n[event.type]++;
    }
    assert_int_equal(event.type, PTL_EVENT_UNLINK);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(n[kinds[i]], 1);
    peers_settle(&peers, SENDER, SENDER);
    assert_int_equal(peers_do(&peers, SENDER, &get), PTL_EQ_EMPTY);
}

static void test_put_to_itself_is_sent_before_it_arrives(void **state)
{
    (void)state;
    expect_order_to_itself();
    expect_own_last_words();
    fx_set_routed(&fx, true);
    expect_order_to_itself();
    expect_own_last_words();
    fx_set_routed(&fx, false);
}

/* Each finds its own interface held by the other one again and again. */
static void test_two_that_send_to_each_other_never_wait_for_each_other(void **state)
{
    ptl_handle_eq_t eqs[2];
    struct peers_call calls[2];

    (void)state;
    for (unsigned who = 0; who < 2; who++) {
        struct peers_call call = { .verb = DO_EQ_ALLOC, .count = 64 };

        eqs[who] = must(who, call).eq;
        attach(who, BITS + 10, md_of(who, MD_BYTES, eqs[who]), PTL_RETAIN);
    }
    for (unsigned who = 0; who < 2; who++) {
        struct peers_call bind = { .verb = DO_MD_BIND, .desc = md_of(who, 8, eqs[who]) };

        calls[who] = a_put(must(who, bind).md, peers.lines[!who].id, BITS + 10);
        calls[who].verb = DO_STREAM;
        calls[who].count = 50000;
    }
    peers_ask(&peers, SENDER, &calls[SENDER]);
    peers_ask(&peers, TARGET, &calls[TARGET]);
    assert_int_equal(peers_answer(&peers, SENDER, &calls[SENDER]), PTL_OK);
    assert_int_equal(peers_answer(&peers, TARGET, &calls[TARGET]), PTL_OK);
    for (unsigned who = 0; who < 2; who++) {
        struct peers_call unlink = { .verb = DO_MD_UNLINK, .md = calls[who].md };

        /* SEND_START, SEND_END, ACK, PUT_START, PUT_END of each. */
        assert_int_equal(part_events(parts[who], eqs[who]), 5 * 50000);
        must(who, unlink);
    }
    must(SENDER, put_of_sender());
    expect_put_of_sender();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_send_end_stands_before_the_target_sees_anything),
        cmocka_unit_test(test_put_with_its_own_interface_busy_holds_nobody_up),
        cmocka_unit_test(test_routed_put_is_seen_after_its_send_end),
        cmocka_unit_test(test_put_to_itself_is_sent_before_it_arrives),
        cmocka_unit_test(test_two_that_send_to_each_other_never_wait_for_each_other),
    };

    if (!trace_is_permitted()) {
        printf("1..0 # SKIP ptrace is not permitted here\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, start, stop);
}
