/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory domains: registrations of the ports, and the space files of processes.
 *
 * A handle index belongs to a node and is never in use by two domains of it at one time. Indices and generations
 * are handed out in a circle, so that a stale handle keeps failing for as long as possible. While several domains share
 * a node, the last quarter of its handles is for domains that have few: nobody can take them all.
 *
 * Registration fills the table entry and then sets its state (release); deregistration clears the state first. emunic
 * is the only one that moves data on the routed path, and it does one thing at a time: when the reply to a
 * deregistration is sent, no transfer is touching the memory, and none will (datapath.c looks again before each slice).
 *
 * A process's space file is a sparse memfd, sealed against any change of size, in which a page's offset is its address in
 * the process. The client maps it over memory that it allocates or adopts; a registration that lies in such memory uses
 * the map method, through windows that are mapped here when first needed. Memory that the program itself has mapped
 * shared is reached alike, through files of its own (file.c).
 */
#include "emunic/daemon/server.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define ADDRESS_END (1ull << 47)          /* user addresses; 49 bits fit a handle */

static struct emu_node *node_of(struct emu_server *server, uint32_t nid)
{
    if (!server->nodes[nid]) {
        server->nodes[nid] = calloc(1, sizeof(struct emu_node));
        if (server->nodes[nid]) {
            server->nodes[nid]->used[0] = 1;     /* index 0 is never handed out */
            server->nodes[nid]->next = 1;
        }
    }
    return server->nodes[nid];
}

static int take_index(struct emu_node *node, uint16_t *mdh_out)
{
    for (uint32_t i = 0; i < EMU_MDH_COUNT; i++) {
        uint32_t mdh = (node->next + i) % EMU_MDH_COUNT;

        if (node->used[mdh / 64] >> (mdh % 64) & 1)
            continue;
        node->used[mdh / 64] |= 1ull << (mdh % 64);
        node->generation[mdh] = (uint16_t)(node->generation[mdh] % EMU_MD_GENERATION_MAX + 1);
        node->next = (uint16_t)((mdh + 1) % EMU_MDH_COUNT);
        node->n_used++;
        *mdh_out = (uint16_t)mdh;
        return 0;
    }
    return -ENOSPC;
}

static bool is_shared(const struct emu_server *server, const struct emu_domain *domain, uint32_t nid)
{
    const struct emu_domain *other;

    LIST_FOREACH(other, &server->domains, link) {
        if (other != domain && emu_table_node_index(other->table, nid) != EMU_NID_NONE)
            return true;
    }
    return false;
}

static bool may_take_index(const struct emu_port_end *port, const struct emu_node *node)
{
    return node->n_used < EMU_MDH_COUNT / 4 * 3 || port->domain->n_handles[port->node_index] < EMU_MDH_COUNT / 4 ||
           !is_shared(port->server, port->domain, port->nid);
}

static void set_queue(struct emu_table_md *entry, const struct emu_port_end *port, uint32_t cq)
{
    entry->cq = cq;
    if (cq == EMU_CQ_NONE)
        return;
    entry->cq_line = (uint32_t)(port->cqs[cq].offset / EMU_CACHE_LINE);
    entry->cq_ring_entries = (uint32_t)port->cqs[cq].producer.ring_entries;
    entry->cq_capacity = (uint32_t)port->cqs[cq].producer.capacity;
    entry->cq_flags = port->cqs[cq].flags | (uint32_t)port->cqs[cq].serial << EMU_CQ_SERIAL_SHIFT;
}

static void set_method(struct emu_table_md *entry, const struct emu_port_end *port, const struct emu_msg_memory *memory,
                       const struct emu_file *file)
{
    entry->file = file ? emu_file_number(file) : 0;
    entry->file_offset = file ? memory->file_offset : 0;
    if (file)
        entry->method = EMU_MEMORY_FILE;
    else    /* A client that says so wrongly only makes its own memory unreachable. */
        entry->method = (memory->flags & EMU_MD_MAPPED) && port->member->space_fd >= 0 ? EMU_MEMORY_MAP : EMU_MEMORY_CMA;
}

