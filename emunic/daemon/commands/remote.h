/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands for nodes on other hosts: the initiator's side. All on the server's thread.
 */
#ifndef EMUNIC_DAEMON_COMMANDS_REMOTE_H
#define EMUNIC_DAEMON_COMMANDS_REMOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/daemon/world/port_end.h"

struct emu_cmd;
struct emu_errand;

/* What a port has under way to other hosts. */
struct emu_remote_port {
    LIST_HEAD(, emu_errand) errands; /* owned */
    uint32_t n;
    uint32_t n_long; /* of them in several parts */
    uint32_t n_fenced_blocks;
    uint32_t n_chained;
    uint32_t host; /* of the last one; all are to it unless... */
    bool is_mixed; /* ...they are to several */
};

static inline struct emu_remote_port *emu_remote_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_REMOTE];
}

int emu_remote_create(struct emu_server *server);
void emu_remote_destroy(struct emu_server *server);

/*
 * May it start, by the rules of order and for the room that there is? Commands for this host are asked about, too: they
 * may have to wait for those under way.
 */
bool emu_remote_may_start(const struct emu_port_end *port, const struct emu_cmd *cmd);
/* Takes the command over: its events come when the host has answered, or is lost. It may be over when this returns. */
void emu_remote_start(struct emu_port_end *port, const struct emu_cmd *cmd);
/* Is any part of what the port has sent not answered? Transfers of a suspended job rest between their parts. */
bool emu_remote_awaits_answers(const struct emu_port_end *port);
/* Moves long transfers on. Number of parts sent. */
unsigned emu_remote_round(struct emu_server *server);
/* Will a round find something to do without news from outside? */
bool emu_remote_has_work(const struct emu_server *server);
/* -ENOMEM */
int emu_remote_begin_port(struct emu_port_end *port);
/* What is under way for the port is forgotten; nothing of its memory is touched any more. */
void emu_remote_end_port(struct emu_port_end *port);

/* For the part. False: the message makes no sense. */
bool emu_remote_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
void emu_remote_host_down(struct emu_server *server, uint32_t host);

#endif
