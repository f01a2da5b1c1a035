/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the transport moves data from and to: pieces of a process's memory, or staging. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_COMMANDS_BULK_H
#define EMUNIC_DAEMON_COMMANDS_BULK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "emunic/engine/memory.h"
#include "emunic/transport/transport.h"

struct emu_bulk_mappings;
struct emu_bulk_staging;
struct emu_member;
struct emu_server;

/* For whom staging is. Those who answer must not wait for those who ask. */
enum emu_bulk_pool { EMU_BULK_OWN, EMU_BULK_VISITORS, EMU_BULK_POOLS };

struct emu_bulk_piece {
    LIST_ENTRY(emu_bulk_piece) link; /* of all */
    LIST_ENTRY(emu_bulk_piece) member_link;
    struct emu_member *member;           /* borrowed: whose mappings; NULL: staged, or the process has gone... */
    struct emu_bulk_mappings *mappings;  /* ...and left these */
    struct emu_transport_region *region; /* owned */
    uint8_t *bytes;                      /* here; of the process, or staging */
    uint32_t length_bytes;
    uint32_t host;
    enum emu_bulk_pool pool;
    struct emu_bulk_staging *staging; /* counted by its slots in use */
    uint32_t slot;
    bool is_staged; /* the caller copies */
};

struct emu_bulk_wish {
    uint32_t host; /* that the data come from or go to */
    enum emu_bulk_pool pool;
    struct emu_member *member;       /* the process whose memory it is */
    const struct emu_memory *memory; /* how it is reached */
    uint64_t addr;
    uint32_t length_bytes; /* at most EMU_HOST_BULK_BYTES */
    uint32_t access;       /* EMU_TRANSPORT_READ, EMU_TRANSPORT_WRITE: of the other host; 0 none */
    bool is_filled;        /* by the network; else it is read */
};

/*
 * A piece is a region of the transport: the memory itself if the network only reads it, it is mapped here and its pages
 * cannot go away; else a place in staging. 0; -EAGAIN: no staging until another piece to that host is given back;
 * -ENOMEM and the like.
 */
int emu_bulk_take(struct emu_server *server, const struct emu_bulk_wish *wish, struct emu_bulk_piece **piece_out);
/* Nothing of the transport may use it any more. NULL is fine. */
void emu_bulk_give_back(struct emu_server *server, struct emu_bulk_piece *piece);
/* Is there any piece? Then the transport has to be looked at. */
bool emu_bulk_is_busy(const struct emu_server *server);
/*
 * The host has changed over to another connection, or is lost. What the old one may still bring goes nowhere, once the
 * pieces of that host that there are now have been given back.
 */
void emu_bulk_host_moved(struct emu_server *server, uint32_t host);
/* The process ends; what is mapped of its memory stays until nothing uses it. */
void emu_bulk_member_ends(struct emu_member *member);

int emu_bulk_create(struct emu_server *server);
/* When the transport is closed. All pieces are freed. */
void emu_bulk_destroy(struct emu_server *server);

#endif