int emu_md_register(struct emu_port_end *port, struct emu_msg_memory *memory, struct emu_fds *fds)
{
    struct emu_node *node = node_of(port->server, port->nid);
    struct emu_file *file = NULL;
    struct emu_table_md *entry;
    struct emu_md_end *md;
    int r;

    if (memory->length_bytes == 0 || memory->addr >= ADDRESS_END || memory->length_bytes > ADDRESS_END - memory->addr ||
        (memory->flags & ~(EMU_MD_READ_ONLY | EMU_MD_VMDH | EMU_MD_MAPPED | EMU_MD_FILE)) != 0)
        return -EINVAL;
    if (memory->cq != EMU_CQ_NONE && (memory->cq >= EMU_CQS_MAX || !port->cqs[memory->cq].in_use))
        return -EINVAL;
    r = port->domain->faults ? emu_fault_registration(port) : 0;
    if (r < 0)
        return r;
    md = malloc(sizeof(*md));
    if (!md || !node) {
        free(md);
        return -ENOMEM;
    }
    r = memory->flags & EMU_MD_FILE ? emu_file_get(port->member, memory, fds, &file) : 0;
    if (r == 0)
        r = may_take_index(port, node) ? take_index(node, &md->mdh) : -ENOSPC;
    if (r < 0) {
        emu_file_put(file);
        free(md);
        emu_error_tell_port(port, EMU_ERROR_REGISTRATION, EMU_ERROR_ADDRESS_TRANSLATION, port->n_mds, 0);
        return r;
    }
    node->file[md->mdh] = file;
    port->domain->n_handles[port->node_index]++;
    entry = &emu_table_mds(port->domain->table, port->node_index)[md->mdh];
    entry->generation = node->generation[md->mdh];
    entry->flags = (uint8_t)memory->flags;
    set_method(entry, port, memory, file);
    entry->port = port->index;
    set_queue(entry, port, memory->cq);
    entry->base = memory->addr;
    entry->length_bytes = memory->length_bytes;
    /* Pairs with the acquire in the engine: a live state means a whole entry. */
    atomic_store_explicit(&entry->state, 1, memory_order_release);
    LIST_INSERT_HEAD(&port->mds, md, link);
    port->n_mds++;
    memory->mdh = md->mdh;
    memory->generation = entry->generation;
    return 0;
}

void emu_md_release(struct emu_server *server, struct emu_domain *domain, uint32_t nid, uint16_t mdh)
{
    struct emu_node *node = server->nodes[nid];

    emu_file_put(node->file[mdh]);
    node->file[mdh] = NULL;
    domain->n_handles[emu_table_node_index(domain->table, nid)]--;
    node->used[mdh / 64] &= ~(1ull << (mdh % 64));
    node->n_used--;
}

static void drop(struct emu_port_end *port, struct emu_md_end *md)
{
    atomic_store_explicit(&emu_table_mds(port->domain->table, port->node_index)[md->mdh].state, 0,
                          memory_order_release);
    LIST_REMOVE(md, link);
    port->n_mds--;
    free(md);
}

int emu_md_deregister(struct emu_port_end *port, uint16_t mdh, uint16_t generation)
{
    struct emu_md_end *md;

    LIST_FOREACH(md, &port->mds, link) {
        if (md->mdh != mdh)
            continue;
        if (emu_table_mds(port->domain->table, port->node_index)[mdh].generation != generation)
            return -EINVAL;
        drop(port, md);
        return 0;
    }
    return -EINVAL;
}

void emu_md_drop_cq(struct emu_port_end *port, uint32_t cq)
{
    struct emu_table_md *entries = emu_table_mds(port->domain->table, port->node_index);
    struct emu_md_end *md;

    LIST_FOREACH(md, &port->mds, link) {
        if (entries[md->mdh].cq == cq)
            entries[md->mdh].cq = EMU_CQ_NONE;
    }
}

uint16_t *emu_md_drop_all(struct emu_port_end *port, uint32_t *n_out)
{
    uint16_t *mdhs = port->n_mds ? malloc(port->n_mds * sizeof(*mdhs)) : NULL;
    struct emu_md_end *md;
    uint32_t n = 0;

    while ((md = LIST_FIRST(&port->mds))) {
        if (mdhs)       /* out of memory: the numbers stay in use */
            mdhs[n++] = md->mdh;
        drop(port, md);
    }
    *n_out = n;
    return mdhs;
}

int emu_md_reach(void *ctx, const struct emu_table_md *md, uint8_t op, struct emu_memory *mem_out)
{
    struct emu_port_end *self = ctx;
    struct emu_port_end *owner = self->domain->ports[md->port];
    const struct emu_window *window;

    (void)op;       /* emunic can do everything */
    if (!owner)
        return EMU_STATUS_PEER_GONE;
    if (md->method == EMU_MEMORY_FILE) {
        struct emu_file *file = owner->domain->files[md->file % EMU_FILES_MAX].file;

        if (file && emu_file_reach(file, md, mem_out))
            return EMU_STATUS_OK;
    }
    if (md->method == EMU_MEMORY_MAP) {
        uint64_t first = md->base & ~4095ull;

        window = emu_windows_get(&owner->member->windows, owner->member->space_fd, first,
                                 md->base + md->length_bytes - first);
        if (window) {
            *mem_out = emu_memory_map(window->base, window->owner_addr, window->len_bytes);
            return EMU_STATUS_OK;
        }
    }
    *mem_out = emu_memory_cma(owner->member->pid);
    return EMU_STATUS_OK;
}

/* ---- space files ---- */

int emu_space_get(struct emu_member *member)
{
    int fd;
    int r;

    if (member->space_fd >= 0)
        return member->space_fd;
    fd = memfd_create("emunic-space", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)EMU_SPACE_BYTES) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0) {
        r = -errno;
        close(fd);
        return r;
    }
    member->space_fd = fd;
    return fd;
}
