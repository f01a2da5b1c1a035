/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of users who have to rest: the loop is told of those only whose users may work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/user_sockets.h"
#include "emunic/daemon/core/watches.h"

#define MANY 100u /* more than a look takes */

struct connection {
    struct emu_watch watch; /* first: freed by this address */
    int ends[2];
    unsigned n_calls;
};

/* As world/users.c, the rest of which is not needed. */
struct emu_users *emu_users_of(const struct emu_server *of_server)
{
    return of_server->slots[EMU_SERVER_USERS];
}

static struct emu_server server;
static struct emu_users users;
static struct emu_user one;
static struct emu_user other;
static bool rests_after_a_call;

static void take(struct emu_server *of_server, struct emu_watch *watch, uint32_t events)
{
    struct connection *c = (struct connection *)watch;
    char byte;

    (void)of_server;
    (void)events;
    assert_int_equal(read(c->ends[0], &byte, 1), 1);
    c->n_calls++;
    if (rests_after_a_call)
        one.rests_until_ns = UINT64_MAX;
}

static struct connection *connect_user(struct emu_user *user)
{
    struct connection *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->watch.ready = take;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, c->ends), 0);
    assert_int_equal(emu_user_sockets_add(&server, user, c->ends[0], &c->watch), 0);
    return c;
}

static void disconnect(struct emu_user *user, struct connection *c)
{
    int ends[2] = { c->ends[0], c->ends[1] };

    emu_user_sockets_bury(&server, user, ends[0], &c->watch);
    close(ends[0]);
    close(ends[1]);
}

static void ask(const struct connection *c)
{
    assert_int_equal(write(c->ends[1], "?", 1), 1);
}

/* How many watches the server is told of. */
static int look(bool *has_seen_all_out)
{
    return emu_server_call_watches(&server, 0, NULL, has_seen_all_out);
}

static int start(void **state)
{
    (void)state;
    memset(&server, 0, sizeof(server));
    memset(&users, 0, sizeof(users));
    memset(&one, 0, sizeof(one));
    memset(&other, 0, sizeof(other));
    rests_after_a_call = false;
    LIST_INIT(&users.list);
    users.n = 2;
    server.slots[EMU_SERVER_USERS] = &users;
    assert_int_equal(emu_server_watches_create(&server), 0);
    assert_int_equal(emu_user_sockets_create(&server), 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    assert_null(one.sockets);
    assert_null(other.sockets);
    emu_user_sockets_destroy(&server);
    emu_server_watches_destroy(&server);
    return 0;
}

static void test_resting_user_is_not_heard_and_wakes_nobody(void **state)
{
    struct connection *of_one[] = { connect_user(&one), connect_user(&one) };
    struct connection *of_other = connect_user(&other);
    bool has_seen_all;

    (void)state;
    one.rests_until_ns = UINT64_MAX;
    ask(of_one[0]);
    ask(of_one[1]);
    ask(of_other);
    (void)look(&has_seen_all); /* sees that it rests */
    assert_int_equal(look(&has_seen_all), 0);
    assert_int_equal(of_one[0]->n_calls + of_one[1]->n_calls, 0);
    assert_int_equal(of_other->n_calls, 1);
    ask(of_one[0]);
    assert_int_equal(look(&has_seen_all), 0);
    disconnect(&one, of_one[0]);
    disconnect(&one, of_one[1]);
    disconnect(&other, of_other);
}

static void test_rest_begins_between_two_connections(void **state)
{
    struct connection *of_one[] = { connect_user(&one), connect_user(&one), connect_user(&one) };
    bool has_seen_all;

    (void)state;
    rests_after_a_call = true;
    for (unsigned i = 0; i < 3; i++)
        ask(of_one[i]);
    for (unsigned n = 1; n <= 3; n++) {
        one.rests_until_ns = 0;
        emu_user_sockets_resume(&server);
        (void)look(&has_seen_all);
        assert_int_equal(of_one[0]->n_calls + of_one[1]->n_calls + of_one[2]->n_calls, n);
        assert_int_equal(look(&has_seen_all), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(of_one[i]->n_calls, 1); /* each has had its turn */
        disconnect(&one, of_one[i]);
    }
}

static void test_user_is_heard_again_after_its_rest(void **state)
{
    struct connection *c = connect_user(&one);
    bool has_seen_all;

    (void)state;
    assert_true(emu_user_sockets_next_ns(&server) == UINT64_MAX);
    one.rests_until_ns = UINT64_MAX - 1;
    ask(c);
    (void)look(&has_seen_all);
    assert_true(emu_user_sockets_next_ns(&server) == UINT64_MAX - 1);
    emu_user_sockets_resume(&server); /* too early */
    assert_int_equal(look(&has_seen_all), 0);
    one.rests_until_ns = emu_clock_ns();
    emu_user_sockets_resume(&server);
    assert_int_equal(look(&has_seen_all), 1);
    assert_int_equal(c->n_calls, 1);
    assert_true(emu_user_sockets_next_ns(&server) == UINT64_MAX);
    disconnect(&one, c);
}

static void test_nobody_rests_once_there_is_one_user(void **state)
{
    struct connection *c = connect_user(&one);
    bool has_seen_all;

    (void)state;
    one.rests_until_ns = UINT64_MAX;
    ask(c);
    (void)look(&has_seen_all);
    users.n = 1;
    emu_user_sockets_resume(&server);
    (void)look(&has_seen_all);
    assert_int_equal(c->n_calls, 1);
    disconnect(&one, c);
}

static void test_look_tells_whether_all_were_heard(void **state)
{
    struct connection *all[MANY];
    unsigned n_calls = 0;
    bool has_seen_all;

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        all[i] = connect_user(&one);
        ask(all[i]);
    }
    (void)look(&has_seen_all);
    assert_false(has_seen_all);
    (void)look(&has_seen_all);
    assert_true(has_seen_all);
    for (unsigned i = 0; i < MANY; i++) {
        n_calls += all[i]->n_calls;
        disconnect(&one, all[i]);
    }
    assert_int_equal(n_calls, MANY);
}

static void test_paused_user_may_leave(void **state)
{
    struct connection *c = connect_user(&one);
    bool has_seen_all;

    (void)state;
    one.rests_until_ns = UINT64_MAX;
    ask(c);
    (void)look(&has_seen_all);
    disconnect(&one, c);
    assert_true(emu_user_sockets_next_ns(&server) == UINT64_MAX);
    assert_int_equal(look(&has_seen_all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_resting_user_is_not_heard_and_wakes_nobody, start, stop),
        cmocka_unit_test_setup_teardown(test_rest_begins_between_two_connections, start, stop),
        cmocka_unit_test_setup_teardown(test_user_is_heard_again_after_its_rest, start, stop),
        cmocka_unit_test_setup_teardown(test_nobody_rests_once_there_is_one_user, start, stop),
        cmocka_unit_test_setup_teardown(test_look_tells_whether_all_were_heard, start, stop),
        cmocka_unit_test_setup_teardown(test_paused_user_may_leave, start, stop),
    };

    return cmocka_run_group_tests_name("user_sockets", tests, NULL, NULL);
}
