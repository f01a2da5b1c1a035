/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of an address in a second, and the kernel's filter for those beyond. The filter is tried with datagrams
 * on loopback: what is sent there has arrived, or was dropped, when send() returns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/transport/caller_rate.h"

#define SECOND 1000000000ull
#define N      4u

static struct emu_caller_rate rate;

static void address_of(const char *text, uint8_t out[EMU_CALLER_BYTES])
{
    memset(out, 0, EMU_CALLER_BYTES);
    if (strchr(text, ':')) {
        assert_int_equal(inet_pton(AF_INET6, text, out), 1);
    } else {
        out[10] = out[11] = 0xff;
        assert_int_equal(inet_pton(AF_INET, text, out + 12), 1);
    }
}

static enum emu_caller_verdict begins(const char *text, uint64_t now_ns)
{
    uint8_t address[EMU_CALLER_BYTES];

    address_of(text, address);
    return emu_caller_begins(&rate, address, now_ns);
}

static void proves(const char *text)
{
    uint8_t address[EMU_CALLER_BYTES];

    address_of(text, address);
    emu_caller_proves(&rate, address);
}

static void shut(const char *text, uint64_t now_ns)
{
    enum emu_caller_verdict verdict;

    while ((verdict = begins(text, now_ns)) == EMU_CALLER_WELCOME)
        ;
    assert_int_equal(verdict, EMU_CALLER_SHUT);
}

static int begin(void **state)
{
    (void)state;
    rate = (struct emu_caller_rate){ .per_second = N };
    return 0;
}

static void test_address_may_begin_its_number_in_a_second(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_WELCOME);
    assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_SHUT);
    assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_TOO_MANY);
    assert_int_equal(begins("10.0.0.2", SECOND), EMU_CALLER_WELCOME);
    assert_int_equal(begins("2001:db8::1", SECOND), EMU_CALLER_WELCOME);
}

static void test_next_second_lets_it_in_again(void **state)
{
    (void)state;
    assert_true(emu_caller_next_ns(&rate) == UINT64_MAX);
    shut("10.0.0.1", SECOND);
    assert_true(emu_caller_next_ns(&rate) == 2 * SECOND);
    assert_false(emu_caller_second_is_over(&rate, 2 * SECOND - 1));
    assert_int_equal(begins("10.0.0.1", 2 * SECOND - 1), EMU_CALLER_TOO_MANY);
    assert_true(emu_caller_second_is_over(&rate, 2 * SECOND));
    assert_true(emu_caller_next_ns(&rate) == UINT64_MAX);
    assert_int_equal(begins("10.0.0.1", 2 * SECOND), EMU_CALLER_WELCOME);
}

static void test_who_proves_the_key_is_not_counted_and_may_begin_more(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100 * N; i++) {
        assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_WELCOME);
        proves("10.0.0.1");
    }
    for (unsigned i = 0; i < N * EMU_CALLER_KNOWN; i++)
        assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_WELCOME);
    assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_SHUT);
}

static void name_number(unsigned i, char text[INET_ADDRSTRLEN])
{
    struct in_addr in = { .s_addr = htonl(0x0a010000u + i) };

    assert_non_null(inet_ntop(AF_INET, &in, text, INET_ADDRSTRLEN));
}

/* Those without a place of their own share one number, and a known address keeps its place. */
static void test_more_addresses_than_places(void **state)
{
    char text[INET_ADDRSTRLEN];
    unsigned n = 0;

    (void)state;
    assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_WELCOME);
    proves("10.0.0.1");
    for (unsigned i = 0; i < 2 * EMU_CALLERS; i++) {
        name_number(i, text);
        n += begins(text, SECOND) == EMU_CALLER_WELCOME;
    }
    assert_int_equal(n, EMU_CALLERS + N); /* the known one has nothing counted in this second: its place went last */
    assert_true(emu_caller_second_is_over(&rate, 2 * SECOND));
    assert_int_equal(begins("10.2.0.1", 2 * SECOND), EMU_CALLER_WELCOME);
}

