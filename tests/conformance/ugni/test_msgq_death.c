/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared message queues: an instance that dies inside a call, at any instruction of it.
 *
 * Each point is a process of its own, the victim, which joins the queue of node 0 as its second instance, stops, and
 * then makes one call, instruction by instruction under ptrace, until it is killed. What is left, one instance on
 * node 0 and one on node 1, must neither lose nor double a message between them, nor wait for anything. The victim's
 * own message may be lost, but it must not come twice or broken.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/common/gni.h"
#include "tests/common/proc.h"
#include "tests/common/seed.h"

#define PATIENCE_NS  20000000000ull
#define DO_NOT_BLOCK ((uint32_t)-1)
#define CREDITS      8u
#define POOLED       4u
#define STEPS_MAX    1000000u
#define POINTS_MIN   4u
#define POINTS_MAX   60u
#define STEPS_IN_ALL 120000u /* per test, roughly: some microseconds each */
#define INBOX        256u
#define OF_VICTIM    4711u /* number of the message that a victim sends */

#define NEAR_ID   1u /* survivor on the victim's node */
#define FAR_ID    2u
#define VICTIM_ID 3u

static struct fx fx;

/* A survivor, in this process. */
struct inst {
    struct gx_side side;
    gni_msgq_handle_t msgq;
    gni_ep_handle_t ep; /* to the other survivor */
    gni_ep_handle_t to_victim;
    uint32_t got[INBOX]; /* numbers, from the other survivor */
    unsigned n_got;
    unsigned n_of_victim;
};

static struct inst near_one;
static struct inst far_one;

static gni_msgq_attr_t attrs_of(uint32_t n_insts)
{
    return (gni_msgq_attr_t){ .max_msg_sz = GNI_MSGQ_MSG_SZ_MAX,
                              .smsg_q_sz = CREDITS,
                              .rcv_pool_sz = POOLED,
                              .num_msgq_eps = 2,
                              .nloc_insts = n_insts,
                              .rcv_cq_sz = 64 };
}

/* A number, and 100 bytes that follow from it. */
struct body {
    uint32_t number;
    uint8_t bytes[100];
};

static struct body body_of(uint32_t number)
{
    struct body body = { .number = number };

    for (unsigned i = 0; i < sizeof(body.bytes); i++)
        body.bytes[i] = (uint8_t)(number * 31 + i);
    return body;
}

static int receive(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    struct inst *i = cb_data;
    struct body wanted;
    struct body body;

    memcpy(&body, msg, sizeof(body));
    wanted = body_of(body.number);
    assert_memory_equal(&body, &wanted, sizeof(body));
    assert_int_equal(msg_tag, (uint8_t)body.number);
    if (snd_id == VICTIM_ID) {
        assert_int_equal(snd_pe, 0);
        assert_int_equal(body.number, OF_VICTIM);
        i->n_of_victim++;
    } else {
        assert_true(i->n_got < INBOX);
        i->got[i->n_got++] = body.number;
    }
    return 1;
}

static gni_return_t send_number(gni_msgq_handle_t msgq, gni_ep_handle_t ep, uint32_t number)
{
    struct body body = body_of(number);

    return GNI_MsgqSend(msgq, ep, &body, sizeof(body), NULL, 0, number, (uint8_t)number);
}

/* ---- survivors ---- */

static void open_survivor(struct inst *i, uint32_t nid, uint32_t id, uint32_t n_insts)
{
    gni_msgq_attr_t attrs = attrs_of(n_insts);

    memset(i, 0, sizeof(*i));
    gx_open(&i->side, &fx, nid, id, 0);
    assert_int_equal(GNI_MsgqInit(i->side.nic, receive, i, i->side.src_cq, &attrs, &i->msgq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(i->side.nic, i->side.src_cq, &i->ep), GNI_RC_SUCCESS);
}

static int open_survivors(void **state)
{
    (void)state;
    open_survivor(&near_one, 0, NEAR_ID, 2);
    open_survivor(&far_one, 1, FAR_ID, 1);
    assert_int_equal(GNI_EpBind(near_one.ep, 1, FAR_ID), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(far_one.ep, 0, NEAR_ID), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(far_one.side.nic, far_one.side.src_cq, &far_one.to_victim), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(far_one.to_victim, 0, VICTIM_ID), GNI_RC_SUCCESS);
    return 0;
}

static int close_survivors(void **state)
{
    (void)state;
    GNI_EpDestroy(near_one.ep);
    GNI_EpDestroy(far_one.ep);
    GNI_EpDestroy(far_one.to_victim);
    gx_close(&near_one.side);
    gx_close(&far_one.side);
    return 0;
}

static void take_entries(struct inst *i)
{
    gni_cq_entry_t entry;

    while (GNI_CqGetEvent(i->side.src_cq, &entry) != GNI_RC_NOT_DONE)
        assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_MSGQ);
}

