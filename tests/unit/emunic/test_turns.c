/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns of users, in a time of the test's own: emunic here does one thing after the other, each of which takes as long
 * as the test says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/daemon/world/turns.h"

#define SECOND 1000000000ull

/* A user that always wants something, or asks again a while after each answer. */
struct actor {
    struct emu_user user;
    uint64_t takes_ns; /* each time */
    uint64_t thinks_ns;
    uint64_t wants_ns; /* since when */
    uint64_t n_done;
};

static struct emu_users users;
static struct actor actors[4];
static unsigned n_actors;

static int begin(void **state)
{
    (void)state;
    memset(&users, 0, sizeof(users));
    memset(actors, 0, sizeof(actors));
    n_actors = 0;
    LIST_INIT(&users.list);
    return 0;
}

static struct actor *add(uint64_t takes_ns, uint64_t thinks_ns)
{
    struct actor *actor = &actors[n_actors++];

    actor->takes_ns = takes_ns;
    actor->thinks_ns = thinks_ns;
    LIST_INSERT_HEAD(&users.list, &actor->user, link);
    users.n++;
    return actor;
}

/* Round after round, for a second. */
static void run(void)
{
    uint64_t now_ns = 1;

    while (now_ns < SECOND) {
        uint64_t before_ns = now_ns;

        for (unsigned i = 0; i < n_actors; i++) {
            struct actor *a = &actors[i];

            if (a->wants_ns > now_ns || (emu_users_compete(&users) && !emu_user_may_work(&a->user, now_ns)))
                continue;
            now_ns += a->takes_ns;
            a->n_done++;
            a->wants_ns = now_ns + a->thinks_ns;
            if (emu_users_compete(&users))
                emu_user_worked(&users, &a->user, now_ns - a->takes_ns, now_ns);
        }
        if (now_ns == before_ns)
            now_ns += 100; /* an empty round */
    }
}

static void test_lonely_user_never_rests(void **state)
{
    struct actor *a = add(5000, 0);

    (void)state;
    run();
    assert_in_range(a->n_done, SECOND / 5000 - 1, SECOND / 5000 + 1);
}

/* A ping-pong beside one who keeps emunic busy with small and with large things. */
static void test_light_user_is_at_most_half_as_slow_again(void **state)
{
    static const uint64_t sizes_ns[] = { 3000, 16000, 64000, 500000 };
    uint64_t alone;

    (void)state;
    add(700, 2000);
    run();
    alone = actors[0].n_done;
    for (unsigned i = 0; i < sizeof(sizes_ns) / sizeof(sizes_ns[0]); i++) {
        begin(NULL);
        add(700, 2000);
        add(sizes_ns[i], 0);
        run();
        assert_true(actors[0].n_done * 3 / 2 >= alone * 98 / 100);
        assert_true(actors[1].n_done * sizes_ns[i] >= SECOND / 5); /* who gets what is left */
    }
}

static void test_heavy_users_share_equally_whatever_they_want(void **state)
{
    (void)state;
    add(1000, 0);
    add(50000, 0);
    run();
    assert_in_range(actors[0].n_done * 1000, SECOND * 4 / 10, SECOND * 6 / 10);
    assert_in_range(actors[1].n_done * 50000, SECOND * 4 / 10, SECOND * 6 / 10);
}

static void test_three_heavy_users_share_equally(void **state)
{
    (void)state;
    add(1000, 0);
    add(50000, 0);
    add(7000, 0);
    run();
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(actors[i].n_done * actors[i].takes_ns, SECOND * 25 / 100, SECOND * 42 / 100);
}

/* One who comes late does not make up for all the time that it was away. */
static void test_user_who_was_away_shares_from_now_on(void **state)
{
    (void)state;
    add(10000, 0);
    add(10000, 0)->wants_ns = SECOND / 2;
    run();
    assert_in_range(actors[1].n_done * 10000, SECOND * 2 / 10, SECOND * 32 / 100);
}

static void test_heavy_user_has_all_while_nobody_else_wants_anything(void **state)
{
    (void)state;
    add(10000, 0);
    add(700, SECOND / 10);
    run();
    assert_true(actors[0].n_done * 10000 > SECOND * 95 / 100);
}

static void test_ports_of_a_user_have_their_turns_in_turn(void **state)
{
    struct emu_user *heavy = &add(0, 0)->user;
    struct emu_user *light = &add(0, 0)->user;
    uint32_t turns[8] = { 0 };
    unsigned served[8] = { 0 };
    uint64_t now_ns = 1;

    (void)state;
    for (unsigned round = 0; round < 10000; round++) {
        emu_users_begin_round(&users);
        emu_user_worked(&users, light, now_ns, now_ns + 1);
        for (unsigned i = 0; i < 8; i++) {
            if (emu_user_must_wait(heavy, &turns[i], now_ns))
                continue;
            served[i]++;
            now_ns += 1000;
            emu_user_worked(&users, heavy, now_ns - 1000, now_ns);
        }
        now_ns += 100;
    }
    for (unsigned i = 0; i < 8; i++) {
        assert_true(served[i] > 10);
        assert_in_range(served[i], served[0] - 1, served[0] + 1);
    }
}

/* Each rest wakes somebody at its end. */
static void test_small_things_are_done_together_between_rests(void **state)
{
    struct emu_user *heavy = &add(0, 0)->user;
    struct emu_user *light = &add(0, 0)->user;
    uint64_t now_ns = 1;
    unsigned n_rests = 0;
    unsigned n_done = 0;

    (void)state;
    while (now_ns < SECOND) {
        emu_user_worked(&users, light, now_ns, now_ns + 1);
        if (!emu_user_may_work(heavy, now_ns)) {
            n_rests++;
            now_ns = heavy->rests_until_ns;
        }
        now_ns += 3000;
        n_done++;
        emu_user_worked(&users, heavy, now_ns - 3000, now_ns);
    }
    assert_true(n_rests > 1000);
    assert_true(n_done > 10 * n_rests);
    assert_true(n_done < 40 * n_rests); /* but the light one does not wait for long */
}

static void test_strangers_rest_as_a_user_does_and_are_forgotten(void **state)
{
    struct emu_user *user = &add(0, 0)->user;

    (void)state;
    assert_false(emu_users_compete(&users));
    emu_user_worked(&users, user, 1000, 2000);
    emu_users_meet_strangers(&users, 2000, 102000);
    assert_true(emu_users_compete(&users));
    assert_false(emu_user_may_work(&users.strangers, 102000));
    emu_users_forget_strangers(&users, 103000);
    assert_true(emu_users_compete(&users));
    assert_true(emu_user_may_work(&users.strangers, 402000));
    emu_users_forget_strangers(&users, 50000000);
    assert_false(emu_users_compete(&users));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_lonely_user_never_rests, begin),
        cmocka_unit_test_setup(test_light_user_is_at_most_half_as_slow_again, begin),
        cmocka_unit_test_setup(test_heavy_users_share_equally_whatever_they_want, begin),
        cmocka_unit_test_setup(test_three_heavy_users_share_equally, begin),
        cmocka_unit_test_setup(test_user_who_was_away_shares_from_now_on, begin),
        cmocka_unit_test_setup(test_heavy_user_has_all_while_nobody_else_wants_anything, begin),
        cmocka_unit_test_setup(test_ports_of_a_user_have_their_turns_in_turn, begin),
        cmocka_unit_test_setup(test_small_things_are_done_together_between_rests, begin),
        cmocka_unit_test_setup(test_strangers_rest_as_a_user_does_and_are_forgotten, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
