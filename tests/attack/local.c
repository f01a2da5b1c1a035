/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attacks on one host, by users who own no domain and by one who owns another domain: does the routed work of a job go
 * on at its speed, with the right data? Needs root to become somebody else. `attack-local PATTERN` runs some.
 *
 * The victim spins, emunic works, attackers work: on a host of few processors they share those. So emunic is held to
 * the time beside a control (phases.h); the time of a quiet host is printed, too.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cmocka.h>

#include "tests/attack/phases.h"
#include "tests/attack/victim.h"
#include "tests/common/raw.h"

#define USER        65534u /* owns a domain */
#define STRANGER    65533u /* owns none */
#define PTAG        80u
#define COOKIE      800u
#define IDLE        5000u /* of each of IDLERS */
#define IDLERS      4u
#define CONNECTIONS 64u
#define AHEAD       8u /* requests of a connection that emunic finds when it comes by */
#define PENDING     63000u
#define PORTS       4u
#define EXCHANGES   1000u
#define PAGE        4096u
#define PAGES_MAX   2048u
#define PIECE       256u /* pages of a registration */
#define PIECES      32u

static struct fx fx;
static struct emu_session user_admin;
static struct victim victim;
static struct figures figures;

static int start(void **state)
{
    (void)state;
    setenv("FX_DATAPATH", "routed", 1);
    setenv("EMUNIC_USER_PAGES", "2048", 1);
    fx_start(&fx, NULL);
    return fx_add_domain(&fx, PTAG, COOKIE, USER, 0, &user_admin);
}

static int stop(void **state)
{
    phases_kill(state);
    fx_end_domain(&user_admin);
    return fx_stop(&fx);
}

static void become(uid_t uid)
{
    syscall(SYS_close_range, 3, ~0u, 0); /* what the victim has */
    attacker_takes_all_descriptors();
    MUST(setgroups(0, NULL) == 0 && setgid(uid) == 0 && setuid(uid) == 0);
    prctl(PR_SET_DUMPABLE, 1);
}

static void become_user(unsigned number)
{
    (void)number;
    become(USER);
}

static void run(const struct attack *attack)
{
    victim_open(&victim, &fx, 1, 2);
    victim_measure(&victim);
    phases_run(attack, victim_put_often, &victim, &figures);
    victim_close(&victim);
    phases_require_bound(&figures);
}

/* ---- connections of strangers ---- */

static struct sockaddr_un listener_name;
static socklen_t listener_length;
static int listener = -1;

/* For the control: a listener of the attacker's own, which refuses as emunic does. */
static void become_stranger(unsigned number)
{
    become(STRANGER);
    listener_name.sun_family = AF_UNIX;
    listener_length =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                    (size_t)snprintf(listener_name.sun_path + 1, 64, "attack-%d-%u", (int)getpid(), number));
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    MUST(listener >= 0 && bind(listener, (struct sockaddr *)&listener_name, listener_length) == 0);
    MUST(listen(listener, SOMAXCONN) == 0);
}

/* Is refused: a message says so, and the other end is closed. */
static int call_control(void)
{
    static const struct emu_msg refusal = { .magic = EMU_MSG_MAGIC, .type = EMU_MSG_HELLO };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int other;

    MUST(fd >= 0 && connect(fd, (struct sockaddr *)&listener_name, listener_length) == 0);
    other = accept(listener, NULL, NULL);
    MUST(other >= 0 && send(other, &refusal, sizeof(refusal), MSG_NOSIGNAL) == (ssize_t)sizeof(refusal));
    close(other);
    return fd;
}

static int call(enum phase phase)
{
    int fd = phase == ATTACK ? emu_socket_connect(fx.server, EMU_SOCKET_CONTROL) : call_control();

    MUST(fd >= 0);
    return fd;
}

static int idle[IDLE];

static void hold_idle(enum phase phase)
{
    for (unsigned i = 0; i < IDLE; i++)
        idle[i] = call(phase);
}

static void drop_idle(enum phase phase)
{
    (void)phase;
    for (unsigned i = 0; i < IDLE; i++)
        close(idle[i]);
}

static void test_idle_connections_of_a_stranger(void **state)
{
    const struct attack attack = { .name = "idle connections",
                                   .unit = "units",
                                   .n_processes = IDLERS,
                                   .become = become_stranger,
                                   .begin = hold_idle,
                                   .end = drop_idle };

    (void)state;
    run(&attack);
}

/* Calls, hears that it is refused, and calls again. */
static unsigned be_refused(enum phase phase)
{
    for (unsigned i = 0; i < 16; i++) {
        struct emu_msg msg;
        int fd = call(phase);

        MUST(recv(fd, &msg, sizeof(msg), 0) == (ssize_t)sizeof(msg));
        close(fd);
    }
    return 16;
}

static void test_strangers_who_call_again_and_again(void **state)
{
    const struct attack attack = {
        .name = "calls", .unit = "calls", .n_processes = 2, .become = become_stranger, .work = be_refused
    };

    (void)state;
    run(&attack);
}

