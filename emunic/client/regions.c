/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Regions.
 *
 * A descriptor must cost nothing like a registration, and programs make one per message. So memory is adopted (space.c)
 * and registered in blocks of BLOCK_BYTES around what is asked for, cut to the mapping that it lies in, once;
 * descriptors only name the region.
 *
 * Nobody tells us when a program unmaps memory, or maps something else in its place; then a window shows pages that the
 * program does not have any more. Therefore each look-up asks the kernel again what is mapped there (one system call on
 * Linux 6.11, PROCMAP_QUERY): pages that are not those of the space file at their own address are adopted anew, at
 * the same place of the file, or the memory counts as in no region. An owner may promise that memory stays. A
 * descriptor's memory must exist as long as the descriptor, so nothing needs to be asked later.
 *
 * Adopting loses no write as long as nobody writes these pages by process_vm_* meanwhile. The caller holds the
 * interface and has no operation going on (may_adopt). Where other ports of the process have private registrations
 * nothing is adopted. What is larger than EMUNIC_ADOPT_LIMIT is left alone unless EMUNIC_MEMORY=adopt.
 */
#include "emunic/client/regions.h"

#include <stdlib.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/base/maps.h"
#include "emunic/base/settings.h"
#include "emunic/client/port.h"
#include "emunic/client/space.h"

#define BLOCK_BYTES (4ull << 20)
#define N_REFUSED   (sizeof(((struct emu_regions *)0)->refused) / sizeof(((struct emu_regions *)0)->refused[0]))

void emu_regions_init(struct emu_regions *r, struct emu_port *port)
{
    struct emu_piece here;

    *r = (struct emu_regions){ .port = port, .is_off = emu_setting_is("EMUNIC_MEMORY", "cma") };
    r->maps = r->is_off ? NULL : malloc(sizeof(*r->maps));
    if (r->maps && emu_maps_open(r->maps, 0) < 0) {
        free(r->maps);
        r->maps = NULL;
    } else if (r->maps && emu_maps_look(r->maps, (uint64_t)(uintptr_t)&here, &here) < 0) {
        emu_maps_close(r->maps);
        free(r->maps);
        r->maps = NULL;
    }
}

void emu_regions_fini(struct emu_regions *r)
{
    /* The registrations end with the port. */
    if (r->maps) {
        emu_maps_close(r->maps);
        free(r->maps);
        r->maps = NULL;
    }
    r->n = 0;
}

static const struct emu_region *region_of(const struct emu_regions *r, uint64_t first, uint64_t end)
{
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->list[i].first <= first && end <= r->list[i].end)
            return &r->list[i];
    }
    return NULL;
}

bool emu_regions_keep(struct emu_regions *r, uint64_t addr, uint64_t len_bytes)
{
    if (r->n_kept == EMU_REGIONS_KEPT_MAX)
        return false;
    r->kept[r->n_kept][0] = emu_page_up(addr);
    r->kept[r->n_kept][1] = emu_page_down(addr + len_bytes);
    r->n_kept++;
    return true;
}

/* Has its owner promised that it stays as it is? */
static bool is_kept(const struct emu_regions *r, uint64_t first, uint64_t end)
{
    for (uint32_t i = 0; i < r->n_kept; i++) {
        if (r->kept[i][0] <= first && end <= r->kept[i][1])
            return true;
    }
    return false;
}

/* Are these pages those of the space file at their own address? Quick, where the kernel can tell. */
static bool is_in_place(struct emu_regions *r, uint64_t first, uint64_t end)
{
    struct emu_piece piece;

    if (r->ino == 0)
        r->ino = emu_space_ino(r->port);
    if (!r->maps || r->ino == 0)
        return emu_space_cover(r->port, first, end - first, false);
    for (uint64_t at = first; at < end; at = piece.end) {
        if (emu_maps_look(r->maps, at, &piece) < 0 || !piece.is_shared || (uint64_t)piece.ino != r->ino ||
            piece.offset != piece.first || !piece.is_writable)
            return false;
    }
    return true;
}

/* Has it memory that others write by system calls? An interface of Portals has: that of its descriptors. */
static bool has_private(const struct emu_table_port *port)
{
    return atomic_load_explicit(&port->n_private, memory_order_acquire) > 0 ||
           atomic_load_explicit(&port->ptl_id, memory_order_acquire) != 0;
}

