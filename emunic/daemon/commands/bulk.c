/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the transport moves data from and to.
 *
 * A piece is one side of one part of a block transfer (remote.c has the initiator's, visit.c the target's). Where
 * the network reads and emunic has the process's memory mapped, the piece is those pages, so the kernel copies from
 * them and nobody else copies at all. What is not mapped goes through staging, and so do files of programs, which can
 * be made shorter: a missing page is an error of one command elsewhere, but in the middle of a transfer it would cost
 * the session.
 *
 * What the network fills is always staging, one copy more: a host that stops in the middle and counts as lost may go on
 * later, and the carrier cannot take back a place that it was given. By then the memory may be the program's own again.
 * So staging that a lost host had is never used again; its pages go back, its addresses stay taken and unmapped. The
 * same for staging of a host whose session has moved to another connection, once the pieces that it holds are given
 * back: what was written over the old one and not acknowledged is written again over the new one, and may still arrive
 * by the old.
 *
 * Each piece is a region of its own and reaches exactly its part for as long as that is under way; so a peer is never
 * given more than it needs, and what it was given ends.
 *
 * A process that ends leaves pieces behind, which the network still reads or writes. Its windows are kept for them,
 * without their process, until the last is given back.
 *
 * Staging is SLOTS parts for each host and each pool, mapped when first needed: a slow host keeps those of others from
 * nothing. The pools are apart because parts of ours wait for answers of the other host, whose visits must not wait for
 * ours.
 */
#include "emunic/daemon/commands/bulk.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "emunic/abi/host_message.h"
#include "emunic/base/log.h"
#include "emunic/base/window.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/server.h"

#define SLOTS         8u
#define STAGING_BYTES ((size_t)SLOTS * EMU_HOST_BULK_BYTES)

struct emu_bulk_mappings {
    struct emu_windows windows;
    unsigned n_pieces;
};

struct emu_bulk_staging {
    uint8_t *bytes; /* owned, SLOTS x EMU_HOST_BULK_BYTES */
    uint32_t used;  /* a bit for each slot */
    bool is_spent;  /* no longer in the table: goes with its last piece */
};

struct emu_bulk {
    LIST_HEAD(, emu_bulk_piece) pieces; /* owned */
    struct emu_bulk_staging *staging[]; /* owned; EMU_BULK_POOLS for each host, NULL until needed */
};

/* NULL while this host is alone. */
static struct emu_bulk *bulk_in(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_BULK];
}

int emu_bulk_create(struct emu_server *server)
{
    uint32_t n = emu_hosts_count(server) * EMU_BULK_POOLS;
    struct emu_bulk *bulk = calloc(1, sizeof(*bulk) + n * sizeof(bulk->staging[0]));

    if (!bulk)
        return -ENOMEM;
    LIST_INIT(&bulk->pieces);
    server->slots[EMU_SERVER_BULK] = bulk;
    return 0;
}

bool emu_bulk_is_busy(const struct emu_server *server)
{
    return bulk_in(server) && !LIST_EMPTY(&bulk_in(server)->pieces);
}

/* ---- staging ---- */

static int make_staging(struct emu_bulk_staging **staging_out)
{
    struct emu_bulk_staging *staging = calloc(1, sizeof(*staging));
    void *bytes;

    if (!staging)
        return -ENOMEM;
    bytes = mmap(NULL, STAGING_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == MAP_FAILED) {
        free(staging);
        return -ENOMEM;
    }
    staging->bytes = bytes;
    *staging_out = staging;
    return 0;
}

static int take_slot(struct emu_server *server, struct emu_bulk_piece *piece)
{
    struct emu_bulk_staging **at = &bulk_in(server)->staging[piece->host * EMU_BULK_POOLS + piece->pool];
    int r = *at ? 0 : make_staging(at);

    if (r < 0)
        return r;
    if ((*at)->used == (1u << SLOTS) - 1)
        return -EAGAIN;
    piece->staging = *at;
    piece->slot = (uint32_t)__builtin_ctz(~(*at)->used);
    piece->bytes = (*at)->bytes + (size_t)piece->slot * EMU_HOST_BULK_BYTES;
    piece->is_staged = true;
    (*at)->used |= 1u << piece->slot;
    return 0;
}

