/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts that die, hang or are cut off, each a process of its own over libfabric's tcp; where it is permitted, in
 * network namespaces of their own with a veth pair between them. The test's process is host 0 and drives itself alone.
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/hosts.h"

#define TIMEOUT_NS   2000000000ull
#define LONG_NS      10000000000ull /* so long that silence is not what ends a session first */
#define REGION_BYTES (64u << 20)

static const struct emu_transport_ops *const ops = &emu_transport_ops;

/* What the processes tell each other. */
struct meeting {
    _Atomic uint32_t has_blob[HOSTS_MAX];
    uint8_t blob[HOSTS_MAX][EMU_TRANSPORT_BLOB_MAX];
    uint32_t blob_bytes[HOSTS_MAX];
    struct emu_transport_remote remote[HOSTS_MAX];
    _Atomic uint32_t n_up[HOSTS_MAX];
    _Atomic uint32_t must_hang[HOSTS_MAX];
    _Atomic uint64_t n_messages[HOSTS_MAX]; /* taken from host 0 */
    _Atomic uint64_t n_wrong[HOSTS_MAX];
};

static struct meeting *meeting;
static struct host me;
static struct host *only_me[1] = { &me };
static pid_t pids[HOSTS_MAX];
static uint8_t *memory;
static struct emu_transport_region *region;

/* A child: host `number`, joined with host 0 alone, until it is killed. */
static void run_child(uint32_t number, struct emu_transport_config config, void (*prepare)(void))
{
    static struct host child;
    struct emu_transport_region *own;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prepare)
        prepare();
    if (host_open(&child, number, config) != 0)
        _exit(2);
    memory = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED ||
        ops->region_create(child.t, memory, REGION_BYTES, EMU_TRANSPORT_READ | EMU_TRANSPORT_WRITE, &own) != 0)
        _exit(3);
    ops->region_remote(own, &meeting->remote[number]);
    memcpy(meeting->blob[number], child.blob, child.blob_bytes);
    meeting->blob_bytes[number] = child.blob_bytes;
    atomic_store(&meeting->has_blob[number], 1);
    while (!atomic_load(&meeting->has_blob[0]))
        sched_yield();
    if (ops->join(child.t, 0, meeting->blob[0], meeting->blob_bytes[0]) != 0)
        _exit(4);
    for (;;) {
        ops->progress(child.t);
        atomic_store(&meeting->n_up[number], child.n_up);
        atomic_store(&meeting->n_messages[number], child.n_messages[0]);
        atomic_store(&meeting->n_wrong[number], child.n_wrong);
        while (atomic_load(&meeting->must_hang[number]))
            sched_yield();
        sched_yield();
    }
}

static void start_child(uint32_t number, struct emu_transport_config config, void (*prepare)(void))
{
    atomic_store(&meeting->has_blob[number], 0);
    atomic_store(&meeting->n_up[number], 0);
    pids[number] = fork();
    assert_true(pids[number] >= 0);
    if (pids[number] == 0)
        run_child(number, config, prepare);
}

static void kill_child(uint32_t number)
{
    if (pids[number] == 0)
        return;
    kill(pids[number], SIGKILL);
    waitpid(pids[number], NULL, 0);
    pids[number] = 0;
}

static uint32_t wanted_up;

static bool are_up(void *arg)
{
    const uint32_t *number = arg;

    return me.n_up == wanted_up && atomic_load(&meeting->n_up[*number]) == 1;
}

static void join_child(uint32_t number)
{
    while (!atomic_load(&meeting->has_blob[number])) {
        assert_int_equal(waitpid(pids[number], NULL, WNOHANG), 0);
        ops->progress(me.t); /* it may take long; to the hosts that are up we are not silent */
        sched_yield();
    }
    wanted_up++;
    assert_int_equal(ops->join(me.t, number, meeting->blob[number], meeting->blob_bytes[number]), 0);
    assert_true(drive(only_me, 1, are_up, &number));
}

/* libfabric is loaded in each process after the fork. */
static void open_all(uint32_t n_children, struct emu_transport_config config, struct emu_transport_config of_child,
                     void (*prepare)(void), void (*prepare_child)(void))
{
    memset(meeting, 0, sizeof(*meeting));
    wanted_up = 0;
    for (uint32_t i = 1; i <= n_children; i++)
        start_child(i, of_child, prepare_child);
    if (prepare)
        prepare();
    assert_int_equal(host_open(&me, 0, config), 0);
    memcpy(meeting->blob[0], me.blob, me.blob_bytes);
    meeting->blob_bytes[0] = me.blob_bytes;
    atomic_store(&meeting->has_blob[0], 1);
    memory = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    assert_int_equal(ops->region_create(me.t, memory, REGION_BYTES, 0, &region), 0);
    for (uint32_t i = 1; i <= n_children; i++)
        join_child(i);
}

