/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An exchange of datagrams with 1 000, 10 000 and 100 000 others pending, and as a ratio to one with none.
 *
 *   datagrams        one line per crowd and number: crowd, pending, nanoseconds, ratio
 */
#include <stdio.h>

#include "emunic/base/clock.h"
#include "tests/common/datagram_world.h"

#define EXCHANGES 20000u
#define TRIES     7u

static double ns_of(enum datagram_crowd crowd, uint32_t n_pending)
{
    struct datagram_world *world = datagram_world_create(crowd, n_pending);
    double best = 0;

    for (unsigned i = 0; world && i < TRIES; i++) {
        uint64_t start_ns = emu_clock_ns();
        double ns;

        for (unsigned k = 0; k < EXCHANGES; k++) {
            if (!datagram_world_exchange(world))
                return -1;
        }
        ns = (double)(emu_clock_ns() - start_ns) / EXCHANGES;
        best = i == 0 || ns < best ? ns : best;
    }
    if (world)
        datagram_world_destroy(world);
    return best;
}

int main(void)
{
    static const char *const names[] = { "nobody", "another-domain", "another-port", "the-port" };
    double alone = ns_of(CROWD_NONE, 0);

    printf("%-16s %8s %8s %6s\n", "crowd", "pending", "ns", "ratio");
    printf("%-16s %8u %8.0f %6.2f\n", names[CROWD_NONE], 0, alone, 1.0);
    for (enum datagram_crowd crowd = CROWD_OF_ANOTHER_DOMAIN; crowd <= CROWD_OF_THE_PORT; crowd++) {
        for (uint32_t n = 1000; n <= 100000; n *= 10) {
            double ns = ns_of(crowd, n);

            printf("%-16s %8u %8.0f %6.2f\n", names[crowd], n, ns, ns / alone);
        }
    }
    return 0;
}