/*
 * Has another port of the process such memory? What is registered while pages are moved is another thread's, and then
 * all writes to them wait (space.c).
 */
static bool have_others_private(const struct emu_port *port)
{
    const struct emu_table_port *ports = emu_table_ports(port->table);
    uint32_t pid = ports[port->index].pid;

    for (uint32_t i = 0; i < port->table->n_ports; i++) {
        if (i != port->index && ports[i].pid == pid &&
            atomic_load_explicit(&ports[i].state, memory_order_acquire) == EMU_PORT_LIVE && has_private(&ports[i]))
            return true;
    }
    return false;
}

static bool was_refused(const struct emu_regions *r, uint64_t first, uint64_t end)
{
    for (uint32_t i = 0; i < N_REFUSED; i++) {
        if (r->refused[i][0] <= first && end <= r->refused[i][1])
            return true;
    }
    return false;
}

static void refuse(struct emu_regions *r, uint64_t first, uint64_t end)
{
    r->refused[r->n_refused % N_REFUSED][0] = first;
    r->refused[r->n_refused % N_REFUSED][1] = end;
    r->n_refused++;
}

/* The range to be adopted for [first, end): more of the same mapping, because more of it will be wanted. */
static bool choose(const struct emu_regions *r, uint64_t first, uint64_t end, uint64_t *first_out, uint64_t *end_out)
{
    uint64_t limit = r->port->settings.adopt_limit_bytes;
    struct emu_maps maps;
    struct emu_piece piece;
    bool is_found;

    if (emu_maps_open(&maps, 0) < 0)
        return false;
    is_found = emu_maps_find(&maps, first, &piece) && piece.first <= first;
    emu_maps_close(&maps);
    if (!is_found || !piece.is_writable || piece.is_stack || (piece.ino != 0 && !piece.is_shared))
        return false;
    *first_out = first;
    *end_out = end;
    if (piece.end < end)
        return true;
    *first_out = first & ~(BLOCK_BYTES - 1);
    *end_out = (end + BLOCK_BYTES - 1) & ~(BLOCK_BYTES - 1);
    if (*first_out < piece.first)
        *first_out = piece.first;
    if (*end_out > piece.end)
        *end_out = piece.end;
    if (*end_out - *first_out > limit) {
        *first_out = first;
        *end_out = end;
    }
    return true;
}

static const struct emu_region *make_region(struct emu_regions *r, uint64_t first, uint64_t end)
{
    struct emu_region region;

    /* What is too large says nothing about its parts: it is not remembered. */
    if (end - first > r->port->settings.adopt_limit_bytes)
        return NULL;
    if (r->n == EMU_REGIONS_MAX || was_refused(r, first, end) || have_others_private(r->port))
        return NULL;
    if (!choose(r, first, end, &region.first, &region.end) ||
        !emu_space_cover(r->port, region.first, region.end - region.first, true) ||
        emu_port_mem_register(
            r->port, &(struct emu_port_memory){ region.first, region.end - region.first, EMU_MD_MAPPED, EMU_CQ_NONE },
            &region.mdh, &region.generation) < 0) {
        refuse(r, first, end);
        return NULL;
    }
    r->list[r->n++] = region;
    return &r->list[r->n - 1];
}

bool emu_regions_find(struct emu_regions *r, uint64_t addr, uint64_t len_bytes, bool may_adopt, uint16_t *mdh_out,
                      uint16_t *generation_out)
{
    uint64_t first = emu_page_down(addr);
    uint64_t end = emu_page_up(addr + len_bytes);
    const struct emu_region *region;

    if (r->is_off || len_bytes == 0 || end <= first)
        return false;
    region = region_of(r, first, end);
    if (region && !is_kept(r, first, end) && !is_in_place(r, first, end) &&
        (!may_adopt || have_others_private(r->port) || !emu_space_cover(r->port, first, end - first, true)))
        return false;
    if (!region && may_adopt)
        region = make_region(r, first, end);
    if (!region)
        return false;
    *mdh_out = region->mdh;
    *generation_out = region->generation;
    return true;
}
