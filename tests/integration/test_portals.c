/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals in a domain that is switched between its paths, and among processes that are killed.
 *
 * switched  each process sends to the next one in a ring, all sizes, every put acknowledged. Message i says i in its
 *           header data and carries a pattern of i; the receiver must see 0, 1, 2 ... with their patterns, the sender
 *           as many ACKs, while the test switches the path whenever they have got a little further. They never get more
 *           than two switches ahead of it.
 * addressed a rank that asks for any process id gets its rank, also in a large job; who is no rank gets none of theirs.
 * killed    senders are killed at any moment of their puts. At the target every START has its END, the descriptor has
 *           no operation pending afterwards, and the next sender finds everything in order.
 */
#include <portals/portals3.h>

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/fixture.h"
#include "tests/common/seed.h"

#define N_RANKS     3u
#define N_MESSAGES  6000u
#define N_SWITCHES  60u
#define WINDOW      64u
#define SLOT_BYTES  (200u << 10)
#define PT          4
#define PATIENCE_NS 60000000000ull

#define LARGE_RANKS  1500u
#define LARGE_PTAG   79u
#define LARGE_COOKIE 0x7979u

#define PER_SWITCH (N_MESSAGES / N_SWITCHES)

struct board {
    _Alignas(64) _Atomic uint64_t allowed; /* messages that may be sent */
    struct {
        _Alignas(64) _Atomic uint32_t pid; /* plus one; 0: not ready */
        _Atomic uint32_t nid;
        _Atomic uint64_t received;
    } ranks[N_RANKS];
};

static struct fx fx;
static struct board *board;
static struct emu_random dice;

static ptl_process_id_t anybody(void)
{
    return (ptl_process_id_t){ PTL_NID_ANY, PTL_PID_ANY };
}

/* An interface of this process. */
static ptl_handle_ni_t open_interface(unsigned nid)
{
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    char text[16];
    int n;

    snprintf(text, sizeof(text), "%u", fx.cookie);
    setenv("EMUNIC_COOKIE", text, 1);
    fx_set_node(nid);
    if (PtlInit(&n) != PTL_OK || PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) != PTL_OK)
        return PTL_INVALID_HANDLE;
    return ni;
}

/* ---- switched ---- */

static uint64_t mix(uint64_t i)
{
    return emu_random_mix(dice.state + i * 977);
}

static uint64_t length_of(uint64_t i)
{
    static const uint64_t most[] = { 1, 8, 64, 4096, 20000, SLOT_BYTES };

    return mix(i) % (most[(mix(i) >> 20) % 6] + 1);
}

static int check(bool holds, const char *what, uint64_t i)
{
    if (!holds)
        fprintf(stderr, "# message %llu: %s\n", (unsigned long long)i, what);
    return holds ? 0 : -1;
}

/* Takes one event; counts what came. 0, or -1: something is wrong. */
static int take(ptl_handle_eq_t eq, const uint8_t *memory, unsigned rank, uint64_t *acks)
{
    ptl_event_t event;
    int rc = PtlEQGet(eq, &event);
    uint64_t i = atomic_load(&board->ranks[rank].received);
    const uint8_t *data;

    if (rc == PTL_EQ_EMPTY)
        return 0;
    if (rc != PTL_OK || event.ni_fail_type != PTL_NI_OK)
        return check(false, rc == PTL_OK ? "failed" : "lost events", i);
    if (event.type == PTL_EVENT_ACK) {
        (*acks)++;
        return check(event.mlength == event.rlength, "ACK of less", event.match_bits);
    }
    if (event.type != PTL_EVENT_PUT_END)
        return 0;
    data = memory + event.offset;
    if (check(event.hdr_data == i, "not this one", i) < 0 || check(event.mlength == length_of(i), "length", i) < 0)
        return -1;
    if (event.mlength > 0 && check(data[0] == (uint8_t)i && data[event.mlength - 1] == (uint8_t)i, "data", i) < 0)
        return -1;
    atomic_store(&board->ranks[rank].received, i + 1);
    return 0;
}

