/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process is told when the network does not work: emunic stopped, messages lost, a peer killed, emunic dead. One
 * process on a private emunic, and children of it. Nothing may hang.
 */
#include "tests/common/portals.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "tests/common/fixture.h"

#define PT    15
#define BYTES (1 << 20)

static struct fx fx;
static ptl_handle_eq_t eq, target_eq;
static struct px_entry entry;
static uint8_t *memory, *target;

static void open_interface(void)
{
    int n;

    assert_int_equal(PtlInit(&n), PTL_OK);
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &px_limits, &px_ni), PTL_OK);
    assert_int_equal(PtlGetId(px_ni, &px_self), PTL_OK);
}

static int set_up(void **state)
{
    char text[16];

    (void)state;
    fx_start(&fx, &(struct fx_options){ .n_ranks = 2 });
    fx_set_node(fx.nids[0]);
    snprintf(text, sizeof(text), "%u", fx.ptag);
    setenv("EMUNIC_PTAG", text, 1);
    snprintf(text, sizeof(text), "%u", fx.cookie);
    setenv("EMUNIC_COOKIE", text, 1);
    memory = calloc(1, BYTES);
    target = calloc(1, BYTES);
    open_interface();
    eq = px_eq(64);
    target_eq = px_eq(64);
    entry =
        px_entry(PT, 0, 0, PTL_RETAIN,
                 px_md(target, BYTES, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE,
                       PTL_MD_THRESH_INF, target_eq),
                 PTL_RETAIN);
    return memory && target ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    PtlFini();
    free(memory);
    free(target);
    fx_stop(&fx);
    return 0;
}

static ptl_handle_md_t source(ptl_size_t length, int threshold)
{
    return px_bind(px_md(memory, length, PTL_MD_EVENT_START_DISABLE, threshold, eq), PTL_RETAIN);
}

static void freeze(void)
{
    int status = 0;

    fx_set_routed(&fx, true);
    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    assert_int_equal(waitpid(fx.daemon, &status, WUNTRACED), fx.daemon);
}

static void thaw(void)
{
    assert_int_equal(kill(fx.daemon, SIGCONT), 0);
}

/* Sending is pending, and its event promised, as long as the message has not left. */
static void test_what_has_not_left_is_pending(void **state)
{
    ptl_handle_md_t mdh = source(BYTES, 2), other = px_bind(px_md(NULL, 0, 0, 0, PTL_EQ_NONE), PTL_RETAIN);
    ptl_md_t active = px_md(NULL, 0, 0, 1, PTL_EQ_NONE);

    (void)state;
    freeze();
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_self, PT, 0, 0, 0, 7), PTL_OK); /* does not wait */
    assert_int_equal(PtlMDUnlink(mdh), PTL_MD_IN_USE);
    assert_int_equal(PtlMDUpdate(other, NULL, &active, eq), PTL_MD_NO_UPDATE);
    assert_int_equal(PtlMDUpdate(mdh, NULL, &active, target_eq), PTL_MD_NO_UPDATE);
    px_nothing(eq);
    thaw();
    px_take_kind(eq, PTL_EVENT_SEND_END);
    assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_END).hdr_data == 7);
    assert_int_equal(PtlMDUpdate(other, NULL, &active, eq), PTL_OK);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMDUnlink(other), PTL_OK);
    fx_set_routed(&fx, false);
}

/*
 * A reply, and an acknowledgement, for a descriptor that has gone: the first counts as a drop (D7), the second does not
 * (D8).
 */
static void test_late_answers_are_discarded(void **state)
{
    ptl_sr_value_t before = px_register(PTL_SR_DROP_COUNT);
    ptl_handle_md_t get_md = source(64, 2),
                    put_md = px_bind(px_md(memory, 8, PTL_MD_EVENT_START_DISABLE, 2, eq), PTL_RETAIN);
    int rc;

    (void)state;
    freeze();
    assert_int_equal(PtlGet(get_md, px_self, PT, 0, 0, 0), PTL_OK);
    assert_int_equal(PtlPut(put_md, PTL_ACK_REQ, px_self, PT, 0, 0, 0, 8), PTL_OK);
    rc = PtlMDUnlink(get_md);
    assert_true(rc == PTL_OK || (PX_CRAY && rc == PTL_MD_IN_USE)); /* CRAY: the request itself has not left */
    thaw();
    while (rc == PTL_MD_IN_USE)
        rc = PtlMDUnlink(get_md);
    while (PtlMDUnlink(put_md) == PTL_MD_IN_USE)
        ;
    assert_true(px_take_kind(target_eq, PTL_EVENT_GET_END).mlength == 64);
    assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_END).hdr_data == 8);
    if (!PX_CRAY) {
        while (px_register(PTL_SR_DROP_COUNT) == before)
            ;
        assert_true(px_register(PTL_SR_DROP_COUNT) == before + 1);
    }
    for (ptl_event_t event; PtlEQGet(eq, &event) == PTL_OK;)
        ;
    fx_set_routed(&fx, false);
}

/* The fabric loses everything: told by the END events at home, nothing arrives, nothing is answered. */
static void test_lost_messages_are_told_at_the_end(void **state)
{
    ptl_handle_md_t mdh = source(64, PTL_MD_THRESH_INF);
    ptl_event_t event;

    (void)state;
    fx_add_fault(&fx, "class=any action=drop");
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_self, PT, 0, 0, 0, 0), PTL_OK);
    event = px_take(eq);
    assert_int_equal(event.type, PTL_EVENT_SEND_END);
    assert_int_not_equal(event.ni_fail_type, PTL_NI_OK);
    fx_clear_faults(&fx);
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_self, PT, 0, 0, 0, 9), PTL_OK);
    px_take_kind(eq, PTL_EVENT_SEND_END);
    px_take_kind(eq, PTL_EVENT_ACK);
    assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_END).hdr_data == 9);
    px_nothing(target_eq);
    while (PtlMDUnlink(mdh) == PTL_MD_IN_USE)
        ;
}

