/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an emunic refuses of another host is counted, and logged with a line a second at most, whatever it is and
 * however much. The other host is a process of the test. Packets are refused below, by the transport: test_transport.c.
 */
#include <jansson.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/daemon_log.h"
#include "tests/common/fake_host.h"
#include "tests/common/gni.h"

#define BAD        2u
#define N_MESSAGES 20000u
#define PER_ROUND  64u

static struct fx fx;
static struct fake_host *bad;
static uint64_t begin_ns;
static struct daemon_log daemons;

/* What the emunics log can be read. */
static void start(const struct fake_host_test *test)
{
    struct fx_options options = { .n_hosts = 3, .n_absent = 1, .n_ranks = 2, .timeout_ms = 30000 };

    daemon_log_begin(&daemons);
    fx_start(&fx, &options);
    fx_start_domain(&fx);
    begin_ns = emu_clock_ns();
    bad = fake_host_start(&fx, BAD, test);
    daemon_log_end(&daemons);
}

/* Errors and warnings that the head has logged. */
static unsigned count_lines(void)
{
    const char *at = daemon_log_text(&daemons);
    unsigned n = 0;
    char head[64];

    snprintf(head, sizeof(head), "emunic[%d]: ", (int)fx.hosts[0].daemon);
    while ((at = strstr(at, head))) {
        at += strlen(head);
        n += strncmp(at, "warn", 4) == 0 || strncmp(at, "error", 5) == 0;
    }
    return n;
}

/* The two emunics work, and the head has not said much. */
static void stop(unsigned lines_at_once)
{
    uint64_t seconds = (emu_clock_ns() - begin_ns) / 1000000000;
    gni_post_descriptor_t *done;
    gni_post_descriptor_t d;
    struct gx_side a;
    struct gx_side b;

    if (getenv("EMU_TEST_LOG"))
        printf("%s", daemon_log_text(&daemons));
    assert_in_range(count_lines(), 1, lines_at_once * (1 + seconds));
    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    gx_connect(&a, &b);
    d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    gx_close(&a);
    gx_close(&b);
    assert_int_equal(fake_host_stop(bad), 0);
    assert_int_equal(fx_stop(&fx), 0);
    daemon_log_close(&daemons);
}

/* The head's view of it. */
static json_int_t refused(bool *is_up_out)
{
    char *text = fx_report(&fx, EMU_MSG_STATUS);
    json_t *report = text ? json_loads(text, 0, NULL) : NULL;
    const json_t *host = json_array_get(json_object_get(report, "hosts"), BAD);
    json_int_t n = json_integer_value(json_object_get(host, "refused"));

    assert_non_null(host);
    *is_up_out = strcmp(json_string_value(json_object_get(host, "state")), "up") == 0;
    json_decref(report);
    free(text);
    return n;
}

/* ---- messages ---- */

static uint32_t n_sent; /* in its process */

/* The n-th way of making no sense. */
static uint32_t make_nonsense(uint8_t message[EMU_HOST_HELLO_BYTES], unsigned n)
{
    struct emu_host_domain d = { .op = EMU_HOST_DOMAIN_RESULT, .value = 5 };
    struct emu_host_hello hello = { .n_hosts = 3, .name = "host2" };
    uint16_t kind = (uint16_t)(n % (EMU_HOST_KINDS + 1)); /* 0 and the last are none */

    emu_host_head_put(message, (enum emu_host_kind)kind, 0);
    if (kind == EMU_HOST_HELLO) /* it has said it */
        emu_host_hello_put(message, &hello);
    if (kind == EMU_HOST_DOMAIN) /* of what nobody has asked */
        emu_host_domain_put(message, &d);
    if (n / (EMU_HOST_KINDS + 1) % 3 == 1)
        message[3]++; /* of another version */
    if (n / (EMU_HOST_KINDS + 1) % 3 == 2)
        return 8 - kind % 8; /* hardly anything */
    return kind == EMU_HOST_HELLO ? EMU_HOST_HELLO_BYTES : kind == EMU_HOST_DOMAIN ? EMU_HOST_DOMAIN_BYTES : 8;
}

static void flood(struct fake_host *it)
{
    uint8_t message[EMU_HOST_HELLO_BYTES];

    if (!it->is_up[0] || it->owes_hello[0])
        return;
    for (unsigned i = 0; i < PER_ROUND && n_sent < N_MESSAGES; i++) {
        if (emu_transport_ops.send(it->transport, 0, message, make_nonsense(message, n_sent)) != EMU_TRANSPORT_OK)
            return;
        n_sent++;
    }
}

static void test_flood_of_messages_that_make_no_sense_makes_a_line_a_second(void **state)
{
    static const struct fake_host_test test = { .take = fake_host_answer_ping, .act = flood };
    bool is_up;

    (void)state;
    start(&test);
    while (refused(&is_up) < N_MESSAGES)
        ;
    assert_int_equal(refused(&is_up), N_MESSAGES);
    assert_true(is_up);
    assert_int_equal(atomic_load(&bad->n_ends), 0);
    stop(2); /* the first answer about a domain is one that was asked for, and an error */
}

/* ---- sessions ---- */

static void say_wrong_hellos(struct fake_host *it)
{
    struct emu_host_hello hello = { .n_hosts = 3, .n_nids = 4711, .name = "\33[2J" };
    uint8_t message[EMU_HOST_HELLO_BYTES];

    emu_host_hello_put(message, &hello);
    for (unsigned i = 0; i < PER_ROUND && it->is_up[0]; i++)
        emu_transport_ops.send(it->transport, 0, message, sizeof(message));
}

static void test_hello_that_does_not_fit_makes_a_line_a_second(void **state)
{
    static const struct fake_host_test test = { .held_hellos = 7, .act = say_wrong_hellos };
    bool is_up;

    (void)state;
    start(&test);
    while (atomic_load(&bad->n_ends) < 2)
        sched_yield();
    assert_true(refused(&is_up) >= 2);
    assert_false(is_up);
    assert_non_null(strstr(daemon_log_text(&daemons),
                           "host host2: calls itself what is no name of 3 hosts, machine of 4711 nodes"));
    assert_null(strchr(daemon_log_text(&daemons), '\33'));
    stop(2); /* what it sends while it is not joined is of nobody */
}

static void test_host_with_another_key_makes_a_line_a_second(void **state)
{
    static const struct fake_host_test test = { .key = "a key that is not of the job" };
    bool is_up;

    (void)state;
    start(&test);
    while (refused(&is_up) < 20)
        ;
    assert_false(is_up);
    stop(2); /* of the host, and of connections of nobody */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flood_of_messages_that_make_no_sense_makes_a_line_a_second),
        cmocka_unit_test(test_hello_that_does_not_fit_makes_a_line_a_second),
        cmocka_unit_test(test_host_with_another_key_makes_a_line_a_second),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    return cmocka_run_group_tests_name("hosts_refusals", tests, NULL, NULL);
}
