/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory behind a handle: how emunic reaches it.
 *
 * Memory that lies in the owner's space file, or in a file of the program's own, is reached through windows that are
 * mapped here when first needed; a segmented region through the list of its segments; anything else by system calls,
 * emunic's own or a mover's.
 */
#include "emunic/daemon/world/reach.h"

#include <errno.h>
#include <sys/stat.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/event.h"
#include "emunic/base/maps.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/file.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/engine/amo_cache.h"
#include "emunic/engine/memory_segments.h"
#include "emunic/engine/park.h"

#define ADDRESS_END   (1ull << 47) /* user addresses; 49 bits fit a handle */
#define MAP_LINES_MAX 512u         /* read for a part of a transfer where the kernel does not look itself */

static const struct emu_segment_list *list_of(const struct emu_domain *domain, uint32_t node, uint16_t mdh)
{
    return domain->memory.segments[node] ? domain->memory.segments[node][mdh] : NULL;
}

int emu_md_reach(void *ctx, const struct emu_table_md *md, uint8_t op, struct emu_memory *mem_out)
{
    const struct emu_port_end *self = ctx;

    (void)op; /* emunic can do everything */
    return emu_md_reach_in(self->domain, md, mem_out);
}

int emu_md_reach_in(const struct emu_domain *domain, const struct emu_table_md *md, struct emu_memory *mem_out)
{
    struct emu_port_end *owner = domain->ports[md->port];
    const struct emu_window *window;

    if (!owner)
        return EMU_STATUS_PEER_GONE;
    if (md->flags & EMU_MD_SEGMENTED) {
        const struct emu_table_md *entries = emu_table_mds(owner->domain->table, owner->node_index);
        const struct emu_segment_list *list = list_of(owner->domain, owner->node_index, (uint16_t)(md - entries));

        if (!list)
            return EMU_STATUS_BAD_HANDLE;
        *mem_out = emu_memory_segments(list);
        return EMU_STATUS_OK;
    }
    if (md->method == EMU_MEMORY_FILE) {
        struct emu_file *file = owner->domain->memory.files[md->file % EMU_FILES_MAX].file;

        if (file && emu_file_reach(file, md, mem_out))
            return EMU_STATUS_OK;
    }
    if (md->method == EMU_MEMORY_MAP) {
        uint64_t first = emu_page_down(md->base);

        window = emu_windows_get(&owner->member->windows, owner->member->space_fd, first,
                                 md->base + md->length_bytes - first);
        if (window) {
            *mem_out = emu_memory_map(window->base, window->owner_addr, window->len_bytes);
            if (owner->memory.amo_cache)
                *mem_out = emu_memory_cached(owner->memory.amo_cache, mem_out, owner->member->pid);
            return EMU_STATUS_OK;
        }
    }
    *mem_out = owner->view.local;
    return EMU_STATUS_OK;
}

const struct emu_segment *emu_md_segment(void *ctx, uint32_t port)
{
    const struct emu_port_end *self = ctx;
    const struct emu_port_end *owner = port < EMU_PORTS_MAX ? self->domain->ports[port] : NULL;

    return owner ? owner->segment : NULL;
}

uint16_t emu_md_generation(const struct emu_domain *domain, const struct emu_table_md *md)
{
    const struct emu_port_end *owner = domain->ports[md->port];

    return owner ? emu_park_generation(md, owner->segment) : 0;
}

/* The handle works on every port of the process: it is looked for by its owner's process, on the port's node. */
int emu_md_local(void *ctx, uint16_t mdh, uint16_t generation, struct emu_memory *mem_out)
{
    struct emu_port_end *self = ctx;
    const struct emu_segment_list *list = mdh < EMU_MD_COUNT ? list_of(self->domain, self->node_index, mdh) : NULL;
    const struct emu_table_md *entry;

    if (!list)
        return EMU_STATUS_LOCAL_ACCESS;
    entry = &emu_table_mds(self->domain->table, self->node_index)[mdh];
    if (entry->generation != generation || !self->domain->ports[entry->port] ||
        self->domain->ports[entry->port]->member != self->member)
        return EMU_STATUS_LOCAL_ACCESS;
    *mem_out = emu_memory_segments(list);
    return EMU_STATUS_OK;
}

/* ---- space files ---- */

int emu_member_open_maps(const struct emu_member *member, struct emu_maps *maps)
{
    if (!member->is_moved)
        return emu_maps_open(maps, member->pid);
    return member->maps_fd < 0 ? -ESRCH : emu_maps_open_at(maps, member->maps_fd);
}

/* In the space file a page's place is its address. */
static bool is_in_space(const struct emu_piece *p, const struct stat *space, uint64_t at, bool for_writing)
{
    return p->first <= at && p->is_shared && p->dev == space->st_dev && p->ino == space->st_ino &&
           p->offset == p->first && p->is_readable && (p->is_writable || !for_writing);
}

bool emu_space_find(struct emu_member *member, uint64_t addr, uint64_t length_bytes, bool for_writing,
                    struct emu_memory *mem_out)
{
    const struct emu_window *window;
    uint64_t end = addr + length_bytes;
    uint64_t at = addr;
    struct emu_maps maps;
    struct emu_piece p;
    struct stat space;

    if (member->space_fd < 0 || addr >= ADDRESS_END || length_bytes > ADDRESS_END - addr ||
        fstat(member->space_fd, &space) < 0 || emu_member_open_maps(member, &maps) < 0)
        return false;
    maps.lines_left = MAP_LINES_MAX;
    while (at < end && emu_maps_find(&maps, at, &p) && is_in_space(&p, &space, at, for_writing))
        at = p.end;
    emu_maps_close(&maps);
    window = at < end ? NULL : emu_windows_get(&member->windows, member->space_fd, addr, length_bytes);
    if (!window)
        return false;
    *mem_out = emu_memory_map(window->base, window->owner_addr, window->len_bytes);
    return true;
}
