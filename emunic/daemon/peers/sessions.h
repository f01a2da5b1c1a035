/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other hosts of the machine: sessions with their emunics, and messages to and from them.
 *
 * A server of one host has none of this (emu_server.hosts is NULL), and the functions below say so at no cost. All on
 * the server's thread.
 */
#ifndef EMUNIC_DAEMON_PEERS_SESSIONS_H
#define EMUNIC_DAEMON_PEERS_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/abi/host_message.h"
#include "emunic/daemon/core/part.h"
#include "emunic/daemon/world/server.h"
#include "emunic/transport/transport.h"

struct emu_domain;
struct emu_hosts;

/* How a host is reached. */
struct emu_host_blob {
    uint32_t length_bytes;
    uint8_t bytes[EMU_TRANSPORT_BLOB_MAX];
};

/* All is borrowed while the server is made. */
struct emu_hosts_options {
    uint32_t n;               /* hosts; at least 2 */
    uint32_t own;             /* our number; 0 is the head */
    const char *const *names; /* n of them, at most EMU_HOST_NAME_MAX characters */
    const uint32_t *n_nodes;  /* n of them: how many nodes of a `serve` domain each has; NULL: evenly */
    const char *module;       /* path of emunic-transport.so */
    const char *provider;     /* NULL: the best that is there */
    const char *node;         /* own address; NULL: the provider's choice */
    const char *service;      /* port to listen at; NULL: any */
    const void *key;          /* of the job */
    uint32_t key_bytes;       /* at least EMU_TRANSPORT_KEY_MIN */
    uint64_t timeout_ns;      /* silence after which a host is lost; 0: 5 s */
    bool is_rma_off;
    bool is_secure; /* what is sent is encrypted; also by EMUNIC_SECURE */
    /*
     * How addresses get from host to host: called once, when the transport is open, with our own; fills those of all
     * n hosts. 0 or negative errno. NULL: peers are found at peer_nodes[i], port peer_services[i].
     */
    int (*exchange)(void *ctx, const struct emu_host_blob *own, struct emu_host_blob *blobs_out);
    void *ctx;
    const char *const *peer_nodes;
    const char *const *peer_services;
};

/*
 * Two parts, because all others lie between them. The sessions come first and go last. The links open the transport to
 * the other hosts, and nobody waits for those, when all parts are there to hear of them; they are the first to go.
 */
extern const struct emu_part emu_sessions_part;
extern const struct emu_part emu_links_part;

/* ---- for other parts ---- */

const char *emu_hosts_name(const struct emu_server *server, uint32_t host);
/* What libfabric calls the device that the transport uses; "" when there is only one host. */
const char *emu_hosts_device(const struct emu_server *server);
/* Nodes of a `serve` domain that the host was given; 0: not told. */
uint32_t emu_hosts_n_nodes(const struct emu_server *server, uint32_t host);
/* Our own is. Another one is when its hello has come. */
bool emu_hosts_is_up(const struct emu_server *server, uint32_t host);

/*
 * Sends a message of 8 to EMU_HOST_MESSAGE_MAX bytes; it is copied, and queued when the transport is full. Messages to
 * one host arrive in the order of these calls, unless the session ends: then all that are under way are lost, and the
 * parts hear of it (emu_part.hosts.down). 0; -ENOTCONN: the host is not up; -ENOBUFS: the queue to it is full, try
 * again in a later round; -ENOMEM.
 */
int emu_hosts_send(struct emu_server *server, uint32_t host, const void *message, uint32_t length_bytes);
/* Would emu_hosts_send() take a message? */
bool emu_hosts_has_room(const struct emu_server *server, uint32_t host);
/* Does nothing wait for the transport? */
bool emu_hosts_is_idle(const struct emu_server *server, uint32_t host);
/*
 * The same for an answer: never -ENOBUFS, because what a peer may ask is limited. One that asks for more, or that takes
 * nothing while it asks, costs it the session.
 */
int emu_hosts_answer(struct emu_server *server, uint32_t host, const void *message, uint32_t length_bytes);
/*
 * The host owes an answer that it can give at once, so not one about data that it fetches; it has given one. False: it
 * owed none. A host that owes some and gives none for the peer timeout is lost: its session ends, whatever else it
 * sends.
 */
void emu_hosts_owe(struct emu_server *server, uint32_t host);
bool emu_hosts_pay(struct emu_server *server, uint32_t host);
/* It has answered the question whether it is there, which each host is asked once in a timeout. */
void emu_hosts_hear_pong(struct emu_server *server, uint32_t host);
/* Ends its session; what follows is as when a host is lost, and it is joined again. */
void emu_hosts_drop(struct emu_server *server, uint32_t host, const char *why);
/* Silence after which a host is lost. */
uint64_t emu_hosts_timeout_ns(const struct emu_server *server);
/* Now, of a clock that stood still while this process did not run: no other host is to blame for that time. */
uint64_t emu_hosts_now_ns(const struct emu_server *server);
/* A message of a host makes no sense: it is counted, and one line is logged per host and second. */
void emu_hosts_refuse(struct emu_server *server, uint32_t host, const char *what);

/* What moves data without messages, for bulk.c and visit.c. ops_out: how to call it. */
struct emu_transport *emu_hosts_transport(const struct emu_server *server, const struct emu_transport_ops **ops_out);

#endif
