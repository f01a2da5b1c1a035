/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The status of a machine of several hosts: whichever is asked tells of all, and says what it lacks. Node and host have
 * the same number. In the second half the third host is a process of the test, which answers as it likes.
 */
#include <jansson.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "emunic/base/socket.h"
#include "tests/common/fake_host.h"
#include "tests/common/gni.h"

#define N_HOSTS    3u
#define FAKE       2u
#define TIMEOUT_MS 3000u

static struct fx fx;
static struct gx_side sides[N_HOSTS];
static unsigned n_sides;

static json_t *parse(char *text)
{
    json_t *report = text ? json_loads(text, 0, NULL) : NULL;

    free(text);
    assert_non_null(report);
    return report;
}

static json_t *status_at(unsigned host)
{
    struct fx view = fx;

    if (host > 0)
        view.admin = fx.hosts[host].admin;
    return parse(fx_report(&view, EMU_MSG_STATUS));
}

static json_int_t number_of(const json_t *object, const char *key)
{
    assert_true(json_is_integer(json_object_get(object, key)));
    return json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    assert_true(json_is_string(json_object_get(object, key)));
    return json_string_value(json_object_get(object, key));
}

static const json_t *host_of(const json_t *report, unsigned host)
{
    return json_array_get(json_object_get(report, "hosts"), host);
}

/* Ports of the domain of all hosts that are on a host. */
static unsigned ports_on(const json_t *report, unsigned host)
{
    const json_t *domain = json_array_get(json_object_get(report, "domains"), 0);
    const json_t *port;
    unsigned n = 0;
    size_t i;

    json_array_foreach(json_object_get(domain, "ports"), i, port)
        n += number_of(port, "host") == host;
    return n;
}

static void open_sides(unsigned n)
{
    for (n_sides = 0; n_sides < n; n_sides++)
        gx_open(&sides[n_sides], &fx, n_sides, 10 + n_sides, 0);
}

static void start_machine(unsigned timeout_ms)
{
    struct fx_options options = { .n_hosts = N_HOSTS, .timeout_ms = timeout_ms };

    fx_start(&fx, &options);
    open_sides(N_HOSTS);
}

static int start(void **state)
{
    (void)state;
    start_machine(TIMEOUT_MS);
    return 0;
}

static int start_patient(void **state)
{
    (void)state;
    start_machine(60000);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    while (n_sides > 0)
        gx_close(&sides[--n_sides]);
    return fx_stop(&fx);
}

/* ---- emunics ---- */