static void test_filter_has_room_for_its_number_only(void **state)
{
    struct sock_filter program[EMU_CALLER_FILTER];
    char text[INET6_ADDRSTRLEN];

    (void)state;
    for (unsigned i = 0; i < EMU_CALLERS_SHUT; i++) {
        struct in6_addr in = { .s6_addr = { 0x20, 1, [15] = (uint8_t)i } };

        assert_non_null(inet_ntop(AF_INET6, &in, text, sizeof(text)));
        shut(text, SECOND);
    }
    assert_in_range(emu_caller_filter(&rate, program), 9 * EMU_CALLERS_SHUT, EMU_CALLER_FILTER);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_WELCOME);
    assert_int_equal(begins("10.0.0.1", SECOND), EMU_CALLER_TOO_MANY);
}

/* ---- the kernel ---- */

static int bound(const char *text, struct sockaddr_storage *address_out, socklen_t *length_out)
{
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)address_out;
    struct sockaddr_in *in = (struct sockaddr_in *)address_out;
    int fd;

    memset(address_out, 0, sizeof(*address_out));
    *length_out = strchr(text, ':') ? sizeof(*in6) : sizeof(*in);
    if (strchr(text, ':')) {
        in6->sin6_family = AF_INET6;
        assert_int_equal(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
    } else {
        in->sin_family = AF_INET;
        assert_int_equal(inet_pton(AF_INET, text, &in->sin_addr), 1);
    }
    fd = socket(address_out->ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)address_out, *length_out) < 0) {
        print_message("# no address %s here\n", text);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    assert_int_equal(getsockname(fd, (struct sockaddr *)address_out, length_out), 0);
    return fd;
}

/* Does a datagram from there come through the filter of now? -1: there is no such address. */
static int comes_through(const char *from, const char *to)
{
    struct sock_filter filter[EMU_CALLER_FILTER];
    struct sock_fprog program = { .filter = filter, .len = emu_caller_filter(&rate, filter) };
    struct sockaddr_storage address;
    socklen_t length;
    char byte;
    int receiver = bound(to, &address, &length);
    struct sockaddr_storage own;
    socklen_t own_length;
    int sender = receiver < 0 ? -1 : bound(from, &own, &own_length);
    int r = -1;

    if (sender >= 0) {
        assert_int_equal(setsockopt(receiver, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
        assert_int_equal(sendto(sender, "x", 1, 0, (struct sockaddr *)&address, length), 1);
        r = recv(receiver, &byte, 1, MSG_DONTWAIT) == 1;
        close(sender);
    }
    if (receiver >= 0)
        close(receiver);
    return r;
}

static void test_kernel_drops_who_is_shut_out_and_nobody_else(void **state)
{
    (void)state;
    shut("10.0.0.9", SECOND);
    shut("2001:db8::1", SECOND);
    assert_int_equal(comes_through("127.0.0.2", "127.0.0.1"), 1);
    assert_int_not_equal(comes_through("::1", "::1"), 0);
    shut("127.0.0.2", SECOND);
    assert_int_equal(comes_through("127.0.0.2", "127.0.0.1"), 0);
    assert_int_equal(comes_through("127.0.0.3", "127.0.0.1"), 1);
    assert_int_not_equal(comes_through("::1", "::1"), 0);
    shut("::1", SECOND);
    assert_int_not_equal(comes_through("::1", "::1"), 1);
    assert_int_equal(comes_through("127.0.0.3", "127.0.0.1"), 1);
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_address_may_begin_its_number_in_a_second),
        TEST(test_next_second_lets_it_in_again),
        TEST(test_who_proves_the_key_is_not_counted_and_may_begin_more),
        TEST(test_more_addresses_than_places),
        TEST(test_filter_has_room_for_its_number_only),
        TEST(test_kernel_drops_who_is_shut_out_and_nobody_else),
    };

    return cmocka_run_group_tests_name("caller_rate", tests, NULL, NULL);
}
