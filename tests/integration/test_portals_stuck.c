/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks of Portals interfaces that nobody holds: a member of the domain writes a name into the lock of `target`, or of
 * `sender`, and goes its way. Whoever needs the lock reports it after a while, emunic looks whether the one that is
 * named can hold it, and breaks it if not. What has to hold: each call returns, each message arrives, with its events.
 */
#include "tests/common/portals_part.h"
#include "tests/property/peers.h"

#define TARGET 0u
#define SENDER 1u
#define PT     4u
#define BITS   9u

static struct fx fx;
static struct peers peers;
static struct emu_port hostile;
static struct emu_ptl_ni *parts[2]; /* of target and sender, mapped by the hostile member */
static uint32_t slots[2];           /* of their ports */
static ptl_handle_eq_t target_eq, sender_eq;
static ptl_handle_md_t sender_md;
static uint64_t n_puts;

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

    assert_int_equal(event.type, type);
    assert_int_equal(event.ni_fail_type, PTL_NI_OK);
    assert_true(event.hdr_data == n_puts);
}

static void put(void)
{
    struct peers_call call = { .verb = DO_PUT,
                               .md = sender_md,
                               .ack = PTL_ACK_REQ,
                               .id = peers.lines[TARGET].id,
                               .pt = PT,
                               .bits = BITS,
                               .hdr_data = ++n_puts };

    must(SENDER, call);
    expect(SENDER, sender_eq, PTL_EVENT_SEND_START);
    expect(SENDER, sender_eq, PTL_EVENT_SEND_END);
    expect(SENDER, sender_eq, PTL_EVENT_ACK);
    expect(TARGET, target_eq, PTL_EVENT_PUT_START);
    expect(TARGET, target_eq, PTL_EVENT_PUT_END);
}

/* ---- surroundings ---- */

static ptl_md_t md_of(unsigned who, ptl_handle_eq_t eq)
{
    return (ptl_md_t){ .start = (void *)(uintptr_t)peers.lines[who].arena_addr,
                       .length = 64,
                       .threshold = PTL_MD_THRESH_INF,
                       .options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE,
                       .eq_handle = eq };
}

static int start(void **state)
{
    struct peers_call call = { .verb = DO_EQ_ALLOC, .count = 64 };

    (void)state;
    fx_start(&fx, NULL);
    peers_start(&peers, &fx, 2);
    target_eq = must(TARGET, call).eq;
    sender_eq = must(SENDER, call).eq;
    call = (struct peers_call){
        .verb = DO_ME_ATTACH, .pt = PT, .id = pj_anybody(), .bits = BITS, .position = PTL_INS_AFTER
    };
    call = (struct peers_call){ .verb = DO_MD_ATTACH, .me = must(TARGET, call).me, .desc = md_of(TARGET, target_eq) };
    must(TARGET, call);
    call = (struct peers_call){ .verb = DO_MD_BIND, .desc = md_of(SENDER, sender_eq) };
    sender_md = must(SENDER, call).md;
    fx_set_node(fx.nids[2]);
    if (emu_port_attach(&hostile, fx.ptag, fx.cookie, 77, 0) < 0)
        return -1;
    for (unsigned who = 0; who < 2; who++) {
        slots[who] = part_slot_of(&hostile, peers.lines[who].id);
        parts[who] = part_map(&hostile, slots[who]);
    }
    put();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    part_unmap(parts[TARGET]);
    part_unmap(parts[SENDER]);
    emu_port_detach(&hostile);
    return peers_stop(&peers) == 0 && fx_stop(&fx) == 0 ? 0 : -1;
}

/* ---- tests ---- */

enum { NAMES = 7 };

/* Who is said to hold it. */
static uint64_t bogus(unsigned i)
{
    switch (i) {
    case 0:
        return emu_ptl_holder(EMU_PORTS_MAX - 1, 1); /* a port that never was */
    case 1:
        return emu_ptl_holder(EMU_PORTS_MAX + 7, 1); /* that cannot be */
    case 2:
        return EMU_PTL_HOLDER_EMUNIC;
    case 3:
        return part_name_of(&hostile, hostile.index, 1); /* a port's next owner, or an earlier one */
    case 4:
        return part_name_of(&hostile, hostile.index, 0); /* alive, and outside */
    case 5:
        return part_name_of(&hostile, slots[SENDER], 0);
    default:
        return part_name_of(&hostile, slots[TARGET], 0);
    }
}

static void take_away(unsigned who, unsigned i)
{
    part_lock_as(parts[who], bogus(i));
}

static void test_sender_gets_past_a_lock_that_nobody_holds(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NAMES; i++) {
        take_away(TARGET, i);
        put();
        take_away(SENDER, i);
        put();
        take_away(SENDER, i);
        take_away(TARGET, i);
        put();
    }
}

static void test_owner_gets_past_a_lock_that_nobody_holds(void **state)
{
    struct peers_call attach = { .verb = DO_ME_ATTACH, .pt = PT + 1, .id = pj_anybody(), .position = PTL_INS_AFTER };

    (void)state;
    for (unsigned i = 0; i < NAMES; i++) {
        struct peers_call unlink = { .verb = DO_ME_UNLINK };

        take_away(TARGET, i);
        unlink.me = must(TARGET, attach).me;
        take_away(TARGET, i);
        must(TARGET, unlink);
    }
    put();
}

/* Each waits for a lock that is said to be the other's: both are inside. */
static void test_two_that_wait_for_each_other_get_past(void **state)
{
    struct peers_call attach = { .verb = DO_ME_ATTACH, .pt = PT + 1, .id = pj_anybody(), .position = PTL_INS_AFTER };

    (void)state;
    part_lock_as(parts[TARGET], part_name_of(&hostile, slots[SENDER], 0));
    part_lock_as(parts[SENDER], part_name_of(&hostile, slots[TARGET], 0));
    peers_ask(&peers, TARGET, &attach);
    must(SENDER,
         (struct peers_call){ .verb = DO_ME_ATTACH, .pt = PT + 1, .id = pj_anybody(), .position = PTL_INS_AFTER });
    assert_int_equal(peers_answer(&peers, TARGET, &attach), PTL_OK);
    put();
}

static void test_emunic_gets_past_a_lock_that_nobody_holds(void **state)
{
    (void)state;
    fx_set_routed(&fx, true);
    for (unsigned i = 0; i < NAMES; i++) {
        take_away(TARGET, i);
        put();
        take_away(SENDER, i);
        put();
    }
    fx_set_routed(&fx, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sender_gets_past_a_lock_that_nobody_holds),
        cmocka_unit_test(test_owner_gets_past_a_lock_that_nobody_holds),
        cmocka_unit_test(test_two_that_wait_for_each_other_get_past),
        cmocka_unit_test(test_emunic_gets_past_a_lock_that_nobody_holds),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
