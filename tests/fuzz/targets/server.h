/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole emunic of one host in this process, which is its own client: nothing runs but in fuzz_server_turn(). It has
 * one routed domain of two nodes. State of an input ends with its connections.
 */
#ifndef TESTS_FUZZ_TARGETS_SERVER_H
#define TESTS_FUZZ_TARGETS_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/portals.h"
#include "emunic/abi/segment.h"
#include "emunic/base/socket.h"

#define FUZZ_PTAG   7u
#define FUZZ_COOKIE 0x1234u
#define FUZZ_NODES  2u

/* A client; no descriptor of it is left after fuzz_client_close(). */
struct fuzz_client {
    int fd;
    struct emu_msg_attach attach;
    struct emu_segment *segment; /* mapped; NULL: has no port */
    struct emu_ptl_ni *ni;       /* mapped; NULL: not opened */
    int doorbell;
};

/* Before the clients of an input: an emunic in virtual time, whose time begins anew. */
void fuzz_server_begin_virtual(void);
/* Rounds of the loop, and a look at all connections. */
void fuzz_server_turn(void);
void fuzz_client_open(struct fuzz_client *client);
/* On the admin socket: it has no port. */
void fuzz_client_open_admin(struct fuzz_client *client);
void fuzz_client_close(struct fuzz_client *client);
/* Sends it, turns, takes the reply into *msg. fds: sent along; what comes is closed, or given to *fds_out. True: there
 * was a reply. */
bool fuzz_client_ask(struct fuzz_client *client, struct emu_msg *msg, const int *fds, unsigned n_fds,
                     struct emu_fds *fds_out);
/* A port on that node. */
void fuzz_client_attach(struct fuzz_client *client, uint32_t nid, uint32_t instance_id);
void fuzz_client_open_portals(struct fuzz_client *client, uint32_t pid);
/* Writes commands into the ring as they are and moves the tail by `n`. */
void fuzz_client_post(struct fuzz_client *client, const void *commands, uint32_t n);

#endif
