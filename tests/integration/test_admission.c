/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who gets in, and how much of emunic one user may take. Needs root to become somebody else; each stranger is a child
 * that does so first and then says over a pipe how far it came.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/common/fixture.h"
#include "tests/common/raw.h"

#define STRANGER       65534u
#define STRANGE_PTAG   80u
#define STRANGE_COOKIE 800u
#define FILES          1024u /* descriptors that emunic may have: what is kept of strangers would soon fill them */
#define LIMIT          40u   /* of what a user may have */
#define PATIENCE_MS    20000

static struct fx fx;
static struct emu_session strange_admin;

/* ---- emunics ---- */

static int start(void **state)
{
    const struct rlimit files = { FILES, FILES };

    (void)state;
    fx_start(&fx, NULL);
    return prlimit(fx.daemon, RLIMIT_NOFILE, &files, NULL);
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

/* One that the stranger has a domain at. */
static int start_shared(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return fx_add_domain(&fx, STRANGE_PTAG, STRANGE_COOKIE, STRANGER, 0, &strange_admin);
}

static int stop_shared(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_END };

    emu_session_request(&strange_admin, &msg, NULL, 0, NULL);
    emu_session_close(&strange_admin);
    return stop(state);
}

static const char *const limits[] = { "EMUNIC_USER_CONNECTIONS", "EMUNIC_USER_PORTS", "EMUNIC_USER_REGISTRATIONS",
                                      "EMUNIC_USER_DATAGRAMS", "EMUNIC_USER_REGIONS" };
#define N_LIMITS (sizeof(limits) / sizeof(limits[0]))

static int start_limited(void **state)
{
    char text[16];
    int r;

    snprintf(text, sizeof(text), "%u", LIMIT);
    for (size_t i = 0; i < N_LIMITS; i++)
        setenv(limits[i], text, 1);
    setenv("EMUNIC_USER_CONNECTIONS", "100", 1);
    r = start_shared(state);
    for (size_t i = 0; i < N_LIMITS; i++)
        unsetenv(limits[i]);
    return r;
}

/* ---- strangers ---- */

struct stranger {
    pid_t pid;
    int told; /* what it has to say: one number */
    int held; /* it ends when this closes */
};

/* A child of another user; `body` answers a number and leaves open what it has opened. */
static void become_stranger(struct stranger *s, int (*body)(void))
{
    int told[2];
    int held[2];

    assert_int_equal(pipe(told), 0);
    assert_int_equal(pipe(held), 0);
    s->pid = fork();
    assert_true(s->pid >= 0);
    if (s->pid == 0) {
        int answer = -1;
        char byte;

        close(fx.admin.fd);
        close(held[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setgroups(0, NULL) == 0 && setgid(STRANGER) == 0 && setuid(STRANGER) == 0) {
            prctl(PR_SET_DUMPABLE, 1); /* setuid took it; an ordinary process of that user has it */
            answer = body();
        }
        if (write(told[1], &answer, sizeof(answer)) != sizeof(answer) || read(held[0], &byte, 1) != 0)
            _exit(1);
        _exit(0);
    }
    close(told[1]);
    close(held[0]);
    s->told = told[0];
    s->held = held[1];
}

static int hear(struct stranger *s)
{
    int answer = -1;

    assert_int_equal(read(s->told, &answer, sizeof(answer)), sizeof(answer));
    return answer;
}

static void dismiss(struct stranger *s)
{
    int status = -1;

    close(s->held);
    close(s->told);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_int_equal(status, 0);
}

/* Number that one stranger says, who then goes. */
static int ask_stranger(int (*body)(void))
{
    struct stranger s;
    int answer;

    become_stranger(&s, body);
    answer = hear(&s);
    dismiss(&s);
    return answer;
}

/* ---- who gets in ---- */

static int body_opens_a_session(void)
{
    struct raw raw;

    return -raw_connect(&raw, fx.server);
}

static void test_stranger_is_told_that_it_is_refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++)
        assert_int_equal(ask_stranger(body_opens_a_session), EACCES);
}

/* As many idle connections as it gets, at most `FILES`. */
static int body_connects_and_says_nothing(void)
{
    int n = 0;

    while (n < (int)FILES && emu_socket_connect(fx.server, EMU_SOCKET_CONTROL) >= 0)
        n++;
    return n;
}

/* It is a user whom emunic serves: attaches, as a rank does. */
static void expect_service(void)
{
    struct raw raw;

    assert_int_equal(raw_open(&raw, fx.server, fx.ptag, fx.cookie, 7, 1), 0);
    raw_close(&raw);
}

