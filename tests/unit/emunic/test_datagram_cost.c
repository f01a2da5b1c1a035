/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of an exchange of datagrams does not depend on how many others are pending, whoever has posted them.
 *
 * A child that has the pending datagrams is led through an exchange; its instructions are the cost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/common/datagram_world.h"
#include "tests/common/trace.h"

#define MANY      20000u
#define EXCHANGES 2u /* the first one meets a cold allocator */

static unsigned long alone; /* cost with nothing pending; 0: not known */

static void be_led(enum datagram_crowd crowd, uint32_t n_pending)
{
    struct datagram_world *world = datagram_world_create(crowd, n_pending);

    for (unsigned i = 0; i < EXCHANGES; i++) {
        trace_here();
        if (!datagram_world_exchange(world))
            _exit(1);
    }
    trace_here();
    _exit(0);
}

/* Instructions of the cheapest exchange. */
static unsigned long cost(enum datagram_crowd crowd, uint32_t n_pending)
{
    unsigned long least = 0;
    pid_t pid = fork();

    if (pid == 0)
        be_led(crowd, n_pending);
    assert_true(pid > 0 && trace_begin(pid));
    for (unsigned i = 0; i < EXCHANGES; i++) {
        unsigned long n = 0;

        while (trace_step(pid))
            n++;
        least = i == 0 || n < least ? n : least;
    }
    assert_true(trace_kill(pid));
    return least;
}

static void check_flat(enum datagram_crowd crowd, const char *whose)
{
    unsigned long many = cost(crowd, MANY);

    if (alone == 0)
        alone = cost(CROWD_NONE, 0);
    print_message("# %s: %lu instructions alone, %lu beside %u\n", whose, alone, many, MANY);
    assert_true(many < alone + alone / 2);
}

static void test_pending_ones_of_another_domain_cost_nothing(void **state)
{
    (void)state;
    check_flat(CROWD_OF_ANOTHER_DOMAIN, "another domain");
}

static void test_pending_ones_of_another_port_cost_nothing(void **state)
{
    (void)state;
    check_flat(CROWD_OF_ANOTHER_PORT, "another port");
}

static void test_pending_ones_of_the_port_itself_cost_nothing(void **state)
{
    (void)state;
    check_flat(CROWD_OF_THE_PORT, "the port");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pending_ones_of_another_domain_cost_nothing),
        cmocka_unit_test(test_pending_ones_of_another_port_cost_nothing),
        cmocka_unit_test(test_pending_ones_of_the_port_itself_cost_nothing),
    };

    if (!trace_is_permitted()) {
        printf("1..0 # SKIP a process may not lead its children here\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