static int ring_rank(unsigned rank)
{
    static uint8_t out[WINDOW][SLOT_BYTES];
    unsigned next = (rank + 1) % N_RANKS;
    ptl_handle_ni_t ni = open_interface(fx.nids[rank]);
    uint8_t *memory = calloc(WINDOW, SLOT_BYTES);
    ptl_md_t md = { .start = memory,
                    .length = (uint64_t)WINDOW * SLOT_BYTES,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE };
    uint64_t deadline_ns = emu_clock_ns() + PATIENCE_NS;
    uint64_t sent = 0, acks = 0;
    ptl_handle_md_t sources[WINDOW], mdh;
    ptl_process_id_t id, target;
    ptl_handle_me_t me;

    if (ni == PTL_INVALID_HANDLE || !memory || PtlEQAlloc(ni, 8 * WINDOW, NULL, &md.eq_handle) != PTL_OK ||
        PtlMEAttach(ni, PT, anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &me) != PTL_OK ||
        PtlMDAttach(me, md, PTL_RETAIN, &mdh) != PTL_OK || PtlGetId(ni, &id) != PTL_OK)
        return 1;
    for (unsigned i = 0; i < WINDOW; i++) {
        md.start = out[i];
        md.length = SLOT_BYTES;
        md.options = i % 2 ? PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE : 0;
        if (PtlMDBind(ni, md, PTL_RETAIN, &sources[i]) != PTL_OK)
            return 1;
    }
    atomic_store(&board->ranks[rank].nid, id.nid);
    atomic_store(&board->ranks[rank].pid, id.pid + 1u);
    while (atomic_load(&board->ranks[next].pid) == 0)
        sched_yield();
    target = (ptl_process_id_t){ atomic_load(&board->ranks[next].nid),
                                 (ptl_pid_t)(atomic_load(&board->ranks[next].pid) - 1) };
    while (acks < N_MESSAGES || atomic_load(&board->ranks[rank].received) < N_MESSAGES) {
        if (sent < N_MESSAGES && sent < atomic_load(&board->allowed) && sent < acks + WINDOW &&
            sent < atomic_load(&board->ranks[next].received) + WINDOW) {
            unsigned slot = sent % WINDOW;

            memset(out[slot], (int)(uint8_t)sent, length_of(sent));
            if (PtlPutRegion(sources[slot], 0, length_of(sent), PTL_ACK_REQ, target, PT, 0, sent,
                             (uint64_t)slot * SLOT_BYTES, sent) != PTL_OK)
                return 2;
            sent++;
        }
        if (take(md.eq_handle, memory, rank, &acks) < 0)
            return 3;
        if (emu_clock_ns() > deadline_ns)
            return check(false, "never came", atomic_load(&board->ranks[rank].received)), 4;
    }
    /* Nobody leaves while others still send to it. */
    for (unsigned i = 0; i < N_RANKS; i++) {
        while (atomic_load(&board->ranks[i].received) < N_MESSAGES)
            sched_yield();
    }
    PtlFini();
    free(memory);
    return 0;
}

static void test_switching_loses_and_reorders_nothing(void **state)
{
    pid_t ranks[N_RANKS];
    unsigned n_switches = 0;

    (void)state;
    memset(board, 0, sizeof(*board));
    atomic_store(&board->allowed, 2 * PER_SWITCH);
    for (unsigned i = 0; i < N_RANKS; i++) {
        ranks[i] = fork();
        if (ranks[i] == 0) {
            fx_forget(&fx);
            _exit(ring_rank(i));
        }
    }
    while (n_switches < N_SWITCHES) {
        siginfo_t info = { .si_pid = 0 };

        if (atomic_load(&board->ranks[n_switches % N_RANKS].received) >= (uint64_t)n_switches * PER_SWITCH) {
            fx_set_routed(&fx, ++n_switches % 2 != 0);
            atomic_store(&board->allowed, (n_switches + 2ull) * PER_SWITCH);
        }
        /* Who ends early has failed, and the others wait for it in vain. */
        if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0 && info.si_pid != fx.daemon)
            break;
        sched_yield();
    }
    fx_set_routed(&fx, false);
    for (unsigned i = 0; i < N_RANKS; i++) {
        int status;

        assert_int_equal(waitpid(ranks[i], &status, 0), ranks[i]);
        assert_int_equal(status, 0);
    }
}