static void test_idle_connections_of_strangers_take_nothing_from_the_job(void **state)
{
    struct stranger strangers[4];
    int before;

    (void)state;
    expect_service(); /* from now on this process is a member */
    before = fx_count_fds(&fx);
    for (unsigned i = 0; i < 4; i++) {
        become_stranger(&strangers[i], body_connects_and_says_nothing);
        hear(&strangers[i]);
        expect_service();
    }
    expect_service();
    assert_int_equal(fx_count_fds(&fx), before);
    for (unsigned i = 4; i-- > 0;) /* later ones hold what earlier ones wait for */
        dismiss(&strangers[i]);
}

static void test_owner_of_a_domain_gets_in_for_as_long_as_it_has_one(void **state)
{
    (void)state;
    assert_int_equal(fx_add_domain(&fx, STRANGE_PTAG, STRANGE_COOKIE, STRANGER, 0, &strange_admin), 0);
    assert_int_equal(ask_stranger(body_opens_a_session), 0);
    assert_int_equal(fx_end_domain(&strange_admin), 0);
    emu_session_close(&strange_admin);
    assert_int_equal(ask_stranger(body_opens_a_session), EACCES);
}

/* ---- hello ---- */

static int start_impatient(void **state)
{
    int r;

    setenv("EMUNIC_HELLO", "50000000", 1);
    r = start(state);
    unsetenv("EMUNIC_HELLO");
    return r;
}

static void test_connection_that_does_not_say_hello_is_closed(void **state)
{
    struct pollfd silent[3];
    struct raw greeted;

    (void)state;
    assert_int_equal(raw_connect(&greeted, fx.server), 0);
    for (unsigned i = 0; i < 3; i++) {
        silent[i] =
            (struct pollfd){ emu_socket_connect(fx.server, i == 2 ? EMU_SOCKET_ADMIN : EMU_SOCKET_CONTROL), POLLIN, 0 };
        assert_true(silent[i].fd >= 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct emu_msg msg;

        assert_int_equal(poll(&silent[i], 1, PATIENCE_MS), 1);
        assert_int_equal(emu_msg_receive(silent[i].fd, &msg, NULL), -ECONNRESET);
        close(silent[i].fd);
    }
    assert_int_equal(raw_attach(&greeted, fx.ptag, fx.cookie, 7, 1), 0);
    raw_close(&greeted);
}

/* ---- limits ---- */

static struct raw many[200];

/* Those that are let in, or a negative number: refused for another reason than the limit. */
static int body_connects_as_often_as_it_may(void)
{
    int n = 0;
    int r = 0;

    while (n < 200 && (r = raw_connect(&many[n], fx.server)) == 0)
        n++;
    return r == -ENOSPC ? n : -1;
}

static void test_user_has_as_many_connections_as_its_limit(void **state)
{
    struct stranger s;

    (void)state;
    for (unsigned i = 0; i < 3; i++) { /* and all are given back */
        become_stranger(&s, body_connects_as_often_as_it_may);
        assert_int_equal(hear(&s), 100);
        expect_service();
        dismiss(&s);
    }
}

static int open_strange(struct raw *raw, uint32_t instance_id)
{
    return raw_open(raw, fx.server, STRANGE_PTAG, STRANGE_COOKIE, instance_id, 1);
}

static int body_attaches_as_often_as_it_may(void)
{
    int n = 0;
    int r = 0;

    while (n < 200 && (r = open_strange(&many[n], (uint32_t)n)) == 0)
        n++;
    return r == -ENOSPC ? n : -1;
}

static void test_user_has_as_many_ports_as_its_limit(void **state)
{
    struct stranger s;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        become_stranger(&s, body_attaches_as_often_as_it_may);
        assert_int_equal(hear(&s), LIMIT);
        expect_service();
        dismiss(&s);
    }
}

static struct emu_msg last; /* that was answered with 0 */

/* Spread over its ports. Requests that are answered with 0; -1: the last one is not refused as the limit is. */
static int repeat(struct emu_msg (*make)(int n), int refusal)
{
    struct emu_msg msg;
    int n = 0;
    int r = 0;

    for (unsigned i = 0; i < 4; i++) {
        if (open_strange(&many[i], i) != 0)
            return -1;
    }
    while (n < 200 && r == 0) {
        msg = make(n);
        r = raw_request(&many[n % 4], &msg);
        last = r == 0 ? msg : last;
        n += r == 0;
    }
    return r == refusal ? n : -1;
}

