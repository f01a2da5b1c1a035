/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A launcher's domain is made when all its hosts reach each other. Of three hosts the last is a process of the test:
 * the head has a session with it from the beginning, the second host when the test wants. Node and host have the same
 * number.
 */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "emunic/base/socket.h"
#include "tests/common/fake_host.h"

#define LATE 2u

static struct fx fx;
static struct fake_host *late;
static int log_fd;
static int own_stderr;

static int start_machine(unsigned timeout_ms)
{
    static const struct fake_host_test test = { .held_hellos = 1u << 1, .take = fake_host_answer_ping };
    struct fx_options options = { .n_hosts = 3, .n_absent = 1, .n_ranks = 3, .timeout_ms = timeout_ms };

    /* What the emunics log can be read. */
    log_fd = memfd_create("log", MFD_CLOEXEC);
    own_stderr = dup(STDERR_FILENO);
    if (log_fd < 0 || own_stderr < 0 || dup2(log_fd, STDERR_FILENO) < 0)
        return -1;
    fx_start(&fx, &options);
    late = fake_host_start(&fx, LATE, &test);
    dup2(own_stderr, STDERR_FILENO);
    fx_await_host(&fx, 0, LATE, true);
    return 0;
}

static int start_patient(void **state)
{
    (void)state;
    return start_machine(60000);
}

static int start_hasty(void **state)
{
    (void)state;
    return start_machine(1500);
}

static int stop(void **state)
{
    char text[4096] = "";

    (void)state;
    assert_int_equal(fake_host_stop(late), 0);
    assert_int_equal(fx_stop(&fx), 0);
    if (pread(log_fd, text, sizeof(text) - 1, 0) > 0)
        fprintf(stderr, "%s", text);
    close(log_fd);
    close(own_stderr);
    return 0;
}

static json_t *status_at(unsigned host)
{
    struct fx view = fx;
    json_t *report;
    char *text;

    if (host > 0)
        view.admin = fx.hosts[host].admin;
    text = fx_report(&view, EMU_MSG_STATUS);
    report = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    assert_non_null(report);
    return report;
}

static size_t domains_at(unsigned host)
{
    json_t *report = status_at(host);
    size_t n = json_array_size(json_object_get(report, "domains"));

    json_decref(report);
    return n;
}

static bool is_up_at(unsigned host)
{
    json_t *report = status_at(host);
    const json_t *other = json_array_get(json_object_get(report, "hosts"), LATE);
    bool is_up = strcmp(json_string_value(json_object_get(other, "state")), "up") == 0;

    json_decref(report);
    return is_up;
}

/* Asks the head, and waits for nothing: a rank on each of `n_ranks` hosts. */
static void ask_for_domain(struct emu_session *session, uint32_t n_ranks)
{
    struct emu_msg msg = { .magic = EMU_MSG_MAGIC,
                           .abi_version = EMU_ABI_VERSION,
                           .type = EMU_MSG_DOMAIN_CREATE,
                           .domain = { .ptag = 77,
                                       .cookie = 0x77,
                                       .owner_uid = geteuid(),
                                       .n_ranks = n_ranks,
                                       .flags = EMU_DOMAIN_HAS_HOSTS } };
    const uint32_t both[] = { 0, 1, 0, 1 };
    const uint32_t all[] = { 0, 1, 2, 0, 1, 2 };
    ssize_t bytes = (ssize_t)(2 * n_ranks * sizeof(uint32_t));
    int fd = memfd_create("ranks", MFD_CLOEXEC);

    assert_int_equal(emu_session_open(session, fx.server, EMU_SOCKET_ADMIN), 0);
    assert_int_equal(write(fd, n_ranks == 2 ? both : all, (size_t)bytes), bytes);
    assert_int_equal(emu_msg_send(session->fd, &msg, &fd, 1), 0);
    close(fd);
}

/* Each host tells its status after what it has said of the domain, so that has been heard by then. */
static void await_results(void)
{
    assert_int_equal(domains_at(0), 1);
    assert_int_equal(domains_at(1), 1);
}

static bool is_answered(const struct emu_session *session)
{
    struct pollfd p = { .fd = session->fd, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

static char said[256]; /* the text that came with the last answer */

static int result_of(struct emu_session *session)
{
    struct emu_msg msg;
    struct emu_fds fds;

    assert_int_equal(emu_msg_receive(session->fd, &msg, &fds), 0);
    memset(said, 0, sizeof(said));
    if (fds.n_fds > 0)
        assert_true(read(fds.fd[0], said, sizeof(said) - 1) > 0);
    emu_fds_close(&fds);
    return msg.result;
}

static void test_domain_is_made_when_the_last_session_is_there(void **state)
{
    struct emu_session session;

    (void)state;
    ask_for_domain(&session, 3);
    await_results();
    assert_false(is_up_at(1));
    assert_false(is_answered(&session));
    atomic_store(&late->holds_hello[1], false);
    assert_int_equal(result_of(&session), 0);
    assert_true(is_up_at(1));
    assert_int_equal(fx_end_domain(&session), 0);
}

static void test_hosts_without_a_node_of_the_domain_are_not_waited_for(void **state)
{
    struct emu_session session;

    (void)state;
    ask_for_domain(&session, 2);
    assert_int_equal(result_of(&session), 0);
    assert_false(is_up_at(1));
    assert_int_equal(fx_end_domain(&session), 0);
}

static void test_session_that_does_not_come_is_an_error_that_names_the_hosts(void **state)
{
    struct emu_session session;
    char text[4096] = "";

    (void)state;
    ask_for_domain(&session, 3);
    assert_int_equal(result_of(&session), -EHOSTUNREACH);
    emu_session_close(&session);
    assert_string_equal(said, "host host1 has had no session with host host2 for 1500 ms\n");
    assert_true(pread(log_fd, text, sizeof(text) - 1, 0) > 0);
    assert_non_null(strstr(text, "a domain cannot be made: host host1 has had no session with host host2"));
    while (domains_at(0) > 0 || domains_at(1) > 0)
        ;
    atomic_store(&late->holds_hello[1], false);
    fx_await_host(&fx, 0, LATE, true);
    fx_await_host(&fx, 1, LATE, true);
    ask_for_domain(&session, 3);
    assert_int_equal(result_of(&session), 0);
    assert_int_equal(fx_end_domain(&session), 0);
}

static void test_launcher_may_go_while_its_domain_waits(void **state)
{
    struct emu_session session;

    (void)state;
    ask_for_domain(&session, 3);
    await_results();
    emu_session_close(&session);
    while (domains_at(0) > 0 || domains_at(1) > 0)
        ;
    atomic_store(&late->holds_hello[1], false);
    fx_await_host(&fx, 1, LATE, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_domain_is_made_when_the_last_session_is_there, start_patient, stop),
        cmocka_unit_test_setup_teardown(test_hosts_without_a_node_of_the_domain_are_not_waited_for, start_patient,
                                        stop),
        cmocka_unit_test_setup_teardown(test_session_that_does_not_come_is_an_error_that_names_the_hosts, start_hasty,
                                        stop),
        cmocka_unit_test_setup_teardown(test_launcher_may_go_while_its_domain_waits, start_patient, stop),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    return cmocka_run_group_tests_name("hosts_late", tests, NULL, NULL);
}
