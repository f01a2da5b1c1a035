/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host with two domains, of which only the daemon's datagrams are real: to count their cost, and to try them with any
 * request and message. Of a node the number of its host is a tenth of its own.
 */
#ifndef TESTS_COMMON_DATAGRAM_WORLD_H
#define TESTS_COMMON_DATAGRAM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

struct datagram_world;
struct emu_msg_datagram;

#define DATAGRAM_WORLD_PORTS 6u /* their nodes are numbered likewise; instance id 0 */

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

#define DATAGRAM_WORLD_TRIPS 16u /* in virtual time, at a time */

/* Before anything else: in virtual time. The model is the test's. */
void datagram_world_set_virtual(struct datagram_world *world);
/* The command that sends what an end point has posted has its turn. */
void datagram_world_send(struct datagram_world *world, uint32_t port, uint32_t ep);
/* The oldest message from there to there arrives. False: there is none. */
bool datagram_world_arrive(struct datagram_world *world, uint32_t from, uint32_t to);

/* The first of so many hosts, before anything else. What it tells others is lost. */
void datagram_world_set_hosts(struct datagram_world *world, uint32_t n_hosts);
/* From now on there is no room, or there is again, in the queues to other hosts. */
void datagram_world_set_full(bool is_full);
/* A request of a port (enum emu_msg_type). emunic's answer; -EPROTO: it waits for one already. */
int datagram_world_ask(struct datagram_world *world, uint32_t port, uint16_t type, struct emu_msg_datagram *datagram);
/* Another host says something. False: it is refused. */
bool datagram_world_hear(struct datagram_world *world, uint32_t host, const uint8_t *message, uint32_t length_bytes);
/* A host is there, or not any more. */
void datagram_world_set_host(struct datagram_world *world, uint32_t host, bool is_up);
/* A round of the loop. */
void datagram_world_turn(struct datagram_world *world);
/* A port ends, and another one takes its place. */
void datagram_world_renew_port(struct datagram_world *world, uint32_t port);

#endif