/* covers: PtlEQGet: PTL_EQ_DROPPED */
/* The target's event is lost, not the message: acknowledged, and told by the queue's next event. */
static void test_an_injected_overrun_is_told_by_the_next_event(void **state)
{
    ptl_handle_md_t mdh = source(8, PTL_MD_THRESH_INF);
    ptl_event_t event;
    ptl_seq_t before;

    (void)state;
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_self, PT, 0, 0, 0, 1), PTL_OK);
    px_take_kind(eq, PTL_EVENT_SEND_END);
    before = px_take_kind(target_eq, PTL_EVENT_PUT_END).sequence;
    fx_add_fault(&fx, "class=ptl-put action=overrun");
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_self, PT, 0, 0, 0, 2), PTL_OK);
    px_take_kind(eq, PTL_EVENT_SEND_END);
    px_take_kind(eq, PTL_EVENT_ACK);
    px_nothing(target_eq);
    fx_clear_faults(&fx);
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_self, PT, 0, 0, 0, 3), PTL_OK);
    px_take_kind(eq, PTL_EVENT_SEND_END);
    assert_int_equal(PtlEQGet(target_eq, &event), PTL_EQ_DROPPED);
    assert_int_equal(event.type, PTL_EVENT_PUT_END);
    assert_true(event.hdr_data == 3);
    assert_int_equal(event.sequence, before + 2);
    px_nothing(target_eq);
    while (PtlMDUnlink(mdh) == PTL_MD_IN_USE)
        ;
}

/* A peer that was killed: what is sent to it ends at home, by either code; nothing else is disturbed. */
static void test_a_dead_peer_ends_what_is_sent_to_it(void **state)
{
    ptl_handle_md_t mdh = source(BYTES / 2, PTL_MD_THRESH_INF);
    ptl_process_id_t id = { 0, 0 };
    int pipe_fds[2], status;
    pid_t pid;

    (void)state;
    assert_int_equal(pipe(pipe_fds), 0);
    pid = fork();
    if (pid == 0) {
        static uint8_t own[BYTES];
        ptl_md_t md = { .start = own,
                        .length = BYTES,
                        .threshold = PTL_MD_THRESH_INF,
                        .eq_handle = PTL_EQ_NONE,
                        .options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE };
        ptl_handle_any_t ni, me, h;
        int n;

        fx_forget(&fx);
        fx_set_node(fx.nids[1]);
        FX_CHECK(PtlInit(&n) == PTL_OK);
        FX_CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
        FX_CHECK(PtlGetId(ni, &id) == PTL_OK);
        FX_CHECK(PtlMEAttach(ni, PT, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me) == PTL_OK);
        FX_CHECK(PtlMDAttach(me, md, PTL_RETAIN, &h) == PTL_OK);
        FX_CHECK(write(pipe_fds[1], &id, sizeof(id)) == sizeof(id));
        for (;;)
            pause();
    }
    close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &id, sizeof(id)), sizeof(id));
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, id, PT, 0, 0, 0, 0), PTL_OK);
    px_take_kind(eq, PTL_EVENT_SEND_END);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_ACK).initiator.nid, id.nid);
    kill(pid, SIGKILL);
    for (int i = 0; i < 50; i++) {
        ptl_event_t event;

        assert_int_equal(PtlPut(mdh, PX_NO_ACK, id, PT, 0, 0, 0, 0), PTL_OK);
        event = px_take(eq);
        assert_int_equal(event.type, PTL_EVENT_SEND_END);
    }
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_self, PT, 0, 0, 0, 10), PTL_OK);
    px_take_kind(eq, PTL_EVENT_SEND_END);
    px_take_kind(eq, PTL_EVENT_ACK);
    assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_END).hdr_data == 10);
    while (PtlMDUnlink(mdh) == PTL_MD_IN_USE)
        ;
    close(pipe_fds[0]);
}

/* The last: emunic is killed. No call waits for it, and a new interface is refused. */
static void test_without_emunic_no_call_hangs(void **state)
{
    ptl_handle_md_t mdh = source(64, PTL_MD_THRESH_INF);
    ptl_event_t event;
    int which;

    (void)state;
    kill(fx.daemon, SIGKILL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, (ptl_process_id_t){ px_self.nid + 1, 77 }, PT, 0, 0, 0, 0), PTL_OK);
        if (PtlEQPoll(&eq, 1, 2000, &event, &which) == PTL_OK)
            assert_int_equal(event.type, PTL_EVENT_SEND_END);
    }
    assert_int_equal(PtlNIFini(px_ni), PTL_OK);
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &px_ni), PTL_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_has_not_left_is_pending),
        cmocka_unit_test(test_late_answers_are_discarded),
        cmocka_unit_test(test_lost_messages_are_told_at_the_end),
        cmocka_unit_test(test_an_injected_overrun_is_told_by_the_next_event),
        cmocka_unit_test(test_a_dead_peer_ends_what_is_sent_to_it),
        cmocka_unit_test(test_without_emunic_no_call_hangs),
    };

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