/* What must be the same: all but numbers of the host itself, and what went between it and others. */
static json_t *picture_at(unsigned host)
{
    static const char *const keys[] = { "name", "answer", "pid", "processors", "why", "unreached" };
    json_t *report = status_at(host);
    json_t *picture = json_pack("{s[] sO}", "hosts", "domains", json_object_get(report, "domains"));
    json_t *item;
    size_t i;

    json_array_foreach(json_object_get(picture, "domains"), i, item)
        json_object_del(item, "domain");
    json_array_foreach(json_object_get(report, "hosts"), i, item) {
        json_t *kept = json_object();

        for (unsigned k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
            json_object_set(kept, keys[k], json_object_get(item, keys[k]));
        json_array_append_new(json_object_get(picture, "hosts"), kept);
    }
    assert_null(json_object_get(report, "missing_hosts"));
    json_decref(report);
    return picture;
}

static void test_any_host_gives_the_same_picture(void **state)
{
    json_t *picture = picture_at(0);

    (void)state;
    for (unsigned i = 1; i < N_HOSTS; i++) {
        json_t *other = picture_at(i);

        assert_true(json_equal(picture, other));
        json_decref(other);
    }
    json_decref(picture);
}

static void test_ports_of_all_hosts_are_told_with_their_host(void **state)
{
    gni_mem_handle_t handle;
    json_t *report;
    json_t *domain;
    json_t *port;
    size_t i;

    (void)state;
    assert_int_equal(GNI_MemRegister(sides[2].nic, (uint64_t)(uintptr_t)sides[2].mem, 4096, NULL, GNI_MEM_READWRITE,
                                     (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    report = status_at(1);
    domain = json_array_get(json_object_get(report, "domains"), 0);
    assert_int_equal(json_array_size(json_object_get(report, "domains")), 1);
    assert_int_equal(number_of(domain, "members"), N_HOSTS); /* this process, on each host */
    assert_int_equal(number_of(domain, "attached"), N_HOSTS);
    assert_int_equal(json_array_size(json_object_get(domain, "nodes")), 4);
    assert_int_equal(json_array_size(json_object_get(domain, "ports")), N_HOSTS);
    json_array_foreach(json_object_get(domain, "ports"), i, port) {
        assert_int_equal(number_of(port, "host"), i);
        assert_int_equal(number_of(port, "nid"), i);
        assert_int_equal(number_of(port, "instance_id"), 10 + i);
        assert_int_equal(number_of(port, "pid"), getpid());
        assert_int_equal(number_of(port, "queues"), 2);
        assert_int_equal(number_of(port, "memory_domains"), i == 2 ? 2 : 1);
        assert_int_equal(number_of(port, "registered_bytes"), GX_BYTES + (i == 2 ? 4096 : 0));
    }
    for (unsigned h = 0; h < N_HOSTS; h++) {
        assert_int_equal(number_of(host_of(report, h), "pid"), fx.hosts[h].daemon);
        assert_string_equal(text_of(host_of(report, h), "answer"), "whole");
        assert_string_equal(text_of(host_of(report, h), "state"), h == 1 ? "here" : "up");
    }
    json_decref(report);
    assert_int_equal(GNI_MemDeregister(sides[2].nic, &handle), GNI_RC_SUCCESS);
}

static void test_domain_of_one_host_is_told_with_it(void **state)
{
    struct fx alone = fx;
    struct emu_session session;
    json_t *report;
    json_t *domain;

    (void)state;
    alone.n_hosts = 1;
    alone.n_ranks = 2;
    strcpy(alone.server, fx.hosts[2].server);
    assert_int_equal(fx_add_domain(&alone, 78, 0x78, geteuid(), 0, &session), 0);
    report = status_at(0);
    domain = json_array_get(json_object_get(report, "domains"), 1);
    assert_int_equal(json_array_size(json_object_get(report, "domains")), 2);
    assert_int_equal(number_of(domain, "cookie"), 0x78);
    assert_int_equal(number_of(domain, "number"), 0);
    assert_int_equal(number_of(domain, "host"), 2);
    assert_int_equal(json_array_size(json_object_get(domain, "nodes")), 2);
    json_decref(report);
    fx_end_domain(&session);
}

static void test_lost_host_is_named_and_the_others_are_told(void **state)
{
    (void)state;
    fx_kill_host(&fx, 2);
    for (unsigned i = 0; i < 2; i++) {
        json_t *report;

        fx_await_host(&fx, i, 2, false);
        report = status_at(i);
        assert_string_equal(json_string_value(json_array_get(json_object_get(report, "missing_hosts"), 0)), "host2");
        assert_string_equal(text_of(host_of(report, 2), "state"), "down");
        assert_string_equal(text_of(host_of(report, 2), "answer"), "none");
        assert_string_equal(json_string_value(json_array_get(json_object_get(host_of(report, i), "unreached"), 0)),
                            "host2");
        assert_int_equal(ports_on(report, 0), 1);
        assert_int_equal(ports_on(report, 1), 1);
        assert_int_equal(ports_on(report, 2), 0);
        json_decref(report);
    }
}

/* One host that is asked asks another for one report at a time. */
static void test_reports_that_are_wanted_at_once_all_come(void **state)
{
    static const uint16_t types[] = { EMU_MSG_STATUS, EMU_MSG_LINKS, EMU_MSG_STATUS, EMU_MSG_FAULTS, EMU_MSG_STATUS };
    enum { N = sizeof(types) / sizeof(types[0]) };
    struct emu_session sessions[N + 1];

    (void)state;
    for (unsigned i = 0; i < N + 1; i++)
        assert_int_equal(emu_session_open(&sessions[i], fx.server, EMU_SOCKET_ADMIN), 0);
    kill(fx.hosts[1].daemon, SIGSTOP);
    for (unsigned i = 0; i < N + 1; i++) {
        struct emu_msg msg = { .magic = EMU_MSG_MAGIC,
                               .abi_version = EMU_ABI_VERSION,
                               .type = i < N ? types[i] : EMU_MSG_LINKS };

        assert_int_equal(emu_msg_send(sessions[i].fd, &msg, NULL, 0), 0);
    }
    emu_session_close(&sessions[N]); /* it waits no longer */
    kill(fx.hosts[1].daemon, SIGCONT);
    for (unsigned i = 0; i < N; i++) {
        struct emu_msg msg;
        struct emu_fds fds;
        json_t *report;

        assert_int_equal(emu_msg_receive(sessions[i].fd, &msg, &fds), 0);
        assert_int_equal(msg.result, 0);
        report = json_loadfd(fds.fd[0], 0, NULL);
        assert_non_null(report);
        assert_null(json_object_get(report, "missing_hosts"));
        assert_non_null(json_object_get(report, types[i] == EMU_MSG_LINKS ? "links" : "domains"));
        json_decref(report);
        emu_fds_close(&fds);
        emu_session_close(&sessions[i]);
    }
}

/* ---- a host that is none ---- */

#define HOST_ROW           EMU_HOST_ROW_HOST, 4711, 1000, 2, 1
#define A_LETTER           ((uint64_t)'a')
#define OWN_DOMAIN(number) EMU_HOST_ROW_DOMAIN, number, 5, 70, 0x70, 0, 3, 1, 1, 0, 0, 0
#define COMMON             UINT64_MAX /* in these lists: the number of the domain of all hosts */
#define PORT_COUNTS        9, 0, 0, 3, 0, 2, 0, 8, 64, 8, 0, 1, 4096, 1, 8192, 0, 0
#define A_PORT(index, nid) EMU_HOST_ROW_PORT, index, nid, 17, 4712, PORT_COUNTS
#define WORDS_MAX          64u
#define N_LONG             400u /* domains of its own, in a list of several messages */

struct rows {
    const char *what;
    uint32_t n;
    uint64_t words[WORDS_MAX];
};
#define LIST(what, ...)                                                                                                \
    {                                                                                                                  \
        what, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8,                                                                 \
        {                                                                                                              \
            __VA_ARGS__                                                                                                \
        }                                                                                                              \
    }

static const struct rows nonsense[] = {
    { "nothing", 0, { 0 } },
    LIST("no host first", OWN_DOMAIN(0)),
    LIST("a host that ends early", EMU_HOST_ROW_HOST, 1, 2),
    LIST("a number that is none", EMU_HOST_ROW_HOST, 1, 2, 3, 1ull << 63),
    LIST("a host twice", HOST_ROW, HOST_ROW),
    LIST("a kind that nobody knows", HOST_ROW, 4711),
    LIST("a row of another report", HOST_ROW, EMU_HOST_ROW_LINK, 1, 2, 3),
    LIST("a text that nobody knows", HOST_ROW, EMU_HOST_ROW_TEXT, EMU_HOST_TEXTS, 1, A_LETTER),
    LIST("a text that is too long", HOST_ROW, EMU_HOST_ROW_TEXT, 0, EMU_HOST_TEXT_MAX + 1, A_LETTER),
    LIST("a text that ends early", HOST_ROW, EMU_HOST_ROW_TEXT, 0, 9, 0x6161616161616161),
    LIST("a text with an escape", HOST_ROW, EMU_HOST_ROW_TEXT, 0, 1, 27),
    LIST("a host that is none", HOST_ROW, EMU_HOST_ROW_UNREACHED, N_HOSTS),
    LIST("itself", HOST_ROW, EMU_HOST_ROW_UNREACHED, FAKE),
    LIST("one host twice", HOST_ROW, EMU_HOST_ROW_UNREACHED, 1, EMU_HOST_ROW_UNREACHED, 1),
    LIST("a common domain twice", HOST_ROW, OWN_DOMAIN(COMMON), OWN_DOMAIN(COMMON)),
    LIST("a node of no domain", HOST_ROW, EMU_HOST_ROW_NODE, 2, 0),
    LIST("a node of another host", HOST_ROW, OWN_DOMAIN(COMMON), EMU_HOST_ROW_NODE, 1, 0),
    LIST("a node that the domain does not have", HOST_ROW, OWN_DOMAIN(COMMON), EMU_HOST_ROW_NODE, 700, 0),
    LIST("a node that the machine does not have", HOST_ROW, OWN_DOMAIN(0), EMU_HOST_ROW_NODE, 768, 0),
    LIST("a node twice", HOST_ROW, OWN_DOMAIN(0), EMU_HOST_ROW_NODE, 7, 0, EMU_HOST_ROW_NODE, 7, 0),
    LIST("counts of no node", HOST_ROW, OWN_DOMAIN(COMMON), EMU_HOST_ROW_ATOMICS, 9, 8, 7, 6),
    LIST("counts of a port", HOST_ROW, OWN_DOMAIN(COMMON), EMU_HOST_ROW_NODE, 2, 0, A_PORT(0, 2), EMU_HOST_ROW_ATOMICS,
         9, 8, 7, 6),
    LIST("counts that are too few", HOST_ROW, OWN_DOMAIN(COMMON), EMU_HOST_ROW_NODE, 2, 0, EMU_HOST_ROW_ATOMICS, 9, 8),
    LIST("a port of no domain", HOST_ROW, A_PORT(0, 2)),
    LIST("a port on another host", HOST_ROW, OWN_DOMAIN(COMMON), A_PORT(0, 0)),
    LIST("a port twice", HOST_ROW, OWN_DOMAIN(COMMON), A_PORT(1, 2), A_PORT(1, 2)),
    LIST("a port beyond all", HOST_ROW, OWN_DOMAIN(COMMON), A_PORT(EMU_PORTS_MAX, 2)),
};

static const struct rows good[] = {
    LIST("its own", HOST_ROW, EMU_HOST_ROW_TEXT, EMU_HOST_TEXT_WHY, 9, 0x6867666564636261, 0x69, OWN_DOMAIN(COMMON),
         EMU_HOST_ROW_NODE, 2, 3, EMU_HOST_ROW_ATOMICS, 9, 8, 7, 6, A_PORT(4, 2)),
    LIST("of a domain that nobody else has", HOST_ROW, OWN_DOMAIN(COMMON - 1), EMU_HOST_ROW_NODE, 2, 0, A_PORT(0, 2)),
    LIST("nothing but that there is too much", EMU_HOST_ROW_TOO_MANY),
};

#define N_NONSENSE (sizeof(nonsense) / sizeof(nonsense[0]))
enum { MODE_SHORT = 0, MODE_NONSENSE = 100, MODE_GOOD = 200, MODE_LONG = 300, MODE_TOO_LONG = 301 };

static struct fake_host *fake;

/* In its process. */
static uint32_t common_number;

static bool answer(struct fake_host *it, uint32_t host, const uint8_t *bytes, uint32_t length, const struct rows *rows)
{
    uint64_t words[WORDS_MAX];

    for (uint32_t i = 0; i < rows->n; i++)
        words[i] = rows->words[i] == COMMON     ? common_number :
                   rows->words[i] == COMMON - 1 ? common_number ^ 1 :
                                                  rows->words[i];
    return fake_host_answer_rows(it->transport, host, bytes, length, words, rows->n);
}

static bool answer_long(struct fake_host *it, uint32_t host, const uint8_t *bytes, uint32_t length, uint32_t n)
{
    static const uint64_t first[] = { HOST_ROW };
    static const uint64_t domain[] = { OWN_DOMAIN(0) };
    static uint64_t words[EMU_HOST_STATUS_WORDS_MAX + 1];

    memcpy(words, first, sizeof(first));
    for (uint32_t i = 0; i < N_LONG; i++)
        memcpy(words + 5 + 12 * i, domain, sizeof(domain));
    return fake_host_answer_rows(it->transport, host, bytes, length, words, n);
}

static bool take(struct fake_host *it, uint32_t host, const uint8_t *bytes, uint32_t length)
{
    unsigned mode = atomic_load(&it->mode);
    struct emu_host_domain d;
    struct emu_host_head head;

    if (!emu_host_head_parse(bytes, length, &head))
        return true;
    if (head.kind == EMU_HOST_DOMAIN && emu_host_domain_parse(bytes, length, &d) && d.op == EMU_HOST_DOMAIN_CREATE)
        common_number = d.domain;
    if (head.kind != EMU_HOST_ADMIN)
        return false;
    /* So that nothing but the status can end its session. */
    if (fake_host_answer_ping(it, host, bytes, length))
        return true;
    if (mode == MODE_LONG)
        return answer_long(it, host, bytes, length, 5 + 12 * N_LONG);
    if (mode == MODE_TOO_LONG)
        return answer_long(it, host, bytes, length, EMU_HOST_STATUS_WORDS_MAX + 1);
    if (mode >= MODE_GOOD)
        return answer(it, host, bytes, length, &good[mode - MODE_GOOD]);
    return mode >= MODE_NONSENSE && answer(it, host, bytes, length, &nonsense[mode - MODE_NONSENSE]);
}

static int start_fake(void **state)
{
    static const struct fake_host_test test = { .take = take };
    struct fx_options options = { .n_hosts = N_HOSTS, .n_absent = 1, .n_ranks = N_HOSTS, .timeout_ms = TIMEOUT_MS };

    (void)state;
    fx_start(&fx, &options);
    fake = fake_host_start(&fx, FAKE, &test);
    fx_await_host(&fx, 0, FAKE, true);
    fx_await_host(&fx, 1, FAKE, true);
    fx_start_domain(&fx);
    open_sides(2);
    return 0;
}

static int stop_fake(void **state)
{
    assert_int_equal(fake_host_stop(fake), 0);
    return stop(state);
}

static json_t *status_in(unsigned mode, unsigned host)
{
    atomic_store(&fake->mode, mode);
    return status_at(host);
}

static void expect_the_others(const json_t *report)
{
    assert_int_equal(ports_on(report, 0), 1);
    assert_int_equal(ports_on(report, 1), 1);
    for (unsigned i = 0; i < 2; i++)
        assert_string_equal(text_of(host_of(report, i), "answer"), "whole");
}

static bool is_missing(const json_t *report)
{
    const char *name = json_string_value(json_array_get(json_object_get(report, "missing_hosts"), 0));

    return name && strcmp(name, "host2") == 0;
}

static void test_what_a_host_tells_is_shown_as_its(void **state)
{
    json_t *report = status_in(MODE_GOOD, 1);
    const json_t *domain = json_array_get(json_object_get(report, "domains"), 0);
    const json_t *port = json_array_get(json_object_get(domain, "ports"), 2);

    (void)state;
    expect_the_others(report);
    assert_false(is_missing(report));
    assert_string_equal(text_of(host_of(report, FAKE), "why"), "abcdefghi");
    assert_int_equal(number_of(host_of(report, FAKE), "pid"), 4711);
    assert_int_equal(number_of(domain, "members"), 3);
    assert_int_equal(number_of(json_array_get(json_object_get(domain, "nodes"), 2), "memory_domains_on_node"), 3);
    assert_int_equal(number_of(port, "host"), FAKE);
    assert_int_equal(number_of(port, "port"), 4);
    assert_int_equal(number_of(port, "nid"), 2);
    assert_int_equal(number_of(port, "pid"), 4712);
    assert_int_equal(number_of(port, "commands"), 9);
    assert_int_equal(number_of(port, "tx_bytes"), 64);
    assert_int_equal(number_of(port, "memory_domains_mapped"), 1);
    assert_int_equal(number_of(port, "registered_bytes"), 4096 + 8192);
    json_decref(report);
}

static void test_domain_that_has_ended_here_is_left_out(void **state)
{
    json_t *report = status_in(MODE_GOOD + 1, 0);

    (void)state;
    expect_the_others(report);
    assert_false(is_missing(report));
    assert_int_equal(json_array_size(json_object_get(report, "domains")), 1);
    assert_int_equal(ports_on(report, FAKE), 0);
    json_decref(report);
}

static void test_rows_that_make_no_sense_are_refused_and_named(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_NONSENSE; i++) {
        json_t *before = status_in(MODE_SHORT, 0);
        json_t *report = status_in(MODE_NONSENSE + i, 0);

        if (strcmp(text_of(host_of(report, FAKE), "answer"), "nonsense") != 0)
            fail_msg("%s: %s", nonsense[i].what, text_of(host_of(report, FAKE), "answer"));
        expect_the_others(report);
        assert_true(is_missing(report));
        json_decref(report);
        report = status_in(MODE_SHORT, 0);
        assert_string_equal(text_of(host_of(report, FAKE), "answer"), "whole");
        assert_int_equal(number_of(host_of(report, FAKE), "refused"), number_of(host_of(before, FAKE), "refused") + 1);
        json_decref(report);
        json_decref(before);
    }
}

static void test_long_status_comes_in_parts_and_has_an_end(void **state)
{
    json_t *report = status_in(MODE_LONG, 1);

    (void)state;
    assert_string_equal(text_of(host_of(report, FAKE), "answer"), "whole");
    assert_int_equal(json_array_size(json_object_get(report, "domains")), 1 + N_LONG);
    json_decref(report);
    report = status_in(MODE_GOOD + 2, 1);
    assert_string_equal(text_of(host_of(report, FAKE), "answer"), "too long");
    assert_true(is_missing(report));
    expect_the_others(report);
    json_decref(report);
    report = status_in(MODE_TOO_LONG, 1); /* not taken */
    assert_string_equal(text_of(host_of(report, FAKE), "answer"), "none");
    expect_the_others(report);
    json_decref(report);
}

static void test_host_that_does_not_answer_is_named_and_keeps_its_session(void **state)
{
    json_t *report;

    (void)state;
    atomic_store(&fake->hides_status, true);
    report = status_at(0);
    assert_true(is_missing(report));
    assert_string_equal(text_of(host_of(report, FAKE), "answer"), "none");
    assert_string_equal(text_of(host_of(report, FAKE), "state"), "up");
    expect_the_others(report);
    json_decref(report);
    atomic_store(&fake->hides_status, false);
    report = status_at(0);
    assert_string_equal(text_of(host_of(report, FAKE), "answer"), "whole");
    json_decref(report);
    assert_int_equal(atomic_load(&fake->n_ends), 0);
}

#define machine_test(test) cmocka_unit_test_setup_teardown(test, start, stop)
#define fake_test(test)    cmocka_unit_test_setup_teardown(test, start_fake, stop_fake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        machine_test(test_any_host_gives_the_same_picture),
        machine_test(test_ports_of_all_hosts_are_told_with_their_host),
        machine_test(test_domain_of_one_host_is_told_with_it),
        machine_test(test_lost_host_is_named_and_the_others_are_told),
        cmocka_unit_test_setup_teardown(test_reports_that_are_wanted_at_once_all_come, start_patient, stop),
        fake_test(test_what_a_host_tells_is_shown_as_its),
        fake_test(test_domain_that_has_ended_here_is_left_out),
        fake_test(test_rows_that_make_no_sense_are_refused_and_named),
        fake_test(test_long_status_comes_in_parts_and_has_an_end),
        fake_test(test_host_that_does_not_answer_is_named_and_keeps_its_session),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    return cmocka_run_group_tests_name("hosts_status", tests, NULL, NULL);
}
