/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs and the layers above them register the same buffer for each transfer. A registration with a park
 * (client/park.h) is not deregistered at emunic when its program gives it back: it is parked, so nobody reaches it, and
 * its old handle is dead. When the same memory is registered again in the same way, it gets a new generation and with
 * it a new handle.
 *
 * What emunic knows of it are addresses, so it says nothing about what is mapped there, and need not: nobody looks
 * through it while it is parked, and before it is used again the kernel is asked what is mapped there now. Memory that
 * was unmapped, moved or mapped anew in between is adopted again, or registered anew. A forked child has no part in it.
 *
 * Parked registrations still count at emunic. So they are given back before a queue goes and before the process asks
 * for figures, and when a registration finds no room; emunic gives no park where a limit is set.
 *
 * System calls: register again: one question to the kernel (PROCMAP_QUERY), no wake-up; deregister: one membarrier(),
 * no wake-up. Without a park: each one request to emunic, which is two wake-ups, and two files read.
 */
#include "libugni/src/parked.h"

#include <stdlib.h>
#include <string.h>

#include "emunic/abi/abi.h"
#include "emunic/base/maps.h"
#include "emunic/base/own_pid.h"
#include "emunic/client/park.h"
#include "emunic/client/space.h"

/* Ours, and not that of the process that forked us. */
static bool is_open(const struct gnii_nic *nic)
{
    return emu_park_is_open(&nic->port) && nic->port.owner == emu_own_pid();
}

void gnii_parked_deregister(struct gnii_nic *nic, struct gnii_md *md)
{
    gnii_md_deregister(nic, md);
    gnii_parked_release(nic, md->park);
    free(md);
}

static void unlist(struct gnii_nic *nic, struct gnii_md *md)
{
    LIST_REMOVE(md, link);
    atomic_fetch_sub_explicit(&nic->parked.n, 1, memory_order_relaxed);
}

static void give_back_oldest(struct gnii_nic *nic)
{
    struct gnii_md *oldest = NULL;
    struct gnii_md *md;

    LIST_FOREACH(md, &nic->parked.mds, link)
        oldest = md;
    if (!oldest)
        return;
    unlist(nic, oldest);
    gnii_parked_deregister(nic, oldest);
}

/* ---- parks ---- */

int8_t gnii_parked_reserve(struct gnii_nic *nic)
{
    uint32_t all = (1u << EMU_PARKS) - 1;
    int8_t park;

    if (!is_open(nic))
        return GNII_NO_PARK;
    if (nic->parked.taken == all)
        give_back_oldest(nic);
    if (nic->parked.taken == all)
        return GNII_NO_PARK;
    park = (int8_t)__builtin_ctz(~nic->parked.taken);
    nic->parked.taken |= 1u << park;
    emu_park_give(&nic->port, (uint32_t)park, 0);
    return park;
}

void gnii_parked_release(struct gnii_nic *nic, int8_t park)
{
    if (park != GNII_NO_PARK)
        nic->parked.taken &= ~(1u << park);
}

/* ---- what is mapped ---- */

static bool begin_to_look(struct gnii_nic *nic)
{
    struct gnii_parked *p = &nic->parked;
    struct emu_piece here;

    if (p->space_ino == 0)
        p->space_ino = emu_space_ino(&nic->port);
    if (p->maps || p->cannot_look)
        return p->maps;
    p->maps = malloc(sizeof(*p->maps));
    p->cannot_look = !p->maps || emu_maps_open(p->maps, 0) < 0;
    if (!p->cannot_look && emu_maps_look(p->maps, (uint64_t)(uintptr_t)&here, &here) < 0) {
        emu_maps_close(p->maps);
        p->cannot_look = true;
    }
    if (p->cannot_look) {
        free(p->maps);
        p->maps = NULL;
    }
    return p->maps;
}

static bool is_in_space(const struct gnii_nic *nic, const struct emu_piece *p)
{
    return p->is_shared && p->ino == nic->parked.space_ino && p->offset == p->first && p->is_writable;
}

static bool is_private(const struct emu_piece *p, bool is_read_only)
{
    return !p->is_shared && p->ino == 0 && p->is_readable && (p->is_writable || is_read_only);
}

bool gnii_parked_is_in_place(struct gnii_nic *nic, const struct gnii_md *md)
{
    uint64_t end = emu_page_up(md->addr + md->length_bytes);
    struct emu_piece piece;

    if (!begin_to_look(nic))
        return false;
    for (uint64_t at = emu_page_down(md->addr); at < end; at = piece.end) {
        if (emu_maps_look(nic->parked.maps, at, &piece) < 0 ||
            !(md->is_mapped ? is_in_space(nic, &piece) : is_private(&piece, md->is_read_only)))
            return false;
    }
    return true;
}

const struct emu_maps *gnii_parked_maps(const struct gnii_nic *nic)
{
    return nic->parked.maps;
}

/* ---- parking ---- */

bool gnii_parked_put(struct gnii_nic *nic, struct gnii_md *md)
{
    if (md->park == GNII_NO_PARK || md->has_lost_queue || !is_open(nic) ||
        !emu_park_take_away(&nic->port, (uint32_t)md->park))
        return false;
    LIST_INSERT_HEAD(&nic->parked.mds, md, link);
    atomic_fetch_add_explicit(&nic->parked.n, 1, memory_order_relaxed);
    return true;
}

struct gnii_md *gnii_parked_take(struct gnii_nic *nic, const struct gnii_parked_wish *wish)
{
    struct gnii_md *md;

    LIST_FOREACH(md, &nic->parked.mds, link) {
        if (md->addr == wish->addr && md->length_bytes == wish->length_bytes && md->flags == wish->flags &&
            md->dst_cq == wish->dst_cq)
            break;
    }
    if (!md || !is_open(nic))
        return NULL;
    unlist(nic, md);
    return md;
}

void gnii_parked_give_back(struct gnii_nic *nic)
{
    struct gnii_md *md;

    while ((md = LIST_FIRST(&nic->parked.mds))) {
        unlist(nic, md);
        gnii_parked_deregister(nic, md);
    }
}

void gnii_parked_queue_ends(struct gnii_nic *nic, uint32_t index)
{
    struct gnii_md *md;

    LIST_FOREACH(md, &nic->mds, link)
        md->has_lost_queue = md->has_lost_queue || md->dst_cq == index;
    gnii_parked_give_back(nic);
}

void gnii_parked_forget(struct gnii_nic *nic)
{
    struct gnii_md *md;

    while ((md = LIST_FIRST(&nic->parked.mds))) {
        unlist(nic, md);
        free(md);
    }
    if (nic->parked.maps)
        emu_maps_close(nic->parked.maps);
    free(nic->parked.maps);
    nic->parked.maps = NULL;
}