/* ---- requests of another user ---- */

static const struct emu_msg question = { .magic = EMU_MSG_MAGIC,
                                         .abi_version = EMU_ABI_VERSION,
                                         .type = EMU_MSG_WHERE };
static struct raw askers[CONNECTIONS];
static struct pollfd asked[CONNECTIONS];
static int mirror[2];

static void begin_asking(enum phase phase)
{
    if (phase == CONTROL) {
        MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, mirror) == 0);
        return;
    }
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        MUST(raw_connect(&askers[i], fx.server) == 0);
        asked[i] = (struct pollfd){ askers[i].session.fd, POLLIN, 0 };
        for (unsigned k = 0; k < AHEAD; k++)
            MUST(send(asked[i].fd, &question, sizeof(question), MSG_NOSIGNAL) > 0);
    }
}

/* Takes the answers that are there, and asks as often. */
static unsigned ask_again(enum phase phase)
{
    struct emu_msg msg;
    unsigned n = 0;

    for (; phase == CONTROL && n < CONNECTIONS; n++) {
        MUST(send(mirror[0], &question, sizeof(question), MSG_NOSIGNAL) > 0);
        MUST(recv(mirror[1], &msg, sizeof(msg), 0) > 0);
    }
    if (phase == CONTROL)
        return n;
    if (poll(asked, CONNECTIONS, 10) <= 0)
        return 0;
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        while ((asked[i].revents & POLLIN) != 0 && recv(asked[i].fd, &msg, sizeof(msg), MSG_DONTWAIT) > 0) {
            MUST(send(asked[i].fd, &question, sizeof(question), MSG_NOSIGNAL) > 0);
            n++;
        }
    }
    return n;
}

static void end_asking(enum phase phase)
{
    for (unsigned i = 0; i < 2 && phase == CONTROL; i++)
        close(mirror[i]);
    for (unsigned i = 0; i < CONNECTIONS && phase == ATTACK; i++)
        raw_close(&askers[i]);
}

static void test_requests_of_another_user(void **state)
{
    const struct attack attack = { .name = "requests",
                                   .unit = "requests",
                                   .n_processes = 1,
                                   .become = become_user,
                                   .begin = begin_asking,
                                   .work = ask_again,
                                   .end = end_asking };

    (void)state;
    run(&attack);
}

/* ---- pending datagrams of another user ---- */

static struct raw ports[PORTS];

static void begin_pending(enum phase phase)
{
    if (phase == CONTROL)
        return;
    for (unsigned i = 0; i < PORTS; i++)
        MUST(raw_open(&ports[i], fx.server, PTAG, COOKIE, i, 1) == 0);
    for (unsigned i = 0; i < PENDING; i++) {
        struct emu_msg msg = { .type = EMU_MSG_DATAGRAM_POST,
                               .datagram = { .ep = i, .remote_nid = 2, .remote_instance = 100 + i } };

        MUST(raw_request(&ports[i % PORTS], &msg) == 0);
    }
}

static void end_pending(enum phase phase)
{
    for (unsigned i = 0; i < PORTS && phase == ATTACK; i++)
        raw_close(&ports[i]);
}

static void request(struct raw *raw, uint16_t type, struct emu_msg_datagram *datagram)
{
    struct emu_msg msg = { .type = type, .datagram = *datagram };

    assert_int_equal(raw_request(raw, &msg), 0);
    *datagram = msg.datagram;
}

static void collect(struct raw *raw, uint8_t value)
{
    struct emu_msg_datagram d = { .ep = 0 };

    request(raw, EMU_MSG_DATAGRAM_PROBE, &d);
    assert_int_equal(d.ep, 1);
    d = (struct emu_msg_datagram){ .ep = 1 };
    request(raw, EMU_MSG_DATAGRAM_TEST, &d);
    assert_int_equal(d.state, EMU_DATAGRAM_COMPLETED);
    assert_int_equal(d.length_bytes, 1);
    assert_int_equal(d.data[0], value);
}

/* A wildcard is answered. Nanoseconds of all. */
static uint64_t exchange_often(void *arg)
{
    struct raw *side = arg;
    uint64_t began_ns = emu_clock_ns();

    for (unsigned i = 0; i < EXCHANGES; i++) {
        struct emu_msg_datagram open = { .ep = 1,
                                         .flags = EMU_DATAGRAM_WILDCARD,
                                         .remote_nid = EMU_NID_NONE,
                                         .length_bytes = 1,
                                         .room_bytes = EMU_DATAGRAM_MAX,
                                         .data = { (uint8_t)i } };
        struct emu_msg_datagram directed = { .ep = 1,
                                             .remote_nid = 1,
                                             .remote_instance = 20,
                                             .length_bytes = 1,
                                             .room_bytes = EMU_DATAGRAM_MAX,
                                             .data = { (uint8_t)(i + 1) } };

        request(&side[0], EMU_MSG_DATAGRAM_POST, &open);
        request(&side[1], EMU_MSG_DATAGRAM_POST, &directed);
        collect(&side[0], (uint8_t)(i + 1));
        collect(&side[1], (uint8_t)i);
    }
    return emu_clock_ns() - began_ns;
}

