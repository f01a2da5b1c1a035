/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of words to and from other hosts: EMU_HOST_ADMIN messages. The parts register for those that they take
 * (emu_part.hosts.lists).
 */
#ifndef EMUNIC_DAEMON_PEERS_LISTS_H
#define EMUNIC_DAEMON_PEERS_LISTS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/host_admin.h"
#include "emunic/daemon/core/part.h"
#include "emunic/daemon/world/word_list.h"

extern const struct emu_part emu_lists_part;

/* A list that has come. */
struct emu_list {
    uint16_t type; /* enum emu_msg_type, or 0 */
    uint64_t token;
    struct emu_words words; /* to be taken */
    const uint64_t *all;    /* the same from the first one on */
    uint32_t n;
    uint32_t first; /* of a list in parts: number of its first word... */
    uint32_t total; /* ...and how many it will be; all others come whole */
};

/* Where a list goes, and what it is about. */
struct emu_list_head {
    uint32_t host;
    enum emu_host_admin_op op;
    uint16_t type;
    uint64_t token;
};

/* A list, in as many messages as it takes; nothing happens if the host is not up. */
void emu_list_send(struct emu_server *server, const struct emu_list_head *head, const uint64_t *words, uint32_t n);
/* One part of a list, beginning with word `first`. */
void emu_list_send_part(struct emu_server *server, const struct emu_list_head *head, const uint64_t *words, uint32_t n,
                        uint32_t first);

#endif