static int close_everything(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < HOSTS_MAX; i++)
        kill_child(i);
    if (me.t) {
        ops->region_destroy(region);
        host_close(&me);
        munmap(memory, REGION_BYTES);
    }
    return 0;
}

static bool one_is_down(void *arg)
{
    (void)arg;
    return me.n_down == 1;
}

static uint64_t sent[HOSTS_MAX];

static int send_next(uint32_t to, uint32_t length)
{
    uint8_t bytes[EMU_WIRE_MESSAGE_MAX];
    int r;

    message_fill(bytes, length, sent[to]);
    r = ops->send(me.t, to, bytes, length);
    sent[to] += r == 0;
    return r;
}

static bool has_taken_all(void *arg)
{
    const uint32_t *number = arg;

    return atomic_load(&meeting->n_messages[*number]) == sent[*number];
}

/* Host `number` goes on: messages to it arrive. */
static void check_goes_on(uint32_t number)
{
    for (unsigned i = 0; i < 200; i++) {
        while (send_next(number, 100) == EMU_TRANSPORT_FULL)
            ops->progress(me.t);
    }
    assert_true(drive(only_me, 1, has_taken_all, &number));
    assert_int_equal(atomic_load(&meeting->n_wrong[number]), 0);
}

/*
 * Transfers to host 1 under way, then `harm`: it is lost for that cause, each ends with an error, and host 2 goes on.
 */
static void check_loss(struct emu_transport_config config, void (*harm)(void), int cause)
{
    unsigned n = 20;

    memset(sent, 0, sizeof(sent));
    open_all(2, config, config, NULL, NULL);
    for (unsigned i = 0; i < n; i++) {
        if (i % 2)
            assert_int_equal(
                ops->get(me.t, 1, &(struct emu_transport_move){ region, 0, &meeting->remote[1], 0, REGION_BYTES, i }),
                0);
        else
            assert_int_equal(
                ops->put(me.t, 1, &(struct emu_transport_move){ region, 0, &meeting->remote[1], 0, REGION_BYTES, i },
                         "done", 4),
                0);
    }
    while (host_stats(&me, 1).put_bytes + host_stats(&me, 1).get_bytes < 4u << 20)
        ops->progress(me.t);
    harm();
    assert_true(drive(only_me, 1, one_is_down, NULL));
    assert_int_equal(me.n_done, n);
    assert_true(me.last_result < 0);
    assert_int_equal(me.cause[1], cause);
    assert_int_equal(ops->send(me.t, 1, "x", 1), -ENOTCONN);
    check_goes_on(2);
    assert_int_equal(me.n_down, 1);
}

static void kill_first(void)
{
    kill_child(1);
}

static void hang_first(void)
{
    atomic_store(&meeting->must_hang[1], 1);
}

static void test_killed_host_ends_what_goes_to_it_and_nothing_else(void **state)
{
    (void)state;
    check_loss((struct emu_transport_config){ .timeout_ns = LONG_NS }, kill_first, -ECONNREFUSED);
}

static void test_killed_host_ends_transfers_through_messages(void **state)
{
    (void)state;
    check_loss((struct emu_transport_config){ .timeout_ns = LONG_NS, .is_rma_off = true }, kill_first, -ECONNREFUSED);
}

static void test_hanging_host_is_lost_by_its_silence(void **state)
{
    (void)state;
    check_loss((struct emu_transport_config){ .timeout_ns = TIMEOUT_NS }, hang_first, -ETIMEDOUT);
}

static void test_host_that_comes_back_joins_again(void **state)
{
    struct emu_transport_config config = { .timeout_ns = TIMEOUT_NS };
    uint8_t old_blob[EMU_TRANSPORT_BLOB_MAX];
    uint32_t old_bytes;

    (void)state;
    memset(sent, 0, sizeof(sent));
    config.incarnation = 3;
    open_all(2, config, config, NULL, NULL);
    check_goes_on(1);
    old_bytes = meeting->blob_bytes[1];
    memcpy(old_blob, meeting->blob[1], old_bytes);
    kill_child(1);
    assert_true(drive(only_me, 1, one_is_down, NULL));
    memset(sent, 0, sizeof(sent[0]) * 2);
    config.incarnation = 4;
    start_child(1, config, NULL);
    join_child(1);
    check_goes_on(1);
    check_goes_on(2);
    assert_int_equal(
        ops->put(me.t, 1, &(struct emu_transport_move){ region, 0, &meeting->remote[1], 0, REGION_BYTES, 5 }, NULL, 0),
        0);
    while (me.n_done == 0)
        ops->progress(me.t);
    assert_int_equal(me.last_result, 0);
    assert_int_equal(ops->leave(me.t, 1), 0);
    me.n_down = 0;
    assert_true(drive(only_me, 1, one_is_down, NULL));
    assert_int_equal(ops->join(me.t, 1, old_blob, old_bytes), -ESTALE);
}

/* ---- namespaces ---- */

static bool has_namespaces;

