/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A producer that dies inside a post, at a chosen instruction.
 *
 * A child process posts to `target`; the test leads it with ptrace (tests/common/trace.h) and kills it where it hurts:
 * between the reservation of a place in target's queue and the store of the entry, inside the engine but before the
 * reservation, in the middle of a copy, and at seeded places all over the post. What has to hold afterwards: target's
 * queue goes on, a place that stays empty is reported as an error event ("peer gone"), events of other producers are
 * all there and in order, and deregistration, destruction of the queue and new traffic come to an end. `live` is the
 * other producer.
 *
 * Places are recognised from outside: the tail of target's queue, the child's `inside` mark, target's memory. For that
 * the program is linked with the library's archive, which hides nothing.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libugni/src/ugni.h"
#include "tests/common/gni.h"
#include "tests/common/kill_points.h"
#include "tests/common/seed.h"
#include "tests/common/trace.h"
#include "tests/integration/children.h"

#define STATUS_PEER_GONE 2u          /* gni_cq_get_status() as gni_pub.h documents it */
#define DEAD_EVENT       0x0dead000u /* remote event of the post that is cut off */
#define WARM_EVENT       0x0a000001u
#define COPY_BYTES       40000u /* child's and live's parts of a side's memory */
#define AMO_OFFSET       40960u
#define WARM_OFFSET      45056u
#define LIVE_OFFSET      49152u
#define OLD_BYTE         0x11
#define NEW_BYTE         0xdd
#define STEPS_MAX        200000u
#define KILLS            25u /* of each kind of post */
#define KILLS_MAX        400u
#define PATIENCE_MS      20000

static struct gx_side target; /* node 1: its queue is the one under test */
static struct gx_side live;   /* node 2 */
static uint32_t live_event;   /* remote event of live's last put */
static pid_t led[2];          /* children that are led, for the end of a test that failed */

/* What the next child posts. */
static struct {
    gni_post_type_t type;
    uint64_t length;
    uint16_t cq_mode;
    unsigned slot;
} plan;

static bool is_cma(void)
{
    const char *memory = getenv("EMUNIC_MEMORY");

    return memory && strcmp(memory, "cma") == 0;
}

static bool is_routed(void)
{
    const char *path = getenv("FX_DATAPATH");

    return path && strcmp(path, "routed") == 0;
}

/* ---- the child ---- */

static gni_return_t post_on(gni_ep_handle_t ep, gni_post_descriptor_t *d)
{
    if (d->type == GNI_POST_RDMA_PUT || d->type == GNI_POST_RDMA_GET)
        return GNI_PostRdma(ep, d);
    return d->type == GNI_POST_CQWRITE ? GNI_PostCqWrite(ep, d) : GNI_PostFma(ep, d);
}

static gni_post_descriptor_t planned_post(const struct gx_side *me)
{
    bool is_amo = plan.type == GNI_POST_AMO;
    gni_post_descriptor_t d = gx_put(me, &target, is_amo ? AMO_OFFSET : 0, plan.length, plan.cq_mode);

    d.type = plan.type;
    if (is_amo) {
        d.amo_cmd = GNI_FMA_ATOMIC_FADD;
        d.first_operand = 1;
    }
    d.sync_flag_addr = d.remote_addr + COPY_BYTES - 8;
    d.sync_flag_value = 1;
    d.cqwrite_value = DEAD_EVENT;
    return d;
}

