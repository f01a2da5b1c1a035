/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of words to and from other hosts: EMU_HOST_ADMIN messages.
 */
#ifndef EMUNIC_DAEMON_PEERS_LISTS_H
#define EMUNIC_DAEMON_PEERS_LISTS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/host_admin.h"
#include "emunic/daemon/world/word_list.h"

struct emu_server;

/* What has come of a list of one host. */
struct emu_admin_incoming {
    uint16_t op;
    uint16_t type;
    uint64_t token;
    uint32_t total;
    struct emu_word_list list;
};

/* A list, in as many messages as it takes; nothing happens if the host is not up. */
void emu_admin_send(struct emu_server *server, uint32_t host, enum emu_host_admin_op op, uint16_t type, uint64_t token,
                    const uint64_t *words, uint32_t n);
/* One part of a list, beginning with word `first`. */
void emu_admin_send_part(struct emu_server *server, uint32_t host, enum emu_host_admin_op op, uint16_t type,
                         uint64_t token, const uint64_t *words, uint32_t n, uint32_t first);
/* Adds a part. False: it is not the next one. */
bool emu_admin_incoming_add(struct emu_admin_incoming *incoming, const struct emu_host_admin *part);
static inline bool emu_admin_incoming_is_whole(const struct emu_admin_incoming *incoming)
{
    return incoming->list.n == incoming->total;
}

#endif
