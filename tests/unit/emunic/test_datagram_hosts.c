/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams between hosts: every order in which a few calls and the messages that they cause can follow each other.
 *
 * A scenario is what actors do, each in its order. It is run again and again from its beginning, in a new world
 * (datagram_world.h), each time with the next choice of who goes on: an actor, or the oldest message of a queue. When
 * nobody can go on, what has come out must be whole: partners have each other's data, nobody has two, no two are left
 * who should have met, and nothing is left of those that have gone.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/datagrams/datagram_life.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "tests/common/seed.h"
#include "tests/unit/emunic/datagram_world.h"

#define CHOICES_MAX 96u

#define ACTORS_MAX 5u
#define STEPS_MAX  5u
struct scenario {
    struct step actors[ACTORS_MAX][STEPS_MAX];
    bool is_crossing; /* directed ones of two ports that were both taken have met each other */
    bool loses;       /* hosts are lost: one side may have paired alone */
};

/* ---- what must be true at the end ---- */

static void look_at_post(struct post *post)
{
    struct emu_msg_datagram asked = { .ep = post->ep };

    if (post->fate != LIVES && post->fate != CANCELLED)
        return;
    assert_int_equal(ask_datagram(port_at(post->port), EMU_MSG_DATAGRAM_TEST, &asked), 0);
    post->state = asked.state;
    assert_true(post->fate != CANCELLED || post->state == EMU_DATAGRAM_TERMINATED);
    if (post->state != EMU_DATAGRAM_COMPLETED)
        return;
    assert_int_equal(asked.length_bytes, 1);
    post->partner = asked.data[0];
    assert_true(post->partner < world->n_posts);
    assert_int_equal(asked.remote_nid, world->posts[post->partner].port);
    assert_true(post->to == WILDCARD || post->to == asked.remote_nid);
}

static bool could_meet(const struct post *x, const struct post *y)
{
    return x->fate == LIVES && y->fate == LIVES && x->state == EMU_DATAGRAM_PENDING &&
           y->state == EMU_DATAGRAM_PENDING && x->to == y->port && (y->to == WILDCARD || y->to == x->port) &&
           !world->is_cut[x->port / 10][y->port / 10] && !world->is_split;
}

static void check_pairs(const struct scenario *scenario)
{
    for (unsigned i = 0; i < world->n_posts; i++)
        look_at_post(&world->posts[i]);
    for (unsigned i = 0; i < world->n_posts; i++) {
        const struct post *x = &world->posts[i];

        for (unsigned j = 0; j < world->n_posts; j++) {
            const struct post *y = &world->posts[j];

            assert_false(i != j && could_meet(x, y));
            /* Nobody is paired twice; one whose answer was lost goes on. */
            assert_false(i != j && x->partner != UINT32_MAX && x->partner == y->partner && !scenario->loses);
            if (scenario->is_crossing && x->fate == LIVES && y->fate == LIVES && x->to == y->port && y->to == x->port) {
                assert_int_equal(x->partner, j);
                assert_int_equal(y->partner, i);
            }
        }
        if (x->partner == UINT32_MAX)
            continue;
        assert_int_not_equal(world->posts[x->partner].fate, REFUSED);
        if (!scenario->loses)
            assert_int_not_equal(world->posts[x->partner].fate, CANCELLED);
        if (world->posts[x->partner].fate == LIVES && !scenario->loses)
            assert_int_equal(world->posts[x->partner].partner, i);
    }
}

/* Those that are left wait for nothing but a partner: they can be cancelled at once, and then nothing is left. */
static void check_rest(void)
{
    for (unsigned i = 0; i < world->n_posts; i++) {
        const struct post *post = &world->posts[i];
        const struct step cancel = { .deed = CANCEL, .port = post->port, .ep = post->ep };

        if (post->fate != LIVES || post->state != EMU_DATAGRAM_PENDING)
            continue;
        do_cancel(&cancel);
        assert_int_equal(post->fate, CANCELLED);
    }
    deliver_all();
    for (uint32_t h = 0; h < HOSTS; h++) {
        for (uint32_t p = 0; p < PORTS_PER_HOST; p++) {
            assert_false(world->ports[h][p].awaits_cancel);
            if (world->domains[h].slots[EMU_DOMAIN_OFFERS])
                assert_null(emu_offer_to(&world->ports[h][p].end));
        }
    }
    assert_int_equal(world->n_refused, 0);
}

