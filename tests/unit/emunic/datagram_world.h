/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small world of hosts in one process that runs the daemon's own code of datagrams; only messages are the test's, in
 * a queue for each pair of hosts. A test makes steps and delivers messages in the order that it wants.
 */
#ifndef TESTS_UNIT_EMUNIC_DATAGRAM_WORLD_H
#define TESTS_UNIT_EMUNIC_DATAGRAM_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emunic/abi/segment.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/datagrams/datagram_hosts.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"

#define HOSTS          3u
#define PORTS_PER_HOST 2u
#define QUEUE_MAX      256u
#define POSTS_MAX      64u
#define WILDCARD       UINT32_MAX

/* A port is named by its node: its host times ten, and which one. */
#define PORT(host, n) ((host)*10u + (n))

enum deed { END, POST, CANCEL, DROP, CLOSE, CUT, JOIN, SPLIT, MEND, RENUMBER };

struct step {
    enum deed deed;
    uint32_t port; /* cut, join: one host; renumber: the host */
    uint32_t ep;   /* cut, join: the other one; renumber: 0 gone, else its number */
    uint32_t to;   /* post: a port, or WILDCARD */
};

struct message {
    uint32_t length;
    uint8_t bytes[EMU_HOST_DATAGRAM_MAX];
};

struct queue {
    struct message messages[QUEUE_MAX];
    unsigned first;
    unsigned n;
};

enum fate { NOT_POSTED, REFUSED, LIVES, CANCELLED, GONE };

struct post {
    uint32_t port;
    uint32_t ep;
    uint32_t to;
    enum fate fate;
    uint32_t state;   /* at the end */
    uint32_t partner; /* number of the post whose data it has; UINT32_MAX none */
};

struct world_port {
    struct emu_port_end end;
    struct emu_member member;
    struct emu_connection connection;
    struct emu_segment segment;
    bool awaits_cancel;
    uint32_t cancelled; /* post */
};

struct world {
    struct emu_server servers[HOSTS];
    struct emu_domain domains[HOSTS];
    struct world_port ports[HOSTS][PORTS_PER_HOST];
    struct queue queues[HOSTS][HOSTS];
    bool is_cut[HOSTS][HOSTS];
    struct post posts[POSTS_MAX];
    unsigned n_posts;
    bool is_split;
    bool is_full;       /* queues take no offers */
    unsigned n_refused; /* messages that made no sense */
};

/* The one there is: between make_world() and end_world(). */
extern struct world *world;

/* Hosts that are up, each with its ports; nothing is posted. */
void make_world(void);
void end_world(void);

struct world_port *port_at(uint32_t nid);
/* The latest post of an end point; NULL: none. */
struct post *post_of(uint32_t port, uint32_t ep);
/* A request of the port, as the daemon answers it; the answer is in *datagram. */
int ask_datagram(struct world_port *port, uint16_t type, struct emu_msg_datagram *datagram);

void do_step(const struct step *step);
void do_cancel(const struct step *step);
/* Two hosts lose each other, with what was between them, or find each other again. */
void cut_hosts(uint32_t a, uint32_t b);
void join_hosts(uint32_t a, uint32_t b);

/* The oldest message of a queue; all messages, with those that they cause. */
void deliver(uint32_t from, uint32_t to);
void deliver_all(void);

#endif