static void test_pending_datagrams_of_another_user(void **state)
{
    const struct attack attack = { .name = "pending datagrams",
                                   .unit = "units",
                                   .n_processes = 1,
                                   .become = become_user,
                                   .begin = begin_pending,
                                   .end = end_pending };
    struct raw side[2];

    (void)state;
    assert_int_equal(raw_open(&side[0], fx.server, fx.ptag, fx.cookie, 20, 1), 0);
    assert_int_equal(raw_open(&side[1], fx.server, fx.ptag, fx.cookie, 21, 2), 0);
    phases_run(&attack, exchange_often, side, &figures);
    raw_close(&side[0]);
    raw_close(&side[1]);
    phases_require_bound(&figures);
}

/* ---- memory that grows ---- */

static uint8_t *own;

static void begin_touching(enum phase phase)
{
    struct emu_msg space = { .type = EMU_MSG_SPACE };

    if (phase == CONTROL) {
        own = mmap(NULL, PIECES * PIECE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        MUST(own != MAP_FAILED);
        return;
    }
    MUST(raw_open(&ports[0], fx.server, PTAG, COOKIE, 1, 1) == 0);
    MUST(raw_request(&ports[0], &space) == 0);
}

static void touch(struct raw *raw, const struct emu_msg *registered, uint64_t addr)
{
    struct emu_cmd cmd = { .op = EMU_OP_PUT,
                           .flags = EMU_CMD_INLINE,
                           .remote_nid = raw->attach.nid,
                           .remote_addr = addr,
                           .remote_base = registered->memory.addr,
                           .length_bytes = 8,
                           .mdh = registered->memory.mdh,
                           .generation = registered->memory.generation,
                           .source_cq = EMU_CQ_NONE };

    while (atomic_load(&raw->segment->tail) - atomic_load(&raw->segment->head) >= EMU_RING_SLOTS)
        poll(NULL, 0, 1);
    raw_post(raw, &cmd);
}

/* Registers memory that is nowhere as if it were in the space file, and has emunic write to each page. */
static unsigned touch_piece(enum phase phase)
{
    static unsigned n;
    uint64_t at = (uint64_t)(n++ % PIECES) * PIECE * PAGE;
    struct emu_msg msg = { .type = EMU_MSG_MEM_REGISTER,
                           .memory = { .addr = 0x100000000 + at,
                                       .length_bytes = (uint64_t)PIECE * PAGE,
                                       .flags = EMU_MD_MAPPED,
                                       .cq = EMU_CQ_NONE } };

    if (phase == CONTROL) {
        for (unsigned i = 0; i < PIECE; i++)
            own[at + (uint64_t)i * PAGE] = 1;
        madvise(own + at, PIECE * PAGE, MADV_DONTNEED);
        return PIECE;
    }
    MUST(raw_request(&ports[0], &msg) == 0);
    for (unsigned i = 0; i < PIECE; i++)
        touch(&ports[0], &msg, msg.memory.addr + (uint64_t)i * PAGE);
    while (atomic_load(&ports[0].segment->head) != atomic_load(&ports[0].segment->tail))
        poll(NULL, 0, 1);
    msg.type = EMU_MSG_MEM_DEREGISTER;
    MUST(raw_request(&ports[0], &msg) == 0);
    return PIECE;
}

static void end_touching(enum phase phase)
{
    if (phase == CONTROL)
        munmap(own, PIECES * PIECE * PAGE);
    else
        raw_close(&ports[0]);
}

/* Pages of emunic, and of the files in memory that it has made. */
static long pages_of_emunic(void)
{
    char path[64];
    FILE *file;
    long size, resident = 0;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)fx.daemon);
    file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
    fclose(file);
    return resident;
}

static void test_memory_that_emunic_makes_for_another_user(void **state)
{
    const struct attack attack = { .name = "pages",
                                   .unit = "touches",
                                   .n_processes = 1,
                                   .become = become_user,
                                   .begin = begin_touching,
                                   .work = touch_piece,
                                   .end = end_touching };
    long before = pages_of_emunic();

    (void)state;
    run(&attack);
    print_message("# pages: emunic had %ld before, %ld after; the user touched %u, its limit is %u\n", before,
                  pages_of_emunic(), PIECES * PIECE, PAGES_MAX);
    assert_true(pages_of_emunic() - before < (long)PAGES_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_idle_connections_of_a_stranger),
        TEST(test_strangers_who_call_again_and_again),
        TEST(test_requests_of_another_user),
        TEST(test_pending_datagrams_of_another_user),
        TEST(test_memory_that_emunic_makes_for_another_user),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can become another user\n");
        return 0;
    }
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests_name("local", tests, phases_stand_apart, NULL);
}