static struct emu_msg make_registration(int n)
{
    return (struct emu_msg){ .type = EMU_MSG_MEM_REGISTER,
                             .memory = {
                                 .addr = 0x10000 + (uint64_t)n * 0x1000, .length_bytes = 0x1000, .cq = EMU_CQ_NONE } };
}

static int body_registers_as_often_as_it_may(void)
{
    int n = repeat(make_registration, -ENOSPC);
    struct emu_msg msg = last;

    msg.type = EMU_MSG_MEM_DEREGISTER;
    if (n != LIMIT || raw_request(&many[(n - 1) % 4], &msg) != 0)
        return -1;
    msg = make_registration(200);
    return raw_request(&many[0], &msg) == 0 ? n : -1;
}

static void test_user_has_as_many_registrations_as_its_limit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask_stranger(body_registers_as_often_as_it_may), LIMIT);
}

static struct emu_msg make_datagram(int n)
{
    return (struct emu_msg){ .type = EMU_MSG_DATAGRAM_POST,
                             .datagram = { .ep = (uint32_t)n, .remote_nid = 2, .remote_instance = (uint32_t)n } };
}

static int body_posts_as_often_as_it_may(void)
{
    struct emu_msg msg = { .type = EMU_MSG_DATAGRAM_DROP_EP };
    int n = repeat(make_datagram, -ENOMEM);

    raw_request(&many[0], &msg);
    msg = (struct emu_msg){ .type = EMU_MSG_DATAGRAM_PROBE };
    raw_request(&many[0], &msg); /* one whose end point has gone is kept for one probe */
    msg = make_datagram(201);
    return n == LIMIT && raw_request(&many[0], &msg) == 0 ? n : -1;
}

static void test_user_has_as_many_datagrams_as_its_limit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask_stranger(body_posts_as_often_as_it_may), LIMIT);
}

/* One per domain and node: there are fewer nodes than regions that a user may have. */
static int body_joins_a_region(void)
{
    struct emu_msg msg = { .type = EMU_MSG_MSGQ_JOIN, .msgq = { .shape = { .n_insts = 2, .region_bytes = 4096 } } };
    struct emu_fds fds;
    int r;

    if (open_strange(&many[0], 1) != 0)
        return -1;
    r = emu_session_request(&many[0].session, &msg, NULL, 0, &fds);
    emu_fds_close(&fds);
    return r == 0 ? -msg.result : -1;
}

static int start_with_one_region(void **state)
{
    int r;

    setenv("EMUNIC_USER_REGIONS", "1", 1);
    r = start_shared(state);
    unsetenv("EMUNIC_USER_REGIONS");
    return r;
}

static int open_on_node(struct raw *raw, uint32_t nid)
{
    return raw_open(raw, fx.server, STRANGE_PTAG, STRANGE_COOKIE, 1, nid);
}

static int body_joins_regions_of_two_nodes(void)
{
    const struct emu_msg join = { .type = EMU_MSG_MSGQ_JOIN,
                                  .msgq = { .shape = { .n_insts = 2, .region_bytes = 4096 } } };
    struct emu_msg first = join;
    struct emu_msg second = join;
    struct emu_msg leave = { .type = EMU_MSG_MSGQ_LEAVE };
    struct emu_msg again = join;

    if (open_on_node(&many[0], 1) != 0 || open_on_node(&many[1], 2) != 0 || raw_request(&many[0], &first) != 0)
        return -1;
    if (raw_request(&many[1], &second) != -ENOSPC)
        return -1;
    raw_request(&many[0], &leave);
    return -raw_request(&many[1], &again);
}

static void test_user_has_as_many_regions_of_message_queues_as_its_limit(void **state)
{
    (void)state;
    assert_int_equal(ask_stranger(body_joins_a_region), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(ask_stranger(body_joins_regions_of_two_nodes), 0);
}

/* ---- pages ---- */

#define PAGES_MAX 2048u
#define PAGE      4096ull
#define PIECE     (256 * PAGE)

static int start_with_few_pages(void **state)
{
    int r;

    setenv("EMUNIC_USER_PAGES", "2048", 1);
    r = start_shared(state);
    unsetenv("EMUNIC_USER_PAGES");
    return r;
}

/* Puts a word into the memory, which emunic makes then if it is reached through the space file. */
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
    uint64_t tail;

    raw_post(raw, &cmd);
    tail = atomic_load(&raw->segment->tail);
    while (atomic_load(&raw->segment->head) != tail)
        sched_yield();
}