static void look(void)
{
    assert_int_not_equal(GNI_MsgqProgress(near_one.msgq, DO_NOT_BLOCK), GNI_RC_INVALID_STATE);
    assert_int_not_equal(GNI_MsgqProgress(far_one.msgq, DO_NOT_BLOCK), GNI_RC_INVALID_STATE);
    take_entries(&near_one);
    take_entries(&far_one);
}

/* From one survivor to the other, in order, nothing else but what was there before. */
static void exchange(struct inst *from, struct inst *to, uint32_t first, uint32_t count, unsigned before)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    for (uint32_t sent = 0; sent < count || to->n_got < before + count;) {
        gni_return_t rc = sent < count ? send_number(from->msgq, from->ep, first + sent) : GNI_RC_NOT_DONE;

        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);
        sent += rc == GNI_RC_SUCCESS;
        look();
        assert_true(emu_clock_ns() < end_ns);
    }
    assert_int_equal(to->n_got, before + count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(to->got[before + i], first + i);
}

static gni_return_t release_patiently(gni_msgq_handle_t msgq, uint32_t pe)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    while ((rc = GNI_MsgqConnRelease(msgq, pe)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        look();
    return rc;
}

/* A new connection, which knows the victim if it is there. */
static void connect_nodes(void)
{
    gni_msgq_ep_attr_t of_near, of_far;
    gni_return_t rc;

    rc = release_patiently(near_one.msgq, 1);
    assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NO_MATCH);
    rc = release_patiently(far_one.msgq, 0);
    assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NO_MATCH);
    assert_int_equal(GNI_MsgqGetConnAttrs(near_one.msgq, 1, &of_near, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(far_one.msgq, 0, &of_far, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(near_one.msgq, 1, &of_far), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(far_one.msgq, 0, &of_near), GNI_RC_SUCCESS);
    near_one.n_got = far_one.n_got = 0;
    near_one.n_of_victim = far_one.n_of_victim = 0;
}

/* ---- victims ---- */

enum call { INIT, SEND, PROGRESS, CONNECT, DISCONNECT };

static int swallow(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    (void)snd_id;
    (void)snd_pe;
    (void)msg;
    (void)msg_tag;
    (void)cb_data;
    return 1;
}

/* Stops before the call and behind it. Does not return. */
static _Noreturn void be_victim(enum call call)
{
    gni_msgq_attr_t attrs = attrs_of(2);
    gni_msgq_handle_t msgq = NULL;
    gni_msgq_ep_attr_t of_far;
    struct gx_side side;
    gni_ep_handle_t ep;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    gx_open(&side, &fx, 0, VICTIM_ID, 0);
    if (call == INIT)
        raise(SIGSTOP);
    FX_CHECK(GNI_MsgqInit(side.nic, swallow, NULL, side.src_cq, &attrs, &msgq) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, 1, FAR_ID) == GNI_RC_SUCCESS);
    raise(SIGSTOP);
    switch (call) {
    case INIT:
        break;
    case SEND:
        send_number(msgq, ep, OF_VICTIM);
        break;
    case PROGRESS:
        GNI_MsgqProgress(msgq, DO_NOT_BLOCK);
        break;
    case CONNECT:
        GNI_MsgqGetConnAttrs(msgq, 1, &of_far, NULL);
        break;
    case DISCONNECT:
        GNI_MsgqConnRelease(msgq, 1);
        break;
    }
    raise(SIGSTOP);
    _exit(0);
}

/* Starts a victim; it stands before its call. */
static pid_t start_victim(enum call call)
{
    pid_t pid;
    int status;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        be_victim(call);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    return pid;
}

/* Lets it go so many instructions. Returns how many it went before it was through. */
static uint32_t step_victim(pid_t pid, uint32_t steps)
{
    int status;

    for (uint32_t n = 0; n < steps; n++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSTOPPED(status));
        if (WSTOPSIG(status) == SIGSTOP)
            return n;
    }
    return steps;
}