/* ---- all orders ---- */

struct way {
    unsigned choices[CHOICES_MAX];
    unsigned n_options[CHOICES_MAX];
    unsigned length;
};

/* Does the option with number `choice` among those there are; how many there are. 0: it is over. */
static unsigned go_on(const struct scenario *scenario, unsigned at[ACTORS_MAX], unsigned choice)
{
    unsigned n = 0;

    for (unsigned a = 0; a < ACTORS_MAX; a++) {
        const struct step *step = &scenario->actors[a][at[a]];
        bool waits = false;

        if (at[a] == STEPS_MAX || step->deed == END)
            continue;
        /* A process waits for its answer. */
        if (step->deed == POST || step->deed == CANCEL || step->deed == DROP)
            waits = port_at(step->port)->awaits_cancel;
        if (!waits && n++ == choice) {
            at[a]++;
            do_step(step);
        }
    }
    /* Counted before the step above has caused more of them. */
    return n;
}

static unsigned count_and_do(const struct scenario *scenario, unsigned at[ACTORS_MAX], unsigned choice)
{
    unsigned pending[HOSTS][HOSTS];
    unsigned n;

    for (uint32_t from = 0; from < HOSTS; from++) {
        for (uint32_t to = 0; to < HOSTS; to++)
            pending[from][to] = world->queues[from][to].n;
    }
    n = go_on(scenario, at, choice);
    for (uint32_t from = 0; from < HOSTS; from++) {
        for (uint32_t to = 0; to < HOSTS; to++) {
            if (pending[from][to] > 0 && n++ == choice)
                deliver(from, to);
        }
    }
    return n;
}

/* Runs the scenario along the way as far as that goes, then always the first option. */
static void run_once(const struct scenario *scenario, struct way *way)
{
    unsigned at[ACTORS_MAX] = { 0 };
    unsigned n = 1;

    make_world();
    for (unsigned i = 0; n > 0; i++) {
        assert_true(i < CHOICES_MAX);
        if (i >= way->length)
            way->choices[i] = 0;
        n = count_and_do(scenario, at, way->choices[i]);
        way->n_options[i] = n;
        if (n > 0 && i >= way->length)
            way->length = i + 1;
    }
    check_pairs(scenario);
    check_rest();
    end_world();
}

/* The next way: the last choice that has another option takes it. False: there is none. */
static bool turn(struct way *way)
{
    while (way->length > 0) {
        unsigned last = way->length - 1;

        if (++way->choices[last] < way->n_options[last])
            return true;
        way->length--;
    }
    return false;
}

static void run_all(const char *name, const struct scenario *scenario)
{
    struct way way = { .length = 0 };
    unsigned long n = 0;

    do {
        run_once(scenario, &way);
        n++;
    } while (turn(&way));
    print_message("# %s: %lu orders\n", name, n);
}

/* One way, at random, through more than could be tried in all orders. */
static void run_at_random(struct emu_random *random, bool loses)
{
    const struct scenario scenario = { .loses = loses };
    const uint32_t ports[] = { PORT(0, 0), PORT(0, 1), PORT(1, 0), PORT(1, 1), PORT(2, 0), PORT(2, 1) };

    make_world();
    for (unsigned i = 0; i < 400; i++) {
        struct step step = { .deed = POST,
                             .port = ports[emu_random_below(random, 6)],
                             .ep = 1 + (uint32_t)emu_random_below(random, 4),
                             .to = emu_random_below(random, 3) == 0 ? WILDCARD : ports[emu_random_below(random, 6)] };
        struct post *post = post_of(step.port, step.ep);
        uint32_t from = emu_random_below(random, HOSTS);
        uint32_t to = emu_random_below(random, HOSTS);
        unsigned what = emu_random_below(random, 16);

        /* Each end point is used once: check_pairs() asks it for its last one. */
        if (what < 2 && !post && world->n_posts < POSTS_MAX)
            do_step(&step);
        step.deed = what == 2 ? CANCEL : DROP;
        if ((what == 2 || what == 3) && post && post->fate == LIVES && !port_at(step.port)->awaits_cancel)
            do_step(&step);
        if (what == 4 && loses && from != to && !world->is_cut[from][to])
            cut_hosts(from, to);
        else if (what == 5 && from != to && world->is_cut[from][to])
            join_hosts(from, to);
        else if (what > 5 && world->queues[from][to].n > 0)
            deliver(from, to);
    }
    deliver_all();
    check_pairs(&scenario);
    check_rest();
    end_world();
}