/* ---- killed ---- */

enum { EVENTS_MAX = 1 << 16, PUTS_MAX = EVENTS_MAX / 2 - 1000 };

static int endless_sender(ptl_process_id_t target, unsigned round)
{
    static uint8_t out[300 << 10];
    ptl_md_t md = { .start = out, .length = sizeof(out), .threshold = PTL_MD_THRESH_INF, .eq_handle = PTL_EQ_NONE };
    ptl_handle_ni_t ni = open_interface(fx.nids[1]);
    ptl_handle_md_t mdh;

    if (ni == PTL_INVALID_HANDLE || PtlMDBind(ni, md, PTL_RETAIN, &mdh) != PTL_OK)
        return 1;
    /* Not more than the target's queue holds events of, if it does not get to look for a while. */
    for (uint64_t i = 0; i < PUTS_MAX; i++) {
        uint64_t length = i % 3 == 0 ? sizeof(out) : i % 3 == 1 ? 5000 : 8;

        if (PtlPutRegion(mdh, 0, length, PTL_NOACK_REQ, target, PT, 0, 0, 0, round) != PTL_OK)
            return 2;
    }
    for (;;)
        pause();
}

/* Takes events until there is none. STARTs that have no END yet. */
static int count_open(ptl_handle_eq_t eq, int open, uint64_t *n_failed)
{
    ptl_event_t event;
    int rc;

    while ((rc = PtlEQGet(eq, &event)) == PTL_OK) {
        open += event.type == PTL_EVENT_PUT_START ? 1 : -1;
        *n_failed += event.ni_fail_type != PTL_NI_OK;
        assert_true(open == 0 || open == 1);
    }
    assert_int_equal(rc, PTL_EQ_EMPTY);
    return open;
}