static void kill_victim(pid_t pid)
{
    int status;

    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

/* The place in the region is free again: emunic has noticed the last death. */
static bool place_is_free(void *arg)
{
    gni_msgq_attr_t attrs = attrs_of(2);
    gni_msgq_handle_t msgq;
    struct gx_side side;
    bool is_free;

    (void)arg;
    gx_open(&side, &fx, 0, VICTIM_ID, 0);
    is_free = GNI_MsgqInit(side.nic, swallow, NULL, side.src_cq, &attrs, &msgq) == GNI_RC_SUCCESS;
    gx_close(&side);
    return is_free;
}

/*
 * For each of some instructions, spread over the whole call and moved by the seed: `before`, with the victim in place,
 * then its death, then `after`. Long calls get fewer.
 */
static void die_everywhere(enum call call, void (*before)(void), void (*after)(void))
{
    struct emu_random random = seeded(31 + call);
    uint32_t n_points;
    uint32_t total;
    pid_t pid;

    pid = start_victim(call);
    before();
    total = step_victim(pid, STEPS_MAX);
    assert_true(total > 10 && total < STEPS_MAX);
    kill_victim(pid);
    assert_true(eventually(place_is_free, NULL, PATIENCE_NS));
    after();
    n_points = 2 * STEPS_IN_ALL / total;
    n_points = n_points < POINTS_MIN ? POINTS_MIN : n_points > POINTS_MAX ? POINTS_MAX : n_points;
    for (uint32_t point = 0; point < n_points; point++) {
        uint32_t part = total / n_points + 1;
        uint32_t steps = part * point + (uint32_t)emu_random_below(&random, part);

        pid = start_victim(call);
        before();
        step_victim(pid, steps);
        kill_victim(pid);
        after();
        assert_true(eventually(place_is_free, NULL, PATIENCE_NS));
    }
}

/* ---- tests ---- */

static void expect_good_traffic(void)
{
    exchange(&near_one, &far_one, 100, 3 * CREDITS, far_one.n_got);
    exchange(&far_one, &near_one, 200, 3 * CREDITS, near_one.n_got);
    assert_true(far_one.n_of_victim <= 1);
}

static void nothing(void)
{
}

static void connect_and_exchange(void)
{
    connect_nodes();
    expect_good_traffic();
}

static void test_instance_that_dies_while_it_joins(void **state)
{
    (void)state;
    assert_true(eventually(place_is_free, NULL, PATIENCE_NS)); /* somebody was there: the queue is complete */
    die_everywhere(INIT, nothing, connect_and_exchange);
}

static void test_instance_that_dies_while_it_sends(void **state)
{
    (void)state;
    die_everywhere(SEND, connect_nodes, expect_good_traffic);
}

/* The mailbox of node 0 holds messages for both. */
static void fill_mailbox(void)
{
    connect_nodes();
    for (uint32_t i = 0; i < CREDITS; i++) {
        bool is_for_victim = i % 3 == 2;

        assert_int_equal(send_number(far_one.msgq, is_for_victim ? far_one.to_victim : far_one.ep, i), GNI_RC_SUCCESS);
    }
    take_entries(&far_one);
}

static void expect_every_message_once(void)
{
    static const uint32_t numbers[] = { 0, 1, 3, 4, 6, 7 };
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    while (near_one.n_got < 6 && emu_clock_ns() < end_ns)
        look();
    assert_int_equal(near_one.n_got, 6);
    assert_memory_equal(near_one.got, numbers, sizeof(numbers));
    expect_good_traffic();
}

static void test_instance_that_dies_while_it_moves_messages(void **state)
{
    (void)state;
    die_everywhere(PROGRESS, fill_mailbox, expect_every_message_once);
}

static void disconnect(void)
{
    gni_return_t rc = release_patiently(near_one.msgq, 1);

    assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NO_MATCH);
}

static void test_instance_that_dies_while_it_assigns_a_mailbox(void **state)
{
    (void)state;
    die_everywhere(CONNECT, disconnect, connect_and_exchange);
}

static void test_instance_that_dies_while_it_releases_a_connection(void **state)
{
    (void)state;
    die_everywhere(DISCONNECT, connect_and_exchange, connect_and_exchange);
}

static int start_emunic(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static int stop_emunic(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

#define death_test(name) cmocka_unit_test_setup_teardown(name, open_survivors, close_survivors)

int main(void)
{
    const struct CMUnitTest tests[] = {
        death_test(test_instance_that_dies_while_it_joins),
        death_test(test_instance_that_dies_while_it_sends),
        death_test(test_instance_that_dies_while_it_moves_messages),
        death_test(test_instance_that_dies_while_it_assigns_a_mailbox),
        death_test(test_instance_that_dies_while_it_releases_a_connection),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