#define A  PORT(0, 0)
#define A2 PORT(0, 1)
#define B  PORT(1, 0)
#define B2 PORT(1, 1)
#define C  PORT(2, 0)

#define RUN(...)                                                                                                       \
    do {                                                                                                               \
        const struct scenario scenario = __VA_ARGS__;                                                                  \
        run_all(__func__, &scenario);                                                                                  \
    } while (0)

/* ---- tests ---- */

static void test_directed_ones_that_cross_meet_each_other(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, B } }, { { POST, B, 1, A } } }, .is_crossing = true });
}

static void test_directed_ones_that_cross_leave_wildcards_alone(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, WILDCARD }, { POST, A, 2, B } },
                      { { POST, B, 1, WILDCARD }, { POST, B, 2, A } } },
          .is_crossing = true });
    RUN({ .actors = { { { POST, A, 2, B }, { POST, A, 1, WILDCARD } },
                      { { POST, B, 2, A }, { POST, B, 1, WILDCARD } } },
          .is_crossing = true });
}

static void test_each_wildcard_takes_one_of_two(void **state)
{
    (void)state;
    RUN({ .actors = {
              { { POST, A, 1, B } }, { { POST, C, 1, B } }, { { POST, B, 1, WILDCARD }, { POST, B, 2, WILDCARD } } } });
    RUN({ .actors = {
              { { POST, A, 1, B } }, { { POST, C, 1, B } }, { { POST, B2, 1, B } }, { { POST, B, 1, WILDCARD } } } });
}

static void test_cancel_ends_it_or_comes_too_late(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, B }, { CANCEL, A, 1, 0 } },
                      { { POST, B, 1, WILDCARD }, { CANCEL, B, 1, 0 } } } });
    RUN({ .actors = { { { POST, A, 1, B }, { CANCEL, A, 1, 0 } }, { { POST, B, 1, A }, { CANCEL, B, 1, 0 } } } });
    RUN({ .actors = {
              { { POST, A, 1, B }, { CANCEL, A, 1, 0 } }, { { POST, C, 1, B } }, { { POST, B, 1, WILDCARD } } } });
}

/* A's waits for the answer of B's, and B's wildcard wants A's. */
static void test_who_waits_can_be_claimed(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, B } }, { { POST, B, 1, A }, { CANCEL, B, 1, 0 }, { POST, B, 2, WILDCARD } } } });
    RUN({ .actors = { { { POST, A, 1, B }, { CANCEL, A, 1, 0 } },
                      { { POST, B, 1, A }, { DROP, B, 1, 0 }, { POST, B, 2, WILDCARD } } } });
    RUN({ .actors = { { { POST, B, 2, WILDCARD }, { POST, B, 1, A }, { CANCEL, B, 1, 0 } },
                      { { POST, A, 1, B } },
                      { { POST, A, 3, WILDCARD } } } });
}

static void test_end_points_and_ports_that_go_leave_nothing(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, B }, { DROP, A, 1, 0 } }, { { POST, B, 1, WILDCARD }, { DROP, B, 1, 0 } } } });
    RUN({ .actors = {
              { { POST, A, 1, B }, { CLOSE, A, 0, 0 } }, { { POST, C, 1, B } }, { { POST, B, 1, WILDCARD } } } });
    RUN({ .actors = { { { POST, A, 1, B } }, { { POST, B, 2, WILDCARD }, { POST, B, 1, A }, { CLOSE, B, 0, 0 } } } });
}

static void test_new_datagrams_of_an_end_point_are_new_exchanges(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, B }, { CANCEL, A, 1, 0 }, { POST, A, 2, B } },
                      { { POST, B, 1, A }, { CANCEL, B, 1, 0 }, { POST, B, 2, A } } } });
}

