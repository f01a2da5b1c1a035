/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine of one host with two domains, of which only the daemon's datagrams are real: to count their cost.
 */
#ifndef TESTS_COMMON_DATAGRAM_WORLD_H
#define TESTS_COMMON_DATAGRAM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct datagram_world;

/* Who has the pending datagrams. */
enum datagram_crowd {
    CROWD_NONE,
    CROWD_OF_ANOTHER_DOMAIN,
    CROWD_OF_ANOTHER_PORT, /* of the same domain */
    CROWD_OF_THE_PORT,     /* that exchanges */
};

/* With so many datagrams of that crowd which nobody answers, to as many addresses. NULL: no memory. */
struct datagram_world *datagram_world_create(enum datagram_crowd crowd, uint32_t n_pending);
void datagram_world_destroy(struct datagram_world *world);
/* Two ports of a domain meet: a wildcard is posted, answered, probed and collected; another one is cancelled. False:
 * something was not as it should be. */
bool datagram_world_exchange(struct datagram_world *world);

#endif