/* Its addresses stay taken: whoever may still write there finds nothing. */
static void seal(struct emu_bulk_staging *staging)
{
    mmap(staging->bytes, STAGING_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    free(staging);
}

static void give_slot(const struct emu_bulk_piece *piece)
{
    struct emu_bulk_staging *staging = piece->staging;

    if (!piece->is_staged)
        return;
    staging->used &= ~(1u << piece->slot);
    if (staging->is_spent && staging->used == 0)
        seal(staging);
}

void emu_bulk_host_moved(struct emu_server *server, uint32_t host)
{
    if (!bulk_in(server))
        return;
    for (unsigned pool = 0; pool < EMU_BULK_POOLS; pool++) {
        struct emu_bulk_staging **at = &bulk_in(server)->staging[host * EMU_BULK_POOLS + pool];
        struct emu_bulk_staging *staging = *at;

        *at = NULL;
        if (!staging)
            continue;
        staging->is_spent = true;
        if (staging->used == 0)
            seal(staging);
    }
}

/* ---- mappings ---- */

/* Where the memory is mapped here and stays, or NULL. */
static uint8_t *window_of(const struct emu_bulk_wish *wish)
{
    const struct emu_memory *memory = wish->memory;

    if (!memory->ops->window || memory->broken)
        return NULL;
    return memory->ops->window(memory, wish->addr, wish->length_bytes);
}

static void leave_mappings(struct emu_bulk_piece *piece)
{
    struct emu_bulk_mappings *mappings = piece->mappings;

    if (piece->member)
        LIST_REMOVE(piece, member_link);
    if (!mappings || --mappings->n_pieces > 0)
        return;
    emu_windows_fini(&mappings->windows);
    free(mappings);
}

void emu_bulk_member_ends(struct emu_member *member)
{
    struct emu_bulk_mappings *mappings;
    struct emu_bulk_piece *piece;

    if (LIST_EMPTY(&member->pieces))
        return;
    mappings = calloc(1, sizeof(*mappings));
    if (!mappings)
        emu_log(EMU_LOG_ERROR, "out of memory: what was mapped of pid %d stays mapped", (int)member->pid);
    emu_windows_leave_budget(&member->windows);
    while ((piece = LIST_FIRST(&member->pieces))) {
        LIST_REMOVE(piece, member_link);
        piece->member = NULL;
        piece->mappings = mappings;
        if (mappings)
            mappings->n_pieces++;
    }
    if (mappings)
        mappings->windows = member->windows;
    member->windows = (struct emu_windows){ 0 };
}

/* ---- pieces ---- */

int emu_bulk_take(struct emu_server *server, const struct emu_bulk_wish *wish, struct emu_bulk_piece **piece_out)
{
    const struct emu_transport_ops *ops;
    struct emu_transport *transport = emu_hosts_transport(server, &ops);
    struct emu_bulk_piece *piece = calloc(1, sizeof(*piece));
    int r = 0;

    if (!piece)
        return -ENOMEM;
    piece->host = wish->host;
    piece->pool = wish->pool;
    piece->length_bytes = wish->length_bytes;
    piece->bytes = wish->is_filled ? NULL : window_of(wish);
    if (!piece->bytes)
        r = take_slot(server, piece);
    if (r == 0)
        r = ops->region_create(transport, piece->bytes, piece->length_bytes, wish->access, &piece->region);
    if (r < 0) {
        give_slot(piece);
        free(piece);
        return r;
    }
    if (!piece->is_staged) {
        piece->member = wish->member;
        LIST_INSERT_HEAD(&wish->member->pieces, piece, member_link);
    }
    LIST_INSERT_HEAD(&bulk_in(server)->pieces, piece, link);
    *piece_out = piece;
    return 0;
}

void emu_bulk_give_back(struct emu_server *server, struct emu_bulk_piece *piece)
{
    const struct emu_transport_ops *ops;

    if (!piece)
        return;
    emu_hosts_transport(server, &ops);
    ops->region_destroy(piece->region);
    give_slot(piece);
    leave_mappings(piece);
    LIST_REMOVE(piece, link);
    free(piece);
}

void emu_bulk_destroy(struct emu_server *server)
{
    struct emu_bulk *bulk = bulk_in(server);
    struct emu_bulk_piece *piece;

    if (!bulk)
        return;
    while ((piece = LIST_FIRST(&bulk->pieces))) {
        LIST_REMOVE(piece, link);
        give_slot(piece);
        leave_mappings(piece);
        free(piece);
    }
    for (uint32_t i = 0; i < emu_hosts_count(server) * EMU_BULK_POOLS; i++) {
        if (bulk->staging[i])
            munmap(bulk->staging[i]->bytes, STAGING_BYTES);
        free(bulk->staging[i]);
    }
    free(bulk);
    server->slots[EMU_SERVER_BULK] = NULL;
}