static void test_a_lost_host_takes_its_offers_along(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, B } },
                      { { POST, B, 1, WILDCARD } },
                      { { POST, C, 1, B } },
                      { { CUT, 0, 1, 0 } } },
          .loses = true });
    RUN({ .actors = { { { POST, A, 1, B }, { POST, A, 2, B } },
                      { { POST, B, 1, WILDCARD } },
                      { { CUT, 0, 1, 0 }, { JOIN, 0, 1, 0 } } },
          .loses = true });
    RUN({ .actors = { { { POST, A, 1, B }, { CANCEL, A, 1, 0 } },
                      { { POST, B, 1, WILDCARD }, { CANCEL, B, 1, 0 } },
                      { { CUT, 0, 1, 0 } } },
          .loses = true });
}

/* Nothing is posted there before it has the domain. */
static void test_offers_wait_for_the_domain(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, B }, { POST, A, 2, C } },
                      { { RENUMBER, 1, 0, 0 }, { RENUMBER, 1, 1, 0 }, { POST, B, 1, WILDCARD } } },
          .loses = true });
    RUN({ .actors = { { { POST, A, 1, B }, { CANCEL, A, 1, 0 } },
                      { { RENUMBER, 1, 0, 0 }, { RENUMBER, 1, 1, 0 }, { POST, B, 1, A } } },
          .loses = true });
}

static void test_a_new_number_costs_nothing_that_waits(void **state)
{
    (void)state;
    RUN({ .actors = { { { POST, A, 1, B }, { RENUMBER, 0, 2, 0 } },
                      { { POST, B, 1, WILDCARD }, { RENUMBER, 1, 2, 0 } } },
          .loses = true });
}

static void test_what_the_network_parts_meets_when_it_is_mended(void **state)
{
    (void)state;
    RUN({ .actors = {
              { { POST, A, 1, B } }, { { POST, B, 1, WILDCARD } }, { { SPLIT, 0, 0, 0 }, { MEND, 0, 0, 0 } } } });
    RUN({ .actors = { { { POST, A, 1, B } }, { { POST, B, 1, A } }, { { SPLIT, 0, 0, 0 }, { MEND, 0, 0, 0 } } },
          .is_crossing = true });
}

static void test_crowds_meet_in_any_order(void **state)
{
    struct emu_random random = seeded(8);

    (void)state;
    for (unsigned i = 0; i < 4000; i++)
        run_at_random(&random, i % 4 == 0);
}

static void test_offers_wait_for_room(void **state)
{
    const struct step mine = { POST, A, 1, B };
    const struct step theirs = { POST, B, 1, WILDCARD };
    struct emu_msg_datagram asked = { .ep = 1 };

    (void)state;
    make_world();
    world->is_full = true;
    do_step(&mine);
    do_step(&theirs);
    deliver_all();
    emu_datagram_look_at_delayed(&world->servers[0]);
    assert_int_equal(ask_datagram(port_at(A), EMU_MSG_DATAGRAM_TEST, &asked), 0);
    assert_int_equal(asked.state, EMU_DATAGRAM_PENDING);
    world->is_full = false;
    emu_datagram_look_at_delayed(&world->servers[0]);
    deliver_all();
    assert_int_equal(ask_datagram(port_at(A), EMU_MSG_DATAGRAM_TEST, &asked), 0);
    assert_int_equal(asked.state, EMU_DATAGRAM_COMPLETED);
    end_world();
}

static void test_wildcard_leaves_an_offer_to_a_directed_one_that_waits_for_room(void **state)
{
    const struct step steps[] = { { POST, B, 1, A }, { POST, A, 1, B }, { POST, B, 2, WILDCARD } };
    const struct scenario scenario = { .is_crossing = true };

    (void)state;
    make_world();
    for (unsigned i = 0; i < 3; i++) {
        world->is_full = i == 0;
        do_step(&steps[i]);
        deliver_all();
    }
    emu_datagram_look_at_delayed(&world->servers[1]);
    deliver_all();
    check_pairs(&scenario);
    check_rest();
    end_world();
}

static void test_oldest_offer_is_first(void **state)
{
    const struct step steps[] = { { POST, C, 1, B }, { POST, A, 1, B }, { POST, B, 1, WILDCARD } };
    struct emu_msg_datagram asked = { .ep = 1 };

    (void)state;
    make_world();
    for (unsigned i = 0; i < 3; i++) {
        do_step(&steps[i]);
        deliver_all();
    }
    assert_int_equal(ask_datagram(port_at(B), EMU_MSG_DATAGRAM_TEST, &asked), 0);
    assert_int_equal(asked.state, EMU_DATAGRAM_COMPLETED);
    assert_int_equal(asked.remote_nid, C);
    end_world();
}