/* Everything that only the first post does is behind it when it is led. */
static void be_a_producer(void)
{
    gni_post_descriptor_t *done;
    gni_post_descriptor_t d;
    struct gx_side me;

    gx_open(&me, &fx, 0, 100 + plan.slot, 0);
    FX_CHECK(GNI_EpCreate(me.nic, me.src_cq, &me.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(me.ep, target.nic_addr, target.inst_id) == GNI_RC_SUCCESS);
    memset(me.mem, NEW_BYTE, GX_BYTES);
    FX_CHECK(GNI_EpSetEventData(me.ep, 1, WARM_EVENT) == GNI_RC_SUCCESS);
    d = gx_put(&me, &target, WARM_OFFSET, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    FX_CHECK(post_on(me.ep, &d) == GNI_RC_SUCCESS);
    FX_CHECK(gx_complete(me.src_cq, &done) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpSetEventData(me.ep, 2, DEAD_EVENT) == GNI_RC_SUCCESS);
    d = planned_post(&me);
    shared[plan.slot] = (uint64_t)(uintptr_t)&gnii_nic_find(me.nic)->port.segment->inside;
    trace_here();
    FX_CHECK(post_on(me.ep, &d) == GNI_RC_SUCCESS);
    trace_here();
}

/* ---- what the parent sees ---- */

static struct emu_cq_shm *target_queue(void)
{
    return gnii_cq_find(target.dst_cq)->consumer.shm;
}

static uint64_t places_reserved(void)
{
    return atomic_load(&target_queue()->tail);
}

/* Has the newest place got its entry? */
static bool newest_is_published(void)
{
    const struct emu_cq_consumer *cq = &gnii_cq_find(target.dst_cq)->consumer;
    uint64_t place = places_reserved() - 1;
    uint64_t entry = atomic_load(&cq->shm->entries[place & (cq->ring_entries - 1)]);

    return ((entry & EMU_EVENT_LAP) != 0) == ((place & cq->ring_entries) == 0);
}

static bool is_inside(pid_t pid)
{
    return (trace_peek(pid, shared[led[0] == pid ? 0 : 1]) & 1) != 0;
}

static gni_return_t next_event(gni_cq_entry_t *entry_out)
{
    return gx_next(target.dst_cq, entry_out);
}

static void expect_event(uint32_t remote_event)
{
    gni_cq_entry_t entry = 0;

    assert_int_equal(next_event(&entry), GNI_RC_SUCCESS);
    assert_int_equal(gni_cq_get_rem_inst_id(entry), remote_event);
}

static void expect_gap(void)
{
    gni_cq_entry_t entry = 0;

    assert_int_equal(next_event(&entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_STATUS(entry), STATUS_PEER_GONE);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_POST);
}

static void expect_nothing(void)
{
    gni_cq_entry_t entry;

    assert_int_equal(GNI_CqGetEvent(target.dst_cq, &entry), GNI_RC_NOT_DONE);
}

/* A put of the other producer, whole, with an event of its own at target. */
static void put_from_live(void)
{
    gni_post_descriptor_t *done;
    gni_post_descriptor_t d =
        gx_put(&live, &target, LIVE_OFFSET, 64, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

    memset(live.mem + LIVE_OFFSET, (int)(++live_event & 0xff), 64);
    assert_int_equal(GNI_EpSetEventData(live.ep, 3, live_event), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(live.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(live.src_cq, &done), GNI_RC_SUCCESS);
    assert_memory_equal(target.mem + LIVE_OFFSET, live.mem + LIVE_OFFSET, 64);
}

/* Moves the queue on, so that places of both laps get their turn. */
static void roll_queue(unsigned n_events)
{
    while (n_events-- > 0) {
        put_from_live();
        expect_event(live_event);
    }
}

/* A child that stands before its post; its first event has been taken. */
static pid_t start_producer(gni_post_type_t type, uint64_t length)
{
    unsigned slot = led[0] != 0;
    pid_t pid;

    plan.type = type;
    plan.length = length;
    plan.cq_mode = GNI_CQMODE_GLOBAL_EVENT | (type == GNI_POST_CQWRITE ? 0 : GNI_CQMODE_REMOTE_EVENT);
    plan.slot = slot;
    memset(target.mem, OLD_BYTE, COPY_BYTES);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(fx.admin.fd);
        be_a_producer();
        _exit(0);
    }
    led[slot] = pid;
    assert_true(trace_begin(pid));
    expect_event(WARM_EVENT);
    return pid;
}

static void forget(pid_t pid)
{
    led[led[0] == pid ? 0 : 1] = 0;
}

static void kill_producer(pid_t pid)
{
    forget(pid);
    assert_true(trace_kill(pid));
}

static void step_into_the_gap(pid_t pid)
{
    uint64_t tail = places_reserved();
    unsigned steps = 0;

    while (places_reserved() == tail) {
        assert_true(trace_step(pid));
        assert_true(++steps < STEPS_MAX);
    }
}

/* Memory can be given back and used anew, and events still come. */
static void expect_memory_works(void)
{
    assert_int_equal(GNI_MemDeregister(target.nic, &target.mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(target.nic, (uint64_t)(uintptr_t)target.mem, GX_BYTES, target.dst_cq,
                                     GNI_MEM_READWRITE, (uint32_t)-1, &target.mem_hndl),
                     GNI_RC_SUCCESS);
    put_from_live();
    expect_event(live_event);
    expect_nothing();
}

static void expect_queue_can_be_replaced(void)
{
    assert_int_equal(GNI_MemDeregister(target.nic, &target.mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(target.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(target.nic, 128, 0, GNI_CQ_BLOCKING, NULL, NULL, &target.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(target.nic, (uint64_t)(uintptr_t)target.mem, GX_BYTES, target.dst_cq,
                                     GNI_MEM_READWRITE, (uint32_t)-1, &target.mem_hndl),
                     GNI_RC_SUCCESS);
    put_from_live();
    expect_event(live_event);
    expect_nothing();
}

static int open_sides(void **state)
{
    (void)state;
    gx_open(&target, &fx, 1, 11, 0);
    gx_open(&live, &fx, 2, 12, 0);
    if (GNI_EpCreate(live.nic, live.src_cq, &live.ep) != GNI_RC_SUCCESS)
        return -1;
    return GNI_EpBind(live.ep, target.nic_addr, target.inst_id) == GNI_RC_SUCCESS ? 0 : -1;
}

static int close_sides(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        if (led[i] != 0)
            trace_kill(led[i]);
        led[i] = 0;
    }
    gx_close(&target);
    gx_close(&live);
    return 0;
}

/* ---- gaps ---- */

/* Kills a child `n_steps` after its reservation. False: by then the event was out. */
static bool kill_in_gap(unsigned n_steps)
{
    pid_t pid = start_producer(GNI_POST_FMA_PUT, 8);
    bool is_gap;

    step_into_the_gap(pid);
    for (unsigned i = 0; i < n_steps; i++)
        assert_true(trace_step(pid));
    is_gap = !newest_is_published();
    for (unsigned i = 0; i < 3; i++)
        put_from_live();
    if (is_gap)
        expect_nothing(); /* theirs are behind a place that is still empty */
    kill_producer(pid);
    for (unsigned i = 0; i < 2; i++)
        put_from_live();
    if (is_gap)
        expect_gap();
    else
        expect_event(DEAD_EVENT);
    for (uint32_t event = live_event - 4; event <= live_event; event++)
        expect_event(event);
    expect_nothing();
    return is_gap;
}

static void test_gap_of_a_dead_producer_becomes_an_error_event(void **state)
{
    unsigned n_steps = 0;

    (void)state;
    while (kill_in_gap(n_steps)) {
        expect_memory_works();
        roll_queue(171); /* thrice that is one lap */
        n_steps++;
        assert_true(n_steps < 200);
    }
    assert_true(n_steps > 0);
    expect_queue_can_be_replaced();
}

/* A consumer that sleeps in front of the gap. */
static void test_filled_gap_wakes_a_sleeper(void **state)
{
    pid_t pid = start_producer(GNI_POST_FMA_PUT, 8);
    gni_cq_entry_t entry = 0;
    pid_t killer;

    (void)state;
    step_into_the_gap(pid);
    put_from_live();
    assert_int_equal(GNI_CqWaitEvent(target.dst_cq, 1, &entry), GNI_RC_TIMEOUT);
    killer = fork();
    assert_true(killer >= 0);
    if (killer == 0) {
        while (atomic_load(&target_queue()->sleepers) == 0)
            sched_yield();
        kill(pid, SIGKILL);
        _exit(0);
    }
    assert_int_equal(GNI_CqWaitEvent(target.dst_cq, 10000, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_STATUS(entry), STATUS_PEER_GONE);
    assert_int_equal(GNI_CqWaitEvent(target.dst_cq, 10000, &entry), GNI_RC_SUCCESS);
    assert_int_equal(gni_cq_get_rem_inst_id(entry), live_event);
    assert_int_equal(end_of(killer), 0);
    kill_producer(pid);
}

/* Kills a child `n_steps` after its reservation, or where its post is over. Returns how many steps it took. */
static unsigned kill_beside_armed_queue(unsigned n_steps, gni_comp_chan_handle_t chan, int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    pid_t pid = start_producer(GNI_POST_FMA_PUT, 8);
    gni_cq_handle_t cq = NULL;
    gni_cq_entry_t entry = 0;
    unsigned steps = 0;
    gni_return_t rc;

    assert_int_equal(GNI_CqArmCompChan(&target.dst_cq, 1), GNI_RC_SUCCESS);
    step_into_the_gap(pid);
    while (steps < n_steps && trace_step(pid))
        steps++;
    kill_producer(pid);
    do { /* who looks twice to be sure may tell twice */
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        rc = GNI_CompChanGetEvent(chan, &cq);
    } while (rc == GNI_RC_NOT_DONE);
    assert_int_equal(rc, GNI_RC_SUCCESS);
    assert_ptr_equal(cq, target.dst_cq);
    rc = GNI_CqGetEvent(cq, &entry);
    assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR);
    expect_nothing();
    return steps;
}

/* At each instruction, or at some of each part where there are many: those of sanitizers. */
static void test_producer_that_dies_anywhere_wakes_whoever_sleeps_in_poll(void **state)
{
    uint64_t seed = seeded(72).state;
    struct kill_points places;
    gni_comp_chan_handle_t chan;
    unsigned n_steps;
    unsigned steps;
    int fd;

    (void)state;
    assert_int_equal(GNI_CompChanCreate(target.nic, &chan), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CompChanFd(chan, &fd), GNI_RC_SUCCESS);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(GNI_CqAttachCompChan(target.dst_cq, chan), GNI_RC_SUCCESS);
    n_steps = kill_beside_armed_queue(STEPS_MAX, chan, fd);
    assert_true(n_steps > 50 && n_steps < STEPS_MAX); /* to the doorbell and beyond */
    places = kill_points_of(seed, 0, n_steps + 1, kill_points_wanted(KILLS_MAX));
    while (kill_points_next(&places, &steps))
        kill_beside_armed_queue(steps, chan, fd);
    assert_int_equal(GNI_CompChanDestroy(chan), GNI_RC_SUCCESS);
}

static void test_gaps_of_two_dead_producers_are_both_filled(void **state)
{
    pid_t pids[2];

    (void)state;
    for (unsigned first_dead = 0; first_dead < 2; first_dead++) {
        for (unsigned i = 0; i < 2; i++)
            pids[i] = start_producer(GNI_POST_FMA_PUT, 8);
        for (unsigned i = 0; i < 2; i++) {
            step_into_the_gap(pids[i]);
            put_from_live();
        }
        kill_producer(pids[first_dead]);
        put_from_live();
        expect_nothing(); /* the other one may still fill its place; nobody can tell which is whose */
        kill_producer(pids[!first_dead]);
        expect_gap();
        expect_event(live_event - 2);
        expect_gap();
        expect_event(live_event - 1);
        expect_event(live_event);
        expect_nothing();
        roll_queue(300);
    }
}

/* The other one is slow, not dead: its event must come, and not as an error. */
static void test_slow_producer_beside_a_dead_one_keeps_its_event(void **state)
{
    pid_t slow = start_producer(GNI_POST_FMA_PUT, 8);
    pid_t dead = start_producer(GNI_POST_FMA_PUT, 8);

    (void)state;
    step_into_the_gap(slow);
    step_into_the_gap(dead);
    kill_producer(dead);
    put_from_live();
    expect_nothing();
    assert_true(trace_run(slow));
    expect_event(DEAD_EVENT);
    expect_gap();
    expect_event(live_event);
    expect_nothing();
    kill_producer(slow);
}

/*
 * The queue is full behind the gap: what fits is there, what does not is reported as an overrun, then all is as before.
 */
static void test_full_queue_behind_a_gap_drains(void **state)
{
    pid_t pid = start_producer(GNI_POST_FMA_PUT, 8);
    uint32_t capacity = gnii_cq_find(target.dst_cq)->capacity;
    gni_cq_entry_t entry = 0;
    uint32_t first;

    (void)state;
    step_into_the_gap(pid);
    first = live_event + 1;
    for (uint32_t i = 0; i < capacity + 5; i++)
        put_from_live();
    expect_nothing();
    kill_producer(pid);
    expect_gap();
    for (uint32_t i = 0; i < capacity - 1; i++)
        expect_event(first + i);
    for (uint32_t i = capacity - 1; i < capacity + 5; i++)
        assert_int_equal(next_event(&entry), GNI_RC_ERROR_RESOURCE);
    expect_nothing();
    roll_queue(capacity + 7);
    expect_memory_works();
}

/* ---- elsewhere in the post ---- */

static void test_death_before_the_reservation_leaves_no_event(void **state)
{
    (void)state;
    for (unsigned more = 0; more < 60; more += 20) {
        pid_t pid = start_producer(GNI_POST_FMA_PUT, 8);
        uint64_t tail = places_reserved();
        unsigned steps = 0;

        while (!is_inside(pid)) {
            assert_true(trace_step(pid));
            assert_true(++steps < STEPS_MAX);
        }
        for (unsigned i = 0; i < more && places_reserved() == tail; i++)
            assert_true(trace_step(pid));
        assert_true(is_inside(pid));
        assert_int_equal(places_reserved(), tail);
        put_from_live();
        expect_event(live_event);
        kill_producer(pid);
        expect_memory_works();
    }
    expect_queue_can_be_replaced();
}

static void test_death_in_the_middle_of_a_copy_leaves_no_event(void **state)
{
    pid_t pid;
    unsigned steps = 0;

    (void)state;
    if (is_cma()) {
        printf("# SKIP the kernel copies: there is no instruction in the middle\n");
        return;
    }
    pid = start_producer(GNI_POST_RDMA_PUT, COPY_BYTES);
    while (!memchr(target.mem, NEW_BYTE, COPY_BYTES)) {
        assert_true(trace_step(pid));
        assert_true(++steps < STEPS_MAX);
    }
    for (unsigned i = 0; i < 10; i++)
        assert_true(trace_step(pid));
    assert_non_null(memchr(target.mem, OLD_BYTE, COPY_BYTES));
    kill_producer(pid);
    expect_memory_works();
    memset(target.mem, OLD_BYTE, COPY_BYTES);
    expect_queue_can_be_replaced();
    assert_null(memchr(target.mem, NEW_BYTE, COPY_BYTES));
}

static unsigned count_steps(gni_post_type_t type, uint64_t length)
{
    pid_t pid = start_producer(type, length);
    unsigned steps = 0;

    while (trace_step(pid))
        assert_true(++steps < STEPS_MAX);
    expect_event(DEAD_EVENT); /* on the routed path emunic does it a little later than the post returns */
    kill_producer(pid);
    put_from_live();
    expect_event(live_event);
    return steps;
}

/* At most one event of the dead one comes before live's. */
static void expect_at_most_one_event_before_live(void)
{
    gni_cq_entry_t entry = 0;
    gni_return_t rc = next_event(&entry);

    if (rc == GNI_RC_TRANSACTION_ERROR) {
        assert_int_equal(GNI_CQ_GET_STATUS(entry), STATUS_PEER_GONE);
        rc = next_event(&entry);
    } else if (rc == GNI_RC_SUCCESS && gni_cq_get_rem_inst_id(entry) == DEAD_EVENT) {
        rc = next_event(&entry);
    }
    assert_int_equal(rc, GNI_RC_SUCCESS);
    assert_int_equal(gni_cq_get_rem_inst_id(entry), live_event);
}

static void test_death_anywhere_in_a_post_harms_nobody_else(void **state)
{
    static const struct {
        gni_post_type_t type;
        uint64_t length;
    } posts[] = {
        { GNI_POST_FMA_PUT, 8 },
        { GNI_POST_FMA_PUT, 600 },
        { GNI_POST_FMA_GET, 64 },
        { GNI_POST_AMO, 8 },
        { GNI_POST_FMA_PUT_W_SYNCFLAG, 48 },
        { GNI_POST_RDMA_PUT, 1024 },
        { GNI_POST_RDMA_GET, 1200 },
        { GNI_POST_CQWRITE, 0 },
    };
    enum { N_POSTS = sizeof(posts) / sizeof(posts[0]) };
    uint64_t seed = seeded(71).state;
    unsigned n_kills = 0;

    (void)state;
    for (unsigned i = 0; i < N_POSTS; i++) {
        unsigned n_steps = count_steps(posts[i].type, posts[i].length);
        struct kill_points places = kill_points_of(seed, i, n_steps, kill_points_wanted(KILLS));
        unsigned steps;

        while (kill_points_next(&places, &steps)) {
            pid_t pid = start_producer(posts[i].type, posts[i].length);

            while (steps-- > 0 && trace_step(pid))
                ;
            kill_producer(pid);
            put_from_live();
            expect_at_most_one_event_before_live();
            if (n_kills++ % 8 == 7)
                expect_queue_can_be_replaced();
            else
                expect_memory_works();
        }
    }
}

/* ---- the target takes away what the stopped one uses ---- */

static _Atomic bool has_returned;
static bool returned_early;
static bool is_queue_taken; /* or memory */

/*
 * Kills the child once the target's request has reached emunic, which shows in the domain table, and emunic had many
 * turns to answer it.
 */
static void *kill_when_taken_away(void *arg)
{
    struct gnii_nic *nic = gnii_nic_find(target.nic);
    const struct emu_table_md *mds =
        emu_table_mds(nic->port.table, emu_table_node_index(nic->port.table, nic->port.nid));
    const struct emu_table_md *md = &mds[target.mem_hndl.qword1 >> GNII_HNDL_MDH_SHIFT];

    while (is_queue_taken ? *(volatile const uint32_t *)&md->cq != EMU_CQ_NONE : atomic_load(&md->state) != 0)
        sched_yield();
    for (unsigned i = 0; i < 200; i++)
        fx_count_fds(&fx);
    returned_early = atomic_load(&has_returned);
    kill(*(pid_t *)arg, SIGKILL);
    return NULL;
}

static void take_away_under_a_stopped_producer(bool is_queue, void (*step)(pid_t pid))
{
    pid_t pid = start_producer(GNI_POST_FMA_PUT, 8);
    pthread_t killer;

    step(pid);
    is_queue_taken = is_queue;
    atomic_store(&has_returned, false);
    assert_int_equal(pthread_create(&killer, NULL, kill_when_taken_away, &pid), 0);
    if (is_queue)
        assert_int_equal(GNI_CqDestroy(target.dst_cq), GNI_RC_SUCCESS);
    else
        assert_int_equal(GNI_MemDeregister(target.nic, &target.mem_hndl), GNI_RC_SUCCESS);
    atomic_store(&has_returned, true);
    pthread_join(killer, NULL);
    kill_producer(pid);
    assert_false(returned_early); /* while somebody was inside */
    if (is_queue) {
        assert_int_equal(GNI_MemDeregister(target.nic, &target.mem_hndl), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqCreate(target.nic, 128, 0, GNI_CQ_BLOCKING, NULL, NULL, &target.dst_cq), GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_MemRegister(target.nic, (uint64_t)(uintptr_t)target.mem, GX_BYTES, target.dst_cq,
                                     GNI_MEM_READWRITE, (uint32_t)-1, &target.mem_hndl),
                     GNI_RC_SUCCESS);
}

static void step_inside(pid_t pid)
{
    unsigned steps = 0;

    while (!is_inside(pid)) {
        assert_true(trace_step(pid));
        assert_true(++steps < STEPS_MAX);
    }
}

static void test_deregistration_waits_for_who_is_inside_until_he_dies(void **state)
{
    (void)state;
    take_away_under_a_stopped_producer(false, step_inside);
    put_from_live();
    expect_event(live_event);
    expect_nothing();
    take_away_under_a_stopped_producer(false, step_into_the_gap);
    put_from_live();
    expect_gap();
    expect_event(live_event);
    expect_nothing();
}

/* The next queue gets the old one's pages and finds nothing of the dead one in it. */
static void test_queue_can_be_destroyed_with_a_gap_in_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        take_away_under_a_stopped_producer(true, i % 2 ? step_inside : step_into_the_gap);
        expect_nothing();
        put_from_live();
        expect_event(live_event);
        expect_nothing();
    }
}

static int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return children_init();
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

#define sides_test(name) cmocka_unit_test_setup_teardown(name, open_sides, close_sides)

int main(void)
{
    /* On the routed path a member reserves nothing itself: it can only die before or after its command. */
    const struct CMUnitTest routed_tests[] = {
        sides_test(test_death_anywhere_in_a_post_harms_nobody_else),
    };
    const struct CMUnitTest tests[] = {
        sides_test(test_gap_of_a_dead_producer_becomes_an_error_event),
        sides_test(test_filled_gap_wakes_a_sleeper),
        sides_test(test_producer_that_dies_anywhere_wakes_whoever_sleeps_in_poll),
        sides_test(test_gaps_of_two_dead_producers_are_both_filled),
        sides_test(test_slow_producer_beside_a_dead_one_keeps_its_event),
        sides_test(test_full_queue_behind_a_gap_drains),
        sides_test(test_death_before_the_reservation_leaves_no_event),
        sides_test(test_death_in_the_middle_of_a_copy_leaves_no_event),
        sides_test(test_death_anywhere_in_a_post_harms_nobody_else),
        sides_test(test_deregistration_waits_for_who_is_inside_until_he_dies),
        sides_test(test_queue_can_be_destroyed_with_a_gap_in_it),
    };

    if (!trace_is_permitted()) {
        printf("1..0 # SKIP ptrace is not permitted here\n");
        return 0;
    }
    if (is_routed())
        return cmocka_run_group_tests(routed_tests, start, stop);
    return cmocka_run_group_tests(tests, start, stop);
}
