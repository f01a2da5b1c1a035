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

#include "tests/common/cost.h"
#include "tests/common/datagram_world.h"

#define MANY   20000u
#define WORLDS 3u /* hashes have random keys, and one in some dozens has a long chain where the exchange looks */

static unsigned long alone; /* cost with nothing pending; 0: not known */

static struct datagram_world *world;

static void prepare(unsigned crowd, uint32_t n_pending)
{
    world = datagram_world_create((enum datagram_crowd)crowd, n_pending);
}

static bool exchange(void)
{
    return datagram_world_exchange(world);
}

static void check_flat(enum datagram_crowd crowd, const char *whose)
{
    unsigned long many = 0;

    if (alone == 0)
        alone = cost_of(prepare, CROWD_NONE, 0, exchange);
    for (unsigned i = 0; i < WORLDS && (i == 0 || many >= alone + alone / 2); i++) {
        many = cost_of(prepare, crowd, MANY, exchange);
        print_message("# %s: %lu instructions alone, %lu beside %u\n", whose, alone, many, MANY);
    }
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