static void test_what_is_directed_at_a_lost_host_ends_with_an_error(void **state)
{
    const struct step before = { POST, A, 1, B };
    const struct step after = { POST, A2, 1, B };
    struct emu_msg_datagram asked = { .ep = 1 };

    (void)state;
    make_world();
    do_step(&before);
    deliver_all();
    cut_hosts(0, 1);
    do_step(&after);
    assert_int_equal(ask_datagram(port_at(A), EMU_MSG_DATAGRAM_TEST, &asked), 0);
    assert_int_equal(asked.state, EMU_DATAGRAM_ERROR);
    assert_int_equal(ask_datagram(port_at(A2), EMU_MSG_DATAGRAM_TEST, &asked), 0);
    assert_int_equal(asked.state, EMU_DATAGRAM_ERROR);
    end_world();
}

/* One message from host 1 to host 0, changed in one field. */
static void say(struct emu_host_datagram d, uint32_t from, uint32_t cut_bytes)
{
    uint8_t bytes[EMU_HOST_DATAGRAM_MAX];
    uint32_t length = emu_host_datagram_put(bytes, 1, &d);

    world->n_refused += !emu_datagram_host_message(&world->servers[0], from, bytes, length - cut_bytes);
}

static void test_what_makes_no_sense_is_refused(void **state)
{
    const uint8_t data[EMU_DATAGRAM_MAX] = { 1 };
    const struct emu_host_datagram fair = { .word = EMU_DATAGRAM_OFFER,
                                            .bytes = 4,
                                            .number = 1,
                                            .nid = B,
                                            .instance_id = 7,
                                            .to_nid = A,
                                            .to_instance = 7,
                                            .data = data };
    struct emu_host_datagram d = fair;

    (void)state;
    make_world();
    say(d, 1, 0);
    assert_int_equal(world->n_refused, 0);
    say(d, 1, 1); /* shorter than it says */
    say(d, 2, 0); /* speaks for another host */
    d.to_nid = C; /* to another host */
    say(d, 1, 0);
    d.to_nid = 99; /* no such node */
    say(d, 1, 0);
    d = fair;
    d.number = 0;
    say(d, 1, 0);
    d = fair;
    d.claimer = 1; /* an offer has none */
    say(d, 1, 0);
    d = fair;
    d.word = EMU_DATAGRAM_REFUSE;
    d.claimer = 1; /* a refusal has no data */
    say(d, 1, 0);
    d.word = EMU_DATAGRAM_WORDS;
    say(d, 1, 0);
    assert_int_equal(world->n_refused, 8);
    /* Sensible by itself, and about nothing. */
    d = fair;
    d.bytes = 0;
    d.word = EMU_DATAGRAM_ACCEPT;
    d.claimer = 5;
    say(d, 1, 0);
    d.word = EMU_DATAGRAM_CLAIM;
    say(d, 1, 0);
    assert_int_equal(world->n_refused, 8);
    assert_int_equal(world->queues[0][1].n, 1); /* the claim's refusal */
    end_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directed_ones_that_cross_meet_each_other),
        cmocka_unit_test(test_directed_ones_that_cross_leave_wildcards_alone),
        cmocka_unit_test(test_each_wildcard_takes_one_of_two),
        cmocka_unit_test(test_cancel_ends_it_or_comes_too_late),
        cmocka_unit_test(test_who_waits_can_be_claimed),
        cmocka_unit_test(test_end_points_and_ports_that_go_leave_nothing),
        cmocka_unit_test(test_new_datagrams_of_an_end_point_are_new_exchanges),
        cmocka_unit_test(test_a_lost_host_takes_its_offers_along),
        cmocka_unit_test(test_offers_wait_for_the_domain),
        cmocka_unit_test(test_a_new_number_costs_nothing_that_waits),
        cmocka_unit_test(test_what_the_network_parts_meets_when_it_is_mended),
        cmocka_unit_test(test_crowds_meet_in_any_order),
        cmocka_unit_test(test_offers_wait_for_room),
        cmocka_unit_test(test_wildcard_leaves_an_offer_to_a_directed_one_that_waits_for_room),
        cmocka_unit_test(test_oldest_offer_is_first),
        cmocka_unit_test(test_what_is_directed_at_a_lost_host_ends_with_an_error),
        cmocka_unit_test(test_what_makes_no_sense_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