/* Registers memory that is nowhere as if it were in the space file, piece by piece, and has emunic write to all. */
static int body_makes_emunic_grow(void)
{
    struct emu_msg space = { .type = EMU_MSG_SPACE };
    struct emu_msg msg;

    if (open_strange(&many[0], 1) != 0 || raw_request(&many[0], &space) != 0)
        return -1;
    for (uint64_t i = 0; i < 32; i++) {
        msg = make_registration(0);
        msg.memory.addr = 0x100000000 + i * PIECE;
        msg.memory.length_bytes = PIECE;
        msg.memory.flags = EMU_MD_MAPPED;
        if (raw_request(&many[0], &msg) != 0)
            return -1;
        for (uint64_t at = 0; at < PIECE; at += PAGE)
            touch(&many[0], &msg, msg.memory.addr + at);
    }
    return 0;
}

/* "key": {"used": NUMBER of the stranger, whose row is the last one. */
static uint64_t used_by_stranger(const char *key)
{
    char *report = fx_report(&fx, EMU_MSG_STATUS);
    char *row = report ? strstr(report, "\"uid\":65534") : NULL;
    char wanted[64];
    unsigned long long n = UINT64_MAX;

    snprintf(wanted, sizeof(wanted), "\"%s\":{\"used\":", key);
    row = row ? strstr(row, wanted) : NULL;
    if (row)
        sscanf(row + strlen(wanted), "%llu", &n);
    free(report);
    return n;
}

static void test_emunic_does_not_grow_for_a_user_beyond_its_pages(void **state)
{
    struct stranger s;

    (void)state;
    become_stranger(&s, body_makes_emunic_grow);
    assert_int_equal(hear(&s), 0);
    assert_int_equal(used_by_stranger("ports"), 1);
    assert_int_equal(used_by_stranger("registrations"), 32);
    assert_in_range(used_by_stranger("pages"), 256, PAGES_MAX);
    dismiss(&s);
}

/* Fills its own space file. */
static int body_fills_its_space(void)
{
    struct emu_msg space = { .type = EMU_MSG_SPACE };
    struct emu_msg msg = make_registration(0);
    struct emu_fds fds;
    uint8_t *mem;

    if (open_strange(&many[0], 1) != 0 || emu_session_request(&many[0].session, &space, NULL, 0, &fds) != 0)
        return -1;
    mem = mmap(NULL, (PAGES_MAX + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fds.fd[0], 0);
    if (mem == MAP_FAILED || raw_request(&many[0], &msg) != 0)
        return -1;
    memset(mem, 1, (PAGES_MAX + 1) * PAGE);
    msg = make_registration(1);
    return -raw_request(&many[0], &msg);
}

static void test_user_with_all_its_pages_may_register_no_more(void **state)
{
    (void)state;
    assert_int_equal(ask_stranger(body_fills_its_space), ENOSPC);
}

#define PRIVATE(name)     cmocka_unit_test_setup_teardown(name, start, stop)
#define LIMITED(name)     cmocka_unit_test_setup_teardown(name, start_limited, stop_shared)
#define WITH(setup, name) cmocka_unit_test_setup_teardown(name, setup, stop_shared)
#define IMPATIENT(name)   cmocka_unit_test_setup_teardown(name, start_impatient, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        PRIVATE(test_stranger_is_told_that_it_is_refused),
        PRIVATE(test_idle_connections_of_strangers_take_nothing_from_the_job),
        PRIVATE(test_owner_of_a_domain_gets_in_for_as_long_as_it_has_one),
        IMPATIENT(test_connection_that_does_not_say_hello_is_closed),
        LIMITED(test_user_has_as_many_connections_as_its_limit),
        LIMITED(test_user_has_as_many_ports_as_its_limit),
        LIMITED(test_user_has_as_many_registrations_as_its_limit),
        LIMITED(test_user_has_as_many_datagrams_as_its_limit),
        WITH(start_with_few_pages, test_emunic_does_not_grow_for_a_user_beyond_its_pages),
        WITH(start_with_few_pages, test_user_with_all_its_pages_may_register_no_more),
        WITH(start_with_one_region, test_user_has_as_many_regions_of_message_queues_as_its_limit),
    };

    if (geteuid() != 0) {
        printf("1..0 # SKIP only root can become another user\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