static int run(const char *command)
{
    int status = system(command);

    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Each host its own namespace; this process stays in its own, where the child's end of the pair is moved to. */
static void go_to_child_namespace(void)
{
    char command[128];

    if (unshare(CLONE_NEWNET) != 0)
        _exit(5);
    atomic_store(&meeting->has_blob[3], 1); /* here it is */
    while (run("ip link show emt1 >/dev/null 2>&1") != 0)
        sched_yield();
    snprintf(command, sizeof(command), "ip addr add 10.99.7.2/24 dev emt1 && ip link set emt1 up && ip link set lo up");
    if (run(command) != 0)
        _exit(6);
}

static void make_pair(void)
{
    char command[256];

    assert_int_equal(run("ip link set lo up && ip link add emt0 type veth peer name emt1"), 0);
    while (!atomic_load(&meeting->has_blob[3]))
        sched_yield();
    snprintf(command, sizeof(command),
             "ip link set emt1 netns %d && ip addr add 10.99.7.1/24 dev emt0 && ip link set "
             "emt0 up",
             (int)pids[1]);
    assert_int_equal(run(command), 0);
}

static void open_namespaces(uint64_t timeout_ns)
{
    struct emu_transport_config config = { .timeout_ns = timeout_ns, .node = "10.99.7.1" };
    struct emu_transport_config of_child = { .timeout_ns = timeout_ns, .node = "10.99.7.2" };

    memset(sent, 0, sizeof(sent));
    open_all(1, config, of_child, make_pair, go_to_child_namespace);
}

static int close_namespaces(void **state)
{
    close_everything(state);
    run("ip link del emt0 2>/dev/null"); /* it may have gone with the child's end */
    return 0;
}

static void drive_for(uint64_t ns)
{
    uint64_t end_ns = emu_clock_ns() + ns;

    while (emu_clock_ns() < end_ns) {
        ops->progress(me.t);
        sched_yield();
    }
}

static void test_link_that_comes_back_loses_nothing(void **state)
{
    (void)state;
    open_namespaces(5000000000ull);
    check_goes_on(1);
    assert_int_equal(
        ops->put(me.t, 1, &(struct emu_transport_move){ region, 0, &meeting->remote[1], 0, REGION_BYTES, 1 }, NULL, 0),
        0);
    while (host_stats(&me, 1).put_bytes == 0)
        ops->progress(me.t);
    assert_int_equal(run("ip link set emt0 down"), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(send_next(1, 100), 0);
    drive_for(3000000000ull);
    assert_false(has_taken_all(&(uint32_t){ 1 }));
    assert_int_equal(run("ip link set emt0 up"), 0);
    assert_true(drive(only_me, 1, has_taken_all, &(uint32_t){ 1 }));
    while (me.n_done == 0)
        ops->progress(me.t);
    assert_int_equal(me.last_result, 0);
    check_goes_on(1);
    assert_int_equal(me.n_down, 0);
}

static void test_link_that_stays_cut_ends_what_is_under_way(void **state)
{
    (void)state;
    open_namespaces(TIMEOUT_NS);
    check_goes_on(1);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(
            ops->get(me.t, 1, &(struct emu_transport_move){ region, 0, &meeting->remote[1], 0, REGION_BYTES, i }), 0);
    assert_int_equal(run("ip link set emt0 down"), 0);
    assert_true(drive(only_me, 1, one_is_down, NULL));
    assert_int_equal(me.cause[1], -ETIMEDOUT);
    assert_int_equal(me.n_done, 5);
    assert_true(me.last_result < 0);
}

/* A namespace of our own, if that is permitted. */
static void enter_namespace(void)
{
    has_namespaces = geteuid() == 0 && run("command -v ip >/dev/null 2>&1") == 0 && unshare(CLONE_NEWNET) == 0 &&
                     run("ip link set lo up && ip link add emt0 type veth peer name emt1 && ip link del emt0") == 0;
    if (!has_namespaces)
        printf("# network namespaces are not permitted here: links are not cut\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_killed_host_ends_what_goes_to_it_and_nothing_else, close_everything),
        cmocka_unit_test_teardown(test_killed_host_ends_transfers_through_messages, close_everything),
        cmocka_unit_test_teardown(test_hanging_host_is_lost_by_its_silence, close_everything),
        cmocka_unit_test_teardown(test_host_that_comes_back_joins_again, close_everything),
        /* the last two: in namespaces */
        cmocka_unit_test_teardown(test_link_that_comes_back_loses_nothing, close_namespaces),
        cmocka_unit_test_teardown(test_link_that_stays_cut_ends_what_is_under_way, close_namespaces),
    };
    size_t n = sizeof(tests) / sizeof(tests[0]);

    meeting = mmap(NULL, sizeof(*meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (meeting == MAP_FAILED)
        return 1;
    enter_namespace();
    return _cmocka_run_group_tests("tests", tests, has_namespaces ? n : n - 2, NULL, NULL);
}