static void test_killed_senders_leave_nothing_undone(void **state)
{
    static uint8_t memory[300 << 10];
    ptl_md_t md = { .start = memory,
                    .length = sizeof(memory),
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE };
    ptl_handle_ni_t ni = open_interface(fx.nids[0]);
    uint64_t n_failed = 0;
    int rc;
    ptl_process_id_t id;
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

    (void)state;
    assert_int_not_equal(ni, PTL_INVALID_HANDLE);
    assert_int_equal(PtlGetId(ni, &id), PTL_OK);
    assert_int_equal(PtlEQAlloc(ni, EVENTS_MAX, NULL, &md.eq_handle), PTL_OK);
    assert_int_equal(PtlMEAttach(ni, PT, anybody(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    assert_int_equal(PtlMDAttach(me, md, PTL_RETAIN, &mdh), PTL_OK);
    for (unsigned round = 0; round < 20; round++) {
        uint64_t wanted = emu_random_below(&dice, 200);
        uint64_t n = 0;
        int open = 0;
        pid_t child = fork();
        ptl_event_t event;
        int status;

        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            fx_forget(&fx);
            _exit(endless_sender(id, round));
        }
        /* So many events, then a while of its own that nobody knows. */
        while (n < wanted || n == 0) {
            assert_int_equal(PtlEQWait(md.eq_handle, &event), PTL_OK);
            open += event.type == PTL_EVENT_PUT_START ? 1 : -1;
            n++;
        }
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WTERMSIG(status), SIGKILL);
        while ((open = count_open(md.eq_handle, open, &n_failed)) != 0)
            sched_yield();
        /* Nothing is pending: the contents may be replaced. */
        while (PtlMDUpdate(mdh, NULL, &md, md.eq_handle) != PTL_OK)
            open = count_open(md.eq_handle, open, &n_failed);
        assert_int_equal(open, 0);
    }
    printf("# %llu operations were cut off\n", (unsigned long long)n_failed);
    /* What a killed sender of another host has sent may still arrive. */
    while ((rc = PtlMEUnlink(me)) == PTL_ME_IN_USE)
        sched_yield();
    assert_int_equal(rc, PTL_OK);
    PtlFini();
}

/* ---- addressed ---- */

/* A job of more ranks than the fixture knows, all on its first node. */
static void add_large_job(struct emu_session *admin_out)
{
    struct emu_msg msg = {
        .type = EMU_MSG_DOMAIN_CREATE,
        .domain = { .ptag = LARGE_PTAG, .cookie = LARGE_COOKIE, .owner_uid = geteuid(), .n_ranks = LARGE_RANKS }
    };
    uint32_t nids[LARGE_RANKS];
    int fd = memfd_create("ranks", MFD_CLOEXEC);

    for (uint32_t i = 0; i < LARGE_RANKS; i++)
        nids[i] = fx.nids[0];
    assert_true(fd >= 0 && write(fd, nids, sizeof(nids)) == (ssize_t)sizeof(nids));
    assert_int_equal(emu_session_open(admin_out, fx.server, EMU_SOCKET_ADMIN), 0);
    assert_int_equal(emu_session_request(admin_out, &msg, &fd, 1, NULL), 0);
    assert_int_equal(msg.result, 0);
    close(fd);
}

static int become_rank(uint32_t rank)
{
    struct emu_msg msg = { .type = EMU_MSG_JOIN_RANK,
                           .rank = { .ptag = LARGE_PTAG, .cookie = LARGE_COOKIE, .rank = rank } };
    struct emu_session session;

    if (emu_session_open(&session, fx.server, EMU_SOCKET_CONTROL) < 0 ||
        emu_session_request(&session, &msg, NULL, 0, NULL) < 0)
        return -1;
    emu_session_close(&session);
    return msg.result;
}

/* The process id that a process gets, rank or not (LARGE_RANKS): its exit status is 0 if it is that. */
static bool gets_pid(uint32_t rank, uint32_t expected)
{
    pid_t child;
    int status;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        ptl_process_id_t id;
        ptl_handle_ni_t ni;

        if (rank < LARGE_RANKS && become_rank(rank) != 0)
            _exit(2);
        fx.cookie = LARGE_COOKIE;
        ni = open_interface(fx.nids[0]);
        _exit(ni != PTL_INVALID_HANDLE && PtlGetId(ni, &id) == PTL_OK && id.pid == expected ? 0 : 1);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_any_process_id_of_a_rank_is_its_rank(void **state)
{
    struct emu_session admin;

    (void)state;
    add_large_job(&admin);
    assert_true(gets_pid(0, 0));
    assert_true(gets_pid(7, 7));
    assert_true(gets_pid(1023, 1023));
    assert_true(gets_pid(1024, 1024));
    assert_true(gets_pid(LARGE_RANKS - 1, LARGE_RANKS - 1));
    assert_true(gets_pid(LARGE_RANKS, LARGE_RANKS));
    fx_end_domain(&admin);
}

static int setup(void **state)
{
    static const struct fx_options options = { .n_ranks = N_RANKS };

    (void)state;
    dice = seeded(7);
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return -1;
    fx_start(&fx, &options);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return fx_stop(&fx) == 0 ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switching_loses_and_reorders_nothing),
        cmocka_unit_test(test_killed_senders_leave_nothing_undone),
        cmocka_unit_test(test_any_process_id_of_a_rank_is_its_rank),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
